"""Reference derivatives for the rule tests: first and second derivatives along fixed directions, by float64 central differences.

A direction has a component in every element, so a derivative that is wrong in any element is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xpgrad as xp

__all__ = ["cast_for_device", "check", "differences", "loosen", "loss", "numbers", "values"]

Function = Callable[..., Any]
STEP = 1e-5


def numbers(shape: tuple[int, ...], start: float = 1.0, dtype: Any = np.float64) -> np.ndarray:
    """Return an array of fixed, irregular numbers between -1 and 1; complex numbers for a complex dtype."""
    count = np.arange(int(np.prod(shape))).reshape(shape)
    real = np.cos(start + count)
    return (real + 0.7j * np.sin(start + 1.3 * count) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def values(x: Any) -> np.ndarray:
    """Return a Tensor's values as a NumPy array."""
    return np.asarray(x.detach().numpy())


def loss(out: Any) -> Any:
    """Return a real number that depends smoothly and nonlinearly on all outputs."""
    total: Any = 0.0
    for k, y in enumerate(out if isinstance(out, (tuple, list)) else [out]):
        if not y.dtype.differentiable:
            continue
        parts = [xp.real(y), xp.imag(y)] if y.dtype.is_complex else [y]
        for j, part in enumerate(parts):
            w = xp.asarray(numbers(part.shape, 1.0 + k + 5 * j), dtype=part.dtype, device=part.device)
            total = total + xp.sum(w * (part + 0.3 * part * part))
    return total


def differences(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return the gradient of a real function by central differences; ``dL/dx + i dL/dy`` for complex `x`."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        for unit in (1.0, 1j) if np.iscomplexobj(x) else (1.0,):
            h = np.zeros_like(x)
            h[i] = unit * step
            out[i] += unit * (f(x + h) - f(x - h)) / (2 * step)
    return out


def _slope(function: Function, points: Sequence[np.ndarray], device: str) -> tuple[list[Any], list[Any], Any]:
    """Return leaves at `points`, the loss's gradients recorded for a second pass, and a number that depends on all these gradients."""
    leaves = [xp.tensor(p, device=device, requires_grad=True) for p in points]
    grads = xp.autograd.grad(loss(function(*leaves)), leaves, create_graph=True, allow_unused=True)
    return leaves, grads, loss([g for g in grads if g is not None])


def _along(grads: Sequence[Any], i: int, direction: np.ndarray) -> float:
    """Return the derivative along a direction in the i-th operand, from gradients in PyTorch's convention dL/dx + i dL/dy."""
    if grads[i] is None:
        return 0.0
    g = values(grads[i])
    return float(np.sum(g.real * direction.real) + np.sum(g.imag * direction.imag))


#: Tolerances of derivatives in double and in single precision. NB: second derivatives have rounding errors of hundreds of units.
NEAR, SINGLE = 2e-6, 2e-3
_NARROW = {"float64": "float32", "complex128": "complex64"}


def _dtypes(device: str) -> set[str]:
    """Return the names of the dtypes that a device's backend has."""
    return {d.name for d in xp.zeros(0, dtype=xp.float32, device=device).backend.dtypes()}


def has_float64(device: str) -> bool:
    """Return whether a device's backend has float64."""
    return "float64" in _dtypes(device)


def cast_for_device(point: np.ndarray, device: str) -> np.ndarray:
    """Return `point` in its own dtype if the device has it, otherwise in single precision."""
    return point if point.dtype.name in _dtypes(device) else point.astype(_NARROW.get(point.dtype.name, point.dtype))


def loosen(tolerance: float, device: str, *points: np.ndarray) -> float:
    """Return `tolerance`, or at least the one of single precision if the device lacks float64 or the dtype of one of the `points`."""
    exact = all(cast_for_device(p, device).dtype == p.dtype for p in points) if points else has_float64(device)
    return tolerance if exact else max(tolerance, SINGLE)


def _close(found: float, expected: float, scale: float, tolerance: float, what: str) -> None:
    assert abs(found - expected) <= tolerance * max(1.0, scale, abs(expected)), f"{what}: {found} instead of {expected}"


def check(function: Function, points: Sequence[np.ndarray], device: str = "numpy", order: int = 2) -> None:
    """Compare first and second derivatives of `function` at float64 or complex128 `points` with differences on NumPy.

    If the device lacks the dtypes of the points, the points are rounded to single precision and the tolerance is larger.
    """
    given = [cast_for_device(p, device) for p in points]
    wide = not any(p.dtype in (np.float32, np.complex64) for p in given)
    tolerance = NEAR if wide else SINGLE
    equal = tolerance * 1e-6 if wide else tolerance
    if not wide:  # the differences are always computed in float64
        points = [p.astype({"f": np.float64, "c": np.complex128}.get(p.dtype.kind, p.dtype)) for p in given]
    leaves = [xp.tensor(p, device=device, requires_grad=True) for p in given]
    out = loss(function(*leaves))
    assert out.requires_grad
    assert out.device == leaves[0].device
    plain = xp.autograd.grad(out, leaves, allow_unused=True)
    fresh, grads, slope = _slope(function, given, device)
    for leaf, a, b in zip(leaves, plain, grads):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == leaf.shape
            assert a.dtype is leaf.dtype
            np.testing.assert_allclose(values(a), values(b), rtol=equal, atol=equal)
    second: Sequence[Any] = [None] * len(points)
    if order > 1 and getattr(slope, "requires_grad", False):
        second = xp.autograd.grad(slope, fresh, allow_unused=True)
    for i, p in enumerate(points):
        direction = numbers(p.shape, 3.0 + i, p.dtype)
        ahead, behind = ([q + s * STEP * direction if j == i else q for j, q in enumerate(points)] for s in (1, -1))
        ends = [loss(function(*(xp.asarray(q) for q in at))).item() for at in (ahead, behind)]
        _close(_along(plain, i, direction), (ends[0] - ends[1]) / (2 * STEP), abs(ends[0]), tolerance, f"first derivative, operand {i}")
        if order > 1:
            ends = [
                float(s.item()) if isinstance(s, xp.Tensor) else s for s in (_slope(function, at, "numpy")[2] for at in (ahead, behind))
            ]
            _close(
                _along(second, i, direction), (ends[0] - ends[1]) / (2 * STEP), abs(ends[0]), tolerance, f"second derivative, operand {i}"
            )
