"""Operations by name: the tables of public functions and primitives, and the namespace in which formulas find them.

Floors below the rules reach an operation through it: ``operations.zeros_like(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["COMPOSITE", "EXTRAS", "NONDIFFERENTIABLE", "PRIMITIVES", "PUBLIC", "RULES", "operations", "package"]

#: Public functions by how they differentiate: every function of the standard is in exactly one of the three.
RULES: dict[str, Callable[..., Any]] = {}
NONDIFFERENTIABLE: dict[str, Callable[..., Any]] = {}
COMPOSITE: dict[str, Callable[..., Any]] = {}
#: Public functions that the standard does not have, of parts that load late: ``"scipy.special.erf"``.
EXTRAS: dict[str, Callable[..., Any]] = {}
#: What rules are written for: operations on Tensors that take all arguments by position and normalise nothing.
PRIMITIVES: dict[str, Callable[..., Any]] = {}
#: Public functions by the row that computes them, where it has another name. The first one stands for the row.
PUBLIC: dict[str, tuple[str, ...]] = {
    "gather": ("take",), "gather_along": ("take_along_axis",), "reshape_to": ("reshape", "squeeze", "expand_dims"),
    "transpose_axes": ("permute_dims", "moveaxis"), "swap_last": ("matrix_transpose",), "broadcast_view": ("broadcast_to",),
    "reverse": ("flip",), "shift_by": ("roll",), "join": ("concat",), "pile": ("stack",), "clip_scalar": ("clip",), "clip_below": ("clip",),
    "clip_above": ("clip",), "real_part": ("real",), "imag_part": ("imag",), "reduce_sum": ("sum",), "reduce_max": ("max",),
    "reduce_min": ("min",), "reduce_mean": ("mean",), "reduce_var": ("var",), "reduce_std": ("std",), "reduce_prod": ("prod",),
    "running_sum": ("cumulative_sum",), "running_prod": ("cumulative_prod",), "matmul_nd": ("matmul",), "batched_matmul": ("matmul",),
    "mat_vec": ("matmul",), "inner_product": ("matmul",), "to_dtype": ("astype",), "lower": ("tril",), "upper": ("triu",),
    "ordered": ("sort",), "cholesky_factor": ("linalg.cholesky",), "eigen_pairs": ("linalg.eigh", "linalg.eigvalsh"),
    "general_eigen_pairs": ("linalg.eig", "linalg.eigvals"), "singular_triples": ("linalg.svd", "linalg.svdvals"),
    "orthogonal_triangular": ("linalg.qr",), "inverse": ("linalg.inv",), "solve_matrix": ("linalg.solve",),
    "pseudoinverse": ("linalg.pinv",), "determinant": ("linalg.det",), "sign_and_log": ("linalg.slogdet",), "norm": ("linalg.vector_norm",),
    "diagonal_view": ("linalg.diagonal",), "cross_product": ("linalg.cross",),
    "fourier": ("fft.fft", "fft.ifft", "fft.fftn", "fft.ifftn"), "real_to_half": ("fft.rfft", "fft.rfftn"),
    "half_to_real": ("fft.irfft", "fft.irfftn"),
}  # fmt: skip

#: The package `xpgrad`, which hands itself over when it is loaded.
package: Any = None


class _TensorNamespace:
    """The ``xp`` of a formula that runs on Tensors: the public functions and the primitives, by name."""

    def __getattr__(self, name: str) -> Any:
        found: Any = None
        for table in (PRIMITIVES, RULES, NONDIFFERENTIABLE, COMPOSITE):
            found = found or table.get(name)
        if found is None:
            found = getattr(package, name)
        setattr(self, name, found)
        return found


operations: Any = _TensorNamespace()
