"""Group J, continued: writes to views and to what has views, and random programs of writes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.contracts.j_mutation import MATRIX, OVERWRITTEN, result, writes_to
from xpgrad_conformance.strategies import seeds, shapes

# -- views -------------------------------------------------------------------------------------------------------------

#: Views of a (3, 2) Tensor, and the same views of NumPy arrays.
VIEWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "slice": (lambda lib, y: y[1:], lambda v: v[1:]),
    "steps": (lambda lib, y: y[::2], lambda v: v[::2]),
    "select": (lambda lib, y: y[1], lambda v: v[1]),
    "column": (lambda lib, y: y[:, 1], lambda v: v[:, 1]),
    "element": (lambda lib, y: y[2, 0], lambda v: v[2, 0:1].reshape(())),
    "nested": (lambda lib, y: y[1:][:, :1][1], lambda v: v[1:][:, :1][1]),
    "permute_dims": (lambda lib, y: lib.xp.permute_dims(y, (1, 0)), lambda v: v.T),
    "expand_dims": (lambda lib, y: lib.xp.expand_dims(y[0], axis=1), lambda v: v[0][:, None]),
    "reshape": (lambda lib, y: lib.xp.reshape(y, (6,)), lambda v: v.reshape(6)),
    "moveaxis": (lambda lib, y: lib.xp.moveaxis(y, 0, 1), lambda v: v.T),
    "squeeze": (lambda lib, y: lib.xp.squeeze(y[:1], axis=0), lambda v: v[0]),
}


def mask_of(like: Callable[[Any], Any]) -> Any:
    """Return a (3, 2) mask with ones where a view covers an element."""
    mask = np.zeros((3, 2))
    like(mask)[...] = 1.0
    return mask


@contract("MUT-14", draw={"seed": seeds})
def a_write_to_a_view_reaches_its_base(lib: Any, seed: int) -> None:
    weights = lib.random((3, 2), seed + 1, rg=False)
    w = lib.value(weights)
    for name, (view, like) in VIEWS.items():
        mask = mask_of(like)
        for write, factor, shift in [("mul_", 3.0, 0.0), ("add_", 1.0, 5.0), ("zero_", 0.0, 0.0), ("fill_", 0.0, 7.0)]:
            with lib.case((name, write)):
                x = lib.random((3, 2), seed)
                v = lib.value(x)
                y = x * x
                part = view(lib, y)
                base_node, node = y.grad_fn, part.grad_fn
                getattr(part, write)(*([] if write == "zero_" else [factor if write == "mul_" else shift]))
                assert part.grad_fn is not node
                assert y.grad_fn is not base_node
                new = np.where(mask > 0, factor * v * v + shift, v * v)
                lib.equal(y, new)
                lib.equal(part, like(new))
                (lib.xp.sum(y * weights) + 2 * lib.xp.sum(part)).backward()
                lib.equal(x.grad, 2 * v * np.where(mask > 0, factor * (w + 2), w))
    # The written value has its own history.
    x, value = lib.random((3, 2), seed), lib.random((2,), seed + 2)
    y = x * x
    y[1].mul_(value)
    lib.xp.sum(y * weights).backward()
    v, u = lib.value(x), lib.value(value)
    lib.equal(x.grad, 2 * v * w * np.stack([np.ones(2), u, np.ones(2)]))
    lib.equal(value.grad, v[1] ** 2 * w[1])


@contract("MUT-15", draw={"seed": seeds})
def a_write_to_the_base_reaches_its_views(lib: Any, seed: int) -> None:
    for name, (view, like) in VIEWS.items():
        mask = mask_of(like)
        for write in ("method", "setitem"):
            with lib.case((name, write)):
                x = lib.random((3, 2), seed)
                v = lib.value(x)
                y = x * x
                part = view(lib, y)
                node = part.grad_fn
                if write == "method":
                    y.mul_(3.0)
                    factor = np.full((3, 2), 3.0)
                else:
                    y[1] = 0.5
                    factor = np.asarray([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
                assert part.grad_fn is not node
                assert part.grad_fn is part.grad_fn
                new = lib.value(y)
                lib.equal(part, like(new))
                lib.xp.sum(part * part).backward()
                lib.equal(x.grad, 2 * keep_covered(like, new) * mask * factor * 2 * v)
    # A write that is not recorded updates a view as well. Until the view is used, its retained gradient belongs to its old node.
    x = lib.tensor(MATRIX)
    y = x * 1.0
    part = y[0]
    part.retain_grad()
    before = lib.xp.sum(part * 2.0)
    with lib.ns.no_grad():
        y.mul_(3.0)
        assert part.retains_grad
        assert not (part + 1.0).requires_grad
    assert part.requires_grad
    before.backward(retain_graph=True)
    lib.equal(part.grad, [2.0, 2.0])
    after = lib.xp.sum(part * part)
    assert part.retains_grad
    before.backward(retain_graph=True)
    lib.equal(part.grad, [2.0, 2.0])
    held = np.asarray(lib.value(part))
    after.backward()
    lib.equal(part.grad, 2.0 + 2 * held)


def keep_covered(like: Callable[[Any], Any], new: Any) -> Any:
    """Return the base's values where a view covers them, and zeros elsewhere."""
    return new * mask_of(like)


