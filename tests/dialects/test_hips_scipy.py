"""Law: the functions of `xpgrad.dialects.hips.scipy` have SciPy's values, and the derivatives of HIPS autograd or of differences."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="its functions are computed by SciPy")
theirs = pytest.importorskip("autograd", reason="HIPS autograd is what is compared with; the extra `bench` brings it")
from xpgrad.dialects import hips as ours  # noqa: E402 (behind the skips)

scipy = importlib.import_module("xpgrad.dialects.hips.scipy")
RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, size=(2, 3))
Y = RNG.uniform(0.6, 2.4, size=(2, 3))

#: For each name the arguments, and the positions of those to differentiate in.
SPECIAL: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("erf", "erfc", "erfinv", "erfcinv", "expit", "logit", "j0", "j1", "y0", "y1", "i0", "i1"), ((X,), (0,))),
    **dict.fromkeys(("gamma", "gammaln", "rgamma", "psi", "digamma", "gammasgn"), ((Y,), (0,))),
    **dict.fromkeys(("jn", "yn", "iv", "ive", "polygamma"), ((2, Y), (1,))),
    "gammainc": ((1.5, Y), (1,)), "gammaincc": ((1.5, Y), (1,)), "beta": ((Y, X), (0, 1)), "betaln": ((Y, X[0]), (0, 1)),
    "betainc": ((1.5, 2.5, X), (2,)), "multigammaln": ((3.7, 2), (0,)),
}  # fmt: skip


def compare_with_original(program: Any, near: float = 1e-7) -> None:
    found = []
    for package in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(program(package, importlib.import_module(f"{package.__name__}.scipy.special"),
                                 importlib.import_module(f"{package.__name__}.scipy.stats.norm"), package.numpy))  # fmt: skip
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=near, atol=near)


def test_every_function_is_covered() -> None:
    names = {name for name, x in vars(importlib.import_module("autograd.scipy.special")).items() if getattr(x, "fun", None) is not None}
    mine = set(scipy.special.__all__)
    assert {n for n in names if n in mine} | {"logsumexp"} <= mine
    assert mine == {*SPECIAL, "logsumexp"}


@pytest.mark.filterwarnings("ignore:Output seems independent of input")  # of `gammasgn`
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str) -> None:
    args, argnums = SPECIAL[name]

    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(special, name)
        first = [m.elementwise_grad(f, n)(*args) for n in argnums]
        second = [m.elementwise_grad(m.elementwise_grad(f, n), n)(*args) for n in argnums]
        return [f(*args), *first, *second]

    compare_with_original(program)
    np.random.seed(0)  # noqa: NPY002 (the directions are drawn from the global generator)
    for n in argnums:
        ours.test_util.check_grads(getattr(scipy.special, name), n, order=2)(*args)


def test_logsumexp() -> None:
    for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 0, "b": Y}):
        compare_with_original(lambda m, special, norm, np, o=options: [
            special.logsumexp(X, **o), m.grad(lambda x: np.sum(special.logsumexp(x, **o) ** 2))(X),
            m.hessian(lambda x: np.sum(special.logsumexp(x, **o)))(X),
        ])  # fmt: skip
    large = ours.grad(scipy.special.logsumexp)(np.array([1000.0, 999.0, -np.inf]))
    np.testing.assert_allclose(large, [1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(1.0)), 0.0])


@pytest.mark.parametrize("name", ["pdf", "cdf", "logpdf", "logcdf", "sf", "logsf"])
def test_the_normal_distribution(name: str) -> None:
    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(norm, name)
        which = (0, 1, 2)
        return [
            f(X, 0.3, Y),
            *m.grad(lambda x, a, s: np.sum(f(x, a, s) ** 2), which)(X, 0.3, Y),
            m.elementwise_grad(m.elementwise_grad(f))(X),
        ]

    compare_with_original(program)
    assert np.isfinite(ours.grad(scipy.stats.norm.logcdf)(-40.0))


A, B = RNG.normal(size=(3, 3)) + 3 * np.eye(3), RNG.normal(size=(3, 3)) + 2 * np.eye(3)
MATRICES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = {
    **{
        f"solve_triangular {trans} {lower} {rhs.shape}": ("solve_triangular", (A, rhs), {"trans": trans, "lower": lower}, (0, 1))
        for trans in (0, 1, "N", "T")
        for lower in (False, True)
        for rhs in (B, B[0])
    },
    "solve_sylvester": ("solve_sylvester", (A, B, X.T @ X), {}, (0, 1, 2)),
    "sqrtm": ("sqrtm", (A @ A,), {}, (0,)),
    "solve_banded": ("solve_banded", ((1, 1), A + 3.0, B[:, 0]), {}, (1, 2)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_functions_of_matrices(name: str) -> None:
    function, args, options, argnums = MATRICES[name]

    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(importlib.import_module(f"{m.__name__}.scipy.linalg"), function)
        return [f(*args, **options), *(m.grad(lambda *a: np.sum(f(*a, **options) ** 2), n)(*args) for n in argnums)]

    compare_with_original(program)
    f = getattr(scipy.linalg, function)
    np.random.seed(0)  # noqa: NPY002 (as above)
    for n in argnums:
        ours.test_util.check_grads(lambda *a: np.sum(f(*a, **options) ** 2), n, order=2)(*args)


def test_triangular_systems_with_ones_on_the_diagonal_and_of_complex_matrices() -> None:
    ours.test_util.check_grads(lambda a, b: scipy.linalg.solve_triangular(a, b, unit_diagonal=True), (0, 1), order=2)(A, B)
    for trans in ("N", "T", "C"):
        solved = lambda a, b, t=trans: scipy.linalg.solve_triangular(a, b, trans=t)  # noqa: E731 (a closure)
        size = lambda a, b, f=solved: ours.numpy.real(ours.numpy.sum(f(a, b) ** 2))  # noqa: E731 (a closure)
        ours.test_util.check_grads(size, (0, 1), modes=["rev"])(A + 1j, B - 1j)


def test_a_root_that_is_not_real() -> None:
    """Law: if the square root of a real matrix is complex, it is SciPy's, differentiated or not."""
    x = np.diag([-1.0, 4.0]) + 0.1
    expected = importlib.import_module("scipy.linalg").sqrtm(x)
    np.testing.assert_allclose(scipy.linalg.sqrtm(x), expected)
    slope = ours.grad(lambda x: ours.numpy.sum(ours.numpy.imag(scipy.linalg.sqrtm(x)) ** 2))(x)
    step = 1e-6 * np.array([[0.3, -0.5], [0.7, 0.2]])
    ahead, behind = (np.sum(np.imag(scipy.linalg.sqrtm(x + s * step)) ** 2) for s in (1, -1))
    np.testing.assert_allclose(np.sum(slope * step), (ahead - behind) / 2, rtol=1e-7)


C = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])
SIMPLEX = np.array([0.2, 0.5, 0.3])
#: For each function of a distribution the arguments, and the positions of those with second derivatives in both libraries.
DENSITIES: dict[tuple[str, str], tuple[tuple[Any, ...], tuple[int, ...]]] = {
    **{("gamma", name): ((X, Y), (0, 1)) for name in ("logpdf", "pdf")}, ("gamma", "cdf"): ((X, 1.7), (0,)),
    **{("chi2", name): ((Y, 3.0), (0,)) for name in ("logpdf", "pdf", "cdf")},
    **{("beta", name): ((X, Y, 1.8), (0, 1, 2)) for name in ("logpdf", "pdf")}, ("beta", "cdf"): ((X, 1.5, 2.5), (0,)),
    **{("t", name): ((X, 3.5 * Y, 0.3, Y), (0, 1, 2, 3)) for name in ("logpdf", "pdf")},
    **{("t", name): ((X, 3.5 * Y, 0.3, Y), (0, 2)) for name in ("logcdf", "cdf")},
    **{("poisson", name): ((np.array([0.0, 1.0, 4.0]), Y), (1,)) for name in ("logpmf", "pmf", "cdf")},
    **{("dirichlet", name): ((SIMPLEX, Y[0]), (0, 1)) for name in ("logpdf", "pdf")},
    **{("multivariate_normal", name): ((Y, X[0], C), (0, 1, 2)) for name in ("logpdf", "pdf")},
    ("multivariate_normal", "entropy"): ((X[0], C), (1,)),
}  # fmt: skip


