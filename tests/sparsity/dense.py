"""Dense reference derivatives for the sparse ones: one product for each row or column, as one matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp

__all__ = ["dense_hessian", "dense_jacobian", "of_one_array"]


def _host(x: Any) -> Any:
    return x.detach().to_device("numpy").numpy()


def _leaves(out: Any) -> list[Any]:
    return [leaf for part in out for leaf in _leaves(part)] if isinstance(out, (tuple, list)) else [out]


def dense_jacobian(f: Callable[..., Any], *xs: Any, mode: Any = xp.func.jacrev) -> Any:
    """Return the Jacobian of all outputs in all arguments as a two-dimensional NumPy array."""
    found = _leaves(mode(f, tuple(range(len(xs))))(*xs))
    sizes = [math.prod(x.shape) for x in xs]
    rows = []
    for k, y in enumerate(_leaves(f(*xs))):
        parts = found[k * len(xs) : (k + 1) * len(xs)]
        rows.append(np.concatenate([_host(p).reshape(math.prod(y.shape), n) for p, n in zip(parts, sizes)], axis=1))
    return np.concatenate(rows)


def dense_hessian(f: Callable[..., Any], *xs: Any) -> Any:
    """Return the Hessian in all arguments as a two-dimensional NumPy array."""
    found = xp.func.hessian(f, tuple(range(len(xs))))(*xs)
    sizes = [math.prod(x.shape) for x in xs]
    return np.block([[_host(part).reshape(m, n) for part, n in zip(row, sizes)] for row, m in zip(found, sizes)])


def of_one_array(matrix: Any) -> Any:
    """Return a sparse matrix of any library as a NumPy array."""
    if hasattr(matrix, "toarray"):
        found = matrix.toarray()
        return found.get() if hasattr(found, "get") else found  # CuPy's arrays are not converted implicitly
    if hasattr(matrix, "todense"):
        return np.asarray(matrix.todense())
    dense = matrix.to_dense()
    return np.asarray(dense.cpu() if hasattr(dense, "cpu") else dense)
