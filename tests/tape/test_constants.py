"""Laws: in every public function, a raw array among Tensors is a constant: it acts as a Tensor without history would.

In each call of the table of good calls, each Tensor alone and all of them together are replaced by their raw arrays and by NumPy arrays.
Results, gradients of the other arguments, tangents and batches must be those of the call with Tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from rules.test_bad_input import GOOD, MODULES, resolve
from xpgrad._operations import coerce
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES
from xpgrad.autograd import grad
from xpgrad.errors import DeviceMismatchError
from xpgrad.utils.checkpoint import checkpoint

#: Methods that take further operands.
METHODS = (
    "add", "sub", "mul", "div", "pow", "dot", "matmul", "mm", "where", "clamp", "clip", "expand_as", "view_as", "type_as", "add_", "sub_",
    "mul_", "div_", "pow_", "copy_", "masked_fill_", "index_add_",
)  # fmt: skip
#: Functions that convert anything to a Tensor, that leave values unset, or that are about dtypes.
NOT_OPERANDS = {"asarray", "from_dlpack", "tensor", "empty_like", "can_cast", "isdtype", "finfo", "iinfo", "result_type"}


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _leaves(part)
    else:
        yield tree


def _map_tree(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map_tree(part, function) for part in tree)
    return function(tree)


def _tensors(name: str) -> list[xp.Tensor]:
    return [x for x in _leaves(GOOD[name]().args) if isinstance(x, xp.Tensor)]


CALLS = sorted(
    name
    for name in {*RULES, *NONDIFFERENTIABLE, *COMPOSITE} & set(GOOD)
    if name not in NOT_OPERANDS and _tensors(name)
) + [f"Tensor.{name}" for name in METHODS]  # fmt: skip
#: Calls with more than one Tensor, including the Tensor of a method.
SEVERAL = [name for name in CALLS if len(_tensors(name)) > 1]


def raw(x: xp.Tensor) -> Any:
    return x.detach().array


def of_numpy(x: xp.Tensor) -> Any:
    return np.asarray(x.detach().numpy())


def _values(out: Any) -> list[Any]:
    found = [x for x in _leaves(out) if not isinstance(x, str)]
    assert all(isinstance(x, (xp.Tensor, bool)) for x in found)
    return [x.detach().numpy() if isinstance(x, xp.Tensor) else x for x in found]


def _assert_same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            assert a is b
        else:
            assert np.asarray(a).dtype == np.asarray(b).dtype
            assert np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")


def _gradients(out: Any, tensors: list[Any]) -> list[Any]:
    roots = [x for x in _leaves(out) if isinstance(x, xp.Tensor) and x.requires_grad]
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    if not roots or not wanted:
        return []
    found = grad(roots, wanted, [xp.ones_like(r) for r in roots], allow_unused=True)
    return [None if g is None else g.numpy() for g in found]


def _run(name: str, arguments: Any, options: Any) -> Any:
    with np.errstate(all="ignore"):
        return resolve(name)(*arguments, **options)


def _replace_tensors(name: str, places: set[int], convert: Callable[[Any], Any]) -> tuple[Any, Any, list[Any], Any]:
    """Return a good call's arguments with detached Tensors in `places`, the same with arrays there, the other Tensors, and the options."""
    arguments, options = GOOD[name]()
    count = iter(range(100))
    plain = _map_tree(arguments, lambda x: (x.detach() if next(count) in places else x) if isinstance(x, xp.Tensor) else x)
    count = iter(range(100))
    arrays = _map_tree(plain, lambda x: (convert(x) if next(count) in places else x) if isinstance(x, xp.Tensor) else x)
    kept = [x for x in _leaves(arrays) if isinstance(x, xp.Tensor)]
    return plain, arrays, kept, options


