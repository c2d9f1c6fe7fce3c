"""Group X: the forms in which arguments may be given, and the ways to create a Tensor from other data."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts import x_arguments
from xpgrad_conformance.contracts.x_functions import exact

Call = Callable[[Any, Any], Any]
X = np.asarray([[0.4, -1.3, 0.9], [1.7, 0.6, -0.7]])
ROW = np.asarray([0.8, 1.4, 0.5])
STACK = np.cos(np.arange(6.0)).reshape(1, 2, 3, 1)


def write(x: Any, key: Any, value: Any) -> Any:
    """Return a copy of `x` with `value` written at `key`."""
    out = x * 1
    out[key] = value
    return out


#: Two spellings of the same function of a matrix.
SPELLINGS: dict[str, tuple[Call, Call]] = {
    "sum of a number, axis 0": (lambda lib, x: lib.xp.sum(x[0, 0], axis=0), lambda lib, x: x[0, 0]),
    "max of a number, axis -1": (lambda lib, x: lib.xp.max(x[0, 0], axis=-1), lambda lib, x: x[0, 0]),
    "sum, every axis": (lambda lib, x: lib.xp.sum(x, axis=(0, 1)), lambda lib, x: lib.xp.sum(x)),
    "sum, from behind": (lambda lib, x: lib.xp.sum(x, axis=-2), lambda lib, x: lib.xp.sum(x, axis=0)),
    "mean, from behind": (lambda lib, x: lib.xp.mean(x, axis=(-1, -2)), lambda lib, x: lib.xp.mean(x)),
    "min, from behind": (lambda lib, x: lib.xp.min(x, axis=-1), lambda lib, x: -lib.xp.max(-x, axis=1)),
    "var, kept": (lambda lib, x: lib.xp.var(x, axis=-2, keepdims=True), lambda lib, x: lib.xp.var(x, axis=0)[None, :]),
    "std, all, kept": (lambda lib, x: lib.xp.std(x, keepdims=True), lambda lib, x: lib.xp.reshape(lib.xp.std(x), (1, 1))),
    "prod, all, kept": (lambda lib, x: lib.xp.prod(x, keepdims=True), lambda lib, x: lib.xp.reshape(lib.xp.prod(x), (1, 1))),
    "cumulative_sum of a row": (lambda lib, x: lib.xp.cumulative_sum(x[0]), lambda lib, x: lib.xp.cumulative_sum(x, axis=1)[0]),
    "cumulative_prod of a row": (lambda lib, x: lib.xp.cumulative_prod(x[0]), lambda lib, x: lib.xp.cumulative_prod(x, axis=1)[0]),
    "cumulative_prod, a first one": (
        lambda lib, x: lib.xp.cumulative_prod(x, axis=1, include_initial=True),
        lambda lib, x: lib.xp.concat([lib.xp.ones_like(x[:, :1]), lib.xp.cumulative_prod(x, axis=1)], axis=1),
    ),
    "diff, once": (lambda lib, x: lib.xp.diff(x), lambda lib, x: x[:, 1:] - x[:, :-1]),
    "diff, never": (lambda lib, x: lib.xp.diff(x, n=0), lambda lib, x: x * 1),
    "diff, to nothing": (lambda lib, x: lib.xp.sum(lib.xp.diff(x, axis=0, n=3)) + x, lambda lib, x: x * 1),
    "diff, more around": (
        lambda lib, x: lib.xp.diff(x, axis=1, prepend=x[:, 2:], append=x[:, :1]),
        lambda lib, x: lib.xp.concat([x, x[:, :1]], axis=1) - lib.xp.concat([x[:, 2:], x], axis=1),
    ),
    "take from a row": (lambda lib, x: lib.xp.take(x[0], lib.indices([2, -1])), lambda lib, x: x[0, 2] + 0 * x[0, :2]),
    "take, from behind": (lambda lib, x: lib.xp.take(x, lib.indices([0, 2]), axis=-1), lambda lib, x: x[:, ::2]),
    "take_along_axis, the last": (
        lambda lib, x: lib.xp.take_along_axis(x, lib.indices([[1], [0]])),
        lambda lib, x: lib.xp.concat([x[:1, 1:2], x[1:, :1]]),
    ),
    "reshape, a number": (lambda lib, x: lib.xp.reshape(x, 6), lambda lib, x: lib.xp.reshape(x, (6,))),
    "reshape, unknown": (lambda lib, x: lib.xp.reshape(x, -1), lambda lib, x: lib.xp.reshape(x, (6,))),
    "reshape, a copy": (lambda lib, x: lib.xp.reshape(x, (3, 2), copy=True), lambda lib, x: lib.xp.reshape(x, (3, 2))),
    "reshape, no copy": (lambda lib, x: lib.xp.reshape(x, (3, 2), copy=False), lambda lib, x: lib.xp.reshape(x, (3, 2))),
    "squeeze, one": (lambda lib, x: lib.xp.squeeze(x[None], axis=0), lambda lib, x: x * 1),
    "squeeze, the method": (lambda lib, x: x[None, :, None].squeeze(), lambda lib, x: x * 1),
    "expand_dims, several": (
        lambda lib, x: lib.xp.expand_dims(lib.xp.expand_dims(x, axis=-1), axis=0),
        lambda lib, x: lib.xp.reshape(x, (1, 2, 3, 1)),
    ),
    "einsum, the rest": (lambda lib, x: lib.xp.einsum("...ij,kj->...ik", x[None], x), lambda lib, x: (x @ x.T)[None]),
    "einsum, stretched": (lambda lib, x: lib.xp.einsum("ij,ij->i", x, x[:1]), lambda lib, x: lib.xp.sum(x * x[:1], axis=1)),
    "einsum, the rest, by itself": (lambda lib, x: lib.xp.einsum("...i,i", x, x[0]), lambda lib, x: lib.xp.sum(x * x[0], axis=1)),
    "einsum, by itself": (lambda lib, x: lib.xp.einsum("ji,ki", x, x), lambda lib, x: x @ x.T),
    "einsum, one operand": (lambda lib, x: lib.xp.einsum("ij->ji", x), lambda lib, x: x.T),
    "einsum, nothing to sum": (lambda lib, x: lib.xp.einsum("ij,ij->ji", x, x), lambda lib, x: (x * x).T),
    "einsum, every product": (lambda lib, x: lib.xp.einsum("i,j->ij", x[0], x[1]), lambda lib, x: x[0][:, None] * x[1]),
    "full of a number": (
        lambda lib, x: lib.xp.full((2, 3), x[0, 0]) if not lib.oracle else x[0, 0].expand(2, 3),
        lambda lib, x: lib.xp.broadcast_to(x[0, 0], (2, 3)),
    ),
    "moveaxis, several": (
        lambda lib, x: lib.xp.moveaxis(x[None], (0, 2), (-1, 0)),
        lambda lib, x: lib.xp.permute_dims(x[None], (2, 1, 0)),
    ),
    "broadcast_to, a number": (lambda lib, x: lib.xp.broadcast_to(x[0, 0], 4), lambda lib, x: lib.xp.concat([x[0, :1]] * 4)),
    "broadcast_arrays, a number": (
        lambda lib, x: lib.xp.broadcast_arrays(x, x[0, 0])[1],
        lambda lib, x: lib.xp.broadcast_to(x[0, 0], (2, 3)),
    ),
    "repeat, all": (lambda lib, x: lib.xp.repeat(x, 2), lambda lib, x: lib.xp.repeat(lib.xp.reshape(x, (6,)), 2, axis=0)),
    "repeat, one number": (lambda lib, x: lib.xp.repeat(x, lib.indices([2]), axis=0), lambda lib, x: lib.xp.repeat(x, 2, axis=0)),
    "repeat, an array of numbers": (
        lambda lib, x: lib.xp.repeat(x, lib.indices([1, 0, 2]) if lib.oracle else np.asarray([1, 0, 2], "int32"), axis=1),
        lambda lib, x: lib.xp.take(x, lib.indices([0, 2, 2]), axis=1),
    ),
    "repeat, never": (lambda lib, x: lib.xp.sum(lib.xp.repeat(x, 0, axis=1)) + x, lambda lib, x: x * 1),
    "tile, a number": (lambda lib, x: lib.xp.tile(x, (2,)), lambda lib, x: lib.xp.concat([x, x], axis=1)),
    "flip, one of two": (lambda lib, x: lib.xp.flip(x, axis=(-1,)), lambda lib, x: lib.xp.take(x, lib.indices([2, 1, 0]), axis=1)),
    "roll, more than there are": (lambda lib, x: lib.xp.roll(x, 4, axis=1), lambda lib, x: lib.xp.roll(x, 1, axis=1)),
    "roll, NumPy's integer": (lambda lib, x: lib.xp.roll(x, np.int64(1), axis=1), lambda lib, x: lib.xp.roll(x, 1, axis=1)),
    # The remainders of 2 ** 40 are 1 for three elements and 4 for six.
    "roll, many turns": (lambda lib, x: lib.xp.roll(x, 2**40, axis=1), lambda lib, x: lib.xp.roll(x, 1, axis=1)),
    "roll, many turns of all": (lambda lib, x: lib.xp.roll(x, 2**40), lambda lib, x: lib.xp.roll(x, 4)),
    "roll, many turns of two axes": (
        lambda lib, x: lib.xp.roll(x, (1, -(2**40)), axis=(0, 1)),
        lambda lib, x: lib.xp.roll(x, (1, 2), axis=(0, 1)),
    ),
    "roll, an axis twice": (lambda lib, x: lib.xp.roll(x, (1, 1), axis=(1, 1)), lambda lib, x: lib.xp.roll(x, -1, axis=1)),
    "concat, one": (lambda lib, x: lib.xp.concat((x,), axis=1), lambda lib, x: x * 1),
    "concat, from behind": (lambda lib, x: lib.xp.concat([x, x], axis=-1), lambda lib, x: lib.xp.tile(x, (1, 2))),
    "stack, one": (lambda lib, x: lib.xp.stack((x,)), lambda lib, x: x[None] * 1),
    "unstack, from behind": (lambda lib, x: lib.xp.unstack(x, axis=-1)[1], lambda lib, x: x[:, 1] * 1),
    "tril, all of it": (lambda lib, x: lib.xp.tril(x, k=5), lambda lib, x: x * 1),
    "triu, nothing of it": (lambda lib, x: lib.xp.triu(x, k=3) + x, lambda lib, x: x * 1),
    "where, a number": (lambda lib, x: lib.xp.where(x > 0.5, x, lib.constant(2.0)), lambda lib, x: x * (x > 0.5) + 2.0 * (x <= 0.5)),
    "clip, both from a Tensor": (
        lambda lib, x: lib.xp.clip(x, lib.constant(-0.5), lib.constant(0.7)),
        lambda lib, x: lib.xp.clip(x, -0.5, 0.7),
    ),
    "clip, nothing": (lambda lib, x: lib.xp.clip(x), lambda lib, x: x * 1),
    "tensordot, no axes": (lambda lib, x: lib.xp.tensordot(x[0], x[1], axes=0), lambda lib, x: lib.xp.linalg.outer(x[0], x[1])),
    "tensordot, two axes": (lambda lib, x: lib.xp.tensordot(x, x), lambda lib, x: lib.xp.sum(x * x)),
    "tensordot, from behind": (
        lambda lib, x: lib.xp.tensordot(x, x, axes=((-1,), (-1,))),
        lambda lib, x: lib.xp.matmul(x, lib.xp.matrix_transpose(x)),
    ),
    "vector_norm, all": (lambda lib, x: lib.xp.linalg.vector_norm(x, ord=2), lambda lib, x: lib.xp.sqrt(lib.xp.sum(x * x))),
    "vector_norm, 0": (lambda lib, x: lib.xp.linalg.vector_norm(x, ord=0) + lib.xp.sum(x), lambda lib, x: lib.xp.sum(x) + 6.0),
    "matrix_norm, fro": (lambda lib, x: lib.xp.linalg.matrix_norm(x, ord="fro"), lambda lib, x: lib.xp.linalg.matrix_norm(x)),
    "matrix_power, 0": (
        lambda lib, x: lib.xp.linalg.matrix_power(x[:, :2], 0) + x[:, :2],
        lambda lib, x: x[:, :2] + lib.constant(np.eye(2)),
    ),
    "cross, from behind": (
        lambda lib, x: lib.xp.linalg.cross(x[0], x[1], axis=-1),
        lambda lib, x: lib.xp.take(x[0], lib.indices([1, 2, 0])) * lib.xp.take(x[1], lib.indices([2, 0, 1]))
        - lib.xp.take(x[0], lib.indices([2, 0, 1])) * lib.xp.take(x[1], lib.indices([1, 2, 0])),
    ),
    "where, a number and a Tensor": (
        lambda lib, x: lib.xp.where(x > 0.5, 2.0, x) if not lib.oracle else x * (x <= 0.5) + 2.0 * (x > 0.5),
        lambda lib, x: x * (x <= 0.5) + 2.0 * (x > 0.5),
    ),
    "diagonal, beyond the last": (lambda lib, x: lib.xp.sum(lib.xp.linalg.diagonal(x, offset=5)) + x, lambda lib, x: x * 1),
    "x.expand": (lambda lib, x: x[:, :1].expand(-1, 3), lambda lib, x: lib.xp.broadcast_to(x[:, :1], (2, 3))),
    "cross, stretched": (
        lambda lib, x: lib.xp.linalg.cross(lib.xp.broadcast_to(x[:1], (2, 3)) if lib.oracle else x[:1], x),
        lambda lib, x: lib.xp.stack([x[0] * 0, lib.xp.linalg.cross(x[0], x[1])]),
    ),
    "take_along_axis, stretched": (
        lambda lib, x: lib.xp.take_along_axis(x, lib.indices([[1, 0]] * (2 if lib.oracle else 1)), axis=1),
        lambda lib, x: lib.xp.flip(x[:, :2], axis=1),
    ),
    "times NumPy's numbers": (lambda lib, x: np.float64(2.0) * (x * np.float64(1.5)) + np.int64(3), lambda lib, x: 3.0 * x + 3.0),
    "x[i, :, j]": (
        lambda lib, x: x[None][lib.indices([0, 0]), :, lib.indices([1, 2])],
        lambda lib, x: lib.xp.permute_dims(x[:, 1:], (1, 0)),
    ),
    "x[:, i, None, j]": (
        lambda lib, x: x[None, None][:, lib.indices([0, 0]), None, :, lib.indices([1, 2])],
        lambda lib, x: lib.xp.reshape(lib.xp.permute_dims(x[:, 1:], (1, 0)), (2, 1, 1, 2)),
    ),
    "x.T": (lambda lib, x: x.T, lambda lib, x: lib.xp.permute_dims(x, (1, 0))),
    "x.mT": (lambda lib, x: x[None].mT, lambda lib, x: lib.xp.permute_dims(x, (1, 0))[None]),
    "x[(0,)]": (lambda lib, x: x[(0,)], lambda lib, x: x[0]),
    "x[..., 0]": (lambda lib, x: x[..., 0], lambda lib, x: x[:, 0]),
    "x[None, ..., None]": (lambda lib, x: x[None, ..., None], lambda lib, x: lib.xp.reshape(x, (1, 2, 3, 1))),
    "x[-1:]": (lambda lib, x: x[-1:], lambda lib, x: x[1:2]),
    "x[5:]": (lambda lib, x: lib.xp.sum(x[5:]) + x, lambda lib, x: x * 1),
    "x[:, -5:9]": (lambda lib, x: x[:, -5:9], lambda lib, x: x * 1),
    "x[:, 2:0]": (lambda lib, x: lib.xp.sum(x[:, 2:0]) + x, lambda lib, x: x * 1),
    "x[NumPy's integer]": (lambda lib, x: x[np.int64(1), np.int32(-1)], lambda lib, x: x[1, 2]),
    "x[a Tensor's integer]": (lambda lib, x: x[lib.indices(1)], lambda lib, x: x[1]),
    "x[a list]": (lambda lib, x: x[[1, 0]], lambda lib, x: lib.xp.flip(x, axis=0)),
    "x[i, 1:]": (lambda lib, x: x[lib.indices([1, 0]), 1:], lambda lib, x: lib.xp.flip(x, axis=0)[:, 1:]),
    "x[..., i]": (lambda lib, x: x[..., lib.indices([2, 2])], lambda lib, x: x[:, 2:] + 0 * x[:, :2]),
    "x[None, i]": (lambda lib, x: x[None, lib.indices([1, 0])], lambda lib, x: lib.xp.flip(x, axis=0)[None]),
    "x[0, i]": (lambda lib, x: x[0, lib.indices([2, 1])], lambda lib, x: lib.xp.flip(x[0])[:2]),
    "x[a truth]": (lambda lib, x: x[lib.constant(True, "bool")], lambda lib, x: x[None]),
    "x[a mask of rows]": (lambda lib, x: x[lib.constant([False, True], "bool")], lambda lib, x: x[1:]),
    "x[i, a mask]": (lambda lib, x: x[lib.indices([1]), lib.constant([False, True, False], "bool")], lambda lib, x: x[1, 1:2]),
    "x[no indices]": (lambda lib, x: lib.xp.sum(x[lib.indices([])]) + x, lambda lib, x: x * 1),
    "2 - x": (lambda lib, x: 2 - x, lambda lib, x: -(x - 2)),
    "2 ** x": (lambda lib, x: 2**x, lambda lib, x: lib.xp.exp(x * math.log(2.0))),
    "2.3 // x": (lambda lib, x: 2.3 // x + x, lambda lib, x: lib.xp.floor(2.3 / x) + x),
    "2.3 % x": (lambda lib, x: 2.3 % x, lambda lib, x: 2.3 - x * lib.xp.floor(2.3 / x).detach()),
    "x // 0.7": (lambda lib, x: x // 0.7 + x, lambda lib, x: lib.xp.floor(x / 0.7) + x),
    "2 > x": (lambda lib, x: x * (x < 2) * (x <= 1), lambda lib, x: x * (x <= 1)),
    "2 < x": (lambda lib, x: x * (x > 0.5) + x * (x >= 0.5), lambda lib, x: 2 * x * (x > 0.5)),
    "x[None] = v": (lambda lib, x: write(x, None, (x * x)[None, None]), lambda lib, x: x * x),
    "x[0, None] = v": (lambda lib, x: write(x, (0, None), x[1:] * 2), lambda lib, x: lib.xp.concat([x[1:] * 2, x[1:]])),
    "x[..., None, 1:] = v": (
        lambda lib, x: write(x, (..., None, slice(1, None)), x[:, None, :1] * 3),
        lambda lib, x: lib.xp.concat([x[:, :1], x[:, :1] * 3, x[:, :1] * 3], axis=1),
    ),
    "x[i] = v, a column": (
        lambda lib, x: write(x[:, :1], lib.indices([1]), x[:1, 1:2] * 5),
        lambda lib, x: lib.xp.concat([x[:1, :1], x[:1, 1:2] * 5]),
    ),
    "x[i] = v, a row": (lambda lib, x: write(x[:1], (slice(None), lib.indices([2, 0])), x[1:, :2]), lambda lib, x: lib.xp.take(
        lib.xp.concat([x[:1], x[1:]], axis=1), lib.indices([4, 1, 3]), axis=1)),
    "x[i] = a number": (
        lambda lib, x: write(x, (slice(None), lib.indices([-1, 0])), 2.0),
        lambda lib, x: x * lib.constant([0.0, 1.0, 0.0]) + lib.constant([2.0, 0.0, 2.0]),
    ),
    "x[i] = v, nowhere": (lambda lib, x: write(x, lib.indices([]), x[:0]), lambda lib, x: x * 1),
    "x[i], a column": (lambda lib, x: x[:, :1][lib.indices([1, 1])], lambda lib, x: lib.xp.concat([x[1:, :1]] * 2)),
    "linspace, of Tensors": (
        lambda lib, x: lib.xp.linspace(x[0, 0], x[1, 1], 4),
        lambda lib, x: x[0, 0] + (x[1, 1] - x[0, 0]) * lib.constant([0.0, 1 / 3, 2 / 3, 1.0]),
    ),
    "linspace, without its end": (
        lambda lib, x: lib.xp.linspace(0.5, x[1, 1], 2, endpoint=False),
        lambda lib, x: 0.5 + (x[1, 1] - 0.5) * lib.constant([0.0, 0.5]),
    ),
    "x == x": (lambda lib, x: x * (x == x) * (x != 0.6), lambda lib, x: x * (abs(x - 0.6) > 0.01)),
}  # fmt: skip
#: Spellings that PyTorch 2.13 lacks or computes differently.
NOT_PYTORCH = frozenset((
    "reshape, a number", "reshape, unknown", "broadcast_to, a number", "repeat, one number", "clip, nothing", "reshape, no copy",
    "2.3 // x", "2.3 % x", "x // 0.7", "linspace, of Tensors", "linspace, without its end",
))  # fmt: skip

#: Operators with integer operands on either side, which NumPy evaluates as well.
INTEGERS: tuple[Callable[[Any], Any], ...] = (
    lambda n: n + 2, lambda n: 2 - n, lambda n: n * 3, lambda n: n // 2, lambda n: 7 // n, lambda n: n % 2, lambda n: 7 % n, lambda n: n**2,
    lambda n: n & 3, lambda n: 6 & n, lambda n: n | 8, lambda n: 8 | n, lambda n: n ^ 5, lambda n: 5 ^ n, lambda n: n << 2,
    lambda n: 1 << n, lambda n: n >> 1, lambda n: 64 >> n, lambda n: ~n, lambda n: -n, lambda n: abs(n - 3), lambda n: n < 3,
    lambda n: n >= 3, lambda n: n == 3, lambda n: n != 3, lambda n: n & n, lambda n: n | (n + 1), lambda n: n ^ (n + 1), lambda n: n << n,
    lambda n: (n * 9) >> n,
)  # fmt: skip


def check_spellings(lib: Any) -> None:
    """Check that the two spellings have the same values and gradients."""
    every = 2 if lib.capabilities["lazy"] or lib.capabilities["jit"] else 1  # such libraries compile or plan each function first
    for name, (one, other) in list(SPELLINGS.items())[::every]:
        if lib.oracle and name in NOT_PYTORCH:
            continue
        with lib.case(name):
            x = lib.tensor(X)
            y, z = one(lib, x), other(lib, x)
            z = lib.xp.broadcast_to(z, tuple(y.shape)) if tuple(z.shape) != tuple(y.shape) else z
            near = {"rtol": exact(lib), "atol": exact(lib)}
            lib.equal(y, lib.value(z), **near)
            g, h = (lib.grad(lib.xp.sum(v * v * 0.5 + v), x)[0] for v in (y, z))
            lib.equal(g, lib.value(h), **near)
            if y.ndim:
                with lib.ns.no_grad():
                    lib.equal(one(lib, x), lib.value(z), **near)


def check_operators(lib: Any) -> None:
    """Check operators with integers and booleans on either side."""
    n = np.asarray([1, 2, 3, 5])
    for k, call in enumerate(INTEGERS):
        with lib.case(f"integers, {k}"):
            out = call(lib.indices(n))
            assert not out.requires_grad
            np.testing.assert_array_equal(lib.value(out), call(n))
    a, b = np.asarray([True, False, True]), np.asarray([True, True, False])
    s, t = lib.constant(a, "bool"), lib.constant(b, "bool")
    pairs: tuple[Call, ...] = (lambda p, q: p & q, lambda p, q: p | q, lambda p, q: p ^ q, lambda p, q: ~p, lambda p, q: p == q)
    for k, of_two in enumerate(pairs):
        with lib.case(f"bools, {k}"):
            np.testing.assert_array_equal(lib.value(of_two(s, t)), of_two(a, b))


def check_conversions(lib: Any) -> None:
    """Check Tensors made from a Tensor: the same one, a copy, another dtype."""
    xp, x = lib.xp, lib.tensor(X)
    for same in (xp.asarray(x, device=x.device), xp.asarray(x, device=x.device, copy=True)):
        lib.equal(same, X)
        assert same.device == x.device
        lib.equal(lib.grad(xp.sum(same * same), x)[0], 2 * X)
    for create in (xp.zeros_like, xp.ones_like, xp.empty_like):
        made = create(x, device=x.device)
        assert (made.device, made.dtype, tuple(made.shape), made.requires_grad) == (x.device, x.dtype, X.shape, False)
        assert create(x, dtype=lib.dtype(lib.narrow)).dtype == lib.dtype(lib.narrow)
    for dtype in (lib.real, lib.narrow):
        made = lib.constant(X, dtype)
        assert (np.asarray(made).dtype, np.asarray(made, dtype="int64").dtype) == (np.dtype(dtype), np.dtype("int64"))
    y = xp.asarray(x, copy=True)
    lib.equal(y, X)
    assert y is not x
    assert not (lib.sees_memory and lib.same_memory(x, y))
    lib.equal(lib.grad(xp.sum(y * y), x)[0], 2 * X)
    narrow = xp.asarray(x, dtype=lib.dtype(lib.narrow))
    assert narrow.dtype == lib.dtype(lib.narrow)
    g = lib.grad(xp.sum(narrow * 2), x)[0]
    assert g.dtype == x.dtype
    lib.equal(g, np.full(X.shape, 2.0))
    names = {"float": "float32", "double": "float64", "half": "float16", "long": "int64"}
    for method, name in names.items():
        if lib.has_dtype(name):
            with lib.case(method):
                assert getattr(x, method)().dtype == lib.dtype(name)
    if not lib.oracle:  # PyTorch has no function `astype`
        copied = xp.astype(x.detach(), x.dtype)
        copied[0] = 7.0
        lib.equal(x, X)
        assert xp.astype(x, x.dtype, copy=False) is x
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    assert not xp.asarray(x > 0, dtype=lib.dtype(lib.real)).requires_grad
    lib.equal(xp.astype(x > 0, lib.dtype(lib.real)), (X > 0) * 1.0)
    lib.equal(xp.astype(lib.constant([1.7, -1.7]), lib.dtype(lib.index)), [1, -1])
    if lib.capabilities["complex"]:
        z = lib.constant([0.0, 1j, 1.0, -0.5j], lib.complex)
        assert lib.value(xp.astype(z, lib.dtype("bool"))).tolist() == [False, True, True, True]
        with lib.case("to a complex dtype"):
            z = xp.astype(x, lib.dtype(lib.complex))
            lib.equal(lib.grad(xp.sum(xp.real(z * (2.0 - 1.0j))), x)[0], np.full(X.shape, 2.0))
        if lib.has_dtype("complex128"):  # of each element of a batch the imaginary part stays
            given = np.asarray([[1.0 + 2.0j, -0.5j], [4.0, 3.0 - 1.0j]])
            rows = xp.astype(lib.constant(given, "complex128"), lib.dtype("complex64"))
            lib.equal(lib.module("func").vmap(lambda row: xp.astype(row, lib.dtype("complex128")))(rows), given)


def check_data(lib: Any) -> None:
    """Check Tensors made from Python's and NumPy's data."""
    ns, real = lib.ns, lib.dtype(lib.real)
    for given in (1.5, 2, True, [1.0, 2.0], [[1, 2], [3, 4]], ((1.0,), (2.0,)), [], np.float64(2.5), np.int32(3), X, X.T, np.asarray(2.0)):
        with lib.case(repr(given)):
            t = ns.tensor(given, dtype=real)
            assert t.is_leaf
            assert not t.requires_grad
            lib.equal(t, np.asarray(given, dtype=lib.real))
            r = ns.tensor(given, dtype=real, requires_grad=True)
            assert r.is_leaf
            assert r.requires_grad
    for name in ("zeros", "ones", "empty"):
        create = getattr(ns, name)
        assert [tuple(t.shape) for t in (create(2, 3), create(4), create((2, 3)), create(()))] == [(2, 3), (4,), (2, 3), ()]
        with lib.raises(TypeError):
            create(2, "3")
        if not lib.oracle:  # PyTorch takes True for a length of 1
            with lib.raises(TypeError, name):
                create(2, True)
    kinds = [str(ns.asarray(v).dtype).rpartition(".")[2].rstrip("0123456789") for v in (1.5, 2, True, [1, 2.0], [True, 2])]
    assert kinds == ["float", "int", "bool", "float", "int"], kinds
    if lib.capabilities["complex"]:
        assert "complex" in str(ns.asarray([1.0, 2j]).dtype)


def check_copies(lib: Any) -> None:
    """Check copies and pickles of a leaf that requires grad, and of a constant."""
    x = lib.tensor(X)
    x.grad = lib.constant(2 * X)
    shallow = copy.copy(x)
    lib.equal(shallow, X)
    assert lib.oracle or lib.value(shallow.grad).tolist() == lib.value(x.grad).tolist()  # PyTorch's copies drop it
    for how in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        assert how(x.device) == x.device
        assert how(x.dtype) == x.dtype
    assert x.device != 3
    assert shallow.requires_grad
    for how in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        y = how(x)
        assert y.is_leaf
        assert y.requires_grad
        assert y is not x
        assert not (lib.sees_memory and lib.same_memory(x, y))
        lib.equal(y, X)
        if how is copy.deepcopy or not lib.oracle:  # PyTorch's pickles drop it
            lib.equal(y.grad, 2 * X)
        lib.equal(lib.grad(lib.xp.sum(y * y), y)[0], 2 * X)
        c = how(x.detach())
        assert not c.requires_grad
        lib.equal(c, X)
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    lib.equal(copy.deepcopy(x.detach()[1:]), X[1:])  # a view is copied with its base
    function = lib.fn(lambda ctx, v: v, lambda ctx, g: g).apply
    for name, take in {"a part": lambda v: v[1:], "of a Function": lambda v: function(v[1:])}.items():
        with lib.case(name):
            base = lib.constant(X)
            whole, part = copy.deepcopy([base, take(base)])
            whole[1] = 5.0
            lib.equal(part, np.full((1, 3), 5.0))
            lib.equal(base, X)
    if not lib.oracle:  # PyTorch refuses to copy what carries a derivative
        func = lib.module("func")
        lib.equal(func.vmap(lambda v: copy.deepcopy(v) * 2)(x.detach()), 2 * X)
        lib.equal(func.grad(lambda v: lib.xp.sum(copy.deepcopy(v) * v))(x.detach()), 2 * X)
    with lib.raises(RuntimeError):
        copy.deepcopy(x * 2)


def check_numbers(lib: Any) -> None:
    """Check conversions of Tensors to Python's numbers and to text."""
    s, n = lib.constant(2.5), lib.constant(3, lib.index)
    assert (float(s), int(s), int(n), float(n), bool(s), s.item(), n.item()) == (2.5, 2, 3, 3.0, True, 2.5, 3)
    assert [10, 11, 12, 13][n] == 13
    assert (type(s.item()), type(n.item()), type((s > 1).item())) == (float, int, bool)
    assert f"{s:.2f}" == "2.50"
    assert (len(lib.constant(X)), [len(row) for row in lib.constant(X)]) == (2, [3, 3])
    assert lib.constant(X).tolist() == X.astype(lib.real).tolist()
    if lib.capabilities["complex"]:
        assert complex(lib.constant(1.5 - 2j, lib.complex)) == 1.5 - 2j
    # The text has the values (or the shape if there are none), attributes that are not the default, and the name of the node.
    shape = lambda text: "size=" in text or "shape=" in text  # noqa: E731
    empty, plain, leaf = repr(lib.constant(np.zeros((0, 3)))), repr(lib.constant(X)), repr(lib.tensor(X))
    assert shape(empty)
    assert "(0, 3)" in empty
    assert not shape(plain)
    assert "0.4" in plain or lib.capabilities["lazy"]
    assert "requires_grad=True" in leaf
    assert "requires_grad" not in plain
    assert "grad_fn=<MulBackward0>" in repr(lib.tensor(X) * 2)
    node, later = (lib.tensor(X) * 2).grad_fn, (lib.tensor(X) * 3).grad_fn
    assert repr(node).startswith("<MulBackward0 object at 0x")
    assert node._sequence_nr() < later._sequence_nr()
    assert f"{lib.constant(X)}" == str(lib.constant(X))
    assert "int8" in repr(lib.constant([1, 2], "int8"))
    assert "dtype" not in repr(lib.constant([True], "bool"))
    if not lib.capabilities["lazy"]:
        assert "2.5" in repr(s)
        assert "..." in repr(lib.constant(np.zeros(100000)))
    np.testing.assert_array_equal(np.asarray(lib.constant(ROW)), ROW.astype(lib.real))
    assert lib.constant(ROW).numpy().dtype == lib.real
    with lib.ns.no_grad():  # without recording, no history is lost
        for how in (lambda t: t.numpy(), np.asarray):
            np.testing.assert_array_equal(how(lib.tensor(ROW)), ROW.astype(lib.real))


