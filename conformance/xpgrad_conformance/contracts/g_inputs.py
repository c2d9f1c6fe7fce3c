"""Group G: ``inputs=`` of `backward`, and `GradientEdge`."""

from __future__ import annotations

import collections
import gc
import types
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

TWICE = "backward through the graph a second time"


def edge_of(lib: Any, t: Any) -> Any:
    """Return the gradient edge of a Tensor."""
    return lib.graph.get_gradient_edge(t)


def counting(lib: Any, ran: list[str], name: str, factor: float = 1.0) -> Any:
    """Return a custom Function that multiplies by `factor` and appends `name` to `ran` when its backward runs."""

    def backward(ctx: Any, g: Any) -> Any:
        ran.append(name)
        return g * factor

    return lib.fn(lambda ctx, x: x * factor, backward)


@contract("INP-01", draw={"chosen": st.lists(st.booleans(), min_size=3, max_size=3).filter(any), "seed": seeds})
def only_the_inputs_accumulate(lib: Any, chosen: list[bool], seed: int) -> None:
    leaves = [lib.random((2,), seed + k) for k in range(3)]
    values = [lib.value(x) for x in leaves]
    inputs = [x for x, yes in zip(leaves, chosen, strict=True) if yes]
    expected = [values[1] * values[2], values[0] * values[2], values[0] * values[1]]
    for how in ("method", "function"):
        y = lib.xp.sum(leaves[0] * leaves[1] * leaves[2])
        if how == "method":
            y.backward(inputs=inputs)
        else:
            lib.backward(y, inputs=inputs)
        for x, yes, g in zip(leaves, chosen, expected, strict=True):
            with lib.case((how, yes)):
                if yes:
                    lib.equal(x.grad, g if how == "method" else 2 * g)
                else:
                    assert x.grad is None


@contract("INP-02")
def all_leaves_without_inputs(lib: Any) -> None:
    for more in ({}, {"inputs": None}):
        with lib.case(more):
            x, w, c = lib.tensor(3.0), lib.tensor(2.0), lib.constant(5.0)
            y = x * w
            (y * y * c).backward(**more)
            lib.equal(x.grad, 120.0)
            lib.equal(w.grad, 180.0)
            assert c.grad is None
            assert not y.retains_grad
            lib.backward(x * w, **more)
            lib.equal(x.grad, 122.0)


@contract("INP-03")
def forms_of_inputs(lib: Any) -> None:
    forms = [
        ("bare", lambda x: x),
        ("list", lambda x: [x]),
        ("tuple", lambda x: (x,)),
        ("generator", lambda x: (t for t in (x,))),
        ("iterator", lambda x: iter([x])),
        ("twice", lambda x: [x, x]),
        ("thrice", lambda x: (t for t in (x, x, x))),
    ]
    for name, form in forms:
        with lib.case(name):
            x, w = lib.tensor(3.0), lib.tensor(2.0)
            (x * x * w).backward(inputs=form(x))
            lib.equal(x.grad, 12.0)
            lib.backward(x * w, inputs=form(x))
            lib.equal(x.grad, 14.0)
            assert w.grad is None
    with lib.case("a result twice"):
        y = x * x
        (y * 5).backward(inputs=[y, y])
        lib.equal(y.grad, 5.0)


@contract("INP-04")
def inputs_are_not_empty(lib: Any) -> None:
    for empty in ([], (), {}):
        with lib.case(empty):
            x = lib.tensor(3.0)
            y = x * x
            with lib.raises(RuntimeError, "`inputs` argument to `backward()` cannot be empty"):
                y.backward(inputs=empty)
            with lib.raises(RuntimeError, "`inputs` argument to `backward()` cannot be empty"):
                lib.backward(y, inputs=empty)
            assert x.grad is None


