"""Law: xpgrad's promises beyond PyTorch's documentation: policies, reclaiming by reference counting, nested passes.

The conformance suite checks the documentation's own promises; the ids in docstrings name the contracts that these tests go beyond.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._tape.requests import backward, grad
from xpgrad.autograd import Function, anomaly_mode
from xpgrad.autograd.function import once_differentiable
from xpgrad.autograd.graph import register_multi_grad_hook


def leaf(data: Any) -> Any:
    return xp.tensor(data, dtype=xp.float64, requires_grad=True)


def function(forward: Any, backward: Any) -> Any:
    return type("F", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def cube() -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    return function(forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)


@contextmanager
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_LOOKS: dict[str, Any] = {
    "grad_fn": lambda v: v.grad_fn,
    "requires_grad": lambda v: v.requires_grad,
    "is_leaf": lambda v: v.is_leaf,
    "output_nr": lambda v: v.output_nr,
    "repr": repr,
    "detach": lambda v: v.detach(),
    "product": lambda v: v * v,
    "retain_grad": lambda v: v.retain_grad(),
    "register_hook": lambda v: v.register_hook(lambda g: None),
}


@pytest.mark.parametrize("mode", [xp.enable_grad, xp.no_grad, xp.inference_mode])
@pytest.mark.parametrize("look", _LOOKS)
def test_looking_at_a_view_after_a_write_to_its_base_keeps_its_history(look: str, mode: Any) -> None:
    """A view keeps its history in whichever mode it is first used after a write to its base (MUT-15)."""
    x, new = leaf([1.0, 2.0, 3.0]), leaf(5.0)
    y = x * 3
    v = y[:2]
    y[0] = new
    with mode():
        _LOOKS[look](v)
    found = grad([xp.sum(v * v)], [x, new])
    np.testing.assert_array_equal(np.asarray(found[0]), [0.0, 36.0, 0.0])
    np.testing.assert_array_equal(np.asarray(found[1]), 10.0)


# -- policies ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.ones(()), np.ones((), dtype=np.float32)])
def test_raw_arrays_are_not_gradients(wrong: Any) -> None:
    """A raw array given as a gradient raises an error that says what to do (BWD-24, BWD-25)."""
    x = leaf(2.0)
    for call in (lambda y: y.backward(wrong), lambda y: backward([y], [wrong]), lambda y: grad(y, x, wrong)):
        with pytest.raises(TypeError, match=r"xpgrad\.asarray"):
            call(x * 1)


def test_a_number_that_was_an_operand_can_be_read_as_it_is() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for y, number in ((x**3, 3), (x * 0.5, 0.5)):
        assert y.grad_fn._saved_other == number
        xp.sum(y).backward()
        assert y.grad_fn._saved_other == number  # it takes no memory worth freeing


def test_overwritten_saved_values_cannot_be_read() -> None:
    """Reading a saved value that was overwritten raises an error (MUT-03)."""
    h = leaf([1.0, 2.0]) * 1.0
    y = h * h
    h.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.grad_fn._saved_self


@pytest.mark.parametrize("write", ["mul_", "div_", "__imul__"])
def test_an_operand_that_is_overwritten_is_saved_as_it_was(write: str) -> None:
    """An operand that a write modifies through a detached alias is saved as it was (MUT-26; PyTorch: an error in backward)."""
    values = [1.0, 2.0, 4.0]
    x = leaf(values)
    y = x * 1.0
    getattr(y, write)(y.detach())
    y.sum().backward()
    assert x.grad.tolist() == ([1 / v for v in values] if write == "div_" else values)


_WRITES_TO_A_CONSTANT: dict[str, Any] = {
    "constant": lambda q, y: q.mul_(2.0),
    "part": lambda q, y: q[:1].mul_(2.0),
    "key": lambda q, y: q.__setitem__(0, 2.0),
    "alias": lambda q, y: q.detach().mul_(2.0),
    "output": lambda q, y: y.mul_(2.0),
    "no_grad": lambda q, y: xp.no_grad()(y.mul_)(2.0),
}


@pytest.mark.parametrize("write", _WRITES_TO_A_CONSTANT)
@pytest.mark.parametrize("device", ["numpy", "numpy+readonly"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_writes_to_a_constant_that_a_function_returned(write: str, device: str, several: bool, inner: bool) -> None:
    """After a write to a constant that a Function returned with a history, using the output raises an error (MUT-26, FUN-22)."""
    x, q = leaf([1.0, 2.0]), xp.asarray([3.0, 4.0], device=device)
    straight_through = function(lambda ctx, x, q: (q, x * 2.0) if several else q, lambda ctx, g, *more: (g, None))
    y = straight_through.apply(xp.tensor(x, device=device, requires_grad=True), q)
    y = y[0] if several else y
    y = y[:] if inner else y

    def use() -> None:
        _WRITES_TO_A_CONSTANT[write](q, y)
        y.sum().backward()

    with pytest.raises(RuntimeError, match="is a view and"):
        use()


@pytest.mark.parametrize("first", [False, True])
def test_a_view_of_an_overwritten_argument_is_an_output(first: bool) -> None:
    """A Function that overwrites its argument may also return a view of it; later writes to the argument make that view unusable."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x.mul_(2.0))
        return (x, x[1:]) if first else (x[1:], x)

    def backward(ctx: Any, *grads: Any) -> Any:
        whole, part = grads if first else reversed(grads)
        return 2.0 * whole + 2.0 * xp.concat([xp.zeros(1), part])

    x = leaf([1.0, 2.0])
    written = x * 3.0
    outputs = function(forward, backward).apply(written)
    part = outputs[1] if first else outputs[0]
    (written.sum() + 5.0 * part.sum()).backward()
    assert x.grad.tolist() == [6.0, 36.0]
    written.mul_(2.0)
    with pytest.raises(RuntimeError, match="multiple views"):
        part.sum()


