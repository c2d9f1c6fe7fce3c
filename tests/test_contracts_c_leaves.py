"""Contracts of groups C and D: leaves, accumulation and the layout of `.grad`. Each test names its contracts in its docstring."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest


def test_accumulation(lib: Any) -> None:
    """ACC-01, ACC-02, ACC-05, ACC-26."""
    x, unused = lib.tensor(3.0), lib.tensor(1.0)
    assert x.grad is None
    (x * x).backward()
    lib.equal(x.grad, 6.0)
    (x * x).backward()
    lib.equal(x.grad, 12.0)
    assert unused.grad is None
    assert not x.grad.requires_grad
    assert x.grad.grad_fn is None


def test_reset(lib: Any) -> None:
    """ACC-03, LAY-08."""
    x = lib.tensor(3.0)
    (x * x).backward()
    first = x.grad
    first.zero_()
    (x * x).backward()
    assert x.grad is first
    lib.equal(first, 6.0)
    x.grad = None
    assert x.grad is None
    (x * x).backward()
    del x.grad
    assert x.grad is None


def test_only_leaves(lib: Any) -> None:
    """ACC-04, ACC-10."""
    x, const = lib.tensor(3.0), lib.const(2.0)
    y = x * const
    (y * y).backward()
    assert const.grad is None
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_undefined_gradient_at_a_leaf(lib: Any) -> None:
    """ACC-06, ACC-07."""
    x = lib.tensor(3.0)
    (x * 0).backward()
    lib.equal(x.grad, 0.0)
    nothing = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None)
    z = lib.tensor(3.0)
    nothing.apply(z).backward()
    assert z.grad is None
    z.grad = lib.const(5.0)
    nothing.apply(z).backward()
    lib.equal(z.grad, 5.0)


def test_is_leaf(lib: Any) -> None:
    """ACC-08, ACC-09, ACC-14, ACC-18."""
    x, const = lib.tensor([1.0]), lib.const([1.0])
    cases = [(x, True), (const, True), (const * 2, True), (x * 2, False), (lib.cast(x, "float32"), False), (x.detach(), True)]
    for t, expected in cases:
        assert t.is_leaf is expected
    assert not const.requires_grad
    assert not (const * 2).requires_grad
    for name in ("is_leaf", "grad_fn"):
        with pytest.raises(AttributeError):
            setattr(x, name, None)


def test_retain_grad(lib: Any) -> None:
    """ACC-11, ACC-12, ACC-13."""
    x = lib.tensor(3.0)
    y = x * x
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    z = y * 2
    z.backward(retain_graph=True)
    first = y.grad
    lib.equal(first, 2.0)
    z.backward()
    lib.equal(y.grad, 4.0)
    lib.equal(first, 2.0)
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        lib.const(1.0).retain_grad()


def test_requires_grad_flag(lib: Any) -> None:
    """ACC-15, ACC-16, ACC-38."""
    x = lib.tensor(3.0)
    y = x * x
    y.requires_grad_(True)
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    w = lib.tensor(2.0).requires_grad_(False)
    (x * w).backward()
    assert w.grad is None


def test_switched_off_after_the_forward(lib: Any) -> None:
    """ACC-17."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * w
    w.requires_grad = False
    y.backward()
    lib.equal(x.grad, 2.0)
    assert w.grad is None


@pytest.mark.parametrize(
    ("value", "error", "phrase"),
    [
        (lambda lib, x: 1.0, TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
        (lambda lib, x: x, RuntimeError, "can't assign Variable as its own grad"),
        (lambda lib, x: lib.ones(2), RuntimeError, "attempting to assign a gradient of size '\\[2\\]' to a tensor of size '\\[\\]'"),
        (lambda lib, x: lib.const(1.0, "float32"), RuntimeError, "attempting to assign a gradient with dtype"),
        (lambda lib, x: lib.const(1.0, "complex128"), RuntimeError, "attempting to assign a gradient with dtype"),
    ],
)
def test_assigning_grad(lib: Any, value: Any, error: Any, phrase: str) -> None:
    """ACC-19, CPX-09."""
    x = lib.tensor(3.0)
    with pytest.raises(error, match=phrase):
        x.grad = value(lib, x)
    assert x.grad is None


def test_assigning_grad_of_another_device(ours: Any) -> None:
    """ACC-19."""
    ours.needs_device("numpy")
    x = ours.tensor(3.0)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device type"):
        x.grad = ours.const(1.0).to_device("numpy+readonly")


def test_accumulation_in_place(lib: Any) -> None:
    """ACC-20, ACC-21, LAY-05: the user's own object changes, and its version rises by one."""
    x, mine = lib.tensor([1.0, 2.0]), lib.const([10.0, 20.0])
    x.grad = mine
    before = mine._version
    (x * x).sum().backward()
    assert x.grad is mine
    assert mine._version == before + 1
    lib.equal(mine, [12.0, 24.0])


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_accumulation_with_create_graph(lib: Any) -> None:
    """ACC-22, ACC-23, LAY-06, HOG-03."""
    x = lib.tensor(2.0)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    (x * x * x).backward(create_graph=True)
    second = x.grad
    assert second is not first
    lib.equal(first, 12.0)
    lib.equal(second, 24.0)
    (x * x).backward()
    assert x.grad is second
    assert x.grad.requires_grad
    lib.equal(second, 28.0)
    x.grad = None


@pytest.mark.parametrize("leaf", ["float32", "float64", "float16"])
def test_grad_has_the_dtype_of_the_leaf(lib: Any, leaf: str) -> None:
    """ACC-24."""
    x = lib.tensor([1.0, 2.0], dtype=leaf)
    (lib.cast(x, "float64") * lib.cast(x, "float32")).sum().backward()
    assert x.grad.dtype == getattr(lib.ns, leaf)
    lib.equal(x.grad, [2.0, 4.0])


def test_grad_dtype(lib: Any) -> None:
    """ACC-25."""
    x = lib.tensor([1.0, 2.0], dtype="float32")
    assert x.grad_dtype == lib.ns.float32
    x.grad_dtype = lib.ns.float64
    (x * x).sum().backward()
    assert x.grad.dtype == lib.ns.float64
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        (x * x).grad_dtype


def test_leaves_do_not_share_a_gradient(lib: Any) -> None:
    """ACC-27."""
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    (x + y).backward(lib.ones(2))
    assert not lib.memory(x.grad, y.grad)
    x.grad.zero_()
    lib.equal(y.grad, [1.0, 1.0])


def test_detach(lib: Any) -> None:
    """ACC-28."""
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    z = y * y
    d = y.detach()
    assert not d.requires_grad
    assert lib.memory(d, y)
    d.zero_()
    assert y._version == d._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_detach_in_place(lib: Any) -> None:
    """ACC-29."""
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2)[:1].detach_()


