"""Distributions, under SciPy's names: `norm`, `t`, `gamma`, `chi2`, `beta`, `poisson`, `dirichlet`, `multivariate_normal`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.scipy.stats import (
    beta as beta,
    chi2 as chi2,
    dirichlet as dirichlet,
    gamma as gamma,
    multivariate_normal as multivariate_normal,
    norm as norm,
    poisson as poisson,
    t as t,
)

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that names the available distributions."""
    msg = (
        f"xpgrad.dialects.hips.scipy.stats has no {name!r}, only {', '.join(f'`{n}`' for n in __all__)}; write the density with NumPy and "
        "`scipy.special`"
    )
    raise AttributeError(msg)
