"""Functions of matrices: the exponential, the logarithm, the square root, and the polar decomposition."""

from __future__ import annotations

from typing import Literal, NamedTuple

from xpgrad._basics.arguments import check_choice
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy.linalg import _function_rows as _rows
from xpgrad.scipy.linalg._operands import adjoint, front, matrix


class PolarResult(NamedTuple):
    """The unitary and the positive factor that `polar` returns.

    Parameters
    ----------
    u : Tensor, shape (..., M, N)
        With orthonormal columns, or rows.
    p : Tensor, shape (..., N, N) or (..., M, M)
        Hermitian, without negative eigenvalues.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> found = linalg.polar(xp.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> isinstance(found, linalg.PolarResult)
    True
    >>> xp.round(found.u) + 0.0, xp.round(found.p) + 0.0  # a quarter turn, and stretches
    (tensor([[ 0., -1.],
            [ 1.,  0.]]), tensor([[3., 0.],
            [0., 2.]]))
    """

    u: Tensor
    p: Tensor


@front
def expm(A: Tensor) -> Tensor:
    """Return the exponential of a square matrix (`scipy.linalg.expm`; Al-Mohy and Higham 2009).

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

    Examples
    --------
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
    """Return the principal logarithm of a square matrix (`scipy.linalg.logm`), computed by SciPy.

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a = xp.tensor([[1.0, 3.0], [0.0, 1.0]], requires_grad=True)
    >>> log = linalg.logm(a)
    >>> xp.round(log.detach()) + 0.0
    tensor([[0., 3.],
            [0., 0.]])
    >>> log[0, 1].backward()
    >>> a.grad
    tensor([[-1.5,  1. ],
            [ 3. , -1.5]])
    """
    return _rows._linalg_logm(matrix("logm", "A", A))


@front
def sqrtm(A: Tensor) -> Tensor:
    """Return the principal square root of a square matrix (`scipy.linalg.sqrtm`), computed by SciPy.

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a = xp.tensor([[4.0, 0.0], [0.0, 9.0]], requires_grad=True)
    >>> root = linalg.sqrtm(a)
    >>> root.detach()
    tensor([[2., 0.],
            [0., 3.]])
    >>> root.sum().backward()
    >>> a.grad  # one over the sums of the roots' eigenvalues
    tensor([[0.25  , 0.2   ],
            [0.2   , 0.1667]])
    """
    return _rows._linalg_sqrtm(matrix("sqrtm", "A", A))


@front
def polar(a: Tensor, side: Literal["right", "left"] = "right") -> PolarResult:
    """Return the polar decomposition (`scipy.linalg.polar`): ``a == u @ p``, or ``a == p @ u`` for ``side="left"``.

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a = xp.tensor([[1.0, -1.0], [1.0, 1.0]], requires_grad=True)
    >>> u, p = linalg.polar(a)
    >>> u.detach()  # a turn by 45 degrees
    tensor([[ 0.7071, -0.7071],
            [ 0.7071,  0.7071]])
    >>> u[1, 0].backward()  # the sine of the angle
    >>> a.grad
    tensor([[-0.1768, -0.1768],
            [ 0.1768, -0.1768]])
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