def check_dtypes(lib: Any) -> None:
    """Compare functions of dtypes with the standard and with NumPy."""
    xp = lib.xp
    real, narrow, index, truth = (lib.dtype(name) for name in (lib.real, lib.narrow, lib.index, "bool"))
    assert xp.result_type(narrow, real) == xp.result_type(lib.constant(1.0), narrow) == real
    assert xp.result_type(lib.constant([1.0], lib.narrow), 2.0) == narrow
    whole = lib.constant([1, 2], lib.index)
    assert xp.result_type(whole, 2.0) == (whole * 2.0).dtype  # the device's default dtype
    assert xp.result_type(lib.dtype("int8"), lib.dtype("uint8")) == lib.dtype("int16")
    kinds = {
        "bool": (truth,), "signed integer": (index,), "unsigned integer": (lib.dtype("uint8"),), "integral": (index, lib.dtype("uint8")),
        "real floating": (real, narrow), "numeric": (index, real, lib.dtype("uint8"), narrow),
    }  # fmt: skip
    for kind, members in kinds.items():
        assert [d for d in (truth, index, real, lib.dtype("uint8"), narrow) if xp.isdtype(d, kind)] == [
            d for d in (truth, index, real, lib.dtype("uint8"), narrow) if d in members
        ], kind
    assert xp.can_cast(lib.constant([1.0], lib.narrow), real)
    if lib.capabilities["complex"]:
        assert float(xp.finfo(lib.dtype("complex64")).eps) == float(np.finfo("float32").eps)
    assert xp.isdtype(real, ("bool", "real floating"))
    assert xp.isdtype(real, real)
    assert not xp.isdtype(real, (truth, "integral"))
    assert not xp.isdtype(real, narrow)
    for name in (lib.real, lib.narrow):
        ours, numpys = xp.finfo(lib.dtype(name)), np.finfo(name)
        assert [float(v) for v in (ours.eps, ours.max, ours.min, ours.smallest_normal)] == [
            float(v) for v in (numpys.eps, numpys.max, numpys.min, numpys.smallest_normal)
        ]
        assert ours.bits == numpys.bits
    for name in ("int8", "uint8", lib.index):
        info, known = xp.iinfo(lib.dtype(name)), np.iinfo(name)
        assert (info.bits, info.max, info.min) == (known.bits, known.max, known.min)
    if not lib.oracle:
        assert xp.can_cast(np.zeros(2, lib.narrow), real)
        assert not xp.can_cast(np.zeros(2, lib.real), narrow)
        assert [xp.can_cast(a, b) for a, b in ((narrow, real), (real, narrow), (index, truth), (lib.dtype("int8"), index))] == [
            True,
            False,
            False,
            True,
        ]
        assert [xp.broadcast_shapes(*shapes) for shapes in (((2, 1), (3,)), ((), (2,)), ((0, 1), (1, 4)), ())] == [(2, 3), (2,), (0, 4), ()]
        names = [np.dtype(lib.real), np.dtype(lib.real).type, lib.real, real]
        assert all(xp.zeros(2, dtype=d).dtype == real for d in names)
        assert xp.zeros(2, dtype=bool).dtype == truth
        # A dtype equals its name and what NumPy and Python call it, and nothing else.
        assert all(real == d for d in names)
        assert all(truth == d for d in (bool, "bool", np.bool_))
        assert not any(real == d for d in (narrow, lib.narrow, "some", 3, None, np.int8, np.dtype("int8"), int))
        assert "int" in str(xp.zeros(2, dtype=int).dtype)
        # NumPy's types that are named as in C are dtypes, and its abstract types are not.
        assert [xp.zeros(2, dtype=d).dtype == np.dtype(d).name for d in (np.intc, np.short)] == [True, True]
        if lib.has_dtype("int64"):
            assert xp.zeros(2, dtype=np.longlong).dtype == lib.dtype("int64")
        for abstract in (np.floating, np.integer, np.generic):
            assert real != abstract
            with lib.raises(TypeError):
                xp.zeros(2, dtype=abstract)
    y = xp.prod(lib.tensor(ROW, dtype=lib.narrow), dtype=real)
    assert y.dtype == real
    lib.equal(y, np.prod(ROW.astype(lib.narrow).astype(lib.real)))
    x = lib.tensor(ROW)
    y = xp.prod(x, dtype=real)
    lib.equal(lib.grad(y * y, x)[0], 2 * np.prod(ROW) ** 2 / ROW)
    assert xp.prod(x, axis=0, dtype=narrow).dtype == narrow
    small = xp.prod(lib.constant([2, 3], "int8"), dtype=lib.dtype("int8"))
    assert (small.dtype, small.item()) == (lib.dtype("int8"), 6)


