"""Group X: raw arrays, numbers and lists as operands, which are constants; and functions used in unusual ways."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.facade import NotRun

X = np.asarray([[0.4, -1.3, 0.9], [1.7, 0.6, -0.7]])
ROW = np.asarray([0.8, 1.4, 0.5])

#: Functions of a Tensor and a second operand, which is a Tensor, an array or a number.
BESIDE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda xp, x, c: x + c, "+, behind": lambda xp, x, c: c + x,
    "-": lambda xp, x, c: x - c, "-, behind": lambda xp, x, c: c - x,
    "*": lambda xp, x, c: x * c, "*, behind": lambda xp, x, c: c * x,
    "/": lambda xp, x, c: x / c, "/, behind": lambda xp, x, c: c / (x * x + 1),
    "**": lambda xp, x, c: (x * x + 1) ** c, "**, behind": lambda xp, x, c: c**x,
    "comparisons": lambda xp, x, c: xp.where(x > c, x * x, x) + xp.where(c >= x, x, x * 3),
    "maximum": lambda xp, x, c: xp.maximum(x, c) * xp.minimum(c, x),
    "multiply": lambda xp, x, c: xp.multiply(x, c) + xp.multiply(c, x),
    "divide": lambda xp, x, c: xp.divide(c, x * x + 1),
    "atan2": lambda xp, x, c: xp.atan2(c, x),
    "where": lambda xp, x, c: xp.where(x > 0.5, x, c) + xp.where(x > 0.5, c, x),
    "clip": lambda xp, x, c: xp.clip(x, -c, c),
    "clip, one": lambda xp, x, c: xp.clip(x, max=c) * xp.clip(x, min=c),
}  # fmt: skip
#: The same for a second operand that is a matrix or a row, not a number.
BESIDE_ARRAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "@": lambda xp, x, c: x @ c, "matmul": lambda xp, x, c: xp.matmul(x, c), "vecdot": lambda xp, x, c: xp.vecdot(x, c),
    "tensordot": lambda xp, x, c: xp.tensordot(x, c, axes=1),
    "concat": lambda xp, x, c: xp.concat([x[0], c]) * xp.concat([c, x[1]]),
    "stack": lambda xp, x, c: xp.stack([x[0], c], axis=1),
    "a write": lambda xp, x, c: write_twice(xp, x, c),
}  # fmt: skip


def write_twice(xp: Any, x: Any, c: Any) -> Any:
    y = x * 1
    y[0] = c
    y += c
    return y * y


def raw(lib: Any, a: Any) -> Any:
    """Return an array of the target's own library."""
    return lib.constant(a).detach().array


