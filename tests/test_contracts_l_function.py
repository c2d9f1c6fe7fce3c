"""Contracts of group L: custom Functions. Each test names its contracts first in its docstring."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest


def times(lib: Any, factor: float = 2.0, backward: Any = None) -> Any:
    return lib.fn(lambda ctx, x, *rest: x * factor, backward or (lambda ctx, g: g * factor))


def cube(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    return lib.fn(forward, backward, "Cube")


def test_instances(lib: Any) -> None:
    """FUN-01."""
    cls = times(lib)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = cls()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        instance(lib.tensor(1.0))


def test_forward_is_not_recorded(lib: Any) -> None:
    """FUN-02."""
    seen = []
    cls = lib.fn(lambda ctx, x: seen.append((lib.ns.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad)) or x * 2, lambda ctx, g: g)
    cls.apply(lib.tensor(1.0))
    assert seen == [(False, True, False)]


def test_missing_methods(lib: Any) -> None:
    """FUN-03: the backward is missed only when it runs."""
    x = lib.tensor(1.0)
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        lib.Function.apply(x)
    y = type("N", (lib.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(x)
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        y.backward()


def test_vjp(lib: Any) -> None:
    """FUN-04."""
    x = lib.tensor(1.0)
    body = {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 2)}
    lib.equal(lib.grad(type("V", (lib.Function,), body).apply(x), x)[0], 2.0)
    both = type("B", (lib.Function,), body | {"backward": body["vjp"]})
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
        lib.grad(both.apply(x), x)


@pytest.mark.parametrize(
    ("returned", "arguments", "phrase"),
    [
        (lambda lib, g: g, (1, 2), r"function FBackward returned an incorrect number of gradients .expected 3, got 1"),
        (lambda lib, g: (g, g), (), r"function FBackward returned an incorrect number of gradients .expected 1, got 2"),
        (lambda lib, g: (g, g), (3,), r"returned a gradient different than None at position 2, but the corresponding forward input"),
        (lambda lib, g: lib.ones(5), (), r"Function FBackward returned an invalid gradient at index 0 - got \[5\] but expected shape"),
        (lambda lib, g: lib.const(1.0), (), r"Function FBackward returned an invalid gradient at index 0 - got \[\] but expected shape"),
        (lambda lib, g: 1.0, (), r"expected Variable or None .got float"),
        (lambda lib, g: [g], (), r"expected Variable or None .got list"),
        (lambda lib, g: lib.cast(g, "complex128"), (), None),
    ],
)
def test_returned_gradients(lib: Any, returned: Any, arguments: Any, phrase: str) -> None:
    """FUN-05, FUN-06, FUN-07, FUN-09, FUN-10."""
    x = lib.tensor([1.0, 2.0])
    y = times(lib, 2.0, lambda ctx, g: returned(lib, g)).apply(x, *arguments)
    with pytest.raises(RuntimeError, match=phrase):
        y.sum().backward()
    assert x.grad is None


def test_surplus_nones(lib: Any) -> None:
    """FUN-06, FUN-08: a gradient for a Tensor that requires none is dropped."""
    x = lib.tensor([1.0, 2.0])
    times(lib, 2.0, lambda ctx, g: (g * 2, g, None, None)).apply(x, lib.ones(7)).sum().backward()
    lib.equal(x.grad, [2.0, 2.0])


def test_fitting(lib: Any) -> None:
    """FUN-09, FUN-10: summed down to the shape, cast to the dtype."""
    x = lib.tensor([[1.0], [2.0]], dtype="float32")
    times(lib, 2.0, lambda ctx, g: lib.ones(4, 2, 3)).apply(x).sum().backward()
    lib.equal(x.grad, [[12.0], [12.0]])
    assert x.grad.dtype == lib.ns.float32
    z = lib.tensor([1j], dtype="complex128")
    (g,) = lib.grad(times(lib, 2.0, lambda ctx, g: g.real).apply(z).real.sum(), z)
    lib.equal(g, [1.0])
    assert g.dtype == lib.ns.complex128


def test_none(lib: Any) -> None:
    """FUN-11, ACC-07: a backward below runs with zeros."""
    x, seen = lib.tensor([1.0, 2.0]), []
    below = times(lib, 2.0, lambda ctx, g: seen.append(g.tolist()) or g).apply(x)
    times(lib, 2.0, lambda ctx, g: None).apply(below * 1).sum().backward()
    assert seen == [[0.0, 0.0]]
    lib.equal(x.grad, [0.0, 0.0])


def test_needs_input_grad(lib: Any) -> None:
    """FUN-12."""
    seen = []
    cls = times(lib, 2.0, lambda ctx, *g: seen.append(ctx.needs_input_grad) or (g[0], None, None, g[0]))
    x, w = lib.tensor(1.0), lib.tensor(2.0)
    lib.grad(cls.apply(x, 3, lib.const(1.0), w), [x])
    assert seen == [(True, False, False, True)]


def test_saving_what_is_no_tensor(lib: Any) -> None:
    """FUN-13."""

    def wrong(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, None, 3)

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 2 is of type int"):
        lib.fn(wrong, lambda ctx, g: g).apply(lib.tensor(1.0))

    def twice(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, None, x * 5)
        return x * 2

    y = lib.fn(twice, lambda ctx, g: g).apply(lib.tensor(1.0))
    assert [None if t is None else t.item() for t in y.grad_fn.saved_tensors] == [1.0, None, 5.0]


@pytest.mark.parametrize("what", ["input", "constant", "output", "intermediate"])
def test_saved_tensors_are_checked(lib: Any, what: str) -> None:
    """FUN-14, MUT-03."""
    kept = []

    def forward(ctx: Any, x: Any, c: Any) -> Any:
        out, middle = x * c, x + 1
        kept.append(middle)
        ctx.save_for_backward({"input": x, "constant": c, "output": out, "intermediate": middle}[what])
        return out

    def backward(ctx: Any, g: Any) -> Any:
        (saved,) = ctx.saved_tensors
        return g * saved, None

    leaf, c = lib.tensor([1.0, 2.0]), lib.const([3.0, 4.0])
    x = leaf * 1
    cls = lib.fn(forward, backward)
    y = cls.apply(x, c)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    y = cls.apply(x, c)
    z = y.sum()
    with lib.ns.no_grad():
        {"input": x, "constant": c, "output": y, "intermediate": kept[-1]}[what].add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_values_on_ctx(lib: Any) -> None:
    """FUN-15: anything may be stored, and is not checked; `grad_fn` shows it."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.kept, ctx.real, ctx.buffer, ctx.step, ctx.shape = x, 1, 2, 3, tuple(x.shape)
        return x * 2

    x = lib.const([3.0])
    w = lib.tensor([1.0])
    y = lib.fn(lambda ctx, w: forward(ctx, x), lambda ctx, g: g * ctx.kept * ctx.step).apply(w)
    assert y.grad_fn.shape == (1,)
    x.add_(1.0)
    y.sum().backward()
    lib.equal(w.grad, [12.0])


