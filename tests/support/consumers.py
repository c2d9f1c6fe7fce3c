"""Functions of libraries that accept any array, called on Tensors of one device while the default device is another.

``python -m support.consumers DEVICE [NAME ...]`` (from ``tests/``) prints a line of JSON for each: its name, what it does (it
differentiates, or only where writes are allowed, or it only runs, or not even that), and why. SciPy and scikit-learn read what allows it
when they are imported, so this is a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

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

Function = Callable[[Any], Any]
X = np.random.default_rng(0).random((6, 3))
LABELS = np.asarray([0, 1, 0, 1, 1, 0])
TARGETS = np.asarray([0.5, 1.0, -0.5, 2.0, 1.5, 0.0])


def _like(x: Any, values: Any) -> Any:
    """A constant beside `x`, as its own namespace makes one."""
    return x.__array_namespace__().asarray(values)


def _fitted(estimator: Any, x: Any, *targets: Any) -> Any:
    return estimator.fit(x, *(_like(x, t) for t in targets))


#: Functions of a (6, 3) Tensor of numbers in (0, 1), which return a Tensor or a tuple of them.
CALLS: dict[str, Function] = {
    # -- SciPy
    "scipy.special.logsumexp": lambda x: scipy.special.logsumexp(x, axis=1),
    "scipy.special.logsumexp(b=)": lambda x: scipy.special.logsumexp(x, axis=1, b=x + 1.0),
    "scipy.special.softmax": lambda x: scipy.special.softmax(x, axis=1),
    "scipy.special.log_softmax": lambda x: scipy.special.log_softmax(x, axis=1),
    "scipy.stats.zscore": scipy.stats.zscore,
    "scipy.stats.gmean": lambda x: scipy.stats.gmean(x + 1.0),
    "scipy.stats.hmean": lambda x: scipy.stats.hmean(x + 1.0),
    "scipy.stats.pmean": lambda x: scipy.stats.pmean(x + 1.0, 2.0),
    "scipy.stats.moment": lambda x: scipy.stats.moment(x, order=3),
    "scipy.stats.skew": scipy.stats.skew,
    "scipy.stats.kurtosis": scipy.stats.kurtosis,
    "scipy.stats.variation": lambda x: scipy.stats.variation(x + 1.0),
    "scipy.stats.sem": scipy.stats.sem,
    "scipy.stats.circmean": scipy.stats.circmean,
    "scipy.stats.entropy": lambda x: scipy.stats.entropy(x + 1.0, x * x + 1.0),
    "scipy.stats.lmoment": lambda x: scipy.stats.lmoment(x[:, 0]),
    "scipy.stats.boxcox_llf": lambda x: scipy.stats.boxcox_llf(0.5, (x + 1.0)[:, 0]),
    "scipy.stats.yeojohnson_llf": lambda x: scipy.stats.yeojohnson_llf(0.5, x),
    "scipy.stats.directional_stats": lambda x: scipy.stats.directional_stats(x).mean_direction,
    "scipy.cluster.vq.whiten": scipy.cluster.vq.whiten,
    "scipy.fft.fft": lambda x: xp.real(scipy.fft.fft(x)),
    "scipy.fft.fht": lambda x: scipy.fft.fht(x, 0.1, 0.5),
    "scipy.integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "scipy.integrate.simpson": lambda x: scipy.integrate.simpson(x, axis=0),
    "scipy.integrate.cumulative_trapezoid": lambda x: scipy.integrate.cumulative_trapezoid(x, axis=0),
    "scipy.integrate.cumulative_simpson": lambda x: scipy.integrate.cumulative_simpson(x, axis=0),
    "scipy.integrate.cubature": lambda x: (
        scipy.integrate.cubature(lambda t: xp.exp(-t * x[0, 0]), _like(x, [0.0]), _like(x, [1.0])).estimate
    ),
    "scipy.integrate.tanhsinh": lambda x: scipy.integrate.tanhsinh(lambda t: t * x[0, 0], x[0, 1], x[0, 2] + 2.0).integral,
    "scipy.linalg.block_diag": lambda x: scipy.linalg.block_diag(x, x[:2] * 2.0),
    "scipy.optimize.rosen": lambda x: scipy.optimize.rosen(x[:, 0]),
    "scipy.optimize.rosen_der": lambda x: scipy.optimize.rosen_der(x[:, 0]),
    "scipy.optimize.rosen_hess": lambda x: scipy.optimize.rosen_hess(x[:, 0]),
    "scipy.differentiate.derivative": lambda x: scipy.differentiate.derivative(lambda t: t * t * t, x[:, 0]).df,
    "scipy.differentiate.jacobian": lambda x: scipy.differentiate.jacobian(lambda t: t * t, x[:, 0]).df,
    "scipy.differentiate.hessian": lambda x: scipy.differentiate.hessian(lambda t: (t**3).sum(axis=0), x[:2, 0]).ddf,
    "scipy.signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
    "scipy.signal.hilbert": lambda x: xp.imag(scipy.signal.hilbert(x, axis=0)),
    "scipy.signal.envelope": lambda x: scipy.signal.envelope(x[:, 0])[0],
    "scipy.signal.detrend": lambda x: scipy.signal.detrend(x, axis=0, type="constant"),
    "scipy.signal.freqz_zpk": lambda x: xp.real(scipy.signal.freqz_zpk(_like(x, [0.5]), _like(x, [0.25]), x[0, 0], worN=8)[1]),
    "scipy.signal.vectorstrength": lambda x: scipy.signal.vectorstrength(x[:, 0], 2.0)[0],
    "scipy.spatial.transform.Rotation.from_euler": lambda x: scipy.spatial.transform.Rotation.from_euler("xyz", x).as_quat(),
    "scipy.spatial.transform.Rotation.from_davenport": lambda x: scipy.spatial.transform.Rotation.from_davenport(
        _like(x, [0.0, 0.0, 1.0]), "extrinsic", x[0, 0]
    ).as_quat(),
    # -- scikit-learn
    "sklearn MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
    "sklearn MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
    "sklearn StandardScaler": lambda x: preprocessing.StandardScaler().fit_transform(x),
    "sklearn Normalizer": lambda x: preprocessing.Normalizer().fit_transform(x),
    "sklearn PolynomialFeatures": lambda x: preprocessing.PolynomialFeatures().fit_transform(x),
    "sklearn KernelCenterer": lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T),
    "sklearn PCA(covariance_eigh)": lambda x: decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).explained_variance_,
    "sklearn PCA(full)": lambda x: decomposition.PCA(2, svd_solver="full").fit(x).explained_variance_,
    "sklearn Ridge": lambda x: _fitted(linear_model.Ridge(solver="svd"), x, TARGETS).predict(x * 2.0),
    "sklearn LinearDiscriminantAnalysis": lambda x: _fitted(LinearDiscriminantAnalysis(), x, LABELS).decision_function(x),
    "sklearn GaussianNB": lambda x: _fitted(GaussianNB(), x, LABELS).predict_joint_log_proba(x),
    "sklearn Nystroem": lambda x: kernel_approximation.Nystroem("rbf", n_components=3, random_state=0).fit_transform(x),
    "sklearn euclidean_distances": lambda x: pairwise.euclidean_distances(x, x[:2] + 3.0),
    "sklearn cosine_similarity": lambda x: pairwise.cosine_similarity(x, x[:2] + 3.0),
    "sklearn rbf_kernel": lambda x: pairwise.rbf_kernel(x, x[:2] + 3.0),
    "sklearn polynomial_kernel": lambda x: pairwise.polynomial_kernel(x, x[:2] + 3.0),
    "sklearn mean_squared_error": lambda x: metrics.mean_squared_error(_like(x, TARGETS), x[:, 0]),
    "sklearn r2_score": lambda x: metrics.r2_score(_like(x, TARGETS), x[:, 0]),
    # -- array-api-extra
    "array_api_extra.apply_where": lambda x: xpx.apply_where(x > 0.5, x, lambda v: v * v, lambda v: v * 3.0),
    "array_api_extra.at(...).add": lambda x: xpx.at(x * 1.0)[1:3].add(x[:2]),
    "array_api_extra.atleast_nd": lambda x: xpx.atleast_nd(x, ndim=3),
    "array_api_extra.cov": lambda x: xpx.cov(x),
    "array_api_extra.create_diagonal": lambda x: xpx.create_diagonal(x[:, 0]),
    "array_api_extra.expand_dims": lambda x: xpx.expand_dims(x, axis=(0, 2)),
    "array_api_extra.kron": lambda x: xpx.kron(x, x[:2]),
    "array_api_extra.nan_to_num": lambda x: xpx.nan_to_num(x),
    "array_api_extra.nanmax": lambda x: xpx.nanmax(x, axis=0),
    "array_api_extra.nanmean": lambda x: xpx.nanmean(x, axis=0),
    "array_api_extra.nanmin": lambda x: xpx.nanmin(x, axis=0),
    "array_api_extra.nansum": lambda x: xpx.nansum(x, axis=0),
    "array_api_extra.pad": lambda x: xpx.pad(x, 1),
    "array_api_extra.sinc": lambda x: xpx.sinc(x),
    "array_api_extra.deg2rad": lambda x: xpx.deg2rad(x),
}


class _LeavesError(Exception):
    """What a library returns is not a Tensor any more."""


def _tensors(out: Any) -> list[Any]:
    parts = out if isinstance(out, (tuple, list)) else (out,)
    if strange := [type(p).__name__ for p in parts if not isinstance(p, xp.Tensor)]:
        msg = f"it returns a {strange[0]}, not a Tensor"
        raise _LeavesError(msg)
    return list(parts)


def _loss(function: Function, x: Any) -> Any:
    total = None
    for out in _tensors(function(x)):
        weights = np.cos(np.arange(out.size) + 1.0).reshape(out.shape)
        term = xp.sum(out * xp.asarray(weights, dtype=out.dtype, device=out.device))
        total = term if total is None else total + term
    return total


def _differences(function: Function) -> np.ndarray:
    """The gradient by central differences, on NumPy."""
    found, step = np.zeros_like(X), 1e-6
    for place in np.ndindex(X.shape):
        shift = np.zeros_like(X)
        shift[place] = step
        found[place] = (_loss(function, xp.asarray(X + shift)).item() - _loss(function, xp.asarray(X - shift)).item()) / (2 * step)
    return found


def verdict(function: Function, device: str) -> tuple[str, str]:
    """``("differentiates", "")``, ``("allowing writes", "")``, or ``("runs", why)`` if that is all, or ``("no", why)``."""
    plain = xp.asarray(X, device=device)
    try:
        out = _loss(function, plain)
        if out.device != plain.device:
            return "no", f"the result is on {out.device}"
        value, known = out.item(), _loss(function, xp.asarray(X)).item()
    except _LeavesError as exc:
        return "runs", str(exc)
    except Exception as exc:  # noqa: BLE001 (whatever a library raises is the answer)
        return "no", _reason(exc)
    if not np.isclose(value, known, rtol=1e-8):
        return "no", f"it gives {value} instead of {known}"
    why = ""
    for how, context in (
        ("differentiates", contextlib.nullcontext),
        ("allowing writes", xp.autograd.graph.allow_mutation_on_saved_tensors),
    ):
        x = plain.clone().requires_grad_()
        try:
            with context():
                (grad,) = xp.autograd.grad(_loss(function, x), x)
        except Exception as exc:  # noqa: BLE001
            why = _reason(exc)
            continue
        if grad.device != plain.device:
            return "runs", f"the gradient is on {grad.device}"
        found = grad.to_device("cpu").numpy()
        if not np.isfinite(found).all():
            return "runs", "the gradient is not finite"
        return (how, "") if np.allclose(found, _differences(function), rtol=1e-5, atol=1e-6) else ("runs", "the gradient is wrong")
    return "runs", why


def _reason(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"[:300]


def main(device: str, names: list[str]) -> None:
    """Print what becomes of each call on a device."""
    warnings.simplefilter("ignore")
    strict_backend.register()
    sklearn.set_config(array_api_dispatch=True)
    for name, function in CALLS.items():
        if not names or name in names:
            print(json.dumps([name, *verdict(function, device)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
