"""The entry point of the CuPy backend. Importing this module does not import CuPy."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_cupy._backend import CuPyBackend

    return CuPyBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Describe the backend: CuPy arrays on CUDA devices, with streams."""
    return BackendInfo(
        name="cupy",
        load=_load,
        array_modules=("cupy",),
        install="pip install 'xpgrad[cuda12]' (or 'xpgrad[cuda13]', for CUDA 13)",
        cuda=True,
    )
