"""The examples in the docstrings of `xpgrad.scipy` run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import sys

import pytest

import xpgrad.scipy

pytest.importorskip("scipy", reason="it computes what some of them show")


@pytest.mark.parametrize("part", xpgrad.scipy.__all__)
def test_the_examples_say_what_comes_out(part: str) -> None:
    module = importlib.import_module(f"xpgrad.scipy.{part}")
    homes = {sys.modules[x.__module__] for name in module.__all__ if hasattr(x := getattr(module, name), "__module__")}
    found = [doctest.testmod(home) for home in {module, *homes}]
    assert sum(result.failed for result in found) == 0
    assert sum(result.attempted for result in found) > 0 or part in ("special", "stats")
