"""Law: elementwise functions have the gradients of their definitions, to the second order, on every backend and in every dtype.

Expected values come from float64 central differences over drawn shapes that broadcast, and from PyTorch, also at the points where
differences do not exist.
"""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import xpgrad as xp
from support.central_differences import check, loss, numbers, values
from xpgrad._rows.namespace import RULES
from xpgrad_conformance import functions
from xpgrad_conformance.functions import signed

grad = xp.autograd.grad


#: Each function with the domains of its operands, and whether it takes complex ones, according to its row.
FUNCTIONS = functions.elementwise_domains()
BINARY = [name for name, (domains, _) in FUNCTIONS.items() if len(domains) == 2]
COMPLEX = [name for name, (_, is_complex) in FUNCTIONS.items() if is_complex]

#: Functions whose first operand is not differentiable, or with unusual arguments.
SPECIAL: dict[str, Callable[..., Any]] = {
    "real": lambda x: xp.real(x * (0.5 - 1.1j)),
    "imag": lambda x: xp.imag(x * (0.5 - 1.1j)),
    "where": lambda x, y: xp.where(xp.asarray(numbers(y.shape) > 0.1, device=y.device), x, y),
    "where with a scalar": lambda x: xp.where(xp.asarray(numbers(x.shape) > 0.1, device=x.device), x, 0.3) * x,
    "clip between scalars": lambda x: xp.clip(x, -0.5, 0.7) * x,
    "clip from below": lambda x: xp.clip(x, 0.2) * x,
    "clip from above": lambda x: xp.clip(x, max=0.2) * x,
    "clip between Tensors": lambda x, lo: xp.clip(x + lo * 0, xp.sum(lo) * 0 - 0.4, xp.mean(lo) + 0.5 * xp.mean(lo * lo)),
}


@st.composite
def operands(draw: st.DrawFn, count: int, low: int = 1) -> list[np.ndarray]:
    """Draw arrays of distinct numbers in (0, 1) whose shapes broadcast."""
    shapes = draw(mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=low, max_side=3)).input_shapes
    sizes = [int(np.prod(s)) for s in shapes]
    order = np.random.default_rng(draw(st.integers(0, 999))).permutation(sum(sizes))
    u = (order + 0.5) / max(len(order), 1)
    ends = [0, *itertools.accumulate(sizes)]
    return [u[a:b].reshape(s) for a, b, s in zip(ends, ends[1:], shapes)]


def map_to_domains(name: str, us: list[np.ndarray], dtype: Any = np.float64) -> list[np.ndarray]:
    """Return operands in the domains of a function; complex ones lie off all branch cuts."""
    points = [domain(u) for domain, u in zip(FUNCTIONS[name][0], us)]
    if np.dtype(dtype).kind == "c":
        points = [p + 1j * (0.31 + 0.4 * np.cos(7 * u)) for p, u in zip(points, us)]
    return [p.astype(dtype) for p in points]


def test_every_elementwise_rule_is_in_the_tables() -> None:
    declared = {name for name, f in RULES.items() if f.__module__ == "xpgrad.rules.elementwise"}
    assert declared - set(FUNCTIONS) == {"real", "imag", "where", "clip"}
    assert set(FUNCTIONS) <= declared
    assert set(BINARY) < set(FUNCTIONS)


