"""`numpy.linalg`, whose functions NumPy dispatches to Tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad.dialects.hips._arrays import np as _np

globals().update({name: value for name, value in vars(_np.linalg).items() if not name.startswith("_")})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
