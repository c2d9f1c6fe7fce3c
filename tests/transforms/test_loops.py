"""Law: `scan`, `fori_loop`, `while_loop` and `cond` compute what Python's loops and branches compute, with the same derivatives.

The law holds if Python runs the loop, if only carries are saved, and if the backend runs it (`Backend.control_flow`), which NumPy's
imitates in some tests. On JAX the results are also those of `jax.lax`.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import DEVICES
from support.central_differences import SINGLE, numbers, values
from support.python_loops import python_loops
from xpgrad import func
from xpgrad.errors import CaptureError
from xpgrad.func._tree import flatten

KINDS = ("python", "checkpoint", "backend")


@pytest.fixture(params=KINDS)
def kind(request: Any, xpgrad_device: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return how loops run; "backend" gives the device's backend loops of its own."""
    if request.param == "backend":
        cls = type(xp.registry.backend_for(xp.Device(xpgrad_device).table))
        monkeypatch.setattr(cls, "control_flow", lambda self, arrays: python_loops(self))
    return str(request.param)


@pytest.fixture(params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Return a device."""
    return str(request.param)


def _close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    mine, others = (flatten(tree)[0] for tree in (a, b))
    assert len(mine) == len(others)
    for x, y in zip(mine, others):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.shape == tuple(y.shape)
            single = x.dtype in (xp.float32, xp.complex64)
            other = values(y) if isinstance(y, xp.Tensor) else np.asarray(y)
            np.testing.assert_allclose(values(x), other, rtol=max(tolerance, SINGLE if single else 0), atol=SINGLE if single else 1e-12)


def _plain_scan(f: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
    """Return the results of a scan of one Tensor, with one result, by a plain loop."""
    carry, ys = init, []
    order = range(xs.shape[0] - 1, -1, -1) if reverse else range(xs.shape[0])
    for k in order:
        carry, y = f(carry, xs[k])
        ys.append(y)
    return carry, xp.stack(ys[::-1] if reverse else ys)


def _recurrence(scan: Any, weight: Any, start: Any, xs: Any) -> Any:
    """Return a number that depends on a recurrent network with a closed-over weight."""

    half = 0.5 * weight  # the step closes over this, and over what it was computed from

    def step(h: Any, x: Any) -> Any:
        h = xp.tanh(half @ h + x + weight[0])
        return h, xp.sum(h * h) * x[0]

    last, ys = scan(step, start, xs)
    return xp.sum(last**3) + xp.sum(ys * ys)


def _arguments(device: str, length: int = 4, dtype: Any = np.float64) -> list[Any]:
    return [xp.asarray(0.5 * numbers(s, k, dtype), device=device) for k, s in enumerate([(3, 3), (3,), (length, 3)])]


def _pair(kind: str, reverse: bool = False) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function by `scan`, and by a plain loop."""
    scan = functools.partial(func.scan, reverse=reverse, checkpoint=kind == "checkpoint")
    return functools.partial(_recurrence, scan), functools.partial(_recurrence, functools.partial(_plain_scan, reverse=reverse))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "grad": lambda f: func.grad(f, argnums=(0, 1, 2)),
    "jacfwd": lambda f: func.jacfwd(f, argnums=(0, 1, 2)),
    "hessian": lambda f: func.hessian(f, argnums=(0, 1)),
    "jacrev of grad": lambda f: func.jacrev(func.grad(f, argnums=2), argnums=(0, 1, 2)),
    "jvp of grad": lambda f: lambda *args: func.jvp(func.grad(f, argnums=(0, 1, 2)), args, tuple(0.5 * a for a in args)),
    "grad of jvp": lambda f: func.grad(lambda *args: func.jvp(f, args, tuple(0.5 * a for a in args))[1], argnums=(0, 1, 2)),
    "vmap": lambda f: lambda w, h, x: func.vmap(f, in_dims=(None, 0, None))(w, xp.stack([h, 2.0 * h]), x),
    "vmap of grad": lambda f: (
        lambda w, h, x: func.vmap(func.grad(f, argnums=(0, 1, 2)), in_dims=(0, None, 1))(
            xp.stack([w, 2.0 * w]), h, xp.stack([x, x], axis=1)
        )
    ),
    "vmap of hessian": lambda f: lambda w, h, x: func.vmap(func.hessian(f), in_dims=(None, 0, None))(w, xp.stack([h, 2.0 * h]), x),
    "vmap of vmap": lambda f: (
        lambda w, h, x: func.vmap(func.vmap(func.grad(f), in_dims=(None, 0, None)), in_dims=(0, None, None))(
            xp.stack([w, 2.0 * w]), xp.stack([h, 2.0 * h]), x
        )
    ),
    "vmap of jvp": lambda f: (
        lambda w, h, x: func.vmap(lambda h: func.jvp(lambda h: f(w, h, x), (h,), (h,))[1])(xp.stack([h, 2.0 * h]))
    ),
    "linearize": lambda f: lambda *args: func.linearize(f, *args)[1](*args),
}  # fmt: skip


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_scan_agrees_with_a_plain_loop(transform: str, kind: str, xpgrad_device: str) -> None:
    mine, plain = (TRANSFORMS[transform](f) for f in _pair(kind))
    args = _arguments(xpgrad_device)
    _close(mine(*args), plain(*args))


def test_gradients_reach_leaves_twice(kind: str, xpgrad_device: str) -> None:
    found = []
    for f in _pair(kind, reverse=True):
        leaves = [a.requires_grad_() for a in _arguments(xpgrad_device)]
        first = xp.autograd.grad(f(*leaves), leaves, create_graph=True)
        sum((xp.sum(g * g) for g in first), start=xp.asarray(0.0, device=xpgrad_device)).backward()
        found.append([*first, *(leaf.grad for leaf in leaves)])
    _close(*found)


