"""Runs functions that were written for NumPy with Tensors: what they make with NumPy's functions becomes a Tensor.

NumPy's functions take Tensors (`dispatch`), but those that make arrays from shapes and numbers get none, and return arrays of NumPy's, into
which no Tensor can be written. So the function reads its global names through a dict that has stand-ins for NumPy's functions.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar, cast

from xpgrad._backends.classes import host_backend
from xpgrad._backends.default_device import default_device
from xpgrad._basics.dtypes import DTYPES
from xpgrad._modes import state
from xpgrad._modes.batch_levels import note_made
from xpgrad._modes.setting import Setting
from xpgrad._numpy import chapters as chapters
from xpgrad._numpy.semantics import Joiner, Semantics, enumerate_elements, first_tensor, make_array_class
from xpgrad._numpy.table import LIKE
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import tree_map
from xpgrad.rules.conversion import asarray

__all__ = ["numpy_code"]

F = TypeVar("F", bound=Callable[..., Any])

#: NumPy: the library of the host's backend, which is loaded by then.
_np: Any = sys.modules[host_backend().array_types()[0].__module__]


def _as_tensor(x: Any) -> Any:
    """Return a floating-point or complex array of NumPy's as a Tensor in memory of its own; return anything else unchanged."""
    dtype = DTYPES.get(x.dtype.name) if isinstance(x, _np.ndarray) else None
    return x if dtype is None or not dtype.differentiable else _note_array(note_made(asarray(x, copy=True)))


def _note_array(x: Any) -> Any:
    """Note that a function of NumPy's would have made the Tensor as an array, also if it has no axes; return it."""
    mode = state.current()
    return x if mode is None or mode.numpy is None else mode.numpy.note_array(x)


@functools.cache
def _stand_in(function: Any) -> Any:
    """Return a function like NumPy's, whose results are Tensors where NumPy's are floating-point or complex arrays."""
    name = function.__name__

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        like = first_tensor((args, options)) if name in LIKE else None
        if like is None:
            return tree_map(_as_tensor, function(*args, **options))  # which NumPy's protocol computes if it gets a Tensor
        out = LIKE[name](like, *args, **options)
        return _note_array(out.clone() if out is like and out.ndim == 0 else out)

    return compute


def _replace(x: Any) -> Any:
    """Return what a function gets in the place of a global object: stand-ins of NumPy and its functions, without classes and ufuncs."""
    if x is _np:
        return _NUMPY
    for numpys, own in _STAND_INS:
        if x is numpys:
            return own
    name = getattr(x, "__name__", "")
    if not callable(x) or isinstance(x, (type, _np.ufunc)) or getattr(_np, name, None) is not x:
        return x
    return _stand_in(x)


def _is_scalar(x: Any) -> bool:
    """Stand in for `numpy.isscalar`."""
    mode = state.current()
    if isinstance(x, Tensor) and mode is not None and mode.numpy is not None:
        return bool(mode.numpy.is_scalar(x))
    return bool(_np.isscalar(x))


#: What stands for objects of NumPy's that are not functions that make arrays.
_STAND_INS = (
    (_np.ndarray, make_array_class(_as_tensor)),
    (_np.isscalar, _is_scalar),
    (_np.ndenumerate, enumerate_elements),
    (_np.r_, Joiner(_np.r_, False, _as_tensor)),
    (_np.c_, Joiner(_np.c_, True, _as_tensor)),
)


class _NumPy(types.ModuleType):
    """NumPy, with the stand-ins."""

    def __getattr__(self, name: str) -> Any:
        found = _replace(getattr(_np, name))
        setattr(self, name, found)
        return found


_NUMPY = _NumPy(_np.__name__, _np.__doc__)


class _Globals(dict[str, Any]):
    """The global names of a function, read from its module: NumPy and its functions are replaced, and so are the module's functions.

    Python reads global names from what is not exactly a dict through `__getitem__`. Names that the function assigns are kept here.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.known: dict[types.FunctionType, Any] = {}
        if "__builtins__" in module:
            self["__builtins__"] = module["__builtins__"]

    def __missing__(self, name: str) -> Any:
        x = self.module[name]
        if not isinstance(x, types.FunctionType) or x.__globals__ is not self.module:
            return _replace(x)
        if x not in self.known:
            self.known[x] = _with_globals(x, self)
        return self.known[x]


def _with_globals(function: types.FunctionType, names: _Globals) -> Any:
    """Return a copy of a function that looks up global names in another table."""
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


def _own(x: Any) -> Any:
    """Return an argument in memory of the function's own."""
    return x.clone() if isinstance(x, Tensor) else _as_tensor(x)


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

        * NumPy's functions that get no Tensor (`np.zeros`, `np.linspace`, `np.array`), except universal functions, return Tensors on the
          device of the first Tensor among the arguments of `func`, if the dtype is floating-point or complex, else arrays of NumPy's.
        * Elements and results without axes are scalars, as in NumPy: ``a[0], a[1] = a[1], a[0]`` exchanges elements, and
          ``s = a[0]; s += 1`` does not change `a`. Methods are NumPy's where PyTorch's differ, and lists may be operands.
        * Values that the backward pass needs may be overwritten: they are kept.
        * Writes to arguments are made in copies, so that the caller's Tensors and arrays do not change: return what was written.

    Raises
    ------
    TypeError
        If `func` is not a function written in Python.

    Notes
    -----
    Outside of `compile`, slices are copied when they are read, and a write copies the array that it changes only if something else refers
    to that array, such as a node that saved it; on other libraries than NumPy, always. `compile(numpy_code(func))` makes one program of
    all, without copies.
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
        inside = mode is not None and mode.numpy is not None
        like = first_tensor((args, options))
        with (
            Setting(state.VARIABLE, mode if inside else state.mode_with(copies=True, numpy=Semantics())),
            nullcontext() if like is None else default_device(like.device),
        ):
            return run(*first, *tree_map(_own, args), **tree_map(_own, options))

    return cast("F", compute)
