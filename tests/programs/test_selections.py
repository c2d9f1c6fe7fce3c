"""Law: compiled functions that select by a mask have the values and gradients of the functions run eagerly, or raise a CaptureError.

What the mask leaves out has no influence, whatever it is: no value, no gradient, no nan and no warning comes from it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import DEVICES
from xpgrad.errors import CaptureError
from xpgrad.utils.checkpoint import checkpoint

DEVICE = [""]
F = xp.func


@pytest.fixture(params=[d for d in DEVICES if d.partition(":")[0] not in ("jax", "dask", "mlx", "cubed")], autouse=True, scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select each backend whose functions are captured; the others compile themselves, or not at all."""
    DEVICE[0] = request.param
    yield request.param
    DEVICE[0] = ""


def make(values: Any) -> Any:
    return xp.asarray(xp.asarray(np.asarray(values)), device=DEVICE[0])


def change(x: Any, *changes: tuple[Callable[[Any], Any], Callable[[Any], Any]]) -> Any:
    """Return a copy of `x` after ``y[mask(y)] = value(y)``, in turn."""
    y = x * 1.0
    for mask, value in changes:
        y[mask(y)] = value(y)
    return y


def escape_time(c: Any) -> Any:
    """Iterate as for Mandelbrot's set, on the elements that have not left."""
    z, n = c * 0.0, c * 0.0
    for k in range(5):
        inside = xp.abs(z) < 2.0
        n[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return xp.sum(z * n)


def through_views(x: Any) -> Any:
    y = x * 1.0
    part, turned = y[1:], y.T
    part[part > 0] = part[part > 0] ** 2
    turned[turned < 0] *= 3.0
    return xp.sum(y**3)


def in_place(x: Any) -> Any:
    y = x * 1.0
    y[y > 0] *= -2.0
    y[y < -1] += x[0, 1]
    z = y[y > 0]
    z += 2.0
    z *= z
    return xp.sum(y**3) + xp.sum(z)


def nested(x: Any) -> Any:
    y = x[x > 0]
    z = y[y < 1]
    y[y > 0.5] = 0.0
    return xp.sum(z**2) + xp.sum(y * 3.0)


def rows(x: Any) -> Any:
    r = x[x[:, 0] > -0.5]
    centred = r - xp.mean(r, axis=0)
    return xp.sum(centred**2) / r.shape[0] + xp.sum(xp.sum(r, axis=1) ** 3) + xp.sum(r / xp.linalg.vector_norm(r, axis=1, keepdims=True))


def scanned(x: Any) -> Any:
    c, ys = F.scan(lambda c, r: (c + xp.sum(r[r > 0] ** 2), xp.sum(r[r < 0])), xp.sum(x) * 0.0, x)
    return c + xp.sum(ys**2)


def shared_by_a_batch(x: Any) -> Any:
    z = x[x > 0]
    return xp.sum(F.vmap(lambda s: xp.sum(z * s))(x[:, 0])) + xp.sum(F.vmap(lambda r: r[x[0] > 0] ** 2)(x))


def robust_loss(r: Any) -> Any:
    a = np.abs(r)
    out = 0.5 * r**2
    big = a > 1
    out[big] = a[big] - 0.5
    return out.sum()


def forces(x: Any) -> Any:
    d = x[:, :, None] - x[:, None, :]
    inverse = (d**2).sum(axis=0) + 0.01
    inverse[inverse > 0] = inverse[inverse > 0] ** -1.5
    return (d * inverse).sum() + (d[0] @ inverse).sum()


def bins(x: Any) -> Any:
    means = np.zeros(3)
    for k in range(3):
        means[k] = x[(x >= k - 2) & (x < k)].mean()
    return (means**2).sum()


def zero_crossings(x: Any) -> Any:
    x = x.reshape(-1)
    t = np.cumsum(np.abs(x))
    i = np.where(np.sign(x[1:]) != np.sign(x[:-1]))[0]
    return ((t[i] - x[i] * (t[i + 1] - t[i]) / (x[i + 1] - x[i])) ** 2).sum()


def peaks(x: Any) -> Any:
    x = x.reshape(-1)
    i = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) + 1
    left, top, right = x[i - 1], x[i], x[i + 1]
    return (top - 0.125 * (left - right) ** 2 / (left - 2 * top + right)).sum()


