"""Law: tangents pass wherever the tape does: in-place writes and views, passes, hooks, compiled functions and custom Functions.

The references are differences, reverse mode and PyTorch's forward mode. `gradcheck` finds wrong derivatives of either mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from rules import test_linalg as linalg
from support.central_differences import loss, numbers, values
from transforms.test_forward_mode import STEP, close
from transforms.test_forward_nesting import d, r
from xpgrad._transforms.forward import levels
from xpgrad.autograd import forward_ad as fw
from xpgrad.errors import GradcheckError
from xpgrad.func._forward import jvp

grad = xp.autograd.grad
# PyTorch's forward mode compiles some of its decompositions at first use with an interface that it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
Function = Callable[..., Any]


# -- writes in place --------------------------------------------------------------------------------------------------------

#: The steps of programs: each modifies a Tensor with another one of the same shape (both libraries have these methods).
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "multiply": lambda a, b: a.mul_(b.clone()),
    "add": lambda a, b: a.add_(b.clone(), alpha=0.5),
    "scale": lambda a, b: a.mul_(1.25),
    "subtract": lambda a, b: a.sub_(0.3),
    "divide": lambda a, b: a.div_(b * b + 1.5),
    "square": lambda a, b: a.pow_(2),
    "sin": lambda a, b: a.sin_(),
    "exp": lambda a, b: a.neg_().exp_(),
    "copy": lambda a, b: a.copy_(b * 0.7),
    "fill": lambda a, b: a.fill_(0.4),
    "zero": lambda a, b: a.zero_(),
    "set": lambda a, b: a.__setitem__(..., b * b),
    "set a part": lambda a, b: a.__setitem__((slice(None), 0), b[:, 1] * 2),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x[...], "rows": lambda x: x[1:3], "columns": lambda x: x[:, :2], "turned": lambda x: x.T[1:3].T,
    "reshaped": lambda x: x.reshape((6, 2))[2:5],
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Draw views to take and steps to run, in some order; a step may be unrecorded."""
    lines: list[tuple[Any, ...]] = []
    count = 1
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.integers(0, 2)) == 0:
            lines.append(("view", draw(st.sampled_from(sorted(VIEWS))), 0))
            count += 1
        else:
            lines.append(("step", draw(st.sampled_from(sorted(STEPS))), draw(st.integers(0, count - 1)), draw(st.integers(0, 4)) == 0))
    return lines


def run(lines: Any, x: Any, w: Any, no_grad: Any) -> list[Any]:
    """Run a program on `x` with the other operand `w`; return the base and its views."""
    tensors = [x * 1]
    for kind, name, k, *rest in lines:
        if kind == "view":
            tensors.append(VIEWS[name](tensors[k]))
            continue
        a = tensors[k]
        b = w[: a.shape[0], : a.shape[1]]
        if rest[0]:
            with no_grad():
                STEPS[name](a, b)
        else:
            STEPS[name](a, b)
    return tensors


POINT, OTHER = numbers((4, 3)) * 0.8, numbers((4, 3), 2.0)
DIRECTION, SECOND = numbers((4, 3), 3.0), numbers((4, 3), 4.0)