def test_a_leaf_may_not_move_into_the_graph() -> None:
    x = leaf([1.0, 2.0])
    y = -x
    x.detach_()
    x.mul_(y)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        x.sum().backward()


def test_check_nan_is_restored() -> None:
    """The setting of `check_nan` is restored after an exception (ANO-06)."""
    with pytest.raises(KeyError), anomaly_mode.set_detect_anomaly(True, check_nan=False):  # noqa: PT012
        assert not anomaly_mode.is_anomaly_check_nan_enabled()
        raise KeyError
    assert anomaly_mode.is_anomaly_check_nan_enabled()


# -- reference counting ------------------------------------------------------------------------------------------------------------


def test_everything_is_reclaimed_by_reference_counting() -> None:
    """Neither a leaf nor its graph needs the cycle collector (ACC-32)."""
    with no_collector():
        x = leaf([1.0, 2.0])
        y = (x * x).sin()
        refs = [weakref.ref(t) for t in (x, y, y.grad_fn)]
        y.sum().backward()
        del x, y
        assert [r() for r in refs] == [None] * 3


@pytest.mark.parametrize("save", ["input", "output", "both"])
@pytest.mark.parametrize("order", [1, 2])
def test_custom_nodes_are_reclaimed_by_reference_counting(save: str, order: int) -> None:
    """The saved inputs and outputs of a custom Function make no reference cycle (ACC-32)."""

    def forward(ctx: Any, x: Any) -> Any:
        out = x * 2
        ctx.save_for_backward(*{"input": (x,), "output": (out,), "both": (x, out, None)}[save])
        return out

    with no_collector():
        x = leaf([2.0])
        y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 1)
        refs = [weakref.ref(t) for t in (x, y, y.grad_fn)]
        g = y.sum()
        for k in range(order):
            (g,) = grad(g.sum(), x, create_graph=k < order - 1, retain_graph=True)
        del x, y, g
        assert [r() for r in refs] == [None] * 3


