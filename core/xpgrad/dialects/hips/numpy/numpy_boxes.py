"""The class that programs ask for by HIPS autograd's name."""

from __future__ import annotations

from xpgrad._tensor.tensor import Tensor

__all__ = ["ArrayBox"]

#: What stands for an array or number while a function is differentiated.
ArrayBox = Tensor
