"""Turn a function and all that it reaches into a hashable description and a list of Tensors, so that it can be called with other Tensors.

A function that closes over Tensors, or reads them from its module, is rebuilt with others in their places. Two functions with equal
descriptions compute the same function of their Tensors, so that what was compiled for one serves the other. Descriptions therefore hold
everything on which the result may depend, by value: code, numbers, strings, small arrays, containers, and instances of classes written in
Python, with their methods. An object whose behaviour cannot be read off, such as a generator of random numbers, has none.
"""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import sys
from types import BuiltinFunctionType, CellType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, NamedTuple

from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DType
from xpgrad._basics.records import record
from xpgrad._basics.scalars import is_raw_array
from xpgrad._tensor.tensor import Tensor

#: Packages whose functions always compute the same function of their arguments. What draws random numbers is left to the caller to find.
_PURE = frozenset(("builtins", "cmath", "functools", "itertools", "math", "numpy", "operator", "scipy", "xpgrad"))
#: Instructions of functions that change more than their results.
_CHANGES = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_DEREF", "IMPORT_NAME"))
#: The largest array that a description holds, in bytes.
_MOST = 1 << 16


class Unreadable(Exception):
    """Raised for an object whose behaviour cannot be read off."""


class _Place(NamedTuple):
    """The place of a Tensor: its number among the distinct ones."""

    number: int


class _Value(NamedTuple):
    """A value that stays as it is; `text` distinguishes equal numbers that compute differently, such as 0.0 and -0.0, or 1 and 1.0."""

    kind: Any
    value: Any
    text: str | None


class _Items(NamedTuple):
    """A container, its keys if it has any, and its items."""

    kind: Any
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


class _Code(NamedTuple):
    """A Python function: its code, its name and its module's, its defaults, and the variables that it finds outside."""

    code: CodeType
    name: str
    module: str
    defaults: Any
    keywords: Any
    cells: tuple[Any, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]


class _Instance(NamedTuple):
    """An instance of a class: its attributes, and what the class itself has, which must not change."""

    kind: Any
    shared: Any
    keys: tuple[str, ...]
    items: tuple[Any, ...]


class _Class(NamedTuple):
    """A class, and what it has."""

    kind: Any
    shared: Any


class _Method(NamedTuple):
    """A method and its object."""

    function: Any
    owner: Any


class _Bound(NamedTuple):
    """A partial application of a function."""

    function: Any
    args: Any
    keywords: Any


def read(x: Any, tensors: list[Any]) -> Any:
    """Return the description of an object, and append the distinct Tensors in it to `tensors`.

    Raises
    ------
    Unreadable
        It reaches an object whose behaviour cannot be read off.
    """
    return _Reader(tensors).read(x)