def test_hooks_on_several_tensors_keep_no_graph_alive() -> None:
    """A hook on several Tensors does not keep their graph alive (HOK-28, HOK-31)."""
    with no_collector():
        x, y = leaf(3.0), leaf(2.0)
        z = x * y
        register_multi_grad_hook([x, y, z], lambda gs: None)
        refs = [weakref.ref(x), weakref.ref(z.grad_fn)]
        z.backward()
        del x, y, z
        assert [r() for r in refs] == [None, None]


# -- nested and concurrent passes ---------------------------------------------------------------------------------------------------


def test_hooks_on_several_tensors_count_each_pass_for_itself() -> None:
    """A hook on several Tensors counts the gradients of each pass separately (HOK-32, THR-06)."""
    x, w = leaf(3.0), leaf(2.0)
    seen: list[Any] = []
    register_multi_grad_hook([x, w], lambda gs: seen.append([g is not None for g in gs]))
    y = x * w

    def nested(g: Any) -> None:
        with xp.enable_grad():
            backward(x * 5)

    y.register_hook(nested)
    y.backward()
    assert seen == [[True, False], [True, True]]


@pytest.mark.parametrize("is_leaf", [False, True])
@pytest.mark.parametrize("how", ["grad", "inputs"])
def test_hooks_of_a_root_above_no_input_are_not_called(how: str, is_leaf: bool) -> None:
    """HOK-11: nor is its gradient retained. The hooks of a single root are called, as PyTorch does."""
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    root, calls = x if is_leaf else xp.sin(x), []
    root.register_hook(lambda g: calls.append(g))
    root.retain_grad()
    register_multi_grad_hook((root, y), lambda grads: calls.append(None), mode="any")
    roots = [root, y * y]
    ones = [xp.ones(2, dtype=xp.float64) for _ in roots]
    if how == "grad":
        (found,) = grad(roots, [y], ones)
    else:
        backward(roots, ones, inputs=[y])
        found = y.grad
    assert found.tolist() == [6.0, 8.0]
    assert calls == [None]
    assert root.grad is None
    grad([root], [y], ones[:1], allow_unused=True)
    assert [c is None for c in calls] == [True, False, True]


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_in_a_batch_of_a_backward_that_cannot_be_differentiated(compiled: bool, create: bool) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        return g * xp.cos(ctx.saved_tensors[0])

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return xp.sin(x)

    sine = function(forward, once_differentiable(backward)).apply
    x = leaf([1.0, 2.0])
    y = (xp.compile(sine) if compiled else sine)(x)
    (rows,) = xp.autograd.grad(y, x, xp.eye(2, dtype=xp.float64), is_grads_batched=True, create_graph=create)
    np.testing.assert_allclose(rows.detach().numpy(), np.diag(np.cos([1.0, 2.0])), rtol=1e-12)
    if create:
        with pytest.raises(RuntimeError, match="trying to differentiate twice"):
            xp.sum(rows).backward()


def test_several_passes_over_one_custom_node_at_once() -> None:
    """Several passes may run over one custom node at the same time (FUN-14, THR-01)."""
    x = leaf([2.0])
    barrier = threading.Barrier(4)

    def slow(ctx: Any, g: Any) -> Any:
        barrier.wait(timeout=20)
        return g * 2

    y = function(lambda ctx, x: x * 2, slow).apply(cube().apply(x)).sum()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(grad(y, x, retain_graph=True)[0].tolist())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[24.0]] * 4


def test_a_nested_pass_frees_and_is_refused_what_is_freed() -> None:
    """A nested pass, on its private copies of the nodes' fields, frees the graph, and the next one raises (RET-01, THR-06)."""
    x = leaf([2.0])
    y = cube().apply(x).sum()

    def hook(g: Any) -> None:
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()

    w = leaf(1.0) * 2
    w.register_hook(hook)
    w.backward()
    assert x.grad.tolist() == [12.0]


