"""Functions of libraries that accept any array, called on Tensors of one device while the default device is another.

``python -m support.consumers DEVICE [NAME ...]`` (from ``tests/``) prints a line of JSON for each: its name, whether it differentiates,
only runs, or does not, and why. SciPy and scikit-learn read what allows it when they are imported, so this is a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_extra as xpx
import numpy as np
import scipy.cluster.vq
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.spatial.transform
import scipy.special
import scipy.stats
import sklearn
from sklearn import decomposition, kernel_approximation, linear_model, metrics, preprocessing
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import pairwise
from sklearn.naive_bayes import GaussianNB

import xpgrad as xp
from support import strict_backend

X = np.random.default_rng(0).random((6, 3))
LABELS = np.asarray([0, 1, 0, 1, 1, 0])
TARGETS = np.asarray([0.5, 1.0, -0.5, 2.0, 1.5, 0.0])


class Call(NamedTuple):
    """A function of a library, of a (6, 3) Tensor of numbers in (0, 1).

    Attributes
    ----------
    function : callable
        Takes the Tensor; its result is a Tensor, or a tuple or named tuple of them.
    writes : bool
        The library writes into its own temporaries, so the gradient needs `allow_mutation_on_saved_tensors`.
    """

    function: Callable[[Any], Any]
    writes: bool = False


def _like(x: Any, values: Any) -> Any:
    """A constant beside `x`, as its own namespace makes one."""
    return x.__array_namespace__().asarray(values)


def _fitted(estimator: Any, x: Any, *targets: Any) -> Any:
    return estimator.fit(x, *(_like(x, t) for t in targets))


CALLS: dict[str, Call] = {
    # -- SciPy
    "scipy.special.logsumexp": Call(lambda x: scipy.special.logsumexp(x, axis=1)),
    "scipy.special.logsumexp(b=)": Call(lambda x: scipy.special.logsumexp(x, axis=1, b=x + 1.0), True),
    "scipy.special.softmax": Call(lambda x: scipy.special.softmax(x, axis=1)),
    "scipy.special.log_softmax": Call(lambda x: scipy.special.log_softmax(x, axis=1), True),
    "scipy.stats.zscore": Call(scipy.stats.zscore),
    "scipy.stats.gmean": Call(lambda x: scipy.stats.gmean(x + 1.0)),
    "scipy.stats.hmean": Call(lambda x: scipy.stats.hmean(x + 1.0)),
    "scipy.stats.pmean": Call(lambda x: scipy.stats.pmean(x + 1.0, 2.0)),
    "scipy.stats.moment": Call(lambda x: scipy.stats.moment(x, order=3)),
    "scipy.stats.skew": Call(scipy.stats.skew),
    "scipy.stats.kurtosis": Call(scipy.stats.kurtosis),
    "scipy.stats.variation": Call(lambda x: scipy.stats.variation(x + 1.0)),
    "scipy.stats.sem": Call(scipy.stats.sem),
    "scipy.stats.circmean": Call(scipy.stats.circmean),
    "scipy.stats.entropy": Call(lambda x: scipy.stats.entropy(x + 1.0, x * x + 1.0), True),
    "scipy.stats.lmoment": Call(lambda x: scipy.stats.lmoment(x[:, 0]), True),
    "scipy.stats.boxcox_llf": Call(lambda x: scipy.stats.boxcox_llf(0.5, (x + 1.0)[:, 0]), True),
    "scipy.stats.yeojohnson_llf": Call(lambda x: scipy.stats.yeojohnson_llf(0.5, x), True),
    "scipy.stats.directional_stats": Call(lambda x: scipy.stats.directional_stats(x).mean_direction),
    "scipy.cluster.vq.whiten": Call(scipy.cluster.vq.whiten, True),
    "scipy.fft.fft": Call(lambda x: xp.real(scipy.fft.fft(x))),
    "scipy.fft.fht": Call(lambda x: scipy.fft.fht(x, 0.1, 0.5)),
    "scipy.integrate.trapezoid": Call(lambda x: scipy.integrate.trapezoid(x, axis=0)),
    "scipy.integrate.simpson": Call(lambda x: scipy.integrate.simpson(x, axis=0)),
    "scipy.integrate.cumulative_trapezoid": Call(lambda x: scipy.integrate.cumulative_trapezoid(x, axis=0)),
    "scipy.integrate.cumulative_simpson": Call(lambda x: scipy.integrate.cumulative_simpson(x, axis=0), True),
    "scipy.integrate.cubature": Call(
        lambda x: scipy.integrate.cubature(lambda t: xp.exp(-t * x[0, 0]), _like(x, [0.0]), _like(x, [1.0])).estimate, True
    ),
    "scipy.integrate.tanhsinh": Call(lambda x: scipy.integrate.tanhsinh(lambda t: t * x[0, 0], x[0, 1], x[0, 2] + 2.0).integral, True),
    "scipy.linalg.block_diag": Call(lambda x: scipy.linalg.block_diag(x, x[:2] * 2.0), True),
    "scipy.optimize.rosen": Call(lambda x: scipy.optimize.rosen(x[:, 0])),
    "scipy.optimize.rosen_der": Call(lambda x: scipy.optimize.rosen_der(x[:, 0]), True),
    "scipy.optimize.rosen_hess": Call(lambda x: scipy.optimize.rosen_hess(x[:, 0]), True),
    "scipy.differentiate.derivative": Call(lambda x: scipy.differentiate.derivative(lambda t: t * t * t, x[:, 0]).df, True),
    "scipy.differentiate.jacobian": Call(lambda x: scipy.differentiate.jacobian(lambda t: t * t, x[:, 0]).df, True),
    "scipy.differentiate.hessian": Call(lambda x: scipy.differentiate.hessian(lambda t: (t**3).sum(axis=0), x[:2, 0]).ddf, True),
    "scipy.signal.fftconvolve": Call(lambda x: scipy.signal.fftconvolve(x, x)),
    "scipy.signal.hilbert": Call(lambda x: xp.imag(scipy.signal.hilbert(x, axis=0)), True),
    "scipy.signal.envelope": Call(lambda x: scipy.signal.envelope(x[:, 0])[0], True),
    "scipy.signal.detrend": Call(lambda x: scipy.signal.detrend(x, axis=0, type="constant")),
    "scipy.signal.freqz_zpk": Call(lambda x: xp.real(scipy.signal.freqz_zpk(_like(x, [0.5]), _like(x, [0.25]), x[0, 0], worN=8)[1])),
    "scipy.signal.vectorstrength": Call(lambda x: scipy.signal.vectorstrength(x[:, 0], 2.0)[0]),
    "scipy.spatial.transform.Rotation.from_euler": Call(lambda x: scipy.spatial.transform.Rotation.from_euler("xyz", x).as_quat(), True),
    "scipy.spatial.transform.Rotation.from_davenport": Call(
        lambda x: scipy.spatial.transform.Rotation.from_davenport(_like(x, [0.0, 0.0, 1.0]), "extrinsic", x[0, 0]).as_quat(), True
    ),
    # -- scikit-learn
    "sklearn MinMaxScaler": Call(lambda x: preprocessing.MinMaxScaler().fit_transform(x), True),
    "sklearn MaxAbsScaler": Call(lambda x: preprocessing.MaxAbsScaler().fit_transform(x), True),
    "sklearn StandardScaler": Call(lambda x: preprocessing.StandardScaler().fit_transform(x), True),
    "sklearn Normalizer": Call(lambda x: preprocessing.Normalizer().fit_transform(x), True),
    "sklearn PolynomialFeatures": Call(lambda x: preprocessing.PolynomialFeatures().fit_transform(x), True),
    "sklearn KernelCenterer": Call(lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T), True),
    "sklearn PCA(covariance_eigh)": Call(lambda x: decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).explained_variance_, True),
    "sklearn PCA(full)": Call(lambda x: decomposition.PCA(2, svd_solver="full").fit(x).explained_variance_, True),
    "sklearn Ridge": Call(lambda x: _fitted(linear_model.Ridge(solver="svd"), x, TARGETS).predict(x * 2.0), True),
    "sklearn LinearDiscriminantAnalysis": Call(lambda x: _fitted(LinearDiscriminantAnalysis(), x, LABELS).decision_function(x), True),
    "sklearn GaussianNB": Call(lambda x: _fitted(GaussianNB(), x, LABELS).predict_joint_log_proba(x), True),
    "sklearn Nystroem": Call(lambda x: kernel_approximation.Nystroem("rbf", n_components=3, random_state=0).fit_transform(x), True),
    "sklearn euclidean_distances": Call(lambda x: pairwise.euclidean_distances(x, x[:2] + 3.0), True),
    "sklearn cosine_similarity": Call(lambda x: pairwise.cosine_similarity(x, x[:2] + 3.0), True),
    "sklearn rbf_kernel": Call(lambda x: pairwise.rbf_kernel(x, x[:2] + 3.0), True),
    "sklearn polynomial_kernel": Call(lambda x: pairwise.polynomial_kernel(x, x[:2] + 3.0), True),
    "sklearn mean_squared_error": Call(lambda x: metrics.mean_squared_error(_like(x, TARGETS), x[:, 0])),
    "sklearn r2_score": Call(lambda x: metrics.r2_score(_like(x, TARGETS), x[:, 0])),
    # -- array-api-extra
    "array_api_extra.apply_where": Call(lambda x: xpx.apply_where(x > 0.5, x, lambda v: v * v, lambda v: v * 3.0), True),
    "array_api_extra.at(...).add": Call(lambda x: xpx.at(x * 1.0)[1:3].add(x[:2]), True),
    "array_api_extra.atleast_nd": Call(lambda x: xpx.atleast_nd(x, ndim=3)),
    "array_api_extra.cov": Call(lambda x: xpx.cov(x)),
    "array_api_extra.create_diagonal": Call(lambda x: xpx.create_diagonal(x[:, 0]), True),
    "array_api_extra.expand_dims": Call(lambda x: xpx.expand_dims(x, axis=(0, 2))),
    "array_api_extra.kron": Call(lambda x: xpx.kron(x, x[:2])),
    "array_api_extra.nan_to_num": Call(lambda x: xpx.nan_to_num(x)),
    "array_api_extra.nanmax": Call(lambda x: xpx.nanmax(x, axis=0)),
    "array_api_extra.nanmean": Call(lambda x: xpx.nanmean(x, axis=0)),
    "array_api_extra.nanmin": Call(lambda x: xpx.nanmin(x, axis=0)),
    "array_api_extra.nansum": Call(lambda x: xpx.nansum(x, axis=0)),
    "array_api_extra.pad": Call(lambda x: xpx.pad(x, 1), True),
    "array_api_extra.sinc": Call(lambda x: xpx.sinc(x)),
    "array_api_extra.deg2rad": Call(lambda x: xpx.deg2rad(x)),
}


class _LeavesError(Exception):
    """What a library returns is not a Tensor any more."""


def _tensors(out: Any) -> list[Any]:
    parts = out if isinstance(out, (tuple, list)) else (out,)
    if strange := [type(p).__name__ for p in parts if not isinstance(p, xp.Tensor)]:
        msg = f"it returns a {strange[0]}, not a Tensor"
        raise _LeavesError(msg)
    return list(parts)


def _loss(call: Call, x: Any) -> Any:
    total = None
    for out in _tensors(call.function(x)):
        weights = np.cos(np.arange(out.size) + 1.0).reshape(out.shape)
        term = xp.sum(out * xp.asarray(weights, dtype=out.dtype, device=out.device))
        total = term if total is None else total + term
    return total


def _differences(call: Call) -> np.ndarray:
    """The gradient by central differences, on NumPy."""
    found, step = np.zeros_like(X), 1e-6
    for place in np.ndindex(X.shape):
        shift = np.zeros_like(X)
        shift[place] = step
        found[place] = (_loss(call, xp.asarray(X + shift)).item() - _loss(call, xp.asarray(X - shift)).item()) / (2 * step)
    return found


def verdict(call: Call, device: str) -> tuple[str, str]:
    """``("differentiates", "")``, or ``("runs", why)`` if that is all, or ``("no", why)``."""
    plain = xp.asarray(X, device=device)
    try:
        out = _loss(call, plain)
        if out.device != plain.device:
            return "no", f"the result is on {out.device}"
        value, known = out.item(), _loss(call, xp.asarray(X)).item()
    except _LeavesError as exc:
        return "runs", str(exc)
    except Exception as exc:  # noqa: BLE001 (whatever a library raises is the answer)
        return "no", _reason(exc)
    if not np.isclose(value, known, rtol=1e-8):
        return "no", f"it gives {value} instead of {known}"
    x = plain.clone().requires_grad_()
    try:
        with xp.autograd.graph.allow_mutation_on_saved_tensors() if call.writes else contextlib.nullcontext():
            (grad,) = xp.autograd.grad(_loss(call, x), x)
    except Exception as exc:  # noqa: BLE001
        return "runs", _reason(exc)
    if grad.device != plain.device:
        return "runs", f"the gradient is on {grad.device}"
    grad = grad.to_device("cpu").numpy()
    if not np.isfinite(grad).all():
        return "runs", "the gradient is not finite"
    return ("differentiates", "") if np.allclose(grad, _differences(call), rtol=1e-4, atol=1e-6) else ("runs", "the gradient is wrong")


def _reason(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"[:300]


def main(device: str, names: list[str]) -> None:
    """Print what becomes of each call on a device."""
    warnings.simplefilter("ignore")
    strict_backend.register()
    sklearn.set_config(array_api_dispatch=True)
    for name, call in CALLS.items():
        if not names or name in names:
            print(json.dumps([name, *verdict(call, device)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