def test_batched_cotangents(kind: str, xpgrad_device: str) -> None:
    found = []
    for f in (lambda *a: func.scan(lambda c, x: (xp.sin(a[0] @ c) + x, c * x), *a[1:], checkpoint=kind == "checkpoint")[1],
              lambda *a: _plain_scan(lambda c, x: (xp.sin(a[0] @ c) + x, c * x), *a[1:])[1]):  # fmt: skip
        leaves = [a.requires_grad_() for a in _arguments(xpgrad_device)]
        out = f(*leaves)
        seeds = xp.asarray(numbers((2, *out.shape)), device=xpgrad_device)
        found.append(xp.autograd.grad(out, leaves, seeds, is_grads_batched=True))
    _close(*found)


def test_no_grad_records_nothing(kind: str, xpgrad_device: str) -> None:
    leaves = [a.requires_grad_() for a in _arguments(xpgrad_device)]
    with xp.no_grad():
        assert not _pair(kind)[0](*leaves).requires_grad


def test_a_pass_frees_what_was_saved(kind: str, xpgrad_device: str) -> None:
    leaves = [a.requires_grad_() for a in _arguments(xpgrad_device)]
    out = _pair(kind)[0](*leaves)
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(0, 5), reverse=st.booleans(), dtype=st.sampled_from(["float32", "float64", "complex128", "int64"]),
    checkpoint=st.booleans(), shape=st.sampled_from([(), (2,), (2, 3)]), unroll=st.sampled_from([1, 2, True]),
)  # fmt: skip
def test_scan_of_any_length(length: int, reverse: bool, dtype: str, checkpoint: bool, shape: Any, unroll: Any) -> None:
    kind = dtype if dtype != "int64" else "float64"
    xs, start = (xp.asarray((3 * numbers(s, k, kind)).astype(dtype)) for k, s in enumerate([(length, *shape), shape]))
    for x in (xs, start):
        if x.dtype.differentiable:
            x.requires_grad_()

    def step(c: Any, x: Any) -> Any:
        return c * x + x, (c - x, {"both": c * c})

    carry, (differences, squares) = func.scan(step, start, xs, length, reverse, unroll, checkpoint=checkpoint)
    assert carry.dtype is xs.dtype
    assert differences.shape == squares["both"].shape == (length, *shape)
    assert differences.dtype is squares["both"].dtype is xs.dtype
    if not length:
        _close(carry, start)
        return
    wanted = _plain_scan(lambda c, x: (step(c, x)[0], xp.stack([c - x, c * c])), start, xs, reverse)
    _close((carry, xp.stack([differences, squares["both"]], axis=1)), wanted)
    if xs.requires_grad:
        parts = [(carry, differences, squares["both"]), (wanted[0], wanted[1][:, 0], wanted[1][:, 1])]
        totals = [sum(xp.sum(xp.real(part * part)) for part in p) for p in parts]
        _close(*(xp.autograd.grad(t, (xs, start)) for t in totals))


class _Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class _Cell:
    state: Any
    label: str
    more: Any = None


def test_pytrees(kind: str, xpgrad_device: str) -> None:
    x, y = xp.asarray(numbers((4,)), device=xpgrad_device), xp.asarray(numbers((4, 2)), device=xpgrad_device)
    init = {"cell": _Cell(x[:2], "name"), "count": 0, "pair": _Pair(1.0, [xp.asarray(2.0, device=xpgrad_device)]), "none": None}

    def step(c: Any, given: Any) -> Any:
        assert c["none"] is None
        assert c["cell"].label == "name"
        cell = _Cell(c["cell"].state * given[0] + given[1]["row"], "name")
        carry = {"pair": _Pair(c["pair"].a + given[0], [c["pair"].b[0] * 2.0]), "count": c["count"] + 1, "none": None, "cell": cell}
        return carry, _Pair(cell, (None, given[0]))

    carry, ys = func.scan(step, init, (x, {"row": y}), checkpoint=kind == "checkpoint")
    assert list(carry) == list(init)
    assert isinstance(carry["cell"], _Cell)
    assert isinstance(ys, _Pair)
    assert ys.b[0] is None
    assert carry["count"].item() == 4
    assert carry["count"].dtype.category == "signed integer"
    _close(carry["pair"].a, 1.0 + xp.sum(x))
    _close(carry["pair"].b[0], np.asarray(32.0))
    state = x[:2]
    for k in range(4):
        state = state * x[k] + y[k]
        _close(ys.a.state[k], state)
    _close(ys.b[1], x)


def test_without_slices(xpgrad_device: str) -> None:
    start = xp.asarray(1.0, device=xpgrad_device)
    carry, ys = func.scan(lambda c, x: (c * 2.0, c if x is None else None), start, None, 3)
    assert (carry.item(), ys.tolist()) == (8.0, [1.0, 2.0, 4.0])
    carry, ys = func.scan(lambda c, x: (c * 2.0, None), start, length=3)
    assert (carry.item(), ys) == (8.0, None)


def test_numbers_take_the_dtype_of_the_first_step(xpgrad_device: str) -> None:
    xs = xp.asarray([1.5, 2.5], dtype="float64", device=xpgrad_device)
    carry, _ = func.scan(lambda c, x: ((c[0] + x, c[1] + 1), None), (0, 0), xs)
    assert (carry[0].dtype, carry[0].item(), carry[0].device) == (xp.float64, 4.0, xs.device)
    assert carry[1].dtype.category == "signed integer"
    total = func.fori_loop(0, 3, lambda i, v: v + xs[1] * i, 0.0)
    assert (total.dtype, total.item()) == (xp.float64, 7.5)
    halved = func.while_loop(lambda v: v > 1.0, lambda v: v * xs[0] / 3.0, 4)
    assert (halved.dtype, halved.item()) == (xp.float64, 1.0)


@settings(max_examples=25, deadline=None)
@given(lower=st.integers(-3, 4), upper=st.integers(-3, 6), checkpoint=st.booleans())
def test_fori_loop(lower: int, upper: int, checkpoint: bool) -> None:
    x = xp.tensor(1.25, requires_grad=True)

    def body(i: Any, v: Any) -> Any:
        return (v[0] * x + i, v[1] + i)

    mine = func.fori_loop(lower, upper, body, (x, 0), checkpoint=checkpoint)
    plain: Any = (x, 0)
    for i in range(lower, upper):
        plain = body(i, plain)
    assert mine[1].item() == plain[1]
    _close(mine[0], plain[0])
    _close(*(xp.autograd.grad(v[0], x) for v in (mine, plain)))
    _close(func.fori_loop(xp.asarray(lower), xp.asarray(upper), body, (x, 0))[0], plain[0])


