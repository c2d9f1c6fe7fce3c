"""The functions of the standard that no elementwise row declares, as kernels call them: parts of complex numbers."""

from xpgrad._transforms.batch.rulebook import stacks

stacks("real", "imag")
