"""Finding backends: entry points and registrations, loaded at first use, each failure told apart and explained.

Nothing is scanned at ``import xpgrad``; nothing is imported for a backend that is not used.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpgrad._device import Device
from xpgrad.backend import API_VERSION, Backend, BackendInfo
from xpgrad.errors import BackendLoadError, BackendNotFoundError

__all__ = ["backend_for", "backend_names", "class_for_array", "register_backend", "tensor_class"]

GROUP = "xpgrad.backends"


class _VersionMismatch(Exception):
    """Why a plugin is incompatible: the version it was written for."""


@dataclass
class _Provider:
    """One source of a backend: an entry point, or an object registered by hand."""

    name: str
    origin: str
    entry: Any = None  # importlib.metadata.EntryPoint
    info: BackendInfo | None = None


_LOCK = threading.RLock()
_found: dict[str, list[_Provider]] | None = None
_registered: dict[str, _Provider] = {}
_infos: dict[str, BackendInfo] = {}
_backends: dict[str, Backend] = {}
_classes: dict[str, Any] = {}
_host: Backend | None = None
_listeners: list[Callable[[Any], None]] = []


def _discover() -> dict[str, list[_Provider]]:
    """All providers by name: scanned once, nothing imported."""
    global _found
    with _LOCK:
        if _found is None:
            from importlib.metadata import entry_points

            found: dict[str, list[_Provider]] = {}
            for entry in entry_points(group=GROUP):
                dist = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown distribution"
                known = found.setdefault(entry.name, [])
                # The identical entry is seen twice when a distribution lies on the path twice: that is no conflict.
                if all(p.entry.value != entry.value for p in known):
                    known.append(_Provider(entry.name, f"entry point {entry.name!r} = {entry.value!r} of {dist}", entry))
            _found = found
        return _found


def _allowed() -> set[str] | None:
    """The names that ``XPGRAD_BACKENDS`` allows: None for all."""
    value = os.environ.get("XPGRAD_BACKENDS")
    return None if value is None else {name.strip() for name in value.split(",") if name.strip()}


def backend_names() -> list[str]:
    """Names of the registered backends that ``XPGRAD_BACKENDS`` does not disable, sorted; loads none of them."""
    allowed = _allowed()
    names = {*_discover(), *_registered}
    return sorted(n for n in names if allowed is None or n in allowed)


def register_backend(info: BackendInfo) -> None:
    """Register a backend by hand, for notebooks and tests.

    Parameters
    ----------
    info : BackendInfo

    Raises
    ------
    ValueError
        If another provider already has that name.
    TypeError, BackendLoadError
        If `info` is no `BackendInfo`, or a field of it is not what `BackendInfo` says, or it was written for another version of the
        interface.
    """
    if not isinstance(info, BackendInfo):
        msg = f"register_backend needs a BackendInfo, but got {type(info).__name__}; return one from your `xpgrad_backend` hook"
        raise TypeError(msg)
    _check_info(info, info.name, f"register_backend({info.name!r})")
    with _LOCK:
        old = _registered.get(info.name)
        if (old is not None and old.info != info) or (old is None and info.name in _discover()):
            msg = f"a backend named {info.name!r} is registered already; choose another name, or uninstall the other provider"
            raise ValueError(msg)
        _registered[info.name] = _Provider(info.name, "register_backend", info=info)


def _check_info(info: BackendInfo, name: str, origin: str) -> None:
    """Refuse what a plugin says of itself if it is malformed, before anybody relies on it."""
    try:
        major, minor = map(int, info.api_version)
    except (TypeError, ValueError) as exc:
        msg = f"{origin} gave api_version={info.api_version!r}, expected two integers, e.g. {API_VERSION}"
        raise BackendLoadError(msg) from exc
    if major != API_VERSION[0] or minor > API_VERSION[1]:
        msg = (
            f"backend {info.name!r} ({origin}) was written for version {major}.{minor} of xpgrad's plugin interface, but this is "
            f"{API_VERSION[0]}.{API_VERSION[1]}; install a matching version of the plugin or of xpgrad"
        )
        raise BackendLoadError(msg) from _VersionMismatch(f"{major}.{minor}")
    if info.name != name:
        msg = f"{origin} describes a backend named {info.name!r}; the entry point's name and the backend's must be equal"
        raise BackendLoadError(msg)
    wrong = None
    if not callable(info.load):
        wrong = f"load={info.load!r}, expected a function of the variant that returns the Backend"
    for field in ("array_modules", "variants"):
        value = getattr(info, field)
        # NB: a plain string would be searched letter by letter.
        if not isinstance(value, tuple) or not all(isinstance(v, str) for v in value):
            wrong = f"{field}={value!r}, expected a tuple of strings"
    if not isinstance(info.install, str):
        wrong = f"install={info.install!r}, expected a string"
    if wrong is not None:
        raise BackendLoadError(f"backend {name!r} ({origin}) is described wrongly: {wrong}")


def _describe(name: str, allowed: set[str] | None) -> BackendInfo:
    """The `BackendInfo` of a name: imports the plugin's light module, not its library."""
    if allowed is not None and name not in allowed:
        msg = f"backend {name!r} is disabled by XPGRAD_BACKENDS={os.environ['XPGRAD_BACKENDS']!r}; add it there, or unset the variable"
        raise BackendNotFoundError(msg)
    info = _infos.get(name)
    if info is not None:
        return info
    providers = list(_discover().get(name, ()))
    if name in _registered:
        providers.append(_registered[name])
    if not providers:
        names = ", ".join(backend_names()) or "none"
        msg = f"no such backend: {name!r}; registered backends: {names}. A backend comes with a plugin, e.g. `pip install xpgrad-{name}`"
        raise BackendNotFoundError(msg)
    if len(providers) > 1:
        msg = f"backend {name!r} has {len(providers)} providers: {'; '.join(p.origin for p in providers)}; uninstall all but one"
        raise BackendLoadError(msg)
    provider = providers[0]
    info = provider.info or _load_entry(provider)
    _check_info(info, name, provider.origin)
    _infos[name] = info
    return info


