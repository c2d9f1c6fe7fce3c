"""`xpgrad backends` and `xpgrad backends show NAME`: list the registered backends, and describe one."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from typing import Any

from xpgrad import registry
from xpgrad._array.kernels import DefaultKernels
from xpgrad._rows.row import ROWS
from xpgrad.backend import Backend, Capabilities
from xpgrad.errors import XpgradError

COLUMNS = ("name", "status", "version", "devices", "origin")
#: The order of the list: what works first, what is not there last.
_ORDER = ("ready", "incompatible", "broken", "disabled", "not installed")


def list_backends(as_json: bool) -> int:
    """Print a row per backend, those that are ready first; return 0 if one is ready, else 1."""
    rows = registry.survey()
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        rows.sort(key=lambda row: _ORDER.index(row["status"]))
        widths = [max(len(c), *(len(r[c]) for r in rows)) if rows else len(c) for c in COLUMNS]
        for row in ({c: c for c in COLUMNS}, *rows):
            print("  ".join(row[c].ljust(w) for c, w in zip(COLUMNS, widths)).rstrip())
        for row in rows:
            if row["cause"]:
                print(f"\n{row['name']}: {row['cause']}")
    return 0 if any(r["status"] == "ready" for r in rows) else 1


def capability_sentences() -> dict[str, str]:
    """Return the meaning of each capability from the docstring of `Capabilities`."""
    entries = re.findall(r"^(\w+) : bool\n((?: {4}.+\n)+)", inspect.getdoc(Capabilities) or "", re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def own_kernels(backend: Backend) -> list[str]:
    """Return the names of the kernels that a backend provides, in its table `overrides` or by its method `kernel`."""
    names = {*backend.overrides, *ROWS, *(n for n in vars(DefaultKernels) if not n.startswith("_"))}
    return sorted(name for name in names if backend.kernel(name) is not None)


def show_backend(table: str, as_json: bool) -> int:
    """Describe a backend, ``name`` or ``name+variant``; return 0 if it is ready, else 1."""
    name = table.partition("+")[0]
    row: dict[str, Any] | None = next((r for r in registry.survey(only=name) if r["name"] == name), None)
    if row is None:
        print(f"no such backend: {name!r}; registered backends: {', '.join(registry.backend_names()) or 'none'}")
        return 1
    facts: dict[str, Any] = dict(row)
    if row["status"] == "ready":
        try:
            backend = registry.backend_for(table)
        except XpgradError as exc:
            print(exc)
            return 1
        info = registry.describe(name)
        facts["name"], facts["devices"] = table, ", ".join(map(str, backend.devices()))
        facts["about"] = inspect.getdoc(type(backend)) or ""
        facts["variants"] = list(info.variants)
        facts["array types"] = [f"{t.__module__}.{t.__qualname__}" for t in backend.array_types()]
        facts["dtypes"] = [d.name for d in backend.dtypes()]
        facts["own kernels"] = own_kernels(backend)
        facts["missing functions"] = sorted(backend.missing)
        facts["capabilities"] = {f.name: getattr(backend.capabilities, f.name) for f in dataclasses.fields(Capabilities)}
    if as_json:
        print(json.dumps(facts, indent=2))
        return 0 if row["status"] == "ready" else 1
    sentences = capability_sentences()
    for key, value in facts.items():
        if key == "capabilities":
            print("capabilities:")
            for capability, there in value.items():
                print(f"  {'yes' if there else 'no ':3}  {capability}: {sentences.get(capability, '')}")
        elif value:
            print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")
    return 0 if row["status"] == "ready" else 1
