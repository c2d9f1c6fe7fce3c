"""Group X: calls that functions refuse, and operands that are unchanged afterwards."""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts import x_arguments

Call = Callable[[Any, Any], Any]


def operands(lib: Any) -> SimpleNamespace:
    """Return operands: a matrix, a row, a number, an empty array, a square, a stack, integers, booleans and complex numbers."""
    return SimpleNamespace(
        x=lib.tensor([[0.4, -1.3, 0.9], [1.7, 0.6, -0.7]]),
        v=lib.tensor([0.8, 1.4, 0.5]),
        s=lib.tensor(1.5),
        e=lib.tensor(np.zeros((0, 3))),
        q=lib.tensor([[2.0, 0.5], [0.3, 1.5]]),
        st=lib.tensor(np.ones((2, 1, 3))),
        n=lib.indices([[0, 1, 1], [1, 0, 1]]),
        i=lib.indices([1, 0]),
        b=lib.constant([True, False, True], "bool"),
        c=lib.tensor([[0.4j, -1.3, 0.9], [1.7, 0.6, -0.7j]], True, lib.complex) if lib.capabilities["complex"] else None,
    )


#: Arguments of the wrong type, by the function that the message must name.
WRONG_TYPES: dict[str, Call] = {
    "sum, axis": lambda lib, t: lib.xp.sum(t.x, axis="0"),
    "sum, keepdims": lambda lib, t: lib.xp.sum(t.x, axis=0, keepdims="no"),
    "mean, keepdims": lambda lib, t: lib.xp.mean(t.x, axis=0, keepdims=2),
    "prod, keepdims": lambda lib, t: lib.xp.prod(t.x, axis=0, keepdims=None),
    "max, keepdims": lambda lib, t: lib.xp.max(t.x, axis=0, keepdims=[]),
    "min, axis": lambda lib, t: lib.xp.min(t.x, axis=1.5),
    "var, keepdims": lambda lib, t: lib.xp.var(t.x, axis=0, keepdims=()),
    "var, correction": lambda lib, t: lib.xp.var(t.x, correction="one"),
    "std, keepdims": lambda lib, t: lib.xp.std(t.x, axis=0, keepdims=2),
    "all, keepdims": lambda lib, t: lib.xp.all(t.b, axis=0, keepdims=2),
    "any, keepdims": lambda lib, t: lib.xp.any(t.b, axis=0, keepdims="x"),
    "count_nonzero, keepdims": lambda lib, t: lib.xp.count_nonzero(t.n, axis=0, keepdims=3),
    "squeeze, axis": lambda lib, t: lib.xp.squeeze(t.st, axis=None),
    "permute_dims, axes": lambda lib, t: lib.xp.permute_dims(t.x, 1),
    "moveaxis, source": lambda lib, t: lib.xp.moveaxis(t.x, None, 0),
    "moveaxis, destination": lambda lib, t: lib.xp.moveaxis(t.x, 0, None),
    "repeat, repeats": lambda lib, t: lib.xp.repeat(t.v, t.v),
    "concat, a list in it": lambda lib, t: lib.xp.concat([t.x, [[1.0, 2.0, 3.0]]]),
    "stack, a number in it": lambda lib, t: lib.xp.stack([t.s, 1.0]),
    "take, bools": lambda lib, t: lib.xp.take(t.v, t.b, axis=0),
    "take_along_axis, a list": lambda lib, t: lib.xp.take_along_axis(t.x, [[0]], axis=1),
    "einsum, the equation": lambda lib, t: lib.xp.einsum(t.x, t.x),
    "matmul, a scalar": lambda lib, t: lib.xp.matmul(t.x, 2.0),
    "matmul, a scalar to the left": lambda lib, t: lib.xp.matmul(2.0, t.x),
    "matmul, a list": lambda lib, t: lib.xp.matmul(t.x, [1.0, 2.0, 3.0]),
    "nonzero, a list": lambda lib, t: lib.xp.nonzero([1, 0]),
    "searchsorted, a list": lambda lib, t: lib.xp.searchsorted([0.0, 1.0], 0.5),
    "sort, a list": lambda lib, t: lib.xp.sort([2.0, 1.0]),
    "astype, a list": lambda lib, t: lib.xp.astype([1.0], t.x.dtype),
    "zeros_like, a list": lambda lib, t: lib.xp.zeros_like([1.0]),
    "tril, a list": lambda lib, t: lib.xp.tril([[1.0]]),
    "meshgrid, a list": lambda lib, t: lib.xp.meshgrid(t.v, [1.0]),
    "sin, a list": lambda lib, t: lib.xp.sin([1.0]),
    "add, a list": lambda lib, t: lib.xp.add(t.x, [1.0, 2.0, 3.0]),
    "add, None": lambda lib, t: lib.xp.add(t.x, None),
    "bitwise_and, floats": lambda lib, t: lib.xp.bitwise_and(t.x, t.x),
    "bitwise_left_shift, floats": lambda lib, t: lib.xp.bitwise_left_shift(t.n, 1.5),
    "logical_not, a list": lambda lib, t: lib.xp.logical_not([True]),
    "where, a list": lambda lib, t: lib.xp.where([True, False, True], t.x, t.x),
    "mean, a list": lambda lib, t: lib.xp.mean([1.0]),
    "diff, a list": lambda lib, t: lib.xp.diff([1.0, 2.0]),
    "result_type, a list": lambda lib, t: lib.xp.result_type(t.x, [1.0]),
    "full, fill_value": lambda lib, t: lib.xp.full((2,), [1.0]),
    "full, fill_value's text": lambda lib, t: lib.xp.full((2,), "one"),
    "zeros, shape": lambda lib, t: lib.xp.zeros("2"),
    "zeros, shape: a mapping": lambda lib, t: lib.xp.zeros({2: 3}),
    "ones, shape: a float": lambda lib, t: lib.xp.ones((2.0, 3)),
    "zeros, dtype": lambda lib, t: lib.xp.zeros((2,), dtype="no dtype"),
    "eye, n_rows": lambda lib, t: lib.xp.eye(2.5),
    "arange, start": lambda lib, t: lib.xp.arange("1"),
    "arange, start: two numbers": lambda lib, t: lib.xp.arange(t.v.detach()[:2]),
    "arange, stop: two of NumPy's": lambda lib, t: lib.xp.arange(0.0, np.asarray([1.0, 2.0])),
    "linspace, start: two numbers": lambda lib, t: lib.xp.linspace(np.asarray([0.0, 1.0]), 2.0, 5),
    "linspace, num": lambda lib, t: lib.xp.linspace(0.0, 1.0, "5"),
    "broadcast_arrays, a list": lambda lib, t: lib.xp.broadcast_arrays(t.x, [1.0]),
    "linspace, endpoint": lambda lib, t: lib.xp.linspace(0.0, 1.0, 5, endpoint="no"),
    "asarray, a mask": lambda lib, t: lib.xp.asarray(np.ma.masked_array([1.0, 2.0], mask=[True, False])),
    "tril, k": lambda lib, t: lib.xp.tril(t.x, k=0.5),
    "roll, shift": lambda lib, t: lib.xp.roll(t.x, "1"),
    "linalg.inv, integers": lambda lib, t: lib.xp.linalg.inv(t.n[:, :2]),
    "linalg.det, a list": lambda lib, t: lib.xp.linalg.det([[1.0]]),
    "linalg.pinv, rtol": lambda lib, t: lib.xp.linalg.pinv(t.x, rtol="small"),
    "linalg.matrix_rank, rtol": lambda lib, t: lib.xp.linalg.matrix_rank(t.x, rtol=t.n[0, :1]),
    "linalg.matrix_norm, ord": lambda lib, t: lib.xp.linalg.matrix_norm(t.x, ord=[2]),
    "linalg.matrix_power, n": lambda lib, t: lib.xp.linalg.matrix_power(t.q, 1.5),
    "linalg.outer, a list": lambda lib, t: lib.xp.linalg.outer(t.v, [1.0]),
    "linalg.cross, bools": lambda lib, t: lib.xp.linalg.cross(t.b, t.b),
    "fft, integers": lambda lib, t: lib.xp.fft.fft(t.n),
    "fft, a list": lambda lib, t: lib.xp.fft.fft([1.0]),
    "fft, n": lambda lib, t: lib.xp.fft.fft(t.x, n=2.5),
    "rfft, complex numbers": lambda lib, t: lib.xp.fft.rfft(t.c),
    "ihfft, complex numbers": lambda lib, t: lib.xp.fft.ihfft(t.c),
    "rfftn, complex numbers": lambda lib, t: lib.xp.fft.rfftn(t.c),
    "fftn, s": lambda lib, t: lib.xp.fft.fftn(t.x, s="22"),
    "fftfreq, n": lambda lib, t: lib.xp.fft.fftfreq(2.5),
    "fftfreq, d": lambda lib, t: lib.xp.fft.fftfreq(4, d="1"),
    "fftfreq, dtype": lambda lib, t: lib.xp.fft.fftfreq(4, dtype=t.n.dtype),
    "fftshift, a list": lambda lib, t: lib.xp.fft.fftshift([1.0]),
    "argmax, complex numbers": lambda lib, t: lib.xp.argmax(t.c),
    "searchsorted, complex numbers": lambda lib, t: lib.xp.searchsorted(t.v, t.c),
    "floor, complex numbers": lambda lib, t: lib.xp.floor(t.c),
    "full, fill_value: complex": lambda lib, t: lib.xp.full((2,), 1j, dtype=t.x.dtype),
    "argmax, axis: a tuple": lambda lib, t: lib.xp.argmax(t.s, axis=(0,)),
    "argmin, axis: a tuple": lambda lib, t: lib.xp.argmin(t.x, axis=(0, 1)),
    "arange, stop: complex": lambda lib, t: lib.xp.arange(1j),
}  # fmt: skip

