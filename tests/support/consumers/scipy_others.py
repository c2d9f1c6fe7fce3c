"""Calls of the rest of SciPy that accepts arrays of any library: Fourier transforms, integrals, clusters, rotations, splines and more."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import constants, differentiate as d, fft as f, integrate as i, interpolate as p, linalg, optimize as o
from scipy.cluster import hierarchy as h, vq
from scipy.spatial.transform import RigidTransform, Rotation

from support.consumers.rows import MATRIX, ROW, SQUARE, Row, V, W, X, asarray_like, bind_last, row, words

DISTANCES = np.asarray([0.5, 0.9, 1.4, 0.7, 1.1, 0.3])
HEIGHTS, MERGED = np.asarray([0.3, 0.7, 1.4]), [[0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 0.0, 2.0], [4.0, 5.0, 0.0, 4.0]]
QUATERNIONS, VECTORS = np.asarray([[0.1, 0.2, 0.3, 0.9], [0.5, -0.4, 0.2, 0.7]]), np.asarray([[0.3, -0.2, 0.5], [0.1, 0.7, 0.4]])
COMPLEX = X[:, 0] + 1j * X[:, 1]
REAL = words("fft ifft rfft hfft dct idct dst idst fftshift ifftshift ihfft")
MANY = words("fft2 ifft2 fftn ifftn rfft2 rfftn dctn idctn dstn idstn ihfft2 ihfftn")
INVERSE = words("irfft irfft2 irfftn hfft2 hfftn")


def _at(integral: Any) -> Any:
    """Return `integral` as a function of values and of the points `x` at which they are sampled."""
    return lambda y, x: integral(y, x=x)


def _linkage(heights: Any) -> Any:
    """Return a linkage matrix with these heights; which clusters are merged, and their sizes, are constants."""
    return asarray_like(heights, MERGED) + heights[:, None] * asarray_like(heights, [0.0, 0.0, 1.0, 0.0])


ROWS: dict[str, Row] = {
    **{f"scipy.fft.{name}": row(getattr(f, name), ROW) for name in REAL},
    **{f"scipy.fft.{name}": row(getattr(f, name), X) for name in MANY},
    **{f"scipy.fft.{name}": row(getattr(f, name), COMPLEX.reshape(2, 3)) for name in INVERSE},
    **{f"scipy.fft.{name}": row(bind_last(getattr(f, name), 0.1, 0.5), ROW) for name in ("fht", "ifht")},
    **{f"scipy.integrate.{name}": row(_at(getattr(i, name)), ROW, np.cumsum(ROW)) for name in ("trapezoid", "simpson")},
    **{
        f"scipy.integrate.{name}": row(_at(getattr(i, name)), ROW, np.cumsum(ROW))
        for name in ("cumulative_trapezoid", "cumulative_simpson")
    },
    "scipy.integrate.romb": row(lambda y: i.romb(y, dx=0.1), np.linspace(0.2, 1.0, 9) ** 3),
    "scipy.integrate.cubature": row(
        lambda x: i.cubature(lambda t: _ns(t).exp(-t * x), asarray_like(x, [0.0]), asarray_like(x, [1.0])).estimate, np.asarray(0.7)
    ),
    "scipy.integrate.tanhsinh": row(lambda a, b, c: i.tanhsinh(lambda t: t * a, b, c).integral, *map(np.asarray, (0.4, 0.2, 2.3))),
    "scipy.linalg.block_diag": row(linalg.block_diag, X, MATRIX),
    "scipy.linalg.fiedler": row(linalg.fiedler, V),
    "scipy.linalg.orthogonal_procrustes": row(linalg.orthogonal_procrustes, X, X * X + 0.1),
    "scipy.optimize.rosen": row(o.rosen, V),
    "scipy.optimize.rosen_der": row(o.rosen_der, V),
    "scipy.optimize.rosen_hess": row(o.rosen_hess, V),
    "scipy.optimize.rosen_hess_prod": row(o.rosen_hess_prod, V, W),
    "scipy.differentiate.derivative": row(lambda x: d.derivative(lambda t: t * t * t, x, maxiter=2).df, V),
    "scipy.differentiate.jacobian": row(lambda x: d.jacobian(lambda t: t * t, x, maxiter=2).df, V),
    "scipy.differentiate.hessian": row(lambda x: d.hessian(lambda t: _ns(t).sum(t**3, axis=0), x, maxiter=1, order=2).ddf, V[:2]),
    "scipy.constants.convert_temperature": row(lambda x: constants.convert_temperature(x, "Celsius", "Fahrenheit"), V),
    "scipy.constants.lambda2nu": row(constants.lambda2nu, V),
    "scipy.constants.nu2lambda": row(constants.nu2lambda, V),
    "scipy.cluster.vq.whiten": row(vq.whiten),
    "scipy.cluster.vq.vq": row(lambda x, b: vq.vq(x, b)[1], X, X[:2] + 0.05),
    "scipy.cluster.vq.kmeans": row(lambda x, b: vq.kmeans(x, b)[0], X, X[:2] + 0.05),
    "scipy.cluster.vq.kmeans2": row(lambda x, b: vq.kmeans2(x, b, minit="matrix")[0], X, X[:2] + 0.05),
    **{
        f"scipy.cluster.hierarchy.{name}": row(getattr(h, name), DISTANCES)
        for name in words("average centroid complete median single ward weighted linkage")
    },
    "scipy.cluster.hierarchy.cophenet": row(lambda z: h.cophenet(_linkage(z)), HEIGHTS),
    "scipy.cluster.hierarchy.inconsistent": row(lambda z: h.inconsistent(_linkage(z)), HEIGHTS),
    "scipy.cluster.hierarchy.maxdists": row(lambda z: h.maxdists(_linkage(z)), HEIGHTS),
    "scipy.cluster.hierarchy.maxinconsts": row(lambda z: h.maxinconsts(_linkage(z), h.inconsistent(_linkage(z))), HEIGHTS),
    "scipy.cluster.hierarchy.maxRstat": row(lambda z: h.maxRstat(_linkage(z), h.inconsistent(_linkage(z)), 0), HEIGHTS),
    "scipy.cluster.hierarchy.optimal_leaf_ordering": row(lambda z, y: h.optimal_leaf_ordering(_linkage(z), y), HEIGHTS, DISTANCES),
    "scipy.cluster.hierarchy.from_mlab_linkage": row(
        lambda z: h.from_mlab_linkage(_linkage(z)[:, :3] + asarray_like(z, [1.0, 1.0, 0.0])), HEIGHTS
    ),
    "scipy.cluster.hierarchy.to_mlab_linkage": row(lambda z: h.to_mlab_linkage(_linkage(z)), HEIGHTS),
    "scipy.interpolate.make_interp_spline": row(lambda x, y: p.make_interp_spline(x, y)(0.3), V, W),
    "scipy.interpolate.make_lsq_spline": row(
        lambda x, y: p.make_lsq_spline(x, y, asarray_like(x, [0.0] * 4 + [1.0] * 4))(0.3), np.cumsum(ROW) / 10.0, ROW
    ),
    "scipy.interpolate.make_smoothing_spline": row(lambda x, y: p.make_smoothing_spline(x, y, lam=0.1)(0.3), np.cumsum(ROW), ROW),
    "scipy.interpolate.make_splrep": row(lambda x, y: p.make_splrep(x, y, s=0.1)(0.3), np.cumsum(ROW), ROW),
    "scipy.interpolate.make_splprep": row(lambda x: p.make_splprep([x, x * x], s=0.0)[0](0.3), np.cumsum(ROW)),
    "scipy.interpolate.generate_knots": row(lambda x, y: list(p.generate_knots(x, y, s=0.1))[-1], np.cumsum(ROW), ROW),
    # -- rotations: classes, whose support SciPy's table does not list
    "scipy.spatial.transform.Rotation.from_euler": row(lambda x: Rotation.from_euler("xyz", x).as_quat(), VECTORS),
    "scipy.spatial.transform.Rotation.from_quat": row(lambda q: Rotation.from_quat(q).as_matrix(), QUATERNIONS),
    "scipy.spatial.transform.Rotation.from_matrix": row(lambda m: Rotation.from_matrix(m).as_quat(), np.eye(3) + 0.1 * SQUARE[:3, :3]),
    "scipy.spatial.transform.Rotation.from_rotvec": row(lambda v: Rotation.from_rotvec(v).as_matrix(), VECTORS),
    "scipy.spatial.transform.Rotation.from_mrp": row(lambda v: Rotation.from_mrp(v).as_matrix(), VECTORS),
    "scipy.spatial.transform.Rotation.from_davenport": row(
        lambda a: Rotation.from_davenport(asarray_like(a, [0.0, 0.0, 1.0]), "extrinsic", a).as_quat(), np.asarray(0.4)
    ),
    "scipy.spatial.transform.Rotation.as_euler": row(lambda q: Rotation.from_quat(q).as_euler("xyz"), QUATERNIONS),
    "scipy.spatial.transform.Rotation.as_rotvec": row(lambda q: Rotation.from_quat(q).as_rotvec(), QUATERNIONS),
    "scipy.spatial.transform.Rotation.as_mrp": row(lambda q: Rotation.from_quat(q).as_mrp(), QUATERNIONS),
    "scipy.spatial.transform.Rotation.apply": row(lambda q, v: Rotation.from_quat(q).apply(v), QUATERNIONS, VECTORS),
    "scipy.spatial.transform.Rotation.inv": row(lambda q: Rotation.from_quat(q).inv().as_matrix(), QUATERNIONS),
    "scipy.spatial.transform.Rotation.__mul__": row(
        lambda q, r: (Rotation.from_quat(q) * Rotation.from_quat(r)).as_matrix(), QUATERNIONS, QUATERNIONS[::-1].copy()
    ),
    "scipy.spatial.transform.Rotation.magnitude": row(lambda q: Rotation.from_quat(q).magnitude(), QUATERNIONS),
    "scipy.spatial.transform.Rotation.mean": row(lambda q: Rotation.from_quat(q).mean().as_matrix(), QUATERNIONS),
    "scipy.spatial.transform.RigidTransform.apply": row(
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).apply(v), QUATERNIONS, VECTORS
    ),
    "scipy.spatial.transform.RigidTransform.inv": row(
        lambda q, v: RigidTransform.from_components(v, Rotation.from_quat(q)).inv().as_matrix(), QUATERNIONS, VECTORS
    ),
}


def _ns(x: Any) -> Any:
    return x.__array_namespace__()


LEFT_OUT: dict[str, str] = {
    "its arguments are lengths and steps: no array is an argument": "scipy.fft.fftfreq scipy.fft.rfftfreq",
    "it draws its points from a generator of SciPy's, with NumPy": "scipy.integrate.qmc_quad",
    "it gives groups, trees, counts or bools: there is nothing to differentiate": """
        scipy.cluster.hierarchy.correspond scipy.cluster.hierarchy.dendrogram scipy.cluster.hierarchy.fcluster
        scipy.cluster.hierarchy.fclusterdata scipy.cluster.hierarchy.is_isomorphic scipy.cluster.hierarchy.is_monotonic
        scipy.cluster.hierarchy.is_valid_im scipy.cluster.hierarchy.is_valid_linkage scipy.cluster.hierarchy.leaders
        scipy.cluster.hierarchy.leaves_list scipy.cluster.hierarchy.num_obs_linkage scipy.cluster.hierarchy.to_tree
    """,
}
