"""The special functions outside the table, and what all of them share: operands, errors, SciPy's functions, compiled functions."""

from __future__ import annotations

import functools
import inspect
import itertools
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it computes most of these functions")
pytest.importorskip("mpmath", reason="it says what is right; the extra `test` brings it")

import mpmath
import scipy.special
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import xpgrad as xp
from support import search_path
from support.central_differences import cast_for_device, check, has_float64, loosen, numbers, values
from support.special_functions import CASES, of_tensors, points
from xpgrad._rows.namespace import EXTRAS
from xpgrad.scipy import special
from xpgrad.utils import checkpoint

X = numbers((2, 3)) * 3.0


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


# -- over axes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1, "keepdims": True}])
@pytest.mark.parametrize("factor", [None, np.array([[0.5, 0.0, 2.0], [1.0, 0.7, 0.3]]), 3.0])
def test_logsumexp(options: dict[str, Any], factor: Any, xpgrad_device: str) -> None:
    def ours(x: Any) -> Any:
        b = xp.asarray(factor, device=xpgrad_device) if isinstance(factor, np.ndarray) else factor
        return special.logsumexp(x, b=b if x.device == xpgrad_device or b is None else factor, **options)

    np.testing.assert_allclose(values(ours(xp.asarray(X, device=xpgrad_device))), scipy.special.logsumexp(X, b=factor, **options))
    check(ours, [X], xpgrad_device)
    check(ours, [numbers((2, 3), 1.0, np.complex128)], xpgrad_device)


def test_logsumexp_of_large_and_infinite_numbers(xpgrad_device: str) -> None:
    x = xp.tensor([1000.0, 999.0, -np.inf], device=xpgrad_device, requires_grad=True)
    out = special.logsumexp(x)
    out.backward()
    np.testing.assert_allclose(out.item(), scipy.special.logsumexp([1000.0, 999.0, -np.inf]))
    np.testing.assert_allclose(values(x.grad), scipy.special.softmax([1000.0, 999.0, -np.inf]))
    assert special.logsumexp(xp.asarray([-np.inf, -np.inf], device=xpgrad_device)).item() == -np.inf
    assert special.logsumexp(xp.asarray([np.inf, 1.0], device=xpgrad_device)).item() == np.inf
    large = xp.asarray([900.0, 901.0], device=xpgrad_device)
    out, sign = special.logsumexp(large, b=xp.asarray([1.0, -1.0], device=xpgrad_device), return_sign=True)
    expected = scipy.special.logsumexp(np.array([900.0, 901.0]), b=np.array([1.0, -1.0]), return_sign=True)
    np.testing.assert_allclose([out.item(), sign.item()], expected)
    assert np.isnan(special.logsumexp(large, b=xp.asarray([1.0, -1.0], device=xpgrad_device)).item())


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((2, 0), 1), ((0, 3), 0), ((0, 3), 1)])
def test_logsumexp_of_no_elements(shape: tuple[int, ...], axis: Any, dtype: Any, xpgrad_device: str) -> None:
    raw = cast_for_device(np.zeros(shape, dtype), xpgrad_device)
    for keepdims in (False, True):
        x = xp.tensor(raw, device=xpgrad_device, requires_grad=True)
        expected = scipy.special.logsumexp(raw, axis=axis, keepdims=keepdims)
        outs = [special.logsumexp(x, axis, keepdims=keepdims), *special.logsumexp(x, axis, x, keepdims, return_sign=True)]
        for out, value in zip(outs, (expected, expected, np.zeros_like(expected))):
            assert (values(out).dtype, out.shape) == (value.dtype, value.shape)
            np.testing.assert_array_equal(values(out), value)
        assert xp.autograd.grad(xp.sum(xp.real(xp.exp(outs[0]))), x)[0].shape == shape


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}])
def test_factors_of_logsumexp_are_differentiated_also_where_they_are_0(dtype: Any, options: dict[str, Any], xpgrad_device: str) -> None:
    factors = np.array([[0.5, 0.0, 2.0], [0.0, 0.7, 0.3]])
    check(lambda x, b: special.logsumexp(x, b=b, **options), [numbers((2, 3), 1.0, dtype), factors.astype(dtype)], xpgrad_device)


