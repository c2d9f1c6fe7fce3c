"""The specifics of cubed arrays: lazy computation, gradients in chunks, indices, writes, transforms, executors and errors of tasks."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import cubed
import numpy as np
import pytest

import xpgrad as xp
import xpgrad_cubed
from xpgrad.errors import DeviceMismatchError
from xpgrad.func import grad, vmap
from xpgrad_cubed import storage

Function = Callable[[Any], Any]


class Computations:
    """Counts how often cubed computes."""

    def __init__(self) -> None:
        self.count = 0


@pytest.fixture
def computations(monkeypatch: pytest.MonkeyPatch) -> Computations:
    counter, execute = Computations(), cubed.core.plan.FinalizedPlan.execute

    def counting(*args: Any, **options: Any) -> Any:
        counter.count += 1
        return execute(*args, **options)

    monkeypatch.setattr(cubed.core.plan.FinalizedPlan, "execute", counting)
    return counter


def data(*shape: int) -> Any:
    """Return well-separated nonzero numbers."""
    count = math.prod(shape)
    return (np.sin(np.arange(count) * 1.7 + 0.3) + 0.05 * np.arange(count) + 0.1).reshape(shape)


def lazy(x: Any, chunks: Any = 2) -> Any:
    """Return a constant on cubed whose values are not known before they are computed."""
    return xp.asarray(cubed.asarray(x, chunks=chunks) + np.zeros((), x.dtype).item())


FUNCTIONS: dict[str, Function] = {
    "elementwise": lambda x: xp.sum(xp.sin(x) * xp.exp(-x) / (2 + x * x)),
    "broadcasting": lambda x: xp.sum((x - xp.sum(x, axis=0)) ** 2 * xp.mean(x, axis=1, keepdims=True)),
    "matmul": lambda x: xp.sum(xp.tanh(x @ xp.matrix_transpose(x))),
    "reductions": lambda x: xp.max(x) + xp.var(x) + xp.prod(x[0]) + xp.std(x[:, 1]),
    "slices": lambda x: xp.sum(x[1:] * x[:-1]) + xp.sum(x[::-2, 1:] ** 2),
    "indices": lambda x: xp.sum(x[xp.asarray([5, 0, 5, -2], device=x.device)] ** 3),
    "indices of two axes": lambda x: xp.sum(x[xp.asarray([5, 0, 5], device=x.device), xp.asarray([1, 1, 1], device=x.device)] ** 3),
    "take_along_axis": lambda x: xp.sum(xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0) * xp.cumulative_sum(x, axis=1)),
    "sort": lambda x: xp.sum(xp.sort(x, axis=0)[2:4] ** 2),
    "shapes": lambda x: xp.sum(xp.reshape(x, (4, 6)) @ xp.permute_dims(xp.concat([x, x[:1]], axis=0)[:6], (0, 1))),
    "linalg": lambda x: xp.linalg.slogdet(x.mT @ x + xp.eye(4, dtype=x.dtype, device=x.device))[1] + xp.linalg.svdvals(x)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str, computations: Computations) -> None:
    """A gradient equals NumPy's and has the chunks of its leaf; nothing is computed before it is asked for."""
    x = lazy(data(6, 4)).requires_grad_()
    y = xp.tensor(data(6, 4), device="numpy", requires_grad=True)
    loss = FUNCTIONS[name](x)
    loss.backward()
    assert computations.count == 0
    assert x.grad is not None
    assert x.grad.array.chunks == x.array.chunks
    expected = FUNCTIONS[name](y)
    expected.backward()
    assert y.grad is not None
    xp.compute(loss, x.grad)
    assert computations.count == 1
    np.testing.assert_allclose(loss.item(), expected.item())
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-12)
    assert computations.count == 1


def test_second_derivatives_and_complex_numbers() -> None:
    found = []
    for device in ("cubed", "numpy"):
        x = xp.tensor(data(3, 2) + 1j * data(2, 3).T, device=device, requires_grad=True)
        (g,) = xp.autograd.grad(xp.sum(xp.abs(x @ xp.conj(x.mT)) ** 2), x, create_graph=True)
        xp.sum(xp.real(g * g)).backward()
        assert x.grad is not None
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[0], found[1])


def test_vmap_of_grad(computations: Computations) -> None:
    x, w = lazy(data(5, 3)), lazy(data(3))
    found = vmap(grad(lambda row: xp.tanh(xp.sum(row * w))))(x)
    assert computations.count == 0
    inner = data(5, 3) @ data(3)
    np.testing.assert_allclose(found.numpy(), (1 - np.tanh(inner) ** 2)[:, None] * data(3))


