"""Functions of matrices: the exponential, the logarithm, the square root, and the polar decomposition."""

from __future__ import annotations

from typing import Literal, NamedTuple

from xpgrad._basics.arguments import check_choice
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy.linalg import _function_rows as _rows
from xpgrad.scipy.linalg._operands import adjoint, front, matrix


class PolarResult(NamedTuple):
    """The pair that `polar` returns."""

    u: Tensor
    p: Tensor


@front
def expm(A: Tensor) -> Tensor:
    """The exponential of a square matrix (`scipy.linalg.expm`; Al-Mohy and Higham 2009).

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.

    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> t = xp.tensor(0.5, requires_grad=True)
    >>> turn = linalg.expm(t * xp.asarray([[0.0, -1.0], [1.0, 0.0]]))  # by half a radian
    >>> turn[1, 0].backward()  # the cosine
    >>> round(t.grad.item(), 6)
    0.877583
    """
    return _rows._linalg_expm(matrix("expm", "A", A))


@front
def logm(A: Tensor) -> Tensor:
    """The principal logarithm of a square matrix (`scipy.linalg.logm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. For a real matrix with a negative eigenvalue the logarithm is not real: it is nan, where SciPy's is complex;
        give `A` as complex numbers for that. For a singular matrix it is nan.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.
    CapabilityError
        Without SciPy, and where the memory is not the host's.
    """
    return _rows._linalg_logm(matrix("logm", "A", A))


@front
def sqrtm(A: Tensor) -> Tensor:
    """The principal square root of a square matrix (`scipy.linalg.sqrtm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. For a real matrix with a negative eigenvalue the root is not real: it is nan, where SciPy's is complex; give
        `A` as complex numbers for that. A singular matrix may have a root, but that has no derivative, and backward raises.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.
    CapabilityError
        Without SciPy, and where the memory is not the host's.
    """
    return _rows._linalg_sqrtm(matrix("sqrtm", "A", A))


@front
def polar(a: Tensor, side: Literal["right", "left"] = "right") -> PolarResult:
    """The polar decomposition (`scipy.linalg.polar`): ``a == u @ p``, or ``a == p @ u`` for ``side="left"``.

    Parameters
    ----------
    a : Tensor, shape (..., M, N)
    side : {"right", "left"}

    Returns
    -------
    u : Tensor, shape (..., M, N)
        With orthonormal columns, or rows if there are fewer of these.
    p : Tensor, shape (..., N, N), or (..., M, M) for "left"
        Hermitian, without negative eigenvalues.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array of matrices; for another side.

    Notes
    -----
    Differentiable for matrices of full rank, whatever singular values coincide: the derivative divides by sums of singular values, not by
    differences. Where the rank is not full it is nan.
    """
    x = matrix("polar", "a", a, square=False)
    check_choice(side, ("right", "left"), "scipy.linalg.polar", "side")
    tall = x.shape[-2] >= x.shape[-1]
    if tall:
        u, p = _rows._linalg_polar(x)
    else:
        turned, p = _rows._linalg_polar(adjoint(x))
        u = adjoint(turned)
    if tall is not (side == "right"):
        p = u @ p @ adjoint(u) if tall else adjoint(u) @ p @ u
    return PolarResult(u, p)