def _choices(name: str) -> list[set[int]]:
    """Return the sets of Tensors to replace: each alone, and all of a function's. A method's own Tensor is not replaced."""
    count = len(_tensors(name))
    if name.startswith("Tensor."):
        return [{i} for i in range(1, count)]
    return [{i} for i in range(count)] + ([set(range(count))] if count > 1 else [])


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("convert", [raw, of_numpy])
@pytest.mark.parametrize("name", CALLS)
def test_an_array_is_what_a_constant_would_be(name: str, convert: Callable[[Any], Any], xpgrad_device: str) -> None:
    with xp.default_device(xpgrad_device):
        for mode in (xp.enable_grad, xp.no_grad, xp.inference_mode):
            for places in _choices(name):
                plain, arrays, kept, options = _replace_tensors(name, places, convert)
                if mode is xp.inference_mode and name.endswith("_"):
                    continue  # the method writes into a normal Tensor
                with mode():
                    expected = _run(name, plain, options)
                    values = _values(expected)  # before the same Tensor is written to again
                    slopes = _gradients(expected, kept) if mode is xp.enable_grad and not name.endswith("_") else []
                    if name.endswith("_"):
                        plain, arrays, kept, options = _replace_tensors(name, places, convert)
                    found = _run(name, arrays, options)
                _assert_same(_values(found), values)
                if mode is xp.enable_grad and not name.endswith("_"):
                    _assert_same(_gradients(found, kept), slopes)
                for x in _leaves(found):
                    assert not isinstance(x, xp.Tensor) or str(x.device) == xpgrad_device


@pytest.mark.parametrize("name", SEVERAL)
def test_an_array_has_neither_a_tangent_nor_a_batch(name: str, xpgrad_device: str) -> None:
    if name.endswith("_"):
        pytest.skip("a transform's argument is not written to")
    with xp.default_device(xpgrad_device):
        for places in _choices(name):
            plain, arrays, kept, options = _replace_tensors(name, places, raw)
            kept = [x.detach() for x in kept]
            if not kept or not all(x.dtype.differentiable for x in kept):
                continue

            def call(*given: Any, template: Any, options: Any = options) -> Any:
                following = iter(given)
                inside = _map_tree(template, lambda x: next(following) if isinstance(x, xp.Tensor) and x.requires_grad else x)
                out = _run(name, inside, options)
                return [x for x in _leaves(out) if isinstance(x, xp.Tensor)]

            points, ones = tuple(kept), tuple(xp.ones_like(x) for x in kept)
            batches = tuple(xp.stack([x, x / 2]) for x in kept)
            for transformed in (
                lambda f, points=points, ones=ones: xp.func.jvp(f, points, ones),
                lambda f, batches=batches: xp.func.vmap(f)(*batches),
            ):
                _assert_same(*(_outcome(lambda t=t: transformed(lambda *given: call(*given, template=t))) for t in (arrays, plain)))  # noqa: B023


def _outcome(call: Callable[[], Any]) -> list[Any]:
    """Return the values, or the name of the error that the call raises in a batch or in forward mode."""
    try:
        return _values(call())
    except (RuntimeError, TypeError, ValueError, NotImplementedError, xp.XpgradError) as exc:
        return [np.asarray(type(exc).__name__)]


# -- operators -------------------------------------------------------------------------------------------------------------------

OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge", "matmul"]
INTEGERS = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("convert", [raw, of_numpy])
@pytest.mark.parametrize("name", [*OPERATORS, *INTEGERS])
def test_operators_take_arrays_on_both_sides(name: str, convert: Callable[[Any], Any], xpgrad_device: str) -> None:
    op = getattr(operator, name)
    values = [[1, 2], [3, 1]] if name in INTEGERS else [[1.5, 2.0], [3.0, 1.25]]
    x, y = (xp.asarray(values, device=xpgrad_device) + k for k in (0, 1))
    if name not in INTEGERS:
        x.requires_grad_()
    for left, right, constants in ((x, y, (x, convert(y))), (y, x, (convert(y), x))):
        if constants[1] is x and not _answers(constants[0]):
            continue
        expected, found = op(left, right), op(*constants)
        assert isinstance(found, xp.Tensor)
        _assert_same(_values(found), _values(expected))
        _assert_same(_gradients(found, [x]), _gradients(expected, [x]))


