"""Dependence through the convolutions of `xpgrad.scipy.signal`: each element of a result depends on a window, tap by tap."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from xpgrad.func._sparse.dependence import Dependence, broadcast, gather_sets, union, union_along
from xpgrad.func._sparse.host import np
from xpgrad.func._sparse.layout_rules import nonzero
from xpgrad.func._sparse.propagation import Rule, Walk
from xpgrad.programs.program import Operation, Variable

_MANY_TERMS = 20_000_000


def _taps(walk: Walk, h: Variable, rank: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of a kernel that may be nonzero; if its values are known and the same for the whole batch, only the nonzero ones."""
    lengths = h.shape[len(h.shape) - rank :]
    value = walk.value(h) if h not in walk.tracked and math.prod(h.shape) == math.prod(lengths) else None
    kept = np.ones(lengths, dtype=bool) if value is None else nonzero(value).reshape(lengths)
    for tap in np.argwhere(kept):
        yield tuple(tap.tolist())


def _through_operand(walk: Walk, operation: Operation, x: Variable, h: Variable, rank: int, full: bool) -> Dependence | None:
    """Return the dependence of a convolution through `x`; None if it has too many terms.

    ``out[i + k]`` depends on ``x[i]`` if the convolution is full, else ``out[i]`` on ``x[i + k]``.
    """
    found, shape = walk.dependence_of(x), operation.out.shape
    batch = shape[: len(shape) - rank]
    lengths = x.shape[len(x.shape) - rank :]
    elements = np.broadcast_to(np.arange(found.which.size).reshape(x.shape), (*batch, *lengths))
    places = np.arange(math.prod(shape)).reshape(shape)
    taps = list(_taps(walk, h, rank))
    windows: list[Any] = [(..., *map(slice, tap, np.add(tap, lengths if full else shape[len(batch) :]))) for tap in taps]
    if len(taps) * max(elements.size, places.size) > _MANY_TERMS:
        return None
    fixed, window = (elements, places) if full else (places, elements)
    parts = [window[key].reshape(-1) for key in windows]
    moving = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    still = np.tile(fixed.reshape(-1), len(taps))
    return gather_sets(found, moving, still, shape) if full else gather_sets(found, still, moving, shape)


def _full(walk: Walk, operation: Operation) -> Dependence | None:
    x, h, rank = operation.args[:3]
    parts = [_through_operand(walk, operation, a, b, rank, True) for a, b in ((x, h), (h, x)) if a in walk.tracked]
    if any(part is None for part in parts):
        return None
    first, *rest = [part for part in parts if part is not None]
    return union(first, rest[0]) if rest else first


def _sliding(walk: Walk, operation: Operation) -> Dependence | None:
    x, h, rank = operation.args[:3]
    found = _through_operand(walk, operation, x, h, rank, False) if x in walk.tracked else None
    if x in walk.tracked and found is None:
        return None
    if h in walk.tracked:
        kernel = union_along(walk.dependence_of(h), tuple(range(-rank, 0)))
        whole = broadcast(kernel, operation.out.shape)
        found = whole if found is None else union(found, whole)
    return found


RULES: dict[str, Rule] = {"special_full_convolution": _full, "special_sliding_product": _sliding}
