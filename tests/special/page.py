"""Generate docs/scipy.md: the text below, and a table of measured errors.

``PYTHONPATH=tests python -m special.page`` writes it, in some minutes.
"""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import scipy

from support.special_functions import CASES, Case, Range, at_points, error, points

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scipy.md"
#: Number of points in the usual range; fewer for functions that mpmath computes slowly.
COUNT = 200
SLOW = {
    "stdtrit": 20,
    "owens_t": 20,
    "betaincinv": 10,
    "betainccinv": 10,
    "gammaincinv": 20,
    "gammainccinv": 20,
    "chdtri": 20,
    "fdtri": 10,
    "pdtri": 20,
    "nbdtri": 10,
    "bdtri": 10,
    "hyp1f1": 40,
    "hyp2f1": 40,
    "voigt_profile": 40,
    "lpmv": 20,
    "k0e": 40,
    "k1e": 40,
    "kn": 40,
    "expn": 40,
    "y1": 40,
    "yn": 40,
    "gammaincc": 60,
    "zeta": 60,
}

HEAD = """# SciPy's functions

`xpgrad.scipy.special` has SciPy's special functions for Tensors on every backend. They support gradients of every order, forward mode,
`vmap` and `compile`. The names, arguments and values are SciPy's. [Matrix functions](matrix-functions.md) and
[sparse matrices](sparse-matrices.md) have pages of their own.

```python
import xpgrad as xp
from xpgrad.scipy import special

x = xp.tensor([0.5, 1.5, 3.0], requires_grad=True)
xp.sum(special.gammaln(x)).backward()
print([round(v, 4) for v in x.grad.tolist()])  # [-1.9635, 0.0365, 0.9228]

a = xp.tensor(2.0, requires_grad=True)  # the shape of a gamma distribution
print(round(xp.autograd.grad(special.gammainc(a, 1.5), a)[0].item(), 6))  # -0.313489
```

## Implementations

* On NumPy, SciPy computes. PyTorch, JAX and CuPy use their own functions (`torch.special`, `jax.scipy.special`, `cupyx.scipy.special`) if
  these are as accurate as SciPy's. A function that a library lacks is composed of its other functions if that is accurate. Otherwise SciPy
  computes it if the array is in CPU memory (also for dask, by chunks, and inside a compiled JAX function); if not, `CapabilityError` is
  raised.
* SciPy is optional: `pip install 'xpgrad[scipy]'`. `expit`, `logit`, `log_expit`, `xlogy`, `xlog1py`, `entr`, `rel_entr`, `kl_div`, `sinc`,
  `logsumexp`, `softmax` and `log_softmax` work without it; the errors of the others say what to install.
* A backend provides its library's own functions in `Backend.special`, and defines in `Backend.through_host` how SciPy is called on its
  arrays.

## The rules

* Integers are converted to the default floating dtype. The dtypes of several arguments promote as in every function of xpgrad.
* Outside the domain of a function, the value is SciPy's nan or infinity, and the derivative is nan or infinite.
* `gammainc`, `gammaincc`, `betainc`, `betaincc` and the inverses are also differentiable in their shape parameters, by quadrature. A second
  derivative in which both differentiations are with respect to shape parameters raises an error. The order of a Bessel function or of
  `polygamma`, the `x` of `zeta`, and the parameters of `hyp1f1` and `hyp2f1` have no derivative and raise `NotImplementedError`. A missing
  formula never gives 0.
* Complex arguments are accepted if SciPy's function is holomorphic: the error functions, `wofz`, `gamma`, `loggamma`, `digamma`,
  `polygamma`, `rgamma`, `xlogy`, `xlog1py`, `sinc`, `exp1`, `expi`, `lambertw`, `logsumexp`, the Bessel functions of any order, and
  `hyp2f1`.

## SciPy's own functions

`scipy.special.erf(x)` of a Tensor is a Tensor: SciPy's universal functions call the protocol of their arguments (NEP 13), and xpgrad
computes those that it has. Other SciPy functions, such as `scipy.special.logsumexp` or `scipy.stats.entropy`, use the argument's namespace
if the environment variable `SCIPY_ARRAY_API=1` is set before SciPy is imported. They then compute with xpgrad's functions and can be
differentiated. For special functions SciPy looks for the attribute `special` of the namespace, as for an extension of the standard:
`xpgrad.special` is `xpgrad.scipy.special`, loaded at first use. In this mode SciPy itself raises for a Tensor combined with a NumPy array.
Some of its functions (`comb`, the spherical Bessel functions) always convert to NumPy arrays, which raises for a Tensor that requires grad.

## Distributions

`xpgrad.scipy.stats` has `norm`, `expon`, `laplace`, `cauchy`, `logistic`, `lognorm`, `uniform`, `gamma`, `beta`, `chi2`, `t`,
`weibull_min`, `truncnorm` and `vonmises`, with `logpdf`, `pdf`, `cdf`, `logcdf`, `sf`, `logsf`, `ppf` and `isf` (`vonmises` without the
last two). It has `poisson`, `binom` and `bernoulli`, with `logpmf`, `pmf`, `cdf`, `logcdf`, `sf` and `ppf`. For vectors it has
`multivariate_normal` and `dirichlet`, with `logpdf`, `pdf` and `entropy`. All are differentiable in their arguments and parameters, which
may be passed in SciPy's order or by name.

```python
from xpgrad.scipy import stats

data = xp.asarray([1.2, 0.7, 2.4])
shape = xp.tensor(1.5, requires_grad=True)
xp.sum(stats.gamma.logpdf(data, shape, scale=0.8)).backward()
print(round(shape.grad.item(), 6))  # 1.261076
```

Outside the support, a density and its derivative are 0. At an end of the support, derivatives of `pdf` are those of the inside;
those of `cdf` and `sf` of `truncnorm` are nan where the value is 0. At probabilities of 0 and 1 the derivative of a quantile by the
probability is taken as 0 if the distribution has shape parameters or the quantile is infinite. For invalid parameters, such as a negative
scale, values and derivatives are nan.
Quantiles of discrete distributions are step functions, computed by SciPy and not differentiated. As in SciPy, vectors are along the last
axis for `multivariate_normal` and along the first for `dirichlet`. Axes of length 1 are kept, whereas SciPy drops them; a vector that is
not a vector of probabilities gives nan, whereas SciPy raises ValueError.

## Speed

The figures are the time for the value and gradient of 100,000 numbers, as a multiple of the same computation handwritten in NumPy and SciPy
with an explicit derivative. Both run in turns in one process (`python -m benchmarks.scipy`; the target is 1.3).

* `logsumexp` takes 1.22 to 1.24, `softmax` 1.14 to 1.17, `gammaln` 1.03 and `erf` 1.08.
* `stats.multivariate_normal.logpdf` of 20,000 vectors with 5 elements, with the gradient of all its arguments, takes 1.14 to 1.30.
* The sum of `stats.norm.logpdf`, differentiated by the data, the location and the scale, takes 0.94 to 0.98; the first access to new memory
  dominates both times. If the allocator reuses memory, as after a program with larger arrays, it takes 1.22 to 1.32 (median of six runs:
  1.26), because it makes more passes over arrays of this size than handwritten sums do.

## Accuracy

"""

