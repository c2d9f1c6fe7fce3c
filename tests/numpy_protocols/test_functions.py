"""Law: each of NumPy's public functions, called with Tensors, gives NumPy's values and the right gradients, or raises an error.

The reference is NumPy on the raw arrays: its values, and central differences of them.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import STEP, has_float64, numbers
from support.numpy_cases import CASES, PLACES, Case
from xpgrad._numpy.missing import NOT_DISPATCHED
from xpgrad._numpy.table import ABSENT, FUNCTIONS, UFUNCS

pytestmark = pytest.mark.slow(one_in=3)

#: The errors of a Tensor if NumPy converts it without dispatching on it, or writes it into an array.
READ_UNASKED = (
    r"cannot be written into|`out` is|Can't call numpy\(\) on Tensor that requires grad|works on Tensors, but got a raw array"
    r"|Converting a tensor|setting an array element with a sequence"
)
ALL = [(name, k) for name, cases in CASES.items() for k in range(len(cases))]


def public() -> Iterator[tuple[str, Any]]:
    """Yield NumPy's public functions with the name that each reports (`np.concat` reports `concatenate`)."""
    for prefix, module in PLACES:
        for name in dir(module):
            found = getattr(module, name)
            if callable(found) and not name.startswith("_") and not isinstance(found, type):
                yield prefix + getattr(found, "__name__", name), found


def test_every_public_function_is_covered_or_said_not_to_be() -> None:
    """Law: each public function of NumPy is in one of the tables."""
    aside = {name for names in NOT_DISPATCHED.values() for name in names}
    covered = {*FUNCTIONS, *UFUNCS}
    names = {name for name, _ in public()}
    assert names - covered - set(ABSENT) - aside == set()
    assert not covered & set(ABSENT)
    assert not covered & aside


def test_every_function_of_the_table_has_a_case() -> None:
    """Law: each function of the table has a sample call, and both tables agree on whether it is differentiable."""
    entries = {**FUNCTIONS, **UFUNCS}
    assert set(entries) - {"concat", "permute_dims", "abs"} - set(CASES) == set()
    for name, cases in CASES.items():
        assert entries[name].differentiable == any(not case.constant for case in cases), name


def outputs(out: Any) -> list[Any]:
    return [part for each in out for part in outputs(each)] if isinstance(out, (tuple, list)) else [out]


def loss(out: Any, raw: bool) -> Any:
    """Return a real number that depends smoothly and nonlinearly on all floating outputs."""
    total: Any = 0.0
    for k, y in enumerate(outputs(out)):
        kind = np.asarray(y).dtype.kind if raw else getattr(getattr(y, "dtype", None), "kind", "")
        if kind not in ("f", "c"):
            continue
        parts = [y] if kind == "f" else [y.real, y.imag] if raw else [xp.real(y), xp.imag(y)]
        for j, part in enumerate(parts):
            w = numbers(np.shape(part), 1.0 + k + 5 * j)
            if raw:
                part = np.where(np.isfinite(part), part, 0.0)
                total = total + np.sum(w * (part + 0.3 * part * part))
            else:
                part = xp.where(xp.isfinite(part), part, 0.0)
                total = total + xp.sum(xp.asarray(w, dtype=part.dtype, device=part.device) * (part + 0.3 * part * part))
    return total


def quiet(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="Converting a tensor")  # a number that leaves the graph must not pass with a warning
        return function(*args)


