"""Sort the public names into the chapters of the reference, in the order in which they are read."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass

from xpgrad_reference.names import Name

#: The chapters of the package's own functions, by the module that declares them.
OF_THE_STANDARD = {
    "Creation": ("rules.creation",),
    "Elementwise functions": ("rules.elementwise",),
    "Sums, products and statistics": ("rules.reduction", "rules.statistical", "rules.utility"),
    "Linear algebra": ("rules.linear_algebra", "rules.matrices", "rules.factorisations"),
    "Manipulation": ("rules.manipulation",),
    "Indexing, searching, sorting and sets": ("rules.indexing", "rules.searching", "rules.sorting", "rules.sets", "rules.writing"),
    "Data types, devices and conversion": (
        "rules.conversion",
        "rules.transfer",
        "_basics",
        "_array",
        "_backends",
        "_namespaces",
        "_tensor.computing",
        "_info",
        "registry",
    ),
    "Gradients on and off": ("_modes", "autograd"),
    "Compiling, exporting and auditing": ("programs", "_audit"),
}
#: The chapters that are modules, in their order; those that are not listed come after them.
MODULES = (
    *("linalg", "fft", "func"),
    *(f"autograd{part}" for part in ("", ".function", ".functional", ".graph", ".forward_ad", ".grad_mode", ".anomaly_mode", ".profiler")),
    *("autograd.interop", "utils.checkpoint"),
    *(
        f"scipy.{part}"
        for part in ("special", "stats", "linalg", "sparse", "sparse.linalg", "signal", "fft", "interpolate", "integrate", "optimize")
    ),
    *("testing", "errors", "registry", "backend", "hookspecs", "dialects.libtorch", "dialects.oneflow"),
)


@dataclass(frozen=True)
class Chapter:
    """A page of the reference that lists names.

    Attributes
    ----------
    slug : str
        The name of its file.
    title : str
        Its heading.
    about : str
        What it says before the list.
    names : tuple of Name
        The names, in the order of the alphabet.
    """

    slug: str
    title: str
    about: str
    names: tuple[Name, ...]


def chapters(names: list[Name]) -> list[Chapter]:
    """Every name that is not a member of a class, in exactly one chapter."""
    tops = [name for name in names if name.kind not in {"method", "property", "attribute"}]
    found = []
    package = [name for name in tops if name.owner == "xpgrad"]
    left = {name.full: name for name in package}
    tensor = left.pop("xpgrad.Tensor")
    found.append(Chapter("tensor", "Tensor", "The array with a history, and its methods.", (tensor,)))
    for title, homes in OF_THE_STANDARD.items():
        own = [
            name for name in left.values() if _home(name).startswith(tuple(f"xpgrad.{home}" for home in homes)) and name.kind != "exception"
        ]
        found.append(Chapter(_slug(title), title, "", tuple(own)))
        for name in own:
            del left[name.full]
    errors = [name for name in left.values() if name.kind == "exception"]
    constants = [name for name in left.values() if name.kind == "data"]
    rest = [name for name in left.values() if name not in errors and name not in constants]
    found.append(Chapter("constants", "Constants and data types", "", tuple(constants)))
    found.append(Chapter("errors", "Errors", "What xpgrad raises beside Python's own errors.", tuple(errors)))
    if rest:
        found.append(Chapter("further", "Further functions", "", tuple(rest)))
    owners = {name.owner for name in tops} - {"xpgrad"}
    order = {f"xpgrad.{module}": i for i, module in enumerate(MODULES)}
    for owner in sorted(owners, key=lambda o: (order.get(o, len(order)), o)):
        about = inspect.getdoc(importlib.import_module(owner)) or ""
        found.append(Chapter(owner, owner, about, tuple(name for name in tops if name.owner == owner)))
    return [chapter for chapter in found if chapter.names]


def _home(name: Name) -> str:
    return str(getattr(name.thing, "__module__", "") or "")


def _slug(title: str) -> str:
    return "-".join(title.lower().replace(",", "").split())
