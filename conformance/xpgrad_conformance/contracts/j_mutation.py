"""Group J: writing in place, and version counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import broadcastable, seeds, shapes

OVERWRITTEN = "modified by an inplace operation"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"
MATRIX = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

#: In-place methods by name: the arguments, the new values as a function of the old ones, and the derivative.
METHODS: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "add_": ((2.0,), lambda v: v + 2, lambda v: 1 + 0 * v),
    "sub_": ((2.0,), lambda v: v - 2, lambda v: 1 + 0 * v),
    "mul_": ((3.0,), lambda v: 3 * v, lambda v: 3 + 0 * v),
    "div_": ((2.0,), lambda v: v / 2, lambda v: 0.5 + 0 * v),
    "pow_": ((3,), lambda v: v**3, lambda v: 3 * v * v),
    "neg_": ((), lambda v: -v, lambda v: -1 + 0 * v),
    "abs_": ((), np.abs, np.sign),
    "exp_": ((), np.exp, np.exp),
    "log_": ((), np.log, lambda v: 1 / v),
    "sqrt_": ((), np.sqrt, lambda v: 0.5 / np.sqrt(v)),
    "square_": ((), np.square, lambda v: 2 * v),
    "reciprocal_": ((), np.reciprocal, lambda v: -1 / (v * v)),
    "sin_": ((), np.sin, np.cos),
    "cos_": ((), np.cos, lambda v: -np.sin(v)),
    "tanh_": ((), np.tanh, lambda v: 1 - np.tanh(v) ** 2),
    "floor_": ((), np.floor, lambda v: 0 * v),
    "ceil_": ((), np.ceil, lambda v: 0 * v),
    "round_": ((), np.round, lambda v: 0 * v),
    "clamp_": ((0.75, 1.25), lambda v: np.clip(v, 0.75, 1.25), lambda v: 1.0 * ((v >= 0.75) & (v <= 1.25))),
    "zero_": ((), lambda v: 0 * v, lambda v: 0 * v),
    "fill_": ((2.0,), lambda v: 2 + 0 * v, lambda v: 0 * v),
}


def result(lib: Any, data: Any = MATRIX) -> tuple[Any, Any]:
    """Return a leaf, and a Tensor of the same values that is not a leaf and may be written to."""
    x = lib.tensor(data)
    return x, x * 1


# -- version counters --------------------------------------------------------------------------------------------------


@contract("MUT-01", draw={"writes": st.lists(st.sampled_from([*METHODS, "+=", "setitem", "copy_", "nothing"]), max_size=8)})
def every_write_counts(lib: Any, writes: Any) -> None:
    # NB: the rule also mentions `out=`, which the standard's functions do not have.
    for rg in (False, True):
        for every in (writes, ["add_", "nothing", "setitem", "zero_", "copy_", "+="]):
            x = lib.ones(2, 3)
            assert x._version == 0
            if rg:
                x = lib.ones(2, 3, rg=True) * 1
                assert x._version == 0
            for n, name in enumerate(every, 1):
                before = x._version
                with lib.case((rg, every, n)):
                    if name == "nothing":
                        x.add_(0)  # a write that does not change the values
                    elif name == "setitem":
                        x[0] = 5.0
                    elif name == "copy_":
                        x.copy_(lib.ones(2, 3))
                    elif name == "+=":
                        x += 1.0
                    else:
                        getattr(x, name)(*METHODS[name][0])
                    assert x._version == before + 1
            before = x._version
            _ = x + 1, x[0], lib.xp.sum(x)  # reading does not count
            assert x._version == before


@contract("MUT-02")
def versions_are_shared(lib: Any) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "slice": lambda x: x[1:],
        "select": lambda x: x[0],
        "view of a view": lambda x: x[1:][0],
        "permute_dims": lambda x: lib.xp.permute_dims(x, (1, 0)),
        "expand_dims": lambda x: lib.xp.expand_dims(x, axis=1),
        "reshape": lambda x: lib.xp.reshape(x, (6,)),
        "detach": lambda x: x.detach(),
        "view of an alias": lambda x: x.detach()[0],
    }
    for name, view in views.items():
        for rg in (False, True):
            with lib.case((name, rg)):
                x = lib.constant(MATRIX) if not rg else result(lib)[1]
                x.add_(1.0)
                v = view(x)
                assert v._version == x._version == 1
                x.add_(1.0)
                assert v._version == x._version == 2
                v.add_(1.0)
                assert v._version == x._version == 3
                copy = x.clone()
                start = copy._version
                copy.add_(1.0)
                assert (copy._version, x._version) == (start + 1, 3)
                x.add_(1.0)
                assert copy._version == start + 1
    assert lib.constant(MATRIX).clone()._version == 0


@contract("MUT-03")
def compared_at_use(lib: Any) -> None:
    _, y = result(lib)
    y.add_(1.0)  # a write before `y` is saved, so the saved version is 1
    z = lib.xp.sum(y * y)
    z.backward(retain_graph=True)
    y.add_(1.0)
    y.add_(1.0)
    for _ in range(2):
        with lib.raises(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace operation",
                        "is at version 3; expected version 1"):  # fmt: skip
            z.backward(retain_graph=True)
    # Writing the old values again also counts as a write.
    x, y = result(lib)
    z = lib.xp.sum(y * y)
    y.copy_(lib.constant(MATRIX))
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()
    assert x.grad is None
    # Tensors are still checked after `detach_`: a leaf, and a saved result.
    x = lib.tensor([1.0, 2.0])
    z = lib.xp.sum(x * x)
    x.detach_()
    x.mul_(5.0)
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()
    grown = lib.xp.exp(lib.tensor([1.0, 2.0]))
    z = lib.xp.sum(grown * 2.0)
    grown.detach_()
    grown.mul_(0.0)
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()
    # Both versions are right after very many writes.
    _, y = result(lib)
    for k in range(140):
        if k == 100:
            z = lib.xp.sum(y * y)
        y.mul_(1.0)
    with lib.raises(RuntimeError, "is at version 140; expected version 100"):
        z.backward()
    # A write through a saved value that was read counts as a write to the result.
    grown = lib.xp.exp(lib.tensor([1.0, 2.0]))
    saved = grown.grad_fn._saved_result
    with lib.ns.no_grad():
        saved.mul_(2.0)
    assert grown._version == 1
    if lib.capabilities["mutable"]:  # else the write makes a new array, which only the saved value has
        lib.equal(grown, 2 * np.exp([1.0, 2.0]))
    with lib.raises(RuntimeError, OVERWRITTEN):
        lib.xp.sum(grown).backward()
    if lib.capabilities["linalg"]:  # results that a node saves together
        for k in (0, 1):
            x = lib.tensor([[2.0, 0.5], [0.5, 1.0]])
            outs = lib.xp.linalg.eigh(x)
            total = lib.xp.sum(outs[0][:1]) + lib.xp.sum(outs[1][:1] * 1.0)
            for _ in range(3):
                with lib.ns.no_grad():
                    outs[k].mul_(2.0)
            with lib.case(k), lib.raises(RuntimeError, "is at version 3; expected version 0"):
                total.backward()
            assert x.grad is None
    # Versions are checked when a node runs: a pass that does not reach it succeeds.
    x, y = result(lib)
    other = lib.tensor(MATRIX)
    z = lib.xp.sum(y * y) + lib.xp.sum(other)
    y.add_(1.0)
    lib.equal(lib.grad(z, other)[0], np.ones((3, 2)))


@contract("MUT-04")
def only_what_is_saved(lib: Any) -> None:
    xp = lib.xp
    # Columns: name, function, derivative with respect to the operand, whether the operand is saved, whether the result is saved.
    table: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any], bool, bool]] = [
        ("h + 1", lambda h: h + 1, np.ones_like, False, False),
        ("2 * h", lambda h: 2 * h, lambda v: 2 + 0 * v, False, False),
        ("-h", lambda h: -h, lambda v: -1 + 0 * v, False, False),
        ("sin", xp.sin, np.cos, True, False),
        ("cos", xp.cos, lambda v: -np.sin(v), True, False),
        ("log", xp.log, lambda v: 1 / v, True, False),
        ("square", xp.square, lambda v: 2 * v, True, False),
        ("exp", xp.exp, np.exp, False, True),
        ("tanh", xp.tanh, lambda v: 1 - np.tanh(v) ** 2, False, True),
        ("sqrt", xp.sqrt, lambda v: 0.5 / np.sqrt(v), False, True),
    ]
    for name, function, slope, saves_operand, saves_result in table:
        for what, saved in [("operand", saves_operand), ("result", saves_result)]:
            with lib.case((name, what)):
                x, h = result(lib)
                out = function(h)
                total = xp.sum(out)
                (h if what == "operand" else out).add_(1.0)
                if saved:
                    with lib.raises(RuntimeError, OVERWRITTEN):
                        total.backward()
                else:
                    total.backward()
                    lib.equal(x.grad, slope(lib.value(x)))


@contract("MUT-05")
def constants_are_watched(lib: Any) -> None:
    x, c = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
    uses: dict[str, Callable[[], Any]] = {
        "x * c": lambda: x * c,
        "c * x": lambda: c * x,
        "x / c": lambda: x / c,
        "matmul": lambda: lib.xp.matmul(x, c),
        "view": lambda: x * c[:1],
        "Function": lambda: saving.apply(x, c),
    }

    def forward(ctx: Any, x: Any, c: Any) -> Any:
        ctx.save_for_backward(c)
        return x * c

    saving = lib.fn(forward, lambda ctx, g: (g * ctx.saved_tensors[0], None))
    for name, use in uses.items():
        with lib.case(name):
            z = lib.xp.sum(use())
            c.add_(1.0)
            with lib.raises(RuntimeError, OVERWRITTEN):
                z.backward()
            assert x.grad is None
    z = lib.xp.sum(x + c)  # an addition saves nothing
    c.add_(1.0)
    z.backward()
    lib.equal(x.grad, [1.0, 1.0])


@contract("MUT-06")
def steps_between_the_passes(lib: Any) -> None:
    for name in ("no_grad", "inference_mode"):
        for write in ("sub_", "setitem", "zero_"):
            with lib.case((name, write)):
                x = lib.tensor([1.0, 2.0])
                y = lib.xp.sum(x * x)
                with getattr(lib.ns, name)():
                    if write == "setitem":
                        x[0] = 5.0
                    else:
                        getattr(x, write)(*([lib.constant([0.1, 0.1])] if write == "sub_" else []))
                with lib.raises(RuntimeError, OVERWRITTEN):
                    y.backward()
                assert x.grad is None


@contract("MUT-07")
def watched_through_views(lib: Any) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "select": lambda y: y[0],
        "slice": lambda y: y[1:],
        "view of a view": lambda y: y[1:][0],
        "permute_dims": lambda y: lib.xp.permute_dims(y, (1, 0)),
        "detach": lambda y: y.detach(),
    }
    for name, view in views.items():
        for early in (True, False):  # whether the view exists when the values are saved
            with lib.case((name, early)):
                x, y = result(lib)
                v = view(y)
                z = lib.xp.sum(y * y)
                (v if early else view(y)).add_(1.0)
                with lib.raises(RuntimeError, OVERWRITTEN):
                    z.backward()
                assert x.grad is None
    for name, view in views.items():
        if name != "detach":
            with lib.case((name, "saved")):
                x, y = result(lib)
                v = view(y)
                z = lib.xp.sum(v * v)
                y.add_(1.0)
                with lib.raises(RuntimeError, OVERWRITTEN):
                    z.backward()
                assert x.grad is None
    # A view that is made without recording, of a view whose base was written to before.
    x, y = result(lib)
    v = y[...]
    y.mul_(2.0)
    z = lib.xp.sum(y * y)
    with lib.ns.no_grad():
        v[:1].add_(1.0)
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()
    # A write to a sibling view raises as well, because siblings share the counter though not the elements.
    x, y = result(lib)
    first, last = y[0], y[2]
    z = lib.xp.sum(first * first)
    last.add_(1.0)
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()


@contract("MUT-08")
def the_documented_hole(lib: Any) -> None:
    def by_data(c: Any) -> None:
        c.data.add_(1.0)

    def by_host(c: Any) -> None:
        lib.value(c)[...] += 1.0

    host = lib.constant([0.0])
    aliased = lib.capabilities["mutable"] and lib.value(host).flags.writeable and lib.same_memory(host, host)
    for edit in [by_data, *([by_host] if aliased else [])]:
        for tell in (False, True):
            with lib.case((edit.__name__, tell)):
                x, c = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
                y = lib.xp.sum(x * c)
                edit(c)
                lib.equal(c, [4.0, 5.0])
                assert c._version == 0
                if tell:
                    lib.graph.increment_version(c)
                    with lib.raises(RuntimeError, OVERWRITTEN):
                        y.backward()
                    continue
                y.backward()
                # Where arrays are immutable, the saved values have not changed.
                lib.equal(x.grad, [4.0, 5.0] if lib.capabilities["mutable"] else [3.0, 4.0])
    # An assignment gives a leaf other values, and leaves its history alone.
    x, c = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0])
    y = lib.xp.sum(x * c)
    x.data = lib.constant([6.0, 7.0])
    lib.equal(x, [6.0, 7.0])
    y.backward()
    lib.equal(x.grad, [3.0, 4.0])
    assert x.is_leaf
    assert x.requires_grad


@contract("MUT-09")
def increment_version(lib: Any) -> None:
    x, c, d = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0]), lib.constant([5.0, 6.0])
    view = d[:1]
    y = lib.xp.sum(x * c)
    assert lib.graph.increment_version(c) is None
    assert (c._version, d._version) == (1, 0)
    lib.graph.increment_version([c, d, c])
    assert (c._version, d._version, view._version) == (3, 1, 1)
    lib.graph.increment_version(view)
    assert d._version == 2
    lib.graph.increment_version(t for t in (c, d))
    assert (c._version, d._version) == (4, 3)
    lib.equal(c, [3.0, 4.0])
    with lib.raises(RuntimeError, OVERWRITTEN, "is at version 4; expected version 0"):
        y.backward()
    lib.graph.increment_version(x)  # also works for a leaf that requires grad
    assert x._version == 1
    with lib.ns.inference_mode():
        quiet = d * 2
    before = lib.value(quiet).copy()
    lib.graph.increment_version(quiet)
    lib.graph.increment_version([quiet, d])
    lib.equal(quiet, before)
    assert d._version == 4


# -- what may be written to --------------------------------------------------------------------------------------------


def writes_to(lib: Any, value: Any) -> dict[str, Callable[[Any], Any]]:
    """Return ways to write into a Tensor, by name; some of them use `value`."""
    return {
        "add_": lambda t: t.add_(1.0),
        "mul_": lambda t: t.mul_(value),
        "copy_": lambda t: t.copy_(lib.xp.broadcast_to(value, tuple(t.shape))),
        "zero_": lambda t: t.zero_(),
        "sin_": lambda t: t.sin_(),
        "+=": lambda t: t.__iadd__(1.0),
        "setitem": lambda t: t.__setitem__(..., 1.0),
        "part": lambda t: t.__setitem__(0, value),
    }


@contract("MUT-10")
def leaves_are_refused(lib: Any) -> None:
    for name, write in writes_to(lib, lib.constant(2.0)).items():
        with lib.case(name):
            x = lib.tensor([1.0, 2.0])
            with lib.raises(RuntimeError, LEAF):
                write(x)
            lib.equal(x, [1.0, 2.0])
            assert x.is_leaf
            assert x._version == 0
            lib.xp.sum(x * x).backward()
            lib.equal(x.grad, [2.0, 4.0])
    for name, write in writes_to(lib, lib.constant(2.0)).items():  # a leaf that does not require grad
        with lib.case(name):
            write(lib.constant([1.0, 2.0]))


@contract("MUT-11")
def views_of_leaves_are_refused(lib: Any) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "slice": lambda x: x[:2],
        "select": lambda x: x[0],
        "view of a view": lambda x: x[:2][1],
        "permute_dims": lambda x: lib.xp.permute_dims(x, (1, 0)),
        "reshape": lambda x: lib.xp.reshape(x, (6,)),
    }
    for name, view in views.items():
        for how, write in writes_to(lib, lib.constant(2.0)).items():
            with lib.case((name, how)):
                x = lib.tensor(MATRIX)
                with lib.raises(RuntimeError, VIEW_OF_LEAF):
                    write(view(x))
                lib.equal(x, MATRIX)
                leaf = lib.constant(MATRIX)[:].requires_grad_()  # a leaf that is itself a view of a constant
                with lib.raises(RuntimeError, VIEW_OF_LEAF):
                    write(view(leaf))
                assert leaf.is_leaf
                lib.equal(lib.grad(lib.xp.sum(leaf * leaf), leaf)[0], 2 * np.asarray(MATRIX))
    with lib.ns.no_grad():  # without recording, the write is allowed
        x[0].add_(1.0)
    lib.equal(x, [[2.0, 3.0], [3.0, 4.0], [5.0, 6.0]])


@contract("MUT-12", draw={"shape": shapes(), "seed": seeds, "pair": broadcastable()})
def results_are_written_to(lib: Any, shape: Any, seed: int, pair: Any) -> None:
    for name, (arguments, function, slope) in METHODS.items():
        with lib.case(name):
            x = lib.random(shape, seed)
            v = lib.value(x)
            y = lib.xp.sin(x) + 1
            u, node = np.sin(v) + 1, y.grad_fn
            assert getattr(y, name)(*arguments) is y
            assert y.grad_fn is not node
            assert y.requires_grad
            assert not y.is_leaf
            lib.equal(y, function(u))
            lib.xp.sum(3 * y).backward()
            lib.equal(x.grad, 3 * slope(u) * np.cos(v), rtol=1e-4 if lib.real == "float32" else 1e-9, atol=1e-5)
    # Write with a Tensor that is broadcast and requires grad: both receive a gradient.
    full = np.broadcast_shapes(*pair)
    table: dict[str, tuple[Any, Any, Any]] = {
        "add_": (lambda a, b: a + b, lambda a, b: 1 + 0 * a * b, lambda a, b: 1 + 0 * a * b),
        "sub_": (lambda a, b: a - b, lambda a, b: 1 + 0 * a * b, lambda a, b: -1 + 0 * a * b),
        "mul_": (lambda a, b: a * b, lambda a, b: b + 0 * a, lambda a, b: a + 0 * b),
        "div_": (lambda a, b: a / b, lambda a, b: 1 / b + 0 * a, lambda a, b: -a / (b * b)),
        "copy_": (lambda a, b: b + 0 * a, lambda a, b: 0 * a * b, lambda a, b: 1 + 0 * a * b),
    }
    for name, (both, first, second) in table.items():
        with lib.case((name, pair)):
            x, w = lib.random(full, seed), lib.random(pair[1], seed + 1)
            a, b = lib.value(x), lib.value(w)
            y = x * 1
            assert getattr(y, name)(w) is y
            lib.equal(y, both(a, b))
            lib.xp.sum(y * y).backward()
            up = 2 * both(a, b)
            lib.equal(x.grad, up * first(a, b), rtol=1e-4 if lib.real == "float32" else 1e-9)
            g = up * second(a, b)
            g = g.sum(axis=tuple(range(g.ndim - b.ndim)))
            g = g.sum(axis=tuple(i for i, side in enumerate(b.shape) if side == 1), keepdims=True).reshape(b.shape)
            lib.equal(w.grad, g, rtol=1e-4 if lib.real == "float32" else 1e-9, atol=1e-5)


@contract("MUT-13")
def plain_tensors_get_a_history(lib: Any) -> None:
    writes: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
        "copy_": (lambda t, v: t.copy_(v), [1.0, 1.0]),
        "setitem": (lambda t, v: t.__setitem__(slice(1, 2), v[:1]), [1.0, 0.0]),
        "whole": (lambda t, v: t.__setitem__(..., v), [1.0, 1.0]),
        "add_": (lambda t, v: t.add_(v), [1.0, 1.0]),
        "view": (lambda t, v: t[1:].copy_(v[1:]), [0.0, 1.0]),
    }
    for name, (write, used) in writes.items():
        with lib.case(name):
            t, v = lib.constant([3.0, 4.0]), lib.tensor([5.0, 6.0])
            early = t[0]
            write(t, v)
            assert t.requires_grad
            assert early.requires_grad
            assert not t.is_leaf
            assert t.grad_fn is not None
            lib.xp.sum(3 * t).backward()
            lib.equal(v.grad, 3 * np.asarray(used))
            assert v.is_leaf
    with lib.ns.no_grad():
        t = lib.constant([3.0, 4.0])
        t.copy_(v)
    assert not t.requires_grad
    assert t.is_leaf
