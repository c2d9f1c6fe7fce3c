"""`xpgrad.scipy.integrate`: SciPy's solvers of differential equations and integrals, with differentiable results, on every backend.

`odeint` and `solve_ivp` integrate differential equations, `quad_vec` a function, and `trapezoid`, `cumulative_trapezoid` and `simpson`
samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy.integrate._equations import DenseSolution as DenseSolution, odeint as odeint, solve_ivp as solve_ivp
from xpgrad.scipy.integrate._quadrature import (
    cumulative_trapezoid as cumulative_trapezoid,
    quad_vec as quad_vec,
    simpson as simpson,
    trapezoid as trapezoid,
)

__all__ = ["DenseSolution", "cumulative_trapezoid", "odeint", "quad_vec", "simpson", "solve_ivp", "trapezoid"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
