"""Law: values whose conversion would lose information raise, as in NumPy or PyTorch, and the error says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

MASKED = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
COMPLEX: list[Any] = [
    1j, [1j], [[1.0], [1j]], (1j, 2), np.complex128(1j), np.complex64(1j), [np.complex64(1j)], np.asarray([1j]), [np.asarray([1j])],
    np.asarray([1j], dtype=np.complex64),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("data", COMPLEX, ids=repr)
def test_complex_numbers_do_not_become_real_ones(data: Any, dtype: str, xpgrad_device: str) -> None:
    for make in (xp.asarray, xp.tensor):
        with pytest.raises(TypeError, match=r"would drop its imaginary parts; write `xpgrad\.real"):
            make(data, dtype=dtype, device=xpgrad_device)
        assert make(data, dtype="bool", device=xpgrad_device).numpy().any()
        assert make(data, dtype="complex128", device=xpgrad_device).dtype is xp.complex128
    z = xp.asarray(data, device=xpgrad_device)
    if dtype.startswith("float"):
        for cast in (xp.astype, lambda z, dtype: xp.asarray(z, dtype=dtype)):
            with pytest.warns(UserWarning, match="discards the imaginary part"):  # a cast warns, as PyTorch's and NumPy's do (CPX-06)
                assert cast(z, dtype).dtype is getattr(xp, dtype)


def test_numbers_that_a_dtype_cannot_hold_do_not_fill_it(xpgrad_device: str) -> None:
    x = xp.ones(2, device=xpgrad_device)
    for dtype in ("float64", "int64"):
        with pytest.raises(TypeError, match=r"`fill_value`=1j is complex"):
            xp.full(2, 1j, dtype=dtype, device=xpgrad_device)
    with pytest.raises(TypeError, match="complex"):
        xp.full_like(x, 1j)
    with pytest.raises(OverflowError, match="does not fit in dtype int8, which holds -128 to 127"):
        xp.full(2, 128, dtype="int8", device=xpgrad_device)
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="is not finite"):
            xp.full(2, value, dtype="int64", device=xpgrad_device)
    assert xp.full(2, -128, dtype="int8", device=xpgrad_device).tolist() == [-128, -128]
    assert xp.full(2, 2**64 - 1, dtype="uint64", device=xpgrad_device).tolist() == [2**64 - 1] * 2
    assert xp.full(2, 1j, dtype="bool", device=xpgrad_device).tolist() == [True, True]
    with pytest.raises(OverflowError, match="too large for dtype int8"):
        xp.asarray([300], dtype="int8", device=xpgrad_device)


MASKED_CALLS: list[Callable[[Any], Any]] = [
    lambda m: xp.asarray(m), lambda m: xp.asarray(m, copy=True), lambda m: xp.asarray(m, dtype="float32"), lambda m: xp.tensor(m),
    lambda m: xp.tensor(m, dtype="int64"), lambda m: xp.tensor([m, m]), lambda m: xp.asarray(m, device="numpy+readonly"),
    lambda m: xp.asarray(m, device="strict"), lambda m: xp.from_dlpack(m), lambda m: xp.take(xp.ones(3), m),
]  # fmt: skip


@pytest.mark.parametrize("call", MASKED_CALLS)
def test_masks_are_not_dropped(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"masked array.*`x\.filled\(value\)`"):
        call(MASKED)
    assert xp.asarray(MASKED.filled(0.0)).tolist() == [1.0, 0.0, 3.0]


def test_masks_are_bools(xpgrad_device: str) -> None:
    for dtype in ("float64", "int64", "uint8"):
        x = xp.zeros(3, device=xpgrad_device)
        with pytest.raises(RuntimeError, match="only supports boolean masks"):
            x.masked_fill_(xp.ones(3, dtype=dtype, device=xpgrad_device), 1.0)
        assert x.tolist() == [0.0] * 3
    x = xp.zeros(2, device=xpgrad_device)
    with pytest.raises(RuntimeError, match="0-dimensional value"):
        x.masked_fill_(x == 0, xp.ones(2, device=xpgrad_device))
    assert x.masked_fill_(xp.asarray([True, False], device=xpgrad_device), xp.tensor(2.0, device=xpgrad_device)).tolist() == [2.0, 0.0]


X = np.ones((2, 3))
NOT_INTS: list[Callable[[Any, Any], Any]] = [
    lambda x, n: xp.sum(x, axis=n), lambda x, n: xp.argmax(x, axis=n), lambda x, n: xp.cumulative_sum(x, axis=n),
    lambda x, n: xp.roll(x, n), lambda x, n: xp.roll(x, (n,), axis=(0,)), lambda x, n: xp.roll(x, 1, axis=n),
    lambda x, n: xp.reshape(x, (n, 6)), lambda x, n: xp.zeros(n), lambda x, n: xp.zeros((n, 2)), lambda x, n: xp.eye(n),
    lambda x, n: xp.permute_dims(x, (n, 0)), lambda x, n: xp.repeat(x, n), lambda x, n: xp.tile(x, n),
    lambda x, n: xp.expand_dims(x, axis=n),
    lambda x, n: xp.linspace(0, 1, n), lambda x, n: xp.tril(x, k=n), lambda x, n: xp.diff(x, n=n), lambda x, n: x.transpose(n, 0),
    lambda x, n: xp.tensordot(x, x, axes=n), lambda x, n: xp.vecdot(x, x, axis=n), lambda x, n: x.view(n, 6), lambda x, n: x.stride(n),
]  # fmt: skip


@pytest.mark.parametrize("call", NOT_INTS)
def test_neither_floats_nor_bools_are_ints(call: Callable[[Any, Any], Any]) -> None:
    for n in (1.0, 1.5, True, np.float64(1), np.True_, "1"):
        with pytest.raises(TypeError, match="must be an int"):
            call(xp.asarray(X), n)


def test_integers_of_other_types_are_ints() -> None:
    x = xp.asarray(X)
    for one in (np.int64(1), np.uint8(1), np.asarray(1), xp.asarray(1)):
        assert xp.sum(x, axis=one).shape == (2,)
        assert xp.roll(x, one, axis=one).shape == (2, 3)
        assert xp.reshape(x, (one, 6)).shape == (1, 6)
        assert xp.zeros(one).shape == (1,)


ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda v: xp.searchsorted(v + 1j, v), TypeError, "order"),
    (lambda v: xp.searchsorted(v, v * 1j), TypeError, "order"),
    (lambda v: xp.searchsorted(v, v, sorter=v), TypeError, "`sorter` must hold integers"),
    (lambda v: xp.searchsorted(v, v, sorter=xp.asarray([0, 1])), ValueError, "`sorter` must hold integers in the shape"),
    (lambda v: xp.func.vmap(lambda k: v[k])(v), IndexError, "must hold integers or bools, but got dtype float64"),
    (lambda v: xp.func.vmap(lambda k: xp.take(v, k))(v), IndexError, "must hold integers or bools"),
    (lambda v: xp.matmul(v, [1.0, 2.0, 3.0]), TypeError, "`matmul` needs a Tensor, but got builtins.list"),
    (lambda v: v.matmul([1.0, 2.0, 3.0]), TypeError, "`matmul` needs a Tensor"),
    (lambda v: v @ [1.0, 2.0, 3.0], TypeError, "unsupported operand"),
    (lambda v: [1.0, 2.0, 3.0] @ v, TypeError, "`matmul` needs a Tensor"),
    (lambda v: xp.matmul(v, v[0]), ValueError, "at least one axis, but got a 0-d Tensor"),
    (lambda v: xp.matmul(v[0], v), ValueError, "at least one axis, but got a 0-d Tensor"),
    (lambda v: v @ v[0], ValueError, "at least one axis"),
    (lambda v: xp.flip([1, 2]), TypeError, "`flip` needs a Tensor, but got builtins.list"),
    (lambda v: v.flip([1, 2]), IndexError, "axis 1 is out of range"),
    (lambda v: xp.func.vmap(lambda x: xp.matmul(x, x))(v), ValueError, "at least one axis"),
]


@pytest.mark.parametrize(("call", "error", "phrase"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], phrase: str) -> None:
    with pytest.raises(error, match=phrase):
        call(xp.asarray([1.0, 2.0, 3.0]))
