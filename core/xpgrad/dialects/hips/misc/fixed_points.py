"""The fixed point of a function as a function of its parameters, differentiated implicitly: what the iteration did is not recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips.differential_operators import make_vjp
from xpgrad.dialects.hips.extend import defvjp, primitive, vspace

__all__ = ["fixed_point"]


@primitive
def fixed_point(f: Callable[..., Any], a: Any, x0: Any, distance: Callable[..., Any], tol: float) -> Any:
    """The limit of ``x = f(a)(x)`` from `x0` on.

    Parameters
    ----------
    f : callable
        ``f(a)`` is the function that is iterated.
    a : array, number, or nested tuples, lists and dicts of them
        What one can differentiate in.
    x0 : as the fixed point
    distance : callable
        ``distance(x, y)``, until it is at most `tol`.
    tol : float
    """
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


def _vjp(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    # By the implicit function theorem the cotangent of x is itself a fixed point, of w = g + w (df/dx).
    def adjoint(parameters: Any) -> Callable[[Any], Any]:
        a, x, g = parameters
        vjp_x, _ = make_vjp(f(a))(x)
        return lambda w: vspace(g).add(vjp_x(w), g)

    vjp_a, _ = make_vjp(lambda a, x: f(a)(x))(a, ans)
    return lambda g: vjp_a(fixed_point(adjoint, (a, ans, g), vspace(x0).zeros(), distance, tol))


defvjp(fixed_point, None, _vjp, None)
