"""Making arrays: beside a Tensor, between Tensors, and by ``like=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.shapes import shape_tuple
from xpgrad._numpy.operands import as_ints, constant, floating, lift, refuse
from xpgrad._numpy.table import LIKE, covers
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import diagonal
from xpgrad.rules.indexing import add_slices

__all__ = ["linspace", "on_diagonal"]

F = TypeVar("F", bound=Callable[..., Any])


# -- like a Tensor -----------------------------------------------------------------------------------------------------


def _beside(name: str, a: Any, shape: Any, dtype: Any, device: Any, order: Any, *value: Any) -> Any:
    refuse(name, order=order, device=device)
    (x,) = lift(name, a)
    make: Any = {"zeros_like": xp.zeros, "ones_like": xp.ones, "empty_like": xp.empty, "full_like": xp.full}[name]
    wanted = x.dtype if dtype is None else as_dtype(dtype, x.default_dtype)
    return make(x.shape if shape is None else shape_tuple(as_ints(name, "shape", shape)), *value, dtype=wanted, device=x.device)


@covers("zeros_like", differentiable=False)
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Stand for `numpy.zeros_like`."""
    return _beside("zeros_like", a, shape, dtype, device, order)


@covers("ones_like", differentiable=False)
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Stand for `numpy.ones_like`."""
    return _beside("ones_like", a, shape, dtype, device, order)


@covers("empty_like", differentiable=False)
def empty_like(prototype: Any, /, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Stand for `numpy.empty_like`."""
    return _beside("empty_like", prototype, shape, dtype, device, order)


@covers("full_like", note="differentiable in the value")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:  # fmt: skip
    """Stand for `numpy.full_like`."""
    refuse("full_like", order=order, device=device)
    x, value = lift("full_like", a, fill_value)
    wanted = x.dtype if dtype is None else as_dtype(dtype, x.default_dtype)
    target = x.shape if shape is None else shape_tuple(as_ints("full_like", "shape", shape))
    return xp.broadcast_to(value._cast(wanted), target).clone()


@covers("copy")
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """Stand for `numpy.copy`."""
    refuse("copy", order=order)
    return lift("copy", a)[0].clone()


@covers("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Stand for `numpy.astype`."""
    refuse("astype", device=device)
    return xp.astype(lift("astype", x)[0], dtype, copy=copy)


# -- numbers at equal distances ----------------------------------------------------------------------------------------


def _steps(x: Any, num: int, endpoint: bool) -> Any:
    """The numbers ``0, 1 / n, ...`` along a new first axis."""
    count = num - 1 if endpoint else num
    steps = xp.arange(num, dtype=xp.real(x).dtype, device=x.device) / max(count, 1)
    return xp.reshape(steps, (num,) + (1,) * x.ndim)


@covers("linspace")
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
             device: Any = None) -> Any:  # fmt: skip
    """Stand for `numpy.linspace`."""
    refuse("linspace", device=device)
    a, b = map(floating, lift("linspace", start, stop))
    a, b = xp.broadcast_arrays(a, b)
    num = as_ints("linspace", "num", num)
    steps = _steps(a, num, endpoint)
    out = a * (1 - steps) + b * steps
    out = xp.moveaxis(out, 0, axis) if axis else out
    if dtype is not None:
        wanted = as_dtype(dtype, out.default_dtype)
        out = (xp.floor(out) if "integer" in wanted.kind else out)._cast(wanted)
    return (out, (b - a) / (num - 1 if endpoint else num)) if retstep else out


@covers("logspace")
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Any:
    """Stand for `numpy.logspace`."""
    a, b, root = map(floating, lift("logspace", start, stop, base))
    shape = xp.broadcast_shapes(a.shape, b.shape, root.shape)
    a, b, root = (xp.broadcast_to(t, shape) for t in (a, b, root))
    out = xp.pow(root, linspace(a, b, num, endpoint))
    out = xp.moveaxis(out, 0, axis) if axis else out
    return out if dtype is None else out._cast(as_dtype(dtype, out.default_dtype))


@covers("geomspace")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Stand for `numpy.geomspace`."""
    a, b = map(floating, lift("geomspace", start, stop))
    a, b = xp.broadcast_arrays(a, b)
    steps = _steps(a, as_ints("geomspace", "num", num), endpoint)
    out = a * xp.pow(b / a, steps)
    out = xp.moveaxis(out, 0, axis) if axis else out
    return out if dtype is None else out._cast(as_dtype(dtype, out.default_dtype))


@covers("meshgrid")
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Stand for `numpy.meshgrid`."""
    parts = [xp.reshape(t, (-1,)) for t in lift("meshgrid", *xi)]
    if not sparse:
        return xp.meshgrid(*parts, indexing=indexing)
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = 1, 0
    return tuple(xp.reshape(t, tuple(-1 if i == axis else 1 for i in range(len(parts)))) for axis, t in zip(order, parts))


