"""`xpgrad backends` and `xpgrad backends show NAME`: what is registered, and all that is known of one."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from xpgrad import registry
from xpgrad.backend import Capabilities

__all__ = ["capability_sentences", "list_backends", "show_backend"]

COLUMNS = ("name", "status", "version", "devices", "origin")


def list_backends(as_json: bool) -> int:
    """Print one row for each backend; 0 if one of them is ready, else 1."""
    rows = registry.survey()
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        widths = [max(len(c), *(len(r[c]) for r in rows)) if rows else len(c) for c in COLUMNS]
        for row in ({c: c for c in COLUMNS}, *rows):
            print("  ".join(row[c].ljust(w) for c, w in zip(COLUMNS, widths)).rstrip())
        for row in rows:
            if row["cause"]:
                print(f"\n{row['name']}: {row['cause']}")
    return 0 if any(r["status"] == "ready" for r in rows) else 1


def capability_sentences() -> dict[str, str]:
    """What each capability means, from the docstring that declares them."""
    found: dict[str, str] = {}
    for line in (Capabilities.__doc__ or "").splitlines():
        match = re.match(r" {4}([a-z_0-9, ]+) : (.+)", line)
        if match:
            for name in match[1].split(", "):
                found[name] = match[2]
    return found


def show_backend(name: str, as_json: bool) -> int:
    """Print what is known of one backend; 0 if it is ready, else 1."""
    row: dict[str, Any] | None = next((r for r in registry.survey(only=name) if r["name"] == name), None)
    if row is None:
        print(f"no such backend: {name!r}; registered backends: {', '.join(registry.backend_names()) or 'none'}")
        return 1
    facts: dict[str, Any] = dict(row)
    if row["status"] == "ready":
        backend = registry.backend_for(name)
        info = registry.describe(name)
        facts["variants"] = list(info.variants)
        facts["array types"] = [f"{t.__module__}.{t.__qualname__}" for t in backend.array_types()]
        facts["dtypes"] = [d.name for d in backend.dtypes()]
        facts["own kernels"] = sorted(backend.overrides)
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
