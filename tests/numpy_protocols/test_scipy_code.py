"""Law: programs for NumPy and SciPy compute SciPy's values in `numpy_code`, and their gradients are those of differences."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev

pytest.importorskip("scipy", reason="runs programs that use it")

import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse as sp
import scipy.sparse.linalg as spla
import scipy.spatial.distance
import scipy.spatial.transform
from scipy import optimize, stats
from scipy.integrate import odeint, quad, simpson, solve_ivp, trapezoid
from scipy.interpolate import CubicSpline, interp1d
from scipy.optimize import brentq, curve_fit, fsolve, minimize
from scipy.sparse.linalg import spsolve
from scipy.special import erf, logsumexp
from scipy.stats import multivariate_normal, norm

import xpgrad as xp

# -- programs: nothing in them knows of xpgrad -----------------------------------------------------------------------


def finite_elements(k: Any) -> Any:
    i = np.arange(len(k))
    entries = np.concatenate([k, -k, -k, k])
    matrix = sp.coo_array((entries, (np.concatenate([i, i, i + 1, i + 1]), np.concatenate([i, i + 1, i, i + 1])))).tocsr()
    return spla.spsolve(matrix[1:][:, 1:], np.ones(len(k))).sum()


def older_matrices(k: Any) -> Any:
    i = np.arange(len(k))
    row, col = np.concatenate([i, i, i + 1, i + 1]), np.concatenate([i, i + 1, i, i + 1])
    stiffness = sp.coo_matrix((np.concatenate([k, -k, -k, k]), (row, col)), shape=(4, 4)).tocsr()
    assert sp.issparse(stiffness)
    assert isinstance(stiffness, sp.csr_matrix)
    assert not isinstance(stiffness, sp.csr_array)
    free = np.arange(1, 4)
    inner = stiffness[np.ix_(free, free)] + sp.diags([k, 0.1, 0.1], [0, 1, -1], shape=(3, 3)) * 2.0 + sp.identity(3)
    u = spla.spsolve(inner, np.array([1.0, 2.0, 3.0]))
    return (inner * u).sum() * ((u * inner) @ u) + inner.multiply(np.outer(k, k)).sum() + (inner * inner.T)[0, 1]


def tridiagonal(k: Any) -> Any:
    n = len(k)
    matrix = sp.diags_array([2 + k, -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]).tocsc()
    return spsolve(matrix, k).sum()


def sparse_constant(p: Any) -> Any:
    matrix = sp.csr_array(np.eye(3) * 2.0)
    assert sp.issparse(matrix)
    assert isinstance(matrix, sp.csr_array)
    return (matrix @ p).sum()


def oscillator(p: Any) -> Any:
    return solve_ivp(lambda t, y: [y[1], -p[0] * y[0] - p[1] * y[1]], (0, 2.0), [1.0, 0.0], rtol=1e-9, atol=1e-11).y[0, -1]


def decay(p: Any) -> Any:
    return odeint(lambda y, t: -p[0] * y + p[1], np.array([1.0]), np.linspace(0, 1, 4), rtol=1e-9, atol=1e-9)[-1, 0]


def _written(y: Any, p: Any) -> Any:
    rate = y[0]
    rate += p[0]  # a number, so that `y` stays
    out = np.zeros(2)
    out[0], out[1] = -rate * y[1], y[0] - p[1] * y[1]
    return np.array([out[0], out[1]])


def equations_that_write(p: Any) -> Any:
    y = solve_ivp(lambda t, y: _written(y, p), (0, 1.0), p[:2], rtol=1e-9, atol=1e-11).y[:, -1]
    return np.sum(y * odeint(lambda y, t, q: _written(y, q), p[1:], np.linspace(0, 1, 3), args=(p,), rtol=1e-9, atol=1e-9)[-1])


def solvers_that_write(p: Any) -> Any:
    found = optimize.root(lambda x: _written(x, p) - np.array([-1.0, 0.5]), np.array([0.5, 0.5])).x
    return np.sum(found**2) + quad(lambda t: _written(np.array([t, t * t]), p)[0], 0.0, 1.0)[0]


def root(p: Any) -> Any:
    return brentq(lambda x: x**3 - p[0] * x - p[1], 0.0, 5.0)


def minimum(p: Any) -> Any:
    return minimize(lambda x: np.sum((x - p) ** 4 + (x - p) ** 2), np.zeros(len(p)), tol=1e-10).x.sum()


def integral(p: Any) -> Any:
    value, _ = quad(lambda x, rate: np.exp(-rate * x), 0, 1, args=(p[0],))
    return value + trapezoid(p**2, dx=0.1) + simpson(p**2, dx=0.1)


def densities(p: Any) -> Any:
    normal = norm.logpdf(np.array([0.1, 0.5]), p[0], np.exp(p[1])).sum() + stats.gamma.logpdf(p[2] ** 2 + 0.1, 2.0)
    normal = normal + norm.logpdf([0.1, p[2]], p[0], [1.0, 2.0]).sum() + stats.poisson.logpmf([0, 2], p[2]).sum()
    normal = normal + norm(p[0], scale=np.exp(p[1])).cdf(0.3) + stats.gamma(p[2] ** 2 + 1.0).logpdf(np.array([0.5, 2.0])).sum()
    normal = normal + norm(0.1, 2.0).logpdf(p).sum() + stats.beta(2, 3).ppf(p).sum() + multivariate_normal([0, 0, 0], 2.0).logpdf(p)
    return normal + multivariate_normal.logpdf(np.array([0.1, 0.2]), mean=p[:2], cov=np.eye(2) * np.exp(p[2]))


def interpolants(p: Any) -> Any:
    x = np.arange(3.0)
    spline = CubicSpline(x, p)
    assert isinstance(spline, CubicSpline)
    return (spline(np.array([0.5, 1.5])) * interp1d(x, p)(np.array([0.2, 1.1]))).sum()


def special_functions(p: Any) -> Any:
    return logsumexp(p) * erf(p[0]) + scipy.special.gammaln(p**2 + 1).sum() + scipy.special.expit([p[1], 0.5]).sum() + erf([p[2], 0.1])[0]


def matrices(p: Any) -> Any:
    a = np.eye(3) * 3 + np.outer(p, p)
    w, v = scipy.linalg.eigh(a + np.diag([0.0, 1.0, 2.0]))
    solved = scipy.linalg.solve(a, p, check_finite=False).sum() + scipy.linalg.solve_triangular(np.triu(a), p, overwrite_b=False).sum()
    factors = scipy.linalg.cholesky(a).sum() + 2.0 * scipy.linalg.cholesky(a, lower=True)[2, 0] + scipy.linalg.expm(a / 4.0).sum()
    products = scipy.linalg.det(a) + scipy.linalg.inv(a).sum() + scipy.linalg.pinv(a)[0, 1] + scipy.linalg.norm(a) + scipy.linalg.norm(a, 1)
    return solved + factors + products + w[0] + abs(v[0, 0]) + scipy.linalg.svdvals(a)[0] + scipy.linalg.svd(a)[1][1]


def signals(p: Any) -> Any:
    return (scipy.signal.fftconvolve(p, np.array([1.0, 2.0])) ** 2).sum() + (abs(scipy.fft.fft(p)) ** 2).sum()


def arrays_of_scipys(p: Any) -> Any:
    table = scipy.linalg.toeplitz([1.0, 2.0, 3.0])
    table[0] = p
    drawn = stats.norm.rvs(size=3, random_state=0)
    smooth = scipy.ndimage.gaussian_filter(np.arange(9.0).reshape(3, 3).T.tolist(), 1.0)
    return table.sum() * drawn.sum() + (smooth @ p).sum()


def starts_and_tables(p: Any) -> Any:
    """Numbers, integers and lists where SciPy makes arrays of floats; tables of constants."""
    moved = solve_ivp(lambda t, y: [y[1], -p[0] * y[0]], [0, 1], [1, 0], t_eval=[0, 1], rtol=1e-9, atol=1e-11).y[0, 1]
    decayed = odeint(lambda y, t: -p[1] * y, np.array([1, 2]), [0, 1], rtol=1e-10, atol=1e-10)[1].sum()
    lowest = minimize(lambda t: (t - p[2]) ** 2, 0, tol=1e-9).x[0] + scipy.optimize.least_squares(lambda t: t**3 - p[0], 1).x[0]
    lowest = lowest + scipy.optimize.least_squares(lambda t: np.array([t[0] - p[0], t[0] + p[1]]), [0.0]).fun[0]
    found = fsolve(lambda z: [z[0] ** 3 - p[0], z[1] - z[0]], [1, 1], xtol=1e-12).sum() + fsolve(lambda t, a: t**3 - a, 1, args=p[1])[0]
    bracketed = scipy.optimize.bisect(lambda t: t**3 - p[0], 0, 2, xtol=1e-13) + scipy.optimize.ridder(lambda t: t - p[1], 0, 2)
    table = CubicSpline([0, 1, 2, 3], [1, 5, 2, 2])
    assert isinstance(table, CubicSpline)
    assert len(table.roots()) == len(CubicSpline([0, 1, 2, 3], np.array([1, 5, 2, 2])).roots())
    read = table(p[0]) + interp1d(np.array([0, 1, 2]), np.array([1, 5, 2]), kind="nearest")(0.6) * p[0]
    solved = scipy.linalg.solve([[2, p[0]], [0, 1]], [1, 2])[0] + scipy.linalg.norm([p[0], 2]) + logsumexp([p[1], 1], b=[1, 2])
    return moved + decayed + lowest + found + bracketed + read + solved


class Motion:
    """What is called with a state, of which it takes elements as numbers."""

    def __init__(self, rate: Any) -> None:
        self.rate = rate

    def __call__(self, t: Any, y: Any, damping: Any) -> Any:
        out, place = np.zeros(2), y[0]
        place *= self.rate
        out[0], out[1] = y[1], -place - damping * y[1]
        return out


class Ground:
    """An event whose attributes are those of its class."""

    terminal, direction = True, -1.0

    def __call__(self, t: Any, y: Any) -> Any:
        return y[0]


def events(p: Any) -> Any:
    def fall(t: Any, y: Any) -> Any:
        out, speed = np.zeros(2), y[1]
        out[0] = speed
        speed *= p[1]
        out[1] = -9.81 - speed
        return out

    def half(t: Any, y: Any) -> Any:
        height = y[0]
        height -= 0.5 * p[0]  # a number, so that `y` stays
        return np.array([height, y[0]])[0]

    def apex(t: Any, y: Any) -> Any:
        return y[1]

    half.terminal, half.direction = True, -1  # type: ignore[attr-defined]
    landed = solve_ivp(fall, (0, 5), [p[0], 2 * p[2]], events=Ground(), rtol=1e-9, atol=1e-11)
    passed = solve_ivp(fall, (0, 5), [p[0], 2 * p[2]], events=[half, apex], rtol=1e-9, atol=1e-11)
    return landed.t_events[0][0] + landed.y[1, -1] + passed.t_events[0][0] + passed.t[-1] + passed.t_events[1][0]


def functions_that_write(p: Any) -> Any:
    def residual(z: Any, scale: float) -> Any:
        out, first = np.empty(2), z[0]
        first += p[0]
        out[0], out[1] = first**2 - 2.0, z[1] * scale + z[0] ** 3 - p[1]
        return out

    def cost(t: Any) -> Any:
        moved = t
        moved -= p[2]
        return math.exp(moved) - 2.0 + 0.1 * t

    def model(x: Any, a: Any, b: Any) -> Any:
        total = a
        total *= 2.0
        return total * np.exp(-b * x) + a

    x = np.linspace(0, 1, 4)
    fitted = curve_fit(model, x, p[0] * np.exp(-p[1] * x) + p[0] / 2.0, p0=[0.3, 0.3])[0]
    moved = solve_ivp(Motion(p[0]), (0, 1.0), [1.0, 0.0], args=(0.1,), rtol=1e-9, atol=1e-11).y[:, -1].sum()
    decayed = odeint(partial(lambda rate, y, t: [-float(y[0]) * erf(rate)], p[2]), [1.0], [0.0, 1.0], rtol=1e-10, atol=1e-10)[-1, 0]
    return scipy.optimize.root(residual, [1.0, 1.0], args=(2.0,)).x.sum() + brentq(cost, 0.5, 3.0) + fitted @ fitted + moved + decayed


def rotations(p: Any) -> Any:
    turn = scipy.spatial.transform.Rotation.from_euler("xyz", p)
    assert isinstance(turn, scipy.spatial.transform.Rotation)
    moved = turn.apply([1.0, 2.0, 3.0]) + turn.inv().apply([[1.0, 0.5, 2.0]])[0] + (turn * turn).as_euler("zyx") + turn.as_rotvec()
    return np.sum(moved**2) + turn.magnitude() + turn.as_matrix()[0, 1]


def spectra(p: Any) -> Any:
    signal = np.sin(np.outer(np.arange(32.0), p)).sum(axis=1)
    frequencies, power = scipy.signal.welch(signal, fs=32, nperseg=16)
    smooth = scipy.signal.savgol_filter(scipy.signal.sosfiltfilt(scipy.signal.butter(2, 0.3, output="sos"), signal), 7, 2)
    fit = stats.linregress(np.arange(32.0), smooth)
    return simpson(power, x=frequencies) + stats.zscore(smooth)[3] + fit.slope + fit.stderr + stats.kurtosis(signal)


def images(p: Any) -> Any:
    image = scipy.ndimage.gaussian_filter(np.outer(np.sin(p), np.arange(1.0, 6.0)), 0.7)
    edges = np.hypot(scipy.ndimage.sobel(image, 0), scipy.ndimage.sobel(image, axis=1))
    moved = scipy.ndimage.map_coordinates(image, np.stack([[0.3, 1.2], [p[0], 2.0 + p[1]]]), order=1)
    return edges.sum() + moved.sum() + scipy.ndimage.center_of_mass(image)[1] + scipy.spatial.distance.pdist(image).sum()


make_blank, make_diagonals = partial(np.zeros, 3), partial(sp.diags, format="csr")


def shapes_of_scipys(p: Any) -> Any:
    out = make_blank()
    out[:] = p
    u = spsolve(make_diagonals(np.ones(3) * 2.0, 0, shape=(3, 3)) + sp.identity(3), p[:, np.newaxis], use_umfpack=False)
    density = multivariate_normal.logpdf(p[:1], 0.1, 2.0, True)
    assert (np.shape(u), np.shape(density)) == ((3,), ())
    tri = sp.csr_matrix((np.ones(6), np.tril_indices(3)))
    kept = sp.kron(sp.csr_matrix(np.ones((1, 1))), tri) * p + sp.vstack([tri]) * p + sp.block_array([[sp.csr_array(np.tri(3))]]) @ p
    return (u * out).sum() + density + (kept * p).sum() * spla.eigsh(sp.diags(np.arange(1.0, 7.0)), k=1, v0=np.ones(6))[0][0]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f
    for f in (
        finite_elements, older_matrices, tridiagonal, sparse_constant, oscillator, decay, equations_that_write, solvers_that_write, root,
        minimum, integral, densities, interpolants, special_functions, matrices, signals, arrays_of_scipys, starts_and_tables, events,
        functions_that_write, rotations, spectra, images, shapes_of_scipys,
    )
}  # fmt: skip


@pytest.mark.slow(one_in=12)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_scipy(name: str) -> None:
    program, x = PROGRAMS[name], np.array([0.7, 0.3, 0.9])
    run = xp.numpy_code(program)
    np.testing.assert_allclose(float(run(xp.asarray(x))), program(x), rtol=1e-6)
    expected = [(program(x + d) - program(x - d)) / 2e-5 for d in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(xp.func.grad(run)(x).numpy(), expected, rtol=1e-4, atol=1e-6)
    leaf = xp.tensor(x, requires_grad=True)
    run(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-4, atol=1e-6)
    if name != "matrices":  # forward mode computes all singular vectors, which have no derivative there
        np.testing.assert_allclose(float(xp.func.jvp(run, (x,), (np.ones(3),))[1]), sum(expected), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(float(program(x)), float(run(x)), rtol=1e-6)  # outside, SciPy is SciPy again
    assert norm is stats.norm
    assert spsolve is spla.spsolve


def flat(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return the results as one vector."""

    def run(*args: Any) -> Any:
        out = program(*args)
        return np.concatenate([np.reshape(part, (-1,)) for part in (out if isinstance(out, tuple) else (out,))])

    return run