@pytest.mark.slow(one_in=2)
@given(lines=programs())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_programs_that_write_in_place(lines: Any, xpgrad_device: str) -> None:
    """The tangents of the base and of all views agree with differences, whether or not the program is recorded."""
    arrays = [xp.asarray(a, device=xpgrad_device) for a in (POINT, OTHER, DIRECTION, SECOND)]

    def values_at(s: float) -> list[np.ndarray]:
        return [np.array(values(t)) for t in run(lines, xp.asarray(POINT + s * DIRECTION), xp.asarray(OTHER + s * SECOND), xp.no_grad)]

    expected = [(a - b) / (2 * STEP) for a, b in zip(values_at(STEP), values_at(-STEP))]
    unrecorded = any(line[0] == "step" and line[-1] for line in lines)
    for requires in (False, True):
        if requires and unrecorded:
            continue  # a program with unrecorded steps has no right gradient, so it runs without recording
        x, w, dx, dw = (a.clone().requires_grad_(requires) for a in arrays)
        with fw.dual_level():
            tensors = run(lines, fw.make_dual(x, dx), fw.make_dual(w, dw), xp.no_grad)
            found = [fw.unpack_dual(t).tangent for t in tensors]
            for t, e in zip(found, expected):
                close(np.zeros_like(e) if t is None else values(t), e, 1e-7)
            if not requires:
                continue
            # A tangent's gradient in the direction is the vjp, and its gradient in the point is that of forward over reverse.
            total = loss(tensors)
            pulled = grad(total, [x, w], retain_graph=True, allow_unused=True)
            along = fw.unpack_dual(total).tangent
            if along is None or not along.requires_grad:
                continue
            back = grad(along, [dx, dw, x, w], allow_unused=True)
            over = [None if g is None else fw.unpack_dual(g).tangent for g in pulled]
            for a, b in zip(back, [*pulled, *over]):
                zero = np.zeros((4, 3))
                close(zero if a is None else values(a), zero if b is None else values(b), 1e-9)


@given(lines=programs())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_programs_that_write_in_place_agree_with_pytorch(lines: Any) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    import torch.autograd.forward_ad as theirs

    with fw.dual_level():
        duals = [fw.make_dual(xp.asarray(a), xp.asarray(t)) for a, t in ((POINT, DIRECTION), (OTHER, SECOND))]
        found = [fw.unpack_dual(t).tangent for t in run(lines, *duals, xp.no_grad)]
    with theirs.dual_level():
        duals = [theirs.make_dual(torch.tensor(a), torch.tensor(t)) for a, t in ((POINT, DIRECTION), (OTHER, SECOND))]
        expected = [theirs.unpack_dual(t).tangent for t in run(lines, *duals, torch.no_grad)]
    for a, b in zip(found, expected):
        close(values(a), b.numpy(), 1e-11)


def test_a_dual_of_a_view_is_written_by_itself(xpgrad_device: str) -> None:
    """A dual made of a view shares the view's memory but not its tangent."""
    x, t = (xp.asarray(a, device=xpgrad_device) for a in ([1.0, 2.0, 3.0], [4.0, 5.0]))
    with fw.dual_level():
        base = x * 1
        view = base[1:]
        one = fw.make_dual(view, t)
        one[0] *= 10
        assert values(base).tolist() == [1.0, 20.0, 3.0]
        assert values(fw.unpack_dual(one).tangent).tolist() == [40.0, 5.0]
        assert fw.unpack_dual(base).tangent is None
        assert fw.unpack_dual(view).tangent is None
        assert t.tolist() == [4.0, 5.0]  # the user's Tensor is not changed
        base *= 2  # now `one` is stale; its tangent does not change
        with xp.no_grad():
            assert values(fw.unpack_dual(one * 1).tangent).tolist() == [40.0, 5.0]


def test_what_carries_tangents_along_and_what_drops_them(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], dtype="float32", device=xpgrad_device)
    with fw.dual_level():
        dual_x = fw.make_dual(x, xp.ones_like(x))
        for kept in (dual_x.clone(), dual_x[...], xp.astype(dual_x, "float64"), dual_x.to_device("numpy").to_device(xpgrad_device),
                     xp.asarray(dual_x, copy=True), dual_x.contiguous()):  # fmt: skip
            assert values(fw.unpack_dual(kept).tangent).tolist() == [1.0, 1.0]
            assert fw.unpack_dual(kept).tangent.dtype is kept.dtype
        for dropped in (dual_x.detach(), dual_x.data, xp.tensor(dual_x), xp.astype(dual_x, "int32"), (dual_x * 1).detach_(), dual_x > 0):
            assert fw.unpack_dual(dropped).tangent is None
        y = dual_x * 1
        y.requires_grad_()
        assert fw.unpack_dual(y).tangent is not None
        assert fw.unpack_dual(y * y).tangent is not None
        leaf = fw.make_dual(x, xp.ones_like(x)).requires_grad_()
        leaf.requires_grad_(False)
        assert fw.unpack_dual(leaf).tangent is not None
        assert dual_x.detach().tolist() == [1.0, 2.0]


