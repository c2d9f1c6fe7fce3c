"""Contracts of groups E and F: retained and freed graphs, gradients of gradients. Each test names its contracts in its docstring."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import pytest

TWICE = "backward through the graph a second time"


def test_freed_by_default(lib: Any) -> None:
    """RET-01."""
    x = lib.tensor(3.0)
    y = x * x
    y.backward()
    for again in (lambda: y.backward(), lambda: lib.grad(y, x)):
        with pytest.raises(RuntimeError, match=TWICE):
            again()
    lib.equal(x.grad, 6.0)


def test_retained(lib: Any) -> None:
    """RET-02, RET-03."""
    x = lib.tensor(3.0)
    y = x.exp() * x
    y.backward(retain_graph=True)
    first = x.grad.item()
    y.backward(retain_graph=True)
    assert x.grad.item() == 2 * first
    lib.grad(y, x, create_graph=True)
    y.backward()


def test_created_but_not_retained(lib: Any) -> None:
    """RET-04."""
    x = lib.tensor(3.0)
    y = x * x * x
    (g,) = lib.grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=TWICE):
        lib.grad(y, x)
    lib.equal(g, 27.0)


def test_a_linear_graph_runs_again(lib: Any) -> None:
    """RET-05: nothing saved, nothing freed."""
    x = lib.tensor(3.0)
    y = (x + 3) - 1
    y.backward()
    y.backward()
    lib.equal(x.grad, 2.0)


def test_shared_part(lib: Any) -> None:
    """RET-06, RET-11: what was freed fails only when it runs."""
    x = lib.tensor(3.0)
    shared = x * x
    one, other = shared + 1, shared + 2
    one.backward()
    assert other.requires_grad
    later = other * 2
    with pytest.raises(RuntimeError, match=TWICE):
        later.backward()


def test_only_what_runs_is_freed(lib: Any) -> None:
    """RET-07, RET-08, INP-07."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * x
    branch = w * w
    z = y.exp() + branch
    lib.grad(z, [y])
    lib.equal(lib.grad(y, x)[0], 6.0)
    lib.equal(lib.grad(branch, w)[0], 4.0)


def test_backward_into_a_non_leaf_runs_its_node(lib: Any) -> None:
    """RET-09, INP-06: an implementation detail that both share."""
    x = lib.tensor(3.0)
    y = x * x
    (y * 2).backward(inputs=[y])
    with pytest.raises(RuntimeError, match=TWICE):
        lib.grad(y, x)


