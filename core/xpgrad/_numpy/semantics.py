"""What differs in code that was written for NumPy: elements are scalars, and methods are those of `numpy.ndarray`.

`numpy_code` puts a `Semantics` into the mode. Operations that differ ask it: indexing, augmented assignment, and a few methods.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import Any
from weakref import ref

from xpgrad._aliasing.cells import leave_memory
from xpgrad._backends.classes import host_backend
from xpgrad._modes import state
from xpgrad._modes.batch_levels import note_made
from xpgrad._numpy.operands import can_read_values
from xpgrad._numpy.table import FUNCTIONS
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import clone_contiguous
from xpgrad.rules.elementwise import conj

#: Methods that write what the function of this name returns into the array, and return None.
_IN_PLACE = ("partition", "sort")
#: The function of this name copies, whereas the method changes its array.
_OTHERS = ("resize",)
host_backend().array_types()  # loads NumPy, whichever module imports this one first
#: NumPy.
_np: Any = sys.modules["numpy"]
_STORE = dis.opmap["STORE_SUBSCR"]
_OPERATOR, _REMAINDER = dis.opmap["BINARY_OP"], [name for name, _ in dis._nb_ops].index("NB_REMAINDER")  # type: ignore[attr-defined]


def is_running() -> bool:
    """Return whether this thread runs code for NumPy: only then a stand-in differs from what it stands for."""
    mode = state.current()
    return mode is not None and mode.numpy is not None


class Semantics:
    """What NumPy does otherwise than PyTorch, during calls of `numpy_code`.

    In NumPy, an element and a result without axes is a scalar, which cannot be written into. A Tensor without axes is an array only if a
    function such as `np.zeros` made it, or if it is a view of an array.

    Attributes
    ----------
    arrays : dict
        Weak references to the Tensors without axes that functions made, by `id`.
    modules : list of context managers
        Within each, the names of a module of the running code mean stand-ins.
    libraries : ExitStack
        What ends with the call.
    constants : dict
        Weak references to arrays of NumPy's that met Tensors, with copies of them, by the array's `id`.
    in_libraries : int
        How many functions of SciPy's are running whose code is for NumPy.
    """

    def __init__(self) -> None:
        self.arrays: dict[int, Any] = {}
        self.libraries = ExitStack()
        self.in_libraries = 0
        self.modules: list[Any] = []
        self.constants: dict[int, tuple[Any, Any]] = {}

    def leave_library(self) -> None:
        """Note that a function of SciPy's has ended."""
        self.in_libraries -= 1

    def runs_module(self, names: dict[str, Any]) -> bool:
        """Return whether the module of the program with these global names is running as code for NumPy."""
        return any(part.names is names for module in self.modules for part in getattr(module, "modules", ()))

    def copy_constant(self, array: Any, copy: Callable[[Any], Any]) -> Any:
        """Return a copy of an array, which nodes may save; the last one while the array has the same values."""
        key = id(array)
        kept, out = self.constants.get(key, (None, None))
        if kept is None or kept() is not array or not _has_same_bits(array, out):
            out = copy(array)
            if array.size > 256:  # small arrays are copied in the time of the comparison
                self.constants[key] = ref(array, partial(self.constants.pop, key)), out
        return out

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

    def finish_operation(self, out: Any, row: Any, operands: tuple[Any, ...]) -> None:
        """Give a view of a scalar memory of its own, and let elements of a batch write into what was computed within `vmap`."""
        if row.is_view:
            if operands[0].ndim or not self.is_scalar(operands[0]):
                return
            leave_memory(out)
        for x in out if out.__class__ is tuple else (out,):
            note_made(x)

    def from_sequence(self, x: Any) -> Any:
        """Return a list or a tuple, which is an operand, as a Tensor."""
        return asarray(x)

    def call_method(self, name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call the method that NumPy's arrays have under a name."""
        out = (_METHODS[name] if name in _METHODS else FUNCTIONS[name].call)(x, *args, **options)
        if name not in _IN_PLACE:
            return out
        x[...] = out
        return None

    def find_attribute(self, name: str, x: Any) -> Any:
        """Return the attribute of NumPy's arrays that Tensors do not have otherwise; None if neither a function nor this module has it."""
        if name == "flat":
            return Flat(x)
        found = (name in FUNCTIONS and name not in _OTHERS and callable(getattr(_np.ndarray, name, None))) or name in _METHODS
        return partial(_call, self, name, x) if found else None

    def set_attribute(self, name: str, x: Any, value: Any) -> bool:
        """Write to an attribute of NumPy's arrays that Tensors do not have otherwise; return whether there is one that can be written."""
        if name == "flat":
            Flat(x)[:] = value
        return name == "flat"

    def hash_of(self, x: Any) -> int:
        """Return the hash of a Tensor; that of a scalar is the number's, because equal numbers are one key.

        Raises
        ------
        TypeError
            If the scalar carries a derivative: what is stored for a number may have another history than the scalar that finds it.
        """
        if not self.is_scalar(x):
            return object.__hash__(x)
        if is_followed(x):
            msg = (
                "a number that has a gradient, or whose value is not known yet, cannot be a key of a dict or an element of a set; use an "
                "index, or `x.detach()` if a constant is meant"
            )
            raise TypeError(msg)
        return hash(Tensor.item.__wrapped__(x))  # type: ignore[attr-defined]  # as below

    def is_formatting(self, frame: FrameType) -> bool:
        """Return whether a frame is computing ``text % x``: the only operator that asks a Tensor for a number."""
        code, place = frame.f_code.co_code, frame.f_lasti
        return code[place] == _OPERATOR and code[place + 1] == _REMAINDER

    def refuses_number(self, frame: FrameType) -> bool:
        """Return whether a frame is writing an element into an array, which is NumPy's if it asks for a number."""
        return frame.f_code.co_code[frame.f_lasti] == _STORE


def _has_same_bits(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same shape and values, also the same nan and signs of zeros."""
    if a.dtype.kind == "c":
        return _has_same_bits(a.real, b.real) and _has_same_bits(a.imag, b.imag)
    if a.dtype.kind == "f":
        a, b = a.view(f"i{a.dtype.itemsize}"), b.view(f"i{b.dtype.itemsize}")
    return bool(_np.array_equal(a, b))


def _one_tuple(args: tuple[Any, ...]) -> Any:
    """Return the arguments of a method that takes a tuple or its items."""
    return args[0] if len(args) == 1 else args


def _item(x: Any, *index: Any) -> Any:
    if index:
        place = _one_tuple(index)
        x = x[place] if isinstance(place, tuple) else x.reshape(-1)[place]
    if x.dtype.differentiable:
        return x.reshape(()).clone()  # a scalar, which keeps its derivative
    return Tensor.item.__wrapped__(x.reshape(()))  # type: ignore[attr-defined]  # what `as_in_numpy_code` decorates


def is_followed(x: Any) -> bool:
    """Return whether a Tensor carries a derivative, or has values that cannot be read."""
    return bool(x.requires_grad or x._has_tangent() or x._transformed_by() is not None or not can_read_values(x))


def _to_list(x: Any) -> Any:
    if is_followed(x):
        return [_to_list(part) for part in x] if x.ndim else x.clone()
    return Tensor.tolist.__wrapped__(x)  # type: ignore[attr-defined]  # as above


def _compress(x: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    if isinstance(condition, Tensor):
        return FUNCTIONS["compress"].call(condition, x, axis, out)
    return FUNCTIONS["take"].call(x, _np.flatnonzero(condition), axis, out)  # so lazy libraries know how many there are


def _view(x: Any, *args: Any, **options: Any) -> Any:
    kinds = [*args, *options.values()]
    if not all(isinstance(kind, (type, str, _np.dtype)) or hasattr(kind, "differentiable") for kind in kinds):
        return x.reshape(*args, **options)  # a shape, as in PyTorch
    for kind in kinds:
        if getattr(kind, "__module__", "") == "numpy" and kind.__name__ == "ndarray":  # NumPy's class, or what stands for it
            continue
        if isinstance(kind, type) and issubclass(kind, _np.ndarray):
            msg = f"a Tensor cannot become an array of the class {kind.__qualname__}, whose elements have no gradient; use `x.detach()`"
            raise TypeError(msg)
        if _np.dtype(kind) != _np.dtype(x.dtype):
            msg = f"x.view reads the memory of a Tensor of dtype {x.dtype} as no other dtype; use `x.astype`, or `x.real` and `x.imag`"
            raise TypeError(msg)
    return x[...]


#: Methods of NumPy's arrays whose arguments are not those of the function with the same name, or that have no function.
_METHODS: dict[str, Callable[..., Any]] = {
    "T": lambda x: FUNCTIONS["transpose"].call(x),
    "argsort": lambda x, axis=-1, kind=None, order=None, *, stable=None: FUNCTIONS["argsort"].call(x, axis, kind, order, stable=stable),
    "compress": _compress,
    "conj": lambda x: conj(x) if x.dtype.is_complex else x,
    "conjugate": lambda x: x.conj(),
    "copy": lambda x, order="C": clone_contiguous(x) if order == "C" else x.clone(),
    "flatten": lambda x, order="C": FUNCTIONS["ravel"].call(x, order).clone(),
    "imag": lambda x: FUNCTIONS["zeros_like"].call(x),
    "item": _item,
    "setflags": lambda x, write=None, align=None, uic=None: None,
    "tolist": _to_list,
    "reshape": lambda x, *shape, order="C", copy=None: FUNCTIONS["reshape"].call(x, _one_tuple(shape), order),
    "transpose": lambda x, *axes: FUNCTIONS["transpose"].call(x, _one_tuple(axes) if axes else None),
    "view": _view,
}


def first_tensor(x: Any) -> Any:
    """Return the first Tensor in a nested structure; None if there is none."""
    return next((leaf for leaf in flatten(x)[0] if isinstance(leaf, Tensor)), None)


def as_array(x: Any) -> Any:
    """Return an array-like as an array of NumPy's, or as a Tensor if it is one or contains one."""
    return x if isinstance(x, Tensor) else _np.asarray(x) if first_tensor(x) is None else asarray(x)


def flatten_flat(x: Any) -> Any:
    """Return a `Flat` as a Tensor with one axis, and anything else unchanged."""
    return x.base.reshape(-1) if isinstance(x, Flat) else x


class Flat(_np.lib.mixins.NDArrayOperatorsMixin):  # type: ignore[misc]  # without NumPy's types
    """The elements of a Tensor in the order of rows: what `numpy.ndarray.flat` is for an array. Writes change the Tensor.

    Parameters
    ----------
    x : Tensor
    """

    __slots__ = ("base",)

    def __init__(self, x: Any) -> None:
        self.base = x

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Any:
        return iter(self.base.reshape(-1))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return function(*tree_map(flatten_flat, args), **tree_map(flatten_flat, options))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(flatten_flat, args), **options)

    def copy(self) -> Any:
        """Return the elements as a Tensor with one axis."""
        return self[:]

    def __getitem__(self, key: Any) -> Any:
        out = self.base.reshape(-1)[key]
        return out.clone() if out._is_view() else out  # as in NumPy, parts are copies

    def __setitem__(self, key: Any, value: Any) -> None:
        places = _np.arange(len(self))[key]
        if places.size == 0:
            return
        value = as_array(flatten_flat(value))
        if value.ndim:
            # Values that are too few are repeated, and those that are too many are left out.
            value = value.reshape(-1)[_np.arange(places.size) % value.size].reshape(places.shape)
        self.base[tuple(_np.unravel_index(places, self.base.shape))] = value


class Grid:
    """What stands for `numpy.mgrid` and `numpy.ogrid`.

    Parameters
    ----------
    numpys : object
        The object of NumPy's.
    convert : callable
        It turns NumPy's arrays into Tensors.
    """

    def __init__(self, numpys: Any, convert: Callable[[Any], Any]) -> None:
        self.numpys, self.convert = numpys, convert

    def __getitem__(self, key: Any) -> Any:
        return tree_map(self.convert, self.numpys[key])


class Joiner:
    """What stands for `numpy.r_` and `numpy.c_`, whose parts may be Tensors.

    Parameters
    ----------
    numpys : object
        The object of NumPy's.
    columns : bool
        Whether arrays with fewer than two axes become columns, which are joined along the last axis.
    convert : callable
        It turns NumPy's arrays into Tensors.
    """

    def __init__(self, numpys: Any, columns: bool, convert: Callable[[Any], Any]) -> None:
        self.numpys, self.columns, self.convert = numpys, columns, convert

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        like = first_tensor(parts)
        if like is None or any(isinstance(part, str) for part in parts):
            return self.convert(self.numpys[key])
        arrays = [self._part(part, like) for part in parts]
        if self.columns:
            arrays = [a if a.ndim > 1 else a.reshape(-1, 1) for a in arrays]
        else:
            arrays = [a if a.ndim else a.reshape(1) for a in arrays]
        return FUNCTIONS["concatenate"].call(arrays, axis=-1 if self.columns else 0)

    @staticmethod
    def _part(part: Any, like: Any) -> Any:
        """Return a part as an array; Python's numbers have the dtype of the Tensors beside them, if that is floating-point."""
        if type(part) in (bool, int, float) and like.dtype.differentiable:
            return asarray(part, dtype=like.dtype)
        if isinstance(part, Tensor):
            return part
        return _np.r_[part] if first_tensor(part) is None else asarray(part)


def enumerate_elements(x: Any) -> Any:
    """Stand in for `numpy.ndenumerate`: yield the index and the value of each element."""
    return ((index, x[index]) for index in _np.ndindex(x.shape)) if isinstance(x, Tensor) else _np.ndenumerate(x)


def _call(semantics: Semantics, name: str, x: Any, *args: Any, **options: Any) -> Any:
    return semantics.call_method(name, x, args, options)
