"""Writes in loops and branches: results that share no memory with operands, and errors for writes that would be lost or repeated.

A library that traces a function runs it another number of times than the loop has steps, and so do backward passes that compute steps
again, and `vmap`, which runs both branches. A write to a Tensor that the function did not make would then be lost or repeated. Such a loop
returns new arrays even if a step returns its carry. Python's loops do so as well, so that later writes do the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from xpgrad._tensor.tensor import Tensor

__all__ = ["check_unwritten", "closed_over", "refusing_writes", "separate", "versions_of"]


def separate(results: Sequence[Any], given: Iterable[Any]) -> list[Any]:
    """Return results as Tensors that share no memory with each other and with the given Tensors: those that do are copied."""
    known: set[Any] = set()
    for x in given:
        known.update(_identities(x))
    found = []
    for x in results:
        own = x.clone() if not known.isdisjoint(_identities(x)) else x
        known.update(_identities(own))
        found.append(own)
    return found


def _identities(x: Any) -> tuple[int, ...]:
    """Return what is common to Tensors that share memory."""
    alias = x._alias
    return (id(x),) if alias is None or alias.cell is None else (id(x), id(alias.cell))


def closed_over(*functions: Any) -> list[Any]:
    """Return the Tensors that functions use besides their arguments, as far as their free variables, globals and objects show."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = list(functions)
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found[id(x)] = x
        else:
            stack += _contents(x)
    return list(found.values())


def _contents(x: Any) -> Iterable[Any]:
    """Return what a function or a container refers to."""
    if isinstance(x, FunctionType):
        found = [*_cell_values(x.__closure__ or ()), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        named = [x.__globals__.get(name) for name in _names(x.__code__)]
        return found + [value for value in named if isinstance(value, (Tensor, tuple, list, dict))]
    if isinstance(x, (tuple, list)):
        return x
    if isinstance(x, dict):
        return x.values()
    if isinstance(x, MethodType):
        return x.__self__, x.__func__
    if isinstance(x, partial):
        return x.func, *x.args, *x.keywords.values()
    return () if isinstance(x, type) or type(x).__module__ == "builtins" else getattr(x, "__dict__", {}).values()


def _cell_values(cells: tuple[CellType, ...]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # it is not assigned yet
            continue


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in the code of a function, and of functions that are defined in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return tuple(dict.fromkeys([*code.co_names, *(name for c in inner for name in _names(c))]))


def versions_of(tensors: Iterable[Any]) -> list[tuple[Any, int]]:
    """Return Tensors with their versions, for `check_unwritten`; inference tensors have none."""
    return [(x, x._version) for x in tensors if not x.is_inference()]


def check_unwritten(name: str, body: str, known: list[tuple[Any, int]]) -> None:
    """Raise RuntimeError if one of some Tensors has another version; `name` and `body` are a loop and its function."""
    if any(x._version != version for x, version in known):
        msg = (
            f"{name}: `{body}` writes in place to its argument or to a Tensor from outside. Here it does not run exactly once for each "
            "step or choice, so that the write would be lost or repeated. Return the new value instead, e.g. after writing to a `clone()`"
        )
        raise RuntimeError(msg)


def refusing_writes(
    name: str, body: str, run: Callable[..., Any], functions: Sequence[Any], more: Sequence[Any] = ()
) -> Callable[..., Any]:  # fmt: skip
    """Return a function like `run` that raises an error if it writes to its arguments, which are lists of Tensors, or to others.

    Parameters
    ----------
    name, body : str
        The loop or branch and its function, for messages.
    run : callable
    functions : sequence of callable
        The functions that it calls. They may not write to what they close over.
    more : sequence of Tensor
        Further Tensors to which they may not write.
    """
    found: list[list[Any]] = []  # what they close over, which is looked for at the first call

    def checked(*lists: list[Any]) -> Any:
        if not found:
            found.append(closed_over(*functions))
        known = versions_of([*(x for tensors in lists for x in tensors), *found[0], *more])
        out = run(*lists)
        check_unwritten(name, body, known)
        return out

    return checked
