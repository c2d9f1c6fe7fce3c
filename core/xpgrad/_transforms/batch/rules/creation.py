"""Dtypes, copies, and arrays that all elements share."""

from __future__ import annotations

from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad._transforms.batch.rulebook import Rulebook, batched


@batched
def to_dtype(book: Rulebook, x: Any, dtype: Any) -> Any:
    value = x.value
    if not isinstance(dtype, DType):  # happens for a shared Tensor whose tangent or gradient is batched
        dtype = book.backend.inner.backend.dtype_of(dtype)
    if x.dtype.is_complex and not dtype.is_complex and dtype.name != "bool":
        value = book.xp.real(value)
    return book.raw(value._cast(dtype), x.level)


@batched
def cast(book: Rulebook, x: Any, dtype: Any) -> Any:
    return book.kernels.to_dtype(x, dtype)


@batched
def astype(book: Rulebook, x: Any, dtype: Any, *, copy: bool = True) -> Any:
    return book.kernels.to_dtype(x, dtype)


@batched
def asarray(book: Rulebook, value: Any, dtype: Any = None, copy: bool | None = None, device: Any = None) -> Any:
    return value if value.__class__ is book.raw else book.raw(book.backend.inner.scalar(value, dtype), None)


@batched
def copy(book: Rulebook, x: Any) -> Any:
    return book.raw(book.xp.clone(x.value), x.level)


@batched
def clone_laid_out(book: Rulebook, x: Any, like: Any) -> Any:
    return book.kernels.copy(x)


@batched
def isdtype(book: Rulebook, dtype: Any, kind: Any) -> bool:
    return bool(book.xp.isdtype(dtype, kind))


@batched
def finfo(book: Rulebook, dtype: Any) -> Any:
    return book.xp.finfo(dtype)


def _creation_rule(book: Rulebook, name: str, *args: Any, dtype: Any = None) -> Any:
    inner = book.backend.inner
    return book.raw(inner.lift(getattr(book.xp, name)(*args, dtype=dtype, device=inner.device)), None)


@batched
def zeros(book: Rulebook, shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return _creation_rule(book, "zeros", shape, dtype=dtype)


@batched
def arange(book: Rulebook, *bounds: Any, dtype: Any = None, device: Any = None) -> Any:
    return _creation_rule(book, "arange", *bounds, dtype=dtype)


@batched
def zeros_like(book: Rulebook, x: Any, *, dtype: Any = None) -> Any:
    return _creation_rule(book, "zeros", x.shape, dtype=dtype or x.dtype)


@batched
def ones_like(book: Rulebook, x: Any, *, dtype: Any = None) -> Any:
    return _creation_rule(book, "ones", x.shape, dtype=dtype or x.dtype)


@batched
def full_like(book: Rulebook, x: Any, value: Any, *, dtype: Any = None) -> Any:
    return _creation_rule(book, "full", x.shape, value, dtype=dtype or x.dtype)
