"""Loops that are found in unrolled steps do what the steps did, bit by bit, and what is printed does not grow with their number."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st

import xpgrad as xp
from programs.test_native import folder  # noqa: F401  # the cache of this test alone
from support.central_differences import values
from xpgrad.programs import lowering, repetition
from xpgrad.programs.regions import Advance, Lowered, Nest, Repeat
from xpgrad.programs.repetition import with_repeats

pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

EMITTERS = ["native", *(["c"] if shutil.which("cc") else [])]
ROWS, COLUMNS = 5, 40


# -- loops ---------------------------------------------------------------------------------------------------------------------


def _shrink(s: SimpleNamespace, k: int) -> None:
    s.u = s.u[1:-1] + 0.2 * (s.u[2:] - 2.0 * s.u[1:-1] + s.u[:-2])


def _shrink_unevenly(s: SimpleNamespace, k: int) -> None:
    by = (1, 1, 2, 1, 1)[k % 5]
    s.u = s.u[by:] - 0.5 * s.u[:-by]


def _swap(s: SimpleNamespace, k: int) -> None:
    s.h, s.c = s.c @ s.w, s.h


def _write(s: SimpleNamespace, k: int) -> None:
    s.h = s.h * 1.0
    s.h[1:3] = s.c[1:3] * s.h[0]


def _alternate(s: SimpleNamespace, k: int) -> None:
    s.h = s.h @ s.w + s.c if k % 2 else s.h - s.h @ s.w


def _set(name: str, value: Callable[[SimpleNamespace, int], Any]) -> Callable[[SimpleNamespace, int], None]:
    return lambda s, k: setattr(s, name, value(s, k))


def _fill(s: SimpleNamespace, k: int) -> None:
    s.h = s.h * xp.full((ROWS, COLUMNS), 1.0 / (1 + k)) + xp.where(s.h > k / 10, s.h, 0.5 * k)


#: Parts of steps. All but those in `NEVER` make steps that repeat, with the product that separates them.
PARTS: dict[str, Callable[[SimpleNamespace, int], None]] = {
    "product": _set("h", lambda s, k: xp.tanh(s.h @ s.w)),
    "input": _set("h", lambda s, k: s.h + s.xs[k]),
    "input from the end": _set("h", lambda s, k: s.h * s.xs[-1 - k]),
    "argument": _set("h", lambda s, k: s.h * s.layers[k]),
    "row of an argument": _set("h", lambda s, k: s.h * s.layers[k][1 + k % 2]),
    "constant": _set("h", lambda s, k: s.h - s.constants[k]),
    "number in an array": _set("h", lambda s, k: s.h * s.numbers[k]),
    "rows": _set("h", lambda s, k: s.h / (1.0 + xp.sum(s.h * s.h, axis=1, keepdims=True))),
    "columns": _set("h", lambda s, k: s.h - 0.5 * xp.max(s.h, axis=0)),
    "total": _set("total", lambda s, k: s.total + xp.sum(s.h)),
    "shrink": _shrink,
    "shrink unevenly": _shrink_unevenly,
    "swap": _swap,
    "gather": _set("h", lambda s, k: s.h + xp.take(s.h, s.indices[k], axis=0)),
    "write": _write,
    "kept": lambda s, k: s.kept.append(xp.sum(s.h, axis=0)),
    "number": _set("h", lambda s, k: xp.maximum(-1.0 - k, s.h * (1.0 + k / 7) - k / 10)),
    "fill": _fill,
    "other operands": _set("h", lambda s, k: s.h * s.c - (s.h if k in (1, 2, 6) else s.c)),
    "power": _set("h", lambda s, k: s.h + (s.h * s.h + 1.0) ** (0.5 + k / 2)),
    "alternate": _alternate,
}
NEVER = {"other operands", "power", "shrink unevenly"}


def loop(parts: list[str], steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function with a loop, its gradients, and its arguments."""
    rng = np.random.default_rng(0)
    constants = [xp.asarray(rng.normal(size=(ROWS, COLUMNS))) for _ in range(steps)]
    numbers = [xp.asarray(rng.normal(size=())) for _ in range(steps)]

    def loss(h: Any, w: Any, u: Any, layers: Any, xs: Any, indices: Any) -> Any:
        s = SimpleNamespace(h=h, c=h * 0.5, w=w, u=u, total=xp.sum(u), xs=xs, layers=layers, constants=constants, numbers=numbers)
        s.indices, s.kept = indices, []
        for k in range(steps):
            for part in parts:
                PARTS[part](s, k)
        kept = xp.sum(xp.stack(s.kept) ** 2) if s.kept else 0.0
        return xp.sum(s.h * s.h) + xp.sum(s.u * s.u) + s.total + kept

    arrays: list[Any] = [rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=(COLUMNS, COLUMNS)) / COLUMNS, rng.normal(size=2 * steps + 100)]
    arrays += [[xp.asarray(rng.normal(size=(ROWS, COLUMNS))) for _ in range(steps)], rng.normal(size=(steps, ROWS, COLUMNS))]
    arrays.append(rng.integers(-ROWS, ROWS, (steps, ROWS)))
    return xp.func.value_and_grad(loss, argnums=(0, 1, 2, 3, 4)), tuple(x if isinstance(x, list) else xp.asarray(x) for x in arrays)


