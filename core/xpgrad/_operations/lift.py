"""Convert operands that are not Tensors: raw arrays become constants, and numbers become Tensors if no operand is a Tensor or an array.

A constant has no history, tangent or batch, and shares its array's memory if the library can. An array of the other operands' library and
device is wrapped, and NumPy's arrays and the values of pandas objects go to any device on the host. Any other array is an error, never
moved silently. An object that computes with the arrays that it holds, such as xarray's and pint's, raises `ContainerError`, which operators
and NumPy's functions turn into `NotImplemented`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import describe_container, not_a_tensor
from xpgrad._backends.classes import class_for_array, host_backend, tensor_class
from xpgrad._basics.arguments import shown
from xpgrad._basics.dtypes import DType
from xpgrad._basics.scalars import is_container, is_pandas, is_raw_array, is_scalar
from xpgrad._modes import state
from xpgrad._rows.namespace import operations
from xpgrad._tape.task import note_complex
from xpgrad.errors import DeviceMismatchError

#: The kinds of Python numbers, from weakest to strongest.
_KINDS: dict[type, str] = {bool: "bool", int: "integral", float: "real floating", complex: "complex floating"}
_STRENGTH = list(_KINDS)


class ContainerError(TypeError):
    """An operand that computes with the arrays that it holds (`is_container`): its own operators have to decide."""


def is_constant(x: Any) -> bool:
    """Return whether `x` is an array of some library; Tensors are not, nor NumPy scalars, which count as Python numbers."""
    return not isinstance(x, TensorBase) and is_raw_array(x) and not is_scalar(x)


def is_movable(x: Any) -> bool:
    """Return whether a Tensor moves to the device of the Tensors that it meets: a 0-d Tensor on a host device does."""
    return x.ndim == 0 and bool(type(x).backend.is_host)


def values_of(x: Any) -> Any:
    """Return the values of a pandas object as a NumPy array, and anything else unchanged."""
    return x.to_numpy() if is_pandas(x) else x


# -- making Tensors of raw arrays -----------------------------------------------------------------------------------------


def new_tensor(cls: Any, raw: Any) -> Any:
    """Wrap a raw array as a constant leaf that the user created, marked as the mode requires."""
    out = cls._wrap(raw)
    if out.dtype.is_complex:
        note_complex()
    mode = state.current()
    if mode is not None and not mode.plain:
        mode.finish(out)
    return out


def wrap_own(cls: Any, raw: Any, copy: bool = False) -> Any:
    """Wrap an array of the class's library and device as a Tensor that shares its memory if the backend allows it."""
    backend = cls.backend
    if copy or not backend.shares_input:
        raw = backend.from_host(raw, cls.device) if backend.is_host else backend.kernels.copy(raw)
    else:
        raw = backend.share(raw)
    return new_tensor(cls, raw)


def raw_dtype_of(x: Any) -> tuple[Any, DType]:
    """Return the Tensor class and the dtype that correspond to a raw array.

    Raises
    ------
    TypeError
        For an array of a library without a backend, or of a dtype that no Tensor has.
    """
    cls = class_for_array(x)
    if cls is None:
        raise _unknown_library_error("result_type", x)
    return cls, cls.backend.dtype_of(x.dtype)


# -- one operand ----------------------------------------------------------------------------------------------------------


def as_tensor(name: str, x: Any) -> Any:
    """Return the only operand of a function as a Tensor: a raw array is converted as by `asarray`.

    Raises
    ------
    TypeError
        For anything else, such as numbers and lists.
    """
    return x if isinstance(x, TensorBase) else _lift_alone(name, x)


def as_operand(name: str, x: Any) -> Any:
    """Return an operand as a Tensor, as `as_tensor` does, but also accept numbers (for elementwise functions)."""
    return x if isinstance(x, TensorBase) else operations.asarray(x) if is_scalar(x) else _lift_alone(name, x)


def _lift_alone(name: str, x: Any) -> Any:
    """Convert a raw array to a Tensor on its device, or on the default one for a NumPy array."""
    if not is_constant(x):
        raise not_a_tensor(name, x)
    raw = values_of(x)
    if class_for_array(raw) is None:
        raise _unknown_library_error(name, x)
    _check_values(name, x, raw)
    return operations.asarray(raw, copy=_must_copy() or None)


def _must_copy() -> bool:
    """Return whether a constant needs memory of its own: a later write to its array must not change what nodes saved."""
    mode = state.current()
    return mode is not None and mode.copies