def agree(found: Any, expected: Any, near: float) -> None:
    found, expected = outputs(found), outputs(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        if isinstance(a, xp.Tensor):
            assert a.shape == np.shape(b)
            # NB: only kinds are compared, because the Array API's functions return indices and counts in other dtypes.
            assert np.asarray(a.detach()).dtype.kind in {"i": "iu", "u": "iu"}.get(np.asarray(b).dtype.kind, np.asarray(b).dtype.kind)
            np.testing.assert_allclose(np.asarray(a.detach()), b, rtol=near, atol=near)
        else:
            assert a == b


def leaf(point: np.ndarray, device: str, requires_grad: bool) -> xp.Tensor:
    return xp.tensor(np.asarray(point), device=device, requires_grad=requires_grad)


def slope(case: Case, i: int) -> tuple[np.ndarray, float]:
    """Return a direction in the i-th operand, and the derivative along it."""
    point = np.asarray(case.points[i])
    direction = numbers(point.shape, 3.0 + i, point.dtype)
    ends = [
        quiet(
            lambda s: loss(case.function(*(q + s * STEP * direction if j == i else np.copy(q) for j, q in enumerate(case.points))), True), s
        )
        for s in (1, -1)
    ]
    return direction, float((ends[0] - ends[1]) / (2 * STEP))


def check_slope(case: Case, i: int, gradient: Any, what: str) -> None:
    direction, expected = slope(case, i)
    g = np.asarray(gradient.detach()) if gradient is not None else np.zeros_like(direction)
    g = np.where(np.isnan(np.asarray(case.points[i])), 0.0, g)
    found = float(np.sum(g.real * direction.real) + np.sum(g.imag * direction.imag))
    assert abs(found - expected) <= 5e-6 * max(1.0, abs(expected)) * (1.0 + np.linalg.norm(np.ravel(g)) * 1e-2), (
        f"{what}: {found} instead of {expected}"
    )


@pytest.mark.slow(one_in=12)
@pytest.mark.parametrize(("name", "k"), ALL)
def test_values_and_gradients(name: str, k: int, xpgrad_device: str) -> None:
    case = CASES[name][k]
    if not has_float64(xpgrad_device):
        pytest.skip("the differences are taken in float64")
    expected = quiet(case.function, *map(np.copy, case.points))
    plain = quiet(case.function, *(leaf(p, xpgrad_device, False) for p in case.points))
    agree(plain, expected, 1e-9)
    leaves = [leaf(p, xpgrad_device, True) for p in case.points]
    out = quiet(case.function, *leaves)
    agree(out, expected, 1e-9)
    assert [type(a) for a in outputs(out)] == [type(a) for a in outputs(plain)]
    tracked = any(isinstance(a, xp.Tensor) and a.requires_grad for a in outputs(out))
    assert tracked != case.constant
    if case.constant:
        return
    grads = xp.autograd.grad(loss(out, False), leaves, allow_unused=True)
    for i, g in enumerate(grads):
        check_slope(case, i, g, f"operand {i}")


def _calls_with_axes(name: str) -> Iterator[tuple[Callable[..., Any], list[Any], dict[str, Any]]]:
    """Yield calls of a function, with as many operands as it needs, and axes that arrays of shape (6,) or (2, 3) may not have."""
    function = getattr(np, name)
    parameters = inspect.signature(function).parameters.values()
    word = next(p.name for p in parameters if p.name in ("axis", "axes"))
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != word]
    for shape in ((6,), (2, 3)):
        for axis in (0, 1, 2, -3, (0, 0), (0, 2)):
            yield function, [np.arange(1.0, 7.0).reshape(shape), *[1] * (len(needed) - 1)], {word: axis}


def _has_axes(name: str) -> bool:
    try:
        return not {"axis", "axes"}.isdisjoint(inspect.signature(getattr(np, name)).parameters)
    except (AttributeError, ValueError):  # it is in another namespace, or has no signature
        return False


@pytest.mark.parametrize("name", [name for name in CASES if _has_axes(name)])
def test_an_axis_that_the_array_does_not_have_is_refused(name: str) -> None:
    """`np.quantile` and others took any axis, modulo the number of axes."""
    for function, args, axes in _calls_with_axes(name):
        call = functools.partial(function, **axes)
        try:
            quiet(call, *args)
        except (IndexError, ValueError):
            with pytest.raises((IndexError, TypeError, ValueError)):
                quiet(call, xp.asarray(args[0]), *args[1:])
        except (TypeError, AttributeError):
            continue  # it takes one axis only, or other operands than numbers


#: Functions whose cases request float64 by a dtype or a constant.
GIVEN_FLOAT64 = ("astype", "float_power", "histogram2d", "trim_zeros")