#: Arguments of the right type whose values do not fit.
WRONG_VALUES: dict[str, Call] = {
    "add, shapes": lambda lib, t: lib.xp.add(t.x, t.x[:, :2]),
    "where, shapes": lambda lib, t: lib.xp.where(t.b, t.x[:, :2], t.s),
    "broadcast_to, shape": lambda lib, t: lib.xp.broadcast_to(t.x, (2, 4)),
    "broadcast_to, fewer axes": lambda lib, t: lib.xp.broadcast_to(t.x, (3,)),
    "broadcast_arrays, shapes": lambda lib, t: lib.xp.broadcast_arrays(t.x, t.x[:, :2]),
    "reshape, shape": lambda lib, t: lib.xp.reshape(t.x, (4,)),
    "reshape, one unknown": lambda lib, t: lib.xp.reshape(t.x, (-1, 4)),
    "reshape, two unknown": lambda lib, t: lib.xp.reshape(t.x, (-1, -1)),
    "reshape, shape: less than -1": lambda lib, t: lib.xp.reshape(t.x, (-2, 3)),
    "squeeze, a longer axis": lambda lib, t: lib.xp.squeeze(t.x, axis=0),
    "permute_dims, one axis of two": lambda lib, t: lib.xp.permute_dims(t.x, (0,)),
    "permute_dims, twice": lambda lib, t: lib.xp.permute_dims(t.x, (0, 0)),
    "matrix_transpose, one axis": lambda lib, t: lib.xp.matrix_transpose(t.v),
    "moveaxis, lengths": lambda lib, t: lib.xp.moveaxis(t.x, (0, 1), 0),
    "moveaxis, twice": lambda lib, t: lib.xp.moveaxis(t.x, (0, 0), (0, 1)),
    "sum, an axis twice": lambda lib, t: lib.xp.sum(t.x, axis=(0, -2)),
    "flip, an axis twice": lambda lib, t: lib.xp.flip(t.x, axis=(1, 1)),
    "repeat, lengths": lambda lib, t: lib.xp.repeat(t.x, t.i, axis=1),
    "repeat, negative": lambda lib, t: lib.xp.repeat(t.x, -1, axis=1),
    "repeat, negative ones": lambda lib, t: lib.xp.repeat(t.x, t.i - 1, axis=0),
    "roll, lengths": lambda lib, t: lib.xp.roll(t.x, (1, 2), axis=(0,)),
    "tile, repetitions": lambda lib, t: lib.xp.tile(t.x, (2, -1)),
    "concat, nothing": lambda lib, t: lib.xp.concat([]),
    "stack, nothing": lambda lib, t: lib.xp.stack([]),
    "concat, shapes": lambda lib, t: lib.xp.concat([t.x, t.x[:, :2]], axis=0),
    "concat, ranks": lambda lib, t: lib.xp.concat([t.x, t.v], axis=0),
    "stack, shapes": lambda lib, t: lib.xp.stack([t.v, t.v[:2]]),
    "take, no axis": lambda lib, t: lib.xp.take(t.x, t.i),
    "take_along_axis, ranks": lambda lib, t: lib.xp.take_along_axis(t.x, t.i, axis=1),
    "take_along_axis, shapes": lambda lib, t: lib.xp.take_along_axis(t.st, t.n, axis=1),
    "max, no elements": lambda lib, t: lib.xp.max(t.e),
    "min, no elements on an axis": lambda lib, t: lib.xp.min(t.e, axis=0),
    "argmax, no elements": lambda lib, t: lib.xp.argmax(t.e),
    "argmin, no elements on an axis": lambda lib, t: lib.xp.argmin(t.e, axis=0),
    "cumulative_sum, no axis": lambda lib, t: lib.xp.cumulative_sum(t.x),
    "cumulative_prod, no axis": lambda lib, t: lib.xp.cumulative_prod(t.x),
    "cumulative_sum, a first one of none": lambda lib, t: lib.xp.cumulative_sum(t.s, include_initial=True),
    "nonzero, no axes": lambda lib, t: lib.xp.nonzero(t.s),
    "searchsorted, a matrix": lambda lib, t: lib.xp.searchsorted(t.x, t.v),
    "searchsorted, side": lambda lib, t: lib.xp.searchsorted(t.v, t.v, side="middle"),
    "searchsorted, sorter": lambda lib, t: lib.xp.searchsorted(t.v, t.v, sorter=t.i),
    "einsum, no operands": lambda lib, t: lib.xp.einsum("i->i"),
    "einsum, one of two": lambda lib, t: lib.xp.einsum("ij,jk->ik", t.x),
    "einsum, unknown label": lambda lib, t: lib.xp.einsum("ij->k", t.x),
    "einsum, a label twice": lambda lib, t: lib.xp.einsum("ij->ii", t.x),
    "einsum, no letter": lambda lib, t: lib.xp.einsum("i1->i", t.x),
    "einsum, too few labels": lambda lib, t: lib.xp.einsum("i->i", t.x),
    "einsum, a diagonal": lambda lib, t: lib.xp.einsum("ii->i", t.x),
    "einsum, lengths": lambda lib, t: lib.xp.einsum("ij,ij->i", t.x, t.x[:, :2]),
    "matmul, shapes": lambda lib, t: lib.xp.matmul(t.x, t.x),
    "matmul, no axes": lambda lib, t: lib.xp.matmul(t.x, t.s),
    "matmul, no axes to the left": lambda lib, t: lib.xp.matmul(t.s, t.x),
    "tensordot, too many": lambda lib, t: lib.xp.tensordot(t.x, t.v, axes=2),
    "tensordot, not a pair": lambda lib, t: lib.xp.tensordot(t.x, t.x, axes=((0,), (0,), (0,))),
    "tensordot, twice": lambda lib, t: lib.xp.tensordot(t.x, t.x, axes=((0, 0), (0, 1))),
    "tensordot, lengths": lambda lib, t: lib.xp.tensordot(t.x, t.x, axes=((0,), (1,))),
    "vecdot, lengths": lambda lib, t: lib.xp.vecdot(t.x, t.q),
    "vecdot, axis": lambda lib, t: lib.xp.vecdot(t.x, t.v, axis=0),
    "tril, one axis": lambda lib, t: lib.xp.tril(t.v),
    "triu, one axis": lambda lib, t: lib.xp.triu(t.v),
    "meshgrid, a matrix": lambda lib, t: lib.xp.meshgrid(t.v, t.x),
    "meshgrid, indexing": lambda lib, t: lib.xp.meshgrid(t.v, t.v, indexing="ik"),
    "full, a Tensor": lambda lib, t: lib.xp.full((2,), t.v),
    "full, not finite": lambda lib, t: lib.xp.full((2,), math.nan, dtype=t.n.dtype),
    "zeros, shape: negative": lambda lib, t: lib.xp.zeros((2, -1)),
    "zeros, shape: too many": lambda lib, t: lib.xp.zeros((2**40, 2**40)),
    "arange, step": lambda lib, t: lib.xp.arange(0, 5, 0),
    "linspace, num": lambda lib, t: lib.xp.linspace(0.0, 1.0, -1),
    "pad, width": lambda lib, t: lib.xp.pad(t.x, ((1, 2), (3, 4), (5, 6))),
    "pad, a negative one": lambda lib, t: lib.xp.pad(t.x, -1),
    "linalg.inv, not square": lambda lib, t: lib.xp.linalg.inv(t.x),
    "linalg.det, not square": lambda lib, t: lib.xp.linalg.det(t.x),
    "linalg.slogdet, not square": lambda lib, t: lib.xp.linalg.slogdet(t.x),
    "linalg.eigvalsh, not square": lambda lib, t: lib.xp.linalg.eigvalsh(t.x),
    "linalg.eigvals, not square": lambda lib, t: lib.xp.linalg.eigvals(t.x),
    "linalg.eig, not square": lambda lib, t: lib.xp.linalg.eig(t.x),
    "linalg.det, one axis": lambda lib, t: lib.xp.linalg.det(t.v),
    "linalg.cholesky, not square": lambda lib, t: lib.xp.linalg.cholesky(t.x),
    "linalg.eigh, not square": lambda lib, t: lib.xp.linalg.eigh(t.x),
    "linalg.solve, lengths": lambda lib, t: lib.xp.linalg.solve(t.q, t.v),
    "linalg.matrix_power, not square": lambda lib, t: lib.xp.linalg.matrix_power(t.x, 2),
    "linalg.matrix_norm, ord": lambda lib, t: lib.xp.linalg.matrix_norm(t.x, ord=3),
    "linalg.vector_norm, ord": lambda lib, t: lib.xp.linalg.vector_norm(t.x, ord="two"),
    "linalg.matrix_norm, ord's name": lambda lib, t: lib.xp.linalg.matrix_norm(t.x, ord="fob"),
    "linalg.vector_norm, nothing": lambda lib, t: lib.xp.linalg.vector_norm(t.e, axis=0, ord=math.inf),
    "linalg.cross, lengths": lambda lib, t: lib.xp.linalg.cross(t.q, t.q),
    "linalg.cross, axis": lambda lib, t: lib.xp.linalg.cross(t.st, t.v, axis=0),
    "linalg.outer, a matrix": lambda lib, t: lib.xp.linalg.outer(t.x, t.v),
    "linalg.trace, one axis": lambda lib, t: lib.xp.linalg.trace(t.v),
    "linalg.diagonal, one axis": lambda lib, t: lib.xp.linalg.diagonal(t.v),
    "linalg.qr, mode": lambda lib, t: lib.xp.linalg.qr(t.x, mode="half"),
    "linalg.svd, one axis": lambda lib, t: lib.xp.linalg.svd(t.v),
    "linalg.pinv, rtol": lambda lib, t: lib.xp.linalg.pinv(t.x, rtol=t.v),
    "fft, n": lambda lib, t: lib.xp.fft.fft(t.x, n=0),
    "fft, n: negative": lambda lib, t: lib.xp.fft.fft(t.x, n=-2),
    "fft, no axes": lambda lib, t: lib.xp.fft.fft(t.s),
    "fft, no elements": lambda lib, t: lib.xp.fft.fft(t.e, axis=0),
    "fft, norm": lambda lib, t: lib.xp.fft.fft(t.x, norm="sideways"),
    "fftn, s: too many": lambda lib, t: lib.xp.fft.fftn(t.x, s=(2, 2, 2)),
    "fftn, s: lengths": lambda lib, t: lib.xp.fft.fftn(t.x, s=(2, 2), axes=(0,)),
    "fftn, axes": lambda lib, t: lib.xp.fft.fftn(t.x, axes=()),
    "irfft, too short": lambda lib, t: lib.xp.fft.irfft(t.x[:, :1]),
    "hfft, too short": lambda lib, t: lib.xp.fft.hfft(t.x[:, :1]),
    "fftfreq, d": lambda lib, t: lib.xp.fft.fftfreq(4, d=0.0),
    "fftfreq, n": lambda lib, t: lib.xp.fft.fftfreq(0),
}  # fmt: skip

