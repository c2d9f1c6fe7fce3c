"""Classes in code that was written for NumPy: Tensors are arrays or scalars there, also for `isinstance`, `type` and `hasattr`.

A number that `float`, `complex` or `numpy.float64` makes of a Tensor keeps its derivative.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import DTYPES, DType
from xpgrad._modes import state
from xpgrad._numpy.shared import SharedArray
from xpgrad._tensor.tensor import Tensor

__all__ = ["NUMBER_CLASSES", "has_attribute", "is_instance", "make_array_class", "make_type_class"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]


def _class_in_numpy(x: Any) -> Any:
    """Return NumPy's class for a Tensor, its dtype or a `SharedArray`, while this thread runs code for NumPy; None for anything else."""
    mode = state.current()
    if not isinstance(x, (Tensor, DType, SharedArray)) or mode is None or mode.numpy is None:
        return None
    if isinstance(x, DType):
        return _np.dtype
    if isinstance(x, SharedArray):
        return _np.ndarray
    return getattr(_np, x.dtype.name, None) if mode.numpy.is_scalar(x) else _np.ndarray


def is_instance(x: Any, classes: Any) -> bool:
    """Stand in for `isinstance`: a scalar is an instance of `float` and `numpy.floating`, an array of `numpy.ndarray`."""
    own = _class_in_numpy(x)
    try:
        if own is None or issubclass(own, classes):
            return own is not None or isinstance(x, classes)
    except TypeError:  # a protocol that only instances can be compared with
        return isinstance(x, classes)
    named = classes if isinstance(classes, tuple) else (classes,)
    return any(isinstance(cls, type) and issubclass(cls, Tensor) and isinstance(x, cls) for cls in named)


def has_attribute(x: Any, name: str) -> bool:
    """Stand in for `hasattr`: a scalar has no length and cannot be iterated over."""
    own = _class_in_numpy(x)
    return hasattr(x if own is None or own is _np.ndarray else own, name)


class _ArrayClass(type):
    """The class of what stands for `numpy.ndarray`, of which Tensors are instances, too, unless they are scalars."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        made = _np.ndarray(*args, **options)
        return made if len(args) > 2 or "buffer" in options else cls.convert(made)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _np.ndarray) or _class_in_numpy(x) is _np.ndarray

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_np.ndarray, name)


def make_array_class(convert: Callable[[Any], Any]) -> Any:
    """Return what stands for `numpy.ndarray`; `convert` turns the arrays that it makes into Tensors."""
    return _ArrayClass("ndarray", (), {"convert": staticmethod(convert), "__module__": "numpy"})


class _NumberClass(type):
    """The class of the classes that stand for a class of numbers, and are equal to it."""

    plain: Any
    convert: Callable[..., Any]

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if options or all(_class_in_numpy(x) is None for x in args):
            return cls.plain(*args, **options)
        return cls.convert(*args)

    def __instancecheck__(cls, x: Any) -> bool:
        return is_instance(x, cls.plain)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.plain)

    def __eq__(cls, other: object) -> Any:
        return True if other is cls or other is cls.plain else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.plain)


def _to_float(x: Any) -> Any:
    if x.dtype.is_complex or x.size != 1:
        return float(x)  # which raises
    return x.reshape(()).astype(x.dtype if x.dtype.differentiable else float)


def _to_complex(*parts: Any) -> Any:
    if any(isinstance(x, Tensor) and x.size != 1 for x in parts):
        return complex(*parts)  # which raises
    real, imag = (x.reshape(()) if isinstance(x, Tensor) else x for x in (*parts, 0.0)[:2])
    return real + 1j * imag


def _make_number_class(plain: Any, convert: Callable[..., Any]) -> Any:
    # A subclass, because NumPy finds the dtype of classes of NumPy's so; for those of Python it asks for `dtype`.
    own = {} if issubclass(plain, _np.generic) else {"dtype": _np.dtype(plain)}
    names = {"plain": plain, "convert": staticmethod(convert), "__module__": plain.__module__, "__doc__": plain.__doc__, **own}
    return _NumberClass(plain.__name__, (plain,), names)


def _convert_to(name: str) -> Callable[..., Any]:
    return lambda x: x.astype(name)


#: What stands for classes of numbers, by the class.
NUMBER_CLASSES: dict[Any, Any] = {
    plain: _make_number_class(plain, convert)
    for plain, convert in (
        (float, _to_float),
        (complex, _to_complex),
        *((getattr(_np, name), _convert_to(name)) for name in DTYPES if name not in ("bool", "bfloat16")),
    )
}


class _TypeClass(type):
    """The class of what stands for `type`."""

    arrays: Any

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if len(args) > 1:
            return type(*args, **options)
        found = _class_in_numpy(*args) or type(*args)
        return cls.arrays if found is _np.ndarray else NUMBER_CLASSES.get(found, found)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, type)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type)


def make_type_class(arrays: Any) -> Any:
    """Return what stands for `type`; it returns `arrays`, which stands for `numpy.ndarray`, as the class of an array."""
    return _TypeClass("type", (type,), {"arrays": arrays})
