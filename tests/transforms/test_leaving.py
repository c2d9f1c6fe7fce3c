"""Law: a value that leaves a function in forward mode takes its tangent along, or says that it does not: never a silent 0.

What reverse mode refuses for a Tensor that requires grad, forward mode refuses for one with a tangent; a conversion to a number, which
both allow, warns. `detach()` is how one says that a constant is meant.
"""

from __future__ import annotations

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
    """A tangent of the outer level alone."""
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


@pytest.mark.parametrize("mode", ["jvp", "dual_level", "nested"])
@pytest.mark.parametrize("way", NUMBERS)
def test_numbers_that_leave_warn(way: str, mode: str) -> None:
    with pytest.warns(UserWarning, match="a tensor with a tangent to a number: .* leaves forward mode"):
        FORWARD[mode](NUMBERS[way])


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