@contract("DER-29")
def constants(lib: Any) -> None:
    if lib.oracle:
        raise NotRun("PyTorch takes NumPy's arrays in few places")
    xp = lib.xp
    backend = lib.constant(X).backend
    sources: dict[str, Callable[[Any], Any]] = {"its own": lambda a: raw(lib, a)}
    if backend.on_host(lib.device):
        sources["NumPy's"] = lambda a: np.asarray(a, dtype=lib.real)
    for where, source in sources.items():
        for name, function in {**BESIDE, **BESIDE_ARRAYS}.items():
            if name == "a write" and not lib.capabilities["mutable"] and where == "its own":
                continue
            if (where == "its own" and name.endswith("behind")) or name == "comparisons":
                continue  # the array's operator is called first, and does not know Tensors
            with lib.case((where, name)):
                x = lib.tensor(X)
                found, wanted = function(xp, x, source(ROW)), function(xp, x, lib.constant(ROW))
                assert found.dtype == wanted.dtype
                lib.equal(found, lib.value(wanted))
                seed = lib.constant(np.cos(np.arange(np.prod(found.shape))).reshape(found.shape))
                lib.equal(lib.grad(found, x, seed)[0], lib.value(lib.grad(wanted, x, seed)[0]))
        x = lib.tensor(X)
        kept = source(ROW)
        (g,) = lib.grad(xp.sum(xp.multiply(kept, x)), x)
        lib.equal(g, np.broadcast_to(ROW, X.shape))
        number = lib.tensor(2.0)
        found = xp.multiply(kept, number)
        assert found.device == number.device
        lib.equal(found, 2 * ROW)
        lib.equal(lib.grad(xp.sum(found), number)[0], np.sum(ROW))
        if where == "NumPy's":
            far = lib.on_other_device(2.0)
            assert xp.multiply(kept, far).device == far.device
            found = xp.take(kept, lib.indices([2, 0]).to_device(far.device))
            assert found.device == far.device
            assert found.tolist() == ROW.astype(lib.real)[[2, 0]].tolist()
        found = xp.matmul(x, source(X.T))
        lib.equal(found, X @ X.T)
        lib.equal(lib.grad(xp.sum(found), x)[0], np.ones((2, 2)) @ X)
        bounds = source(ROW - 0.4), source(ROW)
        lib.equal(xp.clip(x, *bounds), np.clip(X, ROW - 0.4, ROW))
        lib.equal(xp.take(kept, lib.indices([2, 0])), ROW[[2, 0]])
        lib.equal(xp.take_along_axis(kept, lib.indices([2, 0])), ROW[[2, 0]])
        if where == "its own" and backend.variant is not None:
            continue  # without `device` an array is on the backend's devices, which may not have its dtype
        np.testing.assert_array_equal(np.asarray(lib.ns.asarray(kept, device=lib.device).numpy()), ROW.astype(lib.real))
        lib.equal(xp.full((3,), source(np.asarray(2.5))), [2.5] * 3)
        lib.equal(xp.sin(kept), np.sin(ROW))
        assert not xp.sin(kept).requires_grad
        lib.equal(xp.clip(kept, 0.6, 1.0), np.clip(ROW, 0.6, 1.0))
        lib.equal(xp.sum(kept), np.sum(ROW))
        assert lib.value(xp.isclose(kept, kept)).all()
        assert xp.result_type(kept, lib.constant([1], "int8")) == lib.dtype(lib.real)
        lib.equal(lib.module("func").grad(lambda v: xp.sum(v * v))(kept), 2 * ROW)
        lib.equal(lib.module("func").vmap(lambda v: v * 2)(kept), ROW * 2)
        lib.equal(xp.tensor([x[0], kept], device=lib.device), np.stack([X[0], ROW]))
        lib.equal(xp.asarray([kept, kept * 2]), np.stack([ROW, ROW * 2]))
    for number in (2, 2.5, True, np.float64(2.5), np.int8(2), np.asarray(2.5)):
        for name, function in BESIDE.items():
            if isinstance(number, bool) and name in ("-", "-, behind", "clip", "**, behind"):
                continue
            with lib.case((type(number), name)):
                x = lib.tensor(X)
                found, wanted = function(xp, x, number), function(xp, x, lib.constant(float(number)))
                assert found.dtype == x.dtype
                lib.equal(found, lib.value(wanted))
                lib.equal(lib.grad(xp.sum(found * found), x)[0], lib.value(lib.grad(xp.sum(wanted * wanted), x)[0]))
    lib.equal(xp.sin(lib.constant(1.0)), np.sin(1.0))
    # Of numbers alone, the one of the strongest kind becomes a Tensor.
    for found, wanted in (
        (xp.add(2, 3), 5), (xp.add(2, 2.5), 4.5), (xp.maximum(1.5, True), 1.5), (xp.where(True, 1, 2.5), 1.0), (xp.multiply(True, 3), 3),
    ):  # fmt: skip
        with lib.case(wanted):
            assert ("float" in str(found.dtype)) == isinstance(wanted, float)
            assert found.item() == wanted
    x = lib.tensor(ROW)
    y = xp.asarray([x[0] * 2, x[1], 3.0])
    lib.equal(y, [ROW[0] * 2, ROW[1], 3.0])
    lib.equal(lib.grad(xp.sum(y * y), x)[0], [8 * ROW[0], 2 * ROW[1], 0.0])
    nested = xp.asarray([[x[0], 1], [2, x[2]]])
    lib.equal(nested, [[ROW[0], 1.0], [2.0, ROW[2]]])
    lib.equal(lib.grad(xp.sum(nested * nested), x)[0], [2 * ROW[0], 0.0, 2 * ROW[2]])
    assert xp.asarray([lib.constant([1, 2], "int8"), lib.constant([3, 4], "int8")]).dtype == lib.dtype("int8")
    for wrong, error in (
        (np.asarray([1.0, None], dtype=object), TypeError), ([1.0, [2.0]], ValueError), ({1.0}, TypeError), ([x, "text"], TypeError),
        ([x, x[:2]], ValueError), (np.asarray(["a"]), TypeError), (10**400, OverflowError), (np.ma.masked_array([1.0], [True]), TypeError),
    ):  # fmt: skip
        with lib.case(repr(wrong)[:60]), lib.raises(error):
            xp.asarray(wrong)
    operands: Any = (np.asarray([1.0, None, 2.0], dtype=object), "text", None, [1.0, 2.0, 3.0], {1.0})
    for wrong in operands:
        with lib.case(repr(wrong)), lib.raises(TypeError):
            xp.multiply(x, wrong)
        with lib.case(repr(wrong)), lib.raises(TypeError):
            x - wrong
    assert x.grad is None
    lib.equal(x, ROW)


