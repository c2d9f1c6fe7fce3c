"""Law: a program written for NumPy, run by `numpy_code`, computes NumPy's values, and its derivatives are those of differences.

The programs are written as NumPy's users write them: with loops, slices, writes in place, `out=`, temporaries that are overwritten, and
helpers. Each returns what it computed.
"""

from __future__ import annotations

import cmath
import copy
import functools
import importlib
import math
import numbers
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import hypot
from pathlib import Path
from typing import Any

import numpy
import numpy as np
import pytest
from numpy import exp as exponential, linspace, zeros as nothing
from numpy.linalg import norm
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial, chebyshev, polynomial
from numpy.random import default_rng

import xpgrad as xp
from support.central_differences import differences, values
from xpgrad.utils.checkpoint import checkpoint

WEIGHTS = np.random.default_rng(5).normal(size=(4, 4))
MASSES = np.array([1.0, 2.0, 0.5])
STEPS = 3


def cumulative_product(x):
    out = np.ones(len(x) + 1)
    for i in range(len(x)):
        out[i + 1] = out[i] * x[i]
    return out


def jacobi(u):
    b = u.copy()
    for _ in range(STEPS):
        b[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + u[2:, 1:-1] + u[:-2, 1:-1])
        u[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return u


def gauss_seidel(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4.0
    return u


def decompose(a):
    lower, upper = np.eye(len(a)), np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i, len(a)):
            upper[i, j] = a[i, j] - lower[i, :i] @ upper[:i, j]
        for j in range(i + 1, len(a)):
            lower[j, i] = (a[j, i] - lower[j, :i] @ upper[:i, i]) / upper[i, i]
    return lower, upper


def cholesky(a):
    out = np.zeros((len(a), len(a)))
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j] - np.dot(out[i, :j], out[j, :j])
            out[i, j] = np.sqrt(rest) if i == j else rest / out[j, j]
    return out


def _forces(positions, masses):
    out = np.zeros(positions.shape)
    for i in range(len(positions)):
        d = positions - positions[i]
        r = (d**2).sum(axis=1) + 0.1
        out[i] = (masses[:, None] * d / r[:, None] ** 1.5).sum(axis=0)
    return out


def bodies(positions, velocities, masses=MASSES):
    energies = np.empty(STEPS)
    for k in range(STEPS):
        velocities += 0.1 * _forces(positions, masses)
        positions += 0.1 * velocities
        energies[k] = 0.5 * np.sum(masses * np.sum(velocities**2, axis=1))
    return positions, energies


def network(x, w):
    hidden = np.empty((len(x), 4))
    np.matmul(x, w, out=hidden)
    np.maximum(hidden, 0.1 * hidden, out=hidden)
    hidden -= hidden.max(axis=1, keepdims=True)
    np.exp(hidden, out=hidden)
    hidden /= hidden.sum(axis=1, keepdims=True)
    return -np.log(hidden[np.arange(len(x)), np.array([0, 2, 1])]).mean()


def convolve(signal, kernel):
    out = numpy.zeros(len(signal) - len(kernel) + 1)
    for i in range(len(kernel)):
        out += kernel[i] * signal[i : i + len(out)]
    return out


def trapezoid(x):
    t = linspace(0.0, 1.0, 5)
    y = nothing(5)
    y[:] = np.sin(t * x[0]) + x[1]
    y[y > 1.2] *= 0.5
    return np.sum((t[1:] - t[:-1]) * (y[1:] + y[:-1])) / 2.0


def kalman(z):
    state, cov = np.zeros(2), np.eye(2)
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    kept = []
    for k in range(len(z)):
        state, cov = f @ state, f @ cov @ f.T + 0.01 * np.identity(2)
        s = h @ cov @ h.T + 0.1
        gain = cov @ h.T @ np.linalg.inv(s)
        state = state + gain @ (z[k : k + 1] - h @ state)
        cov = (np.eye(2) - gain @ h) @ cov
        kept.append(state[0])
    return np.array(kept)


def distances(w):
    d = w.copy()
    for k in range(len(d)):
        d[:] = np.minimum(d, d[:, k, None] + d[k])
    return d


def histogram(x):
    counts = np.zeros(3)
    np.add.at(counts, np.array([0, 1, 1, 2, 0]), x)
    return counts / np.full(3, x.sum())


