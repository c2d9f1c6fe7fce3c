"""Law: on every device, each fault is noticed by the check for it, and no check fails for a sound function."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import DEVICES
from testing.faults import FAULTY, SOUND, X, Y, custom, right
from xpgrad.testing import CHECKS, NotDifferentiable, Result, Row, _checking, check_differentiable, examine

WRITABLE = [d for d in DEVICES if d not in ("numpy+readonly",)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_function_passes_every_check(name: str, device: str) -> None:
    function, args = SOUND[name]
    if "complex" in name and "float64" not in {d.name for d in xp.zeros(0, dtype=xp.float32, device=device).backend.dtypes()}:
        pytest.skip("declared: no complex numbers of the precision that is compared with")
    result = check_differentiable(function, *args, backends=[device])
    assert {row.check for row in result.rows} == set(CHECKS)
    assert {row.outcome for row in result.rows} <= {"passed", "constant"}


#: Other checks that may fail together with a check, for the same reason.
FOLLOWS = {
    "unchanged": {"graph"},
    "values": {"gradient"},
    "repeatable": {"values"},
    "graph": {"forward", "second"},
    "gradient": {"forward", "second"},
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_noticed_by_its_check_and_by_no_other(name: str) -> None:
    check, function, args = FAULTY[name]
    with pytest.raises(NotDifferentiable) as caught:
        check_differentiable(function, *args, backends=["numpy"])
    result = caught.value.result
    wrong = {row.check for row in result.failures}
    assert check in wrong
    assert wrong <= {check, *FOLLOWS.get(check, ()), "vmap"}, str(result)
    assert f"check `{check}`" in str(caught.value)
    assert CHECKS[check] in str(caught.value)


@pytest.mark.parametrize(
    "name", [name for name, (check, _, _) in FAULTY.items() if check in ("graph", "gradient", "forward", "second", "vmap")]
)
@pytest.mark.parametrize("device", WRITABLE[1:])
def test_a_fault_is_noticed_on_every_device(name: str, device: str) -> None:
    check, function, args = FAULTY[name]
    assert check in {row.check for row in examine(function, *args, backends=[device]).failures}


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_the_same_whoever_is_checked_beside(device: str) -> None:
    function, args = SOUND["of two"]
    alone, together = examine(function, *args, backends=[device]), examine(function, *args, backends=["numpy", device])
    assert alone.of(backend=device) == together.of(backend=device)


@settings(max_examples=25, deadline=None)
@given(
    off=st.floats(1e-3, 1e3),
    sign=st.sampled_from([-1.0, 1.0]),
    scale=st.floats(1e-6, 1e6),
    size=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_a_derivative_that_is_off_by_a_thousandth_is_noticed_at_every_scale(
    off: float, sign: float, scale: float, size: int, seed: int
) -> None:
    x = scale * np.random.default_rng(seed).uniform(0.1, 1.0, size)
    options: dict[str, Any] = {"backends": ["numpy"], "seed": seed, "skip": ("vmap", "forward", "second")}
    assert examine(custom(right, right), x, **options).passed
    wrong = examine(custom(lambda x, g: 2.0 * x * g * (1.0 + sign * off), right), x, **options)
    assert {row.check for row in wrong.failures} == {"gradient"}


@pytest.mark.parametrize("which", [0, 1])
def test_only_the_arguments_that_are_named_are_differentiated_in(which: int) -> None:
    function, args = FAULTY["it detaches one of two"][1:]
    result = examine(function, *args, argnums=which, backends=["numpy"])
    assert {row.argument for row in result.rows} == {None, which}
    assert result.passed is (which == 1)


def test_an_argument_that_refuses_leaves_the_others_to_be_checked() -> None:
    def half(x: Any, y: Any) -> Any:
        if getattr(x, "requires_grad", False):
            raise TypeError("x is a constant here")
        return x * y * y

    result = examine(half, X, Y, backends=["numpy"], vmap=False, forward=False)
    assert {(row.argument, row.check) for row in result.failures} == {(0, "graph")}
    assert result.failures[0].reason == "TypeError: x is a constant here"
    assert {row.outcome for row in result.of(argument=1)} == {"passed"}


def test_a_number_that_is_named_becomes_an_array() -> None:
    assert check_differentiable(lambda x, a: x**a, X, 2.5, argnums=(0, 1), backends=["numpy"]).of(argument=1, check="gradient")


def test_writes_are_an_outcome_of_their_own_where_they_are_allowed() -> None:
    def function(x: Any) -> Any:
        y = x * 2.0
        z = y * y
        y += 1.0
        return z + y

    result = examine(function, X, backends=["numpy"])
    (failure,) = result.failures
    assert failure.check == "graph"
    assert "modified by an inplace operation" in failure.reason
    assert {row.check: row.outcome for row in check_differentiable(function, X, backends=["numpy"], mutation=True).rows}[
        "graph"
    ] == "writes"


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "runs"])
def test_a_check_can_be_switched_off(check: str) -> None:
    result = examine(lambda x: x * x, X, backends=["numpy"], skip=check)
    assert {row.check for row in result.rows} == set(CHECKS) - {check}


@pytest.mark.parametrize(("options", "off"), [({"order": 1}, "second"), ({"vmap": False}, "vmap"), ({"forward": False}, "forward")])
def test_the_flags_switch_theirs_off(options: dict[str, Any], off: str) -> None:
    assert {row.check for row in examine(lambda x: x * x, X, backends=["numpy"], **options).rows} == set(CHECKS) - {off}


def test_a_graph_that_is_left_shows_in_the_gradient_where_that_check_is_off() -> None:
    assert {row.check for row in examine(FAULTY["it detaches"][1], X, backends=["numpy"], skip="graph").failures} >= {"gradient"}


def test_failures_that_are_known_do_not_count_and_must_be_there() -> None:
    branches = FAULTY["it branches on a value"][1]
    for key in ("vmap", "numpy:vmap", "numpy"):
        result = check_differentiable(branches, X, backends=["numpy"], known={key: "it asks for a value"})
        (row,) = result.of(check="vmap")
        assert row.outcome == "known"
        assert row.reason.startswith("it asks for a value (")
    with pytest.raises(NotDifferentiable, match=r"it passes, but `known` says: no reason; remove that"):
        check_differentiable(lambda x: x * x, X, backends=["numpy"], known={"second": "no reason"})


def test_a_backend_of_single_precision_is_judged_by_its_precision() -> None:
    single = lambda x: x.__array_namespace__().sin(x) * x  # noqa: E731
    result = check_differentiable(single, X.astype(np.float32), backends=["numpy"])
    assert {row.outcome for row in result.rows} == {"passed"}
    off = custom(lambda x, g: 2.0 * x * g * 1.0005, right)
    assert examine(off, X.astype(np.float32), backends=["numpy"], skip=("forward", "second")).passed  # not visible in single precision
    assert not examine(off, X, backends=["numpy"], skip=("forward", "second")).passed
    assert not examine(custom(lambda x, g: 2.02 * x * g, right), X.astype(np.float32), backends=["numpy"]).passed


def test_a_function_that_computes_in_single_precision() -> None:
    """Its results say so, or the message does, in which different numbers never look the same."""
    x = np.array([0.3, 1.7])
    check_differentiable(lambda x: xp.sin(xp.astype(x, xp.float32)), x, backends=["numpy"])
    with pytest.raises(NotDifferentiable) as caught:
        check_differentiable(lambda x: xp.sin(xp.astype(xp.astype(x, xp.float32), xp.float64)), x, backends=["numpy"])
    said = next(line for line in str(caught.value).splitlines() if "forward mode gives" in line)
    one, two = said.split("forward mode gives ")[1].split(" (rtol")[0].split(" along a direction, reverse mode ")
    assert one != two
    assert "they agree in single precision" in said


SECOND = ("second", "vmap")


def test_a_kink_at_the_arguments_is_called_one() -> None:
    def hinge(x: Any) -> Any:
        n = x.__array_namespace__()
        return n.maximum(x, n.zeros_like(x))

    (second,) = examine(hinge, np.asarray([0.0, 1.0, -1.0]), backends=["numpy"]).failures
    assert second.check == "second"
    assert "there is a kink at the arguments or near, choose others" in second.reason
    # At this kink all central differences are the same, and one of a step at 1 gives neither derivative.
    turned = examine(lambda x: x.__array_namespace__().where(x > 1.0, x, 3.0 - 2.0 * x), np.asarray(1.0), backends=["numpy"], skip=SECOND)
    assert [row.check for row in turned.failures] == ["gradient"]
    assert "there is a kink or a step at the arguments" in turned.failures[0].reason
    curved = custom(lambda x, g: 2.1 * x * g, lambda x, t: 2.1 * x * t)
    for wrong in (FAULTY["the derivative is that of the cube"][1], curved):
        (row,) = examine(wrong, X, backends=["numpy"], skip=("forward", "vmap", "second")).failures
        assert "kink" not in row.reason


def test_a_step_is_called_a_kink() -> None:
    (row,) = examine(lambda x: x.__array_namespace__().floor(x) + 0.0, np.asarray(1.0), backends=["numpy"]).failures
    assert row.check == "gradient"
    assert "there is a kink or a step at the arguments" in row.reason


def test_messages_name_numbers() -> None:
    """An argument without axes, and a derivative that is NaN."""
    wrong = custom(lambda x, g: 3.0 * x * g, lambda x, t: 3.0 * x * t)
    (row,) = examine(wrong, np.asarray(2.0), backends=["numpy"], skip=SECOND).failures
    assert row.reason.startswith("the derivative along the number (times ")
    (row,) = examine(lambda x, y: wrong(x) * y, np.asarray(2.0), X, backends=["numpy"], argnums=0, skip=SECOND).failures
    assert row.reason.startswith("the derivative along the number (times ")
    undefined = custom(lambda x, g: 2.0 * x * g, lambda x, t: t * np.nan)
    (row,) = examine(undefined, np.asarray(2.0), backends=["numpy"], skip=SECOND).failures
    assert row.reason.startswith("forward mode gives nan")
    assert "single precision" not in row.reason


def _cholesky(x: Any) -> Any:
    """Use the lower triangle only, as libraries do: along directions that are not symmetric, differences are not the derivative."""
    return x.__array_namespace__().linalg.cholesky(x)


def _strict(x: Any) -> Any:
    """Refuse matrices that are not symmetric."""
    n = x.__array_namespace__()
    host = x.detach().numpy() if isinstance(x, xp.Tensor) else x
    if host.ndim == 2 and not np.allclose(host, host.T.conj(), rtol=1e-12, atol=0.0):
        raise ValueError("the matrix is not symmetric")
    return n.linalg.inv(x)


def _covariance(size: int, dtype: str = "float64", count: int = 0) -> Any:
    draw = np.random.default_rng(3)
    root = draw.normal(size=(count or 1, size, size)) + (1j * draw.normal(size=(count or 1, size, size)) if dtype == "complex128" else 0.0)
    found = root @ np.conj(np.swapaxes(root, 1, 2)) + size * np.eye(size)
    return found if count else found[0]


COVARIANCES = {
    "few elements": _covariance(2), "many elements": _covariance(5), "a stack": _covariance(2, count=2),
    "Hermitian": _covariance(2, "complex128"), "a larger Hermitian one": _covariance(4, "complex128"),
}  # fmt: skip


@pytest.mark.parametrize("case", COVARIANCES)
def test_a_function_of_covariances_passes_along_symmetric_directions(case: str) -> None:
    covariance = COVARIANCES[case]
    failures = examine(_cholesky, covariance, backends=["numpy"]).failures
    assert {row.check for row in failures} == {"gradient"}
    assert "along symmetric directions it passes: if the function takes symmetric matrices only, pass `symmetric=0`" in failures[0].reason
    for symmetric in (True, 0, -1, (0,)):
        result = check_differentiable(_cholesky, covariance, backends=["numpy", "strict"], symmetric=symmetric)
        assert {row.outcome for row in result.rows} == {"passed"}


def test_a_function_that_refuses_other_matrices_is_checked_along_symmetric_directions() -> None:
    covariance = _covariance(3)
    result = examine(_strict, covariance, backends=["numpy"], vmap=False)
    assert {row.check for row in result.failures} >= {"gradient"}
    assert all("ValueError: the matrix is not symmetric; along symmetric directions it passes" in row.reason for row in result.failures)
    assert check_differentiable(_strict, covariance, backends=["numpy"], vmap=False, symmetric=0).passed


def test_symmetric_directions_still_show_a_wrong_derivative() -> None:
    def off(x: Any) -> Any:
        return _cholesky(x) + 1e-3 * (x.detach() if isinstance(x, xp.Tensor) else x)

    for size in (2, 5):
        result = examine(off, _covariance(size), backends=["numpy"], symmetric=0)
        assert {row.check for row in result.failures} >= {"gradient"}
        unsaid = examine(off, _covariance(size), backends=["numpy"])
        assert not any("symmetric" in row.reason for row in unsaid.failures)  # it would not pass either
    (first,) = examine(off, _covariance(2), backends=["numpy"], symmetric=0, order=1, vmap=False, forward=False).failures
    assert "along elem" in first.reason


def test_other_arguments_keep_their_directions() -> None:
    """A square matrix beside a covariance is varied in all elements, so that a fault in its antisymmetric part is noticed."""

    def faulty(c: Any, m: Any) -> Any:
        half = (m + c.__array_namespace__().matrix_transpose(m)) * 0.5
        rest = m - half
        return _cholesky(c) @ (half + (rest.detach() if isinstance(rest, xp.Tensor) else rest))

    args = _covariance(2), np.asarray([[1.0, 2.0], [2.0, 1.5]])
    result = examine(faulty, *args, backends=["numpy"], symmetric=0, order=1, vmap=False)
    assert {row.argument for row in result.failures} == {1}
    assert examine(faulty, *args, backends=["numpy"], symmetric=True, order=1, vmap=False).passed


@pytest.mark.parametrize(
    ("args", "symmetric", "phrase"),
    [
        ((X,), True, "`symmetric` is True, but no argument to differentiate has a symmetric matrix"),
        ((X,), 0, "`symmetric` names argument 0, which has no symmetric matrix"),
        ((np.eye(2), X), (0, 1), "`symmetric` names argument 1, which has no symmetric matrix"),
        ((np.asarray([[1.0, 2.0], [3.0, 4.0]]),), 0, "`symmetric` names argument 0"),
        ((np.asarray([[1.0, 2j], [2j, 4.0]]),), 0, "`symmetric` names argument 0"),
        ((np.eye(2),), 3, "`symmetric` has 3, but there are 1 arguments"),
        ((np.eye(2),), (), "`symmetric` is empty"),
    ],
)
def test_what_is_not_symmetric_is_refused(args: Any, symmetric: Any, phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        examine(lambda x, *rest: x * 2.0, *args, backends=["numpy"], symmetric=symmetric)


def test_the_same_failure_on_several_backends_is_said_once() -> None:
    with pytest.raises(NotDifferentiable) as caught:
        check_differentiable(FAULTY["it detaches"][1], X, backends=["numpy", "strict"])
    assert str(caught.value).count("but no gradient reaches it") == 1
    assert "\n  numpy, strict, check `graph`, argument 0: " in str(caught.value)


def test_tolerances_can_be_given() -> None:
    off = custom(lambda x, g: 2.0 * x * g * 1.001, right)
    assert examine(off, X, backends=["numpy"], rtol=1e-2).passed
    assert not examine(off, X, backends=["numpy"], rtol=1e-4).passed


def test_a_function_for_tensors_alone_is_compared_with_tensors() -> None:
    def only(x: Any) -> Any:
        assert isinstance(x, xp.Tensor), "only Tensors"
        return xp.sin(x)

    assert {row.outcome for row in check_differentiable(only, X, backends=["numpy", DEVICES[-1]]).rows} == {"passed"}


def test_a_function_that_the_backends_lack_does_not_pass() -> None:
    def lacking(x: Any) -> Any:
        raise xp.CapabilityError("there is no such thing here")

    with pytest.raises(NotDifferentiable, match="it ran on none of the backends"):
        check_differentiable(lacking, X, backends=["numpy"])


def test_the_arrays_of_the_caller_are_never_written_to() -> None:
    x = X.copy()
    examine(FAULTY["it writes into its argument"][1], x, backends=["numpy"])
    assert np.array_equal(x, X)


def test_the_mode_is_as_it_was() -> None:
    with xp.no_grad():
        assert not xp.is_grad_enabled()
        check_differentiable(lambda x: x * x, xp.asarray(X), backends=["numpy"], mutation=True)
        assert not xp.is_grad_enabled()


@pytest.mark.parametrize("device", WRITABLE)
def test_failures_end_with_the_audit(device: str) -> None:
    with pytest.raises(NotDifferentiable) as caught:
        check_differentiable(FAULTY["it detaches one of two"][1], X, Y, backends=[device])
    assert "error: detached" in caught.value.audit
    assert "faults.py" in caught.value.audit  # the line at which the derivative is lost
    assert str(caught.value).endswith(caught.value.audit)


def test_an_audit_that_raises_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xp, "audit", lambda f, *args, **options: 1 // 0)
    with pytest.raises(NotDifferentiable, match=r"check `graph`[\s\S]*\(xpgrad.audit could not report: ZeroDivisionError"):
        check_differentiable(FAULTY["it detaches"][1], X, backends=["numpy"])


def test_what_is_found_can_be_asked_and_sent() -> None:
    function, args = SOUND["of two"]
    result = examine(function, *args, backends=["numpy"], name="product")
    assert result.function == "product"
    assert result.backends == ("numpy",)
    assert result.of(check="gradient", argument=1) == (Row("product", 1, "numpy", "gradient", "passed"),)
    assert [Row(**row) for row in result.to_list()] == list(result.rows)
    assert str(result).count("\n") == len(result.rows) - 1
    error = NotDifferentiable(Result("f", (Row("f", 0, "numpy", "graph", "failed", "why"),)))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.result == error.result


@pytest.mark.parametrize(
    ("function", "name"), [(np.sin, "sin"), (functools.partial(right, X), "right"), (examine, "examine"), (SOUND["linear"][0], "<lambda>")]
)
def test_a_function_is_called_by_its_name(function: Any, name: str) -> None:
    assert _checking.name_of(function) == name


SQUARE = lambda x: x * x  # noqa: E731
BAD: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "no function": ((None, X), {}, TypeError, "the function must be callable, but got NoneType"),
    "no arguments": ((SQUARE,), {}, ValueError, "none of the 0 arguments is an array"),
    "integers": ((SQUARE, np.arange(3)), {}, ValueError, "none of the 1 arguments is an array or a Tensor of floating numbers"),
    "nothing in it": ((SQUARE, np.zeros(0)), {}, ValueError, "none of the 1 arguments"),
    "a number": ((SQUARE, 1.5), {}, ValueError, "name a number's position in `argnums`"),
    "integers by name": ((SQUARE, np.arange(3)), {"argnums": 0}, ValueError, "argument 0 is ndarray .* no floating numbers"),
    "too far": ((SQUARE, X), {"argnums": 1}, ValueError, "`argnums` has 1, but there are 1 arguments"),
    "argnums of a kind": ((SQUARE, X), {"argnums": 0.5}, TypeError, "`argnums` must be an int"),
    "no argnums": ((SQUARE, X), {"argnums": ()}, ValueError, "`argnums` is empty"),
    "an order": ((SQUARE, X), {"order": 3}, ValueError, "`order` must be 1, .* or 2"),
    "an order of a kind": ((SQUARE, X), {"order": "2"}, TypeError, "`order` must be an int"),
    "a flag": ((SQUARE, X), {"vmap": "yes"}, TypeError, "`vmap` must be a bool"),
    "an unknown check": ((SQUARE, X), {"skip": "grad"}, ValueError, "`skip` has no check 'grad'; the checks: runs, "),
    "the first check": ((SQUARE, X), {"skip": ["runs"]}, ValueError, "`skip` has 'runs', which every other check needs"),
    "a tolerance": ((SQUARE, X), {"rtol": -1.0}, ValueError, "`rtol` must not be negative"),
    "a tolerance of a kind": ((SQUARE, X), {"atol": "small"}, TypeError, "`atol` must be"),
    "no backends": ((SQUARE, X), {"backends": []}, ValueError, "`backends` is empty"),
    "a backend of a kind": ((SQUARE, X), {"backends": [1]}, TypeError, "`backends` must be 'all' or names"),
    "backends of a kind": ((SQUARE, X), {"backends": None}, TypeError, "`backends` must be 'all' or names"),
    "an unknown backend": ((SQUARE, X), {"backends": ["nowhere"]}, xp.BackendNotFoundError, "no such backend: 'nowhere'"),
    "known of a kind": ((SQUARE, X), {"known": ["vmap"]}, TypeError, "`known` must be a mapping"),
    "known without a reason": ((SQUARE, X), {"known": {"vmap": ""}}, TypeError, "`known` maps names to reasons"),
    "an unknown known": ((SQUARE, X), {"known": {"numpy:grad": "why"}}, ValueError, "`known` has 'numpy:grad', which is not a check"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    args, options, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        check_differentiable(*args, **{"backends": ["numpy"], **options})


def test_the_examples_say_what_comes_out() -> None:
    found = doctest.testmod(_checking)
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.skipif(importlib.util.find_spec("mlx") is None, reason="mlx is not installed")
def test_a_backend_without_double_precision_is_compared_at_the_points_that_it_has() -> None:
    if "mlx" not in xp.backend_names():
        pytest.skip("the plugin xpgrad-mlx is not installed")
    assert {row.outcome for row in check_differentiable(SOUND["of two"][0], X, Y, backends=["mlx"]).rows} == {"passed"}
    assert not examine(custom(lambda x, g: 2.02 * x * g, right), X, backends=["mlx"]).passed
