"""Complex functions at zeros, infinities and nan, where the Array API standard asks for the values of C and XLA computes others.

Elsewhere the values are JAX's own, except sinh and cosh near the imaginary axis. Each formula below is for arguments ``a + b * 1j`` one of
whose parts is 0, infinite or nan.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["COMPLEX"]

#: The functions by their names in the standard. Arguments that are not complex go to JAX's functions as they are.
COMPLEX: dict[str, Callable[..., Any]] = {}

_Parts = tuple[Any, Any]
_Formula = Callable[[Any, Any], _Parts]


def _is_regular(a: Any, b: Any) -> Any:
    return jnp.isfinite(a) & jnp.isfinite(b) & (a != 0) & (b != 0)


def _register(name: str, regular: Callable[[Any, Any], Any] = _is_regular) -> Callable[[_Formula], _Formula]:
    """Register JAX's function of that name where `regular` is True, and the values of a formula elsewhere."""
    own = getattr(jnp, name)

    def register(formula: _Formula) -> _Formula:
        @jax.jit
        def compute(z: Any) -> Any:
            a, b = z.real, z.imag
            plain = regular(a, b)
            found = own(jnp.where(plain, z, 1))
            real, imag = formula(a, b)
            return jax.lax.complex(jnp.where(plain, found.real, real), jnp.where(plain, found.imag, imag))

        def function(x: Any, /) -> Any:
            return compute(x) if x.dtype.kind == "c" else own(x)

        function.__name__ = function.__qualname__ = name
        COMPLEX[name] = function
        return formula

    return register


def _known(x: Any, function: Callable[[Any], Any]) -> Any:
    """Return a bounded function of `x`, and 1 where `x` is infinite or nan, for products with zero."""
    return jnp.where(jnp.isfinite(x), function(x), 1)


def _is_endless(a: Any, b: Any) -> Any:
    return jnp.isinf(a) | jnp.isinf(b)


@_register("exp")
def _exp(a: Any, b: Any) -> _Parts:
    size = jnp.exp(a)
    lost = jnp.isinf(a) & ~jnp.isfinite(b)  # no direction
    real, imag = jnp.where(lost, size, size * jnp.cos(b)), jnp.where(lost & (a < 0), 0, size * jnp.sin(b))
    return jnp.where(b == 0, size, real), jnp.where(b == 0, b, imag)


@_register("expm1")
def _expm1(a: Any, b: Any) -> _Parts:
    lost = jnp.isinf(a) & ~jnp.isfinite(b)
    real = jnp.expm1(a) * jnp.cos(b) - 2 * jnp.sin(b / 2) ** 2  # the cosine less 1, without its rounding error
    return jnp.where(lost | (b == 0), jnp.expm1(a), real), _exp(a, b)[1]


@_register("log")
def _log(a: Any, b: Any) -> _Parts:
    return jnp.where(_is_endless(a, b), jnp.inf, jnp.log(jnp.hypot(a, b))), jnp.arctan2(b, a)


@_register("log2")
def _log2(a: Any, b: Any) -> _Parts:
    return jnp.where(_is_endless(a, b), jnp.inf, jnp.log2(jnp.hypot(a, b))), jnp.arctan2(b, a) / log(2)


@_register("log10")
def _log10(a: Any, b: Any) -> _Parts:
    return jnp.where(_is_endless(a, b), jnp.inf, jnp.log10(jnp.hypot(a, b))), jnp.arctan2(b, a) / log(10)


@_register("log1p")
def _log1p(a: Any, b: Any) -> _Parts:
    on_axis = jnp.where(b == 0, jnp.where(a > -1, jnp.log1p(a), jnp.log(jnp.abs(1 + a))), jnp.log1p(b * b) / 2)
    real = jnp.where(jnp.abs(b) > 1e4, jnp.log(jnp.hypot(1 + a, b)), on_axis)  # where the square may overflow, and 1 does not count
    return jnp.where(_is_endless(a, b), jnp.inf, jnp.where(jnp.isnan(a) | jnp.isnan(b), jnp.nan, real)), jnp.arctan2(b, 1 + a)


@_register("sqrt")
def _sqrt(a: Any, b: Any) -> _Parts:
    size = jnp.sqrt(jnp.abs(a))
    half = jnp.sqrt(jnp.abs(b) / 2)  # for a == 0
    lost = jnp.isinf(a) & jnp.isnan(b)
    real = jnp.where(a == 0, half, jnp.where(b == 0, jnp.where(a < 0, 0, size), jnp.where(a > 0, jnp.inf, 0)))
    imag = jnp.where(a == 0, half, jnp.where(b == 0, jnp.where(a < 0, size, 0), jnp.where(a > 0, 0, jnp.inf)))
    real = jnp.where(lost, jnp.where(a > 0, jnp.inf, jnp.nan), real)
    imag = jnp.where(lost, jnp.where(a > 0, jnp.nan, jnp.inf), imag)
    unknown = (jnp.isnan(a) | jnp.isnan(b)) & ~lost
    real, imag = jnp.where(unknown, jnp.nan, real), jnp.where(unknown, jnp.nan, imag)
    return jnp.where(jnp.isinf(b), jnp.inf, real), jnp.where(jnp.isinf(b), b, jnp.copysign(imag, b))


