"""Functions that the package has itself: what turns a call of NumPy's into one of the package's, options and all."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, overload

from xpgrad._numpy.operands import as_ints, floating as as_floating, into, is_default, lift, lift_all, refuse
from xpgrad._numpy.table import F, covers

#: The functions that stand for NumPy's, by the key in the table.
SAME: dict[str, Callable[..., Any]] = {}


class _Signature(NamedTuple):
    """How the arguments of NumPy's function become those of another one.

    Attributes
    ----------
    names : tuple of str
        NumPy's parameters, in order.
    defaults : dict
        The values of those that need not be given.
    placed : list of str
        Those behind the arrays that the other function takes by their places only.
    taken : set of str
        Those that it takes by the same name.
    """

    names: tuple[str, ...]
    defaults: dict[str, Any]
    placed: list[str]
    taken: frozenset[str]


def _signature(name: str, function: Callable[..., Any], count: int) -> _Signature:
    """Read the signatures of NumPy's function and of the one that stands for it."""
    ours = inspect.signature(function).parameters
    try:
        theirs = inspect.signature(functools.reduce(getattr, name.split("."), sys.modules["numpy"])).parameters  # type: ignore[arg-type]
    except ValueError:  # NumPy wrote it in C, and an old one does not say
        theirs = ours
    placed = [their for their, our in zip(theirs, ours.values()) if our.kind is our.POSITIONAL_ONLY][count:]
    return _Signature(tuple(theirs), {key: p.default for key, p in theirs.items()}, placed, frozenset(ours))


@overload
def same(name: str, function: None = None, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
         differentiable: bool = True, note: str = "") -> Callable[[F], F]: ...  # fmt: skip
@overload
def same(name: str, function: F, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
         differentiable: bool = True, note: str = "") -> F: ...  # fmt: skip
def same(name: str, function: Any = None, *, arrays: int = 1, floating: bool = False, ints: tuple[str, ...] = (),
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
        return lambda func: same(name, func, **options)
    SAME[name], count = function, arrays or 1
    known: list[_Signature] = []

    def call(*args: Any, **given: Any) -> Any:
        if not known:
            known.append(_signature(name, function, count))
        names, defaults, placed, taken = known[0]
        given.update(zip(names, args))
        first = [given.pop(key, None) for key in names[:count]]
        operands: Any = lift(name, *first) if arrays else (lift_all(name, first[0]),)
        if floating:
            operands = map(as_floating, operands)
        if not given:
            return function(*operands)
        out = given.pop("out", None)
        for key in ints:
            if (value := given.get(key)) is not None:
                given[key] = as_ints(name, key, value)
        rest = [given.pop(key) for key in placed]
        wanted = {}
        for key, value in given.items():
            if not is_default(value, defaults.get(key)):
                if key in taken:
                    wanted[key] = value
                else:
                    refuse(name, **{key: value})
        return into(name, out, function(*operands, *rest, **wanted))

    call.__name__ = call.__qualname__ = name
    covers(name, differentiable=differentiable, note=note)(call)
    return function
