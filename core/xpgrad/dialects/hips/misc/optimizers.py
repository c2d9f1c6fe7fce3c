"""Three optimisers, which take a function that computes gradients, and parameters in nested tuples, lists and dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.misc.flatten import flatten

__all__ = ["adam", "rmsprop", "sgd"]

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any]


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an optimiser of vectors into one of nested parameters."""

    @functools.wraps(optimize)
    def of_trees(grad: Gradient, x0: Any, callback: Callback | None = None, *args: Any, **kwargs: Any) -> Any:
        start, rebuild = flatten(x0)

        def slope(x: Any, number: int) -> Any:
            return flatten(grad(rebuild(x), number))[0]

        def watch(x: Any, number: int, slope: Any) -> None:
            if callback is not None:
                callback(rebuild(x), number, rebuild(slope))

        return rebuild(optimize(slope, start, watch, *args, **kwargs))

    return of_trees


def _descend(grad: Gradient, x: Any, callback: Callback | None, num_iters: int, step: Callable[[Any, int], Any]) -> Any:
    """Add ``step(gradient, number)`` to the parameters `num_iters` times, and return them."""
    for number in range(num_iters):
        slope = grad(x, number)
        if callback is not None:
            callback(x, number, slope)
        x = x + step(slope, number)
    return x


class _Mean:
    """An exponential running mean, which keeps the fraction `kept` of the old value at each update."""

    def __init__(self, start: Any, kept: float) -> None:
        self.value, self.kept = start, kept

    def with_(self, new: Any) -> Any:
        """Update the mean with one more value, and return it."""
        self.value = self.kept * self.value + (1.0 - self.kept) * new
        return self.value


@unflatten_optimizer
def sgd(
    grad: Gradient, x: Any, callback: Callback | None = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:  # fmt: skip
    """Minimise by gradient descent with momentum: each step goes along a running mean of the gradients.

    Parameters
    ----------
    grad : callable
        ``grad(x, i)`` is the gradient at the parameters `x` in iteration `i`.
    x : array, number, or nested tuples, lists and dicts of them
        The parameters to begin with.
    callback : callable, optional
        ``callback(x, i, gradient)``, called before each step.
    num_iters : int
    step_size, mass : float
        `mass` is what the mean keeps of its old value.

    Returns
    -------
    The last parameters, in the structure of `x`.
    """
    mean = _Mean(np.zeros(np.shape(x)), mass)
    return _descend(grad, x, callback, num_iters, lambda slope, _: -step_size * mean.with_(slope))


@unflatten_optimizer
def rmsprop(
    grad: Gradient, x: Any, callback: Callback | None = None, num_iters: int = 100, step_size: float = 0.1, gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:  # fmt: skip
    """Minimise by RMSprop: divide each gradient by the root of a running mean of squared gradients, which begins with ones; see `sgd`."""
    square = _Mean(np.ones(np.shape(x)), gamma)
    return _descend(grad, x, callback, num_iters, lambda slope, _: -step_size * slope / (np.sqrt(square.with_(slope**2)) + eps))


@unflatten_optimizer
def adam(
    grad: Gradient, x: Any, callback: Callback | None = None, num_iters: int = 100, step_size: float = 0.001, b1: float = 0.9,
    b2: float = 0.999, eps: float = 1e-8,
) -> Any:  # fmt: skip
    """Minimise by Adam (Kingma and Ba, arXiv:1412.6980), with bias-corrected running means of the gradient and its square; see `sgd`."""
    mean, square = _Mean(np.zeros(np.shape(x)), b1), _Mean(np.zeros(np.shape(x)), b2)

    def step(slope: Any, number: int) -> Any:
        known_mean, known_square = (1.0 - kept ** (number + 1) for kept in (b1, b2))  # the weight that is not on the initial zeros
        scale = np.sqrt(square.with_(slope**2) / known_square) + eps
        return -step_size * mean.with_(slope) / known_mean / scale

    return _descend(grad, x, callback, num_iters, step)
