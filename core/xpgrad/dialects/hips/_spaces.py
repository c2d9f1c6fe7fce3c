"""`vspace`: the shape, dtype and structure of a value, and vectors of that kind: zeros, ones, random vectors and a basis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import np
from xpgrad.func._tree import flatten, unflatten


class VSpace:
    """The space of values of one structure, with leaves of certain shapes and dtypes, as vectors over the real numbers.

    Attributes
    ----------
    shape : tuple of int
        Of one array or number; of containers, the tuple of their leaves' shapes.
    dtype : dtype
        NumPy's, of the first leaf.
    size : int
        The number of real numbers.
    iscomplex : bool
    mappings : dict
        By class of values: the function that makes their space, for `vspace`; arrays and numbers need none.
    """

    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], Any] | None = None) -> None:
        """Declare how `vspace` makes the space of values of a class: by `vspace_maker`, or by this class."""
        cls.mappings[value_type] = vspace_maker or cls

    def __init__(self, value: Any) -> None:
        leaves, self._structure = flatten(value)
        self._leaves: list[tuple[tuple[int, ...], Any]] = []
        for x in leaves:
            dtype = np.dtype(x.dtype) if isinstance(x, Tensor) else np.asarray(x).dtype
            if dtype.kind not in "fc" or isinstance(x, int):
                what = f"an array of dtype {dtype}" if hasattr(x, "dtype") else f"{type(x).__name__} {x!r:.40}"
                msg = f"vspace: {what} is no vector; give floating or complex arrays and numbers, or tuples, lists and dicts of them"
                raise TypeError(msg)
            self._leaves.append((tuple(np.shape(x)), dtype))
        single = self._structure.is_leaf
        self.shape: Any = self._leaves[0][0] if single else tuple(shape for shape, _ in self._leaves)
        self.dtype: Any = self._leaves[0][1] if self._leaves else np.dtype(float)
        self.ndim: int = len(self.shape)
        self.iscomplex: bool = any(dtype.kind == "c" for _, dtype in self._leaves)
        self.size: int = sum(math.prod(shape) * (2 if dtype.kind == "c" else 1) for shape, dtype in self._leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VSpace) and (self._structure, self._leaves) == (other._structure, other._leaves)

    def __hash__(self) -> int:
        return hash((self.size, len(self._leaves)))

    def __repr__(self) -> str:
        return f"VSpace({', '.join(f'{dtype}{list(shape)}' for shape, dtype in self._leaves)})"

    def _make(self, function: Callable[[tuple[int, ...], Any], Any]) -> Any:
        return unflatten(self._structure, [function(shape, dtype) for shape, dtype in self._leaves])

    def _map(self, function: Callable[..., Any], *values: Any) -> Any:
        return unflatten(self._structure, [function(*leaves) for leaves in zip(*(flatten(v)[0] for v in values))])

    def zeros(self) -> Any:
        """Return the vector of zeros."""
        return self._make(np.zeros)

    def ones(self) -> Any:
        """Return the vector of ones; in a complex space of 1 + i, as in HIPS autograd."""
        return self._make(lambda shape, dtype: np.full(shape, 1 + 1j if dtype.kind == "c" else 1, dtype))

    def randn(self) -> Any:
        """Return a vector of normally distributed numbers from NumPy's global generator."""

        def draw(shape: tuple[int, ...], dtype: Any) -> Any:
            out = np.asarray(np.random.randn(*shape))
            return (out + 1j * np.random.randn(*shape) if dtype.kind == "c" else out).astype(dtype)

        return self._make(draw)

    def standard_basis(self) -> Iterator[Any]:
        """Yield the unit vectors; in a complex space also those with a single i."""
        for k, (shape, dtype) in enumerate(self._leaves):
            for index in np.ndindex(*shape):
                for unit in (1.0, 1j) if dtype.kind == "c" else (1.0,):
                    leaves = [np.zeros(s, d) for s, d in self._leaves]
                    leaves[k][index] = unit
                    yield unflatten(self._structure, leaves)

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum of two vectors."""
        return self._map(lambda a, b: a + b, x, y)

    mut_add = add

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """Return a vector times a number."""
        return self._map(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the real inner product of two vectors."""
        pairs = zip(flatten(x)[0], flatten(y)[0])
        return sum((np.real(np.sum(np.conj(a) * b)) for a, b in pairs), 0.0)

    def covector(self, x: Any) -> Any:
        """Return the covector of the inner product with `x`: the conjugate of `x`."""
        return self._map(lambda leaf: np.conj(leaf) if np.iscomplexobj(leaf) else leaf, x)


def vspace(value: Any) -> VSpace:
    """Return the vector space of a value.

    Raises
    ------
    TypeError
        For integers, strings and other objects that are not vectors.
    """
    make = VSpace.mappings.get(type(value))
    if make is not None:
        return make(value)
    found = VSpace(value)
    if found._structure.is_leaf:
        found.__class__ = ComplexArrayVSpace if found.iscomplex else ArrayVSpace
    return found


class ArrayVSpace(VSpace):
    """The space of arrays of one shape and dtype."""


class ComplexArrayVSpace(ArrayVSpace):
    """The space of complex arrays of one shape and dtype."""


class SparseObject:
    """A gradient that is zero almost everywhere: what a rule may return in place of an array.

    Parameters
    ----------
    vs : VSpace
    mut_add : callable
        ``mut_add(array)`` is the array with the gradient added; it may be the same, written to.
    """

    __slots__ = ("mut_add", "vs")

    mut_add: Callable[[Any], Any]
    vs: VSpace

    def __init__(self, vs: VSpace, mut_add: Callable[[Any], Any]) -> None:
        self.vs, self.mut_add = vs, mut_add
