"""Law: programs of views and writes give the same values, gradients and errors on queued work as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.filterwarnings("ignore")
def test_random_programs_of_writes_agree_with_numpy() -> None:
    pytest.importorskip("torch", reason="the programs are those of the comparison with PyTorch")
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(150):
            program = draw(seed)
            check(seed, Machine("xpgrad").run(program), Machine("xpgrad", "simstream").run(program), program)
