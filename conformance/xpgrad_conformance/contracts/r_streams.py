"""Group R: streams. A backward pass runs on the streams of its forward, and waits no more than necessary.

If the target has a race detector, a contract that says that something needs a wait also checks that there is a race without it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.facade import NotRun


def expect_race(streams: Any, function: Callable[[], Any]) -> None:
    """Expect a race in `function`, which is not called if there is no race detector."""
    if streams.race is None:
        return
    try:
        function()
    except streams.race:
        return
    raise AssertionError("no race was found, though nothing orders the two streams: there was an unnecessary wait")


def recording_square(lib: Any, streams: Any, seen: list[Any], recorded: list[Any] | None = None) -> Any:
    """Return a custom ``x²`` that records the streams on which its backward and the backward of its backward run."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        made = streams.current()
        seen.append(made)
        out = g * 2 * ctx.saved_tensors[0]
        if recorded is not None and out.requires_grad:
            out.register_hook(lambda g: recorded.append((made, streams.current())))
        return out

    return lib.fn(forward, backward).apply


@contract("STR-01", requires="streams")
def the_forwards_stream(lib: Any) -> None:
    streams = lib.streams()
    with streams.check_races():
        main, one, two, other = streams.current(), streams.new(), streams.new(), streams.new()
        seen: list[Any] = []
        recorded: list[Any] = []
        square = recording_square(lib, streams, seen, recorded)
        x = lib.tensor([1.0, 2.0])
        streams.wait(one, main)
        with streams.use(one):
            y = square(x)
            y.register_hook(lambda g: seen.append(streams.current()))
        streams.wait(two, one)
        with streams.use(two):
            z = square(y)
            u = lib.xp.sum(z * 1.0)
            z.register_hook(lambda g: seen.append(streams.current()))
        # Whatever stream calls it: the operations of `two` run first, then that of `one`, and hooks of a result run where it was made.
        for caller in (main, one, two, other):
            with streams.use(caller):
                u.backward(retain_graph=True)
                assert streams.current() == caller
                assert seen == [two, two, one, one]
                seen.clear()
                lib.equal(x.grad, [4.0, 32.0])
                x.grad = None
            streams.wait(main, caller)
        # The operations of a recorded backward also run on these streams, and so does their backward.
        streams.wait(two, main)
        with streams.use(two):
            (g,) = lib.grad(u, x, create_graph=True)
            total = lib.xp.sum(g * g)
        streams.wait(main, two)
        total.backward()
        assert set(recorded) == {(one, one), (two, two)}
        lib.equal(x.grad, [2 * 4.0 * 12.0, 2 * 32.0 * 48.0])


@contract("STR-02", requires="streams")
def one_group_of_work(lib: Any) -> None:
    """Check the seed, the call and the use of the gradients on one stream, whatever streams the forward was on."""
    streams = lib.streams()
    with streams.check_races():
        main, side = streams.current(), streams.new()
        for forward in (main, side):
            for caller in (main, side, streams.new()):
                x = lib.tensor([1.0, 2.0])
                streams.wait(forward, main)
                with streams.use(forward):
                    y = lib.xp.sin(x) * x
                with streams.use(caller):  # NB: this stream does not wait for the forward
                    seed = lib.ones(2) * 3
                    y.backward(seed)
                    lib.equal(x.grad * 2, 6 * (np.cos([1.0, 2.0]) * [1.0, 2.0] + np.sin([1.0, 2.0])))
                streams.wait(main, caller)
                del seed
        # A seed that `backward` creates works as well.
        with streams.use(side):
            x = lib.tensor(3.0)
            y = x * x
        with streams.use(streams.new()) as last:
            y.backward()
            lib.equal(x.grad + 1, 7.0)
        streams.wait(main, last if last is not None else side)


@contract("STR-03", requires="streams")
def gradients_on_another_stream(lib: Any) -> None:
    streams = lib.streams()
    with streams.check_races():
        main = streams.current()
        for forward in (main, streams.new()):
            caller, other = streams.new(), streams.new()
            x = lib.tensor([1.0, 2.0])
            streams.wait(forward, main)
            with streams.use(forward):
                y = lib.xp.sum(x * x)
            with streams.use(caller):
                y.backward()
            with streams.use(other):
                expect_race(streams, partial(operator.mul, x.grad, 2))
            streams.wait(other, caller)
            with streams.use(other):
                lib.equal(x.grad * 2, [4.0, 8.0])
            streams.synchronize()


