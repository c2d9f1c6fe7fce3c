"""Group P: gradients at points without a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.strategies import seeds

INF, NAN = float("inf"), float("nan")
#: A row of a table: the name, the function of a leaf, the leaf's values, and its gradient for a seed of ones.
Row = tuple[str, Callable[[Any], Any], list[float], list[float]]


def check(lib: Any, rows: list[Row]) -> None:
    """Compare the gradients of a table's rows, in both real dtypes."""
    for name, function, point, expected in rows:
        for dtype in dict.fromkeys((lib.real, "float32")):
            with lib.case((name, dtype)):
                x = lib.tensor(point, dtype=dtype)
                lib.xp.sum(function(x)).backward()
                assert x.grad.dtype == lib.dtype(dtype)
                lib.equal(x.grad, expected)


def gradient(lib: Any, function: Callable[..., Any], point: Any) -> Any:
    """Return the gradient of the sum of a function's values as a NumPy array."""
    x = lib.tensor(point)
    lib.xp.sum(function(x)).backward()
    return lib.value(x.grad)


few = st.lists(st.integers(-2, 2), min_size=1, max_size=5)


@contract("SUB-01", draw={"point": few, "seed": seeds})
def the_order_of_the_rules(lib: Any, point: Any, seed: int) -> None:
    for each in (point, [2, -1, 2, -2, -2], [0, 0]):
        with lib.case(each):
            check_order(lib, np.asarray(each, dtype=float), seed)


def check_order(lib: Any, v: Any, seed: int) -> None:
    """Check the rules of choice at one point, in their order of precedence."""
    xp = lib.xp
    # 1. If the function is differentiable, its gradient.
    x = lib.random((4,), seed)
    xp.sum(xp.sqrt(x) + xp.abs(x) * x).backward()
    lib.equal(x.grad, 0.5 / np.sqrt(lib.value(x)) + 2 * lib.value(x))
    # 2. Convex: the subgradient of minimum norm. For the maximum these are weights on its positions, and equal weights have minimum norm.
    with lib.case("max"):
        lib.equal(lib.constant(gradient(lib, xp.max, v)), (v == v.max()) / np.sum(v == v.max()))
    with lib.case("abs"):
        lib.equal(lib.constant(gradient(lib, xp.abs, v)), np.sign(v))
    with lib.case("2-norm"):
        lib.equal(lib.constant(gradient(lib, xp.linalg.vector_norm, v)), v / (np.sqrt(np.sum(v * v)) or 1.0))
    with lib.case("largest absolute value"):
        largest = np.abs(v) == np.abs(v).max()
        lib.equal(lib.constant(gradient(lib, lambda x: xp.linalg.vector_norm(x, ord=INF), v)), np.sign(v) * largest / np.sum(largest))
    with lib.case("maximum"):
        one, other = lib.tensor(v), lib.tensor(-v)
        xp.sum(xp.maximum(one, other)).backward()
        lib.equal(one.grad, np.where(v == 0, 0.5, v > 0))
        lib.equal(other.grad, np.where(v == 0, 0.5, v < 0))
    # 3. Concave: the supergradient of minimum norm.
    with lib.case("min"):
        lib.equal(lib.constant(gradient(lib, xp.min, v)), (v == v.min()) / np.sum(v == v.min()))
    with lib.case("-abs"):
        lib.equal(lib.constant(gradient(lib, lambda x: -xp.abs(x), v)), -np.sign(v))
    # 4. By continuity, infinite if necessary.
    with lib.case("sqrt"):
        u = np.abs(v)
        lib.equal(lib.constant(gradient(lib, xp.sqrt, u)), np.where(u > 0, 0.5 / np.sqrt(np.where(u > 0, u, 1.0)), INF))
    with lib.case("x * abs(x)"):
        lib.equal(lib.constant(gradient(lib, lambda x: x * xp.abs(x), v)), 2 * np.abs(v))


