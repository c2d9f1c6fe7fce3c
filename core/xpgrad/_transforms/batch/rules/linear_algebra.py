"""Matrix products, computed as a single product for the whole batch if possible, and the extension `linalg`."""

from __future__ import annotations

from typing import Any

from xpgrad._transforms.batch.rulebook import Rulebook, batched, made


@batched
def matmul_nd(book: Rulebook, x1: Any, x2: Any) -> Any:
    level = book.level(x1, x2)
    a, b = x1.value, x2.value
    if level is None:
        return book.raw(book.xp.matmul_nd(a, b), None)
    if x2.level is None:  # one product of matrices for the whole batch
        rows = book.xp.reshape_to(a, (level.size * x1.shape[0], x1.shape[1]))
        return book.raw(book.xp.reshape_to(book.xp.matmul_nd(rows, b), (level.size, x1.shape[0], x2.shape[1])), level)
    if x1.level is None and x2.shape[1] == 1:
        columns = book.xp.reshape_to(b, (level.size, x2.shape[0]))
        out = book.xp.matmul_nd(columns, book.xp.swap_last(a))
        return book.raw(book.xp.reshape_to(out, (level.size, x1.shape[0], 1)), level)
    return book.raw(book.xp.batched_matmul(a, b), level)


@batched
def mat_vec(book: Rulebook, x1: Any, x2: Any) -> Any:
    level = book.level(x1, x2)
    a, b = x1.value, x2.value
    if level is None:
        return book.raw(book.xp.mat_vec(a, b), None)
    rows = x1.shape[0]
    if x1.level is None:  # one product of matrices for the whole batch
        return book.raw(book.xp.matmul_nd(b, book.xp.swap_last(a)), level)
    if x2.level is None:
        out = book.xp.mat_vec(book.xp.reshape_to(a, (level.size * rows, x1.shape[1])), b)
    else:
        out = book.xp.batched_matmul(a, book.xp.reshape_to(b, (level.size, x2.shape[0], 1)))
    return book.raw(book.xp.reshape_to(out, (level.size, rows)), level)


@batched
def inner_product(book: Rulebook, x1: Any, x2: Any) -> Any:
    level = book.level(x1, x2)
    a, b = x1.value, x2.value
    if level is None:
        return book.raw(book.xp.inner_product(a, b), None)
    if x1.level is None or x2.level is None:
        return book.raw(book.xp.mat_vec(a, b) if x2.level is None else book.xp.mat_vec(b, a), level)
    return book.raw(book.xp.reduce_sum(book.xp.multiply(a, b), (1,), False), level)


@batched
def matmul(book: Rulebook, x1: Any, x2: Any) -> Any:
    rank = max(len(x1.shape), len(x2.shape))
    if len(x1.shape) == len(x2.shape) == 2:
        return book.kernels.matmul_nd(x1, x2)
    return book.raw(book.xp.matmul(book.pad(x1, rank), book.pad(x2, rank)), book.level(x1, x2))


@batched
def pseudoinverse(book: Rulebook, x: Any, rtol: Any) -> Any:
    if rtol.__class__ is book.raw:
        level = book.level(x, rtol)
        if level is None:
            return book.raw(book.xp.pseudoinverse(x.value, book.static(rtol.value)), None)
        return book.raw(book.xp.pseudoinverse(book.broadcast_batch(x, level), book.static(book.broadcast_batch(rtol, level))), level)
    return book.raw(book.xp.pseudoinverse(x.value, rtol), x.level)


@batched
def check_phase(book: Rulebook, drift: Any, size: Any, name: str) -> None:
    book.xp.check_phase(drift.value, size.value, name)


@batched
def check_regular(book: Rulebook, x: Any) -> None:
    book.xp.check_regular(x.value)


class Linalg:
    """The functions of the linear algebra extension: they take stacks of matrices, so they apply to a batch directly."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book

    def __getattr__(self, name: str) -> Any:
        book = self._book
        function = getattr(book.xp.linalg, name)

        def rule(*arrays: Any, **options: Any) -> Any:
            rank = max(len(a.shape) for a in arrays)
            if "axis" in options:
                options["axis"] = book.axes(arrays[0], options["axis"])
            return book.wrap(function(*[book.pad(a, rank) for a in arrays], **options), book.level(*arrays))

        setattr(self, name, rule)
        return rule


@made
def linalg(book: Rulebook) -> Any:
    return Linalg(book)
