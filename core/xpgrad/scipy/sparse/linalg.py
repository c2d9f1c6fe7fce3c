"""`xpgrad.scipy.sparse.linalg`: solvers of sparse linear systems, differentiable in the matrix and the right-hand side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.faces import public_names, refusal
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import lift_all
from xpgrad._rows.namespace import EXTRAS, operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.manipulation import reshape
from xpgrad.scipy.linalg._operands import as_floating, restore_vector
from xpgrad.scipy.sparse import _rows
from xpgrad.scipy.sparse._array import SparseArray, as_sparse

__all__ = ["factorized", "spsolve"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


def spsolve(A: Any, b: Tensor) -> Tensor:
    """Solve ``A @ x == b`` for a sparse matrix (`scipy.sparse.linalg.spsolve`).

    Parameters
    ----------
    A : SparseArray, or a sparse array or matrix of SciPy's, shape (N, N)
        Matrix. Differentiable in the entries of a SparseArray; SciPy's is a constant.
    b : Tensor, shape (N,) or (..., N, K)
        Right-hand side. Only a 1-d `b` is a vector. Differentiable.

    Returns
    -------
    Tensor, shape (N,) or (..., N, K)
        In the common dtype of `A` and `b`.

    Raises
    ------
    TypeError
        `A` is not sparse, or `b` is not a Tensor or an array.
    ValueError
        The shapes do not fit.
    RuntimeError
        `A` is exactly singular. (SciPy warns, and returns nan.)

    Notes
    -----
    SuperLU factorises the matrix, once for the solution and all of its derivatives. Where the values are not in the host's memory, the
    library solves the dense system.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> d = xp.tensor([2.0, 4.0], requires_grad=True)
    >>> x = sparse.linalg.spsolve(sparse.diags_array(d), xp.asarray([1.0, 1.0]))
    >>> x.sum().backward()
    >>> d.grad
    tensor([-0.25  , -0.0625])
    """
    beside = b if isinstance(b, TensorBase) else A if isinstance(A, SparseArray) else None
    return _solve("spsolve", as_sparse("scipy.sparse.linalg.spsolve", A, beside), b)


EXTRAS["scipy.sparse.linalg.spsolve"] = spsolve


def _solve(name: str, matrix: SparseArray, b: Any) -> Tensor:
    title = f"scipy.sparse.linalg.{name}"
    if matrix.shape[0] != matrix.shape[1]:
        msg = f"{title}: `A` must be square, but has shape {matrix.shape}"
        raise ValueError(msg)
    b = lift_all(title, (matrix.data, b))[1]
    if not isinstance(b, TensorBase):
        msg = f"{title}: `b` must be a Tensor or an array, but got {type(b).__name__}"
        raise TypeError(msg)
    if not b.ndim or b.shape[0 if b.ndim == 1 else -2] != matrix.shape[0]:
        msg = f"{title}: `b` must have shape ({matrix.shape[0]},) or (..., {matrix.shape[0]}, K), but has shape {b.shape}"
        raise ValueError(msg)
    data, right = unify(title, [as_floating(matrix.data), as_floating(b)])
    dtype = operations.result_type(data, right)
    columns = (reshape(right, (*right.shape, 1)) if right.ndim == 1 else right)._cast(dtype)
    out = _rows._sparse_solution(reshape(data._cast(dtype), (matrix.nnz, 1)), columns, matrix._key, matrix.shape)
    return restore_vector(out, right.ndim == 1)


def factorized(A: Any) -> Callable[[Tensor], Tensor]:
    """Return a function that solves ``A @ x == b`` for right-hand sides `b` (`scipy.sparse.linalg.factorized`).

    Parameters
    ----------
    A : SparseArray, or a sparse array or matrix of SciPy's, shape (N, N)
        Matrix. Differentiable in the entries of a SparseArray; SciPy's is copied, as a constant on the default device.

    Returns
    -------
    callable
        ``solve(b)``, as `spsolve`. The matrix is factorised at the first call, for all calls and their derivatives.

    Raises
    ------
    TypeError
        `A` is not sparse.

    Examples
    --------
    >>> import scipy.sparse
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> step = sparse.linalg.factorized(scipy.sparse.diags_array([[1.5] * 3, [-0.25] * 2, [-0.25] * 2], offsets=[0, -1, 1]))
    >>> def heat(u):
    ...     for _ in range(10):
    ...         u = step(u)
    ...     return u.sum()
    >>> xp.func.grad(heat)(xp.ones(3))
    tensor([0.2179, 0.3073, 0.2179])
    """
    matrix = as_sparse("scipy.sparse.linalg.factorized", A)
    return lambda b: _solve("factorized", matrix, b)