@pytest.mark.parametrize(("distribution", "name"), DENSITIES)
def test_densities(distribution: str, name: str) -> None:
    args, argnums = DENSITIES[distribution, name]

    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(importlib.import_module(f"{m.__name__}.scipy.stats.{distribution}"), name)
        return [f(*args), *(m.grad(lambda *a: np.sum(f(*a) ** 2), n)(*args) for n in argnums)]

    compare_with_original(program)
    f = getattr(getattr(scipy.stats, distribution), name)
    np.random.seed(0)  # noqa: NPY002 (as above)
    for n in argnums:
        ours.test_util.check_grads(lambda *a: np.sum(f(*a) ** 2), n, order=2)(*args)


@pytest.mark.parametrize(
    ("distribution", "x", "rest"),
    [
        ("gamma", [-1.0, 0.0, 2.0], (1.0,)), ("gamma", [-1.0, 0.0, 2.0], (0.5,)), ("gamma", [-1.0, 0.0, 2.0], (2.5,)),
        ("chi2", [-1.0, 0.0, 2.0], (2.0,)), ("beta", [-0.1, 0.0, 0.5, 1.0, 1.1], (1.0, 2.0)), ("beta", [0.0, 1.0], (0.5, 1.0)),
    ],
)  # fmt: skip
def test_densities_at_and_beyond_the_ends(distribution: str, x: Any, rest: Any) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(importlib.import_module("scipy.stats"), distribution)
        for name in ("logpdf", "cdf"):
            found = getattr(getattr(scipy.stats, distribution), name)(np.array(x), *rest)
            np.testing.assert_allclose(found, getattr(expected, name)(np.array(x), *rest))
        outside = ours.grad(lambda v: np.sum(getattr(scipy.stats, distribution).pdf(v, *rest)))(np.array([-3.0]))
    np.testing.assert_array_equal(outside, [0.0])


def test_shapes_of_the_multivariate_normal_are_scipys() -> None:
    expected: Any = importlib.import_module("scipy.stats").multivariate_normal
    for args in ((Y, X[0], C), (Y[0], X[0], C), (Y[0], X[0], 2.0), (Y[0], X[0], Y[1]), (0.7, 0.2, 2.0), (Y[0], 0.2, np.array([[2.0]])),
                 (np.stack([Y, Y]), X[0], C), (Y[:1], X[0], C)):  # fmt: skip
        found = scipy.stats.multivariate_normal.logpdf(*args)
        np.testing.assert_allclose(found, expected.logpdf(*args))
    with pytest.raises(ValueError, match="allow_singular"):
        scipy.stats.multivariate_normal.logpdf(Y, X[0], C, allow_singular=True)


