"""The table of functions of matrices: arguments, SciPy's result, and the function to differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as theirs
import scipy.sparse as their_sparse
import scipy.sparse.linalg  # noqa: F401 (loads it)

import xpgrad as xp
from support.central_differences import numbers
from xpgrad.scipy import linalg as ours, sparse as our_sparse

__all__ = ["CASES", "KINDS", "Case", "apply_per_element", "matrices"]

KINDS = (np.float64, np.complex128)


class Case(NamedTuple):
    """A call of a function of matrices.

    Attributes
    ----------
    call : callable
        ``call(module, *arrays)``: with SciPy's module and ours.
    arrays : callable
        ``arrays(dtype)``: the arguments.
    ranks : tuple of int
        The number of axes of an element of each argument; the axes before are stacks.
    name : str
        The function.
    """

    name: str
    call: Callable[..., Any]
    arrays: Callable[..., list[np.ndarray]]
    ranks: tuple[int, ...]


def matrices(shape: tuple[int, ...], dtype: Any, start: float = 1.0, shift: float = 0.0) -> np.ndarray:
    """Return fixed matrices plus a multiple of the identity."""
    return numbers(shape, start, dtype) + (shift * np.eye(shape[-2], shape[-1])).astype(dtype)


def apply_per_element(case: Case, arrays: list[np.ndarray]) -> Any:
    """Return SciPy's result, computed for one element of the stacks at a time; a tuple if it returns several arrays."""
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - r] for x, r in zip(arrays, case.ranks)))
    spread = [np.broadcast_to(x, batch + x.shape[x.ndim - r :]) for x, r in zip(arrays, case.ranks)]
    found = [case.call(theirs, *(x[i] for x in spread)) for i in np.ndindex(batch)]
    if isinstance(found[0], tuple):
        return tuple(np.reshape(parts, batch + np.shape(parts[0])) for parts in zip(*found))
    return np.reshape(found, batch + found[0].shape)


def _one(name: str, shape: tuple[int, ...], shift: float = 0.0, *rest: Any) -> Case:
    return Case(name, lambda m, a: getattr(m, name)(a, *rest), lambda t: [matrices(shape, t, shift=shift)], (2,))


def _triangular(trans: Any, lower: bool, unit: bool) -> Case:
    return Case(
        "solve_triangular", lambda m, a, b: m.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit),
        lambda t: [matrices((3, 3), t, shift=3.0), numbers((2, 3, 2), 2.0, t)], (2, 2),
    )  # fmt: skip


def _banded_case(below: int, above: int, batch: tuple[int, ...], n: int, right: tuple[int, ...], rank: int = 2) -> Case:
    def arrays(dtype: Any) -> list[np.ndarray]:
        ab = numbers((*batch, below + above + 1, n), 1.0, dtype)
        ab[..., above, :] += 3.0
        return [ab, numbers(right, 2.0, dtype)]

    return Case("solve_banded", lambda m, ab, b: m.solve_banded((below, above), ab, b), arrays, (2, rank))


def _lyapunov(name: str, *rest: Any) -> Case:
    def arrays(dtype: Any) -> list[np.ndarray]:
        return [0.4 * matrices((3, 3), dtype), numbers((2, 3, 3), 2.0, dtype)]

    return Case(name, lambda m, a, q: getattr(m, name)(a, q, *rest), arrays, (2, 2))


def _adjoint(m: Any, x: Any) -> Any:
    return np.conj(x).T if m is theirs else xp.conj(x).mT


def _riccati(name: str, general: bool) -> Case:
    """Make a case of a Riccati equation, whose costs are products with their adjoints so that they are Hermitian and positive."""

    def call(m: Any, a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None) -> Any:
        # NB: with `e` and its own scaling, SciPy 1.17's solution does not satisfy the equation.
        return getattr(m, name)(a, b, q @ _adjoint(m, q), r @ _adjoint(m, r), e, s, balanced=False)

    def arrays(dtype: Any) -> list[np.ndarray]:
        square = [matrices((2, 3, 3), dtype, shift=0.5), numbers((3, 2), 2.0, dtype), matrices((3, 3), dtype, 3.0, 2.0)]
        more = [0.1 * matrices((3, 3), dtype, 5.0, 10.0), 0.1 * numbers((3, 2), 6.0, dtype)]
        return [*square, matrices((2, 2), dtype, 4.0, 2.0), *more[: 2 * general]]

    return Case(name, call, arrays, (2,) * (6 if general else 4))


