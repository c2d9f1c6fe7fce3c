"""Law: values of distributions are SciPy's, and gradients in every argument agree with differences, and with PyTorch's if it has them."""

from __future__ import annotations

import inspect
import re
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("scipy", reason="it computes what these are made of")

import scipy.stats

import xpgrad as xp
from support.central_differences import check, has_float64, values
from support.special_functions import second_derivatives
from xpgrad.func import grad, jacfwd, jvp, vmap
from xpgrad.scipy import stats
from xpgrad_reference.sections import parts

pytestmark = pytest.mark.slow(one_in=3)

#: The shape parameters, by name.
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "norm": (), "expon": (), "laplace": (), "cauchy": (), "logistic": (), "lognorm": (0.8,), "uniform": (), "gamma": (2.3,),
    "beta": (2.5, 1.7), "chi2": (4.2,), "weibull_min": (1.6,), "t": (3.7,), "truncnorm": (-0.9, 1.3), "vonmises": (1.8,),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {"poisson": (3.4,), "binom": (7.0, 0.35), "bernoulli": (0.3,)}
VECTORS = ("multivariate_normal", "dirichlet")
KINDS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
X, Q = np.array([-1.3, 0.15, 0.4, 0.8, 2.7, 9.0]), np.array([0.02, 0.3, 0.7, 0.95])


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def test_every_distribution_is_in_a_table() -> None:
    assert {*CONTINUOUS, *DISCRETE, *VECTORS, "Continuous", "Dirichlet", "Discrete", "MultivariateNormal"} == set(stats.__all__)


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str, kind: str, xpgrad_device: str) -> None:
    ours, theirs, shapes = getattr(getattr(stats, name), kind), getattr(getattr(scipy.stats, name), kind), CONTINUOUS[name]
    quantile = kind in ("ppf", "isf")
    if quantile and name == "vonmises":
        with pytest.raises(NotImplementedError, match="by trial"):
            ours(0.5, *shapes)
        return
    at = np.array([0.0, 1.0, -0.1, 1.1, np.nan, *Q]) if quantile else np.array([*X, np.nan])
    for parameters in ((*shapes,), (*shapes, 0.2, 1.4), (*shapes, 0.2, -1.0)):
        found = values(ours(xp.asarray(at, device=xpgrad_device), *parameters))
        near = 1e-12 if has_float64(xpgrad_device) else 1e-3
        np.testing.assert_allclose(found, theirs(at, *parameters), rtol=near, atol=near * 1e-2)
    inner = Q[1:3] if quantile else np.array([0.31, 0.55, 0.83])
    points = [inner, *(np.array(s) for s in shapes), np.array(0.1), np.array(1.2)]
    twice = kind in ("logpdf", "pdf") or not shapes or name in ("lognorm", "weibull_min")  # shape parameters of incomplete functions: once
    check(ours, points, xpgrad_device, order=2 if twice else 1)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in ("truncnorm", "vonmises")])
def test_quantiles_near_the_ends(name: str) -> None:
    """Law: quantiles invert the probability of the nearer tail, and their derivatives the density, where it is far below rounding."""
    shapes, tail = (0.3, 2.5) if name == "beta" else CONTINUOUS[name], 2.0**-50
    family = getattr(stats, name)
    for quantile, nearer, q in (("ppf", "cdf", tail), ("isf", "sf", tail), ("ppf", "sf", 1 - tail), ("isf", "cdf", 1 - tail)):
        at = xp.tensor(q, requires_grad=True)
        x = getattr(family, quantile)(at, *shapes)
        np.testing.assert_allclose(getattr(family, nearer)(x, *shapes).item(), tail, rtol=1e-6)
        slope = xp.autograd.grad(x, at)[0].item() * family.pdf(x.detach(), *shapes).item()
        np.testing.assert_allclose(slope, 1.0 if quantile == "ppf" else -1.0, rtol=1e-6)