# -- passes that carry tangents -------------------------------------------------------------------------------------------------


def test_backward_gives_gradients_with_tangents(xpgrad_device: str) -> None:
    x = xp.tensor([1.0, 2.0], device=xpgrad_device, requires_grad=True)
    t = xp.asarray([1.0, -1.0], device=xpgrad_device)
    seen: list[Any] = []
    with levels.new_level() as level:
        y = level.dual(x, t)
        y.retain_grad()
        y.register_hook(lambda g: seen.append(level.tangent(g)))
        xp.sum(y**3).backward()
        assert not x.grad.requires_grad
        first = x.grad
        for total, slope in ((first, level.tangent(first)), (y.grad, level.tangent(y.grad))):
            assert values(total).tolist() == [3.0, 12.0]
            assert values(slope).tolist() == [6.0, -12.0]
        assert values(seen[0]).tolist() == [6.0, -12.0]
        xp.sum(level.dual(x, t) ** 2).backward()
        assert x.grad is first  # in place, as without tangents
        assert values(x.grad).tolist() == [5.0, 16.0]
        assert values(level.tangent(x.grad)).tolist() == [8.0, -14.0]
    assert values(x.grad).tolist() == [5.0, 16.0]


def test_a_pass_inside_a_hook_carries_tangents() -> None:
    """A nested pass runs on private copies of the nodes, whose saved values still have their tangents."""
    x, t = xp.tensor([1.0, 2.0], requires_grad=True), xp.asarray([1.0, 3.0])
    found: list[Any] = []
    with fw.dual_level():
        y = fw.make_dual(x, t)
        z = xp.sum(y**3)
        w = y * 2

        def hook(g: Any) -> None:
            (inside,) = grad(z, y, retain_graph=True)
            found.append((inside, fw.unpack_dual(inside).tangent))

        w.register_hook(hook)
        (g,) = grad(xp.sum(w * y), y)
        assert fw.unpack_dual(g).tangent.tolist() == [4.0, 12.0]
    assert found[0][0].tolist() == [3.0, 12.0]
    assert found[0][1].tolist() == [6.0, 36.0]


def test_the_tangent_of_a_seed_reaches_the_gradient() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = xp.sin(x)
    with fw.dual_level():
        seed = fw.make_dual(xp.asarray([1.0, 1.0]), xp.asarray([2.0, 3.0])).requires_grad_()
        (g,) = grad(y, x, seed)
        assert not g.requires_grad
        np.testing.assert_allclose(values(fw.unpack_dual(g).tangent), np.cos([1.0, 2.0]) * [2.0, 3.0], rtol=1e-12)


def test_outputs_whose_tensor_is_gone_keep_their_tangents() -> None:
    """An output that is saved by its node keeps its tangent after the Tensor is freed: here the eigenvectors."""
    a = linalg.positive((3, 3))
    direction = linalg.positive((3, 3)) * 0.3
    points = [a, direction]

    def slope(x: Any) -> Any:
        x = x if x.requires_grad else x.requires_grad_()
        return grad(xp.sum(xp.linalg.eigh(x)[0] ** 3), x)[0]

    with fw.dual_level():
        leaf = fw.make_dual(xp.tensor(points[0], requires_grad=True), xp.asarray(points[1]))
        tangent = fw.unpack_dual(slope(leaf)).tangent
    expected = [values(slope(xp.tensor(a + s * STEP * direction))) for s in (1, -1)]
    close(values(tangent), (expected[0] - expected[1]) / (2 * STEP), 1e-7)


