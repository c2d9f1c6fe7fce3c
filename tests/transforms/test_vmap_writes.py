"""Law: a function under `vmap` may write elements into what it made itself, and then does for each element what it does alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st

import xpgrad as xp
from support.central_differences import values
from xpgrad.autograd.graph import allow_mutation_on_saved_tensors
from xpgrad.func import grad, jacfwd, jacrev, vmap

SIZE, LENGTH = 3, 4
POINTS = np.random.default_rng(0).uniform(0.5, 1.5, (SIZE, LENGTH))
SHARED = np.random.default_rng(1).uniform(0.5, 1.5, LENGTH)

#: What the function makes; `s` is shared by all elements.
MADE: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda s: xp.zeros(LENGTH, dtype=s.dtype, device=s.device),
    "ones_like": xp.ones_like,
    "full": lambda s: xp.full((LENGTH,), 0.5, dtype=s.dtype, device=s.device),
    "linspace": lambda s: xp.linspace(0.0, 1.0, LENGTH, dtype=s.dtype, device=s.device),
    "a list": lambda s: xp.asarray([1.0, 2.0, 3.0, 4.0], dtype=s.dtype, device=s.device),
    "a clone": lambda s: s.clone(),
    "a copy": lambda s: xp.asarray(s, copy=True),
}
#: Writes to `t` of what is computed of the element `x` and of what is shared.
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "item": lambda t, x, s: t.__setitem__(0, x[1] * s[0]),
    "slice": lambda t, x, s: t.__setitem__(slice(1, 3), x[:2]),
    "backwards": lambda t, x, s: t.__setitem__(slice(None, None, -1), x),
    "all": lambda t, x, s: t.__setitem__(..., x * x),
    "shared": lambda t, x, s: t.__setitem__(1, s[2]),
    "number": lambda t, x, s: t.__setitem__(2, 3.0),
    "index array": lambda t, x, s: t.__setitem__(xp.asarray([0, 3], device=x.device), x[1:3]),
    "batched index": lambda t, x, s: t.__setitem__(xp.argmax(x), 0.0),
    "batched mask": lambda t, x, s: t.__setitem__(x > 1.0, 2.0),
    "add": lambda t, x, s: t.__iadd__(x),
    "multiply": lambda t, x, s: t.mul_(x[0]),
    "add what is shared": lambda t, x, s: t.add_(s),
    "copy": lambda t, x, s: t.copy_(x * s),
    "itself": lambda t, x, s: t.__setitem__(0, t[1] * x[0]),
}
#: Views of `t`, through which the writes go.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "none": lambda t: t,
    "reversed": lambda t: t[::-1],
    "reshaped": lambda t: t.reshape((2, 2)).reshape((4,)),
    "a view of a view": lambda t: t[::-1][::-1],
}


def program(made: str, view: str, early: bool, writes: list[str]) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """Return a function that makes a Tensor, writes to it, and returns it, a view, and what was made of it between two writes."""

    def function(x: Any, s: Any) -> tuple[Any, Any, Any]:
        t = MADE[made](s)
        v = VIEWS[view](t) if early else None
        between = t
        for k, name in enumerate(writes):
            target = VIEWS[view](t) if v is None else v
            WRITES[name](target, x, s)
            if k == 0:
                between = t * 1.0
        return t, t if v is None else v, between

    return function


programs = st.tuples(
    st.sampled_from(list(MADE)),
    st.sampled_from(list(VIEWS)),
    st.booleans(),
    st.lists(st.sampled_from(list(WRITES)), min_size=1, max_size=4),
)


def lists(results: Any) -> list[Any]:
    return [values(r) for r in results]


@pytest.mark.slow(one_in=9)
@settings(max_examples=150, deadline=None)
@given(drawn=programs)
def test_a_batch_is_a_loop(drawn: Any, xpgrad_device: str) -> None:
    function = program(*drawn)
    if VIEWS[drawn[1]] is not VIEWS["none"] and not xp.asarray(SHARED, device=xpgrad_device).backend.capabilities.negative_step:
        return  # what is taken backwards is a copy there
    points, s = xp.asarray(POINTS, device=xpgrad_device), xp.asarray(SHARED, device=xpgrad_device)
    found = vmap(function, in_dims=(0, None))(points, s)
    wanted = [function(points[k, :], s) for k in range(SIZE)]
    for k in range(SIZE):
        for a, b in zip(found, wanted[k], strict=True):
            np.testing.assert_allclose(values(a)[k] if a.shape != b.shape else values(a), values(b), rtol=1e-12)
    event("early view" if drawn[2] else "late view")


@settings(max_examples=60, deadline=None)
@given(drawn=programs, axis=st.integers(0, 1))
def test_a_batch_without_elements(drawn: Any, axis: int) -> None:
    """Results have the shapes that those of an element have, wherever the empty axis lies: there, NumPy's strides are 0."""
    function = program(*drawn)
    points, s = xp.asarray(np.moveaxis(POINTS[:0], 0, axis)), xp.asarray(SHARED)
    found = vmap(function, in_dims=(axis, None))(points, s)
    for a, b in zip(found, function(xp.asarray(POINTS[0]), s), strict=True):
        assert a.shape in ((0, *b.shape), b.shape)


