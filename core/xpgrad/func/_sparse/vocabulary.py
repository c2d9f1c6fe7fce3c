"""How dependence passes each kernel, by its name: the tables that `rules` serves. A kernel in none of them is taken to mix everything.

The program is that of a derivative, which is linear in what is traced: so functions such as `exp` meet only values that are not traced.
"""

from __future__ import annotations

from xpgrad.programs import vocabulary as kernels

__all__ = ["ELEMENTWISE", "FOURIER", "PICKING", "REDUCTIONS"]

#: Element by element, with broadcasting: of the operands that are arrays, each element of the result depends on those in its place.
ELEMENTWISE = frozenset((
    *kernels.ELEMENTWISE, *kernels.SELECTIONS, *kernels.COPIES, "astype", "cast", "clone_laid_out", "imag", "imag_part", "real",
    "real_part", "scale", "to_dtype", "wide",
))  # fmt: skip

#: Each element of the result is an element of an operand, or 0: the kernel itself, applied to the numbers of the sets, says which.
PICKING = frozenset((
    "broadcast_to", "broadcast_view", "concat", "diagonal_transpose", "diagonal_view", "expand_dims", "expand_reduced", "flip", "gather",
    "gather_along", "index_basic", "index_basic_transpose", "lower", "matrix_transpose", "moveaxis", "ordered_back", "permute_dims", "put",
    "repeat", "reshape", "reshape_to", "roll", "squeeze", "stack", "swap_last", "take", "take_along_axis", "take_flat", "tile",
    "transpose_axes", "tril", "triu", "unstack", "upper", "written", "linalg.diagonal", "linalg.matrix_transpose",
))  # fmt: skip

#: Reductions over axes, the second argument or `axis`.
REDUCTIONS = frozenset((*kernels.REDUCTIONS, "sum", "mean", "max", "min", "prod", "std", "var", "reduce_var"))

#: Transforms along one axis, the argument `axis`.
FOURIER = frozenset(("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft"))
