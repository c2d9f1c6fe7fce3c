"""Law: values are SciPy's, and values and derivatives of first and second order are mpmath's, in every mode and on every device."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it computes most of these functions")
pytest.importorskip("mpmath", reason="it says what is right; the extra `test` brings it")

import scipy.special

import xpgrad as xp
from support.central_differences import check, has_float64, values
from support.special_functions import CASES, at_points, error, of_tensors, points, second_derivatives
from xpgrad.func import jvp, vmap
from xpgrad.scipy import special

COUNT = 5
#: Functions whose reference is slow to compute.
SLOW = {"betaincc": 2, "stdtrit": 2, "owens_t": 2, "betaincinv": 2, "betainccinv": 2, "gammaincinv": 2, "gammainccinv": 2, "y1": 3, "yn": 3}
#: Functions for which mpmath takes longer than for most.
SLOWER = {
    "betainc", "chdtrc", "chdtri", "fdtrc", "fdtri", "gammainc", "gdtr", "gdtrc", "k0", "k0e", "k1", "k1e", "kn", "kv", "lpmv",
    "stdtr", "zeta",
}  # fmt: skip
#: Functions over axes, with a static argument or without a derivative, which have separate tests.
OTHERS = {"gammasgn", "lambertw", "log_softmax", "logsumexp", "multigammaln", "psi", "softmax", "wofz"}

_each = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def tolerance_on(device: str) -> float:
    return 1e-11 if has_float64(device) else 2e-3


def _points_of(name: str) -> list[tuple[float, ...]]:
    return points(CASES[name], SLOW.get(name, COUNT))


def test_every_function_is_in_the_table() -> None:
    assert set(CASES) | OTHERS == set(special.__all__)


@pytest.mark.slow(one_in=5)
@_each
def test_values_are_scipys(name: str, xpgrad_device: str) -> None:
    at = points(CASES[name], 20)
    ranges = CASES[name].ranges
    columns = [np.array(c, int if r.how == "integers" else float) for c, r in zip(zip(*at), ranges)]
    expected = getattr(scipy.special, name)(*columns)
    found = at_points(name, at, device=xpgrad_device)
    np.testing.assert_allclose(found, expected, rtol=tolerance_on(xpgrad_device), atol=1e-13 if has_float64(xpgrad_device) else 1e-4)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW or n in SLOWER else n for n in CASES])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_values_and_derivatives_are_mpmaths(name: str, order: int) -> None:
    case, at = CASES[name], _points_of(name)
    for by in [()] if order == 0 else [(i,) for i in case.wrt] if order == 1 else case.seconds():
        for point, found in zip(at, at_points(name, at, *by)):
            assert error(found, case, point, *by) <= 1e-12, (by, point, found)
    if order < 2 and case.edges:
        for by in [()] if order == 0 else [(i,) for i in case.wrt]:
            for point, found in zip(case.edges, at_points(name, list(case.edges), *by)):
                assert error(found, case, point, *by) <= 1e-9, (by, point, found)


#: Inverses whose value underflows to 0, or is rounded to 1, for an argument of 0.001: the density there is not known.
SATURATED = {"betaincinv", "betainccinv", "fdtri", "gammaincinv"}


@pytest.mark.slow(one_in=2)
@_each
def test_second_derivatives_are_numbers_wherever_first_ones_are(name: str) -> None:
    """A formula must not overflow on its way to a derivative that does not: `log_ndtr` at 40 had a second derivative of nan."""
    case = CASES[name]
    far = [sign * x for x in (1e-3, 0.5, 5.0, 15.0, 50.0, 200.0, 1e3, 1e4) for sign in (1, -1)]
    for i in case.wrt:
        if case.ranges[i].how == "integers":
            continue
        at = [
            tuple(x if k == i else v for k, v in enumerate(p)) for p in points(case, 2) for x in far if x != 1e-3 or name not in SATURATED
        ]
        known = np.isfinite(at_points(name, at))
        for j in case.wrt:
            known &= np.isfinite(at_points(name, at, j))
        for by in case.seconds():
            wrong = known & np.isnan(at_points(name, at, *by))
            assert not wrong.any(), (by, [p for p, w in zip(at, wrong) if w])


#: Points, by name, at which a formula branches: an operand of 0, equal operands, or the start of a series.
BRANCHES: dict[str, list[tuple[float, ...]]] = {
    "erf": [(0.0,)], "erfc": [(0.0,)], "erfcx": [(0.0,), (20.0,)], "erfinv": [(0.0,)], "erfcinv": [(1.0,)], "expit": [(0.0,)],
    "logit": [(0.3,), (0.5,), (0.65,)], "log_expit": [(0.0,)], "ndtr": [(0.0,)], "log_ndtr": [(0.0,), (-1.0,)], "ndtri": [(0.5,)],
    "gamma": [(1.0,), (2.0,)], "gammaln": [(1.0,), (2.0,), (0.5,)],
    "loggamma": [(1.0,), (2.0,)], "digamma": [(1.0,), (0.5,)], "rgamma": [(0.0,), (-1.0,), (1.0,)], "beta": [(1.0, 1.0), (2.0, 1.0)],
    "betaln": [(1.0, 1.0), (2.0, 1.0)], "betainc": [(1.0, 1.0, 0.5), (1.0, 2.0, 0.5), (2.0, 1.0, 0.5), (2.0, 2.0, 0.5)],
    "betaincc": [(1.0, 1.0, 0.5), (1.0, 2.0, 0.5), (2.0, 1.0, 0.5), (2.0, 2.0, 0.5)], "gammainc": [(1.0, 1.0), (2.0, 2.0), (1.0, 2.0)],
    "gammaincc": [(1.0, 1.0), (2.0, 2.0), (1.0, 2.0)], "stdtr": [(1.0, 1.0), (2.0, 2.0), (3.0, 0.0)],
    "binom": [(5.0, 1.0), (5.0, 4.0), (2.0, 1.0), (3.0, 4.0), (2.5, 4.5)],
    "comb": [(5.0, 1.0), (5.0, 4.0), (2.0, 1.0)], "factorial": [(1.0,), (0.0,)],
    "xlogy": [(0.0, 2.0), (0.0, 1.0), (1.0, 1.0), (2.0, 2.0)], "xlog1py": [(0.0, 2.0), (0.0, 0.0), (1.0, 0.0), (2.0, 2.0)],
    "entr": [(1.0,)], "rel_entr": [(1.0, 1.0), (0.5, 0.5), (1.0, 2.0), (2.0, 1.0)],
    "kl_div": [(1.0, 1.0), (0.5, 0.5), (1.0, 2.0), (2.0, 1.0)], "sinc": [(0.0,), (0.5,), (1.0,)], "i0": [(0.0,)], "i1": [(0.0,), (0.5,)],
    "cosm1": [(0.0,)], "sindg": [(0.0,), (45.0,), (90.0,)], "cosdg": [(0.0,), (45.0,), (90.0,)], "exprel": [(0.0,)], "spence": [(1.0,)],
    "boxcox": [(1.0, 0.0), (2.0, 0.0), (1.0, 1.0)], "boxcox1p": [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)],
    "inv_boxcox": [(0.5, 0.0), (0.0, 0.0), (0.0, 1.0)], "inv_boxcox1p": [(0.5, 0.0), (0.0, 0.0), (0.0, 1.0)],
    "ellipk": [(0.0,)], "ellipkm1": [(1.0,)], "ellipe": [(0.0,)], "pseudo_huber": [(1.0, 1.0), (2.0, 0.0)],
    "j0": [(0.0,)], "j1": [(0.0,), (0.5,)], "expi": [(1.0,)], "exp1": [(1.0,)],
}  # fmt: skip


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", BRANCHES)
def test_hessians_are_right_and_symmetric_where_a_formula_branches(name: str, xpgrad_device: str) -> None:
    """Law: second derivatives are right in either order, also at points at which a formula branches."""
    case, at = CASES[name], BRANCHES[name]
    hessians = np.array([second_derivatives(case.exact, point, len(point)) for point in at])
    for i, j in case.seconds():
        exact = hessians[:, i, j]
        for by in {(i, j), (j, i)}:
            found = at_points(name, at, *by, device=xpgrad_device)
            np.testing.assert_allclose(
                found, exact, rtol=1e2 * tolerance_on(xpgrad_device), atol=1e2 * tolerance_on(xpgrad_device), err_msg=str(by)
            )


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_hessians_of_relative_entropies_at_zero(name: str, xpgrad_device: str) -> None:
    """At 0 the Hessian has its closed form (differences do not exist, since the logarithm has no values below 0)."""
    at = [(0.0, 2.0), (0.0, 0.5)]
    slopes = {
        (): [2.0, 0.5] if name == "kl_div" else [0.0, 0.0],
        (1,): [1.0, 1.0] if name == "kl_div" else [0.0, 0.0],
        (0, 0): [np.inf] * 2,
    }
    for by, exact in (slopes | {(0,): [-np.inf] * 2, (0, 1): [-0.5, -2.0], (1, 0): [-0.5, -2.0], (1, 1): [0.0, 0.0]}).items():
        np.testing.assert_allclose(at_points(name, at, *by, device=xpgrad_device), exact, err_msg=str(by))


@pytest.mark.slow(one_in=5)
@_each
def test_derivatives_are_the_same_on_every_device(name: str, xpgrad_device: str) -> None:
    case, at = CASES[name], _points_of(name)
    for by in [*((i,) for i in case.wrt), *case.seconds()]:
        expected = at_points(name, at, *by)
        np.testing.assert_allclose(
            at_points(name, at, *by, device=xpgrad_device),
            expected,
            rtol=tolerance_on(xpgrad_device),
            atol=tolerance_on(xpgrad_device),
            err_msg=str(by),
        )


def _operands(name: str, device: str) -> tuple[Any, list[Any]]:
    """Return the function of its operands, and operands in the usual range, of shape (5,)."""
    columns = [np.array(c) for c in zip(*points(CASES[name], 5, seed=1))]
    function = of_tensors(name)
    if name.startswith("spherical_"):
        return lambda z: function(2, z), [xp.asarray(columns[1], device=device)]
    return function, [xp.asarray(c, device=device) for c in columns]


@pytest.mark.slow(one_in=3)
@_each
def test_forward_mode_is_reverse_mode(name: str, xpgrad_device: str) -> None:
    function, xs = _operands(name, xpgrad_device)
    first = len(CASES[name].ranges) - len(xs)
    for i in (k - first for k in CASES[name].wrt):

        def of_one(x: Any, i: int = i) -> Any:
            return function(*xs[:i], x, *xs[i + 1 :])

        leaf = xp.tensor(values(xs[i]), device=xpgrad_device, requires_grad=True)
        (expected,) = xp.autograd.grad(xp.sum(of_one(leaf)), leaf)
        out, tangent = jvp(of_one, (xs[i],), (xp.ones_like(xs[i]),))
        np.testing.assert_allclose(values(tangent), values(expected), rtol=tolerance_on(xpgrad_device), atol=1e-12)
        np.testing.assert_allclose(values(out), values(of_one(xs[i])), rtol=tolerance_on(xpgrad_device))


@pytest.mark.slow(one_in=8)
@_each
def test_a_batch_is_a_loop(name: str, xpgrad_device: str) -> None:
    function, xs = _operands(name, xpgrad_device)
    i = CASES[name].wrt[-1] - (len(CASES[name].ranges) - len(xs))

    def slope(*at: Any) -> Any:
        return xp.func.grad(lambda *a: xp.sum(function(*a)), argnums=i)(*at)

    for f in (function, slope):
        found = values(vmap(f)(*xs))
        expected = np.stack([values(f(*(x[k] for x in xs))) for k in range(5)])
        np.testing.assert_allclose(found, expected, rtol=tolerance_on(xpgrad_device), atol=1e-12)
    rows = [xp.stack([x, x * 1.0]) if k == i else x for k, x in enumerate(xs)]
    found = values(vmap(function, in_dims=tuple(0 if k == i else None for k in range(len(xs))))(*rows))
    np.testing.assert_allclose(found, np.stack([values(function(*xs))] * 2), rtol=tolerance_on(xpgrad_device))


COMPLEX = np.array([0.7 + 0.4j, 1.3 - 0.8j, 0.2 + 2.1j])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.complex])
def test_complex_functions(name: str, xpgrad_device: str) -> None:
    function = of_tensors(name)
    if len(CASES[name].ranges) == 1:
        check(function, [COMPLEX], xpgrad_device)
        found, expected = function(xp.asarray(COMPLEX, device=xpgrad_device)), getattr(scipy.special, name)(COMPLEX)
    elif name in ("xlogy", "xlog1py"):
        check(function, [COMPLEX, COMPLEX[::-1].copy()], xpgrad_device)
        return
    else:
        orders = (2,) if len(CASES[name].ranges) == 2 else (0.5, 1.25, 2.5)
        check(lambda z: function(*orders, z), [COMPLEX], xpgrad_device)
        found, expected = function(*orders, xp.asarray(COMPLEX, device=xpgrad_device)), getattr(scipy.special, name)(*orders, COMPLEX)
    np.testing.assert_allclose(values(found), expected, rtol=tolerance_on(xpgrad_device))


def test_complex_polygamma() -> None:
    z = np.array([0.7 + 0.4j, -3.3 - 0.8j, 30.0 + 2.0j, -0.5 + 1e-3j])
    import mpmath

    for n in (0, 1, 2, 5):
        expected = [complex(mpmath.psi(n, v)) for v in z]
        np.testing.assert_allclose(values(special.polygamma(n, xp.asarray(z))), expected, rtol=1e-12)
    orders = values(special.polygamma(xp.asarray([1.0, 2.0, 1.5, -1.0]), xp.asarray(z)))
    np.testing.assert_allclose(orders[:2], [complex(mpmath.psi(n, v)) for n, v in ((1, z[0]), (2, z[1]))])
    assert np.isnan(orders[2:]).all()


def test_real_functions_refuse_complex_numbers() -> None:
    z = xp.asarray(COMPLEX)
    for name, case in CASES.items():
        if not case.complex and name != "polygamma":
            with pytest.raises(TypeError, match=f"scipy.special.{name}: `.*` must be real"):
                special.__dict__[name](*[z] * len(case.ranges))


@pytest.mark.parametrize("order", [1j, xp.asarray([0.5 + 1j])])
@pytest.mark.parametrize("name", ["jv", "jn", "yv", "iv", "kv", "polygamma"])
def test_complex_orders_are_refused(name: str, order: Any) -> None:
    for z in (2.0, 1 + 1j):
        with pytest.raises(TypeError, match=f"scipy.special.{name}: `[vn]` must be real"):
            getattr(special, name)(order, z)


#: Points, by name, outside the domain and at a pole, with the argument's number.
BEYOND: dict[str, list[tuple[float, ...]]] = {
    "erfinv": [(1.5,), (-1.5,), (1.0,)], "erfcinv": [(2.5,), (-0.5,), (0.0,)], "logit": [(1.5,), (-0.5,), (0.0,), (1.0,)],
    "ndtri": [(1.5,), (-0.5,), (0.0,)], "loggamma": [(-0.5,), (-2.0,)], "gamma": [(-2.0,), (0.0,)], "gammaln": [(-2.0,), (0.0,)],
    "digamma": [(-2.0,)], "entr": [(-1.0,)], "xlogy": [(2.0, -1.0), (0.5, -1.0)], "xlog1py": [(2.0, -3.0)],
    "rel_entr": [(-1.0, -2.0), (1.0, -2.0), (-1.0, 2.0)], "kl_div": [(-1.0, -2.0), (1.0, -2.0), (-1.0, 2.0)], "y0": [(-1.0,)],
    "y1": [(-1.0,)], "yn": [(2.0, -1.0)], "yv": [(0.5, -1.0)], "iv": [(0.5, -1.0)], "kv": [(0.5, -1.0)],
    "gammainc": [(1.0, -1.0), (-1.0, 1.0)], "gammaincc": [(1.0, -1.0), (-1.0, 1.0)], "gammaincinv": [(1.0, 1.5), (1.0, -0.5)],
    "gammainccinv": [(1.0, 1.5)], "betainc": [(1.0, 1.0, 1.5), (-1.0, 1.0, 0.5), (1.0, 1.0, -0.5)], "betaincc": [(1.0, 2.0, 1.5)],
    "betainccinv": [(1.0, 2.0, 1.5)],
    "betaincinv": [(1.0, 2.0, 1.5)], "zeta": [(0.5, 2.0), (2.5, -0.5)], "beta": [(-1.0, 0.5)], "exp1": [(-1.0,)], "expi": [(0.0,)],
    "polygamma": [(-1.0, 2.0), (0.5, 2.0), (-2.0, 0.5)],
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_no_finite_lie_beyond_the_domain(name: str, xpgrad_device: str) -> None:
    case = CASES[name]
    expected = getattr(scipy.special, name)(*(np.array(c) for c in zip(*BEYOND[name])))
    found = at_points(name, BEYOND[name], device=xpgrad_device)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert not np.isfinite(found).any()
    for i in case.wrt:
        assert not np.isfinite(at_points(name, BEYOND[name], i, device=xpgrad_device)).any(), i


@pytest.mark.parametrize("order", [0.5, 1.7, -0.5, -1.5])
def test_the_derivative_of_yn_is_of_the_order_that_scipy_takes(order: float) -> None:
    x = xp.tensor(2.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # as in SciPy, the fraction of the order is dropped
        special.yn(order, x).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(scipy.special.yvp(int(order), 2.0), rel=1e-12)


@pytest.mark.slow(one_in=2)
def test_nan_stays_nan(xpgrad_device: str) -> None:
    for name, case in CASES.items():
        point = [tuple(np.nan if i == case.wrt[-1] else v for i, v in enumerate(points(case, 1)[0]))]
        for by in ((), (case.wrt[-1],)):
            assert np.isnan(at_points(name, point, *by, device=xpgrad_device)).all(), (name, by)


REFUSED = {
    "jv": (1.5, 2.0), "yv": (1.5, 2.0), "iv": (1.5, 2.0), "ive": (1.5, 2.0), "kv": (1.5, 2.0), "yn": (1.0, 2.0), "polygamma": (1.0, 2.0),
    "zeta": (2.5, 2.0), "kn": (1.0, 2.0), "expn": (1.0, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_derivatives_by_an_order_are_refused_by_name(name: str, xpgrad_device: str) -> None:
    n, x = (xp.tensor([v], device=xpgrad_device, requires_grad=True) for v in REFUSED[name])
    message = rf"scipy\.special\.{name}: the derivative with respect to `[vnx]` is not known"
    with pytest.raises(NotImplementedError, match=message):
        xp.sum(special.__dict__[name](n, x)).backward()
    with pytest.raises(NotImplementedError, match=message):
        jvp(lambda n: special.__dict__[name](n, x.detach()), (n.detach(),), (n.detach(),))


@pytest.mark.parametrize(("name", "rest"), [("gammainc", (2.0,)), ("gammaincc", (2.0,)), ("betainc", (1.5, 0.3)), ("betaincc", (1.5, 0.3))])
def test_second_derivatives_by_a_shape_are_refused(name: str, rest: tuple[float, ...]) -> None:
    a = xp.tensor([1.5], requires_grad=True)
    (first,) = xp.autograd.grad(xp.sum(special.__dict__[name](a, *rest)), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="of the second order"):
        xp.sum(first).backward()


@pytest.mark.slow(one_in=2)
@_each
def test_single_precision(name: str, xpgrad_device: str) -> None:
    case = CASES[name]
    columns = [np.array(c) for c in zip(*points(case, 5))]
    function = of_tensors(name)
    fixed = [columns.pop(0)[0]] if name.startswith("spherical_") else []
    xs = [xp.tensor(c.astype(np.float32), device=xpgrad_device, requires_grad=i + len(fixed) in case.wrt) for i, c in enumerate(columns)]
    out = function(*fixed, *xs)
    assert out.dtype == xp.float32
    xp.sum(out).backward()
    for i in case.wrt:
        assert xs[i - len(fixed)].grad.dtype == xp.float32
        at = [tuple(float(v) for v in p) for p in zip(*([np.full(5, fixed[0])] if fixed else []), *(values(x) for x in xs))]
        expected = at_points(name, at, i)
        np.testing.assert_allclose(values(xs[i - len(fixed)].grad), expected, rtol=2e-3, atol=2e-3 * float(np.max(np.abs(expected))))


torch_names = ["digamma", "erf", "erfc", "erfcx", "erfinv", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr", "logit", "ndtr",
               "ndtri", "sinc", "entr", "xlogy", "xlog1py"]  # fmt: skip


@pytest.mark.parametrize("name", torch_names)
def test_gradients_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    at = points(CASES[name], 10)
    for i in CASES[name].wrt:
        xs = [torch.tensor(np.array(c), requires_grad=k == i) for k, c in enumerate(zip(*at))]
        (expected,) = torch.autograd.grad(getattr(torch.special, name)(*xs).sum(), xs[i])
        np.testing.assert_allclose(at_points(name, at, i), expected.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc", "digamma", "zeta", "expi", "exp1", "rel_entr"])
def test_gradients_are_jaxs(name: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is what is compared with")
    if not jax.config.jax_enable_x64:
        pytest.skip("JAX computes in single precision here: run with JAX_ENABLE_X64=1")
    import jax.scipy.special

    at = points(CASES[name], 8)
    columns = [np.array(c) for c in zip(*at)]
    for i in CASES[name].wrt:
        if name == "betainc" and i < 2:
            continue  # JAX has none
        expected = jax.grad(lambda x, i=i: getattr(jax.scipy.special, name)(*columns[:i], x, *columns[i + 1 :]).sum())(columns[i])
        np.testing.assert_allclose(at_points(name, at, i), expected, rtol=1e-7, atol=1e-10)


def test_no_kernel_warns_in_the_usual_range() -> None:
    with warnings.catch_warnings(), np.errstate(divide="warn", over="warn", invalid="warn"):
        warnings.simplefilter("error")
        for name, case in CASES.items():
            at = points(case, 3)
            for by in ((), *((i,) for i in case.wrt)):
                at_points(name, at, *by)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].wrt])
def test_gradients_are_memory_of_their_own(name: str) -> None:
    """A gradient declared fresh shares memory with neither the cotangent nor a saved value, because the engine adds into it."""
    function, xs = _operands(name, "numpy")
    first = len(CASES[name].ranges) - len(xs)
    for i in (k - first for k in CASES[name].wrt):
        leaf = xp.tensor(values(xs[i]), requires_grad=True)
        out = function(*xs[:i], leaf, *xs[i + 1 :])
        g = xp.ones_like(out.detach())
        (found,) = xp.autograd.grad(out, leaf, g)
        assert not any(np.shares_memory(found.array, x.detach().array) for x in (out, g, leaf, *xs))


@pytest.mark.parametrize("name", CASES)
def test_halves_stay_halves(name: str) -> None:
    function, leaves = _operands(name, "numpy")
    out = function(*(x.detach().to(xp.float16) for x in leaves))
    assert (str(out.dtype), out.array.dtype) == ("float16", np.float16)


#: Points at which a function is nan for a parameter that is not differentiable, and the operand whose derivative must be nan too.
OUTSIDE: dict[str, tuple[tuple[float, ...], int]] = {
    "pdtr": ((-1.0, 1.0), 1), "pdtrc": ((-1.0, 1.0), 1), "pdtri": ((-1.0, 0.5), 1), "bdtr": ((3.0, 2.0, 0.3), 2),
    "bdtrc": ((3.0, 2.0, 0.3), 2), "nbdtr": ((-1.0, 2.0, 0.4), 2), "nbdtrc": ((-1.0, 2.0, 0.4), 2), "nbdtri": ((-1.0, 2.0, 0.4), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_derivatives_are_nan_where_values_are(name: str, xpgrad_device: str) -> None:
    point, operand = OUTSIDE[name]
    at = tuple(xp.asarray(v, device=xpgrad_device) for v in point)
    function = getattr(special, name)
    assert math.isnan(function(*at).item())
    assert math.isnan(xp.func.grad(function, argnums=operand)(*at).item())


@pytest.mark.parametrize("name", ["inv_boxcox", "inv_boxcox1p"])
@pytest.mark.parametrize(
    ("y", "power", "by_y", "by_power"),
    [(-1.0, 1.0, 1.0, -1.0), (-2.0, 0.5, 0.0, 0.0), (-0.5, 2.0, math.inf, -math.inf), (1.0, -1.0, math.inf, -math.inf)],
)
def test_inverse_box_cox_at_the_end_of_its_domain(
    name: str, y: float, power: float, by_y: float, by_power: float, xpgrad_device: str
) -> None:
    at = tuple(xp.asarray(v, device=xpgrad_device) for v in (y, power))
    found = xp.func.grad(getattr(special, name), argnums=(0, 1))(*at)
    assert [d.item() for d in found] == [by_y, by_power]


#: Arguments at an end of the support of a distribution, and derivatives of its functions by the arguments, one after the other.
ENDS: list[tuple[str, tuple[float, ...], dict[tuple[int, ...], float]]] = [
    ("gammainc", (1.0, 0.0), {(1,): 1.0, (1, 1): -1.0, (0, 1): -math.inf}),
    ("gammainc", (1.5, 0.0), {(1,): 0.0, (1, 1): math.inf, (0, 1): 0.0}),
    ("gammainc", (2.0, 0.0), {(1,): 0.0, (1, 1): 1.0, (0, 1): 0.0}),
    ("gammaincc", (2.0, 0.0), {(1,): 0.0, (1, 1): -1.0, (0, 1): 0.0}),
    ("gammainc", (3.0, 0.0), {(1,): 0.0, (1, 1): 0.0, (0, 1): 0.0}),
    ("chdtr", (4.0, 0.0), {(1,): 0.0, (1, 1): 0.25, (0, 1): 0.0}),
    ("betainc", (2.0, 3.0, 0.0), {(2,): 0.0, (2, 2): 12.0, (0, 2): 0.0, (1, 2): 0.0}),
    ("betainc", (1.0, 2.0, 0.0), {(2,): 2.0, (2, 2): -2.0, (0, 2): -math.inf, (1, 2): 1.0}),
    ("betainc", (1.0, 2.0, 1.0), {(2,): 0.0, (2, 2): -2.0, (0, 2): 0.0, (1, 2): 0.0}),
    ("betainc", (3.0, 1.0, 1.0), {(2,): 3.0, (2, 2): 6.0, (0, 2): 1.0, (1, 2): -math.inf}),
    ("betaincc", (3.0, 2.0, 1.0), {(2,): 0.0, (2, 2): 12.0, (0, 2): 0.0, (1, 2): 0.0}),
    ("gammaincinv", (1.0, 0.0), {(0,): 0.0, (1,): 1.0, (1, 1): 1.0}),
    ("gammaincinv", (2.5, 0.0), {(0,): 0.0, (1,): math.inf}),
    ("gammainccinv", (2.5, 1.0), {(0,): 0.0, (1,): -math.inf}),
    ("betaincinv", (1.0, 2.0, 0.0), {(0,): 0.0, (1,): 0.0, (2,): 0.5, (2, 2): 0.25}),
    ("betaincinv", (2.0, 3.0, 0.0), {(0,): 0.0, (1,): 0.0, (2,): math.inf}),
    ("betainccinv", (3.0, 1.0, 0.0), {(0,): 0.0, (1,): 0.0, (2,): -1 / 3}),
]  # fmt: skip


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("name", "point", "slopes"), ENDS)
def test_second_derivatives_at_the_ends_of_the_support(
    name: str, point: tuple[float, ...], slopes: dict[tuple[int, ...], float], xpgrad_device: str
) -> None:
    for by, exact in slopes.items():
        for order in {by, by[::-1]}:
            (found,) = at_points(name, [point], *order, device=xpgrad_device)
            assert found == pytest.approx(exact, rel=1e-6, abs=1e-12), order


@pytest.mark.parametrize(
    ("name", "at", "by"),
    [
        ("entr", (-1.0,), 0), ("kl_div", (-1.0, 2.0), 0), ("kl_div", (1.0, -2.0), 0), ("kl_div", (1.0, -2.0), 1),
        ("rel_entr", (-1.0, 2.0), 0), ("rel_entr", (1.0, -2.0), 1), ("xlogy", (1.0, -2.0), 1), ("xlog1py", (1.0, -2.0), 1),
        ("huber", (-1.0, 0.5), 0), ("pseudo_huber", (-1.0, 0.5), 0), ("pseudo_huber", (-1.0, 0.5), 1),
    ],
)  # fmt: skip
def test_second_derivatives_outside_of_the_domain_are_nan(name: str, at: tuple[float, ...], by: int) -> None:
    operands = [xp.asarray(v) for v in at]
    slope = xp.func.grad(getattr(special, name), argnums=by)
    for derive in (xp.func.grad, xp.func.jacfwd):
        assert math.isnan(slope(*operands).item())
        assert math.isnan(derive(slope, argnums=by)(*operands).item())
