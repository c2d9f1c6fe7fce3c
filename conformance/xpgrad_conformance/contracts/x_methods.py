"""Group X: methods with PyTorch's names, writes, dtypes, and functions that have no derivative."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts import x_keys
from xpgrad_conformance.contracts.x_functions import FACTORS, as_tensor, close, direction, exact, inner, rough, value_of
from xpgrad_conformance.functions import Reference, as_list, binary, cases, central_differences, elementwise_domains, scalar_loss

Pair = tuple[Callable[..., Any], Callable[..., Any]]
#: The operands: a matrix away from kinks and ties, a row of positive numbers, and a matrix of positive numbers.
X = np.asarray([[0.4, -1.3, 0.9], [1.7, 0.6, -0.7]])
ROW = np.asarray([0.8, 1.4, 0.5])
POSITIVE = np.asarray([[0.4, 1.3, 0.9], [1.7, 0.6, 0.7]])

#: Methods of a matrix with a row of positive numbers, and their NumPy equivalents.
METHODS: dict[str, Pair] = {
    "sum": (lambda x, w: x.sum(), lambda x, w: x.sum()),
    "sum, dim": (lambda x, w: x.sum(dim=1, keepdim=True) * x.sum(dim=0), lambda x, w: x.sum(1, keepdims=True) * x.sum(0)),
    "sum, dims": (lambda x, w: x.sum(dim=(0, 1)), lambda x, w: x.sum((0, 1))),
    "mean": (lambda x, w: x.mean(), lambda x, w: x.mean()),
    "mean, dim": (lambda x, w: x.mean(dim=-1, keepdim=True) * x.mean(dim=0), lambda x, w: x.mean(-1, keepdims=True) * x.mean(0)),
    "mean, an axis": (lambda x, w: x.mean(1) * x.mean(1, keepdim=True), lambda x, w: x.mean(1) * x.mean(1, keepdims=True)),
    "sum, an axis": (lambda x, w: x.sum(0) * x.sum(1, keepdim=True), lambda x, w: x.sum(0) * x.sum(1, keepdims=True)),
    "prod": (lambda x, w: x.prod(), lambda x, w: x.prod()),
    "prod, dim": (lambda x, w: x.prod(dim=1, keepdim=True) * x, lambda x, w: x.prod(1, keepdims=True) * x),
    "max": (lambda x, w: x.max() * x.min(), lambda x, w: x.max() * x.min()),
    "amax": (lambda x, w: x.amax(1, True) * x.amax(dim=0), lambda x, w: x.max(1, keepdims=True) * x.max(0)),
    "amin": (lambda x, w: x.amin(1, True) * x.amin(dim=0), lambda x, w: x.min(1, keepdims=True) * x.min(0)),
    "var": (lambda x, w: x.var(dim=1, correction=1), lambda x, w: x.var(1, ddof=1)),
    "var, an axis": (lambda x, w: x.var(dim=0, correction=1) * x.std(dim=1, correction=0, keepdim=True),
                     lambda x, w: x.var(0, ddof=1) * x.std(1, keepdims=True)),
    "var, kept": (lambda x, w: x.var(dim=0, correction=0, keepdim=True) * x, lambda x, w: x.var(0, keepdims=True) * x),
    "std": (lambda x, w: x.std(dim=1, correction=1), lambda x, w: x.std(1, ddof=1)),
    "std, kept": (lambda x, w: x.std(dim=0, correction=0, keepdim=True) * x, lambda x, w: x.std(0, keepdims=True) * x),
    "cumsum": (lambda x, w: x.cumsum(1) * x.cumsum(0), lambda x, w: x.cumsum(1) * x.cumsum(0)),
    "cumprod": (lambda x, w: x.cumprod(1) * x.cumprod(0), lambda x, w: x.cumprod(1) * x.cumprod(0)),
    **{name: (lambda x, w, name=name: getattr(x, name)(), lambda x, w, name=name: getattr(np, name)(x))
       for name in ("exp", "expm1", "square", "abs", "sign", "sin", "cos", "tan", "tanh", "floor", "ceil", "round", "conj", "reciprocal")},
    **{name: (lambda x, w, name=name: getattr(w, name)() * x, lambda x, w, name=name: getattr(np, name)(w) * x)
       for name in ("log", "log1p", "sqrt")},
    "neg": (lambda x, w: x.neg(), lambda x, w: -x),
    "pow": (lambda x, w: w.pow(3) * w.pow(0.5) * x, lambda x, w: w**3.5 * x),
    "add": (lambda x, w: x.add(w), lambda x, w: x + w),
    "add, alpha": (lambda x, w: x.add(w, alpha=2.5), lambda x, w: x + 2.5 * w),
    "sub": (lambda x, w: x.sub(w), lambda x, w: x - w),
    "sub, alpha": (lambda x, w: x.sub(w, alpha=2.5), lambda x, w: x - 2.5 * w),
    "mul": (lambda x, w: x.mul(w), lambda x, w: x * w),
    "div": (lambda x, w: x.div(w), lambda x, w: x / w),
    "matmul": (lambda x, w: x.matmul(w), lambda x, w: x @ w),
    "mm": (lambda x, w: x.mm(x.t()), lambda x, w: x @ x.T),
    "dot": (lambda x, w: x[0].dot(w), lambda x, w: x[0] @ w),
    "clamp": (lambda x, w: x.clamp(-0.5, 0.7), lambda x, w: np.clip(x, -0.5, 0.7)),
    "clamp, one": (lambda x, w: x.clamp(min=-0.5) * x.clamp(max=0.7), lambda x, w: np.maximum(x, -0.5) * np.minimum(x, 0.7)),
    "where": (lambda x, w: x.where(x > 0.5, w), lambda x, w: np.where(x > 0.5, x, w)),
    "flip": (lambda x, w: x.flip(0) * x.flip(0, 1), lambda x, w: np.flip(x, 0) * np.flip(x)),
    "reshape": (lambda x, w: x.reshape(3, 2) * x.reshape((3, 2)), lambda x, w: x.reshape(3, 2) ** 2),
    "view": (lambda x, w: x.view(3, 2) * x.view(-1, 2), lambda x, w: x.reshape(3, 2) ** 2),
    "view_as": (lambda x, w: x.view_as(x.reshape(6)), lambda x, w: x.reshape(6)),
    "flatten": (lambda x, w: x.flatten() * 2, lambda x, w: x.reshape(6) * 2),
    "flatten, a part": (
        lambda x, w: x.reshape(1, 2, 3, 1).flatten(1, 2)[0] * x.reshape(2, 3, 1).flatten(1).reshape(6, 1),
        lambda x, w: x.reshape(6, 1) ** 2,
    ),
    "squeeze": (lambda x, w: x.reshape(1, 6, 1).squeeze() * x.reshape(1, 6, 1).squeeze(0).squeeze(1), lambda x, w: x.reshape(6) ** 2),
    "squeeze, a longer one": (lambda x, w: x.squeeze(0) * x.squeeze(dim=1), lambda x, w: x**2),
    "unsqueeze": (lambda x, w: x.unsqueeze(1) * x.unsqueeze(-1)[:, :, :1], lambda x, w: x[:, None] * x[:, :, None]),
    "permute": (lambda x, w: x.reshape(1, 2, 3).permute(2, 0, 1), lambda x, w: x.reshape(1, 2, 3).transpose(2, 0, 1)),
    "permute, a tuple": (lambda x, w: x.permute((1, 0)) * x.reshape(1, 2, 3).permute([2, 1, 0])[:, :, 0], lambda x, w: x.T * x.T),
    "transpose": (lambda x, w: x.reshape(1, 2, 3).transpose(0, 2), lambda x, w: x.reshape(1, 2, 3).swapaxes(0, 2)),
    "transpose, from behind": (lambda x, w: x.transpose(-1, -2), lambda x, w: x.T),
    "t": (lambda x, w: x.t() * w.t().reshape(3, 1), lambda x, w: x.T * w.reshape(3, 1)),
    "T": (lambda x, w: x.T, lambda x, w: x.T),
    "mT": (lambda x, w: x.reshape(1, 2, 3).mT, lambda x, w: x.reshape(1, 2, 3).swapaxes(1, 2)),
    "expand": (lambda x, w: w.expand(2, -1) * w.expand((2, 3)) * x, lambda x, w: w * w * x),
    "expand, more axes": (lambda x, w: x.expand(4, 2, 3), lambda x, w: np.broadcast_to(x, (4, 2, 3))),
    "expand_as": (lambda x, w: w.expand_as(x) * x, lambda x, w: w * x),
    "unbind": (lambda x, w: x.unbind(1)[2] * x.unbind()[0][:2], lambda x, w: x[:, 2] * x[0][:2]),
    "clone": (lambda x, w: x.clone() * x.contiguous(), lambda x, w: x * x),
    "contiguous": (lambda x, w: x.t().contiguous() * 2, lambda x, w: x.T * 2),
    "contiguous, stacks": (
        lambda x, w: x.reshape(1, 2, 3, 1).contiguous() * x.reshape(3, 2, 1).permute(1, 0, 2).contiguous()[:, :2, :, None],
        lambda x, w: x.reshape(1, 2, 3, 1) * x.reshape(3, 2, 1).transpose(1, 0, 2)[:, :2, :, None],
    ),
    "to": (lambda x, w: x.to(x.dtype) * x.to(w) * w.to(dtype=x.dtype), lambda x, w: x * x * w),
    "type_as": (lambda x, w: x.type_as(w) * w, lambda x, w: x * w),
}  # fmt: skip


def check_agreement(lib: Any, ours: Callable[..., Any], theirs: Callable[..., Any], points: Any) -> None:
    """Compare values, gradients and tangents with a NumPy function and its differences."""
    fw = lib.module("autograd.forward_ad")
    xs = [as_tensor(lib, p) for p in points]
    y = ours(*xs)
    close(lib, y, theirs(*points), exact(lib))
    seed = direction(np.zeros(tuple(y.shape)), 4.0)
    gs = lib.grad(y, xs, as_tensor(lib, seed, False), allow_unused=True)
    for i, p in enumerate(points):
        d = direction(p, 3.0 + i)
        (moved,) = central_differences(lambda _, *operands: theirs(*operands), points, i, d)
        close(lib, inner(value_of(lib, gs[i]), d), float(np.sum(seed * moved)), rough(lib))
        with fw.dual_level():
            duals = [
                fw.make_dual(as_tensor(lib, q, False), as_tensor(lib, d, False)) if j == i else as_tensor(lib, q, False)
                for j, q in enumerate(points)
            ]
            tangent = fw.unpack_dual(ours(*duals)).tangent
        close(lib, np.zeros(moved.shape) if tangent is None else tangent, moved, rough(lib))


@contract("DER-11")
def methods(lib: Any) -> None:
    for name, (ours, theirs) in METHODS.items():
        if name == "conj" and not lib.capabilities["complex"]:
            continue
        with lib.case(name):
            check_agreement(lib, ours, theirs, (X, ROW))
    x, n = lib.tensor(X), lib.constant([1, 2], lib.index)
    if not lib.oracle:  # NumPy's names
        y = x.copy()
        lib.equal(lib.grad(lib.xp.sum(y * y), x)[0], 2 * X)
        c = lib.constant(X)
        other = c.copy()
        assert other.fill(2.0) is None
        lib.equal(other, np.full(X.shape, 2.0))
        lib.equal(c, X)
        assert (c._version, other._version) == (0, 1)
    if not lib.oracle:  # PyTorch's other device has no values
        there = x.to(device=lib.on_other_device(X).device)
        assert there.device != x.device
        lib.equal(lib.grad(lib.xp.sum(there * there), x)[0], 2 * X)
    truths = X > 0.5
    for name in ("any", "all"):
        ours = getattr(lib.constant(truths, "bool"), name)
        np.testing.assert_array_equal(lib.value(ours(dim=1, keepdim=True)), getattr(truths, name)(1, keepdims=True))
        np.testing.assert_array_equal(lib.value(ours(0)), getattr(truths, name)(0))
    assert not lib.ns.is_inference(x)
    stack = lib.tensor(np.ones((2, 3, 2)))
    assert stack.contiguous() is stack or lib.oracle
    if lib.capabilities["strides"]:  # rows that are not next to each other in memory
        assert tuple(lib.tensor(np.ones((2, 4)))[:, :3].contiguous().stride()) == (3, 1)
    if lib.capabilities["complex"]:  # numbers in pairs along the last axis
        lib.equal(lib.constant([[1.0, 2.0, 3.0, -4.0]]).view(lib.dtype(lib.complex)), [[1.0 + 2.0j, 3.0 - 4.0j]])
        lib.equal(lib.constant([[1.0 + 2.0j, 3.0 - 4.0j]], lib.complex).view(lib.dtype(lib.real)), [[1.0, 2.0, 3.0, -4.0]])
        lib.equal(x.view(lib.dtype(lib.real)), X)
        with lib.raises(RuntimeError if lib.oracle else ValueError):
            x.view(lib.dtype(lib.complex))  # rows of three
    assert (x.dim(), x.numel(), n.dim(), n.numel()) == (2, 6, 1, 2)
    assert (x.element_size(), n.element_size()) == (np.dtype(lib.real).itemsize, np.dtype(lib.index).itemsize)
    assert (x.is_floating_point(), n.is_floating_point(), x.is_complex()) == (True, False, False)
    if lib.capabilities["float64"]:
        assert [str(t.dtype).rpartition(".")[2] for t in (x.float(), n.double(), x.long())] == [
            "float32", "float64", "int64"
        ]  # fmt: skip
        lib.equal(lib.grad(lib.xp.sum(x.float().double() * 2), x)[0], np.full(X.shape, 2.0))


#: Writes into a matrix of positive numbers with a row of them: the method, and the matrix afterwards.
WRITES: dict[str, Pair] = {
    **{f"{name}_": (lambda lib, y, w, name=name: getattr(y, f"{name}_")(), lambda y, w, name=name: getattr(np, name)(y))
       for name in ("abs", "exp", "log", "sqrt", "square", "reciprocal", "sin", "cos", "tanh", "floor", "ceil", "round")},
    "neg_": (lambda lib, y, w: y.neg_(), lambda y, w: -y),
    "add_": (lambda lib, y, w: y.add_(w), lambda y, w: y + w),
    "add_, alpha": (lambda lib, y, w: y.add_(w, alpha=2.5), lambda y, w: y + 2.5 * w),
    "sub_": (lambda lib, y, w: y.sub_(w), lambda y, w: y - w),
    "sub_, alpha": (lambda lib, y, w: y.sub_(w, alpha=2.5), lambda y, w: y - 2.5 * w),
    "mul_": (lambda lib, y, w: y.mul_(w), lambda y, w: y * w),
    "mul_, a scalar": (lambda lib, y, w: y.mul_(1.5), lambda y, w: y * 1.5),
    "div_": (lambda lib, y, w: y.div_(w), lambda y, w: y / w),
    "pow_": (lambda lib, y, w: y.pow_(1.5), lambda y, w: y**1.5),
    "clamp_": (lambda lib, y, w: y.clamp_(0.5, 1.1), lambda y, w: np.clip(y, 0.5, 1.1)),
    "clamp_, one": (lambda lib, y, w: y.clamp_(min=0.65).clamp_(max=1.0), lambda y, w: np.clip(y, 0.65, 1.0)),
    "zero_": (lambda lib, y, w: y.zero_(), lambda y, w: y * 0),
    "fill_": (lambda lib, y, w: y.fill_(1.5), lambda y, w: y * 0 + 1.5),
    "fill_, a Tensor": (lambda lib, y, w: y.fill_(lib.xp.sum(w)), lambda y, w: y * 0 + w.sum()),
    "copy_": (lambda lib, y, w: y.copy_(w), lambda y, w: y * 0 + w),
    "masked_fill_": (
        lambda lib, y, w: y.masked_fill_(lib.constant([[1, 0, 1], [0, 0, 1]], "bool"), 0.5),
        lambda y, w: np.where([[True, False, True], [False, False, True]], 0.5, y),
    ),
    "index_add_": (
        lambda lib, y, w: y.index_add_(1, lib.indices([2, 0, 2]), w.expand_as(y)),
        lambda y, w: y + np.stack([w[1] + 0 * y[:, 0], 0 * y[:, 0], w[0] + w[2] + 0 * y[:, 0]], axis=1),
    ),
    "+=": (lambda lib, y, w: y.__iadd__(w), lambda y, w: y + w),
    "-=": (lambda lib, y, w: y.__isub__(w), lambda y, w: y - w),
    "*=": (lambda lib, y, w: y.__imul__(w), lambda y, w: y * w),
    "/=": (lambda lib, y, w: y.__itruediv__(w), lambda y, w: y / w),
    "**=": (lambda lib, y, w: y.__ipow__(2), lambda y, w: y**2),
    "%=": (lambda lib, y, w: y.__imod__(0.37), lambda y, w: y % 0.37),
}  # fmt: skip


@contract("DER-12")
def writes(lib: Any) -> None:
    for name, (ours, theirs) in WRITES.items():
        with lib.case(name):

            def whole(x: Any, w: Any, ours: Any = ours) -> Any:
                y = x * 1
                assert ours(lib, y, w) is y
                return y * (x + 0.5)

            check_agreement(lib, whole, lambda x, w, theirs=theirs: theirs(x, w) * (x + 0.5), (POSITIVE, ROW))

            # A write into a view, seen through the base and through another view.
            def part(x: Any, w: Any, ours: Any = ours) -> Any:
                base = lib.xp.stack([x, x * 2], axis=0) * 1
                other = base[:, 0]
                ours(lib, base[1], w)
                return base * lib.xp.expand_dims(other, axis=1)

            def reference(x: Any, w: Any, theirs: Any = theirs) -> Any:
                base = np.stack([x, theirs(x * 2, w)])
                return base * base[:, :1]

            check_agreement(lib, part, reference, (POSITIVE, ROW))
    # The written value may have further axes of length 1.
    written = POSITIVE.copy()
    written[0, [0, 2]], written[[1], 0], written[1, 1:] = ROW[:2], 7.0, ROW[1:]
    x, w = lib.tensor(POSITIVE), lib.tensor(ROW)
    y = x * 1
    y[0, lib.indices([0, 2])] = w[None, :2]
    y[lib.indices([1]), 0] = lib.constant([[7.0]])
    y[1, 1:] = w[None, None, 1:]
    lib.equal(y, written)
    gx, gw = lib.grad(lib.xp.sum(y * y), [x, w])
    lib.equal(gx, np.asarray([[0.0, 2 * POSITIVE[0, 1], 0.0], [0.0, 0.0, 0.0]]))
    lib.equal(gw, 2 * ROW * [1.0, 2.0, 1.0])
    x_keys.check_overlapping_writes(lib)


@contract("DER-13")
def writes_in_batches(lib: Any) -> None:
    vmap = lib.module("func").vmap
    for name, (ours, theirs) in WRITES.items():
        with lib.case(name):
            points = [np.stack([p * f for f in FACTORS]) for p in (POSITIVE, ROW)]
            xs = [as_tensor(lib, p) for p in points]

            def program(x: Any, w: Any, ours: Any = ours) -> Any:
                base = lib.xp.stack([x, x * 2], axis=0)
                ours(lib, base[1], w)
                return base

            found = vmap(program)(*xs)
            expected = [np.stack([x, theirs(x * 2, w)]) for x, w in zip(*points, strict=True)]
            close(lib, found, np.stack(expected), exact(lib))
            seed = direction(np.stack(expected), 2.0)
            loops = []
            for y in (found, lib.xp.stack([program(xs[0][b], xs[1][b]) for b in range(3)], axis=0)):
                loops.append(lib.grad(y, xs, as_tensor(lib, seed, False), allow_unused=True))
            for a, b in zip(*loops, strict=True):
                close(lib, value_of(lib, a) + np.zeros(np.shape(value_of(lib, b))), value_of(lib, b), exact(lib))


@contract("DER-14", requires="float64")
def narrow_dtypes(lib: Any) -> None:
    slim = Narrow(lib)
    for name, case in cases(lib):
        with lib.case(name), np.errstate(all="ignore"):
            points = [p.astype("float32") for p in case.arrays()]
            narrow, wide = ([lib.tensor(p, dtype=d) for p in points] for d in ("float32", "float64"))
            outs = [as_list(case.call(slim, *narrow)), as_list(case.call(lib, *wide))]
            for a, b in zip(*outs, strict=True):
                assert str(a.dtype).rpartition(".")[2] in ("float32", "complex64")
                close(lib, lib.value(a).astype(lib.value(b).dtype), lib.value(b), 2e-4)
            grads = [
                lib.grad(scalar_loss(slim, outs[0]), narrow, allow_unused=True),
                lib.grad(scalar_loss(lib, outs[1]), wide, allow_unused=True),
            ]
            for x, a, b in zip(narrow, *grads, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    assert a.dtype == x.dtype
                    close(lib, lib.value(a).astype("float64"), lib.value(b), 1e-3)


class Narrow:
    """A library whose constants have single precision."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.xp, self.indices, self.oracle = lib, lib.xp, lib.indices, lib.oracle

    def constant(self, data: Any) -> Any:
        return self.lib.constant(data, "float32")


