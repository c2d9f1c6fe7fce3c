"""Helpers that the generators of random programs share: the number of programs, and the calls that differ between the two libraries."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import numpy as np

import xpgrad as xp
import xpgrad.autograd.forward_ad
from xpgrad.utils import checkpoint as checkpoints

try:
    import torch
    import torch.utils.checkpoint
except ImportError:
    torch = None  # type: ignore[assignment]

INDICES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PACKINGS = ("identity", "numpy", "clone")

#: Parts of PyTorch's messages about a freed graph (a checkpoint's differs), and about a defect of PyTorch: zeros without memory.
LAST_WORDS = ("second time", "unpacked once", "ZeroTensors are immutable")


def last(exc: Exception) -> bool:
    """Return whether the results after this error cannot be compared: which nodes have anything to free is a detail (RET-05)."""
    return any(words in str(exc) for words in LAST_WORDS)


def wide_enough(dtype: str, n: int) -> str:
    """Return `dtype`, or int16 (uint16) instead of int8 (uint8) if `n` exceeds 127."""
    return dtype.replace("int8", "int16") if n > 127 else dtype


def count(default: int) -> int:
    """Return the number of programs that a test draws: ``XPGRAD_PROGRAMS``, or `default`."""
    return int(os.environ.get("XPGRAD_PROGRAMS", str(default)))


class Library:
    """The calls that differ between PyTorch (`name` is "torch") and xpgrad on a given device."""

    def __init__(self, name: str, device: str | None = None) -> None:
        self.torch = name == "torch"
        self.device = device
        self.lib: Any = torch if self.torch else xp
        self.grad: Any = self.lib.autograd.grad
        self.backward: Any = self.lib.autograd.backward
        self.forward: Any = self.lib.autograd.forward_ad

    def tensor(self, data: np.ndarray, requires_grad: bool = False) -> Any:
        if self.torch:
            return torch.tensor(data, requires_grad=requires_grad)
        return xp.tensor(data, requires_grad=requires_grad, device=self.device)

    def index(self, data: Any, dtype: str = "bool") -> Any:
        """Return an array of booleans or of indices; PyTorch gets int64 for every integer dtype because it does not accept all of them."""
        if self.torch:
            return torch.as_tensor(np.asarray(data, "bool" if dtype == "bool" else "int64"))
        return xp.asarray(np.asarray(data, dtype), device=self.device)

    def numpy(self, t: Any) -> Any:
        """Return a copy of the values; `force` because PyTorch has zeros and conjugates without memory."""
        if t is None:
            return None
        return np.array(t.numpy(force=True) if self.torch else t.detach().numpy())

    def packing(self, how: str | None) -> Any:
        """Return a context that packs saved values in one of the ways of `PACKINGS`; None packs nothing."""
        if how is None:
            return nullcontext()
        pack, unpack = {
            "identity": (lambda t: t, lambda t: t),
            "numpy": (self.numpy, lambda a: torch.as_tensor(a) if self.torch else xp.asarray(a, device=self.device)),
            "clone": (lambda t: t.detach().clone(), lambda t: t),
        }[how]
        return self.lib.autograd.graph.saved_tensors_hooks(pack, unpack)

    def checkpoint(self, f: Any, *arguments: Any, early_stop: bool = True) -> Any:
        """Return `f(*arguments)`, run under a checkpoint."""
        module: Any = torch.utils.checkpoint if self.torch else checkpoints
        with module.set_checkpoint_early_stop(early_stop):
            return module.checkpoint(f, *arguments, use_reentrant=False, preserve_rng_state=False)
