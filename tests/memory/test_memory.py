"""Law: graphs are made, differentiated and destroyed iteratively, and live no longer than they are needed (RET-12, RET-14)."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp


def leaf(*shape: int) -> xp.Tensor:
    return xp.tensor(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), requires_grad=True)


PROGRAMS: dict[str, Callable[[xp.Tensor], xp.Tensor]] = {
    "elementwise": lambda x: xp.sum(xp.exp(x * x) / (x + 1.0)),
    "reductions": lambda x: xp.max(xp.sum(x * 2.0, axis=0)) + xp.mean(x),
    "views": lambda x: xp.sum(xp.reshape(x[1:], (-1,)) * xp.matrix_transpose(x)[:, 1:].reshape(-1)),
    "indexing": lambda x: xp.sum(xp.take(x, xp.asarray([0, 0, 1]), axis=0) * 3.0),
    "joining": lambda x: xp.sum(xp.concat([x, x * x]) * xp.concat([x, x])),
    "several outputs": lambda x: xp.sum(xp.linalg.qr(x).R) + xp.sum(xp.linalg.svd(x, full_matrices=False).S),
    "in place": lambda x: xp.sum((x * 1.0).mul_(x).add_(1.0)),
    "setitem": lambda x: _write_element(x),
    "matmul": lambda x: xp.sum(x @ x.T),
}


def _write_element(x: xp.Tensor) -> xp.Tensor:
    y = x * 1.0
    y[0] = x[1] * x[2]
    return xp.sum(y * y)


def nodes_below(y: xp.Tensor) -> list[Any]:
    found, stack = [], [y.grad_fn]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(n for n, _ in node.next_functions if n is not None)
    return found


@pytest.mark.usefixtures("no_cyclic_gc")
@pytest.mark.parametrize("create_graph", [False, True], ids=["plain", "create_graph"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_dies_by_reference_counting(name: str, create_graph: bool) -> None:
    x = leaf(3, 3)
    y = PROGRAMS[name](x)
    watched = [weakref.ref(n) for n in nodes_below(y) if n.name() != "AccumulateGrad"]
    assert watched
    if create_graph:
        (g,) = xp.autograd.grad(y, x, create_graph=True)
        if g.requires_grad:
            watched.append(weakref.ref(g.grad_fn))
            xp.sum(g).backward()
        del g
    else:
        y.backward()
    del y
    assert [r() for r in watched if r() is not None] == []
    assert gc.collect() == 0 or not [r() for r in watched if r() is not None]


@pytest.mark.usefixtures("no_cyclic_gc")
def test_a_leaf_dies_by_reference_counting() -> None:
    x = leaf(4)
    xp.sum(x * x).backward()
    dead = weakref.ref(x), weakref.ref(x._node)
    del x
    assert [d() for d in dead] == [None, None]


@pytest.mark.usefixtures("no_cyclic_gc")
@pytest.mark.parametrize("retain", [False, True])
def test_saved_values_go_with_the_pass_unless_retained(retain: bool) -> None:
    x = leaf(1000)
    middle = x * 2.0
    raw = weakref.ref(middle)
    y = xp.sum(xp.sin(middle))
    saved = weakref.ref(middle.array)
    del middle
    assert raw() is None
    assert saved() is not None
    y.backward(retain_graph=retain)
    assert (saved() is not None) is retain


@pytest.mark.usefixtures("no_cyclic_gc")
def test_nothing_is_held_after_backward() -> None:
    x = leaf(100_000)

    def step() -> None:
        x.grad = None
        xp.sum(xp.tanh(x * x) * xp.exp(-x)).backward()

    step()
    tracemalloc.start()
    try:
        step()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            step()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 20_000, "a step leaves memory behind"


def test_a_hundred_thousand_operations_without_recursion() -> None:
    x = leaf(1)
    limit = sys.getrecursionlimit()
    y = x
    for _ in range(100_000):
        y = y + 1.0
    alive = weakref.ref(y._node)
    sys.setrecursionlimit(200)
    try:
        y.backward()
        del y
    finally:
        sys.setrecursionlimit(limit)
    assert alive() is None
    np.testing.assert_array_equal(x.grad.numpy(), [1.0])


def test_a_deep_graph_survives_create_graph() -> None:
    x = leaf(1)
    y = x
    for _ in range(20_000):
        y = y * 1.00001
    (g,) = xp.autograd.grad(xp.sum(y * y), x, create_graph=True)
    (h,) = xp.autograd.grad(g, x)
    np.testing.assert_allclose(h.numpy(), 2 * 1.00001**40_000, rtol=1e-9)


@pytest.mark.usefixtures("no_cyclic_gc")
def test_a_view_in_the_graph_does_not_keep_its_base_alive() -> None:
    x = leaf(1000)
    base = x * 2.0
    memory = weakref.ref(base.array)
    part = base[1:]
    loss = xp.sum(part * part)
    del base, part
    assert memory() is not None
    loss.backward()
    assert memory() is None
    assert loss.grad_fn is not None


def test_aliases_that_are_gone_are_forgotten() -> None:
    x = leaf(4)
    for _ in range(1000):
        x.detach()
        x[1:]
    assert len(x._alias.cell.views) < 100


def test_a_step_of_gradient_descent_allocates_what_numpy_does() -> None:
    """``p -= lr * p.grad`` under `no_grad` allocates only the product, apart from the few bytes of a Tensor."""
    data, gradient = np.ones((256, 256)), np.full((256, 256), 0.5)
    p = xp.tensor(data, requires_grad=True)
    p.grad = xp.tensor(gradient)

    def ours(p: Any) -> None:
        with xp.no_grad():
            p -= 0.1 * p.grad

    def theirs(data: Any) -> None:
        data -= 0.1 * gradient

    peaks = []
    for step, x in ((theirs, data), (ours, p)):
        step(x)
        tracemalloc.start()
        step(x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] <= peaks[1] < peaks[0] + 2000
    np.testing.assert_allclose(p.detach().numpy(), data)


KEYS: dict[str, Any] = {
    "a slice": slice(3, 5),
    "a row": 7,
    "a column": (slice(None), 0),
    "reversed": (slice(9, 2, -3), Ellipsis),
    "all": Ellipsis,
}


@pytest.mark.parametrize("value", ["number", "Tensor", "broadcast"])
@pytest.mark.parametrize("name", KEYS)
def test_a_recorded_write_computes_only_its_part(name: str, value: str) -> None:
    """A value that broadcasts is part of the result's formula, for which the whole is computed."""
    key = KEYS[name]
    x = xp.tensor(np.ones((1000, 100)), requires_grad=True)
    y = x * 1.0
    part = y.detach()[key]
    v = xp.tensor(np.full(part.shape, 2.0), requires_grad=True)
    given = {"number": 2.0, "Tensor": v, "broadcast": xp.tensor(2.0, requires_grad=True)}[value]
    before = y.detach().clone()
    tracemalloc.start()
    y[key] = given
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if value != "broadcast":
        assert peak < 50_000  # the whole has 800,000 bytes
    expected = np.array(before)
    expected[key] = 2.0
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    (y * y).sum().backward()
    through = 2.0 * np.array(before)
    through[key] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), through)
    if value == "Tensor":
        np.testing.assert_array_equal(v.grad.numpy(), 2.0 * expected[key])
    elif value == "broadcast":
        np.testing.assert_array_equal(given.grad.numpy(), 2.0 * expected[key].sum())


@pytest.mark.parametrize("key", [7, (0, 4), slice(0, 2)])
def test_a_recorded_write_that_does_not_fit_changes_nothing(key: Any) -> None:
    x = xp.tensor(np.ones((3, 4)), requires_grad=True)
    y = x * 1.0
    node, version = y.grad_fn, y._version
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        y[key] = xp.tensor(np.zeros((5, 5)), requires_grad=True)
    assert (y.grad_fn, y._version) == (node, version)
    np.testing.assert_array_equal(y.detach().numpy(), np.ones((3, 4)))