#: Functions whose operands PyTorch refuses to mix, because it requires one dtype for both, or to differentiate.
UNMIXED = ("floor_divide", "atan2", "copysign", "hypot", "logaddexp", "maximum", "minimum", "remainder")


@contract("DER-15")
def mixed_dtypes(lib: Any) -> None:
    points = np.asarray([[1, 2, 3], [4, 5, 6]]), np.asarray([2, 1, 4])
    near = 5e-3 if lib.narrow == "float16" else 1e-5
    with_complex = lib.capabilities["complex"] and lib.narrow != "float16"
    dtypes = [lib.real, lib.narrow, "int32", *([lib.complex] if with_complex else [])]
    for name, pair in itertools.product(binary(), itertools.permutations(dtypes, 2)):
        if (lib.complex in pair and not elementwise_domains()[name][1]) or (lib.oracle and name in UNMIXED):
            continue
        with lib.case((name, pair)), np.errstate(all="ignore"):
            exactly = [p.astype("complex128" if d == lib.complex else "float64") for p, d in zip(points, pair, strict=True)]
            mixed = [lib.tensor(p, d != "int32", d) for p, d in zip(points, pair, strict=True)]
            alike = [as_tensor(lib, p) for p in exactly]
            outs = [getattr(lib.xp, name)(*xs) for xs in (mixed, alike)]
            widest = np.result_type(*(np.dtype(d) for d in pair if d != "int32"))
            assert str(outs[0].dtype).rpartition(".")[2] == str(widest)
            close(lib, lib.value(outs[0]).astype(lib.value(outs[1]).dtype), lib.value(outs[1]), near)
            totals = [lib.xp.sum(lib.xp.real(out) if lib.complex in pair else out) for out in outs]
            wanted = lib.grad(totals[1], alike)
            leaves = [x for x in mixed if x.requires_grad]
            found = iter(lib.grad(totals[0], leaves))
            for x, w in zip(mixed, wanted, strict=True):
                if x.requires_grad:
                    g = next(found)
                    assert g.dtype == x.dtype
                    close(lib, lib.value(g).astype(lib.value(w).dtype), lib.value(w), near)
    if not lib.oracle:  # a 0-d Tensor is weak on any device
        assert (lib.tensor([1.0, 2.0], True, lib.narrow) * lib.on_other_device(2.0)).dtype == lib.dtype(lib.narrow)
        assert (lib.constant([1, 2], "int32") * lib.on_other_device(2.0)).dtype.category == "real floating"
    wide = ["int64"] * lib.capabilities["float64"]
    unsigned = ["uint16"] * (lib.has_dtype("uint16") and not lib.oracle)  # PyTorch does not promote it
    for one, other in itertools.product(["int8", "int16", "int32", "uint8", *wide, *unsigned], repeat=2):
        with lib.case((one, other)):
            total = lib.constant([1, 2], one) + lib.constant([3, 4], other)
            wanted = np.result_type(np.dtype(one), np.dtype(other))
            assert total.dtype == lib.dtype(wanted.name)
            assert total.dtype.itemsize == wanted.itemsize
            limits = lib.ns.iinfo(total.dtype)
            assert (limits.min, limits.max, limits.bits) == (np.iinfo(wanted).min, np.iinfo(wanted).max, np.iinfo(wanted).bits)
    for name in (lib.real, lib.narrow):
        for part in ("max", "min", "eps", "bits"):
            assert float(getattr(lib.ns.finfo(lib.dtype(name)), part)) == float(getattr(np.finfo(name), part))
    # A written value is converted to the dtype of its target; its gradient has the dtype of the value.
    for into, of in [(lib.real, lib.narrow), (lib.narrow, lib.real)]:
        with lib.case((into, of)):
            x, v = lib.tensor(points[0], dtype=into), lib.tensor([0.5, 1.5, 2.5], dtype=of)
            y = x * 2
            y[0] = v
            assert y.dtype == x.dtype
            lib.equal(y, [[0.5, 1.5, 2.5], [8.0, 10.0, 12.0]])
            gx, gv = lib.grad(lib.xp.sum(y * y), [x, v])
            assert (gx.dtype, gv.dtype) == (x.dtype, v.dtype)
            lib.equal(gx, [[0.0, 0.0, 0.0], [32.0, 40.0, 48.0]])
            lib.equal(gv, [1.0, 3.0, 5.0])


