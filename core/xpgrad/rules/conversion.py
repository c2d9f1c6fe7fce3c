"""Functions that turn data into a Tensor: `tensor`, `asarray`, `from_dlpack`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._backends.classes import class_for_array, host_backend, tensor_class
from xpgrad._backends.default_device import as_device
from xpgrad._basics.arguments import as_flag
from xpgrad._basics.dtypes import DType, as_dtype, promote, promote_scalar
from xpgrad._basics.scalars import as_scalar, is_raw_array, is_scalar
from xpgrad._modes.batch_levels import note_made
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import lift_all, new_tensor as new_tensor, wrap_own
from xpgrad._rows.namespace import NONDIFFERENTIABLE, RULES, operations
from xpgrad.rules.transfer import to_device

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["asarray", "from_dlpack", "tensor"]


def host_array(data: Any, dtype: DType | None, cls: Any) -> Any:
    """Return a NumPy array of Python data (scalars, nested sequences)."""
    backend = cls.backend
    try:
        array = backend.host_array(data, dtype)
    except (TypeError, ValueError, OverflowError) as exc:
        if isinstance(exc, OverflowError):
            msg = f"asarray: a number of {type(data).__name__} {data!r:.60} is too large for dtype {dtype or 'int64'}; give a wider `dtype`"
            raise OverflowError(msg) from exc
        what = "" if dtype is None else f" of dtype {dtype}"
        msg = (
            f"cannot make a Tensor{what} from {type(data).__name__} {data!r:.60}: its elements must be numbers or bools in a regular shape"
        )
        raise type(exc)(msg) from exc
    if dtype is not None and dtype.name != "bfloat16":
        return array
    # NumPy makes objects of integers that fit in no dtype; an array of objects is refused whatever they are.
    if array.dtype == object and not is_raw_array(data) and all(type(n) is int for n in array.flat):
        msg = f"asarray: a number of {type(data).__name__} {data!r:.60} is too large for any integer dtype; give a floating `dtype`"
        raise OverflowError(msg)
    if array.dtype == object or array.dtype.kind not in "biufc":
        msg = f"cannot make a Tensor from {type(data).__name__} {data!r:.80}: its elements must be numbers or bools in a regular shape"
        raise TypeError(msg)
    # NumPy has no bfloat16: the numbers are passed in the default dtype, since the device may lack the array's own.
    if dtype is not None or (not is_raw_array(data) and not is_scalar_array(data)):
        kind = {"f": "real floating", "c": "complex floating", "i": "integral"}.get(array.dtype.kind)
        if kind is not None:
            default = backend.default_dtype(kind, cls.device).name
            if array.dtype.name != default and not (_holds_dtypes(data) and backend.find_dtype(array.dtype.name) is not None):
                array = array.astype(default)
    return array


def _holds_complex(data: Any) -> bool:
    """Return whether Python data contains a complex number, of Python's or of a library's type."""
    if isinstance(data, (list, tuple)):
        return any(_holds_complex(d) for d in data)
    return isinstance(data, complex) or getattr(getattr(data, "dtype", None), "kind", None) == "c"


def _drops_imaginary(what: str, dtype: DType) -> TypeError:
    """Return the error for complex data and a real `dtype`."""
    return TypeError(
        f"asarray: {what} is complex, and `dtype`={dtype} would drop its imaginary parts; write `xpgrad.real(xpgrad.asarray(obj))` for the "
        "real parts, or give a complex dtype"
    )


def is_scalar_array(data: Any) -> bool:
    """Return whether `data` is a NumPy scalar or array, which has a dtype to keep."""
    return hasattr(data, "dtype") and hasattr(data, "item")


def _holds_dtypes(data: Any) -> bool:
    """Return whether nested sequences contain a NumPy scalar or array, whose dtype takes part in promotion."""
    if isinstance(data, (list, tuple)):
        return any(_holds_dtypes(d) for d in data)
    return is_scalar_array(data)


def _contains_tensor(data: Any) -> bool:
    """Return whether Python data contains a Tensor or another library's array; refuse masked arrays, whose masks would be lost."""
    if data.__class__ in (float, int, bool, complex):
        return False
    if isinstance(data, TensorBase):
        return True
    if isinstance(data, (list, tuple)):
        found = [_contains_tensor(d) for d in data]  # a list, so that every element is checked
        return any(found)
    if hasattr(data, "mask") and hasattr(data, "filled"):
        what = f"a masked array ({type(data).__name__})"
        msg = f"asarray: {what} has a mask, which Tensors do not; give `x.filled(value)`, and the mask by itself"
        raise TypeError(msg)
    # NB: arrays of CuPy and PyTorch have no `__array_namespace__`, and those on a GPU cannot be converted by NumPy.
    host = host_backend().array_types()
    return is_raw_array(data) and not isinstance(data, host) and not is_scalar(data) and class_for_array(data) is not None


