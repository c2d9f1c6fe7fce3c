"""Make the inputs of another project's tests require grad: a pytest plugin, which `suites` loads with ``--requires-grad``.

Each floating-point Tensor that the tests or the project make with `xpgrad.asarray` requires grad, and may be written into. `numpy.testing`
and the conversions in test modules get detached values. Results without a history are counted, because they may have lost one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

import xpgrad as xp
from xpgrad.testing._suite_comparisons import detach, replace_comparisons_of_numpy, replace_those_of_modules, tensors


class _Counts:
    """How many floating-point results of the current test were compared, and how many of them have a history."""

    compared = recorded = 0
    inside = 0  # the number of comparisons that are being made


def _detached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gets detached arguments, the first of which is a result of a test and is counted."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if not _Counts.inside:
            for tensor in tensors(args[:1]):
                if tensor.dtype.differentiable:
                    _Counts.compared += 1
                    _Counts.recorded += tensor.requires_grad
        _Counts.inside += 1
        try:
            return function(*map(detach, args), **{name: detach(value) for name, value in options.items()})
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
    replace_comparisons_of_numpy(_detached)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the comparisons and conversions in test modules."""
    replace_those_of_modules(items, _detached)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note the counts of a test, which `_suite_plugin` writes into its outcome."""
    _Counts.compared = _Counts.recorded = 0
    try:
        return (yield)
    finally:
        item.user_properties.append(("results", [_Counts.compared, _Counts.recorded]))