#: Axes and positions that do not exist.
WRONG_PLACES: dict[str, Call] = {
    "sum, axis": lambda lib, t: lib.xp.sum(t.x, axis=2),
    "sum, axis from behind": lambda lib, t: lib.xp.sum(t.x, axis=-3),
    "max, axis of none": lambda lib, t: lib.xp.max(t.s, axis=1),
    "cumulative_sum, axis": lambda lib, t: lib.xp.cumulative_sum(t.x, axis=2),
    "sort, axis": lambda lib, t: lib.xp.sort(t.x, axis=2),
    "argsort, axis": lambda lib, t: lib.xp.argsort(t.x, axis=-3),
    "argmax, axis": lambda lib, t: lib.xp.argmax(t.x, axis=2),
    "concat, axis": lambda lib, t: lib.xp.concat([t.x, t.x], axis=2),
    "stack, axis": lambda lib, t: lib.xp.stack([t.x, t.x], axis=-4),
    "unstack, axis": lambda lib, t: lib.xp.unstack(t.x, axis=2),
    "flip, axis": lambda lib, t: lib.xp.flip(t.x, axis=2),
    "roll, axis": lambda lib, t: lib.xp.roll(t.x, 1, axis=2),
    "repeat, axis": lambda lib, t: lib.xp.repeat(t.x, 2, axis=2),
    "take, axis": lambda lib, t: lib.xp.take(t.x, t.i, axis=2),
    "diff, axis": lambda lib, t: lib.xp.diff(t.x, axis=2),
    "squeeze, axis": lambda lib, t: lib.xp.squeeze(t.st, axis=3),
    "moveaxis, axis": lambda lib, t: lib.xp.moveaxis(t.x, 2, 0),
    "expand_dims, axis": lambda lib, t: lib.xp.expand_dims(t.x, axis=4),
    "take_along_axis, axis": lambda lib, t: lib.xp.take_along_axis(t.x, t.n, axis=2),
    "an index of floats": lambda lib, t: lib.xp.take_along_axis(t.x, t.x, axis=1),
    "x[2]": lambda lib, t: t.x[2],
    "x[-3]": lambda lib, t: t.x[-3],
    "x[0, 3]": lambda lib, t: t.x[0, 3],
    "x[:, -4]": lambda lib, t: t.x[:, -4],
    "x[0, 0, 0]": lambda lib, t: t.x[0, 0, 0],
    "x[..., ...]": lambda lib, t: t.x[..., ...],
    "x[i], beyond": lambda lib, t: t.x[lib.indices([2])],
    "x[i], beyond the beginning": lambda lib, t: t.x[lib.indices([-3])],
    "x[:, i], beyond": lambda lib, t: t.x[:, lib.indices([0, 3])],
    "x[i, j], shapes": lambda lib, t: t.x[lib.indices([0, 1]), lib.indices([0, 1, 2])],
    "x[i, 3]": lambda lib, t: t.x[lib.indices([0, 1]), 3],
    "x[mask], lengths": lambda lib, t: t.x[lib.constant([True, False, True], "bool")],
    "x[:, mask], lengths": lambda lib, t: t.x[:, lib.constant([True, False], "bool")],
    "x[mask, i], shapes": lambda lib, t: t.x[lib.constant([True, True], "bool"), lib.indices([0, 1, 2])],
    "x[i, ..., ...]": lambda lib, t: t.x[lib.indices([0]), ..., ...],
    "x[i, j, k]": lambda lib, t: t.x[lib.indices([0]), lib.indices([0]), lib.indices([0])],
    "take[], beyond": lambda lib, t: lib.xp.take(t.x, lib.indices([3]), axis=1),
    "take_along_axis[], beyond": lambda lib, t: lib.xp.take_along_axis(t.x, lib.indices([[3], [0]]), axis=1),
    "index_add[], beyond": lambda lib, t: (t.x * 1).index_add_(0, lib.indices([2]), t.x[:1]),
    "x[1.5]": lambda lib, t: t.x[1.5],
    "x['a']": lambda lib, t: t.x["a"],
    "x[floats]": lambda lib, t: t.x[t.v],
    "s[0]": lambda lib, t: t.s[0],
    "x[2:, 0, 0]": lambda lib, t: t.x[2:, 0, 0],
}  # fmt: skip