def test_compiled_functions_have_tangents() -> None:
    pytest.importorskip("jax", reason="a backend that compiles")
    x = xp.tensor([1.0, 2.0], dtype="float32", device="jax", requires_grad=True)
    f = xp.compile(lambda x: xp.sum(xp.sin(x)))
    outside = f(x)
    _, slope = jvp(f, (x.detach(),), (xp.ones_like(x),))
    np.testing.assert_allclose(slope.item(), np.cos([1.0, 2.0]).sum(), rtol=1e-6)
    with fw.dual_level():
        seed = fw.make_dual(xp.ones_like(outside.detach()), 3 * xp.ones_like(outside.detach()))
        (g,) = grad(outside, x, seed)
        np.testing.assert_allclose(values(fw.unpack_dual(g).tangent), 3 * np.cos([1.0, 2.0]), rtol=1e-6)


# -- custom Functions ------------------------------------------------------------------------------------------------------------


class Cube(xp.autograd.Function):
    """``k x**3`` with handwritten derivatives."""

    @staticmethod
    def forward(x: Any, k: int) -> Any:
        return k * x * x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0], output)
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.k * x * x, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, dk: Any) -> Any:
        x, y = ctx.saved_tensors
        assert dk is None
        assert y.shape == x.shape
        return 3 * ctx.k * x * x * dx


@pytest.mark.parametrize("order", [o for n in (1, 2, 3) for o in itertools.product("dr", repeat=n)], ids="".join)
def test_custom_functions_nest(order: tuple[str, ...], xpgrad_device: str) -> None:
    f: Function = lambda x: Cube.apply(x, 2)  # noqa: E731 (it is wrapped below)
    for k in order:
        f = {"d": d, "r": r}[k](f)
    x = xp.tensor(2.0, dtype="float64", device=xpgrad_device)
    assert f(x).item() == [24.0, 24.0, 12.0][len(order) - 1]