def recursion(x):
    def power(a, n):
        if n == 0:
            return np.ones_like(a)
        half = power(a, n // 2)
        half *= half
        return half * a if n % 2 else half

    return power(x, 5)


def integers(x):
    order = np.zeros(len(x), dtype=int)
    for i in range(len(x)):
        order[i] = len(x) - 1 - i
    return x[order] * np.arange(len(x))


def accumulate(a):
    total = a[0]
    for k in range(1, len(a)):
        total += a[k]
    a[1] = 0.0
    return total * a


def exchange(a):
    a[0], a[1] = a[1], a[0]
    old = a[2]
    a[2] = 5.0
    a[1] *= 2.0
    return old * a


def scalars(a):
    for v in a:
        v *= 2.0
    largest = a.max()
    kept = largest
    largest -= a.min()
    largest **= 2
    return kept * largest * a


def arrays_without_axes(a):
    total, view, kept = np.zeros(()), a[..., 0], {"sum": np.array(0.0)}
    alias, before = total, total[()]
    for v in a:
        total += v
        kept["sum"] += v * v
    view += 1.0
    return (alias + before) * a * kept["sum"]


def same_arrays(a):
    same, total, other = np.asarray(a), a.sum(), np.array(a)
    array = np.asarray(total)
    same[0] += 1.0
    other[1] *= 3.0
    array += 1.0
    return total * array * a * other


def lists_of_universal_functions(x):
    a, b, c = x
    added = x.copy()
    np.add.at(added, [0, 0, 2], [a, 2.0, b])
    squares, order = np.outer(x, x), np.argsort(x)
    np.subtract.at(squares, (order, [0, 0, 2]), x)
    added += squares.sum(axis=0)
    limited = np.maximum.reduce([x, x**2 / 3.0, [a, 1.0, c]]) - np.minimum.reduce((x, 2.0 * x), axis=0)
    numbers = np.hypot([a, 1.0], [2.0, b])[0] + np.multiply.accumulate([a, b])[1] + np.add.reduce([v * v for v in x])
    outer = np.subtract.outer([a, b], x).ravel() * np.sqrt([a, b])[1]
    inside = np.logical_and.reduce([x > 1.0, x < 3.0])
    assert (np.add.nin, np.exp.__name__, exponential is np.exp) == (2, "exp", True)
    return np.concatenate([added, limited, outer, inside * x, exponential([a, c]), np.matmul([[a, 1.0], [0.0, c]], [b, 2.0]), [numbers]])


def ranges(x):
    a, b, _ = x
    return np.concatenate([np.arange(a, 6.0), np.arange(0, b, 0.25), np.arange(0, 3, step=b), np.arange(a, 0.0, -b / 2.0), np.arange(b)])


def mathematics(x):
    a, b, c = x / 4.0
    angles = [math.acos(a), math.asin(b), math.atan(c), math.atan2(a, c), math.cos(a), math.sin(b), math.tan(c), math.radians(a)]
    powers = [math.exp(a), math.expm1(b), math.log(c), math.log(a, 3.0), math.log(2.0, b), math.log1p(c), math.log2(a), math.log10(b)]
    powers += [math.pow(a, b), math.sqrt(c), math.cbrt(a), math.exp2(b)]
    curves = [math.cosh(a), math.sinh(b), math.tanh(c), math.acosh(a + 1.0), math.asinh(b), math.atanh(c), math.erf(a), math.erfc(b)]
    curves += [math.gamma(c), math.lgamma(a), math.fabs(-b), math.copysign(c, -1.0), math.degrees(a)]
    sums = [
        math.fsum(v * v for v in x),
        math.dist([a, b], [c, 1.0]),
        math.dist(x, x[::-1] ** 2),
        hypot(a, b),
        hypot(a, b, c),
        hypot(c),
        math.prod([a, b]),
    ]
    parts = [
        math.fmod(a, 0.3),
        math.remainder(b, 0.3),
        *math.modf(c + 1.0),
        math.ldexp(a, 2),
        math.frexp(b)[0],
        sum(math.sqrt(v) for v in x),
    ]
    z = cmath.sqrt(-a) + cmath.exp(1j * b) + cmath.log(complex(1.0, 2.0) * c)
    kept = [float(a) * b, np.float64(c) * 2.0, float(x.sum()), complex(a, b).imag, np.complex128(c).real]
    z += cmath.rect(a, b)
    return np.array(angles + powers + curves + sums + parts + kept + [z.real, z.imag, cmath.phase(z), *cmath.polar(z)])


def pass_scalars(a):
    def increase(t):
        t += 1.0
        return t

    total = a.sum()
    larger = increase(total)
    k = np.argmin(a)
    smallest = a[k]
    a[np.int64(2)] = smallest
    smallest += 1.0
    return total * larger * a * smallest


def computed_arrays(a):
    total, counts, kept = np.zeros(3) + 1.0, np.ones(3) * 2.0, np.ones(3)
    first = np.atleast_1d(counts[0])
    first -= a[1]
    total += a
    counts[[0, 2]] *= a[1]
    kept[kept > 0] -= a
    np.add.at(a, [0, 0, 1], 2.0)
    np.subtract.at(total, [1, -1], np.arctan(0.5))
    return total * counts * kept * a * first


def methods(a):
    b, c = np.ndarray((2, 3)), a.copy()
    b[0], b[1] = np.full_like(a=a, fill_value=2.0) * np.copy(a=a), a.repeat(2)[1:4]
    c.sort()
    total = b.std(ddof=1) + b.trace() + b.dot(c).sum() + b.take([0, 5]).sum()
    return total * c * [1.0, 2.0, 3.0] if isinstance(b, np.ndarray) and np.isscalar(a[0]) and not np.isscalar(b) else None


@dataclass
class Link:
    """A part of a robot's arm."""

    length: Any
    twist: float = 0.5

    def transform(self, angle):
        c, s = np.cos(angle + self.twist), np.sin(angle)
        return np.array([[c, -s, self.length * c], [s, c, self.length * s], [0, 0, 1]])


class Grid:
    """A state of several arrays, which methods change."""

    def __init__(self, n):
        self.values, self.history = np.zeros(n), []

    def step(self, source):
        self.values[1:] += 0.5 * self.values[:-1] ** 2
        self.values += source
        self.history.append(self.values.sum())


def classes(a):
    grid, place = Grid(3), np.eye(3)
    for k in range(3):
        grid.step(a * k)
        place = place @ Link(a[k]).transform(a[0])
    return grid.values, np.array(grid.history), place


def doubled(function):
    @functools.wraps(function)
    def call(*args):
        out = np.zeros(3)
        out[:] = function(*args)
        return 2.0 * out

    return call


@doubled
def decorated(a):
    out = np.empty(3)
    out[:2], out[2] = a[1:], a[0]
    return out


@functools.lru_cache
def nodes(n):
    return np.linspace(0.0, 1.0, n)


@np.vectorize
def piece(a, k=2):
    return a**k if k > 1 else -a, a / k


def functions_in_objects(a):
    table, grid = {"f": decorated}, nodes(3) + a
    first, second = piece(a, [1, 2, 3])
    return table["f"](a), first * second, piece(a[0])[1], np.vectorize(lambda x, n: x * n, excluded={1})(a, n=2.0), grid


def lists_of_scalars(a):
    x, y, z = a
    rotation = np.diag([x, y]) @ np.linalg.inv([[x, 1.0], [0.5, z]])
    last = deque([x, y, z], maxlen=2)
    numbers = [np.mean([x, y]), norm([x, y, z]), np.max((x, 1.5, z)), np.median([z, y, 1.0]), np.sum(last), a.item(1), sum(a.tolist())]
    arrays = np.full((2, 2), [x, 1.0]), np.vstack([[x, y], [1.0, z]]), np.fromiter((v * v for v in a), float), np.array(last)
    return (rotation[range(2), range(2)] * np.size([x, y]), np.array(numbers), *arrays)


def noise(a):
    rng = np.random.default_rng(3)
    out = rng.normal(size=3)
    out *= a
    state = np.random.RandomState(0)
    more = state.uniform(size=3)
    more -= a * state.rand()
    kinds = np.random.Generator, np.random.RandomState
    assert [isinstance(x, kind) for x in (rng, _GENERATOR, state) for kind in kinds] == [True, False, True, False, False, True]
    return draw(rng, a) * out + rng.permutation(3) + more


_GENERATOR = np.random.default_rng(1)


def draw(generator, a):
    out = generator.standard_normal(3)
    out += a
    return out


def draws_with_parameters(a):
    legacy, table = np.random, np.outer(a, a)
    rng, state = legacy.default_rng(2), legacy.RandomState(2)
    legacy.seed(2)
    drawn = [rng.normal(a, 2.0), rng.uniform(a[0], high=5.0, size=3), rng.exponential(a), state.laplace(a[0], scale=a[1], size=3)]
    drawn += [state.gumbel(a), rng.logistic(2.0, a, (3,)), legacy.lognormal(a / 3.0, a), rng.rayleigh(a), rng.gamma([1.0, 2.0, 3.0], a)]
    drawn += [legacy.normal(a[0], a[1]) * a, legacy.uniform(high=a), state.multivariate_normal(a, [[2, 1, 0], [1, 2, 0], [0, 0, 1]])]
    drawn += [rng.choice(a, 3), legacy.choice(a, 3, replace=False), rng.choice(table, 1, axis=1)[:, 0], state.choice(a) * a]
    drawn += [state.permutation(a), rng.permutation(table, axis=1)[0], rng.poisson(3.0, 3) * a]
    rng.shuffle(table, axis=1)
    state.shuffle(table)
    drawn += [*table, rng.multivariate_normal([0.0, 1.0, 2.0], [[2, 1, 0], [1, 2, 0], [0, 0, 3]])]
    return np.array(drawn)


_PARABOLA = Polynomial([1.0, 2.0, 3.0], domain=[0.0, 2.0])


def polynomials(a):
    x, t, zero = np.linspace(0.0, 1.0, 6), a[0] / 4.0, a[0] - 3.1  # a leading coefficient that is 0 has a gradient
    p, c, q = Polynomial(a, domain=[0, 2]), Chebyshev(a / 4.0), Polynomial([*a, zero])
    found = [
        _PARABOLA(t),
        p(a[1]),
        p.deriv()(0.3),
        p.integ(k=a[2])(0.3),
        (p * _PARABOLA - p**2 / 2.0)(0.3),
        q(2.0),
        (q + q)(2.0),
        (-q)(3.0),
    ]
    found += [c(0.3), c.deriv()(t), (c * Chebyshev([1.0, a[0]]) + c.integ())(0.3), c.convert(kind=Polynomial).coef[0], p.degree() * t]
    found += [Legendre(a)(0.3), Hermite(a)(0.3), HermiteE(a)(0.3), Laguerre([1.0, 2.0])(t), p(Polynomial([1.0, t]))(0.5)]
    found += [Polynomial.fit(x, x * a[0] + a[1] ** 2, 2)(a[2]), Chebyshev.fit(x, np.sin(x * a[0]), 3)(0.3), Polynomial.fromroots(a)(0.3)]
    found += [chebyshev.chebval(t, a), polynomial.polyval(a, [1.0, t])[1], polynomial.polyval2d(0.3, t, np.outer(a, a))]
    found += [*chebyshev.chebfit(x, np.exp(x * a[0]), 1), *polynomial.polyfromroots(a), *chebyshev.chebvander(a / 4.0, 2)[1]]
    p, q = np.poly1d(a), np.poly1d([zero, *a])
    found += [p(t), p.deriv()(t), p.integ()(t), (p * p - 2.0 * p)(t), (p + np.poly1d([1.0, 2.0]))(t), q(2.0), np.polyval(p, t), p[1], *p.c]
    found += [np.polyval(np.polyder(q), 2.0), np.poly1d(a, True)(t), np.poly1d(np.polyfit(x, x * a[0] + a[1], 1))(a[2]), p.order * t]
    return np.array(found)


def add_to_both(a, b):
    a += b[0]
    return a * b


def copies(a):
    first, second = copy.copy(a), copy.deepcopy({"a": a})["a"]
    first[0], second[1:] = a[1], 2.0 * first[:-1]
    made = asdict(Link(a[2] * second))
    made["length"] *= 2.0
    same = a.conj()  # real arrays return themselves
    same *= second
    return a, first, second, made["length"], [1.0, a[0], 2.0] @ np.outer(a, a), add_to_both(second, second)


def kinds_of(x):
    """What NumPy's users write to tell scalars from arrays."""
    yield from (isinstance(x, float), isinstance(x, (int, np.floating)), isinstance(x, numbers.Number), isinstance(x, np.ndarray))
    yield from (isinstance(x, Iterable), hasattr(x, "__len__"), hasattr(x, "__iter__"), hasattr(x, "shape"), hasattr(x, "other"))
    yield from (type(x) == np.ndarray, type(x) is np.ndarray, type(x) is np.float64, type(x) in (float, np.float64))  # noqa: E721 (theirs)
    yield from (isinstance(type(x), type), issubclass(type(x), float))


def classes_of_arrays(a):
    found = np.array([list(kinds_of(x)) for x in (a, a[0], a.sum(), np.zeros(2), np.array(1.0), 1.0 * a[0])], dtype=float)
    return a[0] * (found @ 2.0 ** np.arange(found.shape[1])) + np.finfo(type(a[0])).eps


def numbers_of_arrays(a):
    k, text = int(a[1] * 1.5), "%.1f %s" % (a[0], f"{a[1]:.1f}")  # noqa: UP031 (as they write)
    mesh, z = np.mgrid[0:1:3j], np.zeros(3, dtype=complex)
    mesh *= a
    z.real = a
    z.imag[1:] = a[k] * mesh[:2]
    z.imag *= 2.0
    return a[k] * len(text), mesh, z.real, z.imag, np.ogrid[0:2, 0:3][0] * a[0]


def least_squares(a):
    matrix = np.vstack([np.arange(4.0), np.ones(4), np.array([0.0, a[1], 0.0, 1.0])]).T
    (slope, offset, _), residuals, rank, singular = np.linalg.lstsq(matrix, np.append(a, a[0] ** 2), rcond=None)
    return slope, offset, residuals, singular * rank


def _positive(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


RNG = np.random.default_rng(0)
OBJECTS = (
    classes,
    functions_in_objects,
    lists_of_scalars,
    noise,
    copies,
    classes_of_arrays,
    numbers_of_arrays,
    least_squares,
    draws_with_parameters,
)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cumulative product": (cumulative_product, (RNG.uniform(0.5, 1.5, 4),)),
    "jacobi": (jacobi, (RNG.normal(size=(5, 4)),)),
    "gauss-seidel": (gauss_seidel, (RNG.normal(size=(4, 4)),)),
    "lu": (decompose, (_positive(3),)),
    "cholesky": (cholesky, (_positive(3),)),
    "n-body": (bodies, (RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2)))),
    "network": (network, (RNG.normal(size=(3, 4)), WEIGHTS)),
    "convolution": (convolve, (RNG.normal(size=6), RNG.normal(size=3))),
    "trapezoid": (trapezoid, (np.array([1.3, 0.7]),)),
    "kalman": (kalman, (RNG.normal(size=4),)),
    "shortest paths": (distances, (RNG.uniform(1.0, 2.0, (4, 4)),)),
    "histogram": (histogram, (RNG.uniform(0.5, 1.5, 5),)),
    "recursion": (recursion, (RNG.uniform(0.5, 1.5, 3),)),
    "integers": (integers, (RNG.normal(size=4),)),
    **{
        f.__name__: (f, (np.array([3.1, 1.2, 2.4]),))
        for f in (
            accumulate,
            exchange,
            scalars,
            mathematics,
            arrays_without_axes,
            same_arrays,
            pass_scalars,
            computed_arrays,
            methods,
            *OBJECTS,
        )
    },
}
#: Programs whose steps depend on values, which a program for all values cannot.
DEPENDING = {"trapezoid", "numbers_of_arrays", "ranges"}
each = pytest.mark.parametrize("name", PROGRAMS)


def flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the results as one vector."""

    def run(*args: Any) -> Any:
        out = function(*args)
        return np.concatenate([np.reshape(part, (-1,)) for part in (out if isinstance(out, tuple) else (out,))])

    return run


def case(name: str) -> tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]:
    """Return the program on Tensors, on NumPy's arrays, and its arguments."""
    function, points = PROGRAMS[name]
    return flat(xp.numpy_code(function)), flat(lambda *args: function(*map(np.copy, args))), points


def slopes(function: Callable[..., Any], points: tuple[np.ndarray, ...], argnum: int) -> np.ndarray:
    step, columns = 1e-6, []
    for k in range(points[argnum].size):
        ends = []
        for sign in (1, -1):
            moved = [p.copy() for p in points]
            moved[argnum].reshape(-1)[k] += sign * step
            ends.append(function(*moved))
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=-1)


@each
def test_values_are_numpys_and_no_argument_changes(name: str, xpgrad_device: str) -> None:
    function, plain, points = case(name)
    given = [xp.asarray(p, device=xpgrad_device) for p in points]
    for args in (given, [np.copy(p) for p in points]):
        np.testing.assert_allclose(values(function(*args)), plain(*points), rtol=1e-12, atol=1e-14)
        for arg, point in zip(args, points, strict=True):
            np.testing.assert_array_equal(values(arg) if isinstance(arg, xp.Tensor) else arg, point)


