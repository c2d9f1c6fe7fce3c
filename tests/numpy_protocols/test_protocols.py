"""NumPy's protocols beyond single functions: methods of universal functions, constants, `out`, `like`, refusals, and transforms."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import structured_to_unstructured

import xpgrad as xp
from support.central_differences import loosen, numbers, values
from xpgrad._numpy import dispatch
from xpgrad._numpy.table import ABSENT, UFUNCS
from xpgrad.errors import DeviceMismatchError

from .page import PAGE, page

assert dispatch

V, M, N = numbers((5,)), numbers((3, 4)), numbers((3, 4), 2.5)
P = np.abs(M) + 0.5


@pytest.fixture
def x(xpgrad_device: str) -> xp.Tensor:
    return xp.tensor(M, device=xpgrad_device, requires_grad=True)


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="the page lists the names of NumPy 2.4")
def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it: PYTHONPATH=tests python -m numpy_protocols.page"


def test_the_tables_load_at_the_first_call_and_import_no_numpy() -> None:
    script = (
        "import sys, xpgrad\n"
        "assert not [m for m in sys.modules if m.startswith('xpgrad._numpy')]\n"
        "import numpy as np\n"
        "assert np.sin(xpgrad.tensor([0.0])).tolist() == [0.0]\n"
        "assert 'xpgrad._numpy.dispatch' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- universal functions -------------------------------------------------------------------------------------------------


METHODS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "add.reduce": (lambda a: np.add.reduce(a), (M,)),
    "add.reduce(axis=None, where=)": (lambda a: np.add.reduce(a, axis=None, where=M > 0, initial=3.0), (M,)),
    "multiply.reduce": (lambda a: np.multiply.reduce(a, axis=(0, 1), keepdims=True), (P,)),
    "maximum.reduce": (lambda a: np.maximum.reduce(a, axis=1, initial=0.2), (M,)),
    "minimum.reduce": (lambda a: np.minimum.reduce(a, 1, initial=0.2, where=M < 0.9), (M,)),
    "logaddexp.reduce": (lambda a: np.logaddexp.reduce(a, axis=1), (M,)),
    "subtract.reduce": (lambda a: np.subtract.reduce(a, axis=1, keepdims=True), (M,)),
    "hypot.reduce": (lambda a: np.hypot.reduce(a), (M,)),
    "add.reduce(dtype=)": (lambda a: np.add.reduce(a, dtype=np.complex128), (M,)),
    "add.accumulate": (lambda a: np.add.accumulate(a, axis=1), (M,)),
    "multiply.accumulate": (lambda a: np.multiply.accumulate(a), (P,)),
    "maximum.accumulate": (lambda a: np.maximum.accumulate(a, axis=1), (M,)),
    "multiply.outer": (lambda a, b: np.multiply.outer(a, b), (M, V)),
    "power.outer": (lambda a, b: np.power.outer(a, b), (P, V)),
    "add.reduceat": (lambda a: np.add.reduceat(a, [0, 2, 1], axis=1), (M,)),
    "multiply.reduceat": (lambda a: np.multiply.reduceat(a, np.array([0, 3, 3, 1])), (V,)),
    "vecdot(axis=)": (lambda a, b: np.vecdot(a, b, axis=0), (M, N)),
    "add(dtype=)": (lambda a, b: np.add(a, b, dtype=np.complex128), (M, N)),
    "arr * x": (lambda a: M * a, (N,)),
    "arr - x": (lambda a: M - a, (N,)),
    "arr @ x": (lambda a: M @ a, (N.T.copy(),)),
    "arr / x": (lambda a: M / a, (P,)),
    "arr ** x": (lambda a: P**a, (N,)),
    "np.float64 * x": (lambda a: np.float64(2.5) * a, (M,)),
    "np.float64 array of rank 0": (lambda a: np.array(2.5) / a, (P,)),
    "a list": (lambda a: np.add([1.0, 2.0, 3.0, 4.0], a), (M,)),
    "a list of Tensors": (lambda a, b: np.multiply(a, [a, b]), (M, N)),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_and_operators(name: str, xpgrad_device: str) -> None:
    """Law: methods and operators have NumPy's values, and gradients that agree with central differences of them."""
    function, points = METHODS[name]
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    out = function(*leaves)
    expected = function(*points)
    np.testing.assert_allclose(values(out), expected, rtol=1e-12)
    weights = numbers(expected.shape, 7.0)
    grads = xp.autograd.grad(xp.sum(xp.real(out) * xp.asarray(weights, device=xpgrad_device)), leaves)
    for i, (point, g) in enumerate(zip(points, grads)):
        direction = numbers(point.shape, 9.0)
        ends = [
            np.sum(weights * np.real(function(*(q + s * 1e-6 * direction if j == i else q for j, q in enumerate(points))))) for s in (1, -1)
        ]
        np.testing.assert_allclose(np.sum(values(g) * direction), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)