# -- matrices ----------------------------------------------------------------------------------------------------------


@covers("tril")
def tril(m: Any, k: int = 0) -> Any:
    """Stand for `numpy.tril`."""
    return xp.tril(_rows(lift("tril", m)[0]), k=k)


@covers("triu")
def triu(m: Any, k: int = 0) -> Any:
    """Stand for `numpy.triu`."""
    return xp.triu(_rows(lift("triu", m)[0]), k=k)


def _rows(x: Any) -> Any:
    """`x`, a vector as the rows of a square matrix."""
    return xp.broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x


def on_diagonal(x: Any, k: int) -> Any:
    """A matrix with a vector on its k-th diagonal."""
    n = x.shape[0] + abs(k)
    places = xp.arange(x.shape[0], device=x.device) * (n + 1) + (k if k > 0 else -k * n)
    flat = add_slices(xp.zeros((n * n,), dtype=x.dtype, device=x.device), 0, places, x)
    return xp.reshape(flat, (n, n))


@covers("diag")
def diag(v: Any, k: int = 0) -> Any:
    """Stand for `numpy.diag`."""
    (x,) = lift("diag", v)
    if x.ndim not in (1, 2):
        msg = f"np.diag needs one axis or two, but got shape {x.shape}"
        raise ValueError(msg)
    return on_diagonal(x, k) if x.ndim == 1 else diagonal(x, offset=k)


@covers("diagflat")
def diagflat(v: Any, k: int = 0) -> Any:
    """Stand for `numpy.diagflat`."""
    return on_diagonal(xp.reshape(lift("diagflat", v)[0], (-1,)), k)


@covers("vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Stand for `numpy.vander`."""
    (t,) = lift("vander", x)
    count = t.shape[0] if N is None else N
    powers = [xp.ones_like(t)]
    for _ in range(count - 1):
        powers.append(powers[-1] * t)
    powers = powers[:count]
    return xp.stack(powers if increasing else powers[::-1], axis=-1)


# -- beside the keyword argument `like` --------------------------------------------------------------------------------


def _like(*names: str) -> Callable[[F], F]:
    def declare(func: F) -> F:
        for name in names:
            LIKE[name] = func
        return func

    return declare


@_like("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
def _array(like: Any, obj: Any, dtype: Any = None, *, copy: Any = None, **options: Any) -> Any:
    options.pop("ndmin", None)
    refuse("asarray", **{k: v for k, v in options.items() if k != "order"})
    out = obj if isinstance(obj, Tensor) else constant("asarray", obj, like)
    return out if dtype is None else out._cast(as_dtype(dtype, out.default_dtype))


def _maker(name: str) -> Any:
    def make(like: Any, *args: Any, **options: Any) -> Any:
        refuse(name, **{k: options.pop(k) for k in ("order", "device") if k in options})
        names = {
            "zeros": ("shape", "dtype"),
            "ones": ("shape", "dtype"),
            "empty": ("shape", "dtype"),
            "full": ("shape", "fill_value", "dtype"),
        }
        given = dict(zip(names[name], args)) | options
        shape = as_ints(name, "shape", given.pop("shape"))
        return getattr(xp, name)(
            shape, *([given.pop("fill_value")] if name == "full" else []), dtype=given.pop("dtype", None), device=like.device
        )

    LIKE[name] = make
    return make


for _name in ("zeros", "ones", "empty", "full"):
    _maker(_name)


@_like("eye")
def _eye(like: Any, N: Any, M: Any = None, k: int = 0, dtype: Any = None, **options: Any) -> Any:
    refuse("eye", **options)
    return xp.eye(N, M, k=k, dtype=dtype, device=like.device)


@_like("identity")
def _identity(like: Any, n: Any, dtype: Any = None) -> Any:
    return xp.eye(n, dtype=dtype, device=like.device)


@_like("arange")
def _arange(like: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
    refuse("arange", device=options.pop("device", None))
    return xp.arange(*args, dtype=dtype, device=like.device, **options)


@_like("tri")
def _tri(like: Any, N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    return xp.tril(xp.ones((N, N if M is None else M), dtype=dtype, device=like.device), k=k)
