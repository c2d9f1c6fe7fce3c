"""Functions of the standard without an elementwise row, which kernels call: parts of complex numbers."""

from xpgrad._transforms.batch.rulebook import stacks

stacks("real", "imag")
