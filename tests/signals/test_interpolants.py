"""Law: interpolants have SciPy's values, and derivatives in knots, values and queries of every order, in every mode, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right")

import scipy.interpolate as theirs
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from signals.laws import Call, batch_is_loop, derivatives_are_differences, forward_is_reverse, values_are_scipys
from support.central_differences import has_float64, loosen, numbers, values
from xpgrad.scipy import interpolate as ours
from xpgrad.scipy._splines import _kernel as tridiagonal

X = np.array([0.0, 0.7, 1.5, 2.1, 3.0, 3.4])
Y = numbers((6, 2), 2.0)
Q = np.array([-0.3, 0.2, 0.9, 1.7, 2.5, 3.3, 3.6])
END = np.array([0.3, -0.4])


def call_of(
    name: str, *, queries: np.ndarray = Q, nu: int = 0, y: np.ndarray = Y, closed: bool = False, order: int = 2, **options: Any
) -> Call:
    """Return an interpolant as a call with knots, values and queries; if `closed`, the last value repeats the first one."""

    def in_one(module: Any) -> Any:
        def function(x: Any, y: Any, q: Any) -> Any:
            join = xp.concat if module is ours else np.concatenate
            values = join([y[:-1], y[:1]], axis=0) if closed else y
            return getattr(module, name)(x, values, **options)(q, **({"nu": nu} if nu else {}))

        return function

    return Call(in_one(ours), in_one(theirs), (X, y, queries), order)


def with_ends(x: Any, y: Any, q: Any, first: Any, second: Any, module: Any = ours) -> Any:
    return module.CubicSpline(x, y, bc_type=((1, first), (2, second)))(q)


def integrals(module: Any, **options: Any) -> Any:
    def function(x: Any, y: Any, a: Any, b: Any) -> Any:
        if options.get("bc_type") == "periodic":
            join = xp.concat if module is ours else np.concatenate
            y = join([y[:-1], y[:1]], axis=0)
        return module.CubicSpline(x, y, **options).integrate(a, b)

    return function


G = (np.array([0.0, 0.8, 2.0]), np.array([1.0, 2.5]))


def grid(module: Any, **options: Any) -> Any:
    return lambda a, b, v, at: module.RegularGridInterpolator((a, b), v, **options)(at)


CALLS: dict[str, Call] = {
    **{
        f"CubicSpline {bc}": call_of("CubicSpline", bc_type=bc, closed=bc == "periodic")
        for bc in ("not-a-knot", "natural", "clamped", "periodic")
    },
    "CubicSpline with ends": Call(
        with_ends, lambda *at: with_ends(*at, module=theirs), (X, Y, Q, END, END[::-1].copy())
    ),
    "CubicSpline, its second derivative": call_of("CubicSpline", nu=2),
    "CubicSpline of complex values": call_of("CubicSpline", y=numbers((6,), 1.0, np.complex128), bc_type=("natural", "not-a-knot")),
    "CubicSpline, integral": Call(integrals(ours), integrals(theirs), (X, Y, np.array(0.3), np.array(3.9))),
    "CubicSpline, integral over periods": Call(
        integrals(ours, bc_type="periodic"), integrals(theirs, bc_type="periodic"), (X, Y, np.array(-2.3), np.array(9.1))
    ),
    "CubicHermiteSpline": Call(
        lambda x, y, d, q: ours.CubicHermiteSpline(x, y, d)(q), lambda x, y, d, q: theirs.CubicHermiteSpline(x, y, d)(q),
        (X, Y, numbers((6, 2)), Q),
    ),
    "PPoly": Call(lambda c, x, q: ours.PPoly(c, x)(q), lambda c, x, q: theirs.PPoly(c, x)(q), (numbers((3, 5, 2)), X, Q)),
    "PchipInterpolator": call_of("PchipInterpolator"),
    "PchipInterpolator of a staircase": call_of("PchipInterpolator", y=np.array([0.0, 0.1, 1.3, 1.5, 4.0, 4.1])),
    "Akima1DInterpolator": call_of("Akima1DInterpolator", extrapolate=True),
    "Akima1DInterpolator, modified": call_of("Akima1DInterpolator", method="makima", extrapolate=True),
    "interp1d": call_of("interp1d", axis=0, fill_value="extrapolate"),
    "interp1d cubic": call_of("interp1d", axis=0, kind="cubic", fill_value="extrapolate"),
    "interp1d nearest": call_of("interp1d", axis=0, kind="nearest", fill_value="extrapolate"),
    "interp1d with a fill value": call_of("interp1d", axis=0, bounds_error=False, fill_value=0.5, y=numbers((6,), 1.0, np.complex128)),
    "RegularGridInterpolator": Call(
        grid(ours, bounds_error=False, fill_value=None), grid(theirs, bounds_error=False, fill_value=None),
        (*G, numbers((3, 2, 2)), np.array([[0.3, 1.7], [1.9, 3.0], [-0.2, 1.1]])),
    ),
    "interpn": Call(
        lambda a, b, v, at: ours.interpn((a, b), v, at), lambda a, b, v, at: theirs.interpn((a, b), v, at),
        (*G, numbers((3, 2)), np.array([[0.3, 1.7], [1.9, 2.0]])),
    ),
}  # fmt: skip
_each = pytest.mark.parametrize("name", CALLS)


def test_every_class_is_in_the_table() -> None:
    assert {name.split()[0].rstrip(",") for name in CALLS} == set(ours.__all__)


@_each
def test_values_are_scipys(name: str, xpgrad_device: str) -> None:
    values_are_scipys(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=2)
@_each
def test_derivatives_are_differences(name: str, xpgrad_device: str) -> None:
    derivatives_are_differences(CALLS[name], xpgrad_device)


@_each
def test_forward_mode_is_reverse_mode(name: str, xpgrad_device: str) -> None:
    forward_is_reverse(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=7)
@_each
def test_a_batch_is_a_loop(name: str, xpgrad_device: str) -> None:
    batch_is_loop(CALLS[name], xpgrad_device)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 8), st.sampled_from([(), (3,), (2, 1)]), st.integers(0, 2),
    st.sampled_from(["not-a-knot", "natural", "clamped", "periodic", ("clamped", "not-a-knot"), ("not-a-knot", "natural")]),
    st.sampled_from([None, True, False, "periodic"]), st.integers(0, 4), st.booleans(),
)  # fmt: skip
def test_splines_of_any_shape(n: int, rest: Any, axis: int, bc: Any, extrapolate: Any, nu: int, plane: bool) -> None:
    axis = min(axis, len(rest))
    x = np.cumsum(1.0 + 0.5 * numbers((n,)))
    y = numbers((n, *rest), 2.0, np.complex128 if plane else np.float64)
    if bc == "periodic":
        y[-1] = y[0]
    y = np.moveaxis(y, 0, axis)
    q = np.linspace(x[0] - 1.0, x[-1] + 2.0, 6).reshape(2, 3)
    found = ours.CubicSpline(xp.asarray(x), xp.asarray(y), axis, bc, extrapolate)
    expected = theirs.CubicSpline(x, y, axis, bc, extrapolate)
    np.testing.assert_allclose(values(found.c), expected.c, rtol=1e-9, atol=1e-10)
    out = found(xp.asarray(q), nu)
    assert out.shape == expected(q, nu).shape
    np.testing.assert_allclose(values(out), expected(q, nu), rtol=1e-8, atol=1e-8)
    for a, b in ((x[0], x[-1]), (0.5, -3.0)):
        np.testing.assert_allclose(values(found.integrate(a, b)), expected.integrate(a, b), rtol=1e-8, atol=1e-8)
    again = found.antiderivative().derivative()
    np.testing.assert_allclose(values(again(xp.asarray(x[:-1]))), expected(x[:-1]), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["PchipInterpolator", "Akima1DInterpolator"])
def test_flat_and_broken_values(name: str) -> None:
    for y in (np.zeros(6), np.array([0.0, 0, 1, 1, 1, 3]), np.array([0.0, 1, 0, 1, 2, 2]), np.round(Y * 3)):
        found = getattr(ours, name)(xp.asarray(X), xp.asarray(y))(xp.asarray(Q[1:-1]))
        np.testing.assert_allclose(values(found), getattr(theirs, name)(X, y)(Q[1:-1]), rtol=1e-12, atol=1e-13)
        leaf = xp.tensor(y, requires_grad=True)
        xp.sum(getattr(ours, name)(xp.asarray(X), leaf)(xp.asarray(Q[1:-1]))).backward()
        assert np.isfinite(values(leaf.grad)).all()


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_gradient_at_a_plateau_at_an_end_is_that_of_one_side(at_the_end: bool, xpgrad_device: str) -> None:
    """`PchipInterpolator` has a kink there; a first difference of the other sign than the second one gives nearly the same gradient."""

    def gradient(change: float) -> Any:
        y = np.array([1.0 + change, 1.0, 2.0, 3.5, 4.0])
        y = xp.tensor(-y[::-1] if at_the_end else y, device=xpgrad_device, requires_grad=True)
        made = ours.PchipInterpolator(xp.asarray([0.0, 1.0, 2.5, 3.0, 4.0], device=xpgrad_device), y)
        xp.sum(made(xp.asarray([0.25, 0.5, 1.5, 3.25, 3.5], device=xpgrad_device))).backward()
        return values(y.grad)

    np.testing.assert_allclose(gradient(0.0), gradient(1e-5), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "Akima1DInterpolator"])
def test_nan_is_seen(name: str) -> None:
    step = ours.PPoly(xp.ones((1, 2)), xp.asarray([0.0, 1.0, 2.0]))
    assert np.isnan(values(step(xp.asarray([0.5, np.nan])))).tolist() == [False, True]
    y = np.array([0.0, 1.0, np.nan, 2.0, 1.0, 0.5])
    out = values(getattr(ours, name)(xp.asarray(X), xp.asarray(np.stack([y, X**3], axis=1)))(xp.asarray([1.2, np.nan])))
    assert np.isnan(out[0, 0])
    assert np.isnan(out[1]).all()
    if name != "CubicSpline":
        np.testing.assert_allclose(out[0, 1], getattr(theirs, name)(X, X**3)(1.2))


@pytest.mark.parametrize("kind", ["linear", "nearest", "nearest-up", "previous", "next", "cubic"])
def test_kinds_between_and_beyond_the_points(kind: str, xpgrad_device: str) -> None:
    order = np.array([3, 0, 5, 1, 4, 2])
    at = np.concatenate([Q, X, (X[1:] + X[:-1]) / 2])
    if not has_float64(xpgrad_device):
        at = Q
    for fill in (np.nan, 0.5, (1.0, 2.0), "extrapolate"):
        options = {"bounds_error": False, "fill_value": fill, "axis": 0}
        found = ours.interp1d(*(xp.asarray(v[order], device=xpgrad_device) for v in (X, Y)), kind, **options)
        expected = theirs.interp1d(X[order], Y[order], kind, **options)(at)
        tolerance = loosen(1e-11, xpgrad_device)
        np.testing.assert_allclose(values(found(xp.asarray(at, device=xpgrad_device))), expected, rtol=tolerance, atol=tolerance)
        assert np.isnan(values(found(xp.asarray([np.nan], device=xpgrad_device)))).all()


@pytest.mark.parametrize("name", ["linear", "cubic", "spline", "monotone", "grid"])
def test_infinite_queries_beyond_the_points_leave_derivatives_alone(name: str, xpgrad_device: str) -> None:
    x, at = (xp.asarray(v, device=xpgrad_device) for v in ([0.0, 1.0, 2.5, 3.0], [0.5, np.inf, -np.inf, 1.7]))
    make: dict[str, Any] = {
        "linear": lambda y: ours.interp1d(x, y, bounds_error=False, fill_value=(0.5, 0.25)),
        "cubic": lambda y: ours.interp1d(x, y, "cubic", bounds_error=False),
        "spline": lambda y: ours.CubicSpline(x, y, extrapolate=False),
        "monotone": lambda y: ours.PchipInterpolator(x, y, extrapolate=False),
        "grid": lambda y: lambda q: ours.interpn((x,), y, q[:, None], bounds_error=False),
    }
    gradients = []
    for queries in (at, at[::3]):
        y = xp.tensor([0.0, 1.0, -1.0, 2.0], device=xpgrad_device, requires_grad=True)
        out = make[name](y)(queries)
        xp.sum(out[:: len(out) - 1]).backward()
        gradients.append(values(y.grad))
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["linear", "cubic", "extrapolated", "spline", "monotone", "periodic", "grid", "filled grid"])
def test_queries_that_are_nan_leave_derivatives_alone(name: str, xpgrad_device: str) -> None:
    at = xp.asarray([0.5, np.inf if name == "periodic" else np.nan, np.nan, 1.7], device=xpgrad_device)
    make: dict[str, Any] = {
        "linear": lambda x, y: ours.interp1d(x, y),
        "cubic": lambda x, y: ours.interp1d(x, y, "cubic"),
        "extrapolated": lambda x, y: ours.interp1d(x, y, fill_value="extrapolate"),
        "spline": ours.CubicSpline,
        "monotone": ours.PchipInterpolator,
        "periodic": lambda x, y: ours.Akima1DInterpolator(x, y, extrapolate="periodic"),
        "grid": lambda x, y: lambda q: ours.interpn((x, x), y[:, None] * y, xp.stack([q, xp.full_like(q, 1.2)], axis=-1)),
        "filled grid": lambda x, y: lambda q: ours.interpn((x,), y, xp.stack([q], axis=-1), bounds_error=False, fill_value=None),
    }

    def total(x: Any, y: Any, q: Any) -> Any:
        out = make[name](x, y)(q)
        return xp.sum(xp.where(xp.isnan(out), 0.0, out) ** 2)

    points = [xp.asarray(v, device=xpgrad_device) for v in ([0.0, 1.0, 2.5, 3.0], [0.0, 1.0, -1.0, 2.0])]
    for derive in (xp.func.grad, xp.func.jacfwd):
        found, expected = (derive(total, argnums=(0, 1, 2))(*points, queries) for queries in (at, at[::3]))
        slopes = list(map(values, expected))
        for a, b in zip(found, (*slopes[:2], np.insert(slopes[2], [1, 1], 0.0))):
            np.testing.assert_allclose(values(a), b, rtol=1e-5, atol=1e-6)


def test_a_nan_beside_a_coordinate_outside_of_the_grid_is_seen() -> None:
    points, v, at = (np.arange(3.0),) * 2, np.eye(3), np.array([[np.nan, 5.0], [1.0, 5.0]])
    for method in ("linear", "nearest"):
        expected = theirs.interpn(points, v, at, method, bounds_error=False, fill_value=1.5)
        np.testing.assert_array_equal(values(ours.interpn(points, xp.asarray(v), xp.asarray(at), method, False, 1.5)), expected)


def test_steps_have_the_derivative_zero(xpgrad_device: str) -> None:
    q = xp.tensor([0.2, 2.2], device=xpgrad_device, requires_grad=True)
    for kind in ("nearest", "previous", "next"):
        points = (xp.asarray(v, dtype=q.dtype, device=xpgrad_device) for v in (X, Y[:, 0].copy()))
        (slope,) = xp.autograd.grad(xp.sum(ours.interp1d(*points, kind)(q)), q)
        assert slope.tolist() == [0.0, 0.0]
    corner = xp.tensor([[0.3, 1.7]], device=xpgrad_device, requires_grad=True)
    axes = tuple(xp.asarray(v, dtype=q.dtype, device=xpgrad_device) for v in G)
    out = ours.RegularGridInterpolator(axes, xp.ones((3, 2), dtype=q.dtype, device=xpgrad_device), "nearest")(corner)
    (slope,) = xp.autograd.grad(xp.sum(out), corner)
    assert slope.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids(method: str, xpgrad_device: str) -> None:
    points = (np.array([0.0, 1.0, 2.5]), np.array([3.0, 2.0, 0.5, 0.0]), np.array([0.0, 1.0]))
    v = numbers((3, 4, 2, 2))
    at = 1.2 + 2.0 * numbers((4, 5, 3), 7.0)
    for fill in (np.nan, None, 1.5):
        found = ours.RegularGridInterpolator(
            tuple(xp.asarray(p, device=xpgrad_device) for p in points), xp.asarray(v, device=xpgrad_device), method, False, fill
        )
        expected = theirs.RegularGridInterpolator(points, v, method, False, fill)
        tolerance = loosen(1e-12, xpgrad_device)
        out = values(found(xp.asarray(at, device=xpgrad_device)))
        np.testing.assert_allclose(out, expected(at), rtol=tolerance, atol=tolerance)
        apart = tuple(xp.asarray(at[0, :, i], device=xpgrad_device) for i in range(3))
        np.testing.assert_allclose(values(found(apart)), expected(at[0]), rtol=tolerance, atol=tolerance)
    assert np.isnan(values(found(xp.asarray([np.nan, 1.0, 0.5], device=xpgrad_device)))).all()


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_single_queries_of_grids_have_scipys_shape(method: str) -> None:
    points, v = (np.array([0.0, 1.0, 2.5]), np.array([0.0, 0.5, 2.0])), numbers((3, 3, 2))
    for queries in ((0.3, 0.7), (1, 2), (np.float64(0.3), np.asarray(0.7)), (xp.asarray(0.3), 0.7), [0.3, 0.7], ([0.3], 0.7)):
        same: Any = type(queries)(q.numpy() if isinstance(q, xp.Tensor) else q for q in queries)
        for rank in (2, 3):
            some = v if rank == 3 else v[:, :, 0]
            for found, expected in (
                (ours.RegularGridInterpolator(points, some, method)(queries), theirs.RegularGridInterpolator(points, some, method)(same)),
                (ours.interpn(points, some, queries, method), theirs.interpn(points, some, same, method)),
            ):
                assert found.shape == expected.shape
                np.testing.assert_allclose(values(found), expected, rtol=1e-12)


def test_tridiagonal_systems_without_the_host(xpgrad_device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The composition used without SciPy solves a batch of tridiagonal systems like a dense solver."""
    like = xp.zeros(1, dtype=xp.float32, device=xpgrad_device)
    monkeypatch.setattr("xpgrad.scipy._splines.on_the_host", lambda *args: None)
    bands = numbers((2, 3, 5)) + np.array([0.0, 3.0, 0.0])[:, None]
    rhs = numbers((5, 2), 4.0)
    found = tridiagonal(like.backend.kernels, *(xp.asarray(v, device=xpgrad_device)._array for v in (bands, np.stack([rhs, rhs]))))
    for k in range(2):
        matrix = np.diag(bands[k, 1]) + np.diag(bands[k, 0, 1:], -1) + np.diag(bands[k, 2, :-1], 1)
        tolerance = loosen(1e-12, xpgrad_device)
        np.testing.assert_allclose(values(like.backend.wrap(found))[k], np.linalg.solve(matrix, rhs), rtol=tolerance, atol=tolerance)


