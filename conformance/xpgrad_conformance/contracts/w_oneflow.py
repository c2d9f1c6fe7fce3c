"""Group W: OneFlow. The dialect `xpgrad.dialects.oneflow` follows its documentation and source; OneFlow itself is not run."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.facade import NotRun
from xpgrad_conformance.strategies import seeds, shapes, size

SCALARS = "implicitly created only for scalar outputs"
TWICE = "backward through the graph a second time"
EMPTY = inspect.Parameter.empty


def dialect(lib: Any) -> Any:
    """Return the dialect of xpgrad that follows OneFlow. Raise NotRun for the reference library, because OneFlow itself is not run."""
    if lib.oracle:
        raise NotRun("from documentation only: OneFlow is not run")
    return lib.module("dialects.oneflow")


def defaults(function: Any) -> dict[str, Any]:
    """Return the names of a function's arguments and their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


@contract("ONE-01", draw={"shape": shapes(), "seed": seeds})
def the_method_backward(lib: Any, shape: Any, seed: int) -> None:
    flow = dialect(lib)
    assert defaults(flow.backward) == {"tensor": EMPTY, "gradient": None, "retain_graph": False, "create_graph": False}
    x, g = lib.random(shape, seed), lib.random(shape, seed + 1, rg=False)
    y = x * x
    flow.backward(y, g, True, False)
    lib.equal(x.grad, 2 * lib.value(x) * lib.value(g))
    flow.backward(y, g)
    lib.equal(x.grad, 4 * lib.value(x) * lib.value(g))
    with lib.raises(TypeError, "inputs"):
        flow.backward(lib.xp.sum(x), inputs=[x])


@contract("ONE-02")
def create_graph_retains(lib: Any) -> None:
    flow = dialect(lib)
    for function in (flow.backward, flow.autograd.backward, flow.autograd.grad):
        assert defaults(function)["retain_graph"] is False
    calls = [
        ("method", lambda y, x, **flags: flow.backward(y, **flags)),
        ("function", lambda y, x, **flags: flow.autograd.backward([y], None, **flags)),
        ("grad", lambda y, x, **flags: flow.autograd.grad([y], [x], **flags)),
        ("no inputs", lambda y, x, **flags: flow.autograd.grad([y], [], **flags)),
    ]
    for name, call in calls:
        for flags, retained in [
            ({}, False),
            ({"retain_graph": False}, False),
            ({"retain_graph": True}, True),
            ({"create_graph": True}, True),
            ({"create_graph": True, "retain_graph": False}, True),
            ({"create_graph": True, "retain_graph": True}, True),
        ]:
            with lib.case((name, flags)):
                x = lib.tensor([3.0])
                y = x * x * x
                call(y, x, **flags)
                if retained:
                    call(y, x)
                else:
                    with lib.raises(RuntimeError, TWICE):
                        call(y, x)
                x.grad = None


@contract("ONE-03")
def grad_tensors_must_be_passed(lib: Any) -> None:
    flow = dialect(lib)
    assert defaults(flow.autograd.backward) == {"tensors": EMPTY, "grad_tensors": EMPTY, "retain_graph": False, "create_graph": False}
    x = lib.tensor([2.0])
    with lib.raises(TypeError, "grad_tensors"):
        flow.autograd.backward(x * x)
    assert x.grad is None
    flow.autograd.backward(x * x, None)
    lib.equal(x.grad, [4.0])
    flow.autograd.backward([x * x, x * 3], [None, lib.constant([10.0])])
    lib.equal(x.grad, [38.0])
    flow.autograd.backward(x * x, lib.constant([0.5]))
    lib.equal(x.grad, [40.0])


@contract("ONE-04", draw={"shape": shapes(), "seed": seeds})
def grad_in_oneflow(lib: Any, shape: Any, seed: int) -> None:
    flow = dialect(lib)
    assert defaults(flow.autograd.grad) == {
        "outputs": EMPTY,
        "inputs": EMPTY,
        "grad_outputs": None,
        "retain_graph": False,
        "create_graph": False,
    }
    x, w, g = lib.random(shape, seed), lib.random(shape, seed + 1), lib.random(shape, seed + 2, rg=False)
    v, u, h = (lib.value(t) for t in (x, w, g))
    of_x, of_w = flow.autograd.grad([x * x * w], [x, w], [g])
    lib.equal(of_x, 2 * v * u * h)
    lib.equal(of_w, v * v * h)
    (bare,) = flow.autograd.grad(x * w, x, g)
    lib.equal(bare, u * h)
    assert x.grad is w.grad is None
    # Without inputs, it accumulates into the leaves.
    assert not flow.autograd.grad([x * w], [], [g])
    lib.equal(x.grad, u * h)
    lib.equal(w.grad, v * h)
    for name in ("allow_unused", "is_grads_batched", "materialize_grads", "only_inputs"):
        with lib.case(name), lib.raises(TypeError, name):
            flow.autograd.grad([lib.xp.sum(x)], [x], **{name: True})


@contract("ONE-05")
def everything_requires_grad(lib: Any) -> None:
    flow = dialect(lib)
    x, c, one = lib.tensor([2.0]), lib.constant([1.0]), lib.constant([1.0])
    outputs = "All output tensors `.requires_grad` should be true"
    for name, call in [
        ("method", lambda: flow.backward(c)),
        ("method with a gradient", lambda: flow.backward(c, one)),
        ("second", lambda: flow.autograd.backward([x * x, c], None)),
        ("first", lambda: flow.autograd.backward([c, x * x], [one, one])),
        ("grad", lambda: flow.autograd.grad([x * x, c], [x])),
        ("no inputs", lambda: flow.autograd.grad([c], [])),
    ]:
        with lib.case(name), lib.raises(RuntimeError, outputs):
            call()
    for inputs in ([c], [x, c], [c, x]):
        with lib.raises(RuntimeError, "All input tensors `.requires_grad` should be true"):
            flow.autograd.grad([x * x], inputs)
    assert x.grad is None


