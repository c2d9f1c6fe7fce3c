"""The specifics of dask arrays: lazy computation, chunks of gradients, unknown lengths, schedulers, and operands on other devices."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import xpgrad as xp
import xpgrad_dask
from xpgrad.errors import CapabilityError, DeviceMismatchError
from xpgrad.utils.checkpoint import checkpoint

Function = Callable[[Any], Any]


class Scheduler:
    """A synchronous scheduler that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        self.calls += 1
        return dask.get(graph, keys, **options)


@pytest.fixture(autouse=True)
def scheduler() -> Iterator[Scheduler]:
    counting = Scheduler()
    with dask.config.set(scheduler=counting):
        yield counting


def data(*shape: int, with_phase: bool = False) -> Any:
    """Return well-separated nonzero numbers; complex ones if `with_phase`."""
    count = math.prod(shape)
    x = (np.sin(np.arange(count) * 1.7 + 0.3) + 0.05 * np.arange(count) + 0.1).reshape(shape)
    return x + 1j * np.cos(x) if with_phase else x


def on_dask(x: Any, chunks: Any = 2) -> Any:
    """Return a constant on dask whose values are not known before they are computed."""
    return xp.asarray(da.from_array(x, chunks=chunks) + 0)


def at(x: Any, indices: Any) -> Any:
    """Return integer indices on the device of `x`; on dask they are lazy, in chunks."""
    indices = np.asarray(indices)
    return on_dask(indices) if str(x.device) == "dask" else xp.asarray(indices)


