"""Why functions of NumPy have no rule: each of its public functions is in the table, or here."""

from __future__ import annotations

from xpgrad._numpy.table import ABSENT, FUNCTIONS, declare_absent

declare_absent("complex numbers have no order that a gradient could follow; sort by `np.real(x)` with `np.argsort`", "sort_complex")
declare_absent("Tensors hold no dates", "busday_count", "busday_offset", "datetime_as_string", "is_busday")
declare_absent("it packs bits, which have no gradient, and the Array API standard has no such function", "packbits", "unpackbits")
declare_absent("it makes text: `repr(x)` and `str(x)` print a Tensor", "array2string", "array_repr", "array_str")
declare_absent("it writes a file: `xpgrad` Tensors are pickled", "save", "savetxt", "savez", "savez_compressed")
declare_absent("it asks where memory is, which not every library tells", "may_share_memory", "shares_memory")
declare_absent("it plans an Einstein sum; `np.einsum` takes any `optimize=` and computes the same", "einsum_path")
declare_absent("it computes with integers only; use sums and products", "ravel_multi_index")

#: Functions that NumPy does not dispatch, by why they are no concern of Tensors.
NOT_DISPATCHED: dict[str, tuple[str, ...]] = {
    "makes an array from numbers; with `like=x` beside a Tensor (`zeros`, `ones`, `full`, `empty`, `eye`, `identity`, `arange`, `tri`)": (
        "arange", "bartlett", "blackman", "diag_indices", "empty", "eye", "frombuffer", "fromfile", "fromfunction", "fromiter",
        "fromregex", "fromstring", "full", "genfromtxt", "hamming", "hanning", "identity", "indices", "kaiser", "load", "loadtxt",
        "mask_indices", "ones", "tri", "tril_indices", "triu_indices", "zeros", "fft.fftfreq", "fft.rfftfreq",
    ),
    "makes a NumPy array: it refuses a Tensor that requires grad, unless `like=x` asks for a Tensor": (
        "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "asmatrix", "bmat",
        "from_dlpack", "require",
    ),
    "asks about shapes, dtypes or objects": (
        "broadcast_shapes", "isdtype", "isfortran", "isscalar", "issubdtype", "iterable", "mintypecode", "promote_types", "typename",
    ),
    "reads memory by strides; `lib.stride_tricks.sliding_window_view` has a rule": ("lib.stride_tricks.as_strided",),
    "calls another function, which is covered": ("row_stack",),
    "makes a function or an iterator": ("frompyfunc", "nested_iters"),
    "formats numbers, or sets or shows what NumPy is set to": (
        "base_repr", "binary_repr", "datetime_data", "format_float_positional", "format_float_scientific", "get_include",
        "get_printoptions", "getbufsize", "geterr", "geterrcall", "info", "printoptions", "set_printoptions", "setbufsize", "seterr",
        "seterrcall", "show_config",
        "show_runtime", "test", "linalg.test", "fft.test",
    ),
}  # fmt: skip

assert not set(FUNCTIONS) & set(ABSENT)
