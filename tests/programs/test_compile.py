"""Law: a compiled function has the gradients of the function, however its arguments are related, or it raises an error.

The expected gradients are those of the uncompiled function on NumPy in float64.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, cast

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from xpgrad.autograd import forward_ad
from xpgrad.programs.recorder import same_values
from xpgrad.programs.structure import name_tensors

pytestmark = pytest.mark.slow(one_in=3)

DEVICE = [""]  # a compiler of the test


@pytest.fixture(params=sorted({*DEVICES, "jax", "torch"}), autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select each backend in turn, those that compile and those whose functions are captured."""
    name = str(request.param)
    wide = True
    if name not in xp.backend_names():
        pytest.skip(f"the backend {name} is not installed")
    if name in ("jax", "torch"):
        module = pytest.importorskip(name)
    if name == "jax":
        wide = module.config.jax_enable_x64
        module.config.update("jax_enable_x64", True)
    DEVICE[0] = name
    yield name
    DEVICE[0] = ""
    if name == "jax":
        module.config.update("jax_enable_x64", wide)


def make(values: Any, requires_grad: bool = True, **options: Any) -> Any:
    return xp.tensor(np.asarray(values), requires_grad=requires_grad, device=DEVICE[0], **options)


def total(a: Any, b: Any) -> Any:
    return xp.sum(xp.sin(a) * b * b)


def parts(a: Any, b: Any) -> Any:
    return a[1:] * b[:-1] ** 2, xp.sum(a * b), xp.argmax(b)


def product(a: Any, b: Any) -> Any:
    return a * xp.exp(0.5 * b) * b


def return_nested(a: Any, b: Any) -> Any:
    return {"first": [a * b, (b**3,)], "unused": a.detach()}


FUNCTIONS = [total, parts, product, return_nested]
#: Ways to make the two arguments from two leaves.
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
    """Return first and second gradients of the sum of squares of the function's results."""
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
    found = gradients(xp.compile(function), ARGUMENTS[arguments], DEVICE[0], "float64")
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("arguments", ["two leaves", "computed from the other"])
def test_complex_gradients_are_those_of_the_function(arguments: str) -> None:
    expected = gradients(product, ARGUMENTS[arguments], "numpy", "complex128")
    found = gradients(xp.compile(product), ARGUMENTS[arguments], DEVICE[0], "complex128")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_gradients_have_the_dtype_of_their_argument() -> None:
    """The gradient of a float32 argument is float32 even if the loss is computed in float64."""
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
    (jacobian,) = xp.autograd.grad(out, leaf, xp.eye(3, device=DEVICE[0]), is_grads_batched=True, retain_graph=True)
    np.testing.assert_allclose(jacobian.numpy(), np.diag([2.0, 4.0, 6.0]))
    assert seen == [(3,)]  # one call for the whole batch
    handle.remove()
    seen.clear()
    out.register_hook(lambda g: seen.append(g.tolist()))
    out.retain_grad()
    out.backward(make([1.0, 0.5, 2.0], False))
    assert seen == [[1.0, 0.5, 2.0]]
    assert out.grad is not None
    assert out.grad.tolist() == [1.0, 0.5, 2.0]
    assert leaf.grad.tolist() == [2.0, 2.0, 12.0]


def test_transforms_inside_of_a_function_belong_to_no_batch_of_gradients_around_it() -> None:
    """A backward captured during a batched pass, with a transform inside the function, is right."""
    leaf = make([1.0, 2.0])
    out = xp.compile(xp.func.grad(lambda a: xp.sum(a**3)))(leaf)
    found = xp.func.vmap(lambda g: xp.autograd.grad(out, leaf, g, retain_graph=True)[0])
    np.testing.assert_allclose(found(xp.eye(2, device=DEVICE[0])).numpy(), np.diag([6.0, 12.0]))


#: Transforms inside of a function of `w` that map over a constant `c`, or differentiate with respect to it.
OF_CONSTANTS: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda w, c: xp.func.vmap(lambda row: xp.sin(w * row) + row)(c),
    "vmap beside what varies": lambda w, c: xp.func.vmap(lambda row, v: row + v * row[0], in_dims=(1, 0))(c, w),
    "vmap in vmap": lambda w, c: xp.func.vmap(lambda row: xp.func.vmap(lambda v, u: v * u)(row, w))(c),
    "vmap over columns in chunks": lambda w, c: xp.func.vmap(lambda column: w[:2] * column, in_dims=1, chunk_size=2)(c),
    "vmap of a loop": lambda w, c: xp.func.vmap(lambda row: xp.func.scan(lambda s, v: (s * v + w, s), w, row)[0])(c),
    "vmap of a branch": lambda w, c: xp.func.vmap(lambda row: xp.func.cond(row[0] > 0.5, lambda: w * row, lambda: w + row))(c),
    "vmap of grad": lambda w, c: xp.func.vmap(xp.func.grad(lambda u, row: xp.sum(xp.sin(u * row))), in_dims=(None, 0))(w, c),
    "grad": lambda w, c: xp.func.grad(lambda u: xp.sum(xp.sin(u * w)))(c),
    "jacrev": lambda w, c: xp.func.jacrev(lambda u: xp.sin(u * w))(c[0]),
    "jacfwd": lambda w, c: xp.func.jacfwd(lambda u: xp.sin(u * w))(c[0]),
    "hessian": lambda w, c: xp.func.hessian(lambda u: xp.sum(xp.sin(u * w)))(c[0]),
    "vjp": lambda w, c: xp.func.vjp(lambda u: xp.sin(u * w), c)[1](c)[0],
    "jvp": lambda w, c: xp.func.jvp(lambda u: xp.sin(w * u), (c,), (c,))[1],
    "jvp along what varies": lambda w, c: xp.func.jvp(lambda u: xp.sin(w * u), (c[0],), (w,))[1],
    "linearize": lambda w, c: xp.func.linearize(lambda u: xp.sin(w * u), c)[1](c),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_transforms_inside_of_a_function_take_constants(name: str) -> None:
    constant = make(np.linspace(0.2, 1.4, 6).reshape(2, 3), False)

    def function(w: Any) -> Any:
        return OF_CONSTANTS[name](w, constant)

    leaf = make([0.5, -1.0, 2.0])
    found, wanted = xp.compile(function)(leaf), function(leaf)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9)
    first, second = (xp.autograd.grad(xp.sum(out * out), leaf)[0].numpy() for out in (found, wanted))
    np.testing.assert_allclose(first, second, rtol=1e-9)