#: Differentiable functions of a real Tensor of shape (6, 4).
CASES: dict[str, Function] = {
    "elementwise": lambda x: xp.exp(-x * x) + xp.sin(x) / (x * x + 1),
    "broadcasting": lambda x: x * x[0] + x[:, :1],
    "sum": lambda x: xp.sum(x * x),
    "sum over an axis": lambda x: xp.sum(x, axis=0) * xp.sum(x * x, axis=1, keepdims=True),
    "mean": lambda x: xp.mean(x * x, axis=1),
    "var": lambda x: xp.var(x, axis=0, correction=1),
    "std": lambda x: xp.std(x),
    "max": lambda x: xp.max(x, axis=0) * xp.min(x),
    "prod": lambda x: xp.prod(x, axis=1),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0) ** 2,
    "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=1),
    "matmul": lambda x: x @ x.mT,
    "tensordot": lambda x: xp.tensordot(x, x, axes=((0,), (0,))),
    "reshape": lambda x: xp.reshape(x, (8, 3))[1:] ** 2,
    "permute": lambda x: xp.permute_dims(x, (1, 0)) * xp.moveaxis(x, 0, 1),
    "flip and roll": lambda x: xp.flip(x, axis=0) * xp.roll(x, 3),
    "concat": lambda x: xp.concat([x[:2], x * x, x[1:]], axis=0),
    "stack": lambda x: xp.stack([x, x * 2], axis=1),
    "broadcast_to": lambda x: xp.broadcast_to(x[0], (5, 4)) ** 2,
    "tile": lambda x: xp.tile(x, (2, 3)),
    "where": lambda x: xp.where(x > 0, x * x, -x),
    "clip": lambda x: xp.clip(x, 0.0, 0.8) * x,
    "tril": lambda x: xp.tril(x) + xp.triu(x, k=1) * 2,
    "slices": lambda x: x[1:5:2, ::-1] * x[::3, None, 2],
    "integers": lambda x: x[3] * x[-1, 2],
    "rows": lambda x: x[at(x, [0, 5, 5, -1, 2, 3, 0])],
    "columns": lambda x: x[:, at(x, [[3, 0], [1, 1]])],
    "pairs": lambda x: x[at(x, [0, 5, 0]), at(x, [3, 1, 3])],
    "pairs apart": lambda x: xp.reshape(x, (6, 2, 2))[at(x, [0, 5, 0]), :, at(x, [1, 1, 0])],
    "beside an integer": lambda x: xp.reshape(x, (6, 2, 2))[1, :, at(x, [1, 1, 0])],
    "take": lambda x: xp.take(x, at(x, [3, 3, 0]), axis=1),
    "take_along_axis": lambda x: xp.take_along_axis(x, at(x, [[3, 3, 0]] * 6), axis=1),
    "sort": lambda x: xp.sort(x, axis=0) * x,
    "inverse": lambda x: xp.linalg.inv(x[:4] @ x[:4].mT + xp.eye(4, dtype=xp.float64, device=x.device)),
    "solve": lambda x: xp.linalg.solve(x[:4] @ x[:4].mT + xp.eye(4, dtype=xp.float64, device=x.device), x.mT),
    "det": lambda x: xp.linalg.det(x[:4]),
    "slogdet": lambda x: xp.linalg.slogdet(x[:4])[1],
    "cholesky": lambda x: xp.linalg.cholesky(x.mT @ x + xp.eye(4, dtype=xp.float64, device=x.device)),
    "eigvals": lambda x: xp.real(xp.sum(xp.linalg.eigvals(x.mT @ x + xp.triu(x.mT @ x)) ** 3, axis=-1)),
    "eig": lambda x: xp.abs(xp.linalg.eig(x.mT @ x + xp.triu(x.mT @ x)).eigenvectors),
    "eigvalsh": lambda x: xp.linalg.eigvalsh(x.mT @ x),
    "svdvals": lambda x: xp.linalg.svdvals(x),
    "svd": lambda x: xp.abs(xp.linalg.svd(x, full_matrices=False)[0]),
    "qr": lambda x: xp.abs(xp.linalg.qr(x)[1]),
    "pinv": lambda x: xp.linalg.pinv(x),
    "norm": lambda x: xp.linalg.vector_norm(x, axis=1),
    "diagonal": lambda x: xp.linalg.diagonal(x, offset=-1) ** 2 + xp.linalg.diagonal(x[2:, :], offset=0)[:4],
    "cross": lambda x: xp.linalg.cross(x[:, :3], x[:, 1:]),
    "fft": lambda x: xp.abs(xp.fft.fft(x, axis=0)),
    "irfft": lambda x: xp.fft.irfft(xp.fft.rfft(x, axis=0) ** 2, axis=0),
    "mask": lambda x: xp.sum(x[x > 0.5] ** 2),
    "mask of rows": lambda x: xp.sum(x[x[:, 0] > 0.5] * x[0]),
    "mask of columns": lambda x: xp.sum(x[:, x[0] > 0.5] ** 2, axis=1),
    "mask, then a column": lambda x: xp.sum(x[x[:, 0] > 0.5][:, 1::2] ** 2),
    "written": lambda x: write(x, (slice(1, None, 2), 0), 2.0),
    "written at integers": lambda x: write(x, (at(x, [0, 2, 0]), 1), x[:3, 3] * x[:3, 2]),
    "written at a mask": lambda x: write(x, x.detach() > 0.5, x[0, 0]),
    "written into a view": lambda x: write_through(x),
}  # fmt: skip


def write(x: Any, key: Any, value: Any) -> Any:
    y = x * x
    y[key] = value
    return y * x


