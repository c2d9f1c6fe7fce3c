"""Law: values of distributions are SciPy's, and the gradients in every argument those of differences, and PyTorch's where it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it computes what these are made of")

import scipy.stats

import xpgrad as xp
from support.central_differences import check, has_float64, values
from xpgrad.scipy import stats

#: By name: the shapes.
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "norm": (), "expon": (), "laplace": (), "cauchy": (), "logistic": (), "lognorm": (0.8,), "uniform": (), "gamma": (2.3,),
    "beta": (2.5, 1.7), "chi2": (4.2,), "weibull_min": (1.6,), "t": (3.7,),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {"poisson": (3.4,), "binom": (7.0, 0.35), "bernoulli": (0.3,)}
KINDS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
X, Q = np.array([-1.3, 0.15, 0.4, 0.8, 2.7, 9.0]), np.array([0.02, 0.3, 0.7, 0.95])


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def test_every_distribution_is_in_a_table() -> None:
    assert {*CONTINUOUS, *DISCRETE, "Continuous", "Discrete"} == set(stats.__all__)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str, kind: str, xpgrad_device: str) -> None:
    ours, theirs, shapes = getattr(getattr(stats, name), kind), getattr(getattr(scipy.stats, name), kind), CONTINUOUS[name]
    quantile = kind in ("ppf", "isf")
    at = np.array([0.0, 1.0, -0.1, 1.1, np.nan, *Q]) if quantile else np.array([*X, np.nan])
    for parameters in ((*shapes,), (*shapes, 0.2, 1.4), (*shapes, 0.2, -1.0)):
        found = values(ours(xp.asarray(at, device=xpgrad_device), *parameters))
        near = 1e-12 if has_float64(xpgrad_device) else 1e-3
        np.testing.assert_allclose(found, theirs(at, *parameters), rtol=near, atol=near * 1e-2)
    inner = Q[1:3] if quantile else np.array([0.31, 0.55, 0.83])
    points = [inner, *(np.array(s) for s in shapes), np.array(0.1), np.array(1.2)]
    twice = kind in ("logpdf", "pdf") or not shapes or name in ("lognorm", "weibull_min")  # shapes of incomplete functions: once
    check(ours, points, xpgrad_device, order=2 if twice else 1)


@pytest.mark.parametrize("kind", ["logpmf", "pmf", "cdf", "logcdf", "sf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_distributions_on_integers(name: str, kind: str, xpgrad_device: str) -> None:
    ours, theirs, shapes = getattr(getattr(stats, name), kind), getattr(getattr(scipy.stats, name), kind), DISCRETE[name]
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


TORCH = {
    "norm": ("Normal", (0.3, 1.4)), "expon": ("Exponential", (1 / 1.4,)), "laplace": ("Laplace", (0.3, 1.4)),
    "cauchy": ("Cauchy", (0.3, 1.4)),
    "gamma": ("Gamma", (2.3, 1 / 1.4)), "beta": ("Beta", (2.5, 1.7)), "chi2": ("Chi2", (4.2,)), "t": ("StudentT", (3.7,)),
}  # fmt: skip


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
        x = xp.tensor([-1.0, -2.0], device=xpgrad_device, requires_grad=True)
        xp.sum(getattr(stats, name).pdf(x, *CONTINUOUS[name])).backward()
        assert values(x.grad).tolist() == [0.0, 0.0], name
    a = xp.tensor([-2.0], device=xpgrad_device, requires_grad=True)
    for kind in ("logpdf", "cdf"):
        a.grad = None
        xp.sum(getattr(stats.gamma, kind)(0.5, a)).backward()
        assert np.isnan(values(a.grad)).all()
    scale = xp.tensor([-2.0], device=xpgrad_device, requires_grad=True)
    xp.sum(stats.norm.cdf(0.5, scale=scale)).backward()
    assert np.isnan(values(scale.grad)).all()


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
