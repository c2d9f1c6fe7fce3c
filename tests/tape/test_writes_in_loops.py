"""Law: a backward pass overwrites the gradient of a written Tensor only where nobody else refers to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import values

LENGTH = 4
#: Writes of `v` to `t`: to items, slices, through views, and by index arrays.
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda t, v: t.__setitem__(1, v[0]),
    "slice": lambda t, v: t.__setitem__(slice(1, 3), v[:2]),
    "all": lambda t, v: t.copy_(v),
    "view": lambda t, v: t.reshape((2, 2))[0].copy_(v[2:]),
    "backwards": lambda t, v: t[::-1].__setitem__(0, v[1]),
    "index array": lambda t, v: t.__setitem__(np.asarray([0, 2, 0]), v[1:]),
    "mask": lambda t, v: t.__setitem__(np.asarray([True, False, False, True]), v[:2]),
    "itself": lambda t, v: t.__setitem__(0, t[2] * 2.0),
    "multiple": lambda t, v: t.__setitem__(slice(0, 2), t[2:] * 3.0 + v[:2]),
    "add": lambda t, v: t.__iadd__(v),
}


def program(names: list[str], kept: bool) -> Callable[[Any, Any], Any]:
    """Return a function that writes to a copy of `x`; `kept` tells whether it also reads the values between the writes."""

    def function(x: Any, v: Any) -> Any:
        t = x * 1.0
        total = 0.0
        for k, name in enumerate(names):
            WRITES[name](t, v * (k + 1.0))
            if kept:
                total = total + xp.sum(t) * (k + 2.0)
        return xp.sum((t + x) * np.arange(1.0, LENGTH + 1)) + total  # the sum gives both operands the same gradient

    return function


@pytest.mark.slow(one_in=9)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(list(WRITES)), min_size=1, max_size=5), st.booleans())
def test_gradients_are_forward_modes(xpgrad_device: str, names: list[str], kept: bool) -> None:
    capabilities = xp.zeros(1, dtype="float32", device=xpgrad_device).backend.capabilities
    if "backwards" in names and not capabilities.negative_step:
        return  # it is a copy there
    function = program(names, kept)
    points = [np.linspace(0.5, 1.5, LENGTH), np.linspace(-1.0, 2.0, LENGTH)]
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    loss = function(*leaves)
    first = xp.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True, materialize_grads=True)
    loss.backward()  # the same graph again
    for i, (x, g) in enumerate(zip(leaves, first, strict=True)):
        xs = [leaf.detach() for leaf in leaves]
        wanted = values(xp.func.jacfwd(function, argnums=i)(*xs))
        np.testing.assert_allclose(values(g), wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(0.0 if x.grad is None else values(x.grad), wanted, rtol=1e-12, atol=1e-12)


def test_what_hooks_and_callers_get_is_theirs() -> None:
    x, seen = xp.tensor(np.ones(LENGTH), requires_grad=True), []
    t = x * 1.0
    t.register_hook(seen.append)
    for k in range(3):
        t[k] = x[0] * (k + 1.0)
    loss = xp.sum(t * 2.0)
    seed = xp.asarray(3.0)
    between = xp.autograd.grad(loss, t, seed, retain_graph=True)[0]
    loss.backward(seed, retain_graph=True)
    assert between.tolist() == [6.0] * LENGTH
    assert seen[0].tolist() == [0.0, 0.0, 0.0, 6.0]
    assert x.grad.tolist() == [36.0, 0.0, 0.0, 6.0]
    seeds = xp.asarray([1.0, 2.0, 3.0, 4.0])
    assert xp.autograd.grad(t, x, seeds, retain_graph=True)[0].tolist() == [14.0, 0.0, 0.0, 4.0]
    assert seeds.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_lists_are_written_as_numpy_writes_them(xpgrad_device: str) -> None:
    x = xp.tensor([3.0], device=xpgrad_device, requires_grad=True)
    t = xp.zeros((2, 2), dtype=x.dtype, device=xpgrad_device)
    t[0] = [x[0], 2]
    t[1] = (1.5, 2)
    t[:, 1] = [x[0] * 2.0, 4.0]
    assert t.tolist() == [[3.0, 6.0], [1.5, 4.0]]
    xp.sum(t).backward()
    assert x.grad.tolist() == [3.0]
    before = t.tolist()
    for wrong, error in (([1.0, 2.0, 3.0], ValueError), (["a", 1.0], TypeError), ([1j, 1.0], TypeError), ([[1.0], 2.0], ValueError)):
        with pytest.raises(error):
            t[0] = wrong
    assert t.tolist() == before
