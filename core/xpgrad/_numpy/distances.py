"""Functions with the names of `scipy.spatial.distance` that SciPy computes in C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xpgrad._numpy.semantics import as_array
from xpgrad.rules.conversion import asarray

__all__ = ["FUNCTIONS"]

#: NumPy: `chapters` loaded it. Its functions compute with Tensors.
_np: Any = sys.modules["numpy"]


def _as_vectors(x: Any) -> Any:
    x = as_array(x)
    if x.ndim != 2:
        msg = f"vectors must be the rows of an array with two axes, but got shape {tuple(x.shape)}"
        raise ValueError(msg)
    if x.dtype.kind == "c":
        msg = "vectors must be real, but got complex numbers"
        raise ValueError(msg)
    return x if x.dtype.kind == "f" else x.astype(float)


def _norm(d: Any) -> Any:
    return _np.linalg.norm(d, axis=-1)  # whose derivative at 0 is 0


def _cosine(u: Any, v: Any) -> Any:
    return 1.0 - (u * v).sum(axis=-1) / (_norm(u) * _norm(v))


def _center(x: Any) -> Any:
    return x - x.mean(axis=-1, keepdims=True)


def _canberra(u: Any, v: Any) -> Any:
    total = _np.abs(u) + _np.abs(v)
    return (_np.abs(u - v) / _np.where(total == 0.0, 1.0, total)).sum(axis=-1)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    scale = 1.0 if w is None else as_array(w) != 0 if p == _np.inf else as_array(w) ** (1.0 / p)
    d = (u - v) * scale
    return _np.linalg.norm(d, p, axis=-1)


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    d = u - v
    square = (d @ VI * d).sum(axis=-1)
    # At 0, where the square root has no derivative, that of the distance is 0 here.
    zero = square == 0.0
    return _np.where(zero, 0.0, _np.sqrt(_np.where(zero, 1.0, square)))


#: The distance of rows, by the name of the metric.
_METRICS: dict[str, Callable[..., Any]] = {
    "braycurtis": lambda u, v: _np.abs(u - v).sum(axis=-1) / _np.abs(u + v).sum(axis=-1),
    "canberra": _canberra,
    "chebyshev": lambda u, v: _np.abs(u - v).max(axis=-1),
    "cityblock": lambda u, v: _np.abs(u - v).sum(axis=-1),
    "correlation": lambda u, v: _cosine(_center(u), _center(v)),
    "cosine": _cosine,
    "euclidean": lambda u, v: _norm(u - v),
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "seuclidean": lambda u, v, V: _norm((u - v) / _np.sqrt(V)),
    "sqeuclidean": lambda u, v: ((u - v) ** 2).sum(axis=-1),
}


def _find_metric(metric: Any, samples: list[Any], options: dict[str, Any]) -> Callable[[Any, Any], Any]:
    name = getattr(metric, "__name__", metric)
    function = metric if callable(metric) and name not in _METRICS else _METRICS.get(str(name).lower())
    if function is None:
        msg = f"xpgrad has no distance {metric!r}; it has {', '.join(_METRICS)}, and functions of two vectors"
        raise TypeError(msg)
    if function is metric:
        return lambda u, v: _loop(metric, u, v, options)
    if name in ("mahalanobis", "seuclidean") and not options:
        data = _np.concatenate(samples)
        options = {"V": data.var(axis=0, ddof=1)} if name == "seuclidean" else {"VI": _np.linalg.inv(_np.cov(data.T)).T}
    return lambda u, v: function(u, v, **options)


def _loop(metric: Any, u: Any, v: Any, options: dict[str, Any]) -> Any:
    u, v = _np.broadcast_arrays(u, v)
    shape = tuple(u.shape[:-1])
    return asarray([metric(u[i], v[i], **options) for i in _np.ndindex(*shape)]).reshape(shape)


def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", **kwargs: Any) -> Any:
    u, v = _as_vectors(XA), _as_vectors(XB)
    return _find_metric(metric, [u, v], kwargs)(u[:, None], v[None])


def _pdist(X: Any, metric: Any = "euclidean", **kwargs: Any) -> Any:
    x = _as_vectors(X)
    first, second = _np.triu_indices(x.shape[0], 1)
    return _find_metric(metric, [x], kwargs)(x[first], x[second])


def _squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    if X.ndim == 1 and force != "tovector":
        n = int((1 + (1 + 8 * X.shape[0]) ** 0.5) / 2)
        if n * (n - 1) != 2 * X.shape[0]:
            msg = f"a vector of length {X.shape[0]} is no condensed matrix of distances"
            raise ValueError(msg)
        places, pairs = _np.zeros((n, n), dtype="int64"), _np.triu_indices(n, 1)
        places[pairs] = _np.arange(1, X.shape[0] + 1)
        return _np.concatenate([X[:1] * 0.0, X])[places + places.T] if n > 1 else X.reshape((1, 0)).sum(axis=1, keepdims=True)
    return X[_np.triu_indices(X.shape[0], 1)] if X.ndim == 2 and force != "tomatrix" else X


#: By the public name in `scipy.spatial.distance`.
FUNCTIONS: dict[str, Callable[..., Any]] = {"cdist": _cdist, "pdist": _pdist, "squareform": _squareform}
