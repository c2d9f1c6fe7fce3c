"""Law: without assignment, a write by slices costs at most two copies of the array, and a single index array needs no flattening."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from xpgrad.backend import Backend, Capabilities, Device


class Fixed(Backend):
    """NumPy arrays that the core never writes to; it records the kernels that make new memory, with their numbers of elements."""

    name = "fixed"
    capabilities = Capabilities(mutable=False)

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, int]] = []

    def namespace(self) -> Any:
        import array_api_compat.numpy

        return array_api_compat.numpy

    def array_types(self) -> tuple[type, ...]:
        return (np.ndarray,)

    def from_host(self, array: Any, device: Device) -> Any:
        return np.array(array)

    def to_host(self, x: Any) -> Any:
        return x

    def device_of(self, x: Any) -> Device:
        return Device("fixed")

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> list[Device]:
        return [Device("fixed")]

    def find_dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else np.dtype(name)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if name not in ("concat", "where", "take", "last_writer", "flat_index", "segment_sum", "zeros"):
            return function

        def kernel(*args: Any, **options: Any) -> Any:
            out = function(*args, **options)
            self.made.append((name, math.prod(out.shape)))
            return out

        return kernel


SLICES = st.builds(slice, *[st.none() | st.integers(-6, 6)] * 2, st.none() | st.sampled_from((-3, -2, -1, 1, 2, 3)))


@st.composite
def places(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Draw a shape and a key of integers, slices, an ellipsis and new axes."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    key = [draw(SLICES if n == 0 else SLICES | st.integers(-n, n - 1)) for n in shape]
    if draw(st.booleans()):
        first = draw(st.integers(0, len(key)))
        key[first : draw(st.integers(first, len(key)))] = [...]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return shape, tuple(key)


@settings(max_examples=300, deadline=None)
@given(places(), st.booleans())
def test_writes_and_gradients_of_slices_are_numpys(place: tuple[tuple[int, ...], tuple[Any, ...]], is_number: bool) -> None:
    shape, key = place
    x = np.arange(1.0, math.prod(shape) + 1).reshape(shape)
    expected, zeros = x.copy(), np.zeros(shape)
    value: Any = 7.0 if is_number else -1.0 - np.arange(float(x[key].size)).reshape(x[key].shape)
    expected[key] = value
    zeros[key] = value
    kernels = Fixed().kernels
    before = x.copy()
    np.testing.assert_array_equal(kernels.written(x, key, value), expected)
    np.testing.assert_array_equal(x, before)
    if not is_number:
        np.testing.assert_array_equal(kernels.index_basic_transpose(value, key, shape), zeros)
        np.testing.assert_array_equal(kernels.add_at(x, value, key), x + zeros)
        np.testing.assert_array_equal(kernels.put_at_path(x, [("index_basic", (key,))], value), expected)
    else:
        np.testing.assert_array_equal(kernels.zero_through(x, (("index_basic", (key,)),)), np.where(zeros == 7.0, 0.0, x))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_single_index_array_reads_writes_and_adds_as_numpy(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    counts = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    picks = data.draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=math.prod(counts), max_size=math.prod(counts)))
    key: tuple[Any, ...] = (*(slice(None),) * axis, np.asarray(picks, dtype=np.int64).reshape(counts))
    if data.draw(st.booleans()):
        key = (..., key[-1], *(slice(None),) * (len(shape) - axis - 1))
    x = np.arange(1.0, math.prod(shape) + 1).reshape(shape)
    value = -np.arange(1.0, x[key].size + 1).reshape(x[key].shape)
    backend = Fixed()
    kernels = backend.kernels
    np.testing.assert_array_equal(kernels.gather(x, key), x[key])
    added = np.zeros(shape)
    np.add.at(added, key, value)
    np.testing.assert_array_equal(kernels.scatter_add(value, key, shape), added)
    expected = x.copy()
    expected[key] = value
    np.testing.assert_array_equal(kernels.written(x, key, value), expected)
    assert "flat_index" not in [name for name, _ in backend.made]
    with pytest.raises(IndexError, match="out of range"):
        kernels.gather(x, (*(slice(None),) * axis, np.asarray([shape[axis]])))


@pytest.mark.parametrize("n", [20, 1000])
@pytest.mark.parametrize("key", [(slice(1, -1), slice(1, -1)), (3,), (slice(None), 4), (slice(None, None, 2),), (slice(1, None, 3),)])
def test_a_write_by_slices_makes_at_most_two_copies(n: int, key: tuple[Any, ...]) -> None:
    backend = Fixed()
    x = np.ones((n, n))
    value = np.zeros(x[key].shape)
    for name, arguments in (("written", (x, key, value)), ("index_basic_transpose", (value, key, (n, n)))):
        backend.made.clear()
        getattr(backend.kernels, name)(*arguments)
        assert {kernel for kernel, _ in backend.made} <= {"concat", "zeros"}
        assert sum(count for kernel, count in backend.made if kernel == "concat") <= 2 * n * n
        assert len(backend.made) <= 8


@pytest.mark.parametrize("key", [slice(0, 0), slice(0, 2), [], [0, 1]], ids=repr)
@pytest.mark.parametrize("shape", [(5,), (3, 2)])
def test_a_value_that_does_not_fit_is_refused(key: Any, shape: tuple[int, ...]) -> None:
    """Also if nothing is selected."""
    index = key if isinstance(key, slice) else np.asarray(key, dtype=np.int64)
    with pytest.raises(ValueError, match=r"broadcast|more dimensions"):
        Fixed().kernels.written(np.zeros(4), (index,), np.ones(shape))
