"""The rows of sparse matrices: products and solutions, of which the entries and the dense operand are differentiable.

A sparse matrix is a column of entries, of shape (..., K, 1), and the key of their places: two integer arrays of length K, the rows and the
columns. Entries at the same place add up. So ``scatter_add(entries[..., 0], key, shape)`` is the dense matrix, and its transpose has the
key in reverse. On arrays in host memory SciPy computes; elsewhere products are gathered and added up by the library.
"""

from __future__ import annotations

from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.errors import CapabilityError
from xpgrad.scipy._declare import on_the_host, row_only


def _rows_at(x: Any, places: Any, xp: Any) -> Any:
    """Return the rows of matrices at `places`."""
    return xp.gather(x, (..., places, slice(None)))


def _entries_of_outer(left: Any, right: Any, key: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Return the entries of ``left @ right.mT`` at the places of a key, added up to entries of `shape`."""
    products = _rows_at(left, key[0], xp) * _rows_at(right, key[1], xp)
    return xp.sum_to(xp.reduce_sum(products, (len(products.shape) - 1,), True), shape)


def _compose_product(xp: Any, entries: Any, x: Any, key: Any, lengths: tuple[int, int]) -> Any:
    """Multiply by gathering the rows of `x` and adding up the products."""
    products = entries * _rows_at(x, key[1], xp)
    return xp.scatter_add(products, (..., key[0], slice(None)), (*products.shape[:-2], lengths[0], products.shape[-1]))


def _multiply(xp: Any, entries: Any, x: Any, key: Any, lengths: tuple[int, int]) -> Any:
    found = on_the_host(xp, "sparse_matmul", entries, x, *key, lengths)
    return _compose_product(xp, entries, x, key, lengths) if found is None else found


@row_only(
    lambda g, x, entries_shape, key, xp: _entries_of_outer(g, x, key, entries_shape, xp),
    lambda g, entries, x_shape, key, lengths, xp: xp.sum_to(xp.special_sparse_product(entries, g, key[::-1], lengths[::-1]), x_shape),
    composed=_multiply, elementwise=False, batch="broadcast", fresh=False, kind="opaque", memory="new", dtype="same", keyed=True,
    public="matmul",
)  # fmt: skip
def _sparse_product(entries: Any, x: Any, key: Any, lengths: Any) -> Any:
    """Return the product of a sparse matrix with entries (..., K, 1) and `x` of shape (..., N, M)."""


def _solve(xp: Any, entries: Any, b: Any, key: Any, lengths: tuple[int, int]) -> Any:
    found = on_the_host(xp, "sparse_solve", entries, b, *key, lengths)
    if found is not None:
        return found
    if host_backend().special("sparse_solve") is None:
        msg = "scipy.sparse.linalg.spsolve is computed by SciPy, which is not installed; run `pip install 'xpgrad[scipy]'`"
        raise CapabilityError(msg)
    # SciPy cannot reach the values: the library solves a dense system.
    dense = xp.scatter_add(xp.reshape(entries, tuple(entries.shape[:-1])), (..., *key), (*entries.shape[:-2], *lengths))
    return xp.linalg.solve(dense, b)


def _solve_adjoint(g: Any, entries: Any, key: Any, lengths: tuple[int, int], xp: Any) -> Any:
    return xp.special_sparse_solution(entries, g, key[::-1], lengths)


@row_only(
    lambda g, entries, out, entries_shape, key, lengths, xp: _entries_of_outer(
        -_solve_adjoint(g, entries, key, lengths, xp), out, key, entries_shape, xp
    ),
    lambda g, entries, b_shape, key, lengths, xp: xp.sum_to(_solve_adjoint(g, entries, key, lengths, xp), b_shape),
    composed=_solve, elementwise=False, batch="broadcast", fresh=False, kind="opaque", memory="new", dtype="same", keyed=True,
    public="scipy.sparse.linalg.spsolve",
)  # fmt: skip
def _sparse_solution(entries: Any, b: Any, key: Any, lengths: Any) -> Any:
    """Solve ``a @ x == b`` for a sparse matrix `a` with entries (..., K, 1) and `b` of shape (..., N, M)."""
