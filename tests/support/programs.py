"""What the generators of random programs share: how many there are, and what the two libraries call differently."""

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

#: What PyTorch says of a graph that is freed (a checkpoint says it differently), and of a defect of its own: zeros without memory.
LAST_WORDS = ("second time", "unpacked once", "ZeroTensors are immutable")


def last(exc: Exception) -> bool:
    """Whether what follows this error is not comparable: which nodes have anything to free is an implementation detail (RET-05)."""
    return any(words in str(exc) for words in LAST_WORDS)


def wide_enough(dtype: str, n: int) -> str:
    """`dtype`, or the next wider one if it does not count to `n`."""
    return dtype.replace("int8", "int16") if n > 127 else dtype


def count(default: int) -> int:
    """How many programs a test draws: ``XPGRAD_PROGRAMS``, or what CI has the time for."""
    return int(os.environ.get("XPGRAD_PROGRAMS", str(default)))


class Library:
    """The calls that differ between PyTorch (`name` is "torch") and xpgrad, on a device of xpgrad's."""

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
        """An array of booleans, or of indices of that dtype: PyTorch, which does not take every one, gets int64."""
        if self.torch:
            return torch.as_tensor(np.asarray(data, "bool" if dtype == "bool" else "int64"))
        return xp.asarray(np.asarray(data, dtype), device=self.device)

    def numpy(self, t: Any) -> Any:
        """A copy of the values; `force` because PyTorch has zeros and conjugates without memory."""
        if t is None:
            return None
        return np.array(t.numpy(force=True) if self.torch else t.detach().numpy())

    def packing(self, how: str | None) -> Any:
        """The context that packs what is saved in it, in one of the `PACKINGS`; None packs nothing."""
        if how is None:
            return nullcontext()
        pack, unpack = {
            "identity": (lambda t: t, lambda t: t),
            "numpy": (self.numpy, lambda a: torch.as_tensor(a) if self.torch else xp.asarray(a, device=self.device)),
            "clone": (lambda t: t.detach().clone(), lambda t: t),
        }[how]
        return self.lib.autograd.graph.saved_tensors_hooks(pack, unpack)

    def checkpoint(self, f: Any, *arguments: Any, early_stop: bool = True) -> Any:
        """`f(*arguments)`, whose inside is computed again in the backward pass."""
        module: Any = torch.utils.checkpoint if self.torch else checkpoints
        with module.set_checkpoint_early_stop(early_stop):
            return module.checkpoint(f, *arguments, use_reentrant=False, preserve_rng_state=False)
