"""`xpgrad.scipy.sparse`: sparse matrices whose entries are Tensors, and products and systems with SciPy's constant ones.

The places of entries are constant; derivatives are with respect to entries and dense operands. ``A @ x`` and ``x @ A`` of a Tensor `x` and
a sparse array or matrix of SciPy's are computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy.sparse import linalg as linalg
from xpgrad.scipy.sparse._array import SparseArray as SparseArray
from xpgrad.scipy.sparse._building import (
    coo_array as coo_array,
    csc_array as csc_array,
    csr_array as csr_array,
    diags_array as diags_array,
)

__all__ = ["SparseArray", "coo_array", "csc_array", "csr_array", "diags_array", "linalg"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
