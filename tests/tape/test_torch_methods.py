"""Law: a method of a Tensor that PyTorch documents gives what PyTorch 2.13 gives: values, dtypes, first and second gradients, refusals.

Each call of the table runs in both libraries on random Tensors of random shapes. `docs/torch-methods.md` lists the differences.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import grad

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (4,), (3, 2), (2, 3, 4), (2, 1, 3)]
MATRICES = [(3, 3), (2, 3), (1, 4)]


class Case:
    """A call `call(x, a, b, m, d, k)` that runs in both libraries.

    `x` and `a` have the same shape, `b` broadcasts with them, `m` is a mask and `k` an index along axis `d`; all are random.
    """

    def __init__(self, call: Callable[..., Any], shapes: Any = SHAPES, grads: bool = True) -> None:
        self.call, self.shapes, self.grads = call, shapes, grads


def make(call: Callable[..., Any], **options: Any) -> Case:
    return Case(call, **options)


LONG = [s for s in SHAPES if s]
CASES: dict[str, Case] = {
    "relu": make(lambda x, **_: x.relu()),
    "sigmoid": make(lambda x, **_: x.sigmoid()),
    "sigmoid of large": make(lambda x, **_: (x * 400).sigmoid()),
    "softmax": make(lambda x, d, **_: x.softmax(d)),
    "softmax dim=": make(lambda x, d, **_: (x * 300).softmax(dim=d)),
    "log_softmax": make(lambda x, d, **_: x.log_softmax(d)),
    "log_softmax of large": make(lambda x, d, **_: (x * 300).log_softmax(dim=d)),
    "sum keepdim": make(lambda x, d, **_: x.sum(d, True)),
    "sum of axes": make(lambda x, **_: x.sum((0, -1), True), shapes=MATRICES),
    "mean keepdim": make(lambda x, d, **_: x.mean(d, True)),
    "prod keepdim": make(lambda x, d, **_: x.prod(d, True)),
    "all keepdim": make(lambda x, d, **_: (x > 0).all(d, True), grads=False),
    "any keepdim": make(lambda x, d, **_: (x > 0).any(d, False), grads=False),
    "argmax keepdim": make(lambda x, d, **_: x.argmax(d, True), grads=False),
    "logsumexp": make(lambda x, d, **_: x.logsumexp(d)),
    "logsumexp keepdim": make(lambda x, d, **_: x.logsumexp(dim=d, keepdim=True)),
    "norm": make(lambda x, **_: x.norm()),
    "norm p": make(lambda x, d, **_: x.norm(3, d)),
    "norm p=1": make(lambda x, d, **_: x.norm(p=1, dim=d, keepdim=True)),
    "norm inf": make(lambda x, **_: x.norm(float("inf"))),
    "norm 0": make(lambda x, **_: x.norm(0), grads=False),
    "norm fro": make(lambda x, **_: x.norm("fro", dim=(0, 1)), shapes=[(3, 2), (2, 3, 4)]),
    "norm nuc": make(lambda x, **_: x.norm("nuc"), shapes=MATRICES),
    "norm nuc keepdim": make(lambda x, **_: x.norm("nuc", dim=(2, 0), keepdim=True), shapes=[(2, 3, 4)]),
    "dist": make(lambda x, b, **_: x.dist(b)),
    "dist p": make(lambda x, a, **_: x.dist(a, p=4)),
    "ravel": make(lambda x, **_: x.ravel()),
    "swapaxes": make(lambda x, **_: x.swapaxes(0, -1), shapes=LONG),
    "diagonal": make(lambda x, **_: x.diagonal(1), shapes=[(3, 4), (2, 3, 4)]),
    "diagonal of axes": make(lambda x, **_: x.diagonal(-1, dim1=-1, dim2=0) * x.diagonal(0, 0, 2).sum(), shapes=[(2, 3, 4)]),
    "trace": make(lambda x, **_: x.trace(), shapes=MATRICES),
    "repeat": make(lambda x, **_: x.repeat(2, *[1, 3, 2][: max(x.ndim, 1)])),
    "repeat of one": make(lambda x, **_: x.repeat((2, 1, 2, 3)), shapes=[s for s in SHAPES if len(s) < 4]),
    "tile": make(lambda x, **_: x.tile(2, 2)),
    "sort": make(lambda x, d, **_: tuple(x.sort(d))),
    "sort descending": make(lambda x, d, **_: tuple(x.sort(dim=d, descending=True, stable=True))),
    "sort default": make(lambda x, **_: tuple(x.sort())),
    "argsort": make(lambda x, d, **_: x.argsort(dim=d, descending=True), grads=False),
    "max": make(lambda x, **_: x.max()),
    "max dim": make(lambda x, d, **_: tuple(x.max(dim=d))),
    "max keepdim": make(lambda x, d, **_: tuple(x.max(d, keepdim=True))),
    "max other": make(lambda x, a, **_: x.max(a)),
    "min": make(lambda x, **_: x.min()),
    "min dim": make(lambda x, d, **_: tuple(x.min(dim=d))),
    "min keepdim": make(lambda x, d, **_: tuple(x.min(dim=d, keepdim=True))),
    "min other": make(lambda x, a, **_: x.min(a)),
    "median": make(lambda x, **_: x.median()),
    "median dim": make(lambda x, d, **_: tuple(x.median(d))),
    "median keepdim": make(lambda x, d, **_: tuple(x.median(dim=d, keepdim=True))),
    "var dim": make(lambda x, d, **_: x.var(dim=d), shapes=[(4,), (3, 2), (2, 3, 4)]),
    "var keepdim": make(lambda x, d, **_: x.var(dim=d, keepdim=True, correction=0), shapes=LONG),
    "var unbiased": make(lambda x, **_: x.var(unbiased=True), shapes=[(4,), (3, 2)]),
    "var biased": make(lambda x, d, **_: x.var(dim=d, unbiased=False), shapes=LONG),
    "std dim": make(lambda x, d, **_: x.std(dim=d), shapes=[(4,), (3, 2), (2, 3, 4)]),
    "std biased": make(lambda x, **_: x.std(unbiased=False), shapes=[(4,), (3, 2)]),
    "sum": make(lambda x, d, **_: x.sum(dim=d, keepdim=True)),
    "mean": make(lambda x, d, **_: x.mean(dim=d)),
    "diff": make(lambda x, d, **_: x.diff(dim=d), shapes=LONG),
    "diff n": make(lambda x, a, **_: x.diff(n=2, dim=-1, prepend=a, append=a), shapes=LONG),
    "masked_select": make(lambda x, m, **_: x.masked_select(m)),
    "masked_select broadcast": make(lambda b, m, **_: b.masked_select(m)),
    "index_select": make(lambda x, d, k, **_: x.index_select(d, k.reshape((-1,))), shapes=LONG),
    "index_select of one": make(lambda x, d, k, **_: x.index_select(dim=d, index=k.reshape((-1,))[0]), shapes=LONG),
    "take": make(lambda x, k, **_: x.take(k % x.numel()), shapes=LONG),
    "gather": make(lambda x, d, k, **_: x.gather(d, k), shapes=LONG),
    "gather a part": make(lambda x, d, k, **_: x.gather(dim=d, index=k[:1]), shapes=LONG),
    "scatter_add": make(lambda x, a, d, k, **_: x.scatter_add(d, k, a), shapes=LONG),
    "scatter_add a part": make(lambda x, a, d, k, **_: x.scatter_add(dim=d, index=k[:1], src=a[:1]), shapes=LONG),
    "mm": make(lambda x, **_: x.mm(x.t()), shapes=MATRICES),
    "mv": make(lambda x, a, **_: x.mv(a[0]), shapes=MATRICES),
    "bmm": make(lambda x, a, **_: x.bmm(a.transpose(1, 2)), shapes=[(2, 3, 4)]),
    "outer": make(lambda x, a, **_: x.outer(a), shapes=[(1,), (4,)]),
    "addmm": make(lambda x, a, **_: x[:, :1].addmm(x, a.t()), shapes=MATRICES),
    "addmm beta": make(lambda x, a, **_: (x @ a.t()).addmm(x, a.t(), beta=0.5, alpha=2), shapes=MATRICES),
    "addmm beta 0": make(lambda x, a, **_: (x @ a.t() * np.nan).detach().addmm(x, a.t(), beta=0), shapes=MATRICES),
    "baddbmm": make(lambda x, a, **_: x[:, :1, :1].baddbmm(x, a.transpose(1, 2), beta=3, alpha=-1), shapes=[(2, 3, 4), (2, 1, 3)]),
    "eq": make(lambda x, b, **_: x.eq(b), grads=False), "ne": make(lambda x, a, **_: x.ne(a), grads=False),
    "lt": make(lambda x, b, **_: x.lt(b), grads=False), "le": make(lambda x, **_: x.le(0.5), grads=False),
    "gt": make(lambda x, b, **_: x.gt(b), grads=False), "ge": make(lambda x, **_: x.ge(0), grads=False),
    "isclose": make(lambda x, a, **_: x.isclose(a, 0.5, atol=0.1), grads=False),
    "new_zeros": make(lambda x, **_: x.new_zeros(2, 3), grads=False), "new_ones": make(lambda x, **_: x.new_ones((2,)), grads=False),
    "new_full": make(lambda x, **_: x.new_full((2, 1), 7), grads=False),
    "new_tensor": make(lambda x, **_: x.new_tensor([[1, 2]]), grads=False),
    "new_empty": make(lambda x, **_: x.new_empty(2, 0), grads=False),
}  # fmt: skip
DTYPES = ["float64", "float32"]


def seeds(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def random_arguments(name: str, shape: tuple[int, ...], dtype: str) -> dict[str, np.ndarray | int]:
    """Return random arguments for a case as NumPy arrays."""
    rng = seeds(f"{name} {shape}")
    d = int(rng.integers(-max(len(shape), 1), max(len(shape), 1)))
    narrow = tuple(1 if rng.random() < 0.5 else n for n in shape)
    length = shape[d] if shape else 1
    values = {"x": rng.normal(size=shape), "a": rng.normal(size=shape), "b": rng.normal(size=narrow)}
    return {
        **{k: np.asarray(v, dtype) for k, v in values.items()}, "m": np.asarray(rng.random(shape) < 0.6), "d": d,
        "k": np.asarray(rng.integers(0, length, size=shape)),
    }  # fmt: skip


def as_list(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


def number(x: Any) -> Any:
    return x.detach().numpy()


def derivatives(call: Callable[..., Any], given: dict[str, Any], gradient: Callable[..., Any]) -> list[Any]:
    """Return the results of a call, and the gradients of the first and second order of scalars of them."""
    outs = as_list(call(**given))
    found = [number(o) for o in outs]
    leaves = [given[k] for k in "xab"]
    total: Any = sum(((o * o + o * 0.7).sum() for o in outs if o.requires_grad), 0)
    if isinstance(total, int):
        return found
    grads = gradient(total, leaves, create_graph=True, allow_unused=True)
    further: Any = sum(((g * g).sum() for g in grads if g is not None and g.requires_grad), 0)
    seconds = [None] * 3 if isinstance(further, int) else gradient(further, leaves, allow_unused=True)
    return found + [None if g is None else number(g) for g in (*grads, *seconds)]


def arguments_for_both(name: str, case: Case, shape: tuple[int, ...], dtype: str, device: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the same arguments for xpgrad and for PyTorch."""
    given = random_arguments(name, shape, dtype)
    mine = {k: v if k == "d" else xp.asarray(v, device=device) for k, v in given.items()}
    theirs = {k: v if k == "d" else torch.asarray(v) for k, v in given.items()}
    for leaves in (mine, theirs):
        for k in "xab" if case.grads else "":
            leaves[k].requires_grad_()
    return mine, theirs