@contract("MUT-16", draw={"seed": seeds})
def siblings_see_it(lib: Any, seed: int) -> None:
    names = list(VIEWS)
    for k, name in enumerate(names):
        for other in (names[(k + 1) % len(names)], names[(k + 4) % len(names)], name):
            with lib.case((name, other)):
                (view, like), (second, second_like) = VIEWS[name], VIEWS[other]
                x = lib.random((3, 2), seed)
                v = lib.value(x)
                y = x * x
                part, sibling = view(lib, y), second(lib, y)
                part.mul_(3.0)
                factor = np.where(mask_of(like) > 0, 3.0, 1.0)
                lib.equal(sibling, second_like(factor * v * v))
                lib.xp.sum(sibling).backward()
                lib.equal(x.grad, 2 * v * factor * mask_of(second_like))


@contract("MUT-17")
def several_views_at_once_are_refused(lib: Any) -> None:
    refused = "is a view and is being modified inplace. This view is the output of a function that returns multiple views"
    outdated = "is a view and its base or another view of its base has been modified inplace"
    functions: dict[str, Callable[[Any], Any]] = {
        "unstack": lambda y: lib.xp.unstack(y),
        "columns": lambda y: lib.xp.unstack(y, axis=1),
        "unbind": lambda y: y.unbind(0),
    }
    for name, several in functions.items():
        for how, write in writes_to(lib, lib.tensor(2.0)).items():
            with lib.case((name, how)):
                _, y = result(lib)
                before = several(y)
                with lib.raises(RuntimeError, refused, *([] if how == "part" else ["Output 1 of Unbind"])):
                    write(before[1])
                with lib.raises(RuntimeError, refused):
                    write(before[1][:1])  # nor may a view of one be written to
        with lib.case(name):
            x, y = result(lib)
            one = several(y)[0]
            y.mul_(2.0)
            with lib.raises(RuntimeError, outdated):
                _ = one.grad_fn
            with lib.raises(RuntimeError, outdated):
                one * 1
            # They can be read and differentiated like other views, and written to when nothing is recorded.
            x, y = result(lib)
            parts = several(y)
            lib.xp.sum(parts[0] * parts[0]).backward()
            assert lib.value(x.grad).any()
            with lib.ns.no_grad():
                parts[0].mul_(2.0)
            lib.xp.unstack(lib.constant(MATRIX))[0].mul_(2.0)


