"""Group L: operations whose forward and backward the user writes: what each gets, saves and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
TWICE = "backward through the graph a second time"


def double(lib: Any, backward: Any = None, **more: Any) -> Any:
    """Return a Function that doubles its first argument."""
    return lib.fn(lambda ctx, x, *rest: x * 2, backward or (lambda ctx, g: g * 2), **more)


def power(lib: Any, n: int = 3, name: str = "Power") -> Any:
    """Return a Function for the n-th power that can be differentiated any number of times."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**n

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return n * x ** (n - 1) * g

    return lib.fn(forward, backward, name)


def bare(lib: Any, **methods: Any) -> Any:
    """Return a Function class with only these static methods."""
    return type("F", (lib.ag.Function,), {k: staticmethod(v) if callable(v) else v for k, v in methods.items()})


@contract("FUN-01")
def static_methods(lib: Any) -> None:
    cls = double(lib)
    x = lib.tensor([1.0, 2.0])
    with lib.silent():
        y = cls.apply(x)
    lib.equal(y, [2.0, 4.0])
    y.backward(lib.ones(2))
    lib.equal(x.grad, [2.0, 2.0])
    with lib.warns(DeprecationWarning, "should not be instantiated"):
        instance = cls()
    with lib.raises(RuntimeError, "Legacy autograd function with non-static forward method is deprecated"):
        instance(x)


@contract("FUN-02")
def forward_is_not_recorded(lib: Any) -> None:
    seen = []

    def forward(ctx: Any, x: Any, c: Any) -> Any:
        inside = x * 2
        seen.append((lib.ns.is_grad_enabled(), x.requires_grad, c.requires_grad, inside.requires_grad, inside.grad_fn))
        return inside

    x = lib.tensor([1.0])
    assert lib.ns.is_grad_enabled()
    y = lib.fn(forward, lambda ctx, g: (g * 7, None)).apply(x, lib.constant([1.0]))
    assert lib.ns.is_grad_enabled()
    assert seen == [(False, True, False, False, None)]
    lib.equal(lib.grad(y, x)[0], [7.0])


@contract("FUN-03")
def missing_methods(lib: Any) -> None:
    x = lib.tensor(1.0)
    with lib.raises(NotImplementedError, "You must implement the forward function"):
        lib.ag.Function.apply(x)
    with lib.raises(NotImplementedError, "You must implement the forward function"):
        bare(lib, backward=lambda ctx, g: g).apply(x)
    y = bare(lib, forward=lambda ctx, x: x * 2).apply(x)
    lib.equal(y, 2.0)
    with lib.raises(NotImplementedError, "You must implement either the backward or vjp method"):
        y.backward()
    assert x.grad is None