def _cho_solve_case(lower: bool) -> Case:
    return Case(
        "cho_solve", lambda m, a, b: m.cho_solve(m.cho_factor(a @ _adjoint(m, a), lower), b),
        lambda t: [matrices((3, 3), t, shift=2.0), numbers((3, 2), 2.0, t)], (2, 2),
    )  # fmt: skip


def _lstsq_case(shape: tuple[int, ...], right: tuple[int, ...], rank: int) -> Case:
    def call(m: Any, a: Any, b: Any) -> Any:
        x, residues, _, s = m.lstsq(a, b)
        return (x, residues, s) if a.shape[-2] > a.shape[-1] else (x, s)

    return Case("lstsq", call, lambda t: [matrices(shape, t), numbers(right, 2.0, t)], (2, rank))


def _of_low_rank(m: Any, u: Any, v: Any, b: Any) -> Any:
    return m.lstsq(u @ v, b, cond=1e-4)[0]


#: The places of entries of a matrix of shape (4, 4), one of them twice.
_ROW, _COL = np.array([0, 3, 1, 1, 2, 3, 0, 1]), np.array([0, 3, 1, 2, 2, 0, 3, 1])


def _sparse_case(call: Callable[..., Any], *more: tuple[int, ...], shift: float = 3.0) -> Case:
    """Make a case of ``call(module, matrix, *arrays)`` with `scipy.sparse` or ours: the first argument is the entries of the matrix."""

    def whole(m: Any, data: Any, *rest: Any) -> Any:
        m = their_sparse if m is theirs else our_sparse
        return call(m, m.coo_array((data, (_ROW, _COL)), shape=(4, 4)).tocsr(), *rest)

    def arrays(dtype: Any) -> list[np.ndarray]:
        main = np.asarray((_ROW == _COL) * shift, dtype)
        return [numbers(_ROW.shape, 1.0, dtype) + main, *(numbers(shape, 2.0 + k, dtype) for k, shape in enumerate(more))]

    return Case("sparse", whole, arrays, (1, *(len(shape) for shape in more)))


def _whole_structure(m: Any, a: Any, x: Any) -> Any:
    b = (a * 2.0 - a.conj().T / 3.0)[1:, ::-1].multiply(x)
    return (b[:, [3, 0, 0]] + (-b)[:, :3]).toarray(), a.diagonal() * a.trace(), a.sum(axis=0), a.sum(axis=1) * a.sum(), a[1, 1] + a[0, 1]


