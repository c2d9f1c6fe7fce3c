"""Group B: the arguments of `autograd.grad`, and what it returns."""

from __future__ import annotations

import collections
import types
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

UNUSED = "appears to not have been used in the graph"
TWICE = "backward through the graph a second time"


def undefined(lib: Any, x: Any) -> Any:
    """Return ``2 x``, computed by a Function whose backward returns None."""
    return lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x)


@contract("GRD-01", draw={"n": st.integers(1, 4)})
def a_tuple_with_an_entry_per_input(lib: Any, n: int) -> None:
    leaves = [lib.tensor(float(k + 2)) for k in range(n)]
    total = sum((k + 1) * x * x for k, x in enumerate(leaves))
    found = lib.grad(total, leaves, retain_graph=True)
    assert type(found) is tuple
    assert len(found) == n
    for k, g in enumerate(found):
        lib.equal(g, 2.0 * (k + 1) * (k + 2))
    for form in (leaves[-1], leaves[-1:], tuple(leaves[-1:])):
        with lib.case(type(form).__name__):
            found = lib.grad(total, form, retain_graph=True)
            assert type(found) is tuple
            assert len(found) == 1
            lib.equal(found[0], 2.0 * n * (n + 1))


@contract("GRD-02", draw={"create": st.booleans(), "seed": seeds})
def no_trace(lib: Any, create: bool, seed: int) -> None:
    x, w, u = lib.random((3,), seed), lib.random((3,), seed + 1), lib.random((3,), seed + 2)
    old = w.grad = lib.constant([1.0, 2.0, 3.0])
    y = x * w
    z = lib.xp.sum(y * y * u)
    lib.grad(z, [x, w, y], create_graph=create, retain_graph=True)
    lib.grad(z, x, create_graph=create)
    assert x.grad is None
    assert u.grad is None
    assert w.grad is old
    lib.equal(w.grad, [1.0, 2.0, 3.0])
    assert not y.retains_grad


@contract("GRD-03", draw={"shape": shapes(), "seed": seeds})
def outputs_are_summed(lib: Any, shape: Any, seed: int) -> None:
    x, v = lib.random(shape, seed), lib.random(shape, seed + 1, rg=False)
    (g,) = lib.grad([lib.xp.sum(x * x), 3 * x, x], x, [None, v, v])
    lib.equal(g, 2 * lib.value(x) + 4 * lib.value(v))


