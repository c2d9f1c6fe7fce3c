"""Group X: methods of Tensors with PyTorch's names and arguments that the standard's functions do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts.x_methods import POSITIVE, ROW, Pair, X, check_agreement

NAMES = np.asarray([2, 0, 0])
PLACES = np.asarray([[2, 0], [1, 1]])
MORE = np.asarray([[2, 0, 1, 1], [1, 1, 0, 2]])


def softmax(x: Any, axis: int) -> Any:
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def norm(x: Any, p: float, axis: Any = None, keepdims: bool = False) -> Any:
    return np.sum(np.abs(x) ** p, axis, keepdims=keepdims) ** (1 / p)


def scatter(x: Any, places: Any, axis: int, values: Any) -> Any:
    out = x.copy()
    index = list(np.indices(places.shape))
    index[axis] = places
    np.add.at(out, tuple(index), values)
    return out


def stack_twice(x: Any) -> Any:
    """Return a stack of a matrix with itself."""
    return x.reshape(1, 2, 3).repeat(2, 1, 1) if hasattr(x, "requires_grad") else np.stack([x, x])


#: Methods of a matrix with a row of positive numbers, and their NumPy equivalents.
METHODS: dict[str, Pair] = {
    "relu": (lambda x, w: x.relu() * w, lambda x, w: np.maximum(x, 0) * w),
    "sigmoid": (lambda x, w: x.sigmoid() * w, lambda x, w: w / (1 + np.exp(-x))),
    "softmax": (lambda x, w: (x * w).softmax(1), lambda x, w: softmax(x * w, 1)),
    "softmax, dim": (lambda x, w: (x * w).softmax(dim=0), lambda x, w: softmax(x * w, 0)),
    "log_softmax": (lambda x, w: (x * w).log_softmax(1), lambda x, w: np.log(softmax(x * w, 1))),
    "log_softmax, dim": (lambda x, w: (x * w).log_softmax(dim=-2), lambda x, w: np.log(softmax(x * w, 0))),
    "logsumexp": (lambda x, w: (x * w).logsumexp(1), lambda x, w: np.log(np.exp(x * w).sum(1))),
    "logsumexp, kept": (lambda x, w: x.logsumexp(dim=0, keepdim=True) * w, lambda x, w: np.log(np.exp(x).sum(0, keepdims=True)) * w),
    "norm": (lambda x, w: x.norm() * w, lambda x, w: np.sqrt((x * x).sum()) * w),
    "norm, p": (lambda x, w: x.norm(3) * x.norm(p=1), lambda x, w: norm(x, 3) * norm(x, 1)),
    "norm, dim": (lambda x, w: x.norm(3, 1, keepdim=True) * x.norm(p=2, dim=0), lambda x, w: norm(x, 3, 1, True) * norm(x, 2, 0)),
    "norm, largest": (lambda x, w: x.norm(float("inf")) * x.norm(float("-inf")), lambda x, w: np.abs(x).max() * np.abs(x).min()),
    "norm, nuc": (
        lambda x, w: x.norm("nuc") * x.norm("nuc", dim=(1, 0), keepdim=True) * w,
        lambda x, w: np.linalg.norm(x, "nuc") ** 2 * w.reshape(1, 3),
    ),
    "norm, fro": (lambda x, w: x.norm("fro") * x, lambda x, w: norm(x, 2) * x),
    "dist": (lambda x, w: x.dist(w) * x.dist(w, p=3), lambda x, w: norm(x - w, 2) * norm(x - w, 3)),
    "ravel": (lambda x, w: x.ravel() * 2, lambda x, w: x.ravel() * 2),
    "repeat": (lambda x, w: x.repeat(2, 1, 2) * w.repeat(2), lambda x, w: np.tile(x, (2, 1, 2)) * np.tile(w, 2)),
    "repeat, a tuple": (lambda x, w: x.repeat((1, 3)), lambda x, w: np.tile(x, (1, 3))),
    "tile": (lambda x, w: w.tile(2, 2) * x.tile(2), lambda x, w: np.tile(w, (2, 2)) * np.tile(x, 2)),
    "sort": (lambda x, w: x.sort()[0] * w, lambda x, w: np.sort(x) * w),
    "sort, dim": (lambda x, w: x.sort(dim=0).values * w, lambda x, w: np.sort(x, 0) * w),
    "sort, a number": (lambda x, w: x[0, 0].sort(dim=0).values * x[1, 1].max(dim=0)[0] * w, lambda x, w: x[0, 0] * x[1, 1] * w),
    "sort, descending": (lambda x, w: x.sort(1, True).values * w, lambda x, w: -np.sort(-x, 1) * w),
    "sort, stable": (lambda x, w: x.sort(dim=1, descending=True, stable=True)[0] * w, lambda x, w: -np.sort(-x, 1) * w),
    "max, dim": (lambda x, w: x.max(dim=1).values * x.max(0, keepdim=True)[0].sum(), lambda x, w: x.max(1) * x.max(0).sum()),
    "min, dim": (lambda x, w: x.min(dim=1).values * x.min(0, keepdim=True)[0].sum(), lambda x, w: x.min(1) * x.min(0).sum()),
    "max, another": (lambda x, w: x.max(w) * x.min(w * 0.7), lambda x, w: np.maximum(x, w) * np.minimum(x, w * 0.7)),
    "median": (lambda x, w: x.median() * x, lambda x, w: np.sort(x, None)[2] * x),
    "median, a number": (lambda x, w: x[0, 1].median(dim=0).values * w, lambda x, w: x[0, 1] * w),
    "median, dim": (
        lambda x, w: x.median(dim=1).values * x.median(1, keepdim=True)[0].sum(),
        lambda x, w: np.median(x, 1) * np.median(x, 1).sum(),
    ),
    "var, unbiased": (lambda x, w: x.var(unbiased=True) * x, lambda x, w: x.var(ddof=1) * x),
    "var, biased": (lambda x, w: x.var(dim=1, unbiased=False), lambda x, w: x.var(1)),
    "var, two": (lambda x, w: x.var(dim=(0, 1), correction=2), lambda x, w: x.var(ddof=2)),
    "std, unbiased": (lambda x, w: x.std(unbiased=True) * x.std(dim=1, unbiased=False), lambda x, w: x.std(ddof=1) * x.std(1)),
    "std, dim": (lambda x, w: x.std(dim=1) * x.std(dim=0, keepdim=True).sum(), lambda x, w: x.std(1, ddof=1) * x.std(0, ddof=1).sum()),
    "diff": (lambda x, w: x.diff() * x.diff(n=1, dim=-1), lambda x, w: np.diff(x) ** 2),
    "diff, more around": (lambda x, w: x.diff(n=2, dim=0, prepend=x, append=x), lambda x, w: np.diff(x, 2, 0, x, x)),
    "swapaxes": (lambda x, w: x.swapaxes(0, 1) * x.reshape(1, 2, 3).swapaxes(-1, 1)[0], lambda x, w: x.T * x.T),
    "diagonal": (
        lambda x, w: x.diagonal(1) * x.reshape(1, 2, 3).diagonal(dim1=1, dim2=-1)[0],
        lambda x, w: np.diagonal(x, 1) * np.diagonal(x),
    ),
    "trace": (lambda x, w: x[:, 1:].trace() * w, lambda x, w: np.trace(x[:, 1:]) * w),
    "outer": (lambda x, w: w.outer(x[0]), lambda x, w: np.outer(w, x[0])),
    "mv": (lambda x, w: x.mv(w), lambda x, w: x @ w),
    "bmm": (lambda x, w: stack_twice(x).bmm(stack_twice(x).transpose(1, 2)), lambda x, w: np.stack([x @ x.T] * 2)),
    "addmm": (lambda x, w: x[:, :2].addmm(x, x.t()), lambda x, w: x[:, :2] + x @ x.T),
    "addmm, factors": (lambda x, w: x[:, :2].addmm(x, x.t(), beta=0.5, alpha=-2), lambda x, w: 0.5 * x[:, :2] - 2 * x @ x.T),
    "addmm, a row": (lambda x, w: w.addmm(x[:, :2], x, beta=2), lambda x, w: 2 * w + x[:, :2] @ x),
    "addmm, no beta": (lambda x, w: (x[:, :2] / 0).detach().addmm(x, x.t(), beta=0), lambda x, w: x @ x.T),
    "baddbmm": (
        lambda x, w: stack_twice(x)[:, :, :2].baddbmm(stack_twice(x), stack_twice(x).transpose(1, 2), alpha=3),
        lambda x, w: np.stack([x[:, :2] + 3 * x @ x.T] * 2),
    ),
    "baddbmm, plain": (
        lambda x, w: stack_twice(x)[:, :, :2].baddbmm(stack_twice(x), stack_twice(x).transpose(1, 2)),
        lambda x, w: np.stack([x[:, :2] + x @ x.T] * 2),
    ),
}  # fmt: skip

#: The same, with indices of PyTorch's index dtype as a third operand.
PLACED: dict[str, tuple[np.ndarray[Any, Any], Callable[..., Any], Callable[..., Any]]] = {
    "index_select": (NAMES, lambda x, w, n: x.index_select(1, n) * w.index_select(0, n), lambda x, w, n: x[:, n] * w[n]),
    "index_select, dim": (NAMES[1:], lambda x, w, n: x.index_select(dim=0, index=n), lambda x, w, n: x[n]),
    "gather": (PLACES, lambda x, w, n: x.gather(1, n) * 2, lambda x, w, n: np.take_along_axis(x, n, 1) * 2),
    "gather, dim": (PLACES % 2, lambda x, w, n: x.gather(dim=0, index=n), lambda x, w, n: np.take_along_axis(x[:, :2], n, 0)),
    "gather, more than there are": (MORE, lambda x, w, n: x.gather(1, n) * 2, lambda x, w, n: np.take_along_axis(x, n, 1) * 2),
    "scatter_add": (PLACES, lambda x, w, n: x.scatter_add(1, n, x[:, 1:] * 3), lambda x, w, n: scatter(x, n, 1, x[:, 1:] * 3)),
    "scatter_add, dim": (
        PLACES % 2,
        lambda x, w, n: x.scatter_add(dim=0, index=n, src=x[:, :2] * 3),
        lambda x, w, n: scatter(x, n, 0, x[:, :2] * 3),
    ),
    "take": (PLACES + 1, lambda x, w, n: x.take(n) * 2, lambda x, w, n: np.take(x, n) * 2),
    "masked_select": (
        np.asarray([[True, False, True], [False, False, True]]),
        lambda x, w, n: x.masked_select(n) * w.masked_select(n)[:3],
        lambda x, w, n: x[n] * np.broadcast_to(w, n.shape)[n],
    ),
}

#: Methods without a derivative, of a matrix and a row, and their NumPy equivalents.
WITHOUT: dict[str, Pair] = {
    **{name: (lambda x, w, name=name: getattr(x, name)(w), lambda x, w, f=f: f(x, w)) for name, f in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal))},
    "eq, a number": (lambda x, w: x.eq(0.4), lambda x, w: np.isclose(x, 0.4)),
    "isclose": (lambda x, w: x.isclose(x + 0.01, rtol=0.02), lambda x, w: np.isclose(x, x + 0.01, rtol=0.02)),
    "isclose, relative to the argument": (lambda x, w: x.isclose(x * 2, rtol=0.6), lambda x, w: np.full(x.shape, True)),
    "isclose, relative to it only": (lambda x, w: (x * 2).isclose(x, rtol=0.6), lambda x, w: np.full(x.shape, False)),
    "isclose, atol": (lambda x, w: x.isclose(x + 0.01, 0, atol=0.02), lambda x, w: np.isclose(x, x + 0.01, 0, 0.02)),
    "isnan": (lambda x, w: (x / 0 * 0).isnan(), lambda x, w: np.full(x.shape, True)),
    "argsort": (lambda x, w: x.argsort(), lambda x, w: np.argsort(x)),
    "argsort, dim": (lambda x, w: x.argsort(dim=0, descending=True), lambda x, w: np.argsort(-x, 0)),
    "argsort, a number": (lambda x, w: x[0, 0].argsort(dim=0), lambda x, w: np.asarray(0)),
    "sort, places": (lambda x, w: x.sort(1, descending=True).indices, lambda x, w: np.argsort(-x, 1)),
    "max, places": (lambda x, w: x.max(dim=1).indices, lambda x, w: np.argmax(x, 1)),
    "min, places": (lambda x, w: x.min(dim=0)[1], lambda x, w: np.argmin(x, 0)),
    "median, places": (lambda x, w: x.median(dim=1).indices, lambda x, w: np.argsort(x, 1)[:, 1]),
    "median of integers, places": (lambda x, w: (w.argsort() + 4).median(dim=0).indices, lambda x, w: np.argsort(np.argsort(w))[1]),
    "median of integers": (lambda x, w: (w.argsort() + 4).median(), lambda x, w: np.asarray(5)),
    "new_zeros": (lambda x, w: x.new_zeros(2, 1), lambda x, w: np.zeros((2, 1))),
    "new_ones": (lambda x, w: x.new_ones((3,)), lambda x, w: np.ones(3)),
    "new_full": (lambda x, w: x.new_full((1, 2), 7.0), lambda x, w: np.full((1, 2), 7.0)),
    "new_tensor": (lambda x, w: x.new_tensor([[1.0, 2.0]]), lambda x, w: np.asarray([[1.0, 2.0]])),
    "new_empty": (lambda x, w: x.new_empty(2, 0), lambda x, w: np.empty((2, 0))),
    "norm, not 0": (lambda x, w: (x * (x > 0)).norm(0), lambda x, w: np.asarray(4.0)),
}  # fmt: skip

#: Calls that these methods refuse, of a matrix and a row, and the errors.
REFUSED: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "softmax, no such dim": (IndexError, lambda x, w: x.softmax(2)),
    "sort, no such dim": (IndexError, lambda x, w: x.sort(dim=-3)),
    "max, no such dim": (IndexError, lambda x, w: x.max(dim=2)),
    "mv of a matrix": (ValueError, lambda x, w: x.mv(x)),
    "mv, lengths": (ValueError, lambda x, w: x.mv(w[:2])),
    "bmm of matrices": (ValueError, lambda x, w: x.bmm(x)),
    "bmm, as many": (ValueError, lambda x, w: x.reshape(1, 2, 3).bmm(x.t().reshape(3, 2, 1).repeat(1, 1, 1)[:2].repeat(1, 1, 1))),
    "mm of a row": (ValueError, lambda x, w: x.mm(w)),
    "dot of a matrix": (ValueError, lambda x, w: x.dot(w)),
    "dot of matrices": (ValueError, lambda x, w: x.dot(x)),
    "outer of a matrix": (ValueError, lambda x, w: x.outer(w)),
    "addmm of a row": (ValueError, lambda x, w: x.addmm(w, x)),
    "addmm, does not broadcast": (ValueError, lambda x, w: x.addmm(x, x.t())),
    "gather, axes": (TypeError, lambda x, w: x.gather(1, w > 0)),
    "trace of a row": (ValueError, lambda x, w: w.trace()),
    "diagonal, an axis twice": (ValueError, lambda x, w: x.diagonal(0, 1, -1)),
    "gather, too long": (ValueError, lambda x, w: x.reshape(3, 2).gather(0, x.argsort(1) * 0)),
    "index_select, two axes": (ValueError, lambda x, w: x.index_select(0, x)),
    "repeat, too few": (ValueError, lambda x, w: x.repeat(2)),
    "scatter_add, axes": (ValueError, lambda x, w: x.scatter_add(0, x.argsort() * 0, x.t().mm(x).reshape(3, 3, 1))),
    "dist, shapes": (ValueError, lambda x, w: x.dist(w[:2])),
    "masked_select, numbers": (TypeError, lambda x, w: x.masked_select(w)),
    "relu of truths": (TypeError, lambda x, w: (x > 0).relu()),
    "t of three axes": (ValueError, lambda x, w: x.reshape(1, 2, 3).t()),
}


@contract("DER-26")
def methods_of_pytorch(lib: Any) -> None:
    for name, (ours, theirs) in METHODS.items():
        with lib.case(name):
            check_agreement(lib, ours, theirs, (X, ROW))
    for name, (places, ours, theirs) in PLACED.items():
        if name == "masked_select" and not lib.capabilities["boolean_indexing"]:
            continue
        with lib.case(name):
            n = lib.constant(places, "bool" if places.dtype == bool else lib.index)
            check_agreement(
                lib, lambda x, w, ours=ours, n=n: ours(x, w, n), lambda x, w, theirs=theirs, n=places: theirs(x, w, n), (X, ROW)
            )
    for name, (ours, theirs) in WITHOUT.items():
        with lib.case(name), np.errstate(all="ignore"):
            x = lib.tensor(X)
            found, wanted = ours(x, lib.tensor(ROW)), theirs(X, ROW)
            assert not found.requires_grad or name.startswith("norm")
            assert tuple(found.shape) == np.shape(wanted)
            np.testing.assert_array_equal(lib.value(found), wanted)
            if name.startswith("new_"):
                assert (found.dtype, found.device) == (x.dtype, x.device)
    made = lib.tensor(X).new_tensor([1, 2], dtype=lib.dtype(lib.index))
    assert (made.dtype, lib.value(made).tolist()) == (lib.dtype(lib.index), [1, 2])
    narrow = lib.constant(X, lib.narrow)
    for result in (narrow.sigmoid(), narrow.softmax(0), narrow.log_softmax(0), narrow.logsumexp(0)):
        assert result.dtype == narrow.dtype
    wide = lib.dtype(lib.real)
    for result in (narrow.softmax(0, dtype=wide), narrow.log_softmax(0, dtype=wide), narrow.norm(dtype=wide)):
        assert result.dtype == wide
    assert 2.0 in lib.constant([1.0, 2.0])
    assert 5.0 not in lib.constant([1.0, 2.0])
    far = lib.constant([-1e4, 0.0, 1e4])  # nothing overflows
    lib.equal(far.softmax(0), [0.0, 0.0, 1.0])
    lib.equal(far.log_softmax(0), [-2e4, -1e4, 0.0])
    lib.equal(far.logsumexp(0), 1e4)
    lib.equal(far.sigmoid(), [0.0, 0.5, 1.0])
    assert lib.tensor(X).allclose(lib.tensor(X + 1e-9)) is True
    assert lib.tensor(X).allclose(lib.tensor(X + 0.1), rtol=0.0, atol=0.01) is False
    small, large = lib.constant([1.0]), lib.constant([2.0])  # `rtol` is relative to the argument
    assert (small.allclose(large, rtol=0.5, atol=0.0), large.allclose(small, rtol=0.5, atol=0.0)) == (True, False)
    if lib.capabilities["complex"]:
        z = lib.constant(X + 0.5j * X[::-1], lib.complex)
        lib.equal(z.sigmoid(), 1 / (1 + np.exp(-(X + 0.5j * X[::-1]))), 1e-5, 1e-5)
    for name, (error, call) in REFUSED.items():
        x, w = lib.tensor(X), lib.tensor(POSITIVE[0])
        with lib.case(name), lib.raises(Exception if lib.oracle else error):
            call(x, w)
