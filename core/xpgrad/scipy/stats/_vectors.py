"""Distributions of vectors: the multivariate normal and Dirichlet's, with SciPy's names, arguments and shapes.

They are composed of Cholesky's decomposition and special functions, which have all derivatives on every backend.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import cholesky
from xpgrad.rules.creation import eye
from xpgrad.scipy import special
from xpgrad.scipy._operands import arrays_of
from xpgrad.scipy.linalg import solve_triangular


class MultivariateNormal:
    """The normal distribution of vectors, which lie along the last axis of `x`; all arguments are differentiable.

    The covariance must be positive definite, and is read as a symmetric matrix; a number or a vector is its diagonal, as SciPy's. A
    singular one raises what `xpgrad.linalg.cholesky` raises: its density has no derivative in the covariance, so there is no
    `allow_singular`.

    Raises
    ------
    TypeError
        A shape parameter is missing, there is no such parameter, one is given twice, or an argument is not real.
    ValueError
        The arguments do not broadcast.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.multivariate_normal, isinstance(stats.multivariate_normal, stats.MultivariateNormal)
    (xpgrad.scipy.stats.multivariate_normal, True)
    """

    def __repr__(self) -> str:
        return "xpgrad.scipy.stats.multivariate_normal"

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1.0) -> Tensor:
        """Return the logarithm of the density.

        Parameters
        ----------
        x : Tensor or array, shape (..., d)
            If `d` is 1, numbers.
        mean : Tensor or array, shape (d,), optional
            0 by default.
        cov : Tensor, array or number, shape (d, d), (d,) or ()

        Returns
        -------
        Tensor, shape (...)

        Raises
        ------
        ValueError
            For shapes that do not fit.

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
        apart = x - mean
        # There are more vectors than dimensions, mostly: the factor is inverted, and one product of matrices is left.
        inverse = solve_triangular(factor, eye(dim, dtype=factor.dtype, device=factor.device), lower=True)
        z = apart @ inverse.mT
        return (z * z).sum(-1) * -0.5 - (_log_volume(factor) + dim * (math.log(2 * math.pi) / 2))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1.0) -> Tensor:
        """Return the density; see `logpdf`.

        Parameters
        ----------
        x : Tensor or array, shape (..., d)
            If `d` is 1, numbers. Differentiable.
        mean : Tensor or array, shape (d,), optional
            The mean; 0 by default. Differentiable.
        cov : Tensor, array or number, shape (d, d), (d,) or ()
            The covariance, positive definite; a vector or a number is its diagonal. Differentiable.

        Returns
        -------
        Tensor, shape (...)
            Floating.

        Raises
        ------
        TypeError
            An argument is not an array of real numbers.
        ValueError
            The shapes do not fit.
        LinAlgError
            The covariance is not positive definite; the error is the library's own.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> x = xp.asarray([[0.0, 0.0], [1.0, 0.0]])
        >>> stats.multivariate_normal.pdf(x, xp.zeros(2), xp.asarray([1.0, 4.0]))
        tensor([0.0796, 0.0483])
        """
        return xp.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: Any = None, cov: Any = 1.0) -> Tensor:
        """Return the differential entropy, shape (); see `logpdf`.

        Parameters
        ----------
        mean : Tensor or array, shape (d,), optional
            The mean; 0 by default. Differentiable.
        cov : Tensor, array or number, shape (d, d), (d,) or ()
            The covariance, positive definite; a vector or a number is its diagonal. Differentiable.

        Returns
        -------
        Tensor, shape ()
            In nats.

        Raises
        ------
        TypeError
            An argument is not an array of real numbers.
        ValueError
            The shapes do not fit.
        LinAlgError
            The covariance is not positive definite; the error is the library's own.

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
    """Return Cholesky's factor of the symmetric part."""
    return cholesky((cov + cov.mT) * 0.5)


