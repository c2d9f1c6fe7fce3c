"""Group H: hooks on Tensors and nodes, and the order in which they run."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

CONSTANT = "cannot register a hook on a tensor that doesn't require gradient"


class HookError(Exception):
    """The error that a hook raises."""


class Notes(list[Any]):
    """The entries that hooks record, in order."""

    def add(self, entry: Any, answer: Any = None) -> Any:
        """Append an entry and return `answer`."""
        self.append(entry)
        return answer


def plain(lib: Any, g: Any) -> Any:
    """Return a gradient as nested lists; None stays None."""
    return None if g is None else lib.value(g).tolist()


def note(lib: Any, seen: Notes, label: str = "") -> Callable[[Any], None]:
    """Return a tensor hook that records the gradient, with the label if one is given."""
    return lambda g: seen.append((label, plain(lib, g)) if label else plain(lib, g))


def two_outputs(lib: Any) -> Any:
    """Return a custom Function with the outputs 2x and 3x, whose backward receives None for an undefined gradient."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        given = [t * k for t, k in ((g, 2), (h, 3)) if t is not None]
        return given[0] + given[1] if len(given) > 1 else given[0]

    return lib.fn(forward, backward, "TwoOutputs")


# -- hooks on Tensors --------------------------------------------------------------------------------------------------


@contract("HOK-01", draw={"shape": shapes(), "seed": seeds, "passes": st.integers(1, 3)})
def tensor_hooks(lib: Any, shape: Any, seed: int, passes: int) -> None:
    x, w = lib.random(shape, seed), lib.random(shape, seed + 1)
    y = x * w
    seen = Notes()

    def look(g: Any) -> None:
        assert isinstance(g, lib.ns.Tensor)
        assert tuple(g.shape) == shape
        assert g.dtype == y.dtype
        seen.append(plain(lib, g))

    y.register_hook(look)
    y.register_hook(lambda g: g * 10)
    z = lib.xp.sum(y * 3)
    for n in range(1, passes + 1):
        z.backward(retain_graph=True)
        assert len(seen) == n
        lib.equal(x.grad, n * 30 * lib.value(w))
        lib.equal(w.grad, n * 30 * lib.value(x))
    lib.equal(lib.grad(z, x, retain_graph=True)[0], 30 * lib.value(w))
    assert seen == [np.full(shape, 3.0).tolist()] * (passes + 1)
    # The value that a leaf's hook returns is what is accumulated.
    x.register_hook(lambda g: g * 0)
    before = np.array(lib.value(x.grad))
    z.backward()
    lib.equal(x.grad, before)


@contract("HOK-02", draw={"factors": st.lists(st.integers(-4, 4), min_size=1, max_size=5), "shape": shapes(), "seed": seeds})
def one_call_with_the_sum(lib: Any, factors: Any, shape: Any, seed: int) -> None:
    for case in (factors, [1, 2, 3]):
        x = lib.random(shape, seed)
        y = x * 2
        seen = Notes()
        y.register_hook(note(lib, seen, "y"))
        x.register_hook(note(lib, seen, "x"))
        total = y * case[0]
        for k in case[1:]:
            total = total + lib.xp.sin(y * 0) + y * k  # the sine adds a gradient of 0
        lib.xp.sum(total).backward(retain_graph=True)
        expected = [("y", np.full(shape, 1.0 * sum(case)).tolist()), ("x", np.full(shape, 2.0 * sum(case)).tolist())]
        with lib.case(case):
            assert seen == expected
            lib.xp.sum(total).backward()
            assert seen == expected * 2
    # Gradients from several roots are summed as well.
    x = lib.tensor(3.0)
    seen = Notes()
    x.register_hook(note(lib, seen))
    lib.backward([x * x, x * 5, x])
    assert seen == [12.0]


@contract("HOK-03", draw={"passes": st.integers(2, 4)})
def a_leafs_hook_sees_this_pass_only(lib: Any, passes: int) -> None:
    x, seen = lib.tensor([3.0, 4.0]), Notes()
    x.register_hook(note(lib, seen))
    x.grad = lib.constant([100.0, 100.0])
    for _ in range(passes):
        lib.xp.sum(x * x).backward()
    assert seen == [[6.0, 8.0]] * passes
    lib.equal(x.grad, [100.0 + 6 * passes, 100.0 + 8 * passes])


