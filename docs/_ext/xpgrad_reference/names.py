"""List the public names of the package: what each is, where it is met first, and by which other names."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from xpgrad._rows.namespace import METHODS

#: What is public beside what the package itself shows. (The dialect for HIPS autograd has the names of NumPy that is installed.)
ALSO = ("xpgrad.dialects.libtorch", "xpgrad.dialects.oneflow")


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes
    ----------
    full : str
        With its module, and its class if it is a member: ``xpgrad.Tensor.add_``.
    kind : str
        ``function``, ``class``, ``exception``, ``method``, ``property``, ``attribute`` or ``data``.
    thing : object
        The object, without its descriptor if it is a static method or a class method.
    owner : str
        The module, or the class if it is a member.
    aliases : tuple of str
        Other public names of the same function or class.
    cls : type or None
        The class of a member.
    """

    full: str
    kind: str
    thing: Any
    owner: str
    aliases: tuple[str, ...] = ()
    cls: type | None = None

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.full.rpartition(".")[2]

    @property
    def doc(self) -> str:
        """The docstring; empty where an object says only what its type is."""
        if self.kind == "data" or (self.kind == "attribute" and not inspect.ismemberdescriptor(self.thing) and not callable(self.thing)):
            return ""
        return inspect.getdoc(self.thing) or ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """What a caller hands over, without `self`; ``*args`` and ``**kwargs`` without their stars."""
        if self.kind not in {"function", "class", "method"} or (self.kind == "class" and issubclass(self.thing, enum.Enum)):
            return ()  # how Python writes the call of an enumeration depends on its version
        try:
            found = list(inspect.signature(self.thing).parameters)
        except (TypeError, ValueError):
            return ()
        bound = found[:1] in (["self"], ["cls"], ["mcs"]) or METHODS.get(self.short) is self.thing
        return tuple(found[1:] if self.kind == "method" and bound else found)

    @property
    def returns(self) -> bool:
        """Whether a call has a result."""
        if self.kind not in {"function", "method"}:
            return False
        try:
            return inspect.signature(self.thing).return_annotation not in ("None", None, "NoReturn")
        except (TypeError, ValueError):
            return True


def modules() -> list[types.ModuleType]:
    """The package, and the modules that it shows, in them too."""
    found: dict[str, types.ModuleType] = {}
    waiting = ["xpgrad", *ALSO]
    while waiting:
        module = importlib.import_module(waiting.pop())
        if module.__name__ in found:
            continue
        found[module.__name__] = module
        inner = (getattr(module, name) for name in dir(module) if not name.startswith("_"))
        waiting += [m.__name__ for m in inner if isinstance(m, types.ModuleType) and re.match(r"xpgrad(\.[a-z]\w*)+$", m.__name__)]
    return [found[name] for name in sorted(found)]


def own(thing: Any) -> bool:
    """Return whether the package, not another library, made it."""
    return str(getattr(thing, "__module__", "xpgrad")).partition(".")[0] == "xpgrad"


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class that the package wrote, as they stand in the class."""
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        where = next((c for c in cls.__mro__ if name in c.__dict__), cls)
        if where.__module__.partition(".")[0] == "xpgrad" and where.__name__ != "BaseException":
            yield name, inspect.getattr_static(cls, name)


def public() -> list[Name]:
    """All public names, in the order of the alphabet; a function or class that has several is listed once."""
    first: dict[int, Name] = {}
    others: dict[str, list[str]] = {}
    found: list[Name] = []
    for module in modules():
        for short in sorted(n for n in dir(module) if not n.startswith("_")):
            thing = getattr(module, short)
            if isinstance(thing, types.ModuleType) or not own(thing):
                continue
            full = f"{module.__name__}.{short}"
            if callable(thing) and id(thing) in first:
                others.setdefault(first[id(thing)].full, []).append(full)
                continue
            name = Name(full, _kind(thing), thing, module.__name__)
            first[id(thing)] = name
            found.append(name)
            if isinstance(thing, type):
                found += [_member(full, inner, value, thing) for inner, value in members(thing)]
    return [replace(n, aliases=tuple(others.get(n.full, ()))) for n in found]


def _kind(thing: Any) -> str:
    if isinstance(thing, type):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if callable(thing) else "data"


def _member(owner: str, short: str, thing: Any, cls: type) -> Name:
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    kind = "property" if isinstance(thing, property) else "method" if callable(thing) else "attribute"
    return Name(f"{owner}.{short}", kind, thing, owner, cls=cls)