class _Reader:
    def __init__(self, tensors: list[Any]) -> None:
        self.tensors = tensors
        self.places = {id(t): k for k, t in enumerate(tensors)}
        self.open: set[int] = set()  # containers and functions that are being read, to find circles

    def read(self, x: Any) -> Any:
        cls = x.__class__
        if isinstance(x, Tensor):
            place = self.places.setdefault(id(x), len(self.tensors))
            if place == len(self.tensors):
                self.tensors.append(x)
            return _Place(place)
        if cls in (int, str, bytes, bool, NoneType, EllipsisType):
            return _Value(cls, x, None)
        if cls in (float, complex):
            return _Value(cls, repr(x), repr(x)) if x != x else _Value(cls, x, repr(x))
        if cls in (DType, Device) or (isinstance(x, ModuleType) and _is_pure(x.__name__)):
            return _Value(cls, x, None)
        if id(x) in self.open:
            raise Unreadable
        self.open.add(id(x))
        try:
            return self.read_object(x, cls)
        finally:
            self.open.discard(id(x))

    def read_object(self, x: Any, cls: Any) -> Any:
        if cls in (tuple, list) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            return _Items(cls, (), tuple([self.read(item) for item in x]))
        if cls is dict:
            keys = tuple([self.read(key) for key in x])
            return _Items(dict, keys, tuple([self.read(item) for item in x.values()]))
        if cls is slice:
            return _Items(slice, (), (self.read(x.start), self.read(x.stop), self.read(x.step)))
        if cls is FunctionType:
            return self.read_function(x)
        if cls is functools.partial:
            return _Bound(self.read(x.func), self.read(x.args), self.read(x.keywords))
        if cls is MethodType:
            return _Method(self.read(x.__func__), self.read(x.__self__))
        if isinstance(x, type):
            return _Value(type, x, None) if _is_pure(x.__module__) else _Class(x, self.read_class(x))
        if cls is BuiltinFunctionType and isinstance(x.__self__, (ModuleType, NoneType)) and _is_pure(x.__module__ or ""):
            return _Value(cls, x, None)
        if cls.__module__ == "numpy" and cls.__name__ in ("ufunc", "_ArrayFunctionDispatcher"):
            return _Value(cls, x, None)
        if is_raw_array(x) and cls.__module__ == "numpy" and getattr(x.dtype, "kind", "") in "biufc" and x.nbytes <= _MOST:
            return _Array(x)
        if type(cls) is type and not _is_pure(cls.__module__) and hasattr(x, "__dict__"):
            attributes = vars(x)
            return _Instance(cls, self.read_class(cls), tuple(attributes), tuple([self.read(value) for value in attributes.values()]))
        raise Unreadable

    def read_class(self, cls: Any) -> Any:
        """Return a description of what a class has: it stays as it is, so that Tensors that it reaches cannot be others."""
        inner, found = _Reader([]), []
        inner.open = self.open
        for base in cls.__mro__:
            if base in (object, tuple):
                continue
            if not base.__flags__ & _HEAP_TYPE or ("__slots__" in vars(base) and not hasattr(base, "_fields")):
                raise Unreadable
            for name, value in vars(base).items():
                own = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
                parts = (own.fget, own.fset) if isinstance(own, property) else (own,)
                for part in parts:
                    if not (name in _OF_EVERY_CLASS or type(part).__name__ in _FIELDS or _is_generated(part)):
                        if name in _HOOKS:
                            raise Unreadable
                        found.append((name, inner.read(part)))
        if inner.tensors:
            raise Unreadable
        return tuple(found)

    def read_function(self, x: Any) -> Any:
        if _is_known(x):
            return _Value(FunctionType, x, None)
        if x.__dict__:
            if _stands_for_known(x):
                return _Value(FunctionType, x, None)
            if not {"__wrapped__", "captured"} <= x.__dict__.keys():  # a function that `xpgrad.compile` made is read as the user wrote it
                raise Unreadable
            return self.read(x.__wrapped__)
        code = x.__code__
        names = _outside(code)
        found = x.__globals__
        outside = tuple([name for name in names if name in found])
        if any(name not in found and not hasattr(builtins, name) for name in names) or found.get("__builtins__") not in _BUILTINS:
            raise Unreadable
        try:
            cells = tuple([self.read(cell.cell_contents) for cell in x.__closure__ or ()])
        except ValueError:  # a variable without a value as yet
            raise Unreadable from None
        values = tuple([self.read(found[name]) for name in outside])
        keywords = self.read(x.__kwdefaults__)
        return _Code(code, x.__qualname__, found.get("__name__", ""), self.read(x.__defaults__), keywords, cells, outside, values)


#: What the globals of a module have as its built-in functions.
_BUILTINS = (builtins, vars(builtins))


#: A class of Python's, not of C's.
_HEAP_TYPE = 1 << 9
#: What every class has, or a dataclass or named tuple.
_OF_EVERY_CLASS = frozenset((
    "__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__annotations__", "__firstlineno__", "__static_attributes__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__", "__match_args__",
    "__orig_bases__", "__slots__", "__type_params__", "_field_defaults",
))  # fmt: skip
#: The types of descriptors of fields.
_FIELDS = frozenset(("_tuplegetter", "member_descriptor", "getset_descriptor"))
#: Methods by which attributes are no longer those of `__dict__`, or a copy has effects.
_HOOKS = frozenset(("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__del__"))


