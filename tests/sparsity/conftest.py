"""Skip the tests of sparse derivatives if SciPy, an extra, is not installed."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy", reason="sparse matrices are SciPy's")