@pytest.mark.parametrize("out", [1000.0, np.inf, -np.inf, np.nan])
def test_what_a_factor_of_0_leaves_out_may_be_anything(out: float, xpgrad_device: str) -> None:
    x = xp.tensor([1.0, out, 2.0], device=xpgrad_device, requires_grad=True)
    b = xp.tensor([2.0, 0.0, 0.5], device=xpgrad_device, requires_grad=True)
    found = special.logsumexp(x, b=b)
    found.backward()
    total = 2.0 * np.exp(1.0) + 0.5 * np.exp(2.0)
    tolerance = 1e-14 if has_float64(xpgrad_device) else 1e-5
    np.testing.assert_allclose(found.item(), np.log(total), rtol=tolerance)
    np.testing.assert_allclose(values(x.grad), np.array([2.0 * np.exp(1.0), 0.0, 0.5 * np.exp(2.0)]) / total, rtol=tolerance)
    slopes = values(b.grad)
    np.testing.assert_allclose(slopes[[0, 2]], np.exp([1.0, 2.0]) / total, rtol=tolerance)
    assert slopes[1] == 0 if out == -np.inf else slopes[1] > 1e30


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_softmax(name: str, axis: Any, xpgrad_device: str) -> None:
    function = getattr(special, name)
    expected = getattr(scipy.special, name)(X + 700.0, axis=axis)
    np.testing.assert_allclose(values(function(xp.asarray(X + 700.0, device=xpgrad_device), axis=axis)), expected)
    check(lambda x: function(x, axis=axis), [X], xpgrad_device)
    check(lambda x: function(x, axis=axis), [numbers((2, 3), 1.0, np.complex128)], xpgrad_device)


def test_reductions_in_batches_and_with_tangents(xpgrad_device: str) -> None:
    x, t = (xp.asarray(numbers((2, 3), s), device=xpgrad_device) for s in (1.0, 2.0))
    for function in (special.logsumexp, special.softmax, special.log_softmax):
        np.testing.assert_allclose(values(xp.func.vmap(function)(x)), np.stack([values(function(row)) for row in x]), rtol=1e-12)
        leaf = xp.tensor(values(x), device=xpgrad_device, requires_grad=True)
        jacobian = values(xp.func.jacrev(function)(leaf.detach()))
        _, tangent = xp.func.jvp(function, (x,), (t,))
        np.testing.assert_allclose(values(tangent), np.tensordot(jacobian, values(t), 2), rtol=1e-10, atol=1e-14)


# -- with a static argument ----------------------------------------------------------------------------------------------


def test_lambertw(xpgrad_device: str) -> None:
    for branch in (0, -1, 1):
        z = np.array([0.7 + 0.4j, -3.0 + 1.0j, 0.01 - 2.0j])
        found = special.lambertw(xp.asarray(z, device=xpgrad_device), branch)
        np.testing.assert_allclose(values(found), scipy.special.lambertw(z, branch), rtol=1e-13)
        check(lambda z, k=branch: special.lambertw(z, k), [z], xpgrad_device)
    x = xp.tensor([0.5, 2.0, 0.0], device=xpgrad_device, requires_grad=True)
    out = special.lambertw(x)
    assert out.dtype == xp.complex128
    assert special.lambertw(x.to(xp.float32)).dtype == special.lambertw(x.to(xp.complex64)).dtype == xp.complex64
    xp.sum(xp.real(out)).backward()
    w = scipy.special.lambertw(np.array([0.5, 2.0, 0.0])).real
    np.testing.assert_allclose(values(x.grad), np.exp(-w) / (1 + w))
    with pytest.raises(TypeError, match="`k` must be an int"):
        special.lambertw(x, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"no `tol`=0\.1"):
        special.lambertw(x, tol=0.1)


FAR = np.array([0.3 + 0.2j, 30.0, 1e3 + 1j, -5.0 + 0.1j, 30j, 100.0, 3.0 - 3.0j, -1e3 - 1j, 25.0 + 20j, 9.0 - 8.5j])


def _slope_of_wofz(z: complex) -> complex:
    with mpmath.workdps(60):
        x = -1j * mpmath.mpc(z)
        return complex(-1j * (2 * x * mpmath.exp(x * x) * mpmath.erfc(x) - 2 / mpmath.sqrt(mpmath.pi)))


