"""Errors for arguments for which no matrix can be made, patterns that do not fit, and derivatives that contradict a pattern."""

from __future__ import annotations

from typing import Any

from xpgrad._modes import state
from xpgrad.func._reverse import grad
from xpgrad.func._sparse.host import np, sparse
from xpgrad.func._sparse.products import Seeds, from_left, from_right, leaves_of, of_gradient, outputs_of
from xpgrad.func._sparse.results import host_values
from xpgrad.func._sparse.tracing import Call
from xpgrad.func._tree import flatten


def check_leaves(name: str, leaves: list[Any]) -> None:
    """Raise RuntimeError for complex arguments, and for those inside another transform."""
    for x in leaves:
        if x.dtype.is_complex:
            msg = f"{name}: complex arguments are refused, and one is {x.dtype}; pass the real and the imaginary part as two arguments"
            raise RuntimeError(msg)
        backend = type(x).backend
        traced = not backend.capabilities.lazy and backend.is_traced(x._array)  # a lazy library's values can be had
        if x.depth or type(x).stage or traced or state.carries_tangents():
            msg = (
                f"{name}: the result is a matrix of another library, not a Tensor, so it cannot be computed inside of `vmap`, `jvp`, "
                "`compile` and other transforms; use `jacrev`, `jacfwd` or `hessian` there"
            )
            raise RuntimeError(msg)


def check_given_pattern(name: str, pattern: Any, shape: tuple[int, int]) -> Any:
    """Return the user's pattern as a sparse matrix of bools.

    In an array the nonzero elements are the entries; in a sparse matrix all stored entries are, even zeros.

    Raises
    ------
    TypeError
        If it is neither a sparse matrix nor an array.
    ValueError
        If it has another shape.
    """
    if not sparse.issparse(pattern):
        pattern = getattr(pattern, "_array", pattern)
        try:
            pattern = np.asarray(pattern)
        except (TypeError, ValueError, RuntimeError) as exc:
            msg = f"{name}: `pattern` must be 'global', 'local', a scipy.sparse matrix or an array of bools, not {type(pattern).__name__}"
            raise TypeError(msg) from exc
        if pattern.dtype.kind not in "biuf":
            msg = f"{name}: `pattern` must be 'global', 'local', a scipy.sparse matrix or an array of bools, not one of {pattern.dtype}"
            raise TypeError(msg)
        pattern = pattern != 0
    if tuple(pattern.shape) != shape:
        msg = f"{name}: the pattern has shape {tuple(pattern.shape)}, but the matrix has {shape}: a row for each element of the outputs"
        raise ValueError(msg)
    found = sparse.csr_array(pattern)
    found = sparse.csr_array((np.ones(len(found.indices), dtype=bool), found.indices, found.indptr), shape=shape)
    found.sum_duplicates()
    found.sort_indices()
    return found


def check_products(call: Call, hessian: bool, given: bool, prepared: Any) -> None:
    """Compare the matrix with the derivative itself along one random direction.

    Raises
    ------
    ValueError
        If they differ: the user's pattern lacks entries, or a Hessian is not symmetric.
    """
    m, n = prepared.shape
    if not m or not n:
        return
    matrix = prepared.matrix(call)
    draws = np.random.default_rng(0)
    if prepared.row_colours.max(initial=-1) >= 0 and prepared.column_colours.max(initial=-1) < 0:
        vector = draws.uniform(0.5, 1.5, m)
        like = leaves_of(call) if hessian else outputs_of(call, call.run())[0]
        found, _ = (of_gradient if hessian else from_left)(call, Seeds.of(vector, like))
        matrix = matrix.T
    else:
        vector = draws.uniform(0.5, 1.5, n)
        found, _ = (of_gradient if hessian else from_right)(call, Seeds.of(vector, leaves_of(call)))
    dtype = found.dtype
    expected = host_values(found.detach()).astype(np.float64).reshape(-1)
    computed = matrix @ vector
    least = _slope(call) if hessian else 0.0
    wrong = _differ(expected, computed, abs(matrix) @ vector + least, dtype)
    if not wrong.any() and prepared.symmetric:  # entries that were read across the diagonal may be the transpose's
        computed = matrix.T @ vector
        wrong = _differ(expected, computed, abs(matrix.T) @ vector + least, dtype)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    what = f"row {row} of the matrix, times a random vector, is {expected[row]:.6g}, but by the pattern {computed[row]:.6g}"
    if given:
        msg = f"{call.name}: the pattern lacks entries that are not 0: {what}; pass one that has them all, or leave `pattern` to tracing"
    else:
        msg = f"{call.name}: the Hessian is not symmetric ({what}), as a rule of one's own can make it; compute it with `by='rows'`"
    raise ValueError(msg)


def _slope(call: Call) -> float:
    """Return the size of the gradient divided by that of the arguments: much smaller second derivatives may be rounding errors.

    Of a function that is constant, such as a sum of probabilities, the gradient is a rounding error as well. So a small part of the
    function's value, divided by the square of that of the arguments, is added.
    """
    (value,), _ = outputs_of(call, call.run())
    leaves, _ = flatten(grad(call.value, call.argnums)(*call.args, **call.kwargs))
    size = _largest(leaves_of(call)) or 1.0
    small = 1e-6 if value.dtype.itemsize == 8 else 0.05
    found = (_largest(leaves) + small * _largest([value]) / size) / size
    return found if np.isfinite(found) else 0.0


def _largest(leaves: list[Any]) -> float:
    return max((float(np.max(np.abs(host_values(x.detach())), initial=0.0)) for x in leaves), default=0.0)


def _differ(expected: Any, computed: Any, size: Any, dtype: Any) -> Any:
    """Return where two products of float `dtype` differ by more than rounding; `size` is the magnitude of the terms that were summed."""
    precise = 1e-6 if dtype.itemsize == 8 else 1e-2
    with np.errstate(invalid="ignore"):
        wrong = np.abs(expected - computed) > precise * (size + np.max(size, initial=0.0, where=np.isfinite(size))) + 1e-300
    return wrong & np.isfinite(expected) & np.isfinite(size)
