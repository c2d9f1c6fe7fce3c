"""Differences, comparisons with a tolerance, Einstein sums and `result_type`: composed of public functions, or without a gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import as_device
from xpgrad._basics.arguments import as_flag, as_real, as_size
from xpgrad._basics.dtypes import DType, as_dtype, can_cast, finfo, iinfo, isdtype, promote, promote_scalar
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import common_shape, normalize_axis
from xpgrad._modes import switches
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import composite, nondifferentiable
from xpgrad._operations.lift import as_operand, as_tensors, is_constant, lift_all, raw_dtype_of
from xpgrad._rows.namespace import NONDIFFERENTIABLE
from xpgrad.rules.elementwise import abs as magnitude, isfinite, isnan, where
from xpgrad.rules.indexing import index_basic
from xpgrad.rules.linear_algebra import matmul
from xpgrad.rules.manipulation import concat, reshape, reshape_to, transpose_axes
from xpgrad.rules.reduction import all as every, reduce_sum

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["result_type", "einsum", "allclose", "diff", "isclose"]

# Questions about dtypes have no gradient and need no rows: they are plain functions of `_basics.dtypes`.
NONDIFFERENTIABLE.update(can_cast=can_cast, finfo=finfo, iinfo=iinfo, isdtype=isdtype)


@nondifferentiable(primitive=True)
def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype to which arguments promote.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, raw array, DType or scalar
        At least one of them an array or a dtype. Python scalars only raise the kind, to the default dtype of the Tensors' device.

    Returns
    -------
    DType
        Data type to which the arguments promote.

    Raises
    ------
    ValueError
        If there is neither a Tensor, nor an array, nor a dtype.
    TypeError
        If there is no common dtype, or an argument is of another type.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.result_type(xp.float32, xp.tensor([1, 2]), 1.0)
    xpgrad.float32
    """
    dtypes: list[DType] = []
    scalars: list[complex] = []
    default = None
    for item in arrays_and_dtypes:
        if isinstance(item, TensorBase):
            dtypes.append(item.dtype)
            default = default or item.default_dtype
        elif is_scalar(item):
            scalars.append(as_scalar(item))
        elif is_constant(item):
            cls, dtype = raw_dtype_of(item)
            dtypes.append(dtype)
            default = default or cls.default_dtype
        elif isinstance(item, (list, tuple)):
            raise not_a_tensor("result_type", item)
        else:
            dtypes.append(as_dtype(item))
    if not dtypes:
        what = "only numbers" if scalars else "no arguments"
        msg = f"result_type needs at least one Tensor or dtype, but got {what}; wrap one with `xpgrad.asarray`"
        raise ValueError(msg)
    out = dtypes[0]
    for dtype in dtypes[1:]:
        out = promote(out, dtype)
    for scalar in scalars:
        out = promote_scalar(out, scalar, default or tensor_class(as_device(None)).default_dtype)
    return out


# -- differences --------------------------------------------------------------------------------------------------------


