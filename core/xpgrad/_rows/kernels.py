"""Facts about kernels: how the result depends on the operands, whose memory it is in, its dtype, and NumPy's name.

Compilers, printers of programs and the propagation of sparsity use `kernel_of` only. A row declares these facts, and adds itself to the
same table. The entries below are for kernels that are not rows: functions of the standard that rules call, and private ones
(`xpgrad.backend` documents them). An unknown kernel is `OPAQUE`, which is always handled correctly, but slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xpgrad._rows.operators import BINARY, Operator

#: How elements of the result depend on elements of the operands.
KINDS = {
    "elementwise": "on those in the same place, after broadcasting",
    "cast": "on the one in the same place, which is converted to a dtype",
    "copy": "on the one in the same place, which is the same",
    "part": "on the one in the same place, of which it is the real or imaginary part",
    "expansion": "on one, which is repeated along axes, as broadcasting does it",
    "reshape": "on one: all elements, in the same row-major order",
    "transpose": "on one: all elements, with permuted axes",
    "selection": "on one, at a place that other arguments determine, or on none and is 0",
    "scatter": "on those that are added or written to its place",
    "reduction": "on all along the axes that the second argument or `axis` names",
    "contraction": "on sums of products of elements of two operands",
    "transform": "on all along the axis `axis`",
    "fill": "on none: all elements have one value",
    "search": "on a comparison: results are positions and counts, which have no gradient",
    "static": "on none: a function of dtypes and shapes",
    "opaque": "on any",
}

#: Where the result lies.
MEMORY = {
    "new": "in memory that nobody else knows",
    "view": "in memory that it may share with the first operand, and with no other",
    "first": "in the first operand, which is changed and returned",
    "scratch": "in new memory, or in the first operand, which may be overwritten",
    "shared": "in memory that it may share with any operand",
}

#: The dtype of the result.
DTYPES = {
    "same": "that of the operands, after promotion",
    "bool": "bool",
    "real": "that of the operand; for complex ones, the real dtype of the same precision",
    "index": "the dtype of indices",
    "given": "the one that an argument names, or a default",
    "other": "one that no single rule tells",
}


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The facts about one kernel.

    Attributes
    ----------
    name : str
        Its name in a backend's table, with the extension's in front: ``"linalg.inv"``.
    kind : str
        A key of `KINDS`.
    memory : str
        A key of `MEMORY`.
    dtype : str
        A key of `DTYPES`.
    numpy : str or None
        NumPy's function with the same arguments, below ``np``: ``"arccos"``, ``"linalg.inv"``, ``"add.reduce"``. None if there is none.
    operator : Operator or None
        Python's operator that computes it.
    helper : bool
        Programs for NumPy include a helper function for it, named after it with an underscore in front.
    whole : bool
        A captured program contains it as one operation, although most libraries compute it by several.
    grows : bool
        Its result may be much larger than its operands, so that it is never computed in advance.
    keyed : bool
        An indexing key is among its arguments; a mask in the key would make the shape of the result depend on values.
    by_value : bool
        The shape of its result depends on values.
    read_only : bool
        NumPy's function returns a view that cannot be written to; that of an expansion never can.
    may_return_operand : bool
        Whether some libraries return the operand itself if there is nothing to do.
    spelled : str or None
        The expression by which users compute it; None if that is the function `name` or, for a row, one of `Row.public`.
    """

    name: str
    kind: str = "opaque"
    memory: str = "shared"
    dtype: str = "other"
    numpy: str | None = None
    operator: Operator | None = None
    helper: bool = False
    whole: bool = False
    grows: bool = False
    keyed: bool = False
    by_value: bool = False
    read_only: bool = False
    may_return_operand: bool = False
    spelled: str | None = None

    def __post_init__(self) -> None:
        for value, known, what in ((self.kind, KINDS, "kind"), (self.memory, MEMORY, "memory"), (self.dtype, DTYPES, "dtype")):
            if value not in known:
                msg = f"kernel {self.name!r}: `{what}` must be one of {', '.join(map(repr, known))}, but is {value!r}"
                raise ValueError(msg)

    @property
    def ufunc(self) -> str | None:
        """NumPy's name of an elementwise kernel; None for another kernel, or if NumPy has no such function."""
        return self.numpy if self.kind in ("elementwise", "copy") else None

    @property
    def takes_out(self) -> bool:
        """Whether NumPy's function takes ``out=``."""
        return self.name == "matmul" or (self.ufunc is not None and self.name != "where")

    @property
    def blockwise(self) -> bool:
        """Whether a program for NumPy can compute each block of its result from the same block of the operands."""
        return self.name == "to_dtype" or (self.kind == "elementwise" and (self.numpy is not None or self.helper))

    @property
    def accumulates(self) -> bool:
        """Whether it is a reduction by a NumPy ufunc, which can continue from an earlier result."""
        return self.kind == "reduction" and self.numpy is not None and self.numpy.endswith(".reduce")

    @property
    def is_view(self) -> bool:
        """Whether the result may share memory with the first operand only."""
        return self.memory == "view"

    @property
    def is_read_only(self) -> bool:
        """Whether the result of NumPy's function cannot be written to."""
        return self.read_only or self.kind == "expansion"

    @property
    def is_fresh(self) -> bool:
        """Whether its result in a program, where kernels change copies, is in new memory."""
        return self.memory in ("new", "first", "scratch")

    @property
    def updates(self) -> bool:
        """Whether its result is the changed first operand."""
        return self.memory == "first"

    @property
    def writes(self) -> bool:
        """Whether it may write to its first operand, so that it must get a copy if the operand is read later."""
        return self.memory in ("first", "scratch")


