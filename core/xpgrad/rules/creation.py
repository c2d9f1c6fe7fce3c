"""Creation functions and conversions of dtype. `astype`, `meshgrid`, `tril`, `triu`, `full`, `full_like` and `linspace` have gradients."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import as_device
from xpgrad._basics.arguments import as_flag, as_int, as_real, as_size, check_choice, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import DType, as_dtype, float32, iinfo, promote, promote_scalar, real_of
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import MOST_ELEMENTS, UnknownShape, check_fits, shape_tuple
from xpgrad._modes.batch_levels import note_made
from xpgrad._operations.declare import composite, front, nondifferentiable, rule, view
from xpgrad._operations.lift import as_tensor, as_tensors, is_constant
from xpgrad._rows.namespace import PRIMITIVES, operations
from xpgrad._tape.task import note_complex
from xpgrad.rules.conversion import new_tensor
from xpgrad.rules.elementwise import real
from xpgrad.rules.manipulation import broadcast_to, reshape

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = [
    "astype", "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "tril",
    "triu", "zeros", "zeros_like",
]  # fmt: skip


@rule(
    lambda g, x_dtype, xp: xp.cast(g, x_dtype),
    conj=False, fresh=True, node="ToCopyBackward0", kind="cast", memory="new", dtype="given", public="astype",
)  # fmt: skip
def to_dtype(xp: Any, x: Any, dtype: Any) -> Any:
    """Return `x` in a raw dtype: complex to real takes the real part (CPX-06), and bool is True for nonzero elements."""
    if xp.isdtype(x.dtype, "complex floating") and not xp.isdtype(dtype, "complex floating"):
        if xp.isdtype(dtype, "bool"):
            return x != 0
        x = xp.real(x)
    return xp.astype(x, dtype, copy=True)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """Convert `x` to a raw dtype of its backend, recorded; warn if an imaginary part is lost (CPX-06)."""
    wanted = x.backend.dtype_of(dtype)
    if x.dtype.is_complex and not wanted.is_complex and wanted.name != "bool":
        msg = "Casting complex values to real discards the imaginary part; use `xpgrad.real(x)` if that is intended"
        warnings.warn(msg, UserWarning, stacklevel=4)
    if wanted.is_complex:
        note_complex()
    out = to_dtype(x, dtype)
    if not wanted.differentiable:
        out._node = None  # BWD-30: an integer result has no gradient
    return out


@view(lambda g: g, node="AliasBackward0")
def alias(xp: Any, x: Any) -> Any:
    """Return another Tensor with the memory of `x`."""
    return x


@rule(lambda g: g, conj=False, batch="stacked", kind="copy", memory="new", dtype="same")
def clone(xp: Any, x: Any) -> Any:
    """Return a copy."""
    return xp.copy(x)


@rule(lambda g: g, conj=False, node="CloneBackward0", batch="stacked", kind="copy", memory="new", dtype="same")
def clone_contiguous(xp: Any, x: Any) -> Any:
    """Return a copy in row-major order."""
    return xp.asarray(x, copy=True)


@rule(lambda g: g, conj=False, node="CloneBackward0", kind="copy", dtype="same")
def clone_laid_out(xp: Any, x: Any, like: Any) -> Any:
    """Return a copy with the layout of a gradient of the raw array `like` (LAY-01, LAY-02)."""
    return xp._backend.with_layout(x, like)


def _cast_quietly(x: Tensor, dtype: Any) -> Tensor:
    """Convert in a formula, without a warning: for complex to real it takes the real part, which is the gradient of a real operand."""
    if x.dtype.is_complex and not dtype.is_complex:
        x = real(x)
    return x._cast(dtype)


# In a formula `xp.cast(x, dtype)` takes the namespace's own dtype objects; on raw arrays that is the kernel of `to_dtype`.
PRIMITIVES["cast"] = _cast_quietly
PRIMITIVES["wide"] = lambda x: x._cast(float32) if x.dtype.category == "real floating" and x.dtype.itemsize < 4 else x


@front(method="astype")
def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return `x` in another dtype; the gradient returns in the dtype of `x`.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    dtype : DType
        Data type of the result. Complex to real takes the real part, with a warning.
    copy : bool
        If False, return `x` itself if it already has that dtype.
    device : Device or str, optional
        Device of the result; that of `x` by default.

    Returns
    -------
    Tensor
        Has the shape of `x` and the dtype `dtype`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `dtype` is not a data type.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.5, 2.5], requires_grad=True)
    >>> y = xp.astype(x, xp.float32)
    >>> y.dtype
    xpgrad.float32
    >>> xp.sum(y).backward()
    >>> x.grad.dtype
    xpgrad.float64
    """
    x = as_tensor("astype", x)
    wanted = as_dtype(dtype, x.default_dtype)
    copy = as_flag(copy, "astype", "copy")
    out = x if device is None else x.to_device(device)
    if out.dtype is wanted:
        return out.clone() if copy and out is x else out
    return out._cast(wanted)


