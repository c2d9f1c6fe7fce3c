"""Group K: hooks on what operations save for the backward."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes


def detach_value(v: Any) -> Any:
    """Detach a saved value (a pack hook that keeps the memory and drops the history)."""
    return v.detach()


def identity(v: Any) -> Any:
    """Return a saved value unchanged (a hook)."""
    return v


class Log:
    """A pair of hooks that counts its calls and can be referenced weakly."""

    def __init__(self, inner: Callable[[Any], Any] = detach_value) -> None:
        self.inner = inner
        self.packed: list[Any] = []
        self.unpacked = 0

    def pack(self, v: Any) -> Any:
        self.packed.append(tuple(v.shape))
        return self.inner(v)

    def unpack(self, v: Any) -> Any:
        self.unpacked += 1
        return v

    def on(self, lib: Any) -> Any:
        """Return the context manager that applies the pair."""
        return lib.graph.saved_tensors_hooks(self.pack, self.unpack)


#: The number of values that each step of a program saves.
SAVES = {"x * x": 2, "x * c": 1, "sin": 1, "exp": 1, "x + 1": 0, "-x": 0}


def step(lib: Any, name: str, x: Any, c: Any) -> Any:
    """Apply one step to `x`."""
    if name == "x * x":
        return x * x
    if name == "x * c":
        return x * c
    if name == "x + 1":
        return x + 1
    return -x if name == "-x" else getattr(lib.xp, name)(x)


def slope(name: str, v: Any, c: Any) -> tuple[Any, Any]:
    """Return the value and the derivative of a step."""
    found: dict[str, Any] = {"x * x": (v * v, 2 * v), "x * c": (v * c, c), "sin": (np.sin(v), np.cos(v)), "exp": (np.exp(v), np.exp(v))}
    return found.get(name) or ((v + 1, 1.0) if name == "x + 1" else (-v, -1.0))


def saving_square(lib: Any, *extra: Any) -> Any:
    """Return a custom square that saves its input, its output and `extra`."""

    def forward(ctx: Any, x: Any) -> Any:
        out = x * x
        ctx.save_for_backward(x, out, *extra)
        return out

    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]

    return lib.fn(forward, backward)


@contract("SAV-01", draw={"program": st.lists(st.sampled_from(sorted(SAVES)), max_size=5), "shape": shapes(), "seed": seeds})
def packs_once_per_save(lib: Any, program: Any, shape: Any, seed: int) -> None:
    x, c = lib.random(shape, seed) * 0.3, lib.random(shape, seed + 1, rg=False)
    x = x.detach().requires_grad_()
    log, y = Log(), x
    v, d, k = lib.value(x), 1.0, lib.value(c)
    with log.on(lib):
        for name in ["x * x", *program]:
            y = step(lib, name, y, c)
            v, slope_here = slope(name, v, k)
            d = d * slope_here
    expected = 2 + sum(SAVES[name] for name in program)
    assert log.packed == [tuple(shape)] * expected
    lib.xp.sum(y).backward()
    assert (len(log.packed), log.unpacked) == (expected, expected)
    lib.equal(x.grad, np.broadcast_to(d, shape), rtol=1e-4 if lib.real == "float32" else 1e-8)
    log, x = Log(), lib.tensor([1.0, 2.0])
    with log.on(lib):
        lib.xp.exp(x)  # which saves its output
    assert log.packed == [(2,)]
    log = Log()
    with log.on(lib):
        y = saving_square(lib, None).apply(x)
    assert log.packed == [(2,), (2,)]
    y.backward(lib.ones(2))
    lib.equal(x.grad, [2.0, 4.0])

    def twice(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x)
        return x * 2

    with (log := Log()).on(lib):
        lib.fn(twice, lambda ctx, g: g * 2).apply(x)
    assert log.packed == [(2,), (2,)]


@contract("SAV-02", draw={"factor": st.integers(2, 9)})
def packs_anything(lib: Any, factor: int) -> None:
    for kind in ("number", "text", "pair"):
        with lib.case(kind):
            x, shelf, got = lib.tensor([1.0, 2.0]), [], []

            def pack(v: Any, shelf: Any = shelf, kind: str = kind) -> Any:
                shelf.append(v.detach())
                n = len(shelf) - 1
                return {"number": n, "text": f"place {n}", "pair": (n, None)}[kind]

            def unpack(packed: Any, shelf: Any = shelf, kind: str = kind, got: Any = got) -> Any:
                got.append(packed)
                n = {"number": lambda: packed, "text": lambda: int(packed[6:]), "pair": lambda: packed[0]}[kind]()
                return shelf[n] * factor

            with lib.graph.saved_tensors_hooks(pack, unpack):
                y = lib.xp.sin(x) * 1.0
            y.backward(lib.ones(2))
            assert got == [{"number": 0, "text": "place 0", "pair": (0, None)}[kind]]
            lib.equal(x.grad, np.cos(factor * np.array([1.0, 2.0])))
    x = lib.tensor([1.0, 2.0])
    for wrong in ("text", 3.0, None, (1, 2)):
        with lib.case(wrong):
            with lib.graph.saved_tensors_hooks(detach_value, lambda packed, wrong=wrong: wrong):
                y = lib.xp.sin(x)
            kind = type(wrong).__name__
            phrase = f"unpack_hook expected to be a Tensor but got result of type {kind}"
            with lib.raises(TypeError, "Output of saved tensor", phrase):
                y.backward(lib.ones(2))
            assert x.grad is None
    # The unpacked value may be less precise than the value was, and the gradient has the dtype of its Tensor.
    v = np.asarray([1.0, 2.0]) * (1.0 + 2.0 ** (-6 if lib.narrow == "float16" else -12))
    x = lib.tensor(v)
    with lib.graph.saved_tensors_hooks(lambda v: lib.cast(v.detach(), lib.narrow), identity):
        y = x**3
    (g,) = lib.grad(lib.xp.sum(y), x)
    assert g.dtype == x.dtype
    # NB: in PyTorch the formula is evaluated in the dtype of the unpacked value.
    lib.equal(g, 3 * v * v, *([1e-5] if lib.oracle else []))


@contract("SAV-03")
def unpacks_at_every_access(lib: Any) -> None:
    x, log = lib.tensor([1.0, 2.0]), Log()
    with log.on(lib):
        y = x * x
    assert log.unpacked == 0
    for n in (1, 2, 3):
        y.backward(lib.ones(2), retain_graph=n < 3)
        assert log.unpacked == 2 * n
    log = Log()
    with log.on(lib):
        y = x * x
    lib.equal(y.grad_fn._saved_self, [1.0, 2.0])
    assert log.unpacked == 1
    assert y.grad_fn._saved_other is not None
    assert log.unpacked == 2

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        lib.equal(ctx.saved_tensors[0], [1.0, 2.0])
        return 2 * g * ctx.saved_tensors[0]

    log = Log()
    with log.on(lib):
        y = lib.fn(forward, backward).apply(x)
    y.backward(lib.ones(2))
    assert log.unpacked == 2


@contract("SAV-04", draw={"shape": shapes(), "seed": seeds})
def history_is_restored(lib: Any, shape: Any, seed: int) -> None:
    for name, order in [("cube", 2), ("exp", 3), ("custom", 2)]:
        with lib.case(name):
            x = lib.random(shape, seed)
            v = lib.value(x)
            with Log().on(lib):
                y = x * x * x if name == "cube" else lib.xp.exp(x) if name == "exp" else saving_square(lib).apply(x)
            expected = {"cube": [3 * v * v, 6 * v], "exp": [np.exp(v)] * 3, "custom": [2 * v, np.full(shape, 2.0)]}[name]
            g = y
            for n in range(order):
                (g,) = lib.grad(lib.xp.sum(g), x, create_graph=True)
                assert g.requires_grad or n == order - 1
                lib.equal(g, expected[n], rtol=1e-4 if lib.real == "float32" else 1e-9)
    leaf, log = lib.tensor([1.0, 2.0]), Log()
    middle = leaf * 3
    with log.on(lib):
        y = middle * middle
        z = leaf * leaf
        e = lib.xp.exp(leaf)
    saved = y.grad_fn._saved_self
    assert saved.requires_grad
    lib.equal(lib.grad(saved, leaf, lib.ones(2))[0], [3.0, 3.0])
    assert z.grad_fn._saved_self.requires_grad
    result = e.grad_fn._saved_result
    assert result.requires_grad
    lib.equal(lib.grad(lib.xp.sum(result), leaf)[0], np.exp([1.0, 2.0]))
    assert saved.grad_fn is middle.grad_fn
    assert result.grad_fn is e.grad_fn
    # One of several results, and a value that is unpacked in inference mode.
    both = lib.fn(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(leaf)
    with log.on(lib):
        y = both[1] * both[1]
    saved = y.grad_fn._saved_self
    assert (saved.output_nr, saved.grad_fn is both[1].grad_fn) == (1, True)
    lib.equal(lib.grad(saved, leaf, lib.ones(2))[0], [3.0, 3.0])

    def copy_unrecorded(v: Any) -> Any:
        with lib.ns.inference_mode():
            return v * 1

    with lib.graph.saved_tensors_hooks(detach_value, copy_unrecorded):
        y = leaf * leaf * leaf
    (g,) = lib.grad(lib.xp.sum(y), leaf, retain_graph=True)
    lib.equal(g, [3.0, 12.0])
    assert y.grad_fn._saved_other.requires_grad
    # The tangent of a constant.
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        factor = fw.make_dual(lib.constant([3.0, 4.0]), lib.constant([5.0, 6.0]))
        with lib.graph.saved_tensors_hooks(lambda v: v.detach() * 1, identity):
            y = leaf * factor
        (g,) = lib.grad(lib.xp.sum(y), leaf)
        lib.equal(fw.unpack_dual(g).primal, [3.0, 4.0])
        lib.equal(fw.unpack_dual(g).tangent, [5.0, 6.0])


@contract("SAV-05")
def the_innermost_pair_applies(lib: Any) -> None:
    x, outer, inner = lib.tensor([1.0, 2.0]), Log(), Log()
    with outer.on(lib):
        a = x * x
        with inner.on(lib):
            b = x * x
        c = lib.xp.sin(x)
    assert (len(outer.packed), len(inner.packed)) == (3, 2)
    (a + b + c).backward(lib.ones(2))
    assert (outer.unpacked, inner.unpacked) == (3, 2)
    lib.equal(x.grad, np.array([4.0, 8.0]) + np.cos([1.0, 2.0]))
    with outer.on(lib):
        with lib.raises(KeyError), inner.on(lib):
            raise KeyError
        y = x * x
    assert (len(outer.packed), len(inner.packed)) == (5, 2)
    assert (x * x).grad_fn is not None
    assert y.grad_fn is not None
    assert (len(outer.packed), len(inner.packed)) == (5, 2)


@contract("SAV-06")
def only_saves_made_inside(lib: Any) -> None:
    x, log = lib.tensor([1.0, 2.0]), Log()
    y = lib.xp.sin(x) * x
    with log.on(lib):
        y.backward(lib.ones(2), retain_graph=True)
    assert (log.packed, log.unpacked) == ([], 0)
    lib.equal(x.grad, np.cos([1.0, 2.0]) * [1.0, 2.0] + np.sin([1.0, 2.0]))
    z = lib.xp.sin(x)
    with log.on(lib):
        (g,) = lib.grad(lib.xp.sum(z), x, create_graph=True)
    saved = len(log.packed)
    assert saved > 0
    assert log.unpacked == 0
    lib.equal(lib.grad(lib.xp.sum(g), x)[0], -np.sin([1.0, 2.0]))
    assert log.unpacked > 0
    assert len(log.packed) == saved


@contract("SAV-07")
def nothing_saved_nothing_packed(lib: Any) -> None:
    x, c, log = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0]), Log()
    with log.on(lib):
        kept = x + 1, x - c, -x, lib.xp.reshape(x, (2, 1)), lib.xp.sum(x)
        constants = c * c, lib.xp.sin(c), lib.xp.exp(c), saving_square(lib).apply(c)
        with lib.ns.no_grad():
            quiet = x * x, lib.xp.exp(x), saving_square(lib).apply(x)
    assert log.packed == []
    assert all(t.requires_grad for t in kept)
    assert not any(t.requires_grad for t in (*constants, *quiet))
    with log.on(lib):
        x * c
    assert len(log.packed) == 1


@contract("SAV-08")
def hooks_of_one_thread(lib: Any) -> None:
    here, there = Log(), Log()
    x, found = lib.tensor([1.0, 2.0]), []
    inside, done = threading.Event(), threading.Event()

    def body() -> None:
        try:
            with lib.running():
                found.append(x * x)
                with there.on(lib):
                    inside.set()
                    found.append(done.wait(timeout=20))
        except BaseException as exc:  # noqa: BLE001 (reported to the waiting thread)
            found.append(exc)
            inside.set()

    with here.on(lib):
        thread = threading.Thread(target=body)
        thread.start()
        assert inside.wait(timeout=20)
    y = lib.xp.sin(x)
    done.set()
    thread.join()
    assert len(found) == 2, found
    assert found[1] is True
    assert (here.packed, there.packed) == ([], [])
    (y + found[0]).backward(lib.ones(2))
    lib.equal(x.grad, np.cos([1.0, 2.0]) + [2.0, 4.0])


@contract("SAV-09")
def packing_writes_nothing(lib: Any) -> None:
    def pack(v: Any) -> Any:
        v.mul_(2)
        return v.detach()

    x = lib.tensor([1.0, 2.0])
    with (
        lib.graph.saved_tensors_hooks(pack, identity),
        lib.raises(RuntimeError, "A saved tensor pack hook is modifying its input in place"),
    ):
        x * 1 * x
    x = lib.tensor([1.0, 2.0])
    with lib.graph.saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v.mul_(2)):
        y = lib.xp.sin(x)
    y.backward(lib.ones(2))
    lib.equal(x.grad, np.cos([2.0, 4.0]))


@contract("SAV-10")
def versions_are_not_checked(lib: Any) -> None:
    for name, pack, expected in [("detach", detach_value, [6.0, 12.0]), ("clone", lambda v: v.detach().clone(), [2.0, 4.0])]:
        with lib.case(name):
            x = lib.tensor([1.0, 2.0])
            middle = x * 1
            with lib.graph.saved_tensors_hooks(pack, identity):
                y = middle * middle
            with lib.ns.no_grad():
                middle.mul_(3)
            y.backward(lib.ones(2))
            lib.equal(x.grad, expected)


@contract("SAV-11")
def packing_is_not_recorded(lib: Any) -> None:
    seen = []

    def pack(v: Any) -> Any:
        seen.append((lib.ns.is_grad_enabled(), (v * 2).requires_grad))
        return v.detach()

    x = lib.tensor([1.0, 2.0])
    with lib.graph.saved_tensors_hooks(pack, identity):
        x * x
        saving_square(lib).apply(x)
    assert seen == [(False, False)] * 4
    assert lib.ns.is_grad_enabled()

    def fail(v: Any) -> Any:
        raise LookupError("no room")

    for name, program in [("x * x", lambda: x * x), ("custom", lambda: saving_square(lib).apply(x))]:
        with lib.case(name), lib.graph.saved_tensors_hooks(fail, identity), lib.raises(LookupError, "no room"):
            program()
    assert lib.ns.is_grad_enabled()
    (x * x).backward(lib.ones(2))
    lib.equal(x.grad, [2.0, 4.0])


@contract("SAV-12")
def hooks_of_one_save(lib: Any) -> None:
    x, c, log = lib.tensor([1.0, 2.0]), lib.constant([3.0, 4.0]), Log()
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(log.pack, lambda v: v * 10)
    assert log.packed == [(2,)]
    with lib.raises(RuntimeError, "Calling register_hooks on a saved tensor whose hooks have already been set"):
        y.grad_fn._raw_saved_self.register_hooks(detach_value, identity)
    y.backward(lib.ones(2))
    lib.equal(x.grad, [11.0, 22.0])
    y = x * x
    raw = y.grad_fn._raw_saved_self
    y.backward(lib.ones(2))
    with lib.raises(RuntimeError, "Calling register_hooks on a saved tensor after it has been freed"):
        raw.register_hooks(detach_value, identity)
    y = x * c
    with lib.raises(RuntimeError, "Calling register_hooks on a saved tensor with value None is forbidden"):
        y.grad_fn._raw_saved_self.register_hooks(detach_value, identity)
    y.grad_fn._raw_saved_other.register_hooks(detach_value, lambda v: v + 1)
    lib.equal(lib.grad(y, x, lib.ones(2))[0], [4.0, 5.0])
    with Log().on(lib):
        y = x * x
    with lib.raises(RuntimeError, "hooks have already been set"):
        y.grad_fn._raw_saved_self.register_hooks(detach_value, identity)
    y = saving_square(lib, None).apply(x)
    first, _, last = y.grad_fn._raw_saved_tensors
    first.register_hooks(detach_value, lambda v: v * 100)
    with lib.raises(RuntimeError, "with value None is forbidden"):
        last.register_hooks(detach_value, identity)
    lib.equal(lib.grad(y, x, lib.ones(2))[0], [200.0, 400.0])
    if not lib.oracle:  # PyTorch allows it for values that a Function saved
        with lib.raises(RuntimeError, "Calling register_hooks on a saved tensor after it has been freed"):
            first.register_hooks(detach_value, identity)


@contract("SAV-13", draw={"message": st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=20)})
def hooks_can_be_disabled(lib: Any, message: str) -> None:
    x, disabled = lib.tensor([1.0, 2.0]), lib.graph.disable_saved_tensors_hooks
    for name, context in [("hooks", lambda: Log().on(lib)), ("save_on_cpu", lambda: lib.graph.save_on_cpu())]:
        with lib.case(name):
            with lib.raises(RuntimeError) as caught, disabled(message), context():
                x * x
            assert str(caught[0]) == message
            with lib.raises(RuntimeError) as caught, context(), disabled(message):
                x * x
            assert str(caught[0]) == message
    for wrapped in (disabled(message)(lambda: Log().on(lib).__enter__()),) * 2:  # a decorator holds in each call
        with lib.raises(RuntimeError) as caught:
            wrapped()
        assert str(caught[0]) == message
    with disabled(message):
        with disabled("the inner one"), lib.raises(RuntimeError, "the inner one"), Log().on(lib):
            pass
        with lib.raises(RuntimeError) as caught, Log().on(lib):
            pass
        assert str(caught[0]) == message
        y = x * x
        y.grad_fn._raw_saved_self.register_hooks(detach_value, lambda v: v * 10)  # only default hooks are disabled
    y.backward(lib.ones(2))
    lib.equal(x.grad, [11.0, 22.0])
    with (log := Log()).on(lib):
        x * x
    assert len(log.packed) == 2


@contract("SAV-14")
def saves_on_the_host(lib: Any) -> None:
    for options in ({}, {"pin_memory": False}):
        x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
        with lib.graph.save_on_cpu(**options):
            y = x * w
            e = lib.xp.exp(x)
        saved = y.grad_fn._saved_self
        assert saved.device == x.device
        lib.equal(saved, [1.0, 2.0])
        # NB: if a Tensor is on the host already, nothing is copied.
        if lib.sees_memory:
            assert lib.same_memory(saved, x)
            assert lib.same_memory(e.grad_fn._saved_result, e)
        (y + e).backward(lib.ones(2))
        assert x.grad.device == x.device
        lib.equal(x.grad, np.array([3.0, 4.0]) + np.exp([1.0, 2.0]))
        lib.equal(w.grad, [1.0, 2.0])
    far = lib.on_other_device([1.0, 2.0], rg=True)
    if lib.oracle:  # PyTorch's other device here is meta: the copy raises, because there are no values
        with lib.raises(NotImplementedError, "Cannot copy out of meta tensor"), lib.graph.save_on_cpu():
            far * far
        return
    with lib.graph.save_on_cpu():
        y = far * far
    assert y.grad_fn._saved_self.device == far.device
    lib.xp.sum(y).backward()
    assert far.grad.device == far.device
    lib.equal(far.grad, [2.0, 4.0])


@contract("SAV-15")
def identity_is_lost(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    assert (x * x).grad_fn._saved_self is x
    for name, pack in [("identity", identity), ("detach", detach_value)]:
        with lib.case(name):
            with lib.graph.saved_tensors_hooks(pack, identity):
                y = x * x
            saved = y.grad_fn._saved_self
            assert saved is not x
            lib.equal(saved, [1.0, 2.0])
            assert saved.requires_grad
            if lib.sees_memory:
                assert lib.same_memory(saved, x)
    # The unpacked value has the memory and version of what the hook returned, whatever was packed.
    x = lib.tensor([1.0, 2.0])
    middle, kept = x * 1, lib.tensor([3.0, 4.0]) * 1
    packed, returned = lib.xp.sum(middle * middle), lib.xp.sum(kept * kept)
    middle[:1]
    with lib.graph.saved_tensors_hooks(lambda v: "anything", lambda _: kept):
        y = lib.xp.sin(middle)
    saved = y.grad_fn._saved_self
    read = lib.xp.sum(saved * saved)
    with lib.ns.no_grad():
        saved.mul_(2)
    assert [t._version for t in (middle, kept, saved)] == [0, 1, 1]
    lib.equal(lib.grad(packed, x, retain_graph=True)[0], [2.0, 4.0])
    for total in (returned, read):
        with lib.raises(RuntimeError, "modified by an inplace operation"):
            total.backward(retain_graph=True)
    lib.equal(lib.grad(lib.xp.sum(y), x)[0], np.cos([6.0, 8.0]))


@contract("SAV-16")
def packing_detached_makes_no_cycle(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    programs = {"output": lambda: lib.xp.exp(x), "input": lambda: x * x, "custom": lambda: saving_square(lib).apply(x)}
    for name, program in programs.items():
        for pack in (detach_value, identity):
            if pack is identity and name != "output" and lib.oracle:
                continue
            with lib.case((name, pack.__name__)):
                log = Log(pack)
                gc.collect()
                gc.disable()
                try:
                    with log.on(lib):
                        y = program()
                    y.backward(lib.ones(2), retain_graph=True)
                    # The graph keeps the hooks alive.
                    alive = weakref.ref(log)
                    del log, y
                    # NB: a reference cycle of a node with its own output is collected, unlike in PyTorch.
                    assert (alive() is None) == (pack is detach_value or not lib.oracle)
                finally:
                    gc.enable()


@contract("SAV-18")
def each_saved_value_has_hooks_of_its_own(lib: Any) -> None:
    programs = {
        "two": (lambda x, w: x * w, ("_raw_saved_self", "_raw_saved_other")),
        "a quotient": (lambda x, w: x / w, ("_raw_saved_self", "_raw_saved_other")),
    }
    for name, (program, attributes) in programs.items():
        for chosen in [*[(a,) for a in attributes], attributes, attributes[::-1]]:
            with lib.case((name, chosen)):
                x, w = lib.tensor([2.0]), lib.tensor([3.0])
                expected = [lib.value(g) for g in lib.grad(program(x, w), [x, w])]
                y = program(x, w)
                log: list[tuple[str, str]] = []
                for attribute in chosen:

                    def pack(t: Any, attribute: str = attribute, log: Any = log) -> Any:
                        log.append(("pack", attribute))
                        return [t.detach().clone()]

                    def unpack(box: Any, attribute: str = attribute, log: Any = log) -> Any:
                        log.append(("unpack", attribute))
                        return box[0]

                    getattr(y.grad_fn, attribute).register_hooks(pack, unpack)
                assert log == [("pack", a) for a in chosen]
                log.clear()
                for g, e in zip(lib.grad(y, [x, w], retain_graph=True), expected, strict=True):
                    lib.equal(g, e)
                assert {what for what, _ in log} == {"unpack"}
                assert {attribute for _, attribute in log} == set(chosen)
                lib.grad(y, [x, w])
                with lib.raises(RuntimeError, "second time"):
                    lib.grad(y, [x, w])
    # A saved value without hooks is still checked for writes; one with hooks is what the pack hook returned.
    for hooked, free in (("_raw_saved_self", 1), ("_raw_saved_other", 0)):
        with lib.case(hooked):
            leaves = [lib.tensor([2.0]), lib.tensor([3.0])]
            factors = [t * 1 for t in leaves]
            y = factors[0] * factors[1]
            getattr(y.grad_fn, hooked).register_hooks(lambda t: t.detach().clone(), lambda t: t)
            factors[1 - free].mul_(10.0)
            lib.equal(lib.grad(y, leaves[free], retain_graph=True)[0], [2.0 if free else 3.0])
            factors[free].mul_(10.0)
            with lib.raises(RuntimeError, "modified by an inplace operation"):
                lib.grad(y, leaves[1 - free])


class Box:
    """A packed value that can be referenced weakly."""

    def __init__(self, value: Any) -> None:
        self.value = value


@contract("SAV-19")
def packed_values_are_let_go(lib: Any) -> None:
    for retain in (True, False):
        boxes: list[Any] = []

        def pack(t: Any, boxes: Any = boxes) -> Any:
            box = Box(t.detach().clone())
            boxes.append(weakref.ref(box))
            return box

        x, w = lib.tensor([2.0, 3.0]), lib.tensor([3.0, 4.0])
        with lib.graph.saved_tensors_hooks(pack, lambda box: box.value):
            y = x * w
            z = lib.xp.exp(y) / w
        assert len(boxes) == 5
        assert all(box() is not None for box in boxes)
        lib.grad(lib.xp.sum(z), [x, w], retain_graph=retain)
        gc.collect()
        with lib.case(retain):
            assert [box() is not None for box in boxes] == [retain] * 5