def test_dtypes(xpgrad_device: str) -> None:
    x, y = xp.asarray([0, 1, 2, 3], device=xpgrad_device), xp.asarray([0, 1, 8, 27], device=xpgrad_device)
    out = ours.CubicSpline(x, y)(1.5)
    assert out.dtype == x.default_dtype("real floating")
    assert out.shape == ()
    np.testing.assert_allclose(out.item(), 3.375, rtol=1e-5)
    single = ours.CubicSpline(xp.astype(x, xp.float32), xp.astype(y, xp.float32))(1.5)
    assert single.dtype == xp.float32


def test_knots_that_cannot_be_looked_at_give_nan() -> None:
    def found(x: Any) -> Any:
        return xp.stack([make(x, x * 2.0)(0.5) for make in (ours.CubicSpline, ours.PchipInterpolator, ours.interp1d)])

    rows = xp.asarray([[0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 3.0], [0.0, 1.0, 1.0, 3.0]])
    spline = values(xp.func.vmap(lambda x: ours.CubicSpline(x, x * 2.0)(0.5))(rows))
    assert np.isnan(spline).tolist() == [False, True, True]
    out = values(xp.func.vmap(found)(rows[:1]))
    np.testing.assert_allclose(out, [[1.0, 1.0, 1.0]], rtol=1e-12)
    grids = xp.func.vmap(lambda p: ours.RegularGridInterpolator((p,), p * p)([0.5]))(xp.stack([rows[0], xp.flip(rows[0])]))
    np.testing.assert_allclose(values(grids), [[0.5], [0.5]])