def _answers(c: Any) -> bool:
    """Return whether an array leaves an operation to an unknown operand; those of array-api-strict and MLX raise immediately."""
    try:
        return c + _Answer() == "mine"
    except (TypeError, ValueError):
        return False


class _Answer:
    """An operand that no library knows."""

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "mine"


IN_PLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"]


@pytest.mark.parametrize("convert", [raw, of_numpy])
@pytest.mark.parametrize("name", IN_PLACE)
def test_arrays_are_written_into_tensors(name: str, convert: Callable[[Any], Any], xpgrad_device: str) -> None:
    op = getattr(operator, name)
    c = xp.asarray([[1.5, 2.0], [3.0, 1.25]], device=xpgrad_device)
    for recorded in (False, True):
        found = []
        for operand in (c, convert(c)):
            leaf = xp.asarray([[2.0, 0.5], [1.0, 3.0]], device=xpgrad_device, copy=True)
            leaf = leaf.requires_grad_() if recorded else leaf
            x = leaf * 1
            before = x
            x = op(x, operand)
            assert x is before
            found.append([*_values(x), *_gradients(x, [leaf])])
        _assert_same(found[1], found[0])


def test_items_are_written_and_read_with_arrays(xpgrad_device: str) -> None:
    key, mask, value = np.asarray([2, 0]), np.asarray([True, False, True]), np.asarray([5.0, 7.0])
    for part in (key, mask, slice(0, 2), xp.asarray(key, device=xpgrad_device)):
        leaf = xp.asarray([1.0, 2.0, 3.0], device=xpgrad_device).requires_grad_()
        x, y = leaf * 2, leaf * 2
        x[part] = value
        y[part] = xp.asarray(value, device=xpgrad_device)
        _assert_same([*_values(x), *_gradients(x, [leaf])], [*_values(y), *_gradients(y, [leaf])])
    x = xp.asarray([1.0, 2.0, 3.0], device=xpgrad_device)
    assert x[key].tolist() == [3.0, 1.0]
    assert x[mask].tolist() == [1.0, 3.0]


def test_the_own_memory_of_what_is_written_to_is_read_first() -> None:
    leaf = xp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    x = leaf * 1
    x *= x.detach().array  # d/dx of x * c, with the original c
    assert grad(xp.sum(x), leaf)[0].tolist() == [1.0, 2.0, 3.0]
    y = xp.asarray([1.0, 2.0, 3.0])
    y[1:] = y.array[:-1]
    assert y.tolist() == [1.0, 1.0, 2.0]


# -- what a constant is ------------------------------------------------------------------------------------------------------------


def test_a_constant_shares_the_memory_of_its_array_and_later_writes_are_not_seen() -> None:
    leaf, c = xp.asarray([1.0, 2.0]).requires_grad_(), np.asarray([3.0, 4.0])
    y = xp.sum(leaf * c)
    c[:] = [30.0, 40.0]
    y.backward()  # an array has no version that shows the write: the gradient is that of the new values
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [30.0, 40.0]
    assert np.shares_memory(xp.reshape(c, (2, 1)).array, c)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
def test_an_array_has_a_dtype_of_its_own_and_a_numpy_scalar_is_weak(dtype: str, xpgrad_device: str) -> None:
    x = xp.ones(2, dtype="float32", device=xpgrad_device)
    a = np.ones(2, dtype=dtype)
    assert (x + a).dtype is (x + xp.asarray(a, device=xpgrad_device)).dtype
    assert (a + x).dtype is (x + a).dtype is xp.result_type(x, a)
    assert (x + a[0]).dtype is (x + a[0].item()).dtype
    assert xp.can_cast(a, x.dtype) is xp.can_cast(getattr(xp, dtype), x.dtype)


