"""Law: random programs of views, writes, detached aliases and hooks do on JAX's immutable arrays what they do in PyTorch."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("torch", reason="the comparison runs on PyTorch")

COUNT = int(os.environ.get("XPGRAD_PROGRAMS", "300"))
BLOCKS = 6


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_programs_agree_with_pytorch(block: int) -> None:
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS):
            program = draw(seed, strides=False)
            check(seed, Machine("torch").run(program), Machine("xpgrad", "jax").run(program), program)