def test_a_backward_that_differentiates_once_has_tangents() -> None:
    class Square(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @xp.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return dx * 2

    with fw.dual_level():
        x = fw.make_dual(xp.tensor(3.0, requires_grad=True), xp.tensor(5.0))
        for create in (False, True):
            (g,) = grad(Square.apply(x), x, create_graph=create)
            assert fw.unpack_dual(g).tangent.item() == 10.0


def function_of(forward: Function, jvp: Function) -> Any:
    return type("F", (xp.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def test_what_a_jvp_may_return() -> None:
    x, t = xp.tensor([1.0, 2.0]), xp.tensor([3.0, 4.0])
    given: list[Any] = []

    def two(ctx: Any, x: Any) -> Any:
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * 2, positive

    with fw.dual_level():
        y = fw.make_dual(x, t)
        out, mask = function_of(two, lambda ctx, dx: (dx * 2, None)).apply(y)
        assert fw.unpack_dual(out).tangent.tolist() == [6.0, 8.0]
        assert fw.unpack_dual(mask).tangent is None
        assert fw.unpack_dual(function_of(lambda ctx, x: x * 2, lambda ctx, dx: None).apply(y)).tangent is None
        with pytest.raises(RuntimeError, match="not a differentiable Tensor"):
            function_of(two, lambda ctx, dx: (dx * 2, dx)).apply(y)
        with pytest.raises(RuntimeError, match="different size"):
            function_of(lambda ctx, x: x * 2, lambda ctx, dx: xp.ones(3)).apply(y)
        with pytest.raises(TypeError, match="a tangent is a Tensor or None"):
            function_of(lambda ctx, x: x * 2, lambda ctx, dx: 3.0).apply(y)
        function_of(lambda ctx, x, k: x * k, lambda ctx, dx, dk: given.append(dk)).apply(y, xp.asarray([1, 2]))
        assert given == [None]
        # A view of the argument stays a view: a write to it reaches the argument's tangent.
        z = y * 1
        view = function_of(lambda ctx, x: x[:1], lambda ctx, dx: dx[:1]).apply(z)
        view.mul_(10)
        assert fw.unpack_dual(z).tangent.tolist() == [30.0, 4.0]


@pytest.mark.parametrize("key", [slice(None), slice(1)])
@pytest.mark.parametrize("through_view", [False, True])
def test_a_view_of_a_constant_argument_shares_its_tangent(key: slice, through_view: bool) -> None:
    """A write to a constant, or to the view of it that a Function returned, gives both the same tangents (FWD-12)."""
    view_of = function_of(lambda ctx, x, y: x[key], lambda ctx, dx, dy: dx[key])
    with fw.dual_level():
        moving = fw.make_dual(xp.tensor([1.0, 2.0]), xp.tensor([1.0, 1.0]))
        constant = xp.tensor([3.0, 4.0])
        view = view_of.apply(constant, moving)
        if through_view:
            view.mul_(moving[key])
        else:
            constant.mul_(moving)
        expected = [3.0, 4.0 if key == slice(None) or not through_view else 0.0]
        assert fw.unpack_dual(constant).tangent.tolist() == expected
        assert fw.unpack_dual(view).tangent.tolist() == expected[key]


@pytest.mark.parametrize("key", [..., slice(None), slice(1)])
def test_the_tangent_of_a_view_that_a_function_returned_has_a_history(key: Any) -> None:
    """If a Function returns a view, the view's tangent is differentiable with respect to the argument's (FWD-11)."""
    x, t = xp.tensor([1.0, 2.0]), xp.tensor([3.0, 5.0], requires_grad=True)
    with fw.dual_level():
        view = function_of(lambda ctx, x: x[key], lambda ctx, dx: dx[key]).apply(fw.make_dual(x, t) * 2.0)
        (g,) = grad(xp.sum(fw.unpack_dual(view * view).tangent), t)
    assert g.tolist() == [8.0, 0.0 if key == slice(1) else 16.0]


# -- gradcheck ----------------------------------------------------------------------------------------------------------------------


def wrong(backward: float, forward: float) -> Function:
    """Return ``x**2`` as a custom Function whose derivatives are multiplied by these factors."""

    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward * 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return forward * 2 * ctx.saved_tensors[0] * dx

    return F.apply


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_either_mode(fast: bool) -> None:
    x = xp.tensor([0.3, 0.7], dtype="float64", requires_grad=True)
    check_it = xp.autograd.gradcheck
    for backward, forward in itertools.product([1.0, 1.5], repeat=2):
        f = wrong(backward, forward)
        for both in ({"check_forward_ad": True}, {"check_backward_ad": True}, {"check_forward_ad": True, "check_backward_ad": False}):
            good = (forward == 1 or not both.get("check_forward_ad")) and (backward == 1 or not both.get("check_backward_ad", True))
            assert check_it(f, (x,), fast_mode=fast, raise_exception=False, **both) is good
        # The gradient's derivatives by forward and by reverse mode both differentiate `backward`.
        for both in ({"check_fwd_over_rev": True}, {"check_fwd_over_rev": True, "check_rev_over_rev": False}):
            assert xp.autograd.gradgradcheck(f, (x,), fast_mode=fast, **both)
    with pytest.raises(AssertionError, match="requires check_forward_ad to be True"):
        check_it(xp.sin, (x,), check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="requires check_backward_ad to be True"):
        check_it(xp.sin, (x,), check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)


def test_gradgradcheck_sees_a_wrong_second_derivative_by_forward_mode() -> None:
    x = xp.tensor([0.3, 0.7], dtype="float64", requires_grad=True)

    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return wrong(1.0, 1.5)(ctx.saved_tensors[0]) / ctx.saved_tensors[0].detach() * g * 2

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return dx

    assert xp.autograd.gradcheck(F.apply, (x,))
    assert not xp.autograd.gradgradcheck(F.apply, (x,), check_fwd_over_rev=True, check_rev_over_rev=False, raise_exception=False)


def test_gradcheck_sees_a_missing_tangent_that_is_not_zero() -> None:
    class F(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
            return (dx + dy) * 1.5 if dx is not None and dy is not None else dx if dy is None else dy

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    x, y = (xp.tensor([k], dtype="float64", requires_grad=True) for k in (0.3, 0.7))
    options = {"check_forward_ad": True, "check_backward_ad": False}
    assert xp.autograd.gradcheck(F.apply, (x, y), check_undefined_grad=False, **options)
    with pytest.raises(GradcheckError, match="missing tangent"):
        xp.autograd.gradcheck(F.apply, (x, y), **options)
