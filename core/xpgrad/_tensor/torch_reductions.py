"""Methods with PyTorch's names that reduce or sort: extrema, spreads, running sums, softmax, norms, order.

`dim` and `keepdim` are accepted as well as the standard's `axis` and `keepdims`. Where PyTorch and the standard differ in more than
names, the arguments' names decide: ``x.var(axis=0)`` is the standard's (correction 0), ``x.var(dim=0)`` PyTorch's (correction 1);
``x.max(axis=0)`` is a Tensor, ``x.max(dim=0)`` the values and their indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_flag
from xpgrad._basics.docstrings import shares
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._operations.methods import as_in_numpy_code, axis_of, call_with_numpys, keepdims_of
from xpgrad._rows import namespace
from xpgrad.rules import elementwise, indexing, manipulation, reduction, searching, sorting, statistical, utility

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


class MaxResult(NamedTuple):
    """The result of `Tensor.max` along one axis: the largest elements and their indices."""

    values: Tensor
    indices: Tensor


class MinResult(NamedTuple):
    """The result of `Tensor.min` along one axis: the smallest elements and their indices."""

    values: Tensor
    indices: Tensor


class MedianResult(NamedTuple):
    """The result of `Tensor.median` along one axis: the middle elements and their indices."""

    values: Tensor
    indices: Tensor


class SortResult(NamedTuple):
    """The result of `Tensor.sort`: the elements in order, and their indices."""

    values: Tensor
    indices: Tensor


def _one_axis(axis: Any, dim: Any, name: str) -> Any:
    """Return the axis of PyTorch's form of `max` and `min`; raise TypeError if none was given."""
    axis = axis_of(axis, dim)
    if axis is None:
        msg = (
            f"{name}: `keepdim` belongs to PyTorch's `{name}(dim, keepdim)`, which gives values and indices; give `dim`, or use `keepdims`"
        )
        raise TypeError(msg)
    return axis


def _correction(name: str, correction: Any, unbiased: Any, torch: bool) -> Any:
    """Return the correction of `var` and `std`, which `unbiased` may name instead; its default is 1 in PyTorch's form (`torch`), else 0."""
    if unbiased is None:
        return (1.0 if torch else 0.0) if correction is None else correction
    if correction is not None:
        msg = (
            f"{name}: `correction` and `unbiased` are two names for one thing, but got correction={correction!r} and unbiased={unbiased!r}"
        )
        raise TypeError(msg)
    return float(as_flag(unbiased, name, "unbiased"))