def write_through(x: Any) -> Any:
    y = x * 1.5
    y.mT[1][::2] = x[::2, 0] * x[0, 1]
    xp.reshape(y, (-1,))[3:5].mul_(2.0)
    return y * y


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_computed_early_and_gradients_are_those_of_numpy(name: str, scheduler: Scheduler) -> None:
    results: list[list[Any]] = []
    for device in ("dask", "numpy"):
        raw = data(6, 4)
        x = (on_dask(raw, (2, 3)) if device == "dask" else xp.asarray(raw)).requires_grad_()
        y = CASES[name](x)
        loss = xp.sum(y * y)
        (first,) = xp.autograd.grad(loss, x, create_graph=True)
        loss.backward(retain_graph=True)
        g, x.grad = x.grad, None
        assert g is not None
        xp.sum(first * first * first).backward()
        assert scheduler.calls == 0
        h = x.grad
        assert h is not None
        if device == "dask":
            assert g.array.chunks == h.array.chunks == x.array.chunks
            repr((x, y, g))
            assert scheduler.calls == 0
        results.append([t.detach() for t in (y, g, h)])
    for mine, expected in zip(*results):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
    assert scheduler.calls == 3


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "broadcast_to"])
def test_no_chunk_of_a_gradient_grows(name: str) -> None:
    """The gradient of a sum of a large array must not be a chunk as large as the array, at any step."""
    x = xp.asarray(da.ones((1_000_000, 8), chunks=(1000, 8))).requires_grad_()
    functions: dict[str, Function] = {
        "sum": xp.sum, "mean": xp.mean, "var": xp.var, "max": xp.max,
        "broadcast_to": lambda x: xp.sum(xp.broadcast_to(xp.sum(x), (1_000_000,)) ** 2),
    }  # fmt: skip
    seen = []
    x.register_hook(lambda g: seen.append(max(g.array.chunks[0])))
    functions[name](x * 2).backward()
    assert seen == [1000]
    assert x.grad is not None
    assert x.grad.array.chunks == x.array.chunks


def test_a_broadcast_of_a_large_array_is_divided() -> None:
    y = xp.broadcast_to(xp.asarray(1.0, device="dask"), (10**6, 10**3))
    assert max(y.array.chunks[0]) * max(y.array.chunks[1]) * 8 <= 2**28
    assert y.array.npartitions > 20


# -- unknown lengths ------------------------------------------------------------------------------------------------------------


def filtered(x: Any) -> Any:
    return x[x.detach()[:, 0] > 0.5]


@pytest.mark.parametrize(("function", "closed"), [
    (lambda y: xp.sum(y * y), lambda y: 2 * y),
    (lambda y: xp.sum(y @ xp.asarray([1.0, 2.0, 3.0, 4.0], device="dask")), lambda y: np.broadcast_to([1.0, 2.0, 3.0, 4.0], y.shape)),
    (lambda y: xp.sum(xp.expand_dims(y, axis=1) * y[:, None]), lambda y: 2 * y),
    (lambda y: xp.sum(xp.sum(y, axis=1) ** 2), lambda y: 2 * y.sum(axis=1, keepdims=True) + 0 * y),
    (lambda y: xp.sum(xp.sum(y, axis=0) ** 2), lambda y: 2 * y.sum(axis=0) + 0 * y),
    (lambda y: xp.max(y), lambda y: (y == y.max()) * 1.0),
    (lambda y: xp.sum(y[:, 1] * y[:, -1]), lambda y: y[:, [3]] * [0, 1, 0, 0] + y[:, [1]] * [0, 0, 0, 1]),
    (lambda y: xp.sum(y.mT[1:] ** 2), lambda y: 2 * y * [0, 1, 1, 1]),
])  # fmt: skip
def test_unknown_lengths_work(function: Function, closed: Function, scheduler: Scheduler) -> None:
    raw = data(6, 4)
    x = on_dask(raw, (2, 3)).requires_grad_()
    y = filtered(x)
    assert math.isnan(y.shape[0])
    function(y).backward()
    assert scheduler.calls == 0
    assert x.grad is not None
    keep = raw[:, 0] > 0.5
    expected = np.zeros_like(raw)
    expected[keep] = closed(raw[keep])
    assert x.grad.array.chunks == x.array.chunks
    np.testing.assert_allclose(x.grad.numpy(), expected)


@pytest.mark.parametrize("function", [
    lambda y: xp.mean(y).backward(), lambda y: xp.var(y).backward(), lambda y: y[0], lambda y: y[1:], lambda y: y[::-1],
    lambda y: y[at(y, [0])], lambda y: xp.sum(xp.concat([y, y])).backward(), lambda y: xp.sort(y, axis=0),
    lambda y: xp.linalg.svdvals(y), lambda y: xp.fft.fft(y, axis=0),
])  # fmt: skip
def test_what_needs_an_unknown_length_is_refused(function: Function) -> None:
    x = on_dask(data(6, 4), (2, 3)).requires_grad_()
    with pytest.raises(CapabilityError, match="compute_chunk_sizes"):
        function(filtered(x))
    assert x.grad is None


