"""Calls of the functions of `scipy.ndimage` that accept arrays of any library."""

from __future__ import annotations

import numpy as np
from scipy import ndimage as n

from support.consumers.rows import MATRIX, Row, bind_last, row, words

LABELS = np.asarray([[1, 1, 2, 2, 3, 3]] * 5)
KERNEL = np.asarray([[0.1, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.1]])
SIZED = words("""black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter median_filter minimum_filter
morphological_gradient morphological_laplace uniform_filter white_tophat""")
LINES = words("maximum_filter1d minimum_filter1d uniform_filter1d")
SIGMA = words("gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace")
PLAIN = words("laplace prewitt sobel spline_filter spline_filter1d center_of_mass")
LABELLED = words("extrema maximum mean median minimum standard_deviation sum_labels variance")
FOURIER = words("fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform")
TRANSFORM = np.asarray([[1.1, 0.1], [0.0, 0.9]])


def _total(values):  # type: ignore[no-untyped-def]
    return values.sum()


ROWS: dict[str, Row] = {
    **{f"scipy.ndimage.{name}": row(bind_last(getattr(n, name), size=3), MATRIX) for name in SIZED},
    **{f"scipy.ndimage.{name}": row(bind_last(getattr(n, name), 3), MATRIX) for name in LINES},
    **{f"scipy.ndimage.{name}": row(bind_last(getattr(n, name), 1.0), MATRIX) for name in SIGMA},
    **{f"scipy.ndimage.{name}": row(getattr(n, name), MATRIX) for name in PLAIN},
    **{f"scipy.ndimage.{name}": row(getattr(n, name), MATRIX, LABELS, np.asarray([1, 2])) for name in LABELLED},
    **{f"scipy.ndimage.{name}": row(bind_last(getattr(n, name), 0.7), MATRIX) for name in FOURIER},
    **{f"scipy.ndimage.{name}": row(getattr(n, name), MATRIX, KERNEL) for name in ("convolve", "correlate")},
    **{f"scipy.ndimage.{name}": row(getattr(n, name), MATRIX, KERNEL[0]) for name in ("convolve1d", "correlate1d")},
    "scipy.ndimage.affine_transform": row(n.affine_transform, MATRIX, TRANSFORM),
    "scipy.ndimage.generic_filter": row(lambda x: n.generic_filter(x, _total, size=3), MATRIX),
    "scipy.ndimage.generic_gradient_magnitude": row(lambda x: n.generic_gradient_magnitude(x, n.sobel), MATRIX),
    "scipy.ndimage.generic_laplace": row(lambda x: n.generic_laplace(x, _second), MATRIX),
    "scipy.ndimage.geometric_transform": row(lambda x: n.geometric_transform(x, lambda at: (at[0] * 0.9, at[1])), MATRIX),
    "scipy.ndimage.histogram": row(lambda x: n.histogram(x, 0.0, 1.0, 4), MATRIX),
    "scipy.ndimage.map_coordinates": row(n.map_coordinates, MATRIX, np.asarray([[0.5, 1.2, 2.7], [1.1, 3.3, 4.2]])),
    "scipy.ndimage.percentile_filter": row(lambda x: n.percentile_filter(x, 40, size=3), MATRIX),
    "scipy.ndimage.rank_filter": row(lambda x: n.rank_filter(x, 2, size=3), MATRIX),
    "scipy.ndimage.rotate": row(lambda x: n.rotate(x, 20.0), MATRIX),
    "scipy.ndimage.shift": row(lambda x: n.shift(x, 0.3), MATRIX),
    "scipy.ndimage.vectorized_filter": row(lambda x: n.vectorized_filter(x, lambda v, axis: v.sum(axis=axis), size=3), MATRIX),
    "scipy.ndimage.zoom": row(lambda x: n.zoom(x, 1.5), MATRIX),
}


def _second(x, axis, output=None, mode="reflect", cval=0.0):  # type: ignore[no-untyped-def]
    return n.correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)


LEFT_OUT: dict[str, str] = {
    "it works on masks or labels, or gives positions: there is nothing to differentiate": """
        scipy.ndimage.binary_closing scipy.ndimage.binary_dilation scipy.ndimage.binary_erosion scipy.ndimage.binary_fill_holes
        scipy.ndimage.binary_hit_or_miss scipy.ndimage.binary_opening scipy.ndimage.binary_propagation
        scipy.ndimage.distance_transform_bf scipy.ndimage.distance_transform_cdt scipy.ndimage.distance_transform_edt
        scipy.ndimage.find_objects scipy.ndimage.iterate_structure scipy.ndimage.label scipy.ndimage.maximum_position
        scipy.ndimage.minimum_position scipy.ndimage.value_indices scipy.ndimage.watershed_ift
    """,
    "it hands arrays of one axis to a function of the caller's, which writes into another": """
        scipy.ndimage.generic_filter1d scipy.ndimage.labeled_comprehension
    """,
}