@contract("HOK-04", draw={"steps": st.lists(st.sampled_from(["add", "double", "look"]), min_size=2, max_size=5)})
def registration_order(lib: Any, steps: Any) -> None:
    actions: dict[str, Callable[[Any], Any]] = {"add": lambda g: g + 1, "double": lambda g: g * 2, "look": lambda g: None}
    for program in (steps, ["add", "double", "look"], ["double", "add", "double"]):
        expected, value = [], 7.0
        for step in program:
            expected.append(value)
            value = {"add": value + 1, "double": value * 2, "look": value}[step]

        def one(seen: Notes, step: str) -> Callable[[Any], Any]:
            def hook(g: Any) -> Any:
                seen.append(plain(lib, g))
                return actions[step](g)

            return hook

        def of_tuples(seen: Notes, step: str) -> Callable[..., Any]:
            def hook(grads: Any, outputs: Any = None) -> Any:
                seen.append(plain(lib, grads[0]))
                new = actions[step](grads[0])
                return None if new is None else (new,)

            return hook

        for kind in ("tensor", "leaf", "pre", "post"):
            x, seen = lib.tensor(3.0), Notes()
            y = x.clone()
            for step in program:
                if kind == "tensor":
                    y.register_hook(one(seen, step))
                elif kind == "leaf":
                    x.register_hook(one(seen, step))
                elif kind == "pre":
                    y.grad_fn.register_prehook(of_tuples(seen, step))
                else:
                    y.grad_fn.register_hook(of_tuples(seen, step))
            y.backward(lib.constant(7.0))
            with lib.case((kind, program)):
                assert seen == expected
                lib.equal(x.grad, value)
    x, seen = lib.tensor(3.0), Notes()
    for n in range(4):
        x.register_post_accumulate_grad_hook(lambda p, n=n: seen.add((n, p.grad.add_(1).item())))
        x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 2).backward()
    assert seen == [(0, 3.0), 3.0, (1, 4.0), 4.0, (2, 5.0), 5.0, (3, 6.0), 6.0]


@contract("HOK-05")
def hooks_need_requires_grad(lib: Any) -> None:
    x = lib.tensor(1.0)
    with lib.ns.no_grad():
        quiet = x * 2
    for name, t in [("constant", lib.constant(1.0)), ("result", lib.constant(1.0) * 2), ("detached", x.detach()), ("no_grad", quiet)]:
        with lib.case(name), lib.raises(RuntimeError, CONSTANT):
            t.register_hook(lambda g: g)
    off, seen = lib.tensor(1.0).requires_grad_(False), Notes()
    with lib.raises(RuntimeError, CONSTANT):
        off.register_hook(lambda g: g)
    off.requires_grad_().register_hook(note(lib, seen))
    (off * 3).backward()
    assert seen == [3.0]


@contract("HOK-06")
def handles(lib: Any) -> None:
    x, seen = lib.tensor(3.0), Notes()
    y = x * 1

    def register(kind: str, label: Any, extra: Callable[[], Any] = lambda: None) -> Any:
        def hook(*_: Any) -> None:
            seen.append(label)
            extra()

        return {
            "tensor": y.register_hook,
            "leaf": x.register_hook,
            "pre": y.grad_fn.register_prehook,
            "post": y.grad_fn.register_hook,
            "accumulated": x.register_post_accumulate_grad_hook,
        }[kind](hook)

    def fired() -> list[Any]:
        seen.clear()
        y.backward(retain_graph=True)
        return list(seen)

    for kind in ("tensor", "leaf", "pre", "post", "accumulated"):
        with lib.case(kind):
            first, middle, last = (register(kind, n) for n in range(3))
            assert fired() == [0, 1, 2]
            middle.remove()
            assert fired() == [0, 2]
            assert middle.remove() is None  # a second removal does nothing
            assert fired() == [0, 2]
            first.remove()
            again = register(kind, 3)
            assert fired() == [2, 3]
            last.remove()
            again.remove()
            assert fired() == []
            with register(kind, "inside") as handle:
                assert fired() == ["inside"]
            assert fired() == []
            handle.remove()
            try:
                with register(kind, "failing"):
                    raise HookError
            except HookError:
                pass
            assert fired() == []
            held: dict[str, Any] = {}

            def remove(held: dict[str, Any] = held) -> None:
                held["handle"].remove()

            held["handle"] = register(kind, "once", remove)
            after = register(kind, "after")
            assert fired() == ["once", "after"]
            assert fired() == ["after"]
            after.remove()