@pytest.mark.slow(one_in=11)
@pytest.mark.parametrize("name", FUNCTIONS)
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=10)
def test_real_gradients_to_second_order(name: str, xpgrad_device: str, data: st.DataObject) -> None:
    us = data.draw(operands(len(FUNCTIONS[name][0])))
    check(getattr(xp, name), map_to_domains(name, us), xpgrad_device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_numbers_wherever_first_ones_are(name: str, dtype: str) -> None:
    """A formula must not overflow on its way to a derivative that does not: `logaddexp` of 0 and 100 had a second derivative of nan."""
    far = np.asarray([sign * x for x in (1e-4, 0.5, 1.0, 5.0, 15.0, 30.0, 90.0, 800.0, 1e4) for sign in (1, -1)], dtype)
    points = np.meshgrid(*[far] * len(FUNCTIONS[name][0]))
    xs = tuple(xp.asarray(p).requires_grad_() for p in points)
    with np.errstate(all="ignore"):
        y = getattr(xp, name)(*xs)
        firsts = grad(xp.sum(y), xs, create_graph=True)
        slopes = [xp.sum(g) for g in firsts if g.requires_grad]  # not of linear functions
        seconds = grad(slopes, xs, allow_unused=True, materialize_grads=True) if slopes else []
    known = np.isfinite(y.detach().numpy())
    for g in firsts:
        known &= np.isfinite(g.detach().numpy())
    assert known.any()
    for h in seconds:
        wrong = known & np.isnan(h.numpy())
        assert not wrong.any(), [p[wrong] for p in points]


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("name", COMPLEX)
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=8)
def test_complex_gradients_to_second_order(name: str, xpgrad_device: str, data: st.DataObject) -> None:
    us = data.draw(operands(len(FUNCTIONS[name][0])))
    points = map_to_domains(name, us, np.complex128)
    if len(points) == 2 and data.draw(st.booleans()):  # a real operand beside a complex one gets a real gradient
        k = data.draw(st.integers(0, 1))
        points[k] = map_to_domains(name, us)[k]
    check(getattr(xp, name), points, xpgrad_device)


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "log", "sqrt"])
def test_derivatives_on_branch_cuts_are_those_on_the_side_of_the_value(name: str, xpgrad_device: str) -> None:
    """The sign of a zero part says which side it is; no library keeps it in all sums and products."""
    step, ours, points, near = 1e-6, getattr(xp, name), [], []
    for a, zero in itertools.product((-2.0, -0.5, 0.5, 2.0), (-0.0, 0.0)):
        for place, direction in ((lambda t, zero=zero: complex(t, zero), 1), (lambda t, zero=zero: complex(zero, t), 1j)):
            points.append(place(a))
            near.append((place(a + step), place(a - step), 2 * step * direction))
    z, above, below = (xp.asarray(np.array(p), device=xpgrad_device) for p in (points, [p for p, _, _ in near], [p for _, p, _ in near]))
    if z.dtype is not xp.complex128:
        pytest.skip("differences need two precisions")
    expected = (values(ours(above)) - values(ours(below))) / [d for _, _, d in near]
    tangent = xp.func.jvp(ours, (z,), (xp.ones_like(z),))[1]
    np.testing.assert_allclose(values(tangent), expected, rtol=1e-7)
    gradient = xp.func.grad(lambda x: xp.sum(xp.real(ours(x))))(z)
    np.testing.assert_allclose(values(gradient), np.conj(expected), rtol=1e-7)


@pytest.mark.parametrize("name", SPECIAL)
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=10)
def test_special_arguments_to_second_order(name: str, xpgrad_device: str, data: st.DataObject) -> None:
    function = SPECIAL[name]
    us = data.draw(operands(function.__code__.co_argcount))
    points = [signed(u) for u in us]
    if name in ("real", "imag"):
        points = [p + 1j * u for p, u in zip(points, us)]
    check(function, points, xpgrad_device)


@pytest.mark.parametrize("name", BINARY)
def test_scalar_operands_to_second_order(name: str, xpgrad_device: str) -> None:
    function = getattr(xp, name)
    x = signed(np.asarray([0.12, 0.35, 0.56, 0.91]))
    for scalar in (0.7, 2, 3):
        check(lambda a, s=scalar: function(a, s), [np.abs(x) if name == "pow" else x], xpgrad_device)
        check(lambda a, s=scalar: function(s, a), [x], xpgrad_device)
    if FUNCTIONS[name][1]:
        check(lambda a: function(a, 0.7 - 0.4j), [x + 0.3j], xpgrad_device)
        check(lambda a: function(0.7 - 0.4j, a), [x + 0.3j], xpgrad_device)
        check(lambda a: function(a, 2), [x + 0.3j], xpgrad_device)


