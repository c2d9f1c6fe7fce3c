"""Law: the sparse derivatives of random functions are their dense ones, and no nonzero lies outside a traced pattern.

The functions are those of `test_compiled`: expressions with transforms, writes and closures, and graphs with mixed dtypes, views, indices
and checkpoints. For each, the Jacobian is computed by columns and by rows, and the Hessian of a scalar of it, with patterns for all values
and for the given values; entries outside a global pattern are also checked at other values. ``XPGRAD_PROGRAMS=10000`` draws more programs
than CI does; a failure prints the program. Functions that depend on values cannot be traced; they are counted and must stay rare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.programs import count

pytest.importorskip("torch", reason="the programs are written for PyTorch, too")
pytest.importorskip("scipy", reason="sparse matrices are SciPy's")

from random_programs.test_compiled import from_expression, from_graph, scalar  # after the checks above
from sparsity.dense import dense_hessian, dense_jacobian
from xpgrad.func import sparse_hessian, sparse_jacobian

COUNT = count(60)
BLOCKS = 5
LARGE, MANY = 200_000, 300  # The dense reference is a batch: limits of its elements, and of the arguments'.
DEVICE = DEVICES[0]
NOT_COMPARABLE = (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError)


def single(text: str) -> bool:
    """Return whether a program may use single precision."""
    return any(word in text for word in ("float32", "complex64", "'cast'", "'complex'"))


def agree(prepared: Any, xs: list[Any], expected: Any, text: str) -> None:
    """Assert that no nonzero lies outside the pattern, and that the matrix is the dense one if all entries are finite."""
    finite = np.isfinite(expected)
    outside = finite & (expected != 0) & ~prepared.pattern.toarray()
    assert not outside.any(), f"{np.argwhere(outside)[:3]} of {prepared} of\n{text}"
    if finite.all():
        largest = np.max(np.abs(expected), initial=1.0)
        found = prepared(*xs).toarray()
        np.testing.assert_allclose(
            found, expected, rtol=1e-3 if single(text) else 1e-8, atol=(2e-4 if single(text) else 1e-9) * largest, err_msg=text
        )


def compare(make: Callable[[int], Any], seed: int) -> bool:
    """Compare the sparse derivatives of a function with the dense ones; return whether they could be traced."""
    function, data, text = make(seed)
    xs = [xp.asarray(d, device=DEVICE) for d in data]
    every = tuple(range(len(xs)))
    if not xs or any(x.dtype.is_complex or not x.dtype.differentiable for x in xs):
        return True
    moved = [x * 0.75 + 0.125 for x in xs]
    hessian = seed % 2 == 0

    def real(*ys: Any) -> Any:
        out = function(*ys)
        outs = out if isinstance(out, tuple) else (out,)
        return [part for o in outs for part in ((xp.real(o), xp.imag(o)) if o.dtype.is_complex else (o,)) if part.dtype.differentiable]

    def total(*ys: Any) -> Any:
        return scalar(function(*ys))

    try:
        inputs = sum(x.size for x in xs)
        if inputs > MANY or inputs * sum(y.size for y in real(*xs)) > LARGE:
            return True
    except NOT_COMPARABLE:
        return True

    for by, mode in (("columns", xp.func.jacfwd), ("rows", xp.func.jacrev), ("symmetric", None)):
        if by == "symmetric" and not hessian:
            continue

        def dense(at: list[Any], mode: Any = mode) -> Any:
            return dense_hessian(total, *at) if mode is None else dense_jacobian(real, *at, mode=mode)

        try:
            expected, elsewhere = dense(xs), dense(moved)
        except NOT_COMPARABLE:
            continue  # no derivative of this kind, or no result that is differentiable
        for pattern in ("global", "local"):
            make_matrix: Any = (
                sparse_hessian(total, every, pattern=pattern) if mode is None else sparse_jacobian(real, every, pattern=pattern, by=by)
            )
            try:
                prepared = make_matrix.prepare(*xs)
            except xp.CaptureError:
                return False
            except ValueError as exc:
                small = float(np.max(np.abs(expected), initial=0.0)) < 1e-6 and single(text)  # nothing but rounding
                if "not symmetric" in str(exc) and (small or not np.allclose(expected, expected.T, rtol=1e-5)):
                    continue  # a handwritten rule of the program
                raise AssertionError(text) from exc
            agree(prepared, xs, expected, text)
            if pattern == "global":
                agree(prepared, moved, elsewhere, text)
    return True


@pytest.mark.timeout(0 if COUNT > 1000 else 120)
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("make", [from_expression, from_graph], ids=["expressions", "graphs"])
def test_random_functions_have_sparse_derivatives(make: Any, block: int) -> None:
    traced, seeds = 0, range(block, COUNT, BLOCKS)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the programs may overflow
        for seed in seeds:
            traced += compare(make, seed)
    assert traced > 0.9 * len(seeds)