#: Calls of functions and classes that SciPy writes in Python, or that have a stand-in.
CALLS = (
    "scipy.linalg.lu_solve(scipy.linalg.lu_factor(M+np.diag(x)), x)",
    "scipy.linalg.lu_solve(scipy.linalg.lu_factor(M+np.diag(x)), x, trans=1)", "scipy.linalg.solve(M+np.diag(x), x, assume_a='gen')",
    "scipy.linalg.solve(M@M.T+np.diag(x), x, assume_a='pos')", "scipy.linalg.qr(M+np.diag(x))[1]",
    "scipy.linalg.qr(M+np.diag(x), mode='economic')[1]", "scipy.linalg.eigh(M@M.T+np.diag(x), np.eye(3)*2)[0]",
    "scipy.linalg.eigh(M@M.T+np.diag(x), eigvals_only=True)", "scipy.linalg.eigh_tridiagonal(x, x[:2])[0]",
    "scipy.linalg.solve_toeplitz(x+[1., 0, 0], x)", "scipy.linalg.pinvh(M@M.T+np.diag(x))", "scipy.linalg.cosm(np.diag(x)+M*0.1)",
    "scipy.linalg.sinm(np.diag(x)+M*0.1)", "scipy.linalg.khatri_rao(np.outer(x, x), M)",
    "scipy.linalg.solveh_banded(np.stack([np.array([0, .1, .1]), x+1]), x)", "scipy.spatial.distance.cdist(np.outer(x, x), M)",
    "scipy.spatial.distance.cdist(M, M+x, 'sqeuclidean')", "scipy.spatial.distance.cdist(M, M+x, 'cityblock')",
    "scipy.spatial.distance.cdist(M, M+x, 'chebyshev')", "scipy.spatial.distance.cdist(M, M+x, metric='minkowski',p=3)",
    "scipy.spatial.distance.cdist(M, M+x, 'cosine')", "scipy.spatial.distance.cdist(M, M+x, 'correlation')",
    "scipy.spatial.distance.cdist(M, M+x, 'canberra')", "scipy.spatial.distance.cdist(M, M+x, 'braycurtis')",
    "scipy.spatial.distance.cdist(M, M+1, 'minkowski',p=3,w=x)", "scipy.spatial.distance.cdist(M, M+x, 'mahalanobis',VI=np.eye(3))",
    "scipy.spatial.distance.cdist(M, M+x, 'seuclidean',V=np.ones(3)*2)",
    "scipy.spatial.distance.cdist(M, M+x, lambda a, b: np.sum((a-b)**2))", "scipy.spatial.distance.pdist(M*x)",
    "scipy.spatial.distance.pdist(M*x, 'sqeuclidean')", "scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(M*x))",
    "scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(M*x, 'cityblock'))",
    "scipy.spatial.distance.euclidean(x, [1.0, 2.0, 3.0])", "scipy.spatial.distance.cosine(x, [1.0, 2.0, 3.0])",
    "scipy.spatial.distance.sqeuclidean(x, [1.0, 2.0, 3.0])", "scipy.spatial.distance.mahalanobis(x, [1.0, 2.0, 3.0], np.eye(3))",
    "scipy.spatial.distance.cityblock(x, [1.0, 2.0, 3.0])", "scipy.spatial.distance_matrix(M, M+x)",
    "scipy.spatial.distance.jensenshannon(x, [1.0, 2.0, 3.0])", "scipy.spatial.distance.minkowski(x, [1.0, 2.0, 3.0], 3)",
    "scipy.ndimage.gaussian_filter(np.outer(x, np.arange(5.)), 1.0)", "scipy.ndimage.gaussian_filter(x, 0.7)",
    "scipy.ndimage.gaussian_filter(np.outer(x, np.arange(5.)), (0.5, 1.0), mode='wrap')",
    "scipy.ndimage.gaussian_filter(np.outer(x, np.arange(5.)), 1.0, order=1, mode='constant',cval=1.0)",
    "scipy.ndimage.gaussian_filter1d(np.outer(x, np.arange(5.)), 1.0, axis=0)",
    "scipy.ndimage.gaussian_laplace(np.outer(x, np.arange(5.)), 1.0)", "scipy.ndimage.uniform_filter(np.outer(x, np.arange(5.)), 3)",
    "scipy.ndimage.uniform_filter(np.outer(x, np.arange(5.)), size=2, mode='nearest')", "scipy.ndimage.uniform_filter1d(x, 2)",
    "scipy.ndimage.laplace(np.outer(x, np.arange(5.)))", "scipy.ndimage.sobel(np.outer(x, np.arange(5.)), axis=0)",
    "scipy.ndimage.sobel(np.outer(x, np.arange(5.)))", "scipy.ndimage.prewitt(np.outer(x, np.arange(5.)))",
    "scipy.ndimage.convolve(np.outer(x, np.arange(5.)), np.array([[0, 1., 0], [1, -4, 1], [0, 1, 0]]))",
    "scipy.ndimage.convolve(np.outer(x, np.arange(5.)), np.array([[0, 1., 0], [1, -4, 1], [0, 1, 0]]), mode='constant')",
    "scipy.ndimage.convolve(np.outer(x, np.arange(5.)), np.array([[0, 1., 2., 3.], [1, -4, 1, 2]]), mode='mirror',origin=(0, 1))",
    "scipy.ndimage.convolve(M, np.outer(x, x))", "scipy.ndimage.convolve1d(M, x, axis=0, mode='wrap')",
    "scipy.ndimage.correlate(np.outer(x, np.arange(5.)), np.array([[0, 1., 2., 3.], [1, -4, 1, 2]]), mode='reflect')",
    "scipy.ndimage.correlate1d(x, [1.0, 2.0, 3.0])", "scipy.ndimage.map_coordinates(M, [[x[0], 1.2], [0.4, x[1]]], order=1)",
    "scipy.ndimage.map_coordinates(np.outer(x, x), np.array([[0.7, 1.2], [0.4, 0.1]]), order=1)",
    "scipy.ndimage.map_coordinates(np.outer(x, x), np.array([[0.7, 2.5], [0.4, 0.1]]), order=1, mode='nearest')",
    "scipy.ndimage.shift(np.outer(x, x), (0.3, 0.2), order=1)",
    "scipy.ndimage.affine_transform(np.outer(x, x), np.array([[1, 0.1], [0.1, 1]]), order=1)",
    "scipy.ndimage.maximum_filter(np.outer(x, x), 3)", "scipy.ndimage.minimum_filter(np.outer(x, x), 3)",
    "scipy.ndimage.median_filter(np.outer(x, np.arange(1., 6.)), 3)", "scipy.ndimage.grey_dilation(np.outer(x, x), 3)",
    "scipy.ndimage.center_of_mass(np.outer(x, x))", "scipy.interpolate.BarycentricInterpolator(np.arange(3.), x)(0.4)",
    "scipy.interpolate.KroghInterpolator(np.arange(3.), x)(0.4)", "scipy.interpolate.lagrange(np.arange(3.), x)(0.4)",
    "scipy.interpolate.pchip_interpolate(np.arange(3.), x, 0.4)", "scipy.integrate.fixed_quad(lambda t: np.exp(-x[0]*t), 0, 1, n=5)[0]",
    "scipy.integrate.cumulative_simpson(x, dx=0.1)", "scipy.integrate.romb(np.append(x, [1., 2.]))",
    "scipy.signal.savgol_filter(np.append(x, [1., 2., 3.]), 5, 2)", "scipy.signal.welch(np.tile(x, 10), nperseg=8)[1]",
    "scipy.signal.periodogram(np.tile(x, 10))[1]", "scipy.signal.resample(np.tile(x, 2), 4)", "scipy.signal.decimate(np.tile(x, 12), 2)",
    "scipy.signal.sosfiltfilt(scipy.signal.butter(2, 0.3, output='sos'), np.tile(x, 10))", "scipy.signal.freqz(x, [1.0], 4)[1].real",
    "scipy.signal.wiener(np.tile(x, 3), 3)", "scipy.signal.chirp(x, 1.0, 1.0, 2.0)",
    "scipy.signal.coherence(np.tile(x, 10), np.tile(x**2, 10), nperseg=8)[1]",
    "scipy.signal.csd(np.tile(x, 10), np.tile(x**2, 10), nperseg=8)[1].real",
    "scipy.signal.cont2discrete((np.outer(x, x), np.eye(3), np.eye(3), np.zeros((3, 3))), 0.1)[0]",
    "scipy.signal.lsim((np.array([[-x[0]]]), np.array([[1.0]]), np.array([[1.0]]), np.array([[0.0]])), np.ones(4), np.arange(4.))[1]",
    "scipy.special.log1p(x)*scipy.special.expm1(x)", "scipy.stats.zscore(x)", "scipy.stats.zmap([0.2, 0.5], x, ddof=1)",
    "np.nan_to_num(scipy.stats.zscore(np.stack([x, [1.0, np.nan, 2.0], x*x]), axis=0, nan_policy='omit'))",
    "np.nan_to_num(scipy.stats.zmap([0.2, np.nan], np.append(x, np.nan), nan_policy='omit'))",
    "scipy.stats.ttest_ind(x, [1.0, 3.0, 2.0])[0]", "scipy.stats.skew(x)", "scipy.stats.kurtosis(x)",
    "scipy.stats.entropy(x)", "scipy.stats.gmean(x)", "scipy.stats.sem(x)", "scipy.stats.trim_mean(x, 0.1)",
    "scipy.stats.describe(x).variance", "scipy.stats.moment(x, 2)", "scipy.spatial.transform.Rotation.from_euler('xyz',x).as_matrix()",
    "scipy.spatial.transform.Rotation.from_rotvec(x).apply([1.0, 0, 0])",
)  # fmt: skip
#: Those that branch on values, and cannot be compiled.
BRANCHING = (
    "scipy.linalg.lu_factor(M+np.diag(x))[0]", "scipy.linalg.lu(M+np.diag(x))", "scipy.linalg.companion(x)",
    "scipy.ndimage.gaussian_filter(np.arange(5.), x[0])",
    "scipy.ndimage.sum(np.outer(x, x), np.array([[1, 1, 2], [1, 2, 2], [0, 0, 1]]), [1, 2])",
    "scipy.ndimage.sum_labels(np.outer(x, x), np.array([[1, 1, 2], [1, 2, 2], [0, 0, 1]]), [1, 2])",
    "scipy.ndimage.mean(np.outer(x, x), np.array([[1, 1, 2], [1, 2, 2], [0, 0, 1]]), [1, 2])",
    "scipy.ndimage.maximum(np.outer(x, x), np.array([[1, 1, 2], [1, 2, 2], [0, 0, 1]]), [1, 2])",
    "scipy.ndimage.variance(np.outer(x, x), np.array([[1, 1, 2], [1, 2, 2], [0, 0, 1]]), [1, 2])",
    "scipy.integrate.quad(lambda t: np.exp(-x[0]*t), 0, 1)[0]", "scipy.integrate.quad(lambda t: np.exp(-x[0]*t), 0, np.inf)[0]",
    "scipy.integrate.quad(lambda t: np.exp(-t*t), x[1], x[0])[0]",
    "scipy.integrate.quad(lambda t: np.exp(-x[0]*t), 0, 1, points=[0.5])[0]",
    "scipy.integrate.dblquad(lambda s, t: np.exp(-x[0]*t*s), 0, 1, 0, 1)[0]",
    "scipy.integrate.quad(lambda t, a: np.exp(-a*t), x[1], np.inf, (x[0],), 1)[0]",
    "scipy.integrate.solve_ivp(lambda t, y: -x[0]*y, (0, 1), [1.0, x[1]], rtol=1e-9, atol=1e-9, vectorized=1).y[:, -1]",
    "scipy.integrate.solve_ivp(lambda t, y, a: np.stack([-a*y[0], y[0]*y[1]]), (0, 1), x[1:], 'RK45', None, False, None, True, (x[0],),"
    " rtol=1e-9, atol=1e-9).y[:, -1]",
    "scipy.integrate.solve_ivp(lambda t, y: -x[0]*y, (0, 1), x[1:], 'Radau', rtol=1e-8, atol=1e-8, jac=lambda *t: np.eye(2)).y[:, -1]",
    "scipy.integrate.odeint(lambda y, t: -x[0]*y, x[1:], np.linspace(0, 1, 3), (), lambda y, t: -x[0]*np.eye(2), rtol=1e-9, atol=1e-9)[-1]",
    "scipy.integrate.dblquad(lambda s, t: np.exp(-x[0]*t*s), 0, 1, lambda t:0, lambda t: t)[0]",
    "scipy.integrate.nquad(lambda s, t: np.exp(-x[0]*t*s), [[0, 1], [0, 1]])[0]", "scipy.signal.square(x)*x", "scipy.signal.sawtooth(x)",
    "scipy.stats.pearsonr(x, [1.0, 3.0, 2.0])[0]", "scipy.stats.linregress([1.0, 3.0, 2.0], x).slope", "scipy.stats.hmean(x)",
    "scipy.stats.iqr(x)", "scipy.stats.spearmanr(x, [1.0, 3.0, 2.0])[0]*x", "scipy.stats.invgamma.logpdf(x, 2.0)",
    "scipy.stats.pareto.logpdf(x+1, 2.0)", "scipy.stats.nbinom.logpmf([1, 2, 3], x[0]+2, x[1])", "scipy.stats.halfnorm.logpdf(x)",
    "scipy.stats.variation(x)", "scipy.optimize.root_scalar(lambda t: t**3-x[0], bracket=[0, 2]).root",
    "scipy.optimize.root_scalar(lambda t: t**3-x[0], method='toms748', bracket=[0, 2], xtol=1e-13).root",
    "scipy.optimize.root_scalar(lambda t, a: t**3-a, (x[0],), x0=1.0, x1=1.1, method='secant', xtol=1e-13).root",
    "scipy.optimize.root_scalar(lambda t: t**3-x[0], x0=1.0, fprime=lambda t: 3*t*t, xtol=1e-13).root",
    "scipy.optimize.root_scalar(lambda t: (t**3-x[0], 3*t*t, 6*t), x0=1.0, fprime=True, fprime2=True, xtol=1e-13).root",
    "scipy.optimize.brentq(lambda t: t**3-x[0], 0, 2, (), 1e-13, 1e-12, 99, disp=False)",
    "scipy.optimize.brentq(lambda t: t**3-x[0], 0, 2, full_output=True, xtol=1e-13)[1].root",
    "scipy.optimize.toms748(lambda t, a: t**3-a, 0, 2, args=(x[0],), k=2, xtol=1e-13)",
    "scipy.stats.gmean(np.stack([x, [1.0, np.nan, 2.0], x*x]), axis=0, nan_policy='omit')",
    "scipy.stats.trim_mean(np.stack([x, [1.0, np.nan, 2.0], x*x, x+3]), 0.3, axis=0, nan_policy='omit')",
    "scipy.stats.ttest_rel(np.stack([x, [1.0, np.nan, 2.0], x[::-1]]), M*x, axis=1, nan_policy='omit')[0]",
    "scipy.stats.gstd(np.stack([x, [1.0, np.nan, 2.0], x*x]), axis=0, nan_policy='omit')",
    "scipy.stats.tvar(np.stack([x, x+3, x*x, x*x*x]), (None, 2.0), axis=0)",
    "scipy.stats.wasserstein_distance(x, [0.5, 2.0], x**2, [1.0, 2.0])", "scipy.stats.energy_distance(x, [0.5, 2.0], x**2)",
    "scipy.stats.gamma(x[0], scale=x[1]).mean()*x", "scipy.stats.gamma(x[0], 0.0, x[1]).interval(0.8)[1]*x",
    "scipy.stats.norm(x[0], x[1]).median()*x", "scipy.stats.binom(5, x[0]).std()*x", "scipy.stats.pareto(x[0]+3).var()*x",
    "scipy.stats.gamma.expect(lambda t: t*t, (3.5,), x[0], x[1])", "scipy.stats.norm(x[0], x[1]).expect(np.cos)",
    "scipy.stats.beta(x[0]+2, 3.0).expect(lambda t: t*t, conditional=True, lb=0.1)", "scipy.stats.geom(x[0]).expect(lambda k: k*k)",
    "scipy.stats.gamma.fit(np.append(x, [2.0, 3.5]), floc=0)[0]",
    "scipy.optimize.leastsq(lambda t: t-x, np.zeros(3))[0]",
)  # fmt: skip
M = np.array([[1.0, 2.0, 0.5], [0.2, 1.2, 3.1], [2.2, 0.7, 1.7]])


