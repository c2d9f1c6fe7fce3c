"""Generate node classes from rows: one per pattern of operands, whose `step` computes and accumulates the gradients.

In a pattern ``g`` is an operand that requires grad, ``c`` a constant Tensor and ``s`` a Python scalar.
`python -m xpgrad._operations NAME PATTERN` prints the text for any operation. For ``x * y`` on NumPy, where `y` is a constant, it is::

    class NodeClass(Node):
        __slots__ = ('e_x1', 'x2', 'c_x2')

        def reach(_self, _empty, _push):
            _seq = _self.seq
            _edge = _self.e_x1
            if _edge.buffer is not _empty:
                _edge.buffer = _empty
                _push(_edge)
            if _edge.seq > _seq:  # a leaf: it runs right after its earliest consumer
                _edge.seq = _seq - 0.5

        def step(_self, g, _empty, _retain):
            _edge = _self.e_x1
            _buffer = _edge.buffer
            if _buffer is not None:
                x2 = _self.x2
                if x2 is None:
                    raise _freed(_self)
                _alias = _self.c_x2._alias
                if _alias is not None:
                    _check_version(_self, 'x2', _alias)
                _grad = _scale(g, x2) if _self.owned and g.size > 32768 else g * x2
                if _buffer is _empty:
                    _edge.buffer = _grad
                    _edge.owned = True
                elif _edge.owned:
                    _buffer += _grad
                    _edge.buffer = _buffer
                else:
                    _edge.buffer = _buffer + _grad
                    _edge.owned = True
            if not _retain:
                _self.x2 = _self.c_x2 = None

        def grads(_self, g):
            _complex = _is_complex(g)
            if _complex:
                g = _kernels.conj(g)
            if _self.e_x1.buffer is None:
                _grad0 = None
            else:
                x2 = _self.x2
                if x2 is None:
                    raise _freed(_self)
                _alias = _self.c_x2._alias
                if _alias is not None:
                    _check_version(_self, 'x2', _alias)
                _grad0 = g * x2
                if _complex:
                    _grad0 = _kernels.conj(_grad0)
            return [_grad0]

        def graph_grads(_self, g):
            _complex = g.dtype.is_complex
            if _complex:
                g = _operations.conj(g)
            if _self.e_x1.buffer is None:
                _grad0 = None
            else:
                x2 = _self.x2
                if x2 is None:
                    raise _freed(_self)
                _alias = _self.c_x2._alias
                if _alias is not None:
                    _check_version(_self, 'x2', _alias)
                x2 = _unpack_constant(_backend, x2, _self.c_x2)
                _grad0 = g * x2
                if _complex:
                    _grad0 = _operations.conj(_grad0)
            return [_grad0]

        def operands(_self):
            return (_self.e_x1, None)

        def edges(_self):
            return (_self.e_x1,)

        def redirect(_self, _mapping):
            _self.e_x1 = _mapping[_self.e_x1]

        def release(_self):
            _self.x2 = _self.c_x2 = None

        def held(_self):
            return [_self.x2]

        def released(_self):
            return _self.x2 is None
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from xpgrad._operations.source import Text, tuple_of
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import Row
from xpgrad._tape.node import Node, add_into, freed_error
from xpgrad._tape.saved import check_version, unpack, unpack_constant, unpack_out

_LARGE = 1 << 15  # number of elements below which an allocation costs next to nothing
_SCALED = re.compile(r"g \* ((?:\(1\.0 / )?(\w+)\)?)")

#: The attributes of a node other than the values that it saves for its formulas.
_ATTRIBUTES = frozenset((*dir(Node), "mask", "metas", "row", "slots"))


def node_class(backend: Any, row: Row, mask: str, broadcast: bool) -> type[Node]:
    """Return the node class of a row on one backend, for a pattern of operands with or without broadcasting."""
    key = (row.name, mask, broadcast)
    found: type[Node] | None = backend.node_classes.get(key)
    if found is None:
        found = backend.node_classes[key] = _compile_class(_Pattern(backend, row, mask, broadcast))
    return found


def node_text(backend: Any, row: Row, mask: str, broadcast: bool) -> Text:
    """Return the text of a node class (see `node_class`)."""
    return _text(_Pattern(backend, row, mask, broadcast))


def check_saved_names(row: Row) -> None:
    """Raise ValueError if the formulas of a row read a name that is also an attribute of nodes, so that it could not be saved."""
    attributes = _ATTRIBUTES.union(f"{prefix}_{name}" for prefix in "ebc" for name in row.tensors)
    taken = attributes.intersection(row.saved("g" * len(row.tensors)))
    if taken:
        msg = f"formulas of {row.name!r} read {sorted(taken)}, but a node has attributes of these names; choose other names"
        raise ValueError(msg)


class _Pattern:
    """The facts from which the text of one node class follows.

    A node has an attribute for each name that the formulas read. It also has the edges ``e_x``, the constant Tensors ``c_x`` whose arrays
    it saves, and, if the operation broadcast, the shapes ``b_x`` of the operands.
    """

    def __init__(self, backend: Any, row: Row, mask: str, broadcast: bool) -> None:
        self.backend, self.row, self.mask, self.broadcast = backend, row, mask, broadcast
        self.needing = [(i, row.tensors[i]) for i, kind in enumerate(mask) if kind == "g"]  # the operands with an edge
        self.kept = row.saved(mask)
        self.arrays = row.freeable(mask)
        self.constants = [n for n in self.arrays if n != "out" and self.kind(n) == "c"]
        self.slotted = row.outputs is not None
        self.conjugates = row.conj and not self.slotted
        self.mutable = backend.capabilities.mutable

    def kind(self, name: str) -> str:
        """Return the letter of an operand in the mask: "g" if it has an edge, "c" for a constant Tensor, "s" for a scalar."""
        return self.mask[self.row.tensors.index(name)]

    def gradient(self, i: int, xp: str) -> str:
        """Return the source of the i-th gradient formula, in terms of local names; `xp` is the name of the table of kernels."""
        text = self.row.texts[i]
        return text if text is not None else f"_formula{i}({', '.join(xp if n == 'xp' else n for n in self.row.reads[i])})"


# -- the text: one function per method ---------------------------------------------------------------------------------


def _text(p: _Pattern) -> Text:
    """Return the source of the node class of a pattern."""
    t = Text()
    with t.block("class NodeClass(Node):"):
        t(f"__slots__ = {tuple(_slots(p))!r}")
        for write in (_reach, _step, _grads, _graph_grads, _operands, _edges, _redirect, _release, _write_saved_arrays, _write_is_released):
            t("")
            write(t, p)
    return t


def _slots(p: _Pattern) -> list[str]:
    """Return the attributes of the node class of a pattern."""
    found = [f"e_{name}" for _, name in p.needing] + p.kept + [f"c_{name}" for name in p.constants]
    if p.broadcast:
        found += [f"b_{name}" for _, name in p.needing]
    if p.backend.capabilities.streams:
        found.append("stream")
    if p.slotted:
        found += ["slots", "metas"]
    return found


def _reach(t: Text, p: _Pattern) -> None:
    """Write the method `reach`, with which the engine visits the operands' nodes before a pass."""
    with t.block("def reach(_self, _empty, _push):"):
        t("_seq = _self.seq")
        for _, name in p.needing:
            t(f"""
                _edge = _self.e_{name}
                if _edge.buffer is not _empty:
                    _edge.buffer = _empty
                    _push(_edge)
                if _edge.seq > _seq:  # a leaf: it runs right after its earliest consumer
                    _edge.seq = _seq - 0.5
            """)


