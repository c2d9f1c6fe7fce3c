"""The values inside a function that is being differentiated: Tensors on the device ``numpy+hips``, with the methods of NumPy arrays.

They have their own class because HIPS autograd's boxes have the methods of NumPy arrays, where Tensors have PyTorch's, and because ``x +=
y`` binds a new value to the name there, without changing earlier results.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar

from xpgrad._array.base import TensorBase
from xpgrad._backends import loading
from xpgrad._backends.classes import host_backend, tensor_class
from xpgrad._basics.device import Device
from xpgrad._modes import state
from xpgrad._numpy import chapters as chapters
from xpgrad._numpy.table import FUNCTIONS
from xpgrad._operations.lift import new_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._levels import cut, levels_of, trace_of

#: NumPy, whose arrays this dialect takes and returns; the rest of the core imports no array library. Typed as Any on purpose.
np: Any = importlib.import_module("numpy")


def on_tensors(name: str) -> Any:
    """Return the implementation for Tensors of a NumPy function, as NumPy's dispatch protocol finds it."""
    return FUNCTIONS[name].call


def _rebinds(self: Any, other: Any, /) -> Any:
    """Return NotImplemented, so that Python computes ``x = x + y`` for ``x += y``."""
    return NotImplemented


def raw_of(x: Any) -> Any:
    """Return the value of a Tensor as a NumPy array or number, without its history."""
    raw = x._array
    if raw.__class__ is np.ndarray:
        return raw if raw.shape else raw[()]
    return raw if isinstance(raw, (np.ndarray, np.generic)) else x.detach().numpy()


def holds_tensor(x: Any) -> bool:
    """Return whether a nested list or tuple contains a Tensor."""
    return any(isinstance(item, Tensor) or (isinstance(item, (list, tuple)) and holds_tensor(item)) for item in x)


def stack_nested(x: Any) -> Any:
    """Stack nested lists of Tensors, arrays and numbers into one Tensor, or into an array if there is no Tensor among them."""
    if isinstance(x, (list, tuple)):
        parts = [stack_nested(item) for item in x]
        return np.stack(parts) if any(isinstance(p, Tensor) for p in parts) else np.asarray(parts)
    return x if isinstance(x, Tensor) else np.asarray(x)


def box(raw: Any) -> Any:
    """Return the Tensor that stands for an array or number: floating or complex, integers as floats; None for other dtypes."""
    raw = np.asarray(raw)
    if raw.dtype.kind in "iu":
        raw = raw.astype(float)
    return new_tensor(ARRAY, raw) if raw.dtype.kind in "fc" else None


