"""Group S: profiles, which record each operation, node and labelled range, and change nothing."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from collections import Counter
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract

X, Y = np.asarray([[0.4, -1.3], [0.9, 1.7]]), np.asarray([[0.5, 0.2], [-0.3, 0.8]])
#: The events of the functions called here, by xpgrad's name, with PyTorch's names.
EVENTS = {"multiply": "aten::mul", "exp": "aten::exp", "matmul": "aten::matmul", "sum": "aten::sum", "concat": "aten::cat"}


def event(lib: Any, name: str) -> str:
    return EVENTS[name] if lib.oracle else name


def counts(events: Any) -> Counter[str]:
    return Counter({e.key: e.count for e in events.key_averages()})


def program(lib: Any, x: Any, y: Any) -> Any:
    """Run three products, two exponentials, a matrix product, a concatenation and a sum."""
    a = lib.xp.exp(x * y)
    b = lib.xp.exp(a * 0.5)
    return lib.xp.sum(lib.xp.concat([lib.xp.matmul(a, y), b * x]))


@contract("ANO-11")
def events(lib: Any) -> None:
    profiler = lib.module("autograd.profiler")
    x, y = lib.tensor(X), lib.tensor(Y)
    without = [lib.value(v) for v in lib.grad(program(lib, x, y), [x, y])]
    with profiler.profile() as prof:
        program(lib, x, y)
    found = counts(prof.function_events)
    assert found == counts(prof)
    for name, times in (("multiply", 3), ("exp", 2), ("matmul", 1), ("concat", 1), ("sum", 1)):
        assert found[event(lib, name)] == times, name
    begun = time.perf_counter()
    with profiler.profile() as prof:
        out = program(lib, x, y)
        lib.backward(out)
    spent = (time.perf_counter() - begun) * 1e6
    found = counts(prof)
    for g, wanted in zip((x.grad, y.grad), without, strict=True):
        np.testing.assert_array_equal(lib.value(g), wanted)
    nodes = ("MulBackward0", 3), ("ExpBackward0", 2), ("CatBackward0", 1), ("MmBackward0", 1)
    assert all(sum(n for k, n in found.items() if k.rpartition(" ")[2] == name) >= times for name, times in nodes)
    every = list(prof.function_events)
    assert 0 < prof.self_cpu_time_total <= spent
    for e in every:
        assert e.count == 1
        assert -1e-3 <= e.self_cpu_time_total <= e.cpu_time_total <= spent  # differences of rounded numbers
        assert e.time_range.start <= e.time_range.end
        assert abs(e.time_range.elapsed_us() - (e.time_range.end - e.time_range.start)) < 1e-6
        assert e.input_shapes in ([], None)
        for child in e.cpu_children:
            assert child.cpu_parent is e
            assert e.time_range.start <= child.time_range.start
            assert child.time_range.end <= e.time_range.end
        inside = sum(c.cpu_time_total for c in e.cpu_children)
        assert abs(e.cpu_time_total - inside - e.self_cpu_time_total) < 1e-3
    for name in ("multiply", "exp"):
        mine = [e for e in every if e.name == event(lib, name)]
        (average,) = (a for a in prof.key_averages() if a.key == event(lib, name))
        assert average.count == len(mine)
        assert abs(average.cpu_time_total - sum(e.cpu_time_total for e in mine)) < 1e-3
        assert abs(average.self_cpu_time_total - sum(e.self_cpu_time_total for e in mine)) < 1e-3
        assert abs(average.cpu_time - average.cpu_time_total / len(mine)) < 1e-3
    total = prof.total_average()
    assert total.key == "Total"
    assert total.count == len(every)
    assert abs(total.self_cpu_time_total - sum(e.self_cpu_time_total for e in every)) < 1e-2
    assert abs(prof.self_cpu_time_total - total.self_cpu_time_total) < 1e-2
    # Nothing is recorded after a profile has ended, or if it is disabled.
    seen = len(every)
    program(lib, x, y)
    assert len(prof.function_events) == seen
    off = profiler.profile(enabled=False)
    with off as entered:
        program(lib, x, y)
    assert lib.oracle or entered is off  # PyTorch returns None
    assert lib.oracle or not off.function_events  # PyTorch has no list at all here, not even an empty one
    # A node and the operation that made it have the same sequence number.
    numbers = {e.sequence_nr for e in every if e.name == event(lib, "exp")}
    nodes_of = {e.sequence_nr for e in every if e.name == "ExpBackward0"}
    assert numbers == nodes_of
    assert len(numbers) == 2
    if lib.oracle:
        return
    assert all(e.forward.name == "exp" for e in every if e.name == "ExpBackward0")
    assert not any(e.cpu_parent for e in every if e.scope == 1)  # no node ran inside of another event
    assert {e.scope for e in every} == {0, 1}
    with profiler.profile() as prof:
        for again in (prof, profiler.profile()):
            with lib.raises(RuntimeError):
                again.__enter__()
        lib.xp.exp(x)
    assert [e.name for e in prof.function_events] == ["exp"]


@contract("ANO-12")
def ranges_and_shapes(lib: Any) -> None:
    profiler = lib.module("autograd.profiler")
    x, y = lib.constant(X), lib.constant(Y)

    @profiler.record_function("inner")
    def decorated(x: Any) -> Any:
        return lib.xp.exp(x)

    decorated(x)  # without a profile the decorator only calls the function
    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("outer"):
            decorated(x * y)
        lib.xp.exp(x[0])
        lib.xp.matmul(x, y[:, :1])
    labels = {e.name: e for e in prof.function_events if e.name in ("outer", "inner")}
    assert labels["inner"].cpu_parent is labels["outer"]
    assert labels["inner"] in labels["outer"].cpu_children
    assert labels["outer"].self_cpu_time_total < labels["outer"].cpu_time_total
    for events in (prof.function_events, prof.key_averages()):
        assert {e.key for e in events if e.is_user_annotation} == {"outer", "inner"}
    powers = [e for e in prof.function_events if e.name == event(lib, "exp")]
    assert [e.cpu_parent is labels["inner"] for e in powers] == [True, False]
    assert [e.input_shapes[0] for e in powers] == [[2, 2], [2]]
    products = [e for e in prof.function_events if e.name == event(lib, "matmul")]
    assert [e.input_shapes[:2] for e in products] == [[[2, 2], [2, 1]]]
    together = {a.key: a.count for a in prof.key_averages()}
    apart = [(a.count, a.input_shapes[0]) for a in prof.key_averages(group_by_input_shape=True) if a.key == event(lib, "exp")]
    assert together[event(lib, "exp")] == 2
    assert sorted(apart, key=str) == [(1, [2, 2]), (1, [2])]
    with lib.raises(KeyError), profiler.profile() as prof, profiler.record_function("fails"):
        raise KeyError
    assert [e.name for e in prof.function_events] == ["fails"]
    if lib.oracle:
        return
    with profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        z = lib.tensor(X)
        lib.xp.sum(lib.xp.concat([lib.xp.exp(z), z * 2.0])).backward()
    shapes = {e.name: e.input_shapes for e in prof.function_events}
    assert shapes["concat"] == [[2, 2], [2, 2]]
    assert shapes["multiply"][0] == [2, 2]
    assert shapes["ExpBackward0"] == [[2, 2]]
    kept = {e.name: e.saved_bytes for e in prof.function_events}
    assert kept["exp"] == z.nbytes
    assert kept["concat"] == 0
    assert sum(e.self_saved_bytes for e in prof.function_events) == prof.total_average().saved_bytes
    for e in prof.function_events:
        if e.name in ("exp", "concat"):
            assert e.stack[0].endswith(": ranges_and_shapes")
    lines = prof.key_averages(group_by_stack_n=1)
    assert all(len(a.stack) <= 1 for a in lines)
    assert {a.key for a in lines if a.stack} >= {"exp", "concat", "ExpBackward0"}
    assert "Source Location" in lines.table()
    assert "Saved" in lines.table()


@contract("ANO-13")
def tables_and_traces(lib: Any) -> None:
    profiler = lib.module("autograd.profiler")
    x = lib.constant(X)
    with profiler.profile(record_shapes=True) as prof:
        for _ in range(3):
            lib.xp.exp(x)
        with profiler.record_function("a range"):
            lib.xp.matmul(x, x)
    averages = prof.key_averages()
    total = averages.self_cpu_time_total
    assert abs(total - sum(a.self_cpu_time_total for a in averages)) < 1e-2
    table = averages.table()
    rows = [line for line in table.splitlines() if line.strip().startswith((event(lib, "exp"), "a range", event(lib, "matmul")))]
    by_name = {row.split("  ")[0].strip() or row.split()[0]: row for row in rows}
    power = next(row for name, row in by_name.items() if event(lib, "exp") in row)
    assert power.split()[-1] == "3"
    for title in ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"):
        assert title in table
    assert "CPU time total: " in table
    first = prof.function_events[0]
    for key in ("cpu_time", "cpu_time_total", "self_cpu_time_total"):
        assert re.fullmatch(r"[0-9]+\.[0-9]+(us|ms|s)", getattr(first, f"{key}_str"))
    for key in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "count"):
        order = [getattr(a, key) for a in sorted(averages, key=lambda a: getattr(a, key), reverse=True)]
        (top,) = (line for line in averages.table(sort_by=key, row_limit=1).splitlines() if any(a.key in line for a in averages))
        assert any(a.key in top and getattr(a, key) == order[0] for a in averages), key
    assert str(averages) == averages.table()
    assert "Self CPU" in str(prof)
    assert "exp" in repr(prof.function_events[0])
    assert "exp" in repr(averages)
    assert repr(prof) == repr(prof.function_events)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        found = json.loads(path.read_text(encoding="utf-8"))
        slices = found["traceEvents"] if isinstance(found, dict) else found
        names = Counter(e["name"] for e in slices if e.get("ph") == "X")
        assert names[event(lib, "exp")] == 3
        assert names["a range"] == 1
    if lib.oracle:
        return
    from xpgrad.autograd.profiler import EventList, FunctionEvent

    assert repr(profiler.profile(enabled=False)) == "<disabled xpgrad.autograd.profiler.profile>"
    function = lib.fn(lambda ctx, v: v * 3, lambda ctx, g: g * 3)
    with profiler.profile() as prof:
        for _ in range(2):
            lib.equal(function.apply(x), 3 * X)
    assert [e.name for e in prof.function_events if e.cpu_parent is None] == [function.__name__] * 2
    assert not any(e.stack for e in prof.function_events)  # without `with_stack`
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with profiler.record_function("still open"):
            begun.set()
            ended.wait()

    with profiler.profile(with_stack=True, synchronize=True) as prof:
        assert repr(prof) == "<unfinished xpgrad.autograd.profiler.profile>"
        y = lib.xp.sum(lib.xp.exp(lib.tensor(X)))
        lib.backward(y)
        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        begun.wait()
    late = lib.xp.exp(x)  # after the end nothing is recorded
    assert tuple(late.shape) == X.shape
    (open_event,) = (e for e in prof.function_events if e.name == "still open")
    duration = open_event.end
    ended.set()
    thread.join()
    assert open_event.end == duration is not None
    assert sum(e.name == "exp" for e in prof.function_events) == 1
    assert open_event.fwd_thread is None
    backward = next(e for e in prof.function_events if e.name == "ExpBackward0")
    assert backward.fwd_thread == threading.get_ident()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks"
        prof.export_stacks(str(path))
        assert any("s_profiler.py" in line and int(line.split()[-1]) >= 0 for line in path.read_text(encoding="utf-8").splitlines())
        with lib.raises(ValueError):
            prof.export_stacks(str(path), "some")
        prof.export_html(str(path))
        assert "ExpBackward0" in path.read_text(encoding="utf-8")

    def make_event(start: int, end: int, *children: Any) -> Any:
        e = FunctionEvent(0, "e", 0, 0)
        e.start, e.end, e.cpu_children = start * 1000, end * 1000, list(children)
        return e

    for e, own in (
        (make_event(0, 10, make_event(1, 3), make_event(5, 6)), 7.0),
        (make_event(0, 10, make_event(1, 5), make_event(3, 6)), 5.0),
        (make_event(2, 9, make_event(8, 15)), 6.0),
    ):
        assert e.self_cpu_time_total == own
    one, other = make_event(0, 1500), make_event(1500, 2000)
    other.key = other.name = "f"
    both = EventList([one, other])
    assert both.self_cpu_time_total == 2000.0
    lines = both.table(header="the title").splitlines()
    assert lines[1] == "the title"
    cells = [line.split() for line in lines if line.split()[:1] in (["e"], ["f"])]
    assert cells == [
        ["e", "75.00%", "1.500ms", "75.00%", "1.500ms", "1.500ms", "1"],
        ["f", "25.00%", "500.000us", "25.00%", "500.000us", "500.000us", "1"],
    ]
    assert lines[-1] == "Self CPU time total: 2.000ms"
    assert len({len(line) for line in lines[2:-1]}) == 1  # all columns are aligned to the right
    assert [c[0] for c in (line.split() for line in both.table("cpu_time", 1, time_unit="s").splitlines()) if c[0] in "ef"] == ["e"]
    assert "0.002s" in both.table(time_unit="s")
    assert "..." in EventList([_named(make_event(0, 1), "long" * 20)]).table(max_name_column_width=10)
    assert EventList([]).table() == ""
    many = EventList([make_event(0, 1) for _ in range(102)])
    assert [many.table(row_limit=n).count("1.000us") // 3 for n in (5, -1)] == [5, 102]
    assert many.table().count("1.000us") // 3 == 100
    top = make_event(0, 9, make_event(1, 2))
    top.cpu_children[0].cpu_parent = top
    assert EventList([top, *top.cpu_children]).table(top_level_events_only=True).count("1.000us") == 0
    wrongs: list[dict[str, Any]] = [{"sort_by": "name"}, {"time_unit": "min"}]
    for wrong in wrongs:
        with lib.case(str(wrong)), lib.raises(ValueError, "table"):
            both.table(**wrong)
    for option, value in (("use_cpu", False), ("with_flops", True), ("use_device", "cuda")):
        with lib.case(option), lib.raises(NotImplementedError, option):
            profiler.profile(**{option: value})
    with lib.silent():
        profiler.profile(
            use_cpu=True, use_cuda=False, use_device=None, with_flops=False, with_modules=False, use_kineto=False, experimental_config=None,
            acc_events=False,
        )  # fmt: skip


def _named(e: Any, name: str) -> Any:
    e.name = e.key = name
    return e
