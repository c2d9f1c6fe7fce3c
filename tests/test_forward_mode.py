"""Law: forward mode gives the derivative that reverse mode and finite differences give, for every operation, and in any nesting.

The functions and their points are those that the tests of the rules use; PyTorch's forward mode is the reference where it has the
function. Nested levels, closures, writes in place, custom Functions and passes that carry tangents have tests of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import test_fft as fft
import test_linalg as linalg
import test_rules_elementwise as elementwise
import test_rules_shapes as shapes
import test_rules_statistics as statistics
from central_differences import loss, numbers, values
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad._row import ROWS
from xpgrad._transforms import dual
from xpgrad.autograd import forward_ad as fw
from xpgrad.func._forward import jvp, linearize

grad = xp.autograd.grad
Function = Callable[..., Any]
STEP = 1e-6


def several(out: Any) -> tuple[Any, ...]:
    """The outputs that have a derivative."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(y for y in outs if y.dtype.differentiable)


def inner(a: Any, b: Any) -> float:
    """The real inner product of two Tensors' values."""
    return float(np.sum(np.real(np.conj(values(a)) * values(b))))


def close(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    scale = 1 + np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def check(function: Function, points: Sequence[np.ndarray], device: str, order: int = 2, differences: bool = True) -> None:
    """Tangents, together and of one operand at a time, against differences and reverse mode; second derivatives in all three orders."""
    directions = [numbers(p.shape, 3.0 + i, p.dtype) for i, p in enumerate(points)]
    xs = [xp.asarray(p, device=device) for p in points]
    for chosen in [range(len(points)), *([i] for i in range(len(points)) if len(points) > 1)]:
        ds = [d if i in chosen else np.zeros_like(d) for i, d in enumerate(directions)]

        def part(*some: Any, chosen: Any = chosen) -> Any:
            rest = iter(some)
            return several(function(*(next(rest) if i in chosen else x for i, x in enumerate(xs))))

        outs, slopes = jvp(part, tuple(xs[i] for i in chosen), tuple(xp.asarray(ds[i], device=device) for i in chosen))
        for y, plain, t in zip(outs, several(function(*xs)), slopes, strict=True):
            np.testing.assert_allclose(values(y), values(plain), rtol=1e-12, atol=1e-12)  # some have another routine for values alone
            assert (t.shape, t.dtype, t.device) == (y.shape, y.dtype, y.device)
        if differences:
            ends = [several(function(*(xp.asarray(p + s * STEP * d) for p, d in zip(points, ds)))) for s in (1, -1)]
            for t, ahead, behind in zip(slopes, *ends):
                close(values(t), (values(ahead) - values(behind)) / (2 * STEP), 2e-7 if order == 1 else 1e-6)
        leaves = [xp.tensor(p, device=device, requires_grad=True) for p in points]
        for y, t in zip(several(function(*leaves)), slopes):
            w = xp.asarray(numbers(y.shape, 7.0, values(y).dtype), device=device)
            pulled = grad(y, leaves, w, allow_unused=True, retain_graph=True) if y.requires_grad else [None] * len(leaves)
            expected = sum(inner(g, d) for g, d in zip(pulled, map(xp.asarray, ds)) if g is not None)
            assert math.isclose(inner(w, t), expected, rel_tol=1e-9, abs_tol=1e-9 * (1 + np.sum(np.abs(values(t)))))
    if order > 1:
        check_second(function, points, directions, device)


def check_second(function: Function, points: Sequence[np.ndarray], directions: Sequence[np.ndarray], device: str) -> None:
    """The Hessian times the directions: reverse over reverse, forward over reverse, reverse over forward, forward over forward."""
    ds = tuple(xp.asarray(d, device=device) for d in directions)

    def leaves() -> tuple[Any, ...]:
        return tuple(xp.tensor(p, device=device, requires_grad=True) for p in points)

    def dense(found: Sequence[Any]) -> list[Any]:
        return [np.zeros_like(p) if g is None else values(g) for g, p in zip(found, points)]

    def scalar(*xs: Any) -> Any:
        return loss(function(*xs))

    xs = leaves()
    first = grad(scalar(*xs), xs, create_graph=True, allow_unused=True)
    along = sum((xp.real(xp.sum(xp.conj(d) * g)) if g.dtype.is_complex else xp.sum(d * g)) for d, g in zip(ds, first) if g is not None)
    live = isinstance(along, xp.Tensor) and along.requires_grad
    expected = dense(grad(along, xs, allow_unused=True) if live else [None] * len(xs))

    with fw.dual_level():
        duals = [fw.make_dual(x, d) for x, d in zip(leaves(), ds)]
        for create in (False, True):
            found = grad(scalar(*duals), duals, create_graph=create, allow_unused=True)
            assert create or not any(g is not None and g.requires_grad for g in found)
            found = [None if g is None else fw.unpack_dual(g).tangent for g in found]
            for a, b in zip(dense(found), expected):
                close(a, b, 1e-8)

    xs = leaves()
    slope = jvp(scalar, xs, ds)[1]
    found = grad(slope, xs, allow_unused=True) if slope.requires_grad else [None] * len(xs)
    for a, b in zip(dense(found), expected):
        close(a, b, 1e-8)

    twice = jvp(lambda *xs: jvp(scalar, xs, ds)[1], tuple(x.detach() for x in leaves()), ds)[1]
    close(twice.item(), sum(float(np.sum(np.real(np.conj(d) * e))) for d, e in zip(directions, expected)), 1e-8)


# -- every function -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [*((n, "real") for n in elementwise.FUNCTIONS), *((n, "complex") for n in elementwise.COMPLEX)])
def test_elementwise(name: str, kind: str, xpgrad_device: str) -> None:
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(elementwise.FUNCTIONS[name][0])]
    points = elementwise.placed(name, us, np.float64 if kind == "real" else np.complex128)
    check(getattr(xp, name), points, xpgrad_device)
    if len(us) == 2:
        f, scalar = getattr(xp, name), 0.7
        check(lambda a: f(a, scalar), points[:1], xpgrad_device)
        check(lambda a: f(scalar, a), points[1:], xpgrad_device)
        if kind == "complex":
            check(f, [points[0], elementwise.placed(name, us)[1]], xpgrad_device)