def _stack_sequences(data: Any, dtype: DType | None, target: Any) -> Tensor:
    """Return nested sequences with Tensors among numbers and raw arrays as one Tensor, stacked so that gradients flow back.

    Parameters
    ----------
    data : nested sequences
    dtype : DType or None
        By default the one to which all promote.
    target : type or None
        The class of Tensors of the device; None for the device of the Tensors.
    """
    leaves = list(_leaves(data))
    for x in leaves:
        if not (isinstance(x, TensorBase) or is_raw_array(x) or is_scalar(x)):
            what = f"{type(x).__name__} {x!r:.40} is neither a number nor an array"
            msg = f"cannot make a Tensor from {type(data).__name__} {data!r:.60}: {what}"
            raise TypeError(msg)
    if target is None:
        leaves = lift_all("asarray", leaves)
    else:
        leaves = [x if is_scalar(x) else asarray(x, device=target.device) for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, TensorBase)]
    for i, x in zip(places, unify("asarray", [leaves[i] for i in places])):
        leaves[i] = x
    cls = type(leaves[places[0]])
    numbers = [i for i in range(len(leaves)) if i not in set(places)]
    if dtype is None:
        dtype = functools.reduce(promote, (leaves[i].dtype for i in places))
        for i in numbers:
            dtype = promote_scalar(dtype, as_scalar(leaves[i]), cls.default_dtype)
    for i in places:
        leaves[i] = leaves[i]._cast(dtype)
    for i in numbers:
        leaves[i] = asarray(leaves[i], dtype=dtype, device=cls.device)
    try:
        return _stack_leaves(data, iter(leaves))
    except ValueError as exc:
        msg = f"cannot make a Tensor from {type(data).__name__} {data!r:.60}: its elements must have a regular shape"
        raise ValueError(msg) from exc


def _leaves(data: Any) -> Iterator[Any]:
    """Yield the values in nested sequences, from left to right."""
    if isinstance(data, (list, tuple)):
        for d in data:
            yield from _leaves(d)
    else:
        yield data