def test_lengths_can_be_made_known(scheduler: Scheduler) -> None:
    raw = data(6, 4)
    y = filtered(on_dask(raw, (2, 3))).array
    y = xp.asarray(y.compute_chunk_sizes()).requires_grad_()
    assert scheduler.calls == 1
    xp.mean(y).backward()
    assert y.grad is not None
    np.testing.assert_allclose(y.grad.numpy(), np.full(y.shape, 1 / math.prod(y.shape)))


def test_a_mask_that_is_known_beside_others() -> None:
    """If the mask's values are in memory, the length is known; if not, the key raises an error."""
    raw = data(6, 4)
    x = on_dask(raw, (2, 3)).requires_grad_()
    keep = raw[:, 0] > 0.5
    known = xp.asarray(keep, device="dask")
    y = x[known, 1]
    assert y.shape == raw[keep, 1].shape
    xp.sum(y * y).backward()
    assert x.grad is not None
    expected = np.zeros_like(raw)
    expected[keep, 1] = 2 * raw[keep, 1]
    np.testing.assert_allclose(x.grad.numpy(), expected)
    with pytest.raises(CapabilityError, match="not known yet"):
        x[x.detach()[:, 0] > 0.5, 1]


def test_indices_out_of_range() -> None:
    x = on_dask(data(6, 4), (2, 3))
    with pytest.raises(IndexError, match="out of range for axis 0 of length 6"):  # a known index raises at once
        x[xp.asarray([0, 6], device="dask")]
    late = x[at(x, [0, -7])]
    with pytest.raises(IndexError, match="out of range for axis 0 of length 6"):  # an index that is not known raises when it is computed
        late.numpy()


def test_values_for_a_mask_must_be_as_many() -> None:
    raw = data(6, 4)
    x = on_dask(raw, (2, 3))
    mask = x[:, 0] > 0.5
    count = int((raw[:, 0] > 0.5).sum())
    new = data(count + 1, 4) * 10
    for rows in (count, count + 1):
        y = x * 1
        y[mask] = on_dask(new[:rows])
        if rows == count:
            expected = raw.copy()
            expected[raw[:, 0] > 0.5] = new[:rows]
            np.testing.assert_allclose(y.numpy(), expected)
        else:
            with pytest.raises(ValueError, match=f"a mask picks {count} elements, but the value has {count + 1}"):
                y.numpy()


# -- schedulers ---------------------------------------------------------------------------------------------------------------------


def regression(w: Any) -> Any:
    x = xp.asarray(da.random.default_rng(0).normal(size=(400, 5), chunks=(50, 5)))
    error = x @ w - xp.sum(x, axis=1)
    return xp.mean(error * error)


def closed_form(w: Any) -> Any:
    x = da.random.default_rng(0).normal(size=(400, 5), chunks=(50, 5)).compute()
    return 2 * x.T @ (x @ w - x.sum(axis=1)) / 400


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="1GiB") as two,
        distributed.Client(two) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield


@pytest.mark.filterwarnings("ignore")  # NB: warnings of the cluster itself (ports, event loops) do not concern us
@pytest.mark.parametrize("where", ["synchronous", "threads", "cluster of 2 processes"])
def test_schedulers(where: str) -> None:
    start = np.linspace(-1, 1, 5)
    with cluster() if where.startswith("cluster") else contextlib.nullcontext():
        scheduler = "distributed" if where.startswith("cluster") else where
        with dask.config.set(scheduler=scheduler):
            w = xp.tensor(start, device="dask", requires_grad=True)
            loss = regression(w)
            loss.backward()
            assert w.grad is not None
            value, g = xpgrad_dask.compute(loss, w.grad)
            np.testing.assert_allclose(g, closed_form(start), rtol=1e-10)
            np.testing.assert_allclose(value, loss.item())
            (kept,) = xpgrad_dask.persist(w.grad)
            np.testing.assert_allclose(kept.numpy(), g)


