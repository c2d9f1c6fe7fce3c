"""Law: reading, adding and writing at a random key, in random chunks, gives NumPy's results, whether the key's values are known or not."""

from __future__ import annotations

import itertools
from typing import Any

import dask.array as da
import numpy as np
import pytest

import xpgrad as xp
from xpgrad.errors import CapabilityError


def chunks_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return a random division of a shape into chunks."""
    out = []
    for n in shape:
        cuts = sorted({0, n, *rng.integers(0, n + 1, size=rng.integers(0, 3)).tolist()})
        out.append(tuple(b - a for a, b in itertools.pairwise(cuts)) or (0,))
    return tuple(out)


def in_chunks(k: Any, chunks: Any, known: bool) -> Any:
    """Return a dask array; unless `known`, one whose values are not known before they are computed."""
    x = da.from_array(k, chunks=chunks)
    return x if known else da.map_blocks(np.copy, x, dtype=k.dtype)


def draw(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return a random shape, and a key of NumPy arrays, slices and integers for it."""
    shape = tuple(int(n) for n in rng.integers(1, 6, size=rng.integers(1, 4)))
    common = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(0, 3)))
    kinds = ["array", "slice", "integer", "full", "new"]
    masks = rng.random() < 0.4
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        if masks and len(key) == axis and rng.random() < 0.6:
            width = int(rng.integers(1, len(shape) - axis + 1))
            key.append(rng.random(shape[axis : axis + width]) < 0.6)
            axis, masks, kinds = axis + width, False, ["full"] if rng.random() < 0.8 else kinds
            continue
        n = shape[axis]
        kind = rng.choice(["full"] if masks else kinds)
        if kind == "array":
            size = common if rng.random() < 0.7 else (1,) * len(common)
            key.append(rng.integers(-n, n, size=size))
        elif kind == "slice":
            key.append(slice(int(rng.integers(-n, n)), None, int(rng.choice([1, 2, -1]))))
        elif kind == "integer":
            key.append(int(rng.integers(-n, n)))
        else:
            key.append(None if kind == "new" else slice(None))
        axis += kind != "new"
    return shape, tuple(key)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("known", [True, False])
def test_random_keys(known: bool) -> None:
    xpk = xp.asarray([1.0], device="dask").backend.kernels
    backend = xp.asarray([1.0], device="dask").backend
    import dask

    refused = done = 0
    with dask.config.set(scheduler="synchronous"):
        for seed in range(250):
            rng = np.random.default_rng(seed)
            shape, key = draw(rng)
            raw = rng.normal(size=shape)
            x = da.from_array(raw, chunks=chunks_of(rng, shape))
            lazy = tuple(
                k if not isinstance(k, np.ndarray) else in_chunks(k, chunks_of(rng, k.shape), known) for k in key
            )  # fmt: skip
            if not any(isinstance(k, np.ndarray) for k in key):
                continue
            try:
                expected = raw[key]
            except IndexError:
                continue  # masks and arrays that do not broadcast together
            label = f"seed {seed}, shape {shape}, key {key}"
            try:
                got = xpk.gather(x, lazy)
            except CapabilityError:
                assert not known, label
                refused += 1
                continue
            done += 1
            np.testing.assert_array_equal(got.compute(), expected, err_msg=label)
            # Adding: the gradient of a product with a constant has the chunks of the array that was read.
            factor = rng.normal(size=expected.shape)
            g = got * 0 + (da.from_array(factor, chunks=chunks_of(rng, factor.shape)) if not np.isnan(got.shape).any() else 1.5)
            factor = factor if not np.isnan(got.shape).any() else np.full(expected.shape, 1.5)
            want = np.zeros(shape)
            np.add.at(want, key, factor)
            added = xpk.scatter_add(g, lazy, backend.operand_shape(x))
            assert added.chunks == x.chunks, label
            np.testing.assert_allclose(added.compute(), want, err_msg=label, rtol=1e-12, atol=1e-12)
            # Writing: the last of duplicates wins; values broadcast.
            same = rng.normal(size=expected.shape)
            for value in (same, rng.normal(size=expected.shape[-1:]), same[None], 2.5):
                if not isinstance(value, float) and 0 in value.shape:
                    continue
                want = raw.copy()
                want[key] = same if np.ndim(value) > same.ndim else value
                new = value if isinstance(value, float) else da.from_array(value, chunks=chunks_of(rng, value.shape))
                np.testing.assert_array_equal(xpk.written(x, lazy, new).compute(), want, err_msg=label)
            np.testing.assert_array_equal(x.compute(), raw)
    assert done > 100
    assert (refused > 0) is not known


def test_a_write_into_a_part_of_what_was_broadcast_reaches_the_whole() -> None:
    """Each element of the base shows several times in the view; the write must win over the old values of the others."""
    base = xp.tensor([1.0, 2.0], device="dask") * 1.0
    wide = xp.broadcast_to(base, (3, 2))
    row = wide[0]
    row[1:] = 5.0
    assert base.tolist() == [1.0, 5.0]
    assert wide.tolist() == [[1.0, 5.0]] * 3
    with pytest.raises(RuntimeError, match="single memory location"):
        wide.add_(1.0)
