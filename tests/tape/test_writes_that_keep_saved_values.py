"""Programs that write to arrays that were saved, in `allow_mutation_on_saved_tensors`, compared with dual numbers on NumPy's arrays.

A write changes the array itself if nothing but its Tensor refers to it, and else a copy. Whichever it is, gradients see the values that
were saved, and views, aliases and the caller's arrays see what they should. PyTorch's context of this name is no reference: there, a write
through a view changes saved values of its base.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad.autograd.graph import allow_mutation_on_saved_tensors
from xpgrad.registry import backend_for

N = 6


@st.composite
def _spans(draw: Any) -> tuple[slice, slice]:
    """Two slices of one length."""
    length = draw(st.integers(1, N - 1))
    starts = [draw(st.integers(0, N - length)) for _ in range(2)]
    return tuple(slice(s, s + length) for s in starts)  # type: ignore[return-value]


_STATEMENTS = st.one_of(
    st.tuples(st.just("part"), _spans()),
    st.tuples(st.just("element"), st.tuples(st.integers(0, N - 1), st.integers(0, N - 1))),
    st.tuples(st.sampled_from(["scale part", "through view", "keep view", "constant", "unrecorded"]), _spans()),
    st.tuples(
        st.sampled_from(["whole", "augmented", "read", "read view", "alias", "read alias", "mask", "square", "rows", "exponential"]),
        st.none(),
    ),
)


def run(m: SimpleNamespace, program: list[tuple[str, Any]], k: Any, x: Any) -> Any:
    """Run a program with one of the libraries; the result is a number."""
    u = x * 1.0
    kept = u[1:3]
    alias = None  # while it exists, each write goes to a copy
    total = m.sum(u * k)
    for what, how in program:
        if what == "part":
            u[how[0]] = u[how[1]] * k
        elif what == "element":
            u[how[0]] = u[how[1]] * k + u[how[0]]
        elif what == "scale part":
            u[how[0]] *= k
        elif what == "through view":
            view = u[how[0]]
            view *= k
            view[0] = 0.5
        elif what == "keep view":
            kept = u[how[0]]
        elif what == "constant":
            u[how[0]] = 0.25
        elif what == "unrecorded":
            with m.no_grad():
                u[how[0]] = 0.75
        elif what == "whole":
            u[...] = u * k
        elif what == "augmented":
            u += u * k
        elif what == "read":
            total = total + m.sum(u * u)
        elif what == "read view":
            total = total + m.sum(kept * kept * k)
        elif what == "alias":
            alias = u.detach()
        elif what == "read alias":
            total = total if alias is None else total + m.sum(alias * k)
            alias = None
        elif what == "mask":
            u[u > 1.0] = 0.9
        elif what == "square":
            u = m.square(u)
        elif what == "rows":
            kept = u.reshape(2, 3)[1]
        else:
            u = m.exp(u * 0.1)
            total = total + m.sum(u)
    return total + m.sum(u * k) + m.sum(kept)


OURS = SimpleNamespace(sum=xp.sum, square=xp.square, exp=xp.exp, no_grad=xp.no_grad)


class Dual:
    """An array with its tangent; views and writes are NumPy's."""

    recording = True

    def __init__(self, value: Any, tangent: Any) -> None:
        self.value, self.tangent = value, tangent

    def __add__(self, other: Any) -> Dual:
        return Dual(self.value + _value(other), self.tangent + _tangent(other))

    def __mul__(self, other: Any) -> Dual:
        return Dual(self.value * _value(other), self.tangent * _value(other) + self.value * _tangent(other))

    __radd__, __rmul__ = __add__, __mul__

    def __gt__(self, other: float) -> Any:
        return self.value > other

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.value[key], self.tangent[key])

    def __setitem__(self, key: Any, new: Any) -> None:
        self.value[key], tangent = np.copy(_value(new)), np.copy(_tangent(new))
        if Dual.recording:
            self.tangent[key] = tangent

    def __iadd__(self, other: Any) -> Dual:
        self[...] = self + other
        return self

    def __imul__(self, other: Any) -> Dual:
        self[...] = self * other
        return self

    def reshape(self, *shape: int) -> Dual:
        return Dual(self.value.reshape(shape), self.tangent.reshape(shape))

    def detach(self) -> Dual:
        return Dual(self.value, np.zeros_like(self.tangent))


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Dual) else x


def _tangent(x: Any) -> Any:
    return x.tangent if isinstance(x, Dual) else 0.0


@contextlib.contextmanager
def _unrecorded() -> Iterator[None]:
    Dual.recording = False
    yield
    Dual.recording = True


