"""Decorators that declare operations: each creates a row and returns the function that users call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

from xpgrad._operations.dispatch import dispatcher
from xpgrad._operations.documents import document_elementwise
from xpgrad._operations.methods import add_methods
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import Formula, Row, parameters

F = TypeVar("F", bound=Callable[..., Any])
Names: TypeAlias = str | tuple[str, ...]


def _public_name(func: Callable[..., Any]) -> str:
    """Return a function's key in the tables; an extension's has its namespace, such as ``"linalg.cholesky"``."""
    namespace = func.__module__.removeprefix("xpgrad.")
    return f"{namespace}.{func.__name__}" if namespace in ("linalg", "fft") else func.__name__


def _method_names(row: Row, given: Names | None) -> Names:
    """Return the method names of an elementwise function: those given, or its name if it has one operand."""
    return given if given is not None else (row.name,) if len(row.tensors) == 1 else ()


def elementwise(
    *formulas: Formula, kernel: Any = None, method: Names | None = None, inplace: bool = True, **options: Any
) -> Callable[[F], F]:  # fmt: skip
    """Declare a public elementwise function; the decorated function provides the signature and the docstring.

    Parameters
    ----------
    *formulas : callable or str
        One per operand, as in `Row`.
    kernel : callable, optional
        ``kernel(xp, *operands)`` computes the function in libraries that do not have it.
    method : str or tuple of str, optional
        The names of its Tensor methods. Default: the function's name, if it has one operand.
    inplace : bool
        Whether Tensors also have in-place methods: the same names followed by an underscore.
    **options
        Parameters of `Row`. NumPy's function (`numpy`) has the same name by default.
    """

    def declare(func: F) -> F:
        given: dict[str, Any] = {"numpy": func.__name__, "fresh": True} | options
        row = Row(func.__name__, parameters(func), (), formulas, kernel, elementwise=True, **given)
        public: Any = dispatcher(row, func)
        public.__doc__ = document_elementwise(func.__doc__, row)
        RULES[row.name] = public
        add_methods(public, _method_names(row, method), row if inplace else None)
        return public

    return declare


def nondifferentiable(
    *, kernel: Any = None, primitive: bool = False, method: Names | None = None, **options: Any
) -> Callable[[F], F]:  # fmt: skip
    """Declare a public function whose results never require grad.

    An elementwise function needs no body, and its options are parameters of `Row`. With ``primitive=True`` the decorated function is the
    public function, written with rows. Method names are as in `elementwise`, without in-place methods; a primitive has only the given
    ones.
    """

    def declare(func: F) -> F:
        public: Any = func
        names = method or ()
        if not primitive:
            operands = parameters(func)
            given: dict[str, Any] = {"numpy": func.__name__, "dtype": "bool"} | options
            row = Row(func.__name__, operands, (), (None,) * len(operands), kernel, elementwise=True, **given)
            public = dispatcher(row, func)
            public.__doc__ = document_elementwise(func.__doc__, row)
            names = _method_names(row, method)
        add_methods(public, names)
        NONDIFFERENTIABLE[_public_name(func)] = public
        return public

    return declare


def rule(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive: the decorated ``f(xp, *operands, *statics)`` is its kernel in Array API calls on raw arrays.

    Returns the primitive on Tensors, ``f(*operands, *statics)``, whose arguments are positional and already normalised.
    """

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        names = parameters(func)[1:]
        count = len(formulas)
        row = Row(func.__name__, names[:count], names[count:], formulas, func, **options)
        PRIMITIVES[row.name] = primitive = dispatcher(row, func)
        return primitive

    return declare


def view(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive whose result shares its operand's memory if the backend's views alias."""
    return rule(*formulas, is_view=True, **({"conj": False} | options))


@overload
def front(func: F, /) -> F: ...
@overload
def front(*, method: Names) -> Callable[[F], F]: ...
def front(func: Any = None, /, *, method: Names = ()) -> Any:
    """Register a public function that normalises its arguments and calls primitives that have rules; `method` is as in `elementwise`."""
    return _register(RULES, func, method)


@overload
def composite(func: F, /) -> F: ...
@overload
def composite(*, method: Names) -> Callable[[F], F]: ...
def composite(func: Any = None, /, *, method: Names = ()) -> Any:
    """Register a public function written with other public functions, which give its gradient; `method` is as in `elementwise`."""
    return _register(COMPOSITE, func, method)


def _register(table: dict[str, Callable[..., Any]], func: Any, method: Names) -> Any:
    """Enter a public function in a table and add its methods; return a decorator if `func` is None."""

    def register(func: F) -> F:
        table[_public_name(func)] = func
        add_methods(func, method)
        return func

    return register if func is None else register(func)
