"""`xpgrad.scipy.fft`: SciPy's Fourier, cosine and sine transforms for Tensors on every backend, differentiable to every order.

The Fourier transforms are those of `xpgrad.fft` with SciPy's arguments; integers become floating numbers of the default dtype. The cosine
and sine transforms are computed by SciPy where the memory is the host's, otherwise by Fourier transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from xpgrad import fft as _ours
from xpgrad._basics.arguments import as_flag, as_int, check_choice, shown
from xpgrad._basics.faces import public_names
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._convolutions import fast_length
from xpgrad.scipy._cosines import _cosines
from xpgrad.scipy._operands import arrays_of

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn",
    "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "next_fast_len", "prev_fast_len",
    "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


Norm = Literal["backward", "ortho", "forward"] | None
Axes = Sequence[int] | int | None


# -- Fourier transforms ----------------------------------------------------------------------------------------------------


def _given(name: str, x: Any, norm: Any, plan: Any) -> tuple[Any, Any]:
    """The operand as a Tensor of floating or complex numbers, and the name of the normalisation."""
    if plan is not None:
        msg = f"scipy.fft.{name}: `plan` must be None, as SciPy's, but got {shown(plan)}"
        raise NotImplementedError(msg)
    if norm is not None:
        check_choice(norm, ("backward", "ortho", "forward"), f"scipy.fft.{name}", "norm")
    (x,) = arrays_of(f"scipy.fft.{name}", x=x)
    return x, norm or "backward"


def _tuple(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, list) else (axes,) if isinstance(axes, int) else axes


def _one(name: str) -> Any:
    ours = getattr(_ours, name)

    def function(
        x: Any, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *, plan: Any = None
    ) -> Tensor:
        x, norm = _given(name, x, norm, plan)
        out: Tensor = ours(x, n=n, axis=axis, norm=norm)
        return out

    return _named(function, name, f"`xpgrad.fft.{name}` with SciPy's arguments, of which `overwrite_x` and `workers` have no effect.")


def _several(name: str, default: Axes = None, base: str = "") -> Any:
    ours: Any = _HERMITIAN.get(base or name) or getattr(_ours, base or name)

    def function(
        x: Any, s: Any = None, axes: Axes = default, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *, plan: Any = None
    ) -> Tensor:
        x, norm = _given(name, x, norm, plan)
        out: Tensor = ours(x, s=s if s is None else list(_tuple(s)), axes=_tuple(axes), norm=norm)
        return out

    what = "the last two axes" if default else "several axes, by default all"
    return _named(function, name, f"SciPy's `{name}`: over {what}; `overwrite_x` and `workers` have no effect.")


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _hfftn(x: Any, s: Any, axes: Any, norm: str) -> Any:
    return _ours.irfftn(xp.conj(x) if x.dtype.is_complex else x, s=s, axes=axes, norm=_OPPOSITE[norm])  # type: ignore[arg-type]


def _ihfftn(x: Any, s: Any, axes: Any, norm: str) -> Any:
    return xp.conj(_ours.rfftn(x, s=s, axes=axes, norm=_OPPOSITE[norm]))  # type: ignore[arg-type]


_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
_HERMITIAN = {"hfftn": _hfftn, "ihfftn": _ihfftn}

fft: Any = _one("fft")
ifft: Any = _one("ifft")
rfft: Any = _one("rfft")
irfft: Any = _one("irfft")
hfft: Any = _one("hfft")
ihfft: Any = _one("ihfft")
fftn: Any = _several("fftn")
ifftn: Any = _several("ifftn")
rfftn: Any = _several("rfftn")
irfftn: Any = _several("irfftn")
hfftn: Any = _several("hfftn")
ihfftn: Any = _several("ihfftn")
fft2: Any = _several("fft2", (-2, -1), "fftn")
ifft2: Any = _several("ifft2", (-2, -1), "ifftn")
rfft2: Any = _several("rfft2", (-2, -1), "rfftn")
irfft2: Any = _several("irfft2", (-2, -1), "irfftn")
hfft2: Any = _several("hfft2", (-2, -1), "hfftn")
ihfft2: Any = _several("ihfft2", (-2, -1), "ihfftn")


def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft`'s results, in cycles per unit of the spacing `d`; `xp` has no effect: they are Tensors."""
    return _ours.fftfreq(n, d=d, device=device)


