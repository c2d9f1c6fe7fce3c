"""Law: a checkpointed function has the same value and gradients of any order, and keeps only its arguments (SAV-17, THR-09).

How often functions run again, and what is refused, is what PyTorch does, except where the documentation of `checkpoint` says otherwise.
"""

from __future__ import annotations

import importlib
import random
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from memory.test_saved_tensors import draw, gradients, held, same
from support.central_differences import loss, numbers, values
from xpgrad import func
from xpgrad.autograd import forward_ad, graph
from xpgrad.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def leaf(*shape: int, device: str = "numpy", start: float = 1.0) -> xp.Tensor:
    return xp.tensor(numbers(shape, start), device=device, requires_grad=True)


class Counted:
    """A function that counts its calls, and how many of its steps ran."""

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


@pytest.mark.parametrize("early_stop", [True, False])
def test_of_random_programs(early_stop: bool, xpgrad_device: str) -> None:
    points = [numbers((3, 3)), numbers((3, 3), 2.0)]
    for seed in range(30):
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
            same(found, expected)
            assert kept == 0
        plain = gradients(lambda x, y, program=program: program(xp.tanh(x @ x), y), points, xpgrad_device)[0]
        same(gradients(sum_of_both, points, xpgrad_device)[0], plain)
        same(gradients(lambda x, y, f=sum_of_both: checkpoint(f, x, y), points, xpgrad_device)[0], plain)


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
    # A weight that is no argument.
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
    # The backward runs when the batch is gone.
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


def test_a_gradient_inside_of_the_function(xpgrad_device: str) -> None:
    """As in a network whose derivative is part of its loss."""
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
    """The last step's result is not needed: nor is it computed where stopping is allowed."""
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
    """A part of the graph that has been let go of is not needed."""
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
    """A function of random steps, some of which are checkpoints of such functions."""
    rng = random.Random(seed)
    steps = [(rng.choice(("sin", "exp", "square", "add", "check")), rng.randrange(10**6)) for _ in range(rng.randint(1, 4))]
    # NB: of a checkpoint of which nothing was saved PyTorch computes the arguments again, which nobody asks for.
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
    """PyTorch raises there."""

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
    assert len(held(stretch(x))) == 8
    out = checkpoint(stretch, x)
    assert held(out) == []

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
        """What the function holds."""

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
        with suppress(KeyError):  # the pass stops before it has used all that was computed again
            xp.sum(y).backward(retain_graph=True)
        assert [r() for r in made] == [None] * count
    assert x.grad is None


# -- what is refused ----------------------------------------------------------------------------------------------------------


def test_another_program_the_second_time(xpgrad_device: str) -> None:
    def changing(*kinds: str) -> Callable[[Any], Any]:
        runs = iter(kinds)

        def f(x: Any) -> Any:
            kind = next(runs)
            if kind == "more":
                x = xp.sin(xp.sin(x))
            if kind == "shape":
                x = xp.stack([x, x])
            if kind == "dtype":
                x = x.to(dtype=xp.float32)
            if kind != "fewer":
                x = xp.exp(xp.cos(x))
            return xp.sum(x)

        return f

    x = leaf(3, device=xpgrad_device)
    cases = [
        (("same", "fewer"), True, "A different number of tensors was saved"),
        (("same", "fewer"), False, "A different number of tensors was saved"),
        (("same", "more"), False, "A different number of tensors was saved"),
        (("same", "shape"), True, "different metadata"),
        (("same", "dtype"), True, "different metadata"),
    ]
    for kinds, early_stop, message in cases:
        y = checkpoint(changing(*kinds), x, early_stop=early_stop)
        with pytest.raises(CheckpointError, match=message):
            y.backward()
        assert x.grad is None
        assert xp.is_grad_enabled()
    y = checkpoint(changing("same", "shape"), x, determinism_check="none")
    with pytest.raises(RuntimeError, match="has shape"):  # no check of the program, but the values have to fit
        y.backward()
    y = checkpoint(changing("same", "shape"), x, debug=True)
    with pytest.raises(CheckpointError, match=r"(?s)in the forward.*test_checkpoint.py.*again.*test_checkpoint.py"):
        y.backward()


