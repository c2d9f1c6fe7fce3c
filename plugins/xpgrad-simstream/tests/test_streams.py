"""Law: a backward pass over several streams has no race, and each kind of wait in it is needed (group R: STR-01..08).

Random graphs are computed on random streams with the waits that a careful user writes; the backward pass must add the waits it needs.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad_simstream import streams

COUNT = 300


@pytest.fixture(autouse=True)
def fresh_streams() -> Iterator[None]:
    gc.collect()
    streams.reset()
    yield
    gc.collect()
    streams.reset()


class Double(xp.autograd.Function):
    """A custom operation, which runs on streams as any other."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2.0 * x


UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": xp.sin, "exp": lambda x: xp.exp(x * 0.3), "square": lambda x: x * x, "slice": lambda x: xp.concat([x[1:], x[:1]]),
    "unstack": lambda x: xp.stack(list(reversed(xp.unstack(x)))), "function": Double.apply, "matmul": lambda x: (x @ x.T) @ x,
    "gather": lambda x: xp.take(x, xp.asarray([2, 0, 0], device=x.device), axis=0), "scale": lambda x: 0.7 * x,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "sub": lambda x, y: x - y, "maximum": xp.maximum,
    "broadcast": lambda x, y: x * xp.sum(y, axis=0),
}  # fmt: skip


class Program:
    """A random graph; on a device with streams each operation is queued on a random stream."""

    def __init__(self, number: int, device: str) -> None:
        self.rng = random.Random(number)
        self.several = device != "numpy"
        self.ambient = streams.current() if self.several else None
        self.streams = [streams.Stream(f"s{k}") for k in range(3)] + [self.ambient] if self.several else [None] * 4
        self.made: dict[int, Any] = {}
        self.seen: list[Any] = []
        data = np.random.default_rng(number)
        self.leaves = [xp.tensor(data.uniform(0.2, 1.2, (3, 3)), requires_grad=True, device=device) for _ in range(2)]
        self.values = list(self.leaves)
        for leaf in self.leaves:
            self.made[id(leaf)] = self.ambient.record() if self.ambient is not None else None
        for _ in range(self.rng.randint(3, 12)):
            self.operation()
        self.root = self.values[-1]

    def operation(self) -> None:
        rng = self.rng
        stream, operands = rng.choice(self.streams), [rng.choice(self.values[-4:]), rng.choice(self.values)]
        unary = rng.random() < 0.5
        name = rng.choice(list(UNARY if unary else BINARY))
        operands = operands[:1] if unary else operands
        hooked = rng.random() < 0.2
        if stream is None:
            out = (UNARY[name] if unary else BINARY[name])(*operands)
        else:
            for x in operands:
                stream.wait(self.made[id(x)])
            with streams.use(stream):
                out = (UNARY[name] if unary else BINARY[name])(*operands)
            self.made[id(out)] = stream.record()
        if hooked:
            out.register_hook(lambda g: self.seen.append(g.detach().numpy().sum()))
        self.values.append(out)

    def differentiate(self) -> list[np.ndarray]:
        """Run one or two passes of a random kind, and return the gradients of the leaves."""
        kind = self.rng.choice(("backward", "twice", "grad", "second"))
        forget = self.rng.random() < 0.5
        if forget:  # the pass then frees the intermediate values
            if self.several:
                streams.synchronize()
            self.values.clear()
        root, leaves = self.root, self.leaves
        if self.ambient is not None:
            self.ambient.wait(self.made[id(root)])
        loss = xp.sum(root * root)
        if kind == "grad":
            return [g.numpy() for g in xp.autograd.grad(loss, leaves, materialize_grads=True)]
        if kind == "second":
            first = xp.autograd.grad(loss, leaves, create_graph=True, materialize_grads=True)
            total = xp.sum(first[0] * first[0]) + xp.sum(first[1] * first[1])
            return [g.numpy() for g in xp.autograd.grad(total, leaves, materialize_grads=True)]
        loss.backward(retain_graph=kind == "twice")
        if kind == "twice":
            loss.backward()
        return [np.zeros(1) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


def compare(number: int) -> None:
    streams.seed(number)
    plain, queued = Program(number, "numpy"), Program(number, "simstream")
    expected, found = plain.differentiate(), queued.differentiate()
    for a, b in zip(expected, found):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sorted(queued.seen), sorted(plain.seen), rtol=1e-9)
    assert streams.races == []
    streams.synchronize()  # the work queued after this is the user's


