"""Group S: anomaly detection. A backward that fails or returns nan reports where its operation was called in the forward."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract, unchecked

RETURNED_NAN = "returned nan values in its"
NO_FORWARD = "No forward pass information available"


def attempt(work: Callable[[], Any]) -> tuple[BaseException | None, list[Any]]:
    """Return the error that `work` raises, if any, and the UserWarnings that it gives."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        error: BaseException | None = None
        try:
            work()
        except Exception as exc:  # noqa: BLE001 (returned to the caller)
            error = exc
    return error, [w for w in seen if issubclass(w.category, UserWarning)]


def failure_report(seen: list[Any]) -> str:
    """Return the one report of a failure among the warnings."""
    texts = [str(w.message) for w in seen if "Error detected in" in str(w.message)]
    assert len(texts) == 1, f"expected one report of a failure, got {texts}"
    return texts[0]


def a_line_of_the_forward(lib: Any, x: Any) -> Any:
    """Return the sum of an operation whose derivative at 0 is 0/0."""
    return lib.xp.sum(lib.xp.sqrt(x) * 0)


def a_power_of_the_forward(x: Any) -> Any:
    """Return a power whose second derivative at 0 is infinite."""
    return x**1.5


def failing(lib: Any, x: Any) -> Any:
    """Return the result of a custom operation whose backward raises."""

    def fail(ctx: Any, g: Any) -> Any:
        raise LookupError("boo")

    return lib.fn(lambda ctx, x: x * 2, fail, "MyF").apply(x)


def state(lib: Any) -> str:
    """Return the state of anomaly detection: off, report (failures are reported) or nan (nan raises as well)."""
    x = lib.tensor([0.0])
    error, _ = attempt(a_line_of_the_forward(lib, x).backward)
    _, seen = attempt(lib.xp.sum(failing(lib, x)).backward)
    if error is not None:
        assert seen, "nan is looked for, but a failure is not reported"
        return "nan"
    return "report" if seen else "off"


@contract("ANO-01")
def nan_is_an_error(lib: Any) -> None:
    xp, one = lib.xp, lib.constant([1.0])

    def only_second(ctx: Any, g: Any) -> Any:
        return g, g * float("nan")

    custom = lib.fn(lambda ctx, x, y: x * y, only_second, "MyF").apply
    x, c = lib.tensor([0.0]), lib.constant([0.0])
    # The outputs of a node are counted over all operands, whether they require grad or not.
    table: list[tuple[str, Callable[[], Any], str]] = [
        ("sqrt", lambda: xp.sqrt(x) * 0, "Function 'SqrtBackward0' returned nan values in its 0th output."),
        ("first operand", lambda: x / c * 0, "Function 'DivBackward0' returned nan values in its 0th output."),
        ("second operand", lambda: c / x, "Function 'DivBackward0' returned nan values in its 1th output."),
        ("custom", lambda: custom(x, x + 1), "Function 'MyFBackward' returned nan values in its 1th output."),
    ]
    for switch in (lib.ag.detect_anomaly, lambda: lib.ag.detect_anomaly(check_nan=True), lambda: lib.ag.set_detect_anomaly(True)):
        for name, program, said in table:
            with lib.case(name):

                def work(program: Any = program, switch: Any = switch) -> None:
                    with switch():
                        program().backward(one)

                error, _ = attempt(work)
                assert type(error) is RuntimeError, f"expected RuntimeError, got {error!r}"
                assert str(error) == said
                assert x.grad is None
    with lib.ag.set_detect_anomaly(True):  # grad() looks for nan as well, and nodes without nan do not raise
        error, _ = attempt(lambda: lib.grad(a_line_of_the_forward(lib, x), x))
        assert RETURNED_NAN in str(error)
        error, seen = attempt(lambda: xp.sum(xp.sin(x) * xp.exp(x) + x[0] * c).backward())
    assert error is None
    assert seen == []
    lib.equal(x.grad, [1.0])
    error, _ = attempt(lambda: (c / x).backward(one))
    assert error is None


