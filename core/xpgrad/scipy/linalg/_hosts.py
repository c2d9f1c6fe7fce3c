"""Kernels of matrix functions that SciPy computes in host memory, since they are not composed of others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.errors import CapabilityError


def values_are_known(xp: Any, x: Any) -> bool:
    """Return whether the values of a raw array can be read, so that a kernel may branch on them."""
    backend = xp._backend
    return not backend.capabilities.lazy and not backend.is_traced(x)


def by_the_host_of_matrices(name: str, signature: str, composed: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the kernel of a row that calls SciPy's function of arrays and Python values.

    Parameters
    ----------
    name : str
        The function's in `scipy.linalg`.
    signature : str
        The axes of a matrix, as for `Backend.through_host`.
    composed : callable, optional
        ``composed(xp, *args)``: what computes without SciPy, and where the memory is not the host's.
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
        return backend.through_host(f"linalg.{name}", functools.partial(_called, function, rest), *arrays, signature=signature)

    return kernel


def _called(function: Callable[..., Any], rest: tuple[Any, ...], *arrays: Any) -> Any:
    return function(*arrays, *rest)
