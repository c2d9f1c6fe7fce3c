"""Replace the comparisons and conversions of another project's tests: what the plugins that differentiate these tests share.

Comparisons are the functions of `numpy.testing`, and those that test modules have under the names in the variable `CONVERSIONS`, by which
they also convert results. In the project itself, conversions stay as they are: there they refuse a Tensor that requires grad.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import xpgrad as xp
from xpgrad.testing._host import np
from xpgrad.testing._suite_plugin import CONVERSIONS

if TYPE_CHECKING:
    import pytest

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


def tensors(value: Any) -> Iterator[Any]:
    """Yield the Tensors in nested lists and tuples."""
    if isinstance(value, xp.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def detach(value: Any) -> Any:
    """Return a value in which each Tensor is detached."""
    if isinstance(value, xp.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(detach, value))
    return value


def replace_comparisons_of_numpy(wrap: Wrapper) -> None:
    """Replace the functions of `numpy.testing`; call it before tests import them."""
    for name in [name for name in vars(np.testing) if name.startswith("assert_")]:
        setattr(np.testing, name, wrap(getattr(np.testing, name)))


def replace_those_of_modules(items: list[pytest.Item], wrap: Wrapper) -> None:
    """Replace the functions of the test modules that convert or compare.

    A module whose tests have them as parameters tests these functions themselves, and keeps them.
    """
    modules: dict[Any, set[int]] = {}
    for item in items:
        parameters = modules.setdefault(getattr(item, "module", None), set())
        parameters.update(id(value) for mark in item.iter_markers("parametrize") for values in mark.args[1:2] for value in values)
    for module, parameters in modules.items():
        for name in os.environ.get(CONVERSIONS, "").split():
            function = getattr(module, name, None)
            if function is not None and id(function) not in parameters:
                setattr(module, name, wrap(function))
