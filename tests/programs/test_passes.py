"""The results of each pass for small programs: which operations are left, which memory is reused, what is in a loop."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from programs.building import BACKEND, EVALUATE, Builder
from xpgrad._basics.dtypes import DTYPES
from xpgrad.programs.blocks import Loop, fuse_loops
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.program import Program, Variable
from xpgrad.programs.reuse import reuse
from xpgrad.programs.simplify import simplify_program
from xpgrad.programs.source import built

Made = Callable[[Builder, Variable, Variable], Any]
F64, F32 = DTYPES["float64"], DTYPES["float32"]


def program(make: Made, shape: tuple[int, ...] = (3, 4), dtype: str = "float64") -> Program:
    b = Builder()
    x, y = b.input(np.full(shape, 2.0, dtype), "x"), b.input(np.full(shape, 3.0, dtype), "y")
    outs = make(b, x, y)
    return b.program(*(outs if isinstance(outs, tuple) else (outs,)))


def sum_gradient(b: Builder, x: Variable) -> Variable:
    """Add the gradient of a sum: ones of the shape of `x`."""
    return b("expand_reduced", b("ones", (), dtype=x.dtype), x.shape, None, False)


def largest(b: Builder, x: Variable, axes: Any = None) -> Variable:
    return b("reduce_max", x, axes, False)


#: The operations that are left of a program of two arrays of shape (3, 4).
LEFT: dict[str, tuple[Made, list[str]]] = {
    "times one": (lambda b, x, y: b("multiply", x, 1), []),
    "one times": (lambda b, x, y: b("multiply", 1.0, x), []),
    "times ones": (lambda b, x, y: b("multiply", b("ones_like", x), x), []),
    "times minus one": (lambda b, x, y: b("multiply", x, -1.0), ["negative"]),
    "times zero": (lambda b, x, y: b("multiply", x, 0.0), ["multiply"]),  # wrong if x is inf
    "plus zero": (lambda b, x, y: b("add", x, 0.0), ["add"]),  # wrong if x is -0.0
    "plus minus zero": (lambda b, x, y: b("add", x, -0.0), []),
    "minus zero": (lambda b, x, y: b("subtract", x, 0.0), []),
    "minus minus zero": (lambda b, x, y: b("subtract", x, -0.0), ["subtract"]),
    "zeros plus": (lambda b, x, y: b("add", b("zeros_like", x), x), ["add"]),
    "divided by one": (lambda b, x, y: b("divide", x, 1), []),
    "minus minus": (lambda b, x, y: b("negative", b("negative", x)), []),
    "x - (-y)": (lambda b, x, y: b("subtract", x, b("negative", y)), ["add"]),
    "x + (-y)": (lambda b, x, y: b("add", x, b("negative", y)), ["subtract"]),
    "-x + y": (lambda b, x, y: b("add", b("negative", x), y), ["subtract"]),
    "-(x * 2)": (lambda b, x, y: b("negative", b("multiply", x, 2.0)), ["multiply"]),
    "-(x - y)": (lambda b, x, y: b("negative", b("subtract", x, y)), ["subtract", "negative"]),  # -0.0
    "x * 0.2 * 2": (lambda b, x, y: b("multiply", b("multiply", x, 0.2), 2), ["multiply"]),
    "x * 2 * 0.2": (lambda b, x, y: b("multiply", b("multiply", x, 2), 0.2), ["multiply", "multiply"]),  # the first product may overflow
    "a constant": (lambda b, x, y: b("multiply", x, b("divide", b("negative", b("ones", (), dtype=x.dtype)), 128)), ["multiply"]),
    "a gradient of a sum": (lambda b, x, y: b("multiply", sum_gradient(b, x), y), []),
    "a square": (lambda b, x, y: b("pow", x, 2), ["square"]),
    "twice the same": (lambda b, x, y: b("add", b("sin", x), b("sin", x)), ["sin", "add"]),
    "not the same": (lambda b, x, y: b("add", b("multiply", x, 2), b("multiply", x, 3)), ["multiply", "multiply", "add"]),
    "zeros of both signs": (lambda b, x, y: b("add", b("divide", x, 0.0), b("divide", x, -0.0)), ["divide", "divide", "add"]),
    "not read": (lambda b, x, y: (b("sin", x), b("cos", x))[1], ["cos"]),
    "casts": (lambda b, x, y: b("to_dtype", x, F64), []),
    "a cast": (lambda b, x, y: b("to_dtype", x, F32), ["to_dtype"]),
    "two transposes": (lambda b, x, y: b("swap_last", b("transpose_axes", x, (1, 0))), []),
    "two reshapes": (lambda b, x, y: b("reshape_to", b("reshape_to", x, (12,)), (2, 6)), ["reshape_to"]),
    "reshaped there and back": (lambda b, x, y: b("reshape_to", b("reshape_to", x, (12,)), (3, 4)), []),
    "a copy": (lambda b, x, y: b("copy", x), []),
    "a part that is all": (lambda b, x, y: b("index_basic", x, (slice(0, 3), slice(0, 4, 1))), []),
    "a part that is turned": (lambda b, x, y: b("index_basic", x, (slice(None, None, -1), slice(0, 4))), ["index_basic"]),
    "sum to its own shape": (lambda b, x, y: b("sum_to", x, (3, 4)), []),
    "sum to a row": (lambda b, x, y: b("sum_to", x, (4,)), ["reduce_sum"]),
    "a mean": (lambda b, x, y: b("reduce_mean", x, None, False), ["reduce_sum", "divide"]),
    "the sum of an expansion": (lambda b, x, y: b("reduce_sum", b("broadcast_to", b("sin", largest(b, x)), (7, 5)), None, False),
                                ["reduce_max", "sin", "multiply"]),
    "a column that was summed": (lambda b, x, y: b("multiply", b("expand_reduced", largest(b, x, (1,)), (3, 4), (1,), False), y),
                                 ["reduce_max", "reshape_to", "multiply"]),
    "the same on both sides": (lambda b, x, y: b("where", b("less", x, y), x, x), []),
    "a constant number": (lambda b, x, y: b("maximum", x, b("zeros_like", x)), ["maximum"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str) -> None:
    make, left = LEFT[name]
    before = program(make)
    small = simplify_program(before, EVALUATE)
    assert [o.name for o in small.operations] == left, f"{before}\n\n{small}"
    assert [(v.shape, v.dtype) for v in small.outputs] == [(v.shape, v.dtype) for v in before.outputs]
    values = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e300]
    pairs = np.array(values * len(values)), np.repeat(values, len(values))
    with np.errstate(all="ignore"):
        for i in range(0, len(pairs[0]), 6):  # each pair of values occurs in one place
            inputs = [np.resize(v[i : i + 12], (3, 4)) for v in pairs]
            for wanted, found in zip(evaluate_program(before, BACKEND, inputs), evaluate_program(small, BACKEND, inputs)):
                if "sum" in name or "mean" in name:
                    np.testing.assert_allclose(found, wanted, rtol=1e-15)
                else:
                    np.testing.assert_array_equal(found, wanted)
                    np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted))


def test_complex_infinities_are_multiplied() -> None:
    for kernel, name in ((lambda b, x: b("multiply", x, 1), "multiply"), (lambda b, x: b("divide", x, 1.0), "divide")):
        b = Builder()
        p = b.program(kernel(b, b.input(np.array([complex(np.inf, 1.0)]))))
        assert [o.name for o in simplify_program(p, EVALUATE).operations] == [name]
    b = Builder()
    p = b.program(b("reduce_sum", b("broadcast_to", b.input(np.array(complex(np.inf, 1.0))), (3,)), None, False))
    assert [o.name for o in simplify_program(p, EVALUATE).operations] == ["broadcast_to", "reduce_sum"]


def test_large_constants_are_left_alone() -> None:
    b = Builder()
    c = b.constant(np.ones(100))
    p = b.program(b("multiply", b("sin", c), b.input(np.ones(100))))
    assert [o.name for o in simplify_program(p, EVALUATE, limit=99).operations] == ["sin", "multiply"]
    assert [o.name for o in simplify_program(p, EVALUATE, limit=100).operations] == ["multiply"]
    assert [o.name for o in simplify_program(p).operations] == ["sin", "multiply"]


def test_integers_and_small_floats_are_summed_as_they_are() -> None:
    for dtype in ("int64", "float16"):
        b = Builder()
        x = b.input(np.ones((), dtype))
        p = b.program(b("reduce_sum", b("broadcast_to", x, (5,)), None, False))
        assert "reduce_sum" in [o.name for o in simplify_program(p, EVALUATE).operations]


# -- memory ------------------------------------------------------------------------------------------------------------


def operations_that_reuse(p: Program) -> list[str]:
    """Return the names of operations whose results take the memory of another variable."""
    found = reuse(p, 0).into
    return [o.name for o in p.operations if o in found]


def test_memory_is_used_again_only_where_nobody_reads_it() -> None:
    assert operations_that_reuse(program(lambda b, x, y: b("sin", b("multiply", x, y)))) == ["sin"]
    assert operations_that_reuse(program(lambda b, x, y: b("sin", x))) == []  # an input's
    assert operations_that_reuse(program(lambda b, x, y: (h := b("multiply", x, y), b("sin", h)))) == []  # an output's

    def read_later(b: Builder, x: Variable, y: Variable) -> Variable:
        h = b("multiply", x, y)
        return b("matmul", b("sin", h), b("swap_last", h))

    assert operations_that_reuse(program(read_later)) == []

    def seen(b: Builder, x: Variable, y: Variable) -> Variable:
        h = b("multiply", x, y)
        part = b("index_basic", h, (slice(0, 2), slice(0, 4)))
        return b("reduce_sum", b("multiply", b("sin", h), b("reduce_sum", part, None, False)), None, False)

    assert operations_that_reuse(program(seen)) == ["multiply"]  # `sin(h)` may not take h, since a view of h is read later
    assert operations_that_reuse(program(lambda b, x, y: b("less", b("multiply", x, y), y))) == []  # another dtype
    assert operations_that_reuse(program(lambda b, x, y: b("sin", b("multiply", x, y)), ())) == []  # no axes: a scalar


def test_writes_copy_what_is_still_read() -> None:
    key = (slice(0, 1), slice(0, 4))
    part = (slice(1, 2), slice(0, 4))

    def write(b: Builder, x: Variable, y: Variable) -> Any:
        return b("written", b("multiply", x, y), key, 0.0)

    assert operations_that_reuse(program(write)) == ["written"]
    assert operations_that_reuse(program(lambda b, x, y: b("written", x, key, 0.0))) == []

    def from_itself(b: Builder, x: Variable, y: Variable) -> Any:
        h = b("multiply", x, y)
        return b("written", h, key, b("index_basic", h, part))

    assert operations_that_reuse(program(from_itself)) == []


def test_large_memory_is_given_back() -> None:
    def make(b: Builder, x: Variable, y: Variable) -> Any:
        h = x
        for _ in range(6):
            h = b("reduce_sum", b("matmul", b("exp", b("matmul", b("multiply", h, y), x)), y), (0,), True)
        return h

    p = program(make, (128, 128))
    f = built(numpy_source(p))
    x = np.full((128, 128), 1e-9)
    f(x, x)
    tracemalloc.start()
    f(x, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * x.nbytes


# -- loops -------------------------------------------------------------------------------------------------------------


def loops(p: Program) -> list[Loop]:
    return [o for o in p.operations if isinstance(o, Loop)]


def test_a_forward_and_its_backward_are_one_loop_that_holds_little() -> None:
    def make(b: Builder, x: Variable, y: Variable) -> Any:
        h = b("multiply", b("sin", x), y)
        total = b("reduce_sum", b("multiply", h, h), None, False)
        b.backward = True
        g = b("multiply", b("multiply", sum_gradient(b, x), h), 2)
        return total, b("multiply", b("multiply", g, y), b("cos", x)), b("multiply", g, b("sin", x))

    n = 400_000
    p = fuse_loops(simplify_program(program(make, (n,)), EVALUATE))
    assert [o.name for o in p.operations] == ["loop"]
    assert {o.name for o in loops(p)[0].body} == {"sin", "cos", "multiply", "reduce_sum", "add"} - {"add"}
    f = built(numpy_source(p))
    x, y = np.linspace(0, 1, n), np.linspace(1, 2, n)
    tracemalloc.start()
    total, gx, gy = f(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.4 * x.nbytes  # the two gradients, and small buffers
    np.testing.assert_allclose(total, np.sum((np.sin(x) * y) ** 2), rtol=1e-12)
    np.testing.assert_allclose(gx, 2 * np.sin(x) * y * y * np.cos(x), rtol=1e-12)
    np.testing.assert_allclose(gy, 2 * np.sin(x) ** 2 * y, rtol=1e-12)


def test_a_total_ends_a_loop() -> None:
    def make(b: Builder, x: Variable, y: Variable) -> Any:
        e = b("exp", b("multiply", x, y))
        return b("multiply", b("divide", e, b("reduce_sum", e, None, False)), x)

    p = fuse_loops(simplify_program(program(make, (1000,)), EVALUATE), 100, 500)
    assert [[o.name for o in loop.body] for loop in loops(p)] == [["multiply", "exp", "reduce_sum"], ["divide", "multiply"]]


def test_sums_of_rows_stay_in_the_loop() -> None:
    def make(b: Builder, x: Variable, y: Variable) -> Any:
        top = b("reduce_max", x, (1,), True)
        e = b("exp", b("subtract", x, top))
        p = b("divide", e, b("reduce_sum", e, (1,), True))
        return b("reduce_sum", b("multiply", p, y), (0,), False)

    p = fuse_loops(simplify_program(program(make, (600, 8)), EVALUATE), 256, 1000)
    assert [o.name for o in p.operations] == ["loop"]
    assert loops(p)[0].rows == 32


def test_a_column_used_as_a_row_ends_a_loop() -> None:
    def make(b: Builder, x: Variable, y: Variable) -> Any:
        s = b("reduce_sum", b("multiply", x, y), (1,), False)
        return b("multiply", b("multiply", x, s), y)

    b = Builder()
    x, y = b.input(np.arange(64.0).reshape(8, 8)), b.input(np.ones((8, 8)))
    p = fuse_loops(b.program(make(b, x, y)), 16, 16)
    assert len(loops(p)) == 2
    f = built(numpy_source(p))
    np.testing.assert_allclose(f(*b.raws())[0], b.values[x] * b.values[x].sum(1))


def test_a_small_array_is_not_used_again_while_a_view_of_it_is_read() -> None:
    b = Builder()
    x, y, c = b.input(np.arange(160.0).reshape(20, 8)), b.input(np.ones((20, 8))), b.input(np.full(20, 3.0))
    other = b("reduce_sum", y, (1,), False)
    column = b("reshape_to", b("reduce_sum", x, (1,), False), (20, 1))
    another = b("add", b("multiply", other, c), other)
    out = b("add", b("multiply", x, column), b("multiply", y, b("reshape_to", another, (20, 1))))
    p = fuse_loops(b.program(out), 24, 16)
    assert len(loops(p)[0].body) == 9
    np.testing.assert_array_equal(built(numpy_source(p))(*b.raws())[0], b.values[out])


def test_a_new_axis_in_the_middle_stays_there() -> None:
    b = Builder()
    x = b.input(np.arange(20.0).reshape(5, 4, 1))
    out = b("multiply", b("reshape_to", b("sin", x), (5, 1, 4, 1)), 2.0)
    p = fuse_loops(b.program(out), 8, 8)
    assert len(loops(p)[0].body) == 3
    np.testing.assert_array_equal(built(numpy_source(p))(*b.raws())[0], b.values[out])


def test_small_arrays_are_not_in_loops() -> None:
    p = program(lambda b, x, y: b("sin", b("multiply", x, y)), (1000,))
    assert fuse_loops(p) is p


def test_small_operations_run_before_and_after_a_loop_in_order() -> None:
    b = Builder()
    x, c = b.input(np.arange(1.0, 161.0).reshape(20, 8)), b.input(np.full(20, 3.0))
    before = b("add", b("multiply", c, 2.0), c)
    total = b("reduce_sum", b("exp", b("sin", x)), (1,), False)
    after = b("subtract", b("multiply", b("log", total), before), 1.0)
    p = fuse_loops(b.program(after), 24, 30)
    assert [o.name for o in p.operations] == ["multiply", "add", "loop", "log", "multiply", "subtract"]
    np.testing.assert_array_equal(built(numpy_source(p))(*b.raws())[0], b.values[after])


def test_names_of_variables_are_unique() -> None:
    b = Builder()
    x, y, z = b.input(np.ones(2), "x"), b.input(np.ones(2), "y"), b.input(np.ones(2), "x")
    text = str(b.program(b("add", b("multiply", x, y), z)))
    assert "x: float64[2], y: float64[2], x_2: float64[2]" in text
    assert "x_2)" in text


def test_tracebacks_show_the_text() -> None:
    import traceback

    p = program(lambda b, x, y: b("matmul", x, b("swap_last", y)))
    f = built(numpy_source(p, "mine"), {"xp": BACKEND.kernels})
    with pytest.raises(ValueError) as caught:
        f(np.ones((3, 4)), np.ones((3, 5)))
    assert "x @ y.T" in "".join(traceback.format_exception(caught.value))