IMAGES, FILTERS = RNG.normal(size=(2, 3, 5, 4)), RNG.normal(size=(3, 2, 2, 3))
#: For each name the arrays and options of `convolve`.
CONVOLUTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    **{f"vectors {mode}": (X[0], Y[1][:2], {"mode": mode}) for mode in ("full", "same", "valid")},
    **{f"the second one is larger {mode}": (X[0][:2], np.tile(Y[1], 2), {"mode": mode}) for mode in ("full", "valid")},
    **{f"matrices {mode}": (A, B[:2, :2], {"mode": mode}) for mode in ("full", "same", "valid")},
    **{
        f"layers {mode}": (IMAGES, FILTERS, {"axes": ([2, 3], [2, 3]), "dot_axes": ([1], [0]), "mode": mode})
        for mode in ("full", "valid")
    },
    "axes apart": (IMAGES, FILTERS, {"axes": ([3], [3]), "dot_axes": ([0, 1], [1, 0]), "mode": "full"}),
    "axes in order": (IMAGES, FILTERS.transpose(1, 0, 2, 3), {"axes": ([3], [3]), "dot_axes": ([0, 1], [0, 1]), "mode": "full"}),
    "nothing added up": (IMAGES[0], FILTERS[0], {"axes": ([1, 2], [1, 2]), "mode": "valid"}),
    "one is wide, one is high": (A[:2], B[:, :1], {"mode": "full"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    a, b, options = CONVOLUTIONS[name]

    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = importlib.import_module(f"{m.__name__}.scipy.signal").convolve
        return [f(a, b, **options), *(m.grad(lambda *at: np.sum(f(*at, **options) ** 3), n)(a, b) for n in (0, 1))]

    if name == "axes apart":  # HIPS autograd's gradient has its axes in another order
        np.testing.assert_allclose(scipy.signal.convolve(a, b, **options), theirs.scipy.signal.convolve(a, b, **options), rtol=1e-12)
    else:
        compare_with_original(program)
    np.random.seed(0)  # noqa: NPY002 (as above)
    for n in (0, 1):
        ours.test_util.check_grads(lambda *at: scipy.signal.convolve(*at, **options) ** 2, n, order=2)(a, b)


def test_convolutions_with_many_taps() -> None:
    options = {"axes": ([1], [1]), "dot_axes": ([0], [0])}
    a, b = RNG.normal(size=(2, 300)), RNG.normal(size=(2, 200))
    expected = sum(np.convolve(u, v) for u, v in zip(a, b))
    np.testing.assert_allclose(scipy.signal.convolve(a, b, **options), expected, rtol=1e-10, atol=1e-10)
    slope = ours.grad(lambda b: np.sum(scipy.signal.convolve(a, b, **options) ** 2))(b)
    np.testing.assert_allclose(slope, [2 * np.correlate(expected, u, "valid") for u in a], rtol=1e-9, atol=1e-9)


def test_convolutions_that_do_not_fit() -> None:
    convolve = scipy.signal.convolve
    for args, options, message in (
        ((A, B), {"mode": "all"}, "`mode` must be"), ((A, B), {"axes": ([0], [0, 1])}, "as many axes"),
        ((IMAGES, FILTERS), {"axes": ([3], [3]), "dot_axes": ([0], [0])}, "another length"),
        ((A[:2], B[:, :2]), {"mode": "valid"}, "at least as large"), ((A[:0], B), {}, "must not be empty"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            convolve(*args, **options)
    with pytest.raises(TypeError, match="`axes` must be a pair"):
        convolve(A, B, axes=3)


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"no 'ndimage', only `integrate`, `linalg`, `signal`, `special` and `stats`"):
        scipy.ndimage
    with pytest.raises(AttributeError, match="no 'cauchy', only `beta`"):
        scipy.stats.cauchy
    with pytest.raises(NotImplementedError, match=r"jv: the derivative with respect to `v` is not known"):
        ours.grad(scipy.special.jn)(1.5, 2.0)


def test_shapes_have_derivatives_that_hips_lacks() -> None:
    for name, args in (("gammainc", (1.5, 2.0)), ("gammaincc", (1.5, 2.0)), ("betainc", (1.5, 2.5, 0.3))):
        f = getattr(scipy.special, name)
        slope = (f(args[0] + 1e-6, *args[1:]) - f(args[0] - 1e-6, *args[1:])) / 2e-6
        np.testing.assert_allclose(ours.grad(f)(*args), slope, rtol=1e-7)


def test_odeint_is_that_of_hips() -> None:
    t, y0, rates = np.linspace(0.2, 1.4, 5), np.array([1.0, 0.4]), np.array([1.1, 0.6])

    def program(m: Any) -> list[Any]:
        np, integrate = m.numpy, importlib.import_module(f"{m.__name__}.scipy.integrate")

        def right(y: Any, t: Any, p: Any, q: Any) -> Any:
            return np.array([y[1] * p[0] + np.sin(t), -y[0] * p[1] - q * y[1] ** 2])

        def f(y0: Any, t: Any, p: Any, q: Any) -> Any:
            return np.sum(integrate.odeint(right, y0, t, m.builtins.tuple((p, q)), rtol=1e-10, atol=1e-10) ** 2)

        return [m.grad(f, k)(y0, t, rates, 0.3) for k in range(4)]

    for a, b in zip(program(theirs), program(ours), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_odeint_of_arrays_is_scipys_and_sees_what_the_function_closes_over() -> None:
    integrate, np_ = scipy.integrate, ours.numpy
    t = np.linspace(0.0, 1.0, 3)
    plain = integrate.odeint(lambda y, t: -y, np.ones(2), t)
    assert type(plain) is np.ndarray
    found = ours.grad(lambda k: np_.sum(integrate.odeint(lambda y, t: -k * y, np.ones(2), t)[-1]))(0.5)
    assert float(found) == pytest.approx(-2 * float(np.exp(-0.5)), rel=1e-6)
    with pytest.raises(NotImplementedError, match="`mu` is not taken"):
        ours.grad(lambda k: np_.sum(integrate.odeint(lambda y, t: -k * y, np.ones(2), t, mu=1)))(0.5)
