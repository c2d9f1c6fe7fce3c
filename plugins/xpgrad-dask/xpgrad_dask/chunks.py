"""Shapes that remember how an array was divided into chunks, and the values of arrays that are already there."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from xpgrad.errors import CapabilityError

__all__ = ["ChunkedShape", "Unknown", "is_unknown", "known_values", "unknown_length", "visible_shape", "visible_size"]


def unknown_length(what: str) -> CapabilityError:
    """Return the error for what cannot be done along an axis whose length is not known yet."""
    return CapabilityError(
        f"{what} needs the length of an axis that is not known before its array is computed (its chunks came out of a boolean mask, or "
        "of `nonzero` or `unique_values`); call `x.array.compute_chunk_sizes()` first, which computes the lengths of a Tensor x, or use "
        "`xpgrad.where(mask, x, 0)`"
    )


class Unknown(float):
    """The length of an axis that is not known yet: a nan that refuses arithmetic."""

    def __new__(cls) -> Unknown:
        return super().__new__(cls, math.nan)

    what = "this gradient"

    def _refuse(self, *args: Any) -> NoReturn:
        raise unknown_length(self.what)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __index__ = __int__ = __bool__ = _refuse


class Length(Unknown):
    """An unknown length in the shape of a Tensor: one object, so that the shapes of a Tensor and its gradient are equal.

    Tuples compare their entries by identity first. Whether the lengths of two axes are equal is a different question, and is not answered.
    """

    what = "what was asked for"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Length):
            self._refuse()
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__


class Size(Length):
    """A number of elements that is unknown: neither more nor less than any."""

    def _no(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _no  # type: ignore[assignment]


_LENGTH: Any = Length()
_SIZE: Any = Size()


def is_unknown(n: Any) -> bool:
    """Return whether a length is not known."""
    return isinstance(n, float) and math.isnan(n)


def visible_shape(x: Any) -> tuple[int, ...]:
    """Return the shape of a dask array as its Tensor shows it: nan for unknown lengths, which refuses arithmetic."""
    return tuple(_LENGTH if is_unknown(n) else n for n in x.shape)


def visible_size(x: Any) -> int:
    """Return the number of elements of a dask array as its Tensor shows it."""
    return _SIZE if any(is_unknown(n) for n in x.shape) else math.prod(x.shape)


class ChunkedShape(tuple[int, ...]):
    """A shape with the chunks of the array that it was taken from; with the (lazy) array itself where a length is unknown."""

    chunks: tuple[tuple[int, ...], ...]
    like: Any

    @classmethod
    def of(cls, x: Any) -> ChunkedShape:
        """Return the shape of a dask array."""
        lengths = x.shape
        unknown = [is_unknown(n) for n in lengths]
        entries: Any = [Unknown() if u else n for n, u in zip(lengths, unknown)]
        out = cls(entries)
        out.chunks = x.chunks
        out.like = x if True in unknown else None
        return out


def known_values(x: Any) -> Any:
    """The values of a dask array whose chunks are in memory (it was made from data, or persisted); None if one has yet to be computed."""
    if any(is_unknown(n) for n in x.shape):
        return None
    layers = list(x.dask.layers.values())
    if len(layers) != 1 or not layers[0].is_materialized():  # looking into another would cost the making of all its tasks
        return None
    blocks: list[Any] = [None] * math.prod(x.numblocks)
    for k, key in enumerate(_flat(x.__dask_keys__())):
        block = layers[0].get(key)
        block = getattr(block, "value", block)  # a DataNode holds its value
        if not isinstance(block, (np.ndarray, np.generic)):
            return None
        blocks[k] = block
    if len(blocks) == 1:
        return np.asarray(blocks[0])
    out = np.empty(x.shape, x.dtype)
    ends = [np.cumsum(c) for c in x.chunks]
    for place, block in zip(np.ndindex(*x.numblocks), blocks):
        out[tuple(slice(int(e[i]) - c[i], int(e[i])) for i, e, c in zip(place, ends, x.chunks))] = block
    return out


def _flat(keys: Any) -> Any:
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key