def test_materialisation(lib: Any) -> None:
    """FUN-17."""
    for flag, expected in ((True, [[1.0], [0.0]]), (False, [[1.0], None])):
        seen: list[Any] = []

        def forward(ctx: Any, x: Any, flag: bool = flag) -> Any:
            ctx.set_materialize_grads(flag)
            return x * 2, x * 3

        def backward(ctx: Any, *g: Any, seen: Any = seen) -> Any:
            seen.extend(None if v is None else v.tolist() for v in g)
            return g[0]

        lib.fn(forward, backward).apply(lib.tensor([1.0]))[0].sum().backward()
        assert seen == expected


def test_outputs_without_gradient(lib: Any) -> None:
    """FUN-18, FUN-19."""
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        marked, whole = x * 3, lib.cast(x, "int64")
        ctx.mark_non_differentiable(marked)
        return x * 2, marked, whole, None, "text"

    def backward(ctx: Any, *g: Any) -> Any:
        seen.extend(None if v is None else (v.tolist(), str(v.dtype).split(".")[-1]) for v in g)
        return g[0] * 2

    x = lib.tensor([1.0])
    y, marked, whole, nothing, text = lib.fn(forward, backward).apply(x)
    assert [t.requires_grad for t in (y, marked, whole)] == [True, False, False]
    assert (nothing, text) == (None, "text")
    y.sum().backward()
    assert seen == [([1.0], "float64"), ([0.0], "float64"), ([0], "int64"), None, None]