def _step(t: Text, p: _Pattern) -> None:
    """Write the method `step`, which computes the operands' gradients and adds them to the buffers of the edges."""
    with t.block("def step(_self, g, _empty, _retain):"):
        if not p.backend.raw_operators:
            fresh = tuple(bool(p.row.fresh[i] and p.mutable) for i, _ in p.needing)
            t(f"""
                for _edge, _grad, _fresh in zip(_self.edges(), _self.grads(g), {fresh!r}):
                    _add_into(_edge, _grad, _empty, _fresh)
                if not _retain:
                    _self.release()
            """)
            return
        reuses = p.row.reuse is not None and p.mutable and p.needing[0][0] == 0
        if reuses:
            t(f"_reuses = _self.owned and _self.e_{p.needing[0][1]}.buffer is not None")
        for i, name in p.needing[::-1] if reuses else p.needing:  # the operand whose gradient may overwrite `g` comes last
            t(f"""
                _edge = _self.e_{name}
                _buffer = _edge.buffer
            """)
            with t.block("if _buffer is not None:"):
                _load(t, p, i)
                if p.row.into:
                    _add_into(t, p, i)
                else:
                    _add(t, p, i, name, reuses)
        if p.arrays:
            with t.block("if not _retain:"):
                _forget(t, p)
        elif not p.needing:
            t("pass")