@contract("MUT-18")
def unrecorded_views_are_refused(lib: Any) -> None:
    for name, (view, _) in VIEWS.items():
        for how, write in writes_to(lib, lib.tensor(2.0)).items():
            if how == "part" and name == "element":
                continue  # a single element has no part to write to
            with lib.case((name, how)):
                _, y = result(lib)
                before = lib.value(y).copy()
                with lib.ns.no_grad():
                    part = view(lib, y)
                with lib.raises(RuntimeError, "created in no_grad mode and is being modified inplace with grad mode enabled"):
                    write(part)
                lib.equal(y, before)
                with lib.ns.no_grad():
                    write(part)
                view(lib, y).mul_(2.0)  # a view made in grad mode may be written to, but then the other one cannot be used
                with lib.raises(RuntimeError, "its base or another view of its base has been modified inplace with grad mode enabled"):
                    part * 2.0
    _, y = result(lib)
    with lib.ns.no_grad():
        part = y[0]
    y.mul_(2.0)
    with lib.raises(RuntimeError, "its base or another view of its base has been modified inplace with grad mode enabled"):
        part * 2.0
    with lib.ns.no_grad():
        part = lib.constant(MATRIX)[0]
    part.mul_(2.0)  # and so may a view whose base has no history
    lib.equal(part, [2.0, 4.0])


@contract("MUT-19")
def ordinary_views_are_no_obstacle(lib: Any) -> None:
    x, y = result(lib)
    alive = [y[0], y[1:], lib.xp.permute_dims(y, (1, 0)), y.detach(), y[1:][0]]
    v = lib.value(x).copy()
    y.mul_(2.0)
    alive[1].mul_(5.0)
    alive[0].add_(1.0)
    factor = np.asarray([[2.0, 2.0], [10.0, 10.0], [10.0, 10.0]])
    shift = np.asarray([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    lib.equal(y, factor * v + shift)
    for t, like in zip(alive, [lambda a: a[0], lambda a: a[1:], lambda a: a.T, lambda a: a, lambda a: a[1]], strict=True):
        lib.equal(t, like(factor * v + shift))
    lib.xp.sum(y * y).backward()
    lib.equal(x.grad, 2 * (factor * v + shift) * factor)
    with lib.ns.no_grad():  # a leaf that shares its memory with another Tensor
        w = lib.tensor(MATRIX)
        alias = w.detach()
        w.mul_(2.0)
    lib.equal(alias, 2 * np.asarray(MATRIX))


unchecked("MUT-20", "out of scope: the functions of the Array API standard have no `out=`")


@contract("MUT-21", draw={"shape": shapes(1, 2), "n": st.integers(2, 3)})
def expanded_memory_is_refused(lib: Any, shape: Any, n: int) -> None:
    phrase = "more than one element of the written-to tensor refers to a single memory location"
    for rg in (False, True):
        base = lib.ones(*shape, rg=rg) * 1
        for name, wide in [("new axis", lib.xp.broadcast_to(base, (n, *shape))), ("expand", base.expand(n, *shape))]:
            for write in ("add_", "mul_", "copy_"):  # NB: PyTorch allows `zero_` and `fill_`
                with lib.case((rg, name, write)):
                    values = {"add_": [1.0], "mul_": [lib.constant(2.0)], "copy_": [lib.ones(n, *shape)]}[write]
                    with lib.raises(RuntimeError, phrase):
                        getattr(wide, write)(*values)
                    lib.equal(base, np.ones(shape))


@contract("MUT-22", draw={"mask": st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=3, max_size=3), "seed": seeds})
def overwritten_parts_get_zero(lib: Any, mask: Any, seed: int) -> None:
    where = np.asarray(mask)
    everything = np.ones((3, 2), dtype=bool)
    index = np.asarray([[True, True], [False, False], [True, True]])
    writes: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "zero_": (lambda y: y.zero_(), everything),
        "fill_": (lambda y: y.fill_(7.0), everything),
        "slice": (lambda y: y.__setitem__(slice(1, None), 7.0), np.asarray([[False] * 2, [True] * 2, [True] * 2])),
        "zero_ of a view": (lambda y: y[0].zero_(), np.asarray([[True] * 2, [False] * 2, [False] * 2])),
        "masked_fill_": (lambda y: y.masked_fill_(lib.constant(where, dtype="bool"), 7.0), where),
        "integers": (lambda y: y.__setitem__(lib.constant([0, 2], dtype=lib.index), 7.0), index),
    }
    if lib.capabilities["boolean_indexing"]:
        writes["mask"] = (lambda y: y.__setitem__(lib.constant(where, dtype="bool"), 7.0), where)
        rows = [True, False, True]  # a list of bools is a mask, not a list of the places 1 and 0
        writes["list of bools"] = (lambda y: y.__setitem__(rows, 7.0), np.asarray([rows, rows]).T)
    for name, (write, written) in writes.items():
        with lib.case(name):
            x, w = lib.random((3, 2), seed), lib.random((3, 2), seed + 1, rg=False)
            y = x * x
            write(y)
            assert y.requires_grad
            lib.xp.sum(y * w).backward()
            lib.equal(x.grad, np.where(written, 0.0, 2 * lib.value(x) * lib.value(w)))
    # The written value receives the gradient instead.
    x, value = lib.random((3, 2), seed), lib.tensor(7.0)
    y = x * x
    y.masked_fill_(lib.constant(where, dtype="bool"), value)
    lib.xp.sum(y).backward()
    lib.equal(value.grad, float(where.sum()))


