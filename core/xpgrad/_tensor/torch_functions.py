"""Methods with PyTorch's names that do more than call a function of the namespace: elementwise functions, comparisons, products,
selections. Reductions and sorting are in `torch_reductions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.docstrings import shares
from xpgrad._basics.shapes import normalize_axis
from xpgrad._operations.lift import as_tensor, lift, scale
from xpgrad._operations.methods import as_in_numpy_code
from xpgrad._rows import namespace
from xpgrad._tensor.torch_reductions import floating
from xpgrad.rules import elementwise, indexing, linear_algebra, manipulation, reduction, utility

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


def _as_index(name: str, x: Any, index: Any) -> Any:
    return indexing.fit_index(x, index, lambda index: as_tensor(name, lift(name, index, x)))


def _check_index(name: str, x: Any, dim: Any, index: Any) -> tuple[Any, int]:
    """Return the index and the axis for `gather` or its transpose, checked.

    Raises
    ------
    TypeError, ValueError
        If the index does not hold integers, has another number of axes than `x`, or is longer than `x` along another axis.
    """
    index = _as_index(name, x, index)
    if "integer" not in index.dtype.category:
        msg = f"{name}: `index` must hold integers, but has dtype {index.dtype}; convert it with `long`"
        raise TypeError(msg)
    axis = normalize_axis(dim, x.ndim, name, "dim")
    if index.ndim != x.ndim or any(n > m for i, (n, m) in enumerate(zip(index.shape, x.shape)) if i != axis):
        msg = (
            f"{name}: `index` of shape {index.shape} does not fit a Tensor of shape {x.shape} with dim {dim}: it needs as many axes, "
            "and must not be longer along the others; nothing is broadcast"
        )
        raise ValueError(msg)
    return index, axis


def _need_axes(name: str, count: int, **operands: Any) -> None:
    """Raise ValueError for the first operand that does not have `count` axes."""
    for what, x in operands.items():
        if x.ndim != count:
            msg = f"{name}: `{what}` must have {count} axes, but has shape {x.shape}; use `@`, which takes any number"
            raise ValueError(msg)


def _need_as_many(name: str, one: Any, two: Any) -> None:
    """Raise ValueError if two stacks of matrices have different lengths, which PyTorch does not broadcast."""
    if one.shape[0] != two.shape[0]:
        msg = f"{name}: the stacks must be equally long, but the shapes are {one.shape} and {two.shape}; use `@`, which broadcasts"
        raise ValueError(msg)


def _add_scaled(x: Any, product: Any, beta: Any, alpha: Any, name: str) -> Any:
    """Return ``beta * x + alpha * product`` in the shape of the product."""
    for what, factor in (("beta", beta), ("alpha", alpha)):
        if getattr(factor, "ndim", 0):
            msg = f"{name}: `{what}` must be a number or a 0-d Tensor, but has shape {tuple(factor.shape)}"
            raise ValueError(msg)
    scaled_product = scale(x, product, alpha, name)
    if isinstance(beta, (int, float)) and beta == 0:
        return scaled_product
    return manipulation.broadcast_to(scale(x, x, beta, name), product.shape) + scaled_product


# -- what docstrings have in common ----------------------------------------------------------------------------------

_document_operand = shares(
    parameters="""\
other : Tensor, raw array or number
    Second operand, of a shape that broadcasts with that of this Tensor.
rtol : float
    Tolerance relative to the magnitude of `other`.
atol : float
    Absolute tolerance.
equal_nan : bool
    Whether nan is close to nan.
alpha : number
    Factor of `other`.""",
    returns="""\
Tensor
    Has the shape to which the operands broadcast and the dtype to which they promote.""",
    raises="""\
TypeError
    If `other` is not a Tensor, an array or a number.