def _gamma(x: Any, a: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    return (a - 1) * mpmath.log(z) - z - mpmath.loggamma(a) - mpmath.log(scale)


def _beta(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    return (a - 1) * mpmath.log(z) + (b - 1) * mpmath.log(1 - z) - mpmath.log(mpmath.beta(a, b)) - mpmath.log(scale)


def _weibull(x: Any, c: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    return mpmath.log(c) + (c - 1) * mpmath.log(z) - z**c - mpmath.log(scale)


def _student(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    return -(df + 1) / 2 * mpmath.log1p(z * z / df) - mpmath.log(mpmath.beta(df / 2, 0.5)) - mpmath.log(df) / 2 - mpmath.log(scale)


def _bell(x: Any, loc: Any, scale: Any) -> Any:
    return -(((x - loc) / scale) ** 2) / 2 - mpmath.log(scale) - mpmath.log(2 * mpmath.pi) / 2


def _truncated(x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    return _bell(x, loc, scale) - mpmath.log(mpmath.ncdf(b) - mpmath.ncdf(a))


def _binomial(p: Any, k: float, n: float) -> Any:
    return mpmath.log(mpmath.binomial(n, k)) + k * mpmath.log(p) + (n - k) * mpmath.log(1 - p)


#: By name, the logarithm of the density, and points at which its formula or a part of it branches: x = loc, shape = 1, count = 0, ...
LOG_DENSITIES: dict[str, tuple[Any, list[tuple[float, ...]]]] = {
    "norm": (_bell, [(0.5, 0.5, 1.0), (1.0, 0.0, 1.0)]),
    "expon": (lambda x, loc, scale: -(x - loc) / scale - mpmath.log(scale), [(1.0, 0.0, 1.0), (2.0, 1.0, 0.5)]),
    "cauchy": (lambda x, loc, scale: -mpmath.log1p(((x - loc) / scale) ** 2) - mpmath.log(mpmath.pi * scale), [(0.5, 0.5, 1.0)]),
    "logistic": (lambda x, loc, scale: -2 * mpmath.log(2 * mpmath.cosh((x - loc) / scale / 2)) - mpmath.log(scale), [(0.5, 0.5, 1.0)]),
    "lognorm": (lambda x, s, loc, scale: _bell(mpmath.log((x - loc) / scale), 0, s) - mpmath.log(x - loc), [(1.0, 1.0, 0.0, 1.0)]),
    "gamma": (_gamma, [(1.0, 1.0, 0.0, 1.0), (0.7, 1.0, 0.0, 2.0), (2.0, 2.0, 0.0, 1.0), (1.5, 2.0, 0.5, 1.0)]),
    "chi2": (lambda x, df, loc, scale: _gamma(x, df / 2, loc, 2 * scale), [(1.0, 2.0, 0.0, 1.0), (2.0, 4.0, 0.0, 1.0)]),
    "beta": (_beta, [(0.5, 1.0, 1.0, 0.0, 1.0), (0.3, 1.0, 1.0, 0.0, 1.0), (0.3, 1.0, 2.0, 0.0, 1.0), (0.3, 2.0, 1.0, 0.0, 1.0)]),
    "t": (_student, [(0.5, 1.0, 0.5, 1.0), (1.0, 2.0, 0.0, 1.0)]),
    "weibull_min": (_weibull, [(1.0, 1.0, 0.0, 1.0), (0.7, 1.0, 0.0, 1.0), (1.0, 2.0, 0.0, 1.0)]),
    "truncnorm": (_truncated, [(0.5, 0.0, 1.0, 0.0, 1.0), (-0.5, -1.0, 0.0, 0.0, 1.0), (0.0, -1.0, 1.0, 0.0, 1.0)]),
    "vonmises": (
        lambda x, kappa, loc, scale: (
            kappa * mpmath.cos((x - loc) / scale) - mpmath.log(2 * mpmath.pi * mpmath.besseli(0, kappa)) - mpmath.log(scale)
        ),
        [(0.0, 1.0, 0.0, 1.0), (0.5, 1.0, 0.5, 1.0)],
    ),
}  # fmt: skip
LOG_PROBABILITIES: dict[str, tuple[Any, list[tuple[float, ...]]]] = {
    "poisson": (lambda mu, k: k * mpmath.log(mu) - mpmath.loggamma(k + 1) - mu, [(1.0, 0.0), (0.5, 0.0), (1.0, 1.0), (2.0, 3.0)]),
    "binom": (_binomial, [(0.3, 0.0, 3.0), (0.3, 3.0, 3.0), (0.5, 1.0, 2.0), (0.5, 0.0, 1.0)]),
    "bernoulli": (lambda p, k: _binomial(p, k, 1.0), [(0.3, 0.0), (0.3, 1.0), (0.5, 1.0)]),
}


def _hessian(function: Any, point: tuple[float, ...], count: int, device: str) -> np.ndarray:
    """Return second derivatives in the first operands, each pair in both orders, by two passes."""
    leaves = [xp.tensor(v, device=device, requires_grad=i < count) for i, v in enumerate(point)]
    rows = []
    for i in range(count):
        (slope_i,) = xp.autograd.grad(function(*leaves), leaves[i], create_graph=True)
        slope_i = slope_i + 0.0 * sum(leaves[:count])  # a slope may be a constant
        rows.append([float(values(g)) for g in xp.autograd.grad(slope_i, leaves[:count])])
    return np.array(rows)


@pytest.mark.parametrize("name", [*LOG_DENSITIES, *LOG_PROBABILITIES])
def test_hessians_of_densities_are_right_and_symmetric_where_a_formula_branches(name: str, xpgrad_device: str) -> None:
    """Law: second derivatives in all parameters are mpmath's, also where a shape is 1, a count is 0, or x is at the peak."""
    exact, points = (LOG_DENSITIES | LOG_PROBABILITIES)[name]
    near = 1e-9 if has_float64(xpgrad_device) else 2e-3
    for point in points:
        family, count = getattr(stats, name), len(point) if name in LOG_DENSITIES else 1
        log = family.logpdf if name in LOG_DENSITIES else lambda p, k, *n, f=family: f.logpmf(k, *n, p)
        expected = second_derivatives(exact, point, count)
        found = _hessian(log, point, count, xpgrad_device)
        np.testing.assert_allclose(found, expected, rtol=near, atol=near, err_msg=str(point))
        density = _hessian(lambda *a, log=log: xp.exp(log(*a)), point, count, xpgrad_device)
        np.testing.assert_allclose(density, density.T, rtol=near, atol=near, err_msg=str(point))


@pytest.mark.parametrize("alpha", [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
def test_hessians_of_dirichlets_density(alpha: list[float], xpgrad_device: str) -> None:
    """The second derivative ``1 / x_i`` in a coordinate and its parameter is right, also if the parameter is 1."""
    x, a = (xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in ([0.2, 0.3, 0.5], alpha))
    for one, other in ((x, a), (a, x)):
        (first,) = xp.autograd.grad(stats.dirichlet.logpdf(x, a), one, create_graph=True)
        rows = [values(xp.autograd.grad(first[i], other, retain_graph=True)[0]) for i in range(3)]
        np.testing.assert_allclose(rows, np.diag(1 / values(x)), rtol=1e-9 if has_float64(xpgrad_device) else 2e-3, atol=1e-12)


@pytest.mark.parametrize("kind", ["logpmf", "pmf", "cdf", "logcdf", "sf", "ppf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_distributions_on_integers(name: str, kind: str, xpgrad_device: str) -> None:
    ours, theirs, shapes = getattr(getattr(stats, name), kind), getattr(getattr(scipy.stats, name), kind), DISCRETE[name]
    if kind == "ppf":
        q = xp.tensor([0.0, 0.3, 0.9, 1.0, 1.5, np.nan], device=xpgrad_device, requires_grad=True)
        for parameters in ((*shapes,), (*shapes, 1.0)):
            found = ours(q, *parameters)
            assert not found.requires_grad
            np.testing.assert_array_equal(values(found), theirs(values(q), *parameters))
        loc = xp.tensor(1.0, device=xpgrad_device, requires_grad=True)  # a quantile moves by it
        found = ours(q, *shapes, loc)
        np.testing.assert_array_equal(values(found), theirs(values(q), *shapes, 1.0))
        found[:4].sum().backward()
        assert loc.grad is not None
        assert loc.grad.item() == 4.0
        assert q.grad is None
        return
    k = np.array([-1.0, 0.0, 1.0, 3.0, 7.0, 12.0, 2.5 if kind in ("cdf", "sf") else 2.0])
    near = 1e-12 if has_float64(xpgrad_device) else 1e-3
    for parameters in ((*shapes,), (*shapes, 1.0)):
        np.testing.assert_allclose(
            values(ours(xp.asarray(k, device=xpgrad_device), *parameters)), theirs(k, *parameters), rtol=near, atol=near
        )
    assert np.isnan(values(ours(xp.asarray(k, device=xpgrad_device), *shapes[:-1], -0.5))).all()
    places = xp.asarray([0.0, 1.0] if name == "bernoulli" else [0.0, 1.0, 3.0], device=xpgrad_device)
    fixed = shapes[:-1]
    if kind == "logcdf" and name == "bernoulli":
        places = places[:1]
    check(lambda p: ours(xp.asarray(values(places), device=p.device), *fixed, p), [np.array(shapes[-1])], xpgrad_device)


@pytest.mark.parametrize("kind", ["logpmf", "pmf", "cdf", "logcdf", "sf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_what_is_no_number_of_events_has_scipys_value(name: str, kind: str, xpgrad_device: str) -> None:
    k = np.array([np.nan, np.inf, -np.inf])
    ours, theirs = (getattr(getattr(module, name), kind) for module in (stats, scipy.stats))
    found = ours(xp.asarray(k, device=xpgrad_device), *DISCRETE[name])
    np.testing.assert_array_equal(values(found), theirs(k, *DISCRETE[name]))


@pytest.mark.parametrize("kind", ["logpmf", "pmf"])
@pytest.mark.parametrize(("name", "shapes"), [("binom", (5.0,)), ("bernoulli", ())])
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_probability_outside_of_the_support_has_no_derivative(
    name: str, shapes: tuple[float, ...], p: float, kind: str, xpgrad_device: str
) -> None:
    """Not even if 0 or the largest number of events is impossible."""
    leaf = xp.tensor(p, device=xpgrad_device, requires_grad=True)
    k = xp.asarray([-2.0, 0.5, 9.0], device=xpgrad_device)
    xp.sum(xp.exp(getattr(getattr(stats, name), kind)(k, *shapes, leaf))).backward()
    assert leaf.grad is not None
    assert leaf.grad.item() == 0.0


TORCH = {
    "norm": ("Normal", (0.3, 1.4)), "expon": ("Exponential", (1 / 1.4,)), "laplace": ("Laplace", (0.3, 1.4)),
    "cauchy": ("Cauchy", (0.3, 1.4)),
    "gamma": ("Gamma", (2.3, 1 / 1.4)), "beta": ("Beta", (2.5, 1.7)), "chi2": ("Chi2", (4.2,)), "t": ("StudentT", (3.7,)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "others", "k"), [
    *[("poisson", (), k) for k in (0, 1, 2, 3)], *[("bernoulli", (), k) for k in (0, 1)],
    *[("binom", (n,), k) for n in (1, 3) for k in range(n + 1)], ("binom", (3000,), 1500),
])  # fmt: skip
def test_probabilities_at_the_ends_of_a_parameter_have_the_derivatives_of_one_side(
    name: str, others: tuple[int, ...], k: int, xpgrad_device: str
) -> None:
    """Where the logarithm is infinite, such as that of ``poisson.pmf(1, 0)``, the first and the second derivative are finite."""

    def pmf(q: Any) -> Any:
        return getattr(stats, name).pmf(k, *others, q)

    for end, step in ((0.0, 1e-3), (1.0, -1e-3)):
        if name == "poisson" and end:
            continue
        f = [float(getattr(scipy.stats, name).pmf(k, *others, end + i * step)) for i in range(5)]
        slope = (-25.0 * f[0] + 48.0 * f[1] - 36.0 * f[2] + 16.0 * f[3] - 3.0 * f[4]) / (12.0 * step)
        bend = (35.0 * f[0] - 104.0 * f[1] + 114.0 * f[2] - 56.0 * f[3] + 11.0 * f[4]) / (12.0 * step**2)
        q = xp.asarray(end, device=xpgrad_device)
        close = {"rel": 1e-3, "abs": 1e-4}
        assert float(pmf(q)) == pytest.approx(f[0], abs=1e-6)
        assert float(grad(pmf)(q)) == pytest.approx(slope, **close)
        assert float(jvp(pmf, (q,), (xp.ones_like(q),))[1]) == pytest.approx(slope, **close)
        assert float(vmap(grad(pmf))(xp.stack([q, q]))[1]) == pytest.approx(slope, **close)
        assert float(grad(grad(pmf))(q)) == pytest.approx(bend, **close)


@pytest.mark.parametrize("name", TORCH)
def test_densities_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    kind, parameters = TORCH[name]
    x = torch.tensor([0.31, 0.55, 0.83], dtype=torch.float64, requires_grad=True)
    out = getattr(torch.distributions, kind)(*(torch.tensor(p, dtype=torch.float64) for p in parameters)).log_prob(x)
    located = {"norm", "laplace", "cauchy"} & {name}
    more = {"loc": 0.3, "scale": 1.4} if located else {} if name in ("beta", "chi2", "t") else {"scale": 1.4}
    y = xp.tensor([0.31, 0.55, 0.83], requires_grad=True)
    ours = getattr(stats, name).logpdf(y, *CONTINUOUS[name], **more)
    np.testing.assert_allclose(values(ours), out.detach().numpy(), rtol=1e-12)
    (expected,), (found,) = torch.autograd.grad(out.sum(), x), xp.autograd.grad(xp.sum(ours), y)
    np.testing.assert_allclose(values(found), expected.numpy(), rtol=1e-11)


def test_outside_of_the_support_and_of_the_parameters(xpgrad_device: str) -> None:
    for name in ("gamma", "beta", "expon", "uniform", "chi2", "weibull_min", "lognorm"):
        outside = [-1.0, 2.0] if name in ("beta", "uniform") else [-1.0, -2.0]
        x, *shapes = (xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in (outside, *CONTINUOUS[name]))
        xp.sum(getattr(stats, name).pdf(x, *shapes)).backward()
        assert values(x.grad).tolist() == [0.0, 0.0], name
        assert all(s.grad is None or not values(s.grad).any() for s in shapes), name
    a = xp.tensor([-2.0], device=xpgrad_device, requires_grad=True)
    for kind in ("logpdf", "cdf"):
        a.grad = None
        xp.sum(getattr(stats.gamma, kind)(0.5, a)).backward()
        assert np.isnan(values(a.grad)).all()
    scale = xp.tensor([-2.0], device=xpgrad_device, requires_grad=True)
    xp.sum(stats.norm.cdf(0.5, scale=scale)).backward()
    assert np.isnan(values(scale.grad)).all()


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "vonmises"])
@pytest.mark.parametrize("kind", ["cdf", "sf", "logcdf", "logsf"])
def test_probabilities_up_to_infinity_do_not_change(name: str, kind: str, xpgrad_device: str) -> None:
    for end in (np.inf, -np.inf):
        expected = getattr(getattr(scipy.stats, name), kind)(end, *CONTINUOUS[name], 0.3, 1.2)
        operands = [xp.asarray(v, device=xpgrad_device) for v in (end, *CONTINUOUS[name], 0.3, 1.2)]
        everything = tuple(range(len(operands)))
        function = getattr(getattr(stats, name), kind)
        assert function(*operands).item() == expected
        if np.isfinite(expected):
            for derive in (grad, jacfwd):
                assert not any(values(d) for d in derive(function, argnums=everything)(*operands))
        for bad in ((np.inf, 1.0), (0.0, np.inf), (0.0, -1.0)):
            expected = getattr(getattr(scipy.stats, name), kind)(end, *CONTINUOUS[name], *bad)
            np.testing.assert_array_equal(values(function(*operands[:-2], *bad)), expected)


@pytest.mark.parametrize(
    ("name", "shapes", "end"),
    [
        ("gamma", (3.0,), 0.0), ("gamma", (2.0,), 0.0), ("chi2", (7.0,), 0.0), ("chi2", (4.0,), 0.0),
        ("beta", (2.0, 4.0), 0.0), ("beta", (3.0, 2.0), 1.0), ("beta", (900.0, 800.0), 1.0), ("weibull_min", (3.5,), 0.0),
        ("weibull_min", (2.0,), 0.0),
    ],
)  # fmt: skip
def test_densities_have_derivatives_at_ends_of_the_support(name: str, shapes: tuple[float, ...], end: float, xpgrad_device: str) -> None:
    ours, theirs = getattr(stats, name).pdf, getattr(scipy.stats, name).pdf
    point = [0.5 + 2.0 * end, *shapes, 0.5, 2.0]
    operands = [xp.asarray(v, device=xpgrad_device) for v in point]
    assert ours(*operands).item() == pytest.approx(theirs(*point), rel=1e-5)
    # The derivatives with respect to the argument and the location are those inside of the support.
    inside = [0.5 + 2.0 * end + (1e-6 if end == 0 else -1e-6), *shapes, 0.5, 2.0]
    slope = (theirs(*inside) - theirs(*point)) / (inside[0] - point[0])
    expected = [slope, *[0.0] * len(shapes), -slope, -slope * 2.0 * end / 2.0 - theirs(*point) / 2.0]
    everything = tuple(range(len(operands)))
    for derive in (grad, jacfwd):
        np.testing.assert_allclose([values(d) for d in derive(ours, argnums=everything)(*operands)], expected, rtol=1e-4, atol=1e-4)


def test_the_density_of_gamma_at_zero_jumps_with_the_shape() -> None:
    assert [g.item() for g in grad(stats.gamma.pdf, argnums=(0, 1))(xp.asarray(0.0), xp.asarray(1.0))] == [-1.0, -np.inf]


@pytest.mark.parametrize(("kind", "slope"), [("cdf", 0.5), ("sf", -0.5), ("logcdf", 1.0), ("logsf", -1.0)])
def test_laplaces_distribution_function_is_smooth_in_the_middle(kind: str, slope: float, xpgrad_device: str) -> None:
    x = xp.tensor(0.0, device=xpgrad_device, requires_grad=True)
    getattr(stats.laplace, kind)(x).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(slope)


INF = np.inf
#: Quantiles at a probability of 0 or 1: the distribution, its shape parameters, and the derivatives of `ppf` at 0 and 1.
SLOPES = {
    "normal": ("norm", (), INF, INF), "exponential": ("expon", (), 1.0, INF), "Laplace": ("laplace", (), INF, INF),
    "gamma, no density": ("gamma", (2.0,), INF, INF), "gamma, a density": ("gamma", (1.0,), 1.0, INF),
    "gamma, an infinite density": ("gamma", (0.5,), 0.0, INF), "chi2": ("chi2", (2.0,), 2.0, INF), "beta": ("beta", (1.0, 2.0), 0.5, INF),
    "Weibull": ("weibull_min", (1.0,), 1.0, INF), "lognormal": ("lognorm", (1.0,), INF, INF), "Student": ("t", (3.0,), INF, INF),
    "truncated": ("truncnorm", (-1.0, 2.0), *(1 / scipy.stats.truncnorm.pdf([-1.0, 2.0], -1.0, 2.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_quantiles_at_the_ends_have_the_derivative_of_one_side(name: str, xpgrad_device: str) -> None:
    family, shapes, low, high = SLOPES[name]
    q = xp.tensor([0.0, 1.0, 0.5], device=xpgrad_device, requires_grad=True)
    more = [xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in (*shapes, 0.25, 2.0)]
    for kind, ends in (("ppf", [low, high]), ("isf", [-high, -low])):
        quantile = getattr(getattr(stats, family), kind)
        with np.errstate(divide="ignore"):
            grads = [values(g) for g in xp.autograd.grad(xp.sum(quantile(q, *more)[:2]), [q, *more])]
            tangent = jvp(lambda p, quantile=quantile: quantile(p, *more), (q.detach(),), (xp.ones_like(q),))[1]
        np.testing.assert_allclose(grads[0], [*np.multiply(ends, 2.0), 0.0], rtol=1e-5)
        np.testing.assert_allclose(values(tangent)[:2], np.multiply(ends, 2.0), rtol=1e-5)
        assert grads[-2] == 2.0  # both ends move with the location
        if family != "truncnorm":
            assert not np.any(grads[1:-2])  # no end moves with a shape


@pytest.mark.parametrize(("name", "shapes"), [("norm", ()), ("gamma", (2.0,)), ("beta", (2.0, 3.0)), ("weibull_min", (1.5,))])
@pytest.mark.parametrize("kind", ["ppf", "isf"])
def test_second_derivatives_of_quantiles_in_forward_mode(name: str, shapes: tuple[float, ...], kind: str, xpgrad_device: str) -> None:
    theirs = getattr(scipy.stats, name)
    place = getattr(theirs, kind)(0.3, *shapes)
    density, change = theirs.pdf(place, *shapes), (theirs.pdf(place + 1e-4, *shapes) - theirs.pdf(place - 1e-4, *shapes)) / 2e-4
    q = xp.asarray(0.3, device=xpgrad_device)
    found = jvp(grad(lambda p: getattr(getattr(stats, name), kind)(p, *shapes)), (q,), (xp.ones_like(q),))[1]
    assert found.item() == pytest.approx(-change / density**3, rel=1e-4)


@pytest.mark.parametrize("kind", ["ppf", "isf"])
def test_quantiles_of_a_batch_of_shapes_at_the_same_probabilities(kind: str, xpgrad_device: str) -> None:
    ends = np.array([-2.0, -1.5, -1.0]), np.array([0.5, 1.0, 2.0])
    q = np.array([0.0, 0.3, 1.0])  # as many as there are distributions
    ours, theirs = getattr(stats.truncnorm, kind), getattr(scipy.stats.truncnorm, kind)
    at, *shapes = (xp.asarray(v, device=xpgrad_device) for v in (q, *ends))
    found = vmap(lambda a, b: ours(at, a, b))(*shapes)
    np.testing.assert_allclose(values(found), [theirs(q, a, b) for a, b in zip(*ends)], rtol=1e-5)
    slopes = vmap(grad(lambda a, b: xp.sum(ours(at[::2], a, b))))(*shapes)
    np.testing.assert_allclose(values(slopes), 1.0)  # one end moves with `a`
    batch = getattr(stats.gamma, kind)
    found = vmap(lambda a: batch(at, a))(xp.asarray([0.5, 1.0, 2.0], device=xpgrad_device))
    np.testing.assert_allclose(values(found), [getattr(scipy.stats.gamma, kind)(q, a) for a in (0.5, 1.0, 2.0)], rtol=1e-5)


@pytest.mark.parametrize("kind", ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"])
def test_lognorm_begins_at_zero(kind: str, xpgrad_device: str) -> None:
    x, s = (xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in (0.0, 0.7))
    found = getattr(stats.lognorm, kind)(x, s)
    assert found.item() == getattr(scipy.stats.lognorm, kind)(0.0, 0.7)
    found.backward()
    assert x.grad is not None
    assert s.grad is not None
    assert (x.grad.item(), s.grad.item()) == (0.0, 0.0)


#: Shapes of which any three broadcast.
MEETING = st.sampled_from([(), (3,), (1,), (2, 1), (2, 3)])


@settings(max_examples=40, deadline=None)
@given(shapes=st.tuples(MEETING, MEETING, MEETING), wrt=st.sets(st.integers(0, 2), min_size=1), seed=st.integers(0, 99))
def test_the_normal_density_of_numbers_and_arrays(shapes: tuple[tuple[int, ...], ...], wrt: set[int], seed: int) -> None:
    """Law: the density is right for any broadcasting shapes and any differentiated arguments, in both modes, batched and compiled."""
    rng = np.random.default_rng(seed)
    points = [rng.normal(size=s) for s in shapes[:2]] + [rng.uniform(0.6, 1.8, shapes[2])]
    chosen = sorted(wrt)

    def of(*moving: Any) -> Any:
        operands = [xp.asarray(p) for p in points]
        for i, value in zip(chosen, moving):
            operands[i] = value
        return stats.norm.logpdf(*operands)

    check(of, [points[i] for i in chosen])
    shape = np.broadcast_shapes(*shapes)
    weights = xp.asarray(rng.normal(size=shape))
    leaves = [xp.tensor(points[i], requires_grad=True) for i in chosen]
    whole = xp.autograd.grad(xp.sum(of(*leaves) * weights), leaves)
    compiled = xp.compile(lambda *moving: xp.sum(of(*moving) * weights))
    for g, h in zip(whole, xp.autograd.grad(compiled(*leaves), leaves)):
        np.testing.assert_allclose(values(h), values(g), rtol=1e-12, atol=1e-12)
    steps = [rng.normal(size=(2, *leaf.shape)) for leaf in leaves]
    plain = [leaf.detach() for leaf in leaves]
    tangents = [jvp(of, tuple(plain), tuple(xp.asarray(s[k]) for s in steps))[1] for k in range(2)]
    for k, tangent in enumerate(tangents):
        assert tangent.shape == shape
        expected = sum(float(np.sum(s[k] * values(g))) for s, g in zip(steps, whole))
        np.testing.assert_allclose(float(xp.sum(tangent * weights)), expected, rtol=1e-10, atol=1e-10)
    moved = [xp.asarray(values(leaf) + 0.1 * s) for leaf, s in zip(plain, steps)]
    found = values(vmap(of)(*moved))
    np.testing.assert_allclose(found, np.stack([values(of(*(m[k] for m in moved))) for k in range(2)]), rtol=1e-12)


def test_the_normal_density_of_many_numbers() -> None:
    """Law: on large arrays, where a gradient may reuse another one's memory, all gradients agree with the closed form, twice."""
    x = np.random.default_rng(0).normal(size=40_000)
    leaves = [xp.tensor(v, requires_grad=True) for v in (0.3, 1.4, x)]
    out = xp.sum(stats.norm.logpdf(leaves[2], *leaves[:2]))
    z = (x - 0.3) / 1.4
    for _ in range(2):
        by_loc, by_scale, by_x = (values(g) for g in xp.autograd.grad(out, leaves, retain_graph=True))
        np.testing.assert_allclose(by_x, -z / 1.4, rtol=1e-13)
        np.testing.assert_allclose(by_loc, np.sum(z) / 1.4, rtol=1e-12)
        np.testing.assert_allclose(by_scale, np.sum(z * z - 1) / 1.4, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.0, -1.4, np.nan])
def test_what_is_no_scale_has_no_density_and_no_derivative(scale: float, xpgrad_device: str) -> None:
    leaves = [xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in ([0.3, 2.0], 0.1, scale)]
    out = stats.norm.logpdf(*leaves)
    assert np.isnan(values(out)).all()
    for g in xp.autograd.grad(xp.sum(out), leaves):
        assert np.isnan(values(g)).all()


@pytest.mark.parametrize("scale", [1.4, [1.4, 0.7]], ids=["number", "array"])
@pytest.mark.parametrize("shape", [(0,), (2,), (3, 2)])
def test_the_gradient_of_a_sum_is_that_of_ones(shape: tuple[int, ...], scale: object, xpgrad_device: str) -> None:
    """The fast path for a sum's cotangent, one number in memory, gives the same gradients as an array of ones."""
    if shape == (0,) and scale != 1.4:
        scale = np.ones(0)
    x = np.linspace(-1.0, 2.0, int(np.prod(shape))).reshape(shape)
    leaves = [xp.asarray(np.asarray(v), device=xpgrad_device).requires_grad_() for v in (x, 0.3, scale)]
    out = stats.norm.logpdf(*leaves)
    ones = xp.asarray(np.ones(shape), device=xpgrad_device)
    for short, long in zip(xp.autograd.grad(xp.sum(out), leaves, retain_graph=True), xp.autograd.grad(out, leaves, ones)):
        np.testing.assert_allclose(values(short), values(long), rtol=1e-6 if "mlx" in xpgrad_device else 1e-14)


def test_wrong_parameters_are_refused_by_name() -> None:
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"scipy\.stats\.gamma\.logpdf: the parameter `a` is missing"):
        stats.gamma.logpdf(x)
    with pytest.raises(TypeError, match=r"scipy\.stats\.norm\.cdf: got `df`, but takes `loc`, `scale`"):
        stats.norm.cdf(x, df=2.0)
    with pytest.raises(TypeError, match=r"scipy\.stats\.norm\.cdf: got 3 parameters"):
        stats.norm.cdf(x, 1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match=r"scipy\.stats\.norm\.logpdf: `x` has shape \(2,\), `loc` has shape \(3,\)"):
        stats.norm.logpdf(x, xp.zeros(3))


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("kappa", [0.01, 1.0, 24.9, 25.1, 80.0, 2000.0])
def test_the_distribution_function_of_directions(kappa: float) -> None:
    at = np.concatenate([np.linspace(-7.0, 7.0, 41), np.linspace(-3.0, 3.0, 21) / np.sqrt(kappa)])
    exact = [0.5 + float(mpmath.quad(lambda u: mpmath.exp(kappa * (mpmath.cos(u) - 1)), [0, *_pieces(z)])) / _whole(kappa) for z in at]
    np.testing.assert_allclose(values(stats.vonmises.cdf(xp.asarray(at), kappa)), np.asarray(exact), rtol=1e-11, atol=1e-14)
    check(stats.vonmises.cdf, [np.array([0.3, -0.1]) / np.sqrt(kappa), np.array(kappa)], "numpy", order=2)


def _pieces(z: float) -> list[float]:
    return [z * k / 8 for k in range(1, 9)]


def _whole(kappa: float) -> float:
    return float(2 * mpmath.pi * mpmath.besseli(0, kappa) * mpmath.exp(-kappa))


@pytest.mark.parametrize(
    "ends",
    [
        (-np.inf, 0.5),
        (0.5, np.inf),
        (-np.inf, np.inf),
        (8.0, 9.0),
        (30.0, np.inf),
        (-12.0, -11.0),
        (0.0, 1.0),
        (50.0, 60.0),
        (-60.0, -50.0),
        (-5.1, -5.0999),
    ],
)
def test_truncation_far_out(ends: tuple[float, float]) -> None:
    low, high = max(ends[0], -3.0), min(ends[1], ends[0] + 1.0 if np.isfinite(ends[0]) else 3.0)
    at = np.linspace(low, high, 7)
    for kind in ("logpdf", "cdf", "sf", "logcdf", "logsf"):
        ours, theirs = getattr(stats.truncnorm, kind), getattr(scipy.stats.truncnorm, kind)
        np.testing.assert_allclose(values(ours(xp.asarray(at), *ends)), theirs(at, *ends), rtol=1e-9, atol=1e-13)
    q = np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(
        values(stats.truncnorm.ppf(xp.asarray(q), *ends)), scipy.stats.truncnorm.ppf(q, *ends), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("ends", [(0.5, np.inf), (-np.inf, 0.5), (-np.inf, np.inf), (60.0, np.inf), (-np.inf, -60.0)])
@pytest.mark.parametrize("kind", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"])
def test_gradients_by_infinite_ends_are_zero(ends: tuple[float, float], kind: str) -> None:
    middle = max(ends[0], 0.0) + 0.3 if np.isinf(ends[1]) else ends[1] - 0.3
    function = getattr(stats.truncnorm, kind)
    point, *found = [xp.tensor(v, requires_grad=True) for v in (0.3 if kind in ("ppf", "isf") else middle, *ends)]
    first = xp.autograd.grad(function(point, *found), (point, *found), create_graph=True)
    seconds = xp.autograd.grad(first[0], (point, *found))
    for grads in (first, seconds):
        assert all(np.isfinite(g.item()) for g in grads)
        assert [g.item() for g, end in zip(grads[1:], ends, strict=True) if np.isinf(end)] == [0.0] * sum(map(np.isinf, ends))
    if not any(map(np.isfinite, ends)):  # a whole normal variable
        np.testing.assert_allclose(first[0].item(), xp.func.grad(getattr(stats.norm, kind))(point.detach()).item(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "kind", "q", "value", "slope"),
    [
        ("uniform", "ppf", 0.0, 2.0, 3.0), ("uniform", "ppf", 1.0, 5.0, 3.0), ("uniform", "isf", 0.0, 5.0, -3.0),
        ("uniform", "isf", 1.0, 2.0, -3.0), ("expon", "ppf", 0.0, 2.0, 3.0), ("expon", "isf", 1.0, 2.0, -3.0),
    ],
)  # fmt: skip
def test_quantiles_at_finite_ends_of_the_support(name: str, kind: str, q: float, value: float, slope: float, xpgrad_device: str) -> None:
    def quantile(q: Any) -> Any:
        return getattr(getattr(stats, name), kind)(q, 2.0, 3.0)

    at = xp.asarray(q, device=xpgrad_device)
    assert (quantile(at).item(), xp.func.grad(quantile)(at).item()) == (value, slope)


def _normal_integral(start: float, stop: float) -> Any:
    sign = 1 if start > 0 else -1
    first, last = (mpmath.erfc(abs(mpmath.mpf(t)) / mpmath.sqrt(2)) for t in (start, stop))
    return sign * (first - last) * mpmath.sqrt(mpmath.pi / 2)


@pytest.mark.parametrize("ends", [(50.0, 60.0), (-60.0, -50.0), (8.0, 9.0)])
def test_quantiles_far_out(ends: tuple[float, float]) -> None:
    """Law: quantiles invert the distribution function where `ndtr` underflows, and their derivatives are those of the inverse."""
    mpmath.mp.dps = 40
    whole = _normal_integral(*ends)
    for q in (1e-12, 0.3, 0.9):
        for kind, (start, sign) in {"ppf": (ends[0], 1), "isf": (ends[1], -1)}.items():
            x = xp.tensor(q, requires_grad=True)
            z = getattr(stats.truncnorm, kind)(x, *ends)
            first = xp.autograd.grad(z, x, create_graph=True)[0]
            second = xp.autograd.grad(first, x)[0]
            at = z.item()
            part = abs(_normal_integral(start, at)) / whole
            slope = sign * whole * mpmath.exp(mpmath.mpf(at) ** 2 / 2)
            np.testing.assert_allclose(float((part - q) * slope), 0.0, atol=1e-13 * abs(at))
            np.testing.assert_allclose([first.item(), second.item()], [float(slope), float(at * slope**2)], rtol=1e-11)


COV = np.array([[2.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 0.7]])


def test_multivariate_normal(xpgrad_device: str) -> None:
    rng = np.random.default_rng(0)
    near = 1e-12 if has_float64(xpgrad_device) else 1e-4
    theirs = scipy.stats.multivariate_normal
    cases = [
        (rng.normal(size=(4, 3)), rng.normal(size=3), COV), (rng.normal(size=(2, 4, 3)), None, COV),
        (rng.normal(size=3), np.zeros(3), np.array([1.0, 2, 3])), (rng.normal(size=(4, 3)), rng.normal(size=3), 2.0),
        (rng.normal(size=5), 0.3, 2.0), (0.4, None, 1.0),
    ]  # fmt: skip
    for x, mean, cov in cases:
        given = [v if v is None or np.isscalar(v) else xp.asarray(v, device=xpgrad_device) for v in (x, mean, cov)]
        for kind in ("logpdf", "pdf"):
            found = values(getattr(stats.multivariate_normal, kind)(*given))
            np.testing.assert_allclose(found, getattr(theirs, kind)(x, mean, cov), rtol=near, atol=near)
            np.testing.assert_array_equal(values(getattr(stats.multivariate_normal, kind)(*given, allow_singular=True)), found)
        np.testing.assert_allclose(values(stats.multivariate_normal.entropy(*given[1:])), theirs(mean, cov).entropy(), rtol=near * 10)
    check(stats.multivariate_normal.logpdf, list(cases[0]), xpgrad_device, order=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_directions_that_scipy_leaves_out_give_nan(dtype: str) -> None:
    for ratio in (1.5, 0.6):
        least = ratio * np.finfo(dtype).eps * (1e3 if dtype == "float32" else 1e6)
        cov = np.array([[1.0, 0.0], [0.0, least]], dtype)
        out = scipy.stats.multivariate_normal.logpdf([0.5, 0.0], cov=cov, allow_singular=True)
        for run in (lambda f: f, xp.compile):
            logpdf = run(lambda c: stats.multivariate_normal.logpdf(xp.asarray([0.5, 0.0], dtype=dtype), None, c, True))
            np.testing.assert_allclose(values(logpdf(xp.asarray(cov))), out if ratio > 1 else np.nan, rtol=1e-5)
            assert np.isnan(values(xp.func.grad(logpdf)(xp.asarray(cov)))).any() == (ratio < 1)
        density = stats.multivariate_normal.pdf(xp.asarray([0.5, 0.0], dtype=dtype), None, xp.asarray(cov), allow_singular=True)
        np.testing.assert_allclose(values(density), np.exp(out) if ratio > 1 else np.nan, rtol=1e-5)


def test_multivariate_normal_is_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    x, mean = np.random.default_rng(1).normal(size=(4, 3)), np.array([0.1, 0.2, 0.3])
    theirs = [torch.tensor(v, requires_grad=True) for v in (x, mean, COV)]
    out = torch.distributions.MultivariateNormal(theirs[1], (theirs[2] + theirs[2].mT) / 2).log_prob(theirs[0])
    ours = [xp.tensor(v, requires_grad=True) for v in (x, mean, COV)]
    found = stats.multivariate_normal.logpdf(*ours)
    np.testing.assert_allclose(values(found), out.detach().numpy(), rtol=1e-12)
    for a, b in zip(xp.autograd.grad(xp.sum(found**2), ours), torch.autograd.grad((out**2).sum(), theirs), strict=True):
        np.testing.assert_allclose(values(a), b.numpy(), rtol=1e-10, atol=1e-12)


def test_dirichlet(xpgrad_device: str) -> None:
    near = 1e-12 if has_float64(xpgrad_device) else 1e-4
    alpha = np.array([1.5, 0.7, 3.0])
    x = np.array([[0.2, 0.3], [0.3, 0.5], [0.5, 0.2]])
    there, shapes = (xp.asarray(v, device=xpgrad_device) for v in (x, alpha))
    for kind in ("logpdf", "pdf"):
        for at in (slice(None), slice(0, 2)):
            found = values(getattr(stats.dirichlet, kind)(there[at], shapes))
            np.testing.assert_allclose(found, getattr(scipy.stats.dirichlet, kind)(x[at], alpha), rtol=near, atol=near * 10)
    np.testing.assert_allclose(values(stats.dirichlet.entropy(shapes)), scipy.stats.dirichlet.entropy(alpha), rtol=near * 10)
    check(lambda x, a: stats.dirichlet.logpdf(x[:-1], a), [x, alpha], xpgrad_device, order=2)
    for bad, a in (([0.5, 0.6], [1.0, 2.0]), ([-0.5, 1.5], [1.0, 2.0]), ([0.5, 0.5], [1.0, -2.0])):
        leaf = xp.tensor(bad, device=xpgrad_device, requires_grad=True)
        out = stats.dirichlet.logpdf(leaf, xp.asarray(a, device=xpgrad_device))
        out.backward()
        assert np.isnan(values(out))
        assert np.isnan(values(leaf.grad)).all()


def test_wrong_shapes_of_vectors_are_refused_by_name() -> None:
    normal, x = stats.multivariate_normal, xp.ones((4, 3))
    for call, message in (
        (lambda: normal.logpdf(x, xp.zeros(2)), "`x` has shape"),
        (lambda: normal.logpdf(x, xp.zeros(2), xp.eye(3)), "`mean` must have shape"),
        (lambda: normal.logpdf(x, None, xp.ones((3, 2))), "`cov`"),
        (lambda: normal.entropy(xp.zeros((2, 2))), "`mean` must have shape"),
        (lambda: stats.dirichlet.logpdf(x, [1.0, 2.0]), "first axis of `x`"),
        (lambda: stats.dirichlet.entropy(2.0), "vector of concentrations"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="`cov` must be"):
        normal.logpdf(x, None, "one")
    with pytest.raises(Exception, match=r"(?i)positive"):
        normal.logpdf(x, None, xp.asarray(np.diag([1.0, -1.0, 1.0])))


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_signatures_name_the_parameters_in_scipy_order(name: str) -> None:
    distribution, theirs = getattr(stats, name), getattr(scipy.stats, name)
    shapes = theirs.shapes.split(", ") if theirs.shapes else []
    optional = ["loc=0", "scale=1"] if name in CONTINUOUS else ["loc=0"]
    first = {"ppf": "q", "isf": "q"}
    methods = [m for m in (*KINDS, "logpmf", "pmf") if hasattr(distribution, m)]
    assert len(methods) >= 6
    for method in methods:
        expected = [first.get(method, "x" if name in CONTINUOUS else "k"), *shapes, *optional]
        bound = getattr(distribution, method)
        assert str(inspect.signature(bound)) == f"({', '.join(expected)})"
        found = parts(bound.__doc__)
        general = parts(getattr(stats.Continuous if name in CONTINUOUS else stats.Discrete, method).__doc__)
        assert ", ".join(re.findall(r"^(\S.*) : ", found.pop("Parameters"), re.MULTILINE)) == ", ".join(inspect.signature(bound).parameters)
        assert re.findall(r"^(\S+) : ", general.pop("Parameters"), re.MULTILINE) == [expected[0], "*args", "**options"]
        assert found == general
    assert isinstance(distribution, stats.Continuous if name in CONTINUOUS else stats.Discrete)
