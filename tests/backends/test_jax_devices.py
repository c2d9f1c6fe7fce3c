"""Law: on several devices, also while traced, Tensors say where they are, and a leaf's gradient is sharded like the leaf.

The tests use four devices of the host in separate processes; the expected gradients are NumPy's in double precision.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

PRELUDE = """
import jax, numpy as np, xpgrad as xp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
"""


def on_four_devices(code: str) -> str:
    environment = {
        **os.environ,
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "NPROC": "16",
    }
    command = [sys.executable, "-W", "error", "-c", PRELUDE + code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_devices_of_traced_tensors() -> None:
    """Tensors made on an argument's device can be combined with it; results and gradients are on the arguments' device."""
    code = """
x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True, device="jax:cpu:1")
def loss(a):
    assert a.device == xp.asarray(a.array).device == "jax:cpu:1", (a.device, xp.asarray(a.array).device)
    made = xp.asarray([1.0, 2.0, 3.0], device=a.device) + xp.zeros(3, device=a.device) + xp.arange(3, dtype=a.dtype, device=a.device)
    written = xp.where(a > 1.0, a, 0.0)
    written[0] = 5.0
    picked = xp.take(a, xp.asarray([0, 0], device=a.device))
    (inner,) = xp.autograd.grad(xp.sum(a * a * a), a)
    assert inner.device == "jax:cpu:1", inner.device
    return xp.sum(a * made) + xp.sum(written * written) + xp.sum(picked) + xp.sum(inner * a)
def gradient(a):
    return xp.autograd.grad(loss(a), a)[0]
compiled = xp.compile(loss)
first, recorded = (xp.autograd.grad(compiled(x), x, create_graph=c)[0] for c in (False, True))
for found in (gradient(x), jax.jit(gradient)(x), first, recorded):
    print(found.device, sorted(d.id for d in found.array.devices()), found.tolist())
rows = jax.vmap(gradient)(xp.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True, device="jax:cpu:1"))
print(rows.device, rows.tolist()[0] == rows.tolist()[1] == gradient(x).tolist())
"""
    # made + 2 w [a > 1, but not at 0] + 2 at 0 + 3 a^2
    expected = [1.0 + 2.0 + 3.0, 3.0 + 4.0 + 12.0, 5.0 + 6.0 + 27.0]
    assert on_four_devices(code).splitlines() == [*[f"jax:cpu:1 [1] {expected}"] * 4, "jax:cpu:1 True"]


def test_the_default_device_of_jax_does_not_move_tensors() -> None:
    code = """
with jax.default_device(jax.devices()[2]):
    for x in (xp.tensor([1.0], device="jax"), xp.zeros(1, device="jax"), xp.tensor([1.0], device="jax:cpu:3") * 2.0):
        print(x.device, [d.id for d in x.array.devices()])
"""
    assert on_four_devices(code).splitlines() == ["jax:cpu:0 [0]", "jax:cpu:0 [0]", "jax:cpu:3 [3]"]


#: Losses of a vector, and whether they work on devices that do not include the first one, where new arrays are made by default.
LOSSES = {
    "xp.sum(a)": True, "xp.sum(a * a)": True, "xp.mean(xp.sin(a) * 2.0 + 1.0)": True, "xp.max(a)": True, "xp.std(a) + xp.var(a)": True,
    "xp.sum(xp.cumulative_prod(a))": True, "xp.sum(xp.sort(a) * a)": True, "xp.sum(a[::2] ** 2)": True, "xp.prod(a)": True,
    "xp.linalg.vector_norm(a)": True, "xp.sum(xp.concat([a, a]) ** 2)": True, "xp.sum(xp.roll(a, 1) * a)": True,
    "xp.sum(xp.reshape(a, (4, 2)) @ xp.reshape(a, (2, 4)))": True, "compiled(a)": True, "xp.sum(recorded(a))": True,
    "xp.sum(xp.take(a, xp.asarray([0, 1, 1], device=a.device)) ** 2)": False, "xp.sum(xp.where(a > 2.0, a, 0.0))": False,
    "xp.sum(written(a))": False,
}  # fmt: skip


def test_gradients_of_sharded_leaves() -> None:
    """A gradient has the sharding of its leaf, on all devices or on two of them, after one pass and after two."""
    code = f"""
LOSSES = {LOSSES}
compiled = xp.compile(lambda a: xp.sum(xp.sin(a) * a))
def recorded(a):
    leaf = a if a.is_leaf else a.detach()
    return xp.autograd.grad(xp.sum(xp.exp(0.1 * leaf) * leaf), leaf, create_graph=True)[0]
def written(a):
    a = a * 1.0
    a[0] = 3.0
    a[1:3] *= 2.0
    a[a > 6.0] = 0.5
    return a * a
import warnings
warnings.simplefilter("ignore", UserWarning)
for devices in (jax.devices(), jax.devices()[1:3]):
    parts = NamedSharding(Mesh(np.asarray(devices), ("d",)), P("d"))
    for text, everywhere in LOSSES.items():
        if not everywhere and len(devices) == 2:
            continue
        a = xp.tensor(np.arange(8.0) + 1.0, requires_grad=True)
        eval(text).backward()
        eval(text).backward()
        expected = a.grad.numpy()
        a = xp.asarray(jax.device_put(np.arange(8.0) + 1.0, parts))
        a.requires_grad_()
        for k in (1, 2):
            eval(text).backward()
            assert a.grad.array.sharding == parts, (text, k, a.grad.array.sharding)
        np.testing.assert_allclose(np.asarray(a.grad.array), expected, rtol=1e-12, err_msg=text)
        print(text)
"""
    lines = on_four_devices(code).splitlines()
    assert lines == [*LOSSES, *(text for text, everywhere in LOSSES.items() if everywhere)]


def test_tree_maps_to_other_dtypes() -> None:
    """The results of a tree map require grad if their Tensor did and if their dtype allows it."""
    code = """
x = xp.tensor([1.0, -2.0], requires_grad=True, device="jax")
for out in (jax.tree_util.tree_map(lambda raw: raw > 0.0, x), jax.tree_util.tree_map(lambda raw: 2.0 * raw, x)):
    print(out.dtype, out.requires_grad, out.is_leaf, out.tolist())
"""
    assert on_four_devices(code) == "bool False True [True, False]\nfloat64 True True [2.0, -4.0]\n"
