"""The oracle of the rule tests: first and second derivatives along fixed directions, by float64 central differences.

A direction singles out no element, so that a wrong derivative anywhere shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xpgrad as xp

__all__ = ["check", "loss", "numbers", "values"]

Function = Callable[..., Any]
STEP = 1e-5


def numbers(shape: tuple[int, ...], start: float = 1.0, dtype: Any = np.float64) -> np.ndarray:
    """Fixed numbers between -1 and 1 without a pattern; complex for a complex dtype."""
    count = np.arange(int(np.prod(shape))).reshape(shape)
    real = np.cos(start + count)
    return (real + 0.7j * np.sin(start + 1.3 * count) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def values(x: Any) -> np.ndarray:
    """A Tensor's values on the host."""
    return np.asarray(x.detach().numpy())


def loss(out: Any) -> Any:
    """A real number that depends on all outputs, smoothly and not linearly."""
    total: Any = 0.0
    for k, y in enumerate(out if isinstance(out, (tuple, list)) else [out]):
        if not y.dtype.differentiable:
            continue
        parts = [xp.real(y), xp.imag(y)] if y.dtype.is_complex else [y]
        for j, part in enumerate(parts):
            w = xp.asarray(numbers(part.shape, 1.0 + k + 5 * j), dtype=part.dtype, device=part.device)
            total = total + xp.sum(w * (part + 0.3 * part * part))
    return total


def _slope(function: Function, points: Sequence[np.ndarray], device: str) -> tuple[list[Any], list[Any], Any]:
    """Leaves at `points`, the gradients of the loss as Tensors with a history, and a number that depends on all of them."""
    leaves = [xp.tensor(p, device=device, requires_grad=True) for p in points]
    grads = xp.autograd.grad(loss(function(*leaves)), leaves, create_graph=True, allow_unused=True)
    return leaves, grads, loss([g for g in grads if g is not None])


def _along(grads: Sequence[Any], i: int, direction: np.ndarray) -> float:
    """The derivative along a direction in the i-th operand, from a gradient in PyTorch's convention dL/dx + i dL/dy."""
    if grads[i] is None:
        return 0.0
    g = values(grads[i])
    return float(np.sum(g.real * direction.real) + np.sum(g.imag * direction.imag))


def _close(found: float, expected: float, scale: float, what: str) -> None:
    assert abs(found - expected) <= 2e-6 * max(1.0, scale, abs(expected)), f"{what}: {found} instead of {expected}"


def check(function: Function, points: Sequence[np.ndarray], device: str = "numpy", order: int = 2) -> None:
    """Compare first and second derivatives of `function` at float64 or complex128 `points` with differences on NumPy."""
    leaves = [xp.tensor(p, device=device, requires_grad=True) for p in points]
    out = loss(function(*leaves))
    assert out.requires_grad
    assert out.device == leaves[0].device
    plain = xp.autograd.grad(out, leaves, allow_unused=True)
    fresh, grads, slope = _slope(function, points, device)
    for leaf, a, b in zip(leaves, plain, grads):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == leaf.shape
            assert a.dtype is leaf.dtype
            np.testing.assert_allclose(values(a), values(b), rtol=1e-12, atol=1e-12)
    second: Sequence[Any] = [None] * len(points)
    if order > 1 and getattr(slope, "requires_grad", False):
        second = xp.autograd.grad(slope, fresh, allow_unused=True)
    for i, p in enumerate(points):
        direction = numbers(p.shape, 3.0 + i, p.dtype)
        ahead, behind = ([q + s * STEP * direction if j == i else q for j, q in enumerate(points)] for s in (1, -1))
        ends = [loss(function(*(xp.asarray(q) for q in at))).item() for at in (ahead, behind)]
        _close(_along(plain, i, direction), (ends[0] - ends[1]) / (2 * STEP), abs(ends[0]), f"first derivative, operand {i}")
        if order > 1:
            ends = [
                float(s.item()) if isinstance(s, xp.Tensor) else s for s in (_slope(function, at, "numpy")[2] for at in (ahead, behind))
            ]
            _close(_along(second, i, direction), (ends[0] - ends[1]) / (2 * STEP), abs(ends[0]), f"second derivative, operand {i}")
