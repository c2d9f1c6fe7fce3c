"""Group I: grad modes and inference mode."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.strategies import seeds, shapes

MODES = ("no_grad", "enable_grad", "set_grad_enabled(True)", "set_grad_enabled(False)", "inference_mode", "inference_mode(False)")
UPDATE = "Inplace update to inference tensor outside InferenceMode"
SAVED = "Inference tensors cannot be saved for backward"


def enter(lib: Any, name: str) -> Any:
    """Return the context manager that one of `MODES` names."""
    function, _, argument = name.partition("(")
    return getattr(lib.ns, function)(*([argument == "True)"] if argument else []))


def state(lib: Any) -> tuple[bool, bool]:
    """Return whether grad mode and inference mode are on."""
    return lib.ns.is_grad_enabled(), lib.ns.is_inference_mode_enabled()


def in_thread(work: Callable[[], Any]) -> Any:
    """Run `work` in a new thread and return its result."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def inference(lib: Any, data: Any = (1.0, 2.0)) -> Any:
    """Return an inference tensor of twice these values."""
    with lib.ns.inference_mode():
        return lib.constant(data) * 2


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x * 2": lambda lib, x: x * 2,
    "x * x": lambda lib, x: x * x,
    "2 - x": lambda lib, x: 2 - x,
    "sin": lambda lib, x: lib.xp.sin(x),
    "sum": lambda lib, x: lib.xp.sum(x),
    "prod": lambda lib, x: lib.xp.prod(x),
    "clone": lambda lib, x: x.clone(),
    "stack": lambda lib, x: lib.xp.stack([x, x]),
    "where": lambda lib, x: lib.xp.where(x > 1, x, 2 * x),
    "Function": lambda lib, x: lib.fn(lambda ctx, v: v * 3, lambda ctx, g: g * 3).apply(x),
}


@contract("MOD-01", draw={"shape": shapes(), "seed": seeds})
def no_grad(lib: Any, shape: Any, seed: int) -> None:
    for name, operation in OPERATIONS.items():
        with lib.case(name):
            x = lib.random(shape, seed)
            assert operation(lib, x).requires_grad
            with lib.ns.no_grad():
                y = operation(lib, x)
            assert not y.requires_grad
            assert y.grad_fn is None
            assert y.is_leaf
            # Afterwards it is an ordinary constant, and can become a leaf that requires grad.
            lib.xp.sum(lib.xp.sum(y) * x).backward()
            lib.equal(x.grad, 0 * lib.value(x) + lib.value(y).sum())
            y.requires_grad_()
            lib.xp.sum(y * 3).backward()
            lib.equal(y.grad, 0 * lib.value(y) + 3)


@contract("MOD-02")
def constructors(lib: Any) -> None:
    ns, dtype = lib.ns, lib.dtype(lib.real)
    factories: dict[str, Callable[..., Any]] = {
        "tensor": lambda **k: ns.tensor([1.0, 2.0], **k),
        "ones": lambda **k: ns.ones((2,), **k),
        "zeros": lambda **k: ns.zeros((2,), **k),
        "empty": lambda **k: ns.empty((2,), **k),
        "full": lambda **k: ns.full((2,), 3.0, **k),
        "arange": lambda **k: ns.arange(0.0, 2.0, 1.0, **k),
        "linspace": lambda **k: ns.linspace(0.0, 1.0, 3, **k),
        "eye": lambda **k: ns.eye(2, **k),
    }
    for name, make in factories.items():
        with lib.case(name):
            with ns.no_grad():
                x = make(dtype=dtype, requires_grad=True)
                plain = make(dtype=dtype)
            assert x.requires_grad
            assert x.is_leaf
            assert not plain.requires_grad
            lib.xp.sum(2 * x).backward()
            lib.equal(x.grad, 0 * lib.value(lib.xp.ones_like(x)) + 2)


@contract("MOD-03")
def enable_grad(lib: Any) -> None:
    x = lib.tensor(3.0)
    with lib.ns.no_grad():
        with lib.ns.enable_grad():
            assert lib.ns.is_grad_enabled()
            y = x * x
            with lib.ns.no_grad():
                assert not (x * x).requires_grad
            assert (x * x).requires_grad
        assert not lib.ns.is_grad_enabled()
        assert not (x * x).requires_grad
    assert (x * x).requires_grad
    y.backward()
    lib.equal(x.grad, 6.0)


