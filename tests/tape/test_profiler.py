"""Law: a profile shows each operation and each node once and in the right place, changes no result, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import html.parser
import itertools
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad import func
from xpgrad._modes import state
from xpgrad._operations import watching
from xpgrad._rows.row import ROWS
from xpgrad.autograd import _profile_recording, profiler
from xpgrad.autograd.graph import saved_tensors_hooks
from xpgrad.autograd.profiler import EventList, FunctionEvent, profile, record_function
from xpgrad.utils.checkpoint import checkpoint

FORWARD, BACKWARD, RANGE = 0, 1, 7
#: The operations of random programs: the event's name, the node's name, and the number of operands.
OPERATIONS: dict[str, tuple[Callable[..., Any], str, int]] = {
    "add": (lambda x, y: x + y, "AddBackward0", 2), "multiply": (lambda x, y: x * y, "MulBackward0", 2),
    "tanh": (xp.tanh, "TanhBackward0", 1), "sin": (xp.sin, "SinBackward0", 1), "matmul": (lambda x, y: x @ y, "MmBackward0", 2),
    "matrix_transpose": (xp.matrix_transpose, "TransposeBackward0", 1), "flip": (xp.flip, "FlipBackward0", 1),
    "concat": (lambda x, y: xp.concat([x, y])[:3], "CatBackward0", 2), "exp": (lambda x: xp.exp(x * 0.01), "ExpBackward0", 1),
}  # fmt: skip


def tensor(shape: tuple[int, ...], device: str, seed: int = 0, requires_grad: bool = True) -> Any:
    found = xp.tensor(np.random.default_rng(seed).uniform(-1.0, 1.0, shape).tolist(), dtype=xp.float32, device=device)
    return found.requires_grad_() if requires_grad else found


def random_program(seed: int, length: int = 8) -> Callable[..., tuple[Any, Counter[str]]]:
    """Return a random program of (3, 3) Tensors, which returns a scalar and the number of calls of each operation."""
    rng = random.Random(seed)
    steps = [(rng.choice(list(OPERATIONS)), rng.random(), rng.random()) for _ in range(length)]

    def program(*leaves: Any) -> tuple[Any, Counter[str]]:
        values, calls = list(leaves), Counter()
        for name, a, b in steps:
            function, _, count = OPERATIONS[name]
            picked = [values[int(r * len(values))] for r in (a, b)[:count]]
            values.append(function(*picked))
            calls[name] += 1
            if name == "concat":
                calls["getitem"] += 1
            if name == "exp":
                calls["multiply"] += 1
        whole = functools.reduce(lambda x, y: x + y, values)
        out = xp.sum(whole * xp.sin(whole))
        calls += Counter({"add": len(values) - 1, "multiply": 1, "sin": 1, "sum": 1})
        return out, calls

    return program


def graph(root: Any) -> list[Any]:
    """Return each node below a result once."""
    found, open_ = [root.grad_fn], [root.grad_fn]
    while open_:
        for node, _ in open_.pop().next_functions:
            if node is not None and node not in found:
                found.append(node)
                open_.append(node)
    return found


def names(events: Any, scope: int) -> list[str]:
    return [e.name for e in events if e.scope == scope]


def tree(prof: profile) -> list[tuple[str, Any]]:
    """Return the events as names, each with the list of the events inside it if it has any."""

    def one(event: FunctionEvent) -> Any:
        return (event.name, [one(c) for c in event.cpu_children]) if event.cpu_children else event.name

    return [one(e) for e in prof.function_events if e.cpu_parent is None]


def host(x: Any) -> np.ndarray:
    return np.asarray(x.to_device("numpy").array)


# -- laws over random programs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_each_operation_and_node_is_one_event(seed: int, xpgrad_device: str) -> None:
    leaves = [tensor((3, 3), xpgrad_device, k) for k in range(2)]
    with profile() as prof:
        out, calls = random_program(seed)(*leaves)
        nodes = Counter(node.name() for node in graph(out))
        out.backward()
    # NB: if arrays have no operators, the formulas are operations on Tensors.
    events = [e for e in prof.function_events if e.cpu_parent is None or e.cpu_parent.scope != BACKWARD]
    assert Counter(names(events, FORWARD)) == calls
    assert Counter(names(events, BACKWARD)) == nodes
    averages = {e.key: e.count for e in EventList(events).key_averages()}
    assert averages == {**calls, **nodes}
    for event in events:
        if event.scope == BACKWARD and event.name != "AccumulateGrad":
            assert event.forward.scope == FORWARD
            assert event.forward.sequence_nr == event.sequence_nr >= 0
    pairs = {(e.forward.name, e.name) for e in events if e.forward is not None}
    nodes_of = {name: node for name, (_, node, _) in OPERATIONS.items()}
    assert {pair for pair in pairs if nodes_of.get(pair[0], pair[1]) != pair[1]} == set()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_the_same_bit_by_bit(seed: int, create_graph: bool, xpgrad_device: str) -> None:
    def gradients(*, inside: bool) -> list[np.ndarray]:
        leaves = [tensor((3, 3), xpgrad_device, k) for k in range(2)]
        with profile(inside, record_shapes=True, profile_memory=True, with_stack=True, synchronize=True):
            out, _ = random_program(seed)(*leaves)
            found = xp.autograd.grad(out, leaves, create_graph=create_graph, retain_graph=True)
            if create_graph:
                found += xp.autograd.grad(xp.sum(found[0] ** 2), leaves, retain_graph=True)
            out.backward()
        return [host(out), *(host(g) for g in (*found, leaves[0].grad, leaves[1].grad))]

    for a, b in zip(gradients(inside=False), gradients(inside=True), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_what_nodes_keep_is_what_hooks_on_saved_values_see(seed: int, xpgrad_device: str) -> None:
    leaves = [tensor((3, 3), xpgrad_device, k) for k in range(2)]
    seen = 0

    def pack(x: Any) -> Any:
        nonlocal seen
        seen += x.nbytes
        return x

    with saved_tensors_hooks(pack, lambda x: x):
        random_program(seed)(*leaves)
    with profile(profile_memory=True) as prof, record_function("all"):
        random_program(seed)(*leaves)
    (whole, *_) = prof.function_events
    assert whole.saved_bytes == seen
    assert whole.self_saved_bytes == 0
    assert sum(e.self_saved_bytes for e in prof.function_events) == seen == prof.total_average().self_saved_bytes
    with profile(profile_memory=True) as prof, saved_tensors_hooks(lambda x: x, lambda x: x):
        random_program(seed)(*leaves)
    assert prof.total_average().saved_bytes == 0  # the memory belongs to the hooks
    with profile() as prof:
        random_program(seed)(*leaves)
    assert prof.total_average().saved_bytes == 0  # memory was not asked for


@pytest.mark.parametrize("seed", range(3))
def test_events_nest_and_self_times_add_up(seed: int) -> None:
    leaves = [tensor((3, 3), "numpy", k) for k in range(2)]
    with profile() as prof:
        for k in range(2):
            with record_function(f"round {k}"):
                out, _ = random_program(seed + k)(*leaves)
                (g, _) = xp.autograd.grad(out, leaves, create_graph=True)
                xp.sum(g * g).backward()
    events = prof.function_events
    assert any(e.cpu_parent is not None and e.cpu_parent.scope == BACKWARD for e in events)  # recorded formulas
    for event in events:
        assert event.time_range.start <= event.time_range.end
        assert event.self_cpu_time_total >= 0
        for child in event.cpu_children:
            assert child.cpu_parent is event
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end
        for before, after in itertools.pairwise(event.cpu_children):
            assert before.time_range.end <= after.time_range.start
    top = sum(e.cpu_time_total for e in events if e.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(top)
    assert prof.total_average().self_cpu_time_total == pytest.approx(top)


def test_self_time_counts_what_overlaps_once() -> None:
    def event(start: int, end: int, *children: FunctionEvent) -> FunctionEvent:
        found = FunctionEvent(0, "e", 0, FORWARD)
        found.start, found.end, found.cpu_children = start * 1000, end * 1000, list(children)
        return found

    assert event(0, 10).self_cpu_time_total == 10.0
    assert event(0, 10, event(1, 3), event(5, 6)).self_cpu_time_total == 7.0
    assert event(0, 10, event(1, 5), event(3, 6), event(4, 5)).self_cpu_time_total == 5.0  # several threads
    assert event(0, 10, event(1, 6), event(2, 3), event(5, 7)).self_cpu_time_total == 4.0
    assert event(0, 10, event(8, 15)).self_cpu_time_total == 8.0  # a thread that goes on
    assert event(2, 10, event(2, 10)).self_cpu_time_total == 0.0


# -- nothing is left behind --------------------------------------------------------------------------------------------------


def class_functions(device: str) -> dict[str, Any]:
    """Return the functions in the Tensor class of a device's backend."""
    base = type(tensor((1,), device)).backend.tensor_base
    return {name: method for name, method in vars(base).items() if callable(method)}


