"""The table of NumPy's functions: the implementation of each on Tensors, or the reason why it has none."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Entry(NamedTuple):
    """The implementation of a NumPy function.

    Attributes
    ----------
    call : callable
        The function on Tensors, with NumPy's signature.
    differentiable : bool
        Whether a result has a derivative.
    note : str
        How it differs from NumPy, for the documentation.
    """

    call: Callable[..., Any]
    differentiable: bool
    note: str


#: Functions that NumPy dispatches through `__array_function__`; keys are like ``"sum"``, ``"linalg.norm"``, ``"fft.rfft"``.
FUNCTIONS: dict[str, Entry] = {}
#: Functions that make an array like the Tensor that is their keyword argument ``like``.
LIKE: dict[str, Callable[..., Any]] = {}
#: Ufuncs by `ufunc.__name__`; see the module `ufuncs`.
UFUNCS: dict[str, Any] = {}
#: Reasons why a function has no implementation.
ABSENT: dict[str, str] = {}


def implements(*names: str, differentiable: bool = True, note: str = "") -> Callable[[F], F]:
    """Return a decorator that enters a function in the table as the implementation of NumPy's functions of these names.

    Parameters
    ----------
    *names : str
        NumPy's names, below ``np``.
    differentiable : bool
        Whether the result can have a gradient, for the documentation.
    note : str
        A remark for the documentation.
    """

    def declare(func: F) -> F:
        for name in names:
            FUNCTIONS[name] = Entry(func, differentiable, note)
        return func

    return declare


def declare_absent(reason: str, *names: str) -> None:
    """Record why functions have no implementation; errors and the documentation quote the reason."""
    for name in names:
        ABSENT[name] = reason


def find_nearest(name: str) -> str:
    """Return the most similar name in the table; an empty string if none is similar."""
    found = difflib.get_close_matches(name, [*FUNCTIONS, *UFUNCS], n=1, cutoff=0.7)
    return found[0] if found else ""


def no_rule_error(name: str) -> TypeError:
    """Return the error for a function that is not in the table, with the reason or a similar name."""
    reason = ABSENT.get(name)
    close = "" if reason else find_nearest(name)
    why = f": {reason}" if reason else f"; the nearest that it has is `np.{close}`" if close else ""
    return TypeError(f"np.{name} has no rule in xpgrad{why}. For constants, pass it `x.detach().numpy()`")
