"""Register plugins of this repository for the tests, whether installed or not: xpgrad-strict and xpgrad-simstream."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from xpgrad.registry import backend_names, register_backend

__all__ = ["register"]


def register(name: str) -> None:
    """Register the backend of a plugin unless it is registered already."""
    if name not in backend_names():
        folder = Path(__file__).resolve().parents[2] / "plugins" / f"xpgrad-{name}" / f"xpgrad_{name}"
        spec = importlib.util.spec_from_file_location(folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # the plugin's other modules are imported by this name later
        spec.loader.exec_module(module)
        register_backend(module.xpgrad_backend())
