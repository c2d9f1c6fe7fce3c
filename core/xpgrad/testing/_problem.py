"""A function with its arguments, which can be called on the host, on any device and at other points; and its outputs as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xpgrad._basics.arguments import shown
from xpgrad._basics.device import Device
from xpgrad._basics.differences import dot
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import Structure, flatten, unflatten
from xpgrad.rules.conversion import asarray
from xpgrad.rules.elementwise import imag, real
from xpgrad.rules.reduction import sum as sum_of
from xpgrad.testing._host import is_floating, is_symmetric, np, on_host, to_tensor, weights


class Problem:
    """A function and its arguments, whose arrays are stored as NumPy arrays.

    Parameters
    ----------
    function : callable
    args : tuple
        NumPy arrays, Tensors, numbers, and containers of them; other objects pass through.
    argnums : tuple of int, optional
        The arguments with respect to which to differentiate. Default: all that have floating-point arrays.

    Raises
    ------
    ValueError, TypeError
        An argument has nothing to differentiate.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int] | None) -> None:
        self.function = function
        self.structures: list[Structure] = []
        self.leaves: list[Any] = []
        self.owners: list[int] = []
        for number, argument in enumerate(args):
            leaves, structure = flatten(argument)
            self.structures.append(structure)
            for leaf in leaves:
                picked = argnums is not None and number in argnums and isinstance(leaf, (float, complex))
                array = isinstance(leaf, (Tensor, np.ndarray, np.generic)) or picked
                self.leaves.append(on_host(leaf) if array else leaf)
                self.owners.append(number)
        #: The positions in `points` of matrices whose directions are symmetric.
        self.symmetric: frozenset[int] = frozenset()
        self.moving = [k for k, leaf in enumerate(self.leaves) if self._may_move(leaf) and (argnums is None or self.owners[k] in argnums)]
        self.argnums = tuple(dict.fromkeys(self.owners[k] for k in self.moving))
        for number in argnums or ():
            if number not in self.argnums:
                msg = (
                    f"check_differentiable: argument {number} is {shown(args[number])}, which holds no floating numbers to differentiate "
                    "in; give an array of them, or leave it out of `argnums`"
                )
                raise ValueError(msg)
        if not self.moving:
            msg = (
                f"check_differentiable: none of the {len(args)} arguments is an array or a Tensor of floating numbers; give one, e.g. "
                "`np.linspace(0.1, 0.9, 6)`, or name a number's position in `argnums`"
            )
            raise ValueError(msg)

    @staticmethod
    def _may_move(leaf: Any) -> bool:
        return isinstance(leaf, np.ndarray) and is_floating(leaf) and leaf.size > 0

    @property
    def points(self) -> list[Any]:
        """The arrays with respect to which the function is differentiated."""
        return [self.leaves[k] for k in self.moving]

    def of_argument(self, number: int) -> list[int]:
        """Return the positions in `points` of the arrays that belong to argument `number`."""
        return [j for j, k in enumerate(self.moving) if self.owners[k] == number]

    def symmetric_points(self) -> frozenset[int]:
        """Return the positions in `points` of symmetric matrices."""
        return frozenset(j for j, point in enumerate(self.points) if is_symmetric(point))

    def find_symmetric(self, wanted: bool | Sequence[int] | None) -> frozenset[int]:
        """Return the positions in `points` of symmetric matrices among the arguments `wanted`; True stands for all arguments.

        Raises
        ------
        ValueError
            An argument has none.
        """
        if wanted is None or wanted is False:
            return frozenset()
        found = self.symmetric_points()
        numbers = self.argnums if wanted is True else tuple(wanted)
        without = [n for n in numbers if not found.intersection(self.of_argument(n))]
        if wanted is True and not found:
            msg = "check_differentiable: `symmetric` is True, but no argument to differentiate has a symmetric matrix; leave it out"
            raise ValueError(msg)
        if wanted is not True and without:
            msg = (
                f"check_differentiable: `symmetric` names argument {without[0]}, which has no symmetric matrix to differentiate; give one "
                "that equals its transpose (conjugated, if complex) up to rounding"
            )
            raise ValueError(msg)
        return frozenset(j for j in found if self.owners[self.moving[j]] in numbers)

    def call(self, moving: Sequence[Any], place: Callable[[Any], Any]) -> Any:
        """Call the function with `moving` instead of the points, and with ``place(array)`` for every other array."""
        leaves = [place(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in self.leaves]
        for k, value in zip(self.moving, moving):
            leaves[k] = value
        args, start = [], 0
        for structure, count in zip(self.structures, self._counts()):
            args.append(unflatten(structure, leaves[start : start + count]))
            start += count
        return self.function(*args)

    def _counts(self) -> list[int]:
        return [self.owners.count(number) for number in range(len(self.structures))]

    def call_on(self, device: Device, moving: Sequence[Any]) -> Any:
        """Call the function with `moving` instead of the points, and with all other arrays as Tensors on a device."""
        return self.call(moving, lambda leaf: to_tensor(leaf, device))


class Outputs(NamedTuple):
    """The Tensors, arrays and Python floats that a function returned, in order."""

    parts: list[Any]

    @property
    def tensors(self) -> list[Any]:
        """The Tensors among the parts."""
        return [p for p in self.parts if isinstance(p, Tensor)]

    @property
    def differentiable(self) -> list[Any]:
        """The Tensors with a floating-point or complex dtype."""
        return [p for p in self.tensors if p.dtype.differentiable]

    @property
    def numbers(self) -> list[int]:
        """The positions of `differentiable` among all parts."""
        return [k for k, p in enumerate(self.parts) if isinstance(p, Tensor) and p.dtype.differentiable]

    @property
    def untracked_types(self) -> dict[int, str]:
        """The type names of floating-point parts that are not Tensors, by position."""
        return {k: type(p).__name__ for k, p in enumerate(self.parts) if not isinstance(p, Tensor) and is_floating(np.asarray(p))}

    def loss(self) -> Any:
        """Return a weighted sum of all of `differentiable`; None if there are none."""
        return tensor_loss(self.differentiable, self.numbers)

    def host(self) -> list[Any]:
        """Return all parts as NumPy arrays."""
        return [on_host(p) for p in self.parts]


def outputs_of(result: Any) -> Outputs:
    """Collect the outputs in nested tuples, lists and dicts; Python ints, bools, strings and None do not count."""
    return Outputs([p for p in flatten(result)[0] if isinstance(p, (Tensor, np.ndarray, np.generic, float, complex))])


def _halves(x: Any, re: Any, im: Any) -> list[Any]:
    """Return the real and the imaginary part of a complex array, or a list with a real array."""
    return [re(x), im(x)] if (x.dtype.is_complex if isinstance(x, Tensor) else x.dtype.kind == "c") else [x]


def host_loss(parts: Sequence[Any]) -> tuple[float, float]:
    """Return a weighted sum of all floating-point outputs on the host, and the sum of its terms' sizes, which bounds its rounding error."""
    total, size = 0.0, 0.0
    for k, part in enumerate(parts):
        for j, half in enumerate(_halves(part, np.real, np.imag) if is_floating(part) else []):
            term = weights(half.shape, 2 * k + j) * half
            total, size = total + float(np.sum(term)), size + float(np.sum(np.abs(term)))
    return total, size


def tensor_loss(parts: Sequence[Any], numbers: Sequence[int]) -> Any:
    """Return the sum of `host_loss` for the Tensors `parts`, whose numbers choose the weights; None if there are no Tensors."""
    total = None
    for k, part in zip(numbers, parts):
        for j, half in enumerate(_halves(part, real, imag)):
            term = sum_of(half * asarray(weights(half.shape, 2 * k + j), dtype=half.dtype, device=half.device))
            total = term if total is None else total + term
    return total


def project(gradients: Sequence[Any], directions: Sequence[Any]) -> float:
    """Return the derivative along directions from gradients; a gradient of None counts as 0."""
    return float(sum(dot(g, v) for g, v in zip(gradients, directions) if g is not None))
