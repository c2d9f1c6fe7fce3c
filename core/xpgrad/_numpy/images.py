"""Functions with the names of `scipy.ndimage` that SciPy computes in C; those that SciPy composes of them run as code for NumPy."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

from xpgrad._basics.shapes import normalize_axis
from xpgrad._numpy.semantics import as_array
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray

__all__ = ["FUNCTIONS"]

#: NumPy: `chapters` loaded it. Its functions compute with Tensors.
_np: Any = sys.modules["numpy"]
#: What `numpy.pad` calls the modes of SciPy's filters.
_MODES = {
    "constant": "constant", "grid-constant": "constant", "grid-mirror": "symmetric", "grid-wrap": "wrap", "mirror": "reflect",
    "nearest": "edge", "reflect": "symmetric", "wrap": "wrap",
}  # fmt: skip


def _find_mode(mode: Any) -> str:
    if not isinstance(mode, str) or mode not in _MODES:
        msg = f"boundary mode {mode!r} is not supported; use one of {', '.join(_MODES)}"
        raise RuntimeError(msg)
    return _MODES[mode]


def _as_floats(x: Any) -> Any:
    x = as_array(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _finish(out: Any, output: Any, image: Any, half: float = 0.0) -> Any:
    """Write into `output` if it is an array, or convert to it if it is a dtype, or to the dtype of the image if it is None.

    As in SciPy, complex results stay complex, and integers are rounded toward zero after `half` was added to the magnitude.
    """
    if isinstance(output, (Tensor, _np.ndarray)):
        output[...] = out
        return output
    dtype = _np.dtype(str(image.dtype) if output is None else output)
    if out.dtype.kind == "c":
        dtype = _np.promote_types(dtype, "complex64")
    if dtype.kind in "biu" and out.dtype.kind == "f":
        out = _np.trunc(out + half * _np.sign(out))  # a fraction below 1 is False
    return out.astype(dtype)


def _for_axes(x: Any, value: Any) -> tuple[Any, ...]:
    return tuple(value) if _np.ndim(value) else (value,) * x.ndim


def _pad(x: Any, before: dict[int, int], sizes: dict[int, int], mode: Any, cval: Any) -> Any:
    """Return an array with further elements beside the given axes, so that windows of `sizes` have all elements."""
    named = _for_axes(x, mode)
    for axis, size in sizes.items():
        widths = [(0, 0)] * x.ndim
        widths[axis] = before[axis], size - 1 - before[axis]
        if min(widths[axis]) < 0:
            msg = "invalid origin: the window does not contain its center"
            raise ValueError(msg)
        kind = _find_mode(named[axis])
        x = _np.pad(x, widths, kind, **({"constant_values": cval} if kind == "constant" else {}))
    return x


def _windows(x: Any, sizes: dict[int, int], origin: Any, mode: Any, cval: Any) -> Any:
    """Yield, for each place in a window, its index and the array of the elements there."""
    origins = _for_axes(x, origin)
    shape = x.shape
    padded = _pad(x, {axis: size // 2 + origins[axis] for axis, size in sizes.items()}, sizes, mode, cval)
    for place in itertools.product(*map(range, sizes.values())):
        parts = dict(zip(sizes, place))
        yield place, padded[tuple(slice(parts.get(k, 0), parts.get(k, 0) + shape[k]) for k in range(x.ndim))]


def _correlate(x: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    image, weights = as_array(x), _conjugate(_as_floats(weights))
    x = _as_floats(image)
    if weights.ndim != x.ndim:
        msg = f"weights have {weights.ndim} axes, but the array has {x.ndim}"
        raise RuntimeError(msg)
    return _finish(sum(weights[i] * part for i, part in _windows(x, dict(enumerate(weights.shape)), origin, mode, cval)), output, image)


def _conjugate(weights: Any) -> Any:
    return weights.conj() if weights.dtype.kind == "c" else weights


def _convolve(x: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    weights = _conjugate(_as_floats(weights))  # a correlation conjugates them again
    origins = tuple(-o - (size % 2 == 0) for o, size in zip(_for_axes(weights, origin), weights.shape))
    return _correlate(x, _np.flip(weights), output, mode, cval, origins)


def _correlate1d(x: Any, weights: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: int = 0) -> Any:
    image, weights = as_array(x), _conjugate(_as_floats(weights))
    parts = _windows(_as_floats(image), {normalize_axis(axis, image.ndim, "scipy.ndimage"): weights.shape[0]}, origin, mode, cval)
    return _finish(sum(weights[k] * part for (k,), part in parts), output, image)


def _uniform1d(x: Any, size: int, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: int = 0) -> Any:
    image = as_array(x)
    parts = _windows(_as_floats(image), {normalize_axis(axis, image.ndim, "scipy.ndimage"): size}, origin, mode, cval)
    return _finish(sum(part for _, part in parts) / size, output, image)  # sums of integers are exact


def _extremum1d(choose: Any) -> Callable[..., Any]:
    def compute(x: Any, size: int, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: int = 0) -> Any:
        x = as_array(x)
        parts = [part for _, part in _windows(x, {normalize_axis(axis, x.ndim, "scipy.ndimage"): size}, origin, mode, cval)]
        return _finish(functools.reduce(choose, parts), output, x)

    return compute


def _median(
    x: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0
) -> Any:
    x = as_array(x)
    mask = _np.ones(_for_axes(x, size), dtype=bool) if footprint is None else _np.asarray(footprint, dtype=bool)
    parts = [part for i, part in _windows(x, dict(enumerate(mask.shape)), origin, mode, cval) if mask[i]]
    return _finish(_np.sort(_np.stack(parts), axis=0)[len(parts) // 2], output, x)


def _fold(places: Any, n: int, mode: str, cval: Any) -> Any:
    """Return coordinates within an axis of length `n`, and where they are outside, for a mode in which the value there is `cval`."""
    if mode in ("constant", "grid-constant"):
        return _np.clip(places, 0, n - 1), (places < 0) | (places > n - 1)
    if mode == "nearest":
        return _np.clip(places, 0, n - 1), None
    if mode == "mirror":
        period = max(2 * n - 2, 1)
        places = places % period
        return _np.where(places > n - 1, period - places, places), None
    msg = f"`map_coordinates`: xpgrad has the modes 'constant', 'mirror' and 'nearest', not {mode!r}"
    raise TypeError(msg)


def _map_coordinates(
    x: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Any:
    if order not in (0, 1):
        msg = f"`map_coordinates`: xpgrad interpolates with `order` 0 or 1, not {order}"
        raise TypeError(msg)
    if mode == "grid-constant":
        msg = "`map_coordinates`: xpgrad has the modes 'constant', 'mirror' and 'nearest', not 'grid-constant'"
        raise TypeError(msg)
    image, places = as_array(x), _as_floats(coordinates)
    x = _as_floats(image)
    x = asarray(x) if isinstance(places, Tensor) else x
    inside, outside = zip(*[_fold(places[k], n, mode, cval) for k, n in enumerate(x.shape)])
    if order == 0:
        out = x[tuple(_np.floor(p + 0.5).astype("int64") for p in inside)]
    else:
        lower = [_np.clip(_np.floor(p.detach() if isinstance(p, Tensor) else p), 0, max(n - 2, 0)).astype("int64")
                 for p, n in zip(inside, x.shape)]  # fmt: skip
        parts = []
        for corner in itertools.product((0, 1), repeat=x.ndim):
            weight = 1.0
            for up, low, p in zip(corner, lower, inside):
                weight = weight * (p - low if up else 1.0 - (p - low))
            parts.append(weight * x[tuple(_np.clip(low + up, 0, n - 1) for up, low, n in zip(corner, lower, x.shape))])
        out = sum(parts)
    for mask in outside:
        out = out if mask is None else _np.where(mask, cval, out)
    return _finish(out, output, image, 0.5)


def _affine(
    x: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    x, matrix = as_array(x), _as_floats(matrix)
    grid = _np.indices(x.shape if output_shape is None else tuple(output_shape), dtype=float)
    if matrix.ndim == 1:
        places = matrix.reshape((-1,) + (1,) * x.ndim) * grid
    else:
        if matrix.shape[1] == x.ndim + 1:
            matrix, offset = matrix[: x.ndim, :-1], matrix[: x.ndim, -1]
        places = _np.tensordot(matrix, grid, 1)
    offset = _as_floats(offset)
    places = places + (offset.reshape((-1,) + (1,) * x.ndim) if offset.ndim else offset)
    return _map_coordinates(x, places, output, order, mode, cval)


def _shift(x: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True) -> Any:
    x = as_array(x)
    return _affine(x, _np.ones(x.ndim), -_as_floats(shift), None, output, order, mode, cval)


#: By the public name in `scipy.ndimage`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "affine_transform": _affine,
    "convolve": _convolve,
    "correlate": _correlate,
    "correlate1d": _correlate1d,
    "map_coordinates": _map_coordinates,
    "maximum_filter1d": _extremum1d(_np.maximum),
    "median_filter": _median,
    "minimum_filter1d": _extremum1d(_np.minimum),
    "shift": _shift,
    "uniform_filter1d": _uniform1d,
}