CASES: dict[str, Case] = {
    "sparse product": _sparse_case(lambda m, a, x: a @ x, (4, 2)),
    "sparse product with a vector": _sparse_case(lambda m, a, x: a @ x, (4,)),
    "sparse product from the left": _sparse_case(lambda m, a, x: x @ a, (2, 4)),
    "sparse product of a vector and a transpose": _sparse_case(lambda m, a, x: x @ a.T, (4,)),
    "sparse product of sparse matrices": _sparse_case(lambda m, a, x: (a @ a.T + m.diags_array(x) @ a).toarray(), (4,)),
    "sparse structure": _sparse_case(_whole_structure, (3, 4)),
    "sparse solution": _sparse_case(lambda m, a, b: m.linalg.spsolve(a, b), (4, 3)),
    "sparse solution of a vector": _sparse_case(lambda m, a, b: m.linalg.factorized(a.tocsc())(b), (4,)),
    "sparse solution of what needs a row exchange": _sparse_case(lambda m, a, b: m.linalg.spsolve(a[[3, 0, 1, 2]], b), (4,)),
    "expm": _one("expm", (2, 3, 3)),
    "logm": _one("logm", (2, 3, 3), 3.0),
    "sqrtm": _one("sqrtm", (2, 3, 3), 3.0),
    **{
        f"polar {shape} {side}": _one("polar", shape, 2.0, side)
        for shape in ((2, 3, 3), (4, 3), (2, 3, 4))
        for side in ("right", "left")
    },
    **{
        f"solve_triangular {trans} {'lower' if lower else 'upper'}{' unit' if unit else ''}": _triangular(trans, lower, unit)
        for trans in (0, "T", "C")
        for lower in (False, True)
        for unit in (False, True)
    },
    "solve_triangular of a vector": Case(
        "solve_triangular", lambda m, a, b: m.solve_triangular(a, b), lambda t: [matrices((2, 3, 3), t, shift=3.0), numbers((3,), 2.0, t)],
        (2, 1),
    ),
    "cho_solve lower": _cho_solve_case(True), "cho_solve upper": _cho_solve_case(False),
    "solve_sylvester": Case(
        "solve_sylvester", lambda m, a, b, q: m.solve_sylvester(a, b, q),
        lambda t: [matrices((3, 3), t, shift=3.0), matrices((2, 2, 2), t, shift=2.0), numbers((3, 2), 3.0, t)], (2, 2, 2),
    ),
    "solve_continuous_lyapunov": Case(
        "solve_continuous_lyapunov", lambda m, a, q: m.solve_continuous_lyapunov(a, q),
        lambda t: [matrices((3, 3), t, shift=3.0), numbers((2, 3, 3), 2.0, t)], (2, 2),
    ),
    "solve_discrete_lyapunov direct": _lyapunov("solve_discrete_lyapunov", "direct"),
    "solve_discrete_lyapunov bilinear": _lyapunov("solve_discrete_lyapunov", "bilinear"),
    **{
        f"solve_{time}_are{' of the general equation' if general else ''}": _riccati(f"solve_{time}_are", general)
        for time in ("continuous", "discrete")
        for general in (False, True)
    },
    "solve_banded": _banded_case(1, 2, (), 5, (5, 2)), "solve_banded in a stack": _banded_case(2, 1, (2,), 4, (4, 1)),
    "solve_banded of a vector": _banded_case(2, 0, (2, 1), 5, (5,), 1),
    "solve_banded beyond the corners": _banded_case(3, 2, (), 2, (2, 2, 2)),
    "lstsq of many rows": _lstsq_case((4, 2), (2, 4, 3), 2), "lstsq of many columns": _lstsq_case((2, 4), (2,), 1),
    "lstsq of square matrices": _lstsq_case((2, 2, 2), (2, 1), 2),
    "lstsq of low rank": Case(
        "lstsq", _of_low_rank, lambda t: [matrices((4, 2), t), matrices((2, 3), t, 2.3), numbers((4,), 0.3, t)], (2, 2, 1)
    ),
    "lstsq without small singular values": Case(
        "lstsq", lambda m, a, b: m.lstsq(a, b, cond=0.3)[0], lambda t: [matrices((4, 3), t), numbers((4, 2), 2.0, t)], (2, 2)
    ),
    "lstsq of many columns without small singular values": Case(
        "lstsq", lambda m, a, b: m.lstsq(_adjoint(m, a), b, cond=0.3)[0], lambda t: [matrices((4, 3), t), numbers((3,), 2.0, t)], (2, 1)
    ),
    "toeplitz": Case("toeplitz", lambda m, c, r: m.toeplitz(c, r), lambda t: [numbers((2, 3), 1.0, t), numbers((4,), 2.0, t)], (1, 1)),
    "toeplitz of a column": Case("toeplitz", lambda m, c: m.toeplitz(c), lambda t: [numbers((3,), 1.0, t)], (1,)),
    "hankel": Case("hankel", lambda m, c, r: m.hankel(c, r), lambda t: [numbers((3,), 1.0, t), numbers((2, 4), 2.0, t)], (1, 1)),
    "hankel of a column": Case("hankel", lambda m, c: m.hankel(c), lambda t: [numbers((3,), 1.0, t)], (1,)),
    "circulant": Case("circulant", lambda m, c: m.circulant(c), lambda t: [numbers((2, 3), 1.0, t)], (1,)),
    "block_diag": Case(
        "block_diag", lambda m, a, b, c: m.block_diag(a, b, c),
        lambda t: [numbers((2, 3, 2), 1.0, t), numbers((4,), 2.0, t), numbers((2, 1, 1), 3.0, t)], (2, 1, 2),
    ),
}  # fmt: skip

assert {c.name for c in CASES.values()} | {"cho_factor", "solve_lyapunov", "LstsqResult", "PolarResult"} == {"sparse", *ours.__all__}