#: Every kernel by name; rows add themselves.
KERNELS: dict[str, Kernel] = {}

OPAQUE = Kernel("")


def kernel_of(name: str) -> Kernel:
    """Return the facts about a kernel; `OPAQUE` if it is unknown."""
    return KERNELS.get(name, OPAQUE)


def _kernels(kind: str, memory: str, dtype: str, *names: str, numpy: str | bool | None = None, **facts: Any) -> None:
    """Add kernels with the same facts to the table; ``numpy=True`` means that NumPy's functions have the same names."""
    for name in names:
        KERNELS[name] = Kernel(name, kind, memory, dtype, name if numpy is True else numpy or None, **facts)


# -- element by element ------------------------------------------------------------------------------------------------------

_kernels("elementwise", "new", "same", "clip", numpy=True, may_return_operand=True)
_kernels("elementwise", "scratch", "same", "scale", whole=True)
_kernels("cast", "view", "given", "astype")
_kernels("cast", "view", "given", "cast", spelled="astype")
_kernels("cast", "view", "other", "wide")
_kernels("copy", "new", "same", "copy")
_kernels("part", "view", "real", "real", "imag", numpy=True)
_kernels("opaque", "view", "given", "asarray")

# -- layout --------------------------------------------------------------------------------------------------------------------

_kernels("expansion", "view", "same", "broadcast_to", numpy=True, grows=True)
_kernels("reshape", "view", "same", "expand_dims", "squeeze", numpy=True)
_kernels("reshape", "view", "same", "reshape")
_kernels("transpose", "view", "same", "moveaxis", numpy=True)
_kernels("transpose", "view", "same", "matrix_transpose", "permute_dims", "linalg.matrix_transpose")
_kernels("selection", "view", "same", "flip", "unstack", numpy=True)
_kernels("selection", "view", "same", "linalg.diagonal", read_only=True)
_kernels("selection", "new", "same", "concat", numpy="concatenate")
_kernels("selection", "new", "same", "repeat", "roll", "stack", "take", "take_along_axis", "tile", "tril", "triu", numpy=True)
_kernels("selection", "new", "same", "take_flat", whole=True, keyed=True, spelled="x[key]")

# -- writing -------------------------------------------------------------------------------------------------------------------

_kernels("selection", "first", "same", "written", whole=True, spelled="x[key] = value")
_kernels("scatter", "first", "same", "add_at", whole=True)
_kernels("scatter", "first", "same", "scatter_into", whole=True, keyed=True, spelled="x[key]")
_kernels("scatter", "shared", "same", "segment_sum", whole=True)
_kernels("opaque", "shared", "index", "flat_index", keyed=True)

# -- sums, products, extrema ------------------------------------------------------------------------------------------------

_kernels("reduction", "new", "bool", "all", "any", numpy=True)
_kernels("reduction", "new", "same", "max", "mean", "min", numpy=True)
_kernels("reduction", "new", "other", "prod", "sum", numpy=True)
_kernels("reduction", "new", "real", "std", "var", numpy=True)
_kernels("contraction", "new", "same", "matmul", operator=BINARY["@"])
_kernels("contraction", "new", "same", "tensordot", "vecdot", numpy=True)
_kernels("opaque", "new", "other", "cumulative_prod", "cumulative_sum", numpy=True)

# -- linear algebra and Fourier transforms ---------------------------------------------------------------------------------

_kernels("contraction", "new", "same", "linalg.outer", "linalg.cross", "linalg.solve", numpy=True)
_kernels("contraction", "new", "same", "linalg.matmul", "linalg.tensordot", "linalg.vecdot")
_kernels("opaque", "new", "same", "linalg.cholesky", "linalg.det", "linalg.inv", numpy=True)
_kernels("opaque", "new", "real", "linalg.eigvalsh", "linalg.matrix_norm", "linalg.svdvals", "linalg.vector_norm", numpy=True)
_kernels("opaque", "new", "other", "linalg.eigh", "linalg.qr", "linalg.slogdet", numpy=True)
_kernels("opaque", "new", "other", "linalg.svd")
_kernels("transform", "shared", "other", "fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft")

# -- searching -----------------------------------------------------------------------------------------------------------------

_kernels("search", "new", "index", "argmax", "argmin", "count_nonzero", "searchsorted", numpy=True)
_kernels("search", "new", "index", "argsort")
_kernels("search", "new", "index", "nonzero", numpy=True, by_value=True)
_kernels("search", "shared", "other", "unique_all", "unique_counts", "unique_inverse", "unique_values", by_value=True)
_kernels("search", "shared", "bool", "isin")
_kernels("search", "new", "same", "sort")

# -- creation ------------------------------------------------------------------------------------------------------------------

_kernels("fill", "new", "given", "zeros", "ones", "full", "empty", grows=True)
_kernels("fill", "new", "given", "zeros_like", "ones_like", "full_like", numpy=True, grows=True)
_kernels("fill", "new", "given", "empty_like", grows=True)
_kernels("fill", "new", "same", "zeros_near", grows=True)
_kernels("opaque", "new", "given", "arange", "eye", "linspace", numpy=True)

# -- dtypes and shapes ---------------------------------------------------------------------------------------------------------

_kernels("static", "shared", "other", "isdtype", "finfo", "iinfo", "result_type", "can_cast", "broadcast_shapes")

# -- operations that passes over programs make ---------------------------------------------------------------------------

_kernels("opaque", "new", "other", "branch", "loop", "part", "products", "scan", "unwind", "while")
