"""Law: pandas objects beside Tensors are constants with their values, and the results are Tensors with gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.central_differences import check, numbers

pd = pytest.importorskip("pandas", reason="pandas is not installed (the extra `friends`)")

START = numbers((4,)) + 2.0
OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
CONSTANTS: dict[str, Any] = {
    "Series": pd.Series([1.0, 2.0, 3.0, 4.0]),
    "integers": pd.Series([1, 2, 3, 4]),
    "nullable": pd.Series([1.0, 2.0, 3.0, 4.0], dtype="Float64"),
    "nullable integers": pd.Series([1, 2, 3, 4], dtype="Int64"),
    "Index": pd.Index([1.0, 2.0, 3.0, 4.0]),
    "RangeIndex": pd.RangeIndex(1, 5),
    "DataFrame": pd.DataFrame(numbers((3, 4), 2.0) + 2.0, columns=list("abcd")),
    "an array": pd.array([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("name", CONSTANTS)
def test_both_sides_of_an_operator(name: str, op: Callable[[Any, Any], Any]) -> None:
    constant = CONSTANTS[name]
    values = np.asarray(constant.to_numpy(), dtype=float)
    x = xp.asarray(START)
    for found, expected in ((op(x, constant), op(START, values)), (op(constant, x), op(values, START))):
        assert isinstance(found, xp.Tensor)
        np.testing.assert_allclose(found.numpy(), expected)
    check(lambda x: op(x, constant), [START])
    check(lambda x: op(constant, x), [START])


S, B, D = CONSTANTS["Series"], pd.Series([True, False, True, False]), CONSTANTS["DataFrame"]


def updated(x: Any) -> Any:
    y = x * 1.0
    y += S
    y[1:3] = y[1:3] * S[1:3]
    y[0] = S[3]
    return y


CALLS: dict[str, Callable[[Any], Any]] = {
    "np.where": lambda x: np.where(S, x, 0.0),
    "np.where of a comparison": lambda x: np.where(S > 2.0, x, S),
    "xp.where": lambda x: xp.where(B, x, 0.0),
    "comparison": lambda x: x * (S > x),  # noqa: SIM300 (the Series is asked first)
    "np.multiply, a Series first": lambda x: np.multiply(S, x),
    "np.hypot": lambda x: np.hypot(S, x),
    "np.concatenate": lambda x: np.concatenate([x, S]),
    "np.stack": lambda x: np.stack([S, x]),
    "np.average": lambda x: np.average(x, weights=S),
    "np.interp": lambda x: np.interp([1.5, 3.2], S, x),
    "np.dot": lambda x: np.dot(S, x),
    "a product": lambda x: x @ S,
    "a product with columns": lambda x: x[:3] @ D,
    "xp.maximum": lambda x: xp.maximum(S, x),
    "an index": lambda x: x[pd.Series([0, 2])],
    "a mask": lambda x: x[B],
    "0-d": lambda x: xp.sum(x) * S,
    "a 0-d Tensor and a DataFrame": lambda x: D * x[0],
    "columns": lambda x: D["a"] * x[:3] + D["b"],
    "written": updated,
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow(name: str, device: str) -> None:
    check(CALLS[name], [START], device)


def test_missing_values_are_nan() -> None:
    x = xp.tensor(START, requires_grad=True)
    for dtype in ("float64", "Float64", "Int64"):
        out = x * pd.Series([1, None, 3, 4], dtype=dtype)
        assert xp.isnan(out).numpy().tolist() == [False, True, False, False]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "text": (lambda x: x * pd.Series(list("abcd")), "`multiply` got .*Series and dtype (str|object), which is no array of numbers"),
    "text, reflected": (lambda x: pd.Series(list("abcd")) * x, "which is no array of numbers"),
    "text in NumPy": (lambda x: np.multiply(pd.Series(list("abcd")), x), r"`np\.multiply` got .*which is no array of numbers"),
    "dates": (lambda x: x - pd.Series(pd.date_range("2020", periods=4)), "dtype datetime64.*which is no array of numbers"),
    "categories": (lambda x: x * pd.Series(list("abab"), dtype="category"), "dtype category, which is no array of numbers"),
    "columns of several dtypes": (lambda x: x * pd.DataFrame({"a": [1.0] * 4, "b": list("abcd")}), "whose columns have several dtypes"),
    "a Series of a Tensor": (lambda x: pd.Series(x), "so the gradient would be lost"),
    "a DataFrame's product": (lambda x: D @ x, "so the gradient would be lost"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_work_raises(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises((TypeError, RuntimeError), match=message):
        function(xp.tensor(START, requires_grad=True))
