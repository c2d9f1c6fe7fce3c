"""Law: random programs of views, writes, detached aliases and hooks do on JAX's immutable arrays what they do in PyTorch."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("torch", reason="the comparison runs on PyTorch")

COUNT = int(os.environ.get("XPGRAD_PROGRAMS", "300"))
BLOCKS = 6
pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_programs_agree_with_pytorch(block: int) -> None:
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS):
            program = draw(seed, strides=False)
            check(seed, Machine("torch").run(program), Machine("xpgrad", "jax").run(program), program)
