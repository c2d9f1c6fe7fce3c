"""Law: a pass warns if a leaf makes streams wait for each other, and leaves no stream out of a capture (STR-07)."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import xpgrad as xp
from xpgrad.autograd.graph import set_override_stale_capture_stream, set_warn_on_accumulate_grad_stream_mismatch
from xpgrad_simstream import streams


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    gc.collect()
    streams.reset()
    yield
    set_warn_on_accumulate_grad_stream_mismatch(False)
    set_override_stale_capture_stream(False)
    gc.collect()
    streams.reset()


def forward(side: Any, count: int = 1) -> tuple[list[Any], Any]:
    """Return leaves made on the default stream, and a loss computed on another stream."""
    leaves = [xp.tensor([1.0, 2.0], requires_grad=True, device="simstream") for _ in range(count)]
    side.wait(streams.current().record())
    with streams.use(side):
        loss = xp.sum(leaves[0] * leaves[-1])
    streams.current().wait(side.record())
    return leaves, loss


def test_a_mismatch_is_reported_where_that_is_switched_on() -> None:
    side = streams.Stream("side")
    _, loss = forward(side)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss.backward()  # off by default
    set_warn_on_accumulate_grad_stream_mismatch(True)
    leaves, loss = forward(side, 2)
    with pytest.warns(
        UserWarning, match=r"a leaf of shape \(2,\) \(and 1 more\) began to require grad on .*, but its gradient was"
    ) as seen:
        loss.backward()
    assert len(seen) == 1
    assert [x.grad.tolist() for x in leaves] == [[1.0, 2.0]] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # There is no warning if nothing is accumulated, if everything runs on one stream, or if the leaf takes no part.
        leaves, loss = forward(side)
        assert xp.autograd.grad(loss, leaves)[0].tolist() == [2.0, 4.0]
        with streams.use(side):
            x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
            y = xp.sum(x * x)
        y.backward()
        leaves, loss = forward(side, 2)
        other = leaves[1]
        with streams.use(side):
            inner = xp.tensor([1.0, 1.0], requires_grad=True, device="simstream")
            side.wait(streams.current().record())
            total = xp.sum(inner * other)
        streams.current().wait(side.record())
        total.backward(inputs=[inner])
    set_warn_on_accumulate_grad_stream_mismatch(False)


def test_a_warning_that_is_an_error_comes_when_all_gradients_are_there() -> None:
    set_warn_on_accumulate_grad_stream_mismatch(True)
    leaves, loss = forward(streams.Stream("side"), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="does not match"):
            loss.backward()
    assert [x.grad.tolist() for x in leaves] == [[1.0, 2.0]] * 2


class Capture:
    """A capture that streams join by waiting for one of its streams, as in CUDA; the default stream may not join."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: Any, default: Any = None) -> None:
        self.streams, self.default = [first], default
        self.backend: Any = type(xp.zeros(1, device="simstream")).backend
        self.wait = self.backend.wait_event
        monkeypatch.setattr(self.backend, "is_capturing", lambda device: streams.current() in self.streams)
        monkeypatch.setattr(self.backend, "wait_event", self.wait_event)

    def wait_event(self, stream: Any, event: Any) -> None:
        if event.stream in self.streams and stream not in self.streams:
            if stream is self.default:
                raise ValueError("the legacy stream cannot be captured")
            self.streams.append(stream)
        self.wait(stream, event)


def ran_on(x: Any) -> list[Any]:
    """Return a list to which each accumulation of a leaf's gradient appends its stream."""
    seen: list[Any] = []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(streams.current()))
    return seen


def test_a_default_stream_is_refused_or_left_out_of_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    side = streams.Stream("side")
    default = streams.current()
    (x,), loss = forward(side)
    seen = ran_on(x)
    with streams.use(side):
        Capture(monkeypatch, side, default)
        with pytest.raises(
            RuntimeError, match=r"AccumulateGrad belongs to .*, which takes no part in the graph .* \(the legacy stream"
        ) as info:
            loss.backward()
        assert isinstance(info.value.__cause__, ValueError)
        assert x.grad is None
        set_override_stale_capture_stream(True)
        loss = xp.sum(x * x)
        loss.backward()
    assert seen == [side]
    monkeypatch.undo()
    default.wait(side.record())
    assert x.grad.tolist() == [2.0, 4.0]


def test_another_stream_joins_the_capture_by_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the override the node stays on its stream, which joins the capture; with it, the node leaves only a stale stream."""
    for override in (False, True):
        set_override_stale_capture_stream(override)
        side, leafs = streams.Stream("side"), streams.Stream("leafs")
        with streams.use(leafs):
            x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
        seen = ran_on(x)
        side.wait(leafs.record())
        with streams.use(side):
            loss = xp.sum(x * x)
            with monkeypatch.context() as patch:
                capture = Capture(patch, side)
                loss.backward(retain_graph=True)
                assert (leafs in capture.streams) is not override
                assert seen == [side if override else leafs]
                if override:  # a stream that is already part of the capture keeps its nodes
                    side.wait(leafs.record())
                    leafs.wait(side.record())
                    capture.streams.append(leafs)
                    loss.backward()
                    assert seen == [side, leafs]


def test_a_node_that_leaves_its_stream_goes_to_that_of_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several nodes in a row move to the stream of the gradient, and not to the caller's."""
    set_override_stale_capture_stream(True)
    caller, second, stale = (streams.Stream(name) for name in ("caller", "second", "stale"))
    with streams.use(stale):
        x = xp.tensor([1.0, 2.0], requires_grad=True, device="simstream")
        y = x * 3.0
    seen = ran_on(x)
    second.wait(stale.record())
    with streams.use(second):
        loss = xp.sum(y * y)
    caller.wait(second.record())
    with streams.use(caller), monkeypatch.context() as patch:
        Capture(patch, caller).streams.append(second)
        loss.backward()
        assert seen == [second]
        assert x.grad is not None
        assert x.grad.tolist() == [18.0, 36.0]
    assert streams.races == []
