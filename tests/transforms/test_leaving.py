"""Law: a value that leaves a function in forward mode keeps its tangent, or raises or warns; it never silently has the derivative 0.

What reverse mode refuses for a Tensor that requires grad, forward mode refuses for one with a tangent. A conversion to a number raises
inside functions that transforms run, in both modes, and warns elsewhere. Inside them copies keep the derivative, and pickling raises.
Users write `detach()` if they mean a constant.
"""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.functions import SavesInputs
from xpgrad import func
from xpgrad.autograd import Function, forward_ad

REFUSED: dict[str, Callable[[Any], Any]] = {
    "np.asarray": lambda x: float(np.asarray(x).sum()),
    "np.array": lambda x: float(np.array(x).sum()),
    "numpy()": lambda x: float(x.numpy().sum()),
    "DLPack": lambda x: float(np.from_dlpack(x).sum()),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x[0]),
    "complex": lambda x: complex(x[0]).real,
    "int": lambda x: int(x[0]),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist()[0],
}
MEANT: dict[str, Callable[[Any], Any]] = {
    "branch": lambda x: 2.0 if x[0] > 0 else 3.0,
    "index": lambda x: [1.0, 2.0, 3.0][xp.astype(x[0], xp.int64)],
    "detach().numpy()": lambda x: float(x.detach().numpy()[0]),
    "detach().item()": lambda x: x.detach()[0].item(),
    "format": lambda x: float(f"{x[0]:.1f}"),
    "repr": lambda x: float(len(repr(x)) > 0),
    "shape": lambda x: float(x.shape[0]),
}
X = np.asarray([2.0, 3.0])


def _jvp(read: Callable[[Any], Any]) -> Any:
    return func.jvp(lambda x: xp.sum(x) * read(x), (xp.tensor(X),), (xp.tensor([1.0, 1.0]),))[1]


def _jacfwd(read: Callable[[Any], Any]) -> Any:
    return func.jacfwd(lambda x: xp.sum(x) * read(x))(xp.tensor(X))


def _dual(read: Callable[[Any], Any]) -> Any:
    with forward_ad.dual_level():
        return read(forward_ad.make_dual(xp.tensor(X), xp.tensor([1.0, 1.0])))


def _nested(read: Callable[[Any], Any]) -> Any:
    """Differentiate a function whose Tensor has a tangent of the outer level only."""
    return _jvp(lambda x: func.jvp(lambda y: xp.sum(y) * read(x), (xp.tensor(X),), (xp.tensor(X),))[0])


def _linearized(read: Callable[[Any], Any]) -> Any:
    return func.linearize(lambda x: xp.sum(x) * read(x), xp.tensor(X))[1](xp.tensor([1.0, 1.0]))


FORWARD = {"jvp": _jvp, "dual_level": _dual, "nested": _nested, "linearize": _linearized}


@pytest.mark.parametrize("mode", FORWARD)
@pytest.mark.parametrize("way", REFUSED)
def test_arrays_do_not_leave_with_a_tangent(way: str, mode: str) -> None:
    with pytest.raises(
        (RuntimeError, BufferError), match=r"Can't call .* on Tensor that (has a tangent|requires grad)\. Use tensor\.detach"
    ):
        FORWARD[mode](REFUSED[way])


@pytest.mark.parametrize("way", REFUSED)
def test_arrays_do_not_leave_a_batch(way: str) -> None:
    with pytest.raises(RuntimeError, match=r"inside `vmap`|has a tangent"):
        _jacfwd(REFUSED[way])
    with pytest.raises(RuntimeError, match="inside `vmap`"):
        func.vmap(lambda x: xp.sum(x) * REFUSED[way](x))(xp.tensor([X, X]))


@pytest.mark.parametrize("way", NUMBERS)
def test_numbers_that_leave_a_level_warn(way: str) -> None:
    with pytest.warns(UserWarning, match="a tensor with a tangent to a number: .* leaves forward mode"):
        FORWARD["dual_level"](NUMBERS[way])