def test_fori_loop_indexes(xpgrad_device: str) -> None:
    x = xp.asarray(numbers((5,)), device=xpgrad_device)
    slope = func.grad(lambda x: func.fori_loop(1, 4, lambda i, v: v * xp.take(x, xp.reshape(i, (1,)))[0], 1.0))(x)
    _close(slope, func.grad(lambda x: x[1] * x[2] * x[3])(x))


def _root(a: Any) -> Any:
    return func.while_loop(lambda x: xp.abs(x * x - a) > 1e-5, lambda x: 0.5 * (x + a / x), a)


def test_while_loop(xpgrad_device: str) -> None:
    a = xp.asarray(2.0, device=xpgrad_device)
    _close(_root(a), xp.sqrt(a), 1e-5)
    _close(func.grad(_root)(a), 0.5 / xp.sqrt(a), 1e-4)
    _close(func.jvp(_root, (a,), (a,))[1], 0.5 * xp.sqrt(a), 1e-4)
    assert func.while_loop(lambda v: False, lambda v: v * 2.0, a).item() == 2.0


def test_while_loop_of_a_batch(xpgrad_device: str) -> None:
    many = xp.asarray([0.01, 1.0, 2.0, 900.0], device=xpgrad_device)
    apart = xp.stack([_root(a) for a in many])
    _close(func.vmap(_root)(many), apart)  # each element takes the number of steps that it takes alone
    _close(func.vmap(func.grad(_root))(many), xp.stack([func.grad(_root)(a) for a in many]))
    _close(func.grad(lambda a: xp.sum(func.vmap(_root)(a)))(many), func.vmap(func.grad(_root))(many))
    steps = func.vmap(lambda n: func.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] * 2), (0, 1))[1])
    assert steps(xp.asarray([0, 3, 1], device=xpgrad_device)).tolist() == [1, 8, 2]
    counts = func.vmap(lambda n: func.fori_loop(1, n, lambda i, v: v * i, 1))(xp.asarray([0, 3, 5], device=xpgrad_device))
    assert counts.tolist() == [1, 2, 24]
    nested = func.vmap(func.vmap(_root))(xp.reshape(many, (2, 2)))
    _close(nested, xp.reshape(apart, (2, 2)))


def _bent(x: Any) -> Any:
    return func.cond(xp.sum(x) > 0.0, lambda x: {"y": x * x, "n": None}, lambda x: {"n": None, "y": -x}, x)["y"]


def test_cond(xpgrad_device: str) -> None:
    for sign in (1.0, -1.0):
        x = xp.asarray(sign * np.asarray([1.0, 2.0]), device=xpgrad_device)
        _close(_bent(x), x * x if sign > 0 else -x)
        _close(func.grad(lambda x: xp.sum(_bent(x)))(x), 2.0 * x if sign > 0 else -xp.ones_like(x))
    assert func.cond(True, lambda: 1, lambda: 2) == 1
    assert func.cond(0.0, lambda: 1, lambda: 2) == 2
    ran: list[str] = []
    func.cond(x[0] > 0.0, lambda: ran.append("true"), lambda: ran.append("false"))
    assert ran == ["false"]


def test_cond_of_a_batch_computes_both(xpgrad_device: str) -> None:
    rows = xp.asarray([[1.0, 2.0], [-3.0, 1.0], [0.5, 0.5]], device=xpgrad_device)
    _close(func.vmap(_bent)(rows), xp.stack([_bent(row) for row in rows]))
    slope = func.grad(lambda x: xp.sum(_bent(x)))
    _close(func.vmap(slope)(rows), xp.stack([slope(row) for row in rows]))
    hessian = func.hessian(lambda x: xp.sum(_bent(x)))
    _close(func.vmap(hessian)(rows), xp.stack([hessian(row) for row in rows]))
    shared = func.vmap(lambda x: func.cond(rows[0, 0] > 0.0, lambda x: x, lambda x: 1.0, x))  # no one asks the other branch
    _close(shared(rows), rows)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("transform", ["grad", "hessian", "jacrev of grad", "vmap of grad", "grad of jvp", "jvp of grad"])
def test_a_backend_runs_branches(monkeypatch: pytest.MonkeyPatch, transform: str, sign: float) -> None:
    def f(w: Any, h: Any, x: Any) -> Any:
        y = func.cond(sign > 0.0 * w[0, 0], lambda h: xp.sum(w @ h) ** 3, lambda h: xp.sum(h * xp.sum(x)) ** 2, h)
        return y * y

    args = _arguments("numpy")
    wanted = TRANSFORMS[transform](f)(*args)
    cls = type(xp.registry.backend_for("numpy"))
    monkeypatch.setattr(cls, "control_flow", lambda self, arrays: python_loops(self))
    _close(TRANSFORMS[transform](f)(*args), wanted)


def test_a_backend_runs_while_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    many = xp.asarray([0.01, 1.0, 2.0, 900.0], device="numpy")
    wanted = func.vmap(_root)(many)
    slope = func.jvp(_root, (many[2],), (many[2],))
    cls = type(xp.registry.backend_for("numpy"))
    monkeypatch.setattr(cls, "control_flow", lambda self, arrays: python_loops(self))
    _close(func.vmap(_root)(many), wanted)
    _close(func.jvp(_root, (many[2],), (many[2],)), slope)
    with pytest.raises(RuntimeError, match=r"reverse mode cannot differentiate a `while_loop`"):
        func.grad(_root)(many[2])
    bound = xp.asarray(3, device="numpy")
    assert func.fori_loop(0, bound, lambda i, v: v * 2.0 + i, many[1]).item() == 12.0