@contract("FUN-04")
def vjp_is_backward(lib: Any) -> None:
    x = lib.tensor(1.0)

    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    def back(ctx: Any, g: Any) -> Any:
        return g * 5

    for name in ("backward", "vjp"):
        with lib.case(name):
            lib.equal(lib.grad(bare(lib, forward=forward, **{name: back}).apply(x), x)[0], 5.0)
    both = bare(lib, forward=forward, backward=back, vjp=back)
    with lib.raises(RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
        lib.grad(both.apply(x), x)
    with lib.raises(NotImplementedError, "You must implement either the backward or vjp method"):
        lib.ag.Function.vjp(None, x)


@contract("FUN-05", draw={"inputs": st.integers(1, 4), "outputs": st.integers(1, 4), "used": st.integers(1, 15), "seed": seeds})
def one_gradient_per_output_and_argument(lib: Any, inputs: int, outputs: int, used: int, seed: int) -> None:
    a = np.random.default_rng(seed).integers(1, 9, (outputs, inputs)).astype(float)
    got = []

    def forward(ctx: Any, *xs: Any) -> Any:
        return tuple(sum(float(a[j, i]) * xs[i] for i in range(inputs)) for j in range(outputs))

    def backward(ctx: Any, *gs: Any) -> Any:
        got.append(len(gs))
        return tuple(sum(float(a[j, i]) * gs[j] for j in range(outputs)) for i in range(inputs))

    xs = [lib.random((2,), i) for i in range(inputs)]
    ys = lib.fn(forward, backward).apply(*xs)
    chosen = [j for j in range(outputs) if used >> j & 1] or [0]
    lib.backward([ys[j] for j in chosen], [lib.constant([1.0, 10.0 * (j + 1)]) for j in chosen])
    assert got == [outputs]
    for i, x in enumerate(xs):
        lib.equal(x.grad, [sum(a[j, i] for j in chosen), sum(a[j, i] * 10 * (j + 1) for j in chosen)])
    phrase = "function FBackward returned an incorrect number of gradients (expected {}, got {})"
    for arguments, returned in [(2, 1), (3, 2), (3, 1), (2, 0)]:
        x = lib.tensor([1.0, 2.0])

        def back(ctx: Any, g: Any, returned: int = returned) -> Any:
            return (g,) * returned if returned != 1 else g

        y = double(lib, back).apply(x, *range(arguments - 1))
        with lib.case((arguments, returned)), lib.raises(RuntimeError, phrase.format(arguments, returned)):
            y.backward(lib.ones(2))
        assert x.grad is None


@contract("FUN-06")
def surplus_gradients_are_none(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    double(lib, lambda ctx, g: (g * 2, None, None)).apply(x).backward(lib.ones(2))
    lib.equal(x.grad, [2.0, 2.0])
    for name, extra in [("(expected 1, got 2)", 1), ("(expected 1, got 3)", 2)]:
        x = lib.tensor([1.0, 2.0])
        y = double(lib, lambda ctx, g, extra=extra: (g, *([None] * (extra - 1)), g)).apply(x)
        with lib.case(name), lib.raises(RuntimeError, "FBackward returned an incorrect number of gradients", name):
            y.backward(lib.ones(2))
        assert x.grad is None


@contract("FUN-07")
def what_is_no_tensor_gets_none(lib: Any) -> None:
    for arguments, position in [((3,), 2), (("text", 4.0), 3), ((None,), 2), (([1.0],), 2)]:
        x = lib.tensor([1.0, 2.0])
        y = double(lib, lambda ctx, g, position=position: (g * 2, *([None] * (position - 2)), g)).apply(x, *arguments)
        with (
            lib.case(arguments),
            lib.raises(
                RuntimeError,
                f"function FBackward returned a gradient different than None at position {position}",
                "but the corresponding forward input was not a Variable",
            ),
        ):
            y.backward(lib.ones(2))
        assert x.grad is None
        y = double(lib, lambda ctx, g, nothing=[None] * (position - 1): (g * 2, *nothing)).apply(x, *arguments)
        y.backward(lib.ones(2))
        lib.equal(x.grad, [2.0, 2.0])


@contract("FUN-08")
def gradients_of_constants_are_dropped(lib: Any) -> None:
    x, c = lib.tensor([1.0, 2.0]), lib.ones(2)
    # NB: the surplus gradient may have any shape, because it is not used.
    for surplus in (lib.ones(2), lib.ones(7)):
        x.grad = None
        double(lib, lambda ctx, g, surplus=surplus: (g * 2, surplus)).apply(x, c).backward(lib.ones(2))
        lib.equal(x.grad, [2.0, 2.0])
        assert c.grad is None
        assert not c.requires_grad


@contract("FUN-09", draw={"shape": shapes(), "front": shapes(0, 2, 3), "sides": st.lists(st.integers(1, 3), min_size=3, max_size=3)})
def gradients_are_summed_to_the_shape(lib: Any, shape: Any, front: Any, sides: Any) -> None:
    drawn = (*front, *(n if n > 1 else m for n, m in zip(shape, sides, strict=False)))
    for want, wide in [(shape, drawn), ((2,), (3, 2)), ((2, 1), (4, 2, 3)), ((), (2, 3)), ((1,), (3,))]:
        x = lib.tensor(np.ones(want))
        g = np.random.default_rng(1).uniform(0.5, 1.5, wide)
        with lib.case((want, wide)):
            lib.xp.sum(double(lib, lambda ctx, _, g=g: lib.constant(g)).apply(x)).backward()
            g = g.sum(axis=tuple(range(len(wide) - len(want))))
            lib.equal(x.grad, g.sum(axis=tuple(i for i, n in enumerate(want) if n == 1), keepdims=True).reshape(want))
    for want, got in [((2,), (5,)), ((2,), (1,)), ((2,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (2, 2, 1)), ((2, 1), (3, 1))]:
        x = lib.tensor(np.ones(want))
        y = double(lib, lambda ctx, g, got=got: lib.ones(*got)).apply(x)
        said = f"got {list(got)} but expected shape compatible with {list(want)}"
        with lib.case((want, got)), lib.raises(RuntimeError, "Function FBackward returned an invalid gradient at index 0", said):
            lib.xp.sum(y).backward()
        assert x.grad is None
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([1.0, 2.0])
    y = double(lib, lambda ctx, g: (g, lib.ones(5))).apply(x, w)
    with lib.raises(RuntimeError, "invalid gradient at index 1"):
        lib.xp.sum(y).backward()


@contract("FUN-10")
def gradients_are_cast_to_the_dtype(lib: Any) -> None:
    pairs = [(lib.real, lib.narrow), (lib.narrow, lib.real), (lib.real, "int32")]
    if lib.capabilities["complex"]:
        pairs.append((lib.complex, lib.real))
    for want, got in pairs:
        with lib.case((want, got)):
            x, seen = lib.tensor([1.0, 2.0], dtype=want), []
            y = x * 1
            y.register_hook(lambda g, seen=seen: seen.append(g.dtype))
            z = double(lib, lambda ctx, g, got=got: lib.constant([3, 4], dtype=got)).apply(y)
            z.backward(lib.constant([1.0, 1.0], dtype=want))
            assert seen == [lib.dtype(want)]
            assert x.grad.dtype == lib.dtype(want)
            lib.equal(x.grad, [3.0, 4.0])
    if lib.capabilities["complex"]:
        x = lib.tensor([1.0, 2.0])
        y = double(lib, lambda ctx, g: lib.constant([1j, 2.0], dtype=lib.complex)).apply(x)
        with lib.raises(RuntimeError):
            y.backward(lib.ones(2))
        assert x.grad is None
    # A gradient must be on the device of its input; a single number is moved.
    x = lib.tensor([1.0, 2.0])
    with lib.raises(RuntimeError, "invalid gradient at index 0 - expected device"):
        double(lib, lambda ctx, g: lib.on_other_device([3.0, 4.0])).apply(x).backward(lib.ones(2))
    assert x.grad is None
    if not lib.oracle:  # PyTorch's other device has no values
        x, devices = lib.tensor(1.0), []
        y = x * 1
        y.register_hook(lambda g: devices.append(g.device))
        for create in (False, True):
            z = double(lib, lambda ctx, g: lib.on_other_device(3.0)).apply(y)
            (g,) = lib.grad(z, x, retain_graph=True, create_graph=create)
            lib.equal(g, 3.0)
        assert devices == [x.device] * 2
    wrongs: list[tuple[str, Callable[[Any], Any]]] = [("float", lambda g: 1.0), ("list", lambda g: [g]), ("str", lambda g: "g")]
    for kind, wrong in wrongs:
        x = lib.tensor([1.0, 2.0])
        y = double(lib, lambda ctx, g, wrong=wrong: wrong(g)).apply(x)
        with lib.case(kind), lib.raises(RuntimeError, f"expected Variable or None (got {kind})"):
            y.backward(lib.ones(2))
        assert x.grad is None


@contract("FUN-11")
def none_is_an_undefined_gradient(lib: Any) -> None:
    nothing = double(lib, lambda ctx, g: None)
    x = lib.tensor([1.0, 2.0])
    nothing.apply(x).backward(lib.ones(2))
    assert x.grad is None
    x.grad = lib.ones(2)
    nothing.apply(x).backward(lib.ones(2))
    lib.equal(x.grad, [1.0, 1.0])
    with lib.raises(RuntimeError, "appears to not have been used"):
        lib.grad(nothing.apply(x), x, lib.ones(2))
    assert lib.grad(nothing.apply(x), x, lib.ones(2), allow_unused=True) == (None,)
    # An undefined gradient adds nothing to another gradient; a custom backward below receives zeros for it.
    x, seen = lib.tensor([1.0, 2.0]), []

    def below(ctx: Any, g: Any) -> Any:
        seen.append(g.tolist())
        return g * 2

    y = double(lib, below).apply(x)
    nothing.apply(y).backward(lib.ones(2))
    assert seen == [[0.0, 0.0]]
    lib.equal(x.grad, [0.0, 0.0])
    (nothing.apply(x) + x * 3).backward(lib.ones(2))
    lib.equal(x.grad, [3.0, 3.0])


@contract("FUN-12", draw={"pattern": st.lists(st.sampled_from("gcn"), min_size=1, max_size=4)})
def needs_input_grad(lib: Any, pattern: Any) -> None:
    for kinds in ("g", "gncg", pattern):
        seen = []

        def forward(ctx: Any, *args: Any, seen: Any = seen) -> Any:
            seen.append(ctx.needs_input_grad)
            return lib.ones(2) * 1

        def backward(ctx: Any, g: Any, seen: Any = seen, n: int = len(kinds)) -> Any:
            seen.append(ctx.needs_input_grad)
            return tuple(g if need else None for need in ctx.needs_input_grad)

        arguments = [{"g": lambda: lib.tensor([1.0, 2.0]), "c": lambda: lib.constant([1.0, 2.0]), "n": lambda: 3}[k]() for k in kinds]
        expected = tuple(k == "g" for k in kinds)
        with lib.case(kinds):
            cls = lib.fn(forward, backward)
            with lib.ns.no_grad():
                assert not cls.apply(*arguments).requires_grad
            assert seen == [expected]
            y = cls.apply(*arguments)
            assert y.requires_grad is any(expected)
            if any(expected):
                first = arguments[expected.index(True)]
                # the flags are not narrowed to the inputs that this pass asks for
                lib.equal(lib.grad(y, first, lib.ones(2))[0], [1.0, 1.0])
                assert seen == [expected] * 3
            assert all(type(need) is bool for s in seen for need in s)
            assert all(type(s) is tuple for s in seen)


@contract("FUN-13")
def what_can_be_saved(lib: Any) -> None:
    for place, wrong in [(2, 3), (0, "text"), (1, [1.0]), (1, np.ones(1))]:

        def save(ctx: Any, x: Any, place: int = place, wrong: Any = wrong) -> Any:
            ctx.save_for_backward(*[x, None][:place], wrong)
            return x * 2

        phrase = f"save_for_backward can only save variables, but argument {place} is of type"
        kind = "numpy.ndarray" if lib.oracle and not isinstance(wrong, (int, str, list)) else type(wrong).__name__
        with lib.case(wrong), lib.raises(TypeError, f"{phrase} {kind}"):
            lib.fn(save, lambda ctx, g: g).apply(lib.tensor(1.0))

    def twice(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x)
        ctx.save_for_backward(x, None, x * 5)
        return x * 2

    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.extend(None if t is None else t.tolist() for t in ctx.saved_tensors)
        assert type(ctx.saved_tensors) is tuple
        return g

    lib.fn(twice, backward).apply(lib.tensor(1.0)).backward()
    assert seen == [1.0, None, 5.0]


@contract("FUN-14")
def saved_tensors_are_checked(lib: Any) -> None:
    for what in ("input", "constant", "output"):
        with lib.case(what):

            def forward(ctx: Any, x: Any, c: Any, what: str = what) -> Any:
                out = x * c
                ctx.save_for_backward({"input": x, "constant": c, "output": out}[what])
                return out

            def backward(ctx: Any, g: Any) -> Any:
                return g * ctx.saved_tensors[0], None

            leaf, c = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
            x = leaf * 1
            cls = lib.fn(forward, backward)
            y = cls.apply(x, c)
            z = y * 1
            z.backward(lib.ones(2))
            lib.equal(leaf.grad, {"input": [1.0, 2.0], "constant": [3.0, 4.0], "output": [3.0, 8.0]}[what])
            with lib.raises(RuntimeError, TWICE):
                y.backward(lib.ones(2))
            with lib.raises(RuntimeError, TWICE):
                assert y.grad_fn.saved_tensors
            leaf.grad = None
            y = cls.apply(x, c)
            z = y * 1
            with lib.ns.no_grad():
                {"input": x, "constant": c, "output": y}[what].add_(1.0)
            with lib.raises(RuntimeError, OVERWRITTEN):
                z.backward(lib.ones(2))
            assert leaf.grad is None
    # Of two outputs one is saved: only a write to that one counts.

    def both(ctx: Any, x: Any) -> Any:
        out = x * 2
        ctx.save_for_backward(out)
        return out, x * 3

    for written in (0, 1):
        x = lib.tensor([1.0, 2.0])
        outs = lib.fn(both, lambda ctx, g, h: g * ctx.saved_tensors[0] + h).apply(x)
        total = lib.xp.sum(outs[0] * 1 + outs[1] * 1)
        with lib.ns.no_grad():
            outs[written].add_(1.0)
        with lib.case(written):
            if written == 0:
                with lib.raises(RuntimeError, OVERWRITTEN):
                    total.backward()
            else:
                total.backward()
                lib.equal(x.grad, [3.0, 5.0])


@contract("FUN-15")
def values_on_ctx_are_not_checked(lib: Any) -> None:
    def forward(ctx: Any, x: Any, c: Any) -> Any:
        ctx.kept, ctx.factor = c, 3
        return x * c

    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.kept * ctx.factor, None

    x, c = lib.tensor([1.0]), lib.constant([3.0])
    y = lib.fn(forward, backward).apply(x, c)
    c.add_(1.0)
    y.backward(lib.ones(1), retain_graph=True)
    lib.equal(x.grad, [12.0])  # 3 * 4: uses the new value of c, though 3 * 3 was intended
    y.backward(lib.ones(1))
    y.backward(lib.ones(1))  # saved attributes are never freed
    lib.equal(x.grad, [36.0])


@contract("FUN-16")
def saved_intermediates_have_no_history(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        e = lib.xp.exp(x)
        ctx.save_for_backward(e)
        return e * e

    def backward(ctx: Any, g: Any) -> Any:
        (e,) = ctx.saved_tensors
        assert not e.requires_grad
        return g * 2 * e * e

    x = lib.tensor([0.5])
    v, f = 0.5, np.exp(1.0)
    (g,) = lib.grad(x * lib.fn(forward, backward).apply(x), x, create_graph=True)
    lib.equal(g, [f + 2 * v * f])
    # The derivative of f + 2 x f is 4 f + 4 x f; the part that depends on x through the intermediate is lost.
    lib.equal(lib.grad(g, x)[0], [4 * f])


@contract("FUN-17")
def undefined_gradients(lib: Any) -> None:
    for flag in (None, True, False):
        for setup in (False, True):
            seen: list[Any] = []

            def forward(ctx: Any, x: Any, flag: Any = flag) -> Any:
                if flag is not None:
                    ctx.set_materialize_grads(flag)
                return x * 2, lib.cast(x[:1], lib.narrow)

            def prepare(ctx: Any, inputs: Any, output: Any, flag: Any = flag) -> None:
                if flag is not None:
                    ctx.set_materialize_grads(flag)

            def backward(ctx: Any, *g: Any, seen: Any = seen) -> Any:
                seen.extend(None if v is None else (v.tolist(), v.dtype) for v in g)
                return lib.ones(2)

            def plain(x: Any) -> Any:
                return x * 2, lib.cast(x[:1], lib.narrow)

            cls = lib.fn(plain, backward, setup_context=prepare) if setup else lib.fn(forward, backward)
            with lib.case((flag, setup)):
                cls.apply(lib.tensor([1.0, 2.0]))[0].backward(lib.ones(2))
                assert seen[0] == ([1.0, 1.0], lib.dtype(lib.real))
                assert seen[1] == (None if flag is False else ([0.0], lib.dtype(lib.narrow)))


@contract("FUN-18")
def marked_outputs(lib: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        marked, other = x * 3, x[:1] * 4
        ctx.mark_non_differentiable(marked, other)
        return x * 2, marked, other

    def backward(ctx: Any, *g: Any) -> Any:
        seen.extend((v.tolist(), v.dtype) for v in g)
        return g[0] * 2

    x = lib.tensor([1.0, 5.0])
    y, marked, other = lib.fn(forward, backward).apply(x)
    assert [t.requires_grad for t in (y, marked, other)] == [True, False, False]
    assert marked.grad_fn is None
    lib.equal(marked, [3.0, 15.0])
    y.backward(lib.ones(2))
    real = lib.dtype(lib.real)
    assert seen == [([1.0, 1.0], real), ([0.0, 0.0], real), ([0.0], real)]
    lib.equal(x.grad, [2.0, 2.0])
    with lib.raises(RuntimeError, "does not require grad"):
        lib.xp.sum(marked).backward()


@contract("FUN-19")
def outputs_that_are_not_differentiable(lib: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, lib.cast(x, "int32"), x > 1, None, "text", 3.5

    def backward(ctx: Any, *g: Any) -> Any:
        seen.extend(None if v is None else (v.tolist(), v.dtype) for v in g)
        return g[0] * 2

    x = lib.tensor([1.0, 2.0])
    y, whole, truth, nothing, text, number = lib.fn(forward, backward).apply(x)
    assert [t.requires_grad for t in (y, whole, truth)] == [True, False, False]
    assert (nothing, text, number) == (None, "text", 3.5)
    assert whole.tolist() == [1, 2]
    y.backward(lib.ones(2))
    integers = lib.dtype("int32")
    assert seen[0] == ([1.0, 1.0], lib.dtype(lib.real))
    assert seen[1] == ([0, 0], integers)
    assert seen[2] == ([False, False], lib.dtype("bool"))
    assert seen[3:] == [None, None, None]
    lib.equal(x.grad, [2.0, 2.0])


@contract("FUN-20")
def marked_dirty(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    cls = lib.fn(forward, lambda ctx, g: g * 2)
    leaf = lib.tensor([1.0, 3.0])
    x = leaf * 1
    before, version = x.grad_fn, x._version
    y = cls.apply(x)
    assert y is x
    assert x._version > version
    assert x.grad_fn is not before
    assert x.grad_fn.name() == "FBackward"
    lib.equal(x, [2.0, 6.0])
    x.backward(lib.ones(2))
    lib.equal(leaf.grad, [2.0, 2.0])
    with lib.raises(RuntimeError, "a leaf Variable that requires grad has been used in an in-place operation."):
        cls.apply(leaf)
    # A view of a leaf is refused as well, and one of several views.
    for name, view in {"of a leaf": leaf[:1], "one of several": lib.xp.unstack(lib.ones(2, 2) * leaf)[1]}.items():
        with lib.case(name):
            values = lib.value(view)
            with lib.raises(RuntimeError):
                lib.fn(lambda ctx, x: ctx.mark_dirty(x) or x, lambda ctx, g: g).apply(view)
            lib.equal(view, values)
    # Marking counts as a write even if nothing is written, so values saved before are reported as overwritten.
    quiet = leaf.detach().requires_grad_() * 1
    product, version = quiet * quiet, quiet._version
    nothing = lib.fn(lambda ctx, x: ctx.mark_dirty(x) or x, lambda ctx, g: g)
    assert nothing.apply(quiet) is quiet
    assert quiet._version == version + 1
    with lib.raises(RuntimeError, OVERWRITTEN):
        product.backward(lib.ones(2))
    wrong = lib.fn(lambda ctx, x: ctx.mark_dirty(x) or x * 2, lambda ctx, g: g)
    with lib.raises(RuntimeError, "Some elements marked as dirty during the forward method were not returned as output"):
        wrong.apply(leaf.detach().requires_grad_() * 1)
    # Only one of two inputs is marked.
    a, b = lib.tensor([1.0]), lib.tensor([5.0])

    def add(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.add_(y)

    x = a * 1
    assert lib.fn(add, lambda ctx, g: (g * 3, g * 4)).apply(x, b) is x
    x.backward()
    lib.equal(a.grad, [3.0])
    lib.equal(b.grad, [4.0])


@contract("FUN-21")
def unmarked_writes(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        return x.mul_(2)

    leaf = lib.tensor([1.0, 3.0])
    x = leaf * 1
    before = x.grad_fn.name()
    y = lib.fn(forward, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert y._is_view()
    assert y.grad_fn.name() == "FBackward"
    assert x.grad_fn.name() == before
    lib.equal(x, [2.0, 6.0])
    lib.equal(y, [2.0, 6.0])
    (g,) = lib.grad(x, leaf, lib.ones(2), retain_graph=True)
    lib.equal(g, [1.0, 1.0])
    lib.equal(lib.grad(y, leaf, lib.ones(2))[0], [5.0, 5.0])


@contract("FUN-22")
def an_input_that_is_returned(lib: Any) -> None:
    for several in (False, True):
        with lib.case(several):
            x = lib.tensor([1.0, 2.0])
            cls = lib.fn(lambda ctx, x, several=several: (x, x * 3) if several else x, lambda ctx, g, *h: g * 5)
            y = cls.apply(x)
            y = y[0] if several else y
            assert y is not x
            assert y._is_view()
            assert y.grad_fn.name() == "FBackward"
            assert x.grad_fn is None
            assert x.is_leaf
            if lib.sees_memory:
                assert lib.same_memory(x, y)
            y.backward(lib.ones(2))
            lib.equal(x.grad, [5.0, 5.0])
            with lib.ns.no_grad():
                x.add_(1.0)
            lib.equal(y, [2.0, 3.0])
    c = lib.constant([1.0, 2.0])
    y = lib.fn(lambda ctx, c, x: c, lambda ctx, g: (None, g * 5)).apply(c, x)
    assert y is not c
    assert y.requires_grad
    assert not c.requires_grad


@contract("FUN-23")
def writes_into_returned_views(lib: Any) -> None:
    phrase = "is a view and is being modified inplace. This view was created inside a custom Function"
    for name, forward in [("slice", lambda ctx, x: x[:1]), ("input", lambda ctx, x: x)]:
        x = lib.tensor([1.0, 2.0]) * 1
        y = lib.fn(forward, lambda ctx, g: g).apply(x)
        with lib.case(name), lib.raises(RuntimeError, "Output 0 of F", phrase):
            y.mul_(2)
        with lib.case(name), lib.raises(RuntimeError, phrase):
            y[0] = 7.0
        lib.equal(x, [1.0, 2.0])
    x = lib.tensor([1.0, 2.0]) * 1
    one, two = lib.fn(lambda ctx, x: (x[:1], x[1:]), lambda ctx, g, h: lib.ones(2)).apply(x)
    for number, y in ((0, one), (1, two)):
        with lib.case(number), lib.raises(RuntimeError, f"Output {number} of F", "the output of a function that returns multiple views"):
            y.mul_(2)
    # A result that is not a view can be written to.
    leaf = lib.tensor([1.0, 2.0])
    y = double(lib).apply(leaf)
    y.mul_(3)
    y.backward(lib.ones(2))
    lib.equal(leaf.grad, [6.0, 6.0])
