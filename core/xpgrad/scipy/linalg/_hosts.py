"""Kernels of matrix functions that SciPy computes in host memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.errors import CapabilityError


def values_are_known(xp: Any, x: Any) -> bool:
    """Return whether the values of a raw array can be read, so that a kernel may branch on them: not if lazy or traced."""
    backend = xp._backend
    return not backend.capabilities.lazy and not backend.is_traced(x)


def by_the_host_of_matrices(name: str, signature: str, composed: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the kernel of a row that SciPy computes: it takes the arrays first, then Python values.

    Parameters
    ----------
    name : str
        Name of the function in `scipy.linalg`.
    signature : str
        The core axes of arguments and result, as for `Backend.through_host`.
    composed : callable, optional
        ``composed(xp, *args)`` computes instead if SciPy is not installed or the memory is not the host's. Without it the kernel raises
        CapabilityError.
    """
    count = signature.partition("->")[0].count("(")

    def kernel(xp: Any, *args: Any) -> Any:
        backend = xp._backend
        arrays, rest = args[:count], args[count:]
        function = host_backend().special(f"linalg_{name}")
        if composed is not None and (function is None or not backend.on_host(backend.device_of(arrays[0]))):
            return composed(xp, *args)
        if function is None:
            msg = f"scipy.linalg.{name} is computed by SciPy, which is not installed; run `pip install 'xpgrad[scipy]'`"
            raise CapabilityError(msg)
        return backend.through_host(f"linalg.{name}", functools.partial(_call_with_values, function, rest), *arrays, signature=signature)

    return kernel


def _call_with_values(function: Callable[..., Any], rest: tuple[Any, ...], *arrays: Any) -> Any:
    """Call a function with arrays, then the values in `rest`."""
    return function(*arrays, *rest)
