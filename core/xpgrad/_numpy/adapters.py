"""Functions that the package has itself: what turns a call of NumPy's into one of the package's, options and all."""

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

#: The functions that stand for NumPy's, by the key in the table.
ADAPTED: dict[str, Callable[..., Any]] = {}


#: The signatures of functions that are written in C, which NumPy says since 2.4 only.
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
    """Return the signature of NumPy's function of that name."""
    try:
        return inspect.signature(functools.reduce(getattr, name.split("."), sys.modules["numpy"]))  # type: ignore[arg-type]
    except ValueError:
        return inspect.signature(_C_SIGNATURES[sys.modules["numpy"].__dict__[name].__name__])


def _write_adapter(name: str, function: Callable[..., Any], arrays: int, floating: bool, ints: tuple[str, ...], scope: dict[str, Any]
                   ) -> Text:  # fmt: skip
    """Write the function with NumPy's parameters that calls another one; `scope` gets the defaults."""
    ours, theirs = inspect.signature(function).parameters, signature_of(name).parameters
    count = arrays or 1
    names, options = [*theirs][:count], [*theirs][count:]
    listed = ", ".join(names)
    placed = [key for key, our in zip(theirs, ours.values()) if our.kind is our.POSITIONAL_ONLY][count:]
    required = [key for key in theirs if theirs[key].default is inspect.Parameter.empty]
    scope.update({f"_default_{key}": theirs[key].default for key in options})
    t = Text()
    head = (key if key in required else f"{key}=_default_{key}" if key in options else f"{key}=None" for key in theirs)
    with t.block(f"def call({', '.join(head)}):"):
        t(f"{listed}, = _lift(_name, {listed})" if arrays else f"{listed} = _lift_sequence(_name, {listed})")
        if floating:
            t(f"{listed}, = map(_as_floating, ({listed},))")
        given = [*names, *placed]
        for key in options:
            if key in ints:
                t(f"{key} = None if {key} is None else _as_ints(_name, {key!r}, {key})")
            if key in placed or key == "out":
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
    """The code of every call until it is called: becomes the real one, in place. Runs with the globals of that call."""
    return _replace_code(_call, _write, globals())(*args, **given)  # type: ignore[name-defined]  # noqa: F821


def _replace_code(call: Any, written: Callable[[dict[str, Any]], Text], scope: dict[str, Any]) -> Any:
    """Turn a call into the function that stands for NumPy's. NB: to compile all of them when this floor is loaded would cost too much."""
    made = written(scope).compile(f"np.{scope['_name']}()", scope)["call"]
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
    """Declare that a function on Tensors stands for NumPy's function of that name; without `function`, a decorator.

    The call has NumPy's signature, which is read when it is first called. Arrays become Tensors; ``out=`` is written to; an option that
    `function` has by the same name is handed over, if it is not NumPy's default; any other is refused unless it changes nothing.

    Parameters
    ----------
    name : str
        The key in the table: ``"linalg.inv"``.
    function : callable
        ``function(*tensors, **options)``.
    arrays : int
        The number of arrays, which come first; 0: the first argument is a sequence of arrays.
    floating : bool
        Integers and bools are taken as floating numbers.
    ints : tuple of str
        Options that are an int, or integers in whatever form.
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