@pytest.mark.slow(one_in=40)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", CALLS + BRANCHING)
def test_scipys_code_runs_on_tensors(text: str) -> None:
    exec(f"def program(x):\n    return {text}", globals())  # noqa: S102 (the table's text)
    program, x = globals()["program"], np.array([0.71, 0.33, 0.93])
    run = flat(xp.numpy_code(program))
    plain, steps = flat(program), 1e-6 * np.eye(3)
    np.testing.assert_allclose(np.asarray(run(xp.asarray(x)).tolist()), plain(x), rtol=1e-9, atol=1e-12)
    slopes = np.stack([(plain(x + d) - plain(x - d)) / 2e-6 for d in steps], axis=-1)
    functions = [run] if text in BRANCHING else [run, xp.compile(run)]
    for function in functions:
        leaf = xp.tensor(x, requires_grad=True)
        out = function(leaf)
        np.testing.assert_allclose(np.asarray(out.detach().tolist()), plain(x), rtol=1e-9, atol=1e-12)
        weights = np.random.default_rng(0).normal(size=out.shape)
        (found,) = xp.autograd.grad(xp.sum(out * weights), leaf)
        np.testing.assert_allclose(np.asarray(found.tolist()), weights @ slopes, rtol=1e-5, atol=1e-6)
    if text not in BRANCHING:
        found = np.asarray(xp.func.jvp(run, (x,), (np.ones(3),))[1].tolist())
        np.testing.assert_allclose(found, slopes.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_distances_of_distributions_with_equal_values() -> None:
    x, y, p = np.array([0.3, 1.2, 1.2, 0.3, 1.2, 2.0]), np.array([5.0, 4.0, 4.0, 7.0]), np.array([1.0, 2.0, 0.5, 0.3, 1.1, 0.7])
    leaves = [xp.tensor(v, requires_grad=True) for v in (x, y, p)]
    found = xp.numpy_code(lambda u, v, w: stats.wasserstein_distance(u, v, w))(*leaves)
    found.backward()
    assert found.item() == pytest.approx(stats.wasserstein_distance(x, y, p))
    # All of `x` lies below all of `y`: the distance is that of the means.
    assert [leaf.grad is not None for leaf in leaves] == [True] * 3
    np.testing.assert_allclose(leaves[0].grad, -p / p.sum())
    np.testing.assert_allclose(leaves[1].grad, np.full(4, 0.25))
    np.testing.assert_allclose(leaves[2].grad, -(x - x @ p / p.sum()) / p.sum(), atol=1e-15)
    for name in ("wasserstein_distance", "energy_distance"):
        by_weights = xp.numpy_code(lambda w, name=name: getattr(stats, name)(x, y, w))
        for run in (xp.func.vmap(by_weights), xp.compile(lambda w, f=by_weights: xp.stack([f(v) for v in w]))):
            np.testing.assert_allclose(run(xp.asarray([p, p + 1.0])).tolist(), [getattr(stats, name)(x, y, w) for w in (p, p + 1.0)])
    same = xp.tensor([0.3, 1.2, 2.0], requires_grad=True)
    xp.numpy_code(lambda u: stats.wasserstein_distance(u, [2.0, 0.3, 1.2]))(same).backward()
    np.testing.assert_allclose(same.grad, 0.0, atol=1e-15)  # the smallest distance, at a kink
    with pytest.raises(ValueError, match="must not be negative"):
        xp.numpy_code(lambda u: stats.energy_distance(u, [1.0, 2.0], [1.0, 1.0, -1.0]))(same)


def test_policies_of_statistics_are_kept_in_batches() -> None:
    x, y = (np.random.default_rng(k).normal(size=(2, 5, 3)) for k in range(2))
    compare = xp.numpy_code(lambda a, b: stats.f_oneway(a, b, axis=0).statistic)
    found = xp.func.vmap(compare)(xp.asarray(x), xp.asarray(y))
    np.testing.assert_allclose(found.tolist(), [stats.f_oneway(a, b, axis=0).statistic for a, b in zip(x, y)])
    spread = xp.func.vmap(xp.numpy_code(lambda a: stats.sem(a, axis=(0, 1), keepdims=True)))(xp.asarray(x))
    np.testing.assert_allclose(spread.tolist(), [stats.sem(a, axis=(0, 1), keepdims=True) for a in x])
    with pytest.raises(NotImplementedError, match="nan_policy='omit' needs the values"):
        xp.func.vmap(xp.numpy_code(lambda a: stats.sem(a, nan_policy="omit")))(xp.asarray(x))


def test_the_full_output_of_integrals_is_scipys() -> None:
    def program(c: Any) -> Any:
        return scipy.integrate.quad(lambda t: np.exp(-c * t), 0.0, np.inf, full_output=1)

    found, expected = xp.numpy_code(program)(xp.tensor(0.7, requires_grad=True)), program(0.7)
    assert found[0].requires_grad
    assert len(found) == 3
    assert found[2].keys() == expected[2].keys()
    assert found[2]["neval"] == expected[2]["neval"]


def constants(p: Any) -> Any:
    vectors = multivariate_normal(p, np.diag(p))
    return [
        vectors.mean, vectors.cov, p * vectors.dim, stats.describe(p, axis=None).variance, stats.norm.moment(2, p[0], p[1]),
        stats.gamma(p[0]).moment(2), stats.describe(p).kurtosis,
    ]  # fmt: skip


def test_functions_of_scipys_take_tensors_without_a_gradient() -> None:
    p = np.array([0.7, 0.3, 0.9])
    for found, expected in zip(xp.numpy_code(constants)(xp.asarray(p)), constants(p)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: scipy.linalg.schur(x, overwrite_a=True), lambda x: scipy.ndimage.gaussian_filter(x, 1.0, output=x),
        lambda x: scipy.ndimage.generic_filter(x, np.max, 2, None, x),
    ],
)  # fmt: skip
def test_what_a_function_of_scipys_writes_into_a_tensor_is_a_write(write: Callable[[Any], Any]) -> None:
    """It neither changes values saved for a backward pass nor is lost."""
    start, found = np.asfortranarray([[4.0, 1.0], [1.0, 3.0]]), []

    def program(x: Any) -> Any:
        y = x * 2.0
        loss, constant = (y * y).sum(), y.detach()
        write(constant)
        found.append(constant.tolist())
        return loss

    slope = xp.func.grad(xp.numpy_code(program))(xp.asarray(start))
    np.testing.assert_allclose(slope.tolist(), 8 * start)
    expected = start * 2.0
    write(expected)
    np.testing.assert_allclose(found[0], expected)


