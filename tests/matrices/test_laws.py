"""Law: functions of matrices have SciPy's values and the derivatives of differences, to second order, in batches and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right, and computes some")

import xpgrad as xp
from matrices.table import CASES, KINDS, apply_per_element
from support.central_differences import cast_for_device, check, loosen, loss, numbers, values
from xpgrad.scipy import linalg

every = pytest.mark.parametrize("name", CASES)
kinds = pytest.mark.parametrize("dtype", KINDS, ids=lambda t: np.dtype(t).name)


def bind_case(name: str) -> Any:
    return lambda *xs: CASES[name].call(linalg, *xs)


def parts(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


def tensors(arrays: Any, device: str, **options: Any) -> list[Any]:
    return [xp.tensor(cast_for_device(a, device), device=device, **options) for a in arrays]


def loss_and_gradients(name: str) -> Any:
    """Return the real loss, and the function that computes its gradients."""
    count = len(CASES[name].ranks)
    total = lambda *xs: loss(bind_case(name)(*xs))  # noqa: E731 (one of a pair)
    return total, xp.func.grad(total, argnums=tuple(range(count)))


@pytest.mark.slow(one_in=3)
@every
@kinds
def test_values_are_scipys(name: str, dtype: Any, xpgrad_device: str) -> None:
    arrays = CASES[name].arrays(dtype)
    found = parts(bind_case(name)(*tensors(arrays, xpgrad_device)))
    expected = parts(apply_per_element(CASES[name], arrays))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        assert a.device == xpgrad_device
        exact = all(cast_for_device(x, xpgrad_device).dtype == x.dtype for x in arrays)
        np.testing.assert_allclose(values(a), b, rtol=0, atol=(1e-13 if exact else 1e-4) * max(1.0, np.abs(b).max()))


@every
@kinds
def test_derivatives_are_those_of_differences(name: str, dtype: Any, xpgrad_device: str) -> None:
    check(bind_case(name), CASES[name].arrays(dtype), xpgrad_device)


@pytest.mark.slow(one_in=6)
@every
@kinds
def test_forward_mode_is_reverse_mode(name: str, dtype: Any, xpgrad_device: str) -> None:
    arrays = CASES[name].arrays(dtype)
    xs, ds = (tuple(tensors(a, xpgrad_device)) for a in (arrays, [numbers(a.shape, 7.0, dtype) for a in arrays]))
    total, gradients = loss_and_gradients(name)

    def along(gs: Any) -> float:
        return sum(float(np.real(np.sum(np.conj(values(g)) * values(d)))) for g, d in zip(gs, ds))

    tolerance = loosen(1e-10, xpgrad_device, *arrays)
    found = xp.func.jvp(total, xs, ds)[1].item()
    assert abs(found - along(gradients(*xs))) <= tolerance * max(1.0, abs(found))
    # Forward over reverse agrees with reverse over reverse.
    moved = loss(xp.func.jvp(gradients, xs, ds)[1])
    leaves = tensors(arrays, xpgrad_device, requires_grad=True)
    grads = xp.autograd.grad(total(*leaves), leaves, create_graph=True)
    inner = sum((xp.sum(xp.real(xp.conj(g) * d)) for g, d in zip(grads, ds)), xp.zeros((), dtype=grads[0].real.dtype, device=xpgrad_device))
    again = xp.autograd.grad(inner, leaves, allow_unused=True)
    expected = loss([xp.zeros_like(x) if g is None else g for g, x in zip(again, leaves)]).item()
    assert abs(moved.item() - expected) <= tolerance * max(1.0, abs(expected))


@pytest.mark.slow(one_in=20)
@every
@kinds
def test_batches_are_loops(name: str, dtype: Any, xpgrad_device: str) -> None:
    arrays = CASES[name].arrays(dtype)
    xs = tensors(arrays, xpgrad_device)
    _, gradients = loss_and_gradients(name)
    tolerance = loosen(1e-10, xpgrad_device, *arrays)
    count = len(xs)
    for which in [(True,) * count, *([tuple(i == j for j in range(count)) for i in range(count)] if count > 1 else [])]:
        given = [xp.stack([x, x * 1.05 + 0.01]) if w else x for x, w in zip(xs, which)]
        axes = tuple(0 if w else None for w in which)
        for function in (bind_case(name), gradients):
            found = parts(xp.func.vmap(function, in_dims=axes)(*given))
            for k in range(2):
                one = parts(function(*(x[k] if w else x for x, w in zip(given, which))))
                for a, b in zip(found, one):
                    np.testing.assert_allclose(values(a)[k], values(b), rtol=0, atol=tolerance * max(1.0, float(np.abs(values(b)).max())))


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("lstsq", "polar"))])
def test_outputs_of_separate_calls_add_up(name: str, xpgrad_device: str) -> None:
    """Law: gradients are those of one call if each output is that of another, in any order: the solution of `lstsq` depends on the
    right-hand side, its singular values do not."""
    leaves = tensors(CASES[name].arrays(np.float64), xpgrad_device, requires_grad=True)
    expected = xp.autograd.grad(loss(bind_case(name)(*leaves)), leaves)
    count = len(parts(bind_case(name)(*leaves)))
    for order in (range(count), reversed(range(count))):
        outs = {k: parts(bind_case(name)(*leaves))[k] for k in order}
        for a, b in zip(xp.autograd.grad(loss([outs[k] for k in range(count)]), leaves), expected):
            tolerance = loosen(1e-12, xpgrad_device)
            np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)


@pytest.mark.slow(one_in=3)
@every
def test_jacobians_of_both_modes_are_the_same(name: str) -> None:
    xs = tensors(CASES[name].arrays(np.float64), "numpy")
    f = lambda x: bind_case(name)(x, *xs[1:])  # noqa: E731 (a closure)
    for a, b in zip(parts(xp.func.jacrev(f)(xs[0])), parts(xp.func.jacfwd(f)(xs[0]))):
        np.testing.assert_allclose(values(a), values(b), rtol=1e-11, atol=1e-11)


@pytest.mark.slow(one_in=6)
@every
def test_compiled_functions_are_the_same(name: str, xpgrad_device: str) -> None:
    total, _ = loss_and_gradients(name)
    compiled = xp.compile(total)
    for start in (0.0, 0.01):
        arrays = [a + start for a in CASES[name].arrays(np.float64)]
        leaves = tensors(arrays, xpgrad_device, requires_grad=True)
        tolerance = loosen(1e-11, xpgrad_device, *arrays)
        for a, b in zip(xp.autograd.grad(compiled(*leaves), leaves), xp.autograd.grad(total(*leaves), leaves)):
            np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(
    "name", ["expm", "logm", "sqrtm", "polar (4, 3) right", "solve_triangular C lower", "solve_sylvester", "solve_banded"]
)
@kinds
def test_gradcheck(name: str, dtype: Any) -> None:
    """Law: `gradcheck` and `gradgradcheck` pass in fast mode."""
    leaves = tensors(CASES[name].arrays(dtype), "numpy", requires_grad=True)
    assert xp.autograd.gradcheck(bind_case(name), leaves, fast_mode=True)
    assert xp.autograd.gradgradcheck(bind_case(name), leaves, fast_mode=True)


@every
def test_single_precision_stays(name: str) -> None:
    arrays = [a.astype(np.float32) for a in CASES[name].arrays(np.float64)]
    leaves = tensors(arrays, "numpy", requires_grad=True)
    out = parts(bind_case(name)(*leaves))
    assert {y.dtype for y in out} == {xp.float32}
    for g in xp.autograd.grad(loss(out), leaves):
        assert g.dtype == xp.float32


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_higher_order_of_an_exponential(order: int, xpgrad_device: str) -> None:
    """Law: the n-th derivative of ``expm(t a)`` in `t` is ``a @ ... @ a @ expm(t a)`` with n factors `a`."""
    a = cast_for_device(numbers((3, 3)), xpgrad_device)
    f = lambda t: linalg.expm(t * xp.asarray(a, device=xpgrad_device))[0, 2]  # noqa: E731 (it is differentiated)
    for _ in range(order):
        f = xp.func.grad(f)
    expected = (np.linalg.matrix_power(a, order) @ values(linalg.expm(xp.asarray(0.7 * a))))[0, 2]
    t = xp.asarray(np.asarray(0.7, a.dtype), device=xpgrad_device)
    np.testing.assert_allclose(values(f(t)), expected, rtol=loosen(1e-12, xpgrad_device))