@contract("ANO-02")
def the_forward_call_is_reported(lib: Any) -> None:
    x = lib.tensor([0.0])
    with lib.ag.set_detect_anomaly(True):
        y, z = a_line_of_the_forward(lib, x), lib.xp.sum(failing(lib, x))
    outside, custom = a_line_of_the_forward(lib, x), lib.xp.sum(failing(lib, x))
    for name, root, function, text in [
        ("nan", y, "SqrtBackward0", "lib.xp.sqrt(x) * 0"),
        ("exception", z, "MyFBackward", '"MyF").apply(x)'),
    ]:
        with lib.case(name), lib.ag.set_detect_anomaly(True):
            error, seen = attempt(partial(root.backward, retain_graph=True))
            assert error is not None
            assert all(w.category is UserWarning for w in seen)
            report = failure_report(seen)
            assert f"Error detected in {function}. Traceback of forward call that caused the error" in report
            assert text in report, "the line of the forward call is missing"
            assert "the_forward_call_is_reported" in report, "the caller of the forward is missing"
            last = [line for line in report.splitlines() if line.lstrip().startswith("File ")][-1]
            assert "s_anomaly" in last or lib.oracle, f"the library's own lines are told: {last}"
            assert NO_FORWARD not in report
    for name, root, function in [("nan", outside, "SqrtBackward0"), ("exception", custom, "MyFBackward")]:
        with lib.case(f"{name}, forward outside"), lib.ag.set_detect_anomaly(True):
            error, seen = attempt(partial(root.backward, retain_graph=True))
            assert error is not None
            report = failure_report(seen)
            assert f"Error detected in {function}. {NO_FORWARD}" in report
            assert "Traceback of forward call" not in report
    # A node that a backward made is reported with the forward call of the node whose backward made it.
    x = lib.tensor([0.0, 4.0])
    with lib.ag.set_detect_anomaly(True):
        (g,) = lib.grad(lib.xp.sum(a_power_of_the_forward(x)), x, create_graph=True)
        error, seen = attempt(lib.xp.sum(g * 0.0).backward)
    assert error is not None
    assert "PowBackward0" in failure_report(seen)
    (told,) = (str(w.message) for w in seen if "Error detected in" not in str(w.message))
    assert "PowBackward0" in told
    assert "a_power_of_the_forward" in told
    # Without anomaly detection nothing is reported.
    error, seen = attempt(z.backward)
    assert type(error) is LookupError
    assert seen == []


@contract("ANO-03")
def without_the_check_for_nan(lib: Any) -> None:
    for switch in (lambda: lib.ag.detect_anomaly(check_nan=False), lambda: lib.ag.set_detect_anomaly(True, check_nan=False)):
        x = lib.tensor([0.0])

        def nan(switch: Any = switch, x: Any = x) -> None:
            with switch():
                a_line_of_the_forward(lib, x).backward()

        def exception(switch: Any = switch, x: Any = x) -> None:
            with switch():
                lib.xp.sum(failing(lib, x)).backward()

        error, seen = attempt(nan)
        assert error is None
        assert not any("Error detected" in str(w.message) for w in seen)
        lib.equal(x.grad, [float("nan")])
        error, seen = attempt(exception)
        assert type(error) is LookupError
        assert "Error detected in MyFBackward. Traceback of forward call" in failure_report(seen)


@contract("ANO-04")
def what_is_not_checked(lib: Any) -> None:
    xp, inf, nan = lib.xp, float("inf"), float("nan")
    blind = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: lib.ones(1), "Blind").apply
    with lib.ag.set_detect_anomaly(True):
        x = lib.tensor([0.0])
        error, seen = attempt(lambda: xp.sum(xp.sqrt(x)).backward())
        assert error is None
        assert seen == []
        lib.equal(x.grad, [inf])
        x = lib.tensor([1.0])
        x.register_hook(lambda g: g * nan)
        error, _ = attempt(lambda: xp.sum(x * 2).backward())
        assert error is None
        lib.equal(x.grad, [nan])
        # A nan that existed before is blamed on the first node that passes it on, or on none if no node does.
        x = lib.tensor([1.0])
        error, _ = attempt(lambda: xp.exp(x * 2).backward(lib.constant([nan])))
        assert str(error) == "Function 'ExpBackward0' returned nan values in its 0th output."
        error, _ = attempt(lambda: blind(x).backward(lib.constant([nan])))
        assert error is None
        lib.equal(x.grad, [1.0])
        x = lib.tensor([1.0])
        error, _ = attempt(lambda: x.backward(lib.constant([nan])))
        assert error is None
        lib.equal(x.grad, [nan])


