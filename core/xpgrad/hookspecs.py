"""The hook that a backend plugin implements; markers for both sides."""

from __future__ import annotations

import pluggy

from xpgrad.backend import BackendInfo

__all__ = ["hookimpl", "hookspec"]

hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker("xpgrad")
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker("xpgrad")


@hookspec
def xpgrad_backend() -> BackendInfo:
    """Describe the backend; called once, must not import the array library."""