def test_mark_dirty(lib: Any) -> None:
    """FUN-20."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    cls = lib.fn(forward, lambda ctx, g: g * 2)
    leaf = lib.tensor([1.0])
    x = leaf * 1
    y = cls.apply(x)
    assert y is x
    assert x._version >= 1
    assert x.grad_fn.name() == "FBackward"
    y.sum().backward()
    lib.equal(leaf.grad, [2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        cls.apply(leaf)
    quiet = leaf * 1
    assert lib.fn(lambda ctx, x: ctx.mark_dirty(x) or x, lambda ctx, g: g).apply(quiet) is quiet
    assert quiet._version == 1
    wrong = lib.fn(lambda ctx, x: ctx.mark_dirty(x) or x * 2, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        wrong.apply(leaf * 1)


def test_returning_an_input(lib: Any) -> None:
    """FUN-22."""
    x = lib.tensor([1.0])
    y = lib.fn(lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert y.grad_fn.name() == "FBackward"
    assert lib.memory(x, y)
    assert x.grad_fn is None
    y.sum().backward()
    lib.equal(x.grad, [5.0])


def test_once_differentiable(ours: Any) -> None:
    """FUN-24, a deviation: `grad` raises too, where PyTorch silently loses the second derivative."""
    once = ours.ag.function.once_differentiable
    modes = []

    @once
    def backward(ctx: Any, g: Any) -> Any:
        modes.append(ours.ns.is_grad_enabled())
        return g * 2 * ctx.saved_tensors[0]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    cls = ours.fn(forward, backward)
    x = ours.tensor(3.0)
    ours.equal(ours.grad(cls.apply(x), x)[0], 6.0)
    (g,) = ours.grad(cls.apply(x), x, create_graph=True)
    assert modes == [False, False]
    for again in (g.backward, lambda: ours.grad(g, x)):
        with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked"):
            again()


def test_higher_order(lib: Any) -> None:
    """FUN-25."""
    x = lib.tensor([2.0])
    g = cube(lib).apply(x).sum()
    for expected in ([12.0], [12.0], [6.0]):
        (g,) = lib.grad(g.sum(), x, create_graph=True)
        lib.equal(g, expected)


def test_saved_output_at_second_order(lib: Any) -> None:
    """FUN-14, FUN-25: a saved output has its history back."""

    def forward(ctx: Any, x: Any) -> Any:
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    x = lib.tensor([0.5])
    y = lib.fn(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    for _ in range(3):
        (y,) = lib.grad(y, x, lib.ones(1), create_graph=True)
        lib.equal(y, np.exp([0.5]))


def test_setup_context(lib: Any) -> None:
    """FUN-26."""

    class Cube(lib.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(x: Any, power: int = 3) -> Any:
            return x**power

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.power = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.power * ctx.saved_tensors[0] ** (ctx.power - 1), None

    x = lib.tensor([2.0])
    lib.equal(lib.grad(Cube.apply(x), x, lib.ones(1))[0], [12.0])
    lib.equal(lib.grad(Cube.apply(x, 2), x, lib.ones(1))[0], [4.0])


def test_nested_tensors_are_not_tracked(lib: Any) -> None:
    """FUN-27."""
    x = lib.tensor([1.0])
    y = lib.fn(lambda ctx, xs: xs[0] * 2, lambda ctx, g: None).apply([x])
    assert not y.requires_grad


def test_same_tensor_twice(lib: Any) -> None:
    """FUN-28."""
    x = lib.tensor([2.0])
    lib.fn(lambda ctx, a, b: a * b, lambda ctx, g: (g * 3, g * 4)).apply(x, x).sum().backward()
    lib.equal(x.grad, [7.0])


def test_exceptions(lib: Any) -> None:
    """FUN-30: and the graph can be used again."""

    def fail(ctx: Any, g: Any) -> Any:
        raise LookupError("boo")

    x = lib.tensor([2.0])
    y = x * x
    with pytest.raises(LookupError, match="boo"):
        times(lib, 2.0, fail).apply(y).sum().backward(retain_graph=True)
    y.sum().backward()
    lib.equal(x.grad, [4.0])
    with pytest.raises(LookupError):
        lib.fn(fail, fail).apply(x)
    assert lib.ns.is_grad_enabled()


def test_nothing_recorded(lib: Any) -> None:
    """FUN-31."""
    cls = times(lib)
    assert not cls.apply(lib.const(1.0)).requires_grad
    with lib.ns.no_grad():
        assert cls.apply(lib.tensor(1.0)).grad_fn is None


def test_keywords(lib: Any) -> None:
    """FUN-32."""
    cls = lib.fn(lambda ctx, x, k=1: x * k, lambda ctx, g: (g * 3, None))
    x = lib.tensor([1.0])
    lib.equal(lib.grad(cls.apply(x, k=3), x, lib.ones(1))[0], [3.0])


def test_names_and_forms_of_outputs(lib: Any) -> None:
    """FUN-35."""
    x = lib.tensor([1.0])
    assert cube(lib).apply(x).grad_fn.name() == "CubeBackward"
    (one,) = lib.fn(lambda ctx, x: (x * 2,), lambda ctx, g: g).apply(x)
    assert one.requires_grad
    found = lib.fn(lambda ctx, x: [x * 2], lambda ctx, g: g).apply(x)
    assert type(found) is list
    assert not found[0].requires_grad


def test_hooks_and_retained_graphs(lib: Any) -> None:
    """FUN-25, HOK-18, RET-03: a custom node is a node like others."""
    x, seen = lib.tensor([2.0]), []
    y = cube(lib).apply(x)
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda go: seen.append(go[0].tolist()))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    lib.equal(x.grad, [240.0])
    lib.equal(y.grad, [20.0])
    assert seen == [[10.0], [10.0]]


def test_a_pass_inside_a_backward(lib: Any) -> None:
    """FUN-25, THR-06: the inner pass works on the same graph."""

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with lib.ns.enable_grad():
            leaf = x.detach().requires_grad_()
            (inner,) = lib.grad(cube(lib).apply(leaf) + leaf * leaf, leaf, g)
        return inner

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3 + x**2

    x = lib.tensor([2.0])
    y = lib.fn(forward, backward).apply(cube(lib).apply(x))
    y.sum().backward()
    lib.equal(x.grad, [(3 * 8**2 + 2 * 8.0) * 12.0])


def test_several_passes_at_once(ours: Any) -> None:
    """FUN-14, THR-01: passes over one custom node in several threads."""
    x = ours.tensor([2.0])
    barrier = threading.Barrier(4)
    plain = cube(ours)

    def backward(ctx: Any, g: Any) -> Any:
        barrier.wait(timeout=20)
        return g * 2

    y = ours.fn(lambda ctx, x: x * 2, backward).apply(plain.apply(x)).sum()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(ours.grad(y, x, retain_graph=True)[0].tolist())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[24.0]] * 4


def test_freed_by_a_nested_pass(ours: Any) -> None:
    """RET-01, THR-06: a pass on private copies frees, and is refused what is freed, like any other."""
    x = ours.tensor([2.0])
    y = cube(ours).apply(x).sum()

    def hook(g: Any) -> None:
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()

    z = ours.tensor(1.0)
    w = z * 2
    w.register_hook(hook)
    w.backward()
    ours.equal(x.grad, [12.0])


@pytest.mark.parametrize("save", ["input", "output", "both"])
@pytest.mark.parametrize("order", [1, 2])
def test_reclaimed_by_reference_counting(ours: Any, save: str, order: int) -> None:
    """ACC-32 for custom nodes: saved inputs and outputs make no cycle."""

    def forward(ctx: Any, x: Any) -> Any:
        out = x * 2
        ctx.save_for_backward(*{"input": (x,), "output": (out,), "both": (x, out, None)}[save])
        return out

    gc.disable()
    try:
        x = ours.tensor([2.0])
        y = ours.fn(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 1)
        refs = [weakref.ref(t) for t in (x, y, y.grad_fn)]
        g = y.sum()
        for k in range(order):
            (g,) = ours.grad(g.sum(), x, create_graph=k < order - 1, retain_graph=True)
        del x, y, g
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()
