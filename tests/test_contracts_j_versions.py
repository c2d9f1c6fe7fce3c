"""Contracts of group J that need no rewriting of views: version counters. Each test names its contracts first in its docstring."""

from __future__ import annotations

from typing import Any

import pytest

OVERWRITTEN = "modified by an inplace operation"


def test_counting(lib: Any) -> None:
    """MUT-01, MUT-02."""
    x = lib.const([1.0, 2.0])
    assert x._version == 0
    x.add_(0)
    x[0] = 5.0
    assert x._version == 2
    assert x.detach()._version == 2
    assert x[:1]._version == 2
    assert x.clone()._version == 0


def test_only_saved_values_matter(lib: Any) -> None:
    """MUT-03, MUT-04."""
    x = lib.tensor([1.0, 2.0])
    y = x * 1
    z = (y + 1).sum()
    y.add_(1.0)
    z.backward()
    s = lib.ns.sin(x * 1)
    s.add_(1.0)
    s.sum().backward()
    e = lib.ns.exp(x * 1)
    e2 = e.sum()
    e.add_(1.0)
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        e2.backward()


def test_constants_and_no_grad(lib: Any) -> None:
    """MUT-05, MUT-06."""
    x, c = lib.tensor([1.0, 2.0]), lib.const([3.0, 4.0])
    y = (x * c).sum()
    c.add_(1.0)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.backward()
    y = (x * x).sum()
    with lib.ns.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        y.backward()


def test_increment_version(lib: Any) -> None:
    """MUT-08, MUT-09."""
    x, c = lib.tensor([1.0, 2.0]), lib.const([3.0, 4.0])
    y = (x * c).sum()
    c.data.add_(1.0)
    assert c._version == 0
    lib.graph.increment_version(c)
    lib.graph.increment_version([c, c])
    assert c._version == 3
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        y.backward()
    with lib.ns.inference_mode():
        quiet = c * 2
    lib.graph.increment_version(quiet)


def test_leaves(lib: Any) -> None:
    """MUT-10, MUT-11, MUT-12."""
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[:1].add_(1.0)
    y = x * 3
    y.mul_(2.0)
    y.sum().backward()
    lib.equal(x.grad, [6.0, 6.0])


@pytest.mark.parametrize("write", ["mul_", "div_", "__imul__"])
def test_an_operand_that_is_overwritten_is_saved_as_it_was(ours: Any, write: str) -> None:
    """MUT-26: a detached alias of the destination is an operand too (PyTorch: an error in backward)."""
    values = [1.0, 2.0, 4.0]
    x = ours.tensor(values)
    y = x * 1.0
    getattr(y, write)(y.detach())
    y.sum().backward()
    ours.equal(x.grad, [1 / v for v in values] if write == "div_" else values)
