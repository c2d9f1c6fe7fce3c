"""A gallery of classic mistakes, each with the audit's name for it, a part of the line at fault, and the right function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xpgrad as xp
from xpgrad.autograd import Function, custom_rule, grad
from xpgrad.scipy import optimize

RNG = np.random.default_rng(0)
X = RNG.normal(size=4)
W = RNG.normal(size=(4, 4)) / 2


class Mistake(NamedTuple):
    """A function with a mistake.

    Attributes
    ----------
    kind : str
        The audit's name for the mistake.
    function : callable
    args : tuple
    line : str
        A part of the line at fault; empty if no line is at fault.
    right : callable or None
        The same function without the mistake.
    """

    kind: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    line: str
    right: Callable[..., Any] | None = None


MISTAKES: dict[str, Mistake] = {}


def _middle(a: Any, tolerance: float) -> Any:
    """Return a scalar of a point near `a` that an iteration finds."""
    return xp.sum(optimize.minimize(lambda v: xp.sum((v - a) ** 4 + (v - a) ** 2 + v * v * v / 9), xp.zeros(2), tol=tolerance).x)


def mistake(kind: str, *args: Any, line: str = "", right: Callable[..., Any] | None = None) -> Callable[[Any], Any]:
    """Return a decorator that adds a function to the gallery."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        MISTAKES[function.__name__] = Mistake(kind, function, args, line, right)
        return function

    return put


# -- paths that leave the graph ------------------------------------------------------------------------------------------


@mistake("left-as-number", X, line="float(", right=lambda x: xp.sum(x * xp.sqrt(xp.sum(x * x))))
def normalised_by_a_float(x: Any) -> Any:
    scale = float(xp.sqrt(xp.sum(x * x)))
    return xp.sum(x * scale)


@mistake("left-as-number", X, line=".item()", right=lambda x: xp.sum(x) * xp.max(x))
def an_item(x: Any) -> Any:
    top = xp.max(x).item()
    return xp.sum(x) * top


@mistake("left-as-number", X, line="tolist()", right=lambda x: xp.sum(xp.square(x)))
def through_a_list(x: Any) -> Any:
    return xp.sum(xp.asarray([v * v for v in x.tolist()])) + 0 * xp.sum(x)


@mistake("detached", X, line="detach()", right=lambda x: xp.sum(x * xp.mean(x)))
def a_detached_mean(x: Any) -> Any:
    mean = xp.mean(x).detach()
    return xp.sum(x * mean)


@mistake("detached", X, line=".data", right=lambda x: xp.sum(x * x))
def data_of_a_tensor(x: Any) -> Any:
    return xp.sum(x * x.data)


@mistake("no-grad", X, line="feature =", right=lambda x: xp.sum(xp.exp(x) + x))
def a_feature_without_gradient(x: Any) -> Any:
    with xp.no_grad():
        feature = xp.exp(x)
    return xp.sum(feature + x)


@mistake("left-as-array", X, line="x.array", right=lambda x: xp.sum(xp.sin(x)))
def numpy_in_between(x: Any) -> Any:
    return xp.sum(xp.asarray(np.sin(x.array)))


@mistake("inner-gradient", X, line="grad(", right=lambda x: xp.sum(xp.square(grad(xp.sum(x**3), x, create_graph=True)[0])))
def a_penalty_without_graph(x: Any) -> Any:
    (slope,) = grad(xp.sum(x**3), x)
    return xp.sum(xp.square(slope))


@mistake("inner-gradient", X, line="jacrev(")
def a_jacobian_without_graph(x: Any) -> Any:
    with xp.no_grad():
        slopes = xp.func.jacrev(lambda y: y**3)(x)
    return xp.sum(slopes @ x)


@mistake("inner-gradient", X, line="grad(")
def a_gradient_at_an_edge_without_graph(x: Any) -> Any:
    y = x * 2.0
    (slope,) = grad(xp.sum(y**3), [xp.autograd.graph.get_gradient_edge(y)])
    return xp.sum(slope * x)


@mistake("written", X, line="buffer[", right=lambda x: xp.sum(xp.exp(x)))
def a_buffer_that_is_filled_without_gradient(x: Any) -> Any:
    buffer = xp.zeros(4)
    with xp.no_grad():
        buffer[...] = x
    return xp.sum(xp.exp(buffer))


CAPTURED = xp.asarray(X)


@mistake("printed", X, line=":.12f", right=lambda x: xp.sum(x) * x[0])
def through_text(x: Any) -> Any:
    return xp.sum(x) * float(f"{x[0]:.12f}")


@mistake("captured", X, line="CAPTURED")
def the_copy_outside(x: Any) -> Any:
    return xp.sum(xp.sin(CAPTURED))


@mistake("rounded", X * 3, line="round(", right=lambda x: xp.sum(x**2))
def counted_in_whole_numbers(x: Any) -> Any:
    return xp.sum(xp.round(x) ** 2)


