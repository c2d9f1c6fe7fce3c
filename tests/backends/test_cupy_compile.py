"""Law: a function compiled for CuPy gives the function's results at every call; if it cannot be captured, it runs uncompiled and warns.

The `check_` functions need CuPy: they run in a separate process on the stand-in made of NumPy (`support.fake_cupy`). There, a kernel that
is captured does not write its results, and kernels that should wait for each other and do not raise. NumPy's numbers are expected.
On a GPU: ``python -m pytest -o python_functions='check_*' tests/backends/test_cupy_compile.py``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import search_path

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_on_a_stand_in(devices: int) -> None:
    environment = {**os.environ, "PYTHONPATH": search_path(), "FAKE_CUPY_DEVICES": str(devices)}
    options = ["-p", "support.fake_cupy", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "python_functions=check_*"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "tests/backends/test_cupy_compile.py"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout


def graphs() -> Any:
    from xpgrad_cupy import _graphs

    return _graphs


def cupy() -> Any:
    import cupy as module

    return module


LAUNCHES: list[None] = []


def launches() -> int:
    return len(LAUNCHES)


@pytest.fixture(autouse=True)
def count_launches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count the launches of graphs, and assert after the check that no stream is capturing."""
    if not request.node.name.startswith("check_"):
        yield
        return
    launch = graphs()._Graph.__call__
    monkeypatch.setattr(graphs()._Graph, "__call__", lambda graph, *args: (LAUNCHES.append(None), launch(graph, *args))[1])
    profile = sys.getprofile()
    yield
    gc.collect()
    assert not [s for s in getattr(cupy().cuda.Stream, "all", ()) if s.is_capturing()]
    assert not getattr(cupy().cuda.Stream, "abandoned", 0)
    assert not graphs()._CAPTURING
    assert sys.getprofile() is profile


def make(values: Any, requires_grad: bool = True, device: str = "cupy") -> Any:
    return xp.tensor(np.asarray(values), requires_grad=requires_grad, device=device)


def points(number: int, shape: tuple[int, ...] = (3, 4), kind: str = "float64") -> list[Any]:
    rng = np.random.default_rng(number)
    found = [rng.uniform(0.5, 1.5, shape) for _ in range(2)]
    return [p + 1j * p[::-1] for p in found] if kind == "complex128" else [p.astype(kind) for p in found]


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a loss": lambda a, b: xp.sum(xp.sin(a) * b * b),
    "parts": lambda a, b: (a[1:] * b[:-1] ** 2, xp.sum(a * b), xp.argmax(b)),
    "a tree": lambda a, b: {"first": [a * b, (b**3,)], "none": a.detach()},
    "shapes": lambda a, b: xp.concat([a.T, xp.reshape(b, (4, 3))], axis=0)[::2] * xp.cumulative_sum(b.T, axis=0),
    "extremes": lambda a, b: xp.max(a * b, axis=1) + xp.where(a > b, a, b * b)[:, 0],
    "sorted": lambda a, b: xp.sum(xp.sort(a, axis=1)[:, 0] * b[:, 0]) * xp.astype(xp.argmin(a[0]), a.dtype),
    "in place": lambda a, b: (a * a).add_(b)[0] * b[1],
    "0-d": lambda a, b: (xp.mean(a), xp.sum(b) * a[0, 0]),
    "a view": lambda a, b: (a.T, a[0], b),
    "inner products": lambda a, b: (a[0] @ b[1]) * xp.vecdot(a, b),
    "empty": lambda a, b: (a[:0] * b[:0], xp.sum(a[:0]) + xp.sum(a * b)),
}  # fmt: skip


def flat(out: Any) -> list[Any]:
    if isinstance(out, dict):
        return flat(list(out.values()))
    return [t for item in out for t in flat(item)] if isinstance(out, (tuple, list)) else [out]