@each
@pytest.mark.parametrize("mode", [xp.no_grad, xp.inference_mode])
def test_values_are_numpys_where_nothing_is_recorded(name: str, mode: Any, xpgrad_device: str) -> None:
    function, plain, points = case(name)
    with mode():
        for wrap in (lambda p: xp.asarray(p, device=xpgrad_device), lambda p: xp.tensor(p, requires_grad=True)):
            out = function(*map(wrap, points))
            assert not out.requires_grad
            np.testing.assert_allclose(values(out), plain(*points), rtol=1e-12, atol=1e-14)


@each
def test_derivatives_are_differences(name: str) -> None:
    function, plain, points = case(name)
    xs = [xp.asarray(p) for p in points]
    for argnum in range(len(points)):
        expected = slopes(plain, points, argnum)
        for transform in (xp.func.jacrev, xp.func.jacfwd):
            found = values(transform(function, argnums=argnum)(*xs))
            np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6, atol=1e-7)
    leaves = [xp.tensor(p, requires_grad=True) for p in points]
    out = function(*leaves)
    np.testing.assert_allclose(values(out.detach()), plain(*points))
    xp.sum(out).backward()
    for argnum, x in enumerate(leaves):
        np.testing.assert_allclose(values(x.grad).reshape(-1), slopes(plain, points, argnum).sum(axis=0), rtol=1e-6, atol=1e-7)


@pytest.mark.slow(one_in=6)
@each
def test_compiled_programs_are_the_same(name: str) -> None:
    function, plain, points = case(name)
    if name in DEPENDING:
        pytest.skip("the places that it writes to depend on values")
    compiled = xp.compile(function)
    xs = [xp.asarray(p) for p in points]
    for factor in (1.0, 1.01):
        expected = plain(*[p * factor for p in points])
        np.testing.assert_allclose(values(compiled(*[x * factor for x in xs])), expected, rtol=1e-11, atol=1e-13)
    for argnum in range(len(points)):
        derivative = xp.func.jacrev(function, argnums=argnum)
        np.testing.assert_allclose(values(xp.compile(derivative)(*xs)), values(derivative(*xs)), rtol=1e-10, atol=1e-12)


def _step(x: Any) -> Any:
    first = x[0, 0]
    first += 10.0  # a number in NumPy, so that the array stays
    out = np.zeros((3, 2))
    out[...] = x.transpose(1, 0) * first
    return out


_compiled_step = xp.compile(_step)


def _steps_of(x: Any) -> Any:
    return _compiled_step(x) * _step(x)


def test_compiled_functions_inside_mean_what_numpy_means() -> None:
    point = np.arange(6.0).reshape(2, 3)
    x = xp.tensor(point, requires_grad=True)
    function = xp.numpy_code(_steps_of)
    for run in (function, xp.compile(function)):
        out = run(x)
        np.testing.assert_allclose(values(out), _step(point) ** 2)
        (slope,) = xp.autograd.grad(xp.sum(out), x)
        expected = differences(lambda p: float(np.sum(_step(p) ** 2)), point)
        np.testing.assert_allclose(values(slope), expected, rtol=1e-6, atol=1e-5)


def _in_checkpoint(x: Any) -> Any:
    return checkpoint(_step, x)


def _in_steps(x: Any) -> Any:
    return xp.func.scan(lambda c, row: (_step(c).T * row, None), x, x, checkpoint=True)[0]