@pytest.mark.parametrize("mode", ["jvp", "dual_level", "nested"])
@pytest.mark.parametrize("way", MEANT)
def test_what_is_meant_to_be_constant_is_silent(way: str, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FORWARD[mode](MEANT[way])


def test_constants_leave_forward_mode_freely() -> None:
    c = xp.tensor(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read in (*REFUSED.values(), *NUMBERS.values()):
            np.testing.assert_allclose(_jvp(lambda x, r=read: r(c)).numpy(), 2 * read(c))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f)(xp.tensor(X)),
    "vjp": lambda f: func.vjp(f, xp.tensor(X)),
    "jvp": lambda f: func.jvp(f, (xp.tensor(X),), (xp.tensor(X),)),
    "jacrev": lambda f: func.jacrev(f)(xp.tensor(X)),
    "jacfwd": lambda f: func.jacfwd(f)(xp.tensor(X)),
    "vmap": lambda f: func.vmap(f)(xp.tensor([X, X])),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(xp.tensor([X, X])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_raw_array_does_not_leave_a_transform(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"`\.array`.* inside of a function transformed by `"):
        TRANSFORMS[name](lambda x: xp.sum(x) * float(x.array.sum()))


@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "jacrev"])
def test_raw_arrays_of_constants_may_be_read(name: str) -> None:
    c = xp.tensor(X)
    TRANSFORMS[name](lambda x: xp.sum(x) * float(c.array.sum()) * float(x.detach().array.sum()))


def _write_into_array(x: Any) -> Any:
    t = np.empty(2)
    t[0] = x[0]
    return t[0]


#: A write into a NumPy array calls `float(x)`; NumPy replaces its error by another one.
LEAVING: dict[str, Callable[[Any], Any]] = NUMBERS | {
    "a write": _write_into_array,
    "an assignment of a slice": lambda x: np.zeros(2).__setitem__(slice(0, 1), x[:1]) or 1.0,
    "np.float64": lambda x: np.float64(x[0]),
    "np.array of elements": lambda x: np.array([x[0], x[1]])[0],
    "a list of numbers": lambda x: xp.asarray([float(v) for v in x[:1]])[0],
    "math": lambda x: math.sin(x[0]),
    "a result": lambda x: (x * x)[0].item(),
    "an alias": lambda x: x[...].tolist()[0],
}
DIFFERENTIATED = {name: call for name, call in TRANSFORMS.items() if "vmap" not in name} | {
    "grad_and_value": lambda f: func.grad_and_value(f)(xp.tensor(X)),
    "hessian": lambda f: func.hessian(f)(xp.tensor(X)),
    "linearize": lambda f: func.linearize(f, xp.tensor(X)),
    "grad of grad": lambda f: func.grad(lambda x: xp.sum(func.grad(f)(x)))(xp.tensor(X)),
    "of what requires grad": lambda f: func.grad(f)(xp.tensor(X, requires_grad=True)),
    "of what was computed": lambda f: func.vjp(f, xp.tensor(X, requires_grad=True) * 1.0),
    "the outer one's": lambda f: func.grad(lambda x: func.grad(lambda y: y * y * f(x))(x[1]))(xp.tensor(X)),
    "a number of its own": lambda f: func.grad(lambda y: f(y * xp.tensor(X)))(xp.tensor(1.0)),
}


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", DIFFERENTIATED)
@pytest.mark.parametrize("way", LEAVING)
def test_numbers_do_not_leave_a_transform(way: str, name: str) -> None:
    """Law: no conversion to plain numbers loses a derivative that a transform computes."""
    with pytest.raises((RuntimeError, ValueError)) as caught:
        DIFFERENTIATED[name](lambda x: xp.sum(x) * LEAVING[way](x))
    errors = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any(isinstance(e, RuntimeError) and "x.detach" in str(e).replace("tensor.", "x.") for e in errors), errors


@pytest.mark.parametrize("name", DIFFERENTIATED)
@pytest.mark.parametrize("way", MEANT)
def test_what_is_meant_to_be_constant_may_leave_a_transform(way: str, name: str) -> None:
    DIFFERENTIATED[name](lambda x: xp.sum(x) * MEANT[way](x))


@pytest.mark.parametrize("name", DIFFERENTIATED)
@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning")
def test_constants_may_leave_a_transform(way: str, name: str) -> None:
    """A Tensor from outside, or one made under `no_grad`, may be converted: the transform computes no derivative of it."""
    leaf = xp.tensor(X, requires_grad=True)
    for c in (xp.tensor(X), leaf, leaf * 2.0):
        DIFFERENTIATED[name](lambda x, c=c: xp.sum(x) * NUMBERS[way](c))


