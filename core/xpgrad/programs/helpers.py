"""Helper functions in plain NumPy, which printed source includes for operations that take more than one line."""

from __future__ import annotations

__all__ = ["HELPERS", "IN_THREADS", "select_helpers"]

#: The text of each, by name. NB: they compute what the kernels of NumPy's backend do, and these say why.
HELPERS: dict[str, str] = {
    "_scatter_into": '''\
def _scatter_into(out, values, key):
    """Add values to out[key] in place, including duplicates of an index."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if isinstance(key, np.ndarray) and key.dtype.kind == "b":
        out[key] += values  # a mask has no duplicates
    elif isinstance(key, np.ndarray) and out.flags.c_contiguous:
        width = int(np.prod(out.shape[1:]))
        key = key.astype(np.intp, copy=False).reshape(-1, 1)
        if width == 1:
            np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))
        elif out.size:  # np.add.at is fast only for flat arrays of one dtype, and two numbers can be added as one complex
            flat, values = out.reshape(-1), np.ascontiguousarray(values).reshape(-1)
            pair = {np.dtype(np.float64): np.complex128, np.dtype(np.float32): np.complex64}.get(out.dtype)
            if pair is not None and values.dtype == out.dtype and width % 2 == 0:
                flat, values, width = flat.view(pair), values.view(pair), width // 2
            places = np.where(key < 0, key + out.shape[0], key) * width + np.arange(width)
            np.add.at(flat, places.reshape(-1), values)
    else:
        np.add.at(out, key, values)
    return out
''',
    "_written": '''\
def _written(out, key, value):
    """Overwrite out[key] in place."""
    out[key] = value
    return out
''',
    "_scatter_add": '''\
def _scatter_add(values, key, shape):
    """Return zeros of a shape with values added at [key], including duplicates of an index."""
    return _scatter_into(np.zeros(shape, values.dtype), values, key)
''',
    "_diagonal_transpose": '''\
def _diagonal_transpose(values, shape, offset):
    """Return zeros of a shape with values on a diagonal of the last two axes."""
    out = np.zeros(shape, values.dtype)
    rows = np.arange(values.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = values
    return out
''',
    "_ordered_back": '''\
def _ordered_back(values, order, axis):
    """Return the array that was sorted along an axis by these indices."""
    out = np.empty_like(values)
    np.put_along_axis(out, order, values, axis)
    return out
''',
    "_keep": '''\
_BITS = {"e": np.int16, "f": np.int32, "d": np.int64}


def _keep(condition, x):
    """Return x where the condition is True, else 0: the bits times 0 or 1, which is fast and handles infinities."""
    bits = _BITS.get(x.dtype.char)
    if bits is None:
        return np.where(condition, x, x.dtype.type(0))
    return np.multiply(np.asarray(x).view(bits), condition).view(x.dtype)
''',
    "_share": '''\
def _share(x, low, high):
    """Return 0 where low < high, x / 2 where they are equal, else x."""
    out = _keep(np.logical_not(low < high), x)
    ties = low == high
    if not np.count_nonzero(ties):  # most arrays have none
        return out
    return out * np.subtract(1, np.multiply(ties, 0.5, dtype=out.dtype), dtype=out.dtype)
''',
    "_reduce_var": '''\
def _reduce_var(x, axis, correction, keepdims):
    """Return the variance: the sum of squares divided by the number of elements minus the correction."""
    if x.dtype == np.float16:
        return np.var(x, axis=axis, dtype=np.float32, ddof=correction, keepdims=keepdims).astype(x.dtype)
    count = x.size if axis is None else int(np.prod([x.shape[a] for a in axis]))
    d = x - np.add.reduce(x, axis, keepdims=True) / count
    d = d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d
    return np.add.reduce(d, axis, keepdims=keepdims) / max(count - correction, 0)
''',
}

#: What runs in threads starts with this; ``{threads}`` is how many.
POOL = '''\
import contextvars
import os
from concurrent.futures import ThreadPoolExecutor

_pools = {{}}  # by process: threads do not survive a fork


def _submit(function, *args):
    """Start a call in a new thread."""
    if os.getpid() not in _pools:
        _pools[os.getpid()] = ThreadPoolExecutor({threads})
    return _pools[os.getpid()].submit(contextvars.copy_context().run, function, *args)
'''

#: How it runs there.
IN_THREADS: dict[str, str] = {
    "_in_threads": '''\
def _in_threads(part, length, step):
    """Divide the blocks among threads, call part(start, stop) in each, and return the results in order."""
    share = -(-length // (step * {threads})) * step
    calls = [_submit(part, start, min(start + share, length)) for start in range(0, length, share)]
    return [call.result() for call in calls]
''',
    "_side_by_side": '''\
def _side_by_side(*functions):
    """Call each function in its own thread, and return the results in order."""
    calls = [_submit(function) for function in functions]
    return [call.result() for call in calls]
''',
}

_NEEDS = {"_scatter_add": ("_scatter_into",), "_share": ("_keep",)}


def select_helpers(used: set[str], threads: int = 1) -> str:
    """Return the source of the used helpers, and of those that they call."""
    parallel = [text.format(threads=threads) for name, text in IN_THREADS.items() if name in used]
    every = used | {other for name in used for other in _NEEDS.get(name, ())}
    texts = [*parallel, *(text for name, text in HELPERS.items() if name in every)]
    head = f"\n{POOL.format(threads=threads).rstrip()}" if parallel else ""
    return head + "".join(f"\n\n\n{text.rstrip()}" for text in texts)