@pytest.mark.parametrize("function", [_in_checkpoint, _in_steps])
def test_what_runs_again_later_means_what_numpy_means(function: Any) -> None:
    """In the backward pass, the code for NumPy has ended; other code for NumPy may run then."""
    point = np.linspace(0.2, 1.2, 6).reshape(2, 3)
    plain = _step if function is _in_checkpoint else lambda x: functools.reduce(lambda c, row: _step(c).T * row, x, x)
    expected = differences(lambda p: float(np.sum(plain(p) ** 2)), point)
    run = xp.numpy_code(function)

    leaf = xp.tensor(point, requires_grad=True)
    total = xp.sum(run(leaf) ** 2)
    found = [xp.func.grad(lambda x, f=f: xp.sum(f(x) ** 2))(xp.asarray(point)) for f in (run, xp.compile(run))]
    found.append(xp.numpy_code(lambda: xp.autograd.grad(total, leaf)[0])())
    for slope in found:
        np.testing.assert_allclose(values(slope), expected, rtol=1e-6, atol=1e-6)


@each
def test_batches_are_loops(name: str) -> None:
    function, plain, points = case(name)
    if name in DEPENDING:
        pytest.skip("the number of places that it writes to depends on values")
    factors = (1.0, 1.01, 0.99)
    found = values(xp.func.vmap(function)(*[xp.asarray(np.stack([p * f for f in factors])) for p in points]))
    np.testing.assert_allclose(found, np.stack([plain(*[p * f for p in points]) for f in factors]), rtol=1e-11, atol=1e-13)


class Model:
    """What has NumPy's arrays, and a method."""

    scale = 2.0

    def predict(self, x):
        out = np.zeros(2)
        out[0], out[1] = x[0] * self.scale, x[1]
        return out


def test_methods_names_and_what_is_no_function() -> None:
    x = xp.asarray([1.0, 2.0])
    found = xp.numpy_code(Model().predict)(x)
    assert values(xp.func.jacrev(xp.numpy_code(Model().predict))(x)).tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert values(found).tolist() == [2.0, 2.0]
    made = xp.numpy_code(cumulative_product)
    assert (made.__name__, made.__module__) == ("cumulative_product", __name__)
    assert isinstance(cumulative_product(np.ones(2)), np.ndarray)  # the function itself did not change
    for bad in (np.sin, Model, 3):
        with pytest.raises(TypeError, match="takes a function written in Python"):
            xp.numpy_code(bad)


def steps_of_numbers(v):
    found = [
        math.floor(v),
        math.ceil(v),
        math.trunc(v),
        round(v),
        math.isclose(v, 2.71, rel_tol=0.1),
        math.isfinite(v),
        math.isnan(v),
    ]
    return found, round(v, 1) + v


def test_numbers_are_rounded_and_refused_as_in_python() -> None:
    x, steps = xp.tensor([2.71, -1.0, 1000.0], requires_grad=True), xp.numpy_code(lambda x: steps_of_numbers(x[0]))
    found, rounded = steps(x)
    assert found == steps_of_numbers(2.71)[0]
    assert [type(v) for v in found] == [int] * 4 + [bool] * 3
    assert (float(rounded.detach()), xp.autograd.grad(rounded, x)[0].tolist()) == (2.7 + 2.71, [1.0, 0.0, 0.0])
    assert float(xp.func.jvp(lambda v: xp.numpy_code(steps_of_numbers)(v)[1], (x[0].detach(),), (xp.asarray(1.0),))[1]) == 1.0
    outside: tuple[Callable[[Any], Any], ...] = (
        lambda v: math.sqrt(v[1]), lambda v: math.log(v[1]), lambda v: math.acos(v[0]), lambda v: math.exp(v[2]), lambda v: math.sin(v),
    )  # fmt: skip
    for function in outside:
        for given in (x, x.detach()):
            with pytest.raises((ValueError, OverflowError)):
                xp.numpy_code(function)(given)
    with pytest.raises(TypeError, match="__round__"):
        xp.numpy_code(lambda v: round(v))(x)
    number = xp.numpy_code(lambda v: math.sin(v[0]))(x.detach())
    assert isinstance(number, float)
    for convert in (lambda v: float(v), lambda v: complex(v), lambda v: int(v), lambda v: float(v[:0])):
        for given in (x, x.detach()):
            with pytest.raises(TypeError, match="one element"):  # by which a program finds out that it has an array
                xp.numpy_code(convert)(given)


def classes_of_numbers(v):
    real, imaginary = 2.0, 1j
    assert type(real) is float
    assert type(imaginary) is complex
    assert type(v.sum()) is np.float64
    assert isinstance(float(v[0]), float)
    assert isinstance(2.0, (int, float))
    assert not isinstance(v, float)
    assert v.dtype == float
    assert v.dtype == np.float64
    assert issubclass(np.float64, float)
    assert np.issubdtype(np.dtype(float), np.float64)
    assert np.finfo(np.float32).bits == 32
    assert {float: 1}[type(float("1.5"))] == 1
    assert np.dtype([("a", float), ("b", complex)]).itemsize == 24
    return [
        np.float32(v),
        np.float64(v[:1]),
        v.astype(float),
        np.zeros(2, float),
        np.array(list(map(float, v))),
        np.complex64(v),
        complex(v[0], 2),
    ]


def test_classes_of_numbers_are_numpys() -> None:
    v = np.array([1.5, 2.5])
    for found, expected in zip(xp.numpy_code(classes_of_numbers)(xp.asarray(v)), classes_of_numbers(v), strict=True):
        np.testing.assert_array_equal(values(found), expected)
        assert values(found).dtype == np.asarray(expected).dtype
    for bad in (lambda v: float(v), lambda v: complex(v), lambda v: float(v[0] + 1j)):
        with pytest.raises((TypeError, ValueError)):
            xp.numpy_code(bad)(xp.asarray(v))
    assert float is _BUILTIN_FLOAT  # elsewhere


_BUILTIN_FLOAT = float
SCALE = 2.0


def scaled(x):
    global CALLS
    CALLS = 1
    out = np.zeros(2)
    out[:] = x * SCALE + CALLS
    return out


def missing(x):
    return x * NOWHERE  # noqa: F821


def test_global_names_are_those_of_the_module_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    x, f = xp.asarray([1.0, 2.0]), xp.numpy_code(scaled)
    assert f(x).tolist() == [3.0, 5.0]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert f(x).tolist() == [4.0, 7.0]
    with pytest.raises(NameError, match="NOWHERE"):
        xp.numpy_code(missing)(x)