_KEEPERS: dict[str, Any] = {
    "tensor hook": lambda x, node, keep: x.register_hook(lambda g: keep(g)),
    "retained": lambda x, node, keep: None,
    "multi-grad hook on all": lambda x, node, keep: register_multi_grad_hook([x], lambda gs: keep(gs[0]), mode="all"),
    "multi-grad hook on any": lambda x, node, keep: register_multi_grad_hook([x], lambda g: keep(g), mode="any"),
    "node pre-hook": lambda x, node, keep: node.register_prehook(lambda gs: keep(gs[0])),
}


@pytest.mark.parametrize("interior", [False, True], ids=["leaf", "interior"])
@pytest.mark.parametrize("kind", _KEEPERS)
def test_what_a_hook_kept_is_never_overwritten(kind: str, interior: bool) -> None:
    """Accumulation after a hook has seen a gradient, in this pass or the next one, does not change that gradient."""
    kept: list[Any] = []
    x = leaf([1.0, 2.0])
    for _ in range(2):
        y = x.exp() if interior else x
        node = xp.autograd.graph.get_gradient_edge(y).node
        if interior or not kept:
            _KEEPERS[kind](y, node, lambda g: kept.append(g))
        if kind == "retained" and interior:
            y.retain_grad()
            kept.append(None)
        xp.sum(y * 2 + y * 3 + y).backward()
        if kind == "retained" and interior:
            kept[-1] = y.grad
    assert kind == "retained" or len(kept) == 2
    for g in kept:
        np.testing.assert_array_equal(np.asarray(g), [6.0, 6.0])
    np.testing.assert_allclose(np.asarray(x.grad), 12 * np.exp([1.0, 2.0]) if interior else [12.0, 12.0])


_RESHAPED: dict[str, Any] = {
    "squeeze": lambda part: xp.squeeze(part, axis=1),
    "reshape": lambda part: xp.reshape(part, (1, 2)),
    "flat": lambda part: xp.reshape(part, (-1,))[0:2],
}


@pytest.mark.parametrize("shape", _RESHAPED)
@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("write", ["set", "multiply"])
def test_writes_into_a_reshaped_real_or_imaginary_part(write: str, part: str, shape: str) -> None:
    """A write into a reshaped real or imaginary part has the gradients of the same computation without a write."""

    def leaves() -> Any:
        return xp.tensor(np.asarray([[1 + 2j], [3 - 1j]]), requires_grad=True), leaf([1.5, 2.0])

    z, w = leaves()
    u = z * (1 + 1j)
    b = _RESHAPED[shape](getattr(xp, part)(u))
    if write == "set":
        b[...] = w
    else:
        b.mul_(w)
    found = grad([xp.sum(xp.real(u * xp.conj(u))) + 2 * xp.sum(b**3)], [z, w])

    y, v = leaves()
    before = y * (1 + 1j)
    kept, changed = (xp.imag, xp.real) if part == "real" else (xp.real, xp.imag)
    column = xp.reshape(v, (2, 1))
    new = column if write == "set" else changed(before) * column
    expected = grad([xp.sum(kept(before) ** 2) + xp.sum(new**2) + 2 * xp.sum(new**3)], [y, v])
    for g, e in zip(found, expected):
        np.testing.assert_allclose(np.asarray(g), np.asarray(e))


# -- where PyTorch differs: `docs/coming-from-pytorch.md` ------------------------------------------------------------------------


def _twice(lib: Any, make: Any) -> Any:
    total = make([1.0, 2.0, 3.0])[[1, 1]].sum()
    total.backward()
    return total.backward()


def _dual_lives(lib: Any, make: Any) -> Any:
    x = make([1.0], False)
    with lib.autograd.forward_ad.dual_level():
        dual = lib.autograd.forward_ad.make_dual(x, make([1.0], False))
    assert dual.tolist() == [1.0]
    return x.requires_grad_().requires_grad


def _tangent(lib: Any, make: Any) -> Any:
    tangent = make([1.0], False)
    with lib.autograd.forward_ad.dual_level():
        dual = lib.autograd.forward_ad.make_dual(make([3.0], False), tangent)
        dual *= 2.0
    return tangent.tolist()


