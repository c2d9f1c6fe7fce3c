"""Functions that make sparse arrays: of entries and their places, of compressed rows or columns, and of diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_int, shown
from xpgrad._basics.scalars import is_scalar, is_scipy_sparse
from xpgrad._operations.lift import as_operand
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._sparse.host import np
from xpgrad.rules.manipulation import broadcast_to, concat, reshape
from xpgrad.scipy.sparse._array import SparseArray, _as_places, _as_shape, as_sparse


def _as_entries(name: str, data: Any) -> Tensor:
    if isinstance(data, (list, tuple)):
        data = operations.asarray(data)
    entries = as_operand(f"scipy.sparse.{name}", data)
    return reshape(entries, (-1,)) if entries.ndim != 1 else entries


def _given(name: str, arg: Any) -> SparseArray | None:
    """Return an argument that is a sparse array already; None for a tuple."""
    if isinstance(arg, SparseArray) or is_scipy_sparse(arg):
        found = as_sparse(f"scipy.sparse.{name}", arg)
        out = SparseArray._of(found.data, found.row, found.col, found.shape, found._key)  # a SparseMatrix becomes an array
        out._order = found._order
        return out
    if isinstance(arg, tuple):
        return None
    msg = (
        f"scipy.sparse.{name}: a tuple of the entries and their places is wanted, or a sparse array, but got {shown(arg)}; the places of a "
        "dense matrix would depend on its values"
    )
    raise TypeError(msg)


def _from_places(name: str, arg: Any, shape: Any) -> SparseArray:
    data, places = arg
    if not isinstance(places, (tuple, list)) or len(places) != 2:
        msg = f"scipy.sparse.{name}: the places must be a pair (row, col), but got {shown(places)}"
        raise TypeError(msg)
    row, col = (_as_places(argument, x).reshape(-1) for argument, x in zip(("row", "col"), places))
    if shape is None:
        if not row.size:
            msg = f"scipy.sparse.{name}: `shape` is needed without entries"
            raise ValueError(msg)
        shape = (int(row.max()) + 1, int(col.max()) + 1)
    return SparseArray(_as_entries(name, data), row, col, shape)


def _compressed(name: str, arg: Any, shape: Any, axis: int) -> SparseArray:
    """Make a sparse array of compressed rows (axis 0) or columns (axis 1)."""
    order = ("csr", "csc")[axis]
    found = _given(name, arg)
    if found is None and len(arg) == 2:
        found = _from_places(name, arg, shape)
    if found is not None:
        return found._as_scipys(order)
    if len(arg) != 3:
        msg = f"scipy.sparse.{name}: (data, indices, indptr) or (data, (row, col)) is wanted, but got a tuple of {len(arg)}"
        raise TypeError(msg)
    data, indices, starts = arg
    indices, starts = _as_places("indices", indices), _as_places("indptr", starts)
    if starts.ndim != 1 or not len(starts) or (np.diff(starts) < 0).any() or starts[0] != 0 or starts[-1] > len(indices):
        msg = f"scipy.sparse.{name}: `indptr` must ascend from 0 to at most the number of indices, {len(indices)}, but is {starts}"
        raise ValueError(msg)
    entries, count = _as_entries(name, data), int(starts[-1])
    lines = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if shape is None:
        across = int(indices[:count].max()) + 1 if count else 0
        shape = (len(starts) - 1, across) if axis == 0 else (across, len(starts) - 1)
    elif _as_shape(f"scipy.sparse.{name}", shape)[axis] != len(starts) - 1:
        msg = f"scipy.sparse.{name}: `indptr` of length {len(starts)} does not fit to shape {tuple(shape)}"
        raise ValueError(msg)
    row, col = (lines, indices[:count]) if axis == 0 else (indices[:count], lines)
    out = SparseArray(entries[:count] if count < entries.shape[0] else entries, row, col, shape)
    out._order = order
    return out


def coo_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Make a sparse array of entries and their places (`scipy.sparse.coo_array`).

    Parameters
    ----------
    arg : (data, (row, col)), or a sparse array
        Entries, a Tensor or array, which is flattened, with the integer arrays of their rows and columns. Entries at the same place add up.
        Differentiable in the entries. A sparse array or matrix of SciPy's becomes a constant on the default device.
    shape : (int, int), optional
        Shape. Default: the smallest that contains all places.

    Returns
    -------
    SparseArray

    Raises
    ------
    TypeError
        `arg` is something else, such as a dense matrix, or places are not integers.
    ValueError
        Lengths do not fit, or a place is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> stiffness = xp.tensor([1.0, 2.0], requires_grad=True)  # of two springs in a row, fixed at the left end
    >>> ends = xp.stack([stiffness, stiffness, -stiffness, -stiffness])
    >>> k = sparse.coo_array((ends, ([0, 1, 1, 2, 0, 1, 1, 2], [0, 1, 1, 2, 1, 2, 0, 1])), shape=(3, 3))
    >>> u = sparse.linalg.spsolve(k[1:, 1:], xp.asarray([0.0, 1.0]))
    >>> u.detach()
    tensor([1. , 1.5])
    >>> u[1].backward()
    >>> stiffness.grad
    tensor([-1.  , -0.25])
    """
    found = _given("coo_array", arg)
    if found is not None:
        return found
    if len(arg) != 2:
        msg = f"scipy.sparse.coo_array: (data, (row, col)) is wanted, but got a tuple of {len(arg)}"
        raise TypeError(msg)
    return _from_places("coo_array", arg, shape)


