"""Group K: checkpoints, which recompute what they did not save."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract


@contract("SAV-17")
def checkpoints(lib: Any) -> None:
    checkpoint = lib.module("utils.checkpoint").checkpoint
    calls = []

    def f(x: Any, w: Any) -> Any:
        calls.append(lib.ns.is_grad_enabled())
        return lib.xp.sum(lib.xp.sin(x * w))

    v, u = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for way in ("backward", "grad", "inputs"):
        with lib.case(way):
            x, w = lib.tensor(v), lib.tensor(u)
            calls.clear()
            y = checkpoint(f, x, w, use_reentrant=False)
            assert len(calls) == 1
            if way == "grad":
                gx, gw = lib.grad(y, [x, w])
            elif way == "inputs":
                y.backward(inputs=[x])
                gx, gw = x.grad, None
                assert w.grad is None
            else:
                y.backward()
                gx, gw = x.grad, w.grad
            assert len(calls) == 2
            lib.equal(gx, np.cos(v * u) * u)
            if gw is not None:
                lib.equal(gw, np.cos(v * u) * v)
    # Keyword arguments, and no graph if nothing is recorded.
    x, w = lib.tensor(v), lib.tensor(u)
    gx, gw = lib.grad(checkpoint(lambda x, w: lib.xp.sum(x * w * w), x, w=w, use_reentrant=False), [x, w])
    lib.equal(gx, u * u)
    lib.equal(gw, 2 * v * u)
    if not lib.oracle:  # PyTorch asks for `use_reentrant`
        (gx,) = lib.grad(checkpoint(lambda x, w: lib.xp.sum(x * w * w), x, w=w), x)
        lib.equal(gx, u * u)
    with lib.ns.no_grad():
        y = checkpoint(f, x, w, use_reentrant=False)
    assert not y.requires_grad
    lib.equal(y, np.sum(np.sin(v * u)))
    # The second run records, and the mode around the pass stays as it is.
    y = checkpoint(f, x, w, use_reentrant=False)
    with lib.ns.no_grad():
        y.backward(inputs=[x])
        assert not lib.ns.is_grad_enabled()
        assert not (x * w).requires_grad
    assert calls[-1] is True
    lib.equal(x.grad, np.cos(v * u) * u)
    # The second run draws the random numbers of the first one, and does not affect those that are drawn later.
    drawn: list[Any] = []

    def draw() -> Any:
        drawn.append(np.asarray(lib.ns.rand(2).tolist()) if lib.oracle else np.random.rand(2))  # noqa: NPY002 (the global generator)
        return lib.constant(drawn[-1])

    for preserve, options in ((True, {"preserve_rng_state": True}), (False, {"preserve_rng_state": False}), (True, {})):
        drawn.clear()
        with lib.case(str(options)):
            y = checkpoint(lambda x: lib.xp.sum(x * draw()), lib.tensor(v), use_reentrant=False, **options)
            draw()
            y.backward()
            draw()
            first, between, again, after = drawn
            assert np.array_equal(first, again) == preserve
            assert not np.array_equal(between, after)
    # A chain in segments: all but the last are computed again.
    chain = lib.module("utils.checkpoint").checkpoint_sequential
    for segments, again in ((1, 0), (2, 2), (3, 2), (5, 4)):
        with lib.case(segments):
            calls.clear()

            def step(t: Any) -> Any:
                calls.append(True)
                return t * 1.5 + t * t

            x, y = lib.tensor(v), lib.tensor(v)
            out, expected = chain([step] * 5, segments, x, use_reentrant=False), y
            for _ in range(5):
                expected = expected * 1.5 + expected * expected
            lib.equal(out, lib.value(expected))
            assert len(calls) == 5
            lib.equal(lib.grad(lib.xp.sum(out), x)[0], lib.value(lib.grad(lib.xp.sum(expected), y)[0]))
            assert len(calls) == 5 + again
    # Hooks outside of a checkpoint get its inputs, not what its function saves.
    x = lib.tensor(v)
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.detach()

    with lib.graph.saved_tensors_hooks(pack, lambda t: t * 2):
        y = checkpoint(lambda x: lib.xp.exp(x * x), x, use_reentrant=False)
    lib.equal(lib.grad(lib.xp.sum(y), x)[0], 4 * v * np.exp(4 * v * v), *([1e-5] if lib.real == "float32" else []))
    assert len(packed) == 1
    # A function that differentiates: its second run does so, too.
    x = lib.tensor(v)

    def slope(x: Any) -> Any:
        y = lib.xp.sum(x * x * x)
        (g,) = lib.grad(y, x, create_graph=True)
        return y + lib.xp.sum(g * x)

    lib.equal(lib.grad(checkpoint(slope, x, use_reentrant=False), x)[0], 12 * v * v)
    check_reentrant(lib, checkpoint, f, calls)
    check_second_run(lib, checkpoint)


def check_reentrant(lib: Any, checkpoint: Any, f: Any, calls: list[Any]) -> None:
    """Check ``use_reentrant=True``: the forward runs unrecorded, and again in a nested pass that records."""
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    calls.clear()
    y = checkpoint(f, x, w, use_reentrant=True)
    assert calls == [False]
    y.backward()
    assert calls == [False, True]
    lib.equal(x.grad, np.cos([3.0, 8.0]) * [3.0, 4.0])
    lib.equal(w.grad, np.cos([3.0, 8.0]) * [1.0, 2.0])
    x = lib.tensor([1.0, 2.0])
    given = checkpoint(lambda k, t, text: t * k, 3.0, x, "text", use_reentrant=True)  # the first argument may be a number
    lib.equal(lib.xp.sum(given), 3.0 * lib.value(x).sum())
    first, second = checkpoint(lambda t, k: (t * k, t + 1), x, 3.0, use_reentrant=True)
    (lib.xp.sum(first) + 2 * lib.xp.sum(second)).backward()
    lib.equal(x.grad, [5.0, 5.0])
    with lib.warns(UserWarning, "None of the inputs have requires_grad=True. Gradients will be None"):
        y = checkpoint(lambda t: t * w, lib.constant([1.0, 2.0]), use_reentrant=True)
    assert not y.requires_grad
    for options, phrase in (({"t": x}, "Unexpected keyword arguments"), ({"debug": True}, "only supported when use_reentrant=False")):
        with lib.case(phrase), lib.raises(ValueError, phrase):
            checkpoint(lambda t: t * 2, *(() if "t" in options else (x,)), use_reentrant=True, **options)


def check_second_run(lib: Any, checkpoint: Any) -> None:
    """Check errors for a function that differs when it runs again, the contexts of both runs, and where the second run stops."""
    module, x = lib.module("utils.checkpoint"), lib.tensor([1.0, 2.0])
    runs: list[int] = []

    def fewer(t: Any) -> Any:
        runs.append(1)
        return lib.xp.sum(lib.xp.sin(t) * lib.xp.cos(t)) if len(runs) % 2 else lib.xp.sum(lib.xp.sin(t))

    def shorter(t: Any) -> Any:
        runs.append(1)
        t = t if len(runs) % 2 else t[:1]
        return lib.xp.sum(lib.xp.sin(t) * t)

    for function, phrase in ((fewer, "A different number of tensors was saved"), (shorter, "have different metadata than during")):
        runs.clear()
        y = checkpoint(function, x, use_reentrant=False)
        with lib.case(phrase), lib.raises(module.CheckpointError, phrase):
            y.backward()
        # With `debug=True` the message shows the lines that saved the Tensors of both runs.
        runs.clear()
        y = checkpoint(function, x, use_reentrant=False, debug=True)
        with lib.case((phrase, "debug")):
            with lib.raises(module.CheckpointError) as caught:
                y.backward()
            if not lib.oracle:  # PyTorch shows its own operations
                told = str(caught[0])
                assert told.count("Saved Tensor ") == 2, told
                assert told.count("k_checkpoints.py") >= 2, told
                assert f"in {function.__name__}" in told, told
                assert "Pass `debug=True`" not in told
    log: list[str] = []

    @contextlib.contextmanager
    def watched(name: str) -> Iterator[None]:
        log.append(name)
        yield

    y = checkpoint(lambda t: lib.xp.sum(t * t), x, use_reentrant=False, context_fn=lambda: (watched("first"), watched("again")))
    assert log == ["first"]
    y.backward()
    assert log == ["first", "again"]
    ends: list[int] = []

    def long(t: Any) -> Any:
        out = lib.xp.sum(t * t)
        ends.append(1)
        return out * 1

    for early in (True, False):
        with lib.case(early), module.set_checkpoint_early_stop(early):
            ends.clear()
            checkpoint(long, x, use_reentrant=False).backward()
            assert len(ends) == (1 if early else 2)
    ends.clear()  # early by default
    checkpoint(long, x, use_reentrant=False).backward()
    assert len(ends) == 1