@pytest.mark.parametrize("block", range(10))
def test_random_graphs_have_no_race(block: int) -> None:
    for number in range(block * COUNT // 10, (block + 1) * COUNT // 10):
        streams.reset()
        compare(number)


def count_failures(count: int = 60) -> int:
    """Return the number of random graphs that have a race or wrong gradients."""
    wrong = 0
    for number in range(count):
        streams.reset()
        try:
            compare(number)
        except (streams.RaceError, AssertionError):
            wrong += 1
            gc.collect()  # free the arrays of the failed graph before the next one
    return wrong


def ambient_of(stream: Any) -> bool:
    return bool(stream.name == "default")


FAULTS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "the first nodes wait for the caller": ("wait_event", lambda stream, event: ambient_of(event.stream)),
    "the caller waits for the leaves": ("wait_event", lambda stream, event: ambient_of(stream)),
    "readers wait for writers": ("wait_event", lambda stream, event: not ambient_of(stream) and not ambient_of(event.stream)),
    "memory is kept until it has been read": ("keep_alive", lambda x, stream: True),
    "nodes run on their own streams": ("stream_guard", lambda *args: True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_wait_is_needed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one kind of wait, races or wrong gradients are found."""
    backend: Any = type(xp.zeros(1, device="simstream")).backend
    method, dropped = FAULTS[fault]
    original = getattr(backend, method)

    def faulty(*args: Any) -> Any:
        if method == "stream_guard":
            return streams.use(streams.current())
        return None if dropped(*args) else original(*args)

    assert count_failures() == 0
    monkeypatch.setattr(backend, method, faulty)
    assert count_failures() > 0


def test_backward_operations_run_on_the_stream_of_their_forward() -> None:
    """STR-01."""
    side = streams.Stream("side")
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
    side.wait(streams.current().record())
    with streams.use(side):
        y = x * x
        y.register_hook(lambda g: seen.append(streams.current()))
    seen: list[Any] = []
    streams.current().wait(side.record())
    xp.sum(y).backward()
    assert seen == [side]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradients_on_another_stream_need_a_wait() -> None:
    """STR-03: the detector also finds the user's mistakes."""
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
    xp.sum(x * x).backward()
    other = streams.Stream("other")
    with streams.use(other), pytest.raises(streams.RaceError, match="nothing orders the two"):
        x.grad * 2.0
    other.wait(streams.current().record())
    with streams.use(other):
        assert (x.grad * 2.0).tolist() == [4.0, 8.0]


def test_a_seed_from_another_stream_needs_a_wait() -> None:
    """STR-04, STR-08."""
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
    y = x * x
    other = streams.Stream("other")
    with streams.use(other):
        seed = xp.asarray([1.0, 10.0], device="simstream")
    with pytest.raises(streams.RaceError):
        y.backward(seed)
    streams.current().wait(other.record())
    y = x * x
    y.backward(seed)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 40.0]


def test_a_race_gives_wrong_numbers_when_it_is_not_watched() -> None:
    """The queues are asynchronous: memory that was not written yet is read as garbage."""
    side = streams.Stream("side")
    x = xp.tensor([1.0, 2.0], device="simstream")
    raw = x.array
    memory = raw.memory
    assert np.isnan(memory).all()
    streams.synchronize()
    assert memory.tolist() == [1.0, 2.0]
    assert side.queued == 0


def test_devices_do_not_mix_and_gradients_come_back() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
    y = x.to_device("simstream:1")
    with pytest.raises(xp.errors.DeviceMismatchError):
        x * y
    z = (y * y).to_device("numpy")
    xp.sum(z).backward()
    assert x.grad is not None
    assert x.grad.device == "simstream"
    assert x.grad.tolist() == [2.0, 4.0]


def test_streams_that_wait_for_one_another_are_found() -> None:
    a, b = streams.Stream("a"), streams.Stream("b")
    late = streams.Event(b, 1, {})
    a.wait(late)
    with pytest.raises(streams.RaceError, match="wait for one another"):
        streams.synchronize(a)