def test_an_array_of_no_axes_goes_anywhere_as_a_tensor_of_the_host_does(xpgrad_device: str) -> None:
    for dtype in ("float32", "float64"):
        x, c = xp.ones(2, dtype="float32", device=xpgrad_device), np.asarray(2.0, dtype=dtype)
        home = xpgrad_device if isinstance(c, x.backend.array_types()) else "numpy"
        assert (x * c).dtype is (x * xp.asarray(c, device=home)).dtype
        assert (c * x).tolist() == [2.0, 2.0]
    near = xp.tensor(2.0, device="numpy")  # it moves to the device of `x`, and so does the condition
    found = xp.where(np.asarray([True, False]), near, x)
    assert found.tolist() == [2.0, 1.0]
    assert str(found.device) == xpgrad_device


ALONE: list[tuple[Callable[[], Any], Any]] = [
    (lambda: xp.sin(0.0), 0.0), (lambda: xp.add(1.0, 2), 3.0), (lambda: xp.add(1, 2), 3), (lambda: xp.add(True, 2), 3),
    (lambda: xp.logical_and(True, False), False), (lambda: xp.multiply(2, 1.5), 3.0), (lambda: xp.maximum(1, 2.5), 2.5),
    (lambda: xp.clip(1.5, 0, 1), 1.0), (lambda: xp.real(1 + 2j), 1.0), (lambda: xp.imag(1 + 2j), 2.0),
    (lambda: xp.where(True, 1.0, 0), 1.0), (lambda: xp.where(np.asarray([True, False]), 1.0, 0), [1.0, 0.0]),
    (lambda: xp.where(xp.asarray([True, False]), 2, 0), [2, 0]), (lambda: xp.equal(1, 1.0), True), (lambda: xp.isclose(1.0, 1), True),
    (lambda: xp.sin(np.zeros(2)), [0.0, 0.0]), (lambda: xp.sum(np.ones(2)), 2.0), (lambda: xp.add(np.ones(2), 1), [2.0, 2.0]),
    (lambda: xp.concat([np.ones(1), np.zeros(1)]), [1.0, 0.0]), (lambda: xp.full(2, np.asarray(3)), [3, 3]),
    (lambda: xp.diff(np.asarray([3.0]), prepend=np.asarray([1.0]), append=np.asarray([7.0])), [2.0, 4.0]),
    (lambda: xp.bitwise_and(3, 5), 1), (lambda: xp.pow(2, 3), 8),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(ALONE)))
def test_numbers_and_arrays_alone_go_to_the_default_device(k: int, xpgrad_device: str) -> None:
    call, expected = ALONE[k]
    with xp.default_device(xpgrad_device):
        out = call()
        assert isinstance(out, xp.Tensor)
        assert str(out.device) == xpgrad_device
        assert out.tolist() == expected
        assert out.dtype is xp.asarray(expected).dtype
        assert not out.requires_grad


# -- what is refused ---------------------------------------------------------------------------------------------------------------


def _assert_refused(call: Callable[[], Any], error: type[Exception], *phrases: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert all(phrase in str(caught.value) for phrase in phrases), caught.value


CALLS_OF_TWO: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.matmul, operator.eq, operator.iadd, xp.multiply, xp.matmul, lambda x, y: xp.where(x > 0, x, y),
    lambda x, y: xp.concat([x, y]), lambda x, y: xp.stack([x, y]), lambda x, y: xp.tensordot(x, y, 1), lambda x, y: xp.einsum("i,i", x, y),
    lambda x, y: xp.clip(x, y, None), lambda x, y: xp.asarray([x, y]), lambda x, y: x.add(y, alpha=2),
    lambda x, y: x.__setitem__(slice(None), y), lambda x, y: xp.linalg.outer(x, y), lambda x, y: xp.searchsorted(x, y),
    lambda x, y: xp.isclose(x, y), lambda x, y: xp.diff(x, append=y), lambda x, y: xp.broadcast_arrays(x, y),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CALLS_OF_TWO)))