# -- training -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["compute", "persist", None])
def test_graphs_do_not_grow_when_parameters_are_computed(kept: str | None) -> None:
    w = xp.zeros(5, dtype=xp.float64, device="dask").requires_grad_()
    sizes, losses = [], []
    for _ in range(5):
        loss = regression(w)
        loss.backward()
        assert w.grad is not None
        new = (w.detach() - 0.3 * w.grad).requires_grad_()
        sizes.append(len(dict(new.array.dask)))
        if kept == "compute":
            xp.compute(new, loss)
        w, loss = xpgrad_dask.persist(new, loss) if kept == "persist" else (new, loss)
        losses.append(loss)
    assert (sizes[1] == sizes[-1]) is (kept is not None)
    assert sizes[-1] > 3 * sizes[0] or kept
    values = [loss.item() for loss in losses]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.1 * values[0]


def test_compute_keeps_values_history_and_views(scheduler: Scheduler) -> None:
    raw, read = data(6, 4), []

    def load(block: Any) -> Any:
        read.append(block.shape)
        return block

    x = xp.asarray(da.from_array(raw, chunks=(2, 3)).map_blocks(load, meta=np.empty((0, 0)))).requires_grad_()
    y = x * x
    row = y[0]
    loss = xp.sum(y * y)
    loss.backward(retain_graph=True)
    xp.compute(loss, x.grad, y)
    assert len(read) == 6  # each chunk once, for all three
    assert scheduler.calls == 1
    assert x.grad is not None
    assert [len(dict(t.array.dask)) for t in (loss, x.grad, y)] == [1, 6, 6]  # one task for each chunk: its values
    np.testing.assert_allclose(x.grad.numpy(), 4 * raw**3, rtol=1e-12)
    row[1] = 0.0  # the write goes to the computed values
    expected = raw**2
    expected[0, 1] = 0.0
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-12)
    assert len(read) == 6
    xp.sum(y * y).backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * raw**3 + 4 * raw * expected, rtol=1e-12)


def test_persist_keeps_chunks_and_flags(scheduler: Scheduler) -> None:
    x = on_dask(data(6, 4), (2, 3)).requires_grad_()
    y, z = xpgrad_dask.persist(x * x, (x * 2).detach())
    assert scheduler.calls == 1
    assert y.is_leaf
    assert (y.requires_grad, z.requires_grad) == (True, False)
    assert y.array.chunks == x.array.chunks
    np.testing.assert_allclose(y.detach().numpy(), data(6, 4) ** 2)
    with pytest.raises(TypeError, match="to_device"):
        xpgrad_dask.persist(xp.asarray(1.0, device="numpy"))


# -- operands on other devices ------------------------------------------------------------------------------------------------------


def test_moves_are_differentiable_both_ways(scheduler: Scheduler) -> None:
    a = xp.tensor(data(3), device="numpy", requires_grad=True)
    b = xp.tensor(data(3), device="dask", requires_grad=True)
    y = a.to_device("dask") * b
    assert scheduler.calls == 0
    z = y.to_device("numpy") * xp.asarray([1.0, 2.0, 3.0], device="numpy")
    assert scheduler.calls == 1  # moving to the host needs values
    xp.sum(z).backward()
    assert a.grad is not None
    assert b.grad is not None
    assert (str(a.grad.device), str(b.grad.device)) == ("numpy", "dask")
    np.testing.assert_allclose(a.grad.numpy(), data(3) * [1, 2, 3])
    np.testing.assert_allclose(b.grad.numpy(), data(3) * [1, 2, 3])


def test_what_mixes(scheduler: Scheduler) -> None:
    x = on_dask(data(6, 4), (2, 3)).requires_grad_()
    factor = xp.tensor(3.0, device="numpy", requires_grad=True)
    y = factor * x
    assert str(y.device) == "dask"
    assert scheduler.calls == 0
    xp.sum(y).backward()
    assert factor.grad is not None
    assert str(factor.grad.device) == "numpy"
    np.testing.assert_allclose(factor.grad.numpy(), data(6, 4).sum())
    with pytest.raises(DeviceMismatchError, match=r"dask.*numpy|numpy.*dask"):
        x * xp.asarray(data(6, 4), device="numpy")
    before = scheduler.calls
    with pytest.raises(DeviceMismatchError):  # a 0-d lazy value is not computed implicitly
        xp.sum(x) * xp.asarray(data(3), device="numpy")
    assert scheduler.calls == before


