"""Fill the table of functions by importing the chapters, the modules that implement NumPy's functions.

If NumPy dispatches a function with the name of one in xpgrad's namespace, it is added here, and needs no declaration in a chapter.
"""

from __future__ import annotations

import sys
from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad._numpy import (
    complex_results as complex_results,
    creation as creation,
    fourier as fourier,
    linear_algebra as linear_algebra,
    manipulation as manipulation,
    missing as missing,
    numbers as numbers,
    reductions as reductions,
    searching as searching,
    signals as signals,
    statistics as statistics,
)
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.table import FUNCTIONS
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES

host_backend().array_types()  # loads NumPy, whichever module imports this one first
for _table in (RULES, COMPOSITE, NONDIFFERENTIABLE):
    for _name, _function in _table.items():
        _numpy_function: Any = getattr(sys.modules["numpy"], _name, None)
        if _name not in FUNCTIONS and hasattr(_numpy_function, "_implementation") and _numpy_function.__name__ == _name:
            adapt(_name, _function, differentiable=_table is not NONDIFFERENTIABLE)
