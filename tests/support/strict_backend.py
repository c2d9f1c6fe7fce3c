"""Register the plugin xpgrad-strict for the tests, whether installed or not: everything outside the standard raises there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from xpgrad.registry import backend_names, register_backend

__all__ = ["register"]


def register() -> None:
    """Register the backend unless it is registered already."""
    if "strict" not in backend_names():
        folder = Path(__file__).resolve().parents[2] / "plugins" / "xpgrad-strict" / "xpgrad_strict"
        spec = importlib.util.spec_from_file_location("xpgrad_strict", folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # the plugin's other modules are imported by this name later
        spec.loader.exec_module(module)
        register_backend(module.xpgrad_backend())
