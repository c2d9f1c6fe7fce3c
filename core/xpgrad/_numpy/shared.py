"""Arrays of NumPy's in code for NumPy: what a function computes becomes a Tensor, and what it returns of an array's memory stays an array.

A program has arrays of constants that are NumPy's: global ones, and what their methods return. Writes to such an array must show in its
views, and writes to a view in the array. A Tensor cannot do that, so a view is a `SharedArray`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import get_default_device
from xpgrad._basics.dtypes import DTYPES
from xpgrad._modes import state
from xpgrad._modes.batch_levels import note_made
from xpgrad._numpy.semantics import first_tensor, is_followed, is_running
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map
from xpgrad.rules.conversion import asarray

__all__ = ["SharedArray", "as_plain", "as_result", "as_tensor", "find_arrays", "note_array"]

#: NumPy: `semantics` loaded it.
_np: Any = sys.modules["numpy"]
_view_of = _np.ndarray.view
#: Methods that write into the array.
_WRITING = frozenset(("__setitem__", "fill", "partition", "put", "resize", "setfield", "sort"))
#: Methods that Python calls, and that return arrays.
_SPECIAL = ("__copy__", "__deepcopy__", "__getitem__", "__setitem__")


def note_array(x: Any) -> Any:
    """Note that a function of NumPy's would have made the Tensor as an array, also if it has no axes; return it."""
    mode = state.current()
    return x if mode is None or mode.numpy is None else mode.numpy.note_array(x)


def _can_be_tensor(x: Any) -> bool:
    dtype = DTYPES.get(x.dtype.name)
    return dtype is not None and dtype.differentiable


def _is_on_host() -> bool:
    """Return whether new Tensors are in CPU memory: on other devices an array of NumPy's is of no use beside them."""
    device = get_default_device()
    return tensor_class(device).backend.on_host(device)


def as_tensor(x: Any) -> Any:
    """Return a floating-point or complex array as a Tensor in memory of its own, and another array unchanged."""
    return note_array(note_made(asarray(as_plain(x), copy=True))) if _can_be_tensor(x) else x


def as_plain(x: Any) -> Any:
    """Return a `SharedArray` as an array of NumPy's class with the same memory, and anything else unchanged."""
    return _view_of(x, _np.ndarray) if x.__class__ is SharedArray else x


def find_arrays(*structures: Any) -> list[Any]:
    """Return the arrays of NumPy's in nested structures."""
    return [x for x in flatten(structures)[0] if isinstance(x, _np.ndarray)]


def as_result(x: Any, given: Iterable[Any]) -> Any:
    """Return an array that a function of NumPy's returned as a Tensor, or as a `SharedArray` if its memory is that of one of the arguments.

    On a device whose memory is not the CPU's it is a Tensor with a copy.

    Parameters
    ----------
    x : object
        Anything but an array is returned unchanged.
    given : iterable of arrays
    """
    if not isinstance(x, _np.ndarray) or not is_running():
        return as_plain(x)
    # NB: a new array lies within the bounds of no other, so this test of bounds is exact here.
    if x.__class__ in (_np.ndarray, SharedArray) and any(_np.may_share_memory(x, y) for y in given) and _is_on_host():
        return _view_of(x, SharedArray) if _can_be_tensor(x) else as_plain(x)
    return as_tensor(x)


def _as_constant(x: Any) -> Any:
    """Return a Tensor that is written into an array as one of NumPy's; raise if its gradient would be lost."""
    if not isinstance(x, Tensor):
        return as_plain(x)
    if is_followed(x):
        msg = (
            "a Tensor that has a gradient, or whose value is not known yet, cannot be written into an array of NumPy's, whose memory this "
            "view shares; make the array by a function of NumPy's, as by `np.array(a)`, or pass it as an argument"
        )
        raise TypeError(msg)
    return _np.asarray(x)


class SharedArray(_np.ndarray):  # type: ignore[misc]  # without NumPy's types
    """A view of an array of NumPy's, whose methods take Tensors and return what functions of NumPy's return in code for NumPy."""

    def __array_wrap__(self, out: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return out[()] if return_scalar else as_result(_view_of(out, _np.ndarray), [self])


def _make_method(name: str) -> Callable[..., Any]:
    theirs = getattr(_np.ndarray, name)

    @functools.wraps(theirs)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if name == "__getitem__" and args[0].__class__ in (int, slice):
            return theirs(self, *args)  # a number, or a view of the same class
        if name in _WRITING:
            args, options = tree_map(_as_constant, (args, options))
        elif first_tensor((args, options)) is not None:
            return getattr(as_tensor(self), name)(*args, **options)
        plain = _view_of(self, _np.ndarray)
        given = [plain, *find_arrays(args, options)]
        return tree_map(lambda x: as_result(x, given), theirs(plain, *tree_map(as_plain, args), **tree_map(as_plain, options)))

    return call


for _name in (*_SPECIAL, *dir(_np.ndarray)):
    # `setflags` is about the view, not about its elements.
    if _name in _SPECIAL or (_name[0] != "_" and _name != "setflags" and callable(getattr(_np.ndarray, _name))):
        setattr(SharedArray, _name, _make_method(_name))
