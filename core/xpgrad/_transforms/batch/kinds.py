"""The general rules, derived from rows: for elementwise operations, and for those that treat a stack like a single array (`Row.batch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._transforms.batch.array import escaped_error

if TYPE_CHECKING:
    from xpgrad._transforms.batch.rulebook import Rulebook


def elementwise(book: Rulebook, function: Any) -> Any:
    """Return the rule of an operation whose operands broadcast and may be Python scalars."""
    raw_class = book.raw

    def rule(*operands: Any) -> Any:
        level, rank, uneven = None, -1, False
        for o in operands:
            if o.__class__ is raw_class:
                n = len(o.shape)
                if n != rank:
                    uneven = rank >= 0
                    rank = max(n, rank)
                if o.level is not None:
                    if level is None:
                        level = o.level
                    elif level is not o.level:
                        raise escaped_error()
        if uneven:
            values = [book.pad(o, rank) if o.__class__ is raw_class else o for o in operands]
        else:
            values = [o.value if o.__class__ is raw_class else o for o in operands]
        return raw_class(function(*values), level)

    return rule


def pairwise(book: Rulebook, function: Any) -> Any:
    """Return the rule of an elementwise operation with two operands.

    It is faster than `elementwise` if their elements have the same number of axes, or if one operand is a scalar.
    """
    raw_class, general = book.raw, elementwise(book, function)

    def rule(x: Any, y: Any) -> Any:
        if x.__class__ is not raw_class:
            return raw_class(function(x, y.value), y.level)
        if y.__class__ is not raw_class:
            return raw_class(function(x.value, y), x.level)
        level = x.level
        if len(x.shape) != len(y.shape) or (level is not y.level and level is not None and y.level is not None):
            return general(x, y)
        return raw_class(function(x.value, y.value), y.level if level is None else level)

    return rule


def stack_rule(book: Rulebook, row: Any) -> Any:
    """Return the rule of an operation that treats the first axis of a batch as one more axis of a stack.

    The name of a static argument tells its meaning: ``axis`` and ``axes`` (None for all) count the axes of an element, or of ``shape``,
    which is the shape of an element, if there is such an argument.
    """
    function = getattr(book.xp, row.name)
    count, broadcasts = len(row.tensors), row.batch == "broadcast"
    lengths = [i for i, name in enumerate(row.statics) if name == "shape"]
    places = [i for i, name in enumerate(row.statics) if name in ("axis", "axes")]

    def shifted(statics: tuple[Any, ...], rank: int, level: Any) -> Any:
        if level is None:
            return statics
        out = list(statics)
        for i in lengths:
            rank = len(out[i])
            out[i] = (level.size, *out[i])
        for i in places:
            out[i] = _behind(out[i], rank)
        return out

    def of_one(x: Any, *statics: Any) -> Any:
        level = x.level
        return book.wrap(function(x.value, *shifted(statics, len(x.shape), level)), level)

    def of_one_unshifted(x: Any, *statics: Any) -> Any:
        return book.wrap(function(x.value, *statics), x.level)

    def of_list(xs: Any, *statics: Any) -> Any:
        level = book.level(*xs)
        values = [x.value if level is None else book.broadcast_batch(x, level) for x in xs]
        return book.wrap(function(values, *shifted(statics, len(xs[0].shape), level)), level)

    def of_several(*given: Any) -> Any:
        xs = given[:count]
        level, rank = book.level(*xs), max(len(x.shape) for x in xs)
        if broadcasts or level is None:
            values = [book.pad(x, rank) for x in xs]
        else:
            values = [book.broadcast_batch(x, level) for x in xs]
        return book.wrap(function(*values, *shifted(given[count:], rank, level)), level)

    if row.varargs:
        return of_list
    if count > 1:
        return of_several
    return of_one if lengths or places else of_one_unshifted


def _behind(axes: Any, rank: int) -> Any:
    """Shift axes of arrays with `rank` axes by the batch axis; axes counted from the end stay unchanged."""
    if axes is None:
        return tuple(range(1, rank + 1))
    if isinstance(axes, int):
        return axes + 1 if axes >= 0 else axes
    return tuple(a + 1 if a >= 0 else a for a in axes)
