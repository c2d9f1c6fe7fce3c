"""SciPy's special functions as kernels: the dtype of the result is that of the operands, and orders are real; and those over axes."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_numpy._matrix_functions import function as matrices

__all__ = ["function"]

#: Functions that are no universal ones of SciPy's, and that rows compose of some.
_COMPOSED = frozenset(("comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"))
#: Functions whose first operand, an order, is real also where the argument is complex.
_ORDERS = frozenset(("iv", "ive", "jv", "jve", "kv", "kve", "yv"))


# -- over axes: as the rows compute them, in memory of their own ---------------------------------------------------------


def _exponentials(x: Any, axes: Any) -> tuple[Any, Any]:
    """The largest real part, 0 where it is infinite, and the exponentials of what lies below it."""
    top = np.max(x.real if x.dtype.kind == "c" else x, axis=axes, keepdims=True)
    if not np.isfinite(top).all():
        top = np.where(np.isfinite(top), top, top.dtype.type(0))
    e = np.asarray(np.subtract(x, top))
    return top, np.exp(e, out=e)


def _softmax(x: Any, axes: Any) -> Any:
    _, e = _exponentials(x, axes)
    e /= np.sum(e, axis=axes, keepdims=True)
    return e


def _logsumexp_and_weights(x: Any, axes: Any) -> tuple[Any, Any]:
    top, e = _exponentials(x, axes)
    total = np.sum(e, axis=axes, keepdims=True)
    e /= total
    return np.log(total) + top, e


def _logsumexp(x: Any, axes: Any, keepdims: bool) -> Any:
    top, e = _exponentials(x, axes)
    out = np.log(np.sum(e, axis=axes, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis=axes)


_OVER_AXES: dict[str, Callable[..., Any]] = {"softmax": _softmax, "logsumexp": _logsumexp, "logsumexp_and_weights": _logsumexp_and_weights}


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """SciPy's function of that name, or our own; None without SciPy, or where it has none."""
    if name in _OVER_AXES:
        return _OVER_AXES[name]
    if name.startswith("linalg_"):
        return matrices(name.removeprefix("linalg_"))
    try:
        public = importlib.import_module("scipy.special")
        # NB: under SCIPY_ARRAY_API=1 the public names are wrappers that look for a namespace first.
        bare = importlib.import_module("scipy.special._ufuncs")
    except ModuleNotFoundError:
        return None
    found = None if name in _COMPOSED else getattr(bare, name, None) or getattr(public, name, None)
    if found is None:
        return None
    if name.startswith("spherical_"):
        return lambda z, n: np.asarray(found(n, z), z.dtype)  # the row's operand comes first; SciPy computes in double precision
    order = name in _ORDERS

    def call(*args: Any) -> Any:
        if order and args[1].dtype.kind == "c" and not isinstance(args[0], float):
            args = (args[0].real, args[1])
        out = found(*args)
        for a in args:  # of halves SciPy makes single or double precision
            if getattr(a, "dtype", None) == np.float16:
                return out.astype(np.float16)
        return out

    return call