@mistake("compared", X, line="x > 0", right=lambda x: xp.sum(1 / (1 + xp.exp(-x))))
def a_share_of_positives(x: Any) -> Any:
    return xp.mean(xp.astype(x > 0, xp.float64))


@mistake("cast", X * 5, line="astype(", right=lambda x: xp.sum(x**2))
def through_integers(x: Any) -> Any:
    return xp.sum(xp.astype(xp.astype(x, xp.int64), xp.float64) ** 2)


@mistake("index", X, line="argmax", right=lambda x: xp.max(x))
def the_place_of_the_largest(x: Any) -> Any:
    return xp.astype(xp.argmax(x * x), xp.float64)


@mistake("branch", np.asarray(0.3), line="if x")
def a_step_by_an_if(x: Any) -> Any:
    return xp.asarray(1.0 if x > 0 else -1.0)


@mistake("unused", X, X + 1, right=lambda x, y: xp.sum(x * y))
def a_forgotten_argument(x: Any, y: Any) -> Any:
    return xp.sum(x * x)


@mistake("flat", np.asarray(-0.5), right=lambda x: xp.exp(x))
def a_dead_unit(x: Any) -> Any:
    return xp.where(x > 0, x, 0) ** 2


@mistake("overwritten", X, line="y = xp.exp(x)")
def written_after_it_was_saved(x: Any) -> Any:
    y = xp.exp(x)
    z = xp.sum(y)
    y *= 2
    return z + xp.sum(y)


@mistake("overwritten", X, line="z = y * y")
def written_behind_the_back(x: Any) -> Any:
    y = x * 1.5
    z = y * y
    y.detach().array[...] = 0
    return xp.sum(z)


# -- points without a derivative -------------------------------------------------------------------------------------------


@mistake("kink", np.asarray([0.0, 1.0, -2.0]), line="abs(", right=lambda x: xp.sum(xp.sqrt(x * x + 0.1)))
def an_absolute_value_at_zero(x: Any) -> Any:
    return xp.sum(xp.abs(x))


@mistake("tie", np.asarray([2.0, 1.0, 2.0]), line="max(")
def two_largest(x: Any) -> Any:
    return xp.max(x) ** 2


@mistake("kink", np.asarray([1.0, 0.3]), line="clip(")
def clipped_at_the_bound(x: Any) -> Any:
    return xp.sum(xp.clip(x, -1.0, 1.0) ** 2)


@mistake("kink", np.zeros(3), line="vector_norm")
def a_norm_at_zero(x: Any) -> Any:
    return xp.linalg.vector_norm(x)


@mistake("kink", np.asarray([0.0, 0.5]), line="relu")
def a_relu_at_zero(x: Any) -> Any:
    return xp.sum(x.relu() * 3)


# -- nan and infinity ------------------------------------------------------------------------------------------------------


@mistake(
    "where-nan",
    np.asarray([0.0, 1.0, 2.0]),
    line="log(x)",
    right=lambda x: xp.sum(xp.where(x > 1e-9, xp.log(xp.where(x > 1e-9, x, 1)), -1.0)),
)
def a_logarithm_behind_where(x: Any) -> Any:
    return xp.sum(xp.where(x > 0, xp.log(x), -1.0))


@mistake("nan-forward", np.asarray([-1.0, 1.0]), line="sqrt(")
def a_root_of_a_negative(x: Any) -> Any:
    return xp.sum(xp.sqrt(x))


@mistake("unchecked", np.asarray([-1.0, 1.0]), line="float(", right=lambda x: xp.sum(xp.sqrt(x * x)) * x[1])
def a_number_beside_a_nan(x: Any) -> Any:
    scale = float(x[1])
    return xp.sum(xp.sqrt(x)) * scale


@mistake("inf-forward", np.asarray([0.0, 1.0]), line="log(")
def a_logarithm_of_zero(x: Any) -> Any:
    return xp.sum(xp.log(x))


@mistake("inf-backward", np.asarray([0.0, 1.0]), line="sqrt(", right=lambda x: xp.sum(xp.sqrt(x + 1e-3)))
def a_root_at_zero(x: Any) -> Any:
    return xp.sum(xp.sqrt(x))


@mistake("nan-backward", np.zeros(2), line="sqrt(", right=lambda x: xp.linalg.vector_norm(x + 1))
def a_norm_by_hand(x: Any) -> Any:
    return xp.sqrt(xp.sum(x * x))


# -- wrong or inaccurate ---------------------------------------------------------------------------------------------------


@custom_rule
def cubed(x: Any) -> Any:
    return x**3


@cubed.vjp
def _(g: Any, x: Any) -> Any:
    return 2 * g * x**2


