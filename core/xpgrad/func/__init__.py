"""`xpgrad.func`: transforms of functions, with the names of `torch.func`; they compose in any order."""

from __future__ import annotations

from xpgrad.func._vmap import vmap as vmap

__all__ = ["vmap"]