def test_wrong_arguments() -> None:
    x = leaf(3)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(xp.sin, x, determinism_check="strict")
    for options in ({"debug": True}, {"context_fn": lambda: (None, None)}):
        with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
            checkpoint(xp.sin, x, use_reentrant=True, **options)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(xp.sin, x, use_reentrant=True, scale=2.0)
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match=r"^not here$"):
        checkpoint(xp.sin, x)
    assert xp.is_grad_enabled()


def test_arguments_that_were_overwritten(xpgrad_device: str) -> None:
    for nested in (False, True):
        x = leaf(3, device=xpgrad_device)
        middle = x * 1.0
        y = checkpoint(lambda t, nested=nested: checkpoint(xp.exp, xp.sin(t)) if nested else xp.exp(xp.sin(t)), middle)
        with xp.no_grad():
            middle.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            xp.sum(y).backward()


def test_what_the_function_overwrites_itself(xpgrad_device: str) -> None:
    """PyTorch gives a wrong gradient there, as no versions are checked where hooks pack; what is computed again can be."""

    def f(x: Any) -> Any:
        y = x * 1.0
        z = xp.sin(y)
        y.mul_(2.0)
        return xp.sum(z * y)

    x = leaf(3, device=xpgrad_device)
    for early_stop in (True, False):
        y = checkpoint(f, x, early_stop=early_stop)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    def harmless(x: Any) -> Any:
        y = x * 1.0
        z = xp.exp(y)
        y.mul_(2.0)
        return xp.sum(z)

    checkpoint(harmless, x).backward()
    np.testing.assert_allclose(values(x.grad), np.exp(values(x)))


def test_errors_of_the_function(xpgrad_device: str) -> None:
    fail = [True]

    def f(x: Any) -> Any:
        y = xp.sin(x)
        if fail[0]:
            raise KeyError
        return xp.exp(y)

    x = leaf(3, device=xpgrad_device)
    with pytest.raises(KeyError):
        checkpoint(f, x)
    assert held(xp.sin(x)), "no hooks are left"
    fail[0] = False
    y = checkpoint(f, x)
    fail[0] = True
    with pytest.raises(KeyError):
        xp.sum(y).backward(retain_graph=True)
    assert x.grad is None
    assert held(xp.sin(x))
    fail[0] = False
    xp.sum(y).backward()
    at = values(x)
    np.testing.assert_allclose(values(x.grad), np.exp(np.sin(at)) * np.cos(at))


def test_the_function_may_catch_what_it_likes() -> None:
    """How computing again is stopped is no `Exception`."""

    def f(x: Any) -> Any:
        try:
            return xp.sin(x) + 1.0
        except Exception as exc:
            raise AssertionError from exc

    x = leaf(3)
    xp.sum(checkpoint(f, x)).backward()
    np.testing.assert_allclose(values(x.grad), np.cos(values(x)))


# -- what is the same the second time --------------------------------------------------------------------------------------------


def dropout(x: Any) -> Any:
    """With NumPy's global generator."""
    keep = np.random.random_sample(x.shape) < 0.5  # noqa: NPY002 (it is what is tested)
    return xp.sin(x * xp.asarray(keep.astype(np.float64), device=x.device)) * x


def test_random_numbers_of_numpy(xpgrad_device: str) -> None:
    x = leaf(50, device=xpgrad_device)
    for preserve in (True, False):
        np.random.seed(3)  # noqa: NPY002
        expected = values(xp.autograd.grad(xp.sum(dropout(x)), x)[0])
        after, following = np.random.random_sample(2)  # noqa: NPY002
        np.random.seed(3)  # noqa: NPY002
        y = checkpoint(dropout, x, preserve_rng_state=preserve)
        assert np.random.random_sample() == after  # noqa: NPY002
        (g,) = xp.autograd.grad(xp.sum(y), x)
        assert np.allclose(values(g), expected) is preserve
        assert bool(np.random.random_sample() == following) is preserve, "computing again took numbers from the sequence"  # noqa: NPY002


