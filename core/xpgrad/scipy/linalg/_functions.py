"""Functions of matrices: the exponential, the logarithm, the square root, and the polar decomposition."""

from __future__ import annotations

from typing import Literal, NamedTuple

from xpgrad._basics.arguments import check_choice
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.factorisations import polar_factors
from xpgrad.scipy.linalg import _function_rows as _rows
from xpgrad.scipy.linalg._operands import adjoint, as_matrix, register


class PolarResult(NamedTuple):
    """The result of `polar`.

    Parameters
    ----------
    u : Tensor, shape (..., M, N)
        Unitary factor: its columns are orthonormal, or its rows if there are fewer.
    p : Tensor, shape (..., N, N) or (..., M, M)
        Hermitian positive semidefinite factor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> found = linalg.polar(xp.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> isinstance(found, linalg.PolarResult)
    True
    >>> xp.round(found.u) + 0.0, xp.round(found.p) + 0.0  # a quarter turn, and a stretching
    (tensor([[ 0., -1.],
            [ 1.,  0.]]), tensor([[3., 0.],
            [0., 2.]]))
    """

    u: Tensor
    p: Tensor


@register
def expm(A: Tensor) -> Tensor:
    """Return the matrix exponential (`scipy.linalg.expm`).

    Parameters
    ----------
    A : Tensor, shape (..., N, N)
        Square matrices. Differentiable.

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`; nan for matrices that are not finite.

    Raises
    ------
    TypeError
        `A` is neither a Tensor nor an array.
    ValueError
        `A` is not a square matrix or a stack of them.

    Notes
    -----
    Scaling and squaring with a Padé approximant (Al-Mohy and Higham 2009). Derivatives exist to every order.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> t = xp.tensor(0.5, requires_grad=True)
    >>> rotation = linalg.expm(t * xp.asarray([[0.0, -1.0], [1.0, 0.0]]))  # by half a radian
    >>> rotation[1, 0].backward()  # the derivative is the cosine
    >>> round(t.grad.item(), 6)
    0.877583
    """
    return _rows._linalg_expm(as_matrix("expm", "A", A))


@register
def logm(A: Tensor) -> Tensor:
    """Return the principal logarithm of a square matrix (`scipy.linalg.logm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)
        Square matrices. Differentiable.

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. It is nan for singular matrices, and for real matrices whose logarithm is not real (those with a negative
        eigenvalue). SciPy returns complex numbers for the latter; convert `A` to a complex dtype to get them.

    Raises
    ------
    TypeError
        `A` is neither a Tensor nor an array.
    ValueError
        `A` is not a square matrix or a stack of them.
    CapabilityError
        SciPy is not installed, or cannot reach the memory of the arrays.

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
    return _rows._linalg_logm(as_matrix("logm", "A", A))


@register
def sqrtm(A: Tensor) -> Tensor:
    """Return the principal square root of a square matrix (`scipy.linalg.sqrtm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)
        Square matrices. Differentiable unless singular.

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. It is nan for real matrices whose root is not real (those with a negative eigenvalue). SciPy returns complex
        numbers for these; convert `A` to a complex dtype to get them.

    Raises
    ------
    TypeError
        `A` is neither a Tensor nor an array.
    ValueError
        `A` is not a square matrix or a stack of them.
    CapabilityError
        SciPy is not installed, or cannot reach the memory of the arrays.

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
    >>> a.grad  # 1 over the sums of eigenvalues of the root
    tensor([[0.25  , 0.2   ],
            [0.2   , 0.1667]])
    """
    return _rows._linalg_sqrtm(as_matrix("sqrtm", "A", A))


@register
def polar(a: Tensor, side: Literal["right", "left"] = "right") -> PolarResult:
    """Return the polar decomposition ``a == u @ p``, or ``a == p @ u`` for ``side="left"`` (`scipy.linalg.polar`).

    Parameters
    ----------
    a : Tensor, shape (..., M, N)
        Matrices. Differentiable if they have full rank.
    side : {"right", "left"}
        The side of `u` on which `p` stands.

    Returns
    -------
    u : Tensor, shape (..., M, N)
        Unitary factor: its columns are orthonormal, or its rows if there are fewer.
    p : Tensor, shape (..., N, N), or (..., M, M) for "left"
        Hermitian positive semidefinite factor.

    Raises
    ------
    TypeError
        `a` is neither a Tensor nor an array.
    ValueError
        `a` has fewer than 2 axes, or `side` is another value.

    Notes
    -----
    The derivative divides by sums of singular values, not by differences, so equal singular values do no harm. For a matrix without full
    rank the derivative is nan.

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
    x = as_matrix("polar", "a", a, square=False)
    check_choice(side, ("right", "left"), "scipy.linalg.polar", "side")
    tall = x.shape[-2] >= x.shape[-1]
    if tall:
        u, p = polar_factors(x)
    else:
        u, p = polar_factors(adjoint(x))
        u = adjoint(u)
    if tall is not (side == "right"):
        p = u @ p @ adjoint(u) if tall else adjoint(u) @ p @ u
    return PolarResult(u, p)
