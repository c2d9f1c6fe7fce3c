"""NumPy and `scipy.sparse`, which hold patterns, colourings and results.

Importing this module loads both. The arrays are those of the host's backend (`host_backend`): the core names no library.
"""

from __future__ import annotations

from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.errors import CapabilityError

try:
    import scipy.sparse as _sparse
except ImportError as exc:  # pragma: no cover (the tests have SciPy)
    _msg = "sparse derivatives are SciPy's sparse arrays, and SciPy is not installed; run `pip install 'xpgrad[scipy]'`"
    raise CapabilityError(_msg) from exc

np: Any = host_backend().namespace()
#: NB: SciPy's type hints, where a checker finds any, know few of the operations on sparse arrays.
sparse: Any = _sparse
