"""The entry point of xpgrad's backend for array-api-strict. Importing this module does not import array-api-strict."""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["xpgrad_backend"]

#: By variant: the version of the standard. Without a variant, it is the latest that the installed array-api-strict has.
VERSIONS = {"2023-12": "2023.12", "2024-12": "2024.12", "2025-12": "2025.12"}


def _load(variant: str | None) -> Backend:
    from xpgrad_strict.backend import StrictBackend

    return StrictBackend(variant)


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: ``strict``, or ``strict+2023-12`` and the like; a process uses one of them."""
    return BackendInfo(
        name="strict", load=_load, array_modules=("array_api_strict",), variants=tuple(VERSIONS), install="pip install xpgrad-strict"
    )