@pytest.mark.parametrize(("name", "k"), ALL)
def test_single_precision_stays(name: str, k: int) -> None:
    """Law: constants in a call or in a function's implementation do not widen a computation in float32."""
    case = CASES[name][k]
    narrow = {"float64": np.float32, "complex128": np.complex64}
    points = [np.asarray(p).astype(narrow[np.asarray(p).dtype.name]) for p in case.points]
    for a in outputs(quiet(case.function, *(leaf(p, "numpy", True) for p in points))):
        if isinstance(a, xp.Tensor) and a.dtype.differentiable and name not in GIVEN_FLOAT64:
            assert a.dtype.name in ("float32", "complex64")


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, k in ALL if len(CASES[name][k].points) > 1])
def test_one_tensor_among_arrays(name: str, k: int, xpgrad_device: str) -> None:
    """Law: NumPy arrays are constants next to a Tensor in any position, or the function says that it needs a Tensor there."""
    case = CASES[name][k]
    if not has_float64(xpgrad_device):
        pytest.skip("the differences are taken in float64")
    expected = quiet(case.function, *map(np.copy, case.points))
    for i, point in enumerate(case.points):
        given = [leaf(point, xpgrad_device, True) if j == i else np.copy(q) for j, q in enumerate(case.points)]
        error = None
        try:
            out = quiet(case.function, *given)
        except xp.DeviceMismatchError:
            raise
        except (RuntimeError, TypeError, UserWarning, ValueError) as exc:
            error = str(exc)
        if error is not None:
            # A Tensor cannot be written into an array, and NumPy converts some arguments without dispatching on them, which raises.
            assert re.search(READ_UNASKED, error), error
            continue
        agree(out, expected, 1e-9)
        if case.constant:
            continue
        total = loss(out, False)
        gradient = xp.autograd.grad(total, given[i], allow_unused=True)[0] if getattr(total, "requires_grad", False) else None
        check_slope(case, i, gradient, f"operand {i}")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.put(x, [0], 1.0, mode="wrong"),
        lambda x: np.take(x, [0], mode="wrong"),
        lambda x: np.choose(np.asarray([0, 1]), [x, x], mode="wrong"),
    ],
    ids=["put", "take", "choose"],
)
def test_an_unknown_mode_is_refused_before_anything_is_written(call: Any) -> None:
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="'wrong'"):
        call(x)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.put(x, [0], []),
        lambda x: np.fill_diagonal(x, []),
        lambda x: np.putmask(x, np.ones((2, 2), bool), []),
        lambda x: np.place(x, np.zeros((2, 2), bool), []),
        lambda x: np.place(x, np.ones((2, 2), bool), []),
    ],
    ids=["put", "fill_diagonal", "putmask", "place nowhere", "place"],
)
def test_writes_of_no_values_are_numpys(write: Any) -> None:
    """They change nothing; `place` raises if there is a place."""
    outcomes = []
    for x in (np.ones((2, 2)), xp.ones((2, 2))):
        try:
            outcomes.append(write(x))
        except ValueError:
            outcomes.append("ValueError")
        assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("order", [None, 1, -1, np.inf, -np.inf, 2, -2, "fro"])
def test_condition_numbers_of_singular_matrices_are_numpys(order: Any) -> None:
    """The gradient is infinite or nan, unless singular values are computed, of which none may be exactly 0."""
    matrices = np.stack([np.ones((2, 2)), np.zeros((2, 2)), np.diag([1e-180, 1e-180]), [[1.0, 2.0], [3.0, 5.0]]])
    x = xp.tensor(matrices, requires_grad=True)
    with np.errstate(all="ignore"):
        found, expected = np.linalg.cond(x, order), np.linalg.cond(matrices, order)
        np.testing.assert_allclose(found.detach().numpy()[[0, 1, 3]], expected[[0, 1, 3]])
        if order != "fro":  # it squares the elements
            np.testing.assert_allclose(found.detach().numpy()[2], 1.0)
        xp.sum(found).backward()
    grads = x.grad.numpy()
    assert order in (None, 2, -2) or not np.isfinite(grads[0]).any()
    assert np.isfinite(grads[3]).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.var(x, 0, ddof=2),
        lambda x: np.var(x, 0, ddof=2, where=[[True], [True], [False]]),
        lambda x: np.std(x, 1, mean=x[:, :1], correction=5),
        lambda x: np.nanvar(x, 0, ddof=3),
        lambda x: np.cov(x, ddof=5),
        lambda x: np.cov(x, ddof=5, aweights=[1.0, 2.0]),
        lambda x: np.cov(x, ddof=9, fweights=[1, 2]),
    ],
)
def test_corrections_above_the_number_of_observations_divide_by_0(function: Any) -> None:
    x = np.asarray([[1.0, 2.0], [3.0, 5.0], [4.0, 9.0]])
    np.testing.assert_array_equal(quiet(function, xp.asarray(x)).numpy(), quiet(function, x))


@pytest.mark.parametrize("function", [np.median, np.nanmedian, lambda x, axis: np.quantile(x, [0.2, 0.5], axis=axis)])
def test_quantiles_of_no_vectors_are_none(function: Any) -> None:
    x = xp.zeros((7, 0), requires_grad=True)
    out = function(x, axis=0)
    assert out.shape == function(np.zeros((7, 0)), axis=0).shape
    xp.sum(out).backward()
    assert x.grad.shape == (7, 0)