# -- arrays ---------------------------------------------------------------------------------------------------------------------------


def test_an_array_that_its_owner_assigns_to_changes_no_gradient() -> None:
    raw = da.from_array(data(4), chunks=2)
    x = xp.asarray(raw).requires_grad_()
    y = xp.sum(x * x)
    raw[...] = 0
    y.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * data(4))


def test_values_that_come_back_cannot_change_a_graph() -> None:
    x = xp.asarray(data(4), device="dask")
    values = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 99.0
    np.testing.assert_allclose(x.numpy(), data(4))


def test_dask_is_not_imported_before_it_is_used() -> None:
    program = "import sys, xpgrad, xpgrad_dask; xpgrad.asarray([1.0]); xpgrad.backend_names(); assert 'dask' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_checkpoint_draws_the_same_random_numbers_again() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], device="dask", requires_grad=True)
    y = checkpoint(lambda xs: xs[0] * xp.asarray(da.random.normal(size=3, chunks=2)), [x])
    following = da.random.normal(size=3, chunks=2)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy() / [1.0, 2.0, 3.0])
    assert not np.any(following.compute() == da.random.normal(size=3, chunks=2).compute())


def test_repr() -> None:
    known = xp.asarray([1.0, 2.0], device="dask")
    assert repr(known) == "tensor([1., 2.], device='dask')"
    assert "dask.array<" in repr(known * 2)
    large = xp.asarray(np.zeros(2000), device="dask")
    assert "shape=(2000,)" in repr(large)


def test_capabilities_are_those_observed() -> None:
    caps = xp.asarray([1.0], device="dask").backend.capabilities
    x = da.from_array(np.arange(4.0), chunks=2)
    same = x.copy()
    same[:1] = 5.0
    shares = {
        "mutable": bool(x.compute()[0] == 5.0), "view_aliases": np.shares_memory(x[:2].compute(), same.compute()),
        "strides": hasattr(x, "strides"), "lazy": hasattr(x, "dask"), "dlpack": hasattr(x, "__dlpack__"),
        "boolean_indexing": (x[x > 1].compute() == [2, 3]).all(), "negative_step": (x[::-1].compute() == [3, 2, 1, 0]).all(),
        "data_dependent_shapes": (da.nonzero(x)[0].compute() == [1, 2, 3]).all(),
        "complex": (x * 1j).dtype == np.complex128, "float64": x.dtype == np.float64,
    }  # fmt: skip
    assert {name: getattr(caps, name) for name in shares} == {name: bool(value) for name, value in shares.items()}


def test_a_function_that_does_not_exist_is_named() -> None:
    xpk = xp.asarray([1.0], device="dask").backend.kernels
    with pytest.raises(CapabilityError, match=r"'dask' has no function `linalg\.schur`"):
        xpk.linalg.schur  # noqa: B018
    with pytest.raises(CapabilityError, match="no function `no_such_function`"):
        xpk.no_such_function  # noqa: B018


def test_complex_gradients() -> None:
    raw = data(4, 3, with_phase=True)
    x = on_dask(raw, (2, 3)).requires_grad_()
    xp.sum(xp.abs(x @ xp.conj(x.mT)) ** 2).backward()
    n = xp.tensor(raw, device="numpy", requires_grad=True)
    xp.sum(xp.abs(n @ xp.conj(n.mT)) ** 2).backward()
    assert x.grad is not None
    assert n.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), n.grad.numpy())


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("columns", [0, 2, 6])
@pytest.mark.parametrize("k", [-3, 0, 1, 4])
def test_identities_of_every_shape(rows: int, columns: int, k: int) -> None:
    """dask's `eye` fails if there are more columns than rows."""
    found = xp.eye(rows, columns, k=k, dtype=xp.float64, device="dask")
    np.testing.assert_array_equal(found.numpy(), np.eye(rows, columns, k))
