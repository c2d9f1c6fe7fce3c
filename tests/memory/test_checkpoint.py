"""Law: a checkpointed function has the same value and gradients of any order, and keeps only its arguments (SAV-17, THR-09).

Functions are recomputed as often as in PyTorch, unless the documentation of `checkpoint` says otherwise.
"""

from __future__ import annotations

import importlib
import itertools
import random
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from memory.test_saved_tensors import assert_same, draw, find_saved_arrays, gradients
from support.central_differences import loss, numbers, values
from xpgrad import func
from xpgrad.autograd import forward_ad, graph
from xpgrad.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def leaf(*shape: int, device: str = "numpy", start: float = 1.0) -> xp.Tensor:
    return xp.tensor(numbers(shape, start), device=device, requires_grad=True)


class Counted:
    """A function that counts its calls and the steps that ran."""

    def __init__(self, steps: int = 4) -> None:
        self.steps = steps
        self.calls = 0
        self.ran = 0

    def __call__(self, x: Any, w: Any) -> Any:
        self.calls += 1
        for _ in range(self.steps):
            x = xp.tanh(x @ w)
            self.ran += 1
        return x


# -- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("early_stop", [True, False])
def test_of_random_programs(early_stop: bool, block: int, xpgrad_device: str) -> None:
    points = [numbers((3, 3)), numbers((3, 3), 2.0)]
    for seed in range(block, 30, 3):
        program = draw(seed)
        expected, _, _ = gradients(program, points, xpgrad_device)

        def whole(x: Any, y: Any, program: Any = program) -> Any:
            return checkpoint(program, x, y, early_stop=early_stop)

        def twice(x: Any, y: Any, program: Any = program) -> Any:
            return checkpoint(whole, x, y, early_stop=early_stop)

        def sum_of_both(x: Any, y: Any, program: Any = program) -> Any:
            a = checkpoint(lambda x: xp.tanh(x @ x), x, early_stop=early_stop)
            return checkpoint(program, a, y, early_stop=early_stop)

        for checkpointed in (whole, twice):
            found, kept, _ = gradients(checkpointed, points, xpgrad_device)
            assert_same(found, expected)
            assert kept == 0
        plain = gradients(lambda x, y, program=program: program(xp.tanh(x @ x), y), points, xpgrad_device)[0]
        assert_same(gradients(sum_of_both, points, xpgrad_device)[0], plain)
        assert_same(gradients(lambda x, y, f=sum_of_both: checkpoint(f, x, y), points, xpgrad_device)[0], plain)


def test_ways_to_differentiate(xpgrad_device: str) -> None:
    for way in ("backward", "grad", "inputs", "edges", "retain", "create_graph"):
        f, x, w = Counted(), leaf(3, 3, device=xpgrad_device), leaf(3, 3, device=xpgrad_device, start=5.0)
        expected = [values(g) for g in xp.autograd.grad(loss(f(x, w)), [x, w])]
        f.calls = 0
        y = loss(checkpoint(f, x, w))
        assert f.calls == 1
        if way in ("grad", "create_graph", "edges"):
            inputs = [graph.get_gradient_edge(t) for t in (x, w)] if way == "edges" else [x, w]
            found = xp.autograd.grad(y, inputs, create_graph=way == "create_graph")
        elif way == "inputs":
            y.backward(inputs=[w])
            assert x.grad is None
            expected, found = expected[1:], [w.grad]
        elif way == "retain":
            y.backward(retain_graph=True)
            x.grad = w.grad = None
            y.backward()
            with pytest.raises(RuntimeError, match="second time"):
                y.backward()
            found = [x.grad, w.grad]
        else:
            y.backward()
            found = [x.grad, w.grad]
        assert f.calls == (3 if way == "retain" else 2), way
        for g, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(values(g), e, rtol=1e-12)


