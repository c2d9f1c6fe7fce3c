"""PyTorch's tensors as arrays of xpgrad: the light module that the entry point names. PyTorch is imported when the backend is used."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_torch.backend import TorchBackend

    return TorchBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return tensors of PyTorch on the host, on CUDA devices, and on `meta`, where only shapes and dtypes are computed."""
    return BackendInfo(name="torch", load=_load, array_modules=("torch",), install="pip install torch", cuda=True)
