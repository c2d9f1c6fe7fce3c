"""Sample calls of NumPy's public functions, for the tests of their derivatives; the reference is NumPy on the raw arrays."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from support.central_differences import numbers
from xpgrad._numpy.dispatch import PREFIXES

__all__ = ["CASES", "PLACES", "Case"]

#: NumPy's modules that have functions with rules, with the prefix of these functions' names in the tables.
PLACES: list[tuple[str, Any]] = [(prefix, importlib.import_module(module)) for module, prefix in PREFIXES.items()]


class Case(NamedTuple):
    """A function of arrays, and points at which it is differentiable."""

    function: Callable[..., Any]
    points: tuple[np.ndarray, ...]
    constant: bool = False  # whether no result has a derivative


V, W = numbers((5,)), numbers((5,), 4.37)
RANDOM = np.random.default_rng(0)
R, B = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(4, 2))
M, N = numbers((3, 4)), numbers((3, 4), 2.5)
S = numbers((3, 3), 0.5) + 3.0 * np.eye(3)
T = numbers((2, 3, 4), 2.0)
P = np.abs(numbers((3, 4), 1.3)) + 0.5
U = 0.8 * numbers((3, 4), 3.3)
H = np.array([[1.0, -2.0], [0.5, 3.0]])
SPIRAL = np.array([[1.0, -2.0], [3.0, 4.0]])  # it has a conjugate pair of eigenvalues
Z = numbers((3, 4), 1.0, np.complex128)
HOLES = np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, M)
MASK = np.arange(12).reshape(3, 4) % 3 != 1
KEYS = np.array([2, 0, 1, 2])
WEIGHTS = np.arange(12.0).reshape(3, 4) % 5
KNOTS = np.array([-1.5, -0.4, 0.3, 1.1, 2.0])


def _d(function: Callable[..., Any], *points: Any) -> Case:
    return Case(function, points)


def _c(function: Callable[..., Any], *points: Any) -> Case:
    return Case(function, points, True)


def _f(name: str, *rest: Any, **options: Any) -> Callable[..., Any]:
    """Return a NumPy function with fixed trailing arguments and options."""
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    return lambda *xs: function(*xs, *rest, **options)


def _unit(name: str) -> float:
    return 100.0 if name.endswith("percentile") else 1.0


def _quantiles(name: str) -> list[Case]:
    unit = _unit(name)
    methods = (
        "lower",
        "higher",
        "nearest",
        "midpoint",
        "weibull",
        "hazen",
        "median_unbiased",
        "normal_unbiased",
        "interpolated_inverted_cdf",
        "inverted_cdf",
        "averaged_inverted_cdf",
        "closest_observation",
    )
    return [
        _d(_f(name, 0.3 * unit), M),
        _d(_f(name, axis=1, keepdims=True), M, np.array([0.22, 0.61]) * unit),
        *(_d(_f(name, [0.13 * unit, 0.55 * unit], axis=0, method=m), numbers((7, 2))) for m in methods),
        _d(_f(name, [0.0, 0.2 * unit, unit], method="inverted_cdf", weights=WEIGHTS), M),
        # NB: NumPy 2.4 fails for the weights of one row where nan is left out.
        *([] if name.startswith("nan") else [_d(_f(name, 0.6 * unit, axis=1, method="inverted_cdf", weights=WEIGHTS[0]), M)]),
        *([_d(_f(name, 0.4 * unit, axis=1), HOLES)] if name.startswith("nan") else []),
        *([_d(_f(name, 0.4 * unit, axis=1, method="inverted_cdf", weights=WEIGHTS), HOLES)] if name.startswith("nan") else []),
    ]


def _common(x: Any) -> Any:
    """Return where an array and others have their common numbers."""
    return np.intersect1d(x, np.array([0.25, 7.0, 0.5, 0.25]), return_indices=True)[1:]


def _by_mean(lane: Any, widths: tuple[int, int], axis: int, options: dict[str, float]) -> None:
    """A mode of `np.pad`: the border gets a multiple of the mean, on one side less the axis."""
    inside = lane[widths[0] : lane.shape[0] - widths[1]]
    if widths[0]:
        lane[: widths[0]] = np.mean(inside) * options["factor"]
    if widths[1]:
        lane[-widths[1] :] = np.mean(inside) - axis


def _on_a_copy(write: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function that writes in place into one that writes into a copy of its first argument and returns it."""

    def function(x: Any, *others: Any) -> Any:
        out = np.multiply(x, 1.0)
        write(out, *others)
        return out

    return function


#: Universal functions of one operand, with points in their domains.
_ONE = {
    "absolute": M, "arccos": U, "arccosh": P + 1, "arcsin": U, "arcsinh": M, "arctan": M, "arctanh": U, "cbrt": M, "ceil": M,
    "conjugate": M, "cos": M, "cosh": M, "deg2rad": M, "degrees": M, "exp": M, "exp2": M, "expm1": M, "fabs": M, "floor": M, "log": P,
    "log10": P, "log1p": P, "log2": P, "modf": 3 * M, "negative": M, "positive": M, "rad2deg": M, "radians": M, "reciprocal": P,
    "rint": 3 * M, "sign": M, "sin": M, "sinh": M, "sqrt": P, "square": M, "tan": M, "tanh": M, "trunc": 3 * M, "frexp": 7 * M,
}  # fmt: skip
_TWO = {
    "add": (M, N), "arctan2": (M, N), "copysign": (M, N), "divide": (M, P), "divmod": (5 * M, P), "float_power": (P, M),
    "floor_divide": (5 * M, P), "fmax": (M, N), "fmin": (M, N), "fmod": (5 * M, N), "heaviside": (M, N), "hypot": (M, N),
    "logaddexp": (M, N), "logaddexp2": (M, N), "matmul": (M, N.T.copy()), "maximum": (M, N), "minimum": (M, N), "multiply": (M, N),
    "power": (P, N), "remainder": (5 * M, N), "subtract": (M, N), "vecdot": (M, N),
}  # fmt: skip
_TRUTHS = (
    "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "not_equal", "nextafter",
)  # fmt: skip

