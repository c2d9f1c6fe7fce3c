"""Multivariate distributions with SciPy's names, arguments and shapes: the normal and the Dirichlet distribution.

They are composed of the Cholesky decomposition and of special functions, which supply the derivatives of every order and mode.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import finfo
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import cholesky
from xpgrad.rules.creation import eye
from xpgrad.scipy import special
from xpgrad.scipy._operands import arrays_of
from xpgrad.scipy.linalg import solve_triangular

_document_normal = shares(
    parameters="""\
x : Tensor or array, shape (..., d)
    Vectors along the last axis; for ``d == 1`` also numbers. Real. Differentiable.
mean : Tensor or array, shape (d,), optional
    The mean; zeros by default. Differentiable.
cov : Tensor, array or number, shape (d, d), (d,) or ()
    The covariance, positive definite; a vector is its diagonal, a number is a multiple of the identity. Differentiable.
allow_singular : bool, default: False
    If True, the result is nan where SciPy leaves out directions, because the covariance is nearly singular in them.""",
    returns="""\
Tensor, shape (...)
    Floating-point.""",
    raises="""\
TypeError
    An argument is not an array of real numbers.
ValueError
    The shapes do not fit.
LinAlgError
    The covariance is not positive definite; the error is the library's own.""",
)


class MultivariateNormal:
    """The multivariate normal distribution, with vectors along the last axis of `x`; all arguments are differentiable.

    The covariance must be positive definite; its symmetric part is used. A vector is its diagonal, and a number a multiple of the identity.

    Notes
    -----
    A singular covariance raises the error of `xpgrad.linalg.cholesky`, also with `allow_singular`: the density has no derivative by such a
    covariance. The other names and shapes are those of `scipy.stats.multivariate_normal`.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.multivariate_normal, isinstance(stats.multivariate_normal, stats.MultivariateNormal)
    (xpgrad.scipy.stats.multivariate_normal, True)
    """

    def __repr__(self) -> str:
        return "xpgrad.scipy.stats.multivariate_normal"

    @_document_normal
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Tensor:
        """Return the logarithm of the density.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> mean = xp.tensor([0.0, 0.0], requires_grad=True)
        >>> cov = xp.asarray([[2.0, 0.0], [0.0, 1.0]])
        >>> stats.multivariate_normal.logpdf(xp.asarray([1.0, 3.0]), mean, cov).backward()
        >>> mean.grad  # solve(cov, x - mean)
        tensor([0.5, 3. ])
        """
        x, mean, cov, dim = _normal("logpdf", x, mean, cov)
        factor = _factor(cov)
        # There are usually more vectors than dimensions: inverting the factor once leaves a single matrix product.
        inverse = solve_triangular(factor, eye(dim, dtype=factor.dtype, device=factor.device), lower=True)
        z = (x - mean) @ inverse.mT
        out = (z * z).sum(-1) * -0.5 - (_log_volume(factor) + dim * (math.log(2 * math.pi) / 2))
        return out * _mark_singular(cov) if allow_singular else out

    @_document_normal
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Tensor:
        """Return the density.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> x = xp.asarray([[0.0, 0.0], [1.0, 0.0]])
        >>> stats.multivariate_normal.pdf(x, xp.zeros(2), xp.asarray([1.0, 4.0]))
        tensor([0.0796, 0.0483])
        """
        return xp.exp(self.logpdf(x, mean, cov, allow_singular))

    @_document_normal
    def entropy(self, mean: Any = None, cov: Any = 1.0) -> Tensor:
        """Return the differential entropy, which does not depend on the mean.

        Parameters
        ----------
        mean : Tensor or array, shape (d,), optional
            The mean; only its length is used.

        Returns
        -------
        Tensor, shape ()
            Floating-point, in nats.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> cov = xp.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
        >>> stats.multivariate_normal.entropy(cov=cov).backward()
        >>> cov.grad  # half the inverse
        tensor([[0.25 , 0.   ],
                [0.   , 0.125]])
        """
        _, _, cov, dim = _normal("entropy", None, mean, cov)
        return _log_volume(_factor(cov)) + dim * (1 + math.log(2 * math.pi)) / 2


def _factor(cov: Any) -> Any:
    """Return the Cholesky factor of the symmetric part."""
    return cholesky((cov + cov.mT) * 0.5)


def _mark_singular(cov: Any) -> Any:
    """Return nan if SciPy counts an eigenvalue of the covariance as 0, else 1."""
    values = xp.linalg.eigvalsh((cov + cov.mT).detach())
    precision = finfo(values.dtype)
    least = (1e3 if precision.bits == 32 else 1e6) * precision.eps * xp.max(xp.abs(values))
    return xp.where(xp.min(values) > least, 1.0, math.nan)


def _log_volume(factor: Any) -> Any:
    """Return half the logarithm of the determinant of the covariance."""
    return xp.log(xp.linalg.diagonal(factor)).sum()