@pytest.mark.parametrize("name", ["vjp", "linearize", "autograd.grad"])
def test_cotangents_from_inside_reach_graphs_from_outside(name: str, capturing_device: str) -> None:
    """The function that `vjp` or `linearize` has returned is called in a compiled one; its derivatives are right, or refused."""
    x, t = make([0.7, 1.3]), make([0.5, 2.0])
    y = xp.exp(x) * xp.sum(x)
    _, pull = xp.func.vjp(lambda x: xp.exp(x) * xp.sum(x), x.detach())
    _, push = xp.func.linearize(lambda x: xp.exp(x) * xp.sum(x), x.detach())
    inner: Callable[[Any], Any] = {
        "vjp": lambda t: pull(t)[0], "linearize": push, "autograd.grad": lambda t: xp.autograd.grad(y, x, t, retain_graph=True)[0],
    }[name]  # fmt: skip

    def function(t: Any) -> Any:
        return inner(inner(xp.sin(t)) * 0.5)

    with xp.no_grad():
        np.testing.assert_allclose(xp.compile(function)(t).tolist(), function(t).tolist(), rtol=1e-9)
    try:
        out = xp.compile(function)(t)
    except RuntimeError as exc:
        assert "requires grad and is not one of its arguments" in str(exc)  # noqa: PT017 (either is right)
        return
    expected = function(t)
    assert out.requires_grad == expected.requires_grad
    if expected.requires_grad:
        np.testing.assert_allclose(slopes(out, t), slopes(expected, t), rtol=1e-9)


def test_writes_before_the_backward_are_noticed() -> None:
    """A write to an argument raises in backward, except for a loss with precomputed gradients; one to a result is differentiated."""
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


def _overwriting(seed: int) -> Any:
    """Return a random function that overwrites what its backward pass needs."""

    def function(x: Any, w: Any) -> Any:
        draw = Random(seed)
        made = [x * 1.0, w * 2.0]
        for _ in range(12):
            a, b, k = draw.choice(made), draw.choice(made), draw.randrange(8)
            if k == 0:
                made.append(a * b)
            elif k == 1:
                made.append(xp.sin(a) + b)
            elif k == 2:
                a[draw.randrange(3)] = b[0] * 2.0
            elif k == 3:
                a *= b
            elif k == 4:
                view = a[1:]
                view += b[:-1] * 0.5
            elif k == 5:
                made.append(xp.exp(a * 0.1))
            elif k == 6:
                a[::2] = xp.flip(b)[::2] * a[::2]
            else:
                a += xp.tanh(b)
        return sum(xp.sum(xp.tanh(v)) for v in made)

    return function


@pytest.mark.parametrize("seed", range(20))
def test_a_captured_function_may_overwrite_what_its_gradient_needs(seed: int, device: str) -> None:
    if xp.registry.backend_for(device).capabilities.jit:
        pytest.skip("the library traces the function")
    function, found = _overwriting(seed), []
    for f in (xp.compile(function), function):
        x, w = make([0.3, -0.7, 1.1]), make([0.9, 0.2, -0.4])
        with xp.autograd.graph.allow_mutation_on_saved_tensors() if f is function else contextlib.nullcontext():
            xp.sum(f(x, w)).backward()
        found.append([x.grad.tolist(), w.grad.tolist()])
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_a_changed_constant_is_read_as_it_was_saved() -> None:
    """If memory is not shared, a recorded second pass reads the saved value of a constant whose `.data` was written to."""
    if make([1.0], False).backend.capabilities.mutable:
        pytest.skip("`x.data` shares the memory of what was saved, as in PyTorch")
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
    "a mask": (lambda x: xp.sort(x[x > 1.0]), "depends on values|needs an array of known length"),
    "a value": (lambda x: x * 2.0 if x[0] > 0.0 else x, "values (of a Tensor )?are not known"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_would_be_lost_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    x = make([1.0, 2.0])
    for _ in range(2):  # a program that raised is not cached
        with pytest.raises((RuntimeError, xp.CapabilityError), match=message):
            xp.compile(function)(x)
    assert x.grad is None
    assert x.requires_grad
    assert x.tolist() == [1.0, 2.0]


def test_static_arguments_are_told_apart() -> None:
    """Static arguments differ by value, type and the sign of zero: 1 and 1.0 differ, and so do 0.0 and -0.0."""
    seen: list[Any] = []

    @xp.compile
    def scaled(x: Any, *, by: Any) -> Any:
        seen.append(by)
        return xp.sum(x) * by

    x = make([1.0, 2.0])
    for by, expected in ((1, "3.0"), (1.0, "3.0"), (0.0, "0.0"), (-0.0, "-0.0"), (1, "3.0"), (-0.0, "-0.0"), (np.float64(-0.0), "-0.0")):
        assert str(scaled(x, by=by).item()) == expected
    assert str(seen) == "[1, 1.0, 0.0, -0.0, np.float64(-0.0)]"


@dataclasses.dataclass(frozen=True)
class Setting:
    power: Any
    name: str = dataclasses.field(default="", compare=False)


def test_static_dataclasses_are_told_apart_by_their_fields() -> None:
    """Also equal ones, and one whose field changes."""
    x, changing = make([1.0, 2.0]), dataclasses.make_dataclass("Changing", ["power"], eq=False)(2)
    f = xp.compile(lambda x, s: (xp.sum(x), s.power, getattr(s, "name", "")))
    for s in (Setting(1), Setting(1.0), Setting(0.0), Setting(-0.0), Setting(1, "one")):
        assert repr(f(x, s)[1:]) == repr((s.power, s.name))
    for changing.power in (2, 3, 2):
        assert f(x, changing)[1] == changing.power


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


def test_compiled_functions_inside_others() -> None:
    inner = xp.compile(lambda a: a * a)
    outer = xp.compile(lambda a: xp.sum(inner(a) * a))
    x = make([1.0, 2.0])
    outer(x).backward()
    assert x.grad.tolist() == [3.0, 12.0]


# -- what only captured programs promise ---------------------------------------------------------------------------------


@pytest.fixture
def capturing_device(device: str) -> str:
    """Skip backends whose functions are not captured."""
    if device == "jax":
        pytest.skip("JAX compiles by itself")
    return device


def test_gradients_are_nobody_elses(capturing_device: str) -> None:
    """A write to a gradient changes neither another pass's gradients nor an argument."""

    @xp.compile
    def linear(a: Any, b: Any) -> Any:
        return xp.sum(a * 2.0) + xp.sum(a * b)

    a, b = make([1.0, 2.0]), make([3.0, 4.0])
    loss = linear(a, b)
    first = xp.autograd.grad(loss, [a, b], retain_graph=True)
    for g in first:
        g.mul_(100.0)
    second = xp.autograd.grad(loss, [a, b], retain_graph=True)
    assert [g.tolist() for g in second] == [[5.0, 6.0], [1.0, 2.0]]
    loss.backward()
    a.grad.mul_(100.0)
    assert (a.tolist(), b.tolist(), b.grad.tolist()) == ([1.0, 2.0], [3.0, 4.0], [1.0, 2.0])
    linear(a, b).backward()
    assert a.grad.tolist() == [505.0, 606.0]


def _run_through_an_operation(loss: Any, a: Any, b: Any) -> None:
    loss(a * 2.0, b).backward()


def _run_twice(loss: Any, a: Any, b: Any) -> None:
    for _ in range(2):
        loss(a, b).backward()


def _retain_and_run_again(loss: Any, a: Any, b: Any) -> None:
    out = loss(a, b)
    out.backward(retain_graph=True)
    a.grad = a.grad * 3.0
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def _hook_leaves(loss: Any, a: Any, b: Any) -> None:
    a.register_hook(lambda g: 3.0 * g)
    b.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "grad", leaf.grad * 5.0))
    loss(a, b).backward()