def _is_far(a: Any, b: Any) -> Any:
    """Return whether a number is far from the imaginary axis, near which JAX's sinh and cosh lose digits: it subtracts exponentials (0.10).

    Elsewhere they are accurate, and the formulas may overflow.
    """
    return _is_regular(a, b) & (jnp.abs(a) > 1)


@_register("sinh", _is_far)
def _sinh(a: Any, b: Any) -> _Parts:
    lost = jnp.isinf(a) & ~jnp.isfinite(b)
    real = jnp.where(a == 0, a * _known(b, jnp.cos), jnp.where(lost | (b == 0), jnp.sinh(a), jnp.sinh(a) * jnp.cos(b)))
    return real, jnp.where(b == 0, b, jnp.cosh(a) * jnp.sin(b))


@_register("cosh", _is_far)
def _cosh(a: Any, b: Any) -> _Parts:
    lost = jnp.isinf(a) & ~jnp.isfinite(b)
    real = jnp.where(lost | (b == 0), jnp.cosh(a), jnp.cosh(a) * jnp.cos(b))
    return real, jnp.where(b == 0, jnp.copysign(1, a) * b, jnp.where(a == 0, a * _known(b, jnp.sin), jnp.sinh(a) * jnp.sin(b)))


@_register("tanh")
def _tanh(a: Any, b: Any) -> _Parts:
    real = jnp.where(jnp.isfinite(b) | (a == 0) | jnp.isinf(a), jnp.tanh(a), jnp.nan)
    imag = jnp.where(a == 0, jnp.tan(b), jnp.where(jnp.isinf(a), 0 * _known(b, lambda b: jnp.sin(b) * jnp.cos(b)), jnp.nan))
    return real, jnp.where(b == 0, b, imag)


@_register("asinh")
def _asinh(a: Any, b: Any) -> _Parts:
    past = jnp.abs(b) > 1  # a cut, for a == 0
    on_axis = jnp.where(past, jnp.copysign(jnp.arccosh(jnp.where(past, jnp.abs(b), 1)), a), a)
    turn = jnp.where(past, jnp.copysign(pi / 2, b), jnp.arcsin(jnp.where(past, 0, b)))
    real = jnp.where(_is_endless(a, b), jnp.copysign(jnp.inf, a), jnp.where(b == 0, jnp.arcsinh(a), jnp.where(a == 0, on_axis, jnp.nan)))
    imag = jnp.where(_is_endless(a, b), jnp.arctan2(b, jnp.abs(a)), jnp.where(b == 0, b, jnp.where(a == 0, turn, jnp.nan)))
    return jnp.where(jnp.isnan(b) & ~jnp.isinf(a), jnp.nan, real), jnp.where(jnp.isnan(b), jnp.nan, imag)


@_register("acosh")
def _acosh(a: Any, b: Any) -> _Parts:
    size, between = jnp.abs(a), jnp.abs(a) <= 1  # for b == 0, and a part of the axis that is a cut
    on_axis = jnp.where(between, 0, jnp.arccosh(jnp.where(between, 1, size)))
    turn = jnp.where(between, jnp.arccos(jnp.where(between, a, 0)), jnp.where(a < 0, pi, 0))
    real = jnp.where(b == 0, on_axis, jnp.where(a == 0, jnp.arcsinh(jnp.abs(b)), jnp.nan))
    imag = jnp.where(b == 0, jnp.copysign(turn, b), jnp.where(a == 0, jnp.copysign(pi / 2, b), jnp.nan))
    unknown = jnp.isnan(a)
    real, imag = jnp.where(unknown, jnp.nan, real), jnp.where(unknown, jnp.nan, imag)
    endless = _is_endless(a, b)
    return jnp.where(endless, jnp.inf, real), jnp.where(endless, jnp.arctan2(b, a), imag)


@_register("atanh")
def _atanh(a: Any, b: Any) -> _Parts:
    inside = jnp.abs(a) <= 1  # for b == 0; the rest of the axis is a cut
    on_axis = jnp.arctanh(jnp.where(inside, a, 1 / a))
    far = _is_endless(a, b)
    real = jnp.where(far | (a == 0), jnp.copysign(0, a), jnp.where(b == 0, on_axis, jnp.nan))
    imag = jnp.where(a == 0, jnp.arctan(b), jnp.where(b == 0, jnp.where(inside, b, jnp.copysign(pi / 2, b)), jnp.nan))
    unknown = jnp.isnan(b) | (jnp.isnan(a) & ~jnp.isinf(b))
    return real, jnp.where(unknown, jnp.nan, jnp.where(far, jnp.copysign(pi / 2, b), imag))


@_register("acos")
def _acos(a: Any, b: Any) -> _Parts:
    real, imag = _acosh(a, b)
    return jnp.abs(imag), -jnp.copysign(real, b)


def _turn(name: str, formula: _Formula) -> None:
    """Register ``-1j * function(1j * z)``, such as sin for sinh."""

    @_register(name)
    def turned(a: Any, b: Any) -> _Parts:
        real, imag = formula(-b, a)
        return imag, -real


_turn("sin", _sinh)
_turn("tan", _tanh)
_turn("asin", _asinh)
_turn("atan", _atanh)
_register("cos")(lambda a, b: _cosh(-b, a))
