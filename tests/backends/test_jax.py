"""Law: on JAX, the same programs give the same gradients eager and traced; a transform that would lose something raises an error.

The rules' tests also run on JAX: ``JAX_ENABLE_X64=1 XPGRAD_TEST_DEVICES=jax:cpu:0 python -m pytest --all tests``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("x64")


def make(values: Any, requires_grad: bool = True) -> Any:
    return xp.tensor(np.asarray(values, dtype=float), requires_grad=requires_grad, device="jax")


def fresh(code: str, **environment: str) -> Any:
    """Run a program in a separate process, with these environment variables for JAX."""
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False, timeout=240)


# -- in and out --------------------------------------------------------------------------------------------------------------------


def test_memory_is_not_shared_with_numpy() -> None:
    """A later write to a NumPy array does not change the JAX array made of it (JAX keeps aligned memory without a copy)."""
    for size in (3, 64, 4096):
        host = np.arange(float(size))
        x = xp.asarray(host, device="jax")
        y = x * 1.0
        host[:] = -1.0
        assert x.tolist() == y.tolist() == list(range(size))


def test_raw_arrays_bring_their_device_and_are_not_changed() -> None:
    raw = jnp.asarray([1.0, 2.0])
    x = xp.asarray(raw)
    assert x.device == "jax:cpu:0"
    assert x.array is raw
    x += 1.0
    assert raw.tolist() == [1.0, 2.0]
    assert x.tolist() == [2.0, 3.0]


def test_indices_out_of_range_are_errors() -> None:
    """An index out of range raises an error, while JAX alone would clamp it."""
    x = make([1.0, 2.0])
    for key in (2, -3, (0, 0), xp.asarray([0, 2], device="jax")):
        with pytest.raises(IndexError):
            x[key]


def test_without_64_bits_it_says_so_and_works_in_32() -> None:
    code = """
import numpy as np, xpgrad as xp
x = xp.tensor([1.0, 2.0], requires_grad=True, device="jax")
y = xp.sum(xp.sin(x) * x[0] + xp.asarray([3, 4], device="jax"))
y.backward()
print(x.dtype, y.dtype, x.grad.dtype, xp.argmax(x).dtype)
expected = [np.cos(1.0) * 1.0 + np.sin(1.0) + np.sin(2.0), np.cos(2.0)]
print(bool(np.allclose(x.grad.numpy(), expected, rtol=1e-6)))
make = lambda: xp.zeros(2, dtype=xp.float64, device="jax")
wide = lambda: xp.asarray(np.ones(2), device="jax")
cast = lambda: xp.astype(x, xp.complex128)
for call in (make, wide, cast):
    try:
        call()
    except xp.CapabilityError as exc:
        print("jax_enable_x64" in str(exc))
