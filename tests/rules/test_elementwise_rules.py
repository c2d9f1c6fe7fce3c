"""Law: an elementwise custom rule acts in every composition of transforms like the same function written with Tensors.

The rules compute with NumPy, which no transform sees, so all their derivatives follow from their vjps.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import xpgrad as xp
from support.central_differences import check, loss, numbers, values
from xpgrad.autograd import custom_rule


def by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of NumPy arrays into one of Tensors that no transform sees inside."""

    def computed(*tensors: Any) -> Any:
        device = next(t.device for t in tensors if isinstance(t, xp.Tensor))
        out = function(*(t.numpy() if isinstance(t, xp.Tensor) else t for t in tensors))
        return tuple(xp.asarray(o, device=device) for o in out) if isinstance(out, tuple) else xp.asarray(out, device=device)

    return computed


@custom_rule(elementwise=True)
def sine(x: Any) -> Any:
    return by_numpy(np.sin)(x)


@custom_rule(elementwise=True)
def cosine(x: Any) -> Any:
    return by_numpy(np.cos)(x)


@sine.vjp
def _(g: Any, x: Any) -> Any:
    return g * xp.conj(cosine(x))


@cosine.vjp
def _(g: Any, x: Any) -> Any:
    return -g * xp.conj(sine(x))


@custom_rule(elementwise=True)
def wave(x: Any, y: Any) -> Any:
    """Rule with two operands that broadcast, whose vjp reads its result."""
    return by_numpy(lambda x, y: np.sin(x) * np.exp(y))(x, y)


@wave.vjp
def _(g: Any, x: Any, y: Any, out: Any) -> Any:
    return g * cosine(x) * xp.exp(y), g * out


@custom_rule(elementwise=True)
def product(z: Any, w: Any) -> Any:
    """Holomorphic rule, one of whose operands may be real."""
    return by_numpy(np.multiply)(z, w)


@product.vjp
def _(g: Any, z: Any, w: Any) -> Any:
    to_z, to_w = g * xp.conj(w), g * xp.conj(z)
    return to_z if z.dtype.is_complex else xp.real(to_z), to_w if w.dtype.is_complex else xp.real(to_w)


@custom_rule(elementwise=True)
def mixed(z: Any, w: Any) -> Any:
    """Complex rule that is not holomorphic."""
    return by_numpy(lambda z, w: z * np.conj(w) + w)(z, w)


@mixed.vjp
def _(g: Any, z: Any, w: Any) -> Any:
    return g * w, xp.conj(g) * z + g


@custom_rule(elementwise=True)
def overlap(z: Any, w: Any) -> Any:
    """Rule with a real result of complex operands."""
    return by_numpy(lambda z, w: np.real(z * np.conj(w)))(z, w)


@overlap.vjp
def _(g: Any, z: Any, w: Any) -> Any:
    return g * w, g * z


@custom_rule(elementwise=True)
def joined(x: Any, y: Any) -> Any:
    """Rule with a complex result of real operands."""
    return by_numpy(lambda x, y: x + 1j * y)(x, y)


@joined.vjp
def _(g: Any) -> Any:
    return xp.real(g), xp.imag(g)


@custom_rule(elementwise=True)
def polar(r: Any, t: Any) -> Any:
    """Rule with two results, and one without a derivative."""
    return by_numpy(lambda r, t: (r * np.cos(t), r * np.sin(t), np.floor(r + t).astype(np.int64)))(r, t)


@polar.vjp
def _(g: Any, r: Any, t: Any) -> Any:
    a, b = g[0] * xp.cos(t) + g[1] * xp.sin(t), g[1] * r * xp.cos(t) - g[0] * r * xp.sin(t)
    return a, b


class Case(NamedTuple):
    """A rule, the same function in terms of Tensors, and the dtypes of its operands."""

    rule: Any
    plain: Callable[..., Any]
    dtypes: tuple[Any, ...]


real, complex_ = np.float64, np.complex128
CASES = {
    "sine": Case(sine, xp.sin, (real,)),
    "complex sine": Case(sine, xp.sin, (complex_,)),
    "wave": Case(wave, lambda x, y: xp.sin(x) * xp.exp(y), (real, real)),
    "product": Case(product, lambda z, w: z * w, (complex_, complex_)),
    "product of real and complex": Case(product, lambda z, w: z * w, (real, complex_)),
    "mixed": Case(mixed, lambda z, w: z * xp.conj(w) + w, (complex_, complex_)),
    "overlap": Case(overlap, lambda z, w: xp.real(z * xp.conj(w)), (complex_, complex_)),
    "joined": Case(joined, lambda x, y: x + 1j * y, (real, real)),
    "polar": Case(polar, lambda r, t: (r * xp.cos(t), r * xp.sin(t), xp.astype(xp.floor(r + t), xp.int64)), (real, real)),
}


