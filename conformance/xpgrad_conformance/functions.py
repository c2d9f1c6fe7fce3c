"""The table of differentiable functions, each with operands at which it has derivatives; any library can run it.

A case calls a function with a library and arrays. A library has ``xp`` (the standard's functions), ``constant`` and ``indices`` (which make
arrays of numbers and of indices). NumPy in double precision computes the expected values and the central differences.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Case", "Reference", "all_cases", "as_list", "binary", "cases", "central_differences", "elementwise_domains", "scalar_loss"]

Domain = Callable[[Any], Any]
STEP = 1e-5


# The domains map distinct numbers in (0, 1) to operands that are away from kinks, poles and branch cuts.
def signed(u: Any) -> Any:
    """Map numbers in (0, 1) to numbers of both signs that are not near 0."""
    return np.where(np.floor(u * 64) % 2 == 0, 1.0, -1.0) * (0.13 + 1.7 * u)


def positive(u: Any) -> Any:
    """Map numbers in (0, 1) to positive numbers that are not near 0."""
    return 0.23 + 1.7 * u


def definite(u: Any) -> Any:
    """Map numbers in (0, 1) to well-conditioned matrices; square ones have distinct singular values."""
    n = u.shape[-1]
    return u + np.diag(2.0 + 1.5 * np.arange(n)) if u.shape[-2] == n else u + np.eye(*u.shape[-2:]) * 3.0


class Case(NamedTuple):
    """A function and its operands.

    Attributes
    ----------
    call : callable
        ``call(lib, *xs)`` returns an array or a tuple of arrays.
    points : tuple of pairs
        The shape and the domain of each operand.
    complex : bool
        Whether the function takes complex operands.
    oracle : bool
        Whether PyTorch can differentiate the function.
    function : str
        The name of the public function if the case is derived from its row, else empty. PyTorch may lack the function.
    """

    call: Callable[..., Any]
    points: tuple[tuple[tuple[int, ...], Domain], ...]
    complex: bool = False
    oracle: bool = True
    function: str = ""

    def at(self, *shapes: tuple[int, ...]) -> Case:
        """Return the same case with operands of other shapes."""
        return self._replace(points=tuple((shape, domain) for shape, (_, domain) in zip(shapes, self.points, strict=True)))

    def arrays(self, complex_too: bool = False) -> list[np.ndarray[Any, Any]]:
        """Return the operands in double precision, complex if `complex_too`; their elements are irregular and without ties."""
        found, start = [], 1
        for shape, domain in self.points:
            size = int(np.prod(shape))
            u = (np.arange(start, start + size) * 0.6180339887498949 % 1.0).reshape(shape)
            start += size
            x = domain(u)
            found.append(x + 1j * (0.31 + 0.4 * np.cos(7 * u)) if complex_too else x)
        return found


class Reference:
    """NumPy as a library that can run cases."""

    xp = np
    oracle = False

    @staticmethod
    def constant(data: Any) -> Any:
        """Return an array of numbers."""
        return np.asarray(data, dtype="float64")

    @staticmethod
    def indices(data: Any) -> Any:
        """Return an array of indices."""
        return np.asarray(data)


def one(call: Callable[..., Any], *shape: int, domain: Domain = signed, **more: Any) -> Case:
    """Return a case of one operand, by default of shape (2, 3)."""
    return Case(call, ((shape or (2, 3), domain),), **more)


def two(call: Callable[..., Any], first: Any = (2, 3), second: Any = (3,), domain: Domain = signed, other: Domain | None = None,
        **more: Any) -> Case:  # fmt: skip
    """Return a case of two operands, by default of the shapes (2, 3) and (3,), which broadcast."""
    return Case(call, ((first, domain), (second, other or domain)), **more)


def call_by_name(name: str) -> Callable[..., Any]:
    """Return a call of the function of that name in the standard's namespace."""

    def call(lib: Any, *xs: Any) -> Any:
        found = lib.xp
        for part in name.split("."):
            found = getattr(found, part)
        return found(*xs)

    return call