def _stack_leaves(data: Any, leaves: Iterator[Any]) -> Any:
    """Stack the Tensors in `leaves` in the nesting of `data`."""
    return operations.stack([_stack_leaves(d, leaves) for d in data]) if isinstance(data, (list, tuple)) else next(leaves)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a new leaf with a copy of `data`; only Tensors inside a sequence keep their history.

    Parameters
    ----------
    data : scalar, nested sequence, array of any registered library, or Tensor
        Numbers or bools. They are always copied: later changes to `data` are not seen. Tensors inside a sequence are stacked, as by
        `asarray`.
    dtype : DType, optional
        Data type; by default that of an array, or the device's default dtype of the kind of Python data.
    device : Device or str, optional
        Device of the result; by default that of a Tensor or of another library's array, or the default device.
    requires_grad : bool
        Whether operations on the result are recorded.

    Returns
    -------
    Tensor
        A leaf with a copy of the data.

    Raises
    ------
    RuntimeError
        If `requires_grad` is True and the dtype is neither floating-point nor complex.
    TypeError
        If `data` does not consist of numbers.
    ValueError
        If nested sequences are not regular.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if isinstance(data, TensorBase):
        data = data.detach()
    requires_grad = as_flag(requires_grad, "tensor", "requires_grad")
    out = asarray(data, dtype=dtype, device=device, copy=True)
    return out.requires_grad_() if requires_grad else out


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert `obj` to a Tensor; differentiable if it is a Tensor or a sequence that contains Tensors.

    Parameters
    ----------
    obj : scalar, nested sequence, array of any registered library, or Tensor
        Numbers or bools. A Tensor that needs no change is returned itself; an array is wrapped without a copy if possible. Tensors inside
        a sequence are stacked, also with arrays and numbers: on one device, in the dtype to which they promote.
    dtype : DType, optional
        Data type; by default that of an array, or the device's default dtype of the kind of Python data. A sequence that contains NumPy
        scalars or arrays has the dtype that NumPy gives it, if the device has this dtype.
    device : Device or str, optional
        Device of the result; by default that of a Tensor or of another library's array, and the default device for numbers, lists and
        NumPy's arrays.
    copy : bool, optional
        True always copies, False never does, None copies if needed.

    Returns
    -------
    Tensor
        The data as a Tensor. It shares the memory of an array if `copy` is not True and no copy is needed.

    Raises
    ------
    TypeError
        If `obj` does not consist of numbers, is complex data while `dtype` is real (a Tensor is cast, with the warning of `astype`), or is
        a masked array.
    DeviceMismatchError
        If a sequence contains Tensors or arrays on several devices.
    ValueError
        If ``copy=False`` and a copy is needed, or if nested sequences are not regular.
    OverflowError
        If an int does not fit in `dtype`.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> data = np.asarray([1.0, 2.0])
    >>> x = xp.asarray(data)
    >>> x
    tensor([1., 2.])
    >>> np.shares_memory(x.numpy(), data)
    True
    """
    if copy is not None and copy is not True:
        copy = as_flag(copy, "asarray", "copy")
    target = None if device is None else tensor_class(as_device(device))
    if obj.__class__ is float and dtype is None and copy is not False:  # none of the cases below applies
        cls = target or tensor_class(as_device(None))
        return number(cls, obj, cls.default_dtype("real floating"))
    if isinstance(obj, TensorBase):
        return _from_tensor(obj, dtype, target, copy)
    if is_raw_array(obj) and not is_scalar_array_only(obj):
        home = class_for_array(obj)
        if home is not None:
            # NumPy arrays, like numbers and lists, have no device: they go to the default one (as in `torch.as_tensor`).
            cls = target or (tensor_class(as_device(None)) if home.backend.is_host else home)
            if cls is home:
                return _from_own(cls, obj, dtype, copy)
            if copy is False:
                msg = f"asarray(copy=False): moving from {home.device} to {cls.device} needs a copy; use copy=None"
                raise ValueError(msg)
            if cls.backend is home.backend:
                return _from_own(cls, cls.backend.to_device(obj, cls.device), dtype, copy)
            obj = home.backend.to_host(obj)
    cls = target or tensor_class(as_device(None))
    nested = _contains_tensor(obj)
    wanted = None if dtype is None else as_dtype(dtype, cls.default_dtype)
    if copy is False:
        msg = f"asarray(copy=False): {type(obj).__name__} data cannot be shared; use copy=None"
        raise ValueError(msg)
    if wanted is not None and not wanted.is_complex and wanted.name != "bool" and _holds_complex(obj):
        raise _drops_imaginary("the data", wanted)
    if nested:
        return _stack_sequences(obj, wanted, target)
    host = host_array(obj, wanted, cls)
    out = new_tensor(cls, cls.backend.from_host(host, cls.device))
    return note_made(out if wanted is None else out._cast(wanted))


def number(cls: Any, x: float, dtype: DType) -> Tensor:
    """Return a constant of a class from a Python float, in a floating-point dtype: the result of `asarray`."""
    return new_tensor(cls, cls.backend.from_host(host_array(x, dtype, cls), cls.device))._cast(dtype)


def is_scalar_array_only(obj: Any) -> bool:
    """Return whether `obj` is a scalar, of Python's or of NumPy's types, and not a sequence."""
    return is_scalar(obj) and not isinstance(obj, (list, tuple))


def _from_own(cls: Any, raw: Any, dtype: Any, copy: bool | None) -> Tensor:
    """Wrap an array of the backend's own library."""
    backend = cls.backend
    have = backend.dtype_of(raw.dtype)
    wanted = have if dtype is None else as_dtype(dtype, cls.default_dtype)
    if wanted is not have and copy is False:
        msg = f"asarray(copy=False): converting {have} to {wanted} needs a copy; use copy=None"
        raise ValueError(msg)
    if have.is_complex and not wanted.is_complex and wanted.name != "bool":
        raise _drops_imaginary("the array", wanted)
    if wanted is not have:
        raw = backend.kernels.to_dtype(backend.share(raw), backend.raw_dtype(wanted))
        return new_tensor(cls, raw)
    return wrap_own(cls, raw, bool(copy))