CASES: dict[str, list[Case]] = {
    **{name: [_d(getattr(np, name), x)] for name, x in _ONE.items()},
    **{name: [_d(getattr(np, name), *xs)] for name, xs in _TWO.items()},
    **{name: [_c(getattr(np, name), M, N)] for name in _TRUTHS},
    **{name: [_c(getattr(np, name), M)] for name in ("isfinite", "isinf", "isnan", "logical_not", "signbit", "spacing")},
    "matvec": [_d(np.matvec, M, V[:4])],
    "vecmat": [_d(np.vecmat, V[:3], M)],
    "ldexp": [_d(lambda x: np.ldexp(x, np.array([1, -2, 3, 40])), M)],
    **{name: [_c(lambda x, name=name: _f(name)(x > 0, x > 0.3), M)] for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "invert": [_c(lambda x: np.invert(x > 0), M)],
    "left_shift": [_c(lambda x: np.left_shift(np.argsort(x), 1), M)],
    "right_shift": [_c(lambda x: np.right_shift(np.argsort(x), 1), M)],
    # -- reductions
    "sum": [
        _d(np.sum, M),
        _d(lambda x: np.sum(x, axis=0, keepdims=True), M),
        _d(lambda x: np.sum(x, 1, initial=2.0, where=MASK), M),
        _d(lambda x, s: np.sum(x, axis=(0, 1), initial=s), M, V[0]),
    ],
    "prod": [_d(np.prod, P), _d(lambda x: np.prod(x, axis=1, where=MASK), P), _d(lambda x: np.prod(x, 0, initial=2.0), P)],
    "max": [_d(np.max, M), _d(lambda x: np.max(x, axis=1, initial=0.5, where=MASK), M)],
    "min": [_d(lambda x: np.min(x, axis=0, keepdims=True), M), _d(lambda x: np.min(x, axis=1, initial=0.5, where=MASK), M)],
    "amax": [_d(np.amax, M)],
    "amin": [_d(np.amin, M)],
    "ptp": [_d(np.ptp, M), _d(lambda x: np.ptp(x, axis=1), M)],
    "mean": [_d(np.mean, M), _d(lambda x: np.mean(x, axis=0, where=MASK, keepdims=True), M)],
    "var": [
        _d(lambda x: np.var(x, axis=1, ddof=1), M),
        _d(lambda x: np.var(x, 0, where=MASK), M),
        _d(lambda x: np.var(x, 0, correction=1), M),
    ],
    "std": [_d(np.std, M), _d(lambda x: np.std(x, axis=1, where=MASK, ddof=1), M), _d(lambda x, m: np.std(x, 1, mean=m), M, N[:, :1])],
    "average": [
        _d(np.average, M),
        _d(lambda x, w: np.average(x, weights=w), M, P),
        _d(lambda x, w: np.average(x, 1, w, returned=True), M, P[0]),
        _d(lambda x, w: np.average(x, 0, weights=w, keepdims=True), M, P),
    ],
    "nansum": [_d(lambda x: np.nansum(x, axis=0), HOLES)],
    "nanprod": [_d(lambda x: np.nanprod(x, axis=1), HOLES)],
    "nanmax": [_d(lambda x: np.nanmax(x, axis=1), HOLES), _d(np.nanmax, HOLES)],
    "nanmin": [_d(lambda x: np.nanmin(x, axis=0, keepdims=True), HOLES)],
    "nanmean": [_d(lambda x: np.nanmean(x, axis=0), HOLES)],
    "nanvar": [_d(lambda x: np.nanvar(x, axis=1, ddof=1), HOLES)],
    "nanstd": [_d(np.nanstd, HOLES)],
    "nancumsum": [_d(lambda x: np.nancumsum(x, axis=1), HOLES)],
    "nancumprod": [_d(np.nancumprod, HOLES)],
    "cumsum": [_d(np.cumsum, M), _d(lambda x: np.cumsum(x, axis=1), M)],
    "cumprod": [_d(lambda x: np.cumprod(x, axis=0), M)],
    "cumulative_sum": [_d(lambda x: np.cumulative_sum(x, axis=0, include_initial=True), M)],
    "cumulative_prod": [_d(lambda x: np.cumulative_prod(x, axis=1), M)],
    "all": [_c(lambda x: np.all(x > 0, axis=1), M), _c(np.all, M)],
    "any": [_c(lambda x: np.any(x, axis=0, where=MASK), M)],
    "count_nonzero": [_c(lambda x: np.count_nonzero(x > 0, axis=1), M)],
    "argmax": [_c(lambda x: np.argmax(x, axis=1, keepdims=True), M)],
    "argmin": [_c(np.argmin, M)],
    "nanargmax": [_c(lambda x: np.nanargmax(x, axis=1), HOLES)],
    "nanargmin": [_c(np.nanargmin, HOLES)],
    "diff": [
        _d(np.diff, M),
        _d(lambda x, a: np.diff(x, 2, 0, prepend=a), M, N[:1]),
        _d(lambda x, a: np.diff(x, append=a), V, V[0]),
        _d(lambda x: np.diff(x, 0, prepend=1.0), M),
    ],
    "ediff1d": [_d(np.ediff1d, M), _d(lambda x, a, b: np.ediff1d(x, to_end=a, to_begin=b), V, W[:2], W[0])],
    "trapezoid": [
        _d(np.trapezoid, M),
        _d(lambda y, x: np.trapezoid(y, x, axis=1), M, np.cumsum(P[0])),
        _d(lambda y, d: np.trapezoid(y, dx=d), V, P[0, 0]),
        _d(lambda y, x: np.trapezoid(y, x, axis=0), M, np.cumsum(P, axis=0)),
    ],
    "gradient": [
        _d(np.gradient, V),
        _d(lambda x: np.gradient(x, axis=1, edge_order=2), M),
        _d(lambda x, h: np.gradient(x, h), V, P[0, 0]),
        _d(lambda x, a, b: np.gradient(x, a, b), M, np.cumsum(P[:, 0]), np.cumsum(P[0])),
        _d(lambda x: np.gradient(x, 0.5, edge_order=2), V),
        _d(lambda x, a: np.gradient(x, a, edge_order=2), V, np.cumsum(P.ravel()[:5])),
    ],
    # -- creation
    "zeros_like": [_c(np.zeros_like, M), _c(lambda x: np.zeros_like(x, dtype=int, shape=(2,)), M)],
    "ones_like": [_c(np.ones_like, M)],
    "empty_like": [_c(lambda x: np.shape(np.empty_like(x)), M)],
    "full_like": [_d(lambda x, v: np.full_like(x, v), M, V[0])],
    "copy": [_d(np.copy, M)],
    "astype": [_d(lambda x: np.astype(x, np.complex128), M)],
    "linspace": [
        _d(lambda a, b: np.linspace(a, b, 4), V[0], V[1]),
        _d(lambda a, b: np.linspace(a, b, 3, endpoint=False, axis=1), V, W),
        _d(lambda a, b: [np.linspace(a, b, n) for n in (1, 2)], V, W),
    ],
    "logspace": [_d(lambda a, b, c: np.logspace(a, b, 4, base=c), V[0], V[1], P[0, 0])],
    "geomspace": [_d(lambda a, b: np.geomspace(a, b, 4), P[0, 0], P[0, 1])],
    "meshgrid": [
        _d(np.meshgrid, V, W[:3]),
        _d(lambda a, b, c: np.meshgrid(a, b, c, sparse=True), V, W[:3], W[:2]),
        _d(lambda a, b: np.meshgrid(a, b, indexing="ij"), V, W),
    ],
    "tril": [_d(np.tril, M), _d(lambda x: np.tril(x, 1), V)],
    "triu": [_d(lambda x: np.triu(x, -1), M)],
    "diag": [_d(np.diag, V), _d(lambda x: np.diag(x, 1), M), _d(lambda x: np.diag(x, -2), V)],
    "diagflat": [_d(lambda x: np.diagflat(x, 1), M[:2, :2])],
    "vander": [_d(np.vander, V), _d(lambda x: np.vander(x, 3, increasing=True), V)],
    # -- manipulation
    "shape": [_c(np.shape, M)],
    "ndim": [_c(np.ndim, M)],
    "size": [_c(np.size, M), _c(lambda x: np.size(x, 1), M)],
    "reshape": [_d(lambda x: np.reshape(x, (4, -1)), M), _d(lambda x: np.reshape(x, (4, 3), order="F"), M)],
    "ravel": [_d(np.ravel, M), _d(lambda x: np.ravel(x, order="F"), M)],
    "transpose": [_d(np.transpose, T), _d(lambda x: np.transpose(x, (1, 0, 2)), T)],
    "matrix_transpose": [_d(np.matrix_transpose, T)],
    "swapaxes": [_d(lambda x: np.swapaxes(x, 0, -1), T)],
    "moveaxis": [_d(lambda x: np.moveaxis(x, [0, 1], [-1, 0]), T)],
    "rollaxis": [_d(lambda x: np.rollaxis(x, 2), T), _d(lambda x: np.rollaxis(x, 0, 2), T)],
    "expand_dims": [_d(lambda x: np.expand_dims(x, (0, 2)), M)],
    "squeeze": [_d(lambda x: np.squeeze(x), M[None, :, :1]), _d(lambda x: np.squeeze(x, axis=0), M[None])],
    "atleast_1d": [_d(np.atleast_1d, V[0], M)],
    "atleast_2d": [_d(np.atleast_2d, V)],
    "atleast_3d": [_d(np.atleast_3d, V, M, V[0])],
    "broadcast_to": [_d(lambda x: np.broadcast_to(x, (2, 3, 4)), M)],
    "broadcast_arrays": [_d(np.broadcast_arrays, M, V[:4])],
    "concatenate": [_d(lambda x, y: np.concatenate([x, y], axis=1), M, N), _d(lambda x, y: np.concatenate((x, y), axis=None), M, V)],
    "stack": [_d(lambda x, y: np.stack([x, y], axis=1), M, N)],
    "vstack": [_d(lambda x, y: np.vstack([x, y]), M, V[:4])],
    "hstack": [_d(lambda x, y: np.hstack([x, y]), V, W), _d(lambda x, y: np.hstack([x, y]), M, N)],
    "dstack": [_d(lambda x, y: np.dstack([x, y]), M, N)],
    "column_stack": [_d(lambda x, y: np.column_stack([x, y]), M, V[:3])],
    "append": [_d(np.append, M, V), _d(lambda x, y: np.append(x, y, axis=0), M, N)],
    "block": [
        _d(lambda x, y: np.block([[x, y], [y, x]]), M, N),
        _d(lambda x, y: np.block([x, 1.5, y]), V, W),
        _d(lambda x: np.block(x), M),
    ],
    "split": [_d(lambda x: np.split(x, 2, axis=1), M), _d(lambda x: np.split(x, [1, 3]), V)],
    "array_split": [_d(lambda x: np.array_split(x, 3), V)],
    "hsplit": [_d(lambda x: np.hsplit(x, 2), M), _d(lambda x: np.hsplit(x, [2]), V)],
    "vsplit": [_d(lambda x: np.vsplit(x, 3), M)],
    "dsplit": [_d(lambda x: np.dsplit(x, 2), T)],
    "unstack": [_d(lambda x: np.unstack(x, axis=1), M)],
    "tile": [_d(lambda x: np.tile(x, (2, 1, 2)), M), _d(lambda x: np.tile(x, 2), V)],
    "repeat": [_d(lambda x: np.repeat(x, 2), M), _d(lambda x: np.repeat(x, [1, 0, 2], axis=0), M)],
    "resize": [_d(lambda x: np.resize(x, (2, 4)), V)],
    "delete": [
        _d(lambda x: np.delete(x, 1, axis=1), M),
        _d(lambda x: np.delete(x, [0, -1]), V),
        _d(lambda x: np.delete(x, slice(1, 3), 1), M),
    ],
    "insert": [
        _d(lambda x, v: np.insert(x, 1, v), V, W[0]),
        _d(lambda x, v: np.insert(x, [1, 3], v), V, W[:2]),
        _d(lambda x, v: np.insert(x, 1, v, axis=1), M, V[:3]),
        _d(lambda x, v: np.insert(x, 1, v), V, W[:2]),
        _d(lambda x, v: np.insert(x, 1, v, axis=0), M, N[:2]),
        _d(lambda x, v: np.insert(x, [1, 1], v, axis=1), M, N[:, :2]),
        _d(lambda x, v: np.insert(x, slice(1, 4, 2), v), V, W[:2]),
    ],
    "trim_zeros": [_d(lambda x: np.trim_zeros(np.multiply(x, np.array([0.0, 1.0, 0.0, 1.0, 0.0]))), V)],
    "flip": [_d(np.flip, M), _d(lambda x: np.flip(x, 1), M)],
    "fliplr": [_d(np.fliplr, M)],
    "flipud": [_d(np.flipud, M)],
    "rot90": [_d(np.rot90, M), _d(lambda x: np.rot90(x, 3), M), _d(lambda x: np.rot90(x, 2, (1, 2)), T)],
    "roll": [_d(lambda x: np.roll(x, 2), M), _d(lambda x: np.roll(x, (1, 2), axis=(0, 1)), M), _d(lambda x: np.roll(x, 1, axis=(0, 1)), M)],
    "diagonal": [_d(lambda x: np.diagonal(x, 1, 1, 2), T), _d(np.diagonal, M)],
    "trace": [_d(np.trace, M), _d(lambda x: np.trace(x, 1, 0, 2), T)],
    "pad": [
        _d(lambda x: np.pad(x, 1), M),
        _d(lambda x: np.pad(x, ((1, 2), (0, 3)), "edge"), M),
        _d(lambda x: np.pad(x, (2, 3), "reflect"), V),
        _d(lambda x: np.pad(x, 6, "symmetric"), V),
        _d(lambda x: np.pad(x, 7, mode="wrap"), V),
        _d(lambda x: np.pad(x, ((1, 2), (0, 3)), _by_mean, factor=3.0), M),
        _d(lambda x: np.pad(x, 0, _by_mean, factor=3.0), V),
        _d(lambda x: np.pad(x, 2, "mean"), M),
        _d(lambda x: np.pad(x, 9, "reflect"), V),
        _d(lambda x: np.pad(x, 1, "maximum"), M),
        _d(lambda x: np.pad(x, 1, "minimum"), M),
        _d(lambda x: np.pad(x, 1, "median"), M),
        _d(lambda x: np.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))), M),
        _d(lambda x: np.pad(x, ((2, 3), (4, 0)), "linear_ramp", end_values=((1.0, -2.0), (0.5, 0.0))), M),
        _d(lambda x: np.pad(x, ((1, 2), (2, 1)), "mean", stat_length=((1, 2), (3, 9))), M),
        _d(lambda x: np.pad(x, 2, "maximum", stat_length=2), M),
        _d(lambda x: np.pad(x, ((11, 4), (0, 17)), "reflect", reflect_type="odd"), M),
        _d(lambda x: np.pad(x, (13, 21), "symmetric", reflect_type="odd"), V),
        _c(lambda x: np.pad(np.astype(np.multiply(x, 9.0), np.int64), 2, "mean"), V),
        _c(lambda x: np.pad(np.astype(np.multiply(x, 9.0), np.int64), 3, "linear_ramp", end_values=-2), V),
    ],
    # -- choosing, sorting, sets
    "where": [_d(lambda x, y: np.where(MASK, x, y), M, N), _d(lambda x: np.where(x > 0, x, 0), M), _c(lambda x: np.where(x > 0), M)],
    "take": [
        _d(lambda x: np.take(x, KEYS), M),
        _d(lambda x: np.take(x, [[0, 1], [1, -1]], axis=1), M),
        _d(lambda x: np.take(x, [7, -9], mode="wrap"), V),
        _d(lambda x: np.take(x, 2, axis=1), M),
    ],
    "take_along_axis": [_d(lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), M)],
    "compress": [_d(lambda x: np.compress([True, False, True], x, axis=0), M)],
    "extract": [_d(lambda x: np.extract(MASK, x), M)],
    "choose": [_d(lambda x, y: np.choose(np.array([0, 1, 1, 0, 1]), [x, y]), V, W)],
    "select": [_d(lambda x, y: np.select([x > 0.5, x < -0.5], [x, np.multiply(y, x)], default=7.0), M, N)],
    "piecewise": [
        _d(lambda x: np.piecewise(x, [x < 0, x >= 0.2], [lambda t: -t, lambda t: np.log(t), 0.5]), M),
        _c(lambda x: np.piecewise(np.full(3, 0.5, np.float32), [x[:3] > 0], [np.exp, -1.0]), V),
    ],
    "clip": [
        _d(lambda x: np.clip(x, -0.3, 0.4), M),
        _d(lambda x, a, b: np.clip(x, a, b), M, N[0] - 1, N[:, :1] + 0.5),
        _d(lambda x: np.clip(x, None, 0.1), M),
        _d(lambda x: np.clip(x, min=0.1), M),
    ],
    "sort": [_d(np.sort, M), _d(lambda x: np.sort(x, axis=None), M), _d(lambda x: np.sort(x, axis=0, kind="stable"), M)],
    "argsort": [_c(lambda x: np.argsort(x, axis=0), M)],
    "partition": [_d(lambda x: np.take(np.partition(x, 2), 2), V)],
    "argpartition": [_c(lambda x: np.take(np.argpartition(x, 2), 2), V)],
    "lexsort": [_c(lambda x, y: np.lexsort((x, y > 0)), V, W)],
    "nonzero": [_c(np.nonzero, M)],
    "flatnonzero": [_c(lambda x: np.flatnonzero(x > 0), M)],
    "argwhere": [_c(lambda x: np.argwhere(x > 0), M)],
    "searchsorted": [_c(lambda k, x: np.searchsorted(k, x, side="right"), KNOTS, M)],
    "digitize": [_c(lambda x, k: np.digitize(x, k), M, KNOTS)],
    "unravel_index": [_c(lambda x: np.unravel_index(np.argsort(x), (3, 2)), V)],
    "ravel_multi_index": [
        _c(lambda x: np.ravel_multi_index((np.argsort(x), np.argsort(-x)), (5, 6)), V),
        _c(lambda x: np.ravel_multi_index((np.argsort(x), np.argsort(-x) - 3), (3, 4), mode=("clip", "wrap"), order="F"), V),
    ],
    "diag_indices_from": [_c(np.diag_indices_from, S)],
    "tril_indices_from": [_c(np.tril_indices_from, M)],
    "triu_indices_from": [_c(lambda x: np.triu_indices_from(x, 1), M)],
    "ix_": [_c(lambda x: np.ix_(np.argsort(x), x > 0), V)],
    "unique": [
        _d(np.unique, np.array([3.0, 1.0, 2.0, 4.5])),
        _c(lambda x: np.unique(np.rint(2 * x), return_index=True, return_inverse=True, return_counts=True)[1:], M),
        _d(lambda x: np.unique(x, axis=1), M),
        _c(lambda x: np.unique(np.rint(x), True, True, True, axis=0)[1:], R),
    ],
    "unique_all": [_d(np.unique_all, M)],
    "unique_counts": [_d(np.unique_counts, M)],
    "unique_inverse": [_d(np.unique_inverse, M)],
    "unique_values": [_d(lambda x: np.sort(np.unique_values(x)), M)],
    "isin": [_c(lambda x: np.isin(x, np.array([0.5, 1.0])), M)],
    "union1d": [_d(np.union1d, V, W)],
    "intersect1d": [_d(lambda x: np.intersect1d(x, np.copy(x)), np.array([0.5, 2.0, 0.25])), _c(_common, np.array([0.5, 2.0, 0.25]))],
    "setdiff1d": [_d(lambda x: np.setdiff1d(x, np.array([0.5, 9.0])), np.array([0.75, 2.0, 0.25]))],
    "setxor1d": [_d(np.setxor1d, V, W)],
    "isclose": [_c(np.isclose, M, N)],
    "allclose": [_c(np.allclose, M, N)],
    "may_share_memory": [_c(lambda x: np.may_share_memory(x, x[0]), M), _c(np.may_share_memory, M, N)],
    "shares_memory": [_c(lambda x: np.shares_memory(x, x[0]), M), _c(np.shares_memory, M, N)],
    "array_equal": [_c(np.array_equal, M, N)],
    "array_equiv": [_c(np.array_equiv, M, N)],
    "iscomplexobj": [_c(np.iscomplexobj, M)],
    "isrealobj": [_c(np.isrealobj, M)],
    "iscomplex": [_c(np.iscomplex, M), _c(np.iscomplex, Z)],
    "isreal": [_c(np.isreal, M)],
    "isneginf": [_c(np.isneginf, M)],
    "isposinf": [_c(np.isposinf, M)],
    "result_type": [_c(np.result_type, M, N)],
    "can_cast": [_c(lambda x: np.can_cast(x, np.complex128), M)],
    "min_scalar_type": [_c(np.min_scalar_type, M)],
    "common_type": [_c(np.common_type, M, N)],
    # -- writes in place
    "copyto": [_d(_on_a_copy(np.copyto), M, N), _d(_on_a_copy(lambda x, y: np.copyto(x, y, where=MASK)), M, V[:4])],
    "fill_diagonal": [
        _d(_on_a_copy(np.fill_diagonal), M, V[0]),
        _d(_on_a_copy(lambda a, v: np.fill_diagonal(a, v, wrap=True)), numbers((9, 3)), V),
    ],
    "put": [_d(_on_a_copy(lambda x, v: np.put(x, [0, -1, 5], v)), M, V[:3])],
    "place": [_d(_on_a_copy(lambda x, v: np.place(x, MASK, v)), M, V[:3])],
    "putmask": [_d(_on_a_copy(lambda x, v: np.putmask(x, MASK, v)), M, N)],
    "put_along_axis": [_d(_on_a_copy(lambda x, v: np.put_along_axis(x, np.array([[1], [0], [3]]), v, axis=1)), M, V[:3, None])],
    # -- products and linear algebra
    "dot": [_d(np.dot, M, N.T.copy()), _d(np.dot, V, W), _d(np.dot, T, numbers((2, 4, 3))), _d(np.dot, V[0], M), _d(np.dot, T, V[:4])],
    "inner": [_d(np.inner, M, N), _d(np.inner, V, W)],
    "vdot": [_d(np.vdot, M, N), _d(np.vdot, Z, Z.conj() + 1)],
    "outer": [_d(np.outer, V, W)],
    "kron": [_d(np.kron, M, S), _d(np.kron, V, M)],
    "tensordot": [_d(lambda x, y: np.tensordot(x, y, axes=([1, 2], [0, 1])), T, M), _d(lambda x, y: np.tensordot(x, y, 1), M, V[:4])],
    "cross": [_d(np.cross, S, S[::-1].copy()), _d(lambda x, y: np.cross(x, y, axis=0), M, N)],
    "einsum": [
        _d(lambda x, y: np.einsum("ij,kj->ik", x, y), M, N),
        _d(lambda x: np.einsum("ii", x), S),
        _d(lambda x, y: np.einsum(x, [0, 1], y, [0, 1], [1]), M, N),
        _d(lambda x, y: np.einsum("...j,j", x, y, optimize=True), T, V[:4]),
    ],
    "linalg.matmul": [_d(np.linalg.matmul, M, N.T.copy())],
    "linalg.vecdot": [_d(np.linalg.vecdot, M, N)],
    "linalg.outer": [_d(np.linalg.outer, V, W)],
    "linalg.cross": [_d(np.linalg.cross, S, S[::-1].copy())],
    "linalg.tensordot": [_d(lambda x, y: np.linalg.tensordot(x, y, axes=1), M, V[:4])],
    "linalg.multi_dot": [_d(lambda x, y, z: np.linalg.multi_dot([x, y, z]), V[:3], S, M)],
    "linalg.inv": [_d(np.linalg.inv, S)],
    "linalg.pinv": [_d(np.linalg.pinv, R), _d(lambda x: np.linalg.pinv(x, rcond=1e-10), R), _d(lambda x: np.linalg.pinv(x, rtol=0.3), R)],
    "linalg.det": [_d(np.linalg.det, S)],
    "linalg.slogdet": [_d(np.linalg.slogdet, S)],
    "linalg.solve": [_d(np.linalg.solve, S, M), _d(np.linalg.solve, S, V[:3])],
    "linalg.tensorinv": [_d(np.linalg.tensorinv, (np.eye(6) * 3 + numbers((6, 6))).reshape(2, 3, 3, 2))],
    "linalg.tensorsolve": [_d(np.linalg.tensorsolve, (np.eye(6) * 3 + numbers((6, 6))).reshape(2, 3, 3, 2), numbers((2, 3)))],
    "linalg.matrix_power": [_d(lambda x: np.linalg.matrix_power(x, 3), S), _d(lambda x: np.linalg.matrix_power(x, -2), S)],
    "linalg.matrix_rank": [_c(np.linalg.matrix_rank, M)],
    "linalg.lstsq": [
        _d(lambda a, b: np.linalg.lstsq(a, b)[:2], R, B),
        _d(lambda a, b: np.linalg.lstsq(a, b)[0], R, V[:4]),
        _d(lambda a, b: np.linalg.lstsq(a, b, rcond=0.3)[0], R, B),
        _d(lambda a, b: np.linalg.lstsq(a, b, rcond=1)[0], R, B),
    ],
    "linalg.cholesky": [_d(np.linalg.cholesky, S @ S.T), _d(lambda x: np.linalg.cholesky(x, upper=True), S @ S.T)],
    "linalg.eig": [
        _d(lambda x: np.linalg.eig(x)[0], SPIRAL),
        _d(lambda x: np.abs(np.linalg.eig(x).eigenvectors), SPIRAL),
        _d(lambda x: tuple(map(np.real, np.linalg.eig(x))), np.diag([1.0, 2.0, -1.5]) + 0.2 * numbers((3, 3))),
        _d(lambda x: np.abs(np.linalg.eig(x)[1]), Z[:, :3]),
    ],
    "linalg.eigvals": [_d(np.linalg.eigvals, S), _d(np.linalg.eigvals, S @ S.T), _d(np.linalg.eigvals, T[:, :, :3])],
    "linalg.eigh": [
        _d(lambda x: np.linalg.eigh(x)[0], S),
        _d(lambda x: np.abs(np.linalg.eigh(x, "U")[1]), S),
        _d(lambda x: np.linalg.eigh(x, UPLO="U").eigenvalues, S),
    ],
    "linalg.eigvalsh": [_d(np.linalg.eigvalsh, S)],
    "linalg.qr": [
        _d(lambda x: np.abs(np.linalg.qr(x)[1]), S),
        _d(lambda x: np.abs(np.linalg.qr(x, mode="r")), R),
        _d(lambda x: np.abs(np.linalg.qr(x).Q), R),
    ],
    "linalg.svd": [_d(lambda x: np.abs(np.linalg.svd(x, full_matrices=False)[0]), R), _d(lambda x: np.linalg.svd(x, compute_uv=False), R)],
    "linalg.svdvals": [_d(np.linalg.svdvals, R)],
    "linalg.norm": [
        _d(np.linalg.norm, T),
        _d(lambda x: np.linalg.norm(x, axis=1), M),
        _d(lambda x: np.linalg.norm(x, ord=3, axis=0, keepdims=True), M),
        _d(lambda x: np.linalg.norm(x, "nuc"), M),
        _d(lambda x: np.linalg.norm(x, np.inf), V),
        _d(lambda x: np.linalg.norm(x, 1, axis=(2, 0)), T),
        _d(lambda x: np.linalg.norm(x, "fro", axis=(0, 1), keepdims=True), T),
        _d(lambda x: np.linalg.norm(x, 2), M),
        _d(np.linalg.norm, Z),
    ],
    "linalg.vector_norm": [_d(lambda x: np.linalg.vector_norm(x, axis=1, ord=3), M)],
    "linalg.matrix_norm": [_d(np.linalg.matrix_norm, T)],
    "linalg.cond": [_d(np.linalg.cond, S), _d(lambda x: np.linalg.cond(x, "fro"), S), _d(lambda x: np.linalg.cond(x, -2), S)],
    "linalg.diagonal": [_d(lambda x: np.linalg.diagonal(x, offset=1), T)],
    "linalg.trace": [_d(np.linalg.trace, T)],
    "linalg.matrix_transpose": [_d(np.linalg.matrix_transpose, M)],
    # -- Fourier transforms
    **{
        f"fft.{name}": [_d(getattr(np.fft, name), M), _d(_f(f"fft.{name}", 5, 0, "ortho"), M)]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{name}": [_d(getattr(np.fft, name), T), _d(_f(f"fft.{name}", s=(3, 4), axes=(0, 2), norm="forward"), T)]
        for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn", "irfft2", "irfftn")
    },
    "fft.fftshift": [_d(np.fft.fftshift, M)],
    "fft.ifftshift": [_d(lambda x: np.fft.ifftshift(x, axes=1), M)],
    # -- numbers
    "real": [_d(np.real, M), _d(np.real, Z)],
    "imag": [_d(np.imag, Z)],
    "angle": [_d(np.angle, Z), _d(np.angle, np.append(M, np.inf)), _d(lambda x: np.angle(x, deg=True), Z)],
    # -- functions with complex results
    **{
        f"emath.{name}": [_d(getattr(np.emath, name), x) for x in (factor * U, factor * P, Z)]
        for name, factor in [(f, 1.0) for f in ("sqrt", "log", "log2", "log10")] + [(f, 1.7) for f in ("arccos", "arcsin", "arctanh")]
    },
    "emath.logn": [_d(np.emath.logn, P + 1.0, U), _d(lambda x: np.emath.logn(2, x), U)],
    "emath.power": [_d(np.emath.power, U, N), _d(np.emath.power, P, N), _d(_f("emath.power", -2), P), _d(_f("emath.power", 0.5), Z)],
    "real_if_close": [_d(lambda x: np.real_if_close(x + 0j), M), _d(np.real_if_close, M)],
    "round": [_d(lambda x: np.round(x, 1), M), _d(np.round, M)],
    "around": [_d(lambda x: np.around(100 * x, -1), M)],
    "fix": [_d(np.fix, 3 * M)],
    "nan_to_num": [_d(np.nan_to_num, M), _d(lambda x: np.nan_to_num(x, nan=3.0), HOLES)],
    "sinc": [_d(np.sinc, M), _d(np.sinc, 0.004 * M), _d(np.sinc, 5 * M)],
    "i0": [_d(np.i0, M), _d(np.i0, 20 * M), _d(np.i0, 60 * M)],
    "unwrap": [_d(np.unwrap, 9 * V), _d(lambda x: np.unwrap(x, axis=0, period=4.0), 9 * M)],
    "interp": [
        _d(np.interp, M, KNOTS, W),
        _d(lambda x, k, f: np.interp(x, k, f, left=-5.0, right=6.0), 3 * M, KNOTS, W),
        _d(lambda x, k, f: np.interp(x, xp=k, fp=f), V, KNOTS, W),
        _d(lambda x, k, f, p: np.interp(x, k, f, period=p), 3 * M, KNOTS, W, np.array(3.7)),
        _d(lambda x, k, f: np.interp(x, k, f, left=-5.0, period=-2.2), 3 * M, KNOTS, W),
    ],
    # -- statistics
    **{name: _quantiles(name) for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "median": [_d(np.median, M), _d(lambda x: np.median(x, axis=(0, 2), keepdims=True), T)],
    "nanmedian": [_d(lambda x: np.nanmedian(x, axis=1), HOLES)],
    "cov": [
        _d(np.cov, M),
        _d(lambda x, y: np.cov(x, y, bias=True), V, W),
        _d(lambda x, w: np.cov(x, rowvar=False, aweights=w), M, P[:, 0]),
        _d(lambda x: np.cov(x, fweights=[1, 2, 3, 1], ddof=0), M),
        _d(np.cov, V),
        _d(lambda x, w: np.cov(x, fweights=[1, 2, 3, 1], aweights=w), M, P[0]),
    ],
    "corrcoef": [_d(np.corrcoef, M), _d(np.corrcoef, V, W)],
    "bincount": [_d(lambda w: np.bincount(np.array([0, 2, 2, 1, 5]), w, minlength=3), V), _c(lambda x: np.bincount(np.argsort(x)), V)],
    "histogram": [
        _d(lambda x, w: np.histogram(x, 4, weights=w), 3 * V, P.ravel()[:5]),
        _d(lambda x: np.histogram(x, 3, density=True), V),
        _c(lambda x: np.histogram(x, KNOTS)[0], M),
        _d(lambda x, k: np.histogram(x, k, density=True), M, KNOTS),
        _c(lambda x: np.histogram(x, 4, (-0.5, 1.0)), M),
    ],
    "histogram2d": [
        _d(lambda x, y, w: np.histogram2d(x, y, 3, weights=w), V, W, P.ravel()[:5]),
        _d(lambda x, y: np.histogram2d(x, y, [KNOTS, 2], density=True)[0], V, W),
    ],
    "histogramdd": [_d(lambda x, w: np.histogramdd(x, bins=(2, 3, 2, 2), weights=w)[0], numbers((6, 4)), np.abs(numbers((6,))))],
    "histogram_bin_edges": [_d(lambda x: np.histogram_bin_edges(x, 3), M)],
    # -- signals
    "convolve": [_d(_f("convolve", m), V, W[:3]) for m in ("full", "same", "valid")] + [_d(np.convolve, W[:2], V)],
    "correlate": [
        _d(_f("correlate", m), *pair)
        for m in ("full", "same", "valid")
        for pair in ((V, W[:2]), (V, W[:3]), (W[:2], V), (V[:4], W[:2]), (W[:2], V[:4]), (W[:3], V[:4]))
    ],
    "polyval": [_d(np.polyval, V, M)],
    "polyadd": [_d(np.polyadd, V, W[:3])],
    "polysub": [_d(np.polysub, V[:2], W)],
    "polymul": [_d(np.polymul, V, W[:3])],
    "polydiv": [_d(np.polydiv, V, P[0, :3])],
    "polyder": [_d(np.polyder, V), _d(lambda x: np.polyder(x, 2), V)],
    "polyint": [_d(np.polyint, V), _d(lambda x, k: np.polyint(x, 2, k), V, W[:2])],
    "lib.stride_tricks.sliding_window_view": [
        _d(lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), V),
        _d(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 1, 3)), T),
        _d(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), axis=(0, -1, 0)), numbers((4, 3))),
        _d(lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1), M),
    ],
    "poly": [
        _d(np.poly, V),
        _d(np.poly, S),
        _d(np.poly, Z[0]),
        _d(lambda x: np.poly(np.concat([x, np.conj(x)])), Z[0]),
    ],
    "roots": [
        _d(np.roots, V),
        _d(np.roots, np.array([1.0, -6.0, 11.0, -6.0])),
        _d(np.roots, Z[0]),
        _d(lambda x: np.roots(np.pad(x, (2, 0))), V),
        _d(lambda x: np.sum(np.exp(np.roots(x))), np.array([1.5, -2.0, 0.7, 0.0])),  # differentiated also in the coefficient that is 0
        _d(np.roots, V[:2]),
    ],
    "polyfit": [
        _d(lambda x, y: np.polyfit(x, y, 2), KNOTS, V),
        _d(lambda x, y: np.polyfit(x, y, 2, cov=True), KNOTS, V),
        _d(lambda x, y, w: np.polyfit(x, y, 1, w=w, cov="unscaled"), KNOTS, numbers((5, 2)), P.ravel()[:5]),
        _d(lambda x, y: np.polyfit(x, y, 1, full=True)[:2], KNOTS, numbers((5, 2))),
        _d(lambda x, y, w: np.polyfit(x, y, 1, w=w), KNOTS, numbers((5, 2)), P.ravel()[:5]),
        _d(lambda x, y: np.polyfit(x, y, 2, rcond=0.3), KNOTS, V),
    ],
    "apply_along_axis": [
        _d(lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x), M),
        _d(lambda x: np.apply_along_axis(np.sum, 0, x), M),
    ],
    "apply_over_axes": [_d(lambda x: np.apply_over_axes(np.sum, x, [0, 2]), T)],
}
