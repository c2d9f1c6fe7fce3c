"""Check derivatives against central differences along random directions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from xpgrad._basics.differences import central_difference
from xpgrad.dialects.hips.differential_operators import make_jvp, make_vjp, unary_to_nary
from xpgrad.dialects.hips.extend import vspace

__all__ = ["EPS", "RTOL", "TOL", "check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "scalar_close"]

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Return whether two numbers agree to `TOL`, or relatively to `RTOL`."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def _close(found: Any, expected: Any, what: str, f: Any) -> None:
    if not scalar_close(found, expected):
        name = getattr(f, "__name__", "the function")
        msg = f"Derivative ({what}) check of {name} failed: found {found}, central differences say {expected}"
        raise AssertionError(msg)


def _difference(f: Callable[[Any], Any], x: Any, v: Any, cotangent: Any) -> Any:
    """Return the product of a cotangent with the derivative of `f` along `v`, by central differences."""
    space, out = vspace(x), vspace(cotangent)
    return central_difference(lambda h: out.inner_prod(cotangent, f(space.add(x, space.scalar_mul(v, h)))), EPS / 2)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare the vjp of `f` at `x` with central differences.

    Raises
    ------
    AssertionError
        If they differ, or the gradient is not of the shape and dtype of `x`.
    """
    vjp, y = make_vjp(f)(x)
    y_space, x_space = vspace(y), vspace(x)
    v, cotangent = x_space.randn(), y_space.randn()
    gradient = vjp(y_space.covector(cotangent))
    if vspace(gradient) != x_space:
        msg = f"the gradient is of {vspace(gradient)}, the argument of {x_space}"
        raise AssertionError(msg)
    expected = _difference(f, x, v, cotangent)
    _close(x_space.inner_prod(x_space.covector(gradient), v), expected, "VJP", f)


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare the jvp of `f` at `x` with central differences.

    Raises
    ------
    AssertionError
        If they differ, or the tangent is not of the shape and dtype of the value.
    """
    v = vspace(x).randn()
    value, tangent = make_jvp(f)(x)(v)
    space = vspace(value)
    if vspace(tangent) != space:
        msg = f"the tangent is of {vspace(tangent)}, the value of {space}"
        raise AssertionError(msg)
    along = space.randn()
    _close(space.inner_prod(along, tangent), _difference(f, x, v, along), "JVP", f)


def check_equivalent(x: Any, y: Any) -> None:
    """Compare two values of one structure along a random direction.

    Raises
    ------
    AssertionError
        If they differ.
    """
    if vspace(x) != vspace(y):
        msg = f"VSpace mismatch: {vspace(x)} and {vspace(y)}"
        raise AssertionError(msg)
    v = vspace(x).randn()
    _close(vspace(x).inner_prod(x, v), vspace(x).inner_prod(y, v), "value", x)


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Any = ("fwd", "rev"), order: int = 2) -> None:
    """Return a function that checks the derivatives of `f` at its arguments up to an order, in both modes and their mixtures.

    Parameters
    ----------
    f : callable
    argnum : int, or tuple of int
    modes : sequence of {"fwd", "rev"}
    order : int

    Raises
    ------
    AssertionError
        By the function: if a derivative differs from central differences.
    ValueError
        For other modes.
    """
    if not modes or not set(modes) <= {"fwd", "rev"}:
        msg = f'check_grads: `modes` is a sequence of "fwd" and "rev", but got {modes!r:.60}'
        raise ValueError(msg)
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            v = vspace(x).randn()
            check_grads(lambda x: make_jvp(f)(x)(v)[1], modes=modes, order=order - 1)(x)
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            cotangent = vspace(f(x)).randn()

            def vjp(x: Any, v: Any) -> Any:
                return make_vjp(f)(x)[0](v)

            vjp.__name__ = f"vjp_{getattr(f, '__name__', 'function')}"
            # With respect to the cotangent as well: the rule of a rule may be wrong.
            check_grads(vjp, (0, 1), modes=modes, order=order - 1)(x, cotangent)


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Call `check_grads` for all combinations of arguments: ``combo_check(f, argnums, modes=...)([x, y], [z], axis=[0, 1])``."""
    checked = check_grads(fun, *args, **kwargs)

    def check(*choices: Any, **named: Any) -> None:
        for chosen in product(*choices, *named.values()):
            values = iter(chosen)
            positional = [next(values) for _ in choices]
            checked(*positional, **{name: next(values) for name in named})

    return check