def numbers(function: Any, values: list[Any], device: str) -> list[Any]:
    """Return a function's results, the gradients of its sum of squares by `backward` and `grad`, and second gradients."""
    leaves = [make(v, device=device) for v in values]

    def loss(out: Any) -> Any:
        terms = [xp.sum(xp.abs(o) ** 2) for o in flat(out) if o.requires_grad]
        return sum(terms[1:], terms[0])

    out = function(*leaves)
    loss(out).backward()
    grads = [g for g in xp.autograd.grad(loss(function(*leaves)), leaves, create_graph=True, allow_unused=True) if g is not None]
    second = xp.autograd.grad(sum([xp.sum(xp.abs(g) ** 2) for g in grads[1:]], xp.sum(xp.abs(grads[0]) ** 2)), leaves, allow_unused=True)
    found = [*flat(out), *[leaf.grad for leaf in leaves], *grads, *second]
    return [None if g is None else np.asarray(g.detach().numpy()) for g in found]


@pytest.mark.parametrize("kind", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def check_numbers(name: str, kind: str) -> None:
    """The numbers agree at the first call and at calls that launch graphs, each with new arguments; no call runs uncompiled."""
    function = FUNCTIONS[name]
    if kind == "complex128" and name in ("parts", "extremes", "sorted"):
        function = FUNCTIONS["a tree"]  # complex numbers have no order
    compiled = xp.compile(function)
    for k in range(4):
        before = launches()
        found = numbers(compiled, points(k, kind=kind), "cupy")
        for a, b in zip(found, numbers(function, points(k, kind=kind), "numpy"), strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(a, b, rtol=1e-5 if kind == "float32" else 1e-12)
        assert launches() > before


def check_results_stay() -> None:
    """The results of a call have memory of their own: later calls and new arrays do not change them."""
    compiled = xp.compile(lambda a: (a * 2.0, xp.sum(a * a)))
    seen = []
    for k in range(4):
        x = make([1.0 + k, 2.0])
        outs = compiled(x)
        xp.sum(outs[0] * outs[1]).backward()
        seen.append((outs[0], outs[1], x.grad))
    for k, (double, square, grad) in enumerate(seen):
        a = np.asarray([1.0 + k, 2.0])
        assert double.tolist() == (2.0 * a).tolist()
        assert square.item() == np.sum(a * a)
        np.testing.assert_allclose(grad.numpy(), 2.0 * np.sum(a * a) + 2.0 * np.sum(a) * 2.0 * a)


def check_memory_is_private() -> None:
    """The intermediate memory of a graph is not given to other arrays."""
    compiled = graphs().CompiledFunction(lambda x: ((x * 2.0 + 1.0) * (x - 3.0),))
    (first,) = compiled(cupy().asarray(np.arange(4.0)))
    others = []
    for n in range(3):  # a new stream may have the capturing one's address, and so its memory
        with cupy().cuda.Stream(non_blocking=True) as stream:
            others += [cupy().asarray(np.full(4, 4.0 * n + k)) for k in range(4)]
            stream.synchronize()
    (second,) = compiled(cupy().asarray(np.arange(4.0) + 1.0))
    for k, other in enumerate(others):
        assert other.tolist() == [float(k)] * 4
    assert first.tolist() == ((np.arange(4.0) * 2.0 + 1.0) * (np.arange(4.0) - 3.0)).tolist()
    assert second.tolist() == ((np.arange(4.0) * 2.0 + 3.0) * (np.arange(4.0) - 2.0)).tolist()


def check_structures() -> None:
    """Results may be arguments, the same array twice, None, nested tuples, 0-d or empty arrays, and arrays of any strides."""

    def function(x: Any, nothing: Any, y: Any) -> Any:
        assert nothing is None
        twice = x + y
        return x, (twice, None, (twice, y.T)), x[:0], x.sum()

    compiled = graphs().CompiledFunction(function)
    wide = cupy().asarray(np.arange(48.0).reshape(6, 8))
    for k in range(3):
        # Strided, transposed and broadcast; the values change from call to call.
        x, y = (wide + float(k))[::2, ::2], (wide + float(k)).T[:4, :3].T
        for z in (y, cupy().broadcast_to(y[:, :1], (3, 4))):
            own, (twice, none, (again, turned)), empty, total = compiled(x, None, z)
            nx, nz = cupy().asnumpy(x), cupy().asnumpy(z)
            assert none is None
            for found, wanted in ((own, nx), (twice, nx + nz), (again, nx + nz), (turned, nz.T), (empty, nx[:0]), (total, nx.sum())):
                assert found.shape == wanted.shape
                np.testing.assert_array_equal(cupy().asnumpy(found), wanted)
            twice[...] = -1.0
            own[...] = -1.0
            turned[...] = -1.0
            np.testing.assert_array_equal(cupy().asnumpy(again), nx + nz)
            np.testing.assert_array_equal(cupy().asnumpy(x), nx)
            np.testing.assert_array_equal(cupy().asnumpy(z), nz)
    assert len(compiled.graphs) == 2


def check_layouts_are_those_of_the_function() -> None:
    function = graphs().CompiledFunction(lambda x: (x * 2.0, x.T * 3.0))
    for order in "CFCF":
        x = cupy().asarray(np.asarray(np.arange(6.0).reshape(2, 3), order=order))
        eager = (x * 2.0).strides, (x.T * 3.0).strides
        assert tuple(r.strides for r in function(x)) == eager
    assert launches() > 0


def check_signatures_and_their_number() -> None:
    compiled = graphs().CompiledFunction(lambda x: (x * 2,))
    limit = graphs().LIMIT
    for _ in range(2):
        for dtype in ("float64", "int64"):
            for n in range(limit):
                x = np.arange(n).astype(dtype)
                (found,) = compiled(cupy().asarray(x))
                assert found.dtype == dtype
                assert found.tolist() == (x * 2).tolist()
                assert len(compiled.graphs) <= limit
    kept = [weak for weak in compiled.graphs.values() if weak is not None]
    assert len(kept) == limit
    before = launches()
    compiled(cupy().asarray(np.arange(limit - 1)))
    compiled(cupy().asarray(np.arange(0)))  # the least recently used one was dropped
    compiled(cupy().asarray(np.arange(limit)))
    assert launches() == before + 2
    compiled(cupy().asarray(np.arange(0)))
    assert launches() == before + 3


def _synchronous(x: Any) -> Any:
    y = x * 2.0
    return xp.sum(y) if y.detach().numpy()[0] > 0.0 else xp.sum(-y)


def _raises_when_captured(x: Any) -> Any:
    y = x * 2.0
    if cupy().cuda.get_current_stream().is_capturing():
        msg = "not here"
        raise ValueError(msg)
    return xp.sum(y)


def _no_memory(x: Any) -> Any:
    y = x * 2.0
    if cupy().cuda.get_current_stream().is_capturing():
        raise MemoryError
    return xp.sum(y)


def _invalidates(x: Any) -> Any:
    """Invalidate a capture without letting an exception out."""
    y = x * 2.0
    with contextlib.suppress(RuntimeError):
        cupy().cuda.get_current_stream().synchronize()
    return xp.sum(y)


def _other_stream(x: Any) -> Any:
    backend = type(x).backend
    backend.record_event(backend.current_stream(x.device))
    return xp.sum(x * 2.0)


def _other_thread(x: Any) -> Any:
    backend = type(x).backend
    with backend.stream_guard(backend.current_stream(x.device)):
        return xp.sum(x * 2.0)


UNCAPTURED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cuBLAS": (lambda x: (x[:, None] * x) @ x @ x, "NotImplementedError: calling cuBLAS"),
    "a value": (_synchronous, "RuntimeError: the current stream is capturing"),
    "a mask": (lambda x: xp.sum(x[x > 0.0] * 2.0), "RuntimeError: the current stream is capturing"),
    "an array of the host": (lambda x: xp.sum(x * xp.asarray([1.0, 2.0, 3.0], device="cupy")), "H2D transfers"),
    "an exception": (_raises_when_captured, "ValueError: not here"),
    "no memory": (_no_memory, "MemoryError"),
    "a Fourier transform": (lambda x: xp.sum(xp.abs(xp.fft.rfft(x)) ** 2), "a Fourier transform cannot be captured"),
    "a synchronisation": (_invalidates, "operation failed due to a previous error during capture"),
    "streams": (_other_stream, "over several streams cannot be captured"),
    "threads": (_other_thread, "in another thread cannot be captured"),
}


@pytest.mark.parametrize("name", list(UNCAPTURED))
def check_what_cannot_be_captured_runs_as_it_is(name: str) -> None:
    """If a function cannot be captured, its numbers are right, there is one warning, and streams still work."""
    function, cause = UNCAPTURED[name]

    def run(x: Any) -> Any:
        return function(x)

    compiled = xp.compile(run)
    before = launches()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(3):
            for n in (3, 3 if name == "an array of the host" else 5):  # with another signature
                values = np.linspace(-1.0, 2.0 + k, n)
                x = make(values)
                out = compiled(x)
                (out * 2.0).backward()
                if name in ("cuBLAS", "a Fourier transform"):
                    y = make(values, device="numpy")
                    wanted = run(y)
                    (wanted * 2.0).backward()
                    np.testing.assert_allclose(out.item(), wanted.item())
                    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-12)
                    continue
                slope = {"a value": -2.0, "a mask": 2.0 * (values > 0.0), "an array of the host": np.asarray([1.0, 2.0, 3.0])}.get(
                    name, 2.0
                )
                np.testing.assert_allclose(out.item(), np.sum(slope * values))
                np.testing.assert_allclose(x.grad.numpy(), 2.0 * slope * np.ones(n))
    assert [w.category for w in told] == [UserWarning]
    assert "'run' runs as it is on CuPy" in str(told[0].message)
    assert cause in str(told[0].message)
    assert told[0].filename == __file__
    assert launches() - before <= 5  # for the scaling of gradients, which is captured
    (after,) = graphs().CompiledFunction(lambda x: (x * 2.0,))(cupy().asarray(np.ones(3)))
    assert after.tolist() == [2.0] * 3


