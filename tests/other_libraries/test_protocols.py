"""Law: an object that computes by NumPy's protocol with the array that it holds decides about operators and NumPy's functions with it.

These objects stand in for xarray's and pint's, and for pandas' Series, so that the protocols are tested where none of them is installed.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import check, numbers

START = numbers((3, 3)) + 2.0


class Names:
    """Holds an array, computes with it, and has its attributes; without `__array_function__`, as a DataArray of xarray."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.held, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return type(self)(getattr(ufunc, method)(*(x.held if isinstance(x, Names) else x for x in inputs), **kwargs))

    def __add__(self, other: Any) -> Any:
        return np.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return np.add(other, self)

    def __rsub__(self, other: Any) -> Any:
        return np.subtract(other, self)

    def __rmatmul__(self, other: Any) -> Any:
        return np.matmul(self, other)  # the wrong way round, as in pint


class Box(Names):
    """Takes NumPy's other functions, too, as a quantity of pint."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Box(func(*(x.held if isinstance(x, Box) else x for x in args), **kwargs))


class Opaque:
    """Opts out of NumPy's operators."""

    __array_ufunc__ = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError

    def __rmul__(self, other: Any) -> str:
        return "mine"


class Column:
    """Has values, as a Series of pandas."""

    __pandas_priority__ = 3000

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.dtype = self.values.dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def to_numpy(self) -> Any:
        return self.values

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if other.__pandas_priority__ > self.__pandas_priority__ else self


HELD = numbers((3, 3), 2.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, b: x + b, lambda x, b: x - b, lambda x, b: b + x, lambda x, b: x @ b, lambda x, b: np.multiply(x, b),
        lambda x, b: np.hypot(b, x), lambda x, b: np.matmul(x, b), lambda x, b: np.where(HELD > 0.0, x, b), lambda x, b: np.dot(x, b),
    ],
)  # fmt: skip
def test_the_container_decides(call: Any) -> None:
    def function(x: Any) -> Any:
        out = call(x, Box(HELD))
        assert type(out) is Box
        return out.held

    check(function, [START])
    np.testing.assert_allclose(function(xp.asarray(START)).numpy(), call(START, HELD))
    check(lambda x: call(x, Box(x * 2.0)).held, [START])


def test_an_object_may_opt_out_of_numpys_operators() -> None:
    assert xp.asarray(START) * Opaque() == "mine"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, b: xp.add(x, b), lambda x, b: xp.sin(b), lambda x, b: xp.multiply(b, x), lambda x, b: xp.matmul(b, x),
        lambda x, b: xp.mean(b), lambda x, b: xp.sum(b), lambda x, b: xp.maximum(x, b), lambda x, b: xp.where(x > 0.0, x, b),
        lambda x, b: xp.stack([x, b]), lambda x, b: operator.iadd(x * 1.0, b), lambda x, b: operator.setitem(x * 1.0, 0, b),
        lambda x, b: x.add(b), lambda x, b: np.where(HELD > 0.0, x, Names(HELD)), lambda x, b: np.stack([x, Names(HELD)]),
    ],
)  # fmt: skip
def test_functions_refuse_containers(call: Any) -> None:
    x = xp.tensor(START, requires_grad=True)
    for held in (HELD, x * 2.0):
        with pytest.raises(TypeError, match=r"got \S*(Box|Names), which computes with the array that it holds"):
            call(x, Box(held))


def test_values_of_pandas_objects_are_constants() -> None:
    column = Column([1.0, 2.0, 3.0])
    for call in (
        lambda x: x * column,
        lambda x: column * x,
        lambda x: np.multiply(column, x),
        lambda x: x @ column,
        lambda x: np.dot(x, column),
    ):
        check(call, [START])
    check(lambda x: xp.where(Column([True, False, True]), x, column), [START])
    with pytest.raises(TypeError, match=r"`multiply` got .*Column and dtype <U1, which is no array of numbers"):
        xp.asarray(START) * Column(list("abc"))