def check_batched_functions(lib: Any) -> None:
    """Check functions inside a batch, with arguments that are not in their tables."""
    vmap, xp = lib.module("func").vmap, lib.xp
    x = lib.constant(X)
    grid = lib.constant([[0.4, 0.9, 1.7], [-0.7, 0.6, 1.7]])
    for side in ("left", "right"):
        found = vmap(lambda g, v, side=side: xp.searchsorted(g, v, side=side))(grid, x)
        wanted = [np.searchsorted(g, v.astype(g.dtype), side=side) for g, v in zip(lib.value(grid), lib.value(x), strict=True)]
        assert lib.value(found).tolist() == np.stack(wanted).tolist()
    for function, value in ((xp.zeros_like, 0), (xp.ones_like, 1)):
        out = vmap(lambda v, f=function: f(v, dtype=lib.dtype("int32")))(x)
        assert (out.dtype, lib.value(out).tolist()) == (lib.dtype("int32"), np.full(X.shape, value).tolist())
    out = vmap(lambda v: xp.full_like(v, 3, dtype=lib.dtype("int32")))(x)
    assert (out.dtype, lib.value(out).tolist()) == (lib.dtype("int32"), np.full(X.shape, 3).tolist())
    if lib.oracle:  # in PyTorch elements of a batch do not show that they require grad, and cannot be detached in place
        return
    lib.equal(vmap(lambda v: (v * 2).detach_() * 3)(x), 6 * X)

    def masked(v: Any, m: Any) -> Any:
        y = v * 1
        y[m] = 0.5
        return y

    if lib.capabilities["linalg"]:
        flat = np.stack([np.diag([1.0, 1e-3]), np.diag([2.0, 1e-3])])
        found = vmap(lambda m, r: lib.xp.linalg.pinv(m, rtol=r))(lib.constant(flat), lib.constant([1e-2, 1e-5]))
        lib.equal(found, np.stack([np.diag([1.0, 0.0]), np.diag([0.5, 1e3])]), 1e-4, 1e-4)
    lib.equal(vmap(masked)(x, x > 0), np.where(X > 0, 0.5, X))
    rows = lib.constant(np.stack([X, 2 * X, 3 * X]))
    truths = np.asarray([[True, False], [False, False], [True, True]])
    lib.equal(vmap(masked)(rows, lib.constant(truths, "bool")), np.where(truths[:, :, None], 0.5, np.stack([X, 2 * X, 3 * X])))
    seen: list[Any] = []

    def hooked(v: Any) -> Any:
        y = v * v

        def twice(g: Any) -> Any:
            seen.append(tuple(g.shape))
            return g * 2

        y.register_hook(twice)
        return xp.sum(y)

    leaf = lib.tensor(X)
    lib.equal(lib.grad(xp.sum(vmap(hooked)(leaf)), leaf)[0], 4 * X)
    assert seen == [(3,)]


def check_shallow_copies(lib: Any) -> None:
    """Check that a copy of a Tensor object shares its memory, its history and its restrictions on writes."""
    x = lib.tensor(X)
    y = x * 2
    for view in (y[0], lib.xp.unstack(y)[0]):
        other = copy.copy(view)
        lib.equal(other, 2 * X[0])
        lib.equal(lib.grad(lib.xp.sum(other * other), x, retain_graph=True)[0], np.stack([8 * X[0], 0 * X[0]]))
    part = copy.copy(lib.xp.unstack(y)[1])
    with lib.raises(RuntimeError):  # a write to one of several views
        part *= 2.0
    before = copy.copy(y)
    y[0] = 0.0
    lib.equal(before, np.stack([0 * X[0], 2 * X[1]]))
    both = [x.detach(), x.detach()]
    both.append(both[0])
    deep = copy.deepcopy(both)
    assert deep[0] is deep[2] is not deep[1]
    for given in (x, lib.constant(X)):
        given.grad = lib.constant(X * 3)
        lib.equal(copy.copy(given).grad, X * 3)