#: Uses that a Tensor does not support.
WRONG_USES: dict[str, tuple[type[Exception], Call]] = {
    "len of no axes": (TypeError, lambda lib, t: len(t.s)),
    "iter of no axes": (TypeError, lambda lib, t: iter(t.s)),
    "flatten from behind": (RuntimeError, lambda lib, t: t.x.flatten(1, 0)),
    "bool of several": (ValueError, lambda lib, t: bool(t.x > 0)),
    "bool of none": (ValueError, lambda lib, t: bool(t.e > 0)),
    "float of several": (ValueError, lambda lib, t: float(t.v.detach())),
    "int of several": (ValueError, lambda lib, t: int(t.n)),
    "float of a complex one": (TypeError, lambda lib, t: float(t.c.detach()[0, 0])),
    "int of a complex one": (TypeError, lambda lib, t: int(t.c.detach()[0, 0])),
    "index of a float": (TypeError, lambda lib, t: [1, 2].__getitem__(t.s)),
    "item of several": (ValueError, lambda lib, t: t.v.item()),
    "a format of several": (TypeError, lambda lib, t: f"{t.v:.2f}"),
    "expand, less than -1": (
        ValueError,
        lambda lib, t: t.v.expand(-2, 3),
    ),
    "T of one axis": (ValueError, lambda lib, t: t.v.T),
    "mT of one axis": (ValueError, lambda lib, t: t.v.mT),
    "a list times a matrix": (TypeError, lambda lib, t: [1.0, 2.0] @ t.x),
    "imag of real numbers": (TypeError, lambda lib, t: t.x.imag),
    "an operator and a list": (TypeError, lambda lib, t: t.x + [1.0, 2.0, 3.0]),
    "an operator and text": (TypeError, lambda lib, t: t.x * "2"),
    "@ and a scalar": (TypeError, lambda lib, t: t.x @ 2.0),
    "& of floats": (TypeError, lambda lib, t: t.x & t.x),
    "~ of floats": (TypeError, lambda lib, t: ~t.x),
    "bools from bools": (TypeError, lambda lib, t: t.b - t.b),
    "- of bools": (TypeError, lambda lib, t: -t.b),
    "an integer that does not fit": (OverflowError, lambda lib, t: t.n + 2**70),
    "integers and a float power": (TypeError, lambda lib, t: t.n << 1.0),
    "an array of an integer that does not fit": (OverflowError, lambda lib, t: lib.xp.asarray(2**70)),
    "a fill that does not fit": (OverflowError, lambda lib, t: lib.xp.full((2,), 300, dtype=lib.dtype("int8"))),
    "a range that does not fit": (OverflowError, lambda lib, t: lib.xp.arange(0, 300, 100, dtype=lib.dtype("int8"))),
    "a ragged list": (ValueError, lambda lib, t: lib.xp.asarray([[1.0], [2.0, 3.0]])),
    "a list of text": (TypeError, lambda lib, t: lib.xp.asarray(["a"])),
    "an array of objects": (TypeError, lambda lib, t: lib.xp.asarray(np.asarray([None, 1]))),
    "no objects": (TypeError, lambda lib, t: lib.xp.asarray(np.asarray([], dtype=object))),
    "objects that are small integers": (TypeError, lambda lib, t: lib.xp.asarray(np.asarray([1, 2], dtype=object))),
    "complex data as real": (TypeError, lambda lib, t: lib.xp.asarray([1j], dtype=t.x.dtype)),
    "NumPy's complex number as real": (TypeError, lambda lib, t: lib.xp.asarray([np.complex64(1j)], dtype=t.x.dtype)),
    "a complex array as real": (TypeError, lambda lib, t: lib.xp.asarray(np.asarray([1j]), dtype=t.x.dtype)),
    "a list without a copy": (ValueError, lambda lib, t: lib.xp.asarray([1.0], copy=False)),
    "another dtype without a copy": (ValueError, lambda lib, t: lib.xp.asarray(t.x, dtype=lib.dtype(lib.narrow), copy=False)),
    "a reshape without a copy": (ValueError, lambda lib, t: lib.xp.reshape(t.x.T, (6,), copy=False)),
    "from_dlpack of a list": (TypeError, lambda lib, t: lib.xp.from_dlpack([1.0])),
    "from_dlpack of what requires grad": (RuntimeError, lambda lib, t: lib.xp.from_dlpack(t.x)),
    "NumPy of what requires grad": (RuntimeError, lambda lib, t: np.asarray(t.x)),
    "numpy() of what requires grad": (RuntimeError, lambda lib, t: t.x.numpy()),
    "iinfo of a float": (TypeError, lambda lib, t: lib.xp.iinfo(t.x.dtype)),
    "finfo of an integer": (TypeError, lambda lib, t: lib.xp.finfo(t.n.dtype)),
    "isdtype of no kind": (ValueError, lambda lib, t: lib.xp.isdtype(t.x.dtype, "no kind")),
    "result_type of nothing": (ValueError, lambda lib, t: lib.xp.result_type()),
    "broadcast_shapes that do not fit": (ValueError, lambda lib, t: lib.xp.broadcast_shapes((2, 3), (2,))),
    "broadcast_shapes of a negative length": (ValueError, lambda lib, t: lib.xp.broadcast_shapes((2, -3), (2,))),
    "broadcast_shapes of text": (TypeError, lambda lib, t: lib.xp.broadcast_shapes("ab")),
    "masked_fill_ with integers": (RuntimeError, lambda lib, t: (t.x * 1).masked_fill_(t.n, 1.0)),
    "masked_fill_ with several values": (RuntimeError, lambda lib, t: (t.x * 1).masked_fill_(t.b, t.v)),
    "y[0] = text": (TypeError, lambda lib, t: (t.x * 1).__setitem__(0, "1")),
    "y[0] = None": (TypeError, lambda lib, t: (t.x * 1).__setitem__(0, None)),
    "y[0] = a longer one": (ValueError, lambda lib, t: (t.x * 1).__setitem__(0, t.i * 1.0)),
    "y[0] = a complex number": (TypeError, lambda lib, t: (t.x * 1).__setitem__(0, 1j)),
    "n[0] = a float": (TypeError, lambda lib, t: t.n.__setitem__(0, 1.5)),
    "n[0] = floats": (TypeError, lambda lib, t: t.n.__setitem__(0, t.v.detach())),
    "y[5] = 1.0": (IndexError, lambda lib, t: (t.x * 1).__setitem__(5, 1.0)),
    "y[0, 0, 0] = 1.0": (IndexError, lambda lib, t: (t.x * 1).__setitem__((0, 0, 0), 1.0)),
    "y[i] = 1.0, beyond": (IndexError, lambda lib, t: (t.x * 1).__setitem__(lib.indices([0, 2]), 1.0)),
    "y[mask] = 1.0, lengths": (IndexError, lambda lib, t: (t.x * 1).__setitem__(lib.constant([True, False, True], "bool"), 1.0)),
    "y[i, j] = 1.0, shapes": (IndexError, lambda lib, t: (t.x * 1).__setitem__((lib.indices([0, 1]), lib.indices([0, 1, 2])), 1.0)),
    "y[i] = shapes": (ValueError, lambda lib, t: (t.x * 1).__setitem__(lib.indices([0, 1]), t.q * 1)),
    "y[floats] = 1.0": (IndexError, lambda lib, t: (t.x * 1).__setitem__(t.v, 1.0)),
    "y.add_(text)": (TypeError, lambda lib, t: (t.x * 1).add_("1")),
    "y.mul_(None)": (TypeError, lambda lib, t: (t.x * 1).mul_(None)),
    "n += a float": (RuntimeError, lambda lib, t: t.n.__iadd__(1.5)),
    "n.add_ of floats": (RuntimeError, lambda lib, t: t.n.add_(t.v.detach())),
    "y += a larger one": (RuntimeError, lambda lib, t: (t.v * 1).__iadd__(t.x)),
    "b += numbers": (RuntimeError, lambda lib, t: t.b.__iadd__(1)),
}  # fmt: skip


