"""What ``x[key] = value`` is as an operation without side effects: `put`, and how its gradient splits between `x` and `value`."""

from __future__ import annotations

from typing import Any

from xpgrad._row import rule


@rule(
    lambda g, key, xp: xp.put_zero(g, key), lambda g, value_shape, key, xp: xp.sum_to(xp.take_written(g, key), value_shape),
    conj=False, node="CopySlices",
)  # fmt: skip
def put(xp: Any, x: Any, value: Any, key: Any) -> Any:
    """A copy of `x` with ``[key]`` overwritten by `value`."""
    return xp.written(xp.copy(x), key, value)


@rule(lambda g, key, xp: xp.put_zero(g, key), conj=False, fresh=True)
def put_zero(xp: Any, x: Any, key: Any) -> Any:
    """A copy of `x` with zeros at ``[key]``."""
    return xp.written(xp.copy(x), key, 0)


@rule(lambda g, x_shape, key, xp: xp.scatter_add(xp.keep(xp.wins(g, key, x_shape), g), key, x_shape), conj=False, fresh=True)
def take_written(xp: Any, x: Any, key: Any) -> Any:
    """``x[key]``, but 0 where a later duplicate of the index overwrote: the gradient goes to the write that won."""
    out = xp.read(x, key)
    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))


@rule(None, conj=False)
def wins(xp: Any, x: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """For each element of `x`, written at ``[key]`` into an array of `shape`: whether it is the last one written to its place."""
    count = 1
    for n in x.shape:
        count *= n
    order = xp.reshape(xp.count_up(x, count), tuple(x.shape))
    buffer = xp.copy(xp.full(shape, -1, dtype=order.dtype, device=x.device))  # its own: some backends freeze what is created
    return xp.read(xp.written(buffer, key, order), key) == order
