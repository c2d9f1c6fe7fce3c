"""Functions of SciPy's modules: SciPy's own for arrays, and xpgrad's, or a program's rules, for values that are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips.extend import Primitive

__all__ = ["others", "wrap"]


def wrap(theirs: Any, ours: Any, name: str) -> Any:
    """Return the attribute `name` of the SciPy module `theirs`: a function as a primitive, anything else unchanged.

    The module `ours` computes values that are differentiated, if it has the function, until `defvjp` or `defjvp` gives other rules. If it
    has not, differentiating raises NotImplementedError until then.

    Raises
    ------
    AttributeError
        SciPy has no such name.
    """
    found = getattr(theirs, name)
    if not callable(found) or isinstance(found, type):
        return found
    return Primitive(found, getattr(ours, name, None) if name in dir(ours) else None)


def others(names: dict[str, Any], theirs: Any, ours: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module with the names of the SciPy module `theirs`; `names` are its globals."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        names[name] = found = wrap(theirs, ours, name)
        return found

    return find, lambda: sorted({*names, *dir(theirs)})
