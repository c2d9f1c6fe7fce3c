"""Batches of gradients in one backward pass that is not recorded: the formulas run on plain arrays with the batch as first axis.

The rules are those for Tensors, at a fraction of the cost. A pass that needs more than formulas (hooks, custom Functions, tangents,
anomaly checks) runs on Tensors instead.
"""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.windows import MUTATION_WINDOWS, check_windows
from xpgrad._modes import state
from xpgrad._modes.batch_levels import BatchLevel
from xpgrad._operations.lists import VarNode
from xpgrad._tape.edges import GradientEdge, node_of, output_edge
from xpgrad._tape.node import SlotNode, freed_error
from xpgrad._tape.saved import check_version
from xpgrad._tape.task import has_seen_complex
from xpgrad._transforms.batch import bands as _bands  # noqa: F401 (registers the rules that keep bands)
from xpgrad._transforms.batch.batch import BatchBackend
from xpgrad._transforms.batch.plain import PlainBatch, PlainRulebook
from xpgrad._transforms.small_pass import nodes_between, run_pass
from xpgrad.rules.creation import zeros


class PlainBackend(BatchBackend):
    """The kernels for plain arrays with the batch as first axis, for one ordinary Tensor class."""

    rulebook = PlainRulebook
    array = PlainBatch

    def raw_dtype(self, dtype: Any) -> Any:
        return self.inner.backend.raw_dtype(dtype)

    def find_dtype(self, name: str) -> Any:
        return self.inner.backend.find_dtype(name)

    def dtype_of(self, raw: Any) -> Any:
        return self.inner.backend.dtype_of(raw)

    def is_complex(self, x: Any) -> bool:
        return bool(self.inner.backend.is_complex(x._value if x.band is None else x.band))

    def is_traced(self, x: Any) -> bool:
        return bool(self.inner.backend.is_traced(x.value))


_backends: dict[Any, PlainBackend] = {}


def plain_jacobian(output: Any, inputs: list[Any], *, alone: bool) -> list[Any] | None:
    """Return the Jacobians of an output with one axis, or None if they need more than formulas.

    Parameters
    ----------
    output : Tensor
    inputs : list of Tensor
    alone : bool
        Also return None if the output depends on another leaf that requires grad, because the Jacobian then needs a history.
    """
    own = {x._node for x in inputs}
    if alone and any(node is None or not node.is_leaf for node in own):
        return None
    found = plain_gradients([output], inputs, None, BatchLevel(output.shape[0]), retain=False, only=own if alone else None)
    if found is None or all(g is not None for g in found):
        return found
    return [zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device) if g is None else g for g, x in zip(found, inputs)]


def plain_gradients(
    outputs: list[Any], inputs: list[Any], seeds: list[Any] | None, level: BatchLevel, retain: bool, only: set[Any] | None = None
) -> list[Any] | None:
    """Return the gradients of `outputs` for each element of a batch of seeds, or None if they need more than formulas.

    Parameters
    ----------
    outputs, inputs : list of Tensor or GradientEdge
    seeds : list of Tensor, or None
        Of shape ``(level.size, *output.shape)`` and the outputs' dtypes; None for the rows of the identity, for one output with one axis.
    level : BatchLevel
    retain : bool
        Whether to keep the saved values.
    only : set, optional
        The nodes of the leaves on which the outputs may depend; None for any.

    Returns
    -------
    list of Tensor or None
        One per input, of shape ``(level.size, *input.shape)``; None if no gradient arrives.
    """
    mode = state.current()
    if mode is not None and (mode.anomaly or mode.packing is not None or mode.levels or mode.inference):
        return None
    roots = [output_edge(o) if isinstance(o, GradientEdge) else o._node for o in outputs]
    targets = [node_of(x) for x in inputs]
    if None in roots or None in targets:
        return None
    for output, node, seed in zip(outputs, roots, seeds or ()):
        meta = node.meta() if isinstance(output, GradientEdge) else (output.shape, output.dtype)
        if meta is None or meta[0] != seed.shape[1:] or meta[1] is not seed.dtype:
            return None  # the general path checks and casts the seed
    leaves: set[Any] = set()
    order, needed = nodes_between(roots, targets, leaves=leaves)
    if only is not None and not leaves <= only:
        return None
    if any(node.hooks is not None for node in needed) or not all(map(_is_formula, order)):
        return None
    cls = type((outputs if seeds is None else seeds)[0])
    if any(type(s) is not cls for s in seeds or ()) or cls.depth or cls.fresh is not None or cls.backend.capabilities.streams:
        return None
    backend = _backends.get(cls)
    if backend is None:
        backend = _backends[cls] = PlainBackend(cls)
    if any(node.backend is not cls.backend for node in order if node.__class__ is not SlotNode):
        return None
    if MUTATION_WINDOWS.get():
        check_windows(order)
    if seeds is None:
        (out,) = outputs
        ones = cls.backend.ones(out.shape, out.dtype, cls.device)
        seeds = [backend.raw.banded(ones, 0, level, out.shape)]
    found = _run(order, needed, roots, targets, seeds, level, retain, backend)
    auditing = None if mode is None else mode.auditing
    if auditing is None:
        return found
    return [g if g is None else auditing.record_leaving("autograd.grad", x, g) for x, g in zip(inputs, found)]