def double(v: Any) -> Any:
    return v * 2


def grad_through_hooks(lib: Any, x: Any, pack: Any, unpack: Any) -> Any:
    """Return the gradient of a square whose operand is packed and unpacked by hooks."""
    with lib.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    return lib.grad(lib.xp.sum(y), x)


def checkpointed(lib: Any, *args: Any, name: str = "checkpoint", **options: Any) -> Any:
    return getattr(lib.module("utils.checkpoint"), name)(*args, use_reentrant=False, **options)


def call_in_forward(lib: Any, method: str, given: Any, x: Any) -> Any:
    """Call a method of the context in the forward of a custom Function."""
    return lib.fn(lambda ctx, v: (getattr(ctx, method)(given), v * 2)[1], lambda ctx, g: g).apply(x)


def dual(lib: Any, x: Any, tangent: Any) -> Any:
    return lib.module("autograd.forward_ad").make_dual(x, tangent)


#: Calls that autograd refuses.
WRONG_AUTOGRAD: dict[str, tuple[type[Exception], Call]] = {
    "checkpoint, determinism_check": (ValueError, lambda lib, t: checkpointed(lib, double, t.x, determinism_check="some")),
    "checkpoint, no function": (TypeError, lambda lib, t: checkpointed(lib, 3, t.x)),
    "a chain, no list": (TypeError, lambda lib, t: checkpointed(lib, double, 1, t.x, name="checkpoint_sequential")),
    "a chain, segments": (ValueError, lambda lib, t: checkpointed(lib, [double], 3, t.x, name="checkpoint_sequential")),
    "a chain, no segments": (ValueError, lambda lib, t: checkpointed(lib, [double, double], 0, t.x, name="checkpoint_sequential")),
    "a chain, an option": (ValueError, lambda lib, t: checkpointed(lib, [double], 1, t.x, name="checkpoint_sequential", other=1)),
    "a chain, no function": (TypeError, lambda lib, t: checkpointed(lib, [double, 3], 1, t.x, name="checkpoint_sequential")),
    "DLPack of what requires grad": (RuntimeError, lambda lib, t: t.x.__dlpack__()),
    "a tangent that is a number": (TypeError, lambda lib, t: dual(lib, t.x, 3.0)),
    "a hook for packing": (TypeError, lambda lib, t: grad_through_hooks(lib, t.x, 3, lambda v: v)),
    "a hook for unpacking": (TypeError, lambda lib, t: grad_through_hooks(lib, t.x, lambda v: v, 3)),
    "unpacked: another shape": (RuntimeError, lambda lib, t: grad_through_hooks(lib, t.x, lambda v: v.detach(), lambda v: v[:1])),
    "unpacked: another kind": (RuntimeError, lambda lib, t: grad_through_hooks(lib, t.x, lambda v: v.detach(), lambda v: v > 0)),
    "unpacked: no Tensor": (TypeError, lambda lib, t: grad_through_hooks(lib, t.x, lambda v: v.detach(), lambda v: 3.0)),
    "hooks are disabled by a number": (TypeError, lambda lib, t: lib.graph.disable_saved_tensors_hooks(3).__enter__()),
    "a hook of a Tensor": (TypeError, lambda lib, t: t.x.register_hook(3)),
    "a hook after accumulation": (TypeError, lambda lib, t: t.x.register_post_accumulate_grad_hook(3)),
    "a hook of a node": (TypeError, lambda lib, t: (t.x * 2).grad_fn.register_hook(3)),
    "a hook of several, no Tensor": (TypeError, lambda lib, t: lib.graph.register_multi_grad_hook([3.0], lambda g: None)),
    "a hook of several, mode": (ValueError, lambda lib, t: lib.graph.register_multi_grad_hook([t.x], lambda g: None, mode="some")),
    "a hook of several": (TypeError, lambda lib, t: lib.graph.register_multi_grad_hook([t.x], 3)),
    "a seed that is a number": (TypeError, lambda lib, t: lib.grad(t.x * 2, t.x, 3.0)),
    "a seed that is an array": (TypeError, lambda lib, t: lib.grad(t.x * 2, t.x, np.ones((2, 3)))),
    "a batch that is a number": (TypeError, lambda lib, t: lib.grad(t.x * 2, t.x, (3.0,), is_grads_batched=True)),
    "two batches for one": (
        RuntimeError,
        lambda lib, t: lib.grad((t.x * 2,), t.x, (lib.ones(2, 2, 3), lib.ones(2, 2, 3)), is_grads_batched=True),
    ),
    "an output that is a number": (TypeError, lambda lib, t: lib.grad(3.0, t.x)),
    "an input that is a number": (TypeError, lambda lib, t: lib.grad(lib.xp.sum(t.x), 3.0)),
    "no inputs": (RuntimeError, lambda lib, t: lib.backward(lib.xp.sum(t.x), inputs=[])),
    "a number is saved": (TypeError, lambda lib, t: call_in_forward(lib, "save_for_backward", 3.0, t.x)),
    "a number is dirty": (RuntimeError, lambda lib, t: call_in_forward(lib, "mark_dirty", 3.0, t.x)),
    "gradcheck of a number": (TypeError, lambda lib, t: lib.ag.gradcheck(double, 3.0)),
    "gradcheck of no result": (TypeError, lambda lib, t: lib.ag.gradcheck(lambda v: 3.0, (t.x,))),
    "a gradient of another shape": (RuntimeError, lambda lib, t: setattr(t.x, "grad", t.v.detach())),
    "a gradient that is a number": (TypeError, lambda lib, t: setattr(t.x, "grad", 3.0)),
    "a gradient of another dtype": (RuntimeError, lambda lib, t: setattr(t.x, "grad", lib.constant(np.ones((2, 3)), lib.narrow))),
    "requires_grad of what has a history": (RuntimeError, lambda lib, t: setattr(t.x * 2, "requires_grad", False)),
    "requires_grad of integers": (RuntimeError, lambda lib, t: t.n.requires_grad_()),
    "retain_grad of a constant": (RuntimeError, lambda lib, t: t.x.detach().retain_grad()),
    "a tangent of another shape": (RuntimeError, lambda lib, t: dual(lib, t.x, t.v)),
    "a tangent outside of a level": (RuntimeError, lambda lib, t: dual(lib, t.x, t.x)),
    "jvp of nothing": (RuntimeError, lambda lib, t: lib.module("func").jvp(lambda v: t.x, ((),), ((),))),
    "jvp, along nothing": (RuntimeError, lambda lib, t: lib.module("func").jvp(double, (t.x,), ())),
    "a forward Jacobian, strictly": (
        RuntimeError,
        lambda lib, t: lib.ag.functional.jacobian(double, t.x, strict=True, vectorize=True, strategy="forward-mode"),
    ),
    "in-place on a leaf": (RuntimeError, lambda lib, t: t.x.add_(1.0)),
    "in-place on a view of a leaf": (RuntimeError, lambda lib, t: t.x[0].mul_(2.0)),
}  # fmt: skip

