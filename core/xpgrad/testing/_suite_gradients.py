"""Make the inputs of another project's tests require grad: a pytest plugin, which `suites` loads with ``--requires-grad``.

Each floating-point Tensor that the tests or the project make with `xpgrad.asarray` requires grad, and may be written into. `numpy.testing`
and the conversions in test modules get detached values. Results without a history are counted, because they may have lost one.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

import xpgrad as xp
from xpgrad.testing._host import np
from xpgrad.testing._suite_plugin import CONVERSIONS


class _Counts:
    """How many floating-point results of the current test were compared, and how many of them have a history."""

    compared = recorded = 0
    inside = 0  # the number of comparisons that are being made


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, xp.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _detach(value: Any) -> Any:
    """Return a value in which each Tensor is detached."""
    if isinstance(value, xp.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(_detach, value))
    return value


def _detached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gets detached arguments, the first of which is a result of a test and is counted."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if not _Counts.inside:
            for tensor in _tensors(args[:1]):
                if tensor.dtype.differentiable:
                    _Counts.compared += 1
                    _Counts.recorded += tensor.requires_grad
        _Counts.inside += 1
        try:
            return function(*map(_detach, args), **{name: _detach(value) for name, value in options.items()})
        finally:
            _Counts.inside -= 1

    return call


def _require_grad(asarray: Callable[..., Any]) -> Callable[..., Any]:
    """Return `asarray` whose results require grad, except in calls by xpgrad itself."""

    @functools.wraps(asarray)
    def call(obj: Any, *args: Any, **options: Any) -> Any:
        out = asarray(obj, *args, **options)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if isinstance(obj, xp.Tensor) or not out.dtype.differentiable or out.requires_grad or caller.partition(".")[0].startswith("xpgrad"):
            return out
        # A clone, because a leaf that requires grad may not be written into.
        return out.detach().requires_grad_().clone()

    return call


def pytest_configure(config: pytest.Config) -> None:
    """Replace the functions before the tests import them."""
    xp.asarray = _require_grad(xp.asarray)
    for name in [name for name in vars(np.testing) if name.startswith("assert_")]:
        setattr(np.testing, name, _detached(getattr(np.testing, name)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the conversions in test modules only: in the project itself they refuse a Tensor that requires grad.

    A module whose tests have them as parameters tests the conversions themselves, and keeps them.
    """
    modules: dict[Any, set[int]] = {}
    for item in items:
        parameters = modules.setdefault(getattr(item, "module", None), set())
        parameters.update(id(value) for mark in item.iter_markers("parametrize") for values in mark.args[1:2] for value in values)
    for module, parameters in modules.items():
        for name in os.environ.get(CONVERSIONS, "").split():
            function = getattr(module, name, None)
            if function is not None and id(function) not in parameters:
                setattr(module, name, _detached(function))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note the counts of a test, which `_suite_plugin` writes into its outcome."""
    _Counts.compared = _Counts.recorded = 0
    try:
        return (yield)
    finally:
        item.user_properties.append(("results", [_Counts.compared, _Counts.recorded]))
