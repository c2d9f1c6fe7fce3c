"""`numpy.linalg`, whose functions NumPy dispatches to Tensors; `norm` also takes lists of Tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._numpy.table import FUNCTIONS
from xpgrad.dialects.hips._arrays import np as _np
from xpgrad.dialects.hips.numpy._making import with_lists

globals().update({name: value for name, value in vars(_np.linalg).items() if not name.startswith("_")})
norm: Any = with_lists(_np.linalg.norm, FUNCTIONS["linalg.norm"].call)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