def test_arrays_that_are_elsewhere_are_refused(k: int) -> None:
    call = CALLS_OF_TWO[k]
    strict = pytest.importorskip("array_api_strict")
    pytest.importorskip("xpgrad_simstream")
    x, far = xp.ones(2), xp.ones(2, device="simstream")
    _assert_refused(lambda: call(far, np.ones(2)), DeviceMismatchError, "simstream", "numpy")
    _assert_refused(lambda: call(far, xp.ones(2, device="simstream:1").array), DeviceMismatchError, "simstream", "simstream:1")
    _assert_refused(lambda: call(x, strict.ones(2)), TypeError, "numpy", "array_api_strict", "another library", "xpgrad.asarray")
    _assert_refused(lambda: call(x, np.ma.masked_array([1.0, 2.0], [True, False])), TypeError, "masked array", "x.filled(value)")
    for dtype in (object, "U1", "M8[D]"):
        _assert_refused(lambda d=dtype: call(x, np.zeros(2, dtype=d)), TypeError, "cannot hold")
    assert x.tolist() == [1.0, 1.0]


class Strange:
    """An array of an unknown library."""

    ndim, shape, dtype = 1, (2,), np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(2)


@pytest.mark.parametrize("k", range(len(CALLS_OF_TWO)))
def test_arrays_of_no_library_are_refused(k: int) -> None:
    call = CALLS_OF_TWO[k]
    _assert_refused(lambda: call(xp.ones(2), Strange()), TypeError, "Strange")


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", [n for n in CALLS if not n.startswith("Tensor.")])
def test_a_list_is_not_a_tensor(name: str) -> None:
    arguments, options = GOOD[name]()
    if not isinstance(arguments[0], xp.Tensor):
        return
    with pytest.raises((TypeError, ValueError)):
        resolve(name)(arguments[0].detach().tolist(), *arguments[1:], **options)


def test_a_matrix_of_numpy_is_an_array_like_any_other() -> None:
    with pytest.warns(PendingDeprecationWarning):
        m = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    ones = xp.ones((2, 2))
    assert (ones * m).tolist() == (m * ones).tolist() == (xp.asarray(m) * ones).tolist() == m.tolist()
    assert (ones @ m).tolist() == [[4.0, 6.0], [4.0, 6.0]]


STAYS_STRICT: list[Callable[[Any, Any], Any]] = [
    lambda x, a: xp.sum(x).backward(gradient=a), lambda x, a: grad(x * 1, x, a), lambda x, a: grad(xp.sum(x), a),
    lambda x, a: xp.autograd.backward(a), lambda x, a: setattr(x, "grad", a), lambda x, a: xp.autograd.graph.get_gradient_edge(a),
    lambda x, a: ((y := x * 1).register_hook(lambda g: a), xp.sum(y).backward()),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(STAYS_STRICT)))
def test_the_entries_of_autograd_take_tensors_only(k: int) -> None:
    x = xp.asarray([1.0, 2.0]).requires_grad_()
    with pytest.raises((TypeError, RuntimeError)):
        STAYS_STRICT[k](x, np.ones(2))
    assert x.grad is None


# -- lists of Tensors ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [xp.asarray, xp.tensor])
def test_tensors_in_lists_are_stacked(make: Callable[..., Any], xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0, 3.0], device=xpgrad_device).requires_grad_()
    a, b, c = x[0], x[1], x[2]
    for data, expected, slopes in (
        ([a, b, 5.0], [1.0, 2.0, 5.0], [1.0, 1.0, 0.0]),
        ([[a, 2], (3.5, c * c)], [[1.0, 2.0], [3.5, 9.0]], [1.0, 0.0, 6.0]),
        ([x, x * 2], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], [3.0, 3.0, 3.0]),
        ([x, [4, 5.0, a]], [[1.0, 2.0, 3.0], [4.0, 5.0, 1.0]], [2.0, 1.0, 1.0]),
        ([x, np.asarray([7.0, 8.0, 9.0])], [[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]], [1.0, 1.0, 1.0]),
        ([[x], [x]], [[[1.0, 2.0, 3.0]]] * 2, [2.0, 2.0, 2.0]),
    ):  # fmt: skip
        out = make(data)
        assert out.tolist() == expected
        assert str(out.device) == xpgrad_device
        assert grad(xp.sum(out), x)[0].tolist() == slopes
        assert not make(data, dtype="float32").dtype.name.endswith("64")
        assert make([t.detach() if isinstance(t, xp.Tensor) else t for t in data]).requires_grad is (a in _by_identity(data))


