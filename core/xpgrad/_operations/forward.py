"""From rows to what runs: generates, per backend and at first use, the implementation of an operation on Tensors.

The text does an operation's duties on the way forward (one class and one dtype, recording, views); what runs backward is in
`_nodeclass`, and the rare cases are in `_coerce` and `_saved`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from xpgrad._basics.keys import backwards
from xpgrad._memory.cells import View, alias_of, next_number, note_copy
from xpgrad._modes import state
from xpgrad._operations.backward import node_class
from xpgrad._operations.coerce import coerce, explain
from xpgrad._operations.lists import list_operation
from xpgrad._operations.source import Text
from xpgrad._rows.row import OPERATORS, Row
from xpgrad._tape.node import record_outputs
from xpgrad._tape.saved import check_saveable
from xpgrad.backend import Backend

__all__ = ["specialise", "trampoline"]


def _record(t: Text, row: Row, mask: str, broadcast: bool, scope: dict[str, Any], backend: Any) -> None:
    """Make and fill a node `n` from the locals: operands' raw arrays by name, Tensors `t_<name>`, edges `e_<name>`, `r`."""
    key = f"N_{mask}{'b' if broadcast else ''}"
    scope[key] = node_class(backend, row, mask, broadcast)
    t(f"n = new({key})")
    t("n.seq = number()")
    t("n.buffer = n.hooks = n._alias = None")
    if backend.capabilities.streams:
        t("n.stream = (cls, current_stream(cls.device))")
    kept, arrays = row.saved(mask), row.freeable(mask)
    shape = "{}.shape" if type(backend).operand_shape is Backend.operand_shape else "operand_shape({})"
    for name, m in zip(row.tensors, mask):
        if m == "g":
            t(f"n.e_{name} = e_{name}")
            if broadcast:
                t(f"n.b_{name} = {shape.format(name)}")
        elif m == "c" and name in arrays:
            with t.block(f"if t_{name}._alias is not None:"):
                t(f"check_saveable(t_{name})")
            t(f"n.c_{name} = t_{name}")
    for name in kept:
        if name == "out":
            t("n.out = r")
        elif name.endswith("_shape"):
            t(f"n.{name} = {shape.format('r' if name == 'out_shape' else name.removesuffix('_shape'))}")
        elif name.endswith("_dtype"):
            t(f"n.{name} = {name.removesuffix('_dtype')}.dtype")
        else:
            t(f"n.{name} = {name}")


def _compute(row: Row, backend: Any, names: tuple[str, ...]) -> str:
    """The expression of the forward computation."""
    if row.op and backend.operators and not row.statics:
        return f" {row.op} ".join(names) if len(names) > 1 else f"{row.op}{', '.join(names)}"
    return f"kernel({', '.join((*names, *row.statics))})"


