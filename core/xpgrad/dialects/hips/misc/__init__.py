"""HIPS autograd's conveniences: nested values as one vector, optimisers, fixed points."""

from __future__ import annotations

from xpgrad.dialects.hips.misc.flatten import flatten as flatten
from xpgrad.dialects.hips.misc.tracers import const_graph as const_graph

__all__ = ["const_graph", "flatten"]
