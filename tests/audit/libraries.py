"""Functions of SciPy, scikit-learn and array-api-extra that are known to be differentiable: an audit must have no objection.

``python -m audit.libraries`` (from ``tests/``) prints one line of JSON for each: its name and the findings. SciPy and scikit-learn read
the switch for array API support at import, so this runs in a separate process.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_extra as xpx
import numpy as np
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn import decomposition, preprocessing
from sklearn.metrics import pairwise

import xpgrad as xp

X = np.random.default_rng(0).random((6, 3))

CALLS: dict[str, Callable[[Any], Any]] = {
    "scipy.special.logsumexp": lambda x: scipy.special.logsumexp(x, axis=1),
    "scipy.special.softmax": lambda x: scipy.special.softmax(x, axis=1),
    "scipy.special.erf": lambda x: scipy.special.erf(x),
    "scipy.special.gammaln": lambda x: scipy.special.gammaln(x + 1.0),
    "scipy.special.xlogy": lambda x: scipy.special.xlogy(x, x + 1.0),
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
    "scipy.stats.directional_stats": lambda x: scipy.stats.directional_stats(x).mean_direction,
    "scipy.fft.fft": lambda x: xp.real(scipy.fft.fft(x)),
    "scipy.integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "scipy.integrate.cumulative_simpson": lambda x: scipy.integrate.cumulative_simpson(x, axis=0),
    "scipy.integrate.tanhsinh": lambda x: scipy.integrate.tanhsinh(lambda t: t * x[0, 0], x[0, 1], x[0, 2] + 2.0).integral,
    "scipy.linalg.block_diag": lambda x: scipy.linalg.block_diag(x, x[:2] * 2.0),
    "scipy.optimize.rosen": lambda x: scipy.optimize.rosen(x[:, 0]),
    "scipy.optimize.rosen_hess": lambda x: scipy.optimize.rosen_hess(x[:, 0]),
    "scipy.signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
    "scipy.signal.hilbert": lambda x: xp.imag(scipy.signal.hilbert(x, axis=0)),
    "sklearn MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
    "sklearn MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
    "sklearn KernelCenterer": lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T),
    "sklearn PCA(covariance_eigh)": lambda x: decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).explained_variance_,
    "sklearn rbf_kernel": lambda x: pairwise.rbf_kernel(x, x[:2] + 3.0),
    "sklearn polynomial_kernel": lambda x: pairwise.polynomial_kernel(x, x[:2] + 3.0),
    "array_api_extra.cov": lambda x: xpx.cov(x),
    "array_api_extra.kron": lambda x: xpx.kron(x, x[:2]),
    "array_api_extra.sinc": lambda x: xpx.sinc(x),
    "array_api_extra.apply_where": lambda x: xpx.apply_where(x > 0.5, x, lambda v: v * v, lambda v: v * 3.0),
}


def main() -> None:
    """Audit each function and print its findings; each line also lists those that are worse than a note."""
    warnings.simplefilter("ignore")
    sklearn.set_config(array_api_dispatch=True)
    for name, function in CALLS.items():
        report = xp.audit(function, X)
        print(json.dumps([name, list(report.kinds("warning")), str(report)]), flush=True)


if __name__ == "__main__":
    main()
