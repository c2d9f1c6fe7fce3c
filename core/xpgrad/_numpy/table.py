"""The table of NumPy's functions: by name, the function on Tensors that stands for each, and the reason where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Entry(NamedTuple):
    """A function of NumPy that Tensors have.

    Attributes
    ----------
    call : callable
        The function on Tensors, with NumPy's signature.
    differentiable : bool
        False where no result has a derivative.
    note : str
        What differs from NumPy, for the documentation.
    """

    call: Callable[..., Any]
    differentiable: bool
    note: str


#: The functions that NumPy dispatches by `__array_function__`; the keys are ``"sum"``, ``"linalg.norm"``, ``"fft.rfft"``.
FUNCTIONS: dict[str, Entry] = {}
#: The functions that make an array beside their keyword argument ``like``, which is the Tensor that was asked.
LIKE: dict[str, Callable[..., Any]] = {}
#: The universal functions, by `ufunc.__name__`; see `ufuncs`.
UFUNCS: dict[str, Any] = {}
#: Why a function is not there, or is not asked for by NumPy.
ABSENT: dict[str, str] = {}


def implements(*names: str, differentiable: bool = True, note: str = "") -> Callable[[F], F]:
    """Declare that the decorated function stands for the functions of NumPy with these names."""

    def declare(func: F) -> F:
        for name in names:
            FUNCTIONS[name] = Entry(func, differentiable, note)
        return func

    return declare


def declare_absent(reason: str, *names: str) -> None:
    """Say why functions are not there: a clause that an error and the documentation quote."""
    for name in names:
        ABSENT[name] = reason


def find_nearest(name: str) -> str:
    """The covered name that is most like another; empty where none is."""
    found = difflib.get_close_matches(name, [*FUNCTIONS, *UFUNCS], n=1, cutoff=0.7)
    return found[0] if found else ""


def no_rule_error(name: str) -> TypeError:
    """The error for a function that is not in the table."""
    reason = ABSENT.get(name)
    close = "" if reason else find_nearest(name)
    why = f": {reason}" if reason else f"; the nearest that it has is `np.{close}`" if close else ""
    return TypeError(f"np.{name} has no rule in xpgrad{why}. For constants use `np.{name}(x.detach().numpy())`")
