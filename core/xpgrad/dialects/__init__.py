"""Dialects of the same autograd, a module each: `libtorch` follows PyTorch's C++ documentation, `oneflow` OneFlow's.

They differ from `xpgrad.autograd` in defaults, checks and messages only; the engine is the same. Import the one that you port from.
"""

__all__: list[str] = []