class _Mappings(dict[type, Callable[..., Any]]):
    """What makes the Tensors of arrays of other classes; NumPy's ufuncs leave operands of these classes beside Tensors to the Tensors.

    Without that, the class's own `__array_ufunc__` would get them, where HIPS autograd's boxes come first.
    """

    def __setitem__(self, cls: Any, maker: Callable[..., Any]) -> None:
        theirs = cls.__array_ufunc__
        if cls not in self and theirs is not np.ndarray.__array_ufunc__:

            def __array_ufunc__(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
                for x in inputs:
                    if isinstance(x, Tensor):
                        return x.__array_ufunc__(ufunc, method, *inputs, **kwargs)
                return theirs(self, ufunc, method, *inputs, **kwargs)

            cls.__array_ufunc__ = __array_ufunc__
        super().__setitem__(cls, maker)


class Box(TensorBase):
    """The base class of these Tensors: the methods of NumPy's arrays; those of `Tensor` that mean the same are not repeated.

    Attributes
    ----------
    type_mappings : dict
        By subclass of ``numpy.ndarray``: the function of an array of that class, and two further arguments, that returns the Tensor with
        respect to which one differentiates, or raises an error. For classes that are not in it this is ``ArrayBox(array)``.
    """

    __slots__ = ()

    type_mappings: ClassVar[dict[type, Callable[..., Any]]] = _Mappings()

    def __new__(cls, value: Any, trace: Any = None, node: Any = None) -> Any:
        """Return the Tensor that stands for an array or number; `trace` and `node`, of HIPS autograd's signature, are not used.

        Raises
        ------
        TypeError
            It is neither floating nor complex nor an integer.
        """
        out = box(value)
        if out is None:
            msg = f"{cls.__name__}: cannot differentiate with respect to {type(value).__name__} {value!r:.40}"
            raise TypeError(msg)
        return out

    @classmethod
    def register(cls, value_type: type) -> type:
        """Declare that one can differentiate with respect to arrays of a subclass of ``numpy.ndarray``, as with respect to all; return it.

        Raises
        ------
        TypeError
            For other classes: xpgrad differentiates arrays.
        """
        if not issubclass(value_type, np.ndarray):
            msg = f"{cls.__name__}.register: {value_type.__name__} is no subclass of `numpy.ndarray`; only arrays are differentiated here"
            raise TypeError(msg)
        cls.type_mappings[value_type] = ARRAY
        return value_type

    # -- attributes ----------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        """The array with its axes in reverse order."""
        return on_tensors("transpose")(self)

    @property
    def real(self) -> Any:
        """The real part."""
        return on_tensors("real")(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return on_tensors("imag")(self)

    @property
    def flat(self) -> Any:
        """An iterator over the elements."""
        return iter(on_tensors("ravel")(self))

    @property
    def data(self) -> Any:
        """Raise an AttributeError, as HIPS autograd's boxes do: the derivative would be lost."""
        msg = "a value that is being differentiated has no attribute `data`; `tracer.getval(x)` is its value as a constant"
        raise AttributeError(msg)

    @property
    def _value(self) -> Any:
        """The value without the derivative of the innermost run on which it depends: an array or number, or a Tensor with the others.

        Raises
        ------
        AttributeError
            The value is mapped, has a tangent, or depends on no run of the dialect but has a history.
        """
        x: Any = self
        levels, other = levels_of(x)
        if x.depth or state.carries_tangents() or (other and not levels):
            msg = (
                "a value that is mapped, has a tangent or depends on no run of the dialect has no attribute `_value`; "
                "`tracer.getval(x)` is its value without any derivative"
            )
            raise AttributeError(msg)
        raw = raw_of(x)
        return cut(x, np.array(raw), levels[-1]) if other or len(levels) > 1 else raw

    @property
    def _trace(self) -> Any:
        """The innermost run on which the value depends; it is the same object for all values of a run.

        Raises
        ------
        AttributeError
            There is none.
        """
        run = trace_of(self)
        if run is None:
            msg = "a value that depends on no run has no attribute `_trace`"
            raise AttributeError(msg)
        return run

    # -- operands that are lists -----------------------------------------------------------------------------------------

    def _from_sequence(self, x: Any) -> Any:
        """Return an array for a list or tuple that meets this one as an operand, as NumPy makes one; it may hold Tensors."""
        if isinstance(x, str):
            return None
        out: Any = stack_nested(x)
        return out if isinstance(out, Tensor) else new_tensor(ARRAY, out)

    def __rmatmul__(self, other: Any, /) -> Any:
        return np.matmul(self._from_sequence(other) if isinstance(other, (list, tuple)) else other, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)  # type: ignore[misc]
        except RuntimeError as exc:  # HIPS autograd refuses all writes, as a TypeError
            raise TypeError(str(exc)) from exc

    # -- methods that NumPy has in another form than the functions --------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the elements in another shape."""
        return on_tensors("reshape")(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Return the array with permuted axes; by default in reverse order."""
        order = None if not axes else axes[0] if len(axes) == 1 else axes
        return on_tensors("transpose")(self, order)

    def flatten(self, order: str = "C") -> Any:
        """Return a copy of the elements as a vector."""
        return on_tensors("ravel")(np.copy(self), order=order)

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Return the slices along an axis, or the elements, at which a condition is true."""
        return on_tensors("compress")(condition, self, axis)

    def __copy__(self) -> Any:
        return np.copy(self)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the array in another dtype."""
        return on_tensors("astype")(self, np.dtype(dtype))

    def conj(self) -> Any:
        """Return the complex conjugate."""
        return np.conjugate(self)

    conjugate = conj

    # -- numbers -------------------------------------------------------------------------------------------------------

    def __float__(self) -> float:
        return float(_number(self, "float(x)"))

    def __int__(self) -> int:
        return int(_number(self, "int(x)"))

    def __complex__(self) -> complex:
        return complex(_number(self, "complex(x)"))

    def item(self, *args: Any) -> Any:
        """Return the only element as a Python number; raise TypeError if the array is being differentiated."""
        return _number(self, "x.item()").item(*args)

    def tolist(self) -> Any:
        """Return the elements as nested lists, if the array is not being differentiated."""
        return _number(self, "x.tolist()").tolist()


def _number(x: Any, what: str) -> Any:
    """Return the array of a Tensor for conversion to plain numbers.

    Raises
    ------
    TypeError
        If its derivative would be lost, as in HIPS autograd.
    """
    if x._node is not None or (state.carries_tangents() and x.dtype.kind in "fc"):
        msg = f"{what}: `x` is being differentiated, and its derivative would be lost; `tracer.getval(x)` is its value as a constant"
        raise TypeError(msg)
    return np.asarray(x._array)


def _method(name: str, function: str) -> Any:
    call = FUNCTIONS[function].call

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"As `numpy.{function}`."
    return method


for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max",
    "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
):  # fmt: skip
    if _name in FUNCTIONS:
        setattr(Box, _name, _method(_name, _name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    setattr(Box, f"__i{_name}__", _rebinds)


def _make_class() -> Any:
    """Make the class of these Tensors, on the NumPy backend."""
    device = Device("numpy+hips")
    with loading.LOCK:
        if device.table not in loading.LOADED:
            backend = type("HipsBackend", (type(host_backend()),), {"variant": "hips", "device": device})()
            backend.tensor_base = type(
                "Tensor", (Box, Tensor), {"__slots__": (), "backend": backend, "__module__": "xpgrad", "__qualname__": "Tensor"}
            )
            loading.LOADED[device.table] = backend
    return tensor_class(device)


ARRAY: Any = _make_class()