#: Points of each kind: without ties, away from the jumps of `remainder` and similar functions, and positive, so that powers are real.
POINTS = {
    "f": np.array([[1.31, 0.83, 2.17, 1.79], [0.62, 1.47, 0.91, 1.13], [2.29, 1.58, 0.74, 1.22]]),
    "i": np.array([[9, 2, 1, 3], [6, 5, 3, 1], [4, 7, 2, 2]]),
    "b": np.array([[True, False, True, True], [False, False, True, False], [True, True, True, False]]),
}
MASK = np.array([[True, False, True, True], [False, False, False, False], [False, True, True, False]])
REDUCTIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "axis": {"axis": 1}, "last axis, keepdims": {"axis": -1, "keepdims": True}, "no axes": {"axis": ()},
    "several axes": {"axis": (1, 0)}, "all axes": {"axis": None}, "initial": {"axis": 0, "initial": 2},
    "one axis in a tuple": {"axis": (1,)},
    "initial, keepdims": {"axis": 1, "initial": 2, "keepdims": True}, "initial, no axes": {"axis": (), "initial": 2},
    "initial, all axes": {"axis": None, "initial": 2}, "where": {"axis": 1, "where": MASK},
    "where, initial": {"axis": 1, "initial": 2, "where": MASK},
    "where, initial, keepdims": {"axis": 0, "initial": 2, "where": MASK, "keepdims": True},
    "where that broadcasts": {"axis": 1, "initial": 2, "where": MASK[:, :1]}, "initial=None": {"axis": 1, "initial": None},
    "where, initial=None": {"axis": 1, "initial": None, "where": MASK}, "where, all axes": {"axis": None, "where": MASK},
}  # fmt: skip
#: On some processors NumPy's own reductions by these along contiguous memory ignore all elements but the last.
FORGETFUL = ("arctan2", "power")


UNSET = object()


