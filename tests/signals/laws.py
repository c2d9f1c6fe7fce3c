"""Laws for a call of any of these functions, with some of its arguments as Tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xpgrad as xp
from support.central_differences import cast_for_device, check, loosen, numbers, values
from xpgrad.func import jvp, vmap

__all__ = ["Call", "batch_is_loop", "derivatives_are_differences", "flat", "forward_is_reverse", "values_are_scipys"]


class Call(NamedTuple):
    """A function in xpgrad and in SciPy, with its arguments.

    Attributes
    ----------
    ours, theirs : callable
        The function of Tensors and the one of NumPy arrays; each returns one or several results.
    points : tuple of arrays
    order : int
        The order of the derivatives to compare.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    points: tuple[np.ndarray, ...]
    order: int = 2


def flat(out: Any) -> list[Any]:
    """Return one or several results as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _tensors(call: Call, device: str) -> list[Any]:
    return [xp.asarray(cast_for_device(p, device), device=device) for p in call.points]


def values_are_scipys(call: Call, device: str) -> None:
    """Compare values, shapes and kinds of dtypes with SciPy's."""
    tolerance = loosen(1e-10, device, *call.points)
    found, expected = flat(call.ours(*_tensors(call, device))), flat(call.theirs(*call.points))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == np.shape(b)
        assert values(a).dtype.kind == np.asarray(b).dtype.kind
        np.testing.assert_allclose(values(a), b, rtol=tolerance, atol=tolerance)


def derivatives_are_differences(call: Call, device: str) -> None:
    """Compare derivatives in all arguments with central differences."""
    check(call.ours, list(call.points), device, order=call.order)


def forward_is_reverse(call: Call, device: str) -> None:
    """Compare the tangent of a weighted sum of the results with the gradient along the same direction."""
    tolerance = loosen(1e-9, device, *call.points)
    xs = _tensors(call, device)
    ways = [xp.asarray(cast_for_device(numbers(p.shape, 2.0 + i, p.dtype), device), device=device) for i, p in enumerate(call.points)]

    def total(*at: Any) -> Any:
        out: Any = 0.0
        for k, y in enumerate(flat(call.ours(*at))):
            w = xp.asarray(numbers(y.shape, 4.0 + k), dtype=xp.real(y).dtype if y.dtype.is_complex else y.dtype, device=y.device)
            out = out + xp.sum(w * (xp.real(y) + 2.0 * xp.imag(y) if y.dtype.is_complex else y))
        return out

    leaves = [xp.tensor(cast_for_device(p, device), device=device, requires_grad=True) for p in call.points]
    grads = xp.autograd.grad(total(*leaves), leaves, materialize_grads=True)
    expected = sum(np.sum(values(g).real * values(w).real + values(g).imag * values(w).imag) for g, w in zip(grads, ways))
    _, tangent = jvp(total, tuple(xs), tuple(ways))
    np.testing.assert_allclose(values(tangent), expected, rtol=tolerance, atol=tolerance)


def batch_is_loop(call: Call, device: str) -> None:
    """Compare `vmap` of values and of gradients with a loop, over all arguments and over each alone."""
    tolerance = loosen(1e-10, device, *call.points)
    one = _tensors(call, device)
    many = [xp.stack([x, x * 1.03]) for x in one]

    def slope(*at: Any) -> Any:
        def total(*at: Any) -> Any:
            return sum(xp.sum(xp.real(y * y) if y.dtype.is_complex else y * y) for y in flat(call.ours(*at)))

        return xp.func.grad(total, argnums=tuple(range(len(at))))(*at)

    places = [tuple(range(len(one))), *((i,) for i in range(len(one)))] if len(one) > 1 else [(0,)]
    for chosen in places:
        given = [many[i] if i in chosen else one[i] for i in range(len(one))]
        dims = tuple(0 if i in chosen else None for i in range(len(one)))
        for function in (call.ours, slope):
            found = flat(vmap(function, in_dims=dims)(*given))
            loop = [flat(function(*(x[k] if i in chosen else x for i, x in enumerate(given)))) for k in range(2)]
            for j, f in enumerate(found):
                np.testing.assert_allclose(values(f), np.stack([values(row[j]) for row in loop]), rtol=tolerance, atol=tolerance)
