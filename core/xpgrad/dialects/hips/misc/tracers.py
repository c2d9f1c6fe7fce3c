"""Record a function once and call the record: `const_graph`, as in HIPS autograd, by `xpgrad.compile`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import xpgrad
from xpgrad._operations.lift import new_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import ARRAY, np
from xpgrad.dialects.hips._records import convert_results
from xpgrad.func._tree import flatten, unflatten

__all__ = ["const_graph", "const_graph_unary"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return ``fun(*args, *more, **kwargs)`` as a function of `more` that is recorded at its first call.

    In later calls with arguments of the same shapes and dtypes the recorded operations run as compiled code. A function that reads a
    value of its arguments, e.g. in an ``if``, or calls a `primitive`, is called each time (with a warning at the first); HIPS autograd
    would repeat what the first values led to.
    """
    compiled = xpgrad.compile(functools.partial(fun, *args, **kwargs), fallback=True)

    @functools.wraps(fun)
    def recorded(*more: Any) -> Any:
        leaves, structure = flatten(more)
        traced = any(isinstance(x, Tensor) for x in leaves)
        given = [new_tensor(ARRAY, np.asarray(x)) if isinstance(x, (float, complex, np.ndarray, np.inexact)) else x for x in leaves]
        return convert_results(compiled(*unflatten(structure, given)), traced)

    return recorded


def const_graph_unary(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of one argument that is recorded at its first call, as by `const_graph`."""
    return const_graph(fun)


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that says what to use instead of HIPS autograd's own graph."""
    msg = f"module {__name__!r} has no attribute {name!r}"
    if name in ("full_graph", "FullGraphNode", "ConstGraphNode"):
        msg += ": there are no nodes of NumPy's functions; `xpgrad.compile(f).explain(x)` shows the recorded operations"
    raise AttributeError(msg)
