"""Group T: gradcheck, and the errors that it has to find."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import shapes

MODES = ({}, {"fast_mode": True})
MISMATCH = "Jacobian mismatch for output {} with respect to input {}"


def double_with(lib: Any, backward: Any) -> Any:
    """Return a Function for ``2 x`` with the given backward."""
    return lib.fn(lambda ctx, x: x * 2, backward).apply


def error_class(lib: Any) -> Any:
    """Return the class `GradcheckError`."""
    return lib.module("autograd.gradcheck").GradcheckError


@contract("GCK-01", requires="float64", draw={"shape": shapes(1, 2, 3)})
def correct_gradients_pass(lib: Any, shape: Any) -> None:
    xp, check = lib.xp, lib.ag.gradcheck
    common = {
        "eps": 1e-6, "atol": 1e-5, "rtol": 1e-3, "raise_exception": True, "nondet_tol": 0.0, "check_undefined_grad": True,
        "check_grad_dtypes": False, "check_batched_grad": False, "fast_mode": False,
    }  # fmt: skip
    once = common | {"check_batched_forward_grad": False, "check_forward_ad": False, "check_backward_ad": True, "masked": None}
    twice = common | {
        "grad_outputs": None, "gen_non_contig_grad_outputs": False, "check_fwd_over_rev": False, "check_rev_over_rev": True,
        "masked": False,
    }  # fmt: skip
    for function, documented in ((check, once), (lib.ag.gradgradcheck, twice)):
        defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
        assert {name: defaults[name] for name in documented} == documented
    x, w, c = lib.random(shape, 0), lib.random(shape, 1), lib.random(shape, 2, rg=False)
    assert check(xp.sin, x) is True
    assert check(lambda x, w, c: (x * w * c, xp.sum(x * x), xp.exp(w)), (x, w, c)) is True
    assert check(lambda x, k: x**k, [x, 3]) is True
    assert x.grad is None
    assert w.grad is None
    # A wrong gradient is found at every position, for every input, and beyond the tolerances.
    for place in range(x.ndim and x.shape[0]):
        off = lib.constant([[1.0] if k == place else [0.0] for k in range(x.shape[0])])
        off = lib.xp.reshape(off, (x.shape[0],) + (1,) * (x.ndim - 1))
        f = double_with(lib, lambda ctx, g, off=off: g * 2 + g * off)
        with lib.case(place):
            assert not check(f, (x,), raise_exception=False)
    by = lambda factor: double_with(lib, lambda ctx, g: g * 2 * factor)  # noqa: E731
    for mode in MODES:
        with lib.case(mode):
            assert check(by(1 + 0.9e-3), (x,), atol=0.0, **mode) is True
            assert not check(by(1 + 1.2e-3), (x,), atol=0.0, raise_exception=False, **mode)
            assert check(by(1 + 1.2e-3), (x,), atol=0.0, rtol=2e-3, **mode) is True
            assert check(by(1.01), (x,), rtol=0.0, atol=0.03, **mode) is True
            assert not check(by(3.0), (x,), rtol=0.0, atol=0.03, raise_exception=False, **mode)
    assert check(by(1 + 4e-6), (x,), rtol=0.0) is True
    assert not check(by(1 + 6e-6), (x,), rtol=0.0, raise_exception=False)
    flat = lib.tensor([0.0])
    # The central difference of x³ at 0 is eps²: 1e-12, or 0.25.
    assert check(lambda x: x**3, (flat,), atol=1e-10) is True
    assert not check(lambda x: x**3, (flat,), eps=0.5, raise_exception=False)
    # A forward difference of x² at 0 would be eps; a central difference is 0.
    assert check(lambda x: x**2, (flat,), eps=0.5, atol=1e-9) is True
    # Beside the point the outputs must be as many, of the same shapes.
    one = lib.tensor([1.0])
    for mode in MODES:
        with lib.case(mode), lib.raises(AssertionError, "same shape"):
            check(lambda x: xp.concat([x, x]) if float(x[0].item()) > 1.0 else x * 1, (one,), **mode)
    calls: list[int] = []

    def fewer(x: Any) -> Any:
        calls.append(1)
        return (x * 2, x * 3) if len(calls) == 1 else (x * 2,)

    with lib.raises(IndexError):
        check(fewer, (one,))


@contract("GCK-02", requires="float64")
def mismatches(lib: Any) -> None:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    bad = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g * 3, jvp=lambda ctx, t: t * 3).apply
    assert issubclass(error_class(lib), RuntimeError)
    for options in MODES:
        for output, place, f in [
            (0, 0, lambda x, w: bad(x) * w),
            (0, 1, lambda x, w: x * bad(w)),
            (1, 0, lambda x, w: (x * w, bad(x) * w)),
            (1, 1, lambda x, w: (x * w, x * bad(w))),
        ]:
            said = MISMATCH.format(output, place), "numerical:", "analytical:"
            with lib.case((options, output, place)), lib.raises(error_class(lib), *said):
                lib.ag.gradcheck(f, (x, w), **options)
            with lib.case((options, output, place, "forward mode")), lib.raises(error_class(lib), said[0].removeprefix("Jacobian ")):
                lib.ag.gradcheck(f, (x, w), check_forward_ad=True, check_backward_ad=False, **options)
        # One side is zero: a gradient is lost, or there is one too many.
        with lib.case((options, "lost")), lib.raises(error_class(lib), MISMATCH.format(0, 0)):
            lib.ag.gradcheck(lambda x: x * 2 + x.detach(), (x,), **options)


@contract("GCK-03", requires="float64")
def without_exceptions(lib: Any) -> None:
    def fail(ctx: Any, g: Any) -> Any:
        raise LookupError("boo")

    x = lib.tensor([1.0, 2.0])
    for options in MODES:
        with lib.case(options):
            assert lib.ag.gradcheck(double_with(lib, lambda ctx, g: g * 3), (x,), raise_exception=False, **options) is False
            assert lib.ag.gradcheck(lib.xp.sin, (x,), raise_exception=False, **options) is True
            with lib.raises(ValueError, "at least one input tensor to require gradient"):
                lib.ag.gradcheck(lib.xp.sin, lib.constant([1.0]), raise_exception=False, **options)
            with lib.raises(LookupError, "boo"):
                lib.ag.gradcheck(double_with(lib, fail), (x,), raise_exception=False, **options)
    absent = _undefined(lib, lambda ctx, g: g * 2)
    with lib.raises(TypeError):
        lib.ag.gradcheck(absent, (x,), raise_exception=False)


@contract("GCK-04", requires="float64")
def an_input_must_require_grad(lib: Any) -> None:
    message = "gradcheck expects at least one input tensor to require gradient"
    for inputs in (lib.constant([1.0]), (lib.constant([1.0]),), [lib.constant([1.0]), lib.constant(2.0), 3.0]):
        with lib.raises(ValueError, message):
            lib.ag.gradcheck(lambda x, *rest: x * 2, inputs)
    assert lib.ag.gradcheck(lambda x, w: x * w, (lib.constant([1.0]), lib.tensor([2.0])))


@contract("GCK-05")
def single_precision(lib: Any) -> None:
    x = lib.tensor([0.8, 2.0], dtype="float32")
    with lib.warns(UserWarning, "Input #0 requires gradient and is not a double precision floating point or complex"):
        assert not lib.ag.gradcheck(lib.xp.sin, (x,), raise_exception=False)
    if not lib.capabilities["float64"]:
        return
    double = lib.tensor([0.8, 2.0])
    with lib.warns(UserWarning, "Input #1 requires gradient and is not a double precision"):
        lib.ag.gradcheck(lambda w, x: lib.xp.sin(w), (double, x), raise_exception=False)
    with lib.silent():  # an input that requires no gradient may be of any precision
        assert lib.ag.gradcheck(lambda w, x: w * lib.cast(x, "float64"), (double, x.detach()))


@contract("GCK-06", requires="float64 strides")
def overlapping_inputs(lib: Any) -> None:
    for shape, to in [((), (3,)), ((2, 1), (2, 3)), ((1, 2), (3, 2))]:
        x = lib.xp.broadcast_to(lib.ones(*shape), to).detach()
        if not any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride(), strict=True)):
            continue  # the library made a copy
        x.requires_grad_()
        apart = lib.tensor([1.0])
        with lib.case((shape, to)):
            with lib.raises(RuntimeError, "The 0th input has a dimension with stride 0"):
                lib.ag.gradcheck(lib.xp.sin, (x,))
            with lib.raises(RuntimeError, "The 1th input has a dimension with stride 0"):
                lib.ag.gradcheck(lambda w, x: lib.xp.sum(x) * w, (apart, x))
            assert lib.ag.gradcheck(lib.xp.sin, (x.detach().clone().requires_grad_(),))


def _undefined(lib: Any, backward: Any) -> Any:
    """Return a Function for ``2 x`` that receives None for an undefined gradient."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2

    return lib.fn(forward, backward).apply


