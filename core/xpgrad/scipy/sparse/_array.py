"""`SparseArray`: a sparse matrix whose entries are a Tensor and whose pattern is constant.

Structural operations (slices, diagonals, products of two sparse matrices) compute with the constant numbers of the entries, and then gather
entries; so each is differentiable by the rules of indexing.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._backends.default_device import get_default_device
from xpgrad._basics.arguments import as_int, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.scalars import is_raw_array, is_scalar, is_scipy_sparse
from xpgrad._modes import state
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import lift_all
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._sparse.host import np, sparse
from xpgrad.linalg import matrix_transpose
from xpgrad.rules.elementwise import conj
from xpgrad.rules.indexing import fit_index, prepare_key, scatter_add, to_level_of, to_signed
from xpgrad.rules.manipulation import broadcast_to, concat, reshape
from xpgrad.rules.reduction import sum as total
from xpgrad.scipy.sparse import _rows

_document_format = shares(returns="SparseArray")


class SparseArray:
    """A sparse matrix: entries that are a Tensor, at constant places.

    `coo_array`, `csr_array`, `csc_array` and `diags_array` make one. It has the operators of SciPy's sparse arrays: `@` with dense or
    sparse operands, `*` and `/` by numbers or elements, `+` and `-`, and indexing. Derivatives, of every order and in both modes, are
    with respect to the entries and the dense operands. There is one format for all purposes, so `tocsr` and the like return the array.

    Parameters
    ----------
    data : Tensor, shape (K,)
        Entries. Differentiable.
    row, col : array of int, shape (K,)
        Their rows and columns, NumPy's arrays. Entries at the same place add up.
    shape : (int, int)
        Shape of the matrix.

    Attributes
    ----------
    data, row, col, shape
        The parameters. Nothing changes them.

    Raises
    ------
    TypeError
        `data` is not a Tensor, or the indices are not integers.
    ValueError
        The lengths differ, or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import sparse
    >>> k = xp.tensor([2.0, -1.0, 3.0], requires_grad=True)
    >>> a = sparse.coo_array((k, ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    >>> isinstance(a, sparse.SparseArray), a.nnz
    (True, 3)
    >>> (a @ xp.asarray([1.0, 10.0])).sum().backward()
    >>> k.grad
    tensor([ 1., 10., 10.])
    """

    __array_ufunc__: None = None  # the operators of NumPy's arrays leave it to the reflected method

    data: Tensor
    row: Any
    col: Any
    shape: tuple[int, int]
    _key: tuple[Any, Any]
    #: SciPy's format that has the entries in this order: "csr", "csc", or "coo" for any order.
    _order: str = "coo"

    def __init__(self, data: Tensor, row: Any, col: Any, shape: tuple[int, int]) -> None:
        if not isinstance(data, TensorBase):
            msg = f"SparseArray: `data` must be a Tensor, but got {shown(data)}"
            raise TypeError(msg)
        row, col = _as_places("row", row), _as_places("col", col)
        self.shape = _as_shape("SparseArray", shape)
        if data.ndim != 1 or not row.shape == col.shape == data.shape:
            shapes = f"{data.shape}, {row.shape} and {col.shape}"
            msg = f"SparseArray: `data`, `row` and `col` must be vectors of one length, but have shapes {shapes}"
            raise ValueError(msg)
        for name, places, n in (("row", row, self.shape[0]), ("col", col, self.shape[1])):
            if places.size and not 0 <= places.min() <= places.max() < n:
                msg = (
                    f"SparseArray: `{name}` must be between 0 and {n - 1} for shape {self.shape}, but has {places.min()} to {places.max()}"
                )
                raise ValueError(msg)
        self.data, self.row, self.col, self._key = data, row, col, _as_key(data, row, col)

    @classmethod
    def _of(cls, data: Tensor, row: Any, col: Any, shape: tuple[int, int], key: Any = None) -> SparseArray:
        """Return an array of entries and places that fit; `key` has the places as raw arrays beside `data`, if they are known."""
        out = cls.__new__(cls)
        out.data, out.row, out.col, out.shape = data, row, col, shape
        out._key = _as_key(data, row, col) if key is None else key
        return out

    def _with(self, data: Tensor) -> SparseArray:
        """Return the array with other entries at the same places."""
        # What is known of a pattern belongs to the arrays of its key.
        out = self._of(data, self.row, self.col, self.shape, self._key if data.device == self.device else None)
        out._order = self._order
        return out

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """Dtype of the entries.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.dtype
        xpgrad.float64
        """
        return self.data.dtype

    @property
    def device(self) -> Any:
        """Device of the entries.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> str(a.device)
        'numpy'
        """
        return self.data.device

    @property
    def ndim(self) -> int:
        """Number of axes, 2.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.ndim
        2
        """
        return 2

    @property
    def nnz(self) -> int:
        """Number of the entries, with those that are 0.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.nnz
        2
        """
        return len(self.row)

    def __repr__(self) -> str:
        more = ", requires_grad=True" if self.data.requires_grad else ""
        return f"<{type(self).__name__}: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self.dtype} on {self.device}{more}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without this method, NumPy's functions would compute with an object. SciPy's sparse arrays leave an object to its operators.
        if (dtype is not None and dtype.kind == "O") or sys._getframe(1).f_globals.get("__name__", "").startswith("scipy.sparse."):
            out = np.empty((), dtype=object)
            out[()] = self
            return out
        msg = "NumPy does not compute with a SparseArray: use its operators and methods, such as `a @ x`, or the dense `a.toarray()`"
        raise TypeError(msg)

    def __bool__(self) -> bool:
        if self.shape != (1, 1):
            msg = f"a sparse array of shape {self.shape} is neither true nor false; use e.g. `a.toarray().any()`"
            raise ValueError(msg)
        return bool(self.toarray())

    def __eq__(self, other: object) -> bool:
        """Raise an error for an operand that has elements; otherwise leave the comparison to Python."""
        if not (_is_number(other) or isinstance(other, (SparseArray, TensorBase)) or is_scipy_sparse(other) or is_raw_array(other)):
            return NotImplemented
        msg = (
            "the elements of sparse arrays are not compared, because the places of the result would depend on values; compare the dense "
            "`a.toarray()`, or the entries `a.data` if the places are the same"
        )
        raise TypeError(msg)

    # NB: each alone, for type checkers; Python's `!=` calls `__eq__`.
    __lt__ = __eq__
    __le__ = __eq__
    __gt__ = __eq__
    __ge__ = __eq__

    def __hash__(self) -> int:
        return object.__hash__(self)

    @_document_format
    def tocsr(self) -> SparseArray:
        """Return the array itself, as `tocsc`, `tocoo` and `copy` do: it has one format, and nothing changes it.

        In `xpgrad.numpy_code`, `tocsr` and `tocsc` merge and sort the entries as SciPy's do.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.tocsr() is a.tocsc() is a.tocoo() is a.copy() is a
        True
        """
        return self._as_scipys("csr")

    @_document_format
    def tocsc(self) -> SparseArray:
        """Return the array itself, as `tocsr` does.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.tocsc() is a
        True
        """
        return self._as_scipys("csc")

    @_document_format
    def tocoo(self) -> SparseArray:
        """Return the array itself, as `copy` does.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.tocoo() is a.copy() is a
        True
        """
        return self

    copy = tocoo

    def _as_scipys(self, order: str) -> SparseArray:
        """Return the array itself; in code that was written for NumPy, with the entries that SciPy's array of that format has."""
        mode = state.current()
        if mode is None or mode.numpy is None or order == self._order:
            return self
        merged = self._merged() if self._order == "coo" else self
        lines, across = (merged.row, merged.col) if order == "csr" else (merged.col, merged.row)
        # Between compressed formats, SciPy keeps the order of the entries of a line.
        at = np.lexsort((across, lines)) if self._order == "coo" else np.argsort(lines, kind="stable")
        out = merged._of(merged.data[at], merged.row[at], merged.col[at], self.shape)
        out._order = order
        return out

    def detach(self) -> SparseArray:
        """Return the array with its entries detached from the graph.

        Returns
        -------
        SparseArray

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.detach().data.requires_grad
        False
        """
        return self._with(self.data.detach())

    def to_scipy(self) -> Any:
        """Return a constant copy as SciPy's `csr_array`.

        Returns
        -------
        scipy.sparse.csr_array

        Raises
        ------
        RuntimeError
            The entries require grad (call `detach` first), or a transform computes with them.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.to_scipy().toarray().tolist()
        [[0.0, 2.0], [3.0, 0.0]]
        """
        return sparse.coo_array((self.data.numpy(), (self.row, self.col)), shape=self.shape).tocsr()

    def toarray(self) -> Tensor:
        """Return the dense matrix.

        Returns
        -------
        Tensor, shape `shape`

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.toarray()
        tensor([[0., 2.],
                [3., 0.]])
        """
        return _add_up(self.data, (self.row, self.col), self.shape)

    # -- products ------------------------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseArray) or is_scipy_sparse(other):
            return _product_of_sparse(self, as_sparse("matmul", other, self))
        return self._times(other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_scipy_sparse(other):
            return as_sparse("matmul", other, self) @ self
        x = self._beside(other)
        return self.T._times(x) if x.ndim == 1 else matrix_transpose(self.T._times(matrix_transpose(x)))

    def dot(self, other: Any) -> Any:
        """Return ``a @ other``.

        Parameters
        ----------
        other : Tensor or array, shape (N,) or (..., N, K), or a sparse array
            Differentiable.

        Returns
        -------
        Tensor or SparseArray
            Dense for a dense operand.

        Raises
        ------
        TypeError
            `other` is something else.
        ValueError
            The shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.dot(xp.asarray([1.0, 10.0]))
        tensor([20.,  3.])
        """
        return self @ other

    def _beside(self, x: Any) -> Any:
        """Return a dense operand of a product as a Tensor."""
        if is_scalar(x):
            msg = f"matmul: the sparse array needs an operand with axes, but got {shown(x)}; use `*` to scale"
            raise ValueError(msg)
        x = lift_all("matmul", (self.data, x))[1]
        if not isinstance(x, TensorBase) or not x.ndim:
            msg = f"matmul: the sparse array needs a Tensor or an array with axes, but got {shown(x)}"
            raise TypeError(msg)
        return x

    def _times(self, other: Any) -> Tensor:
        x = self._beside(other)
        if x.shape[0 if x.ndim == 1 else -2] != self.shape[1]:
            msg = f"matmul: shapes {self.shape} and {x.shape} do not fit: {self.shape[1]} != {x.shape[0 if x.ndim == 1 else -2]}"
            raise ValueError(msg)
        data, x = unify("matmul", [self.data, x])
        dtype = operations.result_type(data, x)
        columns = reshape(x, (*x.shape, 1)) if x.ndim == 1 else x
        entries = reshape(data._cast(dtype), (self.nnz, 1))
        out = _rows._sparse_product(entries, columns._cast(dtype), self._key, self.shape)
        return reshape(out, out.shape[:-1]) if x.ndim == 1 else out

    # -- elementwise -----------------------------------------------------------------------------------------------------

    def __neg__(self) -> SparseArray:
        return self._with(-self.data)

    def __abs__(self) -> SparseArray:
        merged = self._merged()  # the absolute value of a sum is not that of its terms
        return merged._with(abs(merged.data))

    def conj(self) -> SparseArray:
        """Return the complex conjugate.

        Returns
        -------
        SparseArray

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> (a * 1j).conj().data
        tensor([0.-2.j, 0.-3.j])
        """
        return self._with(conj(self.data)) if self.dtype.is_complex else self

    def _elements(self, other: Any) -> Any:
        """Return the elements of a number or a dense array at the places of the entries."""
        if isinstance(other, SparseArray) or is_scipy_sparse(other):
            msg = "the elements of two sparse arrays are not multiplied or divided here; use `toarray()` of one of them"
            raise TypeError(msg)
        if _is_number(other):
            return other
        x: Any = lift_all("multiply", (self.data, other))[1]
        if not isinstance(x, Tensor):
            return NotImplemented
        return broadcast_to(x, self.shape)[self.row, self.col]

    def _times_elements(self, other: Any) -> SparseArray:
        x = self._elements(other)
        return NotImplemented if x is NotImplemented else self._with(self.data * x)

    def __mul__(self, other: Any) -> Any:
        return self._times_elements(other)

    def __rmul__(self, other: Any) -> Any:
        return self._times_elements(other)

    def __truediv__(self, other: Any) -> SparseArray:
        x = self._elements(other)
        return NotImplemented if x is NotImplemented else self._with(self.data / x)

    def multiply(self, other: Any) -> SparseArray:
        """Return the product with a number, or with the elements of a dense array that broadcasts to the shape.

        Parameters
        ----------
        other : Tensor, array or number
            Differentiable.

        Returns
        -------
        SparseArray
            With the same places.

        Raises
        ------
        TypeError
            `other` is sparse.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.multiply(xp.asarray([1.0, 10.0])).toarray()
        tensor([[ 0., 20.],
                [ 3.,  0.]])
        """
        return self._times_elements(other)

    def __add__(self, other: Any) -> Any:
        if is_scalar(other):
            if other == 0:
                return self
            msg = "adding a number other than 0 to all elements of a sparse array would make it dense; use `toarray()`"
            raise NotImplementedError(msg)
        if not isinstance(other, SparseArray) and not is_scipy_sparse(other):
            return self.toarray() + other
        right = as_sparse("add", other, self)
        if right.shape != self.shape:
            msg = f"sparse arrays of shapes {self.shape} and {right.shape} cannot be added"
            raise ValueError(msg)
        dtype = operations.result_type(self.data, right.data)
        data = concat([self.data._cast(dtype), right.data._cast(dtype)])
        terms = self._of(data, np.concatenate([self.row, right.row]), np.concatenate([self.col, right.col]), self.shape)
        return terms._merged()._as_scipys("csr" if self._order == "coo" else self._order)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if is_scalar(other):
            return self + (-other)
        if not isinstance(other, SparseArray) and not is_scipy_sparse(other):
            return self.toarray() - other
        right = as_sparse("subtract", other, self)
        # Unsigned integers are negated in the dtype of the result.
        return self + right._with(-right.data._cast(operations.result_type(self.data, right.data)))

    def __rsub__(self, other: Any) -> Any:
        if is_scalar(other):
            return -self + other
        return as_sparse("subtract", other, self) - self if is_scipy_sparse(other) else other - self.toarray()

    # -- structure -------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> SparseArray:  # noqa: N802 (NumPy's name)
        """The transpose.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.T.toarray()
        tensor([[0., 3.],
                [2., 0.]])
        """
        rows, columns = self.shape
        out = self._of(self.data, self.col, self.row, (columns, rows), self._key[::-1])
        out._order = {"csr": "csc", "csc": "csr", "coo": "coo"}[self._order]
        return out

    def transpose(self, axes: tuple[int, int] | None = None) -> SparseArray:
        """Return the transpose.

        Parameters
        ----------
        axes : (int, int), optional
            ``(1, 0)``, the default: NumPy's function passes it.

        Returns
        -------
        SparseArray

        Raises
        ------
        ValueError
            `axes` are others.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.transpose().toarray()
        tensor([[0., 3.],
                [2., 0.]])
        """
        if axes is not None and tuple(axes) not in ((1, 0), (-1, 0), (1, -2), (-1, -2)):
            msg = f"transpose: `axes` must be (1, 0), but got {axes}"
            raise ValueError(msg)
        return self.T

    def diagonal(self) -> Tensor:
        """Return the main diagonal.

        Returns
        -------
        Tensor, shape (min(shape),)

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.diagonal()
        tensor([0., 0.])
        """
        on = np.flatnonzero(self.row == self.col)
        return _add_up(self.data[on], (self.row[on],), (min(self.shape),))

    def trace(self) -> Tensor:
        """Return the sum of the main diagonal.

        Returns
        -------
        Tensor, shape ()

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> (a @ a).trace()
        tensor(12.)
        """
        return total(self.diagonal())

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """Return the sum of all elements, or the sums along an axis.

        Parameters
        ----------
        axis : int, optional
            0 for the sums of columns, 1 for those of rows.
        dtype : dtype, optional
            That of the result. Default: that of the entries.
        out : None
            It has to be None: NumPy's function passes it.

        Returns
        -------
        Tensor, shape () or (shape[1 - axis],)

        Raises
        ------
        TypeError, ValueError
            `axis` is not an int, or neither 0 nor 1, or `out` is given.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import sparse
        >>> a = sparse.coo_array((xp.asarray([2.0, 3.0]), ([0, 1], [1, 0])))
        >>> a.sum(), a.sum(axis=0)
        (tensor(5.), tensor([3., 2.]))
        """
        if out is not None:
            msg = "sum: sums of a sparse array are not written to `out`; assign the result, as in `out[...] = a.sum()`"
            raise TypeError(msg)
        if dtype is not None:
            return self._with(self.data.astype(dtype)).sum(axis)
        if axis is None:
            return total(self.data)
        if (at := as_int(axis, "sum", "axis")) not in (-2, -1, 0, 1):
            msg = f"sum: `axis` must be 0 or 1, but got {at}"
            raise ValueError(msg)
        return _add_up(self.data, (self.row if at % 2 else self.col,), (self.shape[0 if at % 2 else 1],))

    def _merged(self) -> SparseArray:
        """Return the array with one entry at each place."""
        flat = self.row.astype(np.int64) * self.shape[1] + self.col
        order = np.argsort(flat, kind="stable")  # fast for sums, whose terms are mostly sorted
        flat = flat[order]
        is_first = np.concatenate((np.ones(min(len(flat), 1), dtype=bool), flat[1:] != flat[:-1]))
        if is_first.all():
            return self
        number = np.empty(len(flat), dtype=np.int64)
        number[order] = np.cumsum(is_first) - 1
        row, col = np.divmod(flat[is_first], self.shape[1])
        return self._of(_add_up(self.data, (number,), (len(row),)), row, col, self.shape)

    def __getitem__(self, key: Any) -> Any:
        merged = self._merged()
        make = sparse.csc_array if self._order == "csc" else sparse.csr_array
        numbers = make((np.arange(1, merged.nnz + 1), (merged.row, merged.col)), shape=self.shape)[key]
        if not getattr(numbers, "ndim", 0):
            return merged.data[int(numbers) - 1] if numbers else operations.zeros((), dtype=self.dtype, device=self.device)
        if numbers.ndim != 2:
            msg = "a row or column of a SparseArray is a matrix: use a slice, such as `a[i:i+1]`, or the dense `a.toarray()[i]`"
            raise IndexError(msg)
        found = numbers.tocoo()
        row, col = found.coords
        out = self._of(merged.data[found.data - 1], row, col, found.shape)
        out._order = self._order
        return out

    def __iter__(self) -> Any:
        # Without this method, the IndexError of the first row would end a loop over rows.
        msg = "a row of a SparseArray is a matrix: loop over slices, such as `a[i:i+1]`, or over the rows of the dense `a.toarray()`"
        raise TypeError(msg)


class SparseMatrix(SparseArray):
    """A `SparseArray` with the product of matrices as ``*``, and sums with two axes, as SciPy's older classes, such as `csr_matrix`."""

    @classmethod
    def like(cls, a: SparseArray) -> SparseMatrix:
        """Return the matrix with the entries of an array."""
        out: Any = cls._of(a.data, a.row, a.col, a.shape, a._key)
        out._order = a._order
        return out

    def __mul__(self, other: Any) -> Any:
        return self._times_elements(other) if _is_number(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self._times_elements(other) if _is_number(other) else self.__rmatmul__(other)

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """Return the sum of all elements, or the sums along an axis, which keep it."""
        sums = super().sum(axis, dtype, out)
        return sums if axis is None else reshape(sums, (self.shape[0], 1) if axis % 2 else (1, self.shape[1]))


def _is_number(x: Any) -> bool:
    return is_scalar(x) or (isinstance(x, TensorBase) and not x.ndim)


def _as_places(name: str, places: Any) -> Any:
    """Return rows or columns as a NumPy array of integers that nobody else writes to."""
    found = np.array(places.numpy() if isinstance(places, TensorBase) else places)
    if not found.size or found.dtype.kind == "u":  # beside signed integers, NumPy makes floats of unsigned ones
        found = found.astype(np.int64)
    if found.dtype.kind != "i":
        msg = f"SparseArray: `{name}` must be integers, but got {shown(places)} of dtype {found.dtype}"
        raise TypeError(msg)
    return found


def _as_key(data: Tensor, row: Any, col: Any) -> tuple[Any, Any]:
    """Return places as raw arrays of the library of `data`, outside of all transforms."""
    row, col = (to_signed(fit_index(data, x, lambda x: operations.asarray(x, device=data.device))) for x in (row, col))
    return row, col


def _as_shape(name: str, shape: Any) -> tuple[int, int]:
    """Return the shape of a matrix as two Python ints."""
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        msg = f"{name}: `shape` must be a pair of ints, but got {shown(shape)}"
        raise TypeError(msg)
    rows, columns = (as_int(n, name, "shape") for n in shape)
    if rows < 0 or columns < 0:
        msg = f"{name}: `shape` must not be negative, but is {(rows, columns)}"
        raise ValueError(msg)
    return rows, columns


def _add_up(data: Tensor, places: tuple[Any, ...], shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a shape with `data` added at `places`, an index array for each axis."""
    data = to_level_of(data, *places)
    return scatter_add(data, prepare_key(data, places), shape)


def _product_of_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """Return the product of two sparse arrays: a product for each entry of `a` and each entry of `b` in the row of its column."""
    if a.shape[1] != b.shape[0]:
        msg = f"matmul: shapes {a.shape} and {b.shape} do not fit: {a.shape[1]} != {b.shape[0]}"
        raise ValueError(msg)
    order = np.argsort(b.row, kind="stable")
    starts = np.searchsorted(b.row[order], np.arange(b.shape[0] + 1))
    counts = (starts[1:] - starts[:-1])[a.col]
    left = np.repeat(np.arange(a.nnz), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = order[np.repeat(starts[:-1][a.col], counts) + within]
    return a._of(a.data[left] * b.data[right], a.row[left], b.col[right], (a.shape[0], b.shape[1]))._merged()


def as_sparse(name: str, matrix: Any, beside: Any = None) -> SparseArray:
    """Return a SparseArray, or a sparse array of SciPy's as a constant one, or a matrix of SciPy's as a constant SparseMatrix.

    Parameters
    ----------
    name : str
        Name of the function, for messages.
    matrix : SparseArray or SciPy's
    beside : Tensor or SparseArray, optional
        Its device is that of a constant.

    Raises
    ------
    TypeError
        It is not sparse.
    ValueError
        It does not have two axes.
    """
    if isinstance(matrix, SparseArray):
        return matrix
    if not is_scipy_sparse(matrix):
        msg = f"{name}: a sparse array of xpgrad or SciPy is wanted, but got {shown(matrix)}"
        raise TypeError(msg)
    if matrix.ndim != 2:
        msg = f"{name}: a sparse array must have 2 axes, but has shape {matrix.shape}"
        raise ValueError(msg)
    device = get_default_device() if beside is None else beside.device
    parts = _parts(matrix)
    if (known := _known_constant(matrix, parts)) is not None and known.device == device:
        return known
    found = matrix.tocoo(copy=True)
    row, col = found.coords
    data = operations.asarray(found.data, device=device)
    out = (SparseMatrix if isinstance(matrix, sparse.spmatrix) else SparseArray)._of(data, row, col, found.shape)
    out._order = matrix.format if matrix.format in ("csr", "csc") else "coo"
    if parts and not data.stage and not data.is_inference():
        _keep_constant(matrix, parts, out)
    return out


#: By the ids of SciPy's matrices: the matrix, weakly, a copy of its arrays, and the constant that was made of it last.
_CONSTANTS: dict[int, tuple[Any, list[Any], SparseArray]] = {}


def _known_constant(matrix: Any, parts: list[Any]) -> SparseArray | None:
    """Return what was made of a matrix, if the matrix has not changed since."""
    known = _CONSTANTS.get(id(matrix))
    if known is None or known[0]() is not matrix or known[2].shape != matrix.shape or len(parts) != len(known[1]):
        return None
    return known[2] if all(map(np.array_equal, parts, known[1])) else None


def _parts(matrix: Any) -> list[Any]:
    """Return the arrays that tell whether a matrix has changed; none for formats that have others."""
    if matrix.format in ("csr", "csc"):
        return [matrix.data, matrix.indices, matrix.indptr]
    return [matrix.data, *matrix.coords] if matrix.format == "coo" else []


def _keep_constant(matrix: Any, parts: list[Any], constant: SparseArray) -> None:
    """Keep what was made of a matrix as long as it lives: programs multiply by one many times."""
    key = id(matrix)
    _CONSTANTS[key] = (weakref.ref(matrix, lambda _: _CONSTANTS.pop(key, None)), [x.copy() for x in parts], constant)