def test_any_structure_may_come_and_go(xpgrad_device: str) -> None:
    def f(x: Any, *, scale: Any, words: list[str], flag: bool = False) -> dict[str, Any]:
        assert words == ["a", "b"]
        assert flag
        return {"product": x * scale * x, "pair": (xp.sin(x), 3), "none": None}

    x, scale = leaf(3, device=xpgrad_device), leaf(3, device=xpgrad_device, start=4.0)
    out = checkpoint(f, x, scale=scale, words=["a", "b"], flag=True)
    assert out["none"] is None
    assert out["pair"][1] == 3
    found = xp.autograd.grad(xp.sum(out["product"]) + xp.sum(out["pair"][0]), [x, scale])
    a, b = values(x), values(scale)
    np.testing.assert_allclose(values(found[0]), 2 * a * b + np.cos(a))
    np.testing.assert_allclose(values(found[1]), a * a)


def test_what_does_not_require_grad_passes_through(xpgrad_device: str) -> None:
    f, x = Counted(), xp.tensor(numbers((3, 3)), device=xpgrad_device)
    out = checkpoint(f, x, x)
    assert not out.requires_grad
    y = leaf(3, 3, device=xpgrad_device)
    with xp.no_grad():
        assert not checkpoint(f, y, y).requires_grad
    with xp.inference_mode():
        assert checkpoint(f, y, y).is_inference()
    # The weight is not an argument.
    xp.sum(checkpoint(lambda x: f(x, y), x)).backward()
    expected = values(y.grad)
    y.grad = None
    xp.sum(f(x, y)).backward()
    np.testing.assert_allclose(expected, values(y.grad))


def test_inside_of_transforms(xpgrad_device: str) -> None:
    w = xp.tensor(numbers((3, 3), 5.0), device=xpgrad_device)

    def f(x: Any) -> Any:
        return xp.sum(xp.exp(xp.sin(w @ x)) * x)

    def g(x: Any) -> Any:
        return checkpoint(f, x)

    x = xp.tensor(numbers((3,)), device=xpgrad_device)
    batch = xp.stack([x, x * 0.5])
    pairs: list[Callable[[Any], Any]] = [
        lambda h: func.grad(h)(x),
        lambda h: func.hessian(h)(x),
        lambda h: func.vmap(func.grad(h))(batch),
        lambda h: func.vmap(func.hessian(h))(batch),
        lambda h: func.jvp(h, (x,), (x,))[1],
        lambda h: func.jvp(func.grad(h), (x,), (x,))[1],
    ]
    for transform in pairs:
        np.testing.assert_allclose(values(transform(g)), values(transform(f)), rtol=1e-10)
    # The backward pass runs after the batch has ended.
    slopes: list[Any] = [f, g, lambda x: func.grad(f)(x) * x, lambda x: checkpoint(lambda x: func.grad(f)(x) * x, x)]
    found = []
    for h in slopes:
        leaves = batch.detach().requires_grad_()
        out = func.vmap(h)(leaves)
        found.append(values(xp.autograd.grad(xp.sum(out * out), leaves)[0]))
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[2], found[3])


def test_tangents_of_the_first_call_count_in_the_second(xpgrad_device: str) -> None:
    def f(x: Any, c: Any) -> Any:
        return xp.sum(xp.sin(x * c) * x)

    found = []
    for h in (f, lambda x, c: checkpoint(f, x, c), lambda x, c: checkpoint(lambda x, c: checkpoint(f, x, c), x, c)):
        x = leaf(3, device=xpgrad_device)
        with forward_ad.dual_level():
            c = forward_ad.make_dual(
                xp.tensor(numbers((3,), 2.0), device=xpgrad_device), xp.tensor(numbers((3,), 3.0), device=xpgrad_device)
            )
            y = h(x, c)
            del c
            (g,) = xp.autograd.grad(y, x)
            found.append((values(g), values(forward_ad.unpack_dual(g).tangent)))
    for g, t in found[1:]:
        np.testing.assert_allclose(g, found[0][0])
        np.testing.assert_allclose(t, found[0][1])


def in_reverse(f: Any) -> Any:
    return lambda x: xp.sum(func.grad(f)(x) * x.detach())