#: Operations that elements of a batch do not support, and arguments that do not fit an element, of shape (3,).
WRONG_IN_BATCHES: dict[str, Call] = {
    "item": lambda lib, v: v.sum().item(),
    "bool": lambda lib, v: bool((v > 0).all()),
    "float": lambda lib, v: float(v.sum()),
    "int": lambda lib, v: int(v.sum()),
    "numpy": lambda lib, v: v.detach().numpy(),
    "tolist": lambda lib, v: v.tolist(),
    "asarray": lambda lib, v: np.asarray(v.detach()),
    "setting grad": lambda lib, v: setattr(v, "grad", v),
    "setting data": lambda lib, v: setattr(v, "data", v * 2),
    "a hook that is a number": lambda lib, v: v.register_hook(3),
    "retain_grad": lambda lib, v: (v * 2).retain_grad(),
    "backward": lambda lib, v: lib.xp.sum(v).backward(),
    "nonzero": lambda lib, v: lib.xp.nonzero(v),
    "x[mask]": lambda lib, v: v[v > 0],
    "unique_values": lambda lib, v: lib.xp.unique_values(v),
    "len of no axes": lambda lib, v: len(v[0]),
    "a write of different values": lambda lib, v: (lib.ones(3) * 1).__setitem__(0, v[0]),
    "a sum of different values": lambda lib, v: (lib.ones(3) * 1).__iadd__(v),
    "a write beyond the end": lambda lib, v: (v * 1).__setitem__(3, 1.0),
    "a write of too much": lambda lib, v: (v * 1).__setitem__(0, v),
    "einsum": lambda lib, v: lib.xp.einsum("ij->i", v),
}  # fmt: skip