def _op(t: Text, row: Row, backend: Any, scope: dict[str, Any], name: str, mask_of_scalars: str) -> None:
    """The implementation on Tensors (and on one Python scalar, where `mask_of_scalars` has an 's')."""
    names = row.tensors
    kinds = mask_of_scalars
    tensors = [n for n, k in zip(names, kinds) if k == "t"]
    first = tensors[0]
    # The Tensor comes first in the signature, also where it is the second operand.
    params = [f"t_{first}"] + [f"t_{n}" if k == "t" else n for n, k in zip(names, kinds) if n != first]
    diff = [f is not None for f in row.formulas]
    with t.block(f"def {name}({', '.join([*params, *row.statics])}):"):
        t(f"cls = t_{first}.__class__")
        others = [n for n in tensors if n != first]
        if others:
            with t.block("if " + " and ".join(f"t_{n}.__class__ is cls" for n in others) + ":"):
                for n in tensors:
                    t(f"{n} = t_{n}._array")
                conditions = []
                same = [names[i] for i in row.mixing]
                # NB: not every library has one object per dtype: NumPy has two for int64, array-api-strict makes them anew.
                conditions += [f"({same[0]}.dtype is {n}.dtype or {same[0]}.dtype == {n}.dtype)" for n in same[1:]]
                if row.guard:
                    conditions.append(row.guard)
                with t.block(f"if {' and '.join(conditions) or 'True'}:"):
                    _op_body(t, row, backend, scope, tensors, kinds, diff)
            if row.elementwise and len(names) == 2 and backend.weak_scalars:
                t(f"c = t_{others[0]}.__class__")
                with t.block("if c is float or c is int:"):
                    t(f"return sop(t_{first}, t_{others[0]})")
            t(f"return slow(ROW, t_{', t_'.join(tensors)}{''.join(', ' + s for s in row.statics)})")
        else:
            t(f"{first} = t_{first}._array")
            if row.guard:
                with t.block(f"if not ({row.guard}):"):
                    t(f"return slow(ROW, t_{first}{''.join(', ' + s for s in row.statics)})")
            if row.is_view and backend.array_type is not None:
                with t.block(f"if {first}.__class__ is not ARRAY:"):
                    t(f"{first} = own(t_{first})")
            _op_body(t, row, backend, scope, tensors, kinds, diff)


def _op_body(t: Text, row: Row, backend: Any, scope: dict[str, Any], tensors: list[str], kinds: str, diff: list[bool]) -> None:
    names = row.tensors
    if row.elementwise and len(tensors) > 1:
        with t.block("try:"):
            t(f"r = {_compute(row, backend, names)}")
        with t.block("except Exception as exc:"):
            t(f"raise explain(ROW, exc, {', '.join(tensors)})")
    else:
        t(f"r = {_compute(row, backend, names)}")
    multi = row.outputs is not None
    if multi:
        t("out = [None] * len(r)")
        with t.block("for k, q in enumerate(r):"):
            t("o = out[k] = new(cls)")
            t("o._array = q")
            t("o._alias = o._node = None")
        t("out = tuple(out)")
    else:
        t("out = new(cls)")
        t("out._array = r")
        t("out._alias = None")
    t("m = mode()")
    needy = [n for n, k, d in zip(names, kinds, diff) if k == "t" and d]
    attach = "record_outputs(n, out)" if multi else "out._node = n"
    if needy:
        with t.block("if m is None or m.recording:"):
            for n in needy:
                t(f"e_{n} = t_{n}._node")

            def branch(rest: list[str], chosen: dict[str, str]) -> None:
                if not rest:
                    mask = "".join(chosen.get(n, "c" if k == "t" else "s") for n, k in zip(names, kinds))
                    if "g" not in mask:
                        t("pass" if multi else "out._node = None")
                        return
                    if row.elementwise and len(tensors) > 1:
                        with t.block("if " + " == ".join(f"{n}.shape" for n in tensors) + ":"):
                            _record(t, row, mask, False, scope, backend)
                        with t.block("else:"):
                            _record(t, row, mask, True, scope, backend)
                    else:
                        _record(t, row, mask, False, scope, backend)
                    t(attach)
                    return
                with t.block(f"if e_{rest[0]} is not None:"):
                    branch(rest[1:], chosen | {rest[0]: "g"})
                with t.block("else:"):
                    branch(rest[1:], chosen)

            branch(needy, {})
        if not multi:
            with t.block("else:"):
                t("out._node = None")
    elif not multi:
        t("out._node = None")
    if row.is_view:
        copies = row.name == "index_basic" and backend.capabilities.mutable and not backend.capabilities.negative_step
        condition = f"if may_alias(r, {tensors[0]}):" if row.name == "reshape_to" else "if not backwards(key):" if copies else "if True:"
        with t.block(condition):
            _note_view(t, row, tensors[0])
        if copies:
            with t.block("else:"):
                t("note_copy(out)")
    with t.block("if m is not None and not m.plain:"):
        operands = "".join(f"t_{n}, " if k == "t" else f"{n}, " for n, k in zip(names, kinds))
        t(f"m.finish_operation(out, ROW, ({operands}), ({''.join(f'{s}, ' for s in row.statics)}))")
    t("return out")