def test_error_functions_of_large_complex_numbers(xpgrad_device: str) -> None:
    """Products of huge and tiny factors would be nan there, and the derivative is a difference of nearly equal numbers."""
    for name, turn in (("wofz", 1.0), ("erfcx", -1j), ("log_ndtr", 1.0)):
        x = xp.tensor(FAR * turn, device=xpgrad_device, requires_grad=True)
        out = getattr(special, name)(x)
        np.testing.assert_array_equal(values(out), getattr(scipy.special, name)(FAR * turn), name)
        if name != "log_ndtr":
            slopes = np.conj(values(xp.autograd.grad(out, x, xp.ones_like(out))[0])) * turn
            expected = [_slope_of_wofz(z) for z in FAR]
            np.testing.assert_allclose(slopes, expected, rtol=1e-12, err_msg=name)


def test_wofz(xpgrad_device: str) -> None:
    check(special.wofz, [FAR[[0, 3, 6]]], xpgrad_device)
    x = xp.tensor([0.5, -2.0, 0.0], device=xpgrad_device, requires_grad=True)
    out = special.wofz(x)
    assert out.dtype == (xp.complex128 if x.dtype == xp.float64 else xp.complex64)
    assert special.wofz(x.to(xp.float32)).dtype == special.wofz(x.to(xp.complex64)).dtype == xp.complex64
    xp.sum(xp.imag(out)).backward()
    np.testing.assert_allclose(
        values(x.grad), 2 / np.sqrt(np.pi) * (1 - 2 * values(x) * scipy.special.dawsn(values(x))), rtol=loosen(1e-14, xpgrad_device)
    )


def test_ends_of_the_voigt_profile(xpgrad_device: str) -> None:
    x = np.array([0.0, 1.0, np.inf, 0.0, 0.0, -1.0, 0.5])
    sigma, gamma = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1e-8]), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1e-9])
    found = special.voigt_profile(*(xp.asarray(v, device=xpgrad_device) for v in (x, sigma, gamma)))
    np.testing.assert_allclose(values(found), scipy.special.voigt_profile(x, sigma, gamma), rtol=1e-14)
    line = functools.partial(special.voigt_profile, xp.asarray(1.5, device=xpgrad_device))
    by_width, by_half = (v.item() for v in xp.func.grad(line, argnums=(0, 1))(0.0, 0.7))
    assert by_width == 0.0
    size = 1.5**2 + 0.7**2  # of the Cauchy density, gamma / (pi * size)
    by_x = xp.func.grad(special.voigt_profile)(12.0, 1.0, 0.0).item()  # in the tail of the normal density, where nothing else is left
    assert by_x == pytest.approx(-12.0 * np.exp(-72.0) / np.sqrt(2 * np.pi), rel=1e-12, abs=0.0)
    assert by_half == pytest.approx((size - 2 * 0.7**2) / (np.pi * size**2), rel=1e-14)


@pytest.mark.parametrize("sigma", [0.0, 1e-300, 1e-9, 0.01])
def test_derivatives_of_a_narrow_voigt_profile(sigma: float, xpgrad_device: str) -> None:
    """They solve the heat equation: that by `sigma` is `sigma` times the second one by `x`, near to that of the Cauchy density."""
    if not has_float64(xpgrad_device):
        pytest.skip("single precision has no such small numbers")

    def line(x: Any, s: Any) -> Any:
        return special.voigt_profile(x, s, 0.7)

    x = xp.asarray(1.5, device=xpgrad_device)
    pole = 1.5 + 0.7j
    curvature = (2j / (np.pi * pole**3) * (1 + 6 * sigma**2 / pole**2 + 45 * sigma**4 / pole**4)).real
    by_x, by_sigma = (v.item() for v in xp.func.grad(line, argnums=(0, 1))(x, sigma))
    assert by_x == pytest.approx((-1j / (np.pi * pole**2) * (1 + 3 * sigma**2 / pole**2 + 15 * sigma**4 / pole**4)).real, rel=1e-9)
    assert by_sigma == pytest.approx(sigma * curvature, rel=1e-7, abs=0.0)
    twice = xp.func.grad(xp.func.grad(functools.partial(line, x)))(sigma).item()
    assert twice == pytest.approx(curvature, rel=1e-3)  # and the third order of `sigma`


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_multigammaln(dimension: int, xpgrad_device: str) -> None:
    a = np.array([2.5, 3.7, 9.0])
    found = special.multigammaln(xp.asarray(a, device=xpgrad_device), dimension)
    np.testing.assert_allclose(values(found), scipy.special.multigammaln(a, dimension), rtol=1e-14)
    check(lambda x: special.multigammaln(x, dimension), [a], xpgrad_device)
    x = xp.tensor([0.1 - dimension], device=xpgrad_device, requires_grad=True)
    out = special.multigammaln(x, dimension)
    xp.sum(out).backward()
    assert np.isnan(values(out)).all()
    assert np.isnan(values(x.grad)).all()
    with pytest.raises(ValueError, match="`d` must be a dimension"):
        special.multigammaln(x, 0)


