"""Group Q: passes in several threads, and passes inside passes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract

TWICE = "backward through the graph a second time"


@contextmanager
def frequent_switches() -> Iterator[None]:
    """Context manager that makes the interpreter switch threads as often as possible, to expose races."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(k)` in `count` threads that start together, and return their results or errors."""
    barrier = threading.Barrier(count)
    found: list[Any] = [None] * count

    def run(k: int) -> None:
        barrier.wait(30)
        try:
            found[k] = work(k)
        except Exception as exc:  # noqa: BLE001 (returned to the caller)
            found[k] = exc

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    with frequent_switches():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    return found


def no_errors(found: list[Any]) -> list[Any]:
    """Return the results, or raise the first error among them."""
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return found


@contract("THR-01", requires="threads")
def several_threads(lib: Any) -> None:
    def work(k: int) -> Any:
        x = lib.tensor([1.0 + k, 2.0])
        me, seen = threading.get_ident(), []
        x.register_hook(lambda g: seen.append(threading.get_ident() == me))
        for _ in range(5):
            lib.xp.sum(x * x * x).backward()
        (g,) = lib.grad(lib.xp.sum(lib.xp.sin(x)), x)
        return lib.value(x.grad), lib.value(g), seen

    for k, (total, g, seen) in enumerate(no_errors(in_threads(4, work))):
        v = np.asarray([1.0 + k, 2.0])
        lib.equal(lib.constant(total), 15 * v * v)
        lib.equal(lib.constant(g), np.cos(v))
        assert seen == [True] * 6  # each pass runs in the thread that called it


def accumulate(lib: Any, x: Any) -> Callable[[int], None]:
    """Return work for a thread: two passes that do little but accumulate."""

    def work(k: int) -> None:
        for root in [lib.xp.sum(x), lib.xp.sum(x)]:
            root.backward()

    return work


@contract("THR-02", requires="threads")
def shared_leaves(lib: Any) -> None:
    x, w = lib.tensor([1.5, 2.5]), lib.tensor([0.0, 0.0])

    def work(k: int) -> None:
        for _ in range(25):
            lib.xp.sum(x * x + x + w).backward()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # switch threads as often as possible
    try:
        no_errors(in_threads(8, work))
        lib.equal(x.grad, [4.0 * 200, 6.0 * 200])  # no update was lost
        lib.equal(w.grad, [200.0, 200.0])
        # The first gradients of a leaf with so many elements that libraries release the GIL while they copy them.
        for _ in range(15):
            wide = lib.tensor(np.zeros(50_000))
            no_errors(in_threads(4, accumulate(lib, wide)))
            lib.equal(wide.grad, np.full(50_000, 8.0))
    finally:
        sys.setswitchinterval(interval)


def freeing_pass(lib: Any, y: Any, x: Any) -> Callable[[int], Any]:
    """Return work for a thread: a pass that frees the graph."""
    return lambda k: lib.grad(y, x)[0]


@contract("THR-03", requires="threads")
def shared_graphs(lib: Any) -> None:
    x = lib.tensor([1.5, 2.5])
    v = lib.value(x)
    right = np.exp(v) * (np.sin(v) + np.cos(v))
    y = lib.xp.sum(lib.xp.exp(x) * lib.xp.sin(x))
    for g in no_errors(in_threads(6, lambda k: lib.grad(y, x, retain_graph=True)[0])):
        lib.equal(g, right)
    # Without `retain_graph`, a pass that reaches a node freed by another pass raises. Timing decides which pass that is.
    for _ in range(5):
        y = lib.xp.sum(lib.xp.exp(x) * lib.xp.sin(x))
        found = in_threads(3, freeing_pass(lib, y, x))
        found += in_threads(2, freeing_pass(lib, y, x))
        for each in found:
            if isinstance(each, BaseException):
                assert isinstance(each, RuntimeError), each
                assert TWICE in str(each)
            else:
                lib.equal(each, right)
        assert all(isinstance(each, RuntimeError) for each in found[3:])
    # One pass waits in the middle until the other is done.
    z = lib.xp.exp(x) * lib.xp.sin(x)
    arrived, done = threading.Event(), threading.Event()

    def hook(g: Any) -> None:
        if not arrived.is_set():
            arrived.set()
            done.wait(30)

    z.register_hook(hook)
    y = lib.xp.sum(z)

    def work(k: int) -> Any:
        if k == 0:
            return lib.grad(y, x)[0]
        arrived.wait(30)
        try:
            return lib.grad(y, x)[0]
        finally:
            done.set()

    late, early = in_threads(2, work)
    lib.equal(early, right)
    assert isinstance(late, RuntimeError)
    assert TWICE in str(late)