def check_each_function_is_reported() -> None:
    for _ in range(2):
        with pytest.warns(UserWarning, match="cuBLAS"):
            xp.compile(lambda x: x @ x)(make([[1.0, 2.0], [3.0, 4.0]]))


def check_an_interruption_goes_through() -> None:
    """An interrupt propagates, and leaves no stream capturing (see `clean`) and no partial graph behind."""
    times = []

    def function(x: Any) -> Any:
        times.append(None)
        y = x * 2.0
        if len(times) == 2:
            raise KeyboardInterrupt
        return (y,)

    compiled = graphs().CompiledFunction(function)
    with pytest.raises(KeyboardInterrupt):
        compiled(cupy().asarray(np.ones(3)))
    for k in range(3):
        (found,) = compiled(cupy().asarray(np.full(3, float(k))))
        assert found.tolist() == [2.0 * k] * 3


def check_short_of_memory() -> None:
    """A pool that is short of memory frees its unused blocks, but not those that the capture has used."""
    fake = sys.modules.get("support.fake_cupy")
    if fake is None:
        pytest.skip("a GPU's memory would have to be full")
    gone: list[Any] = []

    class Short(fake.MemoryPool):  # type: ignore[misc]
        def malloc(self, size: int) -> Any:
            if cupy().cuda.get_current_stream().is_capturing():
                gone.append(size)
                self.free_all_blocks()
            return super().malloc(size)

    def function(x: Any) -> Any:
        y = x * 2.0
        y = y + 1.0
        y = y * x
        return (y - 1.0,)

    compiled = graphs().CompiledFunction(function)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy().cuda, "MemoryPool", Short)
        compiled(cupy().asarray(np.ones(3)))
    assert gone
    (graph,) = compiled.graphs.values()
    for work, read, written in graph.graph.tape:
        del work
        for x in (*read, *written):
            owner = fake._buffer(x)
            assert any(owner is block.mem.buffer for block in graph.blocks)


