"""Law: with `operators = False`, forward, backward and in-place code only use kernels; and a variant is never taken for its base."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import kernels_only
from support.central_differences import values
from transforms.test_func import _functions
from xpgrad.autograd import set_detect_anomaly

kernels_only.register()
DEVICE = "bare+double"
FUNCTIONS = _functions()


def _gradients(f: Any, at: np.ndarray, device: str) -> list[np.ndarray]:
    x = xp.asarray(at, device=device).requires_grad_()
    y = f(x)
    if isinstance(y, (tuple, list)):
        y = sum(xp.sum(xp.real(part) if part.dtype.is_complex else part) for part in y if part.dtype.differentiable)
    if not y.requires_grad:
        return [values(y)]
    loss = xp.sum(xp.real(y * y * 0.5)) if y.dtype.is_complex else xp.sum(y * y * 0.5)
    (first,) = xp.autograd.grad(loss, x, create_graph=True)
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)  # adds to the existing gradient
    found = [values(y.detach()), values(first.detach()), values(x.grad)]
    if first.requires_grad:
        total = xp.sum(xp.real(first)) if first.dtype.is_complex else xp.sum(first)
        (second,) = xp.autograd.grad(total, x, allow_unused=True, materialize_grads=True)
        found.append(values(second))
    return found


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_use_kernels_only(name: str) -> None:
    f, at = FUNCTIONS[name]
    for found, expected in zip(_gradients(f, at, DEVICE), _gradients(f, at, "numpy"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_writes_and_steps_use_kernels_only() -> None:
    results = []
    for device in (DEVICE, "numpy"):
        x = xp.asarray(np.arange(1.0, 4.0), device=device).requires_grad_()
        y = x * 2
        y *= x
        y[0] = x[1]
        y[1:].add_(x[:2])
        xp.sum(y).backward()
        with xp.no_grad():
            x -= x.grad * 0.1
            x.mul_(2.0)
        results.append((values(y.detach()), values(x.grad), values(x.detach())))
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected)


def test_the_guard_works() -> None:
    raw = xp.asarray(np.ones(2), device=DEVICE).array
    namespace: dict[str, Any] = {"raw": raw}
    with pytest.raises(AssertionError, match="on a raw array"):
        exec(compile("raw * raw", "<generated>", "exec"), namespace)  # noqa: S102 (as generated text runs)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("device", ["bare+double", "bare"])
def test_anomaly_detection_looks_at_variants(device: str, create_graph: bool) -> None:
    x = xp.asarray(np.asarray([0.0, 1.0], dtype="float64" if "+" in device else "float32"), device=device).requires_grad_()
    with set_detect_anomaly(True):
        (g,) = xp.autograd.grad(xp.sum(xp.exp(x) * x), x, create_graph=create_graph)
        np.testing.assert_allclose(values(g.detach()), np.exp([0, 1]) * [1, 2], rtol=1e-6)
        y = xp.sum(xp.sqrt(x) * 0.0)
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), pytest.raises(RuntimeError, match="returned nan values"):
            xp.autograd.grad(y, x, create_graph=create_graph)
