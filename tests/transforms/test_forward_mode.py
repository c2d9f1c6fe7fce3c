"""Law: forward mode gives the derivative that reverse mode and finite differences give, for every operation.

The functions and points are those of the tests of the rules; PyTorch's forward mode is a further reference for the functions that it has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings, strategies as st

import xpgrad as xp
from rules import (
    test_elementwise as elementwise,
    test_fft as fft,
    test_linalg as linalg,
    test_shapes as shapes,
    test_statistics as statistics,
)
from support.central_differences import cast_for_device, loosen, loss, numbers, values
from xpgrad._rows.row import ROWS
from xpgrad._transforms.forward import levels
from xpgrad.autograd import forward_ad as fw
from xpgrad.func._forward import jvp

grad = xp.autograd.grad
# PyTorch's forward mode compiles some of its decompositions at first use with an interface that it has deprecated.
pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")]
Function = Callable[..., Any]
STEP = 1e-6


def differentiable_outputs(out: Any) -> tuple[Any, ...]:
    """Return the differentiable outputs as a tuple."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(y for y in outs if y.dtype.differentiable)


def inner(a: Any, b: Any) -> float:
    """Return the real inner product of two Tensors."""
    return float(np.sum(np.real(np.conj(values(a)) * values(b))))


def close(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    scale = 1 + np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def check(function: Function, points: Sequence[np.ndarray], device: str, order: int = 2, differences: bool = True) -> None:
    """Compare tangents, of all operands and of each alone, with differences and reverse mode, and second derivatives in all orders."""
    exact, points = list(points), [cast_for_device(p, device) for p in points]
    directions = [numbers(p.shape, 3.0 + i, p.dtype) for i, p in enumerate(points)]
    xs = [xp.asarray(p, device=device) for p in points]
    equal, alike = loosen(1e-12, device, *exact), loosen(1e-9, device, *exact)
    for chosen in [range(len(points)), *([i] for i in range(len(points)) if len(points) > 1)]:
        ds = [d if i in chosen else np.zeros_like(d) for i, d in enumerate(directions)]

        def part(*some: Any, chosen: Any = chosen) -> Any:
            rest = iter(some)
            return differentiable_outputs(function(*(next(rest) if i in chosen else x for i, x in enumerate(xs))))

        outs, slopes = jvp(part, tuple(xs[i] for i in chosen), tuple(xp.asarray(ds[i], device=device) for i in chosen))
        for y, plain, t in zip(outs, differentiable_outputs(function(*xs)), slopes, strict=True):
            np.testing.assert_allclose(values(y), values(plain), rtol=equal, atol=equal)  # some use another routine for values only
            assert (t.shape, t.dtype, t.device) == (y.shape, y.dtype, y.device)
        if differences:
            wide = [in_double_precision(p) for p in points]
            ends = [
                differentiable_outputs(function(*(xp.asarray(p + s * STEP * d) for p, d in zip(wide, map(in_double_precision, ds)))))
                for s in (1, -1)
            ]
            for t, ahead, behind in zip(slopes, *ends):
                close(values(t), (values(ahead) - values(behind)) / (2 * STEP), loosen(2e-7 if order == 1 else 1e-6, device, *exact))
        leaves = [xp.tensor(p, device=device, requires_grad=True) for p in points]
        for y, t in zip(differentiable_outputs(function(*leaves)), slopes):
            w = xp.asarray(numbers(y.shape, 7.0, values(y).dtype), device=device)
            pulled = grad(y, leaves, w, allow_unused=True, retain_graph=True) if y.requires_grad else [None] * len(leaves)
            expected = sum(inner(g, d) for g, d in zip(pulled, map(xp.asarray, ds)) if g is not None)
            assert math.isclose(inner(w, t), expected, rel_tol=alike, abs_tol=alike * (1 + np.sum(np.abs(values(t)))))
    if order > 1:
        check_second(function, points, directions, device, loosen(1e-8, device, *exact))


def in_double_precision(p: np.ndarray) -> np.ndarray:
    """Return an array in double precision, in which differences are computed."""
    return p.astype(np.complex128 if p.dtype.kind == "c" else np.float64) if p.dtype.kind in "fc" else p


def check_second(
    function: Function, points: Sequence[np.ndarray], directions: Sequence[np.ndarray], device: str, tolerance: float = 1e-8
) -> None:
    """Compare the product of the Hessian and the directions in all four combinations of reverse and forward mode."""
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
                close(a, b, tolerance)

    xs = leaves()
    slope = jvp(scalar, xs, ds)[1]
    found = grad(slope, xs, allow_unused=True) if slope.requires_grad else [None] * len(xs)
    for a, b in zip(dense(found), expected):
        close(a, b, tolerance)

    twice = jvp(lambda *xs: jvp(scalar, xs, ds)[1], tuple(x.detach() for x in leaves()), ds)[1]
    close(twice.item(), sum(float(np.sum(np.real(np.conj(d) * e))) for d, e in zip(directions, expected)), tolerance)


# -- every function -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [*((n, "real") for n in elementwise.FUNCTIONS), *((n, "complex") for n in elementwise.COMPLEX)])
def test_elementwise(name: str, kind: str, xpgrad_device: str) -> None:
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(elementwise.FUNCTIONS[name][0])]
    points = elementwise.map_to_domains(name, us, np.float64 if kind == "real" else np.complex128)
    check(getattr(xp, name), points, xpgrad_device)
    if len(us) == 2:
        f, scalar = getattr(xp, name), 0.7
        check(lambda a: f(a, scalar), points[:1], xpgrad_device)
        check(lambda a: f(scalar, a), points[1:], xpgrad_device)
        if kind == "complex":
            check(f, [points[0], elementwise.map_to_domains(name, us)[1]], xpgrad_device)