def in_forward_mode(f: Any) -> Any:
    return lambda x: func.jvp(f, (x,), (x.detach(),))[1]


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "of an argument": lambda run, x: run(lambda u: xp.sin(u) * u[0], x),
    "of a checkpoint": lambda run, x: run(lambda u: run(lambda u: xp.sin(u) * u[0], u * u) * u, x),
    "closing over a tangent": lambda run, x: (lambda w: run(lambda u: u * w * w, x * x))(xp.exp(x)),
    "closing over a view": lambda run, x: (lambda w: run(lambda u: u * w * w, x * x))(xp.exp(x)[::-1]),
}


@pytest.mark.parametrize("modes", [m for n in (1, 2, 3) for m in itertools.product([in_reverse, in_forward_mode], repeat=n)])
@pytest.mark.parametrize("body", BODIES)
def test_modes_nest_around_it_in_every_order(body: str, modes: Any) -> None:
    """A pass that runs when a level of forward mode has ended calls the function again as if it had not."""
    found = []
    for run in (checkpoint, lambda f, x: f(x)):
        derivative = lambda x, run=run: xp.sum(xp.sin(BODIES[body](run, x)))  # noqa: E731
        for mode in modes:
            derivative = mode(derivative)
        found.append(float(derivative(xp.tensor([0.3, 1.1, -0.7]))))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_a_gradient_inside_of_the_function(xpgrad_device: str) -> None:
    """A checkpointed function may compute a gradient inside, as a network does whose derivative is part of its loss."""
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        u = xp.sin(x) * x
        (d,) = xp.autograd.grad(xp.sum(u), x, create_graph=True)
        return xp.sum(d * d * u)

    x = leaf(3, device=xpgrad_device)
    (expected,) = xp.autograd.grad(f(x), x)
    for early_stop in (True, False):
        y = checkpoint(f, x, early_stop=early_stop)
        np.testing.assert_allclose(values(xp.autograd.grad(y, x)[0]), values(expected))


# -- how often, and how far ----------------------------------------------------------------------------------------------


def test_early_stop() -> None:
    """The last step's result is not needed, so it is not recomputed if early stopping is on."""
    for argument, context, stops in [(True, None, True), (False, None, False), (True, False, False), (False, True, True)]:
        f, x, w = Counted(), leaf(3, 3), leaf(3, 3)

        def longer(x: Any, w: Any, f: Any = f) -> Any:
            out = f(x, w) + 1.0
            f.ran += 1
            return out

        if context is None:
            y = checkpoint(longer, x, w, early_stop=argument)
        else:
            with set_checkpoint_early_stop(context):
                y = checkpoint(longer, x, w, early_stop=argument)
        f.ran = 0
        xp.sum(y).backward()
        assert f.ran == (3 if stops else 5)


def test_only_what_is_still_needed_is_computed_again() -> None:
    """A released part of the graph is not recomputed."""
    ran = []

    def f(x: Any) -> Any:
        a = xp.sin(x)
        ran.append("a")
        b = xp.exp(x)
        ran.append("b")
        c = xp.tanh(b)
        ran.append("c")
        return a, c

    x = leaf(3)
    a, c = checkpoint(f, x)
    ran.clear()
    del c
    xp.sum(a).backward()
    assert ran == []
    np.testing.assert_allclose(values(x.grad), np.cos(values(x)))