@contract("SUB-02")
def kinks_at_0(lib: Any) -> None:
    # NB: the standard has neither a function relu nor an l1 loss; the loss here is a sum of absolute values.
    xp = lib.xp
    check(
        lib,
        [
            ("relu", lambda x: x.relu(), [0.0, -0.0, -2.0, 3.0], [0.0, 0.0, 0.0, 1.0]),
            ("abs", xp.abs, [0.0, -0.0, -2.0, 3.0], [0.0, 0.0, -1.0, 1.0]),
            ("l1", lambda x: xp.sum(xp.abs(x - 1.0)), [1.0, 2.0, 0.0], [0.0, 1.0, -1.0]),
            ("sign", xp.sign, [0.0, -2.0, 3.0], [0.0, 0.0, 0.0]),
            ("atan2 at the origin", lambda x: xp.atan2(x[:1], x[1:]), [0.0, 0.0], [0.0, 0.0]),
            ("atan2 on the circle", lambda x: xp.atan2(x[:1], x[1:]), [0.6, 0.8], [0.8, -0.6]),
            ("hypot on the circle", lambda x: xp.hypot(x[:1], x[1:]), [0.6, 0.8], [0.6, 0.8]),
        ],
    )
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        tangent = fw.unpack_dual(xp.abs(fw.make_dual(lib.constant([0.0, -2.0, 3.0]), lib.ones(3)))).tangent
        lib.equal(tangent, [0.0, -1.0, 1.0])
    if lib.capabilities["complex"]:
        z = lib.tensor([0j, 3 + 4j], dtype=lib.complex)
        xp.sum(xp.abs(z)).backward()
        lib.equal(z.grad, [0j, 0.6 + 0.8j])


@contract("SUB-03")
def infinite_slopes(lib: Any) -> None:
    # NB: the standard has no rsqrt; it is written as a power.
    xp = lib.xp
    check(
        lib,
        [
            ("sqrt", xp.sqrt, [0.0, 4.0], [INF, 0.25]),
            ("log", xp.log, [0.0, 2.0], [INF, 0.5]),
            ("log2", xp.log2, [0.0], [INF]),
            ("log10", xp.log10, [0.0], [INF]),
            ("log1p", xp.log1p, [-1.0, 1.0], [INF, 0.5]),
            ("asin", xp.asin, [1.0, -1.0, 0.0], [INF, INF, 1.0]),
            ("acos", xp.acos, [1.0, -1.0, 0.0], [-INF, -INF, -1.0]),
            ("acosh", xp.acosh, [1.0], [INF]),
            ("atanh", xp.atanh, [1.0, -1.0, 0.0], [INF, INF, 1.0]),
            ("reciprocal", xp.reciprocal, [0.0, 2.0], [-INF, -0.25]),
            ("1 / x", lambda x: 1.0 / x, [0.0, 2.0], [-INF, -0.25]),
            ("x ** 0.5", lambda x: x**0.5, [0.0, 4.0], [INF, 0.25]),
            ("x ** halves", lambda x: x ** lib.cast(lib.constant([0.5]), str(x.dtype).rpartition(".")[2]), [0.0], [INF]),
            ("x ** -0.5", lambda x: x**-0.5, [0.0, 4.0], [-INF, -0.0625]),
        ],
    )


@contract("SUB-04")
def outside_of_the_domain(lib: Any) -> None:
    # The value is arbitrary, but there must be one, without an error, and the other elements must be right.
    xp = lib.xp
    rows: list[tuple[str, Callable[[Any], Any], float, float, float]] = [
        ("log", xp.log, -1.0, 2.0, 0.5),
        ("log1p", xp.log1p, -2.0, 1.0, 0.5),
        ("sqrt", xp.sqrt, -1.0, 4.0, 0.25),
        ("asin", xp.asin, 2.0, 0.0, 1.0),
    ]
    for name, function, outside, inside, expected in rows:
        with lib.case(name):
            found = gradient(lib, function, [outside, inside])
            lib.equal(lib.constant(found[1]), expected)
            assert found.shape == (2,)
            # The value is nan or, for logarithms, that of the formula: never one that looks like a derivative.
            assert np.isnan(found[0]) or name.startswith("log")
            assert np.isnan(found[0]) or found[0] == -1.0