@contract("GRD-04", draw={"shape": shapes(), "seed": seeds})
def intermediates_and_leaves_get_their_total_derivatives(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    y = x * x
    u = lib.xp.sin(y)
    z = lib.xp.sum(u * y + 3 * x)
    gy, gx, gu = lib.grad(z, [y, x, u])
    v, w = lib.value(x), lib.value(y)
    lib.equal(gu, w)
    lib.equal(gy, np.cos(w) * w + np.sin(w))
    lib.equal(gx, (np.cos(w) * w + np.sin(w)) * 2 * v + 3)


@contract("GRD-05")
def the_gradient_of_a_root_by_itself_is_the_seed(lib: Any) -> None:
    x, seed = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
    y = x * x
    for when in ("before", "after"):
        for name, t in [("result", y), ("leaf", x)]:
            with lib.case((name, when)):
                lib.equal(lib.grad(t, t, seed, retain_graph=True)[0], [3.0, 4.0])
        if when == "before":
            y.backward(seed)
    with lib.raises(RuntimeError, TWICE):
        lib.grad(y, x, seed)


@contract("GRD-06", draw={"n": st.integers(2, 4)})
def a_repeated_input_gets_the_same_in_each_place(lib: Any, n: int) -> None:
    x = lib.tensor(3.0)
    y = x * x
    found = lib.grad(5 * y, [x, y] * n)
    assert len(found) == 2 * n
    for gx, gy in zip(found[::2], found[1::2], strict=True):
        lib.equal(gx, 30.0)
        lib.equal(gy, 5.0)


@contract("GRD-07")
def an_unused_input_is_refused(lib: Any) -> None:
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    y = x * x
    later = y * u
    for name, t in [("another leaf", u), ("what is made of the output", later)]:
        for more in ({}, {"allow_unused": False}, {"create_graph": True}):
            with lib.case((name, more)):
                with lib.raises(RuntimeError, UNUSED, "at index 1"):
                    lib.grad(y, [x, t], retain_graph=True, **more)
                with lib.raises(RuntimeError, UNUSED, "at index 0"):
                    lib.grad(y, t, retain_graph=True, **more)


@contract("GRD-08")
def an_unused_input_may_be_allowed(lib: Any) -> None:
    x, u, w = lib.tensor(3.0), lib.tensor(1.0), lib.tensor(2.0)
    found = lib.grad(x * x * w, [u, x, u, w], allow_unused=True)
    assert found[0] is None
    assert found[2] is None
    lib.equal(found[1], 12.0)
    lib.equal(found[3], 9.0)


@contract("GRD-09")
def allow_unused_takes_the_value_of_materialize_grads(lib: Any) -> None:
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    for more in ({}, {"allow_unused": None}, {"allow_unused": True}):
        with lib.case(more):
            g, zero = lib.grad(x * x, [x, u], materialize_grads=True, **more)
            lib.equal(g, 6.0)
            lib.equal(zero, 0.0)
    for more in ({}, {"allow_unused": None}):
        with lib.case(more), lib.raises(RuntimeError, UNUSED):
            lib.grad(x * x, [x, u], materialize_grads=False, **more)


@contract("GRD-10", draw={"shape": shapes(empty=True)})
def none_becomes_zeros_like_the_input(lib: Any, shape: Any) -> None:
    x = lib.tensor(3.0)
    for dtype in (lib.real, lib.narrow, *([lib.complex] if lib.capabilities["complex"] else [])):
        with lib.case(dtype):
            u = lib.tensor(np.ones(shape), dtype=dtype)
            v = lib.tensor(np.ones(shape), dtype=dtype) * 2  # a non-leaf that is not used
            found = lib.grad(x * x, [u, x, v], materialize_grads=True)
            lib.equal(found[1], 6.0)
            for zero in found[::2]:
                lib.equal(zero, np.zeros(shape))
                assert zero.dtype == u.dtype
                assert zero.device == u.device
            assert u.grad is None


@contract("GRD-11")
def zeros_require_grad_as_create_graph_says(lib: Any) -> None:
    for create in (False, True):
        with lib.case(create):
            x, u = lib.tensor(3.0), lib.tensor(1.0)
            _, zero = lib.grad(x * x, [x, u], materialize_grads=True, create_graph=create)
            assert zero.requires_grad is create
    again = lib.grad(zero * 2, u, allow_unused=True)
    assert again == (None,)


@contract("GRD-12")
def materialize_grads_contradicts_allow_unused_false(lib: Any) -> None:
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    y = x * x
    for inputs in (x, [x, u]):
        with lib.raises(ValueError, "Expected allow_unused to be True or not passed when materialize_grads=True"):
            lib.grad(y, inputs, allow_unused=False, materialize_grads=True)
    lib.equal(lib.grad(y, x)[0], 6.0)  # the failed calls freed nothing


@contract("GRD-13")
def edges_cannot_be_materialised(lib: Any) -> None:
    x, u = lib.tensor(3.0), lib.tensor(1.0)
    used, unused = (lib.graph.get_gradient_edge(t) for t in (x, u))
    lib.equal(lib.grad(x * x, used, materialize_grads=True)[0], 6.0)
    with lib.raises(RuntimeError, "materialize_grads cannot be used when the given input is a GradientEdge"):
        lib.grad(x * x, [used, unused], materialize_grads=True)
    assert lib.grad(x * x, [used, unused], allow_unused=True)[1] is None


@contract("GRD-14")
def inputs_require_grad(lib: Any) -> None:
    x, c = lib.tensor(3.0), lib.constant(2.0)
    y = x * c
    for allow in (None, False, True):
        for materialize in (False, True) if allow is not False else (False,):
            for inputs in (c, [x, c], [x, x.detach()]):
                with lib.case((allow, materialize)), lib.raises(RuntimeError, "One of the differentiated Tensors does not require grad"):
                    lib.grad(y, inputs, retain_graph=True, allow_unused=allow, materialize_grads=materialize)


@contract("GRD-15")
def inputs_are_not_empty(lib: Any) -> None:
    x = lib.tensor(3.0)
    for empty in ([], (), {}):
        for allow in (None, True):
            with lib.case((empty, allow)), lib.raises(RuntimeError, "`inputs` argument to `grad()` cannot be empty"):
                lib.grad(x * x, empty, allow_unused=allow)


@contract("GRD-16")
def inputs_are_tensors(lib: Any) -> None:
    x = lib.tensor(3.0)
    for wrong in (1.0, "x", None, np.ones(2)):
        kind = type(wrong).__name__
        with lib.case(kind), lib.raises(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got ", kind):
            lib.grad(x * x, [x, wrong])


@contract("GRD-17")
def only_inputs_is_ignored(lib: Any) -> None:
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    with lib.warns(FutureWarning, "only_inputs argument is deprecated and is ignored"):
        lib.equal(lib.grad(x * w, x, only_inputs=False)[0], 2.0)
    assert w.grad is None
    with lib.silent():
        lib.equal(lib.grad(x * w, x, only_inputs=True)[0], 2.0)
        lib.equal(lib.grad(x * w, x)[0], 2.0)


@contract("GRD-18", draw={"shape": shapes(1).filter(lambda s: np.prod(s) > 1)})
def grad_outputs_are_as_those_of_backward(lib: Any, shape: Any) -> None:
    x = lib.tensor(np.full(shape, 3.0))
    y, ones = x * x, lib.ones(*shape)
    scalar = lib.xp.sum(y)
    refused: list[tuple[Any, Any, Any, tuple[str, ...]]] = [
        (y, None, RuntimeError, ("grad can be implicitly created only for scalar outputs",)),
        (y, lib.ones(*shape, 1), RuntimeError, ("Mismatch in shape",)),
        (y, lib.ones(*shape[1:]), RuntimeError, ("Mismatch in shape",)),
        (y, lib.on_other_device(np.ones(shape)), RuntimeError, ("invalid gradient at index 0 - expected device",)),
        ([y, scalar], [ones], RuntimeError, ("got 2 tensors and 1 gradients",)),
        ([y, y], ones, RuntimeError, ("got 2 tensors and 1 gradients",)),
        (y, [1.0], TypeError, ("gradients can be either ", "Tensors or None")),
        (y, [np.ones(shape)], TypeError, ("gradients can be either ", "Tensors or None")),
    ]
    if not lib.oracle:  # PyTorch silently drops surplus gradients, see BWD-21
        refused.append((y, [ones, ones], RuntimeError, ("got 1 tensors and 2 gradients",)))
    if lib.capabilities["complex"]:
        plane = lib.constant(np.ones(shape), dtype=lib.complex)
        phrase = "For complex Tensors, both grad_output and output are required to have the same dtype"
        refused.append((y, plane, RuntimeError, (phrase,)))
        z = lib.tensor(1 + 2j, dtype=lib.complex)
        refused.append((z * 2, None, RuntimeError, ("only for real scalar outputs",)))
    for n, (outputs, gradients, error, phrases) in enumerate(refused):
        with lib.case(n), lib.raises(error, *phrases):
            lib.grad(outputs, x, gradients, allow_unused=True)
    for dtype in (lib.narrow, "int32", "bool"):
        with lib.case(dtype):
            (g,) = lib.grad(y, x, lib.constant(np.ones(shape), dtype=dtype), retain_graph=True)
            lib.equal(g, np.full(shape, 6.0))
            assert g.dtype == x.dtype
    for gradients in ([ones, None], (ones, None), (g for g in (ones, None))):
        with lib.case(type(gradients).__name__):
            lib.equal(lib.grad([y, scalar], x, gradients, retain_graph=True)[0], np.full(shape, 12.0))
    lib.equal(lib.grad([scalar, scalar], x, retain_graph=True)[0], np.full(shape, 12.0))
    lib.grad(x, x, ones)
    lib.equal(ones, np.ones(shape))


@contract("GRD-19")
def outputs_require_grad(lib: Any) -> None:
    x, c = lib.tensor(2.0), lib.constant(1.0)
    y = x * x
    for gradient in (None, c):
        with lib.case(gradient):
            with lib.raises(RuntimeError, "element 1 of tensors does not require grad and does not have a grad_fn"):
                lib.grad([y, c], x, [gradient, gradient])
            with lib.raises(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
                lib.grad(c, x, gradient, allow_unused=True)
    lib.equal(lib.grad(y, x)[0], 4.0)


@contract("GRD-20")
def retain_graph_defaults_to_create_graph(lib: Any) -> None:
    x = lib.tensor(3.0)
    for create in (False, True):
        flags: list[tuple[dict[str, Any], bool]] = [({}, create), ({"retain_graph": None}, create)]
        for more, retained in [*flags, ({"retain_graph": True}, True), ({"retain_graph": False}, False)]:
            with lib.case((create, more)):
                y = x * x
                lib.equal(lib.grad(y, x, create_graph=create, **more)[0], 6.0)
                if retained:
                    lib.equal(lib.grad(y, x)[0], 6.0)
                with lib.raises(RuntimeError, TWICE):
                    lib.grad(y, x)


@contract("GRD-21")
def without_create_graph_the_results_have_no_history(lib: Any) -> None:
    for mode in ("enable_grad", "no_grad"):
        with lib.case(mode):
            x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
            y = x * w
            z = lib.xp.sum(y * y)
            with getattr(lib.ns, mode)():
                found = lib.grad(z, [x, w, y, z])
            for g in found:
                assert not g.requires_grad
                assert g.grad_fn is None
            lib.equal(found[0], [18.0, 64.0])


@contract("GRD-22")
def no_outputs_use_no_input(lib: Any) -> None:
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    for empty in ([], ()):
        with lib.raises(RuntimeError, UNUSED):
            lib.grad(empty, x)
        assert lib.grad(empty, [x, w], allow_unused=True) == (None, None)


@contract("GRD-23")
def a_dict_for_a_dict(lib: Any) -> None:
    x, w, u = lib.tensor(3.0), lib.tensor(4.0), lib.tensor(1.0)
    found = lib.grad(x * w, {"b": w, 0: x, "u": u}, allow_unused=True)
    assert type(found) is dict
    assert list(found) == ["b", 0, "u"]
    lib.equal(found["b"], 3.0)
    lib.equal(found[0], 4.0)
    assert found["u"] is None
    others = [collections.OrderedDict(x=x), collections.defaultdict(list, x=x), types.MappingProxyType({"x": x})]
    for other in others:
        kind = type(other).__name__
        with lib.case(kind), lib.raises(TypeError, f"`inputs` argument to `grad()` must be a dict, not {kind}", "Other Mapping types"):
            lib.grad(x * w, other)


@contract("GRD-24")
def inside_no_grad(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x * x
    with lib.ns.no_grad():
        (plain,) = lib.grad(y, x, retain_graph=True)
        (recorded,) = lib.grad(y, x, create_graph=True)
    lib.equal(plain, 27.0)
    assert not plain.requires_grad
    lib.equal(recorded, 27.0)
    lib.equal(lib.grad(recorded, x)[0], 18.0)


@contract("GRD-25")
def an_undefined_gradient_counts_as_unused(lib: Any) -> None:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    seed = lib.ones(2)
    with lib.raises(RuntimeError, UNUSED):
        lib.grad(undefined(lib, x), x, seed)
    assert lib.grad(undefined(lib, x), x, seed, allow_unused=True) == (None,)
    lib.equal(lib.grad(undefined(lib, x), x, seed, materialize_grads=True)[0], [0.0, 0.0])
    with lib.case("further up"), lib.raises(RuntimeError, UNUSED, "at index 1"):
        lib.grad(undefined(lib, x * 2) + w, [w, x], seed)
    with lib.case("beside another path"):
        lib.equal(lib.grad(undefined(lib, x) + x * 5, x, seed)[0], [5.0, 5.0])


@contract("GRD-26", draw={"shape": shapes(), "seed": seeds})
def a_numerical_zero_is_used(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    for name, y, v in [
        ("times 0", x * 0, np.ones(shape)),
        ("seed of zeros", x * x, np.zeros(shape)),
        ("floor", lib.xp.floor(x), np.ones(shape)),
    ]:
        for allow in (None, True):
            with lib.case((name, allow)):
                (g,) = lib.grad(y, x, lib.constant(v), retain_graph=True, allow_unused=allow)
                assert g is not None
                lib.equal(g, np.zeros(shape))


@contract("GRD-27", requires="strides")
def the_layout_is_not_that_of_grad(lib: Any) -> None:
    x = lib.ones(2, 3, rg=True)
    (g,) = lib.grad(lib.xp.sum(x), x)
    lib.equal(g, np.ones((2, 3)))
    assert g.stride() == (0, 0)
    x = lib.xp.permute_dims(lib.ones(3, 2), (1, 0)).detach().requires_grad_()
    assert x.stride() == (1, 2)
    (g,) = lib.grad(x, x, lib.ones(2, 3))
    assert g.stride() == (3, 1)
    (g,) = lib.grad(lib.xp.permute_dims(x, (1, 0)), x, lib.constant(np.arange(6.0).reshape(3, 2)))
    lib.equal(g, np.arange(6.0).reshape(3, 2).T)
    x = lib.ones(2, 3, rg=True)
    (g,) = lib.grad(lib.xp.permute_dims(x, (1, 0)), x, lib.ones(3, 2))
    assert g.stride() == (1, 2)


@contract("GRD-28")
def retained_gradients_fill(lib: Any) -> None:
    x = lib.tensor(3.0)
    a = x * 2
    b = a * a
    c = b * 5
    apart = x * 7
    for t in (x, a, b, c, apart):
        t.retain_grad()
    lib.grad(c + apart * 0, a)
    lib.equal(b.grad, 5.0)
    lib.equal(a.grad, 60.0)
    lib.equal(c.grad, 1.0)
    assert x.grad is None
    root = x * 2
    root.retain_grad()
    lib.grad(root, x)
    lib.equal(root.grad, 1.0)
    assert x.grad is None


@contract("GRD-29", draw={"seed": seeds})
def the_history_of_grad_outputs(lib: Any, seed: int) -> None:
    x, v = lib.random((3,), seed), lib.random((2,), seed + 1)
    y = x[:2] * x[1:]
    n, w = lib.value(x), lib.value(v)
    expected = [w[0] * n[1], w[0] * n[0] + w[1] * n[2], w[1] * n[1]]
    (g,) = lib.grad(y, x, v, retain_graph=True)
    lib.equal(g, expected)
    assert not g.requires_grad
    assert v.grad is None
    (g,) = lib.grad(y, x, v, create_graph=True)
    lib.equal(g, expected)
    tangent = lib.random((3,), seed + 2, rg=False)
    t = lib.value(tangent)
    # g is linear in v, so its derivative with respect to v, applied to a tangent, is the Jacobian times the tangent.
    lib.equal(lib.grad(g, v, tangent)[0], [t[0] * n[1] + n[0] * t[1], t[1] * n[2] + n[1] * t[2]])


#: Differentiable results of functions that return several Tensors.
SEVERAL: dict[str, Any] = {
    "qr": lambda lib, x: tuple(lib.xp.linalg.qr(x)),
    "slogdet": lambda lib, x: tuple(lib.xp.linalg.slogdet(x))[1:],
    "svd": lambda lib, x: tuple(lib.xp.linalg.svd(x, full_matrices=False))[1:2],
    "eigh": lambda lib, x: tuple(lib.xp.linalg.eigh(x + lib.xp.matrix_transpose(x)))[:1],
    "unstack": lambda lib, x: tuple(lib.xp.unstack(x * 1)),
    "custom": lambda lib, x: two_results(lib).apply(x),
}


def two_results(lib: Any) -> Any:
    """Return a custom Function with two results."""
    return lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3)


@contract("GRD-30", requires="linalg")
def results_that_are_gone(lib: Any) -> None:
    points = [[2.0, 1.0], [0.5, 3.0]]
    for name, program in SEVERAL.items():
        whole = len(program(lib, lib.tensor(points)))
        for k in range(whole):
            with lib.case((name, k)):
                x = lib.tensor(points)
                outs = program(lib, x)
                (expected,) = lib.grad(lib.xp.sum(outs[k] * outs[k]), x)
                kept = program(lib, x)[k]
                (g,) = lib.grad(lib.xp.sum(kept * kept), x, create_graph=True)
                lib.equal(g, lib.value(expected))
                assert g.requires_grad
        with lib.case((name, "no_grad")):
            with lib.ns.no_grad():
                outs = program(lib, lib.tensor(points))
            for out in outs:
                assert not out.requires_grad
                assert out.grad_fn is None
