"""Law: functions that move, pick, repeat, join or contract elements return each gradient to its source, to second order.

Values are compared with NumPy, derivatives with float64 central differences and with PyTorch, on every backend; shapes, axes and
indices of every kind are drawn.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import xpgrad as xp
from support.central_differences import check, numbers, values
from xpgrad._rows.namespace import COMPOSITE, RULES
from xpgrad._rows.row import ROWS
from xpgrad.backend import axis_functions

grad = xp.autograd.grad
Function = Callable[..., Any]


def _draw_permutation(draw: Any, ndim: int) -> tuple[int, ...]:
    """Draw a permutation of axes."""
    return tuple(draw(st.permutations(range(ndim))))


def _wider(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (draw(st.integers(1, 2)), *(3 if n == 1 else n for n in shape))


def _of_axes(name: str, count: int) -> Any:
    """Return a maker of views with `count` axes as arguments: the first axis is new and has length 1, the others are drawn."""

    def make(draw: Any, s: tuple[int, ...], a: int) -> Function:
        axes = (a, *(draw(st.integers(-len(s) - 1, len(s))) for _ in range(1, count)))[:count]
        return lambda x: getattr(xp, name)(xp.expand_dims(x, axis=a), *axes) * 2

    return make


#: Each function with its drawn arguments: ``draw`` draws them, ``a`` is an axis of the operand of shape ``s``.
ONE: dict[str, Callable[[Any, tuple[int, ...], int], Function]] = {
    **{f.name: _of_axes(f.name, f.axes) for f in axis_functions() if f.kind == "view"},
    "reshape": lambda draw, s, a: lambda x: xp.reshape(x, (-1,)),
    "reshape copy": lambda draw, s, a: lambda x: xp.reshape(xp.permute_dims(x, tuple(range(len(s)))[::-1]), (*s, 1), copy=True),
    "permute_dims": lambda draw, s, a, *, k=None: (lambda order: lambda x: xp.permute_dims(x, order))(_draw_permutation(draw, len(s))),
    "transpose": lambda draw, s, a, *, k=None: (lambda order: lambda x: xp.transpose(x, order))(_draw_permutation(draw, len(s))),
    "transpose reversed": lambda draw, s, a: xp.transpose,
    "moveaxis": lambda draw, s, a: (lambda b: lambda x: xp.moveaxis(x, a, b))(draw(st.integers(-len(s), len(s) - 1))),
    "broadcast_to": lambda draw, s, a: (lambda w: lambda x: xp.broadcast_to(x, w))(_wider(draw, s)),
    "broadcast_arrays": lambda draw, s, a: lambda x: xp.broadcast_arrays(x, xp.reshape(x, (x.size, *(1,) * len(s)))),
    "repeat": lambda draw, s, a: (lambda n: lambda x: xp.repeat(x, n, axis=a))(draw(st.integers(0, 3))),
    "repeat each": lambda draw, s, a: lambda x: xp.repeat(
        x, xp.asarray([i % 3 for i in range(s[a])], dtype="int64", device=x.device), axis=a
    ),
    "tile": lambda draw, s, a: (lambda n: lambda x: xp.tile(x, n))(tuple(draw(st.lists(st.integers(1, 2), max_size=4)))),
    "flip": lambda draw, s, a: lambda x: xp.flip(x, axis=a),
    "flip all": lambda draw, s, a: lambda x: xp.flip(x),
    "roll": lambda draw, s, a: (lambda n: lambda x: xp.roll(x, n, axis=a))(draw(st.integers(-4, 4))),
    "roll all": lambda draw, s, a: (lambda n: lambda x: xp.roll(x, n))(draw(st.integers(-4, 4))),
    "roll many": lambda draw, s, a: lambda x: xp.roll(x, tuple(range(1, len(s) + 1)), axis=tuple(range(len(s)))),
    "concat": lambda draw, s, a: lambda x: xp.concat([x, x * x, x], axis=a),
    "concat flat": lambda draw, s, a: lambda x: xp.concat([x, x[..., :1]], axis=None),
    "stack": lambda draw, s, a: lambda x: xp.stack([x, x * x], axis=a),
    "unstack": lambda draw, s, a: lambda x: xp.unstack(x, axis=a),
    "pad": lambda draw, s, a: (lambda w: lambda x: xp.pad(x, w, constant_values=1.5))(
        draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    ),
    "meshgrid": lambda draw, s, a: (lambda i: lambda x: xp.meshgrid(xp.reshape(x, (-1,)), xp.reshape(x, (-1,))[:2], indexing=i))(
        draw(st.sampled_from(["xy", "ij"]))
    ),
    "full": lambda draw, s, a: lambda x: xp.full((2, 3), xp.sum(x)),
    "linspace": lambda draw, s, a: (lambda n: lambda x: xp.linspace(xp.sum(x), xp.sum(x * x), n))(draw(st.integers(0, 4))),
    "full_like": lambda draw, s, a: lambda x: xp.full_like(x, xp.sum(x)),
    "astype": lambda draw, s, a: lambda x: xp.astype(x, x.dtype) * xp.astype(xp.astype(x, x.dtype, copy=False), x.dtype),
    "asarray": lambda draw, s, a: lambda x: xp.asarray(x, copy=True) * xp.asarray(x),
    "clone": lambda draw, s, a: lambda x: x.clone() * x.contiguous(),
    "tril": lambda draw, s, a: (lambda k: lambda x: xp.tril(xp.reshape(x, (1, *s)), k=k))(draw(st.integers(-2, 2))),
    "triu": lambda draw, s, a: (lambda k: lambda x: xp.triu(xp.reshape(x, (1, *s)), k=k))(draw(st.integers(-2, 2))),
    "take": lambda draw, s, a: (lambda i: lambda x: xp.take(x, xp.asarray(i, dtype="int64", device=x.device), axis=a))(
        draw(st.lists(st.integers(-s[a], s[a] - 1), max_size=5))
    ),
    "take_along_axis": lambda draw, s, a: (
        lambda k: lambda x: xp.take_along_axis(x, xp.asarray(_indices_along(s, a, k), device=x.device), axis=a)
    )(draw(st.integers(1, 4))),
    "matmul": lambda draw, s, a: lambda x: xp.matmul(xp.matrix_transpose(xp.reshape(x, (1, *s))), xp.reshape(x, (1, *s))),
    "tensordot": lambda draw, s, a: lambda x: xp.tensordot(x, x, axes=[[a], [a]]),
    "vecdot": lambda draw, s, a: lambda x: xp.vecdot(x, x * (x + 1), axis=a - len(s)),
}  # fmt: skip


def _indices_along(shape: tuple[int, ...], axis: int, count: int) -> np.ndarray:
    """Return indices along an axis, with duplicates and negative ones."""
    size = tuple(count if i == axis else n for i, n in enumerate(shape))
    return (np.arange(int(np.prod(size))) * 7 % (2 * shape[axis])).reshape(size) - shape[axis]


def test_every_rule_of_shapes_is_in_the_table() -> None:
    chapters = [f"xpgrad.rules.{name}" for name in ("manipulation", "indexing", "creation", "linear_algebra")]
    declared = {name for table in (RULES, COMPOSITE) for name, f in table.items() if f.__module__ in chapters}
    assert declared - {name.split()[0] for name in ONE} == {"__getitem__"}  # it has separate tests below


@pytest.mark.slow(one_in=15)
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", ONE)
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=8)
def test_gradients_to_second_order(name: str, kind: str, xpgrad_device: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    function = ONE[name](data.draw, shape, axis)
    check(function, [numbers(shape, dtype=np.float64 if kind == "real" else np.complex128)], xpgrad_device)


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_joined_tensors_of_several_dtypes_and_constants(name: str, xpgrad_device: str) -> None:
    xs = [xp.tensor(numbers((2, 2), k), dtype=d, device=xpgrad_device, requires_grad=True) for k, d in enumerate(["float32", "float64"])]
    constant = xp.ones((2, 2), dtype="int32", device=xpgrad_device)
    y = getattr(xp, name)([xs[0], constant, xs[1], xs[0]])
    assert y.dtype is xp.float64
    grads = grad(xp.sum(y * y), xs)
    assert [g.dtype for g in grads] == [xp.float32, xp.float64]
    np.testing.assert_allclose(values(grads[0]), 4 * values(xs[0]), rtol=1e-6)


@pytest.mark.parametrize(("narrow", "wide"), [("float32", "float64"), ("float32", "complex64"), ("float64", "complex128")])
def test_conversions_return_the_gradient_in_the_first_dtype(narrow: str, wide: str, xpgrad_device: str) -> None:
    for first, second in ((narrow, wide), (wide, narrow)):
        x = xp.tensor(numbers((3,)), dtype=first, device=xpgrad_device, requires_grad=True)
        lost = first.startswith("complex") and not second.startswith("complex")  # CPX-06: the imaginary part is dropped with a warning
        with pytest.warns(UserWarning, match="imaginary part") if lost else contextlib.nullcontext():
            y = xp.astype(x, second)
        assert y.dtype.name == second
        (g,) = grad(xp.sum(xp.real(y) * xp.asarray([1.0, 2.0, 3.0], dtype="float32", device=xpgrad_device)), x, create_graph=True)
        assert g.dtype is x.dtype
        np.testing.assert_array_equal(values(g), [1, 2, 3])
    assert not xp.astype(xp.tensor([1.5], device=xpgrad_device, requires_grad=True), "int32").requires_grad


@pytest.mark.parametrize("function", [xp.add, xp.minimum, xp.broadcast_arrays, lambda a, b: xp.broadcast_shapes(a.shape, b.shape)])
def test_shapes_that_do_not_broadcast_are_refused_in_the_words_that_programs_look_for(function: Function) -> None:
    with pytest.raises(ValueError, match=r"shapes \(2,\), \(3,\) could not be broadcast together: axis -1 has 2 and 3"):
        function(xp.ones(2), xp.ones(3))


# -- products ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("kind", ["real", "complex"])
@given(shapes=mutually_broadcastable_shapes(signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, max_side=3, min_side=1))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_matmul_with_broadcasting(kind: str, xpgrad_device: str, shapes: Any) -> None:
    dtype = np.float64 if kind == "real" else np.complex128
    points = [numbers(s, 1.0 + k, dtype) for k, s in enumerate(shapes.input_shapes)]
    out = xp.matmul(*(xp.asarray(p, device=xpgrad_device) for p in points))
    np.testing.assert_allclose(values(out), np.matmul(*points), rtol=1e-12, atol=1e-14)
    check(xp.matmul, points, xpgrad_device)
    check(lambda a, b: a @ b, points, xpgrad_device)


@pytest.mark.parametrize("kind", ["real", "complex"])
@given(shapes=mutually_broadcastable_shapes(signature="(n),(n)->()", max_dims=2, max_side=3, min_side=1))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_vecdot_with_broadcasting(kind: str, xpgrad_device: str, shapes: Any) -> None:
    dtype = np.float64 if kind == "real" else np.complex128
    points = [numbers(s, 1.0 + k, dtype) for k, s in enumerate(shapes.input_shapes)]
    out = xp.vecdot(*(xp.asarray(p, device=xpgrad_device) for p in points))
    np.testing.assert_allclose(values(out), np.vecdot(*points), rtol=1e-12, atol=1e-14)
    check(xp.vecdot, points, xpgrad_device)


@pytest.mark.parametrize(("first", "second", "axes"), [
    ((2, 3), (3, 2), 1), ((2, 3), (2, 3), 2), ((2,), (3,), 0), ((2, 3, 2), (3, 2, 2), [[1, 0], [0, 2]]), ((3, 2), (2, 3), ((-1,), (0,))),
    ((), (2,), 0), ((2, 1), (1, 3), 1),
])  # fmt: skip
def test_tensordot(first: Any, second: Any, axes: Any, xpgrad_device: str) -> None:
    points = [numbers(first), numbers(second, 2.0, np.complex128)]
    out = xp.tensordot(*(xp.asarray(p, device=xpgrad_device) for p in points), axes=axes)
    np.testing.assert_allclose(values(out), np.tensordot(*points, axes=axes), rtol=1e-12, atol=1e-14)
    check(lambda a, b: xp.tensordot(a, b, axes=axes), points, xpgrad_device)


# -- indices -----------------------------------------------------------------------------------------------------------------------


@st.composite
def keys(draw: st.DrawFn, advanced: bool) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Draw a shape, and a key for it of integers, slices, new axes, an ellipsis and, if `advanced`, integer arrays and masks."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    common = draw(st.sampled_from([(2,), (3,), (2, 2), (1,)]))
    kinds = ["int", "slice", "slice", "new"] + ["array", "array", "mask", "0-d", "masks"] * advanced
    key: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        kind, n = draw(st.sampled_from(kinds)), shape[axis]
        if kind == "new":
            key.append(None)
            continue
        if kind == "masks" and axis + 1 < len(shape):
            key.append(np.asarray(draw(st.lists(st.booleans(), min_size=n * shape[axis + 1], max_size=n * shape[axis + 1]))).reshape(n, -1))
            axis += 2
            continue
        if kind == "int":
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            key.append(slice(draw(st.one_of(st.none(), st.integers(-4, 4))), draw(st.one_of(st.none(), st.integers(-4, 4))), step))
        elif kind == "0-d":
            key.append(np.asarray(draw(st.integers(-n, n - 1))))
        elif kind == "array":
            size = draw(st.sampled_from([common, (1,), (*common[:-1], 1)]))
            count = int(np.prod(size))
            dtype = draw(st.sampled_from(["int64", "int8", "int32"]))
            key.append(np.asarray(draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count)), dtype).reshape(size))
        else:
            key.append(np.asarray(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
        axis += 1
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), ...)
    try:
        np.empty(shape)[tuple(key)]
    except IndexError:
        assume(False)  # masks and arrays that do not broadcast together
    return shape, tuple(key)


def _key_on(key: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    return tuple(xp.asarray(k, device=device) if isinstance(k, np.ndarray) else k for k in key)


def _check_key(shape: tuple[int, ...], key: tuple[Any, ...], device: str) -> None:
    x = numbers(shape)
    leaf = xp.tensor(x, device=device, requires_grad=True)
    y = leaf[_key_on(key, device)]
    expected = x[key]
    np.testing.assert_array_equal(values(y), expected)
    assert y.shape == expected.shape
    seed = numbers(y.shape, 2.0)
    want = np.zeros(shape)
    np.add.at(want, key, seed)
    (g,) = grad(y, leaf, xp.asarray(seed, device=device))
    np.testing.assert_allclose(values(g), want, rtol=1e-12, atol=1e-14)
    check(lambda a: a[_key_on(key, str(a.device))], [x], device)


@pytest.mark.slow(one_in=3)
@given(case=keys(advanced=False))
@example(case=((3,), (slice(None, None, -1),)))
@example(case=((2, 3), (1, 2)))
@example(case=((2, 3), (None, ..., None, slice(5, None), None)))
@example(case=((2, 3), ()))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_basic_keys(case: Any, xpgrad_device: str) -> None:
    _check_key(*case, xpgrad_device)


@pytest.mark.slow(one_in=9)
@given(case=keys(advanced=True))
@example(case=((3, 2), (np.asarray([0, 0, 2, -3]),)))
@example(case=((2, 3, 2), (0, slice(None), np.asarray([1, 1]))))
@example(case=((2, 3, 2), (np.asarray([[0], [1]]), None, np.asarray([1, 1]))))
@example(case=((3, 2, 1, 2), (slice(None), np.asarray([1, 0]), slice(None), np.asarray([0, 1]))))
@example(case=((3, 2, 2), (slice(None), np.asarray([1, 0]), np.asarray([0, 1]))))
@example(case=((3, 2, 2), (slice(None), np.asarray([1, 0]), None, 1)))
@example(case=((3, 2, 2), (slice(None), np.asarray([1, 0]), ..., np.asarray([0, 1]))))
@example(case=((2, 2), (np.asarray([[True, False], [False, True]]),)))
@example(case=((2, 2), (np.asarray(True),)))
@example(case=((2, 2), (np.asarray([False, False]), slice(None, None, -1))))
@settings(derandomize=True, deadline=None, max_examples=120)
def test_advanced_keys_lose_no_duplicate(case: Any, xpgrad_device: str) -> None:
    _check_key(*case, xpgrad_device)


@pytest.mark.parametrize(("key", "error"), [
    (5, IndexError), ((0, 0, 0), IndexError), ((..., 0, ...), IndexError), (1.5, IndexError), ("a", IndexError),
    (slice(None, None, 0), ValueError),
])  # fmt: skip
def test_keys_that_do_not_fit(key: Any, error: type[Exception], xpgrad_device: str) -> None:
    with pytest.raises(error):
        xp.ones((2, 3), device=xpgrad_device)[key]


def test_indices_out_of_range_raise(xpgrad_device: str) -> None:
    x = xp.ones((2, 3), device=xpgrad_device)
    with pytest.raises(IndexError):
        x[xp.asarray([0, 2], device=xpgrad_device)]
    with pytest.raises(IndexError):
        x[xp.asarray([True, False, True], device=xpgrad_device)]
    with pytest.raises(IndexError):
        x[xp.asarray([0, 1], device=xpgrad_device), xp.asarray([0, 1, 2], device=xpgrad_device)]


def test_infinite_gradients_stay_where_they_are(xpgrad_device: str) -> None:
    x = xp.ones((3,), device=xpgrad_device, requires_grad=True)
    y = x[xp.asarray([0, 2, 0], device=xpgrad_device)]
    (g,) = grad(y, x, xp.asarray([1.0, np.inf, 2.0], device=xpgrad_device))
    assert g.tolist() == [3.0, 0.0, np.inf]


def test_many_rows_are_added_in_blocks(xpgrad_device: str) -> None:
    index = np.arange(3000) * 7 % 1000
    x = xp.ones((1000,), device=xpgrad_device, requires_grad=True)
    (g,) = grad(x[xp.asarray(index, device=xpgrad_device)], x, xp.asarray(numbers((3000,)), device=xpgrad_device))
    np.testing.assert_allclose(values(g), np.bincount(index, numbers((3000,))), rtol=1e-12, atol=1e-12)


# -- ownership ---------------------------------------------------------------------------------------------------------------------

#: Operands' shapes and static arguments for rows that declare a formula fresh. Elements change little, because then a library may return
#: its operand.
FRESH: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "index_basic": (((3, 2),), ((...,),)), "where": (((3,), (3,), (3,)), ()),
    "gather": (((3, 2),), ((np.asarray([0, 0]),),)), "scatter_add": (((2, 2),), ((np.asarray([0, 0]),), (3, 2))),
    "gather_along": (((3, 2),), (np.asarray([[0, 1]]), 0)), "scatter_along": (((1, 2),), (np.asarray([[0, 1]]), (3, 2), 0)),
    "put": (((3, 2), (2,)), ((0,),)), "put_through": (((3, 2), (2,)), ((("index_basic", ((0,),)),),)),
    "written_through": (((3, 2), (2,)), ((("index_basic", ((0,),)),),)),
    "put_zero": (((3, 2),), ((0,),)), "take_written": (((3, 2),), ((np.asarray([0, 0]),),)),
    "reverse": (((1, 2),), ((0,),)), "shift_by": (((3, 2),), (0, 0)), "lower": (((2, 2),), (5,)), "upper": (((2, 2),), (-5,)),
    "to_dtype": (((3,),), (np.dtype("float64"),)), "matmul_nd": (((2, 2), (2, 2)), ()),
    "mat_vec": (((1, 2), (2,)), ()), "inner_product": (((2,), (2,)), ()),
    "phase": (((3,),), ()), "keep": (((3,), (3,)), ()), "clip_below": (((3,), (3,)), ()), "clip_above": (((3,), (3,)), ()),
    "clip_scalar": (((3,),), (None, 0.5)), "share": (((3,), (3,), (3,)), ()),
    **{name: (((1, 1),), (None, True)) for name, row in ROWS.items()
       if row.facts.kind == "reduction" and row.statics == ("axes", "keepdims") and any(row.fresh)},
    "reduce_var": (((2, 1),), ((0,), 1, True)), "reduce_std": (((2, 1),), ((0,), 1, True)),
    "running_sum": (((1,),), (0,)), "running_sum_back": (((1,),), (0,)),
    "ordered": (((2,),), (np.asarray([0, 1]), 0)), "ordered_back": (((2,),), (np.asarray([0, 1]), 0)),
    "inverse": (((2, 2),), ()), "pseudoinverse": (((2, 2),), (1e-12,)), "determinant": (((2, 2),), ()), "cofactors": (((2, 2),), ()),
    "zero_through": (((3, 2),), ((("index_basic", (slice(0, 1),)),),)),
    "cofactors_along": (((2, 2), (2, 2)), ()),
    "solve_lyapunov": (((2, 2), (2, 2)), ()),
    "solve_stein": (((2, 2), (2, 2), (2, 2)), ()),
    "norm": (((1, 1),), (2, None, True)), "cross_product": (((3,), (3,)), (0,)),
    "fourier": (((1,),), ((0,), True, "backward")), "real_to_half": (((1,),), (0, "backward")),
    "half_to_real": (((1,),), (1, 0, "backward")), "scale_inner": (((1,),), (1, 0, 1.0)),
}  # fmt: skip
OF_COMPLEX = ("phase", "fourier", "half_to_real", "scale_inner")


def _shares(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)


@pytest.mark.parametrize("name", FRESH)
def test_fresh_formulas_hand_out_memory_of_their_own(name: str) -> None:
    import xpgrad.fft
    import xpgrad.linalg  # noqa: F401 (declares rows)
    from xpgrad.registry import backend_for

    kernels = backend_for("numpy").kernels
    row = ROWS[name]
    shapes, statics = FRESH[name]
    points = [numbers(s, 1.0 + k, np.complex128 if name in OF_COMPLEX else np.float64) for k, s in enumerate(shapes)]
    if name in ("keep", "where"):
        points[0] = points[0] > -2.0
    out = np.asarray(getattr(kernels, name)(*points, *statics))
    known = {"xp": kernels, "out": out, "g": numbers(out.shape, 4.0, out.dtype), "out_shape": out.shape, **dict(zip(row.statics, statics))}
    for operand, p in zip(row.tensors, points):
        known |= {operand: p, f"{operand}_shape": p.shape, f"{operand}_dtype": p.dtype}
    held = [known["g"], out, *points, *(k for s in statics if isinstance(s, tuple) for k in s), *statics]
    for formula, reads, fresh in zip(row.formulas, row.reads, row.fresh):
        if formula is not None and fresh:
            result = formula(*(known[n] for n in reads))
            assert not any(_shares(result, h) for h in held)


def test_every_row_that_declares_itself_fresh_is_checked() -> None:
    """Each row that declares a formula fresh is checked here, except public elementwise ones, which have another test."""
    import xpgrad.fft
    import xpgrad.linalg  # noqa: F401 (declares rows)

    declared = {name for name, row in ROWS.items() if any(f and formula is not None for f, formula in zip(row.fresh, row.formulas))}
    declared = {name for name in declared if not name.startswith("special_")}  # of `xpgrad.scipy`, if another test has loaded it
    assert declared - set(FRESH) <= {name for name in RULES if RULES[name].__module__ == "xpgrad.rules.elementwise"}
    assert set(FRESH) <= declared


def test_passed_on_gradients_are_not_added_to(xpgrad_device: str) -> None:
    """Views and identities pass on the same memory, which the engine must not treat as a fresh buffer."""
    seed = xp.asarray(numbers((2, 2)), device=xpgrad_device)
    for function in (
        lambda x: x.clone(), lambda x: xp.reshape(x, (2, 2)), lambda x: x.T, lambda x: x[...], lambda x: xp.broadcast_to(x, (2, 2)),
        lambda x: xp.astype(x, "float64"), lambda x: x + 0, lambda x: +x,
    ):  # fmt: skip
        x = xp.tensor(numbers((2, 2)), device=xpgrad_device, requires_grad=True)
        y = x * 1
        z = function(y) + y + function(y)
        (g,) = grad(z, x, seed)
        expected = 3 * numbers((2, 2))
        if function(y).grad_fn.name().startswith(("Transpose", "Permute")):
            expected = numbers((2, 2)) + 2 * numbers((2, 2)).T
        np.testing.assert_allclose(values(g), expected)
        np.testing.assert_array_equal(values(seed), numbers((2, 2)))


# -- PyTorch -----------------------------------------------------------------------------------------------------------------------


def test_pytorch_agrees(xpgrad_device: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    i, j = np.asarray([[0, 2], [2, -1]]), np.asarray([1, 1])
    cases: dict[str, tuple[Function, Function]] = {
        "rows": (lambda x, t: x[t(i)], lambda x: x[torch.tensor(i)]),
        "pairs": (lambda x, t: x[t(i), t(j)], lambda x: x[torch.tensor(i), torch.tensor(j)]),
        "separated": (lambda x, t: xp.expand_dims(x, axis=1)[t(i), :, t(j)], lambda x: x[:, None][torch.tensor(i), :, torch.tensor(j)]),
        "mask": (lambda x, t: x[x > 0], lambda x: x[x > 0]),
        "gather": (lambda x, t: xp.take_along_axis(x, t(i), axis=1), lambda x: torch.gather(x[:2], 1, torch.tensor(i % 3))),
        "roll": (lambda x, t: xp.roll(x, 2, axis=0), lambda x: torch.roll(x, 2, 0)),
        "tril": (lambda x, t: xp.tril(x, k=-1), lambda x: torch.tril(x, -1)),
        "matmul": (lambda x, t: x @ x, lambda x: x @ x),
        "vector": (lambda x, t: x[0] @ x @ x[1], lambda x: x[0] @ x @ x[1]),
        "tensordot": (lambda x, t: xp.tensordot(x, x, axes=2), lambda x: torch.tensordot(x, x, 2)),
        "vecdot": (lambda x, t: xp.vecdot(x, x * (x + 1)), lambda x: torch.linalg.vecdot(x, x * (x + 1))),
        "repeat": (lambda x, t: xp.repeat(x, 2, axis=1), lambda x: x.repeat_interleave(2, 1)),
        "tile": (lambda x, t: xp.tile(x, (2, 1)), lambda x: x.tile((2, 1))),
        "flip": (lambda x, t: xp.flip(x), lambda x: x.flip(0, 1)),
        "moveaxis": (lambda x, t: xp.moveaxis(x, 0, 1), lambda x: x.moveaxis(0, 1)),
    }
    for (name, (ours, theirs)), dtype in itertools.product(cases.items(), (np.float64, np.complex128)):
        if name == "mask" and dtype is np.complex128:
            continue
        at = numbers((3, 3), dtype=dtype)
        x, t = xp.tensor(at, device=xpgrad_device, requires_grad=True), torch.tensor(at, requires_grad=True)
        source = x[:2] if name == "gather" else x
        y, u = ours(source, lambda k: xp.asarray(k, device=xpgrad_device)), theirs(t)
        np.testing.assert_allclose(values(y), u.numpy(force=True), rtol=1e-12, atol=1e-14, err_msg=name)
        seed = numbers(tuple(u.shape), 2.0, dtype)
        if name == "mask":  # lazy arrays do not know its length, so they get no seed
            (g,) = grad(xp.sum(y * y), x, create_graph=True)
            (h,) = torch.autograd.grad((u * u).sum(), t, create_graph=True)
        else:
            (g,) = grad(y, x, xp.asarray(seed, device=xpgrad_device), create_graph=True)
            (h,) = torch.autograd.grad(u, t, torch.tensor(seed), create_graph=True)
        np.testing.assert_allclose(values(g), h.numpy(force=True), rtol=1e-12, atol=1e-14, err_msg=name)
        if h.requires_grad:
            seed = numbers((3, 3), 3.0, dtype)
            (g,) = grad(g, x, xp.asarray(seed, device=xpgrad_device))
            (h,) = torch.autograd.grad(h, t, torch.tensor(seed))
            np.testing.assert_allclose(values(g), h.numpy(force=True), rtol=1e-12, atol=1e-14, err_msg=f"{name}, second order")


# -- views and copies ----------------------------------------------------------------------------------------------------------------

INDEX = [0, 1, 1]
#: Results whose strides may be the library's own.
RESULTS: dict[str, Any] = {
    "x": lambda x: x,
    "x.T": lambda x: x.T,
    "slice": lambda x: x[:, ::2],
    "index": lambda x: x[..., INDEX],
    "first index": lambda x: x[INDEX],
    "take": lambda x: xp.take(x, xp.asarray(INDEX, device=x.device), axis=1),
    "repeat": lambda x: xp.repeat(x, 2, axis=1),
    "roll": lambda x: xp.roll(x.T, 1, axis=0),
    "concat": lambda x: xp.concat([x.T, x.T]),
    "cast": lambda x: xp.astype(x.T, xp.float32),
    "cast, expanded": lambda x: xp.astype(xp.broadcast_to(x[:1], (3, 4)), xp.float32),
    "contiguous": lambda x: x[..., INDEX].contiguous(),
    "empty": lambda x: x[:0],
    "transpose of empty": lambda x: x[:, :0].T,
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_reshape_without_a_copy_is_written_through(name: str, xpgrad_device: str) -> None:
    x = xp.asarray(np.arange(8.0).reshape(2, 4), device=xpgrad_device)
    y = RESULTS[name](x)
    flat = xp.reshape(y, (-1,))
    if flat._is_view():
        again = xp.reshape(y, (-1,), copy=False)
        again += 1.0
        np.testing.assert_array_equal(flat.numpy(), again.numpy())
        np.testing.assert_array_equal(y.numpy().reshape(-1), again.numpy())
    else:
        before = y.numpy().copy()
        flat += 1.0
        np.testing.assert_array_equal(y.numpy(), before)
        with pytest.raises(ValueError, match="cannot be viewed"):
            xp.reshape(y, (-1,), copy=False)
    if not x.backend.capabilities.strides:
        return
    row_major = y.contiguous()
    xp.reshape(row_major, (-1,), copy=False).fill_(7.0)
    assert row_major.numpy().tolist() == np.full(y.shape, 7.0).tolist()


def test_a_reshape_of_nothing_is_a_view_of_a_leaf(xpgrad_device: str) -> None:
    x = xp.tensor(np.zeros((0, 3)), requires_grad=True, device=xpgrad_device)
    for y in (xp.reshape(x, (3, 0)), x.reshape(0), x.T):
        assert y._is_view()
        with pytest.raises(RuntimeError, match="view of a leaf"):
            y.mul_(2.0)


@given(st.lists(st.integers(0, 3), max_size=3), st.data())
def test_several_new_axes(shape: list[int], data: Any) -> None:
    count = data.draw(st.integers(0, 3))
    ndim = len(shape) + count
    axes = data.draw(
        st.lists(st.integers(-ndim, ndim - 1) if ndim else st.nothing(), min_size=count, max_size=count, unique_by=lambda a: a % ndim)
    )
    x = xp.asarray(numbers(tuple(shape)), dtype=xp.float64).requires_grad_()
    out = xp.expand_dims(x, axis=tuple(axes))
    np.testing.assert_array_equal(out.detach().numpy(), np.expand_dims(x.detach().numpy(), tuple(axes)))
    (g,) = xp.autograd.grad(xp.sum(out * out), x)
    np.testing.assert_array_equal(g.numpy(), 2 * x.detach().numpy())
    if axes:
        with pytest.raises(ValueError, match="names an axis twice"):
            xp.expand_dims(x, axis=(*axes, axes[0]))
        with pytest.raises(IndexError, match="out of range"):
            xp.expand_dims(x, axis=(*axes[1:], ndim))


VIEWS: dict[str, Any] = {
    "a part": lambda x: x[1:, ::2], "a transpose": lambda x: x.mT, "an axis more": lambda x: x[None], "no axes": lambda x: x[1, 2],
    "another shape": lambda x: x.reshape((9,)),
    "the same shape": lambda x: xp.broadcast_to(x, (3, 3)), "more axes": lambda x: xp.broadcast_to(x, (1, 3, 3)),
    "one of several": lambda x: xp.broadcast_arrays(x, x)[1], "a diagonal": xp.linalg.diagonal,
    "a part of a diagonal": lambda x: xp.linalg.diagonal(x, offset=1)[:1],
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_can_be_written_to(name: str, xpgrad_device: str) -> None:
    x = xp.tensor(numbers((3, 3)), device=xpgrad_device, requires_grad=True)
    base = x * 2.0
    view = VIEWS[name](base)
    view *= 10.0
    view[...] = view + 1.0
    expected = np.array(2.0 * numbers((3, 3)))
    places = np.arange(9).reshape(3, 3).astype("float64")
    chosen = VIEWS[name](xp.tensor(places)).numpy().astype(int).ravel()
    expected.reshape(-1)[chosen] = 10.0 * expected.reshape(-1)[chosen] + 1.0
    np.testing.assert_allclose(base.detach().numpy(), expected, rtol=1e-6)
    xp.sum(base).backward()
    assert x.grad is not None
    slopes = np.where(np.isin(places, chosen), 20.0, 2.0)
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6)


@pytest.mark.parametrize("name", ["a transpose", "an axis more", "more axes", "one of several", "a diagonal"])
def test_views_without_elements_can_be_written_to(name: str, xpgrad_device: str) -> None:
    shape = (1, 0, 3) if name == "more axes" else (0, 3)
    x = xp.zeros((0, 3), device=xpgrad_device)
    view = xp.broadcast_to(x, shape) if name == "more axes" else VIEWS[name](x)
    view[...] = 1.0
    view += 1.0
    assert view.tolist() == np.zeros(view.shape).tolist()