def _hook_root(loss: Any, a: Any, b: Any) -> None:
    out = loss(a, b)
    out.register_hook(lambda g: 7.0 * g)
    out.backward()


def _stop_requiring_grad(loss: Any, a: Any, b: Any) -> None:
    out = loss(a, b)
    a.requires_grad_(False)
    out.backward()


def _run_inside_a_pass(loss: Any, a: Any, b: Any) -> None:
    """Run the loss's pass inside another pass."""
    other, out = a * 2.0, loss(a, b)
    other.register_hook(lambda g: out.backward())
    xp.sum(other).backward()


def _pass_one_leaf_twice(loss: Any, a: Any, b: Any) -> None:
    loss(a, a).backward()
    assert a.grad._version == 0  # the gradient arrived as one sum and not in two parts


def _detect_nan(loss: Any, a: Any, b: Any) -> None:
    out = loss(a, make([np.nan, 1.0], False))
    with xp.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        out.backward()


def _run_in_mode(mode: Any) -> Any:
    def run(loss: Any, a: Any, b: Any) -> None:
        with mode():
            out = loss(a, b)
        with mode():
            out.backward()

    return run


PASSES: dict[str, Any] = {
    "one": lambda loss, a, b: loss(a, b).backward(),
    "scaled": lambda loss, a, b: loss(a, b).backward(make(-2.0, False)),
    "one leaf twice": _pass_one_leaf_twice,
    "two roots": lambda loss, a, b: xp.autograd.backward([loss(a, b), loss(b, a)]),
    "one input": lambda loss, a, b: loss(a, b).backward(inputs=[b]),
    "below an operation": lambda loss, a, b: (loss(a, b) * 3.0).backward(),
    "above an operation": _run_through_an_operation,
    "again": _run_twice,
    "kept": _retain_and_run_again,
    "hooks of leaves": _hook_leaves,
    "a hook of the result": _hook_root,
    "a leaf that left": _stop_requiring_grad,
    "inside of a pass": _run_inside_a_pass,
    "not a number": _detect_nan,
    "anomalies": _run_in_mode(xp.autograd.detect_anomaly),
    "profiled": _run_in_mode(xp.autograd.profiler.profile),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning", "ignore:Error detected in:UserWarning")
@pytest.mark.parametrize("name", list(PASSES))
def test_a_pass_of_one_compiled_node_is_like_any_other(device: str, name: str) -> None:
    """The engine's fast path for a compiled loss of leaves is not taken with hooks, modes or other graphs."""

    def loss(a: Any, b: Any) -> Any:
        return xp.sum(xp.sin(a) * b * b)

    found = []
    for function in (loss, xp.compile(loss)):
        leaves = make([0.5, 2.0]), make([3.0, -4.0])
        PASSES[name](function, *leaves)
        assert all(leaf.grad is None or not leaf.grad.requires_grad for leaf in leaves)
        found.append([None if leaf.grad is None else np.asarray(leaf.grad.tolist()) for leaf in leaves])
    for expected, got in zip(*found):
        assert (expected is None) is (got is None)
        if expected is not None:
            np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("keep", [lambda t: t, lambda t: t.detach(), lambda t: t.clone()], ids=["itself", "detached", "a copy"])
def test_what_hooks_keep_is_nobody_elses(device: str, keep: Any) -> None:
    """Gradients kept by saved-tensor hooks do not change when passes add into `.grad` or users write into gradients."""
    leaf = make([1.0, 2.0])
    with xp.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        loss = xp.compile(lambda a: xp.sum(a * a))(leaf)
    for _ in range(3):
        loss.backward(retain_graph=True)
    assert leaf.grad.tolist() == [6.0, 12.0]
    leaf.grad = None
    (first,) = xp.autograd.grad(loss, leaf, retain_graph=True)
    first.mul_(100.0)
    loss.backward()
    assert leaf.grad.tolist() == [2.0, 4.0]


def test_what_hooks_hold_outlives_the_pass(device: str) -> None:
    leaf, held = make([1.0, 2.0]), []
    with xp.autograd.graph.saved_tensors_hooks(lambda t: held.append(t) or t, lambda t: t):
        loss = xp.compile(lambda a: xp.sum(a * a))(leaf)
    before = [t.tolist() for t in held]
    loss.backward()
    leaf.grad.mul_(100.0)
    assert [t.tolist() for t in held] == before


def test_calls_with_other_dtypes_and_needs_in_turn(device: str) -> None:
    f = xp.compile(lambda a: xp.sum(a * xp.ones_like(a)))
    for _ in range(3):
        for dtype in (xp.float32, xp.float64):
            for needs in (True, False):
                x = make([1.0, 2.0], needs, dtype=dtype)
                out = f(x)
                assert (out.dtype, out.requires_grad) == (dtype, needs)
                if needs:
                    out.backward()
                    assert x.grad.dtype == dtype


def test_a_function_that_calls_itself(device: str) -> None:
    @xp.compile
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    leaf = make(3.0)
    power(leaf, 4).backward()
    assert leaf.grad.item() == 108.0


def test_results_are_nobody_elses(capturing_device: str) -> None:
    """Each result has memory of its own, also if it is an argument, a part of one, a constant or the same Tensor twice."""
    table = make([7.0, 8.0], False)
    same = xp.compile(lambda a: (a, a[:1], table, a * 2.0, xp.reshape(a, (2, 1)), a))
    a = make([1.0, 2.0], False)
    for _ in range(2):
        results = same(a)
        for r in results:
            r.mul_(0.0)
        assert a.tolist() == [1.0, 2.0]
        assert table.tolist() == [7.0, 8.0]
    doubled = xp.compile(lambda a: (lambda y: (y, y, xp.flip(y)))(a * 2.0))
    one, two, three = doubled(a)
    one.mul_(0.0)
    assert (two.tolist(), three.tolist()) == ([2.0, 4.0], [4.0, 2.0])


@pytest.mark.parametrize("size", [3, 200])
def test_results_may_be_written_to(capturing_device: str, size: int) -> None:
    """Law: a function may return any view of a temporary, and the caller may write to it."""
    views: dict[str, Callable[[Any], Any]] = {
        "diagonal": lambda t: xp.linalg.diagonal(t), "another diagonal": lambda t: xp.linalg.diagonal(t, offset=1)[None],
        "broadcast": lambda t: xp.broadcast_to(t[:1], (4, size)), "flip": lambda t: xp.flip(t), "transposed": lambda t: t.mT,
        "part": lambda t: t[1:, 0], "reshaped": lambda t: xp.reshape(t, (-1,)), "real": lambda t: xp.real(t), "a row": lambda t: t[0],
        "expanded": lambda t: xp.sum(t, axis=0, keepdims=True) * xp.ones_like(t), "imaginary": lambda t: xp.imag(t + 1j * t),
    }  # fmt: skip
    x = make(np.ones((size, size)), False)
    for name, view in views.items():
        out = xp.compile(lambda x, view=view: view(x * 2.0))(x)
        expected = (view(x * 2.0) + 1.0).tolist()
        out += 1.0
        assert out.tolist() == expected, name


@pytest.mark.parametrize("name", ["bool", "uint8", "int64"])
def test_integers_and_bools_meet_numbers_as_in_the_function(capturing_device: str, name: str) -> None:
    n = make(np.array([1, 0, 1], name), False)
    expressions: dict[str, Callable[[Any], Any]] = {
        "n * 1.0": lambda n: n * 1.0, "2.5 - n": lambda n: 2.5 - n, "where": lambda n: xp.where(n > 0, 1.0, 0.0),
        "(n > 0) * 2.0": lambda n: (n > 0) * 2.0,
        "maximum": lambda n: xp.maximum(n, 0.5), "n * 1j": lambda n: n * 1j, "n + 1": lambda n: n + 1, "n ** 2.0": lambda n: n**2.0,
    }  # fmt: skip
    for what, function in expressions.items():
        try:
            expected = function(n)
        except TypeError:  # uncompiled it raises as well
            continue
        found = xp.compile(function)(n)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist()), what


