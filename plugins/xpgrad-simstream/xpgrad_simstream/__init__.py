"""The entry point of a backend that simulates streams without a GPU."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_simstream.backend import SimBackend

    return SimBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: NumPy arrays whose operations are queued on streams and checked for races."""
    return BackendInfo(name="simstream", load=_load, array_modules=("xpgrad_simstream",), install="pip install xpgrad-simstream")
