"""SciPy's special functions as kernels: the dtype of the result is that of the operands, and orders are real."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["function"]

#: Functions that are no universal ones of SciPy's, and that rows compose of some.
_COMPOSED = frozenset(("comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"))
#: Functions whose first operand, an order, is real also where the argument is complex.
_ORDERS = frozenset(("iv", "ive", "jv", "jve", "kv", "kve", "yv"))


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """SciPy's function of that name; None without SciPy, or where it has none."""
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
        if out.dtype.char in "fF":  # of halves SciPy makes single precision
            for a in args:
                if getattr(a, "dtype", None) == np.float16:
                    return out.astype(np.float16)
        return out

    return call