@contract("SUB-05", draw={"rows": st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=3)})
def ties_are_shared(lib: Any, rows: Any) -> None:
    xp, v = lib.xp, np.asarray(rows, dtype=float)
    for name in ("max", "min"):
        for axis in (None, 0, 1, (0, 1)):
            with lib.case((name, axis)):
                best = v == getattr(np, name)(v, axis=axis, keepdims=True)
                found = gradient(lib, lambda x, name=name, axis=axis: getattr(xp, name)(x, axis=axis), v)
                lib.equal(lib.constant(found), best / np.sum(best, axis=axis, keepdims=True))
                found = gradient(lib, lambda x, name=name, axis=axis: getattr(x, f"a{name}")(*([] if axis is None else [axis])), v)
                lib.equal(lib.constant(found), best / np.sum(best, axis=axis, keepdims=True))
                fw = lib.module("autograd.forward_ad")
                with fw.dual_level():
                    given = np.arange(v.size).reshape(v.shape) + 1.0
                    moved = getattr(xp, name)(fw.make_dual(lib.constant(v), lib.constant(given)), axis=axis)
                    if not lib.oracle:  # PyTorch's tangent is the sum along one axis, but the mean along all
                        expected = np.sum(best * given, axis=axis) / np.sum(best, axis=axis)
                        lib.equal(fw.unpack_dual(moved).tangent, expected)
    with lib.case("median"):
        middle = v == np.sort(v.ravel())[(v.size - 1) // 2]
        found = gradient(lib, lambda x: x.median(), v)
        lib.equal(lib.constant(found), middle / np.sum(middle))
    w = v[:, ::-1].copy()
    for name, first in [("maximum", np.where(v == w, 0.5, v > w)), ("minimum", np.where(v == w, 0.5, v < w))]:
        with lib.case(name):
            x, y = lib.tensor(v), lib.tensor(w)
            xp.sum(getattr(xp, name)(x, y)).backward()
            lib.equal(x.grad, first)
            lib.equal(y.grad, 1 - first)
            x = lib.tensor(v)  # both operands are the same Tensor
            xp.sum(getattr(xp, name)(x, x)).backward()
            lib.equal(x.grad, np.ones(v.shape))
    if lib.capabilities["linalg"]:
        signed = v * np.asarray([1.0, -1.0, 1.0])
        largest = np.abs(signed) == np.abs(signed).max()
        found = gradient(lib, lambda x: xp.linalg.vector_norm(x, ord=INF), signed)
        lib.equal(lib.constant(found), np.sign(signed) * largest / np.sum(largest))


@contract("SUB-06", draw={"point": st.lists(st.integers(0, 2), min_size=1, max_size=5)})
def the_chosen_place_gets_all(lib: Any, point: Any) -> None:
    # NB: `sort` is the only one of the rule's functions that the standard has.
    for each in (point, [1, 2, 0, 2, 1]):
        with lib.case(each):
            check_sort(lib, np.asarray(each, dtype=float))


def check_sort(lib: Any, v: Any) -> None:
    """Check that each weight reaches the element that was sorted to its position."""
    xp, weights = lib.xp, np.arange(1.0, v.size + 1)
    for descending in (False, True):
        with lib.case(descending):
            found = gradient(lib, lambda x, d=descending: xp.sort(x, descending=d, stable=True) * lib.constant(weights), v)
            expected = np.empty(v.size)
            expected[np.argsort(-v if descending else v, kind="stable")] = weights
            lib.equal(lib.constant(found), expected)
    with lib.case("last"):
        found = gradient(lib, lambda x: xp.sort(x, stable=True)[-1], v)
        expected = np.zeros(v.size)
        expected[np.argsort(v, kind="stable")[-1]] = 1.0
        lib.equal(lib.constant(found), expected)


@contract("SUB-07")
def bounds_belong_to_the_inside(lib: Any) -> None:
    # NB: `clip` is the only one of the rule's functions that the standard has.
    xp = lib.xp
    point = [0.0, 1.0, -1.0, 2.0, 0.5]
    low, high = lib.constant([0.0]), lib.constant([1.0])
    check(
        lib,
        [
            ("clip", lambda x: xp.clip(x, 0.0, 1.0), point, [1.0, 1.0, 0.0, 0.0, 1.0]),
            ("only below", lambda x: xp.clip(x, 0.0, None), point, [1.0, 1.0, 0.0, 1.0, 1.0]),
            ("only above", lambda x: xp.clip(x, None, 1.0), point, [1.0, 1.0, 1.0, 0.0, 1.0]),
            ("clamp", lambda x: x.clamp(0.0, 1.0), point, [1.0, 1.0, 0.0, 0.0, 1.0]),
            ("no inside", lambda x: xp.clip(x, 0.5, 0.5), point, [0.0, 0.0, 0.0, 0.0, 1.0]),
        ],
    )
    with lib.case("bounds that are Tensors"):
        found = gradient(lib, lambda x: xp.clip(x, low, high), point)
        lib.equal(lib.constant(found), [1.0, 1.0, 0.0, 0.0, 1.0])


@contract("SUB-08", requires="linalg")
def norms_at_0(lib: Any) -> None:
    xp, norm = lib.xp, lib.xp.linalg.vector_norm
    check(
        lib,
        [
            ("2-norm", norm, [0.0, 0.0], [0.0, 0.0]),
            ("2-norm elsewhere", norm, [3.0, 4.0], [0.6, 0.8]),
            ("1-norm", lambda x: norm(x, ord=1), [0.0, -3.0], [0.0, -1.0]),
            ("3-norm", lambda x: norm(x, ord=3), [0.0, 0.0], [0.0, 0.0]),
            ("negative order", lambda x: norm(x, ord=-1), [0.0, 2.0], [0.0, 0.0]),
            ("negative order elsewhere", lambda x: norm(x, ord=-1), [1.0, 2.0], [4 / 9, 1 / 9]),
            ("rows", lambda x: norm(xp.reshape(x, (2, 2)), axis=1), [0.0, 0.0, 3.0, 4.0], [0.0, 0.0, 0.6, 0.8]),
            ("std", lambda x: xp.std(x), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
            ("std, correction", lambda x: xp.std(x, correction=1), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
            ("hypot", lambda x: xp.hypot(x, 0.0 * x), [0.0], [NAN]),
        ],
    )
    if lib.capabilities["complex"]:
        z = lib.tensor([0j, 0j], dtype=lib.complex)
        norm(z).backward()
        lib.equal(z.grad, [0j, 0j])


@contract("SUB-09", draw={"point": st.lists(st.integers(-8, 8), min_size=1, max_size=4)})
def steps_are_flat(lib: Any, point: Any) -> None:
    # NB: the standard has neither frac nor heaviside. The points are quarters, so that some lie on the steps.
    xp, v = lib.xp, np.asarray(point) / 4
    for name in ("floor", "ceil", "round", "trunc", "sign"):
        with lib.case(name):
            x = lib.tensor(v)
            y = getattr(xp, name)(x)
            assert y.requires_grad
            xp.sum(y).backward()
            lib.equal(x.grad, 0 * v)
            # The gradient is zero for every seed, and the rest of the graph is unaffected.
            x = lib.tensor(v)
            xp.sum(x * getattr(xp, name)(x)).backward()
            lib.equal(x.grad, lib.value(getattr(xp, name)(x)))
    for divisor in (2.0, -0.5):
        with lib.case(("remainder", divisor)):
            lib.equal(lib.constant(gradient(lib, lambda x, d=divisor: xp.remainder(x, d), v)), 1 + 0 * v)
            lib.equal(lib.constant(gradient(lib, lambda x, d=divisor: x % d, v)), 1 + 0 * v)
    with lib.case("fractional part"):
        lib.equal(lib.constant(gradient(lib, lambda x: x - xp.trunc(x), v)), 1 + 0 * v)


@contract("SUB-10", draw={"point": st.lists(st.integers(-2, 2), min_size=1, max_size=5)})
def products_and_powers_of_0(lib: Any, point: Any) -> None:
    # NB: the standard has no xlogy.
    xp, v = lib.xp, np.asarray(point, dtype=float)
    others = np.asarray([np.prod(np.delete(v, k)) for k in range(len(point))])
    lib.equal(lib.constant(gradient(lib, xp.prod, v)), others)
    zeros = lib.constant([0.0])

    def zeros_for(x: Any) -> Any:
        return lib.cast(zeros, str(x.dtype).rpartition(".")[2])

    check(
        lib,
        [
            ("prod, one zero", xp.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
            ("prod, two zeros", xp.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
            ("prod, an axis", lambda x: xp.prod(xp.reshape(x, (2, 2)), axis=1), [0.0, 2.0, 3.0, 4.0], [2.0, 0.0, 4.0, 3.0]),
            ("x ** 0", lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
            ("x ** 0.0", lambda x: x**0.0, [0.0, 2.0], [0.0, 0.0]),
            ("x ** zeros", lambda x: x ** zeros_for(x), [0.0, 2.0], [0.0, 0.0]),
            ("x ** 1", lambda x: x**1, [0.0, 2.0], [1.0, 1.0]),
            ("x ** 2", lambda x: x**2, [0.0, 2.0], [0.0, 4.0]),
            ("0 ** x", lambda x: 0.0**x, [0.0, 2.0, -1.0], [0.0, 0.0, -INF]),
            ("zeros ** x", lambda x: zeros_for(x) ** x, [0.0, 2.0, -1.0], [0.0, 0.0, -INF]),
        ],
    )


@contract("SUB-11")
def both_branches_count(lib: Any) -> None:
    xp = lib.xp
    check(
        lib,
        [
            ("apart", lambda x: xp.where(x > 0.5, x, xp.sqrt(x)), [0.0, 1.0], [INF, 1.0]),
            ("the trap", lambda x: xp.where(x > -1.0, x, xp.sqrt(x)), [0.0, 4.0], [NAN, 1.0]),
            ("the other branch", lambda x: xp.where(x > 1.0, xp.log(x), x), [0.0, 2.0], [NAN, 0.5]),
            # The remedy: replace the argument, so that nothing infinite is computed.
            ("the remedy", lambda x: xp.where(x > 1.0, xp.log(xp.where(x > 1.0, x, xp.ones_like(x))), x), [0.0, 2.0], [1.0, 0.5]),
        ],
    )


@contract("SUB-12")
def logarithms_of_nothing(lib: Any) -> None:
    # NB: `logaddexp` is the only one of the rule's functions that the standard has.
    xp = lib.xp
    check(
        lib,
        [
            ("all -inf", lambda x: xp.logaddexp(x, x), [-INF], [NAN]),
            ("ties", lambda x: xp.logaddexp(x, 1.0 * x), [2.0], [1.0]),
        ],
    )
    x, y = lib.tensor([-INF, 1.0, -INF]), lib.tensor([-INF, 1.0, 3.0])
    xp.sum(xp.logaddexp(x, y)).backward()
    lib.equal(x.grad, [NAN, 0.5, 0.0])
    lib.equal(y.grad, [NAN, 0.5, 1.0])


unchecked("SUB-13", "out of scope: the Array API standard has no random functions")

#: Functions of the standard, their NumPy equivalents, and the number of their operands.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    name: (getattr(np, theirs or name), operands)
    for operands, names in [
        (1, "abs acos=arccos asin=arcsin asinh=arcsinh atan=arctan atanh=arctanh ceil cos cosh exp expm1 floor log log10 log1p log2 "
            "negative positive reciprocal round sign sin sinh sqrt square tan tanh trunc sum mean prod max min std var "
            "cumulative_sum=cumsum cumulative_prod=cumprod sort flip roll"),
        (2, "add subtract multiply divide pow=power atan2=arctan2 copysign floor_divide hypot logaddexp maximum minimum remainder "
            "nextafter"),
    ]
    for name, _, theirs in (pair.partition("=") for pair in names.split())
}  # fmt: skip


@contract("SUB-14", draw={"seed": seeds})
def no_silent_zeros(lib: Any, seed: int) -> None:
    # A function with a gradient must return the right one; a function without one must raise when it is called or differentiated.
    rng = np.random.default_rng(seed)
    h = 1e-6
    for name, (theirs, operands) in FUNCTIONS.items():
        values = [rng.uniform(0.1, 0.4, 3) + 0.5 * k for k in range(operands)]
        more = (1,) if name == "roll" else ()
        leaves = [lib.tensor(v) for v in values]
        with lib.case((name, [v.tolist() for v in values])):
            try:
                y = getattr(lib.xp, name)(*leaves, *more)
                if not y.requires_grad:
                    assert y.grad_fn is None
                    with lib.raises(RuntimeError, "does not require grad"):
                        lib.xp.sum(y).backward()
                    continue
                grads = lib.grad(lib.xp.sum(y * y), leaves)
            except (NotImplementedError, RuntimeError) as exc:
                if "derivative" not in str(exc) or "not implemented" not in str(exc):
                    raise
                continue
            for k, g in enumerate(grads):
                slopes = []
                for place in range(3):
                    ends = []
                    for step in (h, -h):
                        moved = [v.copy() for v in values]
                        moved[k][place] += step
                        ends.append(np.sum(theirs(*moved, *more) ** 2))
                    slopes.append((ends[0] - ends[1]) / (2 * h))
                lib.equal(g, slopes, rtol=1e-3 if lib.real == "float32" else 1e-5, atol=1e-3 if lib.real == "float32" else 1e-6)


@contract("SUB-15", requires="linalg")
def second_derivative_of_a_norm_at_0(lib: Any) -> None:
    func = lib.module("func")
    norm = lib.xp.linalg.vector_norm

    def second(function: Any, point: list[Any]) -> Any:
        return func.jacrev(func.jacrev(function))(lib.constant(point))

    lib.equal(second(norm, [3.0, 4.0]), np.asarray([[16.0, -12.0], [-12.0, 9.0]]) / 125)
    lib.equal(second(norm, [0.0, 0.0]), np.full((2, 2), NAN))
    with lib.case("its square"):
        lib.equal(second(lambda x: norm(x) ** 2, [0.0, 0.0]), np.full((2, 2), NAN))
    with lib.case("one of several vectors is 0"):
        found = second(lambda x: lib.xp.sum(norm(x, axis=1)), [[0.0, 0.0], [3.0, 4.0]])
        lib.equal(found[0, :, 0, :], np.full((2, 2), NAN))
        lib.equal(found[1, :, 1, :], np.asarray([[16.0, -12.0], [-12.0, 9.0]]) / 125)
    x = lib.tensor([[0.0, 0.0], [3.0, 4.0]])
    (g,) = lib.grad(lib.xp.sum(norm(x, axis=1)), x)
    lib.equal(g, [[0.0, 0.0], [0.6, 0.8]])