def check_streams_wait_for_one_another() -> None:
    """Calls on two independent streams use the graph's memory in turn; otherwise the stand-in raises."""
    streams = [cupy().cuda.Stream(non_blocking=True) for _ in range(2)]
    compiled = xp.compile(lambda a: xp.sum(xp.sin(a) * a))
    kept = []
    for k in range(6):
        with streams[k % 2]:
            x = make(np.asarray([1.0, 2.0]) + k)
            loss = compiled(x)
            loss.backward()
            kept.append((k, loss, x.grad))
    for k, loss, grad in kept:
        a = np.asarray([1.0, 2.0]) + k
        with streams[k % 2]:
            np.testing.assert_allclose(loss.item(), np.sum(np.sin(a) * a))
            np.testing.assert_allclose(grad.numpy(), np.sin(a) + a * np.cos(a))


def check_a_launch_that_fails_after_is_waited_for() -> None:
    """If memory for the results is missing after a launch, the next call still waits for the graph."""
    compiled = graphs().CompiledFunction(lambda x: (x * 2.0,))
    streams = [cupy().cuda.Stream(non_blocking=True) for _ in range(2)]
    with streams[0]:
        x = cupy().asarray(np.ones(3))
        compiled(x)

        def no_memory(size: int) -> Any:
            raise MemoryError

        with pytest.raises(MemoryError), cupy().cuda.using_allocator(no_memory):
            compiled(x)
    with streams[1]:
        (found,) = compiled(cupy().asarray(np.full(3, 5.0)))
        assert found.tolist() == [10.0] * 3