def check_contexts_of_hooks(lib: Any) -> None:
    """Check that a mode which a hook on saved values enters, but never leaves, ends with the hook."""
    ended: list[Any] = []

    def entering(v: Any) -> Any:
        context = lib.ag.set_grad_enabled(False)
        ended.append(context)
        if hasattr(context, "__enter__"):
            context.__enter__()
        return v

    x = lib.tensor(X)
    with lib.graph.saved_tensors_hooks(entering, lambda v: v):
        y = lib.xp.exp(x)
        z = lib.xp.exp(y)
    assert z.requires_grad
    with lib.graph.saved_tensors_hooks(lambda v: v, entering):
        w = lib.xp.exp(x)
    lib.grad(lib.xp.sum(w), x)
    assert lib.ns.is_grad_enabled()
    assert (x * 2).requires_grad
    assert len(ended) >= 3


def check_lost_tangents(lib: Any) -> None:
    """Check the warnings and errors when a value leaves forward mode."""
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        d = fw.make_dual(lib.constant(2.0), lib.constant(1.0))
        for how in (lambda v: v.item(), float, lambda v: v.tolist()):
            with contextlib.nullcontext() if lib.oracle else lib.warns(UserWarning, "tangent"):
                assert how(d) == 2.0
        for again in (lambda: fw.make_dual(d, lib.constant(1.0)), lambda: fw.make_dual(lib.constant(1.0), d)):
            with lib.raises(RuntimeError):
                again()
        for wrong in (lambda: fw.unpack_dual(2.0), lambda: fw.make_dual(2.0, d), lambda: fw.make_dual(lib.constant(1.0), 1.0)):
            with lib.raises(Exception if lib.oracle else TypeError):
                wrong()

    if lib.oracle:  # PyTorch reads such numbers without a warning, and does not nest levels
        return
    jvp, two, one = lib.module("func").jvp, lib.constant(2.0), lib.constant(1.0)
    for read in (lambda v: v.item(), float, lambda v: v.array):
        with lib.raises(RuntimeError, "jvp"):
            jvp(lambda v, read=read: (read(v), v)[1], (two,), (one,))

    def nested(v: Any) -> Any:
        with fw.dual_level():
            inner = fw.unpack_dual(fw.make_dual(lib.constant(3.0), one) * v * v).tangent
        return inner * v

    found = jvp(nested, (two,), (one,))
    lib.equal(found[0], 8.0)
    lib.equal(found[1], 12.0)


def check_anomalies_in_graphs(lib: Any) -> None:
    """Check anomaly detection in a backward that is recorded."""
    if lib.capabilities["lazy"]:
        return
    xp, x = lib.xp, lib.tensor([0.0, 4.0])
    told = lib.ns.is_anomaly_check_nan_enabled if lib.oracle else lib.module("autograd.anomaly_mode").is_anomaly_check_nan_enabled
    with lib.ag.detect_anomaly():
        (g,) = lib.grad(xp.sum(x * x * x), x, create_graph=True)
        lib.equal(lib.grad(xp.sum(g), x)[0], [0.0, 24.0])
        y = xp.sum(xp.sqrt(x) * 0.0)
        with np.errstate(all="ignore"), lib.raises(RuntimeError, "SqrtBackward0", "nan"):
            lib.grad(y, x, create_graph=True)
        assert told()
    assert told()


def check_saved_values_of_several_results(lib: Any) -> None:
    """Check hooks on each value that a node with several results saves."""
    a = np.asarray([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]])
    for name, call in (("eigh", lambda x: lib.xp.linalg.eigh(x)), ("svd", lambda x: lib.xp.linalg.svd(x, full_matrices=False))):
        x = lib.tensor(a)

        def loss(x: Any, call: Any = call) -> tuple[Any, Any]:
            outs = call(x)
            return lib.xp.sum(sum(lib.xp.sum(o * o) if o.ndim == 1 else lib.xp.sum(lib.xp.abs(o)) for o in outs)), outs[0].grad_fn

        (wanted,) = lib.grad(loss(x)[0], x)
        total, node = loss(x)
        packed = 0
        for saved in [n for n in dir(node) if n.startswith("_raw_saved_")]:
            found = getattr(node, saved)
            for raw in found if isinstance(found, tuple) else (found,):
                if hasattr(raw, "register_hooks"):
                    with contextlib.suppress(RuntimeError):  # the value is not kept, or has hooks under another name
                        raw.register_hooks(lambda t: t * 1, lambda t: t)
                        packed += 1
        with lib.case(name):
            assert packed >= 2
            lib.equal(lib.grad(total, x)[0], lib.value(wanted))