FIGURES = """The errors are measured against mpmath {mpmath} with 40 digits, on NumPy {numpy} with SciPy {scipy}, in double precision. The
table shows the worst of 200 random points (10 to 60 if mpmath is slow) in the usual range, and the worst near the edges (tails, poles, 0,
huge numbers). An error is relative to the value plus the change caused by rounding the arguments, `|f| + |x f'|`, which no implementation
can avoid near a zero of the function. The tests require 1e-12 in the usual range and 1e-9 near the edges. Values are computed by SciPy,
derivatives by xpgrad.

| function | usual range | value | first derivatives | value, edges | first derivatives, edges |
|---|---|---|---|---|---|
"""


def _range(r: Range) -> str:
    return f"{r.low:g}..{r.high:g}" + {"even": "", "logs": " (logarithmic)", "integers": " (integers)"}[r.how]


def _number(x: float) -> str:
    return "0" if x == 0 else f"{x:.1e}"


def _worst(name: str, case: Case, at: list[tuple[float, ...]], *orders: tuple[int, ...]) -> tuple[float, tuple[float, ...]]:
    """Return the largest error among points, and its point."""
    return max((error(v, case, p, *by), p) for by in orders for p, v in zip(at, at_points(name, at, *by)))


def _cell(found: tuple[float, tuple[float, ...]]) -> str:
    return f"{_number(found[0])} at {', '.join(f'{v:.4g}' for v in found[1])}"


def row(name: str) -> str:
    """Return a function's line of the table."""
    case = CASES[name]
    at = points(case, SLOW.get(name, COUNT), seed=3)
    first = [(i,) for i in case.wrt]
    cells = [_cell(_worst(name, case, at, ())), _cell(_worst(name, case, at, *first))]
    cells += [_cell(_worst(name, case, list(case.edges), *orders)) for orders in ([()], first)] if case.edges else ["", ""]
    return f"| `{name}` | {'; '.join(map(_range, case.ranges))} | {' | '.join(cells)} |"


def page() -> str:
    """Return the text of docs/scipy.md."""
    with np.errstate(all="ignore"):
        rows = [row(name) for name in CASES]
    return HEAD + FIGURES.format(mpmath=mpmath.__version__, numpy=np.__version__, scipy=scipy.__version__) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
