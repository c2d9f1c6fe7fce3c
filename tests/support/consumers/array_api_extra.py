"""Calls of the functions of array-api-extra."""

from __future__ import annotations

from typing import Any

import array_api_extra as e
import numpy as np

from support.consumers.rows import Row, V, W, X, asarray_like, row

BINS = np.asarray([0.1, 0.35, 0.6, 0.95])


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


ROWS: dict[str, Row] = {
    "array_api_extra.angle": row(e.angle, X[:, 0] + 1j * X[:, 1]),
    "array_api_extra.apply_where": row(lambda x: e.apply_where(x > 0.5, x, lambda v: v * v, lambda v: v * 3.0)),
    "array_api_extra.at(...).add": row(lambda x, y: e.at(x * 1.0)[1:3].add(y), X, X[:2] + 0.1),
    "array_api_extra.at(...).set": row(lambda x, y: e.at(x * 1.0)[1:3].set(y), X, X[:2] + 0.1),
    "array_api_extra.at(...).multiply": row(lambda x, y: e.at(x * 1.0)[1:3].multiply(y), X, X[:2] + 0.1),
    "array_api_extra.atleast_nd": row(lambda x: e.atleast_nd(x, ndim=3)),
    "array_api_extra.cov": row(e.cov),
    "array_api_extra.create_diagonal": row(e.create_diagonal, V),
    "array_api_extra.deg2rad": row(e.deg2rad),
    "array_api_extra.expand_dims": row(lambda x: e.expand_dims(x, axis=(0, 2))),
    "array_api_extra.kron": row(e.kron, X, X[:2]),
    "array_api_extra.lazy_apply": row(lambda x: e.lazy_apply(lambda v: v * v, x, shape=x.shape, dtype=x.dtype)),
    "array_api_extra.nan_to_num": row(e.nan_to_num),
    "array_api_extra.nanmax": row(lambda x: e.nanmax(x, axis=0)),
    "array_api_extra.nanmean": row(lambda x: e.nanmean(x, axis=0)),
    "array_api_extra.nanmin": row(lambda x: e.nanmin(x, axis=0)),
    "array_api_extra.nansum": row(lambda x: e.nansum(x, axis=0)),
    "array_api_extra.pad": row(lambda x: e.pad(x, 1)),
    "array_api_extra.partition": row(lambda x: _namespace(x).sort(e.partition(x, 2)), V),
    "array_api_extra.rad2deg": row(e.rad2deg),
    "array_api_extra.setdiff1d": row(e.setdiff1d, V, asarray_like(V, V[1:3])),
    "array_api_extra.sinc": row(e.sinc),
    "array_api_extra.union1d": row(e.union1d, V, W + 0.01),
}
LEFT_OUT: dict[str, str] = {
    "it gives positions, counts or bools: there is nothing to differentiate": """
        array_api_extra.argpartition array_api_extra.isclose array_api_extra.isin array_api_extra.nunique array_api_extra.one_hot
        array_api_extra.searchsorted array_api_extra.unravel_index
    """,
    "its arguments are shapes, lengths or dtypes: no array is an argument": """
        array_api_extra.broadcast_shapes array_api_extra.default_dtype array_api_extra.diag_indices array_api_extra.tril_indices
        array_api_extra.triu_indices
    """,
}
