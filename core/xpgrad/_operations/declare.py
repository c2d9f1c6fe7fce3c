"""The decorators that declare operations: each makes a row and returns the function that users call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xpgrad._operations.dispatch import dispatcher
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import Formula, Row, parameters

__all__ = ["composite", "elementwise", "front", "nondifferentiable", "rule", "view"]

F = TypeVar("F", bound=Callable[..., Any])


def _public_name(func: Callable[..., Any]) -> str:
    """A public function's key in the tables: those of the extensions carry their namespace, e.g. ``"linalg.cholesky"``."""
    namespace = func.__module__.removeprefix("xpgrad.")
    return f"{namespace}.{func.__name__}" if namespace in ("linalg", "fft") else func.__name__


def elementwise(*formulas: Formula, kernel: Any = None, **options: Any) -> Callable[[F], F]:
    """Declare a public elementwise function: the decorated function gives its signature and docstring.

    Parameters
    ----------
    *formulas : callable or str
        One per operand, as in `Row`.
    kernel : callable, optional
        ``kernel(xp, *operands)``: its composition, for libraries that do not have it.
    **options
        Parameters of `Row`. NumPy's function (`numpy`) has the same name unless something else is said.
    """

    def declare(func: F) -> F:
        given: dict[str, Any] = {"numpy": func.__name__, "fresh": True} | options
        row = Row(func.__name__, parameters(func), (), formulas, kernel, elementwise=True, **given)
        public: Any = dispatcher(row, func)
        RULES[row.name] = public
        return public

    return declare


def nondifferentiable(*, kernel: Any = None, primitive: bool = False, **options: Any) -> Callable[[F], F]:
    """Declare a public function whose results never require grad.

    Elementwise ones need no body, and their options are parameters of `Row`; with ``primitive=True`` the body is the public function
    itself, written with rows.
    """

    def declare(func: F) -> F:
        public: Any = func
        if not primitive:
            names = parameters(func)
            given: dict[str, Any] = {"numpy": func.__name__, "dtype": "bool"} | options
            row = Row(func.__name__, names, (), (None,) * len(names), kernel, elementwise=True, **given)
            public = dispatcher(row, func)
        NONDIFFERENTIABLE[_public_name(func)] = public
        return public

    return declare


def rule(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive: the decorated function ``f(xp, *operands, *statics)`` is its kernel in Array API calls on raw arrays.

    What remains is the primitive on Tensors, ``f(*operands, *statics)``: all positional, nothing normalised.
    """

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        names = parameters(func)[1:]
        count = len(formulas)
        row = Row(func.__name__, names[:count], names[count:], formulas, func, **options)
        PRIMITIVES[row.name] = primitive = dispatcher(row, func)
        return primitive

    return declare


def view(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive whose result shares its operand's memory where the backend's views alias."""
    return rule(*formulas, is_view=True, **({"conj": False} | options))


def front(func: F) -> F:
    """Register a public function that normalises its arguments and calls primitives that have rules."""
    RULES[_public_name(func)] = func
    return func


def composite(func: F) -> F:
    """Register a public function that is written in other public functions: its gradient is theirs."""
    COMPOSITE[_public_name(func)] = func
    return func
