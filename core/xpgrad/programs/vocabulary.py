"""Facts about kernels by their names: which work element by element, whose results may share an operand's memory, which reduce.

A kernel that is not in these tables may return a view of every operand, and its results are never written to.
"""

from __future__ import annotations

__all__ = [
    "AUGMENTED", "COPIES", "EITHER", "ELEMENTWISE", "FRESH", "IN_PLACE", "OPERATORS", "REDUCTIONS", "RESHAPING", "SELECTIONS", "VIEWS",
    "WRITING",
]  # fmt: skip

#: Python's operators by kernel. Kernels of arithmetic take Python numbers, which are weak, in any place.
OPERATORS: dict[str, str] = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "pow": "**", "negative": "-",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_invert": "~", "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "matmul": "@",
}  # fmt: skip

#: Kernels that work element by element, with broadcasting, and the names of NumPy's functions for them. All but `where` take `out=`.
ELEMENTWISE: dict[str, str] = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "add": "add", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_and": "bitwise_and", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_or": "bitwise_or", "bitwise_right_shift": "right_shift", "bitwise_xor": "bitwise_xor", "ceil": "ceil", "clip": "clip",
    "conj": "conjugate", "copysign": "copysign", "cos": "cos", "cosh": "cosh", "divide": "divide", "equal": "equal", "exp": "exp",
    "expm1": "expm1", "floor": "floor", "floor_divide": "floor_divide", "greater": "greater", "greater_equal": "greater_equal",
    "hypot": "hypot", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "less": "less", "less_equal": "less_equal", "log": "log",
    "log10": "log10", "log1p": "log1p", "log2": "log2", "logaddexp": "logaddexp", "logical_and": "logical_and",
    "logical_not": "logical_not", "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum",
    "multiply": "multiply", "negative": "negative", "nextafter": "nextafter", "not_equal": "not_equal", "positive": "positive",
    "pow": "power", "reciprocal": "reciprocal", "remainder": "remainder", "round": "round", "sign": "sign", "signbit": "signbit",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "subtract": "subtract", "tan": "tan", "tanh": "tanh",
    "trunc": "trunc", "where": "where",
}  # fmt: skip

#: Kernels that select element by element, for which a text has helper functions.
SELECTIONS = ("keep", "share")

#: Kernels whose result may share the memory of their first operand, and of no other.
VIEWS = frozenset((
    "asarray", "astype", "broadcast_to", "broadcast_view", "diagonal_view", "expand_dims", "expand_reduced", "flip", "imag", "index_basic",
    "matrix_transpose", "moveaxis", "permute_dims", "real", "reshape", "reshape_to", "squeeze", "sum_to", "swap_last", "transpose_axes",
    "unstack", "wide", "imag_part", "real_part", "linalg.diagonal", "linalg.matrix_transpose",
))  # fmt: skip

#: Of these, those that keep all elements in row-major order: a reshape is all that they are.
RESHAPING = frozenset(("expand_dims", "reshape", "reshape_to", "squeeze"))

#: Kernels that reduce the axes that their second argument names; all with keepdims as the third.
REDUCTIONS = frozenset(("reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum"))

#: Kernels that give their first operand back, changed; here they are functions, and the operand is copied where somebody still needs it.
IN_PLACE = frozenset(("add_at", "scatter_into", "written"))

#: Kernels that may write into their first operand: who calls them where that is read again hands them a copy.
WRITING = IN_PLACE | {"scale"}

#: Kernels that return what they are given, or a copy: in a program, where nothing is written to, that is the same.
COPIES = frozenset(("clone", "clone_contiguous", "copy", "positive"))

#: Arithmetic that is written as ``a += b`` where the result takes the memory of an operand: of the first, or, of these, of either.
AUGMENTED = frozenset(("add", "subtract", "multiply", "divide"))
EITHER = frozenset(("add", "multiply"))

#: Other kernels whose results lie in new memory, which nobody else knows.
FRESH = frozenset((
    "all", "any", "arange", "argmax", "argmin", "argsort", "clone", "clone_contiguous", "concat", "copy", "count_nonzero",
    "cumulative_prod", "cumulative_sum", "diagonal_transpose", "empty", "empty_like", "eye", "full", "full_like", "gather",
    "gather_along", "index_basic_transpose", "linspace", "loop", "lower", "matmul", "max", "mean", "min", "nonzero", "ones", "ones_like",
    "ordered_back", "prod", "products", "reduce_var", "repeat", "roll", "running_prod", "running_sum", "scale", "scatter_add",
    "searchsorted", "sort", "stack", "std", "sum", "take", "take_along_axis", "take_flat", "tensordot", "tile", "to_dtype", "tril", "triu",
    "upper", "var", "vecdot", "zeros", "zeros_like",
    "linalg.cholesky", "linalg.cross", "linalg.det", "linalg.eigh", "linalg.eigvalsh", "linalg.inv", "linalg.matrix_norm", "linalg.outer",
    "linalg.qr", "linalg.slogdet", "linalg.solve", "linalg.svd", "linalg.svdvals", "linalg.vector_norm",
)) | REDUCTIONS | IN_PLACE | frozenset((*ELEMENTWISE, *SELECTIONS))  # fmt: skip
