"""The entry point of the NumPy backend. Importing this module does not import NumPy."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_numpy._backend import NumPyBackend, ReadOnlyNumPyBackend

    return NumPyBackend() if variant is None else ReadOnlyNumPyBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Describe the backend: NumPy arrays on the host; ``numpy+readonly`` freezes every array, to catch code that writes to its inputs."""
    return BackendInfo(name="numpy", load=_load, array_modules=("numpy",), variants=("readonly",), install="pip install numpy")
