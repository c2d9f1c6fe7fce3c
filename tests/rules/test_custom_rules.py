"""Law: a custom rule differentiates by its formulas and nothing else, to any order and inside transforms.

The references are handwritten derivatives and central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import check, loss, numbers, values
from xpgrad.autograd import custom_rule


@custom_rule
def softplus(x: Any, *, beta: float = 1.0) -> Any:
    """Rule that saves an operand and has a static argument."""
    return xp.log1p(xp.exp(beta * x)) / beta


@softplus.vjp
def _(g: Any, x: Any, beta: float) -> Any:
    return g / (1.0 + xp.exp(-beta * x))


@softplus.jvp
def _(d_x: Any, x: Any, beta: float) -> Any:
    return d_x / (1.0 + xp.exp(-beta * x))


@custom_rule
def logistic(x: Any) -> Any:
    """Rule that saves its result."""
    return 1.0 / (1.0 + xp.exp(-x))


@logistic.vjp
def _(g: Any, out: Any) -> Any:
    return g * out * (1.0 - out)


@logistic.jvp
def _(out: Any, d_x: Any) -> Any:
    return out * (1.0 - out) * d_x


@custom_rule(static="n")
def power(x: Any, n: int) -> Any:
    """Rule with a static argument declared by name."""
    return x**n


@power.vjp
def _(g: Any, x: Any, n: int) -> Any:
    return g * n * x ** (n - 1)


@power.jvp
def _(d_x: Any, x: Any, n: int) -> Any:
    return d_x * n * x ** (n - 1)


@custom_rule
def product(x: Any, y: Any) -> Any:
    """Rule with two operands that broadcast; gradients are summed to the operands' shapes."""
    return x * y


@product.vjp
def _(g: Any, x: Any, y: Any) -> Any:
    return g * y, g * x


@product.jvp
def _(x: Any, y: Any, d_x: Any, d_y: Any) -> Any:
    return d_x * y + x * d_y


@custom_rule(static=())
def affine(x: Any, w: Any, b: Any = None) -> Any:
    """Rule with an operand that may be left out."""
    return x @ w if b is None else x @ w + b


@affine.vjp
def _(g: Any, x: Any, w: Any) -> Any:
    return g @ w.T, x.T @ g, g


@custom_rule
def polar(r: Any, t: Any) -> Any:
    """Rule with two results, which its vjp reads."""
    return r * xp.cos(t), r * xp.sin(t)


@polar.vjp
def _(g: Any, r: Any, out: Any) -> Any:
    return (g[0] * out[0] + g[1] * out[1]) / r, g[1] * out[0] - g[0] * out[1]


@polar.jvp
def _(r: Any, out: Any, d_r: Any, d_t: Any) -> Any:
    return d_r * out[0] / r - d_t * out[1], d_r * out[1] / r + d_t * out[0]


@custom_rule(elementwise=True)
def hill(x: Any, y: Any) -> Any:
    """Elementwise rule, whose jvp and vmap follow from its vjp."""
    return xp.exp(-x * y)


@hill.vjp
def _(g: Any, x: Any, y: Any, out: Any) -> Any:
    return -g * y * out, -g * x * out


@custom_rule
def mean(x: Any) -> Any:
    """Rule that saves only a shape and a dtype."""
    return xp.mean(x)


@mean.vjp
def _(g: Any, x_shape: Any, x_dtype: Any, out_shape: Any) -> Any:
    assert out_shape == ()
    return xp.astype(xp.broadcast_to(g, x_shape), x_dtype) / int(np.prod(x_shape))


@custom_rule
def square(z: Any) -> Any:
    """Rule for the square of complex numbers."""
    return z * z


@square.vjp
def _(g: Any, z: Any) -> Any:
    return g * 2.0 * xp.conj(z)


@custom_rule
def length(z: Any) -> Any:
    """Rule with a real result of complex operands."""
    return xp.real(z * xp.conj(z))


@length.vjp
def _(g: Any, z: Any) -> Any:
    return 2.0 * g * z


