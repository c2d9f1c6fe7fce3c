"""Order the statements of a program, put them into nests, and plan the memory between these.

A nest holds all statements over one domain whose operands are ready, or are made at the same place of the same nest. What nothing else
reads stays in registers. Products run as early as possible, since others wait for them. Large nests are divided into a fixed
number of pieces, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

from xpgrad.programs.program import Variable
from xpgrad.programs.regions import Check, Control, Indexed, Nest, Product, Region, Statement
from xpgrad.programs.views import Buffer, View

__all__ = ["ALIGNMENT", "divide_nests", "plan_memory", "postpone", "schedule"]

_LONGEST = 256  # statements of a nest: code generators take more than linear time
_FAR = 16  # regions between nests that are far away
_MANY = 128  # statements that move far away and keep several operands instead of a result; more are a sum over the steps of a loop
ALIGNMENT = 64  # bytes
_LARGE = 1 << 16  # places of a domain from which a nest is divided
_PIECES = 16
_SMALL = 4096  # elements of a sum that is kept for each piece


def schedule(items: list[Statement | Product | Check | Control], source: Callable[[Variable], Variable]) -> list[Region]:
    """Put statements into nests, in an order in which each reads only what is complete, and memory is filled just before it is used."""
    made = {item.makes for item in items}
    waits: list[int] = []
    readers: dict[Any, list[int]] = {}
    fills = _fills(items, made)
    filled: list[list[int]] = []  # the fills that each waits for
    others: list[int] = []  # how many results other than fills each waits for
    started: set[int] = set()
    alone: list[int] = []  # ready, and not for a nest
    ready: dict[tuple[int, ...], list[int]] = {}  # by their domains

    def put(k: int) -> None:
        item = items[k]
        heappush(ready.setdefault(item.domain, []) if isinstance(item, Statement) else alone, k)

    def completed(token: Any) -> Iterator[int]:
        for k in readers.get(token, ()):
            waits[k] -= 1
            if not waits[k]:
                yield k
            if token not in fills:
                others[k] -= 1
                yield from fills_for(k)

    def fills_for(k: int) -> Iterator[int]:
        """Yield the fills for which an item waits, if it waits for nothing else."""
        if not others[k]:
            for fill in filled[k]:
                if fill not in started:
                    started.add(fill)
                    yield fill

    for k, item in enumerate(items):
        needed = item.reads & made
        waits.append(len(needed))
        filled.append([fills[token] for token in needed if token in fills])
        others.append(len(needed) - len(filled[k]))
        for token in needed:
            readers.setdefault(token, []).append(k)
    last = set(fills.values())
    for k, count in enumerate(waits):
        if not count and k not in last:
            put(k)
        for fill in fills_for(k):
            put(fill)
    regions: list[Region] = []
    while alone or ready:
        if alone:
            single: Any = items[heappop(alone)]
            regions.append(single)
            for k in completed(single.makes):
                put(k)
            continue
        domain = min(ready, key=lambda d: ready[d][0])
        queue, late = ready.pop(domain), []
        nest = Nest(domain)
        local: dict[Any, bool] = {}  # what the nest makes: whether element by element
        written: set[Any] = set()
        while queue and len(nest.body) < _LONGEST:
            k = heappop(queue)
            s: Any = items[k]
            if not _fits(s, local, written, source):
                late.append(k)
                continue
            nest.body.append(s)
            local[s.makes] = s.kind == "assign"
            written.add(s.memory.part)
            for j in completed(s.makes):
                other = items[j]
                if isinstance(other, Statement) and other.domain == domain:
                    heappush(queue, j)
                else:
                    put(j)
        for k in (*queue, *late):
            put(k)
        regions.append(nest)
    return regions


def _fills(items: list[Statement | Product | Check | Control], made: set[Any]) -> dict[Any, int]:
    """Return the positions of statements that fill memory with a number, for others that write to it, by what they make."""
    read = {token for item in items for token in item.reads}
    return {
        item.makes: k
        for k, item in enumerate(items)
        if isinstance(item, Statement) and item.kind == "store" and not item.reads & made and item.makes in read
        and not any(isinstance(a, Variable) for a in item.args)
    }  # fmt: skip


def _fits(s: Statement, local: dict[Any, bool], written: set[Any], source: Callable[[Variable], Variable]) -> bool:
    """Return whether a statement can join a nest: it reads the nest's results only at the same position, and writes to no memory twice.

    Parameters
    ----------
    s : Statement
    local : dict
        Of each token that the nest completes, whether it is complete element by element.
    written : set
        The memory to which the nest writes.
    source : callable
        ``source(v)`` is the variable that must be complete before `v` can be read.
    """
    for token in s.reads:
        if token in local:
            if not local[token] or token not in s.args or token.shape != s.domain:
                return False
            if any(isinstance(a, Variable) and a is not token and source(a) is token for a in s.args):
                return False
    return s.memory.part not in written


def postpone(regions: list[Region], outputs: list[Variable], source: Callable[[Variable], Variable]) -> None:
    """Move assignments to the later nests that read them, where that takes no more memory: less is stored and loaded again.

    Parameters
    ----------
    regions : list of Region
        They are changed in place.
    outputs : list of Variable
        The results of the program, which must be stored.
    source : callable
        As for `schedule`.
    """
    place: dict[Any, int] = {}
    readers: dict[Any, list[tuple[int, Any]]] = {}
    for k, region in enumerate(regions):
        for item in region.body if isinstance(region, Nest) else [region]:
            place[item.makes] = k
            for token in item.reads:
                readers.setdefault(token, []).append((k, item))
    kept = {source(v) for v in outputs}
    where = {id(item): k for found in readers.values() for k, item in found}

    def is_stored(token: Any) -> bool:
        return token in kept or any(where[id(item)] != place[token] for _, item in readers.get(token, ()))

    def last_read(token: Any, besides: Statement) -> int:
        """Return the last region that reads a result, besides one statement."""
        return max((where[id(item)] for _, item in readers[token] if item is not besides), default=-1)

    costly = 0
    for k in range(len(regions) - 1, -1, -1):
        nest = regions[k]
        if not isinstance(nest, Nest):
            continue
        for s in reversed(nest.body[:]):
            users = [item for _, item in readers.get(s.makes, ())]
            if s.kind != "assign" or s.makes in kept or not users:
                continue
            first = min(where[id(item)] for item in users)
            later = regions[first]
            if first == k or not isinstance(later, Nest) or later.domain != nest.domain or len(later.body) >= _LONGEST:
                continue
            if not all(_fits(item, {s.makes: True}, set(), source) for item in users if where[id(item)] == first):
                continue
            kept_longer = [t for t in s.reads if t in place and t not in kept and last_read(t, s) < first]
            is_costly = first - k > _FAR and len(kept_longer) > 1
            if is_costly and costly >= _MANY:
                continue
            where[id(s)] = first
            mine = [token for token in s.reads if place.get(token) == k]
            stored = [is_stored(token) for token in mine]
            where[id(s)] = k
            if sum(stored) - sum(is_stored(token) for token in mine) > 1:
                continue
            costly += is_costly
            nest.body.remove(s)
            later.body.insert(0, s)
            place[s.makes] = where[id(s)] = first


# -- pieces ------------------------------------------------------------------------------------------------------------------


def divide_nests(regions: list[Region], views: dict[Variable, View]) -> list[Region]:
    """Divide large nests into pieces if their statements allow it, and return all regions.

    A reduction over the divided axis has a result for each piece; another nest combines these.
    """
    found: list[Region] = []
    for region in regions:
        found.append(region)
        if not isinstance(region, Nest) or math.prod(region.domain) < _LARGE:
            continue
        axis = next(a for a, n in enumerate(region.domain) if n > 1)
        across = [s for s in region.body if s.kind == "reduce" and axis in s.axes]
        others = [s for s in region.body if s.kind == "reduce" and axis not in s.axes]
        if any(isinstance(s.target, Indexed) for s in region.body) or any(s.out.size > _SMALL for s in across):
            continue
        if not all(_reduces_last_axes(s) for s in others):  # these start with a fill of all their memory
            continue
        region.pieces = _PIECES
        for s in across:
            found.append(_combination(s, views))
    return found


def _reduces_last_axes(s: Statement) -> bool:
    inside = [a in s.axes for a, n in enumerate(s.domain) if n > 1]
    return sorted(inside) == inside


def _combination(s: Statement, views: dict[Variable, View]) -> Nest:
    """Change a reduction to write one result per piece, and return the nest that combines these."""
    assert isinstance(s.target, View)
    out, shape = s.out, (_PIECES, *s.out.shape)
    parts = Variable(shape, out.dtype)
    memory = Buffer(parts.size, s.target.buffer.dtype, s.target.buffer.itemsize)
    views[parts] = View.whole(memory, shape)
    result = View(views[out].buffer, views[out].offset, shape, (0, *views[out].strides))
    combination = Statement("reduce", shape, s.op, (parts,), out, result, {parts}, out, (0,))
    s.target, s.out, s.makes, s.piece_stride = View(memory, 0, s.target.shape, s.target.strides), parts, parts, out.size
    return Nest(shape, [combination])


# -- memory ------------------------------------------------------------------------------------------------------------------


def plan_memory(
    regions: list[Region], views: dict[Variable, View], fixed: set[Buffer], outputs: list[Buffer]
) -> tuple[set[Variable], dict[Buffer, int], int]:
    """Plan the memory of regions.

    Parameters
    ----------
    regions : list of Region
    views : dict
        The memory of each variable.
    fixed : set of Buffer
        The memory of inputs and constants.
    outputs : list of Buffer

    Returns
    -------
    tuple
        The fields `stored`, `workspace` and `workspace_size` of `Lowered`.
    """
    spans: dict[Buffer, list[int]] = {}
    for k, region in enumerate(regions):
        for buffer in _touched(region, views):
            spans.setdefault(buffer, [k, k])[1] = k
    kept = {*fixed, *outputs}
    stored: set[Variable] = set()
    for k, region in enumerate(regions):
        for s in region.body if isinstance(region, Nest) else ():
            buffer = s.memory.buffer
            if s.kind == "assign" and (buffer in spans or buffer in kept):
                stored.add(s.out)
                span = spans.setdefault(buffer, [k, k])
                span[0], span[1] = min(span[0], k), max(span[1], k)
    places: dict[Buffer, int] = {}
    used: list[tuple[int, int, int]] = []  # a heap of the last regions that use parts of the workspace, and the parts
    gaps = _Gaps()
    size = 0
    for buffer, (first, last) in sorted(spans.items(), key=lambda item: item[1][0]):
        if buffer in kept:
            continue
        while used and used[0][0] < first:
            gaps.free(*heappop(used)[1:])
        length = -(-max(buffer.size, 1) * buffer.itemsize // ALIGNMENT) * ALIGNMENT
        places[buffer] = at = gaps.take(length)
        heappush(used, (last, at, at + length))
        size = max(size, at + length)
    return stored, places, size


class _Gaps:
    """The free parts of a workspace, in order; the last one has no end."""

    def __init__(self) -> None:
        self.begins: list[int] = [0]
        self.ends: list[float] = [math.inf]

    def take(self, length: int) -> int:
        """Return where a part of this length begins, in the first gap that is large enough."""
        place = next(k for k, begin in enumerate(self.begins) if self.ends[k] - begin >= length)
        at = self.begins[place]
        if self.ends[place] == at + length:
            del self.begins[place], self.ends[place]
        else:
            self.begins[place] += length
        return at

    def free(self, begin: int, end: int) -> None:
        """Add a part, and join it with the gaps beside it."""
        place = bisect(self.begins, begin)
        before, after = place > 0 and self.ends[place - 1] == begin, self.begins[place] == end
        if before and after:
            self.ends[place - 1] = self.ends[place]
            del self.begins[place], self.ends[place]
        elif before:
            self.ends[place - 1] = end
        elif after:
            self.begins[place] = begin
        else:
            self.begins.insert(place, begin)
            self.ends.insert(place, end)


def _touched(region: Region, views: dict[Variable, View]) -> Iterator[Buffer]:
    """Yield the buffers that a region reads and writes, except for results that it keeps in registers."""
    if isinstance(region, Product):
        yield from (region.a.buffer, region.b.buffer, region.target.buffer)
    elif isinstance(region, Check):
        yield region.key.buffer
    elif isinstance(region, Control):
        yield from (buffer for buffer, _ in region.places())
    else:
        own = {s.out for s in region.body if s.kind == "assign"}
        for s in region.body:
            if s.kind != "assign":
                yield s.memory.buffer
            for a in (*s.args, s.target):
                if isinstance(a, Indexed):
                    yield a.view.buffer
                    yield from (views[v].buffer for v, _, _ in a.indices)
                elif isinstance(a, Variable) and a not in own:
                    yield views[a].buffer
