"""The class of traced arrays, under the name in HIPS autograd."""

from __future__ import annotations

from xpgrad._tensor.tensor import Tensor

__all__ = ["ArrayBox"]

#: The class of the values that replace arrays and numbers while a function is differentiated.
ArrayBox = Tensor
