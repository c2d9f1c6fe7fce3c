"""What the contract tests share: one facade, `lib`, through which the same test body runs on xpgrad and on real PyTorch.

A test that takes `lib` runs on both; one that takes `ours` checks what only xpgrad promises (a deviation says why in its docstring).
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# NB: pytest's importlib mode puts no directory on the path; the modules beside the tests that are no tests are found here.
sys.path.append(str(Path(__file__).parent))

importlib.import_module("strict_backend").register()
importlib.import_module("frozen_backend").register()


class Library:
    """The few names that differ between the two libraries."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.torch = name == "torch"
        self.ns: Any = pytest.importorskip("torch", reason="the oracle") if self.torch else importlib.import_module("xpgrad")
        self.ag = self.ns.autograd
        self.graph = importlib.import_module(f"{name}.autograd.graph")
        self.Function = self.ag.Function
        self.backward = self.ag.backward
        self.grad = self.ag.grad

    def tensor(self, data: Any, rg: bool = True, dtype: str = "float64") -> Any:
        """A leaf."""
        # A NumPy array would bring its own device; the default one is what is tested.
        device = "cpu" if self.torch else self.ns.get_default_device()
        return self.ns.tensor(data, dtype=getattr(self.ns, dtype), requires_grad=rg, device=device)

    def needs_device(self, name: str) -> None:
        """Skip a test that is written for one default device."""
        if not self.torch and str(self.ns.get_default_device()) != name:
            pytest.skip(f"written for the default device {name!r}")

    def const(self, data: Any, dtype: str = "float64") -> Any:
        """A constant."""
        return self.tensor(data, False, dtype)

    def ones(self, *shape: int, rg: bool = False) -> Any:
        return self.tensor(np.ones(shape), rg)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.to(dtype=getattr(self.ns, dtype))

    def expand(self, x: Any, *shape: int) -> Any:
        return x.expand(*shape)

    def value(self, x: Any) -> Any:
        """The values, on the host."""
        x = x.detach()
        return np.asarray((x.resolve_conj() if self.torch else x).numpy())

    def equal(self, x: Any, expected: Any) -> None:
        """Assert values (and the shape) up to rounding."""
        np.testing.assert_allclose(self.value(x), np.asarray(expected), rtol=1e-6, atol=1e-12, strict=False)
        assert tuple(x.shape) == np.shape(expected)

    def memory(self, x: Any, y: Any) -> bool:
        """Whether two Tensors share memory."""
        return np.shares_memory(self.value(x), self.value(y))

    def fn(self, forward: Any, backward: Any, name: str = "F") -> Any:
        """A custom Function."""
        return type(name, (self.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def task_id(self) -> int:
        return self.ns._C._current_graph_task_id() if self.torch else self.graph.current_graph_task_id()

    def queue_callback(self, fn: Any) -> None:
        if self.torch:
            self.ag.Variable._execution_engine.queue_callback(fn)
        else:
            self.graph.queue_callback(fn)


@pytest.fixture(params=["xpgrad", "torch"])
def lib(request: Any) -> Library:
    """xpgrad, then the oracle."""
    return Library(request.param)


@pytest.fixture
def ours() -> Library:
    """xpgrad only."""
    return Library("xpgrad")


#: The devices that every rule is tested on; ``XPGRAD_TEST_DEVICES=jax,torch`` tests on others.
DEVICES = os.environ.get("XPGRAD_TEST_DEVICES", "numpy,numpy+readonly,strict").split(",")


@pytest.fixture(scope="session", params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Every device that a rule must run on: the fast one, one whose memory is frozen, one that has nothing but the standard, and more."""
    xpgrad = importlib.import_module("xpgrad")
    return str(xpgrad.zeros(0, dtype=xpgrad.float32, device=str(request.param)).device)
