"""Group D: the memory layout of `.grad`."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.strategies import seeds


@st.composite
def permutations(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw a shape and an order of its axes."""
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    return shape, tuple(draw(st.permutations(range(len(shape)))))


#: A shape and an order of its axes that give the strides (1, 12, 4).
FIXED = ((2, 3, 4), (2, 0, 1))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def leaf(x: Any) -> Any:
    """Return a leaf that shares a constant's memory and therefore its strides."""
    return x.detach().requires_grad_()


def permuted_leaf(lib: Any, layout: Any, seed: int = 0) -> Any:
    """Return a dense leaf whose axes are in another order in memory."""
    shape, axes = layout
    x = leaf(lib.xp.permute_dims(lib.random(shape, seed, rg=False), axes))
    assert x.stride() == tuple(row_major(shape)[k] for k in axes)
    return x


def sparse_in_memory(lib: Any) -> list[tuple[str, Any]]:
    """Return leaves, by name, whose elements do not fill a block of memory exactly once each."""
    base = lib.random((2, 3, 4), 1, rg=False)
    return [
        ("gaps", leaf(base[:, :, ::2])),
        ("a part of the rows", leaf(lib.xp.permute_dims(base, (2, 0, 1))[:, :, 1:])),
        ("broadcast", leaf(lib.xp.broadcast_to(lib.constant([[1.0], [2.0]]), (2, 3)))),
        ("broadcast number", leaf(lib.xp.broadcast_to(lib.constant(2.0), (3, 2)))),
    ]


def programs(lib: Any, x: Any) -> list[tuple[str, Any, Any]]:
    """Return functions of a leaf whose gradients have different layouts, as (name, scalar result, expected gradient)."""
    v = lib.value(x)
    axes = tuple(reversed(range(x.ndim)))
    turned = lib.random(tuple(reversed(v.shape)), 7, rg=False)
    seen = lib.random(v.shape, 8, rg=False)
    return [
        ("expanded from a sum", lib.xp.sum(x), np.ones(v.shape)),
        ("elementwise", lib.xp.sum(x * x), 2 * v),
        ("of a contiguous constant", lib.xp.sum(x * seen), lib.value(seen)),
        ("transposed", lib.xp.sum(lib.xp.permute_dims(x, axes) * turned), lib.value(turned).transpose(axes)),
    ]


@contract("LAY-01", requires="strides", draw={"layout": permutations(), "seed": seeds})
def a_dense_leafs_gradient_has_its_strides(lib: Any, layout: Any, seed: int) -> None:
    leaves = [
        ("drawn", permuted_leaf(lib, layout, seed), None),
        ("permuted", permuted_leaf(lib, FIXED, seed), (1, 12, 4)),
        ("transposed", leaf(lib.xp.permute_dims(lib.random((2, 3), seed, rg=False), (1, 0))), (1, 3)),
        ("odd stride of a side of 1", leaf(lib.xp.permute_dims(lib.random((2, 3), seed, rg=False), (1, 0))[:, :1]), (1, 3)),
    ]
    for name, x, strides in leaves:
        with lib.case(name):
            assert strides is None or x.stride() == strides
            (x * x).backward(lib.ones(*x.shape))
            lib.equal(x.grad, 2 * lib.value(x))
            # NB: the stride of an axis of length 1 is arbitrary; PyTorch takes it from the leaf or from the gradient.
            pairs = zip(x.shape, x.grad.stride(), x.stride(), strict=True)
            assert all(mine == its for side, mine, its in pairs if side != 1)


@contract("LAY-02", requires="strides")
def any_other_leafs_gradient_is_contiguous(lib: Any) -> None:
    for name, x in sparse_in_memory(lib):
        with lib.case(name):
            assert x.stride() != row_major(tuple(x.shape))
            for y, expected in [(lib.xp.sum(x * x), 2 * lib.value(x)), (lib.xp.sum(x), np.ones(x.shape))]:
                x.grad = None
                y.backward()
                lib.equal(x.grad, expected)
                assert x.grad.stride() == row_major(tuple(x.shape))


