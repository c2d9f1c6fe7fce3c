"""Products with sparse matrices and solutions of sparse systems, by `scipy.sparse`.

A matrix is given by its entries, of shape (..., K, 1), and their rows and columns, of shape (K,). Entries at the same place add up.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["function"]


class _Pattern:
    """The places of a matrix in compressed rows, and the factors of the matrix of these places that was solved with last.

    Attributes
    ----------
    order : array of int or None
        The entries row by row; None if they are in that order.
    indices, starts : array of int
        The column of each entry in that order, and the number of the first entry of each row.
    """

    def __init__(self, rows: Any, columns: Any, count: int) -> None:
        wide = np.int32 if max(len(rows), count) < np.iinfo(np.int32).max else np.int64
        self.order = None if (rows[1:] >= rows[:-1]).all() else np.argsort(rows, kind="stable")
        self.indices = (columns if self.order is None else columns[self.order]).astype(wide)
        self.starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))).astype(wide)
        self.indices.flags.writeable = self.starts.flags.writeable = False  # matrices share them
        self._factors: tuple[Any, Any] | None = None

    def matrix(self, kind: Any, entries: Any, shape: tuple[int, int]) -> Any:
        """Return the matrix with entries of shape (K,) as a `csr_array`, or its transpose as a `csc_array`."""
        return kind((entries if self.order is None else entries[self.order], self.indices, self.starts), shape=shape)

    def factors(self, linalg: Any, sparse: Any, entries: Any, shape: tuple[int, int]) -> Any:
        """Return the factors of the transpose, which those of the last call are if the entries are the same; None if one is not finite."""
        known = self._factors
        if known is None or known[0].dtype != entries.dtype or not np.array_equal(known[0], entries):
            if not np.isfinite(entries).all():
                return None
            # NB: SuperLU adds up entries of one place in the matrix that it is given.
            known = self._factors = (entries.copy(), linalg.splu(self.matrix(sparse.csc_array, entries, shape).copy()))
        return known[1]


#: By the ids of the arrays of rows and columns, which the value refers to weakly, and the number of rows: their pattern.
_PATTERNS: dict[tuple[int, int, int], tuple[Any, Any, _Pattern]] = {}


def _known_pattern(rows: Any, columns: Any, count: int) -> _Pattern | None:
    found = _PATTERNS.get((id(rows), id(columns), count))
    return found[2] if found is not None and found[0]() is rows and found[1]() is columns else None


def _find_pattern(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[_Pattern, bool]:
    """Return the pattern with these rows and columns, and whether it is that of the transpose; each is kept as long as its arrays.

    So a function, its derivatives and further calls compress and factorise a matrix once.
    """
    if (found := _known_pattern(rows, columns, shape[0])) is not None:
        return found, False
    if (found := _known_pattern(columns, rows, shape[1])) is not None:
        return found, True
    key = (id(rows), id(columns), shape[0])

    def forget(_: Any) -> None:
        _PATTERNS.pop(key, None)

    found = _Pattern(rows, columns, shape[0])
    _PATTERNS[key] = (weakref.ref(rows, forget), weakref.ref(columns, forget), found)
    return found, False


def _map_batch(one: Callable[[Any, Any], Any], entries: Any, x: Any, rows: int) -> Any:
    """Call ``one(entries, x)`` for the matrices of a batch, with entries of shape (K,) and `x` of shape (N, M); it returns `rows` rows.

    For a batch of right-hand sides of one matrix it is called once: they are the columns. SciPy has no half precision.
    """
    dtype = np.result_type(entries, x)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    entries, x = entries[..., 0].astype(wide, copy=False), x.astype(wide, copy=False)
    if entries.ndim == 1 and x.ndim == 2:
        return one(entries, x).astype(dtype, copy=False)
    n, m = x.shape[-2:]
    batch = np.broadcast_shapes(entries.shape[:-1], x.shape[:-2])
    if all(length == 1 for length in entries.shape[:-1]):
        columns = x.transpose(-2, *range(x.ndim - 2), -1).reshape(n, -1)
        out = np.moveaxis(one(entries.reshape(-1), columns).reshape(rows, *x.shape[:-2], m), 0, -2)
        return np.array(np.broadcast_to(out, (*batch, rows, m)), dtype)
    entries = np.broadcast_to(entries, (*batch, entries.shape[-1]))
    x = np.broadcast_to(x, (*batch, n, m))
    out = np.empty((*batch, rows, m), dtype)
    for i in np.ndindex(batch):
        out[i] = one(entries[i], x[i])
    return out


def _multiply(sparse: Any, entries: Any, x: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    pattern, turned = _find_pattern(rows, columns, shape)
    kind = sparse.csc_array if turned else sparse.csr_array

    def one(entries: Any, x: Any) -> Any:
        matrix = pattern.matrix(kind, entries, shape)
        return (matrix @ x[:, 0])[:, None] if x.shape[1] == 1 else matrix @ x

    return _map_batch(one, entries, x, shape[0])


def _solve(sparse: Any, entries: Any, b: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    linalg = importlib.import_module("scipy.sparse.linalg")
    pattern, turned = _find_pattern(rows, columns, shape)

    def one(entries: Any, b: Any) -> Any:
        if 0 in b.shape:
            return b
        factors = pattern.factors(linalg, sparse, entries, shape) if np.isfinite(b).all() else None
        return np.full_like(b, np.nan) if factors is None else factors.solve(b, "N" if turned else "T")

    return _map_batch(one, entries, b, shape[0])


def function(name: str) -> Callable[..., Any] | None:
    """Return the function of that name; None if SciPy is not installed."""
    try:
        sparse = importlib.import_module("scipy.sparse")
    except ModuleNotFoundError:
        return None
    found = {"matmul": _multiply, "solve": _solve}.get(name)
    return None if found is None else functools.partial(found, sparse)
