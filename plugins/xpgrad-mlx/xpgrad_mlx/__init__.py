"""The entry point of xpgrad's backend for MLX. Importing this module does not import MLX; using the backend does."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_mlx.backend import MlxBackend

    return MlxBackend(variant)


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: ``mlx`` on MLX's default device, and ``mlx+float64``, which adds float64, on the CPU."""
    return BackendInfo(name="mlx", load=_load, array_modules=("mlx",), variants=("float64",), install="pip install 'mlx[cpu]'")
