"""Calls of the estimators, metrics and tools of scikit-learn that accept arrays of any library."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn import (
    calibration,
    decomposition,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    pipeline,
    preprocessing,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import pairwise
from sklearn.naive_bayes import GaussianNB

from support.consumers.rows import Row, V, W, X, asarray_like, row, words

LABELS = np.asarray([0, 1, 0, 1, 1, 0])
TARGETS = np.asarray([0.5, 1.0, -0.5, 2.0, 1.5, 0.0])
POSITIVE = TARGETS + 1.0
TRUTH = np.asarray([0, 1, 1, 0, 1])


def _fitted(estimator: Any, x: Any, *targets: Any) -> Any:
    """Fit an estimator to `x` and to constant targets, and return it."""
    return estimator.fit(x, *(asarray_like(x, t) if isinstance(t, np.ndarray) else t for t in targets))


def _logistic() -> Any:
    return linear_model.LogisticRegression(solver="lbfgs", max_iter=20)


PAIRS = words("""additive_chi2_kernel chi2_kernel cosine_distances cosine_similarity euclidean_distances laplacian_kernel linear_kernel
manhattan_distances pairwise_distances pairwise_kernels polynomial_kernel rbf_kernel sigmoid_kernel""")
REGRESSION = words("""d2_absolute_error_score d2_pinball_score explained_variance_score max_error mean_absolute_error
mean_absolute_percentage_error mean_pinball_loss mean_squared_error median_absolute_error r2_score root_mean_squared_error""")
ABOVE_ZERO = words("""d2_tweedie_score mean_gamma_deviance mean_poisson_deviance mean_squared_log_error mean_tweedie_deviance
root_mean_squared_log_error""")
SCORES = words("average_precision_score brier_score_loss d2_brier_score d2_log_loss_score log_loss")

ROWS: dict[str, Row] = {
    "sklearn.preprocessing.Binarizer": row(lambda x: preprocessing.Binarizer(threshold=0.5).fit_transform(x)),
    "sklearn.preprocessing.KernelCenterer": row(lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T)),
    "sklearn.preprocessing.MaxAbsScaler": row(lambda x: preprocessing.MaxAbsScaler().fit_transform(x)),
    "sklearn.preprocessing.MinMaxScaler": row(lambda x: preprocessing.MinMaxScaler().fit_transform(x)),
    "sklearn.preprocessing.Normalizer": row(lambda x: preprocessing.Normalizer().fit_transform(x)),
    "sklearn.preprocessing.PolynomialFeatures": row(lambda x: preprocessing.PolynomialFeatures().fit_transform(x)),
    "sklearn.preprocessing.StandardScaler": row(lambda x: preprocessing.StandardScaler().fit_transform(x)),
    "sklearn.decomposition.PCA(svd_solver='covariance_eigh')": row(
        lambda x: decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).explained_variance_
    ),
    "sklearn.decomposition.PCA(svd_solver='full')": row(lambda x: decomposition.PCA(2, svd_solver="full").fit_transform(x)),
    "sklearn.decomposition.PCA(svd_solver='randomized')": row(
        lambda x: decomposition.PCA(2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0).fit(x).explained_variance_
    ),
    "sklearn.kernel_approximation.Nystroem": row(
        lambda x: kernel_approximation.Nystroem("rbf", n_components=3, random_state=0).fit_transform(x)
    ),
    "sklearn.linear_model.LogisticRegression": row(lambda x: _fitted(_logistic(), x, LABELS).decision_function(x)),
    "sklearn.linear_model.PoissonRegressor": row(lambda x: _fitted(linear_model.PoissonRegressor(), x, POSITIVE).predict(x)),
    "sklearn.linear_model.Ridge": row(lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).predict(x * 2.0), X, TARGETS),
    "sklearn.linear_model.RidgeClassifier": row(
        lambda x: _fitted(linear_model.RidgeClassifier(solver="svd"), x, LABELS).decision_function(x)
    ),
    "sklearn.linear_model.RidgeCV": row(lambda x, y: linear_model.RidgeCV().fit(x, y).predict(x * 2.0), X, TARGETS),
    "sklearn.linear_model.RidgeClassifierCV": row(lambda x: _fitted(linear_model.RidgeClassifierCV(), x, LABELS).decision_function(x)),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": row(
        lambda x: _fitted(LinearDiscriminantAnalysis(), x, LABELS).decision_function(x)
    ),
    "sklearn.naive_bayes.GaussianNB": row(lambda x: _fitted(GaussianNB(), x, LABELS).predict_joint_log_proba(x)),
    "sklearn.mixture.GaussianMixture": row(
        lambda x: mixture.GaussianMixture(2, init_params="random_from_data", random_state=0, max_iter=3).fit(x).means_
    ),
    "sklearn.pipeline.Pipeline": row(
        lambda x: pipeline.make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(2, svd_solver="full")).fit_transform(x)
    ),
    "sklearn.calibration.CalibratedClassifierCV": row(
        lambda x: _fitted(
            calibration.CalibratedClassifierCV(LinearDiscriminantAnalysis(), method="temperature", cv=2), x, LABELS
        ).predict_proba(x)
    ),
    "sklearn.model_selection.GridSearchCV": row(
        lambda x, y: model_selection.GridSearchCV(linear_model.Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=2).fit(x, y).predict(x),
        X,
        TARGETS,
    ),
    "sklearn.model_selection.cross_val_predict": row(
        lambda x, y: model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), x, y, cv=2), X, TARGETS
    ),
    "sklearn.model_selection.train_test_split": row(lambda x: tuple(model_selection.train_test_split(x, random_state=0))),
    **{f"sklearn.metrics.pairwise.{name}": row(getattr(pairwise, name), X, X[:2] + 0.3) for name in PAIRS},
    **{
        f"sklearn.metrics.pairwise.{name}": row(getattr(pairwise, name), X, X * X + 0.3)
        for name in ("paired_cosine_distances", "paired_euclidean_distances", "paired_manhattan_distances")
    },
    **{f"sklearn.metrics.{name}": row(getattr(metrics, name), TARGETS, X[:, 0]) for name in REGRESSION},
    "sklearn.metrics.mean_squared_error(multioutput='raw_values')": row(
        partial(metrics.mean_squared_error, multioutput="raw_values"), X, X * X
    ),
    "sklearn.metrics.r2_score(multioutput='raw_values')": row(partial(metrics.r2_score, multioutput="raw_values"), X, X * X),
    **{f"sklearn.metrics.{name}": row(getattr(metrics, name), POSITIVE + 0.1, X[:, 0] + 0.2) for name in ABOVE_ZERO},
    **{f"sklearn.metrics.{name}": row(getattr(metrics, name), TRUTH, V) for name in SCORES},
    "sklearn.metrics.det_curve": row(metrics.det_curve, TRUTH, W),
    "sklearn.metrics.precision_recall_curve": row(metrics.precision_recall_curve, TRUTH, W),
    "sklearn.metrics.roc_curve": row(lambda t, s: metrics.roc_curve(t, s)[2][1:], TRUTH, W),
}
LEFT_OUT: dict[str, str] = {
    "it counts labels: integers go in, and there is nothing to differentiate": """
        sklearn.metrics.accuracy_score sklearn.metrics.balanced_accuracy_score sklearn.metrics.cohen_kappa_score
        sklearn.metrics.confusion_matrix sklearn.metrics.f1_score sklearn.metrics.fbeta_score sklearn.metrics.hamming_loss
        sklearn.metrics.jaccard_score sklearn.metrics.multilabel_confusion_matrix sklearn.metrics.precision_score
        sklearn.metrics.recall_score sklearn.metrics.zero_one_loss sklearn.preprocessing.LabelEncoder
    """,
    "it gives positions": "sklearn.metrics.pairwise.pairwise_distances_argmin",
}