@contract("THR-04", requires="threads")
def grad_has_no_races(lib: Any) -> None:
    x, w = lib.tensor([1.5, 2.5]), lib.tensor([3.0, 4.0])
    shared = x * w

    def work(k: int) -> Any:
        return [lib.grad(lib.xp.sum((k + 1) * shared * x), (x, w), retain_graph=True) for _ in range(10)]

    v, u = lib.value(x), lib.value(w)
    for k, rounds in enumerate(no_errors(in_threads(6, work))):
        for first, second in rounds:
            lib.equal(first, (k + 1) * 2 * u * v)
            lib.equal(second, (k + 1) * v * v)
    assert x.grad is None
    assert w.grad is None
    # One pass waits in the middle of the shared part until the others are done.
    arrived, done = threading.Event(), threading.Event()
    shared = lib.xp.exp(x) * w

    def hook(g: Any) -> None:
        if not arrived.is_set():
            arrived.set()
            done.wait(30)

    shared.register_hook(hook)
    y = lib.xp.sum(shared * shared)

    def wait_or_go(k: int) -> Any:
        if k == 0:
            return lib.grad(y, (x, w), retain_graph=True)
        arrived.wait(30)
        try:
            return lib.grad((k + 1) * y, (x, w), retain_graph=True)
        finally:
            done.set()

    for k, (first, second) in enumerate(no_errors(in_threads(2, wait_or_go))):
        lib.equal(first, (k + 1) * 2 * (np.exp(v) * u) ** 2)
        lib.equal(second, (k + 1) * 2 * np.exp(v) ** 2 * u)


@contract("THR-05", requires="threads")
def functions_and_hooks(lib: Any) -> None:
    class Attributes:
        """What a Function keeps on its context, as a Python object."""

    def forward(ctx: Any, x: Any, k: Any) -> Any:
        ctx.mine = Attributes()
        ctx.mine.k, ctx.k = k, k
        ctx.save_for_backward(x)
        return x * k

    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.mine.k == ctx.k
        (saved,) = ctx.saved_tensors
        return g * ctx.k + 0 * saved, None

    scale = lib.fn(forward, backward)
    x, lock, seen = lib.tensor([1.5, 2.5]), threading.Lock(), [0]

    def hook(g: Any) -> None:
        with lock:  # the user's lock: hooks are not synchronised
            seen[0] += 1

    x.register_hook(hook)
    met = threading.Barrier(6)

    def work(k: int) -> Any:
        first = lib.xp.sum(scale.apply(x, k + 1.0))
        met.wait(30)  # every forward is done, and no backward has started
        return [*lib.grad(first, x), *(lib.grad(lib.xp.sum(scale.apply(x, k + 1.0)), x)[0] for _ in range(20))]

    for k, rounds in enumerate(no_errors(in_threads(6, work))):
        assert len(rounds) == 21
        for g in rounds:
            lib.equal(g, [k + 1.0, k + 1.0])  # no call saw another call's context
    assert seen == [6 * 21]


def check_nested_passes(lib: Any, levels: int) -> None:
    """Check a Function whose backward runs a pass through the same Function, down to `levels` levels."""
    leaves: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        if len(leaves) < levels - 1:
            with lib.ns.enable_grad():
                leaf = lib.tensor(1.0)
                leaves.append(leaf)
                if len(leaves) % 2:
                    (2 * nested.apply(leaf)).backward()
                else:
                    (leaf.grad,) = lib.grad(2 * nested.apply(leaf), leaf)
        return g

    nested = lib.fn(lambda ctx, x: x * 1, backward)
    outer = lib.tensor(1.0)
    (3 * nested.apply(outer)).backward()
    lib.equal(outer.grad, 3.0)
    assert len(leaves) == levels - 1
    for leaf in leaves:
        lib.equal(leaf.grad, 2.0)