def smooth(out: Any) -> Any:
    """Return the differentiable results, as one Tensor or a tuple."""
    return tuple(o for o in out if o.dtype.differentiable) if isinstance(out, tuple) else out


@st.composite
def compositions(draw: Any) -> tuple[str, list[tuple[Any, ...]], list[tuple[int, ...]]]:
    """Draw the name of a case, transforms from the innermost outwards, and the shapes of the outermost function's arguments."""
    name = draw(st.sampled_from(sorted(CASES)))
    count = len(CASES[name].dtypes)
    shapes = list(draw(mutually_broadcastable_shapes(num_shapes=count, max_dims=2, max_side=3)).input_shapes)
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["grad", "jvp", "vmap", "vmap", "checkpoint"]))
        if kind == "vmap":
            dims = draw(st.tuples(*(st.one_of(st.none(), st.integers(0, len(s))) for s in shapes)).filter(lambda d: set(d) != {None}))
            shapes = [s if d is None else (*s[:d], 2, *s[d:]) for s, d in zip(shapes, dims)]
            steps.append((kind, dims))
        else:
            steps.append((kind, draw(st.integers(0, count - 1))))
    return name, steps, shapes


def transformed(function: Callable[..., Any], steps: list[tuple[Any, ...]]) -> Callable[..., Any]:
    for kind, how in steps:
        function = {
            "grad": lambda f, k: xp.func.grad(lambda *xs: loss(f(*xs)), argnums=k),
            "jvp": lambda f, _: lambda *xs: xp.func.jvp(lambda *ys: smooth(f(*ys)), xs, tuple(0.5 * x + 1.0 for x in xs))[1],
            "vmap": lambda f, dims: xp.func.vmap(f, in_dims=dims),
            "checkpoint": lambda f, _: lambda *xs: xp.utils.checkpoint.checkpoint(f, *xs, use_reentrant=False),
        }[kind](function, how)
    return function


def outputs(out: Any) -> list[np.ndarray]:
    return [values(o) for o in (out if isinstance(out, tuple) else (out,))]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(compositions())
