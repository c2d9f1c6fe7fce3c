"""Views in compiled programs: the elements that they name are those of NumPy's views."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, strategies as st

from xpgrad.programs.views import Buffer, View


def elements(view: View) -> list[int]:
    """Return the positions of a view's elements in its buffer, in row-major order."""
    places = itertools.product(*map(range, view.shape))
    return [view.offset + sum(i * s for i, s in zip(place, view.strides)) for place in places]


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[object, ...]:
    """Draw a key of integers, slices, None and perhaps an ellipsis, for the first or for the last axes."""
    bounds = st.none() | st.integers(-4, 4)
    parts: list[object] = []
    axes = shape[: draw(st.integers(0, len(shape)))]
    behind = draw(st.booleans())
    for n in shape[len(shape) - len(axes) :] if behind else axes:
        slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -2]))
        parts.append(draw(slices | st.integers(-n, n - 1) if n else slices))
        if draw(st.booleans()):
            parts.append(None)
    return (..., *parts) if behind else tuple(parts)


@given(st.data())
def test_views_of_views_are_those_of_numpy(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), max_size=4).map(tuple))
    size = math.prod(shape)
    array = np.arange(size).reshape(shape)
    view = View.whole(Buffer(size, "int64", 8), shape)
    for step in data.draw(st.lists(st.sampled_from(["key", "axes", "expansion", "shape"]), max_size=5)):
        if step == "key":
            key = data.draw(keys(array.shape))
            array, view = array[key], view.indexed(key)
        elif step == "axes":
            axes = data.draw(st.permutations(range(array.ndim)))
            array, view = array.transpose(axes), view.transposed(axes)
        elif step == "expansion":
            longer = tuple(data.draw(st.integers(1, 3)) if n == 1 else n for n in array.shape)
            longer = (*data.draw(st.lists(st.integers(1, 2), max_size=1)), *longer)
            array, view = np.broadcast_to(array, longer), view.expanded(longer)
        else:
            other = data.draw(st.permutations([n for n in array.shape if n != 1]))
            if data.draw(st.booleans()) and other:
                other = [1, other[0] * math.prod(other[1:])]
            found = view.reshaped(tuple(other))
            if found is None:  # NumPy needs a copy as well
                assert not np.shares_memory(array, array.reshape(other)) or array.size == 0
                continue
            array, view = array.reshape(other), found
        array = np.asarray(array)
        assert view.shape == array.shape
        assert elements(view) == array.ravel().tolist()
        assert view.is_dense == (array.flags.c_contiguous or array.size == 0)
