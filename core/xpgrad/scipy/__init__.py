"""`xpgrad.scipy`: differentiable functions with SciPy's names and meaning, for Tensors on every backend.

`special` has special functions, `stats` distributions, `linalg` functions of matrices, `sparse` sparse matrices, `optimize` optimisers and
solvers of equations, `integrate` differential equations and integrals, `signal` convolutions and filters, `fft` Fourier and cosine
transforms, and `interpolate` interpolants. A function that is not composed of others is computed by the array's own library if it has the
function, else by SciPy in host memory. SciPy is an optional dependency (``pip install 'xpgrad[scipy]'``).
"""

from __future__ import annotations

import importlib
import sys
import typing

from xpgrad._basics.faces import public_names

if typing.TYPE_CHECKING:
    from xpgrad.scipy import (
        fft as fft,
        integrate as integrate,
        interpolate as interpolate,
        linalg as linalg,
        optimize as optimize,
        signal as signal,
        sparse as sparse,
        special as special,
        stats as stats,
    )

__all__ = ["fft", "integrate", "interpolate", "linalg", "optimize", "signal", "sparse", "special", "stats"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not typing.TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name

    def __getattr__(name: str) -> typing.Any:
        # Each part loads at first use: a program mostly uses one.
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        parts = sys.modules[__name__].__all__
        msg = f"module {__name__!r} has no {name!r}, only {', '.join(f'`{part}`' for part in parts)}"
        raise AttributeError(msg)
