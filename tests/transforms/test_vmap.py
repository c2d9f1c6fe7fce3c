"""Law: `vmap` of a function is the function of each element, stacked; so are its gradients, to the second order.

Every differentiable function is compared with a loop over the batch, for any choice of batched operands, nested, and on every backend.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from rules import test_elementwise as elementwise, test_linalg, test_shapes as shapes, test_statistics as statistics
from support.central_differences import cast_for_device, loosen, loss, numbers, values
from xpgrad.func import vmap

pytestmark = pytest.mark.slow(one_in=3)

Function = Callable[..., Any]
grad = xp.autograd.grad
SIZE = 3


def _as_list(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _loop(function: Function, args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """Apply the function to each element and stack the results along axis 0."""
    rows = []
    for b in range(SIZE):
        key = [x if d is None else xp.take(x, xp.asarray([b], device=x.device), axis=d) for x, d in zip(args, dims)]
        rows.append(_as_list(function(*(x if d is None else xp.squeeze(x, axis=d) for x, d in zip(key, dims)))))
    return [xp.stack(list(column), axis=0) for column in zip(*rows)]


def _check(function: Function, points: Sequence[np.ndarray], device: str, order: int = 2, tolerance: float = 1e-10) -> None:
    """Compare `vmap` with the loop, for every choice of batched operands and several positions of the batch axis."""
    tolerance, points = loosen(tolerance, device, *points), [cast_for_device(p, device) for p in points]
    for mask in itertools.product((True, False), repeat=len(points)):
        if not any(mask):
            continue
        dims = tuple((k % (p.ndim + 1)) if m else None for k, (p, m) in enumerate(zip(points, mask), start=len(points) % 2))
        arrays = []
        for p, d in zip(points, dims):
            scale = (1.0, 0.93, 1.06)
            arrays.append(p if d is None else np.stack([p * p.dtype.type(s) for s in scale], axis=d))
        results = []
        for way in ("vmap", "loop"):
            leaves = [xp.tensor(a, device=device, requires_grad=True) for a in arrays]
            out = (
                _as_list(vmap(lambda *a: tuple(_as_list(function(*a))), in_dims=dims)(*leaves))
                if way == "vmap"
                else _loop(function, leaves, dims)
            )
            found: list[Any] = list(out)
            total = loss(out)
            if order and getattr(total, "requires_grad", False):
                first = grad(total, leaves, create_graph=order > 1, allow_unused=True, materialize_grads=True)
                found += first
                slope = loss(first)
                if order > 1 and getattr(slope, "requires_grad", False):
                    found += grad(slope, leaves, allow_unused=True, materialize_grads=True)
            results.append(found)
        assert len(results[0]) == len(results[1])
        for a, b in zip(*results):
            assert a.dtype is b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)
        nothing = [a if d is None else np.take(a, [], axis=d) for a, d in zip(arrays, dims)]
        leaves = [xp.tensor(a, device=device, requires_grad=True) for a in nothing]
        out = _as_list(vmap(lambda *a: tuple(_as_list(function(*a))), in_dims=dims)(*leaves))
        for a, b in zip(out, results[0]):
            assert (a.dtype, a.shape) == (b.dtype, (0, *b.shape[1:])), "a batch without elements"
        total = loss(out)
        if order and getattr(total, "requires_grad", False):
            for g, x in zip(grad(total, leaves, allow_unused=True, materialize_grads=True), leaves):
                assert (g.dtype, g.shape) == (x.dtype, x.shape)
                assert not values(g).any()


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", elementwise.FUNCTIONS)
def test_elementwise(name: str, kind: str, xpgrad_device: str) -> None:
    domains, is_complex = elementwise.FUNCTIONS[name]
    if kind == "complex" and not is_complex:
        return
    dtype = np.complex128 if kind == "complex" else np.float64
    sizes = [(2, 3), (3,)][: len(domains)]
    points = [domain(0.05 + 0.85 * np.abs(numbers(s, 1.0 + i))) for i, (domain, s) in enumerate(zip(domains, sizes))]
    if kind == "complex":
        points = [p + 0.3j * numbers(p.shape, 7.0) for p in points]
    function = getattr(xp, name)
    _check(function, [p.astype(dtype) for p in points], xpgrad_device)
    if len(points) == 2 and kind == "real":
        _check(lambda x: function(x, 1.25) + function(0.75, x), points[:1], xpgrad_device)
        _check(function, [points[0][0, 0], points[1]], xpgrad_device, order=1)


@pytest.mark.parametrize("name", elementwise.SPECIAL)
def test_special_arguments(name: str, xpgrad_device: str) -> None:
    function = elementwise.SPECIAL[name]
    count = function.__code__.co_argcount
    _check(function, [numbers((2, 3), 1.0 + i) for i in range(count)], xpgrad_device)


class _Drawn:
    """A substitute for Hypothesis' `draw` that returns fixed examples."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, strategy: Any) -> Any:
        from hypothesis import HealthCheck, Phase, errors, find, settings

        seen: list[Any] = []
        quiet = settings(database=None, derandomize=True, max_examples=20, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        with contextlib.suppress(errors.NoSuchExample), warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.HypothesisWarning)  # Python 3.14 frees its generators of random numbers early
            find(strategy, lambda value: bool(seen.append(value)), settings=quiet)
        return seen[int(self.random.integers(0, len(seen)))]


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", shapes.ONE)
def test_shapes(name: str, kind: str, xpgrad_device: str) -> None:
    dtype = np.complex128 if kind == "complex" else np.float64
    for seed, shape in enumerate([(2, 3), (3,), (1, 2, 2)]):
        axis = seed % len(shape)
        function = shapes.ONE[name](_Drawn(seed), shape, axis)
        _check(function, [numbers(shape, 1.0, dtype)], xpgrad_device)