def check_comparisons(lib: Any) -> None:
    """Check `isclose`, `allclose` and `searchsorted`, with Python's numbers on either side."""
    xp, nan, inf = lib.xp, math.nan, math.inf
    x, y = lib.constant([nan, 1.0, inf, 2.0, 0.0]), lib.constant([nan, 1.000001, inf, 2.1, 1e-9])
    for options, same in (({}, [False, True, True, False, True]), ({"equal_nan": True}, [True, True, True, False, True])):
        with lib.case(options):
            assert lib.value(xp.isclose(x, y, **options)).tolist() == same
    assert lib.value(xp.isclose(x, y, rtol=0.1, atol=0.0)).tolist() == [False, True, True, True, False]
    assert lib.value(xp.isclose(x, y, rtol=0.0, atol=0.2)).tolist() == [False, True, True, True, True]
    assert [bool(xp.allclose(x[1:3], y[1:3])), bool(xp.allclose(x[3:], y[3:])), bool(xp.allclose(x, x))] == [True, False, False]
    assert bool(xp.allclose(x, x, equal_nan=True))
    assert lib.value(xp.searchsorted(lib.constant([1.0, 2.0, 3.0]), 2.0)).tolist() == 1
    assert lib.value(xp.searchsorted(lib.constant([1.0, 2.0, 3.0]), 2.0, side="right")).tolist() == 2
    if not lib.oracle:  # PyTorch requires a Tensor on either side
        assert lib.value(xp.isclose(lib.constant([1, 2], lib.index), 2)).tolist() == [False, True]
        assert lib.value(xp.isclose(2.5, lib.constant([1.0, 2.5]))).tolist() == [False, True]
        assert [xp.isclose(a, b).item() for a, b in ((1.0, 1.0 + 1e-7), (1.0, 1.1), (2, 2))] == [True, False, True]
        assert lib.value(xp.searchsorted(lib.constant([1, 2, 3], lib.index), 2.5)).tolist() == 2
        assert xp.result_type(lib.constant(1.0, lib.narrow), True) == lib.dtype(lib.narrow)
        assert xp.result_type(lib.constant(True, "bool"), True) == lib.dtype("bool")
        assert xp.result_type(lib.constant(True, "bool"), 2) == lib.dtype(lib.index)
        chosen = xp.where(lib.constant([True, False], "bool"), True, False)
        assert (chosen.dtype, lib.value(chosen).tolist()) == (lib.dtype("bool"), [True, False])
        assert np.zeros(2, dtype=lib.dtype(lib.narrow)).dtype == lib.narrow
        assert (lib.constant([1, 2], "int8") * np.bool_(True)).dtype == lib.dtype("int8")
    if not lib.oracle:
        # Beside another 0-d Tensor of the host a 0-d Tensor has its dtype, beside all others it is as weak as a number.
        narrow, wide = lib.constant(2.0, lib.narrow), lib.ns.asarray(3.0, dtype=lib.dtype(lib.real), device="numpy")
        for product in (narrow * wide, wide * narrow):
            assert product.dtype == lib.dtype(lib.real if narrow.backend.is_host else lib.narrow)
    for pair in ([lib.constant([1, 2], first), lib.constant([3, 4], second)] for first, second in (("int8", "int16"), ("int16", "int8"))):
        assert [joined.dtype for joined in (xp.concat(pair), xp.stack(pair))] == [lib.dtype("int16")] * 2
    # NumPy's scalars are as weak as Python's in type promotion.
    for dtype, number in (("int8", np.int64(3)), (lib.narrow, np.float64(3)), (lib.narrow, np.int16(3)), ("float16", np.float32(3))):
        if lib.has_dtype(dtype):
            with lib.case((dtype, type(number))):
                for product in (lib.constant([1, 2], dtype) * number, number * lib.constant([1, 2], dtype)):
                    assert product.dtype == lib.dtype(dtype)
                    assert lib.value(product).tolist() == [3, 6]