def check_one_saved_result(lib: Any) -> None:
    """Check hooks on one of the values that a node with several results saves."""
    xp = lib.xp
    x = lib.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]])
    outs = values, vectors = xp.linalg.eigh(x)
    node = values.grad_fn
    loss = lambda w, v: xp.sum(w * w) + xp.sum(v[0] * v[1] * v[2])  # noqa: E731
    saved = (lambda: (node._saved_eigenvalues, node._saved_eigenvectors)) if lib.oracle else lambda: node._saved_out
    total, other = loss(*outs), xp.sum(values * 2) + xp.sum(vectors[0] * vectors[1])
    (wanted,) = lib.grad(total, x, retain_graph=True)
    (node._raw_saved_eigenvectors if lib.oracle else node._raw_saved_out[1]).register_hooks(lambda t: t * 1, lambda t: t)
    found = saved()
    for one, out in zip(found, outs, strict=True):
        lib.equal(one, lib.value(out))
        assert one.requires_grad
    for y in (total, loss(*found)):
        lib.equal(lib.grad(y, x, retain_graph=True)[0], lib.value(wanted))
    with lib.ns.no_grad():
        values.mul_(2.0)
    for read in (lambda: lib.grad(other, x), saved):
        with lib.raises(RuntimeError, "modified by an inplace operation"):
            read()
    # The versions of packed values are not checked.
    outs = values, vectors = xp.linalg.eigh(x)
    node, before = values.grad_fn, [lib.value(out).copy() for out in outs]
    for raw in (node._raw_saved_eigenvalues, node._raw_saved_eigenvectors) if lib.oracle else node._raw_saved_out:
        raw.register_hooks(lambda t: t.detach() * 1, lambda t: t)
    total = xp.sum(values * 2) + xp.sum(vectors[0] + 3 * vectors[1])
    (wanted,) = lib.grad(total, x, retain_graph=True)
    with lib.ns.no_grad():
        for out in outs:
            out.mul_(0.5)
    lib.equal(lib.grad(total, x, retain_graph=True)[0], lib.value(wanted))
    for one, value in zip(saved(), before, strict=True):
        lib.equal(one, value)


def check_views_of_written_constants(lib: Any) -> None:
    """Check that the views of a constant get a history when a custom Function writes into the constant."""

    def forward(ctx: Any, z: Any, x: Any) -> Any:
        ctx.mark_dirty(z)
        z.add_(x)
        return z, x * 2

    function = lib.fn(forward, lambda ctx, g, h: (g, g + 2 * h)).apply
    x, z = lib.tensor(ROW), lib.constant(np.zeros(3))
    view = z[1:]
    function(z, x)
    assert z.requires_grad
    lib.equal(lib.grad(lib.xp.sum(view * view), x)[0], [0.0, 2 * ROW[1], 2 * ROW[2]])


def check_transposing_in_place(lib: Any) -> None:
    """Check that a Tensor which is transposed in place keeps its values, its history and its memory."""
    xp, x = lib.xp, lib.tensor(X)
    y = x * 2
    z = y * y
    assert y.transpose_(0, 1) is y
    lib.equal(y, 2 * X.T)
    assert y._version == 1
    with lib.raises(RuntimeError, "modified by an inplace operation"):
        lib.grad(xp.sum(z), x)
    lib.equal(lib.grad(xp.sum(y * y * y), x, retain_graph=True)[0], 24 * X**2)
    row = y[0]
    y[0, 1] = 5.0
    lib.equal(row, [2 * X[0, 0], 5.0])
    lib.equal(lib.grad(xp.sum(y), x)[0], 2.0 * (np.arange(6).reshape(2, 3) != 3))
    column = lib.constant([[1.0], [2.0]]) * 1
    column[0] = 3.0
    column.transpose_(-1, 0)
    lib.equal(column, [[3.0, 2.0]])
    expanded = column.expand(3, 2)
    with lib.raises(RuntimeError):
        expanded.add_(1.0)
    with lib.raises(RuntimeError):
        x.transpose_(0, 1)


def check_attributes_of_elements(lib: Any) -> None:
    """Check what an element of a batch says about itself, and that its hook runs for all elements."""
    seen: list[Any] = []

    def look(v: Any) -> Any:
        y = v * v
        assert (v.requires_grad, y.requires_grad, y.is_leaf, v.grad) == (True, True, False, None)
        assert y.grad_fn is not None
        assert not y.data.requires_grad
        assert not y.is_inference()
        y.register_hook(lambda g: seen.append(tuple(g.shape)))
        return lib.xp.sum(y)

    leaf = lib.tensor(X)
    lib.equal(lib.grad(lib.xp.sum(lib.module("func").vmap(look)(leaf)), leaf)[0], 2 * X)
    assert len(seen) == 1


