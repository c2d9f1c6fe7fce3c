"""HIPS autograd and the dialect, each with its submodules as attributes, so that a test writes a program once for both."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from xpgrad.dialects import hips

PARTS = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "extend", "tracer", "builtins", "test_util", "misc", "misc.optimizers",
         "misc.flatten", "misc.fixed_points", "differential_operators")  # fmt: skip


def library(package: Any) -> SimpleNamespace:
    """Return one of the two libraries, with the submodules that programs import as attributes."""
    out = SimpleNamespace(**{name: getattr(package, name) for name in dir(package) if not name.startswith("_")})
    for part in PARTS:
        setattr(out, part.replace(".", "_"), importlib.import_module(f"{package.__name__}.{part}"))
    out.np = out.numpy
    return out


OURS = library(hips)
RNG = np.random.default_rng(0)
V, W = RNG.normal(size=5), RNG.normal(size=5)