@contract("HOK-07", draw={"pair": st.tuples(shapes(), shapes()).filter(lambda p: p[0] != p[1]), "seed": seeds})
def replacements_are_like_what_they_replace(lib: Any, pair: Any, seed: int) -> None:
    size, kind = "has changed the size of value", "has changed the type of value"
    like = lib.ones(*pair[0])
    cases: list[tuple[Any, type[BaseException], tuple[str, ...]]] = [
        ("text", TypeError, ("expected Variable, but hook returned 'str'",)),
        (1.0, TypeError, ("expected Variable, but hook returned 'float'",)),
        (np.ones(pair[0]), TypeError, ("expected Variable, but hook returned '", "ndarray'")),
        (lib.ones(*pair[1]), RuntimeError, ("wrong_hook", size)),
        (lib.ones(*pair[0], 1), RuntimeError, ("wrong_hook", size)),
        (lib.cast(like, lib.narrow), RuntimeError, ("wrong_hook", kind)),
        (lib.cast(like, "int32"), RuntimeError, ("wrong_hook", kind)),
    ]
    if lib.capabilities["complex"]:
        cases.append((lib.constant(np.ones(pair[0]), lib.complex), RuntimeError, ("wrong_hook", kind)))
    for value, error, phrases in cases:

        def wrong_hook(g: Any, value: Any = value) -> Any:
            return value

        for on_leaf in (True, False):
            x = lib.random(pair[0], seed)
            y = x * 2
            (x if on_leaf else y).register_hook(wrong_hook)
            with lib.case((str(value), on_leaf)):
                with lib.raises(error, *phrases):
                    lib.xp.sum(y).backward()
                assert x.grad is None
    x = lib.random(pair[0], seed)
    x.register_hook(lambda g: like * 5)
    lib.xp.sum(x * 2).backward()
    lib.equal(x.grad, np.full(pair[0], 5.0))


@contract("HOK-08", draw={"shape": shapes(), "seed": seeds})
def hooks_of_the_root(lib: Any, shape: Any, seed: int) -> None:
    x, w = lib.random(shape, seed), lib.random(shape, seed + 1)
    y = x * w
    seen = Notes()
    y.register_hook(note(lib, seen))
    y.register_hook(lambda g: g * 10)
    y.backward(lib.constant(np.full(shape, 3.0)), retain_graph=True)
    assert seen == [np.full(shape, 3.0).tolist()]
    lib.equal(x.grad, 30 * lib.value(w))
    lib.equal(w.grad, 30 * lib.value(x))
    lib.equal(lib.grad(y, x, lib.ones(*shape))[0], 10 * lib.value(w))
    z, seen = lib.xp.sum(x * x), Notes()
    z.register_hook(note(lib, seen))
    z.register_hook(lambda g: g * 7)
    x.grad = None
    z.backward()
    assert seen == [1.0]
    lib.equal(x.grad, 14 * lib.value(x))
    # A leaf that is also the root.
    leaf = lib.tensor(2.0)
    leaf.register_hook(lambda g: g * 4)
    leaf.backward()
    lib.equal(leaf.grad, 4.0)


