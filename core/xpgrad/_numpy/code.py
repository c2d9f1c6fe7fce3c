"""Runs functions that were written for NumPy with Tensors: what they make with NumPy's functions becomes a Tensor.

NumPy's functions take Tensors (`dispatch`), but those that make arrays from shapes and numbers get none, and return arrays of NumPy's, into
which no Tensor can be written. So the function's global names are looked up through a table in which these functions make Tensors.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar, cast

import numpy as np

from xpgrad._backends.default_device import default_device
from xpgrad._modes import state
from xpgrad._modes.batch_levels import note_made
from xpgrad._modes.setting import Setting
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import full, full_like

__all__ = ["numpy_code"]

F = TypeVar("F", bound=Callable[..., Any])

#: NumPy's functions that make arrays from shapes, numbers and other arrays.
_MAKERS = (
    "arange", "empty", "empty_like", "eye", "fromfunction", "fromiter", "geomspace", "identity", "linspace", "logspace", "ones",
    "ones_like", "tri", "zeros", "zeros_like",
)  # fmt: skip
#: Those that convert arrays and lists.
_CONVERTERS = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy")


def _as_tensor(x: Any) -> Any:
    """Return a floating-point or complex array of NumPy's as a Tensor in memory of its own; return anything else unchanged."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc" or x.dtype.itemsize > 8 * (1 + (x.dtype.kind == "c")):
        return x
    return note_made(asarray(x, copy=True))


def _holds_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and any(map(_holds_tensor, x)))


def _maker(name: str) -> Callable[..., Any]:
    """Return a function like NumPy's of that name whose floating-point and complex results are Tensors; NumPy's dispatch takes Tensors."""
    own = getattr(np, name)

    @functools.wraps(own)
    def make(*args: Any, **options: Any) -> Any:
        return _as_tensor(own(*args, **options))

    return make


def _converter(name: str) -> Callable[..., Any]:
    """Return a function like NumPy's of that name, one of those that convert, also of Tensors and of nested lists of them."""
    own = getattr(np, name)

    @functools.wraps(own)
    def convert(a: Any, dtype: Any = None, *args: Any, ndmin: int = 0, **options: Any) -> Any:
        if not _holds_tensor(a):
            given = (a, *args) if name == "copy" else (a, dtype, *args)
            return _as_tensor(own(*given, **(options | ({"ndmin": ndmin} if ndmin else {}))))
        x = asarray(a, dtype=None if name == "copy" else dtype)
        if x is a and name in ("array", "copy") and options.get("copy", True):
            x = x.clone()  # later writes to one do not change the other
        return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if ndmin > x.ndim else x

    return convert


def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(fill_value, Tensor) and not options:
        return note_made(full(shape, fill_value, dtype=dtype))
    return _as_tensor(np.full(shape, fill_value, dtype, **options))


def _full_like(a: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(fill_value, Tensor) and not options:
        return note_made(full_like(asarray(a), fill_value, dtype=dtype))
    return _as_tensor(np.full_like(a, fill_value, dtype, **options))


#: What stands for each of NumPy's functions, by the function itself.
_STAND_INS: dict[Any, Any] = {getattr(np, name): _maker(name) for name in _MAKERS}
_STAND_INS |= {getattr(np, name): _converter(name) for name in _CONVERTERS}
_STAND_INS |= {np.full: functools.wraps(np.full)(_full), np.full_like: functools.wraps(np.full_like)(_full_like)}


class _NumPy(types.ModuleType):
    """NumPy, with the stand-ins."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        found = _stand_in(found) if callable(found) else found
        setattr(self, name, found)
        return found


_NUMPY = _NumPy("numpy", np.__doc__)


def _stand_in(x: Any) -> Any:
    try:
        return _STAND_INS.get(x, x)
    except TypeError:  # what has no hash
        return x


class _Globals(dict[str, Any]):
    """The global names of a function, read from its module: NumPy and its functions are replaced, and so are the module's functions.

    Python reads global names from what is not exactly a dict through `__getitem__`. Names that the function assigns are kept here.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.known: dict[Any, Any] = {}
        if "__builtins__" in module:
            self["__builtins__"] = module["__builtins__"]

    def __missing__(self, name: str) -> Any:
        return self.replaced(self.module[name])

    def replaced(self, x: Any) -> Any:
        """Return what the function gets in the place of a global object."""
        if x is np:
            return _NUMPY
        if isinstance(x, types.FunctionType) and x.__globals__ is self.module:
            found = self.known.get(x)
            if found is None:
                found = self.known[x] = _with_globals(x, self)
            return found
        return _stand_in(x) if callable(x) else x


def _with_globals(function: types.FunctionType, names: _Globals) -> Any:
    """Return a copy of a function that looks up global names in another table."""
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


def _own(x: Any) -> Any:
    """Return an argument, in nested tuples, lists and dicts, in memory of the function's own."""
    if isinstance(x, Tensor):
        return x.clone()
    if isinstance(x, (list, tuple)):
        parts = map(_own, x)
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: _own(part) for key, part in x.items()}
    return _as_tensor(x)


def _tensors(x: Any) -> Iterator[Tensor]:
    """Yield the Tensors in nested tuples, lists and dicts."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (list, tuple, dict)):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _tensors(part)


def numpy_code(func: F) -> F:
    """Return a function like `func`, which was written for NumPy, that computes with Tensors and can be differentiated.

    Parameters
    ----------
    func : function
        A function written in Python, with NumPy under any name among its global names. Functions of the same module that it calls are
        treated alike; those of other modules run as they are.

    Returns
    -------
    function
        Has the parameters of `func`. Its arguments are Tensors, numbers, arrays, and nested tuples, lists and dicts of them.

        * Functions that make arrays (`np.zeros`, `np.empty_like`, `np.linspace`, `np.array`) return Tensors on the device of the first
          Tensor among the arguments, if their dtype is floating-point or complex, and arrays of NumPy's otherwise.
        * Values that the backward pass needs may be overwritten: they are kept.
        * Writes to arguments are made in copies, so that the caller's Tensors and arrays do not change: return what was written.

    Raises
    ------
    TypeError
        If `func` is not a function written in Python.

    Notes
    -----
    Each write outside of `compile` copies the array that it changes. `compile(numpy_code(func))` makes one program of all, without copies.
    A name that `func` imports in its body is not replaced.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> def products(x):
    ...     out = np.ones(len(x) + 1)
    ...     for i in range(len(x)):
    ...         out[i + 1] = out[i] * x[i]
    ...     return out
    >>> x = xp.asarray([2.0, 3.0, 4.0])
    >>> xp.numpy_code(products)(x)
    tensor([ 1.,  2.,  6., 24.])
    >>> xp.func.jacrev(xp.numpy_code(products))(x)[-1]
    tensor([12.,  8.,  6.])
    """
    inner = func.__func__ if isinstance(func, types.MethodType) else func
    if not isinstance(inner, types.FunctionType):
        msg = f"numpy_code takes a function written in Python, but got {type(func).__name__} {func!r:.60}"
        raise TypeError(msg)
    first = (func.__self__,) if isinstance(func, types.MethodType) else ()
    run = _with_globals(inner, _Globals(inner.__globals__))

    @functools.wraps(func)
    def compute(*args: Any, **options: Any) -> Any:
        mode = state.current()
        given = next(_tensors((args, options)), None)
        with (
            Setting(state.VARIABLE, mode if mode is not None and mode.copies else state.mode_with(copies=True)),
            nullcontext() if given is None else default_device(given.device),
        ):
            return run(*first, *_own(args), **_own(options))

    return cast("F", compute)