def _select(x: Any, choose: Callable[..., Any], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """Return the elements that `choose` selects along one axis, and their indices; as in PyTorch, only they get the gradient."""
    keepdim = as_flag(keepdim, "dim", "keepdim")
    if not x.ndim:
        return x.clone(), choose(x, axis=dim)
    axis = normalize_axis(dim, x.ndim, choose.__name__.lstrip("_"), "dim")
    index = choose(x, axis=axis, keepdims=True)
    values = indexing.take_along_axis(x, index, axis=axis)
    return (values, index) if keepdim else (manipulation.squeeze(values, axis), manipulation.squeeze(index, axis))


def _argmedian(x: Any, axis: int, keepdims: bool = True) -> Any:
    """Return the index of the lower of the middle elements, or of a NaN if there is one."""
    if not x.ndim:
        return searching.argmax(x, axis=axis)
    length = x.shape[axis]
    if not length:
        msg = f"median needs at least one element, but x has shape {x.shape} and dim is {axis}"
        raise IndexError(msg)
    order = sorting.argsort(x, axis=axis)
    middle = order[(*(slice(None),) * axis, slice((length - 1) // 2, (length + 1) // 2))]
    if not x.dtype.differentiable:
        return middle
    missing = elementwise.isnan(x)
    first = searching.argmax(missing._cast(middle.dtype), axis=axis, keepdims=keepdims)
    return elementwise.where(reduction.any(missing, axis=axis, keepdims=keepdims), first, middle)


def _share_among_equals(x: Any, value: Any) -> Any:
    """Return a value of a vector as the mean of all elements equal to it, so that they share its gradient; NaNs count as equal."""
    chosen = (x == value) | (elementwise.isnan(x) & elementwise.isnan(value))
    wide = namespace.PRIMITIVES["wide"](x)
    base = elementwise.where(elementwise.isinf(value), 0.0, value).to(wide.dtype)  # so that nothing is rounded, and no sum overflows
    mean = reduction.sum(elementwise.where(chosen, wide - base, 0.0)) / reduction.sum(chosen.to(wide.dtype))
    return (base + mean).to(x.dtype)


def floating(x: Any) -> Any:
    """Return `x`, or its values in the default floating-point dtype if it holds integers or bools."""
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def _to_floating(x: Any, dtype: Any) -> Any:
    return floating(x if dtype is None else x.to(dtype=dtype))


def _largest(x: Any, dim: Any) -> Any:
    """Return the largest elements over axes, as a constant.

    Subtracting them before an exponential avoids overflow, and does not change the final result. Without elements this is 0.
    """
    return (reduction.sum if 0 in x.shape else reduction.max)(x.detach(), axis=dim, keepdims=True)


def _nuclear_norm(x: Any, dim: Any, norm: Callable[..., Any], keepdim: bool) -> Any:
    """Return the nuclear norm over two axes, by default those of a matrix."""
    axes = normalize_axes((0, 1) if dim is None else dim, x.ndim, "norm", "dim")
    if axes is None or len(axes) != 2 or (dim is None and x.ndim != 2):
        msg = f"norm: the nuclear norm needs a matrix, or two axes as `dim`, but got shape {x.shape} and dim={dim!r}"
        raise ValueError(msg)
    out = norm(manipulation.moveaxis(x, axes, (-2, -1)), ord="nuc")
    return manipulation.expand_dims(manipulation.expand_dims(out, axis=min(axes)), axis=max(axes)) if keepdim else out


def _axis_or_flat(x: Any, axis: Any) -> tuple[Any, Any]:
    """Return `x` and `axis`; without an axis the flattened `x` and 0, as NumPy's running sums."""
    return (manipulation.reshape(x, (-1,)), 0) if axis is None else (x, axis)


# -- what docstrings have in common ----------------------------------------------------------------------------------

_document_axis = shares(
    raises="""\
TypeError
    If `dim` is not an int.
IndexError
    If `dim` is out of range.""",
)
_document_running = shares(
    returns="""\
Tensor
    Has the shape and dtype of this Tensor, except that bools and integers narrower than the default integer dtype are widened to
    it.""",
)
_document_softmax = shares(
    parameters="""\
dtype : DType, optional
    Data type to which this Tensor is converted first.""",
    returns="""\
Tensor
    Has the shape of this Tensor, and its dtype or `dtype`; integers and bools give the default floating-point dtype.""",
)
_document_reduction = shares(
    parameters="""\
dim : int or tuple of int, optional
    Axes to reduce; all of them by default.
keepdim : bool
    Whether reduced axes stay, with length 1.""",
    returns="""\
Tensor
    Has the shape of this Tensor without the reduced axes, and its dtype.""",
    raises="""\
TypeError
    If `dim` is not an int or a tuple of ints.
IndexError
    If `dim` is out of range.
ValueError
    If a reduced axis has length 0.""",
)
_document_extremum = shares(
    parameters="""\
axis : int, tuple of int or Tensor, optional
    Axes to reduce, all of them by default; or the Tensor to compare with.
keepdim : bool, optional
    Whether the reduced axis stays, with length 1, in PyTorch's form.
keepdims : bool
    Whether reduced axes stay, with length 1.
dim : int, optional
    Axis to reduce in PyTorch's form.
**numpys : object
    Further arguments of NumPy's method, in code that `numpy_code` runs.""",
    raises="""\
TypeError
    If `keepdim` is given without an axis, or an axis is not an int.
IndexError
    If an axis is out of range.
ValueError
    If a reduced axis has length 0.""",
)
_document_spread = shares(
    parameters="""\
axis, dim : int or tuple of int, optional
    Axes to reduce; all of them by default.
correction : float, optional
    The sum of squares is divided by ``N - correction``.
keepdims, keepdim : bool
    Whether reduced axes stay, with length 1.
unbiased : bool, optional
    True means ``correction=1``, False ``correction=0``.""",
    returns="""\
Tensor
    Has the shape of this Tensor without the reduced axes; real floating-point.""",
    raises="""\
TypeError
    If both `correction` and `unbiased`, or both `axis` and `dim`, are given, or an axis is not an int.
IndexError
    If an axis is out of range.""",
)


class TorchReductions(TensorBase):
    """Methods with PyTorch's names that reduce or sort; see `Tensor`. `self` is a `Tensor`, which this base class cannot declare."""

    __slots__ = ()

    # -- reductions ----------------------------------------------------------------------------------------------------

    @_document_extremum
    def max(self: Any, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None, **numpys: Any) -> Any:
        """Return the largest element over axes; with `dim` or `keepdim`, as in PyTorch, the values along one axis and their indices.

        Equal elements share the gradient evenly; with `dim` or `keepdim` it goes to the element at the index. If `axis` is a Tensor, the
        two are compared element by element, as by `xpgrad.maximum`.

        Returns
        -------
        Tensor or MaxResult
            With `dim` or `keepdim` a named tuple of `values` and `indices`, else the values.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.max()
        tensor(4.)
        >>> x.max(dim=0)
        MaxResult(values=tensor([3., 4.]), indices=tensor([1, 1]))
        """
        if numpys:
            return call_with_numpys("max", self, (axis_of(axis, dim),), {"keepdims": bool(keepdims)} | numpys)
        if isinstance(axis, TensorBase):
            return elementwise.maximum(self, axis)  # type: ignore[arg-type]
        if dim is None and keepdim is None:
            return reduction.max(self, axis=axis, keepdims=keepdims)
        return MaxResult(*_select(self, searching.argmax, _one_axis(axis, dim, "max"), keepdims_of(keepdims, keepdim)))

    @_document_extremum
    def min(self: Any, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None, **numpys: Any) -> Any:
        """Return the smallest element over axes; with `dim` or `keepdim`, as in PyTorch, the values along one axis and their indices.

        Equal elements share the gradient evenly; with `dim` or `keepdim` it goes to the element at the index. If `axis` is a Tensor, the
        two are compared element by element, as by `xpgrad.minimum`.

        Returns
        -------
        Tensor or MinResult
            With `dim` or `keepdim` a named tuple of `values` and `indices`, else the values.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.min()
        tensor(1.)
        >>> x.min(dim=0)
        MinResult(values=tensor([1., 2.]), indices=tensor([0, 0]))
        """
        if numpys:
            return call_with_numpys("min", self, (axis_of(axis, dim),), {"keepdims": bool(keepdims)} | numpys)
        if isinstance(axis, TensorBase):
            return elementwise.minimum(self, axis)  # type: ignore[arg-type]
        if dim is None and keepdim is None:
            return reduction.min(self, axis=axis, keepdims=keepdims)
        return MinResult(*_select(self, searching.argmin, _one_axis(axis, dim, "min"), keepdims_of(keepdims, keepdim)))

    @_document_axis
    def median(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        """Return the lower of the two middle elements, or NaN if there is one.

        Without `dim`, equal elements share the gradient evenly; along an axis it goes to the element at the index.

        Parameters
        ----------
        dim : int, optional
            Axis to reduce; by default the flattened Tensor.
        keepdim : bool
            Whether the reduced axis stays, with length 1.

        Returns
        -------
        Tensor or MedianResult
            0-d; with `dim` a named tuple of `values` and `indices`.

        Raises
        ------
        IndexError
            If `dim` is out of range, or there is no element.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([3.0, 1.0, 2.0, 4.0]).median()
        tensor(2.)
        """
        if dim is None:
            x = self.ravel()
            value = _select(x.detach(), _argmedian, 0, keepdim)[0]
            return _share_among_equals(x, value) if x.dtype.differentiable else value
        return MedianResult(*_select(self, _argmedian, dim, keepdim))

    @_document_reduction
    def amax(self: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Return the largest element over axes; equal ones share the gradient evenly.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.amax(dim=0)
        tensor([3., 4.])
        """
        return reduction.max(self, axis=dim, keepdims=keepdim)

    @_document_reduction
    def amin(self: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Return the smallest element over axes; equal ones share the gradient evenly.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.amin(dim=0)
        tensor([1., 2.])
        """
        return reduction.min(self, axis=dim, keepdims=keepdim)

    @as_in_numpy_code
    @_document_spread
    def var(
        self: Any, axis: Any = None, *, correction: Any = None, keepdims: bool = False, dim: Any = None, keepdim: Any = None,
        unbiased: Any = None,
    ) -> Tensor:  # fmt: skip
        """Return the variance over axes.

        `correction` is 0 by default, as in the standard; with one of PyTorch's arguments `dim` and `keepdim` it is 1, as in PyTorch.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 3.0])
        >>> x.var()
        tensor(1.)
        >>> x.var(dim=0), x.var(unbiased=True)
        (tensor(2.), tensor(2.))
        """
        correction = _correction("var", correction, unbiased, dim is not None or keepdim is not None)
        return statistical.var(self, axis=axis_of(axis, dim), correction=correction, keepdims=keepdims_of(keepdims, keepdim))

    @as_in_numpy_code
    @_document_spread
    def std(
        self: Any, axis: Any = None, *, correction: Any = None, keepdims: bool = False, dim: Any = None, keepdim: Any = None,
        unbiased: Any = None,
    ) -> Tensor:  # fmt: skip
        """Return the standard deviation over axes; its gradient where all values are equal is taken as 0.

        `correction` is 0 by default, as in the standard; with one of PyTorch's arguments `dim` and `keepdim` it is 1, as in PyTorch.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 3.0])
        >>> x.std()
        tensor(1.)
        >>> x.std(dim=0), x.std(unbiased=True)
        (tensor(1.4142), tensor(1.4142))
        """
        correction = _correction("std", correction, unbiased, dim is not None or keepdim is not None)
        return statistical.std(self, axis=axis_of(axis, dim), correction=correction, keepdims=keepdims_of(keepdims, keepdim))

    @as_in_numpy_code
    @_document_axis
    @_document_running
    def cumsum(self: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
        """Return running sums along an axis.

        Parameters
        ----------
        dim, axis : int, optional
            Axis along which to add, by PyTorch's or NumPy's name; without one, the flattened Tensor, as in NumPy.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([1.0, 2.0, 3.0]).cumsum(0)
        tensor([1., 3., 6.])
        """
        return statistical.cumulative_sum(*_axis_or_flat(self, axis_of(axis, dim)))

    @as_in_numpy_code
    @_document_axis
    @_document_running
    def cumprod(self: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
        """Return running products along an axis; the gradient is exact where elements are zero.

        Parameters
        ----------
        dim, axis : int, optional
            Axis along which to multiply, by PyTorch's or NumPy's name; without one, the flattened Tensor, as in NumPy.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([1.0, 2.0, 3.0]).cumprod(0)
        tensor([1., 2., 6.])
        """
        return statistical.cumulative_prod(*_axis_or_flat(self, axis_of(axis, dim)))

    @_document_reduction
    def logsumexp(self: Any, dim: Any, keepdim: bool = False) -> Tensor:
        """Return ``log(sum(exp(x)))`` over axes, without overflow.

        Parameters
        ----------
        dim : int or tuple of int
            Axes to reduce.

        Returns
        -------
        Tensor
            Has the shape of this Tensor without the reduced axes, and its dtype; integers and bools give the default floating-point dtype.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.logsumexp(0)
        tensor(4.0486)
        """
        x = floating(self)
        shift = _largest(x, dim)
        shift = elementwise.where(elementwise.isfinite(shift), shift, 0)
        out = elementwise.log(reduction.sum(elementwise.exp(x - shift), axis=dim, keepdims=True)) + shift
        return out if as_flag(keepdim, "logsumexp", "keepdim") else out.squeeze(dim=dim)

    @_document_axis
    @_document_softmax
    def softmax(self: Any, dim: int, *, dtype: Any = None) -> Tensor:
        """Return ``exp(x) / sum(exp(x))`` along an axis, without overflow.

        Parameters
        ----------
        dim : int
            Axis along which the results add up to 1.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.softmax(0)
        tensor([0.0474, 0.9526])
        """
        x = _to_floating(self, dtype)
        powers = elementwise.exp(x - _largest(x, dim))
        return powers / reduction.sum(powers, axis=dim, keepdims=True)

    @_document_axis
    @_document_softmax
    def log_softmax(self: Any, dim: int, *, dtype: Any = None) -> Tensor:
        """Return the logarithm of `softmax`, without overflow.

        Parameters
        ----------
        dim : int
            Axis along which the exponentials of the results add up to 1.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.log_softmax(0)
        tensor([-3.0486, -0.0486])
        """
        x = _to_floating(self, dtype)
        below = x - _largest(x, dim)
        return below - elementwise.log(reduction.sum(elementwise.exp(below), axis=dim, keepdims=True))

    def norm(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """Return the norm of order `p` of the elements over axes.

        Parameters
        ----------
        p : float or {"fro", "nuc"}
            Order of the vector norm; "fro" is order 2, "nuc" the nuclear norm of matrices.
        dim : int or tuple of int, optional
            Axes to reduce; all of them by default. The nuclear norm takes two.
        keepdim : bool
            Whether reduced axes stay, with length 1.
        dtype : DType, optional
            Data type to which this Tensor is converted first.

        Returns
        -------
        Tensor
            Has the shape of this Tensor without the reduced axes; real.

        Raises
        ------
        TypeError
            If the dtype is neither floating-point nor complex.
        ValueError
            If `p` is another str, or is "nuc" without two axes.
        IndexError
            If an axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([3.0, 4.0]).norm()
        tensor(5.)
        """
        x = self if dtype is None else self.to(dtype=dtype)
        linalg = namespace.package.linalg
        if isinstance(p, str) and p == "nuc":
            return _nuclear_norm(x, dim, linalg.matrix_norm, keepdim)
        if isinstance(p, str) and p != "fro":
            msg = f"norm: `p` must be a number, 'fro' or 'nuc', but got {p!r:.40}"
            raise ValueError(msg)
        return linalg.vector_norm(x, axis=dim, keepdims=keepdim, ord=2 if p is None or isinstance(p, str) else p)

    # -- order ----------------------------------------------------------------------------------------------------------

    @as_in_numpy_code
    @_document_axis
    def sort(self: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> SortResult:
        """Return the elements in order along an axis, and their indices; the order is always stable.

        Parameters
        ----------
        dim : int
            Axis along which to sort.
        descending : bool
            Whether the largest element comes first.
        stable : bool
            Accepted as in PyTorch; equal elements keep their order in any case.

        Returns
        -------
        SortResult
            Named tuple of `values` and `indices`, both of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([3.0, 1.0, 2.0]).sort()
        SortResult(values=tensor([1., 2., 3.]), indices=tensor([1, 2, 0]))
        """
        order = self.argsort(dim, descending, stable=stable)
        return SortResult(indexing.take_along_axis(self, order, axis=dim) if self.ndim else self.clone(), order)

    @as_in_numpy_code
    @_document_axis
    def argsort(self: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
        """Return the indices that sort along an axis; the order is always stable.

        Parameters
        ----------
        dim : int
            Axis along which to sort.
        descending : bool
            Whether the index of the largest element comes first.
        stable : bool
            Accepted as in PyTorch; the indices of equal elements keep their order in any case.

        Returns
        -------
        Tensor
            Indices of the default integer dtype, of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([3.0, 1.0, 2.0]).argsort()
        tensor([1, 2, 0])
        """
        as_flag(stable, "argsort", "stable")
        if not self.ndim:
            return searching.argmax(self, axis=dim)  # the only element, if `dim` is an axis of it
        return sorting.argsort(self, axis=dim, descending=descending)

    @_document_axis
    def diff(self: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        """Return the differences of neighbouring elements along an axis, taken `n` times.

        Parameters
        ----------
        n : int
            How many times to take differences.
        dim : int
            Axis along which elements are neighbours.
        prepend : Tensor, optional
            Elements to put before those of this Tensor first.
        append : Tensor, optional
            Elements to put after them.

        Returns
        -------
        Tensor
            Has the shape of this Tensor (with `prepend` and `append`), but `n` elements fewer along the axis.

        Raises
        ------
        TypeError
            If `n` or `dim` is not an int.
        ValueError
            If `n` is negative, or the shapes of `prepend` or `append` do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([1.0, 4.0, 9.0]).diff()
        tensor([3., 5.])
        """
        return utility.diff(self, n, dim, prepend=prepend, append=append)