@contract("HOK-09")
def hooks_of_inputs_under_grad(lib: Any) -> None:
    x, seen = lib.tensor(3.0), Notes()
    y = x * 2
    z = y * y
    x.register_hook(note(lib, seen, "x"))
    y.register_hook(note(lib, seen, "y"))
    z.register_hook(note(lib, seen, "z"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("the node of y"))
    lib.grad(z, y, retain_graph=True)
    assert seen == [("z", 1.0), ("y", 12.0)]
    seen.clear()
    lib.grad(z, x, retain_graph=True)
    assert seen == [("z", 1.0), ("y", 12.0), "the node of y", ("x", 24.0)]
    seen.clear()
    lib.grad(z, z, retain_graph=True)
    assert seen == [("z", 1.0)]
    seen.clear()
    lib.grad(z, [x, y])
    assert seen == [("z", 1.0), ("y", 12.0), "the node of y", ("x", 24.0)]


@contract("HOK-10")
def what_grad_captures(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * 2
    z = y * y
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda go: (go[0] * 100,))
    # The node of y need not run: hooks on the Tensor apply, hooks on its node do not.
    lib.equal(lib.grad(z, y, retain_graph=True)[0], 120.0)
    # For x the node has to run: the gradient of y is captured before any hook of y, and the gradient of x has passed through all of them.
    for order in ([y, x], [x, y]):
        found = dict(zip(["y", "x"] if order[0] is y else ["x", "y"], lib.grad(z, order, retain_graph=True), strict=True))
        lib.equal(found["y"], 12.0)
        lib.equal(found["x"], 24000.0)
    lib.equal(lib.grad(z, x, retain_graph=True)[0], 24000.0)
    # A leaf's node never runs under grad().
    x.register_hook(lambda g: g * 7)
    lib.equal(lib.grad(z, x)[0], 7 * 24000.0)


@contract("HOK-11")
def hooks_off_the_path(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    a, b = x * 2, w * 3
    z = a * b
    beside = a * 5
    for name, t in [("x", x), ("w", w), ("a", a), ("b", b), ("beside", beside)]:
        t.register_hook(lambda g, name=name: seen.append(name))
    w.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    for name, run, expected in [
        ("inputs", lambda: z.backward(inputs=[x], retain_graph=True), ["a", "x"]),
        ("grad", lambda: lib.grad(z, x, retain_graph=True), ["a", "x"]),
        ("the middle", lambda: lib.grad(z, b, retain_graph=True), ["b"]),
        ("below the root", lambda: a.backward(retain_graph=True), ["a", "x"]),
        ("unreached", lambda: lib.grad(lib.xp.sum(x * 1), [x, w], allow_unused=True), ["x"]),
    ]:
        seen.clear()
        run()
        with lib.case(name):
            assert sorted(seen) == expected
    assert w.grad is None


@contract("HOK-12")
def hooks_outlive_the_tensor(lib: Any) -> None:
    x, seen = lib.tensor([1.0, 2.0]), Notes()
    y = x * 2
    y.register_hook(note(lib, seen))
    y.register_hook(lambda g: g * 10)
    z = lib.xp.sum(y * 3)
    del y
    gc.collect()
    z.backward()
    assert seen == [[3.0, 3.0]]
    lib.equal(x.grad, [60.0, 60.0])
    # The same holds for a hook on one of several outputs, and on the result of a custom Function.
    seen = Notes()
    a, b = two_outputs(lib).apply(x)
    a.register_hook(note(lib, seen, "a"))
    b.register_hook(note(lib, seen, "b"))
    z = lib.xp.sum(a * 5 + b)
    del a, b
    gc.collect()
    z.backward()
    assert sorted(seen) == [("a", [5.0, 5.0]), ("b", [1.0, 1.0])]


@contract("HOK-13", draw={"seed": seeds, "shape": shapes()})
def hooks_stay_with_the_value_before_a_write(lib: Any, seed: int, shape: Any) -> None:
    x, seen = lib.random(shape, seed), Notes()
    v = lib.value(x)
    y = lib.xp.sin(x)
    y.register_hook(lambda g: seen.append(("before", np.array(lib.value(g)))))
    node = y.grad_fn
    node.register_hook(lambda gi, go: seen.append(("node", np.array(lib.value(gi[0])))))
    y.cos_()
    assert y.grad_fn is not node
    y.register_hook(lambda g: seen.append(("after", np.array(lib.value(g)))))
    lib.xp.sum(y * 3).backward()
    assert [name for name, _ in seen] == ["after", "before", "node"]
    lib.equal(lib.constant(seen[0][1]), np.full(shape, 3.0))
    lib.equal(lib.constant(seen[1][1]), -3 * np.sin(np.sin(v)), atol=1e-6)
    lib.equal(lib.constant(seen[2][1]), -3 * np.sin(np.sin(v)) * np.cos(v), atol=1e-6)
    # The value that an earlier hook returns affects only the graph below the write.
    x = lib.tensor([2.0, 3.0])
    y = x * 1
    y.register_hook(lambda g: g * 100)
    y.mul_(x)
    y.register_hook(lambda g: g * 10)
    lib.xp.sum(y).backward()
    lib.equal(x.grad, [10 * 2.0 + 1000 * 2.0, 10 * 3.0 + 1000 * 3.0])
    # The same for a write through a view.
    x, seen = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), Notes()
    y = x * 1
    y.register_hook(note(lib, seen))
    y[0].mul_(3)
    lib.xp.sum(y * lib.constant([[1.0, 2.0], [3.0, 4.0]])).backward()
    assert seen == [[[3.0, 6.0], [3.0, 4.0]]]


@contract("HOK-14")
def retain_grad_moves_with_the_tensor(lib: Any) -> None:
    x = lib.tensor([3.0, 4.0])
    y = x * 2
    y.retain_grad()
    before = lib.xp.sum(y + 0)
    y.mul_(5)
    assert y.retains_grad
    lib.xp.sum(y * 7).backward(retain_graph=True)
    lib.equal(y.grad, [7.0, 7.0])
    before.backward()  # the gradient of the value before the write is not stored
    lib.equal(y.grad, [7.0, 7.0])
    y = x * 1
    y.retain_grad()
    y[0].mul_(3)  # a write through a view
    lib.xp.sum(y * lib.constant([5.0, 6.0])).backward()
    lib.equal(y.grad, [5.0, 6.0])


# -- their order, and hooks on nodes -----------------------------------------------------------------------------------


@contract("HOK-15")
def order_at_one_node(lib: Any) -> None:
    x, seen = lib.tensor(3.0), Notes()

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(("node", plain(lib, g)))
        return g * 7

    y = lib.fn(lambda ctx, x: x * 7, backward).apply(x)
    node = y.grad_fn
    leaf = node.next_functions[0][0]
    # The hooks are not registered in the order in which they run.
    node.register_hook(lambda gi, go: seen.append(("post", plain(lib, gi[0]), plain(lib, go[0]))))
    y.retain_grad()
    node.register_prehook(lambda go: seen.add(("pre", plain(lib, go[0]), plain(lib, y.grad)), (go[0] * 3,)))
    y.register_hook(lambda g: seen.add(("tensor", plain(lib, g), y.grad), g * 2))
    leaf.register_hook(lambda gi, go: seen.append(("leaf post", len(gi), plain(lib, x.grad))))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", plain(lib, p.grad))))
    leaf.register_prehook(lambda go: seen.add(("leaf pre", plain(lib, go[0]), x.grad), (go[0] * 11,)))
    x.register_hook(lambda g: seen.add(("leaf tensor", plain(lib, g)), g * 5))
    y.backward()
    assert seen == [
        ("tensor", 1.0, None),
        ("pre", 2.0, 2.0),
        ("node", 6.0),
        ("post", 42.0, 6.0),
        ("leaf tensor", 42.0),
        ("leaf pre", 210.0, None),
        ("accumulated", 2310.0),
        ("leaf post", 0, 2310.0),
    ]
    # With several outputs, a tensor hook belongs to one of them and a node hook to all.
    x, seen = lib.tensor(3.0), Notes()
    a, b = two_outputs(lib).apply(x)
    a.grad_fn.register_hook(lambda gi, go: seen.append(("post", [plain(lib, g) for g in (*gi, *go)])))
    a.grad_fn.register_prehook(lambda go: seen.append(("pre", [plain(lib, g) for g in go])))
    a.register_hook(lambda g: seen.add("a", g * 10))
    b.retain_grad()
    (a + b * 5).backward()
    assert seen == ["a", ("pre", [10.0, 5.0]), ("post", [35.0, 10.0, 5.0])]
    lib.equal(b.grad, 5.0)


@contract("HOK-16")
def retain_grad_fills_before_pre_hooks(lib: Any) -> None:
    for early in (True, False):
        x, seen = lib.tensor(3.0), Notes()
        y = x * 2
        if early:
            y.retain_grad()
        y.grad_fn.register_prehook(lambda go, seen=seen, y=y: seen.add(plain(lib, y.grad), (go[0] * 3,)))
        if not early:
            y.retain_grad()
        (y * 5).backward()
        with lib.case(early):
            assert seen == [5.0]
            lib.equal(y.grad, 5.0)
            lib.equal(x.grad, 30.0)


@contract("HOK-17", draw={"order": st.permutations(["retain", "double", "triple"])})
def retain_grad_is_the_last_tensor_hook(lib: Any, order: Any) -> None:
    x = lib.tensor(3.0)
    y = x * 2
    for name in order:
        if name == "retain":
            y.retain_grad()
        else:
            y.register_hook(lambda g, k=2 if name == "double" else 3: g * k)
    (y * 5).backward()
    lib.equal(y.grad, 30.0)
    lib.equal(x.grad, 60.0)


@contract("HOK-18")
def pre_hooks_of_nodes(lib: Any) -> None:
    x, seen = lib.tensor(3.0), Notes()
    for used, expected, slope in [((1, 0), [1.0, None], 20.0), ((0, 1), [None, 1.0], 30.0), ((1, 1), [1.0, 1.0], 50.0)]:
        a, b = two_outputs(lib).apply(x)
        seen = Notes()

        def hook(go: Any, seen: Notes = seen) -> Any:
            assert isinstance(go, tuple)
            seen.append([plain(lib, g) for g in go])
            return tuple(None if g is None else g * 10 for g in go)

        a.grad_fn.register_prehook(hook)
        (a if used == (1, 0) else b if used == (0, 1) else a + b).backward()
        with lib.case(used):
            assert seen == [expected]
            lib.equal(x.grad, slope)
        x.grad = None
    y = x * 2
    y.grad_fn.register_prehook(lambda go: seen.append(len(go)))  # returns None, which keeps the gradients
    y.grad_fn.register_prehook(lambda go: (go[0] * 4,))
    y.backward()
    lib.equal(x.grad, 8.0)
    assert seen[-1] == 1
    for name, wrong, phrase in [
        ("Tensor", lambda go: go[0], "expected tuple, but hook returned 'Tensor'"),
        ("list", list, "expected tuple, but hook returned 'list'"),
        ("number", lambda go: 3, "expected tuple, but hook returned 'int'"),
    ]:
        x = lib.tensor(3.0)
        y = x * 2
        y.grad_fn.register_prehook(wrong)
        with lib.case(name):
            with lib.raises(TypeError, phrase):
                y.backward()
            assert x.grad is None
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
    with lib.raises(RuntimeError, "incorrect number of values", "got 2, but expected 1"):
        y.backward()


@contract("HOK-19")
def hooks_of_nodes(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    y = x * w

    def replace(gi: Any, go: Any) -> Any:
        assert isinstance(gi, tuple)
        assert isinstance(go, tuple)
        seen.append(([plain(lib, g) for g in gi], [plain(lib, g) for g in go]))
        return gi[0] * 10, gi[1]

    y.grad_fn.register_hook(lambda gi, go: None)
    y.grad_fn.register_hook(replace)
    (y * 5).backward()
    assert seen == [([10.0, 15.0], [5.0])]
    lib.equal(x.grad, 100.0)
    lib.equal(w.grad, 15.0)

    def too_many_hook(gi: Any, go: Any) -> Any:
        return (*gi, gi[0])

    for wrong, phrases in [
        (lambda gi, go: gi[:1], ("has returned an incorrect number of values", "got 1, but expected 2")),
        (too_many_hook, ("hook 'too_many_hook'", "got 3, but expected 2")),
    ]:
        x, w = lib.tensor(3.0), lib.tensor(2.0)
        y = x * w
        y.grad_fn.register_hook(wrong)
        with lib.raises(RuntimeError, *phrases):
            y.backward()
        assert x.grad is None
        assert w.grad is None
    # A constant operand has no gradient, and a hook cannot give it one.
    x = lib.tensor(3.0)
    y = x * lib.constant(2.0)
    seen = Notes()
    y.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
    handle = y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0]))
    with lib.raises(RuntimeError, "can't replace a None gradient with a non-None value"):
        y.backward(retain_graph=True)
    assert seen == [[False, True]]
    handle.remove()
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 3, None))
    y.backward()
    lib.equal(x.grad, 6.0)


