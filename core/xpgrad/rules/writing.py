"""Writes as operations without side effects: their gradients split between the overwritten array and the written value.

`put` is ``x[key] = value``. `put_through` is a write into a view, expressed as an operation on the base of the view. A *chain* is the
sequence of view operations that make the view from its base, given as pairs of a row's name and its arguments.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._aliasing.cells import follow
from xpgrad._basics.keys import index_arrays, is_basic
from xpgrad._operations.declare import rule


def _zero_at(xp: Any, g: Any, key: Any) -> Any:
    """Overwrite a gradient with zeros at ``[key]``, and return it; a copy, if it is a scalar, as some libraries' results are."""
    return xp.written(g, key, 0) if g.__class__ is xp._backend.array_type else xp.put_zero(g, key)


def _zero_part(xp: Any, g: Any, chain: Any) -> Any:
    """Overwrite the part of a gradient that a chain selects with zeros, and return it; a copy, if the part is not in its memory."""
    backend = xp._backend
    if g.__class__ is backend.array_type:
        part = follow(g, chain, xp)
        if part.__class__ is backend.array_type and backend.may_alias(part, g):
            xp.written(part, (...,), 0)
            return g
    return xp.zero_through(g, chain)


@rule(
    lambda g, key, xp: xp.put_zero(g, key), lambda g, value_shape, key, xp: xp.sum_to(xp.take_written(g, key), value_shape),
    conj=False, node="CopySlices", fresh=True, reuse=_zero_at,
    kind="selection", dtype="same",
    spelled="x[key] = value",
)  # fmt: skip
def put(xp: Any, x: Any, value: Any, key: Any) -> Any:
    """Return a copy of `x` with ``[key]`` overwritten by `value`."""
    return xp.written(xp.copy(x), key, value)


@rule(lambda g, key, xp: xp.put_zero(g, key), conj=False, fresh=True)
def put_zero(xp: Any, x: Any, key: Any) -> Any:
    """Return a copy of `x` with zeros at ``[key]``."""
    return xp.written(xp.copy(x), key, 0)


def transpose_read(xp: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `g` added at ``[key]``: the transpose of reading."""
    return xp.index_basic_transpose(g, key, shape) if is_basic(key) else xp.scatter_add(g, key, shape)


def _is_one_mask(key: Any, xp: Any) -> bool:
    """Return whether a mask is the only array of a key: like a basic key, it names no element twice."""
    arrays = index_arrays(key)
    return len(arrays) == 1 and xp.isdtype(arrays[0].dtype, "bool")


def _transpose_read_written(xp: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return the transpose of `take_written` applied to `g`."""
    once = is_basic(key) or _is_one_mask(key, xp)
    return transpose_read(xp, g if once else xp.keep(xp.wins(g, key, shape), g), key, shape)


@rule(lambda g, x_shape, key, xp: _transpose_read_written(xp, g, key, x_shape), conj=False, fresh=True)
def take_written(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]``, but 0 where a later duplicate of the index overwrote the element: the gradient goes to the last write."""
    out = xp.read(x, key)
    if is_basic(key):
        return xp.copy(out)
    if _is_one_mask(key, xp):
        return out
    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))


@rule(None, conj=False)
def wins(xp: Any, x: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return whether each element of `x`, written at ``[key]`` into an array of `shape`, is the last one written to its place."""
    count = math.prod(x.shape)
    order = xp.reshape(xp.count_up(x, count), tuple(x.shape))
    nowhere = xp.zeros_near(order, shape)
    buffer = xp.copy(xp.subtract(nowhere, xp.ones_like(nowhere)))  # a copy: some backends freeze what is created
    return xp.equal(xp.read(xp.written(buffer, key, order), key), order)


@rule(
    lambda g, chain, xp: xp.zero_through(g, chain), lambda g, chain, xp: follow(g, chain, xp), conj=False, node="CopySlices",
    jvp=lambda: None, fresh=(True, False), reuse=_zero_part,
)  # fmt: skip
def put_through(xp: Any, x: Any, value: Any, chain: Any) -> Any:
    """Return `x`, in which `value` is already written to the part selected by a chain; this records only the history of that write."""
    return x


@rule(
    lambda g, chain, xp: xp.zero_through(g, chain), lambda g, chain, xp: follow(g, chain, xp), conj=False, node="CopySlices",
    fresh=(True, False), reuse=_zero_part,
)  # fmt: skip
def written_through(xp: Any, x: Any, value: Any, chain: Any) -> Any:
    """Return a copy of `x` in which the part selected by a chain is replaced by `value`."""
    return xp.put_at_path(x, chain, value)


@rule(lambda g, chain, xp: xp.zero_through(g, chain), conj=False, fresh=True)
def zero_through(xp: Any, x: Any, chain: Any) -> Any:
    """Return a copy of `x` with zeros in the part selected by a chain."""
    if {name for name, _ in chain} & {"real_part", "imag_part"}:
        return xp.put_at_path(x, chain, xp.zeros_like(follow(x, chain, xp)))
    if chain and chain[0][0] == "index_basic":
        (key,) = chain[0][1]
        part = xp.zero_through(xp.index_basic(x, key), chain[1:]) if chain[1:] else 0
        return xp.written(xp.copy(x), key, part)
    # Use positions, because applied to a gradient, whose layout differs from the base's, a chain need not give a view.
    count = math.prod(x.shape)
    places = follow(xp.reshape(xp.count_up(x, count), tuple(x.shape)), chain, xp)
    flat = xp.written(xp.copy(xp.reshape(x, (-1,))), (xp.reshape(places, (-1,)),), 0)
    return xp.reshape(flat, tuple(x.shape))