def test_an_omitted_nan_is_a_constant() -> None:
    x = np.array([1.0, 2.0, np.nan, 5.0])
    for name in ("gstd", "zscore", "gzscore", "tvar", "gmean"):
        program = xp.numpy_code(lambda a, name=name: np.nansum(getattr(stats, name)(a, nan_policy="omit") ** 3))
        leaf = xp.tensor(x, requires_grad=True)
        program(leaf).backward()
        present = xp.func.grad(program)(xp.asarray(x[[0, 1, 3]]))
        np.testing.assert_allclose(leaf.grad, np.insert(present.numpy(), 2, 0.0), rtol=1e-12, err_msg=name)
        curvature = xp.func.hessian(program)(xp.asarray(x)).numpy()
        np.testing.assert_allclose(curvature[np.ix_([0, 1, 3], [0, 1, 3])], xp.func.hessian(program)(xp.asarray(x[[0, 1, 3]])), atol=1e-12)
        assert not curvature[2].any(), name
    single = xp.numpy_code(lambda a: stats.gstd(a, nan_policy="omit"))(xp.asarray(x, dtype=xp.float32).requires_grad_())
    assert single.dtype == xp.float32
    for policy, error in (("raise", "contains nan"), ("drop", "must be one of")):
        with pytest.raises(ValueError, match=error):
            xp.numpy_code(lambda a, policy=policy: stats.zmap(a, a, nan_policy=policy))(xp.tensor(x, requires_grad=True))


