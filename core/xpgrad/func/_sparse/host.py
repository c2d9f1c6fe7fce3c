"""NumPy and SciPy's sparse arrays, of which patterns and colourings are made, and which the results are: who asks for one pays for both."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpgrad.errors import CapabilityError

try:
    import scipy.sparse as _sparse
except ImportError as exc:  # pragma: no cover (the tests have SciPy)
    _msg = "sparse derivatives are SciPy's sparse arrays, and SciPy is not installed; run `pip install 'xpgrad[scipy]'`"
    raise CapabilityError(_msg) from exc

__all__ = ["np", "sparse"]

#: NB: SciPy's type hints, where a checker finds any, know few of the operations on sparse arrays.
sparse: Any = _sparse