@pytest.mark.parametrize("name", statistics.FUNCTIONS)
def test_statistics(name: str, xpgrad_device: str) -> None:
    function = statistics.FUNCTIONS[name]
    for axis, keep in ((None, False), (None, True), (0, False), (-1, True), ((1, 0), False)):
        _check(lambda x, axis=axis, keep=keep: function(x, axis, keep), [numbers((2, 3))], xpgrad_device)
    if name in statistics.COMPLEX:
        _check(lambda x: function(x, -1, False), [numbers((2, 3), 1.0, np.complex128)], xpgrad_device)


def without_phases(out: Any) -> list[Any]:
    """Return what is unique in a decomposition ``(u, s, vh)`` or ``(w, v)``, whose vectors a library may multiply by any phase.

    That is the singular values or eigenvalues, the matrix, the space of the first vectors, and that the vectors are orthonormal.
    """
    left, middle, right = (out[0], out[1], out[2]) if len(out) == 3 else (out[1], out[0], xp.conj(xp.matrix_transpose(out[1])))
    k = middle.shape[-1]
    u, vh = left[..., :, :k], right[..., :k, :]
    return [middle, (u * middle[..., None, :]) @ vh, u @ xp.conj(xp.matrix_transpose(u)), xp.conj(xp.matrix_transpose(left)) @ left,
            right @ xp.conj(xp.matrix_transpose(right))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("name", "sizes", "args", "kw"), test_linalg.VALUES, ids=lambda v: str(v).replace(" ", ""))
def test_linear_algebra(name: str, sizes: Any, args: Any, kw: Any, dtype: str, xpgrad_device: str) -> None:
    points = []
    for i, s in enumerate(sizes):
        points.append(test_linalg.positive(s[1:], dtype) if s and s[0] == "spd" else test_linalg.draw(s, dtype, i))
    if any(p.size == 0 for p in points):
        return
    ambiguous = name in ("svd", "eig", "eigh", "qr") or dtype == "complex128"  # the loss would depend on free phases
    first = getattr(xp.linalg, name)
    hermitian = name in ("cholesky", "eigh", "eigvalsh")

    def function(*xs: Any) -> Any:
        if hermitian:
            xs = tuple((x + xp.conj(xp.matrix_transpose(x))) / 2 for x in xs)
        out = first(*xs, *args, **kw)
        return without_phases(out) if name in ("svd", "eigh") else out

    mode = kw.get("mode") == "complete" or kw.get("full_matrices") or name == "matrix_rank" or kw.get("ord") == 0
    try:
        _check(function, points, xpgrad_device, order=0 if mode or ambiguous else 1, tolerance=1e-7)
    except xp.errors.CapabilityError as exc:
        if "has no function" not in str(exc):  # a backend may lack the function
            raise