# -- dtypes ------------------------------------------------------------------------------------------------------------------------

PAIRS = [*itertools.product(["float32", "float64"], ["float32", "float64", "int32"]), ("int64", "float32"), ("uint8", "float64")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_agrees_with_float64(name: str, xpgrad_device: str) -> None:
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(FUNCTIONS[name][0])]
    for narrow, wide in (("float32", "float64"), ("complex64", "complex128"))[: 1 + (name in COMPLEX)]:
        found = []
        for dtype in (narrow, wide):
            xs = [xp.tensor(p, dtype=dtype, device=xpgrad_device, requires_grad=True) for p in map_to_domains(name, us, wide)]
            grads = grad(loss(getattr(xp, name)(*xs)), xs)
            assert all(g.dtype is x.dtype for g, x in zip(grads, xs))
            found.append(grads)
        for a, b in zip(*found):
            np.testing.assert_allclose(values(a), values(b), rtol=2e-4, atol=2e-4)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_mixed_dtypes_return_each_gradient_in_its_own(name: str, pair: tuple[str, str], xpgrad_device: str) -> None:
    base = [np.asarray([1, 2, 3]), np.asarray([[3], [5]])]
    xs = [xp.tensor(b, dtype=d, device=xpgrad_device) for b, d in zip(base, pair)]
    leaves = [x.requires_grad_() for x in xs if x.dtype.differentiable]
    out = getattr(xp, name)(*xs)
    assert out.dtype is xp.result_type(*pair)
    wide = [xp.tensor(b, dtype="float64", requires_grad=True) for b in base]
    expected = dict(zip(map(id, xs), grad(loss(getattr(xp, name)(*wide)), wide)))
    for x, g in zip(leaves, grad(loss(out), leaves)):
        assert g.dtype is x.dtype
        np.testing.assert_allclose(values(g), values(expected[id(x)]), rtol=1e-4, atol=1e-4)


# -- ownership ---------------------------------------------------------------------------------------------------------------------


def test_fresh_formulas_hand_out_memory_of_their_own() -> None:
    """A gradient declared fresh, which the engine adds to in place, shares memory with neither the cotangent nor a saved value."""
    from xpgrad._rows.row import ROWS
    from xpgrad.registry import backend_for

    kernels = backend_for("numpy").kernels
    checked = 0
    for name, (domains, _) in FUNCTIONS.items():
        row = ROWS[name]
        us = [np.asarray([[0.11, 0.62], [0.83, 0.34]]), np.asarray([[0.31, 0.51], [0.74, 0.96]])][: len(domains)]
        points = map_to_domains(name, us)
        out = np.asarray(getattr(kernels, name)(*points))
        g = numbers(out.shape)
        known = {"g": g, "xp": kernels, "out": out, **dict(zip(row.tensors, points))}
        for formula, reads, fresh in zip(row.formulas, row.reads, row.fresh):
            if fresh and formula is not None:
                result = formula(*(known[n] for n in reads))
                held = [v for v in known.values() if isinstance(v, np.ndarray)]
                assert not any(np.shares_memory(result, v) for v in held), name
                assert result.flags.writeable, name
                checked += 1
    assert checked > 40


@pytest.mark.parametrize("name", BINARY)
def test_an_operand_used_twice_gets_both_gradients_and_fresh_buffers_alone_are_added_to(name: str, xpgrad_device: str) -> None:
    x = xp.tensor([0.6, 1.7, 2.3], device=xpgrad_device, requires_grad=True)
    seed = xp.asarray([1.0, -2.0, 0.5], device=xpgrad_device)
    before = values(seed).copy()
    kept = xp.add(x, x)
    out = getattr(xp, name)(kept, x) + kept + x
    (g,) = grad(out, x, seed)
    np.testing.assert_array_equal(values(seed), before)
    check(lambda a: getattr(xp, name)(xp.add(a, a), a) + xp.add(a, a) + a, [values(x)], xpgrad_device)
    assert g.shape == (3,)


