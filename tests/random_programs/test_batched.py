"""Law: random functions that write to views have the same values and gradients under `vmap` as for each element of the batch.

The functions are those of `test_compiled` that grow by lines: views, reshapes, writes, masks, integers and lines under `no_grad`. The batch
lies along a random axis. ``XPGRAD_PROGRAMS=10000`` draws more programs than CI does; a failure prints the program.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.programs import count
from xpgrad import func

pytest.importorskip("torch", reason="the programs are written for PyTorch, too")

from random_programs.test_compiled import DEVICE, flat, from_lines, scalar  # after the check above

COUNT = count(200)
BLOCKS = 4


def results(outs: list[Any], leaves: list[Any]) -> list[np.ndarray]:
    """Return results as arrays, followed by the gradients of a scalar of those that have a history."""
    found = [o.detach().numpy() for o in outs]
    outs, leaves = [o for o in outs if o.requires_grad], [leaf for leaf in leaves if leaf.requires_grad]
    gradients = xp.autograd.grad(scalar(outs), leaves, allow_unused=True, materialize_grads=True) if outs else ()
    return found + [g.detach().numpy() for g in gradients]


def compare(seed: int) -> bool:
    """Compare a function of a batch with the function of its elements; return whether it could be run on the batch."""
    rng = np.random.default_rng(seed)
    function, data, text = from_lines(seed)
    if data[0].size > 100:
        return True
    other = [d * rng.uniform(0.9, 1.1, d.shape).astype(d.dtype) if d.dtype.kind in "fc" else rng.permuted(d) for d in data]
    axis = int(rng.integers(0, data[0].ndim + 1))

    def leaves_of(arrays: list[Any]) -> list[Any]:
        return [xp.tensor(d, device=DEVICE, requires_grad=d.dtype.kind in "fc") for d in arrays]

    elements = []
    try:
        for arrays in (data, other):
            leaves = leaves_of(arrays)
            elements.append(results(flat(function(*leaves)), leaves))
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
        return True  # it fails alone as well
    if not all(np.isfinite(x).all() for found in elements for x in found):
        return True
    batch = leaves_of([np.stack(pair, axis=axis) for pair in zip(data, other, strict=True)])
    try:
        outs = func.vmap(lambda *xs: tuple(flat(function(*xs))), in_dims=axis)(*batch)
    except RuntimeError as refused:
        if "cannot be written in place into a Tensor" in str(refused) or isinstance(refused, xp.errors.CapabilityError):
            return False
        raise
    found = results(list(outs), batch)
    assert len(found) == len(elements[0]) == len(elements[1]), text
    close = 1e-3 if "float32" in text else 1e-7
    for k, x in enumerate(found):
        expected = np.stack([e[k] for e in elements])
        x = x if k < len(outs) else np.moveaxis(x, axis, 0)
        np.testing.assert_allclose(
            x, expected, rtol=close, atol=close * (1.0 + np.abs(expected).max(initial=0.0)), err_msg=f"{k} of\n{text}"
        )
    return True


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_a_batch_is_its_elements(block: int) -> None:
    seeds = range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sum(compare(seed) for seed in seeds) >= 0.9 * len(seeds) - 2
