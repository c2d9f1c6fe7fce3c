"""Law: every function works without SciPy, and Tensors on different devices raise."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import search_path
from xpgrad.errors import DeviceMismatchError

MODULES = ("signal", "fft", "interpolate")


@pytest.mark.parametrize("name", MODULES)
def test_all_names_have_a_docstring_and_dir_shows_them(name: str) -> None:
    module = importlib.import_module(f"xpgrad.scipy.{name}")
    assert sorted(module.__all__) == sorted(name for name in dir(module) if not name.startswith("_"))
    assert all(getattr(module, function).__doc__ for function in module.__all__)


PROGRAM = """
import sys
if len(sys.argv) > 1:
    sys.modules["scipy"] = None
import json
import xpgrad as xp
from xpgrad.scipy import fft, interpolate, signal

x = xp.asarray([0.3, -1.0, 2.0, 0.5, 1.5, -0.7])
a = xp.tensor([1.2, -0.4, 0.3], requires_grad=True)
y = signal.lfilter([1.0, 0.5], a, x)
(slope,) = xp.autograd.grad(xp.sum(y**2), a, create_graph=True)
(second,) = xp.autograd.grad(xp.sum(slope), a)
spline = interpolate.CubicSpline(xp.arange(6) * 1.5, x)
found = [y, slope, second, spline(2.0), *(f(x, k) for f in (fft.dct, fft.dst) for k in (1, 2, 3, 4)), signal.convolve(x, x)]
print(json.dumps([t.tolist() for t in found]))
"""


@pytest.mark.slow
def test_nothing_needs_scipy() -> None:
    pytest.importorskip("scipy", reason="it is what is left out")
    environment = os.environ | {"PYTHONPATH": search_path()}
    outputs = []
    for args in ((), ("without",)):
        command = [sys.executable, "-c", PROGRAM, *args]
        outputs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout))
    for one, other in zip(*outputs):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_nothing_loads_scipy_before_it_computes() -> None:
    script = "import sys; from xpgrad.scipy import fft, interpolate, signal; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "False\n"


def test_devices_do_not_mix() -> None:
    from xpgrad.scipy import interpolate, signal

    x, h = xp.zeros(3), xp.zeros(3, device="strict")
    calls: tuple[Any, ...] = (
        lambda: signal.convolve(x, h), lambda: signal.lfilter(x + 1.0, h + 1.0, x), lambda: interpolate.CubicSpline(xp.arange(3), h),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(DeviceMismatchError, match="strict"):
            call()