def _copy_host(array: Any) -> Any:
    """Return a copy of an array of the host's library; in code for NumPy, the last one if the array has the same values."""
    mode = state.current()
    copy = host_backend().kernels.copy
    return copy(array) if mode is None or mode.numpy is None else mode.numpy.copy_constant(array, copy)


def lift(name: str, x: Any, beside: Any) -> Any:
    """Convert a raw array that meets a Tensor to a constant; return a Tensor, a number or anything else unchanged.

    Parameters
    ----------
    name : str
        The function's name, for error messages.
    x : object
    beside : Tensor
        The Tensor that it meets; the constant is on the same device, and in no batch.

    Raises
    ------
    DeviceMismatchError
        For an array on another device. A 0-d NumPy array meets any device, as a 0-d Tensor on NumPy's device does.
    TypeError
        For an array of a library other than NumPy and that of `beside`, or a NumPy array of objects, of strings or with a mask.
    """
    return _lift_beside(name, x, beside) if is_constant(x) else x


def lift_matching(x: Any, beside: Any) -> Any:
    """Fast path of `lift` for an array of the host library that has the dtype of `beside`; None otherwise."""
    cls = beside.__class__
    backend = cls.backend
    if x.__class__ is not backend.array_type or x.dtype is not beside._array.dtype or not x.shape or cls.fresh is not None or cls.stage:
        return None
    if not backend.is_host or not backend.shares_input or backend.device_of(x) != cls.device:
        return None
    mode = state.current()
    out = cls._wrap(_copy_host(x) if mode is not None and mode.copies else backend.share(x))
    if mode is not None and not mode.plain:
        mode.finish(out)
    return out


def _lift_beside(name: str, x: Any, beside: Any) -> Any:
    """Convert a raw array to a constant on the device of the Tensor `beside`; raise an error if it is on another device."""
    cls = tensor_class(beside.device)  # the ordinary class, not that of a batch or of inference tensors
    backend = cls.backend
    if isinstance(x, backend.array_types()):
        there = backend.device_of(x)
        if there != cls.device:
            raise _other_device_error(name, x, there, beside)
        if backend.is_host and _must_copy():
            return new_tensor(cls, _copy_host(backend.share(x)))
        return wrap_own(cls, x, _must_copy())
    host = host_backend()
    raw = values_of(x)
    if not isinstance(raw, host.array_types()):
        raise _other_library_error(name, x, beside)
    _check_values(name, x, raw)
    array: Any = host.share(raw)  # refuses masks
    host.dtype_of(array.dtype)
    if _must_copy():
        array = _copy_host(array)
    if array.ndim == 0:
        return wrap_own(tensor_class(host.devices()[0]), array)  # `unify` moves it, as it moves 0-d Tensors
    if not backend.on_host(cls.device):
        raise _other_device_error(name, x, host.devices()[0], beside)
    return new_tensor(cls, backend.borrow(array, cls.device))


# -- several operands -----------------------------------------------------------------------------------------------------


def lift_all(name: str, operands: Sequence[Any]) -> list[Any]:
    """Convert the raw arrays among operands to constants; return everything else unchanged.

    Constants go to the device of the Tensors. If there are only arrays, one of another library than NumPy determines the device, and
    NumPy arrays go to the default one.

    Raises
    ------
    DeviceMismatchError, TypeError
        As `lift`.
    """
    out: list[Any] = list(operands)
    places = [i for i, x in enumerate(out) if is_constant(x)]
    if not places:
        return out
    tensors = [x for x in out if isinstance(x, TensorBase)]
    beside = next((t for t in tensors if not is_movable(t)), None)
    if beside is None:
        numpy = host_backend().array_types()
        first = next((i for i in places if not isinstance(values_of(out[i]), numpy)), None)
        if first is not None:
            beside = out[first] = _lift_alone(name, out[first])
        elif tensors:
            beside = tensors[0]
    for i in places:
        if is_constant(out[i]):
            out[i] = _lift_alone(name, out[i]) if beside is None else _lift_beside(name, out[i], beside)
    return out


def as_tensors(name: str, *operands: Any) -> Sequence[Any]:
    """Convert operands, each a Tensor or a raw array, to Tensors.

    Raises
    ------
    DeviceMismatchError, TypeError
        As `lift`; also for numbers and lists.
    """
    for x in operands:
        if not isinstance(x, TensorBase):
            break
    else:
        return operands
    for x in operands:
        if not isinstance(x, TensorBase) and not is_constant(x):
            raise not_a_tensor(name, x)
    return lift_all(name, operands)


