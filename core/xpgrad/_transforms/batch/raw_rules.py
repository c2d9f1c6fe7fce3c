"""The rules of batches where a raw array holds the batch, and how the rows of an identity stay a band while nothing mixes them.

For backward passes of which nothing is recorded (`raw_pass`): a band is a vector in place of a matrix.
"""

from __future__ import annotations

from typing import Any

from xpgrad._rows.row import ROWS
from xpgrad._transforms.batch.rules import BatchRules, elementwise

__all__ = ["RawRules"]


class RawRules(BatchRules):
    """The same rules where a batch is held by a raw array: those of a backward pass of which nothing is recorded."""

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self.below = backend.inner.backend
        self.T = self.below.kernels
        operations = {name: self._operation(ROWS[name], name) for name in ("multiply", "divide", "negative", "add")}
        self._product, self._quotient, self._minus, self._sum = operations.values()
        wholes: dict[str, Any] = {}

        def when_first_used(name: str) -> Any:
            def rule(*operands: Any) -> Any:
                found = wholes.get(name)
                if found is None:
                    found = wholes[name] = (self._binary if len(operands) == 2 else self._elementwise)(operations[name])
                return found(*operands)

            return rule

        self._whole_product, self._whole_quotient, self._whole_negative, self._whole_sum = map(when_first_used, operations)

    def _shape(self, value: Any) -> Any:
        return value.shape

    def _static(self, value: Any) -> Any:
        return value

    def _held(self, array: Any) -> Any:
        return array

    def _scalar(self, value: Any, like: Any) -> Any:
        return self.raw(self.T.full_like(self.T.zeros_near(like.value, ()), value), None)

    def _count_up(self, size: int, like: Any) -> Any:
        return self.T.count_up(like, size)

    def _operation(self, row: Any, name: str) -> Any:
        return elementwise(row, name, self.T) if self.below.operators else getattr(self.T, name)

    # -- bands: vectors instead of matrices, as long as nothing mixes their rows ---------------------------------------------

    def _times(self, function: Any, whole: Any, x: Any, y: Any) -> Any:
        """`function` of a band and what all elements share, which has its shape or is a scalar; else `whole`, on whole arrays."""
        if x.__class__ is self.raw and x.band is not None:
            factor = y.value if y.__class__ is self.raw and y.level is None else y if y.__class__ is not self.raw else None
            if factor is not None:
                if y is factor or y.shape == ():
                    return self.raw.banded(function(x.band, factor), x.offset, x.level, x.shape)
                if y.shape == x.shape:
                    if len(x.shape) > 1:
                        factor = self.T.reshape_to(factor, (x.shape[0],))
                    return self.raw.banded(function(x.band, factor), x.offset, x.level, x.shape)
        return whole(x, y)

    def multiply(self, x: Any, y: Any) -> Any:
        if y.__class__ is self.raw and y.band is not None:
            x, y = y, x
        return self._times(self._product, self._whole_product, x, y)

    def divide(self, x: Any, y: Any) -> Any:
        return self._times(self._quotient, self._whole_quotient, x, y)

    def negative(self, x: Any) -> Any:
        return self._whole_negative(x) if x.band is None else self.raw.banded(self._minus(x.band), x.offset, x.level, x.shape)

    def add(self, x: Any, y: Any) -> Any:
        if x.__class__ is y.__class__ and x.band is not None and y.band is not None and (x.offset, x.shape) == (y.offset, y.shape):
            return self.raw.banded(self._sum(x.band, y.band), x.offset, x.level, x.shape)
        return self._whole_sum(x, y)

    def reshape_to(self, x: Any, shape: Any) -> Any:
        if x.band is not None and tuple(shape[:1]) == x.shape[:1] and all(n == 1 for n in shape[1:]):
            return self.raw.banded(x.band, x.offset, x.level, tuple(shape))
        return super().reshape_to(x, shape)

    def index_basic(self, x: Any, key: Any) -> Any:
        if x.band is not None and len(x.shape) == 1:
            part = _one_slice(key, x.shape)
            if part is not None:
                band = self.T.index_basic(x.band, (part,))
                return self.raw.banded(band, x.offset + part.start, x.level, tuple(band.shape))
        return super().index_basic(x, key)

    def index_basic_transpose(self, x: Any, key: Any, shape: Any) -> Any:
        if x.band is not None and len(x.shape) == 1 == len(shape):
            part = _one_slice(key, shape)
            if part is not None:
                band = self.T.index_basic_transpose(x.band, (part,), shape)
                return self.raw.banded(band, x.offset - part.start, x.level, tuple(shape))
        return super().index_basic_transpose(x, key, shape)

    def mat_vec(self, x1: Any, x2: Any) -> Any:
        if x1.level is None and x2.band is not None and x2.offset == 0 and x2.shape == (x2.level.size,):
            return self.raw(self._product(self.T.swap_last(x1.value), self.T.reshape_to(x2.band, (x2.level.size, 1))), x2.level)
        return super().mat_vec(x1, x2)

    def matmul_nd(self, x1: Any, x2: Any) -> Any:
        if x1.level is None and x2.band is not None and x2.offset == 0 and x2.shape == (x2.level.size, 1):
            rows = self._product(self.T.swap_last(x1.value), self.T.reshape_to(x2.band, x2.shape))
            return self.raw(self.T.reshape_to(rows, (x2.level.size, x1.shape[0], 1)), x2.level)
        return super().matmul_nd(x1, x2)

    # -- dtypes and memory ------------------------------------------------------------------------------------------------

    def to_dtype(self, x: Any, dtype: Any) -> Any:
        return self.raw(self.T.cast(x.value, dtype), x.level)

    def copy(self, x: Any) -> Any:
        return self.raw(self.T.copy(x.value), x.level)

    def clone_laid_out(self, x: Any, like: Any) -> Any:
        return self.copy(x)

    def zeros_near(self, x: Any, shape: Any) -> Any:
        return self.raw(self.T.zeros_near(x.value, tuple(shape)), None)

    def count_up(self, like: Any, *bounds: int) -> Any:
        return self.raw(self.T.count_up(like.value if like.__class__ is self.raw else like, *bounds), None)

    def zeros_like(self, x: Any, *, dtype: Any = None) -> Any:
        return self.zeros_near(x, x.shape)

    def ones_like(self, x: Any, *, dtype: Any = None) -> Any:
        return self.raw(self.T.ones_like(self.T.zeros_near(x.value, x.shape)), None)

    def full_like(self, x: Any, value: Any, *, dtype: Any = None) -> Any:
        return self.raw(self.T.full_like(self.T.zeros_near(x.value, x.shape), value), None)

    def check_phase(self, drift: Any, size: Any, name: str) -> None:
        self.T.check_phase(drift.value, size.value, name)

    def check_regular(self, x: Any) -> None:
        self.T.check_regular(x.value)


def _one_slice(key: Any, shape: Any) -> Any:
    """A key that is one slice without steps, within the axis and not empty; else None."""
    part: Any = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if part.__class__ is not slice or part.step not in (None, 1):
        return None
    start, stop, _ = part.indices(shape[0])
    return slice(start, stop) if stop > start else None