def _by_identity(data: Any) -> Any:
    """Return a container that contains everything if a nested list inside `data` still holds Tensors, and nothing otherwise."""

    class Members:
        def __contains__(self, _: Any) -> bool:
            inner = (x for part in data if isinstance(part, (list, tuple)) for x in _leaves(part))
            return any(isinstance(x, xp.Tensor) for x in inner)

    return Members()


def test_what_lists_of_tensors_become(xpgrad_device: str) -> None:
    half = xp.ones(2, dtype="float32", device=xpgrad_device)
    whole = xp.asarray([1, 2], dtype="int32", device=xpgrad_device)
    assert xp.asarray([half, whole]).dtype is xp.float32
    assert xp.asarray([whole, [1, 2.5]]).dtype.is_floating_point
    assert xp.asarray([[half[0], 1.5], half]).dtype is xp.float32
    assert xp.tensor([half], requires_grad=True).is_leaf
    out = xp.func.vmap(lambda row: xp.asarray([row[0], 2.0, row[1]]))(xp.asarray([[1.0, 3.0], [4.0, 5.0]], device=xpgrad_device))
    assert out.tolist() == [[1.0, 2.0, 3.0], [4.0, 2.0, 5.0]]
    slopes = xp.func.jvp(lambda x: xp.asarray([x * x, 1.0]), (xp.asarray(3.0, device=xpgrad_device),), (1.0,))[1]
    assert slopes.tolist() == [6.0, 0.0]
    for data, error in (
        ([half, half[0]], ValueError),
        ([[half[0]], []], ValueError),
        ([half[0], "a"], TypeError),
        ([half, None], TypeError),
    ):
        with pytest.raises(error, match="cannot make a Tensor from list"):
            xp.asarray(data)
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([half], copy=False)


def test_a_list_of_tensors_of_several_devices() -> None:
    pytest.importorskip("array_api_strict")
    x, y = xp.ones(2), xp.ones(2, device="strict")
    with pytest.raises(DeviceMismatchError):
        xp.asarray([x, y])
    assert str(xp.asarray([x, y], device="strict").device) == str(y.device)


# -- transforms ------------------------------------------------------------------------------------------------------------------------


def cubes(x: Any) -> Any:
    return xp.sum(x**3)


TRANSFORMED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "grad": (lambda x: xp.func.grad(cubes)(x), [3.0, 12.0]),
    "grad_and_value": (lambda x: xp.func.grad_and_value(cubes)(x), ([3.0, 12.0], 9.0)),
    "grad of a tree": (lambda x: xp.func.grad(lambda t: cubes(t["a"][0]))({"a": (x,)})["a"][0], [3.0, 12.0]),
    "vjp": (lambda x: xp.func.vjp(lambda v: v**3, x)[1](x)[0], [3.0, 24.0]),
    "jvp": (lambda x: xp.func.jvp(lambda v: v**3, (x,), (x,)), ([1.0, 8.0], [3.0, 24.0])),
    "linearize": (lambda x: xp.func.linearize(lambda v: v**3, x)[1](x), [3.0, 24.0]),
    "jacrev": (lambda x: xp.func.jacrev(lambda v: v**3)(x), [[3.0, 0.0], [0.0, 12.0]]),
    "jacfwd": (lambda x: xp.func.jacfwd(lambda v: v**3)(x), [[3.0, 0.0], [0.0, 12.0]]),
    "hessian": (lambda x: xp.func.hessian(cubes)(x), [[6.0, 0.0], [0.0, 12.0]]),
    "vmap": (lambda x: xp.func.vmap(lambda v: v**3)(x), [1.0, 8.0]),
    "vmap in chunks": (lambda x: xp.func.vmap(lambda v: v**3, chunk_size=1)(x), [1.0, 8.0]),
    "vmap of grad": (lambda x: xp.func.vmap(xp.func.grad(lambda v: v**3))(x), [3.0, 12.0]),
    "checkpoint": (lambda x: checkpoint(lambda v, c: v * c, xp.asarray([1.0, 2.0]), x, use_reentrant=False), [1.0, 4.0]),
}  # fmt: skip