@contract("HOK-20")
def hooks_of_nodes_that_do_not_run(lib: Any) -> None:
    x, w, seen = lib.tensor(3.0), lib.tensor(2.0), Notes()
    a, b = x * 2, w * 3
    z = a * b
    for name, t in [("a", a), ("b", b), ("z", z)]:
        t.grad_fn.register_prehook(lambda go, name=name: seen.append(("pre", name)))
        t.grad_fn.register_hook(lambda gi, go, name=name: seen.append(("post", name)))
    leaf = a.grad_fn.next_functions[0][0]
    leaf.register_prehook(lambda go: seen.append(("pre", "x")))
    leaf.register_hook(lambda gi, go: seen.append(("post", "x")))
    for name, run, expected in [
        ("inputs", lambda: z.backward(inputs=[x], retain_graph=True), ["z", "a", "x"]),
        ("grad of an intermediate", lambda: lib.grad(z, a, retain_graph=True), ["z"]),
        ("grad of a leaf", lambda: lib.grad(z, x, retain_graph=True), ["z", "a"]),
        ("grad of the root", lambda: lib.grad(z, z, retain_graph=True), []),
        ("all", lambda: b.backward(retain_graph=True), ["b"]),
    ]:
        seen.clear()
        run()
        with lib.case(name):
            assert seen == [(when, node) for node in expected for when in ("pre", "post")]


