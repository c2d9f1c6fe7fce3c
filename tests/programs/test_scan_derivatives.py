"""Law: derivatives of every order and mode go through compiled scans and branches, as loops that do not grow with the number of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from programs.test_scans import _count
from programs.test_while_derivatives import (
    ALL,
    EMITTERS,
    FIRST,
    POINT,
    SAMPLE,
    SECOND,
    WEIGHTS,
    _close,
    _compiled,
    _product,
)
from support import DEVICES
from support.central_differences import values
from xpgrad import func
from xpgrad.utils.checkpoint import checkpoint

pytestmark = pytest.mark.slow(one_in=3)


def _rows(x: Any, count: int) -> Any:
    return xp.asarray(np.linspace(-1.0, 1.0, 2 * count).reshape(count, 2), device=x.device)


def _recurrence(x: Any, count: int = 4) -> Any:
    """Depend on the argument by the carry, the slices, and what the steps close over."""
    w = xp.asarray(WEIGHTS, device=x.device) * x

    def step(c: Any, y: Any) -> Any:
        c = xp.tanh(w @ c + y * x[0])
        return c, xp.sum(c * c)

    last, ys = func.scan(step, x, _rows(x, count) * x[1])
    return xp.sum(last * ys[-1]) + xp.sum(ys)


def _constant_rows(x: Any, count: int = 4) -> Any:
    """Have slices without a gradient, and an integer in the carry and in the results."""

    def step(c: Any, y: Any) -> Any:
        v = xp.sin(c["v"] * y + x) + c["n"]
        return {"n": c["n"] + 1, "v": v}, (c["n"], v[0] * y)

    last, (counts, ys) = func.scan(step, {"n": 0, "v": x * x}, _rows(x, count))
    return xp.sum(last["v"] * xp.astype(xp.sum(counts), x.dtype)) + xp.sum(ys)


def _closed_over(x: Any, count: int = 4) -> Any:
    """Start at a constant, without slices."""
    w = xp.asarray(WEIGHTS, device=x.device) * x
    start = xp.ones(2, dtype=x.dtype, device=x.device)
    return xp.sum(func.scan(lambda v, _: (xp.sin(w @ v) + v * x[0] + 0.5, None), start, length=count)[0] ** 2)


def _backward_and_forward(x: Any, count: int = 4) -> Any:
    """Read the results of a scan in another one, which goes the other way."""
    _, ys = func.scan(lambda c, y: (xp.cos(c * y) + x[1], c), x, _rows(x, count), reverse=True)
    last, zs = func.scan(lambda c, y: (c * y + xp.sin(x), c * c), x[0] * x, ys)
    return xp.sum(last) + xp.sum(zs * ys)


def _counted(x: Any, count: int = 4) -> Any:
    return xp.sum(func.fori_loop(1, count, lambda i, v: v * x[1] + xp.cos(i * v), x))


def _nested(x: Any, count: int = 4) -> Any:
    def step(c: Any, y: Any) -> Any:
        c, _ = func.scan(lambda d, z: (xp.sin(d * z + x[0]), None), c, y)
        return c * x[1], c

    last, ys = func.scan(step, x[0] * x[1], _rows(x, count) * x)
    return last * xp.sum(ys)


def _branching(x: Any, count: int = 4) -> Any:
    """Have a branch in the steps, whose other side has no finite derivative."""

    def step(c: Any, y: Any) -> Any:
        return func.cond(xp.sum(c * y) > 0.0, lambda c: xp.sin(c) * x[0] + y, lambda c: c * c + xp.sqrt(xp.abs(xp.sum(c * y))), c), None

    return xp.sum(func.scan(step, x, _rows(x, count))[0])


def _in_a_batch(x: Any, count: int = 4) -> Any:
    """Share the slices among the elements of a batch."""
    xs = _rows(x, count) * x[1]
    return xp.sum(func.vmap(lambda y: func.scan(lambda c, z: (xp.sin(c * z[0] + y), c * z[1] * x[0]), y * y, xs)[1])(x * x[0]))


def _two_batches(x: Any, count: int = 4) -> Any:
    """Have slices that depend on the element of the batch."""
    return xp.sum(func.vmap(lambda y: func.scan(lambda c, z: (xp.sin(c * z + y), c), y * y, _rows(x, count)[:, 0] * y)[1])(x) ** 2)


def _with_a_gradient(x: Any, count: int = 4) -> Any:
    """Have steps of gradient descent."""
    slope = func.grad(lambda c: c**4 / 4.0 + c * c * x[1] - c * x[0])
    return func.fori_loop(0, count, lambda _, c: c - 0.3 * slope(c), x[0])


SCANS: dict[str, Any] = {
    "recurrence": _recurrence, "constant rows": _constant_rows, "closed over": _closed_over, "two ways": _backward_and_forward,
    "counted": _counted, "nested": _nested, "branching": _branching, "in a batch": _in_a_batch, "two batches": _two_batches,
    "with a gradient": _with_a_gradient,
}  # fmt: skip


#: What runs on every device and by every emitter.
FEW = ["recurrence", "constant rows", "nested", "branching", "in a batch"]


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize(("device", "name", "derivative"), [
    *((DEVICES[0], name, derivative) for name in SCANS for derivative in ALL),
    *((device, name, derivative) for device in DEVICES[1:] for name in FEW for derivative in SAMPLE),
])  # fmt: skip
def test_derivatives_are_those_of_eager_scans(name: str, device: str, derivative: str) -> None:
    made = ALL[derivative](SCANS[name])
    x = xp.asarray(POINT, device=device)
    _close(xp.compile(made)(x), made(x), 1e-9)


@pytest.mark.slow(one_in=16)
@pytest.mark.parametrize("derivative", SAMPLE)
@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("emitter", EMITTERS[1:])
def test_derivatives_by_every_emitter(name: str, derivative: str, emitter: str) -> None:
    made = ALL[derivative](SCANS[name])
    x = xp.asarray(POINT, device="numpy")
    _close(_compiled(made, emitter)(x), made(x), 1e-9)


@pytest.mark.slow(one_in=11)
@pytest.mark.parametrize("derivative", SECOND)
@pytest.mark.parametrize("name", SCANS)
def test_second_derivatives_are_differences(name: str, derivative: str) -> None:
    """Compare with central differences of compiled gradients."""
    compiled, slope = xp.compile(SECOND[derivative](SCANS[name])), xp.compile(func.grad(SCANS[name]))
    ends = [[values(slope(xp.asarray(POINT + sign * h, device="numpy"))) for sign in (1.0, -1.0)] for h in 1e-6 * np.eye(2)]
    wanted = np.stack([(a - b) / 2e-6 for a, b in ends], axis=-1)
    np.testing.assert_allclose(values(compiled(xp.asarray(POINT, device="numpy"))), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.slow(one_in=17)
@pytest.mark.parametrize(("name", "derivative"), [(n, d) for n in SCANS for d in (ALL if n == "recurrence" else SAMPLE)])
def test_programs_and_texts_do_not_depend_on_the_number_of_steps(name: str, derivative: str) -> None:
    sizes = []
    for count in (10, 1000):
        compiled = xp.compile(ALL[derivative](lambda x, count=count: SCANS[name](x, count)), emitter="numpy")
        x = xp.asarray(POINT, device="numpy")
        sizes.append((_count(compiled.program(x)), len(compiled.source(x))))
    assert sizes[0][0] == sizes[1][0]
    assert abs(sizes[0][1] - sizes[1][1]) < 0.02 * sizes[0][1]  # the numbers have more digits


def test_products_of_long_scans_are_those_of_eager_ones() -> None:
    made = _product(lambda x: _recurrence(x, 1000))
    x = xp.asarray(POINT, device="numpy")
    _close(xp.compile(made)(x), made(x), 1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("derivative", [*FIRST, *SECOND, "third, mixed"])
def test_derivatives_are_pytorchs(derivative: str) -> None:
    torch = pytest.importorskip("torch")
    wrt = {
        "forward": torch.func.jacfwd, "reverse": torch.func.jacrev, "reverse, reverse": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
        "forward, reverse": lambda f: torch.func.jacfwd(torch.func.jacrev(f)),
        "reverse, forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
        "forward, forward": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
        "third, mixed": lambda f: torch.func.jacfwd(torch.func.jacrev(torch.func.jacfwd(f))),
    }[derivative]  # fmt: skip
    rows, weights = torch.tensor(np.linspace(-1.0, 1.0, 20).reshape(10, 2)), torch.tensor(WEIGHTS)

    def same(x: Any) -> Any:
        c, total = x, 0.0
        for y in rows * x[1]:
            c = torch.tanh((weights * x) @ c + y * x[0])
            total = total + (c * c).sum()
        return (c * (c * c).sum()).sum() + total

    found = xp.compile(ALL[derivative](lambda x: _recurrence(x, 10)))(xp.asarray(POINT, device="numpy"))
    np.testing.assert_allclose(values(found), wrt(same)(torch.tensor(POINT)).numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("derivative", ["forward, reverse", "reverse, forward", "products", "third, mixed"])
def test_checkpointed_scans_have_all_derivatives(derivative: str) -> None:
    """Without compiling, a scan that saves only its carries is one node in every mode."""

    def function(x: Any, checkpoint: bool) -> Any:
        w = xp.asarray(WEIGHTS, device=x.device) * x
        last, ys = func.scan(lambda c, y: (xp.tanh(w @ c + y * x[0]), c * c), x, _rows(x, 4) * x[1], checkpoint=checkpoint)
        return xp.sum(last) + xp.sum(ys * ys)

    x = xp.asarray(POINT, device="numpy")
    _close(*(ALL[derivative](lambda x, keep=keep: function(x, keep))(x) for keep in (True, False)), 1e-9)


@pytest.mark.parametrize("derivative", [*SECOND, "products", "third, mixed"])
def test_steps_that_checkpoint_what_they_close_over(derivative: str) -> None:
    """The checkpoint reads its argument from a node outside of the loop, by which forward mode knows its tangent."""

    def function(x: Any, keep: Any) -> Any:
        return func.fori_loop(0, 2, lambda i, c: c + xp.sum(keep(lambda x: xp.sin(x) * x, x)) ** 2, xp.sum(x * x))

    x = xp.asarray(POINT, device="numpy")
    plain = ALL[derivative](lambda x: function(x, lambda f, x: f(x)))
    _close(xp.compile(ALL[derivative](lambda x: function(x, checkpoint)))(x), plain(x), 1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # both functions run once, when they are captured
@pytest.mark.parametrize("derivative", [*SECOND, "products", "products in reverse", "linearized, reverse", "third, mixed"])
def test_branches_run_only_the_function_that_is_chosen(derivative: str) -> None:
    """The derivative of the other one would be nan."""

    def function(x: Any) -> Any:
        return func.cond(x[0] > 0.0, lambda: xp.sum(xp.sin(x * x)), lambda: xp.sum(xp.sqrt(-x) * xp.log(-x)))

    made = ALL[derivative](function)
    compiled = xp.compile(made)
    for sign in (1.0, -1.0):
        x = xp.asarray(sign * POINT, device="numpy")
        _close(compiled(x), made(x), 1e-9)
        assert np.isfinite(values(compiled(x))).all()


#: Derivatives of a sum over elements, with a gradient for each element.
INSIDE: dict[str, Any] = {
    "grad": lambda c: func.grad(lambda y: xp.sum(xp.sin(y) * y))(c),
    "vmap": lambda c: func.vmap(func.grad(lambda y: xp.sin(y) * y))(c),
    "vjp": lambda c: func.vjp(lambda y: xp.sin(y) * y, c)[1](c)[0],
}


@pytest.mark.parametrize("derivative", INSIDE)
@pytest.mark.parametrize("loop", ["scan", "while_loop", "cond"])
def test_derivatives_in_steps_of_loops_inside_of_checkpoints(loop: str, derivative: str) -> None:
    """What a step saves lives no longer than the step: the checkpoint does not compute the whole loop again for it."""
    step = INSIDE[derivative]
    loops: dict[str, Any] = {
        "scan": lambda x: func.scan(lambda c, a: (step(c) * a, None), x, x)[0],
        "while_loop": lambda x: func.while_loop(lambda y: xp.sum(y * y) < 30.0, lambda y: step(y) * y + 1.5 * y, x),
        "cond": lambda x: func.cond(xp.sum(x) > 0.0, lambda: step(x) * x, lambda: x),
    }
    x = xp.asarray(POINT, device="numpy")
    plain, compiled = loops[loop], xp.compile(lambda x: checkpoint(loops[loop], x))
    _close(*(func.hessian(lambda x, f=f: xp.sum(f(x) ** 2))(x) for f in (compiled, plain)), 1e-9)