def _is_formula(node: Any) -> bool:
    """Return whether a node only evaluates its row's formulas, or passes a gradient to the operation that owns it."""
    if node.__class__ in _plans or node.__class__ is SlotNode:
        return True
    return bool(node.records and not node.packs and (hasattr(node, "mask") or isinstance(node, VarNode)))


def _run(
    order: list[Any], needed: set[Any], roots: list[Any], targets: list[Any], seeds: list[Any], level: BatchLevel, retain: bool,
    backend: Any,
) -> list[Any]:  # fmt: skip
    raw, kernels = backend.raw, backend.kernels

    def step(node: Any, g: Any, add: Any) -> None:
        if isinstance(node, VarNode):
            for e, v in zip(node.e, node.vjp(g, kernels)):
                if e is not None and v is not None and e in needed:
                    add(e, v)
        else:
            cls = node.__class__
            plan = _plans.get(cls)
            if plan is None:
                plan = _plans[cls] = _plan(node)
            turned = node.conjugates and has_seen_complex() and backend.is_complex(g)
            if turned:
                g = kernels.conj(g)
            for edge, formula, reads, broadcast in plan:
                e = getattr(node, edge)
                if e not in needed:
                    continue
                v = formula(*[g if r is None else kernels if r is _NAMESPACE else _read_saved(node, r, raw) for r in reads])
                if v is not None:
                    if turned:
                        v = kernels.conj(v)
                    if broadcast is not None:
                        v = kernels.sum_to(v, getattr(node, broadcast))
                    add(e, v)
        if not retain:
            node.release()

    batches = [seed if seed.__class__ is raw else raw(seed._array, level) for seed in seeds]
    results = []
    for g in run_pass(order, roots, batches, targets, step):
        results.append(None if g is None else backend.inner.backend.wrap(backend.rules.broadcast_batch(g, level)))
    return results


_NAMESPACE = object()
#: For each node class and each operand that requires grad: the name of its edge; the formula; what the formula reads (None for the
#: gradient, else the name, whether it is an array, and the attribute with its alias); and the attribute with the shape before broadcasting.
_plans: dict[type, list[tuple[str, Any, tuple[Any, ...], str | None]]] = {}


def _plan(node: Any) -> list[tuple[str, Any, tuple[Any, ...], str | None]]:
    row, mask = node.row, node.mask
    out = []
    for i, kind in enumerate(mask):
        if kind != "g":
            continue
        reads: list[Any] = []
        for name in row.reads[i]:
            if name == "g":
                reads.append(None)
            elif name == "xp":
                reads.append(_NAMESPACE)
            else:
                letter = mask[row.tensors.index(name)] if name in row.tensors else "s"
                reads.append((name, name == "out" or letter != "s", {"g": f"e_{name}", "c": f"c_{name}"}.get(letter)))
        broadcast = f"b_{row.tensors[i]}"
        out.append((f"e_{row.tensors[i]}", row.formulas[i], tuple(reads), broadcast if hasattr(node, broadcast) else None))
    return out


def _read_saved(node: Any, read: tuple[str, bool, str | None], raw: Any) -> Any:
    """Return a saved value as a formula reads it: checked, and wrapped as shared by all elements if it is an array."""
    name, is_array, holder = read
    value = getattr(node, name)
    if not is_array:
        return value
    if value is None:
        raise freed_error(node)
    alias = (node if holder is None else getattr(node, holder))._alias
    if alias is not None:
        check_version(node, name, alias)
    return tuple(raw(v, None) for v in value) if value.__class__ is tuple else raw(value, None)
