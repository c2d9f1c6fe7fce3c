"""Reasons why some of NumPy's functions have no implementation. Each public function of NumPy is in the table or listed here."""

from __future__ import annotations

from xpgrad._numpy.table import ABSENT, FUNCTIONS, declare_absent

declare_absent("complex numbers have no order that has a gradient; sort by `np.real(x)` with `np.argsort`", "sort_complex")
declare_absent("Tensors hold no dates", "busday_count", "busday_offset", "datetime_as_string", "is_busday")
declare_absent("it packs bits, which have no gradient, and the Array API standard has no such function", "packbits", "unpackbits")
declare_absent("it returns text; `repr(x)` and `str(x)` print a Tensor", "array2string", "array_repr", "array_str")
declare_absent("it writes a file; pickle the Tensor instead", "save", "savetxt", "savez", "savez_compressed")
declare_absent("it plans the order of an Einstein sum; `np.einsum` accepts and ignores `optimize=`", "einsum_path")

#: Functions that NumPy does not dispatch to Tensors, by the reason.
NOT_DISPATCHED: dict[str, tuple[str, ...]] = {
    "makes an array from numbers; a Tensor with `like=x` (`zeros`, `ones`, `full`, `empty`, `eye`, `identity`, `arange`, `tri`)": (
        "arange", "bartlett", "blackman", "diag_indices", "empty", "eye", "frombuffer", "fromfile", "fromfunction", "fromiter",
        "fromregex", "fromstring", "full", "genfromtxt", "hamming", "hanning", "identity", "indices", "kaiser", "load", "loadtxt",
        "mask_indices", "ones", "tri", "tril_indices", "triu_indices", "zeros", "fft.fftfreq", "fft.rfftfreq",
    ),
    "makes a NumPy array: it raises for a Tensor that requires grad, unless `like=x` asks for a Tensor": (
        "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "asmatrix", "bmat",
        "from_dlpack", "require",
    ),
    "answers a question about shapes, dtypes or objects": (
        "broadcast_shapes", "isdtype", "isfortran", "isscalar", "issubdtype", "iterable", "mintypecode", "promote_types", "typename",
    ),
    "reads memory by strides; `lib.stride_tricks.sliding_window_view` has a rule": ("lib.stride_tricks.as_strided",),
    "calls another function, which is in this table": ("row_stack",),
    "makes a function or an iterator": ("frompyfunc", "nested_iters"),
    "formats numbers, or reads or changes NumPy's settings": (
        "base_repr", "binary_repr", "datetime_data", "format_float_positional", "format_float_scientific", "get_include",
        "get_printoptions", "getbufsize", "geterr", "geterrcall", "info", "printoptions", "set_printoptions", "setbufsize", "seterr",
        "seterrcall", "show_config",
        "show_runtime", "test", "linalg.test", "fft.test",
    ),
}  # fmt: skip

assert not set(FUNCTIONS) & set(ABSENT)
