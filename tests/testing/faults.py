"""Functions with one fault each, for the check that has to notice it, and sound ones that every check must accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from support.functions import SavesInputs
from xpgrad.autograd import Function

__all__ = ["FAULTY", "SOUND", "custom"]

X, Y = np.linspace(0.2, 1.4, 6).reshape(2, 3), np.linspace(-0.9, 0.7, 6).reshape(2, 3)
LONG = np.linspace(0.3, 2.0, 12)


def custom(backward: Callable[[Any, Any], Any], forward: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return the square with handwritten derivatives in both modes, each a function of the argument and the incoming value."""

    class Square(SavesInputs, Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(ctx.saved_tensors[0], g)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return forward(ctx.saved_tensors[0], t)

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x * x, in_dims[0]

    return lambda x: Square.apply(x) if isinstance(x, xp.Tensor) else x * x


def right(x: Any, g: Any) -> Any:
    return 2.0 * x * g


def _plain(x: Any) -> Any:
    return x.detach() if isinstance(x, xp.Tensor) else x


def _writes(x: Any) -> Any:
    result = x * 1.0
    x[0, 0] = _plain(x)[0, 0] + 1.0
    return result


class _Drifts:
    """A function whose result grows with each call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += isinstance(x, xp.Tensor)
        return x + 0.1 * self.calls


def _depends_on_recording(x: Any) -> Any:
    return x * (2.0 if getattr(x, "requires_grad", False) else 1.0)


def _branches(x: Any) -> Any:
    return x * 2.0 if float(_plain(x)[0, 0]) < 5.0 else x * 3.0


def _partly(x: Any) -> Any:
    return x + 0.5 * _plain(x) ** 2


def _wrong_in_one_element(x: Any, g: Any) -> Any:
    xp_ = x.__array_namespace__()
    one = xp_.asarray([0.0] * 5 + [1e-3], device=x.device)
    return 2.0 * x * g + xp_.reshape(one, (2, 3)) * g


#: Faults by name: the check that notices each, the function, and its arguments.
FAULTY: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "nothing is returned": ("runs", lambda x: None, (X,)),
    "a name is returned": ("runs", lambda x: {"name": "x"}, (X,)),
    "it raises": ("runs", lambda x: 1 // 0, (X,)),
    "it writes into its argument": ("unchanged", _writes, (X,)),
    "it has other values on Tensors": ("values", lambda x: x * (1.001 if isinstance(x, xp.Tensor) else 1.0), (X,)),
    "it has another shape on Tensors": ("values", lambda x: x[None] if isinstance(x, xp.Tensor) else x, (X,)),
    "it drifts": ("repeatable", _Drifts(), (X,)),
    "its values depend on recording": ("repeatable", _depends_on_recording, (X,)),
    "it detaches": ("graph", lambda x: _plain(x) * 2.0, (X,)),
    "it detaches one of two": ("graph", lambda x, y: _plain(x) * y, (X, Y)),
    "it returns a float": ("graph", lambda x: float(x.__array_namespace__().sum(_plain(x) * x)), (X,)),
    "it returns an array": ("graph", lambda x: np.asarray(_plain(x)) * 2.0, (X,)),
    "a part is detached": ("gradient", _partly, (X,)),
    "a part of many elements is detached": ("gradient", _partly, (LONG,)),
    "one element's derivative is off by a thousandth": ("gradient", custom(_wrong_in_one_element, right), (X,)),
    "the derivative is that of the cube": ("gradient", custom(lambda x, g: 3.0 * x * x * g, right), (X,)),
    "forward mode has another sign": ("forward", custom(right, lambda x, t: -2.0 * x * t), (X,)),
    "the first derivative is a constant": ("second", custom(lambda x, g: 2.0 * x.detach() * g, right), (X,)),
    "it branches on a value": ("vmap", _branches, (X,)),
}


def _one_less_one(x: Any) -> Any:
    n = x.__array_namespace__()
    return n.sin(x) ** 2 + n.cos(x) ** 2 - 1.0


#: Functions without a fault.
SOUND: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a square by hand": (custom(right, right), (X,)),
    "of two": (lambda x, y: x.__array_namespace__().sin(x) * y, (X, Y)),
    "linear": (lambda x: 3.0 * x, (X,)),
    "of a list": (lambda parts: parts[0] * parts[1], ([X, Y],)),
    "with a dict, a number and None": (lambda d, n, _: d["a"] ** n, ({"a": X}, 2, None)),
    "with a mask": (lambda x, m: x.__array_namespace__().where(m, x * x, x), (X, X > 0.7)),
    "several results": (lambda x: (x * x, {"sum": x.__array_namespace__().sum(x), "count": 6}), (X,)),
    "of complex numbers": (lambda z: z * z.__array_namespace__().conj(z) * z, (X + 1j * Y,)),
    "of many numbers": (lambda x: x.__array_namespace__().cumulative_sum(x) ** 2, (LONG,)),
    "of single precision": (lambda x: x.__array_namespace__().exp(x), (X.astype(np.float32),)),
    "of numbers whose squares overflow": (lambda x: 2.0 * x, (np.asarray([1e200, 1e199, 1.0]),)),
    "of large and small numbers": (lambda x: x.__array_namespace__().sqrt(x), (np.asarray([1e-9, 1e-3, 1.0, 1e6, 1e12]),)),
    "0, where large terms cancel": (_one_less_one, (LONG,)),
    "of a number": (lambda x, a: x * a, (X, np.float64(1.5))),
    "steps": (lambda x: x.__array_namespace__().round(x * 3.0), (X,)),
    "integers come out": (lambda x: x.__array_namespace__().argmax(x, axis=1), (X,)),
}