@pytest.mark.parametrize("name", elementwise.SPECIAL)
def test_special_arguments(name: str, xpgrad_device: str) -> None:
    function = elementwise.SPECIAL[name]
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: function.__code__.co_argcount]
    points = [elementwise.signed(u) for u in us]
    if name in ("real", "imag"):
        points = [p + 1j * u for p, u in zip(points, us)]
    check(function, points, xpgrad_device)


@pytest.mark.parametrize("name", shapes.ONE)
@pytest.mark.parametrize("kind", ["real", "complex"])
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=4)
def test_shapes(name: str, kind: str, xpgrad_device: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    function = shapes.ONE[name](data.draw, shape, data.draw(st.integers(0, len(shape) - 1)))
    check(function, [numbers(shape, dtype=np.float64 if kind == "real" else np.complex128)], xpgrad_device)


STATISTICS = [(name, kind) for name in statistics.FUNCTIONS for kind in ("real", "complex") if kind == "real" or name in statistics.COMPLEX]


@pytest.mark.parametrize(("name", "kind"), STATISTICS)
@given(problem=statistics.problems(low=2))
@settings(derandomize=True, deadline=None, max_examples=4)
def test_statistics(name: str, kind: str, xpgrad_device: str, problem: Any) -> None:
    at, axis, keep = problem
    at = at if kind == "real" else at + 0.5j * np.flip(at) + 0.1j
    check(lambda x: statistics.FUNCTIONS[name](x, axis, keep), [at], xpgrad_device)


@pytest.mark.parametrize("equation", statistics.EQUATIONS)
def test_einsum(equation: str, xpgrad_device: str) -> None:
    lengths = {"i": 2, "j": 2, "k": 3, "b": 2, "d": 2}
    terms = equation.partition("->")[0].replace("...", "d").split(",")
    points = [numbers(tuple(lengths[c] for c in term), 1.0 + k) for k, term in enumerate(terms)]
    check(lambda *xs: xp.einsum(equation, *xs), points, xpgrad_device)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", linalg.FUNCTIONS)
def test_linear_algebra(name: str, dtype: str, xpgrad_device: str) -> None:
    # NB: of losses of complex factorisations the phases drop out, so the function as a whole is what differences see.
    check(lambda *xs: linalg.FUNCTIONS[name][0](xp.linalg, *xs), linalg.operands(name, dtype), xpgrad_device)


@fft.cases("float64", "complex128")
def test_fourier(name: str, kw: Any, dtype: str, xpgrad_device: str) -> None:
    check(lambda x: getattr(xp.fft, name)(x * x, **kw), [fft.draw((4, 5), dtype)], xpgrad_device)