def _reduce_one_by_one(ufunc: Any, a: np.ndarray, axis: Any = 0, initial: Any = UNSET, keepdims: bool = False, where: Any = True) -> Any:
    """Reduce one element after the other, as NumPy's manual defines it."""
    a = a != 0 if ufunc.__name__.startswith("logical") else a
    axes = tuple(range(a.ndim)) if axis is None else tuple(k % a.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
    rows = np.moveaxis(a, axes, range(len(axes))).reshape(-1, *(n for k, n in enumerate(a.shape) if k not in axes))
    masks = np.moveaxis(np.broadcast_to(where, a.shape), axes, range(len(axes))).reshape(rows.shape)
    start, dtype = ufunc.identity if initial is UNSET else initial, ufunc(a[:0], a[:0]).dtype
    if start is None:
        out, rows, masks = rows[0].astype(dtype), rows[1:], masks[1:]
    else:
        out = np.full(rows.shape[1:], start, dtype=dtype)
    for row, mask in zip(rows, masks):
        out = np.where(mask, ufunc(out, row), out)
    return out.reshape([1 if k in axes else n for k, n in enumerate(a.shape)]) if keepdims else out


def _accumulate_one_by_one(ufunc: Any, a: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.stack([_reduce_one_by_one(ufunc, np.moveaxis(a, axis, 0)[: k + 1], initial=None) for k in range(a.shape[axis])], axis=axis)


def _reduced_at(ufunc: Any, a: np.ndarray, indices: list[int], axis: int = 0) -> np.ndarray:
    stops = [*indices[1:], a.shape[axis]]
    moved = np.moveaxis(a, axis, 0)
    return np.stack([_reduce_one_by_one(ufunc, moved[i : max(j, i + 1)], initial=None) for i, j in zip(indices, stops)], axis=axis)


METHOD_CALLS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    **{f"reduce: {name}": ("reduce", _reduce_one_by_one, options) for name, options in REDUCTIONS.items()},
    "accumulate": ("accumulate", _accumulate_one_by_one, {}), "accumulate: axis": ("accumulate", _accumulate_one_by_one, {"axis": 1}),
    "reduceat": ("reduceat", _reduced_at, {"indices": [0, 2]}),
    "reduceat: axis": ("reduceat", _reduced_at, {"indices": [2, 0, 1, 3], "axis": 1}),
}  # fmt: skip
#: `ldexp` is left out, because its result cannot be an exponent.
PAIRS = [n for n, u in UFUNCS.items() if u.count == 2 and not u.is_generalized and not u.multiple_results and n != "ldexp"]


def _attempt(ufunc: Any, method: str, x: Any, options: dict[str, Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return getattr(ufunc, method)(x, **options)
    except (TypeError, ValueError) as exc:
        return exc


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("name", "kind"), [(n, k) for n in PAIRS for k in POINTS if k != "b" or n.startswith(("logical", "bitwise"))])
def test_every_method_of_every_function_is_numpys(name: str, kind: str, xpgrad_device: str) -> None:
    """Law: `reduce`, `accumulate` and `reduceat` with any options give NumPy's values or raise as NumPy does."""
    ufunc, point = getattr(np, name), POINTS[kind]
    x = xp.asarray(point, device=xpgrad_device)
    for call, (method, definition, options) in METHOD_CALLS.items():
        if kind == "b" and "initial" in options:
            options = {**options, "initial": options["initial"] and True}
        expected = _attempt(ufunc, method, point, options)
        found = _attempt(ufunc, method, x, options)
        if isinstance(expected, Exception):
            assert isinstance(found, Exception), (call, expected, found)
            continue
        assert not isinstance(found, Exception), (call, expected, found)
        if name in FORGETFUL:
            expected = definition(ufunc, point, **options)
        elif kind == "f":
            np.testing.assert_allclose(definition(ufunc, point, **options), expected, rtol=1e-12, err_msg=call)
        np.testing.assert_allclose(values(found), expected, rtol=loosen(1e-12, xpgrad_device), err_msg=call)
        assert found.shape == np.shape(expected), call
        assert np.asarray(found).dtype.kind == np.asarray(expected).dtype.kind, call


@pytest.mark.parametrize("name", [n for n in PAIRS if UFUNCS[n].differentiable])
def test_every_method_of_every_function_differentiates(name: str, xpgrad_device: str) -> None:
    """Law: gradients in the elements and in `initial` agree with central differences; hidden elements do not count."""
    ufunc, point = getattr(np, name), POINTS["f"]
    for call, (method, definition, options) in METHOD_CALLS.items():
        x = xp.tensor(point, device=xpgrad_device, requires_grad=True)
        leaves = {"x": x}
        if options.get("initial") is not None:
            leaves["initial"] = xp.tensor(2.0, dtype=x.dtype, device=xpgrad_device, requires_grad=True)
        given = {**options, **{k: t for k, t in leaves.items() if k == "initial"}}
        found = _attempt(ufunc, method, x, given)
        if isinstance(found, Exception):
            assert isinstance(_attempt(ufunc, method, point, options), Exception), (call, found)
            continue
        weights = numbers(found.shape, 7.0)
        found = xp.where(xp.isfinite(found), found, 0.0)  # a reduction without elements may be the logarithm of 0
        with np.errstate(invalid="ignore"):
            loss = xp.sum(found * xp.asarray(weights, dtype=x.dtype, device=xpgrad_device))
            grads = xp.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        for leaf, g in zip(leaves, grads):
            direction = numbers(point.shape if leaf == "x" else (), 9.0)
            expected = _slope(ufunc, definition, point, options, weights, leaf, direction)
            got = 0.0 if g is None else float(np.sum(values(g) * direction))
            np.testing.assert_allclose(got, expected, rtol=loosen(1e-6, xpgrad_device), atol=loosen(1e-7, xpgrad_device), err_msg=call)


def _slope(ufunc: Any, definition: Any, point: np.ndarray, options: Any, weights: np.ndarray, leaf: str, direction: np.ndarray) -> float:
    """Return the derivative of the weighted sum of a method's results along a direction in one operand, by central differences."""
    ends = []
    for step in (1e-6, -1e-6):
        moved = {**options, "initial": options["initial"] + step * direction} if leaf == "initial" else options
        with np.errstate(all="ignore"):
            out = definition(ufunc, point + step * direction if leaf == "x" else point, **moved)
        ends.append(float(np.sum(weights * np.where(np.isfinite(out), out, 0.0))))
    return (ends[0] - ends[1]) / 2e-6


@pytest.mark.parametrize("name", ["subtract", "power", "arctan2", "hypot", "logaddexp", "logaddexp2", "fmod", "divide"])
def test_what_a_reduction_leaves_out_has_the_gradient_zero(name: str, xpgrad_device: str) -> None:
    """Law: an element hidden by ``where=`` has the gradient 0, whatever its value, and makes no other gradient nan."""
    for bad in (0.0, -3.0, np.nan, np.inf):
        x = xp.tensor([[0.4, bad], [bad, 0.7], [bad, bad]], device=xpgrad_device, requires_grad=True)
        with np.errstate(all="ignore"):
            out = getattr(np, name).reduce(x, axis=1, initial=1.5, where=[[True, False], [False, True], [False, False]])
            g = values(xp.autograd.grad(xp.sum(out), x)[0])
        assert np.isfinite(values(out)).all(), (name, bad)
        assert np.isfinite(g).all(), (name, bad)
        assert g[0, 1] == g[1, 0] == g[2, 0] == g[2, 1] == 0.0, (name, bad)


def test_integers_are_taken_as_numpy_takes_them(xpgrad_device: str) -> None:
    ints = np.array([[3, 1, 2], [5, 4, 7]])
    t = xp.asarray(ints, device=xpgrad_device)
    for function in (np.sin, np.sqrt, np.mean, np.var, np.median, lambda a: np.true_divide(a, a + 1), lambda a: np.arctan2(a, a),
                     np.linalg.norm, np.fft.fft, lambda a: np.logaddexp(a, a), np.cbrt, np.exp2, np.rint, np.average, np.std,
                     lambda a: np.percentile(a, 30), np.sum, np.prod, np.cumsum, lambda a: np.add(a, 2), np.corrcoef,
                     np.isfinite, lambda a: np.hypot(a, 2.0)):  # fmt: skip
        found = function(t)
        expected = function(ints)
        np.testing.assert_allclose(values(found), expected, rtol=loosen(1e-12, xpgrad_device))
        assert np.asarray(found).dtype.kind == np.asarray(expected).dtype.kind


def test_what_requires_no_grad_computes_the_same(xpgrad_device: str) -> None:
    plain, tracked = (xp.tensor(M, device=xpgrad_device, requires_grad=r) for r in (False, True))
    for t in (plain, tracked):
        for refused in (lambda t: np.save("never", t), lambda t: np.sort_complex(t), lambda t: np.add(t, M, out=np.zeros((3, 4))),
                        lambda t: np.add(t, np.array([None] * 4)), lambda t: np.add(t, np.ma.masked_array(M, M > 0))):  # fmt: skip
            with pytest.raises(TypeError):
                refused(t)


def test_a_later_write_to_a_constant_counts_alike_on_both_sides(xpgrad_device: str) -> None:
    """A later write to a constant is not seen, whether in NumPy's functions or in xpgrad's (docs/constants.md)."""
    found = []
    for multiply in (lambda c, x: c * x, lambda c, x: x * c, np.multiply, xp.multiply):
        x = xp.tensor(M, device=xpgrad_device, requires_grad=True)
        constant = N.copy()
        out = np.sum(multiply(constant, x))
        constant[...] = 2.0
        out.backward()
        found.append(values(x.grad))
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


def test_arrays_without_axes_are_weak(xpgrad_device: str) -> None:
    x = xp.tensor(M, dtype=xp.float32, device=xpgrad_device, requires_grad=True)
    for number in (0.5, np.float64(0.5), np.asarray(0.5)):
        assert np.multiply(number, x).dtype == np.multiply(x, number).dtype == xp.float32
        assert np.where(x > 0, x, number).dtype == xp.float32


def test_arrays_go_where_the_tensors_with_axes_are(xpgrad_device: str) -> None:
    """Arrays and 0-d Tensors move to the device of the Tensors that have axes."""
    x = xp.tensor(M, device=xpgrad_device, requires_grad=True)
    number = xp.tensor(2.0, device="numpy", requires_grad=True)
    out = np.where(M > 0, number, x)
    assert out.device == x.device
    np.sum(out).backward()
    assert number.grad is not None
    assert float(number.grad) == np.sum(M > 0)
    np.testing.assert_array_equal(values(x.grad), M <= 0)


# -- out and where -----------------------------------------------------------------------------------------------------------


def test_out_is_written_in_place_and_recorded(x: xp.Tensor) -> None:
    out = xp.zeros((3, 4), dtype=x.dtype, device=x.device)
    assert np.multiply(x, x, out=out) is out
    assert np.sum(x, axis=0, out=out[0]) is not None
    np.sum(out).backward()
    expected = 2 * M
    expected[0] = 0.0
    np.testing.assert_allclose(values(x.grad), expected + 1.0)
    row = xp.zeros(4, dtype=x.dtype, device=x.device)
    assert np.cumsum(x[0], out=row) is row
    np.testing.assert_allclose(values(row), np.cumsum(M[0]))


def test_where_with_out_computes_nothing_that_is_left_out(xpgrad_device: str) -> None:
    point = np.array([0.0, 1.0, 4.0, -1.0])
    x = xp.tensor(point, device=xpgrad_device, requires_grad=True)
    out = np.sqrt(x, where=point > 0, out=xp.full((4,), 7.0, dtype=x.dtype, device=x.device))
    assert out.tolist() == [7.0, 1.0, 2.0, 7.0]
    np.sum(out).backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.25, 0.0]


@pytest.mark.parametrize(
    "name", [n for n, u in UFUNCS.items() if u.differentiable and not u.is_generalized and not u.multiple_results and n != "ldexp"]
)
def test_where_gives_finite_gradients_for_every_function(name: str, xpgrad_device: str) -> None:
    """Law: elements that ``where`` leaves out have the gradient 0, whatever their value."""
    ufunc = getattr(np, name)
    for bad in (0.0, -3.0, np.nan, np.inf):
        points = [np.array([1.5 if name == "arccosh" else 0.4, bad]) for _ in range(ufunc.nin)]
        leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
        with np.errstate(all="ignore"):
            out = ufunc(*leaves, where=[True, False], out=xp.zeros(2, dtype=xp.float64, device=xpgrad_device))
            grads = xp.autograd.grad(xp.sum(out), leaves, allow_unused=True)
        for g in grads:
            assert g is None or (values(g)[1] == 0.0 and np.isfinite(values(g)[0]))


def test_in_place_addition_adds_duplicates_up(x: xp.Tensor) -> None:
    target, expected = x * 1.0, M.copy()
    np.add.at(target, ([0, 0, 2], [1, 1, 3]), xp.asarray([1.0, 2.0, 3.0], device=x.device))
    np.add.at(expected, ([0, 0, 2], [1, 1, 3]), [1.0, 2.0, 3.0])
    np.subtract.at(target, 1, 5.0)
    np.subtract.at(expected, 1, 5.0)
    np.testing.assert_allclose(values(target), expected)
    v = xp.tensor([1.0, 2.0], device=x.device, requires_grad=True)
    zeros = xp.zeros(3, dtype=v.dtype, device=x.device)
    np.add.at(zeros, [1, 1], v * v)
    np.sum(zeros).backward()
    assert v.grad.tolist() == [2.0, 4.0]


# -- making arrays ------------------------------------------------------------------------------------------------------------


def test_like_makes_arrays_beside_a_tensor(x: xp.Tensor) -> None:
    made = {
        "zeros": np.zeros(3, like=x), "ones": np.ones((2, 3), dtype=np.float32, like=x), "full": np.full(2, 7.0, like=x),
        "eye": np.eye(3, k=1, like=x),
        "identity": np.identity(2, like=x), "arange": np.arange(1, 7, 2, like=x), "tri": np.tri(3, 4, like=x),
        "asarray": np.asarray(M, like=x),
        "array": np.array([1.0, 2.0], like=x), "empty": np.empty((2, 1), like=x),
    }  # fmt: skip
    assert all(isinstance(t, xp.Tensor) and t.device == x.device for t in made.values())
    assert made["arange"].tolist() == [1, 3, 5]
    assert made["eye"].tolist() == np.eye(3, k=1).tolist()
    assert made["ones"].dtype is xp.float32
    assert np.asarray(x, like=x) is x


# -- refusals ---------------------------------------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no rule": (lambda x: structured_to_unstructured(x), r"recfunctions.* has no rule.*x\.detach\(\)\.numpy\(\)"),
    "a reason": (lambda x: np.sort_complex(x), "np.sort_complex has no rule in xpgrad: complex numbers have no order"),
    "text": (lambda x: np.array2string(x), "print a Tensor"),
    "integers only": (lambda x: np.gcd(x, 2), "np.gcd has no rule"),
    "out= of NumPy": (lambda x: np.sin(x, out=np.zeros((3, 4))), "np.sin: `out` is numpy.ndarray.*leave the graph"),
    "out= of a function": (lambda x: np.sum(x, out=np.zeros(())), "np.sum: `out` is numpy.ndarray"),
    "augmented": (lambda x: exec("a = M.copy(); a += x", {"M": M, "x": x}), "np.add: `out` is numpy.ndarray"),  # noqa: S102 (a statement)
    "where= without out=": (lambda x: np.log(x, where=M > 0), "np.log: `where` without `out`"),
    "casting=": (lambda x: np.add(x, 1.0, casting="unsafe"), "np.add: xpgrad has no `casting`='unsafe'"),
    "signature=": (lambda x: np.add(x, 1.0, signature="dd->d"), "`signature`"),
    "dtype= that loses": (lambda x: np.add(x, 1.0, dtype=np.int64), "np.add: `dtype`=int64 would lose"),
    "dtype= of a comparison": (lambda x: np.less(x, 1.0, dtype=bool), "np.less: xpgrad has no `dtype`"),
    "axes=": (lambda x: np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)]), "`axes`"),
    "an option": (
        lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), writeable=True), "sliding_window_view: xpgrad has no `writeable`=True"
    ),
    "a method of quantiles": (lambda x: np.quantile(x, 0.3, method="another"), "np.quantile: there is no `method`='another'; there are "),
    "weights of other methods": (lambda x: np.percentile(x, 30, weights=np.ones((3, 4))), "only `method='inverted_cdf'` takes `weights`"),
    "weights of another shape": (lambda x: np.quantile(x, 0.3, weights=[1.0], method="inverted_cdf"), "must have the shape of the array"),
    "negative weights": (lambda x: np.quantile(x, 0.3, weights=-M * M, method="inverted_cdf"), "`weights` must be finite and not negative"),
    "weights of nothing": (lambda x: np.quantile(x[0], 0.3, weights=np.zeros(4), method="inverted_cdf"), "must not all be 0"),
    "a zero period": (lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0], period=0), "`period` must not be 0"),
    "points for a covariance": (lambda x: np.polyfit(x[0], x[1], 3, cov=True), "4 points are too few for the covariance"),
    "a diagonal of a vector": (lambda x: np.fill_diagonal(x[0], 1.0), "np.fill_diagonal fills matrices"),
    "a mode": (lambda x: np.pad(x, 1, "mirror"), "np.pad: there is no `mode`='mirror'; there are constant, edge"),
    "a row of nan": (lambda x: np.nanargmax(x * np.nan, axis=1), "np.nanargmax: a row has no element that is not nan"),
    "objects": (lambda x: np.add(x, np.array([None] * 4)), "a Tensor on .* met an array of dtype object"),
    "objects with Tensors": (lambda x: np.add(x, _objects(x)), "that holds Tensors, which no device has; `np.stack`"),
    "text arrays": (lambda x: np.add(x, np.array(["a"] * 4)), "met an array of dtype <U1"),
    "masked": (lambda x: np.add(np.ma.masked_array(M, M > 0).view(_Masked), x), "masked array"),
    "a string": (lambda x: np.concatenate([x, "abc"]), "met builtins.str"),
    "at": (lambda x: np.multiply.at(x, 0, 2.0), "np.multiply.at has no rule in xpgrad: only `np.add.at`"),
    "at into an array": (lambda x: np.add.at(np.zeros((3, 4)), 0, x[0]), "cannot be added into numpy.ndarray"),
    "reduce of one operand": (lambda x: np.divmod.reduce(x), "reduce"),
    "order of elements": (lambda x: np.subtract.reduce(x, axis=None), "goes along one axis"),
}  # fmt: skip