DUAL = SimpleNamespace(
    sum=lambda x: Dual(np.sum(x.value), np.sum(x.tangent)), square=lambda x: x * x,
    exp=lambda x: Dual(np.exp(x.value), np.exp(x.value) * x.tangent), no_grad=_unrecorded,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(program=st.lists(_STATEMENTS, min_size=1, max_size=8))
def test_gradients_are_those_of_dual_numbers(program: list[tuple[str, Any]]) -> None:
    start = np.linspace(0.2, 1.4, N)
    k, x = xp.tensor(1.1, requires_grad=True), xp.tensor(start, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        loss = run(OURS, program, k, x)
        loss.backward()
    found = [*x.grad.tolist(), float(k.grad)]
    for direction, gradient in zip(np.eye(N + 1), found, strict=True):
        dual = run(DUAL, program, Dual(np.float64(1.1), direction[N]), Dual(start.copy(), direction[:N].copy()))
        np.testing.assert_allclose(loss.item(), dual.value, rtol=1e-12)
        np.testing.assert_allclose(gradient, dual.tangent, rtol=1e-11, atol=1e-13)


# -- the caller's arrays, and what refers to memory --------------------------------------------------------------------------


def test_arrays_of_the_caller_and_saved_values_are_kept() -> None:
    mine = np.arange(4.0)
    x = xp.asarray(mine)
    with allow_mutation_on_saved_tensors():
        x[1:] = 7.0
        taken = x.numpy()
        x[0] = 5.0
    assert mine.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.tolist() == [5.0, 7.0, 7.0, 7.0]
    assert taken.tolist()[1:] == [7.0, 7.0, 7.0]


def test_only_arrays_that_nothing_else_refers_to_are_unshared() -> None:
    backend = backend_for("numpy")

    def is_unshared(make: Any) -> bool:
        memory, others = [make()], []
        tensor = backend.wrap(memory[0])
        others.append(tensor)
        return backend.is_unshared(memory)

    kept = np.zeros(3)
    frozen = np.zeros(3)
    assert is_unshared(lambda: np.zeros(3))
    assert not is_unshared(lambda: kept)
    assert not is_unshared(lambda: np.zeros(3)[1:])
    assert not is_unshared(lambda: np.frombuffer(b"12345678"))
    assert not is_unshared(lambda: np.float64(1.0))
    frozen.flags.writeable = False
    copies = [frozen.copy()]
    copies[0].flags.writeable = False
    assert not is_unshared(copies.pop)


@pytest.mark.parametrize("saved", [False, True], ids=["constant factor", "factor that requires grad"])
def test_a_loop_of_writes_copies_no_whole_array(saved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write to a row costs the row: the kernels that copy are counted, by their elements."""
    backend = backend_for("numpy")
    copied = [0]
    original = backend.kernels.copy

    def copy(x: Any) -> Any:
        copied[0] += x.size
        return original(x)

    monkeypatch.setattr(backend.kernels, "copy", copy)
    factor = xp.tensor(0.9, requires_grad=saved)
    start = xp.tensor(np.ones(50), requires_grad=True)
    with allow_mutation_on_saved_tensors():
        u = xp.zeros((200, 50), dtype=xp.float64)
        u[0] = start
        for i in range(1, 200):
            u[i] = u[i - 1] * factor
        assert copied[0] <= 2 * u.size
        xp.sum(u).backward()
    expected = (1 - 0.9**200) / 0.1
    np.testing.assert_allclose(start.grad.numpy(), np.full(50, expected), rtol=1e-12)
    if saved:
        slope = sum(i * 0.9 ** (i - 1) for i in range(200)) * 50
        np.testing.assert_allclose(float(factor.grad), slope, rtol=1e-12)


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_inference_tensors_see_writes_to_their_views(inside: bool, xpgrad_device: str) -> None:
    """No node saves an inference tensor, so that writes go to its memory, but a normal Tensor keeps what was saved."""
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    modes = [xp.inference_mode(), allow_mutation_on_saved_tensors()]
    y = x * 1.0
    total = xp.sum(y * y)
    with modes[not inside], modes[inside]:
        y[0] = 9.0
        a = xp.zeros(4, device=xpgrad_device)
        part, pairs = a[1:], xp.reshape(a, (2, 2))
        part += 1.0
        pairs[1] = 5.0
        a[3] = -1.0
        assert (a.tolist(), part.tolist(), pairs.tolist()) == ([0, 1, 5, -1], [1, 5, -1], [[0, 1], [5, -1]])
    total.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert y.tolist() == [9.0, 2.0, 3.0]