def minima(p: Any) -> Any:
    def cost(t: Any) -> Any:
        return (t - p[0]) ** 2 + p[1] * t**4

    found = [optimize.golden(cost, tol=1e-9), optimize.brent(lambda t, a: (t - a) ** 2, (p[2],)), optimize.fminbound(cost, 0.0, 2.0)]
    free, held = optimize.minimize_scalar(cost), optimize.minimize_scalar(cost, bounds=(1.0, 2.0))
    inside = optimize.minimize_scalar(lambda t: -math.exp(-((t - p[2]) ** 2)), bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-9})
    return np.array([*found, free.x, free.fun, held.x, held.fun, inside.x])


_STIFFNESS = np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 2]])


def triangles(p: Any) -> Any:
    """SciPy reads one triangle of a symmetric matrix."""
    lower = np.tril(np.outer(p, p + 1.0)) + np.diag([3.0, 2.0, 1.0])
    upper, full = lower.T, lower @ lower.T
    found = [scipy.linalg.cholesky(upper), scipy.linalg.cholesky(lower, lower=True), scipy.linalg.cholesky(lower)]
    found += [scipy.linalg.cho_solve(scipy.linalg.cho_factor(upper), p), scipy.linalg.solve(upper, p, assume_a="sym")]
    found += [scipy.linalg.solve(lower, p, lower=True, assume_a="pos"), scipy.linalg.eigvalsh(lower), scipy.linalg.eigvalsh(upper)]
    found += [scipy.linalg.eigh(upper, lower=False)[0], scipy.linalg.eigh(lower, full)[0], scipy.linalg.eigh(upper, full, lower=False)[0]]
    found += [scipy.linalg.solve(_STIFFNESS, p, assume_a="pos"), scipy.linalg.eigh(full, _STIFFNESS)[0]]
    return np.concatenate([np.ravel(x) for x in found])


