"""`xpgrad.dialects.hips.numpy`: NumPy under its own names, for functions that are differentiated.

Nearly all names are NumPy's own objects, since NumPy dispatches them to Tensors (`docs/numpy.md`). The others accept lists of Tensors or
make arrays from them, for which NumPy does not dispatch: `array`, `full`, `r_`, ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad.dialects.hips._arrays import np as _np
from xpgrad.dialects.hips.numpy import (
    _making,
    fft as fft,
    linalg as linalg,
    numpy_boxes as numpy_boxes,
    numpy_vjps as numpy_vjps,
    random as random,
)

_names = _making.exported()
globals().update({name: value for name, value in _names.items() if name not in ("fft", "linalg", "random")})
__version__ = _np.__version__
__all__: list[str] = [name for name in _names if name in _np.__all__]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
