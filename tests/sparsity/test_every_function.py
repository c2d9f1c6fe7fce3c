"""Law: the sparse derivatives of every function are its dense ones, and no nonzero is outside the pattern."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from sparsity.dense import dense_hessian, dense_jacobian
from xpgrad.func import sparse_hessian, sparse_jacobian
from xpgrad_conformance.facade import open_library
from xpgrad_conformance.functions import all_cases, as_list, cases, scalar_loss

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@functools.cache
def library() -> Any:
    return open_library("numpy")


def real_outputs(case: Any, *xs: Any) -> Any:
    outs = as_list(case.call(library(), *xs))
    return [part for out in outs for part in ((xp.real(out), xp.imag(out)) if out.dtype.is_complex else (out,))]


def agrees(found: Any, pattern: Any, expected: Any) -> None:
    finite = np.isfinite(expected)
    assert not np.any(expected[finite & ~pattern])
    scale = float(np.max(np.abs(expected), initial=1.0, where=finite))
    if finite.all():
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * scale)


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("name", list(all_cases()))
def test_sparse_derivatives_are_the_dense_ones(name: str) -> None:
    case = dict(cases(library(), False)).get(name)
    if case is None:
        pytest.skip("not a function of such numbers")
    xs = [xp.asarray(p) for p in case.arrays(False)]
    every = tuple(range(len(xs)))
    f = functools.partial(real_outputs, case)
    for by, mode in (("columns", xp.func.jacfwd), ("rows", xp.func.jacrev)):
        for pattern in ("global", "local"):
            prepared = sparse_jacobian(f, every, by=by, pattern=pattern).prepare(*xs)
            agrees(prepared(*xs).toarray(), prepared.pattern.toarray(), dense_jacobian(f, *xs, mode=mode))

    def loss(*ys: Any) -> Any:
        return scalar_loss(library(), case.call(library(), *ys))

    expected = dense_hessian(loss, *xs)
    prepared = sparse_hessian(loss, every).prepare(*xs)
    agrees(prepared(*xs).toarray(), prepared.pattern.toarray(), expected)
