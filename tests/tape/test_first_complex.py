"""Law: once a process has made its first complex number, in whatever way, passes look for complex gradients.

Until then the engine does not look (`_tape/task.py`), so a way that fails to report the number would make gradients silently wrong. Each
way is tried in a separate process, forked from one that has seen no complex number.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

V = np.asarray([0.3, -0.7])
Z = np.asarray([0.3 + 1j, -0.7j])


class Turned(xp.autograd.Function):
    """A custom Function that returns complex numbers for real ones."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return xp.asarray(x.numpy() * 1j)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return xp.real(g * -1j)


def written(x: Any) -> Any:
    y = xp.zeros(2, dtype=xp.complex128)
    y[0] = x[0]
    return y


#: Ways to compute complex numbers from a real leaf.
WAYS: dict[str, Callable[[Any], Any]] = {
    "x * 1j": lambda x: x * 1j,
    "1j + x": lambda x: 1j + x,
    "x ** 1j": lambda x: x**1j,
    "where": lambda x: xp.where(x > 0, x, 1j),
    "a list": lambda x: x * xp.asarray([1j, 2.0]),
    "tensor": lambda x: x * xp.tensor(1j),
    "an array": lambda x: x * xp.asarray(Z),
    "a buffer": lambda x: x * xp.asarray(memoryview(Z)),
    "DLPack": lambda x: x * xp.from_dlpack(Z),
    "astype": lambda x: xp.astype(x, xp.complex128) * 2,
    "to": lambda x: x.to(xp.complex64) * 2,
    "fft": xp.fft.fft,
    "rfft": xp.fft.rfft,
    "ihfft": xp.fft.ihfft,
    "rfftn": xp.fft.rfftn,
    "full": lambda x: x * xp.full((2,), 1j),
    "zeros": lambda x: x + xp.zeros(2, dtype=xp.complex128),
    "eye": lambda x: x @ xp.eye(2, dtype=xp.complex128),
    "linspace": lambda x: x * xp.linspace(0, 1j, 2),
    "ones_like": lambda x: x * xp.ones_like(x, dtype=xp.complex64),
    "sum": lambda x: xp.sum(x, dtype=xp.complex128),
    "prod": lambda x: xp.prod(x, dtype=xp.complex128),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, dtype=xp.complex128),
    "a Function": Turned.apply,
    "a write": written,
    "a pickle": lambda x: x * pickle.loads(bytes.fromhex(os.environ["XPGRAD_PICKLED"])),
}


def gradient(way: str) -> Any:
    x = xp.tensor(V, requires_grad=True)
    y = WAYS[way](x)
    return xp.autograd.grad(xp.sum(xp.real(y * y * (0.3 + 0.2j))), x)[0].tolist()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.timeout(120)
def test_the_first_complex_number_may_come_in_any_way() -> None:
    pickled = pickle.dumps(xp.asarray(Z)).hex()
    environment = {**os.environ, "XPGRAD_PICKLED": pickled, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert list(found) == list(WAYS)
    os.environ["XPGRAD_PICKLED"] = pickled
    try:
        xp.asarray(Z)  # from here on this process has seen a complex number
        for way, said in found.items():
            np.testing.assert_allclose(np.asarray(eval(said, {})), np.asarray(gradient(way)), rtol=1e-6, err_msg=way)
    finally:
        del os.environ["XPGRAD_PICKLED"]


if __name__ == "__main__":
    for way in WAYS:
        child = os.fork()
        if child == 0:
            print(f"{way}\t{gradient(way)}", flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{way} failed")
