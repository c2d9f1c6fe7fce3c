"""Functions that change shapes and the order of axes or elements; results are views if the standard allows it, else copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_flag, as_int, as_size, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import promote
from xpgrad._basics.shapes import check_fits, common_shape, normalize_axes, normalize_axis, shape_tuple
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import composite, front, rule, view
from xpgrad._operations.lift import as_tensor, as_tensors, is_constant
from xpgrad._rows.namespace import operations
from xpgrad.rules.conversion import asarray
from xpgrad.rules.indexing import take, unstack_views

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = [
    "matrix_transpose", "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "pad", "permute_dims",
    "repeat", "reshape", "roll", "squeeze", "stack", "tile", "transpose", "unstack",
]  # fmt: skip


#: Shared sections of the docstrings of functions that take axes.
_document_axes = shares(
    parameters="""\
x : Tensor or raw array
    Any shape and dtype.""",
    raises="""\
IndexError
    If an axis is out of range.""",
)


# -- reshaping ----------------------------------------------------------------------------------------------------------


@view(
    lambda g, x_shape, xp: xp.reshape_to(g, x_shape),
    node="ViewBackward0", kind="reshape", dtype="same", public=("reshape", "squeeze", "expand_dims"),
)  # fmt: skip
def reshape_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Return `x` in another shape with the same elements."""
    return xp.reshape(x, shape)