@pytest.mark.parametrize("convert", [raw, of_numpy])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_lift_arrays(name: str, convert: Callable[[Any], Any], xpgrad_device: str) -> None:
    function, expected = TRANSFORMED[name]
    with xp.default_device(xpgrad_device):
        out = function(convert(xp.asarray([1.0, 2.0])))
        leaves = list(_leaves(out))
        assert all(isinstance(x, xp.Tensor) and str(x.device) == xpgrad_device for x in leaves)
        got = [x.tolist() for x in leaves]
        assert got == (list(expected) if isinstance(out, tuple) else [expected])


def test_transforms_lift_numbers() -> None:
    out = xp.func.grad(lambda x: x**3)(3.0)
    assert isinstance(out, xp.Tensor)
    assert out.shape == ()
    assert out.item() == 27.0
    assert xp.func.grad(xp.func.grad(lambda x: x**3))(3.0).item() == 18.0
    assert xp.func.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, xp.asarray(5.0))[1].item() == 2.0
    assert xp.func.jvp(lambda x: x**2, (3.0,), (2.0,))[1].item() == 12.0
    assert xp.func.vjp(lambda x: x**2, 3.0)[1](2.0)[0].item() == 12.0
    assert xp.func.linearize(lambda x: x**2, 3.0)[1](2.0).item() == 12.0
    assert xp.func.grad(lambda z: xp.real(z * z))(1 + 2j).dtype.is_complex
    for whole in (3, True, np.asarray([1, 2])):
        with pytest.raises(RuntimeError, match="floating and complex dtype"):
            xp.func.grad(lambda x: xp.sum(x * x))(whole)


def test_other_arguments_of_a_transform_stay_as_they_are() -> None:
    seen = []

    def f(x: Any, a: Any, n: Any) -> Any:
        seen.append((a, n))
        return xp.sum(x * a) * n

    a = np.asarray([3.0, 4.0])
    assert xp.func.grad(f)(xp.ones(2), a, 2).tolist() == [6.0, 8.0]
    assert xp.func.vmap(f, in_dims=(0, None, None))(xp.ones((2, 2)), a, 2).tolist() == [14.0, 14.0]
    assert all(s == (a, 2) if s[0] is not a else s[1] == 2 for s in seen)
    assert all(s[0] is a for s in seen)
    with pytest.raises(ValueError, match="not a Tensor but a Python scalar"):
        xp.func.vmap(f)(xp.ones((2, 2)), a, 2)


def test_numpy_arrays_go_where_the_other_arguments_are(xpgrad_device: str) -> None:
    x, a = xp.asarray([1.0, 2.0], device=xpgrad_device), np.asarray([3.0, 4.0])
    for argnums in (0, 1, (0, 1)):
        for out in _leaves(xp.func.grad(lambda x, a: xp.sum(x * a), argnums)(x, a)):
            assert str(out.device) == xpgrad_device
    assert str(xp.func.vmap(lambda x, a: x * a)(x, a).device) == xpgrad_device