@pytest.mark.parametrize("name", CASES)
def test_a_method_agrees_with_pytorch(name: str, xpgrad_device: str) -> None:
    case = CASES[name]
    for shape in case.shapes:
        for dtype in DTYPES:
            mine, theirs = arguments_for_both(name, case, shape, dtype, xpgrad_device)
            with np.errstate(all="ignore"):
                ours = derivatives(case.call, mine, grad)
            expected = derivatives(case.call, theirs, torch.autograd.grad)
            assert len(ours) == len(expected), (shape, dtype)
            tolerance = 1e-9 if dtype == "float64" else 2e-3
            for o, e in zip(ours, expected):
                if o is None or e is None:  # a missing derivative counts as zero
                    assert not np.any(e if o is None else o), (shape, dtype)
                    continue
                assert np.asarray(o).dtype == np.asarray(e).dtype, (shape, dtype)
                np.testing.assert_allclose(np.asarray(o), np.asarray(e), rtol=tolerance, atol=tolerance, err_msg=f"{shape} {dtype}")


#: Methods whose result's shape depends on values, or whose result does not depend on the batched Tensor.
UNBATCHED = {"masked_select", "masked_select broadcast", *(name for name in CASES if name.startswith("new_"))}


@pytest.mark.parametrize("name", [name for name in CASES if name not in UNBATCHED])
def test_a_method_is_transformed(name: str) -> None:
    """`vmap` agrees with a loop over elements, forward mode with reverse mode, and the compiled method with the method."""
    case = CASES[name]
    for shape in case.shapes[:4]:
        given = random_arguments(name, shape, "float64")
        fixed = {k: v if k == "d" else xp.asarray(v) for k, v in given.items() if k != "x"}
        x = xp.asarray(given["x"])

        def call(x: Any, case: Case = case, fixed: Any = fixed) -> tuple[Any, ...]:
            return tuple(case.call(x=x, **fixed)) if isinstance(out := case.call(x=x, **fixed), tuple) else (out,)

        alone = call(x)
        rows = xp.stack([x, x * 0.9 - 0.1])
        for i, out in enumerate(zip(*(call(row) for row in rows))):
            np.testing.assert_allclose(xp.func.vmap(call)(rows)[i].numpy(), xp.stack(list(out)).numpy(), rtol=1e-12, atol=1e-12)
        for one, other in zip(alone, xp.compile(call)(x)):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)
        if case.grads:
            v = xp.asarray(seeds(name).normal(size=shape))
            _, tangents = xp.func.jvp(call, (x,), (v,))
            outs, pull = xp.func.vjp(call, x)
            (back,) = pull(tuple(xp.ones_like(o) for o in outs))
            forwards = sum(float(t.sum().item()) for t, o in zip(tangents, outs) if o.dtype.differentiable)
            assert forwards == pytest.approx(float((back * v).sum().item()), abs=1e-9)


