"""Law: PyTorch's tensors are arrays as any others; their autograd takes no part, and tensors that require grad raise an error."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import xpgrad as xp

ROOT = Path(__file__).resolve().parents[3]


def test_memory_is_shared_with_the_tensor_that_was_given() -> None:
    raw = torch.tensor([1.0, 2.0])
    x = xp.asarray(raw)
    assert x.device == "torch:cpu"
    raw[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    x[1] = 7.0
    assert raw.tolist() == [5.0, 7.0]
    copy = xp.tensor(raw)
    raw[0] = 0.0
    assert copy.tolist() == [5.0, 7.0]


def test_a_tensor_that_requires_grad_is_refused() -> None:
    raw = torch.ones(2, requires_grad=True)
    for call in (xp.asarray, xp.tensor, lambda r: xp.asarray(r * 2.0)):
        with pytest.raises(TypeError, match=r"its gradient would be lost. Pass `x.detach\(\)`"):
            call(raw)
    x = xp.asarray(raw.detach())
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad is not None
    assert not x.grad.array.requires_grad


def test_a_tensor_that_comes_to_require_grad_later_stays_out() -> None:
    raw = torch.ones(2)
    x = xp.asarray(raw)
    raw.requires_grad_()
    assert not (x * 2.0).array.requires_grad


def test_meta_knows_shapes_and_no_values() -> None:
    x = xp.ones((3, 4), device="torch:meta", requires_grad=True)
    w = xp.ones((4, 2), dtype=xp.float32, device="torch:meta", requires_grad=True)
    loss = xp.sum(xp.tanh(x @ xp.astype(w, xp.float64)) ** 2)
    loss.backward()
    assert x.grad is not None
    assert w.grad is not None
    assert (x.grad.shape, x.grad.dtype, w.grad.shape, w.grad.dtype) == ((3, 4), xp.float64, (4, 2), xp.float32)
    with pytest.raises(xp.CapabilityError, match="no values"):
        loss.item()
    assert "shape=()" in repr(loss)


def test_parts_taken_backwards_are_copies_that_refuse_writes() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True, device="torch")
    y = x * 1.0
    back = y[::-1]
    with pytest.raises(RuntimeError, match="a part that was taken backwards"):
        back *= 2.0
    xp.sum(back * xp.asarray([1.0, 10.0, 100.0], device="torch")).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [100.0, 10.0, 1.0]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (lambda x: (lambda e: e / xp.sum(e, axis=1, keepdims=True))(xp.exp(x)), lambda x: torch.softmax(x, 1)),
    "gather": (lambda x: xp.take(x, xp.asarray([0, 2, 0], device=x.device), axis=0), lambda x: x[torch.tensor([0, 2, 0])]),
    "matmul": (lambda x: xp.tanh(x @ xp.matrix_transpose(x)), lambda x: torch.tanh(x @ x.mT)),
    "sort": (lambda x: xp.sort(x, axis=0), lambda x: torch.sort(x, 0).values),
    "solve": (lambda x: xp.linalg.solve(x @ x.T + xp.eye(3, device=x.device), x), lambda x: torch.linalg.solve(x @ x.T + torch.eye(3), x)),
    "norm": (lambda x: xp.linalg.vector_norm(x), lambda x: torch.linalg.vector_norm(x)),
    "cumulative": (lambda x: xp.cumulative_prod(x, axis=0), lambda x: torch.cumprod(x, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_pytorch_to_second_order(name: str) -> None:
    ours, theirs = FUNCTIONS[name]
    data = np.random.default_rng(0).standard_normal((3, 2))
    x, t = xp.tensor(data, requires_grad=True, device="torch"), torch.tensor(data, requires_grad=True)
    torch.set_default_dtype(torch.float64)
    try:
        (g,) = xp.autograd.grad(xp.sum(ours(x) ** 3), x, create_graph=True)
        (h,) = torch.autograd.grad((theirs(t) ** 3).sum(), t, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), h.detach().numpy(), rtol=1e-9, atol=1e-11)
        (g,) = xp.autograd.grad(xp.sum(g**2), x)
        (h,) = torch.autograd.grad((h**2).sum(), t)
        np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-8, atol=1e-10)
    finally:
        torch.set_default_dtype(torch.float32)


def test_moves_between_libraries_differentiate_and_mixtures_are_refused() -> None:
    for here, there in (("numpy", "torch:cpu"), ("torch:cpu", "numpy")):
        x = xp.tensor([1.0, 2.0], requires_grad=True, device=here)
        y = x.to_device(there)
        with pytest.raises(xp.DeviceMismatchError, match=rf"{here}.*{there}|{there}.*{here}"):
            x * y
        xp.sum(y * y).backward()
        assert x.grad is not None
        assert (x.grad.device, x.grad.tolist()) == (here, [2.0, 4.0])
    scale = xp.tensor(3.0, requires_grad=True)
    x = xp.ones(2, device="torch")
    xp.sum(x * scale).backward()
    assert scale.grad is not None
    assert (scale.grad.device, scale.grad.item()) == ("numpy", 2.0)


def test_promotion_is_the_standards() -> None:
    """PyTorch promotes an integer and a float to float32, and lets 0-d tensors promote less than others."""
    i, f, z = (xp.ones(2, dtype=d, device="torch") for d in ("int64", "float32", "complex64"))
    assert (i * 0.5).dtype == xp.float64
    assert (i / i).dtype == xp.float64
    assert (f * xp.ones((), dtype=xp.float64, device="torch")).dtype == xp.float64
    assert (f * 2).dtype == xp.float32
    assert (f * 1j).dtype == xp.complex64
    assert (z * xp.ones((), dtype=xp.float64, device="torch")).dtype == xp.complex128


@pytest.mark.filterwarnings("ignore")
def test_random_programs_of_writes_agree_with_pytorch_itself() -> None:
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(300):
            program = draw(seed)
            check(seed, Machine("torch").run(program), Machine("xpgrad", "torch").run(program), program)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_backward_runs_on_the_stream_of_the_forward() -> None:
    side = torch.cuda.Stream()
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="torch:cuda:0")
    side.wait_stream(torch.cuda.current_stream())
    seen = []
    with torch.cuda.stream(side):
        y = x * x
        y.register_hook(lambda g: seen.append(torch.cuda.current_stream() == side))
    torch.cuda.current_stream().wait_stream(side)
    xp.sum(y).backward()
    assert seen == [True]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_the_light_module_imports_no_torch() -> None:
    code = "import sys, xpgrad_torch; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_readme_is_true(capsys: Any) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})  # noqa: S102 (our own text)
    assert capsys.readouterr().out == "[2.0, 4.0] Tensor\n"


def test_lists_of_tensors_stay_on_their_device() -> None:
    """NumPy cannot convert tensors on a GPU, so a list of them must not go through NumPy."""
    rows = [torch.tensor([1.0, 2.0], device="meta"), torch.tensor([3.0, 4.0], device="meta")]
    assert str(xp.asarray(rows).device) == "torch:meta"
    found = xp.asarray([[torch.tensor(1, dtype=torch.int8), 2], [3, torch.tensor(4, dtype=torch.int8)]])
    assert (str(found.device), found.dtype, found.tolist()) == ("torch:cpu", xp.int8, [[1, 2], [3, 4]])