@front
def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """Return the elements of `x` in another shape: a view if the strides allow one.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    shape : int or sequence of int
        Shape of the result. One length may be -1, which is inferred.
    copy : bool, optional
        True always copies, False never does, None copies if needed.

    Returns
    -------
    Tensor
        The elements of `x`, in row-major order, in the shape `shape`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `shape` does not consist of ints.
    ValueError
        If `shape` has another number of elements than `x`, or ``copy=False`` and a copy is needed.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.arange(6.0)
    >>> xp.reshape(x, (2, -1))
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """
    x = as_tensor("reshape", x)
    target = shape_tuple(shape, "shape", -1)
    if -1 in target:
        rest = math.prod(n for n in target if n != -1)
        if target.count(-1) > 1 or rest <= 0 or x.size % rest:
            msg = f"reshape: cannot infer -1 in {target} for a Tensor of shape {x.shape} with {x.size} elements"
            raise ValueError(msg)
        target = tuple(x.size // rest if n == -1 else n for n in target)
    if math.prod(target) != x.size:
        msg = f"reshape: a Tensor of shape {x.shape} has {x.size} elements, but shape {target} has {math.prod(target)}"
        raise ValueError(msg)
    if copy is not None and as_flag(copy, "reshape", "copy"):
        return reshape_to(x.clone(), target)
    out = reshape_to(x, target)
    if copy is not None and out._alias is None:
        msg = f"reshape(copy=False): shape {x.shape} cannot be viewed as {target} with its strides; use copy=None"
        raise ValueError(msg)
    return out


@front
@_document_axes
def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return a view of `x` without axes of length 1.

    Parameters
    ----------
    axis : int or tuple of int
        Axes to remove, each of length 1.

    Returns
    -------
    Tensor
        A view without these axes.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int or a tuple of ints.
    ValueError
        If an axis has another length than 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.squeeze(xp.ones((1, 3, 1)), axis=2).shape
    (1, 3)
    """
    x = as_tensor("squeeze", x)
    if axis is None:
        msg = "squeeze: `axis` must be an int or a tuple of ints, but got None; the method `x.squeeze()` drops all axes of length 1"
        raise TypeError(msg)
    axes = normalize_axes(axis, x.ndim, "squeeze") or ()
    for a in axes:
        if x.shape[a] != 1:
            msg = f"squeeze: axis {a} of a Tensor of shape {x.shape} has length {x.shape[a]}, not 1"
            raise ValueError(msg)
    return reshape_to(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


@front
@_document_axes
def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return a view of `x` with new axes of length 1.

    Parameters
    ----------
    axis : int or tuple of int
        Positions of the new axes in the result. Several are possible since version 2025.12 of the standard.

    Returns
    -------
    Tensor
        A view with as many more axes.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is neither an int nor a tuple of ints.
    ValueError
        If a position is given twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.expand_dims(xp.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    >>> xp.expand_dims(xp.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    x = as_tensor("expand_dims", x)
    if not isinstance(axis, tuple):
        position = normalize_axis(axis, x.ndim + 1, "expand_dims")
        return reshape_to(x, (*x.shape[:position], 1, *x.shape[position:]))
    ndim = x.ndim + len(axis)
    positions = normalize_axes(axis, ndim, "expand_dims") or ()
    lengths = iter(x.shape)
    return reshape_to(x, tuple(1 if i in positions else next(lengths) for i in range(ndim)))


# -- order of axes --------------------------------------------------------------------------------------------------------


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    out = [0] * len(axes)
    for i, a in enumerate(axes):
        out[a] = i
    return tuple(out)


@view(
    lambda g, axes, xp: xp.transpose_axes(g, _inverse(axes)),
    node="PermuteBackward0", kind="transpose", dtype="same", public=("permute_dims", "moveaxis", "transpose"),
)  # fmt: skip
def transpose_axes(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return `x` with its axes in another order."""
    return xp.permute_dims(x, axes)


@view(lambda g, xp: xp.swap_last(g), node="TransposeBackward0", batch="stacked", kind="transpose", dtype="same", public="matrix_transpose")
def swap_last(xp: Any, x: Any) -> Any:
    """Return `x` with its last two axes exchanged."""
    return xp.matrix_transpose(x)


_document_order = shares(
    returns="""\
Tensor
    A view whose i-th axis is axis ``axes[i]`` of `x`.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, or `axes` is not a tuple of ints.
ValueError
    If `axes` does not name each axis exactly once.""",
)


@front
@_document_order
@_document_axes
def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view of `x` with its axes in another order.

    Parameters
    ----------
    axes : tuple of int
        The axes of `x` in their new order, each exactly once.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permute("permute_dims", x, axes)


def _permute(name: str, x: Any, axes: Any) -> Any:
    """Return a view with its axes in the order `axes`, which is checked."""
    x = as_tensor(name, x)
    if not isinstance(axes, (tuple, list)):
        msg = f"{name}: `axes` must be a tuple that names each of the {x.ndim} axes once, but got {shown(axes)}"
        raise TypeError(msg)
    order = normalize_axes(axes, x.ndim, name, "axes") or ()
    if len(order) != x.ndim:
        msg = f"{name}: `axes` must name each of the {x.ndim} axes once, but got {axes!r}"
        raise ValueError(msg)
    return transpose_axes(x, order)


@front
@_document_order
@_document_axes
def transpose(x: Tensor, /, axes: tuple[int, ...] | None = None) -> Tensor:
    """Return a view of `x` with its axes in another order, reversed by default (`numpy.transpose`).

    The method ``x.transpose(dim0, dim1)`` is PyTorch's: it exchanges two axes.

    Parameters
    ----------
    axes : tuple of int, optional
        The axes of `x` in their new order, each exactly once; in reverse order by default.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.transpose(xp.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = as_tensor("transpose", x)
    return _permute("transpose", x, tuple(range(x.ndim))[::-1] if axes is None else axes)


@front
def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view of `x` with its last two axes exchanged.

    Parameters
    ----------
    x : Tensor or raw array
        Matrices, of shape (..., M, N); any dtype.

    Returns
    -------
    Tensor
        A view, of shape (..., N, M).

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array.
    ValueError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> xp.matrix_transpose(x)
    tensor([[1., 3.],
            [2., 4.]])
    """
    x = as_tensor("matrix_transpose", x)
    if x.ndim < 2:
        msg = f"matrix_transpose needs at least 2 axes, but got a Tensor of shape {x.shape}"
        raise ValueError(msg)
    return swap_last(x)


@front
@_document_axes
def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Return a view of `x` with some axes moved to other positions; the others keep their order.

    Parameters
    ----------
    source : int or tuple of int
        Axes to move.
    destination : int or tuple of int
        Their positions in the result, as many as `source`.

    Returns
    -------
    Tensor
        A view with these axes at their new positions.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or an axis is not an int.
    ValueError
        If `source` and `destination` have different lengths, or one names an axis twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", x)
    for what, given in (("source", source), ("destination", destination)):
        if given is None:
            msg = f"moveaxis: `{what}` must be an int or a tuple of ints, but got None"
            raise TypeError(msg)
    src = normalize_axes(source, x.ndim, "moveaxis", "source") or ()
    dst = normalize_axes(destination, x.ndim, "moveaxis", "destination") or ()
    if len(src) != len(dst):
        msg = f"moveaxis: `source` and `destination` must have equal lengths, but got {source!r} and {destination!r}"
        raise ValueError(msg)
    order = [i for i in range(x.ndim) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return transpose_axes(x, tuple(order))


# -- broadcasting and repeating ---------------------------------------------------------------------------------------------


@view(
    lambda g, x_shape, xp: xp.sum_to(g, x_shape), node="ExpandBackward0", kind="expansion", dtype="same", grows=True, public="broadcast_to"
)
def broadcast_view(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Return `x` repeated to a larger shape without a copy."""
    return xp.broadcast_to(x, shape)


@front
def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return `x` broadcast to a shape: a view that cannot be written to.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    shape : sequence of int
        Shape of the result.

    Returns
    -------
    Tensor
        A view of that shape; the gradient of an element is the sum over its repetitions.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `shape` does not consist of ints.
    ValueError
        If `x` does not broadcast to `shape`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = xp.broadcast_to(x, (3, 2))
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([3., 3.])
    """
    x = as_tensor("broadcast_to", x)
    target = shape_tuple(shape)
    if len(target) < x.ndim or any(n not in (1, t) for n, t in zip(x.shape[::-1], target[::-1])):
        msg = f"broadcast_to: shape {x.shape} does not broadcast to {target}"
        raise ValueError(msg)
    return broadcast_view(x, target)


@composite
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Broadcast Tensors to their common shape.

    Parameters
    ----------
    *arrays : Tensor or raw array
        Shapes that broadcast with each other.

    Returns
    -------
    tuple of Tensor
        Views of one shape, which cannot be written to; each has the dtype of its argument.

    Raises
    ------
    TypeError
        If an argument is not a Tensor or an array.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a, b = xp.broadcast_arrays(xp.ones((2, 1)), xp.ones((3,)))
    >>> a.shape, b.shape
    ((2, 3), (2, 3))
    """
    arrays = tuple(as_tensors("broadcast_arrays", *arrays))
    shape = common_shape(*(a.shape for a in arrays), name="broadcast_arrays")
    return tuple(broadcast_to(a, shape) for a in arrays)


@composite
@_document_axes
def repeat(x: Tensor, repeats: int | Tensor, /, axis: int | None = None) -> Tensor:
    """Repeat each element along an axis, in newly allocated memory.

    Parameters
    ----------
    repeats : int or Tensor of integers
        Number of repetitions: one for all elements, or one for each index of the axis.
    axis : int, optional
        Axis along which to repeat; without it the flattened `x` is repeated.

    Returns
    -------
    Tensor
        Has ``sum(repeats)`` elements along the axis; the repetitions of an element follow each other.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `repeats` or `axis` does not consist of ints.
    ValueError
        If `repeats` is negative or has another length than the axis, or the result would be larger than an array can be.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = xp.repeat(x, 3)
    >>> y
    tensor([1., 1., 1., 2., 2., 2.], grad_fn=<IndexBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([3., 3.])
    """
    x = as_tensor("repeat", x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = normalize_axis(axis, x.ndim, "repeat")
    if not isinstance(repeats, (int, TensorBase)) and is_constant(repeats):
        repeats = as_tensor("repeat", repeats)
    if isinstance(repeats, TensorBase):
        if "integer" not in repeats.dtype.category:
            msg = f"repeat: `repeats` must be an int or a Tensor of integers, but got dtype {repeats.dtype}"
            raise TypeError(msg)
        if repeats.ndim == 0 or repeats.size == 1:
            repeats = int(repeats.item())
        elif repeats.shape != (x.shape[axis],):
            msg = f"repeat: `repeats` has shape {repeats.shape}, but axis {axis} of x has length {x.shape[axis]}"
            raise ValueError(msg)
    counts = repeats.tolist() if isinstance(repeats, TensorBase) else [as_size(repeats, "repeat", "repeats")] * x.shape[axis]
    if counts and min(counts) < 0:
        msg = f"repeat: `repeats` must not be negative, but got {min(counts)}"
        raise ValueError(msg)
    check_fits((*x.shape[:axis], sum(counts), *x.shape[axis + 1 :]), "repeat: the result")
    places = [i for i, n in enumerate(counts) for _ in range(n)]
    return take(x, asarray(places, dtype=x.default_dtype("indexing"), device=x.device), axis=axis)


@composite
def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the whole of `x` along each axis, in newly allocated memory.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    repetitions : int or tuple of int
        Number of repetitions along each axis, counted from the last one. Axes that `x` lacks are added in front.

    Returns
    -------
    Tensor
        Its lengths are those of `x` times `repetitions`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `repetitions` does not consist of ints.
    ValueError
        If a repetition is negative, or the result would be larger than an array can be.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.tile(xp.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """
    x = as_tensor("tile", x)
    reps = shape_tuple(repetitions, "repetitions")
    rank = max(len(reps), x.ndim)
    reps = (1,) * (rank - len(reps)) + reps
    shape = (1,) * (rank - x.ndim) + x.shape
    check_fits(tuple(r * s for r, s in zip(reps, shape)), "tile: the result")
    spread = reshape_to(x, tuple(n for s in shape for n in (1, s)))
    full = broadcast_view(spread, tuple(n for r, s in zip(reps, shape) for n in (r, s)))
    return reshape_to(full.clone(), tuple(r * s for r, s in zip(reps, shape)))


@rule(lambda g, axes, xp: xp.reverse(g, axes), conj=False, fresh=True, node="FlipBackward0", batch="stacked", public="flip")
def reverse(xp: Any, x: Any, axes: Any) -> Any:
    """Return `x` reversed along axes, in newly allocated memory."""
    return xp.copy(xp.flip(x, axis=axes))


@front
@_document_axes
def flip(x: Tensor, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return `x` reversed along axes, in newly allocated memory.

    Parameters
    ----------
    axis : int or tuple of int, optional
        Axes to reverse; all of them by default.

    Returns
    -------
    Tensor
        Has the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int or a tuple of ints.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.flip(xp.tensor([1.0, 2.0, 3.0]))
    tensor([3., 2., 1.])
    """
    x = as_tensor("flip", x)
    return reverse(x, normalize_axes(axis, x.ndim, "flip"))


def _opposite(shift: Any) -> Any:
    return tuple(-s for s in shift) if isinstance(shift, tuple) else -shift


@rule(lambda g, shift, axes, xp: xp.shift_by(g, _opposite(shift), axes), conj=False, fresh=True, node="RollBackward0", public="roll")
def shift_by(xp: Any, x: Any, shift: Any, axes: Any) -> Any:
    """Return `x` rolled along axes."""
    return xp.roll(x, shift, axis=axes)


@front
@_document_axes
def roll(x: Tensor, /, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Roll elements along axes: those that leave at the end come in at the start.

    Parameters
    ----------
    shift : int or tuple of int
        Number of places by which to roll; negative ones roll towards the start. One for all axes, or one for each.
    axis : int or tuple of int, optional
        Axes along which to roll; without it the flattened `x` is rolled.

    Returns
    -------
    Tensor
        Has the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `shift` or `axis` does not consist of ints.
    ValueError
        If `shift` is a tuple and `axis` is not a tuple of the same length.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.roll(xp.tensor([1.0, 2.0, 3.0]), 1)
    tensor([3., 1., 2.])
    """
    x = as_tensor("roll", x)
    if isinstance(shift, list):
        shift = tuple(shift)
    if isinstance(axis, list):
        axis = tuple(axis)
    if isinstance(shift, tuple):
        shift = tuple(as_int(s, "roll", "shift") for s in shift)
    else:
        shift = as_int(shift, "roll", "shift")
    if isinstance(shift, tuple) and not (isinstance(axis, tuple) and len(axis) == len(shift)):
        msg = f"roll: a tuple `shift` needs a tuple `axis` of equal length, but got shift={shift!r}, axis={axis!r}"
        raise ValueError(msg)
    if isinstance(axis, tuple):
        axes: Any = tuple(normalize_axis(a, x.ndim, "roll") for a in axis)
        shift = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    else:
        axes = None if axis is None else normalize_axis(axis, x.ndim, "roll")
    # Libraries take shifts of limited width only, and shifting by whole periods changes nothing.
    turned = [s if -_WORD <= s <= _WORD else s % _turn(x, axes, i) for i, s in enumerate(shift if isinstance(shift, tuple) else (shift,))]
    return shift_by(x, tuple(turned) if isinstance(shift, tuple) else turned[0], axes)


_WORD = 2**31 - 1


def _turn(x: Tensor, axes: Any, i: int) -> int:
    """Return the period of shifts along the i-th of `axes` (an axis, a tuple, or None for the flattened `x`): its length, at least 1."""
    if axes is None:
        return max(x.size, 1)
    return max(x.shape[axes[i] if isinstance(axes, tuple) else axes], 1)


# -- joining and splitting ----------------------------------------------------------------------------------------------------


def _pieces(g: Any, xs_shape: Any, axis: int, xp: Any) -> list[Any]:
    out, start = [], 0
    for shape in xs_shape:
        key = (slice(None),) * axis + (slice(start, start + shape[axis]),)
        out.append(xp.index_basic(g, key))
        start += shape[axis]
    return out


@rule(_pieces, conj=False, varargs=True, node="CatBackward0", batch="stacked", public="concat")
def join(xp: Any, xs: Any, axis: int) -> Any:
    """Concatenate arrays along an axis."""
    return xp.concat(xs, axis=axis)


@rule(
    lambda g, xs_shape, axis, xp: [xp.index_basic(g, (slice(None),) * axis + (i,)) for i in range(len(xs_shape))],
    conj=False, varargs=True, node="StackBackward0", batch="stacked",
    public="stack",
)  # fmt: skip
def pile(xp: Any, xs: Any, axis: int) -> Any:
    """Stack arrays along a new axis."""
    return xp.stack(xs, axis=axis)


def _same_kind(name: str, arrays: Any) -> list[Tensor]:
    """Return arrays as Tensors on one device and of one dtype."""
    if not isinstance(arrays, Iterable):
        msg = f"{name} needs a list or tuple of Tensors, but got {shown(arrays)}"
        raise TypeError(msg)
    xs = list(arrays)
    if not xs:
        msg = f"{name} needs at least one Tensor, but got an empty sequence"
        raise ValueError(msg)
    xs = unify(name, list(as_tensors(name, *xs)))
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = promote(dtype, x.dtype)
    return [x._cast(dtype) for x in xs]


@front
def concat(arrays: Sequence[Tensor], /, axis: int | None = 0) -> Tensor:
    """Concatenate Tensors along an existing axis.

    Parameters
    ----------
    arrays : sequence of Tensor or raw array
        At least one; all lengths but that of `axis` are equal. Raw arrays are constants.
    axis : int or None
        Axis along which to concatenate; None flattens all first.

    Returns
    -------
    Tensor
        Has the dtype to which all promote.

    Raises
    ------
    TypeError
        If `arrays` is not a sequence of Tensors or arrays, or `axis` is not an int.
    ValueError
        If `arrays` is empty, or the other axes differ.
    IndexError
        If `axis` is out of range.
    DeviceMismatchError
        If the arrays are on different devices.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a, b = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor([3.0], requires_grad=True)
    >>> y = xp.concat([a, b])
    >>> y
    tensor([1., 2., 3.], grad_fn=<CatBackward0>)
    >>> xp.autograd.grad(xp.sum(y * y), (a, b))
    (tensor([2., 4.]), tensor([6.]))
    """
    xs = _same_kind("concat", arrays)
    if axis is None:
        xs, axis = [reshape(x, (-1,)) for x in xs], 0
    axis = normalize_axis(axis, xs[0].ndim, "concat")
    first = xs[0].shape
    for x in xs:
        if x.ndim != len(first) or x.shape[:axis] + x.shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            msg = f"concat: shapes {first} and {x.shape} differ in an axis other than {axis}"
            raise ValueError(msg)
    return join(xs, axis)


@front
def stack(arrays: Sequence[Tensor], /, axis: int = 0) -> Tensor:
    """Stack Tensors of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of Tensor or raw array
        At least one, all of one shape. Raw arrays are constants.
    axis : int
        Position of the new axis in the result.

    Returns
    -------
    Tensor
        Has one more axis, whose length is the number of arrays, and the dtype to which all promote.

    Raises
    ------
    TypeError
        If `arrays` is not a sequence of Tensors or arrays, or `axis` is not an int.
    ValueError
        If `arrays` is empty, or the shapes differ.
    IndexError
        If `axis` is out of range.
    DeviceMismatchError
        If the arrays are on different devices.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.stack([xp.tensor([1.0, 2.0]), xp.tensor([3.0, 4.0])], axis=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    xs = _same_kind("stack", arrays)
    for x in xs:
        if x.shape != xs[0].shape:
            msg = f"stack needs Tensors of one shape, but got {xs[0].shape} and {x.shape}"
            raise ValueError(msg)
    return pile(xs, normalize_axis(axis, xs[0].ndim + 1, "stack"))


@front
@_document_axes
def unstack(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of `x` along an axis, as views that cannot be written to while operations are recorded.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; any dtype.
    axis : int
        Axis to remove.

    Returns
    -------
    tuple of Tensor
        Views, one for each index of the axis.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a, b = xp.unstack(xp.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> a
    tensor([1., 2.])
    >>> b
    tensor([3., 4.])
    """
    x = as_tensor("unstack", x)
    position = normalize_axis(axis, x.ndim, "unstack")
    return unstack_views(x, position)


def _pad_pairs(x: Tensor, pad_width: Any) -> list[tuple[int, int]]:
    """Return the numbers of elements to add before and after each axis.

    Raises
    ------
    TypeError
        If a width is not an int.
    ValueError
        If there is not one pair per axis, or a width is negative.
    """
    if callable(getattr(pad_width, "tolist", None)):
        pad_width = pad_width.tolist()
    given = list(pad_width) if isinstance(pad_width, (tuple, list)) else [pad_width]
    nested = any(isinstance(p, (tuple, list)) for p in given)
    rows = [p if isinstance(p, (tuple, list)) else (p,) for p in given] if nested else [given]
    ints = [tuple(as_int(n, "pad", "pad_width") for n in row) for row in rows]
    if not nested and len(given) in (1, 2):
        ints = [(ints[0][0], ints[0][-1])] * x.ndim
    if len(ints) != x.ndim or any(len(p) != 2 or min(p) < 0 for p in ints):
        wanted = f"an int, a pair or one pair of non-negative ints per axis of shape {x.shape}"
        msg = f"pad: `pad_width` must be {wanted}, but got {pad_width!r:.60}"
        raise ValueError(msg)
    return [(p[0], p[1]) for p in ints]


@front
def pad(x: Tensor, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """Return `x` with borders of a constant value, in newly allocated memory.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    pad_width : int, pair of int, or sequence of pairs
        Numbers of elements before and after: one int or pair for all axes, or one pair for each.
    mode : {"constant"}
        Other modes are not supported.
    constant_values : number or 0-d Tensor
        Value of the borders.

    Returns
    -------
    Tensor
        Longer than `x` by the two numbers along each axis, and of its dtype.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `pad_width` does not consist of ints.
    ValueError
        If there are not as many pairs as axes, or a number is negative.
    NotImplementedError
        If `mode` is not "constant".

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = xp.pad(x, (1, 2))
    >>> y
    tensor([0., 1., 2., 0., 0.], grad_fn=<CatBackward0>)
    >>> xp.sum(y * y).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    x = as_tensor("pad", x)
    if not isinstance(mode, str) or mode != "constant":
        msg = f"pad: `mode` must be 'constant', but got {mode!r}; build other borders with `concat` and slices"
        raise NotImplementedError(msg)
    pairs = _pad_pairs(x, pad_width)
    check_fits(tuple(n + sum(p) for n, p in zip(x.shape, pairs)), "pad: the padded shape")
    for axis, (before, after) in enumerate(pairs):
        parts = [x]
        for place, count in ((0, before), (len(parts) + 1, after)):
            if count:
                border = (*x.shape[:axis], count, *x.shape[axis + 1 :])
                parts.insert(place, operations.full(border, constant_values, dtype=x.dtype, device=x.device))
        x = concat(parts, axis=axis) if len(parts) > 1 else x
    return x if any(sum(p) for p in pairs) else x.clone()