print(type(x).backend.capabilities.float64)
"""
    run = fresh(code, JAX_ENABLE_X64="0")
    assert run.stdout.split("\n")[:6] == [
        "float32 float32 float32 int32", "True", "True", "True", "True", "False",
    ], run.stdout + run.stderr  # fmt: skip


# -- transforms ----------------------------------------------------------------------------------------------------------------------


def model(w: Any, x: Any) -> Any:
    """Return a loss with slices, broadcasting, a gather, a write and reductions."""
    h = xp.tanh(x @ w) * w[0]
    h = xp.concat([h[1:], h[:1]])
    h[0] = xp.sum(w, axis=0)
    picked = xp.take(h, xp.asarray([0, 2, 2], device=h.device), axis=0)
    return xp.mean(picked * picked) + xp.max(h)


def gradient(w: Any, x: Any) -> Any:
    (g,) = xp.autograd.grad(model(w, x), w)
    return g


def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 2)), rng.standard_normal((4, 3))


def expected() -> np.ndarray:
    w, x = points()
    return np.asarray(gradient(xp.tensor(w, requires_grad=True), xp.tensor(x)).numpy())


def test_forward_and_backward_under_jit() -> None:
    w, x = points()
    compiled = jax.jit(gradient)
    for _ in range(2):
        g = compiled(make(w), make(x, False))
        assert isinstance(g, xp.Tensor)
        assert (g.device, g.requires_grad) == ("jax:cpu:0", False)
        np.testing.assert_allclose(g.numpy(), expected(), rtol=1e-12)


def test_backward_into_leaves_made_inside_jit() -> None:
    w, x = points()

    def step(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        model(leaf, make(x, False)).backward()
        assert leaf.grad is not None
        return leaf.grad.array

    compiled = jax.jit(step)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(compiled(jnp.asarray(w))), expected(), rtol=1e-12)


def test_vmap_over_gradients() -> None:
    w, x = points()
    many = np.stack([x, 2.0 * x, -x])
    batched = jax.vmap(gradient, in_axes=(None, 0))(make(w), make(many, False))
    for got, point in zip(batched.numpy(), many):
        single = gradient(xp.tensor(w, requires_grad=True), xp.tensor(point)).numpy()
        np.testing.assert_allclose(got, single, rtol=1e-12)


def test_jax_differentiates_what_xpgrad_computes() -> None:
    """`jax.grad` differentiates a forward computed with xpgrad, and a backward."""
    w, x = points()
    through_forward = jax.grad(lambda raw: model(xp.asarray(raw), make(x, False)).array)(jnp.asarray(w))
    np.testing.assert_allclose(np.asarray(through_forward), expected(), rtol=1e-12)

    def norm(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        return xp.sum(gradient(leaf, make(x, False)) ** 2).array

    leaf = make(w)
    (g,) = xp.autograd.grad(model(leaf, make(x, False)), leaf, create_graph=True)
    (second,) = xp.autograd.grad(xp.sum(g**2), leaf)
    np.testing.assert_allclose(np.asarray(jax.grad(norm)(jnp.asarray(w))), second.numpy(), rtol=1e-9)


def test_a_traced_chain_has_as_many_equations_as_jax_makes() -> None:
    def chain(m: Any, x: Any) -> Any:
        for _ in range(50):
            x = m.sin(x) * 0.9 + 0.1
        return m.sum(x)

    def ours(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        (g,) = xp.autograd.grad(chain(xp, leaf), leaf)
        return g.array

    theirs = jax.make_jaxpr(jax.grad(lambda x: chain(jnp, x)))(jnp.ones(4))
    assert len(jax.make_jaxpr(ours)(jnp.ones(4)).eqns) <= 1.1 * len(theirs.eqns)


def test_what_depends_on_values_says_so_inside_jit() -> None:
    for function in (lambda x: x.item(), lambda x: x[x > 0.0], lambda x: x.numpy(), float):
        with pytest.raises((xp.CapabilityError, jax.errors.JAXTypeError)):
            jax.jit(lambda raw, f=function: f(xp.asarray(raw)))(jnp.ones(3))
    assert "traced" in repr_inside()


def repr_inside() -> str:
    seen = []
    jax.jit(lambda raw: seen.append(repr(xp.asarray(raw))))(jnp.ones(3))
    return str(seen[0])


def test_tensors_are_pytrees() -> None:
    x = make([1.0, 2.0])
    leaves, tree = jax.tree_util.tree_flatten({"w": x, "n": 3})
    assert len(leaves) == 2
    back = jax.tree_util.tree_unflatten(tree, leaves)["w"]
    assert back.requires_grad
    assert back.is_leaf
    assert back.device == x.device
    doubled = jax.tree_util.tree_map(lambda a: 2 * a, x)
    assert doubled.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match=r"with history .* cannot enter or leave a transform of JAX"):
        jax.jit(lambda y: y)(x * 2.0)


def test_pytrees_lose_no_derivative() -> None:
    """A Tensor with a tangent, or with a derivative of a transform of xpgrad, cannot enter a transform of JAX."""
    x = make([1.0, 2.0], False)
    enter = (lambda y: xp.asarray(jax.jit(lambda t: xp.sum(t * t).array)(y)), lambda y: xp.sum(jax.tree_util.tree_map(lambda a: 2 * a, y)))
    for transform in (xp.func.grad, xp.func.jacfwd, xp.func.jacrev, xp.func.hessian):
        for function in enter:
            with pytest.raises(RuntimeError, match="cannot enter or leave a transform of JAX"):
                transform(lambda y, f=function: f(y) + xp.sum(y))(x)
            transform(lambda y, f=function: f(y.detach()) + xp.sum(y * y))(x)
    forward = xp.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(x, x)
        for function in enter:
            with pytest.raises(RuntimeError, match="has a tangent cannot enter or leave a transform of JAX"):
                function(dual)


def test_sharded_arrays_stay_sharded() -> None:
    """The gradients of data and of a weight on four host devices keep their shardings; `shard_map` sees the parts."""
    code = """
import jax, numpy as np, xpgrad as xp
from functools import partial
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.asarray(jax.devices()).reshape(4), ("data",))
rows, whole = NamedSharding(mesh, P("data", None)), NamedSharding(mesh, P())
rng = np.random.default_rng(0)
data, weight = rng.standard_normal((8, 3)), rng.standard_normal((3, 2))
x = xp.asarray(jax.device_put(data, rows)); x.requires_grad_()
w = xp.asarray(jax.device_put(weight, whole)); w.requires_grad_()
xp.mean(xp.tanh(x @ w) ** 2).backward()
print(x.grad.array.sharding.is_equivalent_to(rows, 2), w.grad.array.sharding.is_fully_replicated, len(x.grad.array.sharding.device_set))
a, b = xp.tensor(data, requires_grad=True), xp.tensor(weight, requires_grad=True)
xp.mean(xp.tanh(a @ b) ** 2).backward()
print(np.allclose(np.asarray(x.grad.array), a.grad.numpy()), np.allclose(np.asarray(w.grad.array), b.grad.numpy()))