class _Masked(np.ma.MaskedArray):
    """A masked array that leaves universal functions to the other operand."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented


def _objects(x: Any) -> np.ndarray:
    out = np.empty(4, dtype=object)
    out[0] = x
    return out


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_and_why(name: str, x: xp.Tensor) -> None:
    function, message = REFUSED[name]
    for t in (x, x.detach()):
        with pytest.raises((TypeError, ValueError), match=message):
            function(t)


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_is_not_there_says_so(name: str, x: xp.Tensor) -> None:
    """Law: every function that is listed as missing raises an error with the reason, if NumPy dispatches it at all."""
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    for t in (x, x.detach()):
        args = {"save": ("f", t), "savetxt": ("f", t), "savez": ("f", t), "savez_compressed": ("f", t),
                "einsum_path": ("ij", t), "gcd": (t, t), "lcm": (t, t),
                "busday_count": (t, t), "busday_offset": (t, t)}.get(name, (t,))  # fmt: skip
        with pytest.raises(TypeError, match=f"np.{name} has no rule in xpgrad"):
            function(*args)


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "inverted_cdf", "closest_observation", "linear", "midpoint"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_of_integers_have_numpys_dtype(name: str, method: str) -> None:
    raw = np.asarray([4, 1, 3, 2])
    wanted = getattr(np, name)(raw, [0.3, 0.8], method=method)
    found = getattr(np, name)(xp.asarray(raw), [0.3, 0.8], method=method)
    assert str(found.dtype) == str(wanted.dtype)
    assert found.tolist() == pytest.approx(wanted.tolist())


def test_another_librarys_universal_function(x: xp.Tensor) -> None:
    special = pytest.importorskip("scipy.special")
    with pytest.raises(TypeError, match=r"`scipy\.special\.zetac` has no rule in xpgrad"):
        special.zetac(x)
    with pytest.raises(TypeError, match=r"`abs \(vectorized\)` of another library"):
        np.frompyfunc(abs, 1, 1)(x)


def test_tensors_of_two_devices() -> None:
    a, b = xp.ones(3, device="numpy"), xp.ones(3, device="numpy+readonly")
    for function in (
        np.add,
        np.dot,
        lambda x, y: np.concatenate([x, y]),
        lambda x, y: np.where(x > 0, x, y),
        lambda x, y: np.interp(x, y, y),
    ):
        with pytest.raises(DeviceMismatchError, match=r"numpy.*numpy\+readonly"):
            function(a, b)


def test_raw_arrays_of_another_library() -> None:
    strict = pytest.importorskip("array_api_strict")
    x = xp.ones(3, device="numpy", requires_grad=True)
    with pytest.raises(
        TypeError, match=r"`np.concatenate` got a Tensor on numpy and an array of type array_api_strict.*, of another library"
    ):
        np.concatenate([x, strict.ones(3)])


def test_a_device_that_is_not_in_the_hosts_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.ones(3, device="strict", requires_grad=True)
    monkeypatch.setattr(type(x.backend), "on_host", lambda self, device: False)
    with pytest.raises(DeviceMismatchError, match=r"got a Tensor on strict .* and an array of type numpy.ndarray on numpy .* move it"):
        np.add(np.ones(3), x)
    assert np.add(2.0, x).tolist() == np.multiply([3.0] * 3, x).tolist()


def test_asarray_still_refuses_what_requires_grad(x: xp.Tensor) -> None:
    for function in (np.asarray, np.array, lambda t: np.array([t, t]), lambda t: M.dot(t)):
        with pytest.raises(RuntimeError, match="requires grad"):
            function(x)


# -- modes and transforms -----------------------------------------------------------------------------------------------------------


def xpgrad_energy(x: Any) -> Any:
    """Compute `numpy_energy` with xpgrad's own functions."""
    gaps = xp.diff(x, prepend=xp.zeros((1,), dtype=x.dtype, device=x.device))
    bent = xp.where(gaps > 0, xp.square(gaps), xp.log1p(xp.exp(gaps)))
    weights = xp.flip(xp.linspace(1.0, 2.0, 5, dtype=x.dtype, device=x.device))
    return xp.sum(xp.sort(bent) * weights) + xp.linalg.vector_norm(xp.fft.rfft(x)) + xp.sum(x * x)


