"""Contracts of group S: anomaly detection. Each test names its contracts first in its docstring."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ANNOUNCED = "ignore:Anomaly Detection has been enabled"


def caught(work: Callable[[], Any]) -> tuple[BaseException | None, list[str]]:
    """What `work` raised and warned about."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            work()
        except Exception as exc:  # noqa: BLE001 (handed back)
            return exc, [str(w.message) for w in seen]
    return None, [str(w.message) for w in seen]


def a_line_of_the_forward(lib: Any, x: Any) -> Any:
    return (lib.ns.sqrt(x) * 0).sum()


def test_nan(lib: Any) -> None:
    """ANO-01, ANO-02: the type, and the traceback of the forward call."""
    x = lib.tensor([0.0, 1.0])

    def work() -> None:
        with lib.ag.detect_anomaly():
            a_line_of_the_forward(lib, x).backward()

    exc, messages = caught(work)
    assert type(exc) is RuntimeError
    assert str(exc) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    (told,) = [m for m in messages if m.startswith("Error detected in SqrtBackward0")]
    assert "Traceback of forward call that caused the error" in told
    assert "a_line_of_the_forward" in told
    assert "return (lib.ns.sqrt(x) * 0).sum()" in told
    assert x.grad is None


def test_which_output(lib: Any) -> None:
    """ANO-01: counted among all operands."""
    x = lib.tensor([0.0])
    with lib.ag.set_detect_anomaly(True):
        exc, _ = caught(lambda: (lib.const([0.0]) / x).backward(lib.ones(1)))
    assert "returned nan values in its 1th output" in str(exc)


def test_forward_outside(lib: Any) -> None:
    """ANO-02."""
    y = a_line_of_the_forward(lib, lib.tensor([0.0]))
    with lib.ag.set_detect_anomaly(True):
        exc, messages = caught(y.backward)
    assert type(exc) is RuntimeError
    assert any("Error detected in SqrtBackward0. No forward pass information available" in m for m in messages)


def test_without_the_nan_check(lib: Any) -> None:
    """ANO-03."""
    x = lib.tensor([0.0])

    def work() -> None:
        with lib.ag.detect_anomaly(check_nan=False):
            a_line_of_the_forward(lib, x).backward()

    exc, messages = caught(work)
    assert exc is None
    assert len([m for m in messages if m.startswith("Error detected")]) == 0
    assert np.isnan(lib.value(x.grad)).all()


def test_what_is_not_checked(lib: Any) -> None:
    """ANO-04: infinities, and what a hook on a leaf makes; a nan seed is blamed on the first node."""
    with lib.ag.set_detect_anomaly(True), np.errstate(all="ignore"):
        x = lib.tensor([0.0])
        lib.ns.sqrt(x).sum().backward()
        assert np.isinf(lib.value(x.grad)).all()
        x = lib.tensor([1.0])
        x.register_hook(lambda g: g * float("nan"))
        (x * 2).sum().backward()
        assert np.isnan(lib.value(x.grad)).all()
        exc, _ = caught(lambda: (x * 2).backward(lib.const([float("nan")])))
        assert "Function 'MulBackward0' returned nan values" in str(exc)


def test_announcement(lib: Any) -> None:
    """ANO-05, ANO-06: only `detect_anomaly` warns; both restore the former state."""
    from_state = lib.ag.anomaly_mode

    def enabled() -> bool:
        return lib.ns.is_anomaly_enabled() if lib.torch else from_state.is_anomaly_enabled()

    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), lib.ag.detect_anomaly():  # noqa: PT031
        assert enabled()
        with lib.ag.set_detect_anomaly(False):
            assert not enabled()
        assert enabled()
    assert not enabled()
    lib.ag.set_detect_anomaly(True)
    assert enabled()
    lib.ag.set_detect_anomaly(False)
    assert not enabled()


def test_check_nan_is_restored(ours: Any) -> None:
    """ANO-06."""
    mode = ours.ag.anomaly_mode
    with pytest.raises(KeyError), mode.set_detect_anomaly(True, check_nan=False):  # noqa: PT012
        assert not mode.is_anomaly_check_nan_enabled()
        raise KeyError
    assert mode.is_anomaly_check_nan_enabled()


def test_metadata(lib: Any) -> None:
    """ANO-07: also on the nodes of operations with several outputs, and of custom Functions."""
    x = lib.tensor([1.0, 2.0])
    with lib.ag.set_detect_anomaly(True):
        made = [x * 2, x[:1], lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g).apply(x)]
        with lib.ns.no_grad():
            quiet = x * 2
    assert quiet.grad_fn is None
    for t in made:
        assert isinstance(t.grad_fn.metadata["traceback_"], list)
        assert "test_metadata" in "".join(t.grad_fn.metadata["traceback_"])
    assert "traceback_" not in (x * 2).grad_fn.metadata


def test_version_errors(lib: Any) -> None:
    """ANO-08."""
    x = lib.tensor([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    y.add_(1.0)
    exc, _ = caught(lambda: z.backward(retain_graph=True))
    assert "set_detect_anomaly(True" in str(exc)
    with lib.ag.set_detect_anomaly(True):
        exc, _ = caught(z.backward)
    assert "modified by an inplace operation" in str(exc)
    assert "set_detect_anomaly(True" not in str(exc)


def test_exceptions_keep_their_type(lib: Any) -> None:
    """ANO-02, ANO-09."""

    def fail(ctx: Any, g: Any) -> Any:
        raise LookupError("boo")

    x = lib.tensor([1.0])
    with lib.ag.set_detect_anomaly(True):
        y = lib.fn(lambda ctx, x: x * 2, fail, "MyF").apply(x)
        exc, messages = caught(y.sum().backward)
    assert type(exc) is LookupError
    assert any("Error detected in MyFBackward. Traceback of forward call" in m for m in messages)
    assert "fail" in "".join(traceback.format_exception(exc))


def test_second_order(lib: Any) -> None:
    """ANO-01, ANO-02 with create_graph: what the backward made is blamed, too."""
    x = lib.tensor([0.0])
    with lib.ag.set_detect_anomaly(True), np.errstate(all="ignore"):
        (g,) = lib.grad(x**1.5, x, lib.ones(1), create_graph=True)
        exc, messages = caught(lambda: lib.grad((g * lib.ns.sqrt(g)).sum() * 0, x))
    assert type(exc) is RuntimeError
    assert any("Error detected in" in m for m in messages)


def test_a_correct_pass(lib: Any) -> None:
    """ANO-01: nothing is reported, and the gradients are the same, with constants, views and several outputs."""
    x = lib.tensor([0.5, 1.5])
    with lib.ag.set_detect_anomaly(True):
        y = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x[:1])
        exc, messages = caught(lambda: (y[0] * y[1] * lib.const([2.0]) + 1).sum().backward())
    assert exc is None
    assert messages == []
    lib.equal(x.grad, [12.0, 0.0])
