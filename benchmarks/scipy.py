"""Compare functions of `xpgrad.scipy` with handwritten ones: ``python -m benchmarks.scipy`` times values and gradients in turns.

The handwritten version uses NumPy and SciPy on arrays with an explicit derivative; the results are compared first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import scipy.special

import xpgrad as xp
from xpgrad.scipy import sparse, special, stats

__all__ = ["PROGRAMS", "measure_programs"]

#: The target: the ratio of a program's time to the handwritten version's that it may not exceed.
TARGET = 1.3
SIZE = 100_000

Program = Callable[[Any], Any]


def _logsumexp(x: Any) -> Any:
    top = np.max(x)
    e = np.exp(x - top)
    total = np.sum(e)
    return np.log(total) + top, e / total


#: The gradient of `softmax` is taken of the product with these weights.
_WEIGHTS = np.random.default_rng(1).normal(size=SIZE)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x))
    p = e / np.sum(e)
    return p, p * (_WEIGHTS - np.sum(_WEIGHTS * p))


def _gammaln(x: Any) -> Any:
    return np.sum(scipy.special.gammaln(x)), scipy.special.digamma(x)


def _erf(x: Any) -> Any:
    return np.sum(scipy.special.erf(x)), 2 / np.sqrt(np.pi) * np.exp(-x * x)


def _norm(x: Any) -> Any:
    z = (x - 0.3) / 1.4
    square = z * z
    value = np.sum(square) * -0.5 - x.size * (np.log(1.4) + np.log(2 * np.pi) / 2)
    return value, z * (-1 / 1.4), np.sum(z) / 1.4, (np.sum(square) - x.size) / 1.4


def _vectors() -> tuple[Any, Any]:
    """Return a mean and a covariance for vectors of 5 elements."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(5, 5))
    return rng.normal(size=5), a @ a.T + np.eye(5)


_MEAN, _COV = _vectors()


def _multivariate_normal(x: Any) -> Any:
    apart = x.reshape(-1, 5) - _MEAN
    factor = np.linalg.cholesky(_COV)
    z = scipy.linalg.solve_triangular(factor, apart.T, lower=True)
    value = np.sum(z * z) * -0.5 - len(apart) * (np.sum(np.log(np.diag(factor))) + 5 * np.log(2 * np.pi) / 2)
    back = scipy.linalg.solve_triangular(factor, z, lower=True, trans=1)
    by_cov = 0.5 * (back @ back.T - len(apart) * scipy.linalg.cho_solve((factor, True), np.eye(5)))
    return value, -back.T.reshape(-1), back.sum(axis=1), by_cov


def _multivariate_normal_by_xpgrad(x: Any) -> Any:
    leaves = [xp.asarray(v).requires_grad_() for v in (x, _MEAN, _COV)]
    out = xp.sum(stats.multivariate_normal.logpdf(leaves[0].reshape((-1, 5)), *leaves[1:]))
    out.backward()
    return out.detach().array, *(leaf.grad.array for leaf in leaves)


def _norm_by_xpgrad(x: Any) -> Any:
    leaf, loc, scale = xp.asarray(x).requires_grad_(), xp.tensor(0.3, requires_grad=True), xp.tensor(1.4, requires_grad=True)
    out = xp.sum(stats.norm.logpdf(leaf, loc, scale))
    out.backward()
    return out.detach().array, leaf.grad.array, loc.grad.array, scale.grad.array


def _gradient(function: Callable[[Any], Any], weights: Any = None) -> Program:
    """Return the value and the gradient by xpgrad, as arrays."""
    g = None if weights is None else xp.asarray(weights)

    def program(x: Any) -> Any:
        leaf = xp.asarray(x).requires_grad_()
        out = function(leaf)
        out.backward(g)
        return out.detach().array, leaf.grad.array

    return program


#: A stencil on a grid of which a row has 316 points, and the matrix of an implicit step along a line.
_STENCIL = scipy.sparse.diags_array([1.0, 1.0, -4.0, 1.0, 1.0], offsets=[-316, -1, 0, 1, 316], shape=(SIZE, SIZE)).tocsr()
_STEP = scipy.sparse.diags_array([-0.25, 1.5, -0.25], offsets=[-1, 0, 1], shape=(SIZE, SIZE)).tocsc()
_FACTORS = scipy.sparse.linalg.splu(_STEP)
_SOLVE = sparse.linalg.factorized(_STEP)
_CONVERTED = sparse.csr_array(_STENCIL)
STEPS = 10