def _add(t: Text, p: _Pattern, i: int, name: str, reuses: bool) -> None:
    """Write the addition of one operand's gradient to its edge's buffer, in place if this pass allocated the buffer."""
    t(f"_grad = {_overwriting(p, i) or p.gradient(i, '_kernels')}")
    if reuses and not p.row.fresh[i]:  # it may be a view of `g`
        with t.block("if _reuses:"):
            t("_grad = _kernels.copy(_grad)")
    if p.broadcast:
        t(f"_grad = _sum_to(_grad, _self.b_{name})")
    if p.slotted:  # an operand may have no part in the outputs whose gradients arrived
        t("""
            if _grad is None:
                pass
        """)
    t(f"""
        {"elif" if p.slotted else "if"} _buffer is _empty:
            _edge.buffer = _grad
            _edge.owned = {p.row.fresh[i] and p.mutable}
    """)
    if p.mutable:
        t("""
            elif _edge.owned:
                _buffer += _grad
                _edge.buffer = _buffer
        """)
    t("""
        else:
            _edge.buffer = _buffer + _grad
            _edge.owned = True
    """)


def _overwriting(p: _Pattern, i: int) -> str | None:
    """Return an expression of the last formula that may overwrite `g`; None unless it is ``g * x`` or ``g * (1.0 / x)``.

    It overwrites a large gradient that this pass allocated, because allocating memory costs more than the arithmetic.
    """
    if p.row.reuse is not None and p.mutable and i == 0:
        return f"_reuse({', '.join(('_kernels', 'g', *p.row.statics))}) if _reuses else {p.gradient(i, '_kernels')}"
    found = _SCALED.fullmatch(p.row.texts[i] or "")
    if found is None or i != p.needing[-1][0] or not p.mutable:
        return None
    factor, name = found.groups()
    if name not in p.row.reads[i] or name == "g":
        return None
    # NB: `size` is a method of PyTorch's tensors.
    size = "_prod(g.shape)" if callable(getattr(p.backend.array_type, "size", None)) else "g.size"
    return f"_scale(g, {factor}) if _self.owned and {size} > {_LARGE} else {p.gradient(i, '_kernels')}"


def _add_into(t: Text, p: _Pattern, i: int) -> None:
    """Write the call of a kernel that adds a mostly zero gradient into the edge's buffer (`Row.into`)."""
    t(f"""
        if _buffer is _empty:
            _edge.buffer = {p.gradient(i, "_kernels")}
            _edge.owned = {p.mutable}
        else:
            if not _edge.owned:
                _buffer = _kernels.copy(_buffer)
                _edge.owned = True
            _edge.buffer = _into({", ".join(("_buffer", "g", *p.row.statics))})
    """)