def numpy_energy(x: Any) -> Any:
    """Compute a number with NumPy's functions."""
    gaps = np.diff(x, prepend=0.0)
    bent = np.where(gaps > 0, np.square(gaps), np.log1p(np.exp(gaps)))
    ranked = np.multiply(np.sort(bent), np.linspace(1.0, 2.0, 5)[::-1])
    return np.sum(ranked) + np.linalg.norm(np.fft.rfft(x)) + np.einsum("i,i->", x, x)


def test_transforms_of_numpy_code(xpgrad_device: str) -> None:
    x = xp.tensor(V, device=xpgrad_device)
    np.testing.assert_allclose(values(numpy_energy(x)), numpy_energy(V))
    grad = xp.func.grad(numpy_energy)(x)
    np.testing.assert_allclose(values(grad), values(xp.func.grad(xpgrad_energy)(x)), rtol=1e-10)
    np.testing.assert_allclose(values(xp.func.hessian(numpy_energy)(x)), values(xp.func.hessian(xpgrad_energy)(x)), rtol=1e-8, atol=1e-9)
    tangent = xp.tensor(numbers((5,), 3.0), device=xpgrad_device)
    _, out = xp.func.jvp(numpy_energy, (x,), (tangent,))
    np.testing.assert_allclose(values(out), np.sum(values(grad) * values(tangent)), rtol=1e-10)
    batch = xp.tensor(numbers((3, 5), 2.0), device=xpgrad_device)
    each = np.stack([numpy_energy(row) for row in batch])
    np.testing.assert_allclose(values(xp.func.vmap(numpy_energy)(batch)), values(each), rtol=1e-10)


