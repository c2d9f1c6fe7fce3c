"""The jvp of an operation: from the reverse formulas of its row, or from the row's `jvp`.

Everything runs on Tensors, at the levels outside the one whose tangents are computed, so that tangents have tangents and a history.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._modes import state
from xpgrad._rows.namespace import PRIMITIVES, operations
from xpgrad._rows.row import Row
from xpgrad._transforms.batch.batch import raise_to_common
from xpgrad._transforms.small_pass import nodes_between, run_pass
from xpgrad.rules.creation import zeros_like


def of_dtype(t: Any, like: Any) -> Any:
    """Cast a tangent to the dtype of another Tensor; None stays None."""
    return t if t is None or t._array.dtype is like._array.dtype or t.dtype is like.dtype else PRIMITIVES["cast"](t, like.dtype)


@functools.cache
def _choose_manner(row: Row) -> str:
    """Return how the tangents of a row's operation are computed."""
    if row.jvp is not None:
        return "given"
    if row.elementwise:
        return "elementwise"
    variables = {"out", *row.tensors}
    reads = [variables.intersection(r) for r in row.reads]
    if not any(reads):
        return "linear"
    if len(reads) > 1 and None not in row.formulas and all(r == variables - {"out", t} for r, t in zip(reads, row.tensors)):
        return "multilinear"
    return "transposed"


def jvp_of(row: Row, operands: Sequence[Any], tangents: list[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> Sequence[Any]:
    """Return the tangents of an operation's outputs.

    If the row has a jvp, it is used. An elementwise formula is linear in ``g`` and diagonal, so it is also the jvp. A row whose formulas
    read no operand is linear: the operation itself is applied to the tangents. If each formula reads all other operands and nothing else,
    the operation is linear in each operand. In all other cases the vjp, which is linear in ``g``, is transposed.
    """
    manner = _choose_manner(row)
    if manner == "transposed":
        return _transpose_vjp(row, operands, tangents, statics, outs)
    if manner == "elementwise":
        return (_elementwise(row, operands, tangents, statics, outs[0]),)
    if manner == "given":
        known = {f"d_{name}": t for name, t in zip(row.tensors, tangents)}
        found = row.jvp(*(known[n] if n in known else _read(n, row, operands, statics, outs) for n in row.jvp_reads))  # type: ignore[misc]
        return as_tuple(found)
    if manner == "linear":
        full = []
        for x, t, formula in zip(operands, tangents, row.formulas * len(operands) if row.varargs else row.formulas):
            full.append(t if t is not None else x if formula is None else zeros_like(x))
        return as_tuple(_apply(row, full, statics))
    total: Any = None
    for i, t in enumerate(tangents):
        if t is not None:
            term = _apply(row, [t if j == i else x for j, x in enumerate(operands)], statics)
            total = term if total is None else total + term
    return (total,)


def as_tuple(found: Any) -> tuple[Any, ...]:
    """Return a tuple unchanged and any other value as a tuple of one."""
    return found if found.__class__ is tuple else (found,)


def _apply(row: Row, operands: list[Any], statics: tuple[Any, ...]) -> Any:
    if row.varargs and any(x.__class__ is not operands[0].__class__ for x in operands):
        operands = raise_to_common(operands)  # some tangents may be elements of a batch while the zeros for others are not
    op = getattr(operands[0], row.method)
    return op(operands, *statics) if row.varargs else op(*operands[1:], *statics)


def _read(name: str, row: Row, operands: Sequence[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    """Return the value of a name that a formula reads, as Tensors: an operand, a static argument, the output, a shape or a dtype."""
    if name == "xp":
        return operations
    if name in row.statics:
        return statics[row.statics.index(name)]
    if name == "out":
        return outs if row.outputs is not None else outs[0]
    if name == "out_shape":
        return _shape(outs[0])
    if row.varargs:
        return [_shape(x) for x in operands] if name.endswith("_shape") else operands
    if name in row.tensors:
        return operands[row.tensors.index(name)]
    tensor, _, what = name.rpartition("_")
    x = operands[row.tensors.index(tensor)]
    return _shape(x) if what == "shape" else x.dtype


def _shape(x: Any) -> Any:
    return x.backend.operand_shape(x._array)


def _formula(row: Row, i: int, g: Any, operands: Sequence[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    known = row.tensors
    return row.formulas[i](
        *[
            g if n == "g" else operands[known.index(n)] if n in known and not row.varargs else _read(n, row, operands, statics, outs)
            for n in row.reads[i]
        ]
    )


def _elementwise(row: Row, operands: Sequence[Any], tangents: list[Any], statics: tuple[Any, ...], out: Any) -> Any:
    total: Any = None
    for i, t in enumerate(tangents):
        if t is None or row.formulas[i] is None:
            continue
        g = t if t.shape == out.shape else PRIMITIVES["broadcast_view"](t, out.shape)
        term = _formula(row, i, g, operands, statics, (out,))
        total = term if total is None else total + term
    return total.clone() if total is not None and total._is_view() else total


def _transpose_vjp(
    row: Row, operands: Sequence[Any], tangents: list[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]
) -> Sequence[Any]:
    """Transpose the vjp by differentiating it with respect to a dummy gradient.

    This is exact because the vjp is linear, if only over the reals for complex operands.
    """
    start = next_number()
    places = [k for k, o in enumerate(outs) if o.dtype.differentiable and k not in row.nondiff]
    # NB: this is recorded even under `no_grad`, and without the user's hooks on saved Tensors, because the graph is internal.
    before = state.current()
    try:
        state.put(state.mode_with(recording=True, packing=None, anomaly=None))
        dummies = {k: zeros_like(outs[k]).requires_grad_() for k in places}
        conj = row.conj and row.outputs is None and outs[0].dtype.is_complex
        xp = operations
        g: Any = [dummies.get(k) for k in range(len(outs))] if row.outputs is not None else dummies[0]
        if conj:
            g = xp.conj(g)
        roots, seeds = [], []
        for i, t in enumerate(tangents):
            if t is None or row.formulas[i] is None:
                continue
            v = _formula(row, i, g, operands, statics, outs)
            if v is not None:
                roots.append(xp.conj(v) if conj else v)
                seeds.append(t)
    finally:
        state.put(before)
    found = dict(zip(places, _pull(roots, seeds, list(dummies.values()), start)))
    return [found.get(k) if found.get(k) is not None or k not in places else zeros_like(o) for k, o in enumerate(outs)]


def _pull(roots: list[Any], seeds: list[Any], targets: list[Any], start: int) -> list[Any]:
    """Return the gradients of `roots` with respect to `targets`, leaves that are newer than the creation number `start`.

    Only nodes newer than `start` are used, because another pass may be using the fields of older ones.
    """
    wanted = [t._node for t in targets]
    order, needed = nodes_between([r._node for r in roots if r._node is not None], wanted, start=start)
    started = [(r._node, of_dtype(seed, r)) for r, seed in zip(roots, seeds) if r._node in needed]

    def step(node: Any, g: Any, add: Any) -> None:
        for e, v in zip(node.edges(), node.graph_grads(g)):
            if v is not None and e in needed:
                add(e, v)

    mark = object()
    for node in needed:
        node.buffer = mark  # `graph_grads` computes gradients for marked nodes only
    try:
        return run_pass(order, [node for node, _ in started], [seed for _, seed in started], wanted, step)
    finally:
        for node in needed:
            node.buffer = None