ValueError
    If the shapes do not broadcast.""",
)


class TorchFunctions(TensorBase):
    """Methods with PyTorch's names; see `Tensor`. `self` is a `Tensor`, which this base class cannot declare."""

    __slots__ = ()

    # -- elementwise ----------------------------------------------------------------------------------------------------

    @_document_operand
    def add(self: Any, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """Return ``self + alpha * other``, elementwise with broadcasting.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.add(xp.tensor([1.0, 1.0]), alpha=10.0)
        tensor([11., 14.])
        """
        return elementwise.add(self, scale(self, other, alpha, "add"))

    @_document_operand
    def sub(self: Any, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """Return ``self - alpha * other``, elementwise with broadcasting.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.sub(xp.tensor([1.0, 1.0]), alpha=2.0)
        tensor([-1.,  2.])
        """
        return elementwise.subtract(self, scale(self, other, alpha, "sub"))

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """Return the elements of this Tensor where `condition` is True, and those of `other` elsewhere.

        Parameters
        ----------
        condition : Tensor or raw array
            bool, of a shape that broadcasts with that of this Tensor.
        other : Tensor, raw array or number
            Values where `condition` is False.

        Returns
        -------
        Tensor
            Has the shape to which all three broadcast and the dtype to which this Tensor and `other` promote.

        Raises
        ------
        TypeError
            If an argument is not a Tensor, an array or a number.
        ValueError
            If the shapes do not broadcast.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.where(x > 2.0, 0.0)
        tensor([0., 4.])
        """
        return elementwise.where(condition, self, other)

    def relu(self: Any) -> Tensor:
        """Return ``max(x, 0)``, elementwise; the derivative at 0 is taken as 0 (that of `xpgrad.maximum` is 1/2).

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor.

        Raises
        ------
        TypeError
            If this Tensor holds bools.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([-1.0, 0.0, 2.0], requires_grad=True)
        >>> x.relu().sum().backward()
        >>> x.grad
        tensor([0., 0., 1.])
        """
        if self.dtype.category == "bool":
            msg = "relu needs numbers, but got a Tensor of bools; convert it with `xpgrad.astype`"
            raise TypeError(msg)
        return elementwise.where(self <= 0, 0, self)

    def sigmoid(self: Any) -> Tensor:
        """Return ``1 / (1 + exp(-x))``, elementwise and without overflow.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor; integers and bools give the default floating-point dtype.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([0.0, 2.0]).sigmoid()
        tensor([0.5   , 0.8808])
        """
        x = floating(self)
        if x.dtype.is_complex:
            return 1 / (1 + elementwise.exp(-x))
        positive = x >= 0  # for each sign, the form that does not overflow, nor do its derivatives
        power = elementwise.exp(elementwise.where(positive, 0, x))
        return elementwise.where(positive, 1 / (1 + elementwise.exp(-elementwise.where(positive, x, 0))), power / (1 + power))

    # -- comparisons ------------------------------------------------------------------------------------------------------

    @_document_operand
    def isclose(self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """Return whether ``|self - other| <= atol + rtol * |other|``, elementwise with broadcasting.

        Returns
        -------
        Tensor
            bool, of the shape to which the operands broadcast.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.isclose(xp.tensor([1.0, 5.0]))
        tensor([ True, False])
        """
        return utility.isclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    @_document_operand
    def allclose(self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Return whether all elements are close, as `isclose` defines it.

        Returns
        -------
        bool
            True if every element is close.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.allclose(xp.tensor([1.0, 4.0 + 1e-9]))
        True
        """
        return utility.allclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    # -- products ---------------------------------------------------------------------------------------------------------

    def mm(self: Any, mat2: Tensor, /) -> Tensor:
        """Return the product of two matrices.

        Parameters
        ----------
        mat2 : Tensor or raw array
            Matrix, of shape (K, N); this Tensor has shape (M, K).

        Returns
        -------
        Tensor
            Of shape (M, N).

        Raises
        ------
        TypeError
            If `mat2` is not a Tensor or an array.
        ValueError
            If an operand is not two-dimensional, or the shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.mm(x)
        tensor([[ 7., 10.],
                [15., 22.]])
        """
        mat2 = as_tensor("mm", lift("mm", mat2, self))
        _need_axes("mm", 2, self=self, mat2=mat2)
        return linear_algebra.matmul(self, mat2)

    @as_in_numpy_code
    def dot(self: Any, other: Tensor, /) -> Tensor:
        """Return the sum of the products of two vectors' elements; neither is conjugated.

        Parameters
        ----------
        other : Tensor or raw array
            Vector of the length of this Tensor, which is one-dimensional.

        Returns
        -------
        Tensor
            0-d.

        Raises
        ------
        TypeError
            If `other` is not a Tensor or an array.
        ValueError
            If an operand is not one-dimensional, or the lengths differ.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.dot(xp.tensor([1.0, 10.0]))
        tensor(41.)
        """
        other = as_tensor("dot", lift("dot", other, self))
        _need_axes("dot", 1, self=self, other=other)
        if self.shape != other.shape:
            msg = f"dot: the vectors must be equally long, but the shapes are {self.shape} and {other.shape}"
            raise ValueError(msg)
        return reduction.sum(elementwise.multiply(self, other))

    def mv(self: Any, vec: Tensor, /) -> Tensor:
        """Return the product of a matrix and a vector.

        Parameters
        ----------
        vec : Tensor or raw array
            Vector, of shape (N,); this Tensor has shape (M, N).

        Returns
        -------
        Tensor
            Of shape (M,).

        Raises
        ------
        TypeError
            If `vec` is not a Tensor or an array.
        ValueError
            If this Tensor is not two-dimensional or `vec` not one-dimensional, or the shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.mv(xp.tensor([1.0, 10.0]))
        tensor([21., 43.])
        """
        vec = as_tensor("mv", lift("mv", vec, self))
        _need_axes("mv", 2, self=self)
        _need_axes("mv", 1, vec=vec)
        return linear_algebra.matmul(self, vec)

    def bmm(self: Any, mat2: Tensor, /) -> Tensor:
        """Return the products of two stacks of matrices; nothing is broadcast.

        Parameters
        ----------
        mat2 : Tensor or raw array
            Stack of matrices, of shape (B, K, N); this Tensor has shape (B, M, K).

        Returns
        -------
        Tensor
            Of shape (B, M, N).

        Raises
        ------
        TypeError
            If `mat2` is not a Tensor or an array.
        ValueError
            If an operand is not three-dimensional, or the shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((5, 2, 3)).bmm(xp.ones((5, 3, 4))).shape
        (5, 2, 4)
        """
        mat2 = as_tensor("bmm", lift("bmm", mat2, self))
        _need_axes("bmm", 3, self=self, mat2=mat2)
        _need_as_many("bmm", self, mat2)
        return linear_algebra.matmul(self, mat2)

    def outer(self: Any, vec2: Tensor, /) -> Tensor:
        """Return the outer product of this vector and another.

        Parameters
        ----------
        vec2 : Tensor or raw array
            Vector, of shape (M,); this Tensor has shape (N,).

        Returns
        -------
        Tensor
            Of shape (N, M).

        Raises
        ------
        TypeError
            If `vec2` is not a Tensor or an array.
        ValueError
            If an operand is not one-dimensional.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.outer(xp.tensor([1.0, 10.0]))
        tensor([[ 1., 10.],
                [ 4., 40.]])
        """
        return namespace.package.linalg.outer(self, vec2)

    def addmm(self: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Return ``beta * self + alpha * (mat1 @ mat2)``; this Tensor is not read if `beta` is 0.

        Parameters
        ----------
        mat1 : Tensor or raw array
            Matrix, of shape (M, K).
        mat2 : Tensor or raw array
            Matrix, of shape (K, N). This Tensor broadcasts to shape (M, N).
        beta : number or 0-d Tensor
            Factor of this Tensor.
        alpha : number or 0-d Tensor
            Factor of the product.

        Returns
        -------
        Tensor
            Of shape (M, N).

        Raises
        ------
        TypeError
            If `mat1` or `mat2` is not a Tensor or an array.
        ValueError
            If one of them is not two-dimensional, the shapes do not fit, or a factor has axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 2)).addmm(xp.tensor([[1.0, 2.0], [3.0, 4.0]]), xp.eye(2))
        tensor([[2., 3.],
                [4., 5.]])
        """
        mat1, mat2 = (as_tensor("addmm", lift("addmm", m, self)) for m in (mat1, mat2))
        _need_axes("addmm", 2, mat1=mat1, mat2=mat2)
        return _add_scaled(self, linear_algebra.matmul(mat1, mat2), beta, alpha, "addmm")

    def baddbmm(self: Any, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Return ``beta * self + alpha * (batch1 @ batch2)`` for stacks of matrices; this Tensor is not read if `beta` is 0.

        Parameters
        ----------
        batch1 : Tensor or raw array
            Stack of matrices, of shape (B, M, K).
        batch2 : Tensor or raw array
            Stack of matrices, of shape (B, K, N). This Tensor broadcasts to shape (B, M, N).
        beta : number or 0-d Tensor
            Factor of this Tensor.
        alpha : number or 0-d Tensor
            Factor of the product.

        Returns
        -------
        Tensor
            Of shape (B, M, N).

        Raises
        ------
        TypeError
            If `batch1` or `batch2` is not a Tensor or an array.
        ValueError
            If one of them is not three-dimensional, the shapes do not fit, or a factor has axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((1, 2, 2)).baddbmm(xp.ones((1, 2, 3)), xp.ones((1, 3, 2)))
        tensor([[[4., 4.],
                 [4., 4.]]])
        """
        batch1, batch2 = (as_tensor("baddbmm", lift("baddbmm", m, self)) for m in (batch1, batch2))
        _need_axes("baddbmm", 3, batch1=batch1, batch2=batch2)
        _need_as_many("baddbmm", batch1, batch2)
        return _add_scaled(self, linear_algebra.matmul(batch1, batch2), beta, alpha, "baddbmm")

    @_document_operand
    def dist(self: Any, other: Any, p: float = 2) -> Tensor:
        """Return the norm of order `p` of the difference from another Tensor.

        Parameters
        ----------
        p : float
            Order of the vector norm.

        Returns
        -------
        Tensor
            0-d; real.

        Raises
        ------
        TypeError
            If `other` is not a Tensor, an array or a number, or the difference is neither floating-point nor complex.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.dist(xp.tensor([4.0, 8.0]))
        tensor(5.)
        """
        return namespace.package.linalg.vector_norm(elementwise.subtract(self, other), ord=p)

    # -- selection ------------------------------------------------------------------------------------------------------

    def masked_select(self: Any, mask: Tensor) -> Tensor:
        """Return the elements where `mask` is True, as a one-dimensional Tensor.

        Parameters
        ----------
        mask : Tensor or raw array
            bool, of a shape that broadcasts with that of this Tensor.

        Returns
        -------
        Tensor
            One-dimensional, of the dtype of this Tensor.

        Raises
        ------
        TypeError
            If `mask` does not hold bools.
        ValueError
            If the shapes do not broadcast.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.masked_select(x > 2.0)
        tensor([4.])
        """
        mask = as_tensor("masked_select", lift("masked_select", mask, self))
        if mask.dtype.category != "bool":
            msg = f"masked_select: `mask` must be one of bools, but has dtype {mask.dtype}; compare first, e.g. `mask != 0`"
            raise TypeError(msg)
        x, mask = manipulation.broadcast_arrays(self, mask)
        return x[mask] if x.ndim else manipulation.reshape(x, (1,))[manipulation.reshape(mask, (1,))]

    def index_select(self: Any, dim: int, index: Tensor) -> Tensor:
        """Return the slices at given indices along an axis.

        Parameters
        ----------
        dim : int
            Axis to index.
        index : Tensor or raw array
            Integers, 0-d or one-dimensional.

        Returns
        -------
        Tensor
            Has the shape of this Tensor, with the length of `index` along the axis.

        Raises
        ------
        TypeError
            If `index` is not a Tensor or an array, or `dim` is not an int.
        ValueError
            If `index` has more than one axis.
        IndexError
            If `dim` or an index is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.index_select(0, xp.asarray([1, 1]))
        tensor([[3., 4.],
                [3., 4.]])
        """
        index = _as_index("index_select", self, index)
        if index.ndim > 1:
            msg = f"index_select: `index` must be one row, but has shape {index.shape}; use `x[index]` or `xpgrad.take`"
            raise ValueError(msg)
        return indexing.take(self, index if index.ndim else manipulation.reshape(index, (1,)), axis=dim)

    def gather(self: Any, dim: int, index: Tensor) -> Tensor:
        """Return the elements at indices along an axis that vary along the other axes; nothing is broadcast.

        Parameters
        ----------
        dim : int
            Axis to index.
        index : Tensor or raw array
            Integers. It has as many axes as this Tensor, and may be shorter along all but `dim`.

        Returns
        -------
        Tensor
            Has the shape of `index` and the dtype of this Tensor.

        Raises
        ------
        TypeError
            If `index` does not hold integers.
        ValueError
            If the shape of `index` does not fit.
        IndexError
            If `dim` or an index is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.gather(1, xp.asarray([[0], [1]]))
        tensor([[1.],
                [4.]])
        """
        index, axis = _check_index("gather", self, dim, index)
        part = tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))
        return indexing.take_along_axis(self[part], index, axis=axis)

    def scatter_add(self: Any, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Return this Tensor with elements of `src` added at indices along an axis, duplicates included: the transpose of `gather`.

        Parameters
        ----------
        dim : int
            Axis to index.
        index : Tensor or raw array
            Integers. It has as many axes as this Tensor, and may be shorter along all but `dim`.
        src : Tensor or raw array
            Elements to add, in the dtype of this Tensor; at least as long as `index` along each axis.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor.

        Raises
        ------
        TypeError
            If `index` does not hold integers.
        ValueError
            If the shape of `index` fits neither this Tensor nor `src`.
        RuntimeError
            If `src` has another dtype.
        IndexError
            If `dim` or an index is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.zeros((3,)).scatter_add(0, xp.asarray([2, 0, 2]), xp.tensor([1.0, 2.0, 3.0]))
        tensor([2., 0., 4.])
        """
        index, axis = _check_index("scatter_add", self, dim, index)
        src = as_tensor("scatter_add", lift("scatter_add", src, self))
        if src.ndim != self.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
            msg = f"scatter_add: `index` of shape {index.shape} does not fit into `src` of shape {src.shape}; give a smaller one"
            raise ValueError(msg)
        if src.dtype is not self.dtype:
            msg = f"scatter_add: `src` must have the dtype of the Tensor, {self.dtype}, but has {src.dtype}; convert it with `to`"
            raise RuntimeError(msg)
        return indexing.add_along_axis(self, axis, index, src[tuple(slice(n) for n in index.shape)])