def check_decorators(lib: Any, mode: str, seen: Callable[[], Any], during: Any, outside: str) -> None:
    """Check that `@mode()` and `@mode` switch the mode during each call only, also with recursion and exceptions, and keep metadata."""
    for parentheses in (True, False):
        switch = getattr(lib.ns, mode)
        calls: list[Any] = []

        @(switch() if parentheses else switch)
        def function(depth: int, *, fail: bool = False, calls: list[Any] = calls) -> int:
            """The docstring."""
            calls.append(seen())
            if depth:
                function(depth - 1)
            calls.append(seen())
            if fail:
                raise KeyError
            return depth

        with lib.case((mode, parentheses)), enter(lib, outside):
            before = seen()
            assert before != during
            assert function.__name__ == "function"
            assert function.__doc__ == "The docstring."
            assert function(2) == 2
            assert calls == [during] * 6
            assert seen() == before
            with lib.raises(KeyError):
                function(0, fail=True)
            assert seen() == before


@contract("MOD-04")
def contexts_and_decorators(lib: Any) -> None:
    for mode, on, outside in [("no_grad", False, "enable_grad"), ("enable_grad", True, "no_grad")]:
        with lib.case(mode):
            check_decorators(lib, mode, lib.ns.is_grad_enabled, on, outside)
            with enter(lib, outside), getattr(lib.ns, mode)():
                assert lib.ns.is_grad_enabled() is on


@contract("MOD-05")
def generators(lib: Any) -> None:
    enabled = lib.ns.is_grad_enabled

    @lib.ns.no_grad()
    def steps() -> Any:
        got = yield enabled()
        try:
            yield got, enabled()
        except KeyError:
            yield "caught", enabled()
        return "done"

    generator = steps()
    assert next(generator) is False
    assert enabled()
    assert generator.send(5) == (5, False)
    assert enabled()
    assert generator.throw(KeyError()) == ("caught", False)
    assert enabled()
    with lib.raises(StopIteration) as stop:
        next(generator)
    assert stop[0].value == "done"
    assert enabled()
    # The generator's caller may be in another mode at each step.
    generator = steps()
    with lib.ns.enable_grad():
        assert next(generator) is False
    with lib.ns.no_grad():
        assert generator.send(1) == (1, False)
        assert not enabled()
    generator.close()
    assert enabled()


@contract("MOD-06")
def set_grad_enabled(lib: Any) -> None:
    switch, enabled = lib.ns.set_grad_enabled, lib.ns.is_grad_enabled
    x = lib.tensor(3.0)
    with lib.ns.enable_grad():  # restores the mode if an assertion fails
        for outer in (True, False):
            for mode in (True, False):
                with lib.case((outer, mode)):
                    switch(outer)
                    assert enabled() is outer
                    with switch(mode):
                        assert enabled() is mode
                        assert (x * 2).requires_grad is mode
                    assert enabled() is outer

                    @switch(mode)
                    def function() -> bool:
                        return bool(lib.ns.is_grad_enabled())

                    assert enabled() is outer
                    assert function() is mode
                    assert enabled() is outer
                    assert function() is mode
        switch(True)
        assert enabled()


@contract("MOD-07", draw={"stack": st.lists(st.sampled_from(MODES), min_size=1, max_size=5)})
def restored_on_exceptions(lib: Any, stack: Any) -> None:
    def descend(rest: Any) -> None:
        if not rest:
            raise KeyError("boo")
        before = state(lib)
        try:
            with enter(lib, rest[0]):
                descend(rest[1:])
        finally:
            assert state(lib) == before

    with lib.raises(KeyError, "boo"):
        descend(stack)
    assert state(lib) == (True, False)


