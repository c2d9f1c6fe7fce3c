"""Find backends by entry point or registration, and load them at first use."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from xpgrad._array.classes import backend_class
from xpgrad._basics.threads import renew_in_children
from xpgrad.backend import API_VERSION, Backend, BackendInfo
from xpgrad.errors import BackendLoadError, BackendNotFoundError

GROUP = "xpgrad.backends"


class VersionMismatch(Exception):
    """Raised for a plugin that was written for another version of the interface."""


@dataclass
class _Provider:
    """A source of a backend: an entry point, or an object that was registered by hand."""

    name: str
    origin: str
    entry: Any = None  # importlib.metadata.EntryPoint
    info: BackendInfo | None = None


LOCK = threading.RLock()  # NB: read it from this module each time: a child process gets another one
renew_in_children(globals(), "LOCK")

_found: dict[str, list[_Provider]] | None = None
REGISTERED: dict[str, _Provider] = {}
_infos: dict[str, BackendInfo] = {}
LOADED: dict[str, Backend] = {}


def discover() -> dict[str, list[_Provider]]:
    """Return the entry points of all backends by name; they are scanned once, and nothing is imported."""
    global _found
    with LOCK:
        if _found is None:
            from importlib.metadata import entry_points  # loads late: it takes as long as `import xpgrad`

            found: dict[str, list[_Provider]] = {}
            for entry in entry_points(group=GROUP):
                dist = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown distribution"
                known = found.setdefault(entry.name, [])
                # The identical entry is seen twice when a distribution is on the path twice: that is not a conflict.
                if all(p.entry.value != entry.value for p in known):
                    known.append(_Provider(entry.name, f"entry point {entry.name!r} = {entry.value!r} of {dist}", entry))
            _found = found
        return _found


def allowed_names() -> set[str] | None:
    """Return the names that ``XPGRAD_BACKENDS`` allows; None for all, if it is unset or empty."""
    value = os.environ.get("XPGRAD_BACKENDS", "")
    return {name.strip() for name in value.split(",") if name.strip()} or None


def backend_names() -> list[str]:
    """Return the sorted names of the registered backends that ``XPGRAD_BACKENDS`` allows, without loading any.

    Returns
    -------
    list of str
        The libraries of these backends need not be installed.

    Examples
    --------
    >>> import xpgrad as xp
    >>> "numpy" in xp.backend_names()
    True
    """
    allowed = allowed_names()
    names = {*discover(), *REGISTERED}
    return sorted(n for n in names if allowed is None or n in allowed)


def register_backend(info: BackendInfo) -> None:
    """Register a backend by hand, for notebooks and tests.

    Parameters
    ----------
    info : BackendInfo

    Raises
    ------
    ValueError
        Another provider has that name.
    TypeError
        `info` is not a `BackendInfo`.
    BackendLoadError
        A field of it has the wrong type, or it was written for another version of the interface.

    Examples
    --------
    >>> import xpgrad as xp
    >>> info = xp.backend.BackendInfo(name="numpy", load=lambda variant: ...)
    >>> try:
    ...     xp.register_backend(info)
    ... except ValueError as exc:
    ...     print(exc)
    a backend named 'numpy' is registered already; choose another name, or uninstall the other provider
    """
    if not isinstance(info, BackendInfo):
        msg = f"register_backend needs a BackendInfo, but got {type(info).__name__}; return one from your `xpgrad_backend` hook"
        raise TypeError(msg)
    _check_info(info, info.name, f"register_backend({info.name!r})")
    with LOCK:
        old = REGISTERED.get(info.name)
        if (old is not None and old.info != info) or (old is None and info.name in discover()):
            msg = f"a backend named {info.name!r} is registered already; choose another name, or uninstall the other provider"
            raise ValueError(msg)
        REGISTERED[info.name] = _Provider(info.name, "register_backend", info=info)


def _check_info(info: BackendInfo, name: str, origin: str) -> None:
    """Raise if the `BackendInfo` of a plugin is malformed, before anything relies on it."""
    try:
        major, minor = map(int, info.api_version)
    except (TypeError, ValueError) as exc:
        msg = f"{origin} gave api_version={info.api_version!r}, but it must be two integers, e.g. {API_VERSION}"
        raise BackendLoadError(msg) from exc
    if major != API_VERSION[0] or minor > API_VERSION[1]:
        msg = (
            f"backend {info.name!r} ({origin}) was written for version {major}.{minor} of xpgrad's plugin interface, but this is "
            f"{API_VERSION[0]}.{API_VERSION[1]}; install a matching version of the plugin or of xpgrad"
        )
        raise BackendLoadError(msg) from VersionMismatch(f"{major}.{minor}")
    if info.name != name:
        msg = f"{origin} describes a backend named {info.name!r}; the entry point's name and the backend's must be equal"
        raise BackendLoadError(msg)
    wrong = None
    if not callable(info.load):
        wrong = f"load={info.load!r}, expected a function that takes the variant and returns the Backend"
    for field in ("array_modules", "variants"):
        value = getattr(info, field)
        # NB: a plain string would be searched letter by letter.
        if not isinstance(value, tuple) or not all(isinstance(v, str) for v in value):
            wrong = f"{field}={value!r}, expected a tuple of strings"
    if not isinstance(info.cuda, bool):
        wrong = f"cuda={info.cuda!r}, expected a bool"
    if not isinstance(info.install, str):
        wrong = f"install={info.install!r}, expected a string"
    if wrong is not None:
        raise BackendLoadError(f"the description of backend {name!r} ({origin}) is wrong: {wrong}")


def load_info(name: str, allowed: set[str] | None) -> BackendInfo:
    """Return the `BackendInfo` of a name; this imports the plugin's entry point, but not its library."""
    if allowed is not None and name not in allowed:
        msg = f"backend {name!r} is disabled by XPGRAD_BACKENDS={os.environ['XPGRAD_BACKENDS']!r}; add it there, or unset the variable"
        raise BackendNotFoundError(msg)
    info = _infos.get(name)
    if info is not None:
        return info
    providers = list(discover().get(name, ()))
    if name in REGISTERED:
        providers.append(REGISTERED[name])
    if not providers:
        names = ", ".join(backend_names()) or "none"
        msg = (
            f"no such backend: {name!r}; registered backends: {names}. A backend comes with a plugin, a package that has an entry point in "
            f"the group {GROUP!r}; install the one that you want, and `xpgrad backends` lists it"
        )
        raise BackendNotFoundError(msg)
    if len(providers) > 1:
        msg = f"backend {name!r} has {len(providers)} providers: {'; '.join(p.origin for p in providers)}; uninstall all but one"
        raise BackendLoadError(msg)
    provider = providers[0]
    info = provider.info or load_entry(provider)
    _check_info(info, name, provider.origin)
    _infos[name] = info
    return info


