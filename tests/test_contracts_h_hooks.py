"""Contracts of group H: hooks and their order. Each test names its contracts first in its docstring."""

from __future__ import annotations

import gc
from typing import Any

import pytest


def log(lib: Any, seen: list[Any]) -> Any:
    """A hook that notes the gradient's value."""
    return lambda g: seen.append(None if g is None else lib.value(g).tolist())


def test_tensor_hooks(lib: Any) -> None:
    """HOK-01, HOK-02, HOK-03, HOK-04, HOK-08."""
    x, seen = lib.tensor(3.0), []
    y = x * 2
    y.register_hook(log(lib, seen))
    y.register_hook(lambda g: g * 10)
    y.register_hook(log(lib, seen))
    x.register_hook(log(lib, seen))
    z = y * y
    z.register_hook(lambda g: g * 2)
    z.backward(retain_graph=True)
    assert seen == [24.0, 240.0, 480.0]
    z.backward()
    assert seen == [24.0, 240.0, 480.0] * 2
    lib.equal(x.grad, 960.0)


def test_hooks_need_requires_grad(lib: Any) -> None:
    """HOK-05, HOK-22."""
    const, x = lib.const(1.0), lib.tensor(1.0)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        const.register_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        const.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_removing(lib: Any) -> None:
    """HOK-06."""
    x, seen = lib.tensor(3.0), []
    handle = x.register_hook(log(lib, seen))
    once = x.register_hook(lambda g: once.remove() or seen.append("once"))
    (x * 2).backward()
    handle.remove()
    handle.remove()
    with x.register_hook(log(lib, seen)):
        (x * 3).backward()
    (x * 4).backward()
    assert seen == [2.0, "once", 3.0]


@pytest.mark.parametrize(
    ("hook", "error", "phrase"),
    [
        (lambda lib: lambda g: "text", TypeError, "expected Variable, but hook returned 'str'"),
        (lambda lib: lambda g: lib.ones(2), RuntimeError, "has changed the size of value"),
        (lambda lib: lambda g: lib.cast(g, "float32"), RuntimeError, "has changed the type of value"),
    ],
)
def test_replacements(lib: Any, hook: Any, error: Any, phrase: str) -> None:
    """HOK-07."""
    x = lib.tensor(3.0)
    x.register_hook(hook(lib))
    with pytest.raises(error, match=phrase):
        (x * 2).backward()
    assert x.grad is None


def test_hooks_under_grad(lib: Any) -> None:
    """HOK-09, HOK-10: the captured gradient includes the hook's change, unless the input's node runs as well."""
    x = lib.tensor(3.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    lib.equal(lib.grad(y * y, y, retain_graph=True)[0], 120.0)
    gy, gx = lib.grad(y * y, [y, x])
    lib.equal(gy, 12.0)
    lib.equal(gx, 240.0)


def test_hooks_off_the_path(lib: Any) -> None:
    """HOK-11, HOK-20."""
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), []
    a, b = x * 2, w * 3
    for t in (w, b, (a * 5)):
        t.register_hook(log(lib, seen))
    b.grad_fn.register_hook(lambda gi, go: seen.append("node"))
    (a * b).backward(inputs=[x])
    assert seen == []


def test_hooks_outlive_the_tensor(lib: Any) -> None:
    """HOK-12, HOK-39."""
    x, seen = lib.tensor([1.0, 2.0]), []
    y = x * 2
    y.register_hook(log(lib, seen))
    view = y[:1]
    view.register_hook(log(lib, seen))
    z = (y * 3).sum()
    del y, view
    gc.collect()
    z.backward()
    assert seen == [[3.0, 3.0]]


def test_in_place_after_registration(lib: Any) -> None:
    """HOK-13, HOK-14."""
    x, seen = lib.tensor(3.0), []
    y = x * 2
    y.register_hook(log(lib, seen))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    (y * 7).backward()
    assert seen == [("new", 7.0), 35.0]
    lib.equal(y.grad, 7.0)


