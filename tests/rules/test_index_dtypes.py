"""Law: an index means the same in every integer dtype, for reads, writes and additions and their derivatives to second order.

The reference is NumPy: an array of element numbers, indexed with int64, shows where each element of the result comes from. The arrays have
more rows, and wider rows, than the narrow dtypes can count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import cast_for_device, loosen, numbers, values

NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: Numbers of rows: fewer and more than the dtype can count.
ROWS = {1: (100, 300), 2: (20000, 40000), 4: (300,), 8: (300,)}


@dataclass(frozen=True)
class Case:
    """A function of Tensors `x` (two columns), `v` (in the shape of `like` at the index) and an index.

    ``sources(x, v, i)`` is called with element numbers and an int64 index. It returns two arrays of one shape: numbers of elements of the
    result, and numbers of the elements that are added to them.
    """

    ours: Callable[[Any, Any, Any], Any]
    sources: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _read(reads: Callable[[Any, Any], Any]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def sources(x: np.ndarray, v: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = reads(x, i)
        return np.arange(found.size).reshape(found.shape), found

    return sources


def _write(x: np.ndarray, v: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out = x.copy()
    out[i] = v
    return np.arange(out.size), out.reshape(-1)


def _add(x: np.ndarray, v: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([x.reshape(-1), x[i].reshape(-1)]), np.concatenate([x.reshape(-1), v.reshape(-1)])


def _put_values(x: Any, v: Any, i: Any) -> Any:
    y = x * 1
    y[i] = v
    return y


#: Each function that takes indices, with its equivalent in NumPy.
CASES: dict[str, Case] = {
    "x[i]": Case(lambda x, v, i: x[i], _read(lambda x, i: x[i])),
    "x[i, :]": Case(lambda x, v, i: x[i, :], _read(lambda x, i: x[i, :])),
    "x[i, 1]": Case(lambda x, v, i: x[i, 1], _read(lambda x, i: x[i, 1])),
    "x[i, j]": Case(lambda x, v, i: x[i, i * 0], _read(lambda x, i: x[i, i * 0])),
    "x[i[:, None]]": Case(lambda x, v, i: x[i[:, None]], _read(lambda x, i: x[i[:, None]])),
    "x[:, i]": Case(lambda x, v, i: xp.permute_dims(x, (1, 0))[:, i], _read(lambda x, i: x.T[:, i])),
    "one axis": Case(lambda x, v, i: xp.reshape(x[:, 1], (-1,))[i], _read(lambda x, i: x[:, 1][i])),
    "take": Case(lambda x, v, i: xp.take(x, i, axis=0), _read(lambda x, i: x[i])),
    "take last": Case(lambda x, v, i: xp.take(xp.permute_dims(x, (1, 0)), i, axis=-1), _read(lambda x, i: x.T[:, i])),
    "take_along_axis": Case(
        lambda x, v, i: xp.take_along_axis(x, xp.stack([i, i], axis=1), axis=0),
        _read(lambda x, i: np.take_along_axis(x, np.stack([i, i], 1), 0)),
    ),
    "write": Case(_put_values, _write),
    "index_add_": Case(lambda x, v, i: (x * 1).index_add_(0, i, v), _add),
    "vmap of x": Case(lambda x, v, i: xp.func.vmap(lambda c: c[i], in_dims=1)(x), _read(lambda x, i: x.T[:, i])),
    "vmap of i": Case(lambda x, v, i: xp.func.vmap(lambda k: x[k])(i), _read(lambda x, i: x[i])),
    "vmap of both": Case(
        lambda x, v, i: xp.func.vmap(lambda c, k: c[k], in_dims=(1, 0))(x, xp.stack([i, i])), _read(lambda x, i: x.T[:, i]),
    ),
    "vmap of take": Case(
        lambda x, v, i: xp.func.vmap(lambda c, k: xp.take(c, k), in_dims=(1, 0))(x, xp.stack([i, i])), _read(lambda x, i: x.T[:, i])
    ),
    "vmap of take_along_axis": Case(
        lambda x, v, i: xp.func.vmap(lambda c, k: xp.take_along_axis(c, k), in_dims=(1, 0))(x, xp.stack([i, i])),
        _read(lambda x, i: x.T[:, i]),
    ),
    "vmap of a write": Case(lambda x, v, i: xp.func.vmap(_put_values, in_dims=(1, 1, None), out_dims=1)(x, v, i), _write),
    "vmap of a write at i": Case(
        lambda x, v, i: xp.func.vmap(_put_values, in_dims=(1, 1, 0), out_dims=1)(x, v, xp.stack([i, i])), _write
    ),
    "vmap of index_add_": Case(
        lambda x, v, i: xp.func.vmap(lambda c, d: (c * 1).index_add_(0, i, d), in_dims=(1, 1), out_dims=1)(x, v), _add
    ),
    "vmap of index_add_ at i": Case(
        lambda x, v, i: xp.func.vmap(lambda c, d, k: (c * 1).index_add_(0, k, d), in_dims=(1, 1, 0), out_dims=1)(x, v, xp.stack([i, i])),
        _add,
    ),
}  # fmt: skip


def _index(name: str, rows: int, device: str) -> tuple[Any, np.ndarray]:
    """Return indices of a dtype into `rows` rows, with duplicates: as a Tensor, and in int64."""
    if all(d.name != name for d in xp.zeros(1, dtype="float32", device=device).backend.dtypes()):
        pytest.skip(f"{device} has no {name}")
    top = min(rows, np.iinfo(name).max + 1) - 1
    wide = np.asarray([0, 5, top, top * 9 // 10, 5, top - 1, top] + ([-1, -7, -min(rows, 128)] if name.startswith("i") else []), np.int64)
    return xp.asarray(wide.astype(name), device=device), wide


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_to_second_order(name: str, dtype: str, xpgrad_device: str) -> None:
    for rows in ROWS[np.dtype(dtype).itemsize]:
        _check(CASES[name], rows, *_index(dtype, rows, xpgrad_device))


def _check(case: Case, rows: int, i: Any, wide: np.ndarray) -> None:
    sizes = [(rows, 2), (len(wide), 2)]
    device = str(i.device)
    z = [cast_for_device(numbers(s, 1.0 + k), device) for k, s in enumerate(sizes)]
    flat = np.concatenate([a.reshape(-1) for a in z])
    places = [a.reshape(s) for a, s in zip(np.split(np.arange(flat.size), [2 * rows]), sizes)]
    to, source = (a.reshape(-1) for a in case.sources(places[0], places[1], wide))

    def forward(a: np.ndarray) -> np.ndarray:
        return np.bincount(to, a[source])

    def backward(a: np.ndarray) -> np.ndarray:
        return np.bincount(source, a[to], flat.size)

    leaves = [xp.tensor(a, device=i.device, requires_grad=True) for a in z]
    y = case.ours(leaves[0], leaves[1], i)
    expected = forward(flat)
    np.testing.assert_allclose(values(y).reshape(-1), expected, rtol=loosen(1e-12, device))
    grads = xp.autograd.grad(xp.sum(y * y * y), leaves, create_graph=True, allow_unused=True)
    _compare(grads, backward(3 * expected**2), rows)
    direction = numbers(flat.shape, 3.0)
    parts = [a.reshape(s) for a, s in zip(np.split(direction, [2 * rows]), sizes)]
    slope = sum(xp.sum(g * xp.asarray(cast_for_device(d, device), device=device)) for g, d in zip(grads, parts) if g is not None)
    _compare(xp.autograd.grad(slope, leaves, allow_unused=True), backward(6 * expected * forward(direction)), rows)


def _compare(found: Any, expected: np.ndarray, rows: int) -> None:
    for g, e in zip(found, np.split(expected, [2 * rows])):
        if g is None:
            assert not e.any()
        else:
            tolerance = loosen(1e-10, str(g.device))
            np.testing.assert_allclose(values(g).reshape(-1), e, rtol=tolerance, atol=tolerance * (1e-2 if g.dtype is xp.float64 else 1.0))


@pytest.mark.parametrize("kind", ["float32", "complex64", "int32"])
@pytest.mark.parametrize("dtype", NAMES)
def test_writes_without_history(dtype: str, kind: str, xpgrad_device: str) -> None:
    rows = ROWS[np.dtype(dtype).itemsize][-1]
    i, wide = _index(dtype, rows, xpgrad_device)
    source = np.arange(4 * len(wide)).reshape(-1, 4).astype(kind)
    y, z, w = (xp.zeros((rows, 4), dtype=kind, device=xpgrad_device) for _ in range(3))
    y.index_add_(0, i, xp.asarray(source, device=xpgrad_device))
    z[i] = xp.asarray(source, device=xpgrad_device)
    w[i, 1] = 2
    added, written, column = (np.zeros((rows, 4), kind) for _ in range(3))
    np.add.at(added, wide, source)
    written[wide] = source
    column[wide, 1] = 2
    for found, expected in ((y, added), (z, written), (w, column)):
        np.testing.assert_array_equal(values(found), expected)


@pytest.mark.parametrize("dtype", NAMES)
def test_searchsorted_takes_every_sorter(dtype: str, xpgrad_device: str) -> None:
    data, points = (cast_for_device(numbers(shape, start), xpgrad_device) for shape, start in (((100,), 1.0), ((7,), 5.0)))
    order, wide = np.argsort(data).astype(dtype), np.sort(data)
    _index(dtype, 100, xpgrad_device)  # skips if the device lacks the dtype
    x, sorter, where = (xp.asarray(a, device=xpgrad_device) for a in (data, order, points))
    np.testing.assert_array_equal(values(xp.searchsorted(x, where, sorter=sorter)), np.searchsorted(wide, points))
    batched = xp.func.vmap(lambda a, s: xp.searchsorted(a, where, sorter=s))(xp.stack([x, x]), xp.stack([sorter, sorter]))
    np.testing.assert_array_equal(values(batched), [np.searchsorted(wide, points)] * 2)


@pytest.mark.parametrize("number", [2**64 - 1, 2**64 - 2, 2**63])
def test_what_no_signed_integer_holds_is_out_of_range(number: int, xpgrad_device: str) -> None:
    """A uint64 index above the int64 range is out of range and not counted from the end."""
    _index("uint64", 100, xpgrad_device)
    x = xp.zeros((2, 3), device=xpgrad_device)
    i = xp.asarray(np.asarray([number], np.uint64), device=xpgrad_device)
    uses: list[Callable[[], Any]] = [
        lambda: x[i],
        lambda: x[i, i],
        lambda: xp.take(x, i, axis=0),
        lambda: xp.take_along_axis(x, xp.reshape(i, (1, 1)), axis=0),
        lambda: _put_values(x, 1.0, i),
        lambda: (x * 1).index_add_(0, i, xp.ones((1, 3), device=xpgrad_device)),
    ]
    for use in uses:
        with pytest.raises(IndexError, match="out of"):
            values(use())


def test_positions_beyond_the_dtype_of_the_index() -> None:
    """An int32 index works even if element positions exceed int32 (the zeros cost no memory until they are read)."""
    kernels = xp.zeros(1, device="numpy").backend.kernels
    place = np.asarray([2**26 - 1, 7], np.int32)
    out = kernels.scatter_add(np.ones((2, 33), np.int8), (place,), (2**26, 33))
    assert out[-1].tolist() == out[7].tolist() == [1] * 33
    assert not out[0].any()


#: Each way to read, write or add at an index: a function of an array of shape (2, 3) and of indices into its first axis.
OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "x[i]": lambda x, i: x[i],
    "x[i, 1]": lambda x, i: x[i, 1],
    "take": lambda x, i: xp.take(x, i, axis=0),
    "take_along_axis": lambda x, i: xp.take_along_axis(x, xp.stack([i, i, i], axis=1), axis=0),
    "write": lambda x, i: _put_values(x, 1.0, i),
    "index_add_": lambda x, i: (x * 1).index_add_(0, i, xp.ones((i.shape[0], 3), dtype=x.dtype, device=x.device)),
    "index_add_ of columns": lambda x, i: (xp.permute_dims(x, (1, 0)) * 1).index_add_(
        1, i, xp.ones((3, i.shape[0]), dtype=x.dtype, device=x.device)
    ),
    "vmap of index_add_": lambda x, i: xp.func.vmap(
        lambda c, k: (c * 1).index_add_(0, k, xp.ones_like(c)[:1]), in_dims=(1, None)
    )(x, i[:1]),
    "vmap of i in index_add_": lambda x, i: xp.func.vmap(
        lambda c, k: (c * 1).index_add_(0, k, xp.ones_like(c)[:1]), in_dims=(1, 0)
    )(x, xp.stack([i[:1], i[:1] * 0, i[:1] * 0])),
    "vmap of i": lambda x, i: xp.func.vmap(lambda k, c: c[k], in_dims=(0, 1))(xp.stack([i, i * 0, i * 0]), x),
    "vmap of i, x shared": lambda x, i: xp.func.vmap(lambda k: x[0, :2][k])(xp.stack([i, i * 0])),
    "vmap of i in a write": lambda x, i: xp.func.vmap(lambda k, c: _put_values(c, 1.0, k), in_dims=(0, 1))(xp.stack([i, i * 0, i * 0]), x),
    "vmap of i in take_along_axis": lambda x, i: xp.func.vmap(
        lambda k, c: xp.take_along_axis(c, k), in_dims=(0, 1)
    )(xp.stack([i, i * 0, i * 0]), x),
}  # fmt: skip


@pytest.mark.parametrize("places", [[-3], [-4], [-5], [2], [3], [6], [-3, 0]])
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_range_is_an_error(name: str, places: list[int], xpgrad_device: str) -> None:
    """The error names the index and the axis's length, and nothing is written."""
    data = cast_for_device(numbers((2, 3)), xpgrad_device)
    x = xp.tensor(data, device=xpgrad_device)
    i = xp.asarray(places, dtype="int64", device=xpgrad_device)
    with pytest.raises(IndexError, match=rf"index {places[0]} is out of (range|bounds) for axis . (of length|with size) 2"):
        values(OUTSIDE[name](x, i))
    np.testing.assert_array_equal(values(x), data)
    y = x * 1
    with pytest.raises(IndexError, match=f"index {places[0]} is out of range for axis 0 of length 2: indices are -2 to 1"):
        values(y.index_add_(0, i, xp.ones((len(places), 3), device=xpgrad_device)))