def starts(p: Any) -> Any:
    """SciPy's `odeint` makes a vector of a number, and takes a derivative without axes for it."""
    options: Any = {"t": [0.0, 0.5, 1.0], "rtol": 1e-10, "atol": 1e-10}
    found = [odeint(lambda y, t: -p[0] * y, 1, **options), odeint(lambda y, t: -p[0] * y[0], p[1], **options)]
    found += [odeint(lambda y, t, q: q * np.exp(-t), y0=p[2], args=(p[0],), **options)]
    found += [odeint(lambda y, t: [-p[0] * y[1], y[0]], [p[1], 1], **options)]
    return np.concatenate(found, axis=1)


def sequences(p: Any) -> Any:
    """Starts of solvers that are lists or tuples become arrays, and so do solutions."""
    found = [optimize.root(lambda t: t**3 - p, [p[0], 1, 1.0]).x, optimize.root(lambda t: t**3 - p, x0=(1, 1, 1)).x]
    found += [optimize.least_squares(lambda t: t**2 - p, [1.0, p[1], 1], xtol=1e-12, ftol=1e-12).x]
    found += [optimize.minimize(lambda t: np.sum((t - p) ** 2), [p[0], 0, 1], tol=1e-10).x]
    return np.concatenate([2 * x for x in found])