def nested_program(lib: Any, check: Any, log: list[Any], seed: int, depth: int = 1) -> Callable[[Any], Any]:
    """Return a function of random steps, some of which are checkpoints of such functions."""
    rng = random.Random(seed)
    steps = [(rng.choice(("sin", "exp", "square", "add", "check")), rng.randrange(10**6)) for _ in range(rng.randint(1, 4))]
    # NB: for a checkpoint that saved nothing PyTorch recomputes the arguments, which are not needed.
    steps.insert(rng.randint(0, len(steps)), ("sin", 0))

    def run(y: Any) -> Any:
        for name, number in steps:
            log.append((depth, name))
            if name == "check" and depth < 4:
                y = check(nested_program(lib, check, log, number, depth + 1), y, use_reentrant=False)
            elif name == "square":
                y = y * y * 0.5
            elif name == "add":
                y = y + 1
            elif name != "check":
                y = getattr(lib, name)(-y)
        return y

    return run


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_nested_checkpoints_run_as_often_as_in_pytorch(seed: int, stop: bool) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    theirs = importlib.import_module("torch.utils.checkpoint")
    found = []
    for lib, check, context in (
        (xp, checkpoint, set_checkpoint_early_stop),
        (torch, theirs.checkpoint, theirs.set_checkpoint_early_stop),
    ):
        log: list[Any] = []
        x = lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True)
        with context(stop):
            y = check(nested_program(lib, check, log, seed), x, use_reentrant=False)
        log.append("backward")
        (g,) = lib.autograd.grad(y.sum(), x, retain_graph=True)
        log.append("create_graph")
        (h,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        second = lib.autograd.grad((h * h).sum(), x)[0]
        found.append((log, [t.detach().numpy() for t in (g, h, second)]))
    ours, other = found
    assert ours[0] == other[0]
    assert ours[0].count((1, "sin")) >= 3
    for a, b in zip(ours[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_a_value_that_is_read_twice_is_computed_twice() -> None:
    """A value that is read twice is recomputed twice, while PyTorch raises."""

    class Twice(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x * 2.0)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            (b,) = ctx.saved_tensors
            return g * (a + b) / 2.0

    x = leaf(3)
    y = checkpoint(Twice.apply, x)
    assert y.grad_fn.saved_tensors[0].tolist() == (2 * values(x)).tolist()
    xp.sum(y).backward()
    np.testing.assert_allclose(values(x.grad), 2 * values(x))


# -- memory -----------------------------------------------------------------------------------------------------------------


def test_less_is_kept() -> None:
    def stretch(x: Any) -> Any:
        for _ in range(8):
            x = xp.tanh(x * 1.01)
        return x

    x = leaf(1000)
    assert len(find_saved_arrays(stretch(x))) == 8
    out = checkpoint(stretch, x)
    assert find_saved_arrays(out) == []

    def peak(run: Callable[[], Any]) -> int:
        run()
        tracemalloc.start()
        try:
            run()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    big = leaf(100_000)  # 0.8 MB

    def plain() -> None:
        y = big
        for _ in range(8):
            y = stretch(y)
        xp.sum(y).backward()

    def checkpointed() -> None:
        y = big
        for _ in range(8):
            y = checkpoint(stretch, y)
        xp.sum(y).backward()

    assert peak(checkpointed) < 0.45 * peak(plain)


@pytest.mark.usefixtures("no_cyclic_gc")
@pytest.mark.parametrize("retain", [False, True])
def test_everything_dies_by_reference_counting(retain: bool) -> None:
    class Big:
        """An object that the function closes over."""

    big = Big()
    alive = weakref.ref(big)

    def f(x: Any, big: Any = big) -> Any:
        return checkpoint(lambda x: xp.exp(xp.sin(x)), xp.exp(x * 0.1)) * x

    x = leaf(3)
    argument = x * 1.0
    array = weakref.ref(argument.array)
    y = checkpoint(f, argument)
    node = weakref.ref(y.grad_fn)
    del f, big, argument
    assert alive() is not None
    assert array() is not None
    xp.sum(y).backward(retain_graph=retain)
    if not retain:
        assert alive() is None, "the pass lets go of the function"
        assert array() is None
    del y
    assert [r() for r in (alive, node, array)] == [None] * 3


@pytest.mark.usefixtures("no_cyclic_gc")
def test_what_a_pass_computed_again_goes_with_it() -> None:
    made: list[Any] = []

    def fails(g: Any) -> None:
        raise KeyError

    def f(x: Any) -> Any:
        a = xp.sin(x)
        b = xp.sin(a)
        if not made:
            b.register_hook(fails)
        made.append(weakref.ref(a.array))
        return xp.exp(b)

    x = leaf(3)
    y = checkpoint(f, x)
    assert [r() for r in made] == [None]
    for count in (2, 3):
        with suppress(KeyError):  # the pass stops before it has used all recomputed values
            xp.sum(y).backward(retain_graph=True)
        assert [r() for r in made] == [None] * count
    assert x.grad is None


# -- sequences, and the older form ------------------------------------------------------------------------------------------------


def _layer(k: int, ran: list[int]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        ran[k] += 1
        return xp.sin(x * (k + 1.0))

    return run


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_sequences(use_reentrant: bool, xpgrad_device: str) -> None:
    for count in range(1, 6):
        for segments in range(1, count + 1):
            ran = [0] * count

            layers = [_layer(k, ran) for k in range(count)]
            x = leaf(3, device=xpgrad_device)
            y: Any = x
            for f in layers:
                y = f(y)
            (expected,) = xp.autograd.grad(xp.sum(y), x)
            ran[:] = [0] * count
            out = checkpoint_sequential(layers, segments, x, use_reentrant=use_reentrant)
            np.testing.assert_allclose(values(out), values(y))
            assert ran == [1] * count
            xp.sum(out).backward()
            again = count // segments * (segments - 1)
            assert ran == [2] * again + [1] * (count - again)
            np.testing.assert_allclose(values(x.grad), values(expected))
    with pytest.raises(ValueError, match="Unexpected keyword arguments: early"):
        checkpoint_sequential(layers, 2, x, early=1)
    for wrong in (0, 6):
        with pytest.raises(ValueError, match="between 1 and the number of functions"):
            checkpoint_sequential(layers, wrong, x)


def test_the_older_form(xpgrad_device: str) -> None:
    calls = []

    def f(x: Any, factor: float, w: Any) -> Any:
        calls.append(xp.is_grad_enabled())
        return xp.sin(x * w) * factor, xp.sum(x), "text"

    x, w = leaf(3, device=xpgrad_device), leaf(3, device=xpgrad_device, start=4.0)
    a, b = values(x), values(w)
    first, second, text = checkpoint(f, x, 2.0, w, use_reentrant=True)
    assert text == "text"
    (xp.sum(first) + second * 3.0).backward(retain_graph=True)
    assert calls == [False, True]
    np.testing.assert_allclose(values(x.grad), np.cos(a * b) * b * 2.0 + 3.0)
    np.testing.assert_allclose(values(w.grad), np.cos(a * b) * a * 2.0)
    with pytest.raises(RuntimeError, match=r"use_reentrant=True.*incompatible"):
        xp.autograd.grad(second, x, retain_graph=True)
    x.grad = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning, issued once, that create_graph makes a reference cycle
        second.backward(create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        xp.autograd.grad(xp.sum(x.grad), x)
    x.grad = None
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(lambda x: x * 2.0, x.detach(), use_reentrant=True)
    out = checkpoint(lambda x: x.detach() * 2.0, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        xp.sum(out).backward()
    # Weights that are not arguments get their gradients from the inner pass; checkpoints nest.
    w.grad = None
    inner = checkpoint(lambda x: checkpoint(lambda x: xp.sin(x * w), x, use_reentrant=True) * x, x, use_reentrant=True)
    xp.sum(inner).backward()
    np.testing.assert_allclose(values(x.grad), np.cos(a * b) * b * a + np.sin(a * b))
    np.testing.assert_allclose(values(w.grad), np.cos(a * b) * a * a)


def test_fewer_values_the_second_time(xpgrad_device: str) -> None:
    """A function that saves less in its second run raises an error; with `debug` it says where the first run saved more."""
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        y = x * x
        return xp.sum(xp.exp(y)) if len(runs) == 1 else xp.sum(y)

    for debug, stop in ((False, False), (True, False)):
        runs.clear()
        x = leaf(3, device=xpgrad_device)
        out = checkpoint(function, x, debug=debug, early_stop=stop)
        with pytest.raises(importlib.import_module("xpgrad.utils.checkpoint").CheckpointError) as caught:
            out.backward()
        assert x.grad is None
        assert ("Pass `debug=True`" in str(caught.value)) == (not debug)
        assert ("test_checkpoint.py" in str(caught.value)) == debug
