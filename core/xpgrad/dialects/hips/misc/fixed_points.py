"""The fixed point of a function as a function of its parameters, differentiated implicitly; the iteration is not recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips.differential_operators import make_vjp
from xpgrad.dialects.hips.extend import defvjp, primitive, vspace

__all__ = ["fixed_point"]


@primitive
def fixed_point(f: Callable[..., Any], a: Any, x0: Any, distance: Callable[..., Any], tol: float) -> Any:
    """Iterate ``x = f(a)(x)`` from `x0`, and return the limit.

    Parameters
    ----------
    f : callable
        ``f(a)`` is the function that is iterated.
    a : array, number, or nested tuples, lists and dicts of them
        The parameters; the limit can be differentiated with respect to them.
    x0 : as the fixed point
    distance : callable
        The iteration stops when ``distance(x, y)`` of two successive values is at most `tol`.
    tol : float
    """
    step, x = f(a), x0
    while True:
        new = step(x)
        if not distance(new, x) > tol:
            return new
        x = new


def _implicit(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    """Return the vjp of a fixed point `ans` by the implicit function theorem; the other parameters are those of `fixed_point`.

    For the cotangent g of the limit, w = g + w (df/dx) is another fixed point, and the cotangent of `a` is w (df/da).
    """
    space = vspace(x0)

    def sums(given: Any) -> Callable[[Any], Any]:
        parameters, limit, cotangent = given
        through_x = make_vjp(f(parameters))(limit)[0]
        return lambda w: space.add(cotangent, through_x(w))

    def pulled(cotangent: Any) -> Any:
        w = fixed_point(sums, (a, ans, cotangent), space.zeros(), distance, tol)
        through_a = make_vjp(lambda parameters: f(parameters)(ans))(a)[0]
        return through_a(w)

    return pulled


defvjp(fixed_point, None, _implicit, None)