@custom_rule
def sorted_with_places(x: Any) -> Any:
    """Rule with an integer result and a differentiable one."""
    order = xp.argsort(x)
    return xp.take(x, order), order


@sorted_with_places.vjp
def _(g: Any, out: Any) -> Any:
    return xp.take(g[0], xp.argsort(out[1]))


@custom_rule
def halves(x: Any) -> Any:
    """Rule with several results, of which only shapes and dtypes are read."""
    return x[:1] * 2.0, x[1:] * 3.0


@halves.vjp
def _(g: Any, out_shape: Any, out_dtype: Any) -> Any:
    assert out_dtype == (g[0].dtype, g[1].dtype)
    return xp.concat([2.0 * xp.broadcast_to(g[0], out_shape[0]), 3.0 * xp.broadcast_to(g[1], out_shape[1])])


class Exponential(xp.autograd.Function):
    """A Function in the long form, with an attribute on `ctx` and an operand after a static argument."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scale: float, x: Any) -> Any:
        return xp.exp(scale * x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.scale = inputs[0]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (out,) = ctx.saved_tensors
        return None, ctx.scale * g * out


class Marked(xp.autograd.Function):
    """A Function whose second result is declared constant although it depends on the input."""

    @staticmethod
    def forward(x: Any) -> Any:
        return 2.0 * x, 3.0 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        assert b is not None
        return 2.0 * a + 100.0 * b


wide = custom_rule(lambda x: 2.0 * x)
wide.vjp(lambda g: xp.astype(2.0 * g, xp.float64))
misfit = custom_rule(lambda x: 2.0 * x)
misfit.vjp(lambda g: xp.concat([g, g, g])[1:])
unreal = custom_rule(lambda x: 2.0 * x)
unreal.vjp(lambda g: g * 2.0j)


class Case(NamedTuple):
    """A rule, the equivalent plain function of a namespace, the call's points, and its other arguments."""

    rule: Any
    plain: Callable[..., Any]
    points: tuple[np.ndarray, ...]
    statics: dict[str, Any] = {}  # noqa: RUF012 (it is never written to)
    forward_mode: bool = True


A, B = numbers((3,)), numbers((2, 3), 2.0)
C = numbers((3,), 1.5, np.complex128)
CASES = {
    "softplus": Case(softplus, lambda n, x, beta=1.0: n.log1p(n.exp(beta * x)) / beta, (B,)),
    "softplus, steeper": Case(softplus, lambda n, x, beta: n.log1p(n.exp(beta * x)) / beta, (A,), {"beta": 2.5}),
    "logistic": Case(logistic, lambda n, x: 1.0 / (1.0 + n.exp(-x)), (B,)),
    "power": Case(power, lambda m, /, x, **k: x**3, (B,), {"n": 3}),
    "product": Case(product, lambda n, x, y: x * y, (B, A)),
    "product with a scalar": Case(product, lambda n, x, y: x * y, (numbers(()), B)),
    "affine": Case(affine, lambda n, x, w, b: x @ w + b, (B, numbers((3, 2)), numbers((2,))), forward_mode=False),
    "affine without b": Case(affine, lambda n, x, w: x @ w, (B, numbers((3, 2))), forward_mode=False),
    "polar": Case(polar, lambda n, r, t: (r * n.cos(t), r * n.sin(t)), (A + 3.0, A)),
    "hill": Case(hill, lambda n, x, y: n.exp(-x * y), (B, A)),
    "mean": Case(mean, lambda n, x: n.mean(x), (B,), forward_mode=False),
    "square": Case(square, lambda n, z: z * z, (C,), forward_mode=False),
    "length": Case(length, lambda n, z: n.real(z * n.conj(z)), (C,), forward_mode=False),
    "sorted": Case(sorted_with_places, lambda n, x: (n.sort(x), n.argsort(x)), (A,), forward_mode=False),
    "halves": Case(halves, lambda n, x: (x[:1] * 2.0, x[1:] * 3.0), (A,), forward_mode=False),
    "exponential": Case(Exponential, lambda n, x: n.exp(0.5 * x), (B,), forward_mode=False),
}


