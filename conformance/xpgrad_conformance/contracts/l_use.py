"""Group L, continued: the use of such operations: differentiated again, with `setup_context`, under transforms, and where they raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.contracts.l_function import bare, double, power
from xpgrad_conformance.strategies import seeds, shapes


@contract("FUN-24")
def once_differentiable(lib: Any) -> None:
    modes = []

    @lib.ag.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        modes.append(lib.ns.is_grad_enabled())
        return g * 2 * ctx.saved_tensors[0]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    cls = lib.fn(forward, backward)
    x = lib.tensor([3.0])
    cls.apply(x).backward()
    lib.equal(x.grad, [6.0])
    lib.equal(lib.grad(cls.apply(x), x)[0], [6.0])
    # The seed depends on x, so that PyTorch raises in backward() as well.
    (g,) = lib.grad(cls.apply(x) * x, x, create_graph=True)
    assert modes == [False] * 3
    lib.equal(g, [27.0])
    phrase = "trying to differentiate twice a function that was marked with @once_differentiable"
    with lib.raises(RuntimeError, phrase):
        g.backward(retain_graph=True)
    with lib.raises(RuntimeError, phrase):
        lib.grad(g, x, retain_graph=True)
    with lib.raises(RuntimeError, phrase):
        lib.grad(g, x, allow_unused=True)
    # the same if only the gradient of the seed is asked for: its dependence on the seed is not lost
    if not lib.oracle:
        seed = lib.tensor([2.0])
        (g,) = lib.grad(cls.apply(x), x, seed, create_graph=True)
        with lib.raises(RuntimeError, phrase):
            lib.grad(g, seed, allow_unused=True)
    # An argument that is no Tensor has no gradient.
    scaled = lib.fn(lambda ctx, x, k: x * k, lib.ag.function.once_differentiable(lambda ctx, g: (g * 5.0, None)))
    (g,) = lib.grad(scaled.apply(x, 5.0) * x, x, create_graph=True)
    lib.equal(g, [30.0])
    with lib.raises(RuntimeError, phrase):
        g.backward()
    # The gradient has the tangent of its seed, also if it is recorded.
    fw = lib.module("autograd.forward_ad")
    for create in (False, True):
        with fw.dual_level():
            seed = fw.make_dual(lib.constant([2.0]), lib.constant([5.0]))
            (g,) = lib.grad(cls.apply(x), x, seed, create_graph=create)
            lib.equal(fw.unpack_dual(g).primal, [12.0])
            lib.equal(fw.unpack_dual(g).tangent, [30.0])
            if create:
                with lib.raises(RuntimeError, *([] if lib.oracle else [phrase])):
                    lib.grad(g, x)
    # the same with a constant seed
    for again in (lambda g: g.backward(), lambda g: lib.grad(g, x), lambda g: lib.grad(g, x, allow_unused=True)):
        (g,) = lib.grad(cls.apply(x), x, create_graph=True)
        with lib.raises(RuntimeError, phrase):
            again(g)


@contract("FUN-25", draw={"n": st.integers(1, 4), "shape": shapes(), "seed": seeds})
def higher_order(lib: Any, n: int, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    v, factor = lib.value(x), 1.0
    g = power(lib, n).apply(x)
    for k in range(n):
        (g,) = lib.grad(lib.xp.sum(g), x, create_graph=True)
        factor *= n - k
        lib.equal(g, np.full(shape, factor * v ** (n - k - 1)))
    # A saved output also gets its history back.
    x = lib.tensor([0.5])

    def forward(ctx: Any, x: Any) -> Any:
        out = lib.xp.exp(x)
        ctx.save_for_backward(out)
        return out

    y = lib.fn(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    for _ in range(3):
        (y,) = lib.grad(y, x, lib.ones(1), create_graph=True)
        lib.equal(y, np.exp([0.5]))
    modes = []

    def backward(ctx: Any, g: Any) -> Any:
        modes.append(lib.ns.is_grad_enabled())
        return g * 2

    for create in (False, True):
        for outer in (lib.ns.no_grad, lib.ns.enable_grad):
            y = double(lib, backward).apply(x)
            with outer():
                (g,) = lib.grad(y, x, lib.tensor([1.0]), create_graph=create)
            assert g.requires_grad is create
    assert modes == [False, False, True, True]


@contract("FUN-26")
def setup_context(lib: Any) -> None:
    def combined(ctx: Any, x: Any, n: int = 3) -> Any:
        out = x**n
        ctx.save_for_backward(x, out)
        ctx.n = n
        return out

    def forward(x: Any, n: int = 3) -> Any:
        assert not lib.ns.is_grad_enabled()
        return x**n

    got = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.n = inputs
        got.append((type(inputs), len(inputs), output.tolist()))
        ctx.save_for_backward(x, output)

    def backward(ctx: Any, g: Any) -> Any:
        x, out = ctx.saved_tensors
        return ctx.n * out / x * g, None

    both = lib.fn(combined, backward), lib.fn(forward, backward, setup_context=setup)
    for arguments in [(), (2,)]:
        for order in (1, 2):
            found = []
            for cls in both:
                x = lib.tensor([2.0, 3.0])
                g = cls.apply(x, *arguments)
                assert g.grad_fn.name() == "FBackward"
                for _ in range(order):
                    (g,) = lib.grad(lib.xp.sum(g), x, create_graph=True)
                found.append(lib.value(g))
            with lib.case((arguments, order)):
                np.testing.assert_array_equal(found[0], found[1])
    assert got == [(tuple, 2, [8.0, 27.0])] * 2 + [(tuple, 2, [4.0, 9.0])] * 2
    x = lib.tensor([2.0, 3.0])
    lib.equal(lib.grad(both[1].apply(x, 2), x, lib.ones(2))[0], [4.0, 6.0])

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    same = lib.fn(lambda x: x, lambda ctx, g: g, setup_context=keep)
    with lib.raises(RuntimeError, "An input that has been returned as-is as output is being saved for backward", "setup_context"):
        same.apply(lib.tensor([1.0]))

    def keep_first(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x

    x = lib.tensor([1.0])
    lib.equal(lib.grad(lib.fn(keep_first, lambda ctx, g: g * 5).apply(x), x)[0], [5.0])


@contract("FUN-27")
def nested_tensors_are_not_tracked(lib: Any) -> None:
    x, w = lib.tensor([1.0]), lib.tensor([2.0])
    forms: list[tuple[Any, Callable[[Any], Any]]] = [([w], lambda a: a[0]), ((w,), lambda a: a[0]), ({"w": w}, lambda a: a["w"])]
    for nested, read in forms:
        with lib.case(type(nested).__name__):
            seen = []

            def forward(ctx: Any, nested: Any, x: Any, read: Any = read, seen: Any = seen) -> Any:
                seen.append(ctx.needs_input_grad)
                return read(nested) * x

            y = lib.fn(forward, lambda ctx, g: (None, g * 3)).apply(nested, x)
            assert seen == [(False, True)]
            lib.equal(lib.grad(y, x, retain_graph=True)[0], [3.0])
            assert lib.grad(y, w, allow_unused=True) == (None,)
            alone = lib.fn(lambda ctx, nested, read=read: read(nested) * 2, lambda ctx, g: None).apply(nested)
            assert not alone.requires_grad


@contract("FUN-28")
def the_same_tensor_twice(lib: Any) -> None:
    cls = lib.fn(lambda ctx, *a: a[0] * a[1], lambda ctx, g: (g * 3, g * 4))
    x = lib.tensor([2.0])
    cls.apply(x, x).backward()
    lib.equal(x.grad, [7.0])
    y = x * 1
    lib.equal(lib.grad(cls.apply(y, y), [x, y])[1], [7.0])
    three = lib.fn(lambda ctx, a, b, c: a + b + c, lambda ctx, g: (g, None, g * 10))
    lib.equal(lib.grad(three.apply(x, x, x), x)[0], [11.0])

    # Hooks on its node receive a gradient for each Tensor; other arguments have none.
    seen: list[Any] = []
    x = lib.tensor([2.0])
    y = lib.fn(lambda ctx, k, x, text: x * k, lambda ctx, g: (None, g * 3, None)).apply(3.0, x, "text")
    y.grad_fn.register_hook(lambda given, gs: seen.append((given, gs)))
    lib.xp.sum(y).backward()
    ((given, gs),) = seen
    assert [None if g is None else float(g) for g in given if g is not None] == [3.0]
    assert [float(g) for g in gs] == [1.0]


@contract("FUN-29")
def writing_into_a_gradient(lib: Any) -> None:
    # Nothing checks this write: the writer's gradient has the new values, and its siblings may see the old or the new ones.
    def backward(ctx: Any, g: Any) -> Any:
        return g.mul_(100)

    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    (lib.fn(forward, backward).apply(x) + w * 1).backward(lib.constant([1.0, 2.0]))
    lib.equal(x.grad, [100.0, 200.0])
    assert lib.value(w.grad).tolist() in ([1.0, 2.0], [100.0, 200.0])
    # Values from before the pass are unchanged.
    lib.equal(x, [1.0, 2.0])
    lib.equal(w, [3.0, 4.0])


@contract("FUN-30")
def exceptions_keep_their_type(lib: Any) -> None:
    class Special(Exception):
        """A user-defined error."""

    for error in (Special, LookupError, KeyError, RuntimeError, ZeroDivisionError, NotImplementedError, KeyboardInterrupt):
        made = error("boo")

        def fail(ctx: Any, *args: Any, made: Any = made) -> Any:
            raise made

        with lib.case(error):
            x = lib.tensor([2.0])
            y = x * x
            with lib.raises(error, "boo") as caught:
                double(lib, fail).apply(y).backward(retain_graph=True)
            assert type(caught[0]) is error
            assert x.grad is None
            y.backward()
            lib.equal(x.grad, [4.0])
            with lib.raises(error, "boo") as caught:
                lib.fn(fail, fail).apply(x)
            assert type(caught[0]) is error
            assert lib.ns.is_grad_enabled()


@contract("FUN-31")
def nothing_is_recorded(lib: Any) -> None:
    cls = power(lib)
    x = lib.tensor([2.0])

    def quiet(mode: Any) -> Any:
        with mode():
            return cls.apply(x)

    for name, y in [("constants", cls.apply(lib.constant([2.0]))), ("no_grad", quiet(lib.ns.no_grad)),
                    ("inference_mode", quiet(lib.ns.inference_mode))]:  # fmt: skip
        with lib.case(name):
            lib.equal(y, [8.0])
            assert not y.requires_grad
            assert y.grad_fn is None
            with lib.raises(RuntimeError, "does not require grad"):
                y.backward()
    with lib.ns.no_grad(), lib.ns.enable_grad():
        assert cls.apply(x).grad_fn.name() == "PowerBackward"


@contract("FUN-32")
def keyword_arguments(lib: Any) -> None:
    def forward(ctx: Any, x: Any, k: Any = 1) -> Any:
        ctx.k = k
        return x * k

    x = lib.tensor([1.0, 2.0])
    y = lib.fn(forward, lambda ctx, g: (g * ctx.k, None)).apply(x, k=3)
    lib.equal(y, [3.0, 6.0])
    lib.equal(lib.grad(y, x, lib.ones(2))[0], [3.0, 3.0])


@contract("FUN-33")
def functions_under_transforms(lib: Any) -> None:
    func = lib.module("func")

    def forward(x: Any) -> Any:
        return x * x

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]

    def rule(info: Any, in_dims: Any, x: Any) -> Any:
        seen.append((info.batch_size, info.randomness, in_dims))
        return x * x, in_dims[0]

    seen: list[Any] = []
    methods: dict[str, Any] = {"forward": forward, "setup_context": setup, "backward": backward}
    neither, generated = bare(lib, **methods), bare(lib, **methods, generate_vmap_rule=True)
    own, both = bare(lib, **methods, vmap=rule), bare(lib, **methods, vmap=rule, generate_vmap_rule=True)
    rows = lib.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with lib.raises(RuntimeError, "You tried to vmap over F, but it does not have vmap support"):
        func.vmap(neither.apply)(rows)
    with lib.raises(RuntimeError, "You tried to vmap over F, but it has both generate_vmap_rule=True and an overridden vmap staticmethod"):
        func.vmap(both.apply)(rows)
    lib.equal(func.vmap(generated.apply)(rows), lib.value(rows) ** 2)
    assert seen == []
    lib.equal(func.vmap(own.apply)(rows), lib.value(rows) ** 2)
    assert seen == [(3, "error", (0,))]
    lib.equal(func.vmap(own.apply, in_dims=1, out_dims=1)(rows), lib.value(rows) ** 2)
    assert seen[1:] == [(2, "error", (1,))]
    lib.equal(func.grad(lambda v: lib.xp.sum(neither.apply(v)))(rows), 2 * lib.value(rows))
    lib.equal(func.vmap(func.grad(lambda v: lib.xp.sum(generated.apply(v))))(rows), 2 * lib.value(rows))
    # Nested batches, and an inner batch that all elements of the outer one share.
    lib.equal(func.vmap(func.vmap(generated.apply))(rows), lib.value(rows) ** 2)
    x = lib.tensor([1.0, 2.0, 3.0])
    y = func.vmap(lambda v: func.vmap(generated.apply)(x) * v)(lib.constant([1.0, 2.0]))
    lib.equal(y, [[1.0, 4.0, 9.0], [2.0, 8.0, 18.0]])
    lib.equal(lib.grad(lib.xp.sum(y), x)[0], [6.0, 12.0, 18.0])

    # Several results, one of which all elements share, and a result that is saved.
    def two(x: Any, w: Any) -> Any:
        return x * w, w * w

    def keep_result(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output[0])

    def back(ctx: Any, g: Any, h: Any) -> Any:
        x, w, out = ctx.saved_tensors
        return g * out / x, g * x + 2 * h * w

    def by_hand(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
        assert in_dims == (0, None)
        return (x * w, w * w), (0, None)

    pieces: dict[str, Any] = {"forward": two, "setup_context": keep_result, "backward": back}
    w = lib.constant([2.0, 3.0])
    for name, cls in (("generated", bare(lib, **pieces, generate_vmap_rule=True)), ("by hand", bare(lib, **pieces, vmap=by_hand))):
        with lib.case(name):
            products, squares = func.vmap(cls.apply, in_dims=(0, None))(rows, w)
            lib.equal(products, lib.value(rows) * [2.0, 3.0])
            lib.equal(squares, np.broadcast_to([4.0, 9.0], (3, 2)))
    loss = lambda r: lib.xp.sum(bare(lib, **pieces, generate_vmap_rule=True).apply(r, w)[0] * r)  # noqa: E731
    lib.equal(func.vmap(func.grad(loss))(rows), 2 * lib.value(rows) * [2.0, 3.0])
    check_saved_in_batches(lib)

    # A result without a gradient, and a gradient that is summed to the shape of its operand.
    def lowest(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        setup(ctx, inputs, output)

    marked = {"forward": lambda x: (x * x, x * 5), "setup_context": lowest, "backward": lambda ctx, g, h: backward(ctx, g)}
    x = lib.tensor(lib.value(rows))
    squares, others = func.vmap(bare(lib, **marked, generate_vmap_rule=True).apply)(x)
    assert squares.requires_grad
    assert not others.requires_grad or lib.oracle  # in PyTorch a batch of results without gradient has a history
    lib.equal(others, 5 * lib.value(rows))
    lib.equal(lib.grad(lib.xp.sum(squares), x)[0], 2 * lib.value(rows))
    product = {
        "forward": lambda x, s: x * s, "setup_context": setup,
        "backward": lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
    }  # fmt: skip
    s = lib.tensor([2.0, 3.0, 5.0])
    y = func.vmap(bare(lib, **product, generate_vmap_rule=True).apply)(x, s)
    gx, gs = lib.grad(lib.xp.sum(y), [x, s])
    lib.equal(gx, [[2.0, 2.0], [3.0, 3.0], [5.0, 5.0]])
    lib.equal(gs, lib.value(rows).sum(axis=1))
    old = power(lib)
    for name, transform in [("vmap", func.vmap(old.apply)), ("grad", func.grad(lambda v: lib.xp.sum(old.apply(v))))]:
        with lib.case(name), lib.raises(RuntimeError, "In order to use an autograd.Function with functorch transforms", "setup_context"):
            transform(rows)


@contract("FUN-34")
def clearing_and_boxing(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with lib.raises(RuntimeError, "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"):
            assert ctx.saved_tensors
        return 2 * g * x

    x = lib.tensor([1.0, 2.0])
    y = lib.fn(forward, backward, clear_saved_tensors_on_access=True).apply(x)
    lib.equal(lib.grad(y, x, lib.ones(2), retain_graph=True)[0], [2.0, 4.0])
    with lib.raises(RuntimeError, "saved_tensors can only be accessed once"):
        lib.grad(y, x, lib.ones(2))

    def unclear(ctx: Any, g: Any) -> Any:
        return g * (ctx.saved_tensors[0] + ctx.saved_tensors[0])

    y = lib.fn(forward, unclear, clear_saved_tensors_on_access=False).apply(x)
    for _ in range(2):
        lib.equal(lib.grad(y, x, lib.ones(2), retain_graph=True)[0], [2.0, 4.0])
    lengths = []

    def boxed(ctx: Any, gradients: Any) -> Any:
        assert type(gradients) is list
        lengths.append(len(gradients))
        last = gradients.pop()
        return gradients.pop() * 2 + last * 3

    one, two = lib.fn(lambda ctx, x: (x * 2, x * 3), boxed, boxed_grads_call=True).apply(x)
    lib.equal(lib.grad(one + two * 10, x, lib.ones(2))[0], [32.0, 32.0])
    assert lengths == [2]


@contract("FUN-35")
def names_and_forms_of_outputs(lib: Any) -> None:
    x = lib.tensor([1.0])
    for name in ("Cube", "F", "_Private"):
        node = power(lib, 3, name).apply(x).grad_fn
        assert node.name() == f"{name}Backward"
        assert type(node).__name__ == f"{name}Backward"
    plain = double(lib).apply(x)
    assert isinstance(plain, lib.ns.Tensor)
    for n in (1, 2):
        found = lib.fn(lambda ctx, x, n=n: tuple(x * (k + 2) for k in range(n)), lambda ctx, *g: sum(g)).apply(x)
        assert type(found) is tuple
        assert len(found) == n
        assert all(t.requires_grad and t.grad_fn is found[0].grad_fn for t in found)
    got = lib.fn(lambda ctx, x: [x * 2, x * 3], lambda ctx, g: g).apply(x)
    assert type(got) is list
    assert not any(t.requires_grad for t in got)
    lib.equal(got[1], [3.0])


unchecked("FUN-36", "out of scope: the three classes exist for code older than static methods, and the page itself says not to use them")


@contract("FUN-37")
def a_tensor_that_is_returned_twice(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        return y, x * 3, y

    seen: list[Any] = []

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append([lib.value(g).tolist() for g in gs])
        return gs[0] * 2 + gs[1] * 3 + gs[2] * 2

    x = lib.tensor([1.0])
    a, b, c = lib.fn(forward, backward).apply(x)
    assert a is c
    assert (a.output_nr, b.output_nr) == (2, 1)
    lib.xp.sum(a + b * 10 + c * 100).backward()
    assert seen == [[[0.0], [10.0], [101.0]]]
    lib.equal(x.grad, [232.0])


@contract("FUN-38")
def marks_of_what_is_no_input(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    x = lib.tensor([1.0])
    with lib.warns(UserWarning, "received a tensor that was not an input"):
        y = lib.fn(forward, lambda ctx, g: g * 2).apply(x)
    y.backward(lib.ones(1))
    lib.equal(x.grad, [2.0])


def check_saved_in_batches(lib: Any) -> None:
    """Check that a generated rule keeps everything that can be saved, for both directions and for second derivatives."""
    func = lib.module("func")
    if lib.oracle:  # PyTorch's generated rules raise an AssertionError unless all inputs and outputs are batched
        return

    def forward(x: Any, k: Any, w: Any) -> Any:
        return x * x * w * k, w * k, x * 2

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.k, w = inputs
        ctx.save_for_backward(x, None, w, output[0], x * w)
        ctx.save_for_forward(w, x, None)

    def backward(ctx: Any, g: Any, h: Any, last: Any) -> Any:
        x, empty, w, out, between = ctx.saved_tensors
        assert empty is None
        assert ctx.needs_input_grad[1] is False
        part = 2 * ctx.k * x * w * g
        return part + (between - x * w).detach() + 2 * last, None, g * out / w + h * ctx.k

    def jvp(ctx: Any, dx: Any, dk: Any, dw: Any) -> Any:
        w, x, empty = ctx.saved_tensors
        assert dk is None
        assert empty is None
        return (2 * x * w * dx + x * x * dw) * ctx.k, dw * ctx.k, dx * 2

    cls = bare(lib, forward=forward, setup_context=setup, backward=backward, jvp=jvp, generate_vmap_rule=True)
    m, v = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.asarray([[2.0, 3.0], [0.5, 1.5], [2.5, 1.0]])
    for dims in ((0, None), (None, 0), (0, 0), (1, 0)):
        with lib.case(dims):
            a, b = (m[0] if dims[0] is None else m), (v[0] if dims[1] is None else v)
            x, w = lib.tensor(a.T if dims[0] == 1 else a), lib.tensor(b)
            full = [np.broadcast_to(p, m.shape) for p in (a, b)]
            run = func.vmap(lambda x, w: cls.apply(x, 3.0, w), in_dims=dims)
            outs = run(x, w)
            p, q = full
            for found, expected in zip(outs, (3 * p * p * q, 3 * q, 2 * p), strict=True):
                lib.equal(found, expected)
            shape = lambda g, d, k: (g.sum(0) if d is None else g).T if k else (g.sum(0) if d is None else g)  # noqa: E731
            total = lib.xp.sum(outs[0]) + lib.xp.sum(outs[1] * 2) + lib.xp.sum(outs[2])
            gx, gw = lib.grad(total, [x, w], create_graph=True)
            lib.equal(gx, shape(6 * p * q + 2, dims[0], dims[0] == 1))
            lib.equal(gw, shape(3 * p * p + 6, dims[1], False))
            hx, hw = lib.grad(lib.xp.sum(gx), [x, w])
            lib.equal(hx, shape(6 * q, dims[0], dims[0] == 1))
            lib.equal(hw, shape(6 * p, dims[1], False))
            dx, dw = np.cos(full[0]), np.sin(full[1])
            tangents = [lib.constant(t[0] if d is None else (t.T if d == 1 else t)) for t, d in zip((dx, dw), dims, strict=True)]
            if dims[0] is None:
                dx = np.broadcast_to(dx[0], m.shape)
            if dims[1] is None:
                dw = np.broadcast_to(dw[0], m.shape)
            along = func.vmap(lambda x, w, s, t: func.jvp(lambda x, w: cls.apply(x, 3.0, w), (x, w), (s, t))[1], in_dims=(*dims, *dims))
            for found, expected in zip(
                along(x.detach(), w.detach(), *tangents), (3 * (2 * p * q * dx + p * p * dw), 3 * dw, 2 * dx), strict=True
            ):
                lib.equal(found, expected)
            twice = func.vmap(func.grad(lambda x, w: lib.xp.sum(func.grad(lambda x: lib.xp.sum(cls.apply(x, 3.0, w)[0]))(x))), in_dims=dims)
            lib.equal(twice(x.detach(), w.detach()), 6 * q)