# -- passes over memory --------------------------------------------------------------------------------------------------------------

#: Selections, and the number of arrays of the operand's size that their gradient may allocate besides bools.
SELECTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "maximum of a Tensor and a number": (lambda x, y: xp.maximum(x, 0.0), 1),
    "maximum of a number and a Tensor": (lambda x, y: xp.maximum(0, x), 1),
    "minimum of a Tensor and a number": (lambda x, y: xp.minimum(x, 0.25), 1),
    "minimum of a number and a Tensor": (lambda x, y: xp.minimum(0.25, x), 1),
    "maximum of two": (lambda x, y: xp.maximum(x, y), 1),
    "maximum with ties": (lambda x, y: xp.maximum(x, x.detach()), 2),
    "clip": (lambda x, y: xp.clip(x, -0.5, 0.5), 1),
    "clip from below": (lambda x, y: xp.clip(x, -0.5), 1),
    "where, and a number": (lambda x, y: xp.where(y > 0, x, 0.0), 1),
    "where, and a number first": (lambda x, y: xp.where(y > 0, 0.0, x), 1),
    "abs": (lambda x, y: xp.abs(x), 2),
}


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", SELECTIONS)
def test_gradients_of_selections_take_little_memory(name: str) -> None:
    """Gradients of selections allocate few arrays, each of which would be a pass over memory."""
    function, limit = SELECTIONS[name]
    size = 1 << 16
    rng = np.random.default_rng(0)
    y, seed = xp.asarray(rng.normal(size=size)), xp.asarray(rng.normal(size=size))
    for _ in range(2):  # the first one generates code
        x = xp.tensor(rng.normal(size=size), requires_grad=True)
        out = function(x, y)
        gc.collect()
        tracemalloc.start()
        try:
            (g,) = grad(out, x, seed)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert g.shape == x.shape
    assert peak / (8 * size) < limit + 0.5  # three or four bools take less memory than half a float64


# -- PyTorch -----------------------------------------------------------------------------------------------------------------------

NOT_IN_TORCH = {"floor_divide"}  # PyTorch has the function and refuses to differentiate it
SPECIAL_POINTS = [-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5]


def pytorch_function(name: str) -> tuple[Any, Any]:
    """Return PyTorch and its function of that name, or skip the test."""
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    if name in NOT_IN_TORCH:
        pytest.skip("PyTorch does not differentiate it")
    theirs = getattr(torch, name, None)
    if theirs is None:
        pytest.skip("PyTorch does not have it")
    return torch, theirs


