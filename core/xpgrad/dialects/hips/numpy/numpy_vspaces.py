"""The spaces of arrays, under their names in HIPS autograd."""

from __future__ import annotations

from xpgrad.dialects.hips._spaces import ArrayVSpace, ComplexArrayVSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]
