"""Structured matrices built from vectors or blocks."""

from __future__ import annotations

from typing import Any

from xpgrad._basics.shapes import common_shape
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import as_tensor, as_tensors
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.elementwise import conj
from xpgrad.rules.manipulation import broadcast_to, concat, reshape
from xpgrad.scipy.linalg._operands import promote, register


def _check_vector(name: str, argument: str, x: Any) -> Any:
    """Return `x`, and raise ValueError if it is 0-d."""
    if x.ndim < 1:
        msg = f"scipy.linalg.{name}: `{argument}` must be a vector, or a stack of them, but has shape {x.shape}"
        raise ValueError(msg)
    return x


def _gather(x: Any, rows: int, columns: int, offset: int, step: int) -> Any:
    """Return the matrix whose element (i, j) is that of `x` at ``offset + i - step * j``, modulo its length."""
    i = operations.arange(rows, device=x.device)
    j = operations.arange(columns, device=x.device)
    where = reshape(i, (rows, 1)) + offset - reshape(j, (1, columns)) * step
    where = operations.remainder(where, max(x.shape[-1], 1))
    return reshape(operations.take(x, reshape(where, (rows * columns,)), axis=-1), (*x.shape[:-1], rows, columns))


def _pair(name: str, c: Any, r: Any) -> tuple[Any, Any]:
    """Return `c` and `r` as vectors on one device, with their batch axes broadcast."""
    c, r = (_check_vector(name, argument, x) for argument, x in zip("cr", as_tensors(f"scipy.linalg.{name}", c, r)))
    batch = common_shape(c.shape[:-1], r.shape[:-1], name=f"scipy.linalg.{name}")
    c, r = unify(f"scipy.linalg.{name}", [c, r])
    return tuple(  # type: ignore[return-value]
        x if x.shape[:-1] == batch else broadcast_to(x, (*batch, x.shape[-1])) for x in (c, r)
    )


@register
def toeplitz(c: Tensor, r: Tensor | None = None) -> Tensor:
    """Return the matrix with constant diagonals whose first column is `c` and whose first row is `r` (`scipy.linalg.toeplitz`).

    Parameters
    ----------
    c : Tensor, shape (..., M)
        First column. Differentiable.
    r : Tensor, shape (..., N), optional
        First row; its first element is ignored. Default: the conjugate of `c`. Differentiable.

    Returns
    -------
    Tensor, shape (..., M, N)
        In the common dtype of the arguments; the axes before the last one broadcast.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        An argument is 0-d, or the batch axes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> c = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> t = linalg.toeplitz(c)
    >>> t.detach()
    tensor([[1., 2., 3.],
            [2., 1., 2.],
            [3., 2., 1.]])
    >>> t.sum().backward()
    >>> c.grad  # how often each element occurs in the matrix
    tensor([3., 4., 2.])
    """
    if r is None:
        c = _check_vector("toeplitz", "c", as_tensor("scipy.linalg.toeplitz", c))
        r = conj(c) if c.dtype.is_complex else c
    column, row = _pair("toeplitz", c, r)
    m, n = column.shape[-1], row.shape[-1]
    whole = concat([operations.flip(row[..., 1:], axis=-1), column], axis=-1)
    return _gather(whole, m, n, max(n - 1, 0), 1)


@register
def circulant(c: Tensor) -> Tensor:
    """Return the circulant matrix with first column `c`: each column is the one before it rotated by one (`scipy.linalg.circulant`).

    Parameters
    ----------
    c : Tensor, shape (..., N)
        First column. Differentiable.

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `c`.

    Raises
    ------
    TypeError
        `c` is neither a Tensor nor an array.
    ValueError
        `c` is 0-d.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> c = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> linalg.circulant(c).detach()
    tensor([[1., 3., 2.],
            [2., 1., 3.],
            [3., 2., 1.]])
    >>> (linalg.circulant(c) @ xp.asarray([1.0, 0.0, 0.0]))[2].backward()
    >>> c.grad
    tensor([0., 0., 1.])
    """
    c = _check_vector("circulant", "c", as_tensor("scipy.linalg.circulant", c))
    return _gather(c, c.shape[-1], c.shape[-1], 0, 1)


@register
def hankel(c: Tensor, r: Tensor | None = None) -> Tensor:
    """Return the matrix with constant antidiagonals whose first column is `c` and whose last row is `r` (`scipy.linalg.hankel`).

    Parameters
    ----------
    c : Tensor, shape (..., M)
        First column. Differentiable.
    r : Tensor, shape (..., N), optional
        Last row; its first element is ignored. Default: M zeros. Differentiable.

    Returns
    -------
    Tensor, shape (..., M, N)
        In the common dtype of the arguments; the axes before the last one broadcast.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        An argument is 0-d, or the batch axes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> r = xp.tensor([0.0, 4.0], requires_grad=True)
    >>> h = linalg.hankel(xp.asarray([1.0, 2.0, 3.0]), r)
    >>> h.detach()
    tensor([[1., 2.],
            [2., 3.],
            [3., 4.]])
    >>> h.sum().backward()
    >>> r.grad  # the first element is ignored
    tensor([0., 1.])
    """
    c = _check_vector("hankel", "c", as_tensor("scipy.linalg.hankel", c))
    column, row = _pair("hankel", c, operations.zeros_like(c) if r is None else r)
    whole = concat([column, row[..., 1:]], axis=-1)
    return _gather(whole, column.shape[-1], row.shape[-1], 0, -1)


@register
def block_diag(*arrs: Tensor) -> Tensor:
    """Return the block diagonal matrix of the given matrices (`scipy.linalg.block_diag`).

    Parameters
    ----------
    *arrs : Tensor, shape (..., M, N), (N,) or ()
        Blocks. A vector is a matrix with one row, and a 0-d Tensor has one element. Differentiable.

    Returns
    -------
    Tensor, shape (..., sum of M, sum of N)
        In the common dtype of the arguments. Without arguments its shape is (1, 0), as in SciPy.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The batch axes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> b = xp.tensor([2.0, 3.0], requires_grad=True)
    >>> m = linalg.block_diag(xp.asarray([[1.0]]), b)
    >>> m.detach()
    tensor([[1., 0., 0.],
            [0., 2., 3.]])
    >>> m.sum().backward()
    >>> b.grad
    tensor([1., 1.])
    """
    if not arrs:
        return operations.zeros((1, 0))
    xs = [x if x.ndim > 1 else reshape(x, (1, x.size)) for x in as_tensors("scipy.linalg.block_diag", *arrs)]
    xs = promote("block_diag", *xs)
    try:
        batch = common_shape(*(x.shape[:-2] for x in xs))
    except ValueError as exc:
        msg = f"scipy.linalg.block_diag: the axes before the last two do not broadcast together: the shapes are {[x.shape for x in xs]}"
        raise ValueError(msg) from exc
    width, left, rows = sum(x.shape[-1] for x in xs), 0, []
    for x in xs:
        x = x if x.shape[:-2] == batch else broadcast_to(x, (*batch, *x.shape[-2:]))
        sides = ((*batch, x.shape[-2], n) for n in (left, width - left - x.shape[-1]))
        before, behind = (operations.zeros(shape, dtype=x.dtype, device=x.device) for shape in sides)
        rows.append(concat([before, x, behind], axis=-1))
        left += x.shape[-1]
    return concat(rows, axis=-2)
