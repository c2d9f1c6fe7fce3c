"""Names for a text: each at most once, as the user has it where he has one."""

from __future__ import annotations

import builtins
import keyword
import re

__all__ = ["Names"]

_TAKEN = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "xp", "self"))


class Names:
    """The names that a text has given out.

    Parameters
    ----------
    *taken : str
        Names that stand for something else in the text.
    """

    __slots__ = ("_used",)

    def __init__(self, *taken: str) -> None:
        self._used: dict[str, int] = dict.fromkeys((*_TAKEN, *taken), 1)

    def new(self, base: str) -> str:
        """`base`, or what is nearest to it: ``h``, then ``h_2``."""
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

    def taken(self, name: str) -> bool:
        """Return whether a name stands for something."""
        return name in self._used

    def numbered(self, prefix: str) -> str:
        """``t1``, then ``t2``."""
        used = self._used
        count = used.get(f"#{prefix}", 0)
        while True:
            count += 1
            name = f"{prefix}{count}"
            if name not in used:
                used[f"#{prefix}"] = count
                used[name] = 1
                return name
