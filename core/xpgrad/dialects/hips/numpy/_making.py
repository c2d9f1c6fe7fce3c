"""NumPy functions that do not dispatch to Tensors: those that make arrays, and calls with lists of Tensors instead of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._numpy.table import FUNCTIONS
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import ARRAY, holds_tensor, np, stack_nested


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an array like `numpy.array`; a Tensor if `A` is a Tensor or a nested list with Tensors.

    Raises
    ------
    TypeError
        For Tensors: an option other than `dtype`, `ndmin`, `copy`, `order` and `subok` is given.
    """
    out: Any = A
    if isinstance(A, Tensor):
        out = np.copy(A) if kwargs.get("copy", True) else A
    elif isinstance(A, (list, tuple)) and holds_tensor(A):
        out = stack_nested(A)
    elif isinstance(A, np.ndarray) and out.dtype.kind == "O" and any(isinstance(item, Tensor) for item in out.flat):
        out = np.reshape(stack_nested(list(out.flat)), out.shape)
    else:
        return np.array(A, *args, **kwargs)
    return _apply_options(out, *args, **kwargs)


def _apply_options(out: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0) -> Any:
    """Apply `dtype` and `ndmin` of `numpy.array` to a Tensor; `order` and `subok` have no effect."""
    if dtype is not None:
        out = np.astype(out, np.dtype(dtype), copy=False)
    return np.reshape(out, (1,) * (ndmin - out.ndim) + out.shape) if out.ndim < ndmin else out


def _array_maker(name: str) -> Callable[..., Any]:
    """Return a function like `numpy.asarray` that also accepts Tensors and lists of Tensors."""
    own = getattr(np, name)

    def convert(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, Tensor) or (isinstance(a, (list, tuple)) and holds_tensor(a)):
            return array(a, dtype, copy=None)
        return own(a, dtype, *args, **kwargs)

    convert.__name__, convert.__doc__ = name, f"As `numpy.{name}`, also of Tensors and of lists of them."
    return convert


