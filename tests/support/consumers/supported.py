"""Find the functions whose libraries declare that they accept other libraries' arrays, by asking the libraries themselves."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["supported"]

#: SciPy's public modules: its table of capabilities has function objects, and their public names are found in these modules.
SCIPY = """cluster.hierarchy cluster.vq constants differentiate fft integrate interpolate linalg ndimage optimize signal signal.windows
spatial spatial.distance special stats stats.mstats"""


def supported() -> set[str]:
    """Return the names of all supported functions of the three libraries."""
    return {*_scipy(), *_sklearn(), *_array_api_extra()}


def _scipy() -> set[str]:
    """Return SciPy's functions that run on another library's arrays on the CPU; a function with several names gets the first of them."""
    tables: Any = importlib.import_module("scipy._lib._array_api_docs_tables")
    names: dict[Any, str] = {}
    for module in (f"scipy.{name}" for name in SCIPY.split()):
        for entry in tables.make_flat_capabilities_table(module, "cpu"):
            if tables.BackendSupportStatus.YES in entry.values():
                names.setdefault(getattr(importlib.import_module(module), entry["function"]), f"{module}.{entry['function']}")
    return set(names.values())


def _sklearn() -> set[str]:
    """Return the estimators whose tags declare array API support, and the metrics that scikit-learn's tests run on other arrays."""
    found = set()
    tags: Any = importlib.import_module("sklearn.utils")
    for _, estimator in importlib.import_module("sklearn.utils.discovery").all_estimators():
        try:
            says = tags.get_tags(estimator()).array_api_support
        except (TypeError, AttributeError):  # A meta-estimator needs another estimator as argument: those are listed by hand in the table.
            continue
        if says:
            found.add(_public(estimator))
    checkers: Any = importlib.import_module("sklearn.metrics.tests.test_common").array_api_metric_checkers
    return found | {_public(getattr(metric, "func", metric)) for metric in checkers}


def _public(thing: Any) -> str:
    """Return the name under which users import a class or function of scikit-learn."""
    parts = [part for part in thing.__module__.split(".") if not part.startswith("_") and part != "glm"]  # from a private module
    return ".".join([*parts, thing.__name__])


def _array_api_extra() -> set[str]:
    extra: Any = importlib.import_module("array_api_extra")
    names = {name for name in extra.__all__ if name not in ("__version__", "testing")}
    return {f"array_api_extra.{name}" for name in names}
