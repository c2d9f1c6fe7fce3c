"""Adapters: functions with NumPy's signatures that convert the arguments and call a function on Tensors."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

from xpgrad._numpy.operands import as_floating, as_ints, is_default, lift, lift_sequence, refuse, write_out
from xpgrad._numpy.table import F, implements
from xpgrad._operations.source import Text

#: The function on Tensors that each adapter calls, by the key in the table.
ADAPTED: dict[str, Callable[..., Any]] = {}


#: Signatures of NumPy functions written in C; `inspect.signature` knows these only since NumPy 2.4.
_C_SIGNATURES: dict[str, Callable[..., None]] = {
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "dot": lambda a, b, out=None: None,
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "inner": lambda a, b, /: None,
    "lexsort": lambda keys, axis=-1: None,
    "unravel_index": lambda indices, shape, order="C": None,
    "vdot": lambda a, b, /: None,
}


def signature_of(name: str) -> inspect.Signature:
    """Return the signature of a NumPy function, given its key in the table (``"linalg.inv"``)."""
    try:
        return inspect.signature(functools.reduce(getattr, name.split("."), sys.modules["numpy"]))  # type: ignore[arg-type]
    except ValueError:
        return inspect.signature(_C_SIGNATURES[sys.modules["numpy"].__dict__[name].__name__])


def _write_adapter(name: str, function: Callable[..., Any], arrays: int, floating: bool, ints: tuple[str, ...], scope: dict[str, Any]
                   ) -> Text:  # fmt: skip
    """Generate the source of the adapter of `function`, and put the defaults that the source names into `scope`.

    Parameters
    ----------
    name : str
        NumPy's name, whose signature the adapter gets.
    function : callable
    arrays : int
        The number of leading arguments that are arrays; 0 for one sequence of arrays.
    floating : bool
        Whether integers among the arrays become floating-point numbers.
    ints : tuple of str
        The arguments that must consist of ints.
    scope : dict
        The globals of the compiled source.
    """
    ours, theirs = inspect.signature(function).parameters, signature_of(name).parameters
    count = arrays or 1
    names, options = [*theirs][:count], [*theirs][count:]
    arguments = ", ".join(names)
    positional = [key for key, our in zip(theirs, ours.values()) if our.kind is our.POSITIONAL_ONLY][count:]
    required = [key for key in theirs if theirs[key].default is inspect.Parameter.empty]
    scope.update({f"_default_{key}": theirs[key].default for key in options})
    t = Text()
    head = (key if key in required else f"{key}=_default_{key}" if key in options else f"{key}=None" for key in theirs)
    with t.block(f"def call({', '.join(head)}):"):
        t(f"{arguments}, = _lift(_name, {arguments})" if arrays else f"{arguments} = _lift_sequence(_name, {arguments})")
        if floating:
            t(f"{arguments}, = map(_as_floating, ({arguments},))")
        given = [*names, *positional]
        for key in options:
            if key in ints:
                t(f"{key} = None if {key} is None else _as_ints(_name, {key!r}, {key})")
            if key in positional or key == "out":
                continue
            if key not in ours:
                with t.block(f"if {key} is not _default_{key} and not _is_default({key}, _default_{key}):"):
                    t(f"_refuse(_name, {key}={key})")
            elif theirs[key].default is ours[key].default or key in required:
                given.append(f"{key}={key}")
            else:
                scope[f"_own_{key}"] = ours[key].default
                given.append(f"{key}=_own_{key} if _is_default({key}, _default_{key}) else {key}")
        t(f"_result = _function({', '.join(given)})")
        t("return _result if out is None else _write_out(_name, out, _result)" if "out" in theirs else "return _result")
    return t


def _compile_and_call(*args: Any, **given: Any) -> Any:
    """Compile the adapter at its first call, and call it. Every new adapter runs this code, with its own globals."""
    return _replace_code(_call, _write, globals())(*args, **given)  # type: ignore[name-defined]  # noqa: F821


def _replace_code(call: Any, write: Callable[[dict[str, Any]], Text], scope: dict[str, Any]) -> Any:
    """Replace the placeholder code of `call` by the adapter that ``write(scope)`` generates. Compiling all at import would be slow."""
    made = write(scope).compile(f"np.{scope['_name']}()", scope)["call"]
    call.__code__, call.__defaults__ = made.__code__, made.__defaults__
    return call


@overload
def adapt(name: str, function: None = None, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
         differentiable: bool = True, note: str = "") -> Callable[[F], F]: ...  # fmt: skip
@overload
def adapt(name: str, function: F, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
         differentiable: bool = True, note: str = "") -> F: ...  # fmt: skip
def adapt(name: str, function: Any = None, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
         differentiable: bool = True, note: str = "") -> Any:  # fmt: skip
    """Implement a NumPy function by a function on Tensors, through an adapter; without `function`, return a decorator.

    The adapter has NumPy's signature, which is read at the first call. It converts arrays to Tensors, passes the options that `function`
    also has, and writes the result into ``out=`` if it is given. Any other option raises `TypeError`, unless it does not affect values.

    Parameters
    ----------
    name : str
        The key in the table: ``"linalg.inv"``.
    function : callable
        ``function(*tensors, **options)``.
    arrays : int
        The number of leading parameters that are arrays; 0 if the first parameter is a sequence of arrays.
    floating : bool
        Whether integers and bools are cast to the default floating dtype.
    ints : tuple of str
        Options that are an int, or integers in any form (`operands.as_ints`).
    differentiable, note
        As in `Entry`.
    """
    if function is None:
        options: dict[str, Any] = {"arrays": arrays, "floating": floating, "ints": ints, "differentiable": differentiable, "note": note}
        return lambda func: adapt(name, func, **options)
    ADAPTED[name] = function
    scope: dict[str, Any] = {
        "_name": name, "_function": function, "_lift": lift, "_lift_sequence": lift_sequence, "_as_floating": as_floating,
        "_as_ints": as_ints, "_write_out": write_out, "_refuse": refuse, "_is_default": is_default, "_replace_code": _replace_code,
    }  # fmt: skip
    scope["_write"] = functools.partial(_write_adapter, name, function, arrays, floating, ints)
    scope["_call"] = call = FunctionType(_compile_and_call.__code__, scope, name)
    implements(name, differentiable=differentiable, note=note)(call)
    return function