def test_knots_in_a_program_of_jax() -> None:
    pytest.importorskip("jax", reason="this is about its programs")
    x, y, q = (xp.asarray(v, device="jax", dtype=xp.float32) for v in (X, Y, Q))

    def loss(x: Any, y: Any, q: Any) -> Any:
        return xp.sum(ours.CubicSpline(x, y)(q) ** 2)

    run = xp.compile(xp.func.grad(loss, argnums=(0, 1, 2)))
    for found, expected in zip(run(x, y, q), xp.func.grad(loss, argnums=(0, 1, 2))(x, y, q)):
        np.testing.assert_allclose(values(found), values(expected), rtol=2e-2, atol=2e-3)


V = xp.asarray([0.0, 1.0, 2.0, 3.0])
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "knots that go back": (lambda: ours.CubicSpline(xp.asarray([0.0, 2.0, 1.0]), V[:3]), ValueError, "`x` must be strictly increasing"),
    "knots that coincide": (lambda: ours.CubicSpline(xp.asarray([0.0, 1.0, 1.0]), V[:3]), ValueError, "`x` must be strictly increasing"),
    "nan among the knots": (lambda: ours.CubicSpline(xp.asarray([0.0, np.nan, 1.0]), V[:3]), ValueError, "without nan"),
    "one knot": (lambda: ours.CubicSpline(V[:1], V[:1]), ValueError, "at least 2 numbers"),
    "lengths": (lambda: ours.CubicSpline(V, V[:3]), ValueError, r"their shapes are \(4,\) and \(3,\)"),
    "knots in two axes": (lambda: ours.PchipInterpolator(xp.zeros((2, 2)), V), ValueError, "`x` must be a vector"),
    "values without axes": (lambda: ours.CubicSpline(V, 1.0), ValueError, "`y` must have at least one axis"),
    "conditions": (lambda: ours.CubicSpline(V, V, bc_type="free"), ValueError, "must be one of 'clamped', 'natural'"),
    "one end periodic": (lambda: ours.CubicSpline(V, V, bc_type=("periodic", "natural")), ValueError, "for both ends"),
    "orders": (lambda: ours.CubicSpline(V, V, bc_type=((3, 0.0), "natural")), ValueError, "with the order 1 or 2"),
    "shapes of conditions": (lambda: ours.CubicSpline(V, V, bc_type=((1, V), "natural")), ValueError, "the value of a condition"),
    "complex conditions": (lambda: ours.CubicSpline(V, V, bc_type=((1, 1j), "natural")), TypeError, "complex condition"),
    "not closed": (lambda: ours.CubicSpline(V, V, bc_type="periodic"), ValueError, "the first and the last values"),
    "three conditions": (lambda: ours.CubicSpline(V, V, bc_type=("natural",) * 3), ValueError, "`bc_type` must be a name or a pair"),
    "ways to extrapolate": (lambda: ours.CubicSpline(V, V, extrapolate="yes"), ValueError, "`extrapolate` must be 'periodic'"),
    "complex queries": (lambda: ours.CubicSpline(V, V)(1j), TypeError, "`x` must be real"),
    "orders of derivatives": (lambda: ours.CubicSpline(V, V)(1.0, -1), ValueError, "`nu` must not be negative"),
    "limits": (lambda: ours.CubicSpline(V, V).integrate(V, 1.0), ValueError, "`a` must be a number"),
    "complex values": (lambda: ours.Akima1DInterpolator(V, V * 1j), TypeError, "`y` must be real"),
    "methods": (lambda: ours.Akima1DInterpolator(V, V, method="new"), ValueError, "`method` must be"),
    "slopes": (lambda: ours.CubicHermiteSpline(V, V, V[:3]), ValueError, "`y` and `dydx` must have one shape"),
    "coefficients": (lambda: ours.PPoly(xp.zeros((2, 2)), V), ValueError, "`c` must have the shape"),
    "kinds": (lambda: ours.interp1d(V, V, "quadratic"), NotImplementedError, "`kind` must be"),
    "too few for a cubic": (lambda: ours.interp1d(V[:3], V[:3], "cubic"), ValueError, "at least 4"),
    "beyond": (lambda: ours.interp1d(V, V)(4.0), ValueError, "beyond those of the points"),
    "both": (lambda: ours.interp1d(V, V, bounds_error=True, fill_value="extrapolate"), ValueError, "exclude one another"),
    "fill values": (lambda: ours.interp1d(V, V, fill_value=V), ValueError, "`fill_value` must broadcast"),
    "points that coincide": (lambda: ours.interp1d(V * 0.0, V), ValueError, "strictly increasing"),
    "beyond a grid": (lambda: ours.RegularGridInterpolator((V,), V)([4.0]), ValueError, "points outside of the grid"),
    "grids that are none": (lambda: ours.RegularGridInterpolator(3, V), TypeError, "`points` must be a sequence"),
    "grids of another size": (lambda: ours.RegularGridInterpolator((V[:3],), V), ValueError, "there are 3 points along axis 0"),
    "axes of grids": (lambda: ours.RegularGridInterpolator((V, V), V), ValueError, "have fewer axes"),
    "methods of grids": (lambda: ours.RegularGridInterpolator((V,), V, "cubic"), NotImplementedError, "`method` must be"),
    "outside": (lambda: ours.interpn((V,), V, [5.0]), ValueError, "outside of the grid"),
    "queries of grids": (lambda: ours.interpn((V,), V, V), ValueError, "with the length 1 along its last axis"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name: str) -> None:
    function, error, message = BAD[name]
    with pytest.raises(error, match=message):
        function()