KEYS: dict[str, Callable[[Any, Any], Any]] = {
    "one integer array": lambda x, i: x[i],
    "an integer array and a slice": lambda x, i: x[:, i % 3],
    "two integer arrays": lambda x, i: x[i, i],
    "separated integer arrays": lambda x, i: xp.stack([x, x * x], axis=-1)[i, :, i % 2],
    "an integer and an array": lambda x, i: x[1, i],
    "new axes": lambda x, i: x[None, i, None],
    "take": lambda x, i: xp.take(x, i, axis=1),
    "take_along_axis": lambda x, i: xp.take_along_axis(x, xp.stack([i, i], axis=0), axis=1),
    "basic": lambda x, i: x[1, ..., None] * xp.sum(x[::-1, 1:2]),
}


@pytest.mark.parametrize("batched", ["both", "the array", "the index"])
@pytest.mark.parametrize("name", KEYS)
def test_keys(name: str, batched: str, xpgrad_device: str) -> None:
    function = KEYS[name]
    index = np.asarray([[0, 1, 0], [1, 1, 2], [2, 0, 0]]) % 2
    array = numbers((SIZE, 2, 3) if batched != "the index" else (2, 3))
    dims = (None if batched == "the index" else 0, None if batched == "the array" else 0)
    results = []
    for way in (True, False):
        x = xp.tensor(array, device=xpgrad_device, requires_grad=True)
        i = xp.asarray(index if dims[1] == 0 else index[0], device=xpgrad_device)
        y = vmap(function, in_dims=dims)(x, i) if way else _loop(function, [x, i], dims)[0]
        (g,) = grad(loss(y), x, create_graph=True)
        (h,) = grad(loss(g), x)
        results.append((y, g, h))
    for a, b in zip(*results):
        assert a.shape == b.shape
        np.testing.assert_allclose(values(a), values(b), rtol=1e-12, atol=1e-12)


def _write(x: Any, key: Any, value: Any) -> Any:
    y = x * 1.5
    y[key] = value
    return y * y


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a slice": lambda x, v, i: _write(x, (slice(None), 1), v[:2]),
    "a scalar": lambda x, v, i: _write(x, (0, slice(1, 3)), 2.5),
    "an integer array": lambda x, v, i: _write(x, (slice(None), i), v),
    "duplicates": lambda x, v, i: _write(x, (i * 0, i), v),
    "in place": lambda x, v, i: (x * 1.0).mul_(v).add_(x),
    "through a view": lambda x, v, i: _through(x, v),
    "functions in place": lambda x, v, i: (x * v).sin_().tanh_(),
}


def _writes_into_what_is_shared(name: str, batched: tuple[Any, ...]) -> bool:
    if name in ("a scalar", "functions in place"):
        return False
    return batched[1] == 0 or (batched[2] == 0 and name in ("an integer array", "duplicates"))


def _through(x: Any, v: Any) -> Any:
    y = x * 1.0
    y[0].mul_(v)
    return y * y


@pytest.mark.parametrize("batched", list(itertools.product([0, None], repeat=3))[:-1], ids=str)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, batched: tuple[Any, ...], xpgrad_device: str) -> None:
    function = WRITES[name]
    index = np.asarray([[0, 1, 0], [1, 1, 2], [2, 0, 0]])
    results = []
    for way in (True, False):
        x = xp.tensor(numbers((SIZE, 2, 3))[(slice(None) if batched[0] == 0 else 0)], device=xpgrad_device, requires_grad=True)
        v = xp.tensor(numbers((SIZE, 3), 4.0)[(slice(None) if batched[1] == 0 else 0)], device=xpgrad_device, requires_grad=True)
        i = xp.asarray(index if batched[2] == 0 else index[0], device=xpgrad_device)
        if batched[0] is None and _writes_into_what_is_shared(name, batched):
            with pytest.raises(RuntimeError, match="of the batch share"):
                vmap(function, in_dims=batched)(x, v, i)
            return
        y = vmap(function, in_dims=batched)(x, v, i) if way else _loop(function, [x, v, i], batched)[0]
        first = grad(loss(y), [x, v], create_graph=True, allow_unused=True, materialize_grads=True)
        second = grad(loss(first), [x, v], allow_unused=True, materialize_grads=True)
        results.append((y, *first, *second))
    for a, b in zip(*results):
        np.testing.assert_allclose(values(a), values(b), rtol=1e-12, atol=1e-12)


