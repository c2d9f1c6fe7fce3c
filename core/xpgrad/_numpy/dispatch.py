"""The two methods through which NumPy dispatches to Tensors: `__array_ufunc__` (NEP 13) and `__array_function__` (NEP 18)."""

from __future__ import annotations

from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad._numpy import chapters as chapters
from xpgrad._numpy.table import FUNCTIONS, LIKE, no_rule_error
from xpgrad._numpy.ufuncs import _FOUND_UFUNCS, apply_method, find_ufunc
from xpgrad._operations.lift import ContainerError
from xpgrad._tensor.tensor import Tensor


def array_ufunc(self: Any, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a NumPy ufunc to Tensors and record it (`Tensor.__array_ufunc__`, NEP 13)."""
    found = _FOUND_UFUNCS.get(ufunc) or find_ufunc(ufunc)
    try:
        if method == "__call__" and not kwargs:
            return found.call(*inputs)
        return apply_method(found, method, inputs, kwargs)
    except ContainerError:
        return NotImplemented  # NumPy asks the container's `__array_ufunc__`


#: The implementation of each NumPy function object that was called before.
_CALLS: dict[Any, Any] = {}


def array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Apply a NumPy function that is not a ufunc and record it (`Tensor.__array_function__`, NEP 18)."""
    call = _CALLS.get(func)
    if call is None:
        call = _look_up(self, func)
        if call is None:
            return LIKE[func.__name__](self, *args, **kwargs)
    try:
        return call(*args, **kwargs)
    except ContainerError:
        if all(issubclass(cls, (Tensor, *host_backend().array_types())) for cls in types):
            raise
        return NotImplemented  # NumPy asks the container's `__array_function__`


#: The prefix of the table's keys for each of NumPy's modules.
PREFIXES = {
    "numpy": "",
    "numpy.linalg": "linalg.",
    "numpy.fft": "fft.",
    "numpy.lib.scimath": "emath.",
    "numpy.lib.stride_tricks": "lib.stride_tricks.",
}


def has_rule(func: Any) -> bool:
    """Return whether `array_function` has an implementation of a NumPy function."""
    inner = PREFIXES.get(getattr(func, "__module__", None) or "")
    return inner is not None and (inner + func.__name__ in FUNCTIONS or (not inner and func.__name__ in LIKE))


def _look_up(x: Any, func: Any) -> Any:
    """Return the implementation of a NumPy function; None for a function that was called with ``like=x``.

    Raises
    ------
    TypeError
        If the table has no implementation.
    """
    module = getattr(func, "__module__", None) or "?"
    name = getattr(func, "__name__", repr(func))
    inner = PREFIXES.get(module)
    if inner is None:
        if module.startswith("numpy.polynomial."):
            return func._implementation  # which numpy_code runs
        msg = f"{module}.{name} has no rule in xpgrad; for constants, pass it `x.detach().numpy()`"
        raise TypeError(msg)
    if not inner and name in LIKE:
        return None
    found = FUNCTIONS.get(inner + name)
    if found is None:
        raise no_rule_error(inner + name)
    _CALLS[func] = found.call
    return found.call


def install() -> None:
    """Set the two methods on `Tensor`, replacing the ones that import this package at their first call."""
    setattr(Tensor, "__array_ufunc__", array_ufunc)  # noqa: B010 (a type checker sees a method that is replaced)
    setattr(Tensor, "__array_function__", array_function)  # noqa: B010 (as above)
