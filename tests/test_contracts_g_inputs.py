"""Contracts of group G: ``inputs=`` and `GradientEdge`. Each test names its contracts first in its docstring."""

from __future__ import annotations

import collections
import gc
from typing import Any

import pytest


def test_only_the_inputs(lib: Any) -> None:
    """INP-01, INP-02."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    (x * w).backward(inputs=[x])
    lib.equal(x.grad, 2.0)
    assert w.grad is None
    (x * w).backward()
    lib.equal(w.grad, 3.0)


@pytest.mark.parametrize("form", [lambda x: x, lambda x: [x, x], lambda x: (t for t in (x,)), lambda x: {"x": x}])
def test_forms_of_inputs(lib: Any, form: Any) -> None:
    """INP-03, INP-11."""
    x = lib.tensor(3.0)
    (x * x).backward(inputs=form(x))
    lib.equal(x.grad, 6.0)


@pytest.mark.parametrize("empty", [[], (), {}])
def test_empty_inputs(lib: Any, empty: Any) -> None:
    """INP-04."""
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        (lib.tensor(3.0) * 2).backward(inputs=empty)


def test_non_leaf_inputs(lib: Any) -> None:
    """INP-05, INP-08."""
    x = lib.tensor(3.0)
    y = x * x
    y.register_hook(lambda g: g * 10)
    (y * 2).backward(inputs=[y])
    lib.equal(y.grad, 20.0)
    assert y.retains_grad
    assert x.grad is None


def test_unreachable_input(lib: Any) -> None:
    """INP-09."""
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    (x * x).backward(inputs=[x, u])
    lib.equal(x.grad, 6.0)
    assert u.grad is None


def test_input_without_grad(lib: Any) -> None:
    """INP-10."""
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        (lib.tensor(3.0) * 2).backward(inputs=[lib.const(1.0)])


def test_other_mappings(lib: Any) -> None:
    """INP-11."""
    x = lib.tensor(3.0)
    with pytest.raises(TypeError, match=r"must be a dict, not OrderedDict. Other Mapping types are not supported"):
        (x * x).backward(inputs=collections.OrderedDict(x=x))


def test_several_roots(lib: Any) -> None:
    """INP-12."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    lib.backward([x * w, x * x], inputs=[x])
    lib.equal(x.grad, 8.0)
    assert w.grad is None


def test_edges(lib: Any) -> None:
    """EDG-01, EDG-02."""
    edge_of = lib.graph.get_gradient_edge
    x = lib.tensor(3.0)
    y = x * x
    edge = edge_of(y)
    assert isinstance(edge, lib.graph.GradientEdge)
    assert isinstance(edge, tuple)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    assert edge._fields == ("node", "output_nr", "ownership_token")
    assert edge_of(x).node.variable is x
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require gradients"):
        edge_of(lib.const(1.0))


def test_edges_as_inputs(lib: Any) -> None:
    """EDG-03, EDG-09."""
    edge_of = lib.graph.get_gradient_edge
    x = lib.tensor(3.0)
    y = x * x
    z = y * 2 + x
    for got, expected in zip(lib.grad(z, [edge_of(y), x, edge_of(x)]), (2.0, 13.0, 13.0)):
        lib.equal(got, expected)


def test_edges_as_roots(lib: Any) -> None:
    """EDG-04."""
    edge_of = lib.graph.get_gradient_edge
    x = lib.tensor([1.0, 2.0])
    y = x * x
    edge_of_sum = edge_of(y.sum())
    lib.backward([edge_of_sum, y], [None, lib.ones(2)])
    lib.equal(x.grad, [4.0, 8.0])
    y = x * x
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        lib.backward(edge_of(y))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        lib.backward(edge_of(y), lib.ones(3))


def test_edges_as_inputs_of_backward(lib: Any) -> None:
    """EDG-05, EDG-06."""
    edge_of = lib.graph.get_gradient_edge
    x = lib.tensor(3.0)
    y = x * x
    lib.backward(y * 2, inputs=[edge_of(x)], retain_graph=True)
    lib.equal(x.grad, 12.0)
    lib.backward(y * 2, inputs=[edge_of(y)], retain_graph=True)
    assert not y.retains_grad
    y.retain_grad()
    lib.backward(y * 2, inputs=[edge_of(y)])
    lib.equal(y.grad, 2.0)
    lib.equal(x.grad, 12.0)


@pytest.mark.parametrize("custom", [False, True])
def test_an_edge_keeps_its_graph(lib: Any, custom: bool) -> None:
    """EDG-07."""
    x = lib.tensor(3.0)
    double = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    y = double.apply(x)[1] if custom else x * 3
    edge = lib.graph.get_gradient_edge(y)
    del y
    gc.collect()
    assert edge.output_nr == (1 if custom else 0)
    lib.equal(lib.grad(edge, x)[0], 3.0)


def test_an_edge_means_the_old_value(lib: Any) -> None:
    """EDG-08."""
    x = lib.tensor(3.0)
    y = x * 2
    edge = lib.graph.get_gradient_edge(y)
    y.mul_(5)
    lib.equal(lib.grad(y, edge)[0], 5.0)


def test_bad_edges(lib: Any) -> None:
    """EDG-10."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match=r"first object must be an autograd.graph.Node but got"):
        lib.grad(x * x, lib.graph.GradientEdge("x", 0))
    with pytest.raises((RuntimeError, TypeError)):
        lib.grad(x * x, [((x * x).grad_fn, 0)])


def test_batched_edges(lib: Any) -> None:
    """EDG-11."""
    x = lib.tensor([1.0, 2.0])
    edge = lib.graph.get_gradient_edge(x * x)
    lib.equal(lib.grad(edge, x, lib.const([[1.0, 0.0], [0.0, 1.0]]), is_grads_batched=True)[0], [[2.0, 0.0], [0.0, 4.0]])
