"""Arrays whose operations are queued on streams.

Each array has two NumPy arrays. `value` is computed at once, in the order of the program; it decides shapes, and results that depend on
values. `memory` is computed when the stream does its work; only it is visible outside the backend.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import array_api_compat.numpy
import numpy as np

from xpgrad_simstream import streams

__all__ = ["SimArray", "launch", "namespace"]


class SimArray:
    """An array on a simulated device.

    Attributes
    ----------
    value : numpy.ndarray
        The elements, computed in the order of the program.
    memory : numpy.ndarray
        The elements that the simulated device has computed so far.
    storage : Storage
        The accesses to the memory, which views share.
    place : int
        The number of its device.
    """

    __array_ufunc__ = None

    def __init__(self, value: Any, memory: Any, storage: streams.Storage, place: int) -> None:
        self.value, self.memory, self.storage, self.place = value, memory, storage, place

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    T = property(lambda self: launch("T", lambda x: x.T, self))
    mT = property(lambda self: launch("mT", lambda x: x.mT, self))

    @property
    def device(self) -> str:
        return f"simstream:{self.place}" if self.place else "simstream"

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return namespace

    def __getitem__(self, key: Any) -> Any:
        return launch("getitem", lambda x, key: x[key], self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        write("setitem", lambda x, key, value: x.__setitem__(key, value), self, key, value)

    def __bool__(self) -> bool:
        return bool(read(self))

    def __int__(self) -> int:
        return int(read(self))

    def __float__(self) -> float:
        return float(read(self))

    def __complex__(self) -> complex:
        return complex(read(self))

    def __index__(self) -> int:
        return operator.index(read(self).item())

    def __hash__(self) -> int:
        return id(self)


def _make_unary(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self: launch(name, function, self)


def _make_binary(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: launch(name, function, self, other)


def _make_reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: launch(name, lambda x, y: function(y, x), self, other)


def _make_in_place(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def apply(self: SimArray, other: Any) -> SimArray:
        write(name, function, self, other)
        return self

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"):
    _bare = _name.rstrip("_")
    setattr(SimArray, f"__{_bare}__", _make_binary(_name))
    setattr(SimArray, f"__r{_bare}__", _make_reflected(_name))
    setattr(SimArray, f"__i{_bare}__", _make_in_place(f"i{_bare}"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(SimArray, f"__{_name}__", _make_binary(_name))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(SimArray, f"__{_name}__", _make_unary(_name))


def _find_arrays(x: Any) -> list[SimArray]:
    """Return the arrays among arguments and in their lists, tuples and dicts."""
    if isinstance(x, SimArray):
        return [x]
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in _find_arrays(item)]
    return _find_arrays(list(x.values())) if isinstance(x, dict) else []


def _replace_arrays(x: Any, what: str) -> Any:
    """Return arguments with each array replaced by its ``"value"`` or ``"memory"`` (`what`)."""
    if isinstance(x, SimArray):
        return getattr(x, what)
    if isinstance(x, (list, tuple)):
        return type(x)(_replace_arrays(item, what) for item in x)
    return {k: _replace_arrays(v, what) for k, v in x.items()} if isinstance(x, dict) else x


def _is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def _find_outputs(x: Any) -> list[Any]:
    """Return the NumPy arrays in the result of a function."""
    if _is_array(x):
        return [x]
    return [leaf for item in x for leaf in _find_outputs(item)] if isinstance(x, (list, tuple)) else []


def _rebuild_result(x: Any, made: Any) -> Any:
    """Return the result of a function with its NumPy arrays replaced, in order, by items of the iterator `made`."""
    if _is_array(x):
        return next(made)
    if isinstance(x, (list, tuple)):
        items = [_rebuild_result(item, made) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def launch(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Queue ``function(*args, **options)`` on the current stream, and return its result with simulated arrays.

    If all results are views of operands, nothing is queued, since making a view reads no elements.

    Raises
    ------
    ValueError
        If the arrays are on several devices.
    """
    inputs = _find_arrays((args, options))
    device = options.pop("device", "")
    place = inputs[0].place if inputs else int(str(device).partition(":")[2] or 0)
    if any(x.place != place for x in inputs):
        msg = f"`{name}` got arrays of several devices: {sorted({x.device for x in inputs})}; move one of them"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        result = function(*_replace_arrays(args, "value"), **_replace_arrays(options, "value"))
    values = [np.asarray(v) for v in _find_outputs(result)]
    if not values:
        return result
    sources = [next((x for x in inputs if np.may_share_memory(x.value, v)), None) for v in values]
    if all(s is not None for s in sources):
        memories = [np.asarray(m) for m in _find_outputs(function(*_replace_arrays(args, "memory"), **_replace_arrays(options, "memory")))]
        for view in (*values, *memories):
            view.flags.writeable = True  # NB: NumPy hands out read-only views of an expanded array and of a diagonal
        made = [SimArray(v, m, s.storage, place) for v, m, s in zip(values, memories, sources) if s is not None]
        return _rebuild_result(result, iter(made))
    stream = streams.current(place)
    values = [v if s is None and v.flags.writeable else np.array(v) for v, s in zip(values, sources)]
    outs = [SimArray(v, streams.make_garbage(v), streams.Storage(stream), place) for v in values]
    arguments = (_replace_arrays(args, "memory"), _replace_arrays(options, "memory"))
    memories = [out.memory for out in outs]

    def work() -> None:
        # NB: the setting outside may have changed between queueing the work and doing it.
        with np.errstate(all="ignore"):
            results = _find_outputs(function(*arguments[0], **arguments[1]))
        for memory, found in zip(memories, results):
            memory[...] = found

    stream.put(work, name, [x.storage for x in inputs], [out.storage for out in outs])
    return _rebuild_result(result, iter(outs))


def write(name: str, function: Callable[..., Any], target: SimArray, *args: Any) -> None:
    """Queue an operation that overwrites its first operand."""
    others = _find_arrays(args)
    with np.errstate(all="ignore"):
        function(target.value, *_replace_arrays(args, "value"))
    arguments = _replace_arrays(args, "memory")

    def work() -> None:
        with np.errstate(all="ignore"):
            function(target.memory, *arguments)

    streams.current(target.place).put(work, name, [x.storage for x in (target, *others)], [target.storage])


def read(x: SimArray) -> np.ndarray:
    """Wait for the current stream, and return a copy of the array's memory; work on other streams may still be queued."""
    stream = streams.current(x.place)
    found: list[np.ndarray] = []
    stream.put(lambda: found.append(np.array(x.memory)), "a copy to the host", [x.storage], [])
    streams.synchronize(stream)
    return found[0]


class Namespace:
    """The Array API namespace of simulated arrays: NumPy's, with every call queued."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, ModuleType):
            found = Namespace(found)
        elif callable(found) and not isinstance(found, type) and name not in ("finfo", "iinfo", "isdtype", "can_cast"):
            inner = found

            def found(*args: Any, **options: Any) -> Any:
                return launch(name, inner, *args, **options)

        setattr(self, name, found)
        return found


namespace = Namespace(array_api_compat.numpy)
