"""Describe the structure of a compiled function's arguments and results: nested tuples, lists, dicts and dataclasses of Tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from xpgrad._basics.records import field_names, record
from xpgrad._operations.lift import is_constant
from xpgrad._tensor.tensor import Tensor

__all__ = ["arguments", "arrangement", "builder", "describe", "name_tensors", "rebuilt"]


#: One nan of each class and spelling for the descriptions of arguments, because nan differs from itself.
_nans: dict[tuple[type, str], Any] = {}


def describe(x: Any, flat: list[Any], *, arrays: bool = False) -> Any:
    """Return a hashable description of nested containers, None for a Tensor (or an array if `arrays`), and append these to `flat`.

    Raises
    ------
    TypeError
        An object in them is neither a container, nor a Tensor, nor hashable.
    """
    if isinstance(x, Tensor) or (arrays and is_constant(x)):
        flat.append(x)
        return None
    cls = x.__class__
    if cls is tuple or cls is list:
        return (cls, *[describe(item, flat, arrays=arrays) for item in x])
    if cls is dict:
        return (dict, tuple(x), *[describe(item, flat, arrays=arrays) for item in x.values()])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return (cls, *[describe(item, flat, arrays=arrays) for item in x])
    found, by_fields = len(flat), None
    error: Exception | None = None
    if (names := field_names(cls)) is not None:
        by_fields, error = _by_fields(x, names, flat, arrays)
        if len(flat) > found:
            if error is not None:
                raise error
            return by_fields
    try:
        hash(x)
    except TypeError:
        if by_fields is not None and error is None:
            return by_fields
        msg = (
            f"a compiled function takes and returns Tensors, hashable values, and tuples, lists, dicts and dataclasses of these, not "
            f"{cls.__name__}; wrap an array with `xpgrad.asarray(x)`"
        )
        raise TypeError(msg) from None
    if not isinstance(x, (float, complex)):
        return ("static", cls, x, by_fields)  # dataclasses may equal others that differ in the types, or in some of their fields
    text = repr(x)  # 0.0 == -0.0
    if x != x:
        x = _nans.setdefault((cls, text), x)
    return ("static", cls, x, text)


def _by_fields(x: Any, names: tuple[str, ...], flat: list[Any], arrays: bool) -> tuple[Any, Exception | None]:
    """Describe a dataclass by its fields `names`; also return the error for an invalid field, or None.

    The error counts only if another field has a Tensor. Tensors (and arrays, if `arrays`) are appended to `flat`.
    """
    error: Exception | None = None
    present = tuple(name for name in names if hasattr(x, name))
    parts = []
    for name in present:
        try:
            parts.append(describe(getattr(x, name), flat, arrays=arrays))
        except TypeError as exc:
            error = exc
    return (x.__class__, present, *parts), error


def arguments(template: Any, tensors: list[Any]) -> Any:
    """Return positional and keyword arguments with `tensors` in them; without a template the Tensors are the positional ones."""
    return (tensors, {}) if template is None else rebuilt(template, iter(tensors))


def rebuilt(template: Any, flat: Iterator[Any]) -> Any:
    if template is None:
        return next(flat)
    kind = template[0]
    if kind == "static":
        return template[2]
    if kind is dict:
        return dict(zip(template[1], [rebuilt(t, flat) for t in template[2:]]))
    if field_names(kind) is not None:
        return record(kind, {name: rebuilt(t, flat) for name, t in zip(template[1], template[2:])})
    items = [rebuilt(t, flat) for t in template[1:]]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def builder(template: Any) -> Callable[[list[Any]], Any]:
    """Return a function that puts Tensors into a structure, for repeated use."""
    places = itertools.count()
    text = _nested_source(template, places)
    if text is None:
        return lambda tensors: rebuilt(template, iter(tensors))
    built: Callable[[list[Any]], Any] = eval(f"lambda tensors: {text}")  # our own text: tuples and lists
    return built


def _nested_source(template: Any, places: Iterator[int]) -> str | None:
    """Return source that builds tuples and lists of ``tensors[place]``, for the next of `places`; None for other structures."""
    if template is None:
        return f"tensors[{next(places)}]"
    if template[0] is not tuple and template[0] is not list:
        return None
    parts = [_nested_source(t, places) for t in template[1:]]
    if None in parts:
        return None
    inside = "".join(f"{part}, " for part in parts)
    return f"({inside})" if template[0] is tuple else f"[{inside}]"


def name_tensors(name: str | None, template: Any, found: list[str | None]) -> None:
    """Append a name for each Tensor in an argument, derived from the path to it, or None if that is no identifier."""
    if template is None:
        found.append(name if name is None or name.isidentifier() else None)
    elif template[0] != "static":
        if template[0] is dict or field_names(template[0]) is not None:
            keys, parts = template[1], template[2:]
        else:
            keys, parts = getattr(template[0], "_fields", range(len(template) - 1)), template[1:]
        for key, t in zip(keys, parts):
            name_tensors(None if name is None else f"{name}_{key}", t, found)


def arrangement(template: Any) -> str:
    """Return source that arranges the outputs ``o`` of a program as the function returned them."""
    if template is None:
        return "None"
    if template.__class__ is tuple:
        return f"({''.join(arrangement(t) + ', ' for t in template)})"
    return f"o[{template}]"