def test_writes_inside(capturing_device: str) -> None:
    """A function may write into a result of its argument, a new array, or a copy of a Tensor from outside."""

    table = make([1.0, 2.0], False)

    def written(x: Any) -> Any:
        y = xp.zeros(4, dtype=x.dtype, device=x.device)
        y[0] = x[0] * x[1]
        y[1:3] = xp.sin(x)
        part = y[2:]
        part *= x
        part += 1.0
        y[y > 1.0] = 0.5
        z = table * 2.0
        z[0] = x[1]
        return xp.sum(y * y) + xp.sum(z * z)

    x = make([0.5, 0.8])
    written(x).backward()
    expected, x.grad = x.grad.tolist(), None
    xp.compile(written)(x).backward()
    assert x.grad.tolist() == pytest.approx(expected)
    assert table.tolist() == [1.0, 2.0]


def test_tensors_on_two_devices_do_not_meet_in_a_compiled_function(device: str) -> None:
    """Law: as uncompiled, a 0-d host Tensor moves to the other device, and every other mixture raises."""
    elsewhere = "numpy" if device == "numpy+readonly" else "numpy+readonly"
    table, scale = xp.asarray([2.0, 3.0], device=elsewhere), xp.asarray(3.0, device=elsewhere)
    x, number = make([1.0, 1.0]), make(2.0)
    with pytest.raises((xp.CaptureError, xp.DeviceMismatchError), match=re.escape(elsewhere)):
        xp.compile(lambda x: xp.sum(x * table))(x)
    with pytest.raises((xp.CaptureError, xp.DeviceMismatchError), match=re.escape(elsewhere)):
        xp.compile(lambda number: xp.sum(number * table))(number)
    xp.compile(lambda x: xp.sum(x * scale))(x).backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_tensor_from_outside_is_a_constant(capturing_device: str) -> None:
    scale = make([2.0, 3.0], False)
    weights = make([2.0, 3.0])
    x = make([1.0, 1.0])
    f = xp.compile(lambda x: xp.sum(x * scale))
    f(x).backward()
    assert x.grad.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="requires grad and is not one of its arguments"):
        xp.compile(lambda x: xp.sum(x * weights))(x)
    xp.compile(lambda x: xp.sum(x * weights.detach()))(x).backward()
    assert x.grad.tolist() == [4.0, 6.0]


#: Writes to a Tensor from outside: of numbers, of what depends on the argument, of itself, of nothing, and through views.
OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda k, x: k.__setitem__(0, 0.5),
    "item of x": lambda k, x: k.__setitem__(0, x[0]),
    "operator": lambda k, x: k.__iadd__(k),
    "number": lambda k, x: k.mul_(2.0),
    "operand": lambda k, x: k.mul_(x),
    "function": lambda k, x: k.sin_(),
    "fill": lambda k, x: k.zero_(),
    "mask": lambda k, x: k.masked_fill_(x > 0, 0.5),
    "copy": lambda k, x: k.copy_(2.0 * x),
    "no_grad": lambda k, x: xp.no_grad()(k.sub_)(0.5),
    "detached": lambda k, x: k.detach().sin_(),
    "view": lambda k, x: k[1:].fill_(x[0]),
    "empty": lambda k, x: k[:0].exp_(),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_tensor_from_outside_is_not_written_to(name: str, capturing_device: str) -> None:
    """The write would happen once, when the function is compiled."""
    k, x = make([2.0, 3.0], False), make([1.0, 1.0])

    def function(x: Any) -> Any:
        OUTSIDE[name](k, x)
        return xp.sum(x * k)

    for argument in (x, x.detach()):
        with pytest.raises(xp.CaptureError, match=r"writes to a Tensor from outside \(test_compile.py, line"):
            xp.compile(function)(argument)
    assert k.tolist() == [2.0, 3.0]


VALUES: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: x if x[0] > 0 else -x,
    "float": lambda x: x * float(x[0]),
    "item": lambda x: x * x[0].item(),
    "int": lambda x: x * int(x[0]),
    "numpy": lambda x: x.numpy(),
    "array": lambda x: x.array,
    "asarray": lambda x: np.asarray(x),
    "tolist": lambda x: x.tolist(),
    "nonzero": lambda x: xp.nonzero(x)[0][:1],
    "unique": lambda x: xp.unique_values(x),
    "mask": lambda x: xp.sort(x[x > 0]),
    "index": lambda x: x * [1, 2][xp.argmax(x)],
}


@pytest.mark.parametrize("name", list(VALUES))
def test_values_are_refused_with_the_line(capturing_device: str, name: str) -> None:
    x = make([1.0, 2.0], False)
    with pytest.raises((xp.errors.CaptureError, AttributeError, RuntimeError), match=r"test_compile.py, line \d+, in <lambda>"):
        xp.compile(VALUES[name])(x)
    if name not in ("numpy", "array", "asarray", "tolist"):
        f = xp.compile(VALUES[name], fallback=True)
        with pytest.warns(UserWarning, match="runs as it is"):
            out = f(x)
        assert out.tolist() == VALUES[name](x).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(x)


