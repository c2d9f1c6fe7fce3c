"""Law: the names of `torch.autograd` resolve on `xpgrad.autograd`, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

NAMES = (
    "Function", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "function.Function", "function.FunctionCtx", "function.once_differentiable",
    "graph.Node", "graph.GradientEdge", "graph.get_gradient_edge", "graph.increment_version", "graph.register_multi_grad_hook",
    "grad_mode.set_multithreading_enabled", "anomaly_mode.detect_anomaly",
)  # fmt: skip


@pytest.mark.parametrize("first", ["", "import xpgrad.autograd.gradcheck", "from xpgrad.autograd.gradcheck import gradgradcheck"])
def test_names(first: str) -> None:
    code = f"{first}\nimport xpgrad as xp\n" + "\n".join(f"assert callable(xp.autograd.{name}), {name!r}" for name in NAMES)
    code += "\nfor name in xp.autograd.__all__: getattr(xp.autograd, name)"
    subprocess.run([sys.executable, "-c", code], check=True)