@dataclasses.dataclass
class Point:
    """Two Tensors and a name, which no transform changes."""

    place: Any
    name: str
    speed: Any = None


def check_trees_of_records(lib: Any) -> None:
    """Check dataclasses as arguments and results of transforms."""
    func, xp = lib.module("func"), lib.xp
    p = Point(lib.constant(X), "p", [lib.constant(ROW)])
    energy = lambda q: xp.sum(q.place**2) + xp.sum(q.speed[0] ** 3)  # noqa: E731
    g = func.grad(energy)(p)
    assert (type(g), g.name) == (Point, "p")
    lib.equal(g.place, 2 * X)
    lib.equal(g.speed[0], 3 * ROW**2)
    out, moved = func.jvp(lambda q: Point(q.place * 2, "out"), (p,), (Point(p.place, "another", p.speed),))
    assert (out.name, moved.name) == ("out", "out")
    lib.equal(moved.place, 2 * X)
    with lib.raises(RuntimeError):
        func.jvp(lambda q: q.place, (p,), ([p.place, p.speed],))
    lib.equal(func.vmap(lambda q, v: q.place * v, in_dims=(None, 0))(Point(p.speed[0], "q"), p.place), X * ROW)


def check_arbitrary_phases(lib: Any) -> None:
    """Check that a loss which depends on the phases of complex eigenvectors or singular vectors is refused."""
    if lib.capabilities["lazy"]:  # whether it depends on them is a value, which is not known before the graph is computed
        return
    linalg = lib.xp.linalg
    a = np.asarray([[2.0, 0.3 + 0.4j], [0.3 - 0.4j, 1.0]])
    for name, call in (("eigh", lambda x: linalg.eigh(x)[1]), ("svd", lambda x: linalg.svd(x)[0]), ("eig", lambda x: linalg.eig(x)[1])):
        x = lib.tensor(a, dtype=lib.complex)
        with lib.case(name), lib.raises(RuntimeError):
            lib.grad(lib.xp.sum(lib.xp.imag(call(x * (1.0 + 0.0j))) * lib.constant([[1.0, 2.0], [3.0, 5.0]])), x)


def check_order_of_leaves(lib: Any) -> None:
    """Check that a leaf gets its gradient as soon as it is complete, also after a pass that only read its gradient."""
    a, b = lib.tensor(X), lib.tensor(X)
    order: list[str] = []
    for name, leaf in (("a", a), ("b", b)):
        leaf.register_hook(lambda g: g * 1)
        leaf.register_post_accumulate_grad_hook(lambda x, name=name: order.append(name))
    lib.grad(lib.xp.sum(a * 2 + b[0]), [a])
    lib.backward(lib.xp.sum((b * 3) * a))
    assert order == ["a", "b"]


