"""Law: the second run of a checkpointed function repeats the first: same random numbers, devices, contexts and streams.

If it does not, an error says what differs. PyTorch's refusals are refused here, unless PyTorch's documentation says otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from memory.test_checkpoint import leaf
from memory.test_saved_tensors import find_saved_arrays
from support.central_differences import loss, numbers, values
from xpgrad.autograd import graph
from xpgrad.func import fori_loop
from xpgrad.utils.checkpoint import CheckpointError, checkpoint

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
    with pytest.raises(RuntimeError, match="has shape"):  # the program is not checked, but the values have to fit
        y.backward()
    y = checkpoint(changing("same", "shape"), x, debug=True)
    with pytest.raises(CheckpointError, match=r"(?s)in the forward.*test_second_runs.py.*again.*test_second_runs.py"):
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
    """A value that the function itself overwrites after use raises an error (PyTorch gives a wrong gradient), unless it is not needed."""

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
    assert find_saved_arrays(xp.sin(x)), "no hooks are left"
    fail[0] = False
    y = checkpoint(f, x)
    fail[0] = True
    with pytest.raises(KeyError):
        xp.sum(y).backward(retain_graph=True)
    assert x.grad is None
    assert find_saved_arrays(xp.sin(x))
    fail[0] = False
    xp.sum(y).backward()
    at = values(x)
    np.testing.assert_allclose(values(x.grad), np.exp(np.sin(at)) * np.cos(at))


def test_the_function_may_catch_what_it_likes() -> None:
    """The recomputation is stopped by an exception that is not an `Exception`, so a function may catch any `Exception`."""

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
    """Drop elements at random with NumPy's global generator."""
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


#: How a checkpoint of a function gets a Tensor, whose device is not the default device.
WAYS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "argument": checkpoint,
    "keyword": lambda f, x: checkpoint(lambda *, x: f(x), x=x),
    "in a list": lambda f, x: checkpoint(lambda xs: f(xs[0]), [x]),
    "in a dict by keyword": lambda f, x: checkpoint(lambda *, xs: f(xs["x"]), xs={"x": x}),
    "closure": lambda f, x: checkpoint(lambda: f(x)),
    "moved": lambda f, x: checkpoint(lambda y: f(y.to_device(x.device)), x.to_device("numpy")),
    "in a checkpoint": lambda f, x: checkpoint(lambda xs: checkpoint(lambda xs: f(xs[0]), xs), [x]),
    "loop": lambda f, x: fori_loop(0, 1, lambda _, carry: {"x": f(carry["x"])}, {"x": x}, checkpoint=True)["x"],
}


@pytest.mark.parametrize("way", WAYS)
def test_random_numbers_of_the_backend(way: str) -> None:
    torch = pytest.importorskip("torch", reason="a backend with a generator of its own")
    pytest.importorskip("xpgrad_torch", reason="a backend with a generator of its own")

    def f(x: Any) -> Any:
        return xp.sin(x * xp.asarray(torch.rand(50, dtype=torch.float64))) * x

    x = leaf(50, device="torch")
    torch.manual_seed(3)
    expected = values(xp.autograd.grad(xp.sum(f(x)), x)[0])
    torch.manual_seed(3)
    y = WAYS[way](f, x)
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
    """The recomputation runs on the streams of the first call, and its values live until all who need them have read them."""
    pytest.importorskip("xpgrad_simstream", reason="streams")
    from xpgrad.registry import backend_for
    from xpgrad_simstream import streams

    backend: Any = backend_for("simstream")

    @contextmanager
    def used(x: Any) -> Iterator[None]:
        """Keep the memory of `x` until this stream has finished its work, even after an exception, like `record_stream` in PyTorch."""
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
    """The function is recomputed on the stream of its first call, though the pass is then on another node's stream."""
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