def test_nodes(lib: Any) -> None:
    """ACC-31, ACC-32, ACC-33."""
    x, const = lib.tensor([1.0, 2.0]), lib.const([3.0, 4.0])
    y = x * const
    node = y.grad_fn
    assert node is y.grad_fn
    assert x.grad_fn is None
    assert const.grad_fn is None
    assert node.name() == "MulBackward0"
    node.metadata["mine"] = 1
    assert y.grad_fn.metadata["mine"] == 1
    (leaf, number), (nothing, zero) = node.next_functions
    assert (nothing, zero, number) == (None, 0, 0)
    assert leaf.name().endswith("AccumulateGrad")
    assert leaf.variable is x
    both = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g).apply(x)
    assert both[0].grad_fn is both[1].grad_fn
    assert [t.output_nr for t in both] == [0, 1]
    for found in (node, leaf, both[0].grad_fn):
        assert isinstance(found, lib.graph.Node)


def test_control_flow(lib: Any) -> None:
    """ACC-35."""
    x = lib.tensor(2.0)
    for n, expected in ((1, 1.0), (2, 4.0), (3, 12.0)):
        y = x
        for _ in range(n - 1):
            y = y * x
        lib.equal(lib.grad(y, x)[0], expected)


def test_export(lib: Any) -> None:
    """ACC-36."""
    x = lib.tensor(2.0)
    with pytest.raises(RuntimeError, match="numpy\\(\\) on Tensor that requires grad"):
        x.numpy()
    assert x.item() == 2.0


def test_deepcopy(lib: Any) -> None:
    """ACC-37."""
    x = lib.tensor([1.0, 2.0])
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.is_leaf
    assert not lib.memory(x, y)
    lib.equal(y.grad, [2.0, 4.0])
    assert y.grad is not x.grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_deleted_leaf(lib: Any) -> None:
    """ACC-39."""
    x = lib.tensor(2.0)
    y = x * x
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(lib.value(g).item()))
    del x
    y.backward()
    assert seen == [4.0]


def test_everything_is_reclaimed_by_reference_counting(ours: Any) -> None:
    """ACC-32: neither a leaf nor its graph needs the cycle collector."""
    gc.disable()
    try:
        x = ours.tensor([1.0, 2.0])
        y = (x * x).sin()
        refs = [weakref.ref(t) for t in (x, y, y.grad_fn)]
        y.sum().backward()
        del x, y
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()


def strided(lib: Any, kind: str) -> Any:
    """A leaf of a given memory layout, with the strides that its gradient must have."""
    if kind == "contiguous":
        return lib.tensor(np.ones((2, 3))), (3, 1)
    base = lib.const(np.arange(24.0).reshape(2, 3, 4))
    made = {
        "permuted": (lambda: base.permute(2, 0, 1), (1, 12, 4)),
        "gaps": (lambda: base[:, :, ::2], (6, 2, 1)),
        "expanded": (lambda: lib.const([[1.0], [2.0]]).expand(2, 3), (3, 1)),
    }[kind]
    return made[0]().detach().requires_grad_(), made[1]


@pytest.mark.parametrize("kind", ["contiguous", "permuted", "gaps", "expanded"])
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_layout_of_the_first_gradient(lib: Any, kind: str, create: bool) -> None:
    """LAY-01, LAY-02, LAY-03, LAY-04: whatever strides the incoming gradient has."""
    for program in (lambda x: x.sum(), lambda x: (x * x).sum(), lambda x: (x.transpose(0, 1) * 2).sum()):
        x, expected = strided(lib, kind)
        program(x).backward(create_graph=create)
        assert x.grad.stride() == expected
        x.grad = None


@pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")
def test_manual_layout(lib: Any) -> None:
    """LAY-07: a pre-assigned gradient keeps its layout, where arrays can be written to."""
    lib.needs_device("numpy")
    x = lib.tensor(np.ones((2, 3)))
    x.grad = lib.const(np.zeros((3, 2))).transpose(0, 1)
    mine = x.grad
    (x * x).sum().backward()
    assert x.grad is mine
    assert x.grad.stride() == (1, 2)
    lib.equal(x.grad, np.full((2, 3), 2.0))