def test_compiled_functions_take_arrays() -> None:
    pytest.importorskip("jax")
    calls = []

    @xp.compile
    def scaled(x: Any, a: Any, more: Any = None) -> Any:
        calls.append(type(a))
        return xp.sum(x * a * OUTSIDE) if more is None else xp.sum(x * a * more[0])

    x = xp.asarray([1.0, 2.0], dtype="float32", device="jax").requires_grad_()
    for k in (1.0, 2.0):  # compiled once, since arrays are not static arguments
        a = np.asarray([3.0, 4.0], dtype="float32") * k
        assert grad(scaled(x, a), x)[0].tolist() == [6.0 * k, 8.0 * k]
        assert grad(scaled(x, a, more=[a]), x)[0].tolist() == [9.0 * k * k, 16.0 * k * k]
    assert all(issubclass(c, xp.Tensor) for c in calls)


OUTSIDE = np.asarray([2.0, 2.0], dtype="float32")


# -- positional axes ----------------------------------------------------------------------------------------------------------------


X = np.asarray([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
POSITIONAL: dict[str, tuple[tuple[Any, ...], str]] = {
    **dict.fromkeys(
        ["sum", "mean", "max", "min", "prod", "var", "std", "all", "any", "argmax",
         "argmin", "count_nonzero", "cumulative_sum", "cumulative_prod", "sort", "argsort", "unstack", "flip"],
        ((X, 1), "axis"),
    ),
    "concat": (([X, X], 1), "axis"), "stack": (([X, X], 1), "axis"), "expand_dims": ((X, 1), "axis"), "squeeze": ((X[:, :1], 1), "axis"),
    "roll": ((X, 1, 1), "axis"), "repeat": ((X, 2, 1), "axis"), "take": ((X, np.asarray([1, 0]), 1), "axis"),
    "take_along_axis": ((X, np.asarray([[1], [0]]), 1), "axis"), "tril": ((X, -1), "k"), "triu": ((X, 1), "k"),
    "tensordot": ((X, X.T, 1), "axes"), "diff": ((X, 2, 1), "axis"),
    **dict.fromkeys((f"fft.{n}" for n in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]), ((X, 4, 0), "axis")),
    **dict.fromkeys((f"fft.{n}" for n in ["fftn", "ifftn", "rfftn", "irfftn"]), ((X, (2, 4), (0, 1)), "axes")),
    **dict.fromkeys((f"fft.{n}" for n in ("fftshift", "ifftshift")), ((X, 1), "axes")),
}  # fmt: skip
#: NumPy's names for functions that the standard calls otherwise.
NUMPY = {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod", "unstack": "unstack"}


@pytest.mark.parametrize("name", POSITIONAL)
def test_axes_may_be_given_by_position_as_in_numpy(name: str) -> None:
    args, what = POSITIONAL[name]
    function = resolve(name)
    ours = _values(function(*args))
    second = {"n": args[1]} if name == "diff" else {}
    last = "axis" if name in ("diff",) else what
    by_name = function(*args[: 1 if name == "diff" else -1], **{last: args[-1]}, **second)
    _assert_same(ours, _values(by_name))
    if name == "unstack":
        return  # NumPy takes it by keyword only
    theirs: Any = np
    for part in NUMPY.get(name, name).split("."):
        theirs = getattr(theirs, part)
    for a, b in zip(ours, [theirs(*args)]):
        np.testing.assert_allclose(a, b)


def test_every_function_of_the_table_is_known() -> None:
    assert {name.partition(".")[0] for name in CALLS if "." in name} == {"linalg", "fft", "Tensor"}
    assert all(f"{m}" in MODULES for m in ("linalg.", "fft.", "Tensor."))
    assert len(CALLS) > 150


def test_an_array_of_the_dtype_of_the_tensor_beside_it_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def general(*args: Any) -> Any:
        raise AssertionError("the operands were converted in the general way")

    monkeypatch.setattr(coerce, "unify", general)
    x, a = xp.tensor([1.0, 2.0], requires_grad=True), np.asarray([3.0, 5.0])
    for out, slope in ((x * a, a), (a - x, [-1.0, -1.0]), (xp.multiply(a, x), a)):
        np.testing.assert_array_equal(grad(xp.sum(out), x)[0].numpy(), slope)
    with pytest.raises(AssertionError, match="general way"):
        x * a.astype("float32")