def test_many_programs_are_noticed(capturing_device: str) -> None:
    f = xp.compile(lambda x, *, by: xp.sum(x) * by)
    for n in range(1, 8):
        f(make(np.ones(n)), by=n)
    with pytest.warns(UserWarning, match=r"compiled 8 times.*Tensor 0 has had \(1,\), \(2,\), \(3,\), ...; an argument that is not a"):
        f(make(np.ones(8)), by=8)


def test_a_constant_that_left_is_an_ordinary_tensor(capturing_device: str) -> None:
    """A table that the function keeps, e.g. in an object, has the same derivatives beside it as one that was made outside."""
    kept: list[Any] = []

    def f(x: Any) -> Any:
        if not kept:
            table = xp.ones(3, device=DEVICE[0])
            table[0] = 2.0
            kept.extend((table, table.clone(), xp.asarray([2, 0, 0], device=DEVICE[0])))
        return xp.take(x, kept[2]) * kept[0]

    x, jacobian = make([1.0, 2.0, 3.0], False), [[0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    assert xp.compile(f)(x).tolist() == [6.0, 1.0, 1.0]
    for transform in (xp.func.jacfwd, xp.func.jacrev):
        assert transform(f)(x).tolist() == jacobian
        assert xp.compile(transform(f))(x).tolist() == jacobian
    assert xp.func.vmap(f)(xp.stack([x, x])).tolist() == [[6.0, 1.0, 1.0]] * 2
    kept[0][:2] = x[1:]
    assert (kept[0].tolist(), kept[1].tolist()) == ([2.0, 3.0, 1.0], [2.0, 1.0, 1.0])


def test_a_tensor_that_left_is_refused(capturing_device: str) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2.0)
        return kept[0] * 3.0 if len(kept) > 1 else x

    g = xp.compile(f)
    g(make([1.0], False))
    with pytest.raises(xp.errors.CaptureError, match="left the call"):
        g(make([1.0, 2.0], False))
    with pytest.raises(xp.errors.CaptureError, match="left the call"):
        kept[0] + 1.0
    for other in (make([1.0], False), make([1.0], True)):
        with pytest.raises(xp.errors.CaptureError, match="left the call"):
            kept[0] + other
    with pytest.raises(xp.errors.CaptureError, match="left the call"):
        xp.compile(lambda x: x * kept[0])(make([1.0], False))
    with pytest.raises(xp.errors.CaptureError, match="values are not known"):
        kept[0].tolist()


def test_a_program_says_what_is_done(capturing_device: str) -> None:
    def f(weights: Any, *, x: Any) -> Any:
        hidden = xp.tanh(weights * x)
        total = xp.sum(hidden)
        return total  # noqa: RET504 (it has a name)

    def g(x: Any) -> Any:
        pairs = xp.einsum("i,j->ij", x, x)  # it has several operations
        return xp.sum(pairs)

    names = [o.out.name for o in cast("Any", xp.compile(g)).program(make([1.0, 2.0], False)).operations]
    assert names.count("pairs") == 1
    assert len(names) > 2
    w, x = make([1.0, 2.0]), make([3.0, 4.0], False)
    compiled: Any = xp.compile(f)
    program = compiled.program(w, x=x)
    assert [v.name for v in program.inputs] == ["weights", "x"]
    named = {v.name: o for o in program.operations for v in o.results if v.name}
    assert set(named) == {"hidden", "total"}
    assert named["hidden"].line[1:] == (f.__code__.co_firstlineno + 1, "f")
    assert not named["hidden"].backward
    assert any(o.backward for o in program.operations)
    assert "hidden: float64[2] = tanh(" in str(program)
    compiled(w, x=x).backward()
    np.testing.assert_allclose(w.grad.numpy(), (1 - np.tanh([3.0, 8.0]) ** 2) * [3.0, 4.0])


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="positive number of `threads`"):
        xp.compile(total, threads=0)
    with pytest.raises(TypeError, match="fallback"):
        xp.compile(total, fallback=2)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="function"):
        xp.compile(3)  # type: ignore[call-overload]
    assert xp.compile(fallback=True)(total)(make([1.0], False), make([2.0], False)).shape == ()


def test_threads_share_products_and_blocks() -> None:
    """The text shown is the one that runs, and threads change no bit of a gradient because they split no sum."""
    if DEVICE[0] != "numpy":
        pytest.skip("threads are for NumPy's texts")

    def loss(a: Any, b: Any, x: Any) -> Any:
        return xp.sum(xp.tanh(x @ a) @ b)

    draw = np.random.default_rng(0).normal
    values = [draw(size=shape) for shape in ((128, 160), (160, 128), (130, 128))]
    found, texts = [], []
    for threads in (1, 2):
        tensors = [make(v) for v in values]
        compiled = xp.compile(loss, threads=threads, emitter="numpy")
        compiled(*tensors).backward()
        found.append([t.grad.numpy() for t in tensors])
        texts.append(compiled.source(*tensors))
    assert [text.count("= _side_by_side(") for text in texts] == [0, 2]
    assert "import numpy as np\n\n\ndef" in texts[0]
    for one, two in zip(*found):
        np.testing.assert_array_equal(one, two)


def test_memory_that_is_taken_has_the_users_name_from_the_start() -> None:
    """In-place operations in the text use the last name that the user gave to the memory."""
    if DEVICE[0] != "numpy":
        pytest.skip("the texts of other libraries do not write in place")

    def loss(a: Any, b: Any) -> Any:
        h = xp.exp(xp.sin(a * b)) + a
        return xp.sum(h * b)

    text = xp.compile(loss, emitter="numpy").source(make(np.ones(3), False), make(np.ones(3), False))
    assert "np.exp(h, out=h)" in text
    assert "h += a" in text


def test_long_programs_call_functions_by_names_of_their_own() -> None:
    """Long programs import functions by name, except those whose names the user's variables have."""
    if DEVICE[0] != "numpy":
        pytest.skip("the texts of other libraries call a namespace")

    def loss(x: Any, cos: Any) -> Any:
        add_reduce = x
        for _ in range(100):
            sin = xp.sin(x * cos)
            x = sin + xp.cos(add_reduce) * xp.exp(-x)
        return xp.sum(x * x)

    a, b = make([0.5, 0.7]), make([1.1, 0.9])
    compiled = xp.compile(loss, emitter="numpy")
    text = compiled.source(a, b)
    assert re.search(r"from numpy import .*\bexp\b", text)
    assert not re.search(r"import .*\b(sin|cos)\b", text)
    for expected, got in zip(xp.autograd.grad(loss(a, b), [a, b]), xp.autograd.grad(compiled(a, b), [a, b])):
        np.testing.assert_allclose(got.tolist(), expected.tolist(), rtol=1e-12)
    assert "from numpy" not in compiled.source(make(np.ones(5000)), make(np.ones(5000)))  # there the loops dominate


