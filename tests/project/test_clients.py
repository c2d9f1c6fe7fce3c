"""Law: functions of libraries that accept any array can be differentiated on Tensors, without a line written for xpgrad.

SciPy reads ``SCIPY_ARRAY_API`` when it is imported, so the functions run in a process of their own, which prints one line for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy", reason="SciPy is the client")

SCRIPT = """
import json
import numpy as np
import scipy.cluster.vq, scipy.differentiate, scipy.fft, scipy.integrate, scipy.signal, scipy.spatial.transform, scipy.special, scipy.stats
import xpgrad as xp
from array_api_compat import array_namespace
from xpgrad._tensor import writing as inplace

scipy_functions = {
    "special.logsumexp": lambda x: scipy.special.logsumexp(x, axis=1),
    "special.softmax": lambda x: scipy.special.softmax(x, axis=1),
    "stats.zscore": scipy.stats.zscore,
    "stats.gmean": lambda x: scipy.stats.gmean(x + 1.0),
    "stats.hmean": lambda x: scipy.stats.hmean(x + 1.0),
    "stats.pmean": lambda x: scipy.stats.pmean(x + 1.0, 2.0),
    "stats.moment": lambda x: scipy.stats.moment(x, order=3),
    "stats.skew": scipy.stats.skew,
    "stats.kurtosis": scipy.stats.kurtosis,
    "stats.variation": lambda x: scipy.stats.variation(x + 1.0),
    "stats.sem": scipy.stats.sem,
    "stats.circmean": scipy.stats.circmean,
    "fft.fft": lambda x: xp.real(scipy.fft.fft(x)),
    "integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "integrate.cumulative_trapezoid": lambda x: scipy.integrate.cumulative_trapezoid(x, axis=0),
    "signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
}

# These write into their own temporaries, which depend on x.
writing = {
    "special.logsumexp, weighted": lambda x: scipy.special.logsumexp(x, axis=1, b=x + 1.0),
    "special.log_softmax": lambda x: scipy.special.log_softmax(x, axis=1),
    "stats.boxcox_llf": lambda x: scipy.stats.boxcox_llf(0.5, (x + 1.0)[:, 0]),
    "cluster.vq.whiten": scipy.cluster.vq.whiten,
    "stats.entropy": lambda x: scipy.stats.entropy(x + 1.0, x * x + 1.0),
    "stats.lmoment": lambda x: scipy.stats.lmoment(x[:, 0]),
    "stats.yeojohnson_llf": lambda x: scipy.stats.yeojohnson_llf(0.5, x),
    "signal.hilbert": lambda x: xp.imag(scipy.signal.hilbert(x, axis=0)),
    "signal.envelope": lambda x: scipy.signal.envelope(x[:, 0])[0],
    "integrate.cumulative_simpson": lambda x: scipy.integrate.cumulative_simpson(x, axis=0),
    "differentiate.jacobian": lambda x: scipy.differentiate.jacobian(lambda t: t * t, x[:, 0]).df,
    "spatial.transform.Rotation": lambda x: scipy.spatial.transform.Rotation.from_euler("xyz", x).as_quat(),
}

writes = 0
for name in ("setitem", "apply", "rewrite"):
    def counted(x, *args, original=getattr(inplace, name)):
        global writes
        out = original(x, *args)
        writes += x.requires_grad
        return out
    setattr(inplace, name, counted)

data = np.random.default_rng(0).random((4, 3))
x = xp.tensor(data, requires_grad=True)
assert array_namespace(x) is xp

def loss(function, x):
    out = function(x)
    weights = np.cos(np.arange(out.size) + 1.0).reshape(out.shape)
    return xp.sum(out * xp.asarray(weights))

def differences(function):
    grad = np.zeros_like(data)
    for place in np.ndindex(data.shape):
        step = np.zeros_like(data)
        step[place] = 1e-6
        grad[place] = (loss(function, xp.asarray(data + step)) - loss(function, xp.asarray(data - step))).item() / 2e-6
    return grad

import contextlib

allow = xp.autograd.graph.allow_mutation_on_saved_tensors
for name, function in (scipy_functions | writing).items():
    writes = 0
    with allow() if name in writing else contextlib.nullcontext():
        (grad,) = xp.autograd.grad(loss(function, x), x)
    assert writes or name not in writing, name
    print(json.dumps([name, bool(np.allclose(grad.numpy(), differences(function), rtol=1e-5, atol=1e-7))]))
"""


def test_scipy_functions_differentiate_on_tensors() -> None:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == 28
    assert [name for name, right in found if not right] == []