def _load_entry(provider: _Provider) -> BackendInfo:
    import pluggy

    from xpgrad import hookspecs

    # NB: one manager per plugin, and never `load_setuptools_entrypoints`: one broken plugin would take down all others.
    manager = pluggy.PluginManager("xpgrad")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(provider.entry.load(), name=provider.name)
        manager.check_pending()
        infos = manager.hook.xpgrad_backend()
    except (Exception, SystemExit) as exc:  # a plugin that gives up must not end the program
        msg = f"backend {provider.name!r} ({provider.origin}) could not be loaded: {type(exc).__name__}: {exc}. Repair or uninstall it"
        raise BackendLoadError(msg) from exc
    if len(infos) != 1 or not isinstance(infos[0], BackendInfo):
        msg = (
            f"{provider.origin} must implement `xpgrad_backend` once and return a BackendInfo, but gave {infos!r}; mark that function, and "
            "no other, with `xpgrad.hookspecs.hookimpl`"
        )
        raise BackendLoadError(msg)
    info: BackendInfo = infos[0]
    return info


def backend_for(table: str) -> Backend:
    """The loaded backend for ``name`` or ``name+variant``.

    Raises
    ------
    BackendNotFoundError
        If no backend, or no variant of it, has that name.
    BackendLoadError
        If there is one, but it does not load.
    """
    found = _backends.get(table)
    if found is not None:
        return found
    with _LOCK:
        if table in _backends:
            return _backends[table]
        name, _, variant = table.partition("+")
        info = _describe(name, _allowed())
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
        from xpgrad._tensor import backend_class

        backend.tensor_base = backend_class(backend)
        _backends[table] = backend
        return backend


def host_backend() -> Backend:
    """The table that reads Python data and prints arrays for every backend: NumPy's, also where ``XPGRAD_BACKENDS`` leaves it out."""
    global _host
    if _host is None:
        allowed = _allowed()
        _host = backend_for("numpy") if allowed is None or "numpy" in allowed else _describe("numpy", None).load(None)
    return _host


def tensor_class(device: Device) -> Any:
    """The class of Tensors on `device`.

    Raises
    ------
    BackendNotFoundError, BackendLoadError
        If the backend does not exist or load.
    ValueError
        If the backend has no such device.
    """
    cls = _classes.get(device._text)
    if cls is None:
        from xpgrad._tensor import device_class

        backend = backend_for(device.table)
        devices = list(backend.devices())
        wanted = device if device in devices else None
        if wanted is None and device.kind is None and device.index is None:
            wanted = devices[0]
        if wanted is None:
            msg = f"backend {device.table!r} has no device {str(device)!r}; its devices: {', '.join(map(repr, map(str, devices)))}"
            raise ValueError(msg)
        with _LOCK:
            cls = _classes.get(str(wanted))
            if cls is None:
                cls = device_class(backend, wanted)
                for listener in _listeners:
                    listener(cls)
            _classes[str(wanted)] = _classes[str(device)] = cls
    return cls


