"""A pytest plugin: with ``pytest -p xpgrad_hips``, tests that import HIPS autograd run on xpgrad's dialect of it."""

from __future__ import annotations

from xpgrad.dialects.hips import install

install()
