"""The page of SciPy's functions, docs/scipy.md: its text is here, its figures are measured.

``PYTHONPATH=tests python -m special.page`` writes it, in some minutes.
"""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import scipy

from support.special_functions import CASES, Case, Range, at_points, error, points

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scipy.md"
#: Points of the usual range; fewer where mpmath takes long.
COUNT = 200
SLOW = {
    "stdtrit": 20,
    "owens_t": 20,
    "betaincinv": 10,
    "gammaincinv": 20,
    "gammainccinv": 20,
    "y1": 40,
    "yn": 40,
    "gammaincc": 60,
    "zeta": 60,
}

HEAD = """# SciPy's functions

`xpgrad.scipy.special` has SciPy's special functions for Tensors on every backend: with gradients of every order, forward mode, `vmap` and
`compile`. The names, arguments and values are SciPy's. Functions of matrices have [a page of their own](matrix-functions.md).

```python
import xpgrad as xp
from xpgrad.scipy import special

x = xp.tensor([0.5, 1.5, 3.0], requires_grad=True)
xp.sum(special.gammaln(x)).backward()
print([round(v, 4) for v in x.grad.tolist()])  # [-1.9635, 0.0365, 0.9228]

a = xp.tensor(2.0, requires_grad=True)  # the shape of a gamma distribution
print(round(xp.autograd.grad(special.gammainc(a, 1.5), a)[0].item(), 6))  # -0.313489
```

## Who computes

* NumPy: SciPy. PyTorch, JAX and CuPy: their own functions (`torch.special`, `jax.scipy.special`, `cupyx.scipy.special`) where these are as
  accurate as SciPy's. What a library lacks is composed of its other functions where that is accurate, else SciPy computes it where the
  memory is the host's (also for dask, by chunks, and inside of a compiled function of JAX), else a `CapabilityError` says so.
* SciPy is optional: `pip install 'xpgrad[scipy]'`. `expit`, `logit`, `log_expit`, `xlogy`, `xlog1py`, `entr`, `rel_entr`, `kl_div`, `sinc`,
  `logsumexp`, `softmax` and `log_softmax` need nothing; the others say what to install.
* A backend names its library's own functions in `Backend.special`, and how SciPy reaches its memory in `Backend.through_host`.

## The rules

* Integers become floating numbers of the default dtype. Two arguments meet as in every function of xpgrad.
* Beyond a domain the value is SciPy's nan or infinity, and the derivative is nan or infinite.
* `gammainc`, `gammaincc`, `betainc`, `betaincc` and the inverses are differentiable in their shapes as well, by quadrature; a second
  derivative in which both are by shapes is refused. The order of a Bessel function, of `polygamma` and the `x` of `zeta` have no
  derivative: `NotImplementedError` says so, and nothing is ever 0 for want of a formula.
* Complex arguments are taken where SciPy's functions of them are holomorphic: the error functions, `gamma`, `loggamma`, `digamma`,
  `polygamma`, `rgamma`, `xlogy`, `xlog1py`, `sinc`, `exp1`, `expi`, `lambertw`, `logsumexp`, and the Bessel functions of any order.

## SciPy's own functions

`scipy.special.erf(x)` of a Tensor is a Tensor: SciPy's universal functions ask their arguments (NEP 13), and what has a name here is
computed here. Its functions that are none, such as `scipy.special.logsumexp` or `scipy.stats.entropy`, look for a namespace when the
environment has `SCIPY_ARRAY_API=1` before SciPy is imported: then they are written in xpgrad's functions, and differentiate. For special
functions SciPy looks at the attribute `special` of the namespace, as it would for an extension of the standard: `xpgrad.special` is
`xpgrad.scipy.special`, loaded when it is first asked for. SciPy itself refuses a Tensor beside a NumPy array in that mode, and some of its
functions (`comb`, the spherical Bessel functions) convert to NumPy's arrays whatever they get, which a Tensor that requires grad refuses.

## Distributions

`xpgrad.scipy.stats` has `norm`, `expon`, `laplace`, `cauchy`, `logistic`, `lognorm`, `uniform`, `gamma`, `beta`, `chi2`, `t`,
`weibull_min`, `truncnorm` and `vonmises`, with `logpdf`, `pdf`, `cdf`, `logcdf`, `sf`, `logsf`, `ppf` and `isf` (`vonmises` without the
last two); `poisson`, `binom` and `bernoulli`, with `logpmf`, `pmf`, `cdf`, `logcdf`, `sf` and `ppf`; and for vectors `multivariate_normal`
and `dirichlet`, with `logpdf`, `pdf` and `entropy`. Arguments and parameters are differentiable, in SciPy's order or by name.

```python
from xpgrad.scipy import stats

data = xp.asarray([1.2, 0.7, 2.4])
shape = xp.tensor(1.5, requires_grad=True)
xp.sum(stats.gamma.logpdf(data, shape, scale=0.8)).backward()
print(round(shape.grad.item(), 6))  # 1.261076
```

Outside of a support a density and its derivative are 0; for parameters that no distribution has, such as a negative scale, values and
derivatives are nan. Quantiles of distributions on integers are steps, computed by SciPy and not differentiated. Vectors lie along the last
axis for `multivariate_normal` and along the first for `dirichlet`, as SciPy's; axes of length 1 stay, which SciPy drops; what is no vector
of probabilities gives nan, where SciPy raises ValueError.

## How fast

Values with gradients of 100,000 numbers beside the same by hand in NumPy and SciPy, the derivative written out, in turns, in one process
(`python -m benchmarks.scipy`; the target is 1.3): `logsumexp` 1.22 to 1.24, `softmax` 1.14 to 1.17, `gammaln` 1.03, `erf` 1.08, and by
all its arguments `stats.multivariate_normal.logpdf` of 20,000 vectors of 5 1.14 to 1.30. `stats.norm.logpdf`, summed, by the data, the
location and the scale takes 0.94 to 0.98, where the first touch of memory is most of both; where the allocator keeps its memory, as after
a program with larger arrays, it takes 1.22 to 1.32, in the median of six runs 1.26: of as many elements it makes more passes than sums
written by hand.

## How accurate

"""