def test_a_function_that_changes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [xp.tensor(2.0, requires_grad=True) * 1.0, xp.tensor(3.0, requires_grad=True) * 1.0]
    seen: list[Any] = [weights[0]]
    out, _ = func.scan(lambda c, _: (c * seen[0], None), xp.asarray(1.0), length=2, checkpoint=True)
    seen[0] = weights[1]
    with pytest.raises(RuntimeError, match="must compute the same each time"):
        out.backward()


# -- branches that differ from step to step ----------------------------------------------------------------------------------------

#: Loops whose first step does not use a Tensor `w` that later steps use: what says so is known before the loop runs.
BRANCHING: dict[str, Callable[..., Any]] = {
    "of the index": lambda L, on, x, w, **kind: L.fori_loop(0, 3, lambda j, c: L.cond(j > 0, lambda: c * w, lambda: c + 0.0), x, **kind),
    "of a flag": lambda L, on, x, w, **kind: L.scan(
        lambda c, _: ((~c[0], L.cond(c[0], lambda: c[1] + 0.0, lambda: c[1] * w)), c[1]), (on([True])[0], x), length=4, **kind
    )[0][1],
    "of a slice": lambda L, on, x, w, **kind: L.scan(
        lambda c, y: (c, L.cond(y, lambda: w * w, lambda: c + 0.0)), x, on([False, True, True]), **kind
    )[1],
    "of a bound": lambda L, on, x, w, **kind: L.fori_loop(
        0, 3, lambda j, c: L.while_loop(lambda v: v[0] < j, lambda v: (v[0] + 1, v[1] * w), (on([0])[0], c))[1], x, **kind
    ),
    "in the last step": lambda L, on, x, w, **kind: L.scan(
        lambda c, y: (L.cond(y == 0.0, lambda: c * c * w, lambda: c + y), None), x, on([0.0, 2.0, 1.0]), reverse=True, **kind
    )[0],
}  # fmt: skip


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("kind", ["python", "checkpoint", "compiled", "compiled gradient"])
@pytest.mark.parametrize("name", BRANCHING)
def test_branches_may_differ_from_step_to_step(name: str, kind: str, is_leaf: bool, xpgrad_device: str) -> None:
    """Each branch has its gradients, whichever the first step takes."""
    on = functools.partial(xp.asarray, device=xpgrad_device)
    backend = xp.registry.backend_for(xp.Device(xpgrad_device).table)
    if name == "of a bound" and backend.capabilities.jit and "compiled" in kind:
        return  # its own `while_loop` has no reverse mode

    def function(x: Any, w: Any, loops: Any = func, **options: Any) -> Any:
        return xp.sum(xp.sin(BRANCHING[name](loops, on, x, w if is_leaf else w * w, **options)))

    def derivatives(f: Any) -> Any:
        leaves = [on(v).requires_grad_() for v in (0.5, 1.25)]
        first = xp.autograd.grad(f(*leaves), leaves, create_graph=True)
        return [*first, *xp.autograd.grad(sum(g * g for g in first), leaves)]

    checkpoint = functools.partial(function, checkpoint=True)
    if kind == "compiled gradient":
        args = [on(0.5), on(1.25)]
        _close(xp.compile(func.grad(function, argnums=(0, 1)))(*args), func.grad(function, argnums=(0, 1))(*args))
        return
    _close(derivatives({"python": function, "checkpoint": checkpoint, "compiled": xp.compile(function)}[kind]),
           derivatives(functools.partial(function, loops=_Plain)))  # fmt: skip


def noise() -> Any:
    return xp.asarray(np.random.uniform(1.0, 2.0, 3))  # noqa: NPY002 (the global generator is meant)


#: Functions of a vector that are linear, so that the value divided by the argument is the gradient of their sum.
RANDOM: dict[str, Callable[[Any], Any]] = {
    "no loop": lambda x: x * noise(),
    "scan": lambda x: func.scan(lambda c, _: (c * noise(), None), x, length=3)[0],
    "outputs": lambda x: func.scan(lambda c, _: (c, x * noise()), x, length=3, reverse=True)[1].sum(axis=0),
    "carries": lambda x: func.scan(lambda c, _: (c * noise(), None), x, length=3, checkpoint=True)[0],
    "fori_loop": lambda x: func.fori_loop(0, 3, lambda _, c: {"c": c["c"] * noise()}, {"c": x}, checkpoint=True)["c"],
    "while_loop": lambda x: func.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * noise()), (xp.asarray(0), x))[1],
    "cond": lambda x: func.cond(x[0] > 0, lambda x: x * noise(), lambda x: x / noise(), x),
    "nested": lambda x: func.scan(
        lambda c, _: (func.fori_loop(0, 2, lambda _, c: func.cond(c[0] > 0, lambda c: c * noise(), lambda c: c, c), c) * noise(), None),
        x * noise(), length=2, checkpoint=True,
    )[0],
}  # fmt: skip


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", RANDOM)
def test_a_step_that_runs_again_draws_the_same_random_numbers(name: str, compiled: bool) -> None:
    f = xp.compile(RANDOM[name]) if compiled else RANDOM[name]
    ones = xp.ones(3)
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        y = f(x)
        xp.sum(y).backward()
        assert x.grad is not None
        np.testing.assert_allclose(values(x.grad), values(y.detach() / x.detach()))
    gradient, (y,) = func.grad(lambda x: (xp.sum(y := f(x)), (y,)), has_aux=True)(x.detach())
    np.testing.assert_allclose(values(gradient), values(y / x.detach()))
    y, tangent = func.jvp(f, (x.detach(),), (ones,))
    np.testing.assert_allclose(values(tangent), values(y / x.detach()))
    y, pull = func.vjp(xp.compile(lambda x: func.vjp(f, x)[1](ones)[0] * x), x.detach())  # linear again
    np.testing.assert_allclose(values(pull(ones)[0]), values(y / x.detach()))


