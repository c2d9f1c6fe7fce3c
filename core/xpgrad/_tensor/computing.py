"""`compute`: the values of several Tensors, computed by their library in one pass, so that work which they share is done once."""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.sharing import replace_arrays
from xpgrad._array.base import TensorBase

__all__ = ["compute"]


def compute(*tensors: Any) -> None:
    """Compute the values of lazy Tensors now, all in one pass of their library, and keep them in the Tensors.

    Without it, a lazy library computes whenever a value is read: ``loss.item()`` followed by ``w.grad.numpy()`` reads the data twice. Only
    the values are replaced, by equal ones; history, gradients, versions and views stay.

    Parameters
    ----------
    *tensors : Tensor or None
        Any shapes, dtypes and devices; the Tensors of each library are computed together. None, as an absent `.grad` is, is skipped.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor None. Nothing is computed then.

    Notes
    -----
    Libraries that compute immediately, such as NumPy, have nothing to do. Values that operations saved for the backward pass before are
    not replaced: compute data and parameters before you use them. Inside functions that `vmap` or `compile` run, it does nothing.

    Examples
    --------
    >>> import xpgrad as xp
    >>> w = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = xp.sum(w * w)
    >>> loss.backward()
    >>> xp.compute(loss, w.grad)
    >>> loss.item(), w.grad.numpy()
    (5.0, array([2., 4.]))
    """
    for x in tensors:
        if x is not None and not isinstance(x, TensorBase):
            msg = f"compute: expected Tensors, but got {type(x).__name__}; pass each one as an argument of its own: `compute(*tensors)`"
            raise TypeError(msg)
    given: dict[Any, list[Any]] = {}
    for x in tensors:
        if x is not None:
            given.setdefault(x.backend, []).append(x)
    for backend, some in given.items():
        arrays = [backend.own(x) for x in some]
        for x, before, after in zip(some, arrays, backend.compute_many(arrays), strict=True):
            if after is before:
                continue
            if x._alias is not None and x._alias.path:
                x._array = after  # a view: the memory that it shares is not computed
            else:
                replace_arrays(x, after)