@pytest.mark.parametrize("fails", [None, "forward", "backward", "operation"])
def test_afterwards_everything_is_as_before(fails: str | None, xpgrad_device: str) -> None:
    leaves = [tensor((3, 3), xpgrad_device, k) for k in range(2)]
    for seed in range(4):
        random_program(seed)(*leaves)[0].backward()  # everything that is created at first use now exists
    before, mode = class_functions(xpgrad_device), state.current()

    def refuse(g: Any) -> None:
        raise KeyError

    prof = profile(profile_memory=True)
    with contextlib.suppress(KeyError, ValueError, RuntimeError, TypeError), prof:
        assert any(class_functions(xpgrad_device)[name] is not method for name, method in before.items())
        out, _ = random_program(1)(*leaves)
        if fails == "forward":
            raise KeyError
        if fails == "operation":
            xp.matmul(leaves[0], tensor((4, 4), xpgrad_device))
        if fails == "backward":
            out.register_hook(refuse)
        out.backward()
    after = class_functions(xpgrad_device)
    assert {name: after[name] for name in before} == before
    assert all(after[name] is before[name] for name in before)
    assert state.current() is mode
    assert not any(watching._WATCHERS.values())
    assert all(e.end is not None for e in prof.function_events)
    assert _profile_recording._OPEN.get() is None
    seen = len(prof.function_events)
    random_program(1)(*leaves)[0].backward()
    assert len(prof.function_events) == seen > 0