WITHOUT_A_DERIVATIVE: dict[str, Function] = {
    "argmax": lambda x, v: xp.argmax(x),
    "argmax along": lambda x, v: xp.argmax(x, axis=1, keepdims=True),
    "argmin": lambda x, v: xp.argmin(x, keepdims=True),
    "argsort": lambda x, v: xp.argsort(x, axis=0, descending=True),
    "sort": lambda x, v: xp.sort(x),
    "count_nonzero": lambda x, v: xp.count_nonzero(x > 0, axis=0),
    "any": lambda x, v: xp.any(x > 0.9, axis=1),
    "all": lambda x, v: xp.all(x > -0.9),
    "searchsorted": lambda x, v: xp.searchsorted(xp.sort(v), x),
    "searchsorted right": lambda x, v: xp.searchsorted(xp.sort(v), x[0], side="right"),
    "searchsorted by an order": lambda x, v: xp.searchsorted(v, x, sorter=xp.argsort(v)),
    "isclose": lambda x, v: xp.isclose(x, v),
    "comparisons": lambda x, v: (x < v) & (x != v[0]) | xp.isnan(x),
    "integers": lambda x, v: xp.astype(x * 10, xp.int64) % 3,
    "shift": lambda x, v: xp.astype(x * 10, xp.int64) << 1,
    "matrix_rank": lambda x, v: xp.linalg.matrix_rank(x @ xp.matrix_transpose(x)),
    "einsum": lambda x, v: xp.einsum("ij,j->i", x, v),
    "meshgrid": lambda x, v: xp.stack(list(xp.meshgrid(v, x[0]))),
    "cumulative": lambda x, v: xp.cumulative_sum(xp.astype(x > 0, xp.int64), axis=1),
    "created": lambda x, v: xp.zeros_like(x) + xp.ones(3, dtype=x.dtype, device=x.device) + xp.full_like(v, 2.0),
    "constant": lambda x, v: xp.arange(3, device=x.device),
    "where": lambda x, v: xp.where(x > v, x, 0.0),
    "isin": lambda x, v: xp.isin(xp.round(x * 3), xp.round(v * 3)),
    "isin shared": lambda x, v: xp.isin(x, x[0]),
}


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)], ids=str)
@pytest.mark.parametrize("name", WITHOUT_A_DERIVATIVE)
def test_without_a_derivative(name: str, dims: tuple[Any, ...], xpgrad_device: str) -> None:
    function = WITHOUT_A_DERIVATIVE[name]
    x = xp.tensor(numbers((SIZE, 2, 3))[(slice(None) if dims[0] == 0 else 0)], device=xpgrad_device)
    v = xp.tensor(numbers((SIZE, 3), 4.0)[(slice(None) if dims[1] == 0 else 0)], device=xpgrad_device)
    try:
        expected = _loop(function, [x, v], dims)[0]
    except xp.CapabilityError:
        return  # another test checks the message
    found = vmap(function, in_dims=dims)(x, v)
    assert found.dtype is expected.dtype
    np.testing.assert_array_equal(values(found), values(expected))


def test_nested(xpgrad_device: str) -> None:
    x = xp.tensor(numbers((2, 3, 4)), device=xpgrad_device, requires_grad=True)
    w = xp.tensor(numbers((4, 2), 5.0), device=xpgrad_device, requires_grad=True)

    def function(row: Any) -> Any:
        return xp.tanh(row @ w) / (1 + xp.sum(row * row))

    twice = vmap(vmap(function))(x)
    flat = (
        function(xp.reshape(x, (6, 4))) if False else xp.stack([xp.stack([function(x[i, j]) for j in range(3)], axis=0) for i in range(2)])
    )
    np.testing.assert_allclose(values(twice), values(flat), rtol=1e-12)
    for a, b in zip(grad(loss(twice), [x, w]), grad(loss(flat), [x, w])):
        np.testing.assert_allclose(values(a), values(b), rtol=1e-12)
    outer = vmap(lambda a: vmap(lambda b: xp.sum(a * b) + xp.sum(a))(x[0]))(x[1])
    expected = np.asarray([[np.sum(a * b) + a.sum() for b in values(x)[0]] for a in values(x)[1]])
    np.testing.assert_allclose(values(outer), expected, rtol=1e-12)


