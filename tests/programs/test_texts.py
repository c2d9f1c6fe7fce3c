"""Law: after every pass and as NumPy source text, a program computes what its list of operations says."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from programs.building import BACKEND, EVALUATE, Builder, assert_same, random_program
from xpgrad.programs.array_api_text import array_api_source
from xpgrad.programs.blocks import fuse_loops
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.products import Products, side_by_side
from xpgrad.programs.program import Program
from xpgrad.programs.reuse import reuse
from xpgrad.programs.simplify import simplify_program
from xpgrad.programs.source import Source, built

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")


def run(source: Source, inputs: list[Any]) -> Any:
    """Call a text, and assert that it changes no input and that its outputs are writable and share no memory."""
    f = built(source, {"xp": BACKEND.kernels}, BACKEND.raw_dtype)
    frozen = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
    before = [np.array(x) for x in frozen]
    with np.errstate(all="ignore"):
        found = f(*frozen)
    for x, old in zip(frozen, before):
        np.testing.assert_array_equal(x, old)
    held = [*frozen, *source.constants.values()]
    for i, x in enumerate(found):
        if isinstance(x, np.ndarray):
            assert x.flags.writeable, "an output cannot be written to"
            for y in [*held, *found[:i]]:
                assert not np.may_share_memory(x, y), "an output shares memory"
    return found


def check(b: Builder, **options: Any) -> Program:
    """Compare the program after all passes, and after none, with its plain evaluation."""
    program = b.program(*b.outputs)
    constants = {v: np.array(raw) for v, raw in program.constants.items()}
    with np.errstate(all="ignore"):
        wanted = evaluate_program(program, BACKEND, b.raws())
        small = simplify_program(program, EVALUATE)
        loops = [fuse_loops(small, block, threshold) for block, threshold in ((2, 2), (4, 4), (7, 3))]
        loops += [side_by_side(small, 2, 0), side_by_side(loops[0], 3, 0)]
        for one, threads in ((program, 1), (small, 1), *((p, n) for p in loops for n in (1, 2))):
            for large in (0, 1 << 17):
                text = numpy_source(one, plan=lambda p, large=large: reuse(p, large), threads=threads)
                try:
                    for x, y in zip(run(text, b.raws()), wanted, strict=True):
                        assert_same(x, y, program)
                except Exception as exc:
                    exc.add_note(f"{program}\n\n{one}\n\n{text.text}")
                    raise
        for one in (program, small):
            for x, y in zip(run(array_api_source(one), b.raws()), wanted, strict=True):
                assert_same(x, y, program)
    for v, raw in program.constants.items():
        np.testing.assert_array_equal(raw, constants[v])
    return small


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_random_programs(block: int) -> None:
    for k in range(50):
        random = Random(1000 * block + k)
        check(random_program(random, random.randint(1, 25)))


#: Functions of the standard and private kernels that programs may call but captured functions rarely do: their arguments after an array of
#: shape (3, 4), and options.
RARE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "asarray": ((), {}), "clone_contiguous": ((), {}), "cumulative_prod": ((), {"axis": 1}), "cumulative_sum": ((), {"axis": 0}),
    "imag_part": ((), {}), "linalg.matrix_norm": ((), {}), "linalg.svdvals": ((), {}), "matrix_transpose": ((), {}),
    "max": ((), {"axis": 1}), "mean": ((), {"axis": 0, "keepdims": True}), "min": ((), {}), "moveaxis": ((0, 1), {}),
    "permute_dims": (((1, 0),), {}), "prod": ((), {"axis": 1}), "real_part": ((), {}), "repeat": ((2,), {"axis": 1}),
    "reshape": (((2, 6),), {}), "std": ((), {"axis": 0, "correction": 1.0}), "sum": ((), {"axis": 1, "keepdims": True}),
    "tile": (((2, 1),), {}), "tril": ((), {"k": 1}), "triu": ((), {}), "var": ((), {}), "running_prod": ((1,), {}), "lower": ((1,), {}),
    "upper": ((-1,), {}),
}  # fmt: skip


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", list(RARE))
def test_functions_that_captures_rarely_call(name: str) -> None:
    args, options = RARE[name]
    for dtype in ("float64", "float32", *(["complex128"] if name in ("real_part", "imag_part", "asarray", "reshape") else [])):
        b = Builder()
        x = b.input(np.cos(np.arange(12.0).reshape(3, 4) + (1j if dtype == "complex128" else 0.0)).astype(dtype))
        y = b(name, x, *args, **options)
        b.outputs = [b("multiply", y, 2.0), y]
        check(b)


def test_products_side_by_side() -> None:
    """Only products that do not depend on each other run side by side, after the operations that they read."""
    b = Builder()
    x, y = (b.input(np.random.default_rng(k).normal(size=(3, 3))) for k in range(2))
    first = b("matmul", x, y)
    turned = b("swap_last", y)
    after = b("matmul", first, y)  # needs the first
    beside = b("matmul", turned, x)
    more = b("matmul", x, b("add", b("negative", turned), y))
    b.outputs = [after, beside, more]
    program = b.program(*b.outputs)
    for threads, groups in ((2, [2, 2]), (3, [3]), (4, [3])):
        found = [o for o in side_by_side(program, threads, 0).operations if isinstance(o, Products)]
        assert [len(o.body) for o in found] == groups
        ready = set(program.inputs)
        for operation in side_by_side(program, threads, 0).operations:
            assert ready.issuperset(operation.operands()), "it runs before what it reads"
            ready.update(operation.results)
        for group in found:
            made = set(group.results)
            assert not any(v in made for o in group.body for v in o.operands())
    assert side_by_side(program, 2, 28).operations == program.operations, "small ones are not worth a thread"
    check(b)


@settings(max_examples=50, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_random_programs_that_shrink(random: Random, count: int) -> None:
    check(random_program(random, count))
