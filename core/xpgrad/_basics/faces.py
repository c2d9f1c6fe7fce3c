"""The names that `dir` shows of a public module: those in its `__all__`, and not what it imports or keeps to itself."""

from __future__ import annotations

import sys


def public_names(module: str, *more: str) -> list[str]:
    """The names of a public module, for its `__dir__`.

    Parameters
    ----------
    module : str
        Its name; it has an `__all__`.
    *more : str
        What it has besides, such as modules that load at first use.
    """
    names = vars(sys.modules[module])
    return sorted({*names["__all__"], *more, *(n for n in names if n.startswith("__"))})
