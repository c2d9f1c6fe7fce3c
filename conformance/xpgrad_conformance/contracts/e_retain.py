"""Group E: what a pass frees, and what `retain_graph` keeps."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

TWICE = "backward through the graph a second time"

#: Functions whose nodes save values, by name, with their derivatives.
SAVERS: dict[str, tuple[Any, Any]] = {
    "x * x": (lambda lib, x: x * x, lambda v: 2 * v),
    "exp": (lambda lib, x: lib.xp.exp(x), np.exp),
    "sin": (lambda lib, x: lib.xp.sin(x), np.cos),
    "x / (1 + x)": (lambda lib, x: x / (x + 1), lambda v: 1 / (v + 1) ** 2),
    "x ** 3": (lambda lib, x: x**3, lambda v: 3 * v**2),
    "sqrt": (lambda lib, x: lib.xp.sqrt(x), lambda v: 0.5 / np.sqrt(v)),
}


@contract("RET-01", draw={"name": st.sampled_from(sorted(SAVERS)), "shape": shapes(), "seed": seeds})
def freed_by_default(lib: Any, name: str, shape: Any, seed: int) -> None:
    f, df = SAVERS[name]
    for first in ("backward", "function", "grad"):
        for again in ("backward", "function", "grad"):
            with lib.case((first, again)):
                x = lib.random(shape, seed)
                y = lib.xp.sum(f(lib, x))
                calls = {"backward": y.backward, "function": lambda y=y: lib.backward([y]), "grad": lambda y=y, x=x: lib.grad(y, x)}
                calls[first]()
                with lib.raises(RuntimeError, TWICE):
                    calls[again]()
                if first == "grad":
                    assert x.grad is None
                else:
                    lib.equal(x.grad, df(lib.value(x)))


@contract("RET-02")
def retain_graph_defaults_to_create_graph(lib: Any) -> None:
    for create in (False, True):
        flags: list[tuple[dict[str, Any], bool]] = [({}, create), ({"retain_graph": None}, create)]
        for more, retained in [*flags, ({"retain_graph": True}, True), ({"retain_graph": False}, False)]:
            for how in ("method", "function", "grad"):
                with lib.case((how, create, more)):
                    x = lib.tensor(3.0)
                    y = x * x
                    if how == "method":
                        y.backward(create_graph=create, **more)
                    elif how == "function":
                        lib.backward(y, create_graph=create, **more)
                    else:
                        lib.grad(y, x, create_graph=create, **more)
                    x.grad = None
                    if retained:
                        y.backward()
                        lib.equal(x.grad, 6.0)
                    with lib.raises(RuntimeError, TWICE):
                        y.backward()


@contract("RET-03", draw={"name": st.sampled_from(sorted(SAVERS)), "shape": shapes(), "seed": seeds})
def a_retained_graph_gives_the_same_again(lib: Any, name: str, shape: Any, seed: int) -> None:
    f, df = SAVERS[name]
    x = lib.random(shape, seed)
    y = lib.xp.sum(f(lib, x) * x)
    v = lib.value(x)
    lib.equal(y, np.sum(lib.value(f(lib, x)) * v))
    y.backward(retain_graph=True)
    once = np.array(lib.value(x.grad))
    lib.equal(x.grad, df(v) * v + lib.value(f(lib, x)))
    y.backward(retain_graph=True)
    lib.equal(x.grad, 2 * once, rtol=0.0, atol=0.0)
    (g,) = lib.grad(y, x)
    lib.equal(g, once, rtol=0.0, atol=0.0)


@contract("RET-04")
def created_but_not_retained(lib: Any) -> None:
    # NB: in a longer chain the gradient's graph would run through nodes of the first graph, which have been freed.
    programs: list[tuple[str, Any, Any, Any]] = [
        ("x * x", lambda x: x * x, lambda v: 2 * v, lambda v: 2 + 0 * v),
        ("x ** 3", lambda x: x**3, lambda v: 3 * v**2, lambda v: 6 * v),
        ("sin", lib.xp.sin, np.cos, lambda v: -np.sin(v)),
    ]
    v, ones = np.array([1.0, 2.0]), lib.ones(2)
    for name, f, df, ddf in programs:
        for how in ("grad", "backward"):
            with lib.case((name, how)):
                x = lib.tensor(v)
                y = f(x)
                if how == "grad":
                    (g,) = lib.grad(y, x, ones, create_graph=True, retain_graph=False)
                else:
                    y.backward(ones, create_graph=True, retain_graph=False)
                    g, x.grad = x.grad, None
                lib.equal(g, df(v))
                with lib.raises(RuntimeError, TWICE):
                    lib.grad(y, x, ones)
                lib.equal(lib.grad(g, x, ones)[0], ddf(v))


@contract("RET-05")
def what_saved_nothing_runs_again(lib: Any) -> None:
    x = lib.tensor([3.0, 4.0])
    y = lib.xp.sum(lib.xp.reshape((x + 3) - 1, (2, 1)))
    for n in (1, 2, 3):
        y.backward()
        lib.equal(x.grad, [n, n])
    z = x + 1
    w = lib.xp.exp(z)
    w.backward(lib.ones(2))
    lib.equal(lib.grad(z, x, lib.ones(2))[0], [1.0, 1.0])
    with lib.raises(RuntimeError, TWICE):
        w.backward(lib.ones(2))


@contract("RET-06")
def a_shared_part_is_freed_for_both(lib: Any) -> None:
    for retain in (False, True):
        with lib.case(retain):
            x = lib.tensor(3.0)
            shared = x * x
            one, other = lib.xp.sin(shared), shared + 2
            one.backward(retain_graph=retain)
            x.grad = None
            if retain:
                other.backward()
                lib.equal(x.grad, 6.0)
            else:
                with lib.raises(RuntimeError, TWICE):
                    other.backward()
                assert x.grad is None


@contract("RET-07")
def only_what_ran_is_freed(lib: Any) -> None:
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    mine, branch = lib.xp.exp(x), w * w
    z = mine * 2 + branch
    lib.equal(lib.grad(z, [x])[0], 2 * np.exp(3.0))
    lib.equal(lib.grad(branch, w)[0], 4.0)
    with lib.raises(RuntimeError, TWICE):
        lib.grad(mine, x)
    mine, branch = lib.xp.exp(x), w * w
    lib.backward(mine + branch, inputs=[x])
    lib.equal(lib.grad(branch, w)[0], 4.0)
    with lib.raises(RuntimeError, TWICE):
        lib.grad(mine, x)


@contract("RET-08")
def grad_by_a_result_leaves_what_is_below(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    z = lib.xp.exp(y)
    lib.equal(lib.grad(z, y)[0], np.exp(9.0))
    with lib.raises(RuntimeError, TWICE):
        lib.grad(z, y)
    lib.equal(lib.grad(y, x)[0], 6.0)


@contract("RET-09")
def backward_into_a_result_frees_its_node(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    lib.xp.exp(y).backward(inputs=[y])
    lib.equal(y.grad, np.exp(9.0))
    with lib.raises(RuntimeError, TWICE):
        lib.grad(y, x)


@contract("RET-10")
def what_was_freed_cannot_be_read(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    kept: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        kept.append(ctx)
        lib.equal(ctx.saved_tensors[0], 9.0)
        return g * 2

    x = lib.tensor(3.0)
    square = x * x
    y = lib.fn(forward, backward).apply(square)
    assert square.grad_fn._saved_self is x
    assert square.grad_fn._saved_other is x
    lib.equal(y.grad_fn.saved_tensors[0], 9.0)
    y.backward()
    for name in ("_saved_self", "_saved_other"):
        with lib.case(name), lib.raises(RuntimeError, TWICE):
            getattr(square.grad_fn, name)
    for name, holder in [("node", y.grad_fn), ("ctx", kept[0])]:
        with lib.case(name), lib.raises(RuntimeError, TWICE):
            holder.saved_tensors  # noqa: B018 (reading it is the test)
    assert square.grad_fn._raw_saved_self is not None


@contract("RET-11")
def what_was_freed_fails_only_when_it_runs(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    node = y.grad_fn
    y.backward()
    assert y.requires_grad
    assert y.grad_fn is node
    w = lib.tensor(2.0)
    later = lib.xp.sin(y * w)
    assert later.requires_grad
    lib.equal(lib.grad(later, w, retain_graph=True)[0], 9 * np.cos(18.0))
    lib.equal(lib.grad(later, y, retain_graph=True)[0], 2 * np.cos(18.0))
    with lib.raises(RuntimeError, TWICE):
        later.backward()


@contract("RET-12")
def freed_means_memory(lib: Any) -> None:
    watched = []
    for retain in (False, True):
        for how in ("backward", "grad"):
            x = lib.tensor([1.0, 2.0])
            middle = x * 2
            power = lib.xp.exp(middle)
            y = lib.xp.sum(middle * middle + power)
            alive = [lib.watch_memory(middle), lib.watch_memory(power)]
            del middle, power
            lib.value(y)
            with lib.case((how, retain)):
                assert [a() for a in alive] == [True, True]
            if how == "backward":
                y.backward(retain_graph=retain)
                lib.value(x.grad)
            else:
                lib.value(lib.grad(y, x, retain_graph=retain)[0])
            watched.append((how, retain, y, alive))
    gc.collect()
    for how, retain, _, alive in watched:
        with lib.case((how, retain)):
            assert [a() for a in alive] == [retain, retain]


@contract("RET-13")
def a_batched_pass_frees_as_any_other(lib: Any) -> None:
    eye = lib.constant([[1.0, 0.0], [0.0, 1.0]])
    for retain in (False, True):
        with lib.case(retain):
            x = lib.tensor([1.0, 2.0])
            y = x * x
            (g,) = lib.grad(y, x, eye, is_grads_batched=True, retain_graph=retain)
            lib.equal(g, [[2.0, 0.0], [0.0, 4.0]])
            if retain:
                lib.equal(lib.grad(y, x, eye, is_grads_batched=True)[0], [[2.0, 0.0], [0.0, 4.0]])
            with lib.raises(RuntimeError, TWICE):
                lib.grad(y, x, lib.ones(2))


@contract("RET-14")
def a_deep_chain(lib: Any) -> None:
    x, one = lib.tensor(1.0), lib.constant(1.0)
    if lib.capabilities["lazy"]:  # a lazy library would build its own graph of that depth, which is not under test
        step = lib.fn(lambda ctx, y: one.detach(), lambda ctx, g: g).apply
    else:
        step = lambda y: y * 1.0  # noqa: E731 (one line for each)
    y = x
    for _ in range(100_000):
        y = step(y)
    y.backward()
    lib.equal(x.grad, 1.0)
    del y
    gc.collect()