def test_the_batch_axis_may_be_anywhere(xpgrad_device: str) -> None:
    x = xp.tensor(numbers((2, 3, 4)), device=xpgrad_device)
    for i, o in itertools.product((-3, -1, 0, 1, 2), (-2, -1, 0, 1)):
        got = vmap(lambda a: xp.sum(a * 2, axis=0), in_dims=i, out_dims=o)(x)
        expected = np.moveaxis(np.sum(np.moveaxis(values(x), i, 0) * 2, axis=1), 0, o)
        np.testing.assert_allclose(values(got), expected, rtol=1e-14)


def test_trees_and_keywords(xpgrad_device: str) -> None:
    a = xp.tensor(numbers((SIZE, 2)), device=xpgrad_device)
    b = xp.tensor(numbers((2, SIZE), 3.0), device=xpgrad_device)
    c = xp.tensor(numbers((2,), 5.0), device=xpgrad_device)
    out = vmap(lambda p, q, *, c: {"sum": p["a"] + q[0] * c, "pair": (p["a"], [q[1]])}, in_dims=({"a": 0}, [1, None]),
               out_dims={"sum": 0, "pair": (1, None)})({"a": a}, [b, 7.0 * b[0, 0]], c=c)  # fmt: skip
    # As in PyTorch, keyword arguments are the same for all elements.
    np.testing.assert_allclose(values(out["sum"]), values(a) + values(b).T * values(c))
    assert out["pair"][0].shape == (2, SIZE)
    assert out["pair"][1][0].shape == ()


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_chunks(chunk: int, xpgrad_device: str) -> None:
    x = xp.tensor(numbers((4, 3)), device=xpgrad_device)
    whole = vmap(lambda a: (xp.cumulative_sum(a), xp.sum(a)), out_dims=(1, 0))(x)
    parts = vmap(lambda a: (xp.cumulative_sum(a), xp.sum(a)), out_dims=(1, 0), chunk_size=chunk)(x)
    for p, w in zip(parts, whole):
        np.testing.assert_array_equal(values(p), values(w))


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_mask_that_all_elements_share(levels: int, xpgrad_device: str) -> None:
    """A mask that is not batched selects the same of every element, however many batches are nested."""
    mask = xp.asarray([True, False, True], device=xpgrad_device)
    x = np.arange(1.0, 2.0**levels * 3 + 1.0).reshape((2,) * levels + (3,))
    read, slope = (lambda v: v[mask]), xp.func.grad(lambda v: xp.sum(v[mask] ** 2))
    for _ in range(levels):
        read, slope = vmap(read), vmap(slope)
    given = xp.asarray(x, device=xpgrad_device)
    np.testing.assert_array_equal(read(given).numpy(), x[..., [0, 2]])
    np.testing.assert_array_equal(slope(given).numpy(), 2.0 * x * [1.0, 0.0, 1.0])


def test_a_value_that_all_elements_share_can_be_read(xpgrad_device: str) -> None:
    """What is made of constants inside `vmap` is the same for all elements, also inside another `vmap`; but not what `grad` varies."""
    given = xp.asarray([[1.0, 2.0], [3.0, 4.0]], device=xpgrad_device)

    def scaled(x: xp.Tensor) -> xp.Tensor:
        return x * float(xp.ones(x.shape, device=xpgrad_device) + 1.0)

    np.testing.assert_array_equal(vmap(vmap(scaled))(given).numpy(), [[2.0, 4.0], [6.0, 8.0]])
    read = vmap(lambda x: x * float(xp.stack([shared[0], shared[0]])[0]))
    shared: list[xp.Tensor] = []

    def loss(scale: xp.Tensor) -> xp.Tensor:
        shared[:] = [scale]
        return xp.sum(read(given))

    with pytest.raises(RuntimeError, match="carries a derivative"):
        xp.func.grad(loss)(xp.asarray(2.0, device=xpgrad_device))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.quantile(x, [0.1, 0.75], axis=0),
        lambda x: np.percentile(x, 30.0),
        lambda x: np.median(x, axis=1),
        lambda x: x * np.digitize(x, [-0.5, 0.5]),
        lambda x: np.bincount([0, 2, 2], weights=x[:, 0]),
        lambda x: np.histogram([0.1, 0.4, 0.9], bins=2, weights=x[:, 1])[0],
        lambda x: np.choose([0, 2, 1, 1], x),
        lambda x: np.nanquantile(xp.where(x > 1.0, np.nan, x), 0.3, axis=1),
    ],
)
def test_numpy_functions_read_their_constants(function: Function, xpgrad_device: str) -> None:
    """They check positions, edges and orders, which all elements share; each element's value and gradient are its own."""
    given = xp.asarray(numbers((SIZE, 3, 4)), device=xpgrad_device)
    slope = xp.func.grad(lambda x: xp.sum(function(x) ** 2))
    for mapped in (function, slope):
        expected = np.stack([mapped(x).numpy() for x in xp.unstack(given)])
        np.testing.assert_allclose(vmap(mapped)(given).numpy(), expected, rtol=1e-6)
        if not xpgrad_device.startswith(("jax", "cupy")):  # while they record, what is computed from constants is not known
            np.testing.assert_allclose(xp.compile(mapped)(given[1]).numpy(), expected[1], rtol=1e-6)