def classes(p: Any) -> Any:
    """SciPy's older matrices multiply by ``*``, and their sums along an axis have two axes; a solution has one, also for a column."""
    i = np.arange(3)
    older, constant = sp.csr_matrix((p + 1.0, (i, i[::-1]))), sp.csr_matrix(np.diag([1.0, 2.0, 3.0]) + 1.0)
    found = [
        older.multiply(1 / older.sum(axis=1)),
        older.toarray() / older.sum(axis=0),
        older.toarray() / older.sum(axis=-1),
        (constant @ older) * p,
        (constant - older) * p,
    ]
    found += [(constant + older) * p, sp.csr_array(older) * p, sp.csr_matrix(sp.csr_array(older)) * p]
    found += [spsolve(older.tocsc(), p[:, None], use_umfpack=False) - p[:, None]]
    return np.concatenate([np.ravel(x.toarray() if sp.issparse(x) else x) for x in found])


def entries(p: Any) -> Any:
    """SciPy's compressed formats add up and sort the entries, unless they were given with `indptr`."""
    row, col = np.array([2, 0, 1, 2, 0, 0]), np.array([1, 2, 0, 0, 2, 1])
    d, lines = np.concatenate([p, p**2]), np.array([0, 3, 4, 6])
    loose, rows, columns = (make((d, (row, col))) for make in (sp.coo_array, sp.csr_array, sp.csc_matrix))
    given = sp.csr_matrix((d, col, lines))
    arrays = [loose, loose.tocsr(), loose.tocsc(), loose.T.tocsr(), rows, rows.tocsc(), rows.T, columns, columns.tocsr(), columns * 2.0]
    arrays += [given, given.tocsr(), given.tocsc(), rows + loose, columns - given, loose + loose, rows[:, ::-1], columns[1:, ::-1]]
    arrays += [sp.csr_array(columns), sp.csc_array(loose), sp.diags([p, p[:2]], [0, -1], format="csr"), sp.csc_matrix(np.tri(3)) + columns]
    return np.concatenate([x.data * np.arange(1.0, x.nnz + 1.0) for x in arrays])


