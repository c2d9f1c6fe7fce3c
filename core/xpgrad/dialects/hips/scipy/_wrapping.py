"""Functions of SciPy's modules: SciPy's own for arrays, and xpgrad's, or a program's rules, for values that are differentiated."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.extend import Primitive

__all__ = ["wrap"]


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