def _from_tensor(x: Any, dtype: Any, target: Any, copy: bool | None) -> Tensor:
    wanted = x.dtype if dtype is None else as_dtype(dtype, x.default_dtype)
    moved = target is not None and target.device != x.device
    if copy is False and (moved or wanted is not x.dtype):
        msg = f"asarray(copy=False): from {x.dtype} on {x.device} to {wanted} on {target.device if target else x.device} needs a copy"
        raise ValueError(msg)
    out = to_device(x, target.device) if target is not None and moved else x
    out = out._cast(wanted)
    return note_made(out.clone()) if copy and out is x else out


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert any object with ``__dlpack__`` to a Tensor.

    Parameters
    ----------
    x : object
        An array of any library with ``__dlpack__``.
    device : Device or str, optional
        Device of the result; by default that of `x` if its library is registered, else the default device.
    copy : bool, optional
        True always copies, False never does, None copies if needed.

    Returns
    -------
    Tensor
        The data of `x`. It shares the memory of `x` unless `copy` is True or the device differs.

    Raises
    ------
    TypeError
        If `x` has no ``__dlpack__``.
    RuntimeError
        If `x` is a Tensor that requires grad, whose history would be lost; pass ``x.detach()``.
    ValueError
        If ``copy=False`` and a copy is needed.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> xp.from_dlpack(np.asarray([1.0, 2.0]))
    tensor([1., 2.])
    """
    if copy is not None:
        copy = as_flag(copy, "from_dlpack", "copy")
    if isinstance(x, TensorBase):
        if x.requires_grad:
            msg = "Can't export Tensors that require gradient, use `x.detach()`"
            raise RuntimeError(msg)
        x = x.detach()
        return _from_tensor(x, None, None if device is None else tensor_class(as_device(device)), copy)
    if not hasattr(type(x), "__dlpack__") or isinstance(x, type):
        msg = f"from_dlpack needs an object with `__dlpack__`, but got {type(x).__name__}; use `xpgrad.asarray(x)`"
        raise TypeError(msg)
    if class_for_array(x) is not None:
        return asarray(x, device=device, copy=copy)
    cls = tensor_class(as_device(device))
    raw = cls.backend.namespace().from_dlpack(x)
    if cls.backend.device_of(raw) != cls.device:
        if copy is False:
            msg = f"from_dlpack(copy=False): moving from {cls.backend.device_of(raw)} to {cls.device} needs a copy; use copy=None"
            raise ValueError(msg)
        raw = cls.backend.to_device(raw, cls.device)
    return new_tensor(cls, cls.backend.kernels.copy(raw) if copy else raw)


RULES["asarray"] = asarray
NONDIFFERENTIABLE["from_dlpack"] = from_dlpack