@settings(max_examples=60, deadline=None)
@given(drawn=programs)
def test_derivatives_of_a_batch_are_those_of_a_loop(drawn: Any) -> None:
    function = program(*drawn)
    points, s = xp.asarray(POINTS), xp.asarray(SHARED)

    def first(x: Any, s: Any) -> Any:
        return function(x, s)[0] * xp.sum(x)

    with allow_mutation_on_saved_tensors():
        for transform in (jacfwd, jacrev):
            for argnums in (0, 1):
                derivative = transform(first, argnums=argnums)
                try:
                    found = vmap(derivative, in_dims=(0, None))(points, s)
                except RuntimeError as error:
                    if transform is jacrev or argnums == 0 or "elements of the batch share" not in str(error):
                        raise
                    event("refused: it has a tangent already")
                    continue
                for k in range(SIZE):
                    np.testing.assert_allclose(values(found)[k], values(derivative(points[k], s)), rtol=1e-10, atol=1e-12)
        x = xp.tensor(POINTS, requires_grad=True)
        xp.sum(vmap(first, in_dims=(0, None))(x, s)).backward()
        for k in range(SIZE):
            np.testing.assert_allclose(values(x.grad)[k], values(grad(lambda p: xp.sum(first(p, s)))(points[k])), rtol=1e-10, atol=1e-12)


def test_batches_inside_of_batches() -> None:
    points = xp.asarray(POINTS)

    def outer(x: Any) -> Any:
        mine = xp.zeros(2)

        def inner(y: Any) -> Any:
            own = xp.zeros(2)
            own[0] = y
            own[1] = x[0]
            mine[1] = x[1]  # an element of the outer batch, into what the outer function made
            return own * mine

        return vmap(inner)(x)

    found = vmap(outer)(points)
    for k in range(SIZE):
        np.testing.assert_allclose(values(found)[k], values(outer(points[k])))


@pytest.mark.parametrize(
    "write", [lambda t, x: t.__setitem__(0, x[0]), lambda t, x: t.add_(x), lambda t, x: t.__setitem__(xp.argmax(x), 1.0)]
)
def test_what_was_made_outside_is_not_written_to(write: Callable[[Any, Any], Any]) -> None:
    points = xp.asarray(POINTS)
    outside = xp.zeros(LENGTH)
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(xp.zeros(LENGTH))
        return x

    vmap(keep)(points)  # what it made is not what the next call makes
    array = np.zeros(LENGTH)
    message = "that all elements of the batch share"
    for target in (lambda x: outside, lambda x: kept[0], lambda x: xp.asarray(array), lambda x: outside * 1.0, lambda x: outside[:]):

        def function(x: Any, target: Any = target) -> Any:
            t = target(x)
            write(t, x)
            return t

        with pytest.raises(RuntimeError, match=message):
            vmap(function)(points)

        def inside(x: Any, target: Any = target) -> Any:
            mine = xp.zeros(LENGTH)
            vmap(lambda y: (mine.__setitem__(0, y), y)[1])(x)
            return mine

        with pytest.raises(RuntimeError, match=message):
            vmap(inside)(points)
    assert values(outside).tolist() == values(kept[0]).tolist() == array.tolist() == [0.0] * LENGTH


def test_a_leaf_that_requires_grad_is_not_written_to() -> None:
    def function(x: Any) -> Any:
        t = xp.zeros(LENGTH, requires_grad=True)
        t[0] = x[0]
        return t

    with pytest.raises(RuntimeError, match="that all elements of the batch share"):
        vmap(function)(xp.asarray(POINTS))


def _scale(x: Any, by: Any) -> Any:
    y = x.clone()
    with xp.no_grad():
        y *= by
    return y * 2.0


def _write_part(x: Any, by: Any) -> Any:
    y = -x
    row = y[0]
    with xp.no_grad():
        row *= by[0]
    y[1] = y[1] * by[1]
    return y * row


def _write_all_and_a_part(x: Any, by: Any) -> Any:
    y = -x
    row = y[0]
    with xp.no_grad():
        y *= by
    row *= 3.0
    return y * 2.0


@pytest.mark.parametrize("function", [_scale, _write_part, _write_all_and_a_part])
def test_a_write_that_is_not_recorded_keeps_the_history(function: Any, xpgrad_device: str) -> None:
    x, by = (xp.asarray([[[a, b], [b, a]], [[a, 1.0], [2.0, b]]], device=xpgrad_device) for a, b in ((1.5, 0.5), (3.0, -1.0)))
    loss = lambda x, by: xp.sum(function(x, by) ** 2)  # noqa: E731
    expected = [values(grad(loss)(*pair)) for pair in zip(x, by)]
    np.testing.assert_allclose(values(vmap(grad(loss))(x, by)), expected)
    np.testing.assert_allclose(values(grad(lambda x: xp.sum(vmap(loss)(x, by)))(x)), expected)
    twice = vmap(vmap(grad(loss)))(xp.stack([x, x]), xp.stack([by, by]))
    np.testing.assert_allclose(values(twice), [expected, expected])
    if function is _scale:  # what the elements share becomes batched
        shared = grad(lambda one: xp.sum(vmap(loss, in_dims=(None, 0))(one, by)))(x[0])
        np.testing.assert_allclose(values(shared), sum(values(grad(loss)(x[0], b)) for b in by))