@contract("GCK-07", requires="float64")
def undefined_gradients(lib: Any) -> None:
    check, x = lib.ag.gradcheck, lib.tensor([1.0, 2.0])
    unaware = _undefined(lib, lambda ctx, g: g * 2)
    with lib.raises(TypeError, "unsupported operand"):
        check(unaware, (x,))
    assert check(unaware, (x,), check_undefined_grad=False)
    assert check(_undefined(lib, lambda ctx, g: None if g is None else g * 2), (x,))
    # Any one of several outputs can be undefined while the others are not.
    seen: list[tuple[bool, ...]] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3, x * 4

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append(tuple(g is None for g in gs))
        parts = [g * k for g, k in zip(gs, (2, 3, 4), strict=True) if g is not None]
        return sum(parts[1:], parts[0]) if parts else None

    assert check(lib.fn(forward, backward).apply, (x,))
    assert {(True, True, True), (True, False, False), (False, True, False), (False, False, True)} <= set(seen)
    seen.clear()
    invented = _undefined(lib, lambda ctx, g: lib.ones(2) if g is None else g * 2)
    with lib.raises(error_class(lib), "undefined"):
        check(invented, (x,))


@contract("GCK-08", requires="float64")
def gradients_scale_with_the_seed(lib: Any) -> None:
    x = lib.tensor([1.0])
    # The Jacobian of a single element is probed with a seed of 1, which hides the error.
    with lib.raises(error_class(lib), "backward not multiplied by grad_output"):
        lib.ag.gradcheck(double_with(lib, lambda ctx, g: lib.constant([2.0])), (x,))
    assert lib.ag.gradcheck(double_with(lib, lambda ctx, g: g * 2), (x,))