def test_compiled_numpy_code(xpgrad_device: str) -> None:
    x = xp.tensor(V, device=xpgrad_device, requires_grad=True)
    compiled = xp.compile(lambda t: np.sum(np.tanh(t) * np.mean(t)))
    compiled(x).backward()
    y = xp.tensor(V, device=xpgrad_device, requires_grad=True)
    xp.sum(xp.tanh(y) * xp.mean(y)).backward()
    np.testing.assert_allclose(values(x.grad), values(y.grad), rtol=1e-10)


def test_no_grad_and_inference_mode(x: xp.Tensor) -> None:
    with xp.no_grad():
        assert not np.sin(x).requires_grad
    with xp.inference_mode():
        t = np.sin(x.detach())
        assert t.is_inference()
        assert np.add(t, x.detach()).is_inference()
        assert np.concatenate([t, x.detach()]).is_inference()


# -- HIPS autograd ----------------------------------------------------------------------------------------------------------------------


def _hips() -> dict[str, Callable[[Any, Any], Any]]:
    """Return programs that take the module of NumPy's functions and an array."""
    return {
        "softmax": lambda m, a: m.sum(m.exp(a - m.max(a)) / m.sum(m.exp(a))),
        "tensordot": lambda m, a: m.sum(m.tensordot(a, m.transpose(a), 1) ** 2),
        "kron": lambda m, a: m.sum(m.sin(m.kron(a, a))),
        "cumsum and roll": lambda m, a: m.sum(m.roll(m.cumsum(a, axis=1), 1, axis=0) * a),
        "where": lambda m, a: m.sum(m.where(a > 0, m.sqrt(m.abs(a)), a**2)),
        "std, var, mean": lambda m, a: m.std(a) + m.sum(m.var(a, axis=0)) * m.mean(a),
        "fft": lambda m, a: m.sum(m.abs(m.fft.fft(a)) ** 2),
        "linalg": lambda m, a: m.linalg.slogdet(m.add(m.dot(a, m.transpose(a)), 4.0 * m.eye(3)))[1],
        "norm": lambda m, a: m.linalg.norm(a) + m.sum(m.linalg.inv(m.add(m.dot(a, m.transpose(a)), 4.0 * m.eye(3)))),
        "einsum": lambda m, a: m.einsum("ij,kj,ik->", a, a, m.dot(a, m.transpose(a))),
        "concatenate": lambda m, a: m.sum(m.sinc(m.concatenate([a, 2.0 * a], axis=0))),
        "stack, split": lambda m, a: m.sum(m.vstack(m.split(m.hstack([a, a]), 2, axis=1)) ** 3),
        "gradient": lambda m, a: m.sum(m.gradient(a, axis=1) ** 2),
        "diff, pad, tile": lambda m, a: m.sum(m.diff(m.pad(m.tile(a, (2, 1)), 1, "constant"), axis=0) ** 2),
        "sort": lambda m, a: m.sum(m.arange(12.0) * m.sort(m.ravel(a))),
        "logaddexp": lambda m, a: m.sum(m.logaddexp(a, m.flipud(a)) * m.tril(a)),
    }


