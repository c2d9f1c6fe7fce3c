"""The emitters that `xpgrad.compile` can use: those built in, and those of plugins."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from xpgrad._backends.loading import call_hook
from xpgrad._basics.arguments import shown
from xpgrad._basics.threads import renew_in_children
from xpgrad.emitter import EmitterInfo
from xpgrad.errors import BackendLoadError

__all__ = ["chosen_emitter", "emitter_for", "emitter_names", "register_emitter"]

GROUP = "xpgrad.emitters"
_registered: dict[str, EmitterInfo] = {}
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")


def emitter_names() -> list[str]:
    """Return the sorted names of all emitters, without loading any.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from xpgrad import registry
    >>> {"array-api", "c", "native", "numpy"} <= set(registry.emitter_names())
    True
    """
    return sorted({*BUILT_IN, *_registered, *_entries()})


def register_emitter(info: EmitterInfo) -> None:
    """Register an emitter by hand, for notebooks and tests.

    Parameters
    ----------
    info : EmitterInfo

    Raises
    ------
    TypeError
        `info` is not an `EmitterInfo`.
    ValueError
        Another emitter has that name.

    Examples
    --------
    >>> import xpgrad as xp
    >>> info = xp.emitter.EmitterInfo("numpy", function=print, source=print)
    >>> try:
    ...     xp.registry.register_emitter(info)
    ... except ValueError as exc:
    ...     print(exc)
    an emitter named 'numpy' is registered already; choose another name
    """
    if not isinstance(info, EmitterInfo):
        msg = f"register_emitter needs an EmitterInfo, but got {type(info).__name__}"
        raise TypeError(msg)
    with _LOCK:
        if _registered.get(info.name, info) != info or info.name in BUILT_IN or info.name in _entries():
            msg = f"an emitter named {info.name!r} is registered already; choose another name"
            raise ValueError(msg)
        _registered[info.name] = info


def emitter_for(name: str) -> EmitterInfo:
    """Return the emitter with a name.

    Raises
    ------
    ValueError
        No emitter has that name.
    BackendLoadError
        Its plugin does not load.
    """
    found = BUILT_IN.get(name) or _registered.get(name)
    if found is not None:
        return found
    entry = _entries().get(name)
    if entry is None:
        msg = f"no such emitter: {name!r}; there are {', '.join(map(repr, emitter_names()))}"
        raise ValueError(msg)
    origin = f"emitter {name!r} (entry point {entry.value!r})"
    infos = call_hook(entry, name, origin, "xpgrad_emitter")
    if len(infos) != 1 or not isinstance(infos[0], EmitterInfo) or infos[0].name != name:
        msg = f"{origin} must implement `xpgrad_emitter` once and return an EmitterInfo named {name!r}, but gave {infos!r}"
        raise BackendLoadError(msg)
    with _LOCK:
        return _registered.setdefault(name, infos[0])


def chosen_emitter(name: str | None) -> EmitterInfo | None:
    """Return the emitter of a name or, without one, that of ``XPGRAD_EMITTER``; None if neither is given, so that the backend chooses.

    Raises
    ------
    TypeError
        `name` is not a string.
    ValueError
        No emitter has that name.
    BackendLoadError
        Its plugin does not load.
    """
    if name is not None and not isinstance(name, str):
        msg = f"compile needs the name of an emitter as `emitter`, but got {shown(name)}"
        raise TypeError(msg)
    name = name if name is not None else os.environ.get("XPGRAD_EMITTER", "").strip() or None
    return None if name is None else emitter_for(name)


def _entries() -> dict[str, Any]:
    """Return the entry points of plugins by name."""
    from importlib.metadata import entry_points  # loads late: it costs as much as `import xpgrad`

    return {entry.name: entry for entry in entry_points(group=GROUP)}


# -- the emitter for every library ------------------------------------------------------------------------------------------------


def _array_api_function(program: Any, backend: Any, threads: int | None) -> Callable[..., tuple[Any, ...]]:
    from xpgrad.programs.emission import array_api_function  # loads late: only programs that compile need it

    return array_api_function(program, backend)


def _array_api_text(program: Any, backend: Any, threads: int | None) -> str:
    from xpgrad.programs.emission import array_api_source  # loads late: the same

    return array_api_source(program, backend=backend).text


BUILT_IN: dict[str, EmitterInfo] = {"array-api": EmitterInfo("array-api", _array_api_function, _array_api_text, loops=True)}
