"""`isinstance` and `type`, which treat a Tensor like the array behind it, and Python's containers under the same names.

A differentiated function gets its containers unchanged, with Tensors in them, so Python's own containers suffice.
"""

from __future__ import annotations

import builtins
from abc import ABC
from typing import Any

from xpgrad._tensor.tensor import Tensor

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

list: Any = builtins.list  # noqa: A001 (HIPS autograd's name)
tuple: Any = builtins.tuple  # noqa: A001 (as above)
dict: Any = builtins.dict  # noqa: A001 (as above)


class SequenceBox(ABC):  # noqa: B024 (its subclasses are registered, not derived)
    """The class of sequences inside a function: tuples and lists, which are Python's own."""


class DictBox(ABC):  # noqa: B024 (as above)
    """The class of dicts inside a function, which are Python's own."""


for _container in (builtins.tuple, builtins.list):
    SequenceBox.register(_container)
DictBox.register(builtins.dict)


def isinstance(x: Any, A: Any) -> bool:  # noqa: A001 (as above)
    """Return whether `x` or the array behind it is an instance of `A`."""
    if builtins.isinstance(x, A):
        return True
    if not builtins.isinstance(x, Tensor) or x.depth:
        return False
    # A number may be stored as a 0-d array, and then is an instance of both classes.
    return builtins.isinstance(x._array, A) or (not x.shape and builtins.isinstance(x._array[()], A))


def type(x: Any) -> Any:  # noqa: A001 (as above)
    """Return the type of `x`, or of the array or number behind it."""
    if not builtins.isinstance(x, Tensor) or x.depth:
        return builtins.type(x)
    return builtins.type(x._array) if x.shape else builtins.type(x._array[()])
