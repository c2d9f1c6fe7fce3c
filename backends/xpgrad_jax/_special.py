"""JAX's special functions as kernels: those of `jax.scipy.special` that are as accurate as SciPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special

__all__ = ["function"]

#: Functions with the name and meaning of SciPy's, for real arrays. NB: some are missing for a reason: in JAX 0.10, `betaln` is accurate to
#: seven digits only (float64, at 9.687, 1.312), `log_ndtr` has no accuracy in the right tail, `polygamma` takes only integer arrays,
#: `owens_t` widens single precision, and `rel_entr` and `kl_div` return infinity for nan.
_NAMES = frozenset((
    "betainc", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "logit", "ndtr", "ndtri", "poch",
    "xlog1py", "xlogy", "zeta",
))  # fmt: skip


def _solve_triangular(a: Any, b: Any, turned: bool, lower: bool, unit: bool) -> Any:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    return jax.scipy.linalg.solve_triangular(a, b, trans=int(turned), lower=lower, unit_diagonal=unit)


#: Matrix functions for the rows of `xpgrad.scipy.linalg`. NB: `expm` is missing because JAX's scales by the norm alone, which is too much
#: for matrices that are far from normal (0.10, float32: for [[-300, 1e8], [0, -1]] its last element is 1.0 instead of 0.37).
_MATRICES: dict[str, Callable[..., Any]] = {"linalg_solve_triangular": _solve_triangular}


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """Return JAX's function of that name; None if it has none, or one that is not accurate enough."""
    return getattr(jax.scipy.special, name, None) if name in _NAMES else _MATRICES.get(name)