def _target(dtype: Any, device: Any, kind: str = "real floating") -> tuple[Any, DType]:
    """Return the Tensor class and the dtype of a creation function's result; `kind` is the kind of the default dtype."""
    cls = tensor_class(as_device(device))
    return cls, cls.default_dtype(kind) if dtype is None else as_dtype(dtype, cls.default_dtype)


def _make(cls: Any, name: str, *args: Any, dtype: DType, requires_grad: bool = False, **kwargs: Any) -> Tensor:
    if args[0].__class__ is UnknownShape:
        backend = args[0].backend
        raw = getattr(backend.kernels, name)(tuple(args[0]), *args[1:], dtype=dtype, **kwargs, **backend.creation_options(cls.device))
        return backend.wrap(raw)
    backend = cls.backend
    raw = getattr(backend.namespace(), name)(*args, dtype=backend.raw_dtype(dtype), **kwargs, **backend.creation_options(cls.device))
    out: Tensor = note_made(new_tensor(cls, backend.adopt(raw)))
    return out.requires_grad_() if requires_grad is not False and as_flag(requires_grad, name, "requires_grad") else out


def _lengths(name: str, first: Any, others: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape whose lengths were given one by one."""
    shape = (first, *others)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
        msg = f"{name} takes a shape, or its lengths one by one, by position, but got {shape}; give `dtype` and `device` by name"
        raise TypeError(msg)
    return shape_tuple(shape)


_CONSTANTS = """\
dtype : DType, optional
    Data type; the default floating-point dtype of the device by default.
device : Device or str, optional
    Device of the result; the default device by default.
requires_grad : bool
    Whether operations on the result are recorded."""
_document_constants = shares(_CONSTANTS)
_document_shape = shares(
    parameters=f"""\
shape : int or tuple of int
    Shape of the result, or its first length.
*sizes : int
    Further lengths, if `shape` is the first.
{_CONSTANTS}""",
    raises="""\
TypeError
    If the shape does not consist of ints, or `dtype` is not a data type.
ValueError
    If a length is negative.""",
)
_document_like = shares(
    parameters="""\
x : Tensor or raw array
    Any shape and dtype.
dtype : DType, optional
    Data type; that of `x` by default.
device : Device or str, optional
    Device of the result; that of `x` by default.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array.""",
)


@nondifferentiable(primitive=True)
@_document_shape
def zeros(shape: int | Sequence[int], *sizes: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a Tensor of zeros; ``zeros(2, 3)`` is PyTorch's spelling of ``zeros((2, 3))``.

    Returns
    -------
    Tensor
        Zeros of that shape.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.zeros((2, 3))
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    cls, dtype = _target(dtype, device)
    return _make(cls, "zeros", _lengths("zeros", shape, sizes) if sizes else shape_tuple(shape), dtype=dtype, requires_grad=requires_grad)


@nondifferentiable(primitive=True)
@_document_shape
def ones(shape: int | Sequence[int], *sizes: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a Tensor of ones; ``ones(2, 3)`` is PyTorch's spelling of ``ones((2, 3))``.

    Returns
    -------
    Tensor
        Ones of that shape.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.ones((2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    cls, dtype = _target(dtype, device)
    return _make(cls, "ones", _lengths("ones", shape, sizes) if sizes else shape_tuple(shape), dtype=dtype, requires_grad=requires_grad)


@nondifferentiable(primitive=True)
@_document_shape
def empty(shape: int | Sequence[int], *sizes: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a Tensor with unspecified values; ``empty(2, 3)`` is PyTorch's spelling of ``empty((2, 3))``.

    Returns
    -------
    Tensor
        Of that shape; its values are arbitrary.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    cls, dtype = _target(dtype, device)
    return _make(cls, "empty", _lengths("empty", shape, sizes) if sizes else shape_tuple(shape), dtype=dtype, requires_grad=requires_grad)


@nondifferentiable(primitive=True)
@_document_like
def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros of the shape of `x`.

    Returns
    -------
    Tensor
        Zeros of the shape of `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.zeros_like(xp.tensor([1.0, 2.0]))
    tensor([0., 0.])
    """
    return _like("zeros", x, dtype, device)


@nondifferentiable(primitive=True)
@_document_like
def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones of the shape of `x`.

    Returns
    -------
    Tensor
        Ones of the shape of `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.ones_like(xp.tensor([1.0, 2.0]))
    tensor([1., 1.])
    """
    return _like("ones", x, dtype, device)


@nondifferentiable(primitive=True)
@_document_like
def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a Tensor of the shape of `x` with unspecified values.

    Returns
    -------
    Tensor
        Of the shape of `x`; its values are arbitrary.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.empty_like(xp.tensor([1.0, 2.0])).shape
    (2,)
    """
    return _like("empty", x, dtype, device)


def _like(name: str, x: Any, dtype: Any, device: Any) -> Tensor:
    x = as_tensor(f"{name}_like", x)
    cls = tensor_class(x.device if device is None else as_device(device))
    return _make(cls, name, shape_tuple(x.shape), dtype=x.dtype if dtype is None else as_dtype(dtype, cls.default_dtype))


@composite
@_document_constants
def full(shape: int | Sequence[int], fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a Tensor filled with one value; differentiable with respect to a 0-d Tensor `fill_value`.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of the result.
    fill_value : scalar or 0-d Tensor
        Value of all elements.
    dtype : DType, optional
        Data type; by default that of a Tensor `fill_value`, or the device's default dtype of the kind of a scalar.
    device : Device or str, optional
        Device of the result; by default that of a Tensor `fill_value`, or the default device.

    Returns
    -------
    Tensor
        Of that shape, filled with the value.

    Raises
    ------
    TypeError
        If `fill_value` is not a number, or is complex and `dtype` is real.
    ValueError
        If `fill_value` is a Tensor with axes, or is not finite and `dtype` is an integer dtype, or if a length is negative.
    OverflowError
        If `fill_value` is out of the range of an integer `dtype`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.full((2,), 7.0)
    tensor([7., 7.])
    """
    shape = shape_tuple(shape)
    if not isinstance(fill_value, TensorBase) and not is_scalar(fill_value) and is_constant(fill_value):
        fill_value = as_tensor("full", fill_value)
    if isinstance(fill_value, TensorBase):
        if fill_value.ndim:
            msg = f"full: `fill_value` must be a scalar or a 0-d Tensor, but got shape {fill_value.shape}"
            raise ValueError(msg)
        value: Any = fill_value if device is None else fill_value.to_device(device)
        value = value if dtype is None else value._cast(as_dtype(dtype, value.default_dtype))
        out = broadcast_to(value, shape).clone()
        return out.requires_grad_() if as_flag(requires_grad, "full", "requires_grad") and out.is_leaf else out
    if not is_scalar(fill_value):
        msg = f"full: `fill_value` must be a scalar or a 0-d Tensor, but got {shown(fill_value)}"
        raise TypeError(msg)
    value = as_scalar(fill_value)
    kinds: dict[type, str] = {int: "integral", float: "real floating", complex: "complex floating"}
    cls, wanted = _target("bool" if dtype is None and isinstance(value, bool) else dtype, device, kinds.get(type(value), "integral"))
    _check_fill(value, wanted)
    if wanted.category == "bool":
        value = bool(value)
    return _make(cls, "full", shape, value, dtype=wanted, requires_grad=requires_grad)


def _check_fill(value: complex, dtype: DType) -> None:
    """Refuse a scalar that a dtype cannot hold.

    Raises
    ------
    TypeError, ValueError, OverflowError
        For a complex number, one that is not finite, or one that is too large.
    """
    if isinstance(value, complex) and not dtype.is_complex and dtype.category != "bool":
        msg = f"full: `fill_value`={value!r} is complex, which dtype {dtype} cannot hold; give a complex dtype, or `fill_value.real`"
        raise TypeError(msg)
    if "integer" not in dtype.category or isinstance(value, complex):
        return
    if not math.isfinite(value):
        msg = f"full: `fill_value`={value!r} is not finite, which dtype {dtype} cannot hold; give a floating dtype"
        raise ValueError(msg)
    limits = iinfo(dtype)
    if not limits.min <= value <= limits.max:
        msg = f"full: `fill_value`={value!r} does not fit in dtype {dtype}, which holds {limits.min} to {limits.max}"
        raise OverflowError(msg)


@composite
@_document_like
def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a Tensor of the shape of `x` filled with one value; differentiable with respect to a 0-d Tensor `fill_value`.

    Parameters
    ----------
    fill_value : scalar or 0-d Tensor
        Value of all elements.

    Returns
    -------
    Tensor
        Of the shape of `x`, filled with the value.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `fill_value` is not a number, or is complex and `dtype` is real.
    ValueError
        If `fill_value` is a Tensor with axes, or is not finite and `dtype` is an integer dtype.
    OverflowError
        If `fill_value` is out of the range of an integer `dtype`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.full_like(xp.tensor([1.0, 2.0]), 7.0)
    tensor([7., 7.])
    """
    x = as_tensor("full_like", x)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device)


@nondifferentiable(primitive=True)
@_document_constants
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return evenly spaced values in the half-open interval ``[start, stop)``.

    Parameters
    ----------
    start, stop, step : int, float, or a Tensor or array with one element
        First value, end of the interval, and distance between values. With `start` alone, the interval is ``[0, start)``.
    dtype : DType, optional
        Data type; by default the device's integer dtype, or its floating-point dtype if one of the numbers is a float.

    Returns
    -------
    Tensor
        One-dimensional, with ``ceil((stop - start) / step)`` elements.

    Raises
    ------
    TypeError
        If an argument is not a real number, or is a Tensor that requires grad.
    ValueError
        If the step is 0, or there would be more values than an array can have.
    OverflowError
        If the values do not fit in an integer `dtype`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.arange(2, 10, 3)
    tensor([2, 5, 8])
    >>> xp.arange(3.0)
    tensor([0., 1., 2.])
    """
    given: tuple[Any, ...] = (("start", start), ("stop", stop), ("step", step))
    parts = [_real(p, "arange", what) for what, p in given if p is not None or what != "stop"]
    kind = "integral" if all(isinstance(p, int) for p in parts) else "real floating"
    cls, dtype = _target(dtype, device, kind)
    if stop is None:
        parts = [0, parts[0], parts[1]]
    first, last, stride = parts
    if stride == 0 or not all(map(math.isfinite, parts)) or abs((last - first) / stride) > MOST_ELEMENTS:
        why = "the step is 0" if stride == 0 else "that is more values than an array can have"
        msg = f"arange: `start`={first!r}, `stop`={last!r} and `step`={stride!r} do not fit together: {why}"
        raise ValueError(msg)
    if "integer" in dtype.category:
        limits = iinfo(dtype)
        if (last - first) * stride > 0 and not (limits.min <= first <= limits.max and limits.min <= last <= limits.max + 1):
            msg = f"arange: the values from `start`={first!r} to `stop`={last!r} do not fit in dtype {dtype}"
            raise OverflowError(msg)
    return _make(cls, "arange", *parts, dtype=dtype, requires_grad=requires_grad)


def _real(value: Any, name: str, what: str) -> Any:
    """Return a real Python number, also from a Tensor or an array with one element."""
    tensor: Any = value if isinstance(value, TensorBase) else None
    if tensor is not None and (tensor.requires_grad or tensor._has_tangent()):
        msg = (
            f"{name}: `{what}` must be a number, not a Tensor that requires grad or has a tangent: it decides how many elements there are, "
            f"and its derivative would be lost. Give `{what}.detach()`, or compute with `xpgrad.arange(n) * step + start`"
        )
        raise TypeError(msg)
    value = value if tensor is None else tensor
    if not is_scalar(value) and callable(getattr(value, "item", None)):
        if value.size != 1:
            msg = f"{name}: `{what}` must be a real number, but got a {type(value).__name__} of shape {tuple(value.shape)}"
            raise TypeError(msg)
        value = value.item()
    return int(value) if isinstance(value, bool) else as_real(value, name, what)


def _number(value: Any, name: str, what: str) -> Any:
    """Return a real or complex Python number, also from an array with one element; an int becomes a float."""
    if not is_scalar(value) and callable(getattr(value, "item", None)):
        if getattr(value, "size", 1) != 1:
            return _real(value, name, what)  # raises the error
        value = value.item()
    scalar = as_scalar(value) if is_scalar(value) else as_real(value, name, what)
    try:
        return float(scalar) if isinstance(scalar, int) else scalar
    except OverflowError:
        msg = f"{name}: `{what}` is too large for a floating number: {value!r:.60}"
        raise OverflowError(msg) from None


@composite
@_document_constants
def linspace(
    start: complex | Tensor, stop: complex | Tensor, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return `num` evenly spaced values from `start` to `stop`; differentiable with respect to both.

    Parameters
    ----------
    start, stop : number or 0-d Tensor
        First value, and last one or, with ``endpoint=False``, the end of the half-open interval.
    num : int
        Number of values.
    dtype : DType, optional
        Data type; by default that to which floating-point Tensors promote, or the device's default dtype, complex if a number is.
    device : Device or str, optional
        Device of the result; by default that of the Tensors, or the default device.
    endpoint : bool
        Whether `stop` is the last value.

    Returns
    -------
    Tensor
        Of shape (num,).

    Raises
    ------
    TypeError
        If `start` or `stop` is not a number or has more than one element, or `num` is not an int.
    ValueError
        If `num` is negative, or more than an array can have.
    OverflowError
        If `start` or `stop` is an int that no float can hold.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    num = as_size(num, "linspace", "num")
    check_fits((num,), "linspace: `num`")
    endpoint = as_flag(endpoint, "linspace", "endpoint")
    if isinstance(start, TensorBase) or isinstance(stop, TensorBase):
        out = _linspace_tensors(start, stop, num, dtype, device, endpoint)
        return out.requires_grad_() if as_flag(requires_grad, "linspace", "requires_grad") and out.is_leaf else out
    start, stop = _number(start, "linspace", "start"), _number(stop, "linspace", "stop")
    kind = "complex floating" if isinstance(start, complex) or isinstance(stop, complex) else "real floating"
    cls, dtype = _target(dtype, device, kind)
    return _make(cls, "linspace", start, stop, num, dtype=dtype, endpoint=endpoint, requires_grad=requires_grad)


def _linspace_tensors(start: Any, stop: Any, num: int, dtype: Any, device: Any, endpoint: bool) -> Tensor:
    """Compute `linspace` for a `start` or `stop` that is a Tensor.

    As in NumPy, values are whole steps from `start`, and the last one is exactly `stop`.
    """
    ends: list[Any] = []
    for value, what in ((start, "start"), (stop, "stop")):
        if not isinstance(value, TensorBase):
            ends.append(_number(value, "linspace", what))
            continue
        if value.size != 1:
            msg = f"linspace: `{what}` must be a number or a 0-d Tensor, but got shape {value.shape}"
            raise TypeError(msg)
        moved: Any = value if device is None else value.to_device(device)
        ends.append(moved if moved.shape == () else reshape(moved, ()))
    tensors = [e for e in ends if isinstance(e, TensorBase)]
    default = tensors[0].default_dtype
    floats = [t.dtype for t in tensors if t.dtype.differentiable] or [default("real floating")]
    computed = functools.reduce(promote, floats)
    for e in ends:
        computed = computed if isinstance(e, TensorBase) else promote_scalar(computed, e, default)
    wanted = computed if dtype is None else as_dtype(dtype, default)
    computed = wanted if wanted.differentiable else computed
    first, last = (e._cast(computed) if isinstance(e, TensorBase) else e for e in ends)
    count = num - 1 if endpoint else num
    places = arange(num, dtype=real_of(computed), device=tensors[0].device)
    out = places * ((last - first) / max(count, 1)) + first
    if endpoint and num > 1:
        out = operations.where(places == count, last, out)
    return out if wanted is computed else operations.floor(out)._cast(wanted)


@nondifferentiable(primitive=True)
@_document_constants
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a matrix with ones on the k-th diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_cols : int, optional
        Number of columns; by default the number of rows.
    k : int
        Diagonal with the ones: 0 is the main one, positive ones are above it.

    Returns
    -------
    Tensor
        Of shape (n_rows, n_cols).

    Raises
    ------
    TypeError
        If `n_rows`, `n_cols` or `k` is not an int.
    ValueError
        If `n_rows` or `n_cols` is negative, or the result would be larger than an array can be.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    cls, dtype = _target(dtype, device)
    rows = as_size(n_rows, "eye", "n_rows")
    columns = rows if n_cols is None else as_size(n_cols, "eye", "n_cols")
    check_fits((rows, columns), "eye: the result")
    return _make(cls, "eye", rows, columns, k=_offset("eye", k, rows, columns), dtype=dtype, requires_grad=requires_grad)


def _offset(name: str, k: Any, rows: int, columns: int) -> int:
    """Return the number `k` of a diagonal as an int; one of more than 31 bits becomes that of an empty diagonal just outside the matrix."""
    number = as_int(k, name, "k")
    return number if -_WORD < number < _WORD else columns if number > 0 else -rows


_WORD = 2**31


@rule(
    lambda g, k, xp: xp.lower(g, k),
    conj=False, fresh=True, node="TrilBackward0", batch="stacked", kind="selection", memory="new", dtype="same", numpy="tril",
    public="tril",
)  # fmt: skip
def lower(xp: Any, x: Any, k: int) -> Any:
    """Return the part on and below the k-th diagonal."""
    return xp.tril(x, k=k)


@rule(
    lambda g, k, xp: xp.upper(g, k),
    conj=False, fresh=True, node="TriuBackward0", batch="stacked", kind="selection", memory="new", dtype="same", numpy="triu",
    public="triu",
)  # fmt: skip
def upper(xp: Any, x: Any, k: int) -> Any:
    """Return the part on and above the k-th diagonal."""
    return xp.triu(x, k=k)


def _matrix(name: str, x: Any) -> Tensor:
    x = as_tensor(name, x)
    if x.ndim < 2:
        msg = f"`{name}` needs at least 2 axes, but got a Tensor of shape {x.shape}"
        raise ValueError(msg)
    return x


_document_triangle = shares(
    parameters="""\
x : Tensor or raw array
    Matrices, of shape (..., M, N); any dtype.""",
    returns="""\
Tensor
    Has the shape and dtype of `x`.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, or `k` is not an int.
ValueError
    If `x` has fewer than two axes.""",
)


@front
@_document_triangle
def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """Return the part of matrices on and below the k-th diagonal, with zeros above it.

    Parameters
    ----------
    k : int
        Last diagonal to keep: 0 is the main one, positive ones are above it.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.tril(xp.ones((3, 3)))
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    """
    x = _matrix("tril", x)
    return lower(x, _offset("tril", k, *x.shape[-2:]))


@front
@_document_triangle
def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """Return the part of matrices on and above the k-th diagonal, with zeros below it.

    Parameters
    ----------
    k : int
        First diagonal to keep: 0 is the main one, positive ones are above it.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.triu(xp.ones((3, 3)), k=1)
    tensor([[0., 1., 1.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    x = _matrix("triu", x)
    return upper(x, _offset("triu", k, *x.shape[-2:]))


@composite
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return coordinate arrays for a grid, each in newly allocated memory.

    Parameters
    ----------
    *arrays : Tensor or raw array
        Coordinates along each axis of the grid; one-dimensional or 0-d.
    indexing : {"xy", "ij"}
        "ij": axis i of the grid is that of the i-th argument. "xy": the first two axes are exchanged.

    Returns
    -------
    tuple of Tensor
        One for each argument, all of the shape of the grid.

    Raises
    ------
    TypeError
        If an argument is not a Tensor or an array.
    ValueError
        If an argument has more than one axis, or `indexing` is neither "xy" nor "ij".

    Examples
    --------
    >>> import xpgrad as xp
    >>> x, y = xp.meshgrid(xp.tensor([1.0, 2.0]), xp.tensor([3.0, 4.0, 5.0]))
    >>> x
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]])
    >>> y
    tensor([[3., 3.],
            [4., 4.],
            [5., 5.]])
    """
    check_choice(indexing, ("xy", "ij"), "meshgrid", "indexing")
    arrays = tuple(as_tensors("meshgrid", *arrays))
    for a in arrays:
        if a.ndim > 1:
            msg = f"meshgrid needs one-dimensional Tensors, but got shape {a.shape}"
            raise ValueError(msg)
    count = len(arrays)
    axes = list(range(count))
    if indexing == "xy" and count > 1:
        axes[0], axes[1] = 1, 0
    shape = [0] * count
    for a, axis in zip(arrays, axes):
        shape[axis] = a.size
    return tuple(
        broadcast_to(reshape(a, tuple(a.size if i == axis else 1 for i in range(count))), tuple(shape)).clone()
        for a, axis in zip(arrays, axes)
    )