# -- refusals -------------------------------------------------------------------------------------------------------------

#: PyTorch refuses all of these with one kind of error; the kinds here say more.
REFUSED: dict[str, tuple[Callable[[Any, Any], Any], type[Exception]]] = {
    "softmax of no axis": (lambda x, _: x.softmax(5), IndexError),
    "max of no axis": (lambda x, _: x.max(dim=2), IndexError),
    "sort of no axis": (lambda x, _: x.sort(dim=2), IndexError),
    "gather of no axis": (lambda x, k: x.gather(2, k), IndexError),
    "gather of fewer axes": (lambda x, k: x.gather(0, k[0]), ValueError),
    "gather of a longer index": (lambda x, k: x[:, :1].gather(0, k), ValueError),
    "gather of numbers that are not integers": (lambda x, _: x.gather(0, x), TypeError),
    "gather out of range": (lambda x, k: x.gather(0, k + 7), IndexError),
    "scatter_add out of range": (lambda x, k: x.scatter_add(0, k + 7, x), IndexError),
    "scatter_add of a short source": (lambda x, k: x.scatter_add(0, k, x[:1]), ValueError),
    "scatter_add of another dtype": (lambda x, k: x.scatter_add(0, k, k), RuntimeError),
    "index_select of a matrix": (lambda x, k: x.index_select(0, k), ValueError),
    "index_select out of range": (lambda x, k: x.index_select(0, k[0] + 7), IndexError),
    "masked_select by numbers": (lambda x, k: x.masked_select(k), TypeError),
    "mv of a matrix": (lambda x, _: x.mv(x), ValueError),
    "bmm of matrices": (lambda x, _: x.bmm(x), ValueError),
    "addmm of shapes that do not fit": (lambda x, _: x.addmm(x, x), ValueError),
    "addmm of too large an operand": (lambda x, _: x.repeat(2, 2).addmm(x, x.t()), ValueError),
    "outer of matrices": (lambda x, _: x.outer(x), ValueError),
    "repeat of fewer numbers": (lambda x, _: x.repeat(2), ValueError),
    "median of nothing": (lambda x, _: x[:0].median(dim=0), IndexError),
    "norm by a name": (lambda x, _: x.norm("large"), ValueError),
    "the nuclear norm of a vector": (lambda x, _: x[0].norm("nuc"), IndexError),
    "variance by two names": (lambda x, _: x.var(dim=0, correction=1, unbiased=True), TypeError),
    "keepdim without dim": (lambda x, _: x.max(keepdim=True), TypeError),
    "relu of bools": (lambda x, _: (x > 0).relu(), TypeError),
    "index_add_ of numbers to integers": (lambda x, k: k.index_add_(0, k[0, :2], x), RuntimeError),
    "index_add_ of complex numbers": (lambda x, k: x.index_add_(0, k[0, :2], x * 1j), RuntimeError),
    "index_add_ with a complex factor": (lambda x, k: x.index_add_(0, k[0, :2], x, alpha=1j), RuntimeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_is_refused(name: str, xpgrad_device: str) -> None:
    call, kind = REFUSED[name]
    data, index = np.arange(6.0).reshape(2, 3), np.zeros((2, 3), "int64")
    with pytest.raises(kind):
        call(xp.asarray(data, device=xpgrad_device), xp.asarray(index, device=xpgrad_device))
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        call(torch.asarray(data), torch.asarray(index))


# -- where the two interfaces meet ------------------------------------------------------------------------------------------


def test_the_arguments_names_say_whose_way_is_meant() -> None:
    a = np.asarray([[1.0, 2.0], [5.0, 4.0], [0.0, 9.0]])
    x = xp.asarray(a)
    for ours, correction in (
        (x.var(), 0), (x.var(axis=0), 0), (x.var(0), 0), (x.var(axis=0, keepdims=True), 0), (x.var(axis=0, correction=1), 1),
        (x.var(dim=0), 1), (x.var(0, keepdim=False), 1), (x.var(unbiased=True), 1), (x.var(dim=0, unbiased=False), 0),
        (x.var(dim=0, correction=0), 0),
    ):  # fmt: skip
        axis = None if not ours.ndim else 0
        np.testing.assert_allclose(ours.numpy(), a.var(axis, ddof=correction, keepdims=ours.ndim == 2))
    for name in ("max", "min"):
        method = getattr(x, name)
        for values in (method(0), method(axis=0), method(axis=0, keepdims=True), method()):
            assert isinstance(values, xp.Tensor)
        for pair in (method(dim=0), method(0, keepdim=True), method(0, True), method(axis=0, keepdim=True)):
            assert pair._fields == ("values", "indices")
    np.testing.assert_array_equal(x.sort(descending=True).indices.numpy(), [[1, 0], [0, 1], [1, 0]])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    "numbers",
    [[1.0, 1.0, 2.0], [3.0, 1.0, 2.0, 2.0], [np.nan, 1.0, np.nan], [-np.inf, -np.inf, 1.0], [np.inf, np.inf], [0.1] * 3, [1e308] * 3],
)
def test_a_median_is_all_that_are_equal_to_it(numbers: list[float]) -> None:
    """Law: elements equal to the median share its gradient, and the median is not rounded."""
    ours, theirs = xp.tensor(numbers, requires_grad=True), torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    for x in (ours, theirs):
        (x * 1.0).median().backward()
    assert repr(ours.median().item()) == repr(theirs.median().item())
    np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
    assert xp.asarray(numbers, dtype=xp.float16).median().dtype == xp.float16


def test_a_median_beside_a_nan_is_one() -> None:
    a = np.asarray([[1.0, np.nan, 0.0], [3.0, 1.0, 2.0]])
    ours, theirs = xp.asarray(a).median(dim=1), torch.asarray(a).median(dim=1)
    np.testing.assert_array_equal(ours.values.numpy(), theirs.values.numpy())
    np.testing.assert_array_equal(ours.indices.numpy(), theirs.indices.numpy())


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "sigmoid", "relu"])
@pytest.mark.parametrize("row", [[np.inf, 1.0], [-np.inf, -np.inf], [np.nan, 1.0], [-np.inf, 0.0], [800.0, -800.0], [0.0, -0.0]])
def test_values_at_the_edges(name: str, row: list[float]) -> None:
    args = () if name in ("sigmoid", "relu") else (0,)
    with np.errstate(all="ignore"):
        ours = getattr(xp.asarray(row), name)(*args)
    np.testing.assert_array_equal(ours.numpy(), getattr(torch.asarray(row, dtype=torch.float64), name)(*args).numpy())


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize(("shape", "dim"), [((0,), 0), ((3, 0), 1), ((0, 3), 0), ((0, 3), 1), ((2, 0, 4), -2)])
def test_values_without_elements(name: str, shape: tuple[int, ...], dim: int) -> None:
    found = []
    for lib in (xp, torch):
        x = lib.zeros(shape, requires_grad=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = getattr(x, name)(dim)
            y.sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.shape == theirs.shape


def test_integers_go_to_the_default_dtype() -> None:
    x = xp.asarray([1, 2, 3])
    for out in (x.sigmoid(), x.softmax(0), x.log_softmax(0), x.logsumexp(0)):
        assert out.dtype is xp.float64
    assert x.relu().dtype is xp.int64
    assert x.softmax(0, dtype="float32").dtype is xp.float32
    assert x.new_tensor([1.5], dtype="float32", requires_grad=True).requires_grad


def test_a_write_into_integers_loses_no_gradient() -> None:
    """`index_add_` refuses floats for integers and leaves the Tensor unchanged; it accepts integers and floats of other widths."""
    x, v, i = xp.asarray([1, 2]), xp.tensor([1.5], requires_grad=True), xp.asarray([0])
    with pytest.raises(RuntimeError, match=r"index_add_.*float64.*int64"):
        x.index_add_(0, i, v)
    assert x.tolist() == [1, 2]
    assert x.index_add_(0, i, xp.asarray([5], dtype="int32")).tolist() == [6, 2]
    single = xp.ones(2, dtype="float32").index_add_(0, i, v)
    assert single.dtype is xp.float32
    single.sum().backward()
    assert v.grad.tolist() == [1.0]


def test_where_a_derivative_jumps() -> None:
    """`relu` has the derivative 0 at 0, and among equal maxima the one at the returned index gets the gradient."""
    for lib in (xp, torch):
        x = lib.asarray([0.0, 1.0, 1.0]).requires_grad_()
        (x.relu().sum() + x.max(dim=0).values * 10).backward()
        assert x.grad.tolist() == [0.0, 11.0, 1.0]


# -- transpose_ -------------------------------------------------------------------------------------------------------------


def test_transpose_in_place_agrees_with_pytorch(xpgrad_device: str) -> None:
    data = np.arange(6.0).reshape(2, 3) / 5

    def results(lib: Any, gradient: Any, **options: Any) -> list[Any]:
        x = lib.asarray(data.copy(), **options).requires_grad_()
        y = x * x
        same = y.transpose_(0, 1)
        assert same is y
        assert tuple(y.shape) == (3, 2)
        y *= lib.asarray(data.T.copy(), **options)  # a write after it, of the new shape
        y[0] = 1.0
        loss = (y * y * y).sum()
        (g,) = gradient(loss, x, create_graph=True)
        (h,) = gradient((g * g).sum(), x)
        plain = lib.asarray(data.copy(), **options)
        earlier = plain[0]
        del earlier  # a view that has been dropped; later views have the new shape
        plain.transpose_(-1, 0)
        plain[2] = 9.0
        view = plain[:, 0]
        view[0] = 7.0
        return [number(t) for t in (y, g, h, plain, plain + 1)]

    ours, theirs = results(xp, grad, device=xpgrad_device), results(torch, torch.autograd.grad)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("lib", [xp, torch])
def test_transpose_in_place_is_a_write(lib: Any) -> None:
    y = (lib.ones((2, 3)).requires_grad_() * 1).exp()
    y.transpose_(0, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError):
        lib.ones((2, 3)).requires_grad_().transpose_(0, 1)
    with pytest.raises(IndexError):
        lib.ones((2, 3)).transpose_(0, 2)


def test_transpose_in_place_refuses_shared_memory() -> None:
    x = xp.ones((2, 3))
    row = x[0]
    for shared in (x, row.reshape((1, 3)), xp.ones((2, 2)).requires_grad_().detach()):
        alias = shared.detach()
        with pytest.raises(RuntimeError, match="shares its memory"):
            shared.transpose_(0, 1)
        del alias
    del row, shared
    assert x.transpose_(0, 1).shape == (3, 2)
    with pytest.raises(RuntimeError, match="in place"):
        xp.func.vmap(lambda t: t.transpose_(0, 1))(xp.ones((2, 2, 2)))
    with pytest.raises(RuntimeError, match=r"in place|in-place"):
        xp.func.jvp(lambda t: (t * 1).transpose_(0, 1), (xp.ones((2, 2)),), (xp.ones((2, 2)),))
    with xp.no_grad(), pytest.raises(RuntimeError, match="leaf"):
        xp.ones((2, 3)).requires_grad_().transpose_(0, 1)


def test_numpys_methods(xpgrad_device: str) -> None:
    """Law: what NumPy calls on its arrays works on the Tensors that its functions return."""
    x = xp.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=xpgrad_device, requires_grad=True)
    y = np.where(x > 2.0, x, 0.0)
    assert y.astype("float32").dtype is xp.float32
    assert y.astype(xp.float64, copy=False) is y
    copy = y.copy()
    copy[0] = 7.0
    np.testing.assert_array_equal(np.asarray(copy.detach()), [[7.0] * 3, [4.0, 5.0, 6.0]])
    copy.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3]
    data = np.asarray(y.detach())
    for call in (lambda t: t.take([[0, 2]], axis=1), lambda t: t.take([5, -1]), lambda t: t.diagonal(1), lambda t: t.swapaxes(0, 1)):
        np.testing.assert_array_equal(np.asarray(call(y.detach())), call(data))
    assert y.detach().clone().fill(2) is None
    with pytest.raises(ValueError, match="must differ"):
        x.diagonal(dim1=1, dim2=-1)
    with pytest.raises(ValueError, match="takes stacks"):
        xp.ones((2, 2, 2)).trace()