def test_random_numbers_of_the_backend() -> None:
    torch = pytest.importorskip("torch", reason="a backend with a generator of its own")
    pytest.importorskip("xpgrad_torch", reason="a backend with a generator of its own")

    def f(x: Any) -> Any:
        return xp.sin(x * xp.asarray(torch.rand(50, dtype=torch.float64))) * x

    x = leaf(50, device="torch")
    torch.manual_seed(3)
    expected = values(xp.autograd.grad(xp.sum(f(x)), x)[0])
    torch.manual_seed(3)
    y = checkpoint(f, x)
    next_number = torch.rand(1)
    (g,) = xp.autograd.grad(xp.sum(y), x)
    np.testing.assert_allclose(values(g), expected)
    following = torch.rand(1)
    torch.manual_seed(3)
    torch.rand(50, dtype=torch.float64)
    assert [torch.rand(1), torch.rand(1)] == [next_number, following], "computing again took no number from the sequence"


def test_the_default_device_and_contexts(xpgrad_device: str) -> None:
    log: list[str] = []

    @contextmanager
    def noting(name: str) -> Iterator[None]:
        log.append(name)
        try:
            yield
        finally:
            log.append(f"end of {name}")

    def f(x: Any) -> Any:
        log.append("f")
        return xp.sin(x) * xp.exp(xp.ones((3,), dtype=xp.float64) * x)

    x = leaf(3, device=xpgrad_device)
    with xp.default_device(xpgrad_device):
        y = checkpoint(f, x, context_fn=lambda: (noting("forward"), noting("again")))
    with xp.default_device("numpy+readonly" if xpgrad_device != "numpy+readonly" else "numpy"):
        xp.sum(y).backward()
    assert log == ["forward", "f", "end of forward", "again", "f", "end of again"]


