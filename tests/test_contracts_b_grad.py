"""Contracts of group B: `autograd.grad`. Each test names its contracts first in its docstring."""

from __future__ import annotations

import collections
from typing import Any

import pytest


def undefined(lib: Any, x: Any) -> Any:
    """``2 x`` whose gradient is undefined."""
    return lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x)


def test_returns_a_tuple_and_leaves_no_trace(lib: Any) -> None:
    """GRD-01, GRD-02, GRD-21."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    found = lib.grad(x * x * w, x)
    assert type(found) is tuple
    assert len(found) == 1
    lib.equal(found[0], 12.0)
    assert not found[0].requires_grad
    assert x.grad is None
    assert w.grad is None


def test_sums_over_outputs(lib: Any) -> None:
    """GRD-03."""
    x = lib.tensor(2.0)
    lib.equal(lib.grad([x * x, 3 * x], x)[0], 7.0)


def test_intermediates_and_leaves(lib: Any) -> None:
    """GRD-04: each gets its full total derivative."""
    x = lib.tensor(2.0)
    y = x * x
    gx, gy = lib.grad(y * y + x, [x, y])
    lib.equal(gy, 8.0)
    lib.equal(gx, 33.0)


def test_root_as_input(lib: Any) -> None:
    """GRD-05: the seed, even for a leaf and even after freeing."""
    x = lib.tensor([1.0, 2.0])
    y = x * x
    seed = lib.const([3.0, 4.0])
    y.backward(seed)
    lib.equal(lib.grad(y, y, seed)[0], [3.0, 4.0])
    lib.equal(lib.grad(x, x, seed)[0], [3.0, 4.0])


def test_repeated_input(lib: Any) -> None:
    """GRD-06."""
    x = lib.tensor(3.0)
    for g in lib.grad(x * x, [x, x]):
        lib.equal(g, 6.0)


def test_unused(lib: Any) -> None:
    """GRD-07, GRD-08, GRD-09, GRD-10."""
    x, u = lib.tensor(3.0), lib.tensor([[1.0, 2.0]], dtype="float32")
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used in the graph"):
        lib.grad(x * x, [x, u])
    assert lib.grad(x * x, [x, u], allow_unused=True)[1] is None
    zero = lib.grad(x * x, [x, u], materialize_grads=True)[1]
    lib.equal(zero, [[0.0, 0.0]])
    assert zero.dtype == u.dtype


@pytest.mark.parametrize("create", [False, True])
def test_materialised_zeros(lib: Any, create: bool) -> None:
    """GRD-11."""
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    assert lib.grad(x * x, [x, u], materialize_grads=True, create_graph=create)[1].requires_grad is create


def test_contradiction(lib: Any) -> None:
    """GRD-12."""
    x = lib.tensor(3.0)
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        lib.grad(x * x, x, allow_unused=False, materialize_grads=True)


def test_edges_cannot_be_materialised(lib: Any) -> None:
    """GRD-13."""
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    edges = [lib.graph.get_gradient_edge(t) for t in (x, u)]
    lib.equal(lib.grad(x * x, edges[0], materialize_grads=True)[0], 6.0)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        lib.grad(x * x, edges, materialize_grads=True)


def test_inputs_must_require_grad(lib: Any) -> None:
    """GRD-14."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        lib.grad(x * x, [x, lib.const(1.0)], allow_unused=True)


@pytest.mark.parametrize("empty", [[], (), {}])
def test_empty_inputs(lib: Any, empty: Any) -> None:
    """GRD-15."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match="`inputs` argument to `grad\\(\\)` cannot be empty"):
        lib.grad(x * x, empty)


def test_inputs_must_be_tensors(lib: Any) -> None:
    """GRD-16."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got float"):
        lib.grad(x * x, [x, 1.0])


def test_only_inputs(lib: Any) -> None:
    """GRD-17."""
    x = lib.tensor(3.0)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        lib.equal(lib.grad(x * x, x, only_inputs=False)[0], 6.0)