@contract("LAY-03", requires="strides", draw={"layout": permutations(), "seed": seeds})
def whatever_layout_the_gradient_comes_in(lib: Any, layout: Any, seed: int) -> None:
    dense = [permuted_leaf(lib, layout, seed), permuted_leaf(lib, FIXED, seed)]
    others = [x for _, x in sparse_in_memory(lib)]
    for leaf_, strides in [*((x, x.stride()) for x in dense), *((x, row_major(tuple(x.shape))) for x in others)]:
        for name, y, expected in programs(lib, leaf_):
            with lib.case((tuple(leaf_.shape), strides, name)):
                leaf_.grad = None
                y.backward()
                lib.equal(leaf_.grad, expected)
                assert leaf_.grad.stride() == strides
        seed_ = lib.xp.permute_dims(lib.ones(*reversed(leaf_.shape)), tuple(reversed(range(leaf_.ndim))))
        leaf_.grad = None
        leaf_.backward(seed_)  # the gradient is the seed itself, which has other strides
        assert leaf_.grad.stride() == strides


@contract("LAY-04", requires="strides", draw={"layout": permutations(), "seed": seeds})
def the_same_with_create_graph(lib: Any, layout: Any, seed: int) -> None:
    dense = [permuted_leaf(lib, layout, seed), permuted_leaf(lib, FIXED, seed)]
    others = [x for _, x in sparse_in_memory(lib)]
    for leaf_, strides in [*((x, x.stride()) for x in dense), *((x, row_major(tuple(x.shape))) for x in others)]:
        for name, y, expected in programs(lib, leaf_):
            with lib.case((tuple(leaf_.shape), strides, name)):
                leaf_.grad = None
                y.backward(create_graph=True)
                lib.equal(leaf_.grad, expected)
                assert leaf_.grad.stride() == strides
                leaf_.grad = None


@contract("LAY-05", draw={"layout": permutations(), "seed": seeds})
def adding_keeps_object_and_strides(lib: Any, layout: Any, seed: int) -> None:
    strides = lib.capabilities["strides"]
    x = permuted_leaf(lib, layout, seed) if strides else lib.random(layout[0], seed)
    turned = lib.xp.permute_dims(lib.ones(*reversed(x.shape)), tuple(reversed(range(x.ndim))))
    x.backward(turned)
    mine = x.grad
    for n in (1, 2):
        for k, (name, y, _) in enumerate(programs(lib, x)):
            with lib.case((n, name)):
                before, version = np.array(lib.value(mine)), mine._version
                y.backward(retain_graph=True)
                assert x.grad is mine
                assert mine._version == version + 1
                lib.equal(mine, before + programs(lib, x)[k][2])
                if strides:
                    assert mine.stride() == x.stride()


@contract("LAY-06", draw={"layout": permutations(), "seed": seeds})
def with_create_graph_grad_is_a_new_tensor(lib: Any, layout: Any, seed: int) -> None:
    x = permuted_leaf(lib, layout, seed) if lib.capabilities["strides"] else lib.random(layout[0], seed)
    v = np.array(lib.value(x))
    ones = lib.ones(*x.shape)
    (x * x).backward(ones)
    old = x.grad
    (x * x * x).backward(ones, create_graph=True)
    assert x.grad is not old
    lib.equal(old, 2 * v)
    lib.equal(x.grad, 2 * v + 3 * v * v)
    if lib.capabilities["strides"]:
        # Strides are usually kept, but this is not guaranteed. In any case the elements fill a block of memory.
        assert sum((side - 1) * stride for side, stride in zip(x.shape, x.grad.stride(), strict=True)) == v.size - 1
    lib.equal(lib.grad(x.grad, x, ones)[0], 6 * v)
    x.grad = None


