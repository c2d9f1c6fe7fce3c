"""Contracts of group Q: threads and passes inside passes. Each test names its contracts first in its docstring."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest


def in_threads(count: int, work: Callable[[], Any]) -> tuple[list[Any], list[BaseException]]:
    """Results and errors of `work` in several threads that start together."""
    barrier = threading.Barrier(count)
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        barrier.wait()
        try:
            results.append(work())
        except RuntimeError as exc:
            errors.append(exc)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results, errors


def test_separate_graphs_with_a_shared_leaf(lib: Any) -> None:
    """THR-01, THR-02: accumulation is locked."""
    x = lib.tensor([1.5, 2.5])

    def work() -> None:
        for _ in range(20):
            (x * x + x).sum().backward()

    _, errors = in_threads(8, work)
    assert errors == []
    lib.equal(x.grad, [4.0 * 160, 6.0 * 160])


def test_shared_graph(lib: Any) -> None:
    """THR-03, THR-04: with retain_graph all agree; without, at most one pass gets through all."""
    x = lib.tensor([1.5, 2.5])
    y = (x.exp() * x.sin()).sum()
    results, errors = in_threads(6, lambda: lib.grad(y, x, retain_graph=True)[0].tolist())
    assert errors == []
    assert len(results) == 6
    assert all(r == results[0] for r in results)
    results, errors = in_threads(3, lambda: lib.grad(y, x)[0].tolist())
    assert errors
    assert all("backward through the graph a second time" in str(e) for e in errors)


def test_hooks_run_on_the_calling_thread(lib: Any) -> None:
    """THR-01."""
    seen: list[bool] = []

    def work() -> None:
        x = lib.tensor(1.0)
        me = threading.get_ident()
        x.register_hook(lambda g: seen.append(threading.get_ident() == me))
        (x * 2).backward()

    in_threads(4, work)
    assert seen == [True] * 4


def test_a_pass_inside_a_hook(lib: Any) -> None:
    """THR-06: on another graph, and on the graph that is being differentiated."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    other, y = w * w, x * x
    z = y * y

    def hook(g: Any) -> None:
        other.backward()
        seen.append(lib.grad(y, x, retain_graph=True)[0].item())

    seen: list[float] = []
    z.register_hook(hook)
    z.backward()
    lib.equal(w.grad, 4.0)
    lib.equal(x.grad, 108.0)
    assert seen == [6.0]


def test_deep_nesting(lib: Any) -> None:
    """THR-06: 150 levels."""
    depth = [0]

    def backward(ctx: Any, g: Any) -> Any:
        depth[0] += 1
        if depth[0] < 150:
            with lib.ns.enable_grad():
                leaf = lib.tensor(1.0)
                nested.apply(leaf).backward()
        return g

    nested = lib.fn(lambda ctx, x: x * 1, backward)
    nested.apply(lib.tensor(1.0)).backward()
    assert depth == [150]


def test_set_multithreading_enabled(lib: Any) -> None:
    """THR-07."""
    switch = lib.ag.set_multithreading_enabled if not lib.torch else lib.ag.grad_mode.set_multithreading_enabled
    x = lib.tensor(3.0)
    with switch(False):
        (x * x).backward()
    switch(False)
    (x * x).backward()
    switch(True)
    lib.equal(x.grad, 12.0)


def test_task_ids(lib: Any) -> None:
    """THR-08."""
    x, seen = lib.tensor(3.0), []
    assert lib.task_id() == -1
    x.register_hook(lambda g: seen.append(lib.task_id()))
    for _ in range(2):
        (x * 2).backward()
    assert len(set(seen)) == 2
    assert min(seen) >= 0
    assert lib.task_id() == -1


def test_state_after_a_failure_in_a_nested_pass(lib: Any) -> None:
    """THR-06, BWD-38: an inner failure leaves the next pass intact."""
    x = lib.tensor(3.0)
    y = x * x
    handle = y.register_hook(lambda g: lib.backward(lib.const(1.0)))
    with pytest.raises(RuntimeError, match="does not require grad"):
        (y * 2).backward(retain_graph=True)
    handle.remove()
    assert lib.task_id() == -1
    y.backward()
    lib.equal(x.grad, 6.0)
