"""The matrix for the user: SciPy's in the requested format, or the library's own."""

from __future__ import annotations

from typing import Any

from xpgrad._basics.dtypes import float32
from xpgrad.func._sparse.host import np, sparse

FORMATS = ("csr", "csc", "coo", "native")


def host_values(values: Any) -> Any:
    """Return a Tensor's values as a NumPy array of a dtype that SciPy's sparse arrays support: 16 bits become 32."""
    if values.dtype.itemsize < 4:
        values = values._cast(float32)
    return np.asarray(values.backend.to_host(values._array))


def matrix_of(pattern: Any, values: Any, form: str) -> Any:
    """Return the matrix with these values at the entries of a pattern, row by row."""
    if form == "native":
        return values.backend.sparse_matrix(values._array, pattern.indices.copy(), pattern.indptr.copy(), pattern.shape)
    # NB: copies, since methods such as `eliminate_zeros` write to the indices
    data = np.array(host_values(values))
    found = sparse.csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
    return found if form == "csr" else found.asformat(form)