def test_order_at_one_node(lib: Any) -> None:
    """HOK-15, HOK-16, HOK-17: `.grad` is filled after all tensor hooks and before the pre-hooks."""
    x, seen = lib.tensor(3.0), []
    y = x * 2
    y.retain_grad()
    node = y.grad_fn
    node.register_hook(lambda gi, go: seen.append(("post", go[0].item())))
    node.register_prehook(lambda go: seen.append(("pre", go[0].item(), y.grad.item())) or (go[0] * 3,))
    y.register_hook(lambda g: seen.append(("tensor", g.item())) or g * 2)
    leaf = node.next_functions[0][0]
    leaf.register_prehook(lambda go: seen.append("leaf pre"))
    leaf.register_hook(lambda gi, go: seen.append("leaf post"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad.item())))
    x.register_hook(lambda g: seen.append("leaf tensor"))
    y.backward()
    expected = [("tensor", 1.0), ("pre", 2.0, 2.0), ("post", 6.0), "leaf tensor", "leaf pre", ("accumulated", 12.0), "leaf post"]
    assert seen == expected
    lib.equal(y.grad, 2.0)


def test_pre_hooks(lib: Any) -> None:
    """HOK-18."""
    x, seen = lib.tensor(3.0), []
    both = lib.fn(lambda ctx, x: ctx.set_materialize_grads(False) or (x * 2, x * 3), lambda ctx, g, h: g * 2).apply(x)
    both[0].grad_fn.register_prehook(lambda go: seen.append([v is None for v in go]))
    both[0].backward()
    assert seen == [[False, True]]
    y = x * 2
    y.grad_fn.register_prehook(lambda go: go[0])
    with pytest.raises(TypeError, match="expected tuple, but hook returned 'Tensor'"):
        y.backward()


def test_post_hooks(lib: Any) -> None:
    """HOK-19."""
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
    y.backward()
    lib.equal(x.grad, 20.0)
    lib.equal(w.grad, 3.0)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: gi[:1])
    with pytest.raises(RuntimeError, match=r"incorrect number of values .got 1, but expected 2"):
        y.backward()
    y = x * lib.const(2.0)
    y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        y.backward()


def test_post_accumulate(lib: Any) -> None:
    """HOK-21, HOK-23, HOK-24, HOK-25."""
    x, seen = lib.tensor([3.0, 4.0]), []

    def update(p: Any) -> None:
        seen.append((p is x, p.grad.tolist()))
        with lib.ns.no_grad():
            p.sub_(p.grad)
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(update)
    lib.grad((x * x).sum(), x)
    assert seen == []
    (x * x).sum().backward()
    assert seen == [(True, [6.0, 8.0])]
    assert x.grad is None
    lib.equal(x, [-3.0, -4.0])
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * x).sum().backward()


def test_undefined_gradients(lib: Any) -> None:
    """HOK-27."""
    x, seen = lib.tensor(3.0), []
    x.register_hook(log(lib, seen))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x).backward()
    assert seen == [None, "accumulated"]
    assert x.grad is None


def test_exceptions(lib: Any) -> None:
    """HOK-30."""

    def fail(g: Any) -> None:
        raise KeyError("boo")

    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * w
    y.register_hook(fail)
    with pytest.raises(KeyError, match="boo"):
        (y * 2).backward()
    assert x.grad is None
    assert w.grad is None


def four(lib: Any) -> list[Any]:
    return [lib.tensor(float(k)) for k in range(1, 5)]


def test_multi_grad_hook_all(lib: Any) -> None:
    """HOK-31, HOK-32: the documented example."""
    a, b, c, _unused = tensors = four(lib)
    seen: list[list[bool]] = []
    handle = lib.graph.register_multi_grad_hook(tensors, lambda gs: seen.append([g is not None for g in gs]))
    d = a * b + b * c
    d.backward(retain_graph=True)
    assert seen.pop() == [True, True, True, False]
    d.backward(inputs=[a, c], retain_graph=True)
    assert seen.pop() == [True, False, True, False]
    assert seen == []
    handle.remove()
    d.backward()
    assert seen == []


def test_multi_grad_hook_values(lib: Any) -> None:
    """HOK-31, HOK-32: on intermediates, after their tensor hooks; what it returns is ignored."""
    x, seen = lib.tensor(3.0), []
    y, z = x * 2, x * 5
    y.register_hook(lambda g: g * 10)
    lib.graph.register_multi_grad_hook([z, y, y], lambda gs: seen.append([g.item() for g in gs]) or 7)
    (y * z).backward()
    assert seen == [[6.0, 150.0, 150.0]]
    lib.equal(x.grad, 330.0)


def test_multi_grad_hook_any(lib: Any) -> None:
    """HOK-33."""
    x, seen = lib.tensor(3.0), []
    y = x * 2
    z = y * y
    lib.graph.register_multi_grad_hook([x, y, lib.const(1.0)], lambda g: seen.append(g.item()), mode="any")
    z.backward(retain_graph=True)
    z.backward()
    assert seen == [12.0, 12.0]


