"""Law: a new operation is one row: an operation of each kind, declared here, works in every mode and agrees with NumPy and differences.

The modes are eager, backward, double backward, tangents, `vmap` and nestings of it, a batch of gradients in one pass on plain arrays, and
compiled.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import numbers, values
from xpgrad._array.base import TensorBase
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import composite, elementwise, front, nondifferentiable, rule, view
from xpgrad._rows.kernels import KERNELS
from xpgrad._rows.namespace import COMPOSITE, IN_PLACE, METHODS, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import ROWS
from xpgrad._transforms.batch import plain_pass
from xpgrad.errors import CapabilityError
from xpgrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap

SIZE = 3
_TABLES: tuple[dict[str, Any], ...] = (ROWS, KERNELS, RULES, NONDIFFERENTIABLE, PRIMITIVES, COMPOSITE, METHODS, IN_PLACE)


def _declare() -> None:
    """Declare one operation of each kind; only these rows say how it acts in a mode."""

    @elementwise(lambda g, x, xp: g * (xp.sin(x) + x * xp.cos(x)), kernel=lambda xp, x: x * xp.sin(x))
    def new_wave(x: Any, /) -> Any:
        """``x sin(x)``."""

    @elementwise("g * (x2 + 1.0)", "g * x1", kernel=lambda xp, x1, x2: x1 * x2 + x1)
    def new_mixture(x1: Any, x2: Any, /) -> Any:
        """``x1 x2 + x1``."""

    @nondifferentiable(kernel=lambda xp, x: xp.abs(x) < 0.5)
    def new_smallness(x: Any, /) -> Any:
        """Whether ``|x| < 0.5``."""

    @rule(lambda g, x, x_shape, axes, keepdims, xp: xp.expand_reduced(g, x_shape, axes, keepdims) * (2.0 * x), batch="stacked")
    def new_square_sum(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
        return xp.sum(x * x, axis=axes, keepdims=keepdims)

    @front
    def new_energy(x: Any, /, *, axis: int | None = None) -> Any:
        return new_square_sum(x, None if axis is None else (axis % x.ndim,), False)

    @composite
    def new_mean_energy(x: Any, /) -> Any:
        return new_energy(x) / x.size

    @rule(lambda g, x, axis, xp: xp.running_sum_back(g, axis) * xp.cos(x), fresh=True, batch="stacked")
    def new_running_sine(xp: Any, x: Any, axis: int) -> Any:
        return xp.cumulative_sum(xp.sin(x), axis=axis)

    @rule(lambda g, axis, xp: xp.reduce_sum(g, (axis,), False), conj=False, batch="stacked")
    def new_copies(xp: Any, x: Any, shape: tuple[int, ...], axis: int) -> Any:
        return xp.broadcast_to(xp.expand_dims(x, axis=axis), shape)

    @rule(
        lambda g, x1_shape, x2, xp: xp.sum_to(g @ xp.swap_last(x2), x1_shape) * 2.0,
        lambda g, x1, x2_shape, xp: xp.sum_to(xp.swap_last(x1) @ g, x2_shape) * 2.0,
        batch="broadcast",
    )  # fmt: skip
    def new_double_product(xp: Any, x1: Any, x2: Any) -> Any:
        return xp.matmul(x1, x2) * 2.0

    @rule(
        lambda g, x2, axis, xp: xp.expand_dims(g, axis=axis) * x2, lambda g, x1, axis, xp: xp.expand_dims(g, axis=axis) * x1,
        batch="stacked",
    )  # fmt: skip
    def new_contraction(xp: Any, x1: Any, x2: Any, axis: int) -> Any:
        return xp.sum(x1 * x2, axis=axis)

    @rule(lambda g, xs_shape, axis, xp: [xp.flip(g, axis=axis)] * len(xs_shape), varargs=True, conj=False, batch="stacked")
    def new_reversed_total(xp: Any, xs: Any, axis: int) -> Any:
        return xp.flip(functools.reduce(lambda a, b: a + b, xs), axis=axis)

    @front
    def new_turned_total(xs: Any, /, *, axis: int = 0) -> Any:
        return new_reversed_total(unify("new_turned_total", list(xs)), axis)

    @rule(
        lambda g, x, xp: (0.0 if g[0] is None else g[0] * 2.0 * x) + (0.0 if g[1] is None else xp.exp(x) * g[1]), outputs=2, batch="stacked"
    )  # fmt: skip
    def new_pair(xp: Any, x: Any) -> Any:
        return x * x, xp.exp(x)

    @view(lambda g, x_shape, xp: xp.index_basic_transpose(g, (Ellipsis, slice(None, None, 2)), x_shape), batch="stacked")
    def new_every_other(xp: Any, x: Any) -> Any:
        return x[..., ::2]

    @rule(lambda g, x, xp: xp.expand_dims(g, axis=-1) * (xp.exp(x) * (x + 1.0)))
    def new_composed(xp: Any, x: Any) -> Any:
        return xp.sum(x * xp.exp(x), axis=-1)

    @rule(lambda g, x, xp: g * (xp.astype(x, x.dtype) * 2.0 + xp.full_like(x, xp.finfo(x.dtype).eps)))
    def new_parabola(xp: Any, x: Any) -> Any:
        eps = xp.asarray(xp.finfo(x.dtype).eps, dtype=x.dtype)
        return (x + xp.zeros(x.shape, dtype=x.dtype)) * (x * xp.ones_like(x) + eps)

    @rule(lambda g, x_shape, xp: xp.reduce_sum(xp.reshape(g, (*x_shape, 2)), (len(x_shape),), False), conj=False)
    def new_doubled(xp: Any, x: Any) -> Any:
        return xp.repeat(x, 2, axis=-1)


@functools.cache
def _entries() -> list[dict[str, Any]]:
    """Return what the declarations add to the tables, and remove it again, because other tests iterate over all rows."""
    before = [set(table) for table in _TABLES]
    _stale_view(xp.ones(2, requires_grad=True))  # its class and that of inference tensors must exist before the rows are declared
    with xp.inference_mode():
        xp.ones(2)
    _declare()
    entries = [{name: table.pop(name) for name in set(table) - known} for table, known in zip(_TABLES, before)]
    for name in {*entries[-2], *entries[-1]}:
        delattr(TensorBase, name)
    return entries


def _stale_view(x: Any) -> Any:
    """Return `x` as a view whose memory was written to since the view was taken."""
    base = xp.stack([x * 1.0, x * 0.0])
    view = base[0]
    base[1] = x
    return view


class _Declared:
    def __getattr__(self, name: str) -> Any:
        return next(table[name] for table in _TABLES[2:] if name in table)


@pytest.fixture
def new() -> Iterator[Any]:
    """Declare the new operations for one test."""
    entries = _entries()
    for table, own in zip(_TABLES, entries):
        table.update(own)
    yield _Declared()
    for table, own in zip(_TABLES, entries):
        for name in own:
            del table[name]


#: For each name the operation, the same function in NumPy, and the shapes of the operands.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "elementwise": (lambda new, x: new.new_wave(x), lambda x: x * np.sin(x), ((2, 3),)),
    "elementwise, broadcast": (lambda new, a, b: new.new_mixture(a, b), lambda a, b: a * b + a, ((2, 3), (3,))),
    "elementwise, scalar": (lambda new, a: new.new_mixture(3.0, a), lambda a: 3.0 * a + 3.0, ((2,),)),
    "over axes": (lambda new, x: new.new_square_sum(x, (0,), True), lambda x: np.sum(x * x, axis=0, keepdims=True), ((2, 3),)),
    "over axes from the end": (lambda new, x: new.new_energy(x, axis=-1), lambda x: np.sum(x * x, axis=-1), ((2, 3),)),
    "over all axes": (lambda new, x: new.new_energy(x), lambda x: np.sum(x * x), ((2, 3),)),
    "composite": (lambda new, x: new.new_mean_energy(x), lambda x: np.mean(x * x), ((4,),)),
    "along an axis": (lambda new, x: new.new_running_sine(x, 0), lambda x: np.cumsum(np.sin(x), axis=0), ((3, 2),)),
    "with a shape": (lambda new, x: new.new_copies(x * x, (2, 4, 3), 1), lambda x: np.repeat((x * x)[:, None], 4, axis=1), ((2, 3),)),
    "stacks that broadcast": (lambda new, a, b: new.new_double_product(a, b), lambda a, b: 2 * a @ b, ((2, 2, 3), (3, 2))),
    "two operands": (lambda new, a, b: new.new_contraction(a, b, 1), lambda a, b: np.sum(a * b, axis=1), ((2, 3), (2, 3))),
    "list": (lambda new, a, b: new.new_turned_total([a * a, b, a]), lambda a, b: (a * a + b + a)[::-1], ((3, 2), (3, 2))),
    "several outputs": (lambda new, x: sum(new.new_pair(x)), lambda x: x * x + np.exp(x), ((2, 3),)),
    "one of several outputs": (lambda new, x: new.new_pair(x)[1], np.exp, ((3,),)),
    "view": (lambda new, x: new.new_every_other(x) * x[..., :2], lambda x: x[..., ::2] * x[..., :2], ((2, 4),)),
    "with constants": (lambda new, x: new.new_parabola(x), lambda x: x * x, ((2, 3),)),
    "composed": (lambda new, x: new.new_composed(x), lambda x: np.sum(x * np.exp(x), axis=-1), ((2, 3),)),
}  # fmt: skip

_each = pytest.mark.parametrize("case", CASES)


def _parts(case: str, new: Any) -> tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]:
    function, expected, shapes = CASES[case]
    return functools.partial(function, new), expected, [numbers(shape, 1.0 + i) for i, shape in enumerate(shapes)]


def _jacobians(expected: Callable[..., Any], points: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the Jacobians by differences, of shape ``(*output.shape, *operand.shape)``."""
    found = []
    for i, p in enumerate(points):
        columns = []
        for place in np.ndindex(p.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [q.copy() for q in points]
                moved[i][place] += step
                ends.append(np.asarray(expected(*moved)))
            columns.append((ends[0] - ends[1]) / 2e-5)
        found.append(np.stack(columns, axis=-1).reshape(*columns[0].shape, *p.shape))
    return found


def _assert_close(found: Any, expected: Any) -> None:
    found = values(found)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def _scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loss that depends smoothly and nonlinearly on all outputs, for Tensors and NumPy arrays."""

    def loss(*xs: Any) -> Any:
        out = function(*xs)
        return (out * out * 0.3 + out).sum()

    return loss


@_each
def test_eager_and_backward(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    out = function(*leaves)
    _assert_close(out, expected(*points))
    g = numbers(np.shape(expected(*points)), 5.0)
    out.backward(xp.asarray(g, device=xpgrad_device))
    for leaf, jacobian in zip(leaves, _jacobians(expected, points)):
        _assert_close(leaf.grad, np.tensordot(g, jacobian, g.ndim))


@_each
def test_stale_views(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    out = function(*map(_stale_view, leaves))
    assert type(out) is type(leaves[0])
    _assert_close(out, expected(*points))
    g = numbers(np.shape(expected(*points)), 5.0)
    out.backward(xp.asarray(g, device=xpgrad_device))
    for leaf, jacobian in zip(leaves, _jacobians(expected, points)):
        _assert_close(leaf.grad, np.tensordot(g, jacobian, g.ndim))


@_each
def test_inference_tensors(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    with xp.inference_mode():
        xs = [xp.asarray(p, device=xpgrad_device) for p in points]
        inside = function(*xs)
    outside = function(*xs)
    assert (inside.is_inference(), outside.is_inference()) == (True, False)
    for out in (inside, outside):
        _assert_close(out, expected(*points))


@_each
def test_backward_of_backward(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    first = xp.autograd.grad(_scalar(function)(*leaves), leaves, create_graph=True)

    def slope(*at: np.ndarray) -> Any:
        return np.concatenate([_jacobians_of_loss(expected, at, i).reshape(-1) for i in range(len(at))])

    w = numbers((sum(p.size for p in points),), 7.0)
    flat = xp.concat([xp.reshape(g, (-1,)) for g in first])
    second = xp.autograd.grad(xp.sum(flat * xp.asarray(w, device=xpgrad_device)), leaves)
    for i, (p, found) in enumerate(zip(points, second)):
        wanted = np.zeros(p.shape)
        for place in np.ndindex(p.shape):
            ends = []
            for step in (1e-4, -1e-4):
                moved = [q.copy() for q in points]
                moved[i][place] += step
                ends.append(w @ slope(*moved))
            wanted[place] = (ends[0] - ends[1]) / 2e-4
        _assert_close(found, wanted)


def _jacobians_of_loss(expected: Callable[..., Any], points: Sequence[np.ndarray], i: int) -> np.ndarray:
    """Return the gradient of the loss in the i-th operand, by differences of the fourth order."""
    loss, out = _scalar(expected), np.zeros(points[i].shape)
    for place in np.ndindex(out.shape):
        ends = []
        for step in (2e-3, 1e-3, -1e-3, -2e-3):
            moved = [q.copy() for q in points]
            moved[i][place] += step
            ends.append(loss(*moved))
        out[place] = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / 12e-3
    return out


@_each
def test_tangents(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    xs = tuple(xp.asarray(p, device=xpgrad_device) for p in points)
    directions = [numbers(p.shape, 4.0 + i) for i, p in enumerate(points)]
    out, tangent = jvp(function, xs, tuple(xp.asarray(d, device=xpgrad_device) for d in directions))
    _assert_close(out, expected(*points))
    _assert_close(tangent, sum(np.tensordot(j, d, d.ndim) for j, d in zip(_jacobians(expected, points), directions)))


@_each
def test_vmap(case: str, new: Any, xpgrad_device: str) -> None:
    """`vmap` agrees with a loop, whichever operands are batched along whichever axis, also for gradients and tangents."""
    function, expected, points = _parts(case, new)
    scales = (1.0, 0.9, 1.1)
    for mask in itertools.product((True, False), repeat=len(points)):
        if not any(mask):
            continue
        elements = [[p * s if m else p for p, m in zip(points, mask)] for s in scales]
        dims = tuple(p.ndim if m else None for p, m in zip(points, mask))
        arrays = [np.stack([e[i] for e in elements], axis=d) if d is not None else points[i] for i, d in enumerate(dims)]
        xs = [xp.asarray(a, device=xpgrad_device) for a in arrays]
        _assert_close(vmap(function, in_dims=dims)(*xs), np.stack([expected(*e) for e in elements]))
        place = mask.index(True)
        jacobians = np.stack([_jacobians_of_loss(expected, e, place) for e in elements])
        _assert_close(vmap(grad(_scalar(function), argnums=place), in_dims=dims)(*xs), jacobians)

        def along(*at: Any, place: int = place) -> Any:
            return jvp(lambda x: function(*at[:place], x, *at[place + 1 :]), (at[place],), (xp.ones_like(at[place]),))[1]

        tangents = [_jacobians(expected, e)[place] for e in elements]
        summed = np.stack([t.reshape(*np.shape(expected(*e)), -1).sum(-1) for t, e in zip(tangents, elements)])
        _assert_close(vmap(along, in_dims=dims)(*xs), summed)


@_each
def test_batches_of_gradients(case: str, new: Any, xpgrad_device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of gradients in one pass is right, whether recorded or not, and so are Jacobians by either mode."""
    function, expected, points = _parts(case, new)
    taken = []
    run = plain_pass._run
    monkeypatch.setattr(plain_pass, "_run", lambda *a: taken.append(1) or run(*a))
    jacobians = _jacobians(expected, points)
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    out = function(*leaves)
    seeds = numbers((SIZE, *out.shape), 2.0)
    batch = xp.asarray(seeds, device=xpgrad_device)
    for create in (False, True):
        found = xp.autograd.grad(out, leaves, batch, is_grads_batched=True, retain_graph=True, create_graph=create)
        for g, jacobian in zip(found, jacobians):
            _assert_close(g, np.tensordot(seeds, jacobian, out.ndim))
        # Only the pass that is not recorded runs on plain arrays, and no pass of a device with streams.
        assert len(taken) == (not out.backend.capabilities.streams)
    xs = [x.detach() for x in leaves]
    for i, jacobian in enumerate(jacobians):
        _assert_close(jacrev(function, argnums=i)(*xs), jacobian)
        _assert_close(jacfwd(function, argnums=i)(*xs), jacobian)


@_each
def test_hessians(case: str, new: Any, xpgrad_device: str) -> None:
    function, expected, points = _parts(case, new)
    xs = [xp.asarray(p, device=xpgrad_device) for p in points]
    loss = _scalar(function)
    found = values(hessian(loss)(*xs))
    assert found.shape == points[0].shape * 2
    wanted = values(jacrev(jacrev(loss))(*xs))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    direction = numbers(points[0].shape, 4.0)
    ends = [_jacobians_of_loss(expected, [points[0] + s * 1e-4 * direction, *points[1:]], 0) for s in (1, -1)]
    _assert_close(xp.asarray(np.tensordot(found, direction, direction.ndim)), (ends[0] - ends[1]) / 2e-4)


@_each
def test_compiled(case: str, new: Any, xpgrad_device: str) -> None:
    """The operation, compiled, has its value and gradients."""
    function, expected, points = _parts(case, new)
    leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
    loss = xp.compile(_scalar(function))(*leaves)
    _assert_close(loss, _scalar(expected)(*points))
    for i, g in enumerate(xp.autograd.grad(loss, leaves)):
        _assert_close(g, _jacobians_of_loss(expected, points, i))


def test_what_has_no_derivative_is_batched_too(new: Any, xpgrad_device: str) -> None:
    x = numbers((3, 4))
    found = vmap(new.new_smallness)(xp.asarray(x, device=xpgrad_device))
    np.testing.assert_array_equal(values(found), np.abs(x) < 0.5)


def test_a_row_that_cannot_be_batched_says_so(new: Any, xpgrad_device: str) -> None:
    """A row whose kernel cannot be batched works in the other modes, and `vmap` names the function that batches lack."""
    x = xp.asarray(numbers((2, 3)), device=xpgrad_device)
    np.testing.assert_array_equal(values(new.new_doubled(x)), np.repeat(values(x), 2, axis=-1))
    np.testing.assert_array_equal(values(grad(lambda x: xp.sum(new.new_doubled(x)))(x)), np.full((2, 3), 2.0))
    with pytest.raises(CapabilityError, match=r"vmap of .* has no function `repeat`"):
        vmap(new.new_doubled)(x)


def test_a_row_says_how_it_acts_on_batches_in_known_words() -> None:
    with pytest.raises(ValueError, match="`batch` of 'new_unknown' must be one of"):
        rule(lambda g: g, batch="sideways")(_unknown)
    assert "new_unknown" not in ROWS


def _unknown(xp: Any, x: Any) -> Any:
    return x


_unknown.__name__ = "new_unknown"
