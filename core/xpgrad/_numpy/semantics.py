"""What differs in code that was written for NumPy: elements are scalars, and methods are those of `numpy.ndarray`.

`numpy_code` puts a `Semantics` into the mode. Operations that differ ask it: indexing, augmented assignment, and a few methods.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any
from weakref import ref

from xpgrad._modes import state
from xpgrad._numpy.table import FUNCTIONS
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray

#: Methods that write what the function of this name returns into the array, and return None.
_IN_PLACE = ("partition", "sort")
#: Methods that are not the function of the same name: the former changes its array, the latter has the array as its second argument.
_OTHERS = ("resize", "compress")
#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]
_STORE = dis.opmap["STORE_SUBSCR"]


class Semantics:
    """What NumPy does otherwise than PyTorch, during calls of `numpy_code`.

    In NumPy, an element and a result without axes is a scalar, which cannot be written into. A Tensor without axes is an array only if a
    function such as `np.zeros` made it, or if it is a view of an array.

    Attributes
    ----------
    arrays : dict
        Weak references to the Tensors without axes that functions made, by `id`.
    """

    def __init__(self) -> None:
        self.arrays: dict[int, Any] = {}

    def note_array(self, x: Any) -> Any:
        """Note that a function made `x`, and return it."""
        if isinstance(x, Tensor) and x.ndim == 0:
            key = id(x)
            self.arrays[key] = ref(x, partial(self.arrays.pop, key))
        return x

    def is_scalar(self, x: Any) -> bool:
        """Return whether a Tensor is a scalar in NumPy's terms; a part of a scalar is one, and a view of an array is none."""
        if x.ndim:
            return False
        base = x._base
        return id(x) not in self.arrays if base is None else self.is_scalar(base)

    def finish_index(self, key: Any, out: Any) -> Any:
        """Return the result of an index, or a copy if it is an element: later writes to the array do not change it."""
        parts = key if isinstance(key, tuple) else (key,)
        single = out.ndim == 0 and out._is_view() and all(hasattr(part, "__index__") for part in parts)
        return out.clone() if single else out

    def from_sequence(self, x: Any) -> Any:
        """Return a list or a tuple, which is an operand, as a Tensor."""
        return asarray(x)

    def call_method(self, name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call the method that NumPy's arrays have under a name."""
        out = FUNCTIONS[name].call(x, *args, **options)
        if name not in _IN_PLACE:
            return out
        x[...] = out
        return None

    def find_attribute(self, name: str, x: Any) -> Any:
        """Return the method of NumPy's arrays that Tensors do not have otherwise; None if it has no function, or is no method."""
        found = name in FUNCTIONS and name not in _OTHERS and callable(getattr(_np.ndarray, name, None))
        return partial(_call, self, name, x) if found else None

    def refuses_number(self, frame: FrameType) -> bool:
        """Return whether a frame is writing an element into an array, which is NumPy's if it asks for a number."""
        return frame.f_code.co_code[frame.f_lasti] == _STORE


def _call(semantics: Semantics, name: str, x: Any, *args: Any, **options: Any) -> Any:
    return semantics.call_method(name, x, args, options)


class _ArrayClass(type):
    """The class of `NDARRAY`, of which Tensors are instances, too, unless they are scalars."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        made = _np.ndarray(*args, **options)
        return made if len(args) > 2 or "buffer" in options else cls.convert(made)

    def __instancecheck__(cls, x: Any) -> bool:
        mode = state.current()
        return isinstance(x, _np.ndarray) or (
            isinstance(x, Tensor) and mode is not None and mode.numpy is not None and not mode.numpy.is_scalar(x)
        )

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_np.ndarray, name)


def make_array_class(convert: Callable[[Any], Any]) -> Any:
    """Return what stands for `numpy.ndarray`; `convert` turns the arrays that it makes into Tensors."""
    return _ArrayClass("ndarray", (), {"convert": staticmethod(convert), "__module__": "numpy"})
