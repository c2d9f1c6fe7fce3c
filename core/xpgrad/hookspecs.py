"""The hooks that plugins implement, and the pluggy markers for specifications and implementations."""

from __future__ import annotations

import pluggy

from xpgrad._basics.faces import public_names
from xpgrad.backend import BackendInfo
from xpgrad.emitter import EmitterInfo

__all__ = ["hookimpl", "hookspec"]


def __dir__() -> list[str]:
    return public_names(__name__, "xpgrad_backend", "xpgrad_emitter")  # NB: pluggy finds the hooks by `dir`


hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker("xpgrad")
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker("xpgrad")


@hookspec
def xpgrad_backend() -> BackendInfo:
    """Describe the backend. It is called once, and must not import the array library.

    Returns
    -------
    BackendInfo
        Name of the backend, its loader, and the modules whose arrays it takes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad import hookspecs
    >>> class Plugin:
    ...     @hookspecs.hookimpl
    ...     def xpgrad_backend(self):
    ...         return xp.backend.BackendInfo(name="mine", load=lambda variant: ...)
    >>> Plugin().xpgrad_backend().name
    'mine'
    """


@hookspec
def xpgrad_emitter() -> EmitterInfo:
    """Describe an emitter for `xpgrad.compile`. It is called once, when the emitter is first asked for.

    Returns
    -------
    EmitterInfo
        Name of the emitter, and its functions.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad import hookspecs
    >>> class Plugin:
    ...     @hookspecs.hookimpl
    ...     def xpgrad_emitter(self):
    ...         return xp.emitter.EmitterInfo("mine", function=lambda *args: ..., source=lambda *args: "")
    >>> Plugin().xpgrad_emitter().name
    'mine'
    """