def full(shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Make a filled array like `numpy.full`; a Tensor if `fill_value` is a Tensor or a list with Tensors."""
    if isinstance(fill_value, Tensor) or (isinstance(fill_value, (list, tuple)) and holds_tensor(fill_value)):
        return np.broadcast_to(array(fill_value, dtype), shape)
    return np.full(shape, fill_value, dtype, *args, **kwargs)


def full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, shape: Any = None, **kwargs: Any) -> Any:
    """Make a filled array like `numpy.full_like`; a Tensor if an argument is a Tensor or `fill_value` is a list with Tensors."""
    if isinstance(a, Tensor) or not holds_tensor((fill_value,)):
        return np.full_like(a, fill_value, dtype, *args, shape=shape, **kwargs)
    return full(np.shape(a) if shape is None else shape, fill_value, np.asarray(a).dtype if dtype is None else dtype)


#: Stands for a first argument that is given by another name than `a`, as in ``tile(A=x, reps=2)``.
_MISSING: Any = object()


def with_lists(own: Any, on_tensors: Any) -> Callable[..., Any]:
    """Wrap NumPy's function `own` so that its first argument may be a Tensor or a list with Tensors: then it calls `on_tensors`."""

    def function(a: Any = _MISSING, *args: Any, **kwargs: Any) -> Any:
        if a.__class__ is ARRAY:
            return on_tensors(a, *args, **kwargs)
        if (a.__class__ is list or a.__class__ is tuple) and holds_tensor(a):
            return on_tensors(array(a), *args, **kwargs)
        return own(**kwargs) if a is _MISSING else own(a, *args, **kwargs)

    return functools.update_wrapper(function, own, ("__name__", "__qualname__", "__doc__"), ())


def _with_iterables(own: Any) -> Callable[..., Any]:
    """Wrap NumPy's function `own` of a sequence of arrays so that any iterable is accepted: a generator, ``d.values()``."""

    def function(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return own(arrays if hasattr(arrays, "__getitem__") else list(arrays), *args, **kwargs)

    return functools.update_wrapper(function, own, ("__name__", "__qualname__", "__doc__"), ())


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Append values like `numpy.append`; both may be lists of Tensors."""
    return np.append(array(arr), array(values), axis)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Choose like `numpy.where`, also with keywords."""
    if x is None and y is None:
        return np.where(condition)
    if isinstance(condition, bool) and not any(isinstance(v, (Tensor, np.ndarray)) for v in (x, y)):
        return x if condition else y  # as HIPS autograd: a number stays a Python number
    return np.where(condition, x, y)


class vectorize(np.vectorize):  # type: ignore[misc]  # noqa: N801 (NumPy's name)
    """NumPy's `vectorize`, whose function gets Tensors if an argument is one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to the elements."""
        if self.signature is not None or kwargs or not any(isinstance(a, Tensor) for a in args):
            return super().__call__(*args, **kwargs)
        parts = np.broadcast_arrays(*args)
        shape = parts[0].shape
        found = [self.pyfunc(*(p[index] for p in parts)) for index in np.ndindex(shape)]
        if isinstance(found[0], tuple):
            return tuple(np.reshape(array(list(column)), shape) for column in zip(*found))
        return np.reshape(array(found), shape)


#: Functions of a sequence of arrays.
_SEQUENCES = ("stack", "concatenate", "vstack", "hstack", "dstack", "column_stack")
#: Functions whose first argument is an array, for which a list of Tensors may be passed.
_FIRST = (
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "clip", "compress", "count_nonzero", "cumprod", "cumsum",
    "diag", "diagonal", "diff", "dot", "expand_dims", "flip", "fliplr", "flipud", "imag", "inner", "kron", "max", "mean", "median", "min",
    "moveaxis", "nan_to_num", "nanmean", "nansum", "ndim", "outer", "pad", "partition", "prod", "ptp", "ravel", "real", "repeat",
    "reshape", "roll", "rot90", "shape", "size", "sort", "squeeze", "std", "sum", "swapaxes", "take", "tensordot", "tile", "trace",
    "transpose", "tril", "triu", "var",
)  # fmt: skip


class _Columns:
    """NumPy's `r_` and `c_` for Tensors and arrays."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not holds_tensor(items):
            return getattr(np, self._name)[key]
        parts = []
        for item in items:
            if isinstance(item, str):
                msg = f"np.{self._name}: directives such as {item!r} do not go with Tensors; use `concatenate` or `stack`"
                raise TypeError(msg)
            part = np.atleast_1d(np.r_[item] if isinstance(item, slice) else array(item))
            parts.append(np.expand_dims(part, -1) if self._name == "c_" and part.ndim == 1 else part)
        return np.concatenate(parts, axis=-1 if self._name == "c_" else 0)


r_ = _Columns("r_")
c_ = _Columns("c_")


# -- what HIPS autograd's wrapper adds to NumPy --------------------------------------------------------------------------


def concatenate_args(axis: Any, *args: Any) -> Any:
    """Concatenate the arguments along an axis."""
    return np.concatenate(args, axis)


def array_from_args(array_args: Any, array_kwargs: Any, *args: Any) -> Any:
    """Make an array from the list of the arguments."""
    return array(list(args), *array_args, **array_kwargs)


def wrap_if_boxes_inside(raw_array: Any, slow_op_name: str | None = None) -> Any:
    """Stack an array of objects that are Tensors into one Tensor."""
    return array(raw_array) if raw_array.dtype.kind == "O" else raw_array


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Make matrices with the last axis of `D` as diagonals; only for ``offset=0, axis1=-1, axis2=-2``."""
    if (offset, axis1, axis2) != (0, -1, -2):
        msg = "make_diagonal: only offset=0, axis1=-1, axis2=-2 are supported"
        raise NotImplementedError(msg)
    return np.expand_dims(D, -1) * np.eye(np.shape(D)[-1])


def metadata(A: Any) -> Any:
    """Return the shape, the number of axes, the dtype, and whether the dtype is complex."""
    return np.shape(A), np.ndim(A), np.result_type(A), np.iscomplexobj(A)


def exported() -> dict[str, Any]:
    """Return all public names of NumPy with their values; functions of this module replace NumPy's."""
    out = {name: value for name, value in vars(np).items() if not name.startswith("_")}
    for name in _FIRST:
        out[name] = with_lists(getattr(np, name), FUNCTIONS[name].call)
    for name in _SEQUENCES:
        out[name] = _with_iterables(getattr(np, name))
    for name in ("asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray"):
        out[name] = _array_maker(name)
    own = (
        append, array, array_from_args, concatenate_args, full, full_like, make_diagonal, metadata, vectorize, where, wrap_if_boxes_inside,
    )  # fmt: skip
    out.update({f.__name__: f for f in own}, r_=r_, c_=c_)
    return out