def _grads(t: Text, p: _Pattern) -> None:
    """Write the method `grads`, which returns the operands' gradients as raw arrays."""
    with t.block("def grads(_self, g):"):
        if not p.backend.raw_operators:  # the formulas run on Tensors, whose operators call the kernels
            t(f"""
                g = {"[_x if _x is None else _backend.wrap(_x) for _x in g]" if p.slotted else "_backend.wrap(g)"}
                return [_x if _x is None else _x._array for _x in _self.graph_grads(g)]
            """)
            return
        if p.conjugates:
            t("_complex = _is_complex(g)")
        _gradients(t, p, "_kernels", "_sum_to")


def _graph_grads(t: Text, p: _Pattern) -> None:
    """Write the method `graph_grads`, which returns the operands' gradients as recorded Tensors."""
    with t.block("def graph_grads(_self, g):"):
        if p.conjugates:
            t("_complex = g.dtype.is_complex")
        _gradients(t, p, "_operations", "_operations.sum_to")


def _gradients(t: Text, p: _Pattern, xp: str, sum_to: str) -> None:
    """Write the computation of the operands' gradients: on raw arrays, or recorded if `xp` is `_operations`."""
    if p.conjugates:
        t(f"""
            if _complex:
                g = {xp}.conj(g)
        """)
    for i, name in p.needing:
        with t.block(f"if _self.e_{name}.buffer is None:"):
            t(f"_grad{i} = None")
        with t.block("else:"):
            _load(t, p, i)
            if xp == "_operations":
                _unpack(t, p, i)
            t(f"_grad{i} = {p.gradient(i, xp)}")
            if p.conjugates:
                t(f"""
                    if _complex:
                        _grad{i} = {xp}.conj(_grad{i})
                """)
            if p.broadcast:
                t(f"_grad{i} = {sum_to}(_grad{i}, _self.b_{name})")
    t(f"return [{', '.join(f'_grad{i}' for i, _ in p.needing)}]")


def _load(t: Text, p: _Pattern, i: int) -> None:
    """Write the code that loads the values of the i-th formula, and checks that they were neither freed nor overwritten."""
    for name in p.row.reads[i]:
        if name in ("g", "xp"):
            continue
        t(f"{name} = _self.{name}")
        if name in p.arrays:
            t(f"""
                if {name} is None:
                    raise _freed(_self)
            """)
            constant = name != "out" and p.kind(name) == "c"
            t(f"_alias = {'_self' if name == 'out' else f'_self.c_{name}' if constant else f'_self.e_{name}'}._alias")
            # NB: nodes refer to the cell itself, constant Tensors to their alias.
            with t.block("if _alias is not None:" if constant else "if _alias is not None and _alias.last_write > _self.seq:"):
                t(f"_check_version(_self, {name!r}, _alias)")


def _unpack(t: Text, p: _Pattern, i: int) -> None:
    """Write the code that turns the loaded raw values into Tensors with their history."""
    for name in p.row.reads[i]:
        if name == "out":
            t("out = _unpack_out(_backend, _self, out)")
        elif name in p.arrays and p.kind(name) == "g":
            t(f"{name} = _unpack(_backend, {name}, _self.e_{name}, _self)")
        elif name in p.arrays:
            t(f"{name} = _unpack_constant(_backend, {name}, _self.c_{name})")
        elif name.endswith("_dtype") and name not in (*p.row.tensors, *p.row.statics):
            t(f"{name} = _backend.dtype_of({name})")


def _operands(t: Text, p: _Pattern) -> None:
    with t.block("def operands(_self):"):
        t(f"return {tuple_of(f'_self.e_{n}' if kind == 'g' else 'None' for n, kind in zip(p.row.tensors, p.mask))}")


def _edges(t: Text, p: _Pattern) -> None:
    with t.block("def edges(_self):"):
        t(f"return {tuple_of(f'_self.e_{name}' for _, name in p.needing)}")