def test_a_generator_runs_step_by_step() -> None:
    def partial_sums(x):
        out = np.zeros(1)
        for part in x:
            out += part
            yield out.copy()

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    found = list(xp.numpy_code(partial_sums)(x))
    assert [values(part.detach()).tolist() for part in found] == [[1.0], [3.0]]
    assert xp.autograd.grad(found[1], x)[0].tolist() == [1.0, 1.0]


def test_the_same_argument_twice_is_one_array() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    found = xp.numpy_code(add_to_both)(x, b=x)
    assert found.tolist() == add_to_both(*[np.array([1.0, 2.0])] * 2).tolist() == [4.0, 9.0]
    xp.sum(found).backward()
    assert (x.grad.tolist(), x.tolist()) == ([14.0, 6.0], [1.0, 2.0])


def test_generators_that_are_arguments_keep_their_state() -> None:
    x = xp.asarray([0.0, 0.0, 1.0])
    given, same = np.random.default_rng(3), np.random.default_rng(3)
    found = [xp.numpy_code(draw)(given, x).tolist() for _ in range(2)]
    assert found == [draw(same, np.array([0.0, 0.0, 1.0])).tolist() for _ in range(2)]
    assert given.normal() == same.normal()
    assert isinstance(given.normal(size=1), np.ndarray)
    given, same = np.random.RandomState(3), np.random.RandomState(3)
    found = [xp.numpy_code(lambda x: x + given.normal(size=3))(x).tolist() for _ in range(2)]  # stays NumPy's
    assert found == [(np.array([0.0, 0.0, 1.0]) + same.normal(size=3)).tolist() for _ in range(2)]


def test_parameters_of_draws_that_have_no_derivative_raise() -> None:
    for program in (
        lambda x: np.random.default_rng(0).beta(x[0], 2.0),
        lambda x: np.random.default_rng(0).choice(3, 2, p=x / x.sum()),
        lambda x: np.random.RandomState(0).poisson(x),
        lambda x: np.random.RandomState(0).multivariate_normal(x, np.diag(x)),
    ):
        with pytest.raises(TypeError, match=r"of `numpy.random` got a parameter that has a gradient"):
            xp.func.grad(xp.numpy_code(lambda x, program=program: np.sum(program(x))))(xp.asarray([1.0, 2.0, 3.0]))
        assert isinstance(xp.numpy_code(program)(xp.asarray([1.0, 2.0, 3.0])), (xp.Tensor, np.ndarray, float))
    for bad in (lambda x: np.random.RandomState(0).normal(x, -x), lambda x: np.random.RandomState(0).normal(x, 1.0, (1, 1))):
        with pytest.raises(ValueError, match=r"scale < 0|does not fit the size"):
            xp.numpy_code(bad)(xp.asarray([1.0, 2.0, 3.0]))


_SHARED = np.random.default_rng(7), np.random.RandomState(7)
_FIRST, _SECOND = _SHARED


def draw_from_globals(a):
    made = default_rng(1).normal(size=3)
    made[0] = a[0]
    drawn = _FIRST.normal(size=3)
    drawn[1] = _SECOND.normal(a[1], a[2])
    return made * drawn * _FIRST.normal(a, a) * _SECOND.standard_normal()


def test_generators_that_are_global_names_keep_their_state() -> None:
    a = np.array([1.0, 2.0, 3.0])
    run = xp.numpy_code(draw_from_globals)
    found = [values(run(xp.asarray(a))), draw_from_globals(a), values(xp.func.jvp(run, (a,), (a,))[0])]
    _FIRST.bit_generator.state = np.random.default_rng(7).bit_generator.state
    _SECOND.seed(7)
    np.testing.assert_array_equal(found, [draw_from_globals(a) for _ in range(3)])
    assert _SHARED == (_FIRST, _SECOND)


def empty_pieces(a):
    """As in NumPy, a function of an empty piece is not called."""
    return np.piecewise(a, [a > 0.0, a < 0.0], [np.sqrt, lambda v: 1.0 / (v[0] * 0.0)])


def test_functions_of_empty_pieces_are_not_called() -> None:
    with np.errstate(all="raise"):
        assert xp.func.grad(xp.numpy_code(lambda a: empty_pieces(a).sum()))(xp.asarray([1.0, 4.0])).tolist() == [0.5, 0.25]


def test_numbers_with_a_gradient_are_no_keys() -> None:
    def count(x):
        return len({*x, *x, *x.tolist()}) * x[0]

    x = xp.asarray([1.0, 2.0])
    assert xp.numpy_code(count)(x).item() == 2.0  # equal numbers are one key
    for transform in (xp.func.grad, xp.compile):
        with pytest.raises(TypeError, match="cannot be a key"):
            transform(xp.numpy_code(count))(x)
    assert len({x[0], x[0]}) == 2  # elsewhere, Tensors are different objects


