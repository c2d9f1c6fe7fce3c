"""The entry point of xpgrad's backend for PyTorch. Importing this module does not import PyTorch; using the backend does."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_torch.backend import TorchBackend

    return TorchBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: PyTorch's tensors on the host, on CUDA, and on `meta`, which has shapes and dtypes only."""
    return BackendInfo(name="torch", load=_load, array_modules=("torch",), install="pip install torch", cuda=True)
