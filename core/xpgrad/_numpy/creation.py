"""Array creation: arrays like a Tensor, ranges between Tensors, and functions with the keyword argument ``like=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.shapes import shape_tuple
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.manipulation import reverse_axes
from xpgrad._numpy.operands import as_constant, as_floating, as_ints, lift, refuse, reshape_to_axis
from xpgrad._numpy.table import LIKE, F, implements
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import diagonal
from xpgrad.rules.creation import clone_contiguous
from xpgrad.rules.indexing import add_slices

# -- like a Tensor -----------------------------------------------------------------------------------------------------


def _resolve_dtype(x: Any, dtype: Any) -> Any:
    """Return `dtype` as a dtype of the device of `x`; the dtype of `x` if it is None."""
    return x.dtype if dtype is None else as_dtype(dtype, x.default_dtype)


def _resolve_shape(x: Any, shape: Any) -> Any:
    return x.shape if shape is None else shape_tuple(shape)


for _name, _make, _like in (
    ("zeros_like", xp.zeros, xp.zeros_like), ("ones_like", xp.ones, xp.ones_like), ("empty_like", xp.empty, xp.empty_like),
):  # fmt: skip

    @adapt(_name, ints=("shape",), differentiable=False)
    def _make_like(x: Any, dtype: Any = None, order: Any = "K", shape: Any = None, make: Any = _make, like: Any = _like) -> Any:
        wanted = _resolve_dtype(x, dtype)
        out = like(x, dtype=wanted) if shape is None else make(shape_tuple(shape), dtype=wanted, device=x.device)
        return _lay_out(out, order, False) if order == "F" else out


@adapt("full_like", arrays=2, ints=("shape",), note="differentiable in the value")
def _full_like(x: Any, value: Any, dtype: Any = None, order: Any = "K", shape: Any = None) -> Any:
    out = clone_contiguous(xp.broadcast_to(value._cast(_resolve_dtype(x, dtype)), _resolve_shape(x, shape)))
    return _lay_out(out, order, False) if order == "F" else out


adapt("copy", lambda x, order="K": _lay_out(x, order, True) if order == "F" else x.clone())
adapt("astype", lambda x, dtype, copy=True: xp.astype(x, dtype, copy=copy))


# -- evenly spaced numbers ---------------------------------------------------------------------------------------------


def _fractions(x: Any, num: int, endpoint: bool) -> Any:
    """Return `num` evenly spaced numbers from 0 to 1 along a new first axis, to be broadcast with `x`."""
    count = num - 1 if endpoint else num
    steps = xp.arange(num, dtype=xp.real(x).dtype, device=x.device) / max(count, 1)
    return xp.reshape(steps, (num,) + (1,) * x.ndim)


@adapt("linspace", arrays=2, floating=True, ints=("num",))
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0) -> Any:
    """Return evenly spaced numbers along a new axis (`numpy.linspace`)."""
    a, b = xp.broadcast_arrays(start, stop)
    steps = _fractions(a, num, endpoint)
    out = a * (1 - steps) + b * steps
    out = xp.moveaxis(out, 0, axis) if axis else out
    if dtype is not None:
        wanted = _resolve_dtype(out, dtype)
        out = (xp.floor(out) if "integer" in wanted.category else out)._cast(wanted)
    if not retstep:
        return out
    gaps = num - 1 if endpoint else num
    return out, (b - a) / gaps if gaps > 0 else xp.full_like(a, xp.nan)


def _move_axis_and_cast(x: Any, axis: int, dtype: Any) -> Any:
    return (xp.moveaxis(x, 0, axis) if axis else x)._cast(_resolve_dtype(x, dtype))


@implements("logspace")
def _logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Any:
    a, b, root = map(as_floating, lift("logspace", start, stop, base))
    shape = xp.broadcast_shapes(a.shape, b.shape, root.shape)
    a, b, root = (xp.broadcast_to(t, shape) for t in (a, b, root))
    return _move_axis_and_cast(xp.pow(root, linspace(a, b, as_ints("logspace", "num", num), endpoint)), axis, dtype)


@adapt("geomspace", arrays=2, floating=True, ints=("num",))
def _geomspace(a: Any, b: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    a, b = xp.broadcast_arrays(a, b)
    return _move_axis_and_cast(a * xp.pow(b / a, _fractions(a, num, endpoint)), axis, dtype)


@implements("meshgrid")
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    parts = [xp.reshape(t, (-1,)) for t in lift("meshgrid", *xi)]
    if sparse:
        order = list(range(len(parts)))
        if indexing == "xy" and len(parts) > 1:
            order[:2] = 1, 0
        grids: Any = [reshape_to_axis(t, axis, len(parts)) for axis, t in zip(order, parts)]
    else:
        grids = xp.meshgrid(*parts, indexing=indexing)
    return tuple(clone_contiguous(grid) if copy else grid for grid in grids)


# -- matrices ----------------------------------------------------------------------------------------------------------


adapt("tril", lambda m, k=0: xp.tril(_as_matrix(m), k=k))
adapt("triu", lambda m, k=0: xp.triu(_as_matrix(m), k=k))


def _as_matrix(x: Any) -> Any:
    """Return a matrix unchanged, and a vector of n elements as an n x n matrix whose rows all equal it."""
    return xp.broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x


def build_diagonal(x: Any, k: int) -> Any:
    """Return a square matrix with the vector `x` on its k-th diagonal and zeros elsewhere."""
    n = x.shape[0] + abs(k)
    positions = xp.arange(x.shape[0], device=x.device) * (n + 1) + (k if k > 0 else -k * n)
    flat = add_slices(xp.zeros((n * n,), dtype=x.dtype, device=x.device), 0, positions, x)
    return xp.reshape(flat, (n, n))


@adapt("diag")
def _diag(x: Any, k: int = 0) -> Any:
    if x.ndim not in (1, 2):
        msg = f"np.diag needs one or two axes, but got shape {x.shape}"
        raise ValueError(msg)
    return build_diagonal(x, k) if x.ndim == 1 else diagonal(x, offset=k)


adapt("diagflat", lambda v, k=0: build_diagonal(xp.reshape(v, (-1,)), k))


@adapt("vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the Vandermonde matrix of a vector (`numpy.vander`)."""
    count = x.shape[0] if N is None else N
    powers = [xp.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    powers = powers[:count]
    return xp.stack(powers if increasing else powers[::-1], axis=-1)


# -- with the keyword argument `like` ----------------------------------------------------------------------------------


def _implements_like(*names: str) -> Callable[[F], F]:
    def declare(func: F) -> F:
        for name in names:
            LIKE[name] = func
        return func

    return declare


@_implements_like("asarray", "asanyarray")
def _asarray(like: Any, a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, ndmin: int = 0, **options: Any) -> Any:
    refuse("asarray", **options)
    out = a if isinstance(a, Tensor) else as_constant("asarray", a, like).contiguous()
    out = out if dtype is None else out._cast(as_dtype(dtype, out.default_dtype))
    out = _lay_out(out, order, copy is True and out is a)
    return out.reshape((1,) * (ndmin - out.ndim) + out.shape) if ndmin > out.ndim else out


def _lay_out(x: Any, order: Any, copies: bool) -> Any:
    """Return `x` in NumPy's `order`; a copy if it is in another order, or if `copies`."""
    if order == "F":
        return reverse_axes(_lay_out(reverse_axes(x), "C", copies))
    if order == "C":
        return clone_contiguous(x) if copies else x.contiguous()
    return x.clone() if copies else x


LIKE["array"] = lambda like, a, dtype=None, *, copy=True, **options: _asarray(like, a, dtype, copy=copy, **options)
LIKE["ascontiguousarray"] = lambda like, a, dtype=None: _asarray(like, a, dtype, "C", ndmin=1)
LIKE["asfortranarray"] = lambda like, a, dtype=None: _asarray(like, a, dtype, "F")


def _declare_maker(name: str, *names: str) -> Any:
    def make(like: Any, *args: Any, **options: Any) -> Any:
        refuse(name, **{k: options.pop(k) for k in ("order", "device") if k in options})
        given = dict(zip(names, args)) | options
        shape = as_ints(name, "shape", given.pop("shape"))
        value = [given.pop("fill_value")] if name == "full" else []
        if value and (isinstance(value[0], (list, tuple)) or (hasattr(value[0], "ndim") and value[0].ndim)):
            filled = _asarray(like, value[0], given.pop("dtype", None))
            return clone_contiguous(xp.broadcast_to(filled, shape))
        return getattr(xp, name)(shape, *value, dtype=given.pop("dtype", None), device=like.device)

    LIKE[name] = make
    return make


for _name in ("zeros", "ones", "empty"):
    _declare_maker(_name, "shape", "dtype")
_declare_maker("full", "shape", "fill_value", "dtype")


@_implements_like("eye")
def _eye(like: Any, N: Any, M: Any = None, k: int = 0, dtype: Any = None, **options: Any) -> Any:
    refuse("eye", **options)
    return xp.eye(N, M, k=k, dtype=dtype, device=like.device)


@_implements_like("identity")
def _identity(like: Any, n: Any, dtype: Any = None) -> Any:
    return xp.eye(n, dtype=dtype, device=like.device)


@_implements_like("arange")
def _arange(like: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
    refuse("arange", device=options.pop("device", None))
    given = dict(zip(("start", "stop", "step") if len(args) > 1 or "stop" in options else ("stop",), args)) | options
    if not any(isinstance(x, Tensor) for x in given.values()):
        return xp.arange(*args, dtype=dtype, device=like.device, **options)
    ends = {k: x._item("np.arange(x)") if isinstance(x, Tensor) else x for k, x in given.items()}
    # The number of elements is a constant, because it is a step function.
    places = xp.arange(ends.get("start", 0), ends["stop"], ends.get("step", 1), device=like.device).shape[0]
    out = xp.arange(places, dtype=like.dtype, device=like.device) * given.get("step", 1) + given.get("start", 0)
    return out if dtype is None else out._cast(as_dtype(dtype, out.default_dtype))


@_implements_like("tri")
def _tri(like: Any, N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    return xp.tril(xp.ones((N, N if M is None else M), dtype=dtype, device=like.device), k=k)
