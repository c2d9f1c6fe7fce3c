"""Dependence through kernels that sum along axes: reductions, running sums, products of matrices, Fourier transforms, linear systems."""

from __future__ import annotations

from typing import Any

from xpgrad.func._sparse.dependence import Dependence, broadcast, by_places, gather_sets, union, union_along
from xpgrad.func._sparse.host import np
from xpgrad.func._sparse.layout_rules import nonzero
from xpgrad.func._sparse.propagation import Rule, Walk
from xpgrad.programs.program import Operation, Variable

_MANY_TERMS = 20_000_000  # terms of a product with a known matrix that are followed one by one


def _reduction(walk: Walk, operation: Operation) -> Dependence:
    x, *rest = operation.args
    axes = rest[0] if rest else operation.options.get("axis")
    found = union_along(walk.dependence_of(x), axes)
    return found.rearrange(found.which.reshape(operation.out.shape))


def _running(walk: Walk, operation: Operation) -> Dependence | None:
    """Return the dependence of ``running_sum(x, axis)``: element i depends on elements 0..i. None if that has too many terms."""
    x, axis = operation.args
    found = walk.dependence_of(x)
    lanes = np.moveaxis(np.arange(found.which.size).reshape(x.shape), axis, -1)
    n = lanes.shape[-1]
    if lanes.size * n > 2 * _MANY_TERMS:
        return None
    after, before = np.tril_indices(n)
    return gather_sets(found, lanes[..., after].reshape(-1), lanes[..., before].reshape(-1), x.shape)


def _mixed_along(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of a transform along one axis: each element depends on all elements along that axis."""
    x, *rest = operation.args
    axis = rest[1] if len(rest) > 1 else operation.options.get("axis", -1)
    return broadcast(union_along(walk.dependence_of(x), axis), operation.out.shape)


# -- products of matrices -------------------------------------------------------------------------------------------------


def _known_matrix(walk: Walk, v: Any, terms: int) -> Any:
    """Return where a two-dimensional factor is nonzero, if its values are known and it has zeros that are worth following; else None."""
    if v in walk.tracked or len(v.shape) != 2:
        return None
    value = walk.value(v)
    if value is None:
        return None
    kept = nonzero(value)
    count = int(np.count_nonzero(kept))
    return None if count == kept.size or count * terms > _MANY_TERMS else kept


def _through(x: Dependence, axis: int, kept: Any) -> Dependence:
    """Return the dependence of `x` times a matrix along an axis.

    ``kept[k, j]`` says that element `j` of the result depends on element `k`.
    """
    lanes = np.moveaxis(np.arange(x.which.size).reshape(x.which.shape), axis, -1).reshape(-1, kept.shape[0])
    shape = list(x.which.shape)
    shape[axis] = kept.shape[1]
    places = np.moveaxis(np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape), axis, -1).reshape(-1, kept.shape[1])
    k, j = np.nonzero(kept)
    return gather_sets(x, places[:, j].reshape(-1), lanes[:, k].reshape(-1), tuple(shape))


def _through_left(walk: Walk, a: Variable, b: Variable, full: tuple[int, ...]) -> Dependence:
    """Return the dependence of ``a @ b`` through `a`; `full` is the shape of the result with both of its last axes."""
    x = walk.dependence_of(a)
    x = x if len(a.shape) > 1 else x.rearrange(x.which.reshape(1, -1))
    kept = _known_matrix(walk, b, x.which.size // max(b.shape[0], 1))
    return broadcast(union_along(x, -1) if kept is None else _through(x, x.which.ndim - 1, kept), full)


def _through_right(walk: Walk, a: Variable, b: Variable, full: tuple[int, ...]) -> Dependence:
    """Return the dependence of ``a @ b`` through `b`."""
    x = walk.dependence_of(b)
    x = x if len(b.shape) > 1 else x.rearrange(x.which.reshape(-1, 1))
    kept = _known_matrix(walk, a, x.which.size // max(a.shape[-1], 1))
    return broadcast(union_along(x, -2) if kept is None else _through(x, x.which.ndim - 2, kept.T), full)


def _matmul(walk: Walk, operation: Operation) -> Dependence:
    a, b = operation.args[:2]
    shape = operation.out.shape
    full = shape if len(b.shape) > 1 else (*shape, 1)
    full = full if len(a.shape) > 1 else (*full[:-1], 1, full[-1])
    parts = [side(walk, a, b, full) for side, v in ((_through_left, a), (_through_right, b)) if v in walk.tracked]
    found = parts[0] if len(parts) == 1 else union(*parts)
    return found.rearrange(found.which.reshape(shape))


def _vecdot(walk: Walk, operation: Operation) -> Dependence:
    a, b, *rest = operation.args
    axis = rest[0] if rest else operation.options.get("axis", -1)
    shape = np.broadcast_shapes(a.shape, b.shape)
    found: Dependence | None = None
    for v in (a, b):
        if v in walk.tracked:
            x = broadcast(walk.dependence_of(v), shape)
            found = x if found is None else union(found, x)
    assert found is not None
    found = union_along(found, axis)
    return found.rearrange(found.which.reshape(operation.out.shape))


def _outer(walk: Walk, operation: Operation) -> Dependence:
    a, b = operation.args
    found = [(walk.dependence_of(v), shape) for v, shape in ((a, (-1, 1)), (b, (1, -1))) if v in walk.tracked]
    parts = [broadcast(x.rearrange(x.which.reshape(shape)), operation.out.shape) for x, shape in found]
    return parts[0] if len(parts) == 1 else union(*parts)


def _cross(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of a cross product: each component depends on the two others of both operands."""
    axis = operation.args[2] if len(operation.args) > 2 else operation.options.get("axis", -1)
    found: Dependence | None = None
    for v in operation.args[:2]:
        if v in walk.tracked:
            x = broadcast(walk.dependence_of(v), operation.out.shape)
            one = union(x.rearrange(np.roll(x.which, 1, axis)), x.rearrange(np.roll(x.which, 2, axis)))
            found = one if found is None else union(found, one)
    assert found is not None
    return found


def _solve(walk: Walk, operation: Operation) -> Dependence | None:
    """Return the dependence of ``solve(a, b)``: a column depends on all of that column of `b`. None if `a` depends on the input."""
    a, b, *_ = operation.args
    if a in walk.tracked:
        return None
    return broadcast(union_along(walk.dependence_of(b), -1 if len(b.shape) == 1 else -2), operation.out.shape)


def _sparse_product(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of a product with a sparse matrix: an element depends on the factors of the products that it adds up."""
    entries, x, key, _ = operation.args
    rows, columns = (walk.value(part) for part in key)
    shape = operation.out.shape
    each = (*shape[:-2], len(rows), shape[-1])
    parts = []
    if entries in walk.tracked:
        parts.append(broadcast(walk.dependence_of(entries), each))
    if x in walk.tracked:
        found = walk.dependence_of(x)
        parts.append(broadcast(found.rearrange(found.which[..., columns, :]), each))
    places = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)[..., rows, :]
    return by_places(parts[0] if len(parts) == 1 else union(*parts), places, shape)


RULES_OF_KINDS: dict[str, Rule] = {"reduction": _reduction, "transform": _mixed_along}

RULES: dict[str, Rule] = {
    "running_sum": _running, "matmul": _matmul, "linalg.matmul": _matmul,
    "vecdot": _vecdot, "linalg.vecdot": _vecdot, "linalg.outer": _outer, "linalg.cross": _cross, "linalg.solve": _solve,
    "special_sparse_product": _sparse_product, "special_sparse_solution": _solve,
}  # fmt: skip