@pytest.mark.parametrize("program", [minima, triangles, starts, sequences, classes, entries])
def test_minima_triangles_starts_and_classes(program: Any) -> None:
    x = np.array([0.7, 0.3, 0.9])
    run = xp.numpy_code(program)
    np.testing.assert_allclose(np.asarray(run(xp.asarray(x)).tolist()), program(x), rtol=1e-6)
    step = 1e-3 if program is minima else 1e-6  # minima have half as many digits
    expected = np.stack([(program(x + d) - program(x - d)) / (2.0 * step) for d in step * np.eye(3)], axis=-1)
    for transform in (xp.func.jacrev, xp.func.jacfwd):
        np.testing.assert_allclose(np.asarray(transform(run)(x).tolist()), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap", "grid-constant"])
def test_boundaries_of_filters_are_scipys(mode: str) -> None:
    """Also of windows that are larger than the array, or not centered."""
    rng = np.random.default_rng(0)
    for sizes in ((1, 2), (3, 4), (4, 3), (5, 1)):
        image, weights = rng.normal(size=(3, 4)), rng.normal(size=sizes)
        origin = tuple(int(rng.integers(-(size // 2), (size - 1) // 2 + 1)) for size in sizes)
        one = {"axis": 0, "mode": mode, "cval": 0.7, "origin": origin[0]}
        both = {"mode": mode, "cval": 0.7, "origin": origin}
        for program in (
            lambda x, weights=weights, both=both: scipy.ndimage.convolve(x, weights, **both),
            lambda x, weights=weights, both=both: scipy.ndimage.correlate(x, weights, **both),
            lambda x, sizes=sizes, both=both: scipy.ndimage.median_filter(x, size=sizes, **both),
            lambda x, weights=weights, one=one: scipy.ndimage.convolve1d(x, weights[:, 0], **one),
            lambda x, sizes=sizes, one=one: scipy.ndimage.uniform_filter1d(x, sizes[0], **one),
            lambda x, sizes=sizes, one=one: scipy.ndimage.maximum_filter1d(x, sizes[0], **one),
            lambda x, sizes=sizes, one=one: scipy.ndimage.minimum_filter1d(x, sizes[0], **one),
        ):
            found = xp.numpy_code(program)(xp.tensor(image, requires_grad=True)).detach()
            np.testing.assert_allclose(np.asarray(found.tolist()), program(image), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "program",
    [
        lambda image, weights: scipy.ndimage.correlate(image, weights),
        lambda image, weights: scipy.ndimage.convolve(image, weights, mode="wrap"),
        lambda image, weights: scipy.ndimage.correlate1d(image, weights[0], axis=0),
        lambda image, weights: scipy.ndimage.convolve1d(image, weights[0]),
        lambda image, weights: scipy.ndimage.map_coordinates(image, weights.real, order=1, mode="nearest"),
        lambda image, weights: scipy.ndimage.rotate(image * weights[0, 0], 30.0, order=1),
        lambda image, weights: scipy.ndimage.uniform_filter1d(image, 3) * weights[0, 0],
        lambda image, weights: scipy.ndimage.maximum_filter1d(image.real > 4.0, 3) * weights[0, 0],
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.uint8])
@pytest.mark.parametrize("complex_weights", [False, True])
def test_filters_have_the_dtypes_of_scipys(program: Any, dtype: Any, complex_weights: bool) -> None:
    """A correlation conjugates complex weights; the result has the dtype of the image: fractions of integers are lost."""
    rng = np.random.default_rng(0)
    image = (20.0 * rng.uniform(size=(4, 5)) + (1j if dtype is np.complex128 else 0.0)).astype(dtype)
    weights = rng.uniform(size=(2, 3)) * ((1.0 - 0.5j) if complex_weights else 1.0)
    expected = program(image, weights)
    out = xp.numpy_code(program)(xp.asarray(image), xp.tensor(weights, requires_grad=True)).detach().numpy()
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-12)


def test_weighted_minkowski_distances_of_infinite_order() -> None:
    """Only weights of 0 matter."""
    a, b, w = np.array([[3.0, 1.0, 0.5]]), np.zeros((1, 3)), np.array([0.0, 0.25, 2.0])
    leaf = xp.tensor(a, requires_grad=True)
    out = xp.numpy_code(lambda x: scipy.spatial.distance.cdist(x, b, "minkowski", p=np.inf, w=w))(leaf)
    assert out.tolist() == scipy.spatial.distance.cdist(a, b, "minkowski", p=np.inf, w=w).tolist() == [[1.0]]
    out.sum().backward()
    assert leaf.grad.tolist() == [[0.0, 1.0, 0.0]]


def test_distances_of_complex_vectors_raise() -> None:
    x = xp.tensor([[1.0 + 1.0j], [2.0]], requires_grad=True)
    with pytest.raises(ValueError, match="vectors must be real"):
        xp.numpy_code(lambda x: scipy.spatial.distance.pdist(x))(x)


@pytest.mark.parametrize("sizes", [(3, 3, 2, 2), (1, 4, 5, 1), (4, 2, 1, 2), (2, 1, 3, 4), (1, 1, 2, 2)])
@pytest.mark.parametrize("lead", [1.0, 1.7])
def test_states_of_filters_after_inputs_and_outputs(sizes: Any, lead: float) -> None:
    """Also by ``a[0]`` where it is 1, by which SciPy does not divide."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=size) for size in sizes]
    given[1][0] = lead
    for count in (3, 4):
        values, steps = given[:count], [rng.normal(size=size) for size in sizes[:count]]
        out, change = xp.func.jvp(xp.numpy_code(lambda *args: scipy.signal.lfiltic(*args)), tuple(values), tuple(steps))
        np.testing.assert_allclose(out.numpy(), scipy.signal.lfiltic(*values), rtol=1e-12, atol=1e-14)
        ahead, behind = (scipy.signal.lfiltic(*[x + h * d for x, d in zip(values, steps)]) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(change.numpy(), (ahead - behind) / 2e-6, rtol=1e-7, atol=1e-8)
    with pytest.raises(ValueError, match="must not be 0"):
        xp.numpy_code(lambda y: scipy.signal.lfiltic([1.0], [0.0, 1.0], y))(xp.tensor([1.0], requires_grad=True))


@pytest.mark.parametrize("b", [[0.5, 0.1, -0.3], [0.5, 0.1, 0.3, 0.7], [1.0, 2.0, 0.0]])
def test_zeros_and_poles_have_the_order_of_scipys(b: Any) -> None:
    a = np.array([1.0, 0.2, -0.1, 0.05])
    out = xp.numpy_code(lambda b, a: scipy.signal.tf2zpk(b, a))(xp.tensor(b, requires_grad=True), xp.tensor(a, requires_grad=True))
    for found, expected in zip(out, scipy.signal.tf2zpk(b, a), strict=True):
        assert found.detach().numpy().dtype == expected.dtype
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


def test_scipy_is_scipy_in_other_threads() -> None:
    x, started, ended = np.linspace(0.1, 1.0, 16), threading.Event(), threading.Event()

    def program(x: Any) -> Any:
        return stats.zscore(x)[0] + scipy.ndimage.gaussian_filter(x, 1.0)[2] + scipy.signal.welch(x, nperseg=8)[1].sum() + Chebyshev(x)(0.3)

    expected, wrong = program(x), []

    def compute() -> None:
        while not ended.is_set():
            found = program(x)
            wrong.extend([] if type(found) is np.float64 and found == expected else [found])
            started.set()

    thread = threading.Thread(target=compute)
    thread.start()
    started.wait(10)
    slopes = [xp.func.grad(xp.numpy_code(program))(x).tolist() for _ in range(5)]
    ended.set()
    thread.join()
    assert not wrong
    assert slopes == slopes[:1] * 5


def test_options_that_only_scipy_has() -> None:
    """They are SciPy's where no derivative is lost, and the result is a Tensor, into which Tensors can be written."""

    def program(p: Any) -> Any:
        solved = scipy.linalg.solve(np.outer(p, p) + np.eye(3), p, assume_a="pos")
        solved[0] = p[1]
        return solved

    x = np.array([0.7, 0.3, 0.9])
    out = xp.numpy_code(program)(xp.asarray(x))
    assert isinstance(out, xp.Tensor)
    np.testing.assert_allclose(out.numpy(), program(x))


def test_functions_of_sparse_arrays_without_a_derivative_raise() -> None:
    with pytest.raises(TypeError, match=r"scipy\.block_array has no derivative by the entries"):
        xp.numpy_code(lambda x: sp.block_array([[sp.diags(x)]]) @ x)(xp.tensor([1.0, 2.0], requires_grad=True))


def test_a_frozen_distribution_draws_as_scipys() -> None:
    def program(p: Any) -> Any:
        return norm(p[0], p[1]).rvs(2, random_state=0) + stats.gamma(p[2]).rvs(size=2, random_state=1) + norm(p[0]).mean()

    x = np.array([0.7, 0.3, 0.9])
    out = xp.numpy_code(program)(xp.asarray(x))
    assert isinstance(out, xp.Tensor)
    np.testing.assert_allclose(out.numpy(), program(x))
    with pytest.raises(RuntimeError, match="gradient would be lost"):
        xp.numpy_code(program)(xp.tensor(x, requires_grad=True))


def other(p: Any) -> Any:
    return scipy.ndimage.spline_filter(p).sum()


def other_class(p: Any) -> Any:
    return scipy.interpolate.RectBivariateSpline(np.arange(4.0), np.arange(4.0), np.outer(*[np.append(p, 1.0)] * 2))(0.5, 0.5).sum()


def other_solver(p: Any) -> Any:
    return optimize.dual_annealing(lambda x: np.sum((x - p) ** 2), [(0.0, 1.0)] * 3, maxiter=2).x.sum()


def other_order(p: Any) -> Any:
    return scipy.ndimage.map_coordinates(p, [[0.5, 1.5]]).sum()


def unknown_option(p: Any) -> Any:
    return scipy.linalg.solve(np.outer(p, p) + np.eye(3), p, assume_a="tridiagonal").sum()


def dense_pattern(p: Any) -> Any:
    return (sp.csr_array(np.outer(p, p)) @ p).sum()


def test_the_message_names_the_function_and_what_differs() -> None:
    with pytest.raises(RuntimeError, match=r"use `xpgrad\.linalg\.cholesky`, whose arguments and results are the Array API's"):
        scipy.linalg.cholesky(xp.tensor(np.eye(2), requires_grad=True))
    with pytest.raises(RuntimeError, match=r"use `xpgrad\.scipy\.linalg\.expm`$"):
        scipy.linalg.expm(xp.tensor(np.eye(2), requires_grad=True))


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (other, RuntimeError, "gradient would be lost"),
        (other_class, RuntimeError, "gradient would be lost"),
        (other_solver, RuntimeError, "gradient would be lost"),
        (other_order, TypeError, "`order` 0 or 1, not 3"),
        (unknown_option, TypeError, "unexpected keyword argument 'assume_a'"),
        (dense_pattern, RuntimeError, "requires grad"),
    ],
)
def test_what_has_no_derivative_here_raises(program: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        xp.numpy_code(program)(xp.tensor([0.7, 0.3, 0.9], requires_grad=True))
