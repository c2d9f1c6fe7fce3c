"""Law: with JAX's 64-bit dtypes off, programs run in single precision, to its accuracy, and nothing asks for more silently.

JAX warns if float64 or int64 is requested while it is disabled; here the warning is an error. The expected values are NumPy's in double
precision.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

#: Expressions in Tensors a, b (vectors of length 4), m, n (4 by 4, m positive definite), c (complex), integers i, and NumPy's integers k.
EXPRESSIONS = """
xp.sin(a) * xp.exp(b) / a - a ** b
xp.where(a > b, a, b) + xp.maximum(a, b) + xp.clip(a, 0.5, 1.0)
xp.hypot(a, b) + xp.atan2(a, b) + xp.logaddexp(a, b)
xp.sum(a) + xp.mean(a) + xp.var(a) + xp.std(b, correction=1) + xp.prod(a) + xp.max(b) + xp.min(a)
xp.cumulative_sum(a) * xp.cumulative_prod(b)
xp.sort(a) + xp.take(b, xp.argsort(a))
xp.take(a, i) + xp.take_along_axis(b, i)
a[i] * b[::-1] + a[a > 0.8][0]
written(a, b, i)
a[k] * xp.take(b, k) + xp.take_along_axis(a, k) + a.gather(0, k) + b.index_select(0, k) + np.take(a, k) + a[xp.asarray(k, device="numpy")]
written(a, b, k) + xp.repeat(a, k)[:4] + m[np.ix_(k, k)][0] + a.scatter_add(0, k, b)
xp.concat([a, b])[1:5] + xp.roll(a, 1) + xp.repeat(a, 2)[::2] + xp.flip(b)
xp.stack([a, b]) @ m + xp.tensordot(a, b, axes=1)
xp.linalg.solve(m, n) + xp.linalg.inv(m) + xp.linalg.cholesky(m)
xp.linalg.det(m) + xp.linalg.slogdet(m).logabsdet + xp.linalg.trace(n) + xp.linalg.vector_norm(a) + xp.linalg.matrix_norm(n)
xp.linalg.eigvalsh(m) + xp.linalg.svdvals(n)
xp.linalg.qr(m).R * n
xp.linalg.eigh(m).eigenvectors ** 2
xp.linalg.pinv(m) + xp.linalg.matrix_power(n, 3)
xp.real(c * xp.conj(c)) + xp.abs(c) + xp.imag(xp.exp(c))
xp.real(xp.fft.fft(a)) + xp.abs(xp.fft.fft(c)) + xp.fft.irfft(xp.fft.rfft(b))
xp.tril(m) + xp.triu(n) + xp.linalg.diagonal(m) + xp.linalg.outer(a, b) + xp.linalg.cross(a[:3], b[:3])[0]
xp.diff(a)[0] + xp.pad(a, (1, 2))[2] + xp.einsum("ij,j->i", m, a) + xp.squeeze(a[None], axis=0)
xp.count_nonzero(a) * a + xp.searchsorted(xp.sort(a).detach(), b.detach()) * b + xp.argmax(a) * a
xp.astype(a, xp.float16) * 2 + xp.astype(xp.astype(b, brain) * 2, a.dtype)
xp.linspace(0, 1, 4, device=a.device) * a + xp.arange(4, device=a.device) * b + xp.eye(4, device=a.device)[0]
xp.full(4, 2.0, device=a.device) * a + xp.zeros(4, device=a.device) + xp.asarray([1.0, 2, 3, 4], device=a.device)
compiled(a, b)
""".strip().splitlines()

CODE = """
import sys
import numpy as np
import xpgrad as xp

def written(a, b, i):
    a = a * 1.0
    a[1:3] *= 2.0
    a[i] = b
    a[a > 1.2] = 0.25
    a[0] += b[1]
    return a

def run(text, device, single):
    rng = np.random.default_rng(0)
    def leaf(values):
        if single:
            values = values.astype({"f": "float32", "c": "complex64"}[values.dtype.kind])
        return xp.tensor(values, requires_grad=True, device=device)
    a, b = leaf(rng.uniform(0.5, 1.5, 4)), leaf(rng.uniform(0.5, 1.5, 4))
    root = rng.uniform(0.5, 1.5, (4, 4))
    m, n = leaf(root @ root.T + 2.0 * np.eye(4)), leaf(rng.uniform(0.5, 1.5, (4, 4)))
    c = leaf(rng.uniform(0.5, 1.5, 4) + 1j * rng.uniform(0.5, 1.5, 4))
    i = xp.asarray(np.asarray([2, 0, 2, 1], dtype="int32"), device=device)
    function = lambda a, b: xp.sum(xp.tanh(a * b)) * 2.0
    k = np.asarray([2, 0, 2, 1])
    scope = {"xp": xp, "np": np, "k": k, "a": a, "b": b, "m": m, "n": n, "c": c, "i": i, "written": written,
             "brain": xp.bfloat16 if single else xp.float64,
             "compiled": xp.compile(function) if single else function}
    out = eval(text, scope)
    leaves = [t for t in (a, b, m, n, c)]
    first = xp.autograd.grad(xp.sum(out * out), leaves, create_graph=True, allow_unused=True)
    total = sum((xp.sum(xp.real(g * xp.conj(g))) for g in first if g is not None), 0.0 * xp.sum(a))
    second = xp.autograd.grad(total, leaves, allow_unused=True)
    if single:
        assert out.dtype in (xp.float32, xp.float16), out.dtype
        for g, x in zip((*first, *second), leaves * 2):
            assert g is None or g.dtype is x.dtype, (g.dtype, x.dtype)
    return [None if t is None else np.asarray(t.detach().numpy()) for t in (out, *first, *second)]

for text in sys.stdin.read().splitlines():
    try:
        found, expected = run(text, "jax", True), run(text, "numpy", False)
        rough = 3e-2 if "16" in text else 2e-3
        for a, b in zip(found, expected):
            assert (a is None) == (b is None)
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=rough, atol=rough * np.abs(b).max())
        print("agrees")
    except Exception as exc:
        print(text, "->", type(exc).__name__, " ".join(str(exc).split())[:400])
"""


def test_single_precision_agrees_with_double() -> None:
    environment = {**os.environ, "JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        input="\n".join(EXPRESSIONS), env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    assert len(lines) == len(EXPRESSIONS), run.stderr
    assert [line for line in lines if line != "agrees"] == []


def test_numpys_indices_that_do_not_fit_are_out_of_range() -> None:
    """They have 64 bits: 2**32 would become 0 in 32."""
    code = """
import numpy as np
import xpgrad as xp
x = xp.tensor([1.0, 2.0], device="jax")
for index in (np.array([2**32]), np.array([-(2**32)]), np.array([2**63], dtype="uint64")):
    for read in (lambda: x[index], lambda: xp.take(x, index), lambda: x.index_select(0, index), lambda: np.take(x, index)):
        try:
            print(read())
        except IndexError:
            print("refused")
try:
    print(x[np.array([0.0])])
except (IndexError, xp.CapabilityError) as exc:
    print("refused")
"""
    environment = {**os.environ, "JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["refused"] * 13, run.stdout + run.stderr
