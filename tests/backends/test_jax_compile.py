"""Law: a compiled function has the gradients of the function, however its arguments are related; otherwise it refuses.

The expected gradients are NumPy's float64 results of the same function uncompiled.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

jax = pytest.importorskip("jax", reason="JAX is not installed")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("x64")


def make(values: Any, requires_grad: bool = True, **options: Any) -> Any:
    return xp.tensor(np.asarray(values), requires_grad=requires_grad, device="jax", **options)


def total(a: Any, b: Any) -> Any:
    return xp.sum(xp.sin(a) * b * b)


def parts(a: Any, b: Any) -> Any:
    return a[1:] * b[:-1] ** 2, xp.sum(a * b), xp.argmax(b)


def product(a: Any, b: Any) -> Any:
    return a * xp.exp(0.5 * b) * b


def nested(a: Any, b: Any) -> Any:
    return {"first": [a * b, (b**3,)], "unused": a.detach()}


FUNCTIONS = [total, parts, product, nested]
#: How the two arguments come about: from two leaves.
ARGUMENTS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "two leaves": lambda p, q: (p, q),
    "one leaf twice": lambda p, q: (p, p),
    "computed from the other": lambda p, q: (p, 2.0 * p * q),
    "both computed": lambda p, q: (xp.sin(p), xp.sin(p) * q),
    "views of one": lambda p, q: (p[:2], p[1:]),
    "one is constant": lambda p, q: (p, q.detach()),
}


def flat(out: Any) -> list[Any]:
    if isinstance(out, dict):
        return flat(list(out.values()))
    if isinstance(out, (tuple, list)):
        return [t for item in out for t in flat(item)]
    return [out]


def gradients(function: Any, arguments: Any, device: str, dtype: str) -> list[Any]:
    """First and second gradients of the sum of squares of what the function returns."""
    rng = np.random.default_rng(0)
    points = [rng.uniform(0.5, 1.5, 3) + (1j * rng.uniform(0.5, 1.5, 3) if dtype == "complex128" else 0.0) for _ in range(2)]
    leaves = [xp.tensor(p, requires_grad=True, device=device) for p in points]

    def loss() -> Any:
        outs = [o for o in flat(function(*arguments(*leaves))) if o.requires_grad]
        terms = [xp.sum(xp.real(o * xp.conj(o))) for o in outs] if dtype == "complex128" else [xp.sum(o * o) for o in outs]
        result = terms[0]
        for t in terms[1:]:
            result = result + t
        return result

    loss().backward()
    first = [leaf.grad for leaf in leaves]
    grads = [g for g in xp.autograd.grad(loss(), leaves, create_graph=True, allow_unused=True) if g is not None and g.requires_grad]
    norm = sum(
        (xp.sum(xp.real(g * xp.conj(g))) if dtype == "complex128" else xp.sum(g * g) for g in grads[1:]), xp.sum(xp.abs(grads[0]) ** 2)
    )
    second = xp.autograd.grad(norm, leaves, allow_unused=True)
    return [None if g is None else np.asarray(g.detach().numpy()) for g in (*first, *grads, *second)]


@pytest.mark.parametrize("arguments", list(ARGUMENTS))
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_function(function: Any, arguments: str) -> None:
    expected = gradients(function, ARGUMENTS[arguments], "numpy", "float64")
    found = gradients(xp.compile(function), ARGUMENTS[arguments], "jax", "float64")
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("arguments", ["two leaves", "computed from the other"])
def test_complex_gradients_are_those_of_the_function(arguments: str) -> None:
    expected = gradients(product, ARGUMENTS[arguments], "numpy", "complex128")
    found = gradients(xp.compile(product), ARGUMENTS[arguments], "jax", "complex128")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_gradients_have_the_dtype_of_their_argument() -> None:
    """A double-precision loss is computed from a single-precision intermediate result."""
    leaf = make([1.0, 2.0], dtype=xp.float32)
    y = leaf * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(g.dtype))
    (3.0 * xp.compile(lambda a: xp.sum(xp.astype(a, xp.float64) ** 2))(y)).backward()
    assert seen == [xp.float32]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [24.0, 48.0]


def test_batched_gradients_and_hooks_pass_through() -> None:
    leaf = make([1.0, 2.0, 3.0])
    out = xp.compile(lambda a: a * a)(leaf)
    seen = []
    handle = out.register_hook(lambda g: seen.append(g.shape))
    (jacobian,) = xp.autograd.grad(out, leaf, xp.eye(3, device="jax"), is_grads_batched=True, retain_graph=True)
    np.testing.assert_allclose(jacobian.numpy(), np.diag([2.0, 4.0, 6.0]))
    assert seen == [(3,)]  # one call, for each element of the batch at once
    handle.remove()
    seen.clear()
    out.register_hook(lambda g: seen.append(g.tolist()))
    out.retain_grad()
    out.backward(make([1.0, 0.5, 2.0], False))
    assert seen == [[1.0, 0.5, 2.0]]
    assert out.grad is not None
    assert out.grad.tolist() == [1.0, 0.5, 2.0]
    assert leaf.grad.tolist() == [2.0, 2.0, 12.0]


def test_writes_before_the_backward_are_noticed() -> None:
    """A write to an argument is refused, one to the result has its gradient; the loss's gradients are those of before."""
    leaf = make([1.0, 2.0])
    out = xp.compile(lambda a: a * a)(leaf)
    loss = xp.compile(lambda a: xp.sum(a * a))(leaf)
    constant = make([3.0, 4.0], False)
    product = xp.compile(lambda a, b: a * b)(leaf, constant)
    constant += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(product).backward()
    with xp.no_grad():
        leaf += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(out).backward()
    loss.backward()
    assert leaf.grad.tolist() == [2.0, 4.0]
    out = xp.compile(lambda a: a * a)(leaf)
    out *= 3.0
    out[0] = 0.0
    leaf.grad = None
    xp.sum(out).backward()
    assert leaf.grad.tolist() == [0.0, 18.0]