def _normal(kind: str, x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any, int]:
    """Return `x` as vectors, `mean`, `cov` as a matrix, and the dimension, determined as SciPy does."""
    title = f"multivariate_normal.{kind}"
    x, mean, cov = arrays_of(f"scipy.stats.{title}", real=True, x=x, mean=0.0 if mean is None else mean, cov=cov)
    dim = mean.shape[0] if mean.ndim == 1 else cov.shape[0] if cov.ndim else 1
    if mean.ndim > 1 or (mean.ndim == 1 and mean.shape != (dim,)) or cov.shape not in ((), (dim,), (dim, dim)):
        msg = f"scipy.stats.{title}: `mean` must have shape (d,) and `cov` (d, d), (d,) or (), but they have {mean.shape} and {cov.shape}"
        raise ValueError(msg)
    if cov.ndim < 2:
        cov = cov * eye(dim, dtype=cov.dtype, device=cov.device)
    if x is not None:
        if dim == 1 and x.ndim < 2:
            x = x.reshape((*x.shape, 1))
        if not x.ndim or x.shape[-1] != dim:
            msg = f"scipy.stats.{title}: the last axis of `x` must have length {dim}, as `mean` and `cov`, but `x` has shape {x.shape}"
            raise ValueError(msg)
    return x, mean, cov, dim


_document_dirichlet = shares(
    parameters="""\
x : Tensor or array, shape (d, ...) or (d - 1, ...)
    Probabilities along the first axis; a missing last one is 1 minus the sum of the others. Differentiable.
alpha : Tensor or array, shape (d,)
    Concentrations, above 0; otherwise the result is nan. Differentiable.""",
    returns="""\
Tensor, shape (...)
    Floating-point.""",
    raises="""\
TypeError
    An argument is not an array of real numbers.
ValueError
    The shapes do not fit.""",
)


class Dirichlet:
    """The Dirichlet distribution, with probabilities along the *first* axis of `x`, as in SciPy; all arguments are differentiable.

    If `x` is not a vector of probabilities, or `alpha` is not above 0, values and derivatives are nan.

    Notes
    -----
    SciPy's `scipy.stats.dirichlet` raises ValueError instead of returning nan. Here values may be unknown when the function is traced.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.dirichlet, isinstance(stats.dirichlet, stats.Dirichlet)
    (xpgrad.scipy.stats.dirichlet, True)
    """

    def __repr__(self) -> str:
        return "xpgrad.scipy.stats.dirichlet"

    @_document_dirichlet
    def logpdf(self, x: Any, alpha: Any) -> Tensor:
        """Return the logarithm of the density.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> alpha = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> stats.dirichlet.logpdf(xp.asarray([0.25, 0.25, 0.5]), alpha).backward()
        >>> alpha.grad  # log(x) - digamma(alpha) + digamma(sum(alpha))
        tensor([ 0.897 , -0.103 ,  0.0902])
        """
        x, alpha = arrays_of("scipy.stats.dirichlet.logpdf", real=True, x=x, alpha=alpha)
        d = _dimension("logpdf", alpha)
        if not x.ndim or x.shape[0] not in (d, d - 1):
            msg = f"scipy.stats.dirichlet.logpdf: the first axis of `x` must have length {d} (or {d - 1}), as `alpha`; got shape {x.shape}"
            raise ValueError(msg)
        if x.shape[0] == d - 1:
            x = xp.concat([x, 1.0 - xp.sum(x, axis=0, keepdims=True)], axis=0)
        a = alpha.reshape((d, *[1] * (x.ndim - 1)))
        good = xp.all((x >= 0) & (x <= 1), axis=0) & (xp.abs(xp.sum(x, axis=0) - 1.0) <= _NEAR) & xp.all(alpha > 0)
        value = xp.sum(special.xlogy(a - 1.0, x), axis=0) - _log_beta(alpha)
        one = xp.ones_like(value)
        return value * xp.where(good, one, one * math.nan)

    @_document_dirichlet
    def pdf(self, x: Any, alpha: Any) -> Tensor:
        """Return the density.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.dirichlet.pdf(xp.asarray([[0.5, 0.25], [0.5, 0.75]]), xp.asarray([2.0, 2.0]))  # 6 * x * (1 - x)
        tensor([1.5  , 1.125])
        """
        return xp.exp(self.logpdf(x, alpha))

    @_document_dirichlet
    def entropy(self, alpha: Any) -> Tensor:
        """Return the differential entropy.

        Returns
        -------
        Tensor, shape ()
            Floating-point, in nats.

        Raises
        ------
        ValueError
            `alpha` is not a vector.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> alpha = xp.tensor([1.0, 1.0, 1.0], requires_grad=True)
        >>> h = stats.dirichlet.entropy(alpha)  # the uniform distribution: -log(2)
        >>> h.backward()
        >>> round(h.item(), 4), alpha.grad
        (-0.6931, tensor([0., 0., 0.]))
        """
        (alpha,) = arrays_of("scipy.stats.dirichlet.entropy", real=True, alpha=alpha)
        d = _dimension("entropy", alpha)
        total = xp.sum(alpha)
        return _log_beta(alpha) + (total - d) * special.digamma(total) - xp.sum((alpha - 1.0) * special.digamma(alpha))


#: Largest distance of a sum of probabilities from 1, as in SciPy.
_NEAR = 1e-9


def _log_beta(alpha: Any) -> Any:
    """Return the logarithm of the multivariate beta function."""
    return xp.sum(special.gammaln(alpha)) - special.gammaln(xp.sum(alpha))


def _dimension(kind: str, alpha: Any) -> int:
    """Return the length of `alpha`, and raise ValueError if it is not a vector with elements."""
    if alpha.ndim != 1 or not alpha.shape[0]:
        msg = f"scipy.stats.dirichlet.{kind}: `alpha` must be a vector of concentrations, but has shape {alpha.shape}"
        raise ValueError(msg)
    return int(alpha.shape[0])
