"""`numpy.nditer` in code that was written for NumPy: iteration over the elements of Tensors, which may be written to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from xpgrad._numpy.semantics import first_tensor
from xpgrad._numpy.table import FUNCTIONS, LIKE
from xpgrad._tensor.tensor import Tensor

__all__ = ["iterate"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]
_FLAGS = frozenset(("multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok"))
_OPERAND_FLAGS = frozenset(("readonly", "readwrite", "writeonly", "allocate", "no_broadcast", "aligned", "contig", "nbo", "copy"))
_WRITING = frozenset(("readwrite", "writeonly"))


def iterate(op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: str = "K", casting: str = "safe",
            **options: Any) -> Any:  # fmt: skip
    """Stand in for `numpy.nditer`.

    Raises
    ------
    TypeError
        For a flag or an option that is not supported with Tensors, and for elements whose order in memory is another one than that of rows.
    ValueError
        If operands do not broadcast, or one that is written would have to.
    """
    if first_tensor(op) is None:
        given = {"flags": flags, "op_flags": op_flags, "op_dtypes": op_dtypes}
        return _np.nditer(op, order=order, casting=casting, **{k: x for k, x in given.items() if x is not None}, **options)
    several = isinstance(op, (list, tuple))
    operands, flags = (list(op) if several else [op]), tuple(flags or ())
    each = list(op_flags or [])
    if each and isinstance(each[0], str):
        each = [each] * len(operands)
    each = each or [["readonly"] if x is not None else ["writeonly", "allocate"] for x in operands]
    unknown = [*(f for f in flags if f not in _FLAGS), *(f for part in each for f in part if f not in _OPERAND_FLAGS)]
    unknown += [k for k, x in {"op_dtypes": op_dtypes, **options}.items() if x is not None]
    if unknown or order not in ("K", "C", "A", "F"):
        what = repr(unknown[0]) if unknown else f"order={order!r}"
        msg = f"np.nditer has no {what} in xpgrad with Tensors; use loops over `np.ndindex(x.shape)`, or functions of whole arrays"
        raise TypeError(msg)
    return _Elements(operands, flags, [not _WRITING.isdisjoint(part) for part in each], order)


def _check_order(x: Any) -> None:
    try:
        FUNCTIONS["ravel"].call(x, "K")
    except TypeError:
        msg = "np.nditer: the elements are in another order in memory, in which NumPy would visit them, than in rows; give `order='C'`"
        raise TypeError(msg) from None


class _Elements:
    """What stands for an object of the class `numpy.nditer`."""

    def __init__(self, operands: list[Any], flags: tuple[str, ...], written: list[bool], order: str) -> None:
        like = first_tensor(operands)
        given = [x if x is None or isinstance(x, Tensor) else LIKE["asarray"](like, x) for x in operands]
        self.shape = _np.broadcast_shapes(*(tuple(x.shape) for x in given if x is not None))
        if order != "C" and order != "F":
            for x in given:
                if x is not None:
                    _check_order(x)
        for x, writes in zip(given, written):
            if writes and x is not None and tuple(x.shape) != self.shape:
                msg = f"np.nditer: an operand of shape {tuple(x.shape)} that is written cannot be broadcast to {self.shape}"
                raise ValueError(msg)
        made = [FUNCTIONS["zeros_like"].call(like, shape=self.shape) if x is None else x for x in given]
        self.operands = tuple(made)
        self._parts = [x if tuple(x.shape) == self.shape else FUNCTIONS["broadcast_to"].call(x, self.shape) for x in made]
        self._written, self._flags = written, flags
        self.ndim, self.nop, self.itersize = len(self.shape), len(made), int(_np.prod(self.shape))
        self._places = list(_np.ndindex(self.shape))
        if order == "F":
            self._places = [place[::-1] for place in _np.ndindex(self.shape[::-1])]
        self.reset()

    def reset(self) -> None:
        self.iterindex = 0

    @property
    def finished(self) -> bool:
        return self.iterindex >= self.itersize

    @property
    def multi_index(self) -> tuple[int, ...]:
        if "multi_index" not in self._flags:
            msg = "Iterator is not tracking a multi-index"
            raise ValueError(msg)
        place: tuple[int, ...] = self._places[self.iterindex]
        return place

    @property
    def index(self) -> int:
        order = "F" if "f_index" in self._flags else "C"
        return int(_np.ravel_multi_index(self._places[self.iterindex], self.shape, order=order)) if self.ndim else 0

    @property
    def value(self) -> Any:
        return tuple(map(self.__getitem__, range(self.nop))) if self.nop > 1 else self[0]

    def iternext(self) -> bool:
        self.iterindex += 1
        return not self.finished

    def __len__(self) -> int:
        return self.nop

    def __getitem__(self, k: int) -> Any:
        return self._parts[k][(*self._places[self.iterindex], ...)]  # a view without axes, which can be written to

    def __setitem__(self, k: int, value: Any) -> None:
        if not self._written[k]:
            msg = f"Iterator operand {k} is not writeable"
            raise ValueError(msg)
        self._parts[k][self._places[self.iterindex]] = value

    def __iter__(self) -> Iterator[Any]:
        while not self.finished:
            yield self.value
            self.iterindex += 1

    def __enter__(self) -> _Elements:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: writes are not delayed."""
