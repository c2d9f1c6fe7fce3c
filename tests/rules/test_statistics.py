"""Law: statistics, sorting, differences and Einstein sums have the gradients of their definitions, to the second order.

Expected values come from float64 central differences, from closed forms at the points where differences do not exist (ties, equal
values), and from PyTorch; the shapes are drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import differences, values
from xpgrad.backend import axis_functions

Function = Callable[[Any], Any]
grad = xp.autograd.grad

REDUCTIONS = {f.name: f.domain.numbers == "complex" for f in axis_functions() if f.kind == "reduction"}


def _reduction(name: str) -> Callable[..., Any]:
    return lambda x, axis, keep: getattr(xp, name)(x, axis=axis, keepdims=keep)


#: Functions of an array, axes (one, several or None) and a flag: the declared reductions, and those with other arguments.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _reduction(name) for name in REDUCTIONS},
    "var corrected": lambda x, axis, keep: xp.var(x, axis=axis, keepdims=keep, correction=0.5),
    "std corrected": lambda x, axis, keep: xp.std(x, axis=axis, keepdims=keep, correction=0.5),
    "cumulative_sum": lambda x, axis, keep: xp.cumulative_sum(x, axis=_one(axis), include_initial=keep),
    "cumulative_prod": lambda x, axis, keep: xp.cumulative_prod(x, axis=_one(axis), include_initial=keep),
    "sort": lambda x, axis, keep: xp.sort(x, axis=_one(axis), descending=keep),
    "diff": lambda x, axis, keep: xp.diff(x, axis=_one(axis), n=1 + keep),
    "diff padded": lambda x, axis, keep: xp.diff(x, axis=_one(axis), prepend=x, append=x if keep else None),
}
COMPLEX = (
    *(name for name, is_complex in REDUCTIONS.items() if is_complex),
    *("var corrected", "std corrected", "cumulative_sum", "cumulative_prod", "diff", "diff padded"),
)


def _one(axis: Any) -> int:
    axis = axis[0] if isinstance(axis, tuple) and axis else axis
    return axis if isinstance(axis, int) else -1


@st.composite
def problems(draw: st.DrawFn, low: int = 1) -> tuple[np.ndarray, Any, bool]:
    """Draw an array without ties, some of its axes, and a flag."""
    shape = tuple(draw(st.lists(st.integers(low, 5), min_size=1, max_size=3)))
    size = int(np.prod(shape))
    values = np.linspace(-1.7, 1.9, size)[np.random.default_rng(draw(st.integers(0, 99))).permutation(size)]
    axes = st.sampled_from([None, *range(-len(shape), len(shape)), *itertools.permutations(range(len(shape)), min(2, len(shape)))])
    return values.reshape(shape), draw(axes), draw(st.booleans())


def weights(shape: tuple[int, ...]) -> Any:
    """Return fixed, irregular weights."""
    return xp.asarray(np.cos(1.0 + np.arange(int(np.prod(shape)))).reshape(shape))


def loss(function: Function, x: Any) -> Any:
    """Return a real number that depends smoothly and nonlinearly on the whole result."""
    y = function(x)
    if y.dtype.is_complex:
        y = xp.real(y) + 0.3 * xp.imag(y) * xp.real(y) + 2 * xp.imag(y)
    return xp.sum(weights(y.shape) * (y + 0.5 * y * y))


def check(function: Function, at: np.ndarray) -> None:
    """Compare derivatives of first and second order with central differences."""
    x = xp.tensor(at, requires_grad=True)
    (g,) = grad(loss(function, x), x, create_graph=True)
    (plain,) = grad(loss(function, x), x)
    np.testing.assert_allclose(plain.numpy(), g.detach().numpy(), rtol=1e-12, atol=1e-12)
    expected = differences(lambda a: loss(function, xp.asarray(a)).item(), at)
    np.testing.assert_allclose(plain.numpy(), expected, rtol=2e-6, atol=2e-6)

    def slope(a: np.ndarray) -> Any:
        t = xp.tensor(a, requires_grad=True)
        (s,) = grad(loss(function, t), t, create_graph=True)
        s = xp.real(s) + 2 * xp.imag(s) if s.dtype.is_complex else s
        return t, xp.sum(weights(s.shape) * s)

    t, s = slope(at)
    if s.requires_grad:
        (second,) = grad(s, t, allow_unused=True)
        found = np.zeros_like(at) if second is None else second.numpy()
        np.testing.assert_allclose(found, differences(lambda a: slope(a)[1].item(), at), rtol=5e-6, atol=5e-6)


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("name", FUNCTIONS)
@given(problem=problems())
@settings(derandomize=True, deadline=None, max_examples=15)
def test_real_gradients_to_second_order(name: str, problem: tuple[np.ndarray, Any, bool]) -> None:
    at, axis, keep = problem
    if name.startswith("std") and _count_reduced(at.shape, axis) == 1:
        return  # without spread: see the test of equal values
    check(lambda x: FUNCTIONS[name](x, axis, keep), at)


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("name", COMPLEX)
@given(problem=problems())
@settings(derandomize=True, deadline=None, max_examples=8)
def test_complex_gradients_to_second_order(name: str, problem: tuple[np.ndarray, Any, bool]) -> None:
    at, axis, keep = problem
    if name.startswith("std") and _count_reduced(at.shape, axis) == 1:
        return
    check(lambda x: FUNCTIONS[name](x, axis, keep), at + 0.5j * np.flip(at) + 0.1j)


def _count_reduced(shape: tuple[int, ...], axis: Any) -> int:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return int(np.prod([shape[a] for a in axes]))


EQUATIONS = [
    "ij,jk->ik",
    "ii->i",
    "iij,jk->k",
    "ij->",
    "ij,ij->j",
    "...i,...i->...",
    "i,j,k->kij",
    "bij,bjk->bik",
    "ij,jk,ki->",
    "i...->...",
]


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("equation", EQUATIONS)
@given(sizes=st.tuples(*(st.integers(1, 3) for _ in range(5))))
@settings(derandomize=True, deadline=None, max_examples=6)
def test_einsum_gradients_to_second_order(equation: str, sizes: tuple[int, ...]) -> None:
    letters = dict(zip("bijkd", sizes))
    shapes = [tuple(letters[c] for c in term.replace("...", "d")) for term in equation.partition("->")[0].split(",")]
    ends = list(itertools.accumulate((int(np.prod(s)) for s in shapes), initial=0))

    def function(x: Any) -> Any:
        return xp.einsum(equation, *(xp.reshape(x[a:b], s) for a, b, s in zip(ends, ends[1:], shapes)))

    check(function, np.sin(1.0 + np.arange(ends[-1])))


# -- points at which differences do not exist, or are too coarse -----------------------------------------------------------


ZEROS = [[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0], [1.5, 2.0, 0.0, -1.0, 4.0], [0.0, 3.0], [2.0, 0.0, 3.0, 0.0]]


def _others(x: np.ndarray, without: set[int]) -> float:
    return float(np.prod([v for i, v in enumerate(x) if i not in without]))


@pytest.mark.parametrize("values", ZEROS, ids=str)
def test_product_is_exact_with_zeros_to_third_order(values: list[float]) -> None:
    a = np.asarray(values)
    x = xp.tensor(a, requires_grad=True)
    (g,) = grad(xp.prod(x), x, create_graph=True)
    np.testing.assert_array_equal(g.detach().numpy(), [_others(a, {i}) for i in range(len(a))])
    for i in range(len(a)):
        row = grad(g[i], x, create_graph=True, allow_unused=True)[0] if g.requires_grad else None
        expected = [0.0 if i == j else _others(a, {i, j}) for j in range(len(a))]
        np.testing.assert_array_equal(np.zeros(len(a)) if row is None else row.detach().numpy(), expected)
        if row is not None and row.requires_grad:
            for j in range(len(a)):
                third = grad(row[j], x, retain_graph=True, allow_unused=True)[0]
                expected = [0.0 if len({i, j, k}) < 3 else _others(a, {i, j, k}) for k in range(len(a))]
                np.testing.assert_array_equal(np.zeros(len(a)) if third is None else third.numpy(), expected)


@pytest.mark.parametrize("values", ZEROS, ids=str)
def test_running_product_is_exact_with_zeros_to_second_order(values: list[float]) -> None:
    a = np.asarray(values)
    n = len(a)
    x = xp.tensor(a, requires_grad=True)
    y = xp.cumulative_prod(x)
    for k in range(n):
        (g,) = grad(y[k], x, create_graph=True)
        np.testing.assert_array_equal(g.detach().numpy(), [_others(a[: k + 1], {i}) if i <= k else 0.0 for i in range(n)])
        for i in range(n):
            row = grad(g[i], x, retain_graph=True, allow_unused=True)[0] if g.requires_grad else None
            expected = [_others(a[: k + 1], {i, j}) if i != j and max(i, j) <= k else 0.0 for j in range(n)]
            np.testing.assert_array_equal(np.zeros(n) if row is None else row.numpy(), expected)


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("shape", [(4,), (3, 2)])
def test_std_of_equal_values_has_the_gradient_zero(shape: tuple[int, ...], correction: int) -> None:
    x = xp.full(shape, 0.7, requires_grad=True)
    (g,) = grad(xp.sum(xp.std(x, axis=0, correction=correction)), x, create_graph=True)
    assert not xp.any(g != 0)
    (h,) = grad(xp.sum(g), x)
    assert not xp.any(h != 0)


def test_std_beside_equal_values_keeps_its_gradient() -> None:
    x = xp.tensor([[1.0, 1.0], [1.0, 3.0]], requires_grad=True)
    (g,) = grad(xp.sum(xp.std(x, axis=1)), x)
    assert g.tolist() == [[0.0, 0.0], [-0.5, 0.5]]


def test_sorting_sends_the_gradient_of_equal_elements_back_in_their_order() -> None:
    x = xp.tensor([2.0, 1.0, 2.0, 1.0], requires_grad=True)
    up, down = xp.tensor([1.0, 2.0, 3.0, 4.0]), xp.tensor([10.0, 20.0, 30.0, 40.0])
    assert grad(xp.sum(xp.sort(x) * up), x)[0].tolist() == [3.0, 1.0, 4.0, 2.0]
    assert grad(xp.sum(xp.sort(x, descending=True) * down), x)[0].tolist() == [10.0, 30.0, 20.0, 40.0]


@pytest.mark.parametrize("name", ["max", "min", "sum", "mean", "cumulative_sum", "sort", "diff"])
def test_a_gradient_that_does_not_depend_on_x_has_no_graph(name: str) -> None:
    x = xp.tensor([[1.0, 3.0, 3.0], [2.0, 0.5, -1.0]], requires_grad=True)
    weights = xp.tensor(1.5, requires_grad=True)
    for axis, keep in ((0, False), (1, True)):
        y = FUNCTIONS[name](x, axis, keep)
        (constant,) = grad(y, x, xp.ones_like(y), create_graph=True)
        (linear,) = grad(y, x, weights * xp.ones_like(y), create_graph=True)
        assert (constant.requires_grad, linear.requires_grad) == (False, True)
        assert grad(linear.sum(), x, allow_unused=True) == (None,)


def test_ties_of_extrema_share() -> None:
    x = xp.tensor([[2.0, 1.0, 2.0], [1.0, 1.0, 1.0]], requires_grad=True)
    assert grad(xp.sum(xp.max(x, axis=1)), x)[0].tolist() == [[0.5, 0.0, 0.5], [1 / 3] * 3]
    assert grad(xp.min(x), x)[0].tolist() == [[0.0, 0.25, 0.0], [0.25] * 3]


UNIQUE: dict[str, Function] = {
    "unique_values": xp.unique_values, "unique_all": lambda x: xp.unique_all(x).values,
    "unique_counts": lambda x: xp.unique_counts(x).values, "unique_inverse": lambda x: xp.unique_inverse(x).values,
}  # fmt: skip


@pytest.mark.parametrize("name", UNIQUE)
def test_distinct_values_are_elements(name: str) -> None:
    """The gradients of distinct values go to the first of equal elements, in reverse and in forward mode."""
    x = xp.tensor([[3.0, 1.0], [3.0, 2.0]], requires_grad=True)
    values = UNIQUE[name](x)
    assert values.tolist() == UNIQUE[name](x.detach()).tolist() == [1.0, 2.0, 3.0]
    (found,) = grad(xp.sum(values**2 / 2), x, create_graph=True)
    assert found.tolist() == [[3.0, 1.0], [0.0, 2.0]]
    assert grad(xp.sum(found), x)[0].tolist() == [[1.0, 1.0], [0.0, 1.0]]
    tangents = xp.asarray([[10.0, 20.0], [30.0, 40.0]])
    assert xp.func.jvp(UNIQUE[name], (x.detach(),), (tangents,))[1].tolist() == [20.0, 40.0, 10.0]
    with xp.no_grad():
        assert not UNIQUE[name](x).requires_grad


CONSTANT: dict[str, Function] = {
    "argmax": xp.argmax, "argmin": xp.argmin, "argsort": xp.argsort, "count_nonzero": xp.count_nonzero,
    "nonzero": lambda x: xp.nonzero(x)[0], "searchsorted": lambda x: xp.searchsorted(xp.sort(x), x),
    "unique_all": lambda x: xp.unique_all(x)[1], "unique_counts": lambda x: xp.unique_counts(x)[1],
    "unique_inverse": lambda x: xp.unique_inverse(x)[1],
    "isin": lambda x: xp.isin(x, x), "isclose": lambda x: xp.isclose(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_without_a_derivative(name: str) -> None:
    out = CONSTANT[name](xp.tensor([3.0, 1.0, 3.0], requires_grad=True))
    assert not out.requires_grad
    assert out.is_leaf
    with xp.inference_mode():
        assert CONSTANT[name](xp.tensor([3.0, 1.0])).is_inference()


def test_diff_of_order_zero_is_a_copy() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = xp.diff(x, n=0)
    assert not np.may_share_memory(x.detach().numpy(), y.detach().numpy())
    assert grad(xp.sum(y), x)[0].tolist() == [1.0, 1.0]
    assert xp.diff(x, n=0, prepend=x, append=x).tolist() == [1.0, 2.0]  # as in NumPy and PyTorch


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_a_wider_dtype_returns_the_gradient_in_the_narrow_one(name: str) -> None:
    x = xp.tensor([1.0, 2.0, 4.0], dtype=xp.float32, requires_grad=True)
    y = getattr(xp, name)(x, dtype=xp.float64)
    assert y.dtype is xp.float64
    assert grad(xp.sum(y), x)[0].dtype is xp.float32


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16"])
def test_totals_of_narrow_integers_do_not_wrap_around(name: str, dtype: str, xpgrad_device: str) -> None:
    known = np.asarray([100, 100, 100]).astype(dtype)
    x = xp.asarray(known, device=xpgrad_device)
    total = getattr(xp, name)(x)
    assert total.tolist() == getattr(np, name)(known).tolist()
    assert total.dtype is xp.sum(x).dtype


def test_inputs_stay_as_they_are_on_frozen_memory() -> None:
    with xp.default_device("numpy+readonly"):
        x = xp.tensor(np.linspace(-1.0, 2.0, 6).reshape(2, 3), requires_grad=True)
        for name, function in FUNCTIONS.items():
            for axis in (0, 1):
                (g,) = grad(loss_on(function(x, axis, True)), x, create_graph=True)
                assert g.shape == x.shape, name
                if g.requires_grad:
                    grad(loss_on(g), x, allow_unused=True)


def loss_on(y: Any) -> Any:
    """Return a scalar of `y` without constants from another device."""
    return xp.sum(y * y * y)


# -- PyTorch ----------------------------------------------------------------------------------------------------------------------


def _torch_cases(torch: Any) -> dict[str, tuple[Function, Function, np.ndarray]]:
    a = np.asarray([[0.5, -1.0, 2.0, 0.0], [2.0, 2.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    c = a + 1j * np.roll(a, 1)
    smooth = np.sin(1.0 + np.arange(12.0)).reshape(3, 4)
    cases: dict[str, tuple[Function, Function, np.ndarray]] = {}
    for label, x in (("real", a), ("complex", c), ("smooth", smooth)):
        cases |= {
            f"mean {label}": (lambda x: xp.mean(x, axis=1), lambda x: x.mean(1), x),
            f"sum {label}": (lambda x: xp.sum(x, axis=0), lambda x: x.sum(0), x),
            f"prod {label}": (lambda x: xp.prod(x, axis=1), lambda x: x.prod(1), x),
            f"prod all {label}": (lambda x: xp.prod(x), lambda x: x.prod(), x),
            f"cumsum {label}": (lambda x: xp.cumulative_sum(x, axis=0), lambda x: x.cumsum(0), x),
            f"cumprod {label}": (lambda x: xp.cumulative_prod(x, axis=1), lambda x: x.cumprod(1), x),
            f"var {label}": (lambda x: xp.var(x, axis=1, correction=1), lambda x: x.var(1), x),
            f"std {label}": (lambda x: xp.std(x, axis=0, correction=1), lambda x: x.std(0), x),
            f"diff {label}": (lambda x: xp.diff(x, n=2), lambda x: torch.diff(x, n=2), x),
            f"einsum {label}": (lambda x: xp.einsum("ij,kj->ik", x, x), lambda x: torch.einsum("ij,kj->ik", x, x), x),
        }
        if label != "complex":
            cases |= {
                f"sort {label}": (lambda x: xp.sort(x, axis=1), lambda x: x.sort(dim=1, stable=True).values, x),
                f"sort down {label}": (
                    lambda x: xp.sort(x, axis=1, descending=True), lambda x: x.sort(dim=1, descending=True, stable=True).values, x,
                ),
                f"max {label}": (lambda x: xp.max(x, axis=1), lambda x: x.amax(1), x),
                f"min {label}": (lambda x: xp.min(x), lambda x: x.amin(), x),
            }  # fmt: skip
    cases["std of equal values"] = (lambda x: xp.std(x, axis=1), lambda x: x.std(1, correction=0), a)
    return cases


def _seed(y: Any) -> np.ndarray:
    """Return a cotangent for `y`."""
    numbers = np.cos(1.0 + np.arange(y.size)).reshape(y.shape)
    return numbers + 0.7j * np.sin(numbers * 3) if y.dtype.is_complex else numbers


def test_gradients_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    for name, (ours, theirs, at) in _torch_cases(torch).items():
        x, t = xp.tensor(at, requires_grad=True), torch.tensor(at, requires_grad=True)
        y, u = ours(x), theirs(t)
        np.testing.assert_allclose(y.detach().numpy(), u.detach().numpy(), rtol=1e-12, atol=1e-12, err_msg=name)
        seed = _seed(y)
        (g,) = grad(y, x, xp.asarray(seed), create_graph=True)
        (h,) = torch.autograd.grad(u, t, torch.tensor(seed), create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), h.detach().resolve_conj().numpy(), rtol=1e-10, atol=1e-12, err_msg=name)
        if not h.requires_grad or name.startswith("std"):
            continue  # PyTorch's second derivative of a standard deviation of 0 is nan
        seed = _seed(g)
        second = grad(g, x, xp.asarray(seed), allow_unused=True)[0] if g.requires_grad else None
        other = torch.autograd.grad(h, t, torch.tensor(seed), allow_unused=True)[0]
        found = np.zeros_like(at) if second is None else second.numpy()
        expected = np.zeros_like(at) if other is None else other.resolve_conj().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=f"{name}, second order")


COMPARED = ["mean", "prod", "var", "cumulative_prod", "cumulative_sum", "sort"]


@given(problem=problems(), name=st.sampled_from(COMPARED), zeros=st.integers(0, 3))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_gradients_agree_with_pytorch_on_drawn_shapes(problem: tuple[np.ndarray, Any, bool], name: str, zeros: int) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    at, axis, keep = problem
    axis = _one(axis) % at.ndim
    at.reshape(-1)[:zeros] = 0.0
    x, t = xp.tensor(at, requires_grad=True), torch.tensor(at, requires_grad=True)
    y = FUNCTIONS[name](x, axis, keep if name in ("mean", "prod", "var") else False)
    u = {
        "mean": lambda: t.mean(axis, keepdim=keep), "prod": lambda: t.prod(axis, keepdim=keep),
        "var": lambda: t.var(axis, correction=0, keepdim=keep), "cumulative_prod": lambda: t.cumprod(axis),
        "cumulative_sum": lambda: t.cumsum(axis), "sort": lambda: t.sort(dim=axis, stable=True).values,
    }[name]()  # fmt: skip
    np.testing.assert_allclose(y.detach().numpy(), u.detach().numpy(), rtol=1e-12, atol=1e-12)
    (g,) = grad(xp.sum(weights(y.shape) * y), x)
    (h,) = torch.autograd.grad((torch.tensor(weights(y.shape).numpy()) * u).sum(), t)
    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("numbers_", [[1.0, np.nan, 1.0], [np.nan, 1.0, np.nan], [np.nan], [np.inf, np.nan, 2.0]])
def test_an_extremum_that_is_not_a_number_has_no_gradient(name: str, numbers_: list[float], xpgrad_device: str) -> None:
    """An extremum that is nan has the gradient nan, as in PyTorch, in its own elements only; a maximum of inf has a gradient."""
    x = xp.asarray(np.asarray([numbers_, [2.0] * len(numbers_)]), device=xpgrad_device).requires_grad_()
    y = getattr(xp, name)(x, axis=1)
    (g,) = xp.autograd.grad(xp.sum(y), x)
    np.testing.assert_array_equal(values(g), [[np.nan] * len(numbers_), [1 / len(numbers_)] * len(numbers_)])
    _, t = xp.func.jvp(lambda v: getattr(xp, name)(v, axis=1), (x.detach(),), (xp.ones_like(x),))
    np.testing.assert_array_equal(values(t), [np.nan, 1.0])
    z = xp.asarray(np.asarray([1.0, np.inf if name == "max" else -np.inf]), device=xpgrad_device).requires_grad_()
    getattr(xp, name)(z).backward()
    np.testing.assert_array_equal(values(z.grad), [0.0, 1.0])


def test_equal_medians_share_the_gradient() -> None:
    x = xp.tensor([3.0, 2.0, 1.0, 2.0, 2.0], requires_grad=True)
    x.median().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 1 / 3, 0, 1 / 3, 1 / 3])