@pytest.mark.parametrize("kind", ["jn", "yn", "in", "kn"])
def test_spherical_functions_and_their_derivatives(kind: str, xpgrad_device: str) -> None:
    name = f"spherical_{kind}"
    z = np.array([0.4, 2.0, 7.5])
    for n in (0, 1, 4):
        found = getattr(special, name)(n, xp.asarray(z, device=xpgrad_device), derivative=True)
        np.testing.assert_allclose(values(found), getattr(scipy.special, name)(n, z, derivative=True), rtol=1e-11)
        check(lambda z, n=n: getattr(special, name)(n, z), [z], xpgrad_device)
    with pytest.raises(ValueError, match="must not be negative, but got -1"):
        getattr(special, name)(-1, xp.asarray(z))
    with pytest.raises(TypeError, match="`n` must be an int, but got Tensor"):
        getattr(special, name)(xp.asarray(z), xp.asarray(z))
    for n in (0, 1, 2):  # at the origin, where quotients are not defined
        if kind in ("jn", "in"):
            x = xp.tensor([0.0], device=xpgrad_device, requires_grad=True)
            xp.sum(getattr(special, name)(n, x)).backward()
            np.testing.assert_allclose(values(x.grad), [1 / 3 if n == 1 else 0.0], atol=1e-15)


def test_comb_and_factorial(xpgrad_device: str) -> None:
    n, k = np.array([5.0, 3.0, -1.0, 6.5]), np.array([2.0, 4.0, 1.0, 2.5])
    x, y = (xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in (n, k))
    out = special.comb(x, y)
    np.testing.assert_allclose(values(out), scipy.special.comb(n, k))
    xp.sum(out).backward()
    assert values(x.grad)[1:3].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(special.comb(5, 3, repetition=True).item(), scipy.special.comb(5, 3, repetition=True))
    z = xp.asarray([-1.5, 0.0, 4.0, np.nan], device=xpgrad_device)
    np.testing.assert_allclose(values(special.factorial(z)), [0.0, 1.0, 24.0, np.nan])
    np.testing.assert_allclose(values(special.gammasgn(z)), scipy.special.gammasgn(values(z)))
    g = xp.tensor([0.5, -0.5], device=xpgrad_device, requires_grad=True)
    xp.sum(special.gammasgn(g)).backward()
    assert values(g.grad).tolist() == [0.0, 0.0]


def test_aliases() -> None:
    x = xp.asarray([0.5, 2.0])
    assert special.psi(x).tolist() == special.digamma(x).tolist()
    assert special.jn(2, x).tolist() == special.jv(2.0, x).tolist()
    np.testing.assert_allclose(values(special.zeta(xp.asarray([2.0, 0.5, -1.0]))), scipy.special.zeta(np.array([2.0, 0.5, -1.0])))


# -- operands ------------------------------------------------------------------------------------------------------------


def test_integers_numbers_and_arrays_are_operands(xpgrad_device: str) -> None:
    whole = xp.asarray([1, 2, 3], device=xpgrad_device)
    near, small = (1e-12, 1e-15) if has_float64(xpgrad_device) else (1e-5, 1e-6)
    for name, case in CASES.items():
        if len(case.ranges) == 1 and name not in ("erfinv", "erfcinv", "logit", "ndtri"):
            out = getattr(special, name)(whole)
            assert out.dtype == whole.default_dtype("real floating")
            with np.errstate(all="ignore"):
                expected = getattr(scipy.special, name)(np.array([1, 2, 3]))
            np.testing.assert_allclose(values(out), expected, rtol=near, atol=small)
    x = xp.tensor([0.5, 1.5], device=xpgrad_device, requires_grad=True)
    expected = scipy.special.gammainc(2.0, np.array([0.5, 1.5]))
    on_host = x.backend.on_host(x.device)
    for two in (2, 2.0, np.float64(2.0), np.array([2.0, 2.0]) if on_host else 2, xp.asarray([2, 2], device=xpgrad_device)):
        np.testing.assert_allclose(values(special.gammainc(two, x)), expected, rtol=near)
    np.testing.assert_allclose(values(special.betainc(2, 3.0, x * 0.5)), scipy.special.betainc(2, 3.0, [0.25, 0.75]), rtol=near)
    assert special.erf(0.5).shape == ()
    assert special.gammainc(2.0, 0.5).shape == ()
    np.testing.assert_allclose(values(special.erf(np.array([0.5]))), scipy.special.erf([0.5]))


