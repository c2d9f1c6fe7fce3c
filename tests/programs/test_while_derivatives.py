"""Law: derivatives of every order and mode go through compiled loops whose number of steps depends on the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import DEVICES
from support.central_differences import values
from xpgrad import func
from xpgrad.programs.program import Inner, Passes, Program, Steps

pytestmark = pytest.mark.slow(one_in=3)

EMITTERS = ["numpy", "array-api", "native", "c"]
WEIGHTS = np.asarray([[0.9, -0.4], [0.3, 0.7]])
POINT = np.asarray([1.3, 0.6])


def _newton(x: Any) -> Any:
    """Return the root of a cubic, to which the steps add no more than a tolerance."""
    a = x[0] * x[0] + x[1]
    return func.while_loop(lambda c: xp.abs(c**3 + c - a) > 1e-9, lambda c: c - (c**3 + c - a) / (3.0 * c * c + 1.0), a)


def _series(x: Any) -> Any:
    """Return a geometric series up to its first small term; the carry has an integer."""
    ratio = 0.5 * xp.sin(x[0]) * x[1]

    def step(c: Any) -> Any:
        return {"n": c["n"] + 1, "term": c["term"] * ratio, "total": c["total"] + c["term"] / (c["n"] + 1.0)}

    return func.while_loop(lambda c: xp.abs(c["term"]) > 1e-3, step, {"n": 0, "term": x[1] + 1.0, "total": 0.0})["total"]


def _closed_over(x: Any) -> Any:
    """Start at a constant, so that only what the steps close over depends on the argument."""
    w = xp.asarray(WEIGHTS, device=x.device) * x
    start = xp.ones(2, dtype=x.dtype, device=x.device)
    return xp.sum(func.while_loop(lambda v: xp.sum(v * v) < 30.0, lambda v: xp.sin(w @ v) + v * x[0] + 0.5, start) ** 2)


def _several(x: Any) -> Any:
    """Exchange the variables of the carry, one of which nothing changes."""
    a, b, same = func.while_loop(lambda c: xp.sum(c[0] * c[0]) < 60.0, lambda c: (c[1] * c[2] + c[0], c[0], c[2]), (x, x * x[1], x + 1.0))
    return xp.sum(a * b + same * a)


def _counted(x: Any) -> Any:
    count = xp.astype(3.0 * x[0], "int64")
    return func.fori_loop(1, count, lambda i, v: v * x[1] + i * xp.cos(v), x[0])


def _no_step(x: Any) -> Any:
    return xp.sum(func.while_loop(lambda v: xp.sum(v * v) < 0.0, lambda v: v * v, x) ** 3) * x[0]


def _in_loops(x: Any) -> Any:
    """Have a loop whose steps run a loop, a scan and a branch."""

    def step(c: Any) -> Any:
        c = func.while_loop(lambda u: u < 2.0 * c, lambda u: u * x[0] + 0.1, c)
        c, _ = func.scan(lambda u, _: (u + 0.1 * u * x[1], None), c, length=2)
        return func.cond(c > 4.0, lambda: c * x[0], lambda: c * c * x[1])

    return func.while_loop(lambda c: c < 15.0, step, x[0] * x[0] + 0.5)


def _in_a_scan(x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return func.while_loop(lambda u: u < 3.0 + y, lambda u: u * u * y + x[0], c), None

    return func.scan(step, x[1], x)[0]


def _in_a_batch(x: Any) -> Any:
    return xp.sum(func.vmap(lambda y: func.while_loop(lambda c: c < 5.0 + 4.0 * y, lambda c: c * c * x[0] + y, y))(x) ** 2)


def _with_a_gradient(x: Any) -> Any:
    """Have a gradient in the steps, as a solver has that minimises a function."""
    slope = func.grad(lambda c: c**4 / 4.0 + c * c * x[1] - c * x[0])
    return func.while_loop(lambda c: xp.abs(slope(c)) > 1e-4, lambda c: c - 0.3 * slope(c), x[0])


LOOPS: dict[str, Any] = {
    "newton": _newton, "series": _series, "closed over": _closed_over, "several": _several, "counted": _counted, "no step": _no_step,
    "in loops": _in_loops, "in a scan": _in_a_scan, "in a batch": _in_a_batch, "with a gradient": _with_a_gradient,
}  # fmt: skip


def _product(f: Any) -> Any:
    """Return a function for the product of the Hessian and a vector, by forward over reverse mode."""
    return lambda x: func.jvp(func.grad(f), (x,), (xp.cos(x),))[1]


def _product_in_reverse(f: Any) -> Any:
    """Return a function for the same product by reverse over forward mode."""
    return lambda x: func.grad(lambda y: func.jvp(f, (y,), (xp.cos(x),))[1])(x)


def _pulled_tangents(f: Any) -> Any:
    """Return a function that pulls back the value and a tangent, along a cotangent that has a tangent."""

    def pulled(x: Any) -> Any:
        _, pull = func.vjp(lambda y: func.jvp(f, (y,), (y * y,)), x)
        return func.jvp(lambda g: pull((g, g * g))[0], (x[0],), (x[1],))

    return pulled


def _graphs(f: Any) -> Any:
    """Return a function for derivatives by `autograd.grad` with `create_graph`."""

    def third(x: Any) -> Any:
        y = x.detach().requires_grad_()
        with xp.enable_grad():
            (slope,) = xp.autograd.grad(f(y), y, create_graph=True)
            (second,) = xp.autograd.grad(xp.sum(slope * slope), y, create_graph=True)
        return xp.autograd.grad(xp.sum(second), y)[0]

    return third


FIRST: dict[str, Any] = {
    "forward": func.jacfwd,
    "reverse": func.grad,
}
SECOND: dict[str, Any] = {
    "reverse, reverse": func.hessian,
    "forward, reverse": lambda f: func.jacfwd(func.grad(f)),
    "reverse, forward": lambda f: func.jacrev(func.jacfwd(f)),
    "forward, forward": lambda f: func.jacfwd(func.jacfwd(f)),
}
FURTHER: dict[str, Any] = {
    "linearized": lambda f: lambda x: func.linearize(f, x)[1](xp.cos(x)),
    "linearized, reverse": lambda f: lambda x: func.linearize(func.grad(f), x)[1](xp.cos(x)),
    "products": _product,
    "products in reverse": _product_in_reverse,
    "pulled tangents": _pulled_tangents,
    "with graphs": _graphs,
    "of a batch": lambda f: lambda x: func.vmap(func.hessian(f))(xp.stack([x, x + 0.1])),
    "of a batch, forward, reverse": lambda f: lambda x: func.vmap(func.jacfwd(func.grad(f)))(xp.stack([x, x + 0.1])),
    "third, reverse": lambda f: func.jacrev(func.hessian(f)),
    "third, mixed": lambda f: func.jacfwd(func.jacrev(func.jacfwd(f))),
    "third, mixed differently": lambda f: func.jacrev(func.jacfwd(func.grad(f))),
}


ALL: dict[str, Any] = {**FIRST, **SECOND, **FURTHER}
SAMPLE = ["reverse, reverse", "forward, reverse", "reverse, forward"]


def _compiled(function: Any, emitter: str | None) -> Any:
    """Return a compiled function; skip the test if the emitter needs what is not installed."""
    if emitter in ("native", "c"):
        try:
            xp.compile(lambda x: x * 2.0, emitter=emitter)(xp.ones(3, device="numpy"))
        except ImportError as exc:
            pytest.skip(str(exc))
    return xp.compile(function, emitter=emitter)


def _arrays(out: Any) -> list[np.ndarray]:
    return [values(x) for x in (out if isinstance(out, tuple) else (out,))]


def _close(found: Any, wanted: Any, tolerance: float) -> None:
    for a, b in zip(_arrays(found), _arrays(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.slow(one_in=40)
@pytest.mark.parametrize(("device", "derivative"), [(d, name) for d in DEVICES for name in (ALL if d == DEVICES[0] else SAMPLE)])
@pytest.mark.parametrize("loop", LOOPS)
def test_derivatives_are_those_of_eager_loops(loop: str, device: str, derivative: str) -> None:
    made = ALL[derivative](LOOPS[loop])
    x = xp.asarray(POINT, device=device)
    if xp.registry.backend_for(xp.Device(device).table).capabilities.jit and derivative not in ("forward", "forward, forward"):
        pytest.skip("the library's own loop has no reverse mode")
    _close(xp.compile(made)(x), made(x), 1e-9)


@pytest.mark.slow(one_in=32)
@pytest.mark.parametrize("derivative", SAMPLE)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("emitter", EMITTERS[1:])
def test_derivatives_by_every_emitter(loop: str, derivative: str, emitter: str) -> None:
    made = ALL[derivative](LOOPS[loop])
    x = xp.asarray(POINT, device="numpy")
    _close(_compiled(made, emitter)(x), made(x), 1e-9)


@pytest.mark.slow(one_in=21)
@pytest.mark.parametrize("derivative", [*FIRST, *SECOND])
@pytest.mark.parametrize("loop", LOOPS)
def test_derivatives_are_differences(loop: str, derivative: str) -> None:
    """Compare with central differences of values, or of compiled gradients."""
    function = LOOPS[loop]
    compiled = xp.compile({**FIRST, **SECOND}[derivative](function))
    below = xp.compile(function if derivative in FIRST else func.grad(function))
    steps = 1e-6 * np.eye(2)
    ends = [[values(below(xp.asarray(POINT + sign * h, device="numpy"))) for sign in (1.0, -1.0)] for h in steps]
    wanted = np.stack([(a - b) / 2e-6 for a, b in ends], axis=-1)
    np.testing.assert_allclose(values(compiled(xp.asarray(POINT, device="numpy"))), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.slow(one_in=12)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("emitter", EMITTERS)
def test_compiled_derivatives_can_be_differentiated(loop: str, emitter: str) -> None:
    """The gradient of what a compiled function computes from second derivatives is a third derivative."""

    def function(x: Any) -> Any:
        return xp.sum(_product(LOOPS[loop])(x) * xp.sin(x))

    found = []
    for f in (_compiled(function, emitter), function):
        x = xp.asarray(POINT, device="numpy").requires_grad_()
        f(x).backward()
        found.append(x.grad)
    _close(*found, 1e-9)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    count=st.integers(0, 6), start=st.integers(-2, 3), second=st.sampled_from(list(SECOND)), emitter=st.sampled_from(["numpy", "array-api"])
)
def test_any_number_of_steps(count: int, start: int, second: str, emitter: str) -> None:
    """One program serves all numbers of steps, none included."""

    def function(x: Any, n: Any) -> Any:
        total = func.fori_loop(start, n, lambda i, v: xp.sin(v) * x[1] + i * x[0], x[0] * x[1])
        return func.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x[1] + c[2], c[1] * total), (n - n, x[0], x[1]))[1]

    def made(x: Any, n: Any) -> Any:
        return SECOND[second](lambda x: function(x, n))(x)

    x = xp.asarray(POINT, device="numpy")
    compiled = xp.compile(made, emitter=emitter)
    for n in (count, 3):
        number = xp.asarray(n, device="numpy")
        _close(compiled(x, number), made(x, number), 1e-9)


def test_second_derivatives_are_passes_over_the_steps() -> None:
    program = xp.compile(func.grad(lambda x: func.grad(_root)(x) ** 2)).program(xp.tensor(2.0))
    loops = [o.options["inner"] for o in program.operations if o.name == "unwind"]
    assert [inner.reverse for inner in loops] == [(True,), (True, False, True)]


def _root(a: Any) -> Any:
    return func.while_loop(lambda x: xp.abs(x * x - a) > 1e-4, lambda x: 0.5 * (x + a / x), a)


def test_loops_of_a_library_have_forward_mode_only() -> None:
    pytest.importorskip("jax")
    x = xp.tensor(2.0, device="jax")
    assert abs(xp.compile(func.jacfwd(func.jacfwd(_root)))(x).item() + 0.25 * 2.0**-1.5) < 1e-3
    with pytest.raises(RuntimeError, match="that a library compiles with a number of steps that is not known"):
        xp.compile(func.grad(_root))(x)


def test_tangents_that_have_ended_are_those_of_the_loop() -> None:
    """A pass through a loop that was run with tangents runs its steps again, after others were computed."""

    def function(x: Any) -> Any:
        _, pull = func.vjp(lambda y: func.jvp(lambda z: _newton(z) * z[0], (y,), (y[0] * y,))[1], x)
        other = func.jvp(_newton, (x * x,), (x,))[1]
        return func.jvp(lambda g: pull(g * other)[0], (x[1],), (x[0],))[1]

    x = xp.asarray(POINT, device="numpy")
    _close(xp.compile(function)(x), function(x), 1e-9)


def test_loops_with_other_counts_or_directions_are_not_alike() -> None:
    program = Program([], {}, [], [])
    passes = [Passes((program,) * 4, counts, reverse) for counts in ((1, 2), (2, 1)) for reverse in ((True, False), (False, True))]
    steps = [Steps(program, count, length, reverse) for count in (1, 2) for length in (3, 4) for reverse in (True, False)]
    every: list[Inner] = [*passes, *steps, Inner((program,)), Inner((program,) * 4)]
    for a in every:
        assert [b for b in every if a.is_like(b, lambda x, y: x is y)] == [a]