@pytest.mark.parametrize("name", RANDOM)
def test_a_constant_may_be_a_cotangent_in_a_compiled_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.test_loops.noise", lambda: xp.asarray([1.5, 2.0, 0.5]))
    xp.real(xp.tensor(1j, requires_grad=True) * 2).backward()  # from here on passes ask whether gradients are complex
    x, seed = xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 0.5, 2.0])
    leaf = xp.tensor(x, requires_grad=True)
    for run, start in (
        (lambda x: func.vjp(RANDOM[name], x)[1](seed)[0], x),
        (lambda x: xp.autograd.grad(RANDOM[name](x), x, seed)[0], leaf),
        (lambda x: xp.autograd.grad(RANDOM[name](x), x, seed, create_graph=True)[0], leaf),
    ):  # fmt: skip
        np.testing.assert_allclose(values(xp.compile(run)(start).detach()), values(run(start).detach()))


def test_chunks_draw_the_same_random_numbers() -> None:
    x = xp.asarray([1.0, 1.0, 1.0])
    jacobian = values(func.jacfwd(lambda x: x * noise()[0], chunk_size=1)(x))
    assert len(set(np.diag(jacobian).tolist())) == 1
    for randomness, count in (("same", 1), ("different", 2)):
        found = func.vmap(func.grad(lambda x: x * noise()[0]), chunk_size=2, randomness=randomness)(x)
        assert len(set(found.tolist())) == count


@pytest.mark.parametrize("checkpoint", [False, True])
def test_each_step_in_python_draws_its_own_random_numbers(checkpoint: bool) -> None:
    np.random.seed(3)  # noqa: NPY002
    expected = [noise().tolist() for _ in range(3)]
    np.random.seed(3)  # noqa: NPY002
    y = func.scan(lambda c, _: (c, noise() + 0.0 * c), xp.zeros(3).requires_grad_(), length=3, checkpoint=checkpoint)[1]
    assert y.tolist() == expected


def test_a_loop_that_saves_carries_has_nothing_to_save_without_recording(xpgrad_device: str) -> None:
    x = xp.tensor([0.5, 2.0], requires_grad=True, device=xpgrad_device)
    step = lambda c, v: (c * v * x, c)  # noqa: E731
    wanted = func.scan(step, x, x)
    for mode in (xp.no_grad, xp.inference_mode):
        with mode():
            found = func.scan(step, x, x, checkpoint=True)
        _close(found, wanted)
        assert not any(y.requires_grad for y in found)
    out = xp.sum(func.scan(step, x, x, checkpoint=True)[0])
    with xp.no_grad():
        (found,) = xp.autograd.grad(out, x)
    _close(found, xp.autograd.grad(xp.sum(wanted[0]), x)[0])


class _Plain:
    """Python's loops and branches."""

    @staticmethod
    def scan(f: Any, carry: Any, xs: Any = None, length: int = 0, reverse: bool = False) -> Any:
        ys = []
        order = range(length if xs is None else xs.shape[0])
        for k in order[::-1] if reverse else order:
            carry, y = f(carry, None if xs is None else xs[k])
            ys.append(y)
        return carry, None if ys[0] is None else xp.stack(ys[::-1] if reverse else ys)

    @staticmethod
    def fori_loop(lower: int, upper: int, body: Any, value: Any) -> Any:
        for k in range(lower, upper):
            value = body(xp.asarray(k, device=value.device), value)
        return value

    @staticmethod
    def while_loop(test: Any, body: Any, value: Any) -> Any:
        while bool(test(value)):
            value = body(value)
        return value

    @staticmethod
    def cond(holds: Any, first: Any, second: Any) -> Any:
        return first() if bool(holds) else second()


# -- compiled ---------------------------------------------------------------------------------------------------------------------


def test_compiled_scan(xpgrad_device: str) -> None:
    f, plain = _pair("python")
    found = []
    for function in (xp.compile(f), plain):
        leaves = [a.requires_grad_() for a in _arguments(xpgrad_device)]
        value = function(*leaves)
        first = xp.autograd.grad(value, leaves, create_graph=True)
        second = xp.autograd.grad(xp.sum(first[0] * first[0]), leaves)
        found.append([value, *first, *second])
    _close(*found)


@pytest.mark.parametrize("function", [
    lambda x: func.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x), lambda x: func.cond(x > 0.0, lambda x: x, lambda x: -x, x),
    lambda x: func.fori_loop(0, xp.astype(x, "int64"), lambda i, v: v * 2.0, 1.0),
    lambda x: xp.sum(func.vmap(lambda v: func.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, v))(xp.stack([x, x]))),
])  # fmt: skip
def test_what_depends_on_values_has_no_pattern(function: Any) -> None:
    x = xp.asarray(3.0, device="numpy")
    with pytest.raises(CaptureError, match=r"depends on the arguments .*; use `xpgrad\.where`"):
        func.sparse_jacobian(lambda x: xp.reshape(function(x[0]), (1,)))(xp.reshape(x, (1,)))


# -- JAX --------------------------------------------------------------------------------------------------------------------------


def _with_jax() -> tuple[Any, Any]:
    jax = pytest.importorskip("jax")
    return jax, jax.numpy