#: Functions without a derivative, of a matrix with ties and of a matrix of integers.
WITHOUT: dict[str, Callable[..., Any]] = {
    **{name: (lambda lib, x, n, name=name: getattr(lib.xp, name)(x, 0.4))
       for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    "operators": lambda lib, x, n: ((x == 0.4) | (x < -0.5)) & (x != 0.9) ^ (x >= 1.7) | (x <= -1.3) & (x > 2.0),
    "argmax": lambda lib, x, n: lib.xp.argmax(x, axis=1),
    "argmax, kept": lambda lib, x, n: lib.xp.argmax(x, axis=0, keepdims=True),
    "argmax, all": lambda lib, x, n: lib.xp.argmax(x),
    "argmin": lambda lib, x, n: lib.xp.argmin(x, axis=0),
    "argsort": lambda lib, x, n: lib.xp.argsort(x + lib.constant([0.0, 0.01, 0.02]), axis=1),
    "count_nonzero": lambda lib, x, n: lib.xp.count_nonzero(n, axis=1),
    "all": lambda lib, x, n: lib.xp.all(n > 0, axis=1),
    "any": lambda lib, x, n: lib.xp.any(n > 4, axis=0),
    "all, everywhere": lambda lib, x, n: lib.xp.all(n >= 0),
    "isfinite": lambda lib, x, n: lib.xp.isfinite(x / n),
    "isinf": lambda lib, x, n: lib.xp.isinf(x / n),
    "isnan": lambda lib, x, n: lib.xp.isnan(x / n * n),
    "signbit": lambda lib, x, n: lib.xp.signbit(x),
    "nextafter": lambda lib, x, n: lib.xp.nextafter(x, x + 1) > x,
    "logical_and": lambda lib, x, n: lib.xp.logical_and(n > 1, x > 0),
    "logical_or": lambda lib, x, n: lib.xp.logical_or(n > 1, x > 0),
    "logical_xor": lambda lib, x, n: lib.xp.logical_xor(n > 1, x > 0),
    "logical_not": lambda lib, x, n: lib.xp.logical_not(x > 0),
    "bitwise_and": lambda lib, x, n: n & 3,
    "bitwise_or": lambda lib, x, n: n | 2,
    "bitwise_xor": lambda lib, x, n: n ^ 5,
    "bitwise_invert": lambda lib, x, n: ~n,
    "bitwise_left_shift": lambda lib, x, n: n << 2,
    "bitwise_right_shift": lambda lib, x, n: n >> 1,
    "whole division": lambda lib, x, n: (n + 7) // (n + 1) + (n + 7) % (n + 2),
    "whole sums": lambda lib, x, n: lib.xp.sum(n, axis=0) * lib.xp.max(n, axis=0) - lib.xp.min(n),
    "whole running sums": lambda lib, x, n: lib.xp.cumulative_sum(n, axis=1),
    "whole keys": lambda lib, x, n: n[1, lib.indices([2, 0])] + lib.xp.flip(n)[0, :2],
    "floor_divide": lambda lib, x, n: lib.xp.floor_divide(n, 2),
    "whole diagonals": lambda lib, x, n: lib.xp.linalg.diagonal(n, offset=1),
    "methods": lambda lib, x, n: x.argmax(1) + x.argmin(1) + (n > 0).all(1) + (n > 4).any(1),
    "isclose": lambda lib, x, n: lib.xp.isclose(x, x + lib.constant([0.0, 1e-2, 1e-8])),
    "matrix_rank": lambda lib, x, n: lib.xp.linalg.matrix_rank(x),
    "isin": lambda lib, x, n: lib.xp.isin(n, lib.indices([1, 5])),
    "isin, not": lambda lib, x, n: lib.xp.isin(n, lib.indices([1, 5, 0]), invert=True),
    "isin, in nothing": lambda lib, x, n: lib.xp.isin(n, lib.indices([])),
    "isin, not in nothing": lambda lib, x, n: lib.xp.isin(n, lib.indices([]), invert=True),
    "searchsorted": lambda lib, x, n: lib.xp.searchsorted(lib.xp.sort(x[0]), x[1]),
    "searchsorted, by an order": lambda lib, x, n: lib.xp.searchsorted(x[0], x[1], sorter=lib.xp.argsort(x[0])),
}  # fmt: skip
#: Functions whose results have data-dependent lengths or that do not support batches, with their NumPy equivalents.
DYNAMIC: dict[str, Pair] = {
    "nonzero": (lambda lib, x, n: lib.xp.nonzero(n), lambda x, n: np.nonzero(n)),
    # NB: the order of distinct values is unspecified.
    "unique_values": (lambda lib, x, n: lib.xp.sort(lib.xp.unique_values(n)), lambda x, n: np.unique(n)),
    "unique_counts": (
        lambda lib, x, n: (lambda values, counts: counts[lib.xp.argsort(values)])(*lib.xp.unique_counts(n)),
        lambda x, n: np.unique(n, return_counts=True)[1],
    ),
    "unique_inverse": (lambda lib, x, n: (lambda values, places: values[places])(*lib.xp.unique_inverse(n)), lambda x, n: n),
    "searchsorted": (
        lambda lib, x, n: lib.xp.searchsorted(lib.constant([-1.0, 0.4, 1.0]), lib.xp.reshape(x, (-1,))),
        lambda x, n: np.searchsorted([-1.0, 0.4, 1.0], x.reshape(-1)),
    ),
    "searchsorted, from the right": (
        lambda lib, x, n: lib.xp.searchsorted(lib.constant([-1.0, 0.4, 1.0]), lib.xp.reshape(x, (-1,)), side="right"),
        lambda x, n: np.searchsorted([-1.0, 0.4, 1.0], x.reshape(-1), side="right"),
    ),
    "x[mask]": (lambda lib, x, n: n[x > 0.3], lambda x, n: n[x > 0.3]),
}
TIED = np.asarray([[0.4, -1.3, 0.4], [1.7, 0.9, -0.7]])
WHOLE = np.asarray([[0, 5, 2], [7, 1, 0]])


@contract("DER-16")
def without_derivative(lib: Any) -> None:
    vmap = lib.module("func").vmap
    fw = lib.module("autograd.forward_ad")
    for name, call in WITHOUT.items():
        if name in ("matrix_rank", "whole diagonals") and not lib.capabilities["linalg"]:
            continue
        with lib.case(name), np.errstate(all="ignore"):
            x, n = lib.tensor(TIED), lib.constant(WHOLE, lib.index)
            expected = np.asarray(call(Reference, TIED, WHOLE))
            found = call(lib, x, n)
            assert not found.requires_grad
            assert found.grad_fn is None
            assert np.array_equal(lib.value(found), expected)
            with fw.dual_level():
                assert fw.unpack_dual(call(lib, fw.make_dual(x.detach(), lib.constant(TIED)), n)).tangent is None
            if lib.oracle and (name in ("whole keys", "nextafter") or name.startswith("isin")):
                continue
            for dims in ((0, 0), (2, None), (None, 1)):
                arrays = [
                    a if d is None else np.stack([a, np.flip(a), np.flip(a, 1)], axis=d) for a, d in zip((TIED, WHOLE), dims, strict=True)
                ]
                rows = [
                    call(Reference, *(a if d is None else a[(slice(None),) * d + (b,)] for a, d in zip(arrays, dims, strict=True)))
                    for b in range(3)
                ]
                batch = vmap(lambda x, n, call=call: call(lib, x, n), in_dims=dims)(
                    lib.constant(arrays[0]), lib.constant(arrays[1], lib.index)
                )
                with lib.case(dims):
                    assert np.array_equal(lib.value(batch), np.stack([np.asarray(r) for r in rows]))
    if lib.capabilities["linalg"]:
        for shape in ((2, 0, 3), (2, 3, 0), (0, 2, 2)):
            rank = lib.xp.linalg.matrix_rank(lib.constant(np.ones(shape)))
            assert "int" in str(rank.dtype)
            assert lib.value(rank).tolist() == [0] * shape[0]
    for name, amount in {"and": 3, "or": 2, "xor": 5, "lshift": 2, "rshift": 1, "floordiv": 2}.items():
        with lib.case(name):
            n = lib.constant(WHOLE, lib.index)
            part, method = n[0], f"__i{name}__"
            assert getattr(part, method)(amount) is part
            expected = WHOLE.copy()
            getattr(expected[0], method)(amount)
            assert np.array_equal(lib.value(n), expected)


@contract("DER-18", requires="data_dependent_shapes")
def lengths_that_values_decide(lib: Any) -> None:
    for name, (ours, theirs) in DYNAMIC.items():
        if lib.capabilities["lazy"] and name in ("unique_counts", "unique_inverse"):  # a key needs a length, which is unknown there
            continue
        with lib.case(name):
            found = as_list(ours(lib, lib.tensor(TIED), lib.constant(WHOLE, lib.index)))
            for a, b in zip(found, as_list(theirs(TIED, WHOLE)), strict=True):
                assert not a.requires_grad
                assert np.array_equal(lib.value(a), b)
    if lib.oracle or lib.capabilities["lazy"]:  # PyTorch's have no gradient
        return
    x = lib.tensor([2.0, 1.0, 2.0])  # each value's goes to its first occurrence
    for call in (lib.xp.unique_values, lambda v: lib.xp.unique_all(v).values, lambda v: lib.xp.unique_counts(v)[0]):
        values = call(x)
        lib.equal(values, [1.0, 2.0])
        lib.equal(lib.grad(lib.xp.sum(values**3), x)[0], [12.0, 3.0, 0.0])
        fw = lib.module("autograd.forward_ad")
        with fw.dual_level():
            values = call(fw.make_dual(x.detach(), lib.constant([4.0, 5.0, 7.0])))
            lib.equal(fw.unpack_dual(values).primal, [1.0, 2.0])
            lib.equal(fw.unpack_dual(values).tangent, [5.0, 4.0])


#: Functions that create a Tensor, from nothing or like another.
MADE: dict[str, Callable[..., Any]] = {
    "zeros": lambda lib, x: lib.xp.zeros((2, 3)),
    "ones": lambda lib, x: lib.xp.ones((3,)),
    "full": lambda lib, x: lib.xp.full((2,), 1.5),
    "fftfreq": lambda lib, x: lib.xp.fft.fftfreq(5, d=0.5),
    "rfftfreq": lambda lib, x: lib.xp.fft.rfftfreq(6, d=2.0),
    "asarray": lambda lib, x: lib.xp.asarray([[1.0, 2.0], [3.0, 4.5]]),
    "eye": lambda lib, x: lib.xp.eye(2, 3, k=1),
    "eye, below": lambda lib, x: lib.xp.eye(3, k=-1),
    "arange": lambda lib, x: lib.xp.arange(1.0, 6.0, 2.0),
    "arange, one": lambda lib, x: lib.xp.arange(4.0),
    "arange, downwards": lambda lib, x: lib.xp.arange(3.0, -1.0, -1.5),
    "linspace": lambda lib, x: lib.xp.linspace(1.0, 2.0, 5),
    "zeros_like": lambda lib, x: lib.xp.zeros_like(x),
    "ones_like": lambda lib, x: lib.xp.ones_like(x),
    "full_like": lambda lib, x: lib.xp.full_like(x, 2.5),
    "empty_like": lambda lib, x: lib.xp.zeros_like(lib.xp.empty_like(x)),
    "tril of ones": lambda lib, x: lib.xp.tril(lib.xp.ones_like(x)),
}  # fmt: skip


@contract("DER-17")
def made_of_nothing(lib: Any) -> None:
    x = lib.tensor(X)
    for name, call in MADE.items():
        if "fft" in name and not lib.capabilities["fft"]:
            continue
        with lib.case(name):
            found = call(lib, x)
            assert not found.requires_grad
            assert found.is_leaf
            lib.equal(found, call(Reference, X))
            # They are constants: they receive no gradient, and other factors still receive theirs.
            y = lib.xp.sum(found) * lib.xp.sum(x)
            lib.equal(lib.grad(y, x)[0], np.full(X.shape, np.sum(call(Reference, X))), rtol=1e-4, atol=1e-5)
    # Neither the variance of one number with a correction of 1 nor its gradient is defined, which is no error.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        single = lib.tensor([2.0])
        spread = lib.xp.var(single, correction=1)
        assert np.isnan(lib.value(spread))
        assert np.isnan(lib.value(lib.grad(spread, single)[0])).all()