@contract("THR-06")
def passes_inside_of_passes(lib: Any) -> None:
    # A pass in a hook: on another graph, and on the one that is being differentiated.
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), []
    other, y = w * w, x * x
    z = y * y

    def hook(g: Any) -> None:
        other.backward()
        seen.append(lib.value(lib.grad(y, x, retain_graph=True)[0]).item())

    z.register_hook(hook)
    z.backward()
    lib.equal(w.grad, 4.0)
    lib.equal(x.grad, 108.0)
    assert seen == [6.0]
    # The same through nodes with several results and with a list of operands, and to another device.
    x = lib.tensor([1.0, 2.0])
    two = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply
    a, b = two(x)
    if not lib.oracle:
        b = b.to_device(lib.on_other_device(1.0).device).to_device(b.device)
    joined = lib.xp.concat([a * a, b * a])
    z, found = lib.xp.sum(joined * joined), []

    def once(g: Any) -> None:
        handle.remove()
        found.extend(lib.grad(z, [joined, x], retain_graph=True))

    handle = joined.register_hook(once)
    z.backward(retain_graph=True)
    lib.equal(found[0], [8.0, 32.0, 12.0, 48.0])
    lib.equal(found[1], 208 * np.asarray([1.0, 8.0]))
    lib.equal(x.grad, 208 * np.asarray([1.0, 8.0]))
    # A pass in a backward, nested a few levels deep, and 150 levels deep.
    # NB: nothing is drawn, because Hypothesis would raise the recursion limit.
    for levels in (1, 2, 5, 150):
        with lib.case(levels):
            if levels > 5 and not lib.capabilities["threads"]:  # deep nesting continues in other threads
                with lib.raises(NotImplementedError, "threads"):
                    check_nested_passes(lib, levels)
            else:
                check_nested_passes(lib, levels)
    # A nested pass that fails does not affect the next one.
    x = lib.random((3,))
    y = x * x
    handle = y.register_hook(lambda g: lib.backward(lib.constant(1.0)))
    with lib.raises(RuntimeError, "does not require grad"):
        lib.xp.sum(2 * y).backward(retain_graph=True)
    handle.remove()
    assert lib.task_id() == -1
    lib.xp.sum(y).backward()
    lib.equal(x.grad, 2 * lib.value(x))


@contract("THR-07")
def multithreading_switch(lib: Any) -> None:
    switch = lib.module("autograd.grad_mode").set_multithreading_enabled
    me, seen = threading.get_ident(), []

    def run(expected: float) -> None:
        x = lib.tensor(3.0)
        y = x * x
        y.register_hook(lambda g: seen.append(threading.get_ident() == me))
        y.backward()
        lib.equal(x.grad, expected)

    try:
        for mode in (False, True):
            with lib.case(mode):
                with switch(mode):
                    run(6.0)
                switch(mode)
                run(6.0)
                with switch(not mode), switch(mode):
                    run(6.0)
    finally:
        switch(True)
    assert seen == [True] * 6
    if lib.capabilities["threads"]:

        def work(k: int) -> Any:
            with switch(k % 2 == 0):
                x = lib.tensor([1.0, 2.0])
                before = threading.get_ident(), []
                x.register_hook(lambda g: before[1].append(threading.get_ident() == before[0]))
                lib.xp.sum(x * x).backward()
                return before[1], lib.value(x.grad).tolist()

        with switch(False):
            assert in_threads(4, work) == [([True], [2.0, 4.0])] * 4
            if lib.oracle:  # only PyTorch can be asked for it
                assert in_threads(1, lambda k: lib.ns._C._is_multithreading_enabled()) == [True]


@contract("THR-08")
def task_ids(lib: Any) -> None:
    x, seen, inner = lib.tensor(3.0), [], []
    assert lib.task_id() == -1

    def hook(g: Any) -> None:
        seen.append(lib.task_id())
        if len(seen) < 4:
            leaf = lib.tensor(1.0)
            leaf.register_hook(lambda g: inner.append(lib.task_id()))
            with lib.ns.enable_grad():
                twice = leaf * 2
            twice.backward()
            assert lib.task_id() == seen[-1]  # the outer pass has its id again

    y = x * 1
    y.register_hook(hook)
    x.register_hook(lambda g: seen.append(lib.task_id()))
    for _ in range(3):
        (y * 2).backward(retain_graph=True)
        assert lib.task_id() == -1
    assert seen[::2] == seen[1::2]  # one id for the whole pass
    assert len({*seen, *inner}) == 3 + len(inner)
    assert min(*seen, *inner) >= 0
    assert len(inner) == 2
    mine: list[Any] = []
    z = lib.tensor(1.0) * 1
    z.register_hook(lambda g: mine.extend(in_threads(1, lambda k: lib.task_id())))
    z.backward()
    assert mine == [-1]  # another thread is outside the pass


