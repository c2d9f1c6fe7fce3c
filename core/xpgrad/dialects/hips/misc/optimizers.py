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
    """Make an optimiser of nested parameters of one of vectors."""

    @functools.wraps(optimize)
    def optimizer(grad: Gradient, x0: Any, callback: Callback | None = None, *args: Any, **kwargs: Any) -> Any:
        vector, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(flat_grad, vector, flat_callback, *args, **kwargs))

    return optimizer


@unflatten_optimizer
def sgd(grad: Gradient, x: Any, callback: Callback, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9) -> Any:
    """Gradient descent with momentum: the velocity is `mass` of the one before and ``1 - mass`` of the new descent.

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

    Returns
    -------
    The last parameters, in the structure of `x`.
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Gradient, x: Any, callback: Callback, num_iters: int = 100, step_size: float = 0.1, gamma: float = 0.9, eps: float = 1e-8
) -> Any:
    """Gradient descent in units of the root of a running mean of squared gradients, which begins with ones; see `sgd`."""
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Gradient, x: Any, callback: Callback, num_iters: int = 100, step_size: float = 0.001, b1: float = 0.9, b2: float = 0.999,
    eps: float = 10**-8,
) -> Any:  # fmt: skip
    """Adam (Kingma and Ba, arXiv:1412.6980): running means of the gradient and of its square, corrected for their start; see `sgd`."""
    first, second = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * g**2 + b2 * second
        x = x - step_size * (first / (1 - b1 ** (i + 1))) / (np.sqrt(second / (1 - b2 ** (i + 1))) + eps)
    return x
