"""Dependence: the inputs on which each element of an array depends, as a number for each element and a table of sets of inputs.

Most arrays of a program have few different sets, or one for each element in another order. So layout operations only move numbers, and
only sums, unions of operands and contractions make new sets.
"""

from __future__ import annotations

import functools
from typing import Any

from xpgrad.func._sparse.host import np, sparse

_MOST = 50_000_000  # pairs of an element and an input in one table: 600 MB


class TooDense(Exception):
    """Raised if so many elements depend on so many inputs that a sparse derivative would not pay."""


class Dependence:
    """The inputs on which each element of an array depends.

    Parameters
    ----------
    which : array of int
        A row of `sets` for each element, in the shape of the array.
    sets : scipy.sparse.csr_array of bool
        Sets of inputs, of shape ``(number of sets, number of inputs)``; row 0 is the empty set.
    """

    which: Any
    sets: Any

    def __init__(self, which: Any, sets: Any) -> None:
        self.which, self.sets = which, sets

    @functools.cached_property
    def counts(self) -> Any:
        """Number of inputs in each set."""
        return np.diff(self.sets.indptr)

    def rearrange(self, which: Any) -> Dependence:
        """Return the same sets for elements in another arrangement."""
        out = Dependence(which, self.sets)
        out.__dict__["counts"] = self.counts
        return out

    def matrix(self) -> Any:
        """Return the sets of all elements, in row-major order, as a matrix of bools."""
        which = self.which.reshape(-1)
        _check(int(self.counts[which].sum()))
        return self.sets[which]


def _check(entries: int) -> None:
    if entries > _MOST:
        raise TooDense


def input_dependence(shape: tuple[int, ...], first: int, total: int) -> Dependence:
    """Return the dependence of an input: element i depends on input number ``first + i`` of `total`."""
    size = int(np.prod(shape, dtype=np.int64))
    indptr = np.concatenate(([0], np.arange(size + 1)))
    sets = sparse.csr_array((np.ones(size, dtype=bool), np.arange(first, first + size), indptr), shape=(size + 1, total))
    return Dependence(np.arange(1, size + 1).reshape(shape), sets)


def no_dependence(shape: tuple[int, ...], total: int) -> Dependence:
    """Return the dependence of an array on no input."""
    return Dependence(np.zeros(shape, dtype=np.int64), sparse.csr_array((1, total), dtype=bool))


def union(a: Dependence, b: Dependence) -> Dependence:
    """Return the elementwise union of two dependences of one shape."""
    if a.sets is b.sets and (a.which is b.which or np.array_equal(a.which, b.which)):
        return a
    count = b.sets.shape[0]
    pairs, which = np.unique(np.concatenate(([0], (a.which * count + b.which).reshape(-1))), return_inverse=True)
    left, right = pairs // count, pairs % count
    full = np.flatnonzero(np.maximum(a.counts[left], b.counts[right]) == a.sets.shape[1])
    if len(full) > 1:  # all of them are one set, of all inputs
        kept = np.ones(len(pairs), dtype=bool)
        kept[full[1:]] = False
        number = np.cumsum(kept) - 1
        number[full] = number[full[0]]
        which, left, right = number[which], left[kept], right[kept]
    _check(int(a.counts[left].sum() + b.counts[right].sum()))
    return Dependence(which[1:].reshape(a.which.shape), a.sets[left] + b.sets[right])


def gather_sets(x: Dependence, places: Any, elements: Any, shape: tuple[int, ...]) -> Dependence:
    """Return an array of `shape` whose element at the flat `places[i]` depends on what the flat ``elements[i]`` of `x` does, for all i."""
    size = int(np.prod(shape, dtype=np.int64))
    classes = x.which.reshape(-1)[elements]
    some = classes != 0
    places, classes = places[some], classes[some]
    keys = np.unique(places * x.sets.shape[0] + classes)  # each pair once
    places, classes = keys // x.sets.shape[0], keys % x.sets.shape[0]
    _check(int(x.counts[classes].sum()))
    chosen = sparse.csr_array((np.ones(len(classes), dtype=bool), (places + 1, classes)), shape=(size + 1, x.sets.shape[0]))
    return Dependence(np.arange(1, size + 1).reshape(shape), chosen @ x.sets)


def by_places(x: Dependence, places: Any, shape: tuple[int, ...]) -> Dependence:
    """Return an array of `shape` to which each element of `x` is added at its flat place."""
    return gather_sets(x, places.reshape(-1), np.arange(x.which.size), shape)


def union_of_all(x: Dependence) -> Dependence:
    """Return one element that depends on all inputs of all elements of `x`."""
    return by_places(x, np.zeros(x.which.size, dtype=np.int64), ())


def broadcast(x: Dependence, shape: tuple[int, ...]) -> Dependence:
    """Expand an operand to the shape of the result."""
    return x if x.which.shape == shape else x.rearrange(np.broadcast_to(x.which, shape))


def union_along(x: Dependence, axes: Any) -> Dependence:
    """Return the union along axes, which stay with length 1; None means all."""
    shape = x.which.shape
    gone = set(range(len(shape))) if axes is None else {a % len(shape) for a in ((axes,) if isinstance(axes, int) else axes)}
    kept = tuple(1 if a in gone else n for a, n in enumerate(shape))
    if kept == shape:
        return x
    places = np.arange(int(np.prod(kept, dtype=np.int64))).reshape(kept)
    return by_places(x, np.broadcast_to(places, shape), kept)


def share_sets(parts: list[Dependence]) -> list[Dependence]:
    """Return the arrays with one common table of sets."""
    if all(p.sets is parts[0].sets for p in parts):
        return parts
    sets = sparse.vstack([p.sets for p in parts], format="csr", dtype=bool)
    out, offset = [], 0
    for p in parts:
        out.append(Dependence(np.where(p.which == 0, 0, p.which + offset), sets))
        offset += p.sets.shape[0]
    return out