@mistake("wrong-gradient", X, line="cubed(")
def a_rule_with_a_wrong_factor(x: Any) -> Any:
    return xp.sum(cubed(xp.sin(x)))


@custom_rule
def doubled(x: Any) -> Any:
    return 2 * x


@doubled.vjp
def _(g: Any) -> Any:
    return 2 * g


@doubled.jvp
def _(d_x: Any) -> Any:
    return 3 * d_x


@mistake("vjp-and-jvp", X, line="doubled(")
def two_directions(x: Any) -> Any:
    return xp.sum(doubled(x) ** 2)


class Halved(Function):
    """A custom Function that forgets its factor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x / 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@mistake("wrong-gradient", X, line="Halved.apply")
def a_function_that_forgets(x: Any) -> Any:
    return xp.sum(Halved.apply(x) ** 2)


class Tripled(Function):
    """A custom Function with a wrong factor, and a rule for batches that is made of it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return 3 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


@mistake("wrong-gradient", X, line="vmap(Tripled.apply)")
def a_function_that_is_wrong_in_a_batch(x: Any) -> Any:
    return xp.sum(xp.func.vmap(Tripled.apply)(x) ** 2)


@mistake(
    "cancellation", np.asarray([1e4, 1e4 + 0.1, 1e4 + 0.4], np.float32), line="- xp.mean", right=lambda x: xp.mean((x - xp.mean(x)) ** 2)
)
def a_variance_by_two_moments(x: Any) -> Any:
    return xp.mean(x * x) - xp.mean(x) ** 2


@mistake("not-compared", np.asarray(1 - 1e-13), right=lambda x: xp.asin(x / 2))
def at_the_edge_of_its_domain(x: Any) -> Any:
    return xp.asin(x)


@mistake("vanishing", W * 0.1, X, line="tanh")
def a_deep_net_that_forgets(w: Any, x: Any) -> Any:
    h = x
    for _ in range(30):
        h = xp.tanh(w @ h) + 1
    return xp.sum(h)


@mistake("exploding", xp.asarray(3.9), xp.asarray(0.31), line="r * x")
def a_chaotic_map(r: Any, x: Any) -> Any:
    for _ in range(40):
        x = r * x * (1 - x)
    return x


# -- cost -----------------------------------------------------------------------------------------------------------------


@mistake("recomputed", RNG.normal(size=100), line="xp.exp(x) - 1", right=lambda x: xp.sum((e := xp.exp(x)) * (e - 1)))
def computed_twice(x: Any) -> Any:
    return xp.sum(xp.exp(x) * (xp.exp(x) - 1))


@mistake("saved-twice", RNG.normal(size=200), line="xp.exp(x + 0.0)", right=lambda x: xp.sum(xp.exp(x) ** 2))
def kept_twice(x: Any) -> Any:
    return xp.sum(xp.exp(x) * xp.exp(x + 0.0))


@mistake("inexact", np.asarray([1.0, 2.0]), right=lambda a: _middle(a, 1e-9))
def stopped_early(a: Any) -> Any:
    return _middle(a, 1e-4)


@mistake("memory", RNG.normal(size=(300, 300)), line="tanh")
def a_long_loop(x: Any) -> Any:
    for _ in range(6):
        x = xp.tanh(x)
    return xp.sum(x)


# -- functions that cannot be differentiated at all ------------------------------------------------------------------------


@mistake("no-tensor", X)
def nothing_returned(x: Any) -> None:
    xp.sum(x)


@mistake("no-tensor", X, line="float(")
def a_number_returned(x: Any) -> float:
    return float(xp.sum(x))


class Unfinished(Function):
    """A custom Function whose backward is not written yet."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x / 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise NotImplementedError("to do")


@mistake("backward-raised", X, right=lambda x: xp.sum(x / 2))
def a_backward_that_is_not_there(x: Any) -> Any:
    return xp.sum(Unfinished.apply(x))


@mistake("integer-result", X, line="astype")
def integers_returned(x: Any) -> Any:
    return xp.astype(xp.sum(x), xp.int64)


@mistake("raised", X, line="raise ")
def raises_halfway(x: Any) -> Any:
    xp.sum(x)
    raise ValueError("out of range")


@mistake("random", X, line="noise", right=lambda x: xp.sum(x * xp.asarray(np.random.default_rng(0).normal(size=4))))
def draws_numbers(x: Any) -> Any:
    noise = xp.asarray(np.random.default_rng().normal(size=4))
    return xp.sum(x * noise)


CALLS: list[int] = []


@mistake("not-deterministic", X)
def remembers(x: Any) -> Any:
    CALLS.append(1)
    return xp.sum(xp.exp(x) if len(CALLS) % 2 else xp.sin(x))


@mistake("changed-argument", X, line="")
def writes_into_its_argument(x: Any) -> Any:
    y = xp.sum(xp.exp(x))
    with xp.no_grad():
        x[0] = 0
    return y
