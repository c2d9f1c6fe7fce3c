"""The names that `dir` shows for a public module: those in its `__all__`, without its imports and private names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn


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


def refuse(module: str, name: str) -> NoReturn:
    """Raise the error for a name that a public module lacks; it says how to write a name of PyTorch, NumPy or JAX here."""
    package: Any = sys.modules["xpgrad"]
    raise AttributeError(package._missing_name(f"module {module!r}", name, module.removeprefix("xpgrad.")), name=name)


def refusal(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a public module in which nothing loads late."""

    def __getattr__(name: str) -> NoReturn:
        refuse(module, name)

    return __getattr__
