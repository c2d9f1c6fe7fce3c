"""`python -m benchmarks.sparse`: compare sparse Jacobians and Hessians with their products, in turns, in one process.

The matrix is first compared with products in random directions. Its time is given in multiples of one product: a `jvp` for a Jacobian, a
Hessian-vector product for a Hessian. Peaks are those of one matrix, from a prepared derivative, by `tracemalloc`.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize._numdiff import group_columns

import xpgrad as xp

N = 10_000
ROUNDS = 15
#: The target: the ratio of a matrix's time to its products' that it may not exceed.
TARGET = 1.5

_RNG = np.random.default_rng(0)


class Problem(NamedTuple):
    """A function, the point of the derivative, whether that is a Hessian, and the smallest known number of products."""

    f: Callable[[Any], Any]
    x: Any
    hessian: bool
    known: str


def tridiagonal(x: Any) -> Any:
    """Return Broyden's tridiagonal equations."""
    inner = (3.0 - 2.0 * x) * x + 1.0
    return xp.concat([inner[:1] - 2.0 * x[1:2], inner[1:-1] - x[:-2] - 2.0 * x[2:], inner[-1:] - x[-2:-1]])


def brusselator(u: Any) -> Any:
    """Return the Brusselator with two species on a periodic square."""
    a, b = u[0], u[1]

    def around(w: Any) -> Any:
        return xp.roll(w, 1, axis=0) + xp.roll(w, -1, axis=0) + xp.roll(w, 1, axis=1) + xp.roll(w, -1, axis=1) - 4.0 * w

    r = a * a * b
    return xp.stack([10.0 * around(a) + 1.0 + r - 4.4 * a, 10.0 * around(b) + 3.4 * a - r])


def arrowhead(x: Any) -> Any:
    """Return a system with one equation in all unknowns, and one unknown in all equations."""
    return xp.concat([xp.reshape(xp.sum(x**2), (1,)), x[1:] ** 2 * x[:1]])


def banded(p: Any) -> Any:
    """Return the residuals of a smooth curve through data: values and second differences."""
    return xp.concat([xp.exp(p) - 1.5, 10.0 * (p[2:] - 2.0 * p[1:-1] + p[:-2]) ** 2])


_DRAWN = scipy.sparse.random_array((N, N), density=1e-3, rng=_RNG, format="csr")
_ROWS = np.repeat(np.arange(N), np.diff(_DRAWN.indptr))


def random_system(x: Any) -> Any:
    """Return equations with about ten random unknowns each."""
    y = xp.zeros(N)
    y.index_add_(0, _ROWS, xp.sin(x[_DRAWN.indices]) * _DRAWN.data)
    return y


def chain(x: Any) -> Any:
    """Return the chained Rosenbrock function."""
    return xp.sum((1.0 - x[:-1]) ** 2) + 100.0 * xp.sum((x[1:] - x[:-1] ** 2) ** 2)


def hub(x: Any) -> Any:
    """Return a function in which one unknown interacts with all others: an arrowhead."""
    return xp.sum(x[1:] ** 2 * xp.exp(x[0]))


_FULLEST = min(int(np.diff(_DRAWN.indptr).max()), int(np.bincount(_DRAWN.indices).max()))

PROBLEMS = {
    "tridiagonal": Problem(tridiagonal, _RNG.random(N), False, "3"),
    "Brusselator, 2 x 71 x 71": Problem(brusselator, _RNG.random((2, 71, 71)), False, "at least 6"),
    "arrowhead": Problem(arrowhead, _RNG.random(N), False, "3"),
    "banded least squares": Problem(banded, _RNG.random(N), False, "3"),
    "random, density 1e-3": Problem(random_system, _RNG.random(N), False, f"at least {_FULLEST}"),
    "Hessian of a chain": Problem(chain, _RNG.random(N), True, "3"),
    "Hessian of an arrowhead": Problem(hub, _RNG.random(N), True, "2"),
}


def measure_problem(problem: Problem) -> dict[str, Any]:
    """Measure a problem; times are medians of rounds in which the matrix and one product take turns."""
    x = xp.asarray(problem.x)
    transform = xp.func.sparse_hessian if problem.hessian else xp.func.sparse_jacobian
    start = time.perf_counter()
    prepared = transform(problem.f).prepare(x)
    preparation = time.perf_counter() - start
    direction = xp.asarray(_RNG.random(problem.x.shape))
    if problem.hessian:
        one = lambda: xp.func.hessian_vector_product(problem.f)(x, direction)  # noqa: E731
    else:
        one = lambda: xp.func.jvp(problem.f, (x,), (direction,))[1]  # noqa: E731
    matrix = prepared(x)
    assert np.allclose(matrix @ direction.numpy().reshape(-1), one().numpy().reshape(-1), rtol=1e-9)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for call, taken in ((lambda: prepared(x), times[0]), (one, times[1])):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    tracemalloc.start()
    prepared(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole, product = (statistics.median(t) for t in times)
    # NB: SciPy's grouping needs one group per column if a row is dense, so it is not used for arrowheads.
    fullest = int(np.diff(prepared.pattern.indptr).max())
    groups = int(group_columns(prepared.pattern).max()) + 1 if fullest < 100 else None
    return {
        "prepared": prepared, "preparation": preparation, "matrix": whole, "product": product, "peak": peak,
        "ratio": whole / (product * prepared.colours), "groups": groups,
    }  # fmt: skip


def main() -> int:
    """Print the table; return 1 if a matrix exceeds the time allowed for its products."""
    print("| problem | entries | products | fewest known | `group_columns` | prepare | one product | matrix | matrix / products | peak |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    missed = 0
    for name, problem in PROBLEMS.items():
        found = measure_problem(problem)
        prepared = found["prepared"]
        missed += found["ratio"] > TARGET
        m, n = prepared.shape
        print(
            f"| {name} ({m} x {n}) | {prepared.nnz} | {prepared.colours} | {problem.known} | {found['groups'] or ''} "
            f"| {found['preparation'] * 1e3:.0f} ms | {found['product'] * 1e3:.2f} ms | {found['matrix'] * 1e3:.2f} ms "
            f"| {found['ratio']:.2f} | {found['peak'] / 2**20:.1f} MB |"
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