def at_positions(x: Any) -> Any:
    places = np.where(np.abs(x) > 1)
    rows, columns = places
    y, z = x * 2.0, x**2
    y[rows, columns] = 0.0
    z[places] = x[places] * 3.0 + x[rows, columns]
    return (y * z).sum() + (x[rows] ** 2).sum() + np.take(x[0], np.nonzero(x[0] > 0)[0]).sum() ** 2 + np.argwhere(x > 0).sum() * x[0, 0]


def in_another_array(x: Any) -> Any:
    rows, columns = np.where(x[:1] > 0)
    short = x[:1, :1] * 3.0
    return (short[rows, columns * 0] ** 2 * x[rows + 1, columns]).sum() + (x[0, 0] * np.take(x[:1, 0], np.nonzero(x[:1, 1] < 9)[0])).sum()


#: Functions of an array with 4 rows and 3 columns.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: xp.sum(x[x > 0]),
    "a function": lambda x: xp.sum(xp.log(x[x > 0])) - xp.sum(xp.sqrt(-x[x < 0])),
    "mean": lambda x: xp.mean(x[x > 0] ** 2),
    "spread": lambda x: xp.var(x[x > 0]) + xp.std(x[x < 0.5], correction=1) + xp.sum((x[x > 0] - xp.mean(x[x > 0])) ** 3),
    "equal elements": lambda x: xp.std(x[x > 0] * 0.0 + 0.1) + xp.sum(x),
    "extrema": lambda x: xp.max(x[x > 0]) - xp.min(x[x < 0]) + xp.sum(xp.max(x[x[:, 0] > -1], axis=0)),
    "truth": lambda x: xp.sum(xp.where(xp.any(x[x > 0] > 1) & xp.all(x[x < 0] < 0), x, x**2)) * xp.count_nonzero(x[x > 0] < 1),
    "a power": lambda x: xp.sum(change(x, (lambda y: y > 0, lambda y: y[y > 0] ** -1.5)) ** 2),
    "two masks": lambda x: xp.sum(change(x, (lambda y: y > 0, lambda y: y[y > 0] ** 2), (lambda y: y > 1, lambda y: xp.sqrt(y[y > 1])))),
    "a scalar is written": lambda x: xp.sum(change(x, (lambda y: y > 0, lambda y: x[0, 0] * 3.0)) ** 2),
    "rows": rows,
    "columns": lambda x: xp.sum(x[:, x[0] > 0] ** 2 * x[:, :1]) + xp.sum(x[..., x[0] < 0] ** 3),
    "sums of columns": lambda x: xp.sum(xp.sum(x[:, x[0] > 0], axis=0) ** 3) + xp.sum(xp.mean(x[:, x[0] < 1], axis=0) ** 2),
    "rows, one column": lambda x: xp.sum(x[x[:, 0] > 0, 1] ** 3) + xp.sum(x[x[:, 0] > 0, ::2]) * x[0, 0],
    "products of matrices": lambda x: xp.sum(x[:, None, :][x[:, 0] > 0] @ x.T[:, :2]),
    "products of columns and rows": lambda x: xp.sum(x[:, :, None][x[:, 1] < 1] @ x[None, :1] ** 2),
    "an integer beside it": lambda x: xp.sum(xp.reshape(x, (2, 2, 3))[:, x[:2, 0] > -1, 0] ** 3) + xp.sum(x[None][:, x[:, 0] > 0, 1:] ** 2),
    "a product of matrices": lambda x: xp.sum((x[x[:, 0] > 0].T @ x[x[:, 0] > 0]) ** 2) + xp.sum((x[x[:, 0] > 0] @ x.T[:, :2]) ** 2),
    "products of vectors": lambda x: xp.vecdot(x[x > 0], x[x > 0] ** 2) + x[x < 0] @ x[x < 0] + xp.linalg.vector_norm(x[x > 0]),
    "new axes": lambda x: xp.sum(x[x[:, 1] > 0][:, None, :] * x[x[:, 1] > 0][:, :, None]) + xp.sum(xp.reshape(x[x > 0], (-1, 1)) ** 2),
    "a broadcast": lambda x: xp.sum(x[x > 0] * x[0, 0]) + xp.sum(xp.clip(x[x > 0], x[0, 0], None)) + xp.sum(x[x[:, 0] > 0] * x[0]),
    "a stack": lambda x: xp.sum(xp.stack([x[x > 0], x[x > 0] ** 2]) ** 2) + xp.sum(xp.concat([x[x[:, 0] > 0]] * 2, axis=1) ** 3),
    "arrays like it": lambda x: xp.sum((xp.ones_like(x[x > 0]) + x[x > 0]) ** 2) + xp.sum(x[x > 0] * xp.zeros_like(x[x > 0])),
    "arrays as long": lambda x: xp.sum(
        (xp.zeros(x[x > 0].shape, device=x.device) + xp.full(x[x > 0].shape[0], 2.0, device=x.device) * x[x > 0]) ** 2
    ),
    "its length": lambda x: xp.sum(x[x > 0]) / x[x > 0].shape[0] + xp.sum(x) * x[x[:, 0] > 0].size,
    "complex numbers": lambda x: xp.real(xp.sum((x + 1j * x**2)[xp.abs(x) > 0.5] ** 2)),
    "other dtypes": lambda x: xp.sum(xp.astype(x[x > 0], xp.float32)) + xp.sum(x) * xp.sum(xp.astype(x[x > 0], xp.int64)),
    "Mandelbrot": escape_time,
    "views": through_views,
    "in place": in_place,
    "nested": nested,
    "a loop": lambda x: xp.sum(F.fori_loop(0, 4, lambda k, c: change(c, (lambda y: y > 0.2, lambda y: xp.sqrt(y[y > 0.2]))), x)),
    "a scan": scanned,
    "a branch": lambda x: F.cond(xp.sum(x) > 0, lambda: xp.sum(x[x > 0]), lambda: xp.sum(x[x < 0] ** 2)),
    "a checkpoint": lambda x: checkpoint(lambda x: xp.sum(xp.log(x[x > 0]) ** 2), x, use_reentrant=False),
    "a batch": shared_by_a_batch,
    "forward mode": lambda x: F.jvp(lambda x: xp.sum(xp.log(x[x > 0]) * x[x > 0]), (x,), (xp.cos(x),))[1],
    "a Hessian": lambda x: xp.sum(F.hessian(lambda r: xp.sum(r[r > 0] ** 3))(x[0])) * x[0, 0],
    "a robust loss": xp.numpy_code(robust_loss),
    "forces": xp.numpy_code(forces),
    "bins": xp.numpy_code(bins),
    "zero crossings": xp.numpy_code(zero_crossings),
    "peaks": xp.numpy_code(peaks),
    "positions": xp.numpy_code(at_positions),
    "positions in another array": xp.numpy_code(in_another_array),
    "NumPy's functions": xp.numpy_code(
        lambda x: np.average(x[x > 0]) + np.ptp(x[x > 0]) + np.compress(x[0] > 0, x, axis=1).sum() ** 2 + np.extract(x > 0, x).std()
    ),
}