def _gradients(torch: Any, ours: Any, theirs: Any, points: list[np.ndarray], device: str, order: int) -> None:
    xs = [xp.tensor(p, device=device, requires_grad=True) for p in points]
    ts = [torch.tensor(p, requires_grad=True) for p in points]
    y, u = ours(*xs), theirs(*ts)
    np.testing.assert_allclose(values(y), u.numpy(force=True), rtol=1e-12, atol=1e-12)
    seed = numbers(y.shape, dtype=values(y).dtype)
    gs = grad(y, xs, xp.asarray(seed, device=device), create_graph=order > 1)
    hs = torch.autograd.grad(u, ts, torch.tensor(seed), create_graph=order > 1)
    for g, h in zip(gs, hs):
        np.testing.assert_allclose(values(g), h.numpy(force=True), rtol=1e-9, atol=1e-12)
    if order < 2:
        return
    for g, h in zip(gs, hs):
        seed = numbers(g.shape, 2.0, values(g).dtype)
        a = grad(g, xs, xp.asarray(seed, device=device), allow_unused=True, retain_graph=True) if g.requires_grad else [None] * len(xs)
        b = [None] * len(xs)
        if h.requires_grad:
            b = torch.autograd.grad(h, ts, torch.tensor(seed), allow_unused=True, retain_graph=True)
        for x, p, q in zip(xs, a, b):
            zero = np.zeros(x.shape)
            np.testing.assert_allclose(zero if p is None else values(p), zero if q is None else q.numpy(force=True), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pytorch_agrees_inside_the_domain(name: str, xpgrad_device: str) -> None:
    torch, theirs = pytorch_function(name)
    us = [np.asarray([0.11, 0.62, 0.83]), np.asarray([[0.31], [0.74]])][: len(FUNCTIONS[name][0])]
    _gradients(torch, getattr(xp, name), theirs, map_to_domains(name, us), xpgrad_device, 2)
    if name in COMPLEX and name not in NO_COMPLEX_TORCH:
        _gradients(torch, getattr(xp, name), theirs, map_to_domains(name, us, np.complex128), xpgrad_device, 2)


NO_COMPLEX_TORCH = {"sign"}  # PyTorch calls it sgn


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in NOT_IN_TORCH])
def test_pytorch_agrees_at_kinks_ties_and_poles(name: str) -> None:
    torch, theirs = pytorch_function(name)
    count = len(FUNCTIONS[name][0])
    points = [p for p in SPECIAL_POINTS if name != "acosh" or p >= 1]  # outside its domain PyTorch's gradient at nan is not nan
    grid = np.asarray(list(itertools.product(points, repeat=count)))
    with np.errstate(all="ignore"):
        _gradients(torch, getattr(xp, name), theirs, [grid[:, k].copy() for k in range(count)], "numpy", 1)


# NB: no exponent 0.5: PyTorch takes 1 / sqrt(x) for x ** -0.5, which at -0.0 has the other sign.
@pytest.mark.parametrize("scalar", [0, 0.0, 1, 2, 3, -1.0, -2, 1.5])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow", "remainder"])
def test_pytorch_agrees_on_scalars_at_kinks_and_poles(name: str, scalar: float) -> None:
    torch, theirs = pytorch_function(name)
    points = [np.asarray(SPECIAL_POINTS)]
    with np.errstate(all="ignore"):
        _gradients(torch, lambda x: getattr(xp, name)(x, scalar), lambda t: theirs(t, scalar), points, "numpy", 1)
        if name != "remainder":
            operator = {"pow": lambda t: scalar**t, "divide": lambda t: scalar / t}.get(name, lambda t: theirs(torch.tensor(scalar), t))
            _gradients(torch, lambda x: getattr(xp, name)(scalar, x), operator, points, "numpy", 1)


def skip_without(dtype: str, device: str) -> None:
    """Skip the test if the device has no such dtype."""
    if all(d.name != dtype for d in xp.zeros(1, dtype="float32", device=device).backend.dtypes()):
        pytest.skip(f"{device} has no {dtype}")