def test_while_it_is_off_the_methods_are_those_of_the_rows() -> None:
    x = tensor((3,), "numpy")
    multiply = type(x).__mul__
    text = multiply.__code__.co_filename
    with profile():
        assert type(x).__mul__ is not multiply
        assert "watched" in type(x).__mul__.__code__.co_filename
    assert type(x).__mul__ is multiply
    assert "watched" not in text
    with profile(enabled=False) as prof:
        assert type(x).__mul__ is multiply
        x * x
    assert prof.function_events == []


def test_importing_xpgrad_does_not_load_it() -> None:
    code = "import sys, xpgrad.autograd; assert 'xpgrad.autograd.profiler' not in sys.modules; xpgrad.autograd.profiler.profile"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


# -- where operations run --------------------------------------------------------------------------------------------------


class Square(xp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Within(xp.autograd.Function):
    """A Function whose backward runs another pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x + 0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with xp.enable_grad():
            inner = x.detach().requires_grad_()
            xp.sin(inner).backward(xp.ones_like(inner))
        return inner.grad * g


def _in_place(x: Any) -> None:
    y = x.detach().clone()
    with xp.no_grad():
        y *= 2.0
        y[0] = 1.0


#: Code that runs on a Tensor of three elements, and the events that it makes.
RUNS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "without grad": (xp.no_grad()(lambda x: xp.sin(x) + 1), ["sin", "add"]),
    "inference mode": (xp.inference_mode()(lambda x: xp.sin(x) + 1), ["sin", "add"]),
    "a label": (record_function("label")(lambda x: xp.sin(x)), [("label", ["sin"])]),
    "labels": (record_function("outer")(record_function("inner")(xp.sin)), [("outer", [("inner", ["sin"])])]),
    "a Function": (
        lambda x: Square.apply(x).backward(xp.ones_like(x)),
        [("Square", ["multiply"]), ("SquareBackward", ["multiply", "multiply"]), "AccumulateGrad"],
    ),
    "a pass inside of a pass": (
        lambda x: xp.sum(Within.apply(x)).backward(),
        [("Within", ["add"]), "sum", "SumBackward1", ("WithinBackward", ["sin", "SinBackward0", "AccumulateGrad", "multiply"]),
         "AccumulateGrad"],
    ),
    "a checkpoint": (
        lambda x: xp.sum(checkpoint(xp.sin, x, use_reentrant=False)).backward(),
        ["sin", "sum", "SumBackward1", ("SinBackward0", ["sin"]), "AccumulateGrad"],
    ),
    "a compiled function": (
        xp.compile(lambda x: xp.sum(xp.sin(x) * x)), ["<lambda>"],
    ),
    "grad of the transforms": (lambda x: func.grad(lambda v: xp.sin(v[0]))(x.detach()),
        ["getitem", "sin", "SinBackward0", "SliceBackward0"]),
    "vmap": (lambda x: func.vmap(xp.sin)(x.detach()), ["sin"]),
    "tangents": (lambda x: func.jvp(xp.sin, (x.detach(),), (xp.ones_like(x.detach()),)), ["alias", "sin", "cos", "multiply"]),
    "writing": (_in_place, ["multiply_", "setitem"]),
    "recorded formulas": (
        lambda x: xp.autograd.grad(xp.sin(x), x, xp.ones_like(x), create_graph=True),
        ["sin", ("SinBackward0", ["cos", "multiply"])],
    ),
    "no operation": (lambda x: x.detach().shape, []),
    "a constant result": (lambda x: xp.any(x > 0), ["greater", "any"]),
}  # fmt: skip


@pytest.mark.parametrize("case", RUNS)
def test_where_operations_run(case: str) -> None:
    run, expected = RUNS[case]
    run(tensor((3,), "numpy"))
    with profile() as prof:
        run(tensor((3,), "numpy"))
    found = tree(prof)
    found = [e for e in found if e not in ("copy", "astype", "clone", "asarray", "positive")]
    assert found == expected


def test_a_compiled_function_is_one_event_forward_and_one_backward(xpgrad_device: str) -> None:
    @xp.compile
    def loss(x: Any) -> Any:
        return xp.sum(xp.sin(x) * x)

    x = tensor((3,), xpgrad_device)
    for _ in range(2):
        with profile(profile_memory=True) as prof:
            loss(x).backward()
        forward, backward, leaf = prof.function_events
        assert (forward.name, backward.name, leaf.name) == ("loss", "CompiledBackward0", "AccumulateGrad")
        assert backward.forward is forward
        assert forward.self_saved_bytes == 2 * x.nbytes  # the argument and its gradient


def test_a_checkpoint_keeps_nothing() -> None:
    x = tensor((3,), "numpy")
    with profile(profile_memory=True) as prof:
        y = checkpoint(lambda x: xp.sin(xp.exp(x)), x, use_reentrant=False)
        forward = prof._recording.events[:]
        y.backward(xp.ones_like(x))
    assert {e.name: e.self_saved_bytes for e in forward} == {"exp": 0, "sin": 0}
    with profile(profile_memory=True) as prof:
        xp.sin(xp.exp(x))
    assert {e.name: e.self_saved_bytes for e in prof.function_events} == {"exp": x.nbytes, "sin": x.nbytes}


def test_each_pass_through_a_graph_is_seen() -> None:
    x = tensor((3,), "numpy")
    with profile() as prof:
        y = xp.sum(xp.sin(x))
        y.backward(retain_graph=True)
        y.backward()
    sine = next(e for e in prof.function_events if e.name == "sin")
    assert [e.forward for e in prof.function_events if e.name == "SinBackward0"] == [sine, sine]


def test_a_pass_beside_another_finds_the_operations() -> None:
    """A nested pass, which runs on copies of the nodes, still links backward events to their operations."""
    x = tensor((3,), "numpy")
    with profile() as prof:
        y = xp.sin(x)
        other = xp.sum(y * 3.0)
        y.register_hook(lambda g: other.backward(retain_graph=True) if g.shape and float(g[0]) == 2.0 else None)
        xp.sum(y * 2.0).backward(retain_graph=True)
    sines = [e for e in prof.function_events if e.name == "SinBackward0"]
    assert [e.forward.name for e in sines] == ["sin", "sin"]


def test_nodes_without_a_gradient_do_not_run() -> None:
    class Cut(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x = tensor((3,), "numpy")
    with profile() as prof:
        xp.sum(Cut.apply(xp.sin(x))).backward()
    assert names(prof.function_events, BACKWARD) == ["SumBackward1", "CutBackward"]


def test_targets_are_not_nodes_that_run() -> None:
    x = tensor((3,), "numpy")
    y = xp.sin(x)
    with profile() as prof:
        xp.autograd.grad(xp.sum(xp.exp(y)), y)
    assert names(prof.function_events, BACKWARD) == ["SumBackward1", "ExpBackward0"]
    with profile() as prof:
        xp.autograd.grad(xp.sum(xp.exp(xp.sin(x))), x)
    assert names(prof.function_events, BACKWARD) == ["SumBackward1", "ExpBackward0", "SinBackward0"]


def test_other_threads_are_seen_in_a_copy_of_the_context_only() -> None:
    x = tensor((3,), "numpy", requires_grad=False)
    xp.sin(x)
    with profile() as prof, record_function("around"):
        for run in (lambda: xp.cos(x), functools.partial(contextvars.copy_context().run, xp.sin, x)):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    around, sine = prof.function_events
    assert (sine.name, sine.cpu_parent) == ("sin", around)
    assert sine.thread != around.thread == threading.get_ident()


def test_profiles_of_two_threads_do_not_mix() -> None:
    x = tensor((3,), "numpy", requires_grad=False)
    barrier, found = threading.Barrier(2, timeout=60), {}

    def run(function: Any) -> None:
        with profile() as prof:
            barrier.wait()
            function(x)
            barrier.wait()
        found[function] = [e.name for e in prof.function_events]

    functions = [xp.sin, xp.cos]
    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [found[f] for f in functions] == [["sin"], ["cos"]]
    assert not any(watching._WATCHERS.values())


def test_passes_nested_too_deeply_for_one_stack() -> None:
    class Deeper(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x + 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth:
                with xp.enable_grad():
                    Deeper.apply(xp.tensor(1.0, requires_grad=True), ctx.depth - 1).backward()
            return g, None

    with profile() as prof:
        Deeper.apply(xp.tensor(1.0, requires_grad=True), 30).backward()
    events = [e for e in prof.function_events if e.name == "DeeperBackward"]
    assert len(events) == 31
    assert all(e.cpu_parent is before for before, e in itertools.pairwise(events))
    assert len({e.thread for e in events}) == 2
    assert all(e.self_cpu_time_total >= 0 for e in prof.function_events)


def test_what_began_in_a_profile_may_end_after_it() -> None:
    label, x = record_function("label"), tensor((3,), "numpy")
    with profile() as prof:
        label.__enter__()
        context = contextvars.copy_context()
    label.__exit__(None, None, None)
    context.run(xp.sin, x)
    context.run(lambda: Square.apply(x).backward(xp.ones_like(x)))
    assert [e.name for e in prof.function_events] == ["label"]
    (label_event,) = prof.function_events

    def again() -> Any:
        with profile() as prof:
            xp.sin(x)
        return prof

    assert [(e.name, e.cpu_parent) for e in context.run(again).function_events] == [("sin", None)]
    assert label_event.cpu_children == []
    with profile() as prof:
        xp.sin(x)
    assert [(e.name, e.cpu_parent) for e in prof.function_events] == [("sin", None)]


def test_ranges() -> None:
    x = tensor((3,), "numpy")

    @record_function("fall")
    def fall(n: int) -> Any:
        """The docstring."""
        return fall(n - 1) if n else xp.sin(x)

    fall(1)  # without a profile it does nothing
    assert fall.__doc__ == "The docstring."
    with profile() as prof:
        fall(2)
        with pytest.raises(KeyError), record_function("fails", "with arguments"):
            raise KeyError
        xp.sin(x)
    assert tree(prof) == [("fall", [("fall", [("fall", ["sin"])])]), "fails", "sin"]
    ranges = [e for e in prof.function_events if e.is_user_annotation]
    assert [e.args for e in ranges] == [None, None, None, "with arguments"]
    assert {e.scope for e in ranges} == {RANGE}


# -- what is recorded on request -------------------------------------------------------------------------------------------


def test_shapes() -> None:
    w, x = tensor((2, 3), "numpy"), tensor((3, 4), "numpy", requires_grad=False)
    with profile(record_shapes=True) as prof:
        for _ in range(2):
            xp.sum(w @ x * 2.0).backward()
        w @ x[:, :1]
        xp.concat([w, w])
    shapes = {e.name: e.input_shapes for e in prof.function_events}
    assert shapes["multiply"] == [[2, 4], []]
    assert shapes["concat"] == [[2, 3], [2, 3]]
    assert shapes["MmBackward0"] == [[2, 4]]
    assert shapes["SumBackward1"] == [[]]
    products = [(e.count, e.input_shapes) for e in prof.key_averages(group_by_input_shape=True) if e.key == "matmul"]
    assert products == [(2, [[2, 3], [3, 4]]), (1, [[2, 3], [3, 1]])]
    assert "[[2, 3], [3, 1]]" in prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" not in prof.key_averages().table()


def _sines(x: Any) -> Any:
    y = xp.sin(x)
    z = xp.sin(y)
    return y + z


def test_lines_of_the_users_code(tmp_path: Path) -> None:
    x = tensor((3,), "numpy")
    with profile(with_stack=True) as prof:
        for _ in range(2):
            _sines(x).backward(xp.ones_like(x))
    first = _sines.__code__.co_firstlineno + 1
    lines = [f"{__file__}({first + k}): _sines" for k in range(3)]
    averages = prof.key_averages(group_by_stack_n=1)
    counts = {(e.key, *e.stack): e.count for e in averages if e.key != "AccumulateGrad"}
    assert counts == {
        ("sin", lines[0]): 2, ("sin", lines[1]): 2, ("add", lines[2]): 2,
        ("SinBackward0", lines[0]): 2, ("SinBackward0", lines[1]): 2, ("AddBackward0", lines[2]): 2,
    }  # fmt: skip
    assert {e.key: e.count for e in prof.key_averages() if e.key == "sin"} == {"sin": 4}
    assert f"({first}): _sines" in averages.table()
    sine = next(e for e in prof.function_events if e.name == "sin")
    assert sine.stack[1].endswith("test_lines_of_the_users_code")  # the outer caller
    prof.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    flames = dict(line.rsplit(" ", 1) for line in (tmp_path / "stacks").read_text(encoding="utf-8").splitlines())
    ends = [k for k in flames if k.endswith(f"_sines;{''}") or k.split(";")[-1] == lines[0].replace(" ", "_")]
    assert len(ends) == 1
    total = sum(map(int, flames.values()))
    assert total == pytest.approx(sum(e.self_cpu_time_total for e in prof.function_events), abs=len(flames))


def test_waiting_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    x, waits = tensor((3,), "numpy"), []
    monkeypatch.setattr(x.backend, "synchronize", waits.append)
    with profile():
        xp.sum(xp.sin(x)).backward()
    assert waits == []
    with profile(synchronize=True) as prof:
        xp.sum(xp.sin(x)).backward()
    assert waits == [x.device] * len(prof.function_events) == [x.device] * 5


# -- what is shown ---------------------------------------------------------------------------------------------------------


def profiled() -> profile:
    x = tensor((3,), "numpy")
    with profile(profile_memory=True, with_stack=True, record_shapes=True) as prof:
        with record_function("a <label> & more", "told"):
            y = xp.sin(x) * 2.0
        xp.sum(y).backward()
        threading.Thread(target=contextvars.copy_context().run, args=(xp.cos, x)).start()
        while "cos" not in [e.name for e in prof._recording.events]:
            pass
    return prof


def test_chrome_trace(tmp_path: Path) -> None:
    prof = profiled()
    prof.export_chrome_trace(tmp_path / "trace.json")
    found = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    slices = [e for e in found if e["ph"] == "X"]
    assert [e["name"] for e in slices] == [e.name for e in prof.function_events]
    assert {e["cat"] for e in slices} == {"forward", "backward", "user_annotation"}
    assert {e["args"]["args"] for e in slices if "args" in e["args"]} == {"told"}
    assert len({e["tid"] for e in slices}) == 2
    for thread in {e["tid"] for e in slices}:
        open_: list[float] = []
        for e in sorted((e for e in slices if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"])):
            while open_ and open_[-1] <= e["ts"]:
                open_.pop()
            assert not open_ or e["ts"] + e["dur"] <= open_[-1] + 1e-6  # intervals nest
            open_.append(e["ts"] + e["dur"])
    starts = {e["id"]: e for e in found if e["ph"] == "s"}
    ends = {e["id"]: e for e in found if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    at = {(e["tid"], e["ts"]): e["name"] for e in slices}
    arrows = {(at[s["tid"], s["ts"]], at[ends[i]["tid"], ends[i]["ts"]]) for i, s in starts.items()}
    assert arrows == {("sin", "SinBackward0"), ("multiply", "MulBackward0"), ("sum", "SumBackward1")}
    assert {e["bp"] for e in ends.values()} == {"e"}
    assert {e["name"] for e in found if e["ph"] == "M"} == {"process_name", "thread_name"}


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in ("meta", "input", "line", "rect"):
            self.open.append(tag)
        if tag == "title":
            self.titles.append("")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title":
            self.titles[-1] += data


def test_page(tmp_path: Path) -> None:
    prof = profiled()
    prof.export_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert sorted(t.split("\n")[0] for t in page.titles) == sorted(["Profile", *(e.name for e in prof.function_events)])
    assert not [a for a in page.attributes if a[1] in ("src", "href")]  # it needs no network
    assert "prefers-color-scheme: dark" in text
    assert "a &lt;label&gt; &amp; more" in text
    places = [float(v.rstrip("%")) for tag, name, v in page.attributes if tag == "svg" and name in ("x", "width")]
    assert all(0 <= p <= 100 for p in places)
    assert len([1 for tag, name, v in page.attributes if (tag, name, v) == ("line", "class", "flow")]) == 3
    profile().export_html(tmp_path / "empty.html")


def table_of(*rows: tuple[str, float, float, int]) -> EventList:
    """Return a table of averages with these keys, times, self times and counts."""
    found = EventList(profile_memory=True)
    for key, total, own, count in rows:
        average = profiler.FunctionEventAvg()
        average.key, average.cpu_time_total, average.self_cpu_time_total, average.count = key, total, own, count
        average.saved_bytes = average.self_saved_bytes = 1024 * count
        found.append(average)
    return found


def test_table() -> None:
    events = table_of(("first", 3_000.0, 1_000.0, 2), ("second" * 20, 2_000.0, 2_000.0, 1), ("third", 1_000_000.0, 1_000.0, 4))
    text = events.table(sort_by="count", max_name_column_width=20, header="Title")
    lines = text.splitlines()
    assert lines[1] == "Title"
    assert [line.split()[0] for line in lines[5:8]] == ["third", "first", "secondsecondsecon..."]
    assert lines[5].split() == ["third", "25.00%", "1.000ms", "25000.00%", "1.000s", "250.000ms", "4.0", "KiB", "4.0", "KiB", "4"]
    assert lines[-1] == "Self CPU time total: 4.000ms"
    assert len(events.table(row_limit=1).splitlines()) == len(events.table(row_limit=-1).splitlines()) - 2
    assert "1000.000us" in events.table(time_unit="us")
    assert [e.split()[0][:5] for e in events.table(sort_by="self_cpu_time_total").splitlines()[3:6]] == ["secon", "first", "third"]
    assert EventList().table() == ""
    x = tensor((3,), "numpy")
    with profile() as prof, record_function("top"):
        xp.sin(x)
    assert "sin" not in prof.table(top_level_events_only=True)
    assert "sin" in prof.table()
    assert str(prof) == prof.table()
    assert "Saved" not in prof.table()
    assert repr(prof.function_events[1]).startswith("<FunctionEvent id=1 name=sin ")
    assert repr(prof.key_averages()[1]).startswith("<FunctionEventAvg key=sin ")
    assert prof.total_average().count == 2


# -- errors ----------------------------------------------------------------------------------------------------------------


def _nested() -> None:
    with profile(), profile():
        pass


def _twice() -> None:
    with profile() as prof:
        pass
    with prof:
        pass


def _inside() -> None:
    with profile() as prof:
        prof.__enter__()


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "nested": (_nested, RuntimeError, "do not nest"),
    "again": (_twice, RuntimeError, "Profiler context manager is not reentrant"),
    "inside of itself": (_inside, RuntimeError, "Profiler context manager is not reentrant"),
    "sort_by": (lambda: profiled().table(sort_by="price"), ValueError, "must be one of 'cpu_time', .* got 'price'"),
    "time_unit": (lambda: table_of().table(time_unit="h"), ValueError, "got 'h'"),
    "row_limit": (lambda: profiled().table(row_limit="all"), TypeError, "`row_limit` must be an int"),
    "stacks of none": (lambda: profile().export_stacks("unused"), ValueError, "with_stack=True"),
    "metric": (lambda: profile(with_stack=True).export_stacks("unused", "price"), ValueError, "metric should be .* 'price'"),
    "a flag": (lambda: profile(record_shapes="yes"), TypeError, "`record_shapes` must be a bool"),
    "use_device": (lambda: profile(use_device="cuda"), NotImplementedError, "use_device='cuda'.*synchronize=True"),
    "use_kineto": (lambda: profile(use_kineto=True), NotImplementedError, "use_kineto=True"),
    "use_cpu": (lambda: profile(use_cpu=False), NotImplementedError, "use_cpu=False"),
    "with_flops": (lambda: profile(with_flops=True), NotImplementedError, "with_flops=True"),
    "unknown": (lambda: profile(colour=1), TypeError, "no argument 'colour'"),
    "label": (lambda: record_function(3), TypeError, "`name` must be a str, but got int 3"),
    "label's arguments": (lambda: record_function("x", 3), TypeError, "`args` must be a str, but got int 3"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    run, kind, text = ERRORS[case]
    with pytest.raises(kind, match=text):
        run()
    assert state.current() is None
    assert not any(watching._WATCHERS.values())


def test_before_the_end_there_is_nothing() -> None:
    """A profile that has not ended has no events, as in PyTorch 2.13."""
    prof = profile(use_device=None, with_flops=False, use_cpu=True)
    for _ in range(2):
        assert prof.key_averages() == prof.function_events == []
        assert prof.table() == ""
        assert prof.self_cpu_time_total == prof.total_average().count == 0
        assert repr(prof) == str(prof) == "<unfinished xpgrad.autograd.profiler.profile>"
        if not prof.entered:
            prof.__enter__()
    xp.sin(tensor((3,), "numpy"))
    prof.__exit__(None, None, None)
    assert [e.key for e in prof.key_averages()] == ["sin"]
    with profile(enabled=False) as off:
        pass
    assert repr(off) == "<disabled xpgrad.autograd.profiler.profile>"
    assert off.key_averages() == []


def test_every_row_has_a_name() -> None:
    found = {row.name: _profile_recording._name(row) for row in ROWS.values()}
    assert found["reduce_sum"] == "sum"
    assert found["index_basic"] == "getitem"
    assert found["reshape_to"] == "reshape_to"  # calls of several public functions
    assert all(found.values())
