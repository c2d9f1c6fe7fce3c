"""Helpers of the checks: exceptions for outcomes, directions of single elements, and texts for messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xpgrad.rules.elementwise import imag, real
from xpgrad.testing._host import agree, np


class Fails(Exception):
    """The exception of a check that fails; its message is the reason."""


class IsConstant(Exception):
    """The exception of a check that passes because all derivatives are 0; its message is a remark."""


def tensor_dot(g: Any, v: Any) -> Any:
    """Return the derivative along the direction `v` as a Tensor, given the gradient `g`; `differences.dot` does so for host arrays."""
    if g.dtype.is_complex:
        return (real(g) * real(v)).sum() + (imag(g) * imag(v)).sum()
    return (g * v).sum()


def units(directions: list[Any], symmetric: list[bool]) -> Iterator[list[Any]]:
    """Return directions of single elements with the sizes of a given direction; real and imaginary ones for complex elements.

    In arrays that are `symmetric`, the element with swapped indices is changed as well, to the conjugate.
    """
    for k, v in enumerate(directions):
        for place in np.ndindex(v.shape):
            for turn in (1.0, 1j) if v.dtype.kind == "c" else (1.0,):
                one = [np.zeros_like(w) for w in directions]
                one[k][place] = turn * abs(v[place])
                if symmetric[k]:
                    *batch, i, j = place
                    if i > j or (i == j and turn == 1j):
                        continue
                    one[k][(*batch, j, i)] = np.conj(one[k][place])
                yield one


def which(directions: list[Any]) -> str:
    """Return the display name of a direction."""
    places = [(k, tuple(place)) for k, v in enumerate(directions) for place in np.argwhere(v)]  # NB: `np.nonzero` takes no numbers
    if len(places) == 2 and _mirror(*places):
        return f"elements {_indices(places[0][1])} and {_indices(places[1][1])}{f' of array {places[0][0]}' if len(directions) > 1 else ''}"
    if len(places) != 1:
        return "a drawn direction"
    (k, place), many = places[0], len(directions) > 1
    element = f"element {_indices(place)}" if place else "the number"
    return f"{element}{f' of array {k}' if many else ''} (times {abs(directions[k][place]):.3g})"


def _mirror(first: tuple[int, Any], second: tuple[int, Any]) -> bool:
    """Return whether two places are those of elements with swapped last indices in one array."""
    (k, one), (m, two) = first, second
    return k == m and len(one) >= 2 and (*one[:-2], one[-1], one[-2]) == tuple(two)


def _indices(place: Any) -> str:
    """Format the indices of an element."""
    return f"[{', '.join(str(int(p)) for p in place)}]"


def length(directions: list[Any]) -> float:
    """Return the sum of the absolute values of all elements of a direction."""
    return float(sum(np.sum(np.abs(v)) for v in directions))


def same(first: list[Any], second: list[Any]) -> bool:
    """Return whether two lists of arrays are equal up to rounding errors."""
    return len(first) == len(second) and all(agree(a, b, 1e-12, 1e-14) for a, b in zip(first, second))


def kink_near(expected: float, doubt: float, has_kink: bool) -> str:
    """Return a remark on a kink at the arguments, or on a difference that changes with its step by `doubt`, more than 1 % of `expected`."""
    if has_kink:
        return "; the differences to both sides are not the same: there is a kink or a step at the arguments, choose others"
    if doubt <= 1e-2 * abs(expected):
        return ""
    return "; with twice the step the difference is another one: there is a kink at the arguments or near, choose others"


def single_near(one: float, two: float) -> str:
    """Return a remark if two numbers of a check in double precision agree in single precision; empty otherwise."""
    if not abs(one - two) <= 1e-5 * max(abs(one), abs(two)):  # NaN agrees with nothing
        return ""
    return "; they agree in single precision: the function may compute in float32, then give it float32 arguments or pass a larger `rtol`"


def kind_of(result: Any) -> str:
    """Describe the type of a result for a message."""
    if result is None:
        return "None"
    if isinstance(result, (tuple, list)):
        return f"a {type(result).__name__} of {', '.join(sorted({type(x).__name__ for x in result})) or 'nothing'}"
    return f"a {type(result).__name__}"


def error_text(exc: BaseException) -> str:
    """Format an error for a message: its type and the first line of its text."""
    text = str(exc).strip()
    return f"{type(exc).__name__}: {text.splitlines()[0] if text else ''}"[:300]
