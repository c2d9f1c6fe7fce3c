"""Law: a missing name that people try raises an error that names an existing one; other missing names give the usual error."""

from __future__ import annotations

import copy
import pickle
import pkgutil
import re

import pytest

import xpgrad as xp
from xpgrad._hints import HINTS

NAMES = re.compile(r"xpgrad((?:\.[a-z_0-9A-Z]+)+)")
METHODS = re.compile(r"\bx\.([a-zA-Z_]+)")


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_names_what_exists(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(xp, name)
    text = str(caught.value)
    assert text.startswith(f"module 'xpgrad' has no attribute {name!r}; use ")
    assert text.endswith(HINTS[name])
    found = NAMES.findall(HINTS[name])
    for path in found:
        pkgutil.resolve_name(f"xpgrad{path}")  # which imports modules
    methods = METHODS.findall(HINTS[name])
    assert all(hasattr(xp.Tensor, method) for method in methods)
    assert found or methods or "`x @ y`" in HINTS[name]


@pytest.mark.parametrize("name", HINTS)
def test_the_name_stays_unknown(name: str) -> None:
    assert not hasattr(xp, name)
    assert name not in dir(xp)
    assert name not in xp.__all__


def test_a_name_without_a_hint_is_reported_plainly() -> None:
    with pytest.raises(AttributeError, match=r"^module 'xpgrad' has no attribute 'sine'$"):
        xp.sine


def test_the_namespace_of_a_device_has_the_hints() -> None:
    other = xp.namespace("numpy+readonly")
    with pytest.raises(AttributeError, match=r"has no attribute 'concatenate'; use `xpgrad.concat`"):
        other.concatenate
    with pytest.raises(AttributeError, match=r"has no attribute 'dot'$"):
        other.linalg.dot
    assert not hasattr(other, "array")


def test_what_asks_for_names_is_not_disturbed() -> None:
    """Copying, pickling and array-api-compat, which ask the module for missing names, still work."""
    x = xp.asarray([1.0, 2.0])
    assert pickle.loads(pickle.dumps(xp.sin)) is xp.sin
    assert pickle.loads(pickle.dumps(x)).tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).tolist() == [1.0, 2.0]
    helpers = pytest.importorskip("array_api_compat")
    assert helpers.array_namespace(x) is xp
    assert helpers.is_array_api_obj(x)
    assert not helpers.is_numpy_namespace(xp)
    assert not helpers.is_torch_namespace(xp)