@pytest.mark.parametrize(("num", "endpoint"), [(0, True), (0, False), (1, True), (1, False), (2, True)])
def test_the_step_of_at_most_one_number_is_numpys(num: int, endpoint: bool) -> None:
    stop = xp.tensor(2.0, requires_grad=True)
    found, step = np.linspace(0.5, stop, num, endpoint, retstep=True)
    np.testing.assert_array_equal(step.detach().numpy(), np.linspace(0.5, 2.0, num, endpoint, retstep=True)[1])
    xp.sum(found).backward()
    np.testing.assert_array_equal(stop.grad.numpy(), 1.0 if num == 2 else 0.0)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: np.var(x, ddof=1, correction=1, mean=0.0), "`ddof` or `correction`"),
        (lambda x: np.cov(x, fweights=[1, 2, 3]), "`fweights` must have shape"),
        (lambda x: np.cov(x, aweights=[[1.0, 2.0]]), "`aweights` must have shape"),
        (lambda x: np.linalg.pinv(x, hermitian=True), "square"),
    ],
)
def test_options_that_do_not_fit_are_refused(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call(xp.asarray([[1.0, 2.0], [3.0, 5.0], [4.0, 9.0]]))


def test_the_slope_of_a_cube_root_at_0_is_infinite() -> None:
    x = xp.tensor([-8.0, 0.0, 8.0], requires_grad=True)
    with np.errstate(divide="ignore"):
        np.cbrt(x).backward(xp.ones(3))
    np.testing.assert_allclose(x.grad.numpy(), [1 / 12, np.inf, 1 / 12])


def test_a_single_value_decides_whether_results_are_complex() -> None:
    for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"):
        function = getattr(np.emath, name)
        for x in ([0.5, -1e-9], [0.5, -1.5], [0.5, 1.0 + 1e-9], [0.5, 0.2], [3, -2]):
            found, expected = function(xp.asarray(x)), function(np.asarray(x))
            assert str(found.dtype) == str(expected.dtype), (name, x)
            np.testing.assert_allclose(found.numpy(), expected)
        batch = xp.asarray([0.5, -1.5])
        for found in (xp.func.vmap(function)(batch), xp.compile(function)(batch)):
            np.testing.assert_allclose(found.numpy(), function(batch.numpy() + 0j))
    base = xp.asarray([2, 3])
    assert np.emath.power(base, xp.asarray([-1, 2])).tolist() == [0.5, 9.0]
    assert np.emath.power(base, 2).dtype == xp.int64
    assert xp.func.vmap(lambda p: np.emath.power(2, p))(xp.asarray([-1, 2])).tolist() == [0.5, 4.0]


def test_integers_are_rounded_to_floating_point_numbers() -> None:
    assert str(np.rint(xp.asarray([1, 2])).dtype) == str(np.rint(np.asarray([1, 2])).dtype)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's own, of the remainder of infinity
@pytest.mark.parametrize("options", [{}, {"left": 1.0, "right": 2.0}, {"period": 5.0}], ids=str)
def test_interpolation_at_nan_and_infinity_leaves_derivatives_alone(options: dict[str, Any]) -> None:
    knots, heights, at = np.array([0.0, 1.0, 2.5]), np.array([1.0, 3.0, 2.0]), np.array([0.4, np.nan, np.inf, -np.inf, 1.7])
    expected = np.interp(at, knots, heights, **options)
    np.testing.assert_array_equal(np.interp(xp.asarray(at), knots, heights, **options).numpy(), expected)
    known = np.isfinite(at)

    def total(x: Any, y: Any, q: Any) -> Any:
        return np.sum(np.interp(q, x, y, **options)[known] ** 2)

    for derive in (xp.func.grad, xp.func.jacfwd):
        found = derive(total, argnums=(0, 1, 2))(*map(xp.asarray, (knots, heights, at)))
        for k, args in enumerate((knots, heights, at)):
            steps = 1e-6 * np.eye(args.size)
            ends = [
                [total(*[v + s if i == k else v for i, v in enumerate((knots, heights, at))]) for s in sign * steps] for sign in (1, -1)
            ]
            np.testing.assert_allclose(found[k].numpy(), np.subtract(*ends) / 2e-6, atol=1e-6)


def test_positions_outside_of_an_axis_raise() -> None:
    places = xp.asarray([0, 3])
    assert np.ravel_multi_index((places, 1), (4, 2)).tolist() == [1, 7]
    small = xp.asarray([99, 50], dtype=xp.int8)
    for run in (lambda f: f, xp.func.vmap, xp.compile):
        found = run(lambda x: np.ravel_multi_index((x, x), (100, 100)))(small)
        assert found.tolist() == [9999, 5050]
        assert found.dtype == xp.int64
    for outside in (places, places - 3):
        with pytest.raises(ValueError, match="outside of an axis of length 3"):
            np.ravel_multi_index((places, outside), (4, 3))
    for wrong in ({"mode": "none"}, {"order": "K"}):
        with pytest.raises(ValueError, match="takes order='C' or 'F'"):
            np.ravel_multi_index((places, places), (4, 4), **wrong)
    with pytest.raises(TypeError, match="needs integers for each of the 2 axes"):
        np.ravel_multi_index((places, xp.ones(2)), (4, 3))