def check_threads() -> None:
    """Threads with separate streams and arguments share one graph."""
    compiled = xp.compile(lambda a: xp.sum(xp.exp(a) * a))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(make([0.0, 0.0])).backward()  # captures the function
        cupy().cuda.Device(0).synchronize()
        failures: list[Any] = []

        def work(number: int) -> None:
            try:
                with cupy().cuda.Stream(non_blocking=True):
                    for k in range(8):
                        a = np.asarray([0.1 * k, 0.01 * number])
                        x = make(a)
                        loss = compiled(x)
                        loss.backward()
                        np.testing.assert_allclose(loss.item(), np.sum(np.exp(a) * a))
                        np.testing.assert_allclose(x.grad.numpy(), np.exp(a) * (a + 1.0))
            except BaseException as exc:  # noqa: BLE001 (handed to the test)
                failures.append(exc)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


class Holder:
    """An object in whose attribute a function finds a constant."""

    table: Any = None


GLOBAL: list[Any] = [None]
RAW: Any = None


def check_constants_live_as_long_as_the_graph() -> None:
    """If a name is bound to another array, the graph keeps reading the old one, whose memory is not reused."""
    global RAW
    local, holder = make([1.0, 2.0], False), Holder()
    holder.table, GLOBAL[0], RAW = make([10.0, 20.0], False), make([3.0, 4.0], False), cupy().asarray(np.asarray([5.0, 6.0]))

    def function(x: Any) -> Any:
        return x * local + holder.table * x + xp.concat([GLOBAL[0], x]).reshape((2, 2))[0] + xp.asarray(RAW + 1.0)

    compiled = xp.compile(function)
    compiled(make([1.0, 1.0]))
    local = holder.table = GLOBAL[0] = RAW = None
    gc.collect()
    others = [cupy().asarray(np.full(2, float(k))) for k in range(40)]
    assert compiled(make([1.0, 2.0])).tolist() == [1.0 + 10.0 + 3.0 + 6.0, 4.0 + 40.0 + 4.0 + 7.0]
    assert [o.tolist() for o in others] == [[float(k)] * 2 for k in range(40)]


