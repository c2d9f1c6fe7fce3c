"""SciPy's `odeint`, differentiable by the initial values, the times and the arguments of the function."""

from __future__ import annotations

import importlib
from typing import Any

from xpgrad._operations.lift import new_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import ARRAY, np
from xpgrad.func._tree import flatten
from xpgrad.scipy.integrate import odeint as _ours

__all__ = ["odeint"]

_integrate: Any = importlib.import_module("scipy.integrate")
#: The arguments of SciPy's `odeint` that `xpgrad.scipy.integrate.odeint` also has.
_KNOWN = frozenset({"tfirst", "rtol", "atol", "hmax", "h0", "mxstep"})


def odeint(func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """Integrate ``dy/dt = func(y, t, *args)``, with times along the first axis of the result.

    Parameters
    ----------
    func : callable
    y0 : array, shape (n,)
    t : array, shape (T,)
    args : tuple
        May be nested tuples, lists and dicts of arrays.
    **options
        SciPy's options. When differentiating, only `tfirst`, `rtol`, `atol`, `hmax`, `h0` and `mxstep`.

    Returns
    -------
    array, shape (T, n)

    Raises
    ------
    NotImplementedError
        Another option is given when differentiating.
    RuntimeError
        The integration does not reach the last time.
    """
    args = tuple(args)
    if not any(isinstance(x, Tensor) for x in flatten((y0, t, args))[0]):
        first = (t[0], y0) if options.get("tfirst") else (y0, t[0])
        if not isinstance(func(*first, *args), Tensor):  # `func` may close over a value that is being differentiated
            return _integrate.odeint(func, y0, t, args, **options)
    unknown = sorted(options.keys() - _KNOWN)
    if unknown:
        msg = f"odeint: `{unknown[0]}` is not taken where something is differentiated; leave it out"
        raise NotImplementedError(msg)
    start = y0 if isinstance(y0, Tensor) else new_tensor(ARRAY, np.asarray(y0, dtype=float))
    return _ours(func, start, t, args, **options)