@pytest.mark.parametrize(
    ("given", "error", "phrase"),
    [
        (lambda lib: None, RuntimeError, "only for scalar outputs"),
        (lambda lib: lib.ones(3), RuntimeError, "Mismatch in shape"),
        (lambda lib: [lib.ones(2)] * 0, RuntimeError, "got 1 tensors and 0 gradients"),
        (lambda lib: [2.0], TypeError, "Tensors or None, but got float"),
        (lambda lib: lib.const([1.0, 1.0], "complex128"), RuntimeError, "For complex Tensors"),
    ],
)
def test_grad_outputs(lib: Any, given: Any, error: Any, phrase: str) -> None:
    """GRD-18."""
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(error, match=phrase):
        lib.grad(x * x, x, given(lib))


def test_retain_default(lib: Any) -> None:
    """GRD-20, RET-02."""
    x = lib.tensor(3.0)
    y = x * x
    lib.grad(y, x, create_graph=True)
    lib.grad(y, x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        lib.grad(y, x)


def test_no_outputs(lib: Any) -> None:
    """GRD-22."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match="not have been used"):
        lib.grad([], x)
    assert lib.grad([], x, allow_unused=True) == (None,)


def test_dict_of_inputs(lib: Any) -> None:
    """GRD-23."""
    x, y = lib.tensor(3.0), lib.tensor(4.0)
    found = lib.grad(x * y, {"b": y, "a": x})
    assert type(found) is dict
    assert list(found) == ["b", "a"]
    lib.equal(found["a"], 4.0)
    with pytest.raises(TypeError, match=r"must be a dict, not OrderedDict. Other Mapping types are not supported"):
        lib.grad(x * y, collections.OrderedDict(a=x))


def test_inside_no_grad(lib: Any) -> None:
    """GRD-24, MOD-10, HOG-08."""
    x = lib.tensor(3.0)
    y = x * x * x
    with lib.ns.no_grad():
        (plain,) = lib.grad(y, x, retain_graph=True)
        (recorded,) = lib.grad(y, x, create_graph=True)
    assert not plain.requires_grad
    lib.equal(lib.grad(recorded, x)[0], 18.0)


def test_undefined_counts_as_unused(lib: Any) -> None:
    """GRD-25, FUN-11."""
    x = lib.tensor(3.0)
    with pytest.raises(RuntimeError, match="not have been used"):
        lib.grad(undefined(lib, x), x)
    assert lib.grad(undefined(lib, x), x, allow_unused=True) == (None,)
    lib.equal(lib.grad(undefined(lib, x), x, materialize_grads=True)[0], 0.0)


def test_numerical_zero_is_used(lib: Any) -> None:
    """GRD-26, ACC-06."""
    x = lib.tensor([1.0, 2.0])
    lib.equal(lib.grad((x * 0).sum(), x)[0], [0.0, 0.0])


def test_layout_is_free(lib: Any) -> None:
    """GRD-27: the gradient of a sum may be an expanded scalar."""
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    (g,) = lib.grad(x.sum(), x)
    lib.equal(g, [[1.0, 1.0], [1.0, 1.0]])
    assert g.stride() == (0, 0)


def test_retained_gradients_fill(lib: Any) -> None:
    """GRD-28."""
    x = lib.tensor(3.0)
    a = x * 2
    b = a * a
    c = b * 5
    for t in (a, b, c):
        t.retain_grad()
    lib.grad(c, a)
    lib.equal(c.grad, 1.0)
    lib.equal(b.grad, 5.0)
    lib.equal(a.grad, 60.0)
    assert x.grad is None


def test_double_vjp_is_the_jvp(lib: Any) -> None:
    """GRD-29, HOG-07."""
    x = lib.tensor([1.0, 2.0, 3.0])
    v = lib.tensor([1.0, 1.0])
    y = x[:2] * x[1:]
    (g,) = lib.grad(y, x, v, create_graph=True)
    tangent = lib.const([1.0, 10.0, 100.0])
    lib.equal(lib.grad(g, v, tangent)[0], [12.0, 230.0])