@contract("LAY-07", requires="strides mutable")
def a_layout_of_ones_own_is_kept(lib: Any) -> None:
    x = lib.random((2, 3), 1)
    x.grad = lib.xp.permute_dims(lib.constant(np.zeros((3, 2))), (1, 0))
    mine = x.grad
    assert mine.stride() == (1, 2)
    expected = np.zeros((2, 3))
    for n in (1, 2):
        for name, y, g in programs(lib, x):
            with lib.case((n, name)):
                y.backward()
                expected = expected + g
                assert x.grad is mine
                assert mine.stride() == (1, 2)
                lib.equal(mine, expected)
    mine.zero_()
    lib.xp.sum(x * x).backward()
    assert x.grad is mine
    assert mine.stride() == (1, 2)
    lib.equal(mine, 2 * lib.value(x))
    x.grad = None
    lib.xp.sum(x * x).backward()
    assert x.grad.stride() == (3, 1)


@contract("LAY-08")
def none_or_zeros_before_each_pass(lib: Any) -> None:
    one, other = lib.random((2, 3), 1), lib.random((2, 3), 1)
    if lib.capabilities["strides"]:
        other.grad = lib.xp.permute_dims(lib.constant(np.zeros((3, 2))), (1, 0))
    for n in (1, 2, 3):
        with lib.case(n):
            one.grad = None
            if other.grad is not None:
                other.grad.zero_()
            for x in (one, other):
                lib.xp.sum(n * x * x).backward()
                lib.equal(x.grad, 2 * n * lib.value(x))
            if lib.capabilities["strides"]:
                assert one.grad.stride() == (3, 1)
                assert not lib.capabilities["mutable"] or other.grad.stride() == (1, 2)


unchecked("LAY-09", "out of scope: the Array API standard has no sparse layouts")


@contract("LAY-10", requires="strides mutable")
def the_policy_can_be_switched_off(lib: Any) -> None:
    policy = lib.ag.grad_mode.enforce_grad_layout_policy
    factor = lib.ones(3, 4)

    def strides() -> tuple[int, ...]:
        x = leaf(lib.xp.permute_dims(lib.ones(4, 3), (1, 0)))
        (x * factor).backward(factor)  # the leaf's gradient is a new contiguous product that nothing else refers to
        lib.equal(x.grad, np.ones((3, 4)))
        return tuple(x.grad.stride())

    def elsewhere() -> tuple[int, ...]:
        found: list[tuple[int, ...]] = []
        thread = threading.Thread(target=lambda: found.append(strides()))
        thread.start()
        thread.join()
        return found[0]

    of_the_leaf, its_own = (1, 3), (4, 1)
    try:
        assert strides() == of_the_leaf
        with policy(False):
            assert strides() == its_own
            assert elsewhere() == of_the_leaf
            with policy(True):
                assert strides() == of_the_leaf
            assert strides() == its_own
        assert strides() == of_the_leaf
        assert policy(False)(strides)() == its_own
        assert strides() == of_the_leaf
        policy(False)
        assert strides() == its_own
        assert elsewhere() == of_the_leaf
        policy(True)
        assert strides() == of_the_leaf
    finally:
        policy(True)


@contract("LAY-11", draw={"layout": permutations(), "seed": seeds})
def values_and_objects_without_regard_to_strides(lib: Any, layout: Any, seed: int) -> None:
    shape, axes = layout
    base = lib.random(shape, seed, rg=False)
    x = leaf(lib.xp.permute_dims(base, axes))
    v = np.array(lib.value(x))
    ones = lib.ones(*x.shape)
    (x * x).backward(ones)
    mine = x.grad
    lib.equal(mine, 2 * v)
    version = mine._version
    (x * x * x).backward(ones)
    assert x.grad is mine
    assert mine._version > version
    lib.equal(mine, 2 * v + 3 * v * v)
    lib.equal(x, v)
    mine.zero_()
    assert x.grad is mine
    lib.equal(mine, 0 * v)