@contract("GCK-09", requires="float64")
def backward_is_deterministic(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    for options in MODES:
        count = itertools.count()
        drifting = double_with(lib, lambda ctx, g, count=count: g * (2 + 1e-7 * next(count)))
        with lib.case(options):
            with lib.raises(error_class(lib), "Backward is not reentrant"):
                lib.ag.gradcheck(drifting, (x,), **options)
            assert lib.ag.gradcheck(drifting, (x,), nondet_tol=1e-3, **options)
            assert lib.ag.gradcheck(lib.xp.sin, (x,), nondet_tol=0.0, **options)


@contract("GCK-10", requires="float64")
def kinks(lib: Any) -> None:
    xp = lib.xp
    relu = lambda x: xp.maximum(x, lib.constant(0.0))  # noqa: E731
    flat = lib.fn(lambda ctx, x: relu(x), lambda ctx, g: g * 0).apply
    # The difference is half a slope, the gradient is 0.
    with lib.raises(error_class(lib), MISMATCH.format(0, 0), "0.5"):
        lib.ag.gradcheck(flat, (lib.tensor([0.0]),))
    assert lib.ag.gradcheck(relu, (lib.tensor([0.5, -0.5]),))
    assert not lib.ag.gradcheck(relu, (lib.tensor([0.5, 1e-7]),), raise_exception=False)


@contract("GCK-11", requires="float64")
def constant_outputs(lib: Any) -> None:
    x, expected = lib.tensor([1.0, 2.0]), "Numerical gradient for function expected to be zero"
    w = lib.tensor([3.0, 4.0])
    for name, f in [
        ("detached", lambda x, w: x.detach() * 2),
        ("the second input", lambda x, w: w.detach() * 2),
        ("one place", lambda x, w: x.detach()[1] * 2),
        ("the second output", lambda x, w: (x.detach() * 0, w.detach() * 2)),
        ("a small slope", lambda x, w: x.detach() * 0.125),
    ]:
        with lib.case(name), lib.raises(error_class(lib), expected):
            lib.ag.gradcheck(f, (x, w))
    assert lib.ag.gradcheck(lambda x: x.detach() * 0, (x,))
    assert lib.ag.gradcheck(lambda x: lib.cast(x, "int64"), (x,))
    for empty in (lambda x, w: x[:0], lambda x, w: (w[:0], x * w)):
        assert lib.ag.gradcheck(empty, (x, w))
    # nan agrees with no number.
    nan, one = float("nan"), lib.tensor([1.0])
    for name, forward, backward in [
        ("numerical", lambda ctx, v: lib.xp.where(v == 1.0, v, v * nan), lambda ctx, g: g),
        ("analytical", lambda ctx, v: v * 1, lambda ctx, g: g * nan),
    ]:
        with lib.case(name):
            assert not lib.ag.gradcheck(lib.fn(forward, backward).apply, (one,), raise_exception=False)


@contract("GCK-12", requires="float64 complex")
def options(lib: Any) -> None:
    xp, check = lib.xp, lib.ag.gradcheck
    x, z = lib.tensor([0.3, 0.7]), lib.tensor([0.3 + 1j, 1 - 0.5j], dtype="complex128")
    for mode in MODES:
        with lib.case(mode):
            assert check(lambda x: (x * x, xp.exp(x)), (x,), **mode)
            assert check(lambda x, z: (z * z * x, xp.abs(z)), (x, z), **mode)
            half = lib.fn(lambda ctx, x: x * x, lambda ctx, g: g).apply
            assert not check(half, (x,), raise_exception=False, **mode)
            turned = lib.fn(lambda ctx, z: z * 1j, lambda ctx, g: g * 1j).apply
            assert not check(turned, (z,), raise_exception=False, **mode)
    # The fast mode compares projections: it calls the function a few times, whatever the number of elements.
    calls: dict[bool, int] = {False: 0, True: 0}

    def counted(x: Any, fast: bool) -> Any:
        calls[fast] += 1
        return x * x

    many = lib.tensor(np.linspace(0.1, 1.0, 20))
    ways: list[dict[str, bool]] = [{}, {"check_forward_ad": True, "check_backward_ad": False}]
    for way in ways:
        calls.update({False: 0, True: 0})
        assert all(check(lambda x, fast=fast: counted(x, fast), (many,), fast_mode=fast, **way) for fast in calls)
        assert calls[True] < 20 < calls[False], (way, calls)
    with lib.raises(AssertionError, "Expected at least one of check_forward_ad or check_backward_ad to be True"):
        check(xp.sin, (x,), check_backward_ad=False)
    with lib.raises(AssertionError, "Setting check_batched_grad=True requires check_backward_ad to be True"):
        check(xp.sin, (x,), check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)
    with lib.raises(AssertionError, "Setting check_batched_forward_grad=True requires check_forward_ad to be True"):
        check(xp.sin, (x,), check_batched_forward_grad=True)
    # Forward mode alone and together with the backward, and batched.
    for more in (
        {"check_forward_ad": True},
        {"check_forward_ad": True, "check_backward_ad": False},
        {"check_batched_grad": True},
        {"check_forward_ad": True, "check_batched_forward_grad": True},
    ):
        for mode in MODES:
            with lib.case((more, mode)):
                assert check(lambda x: (x * x, xp.exp(x)), (x,), **more, **mode)
                # One result depends on only one input, and one has integers.
                assert check(lambda x, y: (x * y, y * 2, lib.cast(x, "int64")), (x, x.detach().clone().requires_grad_()), **more, **mode)

    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    # A function sees the tangents, and what it makes of them is checked.
    fw = lib.module("autograd.forward_ad")

    def triples(x: Any) -> Any:
        primal, tangent = fw.unpack_dual(x)
        return x * 2 if tangent is None else fw.make_dual(primal * 2, tangent * 3)

    assert not check(triples, (x,), check_forward_ad=True, raise_exception=False)
    backwards = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g * 3, jvp=lambda ctx, t: t * 2).apply
    for mode in MODES:
        assert check(backwards, (x,), check_forward_ad=True, check_backward_ad=False, **mode)
        assert not check(backwards, (x,), check_forward_ad=True, raise_exception=False, **mode)

    # What an option checks is checked with that option only.
    def decides(ctx: Any, g: Any) -> Any:
        return g * 2 + 0 * float(xp.sum(g).item())

    def turns(ctx: Any, t: Any) -> Any:
        return t * 2 + 0 * float(xp.sum(t).item())

    by_value = lib.fn(forward, decides, jvp=turns).apply
    for mode in MODES:
        with lib.case(mode):
            assert check(by_value, (x,), check_forward_ad=True, **mode)
            for option in ({"check_batched_grad": True}, {"check_forward_ad": True, "check_batched_forward_grad": True}):
                with lib.case(option), lib.raises(RuntimeError):
                    check(by_value, (x,), **option, **mode)
            # A result that does not depend on the inputs, followed by one that does.
            if not lib.oracle:  # PyTorch itself fails on this
                w = x.detach().clone().requires_grad_()
                assert check(lambda x, y: (lib.cast(x, "int64"), y.detach() * 0, x * y), (x, w), check_forward_ad=True, **mode)
    if not lib.oracle:  # in PyTorch a tangent is missing only from an input that never has one

        def sum_of_two(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2 + y * 3

        def of_both(ctx: Any, dx: Any, dy: Any) -> Any:
            if dx is not None and dy is not None:
                return (dx * 2 + dy * 3) * 7
            return dx * 2 if dy is None else dy * 3

        partial = lib.fn(sum_of_two, lambda ctx, g: (None, None) if g is None else (g * 2, g * 3), jvp=of_both).apply
        pair = x, x.detach().clone().requires_grad_()
        for mode in MODES:
            with lib.case(mode):
                assert check(partial, pair, **mode)
                assert check(partial, pair, check_forward_ad=True, check_undefined_grad=False, **mode)
                with lib.raises(error_class(lib), "missing tangent"):
                    check(partial, pair, check_forward_ad=True, **mode)

    askew = lib.fn(forward, lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 3).apply
    assert check(askew, (x,))
    z = lib.tensor([1.0 + 2.0j], dtype="complex128")
    w = x.detach().clone().requires_grad_()
    for mode in MODES:
        with lib.case(mode):
            assert check(lambda x, w, z: (x * x, xp.abs(z) + xp.sum(x)), (x, w, z), check_grad_dtypes=True, **mode)
    for mode in MODES:
        with lib.case(mode), lib.raises(error_class(lib), "mismatch for output 0 with respect to input 0"):
            check(askew, (x,), check_forward_ad=True, **mode)


@contract("GCK-13", requires="float64", draw={"seed": st.integers(0, 99)})
def second_order(lib: Any, seed: int) -> None:
    xp, check = lib.xp, lib.ag.gradgradcheck
    x, w = lib.random((2,), seed), lib.random((2,), seed + 1)

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    lost = lib.fn(forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0].detach() ** 2).apply
    seen: list[Any] = []

    def forget(ctx: Any, g: Any) -> Any:
        seen.append(lib.value(g))
        return g.detach() * 2

    forgetful = double_with(lib, forget)
    assert lib.ag.gradcheck(lost, (x,))
    for mode in MODES:
        with lib.case(mode):
            assert check(lambda x, w: (x * x * w, xp.sin(x)), (x, w), **mode) is True
            assert check(xp.exp, x, lib.tensor([1.0, 2.0]), **mode) is True
            assert check(xp.exp, (x,), [lib.tensor([1.0, 2.0])], gen_non_contig_grad_outputs=True, **mode) is True
            # The gradient is right, but its own gradient is wrong: with respect to x, or to the gradient outputs.
            for name, f in [("by x", lost), ("by the gradient outputs", forgetful)]:
                with lib.case(name), lib.raises(error_class(lib)):
                    check(f, (x,), **mode)
            assert check(lost, (x,), raise_exception=False, **mode) is False
    with lib.raises(AssertionError, "at least one of check_fwd_over_rev or check_rev_over_rev"):
        check(xp.exp, x, check_fwd_over_rev=False, check_rev_over_rev=False)
    if lib.capabilities["strides"]:
        strides: list[Any] = []

        def look(ctx: Any, g: Any) -> Any:
            strides.append(g.stride())
            return g * 2

        for apart in (True, False):
            assert check(double_with(lib, look), (x,), gen_non_contig_grad_outputs=apart)
            assert ((2,) in strides, (1,) in strides)[not apart]
            assert apart or (2,) not in strides
            strides.clear()
    # All entries of the Jacobians are compared by default.
    calls: list[int] = []

    def cube(x: Any) -> Any:
        calls.append(1)
        return x**3

    for mode, some in zip(MODES, (range(21, 200), range(1, 21))):
        calls.clear()
        assert check(cube, (lib.random((10,), seed),), **mode) is True
        assert len(calls) in some, (mode, len(calls))
    # The gradient outputs that are created by default differ between elements.
    assert len({float(v) for v in seen[0]}) == 2
    assert x.grad is None
    assert w.grad is None


