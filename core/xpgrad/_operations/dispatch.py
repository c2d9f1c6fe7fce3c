"""From a row to the function that users call: a dispatcher with the declared signature, compiled when it is first called."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._operations.coerce import coerce
from xpgrad._operations.forward import trampoline
from xpgrad._operations.source import Text
from xpgrad._rows.row import Row

__all__ = ["dispatcher"]


def _generate_dispatcher(row: Row, scope: dict[str, Any]) -> Any:
    """The text of the function on Tensors that calls a row's implementation, compiled."""
    t = Text()
    if row.elementwise:
        names = row.tensors
        with t.block(f"def public({', '.join(names)}, /):"):
            with t.block("try:"):
                t(f"r = {names[0]}.{row.method}({', '.join(names[1:])})")
            with t.block("except AttributeError:"):
                with t.block(f"if isinstance({names[0]}, TensorBase):"):
                    t("raise")
                t(f"r = coerce(ROW, {', '.join(names)})")
            with t.block("if r is NotImplemented:"):
                t(f"raise not_a_tensor({row.name!r}, {', '.join(names)})")
            t("return r")
    else:
        names = (*row.tensors, *row.statics)
        first = f"{names[0]}[0]" if row.varargs else names[0]
        with t.block(f"def public({', '.join(names)}):"):
            with t.block("try:"):
                t(f"op = {first}.{row.method}")
            with t.block("except AttributeError:"):
                t(f"raise not_a_tensor({row.name!r}, {names[0]}) from None")
            t(f"return op({', '.join(names if row.varargs else names[1:])})")
    return t.compile(f"{row.name}()", dict(scope))["public"]


def _first_call(*args: Any) -> Any:
    """The code of every dispatcher until it is called: becomes the real one, in place, so that all who imported it have it.

    Compiling 150 texts at import would cost as much as importing NumPy. Runs with a dispatcher's own globals.
    """
    return become(ROW, SELF, SCOPE)(*args)  # type: ignore[name-defined]  # noqa: F821


def _become(row: Row, public: Any, scope: dict[str, Any]) -> Any:
    public.__code__ = _generate_dispatcher(row, scope).__code__
    return public


def dispatcher(row: Row, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function on Tensors that calls a row's implementation, with the signature and docstring of `func`."""

    setattr(TensorBase, row.method, trampoline(row))
    if row.elementwise and len(row.tensors) == 2:
        setattr(TensorBase, f"_sop_{row.name}", trampoline(row, "_sop_"))
        setattr(TensorBase, f"_srop_{row.name}", trampoline(row, "_srop_"))
    scope: dict[str, Any] = {"TensorBase": TensorBase, "ROW": row, "coerce": coerce, "not_a_tensor": not_a_tensor, "become": _become}
    public: Any = FunctionType(_first_call.__code__, scope, func.__name__)
    scope["SELF"], scope["SCOPE"] = public, scope
    public.__qualname__, public.__doc__, public.__module__ = func.__qualname__, func.__doc__, func.__module__
    public.__annotations__ = func.__annotations__
    if row.elementwise:
        public.__wrapped__ = func  # inspect.signature and editors see the declared signature
    public.row = row
    return public