def call_hook(entry: Any, name: str, origin: str, hook: str) -> list[Any]:
    """Import a plugin's entry point, and return what its implementations of a hook return.

    Raises
    ------
    BackendLoadError
        The module does not load.
    """
    import pluggy  # loads late: with the first plugin

    from xpgrad import hookspecs  # loads late: it imports pluggy

    # One manager per plugin, and not `load_setuptools_entrypoints`, with which one broken plugin would disable all others.
    manager = pluggy.PluginManager("xpgrad")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(entry.load(), name=name)
        manager.check_pending()
        found: list[Any] = getattr(manager.hook, hook)()
    except (Exception, SystemExit) as exc:  # a plugin that exits must not end the program
        msg = f"{origin} could not be loaded: {type(exc).__name__}: {exc}. Repair or uninstall it"
        raise BackendLoadError(msg) from exc
    return found


def load_entry(provider: _Provider) -> BackendInfo:
    """Import a plugin's entry point, and return the `BackendInfo` of its hook.

    Raises
    ------
    BackendLoadError
        The module does not load, or its hook returns something else.
    """
    infos = call_hook(provider.entry, provider.name, f"backend {provider.name!r} ({provider.origin})", "xpgrad_backend")
    if len(infos) != 1 or not isinstance(infos[0], BackendInfo):
        msg = (
            f"{provider.origin} must implement `xpgrad_backend` once and return a BackendInfo, but gave {infos!r}; mark that function, and "
            "no other, with `xpgrad.hookspecs.hookimpl`"
        )
        raise BackendLoadError(msg)
    info: BackendInfo = infos[0]
    return info


def backend_for(table: str) -> Backend:
    """Return the backend for ``name`` or ``name+variant``, and load it at its first use.

    Parameters
    ----------
    table : str
        The name of a backend, with its variant if it has one: ``numpy+readonly``.

    Returns
    -------
    Backend
        The same object at each call.

    Raises
    ------
    BackendNotFoundError
        No backend, or no variant of it, has that name.
    BackendLoadError
        The backend does not load.

    Examples
    --------
    >>> from xpgrad import registry
    >>> registry.backend_for("numpy").name
    'numpy'
    """
    found = LOADED.get(table)
    if found is not None:
        return found
    with LOCK:
        if table in LOADED:
            return LOADED[table]
        name, _, variant = table.partition("+")
        info = load_info(name, allowed_names())
        if variant and variant not in info.variants:
            known = ", ".join(f"'{name}+{v}'" for v in info.variants) or "none"
            msg = f"backend {name!r} has no variant {variant!r}; its variants: {known}"
            raise BackendNotFoundError(msg)
        try:
            backend = info.load(variant or None)
        except (Exception, SystemExit) as exc:
            way_out = f" Install what it needs with `{info.install}`." if info.install else ""
            if not way_out and isinstance(exc, ModuleNotFoundError):
                way_out = f" Install the distribution with the module {exc.name!r}, with `pip install`."
            msg = f"backend {name!r} is registered but not available: {type(exc).__name__}: {str(exc).rstrip('.')}.{way_out}"
            raise BackendLoadError(msg) from exc
        if not isinstance(backend, Backend) or backend.table_name != table:
            given = f"one named {backend.table_name!r}" if isinstance(backend, Backend) else repr(backend)
            msg = f"backend {name!r}: `load({variant or None!r})` returned {given}, expected a Backend named {table!r}"
            raise BackendLoadError(msg)
        backend.tensor_base = backend_class(backend)
        LOADED[table] = backend
        return backend


def loaded_backends() -> list[Backend]:
    """Return the loaded backends, in the order in which they were loaded."""
    return list(LOADED.values())


def providers(name: str) -> list[_Provider]:
    """Return all providers of a backend name, without importing them."""
    return [*discover().get(name, ()), *([REGISTERED[name]] if name in REGISTERED else [])]


def describe(name: str) -> BackendInfo:
    """Return the `BackendInfo` of a plugin; this imports its entry point, but not its library.

    Raises
    ------
    BackendNotFoundError, BackendLoadError
    """
    return load_info(name, allowed_names())