@contract("MOD-08")
def thread_local(lib: Any) -> None:
    x = lib.tensor(3.0)

    def look() -> Any:
        return (x * x).requires_grad, state(lib)

    for mode in ("no_grad", "set_grad_enabled(False)"):
        with lib.case(mode), enter(lib, mode):
            assert in_thread(look) == (True, (True, False))
            assert not lib.ns.is_grad_enabled()

    inside, looked = threading.Event(), threading.Event()

    def quiet() -> None:
        with lib.ns.no_grad():
            inside.set()
            looked.wait(10)

    thread = threading.Thread(target=quiet)
    thread.start()
    inside.wait(10)
    try:
        assert look() == (True, (True, False))
    finally:
        looked.set()
        thread.join()


@contract("MOD-09", draw={"shape": shapes(), "seed": seeds})
def in_place_on_a_leaf(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    for n in (1, 2, 3):  # steps of gradient descent
        lib.xp.sum(x * x).backward()
        before = lib.value(x).copy()
        lib.equal(x.grad, 2 * before)
        with lib.ns.no_grad():
            assert x.sub_(0.1 * x.grad) is x
        x.grad = None
        assert x.is_leaf
        assert x.requires_grad
        assert x.grad_fn is None
        assert x._version == n
        lib.equal(x, 0.8 * before)


@contract("MOD-10")
def passes_under_no_grad(lib: Any) -> None:
    x = lib.tensor(3.0)
    y = x * x * x
    with lib.ns.no_grad():
        y.backward(retain_graph=True)
        (g,) = lib.grad(y, x, retain_graph=True)
        (first,) = lib.grad(y, x, create_graph=True)  # a pass with create_graph=True records in every mode
    lib.equal(x.grad, 27.0)
    lib.equal(g, 27.0)
    assert not g.requires_grad
    lib.equal(lib.grad(first, x)[0], 18.0)


@contract("MOD-11")
def forward_mode(lib: Any) -> None:
    fwd = lib.module("autograd.forward_ad")
    x, t = lib.constant(3.0), lib.constant(2.0)
    for mode in ("no_grad", "enable_grad", "set_grad_enabled(False)"):
        with lib.case(mode), fwd.dual_level(), enter(lib, mode):
            dual = fwd.make_dual(x, t)
            lib.equal(fwd.unpack_dual(dual * dual).tangent, 12.0)
    with fwd.dual_level(), lib.ns.inference_mode():
        assert fwd.unpack_dual(fwd.make_dual(x, t) * 2).tangent is None


@contract("MOD-12")
def in_place_unrecorded(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = x * 3
    node = y.grad_fn
    with lib.ns.no_grad():
        y.mul_(10.0)
        y[0] = 5.0
    lib.equal(y, [5.0, 60.0])
    assert y.grad_fn is node
    assert y.requires_grad
    assert not y.is_leaf
    lib.xp.sum(y).backward()
    lib.equal(x.grad, [3.0, 3.0])


@contract("MOD-13")
def views_are_constants(lib: Any) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "x[:1]": lambda x: x[:1],
        "x[0]": lambda x: x[0],
        "expand_dims": lambda x: lib.xp.expand_dims(x, axis=0),
        "permute_dims": lambda x: lib.xp.permute_dims(x, (1, 0)),
        "broadcast_to": lambda x: lib.xp.broadcast_to(x, (3, 2, 2)),
        "unstack": lambda x: lib.xp.unstack(x)[1],
    }
    for name, view in views.items():
        for kind in ("leaf", "result"):
            with lib.case((name, kind)):
                x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
                base = x if kind == "leaf" else x * 1
                with lib.ns.no_grad():
                    v = view(base)
                assert not v.requires_grad
                assert v.grad_fn is None
                assert v.is_leaf
                (lib.xp.sum(v) * lib.xp.sum(base)).backward()
                lib.equal(x.grad, 0 * lib.value(x) + lib.value(v).sum())


unchecked("MOD-14", "a pointer to modules, which are not part of autograd: `eval()` is not a grad mode")


@contract("INF-01", draw={"shape": shapes(), "seed": seeds})
def inference_tensors(lib: Any, shape: Any, seed: int) -> None:
    for name, operation in OPERATIONS.items():
        with lib.case(name):
            x = lib.random(shape, seed)
            with lib.ns.inference_mode():
                assert state(lib) == (False, True)
                y = operation(lib, x)
                z = y * 2
                new = lib.constant(1.0)
            assert state(lib) == (True, False)
            for t in (y, z, new):
                assert t.is_inference()
                assert not t.requires_grad
                assert t.grad_fn is None
                assert t.is_leaf
            lib.equal(z, 2 * lib.value(operation(lib, x)))
            assert not x.is_inference()
            assert not operation(lib, x).is_inference()


@contract("INF-02")
def no_version_counter(lib: Any) -> None:
    y = inference(lib)
    with lib.raises(RuntimeError, "Inference tensors do not track version counter"):
        _ = y._version
    with lib.ns.inference_mode():
        y.add_(1.0)
        with lib.raises(RuntimeError, "Inference tensors do not track version counter"):
            _ = y._version


@contract("INF-03")
def not_saved_outside(lib: Any) -> None:
    y = inference(lib)
    x, matrix = lib.tensor([1.0, 2.0]), lib.tensor([[1.0, 2.0], [3.0, 4.0]])

    def save(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        return x * 2

    saving = lib.fn(save, lambda ctx, g: (g, None))
    uses: dict[str, Callable[[], Any]] = {
        "x * y": lambda: x * y,
        "y * x": lambda: y * x,
        "x / y": lambda: x / y,
        "x ** y": lambda: x**y,
        "matmul": lambda: lib.xp.matmul(x, y),
        "row times matrix": lambda: lib.xp.matmul(y, matrix),
        "view": lambda: x * y[:1],
        "Function": lambda: saving.apply(x, y),
    }
    for name, use in uses.items():
        with lib.case(name):
            with lib.raises(RuntimeError, SAVED):
                use()
            with lib.ns.no_grad():  # nothing is recorded, so nothing is saved
                use()
    # A clone of an inference tensor is a normal Tensor.
    lib.xp.sum(x * y.clone()).backward()
    lib.equal(x.grad, lib.value(y))


@contract("INF-04")
def usable_where_not_saved(lib: Any) -> None:
    y = inference(lib)
    uses: list[tuple[str, Callable[[Any], Any], float]] = [
        ("x + y", lambda x: x + y, 1.0),
        ("y - x", lambda x: y - x, -1.0),
        ("x + y[:1]", lambda x: x + y[:1], 1.0),
        ("concat", lambda x: lib.xp.concat([3 * x, y]), 3.0),
    ]
    for name, use, expected in uses:
        with lib.case(name):
            x = lib.tensor([1.0, 2.0])
            z = use(x)
            assert z.requires_grad
            assert not z.is_inference()
            lib.xp.sum(z).backward()
            lib.equal(x.grad, [expected, expected])


@contract("INF-05")
def not_written_outside(lib: Any) -> None:
    y = inference(lib)
    writes: dict[str, Callable[[], Any]] = {
        "add_": lambda: y.add_(1.0),
        "mul_": lambda: y.mul_(lib.constant([2.0, 2.0])),
        "zero_": lambda: y.zero_(),
        "sin_": lambda: y.sin_(),
        "copy_": lambda: y.copy_(lib.constant([5.0, 6.0])),
        "setitem": lambda: y.__setitem__(0, 5.0),
        "view": lambda: y[:1].add_(1.0),
    }
    for mode in ("enable_grad", "no_grad"):
        for name, write in writes.items():
            with lib.case((mode, name)), enter(lib, mode), lib.raises(RuntimeError, UPDATE):
                write()
    for name, write in writes.items():
        with lib.case(name), lib.ns.inference_mode():
            write()
    assert y.is_inference()


@contract("INF-06")
def requires_grad_outside(lib: Any) -> None:
    phrase = "Setting requires_grad=True on inference tensor outside InferenceMode"
    y = inference(lib)
    with lib.raises(RuntimeError, phrase):
        y.requires_grad_()
    with lib.raises(RuntimeError, phrase):
        y.requires_grad = True
    assert not y.requires_grad
    y.requires_grad_(False)
    with lib.ns.inference_mode():
        x = lib.tensor([1.0, 2.0])
        assert x.requires_grad
        assert x.is_inference()
        assert not (x * 2).requires_grad
        y.requires_grad_()
        assert y.requires_grad


@contract("INF-07")
def derived_outside(lib: Any) -> None:
    y = inference(lib, [[1.0, 2.0], [3.0, 4.0]])
    normal: dict[str, Callable[[], Any]] = {
        "clone": lambda: y.clone(),
        "y * 2": lambda: y * 2,
        "sin": lambda: lib.xp.sin(y),
        "sum": lambda: lib.xp.sum(y),
        "y + y": lambda: y + y,
        "concat": lambda: lib.xp.concat([y, y]),
        "stack": lambda: lib.xp.stack([y, lib.constant([[1.0, 2.0], [3.0, 4.0]])]),
        "where": lambda: lib.xp.where(y > 1.5, y, y * 2),
    }
    views: dict[str, Callable[[], Any]] = {
        "y[:1]": lambda: y[:1],
        "y[0]": lambda: y[0],
        "permute_dims": lambda: lib.xp.permute_dims(y, (1, 0)),
        "expand_dims": lambda: lib.xp.expand_dims(y, axis=0),
        "unstack": lambda: lib.xp.unstack(y)[0],
        "view of a view": lambda: y[0][1:],
    }
    for name, derive in normal.items():
        with lib.case(name):
            t = derive()
            assert not t.is_inference()
            before = t._version
            t.add_(1.0)
            assert t._version == before + 1
            assert t.requires_grad_().requires_grad
    for name, derive in views.items():
        with lib.case(name):
            view = derive()
            assert view.is_inference()
            assert not view.requires_grad
            with lib.ns.inference_mode():  # a write to a view changes its base
                view.zero_()
            assert float(lib.value(lib.xp.sum(lib.xp.abs(view)))) == 0.0
            assert int(np.sum(lib.value(y) == 0)) == lib.value(view).size
            with lib.ns.inference_mode():
                y.copy_(lib.constant([[1.0, 2.0], [3.0, 4.0]]))
            assert lib.value(view).all()
    # So is an alias of all of it, which sees writes as well.
    function = lib.fn(lambda ctx, v: v, lambda ctx, g: g).apply
    with lib.ns.inference_mode():
        for name, alias in {"detach": lambda v: v.detach(), "data": lambda v: v.data, "Function": function}.items():
            with lib.case(name):
                z = lib.constant([1.0, 2.0])
                other = alias(z)
                assert other.is_inference()
                z[0] = 5.0
                lib.equal(other, [5.0, 2.0])
                other.mul_(2.0)
                lib.equal(z, [10.0, 4.0])


@contract("INF-08")
def normal_tensors_inside(lib: Any) -> None:
    x = lib.constant([1.0, 2.0])
    with lib.ns.inference_mode():
        x.add_(1.0)
        assert x._version == 1
        x[0] = 7.0
        assert x._version == 2
        view = x[:1]
        assert not view.is_inference()
        assert not lib.xp.expand_dims(view, axis=0).is_inference()
        view.mul_(2.0)
        assert not x.is_inference()
    assert x._version == view._version == 3
    lib.equal(x, [14.0, 3.0])
    # Outside inference mode it is a normal Tensor as before.
    view.add_(1.0)
    leaf = lib.tensor([1.0, 2.0])
    lib.xp.sum(leaf * x).backward()
    lib.equal(leaf.grad, [15.0, 3.0])
    # A write under inference mode to a value saved from a normal Tensor is detected.
    leaf = lib.tensor([1.0, 2.0])
    y = leaf * 1
    z = lib.xp.sum(y * y)
    with lib.ns.inference_mode():
        y.add_(1.0)
    with lib.raises(RuntimeError, "modified by an inplace operation"):
        z.backward()


@contract("INF-09")
def nesting(lib: Any) -> None:
    x = lib.tensor(3.0)
    with lib.ns.inference_mode():
        for mode in ("enable_grad", "set_grad_enabled(True)"):
            with lib.case(mode), enter(lib, mode):
                y = x * 2
                assert not y.requires_grad
                assert y.is_inference()
        with lib.ns.inference_mode(False):
            assert state(lib) == (True, False)
            y = x * x
            assert y.requires_grad
            assert not y.is_inference()
            with lib.ns.inference_mode(mode=True):
                assert (x * x).is_inference()
            assert state(lib) == (True, False)
        assert state(lib) == (False, True)
        assert (x * x).is_inference()
    assert state(lib) == (True, False)
    y.backward()
    lib.equal(x.grad, 6.0)
    for mode in ("no_grad", "set_grad_enabled(False)", "inference_mode"):
        with lib.case(mode), enter(lib, mode):
            before = state(lib)
            with lib.ns.inference_mode(False):
                assert state(lib) == (True, False)
                z = x * x
            assert z.requires_grad
            assert state(lib) == before
    # Operations under inference mode accept Tensors made outside it, also in lists.
    rows, made = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), inference(lib, [[1.0, 2.0], [3.0, 4.0]])
    with lib.ns.inference_mode():
        for name, (found, expected) in {
            "lists": (lib.xp.concat([rows, made]), [[1, 2], [3, 4], [2, 4], [6, 8]]),
            "stacks": (lib.xp.stack([made[0], rows[1]]), [[2, 4], [3, 4]]),
            "numbers": (2 - made, [[0, -2], [-4, -6]]),
            "powers": (2**made, [[4, 16], [64, 256]]),
            "quotients": (12 / made, [[6, 3], [2, 1.5]]),
            "both": (made / rows, [[2, 2], [2, 2]]),
            "matrices": (rows @ made, [[14, 20], [30, 44]]),
            "keys": (rows[:, 1] + made[1], [8, 12]),
        }.items():
            with lib.case(name):
                assert found.is_inference()
                lib.equal(found, expected)


@contract("INF-10")
def passes_inside(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = lib.xp.sum(x * x)
    with lib.ns.inference_mode():
        y.backward()
        assert x.grad.is_inference()
    lib.equal(x.grad, [2.0, 4.0])
    assert x.grad.is_inference()
    assert not x.is_inference()


@contract("INF-11")
def inference_decorators(lib: Any) -> None:
    check_decorators(lib, "inference_mode", lambda: state(lib), (False, True), "enable_grad")

    @lib.ns.inference_mode(mode=False)
    def normal() -> Any:
        return state(lib)

    with lib.ns.inference_mode():
        assert normal() == (True, False)

    @lib.ns.inference_mode
    def results(x: Any) -> Any:
        return x * 2

    y = results(lib.tensor(3.0))
    assert y.is_inference()
    assert not y.requires_grad


@contract("MOD-15")
def closing_a_generator_runs_its_end_in_the_mode(lib: Any) -> None:
    enabled = lib.ns.is_grad_enabled
    for mode, inside in ((lib.ns.no_grad, False), (lib.ns.inference_mode, False)):
        seen: list[Any] = []

        @mode()
        def numbers(seen: Any = seen) -> Any:
            try:
                yield 1
                yield 2
            finally:
                seen.append(enabled())

        with lib.case(mode.__name__):
            for end in ("close", "throw", "forgotten"):
                running = numbers()
                assert next(running) == 1
                assert enabled()
                if end == "close":
                    running.close()
                elif end == "throw":
                    with lib.raises(KeyError):
                        running.throw(KeyError("end"))
                del running
                assert enabled()
            assert seen == [inside] * 3


@contract("INF-12", draw={"leaf": st.booleans()})
def views_taken_in_inference_mode(lib: Any, leaf: bool) -> None:
    x = lib.tensor([1.0, 2.0])
    base = x if leaf else x * 1
    with lib.ns.inference_mode():
        view = base[:1]
    assert not view.is_inference()
    assert view.grad_fn is None
    assert not view.requires_grad
    assert not (view * 2).requires_grad


@contract("INF-13")
def inference_tensors_that_require_grad(lib: Any) -> None:
    with lib.ns.inference_mode():
        c = lib.tensor([1.0, 2.0])
    x = lib.tensor([3.0, 4.0])
    for name, operation in {
        "product": lambda: c * x, "reflected": lambda: x * c, "quotient": lambda: x / c, "matmul": lambda: c @ x,
    }.items():  # fmt: skip
        with lib.case(name), lib.raises(RuntimeError, "Inference tensors cannot be saved for backward"):
            operation()
    lib.xp.sum(c + x).backward()
    lib.equal(x.grad, [1.0, 1.0])