def test_what_is_no_operand_is_refused() -> None:
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"scipy\.special\.xlogy: `x` has shape \(2,\), `y` has shape \(3,\), which do not broadcast"):
        special.xlogy(x, y)
    with pytest.raises(ValueError, match=r"`a` has shape \(2,\), `b` has shape \(\), `x` has shape \(3,\)"):
        special.betainc(x, 2.0, y)
    with pytest.raises(TypeError, match=r"scipy\.special\.gammainc: `a` must be a Tensor, an array or a number, but got str 'two'"):
        special.gammainc("two", x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"scipy\.special\.erf"):
        special.erf("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes 2 arguments"):
        special.beta(x)  # type: ignore[call-arg]
    with pytest.raises(xp.DeviceMismatchError, match="numpy"):
        special.xlogy(x, xp.asarray([1.0, 2.0], device="numpy+readonly"))
    with pytest.raises(AttributeError, match="has no attribute 'erff'"):
        special.erff  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no 'clustering', only .*`special`"):
        xp.scipy.clustering  # type: ignore[attr-defined]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.data())
def test_shapes_and_dtypes(data: Any) -> None:
    name = data.draw(st.sampled_from([n for n in CASES if not n.startswith("spherical_")]))
    case = CASES[name]
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=len(case.ranges), max_dims=3, max_side=3))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    arrays = [np.resize([p[i] for p in points(case, 4)], shape).astype(dtype) for i, shape in enumerate(shapes.input_shapes)]
    xs = [xp.tensor(a, requires_grad=i in case.wrt) for i, a in enumerate(arrays)]
    with np.errstate(all="ignore"):
        out = of_tensors(name)(*xs)
        if name == "bdtri":  # SciPy's takes integers there
            arrays[1] = arrays[1].astype(int)
        expected = getattr(scipy.special, name)(*arrays)
        assert out.shape == shapes.result_shape
        assert out.dtype == (xp.float32 if dtype is np.float32 else xp.float64)
        np.testing.assert_allclose(
            values(out), expected, rtol=1e-4 if dtype is np.float32 else 1e-11, atol=1e-6 if dtype is np.float32 else 0
        )
        xp.sum(out).backward()
    for i in case.wrt:
        assert xs[i].grad is not None
        assert xs[i].grad.shape == shapes.input_shapes[i]
        assert xs[i].grad.dtype == xs[i].dtype


# -- with the rest of xpgrad -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", "log_ndtr", "gammainc", "betainc", "xlogy", "polygamma", "logsumexp", "spherical_jn", "lambertw"])
def test_compiled_functions(name: str, xpgrad_device: str) -> None:
    def function(x: Any) -> Any:
        y = xp.exp(x * 0.1)
        if name == "logsumexp":
            return special.logsumexp(y * 2.0)
        if name == "lambertw":
            return xp.real(special.lambertw(y))
        if name == "spherical_jn":
            return xp.sum(special.spherical_jn(2, y))
        rest: list[Any] = {"gammainc": [2.0], "betainc": [2.0, 3.0], "xlogy": [2.0], "polygamma": [1]}.get(name, [])
        return getattr(special, name)(*rest, y * 0.3)

    compiled = xp.compile(function)
    for k in range(2):
        x = xp.tensor(numbers((4,), 1.0 + k), device=xpgrad_device, requires_grad=True)
        expected, found = function(x), compiled(x)
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-12)
        g = xp.autograd.grad(xp.sum(expected), x)[0]
        np.testing.assert_allclose(values(xp.autograd.grad(xp.sum(found), x)[0]), values(g), rtol=1e-12)


def test_selective_checkpoints_know_them() -> None:
    x = xp.tensor([0.5, 1.5], requires_grad=True)
    for function in (special.erf, special.logsumexp):
        contexts = lambda f=function: checkpoint.create_selective_checkpoint_contexts([f])  # noqa: E731 (called twice)
        out = checkpoint.checkpoint(lambda x, f=function: xp.sum(xp.sin(f(x * 1.0))), x, use_reentrant=False, context_fn=contexts)
        (found,) = xp.autograd.grad(out, x)
        (expected,) = xp.autograd.grad(xp.sum(xp.sin(function(x * 1.0))), x)
        np.testing.assert_allclose(values(found), values(expected))
    assert EXTRAS["scipy.special.erf"] is special.erf