def lift_leaves(name: str, leaves: list[Any], among: Iterable[Any] = (), numbers: bool = False) -> list[Any]:
    """Convert the raw arrays, and if asked the numbers, among the leaves of a transform's arguments to Tensors.

    Each is converted on its own, as by `asarray`, except that NumPy arrays go to the device of the first Tensor if that is on the host.

    Parameters
    ----------
    name : str
    leaves : list
    among : iterable
        Other arguments, searched for a Tensor if no leaf is one.
    numbers : bool
    """
    for x in leaves:
        if not isinstance(x, TensorBase):
            break
    else:
        return leaves
    beside: Any = next((x for x in (*leaves, *among) if isinstance(x, TensorBase)), None)
    out = []
    for x in leaves:
        if is_constant(x):
            numpy = isinstance(values_of(x), host_backend().array_types())
            goes = numpy and x.ndim and beside is not None and beside.backend.on_host(beside.device)
            x = _lift_beside(name, x, beside) if goes else _lift_alone(name, x)
        elif numbers and is_scalar(x):
            x = operations.asarray(x)
        out.append(x)
    return out


def lift_like(name: str, x: Any, like: Any) -> Any:
    """Convert a raw array to a Tensor, and a number to a 0-d Tensor of the dtype and device of `like`."""
    if is_scalar(x):
        return operations.asarray(x, dtype=like.dtype, device=like.device)
    return lift(name, x, like)


# -- numbers --------------------------------------------------------------------------------------------------------------


def kind_of(scalar: complex) -> str:
    """Return the kind of dtype that a Python number has on its own."""
    return _KINDS[type(scalar)]


def find_strongest(operands: Sequence[Any], places: Iterable[int]) -> int:
    """Return the index in `places` of the number with the strongest kind, to which the others are promoted."""
    return max(places, key=lambda i: _STRENGTH.index(type(operands[i])))


def scale(x: Any, other: Any, alpha: Any, name: str) -> Any:
    """Return ``other * alpha``, for the methods of `x` that take the factor `alpha`.

    Raises
    ------
    TypeError
        If one of them is neither a Tensor nor an array nor a number.
    """
    other, alpha = lift(name, other, x), lift(name, alpha, x)
    if alpha.__class__ is int and alpha == 1:
        return other
    for what, value in (("other", other), ("alpha", alpha)):
        if not isinstance(value, TensorBase) and not is_scalar(value):
            msg = f"{name}: `{what}` must be a Tensor, an array or a number, but got {shown(value)}"
            raise TypeError(msg)
    return other * alpha


# -- errors ---------------------------------------------------------------------------------------------------------------


def _text(x: Any) -> str:
    return f"an array of type {type(x).__module__}.{type(x).__qualname__}"


def _check_values(name: str, x: Any, values: Any) -> None:
    """Raise TypeError unless the values of a pandas object are numbers or bools."""
    if values is not x and values.dtype.kind not in "biufc":
        what = getattr(x, "dtype", None)
        which = f"{_text(x)} whose columns have several dtypes" if what is None else f"{_text(x)} and dtype {what}"
        msg = f"`{name}` got {which}, which is no array of numbers; select the numbers, or convert them, e.g. with `x.astype(float)`"
        raise TypeError(msg)


def _unknown_library_error(name: str, x: Any) -> TypeError:
    if is_container(x):
        return ContainerError(describe_container(name, x))
    return TypeError(
        f"`{name}` got {_text(x)}, which is of no library that xpgrad has a backend for; convert it to a NumPy array, or make a Tensor "
        "with `xpgrad.asarray(x)`"
    )


def _other_device_error(name: str, x: Any, there: Any, beside: Any) -> DeviceMismatchError:
    return DeviceMismatchError(
        f"`{name}` got a Tensor on {beside.device} (shape {beside.shape}) and {_text(x)} on {there} (shape {tuple(x.shape)}); move it, "
        f"e.g. with `xpgrad.asarray(x, device={str(beside.device)!r})`"
    )


def _other_library_error(name: str, x: Any, beside: Any) -> TypeError:
    if class_for_array(x) is None:
        return _unknown_library_error(name, x)
    return TypeError(
        f"`{name}` got a Tensor on {beside.device} and {_text(x)}, of another library: a constant is an array of the Tensor's own library, "
        f"or NumPy's; convert it with `xpgrad.asarray(x, device={str(beside.device)!r})`"
    )
