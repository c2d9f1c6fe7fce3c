"""Contracts of group I: grad modes and inference mode. Each test names its contracts first in its docstring."""

from __future__ import annotations

import threading
from typing import Any

import pytest


def test_no_grad(lib: Any) -> None:
    """MOD-01."""
    x = lib.tensor(3.0)
    with lib.ns.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf
    (y * x).backward()
    lib.equal(x.grad, 6.0)


def test_constructors(lib: Any) -> None:
    """MOD-02."""
    with lib.ns.no_grad():
        assert lib.tensor(1.0).requires_grad
        assert lib.ns.ones((2,), requires_grad=True).requires_grad


def test_nesting(lib: Any) -> None:
    """MOD-03, MOD-07."""
    x = lib.tensor(3.0)
    with pytest.raises(KeyError), lib.ns.no_grad():  # noqa: PT012 (what is left by the exception is the test)
        with lib.ns.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        raise KeyError
    assert lib.ns.is_grad_enabled()


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad", "inference_mode"])
@pytest.mark.parametrize("parentheses", [False, True])
def test_decorators(lib: Any, mode: str, parentheses: bool) -> None:
    """MOD-04, INF-11."""
    switch = getattr(lib.ns, mode)

    @(switch() if parentheses else switch)
    def enabled(depth: int = 2) -> list[bool]:
        """What it says."""
        return [lib.ns.is_grad_enabled(), *(enabled(depth - 1) if depth else [])]

    assert enabled.__doc__ == "What it says."
    with lib.ns.set_grad_enabled(mode != "enable_grad"):
        assert enabled() == [mode == "enable_grad"] * 3
    assert lib.ns.is_grad_enabled()


def test_generators(lib: Any) -> None:
    """MOD-05."""

    @lib.ns.no_grad()
    def steps() -> Any:
        got = yield lib.ns.is_grad_enabled()
        try:
            yield got, lib.ns.is_grad_enabled()
        except KeyError:
            yield "caught", lib.ns.is_grad_enabled()
        return "done"

    generator = steps()
    assert next(generator) is False
    assert lib.ns.is_grad_enabled()
    assert generator.send(5) == (5, False)
    assert generator.throw(KeyError()) == ("caught", False)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "done"
    assert lib.ns.is_grad_enabled()


def test_set_grad_enabled(lib: Any) -> None:
    """MOD-06."""
    switch = lib.ns.set_grad_enabled
    with switch(False):
        assert not lib.ns.is_grad_enabled()
    assert lib.ns.is_grad_enabled()
    switch(False)
    assert not lib.ns.is_grad_enabled()
    switch(True)
    assert lib.ns.is_grad_enabled()

    @switch(False)
    def enabled() -> bool:
        return lib.ns.is_grad_enabled()

    assert lib.ns.is_grad_enabled()
    assert not enabled()
    assert lib.ns.is_grad_enabled()


def test_threads(lib: Any) -> None:
    """MOD-08, THR-10."""
    seen = []
    with lib.ns.no_grad():
        thread = threading.Thread(target=lambda: seen.append(lib.ns.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_in_place_under_no_grad(lib: Any) -> None:
    """MOD-09, MOD-12."""
    x = lib.tensor(3.0)
    y = x * 2
    node = y.grad_fn
    with lib.ns.no_grad():
        x.sub_(1.0)
        y.mul_(10.0)
    assert x.is_leaf
    assert x.requires_grad
    assert x._version == 1
    assert y.grad_fn is node
    y.backward()
    lib.equal(x.grad, 2.0)
    lib.equal(y, 60.0)


def test_view_under_no_grad(ours: Any) -> None:
    """MOD-13, a deviation by policy: the documented rule, constant."""
    x = ours.tensor([1.0, 2.0])
    with ours.ns.no_grad():
        view = x[:1]
    assert not view.requires_grad


def test_inference_tensors(lib: Any) -> None:
    """INF-01, INF-02."""
    x = lib.tensor(3.0)
    with lib.ns.inference_mode():
        assert lib.ns.is_inference_mode_enabled()
        y = x * 2
    assert y.is_inference()
    assert not y.requires_grad
    assert not x.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        y._version


def test_saving_inference_tensors(lib: Any) -> None:
    """INF-03, INF-04."""
    x = lib.tensor(3.0)
    with lib.ns.inference_mode():
        y = x * 2
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    (x + y).backward()
    lib.equal(x.grad, 1.0)

    def save(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        return x * 2

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        lib.fn(save, lambda ctx, g: (g, None)).apply(x, y)


def test_writing_to_inference_tensors(lib: Any) -> None:
    """INF-05, INF-06, INF-08."""
    x = lib.const(3.0)
    with lib.ns.inference_mode():
        y = x * 2
        y.add_(1.0)
        x.add_(1.0)
        assert lib.tensor(1.0).requires_grad
    assert x._version == 1
    assert not x.is_inference()
    for mode in (lib.ns.enable_grad, lib.ns.no_grad):
        with mode(), pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            y.add_(1.0)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        y.requires_grad_()


def test_derived_from_inference_tensors(lib: Any) -> None:
    """INF-07."""
    with lib.ns.inference_mode():
        y = lib.const([1.0, 2.0]) * 2
    assert not y.clone().is_inference()
    assert y[:1].is_inference()
    assert not (y * 2).is_inference()


def test_nesting_inference(lib: Any) -> None:
    """INF-09."""
    x = lib.tensor(3.0)
    with lib.ns.inference_mode():
        with lib.ns.enable_grad():
            assert not (x * 2).requires_grad
        with lib.ns.inference_mode(False):
            y = x * 2
            assert y.requires_grad
            assert not y.is_inference()
        assert lib.ns.is_inference_mode_enabled()


def test_backward_inside_inference(lib: Any) -> None:
    """INF-10."""
    x = lib.tensor(3.0)
    y = x * x
    with lib.ns.inference_mode():
        y.backward()
    lib.equal(x.grad, 6.0)
    assert x.grad.is_inference()
