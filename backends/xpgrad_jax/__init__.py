"""The entry point of the JAX backend. Importing this module does not import JAX."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]


def _load(variant: str | None) -> Backend:
    from xpgrad_jax._backend import JaxBackend

    return JaxBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Describe the backend: JAX arrays on every device of JAX."""
    return BackendInfo(name="jax", load=_load, array_modules=("jax", "jaxlib"), install="pip install 'xpgrad[jax]'", cuda=True)