def _is_generated(x: Any) -> bool:
    """Return whether a function was made by `dataclass` or `namedtuple`."""
    return isinstance(x, FunctionType) and (x.__code__.co_filename.startswith("<string") or x.__module__.partition(".")[0] in _MAKERS)


_MAKERS = frozenset(("collections", "dataclasses", "typing"))


class _Array:
    """A small array of NumPy's, compared by its values."""

    def __init__(self, value: Any) -> None:
        self.value = value.copy()
        self.key = (value.shape, str(value.dtype), value.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Array) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_pure(module: str) -> bool:
    return module.partition(".")[0] in _PURE


def _is_known(x: Any) -> bool:
    """Return whether a function is the one of its name in a module of `_PURE`."""
    module = x.__module__ or ""
    return _is_pure(module) and getattr(sys.modules.get(module), x.__name__, None) is x


def _stands_for_known(x: Any) -> bool:
    """Return whether a function of ours stands for one of a module of `_PURE`, as in code that was written for NumPy."""
    theirs = x.__dict__.get("__wrapped__")
    if theirs is None or not _is_pure(x.__globals__.get("__name__", "")):
        return False
    return type(theirs).__name__ == "ufunc" or (hasattr(theirs, "__module__") and hasattr(theirs, "__name__") and _is_known(theirs))


@functools.lru_cache(maxsize=1024)
def _outside(code: CodeType) -> tuple[str, ...]:
    """Return the names of the global variables that a function reads, also in functions inside of it.

    Raises
    ------
    Unreadable
        It changes variables outside, or imports.
    """
    names: dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _CHANGES or (name == "STORE_DEREF" and instruction.argval in code.co_freevars):
            raise Unreadable
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            names[instruction.argval] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(dict.fromkeys(_outside(constant)))
    return tuple(names)


class Rebuilt:
    """An object with other Tensors in the places of its own.

    Attributes
    ----------
    value : object
    """

    def __init__(self, description: Any, tensors: Any) -> None:
        self.tensors = tensors
        self.containers: list[tuple[Any, list[Any]]] = []  # those that may be written to, with what they hold
        self.value: Any = self.build(description)

    def has_changed(self) -> bool:
        """Return whether a list or a dict inside was written to, which would be lost."""
        for made, before in self.containers:
            now = _contents(made)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
                return True
        return False

    def build(self, d: Any) -> Any:
        cls = d.__class__
        if cls is _Place:
            return self.tensors[d.number]
        if cls is _Value:
            return d.kind(d.value) if d.kind in (float, complex) else d.value
        if cls is _Array:
            return d.value.copy()
        if cls is _Code:
            return self.build_function(d)
        if cls is _Class:
            return d.kind
        if cls is _Method:
            return MethodType(self.build(d.function), self.build(d.owner))
        if cls is _Bound:
            return functools.partial(self.build(d.function), *self.build(d.args), **self.build(d.keywords))
        items = [self.build(item) for item in d.items]
        if d.kind is dict:
            out: Any = dict(zip([self.build(key) for key in d.keys], items))
        elif cls is _Instance:
            out = record(d.kind, dict(zip(d.keys, items)))
        elif d.kind in (tuple, list):
            out = d.kind(items)
        else:
            out = d.kind(*items)
        if cls is _Instance or d.kind in (list, dict):
            self.containers.append((out, _contents(out)))
        return out

    def build_function(self, d: _Code) -> Any:
        space = {"__name__": d.module, "__builtins__": builtins, **dict(zip(d.names, [self.build(v) for v in d.values]))}
        cells = tuple([CellType(self.build(cell)) for cell in d.cells])
        out = FunctionType(d.code, space, d.code.co_name, self.build(d.defaults), cells)
        out.__kwdefaults__ = self.build(d.keywords)
        out.__qualname__ = d.name
        return out


def _contents(container: Any) -> list[Any]:
    """Return the items of a list, the keys and items of a dict, or the fields of a dataclass."""
    if isinstance(container, list):
        return list(container)
    pairs = container if isinstance(container, dict) else vars(container)
    return list(itertools.chain(*pairs.items()))