def check_names(lib: Any) -> None:
    """Check that `dir` lists the public names of each module, and that each of them exists."""
    modules = [lib.ns, lib.xp.linalg, lib.xp.fft, lib.ag, lib.graph, lib.module("errors"), lib.module("backend"), lib.module("utils")]
    modules += [
        lib.module(f"autograd.{name}") for name in ("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "profiler")
    ]
    modules += [lib.module(name) for name in ("func", "utils.checkpoint", "dialects", "dialects.libtorch", "dialects.oneflow", "emitter")]
    for module in modules:
        names = dir(module)
        assert names == sorted(names)
        assert set(getattr(module, "__all__", ())) <= set(names)
        assert not any(name.startswith("_") and not name.startswith("__") for name in names)
        for name in names:
            with lib.case((module.__name__, name)):
                getattr(module, name)
    x = lib.tensor(X)
    assert {"grad", "backward", "detach", "shape", "exp"} <= set(dir(x))
    assert eval(repr(x.device), {"Device": lib.ns.Device}) == x.device
    assert x.__array_namespace__(api_version="2024.12").sum(x).item() == lib.xp.sum(x).item()
    with lib.raises(ValueError):
        x.__array_namespace__(api_version="1999.01")


def check_writes_that_make_batches(lib: Any) -> None:
    """Check that a Tensor which all elements of a batch share becomes one for each if they write to different places."""

    def one_hot(i: Any) -> Any:
        y = lib.xp.zeros(3)
        part = y[1:]
        y[i] = 1.0
        return y, part * 2

    found = lib.module("func").vmap(one_hot)(lib.indices([2, 0, 1]))
    wanted = np.eye(3)[[2, 0, 1]]
    lib.equal(found[0], wanted)
    lib.equal(found[1], 2 * wanted[:, 1:])


def check_results_that_are_computed(lib: Any) -> None:
    """Check that `compute` changes neither values nor histories, and that a view still shares its memory."""
    x = lib.tensor(X)
    y = x * 2
    row = y[0]
    c = lib.constant(X)
    assert lib.ns.compute(y, None, row, c) is None
    lib.equal(lib.grad(lib.xp.sum(y * y), x)[0], 8 * X)
    lib.equal(row, 2 * X[0])
    c[0] = 5.0
    lib.equal(c, [[5.0] * 3, X[1]])
    with lib.raises(TypeError, "compute"):
        lib.ns.compute([x])


def check_aliases(lib: Any) -> None:
    """Check shallow copies of inference tensors and of Tensors with a tangent, and that `detach_` drops a tangent."""
    with lib.ns.inference_mode():
        z = lib.constant(ROW)
        for other in (copy.copy(z), copy.copy(z[:2])):
            z[0] = 5.0
            assert other.is_inference()
            lib.equal(other[0], 5.0)
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        d = fw.make_dual(lib.constant(X), lib.constant(2 * X))
        lib.equal(fw.unpack_dual(copy.copy(d) * 3).tangent, 6 * X)
        y = d * 2
        y.detach_()
        assert fw.unpack_dual(y * 1).tangent is None
        assert "tangent=" in repr(d)

        def both(v: Any) -> Any:
            primal, tangent = fw.unpack_dual(fw.make_dual(v, v * 2) ** 2)
            assert fw.unpack_dual(primal * 1).tangent is None
            return primal, tangent

        primals, tangents = lib.module("func").vmap(both)(lib.constant(X))
        lib.equal(primals, X**2)
        lib.equal(tangents, 4 * X**2)


def check_modes_as_decorators(lib: Any) -> None:
    """Check that hooks on saved values and anomaly detection hold while a decorated function runs, each time."""
    packed: list[Any] = []

    def pack(v: Any) -> Any:
        packed.append(v)
        return v

    square = lib.graph.saved_tensors_hooks(pack, lambda v: v)(lambda v: v * v)
    far = lib.on_other_device(ROW, rg=True)
    on_host = lib.graph.save_on_cpu()(lambda v: v * v)
    for _ in range(2):
        lib.equal(lib.grad(lib.xp.sum(on_host(far)), far)[0], 2 * ROW)
    told = lib.module("autograd.anomaly_mode")
    inside = [
        lib.ag.detect_anomaly(check_nan=False)(lambda: (told.is_anomaly_enabled(), told.is_anomaly_check_nan_enabled())),
        lib.ag.set_detect_anomaly(True, check_nan=False)(lambda: (told.is_anomaly_enabled(), told.is_anomaly_check_nan_enabled())),
    ]
    x = lib.tensor(X)
    for times in (1, 2):
        lib.equal(lib.grad(lib.xp.sum(square(x)), x)[0], 2 * X)
        each = len(packed) // times
        assert len(packed) == times * each > 0
        assert [f() for f in inside] == [(True, False)] * 2
        assert not told.is_anomaly_enabled()
    x * x
    assert len(packed) == 2 * each


@contract("DER-30")
def in_less_usual_places(lib: Any) -> None:
    check_batched_functions(lib)
    check_anomalies_in_graphs(lib)
    check_views_of_written_constants(lib)
    check_transposing_in_place(lib)
    check_order_of_leaves(lib)
    if not lib.oracle:  # extensions
        check_attributes_of_elements(lib)
        check_trees_of_records(lib)
        check_modes_as_decorators(lib)
        check_results_that_are_computed(lib)
        check_names(lib)
        check_writes_that_make_batches(lib)
        check_aliases(lib)
    if lib.capabilities["linalg"]:
        check_saved_values_of_several_results(lib)
        check_one_saved_result(lib)
        if lib.capabilities["complex"]:
            check_arbitrary_phases(lib)
    chosen = lib.xp.where(lib.constant([True, False], "bool"), 1.5, 2.5)
    lib.equal(chosen, [1.5, 2.5])
    if not lib.oracle:  # PyTorch has no function that returns the setting
        modes = lib.module("autograd.grad_mode")
        before = modes.is_multithreading_enabled()
        inside = modes.set_multithreading_enabled(not before)(modes.is_multithreading_enabled)
        assert modes.is_multithreading_enabled() == before  # a decorator changes it only while the function runs
        assert inside() != before
        assert modes.is_multithreading_enabled() == before
    if not lib.oracle:  # in PyTorch copies have no history
        check_shallow_copies(lib)
    check_contexts_of_hooks(lib)
    check_lost_tangents(lib)
    xp = lib.xp
    # The Jacobian is 0 for a result that does not depend on an input, unless `strict` asks for an error.
    functional = lib.module("autograd.functional")
    x, v = lib.constant(ROW), lib.constant(ROW * 2)
    for call in (
        lambda: functional.jvp(lambda x: lib.constant(X), x, v), lambda: functional.vjp(lambda x: lib.constant(ROW), x, v),
        lambda: functional.vhp(lambda x: xp.sum(lib.constant(ROW)), x, v), lambda: functional.hvp(lambda x: xp.sum(x * 2), x, v),
    ):  # fmt: skip
        assert not np.any(lib.value(call()[1]))
    assert not np.any(lib.value(functional.hessian(lambda x: xp.sum(x), x)))
    for vectorize in (False, True):
        by_x, by_v = functional.jacobian(lambda x, v: x[:2] * 3, (x, v), vectorize=vectorize)
        lib.equal(by_x, 3 * np.eye(2, 3))
        lib.equal(by_v, np.zeros((2, 3)))
    by_x, by_v = lib.module("func").jacrev(lambda x, v: x[:2] * 3, argnums=(0, 1))(x, v)
    lib.equal(by_x, 3 * np.eye(2, 3))
    lib.equal(by_v, np.zeros((2, 3)))
    # A Jacobian has the history of a leaf that the function reads.
    w = lib.tensor(X[1])
    matrix = lib.module("func").jacrev(lambda x: x * w * w)(x)
    lib.equal(matrix, np.diag(X[1] ** 2))
    lib.equal(lib.grad(xp.sum(matrix), w)[0], 2 * X[1])
    # Without recording, a leaf gets a tangent by a write, and keeps it without `requires_grad`, but not after `detach_`.
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        leaf = lib.tensor(ROW)
        with lib.ns.no_grad():
            leaf.copy_(fw.make_dual(lib.constant(X[0]), lib.constant(X[1])))
        lib.equal(fw.unpack_dual(leaf.requires_grad_(False)).tangent, X[1])
        leaf.detach_()
        assert fw.unpack_dual(leaf * 1).tangent is None
        lib.equal(leaf, X[0])
    # Stacks, transforms of length 1, and operands of two precisions.
    stack = np.cos(np.arange(24.0)).reshape(2, 3, 4)
    t = lib.tensor(stack)
    for name, ours, theirs in (("tril", xp.tril, np.tril), ("triu", xp.triu, np.triu)):
        for k in (-1, 0, 2):
            with lib.case((name, k)):
                y = ours(t, k=k)
                lib.equal(y, theirs(stack, k))
                lib.equal(lib.grad(xp.sum(y * y), t)[0], 2 * theirs(stack, k))
    if lib.capabilities["fft"] and lib.capabilities["complex"]:
        for n in (1, 2):
            y = xp.fft.fft(t, n=n, axis=1)
            lib.equal(xp.real(y), np.fft.fft(stack, n, 1).real)
            wanted = np.zeros_like(stack)
            wanted[:, :n] = 2 * n * stack[:, :n]
            with lib.case(("fft", n)):
                lib.equal(lib.grad(xp.sum(xp.real(y * xp.conj(y))), t)[0], wanted)
        lib.equal(xp.fft.rfft(t, n=1, axis=0), np.fft.rfft(stack, 1, 0))
        with lib.case("hfft"):
            lib.equal(xp.fft.hfft(t, n=1), np.fft.hfft(stack, 1))
    if not lib.oracle:  # PyTorch requires one dtype for both
        a, b = lib.tensor(X), lib.tensor(X.T, dtype=lib.narrow)
        y = xp.matmul(a, b)
        assert y.dtype == lib.dtype(lib.real)
        near = 1e-2 if lib.narrow == "float16" else 1e-6
        lib.equal(y, X @ X.T, near, near)
        ga, gb = lib.grad(xp.sum(y), [a, b])
        assert (ga.dtype, gb.dtype) == (a.dtype, b.dtype)
        lib.equal(ga, np.ones((2, 2)) @ X, near, near)
        np.testing.assert_allclose(lib.value(gb).astype("float64"), X.T @ np.ones((2, 2)), near, near)
        with lib.module("autograd.profiler").profile() as prof:
            z = a.detach() * 1.0
            z[0] = a.detach()[1]
        lib.equal(z, np.stack([X[1], X[1]]))
        assert [e.name for e in prof.function_events].count("setitem") == 1