@contract("GCK-14", requires="float64")
def errors_for_undefined_gradients(lib: Any) -> None:
    def refuse(g: Any) -> Any:
        if g is None:
            raise RuntimeError("no gradient")
        return g

    check, x = lib.ag.gradcheck, lib.tensor([1.0, 2.0])

    def hooked(v: Any) -> Any:
        y = v * 2
        y.register_hook(refuse)
        return y

    for name, function in {"backward": _undefined(lib, lambda ctx, g: refuse(g) * 2), "hook": hooked}.items():
        with lib.case(name), lib.raises(error_class(lib), "Expected backward function to handle undefined output grads"):
            check(function, (x,))


@contract("GCK-15", requires="float64")
def jacobians_of_gradcheck(lib: Any) -> None:
    module, xp = lib.module("autograd.gradcheck"), lib.xp
    x, w, k = lib.tensor([0.3, 0.7, -0.2]), lib.tensor([[1.5, -0.5, 0.25]]), lib.constant([2.0, 3.0, 4.0])

    def function(args: Any) -> Any:
        x, w, k = args
        return xp.exp(x * w[0]) * k, x * 3

    a, b, c = (lib.value(v) for v in (x, w, k))
    wanted = np.diag(np.exp(a * b[0]) * b[0] * c), np.diag(np.exp(a * b[0]) * a * c)
    with lib.warns(FutureWarning, "deprecat"):
        numerical = module.get_numerical_jacobian(function, (x, w, k), eps=1e-5)
    with lib.warns(FutureWarning, "deprecat"):
        analytical, reentrant, sizes, types = module.get_analytical_jacobian((x, w, k), function((x, w, k))[0])
    assert (reentrant, sizes, types) == (True, True, True)
    for found, rtol in ((numerical, 1e-7), (analytical, 1e-12)):
        assert len(found) == 2
        for one, other in zip(found, wanted, strict=True):
            lib.equal(one, other, rtol=rtol, atol=1e-8)
    lib.equal(x, a)
    lib.equal(w, b)
    with lib.warns(FutureWarning, "deprecat"):
        (only,) = module.get_numerical_jacobian(function, (x, w, k), target=(w,), eps=1e-5)
    lib.equal(only, wanted[1], rtol=1e-7, atol=1e-8)
    # The Jacobians are of the first output and transposed. One of the inputs does not take part.
    with lib.warns(FutureWarning, "deprecat"):
        found = module.get_analytical_jacobian((x, w), xp.reshape(xp.exp(x)[:2], (1, 2)) * 1)[0]
    lib.equal(found[0], np.exp(np.diag(a))[:, :2] * np.eye(3)[:, :2])
    lib.equal(found[1], np.zeros((3, 2)))
    noisy = [1.0]

    def drifts(ctx: Any, g: Any) -> Any:
        noisy[0] += 1.0
        return g * noisy[0]

    drifting = lib.fn(lambda ctx, x: x * 2, drifts).apply
    with lib.warns(FutureWarning, "deprecat"):
        assert module.get_analytical_jacobian((x,), drifting(x))[1] is False
    with lib.warns(FutureWarning, "deprecat"):
        assert module.get_analytical_jacobian((x,), drifting(x), nondet_tol=10.0)[1] is True
    for call in (
        lambda: module.get_numerical_jacobian(function, (x, w, k), grad_out=2.0),
        lambda: module.get_analytical_jacobian((x,), x * 1, grad_out=2.0),
    ):
        with lib.warns(FutureWarning, "deprecat"), lib.raises(ValueError, "grad_out"):
            call()
    if not lib.oracle:
        for wrong in (3, None):
            with lib.warns(FutureWarning, "deprecat"), lib.raises(TypeError, "get_numerical_jacobian"):
                module.get_numerical_jacobian(wrong, (x,))
