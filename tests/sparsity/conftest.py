"""The tests of sparse derivatives need SciPy, which is an extra."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy", reason="sparse matrices are SciPy's")
