"""Group H, continued: hooks after accumulation, hooks on several Tensors at once, and what holds for hooks of every kind."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.contracts.h_hooks import CONSTANT, HookError, Notes, note, plain

# -- after accumulation ------------------------------------------------------------------------------------------------


@contract("HOK-21", draw={"uses": st.integers(1, 4), "passes": st.integers(1, 3)})
def post_accumulate_hooks(lib: Any, uses: int, passes: int) -> None:
    x, seen = lib.tensor([3.0, 4.0]), Notes()
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, plain(lib, p.grad))))
    for _ in range(passes):
        total = x * 1
        for k in range(1, uses):
            total = total + lib.xp.sin(x * 0) + x * k
        lib.xp.sum(total).backward()
    each = 1.0 + sum(range(1, uses))
    assert seen == [(True, [each * n, each * n]) for n in range(1, passes + 1)]
    # Gradients of other leaves may not have arrived yet, but this one's has. The same holds with create_graph.
    x, seen = lib.tensor(3.0), Notes()
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.requires_grad, plain(lib, p.grad))))
    (x * x).backward(create_graph=True)
    assert seen == [(True, True, 6.0)]
    x.grad = None


@contract("HOK-22")
def post_accumulate_hooks_are_for_leaves(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    for name, t in [("result", x * 2), ("view", x[:1]), ("clone", x.clone())]:
        with lib.case(name), lib.raises(RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"):
            t.register_post_accumulate_grad_hook(lambda p: None)
    for name, t in [("constant", lib.constant(1.0)), ("result", lib.constant(1.0) * 2), ("detached", x.detach())]:
        with lib.case(name), lib.raises(RuntimeError, CONSTANT):
            t.register_post_accumulate_grad_hook(lambda p: None)


@contract("HOK-23")
def post_accumulate_hooks_return_none(lib: Any) -> None:
    like = lib.ones(2)
    returned: dict[str, Callable[[Any], Any]] = {"its gradient": lambda p: p.grad, "a constant": lambda p: like}
    for name, hook in {**returned, "a number": lambda p: 0, "text": lambda p: "text"}.items():
        x = lib.tensor([1.0, 2.0])
        x.register_post_accumulate_grad_hook(hook)
        # PyTorch has another message if the hook does not return a Tensor.
        error, phrase = (RuntimeError, "Tensor post accumulate grad hooks should return None") if name in returned else (Exception, "")
        with lib.case(name):
            with lib.raises(error, phrase):
                lib.xp.sum(x * x).backward()
            lib.equal(x.grad, [2.0, 4.0])


@contract("HOK-24", draw={"passes": st.integers(1, 3)})
def optimizer_in_backward(lib: Any, passes: int) -> None:
    x, w = lib.tensor([3.0, 4.0]), lib.tensor([1.0, 2.0])
    expected = {"x": np.asarray([3.0, 4.0]), "w": np.asarray([1.0, 2.0])}

    def update(p: Any) -> None:
        p.sub_(p.grad * 0.25)
        p.grad = None

    for t in (x, w):
        t.register_post_accumulate_grad_hook(update)
    for n in range(1, passes + 1):
        lib.xp.sum(x * x * w + w).backward()
        v, u = expected["x"], expected["w"]
        expected = {"x": v - 0.25 * 2 * v * u, "w": u - 0.25 * (v * v + 1)}
        assert x.grad is None
        assert w.grad is None
        lib.equal(x, expected["x"])
        lib.equal(w, expected["w"])
        assert x._version == n
        assert x.requires_grad
        assert x.is_leaf


@contract("HOK-25")
def post_accumulate_hooks_under_grad(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    x.register_post_accumulate_grad_hook(lambda p: seen.append("x"))
    w.register_post_accumulate_grad_hook(lambda p: seen.append("w"))
    y = x * w
    lib.grad(y, x, retain_graph=True)
    lib.grad(y, [x, w], retain_graph=True)
    lib.grad(y, [x, w], create_graph=True)
    lib.grad([y, x * 5], [w, x], retain_graph=True)
    assert seen == []
    y.backward(inputs=[x], retain_graph=True)
    assert seen == ["x"]
    y.backward()
    assert sorted(seen) == ["w", "x", "x"]


@contract("HOK-26")
def grad_mode_in_hooks(lib: Any) -> None:
    enabled = lib.ns.is_grad_enabled
    for name, outer in [("enable_grad", lib.ns.enable_grad), ("no_grad", lib.ns.no_grad), ("none", nullcontext)]:
        for create in (True, False):
            seen: dict[str, bool] = {}
            x = lib.tensor(3.0)
            y = x * x
            z = y * 2

            def look(kind: str, seen: dict[str, bool] = seen) -> Callable[..., None]:
                return lambda *_: seen.__setitem__(kind, enabled())

            y.register_hook(look("tensor"))
            y.grad_fn.register_prehook(look("pre"))
            y.grad_fn.register_hook(look("post"))
            x.register_hook(look("leaf"))
            y.grad_fn.next_functions[0][0].register_hook(look("leaf post"))
            x.register_post_accumulate_grad_hook(look("accumulated"))
            lib.graph.register_multi_grad_hook([x, y], look("several"))
            with lib.case((name, create)):
                with outer():
                    before = enabled()
                    z.backward(create_graph=create, retain_graph=True)
                    assert enabled() is before
                assert seen == dict.fromkeys(["tensor", "pre", "post", "leaf", "leaf post", "accumulated", "several"], create)
                assert x.grad.requires_grad is create
            x.grad = None


@contract("HOK-27")
def hooks_on_undefined_gradients(lib: Any) -> None:
    nothing = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None)
    x, seen = lib.tensor(3.0), Notes()
    y = x * 5
    x.register_hook(note(lib, seen, "x"))
    y.register_hook(note(lib, seen, "y"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", plain(lib, p.grad))))
    nothing.apply(y).backward()
    assert seen == [("y", None), ("x", None), ("accumulated", None)]
    assert x.grad is None
    seen.clear()
    x.grad = old = lib.constant(7.0)
    nothing.apply(x).backward()
    assert seen == [("x", None), ("accumulated", 7.0)]
    assert x.grad is old


@contract("HOK-28")
def the_node_of_a_leaf_is_weakly_held(lib: Any) -> None:
    def node(t: Any) -> Any:
        return lib.graph.get_gradient_edge(t).node

    x, seen = lib.tensor(3.0), Notes()
    kept = node(x)
    kept.register_hook(lambda gi, go: seen.append("kept"))
    (x * 2).backward()
    assert seen == ["kept"]
    # A graph also keeps the leaf's node alive.
    w = lib.tensor(2.0)
    y = w * 5
    node(w).register_hook(lambda gi, go: seen.append("used"))
    gc.collect()
    y.backward()
    assert seen == ["kept", "used"]
    # If nothing refers to the node, its hook is lost with it.
    v = lib.tensor(2.0)
    node(v).register_hook(lambda gi, go: seen.append("lost"))
    gc.collect()
    (v * 5).backward()
    lib.equal(v.grad, 5.0)
    assert seen == ["kept", "used"]


@contract("HOK-29")
def changing_a_gradient_is_done_by_returning(lib: Any) -> None:
    # NB: the rule forbids users to write to the argument. A library has to keep what a hook returns out of siblings that share
    # the buffer, and must not refuse such a write; the outcome of the write is undefined.
    for name, combine in [("add", lambda x, y: x + y), ("stack", lambda x, y: lib.xp.stack([x, y]))]:
        x, y, late = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]), Notes()
        a, b = x * 1, y * 1
        a.register_hook(lambda g: g * 10)
        b.register_hook(lambda g, late=late: late.append(g))
        seed = lib.ones(*combine(x, y).shape)
        with lib.case(name):
            combine(a, b).backward(seed)
            lib.equal(x.grad, [10.0, 10.0])
            lib.equal(y.grad, [1.0, 1.0])
            lib.equal(seed, np.ones(tuple(seed.shape)))
            x.grad.mul_(100)
            lib.equal(late[0], [1.0, 1.0])
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    x.register_hook(lambda g: (g.mul_(10), None)[1])
    (x + y).backward(lib.ones(2))
    assert plain(lib, y.grad) in ([1.0, 1.0], [10.0, 10.0])


@contract("HOK-30")
def exceptions_in_hooks(lib: Any) -> None:
    error = HookError("boo")

    def fail(*_: Any) -> Any:
        raise error

    for kind in ("tensor", "leaf", "pre", "post", "accumulated", "several"):
        early, x, late = lib.tensor(1.0), lib.tensor(3.0), lib.tensor(2.0)
        below = late * 7  # the oldest node, which would run last
        y = x * 2
        first = early * 5
        total = below + y + first
        if kind == "tensor":
            handle = y.register_hook(fail)
        elif kind == "leaf":
            handle = x.register_hook(fail)
        elif kind == "pre":
            handle = y.grad_fn.register_prehook(fail)
        elif kind == "post":
            handle = y.grad_fn.register_hook(fail)
        elif kind == "accumulated":
            handle = x.register_post_accumulate_grad_hook(fail)
        else:
            handle = lib.graph.register_multi_grad_hook([x, y], fail)
        with lib.case(kind):
            with lib.raises(HookError, "boo") as caught:
                total.backward(retain_graph=True)
            assert caught == [error]
            lib.equal(early.grad, 5.0)
            assert late.grad is None
            if kind == "accumulated":
                lib.equal(x.grad, 2.0)
            else:
                assert x.grad is None
            # The failure does not affect the next pass.
            handle.remove()
            early.grad = x.grad = None
            total.backward()
            lib.equal(early.grad, 5.0)
            lib.equal(x.grad, 2.0)
            lib.equal(late.grad, 7.0)


# -- several Tensors at once -------------------------------------------------------------------------------------------


@contract("HOK-31")
def multi_grad_hooks(lib: Any) -> None:
    a, b, c, d = (lib.tensor(float(k)) for k in range(1, 5))
    seen = Notes()
    lib.graph.register_multi_grad_hook((a, b, c, d), lambda gs: seen.append([plain(lib, g) for g in gs]))
    y = a * b + b * c
    y.backward(retain_graph=True)
    assert seen == [[2.0, 4.0, 2.0, None]]
    seen.clear()
    y.backward(inputs=[a, c], retain_graph=True)
    assert seen == [[2.0, None, 2.0, None]]
    # Hooks on results are called right after the last gradient, with the values that the tensor hooks returned.
    x, order = lib.tensor(3.0), Notes()
    y, z = x * 2, x * 5
    y.register_hook(lambda g: order.add("y", g * 10))
    z.register_hook(lambda g: order.append("z"))
    z.grad_fn.register_hook(lambda gi, go: order.append("the node of z"))
    x.register_hook(lambda g: order.append("x"))
    lib.graph.register_multi_grad_hook([z, y], lambda gs: order.append([plain(lib, g) for g in gs]))
    (y * z).backward(retain_graph=True)
    assert order == ["z", "the node of z", "y", [6.0, 150.0], "x"]
    order.clear()
    lib.grad(y * z, y, retain_graph=True)
    assert order == ["y", [None, 150.0]]
    assert seen == [[2.0, None, 2.0, None]]


@contract("HOK-32")
def multi_grad_hooks_count_per_pass(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    y = x * w
    handle = lib.graph.register_multi_grad_hook([x, w], lambda gs: seen.add([plain(lib, g) for g in gs], 7))
    for _ in range(2):
        y.backward(retain_graph=True)
        (x * 5).backward()
        (w * 7).backward()
    assert seen == [[2.0, 3.0], [5.0, None], [None, 7.0]] * 2
    lib.equal(x.grad, 14.0)
    lib.equal(w.grad, 20.0)
    # A Tensor that is listed twice has two entries; a pass that failed is not counted.
    seen.clear()
    twice = lib.graph.register_multi_grad_hook([x, w, x], lambda gs: seen.append(len([g for g in gs if g is not None])))

    def fail(g: Any) -> Any:
        raise HookError

    failing = x.register_hook(fail)
    with lib.raises(HookError):
        y.backward(retain_graph=True)
    failing.remove()
    assert not [n for n in seen if isinstance(n, int)]
    handle.remove()
    seen.clear()
    y.backward(retain_graph=True)
    assert seen == [3]
    twice.remove()
    twice.remove()
    y.backward(retain_graph=True)
    (x * 5).backward()
    (w * 5).backward()
    assert seen == [3]
    # A nested pass is counted separately.
    seen, x, w = Notes(), lib.tensor(3.0), lib.tensor(2.0)
    lib.graph.register_multi_grad_hook([x, w], lambda gs: seen.append([g is not None for g in gs]))
    y = x * w
    inner = x * 5
    y.register_hook(lambda g: inner.backward())
    y.backward()
    assert seen == [[True, False], [True, True]]


@contract("HOK-33")
def multi_grad_hooks_on_any(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    y = x * 2
    z = y * y * w
    handle = lib.graph.register_multi_grad_hook([x, y, w], lambda g: seen.add(plain(lib, g), g * 100), mode="any")
    for _ in range(2):
        z.backward(retain_graph=True)
    assert seen == [36.0, 36.0]  # the gradient of w, which is computed first
    lib.equal(x.grad, 2 * 48.0)
    lib.equal(w.grad, 2 * 36.0)
    y.backward(retain_graph=True)
    assert seen == [36.0, 36.0, 1.0]
    lib.grad(z, y, retain_graph=True)
    assert seen == [36.0, 36.0, 1.0, 24.0]
    lib.grad(z, z, retain_graph=True)
    handle.remove()
    z.backward()
    assert seen == [36.0, 36.0, 1.0, 24.0]


@contract("HOK-34")
def multi_grad_hooks_refused(lib: Any) -> None:
    register = lib.graph.register_multi_grad_hook
    x, const, seen = lib.tensor(3.0), lib.constant(1.0), Notes()
    for mode in ("x", "ALL", ""):
        with lib.case(mode), lib.raises(ValueError, "Expects mode to be one of ('all', 'any') but got", mode):
            register([x], lambda gs: None, mode=mode)
    for tensors in ([const], [x, const], [const, x]):
        with lib.raises(AssertionError, "Expected gradient function to be set"):
            register(tensors, lambda gs: seen.append("all"))
        with lib.raises(AssertionError, "Expected gradient function to be set"):
            register(tensors, lambda gs: seen.append("all"), mode="all")
    with lib.silent():
        register([const, x, const], lambda g: seen.append(plain(lib, g)), mode="any")
        register([const], lambda g: seen.append("never"), mode="any")
    (x * 2).backward()
    assert seen == [2.0]


@contract("HOK-35")
def multi_grad_hooks_on_a_root(lib: Any) -> None:
    x, seen = lib.tensor(3.0), Notes()
    y = x * 2
    lib.graph.register_multi_grad_hook([x, y], lambda gs: seen.append([plain(lib, g) for g in gs]))
    y.backward(retain_graph=True)
    assert seen == [[2.0, 1.0]]
    seen.clear()
    (y * 5).backward()
    assert seen == [[10.0, 5.0]]
    # Two roots, one of them a leaf.
    a, b, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    z = a * b
    lib.graph.register_multi_grad_hook([a, z, b], lambda gs: seen.append([plain(lib, g) for g in gs]))
    lib.backward([z, b])
    assert seen == [[2.0, 1.0, 4.0]]


@contract("HOK-36")
def multi_grad_hooks_under_grad(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    y = x * w
    lib.graph.register_multi_grad_hook([x, w], lambda gs: seen.append([plain(lib, g) for g in gs]))
    lib.grad(y, [x, w], retain_graph=True)
    assert seen == [[2.0, 3.0]]
    lib.grad(y, x, retain_graph=True)
    lib.grad(y, w, retain_graph=True)
    assert seen == [[2.0, 3.0], [2.0, None], [None, 3.0]]
    lib.graph.register_multi_grad_hook([y, x], lambda gs: seen.append("both"))
    lib.grad(y * 2, x)
    assert seen[3:] in ([[4.0, None], "both"], ["both", [4.0, None]])


# -- the order of nodes, and the rest ----------------------------------------------------------------------------------


@contract("HOK-37")
def later_nodes_run_first(lib: Any) -> None:
    a, b, seen = lib.tensor(1.0), lib.tensor(1.0), Notes()
    y1 = a * 2
    y2 = b * 3
    total = y1 + y2
    for name, t in [("y1", y1), ("y2", y2), ("a", a), ("b", b), ("total", total)]:
        t.register_hook(lambda g, name=name: seen.append(name))
    b.register_post_accumulate_grad_hook(lambda p: seen.append("b accumulated"))
    total.backward()
    assert seen == ["total", "y2", "b", "b accumulated", "y1", "a"]
    # Nodes run in the order of creation, not of use.
    x, seen = lib.tensor(1.0), Notes()
    made = [x * k for k in range(1, 6)]
    for k, t in enumerate(made, 1):
        t.register_hook(lambda g, k=k: seen.append(k))
    total = made[2]
    for k in (0, 4, 1, 3):
        total = made[k] + total
    total.backward()
    assert seen == [5, 4, 3, 2, 1]


@contract("HOK-38")
def hooks_take_part_in_higher_orders(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = lib.grad(y, x, create_graph=True)
    lib.equal(g, 18.0)
    (h,) = lib.grad(g, x, create_graph=True)
    lib.equal(h, 12.0)
    lib.equal(lib.grad(h, x)[0], 4.0)
    # Hooks on the leaf, and hooks on a node.
    x = lib.tensor(3.0)
    handle = x.register_hook(lambda g: g * g)
    (g,) = lib.grad(x * x, x, create_graph=True)
    lib.equal(g, 36.0)
    handle.remove()
    lib.equal(lib.grad(g, x)[0], 24.0)
    for kind in ("pre", "post"):
        x = lib.tensor(3.0)
        y = x * 2
        if kind == "pre":
            y.grad_fn.register_prehook(lambda go, x=x: (go[0] * x * x,))
        else:
            y.grad_fn.register_hook(lambda gi, go, x=x: (gi[0] * x * x, *gi[1:]))
        (g,) = lib.grad(y, x, create_graph=True)
        with lib.case(kind):
            lib.equal(g, 18.0)
            lib.equal(lib.grad(g, x)[0], 12.0)


@contract("HOK-39")
def hooks_of_views(lib: Any) -> None:
    x, seen = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), Notes()
    y = x * 2
    views = [y[:1], y[0, 1], lib.xp.permute_dims(y, (1, 0)), lib.xp.reshape(y, (4,)), x[1]]
    for n, view in enumerate(views):
        view.register_hook(lambda g, n=n: seen.append(n))
    y.register_hook(lambda g: seen.append("base"))
    lib.xp.sum(y * 3).backward(retain_graph=True)
    assert seen == ["base"]
    seen.clear()
    lib.xp.sum(views[0] + y).backward(retain_graph=True)
    assert seen == [0, "base"]
    seen.clear()
    (lib.xp.sum(views[2]) + views[1]).backward()
    assert sorted(seen, key=str) == [1, 2, "base"]


unchecked("HOK-40", "out of scope: it says how PyTorch's Module hooks are built")


@contract("HOK-41")
def final_callbacks(lib: Any) -> None:
    refused = "Final callbacks can only be installed during backward pass"
    with lib.raises(RuntimeError, refused):
        lib.queue_callback(lambda: None)
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    below = w * 1
    y = x * below

    def queue(name: str) -> Callable[..., None]:
        return lambda *_: lib.queue_callback(lambda: seen.append((name, plain(lib, x.grad), plain(lib, w.grad))))

    y.register_hook(queue("first"))
    w.register_post_accumulate_grad_hook(queue("second"))
    y.backward(retain_graph=True)
    assert seen == [("first", 2.0, 3.0), ("second", 2.0, 3.0)]
    seen.clear()
    lib.grad(y, x)
    assert seen == [("first", 2.0, 3.0)]
    with lib.raises(RuntimeError, refused):
        lib.queue_callback(lambda: None)


@contract("HOK-43", draw={"place": st.integers(0, 2), "materialize": st.booleans()})
def hooks_of_outputs_without_a_gradient(lib: Any, place: int, materialize: bool) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3, x * 4

    def backward(ctx: Any, *gs: Any) -> Any:
        parts = [g * k for g, k in zip(gs, (2, 3, 4), strict=True) if g is not None]
        return sum(parts[1:], parts[0])

    cls = lib.fn(forward, backward)
    x, seen = lib.tensor([1.0, 2.0]), Notes()
    outs = cls.apply(x * 1)
    for k, out in enumerate(outs):
        out.register_hook(lambda g, k=k: seen.append((k, g is None)))
    lib.xp.sum(outs[place]).backward()
    assert sorted(seen) == [(k, k != place) for k in range(3)]
    lib.equal(x.grad, [place + 2.0, place + 2.0])
    outs = cls.apply(x * 1)
    outs[place - 1].register_hook(lambda g: lib.ones(2))
    with lib.raises(RuntimeError, "can't replace a None gradient with a non-None value"):
        lib.xp.sum(outs[place]).backward()


@contract("HOK-44", draw={"kind": st.sampled_from(["tensor", "pre", "post", "backward", "unpack"])})
def contexts_that_hooks_do_not_leave(lib: Any, kind: str) -> None:
    graph, seen = lib.module("autograd.graph"), Notes()

    def enter(*_: Any) -> None:
        lib.ns.no_grad().__enter__()
        graph.saved_tensors_hooks(seen.append, lambda v: v).__enter__()

    def unpack(value: Any) -> Any:
        enter()
        return value

    def backward(ctx: Any, g: Any) -> Any:
        enter()
        return g * 2

    x = lib.tensor([1.0, 2.0])
    if kind == "unpack":
        with graph.saved_tensors_hooks(lambda v: v, unpack):
            y = lib.xp.exp(x)
    else:
        y = lib.fn(lambda ctx, v: v * 2, backward).apply(x) if kind == "backward" else lib.xp.exp(x)
    if kind == "tensor":
        y.register_hook(enter)
    elif kind == "pre":
        y.grad_fn.register_prehook(enter)
    elif kind == "post":
        y.grad_fn.register_hook(enter)
    x.register_hook(lambda g: seen.append(lib.ns.is_grad_enabled()))
    if kind == "backward":  # also without recording, which takes another code path
        lib.grad(lib.xp.sum(y), x, retain_graph=True)
        assert lib.ns.is_grad_enabled()
        assert (x * x).requires_grad
        seen.clear()
        lib.grad(lib.xp.sum(y), x, create_graph=True)
    else:
        lib.grad(lib.xp.sum(y), x, create_graph=True)
    assert True in seen or kind == "backward"
    assert False not in seen or kind == "backward"
    assert lib.ns.is_grad_enabled()
    seen.clear()
    assert (x * x).requires_grad
    assert not seen


@contract("HOK-45")
def hooks_of_what_is_unbound(lib: Any) -> None:
    x, seen = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), Notes()
    a, b = lib.xp.unstack(x * 1)
    a.register_hook(lambda g: seen.append(g is None))
    lib.xp.sum(b).backward()
    assert seen == [True]