@pytest.mark.parametrize(("x", "y"), [(1.0, 0.1), (-1.0, 0.1), (0.3, -0.1), (6.0, 2.0), (7.5, -2.0), (1e-300, -1e200)])
def test_the_derivative_of_a_remainder_is_that_of_its_value(x: float, y: float, xpgrad_device: str) -> None:
    """The value is ``x - n * y`` for a whole number n, to which the quotient rounds down; rounded first, it may be the next one."""
    skip_without("float64", xpgrad_device)
    a, b = (xp.asarray(v, device=xpgrad_device, dtype=xp.float64) for v in (x, y))
    slope = xp.func.grad(xp.remainder, argnums=1)(a, b).item()
    assert x + slope * y == pytest.approx(xp.remainder(a, b).item(), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_powers_have_mixed_derivatives_at_exponent_0(dtype: Any, xpgrad_device: str) -> None:
    check(xp.pow, [np.asarray([0.5, 2.0, 3.0], dtype), np.asarray([0.0, 0.0, 2.0], dtype)], xpgrad_device)


@pytest.mark.parametrize(("x", "bound"), [([1, 2], 1.5), ([1, 2], [1.5, 1.5]), ([1.0, 2.0], 1j), ([1.0, 2.0], [1j, 2j])])
@pytest.mark.parametrize("side", ["min", "max"])
def test_clip_refuses_bounds_that_its_dtype_cannot_hold(x: list[float], bound: Any, side: str) -> None:
    """A bound that the dtype cannot hold raises, as a number or a Tensor, since rounding would change it and lose its gradient."""
    given = xp.tensor(bound, requires_grad=True) if isinstance(bound, list) else bound
    with pytest.raises(TypeError, match=f"clip: `{side}`.*does not fit Tensors of dtype"):
        xp.clip(xp.asarray(x), **{side: given})


def test_clip_takes_bounds_of_the_same_kind() -> None:
    assert xp.clip(xp.asarray([0, 7], dtype="uint8"), xp.asarray(1), xp.asarray(5)).tolist() == [1, 5]
    assert xp.clip(xp.ones(2, dtype="float32"), xp.asarray(2)).tolist() == [2.0, 2.0]
    assert xp.clip(xp.ones(2, dtype="float32"), xp.asarray(1.5)).dtype is xp.float32


@pytest.mark.parametrize("shapes", [((), (3,), None), ((), (0,), ()), ((3,), (2, 1), None), ((2, 1), (3,), (2, 3)), ((1, 3), None, (2, 1))])
def test_bounds_of_clip_broadcast(shapes: tuple[Any, ...], xpgrad_device: str) -> None:
    arrays = [None if shape is None else numbers(shape, 1.0 + k) * 2.0 - 1.0 + k for k, shape in enumerate(shapes)]
    leaves = [None if a is None else xp.tensor(a, device=xpgrad_device, requires_grad=True) for a in arrays]
    out = xp.clip(*leaves)
    np.testing.assert_array_equal(values(out), np.clip(*arrays))
    given = [leaf for leaf in leaves if leaf is not None]
    same = xp.minimum(xp.maximum(leaves[0], -np.inf if leaves[1] is None else leaves[1]), np.inf if leaves[2] is None else leaves[2])
    for g, expected in zip(xp.autograd.grad(xp.sum(out * out), given), xp.autograd.grad(xp.sum(same * same), given)):
        np.testing.assert_allclose(values(g), values(expected), rtol=1e-14)
    with pytest.raises(ValueError, match=r"clip: `max` has shape \(2,\), which does not broadcast with the shape \(3,\)"):
        xp.clip(leaves[0].sum(), xp.zeros(3, device=xpgrad_device), xp.zeros(2, device=xpgrad_device))
    with pytest.raises(RuntimeError):
        xp.ones((), device=xpgrad_device).clamp_(xp.zeros(3, device=xpgrad_device))


def test_pytorch_agrees_on_clip_at_the_bounds() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    x = np.asarray([-2.0, -1.0, 0.0, 1.0, 2.0])
    _gradients(torch, lambda a: xp.clip(a, -1, 1), lambda t: t.clamp(-1, 1), [x], "numpy", 2)
    _gradients(torch, xp.clip, torch.clamp, [x, np.full(5, -1.0), np.full(5, 1.0)], "numpy", 1)


#: Selections as xpgrad and PyTorch spell them, of an operand and a number, and whether nan is a point: PyTorch's `clamp` and `abs` have
#: the slope 0 there, xpgrad's 1 and nan, and no contract says which.
CUTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], bool]] = {
    "maximum": (lambda x, c: xp.maximum(x, c), lambda torch, t, c: torch.maximum(t, torch.tensor(c, dtype=t.dtype)), True),
    "maximum, reflected": (lambda x, c: xp.maximum(c, x), lambda torch, t, c: torch.maximum(torch.tensor(c, dtype=t.dtype), t), True),
    "minimum": (lambda x, c: xp.minimum(x, c), lambda torch, t, c: torch.minimum(t, torch.tensor(c, dtype=t.dtype)), True),
    "minimum, reflected": (lambda x, c: xp.minimum(c, x), lambda torch, t, c: torch.minimum(torch.tensor(c, dtype=t.dtype), t), True),
    "maximum of two": (lambda x, c: xp.maximum(x, x.detach() * 0 + c), lambda torch, t, c: torch.maximum(t, t.detach() * 0 + c), True),
    "minimum of two": (lambda x, c: xp.minimum(x.detach() * 0 + c, x), lambda torch, t, c: torch.minimum(t.detach() * 0 + c, t), True),
    "clip": (lambda x, c: xp.clip(x, c, c + 1.0), lambda torch, t, c: torch.clamp(t, c, c + 1.0), False),
    "clip from below": (lambda x, c: xp.clip(x, c), lambda torch, t, c: torch.clamp(t, min=c), False),
    "clip from above": (lambda x, c: xp.clip(x, None, c), lambda torch, t, c: torch.clamp(t, max=c), False),
    "where": (lambda x, c: xp.where(x > c, x, c), lambda torch, t, c: torch.where(t > c, t, c), True),
    "where, reflected": (lambda x, c: xp.where(x > c, c, x), lambda torch, t, c: torch.where(t > c, c, t), True),
    "abs": (lambda x, c: xp.abs(x), lambda torch, t, c: torch.abs(t), False),
}
_EXTREME = [-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf]
_COTANGENTS = [1.0, -3.0, 0.0, np.inf, -np.inf, np.nan, 1e-30]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", [0, 1.0, np.inf])
@pytest.mark.parametrize("name", CUTS)
def test_what_is_cut_is_zero_whatever_comes_in(name: str, c: float, dtype: str, xpgrad_device: str) -> None:
    """The gradient of a clipped element is 0 for any cotangent, as in PyTorch: backward, twice, forward, and in a batch."""
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    ours, theirs, takes_nan = CUTS[name]
    grid = np.asarray(list(itertools.product(_EXTREME + [np.nan] * takes_nan, _COTANGENTS)), dtype)
    x, seed = (xp.tensor(grid[:, k], device=xpgrad_device, requires_grad=True) for k in (0, 1))
    t, u = (torch.tensor(grid[:, k].copy(), requires_grad=True) for k in (0, 1))
    with np.errstate(all="ignore"):
        (g,) = grad(ours(x, c), x, seed, create_graph=True)
        (h,) = torch.autograd.grad(theirs(torch, t, c), t, u, create_graph=True)
        expected = h.numpy(force=True)
        assert g.dtype is x.dtype
        np.testing.assert_array_equal(values(g), expected)
        (again,) = grad(g, seed, xp.ones_like(g))
        np.testing.assert_array_equal(values(again), torch.autograd.grad(h, u, torch.ones_like(h))[0].numpy())
        _, tangent = xp.func.jvp(lambda a: ours(a, c), (x.detach(),), (seed.detach(),))
        np.testing.assert_array_equal(values(tangent), expected)
        each = xp.func.vmap(lambda a, v: xp.func.vjp(lambda b: ours(b, c), a)[1](v)[0])(x.detach(), seed.detach())
        np.testing.assert_array_equal(values(each), expected)


def test_pytorch_agrees_on_the_sign_of_complex_numbers() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    _gradients(torch, xp.sign, torch.sgn, [np.asarray([1 + 2j, -0.5 + 0.1j, -3j])], "numpy", 2)
    _gradients(torch, xp.sign, torch.sgn, [np.asarray([0j, 1j])], "numpy", 1)
