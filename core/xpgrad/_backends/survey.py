"""List the registered backends and their states, for `xpgrad backends`."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from xpgrad._backends.loading import REGISTERED, VersionMismatch, allowed_names, backend_for, discover, load_info, providers
from xpgrad.backend import BackendInfo
from xpgrad.errors import BackendLoadError


def survey(only: str | None = None) -> list[dict[str, str]]:
    """Try to load every registered backend, and describe each by a row.

    The status is ``ready``, ``disabled`` (by ``XPGRAD_BACKENDS``), ``not installed`` (the library is missing, or finds no hardware),
    ``incompatible`` (the plugin was written for another version of the interface) or ``broken`` (any other failure).

    Parameters
    ----------
    only : str, optional
        Try only this backend.

    Returns
    -------
    list of dict
        A row per registered backend, sorted by name: `name`, `status`, `version`, `devices`, `origin`, and the `cause` of a
        failure.

    Examples
    --------
    >>> from xpgrad import registry
    >>> [row["status"] for row in registry.survey() if row["name"] == "numpy"]
    ['ready']
    """
    rows = []
    allowed = allowed_names()
    for name in sorted({*discover(), *REGISTERED} if only is None else {only} & {*discover(), *REGISTERED}):
        row = {"name": name, "status": "ready", "version": "", "devices": "", "origin": "", "cause": ""}
        row["origin"] = "; ".join(p.origin for p in providers(name))
        rows.append(row)
        if allowed is not None and name not in allowed:
            row["status"] = "disabled"
            continue
        try:
            info = load_info(name, allowed)
        except BackendLoadError as exc:
            row["status"], row["cause"] = "incompatible" if isinstance(exc.__cause__, VersionMismatch) else "broken", str(exc)
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
    """Return whether loading failed because the library is missing, and not because of an error in the plugin.

    An ImportError that names a module of the plugin or of xpgrad, or an imported module that lacks a name, is an error in the plugin.
    """
    if not isinstance(cause, ImportError):
        return False
    module = (cause.name or "").partition(".")[0]
    own = {p.entry.module.partition(".")[0] for p in providers(name) if p.entry is not None}
    return not module or (module not in own and module not in sys.modules)


def _library_version(info: BackendInfo) -> str:
    """Return the version of a backend's array library; empty if it cannot be determined."""
    for module in info.array_modules:
        found = getattr(sys.modules.get(module), "__version__", None)
        if found is not None:
            return str(found)
        try:
            return version(module.replace("_", "-"))
        except PackageNotFoundError:
            continue
    return ""