def as_function(rule: Any, statics: dict[str, Any]) -> Callable[..., Any]:
    """Return the rule as a function of its operands only."""
    if rule is Exponential:
        return lambda x: Exponential.apply(0.5, x)
    return lambda *xs: rule(*xs, **statics)


@pytest.mark.parametrize("case", CASES)
def test_rules_agree_with_differences(case: str, xpgrad_device: str) -> None:
    """First and second derivatives agree with differences, and so does forward mode if the rule has a jvp."""
    rule, plain, points, statics, forward_mode = CASES[case]
    function = as_function(rule, statics)
    check(function, points, xpgrad_device)
    for got, wanted in zip(outputs(function(*map(xp.asarray, points))), outputs(plain(np, *points, **statics)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    if forward_mode:
        primals = tuple(xp.tensor(p, device=xpgrad_device) for p in points)
        directions = tuple(xp.tensor(numbers(p.shape, 4.0), device=xpgrad_device) for p in points)
        _, tangent = xp.func.jvp(lambda *xs: loss(function(*xs)), primals, directions)
        leaves = [p.detach().requires_grad_() for p in primals]
        grads = xp.autograd.grad(loss(function(*leaves)), leaves)
        np.testing.assert_allclose(values(tangent), sum(np.sum(values(g) * values(d)) for g, d in zip(grads, directions)), rtol=1e-10)


def outputs(out: Any) -> list[np.ndarray]:
    return [np.asarray(o.detach().numpy() if isinstance(o, xp.Tensor) else o) for o in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("square", "length")])
def test_rules_inside_of_vmap(case: str) -> None:
    """A batch gives the values and gradients that a loop gives."""
    rule, _, points, statics, _ = CASES[case]
    function = as_function(rule, statics)
    batch = [np.stack([p, 0.5 * p + 0.1, -p + 0.3]) if case != "polar" else np.stack([p, p + 0.2, p + 0.3]) for p in points]

    def gradients(*xs: Any) -> Any:
        return xp.func.grad(lambda *ys: loss(function(*ys)), argnums=tuple(range(len(xs))))(*xs)

    for f in (function, gradients):
        found = outputs(xp.func.vmap(f)(*map(xp.asarray, batch)))
        rows = [outputs(f(*(xp.asarray(b[k]) for b in batch))) for k in range(3)]
        for k, row in enumerate(zip(*rows)):
            np.testing.assert_allclose(found[k], np.stack(row), rtol=1e-12)


def test_what_is_saved_is_what_formulas_read() -> None:
    x = xp.tensor(np.ones((4, 8)), requires_grad=True)
    nodes = {"softplus": softplus(x), "logistic": logistic(x), "mean": mean(x), "product": product(x, x)}
    held = {name: [h.shape for h in y.grad_fn.held()] for name, y in nodes.items()}
    assert held == {"softplus": [(4, 8)], "logistic": [(4, 8)], "mean": [], "product": [(4, 8), (4, 8)]}
    assert nodes["softplus"].grad_fn.name() == "SoftplusBackward"
    assert sorted_with_places(x[0])[0].grad_fn.name() == "SortedWithPlacesBackward"
    y = logistic(x * 1.0)
    y += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(y).backward()


def test_any_gradient_may_be_declared() -> None:
    """A rule may declare a gradient that is not a derivative."""

    @custom_rule
    def straight(x: Any) -> Any:
        return xp.round(x)

    @straight.vjp
    def _(g: Any) -> Any:
        return g

    @custom_rule
    def reversed_gradient(x: Any, strength: float = 1.0) -> Any:
        return x

    @reversed_gradient.vjp
    def _(g: Any, x: Any, strength: float) -> Any:
        return -strength * g * (x / x)

    x = xp.tensor([1.4, 2.6], requires_grad=True)
    y = straight(x)
    assert y.tolist() == [1.0, 3.0]
    (y * xp.asarray([2.0, 3.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 3.0]
    y = reversed_gradient(x, 0.5)
    assert y is not x
    (g,) = xp.autograd.grad(xp.sum(y), x)
    assert g.tolist() == [-0.5, -0.5]


def test_operands_may_be_numbers_and_gradients_none() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    (g,) = xp.autograd.grad(xp.sum(product(x, 3.0)), x)
    assert g.tolist() == [3.0, 3.0]
    assert product(xp.asarray([1.0, 2.0]), 3.0).requires_grad is False

    @custom_rule
    def select(x: Any, where: Any) -> Any:
        return xp.where(where, x, 0.0 * x)

    @select.vjp
    def _(g: Any, where: Any) -> Any:
        return xp.where(where, g, 0.0 * g), None

    (g,) = xp.autograd.grad(xp.sum(select(x, xp.asarray([True, False]))), x)
    assert g.tolist() == [1.0, 0.0]
    y = xp.tensor([1.0, 2.0], requires_grad=True)

    @custom_rule
    def first(x: Any, y: Any) -> Any:
        return x + y

    @first.vjp
    def _(g: Any) -> Any:
        return g, None

    assert xp.autograd.grad(xp.sum(first(x, y)), [x, y], allow_unused=True)[1] is None


def test_the_rule_can_be_bound_to_its_own_name() -> None:
    @custom_rule
    def double(x: Any) -> Any:
        """Twice."""
        return 2.0 * x

    rule = double

    @double.vjp
    def double(g: Any) -> Any:
        return 2.0 * g

    assert double is rule
    assert (double.__name__, double.__doc__) == ("double", "Twice.")
    assert repr(double).startswith("<custom rule double(x")
    assert (softplus.operands, softplus.static) == (("x",), ("beta",))
    x = xp.tensor(3.0, requires_grad=True)
    assert xp.autograd.grad(double(x=x), x)[0].item() == 2.0
    assert double(x).tolist() == 6.0


def test_wrong_declarations_are_refused() -> None:
    rule = custom_rule(lambda x, *, n=1: x)
    for declare, phrase in [
        (lambda: rule.vjp(lambda g, y: g), r"the vjp of <lambda> has parameters \['y'\], but it can read these only: g, x, out, n"),
        (lambda: rule.vjp(lambda x: x), "does not read 'g'"),
        (lambda: rule.vjp(lambda g, *rest: g), r"has parameters \['\*rest'\]"),
        (lambda: rule.vjp(lambda g, d_x: g), r"parameters \['d_x'\]"),
        (lambda: rule.jvp(lambda g, x: g), r"the jvp of <lambda> has parameters \['g'\]"),
        (lambda: custom_rule(lambda *xs: xs), r"the parameter \*xs"),
        (lambda: custom_rule(lambda *, n: n), "has no operand to differentiate"),
        (lambda: custom_rule(lambda g, x: x), r"has parameters \['g'\]"),
        (lambda: custom_rule(lambda x, x_shape: x), r"has parameters \['x_shape'\]"),
        (lambda: custom_rule(static="m")(lambda x: x), r"static=\['m'\] are not parameters"),
    ]:
        with pytest.raises(TypeError, match=phrase):
            declare()


def test_wrong_calls_are_refused() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="'beta' is a static argument, but got a Tensor, whose gradient would be lost"):
        softplus(x, beta=x)
    with pytest.raises(TypeError, match=r"raw array of type ndarray; wrap it with `xpgrad\.asarray"):
        softplus(np.ones(1))
    with pytest.raises(TypeError, match="unexpected keyword"):
        softplus(x, gamma=1.0)
    lists = custom_rule(lambda x: [x])
    with pytest.raises(TypeError, match="returned a list"):
        lists(x)
    bare = custom_rule(lambda x: x * 1.0)
    with pytest.raises(NotImplementedError, match="has no vjp, so it cannot be differentiated"):
        bare(x).backward()
    with pytest.raises(NotImplementedError, match="jvp"):
        xp.func.jvp(mean, (x,), (x,))
    short = custom_rule(lambda x, n: x * n)
    short.vjp(lambda g, n: g * n)
    with pytest.raises(RuntimeError, match=r"returned 1 gradient, but there are 2 operands \(x, n\)"):
        short(x, 3.0).backward()