@pytest.fixture
def x64() -> Any:
    """Enable JAX's 64-bit dtypes."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def _lax_recurrence(weight: Any, start: Any, xs: Any) -> Any:
    jax, jnp = _with_jax()

    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(0.5 * weight @ h + x + weight[0])
        return h, jnp.sum(h * h) * x[0]

    last, ys = jax.lax.scan(step, start, xs)
    return jnp.sum(last**3) + jnp.sum(ys * ys)


@pytest.mark.parametrize("loop", [
    lambda x: func.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 0.5), (0, x)),
    lambda x: func.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * i), (0, x)),
    lambda x: func.scan(lambda c, _: ((c[0] + 1, c[1] * 0.5), c[0]), (0, x), length=3),
    lambda x: func.scan(lambda c, v: (c * v, v), x, np.arange(3, dtype="float32")),
])  # fmt: skip
def test_numbers_and_arrays_go_to_the_device_of_a_number_that_jax_traces(loop: Any) -> None:
    _, jnp = _with_jax()
    x = xp.asarray(jnp.asarray(1.5, dtype="float32"))
    _close(xp.compile(loop)(x), loop(x))
    assert all(y.device == x.device for y in flatten(loop(x))[0])


def test_a_traced_loop_has_one_device() -> None:
    _, jnp = _with_jax()
    xs = xp.asarray(np.arange(3, dtype="float32"), device="numpy")
    with pytest.raises(xp.errors.DeviceMismatchError, match=r"got Tensors on jax:cpu:0 and numpy; move them to one device"):
        xp.compile(lambda x: func.scan(lambda c, v: (c * v, None), x, xs))(xp.asarray(jnp.asarray(1.5)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("transform", ["grad", "hessian", "jacrev of grad", "jvp", "vmap of grad"])
def test_traced_scan_agrees_with_lax(transform: str) -> None:
    jax, jnp = _with_jax()
    mine = _pair("python")[0]
    raws = [jnp.asarray(a.numpy()) for a in _arguments("numpy")]
    args = [xp.asarray(a) for a in raws]
    both = {
        "grad": (func.grad(mine, argnums=(0, 1, 2)), jax.grad(_lax_recurrence, argnums=(0, 1, 2))),
        "hessian": (func.hessian(mine, argnums=(0, 2)), jax.hessian(_lax_recurrence, argnums=(0, 2))),
        "jacrev of grad": (func.jacrev(func.grad(mine), argnums=(0, 2)), jax.jacrev(jax.grad(_lax_recurrence), argnums=(0, 2))),
        "jvp": (lambda *a: func.jvp(mine, a, a), lambda *a: jax.jvp(_lax_recurrence, a, a)),
        "vmap of grad": (
            lambda w, h, x: func.vmap(func.grad(mine), in_dims=(None, 0, None))(w, xp.stack([h, h * 2.0]), x),
            lambda w, h, x: jax.vmap(jax.grad(_lax_recurrence), in_axes=(None, 0, None))(w, jnp.stack([h, h * 2.0]), x),
        ),
    }[transform]  # fmt: skip
    wanted = jax.tree.leaves(both[1](*raws))
    _close(flatten(jax.jit(both[0])(*args))[0], wanted)
    _close(flatten(both[0](*args))[0], wanted)
    text = [len(str(jax.make_jaxpr(both[0])(args[0], args[1], xp.asarray(jnp.ones((n, 3)))))) for n in (3, 8)]
    assert abs(text[0] - text[1]) < 50, "the loop is unrolled"


@pytest.mark.usefixtures("x64")
def test_compiled_on_jax() -> None:
    _, jnp = _with_jax()
    found = []
    for function in (xp.compile(_pair("python")[0]), _pair("python")[1]):
        leaves = [xp.asarray(jnp.asarray(a.numpy())).requires_grad_() for a in _arguments("numpy")]
        value = function(*leaves)
        first = xp.autograd.grad(value, leaves, create_graph=True)
        found.append([value, *first, *xp.autograd.grad(xp.sum(first[0] * first[0]), leaves)])
    _close(*found)


@pytest.mark.usefixtures("x64")
def test_traced_while_loop_and_cond_agree_with_lax() -> None:
    jax, jnp = _with_jax()
    many = jnp.asarray([0.01, 1.0, 2.0, 900.0])

    def root(a: Any) -> Any:
        return jax.lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-5, lambda x: 0.5 * (x + a / x), a)

    _close(jax.jit(_root)(xp.asarray(many[2])), root(many[2]))
    _close(jax.jit(func.vmap(_root))(xp.asarray(many)), jax.vmap(root)(many))
    forward = jax.jit(lambda a: func.jvp(_root, (a,), (a,)))(xp.asarray(many[2]))
    _close(forward, jax.jvp(root, (many[2],), (many[2],)))
    with pytest.raises(RuntimeError, match="reverse mode cannot differentiate a `while_loop`"):
        jax.jit(func.grad(_root))(xp.asarray(many[2]))
    bound = jax.jit(lambda n, x: func.fori_loop(0, n, lambda i, v: v * x + i, 1.0))
    _close(bound(xp.asarray(jnp.asarray(4)), xp.asarray(many[2])), jax.lax.fori_loop(0, 4, lambda i, v: v * 2.0 + i, 1.0))

    def bent(x: Any, w: Any) -> Any:
        return jax.lax.cond(jnp.sum(x) > 0.0, lambda x: jnp.sum(x * x * w), lambda x: jnp.sum(jnp.sin(x)), x)

    def mine(x: Any, w: Any) -> Any:
        return func.cond(xp.sum(x) > 0.0, lambda x: xp.sum(x * x * w), lambda x: xp.sum(xp.sin(x)), x)

    w = jnp.asarray([2.0, 3.0])
    for x in (jnp.asarray([1.0, 0.5]), jnp.asarray([-1.0, 0.5])):
        args = (xp.asarray(x), xp.asarray(w))
        for ours, theirs in ((func.grad, jax.grad), (func.hessian, jax.hessian)):
            _close(flatten(jax.jit(ours(mine, argnums=(0, 1)))(*args))[0], jax.tree.leaves(theirs(bent, argnums=(0, 1))(x, w)))
        _close(jax.jit(lambda *a: func.jvp(mine, a, a))(*args), jax.jvp(bent, (x, w), (x, w)))
    assert "cond[" in str(jax.make_jaxpr(func.grad(mine))(*args))


@pytest.mark.usefixtures("x64")
def test_both_branches_of_steps_have_gradients_in_all_transforms_of_jax() -> None:
    """`jax.vmap` and `jax.grad` without `jax.jit` know the slices of a constant, but which branch a later step takes is not known."""
    jax, jnp = _with_jax()
    rows = jnp.asarray([0.5, 0.2, 0.4])

    def mine(x: Any) -> Any:
        step = lambda c, a: (func.cond(a > 0.25, lambda c: xp.sin(c) * a, lambda c: c * x, c), c * a)  # noqa: E731
        carry, rest = func.scan(step, x, xp.asarray(rows))
        return xp.sum(carry) + xp.sum(rest**2)

    def theirs(x: Any) -> Any:
        step = lambda c, a: (jax.lax.cond(a > 0.25, lambda c: jnp.sin(c) * a, lambda c: c * x, c), c * a)  # noqa: E731
        carry, rest = jax.lax.scan(step, x, rows)
        return jnp.sum(carry) + jnp.sum(rest**2)

    points = jnp.asarray([[0.3, -0.7], [0.2, 0.9]])
    _close(jax.vmap(func.grad(mine))(xp.asarray(points)), jax.vmap(jax.grad(theirs))(points))
    _close(jax.vmap(func.hessian(mine))(xp.asarray(points)), jax.vmap(jax.hessian(theirs))(points))
    turned = jax.grad(lambda x: xp.sum(func.grad(mine)(x) ** 2).array)(xp.asarray(points[0]))
    _close(turned, jax.grad(lambda x: jnp.sum(jax.grad(theirs)(x) ** 2))(points[0]))
    _close(
        jax.jvp(func.grad(mine), (xp.asarray(points[0]),), (xp.asarray(points[1]),)),
        jax.jvp(jax.grad(theirs), (points[0],), (points[1],)),
    )


# -- errors -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: func.scan(3, x, x), TypeError, "scan"),
    (lambda x: func.scan(lambda c, v: c, x, x), TypeError, r"scan: `f` must return a pair \(carry, y\)"),
    (lambda x: func.scan(lambda c, v: ((c, c), v), x, x), TypeError, r"a carry of the structure of `init`: that is \*, but"),
    (lambda x: func.scan(lambda c, v: (None, v), x, x), TypeError, "but it returned None"),
    (lambda x: func.scan(lambda c, v: ({"b": c["a"]}, v), {"a": x}, x), TypeError, r"that is dict\('a': \*\), but it returned dict\('b'"),
    (lambda x: func.scan(lambda c, v: (c[0], v), x, x), TypeError, r"leaf 0 of \* is float64\[3\] in `init`, and `f` returned float64\[\]"),
    (lambda x: func.scan(lambda c, v: (xp.astype(c, "float32"), v), x, x), TypeError, r"float64\[3\] in `init`, .* returned float32\[3\]"),
    (lambda x: func.scan(lambda c, v: (c, v), "text", x), TypeError, "`init` must consist of Tensors, arrays and numbers"),
    (lambda x: func.scan(lambda c, v: (c, "text"), x, x), TypeError, "the results of `f` must consist of Tensors"),
    (lambda x: func.scan(lambda c, v: (c, v), x, "text"), TypeError, "`xs` must consist of Tensors"),
    (lambda x: func.scan(lambda c, v: (c, v), x), ValueError, "give `xs`, or the number of steps as `length`"),
    (lambda x: func.scan(lambda c, v: (c, v), x, x[0]), ValueError, "a leaf is 0-d"),
    (lambda x: func.scan(lambda c, v: (c, v), x, x, 2), ValueError, r"and length=2, but have \[3\]"),
    (lambda x: func.scan(lambda c, v: (c, v), x, (x, x[:2])), ValueError, r"the same length along their first axis, but have \[3, 2\]"),
    (lambda x: func.scan(lambda c, v: (c, v), x, length=-1), (TypeError, ValueError), "length"),
    (lambda x: func.scan(lambda c, v: (c, v), x, x, reverse=None), TypeError, "reverse"),
    (lambda x: func.fori_loop(0, 2.0, lambda i, v: v, x), TypeError, "`upper` must be an int or a 0-d Tensor of .*, but is float"),
    (lambda x: func.fori_loop(x, 2, lambda i, v: v, x), TypeError, r"`lower` must be .*, but is a Tensor float64\[3\]"),
    (lambda x: func.fori_loop(0, 2, lambda i, v: v[:1], x), TypeError, r"in `init_val`, and `body_fun` returned float64\[1\]"),
    (lambda x: func.fori_loop(0, 2, None, x), TypeError, "body_fun"),
    (lambda x: func.while_loop(lambda v: v > 0, lambda v: v, x), TypeError, r"`cond_fun` must be a boolean scalar, .* bool\[3\]"),
    (lambda x: func.while_loop(lambda v: 1, lambda v: v, x), TypeError, "must be a boolean scalar, but is int 1"),
    (lambda x: func.while_loop(lambda v: True, lambda v: v[:2], x), TypeError, r"`body_fun` returned float64\[2\]"),
    (lambda x: func.cond(x > 0, lambda: x, lambda: x), TypeError, r"`pred` must be a boolean scalar, but is a Tensor bool\[3\]"),
    (lambda x: func.cond("yes", lambda: x, lambda: x), TypeError, "`pred` must be a boolean scalar, but is str"),
    (lambda x: func.vmap(lambda v: func.cond(v > 0, lambda: (v,), lambda: v))(x), TypeError, r"returned tuple\(\*\) and `false_fun`"),
    (lambda x: func.vmap(lambda v: func.cond(v > 0, lambda: v, lambda: x))(x), TypeError, r"leaf 0 is float64\[\] from `true_fun`"),
])  # fmt: skip
def test_errors_say_what_to_do(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(xp.asarray([1.0, 2.0, 3.0], dtype="float64", device="numpy"))


# -- memory -----------------------------------------------------------------------------------------------------------------------


def test_a_loop_leaves_no_garbage() -> None:
    gc.collect()
    gc.disable()
    try:
        x = xp.tensor([0.5, 1.0, 2.0], requires_grad=True)
        out, ys = func.scan(lambda c, v: (c * v, c + v), x[0], x, checkpoint=True)
        kept = weakref.ref(out.grad_fn)
        assert kept() is not None
        del out, ys
        assert kept() is None
    finally:
        gc.enable()


def test_writes_are_noticed_if_only_carries_are_saved() -> None:
    xs = xp.asarray([0.5, 1.0, 2.0], device="numpy")
    w = xp.tensor(2.0, requires_grad=True, device="numpy")
    out, _ = func.scan(lambda c, v: (c * v * w, None), xp.ones((), device="numpy"), xs, checkpoint=True)
    xs[0] = 9.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()

    def writing(c: Any, v: Any) -> Any:
        c += v
        return c, None

    with pytest.raises(RuntimeError, match=r"(?i)in-?place"):
        func.scan(writing, xp.ones(2, device="numpy"), xp.ones((3, 2), device="numpy"), checkpoint=True)


def _writes_to_carry(loop: Any, x: Any) -> Any:
    kept = x * 1

    def step(c: Any) -> Any:
        with xp.no_grad():
            c *= 2
        return c

    return kept, loop(step, kept)


def _writes_to_closure(loop: Any, x: Any) -> Any:
    kept = [x * 1]  # in a container

    def step(c: Any) -> Any:
        with xp.no_grad():
            kept[0][0] += 1
        return c + kept[0]

    return kept[0], loop(step, x)


def _writes_to_view(loop: Any, x: Any) -> Any:
    kept = x * 1
    part = kept[1:]

    def step(c: Any) -> Any:
        with xp.no_grad():
            part[...] = 7
        return c + kept

    return kept, loop(step, x)


_WRITTEN_LOOPS: dict[str, Any] = {
    "scan": lambda step, x: func.scan(lambda c, _: (step(c), None), x, length=3)[0],
    "scan of slices": lambda step, x: func.scan(lambda c, v: (c + step(v), None), x * 0, xp.stack([x, x]))[0],
    "no steps": lambda step, x: func.scan(lambda c, _: (step(c), None), x, length=0)[0],
    "checkpoint": lambda step, x: func.scan(lambda c, _: (step(c), None), x, length=3, checkpoint=True)[0],
    "fori_loop": lambda step, x: func.fori_loop(0, 3, lambda _, c: step(c), x),
    "fori_loop to a Tensor": lambda step, x: func.fori_loop(0, xp.astype(xp.abs(x[0]), xp.int64), lambda _, c: step(c), x),
    "while_loop": lambda step, x: func.while_loop(lambda c: xp.sum(c) < 40, step, x),
    "cond": lambda step, x: func.cond(xp.sum(x) > 7, step, lambda c: c + 0, x),
    "cond without operands": lambda step, x: func.cond(xp.sum(x) > 7, lambda: step(x * 1), lambda: x * 1),
}


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("function", [_writes_to_carry, _writes_to_closure, _writes_to_view])
@pytest.mark.parametrize("name", list(_WRITTEN_LOOPS))
def test_writes_take_effect_as_in_python_or_are_refused(name: str, function: Any, dtype: str) -> None:
    loop = _WRITTEN_LOOPS[name]
    rows = np.array([[1, 2, 3], [4, 5, 6]], dtype)

    def outcome(run: Callable[[], Any]) -> list[Any] | None:
        try:
            return [x.tolist() for x in run()]
        except RuntimeError as exc:
            if "in place" not in str(exc) and "in-place" not in str(exc):
                raise
            return None

    expected = [outcome(lambda row=row: function(loop, xp.asarray(row))) for row in rows]
    compiled = xp.compile(lambda x: function(loop, x))
    for row, wanted in zip(rows, expected):
        assert outcome(lambda row=row: compiled(xp.asarray(row))) in (wanted, None)
    found = outcome(lambda: func.vmap(lambda x: function(loop, x))(xp.asarray(rows)))
    assert found is None or [list(r) for r in zip(*found)] == expected


#: Functions of an array that return operands of a loop, and what the loop or branch returns as it is or a view of it.
_KEPT: dict[str, Any] = {
    "scan": lambda y: (y, *func.scan(lambda c, v: ((c[0] + v, c[1]), None), (y[0], y), y)[0]),
    "scan of slices": lambda y: (y, func.scan(lambda c, v: (v, None), y[0], xp.stack([y, y * 2])[:, 0])[0]),
    "two": lambda y: func.scan(lambda c, v: ((c[0] + 1, c[0]), None), (y, y), y)[0],
    "one twice": lambda y: func.scan(lambda c, v: ((c[0] * 1, c[0][::-1]), None), (y, y), length=1)[0],
    "no steps": lambda y: (y, func.scan(lambda c, _: (c + 1, None), y, length=0)[0]),
    "while_loop": lambda y: (y, func.while_loop(lambda c: xp.sum(c) < 7, lambda c: c * 2, y)),
    "view": lambda y: (y, func.while_loop(lambda c: c[0, 0] > 3, lambda c: c - 1, y[None].T)),
    "cond": lambda y: (y, func.cond(xp.sum(y) > 7, lambda y: y, lambda y: y * 2, y)),
    "cond of a closure": lambda y: (y, func.cond(xp.sum(y) > 7, lambda: {"a": y[1:]}, lambda: {"a": y[:-1]})["a"]),
}


@pytest.mark.parametrize("name", list(_KEPT))
def test_results_share_no_memory_with_operands(name: str) -> None:
    def function(x: Any) -> tuple[Any, ...]:
        found = _KEPT[name](x * 1.0)
        for k, out in enumerate(found):
            out[...] = xp.sum(x) + k
        return tuple(found)

    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    compiled = xp.compile(function)
    for row in rows:
        expected = [np.full(out.shape, row.sum() + k).tolist() for k, out in enumerate(_KEPT[name](xp.asarray(row)))]
        for run in (function, compiled, lambda x: [out[0] for out in func.vmap(function)(x[None])]):
            assert [out.tolist() for out in run(xp.asarray(row))] == expected


def test_a_step_runs_once_if_the_carry_begins_with_a_number() -> None:
    calls = xp.zeros(2)

    def step(c: Any, v: Any) -> Any:
        calls[0] += 1
        return c + v, None

    def body(c: Any) -> Any:
        calls[1] += 1
        return c + 1

    assert func.scan(step, 0.0, xp.asarray([1.0, 2.0]))[0] == 3
    assert func.while_loop(lambda c: c < 3, body, 0.0) == 3
    assert calls.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="writes in place"):  # the first step would run twice: the carry turns out to be real
        func.scan(step, 0, xp.asarray([1.0, 2.0]))


@pytest.mark.filterwarnings("ignore")
def test_anomaly_mode_checks_loops() -> None:
    x = xp.tensor([0.0, 1.0], requires_grad=True)
    with xp.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        func.scan(lambda c, v: (c + xp.sqrt(v * 0.0) * 0.0, None), 0.0, x, checkpoint=True)[0].backward()