def part(raw, weight):
    leaf = xp.asarray(raw); leaf.requires_grad_()
    (g,) = xp.autograd.grad(xp.sum(xp.tanh(leaf @ xp.asarray(weight)) ** 2), leaf)
    return g.array

parts = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=(P("data", None), P()), out_specs=P("data", None)))(x.array, w.array)
print(np.allclose(np.asarray(parts), a.grad.numpy() * 16))
"""
    run = fresh(code, JAX_ENABLE_X64="1", XLA_FLAGS="--xla_force_host_platform_device_count=4", NPROC="16")
    assert run.stdout == "True True 4\nTrue True\nTrue\n", run.stdout + run.stderr


def test_devices_of_one_process() -> None:
    code = """
import xpgrad as xp, numpy as np
x = xp.tensor([1.0, 2.0], requires_grad=True, device="jax:cpu:1")
y = (x * x).to_device("jax:cpu:2")
xp.sum(y * y).backward()
print(x.grad.device, y.device, x.grad.tolist(), xp.zeros(2, device="jax:cpu:3").device)
try:
    x * y
except xp.DeviceMismatchError as exc:
    print("jax:cpu:1" in str(exc) and "jax:cpu:2" in str(exc))
"""
    run = fresh(code, JAX_ENABLE_X64="1", XLA_FLAGS="--xla_force_host_platform_device_count=4", NPROC="16")
    assert run.stdout == "jax:cpu:1 jax:cpu:2 [4.0, 32.0] jax:cpu:3\nTrue\n", run.stdout + run.stderr


# -- compile -------------------------------------------------------------------------------------------------------------------------


def test_a_compiled_function_is_one_node_and_gives_the_same_gradients() -> None:
    w, x = points()
    calls = []

    @xp.compile
    def loss(w: Any, x: Any, scale: float = 1.0) -> Any:
        calls.append(scale)
        return scale * model(w, x)

    leaf, data = make(w), make(x, False)
    out = loss(leaf, data)
    assert out.grad_fn.name() == "CompiledBackward0"
    assert out.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    out.backward()
    np.testing.assert_allclose(leaf.grad.numpy(), expected(), rtol=1e-12)
    leaf.grad = None
    (2.0 * loss(leaf, data)).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * expected(), rtol=1e-12)
    assert len(calls) == 1
    loss(leaf, data, scale=3.0)
    assert calls == [1.0, 3.0]
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_compiled_functions_of_structures() -> None:
    w, x = points()

    @xp.compile
    def both(parameters: dict[str, Any], x: Any) -> Any:
        h = x @ parameters["w"] + parameters["b"]
        return {"h": h, "parts": (xp.sum(h, axis=0), xp.argmax(h)), "name": "both"}

    for device in ("jax", "numpy"):
        leaves = {"w": xp.tensor(w, requires_grad=True, device=device), "b": xp.tensor([0.1, 0.2], requires_grad=True, device=device)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            out = both(leaves, xp.tensor(x, device=device))
        assert out["name"] == "both"
        assert not out["parts"][1].requires_grad
        (xp.sum(out["h"] ** 2) + xp.sum(out["parts"][0] ** 2)).backward()
        grads = [leaf.grad.numpy() for leaf in leaves.values()]
        if device == "jax":
            first = grads
    for a, b in zip(first, grads):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_compiled_functions_differentiate_twice() -> None:
    w, x = points()
    compiled = xp.compile(model)
    found = []
    for function in (model, compiled):
        leaf = make(w)
        (g,) = xp.autograd.grad(function(leaf, make(x, False)), leaf, create_graph=True)
        found.append(xp.autograd.grad(xp.sum(g**3), leaf)[0].numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_what_a_compiled_function_would_lose_is_refused() -> None:
    w = make([1.0, 2.0])
    with pytest.raises(RuntimeError, match="is not one of its arguments: its gradient would be lost"):
        xp.compile(lambda x: x * w)(make([1.0, 2.0], False))

    def writes(x: Any) -> Any:
        x += 1.0
        return x

    with pytest.raises(RuntimeError, match="writes to one of its arguments"):
        xp.compile(writes)(make([1.0, 2.0], False))
    with pytest.raises(TypeError, match="hashable"):
        xp.compile(lambda x, a: x)(w, {1.0, 2.0})


def test_a_compiled_function_is_one_event_of_a_profile() -> None:
    """A call of a compiled function is one event of a profile; tracing while it is compiled makes none."""
    compiled = xp.compile(lambda x: xp.sum(xp.sin(x) * x))
    for _ in range(2):
        x = make([1.0, 2.0])
        with xp.autograd.profiler.profile() as prof:
            compiled(x).backward()
        assert [event.name for event in prof.function_events] == ["<lambda>", "CompiledBackward0", "AccumulateGrad"]


# -- programs ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_random_programs_of_writes_agree_with_numpy() -> None:
    pytest.importorskip("torch", reason="the programs are those of the comparison with PyTorch")
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(40):
            program = draw(seed, strides=False)
            check(seed, Machine("xpgrad").run(program), Machine("xpgrad", "jax").run(program), program)
