"""What users see of a public module: the names that `dir` shows, and errors about names and keywords that it does not have.

`dir` shows the names in a module's `__all__`, without its imports and private names.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


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


def names_keywords(function: F) -> F:
    """Make a transform's error about an unknown keyword say what other libraries' keywords are called here; a decorator."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                package: Any = sys.modules["xpgrad"]
                raise TypeError(package._unknown_keyword(function.__name__, name, known))
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]