def test_equal_elements_share_a_gradient(device: str) -> None:
    """The gradient of extrema is right when some of the elements are equal."""
    x, y = make([0.0, 1.0, -1.0, 2.0]), make([0.0, 1.0, 3.0, -2.0])
    xp.sum(xp.compile(lambda a, b: xp.sum(xp.maximum(a, b) * 3.0 + xp.maximum(a, 0.0)))(x, y)).backward()
    assert x.grad.tolist() == [2.0, 2.5, 0.0, 4.0]
    assert y.grad.tolist() == [1.5, 1.5, 3.0, 0.0]


# -- what is closed over ----------------------------------------------------------------------------------------------------

#: Kinds of results, for each of which gradients are computed differently.
SHAPES: dict[str, Callable[[Any], Any]] = {"an array": lambda y: y, "a number": xp.sum, "both": lambda y: (y, xp.sum(y))}


def slopes(out: Any, x: Any, **options: Any) -> list[float]:
    """Return the gradient of the sum of all results."""
    (g,) = xp.autograd.grad(sum((xp.sum(o) for o in flat(out)[1:]), xp.sum(flat(out)[0])), x, **options)
    found: list[float] = g.tolist()
    return found


@pytest.mark.parametrize("shape", list(SHAPES))
def test_random_numbers_are_drawn_once(capturing_device: str, shape: str) -> None:
    """Law: a compiled function draws its random numbers once, and value and gradient use the same numbers at every call."""
    rng = np.random.default_rng(0)
    times = len(flat(SHAPES[shape](xp.ones(1))))
    draw: dict[str, Callable[[], Any]] = {
        "raw": lambda: rng.uniform(1.0, 2.0, 3),
        "a Tensor": lambda: make(rng.uniform(1.0, 2.0, 3), False),
        "a number": rng.uniform,
        "a mask": lambda: make(rng.uniform(size=3) > 0.5, False),
    }
    for name, numbers in draw.items():
        if name == "raw" and capturing_device not in ("numpy", "numpy+readonly"):
            continue
        x = make([1.0, 1.0, 1.0])
        f = xp.compile(lambda x, numbers=numbers: SHAPES[shape](x * numbers()))
        first = f(x)
        for out in (first, f(x), f(x)):
            value = flat(out)[0]
            got = slopes(out, x)
            assert [o.tolist() for o in flat(out)] == [o.tolist() for o in flat(first)]
            assert sum(got) == pytest.approx(times * xp.sum(value).item())
        with pytest.raises(xp.CaptureError, match="draws random numbers"):
            slopes(f(x), x, create_graph=True)
        with pytest.raises(xp.CaptureError, match="Pass these as arguments"):
            xp.autograd.grad(flat(f(x))[0], x, xp.ones((2, *value.shape), device=x.device), is_grads_batched=True)


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("what", ["a number", "an array", "a Tensor of an array", "a Tensor"])
def test_value_and_gradients_are_of_the_same_closure(capturing_device: str, what: str, shape: str) -> None:
    """Law: a compiled function uses one state of its closure for value and gradient; only new values of Tensors are seen."""
    if what in ("an array", "a Tensor of an array") and capturing_device not in ("numpy", "numpy+readonly"):
        pytest.skip("a raw array is NumPy's")
    number, array, table = 2.0, np.full(3, 2.0), make(np.full(3, 2.0), False)

    def closed_over() -> Any:
        return {
            "a number": number,
            "an array": array,
            "a Tensor of an array": xp.asarray(array, device=capturing_device),
            "a Tensor": table,
        }[what]

    @xp.compile
    def f(x: Any) -> Any:
        return SHAPES[shape](x * x * closed_over() + closed_over() * closed_over())

    x = make([1.0, 1.0, 1.0])
    times = len(flat(SHAPES[shape](xp.ones(1))))
    before, kept = f(x), f(x)
    number, array[:] = 5.0, 5.0
    table += 3.0
    assert flat(before)[0].tolist() in ([6.0] * 3, 18.0)
    assert slopes(before, x) == [4.0 * times] * 3
    with pytest.raises(xp.CaptureError, match="closes over has changed"):
        slopes(kept, x, create_graph=True)
    seen = 5.0 if what == "a Tensor" else 2.0
    for _ in range(2):
        after = f(x)
        assert flat(after)[0].tolist() in ([seen + seen**2] * 3, 3 * (seen + seen**2))
        assert slopes(after, x) == [2 * seen * times] * 3
    number, array[:] = 2.0, 2.0
    assert slopes(f(x), x, create_graph=True) == [2 * seen * times] * 3