@composite
def diff(x: Tensor, /, n: int = 1, axis: int = -1, *, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Return the differences of neighbouring elements along an axis, taken `n` times.

    Parameters
    ----------
    x : Tensor or raw array
        Numeric, with at least one axis.
    n : int
        How many times to take differences; 0 gives a copy of `x` alone.
    axis : int
        Axis along which elements are neighbours.
    prepend, append : Tensor, optional
        Elements to put before and after those of `x` along `axis` first.

    Returns
    -------
    Tensor
        Has the shape of `x` (with `prepend` and `append`), but `n` elements fewer along the axis.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `n` or `axis` is not an int.
    IndexError
        If `axis` is out of range.
    ValueError
        If `n` is negative, or the shapes of `prepend` or `append` do not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 4.0, 9.0], requires_grad=True)
    >>> y = xp.diff(x)
    >>> y
    tensor([3., 5.], grad_fn=<SubBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([-1.,  0.,  1.])
    """
    given = list(as_tensors("diff", x, *(p for p in (prepend, append) if p is not None)))
    x, *others = given
    position = normalize_axis(axis, x.ndim, "diff")
    n = as_size(n, "diff", "n")
    if n == 0:
        return x.clone()
    parts = given if prepend is None else [others[0], x, *others[1:]]
    out = concat(parts, axis=position) if len(parts) > 1 else x
    lead = (slice(None),) * position
    for _ in range(n):
        out = index_basic(out, (*lead, slice(1, None))) - index_basic(out, (*lead, slice(None, -1)))
        if out.shape[position] == 0:
            break  # an empty axis has no differences
    return out


# -- comparison ------------------------------------------------------------------------------------------------------------


@nondifferentiable(primitive=True)
def isclose(
    x1: Tensor | complex, x2: Tensor | complex, /, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:  # fmt: skip
    """Return whether ``|x1 - x2| <= atol + rtol * |x2|``, elementwise with broadcasting.

    Infinite elements are close only to equal ones.

    Parameters
    ----------
    x1, x2 : Tensor, raw array or number
        Any dtype; shapes that broadcast with each other.
    rtol : float
        Tolerance relative to the magnitude of `x2`.
    atol : float
        Absolute tolerance.
    equal_nan : bool
        Whether nan is close to nan.

    Returns
    -------
    Tensor
        bool, of the shape to which the operands broadcast.

    Raises
    ------
    TypeError
        If an operand is not a Tensor, an array or a number, or a tolerance is not a real number.
    ValueError
        If the shapes do not broadcast.
    DeviceMismatchError
        If the operands are on different devices; 0-d Tensors on the host mix with all others.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isclose(xp.tensor([1.0, 1.0 + 1e-9]), 1.0)
    tensor([ True,  True])
    """
    x1, x2, rtol, atol = lift_all("isclose", (x1, x2, rtol, atol))
    if is_scalar(x1) and is_scalar(x2):
        x1 = as_operand("isclose", x1)
    rtol, atol = (t if isinstance(t, TensorBase) else as_real(t, "isclose", w) for w, t in (("rtol", rtol), ("atol", atol)))
    equal_nan = as_flag(equal_nan, "isclose", "equal_nan")
    with switches.no_grad():
        a, b = (_as_tensor(x, x1, x2) for x in (x1, x2))
        dtype = result_type(x1, x2)
        if not dtype.differentiable:
            dtype = a.default_dtype("real floating")
        a, b = a._cast(dtype), b._cast(dtype)
        # An infinite tolerance would accept every pair, and inf - inf is nan, which is never within a tolerance.
        usual = isfinite(a) & isfinite(b)
        a_safe, b_safe = where(usual, a, 0.0), where(usual, b, 0.0)
        common_shape(a.shape, b.shape, name="isclose")
        close = (a == b) | (usual & (magnitude(a_safe - b_safe) <= magnitude(b_safe) * rtol + atol))
        return close | (isnan(a) & isnan(b)) if equal_nan else close


def _as_tensor(x: Any, *both: Any) -> Any:
    """Return `x` as a Tensor: a scalar becomes a 0-d one on the device of the other operand, in the dtype to which both promote."""
    if isinstance(x, TensorBase):
        return x
    tensor = next((t for t in both if isinstance(t, TensorBase)), None)
    if tensor is None or not is_scalar(x):
        raise not_a_tensor("isclose", *both)
    return tensor.scalar(as_scalar(x), result_type(*both))


@nondifferentiable(primitive=True)
def allclose(
    x1: Tensor | complex, x2: Tensor | complex, /, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:  # fmt: skip
    """Return whether all elements are close, as `isclose` defines it.

    Parameters
    ----------
    x1, x2 : Tensor, raw array or number
        Any dtype; shapes that broadcast with each other.
    rtol : float
        Tolerance relative to the magnitude of `x2`.
    atol : float
        Absolute tolerance.
    equal_nan : bool
        Whether nan is close to nan.

    Returns
    -------
    bool
        True if every element is close.

    Raises
    ------
    TypeError
        If an operand is not a Tensor, an array or a number, or a tolerance is not a real number.
    ValueError
        If the shapes do not broadcast.
    DeviceMismatchError
        If the operands are on different devices; 0-d Tensors on the host mix with all others.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.allclose(xp.tensor([1.0, 2.0]), xp.tensor([1.0, 2.0 + 1e-9]))
    True
    """
    return bool(every(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


# -- Einstein sums -------------------------------------------------------------------------------------------------------------

# A label is a letter of the equation, or an int for an axis that an ellipsis stands for (counted from the right).
_Labels = list[Any]


@composite
def einsum(equation: str, /, *operands: Tensor) -> Tensor:
    """Return a sum of products over labelled axes, in Einstein's notation, in newly allocated memory (as `torch.einsum`).

    Parameters
    ----------
    equation : str
        Labels of each operand's axes, such as ``"ij,jk->ik"``. A label that occurs twice in one operand takes its diagonal; labels
        that the output lacks are summed over; ``...`` stands for axes that broadcast. Without ``->`` the output has the broadcast axes,
        then the labels that occur once, in alphabetical order.
    *operands : Tensor or raw array
        One for each group of labels before ``->``.

    Returns
    -------
    Tensor
        Has the axes that the output names, and the dtype to which the operands promote.

    Raises
    ------
    TypeError
        If `equation` is not a str, or an operand is not a Tensor or an array.
    ValueError
        If the equation is malformed, or does not fit the operands' shapes.
    DeviceMismatchError
        If the operands are on different devices; 0-d Tensors on the host mix with all others.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> trace = xp.einsum("ii->", a)
    >>> trace.backward()
    >>> a.grad
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not isinstance(equation, str):
        msg = f"einsum: the equation must be a str such as 'ij,jk->ik', but got {type(equation).__name__}"
        raise TypeError(msg)
    operands = tuple(as_tensors("einsum", *operands))
    if not operands:
        msg = "einsum needs at least one Tensor, e.g. `einsum('ij->ji', x)`"
        raise ValueError(msg)
    inputs, output = parse_equation(equation, operands)
    tensors = unify("einsum", list(operands))
    dtype = result_type(*tensors)
    terms = [_diagonals(x._cast(dtype), labels) for x, labels in zip(tensors, inputs)]
    sizes = _sizes(equation, terms)
    terms = [_without_ones(x, labels, sizes) for x, labels in terms]
    x, labels = terms[0]
    for k, (y, others) in enumerate(terms[1:], start=2):
        wanted = {*output, *(label for _, rest in terms[k:] for label in rest)}
        x, labels = _contract(x, labels, y, others, wanted)
    shared = len(terms) == 1 and set(labels) <= set(output)  # nothing was computed, so that `x` is a view
    x, labels = _sum_out(x, labels, set(output))
    x = transpose_axes(x, tuple(labels.index(label) for label in output if label in labels))
    if x.ndim < len(output):  # an axis of length 1 in every operand
        x = reshape_to(x, tuple(sizes[label] for label in output))
    return x.clone() if shared else x


def parse_equation(equation: str, operands: Sequence[Tensor]) -> tuple[list[_Labels], _Labels]:
    """Return the labels of each operand's axes, and those of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        msg = f"einsum: the equation {equation!r} has {len(texts)} operands, but {len(operands)} Tensors were given"
        raise ValueError(msg)
    inputs = [_labels(equation, text, x.ndim) for text, x in zip(texts, operands)]
    dots = sorted({label for labels in inputs for label in labels if isinstance(label, int)})
    if arrow:
        output = _labels(equation, right, len(right.replace("...", "")) + (len(dots) if "..." in right else 0))
        unknown = [label for label in output if not any(label in labels for labels in inputs)]
        if unknown or len(set(output)) != len(output):
            what = f"has the label {unknown[0]!r}, which no operand has" if unknown else "has a label twice"
            msg = f"einsum: the output of {equation!r} {what}"
            raise ValueError(msg)
    else:
        flat = [label for labels in inputs for label in labels if isinstance(label, str)]
        output = [*dots, *sorted(label for label in set(flat) if flat.count(label) == 1)]
    return inputs, output


def _labels(equation: str, text: str, ndim: int) -> _Labels:
    """Return the labels of one operand, with the ellipsis replaced by the numbers of its axes."""
    before, dots, after = text.partition("...")
    named = before + after
    if not all(c.isascii() and c.isalpha() for c in named):
        msg = f"einsum: labels are letters, but {equation!r} has {named!r}"
        raise ValueError(msg)
    more = ndim - len(named)
    if more < 0 or (more and not dots):
        msg = f"einsum: {text!r} in {equation!r} names {len(named)} axes, but that Tensor has {ndim}; use '...' for the others"
        raise ValueError(msg)
    return [*before, *range(-more, 0), *after]


def _diagonals(x: Tensor, labels: _Labels) -> tuple[Tensor, _Labels]:
    """Take the diagonal of axes with the same label: every (n + 1)-th element of the two merged; return the rest and its labels."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            n = x.shape[first]
            if x.shape[second] != n:
                msg = f"einsum: the axes labelled {label!r} twice have lengths {n} and {x.shape[second]}"
                raise ValueError(msg)
            rest = [i for i in range(x.ndim) if i not in (first, second)]
            x = reshape(transpose_axes(x, (*rest, first, second)), (*(x.shape[i] for i in rest), n * n))
            x = index_basic(x, (..., slice(None, None, n + 1)))
            labels = [*(labels[i] for i in rest), label]
    return x, labels


def _sizes(equation: str, terms: Sequence[tuple[Tensor, _Labels]]) -> dict[Any, int]:
    """Return the length of each label's axis; axes of length 1 broadcast."""
    sizes: dict[Any, int] = {}
    for x, labels in terms:
        for label, n in zip(labels, x.shape):
            try:
                sizes[label] = common_shape((sizes.get(label, 1),), (n,))[0]
            except ValueError:
                what = "'...'" if isinstance(label, int) else repr(label)
                msg = f"einsum: {what} in {equation!r} stands for axes of lengths {sizes[label]} and {n}"
                raise ValueError(msg) from None
    return sizes


def _without_ones(x: Tensor, labels: _Labels, sizes: dict[Any, int]) -> tuple[Tensor, _Labels]:
    """Drop the axes of length 1 that broadcast; return the rest and its labels."""
    kept = [i for i, label in enumerate(labels) if x.shape[i] == sizes[label]]
    if len(kept) == len(labels):
        return x, labels
    return reshape_to(x, tuple(x.shape[i] for i in kept)), [labels[i] for i in kept]


def _sum_out(x: Tensor, labels: _Labels, wanted: set[Any]) -> tuple[Tensor, _Labels]:
    """Sum over the axes whose labels are not wanted; return the sums and their labels."""
    axes = tuple(i for i, label in enumerate(labels) if label not in wanted)
    if not axes:
        return x, labels
    total = reduce_sum(x, axes, False)._cast(x.dtype)
    return total, [label for label in labels if label in wanted]


def _contract(x: Tensor, xl: _Labels, y: Tensor, yl: _Labels, wanted: set[Any]) -> tuple[Tensor, _Labels]:
    """Multiply two operands with labelled axes, and sum over the labels that neither `wanted` nor the other operand has.

    Parameters
    ----------
    x, y : Tensor
    xl, yl : list
        The label of each axis.
    wanted : set
        The labels that are needed later.

    Returns
    -------
    Tensor
        A product of stacks of matrices.
    list
        Its labels.
    """
    x, xl = _sum_out(x, xl, wanted | set(yl))
    y, yl = _sum_out(y, yl, wanted | set(xl))
    stacked = [label for label in xl if label in yl and label in wanted]
    summed = [label for label in xl if label in yl and label not in wanted]
    rows, columns = ([label for label in own if label not in other] for own, other in ((xl, yl), (yl, xl)))
    sizes = dict(zip(xl, x.shape)) | dict(zip(yl, y.shape))

    def matrices(t: Tensor, own: _Labels, *groups: _Labels) -> Tensor:
        t = transpose_axes(t, tuple(own.index(label) for group in groups for label in group))
        return reshape(t, tuple(math.prod(sizes[label] for label in group) for group in groups))

    if summed:
        out = matmul(matrices(x, xl, stacked, rows, summed), matrices(y, yl, stacked, summed, columns))
    else:
        out = matrices(x, xl, stacked, rows, []) * matrices(y, yl, stacked, [], columns)
    labels = [*stacked, *rows, *columns]
    return reshape(out, tuple(sizes[label] for label in labels)), labels
