"""Convolve arrays over some axes and contract others, as HIPS autograd's `scipy.signal` does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from xpgrad._basics.shapes import normalize_axes
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import ARRAY, np
from xpgrad.scipy._convolutions import _full_convolution, _sliding_product

__all__ = ["convolve"]

#: Up to this many taps, each is a matrix product; for more, or if no axes are contracted, all of them are one convolution.
_TAPS = 128


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """Convolve two arrays over pairs of axes, and contract other pairs.

    Parameters
    ----------
    A, B : array
    axes : pair of sequences of int, optional
        The axes of each to convolve over. Default: all.
    dot_axes : pair of sequences of int
        The axes of each to contract, as in `tensordot`.
    mode : {"full", "same", "valid"}
        The whole convolution; its central part with the lengths of `A`; or the part that needs no padding, for which one array must be at
        least as large as the other along each axis.

    Returns
    -------
    array
        Its axes are the other axes of `A`, the other axes of `B`, and those of the convolution.

    Raises
    ------
    TypeError, ValueError
        For axes and shapes that do not fit.
    """
    if mode not in ("full", "same", "valid"):
        msg = f"convolve: `mode` must be 'full', 'same' or 'valid', but got {mode!r:.60}"
        raise ValueError(msg)
    boxed = [x for x in (A, B) if isinstance(x, Tensor)]
    like = boxed[0].device if boxed else ARRAY.device
    x, h = (t if isinstance(t, Tensor) else xp.asarray(np.asarray(t), device=like) for t in (A, B))
    dtype = xp.result_type(x, h)
    x, h = x._cast(dtype), h._cast(dtype)
    conv = _pair(axes if axes is not None else (range(x.ndim), range(h.ndim)), x, h, "axes")
    dot = _pair(dot_axes, x, h, "dot_axes")
    for a, b in zip(*dot):
        if x.shape[a] != h.shape[b]:
            msg = f"convolve: `dot_axes` pair axis {a} of shape {x.shape} with axis {b} of shape {h.shape}, which has another length"
            raise ValueError(msg)
    out = _convolve_sorted(x, h, conv, dot, mode)
    return out if boxed else out.numpy()


def _pair(given: Any, x: Any, h: Any, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of both arrays to convolve or to contract; raise unless they have the same number."""
    if not isinstance(given, Sequence) or len(given) != 2:
        msg = f"convolve: `{name}` must be a pair, of the axes of each array, but got {given!r:.60}"
        raise TypeError(msg)
    first, second = (normalize_axes(tuple(a), t.ndim, "convolve", name) or () for a, t in zip(given, (x, h)))
    if len(first) != len(second):
        msg = f"convolve: `{name}` must name as many axes of each array, but got {given!r:.80} for shapes {x.shape} and {h.shape}"
        raise ValueError(msg)
    return first, second


def _convolve_sorted(x: Any, h: Any, conv: Any, dot: Any, mode: str) -> Any:
    """Sort the axes into kept, contracted and convolved ones, and return the convolution.

    Parameters
    ----------
    x, h : Tensor
    conv, dot : pair of sequences of int
        The axes of each operand to convolve over, and those to contract.
    mode : {'full', 'same', 'valid'}
    """
    kept = [[i for i in range(t.ndim) if i not in (*c, *d)] for t, c, d in zip((x, h), conv, dot)]
    lead = [tuple(t.shape[i] for i in k) for t, k in zip((x, h), kept)]
    sizes = [tuple(t.shape[i] for i in c) for t, c in zip((x, h), conv)]
    if any(0 in s for s in sizes):
        msg = f"convolve: the arrays must not be empty along the axes to convolve over, but have shapes {x.shape} and {h.shape}"
        raise ValueError(msg)
    inner = math.prod(x.shape[i] for i in dot[0])
    # Bring each array to the shape (kept, contracted, convolved ...).
    x, h = (
        xp.reshape(xp.permute_dims(t, (*k, *d, *c)), (math.prod(n), inner, *s))
        for t, k, d, c, n, s in zip((x, h), kept, dot, conv, lead, sizes)
    )
    rank = len(sizes[0])
    swapped = math.prod(sizes[1]) > math.prod(sizes[0])
    if mode == "valid":
        within = [all(n >= m for n, m in zip(*order)) for order in (sizes, sizes[::-1])]
        if not any(within):
            msg = f"convolve: for mode='valid' one array must be at least as large as the other along all axes, but got {sizes}"
            raise ValueError(msg)
        swapped = not within[0]
    out = _products(h, x, rank, mode == "valid") if swapped else _products(x, h, rank, mode == "valid")
    if swapped:
        out = xp.permute_dims(out, (1, 0, *range(2, rank + 2)))
    if mode == "same":
        starts = [(m - 1) // 2 for m in sizes[1]]
        out = out[(..., *(slice(s, s + n) for s, n in zip(starts, sizes[0])))]
    return xp.reshape(out, (*lead[0], *lead[1], *out.shape[2:]))


def _products(x: Any, h: Any, rank: int, valid: bool) -> Any:
    """Convolve `x`, of shape (i, d, ...), with `h`, of shape (j, d, ...), over the last `rank` axes, and sum over d.

    `h` is not larger than `x`. The convolution is the full one, or the inner part of it if `valid`; the result has shape (i, j, ...).
    """
    if not rank:
        return xp.matmul(x, xp.matrix_transpose(h))
    taps = h.shape[2:]
    last = tuple(range(-rank, 0))
    if x.shape[1] == 1 or math.prod(taps) > _TAPS:
        a, b = xp.expand_dims(x, axis=1), xp.expand_dims(h, axis=0)
        found = _sliding_product(a, xp.flip(b, axis=last), rank, False) if valid else _full_convolution(a, b, rank, False)
        return xp.sum(found, axis=2)
    if not valid:
        x = xp.pad(x, [(0, 0), (0, 0), *((m - 1, m - 1) for m in taps)])
    sizes = tuple(n - m + 1 for n, m in zip(x.shape[2:], taps))
    total: Any = None
    for at in itertools.product(*map(range, taps)):
        window = x[(..., *(slice(m - 1 - t, m - 1 - t + n) for t, m, n in zip(at, taps, sizes)))]
        term = xp.matmul(h[(..., *at)], xp.reshape(window, (*x.shape[:2], math.prod(sizes))))
        total = term if total is None else total + term
    return xp.reshape(total, (x.shape[0], h.shape[0], *sizes))
