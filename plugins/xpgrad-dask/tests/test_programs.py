"""Random programs of views, writes, hooks and `no_grad` blocks give the same results on dask arrays as on NumPy's."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

PROGRAMS = Path(__file__).parents[3] / "tests" / "random_programs" / "test_writes.py"


def load_programs() -> Any:
    """Return the module that generates programs, which is a file of xpgrad's own tests."""
    pytest.importorskip("torch", reason="the generator imports it")
    spec = importlib.util.spec_from_file_location("random_writes_of_xpgrad", PROGRAMS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not PROGRAMS.exists(), reason="only in xpgrad's repository")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(4))
def test_programs_agree_with_numpy(block: int) -> None:
    programs = load_programs()
    with np.errstate(all="ignore"), dask.config.set(scheduler="synchronous"):
        for seed in range(10 * block, 10 * block + 10):
            program = programs.draw(seed, strides=False)
            expected = programs.Machine("xpgrad").run(program)
            programs.check(seed, expected, programs.Machine("xpgrad", "dask").run(program), program)