def _raises(error: type[Exception], text: str, function: Function, *args: Any, **options: Any) -> None:
    with pytest.raises(error, match=text):
        vmap(function, **options)(*args)


def test_what_one_element_cannot_do() -> None:
    x = xp.tensor(numbers((SIZE, 2)), requires_grad=True)
    for call in (float, bool, lambda a: a.item(), lambda a: a.numpy(), np.asarray, lambda a: a.tolist()):
        _raises(RuntimeError, "inside `vmap`", lambda a, call=call: call(xp.sum(a)), x)
    _raises(RuntimeError, "not supported", lambda a: a.array, x)
    _raises(RuntimeError, "not supported", lambda a: a.requires_grad_(), x)
    _raises(RuntimeError, "not supported", lambda a: xp.sum(a).backward(), x)
    _raises(xp.errors.CapabilityError, "depends on values", lambda a: a[a > 0], x)
    _raises(xp.errors.CapabilityError, "depends on values", lambda a: xp.nonzero(a), x)
    _raises(ValueError, "must only return Tensors", lambda a: 1.0, x)
    _raises(ValueError, "out_dims", lambda a: a, x, out_dims=None)
    _raises(ValueError, "no input is mapped", lambda a: a, x, in_dims=None)
    _raises(ValueError, "structure", lambda a: a, x, in_dims=(0, 0))
    _raises(ValueError, "in_dim=2", lambda a: a, x, in_dims=2)
    _raises(ValueError, "not a Tensor", lambda a: a, 3.0)
    _raises(ValueError, "same size", lambda a, b: a, x, x[1:])
    assert x.grad is None


def test_a_tensor_that_left_its_batch_is_refused() -> None:
    x = xp.tensor(numbers((SIZE, 2)))
    kept: list[Any] = []
    vmap(lambda a: kept.append(a) or a)(x)
    _raises(RuntimeError, "two different calls", lambda a: a + kept[0], x)


def test_an_element_is_refused_after_its_call(xpgrad_device: str) -> None:
    kept: list[Any] = []
    vmap(lambda a: kept.append(a) or a)(xp.ones((2, 3), device=xpgrad_device))
    for use in (
        lambda a: a + 1,
        xp.sin,
        lambda a: a[None],
        lambda a: a.detach(),
        lambda a: xp.stack([a, a]),
        lambda a: a.sum(),
        lambda a: a * a,
    ):
        with pytest.raises(RuntimeError, match="has returned: it left the function"):
            use(kept[0])
    assert "batch=(2,)" in repr(kept[0])  # which may still be looked at


def test_what_is_shared_is_not_written_to() -> None:
    x, shared = xp.tensor(numbers((SIZE, 2))), xp.tensor(numbers((2,)))
    for write in (lambda a: shared.add_(a), lambda a: shared.__setitem__(0, a[0]), lambda a: shared.copy_(a)):
        before = values(shared).copy()
        _raises(RuntimeError, "that all elements of the batch share", lambda a, write=write: (write(a), a)[1], x)
        np.testing.assert_array_equal(values(shared), before)


def test_per_sample_hooks() -> None:
    x = xp.tensor(numbers((SIZE, 2)), requires_grad=True)
    seen = []

    def function(a: Any) -> Any:
        y = a * 2
        y.register_hook(lambda g: seen.append(g.shape) or g * 3)
        return xp.sum(y)

    xp.sum(vmap(function)(x)).backward()
    assert seen == [(2,)]
    np.testing.assert_array_equal(values(x.grad), np.full((SIZE, 2), 6.0))