def test_names_of_the_module_are_numpys_elsewhere() -> None:
    """In other threads during a call, and everywhere after it, also if the function raised."""
    inside, checked = threading.Event(), threading.Event()
    before = {name: globals()[name] for name in ("np", "numpy", "nothing", "norm", "piece", "nodes")}

    def wait(x):
        inside.set()
        checked.wait(10)
        raise ArithmeticError

    def run():
        with pytest.raises(ArithmeticError):
            xp.numpy_code(wait)(xp.asarray([1.0]))

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(10)
    made = [nothing(2), np.zeros(2), np.linspace(0, 1, 2), np.ndarray(2), np.r_[1.0, 2.0], np.random.default_rng(0).normal(size=2)]
    made += [piece(np.ones(2))[0], np.fromiter([1.0], float), np.vectorize(float)(np.ones(2)), nodes(2)]
    checked.set()
    thread.join()
    assert xp.numpy_code(lambda x: nodes(3) * x)(xp.asarray([2.0])).tolist() == [0.0, 1.0, 2.0]
    made.append(nodes(3))
    assert {type(x) for x in made} == {numpy.ndarray}
    assert before.items() <= globals().items()
    with pytest.raises(TypeError, match="signature"):
        xp.numpy_code(lambda x: np.vectorize(sum, signature="(n)->()")(x))(xp.asarray([1.0]))
    with pytest.raises(ValueError, match="without elements"):
        xp.numpy_code(lambda x: np.vectorize(float)(x[:0]))(xp.asarray([1.0]))


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A package of two modules, one of which calls the other."""
    sources = {
        "__init__": "",
        "rungs": "import numpy as np\n\ndef climb(x):\n    out = np.ones(len(x))\n    out[1:] = x[1:] * x[0]\n    return out\n",
        "walls": "import numpy as np\nfrom . import rungs\n\ndef lean(x):\n    return np.cumsum(rungs.climb(x))\n",
    }
    sources["walls"] += "\ndef import_late(x):\n    import numpy\n    out = numpy.ones(2)\n    out[:] = x\n    return out\n"
    (tmp_path / "ladders").mkdir()
    (tmp_path / "ladders_too.py").write_text(sources["rungs"])
    for name, source in sources.items():
        (tmp_path / "ladders" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("ladders", "ladders.rungs", "ladders.walls", "ladders_too")
    for name in names:
        importlib.import_module(name)
    yield sys.modules["ladders"]
    for name in names:
        del sys.modules[name]


def test_code_of_other_modules_runs_on_tensors_if_they_are_named(package: Any) -> None:
    point, names = np.array([3.0, 2.0]), {key: dict(vars(module)) for key, module in vars(package).items() if key in ("rungs", "walls")}
    x = xp.tensor(point, requires_grad=True)
    for func, modules in (
        (lambda v: package.walls.lean(v), [package]),
        (lambda v: package.walls.lean(v), [package.walls, package.rungs]),
        (package.walls.lean, [package.rungs]),
        (package.walls.lean, iter([package, package.walls])),
    ):
        function = xp.numpy_code(func, modules=modules)
        np.testing.assert_allclose(values(function(x).detach()), func(point))
        for run in (function, xp.compile(function)):
            np.testing.assert_allclose(values(xp.func.jacrev(run)(x.detach())), [[0.0, 0.0], [2.0, 3.0]])
    assert {key: dict(vars(getattr(package, key))) for key in names} == names
    with pytest.raises(RuntimeError, match=r"name the module ladders\.rungs in the argument `modules`"):
        xp.numpy_code(package.walls.lean)(x)
    with pytest.raises(RuntimeError, match="name the module ladders_too in"):
        xp.numpy_code(lambda v: sys.modules["ladders_too"].climb(v), modules=[package])(x)
    with pytest.raises(RuntimeError, match="Can't call numpy") as refused:
        xp.numpy_code(package.walls.import_late, modules=[package])(x)
    assert "name the module" not in str(refused.value)
    for other in (np, np.linalg, importlib.import_module("scipy.linalg"), xp.linalg, "ladders", type(np)("ladders")):
        with pytest.raises(TypeError, match="`modules` are imported modules of programs"):
            xp.numpy_code(package.walls.lean, modules=[other])
    with pytest.raises(TypeError, match="`modules` must be a list of modules"):
        xp.numpy_code(package.walls.lean, modules=package)


class Unready:
    """A proxy whose object cannot be made."""

    @property
    def __class__(self) -> Any:
        raise LookupError

    __call__ = __getattr__ = __class__


def test_names_are_restored_if_a_stand_in_cannot_be_made(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [dict(vars(module)) for module in (package.walls, package.rungs)]
    stand_ins = iter([np])  # enough for one of the modules
    with monkeypatch.context() as patch:
        patch.setattr("xpgrad._numpy.code._replace", lambda x: next(stand_ins) if x is np else x)
        with pytest.raises(StopIteration):
            xp.numpy_code(package.walls.lean, modules=[package])(xp.asarray([3.0, 2.0]))
    assert [dict(vars(module)) for module in (package.walls, package.rungs)] == before
    package.rungs.unready = Unready()
    monkeypatch.setitem(sys.modules, "ladders.lazy", object())  # some packages replace modules by objects
    function = xp.numpy_code(package.walls.lean, modules=[package])
    assert function(xp.asarray([3.0, 2.0])).tolist() == [1.0, 7.0]


def test_the_dtype_decides_what_is_a_tensor(xpgrad_device: str) -> None:
    def kinds(x: Any) -> tuple[Any, ...]:
        made = (np.zeros(2), np.zeros(2, dtype=int), np.arange(3), np.arange(3.0), np.array([1, 2]), np.array([x[0], 2.0]))
        more = (np.empty((0,), bool), np.full(2, x[0]), np.ones_like(x), np.ones_like(np.ones(2, dtype=int)), np.array(x))
        return (*made, *more, np.zeros(2, dtype=complex), np.asarray(x), np.array([[x[0]], [1.0]], ndmin=3), np.copy([x[0]]))

    x = xp.asarray([1.0, 2.0], device=xpgrad_device)
    found = xp.numpy_code(kinds)(x)
    tensors = [True, False, False, True, False, True, False, True, True, False, True, True, True, True, True]
    assert [isinstance(made, xp.Tensor) for made in found] == tensors
    assert {made.device for made, is_tensor in zip(found, tensors, strict=True) if is_tensor} == {x.device}
    assert values(found[5]).tolist() == [1.0, 2.0]
    assert (found[13].shape, values(found[14]).tolist()) == ((1, 2, 1), [1.0])


def test_an_array_over_a_buffer_shares_it() -> None:
    memory = np.zeros(2)

    def fill(x: Any) -> Any:
        for array in (np.ndarray((2,), float, memory), np.ndarray(shape=(2,), buffer=memory)):
            array += 1.0
        return x * np.ndarray((2,), float).shape[0]

    assert xp.numpy_code(fill)(xp.asarray([1.0])).tolist() == [2.0]
    assert memory.tolist() == [2.0, 2.0]


_TABLE = np.ones(3)


def into_the_module(x):
    out = _TABLE.copy()
    out[0] = x[0]
    return out


def test_a_gradient_is_not_written_into_numpys_array() -> None:
    x = xp.tensor([2.0, 3.0], requires_grad=True)
    with pytest.raises(ValueError, match="setting an array element") as raised:  # NumPy's error; ours is its cause
        xp.numpy_code(into_the_module)(x)
    assert "written into an array of NumPy's, which would lose its gradient" in str(raised.value.__cause__)
    assert xp.numpy_code(into_the_module)(x.detach()).tolist() == [2.0, 1.0, 1.0]

    def computed_from_integers(x, first):
        weights = np.arange(first, 2) / 2
        weights *= x
        return weights

    assert xp.numpy_code(computed_from_integers)(x, 0.0).tolist() == [0.0, 1.5]
    with pytest.raises(TypeError, match=r"what is computed from integers, such as `np.arange\(3\) / 2`"):
        xp.numpy_code(computed_from_integers)(x, 0)


#: Arrays that share the memory of `y` in NumPy, or do not.
PARTS = (
    "y.T", "y[:, :2]", "y[:, ::2]", "y[1:]", "y[::-1]", "y[:, ::-1]", "y[::-1, ::-1]", "y[:, 1:].T", "y[:, 1]", "y[:, :3][:, 1:]",
    "y.reshape(2, 2, 4)[:, 1]", "y[:, None, :2]", "y.reshape(2, 2, 4).transpose(0, 2, 1)", "np.flip(y)", "np.flip(y, -1)", "np.flipud(y)",
    "np.fliplr(y)", *(f"np.rot90(y, {k})" for k in range(4)), "np.einsum('ij->ji', y)", "np.einsum('ii->i', y)",
    "np.einsum('iji->ij', y.reshape(2, 4, 2))", "np.diff(y, 0)", "np.asarray(y.T, order='C')", "np.asarray(y, order='F')",
    "np.ascontiguousarray(y.T)", "np.ascontiguousarray(y[1:])", "np.asfortranarray(y)", "np.asfortranarray(y.T)", "np.array(y, ndmin=3)",
    "np.array(y, copy=None, ndmin=3)", "y.T.copy()", "np.copy(y.T)", "np.array(y.T)", "y.T * 2.0", "y[:, :2] * y[:, 1:3]",
    "np.copy(y, order='F')", "np.full_like(y, y[0, 0], order='F')", "np.tile(y[0], (4, 1))", "np.einsum('ij,j->ij', y, y[0])",
    "np.einsum('i,j->ji', y[0], y[1])", "np.repeat(y[:, :2], 2, axis=1)", "np.take(y, [0, 2, 1, 3], axis=1)", "np.full((4, 4), y[0])",
    "np.full_like(y, y[0])", "np.pad(y[:2, :2], 1, mode='wrap')", "np.meshgrid(y[0], y[1])[0]",
    "np.select([y.T > 0.5], [y.T], 0.0)", "np.array([y.T, y.T])[1]",
)  # fmt: skip
#: The same elements in one dimension.
VECTORS = ("v.reshape(-1)", "v.ravel()", "v.ravel(order='F')", "v.flatten()", "v.T.reshape(-1)")
WRITES = ("w[0] = 99.0", "v[..., 0] *= 2.0", "y[0] += 50.0; y[1:, 0] -= 7.0")


def sharing(part: str, vector: str, write: str) -> Any:
    """Return a program that writes to an array, a part of it, or the part's elements as a vector, and returns all three."""
    names = {"np": np}
    exec(f"def program(y):\n    v = {part}\n    w = {vector}\n    {write}\n    return y, v, w", names)  # noqa: S102 (the tables' texts)
    return flat(names["program"]), flat(xp.numpy_code(names["program"]))  # type: ignore[arg-type]


