"""Group C, continued: `detach`, and the recorded graph as the user sees it."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib.util
import operator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts.c_leaves import product_of, without_gradient
from xpgrad_conformance.strategies import seeds

DETACHED = "Trying to use a saved tensor that has been detached in-place"


def twice(lib: Any) -> Any:
    """Return a custom Function with two outputs, 2x and 3x."""
    return lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)


# -- detach ------------------------------------------------------------------------------------------------------------


@contract("ACC-28")
def detach(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    for name, t in [("leaf", x), ("result", x * 2), ("view", x[:1]), ("constant", lib.constant([1.0])), ("detached", x.detach())]:
        d = t.detach()
        with lib.case(name):
            assert d is not t
            assert d.requires_grad is False
            assert d.grad_fn is None
            assert d.is_leaf
            assert d._version == t._version
            if lib.sees_memory:
                assert lib.same_memory(d, t)
    with lib.ns.enable_grad():
        assert x.detach().requires_grad is False
    # A write through either Tensor is visible through both and counted by both, and raises if the old value was saved.
    for through_detached in (True, False):
        y = x * 2
        saved, apart = lib.xp.sum(y * y), lib.xp.sum(y * 5)
        d = y.detach()
        (d if through_detached else y).mul_(10)
        with lib.case(through_detached):
            lib.equal(y, [20.0, 40.0])
            lib.equal(d, [20.0, 40.0])
            assert y._version == d._version == 1
            with lib.raises(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace operation"):
                saved.backward()
            x.grad = None
            apart.backward()
            lib.equal(x.grad, [10.0, 10.0])
    if importlib.util.find_spec(f"{lib.ns.__name__}.autograd.forward_ad") is not None:  # if it is missing, group M reports it
        fwd = lib.module("autograd.forward_ad")
        with fwd.dual_level():
            dual = fwd.make_dual(lib.constant([1.0, 2.0]), lib.ones(2))
            assert fwd.unpack_dual(dual).tangent is not None
            assert fwd.unpack_dual(dual.detach()).tangent is None


@contract("ACC-29")
def detach_in_place(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    later = lib.xp.sum(y * 3)
    assert y.detach_() is y
    assert y.is_leaf
    assert y.requires_grad is False
    assert y.grad_fn is None
    assert (y * x.detach()).requires_grad is False
    later.backward()  # a graph recorded before keeps its history
    lib.equal(x.grad, [6.0, 6.0])
    assert y.requires_grad_().is_leaf
    lib.xp.sum(y * y).backward()
    lib.equal(y.grad, [4.0, 8.0])
    lib.equal(x.grad, [6.0, 6.0])
    leaf = lib.tensor([1.0, 2.0])
    leaf.detach_()
    assert leaf.is_leaf
    assert leaf.requires_grad is False
    # A leaf with a hook whose `requires_grad` was turned off: its gradient is dropped, but not after a recorded write.
    for written in (False, True):
        leaf, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
        total = lib.xp.sum(leaf * 3 + w)
        leaf.register_hook(lambda g: None)
        leaf.requires_grad_(False)
        if written:
            leaf.mul_(w)
        with lib.case(written), lib.raises(RuntimeError, "moved into the graph interior") if written else contextlib.nullcontext():
            total.backward()
        assert written or leaf.grad is None
    views = {
        "slice": lambda t: t[:1],
        "transpose": lambda t: lib.xp.permute_dims(t, (0,)),
        "reshape": lambda t: lib.xp.reshape(t, (2, 1)),
        "view of a view": lambda t: t[:][0],
    }
    for name, view in views.items():
        base = x * 2
        part = view(base)
        with lib.case(name):
            with lib.raises(RuntimeError, "Can't detach views in-place"):
                part.detach_()
            assert part.requires_grad
            assert part.grad_fn is not None


@contract("ACC-30")
def saved_and_detached_in_place(lib: Any) -> None:
    uses = {
        "square": lambda y: y * y,
        "product": lambda y: y * lib.tensor([5.0, 7.0]),
        "sine": lambda y: lib.xp.sin(y),
        "power": lambda y: y**3,
    }
    for name, use in uses.items():
        x = lib.tensor([1.0, 2.0])
        y = x * 2
        saved, apart = lib.xp.sum(use(y)), lib.xp.sum(y + 1)
        y.detach_()
        with lib.case(name):
            apart.backward(retain_graph=True)
            lib.equal(x.grad, [2.0, 2.0])
            with lib.raises(RuntimeError, DETACHED):
                saved.backward()
            lib.equal(x.grad, [2.0, 2.0])


# -- the graph ---------------------------------------------------------------------------------------------------------


@contract("ACC-31")
def grad_fn(lib: Any) -> None:
    x, const = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
    with lib.ns.no_grad():
        quiet = x * 2
    for t in (x, const, const * 2, quiet, x.detach(), x > 1):
        assert t.grad_fn is None
        assert t.output_nr == 0
    programs = {
        "product": lambda: x * const,
        "view": lambda: x[:1],
        "sum": lambda: lib.xp.sum(x),
        "cast": lambda: lib.cast(x, lib.narrow),
    }
    for name, program in programs.items():
        y, again = program(), program()
        with lib.case(name):
            assert isinstance(y.grad_fn, lib.graph.Node)
            node = y.grad_fn
            assert y.grad_fn is node
            assert again.grad_fn is not node
            assert y.output_nr == 0
            gc.collect()
            assert y.grad_fn is node
    several = {"custom": lambda: twice(lib).apply(x)}
    for name, make in several.items():
        with lib.case(name):
            outs = make()
            assert len({id(t.grad_fn) for t in outs}) == 1
            assert isinstance(outs[0].grad_fn, lib.graph.Node)
            assert [t.output_nr for t in outs] == list(range(len(outs)))


@contract("ACC-32")
def nodes(lib: Any) -> None:
    x, w, const = lib.tensor([1.0, 2.0]), lib.tensor([5.0, 6.0]), lib.constant([3.0, 4.0])
    y = x * const
    node = y.grad_fn
    assert isinstance(node.name(), str)
    assert "Mul" in node.name()
    assert "Sin" in lib.xp.sin(x).grad_fn.name()
    assert lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g, "Mine").apply(x).grad_fn.name() == "MineBackward"
    assert isinstance(node.metadata, dict)
    node.metadata["mine"] = 1
    del node
    gc.collect()
    assert y.grad_fn.metadata == {"mine": 1}
    assert lib.xp.sin(y).grad_fn.next_functions[0][0].metadata == {"mine": 1}
    assert (x * const).grad_fn.metadata == {}
    assert isinstance(y.grad_fn.next_functions, tuple)
    (leaf, number), constant = y.grad_fn.next_functions
    assert tuple(constant) == (None, 0)
    assert number == 0
    assert leaf.name().endswith("AccumulateGrad")
    assert leaf.variable is x
    assert leaf.next_functions == ()
    # Each leaf has one node that all its uses share; an edge to a result leads to the result's own node.
    both = (w * x).grad_fn.next_functions
    assert both[1][0] is leaf
    assert both[0][0].variable is w
    assert (const * y).grad_fn.next_functions[1][0] is y.grad_fn
    a, b = twice(lib).apply(x)
    assert tuple((a * b).grad_fn.next_functions) == ((a.grad_fn, 0), (a.grad_fn, 1))
    tall = x
    for _ in range(3):
        tall = lib.xp.sin(tall)
    found, names = tall.grad_fn, []
    while found.next_functions:
        names.append(found.name())
        found = found.next_functions[0][0]
    assert len(names) == 3
    assert found.variable is x


@contract("ACC-33")
def nodes_are_instances_of_node(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = x * x
    found = {
        "built in": y.grad_fn,
        "view": y[0].grad_fn,
        "leaf": y.grad_fn.next_functions[0][0],
        "custom": without_gradient(lib).apply(x).grad_fn,
        "custom with several outputs": twice(lib).apply(x)[1].grad_fn,
        "edge": lib.graph.get_gradient_edge(x).node,
    }
    for name, node in found.items():
        with lib.case(name):
            assert isinstance(node, lib.graph.Node)
    for other in (x, None, "node", object()):
        assert not isinstance(other, lib.graph.Node)


@contract("ACC-34")
def saved_values_can_be_read(lib: Any) -> None:
    x, c = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
    product = x * c
    assert product.grad_fn._saved_self is None
    assert product.grad_fn._saved_other is c
    square = x * x
    assert square.grad_fn._saved_self is x
    assert square.grad_fn._saved_other is x
    power = lib.xp.exp(x)
    result = power.grad_fn._saved_result
    assert result is not power
    lib.equal(result, np.exp([1.0, 2.0]))
    assert result.grad_fn is power.grad_fn
    if lib.sees_memory:
        assert lib.same_memory(result, power)
    middle = x * 2
    found = lib.xp.sin(middle).grad_fn._saved_self
    lib.equal(found, [2.0, 4.0])
    assert found.grad_fn is middle.grad_fn
    assert found is middle


@contract("ACC-35", draw={"steps": st.lists(st.sampled_from(["halve", "square", "sine", "skip"]), max_size=5), "seed": seeds})
def the_graph_is_rebuilt_each_time(lib: Any, steps: Any, seed: int) -> None:
    x = lib.random((), seed)
    for program in (steps, [], ["square"], ["halve", "sine"], steps):
        y, value, slope = x * 1, float(lib.value(x)), 1.0
        for step in program:
            if step == "halve":
                y, value, slope = y * 0.5, value / 2, slope / 2
            elif step == "square":
                y, value, slope = y * y * 0.5, value * value / 2, slope * value
            elif step == "sine":
                y, value, slope = lib.xp.sin(y), np.sin(value), slope * np.cos(value)
        with lib.case(program):
            lib.equal(y, value, rtol=1e-4)
            lib.equal(lib.grad(y, x)[0], slope, rtol=1e-4)
    # A loop whose length depends on the values.
    for start in (1.5, 0.4, 9.0):
        x = y = lib.tensor(start)
        times = 0
        while y.item() < 10:
            y, times = y * 2, times + 1
        (y * 1).backward()
        lib.equal(x.grad, 2.0**times)


@contract("ACC-36")
def exporting_needs_detach(lib: Any) -> None:
    x = lib.tensor(2.0)
    for name, t in [("leaf", x), ("result", x * x), ("vector", lib.tensor([1.0, 2.0]))]:
        with lib.case(name):
            with lib.raises(RuntimeError, "Can't call numpy() on Tensor that requires grad", "detach().numpy()"):
                t.numpy()
            np.testing.assert_allclose(np.asarray(t.detach().numpy()), lib.value(t))
    with lib.silent():
        assert x.item() == 2.0
        assert (x * x).item() == 4.0
        assert lib.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert float(x.detach()) == 2.0
    with lib.warns(UserWarning, "Converting a tensor with requires_grad=True to a scalar"):
        assert float(x) == 2.0
    with lib.ns.no_grad():
        assert np.asarray((x * x).numpy()).item() == 4.0
    # Tensors that do not require grad convert without a warning.
    one, whole = lib.constant(2.75), lib.constant(3, dtype=lib.index)
    with lib.silent():
        assert (int(one), complex(one), format(one, ".1f"), bool(one)) == (2, 2.75, "2.8", True)
        assert (int(whole), operator.index(whole), "abcd"[whole]) == (3, 3, "d")
        assert np.asarray(lib.constant([1.0, 2.0]), dtype="float32").dtype == np.float32
    with lib.raises(TypeError):
        operator.index(one)
    for convert in (int, float, complex):
        with lib.case(convert), lib.raises((RuntimeError, ValueError, TypeError)):
            convert(lib.constant([1.0, 2.0]))


@contract("ACC-37")
def deepcopy(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    lib.xp.sum(x * x).backward()
    fresh, const = lib.tensor([3.0], dtype=lib.narrow), lib.constant([4.0])
    y, z, c, again = copy.deepcopy([x, fresh, const, x])
    assert again is y
    assert y is not x
    assert [t.requires_grad for t in (y, z, c)] == [True, True, False]
    assert all(t.is_leaf for t in (y, z, c))
    assert z.dtype == lib.dtype(lib.narrow)
    assert z.grad is None
    assert c.grad is None
    assert y.grad is not x.grad
    lib.equal(y.grad, [2.0, 4.0])
    lib.xp.sum(y * 10).backward()
    lib.equal(y.grad, [12.0, 14.0])
    lib.equal(x.grad, [2.0, 4.0])
    with lib.ns.no_grad():
        y.mul_(5)
    lib.equal(y, [5.0, 10.0])
    lib.equal(x, [1.0, 2.0])
    for name, t in [("result", x * 2), ("view", x[:1])]:
        with lib.case(name), lib.raises(RuntimeError, "Only Tensors created explicitly by the user", "deepcopy"):
            copy.deepcopy(t)


@contract("ACC-38", draw={"frozen": st.lists(st.booleans(), min_size=1, max_size=4)})
def frozen_parameters(lib: Any, frozen: Any) -> None:
    x = lib.tensor(1.0)
    weights = [lib.tensor(k + 2.0) for k in range(len(frozen))]
    for w, flag in zip(weights, frozen, strict=True):
        assert w.requires_grad_(not flag) is w
        assert w.requires_grad is not flag
    for _ in range(2):
        product_of([x, *weights]).backward()
        assert [w.grad is None for w in weights] == frozen
    for w in weights:
        w.requires_grad_(True)
        w.grad = None
    product_of([x, *weights]).backward()
    full = float(np.prod([k + 2.0 for k in range(len(frozen))]))
    for k, w in enumerate(weights):
        lib.equal(w.grad, full / (k + 2))


@contract("ACC-39")
def a_deleted_leaf(lib: Any) -> None:
    x, w, seen = lib.tensor([2.0, 3.0]), lib.tensor([5.0, 7.0]), []
    y = lib.xp.sum(x * w * x)
    x.register_hook(lambda g: seen.append(lib.value(g).tolist()))
    del x
    gc.collect()
    y.backward()
    lib.equal(w.grad, [4.0, 9.0])
    assert seen == [[20.0, 42.0]]
    # The graph still refers to the leaf, so the leaf's `.grad` is filled.
    x = lib.tensor([2.0, 3.0])
    y = x * 2
    del x
    gc.collect()
    lib.xp.sum(y).backward()
    leaf = y.grad_fn.next_functions[0][0].variable
    lib.equal(leaf, [2.0, 3.0])
    lib.equal(leaf.grad, [2.0, 2.0])


@contract("ACC-40")
def variable(lib: Any) -> None:
    data = lib.constant([1.0, 2.0])
    x = lib.ag.Variable(data, requires_grad=True)
    assert isinstance(x, lib.ns.Tensor)
    assert x.requires_grad is True
    assert x.is_leaf
    assert data.requires_grad is False
    lib.xp.sum(x * x).backward()
    lib.equal(x.grad, [2.0, 4.0])
    assert lib.ag.Variable(data).requires_grad is False
    assert lib.ag.Variable(data, True).requires_grad is True
    if lib.sees_memory:
        assert lib.same_memory(x, data)
    for arguments in ([1.0], ([1.0], True)):
        with lib.case(arguments), lib.raises(RuntimeError, "is deprecated, use"):
            lib.ag.variable(*arguments)
