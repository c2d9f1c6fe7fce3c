"""Shapes that carry the chunks of an array, unknown lengths, and the values of arrays that need no computation."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from xpgrad.errors import CapabilityError

__all__ = ["ChunkedShape", "Unknown", "is_unknown", "known_values", "unknown_length", "visible_shape", "visible_size"]


def unknown_length(what: str) -> CapabilityError:
    """Return the error for an operation, `what`, that needs the length of an axis that is not known yet."""
    return CapabilityError(
        f"{what} needs the length of an axis that is not known before its array is computed (its chunks came out of a boolean mask, or "
        "of `nonzero` or `unique_values`); call `x.array.compute_chunk_sizes()` first, which computes the lengths of a Tensor x, or use "
        "`xpgrad.where(mask, x, 0)`"
    )


class Unknown(float):
    """The length of an axis that is not known yet: a nan whose arithmetic and comparisons raise `CapabilityError`."""

    def __new__(cls) -> Unknown:
        return super().__new__(cls, math.nan)

    what = "this gradient"

    def _refuse(self, *args: Any) -> NoReturn:
        raise unknown_length(self.what)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __index__ = __int__ = __bool__ = _refuse


class Length(Unknown):
    """An unknown length in the shape of a Tensor. It has one instance, so that the shapes of a Tensor and its gradient are equal.

    Tuples compare their entries by identity first, so equal shapes do not mean that two unknown lengths are equal. Comparing two lengths
    with ``==`` raises `CapabilityError`.
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
    """An unknown number of elements: every comparison with another number is False."""

    def _no(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _no  # type: ignore[assignment]


_LENGTH: Any = Length()
_SIZE: Any = Size()


def is_unknown(n: Any) -> bool:
    """Return whether a length is unknown (nan)."""
    return isinstance(n, float) and math.isnan(n)


def visible_shape(x: Any) -> tuple[int, ...]:
    """Return the shape of a dask array for users, with the nan that raises on arithmetic for each unknown length."""
    return tuple(_LENGTH if is_unknown(n) else n for n in x.shape)


def visible_size(x: Any) -> int:
    """Return the number of elements of a dask array for users; the nan of `Size` if a length is unknown."""
    return _SIZE if any(is_unknown(n) for n in x.shape) else math.prod(x.shape)


class ChunkedShape(tuple[int, ...]):
    """A shape that carries the chunks of its array.

    Attributes
    ----------
    chunks : tuple of tuple of int
        The lengths of the chunks along each axis.
    like : dask.array.Array or None
        The array itself if one of its lengths is unknown, else None.
    """

    chunks: tuple[tuple[int, ...], ...]
    like: Any

    @classmethod
    def of(cls, x: Any) -> ChunkedShape:
        """Return the shape of a dask array with its chunks."""
        lengths = x.shape
        unknown = [is_unknown(n) for n in lengths]
        entries: Any = [Unknown() if u else n for n, u in zip(lengths, unknown)]
        out = cls(entries)
        out.chunks = x.chunks
        out.like = x if True in unknown else None
        return out


def known_values(x: Any) -> Any:
    """Return the values of a dask array whose chunks are in memory because it was made from data, or persisted; else None."""
    if any(is_unknown(n) for n in x.shape):
        return None
    layers = list(x.dask.layers.values())
    if len(layers) != 1 or not layers[0].is_materialized():  # looking into another layer would create all of its tasks
        return None
    blocks: list[Any] = [None] * math.prod(x.numblocks)
    for k, key in enumerate(_flatten_keys(x.__dask_keys__())):
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


def _flatten_keys(keys: Any) -> Any:
    """Yield the keys of nested lists."""
    for key in keys:
        if isinstance(key, list):
            yield from _flatten_keys(key)
        else:
            yield key
