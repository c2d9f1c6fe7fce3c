"""Make the function that users call from a row: a dispatcher with the declared signature, compiled at its first call."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._operations.backward import check_saved_names
from xpgrad._operations.coerce import coerce
from xpgrad._operations.forward import trampoline
from xpgrad._operations.methods import add_operators
from xpgrad._operations.source import Text
from xpgrad._rows.row import Row
from xpgrad._rows.variants import declare_in_variants


def dispatcher_text(row: Row) -> Text:
    """Return the text of the function on Tensors that calls a row's implementation.

    It is looked up in the class, because the objects of some libraries have every attribute of the array that they hold.
    """
    t = Text()
    if row.elementwise:
        first = row.tensors[0]
        t(f"""
            def public({", ".join(row.tensors)}, /):
                try:
                    _result = {first}.__class__.{row.method}({", ".join(row.tensors)})
                except AttributeError:
                    if isinstance({first}, _TensorBase):
                        raise
                    _result = _coerce(_row, {", ".join(row.tensors)})
                if _result is NotImplemented:
                    raise _not_a_tensor({row.name!r}, {", ".join(row.tensors)})
                return _result
        """)
    else:
        names = (*row.tensors, *row.statics)
        first = f"{names[0]}[0]" if row.varargs else names[0]
        t(f"""
            def public({", ".join(names)}):
                try:
                    _op = {first}.__class__.{row.method}
                except AttributeError:
                    raise _not_a_tensor({row.name!r}, {names[0]}) from None
                return _op({", ".join((first, *names) if row.varargs else names)})
        """)
    return t


def _first_call(*args: Any) -> Any:
    """Replace the code of a dispatcher by its compiled text, in place, and call it.

    This is the code of every dispatcher until its first call, because compiling 150 texts at import would take as long as importing
    NumPy. It runs with the dispatcher's globals.
    """
    return _become(_row, _public, _scope)(*args)  # type: ignore[name-defined]  # noqa: F821


def _compile_in_place(row: Row, public: Any, scope: dict[str, Any]) -> Any:
    """Replace the code of the dispatcher `public` by its compiled text, and return it."""
    made = dispatcher_text(row).compile(row.traceback_title(f"{row.name}()"), dict(scope), row.declared)
    public.__code__ = made["public"].__code__
    return public


def dispatcher(row: Row, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function on Tensors that calls a row's implementation, with the signature and docstring of `func`."""
    if not row.varargs:
        check_saved_names(row)
    code = func.__code__
    row.declared = (code.co_filename, code.co_firstlineno)
    row.origin = f"{'/'.join(code.co_filename.replace(os.sep, '/').split('/')[-2:])}:{code.co_firstlineno}"
    setattr(TensorBase, row.method, trampoline(row))
    if row.elementwise and len(row.tensors) == 2:
        setattr(TensorBase, f"_sop_{row.name}", trampoline(row, "_sop_"))
        setattr(TensorBase, f"_srop_{row.name}", trampoline(row, "_srop_"))
    add_operators(row)
    declare_in_variants(row)
    scope: dict[str, Any] = {
        "_TensorBase": TensorBase, "_row": row, "_coerce": coerce, "_not_a_tensor": not_a_tensor, "_become": _compile_in_place,
    }  # fmt: skip
    public: Any = FunctionType(_first_call.__code__, scope, func.__name__)
    scope["_public"], scope["_scope"] = public, scope
    public.__qualname__, public.__doc__, public.__module__ = func.__qualname__, func.__doc__, func.__module__
    public.__annotations__ = func.__annotations__
    if row.elementwise:
        public.__wrapped__ = func  # inspect.signature and editors see the declared signature
    public.row = row
    return public
