"""Special functions, computed by SciPy; their derivatives are those of the NIST Digital Library of Mathematical Functions.

Each is elementwise, except `logsumexp`. They may be differentiated in the arguments whose derivatives are made of elementary functions and
those of this module; in the others that raises `NotImplementedError`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.extend import defjvp_argnum, defvjp_argnum, primitive
from xpgrad.dialects.hips.numpy.numpy_vjps import unbroadcast_f

__all__ = [
    "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammainc", "gammaincc", "gammaln",
    "gammasgn", "i0", "i1", "iv", "ive", "j0", "j1", "jn", "logit", "logsumexp", "multigammaln", "polygamma", "psi", "rgamma", "y0", "y1",
    "yn",
]  # fmt: skip

_special: Any = importlib.import_module("scipy.special")

Slope = Callable[..., Any]


def _elementwise(name: str, *slopes: Slope | None) -> Any:
    """A function of SciPy with the derivative in each argument, ``slope(ans, *args)``; None where it has none that is known."""
    function = primitive(getattr(_special, name))

    def slope(argnum: int, ans: Any, args: Any) -> Any:
        made = slopes[argnum]
        if made is None:
            msg = f"the derivative of {name} in its argument {argnum} is not known in terms of functions that are there"
            raise NotImplementedError(msg)
        return made(ans, *args)

    defvjp_argnum(function, lambda n, ans, args, kwargs: unbroadcast_f(args[n], lambda g: g * slope(n, ans, args)))
    defjvp_argnum(function, lambda n, g, ans, args, kwargs: g * slope(n, ans, args))
    return function


# Functions that are part of derivatives of those before them, for type checkers.
polygamma: Any
j1: Any
jn: Any
y1: Any
yn: Any
i1: Any
iv: Any
ive: Any

polygamma = _elementwise("polygamma", None, lambda ans, n, x: polygamma(n + 1, x))
psi: Any = _elementwise("psi", lambda ans, x: polygamma(1, x))
digamma: Any = _elementwise("digamma", lambda ans, x: polygamma(1, x))
gamma: Any = _elementwise("gamma", lambda ans, x: ans * psi(x))
gammaln: Any = _elementwise("gammaln", lambda ans, x: psi(x))
rgamma: Any = _elementwise("rgamma", lambda ans, x: -psi(x) * ans)
gammasgn: Any = _elementwise("gammasgn", lambda ans, x: np.zeros_like(x))
gammainc: Any = _elementwise("gammainc", None, lambda ans, a, x: np.exp(-x + np.log(x) * (a - 1) - gammaln(a)))
gammaincc: Any = _elementwise("gammaincc", None, lambda ans, a, x: -np.exp(-x + np.log(x) * (a - 1) - gammaln(a)))
multigammaln: Any = _elementwise("multigammaln", lambda ans, a, d: sum(psi(a - i / 2.0) for i in range(int(d))), None)
beta: Any = _elementwise("beta", lambda ans, a, b: ans * (psi(a) - psi(a + b)), lambda ans, a, b: ans * (psi(b) - psi(a + b)))
betaln: Any = _elementwise("betaln", lambda ans, a, b: psi(a) - psi(a + b), lambda ans, a, b: psi(b) - psi(a + b))
betainc: Any = _elementwise("betainc", None, None, lambda ans, a, b, x: np.power(x, a - 1) * np.power(1 - x, b - 1) / beta(a, b))

j0: Any = _elementwise("j0", lambda ans, x: -j1(x))
y0: Any = _elementwise("y0", lambda ans, x: -y1(x))
j1 = _elementwise("j1", lambda ans, x: (j0(x) - jn(2, x)) / 2)
y1 = _elementwise("y1", lambda ans, x: (y0(x) - yn(2, x)) / 2)
jn = _elementwise("jn", None, lambda ans, n, x: (jn(n - 1, x) - jn(n + 1, x)) / 2)
yn = _elementwise("yn", None, lambda ans, n, x: (yn(n - 1, x) - yn(n + 1, x)) / 2)
i0: Any = _elementwise("i0", lambda ans, x: i1(x))
i1 = _elementwise("i1", lambda ans, x: (i0(x) + iv(2, x)) / 2)
iv = _elementwise("iv", None, lambda ans, n, x: (iv(n - 1, x) + iv(n + 1, x)) / 2)
ive = _elementwise("ive", None, lambda ans, n, x: (ive(n - 1, x) + ive(n + 1, x)) / 2 - ans * np.sign(x))

_ROOT = math.sqrt(math.pi)
erf: Any = _elementwise("erf", lambda ans, x: 2 / _ROOT * np.exp(-(x**2)))
erfc: Any = _elementwise("erfc", lambda ans, x: -2 / _ROOT * np.exp(-(x**2)))
erfinv: Any = _elementwise("erfinv", lambda ans, x: _ROOT / 2 * np.exp(ans**2))
erfcinv: Any = _elementwise("erfcinv", lambda ans, x: -_ROOT / 2 * np.exp(ans**2))
logit: Any = _elementwise("logit", lambda ans, x: 1 / (x * (1 - x)))
expit: Any = _elementwise("expit", lambda ans, x: ans * (1 - ans))


def logsumexp(x: Any, axis: Any = None, b: Any = 1.0, keepdims: bool = False, return_sign: bool = False) -> Any:
    """The logarithm of the sum of ``b * exp(x)`` over axes, as SciPy's.

    Raises
    ------
    NotImplementedError
        With `return_sign` for Tensors.
    """
    if not isinstance(x, Tensor) and not isinstance(b, Tensor):
        return _special.logsumexp(x, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)
    if return_sign:
        msg = "logsumexp: return_sign=True is not there for what is being differentiated"
        raise NotImplementedError(msg)
    top = np.max(x.detach() if isinstance(x, Tensor) else np.asarray(x), axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.log(np.sum(b * np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)