def call_with(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    """Return a call of the function of that name with further arguments after its operand."""
    return lambda lib, x: getattr(lib.xp, name)(x, *args, **options)


def elementwise(name: str) -> Case:
    """Return the case of an elementwise function."""
    domains, both = elementwise_domains()[name]
    points = tuple(zip(((2, 3), (3,)), domains))
    # PyTorch's sign of complex numbers has another name.
    return Case(call_by_name(name), points, both and name != "sign", name not in UNORACLED, name)


def symmetrise(lib: Any, x: Any) -> Any:
    """Return the symmetric part of matrices."""
    return (x + lib.xp.matrix_transpose(x)) / 2


def write_key(lib: Any, x: Any, key: Any, value: Any) -> Any:
    """Return a copy of `x` with a part overwritten."""
    # NB: a batch of values can be written only into a batch, so the copy depends on `value` as well.
    y = x * 1 if isinstance(value, float) else x + lib.xp.sum(value) * 0
    y[key] = value
    return y


def sort_descending(lib: Any, x: Any) -> Any:
    """Sort in descending order along the last axis."""
    return lib.xp.flip(lib.xp.sort(x, axis=-1), axis=-1) if lib.xp is np else lib.xp.sort(x, axis=-1, descending=True)


def pad(lib: Any, x: Any) -> Any:
    """Pad with a constant."""
    return lib.xp.pad(x, ((1, 0), (0, 2)), constant_values=1.5)


def sum_of_eigen_pairs(lib: Any, x: Any) -> Any:
    """Return sums over the eigenvalues and eigenvectors of a matrix that depend neither on their order nor on the vectors' phases."""
    values, vectors = lib.xp.linalg.eig(x)
    sizes = lib.xp.abs(vectors) ** 4
    return lib.xp.sum(lib.xp.real(values**3)), lib.xp.sum(sizes, axis=-1), lib.xp.sum(lib.xp.real(values) * sizes, axis=-1)


def map_into(domain: Any) -> Domain:
    """Return a function that maps numbers in (0, 1) into the domain of a row, away from its bounds and from 0."""
    low, high = domain.low, domain.high
    if math.isinf(low):
        return signed
    if math.isinf(high):
        return lambda u: low + 0.23 + 1.7 * u
    return lambda u: (low + high) / 2 + (high - low) * (0.85 * u - 0.43)


@functools.cache
def elementwise_domains() -> dict[str, tuple[tuple[Domain, ...], bool]]:
    """Return the differentiable elementwise functions of one and two operands that NumPy has as well.

    The value for each name is the domains of its operands, and whether they may be complex.
    """
    # NB: processes that plant faults import the contracts first, so importing this module must not load xpgrad.
    from xpgrad import backend

    return {
        f.name: (tuple(map(map_into, f.domains)), f.domains[0].numbers == "complex")
        for f in backend.elementwise_functions()
        if all(f.differentiable) and len(f.domains) in (1, 2) and hasattr(np, f.name)
    }


def binary() -> list[str]:
    """Return the names of the functions of two operands."""
    return [name for name, (domains, _) in elementwise_domains().items() if len(domains) == 2]


def axis_cases() -> dict[str, Case]:
    """Return the cases of the reductions and views that NumPy has as well and that need no arguments except axes."""
    from xpgrad import backend

    found = {}
    for f in backend.axis_functions():
        if not hasattr(np, f.name):
            continue
        more: dict[str, Any] = {"oracle": f.name not in UNORACLED, "function": f.name}
        if f.kind == "view":  # `squeeze` needs a first axis of length 1
            found[f.name] = one(call_with(f.name, *(0, -1, 1)[: f.axes]), 1, 2, 3, complex=f.domain.numbers == "complex", **more)
            continue
        more |= {"complex": f.domain.numbers == "complex"}
        found |= {
            f"{f.name}, all": one(call_with(f.name), **more),
            f"{f.name}, an axis": one(call_with(f.name, axis=0), **more),
            f"{f.name}, kept": one(call_with(f.name, axis=-1, keepdims=True), 2, 3, 2, **more),
            f"{f.name}, axes": one(call_with(f.name, axis=(0, -1)), 2, 3, 2, **more),
        }
    return found


#: Functions that PyTorch has but refuses to differentiate.
UNORACLED = {"floor_divide"}

#: The cases of all other functions.
FURTHER: dict[str, Case] = {
    # Scalars as operands, and operators.
    "x + 2": one(lambda lib, x: (x + 2) * (3.5 - x) - (x - 1.5) / 4, complex=True),
    "2 / x": one(lambda lib, x: 2.0 / x + x / 2.0 - 3 * x, complex=True),
    "-x": one(lambda lib, x: -x * +x, complex=True),
    "x ** 2": one(lambda lib, x: x**2 + x**3 * x**1, complex=True),
    "x ** -0.5": one(lambda lib, x: x**-0.5 + x**0 + x**2.5, domain=positive, complex=True),
    "2 ** x": one(lambda lib, x: 2.0**x + 0.5**x, complex=True),
    "x % 0.7": one(lambda lib, x: x % 0.7),
    "x @ y": two(lambda lib, x, y: x @ y, (2, 3), (3, 2), complex=True),
    "abs(x)": one(lambda lib, x: abs(x) * x),
    # Selection.
    "where": two(lambda lib, x, y: lib.xp.where(x > y, x, y)),
    "where, a mask": two(lambda lib, x, y: lib.xp.where(lib.constant([1.0, 0.0, 1.0]) > 0.5, x, y), complex=True),
    "clip, scalars": one(lambda lib, x: lib.xp.clip(x, -0.5, 0.9)),
    "clip, from below": one(lambda lib, x: lib.xp.clip(x, 0.4, None)),
    "clip, from above": one(lambda lib, x: lib.xp.clip(x, None, 0.4)),
    "clip, arrays": Case(lambda lib, x, lo, hi: lib.xp.clip(x, -lo, hi * 0.5), (((2, 3), signed), ((3,), positive), ((2, 3), positive))),
    "clip, arrays of more axes": Case(
        lambda lib, x, lo, hi: lib.xp.clip(x, -lo, hi * 0.5), (((2, 3, 4), signed), ((3, 4), positive), ((2, 1, 1), positive))
    ),
    "real": one(lambda lib, x: lib.xp.real(x * (0.5 - 1.1j)), complex=True),
    "imag": one(lambda lib, x: lib.xp.imag(x * (0.5 - 1.1j)), complex=True),
    # Reductions with further arguments.
    "prod, with a zero": one(lambda lib, x: lib.xp.prod(x * lib.constant([1.0, 0.0, 1.0]), axis=1)),
    "prod, with zeros": one(lambda lib, x: lib.xp.prod(x * lib.constant([0.0, 0.0, 1.0]), axis=1)),
    "prod, two axes": one(lambda lib, x: lib.xp.prod(lib.xp.prod(x, axis=0), axis=0), 2, 2, 2),
    "var, corrected": one(lambda lib, x: lib.xp.var(x, axis=1, correction=1), complex=True),
    "std, corrected": one(lambda lib, x: lib.xp.std(x, axis=1, correction=0.5, keepdims=True), oracle=False),
    "cumulative_sum": one(lambda lib, x: lib.xp.cumulative_sum(x, axis=1), complex=True),
    "cumulative_sum, first axis": one(lambda lib, x: lib.xp.cumulative_sum(x, axis=0, include_initial=True), 3, 2),
    "cumulative_prod": one(lambda lib, x: lib.xp.cumulative_prod(x, axis=1), 2, 4, complex=True),
    "cumulative_prod, with a zero": one(lambda lib, x: lib.xp.cumulative_prod(x * lib.constant([[1.0], [0.0], [1.0]]), axis=0), 3, 2),
    "diff": one(lambda lib, x: lib.xp.diff(x, axis=1, n=2), 2, 4, complex=True),
    # NB: PyTorch's tangents of a sort under vmap differ from those of a loop.
    "sort": one(lambda lib, x: lib.xp.sort(x, axis=0), 3, 2),
    "sort, descending": one(sort_descending, 2, 4),
    # Shapes.
    "reshape": one(lambda lib, x: lib.xp.reshape(x, (3, 2)) * lib.constant([1.0, 2.0]), complex=True),
    "reshape, one unknown": one(lambda lib, x: lib.xp.reshape(lib.xp.permute_dims(x, (2, 0, 1)), (-1, 2)), 2, 3, 2),
    "squeeze, axes": one(lambda lib, x: lib.xp.squeeze(x, axis=(0, 2)) * lib.constant([1.0, 2.0, 3.0]), 1, 3, 1),
    "expand_dims, twice": one(lambda lib, x: lib.xp.expand_dims(x, axis=1) * lib.xp.expand_dims(x, axis=-1)[:, :, :1], complex=True),
    "expand_dims, several": one(lambda lib, x: lib.xp.expand_dims(x, axis=(0, -1)), complex=True, oracle=False),
    "transpose": one(lambda lib, x: lib.xp.transpose(x) * lib.xp.transpose(x, (1, 0)), oracle=False),
    "permute_dims": one(lambda lib, x: lib.xp.permute_dims(x, (2, 0, 1)), 2, 3, 2, complex=True),
    "moveaxis": one(lambda lib, x: lib.xp.moveaxis(x, 0, -1), 2, 3, 2),
    "broadcast_to": one(lambda lib, x: lib.xp.broadcast_to(x, (2, 4, 3)), 2, 1, 3, complex=True),
    "broadcast_arrays": two(lambda lib, x, y: tuple(lib.xp.broadcast_arrays(x, y)), (2, 1), (3,)),
    "repeat": one(lambda lib, x: lib.xp.repeat(x, 2, axis=1), complex=True),
    "repeat, first axis": one(lambda lib, x: lib.xp.repeat(x, 3, axis=0)),
    "repeat, each its own": one(lambda lib, x: lib.xp.repeat(x, lib.indices([2, 0, 1]), axis=1)),
    "tile": one(lambda lib, x: lib.xp.tile(x, (2, 1, 2))),
    "flip": one(lambda lib, x: lib.xp.flip(x, axis=1), complex=True),
    "flip, all": one(lambda lib, x: lib.xp.flip(x)),
    "roll": one(lambda lib, x: lib.xp.roll(x, 1, axis=1), complex=True),
    "roll, all": one(lambda lib, x: lib.xp.roll(x, -2)),
    "roll, several": one(lambda lib, x: lib.xp.roll(x, (1, 2), axis=(0, 1))),
    "concat": two(lambda lib, x, y: lib.xp.concat([x, y, x], axis=1), (2, 3), (2, 2), complex=True),
    "concat, flat": two(lambda lib, x, y: lib.xp.concat([x, y], axis=None), (2, 3), (2,)),
    "stack": two(lambda lib, x, y: lib.xp.stack([x, y * 2, x], axis=1), (2, 3), (2, 3), complex=True),
    "stack, last": two(lambda lib, x, y: lib.xp.stack([x, y], axis=-1), (2, 3), (2, 3)),
    "unstack": one(lambda lib, x: tuple(lib.xp.unstack(x, axis=1)), complex=True),
    "meshgrid": two(lambda lib, x, y: tuple(lib.xp.meshgrid(x, y, indexing="ij")), (2,), (3,)),
    "meshgrid, xy": two(lambda lib, x, y: tuple(lib.xp.meshgrid(x, y)), (2,), (3,), oracle=False),
    "pad": one(pad, oracle=False),
    "tril": one(lambda lib, x: lib.xp.tril(x, k=-1), 2, 3, 3, complex=True),
    "triu": one(lambda lib, x: lib.xp.triu(x, k=1), 3, 3),
    # Keys.
    "x[1]": one(lambda lib, x: x[1], complex=True),
    "x[:, 1:]": one(lambda lib, x: x[:, 1:] * x[:, :-1], complex=True),
    "x[..., None, ::2]": one(lambda lib, x: x[..., None, ::2], 2, 5),
    "x[0, 1]": one(lambda lib, x: x[0, 1] * x[-1, -1]),
    "x[i]": one(lambda lib, x: x[lib.indices([1, 0, 1, -1])], complex=True),
    "x[:, i]": one(lambda lib, x: x[:, lib.indices([2, 0, 2])]),
    "x[i, j]": one(lambda lib, x: x[lib.indices([1, 0, 1]), lib.indices([2, 0, 2])]),
    "x[i, :, j]": one(lambda lib, x: x[lib.indices([1, 0, 1]), :, lib.indices([1, 0, 1])], 2, 3, 2),
    "x[i[:, None], j]": one(lambda lib, x: x[lib.indices([[1], [0]]), lib.indices([2, 0, 2])]),
    "x[mask]": one(lambda lib, x: x[lib.constant([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]) > 0.5]),
    "take": one(lambda lib, x: lib.xp.take(x, lib.indices([2, 0, 2, 1]), axis=1), complex=True),
    "take, first axis": one(lambda lib, x: lib.xp.take(x, lib.indices([1, 1]), axis=0)),
    "take_along_axis, broadcast": one(lambda lib, x: lib.xp.take_along_axis(x, lib.indices([[2, 0]]), axis=1)),
    "take_along_axis": one(lambda lib, x: lib.xp.take_along_axis(x, lib.indices([[2, 0], [1, 1]]), axis=1), complex=True),
    # Writes.
    "y[0] = v": two(lambda lib, x, v: write_key(lib, x, 0, v), (2, 3), (3,), complex=True),
    "y[:, 1:] = v": two(lambda lib, x, v: write_key(lib, x, (slice(None), slice(1, None)), v), (2, 3), (2, 2)),
    "y[..., ::2] = v": two(lambda lib, x, v: write_key(lib, x, (..., slice(None, None, 2)), v), (2, 3), (1, 2)),
    "y[i] = v": two(lambda lib, x, v: write_key(lib, x, lib.indices([2, 0]), v), (3, 2), (2, 2), complex=True),
    "y[i] = v, more axes": two(lambda lib, x, v: write_key(lib, x, lib.indices([2, 0]), v), (3, 2), (1, 2, 2)),
    "y[None, 1:] = v": two(lambda lib, x, v: write_key(lib, x, (None, slice(1, None)), v), (3, 2), (2, 2)),
    "y[i, 1:] = v": two(lambda lib, x, v: write_key(lib, x, (lib.indices([2, 0]), slice(1, None)), v), (3, 2), (2, 1)),
    "y[mask] = v": two(lambda lib, x, v: write_key(lib, x, lib.constant([1.0, 0.0, 1.0]) > 0.5, v), (3, 2), (2,)),
    "y[1] = scalar": one(lambda lib, x: write_key(lib, x, 1, 0.5)),
    # No axes, and no elements.
    "0-d": two(lambda lib, x, y: lib.xp.sin(x) * y + lib.xp.sum(x) * lib.xp.max(y) + lib.xp.reshape(x, (1,))[0], (), ()),
    "0-d, keys": one(lambda lib, x: x[...] * x[()] * lib.xp.expand_dims(x, axis=0), domain=signed).at(()),
    "empty": one(lambda lib, x: lib.xp.sum(lib.xp.exp(x), axis=0) + lib.xp.prod(x, axis=0) + 1.0).at((0, 3)),
    "empty, joined": two(lambda lib, x, y: lib.xp.concat([x, y], axis=0) * 2.0, (0, 3), (2, 3)),
    "empty, products": two(lambda lib, x, y: lib.xp.matmul(x, y), (2, 0), (0, 3)),
    "empty, running": one(lambda lib, x: lib.xp.cumulative_sum(x, axis=1) + lib.xp.flip(x, axis=0)).at((2, 0)),
    "empty, running products": one(lambda lib, x: lib.xp.cumulative_prod(x, axis=1) * 2.0).at((2, 0)),
    # Products.
    "matmul": two(call_by_name("matmul"), (2, 3), (3, 4), complex=True),
    "matmul, a column": two(call_by_name("matmul"), (2, 3), (3,), complex=True),
    "matmul, a row": two(call_by_name("matmul"), (3,), (3, 2), complex=True),
    "matmul, vectors": two(call_by_name("matmul"), (3,), (3,), complex=True),
    "matmul, stacks": two(call_by_name("matmul"), (2, 1, 2, 3), (2, 3, 2), complex=True),
    "matmul, a stack and a column": two(call_by_name("matmul"), (2, 2, 3), (3,)),
    "matmul, a row and a stack": two(call_by_name("matmul"), (2,), (2, 2, 3)),
    "tensordot": two(lambda lib, x, y: lib.xp.tensordot(x, y, axes=1), (2, 3), (3, 2), complex=True),
    "tensordot, axes": two(lambda lib, x, y: lib.xp.tensordot(x, y, axes=((0, 1), (1, 0))), (2, 3, 2), (3, 2)),
    "vecdot": two(lambda lib, x, y: lib.xp.vecdot(x, y), (2, 3), (3,), complex=True),
    "vecdot, an axis": two(lambda lib, x, y: lib.xp.vecdot(x, y, axis=-2), (3, 2), (3, 1)),
    "einsum": two(lambda lib, x, y: lib.xp.einsum("ij,kj->ik", x, y), (2, 3), (2, 3), complex=True),
    "einsum, implicit": two(lambda lib, x, y: lib.xp.einsum("ca,ab", x, y), (2, 3), (3, 2)),
    "einsum, three": two(lambda lib, x, y: lib.xp.einsum("ij,jk,kl->il", x, y, x), (2, 3), (3, 2)),
    "einsum, three, an index in all": two(lambda lib, x, y: lib.xp.einsum("ij,ij,jk->k", x, y, x.T), (2, 3), (2, 3)),
    "einsum, a number": two(lambda lib, x, y: lib.xp.einsum("ab,ab->", x, y), (2, 3), (2, 3)),
    "astype": one(lambda lib, x: lib.xp.astype(x, x.dtype) * lib.xp.astype(x, x.dtype, copy=False)),
    "einsum, a trace": one(lambda lib, x: lib.xp.einsum("iij->j", x), 2, 2, 3),
    # Linear algebra.
    "cholesky": one(lambda lib, x: lib.xp.linalg.cholesky(symmetrise(lib, x)), 3, 3, domain=definite),
    "cholesky, upper": one(lambda lib, x: lib.xp.linalg.cholesky(symmetrise(lib, x), upper=True), 2, 2, 2, domain=definite),
    "cross": two(lambda lib, x, y: lib.xp.linalg.cross(x, y), (2, 3), (2, 3), complex=True),
    "cross, first axis": two(lambda lib, x, y: lib.xp.linalg.cross(x, y, axis=0), (3, 2), (3, 2)),
    "det": one(call_by_name("linalg.det"), 2, 2, 2, domain=definite, complex=True),
    "det, 3 x 3": one(call_by_name("linalg.det"), 3, 3, domain=definite),
    "diagonal": one(lambda lib, x: lib.xp.linalg.diagonal(x, offset=1), 2, 3, 4, complex=True),
    "diagonal, below": one(lambda lib, x: lib.xp.linalg.diagonal(x, offset=-1), 3, 2),
    "eigh, Hermitian": one(
        lambda lib, x: (lambda values, vectors: (values, abs(vectors)))(*lib.xp.linalg.eigh(x + lib.xp.conj(lib.xp.matrix_transpose(x)))),
        3, 3, domain=definite, complex=True,
    ),
    "eigvals": one(lambda lib, x: lib.xp.sum(lib.xp.real(lib.xp.linalg.eigvals(x) ** 3)), 2, 3, 3, domain=definite, complex=True),
    "eig": one(sum_of_eigen_pairs, 3, 3, domain=definite, complex=True),
    "eigh": one(lambda lib, x: (lib.xp.linalg.eigh(symmetrise(lib, x))[0], abs(lib.xp.linalg.eigh(symmetrise(lib, x))[1])), 3, 3,
                domain=definite),
    "eigvalsh": one(lambda lib, x: lib.xp.linalg.eigvalsh(symmetrise(lib, x)), 2, 2, 2, domain=definite),
    "inv": one(call_by_name("linalg.inv"), 2, 2, 2, domain=definite, complex=True),
    "matrix_norm": one(call_by_name("linalg.matrix_norm"), 2, 3, complex=True),
    **{f"matrix_norm, {p}": one(lambda lib, x, p=p: lib.xp.linalg.matrix_norm(x, ord=p), 2, 3, domain=definite)
       for p in ("nuc", 1, -1, 2, -2, np.inf, -np.inf)},
    "matrix_norm, kept": one(lambda lib, x: lib.xp.linalg.matrix_norm(x, keepdims=True), 2, 2, 3),
    **{f"matrix_power, {n}": one(lambda lib, x, n=n: lib.xp.linalg.matrix_power(x, n), 2, 2, domain=definite) for n in (1, 3, -2)},
    "outer": two(call_by_name("linalg.outer"), (2,), (3,), complex=True),
    "pinv": one(call_by_name("linalg.pinv"), 3, 2, domain=definite),
    "pinv, wide": one(call_by_name("linalg.pinv"), 2, 3, domain=definite),
    "qr": one(lambda lib, x: tuple(lib.xp.linalg.qr(x)), 3, 2, domain=definite),
    "qr, square": one(lambda lib, x: tuple(lib.xp.linalg.qr(x)), 2, 2, 2, domain=definite),
    "qr, wide": one(lambda lib, x: tuple(lib.xp.linalg.qr(x)), 2, 3, domain=definite),
    "slogdet": one(lambda lib, x: lib.xp.linalg.slogdet(x)[1], 2, 2, 2, domain=definite, complex=True),
    "slogdet, the sign": one(
        lambda lib, x: lib.xp.linalg.slogdet(x)[0] * lib.xp.sum(x), 2, 2, 2, domain=definite, complex=True
    ),
    "slogdet, put together": one(
        lambda lib, x: (lambda sign, log: sign * lib.xp.exp(log) + log)(*lib.xp.linalg.slogdet(x)), 2, 2, 2, domain=definite, complex=True
    ),
    "solve": two(call_by_name("linalg.solve"), (2, 2), (2, 3), definite, signed, complex=True),
    "solve, a vector": two(call_by_name("linalg.solve"), (2, 2), (2,), definite, signed),
    "solve, stacks": two(call_by_name("linalg.solve"), (2, 2, 2), (2, 3), definite, signed),
    "svd": one(lambda lib, x: (lambda u, s, v: (s, abs(u), abs(v)))(*lib.xp.linalg.svd(x, full_matrices=False)), 3, 2, domain=definite),
    "svd, wide": one(lambda lib, x: (lambda u, s, v: (s, abs(u), abs(v)))(*lib.xp.linalg.svd(x, full_matrices=False)), 2, 3,
                     domain=definite),
    # NB: PyTorch cannot compute batches of these gradients.
    "svd, a part": one(lambda lib, x: abs(lib.xp.linalg.svd(x, full_matrices=False)[0]), 3, 2, domain=definite, complex=True, oracle=False),
    "svd, another part": one(lambda lib, x: abs(lib.xp.linalg.svd(x, full_matrices=False)[2]), 2, 3, domain=definite, complex=True,
                             oracle=False),
    "svd, full": one(lambda lib, x: (lambda u, s, v: (s, abs(u[:, :2]), abs(v)))(*lib.xp.linalg.svd(x)), 3, 2, domain=definite),
    "svdvals": one(call_by_name("linalg.svdvals"), 2, 3, domain=definite),
    "trace": one(lambda lib, x: lib.xp.linalg.trace(x), 2, 3, 3, complex=True),
    "trace, offset": one(lambda lib, x: lib.xp.linalg.trace(x * x, offset=1), 3, 3, oracle=False),
    "vector_norm": one(call_by_name("linalg.vector_norm"), complex=True),
    **{f"vector_norm, {p}": one(lambda lib, x, p=p: lib.xp.linalg.vector_norm(x, ord=p, axis=1), 2, 3)
       for p in (1, 3, 0.5, -1, np.inf, -np.inf)},
    "vector_norm, axes": one(lambda lib, x: lib.xp.linalg.vector_norm(x, axis=(0, 2), keepdims=True), 2, 3, 2),
    # Fourier transforms.
    **{f"fft.{name}": one(lambda lib, x, name=name: getattr(lib.xp.fft, name)(x), 2, 4, complex=not name.startswith("r"))
       for name in ("fft", "ifft", "rfft")},
    **{f"fft.{name}, padded": one(lambda lib, x, name=name: getattr(lib.xp.fft, name)(x, n=5, axis=0, norm="ortho"), 4, 2)
       for name in ("fft", "ifft", "rfft")},
    **{f"fft.{name}, cut": one(lambda lib, x, name=name: getattr(lib.xp.fft, name)(x, n=3, norm="forward"), 2, 4)
       for name in ("fft", "ifft", "rfft")},
    "fft.irfft": one(lambda lib, x: lib.xp.fft.irfft(x * (1.0 + 0.5j)), 2, 4, complex=True),
    "fft.irfft, odd": one(lambda lib, x: lib.xp.fft.irfft(x * (1.0 + 0.5j), n=5, norm="ortho"), 2, 4),
    "fft.hfft": one(lambda lib, x: lib.xp.fft.hfft(x * (1.0 + 0.5j)), 2, 4),
    "fft.ihfft": one(lambda lib, x: lib.xp.fft.ihfft(x, norm="forward"), 2, 4),
    "fft.fftn": one(lambda lib, x: lib.xp.fft.fftn(x, axes=(0, 1)), 2, 3, complex=True),
    "fft.ifftn": one(lambda lib, x: lib.xp.fft.ifftn(x, s=(3, 2), axes=(0, 1)), 2, 3),
    "fft.rfftn": one(lambda lib, x: lib.xp.fft.rfftn(x, axes=(0, 1)), 3, 4),
    "fft.irfftn": one(lambda lib, x: lib.xp.fft.irfftn(x * (1.0 + 0.5j), axes=(0, 1)), 3, 3),
    "fft.fftn, all": one(lambda lib, x: lib.xp.fft.fftn(x, norm="ortho"), 2, 3, 2),
    "fft.rfftn, s": one(lambda lib, x: lib.xp.fft.rfftn(x, s=(3, 2, 5), axes=(0, 1, 2)), 2, 3, 4),
    "fft.irfftn, s": one(lambda lib, x: lib.xp.fft.irfftn(x * (1.0 + 0.5j), s=(3, 2, 5), axes=(0, 1, 2), norm="forward"), 2, 3, 3),
    "fft.fftshift": one(lambda lib, x: lib.xp.fft.fftshift(x, axes=1), 2, 5, complex=True),
    "fft.ifftshift": one(lambda lib, x: lib.xp.fft.ifftshift(x), 2, 5),
    # More positions, shapes and forms. NB: PyTorch does not say which of two writes to one element counts.
    "fft.fftshift, no axes": one(lambda lib, x: lib.xp.fft.fftshift(x, axes=()) * x, oracle=False),
    "fft.fft, one": one(lambda lib, x: lib.xp.fft.fft(x, n=1, axis=0)),
    "fft.irfft, one": one(lambda lib, x: lib.xp.fft.irfft(x * (1.0 + 0.5j), n=1)),
    "y[i] = v, twice": two(lambda lib, x, v: write_key(lib, x, lib.indices([2, 0, 2]), v), (3, 2), (3, 2), oracle=False),
    "y[:, i] = v, twice": two(lambda lib, x, v: write_key(lib, x, (slice(None), lib.indices([1, 1, 0])), v), (3, 2), (3,), oracle=False),
    "y[i, j] = v": two(lambda lib, x, v: write_key(lib, x, (lib.indices([2, 0]), lib.indices([1, 0])), v), (3, 2), (2,)),
    "y[i, :, j] = v": two(lambda lib, x, v: write_key(lib, x, (lib.indices([2, 0]), slice(None), lib.indices([1, 0])), v), (3, 4, 2),
                          (2, 4), oracle=False),
    "y[whole mask] = v": two(lambda lib, x, v: write_key(lib, x, lib.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]) > 0.5, v), (3, 2), (3,),
                             oracle=False),
    "cross, stretched": two(lambda lib, x, y: lib.xp.linalg.cross(x, y), (2, 1, 3), (4, 3), oracle=False),
    "cross, a middle axis": two(lambda lib, x, y: lib.xp.linalg.cross(x, y, axis=1), (2, 3, 2), (2, 3, 2)),
    "where, stretched": two(lambda lib, x, y: lib.xp.where(lib.constant([[1.0], [0.0]]) > 0.5, x, y), (3,), (2, 1)),
    "take_along_axis, stretched": one(lambda lib, x: lib.xp.take_along_axis(x, lib.indices([[[1, 0, 1]]]), axis=2), 2, 2, 2, oracle=False),
    "vector_norm, the smallest": one(lambda lib, x: lib.xp.linalg.vector_norm(x, ord=-(10**400) if lib.xp is not np else -np.inf),
                                     oracle=False),
    "svd, full, wide": one(lambda lib, x: (lambda u, s, v: (s, abs(u), abs(v[:2])))(*lib.xp.linalg.svd(x)), 2, 3, domain=definite),
}  # fmt: skip