def test_on_several_streams() -> None:
    """What is computed again is computed on the streams of the first call, and lives until those who need it have read it."""
    pytest.importorskip("xpgrad_simstream", reason="streams")
    from xpgrad.registry import backend_for
    from xpgrad_simstream import streams

    backend: Any = backend_for("simstream")

    @contextmanager
    def used(x: Any) -> Iterator[None]:
        """As `record_stream` in PyTorch: the memory of `x` lives until this stream has done what it was given. Also where all stops."""
        try:
            yield
        finally:
            backend.keep_alive(x.array, backend.current_stream(x.device))

    def hops(pool: list[Any], seed: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            rng = random.Random(seed)
            for _ in range(4):
                before, stream = backend.current_stream(x.device), rng.choice(pool)
                backend.wait_event(stream, backend.record_event(before))
                with backend.stream_guard(stream), used(x):
                    y = xp.tanh(x @ x) * xp.sin(x)
                backend.wait_event(before, backend.record_event(stream))
                with used(y):
                    x = xp.sin(xp.exp(y * 0.1))
            return x

        return run

    def nested(f: Any, x: Any) -> Any:
        middle = f(x)
        with used(middle):
            return checkpoint(f, middle)

    for seed in range(30):
        found = []
        for wrap in (lambda f: f, lambda f: lambda t: checkpoint(f, t), lambda f: lambda t: checkpoint(nested, f, t)):
            streams.reset()
            streams.seed(seed)
            x = leaf(3, 3, device="simstream")
            here = backend.current_stream(x.device)
            pool = [here, *(streams.Stream(k) for k in range(3))]
            stream = pool[seed % 4]
            backend.wait_event(stream, backend.record_event(here))
            with backend.stream_guard(stream):
                with used(x):
                    out = wrap(hops(pool, seed))(x)
                with used(out):
                    y = xp.sum(out * out)
            backend.wait_event(here, backend.record_event(stream))
            del out
            y.backward(retain_graph=seed % 2 == 0)
            streams.synchronize()
            found.append(values(x.grad))
            del y, x
            assert streams.races == [], seed
        assert len(found) == 3
        np.testing.assert_array_equal(found[0], found[1])


def test_the_stream_of_the_first_call() -> None:
    """It is another node's stream on which the pass notices that the function has to run again."""
    pytest.importorskip("xpgrad_simstream", reason="streams")
    from xpgrad.registry import backend_for
    from xpgrad_simstream import streams

    backend: Any = backend_for("simstream")
    streams.reset()
    x = leaf(3, device="simstream")
    here, there = backend.current_stream(x.device), streams.Stream("there")

    def f(x: Any) -> Any:
        a = xp.sin(xp.exp(x))
        backend.wait_event(there, backend.record_event(here))
        with backend.stream_guard(there):
            b = xp.sin(xp.exp(x * 2.0))
        backend.wait_event(here, backend.record_event(there))
        return a, b

    a, b = checkpoint(f, x)
    (xp.sum(a) + xp.sum(b)).backward()
    at = numbers((3,))
    np.testing.assert_allclose(values(x.grad), np.cos(np.exp(at)) * np.exp(at) + 2 * np.cos(np.exp(2 * at)) * np.exp(2 * at))


def test_compiled_functions() -> None:
    pytest.importorskip("jax", reason="a backend that compiles")

    def f(x: Any, w: Any) -> Any:
        return xp.sum(xp.tanh(x @ w) ** 2)

    def g(x: Any, w: Any) -> Any:
        return xp.tanh(x @ w)

    compiled = xp.compile(f)
    several = xp.compile(g)
    x, w = (xp.tensor(numbers((3, 3), s), dtype=xp.float32, device="jax", requires_grad=True) for s in (1.0, 4.0))
    for plain, other in [
        (f, lambda x, w: checkpoint(compiled, x, w)),
        (f, xp.compile(lambda x, w: checkpoint(f, x, w))),
        (lambda x, w: xp.sum(g(x, w)), lambda x, w: xp.sum(checkpoint(several, x, w))),
    ]:
        first = [values(v) for v in xp.autograd.grad(plain(x, w), [x, w])]
        y = other(x, w)
        for v, e in zip(xp.autograd.grad(y, [x, w], retain_graph=True), first, strict=True):
            np.testing.assert_allclose(values(v), e, rtol=1e-5)
        recorded = xp.autograd.grad(y, [x, w], create_graph=True)
        expected = xp.autograd.grad(loss(xp.autograd.grad(plain(x, w), [x, w], create_graph=True)), [x, w])
        for v, e in zip(xp.autograd.grad(loss(recorded), [x, w]), expected, strict=True):
            np.testing.assert_allclose(values(v), values(e), rtol=1e-4)
    node = checkpoint(several, x, w).grad_fn
    assert node.held() == []


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
        warnings.simplefilter("ignore")  # that create_graph makes a cycle, told once
        second.backward(create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        xp.autograd.grad(xp.sum(x.grad), x)
    x.grad = None
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(lambda x: x * 2.0, x.detach(), use_reentrant=True)
    out = checkpoint(lambda x: x.detach() * 2.0, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        xp.sum(out).backward()
    # Weights that are no arguments get their gradients from the inner pass; checkpoints nest.
    w.grad = None
    inner = checkpoint(lambda x: checkpoint(lambda x: xp.sin(x * w), x, use_reentrant=True) * x, x, use_reentrant=True)
    xp.sum(inner).backward()
    np.testing.assert_allclose(values(x.grad), np.cos(a * b) * b * a + np.sin(a * b))
    np.testing.assert_allclose(values(w.grad), np.cos(a * b) * a * a)