def _redirect(t: Text, p: _Pattern) -> None:
    with t.block("def redirect(_self, _mapping):"):
        for _, name in p.needing:
            t(f"_self.e_{name} = _mapping[_self.e_{name}]")
        if not p.needing:
            t("pass")


def _release(t: Text, p: _Pattern) -> None:
    with t.block("def release(_self):"):
        if p.arrays:
            _forget(t, p)
        else:
            t("pass")


def _forget(t: Text, p: _Pattern) -> None:
    """Write the code that frees the saved arrays and the constant Tensors to which they belong."""
    t(" = ".join(f"_self.{name}" for name in [*p.arrays, *(f"c_{name}" for name in p.constants)]) + " = None")


def _write_saved_arrays(t: Text, p: _Pattern) -> None:
    with t.block("def held(_self):"):
        t(f"return [{', '.join('*(_self.out or ())' if n == 'out' and p.slotted else f'_self.{n}' for n in p.arrays)}]")


def _write_is_released(t: Text, p: _Pattern) -> None:
    with t.block("def released(_self):"):
        t(f"return _self.{p.arrays[0]} is None" if p.arrays else "return False")


# -- from the text to the class ----------------------------------------------------------------------------------------


def _compile_class(p: _Pattern) -> type[Node]:
    """Compile the text of a node class and set the attributes that the engine and users read."""
    row, backend = p.row, p.backend
    title = f"{row.node} {p.mask}{'b' if p.broadcast else ''} {backend.table_name}"
    cls: Any = _text(p).compile(row.traceback_title(title), _scope(p), row.declared)["NodeClass"]
    cls.__name__ = cls.__qualname__ = cls.title = row.node
    cls.__module__ = "xpgrad.autograd.graph"
    cls.row, cls.mask, cls.n_outputs, cls.slotted = row, p.mask, row.outputs or 1, p.slotted
    cls.backend, cls.conjugates, cls.records, cls.saves = backend, p.conjugates, True, bool(p.arrays)
    _add_readers(cls, row)
    return cls


def _scope(p: _Pattern) -> dict[str, Any]:
    """Return the globals of the generated text of a node class."""
    kernels = p.backend.kernels
    scope = {
        "Node": Node, "_backend": p.backend, "_kernels": kernels, "_operations": operations,
        "_freed": freed_error, "_check_version": check_version,
        "_unpack": unpack, "_unpack_out": unpack_out, "_unpack_constant": unpack_constant,
        "_add_into": add_into, "_sum_to": kernels.sum_to, "_is_complex": p.backend.is_complex, "_scale": kernels.scale, "_prod": math.prod,
        **{f"_formula{i}": formula for i, formula in enumerate(p.row.formulas)},
    }  # fmt: skip
    if p.row.into:
        scope["_into"] = getattr(kernels, p.row.into)
    if p.row.reuse is not None:
        scope["_reuse"] = p.row.reuse
    return scope


def _add_readers(cls: Any, row: Row) -> None:
    """Add properties that read a saved value under the operand's name and PyTorch's (``_saved_self``; ACC-34)."""
    for i, name in enumerate((*row.tensors, "out")):
        other_name = "result" if name == "out" else ("self", "other")[i] if i < 2 and name.startswith("x") else name
        for prefix, function in (("_saved", _saved_value), ("_raw_saved", _raw_saved)):
            reader = property(functools.partial(function, name=name))
            setattr(cls, f"{prefix}_{name}", reader)
            setattr(cls, f"{prefix}_{other_name}", reader)


def _saved_value(node: Any, name: str) -> Any:
    from xpgrad._tape.inspection import saved_value  # loads late: only hooks on saved values need it

    return saved_value(node, name)


def _raw_saved(node: Any, name: str) -> Any:
    from xpgrad._tape.inspection import raw_saved  # loads late: as above

    return raw_saved(node, name)