@contract("ONE-06", draw={"pair": st.tuples(shapes(), shapes()).filter(lambda p: p[0] != p[1]), "shape": shapes()})
def gradients_have_the_outputs_shape(lib: Any, pair: Any, shape: Any) -> None:
    flow = dialect(lib)
    for root, seed in [pair, ((2,), (3, 2)), ((2,), ()), ((), (1,)), ((1,), ()), ((2, 1), (2,))]:
        x, g = lib.tensor(np.ones(root)), lib.ones(*seed)
        for name, call in [
            ("method", lambda x=x, g=g: flow.backward(x * 2, g)),
            ("function", lambda x=x, g=g: flow.autograd.backward([x * 2], [g])),
            ("grad", lambda x=x, g=g: flow.autograd.grad([x * 2], [x], [g])),
        ]:
            with lib.case((name, root, seed)), lib.raises(RuntimeError, "out_grad's shape must be same as output's"):
                call()
        assert x.grad is None
    for sides in [shape, (), (1,), (1, 1), (2,), (0,)]:
        x = lib.tensor(np.full(sides, 3.0))
        with lib.case(sides):
            if size(sides) == 1:
                flow.backward(x * x)
                lib.equal(x.grad, np.full(sides, 6.0))
                lib.equal(flow.autograd.grad([x * x], [x])[0], np.full(sides, 6.0))
            else:
                with lib.raises(RuntimeError, SCALARS):
                    flow.backward(x * x)
                with lib.raises(RuntimeError, SCALARS):
                    flow.autograd.grad([x * x], [x])


@contract("ONE-07")
def only_real_floating_dtypes(lib: Any) -> None:
    flow = dialect(lib)
    for dtype in [*(["float64"] if lib.capabilities["float64"] else []), "float32", *lib.half_dtypes()]:
        with lib.case(dtype):
            x = lib.tensor([2.0], dtype=dtype)
            flow.backward(x * x)
            assert x.grad.dtype == lib.dtype(dtype)
            lib.equal(x.grad, [4.0])
            lib.equal(flow.autograd.grad(x * x, x)[0], [4.0])
    if not lib.capabilities["complex"]:
        return
    phrase = "OneFlow differentiates half, float, double and bfloat16 only"
    z, x, g = lib.tensor([1 + 2j], dtype=lib.complex), lib.tensor([1.0]), lib.constant([1.0], lib.complex)
    for name, call in [
        ("output", lambda: flow.backward(z * 2, g)),
        ("leaf as output", lambda: flow.backward(z, g)),
        ("one of several", lambda: flow.autograd.backward([x * 2, z * 2], [None, g])),
        ("leaf", lambda: flow.backward(lib.xp.real(z * 2))),
        ("deep leaf", lambda: flow.backward(x * lib.xp.real(z * 2) * 3)),
        ("grad", lambda: flow.autograd.grad([z * 2], [x], [g])),
        ("input", lambda: flow.autograd.grad([lib.xp.real(z)], [z])),
        ("no inputs", lambda: flow.autograd.grad([z * 2], [], [g])),
    ]:
        with lib.case(name), lib.raises(RuntimeError, phrase):
            call()
    assert z.grad is x.grad is None


@contract("ONE-08")
def layouts_as_in_pytorch(lib: Any) -> None:
    flow = dialect(lib)
    x = lib.ones(3, 2).mT.detach().requires_grad_()
    s = lib.ones(4, 6)[:, ::2].detach().requires_grad_()
    for leaf, strides in [(x, (1, 2)), (s, (3, 1))]:
        flow.backward(lib.xp.sum(leaf * leaf))
        lib.equal(leaf.grad, np.full(leaf.shape, 2.0))
        if lib.capabilities["strides"]:
            assert tuple(leaf.grad.stride()) == strides
        held = leaf.grad
        flow.autograd.backward([lib.xp.sum(leaf * leaf)], None)
        lib.equal(leaf.grad, np.full(leaf.shape, 4.0))
        assert leaf.grad is held  # accumulated in place
        if lib.capabilities["strides"]:
            assert tuple(leaf.grad.stride()) == strides


@contract("ONE-09")
def gradients_are_tracked_with_create_graph_only(lib: Any) -> None:
    flow = dialect(lib)
    x, w = lib.tensor([2.0, 3.0]), lib.tensor([5.0, 7.0])
    flow.backward(x * x, w * 3)
    assert not x.grad.requires_grad
    assert x.grad.grad_fn is None
    assert w.grad is None
    lib.equal(x.grad, [60.0, 126.0])
    x.grad = None
    flow.backward(x * x, w * 3, create_graph=True)
    assert x.grad.requires_grad
    lib.equal(lib.grad(lib.xp.sum(x.grad), w)[0], [12.0, 18.0])
    x.grad = None
    assert not flow.autograd.grad(x * x, x, w)[0].requires_grad
    (g,) = flow.autograd.grad(x * x, x, w, create_graph=True)
    lib.equal(lib.grad(lib.xp.sum(g), w)[0], [4.0, 6.0])
    y = lib.tensor(3.0)
    flow.backward(y * y, None)
    flow.backward(y * y)
    lib.equal(y.grad, 12.0)