def csr_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Make a sparse array of compressed rows (`scipy.sparse.csr_array`).

    Parameters
    ----------
    arg : (data, indices, indptr), (data, (row, col)), or a sparse array
        Row ``i`` has the entries ``data[indptr[i]:indptr[i + 1]]`` in the columns ``indices[indptr[i]:indptr[i + 1]]``. Differentiable in
        the entries. The other forms are those of `coo_array`.
    shape : (int, int), optional
        Shape. Default: the smallest that contains all places.

    Returns
    -------
    SparseArray

    Raises
    ------
    TypeError, ValueError
        As `coo_array`; also if `indptr` does not ascend or does not fit.

    Examples
    --------
    A constant matrix of SciPy's is converted once for many products:

    >>> import scipy.sparse
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> a = sparse.csr_array(scipy.sparse.diags_array([1.0, 2.0, 3.0]))
    >>> a
    <SparseArray: 3 x 3, 3 entries, float64 on numpy>
    >>> xp.func.grad(lambda x: x @ (a @ x))(xp.ones(3))
    tensor([2., 4., 6.])
    """
    return _compressed("csr_array", arg, shape, 0)


def csc_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Make a sparse array of compressed columns (`scipy.sparse.csc_array`).

    Parameters
    ----------
    arg : (data, indices, indptr), (data, (row, col)), or a sparse array
        Column ``j`` has the entries ``data[indptr[j]:indptr[j + 1]]`` in the rows ``indices[indptr[j]:indptr[j + 1]]``. Differentiable in
        the entries. The other forms are those of `coo_array`.
    shape : (int, int), optional
        Shape. Default: the smallest that contains all places.

    Returns
    -------
    SparseArray

    Raises
    ------
    TypeError, ValueError
        As `csr_array`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> sparse.csc_array((xp.asarray([1.0, 2.0, 3.0]), [0, 0, 1], [0, 1, 3])).toarray()
    tensor([[1., 2.],
            [0., 3.]])
    """
    return _compressed("csc_array", arg, shape, 1)


def diags_array(diagonals: Any, *, offsets: int | Sequence[int] = 0, shape: tuple[int, int] | None = None) -> SparseArray:
    """Make a sparse array of diagonals (`scipy.sparse.diags_array`).

    Parameters
    ----------
    diagonals : sequence of Tensors, arrays or numbers
        A vector for each diagonal; one of length 1, or a number, is broadcast. One vector if `offsets` is an int. Differentiable.
    offsets : int or sequence of int
        The diagonals: 0 is the main one, 1 the one above.
    shape : (int, int), optional
        Shape. Default: square, as large as the first diagonal needs.

    Returns
    -------
    SparseArray

    Raises
    ------
    TypeError
        A diagonal is neither a Tensor, an array nor a number.
    ValueError
        Numbers or lengths of the diagonals do not fit, or an offset occurs twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> d = xp.tensor([2.0, 3.0, 4.0], requires_grad=True)
    >>> a = sparse.diags_array([d, -1.0, -1.0], offsets=[0, -1, 1])
    >>> a.toarray().detach()
    tensor([[ 2., -1.,  0.],
            [-1.,  3., -1.],
            [ 0., -1.,  4.]])
    >>> a.trace().backward()
    >>> d.grad
    tensor([1., 1., 1.])
    """
    name = "scipy.sparse.diags_array"
    if is_scalar(offsets):
        diagonals = [diagonals]
    several: Any = (offsets,) if is_scalar(offsets) else offsets
    at = tuple(as_int(k, name, "offsets") for k in several)
    given = [operations.asarray(d) if isinstance(d, (list, tuple)) else as_operand(name, d) for d in diagonals]
    if len(given) != len(at) or len(set(at)) != len(at) or not at:
        msg = f"{name}: {len(given)} diagonals do not fit to the offsets {at}, which must be different"
        raise ValueError(msg)
    if shape is None:
        n = abs(at[0]) + (given[0].shape[0] if given[0].ndim else 1)
        shape = (n, n)
    rows, columns = _as_shape(name, shape)
    tensors = [d for d in given if isinstance(d, TensorBase) and d.ndim] or given
    dtype = operations.result_type(*given)
    parts, row, col = [], [], []
    for d, k in zip(given, at):
        count = min(rows + min(k, 0), columns - max(k, 0))
        if count < 0 or d.ndim > 1 or (d.ndim and d.shape[0] not in (count, 1)):
            msg = f"{name}: diagonal {k} of a matrix of shape {(rows, columns)} has {max(count, 0)} elements, but got shape {d.shape}"
            raise ValueError(msg)
        parts.append(broadcast_to((d if d.ndim else d.to_device(tensors[0].device))._cast(dtype), (count,)))
        row.append(np.arange(count) - min(k, 0))
        col.append(np.arange(count) + max(k, 0))
    return SparseArray(concat(parts), np.concatenate(row), np.concatenate(col), (rows, columns))