def test_rules_compose_as_functions_of_tensors_do(composition: Any) -> None:
    name, steps, shapes = composition
    rule, plain, dtypes = CASES[name]
    given_ = [xp.asarray(numbers(s, 1.0 + k, d)) for k, (s, d) in enumerate(zip(shapes, dtypes))]
    for got, wanted in zip(outputs(transformed(rule, steps)(*given_)), outputs(transformed(plain, steps)(*given_)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_differences(case: str, xpgrad_device: str) -> None:
    rule, _, dtypes = CASES[case]
    check(lambda *xs: rule(*xs), tuple(numbers((2, 3)[k:], 1.0 + k, d) for k, d in enumerate(dtypes)), xpgrad_device)


@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
def test_second_derivatives_in_each_mode(outer: str, inner: str, xpgrad_device: str) -> None:
    x, y = (xp.asarray(numbers(s, 1.0), device=xpgrad_device) for s in ((2, 1), (3,)))

    def whole(f: Any) -> Any:
        first = getattr(xp.func, inner)(lambda x, y: loss(f(x, y)), argnums=(0, 1))
        return getattr(xp.func, outer)(lambda x, y: first(x, y)[0] + xp.sum(first(x, y)[1]), argnums=1)(x, y)

    np.testing.assert_allclose(
        values(whole(wave)), values(whole(CASES["wave"].plain)), rtol=2e-4 if values(x).dtype == np.float32 else 1e-10
    )
    hessian = xp.func.hessian(lambda y: loss(wave(x, y)))(y)
    wanted = xp.func.hessian(lambda y: loss(CASES["wave"].plain(x, y)))(y)
    np.testing.assert_allclose(values(hessian), values(wanted), rtol=2e-4 if values(x).dtype == np.float32 else 1e-10)


def test_linear_maps_and_gradcheck() -> None:
    x, y = (xp.tensor(numbers(s, 1.0), requires_grad=True) for s in ((2, 1), (3,)))
    assert xp.autograd.gradcheck(wave, (x, y), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert xp.autograd.gradgradcheck(wave, (x, y))
    z, w = (xp.tensor(numbers(s, 1.0, np.complex128), requires_grad=True) for s in ((2, 1), (3,)))
    assert xp.autograd.gradcheck(mixed, (z, w), check_forward_ad=True)
    out, along = xp.func.linearize(wave, x.detach(), y.detach())
    _, wanted = xp.func.jvp(CASES["wave"].plain, (x.detach(), y.detach()), (y.detach()[:2, None], y.detach()))
    np.testing.assert_allclose(values(along(y.detach()[:2, None], y.detach())), values(wanted), rtol=1e-12)
    assert out.shape == (2, 3)


def test_infinite_derivatives_of_constants_do_not_matter() -> None:
    """An infinite derivative in a constant operand makes no NaN, because only operands with a tangent count."""

    @custom_rule(elementwise=True)
    def scaled_root(x: Any, y: Any) -> Any:
        return xp.sqrt(x) * y

    @scaled_root.vjp
    def _(g: Any, x: Any, y: Any) -> Any:
        return g * y / (2.0 * xp.sqrt(x)), g * xp.sqrt(x)

    x, y = xp.asarray([0.0, 4.0]), xp.asarray([3.0, 3.0])
    with np.errstate(divide="ignore"):
        assert xp.func.jvp(lambda y: scaled_root(x, y), (y,), (y,))[1].tolist() == [0.0, 6.0]


def test_numbers_statics_and_none() -> None:
    @custom_rule(elementwise=True)
    def power(x: Any, shift: Any, n: int = 2, *, scale: float = 1.0) -> Any:
        return by_numpy(lambda x, shift: scale * x**n + shift)(x, shift)

    @power.vjp
    def _(g: Any, x: Any, n: int, scale: float) -> Any:
        return g * scale * n * x ** (n - 1), None

    x = xp.asarray([1.0, 2.0])
    assert xp.func.vmap(lambda x: power(x, 1.0, 3, scale=2.0))(x).tolist() == [3.0, 17.0]
    assert xp.func.vmap(xp.func.grad(lambda x: power(x, 1.0, 3, scale=2.0)))(x).tolist() == [6.0, 24.0]
    assert xp.func.jvp(lambda x: power(x, x), (x,), (x,))[1].tolist() == [2.0, 8.0]
    assert xp.func.jvp(lambda y: power(1.0, y), (x,), (x,))[1].tolist() == [0.0, 0.0]


def test_a_batch_is_one_call_and_an_own_rule_comes_first() -> None:
    calls: list[tuple[int, ...]] = []

    @custom_rule(elementwise=True)
    def total(x: Any, y: Any) -> Any:
        calls.append((x.shape, y.shape))
        return by_numpy(np.add)(x, y)

    @total.vjp
    def _(g: Any, x_shape: Any) -> Any:
        return g, g

    x, y = xp.asarray(numbers((4, 3))), xp.asarray(numbers((2, 3, 4)))
    assert xp.func.vmap(total, in_dims=(0, 2))(x, y).shape == (4, 2, 3)
    assert xp.func.vmap(xp.func.vmap(total, in_dims=(None, 0)), in_dims=(0, 0))(x[:2], y[:, :, :3]).shape == (2, 3, 3)
    assert calls == [((4, 1, 3), (4, 2, 3)), ((2, 1, 3), (2, 3, 3))]

    @total.vmap
    def _(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        calls.append(in_dims)
        return total(x, y), 0

    assert xp.func.vmap(total)(x, x).shape == (4, 3)
    assert calls[2:] == [(0, 0), ((4, 3), (4, 3))]


def test_a_rule_for_batches() -> None:
    """A function of whole rows that NumPy computes works with a declared vmap and jvp."""

    @custom_rule
    def running(x: Any, *, reverse: bool = False) -> Any:
        a = x.numpy()
        return xp.asarray(np.cumsum(a[..., ::-1], -1)[..., ::-1] if reverse else np.cumsum(a, -1))

    @running.vjp
    def _(g: Any, reverse: bool) -> Any:
        return running(g, reverse=not reverse)

    x = xp.asarray(numbers((2, 3)))
    with pytest.raises(RuntimeError, match="Batching rule not implemented") as caught:
        xp.func.vmap(running)(x)
    (note,) = caught.value.__notes__
    assert "`@running.vmap`" in note
    assert "elementwise=True" in note
    with pytest.raises(NotImplementedError, match=r"running has no jvp.*`@running\.jvp`.*elementwise=True"):
        xp.func.jvp(running, (x,), (x,))

    @running.vmap
    def _(info: Any, in_dims: Any, x: Any, reverse: bool) -> Any:
        assert info.batch_size == x.shape[in_dims[0]]
        return running(xp.moveaxis(x, in_dims[0], 0), reverse=reverse), 0

    @running.jvp
    def _(d_x: Any, reverse: bool) -> Any:
        return running(d_x, reverse=reverse)

    np.testing.assert_allclose(values(xp.func.vmap(running, in_dims=1)(x.T)), np.cumsum(values(x), -1))
    for transform in (xp.func.jacrev, xp.func.jacfwd):
        np.testing.assert_allclose(values(xp.func.vmap(transform(running))(x)), np.broadcast_to(np.tri(3), (2, 3, 3)))
    with pytest.raises(TypeError, match=r"the vmap of running is called with \(info, in_dims, x, reverse\), but does not take"):
        running.vmap(lambda info, x: x)


def test_compiled_functions_have_the_rules_gradients() -> None:
    """A compiled rule uses its vjp and not the derivative of its forward; a rule that computes with NumPy raises."""

    @custom_rule(elementwise=True)
    def rounded(x: Any) -> Any:
        return xp.round(x)

    @rounded.vjp
    def _(g: Any, x: Any) -> Any:
        return 2.0 * g * x

    x = xp.tensor([0.4, 1.6], requires_grad=True)
    compiled = xp.compile(lambda x: 3.0 * rounded(x))
    for _ in range(2):
        out = compiled(x)
        assert out.tolist() == [0.0, 6.0]
        np.testing.assert_allclose(values(xp.autograd.grad(xp.sum(out), x)[0]), [2.4, 9.6])
    with pytest.raises(xp.CaptureError, match="a value was asked for"):
        xp.compile(sine)(x)
    with pytest.warns(UserWarning, match="runs as it is"):
        np.testing.assert_allclose(values(xp.compile(sine, fallback=True)(x)), np.sin([0.4, 1.6]))


def test_a_result_does_not_outlive_its_last_reference() -> None:
    """A result that the vjp reads is freed with its last reference: no cycle with its node is left."""
    x = xp.tensor([1.0], requires_grad=True)
    gc.disable()
    try:
        y = wave(x, x)
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_wrong_elementwise_rules_are_refused() -> None:
    x, y = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    whole = custom_rule(lambda x: xp.sum(x), elementwise=True)
    with pytest.raises(
        RuntimeError, match=r"returned the shape \(\) for operands of the shapes x \(2,\); its results must have the shape to"
    ):
        whole(x)
    product = custom_rule(lambda x, y: x @ y, elementwise=True)
    with pytest.raises(RuntimeError, match=r"returned the shape \(1,\) for operands of the shapes x \(3,\), y \(3, 1\)"):
        product(xp.asarray([1.0, 2.0, 3.0]), y)
    raw = custom_rule(lambda x: np.sin(x.numpy()), elementwise=True)
    with pytest.raises(TypeError, match="returned a raw array of type ndarray, which has no gradient; wrap it"):
        raw(x.detach())
    with pytest.raises(TypeError, match="returned a raw array"):
        custom_rule(lambda x: np.sin(x.detach().numpy()))(x)
    with pytest.raises(TypeError, match="returned float, but an elementwise rule returns Tensors"):
        custom_rule(lambda x: 1.0, elementwise=True)(x)
    summed = custom_rule(lambda x, y: x * y, elementwise=True)
    summed.vjp(lambda g, x, y: (xp.sum(g * y, axis=0), g * x))
    message = r"returned for x a gradient of the shape \(2,\); return None or a Tensor of the result's shape \(3, 2\)"
    with pytest.raises(RuntimeError, match=message):
        xp.sum(summed(x, y)).backward()
    with pytest.raises(RuntimeError, match=message):
        xp.func.jvp(summed, (x, y), (x, y))
    bare = custom_rule(lambda x: 1.0 * x, elementwise=True)
    for use in (lambda: xp.sum(bare(x)).backward(), lambda: xp.func.jvp(bare, (x,), (x,))):
        with pytest.raises(NotImplementedError, match="has no vjp, so it cannot be differentiated"):
            use()
    with pytest.raises(TypeError, match="`elementwise` must be a bool, but got str 'yes'"):
        custom_rule(elementwise="yes")(lambda x: x)  # type: ignore[call-overload]
