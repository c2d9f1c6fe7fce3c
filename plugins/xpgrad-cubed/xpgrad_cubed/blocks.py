"""NumPy functions applied to whole chunks, later: how this backend computes what cubed lacks, within the allowed memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cubed
import numpy as np

from xpgrad_cubed.storage import divide_until

__all__ = ["apply_blocks", "merge_chunks"]


def apply_blocks(
    function: Callable[..., Any], signature: str, *arrays: Any, sizes: Mapping[str, int] | None = None, dtype: Any = None
) -> Any:
    """Apply a NumPy function to stacks of arrays, as `numpy.vectorize` with a signature; it is called with chunks of whole core axes.

    Parameters
    ----------
    function : callable
        Takes NumPy arrays whose loop axes broadcast, and returns one.
    signature : str
        The core axes, e.g. ``"(m,n),(n)->(m)"``; empty for a function of elements. Core axes are merged into one chunk; the loop axes are
        divided so that a chunk does not grow.
    *arrays : array or number
        Raw arrays, and numbers, which are passed on.
    sizes : mapping of str to int, optional
        The lengths of core axes that only the result has.
    dtype : numpy.dtype, optional
        The dtype of the result; by default that of the function's result for ones.

    Returns
    -------
    array
        A lazy array of the loop axes followed by the core axes of the result.
    """
    raws = {i: a for i, a in enumerate(arrays) if isinstance(a, cubed.Array)}
    before, after = (signature or ",".join("()" for _ in raws) + "->()").replace(" ", "").split("->")
    cores = dict(zip(raws, re.findall(r"\(([^)]*)\)", before)))
    kept = set(after.strip("()").split(","))
    # NB: cubed misreads the chunks of all operands if one loses a core axis and the first does not, so one that does comes first.
    places = sorted(raws, key=lambda i: not set(filter(None, cores[i].split(","))) - kept)
    counts = [len(cores[i].split(",")) if cores[i] else 0 for i in places]
    call = functools.partial(_call, function, [None if i in raws else a for i, a in enumerate(arrays)], places)
    if dtype is None:
        samples = (np.eye(2, dtype=raws[i].dtype) if k == 2 else np.ones((1,) * k, raws[i].dtype) for k, i in zip(counts, places))
        dtype = call(*samples).dtype
    ordered = ",".join(f"({cores[i]})" for i in places) + "->" + after
    aligned = _align([raws[i] for i in places], counts)
    return cubed.apply_gufunc(call, ordered, *aligned, output_dtypes=dtype, output_sizes=dict(sizes or {}))


def _call(function: Callable[..., Any], fixed: Sequence[Any], places: Sequence[int], *chunks: Any) -> Any:
    """Call a function with chunks at `places`, and fixed arguments at the others."""
    arguments = list(fixed)
    for i, chunk in zip(places, chunks):
        arguments[i] = chunk
    with np.errstate(all="ignore"):
        return np.asarray(function(*arguments))


def merge_chunks(x: Any, axes: Sequence[int]) -> Any:
    """Rechunk `x` to one chunk along each of `axes`; other axes are divided further, so that a chunk fits into a task's memory."""
    if all(x.numblocks[i] == 1 for i in axes):
        return x
    chunks = [n if i in axes else c for i, (n, c) in enumerate(zip(x.shape, x.chunksize))]
    return cubed.rechunk(x, divide_until(chunks, x.dtype, x.spec, [i for i in range(x.ndim) if i not in axes]))


def _align(arrays: Sequence[Any], cores: Sequence[int]) -> list[Any]:
    """Return arrays with core axes of one chunk each, and loop axes of the same chunks where they broadcast."""
    merged = [merge_chunks(x, range(x.ndim - k, x.ndim)) for x, k in zip(arrays, cores)]
    smallest: dict[int, int] = {}  # of each loop axis, counted from the last one
    loops = [x.ndim - k for x, k in zip(merged, cores)]
    for x, n in zip(merged, loops):
        for i in range(n):
            if x.shape[i] > 1:
                smallest[i - n] = min(smallest.get(i - n, x.shape[i]), x.chunksize[i])
    found = []
    for x, n in zip(merged, loops):
        chunks = tuple(smallest[i - n] if i < n and x.shape[i] > 1 else c for i, c in enumerate(x.chunksize))
        found.append(x if chunks == x.chunksize else cubed.rechunk(x, chunks))
    return found