def check_half_precision(lib: Any) -> None:
    """Check reductions of many 16-bit numbers: counts do not overflow, and sums are not rounded on the way."""
    for name in lib.half_dtypes():
        with lib.case(name):
            n = 5000
            x = lib.tensor(np.ones(n), True, name)
            for call, expected in ((lib.xp.mean, 1 / n), (lib.xp.max, 1 / n), (lib.xp.min, 1 / n), (lib.xp.sum, 1.0)):
                g = lib.grad(call(x), x)[0]
                assert g.dtype == x.dtype
                near = 2.0**-7
                np.testing.assert_allclose(lib.value(g.to(dtype=lib.dtype("float32"))), np.full(n, expected), rtol=near)
            assert lib.xp.mean(x).item() == 1.0
            assert lib.xp.var(x).item() == 0.0


def check_dlpack(lib: Any) -> None:
    """Check that DLPack passes on the values and no history."""
    x = lib.constant(X)
    y = lib.xp.from_dlpack(x)
    lib.equal(y, X)
    assert not y.requires_grad
    lib.equal(lib.xp.from_dlpack(x, copy=True), X)
    assert len(x.__dlpack_device__()) == 2
    if lib.sees_memory and lib.capabilities["mutable"]:
        for how in (None, True):
            found = np.from_dlpack(x, copy=how)
            np.testing.assert_array_equal(found, X.astype(lib.real))
            assert np.shares_memory(found, lib.value(x)) != bool(how)
    host = np.array(ROW, dtype=lib.real)
    there = lib.xp.from_dlpack(host)
    np.testing.assert_array_equal(np.asarray(there.numpy()), host)


@contract("DER-25")
def forms(lib: Any) -> None:
    checks = [
        *(check_spellings, check_operators, check_conversions, check_data, check_copies, check_numbers, check_dtypes, check_comparisons),
        *(check_half_precision, x_arguments.check_axes, x_arguments.check_two_names, x_arguments.check_creation, x_arguments.check_moves),
        *[check_dlpack] * lib.capabilities["dlpack"],
    ]
    for check in checks:
        with lib.case(check.__name__):
            check(lib)