def test_signatures_and_docstrings_are_there() -> None:
    for name in special.__all__:
        function = getattr(special, name)
        assert function.__doc__, name
        assert function.__name__ == name
        assert inspect.signature(function).parameters
        assert function.__module__.startswith("xpgrad.scipy")
    assert set(special.__all__) <= set(dir(special))


# -- SciPy's own functions ---------------------------------------------------------------------------------------------------


def test_scipys_universal_functions_take_tensors(xpgrad_device: str) -> None:
    x = xp.tensor([0.3, 0.8], device=xpgrad_device, requires_grad=True)
    for name, case in CASES.items():
        ufunc = getattr(scipy.special, name)
        if not isinstance(ufunc, np.ufunc):
            continue
        rest = [2.0] * (len(case.ranges) - 1)
        out = ufunc(*rest, x)
        assert isinstance(out, xp.Tensor), name
        np.testing.assert_allclose(values(out), values(getattr(special, name)(*rest, x)), rtol=1e-13, err_msg=name)
        assert out.requires_grad or name == "gammasgn"
    out = scipy.special.zeta(2.0, x)
    assert out.requires_grad
    assert scipy.special.lambertw(x).requires_grad
    out = scipy.special.xlogy(np.array([1.0, 2.0]), xp.tensor([0.3, 0.8], requires_grad=True))
    assert out.requires_grad
    with pytest.raises(TypeError, match=r"`scipy\.special\.dawsn` has no rule in xpgrad.*x\.detach"):
        scipy.special.dawsn(x)
    with pytest.raises(TypeError, match=r"`scipy\.special\.zetac` has no rule in xpgrad"):
        scipy.special.zetac(x)


def test_options_of_universal_functions() -> None:
    x, out = xp.tensor([0.3, 0.8], requires_grad=True), xp.zeros(2)
    scipy.special.erf(x * 1.0, out=out, where=np.array([True, False]))
    assert values(out)[1] == 0.0
    xp.sum(out).backward()
    np.testing.assert_allclose(values(x.grad), [2 / np.sqrt(np.pi) * np.exp(-0.09), 0.0])


_UNDER_THE_STANDARD = """
import numpy as np, scipy.special, scipy.stats, xpgrad as xp
x = xp.tensor([0.3, 0.8], requires_grad=True)
for name, rest in (("erf", ()), ("gammaln", ()), ("gammainc", (2.0,)), ("logsumexp", ()), ("softmax", ()), ("betaln", (2.0,))):
    out = getattr(scipy.special, name)(*rest, x)
    assert isinstance(out, xp.Tensor) and out.requires_grad, name
    (g,) = xp.autograd.grad(xp.sum(xp.sin(out)), x)
    ours = getattr(xp.scipy.special, name)(*rest, x)
    np.testing.assert_allclose(g.numpy(), xp.autograd.grad(xp.sum(xp.sin(ours)), x)[0].numpy(), rtol=1e-10)
(g,) = xp.autograd.grad(scipy.stats.entropy(x), x)
p = np.array([0.3, 0.8]) / 1.1
np.testing.assert_allclose(g.numpy(), -(np.log(p) + scipy.stats.entropy(p)) / 1.1)
"""