def _old_values(lib: Any, make: Any) -> Any:
    x = make([1.0, 2.0])
    total = (x * x).sum()
    x.data = make([3.0, 4.0], False)
    total.backward()
    return x.grad.tolist()


def _closure(lib: Any, make: Any) -> Any:
    x = make([1.0])
    return lib.autograd.gradcheck(lambda _: x * 2.0, (x,), raise_exception=False)


def _decorated_class(lib: Any, make: Any) -> Any:
    return callable(lib.no_grad()(type("Made", (), {})))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("program", "theirs", "ours"), [
    (_twice, RuntimeError, None), (_dual_lives, True, RuntimeError), (_tangent, [2.0], [1.0]), (_old_values, [6.0, 8.0], [2.0, 4.0]),
    (_closure, True, False), (_decorated_class, True, TypeError),
])  # fmt: skip
def test_where_pytorch_differs(program: Any, theirs: Any, ours: Any) -> None:
    torch = pytest.importorskip("torch")
    for lib, expected in ((torch, theirs), (xp, ours)):

        def make(values: list[float], requires_grad: bool = True, lib: Any = lib) -> Any:
            return lib.tensor(values, dtype=lib.float64, requires_grad=requires_grad)

        if isinstance(expected, type):
            with pytest.raises(expected):
                program(lib, make)
        else:
            assert program(lib, make) == expected


# -- inner gradients ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [
    lambda x, w: xp.func.grad(lambda y: y * y * w)(x), lambda x, w: (lambda y: grad(y * y * w, y, create_graph=True)[0])(x * 1.0),
])  # fmt: skip
def test_an_inner_gradient_does_not_walk_the_history_of_its_input(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a pass does not grow with what was recorded before its targets: a loop of inner gradients takes linear time."""
    w = leaf(2.0)
    visits = []
    for length in (10, 300):
        x = w * 1.0
        for _ in range(length):
            x = x * 1.0
        cls, reach = type(x._node), type(x._node).reach
        seen: list[Any] = []

        def counting(self: Any, *args: Any, seen: list[Any] = seen, reach: Any = reach) -> Any:
            seen.append(self)
            return reach(self, *args)

        with monkeypatch.context() as patch:
            patch.setattr(cls, "reach", counting)
            slope = transform(x, w)
        visits.append(len(seen))
        assert grad(slope, w)[0].item() == 8.0  # of 2 w**2
    assert visits[0] == visits[1]


@pytest.mark.parametrize("seed", range(30))
def test_gradients_of_any_nodes_are_those_of_the_whole_graph(seed: int) -> None:
    """With respect to nodes of any age, and of several at once, one of which may depend on another, written ones included."""
    rng = np.random.default_rng(seed)
    w = leaf(rng.normal(size=3))
    made = [w * 1.0, xp.sin(w)]
    for _ in range(25):
        a, b = (made[k] for k in rng.integers(max(len(made) - 6, 0), len(made), 2))
        step = rng.integers(5)
        if step == 0:
            made.append(a * b)
        elif step == 1:
            made.append(a + xp.sin(b))
        elif step == 2:
            made.append(a[rng.integers(3)] * b)
        elif step == 3:
            c = a * 1.0
            c[rng.integers(3)] = b[0]
            made.append(c)
        else:
            made.extend(xp.unstack(xp.stack([a, b * 0.5])))
    total = xp.sum(xp.tanh(made[-1]) + made[-2] * 0.1)
    chosen = [made[k] for k in rng.integers(0, len(made), 3)]
    wanted = grad(total, [*chosen, w], allow_unused=True, retain_graph=True)  # a leaf among the targets: the whole graph is searched
    found = grad(total, chosen, allow_unused=True, retain_graph=True)
    for g, expected in zip(found, wanted):
        assert (g is None) == (expected is None)
        if g is not None:
            np.testing.assert_array_equal(g.numpy(), expected.numpy())