#: Cases that PyTorch 2.13 refuses under `vmap`, or whose shapes it gets wrong there.
UNBATCHED = frozenset((
    "sign", "clip, arrays", "clip, arrays of more axes", "moveaxis", "unstack", "vecdot", "vecdot, an axis", "solve, stacks", "fft.ifft",
    "fft.ifft, padded", "fft.ifft, cut", "fft.ihfft",
))  # fmt: skip


@functools.cache
def all_cases() -> dict[str, Case]:
    """Return every case by its name."""
    there = {name: elementwise(name) for name in elementwise_domains()}
    back = {f"{name}, the other way": elementwise(name).at((3,), (2, 3)) for name in binary()}
    return {**there, **back, **axis_cases(), **FURTHER}


def cases(lib: Any, complex_too: bool = False, batched: bool = False) -> Iterator[tuple[str, Case]]:
    """Yield the name and the case of each function that a library must pass, as far as its capabilities go.

    Parameters
    ----------
    lib : Library
        The library that runs the cases.
    complex_too : bool, optional
        Yield only cases that take complex operands.
    batched : bool, optional
        Leave out cases that PyTorch cannot run under `vmap`.
    """
    # NB: a lazy library recomputes everything for each value that is read, and one that compiles does so for each function and shape:
    # they run one case in twelve, and different ones for complex operands.
    slow = lib.capabilities["lazy"] or lib.capabilities["jit"]
    for k, (name, case) in enumerate(all_cases().items()):
        if slow and k % 12 != 6 * complex_too:
            continue
        if lib.oracle and (not case.oracle or (case.function and not hasattr(lib.xp, case.function)) or (batched and name in UNBATCHED)):
            continue
        if complex_too and not case.complex:
            continue
        if name.startswith("fft.") and not lib.capabilities["fft"]:
            continue
        if not lib.capabilities["complex"] and (complex_too or name in ("eig", "eigvals") or name.startswith(("fft.", "real", "imag"))):
            continue
        if "twice" in name and not lib.capabilities["deterministic_scatter"]:
            continue
        if "mask]" in name and not (lib.capabilities["boolean_indexing"] and lib.capabilities["data_dependent_shapes"]):
            continue
        yield name, case