DATA = [np.random.default_rng(seed).normal(size=(4, 3)) for seed in range(4)]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_values_and_derivatives_are_those_of_the_function(name: str) -> None:
    """The program made for the first array serves the others, whose masks select other numbers of elements."""
    function = PROGRAMS[name]

    def second(x: Any) -> Any:
        return F.grad(lambda x: xp.sum(F.grad(function)(x) ** 2))(x)

    compiled, slopes = xp.compile(function), xp.compile(second)
    for data in DATA:
        x, y = make(data).requires_grad_(), make(data).requires_grad_()
        expected = function(x)
        expected.backward()
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            found = compiled(y)
            found.backward()
        tolerance = 1e-5 if name == "other dtypes" else 1e-9
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=tolerance)
        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=tolerance, atol=1e-11)
        if name != "equal elements":
            np.testing.assert_allclose(slopes(make(data)).numpy(), second(make(data)).numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("emitter", ["native", "numpy", "array-api", "c"])
def test_emitters_agree(emitter: str) -> None:
    if emitter != "array-api" and DEVICE[0] != "numpy":
        pytest.skip("only for NumPy's arrays")
    if emitter == "native":
        pytest.importorskip("llvmlite")
    for name in ("a function", "rows", "forces", "in place", "Mandelbrot"):
        x, y = make(DATA[1]).requires_grad_(), make(DATA[1]).requires_grad_()
        PROGRAMS[name](x).backward()
        xp.compile(PROGRAMS[name], emitter=emitter)(y).backward()
        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)


UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": xp.sin,
    "square": xp.square,
    "exp": lambda z: xp.exp(z * 0.3),
    "relu": lambda z: xp.where(z > 0, z, 0.1 * z),
    "reciprocal": lambda z: 1 / (z**2 + 1),
    "centre": lambda z: z - xp.mean(z, axis=-1, keepdims=True),
    "times the first axis": lambda z: z * xp.sum(z, axis=0),
    "as columns": lambda z: xp.squeeze(xp.expand_dims(z, axis=-1), axis=-1),
    "turned": lambda z: xp.permute_dims(z, (*range(1, z.ndim), 0)),
}
ENDS: dict[str, Callable[[Any], Any]] = {
    "sum": xp.sum,
    "mean": xp.mean,
    "sums": lambda z: xp.sum(xp.sum(z, axis=0) ** 2),
    "last sums": lambda z: xp.sum(xp.sum(z, axis=-1) ** 2),
    "product": lambda z: xp.sum(z * z * z),
    "largest": lambda z: xp.max(z) ** 2,
    "variances": lambda z: xp.sum(xp.var(z, axis=-1)),
}


@pytest.mark.slow(one_in=3)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_selections(data: Any) -> None:
    """Law: for masks of any part of the axes, and any number of selected elements but none, all derivatives agree."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    first = data.draw(st.integers(0, len(shape) - 1))
    rank = data.draw(st.integers(1, len(shape) - first))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    chain = [UNARY[k] for k in data.draw(st.lists(st.sampled_from(list(UNARY)), max_size=3))]
    end = ENDS[data.draw(st.sampled_from(list(ENDS)))]
    writes = data.draw(st.booleans())

    def function(x: Any, m: Any) -> Any:
        key = (*(slice(None),) * first, m > 0)
        z = x[key]
        for step in chain:
            z = step(z)
        if not writes or len(chain) > 1:
            return end(z)
        y = x * 2.0
        y[key] = x[key] ** 2 * xp.sum(z)
        return end(y) + end(z)

    def both(x: Any, m: Any) -> Any:
        slope = F.jvp(lambda x: function(x, m), (x,), (xp.cos(x),))[1]
        return F.grad(lambda x: xp.sum(F.grad(lambda x: function(x, m))(x) ** 2) + function(x, m))(x) + slope

    compiled = xp.compile(both, emitter="numpy" if DEVICE[0] == "numpy" else None)  # which takes no time to compile
    for _ in range(2):
        x, m = rng.normal(size=shape), rng.normal(size=shape[first : first + rank])
        m.reshape(-1)[rng.integers(m.size)] = 1.0
        np.testing.assert_allclose(compiled(make(x), make(m)).numpy(), both(make(x), make(m)).numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.0, -3.0])
def test_nothing_comes_from_what_is_left_out(bad: float) -> None:
    x = DATA[0].copy()
    x[x <= 0] = bad
    p = make(np.asarray(0.7))

    def function(x: Any, p: Any) -> Any:
        inside = x[(x > 0) & (x < 10)]
        return xp.sum(xp.log(inside) * inside**p) + xp.mean(inside / p) + xp.max(inside) * p

    expected = F.grad(function, argnums=(0, 1))(make(x), p)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = xp.compile(F.grad(function, argnums=(0, 1)))(make(x), p)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    assert found[0].numpy()[x == bad].tolist() == [0.0] * int((x == bad).sum())


def test_nothing_may_be_selected() -> None:
    x = make(-np.ones(3))

    def function(x: Any) -> Any:
        return xp.sum(x[x > 0] ** 2) + xp.prod(xp.astype(x[x > 0] > 0, xp.int64)) + xp.sum(x)

    compiled = xp.compile(F.grad_and_value(function))
    slope, value = compiled(x)
    assert (slope.tolist(), value.item()) == ([1.0] * 3, -2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reduction in (xp.max, xp.min, xp.mean, xp.var):
            assert np.isnan(xp.compile(lambda x, reduction=reduction: reduction(x[x > 0]))(x).item())


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_arrays_without_elements_have_empty_selections(shape: tuple[int, ...]) -> None:
    x = make(np.zeros(shape))

    def function(x: Any) -> Any:
        y = x * 2.0
        y[x > 0] *= x[x > 0]
        return xp.sum(y) + xp.sum(xp.sin(x[x > 0])) + xp.sum(x[np.nonzero(x < 0)])

    slope, value = xp.compile(F.grad_and_value(xp.numpy_code(function)))(x)
    assert (slope.shape, value.item()) == (shape, 0.0)


def test_no_positions_are_within_bounds() -> None:
    function = xp.numpy_code(lambda x: (x[:1][np.nonzero(x[:1] > 9)[0]] ** 2).sum() + x.sum())
    assert xp.compile(F.grad(function))(make(np.ones(3))).tolist() == [1.0] * 3


def test_long_chains_of_operations_are_compared() -> None:
    def function(x: Any, same: bool) -> Any:
        a, b = x, x if same else x[::-1]
        for _ in range(1200):
            a, b = xp.sin(a), xp.sin(b)
        return xp.sum(x[a > 0] * x[b > 0])

    x = make([0.5, -1.0, 2.0])
    assert xp.compile(lambda x: function(x, True))(x).item() == 4.25
    with pytest.raises(CaptureError, match="different masks"):
        xp.compile(lambda x: function(x, False))(x)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a return": (lambda x: x[x > 0], "was returned"),
    "different masks": (lambda x: xp.sum(x[x > 0] * x[x < 0]), "`multiply` was given selections by different masks"),
    "another length": (lambda x: xp.sum(x[x > 0] * x[0]), "an array with its own length"),
    "written by another mask": (lambda x: change(x, (lambda y: y > 0, lambda y: y[y < 0])), "different masks"),
    "the array has changed": (lambda x: change(x * 2.0, (lambda y: y > 0, lambda y: x[x > 0])), "different masks"),
    "a sort": (lambda x: xp.sort(x[x > 0]), "`sort`, which needs an array of known length"),
    "a part": (lambda x: x[x > 0][:2], "indexed along the selected axis"),
    "an element": (lambda x: x[x > 0][0], "indexed along the selected axis"),
    "its length": (lambda x: xp.sum(x) * len(x[x > 0]), "the length of `x\\[mask\\]` was asked for"),
    "a loop over it": (lambda x: sum(x[x > 0]), "the length of `x\\[mask\\]` was asked for"),
    "a loop as long": (lambda x: list(range(x[x > 0].shape[0])), "the length of `x\\[mask\\]` was asked for"),
    "joined axes": (lambda x: xp.sum(xp.reshape(x[x[:, 0] > 0], (-1,))), "joined others|joins another"),
    "joined": (lambda x: xp.concat([x[x > 0], x[x < 0]]), "different masks"),
    "joined along its axis": (lambda x: xp.concat([x[x > 0]] * 2), "along the selected axis"),
    "positions written": (lambda x: change(x, (lambda y: xp.nonzero(y[:, 0] > 0)[0] // 2, lambda y: y[0])), "something else than a mask"),
    "positions of a selection": (lambda x: xp.nonzero(x[x > 0]), "given to `nonzero`"),
    "index arrays": (lambda x: x[x[:, 0] > 0, xp.asarray([0], device=x.device)], "other index arrays"),
    "positions by two masks": (lambda x: x[xp.nonzero(x > 0)[0], xp.nonzero(x < 0)[1]], "different masks"),
    "an integer apart": (lambda x: xp.reshape(x, (2, 2, 3, 1))[:, x[:2, 0] > 0, :, 0], "not next to the mask"),
    "an integer first": (lambda x: x[0, x[0] > 0], "before the mask"),
    "the largest integer": (lambda x: xp.max(xp.astype(x[x > 0], xp.int64)), "integers"),
    "a product's gradient": (lambda x: F.grad(lambda x: xp.prod(x[x > 0]))(x), "length"),
    "a carry": (lambda x: F.fori_loop(0, 2, lambda k, c: c, x[x > 0]), "given to a loop|was returned|lengths"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_needs_the_length_is_refused_with_the_line(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(CaptureError, match=message) as caught:
        xp.compile(function)(make(DATA[0]))
    assert re.search(r"test_selections.py, line \d+, in ", str(caught.value))


def test_shapes_that_do_not_fit_raise_the_errors_of_arrays() -> None:
    with pytest.raises(ValueError, match="could not be broadcast together"):
        xp.compile(lambda x: x[:, None, :][x[:, 0] > 0] @ x[:, :, None])(make(DATA[0]))
    with pytest.raises(IndexError, match="does not fit the shape"):
        xp.compile(lambda x: xp.sum(x[x[0] > 0]))(make(DATA[0]))
    with pytest.raises(IndexError, match="too many indices"):
        xp.compile(lambda x: xp.sum(x[x > 0, 0]))(make(DATA[0]))
