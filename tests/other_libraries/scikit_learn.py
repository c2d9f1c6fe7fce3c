"""Functions of scikit-learn on Tensors: ``python -m other_libraries.scikit_learn`` (from ``tests/``) compares gradients with differences.

It prints a line of JSON for each: its name and the error, if there was one. scikit-learn reads the switch for array API support when SciPy
is imported, so this runs in a separate process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import sklearn
from sklearn import decomposition, linear_model, metrics, pipeline, preprocessing
from sklearn.metrics import pairwise

import xpgrad as xp
from support.central_differences import check, numbers

X, Y = numbers((6, 3), 4.4) + 2.0, numbers((6,), 2.0) + 2.0
START = numbers((6, 3)) + 2.0


def fitted(estimator: Any, *targets: Any) -> Any:
    """Return an estimator that was fitted to constants."""
    return estimator.fit(xp.asarray(X), *(xp.asarray(y) for y in targets))


#: Functions that differentiate as they are.
PLAIN: dict[str, Callable[[Any], Any]] = {
    "StandardScaler, fitted to constants": lambda x: fitted(preprocessing.StandardScaler()).transform(x),
    "its inverse": lambda x: fitted(preprocessing.StandardScaler()).inverse_transform(x),
    "MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
    "PCA, fitted to constants": lambda x: fitted(decomposition.PCA(2, svd_solver="full")).transform(x),
    "LinearRegression, predict": lambda x: fitted(linear_model.LinearRegression(), Y).predict(x),
    "Ridge, predict": lambda x: fitted(linear_model.Ridge(solver="svd"), Y).predict(x),
    "Ridge, fitted to inputs": lambda x: linear_model.Ridge(solver="svd").fit(x, xp.asarray(Y)).coef_,
    "Ridge, fitted to targets": lambda x: fitted(linear_model.Ridge(solver="svd"), x[:, 0]).coef_,
    "a pipeline": lambda x: fitted(
        pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2, svd_solver="full"), linear_model.Ridge(solver="svd")), Y
    ).predict(x),
    "mean_squared_error": lambda x: metrics.mean_squared_error(xp.asarray(X), x, multioutput="raw_values"),
    "mean_absolute_error": lambda x: metrics.mean_absolute_error(xp.asarray(X), x, multioutput="raw_values"),
    "r2_score": lambda x: metrics.r2_score(xp.asarray(X), x, multioutput="raw_values"),
    "euclidean_distances": lambda x: pairwise.euclidean_distances(x, xp.asarray(X)),
    "rbf_kernel": lambda x: pairwise.rbf_kernel(x, xp.asarray(X)),
    "polynomial_kernel": lambda x: pairwise.polynomial_kernel(x),
}
#: Functions that write into values which the backward pass needs: they differentiate inside `numpy_code`.
WRITING: dict[str, Callable[[Any], Any]] = {
    "Normalizer": lambda x: preprocessing.Normalizer().fit_transform(x),
    "Normalizer, l1": lambda x: preprocessing.Normalizer("l1").fit_transform(x),
    "PolynomialFeatures": lambda x: preprocessing.PolynomialFeatures(3).fit_transform(x),
    "PCA": lambda x: decomposition.PCA(2, svd_solver="full").fit_transform(x),
    "cosine_similarity": lambda x: pairwise.cosine_similarity(x, xp.asarray(X)),
    "cosine_distances": lambda x: pairwise.cosine_distances(x),
}


def outcome(function: Callable[[Any], Any]) -> str:
    """Return the error of a function's gradient; an empty string if the gradient agrees with differences."""
    try:
        check(function, [START], order=1)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    with sklearn.config_context(array_api_dispatch=True):
        for name, function in PLAIN.items():
            print(json.dumps([name, outcome(function)]))
        for name, function in WRITING.items():
            print(json.dumps([name, outcome(xp.numpy_code(function))]))
            print(json.dumps([f"{name}, without", outcome(function)]))


if __name__ == "__main__":
    main()
