"""MLX's arrays as arrays of xpgrad: the light module that the entry point names. MLX is imported when the backend is used."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_mlx.backend import MlxBackend

    return MlxBackend(variant)


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Arrays of MLX: ``mlx`` in float32 and complex64 on MLX's default device, ``mlx+float64`` with float64 besides, on the CPU."""
    return BackendInfo(name="mlx", load=_load, array_modules=("mlx",), variants=("float64",), install="pip install 'mlx[cpu]'")