@pytest.mark.parametrize(("dtype", "place", "value"), [("float64", 1, 2.0), ("float64", 0, np.nan), ("complex128", 1, 2.0)])
def test_a_closure_may_have_missing_values(capturing_device: str, dtype: str, place: int, value: complex) -> None:
    """NaN is no change of what a function closes over."""
    table = xp.asarray(np.asarray([1.0, np.nan, 3.0], dtype=dtype), device=capturing_device)

    def f(x: Any) -> Any:
        misfits = xp.real(table) * x**3
        return xp.sum(misfits[table == table] * x[table == table])

    x, y = make([1.0, 2.0, 3.0]), make([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(slopes(xp.compile(f)(x), x, create_graph=True), slopes(f(y), y, create_graph=True))
    out = xp.compile(f)(x)
    table[place] = value
    with pytest.raises(xp.CaptureError, match="closes over has changed"):
        slopes(out, x, create_graph=True)


@pytest.mark.parametrize("value", [1 + 1j, complex(np.nan, 1), complex(1, np.nan)])
def test_complex_constants_differ_in_one_part(value: complex) -> None:
    backend, table = xp.registry.backend_for("numpy"), np.asarray([1.0, np.nan], dtype=complex)
    other = table.copy()
    assert same_values(backend, table, other)
    other[0] = value
    assert not same_values(backend, table, other)
    assert not same_values(backend, other, table)


def test_an_array_that_the_function_itself_writes_to_is_read_at_each_use() -> None:
    if DEVICE[0] != "numpy":
        pytest.skip("a raw array is NumPy's")

    def f(x: Any) -> Any:
        buffer = np.zeros(3)
        buffer[0] = 1.0
        y = x * buffer
        buffer[0] = 5.0
        return y + x * buffer

    x = make([1.0, 2.0, 3.0])
    out = xp.compile(f)(x)
    assert out.tolist() == f(x).tolist() == [6.0, 0.0, 0.0]
    assert slopes(out, x) == slopes(f(x), x)


#: Functions of a Tensor `k` from outside, which is combined with the argument or with itself.
READING: dict[str, Callable[[Any, Any], Any]] = {
    "combined": lambda k, x: x * k,
    "itself": lambda k, x: x * xp.sin(k),
    "reduced": lambda k, x: x * xp.sum(k),
    "copied": lambda k, x: k.clone().add_(x),
    "compared": lambda k, x: xp.where(k > 5.0, x, 2.0 * x),
    "several": lambda k, x: x * xp.stack([k, k])[1],
    "view": lambda k, x: x * k[:1],
    "number": lambda k, x: x * k[0].item(),
    "detached": lambda k, x: x * k.detach(),
}


@pytest.mark.parametrize("name", READING)
def test_a_change_of_a_tensor_from_outside_is_noticed(name: str, capturing_device: str) -> None:
    k, x = make([1.0, 2.0], False), make([1.0, 1.0])
    f = xp.compile(lambda x: READING[name](k, x))
    changes: list[Callable[[], Any]] = [lambda: k.mul_(3.0), lambda: k[1:].add_(1.0)]
    if name != "detached":  # a Tensor that shares the memory keeps the old one
        changes.append(lambda: setattr(k, "data", make([7.0, 8.0], False)))
    for change in (lambda: None, *changes):
        change()
        assert slopes(f(x), x) == slopes(READING[name](k, x), x)
    k.requires_grad_()
    if name not in ("detached", "compared", "number"):
        with pytest.raises((RuntimeError, xp.CaptureError), match=r"requires grad and is not one of its arguments|from outside"):
            f(x)


def test_inference_tensors(capturing_device: str) -> None:
    """Their writes are not counted: they are not saved, and not used from outside."""
    x = make([1.0, 2.0])
    with xp.inference_mode():
        k = make([1.0, 2.0], False)
    f = xp.compile(lambda x, y: x * y)
    for a, b in ((x, k), (k, x)):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            f(a, b)
    assert not f(k, k).is_inference()
    for function in READING.values():
        with pytest.raises(xp.CaptureError, match="made in inference mode"):
            xp.compile(lambda x, function=function: function(k, x))(x)
    with xp.inference_mode():
        assert f(x, x).is_inference()
        assert f(x, k).is_inference()


def test_a_table_that_is_written_at_each_call_is_noticed(capturing_device: str) -> None:
    table, x = make([1.0, 2.0], False), make([1.0, 1.0], False)
    f = xp.compile(lambda x: x * table)
    for _ in range(8):
        assert f(x).tolist() == table.tolist()
        table += 1.0
    with pytest.warns(UserWarning, match="compiled again 8 times"):
        f(x)


def test_a_backward_that_cannot_be_captured_is_no_error_before_the_pass(capturing_device: str) -> None:
    class Branching(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0 if g[0] > 0 else g

    x = make([1.0, 2.0])
    out = xp.compile(lambda x: Branching.apply(x))(x)
    assert out.tolist() == [2.0, 4.0]
    for _ in range(2):
        with pytest.raises(xp.CaptureError, match="values are not known"):
            out.backward(xp.ones_like(out))


def _view_then_write(x: Any) -> Any:
    y = 2 * x
    v = y[1:]
    y += 1
    return v


def _two_views(x: Any) -> Any:
    y = 2 * x
    v, w = y[1:], xp.reshape(y, (-1, 1))
    v *= 3
    return y, v, w


def _zeros_with_a_view(x: Any) -> Any:
    y = xp.zeros_like(x)
    v = y[1:]
    y += x
    return {"v": v}


def _views_of_views(x: Any) -> Any:
    y = 2 * x
    v = y[1:]
    y[:] = x * x * x
    u = v[1:]
    y *= 2
    return [u, v, y]


def _one_view_through_another(x: Any) -> Any:
    y = xp.sin(x)
    v, u = y[1:], y[:2]
    v += x[0]
    return u


def _write_unrecorded(x: Any) -> Any:
    with xp.no_grad():
        y = 2 * x
        v = y[1:]
        y += 1
    return v, x * x


WRITTEN_LATER = [_view_then_write, _two_views, _zeros_with_a_view, _views_of_views, _one_view_through_another, _write_unrecorded]


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("function", WRITTEN_LATER, ids=lambda f: f.__name__)
def test_views_whose_base_is_written_later_are_returned(capturing_device: str, function: Any, needs: bool) -> None:
    x = make([0.5, 1.0, -2.0], needs)
    found = []
    for f in (function, xp.compile(function)):
        outs = flat(f(x))
        got = [o.tolist() for o in outs]
        if needs:
            loss = sum((xp.sum(o * o * o) for o in outs[1:]), xp.sum(outs[0] ** 3))
            (g,) = xp.autograd.grad(loss, x, create_graph=True)
            got += [g.tolist(), xp.autograd.grad(xp.sum(g), x)[0].tolist()]
        found.append(got)
    for a, b in zip(*found):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-12)


@dataclasses.dataclass
class Result:
    loss: Any
    steps: int = 1


#: Containers with one result.
CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a tuple": (lambda out: (out,), lambda found: found[0]),
    "a list": (lambda out: [out], lambda found: found[0]),
    "a dict": (lambda out: {"loss": out}, lambda found: found["loss"]),
    "nested": (lambda out: ({"a": [out]}, ()), lambda found: found[0]["a"][0]),
    "beside a static value": (lambda out: (out, 3, None, "name"), lambda found: found[0]),
    "a dataclass": (Result, lambda found: found.loss),
}
ONE_RESULT: dict[str, Callable[[Any], Any]] = {
    "a real number": lambda x: xp.sum(xp.sin(x) * x),
    "a complex number": lambda x: xp.sum(xp.sin(x) * (x + 1j)),
    "an array": lambda x: xp.sin(x) * x,
    "an array of one element": lambda x: xp.sum(x * x, keepdims=True),
}


@pytest.mark.parametrize("what", list(ONE_RESULT))
@pytest.mark.parametrize("container", list(CONTAINERS))
def test_one_result_in_a_container_is_differentiable(device: str, container: str, what: str) -> None:
    """Law: a single result in a container has the gradients of the function in every kind of pass, as a bare result has."""
    put, take = CONTAINERS[container]
    function = ONE_RESULT[what]
    found = []
    compiled = xp.compile(lambda x: put(function(x)))
    for f in (function, lambda x: take(compiled(x))):
        x, got = make([0.5, 2.0]), []
        for seed in (1.0, -2.0):
            out = f(x)
            out.backward(out.detach() * 0 + seed, retain_graph=True)
            out.backward(out.detach() * 0 + seed)
            got.append(x.grad)
            x.grad = None
        out = xp.real(f(x)) * 3.0
        xp.sum(out).backward()
        (first,) = xp.autograd.grad(xp.sum(xp.real(f(x) * f(x))), x, create_graph=True)
        got += [x.grad, first, *xp.autograd.grad(xp.sum(first), x)]
        found.append([np.asarray(g.tolist()) for g in got])
    for expected, value in zip(*found):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_results_keep_their_containers(device: str) -> None:
    found = xp.compile(lambda a: [a, (a * 2.0, [a * 3.0]), ()])(make([1.0]))
    assert (type(found), type(found[1]), type(found[1][1]), found[2]) == (list, tuple, list, ())
    assert [t.tolist() for t in (found[0], found[1][0], found[1][1][0])] == [[1.0], [2.0], [3.0]]


def test_parts_of_an_argument_without_a_name_have_none() -> None:
    found: list[str | None] = []
    for name in ("x", None):
        name_tensors(name, (tuple, None, (dict, ("a", "b"), None, (list, None))), found)
    assert found == ["x_0", "x_1_a", "x_1_b_0", None, None, None]


class _Speaking(int):
    """An int that says something else of itself."""

    def __repr__(self) -> str:
        return "__import__('os').abort()"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


def test_what_an_int_says_of_itself_is_not_executed() -> None:
    x = make([1.0, 2.0, 3.0], False)
    a, b = _Speaking(1), _Speaking(3)
    compiled = xp.compile(lambda x: (x[a:b] * 2.0, x[a] * a, xp.sum(x, axis=_Speaking(0))))
    assert [y.tolist() for y in compiled(x)] == [[4.0, 6.0], 2.0, 6.0]
    if DEVICE[0] not in ("jax", "torch"):
        assert "import" not in compiled.source(x).partition("def")[2].replace("test_compile", "")


def test_nan_as_an_argument_compiles_once() -> None:
    calls = []

    def function(x: Any, k: float) -> Any:
        calls.append(k)
        return x * k

    compiled = xp.compile(function)
    for _ in range(4):
        assert np.isnan(compiled(make([1.0], False), float("nan")).tolist()[0])
    first = len(calls)
    compiled(make([1.0], False), float("nan"))
    assert len(calls) == first
    assert first < 4


_TABLE, _PICKS = np.arange(9.0, dtype=np.float32).reshape(3, 3), np.array([0, 2, 1])
#: Functions of a Tensor and of indices that they overwrite after the use, with the gradient at (1, 2, 0.5).
OVERWRITING: dict[str, tuple[Callable[..., Any], Any, list[float]]] = {
    "x[i]": (lambda x, i: (x[i] ** 2, i.fill(2))[0], [0, 1], [2.0, 4.0, 0.0]),
    "x[mask]": (lambda x, i: (x[i] ** 2, i.fill(False))[0], [False, True, True], [0.0, 4.0, 1.0]),
    "x[i, None]": (lambda x, i: (x[i, None] ** 2, i.fill(0))[0], [2, 1], [0.0, 4.0, 1.0]),
    "x[i] = y": (lambda x, i: (y := x * 1.0, y.__setitem__(i, x[1:] ** 2), i.fill(2))[0], [0, 1], [0.0, 4.0, 2.0]),
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_indices_may_be_overwritten_after_their_use(name: str, xpgrad_device: str) -> None:
    function, indices, expected = OVERWRITING[name]
    x = xp.asarray([1.0, 2.0, 0.5], dtype=xp.float32, device=xpgrad_device)
    derivative = xp.func.grad(lambda x: xp.sum(function(x, np.array(indices))))
    for run in (derivative, xp.compile(derivative)):
        assert run(x).tolist() == expected


#: Reads from a Tensor from outside, at constant places of NumPy's or in lists.
READS: dict[str, Callable[[Any], Any]] = {
    "array": lambda c: c[_PICKS],
    "list": lambda c: c[[2, 0, 1]],
    "mask": lambda c: c[np.array([True, False, True])],
    "pair": lambda c: c[_PICKS, [0, 1, 1]],
    "ellipsis": lambda c: c[..., _PICKS],
    "take": lambda c: xp.take(c, _PICKS, axis=0),
    "take_along_axis": lambda c: xp.take_along_axis(c, np.stack([_PICKS] * 3), axis=1),
    "np.take": lambda c: np.take(c, _PICKS, axis=1),
    "sum at places": lambda c: c.clone().index_add_(0, xp.asarray(_PICKS, device=c.device), c),
}


@pytest.mark.parametrize("name", READS)
def test_constants_are_read_at_constant_places(name: str, xpgrad_device: str) -> None:
    constant, x = xp.asarray(_TABLE, device=xpgrad_device), xp.ones((), dtype=xp.float32, device=xpgrad_device)
    for function in (lambda x: READS[name](constant) * x, lambda x: READS[name](constant + x)):
        assert xp.compile(function)(x).tolist() == function(x).tolist()
        total = lambda x, f=function: xp.sum(f(x) ** 2)  # noqa: E731 (a closure)
        assert xp.compile(xp.func.grad(total))(x).item() == pytest.approx(xp.func.grad(total)(x).item())


def test_forward_mode_runs_inside(xpgrad_device: str) -> None:
    """Law: a level that the function enters and leaves computes the same compiled, and so do the gradients of its tangents."""

    def slope(x: Any) -> Any:
        with forward_ad.dual_level():
            out = xp.sum(forward_ad.make_dual(x, x * 2.0) ** 3)
            return forward_ad.unpack_dual(out).tangent

    x = xp.tensor([1.0, 2.0], device=xpgrad_device, requires_grad=True)
    compiled = xp.compile(slope)
    for point in (x, x.detach() * 3.0):
        assert compiled(point).tolist() == slope(point).tolist()
    assert xp.autograd.grad(compiled(x), x)[0].tolist() == xp.autograd.grad(slope(x), x)[0].tolist() == [18.0, 72.0]
    assert xp.func.grad(compiled)(x).tolist() == [18.0, 72.0]
    assert xp.compile(xp.func.grad(slope))(x).tolist() == [18.0, 72.0]
    assert forward_ad._current() is None


@pytest.mark.parametrize(
    "change", [lambda: xp.set_grad_enabled(False), lambda: xp.no_grad().__enter__(), lambda: xp.autograd.set_detect_anomaly(True)]
)
def test_a_function_that_leaves_a_mode_behind_is_refused(change: Any, xpgrad_device: str) -> None:
    """Later calls would not set it."""

    @xp.compile
    def function(x: Any) -> Any:
        change()
        return x * 2

    x = xp.tensor([1.0], device=xpgrad_device, requires_grad=True)
    with pytest.raises(xp.CaptureError, match="`function`, which is compiled, changes the mode beyond its end"):
        function(x)
    assert xp.is_grad_enabled()
    assert (x * x).requires_grad