@contextmanager
def replaced(function: Callable[[Lowered], Lowered]) -> Iterator[None]:
    """Use another function in the place of `with_repeats`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "with_repeats", function)
        yield


def lowered(f: Callable[..., Any], *args: Any) -> list[tuple[Lowered, Lowered]]:
    """Return each program of a function without and with loops."""
    found = []

    def record(given: Lowered) -> Lowered:
        made = with_repeats(given)
        if len(given.program) > 1:
            found.append((given, made))
        return made

    with replaced(record):
        xp.compile(f).explain(*args)
    return found


def loops(f: Callable[..., Any], *args: Any) -> list[Repeat]:
    return [region for _, made in lowered(f, *args) for region in made.regions if isinstance(region, Repeat)]


def bits(results: Any) -> list[bytes]:
    if isinstance(results, (list, tuple)):
        return [found for part in results for found in bits(part)]
    return [np.asarray(values(results)).tobytes()]


def check(f: Callable[..., Any], args: tuple[Any, ...], emitter: str, repeats: Callable[[Lowered], Lowered] = with_repeats) -> None:
    """Compare the bits of results with loops and without."""
    if emitter == "native":
        pytest.importorskip("llvmlite", reason="the extra `native`")
    for threads in (1, 2) if emitter == "native" else (1,):
        with replaced(lambda given: given):
            wanted = bits(xp.compile(f, emitter=emitter, threads=threads)(*args))
        with replaced(repeats):
            compiled = xp.compile(f, emitter=emitter, threads=threads)
            for _ in range(2):
                assert bits(compiled(*args)) == wanted


# -- the same steps ------------------------------------------------------------------------------------------------------------


def described(made: Lowered) -> list[Any]:
    """Return what each region does, in the order in which regions run: its text, its numbers, and its places in memory."""
    found = []

    def describe(region: Any, advance: Advance, step: int) -> None:
        pattern = repetition._pattern(made, region)
        places = []
        for buffer, offset in pattern.places:
            moves = advance.memory.get(buffer, 0)
            if isinstance(moves, int):
                base, at = repetition._place(made, buffer, offset)
                at += step * moves * buffer.itemsize
            else:
                base, at = repetition._place(made, moves[step][0], offset + moves[step][1])
            places.append((id(base), at))
        literals = [advance.literals[k][step] if k in advance.literals else x for k, x in enumerate(pattern.literals)]
        found.append((pattern.key, [n + step * advance.numbers.get(n, 0) for n in pattern.numbers], places, list(map(repr, literals))))

    for region in made.regions:
        if isinstance(region, Repeat):
            for step in range(region.count):
                for inside, advance in zip(region.body, region.steps, strict=True):
                    describe(inside, advance, step)
        else:
            describe(region, Advance(), 0)
    return found


programs = st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=4), st.integers(4, 9)


@settings(max_examples=40, deadline=None)
@given(*programs)
def test_the_steps_of_loops_are_those_that_they_replace(parts: list[str], steps: int) -> None:
    f, args = loop(parts, steps)
    for given_, made in lowered(f, *args):
        event(f"{sum(isinstance(r, Repeat) for r in made.regions)} loops")
        assert described(made) == described(given_)


def test_uneven_lengths_are_no_loop() -> None:
    f, args = loop(["shrink unevenly"], 12)
    for given_, made in lowered(f, *args):
        assert described(made) == described(given_)


@pytest.mark.parametrize("part", [part for part in PARTS if part not in NEVER])
def test_steps_that_repeat_are_found(part: str) -> None:
    steps = 16
    f, args = loop(["product", part], steps)
    given_, made = lowered(f, *args)[-1]
    assert described(made) == described(given_)
    assert max(r.count for r in made.regions if isinstance(r, Repeat)) >= (steps - 5) // 2
    assert len(list(made.every_region())) < 0.6 * len(given_.regions)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(*programs)
def test_random_loops_have_the_same_bits_in_machine_code(parts: list[str], steps: int) -> None:
    check(*loop(["product", *parts], steps), "native")


@pytest.mark.slow
@pytest.mark.skipif("c" not in EMITTERS, reason="there is no C compiler `cc`")
@settings(max_examples=3, deadline=None)
@given(*programs)
def test_random_loops_have_the_same_bits_in_c(parts: list[str], steps: int) -> None:
    check(*loop(["product", *parts], steps), "c")


@pytest.mark.slow
@pytest.mark.parametrize("emitter", EMITTERS)
def test_all_parts_have_the_same_bits(emitter: str) -> None:
    f, args = loop([part for part in PARTS if part not in NEVER], 12 if emitter == "native" else 8)
    assert loops(f, *args)
    check(f, args, emitter)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_numbers_differ_between_the_steps_of_a_loop(emitter: str) -> None:
    rates = [0.3, 0.7, 1.1, 0.9, 0.2, 1.3, 0.6, 0.8]

    def f(h: Any, w: Any) -> Any:
        for rate in rates:
            h = xp.tanh(h @ w) * rate
        return xp.sum(h)

    args = tuple(xp.asarray(np.random.default_rng(0).normal(size=shape)) for shape in ((8, 40), (40, 40)))
    assert any(step.literals for r in loops(f, *args) for step in r.steps)
    check(f, args, emitter)


@pytest.mark.parametrize("emitter", EMITTERS)
@pytest.mark.parametrize("part", ["other operands", "power", "row of an argument"])
def test_few_parts_have_the_same_bits(part: str, emitter: str) -> None:
    check(*loop(["product", part], 9), emitter)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_threads_share_pieces_in_loops(emitter: str) -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = x / (1.0 + xp.sum(x * x) / 70_000)
        return xp.sum(x)

    x = xp.asarray(np.random.default_rng(0).normal(size=70_000))
    gradient = xp.func.value_and_grad(f)
    assert any(region.pieces > 1 for r in loops(gradient, x) for region in r.body if hasattr(region, "pieces"))
    check(gradient, (x,), emitter)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_an_index_out_of_bounds_in_a_loop_is_refused(emitter: str) -> None:
    if emitter == "native":
        pytest.importorskip("llvmlite", reason="the extra `native`")

    def f(x: Any, w: Any, indices: Any) -> Any:
        for k in range(8):
            x = xp.take(x @ w, indices[k], axis=0)
        return x

    x, w = xp.ones((3, 3)), xp.asarray(np.eye(3))
    good = np.tile([0, -3, 2], (8, 1))
    assert any(type(region).__name__ == "Check" for r in loops(f, x, w, xp.asarray(good)) for region in r.body)
    compiled = xp.compile(f, emitter=emitter)
    assert values(compiled(x, w, xp.asarray(good))).tolist() == np.ones((3, 3)).tolist()
    for step in (0, 5, 7):
        bad = good.copy()
        bad[step, 1] = 3
        with pytest.raises(IndexError, match="out of bounds"):
            compiled(x, w, xp.asarray(bad))


# -- planted faults --------------------------------------------------------------------------------------------------------------


def _changed(change: Callable[[Repeat], None]) -> Callable[[Lowered], Lowered]:
    """Return a function that finds loops, and changes them."""

    def faulty(given: Lowered) -> Lowered:
        made = with_repeats(given)
        for region in made.regions:
            if isinstance(region, Repeat):
                change(region)
        return made

    return faulty


def _lose_a_step(r: Repeat) -> None:
    r.count -= 1


def _stand_still(r: Repeat) -> None:
    for advance in r.steps:
        advance.memory.update({b: 0 for b, moves in advance.memory.items() if isinstance(moves, int)})


def _reverse_tables(r: Repeat) -> None:
    for advance in r.steps:
        advance.memory.update({b: moves[::-1] for b, moves in advance.memory.items() if isinstance(moves, list)})


def _shorten(r: Repeat) -> None:
    for advance in r.steps:
        advance.numbers.update({n: min(0, 2 * change) for n, change in advance.numbers.items()})


def _reverse_numbers(r: Repeat) -> None:
    for advance in r.steps:
        advance.literals.update({k: numbers[::-1] for k, numbers in advance.literals.items()})


def _exchange_regions(r: Repeat) -> None:
    r.body.reverse()
    r.steps.reverse()


FAULTS: dict[str, tuple[Callable[[Repeat], None], list[str]]] = {
    "one iteration is lost": (_lose_a_step, ["product"]),
    "addresses stay where they are": (_stand_still, ["product", "input"]),
    "the addresses in tables are in the wrong order": (_reverse_tables, ["product", "constant"]),
    "lengths change by a wrong step": (_shorten, ["shrink"]),
    "the numbers of steps are in the wrong order": (_reverse_numbers, ["product", "number"]),
    "the regions of a step are in the wrong order": (_exchange_regions, ["product", "rows"]),
}


@pytest.mark.slow(one_in=15)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("emitter", EMITTERS)
def test_a_planted_fault_is_noticed(fault: str, emitter: str) -> None:
    change, parts = FAULTS[fault]
    f, args = loop(parts, 8)
    with pytest.raises(AssertionError):
        check(f, args, emitter, _changed(change))
    given_, made = lowered(f, *args)[-1]
    for region in made.regions:
        if isinstance(region, Repeat):
            change(region)
    assert described(made) != described(given_)


# -- size ----------------------------------------------------------------------------------------------------------------------


def _stencil(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def f(u: Any) -> Any:
        for _ in range(steps):
            u = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return xp.sum(u * u)

    return xp.func.value_and_grad(f), (xp.asarray(np.random.default_rng(0).normal(size=2 * steps + 100)),)


def _recurrence(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def f(w: Any, x: Any) -> Any:
        h = x[0]
        for k in range(steps):
            h = xp.tanh(h @ w + x[k])
        return xp.sum(h)

    rng = np.random.default_rng(0)
    return xp.func.value_and_grad(f, argnums=(0, 1)), (xp.asarray(rng.normal(size=(4, 4))), xp.asarray(rng.normal(size=(steps, 4, 4))))


@pytest.mark.parametrize("make", [_stencil, _recurrence])
def test_the_number_of_regions_does_not_depend_on_the_number_of_steps(make: Any) -> None:
    counts = []
    for steps in (60, 120):
        f, args = make(steps)
        given_, made = lowered(f, *args)[-1]
        assert len(given_.regions) > 3 * steps
        counts.append(len(list(made.every_region())))
    assert counts[0] == counts[1] < 30


@pytest.mark.slow
def test_the_number_of_statements_does_not_depend_on_the_number_of_steps() -> None:
    def f(w: Any, b: Any, h: Any) -> Any:
        for _ in range(steps):
            h = h * xp.tanh(h @ w + b)
            h = h[:, 1:] @ w[:-1, :]
        return xp.sum(h)

    rng = np.random.default_rng(0)
    args = [xp.asarray(rng.normal(size=shape)) for shape in ((8, 8), (8,), (3, 8))]
    sizes = []
    for steps in (160, 320):  # noqa: B007  # `f` reads it
        made = lowered(xp.func.value_and_grad(f, argnums=(0, 1)), *args)[-1][1]
        sizes.append(sum(len(region.body) for region in made.every_region() if isinstance(region, Nest)))
    assert sizes[0] == sizes[1]


def test_a_loop_of_slices_takes_the_memory_of_a_few_steps() -> None:
    f, args = _stencil(100)
    assert lowered(f, *args)[-1][1].workspace_size < 5 * 8 * args[0].size


def test_a_loop_is_a_loop_in_c() -> None:
    texts = []
    for steps in (60, 120):
        f, args = _recurrence(steps)
        texts.append(xp.compile(f, emitter="c").source(*args))
    assert texts[0].count("\n") == texts[1].count("\n")
    assert len(re.findall(r"for \(int64_t step = 0; step < 1\d\d; step\+\+\)", texts[1])) == 2


def test_lengths_in_c_are_arguments() -> None:
    f, args = _stencil(60)
    text = xp.compile(f, emitter="c").source(*args)
    assert len(re.findall(r"^static void loop", text, re.MULTILINE)) < 20
    assert re.search(r"loop_\d\(.*, 2\d\d - 2 \* step\);", text)


def test_few_steps_stay_apart() -> None:
    f, args = _recurrence(3)
    assert not loops(f, *args)


def test_an_explanation_shows_a_loop() -> None:
    f, args = _recurrence(30)
    text = xp.compile(f).explain(*args)
    assert re.match(r"\d+ operations: \d+ regions of machine code, partly in 2 loops, 0 calls of NumPy\n", text)
    assert re.search(
        r"^ +\d+\. loop of \d\d steps, each of which has\n {7,8}\d+\. the product of \(4, 4\) and \(4, 4\); ", text, re.MULTILINE
    )
