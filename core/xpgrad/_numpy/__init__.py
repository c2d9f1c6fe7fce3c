"""NumPy's functions on Tensors: `np.sin(x)`, ``np.add.reduce(x)`` and `np.linalg.norm(x)` run xpgrad's operations and record gradients.

NumPy calls `Tensor.__array_ufunc__` or `Tensor.__array_function__`, whose first call imports this package. Nothing here imports NumPy:
its functions are looked up by name.
"""

from __future__ import annotations
