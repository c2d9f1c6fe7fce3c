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
from hypothesis import find, given, settings, strategies as st

import xpgrad as xp
from rules import (
    test_elementwise as elementwise,
    test_fft as fft,
    test_linalg as linalg,
    test_shapes as shapes,
    test_statistics as statistics,
)
from support.central_differences import loss, numbers, values
from xpgrad._modes import state
from xpgrad._rows.row import ROWS
from xpgrad._transforms.forward import levels
from xpgrad.autograd import forward_ad as fw
from xpgrad.errors import GradcheckError
from xpgrad.func._forward import jvp, linearize

grad = xp.autograd.grad
# PyTorch's forward mode compiles some of its decompositions at first use, by what it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
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


#: Further functions of the public namespace, and keys, whose rows the tables above do not reach.
MORE: dict[str, tuple[Function, list[np.ndarray]]] = {
    "advanced key": (lambda x: x[[0, 2, 0]] * x[1], [numbers((3, 2))]),
    "mask": (lambda x: x[x > 0] ** 2, [numbers((3, 2))]),
    "written": (lambda x, v: _written(x * 1, v), [numbers((3, 2)), numbers((2,), 2.0)]),
    "written at indices": (lambda x, v: _written(x * 1, v, [0, 2, 0]), [numbers((3,)), numbers((3,), 2.0)]),
    "written into a view": (lambda x, v: _written_through(x * 1, v), [numbers((3, 2)), numbers((2,), 2.0)]),
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


def _written(x: Any, value: Any, key: Any = 1) -> Any:
    x[key] = value
    return x * x


def _written_through(x: Any, value: Any) -> Any:
    x[1:].T[:, 1] *= value
    return x * x


@pytest.mark.parametrize("name", MORE)
def test_more_functions(name: str, xpgrad_device: str) -> None:
    function, points = MORE[name]
    if any(map(math.isnan, function(*(xp.asarray(p, device=xpgrad_device) for p in points)).shape)):
        check(lambda *xs: xp.sum(xp.sin(function(*xs))), points, xpgrad_device)  # of a length that only the computation tells
    else:
        check(function, points, xpgrad_device)


def samples() -> Iterator[tuple[Function, list[np.ndarray]]]:
    """One call of each function of all tables."""
    yield from MORE.values()
    for name, (domains, _) in elementwise.FUNCTIONS.items():
        yield getattr(xp, name), elementwise.placed(name, [np.asarray([0.11, 0.62]), np.asarray([[0.31]])][: len(domains)])
    yield xp.sign, [numbers((2,), dtype=np.complex128)]
    for function in elementwise.SPECIAL.values():
        yield function, [numbers((2,)) for _ in range(function.__code__.co_argcount)]
    for make in shapes.ONE.values():
        yield make(lambda strategy: find(strategy, lambda _: True), (2, 3), 0), [numbers((2, 3))]
    for function in statistics.FUNCTIONS.values():
        yield (lambda x, f=function: f(x, 0, True)), [numbers((2, 3))]
    for name, (function, *_) in linalg.FUNCTIONS.items():
        yield (lambda *xs, f=function: f(xp.linalg, *xs)), linalg.operands(name, "float64")
    for name, kw in fft.CALLS:
        yield (lambda x, name=name, kw=kw: getattr(xp.fft, name)(x, **kw)), [fft.draw((4, 5), "float64")]


def test_every_row_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tangents pass each differentiable row in the tables above, first and second derivatives taken together."""
    reached: set[str] = set()
    own = levels.jvp_of

    def recorder(row: Any, *args: Any) -> Any:
        reached.add(row.name)
        return own(row, *args)

    monkeypatch.setattr(levels, "jvp_of", recorder)
    for function, points in samples():
        check(function, points, "numpy", differences=False)
    rows = {name for name, row in ROWS.items() if row.differentiable}
    # The history of a write, which has no values of its own; the layout of gradients and of tangents; and the third derivative of a
    # determinant's second one.
    assert rows - reached - {"put_through", "clone_laid_out", "cofactors_along"} == set()


# -- PyTorch --------------------------------------------------------------------------------------------------------------


def agrees(function: Function, theirs: Function, points: Sequence[np.ndarray], torch: Any, tolerance: float = 1e-9) -> None:
    """The tangents are PyTorch's."""
    directions = [numbers(p.shape, 3.0 + i, p.dtype) for i, p in enumerate(points)]
    try:
        _, expected = torch.func.jvp(theirs, tuple(map(torch.tensor, points)), tuple(map(torch.tensor, directions)))
    except (NotImplementedError, RuntimeError) as exc:
        assert "forward AD" in str(exc) or "not implemented" in str(exc)  # noqa: PT017 (which functions it lacks is its affair)
        return
    _, found = jvp(function, tuple(map(xp.asarray, points)), tuple(map(xp.asarray, directions)))
    for a, b in zip(several(found), expected if isinstance(expected, (tuple, list)) else (expected,), strict=True):
        expected_values = b.resolve_conj().resolve_neg().numpy()
        scale = 1 + np.nanmax(np.abs(np.where(np.isfinite(expected_values), expected_values, 0)), initial=0)
        np.testing.assert_allclose(values(a), expected_values, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", sorted(set(elementwise.FUNCTIONS) - elementwise.NOT_IN_TORCH))
def test_elementwise_functions_agree_with_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(elementwise.FUNCTIONS[name][0])]
    theirs = torch.sgn if name == "sign" else getattr(torch, elementwise.TORCH_NAMES.get(name, name))
    for dtype in (np.float64, np.complex128)[: 1 + (name in elementwise.COMPLEX)]:
        agrees(getattr(xp, name), theirs, elementwise.placed(name, us, dtype), torch)


@pytest.mark.parametrize("name", sorted(set(elementwise.FUNCTIONS) - elementwise.NOT_IN_TORCH - {"hypot"}))
def test_tangents_at_kinks_and_poles_are_the_gradients(name: str) -> None:
    """Where there is no derivative, forward mode takes the value that reverse mode takes; elementwise, so that nan and inf are seen too."""
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


# -- nesting --------------------------------------------------------------------------------------------------------------


def d(function: Function) -> Function:
    """The derivative of a function of one number."""
    return lambda x: jvp(function, (x,), (xp.ones_like(x),))[1]


def r(function: Function) -> Function:
    """The same by reverse mode."""

    def slope(x: Any) -> Any:
        with xp.enable_grad():
            y = x[...]
            if not y.requires_grad:
                y.requires_grad_()
            z = function(y)
            return grad(z, y, create_graph=True)[0] if z.requires_grad else xp.zeros_like(x)

    return slope


#: Functions whose inner derivatives are taken at what the outer ones differentiate, with their derivative at 2.
NESTED: list[tuple[Callable[[Function, Function], Function], float]] = [
    (lambda a, b: lambda x: x * b(lambda y: x + y)(xp.ones_like(x)), 1.0),
    (lambda a, b: lambda x: x * b(lambda y: x * y * y)(x), 24.0),  # d/dx 2 x^3
    (lambda a, b: lambda x: b(lambda y: x * a(lambda z: x * y * z)(y))(x), 4.0),  # d/dx x^2
    (lambda a, b: lambda x: b(lambda y: y * a(lambda z: x * z * z * y)(y))(x), 72.0),  # d/dx 6 x^3
    (lambda a, b: lambda x: b(lambda y: a(lambda z: y * z)(y) * x)(xp.ones_like(x) * 3), 1.0),
    (lambda a, b: lambda x: b(a(lambda y: xp.exp(x * y)))(xp.zeros_like(x)), 4.0),  # d/dx x^2
]


@pytest.mark.parametrize("order", list(itertools.product("dr", repeat=3)), ids="".join)
@pytest.mark.parametrize("case", range(len(NESTED)))
def test_perturbations_are_not_confused(case: int, order: tuple[str, ...], xpgrad_device: str) -> None:
    outer, one, two = ({"d": d, "r": r}[k] for k in order)
    make, expected = NESTED[case]
    x = xp.tensor(2.0, dtype="float64", device=xpgrad_device)
    assert math.isclose(outer(make(one, two))(x).item(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("order", [o for n in (1, 2, 3, 4) for o in itertools.product("dr", repeat=n)], ids="".join)
def test_derivatives_of_any_order_in_any_mixture(order: tuple[str, ...], xpgrad_device: str) -> None:
    f: Function = lambda x: xp.sin(2 * x) * xp.exp(-x)  # noqa: E731 (it is wrapped below)
    for k in order:
        f = {"d": d, "r": r}[k](f)
    x = xp.tensor(0.7, dtype="float64", device=xpgrad_device)
    expected = (complex(-1, 2) ** len(order) * np.exp(complex(-1, 2) * 0.7)).imag
    assert math.isclose(f(x).item(), expected, rel_tol=1e-11)


def test_levels_of_forward_ad_and_func_nest() -> None:
    x, t = xp.tensor(2.0), xp.tensor(1.0)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        slope = jvp(lambda y: y**3 * dual, (dual,), (t,))[1]  # 3 x^3
        assert fw.unpack_dual(slope).tangent.item() == 36.0
        assert fw.unpack_dual(slope).primal.item() == 24.0

    def inner(y: Any) -> Any:
        with fw.dual_level():
            return fw.unpack_dual(fw.make_dual(y, xp.ones_like(y)) ** 3).tangent

    assert d(inner)(x).item() == 12.0


def test_a_tangent_is_gone_after_its_level() -> None:
    kept: list[Any] = []
    x = xp.tensor(2.0)

    def keep(y: Any) -> Any:
        kept.append(y * y)
        return kept[0]

    jvp(keep, (x,), (xp.ones_like(x),))
    _, slope = jvp(lambda y: kept[0] * y, (x,), (xp.ones_like(x),))
    assert slope.item() == 4.0


def test_tangents_of_dead_tensors_are_dropped() -> None:
    with levels.new_level() as level:
        y = level.dual(xp.tensor(1.0), xp.tensor(1.0))
        leaf = level.dual(xp.tensor(1.0, requires_grad=True), xp.tensor(1.0))
        for _ in range(100):
            y = y * 1.5
            _ = leaf * 2.0
        assert len(level._tensors) <= 3
        assert len(level._nodes) <= 3
    assert not level.active


def test_inference_mode_stops_it_and_no_grad_does_not() -> None:
    x, t = xp.tensor(2.0), xp.tensor(1.0)

    def inside(mode: Any) -> Function:
        def function(y: Any) -> Any:
            with mode():
                return (y * y).clone()

        return function

    assert jvp(inside(xp.no_grad), (x,), (t,))[1].item() == 4.0
    assert jvp(inside(xp.inference_mode), (x,), (t,))[1].item() == 0.0
    with xp.inference_mode():  # as PyTorch: around it, it makes no difference
        y = xp.tensor(3.0)
        assert jvp(lambda y: y * y, (y,), (xp.ones_like(y),))[1].item() == 6.0
        assert linearize(lambda y: y * y, y)[1](xp.ones_like(y)).item() == 6.0


# -- jvp and linearize ------------------------------------------------------------------------------------------------------


def test_trees(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], device=xpgrad_device)

    def function(tree: Any, y: Any) -> Any:
        return {"product": tree["a"][0] * y, "rest": [tree["b"] ** 2]}

    arguments = ({"a": (x,), "b": x}, x)
    direction = ({"a": (x,), "b": 2 * x}, 3 * x)
    result, tangent = linearize(function, *arguments)
    for out, slope in (jvp(function, arguments, direction), (result, tangent(*direction))):
        assert values(out["product"]).tolist() == [1.0, 4.0]
        assert values(slope["product"]).tolist() == [4.0, 16.0]
        assert values(slope["rest"][0]).tolist() == [4.0, 16.0]
    out, slope, aux = jvp(lambda x: (x * x, ("text", x)), (x,), (x,), has_aux=True)
    assert values(slope).tolist() == [2.0, 8.0]
    assert aux[0] == "text"
    assert values(aux[1]).tolist() == [1.0, 2.0]


def test_linearize_calls_the_function_once_and_is_linear() -> None:
    calls: list[int] = []
    w = xp.tensor([3.0, 4.0], requires_grad=True)

    def function(x: Any) -> Any:
        calls.append(1)
        return xp.sin(x) * w, xp.ones(3), xp.argmax(x)

    x = xp.tensor([1.0, 2.0])
    out, tangent = linearize(function, x)
    np.testing.assert_allclose(values(out[0]), np.sin([1.0, 2.0]) * [3.0, 4.0], rtol=1e-12)
    for k in (1.0, 2.0):
        t = xp.asarray([k, -k])
        first, none, index = tangent(t)
        np.testing.assert_allclose(values(first), np.cos([1.0, 2.0]) * [3.0, 4.0] * values(t), rtol=1e-12)
        assert none.tolist() == [0.0] * 3
        assert index.item() == 0
        (g,) = grad(xp.sum(first), w, retain_graph=True)  # as with jvp; in PyTorch 2.13 it is lost
        np.testing.assert_allclose(values(g), np.cos([1.0, 2.0]) * values(t), rtol=1e-12)
        with xp.no_grad():
            assert not tangent(t)[0].requires_grad
    assert calls == [1]
    assert not linearize(xp.sin, x)[1](x).requires_grad
    t = xp.tensor([1.0, 2.0], requires_grad=True)
    (g,) = grad(xp.sum(tangent(t)[0]), t)
    np.testing.assert_allclose(values(g), np.cos([1.0, 2.0]) * [3.0, 4.0], rtol=1e-12)
    assert values(d(lambda s: tangent(s * t.detach())[0])(xp.tensor(1.0))).shape == (2,)
    with xp.no_grad():
        assert linearize(lambda x: x * x, x)[1](x).tolist() == [2.0, 8.0]


def test_forward_mode_goes_through_no_grad() -> None:
    """As in PyTorch, also where tangents are transposed; their derivatives stop there."""
    w = xp.tensor([3.0, 4.0], requires_grad=True)

    def function(x: Any) -> Any:
        with xp.no_grad():
            inner = xp.sin(x) * w
            flat = xp.broadcast_to(x, (2, 2))
        return inner + x * w, flat * 1.0

    x, t = xp.tensor([0.3, 1.2], requires_grad=True), xp.asarray([1.0, -2.0])
    expected = (np.cos([0.3, 1.2]) + 1.0) * [3.0, -8.0]
    for slope, view in (jvp(function, (x,), (t,))[1], linearize(function, x)[1](t)):
        np.testing.assert_allclose(values(slope), expected, rtol=1e-12)
        np.testing.assert_allclose(values(view), [[1.0, -2.0]] * 2, rtol=1e-12)
        found = grad(xp.sum(slope), (x, w), allow_unused=True)
        assert found[0] is None or values(found[0]).tolist() == [0.0, 0.0]
        assert values(found[1]).tolist() == [1.0, -2.0]
    d = x * 0.5
    view = jvp(lambda x: function(x)[1], (x,), (d,))[1]
    assert not view.requires_grad  # nothing was recorded when the view was made


ERRORS: list[tuple[Function, type[Exception], str]] = [
    (lambda x, t: jvp(xp.sin, x, (t,)), RuntimeError, "Expected primals to be a tuple"),
    (lambda x, t: jvp(xp.sin, (x,), (t, t)), RuntimeError, "same python structure"),
    (lambda x, t: jvp(xp.sin, (x,), [t]), RuntimeError, "same python structure"),
    (lambda x, t: jvp(xp.sin, (x,), (xp.ones(3),)), RuntimeError, "different size than that of the original Tensor"),
    (lambda x, t: jvp(lambda: x, (), ()), RuntimeError, "at least one Tensor"),
    (lambda x, t: jvp(xp.sin, (1.0,), (1.0,)), RuntimeError, "Expected primals to only contain Tensors"),
    (lambda x, t: jvp(lambda x: (x, 3), (x,), (t,)), RuntimeError, "return only tensors"),
    (lambda x, t: jvp(lambda x: None, (x,), (t,)), RuntimeError, "non-empty output"),
    (lambda x, t: jvp(xp.sin, (x,), (t,), has_aux=True), RuntimeError, "(output, aux)"),
    (lambda x, t: jvp(lambda x: t, (x,), (t,), strict=True), RuntimeError, "independent of the inputs"),
    (lambda x, t: jvp(xp.sin, (xp.asarray([1, 2]),), (t,)), ValueError, "Expected primal to be floating point or complex"),
    (lambda x, t: jvp(xp.sin, (x,), (xp.asarray([1, 2]),)), ValueError, "Expected tangent to be floating point or complex"),
    (lambda x, t: linearize(xp.sin, 3.0), RuntimeError, "Tensors"),
    (lambda x, t: linearize(xp.sin, x)[1](xp.ones(3)), RuntimeError, "doesn't match the shape"),
    (lambda x, t: linearize(xp.sin, x)[1](xp.astype(t, "float32")), RuntimeError, "doesn't match the dtype"),
    (lambda x, t: linearize(xp.sin, x)[1](t, t), RuntimeError, "same argspec"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case: int) -> None:
    call, error, words = ERRORS[case]
    with pytest.raises(error) as info:
        call(xp.asarray([1.0, 2.0]), xp.asarray([1.0, 0.0]))
    assert words in str(info.value)
    assert jvp(xp.sin, (xp.zeros(()),), (xp.ones(()),))[1].item() == 1.0  # nothing is left behind
    mode = state.current()
    assert mode is None


# -- writes in place --------------------------------------------------------------------------------------------------------

#: What a step of a program does: to one of its Tensors, with another one of the same shape (both libraries have these methods).
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "multiply": lambda a, b: a.mul_(b.clone()),
    "add": lambda a, b: a.add_(b.clone(), alpha=0.5),
    "scale": lambda a, b: a.mul_(1.25),
    "subtract": lambda a, b: a.sub_(0.3),
    "divide": lambda a, b: a.div_(b * b + 1.5),
    "square": lambda a, b: a.pow_(2),
    "sin": lambda a, b: a.sin_(),
    "exp": lambda a, b: a.neg_().exp_(),
    "copy": lambda a, b: a.copy_(b * 0.7),
    "fill": lambda a, b: a.fill_(0.4),
    "zero": lambda a, b: a.zero_(),
    "set": lambda a, b: a.__setitem__(..., b * b),
    "set a part": lambda a, b: a.__setitem__((slice(None), 0), b[:, 1] * 2),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x[...], "rows": lambda x: x[1:3], "columns": lambda x: x[:, :2], "turned": lambda x: x.T[1:3].T,
    "reshaped": lambda x: x.reshape((6, 2))[2:5],
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Views to take and steps to do, in some order; a step may be unrecorded."""
    lines: list[tuple[Any, ...]] = []
    count = 1
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.integers(0, 2)) == 0:
            lines.append(("view", draw(st.sampled_from(sorted(VIEWS))), 0))
            count += 1
        else:
            lines.append(("step", draw(st.sampled_from(sorted(STEPS))), draw(st.integers(0, count - 1)), draw(st.integers(0, 4)) == 0))
    return lines


def run(lines: Any, x: Any, w: Any, no_grad: Any) -> list[Any]:
    """The Tensors of a program: a base, and views of it; `w` is another operand."""
    tensors = [x * 1]
    for kind, name, k, *rest in lines:
        if kind == "view":
            tensors.append(VIEWS[name](tensors[k]))
            continue
        a = tensors[k]
        b = w[: a.shape[0], : a.shape[1]]
        if rest[0]:
            with no_grad():
                STEPS[name](a, b)
        else:
            STEPS[name](a, b)
    return tensors


POINT, OTHER = numbers((4, 3)) * 0.8, numbers((4, 3), 2.0)
DIRECTION, SECOND = numbers((4, 3), 3.0), numbers((4, 3), 4.0)


@given(lines=programs())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_programs_that_write_in_place(lines: Any, xpgrad_device: str) -> None:
    """The tangents of the base and of all views are those of differences, whether or not the program is recorded."""
    arrays = [xp.asarray(a, device=xpgrad_device) for a in (POINT, OTHER, DIRECTION, SECOND)]

    def values_at(s: float) -> list[np.ndarray]:
        return [np.array(values(t)) for t in run(lines, xp.asarray(POINT + s * DIRECTION), xp.asarray(OTHER + s * SECOND), xp.no_grad)]

    expected = [(a - b) / (2 * STEP) for a, b in zip(values_at(STEP), values_at(-STEP))]
    unrecorded = any(line[0] == "step" and line[-1] for line in lines)
    for requires in (False, True):
        if requires and unrecorded:
            continue  # a history with holes has no gradient; such programs run without one
        x, w, dx, dw = (a.clone().requires_grad_(requires) for a in arrays)
        with fw.dual_level():
            tensors = run(lines, fw.make_dual(x, dx), fw.make_dual(w, dw), xp.no_grad)
            found = [fw.unpack_dual(t).tangent for t in tensors]
            for t, e in zip(found, expected):
                close(np.zeros_like(e) if t is None else values(t), e, 1e-7)
            if not requires:
                continue
            # And a tangent can be differentiated: by the direction it gives the vjp, by the point what forward over reverse gives.
            total = loss(tensors)
            pulled = grad(total, [x, w], retain_graph=True, allow_unused=True)
            along = fw.unpack_dual(total).tangent
            if along is None or not along.requires_grad:
                continue
            back = grad(along, [dx, dw, x, w], allow_unused=True)
            over = [None if g is None else fw.unpack_dual(g).tangent for g in pulled]
            for a, b in zip(back, [*pulled, *over]):
                zero = np.zeros((4, 3))
                close(zero if a is None else values(a), zero if b is None else values(b), 1e-9)


@given(lines=programs())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_programs_that_write_in_place_agree_with_pytorch(lines: Any) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    import torch.autograd.forward_ad as theirs

    with fw.dual_level():
        duals = [fw.make_dual(xp.asarray(a), xp.asarray(t)) for a, t in ((POINT, DIRECTION), (OTHER, SECOND))]
        found = [fw.unpack_dual(t).tangent for t in run(lines, *duals, xp.no_grad)]
    with theirs.dual_level():
        duals = [theirs.make_dual(torch.tensor(a), torch.tensor(t)) for a, t in ((POINT, DIRECTION), (OTHER, SECOND))]
        expected = [theirs.unpack_dual(t).tangent for t in run(lines, *duals, torch.no_grad)]
    for a, b in zip(found, expected):
        close(values(a), b.numpy(), 1e-11)


def test_a_dual_of_a_view_is_written_by_itself(xpgrad_device: str) -> None:
    """The memory is shared with what it was made of, the tangent is not."""
    x, t = (xp.asarray(a, device=xpgrad_device) for a in ([1.0, 2.0, 3.0], [4.0, 5.0]))
    with fw.dual_level():
        base = x * 1
        view = base[1:]
        one = fw.make_dual(view, t)
        one[0] *= 10
        assert values(base).tolist() == [1.0, 20.0, 3.0]
        assert values(fw.unpack_dual(one).tangent).tolist() == [40.0, 5.0]
        assert fw.unpack_dual(base).tangent is None
        assert fw.unpack_dual(view).tangent is None
        assert t.tolist() == [4.0, 5.0]  # the user's own Tensor stays as it is
        base *= 2  # now `one` is stale; its tangent stays its own
        with xp.no_grad():
            assert values(fw.unpack_dual(one * 1).tangent).tolist() == [40.0, 5.0]


def test_what_carries_tangents_along_and_what_drops_them(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], dtype="float32", device=xpgrad_device)
    with fw.dual_level():
        dual_x = fw.make_dual(x, xp.ones_like(x))
        for kept in (dual_x.clone(), dual_x[...], xp.astype(dual_x, "float64"), dual_x.to_device("numpy").to_device(xpgrad_device),
                     xp.asarray(dual_x, copy=True), dual_x.contiguous()):  # fmt: skip
            assert values(fw.unpack_dual(kept).tangent).tolist() == [1.0, 1.0]
            assert fw.unpack_dual(kept).tangent.dtype is kept.dtype
        for dropped in (dual_x.detach(), dual_x.data, xp.tensor(dual_x), xp.astype(dual_x, "int32"), (dual_x * 1).detach_(), dual_x > 0):
            assert fw.unpack_dual(dropped).tangent is None
        y = dual_x * 1
        y.requires_grad_()
        assert fw.unpack_dual(y).tangent is not None
        assert fw.unpack_dual(y * y).tangent is not None
        leaf = fw.make_dual(x, xp.ones_like(x)).requires_grad_()
        leaf.requires_grad_(False)
        assert fw.unpack_dual(leaf).tangent is not None
        assert dual_x.tolist() == [1.0, 2.0]


# -- passes that carry tangents -------------------------------------------------------------------------------------------------


def test_backward_gives_gradients_with_tangents(xpgrad_device: str) -> None:
    x = xp.tensor([1.0, 2.0], device=xpgrad_device, requires_grad=True)
    t = xp.asarray([1.0, -1.0], device=xpgrad_device)
    seen: list[Any] = []
    with levels.new_level() as level:
        y = level.dual(x, t)
        y.retain_grad()
        y.register_hook(lambda g: seen.append(level.tangent(g)))
        xp.sum(y**3).backward()
        assert not x.grad.requires_grad
        first = x.grad
        for total, slope in ((first, level.tangent(first)), (y.grad, level.tangent(y.grad))):
            assert values(total).tolist() == [3.0, 12.0]
            assert values(slope).tolist() == [6.0, -12.0]
        assert values(seen[0]).tolist() == [6.0, -12.0]
        xp.sum(level.dual(x, t) ** 2).backward()
        assert x.grad is first  # in place, as without tangents
        assert values(x.grad).tolist() == [5.0, 16.0]
        assert values(level.tangent(x.grad)).tolist() == [8.0, -14.0]
    assert values(x.grad).tolist() == [5.0, 16.0]


def test_a_pass_inside_of_a_hook_carries_tangents() -> None:
    """It runs on private copies of the nodes, whose saved values have their tangents all the same."""
    x, t = xp.tensor([1.0, 2.0], requires_grad=True), xp.asarray([1.0, 3.0])
    found: list[Any] = []
    with fw.dual_level():
        y = fw.make_dual(x, t)
        z = xp.sum(y**3)
        w = y * 2

        def hook(g: Any) -> None:
            (inside,) = grad(z, y, retain_graph=True)
            found.append((inside, fw.unpack_dual(inside).tangent))

        w.register_hook(hook)
        (g,) = grad(xp.sum(w * y), y)
        assert fw.unpack_dual(g).tangent.tolist() == [4.0, 12.0]
    assert found[0][0].tolist() == [3.0, 12.0]
    assert found[0][1].tolist() == [6.0, 36.0]


def test_the_tangent_of_a_seed_reaches_the_gradient() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = xp.sin(x)
    with fw.dual_level():
        seed = fw.make_dual(xp.asarray([1.0, 1.0]), xp.asarray([2.0, 3.0])).requires_grad_()
        (g,) = grad(y, x, seed)
        assert not g.requires_grad
        np.testing.assert_allclose(values(fw.unpack_dual(g).tangent), np.cos([1.0, 2.0]) * [2.0, 3.0], rtol=1e-12)


def test_outputs_of_which_nobody_holds_the_tensor_keep_their_tangents() -> None:
    """Saved in their node: the eigenvectors, needed for the gradient of the eigenvalues."""
    a = linalg.positive((3, 3))
    direction = linalg.positive((3, 3)) * 0.3
    points = [a, direction]

    def slope(x: Any) -> Any:
        x = x if x.requires_grad else x.requires_grad_()
        return grad(xp.sum(xp.linalg.eigh(x)[0] ** 3), x)[0]

    with fw.dual_level():
        leaf = fw.make_dual(xp.tensor(points[0], requires_grad=True), xp.asarray(points[1]))
        tangent = fw.unpack_dual(slope(leaf)).tangent
    expected = [values(slope(xp.tensor(a + s * STEP * direction))) for s in (1, -1)]
    close(values(tangent), (expected[0] - expected[1]) / (2 * STEP), 1e-7)


def test_compiled_functions_have_tangents() -> None:
    pytest.importorskip("jax", reason="a backend that compiles")
    x = xp.tensor([1.0, 2.0], dtype="float32", device="jax", requires_grad=True)
    f = xp.compile(lambda x: xp.sum(xp.sin(x)))
    outside = f(x)
    _, slope = jvp(f, (x.detach(),), (xp.ones_like(x),))
    np.testing.assert_allclose(slope.item(), np.cos([1.0, 2.0]).sum(), rtol=1e-6)
    with fw.dual_level():
        seed = fw.make_dual(xp.ones_like(outside.detach()), 3 * xp.ones_like(outside.detach()))
        (g,) = grad(outside, x, seed)
        np.testing.assert_allclose(values(fw.unpack_dual(g).tangent), 3 * np.cos([1.0, 2.0]), rtol=1e-6)


# -- custom Functions ------------------------------------------------------------------------------------------------------------


class Cube(xp.autograd.Function):
    """``k x**3`` with its derivatives by hand."""

    @staticmethod
    def forward(x: Any, k: int) -> Any:
        return k * x * x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0], output)
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.k * x * x, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, dk: Any) -> Any:
        x, y = ctx.saved_tensors
        assert dk is None
        assert y.shape == x.shape
        return 3 * ctx.k * x * x * dx


@pytest.mark.parametrize("order", [o for n in (1, 2, 3) for o in itertools.product("dr", repeat=n)], ids="".join)
def test_custom_functions_nest(order: tuple[str, ...], xpgrad_device: str) -> None:
    f: Function = lambda x: Cube.apply(x, 2)  # noqa: E731 (it is wrapped below)
    for k in order:
        f = {"d": d, "r": r}[k](f)
    x = xp.tensor(2.0, dtype="float64", device=xpgrad_device)
    assert f(x).item() == [24.0, 24.0, 12.0][len(order) - 1]


def test_a_backward_that_differentiates_once_has_tangents() -> None:
    class Square(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @xp.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return dx * 2

    with fw.dual_level():
        x = fw.make_dual(xp.tensor(3.0, requires_grad=True), xp.tensor(5.0))
        for create in (False, True):
            (g,) = grad(Square.apply(x), x, create_graph=create)
            assert fw.unpack_dual(g).tangent.item() == 10.0


def function_of(forward: Function, jvp: Function) -> Any:
    return type("F", (xp.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def test_what_a_jvp_may_return() -> None:
    x, t = xp.tensor([1.0, 2.0]), xp.tensor([3.0, 4.0])
    given: list[Any] = []

    def two(ctx: Any, x: Any) -> Any:
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * 2, positive

    with fw.dual_level():
        y = fw.make_dual(x, t)
        out, mask = function_of(two, lambda ctx, dx: (dx * 2, None)).apply(y)
        assert fw.unpack_dual(out).tangent.tolist() == [6.0, 8.0]
        assert fw.unpack_dual(mask).tangent is None
        assert fw.unpack_dual(function_of(lambda ctx, x: x * 2, lambda ctx, dx: None).apply(y)).tangent is None
        with pytest.raises(RuntimeError, match="not a differentiable Tensor"):
            function_of(two, lambda ctx, dx: (dx * 2, dx)).apply(y)
        with pytest.raises(RuntimeError, match="different size"):
            function_of(lambda ctx, x: x * 2, lambda ctx, dx: xp.ones(3)).apply(y)
        with pytest.raises(TypeError, match="a tangent is a Tensor or None"):
            function_of(lambda ctx, x: x * 2, lambda ctx, dx: 3.0).apply(y)
        function_of(lambda ctx, x, k: x * k, lambda ctx, dx, dk: given.append(dk)).apply(y, xp.asarray([1, 2]))
        assert given == [None]
        # A view of the argument stays one: what is written to it reaches the argument's tangent.
        z = y * 1
        view = function_of(lambda ctx, x: x[:1], lambda ctx, dx: dx[:1]).apply(z)
        view.mul_(10)
        assert fw.unpack_dual(z).tangent.tolist() == [30.0, 4.0]


# -- gradcheck ----------------------------------------------------------------------------------------------------------------------


def wrong(backward: float, forward: float) -> Function:
    """``x**2`` with derivatives that are off by factors."""

    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward * 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return forward * 2 * ctx.saved_tensors[0] * dx

    return F.apply


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_either_mode(fast: bool) -> None:
    x = xp.tensor([0.3, 0.7], dtype="float64", requires_grad=True)
    check_it = xp.autograd.gradcheck
    for backward, forward in itertools.product([1.0, 1.5], repeat=2):
        f = wrong(backward, forward)
        for both in ({"check_forward_ad": True}, {"check_backward_ad": True}, {"check_forward_ad": True, "check_backward_ad": False}):
            good = (forward == 1 or not both.get("check_forward_ad")) and (backward == 1 or not both.get("check_backward_ad", True))
            assert check_it(f, (x,), fast_mode=fast, raise_exception=False, **both) is good
        # The gradient's own derivative by forward mode runs through `backward`, that by reverse mode too.
        for both in ({"check_fwd_over_rev": True}, {"check_fwd_over_rev": True, "check_rev_over_rev": False}):
            assert xp.autograd.gradgradcheck(f, (x,), fast_mode=fast, **both)
    with pytest.raises(ValueError, match="needs check_forward_ad"):
        check_it(xp.sin, (x,), check_batched_forward_grad=True)
    with pytest.raises(ValueError, match="needs check_backward_ad"):
        check_it(xp.sin, (x,), check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)


def test_gradgradcheck_sees_a_wrong_second_derivative_by_forward_mode() -> None:
    x = xp.tensor([0.3, 0.7], dtype="float64", requires_grad=True)

    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return wrong(1.0, 1.5)(ctx.saved_tensors[0]) / ctx.saved_tensors[0].detach() * g * 2

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return dx

    assert xp.autograd.gradcheck(F.apply, (x,))
    assert not xp.autograd.gradgradcheck(F.apply, (x,), check_fwd_over_rev=True, check_rev_over_rev=False, raise_exception=False)


def test_gradcheck_sees_a_missing_tangent_that_is_not_zero() -> None:
    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
            return (dx + dy) * 1.5 if dx is not None and dy is not None else dx if dy is None else dy

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    x, y = (xp.tensor([k], dtype="float64", requires_grad=True) for k in (0.3, 0.7))
    options = {"check_forward_ad": True, "check_backward_ad": False}
    assert xp.autograd.gradcheck(F.apply, (x, y), check_undefined_grad=False, **options)
    with pytest.raises(GradcheckError, match="missing tangent"):
        xp.autograd.gradcheck(F.apply, (x, y), **options)