@pytest.mark.parametrize("name", sorted(_hips()))
def test_gradients_are_those_of_hips_autograd(name: str) -> None:
    pytest.importorskip("autograd", reason="the extra `bench` brings it")
    import autograd
    import autograd.numpy as anp

    program = _hips()[name]
    x = xp.tensor(M, requires_grad=True)
    out = program(np, x)
    out.backward()
    expected = autograd.grad(lambda a: program(anp, a))(M)
    np.testing.assert_allclose(values(out), program(anp, M), rtol=1e-10)
    np.testing.assert_allclose(values(x.grad), expected, rtol=1e-8, atol=1e-10)


def test_rounding_does_not_lead_beyond_a_correlation_of_1() -> None:
    ranks = np.random.default_rng(1).permuted(np.tile(np.arange(4.0), (4, 1)), axis=1)
    for data in (ranks, ranks + 1j * ranks[::-1]):
        found = np.corrcoef(xp.asarray(data))
        np.testing.assert_allclose(np.asarray(found.tolist()), np.corrcoef(data), atol=1e-15)
        assert float(xp.max(xp.abs(xp.real(found)))) == 1.0
    x = xp.tensor(ranks, requires_grad=True)
    slope = xp.autograd.grad(np.corrcoef(x)[0, 1], x)[0]
    expected = np.zeros((4, 4))
    for place in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[place] = 1e-6
        expected[place] = (np.corrcoef(ranks + step)[0, 1] - np.corrcoef(ranks - step)[0, 1]) / 2e-6
    np.testing.assert_allclose(np.asarray(slope.tolist()), expected, atol=1e-8)
