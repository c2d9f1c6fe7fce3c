"""Law: an attribute that a Tensor lacks because of its dtype, rank or kind raises AttributeError, so that `hasattr` and inspection work."""

from __future__ import annotations

import inspect
import unittest.mock
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import xpgrad as xp
from xpgrad._basics.dtypes import DTYPES

RANKS = (0, 1, 2, 3)


def _batched(x: Any, look: Callable[[Any], None]) -> None:
    xp.func.vmap(lambda row: (look(row), row)[1])(xp.stack([x, x]))


def _dual(x: Any, look: Callable[[Any], None]) -> None:
    with xp.autograd.forward_ad.dual_level():
        look(xp.autograd.forward_ad.make_dual(x, xp.ones_like(x)))


def _inference(x: Any, look: Callable[[Any], None]) -> None:
    with xp.inference_mode():
        y = x.clone()
        look(y)
    look(y)


#: Kinds of Tensors: each entry makes one from a constant and passes it to a function.
KINDS: dict[str, Callable[[Any, Callable[[Any], None]], None]] = {
    "constant": lambda x, look: look(x),
    "leaf": lambda x, look: look(x.detach().requires_grad_()),
    "non-leaf": lambda x, look: look(x.detach().requires_grad_() * 2),
    "inference": _inference,
    "batched": _batched,
    "dual": _dual,
}
DIFFERENTIABLE = ("leaf", "non-leaf", "dual")


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_can_be_inspected(kind: str, xpgrad_device: str) -> None:
    looked = 0

    def look(x: Any) -> None:
        nonlocal looked
        looked += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about the `.grad` of a non-leaf
            members = dict(inspect.getmembers(x))
        assert {"shape", "dtype", "device", "sum", "requires_grad"} <= set(members)
        assert ("imag" in members) is x.dtype.is_complex
        assert ("T" in members) is (x.ndim == 2)
        assert ("mT" in members) is (x.ndim >= 2)

    for dtype in xp.zeros(0, dtype="float32", device=xpgrad_device).backend.dtypes():
        if not dtype.differentiable and kind in DIFFERENTIABLE:
            continue
        for rank in RANKS:
            KINDS[kind](xp.ones((2,) * rank, dtype=dtype, device=xpgrad_device), look)
    assert looked >= len(RANKS) * 2


LACKING: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("imag", lambda: xp.ones(2), TypeError, "complex"),
    ("T", lambda: xp.ones(2), ValueError, "matrices"),
    ("mT", lambda: xp.ones(2), ValueError, "at least 2 axes"),
    ("grad_dtype", lambda: xp.ones(2, requires_grad=True) * 2, RuntimeError, "leaf"),
]


@pytest.mark.parametrize(("name", "make", "kind", "phrase"), LACKING)
def test_what_is_missing_is_also_the_error_that_is_documented(
    name: str, make: Callable[[], Any], kind: type[Exception], phrase: str
) -> None:
    x = make()
    assert not hasattr(x, name)
    assert getattr(x, name, None) is None
    for wanted in (kind, AttributeError, xp.errors.MissingAttributeError):
        with pytest.raises(wanted, match=phrase):
            getattr(x, name)


def test_the_functions_keep_their_errors() -> None:
    with pytest.raises(TypeError, match="complex") as info:
        xp.imag(xp.ones(2))
    assert not isinstance(info.value, AttributeError)
    with pytest.raises(ValueError, match="at least 2 axes"):
        xp.matrix_transpose(xp.ones(2))


def test_a_mock_has_the_methods_of_a_tensor() -> None:
    mock = unittest.mock.create_autospec(xp.Tensor)
    assert callable(mock.sum)
    with pytest.raises(AttributeError):
        _ = mock.no_such_method


def test_every_dtype_was_looked_at() -> None:
    assert set(xp.zeros(0, dtype="float32").backend.dtypes()) == set(DTYPES.values()) - {xp.bfloat16}
