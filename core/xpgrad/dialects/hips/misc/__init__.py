"""HIPS autograd's conveniences: nested values as one vector, optimisers, fixed points."""

from __future__ import annotations

from xpgrad.dialects.hips.misc.flatten import flatten as flatten

__all__ = ["flatten"]