@pytest.mark.parametrize(("real", "dtype"), [("float64", "complex128"), ("float32", "complex64")])
def test_views_of_complex_numbers_as_pairs(real: str, dtype: str) -> None:
    z = np.array([[1 + 2j, complex(np.inf, -0.0)], [complex(-0.0, np.nan), -2j]], dtype)
    x = xp.tensor(z, requires_grad=True)
    pairs = x.view(getattr(xp, real))
    np.testing.assert_array_equal(pairs.detach().numpy().view(np.uint8), z.view(real).view(np.uint8))  # signs of zeros too
    back = pairs.view(dtype)
    np.testing.assert_array_equal(back.detach().numpy().view(np.uint8), z.view(np.uint8))
    weights = np.arange(1.0, 9.0, dtype=real).reshape(2, 4)
    xp.sum(pairs * xp.asarray(weights)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), weights.view(dtype))
    with pytest.raises(RuntimeError, match="is a copy where other libraries return a view"):
        pairs[0] = 1.0
    assert xp.ones(2, dtype=xp.float64).view(float).shape == (2,)
    same = xp.zeros(3)
    same.view(same.dtype)[0] = 1.0
    assert same.tolist() == [1.0, 0.0, 0.0]
    for wrong in (xp.ones((), dtype=getattr(xp, real)), xp.ones((2, 3), dtype=getattr(xp, real))):
        with pytest.raises(ValueError, match="has no last axis of pairs"):
            wrong.view(dtype)


@pytest.mark.parametrize("dtype", [xp.int64, "float32", np.uint8, np.dtype("complex64"), bool])
def test_a_view_in_another_dtype_says_what_to_write(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"view\(.*the same bytes in another dtype .*`x\.astype\(dtype\)`"):
        xp.ones(2).view(dtype)
    with pytest.raises(TypeError, match="`shape` must be an int or a sequence of ints"):
        xp.ones(2).view("six")