@contract("STR-04", requires="streams")
def a_seed_from_another_stream(lib: Any) -> None:
    streams = lib.streams()
    with streams.check_races():
        main = streams.current()
        for forward in (main, streams.new()):
            other, caller = streams.new(), streams.new()
            for waits in (False, True):
                x = lib.tensor([1.0, 2.0])
                streams.wait(forward, main)
                with streams.use(forward):
                    y = x * x
                with streams.use(other):
                    seed = lib.constant([1.0, 10.0]) * 1
                if waits:
                    streams.wait(caller, other)
                    with streams.use(caller):
                        y.backward(seed)
                        lib.equal(x.grad, [2.0, 40.0])
                        # The seed is freed at once, so `other` must not reuse its memory until the pass is done with it.
                        streams.keep(seed, caller)
                    del seed
                    assert not streams.found()
                else:
                    with streams.use(caller):
                        expect_race(streams, partial(y.backward, seed))
                    streams.synchronize()
                    del seed
                streams.synchronize()


#: An operation: (name, stream, first and second operand, counted back from the last value).
programs = st.lists(
    st.tuples(st.sampled_from(["sin", "square", "mul", "add", "slice", "scale"]), st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)),
    min_size=2,
    max_size=9,
)

OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sin": lambda lib, x, y: lib.xp.sin(x),
    "square": lambda lib, x, y: x * x,
    "mul": lambda lib, x, y: x * y,
    "add": lambda lib, x, y: x + y,
    "slice": lambda lib, x, y: lib.xp.concat([x[1:], x[:1]]),
    "scale": lambda lib, x, y: x * 0.7,
}


def gradients(lib: Any, streams: Any, pool: list[Any], program: Any, forget: bool, passes: int) -> list[Any]:
    """Return the leaves' gradients as the caller's stream sees them, with the waits that a careful user writes in the forward."""
    main = streams.current()
    values, made = [], []
    for k, stream in enumerate((pool[0], pool[-1])):  # the leaves are on the first and the last stream of the pool
        with streams.use(stream):
            values.append(lib.random((3,), k))
        made.append(stream)
    leaves = list(values)
    for name, place, first, second in [*program, ("mul", 1, 0, len(program) + 1), ("add", 2, 0, len(program) + 1)]:
        stream, places = pool[place], [-1 - first % len(values), -1 - second % len(values)]
        for at in places:
            streams.wait(stream, made[at])
        with streams.use(stream):
            out = OPERATIONS[name](lib, *(values[at] for at in places))
        values.append(out)
        made.append(stream)
    root = values[-1]
    streams.wait(main, made[-1])
    loss = lib.xp.sum(root * root)
    if forget:  # only the graph refers to the values, and the pass frees them
        streams.synchronize()
        values.clear()
        del root, out
    for _ in range(passes - 1):
        loss.backward(retain_graph=True)
    loss.backward()
    return [lib.value(x.grad * 1) for x in leaves]


@contract("STR-05", requires="streams", draw={"program": programs, "forget": st.booleans(), "passes": st.integers(1, 2)})
def the_pass_waits(lib: Any, program: Any, forget: bool, passes: int) -> None:
    streams = lib.streams()
    # Two branches that meet at a leaf, and values that only the graph refers to.
    with streams.check_races():
        main, one, two = streams.current(), streams.new(), streams.new()
        x = lib.tensor([1.0, 2.0])
        parts = []
        for stream in (one, two):
            streams.wait(stream, main)
            with streams.use(stream):
                parts.append(lib.xp.sum(lib.xp.exp(x * 1.0) * x))
            streams.wait(main, stream)
        loss = parts[0] * parts[1]
        parts.clear()
        loss.backward()
        v = np.asarray([1.0, 2.0])
        lib.equal(x.grad * 1, 2 * np.sum(np.exp(v) * v) * np.exp(v) * (1 + v), rtol=1e-6)
    with streams.check_races():
        main = streams.current()
        expected = gradients(lib, streams, [main] * 4, program, forget, passes)
        found = gradients(lib, streams, [main, streams.new(), streams.new(), streams.new()], program, forget, passes)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert not streams.found()


