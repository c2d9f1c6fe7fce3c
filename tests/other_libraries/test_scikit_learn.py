"""Law: scikit-learn computes with Tensors where it dispatches, with constants elsewhere, and says how to get gradients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import numbers

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

TESTS = Path(__file__).resolve().parents[1]
X, Y = numbers((6, 3)) + 2.0, numbers((6,), 2.0)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_gradients_agree_with_differences() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "ignore", "-m", "other_libraries.scikit_learn"]
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    without = {name: error for name, error in found.items() if name.endswith(", without")}
    assert len(found) == 28
    assert {name: error for name, error in found.items() if error and name not in without} == {}
    assert len(without) == 6
    for name, error in without.items():
        assert "modified by an inplace operation" in error, name
        assert "numpy_code" in error, name


def test_constants_work_without_dispatch() -> None:
    from sklearn import decomposition, linear_model, metrics, preprocessing

    x, y = xp.asarray(X), xp.asarray(Y)
    np.testing.assert_allclose(preprocessing.StandardScaler().fit_transform(x), preprocessing.StandardScaler().fit_transform(X))
    np.testing.assert_allclose(linear_model.LinearRegression().fit(x, y).predict(x), linear_model.LinearRegression().fit(X, Y).predict(X))
    np.testing.assert_allclose(decomposition.PCA(2).fit(x).explained_variance_, decomposition.PCA(2).fit(X).explained_variance_)
    assert metrics.mean_squared_error(y, y + 1.0) == pytest.approx(1.0)


def test_without_dispatch_the_error_names_it() -> None:
    from sklearn import preprocessing

    with pytest.raises(RuntimeError, match=r"To keep the gradient, call it inside `sklearn\.config_context\(array_api_dispatch=True\)`"):
        preprocessing.StandardScaler().fit(xp.tensor(X, requires_grad=True))