#: Calls that PyTorch 2.13 accepts.
TAKEN_BY_PYTORCH = frozenset((
    "count_nonzero, keepdims", "take, bools", "linalg.matrix_rank, rtol", "fft, integers", "fftn, axes", "fftfreq, d", "fftfreq, n",
    "x[..., ...]", "x[i, ..., ...]", "x['a']", "T of one axis", "linalg.pinv, rtol",
    "a range that does not fit", "n[0] = a float", "n[0] = floats",
    "unpacked: another shape", "a hook of a Tensor", "a hook after accumulation", "a hook of a node", "a hook of several",
    "a seed that is an array", "two batches for one", "linspace, endpoint", "asarray, a mask", "a complex array as real",
    "NumPy's complex number as real", "take_along_axis[], beyond",
))  # fmt: skip


#: Calls that are refused only while recording.
RECORDED = frozenset(("NumPy of what requires grad", "numpy() of what requires grad", *WRONG_AUTOGRAD))


def refusals(lib: Any) -> Iterator[tuple[str, type[Exception], bool, Call]]:
    """Yield what a library must refuse: the name, the error, whether the message names the function, and the call."""
    tables: tuple[tuple[type[Exception], dict[str, Call]], ...] = (
        (TypeError, WRONG_TYPES),
        (ValueError, WRONG_VALUES),
        (IndexError, WRONG_PLACES),
    )
    rows = [(name, error, "[" not in name, call) for error, table in tables for name, call in table.items()]
    rows += [(name, error, False, call) for name, (error, call) in (WRONG_USES | WRONG_AUTOGRAD).items()]
    absent = set() if lib.capabilities["strides"] else {"a reshape without a copy"}
    if lib.capabilities["lazy"]:  # the values of an index are checked only when they are computed
        absent |= {name for name, *_ in rows if "beyond" in name or "mask" in name or "shapes" in name}
    for name, error, says, call in rows:
        if name in absent or (lib.oracle and name in TAKEN_BY_PYTORCH):
            continue
        if "complex" in name and not lib.capabilities["complex"]:
            continue
        if name.partition(",")[0] in ("fft", "fftn", "rfft", "rfftn", "irfft", "hfft", "ihfft") and not lib.capabilities["fft"]:
            continue
        yield name, error, says, call