def _stencil(x: Any) -> Any:
    y = _STENCIL @ x
    return np.sum(y * y), _STENCIL.T @ (2.0 * y)


def _stencil_by_xpgrad(x: Any, matrix: Any = _STENCIL) -> Any:
    y = matrix @ x
    return xp.sum(y * y)


def _implicit_steps(x: Any) -> Any:
    for _ in range(STEPS):
        x = _FACTORS.solve(x)
    g = 2.0 * x
    for _ in range(STEPS):
        g = _FACTORS.solve(g, "T")
    return np.sum(x * x), g


def _implicit_steps_by_xpgrad(x: Any) -> Any:
    for _ in range(STEPS):
        x = _SOLVE(x)
    return xp.sum(x * x)


_PLACES = _STEP.tocoo().coords
_ON_DIAGONAL = np.flatnonzero(_PLACES[0] == _PLACES[1])


def _system(x: Any) -> Any:
    """Solve with `x` added to the diagonal of the matrix."""
    entries = _STEP.data.copy()
    entries[_ON_DIAGONAL] += x
    factors = scipy.sparse.linalg.splu(scipy.sparse.csc_array((entries, _STEP.indices, _STEP.indptr)))
    u = factors.solve(_MEAN[:1].repeat(SIZE))
    return np.sum(u * u), -factors.solve(2.0 * u, "T") * u


def _system_by_xpgrad(x: Any) -> Any:
    a = sparse.csc_array((_STEP.data, _STEP.indices, _STEP.indptr)) + sparse.diags_array(x, offsets=0)
    u = sparse.linalg.spsolve(a, _MEAN[:1].repeat(SIZE))
    return xp.sum(u * u)


#: By name: the handwritten version, and xpgrad's.
PROGRAMS: dict[str, tuple[Program, Program]] = {
    "logsumexp": (_logsumexp, _gradient(special.logsumexp)),
    "softmax": (_softmax, _gradient(special.softmax, _WEIGHTS)),
    "gammaln": (_gammaln, _gradient(lambda x: xp.sum(special.gammaln(x)))),
    "norm.logpdf, by x, loc and scale": (_norm, _norm_by_xpgrad),
    "multivariate_normal.logpdf, by all": (_multivariate_normal, _multivariate_normal_by_xpgrad),
    "erf": (_erf, _gradient(lambda x: xp.sum(special.erf(x)))),
    "product with a sparse matrix of SciPy's": (_stencil, _gradient(_stencil_by_xpgrad)),
    "the same, converted once": (_stencil, _gradient(lambda x: _stencil_by_xpgrad(x, _CONVERTED))),
    f"{STEPS} steps with a factorised matrix": (_implicit_steps, _gradient(_implicit_steps_by_xpgrad)),
    "spsolve, by the diagonal": (_system, _gradient(_system_by_xpgrad)),
}


def measure_programs(seconds: float = 2.0, names: Any = None) -> dict[str, tuple[float, float]]:
    """Return the times of both in seconds, by program: the medians of runs in turns."""
    x = np.random.default_rng(0).uniform(0.1, 5.0, SIZE)
    found = {}
    for name in names or PROGRAMS:
        contestants = PROGRAMS[name]
        for a, b in zip(*(program(x) for program in contestants)):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.max(np.abs(a)))
        times: tuple[list[float], list[float]] = ([], [])
        end = time.perf_counter() + seconds
        while len(times[0]) < 5 or time.perf_counter() < end:
            for program, taken in zip(contestants, times):
                start = time.perf_counter()
                program(x)
                taken.append(time.perf_counter() - start)
        found[name] = (statistics.median(times[0]), statistics.median(times[1]))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print a table; return 1 if a program missed the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each program")
    options = parser.parse_args(arguments)
    found = measure_programs(options.seconds)
    print(f"| value and gradient, {SIZE:,} numbers | by hand | xpgrad.scipy | ratio |\n|---|---|---|---|")
    for name, (theirs, ours) in found.items():
        print(f"| {name} | {theirs * 1e3:.2f} ms | {ours * 1e3:.2f} ms | {ours / theirs:.2f} |")
    return int(any(ours > TARGET * theirs for theirs, ours in found.values()))


if __name__ == "__main__":
    sys.exit(main())