def test_scipys_functions_under_scipy_array_api() -> None:
    environment = {"SCIPY_ARRAY_API": "1", "PYTHONPATH": search_path(), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", _UNDER_THE_STANDARD], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_WITHOUT_SCIPY = """
import sys
sys.modules["scipy"] = sys.modules["scipy.special"] = None
import xpgrad as xp
from xpgrad.scipy import special
x = xp.tensor([0.3, 0.8], requires_grad=True)
for name in ("expit", "logit", "log_expit", "entr", "sinc", "logsumexp", "softmax", "log_softmax"):
    xp.sum(xp.autograd.grad(xp.sum(getattr(special, name)(x)), x, create_graph=True)[0]).backward()
for name in ("xlogy", "xlog1py", "rel_entr", "kl_div"):
    xp.sum(getattr(special, name)(x, x)).backward()
try:
    special.erf(x)
except xp.CapabilityError as exc:
    assert "pip install 'xpgrad[scipy]'" in str(exc), exc
else:
    raise AssertionError
"""


def test_without_scipy_the_composed_ones_work() -> None:
    environment = {"PYTHONPATH": search_path(), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", _WITHOUT_SCIPY], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_loads_late() -> None:
    late = "assert not [m for m in sys.modules if 'scipy' in m]; xpgrad.scipy.special.erf; assert 'scipy' not in sys.modules"
    code = f"import sys, xpgrad; {late}"
    environment = {"PYTHONPATH": search_path(), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_scaled_functions_do_not_overflow(name: str, xpgrad_device: str) -> None:
    """Law: where an unscaled function is infinite, the scaled one is finite (it was nan on libraries that lack it)."""
    x = xp.tensor([-1000.0, 1000.0], device=xpgrad_device, requires_grad=True)
    y = getattr(special, name)(x)
    np.testing.assert_allclose(y.detach().numpy(), getattr(scipy.special, name)(np.asarray([-1000.0, 1000.0])), rtol=1e-6)
    xp.sum(y).backward()
    assert np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("order", [0, 1])
def test_derivatives_of_scaled_functions_far_out(order: int) -> None:
    """Law: the derivatives do not cancel for large arguments, where the function is nearly a power."""
    mpmath = pytest.importorskip("mpmath")
    function = (special.i0e, special.i1e)[order]
    for at in (39.0, 41.0, 1e5, -1e5, 1e8):
        x = xp.tensor(at, requires_grad=True)
        first = xp.autograd.grad(function(x), x, create_graph=True)[0]
        second = xp.autograd.grad(first, x)[0]
        with mpmath.workdps(60):
            t = mpmath.mpf(abs(at))
            i = [mpmath.besseli(n, t) * mpmath.exp(-t) for n in range(order + 3)]
            low, middle, high = (i[1], i[0], i[1]) if order == 0 else i[:3]
            curved = (i[2] + i[0]) / 2 if order == 0 else (i[3] + 3 * i[1]) / 4
            expected = [(low + high) / 2 - middle, curved - (low + high) + middle]
        odd = 1.0 if at > 0 else -1.0
        expected = [float(expected[0]) * (odd if order == 0 else 1.0), float(expected[1]) * (1.0 if order == 0 else odd)]
        np.testing.assert_allclose([first.item(), second.item()], expected, rtol=1e-11)


#: Arguments at the ends of domains and outside, by the name of the function.
ENDS: dict[str, list[tuple[float, ...]]] = {
    "bdtr": [(3, 3, 0.2), (-1, 3, 0.2), (4, 3, 0.2), (1, 3, 0.0), (1, 3, 1.0), (1, 3, 1.5)],
    "bdtrc": [(3, 3, 0.2), (-1, 3, 0.2), (4, 3, 0.2)],
    "boxcox": [(0.0, 0.5), (0.0, 0.0), (0.0, -1.0), (-1.0, 0.5), (np.nan, 1.0), (2.0, np.nan)],
    "boxcox1p": [(-1.0, 0.5), (-2.0, 0.5)], "cbrt": [(0.0,), (-0.0,), (np.inf,), (-np.inf,), (np.nan,)],
    "chdtr": [(2.0, -1.0), (2.0, 0.0), (2.0, np.inf)], "chdtrc": [(2.0, -1.0), (2.0, 0.0), (2.0, np.inf)],
    "chdtri": [(2.0, 0.0), (2.0, 1.0), (2.0, 1.5)], "cosdg": [(90.0,), (180.0,), (-270.0,), (720.0,)], "cotdg": [(90.0,), (-90.0,)],
    "ellipe": [(1.0,), (2.0,), (-np.inf,)], "ellipk": [(1.0,), (2.0,), (-np.inf,)], "ellipkm1": [(0.0,), (-1.0,)],
    "expn": [(0, 0.0), (1, 0.0), (2, 0.0), (-1, 1.0), (2, -1.0)], "exprel": [(np.inf,), (-np.inf,), (np.nan,), (800.0,)],
    "fdtr": [(2.0, 3.0, -1.0), (2.0, 3.0, 0.0), (2.0, 3.0, 1e308), (2.0, 3.0, np.inf), (0.0, 3.0, 1.0), (3.0, 0.0, 1.0)],
    "fdtrc": [(2.0, 3.0, -1.0), (2.0, 3.0, 0.0), (2.0, 3.0, np.inf), (0.0, 3.0, 1.0)],
    "fdtri": [(2.0, 3.0, 0.5), (2.0, 3.0, 1.5)], "gdtr": [(1.0, 2.0, -1.0), (1.0, 2.0, 0.0)],
    "gdtrc": [(1.0, 2.0, -1.0), (1.0, 2.0, 0.0)], "huber": [(-1.0, 2.0), (0.0, 2.0), (1.0, np.inf)],
    "inv_boxcox": [(-3.0, 0.5), (-2.0, 0.5), (1.0, 0.0)], "k0": [(0.0,), (-1.0,), (np.inf,)], "k0e": [(0.0,), (-1.0,)],
    "k1": [(0.0,), (-1.0,)], "k1e": [(0.0,), (-1.0,)], "kn": [(2, 0.0), (2, -1.0), (-2, 1.5)],
    "nbdtr": [(0, 0, 0.5), (0, 2, 0.0), (0, 2, 1.0), (1, 2, 1.5)], "nbdtrc": [(0, 0, 0.5), (0, 2, 0.0), (0, 2, 1.0)],
    "pdtr": [(0, 0.0), (-1, 1.0), (2.7, 1.0), (2, -1.0)], "pdtrc": [(0, 0.0), (-1, 1.0), (2.7, 1.0), (2, -1.0)],
    "pdtri": [(0, 1.0), (2, 0.5)], "pseudo_huber": [(-1.0, 2.0), (0.0, 2.0), (1.0, 0.0)],
    "sindg": [(90.0,), (180.0,), (-270.0,), (720.0,)], "spence": [(0.0,), (-1.0,), (np.inf,)], "tandg": [(0.0,), (45.0,), (180.0,)],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_values_at_the_ends_of_domains_are_scipys(name: str, xpgrad_device: str) -> None:
    ranges = CASES[name].ranges
    for point in ENDS[name]:
        whole = [r.how == "integers" and v == int(v) for r, v in zip(ranges, point)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(scipy.special, name)(*(int(v) if w else v for v, w in zip(point, whole)))
        found = of_tensors(name)(*(xp.asarray(float(v), device=xpgrad_device) for v in point))
        np.testing.assert_allclose(values(found), expected, rtol=1e-5, atol=1e-15, err_msg=str(point))


def test_the_slope_of_a_smooth_loss_does_not_overflow(xpgrad_device: str) -> None:
    far = 1e200 if has_float64(xpgrad_device) else 1e30
    r = xp.tensor([far, -far], device=xpgrad_device, requires_grad=True)
    xp.sum(special.pseudo_huber(1.0, r)).backward()
    assert r.grad is not None
    assert r.grad.tolist() == [1.0, -1.0]


def test_a_smooth_loss_has_derivatives_where_delta_is_0(xpgrad_device: str) -> None:
    """It is ``delta * hypot(delta, r) - delta ** 2``: near 0 about ``abs(r) * delta - delta ** 2``."""
    at = tuple(xp.asarray(v, device=xpgrad_device) for v in (0.0, -3.0))
    slopes = xp.func.grad(special.pseudo_huber, argnums=(0, 1))(*at)
    np.testing.assert_allclose([values(g) for g in slopes], [3.0, 0.0], atol=1e-6)
    second = xp.func.hessian(special.pseudo_huber, argnums=(0, 1))(*at)
    np.testing.assert_allclose([[values(h) for h in row] for row in second], [[-2.0, -1.0], [-1.0, 0.0]], atol=1e-6)


_COUNTS = {
    "pdtr": 2,
    "pdtrc": 2,
    "pdtri": 2,
    "bdtr": 3,
    "bdtrc": 3,
    "bdtri": 3,
    "nbdtr": 3,
    "nbdtrc": 3,
    "fdtr": 3,
    "fdtrc": 3,
    "gdtr": 3,
    "gdtrc": 3,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # SciPy's, about numbers that are no integers
@pytest.mark.parametrize("name", _COUNTS)
def test_distribution_functions_are_nan_where_scipys_are(name: str) -> None:
    """Outside of their domain, and for numbers with a fraction where SciPy takes integers."""
    values = [-2.0, -1.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0]
    points = np.array(list(itertools.product(values, repeat=_COUNTS[name]))).T
    expected = getattr(scipy.special, name)(*points)
    assert np.isnan(expected).any()
    assert not np.isnan(expected).all()
    np.testing.assert_allclose(getattr(special, name)(*(xp.asarray(p) for p in points)).numpy(), expected, rtol=1e-9, atol=1e-14)
