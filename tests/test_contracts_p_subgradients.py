"""Group P: what the gradient is where there is none. Expected values stand in the contracts; PyTorch is asked where it has the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

INF, NAN = float("inf"), float("nan")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy says so when it divides by zero, as here it must


def extremum(name: str) -> Callable[[Any, Any], Any]:
    """`max` or `min` over all elements: PyTorch's `amax` and `amin` share ties over any number of axes."""
    return lambda lib, x: getattr(lib.ns, f"a{name}")(x) if lib.torch else getattr(lib.ns, name)(x)


def call(name: str, *more: Any) -> Callable[[Any, Any], Any]:
    return lambda lib, x: getattr(lib.ns, name)(x, *more)


# id, what, the function of (library, leaf), the point, its gradient with the seed of ones
CASES: list[tuple[str, str, Callable[[Any, Any], Any], list[float], list[float]]] = [
    ("SUB-02", "abs", call("abs"), [0.0, -2.0, 3.0], [0.0, -1.0, 1.0]),
    ("SUB-02", "sign", call("sign"), [0.0, -2.0], [0.0, 0.0]),
    ("SUB-03", "sqrt", call("sqrt"), [0.0, 4.0], [INF, 0.25]),
    ("SUB-03", "log", call("log"), [0.0], [INF]),
    ("SUB-03", "log1p", call("log1p"), [-1.0], [INF]),
    ("SUB-03", "asin", call("asin"), [1.0], [INF]),
    ("SUB-03", "acos", call("acos"), [1.0, -1.0], [-INF, -INF]),
    ("SUB-03", "acosh", call("acosh"), [1.0], [INF]),
    ("SUB-03", "atanh", call("atanh"), [1.0], [INF]),
    ("SUB-03", "reciprocal", call("reciprocal"), [0.0], [-INF]),
    ("SUB-03", "x ** 0.5", lambda lib, x: x**0.5, [0.0], [INF]),
    ("SUB-05", "max", extremum("max"), [3.0, 1.0, 3.0], [0.5, 0.0, 0.5]),
    ("SUB-05", "min", extremum("min"), [1.0, 3.0, 1.0, 1.0], [1 / 3, 0.0, 1 / 3, 1 / 3]),
    ("SUB-05", "maximum", lambda lib, x: lib.ns.maximum(x, lib.const([1.0, 1.0, 1.0])), [1.0, 2.0, 0.0], [0.5, 1.0, 0.0]),
    ("SUB-05", "minimum", lambda lib, x: lib.ns.minimum(x, lib.const([1.0, 1.0, 1.0])), [1.0, 2.0, 0.0], [0.5, 0.0, 1.0]),
    ("SUB-05", "inf-norm", lambda lib, x: lib.ns.linalg.vector_norm(x, ord=INF), [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]),
    ("SUB-07", "clip", lambda lib, x: lib.ns.clip(x, 0.0, 1.0), [0.0, 1.0, -1.0, 2.0, 0.5], [1.0, 1.0, 0.0, 0.0, 1.0]),
    ("SUB-08", "2-norm", lambda lib, x: lib.ns.linalg.vector_norm(x), [0.0, 0.0], [0.0, 0.0]),
    ("SUB-08", "1-norm", lambda lib, x: lib.ns.linalg.vector_norm(x, ord=1), [0.0, -3.0], [0.0, -1.0]),
    ("SUB-08", "std", lambda lib, x: lib.ns.std(x, correction=0), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    ("SUB-08", "hypot", lambda lib, x: lib.ns.hypot(x, lib.const([0.0])), [0.0], [NAN]),
    ("SUB-09", "floor", call("floor"), [1.5, 2.0], [0.0, 0.0]),
    ("SUB-09", "ceil", call("ceil"), [1.5, 2.0], [0.0, 0.0]),
    ("SUB-09", "round", call("round"), [1.5, 2.0], [0.0, 0.0]),
    ("SUB-09", "trunc", call("trunc"), [1.5, 2.0], [0.0, 0.0]),
    ("SUB-09", "remainder", lambda lib, x: lib.ns.remainder(x, 2.0), [5.5, 4.0], [1.0, 1.0]),
    ("SUB-10", "prod, one zero", call("prod"), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    ("SUB-10", "prod, two zeros", call("prod"), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    ("SUB-10", "x ** 0", lambda lib, x: x**0, [0.0, 2.0], [0.0, 0.0]),
    ("SUB-10", "x ** zeros", lambda lib, x: x ** lib.const([0.0, 0.0]), [0.0, 2.0], [0.0, 0.0]),
    ("SUB-10", "0 ** x", lambda lib, x: 0.0**x, [0.0, 2.0, -1.0], [0.0, 0.0, -INF]),
    ("SUB-10", "zeros ** x", lambda lib, x: lib.const([0.0, 0.0]) ** x, [0.0, 2.0], [0.0, 0.0]),
    ("SUB-11", "where", lambda lib, x: lib.ns.where(x > 0.5, x, lib.ns.sqrt(x)), [0.0, 1.0], [INF, 1.0]),
    ("SUB-11", "where, the trap", lambda lib, x: lib.ns.where(x > -1.0, x, lib.ns.sqrt(x)), [0.0], [NAN]),
    ("SUB-12", "logaddexp", lambda lib, x: lib.ns.logaddexp(x, lib.const([-INF])), [-INF], [NAN]),
    ("HOG-11", "x ** 2", lambda lib, x: x**2, [0.0], [0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("contract", "what", "function", "point", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_subgradients(lib: Any, contract: str, what: str, function: Any, point: list[float], expected: list[float]) -> None:
    x = lib.tensor(point)
    function(lib, x).sum().backward()
    np.testing.assert_allclose(lib.value(x.grad), expected, rtol=1e-12, err_msg=f"{contract}: {what}")


def test_sort_sends_the_whole_gradient_to_the_chosen_index(lib: Any) -> None:
    """SUB-06: ties are not shared where an index is chosen."""
    x = lib.tensor([2.0, 1.0, 2.0])
    ordered = lib.ns.sort(x, stable=True)
    (ordered.values if lib.torch else ordered)[-1].backward()
    lib.equal(x.grad, [0.0, 0.0, 1.0])


def test_the_second_derivative_of_a_square_at_0(lib: Any) -> None:
    """HOG-11: formulas do not produce 0 * inf."""
    x = lib.tensor([0.0])
    (first,) = lib.grad((x**2).sum(), x, create_graph=True)
    (second,) = lib.grad(first.sum(), x)
    lib.equal(second, [2.0])
