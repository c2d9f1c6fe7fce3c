"""Group M: forward mode, tangents carried along with values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes


def forward_ad(lib: Any) -> Any:
    """Return the module under test."""
    return lib.module("autograd.forward_ad")


def pair(lib: Any) -> tuple[Any, Any]:
    """Return a primal and a tangent."""
    return lib.constant([1.0, 2.0]), lib.constant([3.0, 4.0])


#: Steps of a program: the operation on a Tensor, and its value and derivative in NumPy.
STEPS: dict[str, Any] = {
    "square": (lambda xp, x: x * x, lambda v: (v * v, 2 * v)),
    "sin": (lambda xp, x: xp.sin(x), lambda v: (np.sin(v), np.cos(v))),
    "exp": (lambda xp, x: xp.exp(-x), lambda v: (np.exp(-v), -np.exp(-v))),
    "divide": (lambda xp, x: x / (1 + x * x), lambda v: (v / (1 + v * v), (1 - v * v) / (1 + v * v) ** 2)),
    "add": (lambda xp, x: x + 2, lambda v: (v + 2, np.ones_like(v))),
    "tanh": (lambda xp, x: xp.tanh(x), lambda v: (np.tanh(v), 1 - np.tanh(v) ** 2)),
}


def tolerance(lib: Any) -> float:
    """Return the tolerance for a chain of operations."""
    return 1e-4 if lib.real == "float32" else 1e-9


@contract("FWD-01", draw={"program": st.lists(st.sampled_from(sorted(STEPS)), max_size=4), "shape": shapes(), "seed": seeds})
def jacobian_vector_product(lib: Any, program: Any, shape: Any, seed: int) -> None:
    fw = forward_ad(lib)
    x, t = lib.random(shape, seed, rg=False), lib.random(shape, seed + 1, rg=False)
    v, d = lib.value(x), lib.value(t)
    with fw.dual_level():
        y = fw.make_dual(x, t)
        for name in program:
            act, slope = STEPS[name]
            y = act(lib.xp, y)
            v, k = slope(v)
            d = d * k
        found = fw.unpack_dual(y)
        total = fw.unpack_dual(lib.xp.sum(y * 3))
    assert type(found) is fw.UnpackedDualTensor
    assert fw.UnpackedDualTensor._fields == ("primal", "tangent")
    primal, tangent = found
    assert primal is found.primal
    assert tangent is found.tangent
    lib.equal(primal, v, rtol=tolerance(lib), atol=tolerance(lib))
    lib.equal(tangent, d, rtol=tolerance(lib), atol=tolerance(lib))
    lib.equal(total.tangent, np.sum(3 * d), rtol=tolerance(lib), atol=tolerance(lib))
    a, b, s = (lib.constant(z) for z in ([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[1.0, 0.0], [0.0, 2.0]]))
    with fw.dual_level():
        both = fw.unpack_dual(lib.xp.matmul(fw.make_dual(a, s), fw.make_dual(b, a)))
        turned = fw.unpack_dual(lib.xp.sum(lib.xp.permute_dims(fw.make_dual(a, s), (1, 0))[:1, :], axis=1))
        product = fw.unpack_dual(fw.make_dual(a, s) * fw.make_dual(b, a))
    lib.equal(product.tangent, lib.value(s) * lib.value(b) + lib.value(a) * lib.value(a))
    lib.equal(both.tangent, lib.value(s) @ lib.value(b) + lib.value(a) @ lib.value(a))
    lib.equal(turned.tangent, [1.0])


@contract("FWD-02")
def a_level_is_needed(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with lib.raises(RuntimeError, "Trying to create a dual Tensor for forward AD but no level exists", "enter_dual_level()"):
        fw.make_dual(x, t)
    found = fw.unpack_dual(x)
    assert found.primal is x
    assert found.tangent is None
    level = fw.enter_dual_level()
    try:
        lib.equal(fw.unpack_dual(fw.make_dual(x, t) * 2).tangent, [6.0, 8.0])
        lib.equal(fw.unpack_dual(fw.make_dual(x, t, level=0), level=0).tangent, [3.0, 4.0])
        with lib.raises(RuntimeError, "no level exists"):
            fw.make_dual(x, t, level=-1)
    finally:
        fw.exit_dual_level(level=level)
    with lib.raises(RuntimeError, "no level exists"):
        fw.make_dual(x, t)
    with fw.dual_level(), lib.ns.inference_mode():  # inference mode disables forward mode
        assert fw.unpack_dual(fw.make_dual(x, t)).tangent is None
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        with lib.ns.inference_mode():
            assert fw.unpack_dual(dual * 2).tangent is None
        lib.equal(fw.unpack_dual(dual * 2).tangent, [6.0, 8.0])


@contract("FWD-03")
def only_dtypes_with_derivative(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        for dtype in ("int32", "bool", "uint8"):
            wrong = lib.constant([1, 0], dtype=dtype)
            with lib.case(dtype), lib.raises(ValueError, "Expected primal to be floating point or complex, but got", dtype):
                fw.make_dual(wrong, t)
            with lib.case(dtype), lib.raises(ValueError, "Expected tangent to be floating point or complex, but got", dtype):
                fw.make_dual(x, wrong)
        for dtype in (lib.real, lib.narrow, *([lib.complex] if lib.capabilities["complex"] else [])):
            with lib.case(dtype):
                z, w = lib.constant([1.0, 2.0], dtype=dtype), lib.constant([3.0, 4.0], dtype=dtype)
                found = fw.unpack_dual(fw.make_dual(z, w) * 2).tangent
                assert found.dtype == lib.dtype(dtype)
                lib.equal(found, [6.0, 8.0])


@contract("FWD-04", draw={"shapes": st.tuples(shapes(empty=True), shapes(empty=True)).filter(lambda p: p[0] != p[1])})
def tangents_have_the_primals_shape(lib: Any, shapes: Any) -> None:
    fw = forward_ad(lib)
    for one, other in [shapes, ((2,), ()), ((), (1,)), ((2, 1), (2,)), ((2, 1), (1, 2))]:
        phrase = "Trying to set a forward gradient that has a different size than that of the original Tensor"
        with lib.case((one, other)), fw.dual_level(), lib.raises(RuntimeError, phrase):
            fw.make_dual(lib.ones(*one), lib.ones(*other))


@contract("FWD-05")
def tangents_of_another_dtype(lib: Any) -> None:
    fw = forward_ad(lib)
    for primal, tangent in [(lib.real, lib.narrow), (lib.narrow, lib.real)]:
        with lib.case((primal, tangent)), fw.dual_level():
            x, t = lib.constant([1.0, 2.0], dtype=primal), lib.constant([3.0, 4.0], dtype=tangent)
            found = fw.unpack_dual(fw.make_dual(x, t))
            assert found.tangent.dtype == lib.dtype(tangent)
            lib.equal(found.tangent, [3.0, 4.0])
            lib.equal(fw.unpack_dual(fw.make_dual(x, t) * 2).tangent, [6.0, 8.0], rtol=1e-2)


@contract("FWD-06")
def one_level(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        with lib.raises(RuntimeError, "Nested forward mode AD is not supported at the moment"), fw.dual_level():
            pass
        with lib.raises(RuntimeError, "Nested forward mode AD is not supported at the moment"):
            fw.enter_dual_level()
        dual = fw.make_dual(x, t)
        with lib.raises(RuntimeError, "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0"):
            fw.make_dual(dual, t)
        lib.equal(fw.unpack_dual(dual * dual).tangent, [6.0, 16.0])


@contract("FWD-07")
def leaving_drops_the_tangents(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        result = dual * dual
        assert fw.unpack_dual(result).tangent is not None
    for kept in (dual, result, result * 2):
        assert fw.unpack_dual(kept).tangent is None
    with fw.dual_level():
        for kept in (dual, result, result * 2):
            assert fw.unpack_dual(kept).tangent is None
        lib.equal(fw.unpack_dual(fw.make_dual(dual, t)).tangent, [3.0, 4.0])
    with lib.raises(KeyError), fw.dual_level():
        dual = fw.make_dual(x, t)
        raise KeyError
    assert fw.unpack_dual(dual).tangent is None
    with lib.raises(RuntimeError, "Dual level must be a positive number."):
        fw.exit_dual_level()
    level = fw.enter_dual_level()
    with lib.raises(RuntimeError, "not the last one"):
        fw.exit_dual_level(level=level + 3)
    fw.exit_dual_level(level=level)
    with lib.raises(RuntimeError, "Dual level must be a positive number."):
        fw.exit_dual_level()


@contract("FWD-08")
def no_tangent_is_none(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        for name, y in [("plain", x), ("result", lib.xp.sin(x) * x), ("leaf", lib.tensor([1.0])), ("integer", lib.cast(dual, "int32")),
                        ("comparison", dual > 1)]:  # fmt: skip
            with lib.case(name):
                assert fw.unpack_dual(y).tangent is None
        lib.equal(fw.unpack_dual(dual * x).tangent, [3.0, 8.0])
        lib.equal(fw.unpack_dual(dual * 0).tangent, [0.0, 0.0])


@contract("FWD-09")
def modes(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        with lib.ns.no_grad():
            lib.equal(fw.unpack_dual(dual * dual).tangent, [6.0, 16.0])
            lib.equal(fw.unpack_dual(fw.make_dual(x, t) * 2).tangent, [6.0, 8.0])
        with lib.ns.inference_mode():
            assert fw.unpack_dual(dual * dual).tangent is None
            assert fw.unpack_dual(fw.make_dual(x, t)).tangent is None
        assert fw.unpack_dual(dual.detach()).tangent is None
        # A write in inference mode leaves the tangent as it is.
        other = fw.make_dual(x.clone(), t)
        with lib.ns.inference_mode():
            other.mul_(2.0)
            other[0] = 7.0
        lib.equal(fw.unpack_dual(other).primal, [7.0, 2 * lib.value(x)[1]])
        lib.equal(fw.unpack_dual(other).tangent, [3.0, 4.0])
        lib.equal(fw.unpack_dual(dual).tangent, [3.0, 4.0])
        lib.equal(fw.unpack_dual(dual * dual.detach()).tangent, [3.0, 8.0])


@contract("FWD-10", draw={"shape": shapes()})
def a_new_tensor_around_both(lib: Any, shape: Any) -> None:
    fw = forward_ad(lib)
    x, t = lib.random(shape, 1, rg=False), lib.random(shape, 2, rg=False)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        assert dual is not x
        assert fw.unpack_dual(x).tangent is None
        primal, tangent = fw.unpack_dual(dual)
        assert tangent is t
        assert primal is not x
        assert fw.unpack_dual(primal).tangent is None
        assert primal._base is x
        if lib.sees_memory:
            assert lib.same_memory(primal, x)
            assert lib.same_memory(dual, x)
        x.mul_(2)
        lib.equal(primal, lib.value(x))


@contract("FWD-11", draw={"shape": shapes(), "seed": seeds})
def forward_over_reverse(lib: Any, shape: Any, seed: int) -> None:
    fw = forward_ad(lib)
    x, t = lib.random(shape, seed), lib.random(shape, seed + 1)
    v, u = lib.value(x), lib.value(t)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        primal, tangent = fw.unpack_dual(lib.xp.sum(dual * dual * dual))
        # derivatives of the tangent, 3 x^2 t, with respect to x and t
        gx, gt = lib.grad(tangent, [x, t], retain_graph=True)
        lib.equal(gx, 6 * v * u)
        lib.equal(gt, 3 * v * v)
        lib.equal(lib.grad(primal, x)[0], 3 * v * v)
        primal, tangent = fw.unpack_dual(dual)
        lib.equal(lib.grad(lib.xp.sum(primal * primal), x)[0], 2 * v)
        lib.equal(lib.grad(lib.xp.sum(tangent * tangent), t)[0], 2 * u)
        # conversely, the gradient of a dual's result carries a tangent, which is a Hessian-vector product
        y = lib.xp.sum(lib.xp.sin(fw.make_dual(x, t.detach())))
        (g,) = lib.grad(y, x, create_graph=True)
        lib.equal(fw.unpack_dual(g).tangent, -np.sin(v) * u)
        # the same for a dual that starts to require grad later
        later = fw.make_dual(x.detach(), t.detach()).requires_grad_()
        (g,) = lib.grad(lib.xp.sum(later * later * later), later, create_graph=True)
        lib.equal(fw.unpack_dual(g).tangent, 6 * v * u)
        # the same for the gradient that backward() accumulates; PyTorch needs create_graph for it
        for create in (True, False):
            x.grad = None
            lib.xp.sum(lib.xp.sin(fw.make_dual(x, t.detach()))).backward(create_graph=create)
            lib.equal(x.grad, np.cos(v))
            if create or not lib.oracle:
                lib.equal(fw.unpack_dual(x.grad).tangent, -np.sin(v) * u)


@contract("FWD-12")
def writes_through_views(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        dual = fw.make_dual(x.clone(), t.clone())
        dual[0].mul_(10)
        primal, tangent = fw.unpack_dual(dual)
        lib.equal(primal, [10.0, 2.0])
        lib.equal(tangent, [30.0, 4.0])
        view = dual[1:]
        # NB: not `view.mul_(view)`, for which PyTorch 2.13 computes 3 x t instead of 2 x t.
        view.mul_(fw.make_dual(lib.constant([5.0]), lib.constant([6.0])))
        lib.equal(fw.unpack_dual(dual).primal, [10.0, 10.0])
        lib.equal(fw.unpack_dual(dual).tangent, [30.0, 32.0])
        lib.equal(fw.unpack_dual(view).tangent, [32.0])
        # A base without a tangent gets one when a dual is written into its view.
        base = x.clone()
        base[:1].mul_(fw.make_dual(lib.ones(1), lib.constant([7.0])))
        lib.equal(fw.unpack_dual(base).tangent, [7.0, 0.0])


def custom(lib: Any, forward: Any, jvp: Any = None, **more: Any) -> Any:
    """Return a custom Function, with a `jvp` if one is given."""
    body = {"forward": staticmethod(forward)} | ({} if jvp is None else {"jvp": staticmethod(jvp)})
    return type("F", (lib.ag.Function,), body | {k: staticmethod(v) for k, v in more.items()})


@contract("FWD-13")
def jvp_of_a_function(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    log: list[Any] = []

    def forward(ctx: Any, x: Any, k: Any, y: Any) -> Any:
        log.append("forward")
        ctx.k = k
        ctx.save_for_forward(x, None, y)
        return x * y * k, x + y

    def jvp(ctx: Any, *tangents: Any) -> Any:
        log.append(len(tangents))
        x, nothing, y = ctx.saved_tensors
        assert nothing is None
        dx, dk, dy = tangents
        assert dk is None
        return ctx.k * (dx * y + x * dy), dx + dy

    with fw.dual_level():
        one, two = custom(lib, forward, jvp).apply(fw.make_dual(x, t), 3, fw.make_dual(t, x))
        log.append("after")
        lib.equal(fw.unpack_dual(one).primal, [9.0, 24.0])
        lib.equal(fw.unpack_dual(one).tangent, [30.0, 60.0])
        lib.equal(fw.unpack_dual(two).tangent, [4.0, 6.0])
    assert log == ["forward", 3, "after"]
    log.clear()
    custom(lib, forward, jvp).apply(x, 3, t)
    with fw.dual_level():
        custom(lib, forward, jvp).apply(x, 3, t)
    assert log == ["forward", "forward"]
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        with lib.raises(NotImplementedError, "You must implement the jvp function"):
            custom(lib, lambda ctx, x: x * 2).apply(dual)
        for name, wrong, got in [("two", lambda ctx, dx: (dx, dx), 2), ("none at all", lambda ctx, dx: (), 0)]:
            phrase = f"Function's jvp returned an invalid number of forward gradients (expected 1 but got {got})"
            with lib.case(name), lib.raises(RuntimeError, phrase):
                custom(lib, lambda ctx, x: x * 2, wrong).apply(dual)


@contract("FWD-14")
def missing_tangents(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    for materialize in (None, True, False):
        with lib.case(materialize):
            seen: list[Any] = []

            def forward(ctx: Any, x: Any, k: Any, y: Any, materialize: Any = materialize) -> Any:
                if materialize is not None:
                    ctx.set_materialize_grads(materialize)
                return x * y

            def jvp(ctx: Any, *tangents: Any, seen: Any = seen) -> Any:
                seen.extend(tangents)
                return tangents[0] * 2

            with fw.dual_level():
                y = custom(lib, forward, jvp).apply(fw.make_dual(x, t), "text", t)
                lib.equal(fw.unpack_dual(y).tangent, [6.0, 8.0])
            first, text, last = seen
            lib.equal(first, [3.0, 4.0])
            assert text is None
            if materialize is False:
                assert last is None
            else:
                lib.equal(last, [0.0, 0.0])


@contract("FWD-15")
def saving_for_forward(lib: Any) -> None:
    for wrong in (3, "text", [1.0]):

        def forward(ctx: Any, x: Any, wrong: Any = wrong) -> Any:
            ctx.save_for_forward(x, None, wrong)
            return x * 2

        with lib.case(wrong), lib.raises(AssertionError, "save_for_forward expects all arguments to be tensors"):
            custom(lib, forward).apply(lib.constant([1.0]))

    def right(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x, None)
        return x * 2

    lib.equal(custom(lib, right).apply(lib.constant([1.0])), [2.0])


@contract("FWD-16")
def jvp_mirrors_forward(lib: Any) -> None:
    fw = forward_ad(lib)

    def dirty(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    whole = [
        ("view, view", lambda ctx, x: x[...], lambda ctx, dx: dx[...], None, [3.0, 4.0]),
        ("view, new", lambda ctx, x: x[...], lambda ctx, dx: dx * 1, "jvp is not returning a view", None),
        ("input, view", lambda ctx, x: x, lambda ctx, dx: dx[...], None, [3.0, 4.0]),
        ("input, new", lambda ctx, x: x, lambda ctx, dx: dx * 1, "jvp is not returning a view", None),
        ("new, new", lambda ctx, x: x * 1, lambda ctx, dx: dx * 1, None, [3.0, 4.0]),
        ("in place, in place", dirty, lambda ctx, dx: dx.mul_(2), None, [6.0, 8.0]),
        ("in place, new", dirty, lambda ctx, dx: dx * 2, "not modifying the forward mode gradients inplace", None),
        ("in place, untouched", dirty, lambda ctx, dx: dx, "not modifying the forward mode gradients inplace", None),
    ]
    for name, forward, jvp, phrase, expected in whole:
        x, t = pair(lib)
        with lib.case(name), fw.dual_level():
            dual = fw.make_dual(x.clone(), t.clone())
            if phrase is not None:
                with lib.raises(RuntimeError, phrase):
                    custom(lib, forward, jvp).apply(dual)
                continue
            lib.equal(fw.unpack_dual(custom(lib, forward, jvp).apply(dual)).tangent, expected)
            if forward is dirty:
                lib.equal(fw.unpack_dual(dual).tangent, expected)


@contract("FWD-17")
def the_leaf_may_be_gone(lib: Any) -> None:
    fw = forward_ad(lib)
    for name, program in {
        "the dual": lambda x, d: (d, lambda: d * d * d),
        "the leaf": lambda x, d: (x, lambda: d * d * d),
        "a write": lambda x, d: (x, lambda: (d * 1).mul_(2) * d * d / 2),
    }.items():
        with lib.case(name), fw.dual_level():
            x = lib.tensor([1.0, 2.0])
            d = fw.make_dual(x, lib.constant([3.0, 4.0]))
            keeper, result = program(x, d)
            y = lib.xp.sum(result())
            edge = lib.graph.get_gradient_edge(keeper)
            del x, d, keeper, result
            (g,) = lib.grad(y, edge, create_graph=True)
            lib.equal(g, [3.0, 12.0])
            lib.equal(fw.unpack_dual(g).tangent, [18.0, 48.0])
    # A gradient with a tangent is added to `.grad` in place.
    x = lib.tensor([1.0, 2.0])
    lib.xp.sum(x * 2).backward()
    kept = x.grad
    with fw.dual_level():
        d = fw.make_dual(x, lib.constant([3.0, 4.0]))
        lib.xp.sum(d * d).backward()
        assert x.grad is kept
        assert kept._version == 1
        lib.equal(fw.unpack_dual(kept).primal, [4.0, 6.0])
        lib.equal(fw.unpack_dual(kept).tangent, [6.0, 8.0])
        if not lib.oracle:  # in PyTorch this gradient requires grad

            def scale(g: Any) -> Any:
                with lib.ns.enable_grad():
                    return g * w

            w = lib.tensor([5.0, 7.0])
            x.register_hook(scale)
            (g,) = lib.grad(lib.xp.sum(d * d), x)
            assert not g.requires_grad
            lib.equal(g, [10.0, 28.0])
            lib.equal(fw.unpack_dual(g).tangent, [30.0, 56.0])


@contract("FWD-18")
def tangents_with_a_tangent(lib: Any) -> None:
    fw = forward_ad(lib)
    x, t = pair(lib)
    with fw.dual_level():
        dual = fw.make_dual(t, lib.ones(*t.shape))
        with lib.raises(RuntimeError, "Setting a forward grad that itself has a forward gradient at the same level"):
            fw.make_dual(x, dual)
        lib.equal(fw.unpack_dual(fw.make_dual(x, fw.unpack_dual(dual).primal)).tangent, lib.value(t))
