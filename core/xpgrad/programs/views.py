"""Arrays as parts of memory: an offset, a shape and strides in a buffer. Views of views are computed here, and no memory is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xpgrad._basics.shapes import reshape_strides, row_major_strides

__all__ = ["Buffer", "View"]


class Buffer:
    """A piece of memory, of elements of one dtype.

    Parameters
    ----------
    size : int
        Number of elements.
    dtype : str
        Name of the dtype.
    itemsize : int
        Bytes of an element.
    is_paired : bool
        Whether the elements are the real and imaginary parts of complex numbers, in turns.
    """

    __slots__ = ("dtype", "is_paired", "itemsize", "size")

    dtype: str
    is_paired: bool
    itemsize: int
    size: int

    def __init__(self, size: int, dtype: str, itemsize: int, *, is_paired: bool = False) -> None:
        self.size, self.dtype, self.itemsize, self.is_paired = size, dtype, itemsize, is_paired


@dataclass(frozen=True, slots=True)
class View:
    """Some elements of a buffer, in the order of an array.

    Attributes
    ----------
    buffer : Buffer
    offset : int
        Position of the first element, in elements.
    shape : tuple of int
    strides : tuple of int
        Steps along the axes, in elements; negative for reversed axes, and 0 for repeated elements.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def whole(cls, buffer: Buffer, shape: tuple[int, ...]) -> View:
        """Return all of a buffer as an array in row-major order."""
        return cls(buffer, 0, shape, row_major_strides(shape))

    @property
    def is_dense(self) -> bool:
        """Whether the elements follow each other in memory, in row-major order."""
        return all(n == 1 or s == t for n, s, t in zip(self.shape, self.strides, row_major_strides(self.shape))) or 0 in self.shape

    @property
    def part(self) -> tuple[Buffer, int]:
        """The buffer, and 1 if the elements are imaginary parts in it: views in which this differs have no element in common."""
        return self.buffer, self.offset % 2 if self.buffer.is_paired else 0

    def expanded(self, shape: tuple[int, ...]) -> View:
        """Return the view broadcast to a shape."""
        extra = len(shape) - len(self.shape)
        steps = (0 if n == 1 else s for n, s in zip(self.shape, self.strides))
        return View(self.buffer, self.offset, shape, (0,) * extra + tuple(steps))

    def indexed(self, key: Any) -> View:
        """Select by a key of integers, slices, None and an ellipsis."""
        parts = list(key) if isinstance(key, tuple) else [key]
        missing = len(self.shape) - sum(p is not None and p is not Ellipsis for p in parts)
        place = next((i for i, p in enumerate(parts) if p is Ellipsis), None)
        if place is None:
            parts += [slice(None)] * missing
        else:
            parts[place : place + 1] = [slice(None)] * missing
        offset, shape, strides = self.offset, [], []
        axes = iter(zip(self.shape, self.strides))
        for p in parts:
            if p is None:
                shape.append(1)
                strides.append(0)
                continue
            n, s = next(axes)
            if isinstance(p, slice):
                places = range(n)[p]
                shape.append(len(places))
                strides.append(s * places.step)
                offset += places.start * s if places else 0
            else:
                offset += range(n)[p] * s
        return View(self.buffer, offset, tuple(shape), tuple(strides))

    def transposed(self, axes: Sequence[int]) -> View:
        """Permute the axes."""
        return View(self.buffer, self.offset, tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes))

    def reshaped(self, shape: tuple[int, ...]) -> View | None:
        """Return the same elements in row-major order with another shape; None if that needs a copy."""
        if self.is_dense:
            return View(self.buffer, self.offset, shape, row_major_strides(shape))
        strides = reshape_strides(self.shape, self.strides, shape)
        return None if strides is None else View(self.buffer, self.offset, shape, strides)