# -- indices and writes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("key", "value"), [
    ((slice(1, 4), slice(None, None, -2)), data(3, 2)), ((2,), 7.0), ((slice(None), None, 1), data(6, 1)),
    ((np.asarray([0, 4, 0]),), data(3, 4)), ((slice(None), np.asarray([-1, 1])), 7.0), ((np.asarray([0, 4]), np.asarray([1, 2])), data(2)),
])  # fmt: skip
def test_writes(key: Any, value: Any, known: bool) -> None:
    """Writes make new arrays: the Tensors that share memory see them, and gradients pass beside what was overwritten."""
    found = []
    for device in ("cubed", "numpy"):
        make = (lambda a: xp.asarray(a, device=device)) if known or device == "numpy" else lazy  # noqa: B023 (called in this turn)
        x = make(data(6, 4)).requires_grad_()
        v = value if isinstance(value, float) else make(value).requires_grad_()
        y = x * 1.0
        seen = y[1]
        y[tuple(make(p) if isinstance(p, np.ndarray) else p for p in key)] = v
        (xp.sum(y**3) + xp.sum(seen)).backward()
        assert x.grad is not None
        found.append([y.detach().numpy(), x.grad.numpy(), *([] if isinstance(v, float) else [v.grad.numpy()])])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b)


def test_rows_of_an_array_in_many_chunks(computations: Computations) -> None:
    """Known rows are read from their own chunks; the gradient is written to chunks of the array's, each of which sums its own rows."""
    x = xp.asarray(cubed.ones((100_000, 8), chunks=(1000, 8))).requires_grad_()
    rows = np.asarray([99_999, 0, 0, 5000])
    xp.sum(x[xp.asarray(rows, device="cubed")] * xp.asarray(data(4, 8), device="cubed")).backward()
    assert computations.count == 0
    assert x.grad is not None
    first, second, third, last = data(4, 8)
    np.testing.assert_allclose(x.grad[rows.tolist()].numpy(), [first, second + third, second + third, last])
    assert xp.sum(x.grad).item() == pytest.approx(data(4, 8).sum())


def test_indices_out_of_range(computations: Computations) -> None:
    x = lazy(data(6, 4))
    with pytest.raises(IndexError, match="out of range for axis 0 of length 6"):  # a known index raises at once
        x[xp.asarray([0, 6], device="cubed")]
    late = x[lazy(np.asarray([0, -7]))]
    assert computations.count == 0
    with pytest.raises(IndexError, match="out of range for axis 0 of length 6"):  # a lazy one raises when it is computed
        late.numpy()
    with pytest.raises(IndexError, match="out of range"):
        xp.take_along_axis(x, lazy(np.full((6, 1), 4)), axis=1).numpy()


# -- chunks and memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "broadcast_to"])
def test_gradients_of_reductions_stay_in_chunks(name: str) -> None:
    """There must not be a chunk as large as the array, at any step, nor one for each element."""
    x = xp.asarray(cubed.ones((1_000_000, 8), chunks=(10_000, 8))).requires_grad_()
    functions: dict[str, Function] = {
        "sum": xp.sum, "mean": xp.mean, "var": xp.var, "max": xp.max,
        "broadcast_to": lambda x: xp.sum(xp.broadcast_to(xp.sum(x), (1_000_000,)) ** 2),
    }  # fmt: skip
    seen = []
    x.register_hook(lambda g: seen.append(g.array.chunksize[0]))
    functions[name](x * 2).backward()
    assert seen == [10_000]


def test_a_task_that_needs_too_much_memory_is_refused_before_it_starts() -> None:
    spec = cubed.Spec(allowed_mem="10MB")
    xpgrad_cubed.set_spec(spec)
    try:
        x = xp.asarray(cubed.ones((10_000, 1000), chunks=(100, 1000), spec=spec)).requires_grad_()
        loss = xp.mean((x - 1.0) ** 2)
        loss.backward()
        assert loss.item() == 0.0  # 80 MB of data, in tasks of 10 MB
        with pytest.raises(ValueError, match=r"(?i)memory"):
            xp.sum(xp.sort(xp.reshape(x, (-1,)))).item()
    finally:
        xpgrad_cubed.set_spec(None)


def test_arrays_of_another_spec_are_named() -> None:
    x = xp.asarray(cubed.ones(3, spec=cubed.Spec(allowed_mem="20MB")))
    with pytest.raises(ValueError, match="spec"):
        x + xp.asarray([1.0, 2.0, 3.0], device="cubed")


# -- executors and errors ----------------------------------------------------------------------------------------------


def _fail(block: Any) -> Any:
    if block[0] > 2:
        raise ZeroDivisionError(f"block starts at {block[0]}")
    return block


@pytest.mark.parametrize("executor", ["single-threaded", "threads", "processes"])
def test_an_error_in_a_task_arrives_as_itself(executor: str) -> None:
    options = {"max_workers": 1} if executor == "processes" else {}
    spec = cubed.Spec(allowed_mem="100MB", executor_name=executor, executor_options=options)
    x = cubed.map_blocks(_fail, cubed.asarray(np.arange(6.0), chunks=2, spec=spec), dtype=np.float64)
    t = xp.asarray(x).requires_grad_()
    loss = xp.sum(t * t)
    with pytest.raises(ZeroDivisionError, match="block starts at 4"):
        loss.item()