FIGURES = """Against mpmath {mpmath} with 40 digits, on NumPy {numpy} with SciPy {scipy}, in double precision: the worst of 200 random
points (of 10 to 60 where mpmath takes long) of the usual range, and near the edges (tails, poles, 0, huge numbers). An error is relative to
the value plus what the arguments' own rounding changes, `|f| + |x f'|`: where a function crosses zero nobody does better. The bounds
that the tests ask for are 1e-12 in the usual range and 1e-9 near the edges; values are SciPy's own, derivatives ours.

| function | usual range | value | first derivatives | value, edges | first derivatives, edges |
|---|---|---|---|---|---|
"""


def _range(r: Range) -> str:
    return f"{r.low:g}..{r.high:g}" + {"even": "", "logs": " (logarithmic)", "integers": " (integers)"}[r.how]


def _number(x: float) -> str:
    return "0" if x == 0 else f"{x:.1e}"


def _worst(name: str, case: Case, at: list[tuple[float, ...]], *orders: tuple[int, ...]) -> tuple[float, tuple[float, ...]]:
    """The largest error among points, and the point."""
    return max((error(v, case, p, *by), p) for by in orders for p, v in zip(at, at_points(name, at, *by)))


def _cell(found: tuple[float, tuple[float, ...]]) -> str:
    return f"{_number(found[0])} at {', '.join(f'{v:.4g}' for v in found[1])}"


def row(name: str) -> str:
    """A function's line of the table."""
    case = CASES[name]
    at = points(case, SLOW.get(name, COUNT), seed=3)
    first = [(i,) for i in case.wrt]
    cells = [_cell(_worst(name, case, at, ())), _cell(_worst(name, case, at, *first))]
    cells += [_cell(_worst(name, case, list(case.edges), *orders)) for orders in ([()], first)] if case.edges else ["", ""]
    return f"| `{name}` | {'; '.join(map(_range, case.ranges))} | {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    with np.errstate(all="ignore"):
        rows = [row(name) for name in CASES]
    return HEAD + FIGURES.format(mpmath=mpmath.__version__, numpy=np.__version__, scipy=scipy.__version__) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