@contract("THR-09")
def reentrant_checkpoints(lib: Any) -> None:
    checkpoint = lib.module("utils.checkpoint").checkpoint
    phrase = "use_reentrant=True"

    def segment(x: Any) -> Any:
        return lib.xp.sin(x) * x

    x = lib.tensor([1.0, 2.0])
    v = lib.value(x)
    lib.xp.sum(checkpoint(segment, x, use_reentrant=True)).backward()
    lib.equal(x.grad, np.cos(v) * v + np.sin(v))
    with lib.raises(RuntimeError, phrase, "incompatible", ".grad()"):
        lib.grad(lib.xp.sum(checkpoint(segment, x, use_reentrant=True)), x)
    with lib.raises(RuntimeError, phrase, "`inputs`"):
        lib.xp.sum(checkpoint(segment, x, use_reentrant=True)).backward(inputs=[x])
    (g,) = lib.grad(lib.xp.sum(checkpoint(segment, x, use_reentrant=False)), x)
    lib.equal(g, np.cos(v) * v + np.sin(v))


@contract("THR-10", requires="threads")
def settings_are_thread_local(lib: Any) -> None:
    x, packed = lib.tensor([1.0, 2.0]), []

    def pack(t: Any) -> Any:
        packed.append(threading.get_ident())
        return t

    def look(k: int = 0) -> Any:
        y = x * x
        return lib.ns.is_grad_enabled(), lib.ns.is_inference_mode_enabled(), y.requires_grad, y.is_inference()

    with lib.ns.no_grad():
        assert in_threads(2, look) == [(True, False, True, False)] * 2
        assert look() == (False, False, False, False)
    with lib.ns.inference_mode():
        assert in_threads(2, look) == [(True, False, True, False)] * 2
        assert look() == (False, True, False, True)
    with lib.graph.saved_tensors_hooks(pack, lambda t: t):
        no_errors(in_threads(2, look))
        assert packed == []
        look()
    assert set(packed) == {threading.get_ident()}
    # A mode that a thread sets applies to that thread only.
    with_modes = [lib.ns.no_grad, lib.ns.enable_grad, lib.ns.inference_mode]

    def set_and_look(k: int) -> Any:
        with with_modes[k]():
            return [look() for _ in range(20)][-1]

    assert in_threads(3, set_and_look) == [(False, False, False, False), (True, False, True, False), (False, True, False, True)]
    assert look() == (True, False, True, False)


@contract("THR-11")
def a_pass_inside_a_hook_towards_what_is_no_leaf(lib: Any) -> None:
    x = lib.tensor([2.0])
    found: list[Any] = []

    def hook(g: Any) -> None:
        with lib.ns.enable_grad():
            a = lib.tensor([3.0])
            b = a * a
            c = b * b
            found.extend(lib.grad(c, [b, a], retain_graph=True))
            b.retain_grad()
            lib.backward(c)
            found.extend([b.grad, a.grad])
            # A new graph that leads to the leaf of the outer pass, differentiated twice.
            (first,) = lib.grad(x * x * x, x, create_graph=True)
            found.extend(lib.grad(first, x))

    y = x * x
    y.register_hook(hook)
    lib.backward(y * x)
    for g, expected in zip(found, [18.0, 108.0, 18.0, 108.0, 12.0], strict=True):
        lib.equal(g, [expected])
    lib.equal(x.grad, [12.0])
    # Nodes that the outer pass has not reached yet: a concatenation with constants, and a Function with several results.
    x = lib.tensor([1.0, 2.0])
    joined = lib.xp.concat([x * x, lib.ones(2), x, lib.constant([7.0])])
    double, triple = lib.fn(lambda ctx, t: (t * 2, t * 3), lambda ctx, g, h: g * 2 + h * 3).apply(joined)
    tail = double * triple
    inside: list[Any] = []

    def again(g: Any) -> None:
        inside.extend(lib.grad([double, triple], [x], [g * 0 + 1, g * 0 + 10], retain_graph=True))
        with lib.ns.enable_grad():
            (first,) = lib.grad(lib.xp.sum(joined * joined), x, create_graph=True)
            inside.extend(lib.grad(first, x, lib.ones(2), retain_graph=True))

    tail.register_hook(again)
    lib.backward(lib.xp.sum(tail))
    lib.equal(inside[0], [96.0, 160.0])
    lib.equal(inside[1], [14.0, 50.0])
    lib.equal(x.grad, [36.0, 216.0])