def test_the_configuration_chooses_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    execute = cubed.core.plan.FinalizedPlan.execute

    def spy(plan: Any, *args: Any, executor: Any = None, **options: Any) -> Any:
        used.append(executor.name)
        return execute(plan, *args, executor=executor, **options)

    monkeypatch.setattr(cubed.core.plan.FinalizedPlan, "execute", spy)
    lazy(data(3)).numpy()
    xp.asarray(cubed.ones(3, spec=cubed.Spec(allowed_mem="100MB", executor_name="threads"))).numpy()
    assert used == ["single-threaded", "threads"]


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_plans_do_not_grow_when_parameters_are_computed(kept: bool) -> None:
    x = lazy(data(8, 2))
    w = xp.zeros(2, dtype=xp.float64, device="cubed").requires_grad_()
    sizes, losses = [], []
    for _ in range(4):
        loss = xp.mean((x @ w - xp.sum(x, axis=1)) ** 2)
        loss.backward()
        assert w.grad is not None
        w = (w.detach() - 0.3 * w.grad).requires_grad_()
        sizes.append(len(w.array._plan.dag))
        if kept:
            xp.compute(w, loss)
        losses.append(loss)
    assert (sizes[1] == sizes[-1]) is kept
    values = [loss.item() for loss in losses]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.5 * values[0]


def test_a_cut_shortens_plans_and_keeps_the_history(computations: Computations) -> None:
    """The plans of values and gradients do not grow along a chain, and its first and second derivatives stay right."""
    x = lazy(data(4)).requires_grad_()
    y, sizes, seen = x, [], []
    for _ in range(4):
        y = xpgrad_cubed.cut(xp.sin(y) * y)
        y.register_hook(lambda g: seen.append(len(g.array._plan.dag)))
        sizes.append(len((y * 1.0).detach().array._plan.dag))
    assert computations.count == 4
    assert len(set(sizes)) == 1
    (g,) = xp.autograd.grad(xp.sum(y), x, create_graph=True)
    assert len(set(seen[1:])) == 1
    assert computations.count == 8
    xp.sum(g * g).backward()
    n = xp.tensor(data(4), device="numpy", requires_grad=True)
    z = n
    for _ in range(4):
        z = xp.sin(z) * z
    (h,) = xp.autograd.grad(xp.sum(z), n, create_graph=True)
    xp.sum(h * h).backward()
    assert x.grad is not None
    assert n.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), n.grad.numpy())


def test_compute_keeps_chunks_history_and_large_arrays(computations: Computations) -> None:
    x = xp.asarray(cubed.ones((500, 400), chunks=(100, 400))).requires_grad_()
    y, z = x * 3, (x[0] * 2).detach()
    xp.compute(y, z)
    assert computations.count == 1
    assert y.array.chunks == x.array.chunks
    assert len(y.detach().array._plan.dag) == len(z.array._plan.dag) == 2
    assert storage.known_values(y.detach().array) is None  # 1.6 MB are in a Zarr array
    assert z.tolist() == [2.0] * 400
    assert computations.count == 1
    total = xp.sum(y)
    assert total.item() == 600_000.0
    total.backward()
    assert x.grad is not None
    assert x.grad[0, 0].item() == 3.0


# -- arrays ------------------------------------------------------------------------------------------------------------


def test_operands_of_other_devices(computations: Computations) -> None:
    x = lazy(data(6, 4)).requires_grad_()
    factor = xp.tensor(3.0, device="numpy", requires_grad=True)
    y = factor * x
    assert (str(y.device), computations.count) == ("cubed", 0)
    xp.sum(y).backward()
    assert factor.grad is not None
    np.testing.assert_allclose(factor.grad.numpy(), data(6, 4).sum())
    before = computations.count
    with pytest.raises(DeviceMismatchError):
        x * xp.asarray(data(6, 4), device="numpy")
    with pytest.raises(DeviceMismatchError):  # a 0-d lazy value is not computed implicitly
        xp.sum(x) * xp.asarray(data(3), device="numpy")
    assert computations.count == before


def test_special_functions_are_computed_by_chunks(computations: Computations) -> None:
    special = pytest.importorskip("scipy.special")
    x = lazy(data(6, 4)).requires_grad_()
    xp.sum(xp.scipy.special.erf(x)).backward()
    assert computations.count == 0
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 / np.sqrt(np.pi) * np.exp(-(data(6, 4) ** 2)))
    np.testing.assert_allclose(xp.scipy.special.gammaln(x.detach()).numpy(), special.gammaln(data(6, 4)))


def test_values_that_come_back_cannot_change_a_plan() -> None:
    x = xp.asarray(data(4), device="cubed")
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 99.0
    raw = data(4)
    y = xp.asarray(raw, device="cubed") * 1.0
    raw[0] = 99.0
    np.testing.assert_allclose(y.numpy(), data(4))


def test_repr(computations: Computations) -> None:
    known = xp.asarray([1.0, 2.0], device="cubed")
    assert repr(known) == "tensor([1., 2.], device='cubed')"
    assert "cubed.Array<" in repr(known * 2)
    assert computations.count == 0


def test_cubed_is_not_imported_before_it_is_used() -> None:
    program = "import sys, xpgrad, xpgrad_cubed; xpgrad.asarray([1.0]); xpgrad.backend_names(); assert 'cubed' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
