"""The names that `dir` shows for a public module: those in its `__all__`, without its imports and private names."""

from __future__ import annotations

import sys


def public_names(module: str, *more: str) -> list[str]:
    """Return the names of a public module, for its `__dir__`.

    Parameters
    ----------
    module : str
        The name of the module, which must have an `__all__`.
    *more : str
        Further names, such as modules that load at first use.
    """
    names = vars(sys.modules[module])
    return sorted({*names["__all__"], *more, *(n for n in names if n.startswith("__"))})