@contract("DER-24")
def refused(lib: Any) -> None:
    for name, error, says, call in refusals(lib):
        # NB: a lazy library computes each value again when it is read.
        slow = lib.capabilities["lazy"]
        for mode in (contextlib.nullcontext, lib.ns.no_grad)[: 1 if slow or name in RECORDED else 2]:
            t = operands(lib)
            before = {key: lib.value(x).copy() for key, x in vars(t).items() if x is not None and (key == "x" or not slow)}
            with lib.case(f"{name}{', not recorded' if mode is not contextlib.nullcontext else ''}"):
                with mode(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    # NB: PyTorch does not specify the errors of undocumented uses.
                    with lib.raises(Exception if lib.oracle else error) as caught:
                        call(lib, t)
                if says and not lib.oracle:
                    function, _, argument = name.rpartition(".")[2].partition(", ")
                    words = (function, argument.partition(":")[0])
                    assert any(word in str(caught[0]) for word in words), f"{caught[0]!r} names none of {words}"
                for key, values in before.items():
                    x = getattr(t, key)
                    assert (x._version, x.is_leaf) == (0, True), key
                    np.testing.assert_array_equal(lib.value(x), values)
    x_arguments.check_refused_arguments(lib, operands)
    check_refusals_in_batches(lib)
    check_refused_writes(lib)
    x = operands(lib).x
    lib.equal(lib.grad(lib.xp.sum(x * x), x)[0], 2.0 * lib.value(x))  # everything still works


def check_refused_writes(lib: Any) -> None:
    """Check that a write in place of numbers that the Tensor cannot hold is refused, and does not count as a write."""
    whole, real = [4, 6], [4.0, 6.0]
    writes: list[tuple[str, Any, str, Call]] = [
        ("a quotient of integers", whole, "__itruediv__", lambda lib, x: lib.constant([3, 5], lib.index)),
        ("a product with floats", whole, "__imul__", lambda lib, x: lib.constant([0.5, 1.5])),
        ("a product with a float", whole, "__imul__", lambda lib, x: 0.5),
        ("another length", real, "__iadd__", lambda lib, x: lib.ones(3)),
        ("another rank", real, "__isub__", lambda lib, x: lib.ones(2, 2)),
        ("a product with a complex number", real, "__imul__", lambda lib, x: 1j),
        *([("a sum with complex numbers", real, "__iadd__", lambda lib, x: lib.constant([1j, 2.0], lib.complex))]
          if lib.capabilities["complex"] else []),
    ]  # fmt: skip
    for (name, values, method, other), mode in itertools.product(writes, (contextlib.nullcontext, lib.ns.no_grad)):
        x = lib.constant(values, lib.index if values is whole else None)
        with lib.case((name, mode)), mode(), lib.raises((RuntimeError, TypeError, ValueError)):
            getattr(x, method)(other(lib, x))
        assert x._version == 0, name
        lib.equal(x, values)


def check_refusals_in_batches(lib: Any) -> None:
    """Check that the same calls are refused under `vmap`."""
    vmap = lib.module("func").vmap
    errors = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)
    for name, call in WRONG_IN_BATCHES.items():
        x = operands(lib).x
        with lib.case(f"{name}, under vmap"), lib.raises(errors):
            vmap(lambda v, call=call: (call(lib, v), v)[1])(x)
    if lib.oracle:
        return
    own: dict[str, Call] = {"requires_grad": lambda lib, v: setattr(v, "requires_grad", True)}
    if lib.capabilities["dlpack"]:
        own["DLPack"] = lambda lib, v: v.detach().__dlpack__()
    for name, call in own.items():
        with lib.case(f"{name}, under vmap"), lib.raises(RuntimeError):
            vmap(lambda v, call=call: (call(lib, v), v)[1])(operands(lib).x.detach())
    if lib.capabilities["lazy"] or lib.capabilities["jit"]:
        return
    for name, _, _, call in refusals(lib):
        if name in WRONG_USES or name in WRONG_AUTOGRAD:
            continue
        given = {key: lib.xp.stack([x.detach(), x.detach()]) for key, x in vars(operands(lib)).items() if x is not None}

        def element(*parts: Any, call: Call = call, keys: Any = tuple(given)) -> Any:
            call(lib, SimpleNamespace(**dict(zip(keys, parts, strict=True))))
            return parts[0]

        with lib.case(f"{name}, under vmap"), warnings.catch_warnings(), lib.raises(errors):
            warnings.simplefilter("ignore")
            vmap(element)(*given.values())
