"""Dialects of xpgrad's autograd: `libtorch` follows PyTorch's C++ documentation, `oneflow` OneFlow's, and `hips` HIPS autograd.

They differ from `xpgrad.autograd` in names, defaults, checks and messages; the engine is the same. Import the dialect of the library from
which you port a program.
"""

from xpgrad._basics.faces import public_names

__all__: list[str] = []


def __dir__() -> list[str]:
    return public_names(__name__)
