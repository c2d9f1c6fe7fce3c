"""Run in a process of its own: print, as JSON, each public name of PyTorch, NumPy and JAX that xpgrad lacks, with the end of its error.

The names of attributes of their arrays are included.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import types
import warnings
from typing import Any

import xpgrad as xp

#: Our module ("" for the package) or `Tensor`, and where else users know its names from.
PLACES = {
    "": ("torch", "torch.nn.functional", "numpy", "jax", "jax.numpy", "jax.lax", "jax.nn"),
    "linalg": ("torch.linalg", "numpy.linalg", "jax.numpy.linalg"),
    "fft": ("torch.fft", "numpy.fft", "jax.numpy.fft"),
    "func": ("torch.func", "jax"),
    "autograd": ("torch.autograd",),
    "autograd.functional": ("torch.autograd.functional",),
    "autograd.graph": ("torch.autograd.graph",),
    "Tensor": ("torch.Tensor", "numpy.ndarray", "jax.Array"),
}


def is_borrowed(name: str, value: Any, package: str) -> bool:
    """Return whether a module has a name only because it imported it: from the standard library, or another package."""
    home = inspect.getmodule(value) if not isinstance(value, types.ModuleType) else value
    owner = getattr(value, "__module__", None) or getattr(home, "__name__", None) or package
    if isinstance(value, types.ModuleType):
        owner = value.__name__
        return name in ("torch", "np", "jax") or owner.partition(".")[0] != package
    return name == "TYPE_CHECKING" or owner.partition(".")[0] in sys.stdlib_module_names - {"builtins"}


def names(source: str) -> list[str]:
    """Return the public names of a module or class."""
    try:
        place: Any = importlib.import_module(source)
    except ModuleNotFoundError:
        module, _, name = source.rpartition(".")
        place = getattr(importlib.import_module(module), name)
    package = source.partition(".")[0]
    if isinstance(place, type):
        return [name for name in dir(place) if not name.startswith("_")]
    return [name for name in dir(place) if not name.startswith("_") and not is_borrowed(name, getattr(place, name), package)]


def main() -> None:
    warnings.simplefilter("ignore")
    found: dict[str, str] = {}
    shown = []
    for ours, sources in PLACES.items():
        target: Any = xp.ones((2, 2), dtype=xp.complex128) if ours == "Tensor" else importlib.import_module(f"xpgrad.{ours}".rstrip("."))
        listed = dir(target)
        for source in sources:
            if not importlib.util.find_spec(source.partition(".")[0]):
                continue
            for name in names(source):
                try:
                    getattr(target, name)
                except AttributeError as exc:
                    found[f"{ours} {source} {name}"] = str(exc)
                    shown += [name] * (name in listed)
    print(json.dumps({"found": found, "shown": shown}))


if __name__ == "__main__":
    main()
