"""Law: an invalid index raises on every backend before anything is read or written, whatever the backend's kernels do.

One of the backends has kernels that never raise, so there the core must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES, kernels_only, reckless
from support.central_differences import values
from xpgrad._basics.keys import full_key
from xpgrad.backend import Kernels

kernels_only.register()
reckless.register()

#: Keys that are invalid for shape (3, 4), each with the type of its error and a word of the message. `i(values)` is an index array.
KEYS: dict[str, tuple[Callable[[Callable[..., Any]], Any], type[Exception], str]] = {
    "3": (lambda i: 3, IndexError, "[Ii]ndex 3 is out of"),
    "-4": (lambda i: -4, IndexError, "[Ii]ndex -4 is out of"),
    "0, 4": (lambda i: (0, 4), IndexError, "[Ii]ndex 4 is out of .* (axis|dimension) 1"),
    ":, -5": (lambda i: (slice(None), -5), IndexError, "[Ii]ndex -5 is out of .* (axis|dimension) 1"),
    "..., 4": (lambda i: (..., 4), IndexError, "[Ii]ndex 4 is out of .* (axis|dimension) 1"),
    "None, 3": (lambda i: (None, 3), IndexError, "[Ii]ndex 3 is out of"),
    "2**70": (lambda i: 2**70, IndexError, "out of range"),
    "::0": (lambda i: slice(None, None, 0), ValueError, "step of a slice must not be 0"),
    "1, ::0": (lambda i: (1, slice(None, None, 0)), ValueError, "step of a slice must not be 0"),
    "two ellipses": (lambda i: (..., 0, ...), IndexError, "ellipsis"),
    "too many": (lambda i: (0, 0, 0), IndexError, "too many indices"),
    "a float": (lambda i: 1.0, IndexError, "not by float 1.0"),
    "a string": (lambda i: "a", IndexError, "not by str 'a'"),
    "a bound of a slice": (lambda i: slice(0.5, None), TypeError, "bounds of a slice must be integers"),
    "i too large": (lambda i: i([0, 3]), IndexError, "[Ii]ndex 3 is out of"),
    "i too small": (lambda i: i([-4, 0]), IndexError, "[Ii]ndex -4 is out of"),
    ":, i": (lambda i: (slice(None), i([4])), IndexError, "[Ii]ndex 4 is out of .* (axis|dimension) 1"),
    "i, 4": (lambda i: (i([0]), 4), IndexError, "[Ii]ndex 4 is out of .* (axis|dimension) 1"),
    "i, ::0": (lambda i: (i([0]), slice(None, None, 0)), ValueError, "slice"),
    "i of uint8": (lambda i: i([200], "uint8"), IndexError, "[Ii]ndex 200 is out of"),
    "i of float32": (lambda i: i([0.0], "float32"), IndexError, "must hold integers or bools"),
    "two ellipses and i": (lambda i: (..., i([0]), ...), IndexError, "ellipsis"),
    "i, i, i": (lambda i: (i([0]),) * 3, IndexError, "too many indices"),
    "i and j apart": (lambda i: (i([0, 1]), i([0, 1, 2])), IndexError, "broadcast"),
    "a short mask": (lambda i: i([True, False], "bool"), IndexError, "mask|boolean"),
    "a wide mask": (lambda i: i([[True, False]] * 3, "bool"), IndexError, "mask|boolean"),
}  # fmt: skip
ARRAY = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture(params=[*DEVICES, *(d for d in ("bare", "reckless") if d not in DEVICES)])
def device(request: Any) -> str:
    return str(request.param)


def _arrays(device: str) -> Callable[..., Any]:
    return lambda data, dtype="int64": xp.asarray(np.asarray(data, dtype), device=device)


def _write(x: Any, key: Any) -> None:
    x[key] = xp.asarray(np.asarray(7, "float32"), device=x.device)


def _write_with_history(x: Any, key: Any) -> None:
    y = x.detach().requires_grad_() * 1
    y[key] = 7.0


USES: dict[str, Callable[[Any, Any], Any]] = {"read": lambda x, key: values(x[key]), "write": _write, "recorded write": _write_with_history}


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_the_array_does_not_have(name: str, use: str, device: str) -> None:
    make, error, phrase = KEYS[name]
    x = xp.asarray(ARRAY, device=device)
    with pytest.raises(error, match=phrase):
        USES[use](x, make(_arrays(device)))
    np.testing.assert_array_equal(values(x), ARRAY)


#: Functions that take indices or axes, each with one that is out of range.
CALLS: dict[str, tuple[Callable[[Any, Any], Any], type[Exception], str]] = {
    "take": (lambda x, i: xp.take(x, i([4]), axis=1), IndexError, "[Ii]ndex 4 is out of"),
    "take from the end": (lambda x, i: xp.take(x, i([0, -4]), axis=0), IndexError, "[Ii]ndex -4 is out of"),
    "take_along_axis": (lambda x, i: xp.take_along_axis(x, i([[4]]), axis=1), IndexError, "[Ii]ndex 4 is out of"),
    "take_along_axis from the end": (lambda x, i: xp.take_along_axis(x, i([[-4, 0, 0, 0]]), axis=0), IndexError, "[Ii]ndex -4 is out of"),
    "take_along_axis, rank": (lambda x, i: xp.take_along_axis(x, i([0]), axis=0), ValueError, "as many axes as x"),
    "take_along_axis, shapes": (lambda x, i: xp.take_along_axis(x, i([[0, 0]]), axis=0), ValueError, "could not be broadcast together"),
    "take_along_axis, floats": (lambda x, i: xp.take_along_axis(x, i([[0.0]], "float32"), axis=0), IndexError, "must hold integers"),
    "take_along_axis, bools": (lambda x, i: xp.take_along_axis(x, i([[True]], "bool"), axis=0), TypeError, "must be integers"),
    "take_along_axis, axis": (lambda x, i: xp.take_along_axis(x, i([[0]]), axis=2), IndexError, "axis 2 is out of range"),
    "index_add_": (lambda x, i: x.index_add_(0, i([3]), x[:1] * 1), IndexError, "[Ii]ndex 3 is out of"),
    "searchsorted": (lambda x, i: xp.searchsorted(x[0], x[1], sorter=i([0, 1, 300, 2])), IndexError, "[Ii]ndex 300 is out of"),
    "repeat": (lambda x, i: xp.repeat(x, i([1, -1, 1]), axis=0), ValueError, "must not be negative"),
    "repeat, length": (lambda x, i: xp.repeat(x, i([1, 1]), axis=0), ValueError, "has length 3"),
    "unstack": (lambda x, i: xp.unstack(x, axis=2), IndexError, "axis 2 is out of range"),
    "moveaxis": (lambda x, i: xp.moveaxis(x, 0, 2), IndexError, "destination 2 is out of range"),
    "moveaxis twice": (lambda x, i: xp.moveaxis(x, (0, 0), (0, 1)), ValueError, "names an axis twice"),
    "vmap": (lambda x, i: xp.func.vmap(lambda row: row[4])(x), IndexError, "[Ii]ndex 4 is out of"),
    "vmap of take_along_axis": (lambda x, i: xp.func.vmap(lambda row: xp.take_along_axis(row, i([4])))(x), IndexError, "[Ii]ndex 4 is out"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_index_that_the_array_does_not_have(name: str, device: str) -> None:
    call, error, phrase = CALLS[name]
    x = xp.asarray(ARRAY, device=device)
    with pytest.raises(error, match=phrase):
        values(call(x, _arrays(device)))
    np.testing.assert_array_equal(values(x), ARRAY)


def test_what_is_in_range_is_the_same_on_the_reckless_backend() -> None:
    x = xp.asarray(ARRAY, device="reckless")
    i = _arrays("reckless")
    basic: list[Any] = [(1, -1), -3, (..., slice(None, None, -2)), (None, 2), ()]
    for key in basic:
        np.testing.assert_array_equal(values(x[key]), ARRAY[key])
    advanced: list[Any] = [[0, -1, 0], (slice(1), [3, -4])]
    for key in advanced:
        ours = tuple(i(p) if isinstance(p, list) else p for p in key) if isinstance(key, tuple) else i(key)
        np.testing.assert_array_equal(values(x[ours]), ARRAY[key])
        y, expected = x * 1, ARRAY.copy()
        y[ours] = 7.0
        expected[key] = 7
        np.testing.assert_array_equal(values(y), expected)
    places = np.asarray([[-4, 3, 0], [1, 1, -1], [0, 2, 0]])
    np.testing.assert_array_equal(values(xp.take_along_axis(x, i(places), axis=1)), np.take_along_axis(ARRAY, places, 1))


def test_a_kernel_of_the_backend_gets_what_the_page_promises() -> None:
    """Kernels get complete basic keys with slices within bounds; indices along an axis count from the front."""
    seen: list[Any] = []

    class Watched(reckless.RecklessBackend):
        overrides = {  # noqa: RUF012 (one test's)
            "index_basic": lambda x, key: (seen.append(key), x[key])[1],
            "written": lambda buffer, key, value: (seen.append(key), buffer)[1],
            "add_at": lambda buffer, g, key: (seen.append(key), buffer)[1],
            "index_basic_transpose": lambda g, key, shape: (seen.append(key), g)[1],
            "gather_along": lambda x, indices, axis: (seen.append(indices.tolist()), x)[1],
        }

    table = Watched()
    kernels = Kernels(table)
    array = ARRAY.copy()
    for key in (1, (slice(-100, 100),), (..., 2), (None, slice(3, None, -1)), (slice(9, 2), -1)):
        kernels.index_basic(array, key)
        assert seen.pop() == full_key(key, (3, 4))
        kernels.written(array, key, 0)
        kernels.add_at(array, array, key)
        kernels.index_basic_transpose(array, key, (3, 4))
        assert seen == [full_key(key, (3, 4))] * 3
        seen.clear()
    kernels.gather_along(array, np.asarray([[-1], [0], [-4]], "int8"), 1)
    assert seen.pop() == [[3], [0], [0]]


def test_a_backend_that_checks_by_itself_is_called_directly() -> None:
    assert xp.zeros(1, device="numpy").backend.kernels.gather_along is np.take_along_axis
