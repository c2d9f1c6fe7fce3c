"""The hook that a backend plugin implements, and the markers for both sides."""

from __future__ import annotations

import pluggy

from xpgrad._basics.faces import public_names
from xpgrad.backend import BackendInfo

__all__ = ["hookimpl", "hookspec"]


def __dir__() -> list[str]:
    return public_names(__name__, "xpgrad_backend")  # NB: pluggy finds the hooks by `dir`


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
