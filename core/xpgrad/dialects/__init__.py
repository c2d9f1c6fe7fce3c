"""Dialects of the same autograd: `libtorch` follows PyTorch's C++ documentation, `oneflow` OneFlow's; `hips` is HIPS autograd's interface.

They differ from `xpgrad.autograd` in names, defaults, checks and messages; the engine is the same. Import the one that you port from.
"""

from xpgrad._basics.faces import public_names

__all__: list[str] = []


def __dir__() -> list[str]:
    return public_names(__name__)