def _note_view(t: Text, row: Row, parent: str) -> None:
    """Make `out` a view of the operand in the bookkeeping of versions (inference tensors, without a cell, have none)."""
    t(f"a = t_{parent}._alias")
    with t.block("if a is None:"):
        t(f"a = alias_of(t_{parent})")
    t("c = a.cell")
    with t.block("if c is not None:"):
        t("v = out._alias = new(View)")
        t(f"v.parent = t_{parent}")
        t("v.row = ROW")
        t(f"v.args = ({''.join(f'{s}, ' for s in row.statics)})")
        t("v.cell = c")
        t("v.forbidden = a.forbidden")
        with t.block("if out._node is not None:"):
            t("out._node._alias = c")
        with t.block("elif m is not None and not m.recording:"):
            t("v.forbidden = 'no_grad'")  # MUT-18: its history could not follow its base's
        t("c.views.append(ref(out))")
        with t.block("if len(c.views) > c.limit:"):
            t("c.forget()")
    with t.block("else:"):
        t("out._alias = a")  # INF-03: a part of an inference tensor may not be saved either


def specialise(row: Row, backend: Any) -> Callable[..., Any]:
    """Make the implementation of `row` on one backend, and put it on that backend's Tensor class."""
    cls = backend.tensor_base
    if row.varargs:
        op: Any = list_operation(row, backend)
        setattr(cls, row.method, op)
        return op
    scope: dict[str, Any] = {
        "new": object.__new__, "mode": state.current, "number": next_number, "kernel": getattr(backend.kernels, row.name, None),
        "slow": row.slow or coerce, "ROW": row, "record_outputs": record_outputs, "check_saveable": check_saveable,
        "alias_of": alias_of, "View": View, "backwards": backwards, "note_copy": note_copy, "ref": weakref.ref,
        "ARRAY": backend.array_type, "own": backend.own, "may_alias": backend.may_alias, "K": backend.kernels,
        "is_complex": backend.is_complex, "explain": explain, "current_stream": backend.current_stream,
        "operand_shape": backend.operand_shape,
    }  # fmt: skip
    t = Text()
    count = len(row.tensors)
    _op(t, row, backend, scope, "op", "t" * count)
    if row.elementwise and count == 2:
        _op(t, row, backend, scope, "sop", "ts")
        _op(t, row, backend, scope, "srop", "st")
    t.compile(f"{row.name} {backend.table_name}", scope)
    op = scope["op"]
    op.__qualname__ = op.__name__ = row.name
    setattr(cls, row.method, op)
    if "sop" in scope:
        setattr(cls, f"_sop_{row.name}", scope["sop"])
        setattr(cls, f"_srop_{row.name}", scope["srop"])
    if row.name in OPERATORS:
        method, reflected = OPERATORS[row.name]
        setattr(cls, method, op)
        if reflected is not None and backend.weak_scalars:
            setattr(cls, reflected, _reflected(row, scope["srop"]))
    return op


def _reflected(row: Row, srop: Callable[..., Any]) -> Callable[..., Any]:
    """``other OP x`` for an `other` that did not know how: a Python scalar, mostly."""

    def op(self: Any, other: Any) -> Any:
        cls = other.__class__
        return srop(self, other) if cls is float or cls is int else coerce(row, other, self)

    return op


def trampoline(row: Row, prefix: str = "_op_") -> Callable[..., Any]:
    """What stands on `Tensor` until a backend's class has its own implementation."""

    def first_use(self: Any, *args: Any) -> Any:
        specialise(row, type(self).backend)
        return getattr(type(self), prefix + row.name)(self, *args)

    return first_use