def test_multi_grad_hook_errors(lib: Any) -> None:
    """HOK-34."""
    register = lib.graph.register_multi_grad_hook
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register(four(lib), print, mode="x")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register([lib.const(1.0)], print)


def test_multi_grad_hook_on_a_root(ours: Any) -> None:
    """HOK-35, a deviation: PyTorch forgets to count the root, and fires one gradient too early."""
    x, seen = ours.tensor(3.0), []
    y = x * 2
    ours.graph.register_multi_grad_hook([x, y], lambda gs: seen.append([g.item() for g in gs]))
    y.backward()
    assert seen == [[2.0, 1.0]]


def test_multi_grad_hook_under_grad(ours: Any) -> None:
    """HOK-36, a deviation: PyTorch refuses leaves under `grad`, though its page promises them."""
    x, w, seen = ours.tensor(3.0), ours.tensor(2.0), []
    ours.graph.register_multi_grad_hook([x, w], lambda gs: seen.append([None if g is None else g.item() for g in gs]))
    ours.grad(x * w, [x, w])
    ours.grad(x * w, x)
    assert seen == [[2.0, 3.0], [2.0, None]]


def test_multi_grad_hook_in_nested_passes(ours: Any) -> None:
    """HOK-32: each pass counts for itself."""
    x, w, seen = ours.tensor(3.0), ours.tensor(2.0), []
    ours.graph.register_multi_grad_hook([x, w], lambda gs: seen.append([g is not None for g in gs]))
    y = x * w

    def nested(g: Any) -> None:
        with ours.ns.enable_grad():
            ours.backward(x * 5)

    y.register_hook(nested)
    y.backward()
    assert seen == [[True, False], [True, True]]


def test_execution_order(lib: Any) -> None:
    """HOK-37: later nodes first, leaves as soon as possible."""
    a, b, seen = lib.tensor(1.0), lib.tensor(1.0), []
    y1 = a * 2
    y2 = b * 3
    for name, t in (("y1", y1), ("y2", y2), ("a", a), ("b", b)):
        t.register_hook(lambda g, name=name: seen.append(name))
    (y1 + y2).backward()
    assert seen == ["y2", "b", "y1", "a"]


def test_differentiable_hooks(lib: Any) -> None:
    """HOK-38."""
    x = lib.tensor(3.0)
    x.register_hook(lambda g: g * g)
    (g,) = lib.grad(x * x, x, create_graph=True)
    lib.equal(g, 36.0)
    x2 = lib.tensor(3.0)
    y = x2 * x2
    y.register_hook(lambda g: g * x2)
    (g,) = lib.grad(y, x2, create_graph=True)
    lib.equal(g, 18.0)
    lib.equal(lib.grad(g, x2)[0], 12.0)


def test_final_callbacks(lib: Any) -> None:
    """HOK-41."""
    x, seen = lib.tensor(3.0), []
    y = x * 2
    y.register_hook(lambda g: lib.queue_callback(lambda: seen.append(x.grad.item())))
    y.backward()
    assert seen == [2.0]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        lib.queue_callback(print)


def test_retained_and_raw_hooks_on_slots(lib: Any) -> None:
    """HOK-15 on a node with several outputs: tensor hooks belong to one output, node hooks to all."""
    x, seen = lib.tensor(3.0), []
    a, b = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    a.register_hook(lambda g: seen.append("a") or g * 10)
    b.retain_grad()
    a.grad_fn.register_prehook(lambda go: seen.append([v.item() for v in go]))
    a.grad_fn.register_hook(lambda gi, go: seen.append(gi[0].item()))
    (a + b * 5).backward()
    assert seen == ["a", [10.0, 5.0], 35.0]
    lib.equal(b.grad, 5.0)


def test_leaf_node_is_weakly_held(ours: Any) -> None:
    """HOK-28 and INP-05 leave no cycle: hooks and watchers do not keep their graph alive."""
    import weakref

    gc.disable()
    try:
        x, y = ours.tensor(3.0), ours.tensor(2.0)
        z = x * y
        ours.graph.register_multi_grad_hook([x, y, z], lambda gs: None)
        ref, node = weakref.ref(x), weakref.ref(z.grad_fn)
        z.backward()
        del x, y, z
        assert ref() is None
        assert node() is None
    finally:
        gc.enable()
