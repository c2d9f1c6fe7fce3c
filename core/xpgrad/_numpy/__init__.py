"""NumPy's functions on Tensors: `np.sin(x)`, ``np.add.reduce(x)`` and `np.linalg.norm(x)` compute by xpgrad's rows, and record.

NumPy hands them over by `Tensor.__array_ufunc__` and `Tensor.__array_function__`; the first call of either loads this floor. Nothing here
imports NumPy: its functions say their names.
"""

from __future__ import annotations