def test_saved_tensors_after_freeing(lib: Any) -> None:
    """RET-10."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = lib.tensor(3.0)
    y = lib.fn(forward, lambda ctx, g: g * 2).apply(x)
    assert y.grad_fn.saved_tensors[0] is x
    y.backward()
    with pytest.raises(RuntimeError, match=TWICE):
        y.grad_fn.saved_tensors


@pytest.mark.parametrize("retain", [False, True])
def test_freed_means_memory(ours: Any, retain: bool) -> None:
    """RET-12: an intermediate that only the graph keeps is gone after a default backward."""
    x = ours.tensor([1.0, 2.0])
    middle = x * 2
    y = (middle * middle).sum()
    array = weakref.ref(middle.array)
    del middle
    assert array() is not None
    y.backward(retain_graph=retain)
    assert (array() is not None) is retain


def test_batched_frees(lib: Any) -> None:
    """RET-13."""
    x = lib.tensor([1.0, 2.0])
    y = x * x
    eye = lib.const([[1.0, 0.0], [0.0, 1.0]])
    lib.grad(y, x, eye, is_grads_batched=True)
    with pytest.raises(RuntimeError, match=TWICE):
        lib.grad(y, x, eye, is_grads_batched=True)


def test_deep_chain(ours: Any) -> None:
    """RET-14: no recursion, neither in the pass nor on destruction."""
    x = ours.tensor(1.0)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    ours.equal(x.grad, 1.0)
    del y


def test_third_derivative(lib: Any) -> None:
    """HOG-01."""
    x = lib.tensor(2.0)
    g = x * x * x
    for expected in (12.0, 12.0, 6.0):
        (g,) = lib.grad(g, x, create_graph=True)
        lib.equal(g, expected)


def test_warning_once(ours: Any) -> None:
    """HOG-02: `backward` warns once per process, `grad` never."""
    from xpgrad import _accumulate

    before, _accumulate._warned = _accumulate._warned, False
    try:
        counts = []
        for _ in range(3):
            x = ours.tensor(2.0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ours.grad(x * x, x, create_graph=True)
                (x * x).backward(create_graph=True)
            counts.append(sum("reference cycle" in str(w.message) for w in caught))
            x.grad = None
        assert counts == [1, 0, 0]
    finally:
        _accumulate._warned = before


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_breaking_the_cycle(ours: Any) -> None:
    """HOG-03: `.grad = None` is enough for reference counting."""
    gc.disable()
    try:
        x = ours.tensor(2.0)
        (x * x).backward(create_graph=True)
        ref = weakref.ref(x)
        x.grad = None
        del x
        assert ref() is None
    finally:
        gc.enable()


def test_constant_derivative(lib: Any) -> None:
    """HOG-04."""
    x = lib.tensor(2.0)
    (g,) = lib.grad(x * 3 + 1, x, create_graph=True)
    assert not g.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        lib.grad(g, x)


def test_mixed_partials(lib: Any) -> None:
    """HOG-05."""
    x, w = lib.tensor(2.0), lib.tensor(5.0)
    (g,) = lib.grad(x * w, x, create_graph=True)
    lib.equal(lib.grad(g, w, retain_graph=True)[0], 1.0)
    assert lib.grad(g, x, allow_unused=True) == (None,)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_backward_of_a_gradient(lib: Any) -> None:
    """HOG-06: accumulates into that same `.grad`."""
    x = lib.tensor(2.0)
    (x * x * x).backward(create_graph=True)
    lib.equal(x.grad, 12.0)
    x.grad.backward()
    lib.equal(x.grad, 24.0)
    x.grad = None


def test_penalty_and_hessian_product(lib: Any) -> None:
    """HOG-07."""
    x = lib.tensor([1.0, 2.0])
    y = (x * x * x).sum()
    (g,) = lib.grad(y, x, create_graph=True)
    lib.equal(lib.grad(g, x, lib.const([1.0, 10.0]), retain_graph=True)[0], [6.0, 120.0])
    lib.equal(lib.grad((g * g).sum(), x)[0], [36.0, 288.0])


@pytest.mark.parametrize("outer", ["no_grad", "enable_grad"])
@pytest.mark.parametrize("create", [False, True])
def test_mode_of_the_backward(lib: Any, outer: str, create: bool) -> None:
    """HOG-08, HOK-26, FUN-25: the grad mode during the pass is create_graph."""
    x, seen = lib.tensor(2.0), []
    x.register_hook(lambda g: seen.append(lib.ns.is_grad_enabled()))
    y = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: seen.append(lib.ns.is_grad_enabled()) or g * 2).apply(x)
    with getattr(lib.ns, outer)():
        lib.grad(y, x, create_graph=create)
    assert seen == [create, create]


def test_second_order_survives(lib: Any) -> None:
    """HOG-09."""
    x = lib.tensor(2.0)
    y = x * x * x
    (g,) = lib.grad(y, x, create_graph=True)
    del y
    lib.equal(lib.grad(g, x)[0], 12.0)


def test_pow_at_zero(lib: Any) -> None:
    """HOG-11."""
    x = lib.tensor(0.0)
    (g,) = lib.grad(x**2, x, create_graph=True)
    lib.equal(g, 0.0)
    lib.equal(lib.grad(g, x)[0], 2.0)