@contract("STR-06", requires="streams")
def the_default_stream_is_one_like_others(lib: Any) -> None:
    streams = lib.streams()
    if streams.race is None:
        raise NotRun("there is no detector of races here")
    with streams.check_races():
        default = streams.current()
        for callers in ("the forward's stream", "another"):
            side = streams.new()
            caller = side if callers == "the forward's stream" else streams.new()
            with streams.use(side):  # the leaf is also made here, so its gradient is accumulated on this stream
                x = lib.tensor([1.0, 2.0])
                y = lib.xp.sum(x * x)
            with streams.use(caller):
                y.backward()
            with lib.case(callers):
                expect_race(streams, partial(operator.mul, x.grad, 2))
            streams.wait(default, caller)
            lib.equal(x.grad * 2, [4.0, 8.0])
        # A pass does not wait for unrelated work on the default stream either.
        side = streams.new()
        with streams.use(side):
            z = lib.tensor([1.0, 2.0])
            y = lib.xp.sum(z * z)
        late = lib.ones(2) * 5
        with streams.use(side):
            y.backward()
            expect_race(streams, partial(operator.mul, z.grad, late))


@contract("STR-07", requires="streams")
def warnings_and_capture(lib: Any) -> None:
    streams, graph = lib.streams(), lib.graph
    warn, override = graph.set_warn_on_accumulate_grad_stream_mismatch, graph.set_override_stale_capture_stream
    for flag in (True, False):
        assert override(flag) is None

    def mismatch() -> None:
        main, side = streams.current(), streams.new()
        x = lib.tensor([1.0, 2.0])
        first = x * 1  # the leaf accumulates on the stream of its first use
        streams.wait(side, main)
        with streams.use(side):
            y = lib.xp.sum(x * x)
        streams.wait(main, side)
        y.backward()
        lib.equal(x.grad, [2.0, 4.0])
        del first

    with streams.check_races():
        try:
            warn(True)
            with lib.warns(UserWarning, "stream"):
                mismatch()
            # Several leaves give one warning, which names one of them and counts the others.
            main, side = streams.current(), streams.new()
            leaves = [lib.tensor(np.ones(n)) for n in (2, 3, 4)]
            firsts = [x * 1 for x in leaves]
            for count, said in ((1, ""), (2, "(and 1 more)"), (3, "(and 2 more)")):
                streams.wait(side, main)
                with streams.use(side):
                    parts = [lib.xp.sum(lib.xp.sin(x)) for x in leaves[:count]]
                    y = parts[0] if count == 1 else lib.xp.sum(lib.xp.stack(parts))
                streams.wait(main, side)
                with lib.case(count), lib.warns(UserWarning, said if not lib.oracle else "stream", times=1):
                    y.backward()
            del firsts
            warn(False)
            with lib.silent():
                mismatch()
        finally:
            warn(True)


@contract("STR-08", requires="streams")
def gradients_of_roots_however_given(lib: Any) -> None:
    streams = lib.streams()
    calls: dict[str, Callable[[Any, Any, Any], Any]] = {
        "gradient": lambda y, x, seed: y.backward(seed) or x.grad,
        "grad_tensors": lambda y, x, seed: lib.backward([y], [seed]) or x.grad,
        "grad_outputs": lambda y, x, seed: lib.grad([y], [x], [seed])[0],
    }
    with streams.check_races():
        main = streams.current()
        for name, call in calls.items():
            with lib.case(name):
                seen: list[Any] = []
                side, caller, other = streams.new(), streams.new(), streams.new()
                x = lib.tensor([1.0, 2.0])
                streams.wait(side, main)
                with streams.use(side):
                    y, again = recording_square(lib, streams, seen)(x), recording_square(lib, streams, seen)(x)
                # A seed made on the caller's stream needs no wait, and the operations run where their forward ran.
                with streams.use(caller):
                    seed = lib.constant([1.0, 10.0]) * 1
                    g = call(y, x, seed)
                    lib.equal(g * 1, [2.0, 40.0])
                assert seen == [side]
                # A seed made on another stream needs a wait, and so does a result used on a third.
                x.grad = None
                with streams.use(other):
                    seed = lib.constant([1.0, 10.0]) * 1
                with streams.use(caller):
                    expect_race(streams, partial(call, again, x, seed))
                streams.synchronize()
                x.grad = None
                with streams.use(side):
                    y = recording_square(lib, streams, seen)(x)
                with streams.use(other):
                    late = lib.constant([1.0, 10.0]) * 1
                streams.wait(caller, other)
                with streams.use(caller):
                    g = call(y, x, late)
                    streams.keep(late, caller)
                with streams.use(other):
                    expect_race(streams, partial(operator.mul, g, 2))
                streams.wait(other, caller)
                with streams.use(other):
                    lib.equal(g * 2, [4.0, 80.0])
                streams.synchronize()
