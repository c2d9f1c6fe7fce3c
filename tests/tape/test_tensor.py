"""Law: a Tensor behaves like an array of the standard in Python's protocols, and like PyTorch's when written to, copied or converted."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import numbers, values

grad = xp.autograd.grad


def make(data: Any, device: str = "numpy", rg: bool = False, **options: Any) -> Any:
    return xp.tensor(data, device=device, requires_grad=rg, **options)


# -- operators ---------------------------------------------------------------------------------------------------------------------

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
def test_operators_and_their_reflected_forms(name: str, xpgrad_device: str) -> None:
    op = getattr(operator, name)
    a, b = np.asarray([1.5, 2.0, 3.0]), np.asarray([[2.0], [0.5]])
    x, y = make(a, xpgrad_device), make(b, xpgrad_device)
    np.testing.assert_allclose(values(op(x, y)), op(a, b))
    for scalar in (2, 0.5, np.float64(2.0), np.float32(0.5), np.int64(3)):
        plain = scalar.item() if isinstance(scalar, np.generic) else scalar
        for found, expected in ((op(x, scalar), op(a, plain)), (op(scalar, x), op(plain, a))):
            assert isinstance(found, xp.Tensor)
            assert found.device == xpgrad_device
            np.testing.assert_allclose(values(found), expected)


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_operators(name: str, xpgrad_device: str) -> None:
    op = getattr(operator, name)
    a, b = np.asarray([6, 3, 12]), np.asarray([1, 2, 3])
    np.testing.assert_array_equal(values(op(make(a, xpgrad_device), make(b, xpgrad_device))), op(a, b))
    np.testing.assert_array_equal(values(op(make(a, xpgrad_device), 2)), op(a, 2))
    np.testing.assert_array_equal(values(op(2, make(b, xpgrad_device))), op(2, b))


def test_unary_operators(xpgrad_device: str) -> None:
    x = make([1.5, -2.0], xpgrad_device, rg=True)
    assert (-x).tolist() == [-1.5, 2.0]
    assert (+x).tolist() == [1.5, -2.0]
    assert abs(x).tolist() == [1.5, 2.0]
    assert (~make([True, False], xpgrad_device)).tolist() == [False, True]
    assert (~make([1, -1], xpgrad_device)).tolist() == [-2, 0]
    assert +x is not x
    assert grad(xp.sum(abs(-x) * 2), x)[0].tolist() == [2.0, -2.0]


#: dtype, scalar, dtype of ``x + scalar`` or the kind whose default it is: scalars are weak, so they can only change the kind.
WEAK = [
    ("float32", 1, "float32"), ("float32", 1.5, "float32"), ("float32", 1j, "complex64"), ("float64", 1j, "complex128"),
    ("int8", 1, "int8"), ("int32", 1.5, "real floating"), ("int32", 1j, "complex floating"), ("uint8", 3, "uint8"),
    ("complex64", 1.5, "complex64"), ("bool", 1, "integral"), ("bool", 1.5, "real floating"),
    ("float32", True, "float32"), ("int16", True, "int16"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "scalar", "expected"), WEAK)
def test_scalars_promote_weakly(dtype: str, scalar: Any, expected: str, xpgrad_device: str) -> None:
    x = xp.ones((2,), dtype=dtype, device=xpgrad_device)
    if expected in ("real floating", "complex floating", "integral"):
        expected = type(x).default_dtype(expected).name
    kind = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(scalar)]
    for s in (scalar, kind(scalar)):
        assert (x + s).dtype.name == expected
        assert (s + x).dtype.name == expected
        assert xp.add(x, s).dtype.name == expected


@pytest.mark.parametrize("name", ["add", "mul", "lt", "matmul"])
@pytest.mark.parametrize("other", ["a", None, [1.0, 2.0], object()], ids=lambda o: type(o).__name__)
def test_other_operands_are_refused(name: str, other: Any) -> None:
    with pytest.raises(TypeError):
        getattr(operator, name)(xp.ones(2), other)
    with pytest.raises(TypeError):
        getattr(operator, name)(other, xp.ones(2))
    with pytest.raises(TypeError, match="needs a Tensor"):
        xp.add(xp.ones(2), other)


def test_functions_refuse_lists_and_those_of_shapes_numbers() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: xp.sin([1.0]), lambda: xp.add([1.0], xp.ones(2)), lambda: xp.sum([1.0]), lambda: xp.take([1.0], xp.asarray([0])),
        lambda: xp.concat([[1.0]]), lambda: xp.reshape([1.0], (1,)), lambda: xp.sum(1.0), lambda: xp.reshape(1.0, (1,)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match=r"xpgrad\.asarray"):
            call()


class Other:
    """An operand whose own operators handle a Tensor."""

    def __radd__(self, other: Any) -> str:
        return "radd"

    __rmatmul__ = __req__ = __radd__

    def __gt__(self, other: Any) -> str:
        return "gt"


def test_unknown_operands_may_answer_themselves() -> None:
    assert xp.ones(2) + Other() == "radd"
    assert xp.ones(2) @ Other() == "radd"
    assert (xp.ones(2) < Other()) == "gt"


# -- Python's protocols ------------------------------------------------------------------------------------------------------------


def test_repr(xpgrad_device: str) -> None:
    with xp.default_device(xpgrad_device):
        x = make([1.0, 2.5], xpgrad_device, rg=True)
        if x.backend.capabilities.lazy:  # printing computes nothing
            assert all(part in repr(x * 2) for part in ("tensor(", "shape=(2,)", "dtype=float64", "grad_fn=<MulBackward0>"))
            return
        assert repr(x) == "tensor([1. , 2.5], requires_grad=True)"
        assert repr(x * 2) == "tensor([2., 5.], grad_fn=<MulBackward0>)"
        assert repr(x.detach()) == "tensor([1. , 2.5])"
        assert repr(make([1, 2], xpgrad_device, dtype="int32")) == "tensor([1, 2], dtype=xpgrad.int32)"
        assert repr(make([True], xpgrad_device)) == "tensor([ True])"
        assert repr(make(3.0, xpgrad_device)) == "tensor(3.)"
        assert "shape=(0, 3)" in repr(xp.ones((0, 3), device=xpgrad_device))
        assert "..." in repr(xp.ones((2000,), device=xpgrad_device))
        rows = repr(make([[1.0, 2.0], [3.0, 4.0]], xpgrad_device)).splitlines()
        assert [row.index("[1." if "1." in row else "[3.") for row in rows] == [8, 8]
    if xpgrad_device != "numpy":
        assert repr(x.detach()) == f"tensor([1. , 2.5], device={xpgrad_device!r})"
        assert str(x) == repr(x)


def test_len_and_iteration(xpgrad_device: str) -> None:
    x = make([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], xpgrad_device, rg=True)
    assert len(x) == 3
    rows = list(x)
    assert [r.tolist() for r in rows] == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert grad(xp.sum(rows[1] * rows[2]), x)[0].tolist() == [[0.0, 0.0], [5.0, 6.0], [3.0, 4.0]]
    a, _, c = make([1.0, 2.0, 3.0], xpgrad_device)
    assert (a.item(), c.item()) == (1.0, 3.0)
    zero = make(1.0, xpgrad_device)
    with pytest.raises(TypeError, match="len"):
        len(zero)
    with pytest.raises(TypeError, match="0-d"):
        iter(zero)


def test_conversions_to_python(xpgrad_device: str) -> None:
    x = make([[2.5]], xpgrad_device)
    assert (float(x), int(x), bool(x), complex(x), x.item()) == (2.5, 2, True, 2.5 + 0j, 2.5)
    assert type(x.item()) is float
    assert type(make(3, xpgrad_device).item()) is int
    assert type(make(True, xpgrad_device).item()) is bool
    assert make(1 + 2j, xpgrad_device).item() == 1 + 2j
    assert operator.index(make(3, xpgrad_device)) == 3
    assert [10, 20, 30][make(1, xpgrad_device)] == 20
    assert bool(make(0.0, xpgrad_device)) is False
    for convert in (float, int, bool, complex, lambda y: y.item()):
        with pytest.raises((ValueError, RuntimeError, TypeError), match="one element"):
            convert(xp.ones(2, device=xpgrad_device))
    for bad in (make(1.0, xpgrad_device), make([1], xpgrad_device), make(True, xpgrad_device)):
        with pytest.raises(TypeError, match="index"):
            operator.index(bad)
    for convert in (float, int):
        with pytest.raises(TypeError, match="complex"):
            convert(make(1 + 2j, xpgrad_device))


def test_leaving_the_graph_warns(xpgrad_device: str) -> None:
    x = make(2.5, xpgrad_device, rg=True)
    for convert in (float, int, complex):
        with pytest.warns(UserWarning, match="requires_grad=True to a scalar"):
            convert(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.item() == 2.5
        assert bool(x)
        assert float(x.detach()) == 2.5


def test_format() -> None:
    assert f"{xp.tensor(3.14159):.2f}" == "3.14"
    assert f"{xp.tensor([[3.14159]]):>8.2f}" == "    3.14"
    assert f"{xp.tensor(3):04d}" == "0003"
    assert f"{xp.tensor([1.0, 2.0])}" == str(xp.tensor([1.0, 2.0]))
    for x in (xp.tensor([1.0, 2.0]), xp.zeros(0)):
        with pytest.raises(TypeError, match=r"unsupported format string '\.3f' passed to"):
            f"{x:.3f}"
    with pytest.raises(ValueError, match="Unknown format code 'q'"):
        f"{xp.tensor(3.0):q}"
    assert f"{xp.tensor([7]):03d}" == "007"
    assert f"{xp.tensor([1.0, 2.0])}" == "tensor([1., 2.])"


def test_hash_and_truth_in_collections(xpgrad_device: str) -> None:
    x, y = make([1.0], xpgrad_device), make([1.0], xpgrad_device)
    assert hash(x) != hash(y)
    assert {x: 1, y: 2}[x] == 1
    assert len({x, y, x}) == 2


def test_no_tensor_by_calling_the_class() -> None:
    with pytest.raises(TypeError, match=r"xpgrad\.tensor"):
        xp.Tensor([1.0])
    assert type(xp.ones(1)).__name__ == "Tensor"
    assert isinstance(xp.ones(1), xp.Tensor)


# -- leaving xpgrad ----------------------------------------------------------------------------------------------------------------


def test_numpy_shares_memory_and_refuses_history() -> None:
    x = xp.tensor([1.0, 2.0])
    assert np.shares_memory(x.numpy(), np.asarray(x))
    assert np.shares_memory(x.numpy(), x.array)
    assert np.asarray(x, dtype="float32").dtype == np.float32
    assert not np.shares_memory(np.array(x, copy=True), x.array)
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(x, dtype="float32", copy=False)
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]


def test_what_requires_grad_is_not_handed_out(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    for y in (x, x * 2):
        for call in (lambda: y.numpy(), lambda: np.asarray(y), lambda: y.__dlpack__()):  # noqa: B023
            with pytest.raises(RuntimeError, match=r"Can't call .* on Tensor that requires grad\. Use tensor\.detach\(\)"):
                call()
        with pytest.raises(RuntimeError, match="require gradient"):
            xp.from_dlpack(y)
        assert y.detach().numpy().shape == (2,)


def test_no_tensor_offers_an_exchange_that_passes_over_the_refusal(xpgrad_device: str) -> None:
    for cls in type(make([1.0], xpgrad_device)).__mro__:
        assert "__dlpack_c_exchange_api__" not in vars(cls)


def test_from_dlpack_takes_arrays_and_tensors() -> None:
    a = np.asarray([1.0, 2.0])
    assert np.shares_memory(xp.from_dlpack(a).array, a)
    assert not np.shares_memory(xp.from_dlpack(a, copy=True).array, a)
    x = xp.tensor([1.0])
    assert np.shares_memory(xp.from_dlpack(x).array, x.array)
    with pytest.raises(TypeError, match="__dlpack__"):
        xp.from_dlpack([1.0])


# -- copies ------------------------------------------------------------------------------------------------------------------------


def test_shallow_copies_keep_history_and_memory(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    y = x * 3
    z = copy.copy(y)
    assert z is not y
    assert grad(xp.sum(z * y), x)[0].tolist() == [18.0, 36.0]
    if xpgrad_device == "numpy":
        assert np.shares_memory(z.detach().numpy(), y.detach().numpy())
    again = copy.copy(x)
    xp.sum(again).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with xp.no_grad():
        assert copy.copy(y).requires_grad
    z[0] = 5.0  # a write to one is a write to the other
    assert (y.tolist(), z.tolist()) == ([5.0, 6.0], [5.0, 6.0])
    y[1:] *= 2.0
    assert [grad(xp.sum(part * part), x, retain_graph=True)[0].tolist() for part in (y, z)] == [[0.0, 144.0]] * 2


def test_parts_of_complex_numbers_are_written() -> None:
    x = make([1.0, 2.0], "numpy", rg=True)
    z = xp.asarray([1.0 + 1.0j, 2.0]) * 1.0
    z.real = x * x
    z.imag = 3.0
    z.imag *= x
    assert z.tolist() == [1.0 + 3.0j, 4.0 + 6.0j]
    assert grad(xp.sum(z.real * z.imag), x)[0].tolist() == [9.0, 36.0]
    y = x * 1.0
    y.real = [5.0, 6.0]
    assert y.tolist() == [5.0, 6.0]
    with pytest.raises(TypeError, match="no imaginary part that can be written"):
        y.imag = 1.0


def test_deep_copies_and_pickles_are_leaves_of_their_own(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True, dtype="float32")
    xp.sum(x * x).backward()
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.tolist() == [1.0, 2.0]
        assert (again.dtype, again.device, again.requires_grad) == (x.dtype, x.device, True)
        assert again.grad.tolist() == [2.0, 4.0]
        with xp.no_grad():
            again.add_(1.0)
        assert x.tolist() == [1.0, 2.0]
        assert again.grad is not x.grad
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    for call in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
            call(x * 2)
    assert not pickle.loads(pickle.dumps(x.detach())).requires_grad


# -- dtypes and shapes -------------------------------------------------------------------------------------------------------------


def test_casting_methods(xpgrad_device: str) -> None:
    x = make([1.5, -2.5], xpgrad_device, rg=True)
    for y, dtype in ((x.float(), "float32"), (x.to("float32"), "float32"), (x.to(xp.complex64), "complex64"),
                     (x.to(dtype=float), "float64"),
                     (x.double(), "float64"), (x.type_as(xp.ones(1, dtype="float32", device=xpgrad_device)), "float32")):  # fmt: skip
        assert y.dtype.name == dtype
        (g,) = grad(xp.sum(xp.real(y)), x)
        assert g.dtype is xp.float64
        assert g.tolist() == [1.0, 1.0]
    assert x.double() is x
    assert x.long().tolist() == [1, -2]
    assert not x.long().requires_grad
    if not xpgrad_device.startswith("strict"):
        assert x.half().dtype is xp.float16
    assert x.is_floating_point()
    assert not x.is_complex()


def test_transposes(xpgrad_device: str) -> None:
    x = make([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], xpgrad_device, rg=True)
    assert x.T.tolist() == x.mT.tolist() == x.t().tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert grad(xp.sum(x.T * make([[1.0, 2.0]], xpgrad_device)), x)[0].tolist() == [[1.0] * 3, [2.0] * 3]
    assert xp.ones((2, 3, 4), device=xpgrad_device).mT.shape == (2, 4, 3)
    for shape in ((2,), (2, 3, 4)):
        with pytest.raises(ValueError, match=r"\.T"):
            xp.ones(shape, device=xpgrad_device).T
    with pytest.raises(ValueError, match="matrix_transpose"):
        xp.ones((2,), device=xpgrad_device).mT


def test_attributes(xpgrad_device: str) -> None:
    x = xp.ones((2, 3), dtype="float32", device=xpgrad_device)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 4, 24)
    assert (x.dim(), x.numel(), x.element_size()) == (2, 6, 4)
    assert x.__array_namespace__() is xp.namespace(xpgrad_device)
    with pytest.raises(ValueError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.1")
    if not x.backend.capabilities.strides:
        with pytest.raises(xp.CapabilityError, match="no strides"):
            x.stride()
    else:
        assert x.stride() == (3, 1)
        assert x.T.stride() == (1, 3)


# -- writing -----------------------------------------------------------------------------------------------------------------------

IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "**=": operator.ipow,
    "add_": lambda x, y: x.add_(y), "sub_": lambda x, y: x.sub_(y), "mul_": lambda x, y: x.mul_(y), "div_": lambda x, y: x.div_(y),
    "pow_": lambda x, y: x.pow_(y), "add_ alpha": lambda x, y: x.add_(y, alpha=2.0), "copy_": lambda x, y: x.copy_(y),
    "fill_": lambda x, y: x.fill_(1.5), "zero_": lambda x, y: x.zero_(),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("operand", ["Tensor", "broadcast", "scalar"])
def test_in_place_arithmetic_agrees_with_pytorch(name: str, operand: str, xpgrad_device: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    call = IN_PLACE[name]
    if operand == "scalar" and name == "copy_":
        pytest.skip("PyTorch copies Tensors only")
    a, b = np.asarray([[1.5, 2.0], [0.5, 3.0]]), np.asarray([[0.5, 1.5], [2.0, 1.0]])[: 1 if operand == "broadcast" else 2]
    results = []
    for lib, options in ((xp, {"device": xpgrad_device}), (torch, {})):
        x, y = (lib.tensor(v, requires_grad=True, **options) for v in (a, b))
        z = x * 1.0
        before = z._version
        out = call(z, 2.5 if operand == "scalar" else y)
        assert out is z
        assert z._version == before + 1
        leaves = [x, y]
        found = lib.autograd.grad((z * z).sum(), leaves, allow_unused=True)
        results.append([values(z), *(np.zeros(v.shape) if g is None else values(g) for v, g in zip((a, b), found))])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_without_a_graph(name: str, xpgrad_device: str) -> None:
    x, y = make([1.5, 2.0], xpgrad_device), make([0.5, 3.0], xpgrad_device)
    twin = np.asarray([1.5, 2.0])
    alias = x.detach()
    expected = {
        "add_ alpha": lambda: twin + 6.0 * np.asarray([0.5, 3.0]) / 3.0,
        "copy_": lambda: values(y),
        "fill_": lambda: [1.5, 1.5],
        "zero_": lambda: [0, 0],
    }
    operators = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
                 "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow}  # fmt: skip
    want = expected[name]() if name in expected else operators[name.rstrip("=_")](twin, values(y))
    if name == "add_ alpha":
        want = twin + 2.0 * values(y)
    if xpgrad_device == "numpy+readonly":
        del alias  # with immutable arrays the other one does not see the write
    assert IN_PLACE[name](x, y) is x
    np.testing.assert_allclose(values(x), want)
    assert x._version == 1
    if xpgrad_device != "numpy+readonly":
        np.testing.assert_allclose(values(alias), want)
        assert alias._version == 1


def test_in_place_refusals(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x += 1
    with xp.no_grad():
        x += 1
    assert x.tolist() == [2.0, 3.0]
    y = make([1.0, 2.0], xpgrad_device)
    with pytest.raises((RuntimeError, ValueError), match="shape"):
        y += xp.ones((3, 2), device=xpgrad_device)
    with pytest.raises(RuntimeError, match="cast"):
        y += 1j
    n = make([1, 2], xpgrad_device)
    with pytest.raises(RuntimeError, match="cast"):
        n += 0.5
    n += 3
    assert n.tolist() == [4, 5]
    with pytest.raises(TypeError, match=r"xpgrad\.asarray"):
        y += [1.0, 1.0]
    assert y.tolist() == [1.0, 2.0]


def test_saved_values_that_were_overwritten_are_noticed(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    y = x * 1.0
    z = y * y
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(z).backward()
    w = xp.exp(x)
    w.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(w).backward()
    u = make([1.0, 2.0], xpgrad_device, rg=True)
    v = u * make([3.0, 4.0], xpgrad_device)
    v += 1
    xp.sum(v).backward()
    assert u.grad.tolist() == [3.0, 4.0]
    c = make([3.0, 4.0], xpgrad_device)
    d = u * c
    c[0] = 5.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(d).backward()


KEYS: dict[str, Any] = {
    "integer": 1, "slice": slice(1, None), "all": ..., "pair": (0, 2), "column": (slice(None), 1),
    "new axis": (None, 0), "step": (slice(None, None, 2),),
    "backwards": (slice(None, None, -1), slice(0, 2)),
    "array": np.asarray([1, 0]), "duplicates": np.asarray([1, 1, 0]), "arrays": (np.asarray([0, 1, 0]), np.asarray([2, 2, 2])),
    "mask": np.asarray([[True, False, True], [False, True, False]]), "row mask": np.asarray([False, True]),
    "mixed": (0, np.asarray([2, 0])),
    "nothing": np.asarray([False, False]), "array and slice": (slice(None), np.asarray([0, 0])),
}  # fmt: skip


def _key(key: Any, wrap: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(key, tuple):
        return tuple(_key(k, wrap) for k in key)
    return wrap(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("kind", ["Tensor", "0-d", "scalar"])
@pytest.mark.parametrize("name", KEYS)
def test_setitem_agrees_with_pytorch(name: str, kind: str, xpgrad_device: str) -> None:
    """The last of several duplicates in a key is written and gets the gradient; PyTorch gives it to all, and has no negative steps."""
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    if name in ("backwards", "duplicates", "arrays", "array and slice"):
        if kind == "Tensor":
            _check_setitem_by_numpy(KEYS[name], xpgrad_device)
        return
    a = numbers((2, 3))
    part = a[KEYS[name]].shape
    b = numbers(part if kind == "Tensor" else (), 3.0)
    results = []
    for lib, options in ((xp, {"device": xpgrad_device}), (torch, {})):
        x, y = (lib.tensor(v, requires_grad=True, **options) for v in (a, b))
        z = x * 1.0
        z[_key(KEYS[name], lambda k: lib.tensor(k, **options))] = 0.5 if kind == "scalar" else y  # noqa: B023
        assert z._version == 1
        found = lib.autograd.grad((z * z).sum(), [x, y], allow_unused=True)
        results.append([values(z), *(np.zeros(v.shape) if g is None else values(g) for v, g in zip((a, b), found))])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def _check_setitem_by_numpy(key: Any, device: str) -> None:
    a = numbers((2, 3))
    b = numbers(a[key].shape, 3.0)
    x, y = make(a, device, rg=True), make(b, device, rg=True)
    z = x * 1.0
    z[_key(key, lambda k: xp.asarray(k, device=device))] = y
    want = a.copy()
    want[key] = b
    np.testing.assert_array_equal(values(z), want)
    seed = numbers((2, 3), 7.0)
    gx, gy = grad(z, [x, y], xp.asarray(seed, device=device))
    kept = seed.copy()
    kept[key] = 0
    np.testing.assert_array_equal(values(gx), kept)
    places = np.full((2, 3), -1)
    places[key] = np.arange(b.size).reshape(b.shape)
    won = places[key] == np.arange(b.size).reshape(b.shape)
    np.testing.assert_array_equal(values(gy), np.where(won, seed[key], 0))


def test_setitem_gradients_are_differentiable(xpgrad_device: str) -> None:
    from support.central_differences import check

    def overwrite(x: Any, v: Any) -> Any:
        y = x * x
        y[0] = v * v
        y[xp.asarray([1, 1], device=x.device), 0] = v
        return y * x

    check(overwrite, [numbers((2, 2)), numbers((2,), 4.0)], xpgrad_device)


def test_setitem_on_constants_and_without_recording(xpgrad_device: str) -> None:
    for key in KEYS.values():
        x, a = make(numbers((2, 3)), xpgrad_device), numbers((2, 3))
        alias = None if xpgrad_device == "numpy+readonly" else x.detach()  # immutable arrays share no writes
        x[_key(key, lambda k: xp.asarray(k, device=xpgrad_device))] = 2
        a[key] = 2
        np.testing.assert_array_equal(values(x), a)
        if alias is not None:
            np.testing.assert_array_equal(values(alias), a)
        assert x._version == 1
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    with xp.no_grad():
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert x.is_leaf
    assert grad(xp.sum(x * x), x)[0].tolist() == [10.0, 4.0]


def test_setitem_refusals(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device)
    for value in (1j, xp.ones(2, dtype="complex64", device=xpgrad_device)):
        with pytest.raises(TypeError, match="does not fit"):
            x[:] = value
    with pytest.raises(TypeError, match=r"xpgrad\.asarray"):
        x[:] = {1.0, 2.0}
    with pytest.raises((ValueError, RuntimeError)):
        x[:] = xp.ones(3, device=xpgrad_device)
    with pytest.raises(IndexError):
        x[5] = 1.0
    leaf = make([1.0], xpgrad_device, rg=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf[0] = 1.0
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


@given(st.lists(st.sampled_from(["+=", "*=", "set", "square", "detach"]), max_size=6), st.integers(0, 9))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_drawn_programs_of_writes_agree_with_pytorch(xpgrad_device: str, program: list[str], start: int) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    results = []
    for lib, options in ((xp, {"device": xpgrad_device}), (torch, {})):
        x = lib.tensor(numbers((3,), float(start)), requires_grad=True, **options)
        y = x * 2.0
        for step in program:
            if step == "+=":
                y += x
            elif step == "*=":
                y *= 0.5
            elif step == "set":
                y[1:] = x[:-1] * 3.0
            elif step == "square":
                y = y * x
            else:
                y = y + x.detach()
        found = lib.autograd.grad((y * y).sum(), x, allow_unused=True)[0]
        results.append((values(y), np.zeros(3) if found is None else values(found), y._version))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# -- inference mode ----------------------------------------------------------------------------------------------------------------


def test_inference_tensors(xpgrad_device: str) -> None:
    x = make([1.0, 2.0], xpgrad_device, rg=True)
    with xp.inference_mode():
        y = x * 2
        y += 1
        y[0] = 9.0
        assert y.is_inference()
        assert y.tolist() == [9.0, 5.0]
    assert not y.requires_grad
    assert "Tensor" in type(y).__name__
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        y += 1
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        y[0] = 1.0
    with pytest.raises(RuntimeError, match="do not track version counter"):
        y._version
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        x * y
    assert grad(xp.sum(x + y), x)[0].tolist() == [1.0, 1.0]
    assert grad(xp.sum(x * y.clone()), x)[0].tolist() == [9.0, 5.0]
    assert repr(y).startswith("tensor(")
    assert len(y) == 2
    assert y[0].item() == 9.0


# -- `x.data = value` -------------------------------------------------------------------------------------------------------------


def test_data_can_be_assigned(xpgrad_device: str) -> None:
    """As optimisers write it, and with the same memory from then on."""

    def make(values: list[float], requires_grad: bool = False) -> Any:
        return xp.tensor(values, dtype=xp.float64, requires_grad=requires_grad, device=xpgrad_device)

    p = make([1.0, 2.0], True)
    xp.sum(p * p).backward()
    p.data -= 0.25 * p.grad
    assert p.tolist() == [0.5, 1.0]
    assert p.is_leaf
    b, t = make([1.0, 2.0]), make([5.0, 6.0])
    b.data = t
    assert (b.tolist(), b._version) == ([5.0, 6.0], 0)
    t.add_(1.0)
    assert b.tolist() == [6.0, 7.0]
    b.add_(1.0)
    assert t.tolist() == [7.0, 8.0]
    x = make([1.0, 2.0], True)
    loss = xp.sum(x * x)
    x.data = make([3.0, 4.0])
    loss.backward()  # of the values that were saved
    assert x.grad.tolist() == [2.0, 4.0]
    xp.sum(x * x).backward()
    assert x.grad.tolist() == [8.0, 12.0]
    assert xp.autograd.grad(xp.sum(x * 3.0), x)[0].tolist() == [3.0, 3.0]


def test_data_refuses_what_does_not_fit() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for value in (xp.ones(3), xp.ones(2, dtype=xp.float32)):
        with pytest.raises(RuntimeError, match="incompatible with this Tensor"):
            x.data = value
    with pytest.raises(TypeError):
        x.data = [1.0, 2.0]  # type: ignore[assignment]
    view = x[:1]
    with pytest.raises(RuntimeError, match="shares its memory"):
        x.data = xp.ones(2)
    with pytest.raises(RuntimeError, match="shares its memory"):
        view.data = xp.ones(1)
    assert (x.tolist(), view.tolist()) == ([1.0, 2.0], [1.0])


@pytest.mark.parametrize("make", [xp.asarray, xp.tensor])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int8", "int32", "int64", "uint8", "bool"])
def test_scalars_of_numpy_in_lists_keep_their_dtype(dtype: str, make: Any, xpgrad_device: str) -> None:
    one = np.ones((), dtype)[()]
    default = {kind: xp.asarray(x, device=xpgrad_device).dtype.name for kind, x in (("f", 1.0), ("c", 1j), ("i", 1))}

    def wanted(name: str) -> str:
        """Return a dtype, or the default one of its kind if the device lacks it."""
        has = xp.__array_namespace_info__().dtypes(device=xpgrad_device)
        return name if name in has else default[np.dtype(name).kind]

    for data in ([one], [[one], [one]], (one, one)):
        assert make(data, device=xpgrad_device).dtype.name == wanted(dtype)
    if dtype != "bool":  # as in NumPy, Python's floats are float64
        mixed = make([one, 1.0], device=xpgrad_device)
        assert mixed.dtype.name == wanted("complex128" if one.dtype.kind == "c" else "float64")
    assert make([], device=xpgrad_device).dtype is xp.ones(1, device=xpgrad_device).dtype


def test_a_tolerance_may_be_the_only_tensor() -> None:
    ones = np.ones(2)
    assert np.allclose(ones, 1.0005, atol=xp.asarray(1e-3))
    assert not np.allclose(ones, 1.0005, rtol=xp.asarray(1e-4))
    np.testing.assert_array_equal(np.isclose(ones, [1.0, 1.0005], rtol=0.0, atol=xp.asarray(1e-4)).numpy(), [True, False])
    np.testing.assert_allclose(ones, 1.0005 * ones, rtol=xp.asarray(1e-3))


def test_whether_memory_is_shared(xpgrad_device: str) -> None:
    x = xp.ones((2, 3), device=xpgrad_device, requires_grad=True)
    for y, expected in ((x[0], True), (x.detach(), True), (x * 1, False), (np.ones(3), False)):
        assert np.shares_memory(x, y) is np.shares_memory(y, x) is np.may_share_memory(x, y) is expected
    mine = np.ones(3)
    assert np.shares_memory(xp.asarray(mine), mine)


def test_a_mask_is_filled_from_the_array_itself(xpgrad_device: str) -> None:
    """Law: the values are those before the write, whether or not it is recorded."""
    for requires_grad in (False, True):
        x = xp.tensor([1.0, 2.0, 3.0, 4.0], device=xpgrad_device, requires_grad=requires_grad) * 1.0
        mask = xp.asarray([False, True, True, False], device=xpgrad_device)
        x[mask] = x[2:0:-1]
        assert x.tolist() == [1.0, 3.0, 2.0, 4.0]


def test_a_write_of_a_part_of_itself(xpgrad_device: str) -> None:
    """The value is read before anything is overwritten; not every library does that by itself."""
    x = xp.tensor(np.arange(5.0), requires_grad=True, device=xpgrad_device)
    y = x * 1.0
    y[1:] = y[:-1]
    np.testing.assert_array_equal(y.detach().numpy(), [0.0, 0.0, 1.0, 2.0, 3.0])
    (y * xp.asarray([1.0, 2.0, 3.0, 4.0, 5.0], device=xpgrad_device)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0, 4.0, 5.0, 0.0])


VIEWS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda y: y[1:], "a row": lambda y: y[2], "a row of rows": lambda y: y[1:][0], "every other row": lambda y: y[::2],
    "columns of rows": lambda y: y[1:3][:, ::2], "an element of a row": lambda y: y[1][2], "transposed rows": lambda y: y[1:].T,
    "rows of transposed": lambda y: y.T[1:], "a row of transposed rows": lambda y: y[1:].T[0], "with an axis": lambda y: y[1:, None][0],
}  # fmt: skip


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("first", VIEWS)
@pytest.mark.parametrize("second", VIEWS)
def test_a_write_through_views_changes_the_gradient_of_their_part_only(first: str, second: str, xpgrad_device: str) -> None:
    weights = np.arange(1.0, 17.0).reshape(4, 4)
    x = xp.tensor(weights, requires_grad=True, device=xpgrad_device)
    y, factors = x * 1.0, np.ones((4, 4))
    for name, factor in ((first, 3.0), (second, 5.0)):
        view, part = VIEWS[name](y), VIEWS[name](factors)
        view *= factor
        if isinstance(part, np.ndarray):
            part *= factor
        else:  # NumPy has no view of one element
            factors[1, 2] *= factor
    np.testing.assert_array_equal(y.detach().numpy(), weights * factors)
    (y * xp.asarray(weights, device=xpgrad_device)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), weights * factors)