@contract("MUT-23")
def mutation_of_what_was_saved(lib: Any) -> None:
    allow = lib.graph.allow_mutation_on_saved_tensors
    x = lib.tensor([0.3, 0.5, 0.7])
    v = lib.value(x).copy()
    with allow():
        y = x * 1.0
        z = lib.xp.sum(lib.xp.sin(y) * lib.xp.exp(y))
        y.mul_(0.0)
        y.add_(1.0)
        z.backward()
        lib.equal(x.grad, np.exp(v) * (np.sin(v) + np.cos(v)))
        lib.equal(y, np.ones(3))
        with lib.raises(RuntimeError, "cannot be nested"), allow():
            pass
        late = lib.xp.sum(lib.xp.exp(x) * x)
        base = lib.constant([[1.0, 2.0], [3.0, 4.0]])
        row = base[0]
        row[1] = 5.0  # nothing has saved the memory
        lib.equal(base, [[1.0, 5.0], [3.0, 4.0]])
        base[0] = 6.0
        lib.equal(row, [6.0, 6.0])
    with lib.raises(AssertionError, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        late.backward()
    with lib.raises(AssertionError, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        lib.grad(late, x, lib.ones(2), is_grads_batched=True)
    with allow():  # entering the context again is not nesting
        c = lib.constant(v)
        (x * c).sum()
        z = lib.xp.sum(x * c)
        c.zero_()
        lib.equal(lib.grad(z, x)[0], v)
    # Outside the context, a write to a saved value raises as usual.
    y = x * 1
    z = lib.xp.sum(y * y)
    y.add_(1.0)
    with lib.raises(RuntimeError, OVERWRITTEN):
        z.backward()
    # Writes through views, with values saved before the write and after it.
    with allow():
        y = x * 1.0
        z = lib.xp.sin(y)
        y[1:].mul_(0.7)
        lib.equal(lib.grad(lib.xp.sum(z) + lib.xp.sum(y * y), x)[0], np.cos(v) + 2 * v * np.asarray([1.0, 0.49, 0.49]))


unchecked("MUT-24", "out of scope: the Array API standard has no `resize_`")


@contract("MUT-25")
def a_view_from_before_is_not_lost(lib: Any) -> None:
    base = lib.constant([1.0, 2.0])
    view = base[:1]
    try:
        base.requires_grad_()
    except RuntimeError:
        pass  # refused, so no gradient can be lost
    else:
        lib.xp.sum(view * view).backward()
        lib.equal(base.grad, [2.0, 0.0])
    del view
    gc.collect()
    base = lib.constant([1.0, 2.0])
    base.requires_grad_()
    lib.xp.sum(base[:1] * 3).backward()
    lib.equal(base.grad, [3.0, 0.0])
    plain = lib.constant([1.0, 2.0])  # a view of a constant can become a leaf itself
    own = plain[:1].requires_grad_()
    assert own.is_leaf
    lib.xp.sum(own * own).backward()
    lib.equal(own.grad, [2.0])
    assert not plain.requires_grad


# -- what is not refused is right --------------------------------------------------------------------------------------

SHAPE = (3, 2)
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "mul_": (lambda t: t.mul_(0.5), lambda lib, s: s * 0.5),
    "add_": (lambda t: t.add_(1.0), lambda lib, s: s + 1.0),
    "pow_": (lambda t: t.pow_(2), lambda lib, s: s**2),
    "sin_": (lambda t: t.sin_(), lambda lib, s: lib.xp.sin(s)),
    "tanh_": (lambda t: t.tanh_(), lambda lib, s: lib.xp.tanh(s)),
    "neg_": (lambda t: t.neg_(), lambda lib, s: -s),
    "zero_": (lambda t: t.zero_(), lambda lib, s: s * 0.0),
    "fill_": (lambda t: t.fill_(1.5), lambda lib, s: s * 0.0 + 1.5),
    "setitem": (lambda t: t.__setitem__(..., 0.25), lambda lib, s: s * 0.0 + 0.25),
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add_": (lambda t, u: t.add_(u), lambda s, u: s + u),
    "mul_": (lambda t, u: t.mul_(u), lambda s, u: s * u),
    "sub_": (lambda t, u: t.sub_(u), lambda s, u: s - u),
    "copy_": (lambda t, u: t.copy_(u), lambda s, u: s * 0.0 + u),
    "setitem": (lambda t, u: t.__setitem__(..., u), lambda s, u: s * 0.0 + u),
}
SLICES: dict[str, Callable[[Any], Any]] = {
    "[1:]": lambda t: t[1:],
    "[::2]": lambda t: t[::2],
    "[0]": lambda t: t[0],
    "[-1]": lambda t: t[-1],
    "[..., 1:]": lambda t: t[..., 1:],
    "[None]": lambda t: t[None],
}
READS: dict[str, Callable[[Any, Any], Any]] = {
    "t": lambda lib, t: t,
    "t * t": lambda lib, t: t * t,
    "sin": lambda lib, t: lib.xp.sin(t),
    "exp": lambda lib, t: lib.xp.exp(t * 0.5),
}
steps = st.one_of(
    st.tuples(st.just("view"), st.integers(0, 5), st.sampled_from([*SLICES, ".T"])),
    st.tuples(st.just("write"), st.integers(0, 5), st.sampled_from(list(UNARY))),
    st.tuples(st.just("by"), st.integers(0, 5), st.sampled_from(list(BINARY)), st.integers(0, 5)),
    st.tuples(st.just("read"), st.integers(0, 5), st.sampled_from(list(READS))),
)


class FunctionalModel:
    """A functional model of programs with writes: the memory is a vector, and a view is given by the positions of its elements."""

    def __init__(self, lib: Any, x: Any) -> None:
        self.lib, self.memory = lib, lib.xp.reshape(x * 1, (6,))

    def pick(self, places: Any) -> Any:
        """Return the matrix that selects a view's elements from the memory."""
        return self.lib.constant(np.eye(6)[places.reshape(-1)])

    def read(self, places: Any) -> Any:
        """Return a view's values as a vector."""
        return self.lib.xp.matmul(self.pick(places), self.memory)

    def write(self, places: Any, values: Any) -> None:
        """Replace the memory by one that has these values at a view's positions."""
        kept = np.ones(6)
        kept[places.reshape(-1)] = 0.0
        into = self.lib.xp.matmul(self.lib.xp.matrix_transpose(self.pick(places)), values)
        self.memory = self.memory * self.lib.constant(kept) + into


#: Programs that are likely to reveal errors; others are drawn.
PROGRAMS: tuple[Any, ...] = (
    [("view", 0, "[1:]"), ("write", 1, "mul_"), ("read", 0, "t * t")],
    [("view", 0, "[1:]"), ("write", 0, "pow_"), ("read", 1, "t * t")],
    [("view", 0, "[0]"), ("view", 0, "[::2]"), ("write", 1, "sin_"), ("read", 2, "t * t")],
    [("view", 0, "[1:]"), ("view", 1, "[0]"), ("write", 2, "fill_"), ("read", 0, "sin"), ("read", 1, "sin")],
    [("view", 0, ".T"), ("view", 1, "[0]"), ("by", 2, "mul_", 2), ("write", 1, "tanh_"), ("read", 0, "t")],
    [("view", 0, "[0]"), ("view", 0, "[-1]"), ("by", 1, "setitem", 2), ("by", 2, "mul_", 1), ("read", 0, "t * t")],
    [("view", 0, "[..., 1:]"), ("by", 1, "copy_", 0), ("write", 0, "pow_"), ("view", 0, "[None]"), ("read", 2, "exp")],
    [("write", 0, "pow_"), ("write", 0, "sin_"), ("by", 0, "mul_", 0), ("write", 0, "neg_")],
    [("read", 0, "t * t"), ("write", 0, "add_")],
    [("view", 0, "[0]"), ("read", 1, "exp"), ("write", 0, "zero_")],
)


@contract("MUT-26", draw={"program": st.lists(steps, min_size=3, max_size=9), "seed": seeds})
def no_error_means_right(lib: Any, program: Any, seed: int) -> None:
    for each in (program, *PROGRAMS):
        with lib.case(each):
            run_both(lib, each, seed)


def run_both(lib: Any, program: Any, seed: int) -> None:
    """Run a program with its writes and on the functional model, and compare the values after each step and the gradients."""
    x, weights = lib.random(SHAPE, seed), lib.random(SHAPE, seed + 1, rg=False)
    apart = FunctionalModel(lib, x)
    base = x * 1
    views, places = [base], [np.arange(6).reshape(SHAPE)]
    loss, expected = lib.constant(0.0), lib.constant(0.0)
    for kind, k, name, *more in program:
        k %= len(views)
        t, where = views[k], places[k]
        if kind == "view" and where.ndim:
            if name == ".T":
                order = tuple(reversed(range(where.ndim)))
                views.append(lib.xp.permute_dims(t, order))
                places.append(where.transpose(order))
            elif where.ndim < 4 and where.size > 1:
                views.append(SLICES[name](t))
                places.append(np.asarray(SLICES[name](where)))
        elif kind == "write":
            UNARY[name][0](t)
            apart.write(where, UNARY[name][1](lib, apart.read(where)))
        elif kind == "by":
            # The written value depends on the same memory, but is not stored in it.
            j = more[0] % len(views)
            value = lib.xp.sin(views[j])
            value = value if places[j].shape == where.shape else lib.xp.sum(value) * 0.25
            other = lib.xp.sin(apart.read(places[j]))
            other = other if places[j].shape == where.shape else lib.xp.sum(other) * 0.25
            BINARY[name][0](t, value)
            apart.write(where, BINARY[name][1](apart.read(where), other))
        elif kind == "read":
            loss = loss + lib.xp.sum(READS[name](lib, t))
            expected = expected + lib.xp.sum(READS[name](lib, apart.read(where)))
        for view, here in zip(views, places, strict=True):
            lib.equal(view, lib.value(apart.memory)[here], rtol=tolerance(lib), atol=tolerance(lib))
    loss = loss + lib.xp.sum(base * weights)
    expected = expected + lib.xp.sum(apart.read(places[0]) * lib.xp.reshape(weights, (6,)))
    (right,) = lib.grad(expected, x)
    try:
        (found,) = lib.grad(loss, x)
    except RuntimeError as exc:
        if OVERWRITTEN not in str(exc) or not any(step[0] in ("read", "by") for step in program):
            raise
        return  # refused: the write changed a value that a read had saved
    lib.equal(found, lib.value(right), rtol=tolerance(lib), atol=tolerance(lib))


def tolerance(lib: Any) -> float:
    """Return the tolerance for the same operations in another order."""
    return 1e-9 if lib.real == "float64" else 1e-4