@pytest.mark.parametrize("way", NUMBERS)
def test_no_grad_says_that_a_constant_is_meant(way: str) -> None:
    @xp.no_grad()
    def read(x: Any) -> Any:
        return NUMBERS[way](x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert func.grad(lambda x: xp.sum(x) * read(x))(xp.tensor(X)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning")
def test_numbers_leave_outside_of_transforms_as_in_pytorch(way: str) -> None:
    x = xp.tensor(X, requires_grad=True)
    func.grad(lambda y: xp.sum(y))(x)
    assert NUMBERS[way](x * 1.0) == 2.0


class _Holder:
    def __init__(self, x: Any) -> None:
        self.x = x


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a result": lambda x: copy.deepcopy(x * 1.0),
    "copy of a result": lambda x: copy.copy(x * 1.0),
    "deepcopy of a dict": lambda x: copy.deepcopy({"x": x})["x"],
    "deepcopy of an object": lambda x: copy.deepcopy(_Holder([x, x])).x[1],
    "copy of an object": lambda x: copy.copy(_Holder(x)).x,
}
SQUARES: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: func.grad(lambda x: xp.sum(f(x) * x))(xp.tensor(X)),
    "of what requires grad": lambda f: func.grad(lambda x: xp.sum(f(x) * x))(xp.tensor(X, requires_grad=True)),
    "vjp": lambda f: func.vjp(lambda x: f(x) * x, xp.tensor(X))[1](xp.ones(2))[0],
    "jvp": lambda f: func.jvp(lambda x: f(x) * x, (xp.tensor(X),), (xp.ones(2),))[1],
    "jacrev": lambda f: xp.linalg.diagonal(func.jacrev(lambda x: f(x) * x)(xp.tensor(X))),
    "jacfwd": lambda f: xp.linalg.diagonal(func.jacfwd(lambda x: f(x) * x)(xp.tensor(X))),
    "hessian": lambda f: xp.linalg.diagonal(func.hessian(lambda x: xp.sum(f(x) * x * x) / 3.0)(xp.tensor(X))),
    "linearize": lambda f: func.linearize(lambda x: f(x) * x, xp.tensor(X))[1](xp.ones(2)),
    "vmap of grad": lambda f: func.vmap(func.grad(lambda x: f(x) * x))(xp.tensor(X)),
    "grad of vmap": lambda f: func.grad(lambda x: xp.sum(func.vmap(lambda e: f(e) * e)(x)))(xp.tensor(X)),
    "dual_level": lambda f: _dual_square(f),
}


def _dual_square(f: Callable[..., Any]) -> Any:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(xp.tensor(X), xp.ones(2))
        return forward_ad.unpack_dual(f(x) * x).tangent


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("way", COPIES)
def test_copies_keep_derivatives(way: str, name: str) -> None:
    """Law: inside a transform, a copy is as differentiable as the original."""
    np.testing.assert_allclose(SQUARES[name](COPIES[way]).detach().numpy(), 2 * X)


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"x": x}, _Holder])
def test_pickles_do_not_lose_derivatives(wrap: Callable[..., Any], name: str) -> None:
    with pytest.raises(RuntimeError, match=r"Can't pickle a Tensor that .* `x.detach\(\)`"):
        SQUARES[name](lambda x: pickle.loads(pickle.dumps(wrap(x))))


def test_copies_in_a_transform_are_memory_of_their_own() -> None:
    def f(x: Any) -> Any:
        y, z = copy.deepcopy([x, x])
        assert y is z
        y += 1.0
        return xp.sum(x * y)

    np.testing.assert_allclose(func.grad(f)(xp.tensor(X)).numpy(), 2 * X + 1.0)


def test_constants_in_a_transform_are_copied_and_pickled_as_elsewhere() -> None:
    leaf = xp.tensor(X, requires_grad=True)

    def f(x: Any) -> Any:
        for c in (xp.tensor(X), leaf):
            for again in (copy.copy(c), copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
                assert again.is_leaf
                assert again.requires_grad == c.requires_grad
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly"):
            copy.deepcopy(leaf * 2.0)
        return xp.sum(x)

    func.grad(f)(xp.tensor(X))


def _scipy_like() -> Any:
    class Sine(SavesInputs, Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return xp.asarray(np.sin(x.array))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * xp.cos(ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * xp.cos(ctx.saved_tensors[0])

    return Sine


def test_a_function_with_a_derivative_of_its_own_may_leave() -> None:
    sine = _scipy_like()
    x = xp.tensor(X)
    np.testing.assert_allclose(func.grad(lambda v: xp.sum(sine.apply(v)))(x).numpy(), np.cos(X))
    np.testing.assert_allclose(func.jvp(sine.apply, (x,), (x,))[1].numpy(), X * np.cos(X))


def test_outside_of_transforms_the_raw_array_is_unchecked() -> None:
    x = xp.tensor(X, requires_grad=True)
    assert isinstance((x * 1).array, np.ndarray)
    with forward_ad.dual_level():
        assert isinstance(forward_ad.make_dual(xp.tensor(X), xp.tensor(X)).array, np.ndarray)