def _log_volume(factor: Any) -> Any:
    return xp.log(xp.linalg.diagonal(factor)).sum()


def _normal(kind: str, x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any, int]:
    """Return the operands as vectors and a matrix, and the dimension as SciPy determines it."""
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


class Dirichlet:
    """Dirichlet's distribution of probabilities, which lie along the *first* axis of `x`, as SciPy's; both arguments are differentiable.

    Where `x` is no vector of probabilities, or `alpha` not above 0, values and derivatives are nan (SciPy raises ValueError).

    Raises
    ------
    TypeError
        A shape parameter is missing, there is no such parameter, one is given twice, or an argument is not real.
    ValueError
        The arguments do not broadcast.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.dirichlet, isinstance(stats.dirichlet, stats.Dirichlet)
    (xpgrad.scipy.stats.dirichlet, True)
    """

    def __repr__(self) -> str:
        return "xpgrad.scipy.stats.dirichlet"

    def logpdf(self, x: Any, alpha: Any) -> Tensor:
        """Return the logarithm of the density.

        Parameters
        ----------
        x : Tensor or array, shape (d, ...) or (d - 1, ...)
            Probabilities; without the last one, it is what is left.
        alpha : Tensor or array, shape (d,)
            Concentrations.

        Returns
        -------
        Tensor, shape (...)

        Raises
        ------
        ValueError
            For shapes that do not fit.

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

    def pdf(self, x: Any, alpha: Any) -> Tensor:
        """Return the density; see `logpdf`.

        Parameters
        ----------
        x : Tensor or array, shape (d, ...) or (d - 1, ...)
            Probabilities along the first axis; without the last one, it is what is left. Differentiable.
        alpha : Tensor or array, shape (d,)
            Concentrations, above 0; nan otherwise. Differentiable.

        Returns
        -------
        Tensor, shape (...)
            Floating.

        Raises
        ------
        TypeError
            An argument is not an array of real numbers.
        ValueError
            The shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.dirichlet.pdf(xp.asarray([[0.5, 0.25], [0.5, 0.75]]), xp.asarray([2.0, 2.0]))  # 6 * x * (1 - x)
        tensor([1.5  , 1.125])
        """
        return xp.exp(self.logpdf(x, alpha))

    def entropy(self, alpha: Any) -> Tensor:
        """Return the differential entropy, shape (); see `logpdf`.

        Parameters
        ----------
        alpha : Tensor or array, shape (d,)
            Concentrations, above 0; nan otherwise. Differentiable.

        Returns
        -------
        Tensor, shape ()
            In nats.

        Raises
        ------
        TypeError
            An argument is not an array of real numbers.
        ValueError
            The shapes do not fit.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> alpha = xp.tensor([1.0, 1.0, 1.0], requires_grad=True)
        >>> h = stats.dirichlet.entropy(alpha)  # of the uniform one: -log(2)
        >>> h.backward()
        >>> round(h.item(), 4), alpha.grad
        (-0.6931, tensor([0., 0., 0.]))
        """
        (alpha,) = arrays_of("scipy.stats.dirichlet.entropy", real=True, alpha=alpha)
        d = _dimension("entropy", alpha)
        total = xp.sum(alpha)
        return _log_beta(alpha) + (total - d) * special.digamma(total) - xp.sum((alpha - 1.0) * special.digamma(alpha))


#: How far from 1 a sum of probabilities may be: as SciPy's.
_NEAR = 1e-9


def _log_beta(alpha: Any) -> Any:
    return xp.sum(special.gammaln(alpha)) - special.gammaln(xp.sum(alpha))


def _dimension(kind: str, alpha: Any) -> int:
    if alpha.ndim != 1 or not alpha.shape[0]:
        msg = f"scipy.stats.dirichlet.{kind}: `alpha` must be a vector of concentrations, but has shape {alpha.shape}"
        raise ValueError(msg)
    return int(alpha.shape[0])