@contract("ANO-05")
def detection_is_announced(lib: Any) -> None:
    announced = "Anomaly Detection has been enabled"
    for arguments in ({}, {"check_nan": False}):
        with lib.warns(UserWarning, announced, times=1), lib.ag.detect_anomaly(**arguments):
            pass
    with lib.silent():
        with lib.ag.set_detect_anomaly(True):
            pass
        with lib.ag.set_detect_anomaly(False):
            pass
        lib.ag.set_detect_anomaly(True)
        lib.ag.set_detect_anomaly(False)


@contract("ANO-06")
def switching(lib: Any) -> None:
    switch = lib.ag.set_detect_anomaly
    assert state(lib) == "off"
    try:
        for arguments, expected in [((True,), "nan"), ((True, True), "nan"), ((True, False), "report"), ((False,), "off")]:
            with lib.case(arguments):
                with switch(*arguments):
                    assert state(lib) == expected
                assert state(lib) == "off"
                switch(*arguments)
                assert state(lib) == expected
                # The former state is restored, whatever it was and however the block ends.
                for inner, within in [((True,), "nan"), ((True, False), "report"), ((False,), "off")]:
                    with switch(*inner):
                        assert state(lib) == within
                    assert state(lib) == expected
                    with lib.raises(KeyError), switch(*inner):
                        raise KeyError
                    assert state(lib) == expected
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with lib.ag.detect_anomaly(check_nan=False):
                        assert state(lib) == "report"
                assert state(lib) == expected
                switch(False)
                assert state(lib) == "off"
        switch(mode=True, check_nan=False)
        assert state(lib) == "report"
    finally:
        switch(False)


@contract("ANO-07")
def nodes_remember_the_forward_call(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    double = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    both = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    programs = {
        "multiply": lambda: x * 2,
        "view": lambda: x[:1],
        "several outputs": lambda: lib.xp.unstack(x)[1],
        "custom": lambda: double.apply(x),
        "custom, several outputs": lambda: both.apply(x)[1],
    }
    for name, program in programs.items():
        with lib.case(name):
            with lib.ag.set_detect_anomaly(True):
                lines = program().grad_fn.metadata["traceback_"]
            assert isinstance(lines, list)
            assert "nodes_remember_the_forward_call" in "".join(lines)
            # The stack ends with the user's code; frames of the library are left out.
            assert lib.oracle or "s_anomaly" in lines[-1]
            assert "traceback_" not in program().grad_fn.metadata


@contract("ANO-08")
def the_hint_of_version_errors(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = x * 1
    z = lib.xp.sum(y * y)
    y.add_(lib.ones(2))
    changed, hint = "modified by an inplace operation", "set_detect_anomaly(True"
    shown = "above shows the operation that failed"
    error, _ = attempt(lambda: z.backward(retain_graph=True))
    assert type(error) is RuntimeError
    assert changed in str(error)
    assert hint in str(error)
    assert shown not in str(error)
    with lib.ag.set_detect_anomaly(True):
        error, _ = attempt(z.backward)
    assert type(error) is RuntimeError
    assert changed in str(error)
    assert hint not in str(error)
    assert shown in str(error)


class _Peculiar(Exception):
    """A user-defined error."""


@contract("ANO-09")
def the_error_is_kept(lib: Any) -> None:
    for kind in (LookupError, _Peculiar, ValueError):
        raised = kind("boo")

        def fail(ctx: Any, g: Any, raised: Any = raised) -> Any:
            raise raised

        x = lib.tensor([1.0])
        with lib.case(kind), lib.ag.set_detect_anomaly(True):
            y = lib.fn(lambda ctx, x: x * 2, fail).apply(x)
            error, _ = attempt(lib.xp.sum(y).backward)
            assert error is raised
            assert "in fail" in "".join(traceback.format_exception(error)), "where it was raised is lost"
            assert x.grad is None
            y = lib.fn(lambda ctx, x: x * 2, fail).apply(x)
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), lib.raises(kind) as caught:
                warnings.simplefilter("error")  # the warning that explains the error must not hide it
                lib.xp.sum(y).backward()
            assert caught[0] is raised


unchecked("ANO-10", "a mere pointer: profilers are documented beside anomaly detection")
