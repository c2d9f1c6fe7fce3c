"""The functions of which their libraries say that they take other libraries' arrays, read from the libraries themselves."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["supported"]

#: SciPy's public modules; its table of capabilities knows functions, and these give them their names.
SCIPY = """cluster.hierarchy cluster.vq constants differentiate fft integrate interpolate linalg ndimage optimize signal signal.windows
spatial spatial.distance special stats stats.mstats"""


def supported() -> set[str]:
    """The names of all of them."""
    return {*_scipy(), *_sklearn(), *_array_api_extra()}


def _scipy() -> set[str]:
    """Those that run on another library's arrays on the CPU: a function with several names by the first."""
    tables: Any = importlib.import_module("scipy._lib._array_api_docs_tables")
    names: dict[Any, str] = {}
    for module in (f"scipy.{name}" for name in SCIPY.split()):
        for entry in tables.make_flat_capabilities_table(module, "cpu"):
            if tables.BackendSupportStatus.YES in entry.values():
                names.setdefault(getattr(importlib.import_module(module), entry["function"]), f"{module}.{entry['function']}")
    return set(names.values())


def _sklearn() -> set[str]:
    """The estimators whose tags say so, and the metrics that its own tests give other libraries' arrays."""
    found = set()
    tags: Any = importlib.import_module("sklearn.utils")
    for _, estimator in importlib.import_module("sklearn.utils.discovery").all_estimators():
        try:
            says = tags.get_tags(estimator()).array_api_support
        except (TypeError, AttributeError):  # one that is made of others: listed by hand, in the table
            continue
        if says:
            found.add(_public(estimator))
    checkers: Any = importlib.import_module("sklearn.metrics.tests.test_common").array_api_metric_checkers
    return found | {_public(getattr(metric, "func", metric)) for metric in checkers}


def _public(thing: Any) -> str:
    """The name under which users import a class or a function of scikit-learn."""
    parts = [part for part in thing.__module__.split(".") if not part.startswith("_") and part != "glm"]  # inside of a private module
    return ".".join([*parts, thing.__name__])


def _array_api_extra() -> set[str]:
    extra: Any = importlib.import_module("array_api_extra")
    names = {name for name in extra.__all__ if name not in ("__version__", "testing")}
    return {f"array_api_extra.{name}" for name in names}