@contract("INP-05")
def results_may_be_inputs(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    order: list[float] = []

    def hook(g: Any) -> Any:
        order.append(float(lib.value(g)))
        return g * 10

    y.register_hook(hook)
    assert not y.retains_grad
    (y * 2).backward(inputs=[y], retain_graph=True)
    assert order == [2.0]
    lib.equal(y.grad, 20.0)
    assert y.retains_grad
    y.grad = None
    (y * 3).backward()
    lib.equal(y.grad, 30.0)
    lib.equal(x.grad, 180.0)


@contract("INP-06")
def backward_runs_an_inputs_own_node(lib: Any) -> None:
    x, ran = lib.tensor(3.0), []
    programs = [("operation", lib.xp.exp, ["hook"]), ("custom", counting(lib, ran, "body").apply, ["body", "hook"])]
    for name, program, expected in programs:
        with lib.case(name):
            y = program(x)
            y.grad_fn.register_hook(lambda inputs, outputs: ran.append("hook"))
            (y * 2).backward(inputs=[y])
            lib.equal(y.grad, 2.0)
            assert ran == expected
            assert x.grad is None
            del ran[:]


@contract("INP-07")
def grad_runs_an_inputs_node_only_for_another(lib: Any) -> None:
    x, ran = lib.tensor(3.0), []
    y = counting(lib, ran, "y", 4.0).apply(x)
    z = counting(lib, ran, "z", 2.0).apply(y)
    lib.equal(lib.grad(z, y, retain_graph=True)[0], 2.0)
    assert ran == ["z"]
    del ran[:]
    gy, gx = lib.grad(z, [y, x], retain_graph=True)
    lib.equal(gy, 2.0)
    lib.equal(gx, 8.0)
    assert ran == ["z", "y"]
    del ran[:]
    lib.equal(lib.grad(z, z, retain_graph=True)[0], 1.0)
    assert not ran
    y = lib.xp.exp(x)
    y.grad_fn.register_hook(lambda inputs, outputs: ran.append("exp"))
    lib.equal(lib.grad(y * 2, y, retain_graph=True)[0], 2.0)
    assert not ran
    lib.grad(y * 2, [x, y])
    assert ran == ["exp"]


@contract("INP-08")
def leaves_below_a_result_get_nothing(lib: Any) -> None:
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * w
    z = lib.xp.sin(y)
    (z * 2).backward(inputs=[z], retain_graph=True)
    lib.equal(z.grad, 2.0)
    (z * 2).backward(inputs=y)
    lib.equal(y.grad, 2 * np.cos(6.0))
    assert x.grad is None
    assert w.grad is None


@contract("INP-09")
def an_unreachable_input_is_ignored(lib: Any) -> None:
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    later = x * u
    (x * x).backward(inputs=[u, x, later])
    lib.equal(x.grad, 6.0)
    assert u.grad is None
    assert later.grad is None
    assert (x * x).backward(inputs=u) is None
    assert u.grad is None
    lib.equal(x.grad, 6.0)


@contract("INP-10")
def inputs_require_grad(lib: Any) -> None:
    x, c = lib.tensor(3.0), lib.constant(1.0)
    y = x * c
    for inputs in (c, [x, c], [x.detach()]):
        with lib.raises(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
            y.backward(inputs=inputs)
        assert x.grad is None
        assert c.grad is None


@contract("INP-11")
def a_dict_of_inputs(lib: Any) -> None:
    x, w, u = lib.tensor(3.0), lib.tensor(2.0), lib.tensor(5.0)
    lib.backward(x * w * u, inputs={"a": w, 0: x})
    lib.equal(x.grad, 10.0)
    lib.equal(w.grad, 15.0)
    assert u.grad is None
    for other in (collections.OrderedDict(x=x), collections.defaultdict(list, x=x), types.MappingProxyType({"x": x})):
        kind = type(other).__name__
        y = u * x
        with lib.case(kind):
            for call in (lambda y=y, other=other: y.backward(inputs=other), lambda y=y, other=other: lib.backward(y, inputs=other)):
                with lib.raises(TypeError, f"`inputs` argument to `backward()` must be a dict, not {kind}", "Other Mapping types"):
                    call()
    lib.equal(x.grad, 10.0)


@contract("INP-12", draw={"shape": shapes(), "seed": seeds})
def several_roots_add_into_the_inputs(lib: Any, shape: Any, seed: int) -> None:
    x, w = lib.random(shape, seed), lib.random(shape, seed + 1)
    v, u = lib.value(x), lib.value(w)
    y = x * x
    lib.backward([lib.xp.sum(y * w), y, w * 3], [None, w.detach(), w.detach()], inputs=[x])
    lib.equal(x.grad, 4 * u * v)
    assert w.grad is None
    y = x * x
    lib.backward([lib.xp.sum(y * w), y], [None, w.detach()], inputs=[w, y])
    lib.equal(w.grad, v * v)
    lib.equal(y.grad, 2 * u)
    lib.equal(x.grad, 4 * u * v)


@contract("EDG-01")
def edges(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    edge = edge_of(lib, y)
    assert isinstance(edge, lib.graph.GradientEdge)
    assert issubclass(type(edge), tuple)
    assert edge._fields == ("node", "output_nr", "ownership_token")
    assert edge.node is y.grad_fn
    assert edge[0] is edge.node
    assert edge.output_nr == 0
    assert y.output_nr == 0
    of_the_leaf = edge_of(lib, x)
    assert of_the_leaf.node.variable is x
    assert of_the_leaf.node.name().endswith("AccumulateGrad")
    assert of_the_leaf.output_nr == 0
    assert y.grad_fn.next_functions[0][0] is of_the_leaf.node
    pair = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    for k, t in enumerate(pair):
        edge = edge_of(lib, t)
        assert edge.node is t.grad_fn
        assert edge.output_nr == k
        assert edge.output_nr == t.output_nr


@contract("EDG-02")
def only_what_requires_grad_has_an_edge(lib: Any) -> None:
    x = lib.tensor(3.0)
    with lib.ns.no_grad():
        quiet = x * 2
    for name, t in [("constant", lib.constant(1.0)), ("detached", x.detach()), ("no_grad", quiet)]:
        with lib.case(name), lib.raises(RuntimeError, "gradient edge for a Tensor that does not require gradients"):
            edge_of(lib, t)


@contract("EDG-03", draw={"shape": shapes(), "seed": seeds})
def as_an_input_of_grad_an_edge_is_its_tensor(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    y = x * x
    one, other = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(y)
    z = lib.xp.sum(lib.xp.sin(one) * other + y + x)
    tensors = [y, x, one, other]
    expected = lib.grad(z, tensors, retain_graph=True)
    for form in (lambda e: e, tuple, lambda e: dict(enumerate(e))):
        found = lib.grad(z, form([edge_of(lib, t) for t in tensors]), retain_graph=True)
        for g, h in zip(found.values() if isinstance(found, dict) else found, expected, strict=True):
            lib.equal(g, lib.value(h))
    for t, h in zip(tensors, expected, strict=True):
        lib.equal(lib.grad(z, edge_of(lib, t), retain_graph=True)[0], lib.value(h))
    (g,) = lib.grad(z, edge_of(lib, x), create_graph=True)
    assert g.requires_grad
    u = lib.tensor(1.0)
    with lib.raises(RuntimeError, "appears to not have been used in the graph"):
        lib.grad(z, edge_of(lib, u), retain_graph=True)
    assert lib.grad(z, edge_of(lib, u), allow_unused=True) == (None,)


@contract("EDG-04")
def edges_as_roots(lib: Any) -> None:
    for shape in [(), (1,), (1, 1)]:
        with lib.case(shape):
            x = lib.tensor(np.full(shape, 3.0))
            lib.equal(lib.grad(edge_of(lib, x * x), x)[0], np.full(shape, 6.0))
            lib.backward(edge_of(lib, x * x))
            lib.equal(x.grad, np.full(shape, 6.0))
    x = lib.tensor([1.0, 2.0])
    refused: list[tuple[Any, str]] = [(None, "grad can be implicitly created only for scalar outputs"), (lib.ones(3), "Mismatch in shape")]
    refused += [(lib.constant(1.0), "Mismatch in shape"), (lib.ones(2, 1), "Mismatch in shape")]
    if lib.capabilities["complex"]:
        refused.append((lib.constant([1.0, 1.0], dtype=lib.complex), "For complex Tensors"))
        z = lib.tensor(1 + 2j, dtype=lib.complex)
        with lib.raises(RuntimeError, "only for real scalar outputs"):
            lib.backward(edge_of(lib, z * 2))
    for n, (seed, phrase) in enumerate(refused):
        for how in (lib.backward, lambda e, g: lib.grad(e, x, g)):
            with lib.case(n), lib.raises(RuntimeError, phrase):
                how(edge_of(lib, x * x), seed)
    assert x.grad is None
    seen: list[Any] = []
    y = x * x
    y.register_hook(lambda g: seen.append(g.dtype))
    lib.backward(edge_of(lib, y), lib.constant([1.0, 3.0], dtype=lib.narrow))
    lib.equal(x.grad, [2.0, 12.0])
    assert seen == [x.dtype]
    lib.equal(lib.grad(edge_of(lib, x * x), x, lib.ones(2))[0], [2.0, 4.0])
    lib.backward([edge_of(lib, lib.xp.sum(x * x)), edge_of(lib, x * 3)], [None, lib.ones(2)])
    lib.equal(x.grad, [7.0, 19.0])
    # The edge of an intermediate result that only the graph refers to.
    inner = lib.graph.GradientEdge(*lib.xp.sin(x * x).grad_fn.next_functions[0])
    lib.equal(lib.grad(inner, x, lib.constant([1.0, 10.0]), retain_graph=True)[0], [2.0, 40.0])
    (g,) = lib.grad(inner, x, lib.constant([1.0, 10.0]), create_graph=True)
    lib.equal(lib.grad(lib.xp.sum(g), x)[0], [2.0, 20.0])
    inner = lib.graph.GradientEdge(*lib.xp.sin(x * x).grad_fn.next_functions[0])
    lib.backward([inner, x * 1], [lib.ones(2), lib.constant([5.0, 6.0])])
    lib.equal(x.grad, [14.0, 29.0])


@contract("EDG-05")
def a_leafs_edge_as_an_input(lib: Any) -> None:
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    for n in (1, 2):
        lib.backward(x * x * w, inputs=[edge_of(lib, x)])
        lib.equal(x.grad, 12.0 * n)
    (x * w).backward(inputs=edge_of(lib, x))
    lib.equal(x.grad, 26.0)
    assert w.grad is None


@contract("EDG-06")
def a_results_edge_accumulates_nowhere(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    lib.backward(y * 2, inputs=[edge_of(lib, y)], retain_graph=True)
    assert y.grad is None
    assert not y.retains_grad
    assert x.grad is None
    y.retain_grad()
    lib.backward(y * 2, inputs=[edge_of(lib, y)])
    lib.equal(y.grad, 2.0)
    assert x.grad is None


@contract("EDG-07")
def an_edge_keeps_its_graph(lib: Any) -> None:
    programs = [
        ("operation", 0, lambda x: x * x, 6.0),
        ("operations", 0, lambda x: lib.xp.exp(lib.xp.sin(x)), np.exp(np.sin(3.0)) * np.cos(3.0)),
        ("custom", 0, lambda x: counting(lib, [], "f", 4.0).apply(x), 4.0),
        ("second of two", 1, lambda x: lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)[1], 3.0),
    ]
    made = []
    for name, k, program, expected in programs:
        x = lib.tensor(3.0)
        made.append((name, k, x, edge_of(lib, program(x)), expected))
    gc.collect()
    for name, k, x, edge, expected in made:
        with lib.case(name):
            assert edge.output_nr == k
            lib.equal(lib.grad(edge, x, retain_graph=True)[0], expected)
            lib.backward(edge)
            lib.equal(x.grad, expected)
    leaf = lib.tensor(3.0)
    y = leaf * leaf
    edge = edge_of(lib, leaf)
    del leaf
    lib.equal(lib.grad(y, edge)[0], 6.0)


@contract("EDG-08")
def an_edge_means_the_node_of_its_making(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * 2
    edge = edge_of(lib, y)
    y.mul_(5)
    lib.equal(lib.grad(y, edge, retain_graph=True)[0], 5.0)
    lib.equal(lib.grad(y, y, retain_graph=True)[0], 1.0)
    lib.equal(lib.grad(y, edge_of(lib, y), retain_graph=True)[0], 1.0)
    lib.equal(lib.grad(edge, x)[0], 2.0)


@contract("EDG-09", draw={"seed": seeds})
def tensors_and_edges_mix(lib: Any, seed: int) -> None:
    x = lib.random((), seed)
    v = lib.value(x)
    y = x * x
    z = lib.xp.sin(y)
    for outputs in ([z, edge_of(lib, y)], [edge_of(lib, z), y]):
        for inputs in ([edge_of(lib, y), x], [y, edge_of(lib, x)], [x, edge_of(lib, x), y]):
            found = lib.grad(outputs, inputs, retain_graph=True)
            gy, gx = np.cos(v * v) + 1, (np.cos(v * v) + 1) * 2 * v
            expected = [gx, gx, gy] if len(inputs) == 3 else [gy, gx]
            for g, wanted in zip(found, expected, strict=True):
                lib.equal(g, wanted)
    lib.backward([edge_of(lib, z), y], inputs=[edge_of(lib, x), y])
    lib.equal(x.grad, gx)
    lib.equal(y.grad, gy)


@contract("EDG-10")
def what_is_no_edge(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    bad = lib.graph.GradientEdge("x", 0)
    for call in (lambda: lib.grad(y, bad), lambda: lib.grad(y, [x, bad]), lambda: y.backward(inputs=[bad])):
        with lib.raises(RuntimeError, "GradientEdge's first object must be an autograd.graph.Node but got ", "str"):
            call()
    for call in (lambda: lib.backward(bad), lambda: lib.grad(bad, x, lib.constant(1.0))):
        with lib.raises(AttributeError if lib.oracle else RuntimeError, "str"):  # PyTorch asks a root for its shape first
            call()
    if not lib.oracle:  # PyTorch reads memory that is not its own
        for number in (1, 5, -1):
            beyond = lib.graph.GradientEdge(y.grad_fn, number)
            for call in (lambda b=beyond: lib.grad(y, b), lambda b=beyond: y.backward(inputs=[b]), lambda b=beyond: lib.backward(b)):
                with lib.case(number), lib.raises(RuntimeError, "output"):
                    call()
    for plain in ((y.grad_fn, 0), [(y.grad_fn, 0)]):
        with lib.raises(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got"):
            lib.grad(y, plain)
        with lib.raises(Exception):
            lib.backward(plain)
    assert x.grad is None
    lib.equal(lib.grad(y, x)[0], 6.0)


@contract("EDG-11")
def batched_gradients_of_an_edge(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = x * x
    eye = lib.constant([[1.0, 0.0], [0.0, 1.0]])
    for inputs in (x, edge_of(lib, x)):
        lib.equal(lib.grad(edge_of(lib, y), inputs, eye, is_grads_batched=True, retain_graph=True)[0], [[2.0, 0.0], [0.0, 4.0]])
    with lib.raises(RuntimeError):
        lib.grad(edge_of(lib, y), x, lib.ones(2, 3), is_grads_batched=True)