def test_a_changed_constant_is_read_as_it_was_saved() -> None:
    """`x.data` is written to unseen: the second pass, recorded, still finds the value of the forward."""
    leaf, constant = make([1.0, 2.0]), make([3.0, 4.0], False)
    out = xp.sum(xp.compile(lambda a, b: a * a * b)(leaf, constant))
    constant.data.mul_(10.0)
    (g,) = xp.autograd.grad(out, leaf, create_graph=True)
    assert g.tolist() == [6.0, 16.0]


def _backward_inside(x: Any) -> Any:
    loss = xp.sum(x * x)
    loss.backward(retain_graph=True)
    return loss


def _data(x: Any) -> Any:
    x.data.mul_(2.0)
    return xp.sum(x)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "backward": (_backward_inside, "calls `backward\\(\\)`"),
    "requires_grad_": (lambda x: xp.sum(x.detach_()), "calls `requires_grad_\\(\\)` or `detach_\\(\\)`"),
    "a write": (lambda x: xp.sum(x.mul_(2.0)), "writes to one of its arguments|leaf"),
    "a write through data": (_data, "writes to one of its arguments"),
    "a mask": (lambda x: xp.sum(x[x > 1.0]), "depends on values"),
    "a value": (lambda x: x * 2.0 if x[0] > 0.0 else x, "values of a Tensor are not known"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_would_be_lost_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    x = make([1.0, 2.0])
    for _ in range(2):  # a program that was refused is not kept
        with pytest.raises((RuntimeError, xp.CapabilityError), match=message):
            xp.compile(function)(x)
    assert x.grad is None
    assert x.requires_grad
    assert x.tolist() == [1.0, 2.0]


def test_static_arguments_are_told_apart() -> None:
    """They differ by value and type: 1, 1.0 and True; 0.0 and -0.0; nan is nan."""
    seen: list[Any] = []

    @xp.compile
    def scaled(x: Any, *, by: Any) -> Any:
        seen.append(by)
        return xp.sum(x) * by

    x = make([1.0, 2.0])
    for by, expected in ((1, "3.0"), (1.0, "3.0"), (0.0, "0.0"), (-0.0, "-0.0"), (1, "3.0"), (-0.0, "-0.0"), (np.float64(-0.0), "-0.0")):
        assert str(scaled(x, by=by).item()) == expected
    assert str(seen) == "[1, 1.0, 0.0, -0.0, np.float64(-0.0)]"


def test_without_recording_there_is_no_node() -> None:
    calls = []

    @xp.compile
    def double(x: Any) -> Any:
        calls.append(None)
        return x * 2.0

    x = make([1.0, 2.0])
    assert double(x).requires_grad
    with xp.no_grad():
        assert not double(x).requires_grad
    assert not double(x.detach()).requires_grad
    assert double(x).grad_fn.name() == "CompiledBackward0"
    assert len(calls) == 3


def test_compiled_functions_inside_others_and_inside_transforms() -> None:
    inner = xp.compile(lambda a: a * a)
    outer = xp.compile(lambda a: xp.sum(inner(a) * a))
    x = make([1.0, 2.0])
    outer(x).backward()
    assert x.grad.tolist() == [3.0, 12.0]

    def gradient(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        return xp.autograd.grad(outer(leaf), leaf)[0].array

    raw = jax.numpy.asarray([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(np.asarray(jax.jit(jax.vmap(gradient))(raw)), 3.0 * np.asarray(raw) ** 2)


def test_the_benchmark_compares_equal_results() -> None:
    """It refuses to time programs whose loss and gradients differ; its table has a row with a ratio."""
    code = "from benchmarks import compile as c; print(len(c.PROGRAMS), all(r > 0 for n in ('chain', 'digits') for r in c.run_times(n, 1)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert run.stdout == "4 True\n", run.stderr
    command = [sys.executable, "-m", "benchmarks.compile", "--first", "xpgrad", "chain"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert float(run.stdout) > 0.0, run.stderr