def check_writes_to_constants_are_seen() -> None:
    """A graph sees in-place writes to a constant, whose memory it reads (unlike JAX, whose arrays are immutable)."""
    table = make([1.0, 2.0], False)
    compiled = xp.compile(lambda x: x * table)
    for k in range(3):
        assert compiled(make([1.0, 1.0])).tolist() == [1.0 + k, 2.0 + k]
        table += 1.0


def check_inside_of_a_capture() -> None:
    """The caller's capture records the function's kernels, whether the function was captured before or not."""
    for known in (False, True):
        compiled = graphs().CompiledFunction(lambda x: (x * 2.0 + 1.0, x))
        x = cupy().asarray(np.ones(3))
        if known:
            compiled(x)
        cupy().cuda.Device(0).synchronize()
        before = len(compiled.graphs)
        stream, pool = cupy().cuda.Stream(non_blocking=True), cupy().cuda.MemoryPool()
        with stream, cupy().cuda.using_allocator(pool.malloc):
            stream.begin_capture()
            out, same = compiled(x)
            graph = stream.end_capture()
        assert len(compiled.graphs) == before
        with stream:
            x[...] = 5.0
            graph.launch()
            assert out.tolist() == [11.0] * 3
            assert same.tolist() == [5.0] * 3


def check_compiled_inside_of_compiled() -> None:
    inner = xp.compile(lambda a: a * a)
    outer = xp.compile(lambda a: xp.sum(inner(a) * a))
    for k in range(3):
        x = make([1.0, 2.0 + k])
        outer(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 3.0 * np.asarray([1.0, 2.0 + k]) ** 2)


def check_arguments_are_not_shared() -> None:
    """A write to a result changes neither the arguments nor the constants, whether captured or not."""
    table = make([7.0, 8.0], False)
    for function in (lambda x: (x, x[::-1], table), lambda x: (x, x[::-1], table, x @ x)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = xp.compile(function)
            for _ in range(3):
                x = make([1.0, 2.0], False)
                for out in compiled(x)[:3]:
                    out += 10.0
                assert x.tolist() == [1.0, 2.0]
                assert table.tolist() == [7.0, 8.0]


def check_refused_functions_have_not_written() -> None:
    x = make([1.0, 2.0], False)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="writes to one of its arguments"):
            xp.compile(lambda y: xp.sum(y.mul_(2.0)))(x)
        assert x.tolist() == [1.0, 2.0]


def check_each_device_has_its_graphs() -> None:
    compiled = xp.compile(lambda a: xp.sum(a * a))
    count = cupy().cuda.runtime.getDeviceCount()
    for k in range(3):
        for number in range(count):
            x = make([1.0 + k, 2.0 + number], device=f"cupy:{number}")
            compiled(x).backward()
            assert str(x.grad.device) == f"cupy:{number}"
            assert x.grad.tolist() == [2.0 + 2.0 * k, 4.0 + 2.0 * number]
    raw = graphs().CompiledFunction(lambda a: (a + 1.0,))
    for number in (*range(count), *range(count)):
        with cupy().cuda.Device(number):
            x = cupy().asarray(np.zeros(2))
        (found,) = raw(x)  # on either current device
        assert found.device.id == number
        with found.device:
            assert found.tolist() == [1.0, 1.0]
    assert len(raw.graphs) == count


def check_dropped_graphs_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the compiled function is freed, by reference counting or the collector, its graphs and their memory are freed."""
    import weakref

    # CuPy's own class has no weak references.
    monkeypatch.setattr(cupy().cuda, "Memory", type("Memory", (cupy().cuda.Memory,), {}))
    compiled = graphs().CompiledFunction(lambda x: (x * 2.0,))
    compiled(cupy().asarray(np.ones(3)))
    (graph,) = compiled.graphs.values()
    dead = [weakref.ref(graph), *[weakref.ref(block.mem) for block in graph.blocks]]
    assert len(dead) > 2
    del graph, compiled
    gc.collect()
    assert [d() for d in dead] == [None] * len(dead)
