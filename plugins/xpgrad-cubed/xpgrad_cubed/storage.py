"""Where arrays are computed and kept: the Spec, one computation of several arrays, and arrays whose values are known."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import cubed
import numpy as np
import zarr
from cubed.runtime.create import create_executor

__all__ = ["IN_MEMORY", "choose_chunks", "compute_arrays", "divide_until", "from_numpy", "known_values", "store_arrays"]

#: The `cubed.Spec` of arrays that xpgrad makes; None for cubed's configuration. `xpgrad_cubed.set_spec` sets it.
current_spec: Any = None

IN_MEMORY = 1_000_000  # bytes; cubed keeps no larger array in its plans
_COPIES = 20  # a task may need several chunks, each in several copies (compressed, uncompressed, result)
_ONE_THREAD: Any = create_executor("single-threaded")


def options(*arrays: Any) -> dict[str, Any]:
    """Return the options of a computation: the executor of the arrays' Spec or of cubed's configuration, else a single thread."""
    chosen = arrays[0].spec.executor is not None or "executor_name" in cubed.config
    return {} if chosen else {"executor": _ONE_THREAD}


def compute_arrays(*arrays: Any) -> list[Any]:
    """Return the values of cubed arrays, computed in one pass. Every computation of this backend goes through this function."""
    with np.errstate(all="ignore"):  # as on other backends, infinities and nans are values and not warnings
        lazy = [x for x in arrays if known_values(x) is None]
        found = iter(cubed.compute(*lazy, **options(*lazy)) if lazy else ())
    return [np.asarray(next(found)) if values is None else values for values in map(known_values, arrays)]


def store_arrays(*arrays: Any) -> list[Any]:
    """Return arrays with the values and chunks of `arrays` and with empty plans, computed in one pass."""
    lazy = [x for x in arrays if known_values(x) is None]
    if not lazy:
        return list(arrays)
    folder = tempfile.mkdtemp(prefix="xpgrad-", dir=lazy[0].spec.work_dir)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    paths = [f"{folder}/{k}" for k in range(len(lazy))]
    with np.errstate(all="ignore"):
        cubed.store(lazy, paths, **options(*lazy))
    found = []
    for x, path in zip(lazy, paths):
        small = x.nbytes <= IN_MEMORY
        found.append(from_numpy(np.asarray(zarr.open_array(path, mode="r")[...]), x) if small else cubed.from_zarr(path, spec=x.spec))
    stored = iter(found)
    return [next(stored) if known_values(x) is None else x for x in arrays]


def known_values(x: Any) -> Any:
    """Return the values of an array that was made from NumPy's; None for any other, whose values would have to be computed."""
    return getattr(x, "xpgrad_values", None)


def from_numpy(array: Any, like: Any = None) -> Any:
    """Return a cubed array with known values, in the chunks and with the Spec of `like` if it is given."""
    spec, chunks = (current_spec, choose_chunks(array.shape, array.dtype)) if like is None else (like.spec, like.chunksize)
    small = array.nbytes <= IN_MEMORY
    out = cubed.asarray(array, chunks=chunks, spec=spec) if small else cubed.from_array(array, chunks=chunks, spec=spec)
    out.xpgrad_values = array
    return out


def choose_chunks(shape: Any, dtype: Any) -> tuple[int, ...]:
    """Return a chunk size for an array that has none yet, which a task can process.

    NB: cubed itself chooses chunks of 128 MiB, whatever the allowed memory is.
    """
    spec = current_spec or cubed.Spec(**cubed.config.get("spec"))
    return divide_until([max(n, 1) for n in shape], dtype, spec, range(len(shape)))


def divide_until(chunks: list[int], dtype: Any, spec: Any, axes: Sequence[int]) -> tuple[int, ...]:
    """Return a chunk size whose longest axes among `axes` are halved until a task has memory for several copies of the chunk."""
    limit = min(max((spec.allowed_mem - spec.reserved_mem) // _COPIES, 1), 100_000_000)
    chunks = list(chunks)
    while math.prod(chunks) * np.dtype(dtype).itemsize > limit and any(chunks[i] > 1 for i in axes):
        k = max(axes, key=chunks.__getitem__)
        chunks[k] = -(-chunks[k] // 2)
    return tuple(chunks)
