"""Choose unique names for a text, which follow the user's names where possible."""

from __future__ import annotations

import builtins
import keyword
import re

__all__ = ["Names"]

_TAKEN = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "xp", "self"))


class Names:
    """The names in use in a text.

    Parameters
    ----------
    *taken : str
        Names that are used for something else.
    """

    __slots__ = ("_used",)

    def __init__(self, *taken: str) -> None:
        self._used: dict[str, int] = dict.fromkeys((*_TAKEN, *taken), 1)

    def new(self, base: str) -> str:
        """Return an unused name: `base`, or `base` with a number (``h``, then ``h_2``); invalid characters become underscores."""
        used = self._used
        if base not in used:
            if base.isidentifier():
                used[base] = 1
                return base
            base = re.sub(r"\W", "_", base)
            base = base if base.isidentifier() else f"v_{base}"
        while True:
            count = used[base] = used.get(base, 0) + 1
            name = f"{base}_{count}" if count > 1 else base
            if count == 1:
                return name
            if name not in used:
                used[name] = 1
                return name

    def is_taken(self, name: str) -> bool:
        """Return whether a name is in use."""
        return name in self._used

    def next_name(self, prefix: str) -> str:
        """Return an unused numbered name: ``t1``, then ``t2``."""
        used = self._used
        count = used.get(f"#{prefix}", 0)
        while True:
            count += 1
            name = f"{prefix}{count}"
            if name not in used:
                used[f"#{prefix}"] = count
                used[name] = 1
                return name