@contract("HOK-42")
def what_a_hook_kept_stays_as_it_was(lib: Any) -> None:
    kept: list[tuple[str, float, Any]] = []

    def keep(label: str, value: float) -> Any:
        return lambda gradient: kept.append((label, value, gradient))

    kinds = {
        "of a result": lambda x, y, z: z.register_hook(keep("of a result", 4.0)),
        "of an earlier one": lambda x, y, z: y.register_hook(keep("of an earlier one", 12.0)),
        "of a leaf": lambda x, y, z: x.register_hook(keep("of a leaf", 36.0)),
        "before a node": lambda x, y, z: z.grad_fn.register_prehook(lambda go: keep("before a node", 4.0)(go[0])),
        "before an earlier one": lambda x, y, z: y.grad_fn.register_prehook(lambda go: keep("before an earlier one", 12.0)(go[0])),
        "after a node": lambda x, y, z: z.grad_fn.register_hook(lambda gi, go: keep("after a node", 12.0)(gi[0])),
        "of its output": lambda x, y, z: z.grad_fn.register_hook(lambda gi, go: keep("of its output", 4.0)(go[0])),
    }
    # NB: a library may reuse the buffer of a gradient only if it is large, so both sizes are checked.
    for n, (name, register) in itertools.product((3, 40000), kinds.items()):
        with lib.case((n, name)):
            x, w = lib.tensor(np.full(n, 2.0)), lib.constant(np.full(n, 3.0))
            y = x * w
            z = y * w
            register(x, y, z)
            if name == "of a result":
                y.retain_grad()
            total = lib.xp.sum(z * w) + lib.xp.sum(z * 1)
            for _ in range(2):
                lib.backward(total, retain_graph=True)
            assert [label for label, _, _ in kept] == [name] * 2
            for _, value, g in kept:
                lib.equal(g, np.full(n, value))
            kept.clear()
            lib.equal(x.grad, np.full(n, 72.0))
            if name == "of a result":
                lib.equal(y.grad, np.full(n, 24.0))
    # What a hook returns is its own, too.
    given: dict[str, Any] = {
        "of a result": lambda z, mine: z.register_hook(lambda g: mine),
        "before a node": lambda z, mine: z.grad_fn.register_prehook(lambda go: (mine,)),
        "after a node": lambda z, mine: z.grad_fn.register_hook(lambda gi, go: (mine, *gi[1:])),
    }
    for n, (name, register) in itertools.product((3, 40000), given.items()):
        with lib.case((n, "returned", name)):
            x, w, mine = lib.tensor(np.full(n, 2.0)), lib.constant(np.full(n, 3.0)), lib.constant(np.full(n, 5.0))
            y = x * w
            z = y * w
            register(z, mine)
            (lib.xp.sum(z * w) + lib.xp.sum(y * 7)).backward()
            lib.equal(mine, np.full(n, 5.0))
            lib.equal(x.grad, np.full(n, (5.0 if name == "after a node" else 15.0) * 3 + 21.0))