@pytest.mark.slow(one_in=10)
@pytest.mark.parametrize("part", PARTS)
def test_what_shares_memory_in_numpy_shares_it(part: str) -> None:
    y = np.random.default_rng(3).normal(size=(4, 4))
    for vector in VECTORS:
        for write in WRITES:
            plain, function = sharing(part, vector, write)
            expected = [plain(np.copy(a)) for a in (y, y * 2.0)]
            np.testing.assert_array_equal(values(function(xp.asarray(y))), expected[0], err_msg=f"{vector}; {write}")
            for axis in (0, 1, 2):
                batch = xp.asarray(np.stack([y, y * 2.0], axis=axis))
                np.testing.assert_array_equal(values(xp.func.vmap(function, in_dims=axis)(batch)), expected, err_msg=f"{vector}; {write}")
        np.testing.assert_array_equal(values(xp.compile(function)(xp.asarray(y))), expected[0], err_msg=f"{vector}; {write}")


def test_a_write_keeps_the_order_of_elements_in_memory() -> None:
    """Where elements lie decides what a later `reshape` shares."""

    def program(y: Any) -> Any:
        v = (y.T * 2.0)[...]  # the elements lie in the order of columns
        w = v[1:]
        w[0] = 99.0
        copied, shared = v.reshape(-1), v.T.reshape(-1)
        copied[:] = 1.0
        shared[2] = 77.0
        return v, w

    y = np.random.default_rng(3).normal(size=(4, 3))
    np.testing.assert_array_equal(values(flat(xp.numpy_code(program))(xp.asarray(y))), flat(program)(y))
    leaf = xp.tensor(y, requires_grad=True)
    np.testing.assert_array_equal(values(flat(xp.numpy_code(program))(leaf).detach()), flat(program)(y))


@pytest.mark.parametrize(
    "view",
    ["np.atleast_1d(s)", "s.reshape(1)", "np.ravel(s)", "s[None]", "np.expand_dims(s, 0)", "s[...]", "s.T", "np.asarray(s).reshape(1)"],
)
def test_an_array_of_a_scalar_does_not_share_its_memory(view: str, xpgrad_device: str) -> None:
    plain, function = sharing("y.sum()", "v + 0.0", f"s = v; v = {view}; v *= y[0, 0]; v += s * s")
    y = np.random.default_rng(3).normal(size=(2, 2))
    x = xp.asarray(y, device=xpgrad_device)
    np.testing.assert_allclose(values(function(x)), plain(y), rtol=1e-12)
    np.testing.assert_allclose(values(xp.compile(function)(x)), plain(y), rtol=1e-12)
    for transform in (xp.func.jacrev, xp.func.jacfwd):
        np.testing.assert_allclose(values(transform(function)(x)).reshape(-1, 4), slopes(plain, (y,), 0), rtol=1e-6, atol=1e-7)


def test_the_order_of_elements_in_memory_is_no_order() -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for order in ("A", "K"):
        assert np.ravel(x, order).tolist() == [1.0, 2.0, 3.0, 4.0]
        for function in (np.ravel, lambda a, order: np.reshape(a, -1, order=order)):
            with pytest.raises(TypeError, match="order of elements"):
                function(x.T, order)