def test_values_agree_with_jax() -> None:
    jax = pytest.importorskip("jax")
    x, w = numbers((4, 3)), numbers((3, 3), 4.0)

    def function(m: Any) -> Any:
        return lambda row: m.sum(m.tanh(w @ row)) / (1 + math.pi * m.max(row))

    def ours(row: Any) -> Any:
        return xp.sum(xp.tanh(xp.asarray(w) @ row)) / (1 + math.pi * xp.max(row))

    with (
        jax.experimental.enable_x64() if hasattr(jax, "experimental") and hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True)
    ):
        expected = jax.vmap(function(jax.numpy))(x)
        np.testing.assert_allclose(values(vmap(ours)(xp.asarray(x))), np.asarray(expected), rtol=1e-12)


def test_an_element_can_be_detached_in_place(xpgrad_device: str) -> None:
    x = xp.tensor(numbers((3, 2)), device=xpgrad_device, requires_grad=True)

    def function(v: Any) -> Any:
        y = v * 2
        assert y.detach_() is y
        assert not y.requires_grad
        return y * v

    (g,) = grad(xp.sum(vmap(function)(x)), x)
    np.testing.assert_allclose(values(g), 2 * numbers((3, 2)))


def test_an_element_says_whether_it_is_of_inference(xpgrad_device: str) -> None:
    seen: list[bool] = []

    def look(v: Any) -> Any:
        seen.extend([v.is_inference(), (v * 1).is_inference()])
        return v * 1

    plain = xp.ones((2, 2), device=xpgrad_device)
    with xp.inference_mode():
        made = xp.ones((2, 2), device=xpgrad_device)
        vmap(look)(plain)
    vmap(look)(made)
    vmap(look)(plain)
    assert seen == [False, True, True, False, False, False]


def test_an_element_that_left_its_call_cannot_be_returned_by_another(xpgrad_device: str) -> None:
    left: list[Any] = []
    x = xp.ones((2, 2), device=xpgrad_device)
    vmap(lambda v: (left.append(v * 2), v)[1])(x)
    for program in (lambda v: left[0], lambda v: left[0] + v, lambda v: (v, left[0])):
        with pytest.raises(RuntimeError, match="one of them left its call"):
            vmap(program)(x)


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "before", "after"])
def test_hooks_may_give_what_all_elements_share(kind: str, create: bool) -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    shared = xp.asarray([5.0, 6.0])
    y = xp.sin(x) * 1
    if kind == "tensor":
        y.register_hook(lambda g: shared)
    elif kind == "before":
        y.grad_fn.register_prehook(lambda gs: (shared,))
    else:
        y.grad_fn.register_hook(lambda given, gs: (shared, None)[: len(given)])
    eye = xp.eye(2)
    (g,) = xp.autograd.grad(y * 1, x, eye, is_grads_batched=True, create_graph=create)
    np.testing.assert_allclose(np.asarray(g.detach()), [np.cos([1.0, 2.0]) * [5.0, 6.0]] * 2)
    wrong = xp.sin(x)
    wrong.register_hook(lambda g: xp.asarray([5, 6]))
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        xp.autograd.grad(wrong * 1, x, eye, is_grads_batched=True, create_graph=create)


_PROMOTED: dict[str, Function] = {
    "add": xp.add, "where": lambda a, b: xp.where(a > 0, a, b), "hypot": xp.hypot,
    "nested": lambda a, b: vmap(xp.multiply, (0, None))(a, b),
}  # fmt: skip


@pytest.mark.parametrize("name", list(_PROMOTED))
@pytest.mark.parametrize("number", ["int32", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float32"])
def test_a_number_that_all_elements_share_promotes_as_outside(dtype: str, number: str, name: str, xpgrad_device: str) -> None:
    """A 0-d Tensor beside a batched one takes part in promotion: `1000` beside int8 would overflow."""
    try:
        a = xp.ones((2, 3), dtype=dtype, device=xpgrad_device)
        b = xp.full((), 1000, dtype=number, device=xpgrad_device)
    except xp.errors.CapabilityError:
        pytest.skip("the device lacks the dtype")
    for args, dims in (((a, b), (0, None)), ((b, a), (None, 0))):
        try:
            expected = _PROMOTED[name](*(x if d is None else x[0] for x, d in zip(args, dims)))
        except (TypeError, ValueError):  # not defined for bool, or nested with the number first
            continue
        found = vmap(_PROMOTED[name], dims)(*args)
        assert found.dtype is expected.dtype
        assert found[0].tolist() == expected.tolist()