@pytest.mark.parametrize("name", elementwise.SPECIAL)
def test_special_arguments(name: str, xpgrad_device: str) -> None:
    function = elementwise.SPECIAL[name]
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: function.__code__.co_argcount]
    points = [elementwise.signed(u) for u in us]
    if name in ("real", "imag"):
        points = [p + 1j * u for p, u in zip(points, us)]
    check(function, points, xpgrad_device)


@pytest.mark.slow(one_in=20)
@pytest.mark.parametrize("name", shapes.ONE)
@pytest.mark.parametrize("kind", ["real", "complex"])
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=4)
def test_shapes(name: str, kind: str, xpgrad_device: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    function = shapes.ONE[name](data.draw, shape, data.draw(st.integers(0, len(shape) - 1)))
    check(function, [numbers(shape, dtype=np.float64 if kind == "real" else np.complex128)], xpgrad_device)


STATISTICS = [(name, kind) for name in statistics.FUNCTIONS for kind in ("real", "complex") if kind == "real" or name in statistics.COMPLEX]


@pytest.mark.slow(one_in=11)
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


@pytest.mark.slow(one_in=13)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", linalg.FUNCTIONS)
def test_linear_algebra(name: str, dtype: str, xpgrad_device: str) -> None:
    # NB: the phases of complex factorisations cancel in the loss, so differences are taken of the whole function.
    check(lambda *xs: linalg.FUNCTIONS[name][0](xp.linalg, *xs), linalg.operands(name, dtype), xpgrad_device)


@fft.cases("float64", "complex128")
def test_fourier(name: str, kw: Any, dtype: str, xpgrad_device: str) -> None:
    check(lambda x: getattr(xp.fft, name)(x * x, **kw), [fft.draw((4, 5), dtype)], xpgrad_device)


#: Further public functions and keys, for the rows that the other tables do not reach.
MORE: dict[str, tuple[Function, list[np.ndarray]]] = {
    "advanced key": (lambda x: x[[0, 2, 0]] * x[1], [numbers((3, 2))]),
    "mask": (lambda x: x[x > 0] ** 2, [numbers((3, 2))]),
    "written": (lambda x, v: _write(x * 1, v), [numbers((3, 2)), numbers((2,), 2.0)]),
    "written at indices": (lambda x, v: _write(x * 1, v, [0, 2, 0]), [numbers((3,)), numbers((3,), 2.0)]),
    "written into a view": (lambda x, v: _write_through_view(x * 1, v), [numbers((3, 2)), numbers((2,), 2.0)]),
    "clip by Tensors": (lambda x, a, b: xp.clip(x, a, b), [numbers((4,)), numbers((4,), 2.0) - 1.2, numbers((4,), 3.0) + 1.1]),
    "the norm of order 0": (lambda x: xp.linalg.vector_norm(x, ord=0) * xp.sum(x * x), [numbers((3,))]),
    "the sign of a determinant": (lambda x: xp.linalg.slogdet(x)[0], [numbers((2, 2), dtype=np.complex128)]),
    "matrix and vector": (lambda a, x: a @ x, [numbers((3, 2)), numbers((2,), 2.0)]),
    "two vectors": (lambda x, y: x @ y, [numbers((3,)), numbers((3,), 2.0)]),
    "two complex vectors": (lambda x, y: x @ y, [numbers((3,), dtype=np.complex128), numbers((3,), 2.0, np.complex128)]),
    "complex matrix and vector": (lambda a, x: a @ x, [numbers((3, 2), dtype=np.complex128), numbers((2,), 2.0, np.complex128)]),
    "contiguous": (lambda x: x.T.contiguous() * x.T, [numbers((2, 3))]),
    "index_add": (
        lambda x, v: (x * 1).index_add_(0, xp.asarray([1, 1], dtype="int64", device=x.device), v), [numbers((3,)), numbers((2,))],
    ),
}  # fmt: skip


def _write(x: Any, value: Any, key: Any = 1) -> Any:
    x[key] = value
    return x * x


def _write_through_view(x: Any, value: Any) -> Any:
    x[1:].T[:, 1] *= value
    return x * x


@pytest.mark.parametrize("name", MORE)
def test_more_functions(name: str, xpgrad_device: str) -> None:
    function, points = MORE[name]
    if any(map(math.isnan, function(*(xp.asarray(p, device=xpgrad_device) for p in points)).shape)):
        check(lambda *xs: xp.sum(xp.sin(function(*xs))), points, xpgrad_device)  # its length depends on values
    else:
        check(function, points, xpgrad_device)


def samples() -> Iterator[tuple[Function, list[np.ndarray]]]:
    """Yield one call of each function of all tables."""
    yield from MORE.values()
    for name, (domains, _) in elementwise.FUNCTIONS.items():
        yield getattr(xp, name), elementwise.map_to_domains(name, [np.asarray([0.11, 0.62]), np.asarray([[0.31]])][: len(domains)])
    yield xp.sign, [numbers((2,), dtype=np.complex128)]
    for function in elementwise.SPECIAL.values():
        yield function, [numbers((2,)) for _ in range(function.__code__.co_argcount)]
    for make in shapes.ONE.values():
        yield make(lambda strategy: find(strategy, lambda _: True), (2, 3), 0), [numbers((2, 3))]
    for function in statistics.FUNCTIONS.values():
        yield (lambda x, f=function: f(x, 0, True)), [numbers((2, 3))]
    for name, (function, *_) in linalg.FUNCTIONS.items():
        yield (lambda *xs, f=function: f(xp.linalg, *xs)), linalg.operands(name, "float64")
    yield (lambda x: abs(np.linalg.eigh(x + x.mT, "U")[1])), [numbers((3, 3))]
    for name, kw in fft.CALLS:
        yield (lambda x, name=name, kw=kw: getattr(xp.fft, name)(x, **kw)), [fft.draw((4, 5), "float64")]


def test_every_row_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of the tables above, with their second derivatives, use the tangent of each differentiable row."""
    reached: set[str] = set()
    own = levels.jvp_of

    def recorder(row: Any, *args: Any) -> Any:
        reached.add(row.name)
        return own(row, *args)

    monkeypatch.setattr(levels, "jvp_of", recorder)
    for function, points in samples():
        check(function, points, "numpy", differences=False)
    # NB: the rows of `xpgrad.scipy`, which another test may have loaded, have separate tests.
    rows = {name for name, row in ROWS.items() if row.differentiable and not name.startswith("special_")}
    # Not reached are the history of a write, which has no values; the layout of gradients and of tangents; formulas of the third
    # derivatives of determinants and nuclear norms; and what `scipy.linalg.polar` calls, which has separate tests.
    assert rows - reached - {"put_through", "clone_laid_out", "cofactors_along", "solve_lyapunov", "solve_stein", "polar_factors"} == set()


# -- PyTorch --------------------------------------------------------------------------------------------------------------


def agrees(function: Function, theirs: Function, points: Sequence[np.ndarray], torch: Any, tolerance: float = 1e-9) -> None:
    """Assert that the tangents are PyTorch's, if it has them."""
    directions = [numbers(p.shape, 3.0 + i, p.dtype) for i, p in enumerate(points)]
    try:
        _, expected = torch.func.jvp(theirs, tuple(map(torch.tensor, points)), tuple(map(torch.tensor, directions)))
    except (NotImplementedError, RuntimeError) as exc:
        assert "forward AD" in str(exc) or "not implemented" in str(exc)  # noqa: PT017 (which functions it lacks does not matter)
        return
    _, found = jvp(function, tuple(map(xp.asarray, points)), tuple(map(xp.asarray, directions)))
    for a, b in zip(differentiable_outputs(found), expected if isinstance(expected, (tuple, list)) else (expected,), strict=True):
        expected_values = b.resolve_conj().resolve_neg().numpy()
        scale = 1 + np.nanmax(np.abs(np.where(np.isfinite(expected_values), expected_values, 0)), initial=0)
        np.testing.assert_allclose(values(a), expected_values, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", sorted(set(elementwise.FUNCTIONS) - elementwise.NOT_IN_TORCH))
def test_elementwise_functions_agree_with_pytorch(name: str) -> None:
    torch, theirs = elementwise.pytorch_function(name)
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(elementwise.FUNCTIONS[name][0])]
    theirs = torch.sgn if name == "sign" else theirs
    for dtype in (np.float64, np.complex128)[: 1 + (name in elementwise.COMPLEX)]:
        agrees(getattr(xp, name), theirs, elementwise.map_to_domains(name, us, dtype), torch)


@pytest.mark.parametrize("name", sorted(set(elementwise.FUNCTIONS) - elementwise.NOT_IN_TORCH - {"hypot"}))
def test_tangents_at_kinks_and_poles_are_the_gradients(name: str) -> None:
    """At points without a derivative, forward mode gives the value that reverse mode gives, elementwise, with nan and inf."""
    f, count = getattr(xp, name), len(elementwise.FUNCTIONS[name][0])
    grid = np.asarray(list(itertools.product(elementwise.SPECIAL_POINTS, repeat=count))).T
    with np.errstate(all="ignore"):
        for i in range(count):
            leaves = [xp.tensor(g, requires_grad=k == i) for k, g in enumerate(grid)]
            y = f(*leaves)
            (g,) = grad(y, leaves[i], xp.ones_like(y.detach()))
            rest = [x.detach() for x in leaves]
            ones = xp.ones_like(rest[i])
            _, t = jvp(lambda x, i=i, rest=rest: f(*rest[:i], x, *rest[i + 1 :]), (rest[i],), (ones,))
            np.testing.assert_array_equal(values(t), values(g))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", linalg.FUNCTIONS)
def test_linear_algebra_agrees_with_pytorch(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    ours, last = linalg.FUNCTIONS[name][0], linalg.FUNCTIONS[name][-1]
    theirs = last if callable(last) else ours
    agrees(lambda *xs: ours(xp.linalg, *xs), lambda *xs: theirs(torch.linalg, *xs), linalg.operands(name, dtype), torch, 1e-8)


@fft.cases("float64", "complex128")
def test_fourier_transforms_agree_with_pytorch(name: str, kw: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    options = {{"axis": "dim", "axes": "dim"}.get(k, k): v for k, v in kw.items()}
    agrees(lambda x: getattr(xp.fft, name)(x, **kw), lambda x: getattr(torch.fft, name)(x, **options), [fft.draw((4, 5), dtype)], torch)


@pytest.mark.parametrize("function", [xp.max, xp.min])
def test_ties_of_extrema_share_the_tangent(function: Function) -> None:
    x, t = xp.asarray([[2.0, 1.0, 2.0], [1.0, 1.0, 2.0]]), xp.asarray([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    _, slope = jvp(lambda x: function(x, axis=1), (x,), (t,))
    assert slope.tolist() == ([2.5, 32.0] if function is xp.max else [2.0, 12.0])


def test_tangents_of_products_and_deviations_are_exact_where_elements_are_zero_or_equal() -> None:
    t = xp.asarray([1.0, 2.0, 4.0])
    assert jvp(xp.prod, (xp.asarray([2.0, 0.0, 3.0]),), (t,))[1].item() == 12.0
    assert jvp(xp.prod, (xp.asarray([0.0, 0.0, 3.0]),), (t,))[1].item() == 0.0
    assert jvp(xp.cumulative_prod, (xp.asarray([2.0, 0.0, 3.0]),), (t,))[1].tolist() == [1.0, 4.0, 12.0]
    assert jvp(xp.std, (xp.asarray([0.7, 0.7, 0.7]),), (t,))[1].item() == 0.0
    assert jvp(xp.abs, (xp.asarray([0.0]),), (t[:1],))[1].item() == 0.0
