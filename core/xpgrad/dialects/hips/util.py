"""Small tools of HIPS autograd: replace items of a sequence, sort a graph."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

__all__ = ["func", "quick_grad_check", "subval", "subvals", "toposort"]


def subvals(x: Sequence[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return a tuple of the items of `x`, with those at the positions in `ivs`, pairs of position and item, replaced."""
    new = dict(ivs)
    return tuple(new.get(i, item) for i, item in enumerate(x))


def subval(x: Sequence[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Return a tuple of the items of `x`, with the one at position `i` replaced by `v`."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """Return `f`."""
    return f


def toposort(end_node: Any, parents: Callable[[Any], Iterable[Any]] = operator.attrgetter("parents")) -> Iterator[Any]:
    """Yield the nodes of a graph, each before its parents, from `end_node` on."""
    order: list[Any] = []
    seen: set[int] = set()
    stack = [(end_node, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent in parents(node))
    yield from reversed(order)


def quick_grad_check(
    fun: Callable[..., Any], arg0: Any, extra_args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, verbose: bool = True,
    eps: float = 1e-4, rtol: float = 1e-4, atol: float = 1e-6, rs: Any = None,
) -> None:  # fmt: skip
    """Check the gradient with respect to the first argument; deprecated in HIPS autograd in favour of `test_util.check_grads`."""
    from xpgrad.dialects.hips.test_util import check_grads  # loads late: it needs this package

    warnings.warn("quick_grad_check is deprecated; use `test_util.check_grads`", UserWarning, stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