def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft`'s results; see `fftfreq`."""
    return _ours.rfftfreq(n, d=d, device=device)


def fftshift(x: Any, axes: Axes = None) -> Tensor:
    """`x` rotated so that frequency zero is in the middle of axes (default: all)."""
    return _ours.fftshift(x, axes=_tuple(axes))


def ifftshift(x: Any, axes: Axes = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _ours.ifftshift(x, axes=_tuple(axes))


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length of at least `target` that transforms are fast for: of the prime factors 2, 3, 5, and 7, 11 unless `real`.

    Raises
    ------
    TypeError, ValueError
        If `target` is not a positive integer.
    """
    n, real = _target("next_fast_len", target), as_flag(real, "scipy.fft.next_fast_len", "real")
    return fast_length(n, (2, 3, 5) if real else (2, 3, 5, 7, 11))


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length of at most `target` that transforms are fast for; see `next_fast_len`."""
    n, real = _target("prev_fast_len", target), as_flag(real, "scipy.fft.prev_fast_len", "real")
    primes = (2, 3, 5) if real else (2, 3, 5, 7, 11)
    return next(m for m in range(n, 0, -1) if fast_length(m, primes) == m)


def _target(name: str, target: Any) -> int:
    n = as_int(target, f"scipy.fft.{name}", "target")
    if n < 1:
        msg = f"scipy.fft.{name}: `target` must be a positive length, but got {n}"
        raise ValueError(msg)
    return n


# -- cosine and sine transforms --------------------------------------------------------------------------------------------

Kind = Literal[1, 2, 3, 4]
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _kind(title: str, given: Any) -> int:
    kind = as_int(given, title, "type")
    if kind not in _INVERSE:
        msg = f"{title}: `type` must be 1, 2, 3 or 4, but got {kind}"
        raise ValueError(msg)
    return kind


def _fitted(title: str, x: Any, n: Any, place: int, least: int) -> Any:
    """`x` trimmed, or padded with zeros, to a length along an axis."""
    have = x.shape[place]
    length = have if n is None else as_int(n, title, "n")
    if length < least:
        msg = f"{title}: the length of this transform must be at least {least}, but is {length}"
        raise ValueError(msg)
    if length < have:
        return x[(*(slice(None),) * place, slice(0, length))]
    return x if length == have else xp.pad(x, [(0, length - have if i == place else 0) for i in range(x.ndim)])


def _weighted(x: Any, place: int, first: float, inner: float, last: float) -> Any:
    """`x` times constants along an axis: one at each end, and one between."""
    n = x.shape[place]
    if first == inner == last:
        return x if inner == 1.0 else x * inner
    weights = [first] + [inner] * (n - 2) + [last] if n > 1 else [first if last == inner else last if first == inner else first * last]
    dtype = xp.real(x).dtype if x.dtype.is_complex else x.dtype
    return x * xp.reshape(xp.asarray(weights, dtype=dtype, device=x.device), (-1, *(1,) * (x.ndim - 1 - place)))


def _along(x: Any, kind: int, sine: bool, place: int, norm: str, ortho: bool, inverse: bool) -> Any:
    """One transform along an axis, by the matrix of its kind.

    The ends that a transform halves, or that ``orthogonalize`` scales, are those of the cosines at 0, and of the sine at a quarter turn.
    """
    if inverse:
        kind, norm = _INVERSE[kind], _OPPOSITE[norm]
    n = x.shape[place]
    size = 2.0 * (n + 1 if sine and kind == 1 else n - 1 if kind == 1 else n)
    scale = {"backward": 1.0, "ortho": 1.0 / math.sqrt(size), "forward": 1.0 / size}[norm]
    root = math.sqrt(2.0) if ortho else 1.0
    before, after = [1.0, 1.0], [scale, scale]
    if kind == 1 and not sine:
        before, after = [root / 2, root / 2], [scale / root, scale / root]
    elif kind == 2:
        after[sine] = scale / root
    elif kind == 3:
        before[sine] = root / 2
    x = _weighted(x, place, before[0], 1.0, before[1])
    return _weighted(_cosines(x, kind, sine, place), place, after[0], scale, after[1])


def _transform(
    name: str, x: Any, kind: Any, n: Any, axis: Any, norm: Any, orthogonalize: Any, *, sine: bool, inverse: bool = False
) -> Tensor:  # fmt: skip
    title = f"scipy.fft.{name}"
    kind = _kind(title, kind)
    x, norm = _given(name, x, norm, None)
    if not x.ndim:
        msg = f"{title}: `x` must have at least one axis, but got a 0-d Tensor"
        raise ValueError(msg)
    place = normalize_axis(axis, x.ndim, title)
    ortho = norm == "ortho" if orthogonalize is None else as_flag(orthogonalize, title, "orthogonalize")
    x = _fitted(title, x, n, place, 2 if kind == 1 and not sine else 1)
    out: Tensor = _along(x, kind, sine, place, norm, ortho, inverse)
    return out


def _transform_n(
    name: str, x: Any, kind: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any, *, sine: bool, inverse: bool = False
) -> Tensor:  # fmt: skip
    title = f"scipy.fft.{name}"
    x, _ = _given(name, x, norm, None)
    lengths = None if s is None else [s] if isinstance(s, int) else list(s)
    if axes is None and lengths is not None:
        if len(lengths) > x.ndim:
            msg = f"{title}: `s` has more lengths, {len(lengths)}, than `x` of shape {x.shape} has axes"
            raise ValueError(msg)
        axes = tuple(range(x.ndim - len(lengths), x.ndim))
    places = normalize_axes(_tuple(axes), x.ndim, title, "axes")
    places = tuple(range(x.ndim)) if places is None else places
    if lengths is not None and len(lengths) != len(places):
        msg = f"{title}: `s` and `axes` must have equal lengths, but got s={s!r} and axes={axes!r}"
        raise ValueError(msg)
    for i, place in enumerate(places):
        n = None if lengths is None else lengths[i]
        x = _transform(name, x, kind, n, place, norm, orthogonalize, sine=sine, inverse=inverse)
    return x


def dct(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The discrete cosine transform along an axis (`scipy.fft.dct`).

    Parameters
    ----------
    x : Tensor
        Real; of complex ones both parts are transformed.
    type : {1, 2, 3, 4}
    n : int, optional
        The length: `x` is trimmed, or padded with zeros. At least 2 for type 1.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
        Where the factor of the inverse is: there (the default), split between both, or here.
    overwrite_x, workers
        Without effect.
    orthogonalize : bool, optional
        Scale the ends so that the matrix is orthogonal for ``norm="ortho"``, for which it is the default.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit.

    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> [round(v, 6) + 0.0 for v in fft.dct(xp.asarray([1.0, 1.0, 1.0, 1.0])).tolist()]
    [8.0, 0.0, 0.0, 0.0]
    """
    return _transform("dct", x, type, n, axis, norm, orthogonalize, sine=False)


def idct(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dct`, with the same arguments."""
    return _transform("idct", x, type, n, axis, norm, orthogonalize, sine=False, inverse=True)


def dst(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The discrete sine transform along an axis (`scipy.fft.dst`). Arguments as for `dct`."""
    return _transform("dst", x, type, n, axis, norm, orthogonalize, sine=True)


def idst(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dst`, with the same arguments."""
    return _transform("idst", x, type, n, axis, norm, orthogonalize, sine=True, inverse=True)


def dctn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """`dct` over several axes (`scipy.fft.dctn`).

    Parameters
    ----------
    x, type, norm, overwrite_x, workers, orthogonalize
        As for `dct`.
    s : sequence of int, optional
        The lengths along `axes`.
    axes : int or sequence of int, optional
        Default: all, or the last ones, as many as `s` has lengths.
    """
    return _transform_n("dctn", x, type, s, axes, norm, orthogonalize, sine=False)


def idctn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dctn`, with the same arguments."""
    return _transform_n("idctn", x, type, s, axes, norm, orthogonalize, sine=False, inverse=True)


def dstn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """`dst` over several axes (`scipy.fft.dstn`). Arguments as for `dctn`."""
    return _transform_n("dstn", x, type, s, axes, norm, orthogonalize, sine=True)


def idstn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dstn`, with the same arguments."""
    return _transform_n("idstn", x, type, s, axes, norm, orthogonalize, sine=True, inverse=True)