def as_list(out: Any) -> list[Any]:
    """Return the result or the results of a function as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def weights(shape: Sequence[int], start: float) -> np.ndarray[Any, Any]:
    """Return fixed weights of a shape, different for each element."""
    return np.cos(start + np.arange(int(np.prod(shape)))).reshape(tuple(shape))


def scalar_loss(lib: Any, out: Any) -> Any:
    """Return a scalar loss that depends smoothly and not linearly on all results, for tests to differentiate."""
    xp, total = lib.xp, 0.0
    for k, y in enumerate(as_list(out)):
        parts = [xp.real(y), xp.imag(y)] if is_complex(y) else [y]
        for j, part in enumerate(parts):
            total = total + xp.sum((part + 0.3 * part * part) * lib.constant(weights(part.shape, 1.0 + k + 5 * j)))
    return total


def is_complex(x: Any) -> bool:
    """Return whether an array of any library is complex."""
    return "complex" in str(x.dtype)


def central_differences(call: Callable[..., Any], points: Sequence[Any], i: int, direction: Any) -> Any:
    """Return the derivatives of NumPy's results along a direction in the i-th operand, by central differences."""
    ahead, behind = ([x + s * STEP * direction if j == i else x for j, x in enumerate(points)] for s in (1, -1))
    one, other = as_list(call(Reference, *ahead)), as_list(call(Reference, *behind))
    return [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(one, other, strict=True)]