def when_class_is_made(listener: Callable[[Any], None]) -> None:
    """Call `listener` with each Tensor class, one per device, as it is made; for backends that must tell their library of them."""
    _listeners.append(listener)


def class_for_array(array: Any) -> Any:
    """The Tensor class for a raw array, by its type; None if no registered backend takes it.

    The backend that is named like the array's library comes first, whichever is loaded: the answer does not depend on what was used
    before, and no other plugin is imported to find it.
    """
    top = type(array).__module__.partition(".")[0]
    backend = _backends.get(top)
    if backend is not None and isinstance(array, backend.array_types()):
        return tensor_class(backend.device_of(array))
    for name in sorted(backend_names(), key=lambda n: n != top):
        backend = _backends.get(name)
        if backend is None:
            try:
                info = _describe(name, _allowed())
            except BackendLoadError:
                continue  # a broken plugin must not stand in the way of an array that may belong to another
            if top not in info.array_modules:
                continue
            backend = backend_for(name)
        if isinstance(array, backend.array_types()):
            return tensor_class(backend.device_of(array))
    return None


def providers(name: str) -> list[_Provider]:
    """Whoever claims to provide a backend of that name; imports nothing."""
    return [*_discover().get(name, ()), *([_registered[name]] if name in _registered else [])]


def describe(name: str) -> BackendInfo:
    """What a plugin says of itself; imports its light module, not its library.

    Raises
    ------
    BackendNotFoundError, BackendLoadError
    """
    return _describe(name, _allowed())


def survey(only: str | None = None) -> list[dict[str, str]]:
    """What is registered, by name: status, library version, devices, origin, and the cause of a failure. Loads what can be loaded.

    The status is ``ready``, ``disabled`` (by ``XPGRAD_BACKENDS``), ``not installed`` (its library is missing, or finds no hardware),
    ``incompatible`` (written for another version of the interface) or ``broken`` (anything else).

    Parameters
    ----------
    only : str, optional
        Look at this backend alone.
    """
    rows = []
    allowed = _allowed()
    for name in sorted({*_discover(), *_registered} if only is None else {only} & {*_discover(), *_registered}):
        row = {"name": name, "status": "ready", "version": "", "devices": "", "origin": "", "cause": ""}
        row["origin"] = "; ".join(p.origin for p in providers(name))
        rows.append(row)
        if allowed is not None and name not in allowed:
            row["status"] = "disabled"
            continue
        try:
            info = _describe(name, allowed)
        except BackendLoadError as exc:
            row["status"], row["cause"] = "incompatible" if isinstance(exc.__cause__, _VersionMismatch) else "broken", str(exc)
            continue
        try:
            backend = backend_for(name)
        except BackendLoadError as exc:
            row["status"], row["cause"] = "not installed" if _library_missing(exc.__cause__, name) else "broken", str(exc)
        else:
            try:
                row["devices"] = ", ".join(map(str, backend.devices()))
            except Exception as exc:  # noqa: BLE001 (a plugin's fault is one row of the list)
                row["status"], row["cause"] = "broken", f"backend {name!r}: `devices()` raised {type(exc).__name__}: {exc}"
        row["version"] = _library_version(info)
    return rows


def _library_missing(cause: BaseException | None, name: str) -> bool:
    """Whether loading failed for want of the library, not for a fault of the plugin.

    An ImportError that names a module of the plugin itself or of xpgrad, or one that is there and lacks something, is a fault.
    """
    import sys

    if not isinstance(cause, ImportError):
        return False
    module = (cause.name or "").partition(".")[0]
    own = {p.entry.module.partition(".")[0] for p in providers(name) if p.entry is not None}
    return not module or (module not in own and module not in sys.modules)


def _library_version(info: BackendInfo) -> str:
    """The version of a backend's array library; empty if it cannot be told."""
    import sys
    from importlib.metadata import PackageNotFoundError, version

    for module in info.array_modules:
        found = getattr(sys.modules.get(module), "__version__", None)
        if found is not None:
            return str(found)
        try:
            return version(module.replace("_", "-"))
        except PackageNotFoundError:
            continue
    return ""
