"""Generate the implementation of an operation on Tensors from its row, for each backend at first use.

The text handles the common case: operands of one class and dtype, recording, views. The backward formulas are in `backward`, the rare
cases in `coerce` and `_tape.saved`. `python -m xpgrad._operations NAME` prints the text for any operation.

For ``x * y`` on NumPy, where `_sop` is the version for a Tensor and a Python scalar, it is::

    def _op(_t_x1, _t_x2):
        _cls = _t_x1.__class__
        if _t_x2.__class__ is _cls:
            x1 = _t_x1._array
            x2 = _t_x2._array
            if (x1.dtype is x2.dtype or x1.dtype == x2.dtype):
                try:
                    _raw = x1 * x2
                except Exception as _exc:
                    raise _explain(_row, _exc, x1, x2)
                _out = _new(_cls)
                _out._array = _raw
                _out._alias = None
                _mode = _current_mode()
                if _mode is None or _mode.recording:
                    _e_x1 = _t_x1._node
                    _e_x2 = _t_x2._node
                    if _e_x1 is not None:
                        if _e_x2 is not None:
                            if x1.shape == x2.shape:
                                _node = _new(_Node_gg)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                _node.e_x1 = _e_x1
                                _node.e_x2 = _e_x2
                                _node.x1 = x1
                                _node.x2 = x2
                            else:
                                _node = _new(_Node_ggb)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                _node.e_x1 = _e_x1
                                _node.b_x1 = x1.shape
                                _node.e_x2 = _e_x2
                                _node.b_x2 = x2.shape
                                _node.x1 = x1
                                _node.x2 = x2
                            _out._node = _node
                        else:
                            if x1.shape == x2.shape:
                                _node = _new(_Node_gc)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                _node.e_x1 = _e_x1
                                if _t_x2._alias is not None:
                                    _check_saveable(_t_x2)
                                _node.c_x2 = _t_x2
                                _node.x2 = x2
                            else:
                                _node = _new(_Node_gcb)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                _node.e_x1 = _e_x1
                                _node.b_x1 = x1.shape
                                if _t_x2._alias is not None:
                                    _check_saveable(_t_x2)
                                _node.c_x2 = _t_x2
                                _node.x2 = x2
                            _out._node = _node
                    else:
                        if _e_x2 is not None:
                            if x1.shape == x2.shape:
                                _node = _new(_Node_cg)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                if _t_x1._alias is not None:
                                    _check_saveable(_t_x1)
                                _node.c_x1 = _t_x1
                                _node.e_x2 = _e_x2
                                _node.x1 = x1
                            else:
                                _node = _new(_Node_cgb)
                                _node.seq = _next_number()
                                _node.buffer = _node.hooks = _node._alias = None
                                if _t_x1._alias is not None:
                                    _check_saveable(_t_x1)
                                _node.c_x1 = _t_x1
                                _node.e_x2 = _e_x2
                                _node.b_x2 = x2.shape
                                _node.x1 = x1
                            _out._node = _node
                        else:
                            _out._node = None
                else:
                    _out._node = None
                if _mode is not None and not _mode.plain:
                    _mode.finish_operation(_out, _row, (_t_x1, _t_x2), ())
                return _out
        _other = _t_x2.__class__
        if _other is float or _other is int:
            return _sop(_t_x1, _t_x2)
        return _slow(_row, _t_x1, _t_x2)
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import View, alias_of, next_number, note_copy
from xpgrad._basics.keys import has_negative_step
from xpgrad._modes import state
from xpgrad._operations import watching
from xpgrad._operations.backward import node_class
from xpgrad._operations.coerce import coerce, explain
from xpgrad._operations.lists import list_operation
from xpgrad._operations.source import Text, tuple_of
from xpgrad._rows.row import Row
from xpgrad._tape.node import record_outputs
from xpgrad._tape.saved import check_saveable
from xpgrad.backend import Backend


class Form:
    """One implementation of a row on a backend: the function for Tensors, or for a Tensor and a Python scalar.

    In its text an operand's raw array has the name that the row gives it, ``x``; ``_t_x`` is the Tensor and ``_e_x`` the edge to its
    node.

    Parameters
    ----------
    name : str
        ``_op`` takes Tensors, ``_sop`` a scalar as its second operand, ``_srop`` one as its first.
    kinds : str
        One letter per operand: ``t`` or ``s``.
    operators : bool
        Whether to compute with Python's operator, if the row and the backend's arrays have one.
    """

    def __init__(self, backend: Any, row: Row, name: str, kinds: str, operators: bool) -> None:
        self.backend, self.row, self.name, self.kinds = backend, row, name, kinds
        self.operators = operators and backend.has_operator(row.name)
        self.tensors = [n for n, kind in zip(row.tensors, kinds) if kind == "t"]
        self.first, *self.others = self.tensors
        self.needy = [n for n, formula in zip(row.tensors, row.formulas) if formula is not None and n in self.tensors]
        self.broadcasts = row.elementwise and len(self.tensors) > 1
        self.several = row.outputs is not None
        #: The patterns of operands that the text records, each with and without broadcasting; filled while the text is written.
        self.patterns: list[tuple[str, bool]] = []
        self.text = Text()
        _operation(self.text, self)

    def argument(self, name: str) -> str:
        """Return the expression that passes an operand on: the Tensor, or the scalar."""
        return f"_t_{name}" if name in self.tensors else name

    def slow(self) -> str:
        """Return the call that accepts any operands."""
        return f"_slow({', '.join(('_row', *(f'_t_{n}' for n in self.tensors), *self.row.statics))})"


def forms(backend: Any, row: Row, operators: bool = True) -> list[Form]:
    """Return the implementations of a row whose operand is not a list of Tensors."""
    count = len(row.tensors)
    found = [Form(backend, row, "_op", "t" * count, operators)]
    if row.elementwise and count == 2:
        found += [Form(backend, row, "_sop", "ts", operators), Form(backend, row, "_srop", "st", operators)]
    return found


# -- the text: one function per duty -----------------------------------------------------------------------------------


def _operation(t: Text, f: Form) -> None:
    """Write the function that implements a form of an operation."""
    # The Tensor is the first parameter even if it is the second operand.
    rest = [f.argument(n) for n in f.row.tensors if n != f.first]
    with t.block(f"def {f.name}({', '.join((f'_t_{f.first}', *rest, *f.row.statics))}):"):
        t(f"_cls = _t_{f.first}.__class__")
        if f.others:
            _several_operands(t, f)
        else:
            _one_operand(t, f)


def _several_operands(t: Text, f: Form) -> None:
    """Write the common case, Tensors of one class and dtype; scalars and the rest go to `_sop` and `_slow`."""
    with t.block("if " + " and ".join(f"_t_{n}.__class__ is _cls" for n in f.others) + ":"):
        for n in f.tensors:
            t(f"{n} = _t_{n}._array")
        same = [f.row.tensors[i] for i in f.row.mixing]
        # NB: a library may have several objects for a dtype: NumPy has two for int64, array-api-strict creates new ones.
        conditions = [f"({same[0]}.dtype is {n}.dtype or {same[0]}.dtype == {n}.dtype)" for n in same[1:]]
        if f.row.guard:
            conditions.append(f.row.guard)
        with t.block(f"if {' and '.join(conditions) or 'True'}:"):
            _body(t, f)
    if f.broadcasts and len(f.tensors) == 2 and f.backend.weak_scalars:
        t(f"""
            _other = _t_{f.others[0]}.__class__
            if _other is float or _other is int:
                return _sop(_t_{f.first}, _t_{f.others[0]})
        """)
    t(f"return {f.slow()}")


def _one_operand(t: Text, f: Form) -> None:
    t(f"{f.first} = _t_{f.first}._array")
    if f.row.guard:
        t(f"""
            if not ({f.row.guard}):
                return {f.slow()}
        """)
    if f.row.is_view and f.backend.array_type is not None:
        t(f"""
            if {f.first}.__class__ is not _ARRAY:
                {f.first} = _own(_t_{f.first})
        """)
    _body(t, f)


def _body(t: Text, f: Form) -> None:
    """Write the text for operands of one class and dtype."""
    _compute(t, f)
    _wrap(t, f)
    t("_mode = _current_mode()")
    _attach_history(t, f)
    if f.row.is_view:
        _note_sharing(t, f)
    with t.block("if _mode is not None and not _mode.plain:"):
        operands = tuple_of(f.argument(n) for n in f.row.tensors)
        t(f"_mode.finish_operation(_out, _row, {operands}, {tuple_of(f.row.statics)})")
    t("return _out")


def _compute(t: Text, f: Form) -> None:
    """Write the forward computation on raw arrays."""
    row = f.row
    if not row.op or not f.operators or row.statics:
        expression = f"_kernel({', '.join((*row.tensors, *row.statics))})"
    elif len(row.tensors) > 1:
        expression = f" {row.op} ".join(row.tensors)
    else:
        expression = row.op + "".join(row.tensors)  # one operand
    if row.elementwise:
        t(f"""
            try:
                _raw = {expression}
            except Exception as _exc:
                raise _explain(_row, _exc, {", ".join(row.tensors)})
        """)
    else:
        t(f"_raw = {expression}")


def _wrap(t: Text, f: Form) -> None:
    """Write the code that creates the results from the raw arrays."""
    if f.several:
        t("""
            _out = [None] * len(_raw)
            for _k, _part in enumerate(_raw):
                _one = _out[_k] = _new(_cls)
                _one._array = _part
                _one._alias = _one._node = None
            _out = tuple(_out)
        """)
    else:
        t("""
            _out = _new(_cls)
            _out._array = _raw
            _out._alias = None
        """)


def _attach_history(t: Text, f: Form) -> None:
    """Write the text that gives the result a node if an operand has one and the mode records."""
    if f.needy:
        with t.block("if _mode is None or _mode.recording:"):
            for n in f.needy:
                t(f"_e_{n} = _t_{n}._node")
            _branch(t, f, f.needy, ())
        if not f.several:
            t("""
                else:
                    _out._node = None
            """)
    elif not f.several:
        t("_out._node = None")


def _branch(t: Text, f: Form, undecided: list[str], needing: tuple[str, ...]) -> None:
    """Write a branch on whether each operand requires grad, and in each leaf of it the recording of that pattern.

    Parameters
    ----------
    t : Text
    f : Form
    undecided : list of str
        The operands on which to branch.
    needing : tuple of str
        The operands that require grad in the branches around this one.
    """
    if undecided:
        first, *rest = undecided
        with t.block(f"if _e_{first} is not None:"):
            _branch(t, f, rest, (*needing, first))
        with t.block("else:"):
            _branch(t, f, rest, needing)
        return
    if not needing:
        t("pass" if f.several else "_out._node = None")
        return
    mask = "".join("s" if kind == "s" else "g" if n in needing else "c" for n, kind in zip(f.row.tensors, f.kinds))
    if f.broadcasts:
        with t.block("if " + " == ".join(f"{n}.shape" for n in f.tensors) + ":"):
            _record(t, f, mask, False)
        with t.block("else:"):
            _record(t, f, mask, True)
    else:
        _record(t, f, mask, False)
    t("_record_outputs(_node, _out)" if f.several else "_out._node = _node")


def _record(t: Text, f: Form, mask: str, broadcast: bool) -> None:
    """Write the creation of a node and of its fields, for a pattern of operands (`mask`), which may have unlike shapes (`broadcast`)."""
    row, arrays = f.row, f.row.freeable(mask)
    f.patterns.append((mask, broadcast))
    t(f"""
        _node = _new({_class_name(mask, broadcast)})
        _node.seq = _next_number()
        _node.buffer = _node.hooks = _node._alias = None
    """)
    if f.backend.capabilities.streams:
        t("_node.stream = (_cls, _current_stream(_cls.device))")
    shape = "{}.shape" if type(f.backend).operand_shape is Backend.operand_shape else "_operand_shape({})"
    for name, kind in zip(row.tensors, mask):
        if kind == "g":
            t(f"_node.e_{name} = _e_{name}")
            if broadcast:
                t(f"_node.b_{name} = {shape.format(name)}")
        elif kind == "c" and name in arrays:
            t(f"""
                if _t_{name}._alias is not None:
                    _check_saveable(_t_{name})
            """)
            t(f"_node.c_{name} = _t_{name}")
    for name in row.saved(mask):
        operand, _, quality = name.rpartition("_")
        if name == "out":
            value = "_raw"
        elif name in row.tensors or name in row.statics:
            value = name
        elif quality == "shape":
            value = shape.format("_raw" if operand == "out" else operand)
        else:
            value = f"{operand}.dtype"
        t(f"_node.{name} = {value}")


def _class_name(mask: str, broadcast: bool) -> str:
    """Return the global name of a node class in the text."""
    return f"_Node_{mask}{'b' if broadcast else ''}"


def _note_sharing(t: Text, f: Form) -> None:
    """Write the text that records whose memory the result of a view shares."""
    copies = f.row.name == "index_basic" and f.backend.capabilities.mutable and not f.backend.capabilities.negative_step
    if f.row.name == "reshape_to":
        # NB: an array without elements has no memory to share, and its reshape counts as a view.
        condition = f"if _may_alias(_raw, {f.first}) or 0 in _raw.shape:"
    else:
        condition = "if not _backwards(key):" if copies else "if True:"
    with t.block(condition):
        _note_view(t, f)
    if copies:
        t("""
            else:
                _note_copy(_out)
        """)


def _note_view(t: Text, f: Form) -> None:
    """Write the text that makes the result a view of the operand; inference tensors have no cell to record it in."""
    t(f"""
        _alias = _t_{f.first}._alias
        if _alias is None:
            _alias = _alias_of(_t_{f.first})
        _cell = _alias.cell
        if _cell is not None:
            _view = _out._alias = _new(_View)
            _view.parent = _t_{f.first}
            _view.row = _row
            _view.args = {tuple_of(f.row.statics)}
            _view.cell = _cell
            _view.forbidden = _alias.forbidden
            if _out._node is not None:
                _out._node._alias = _cell
            elif _mode is not None and not _mode.recording:
                _view.forbidden = 'inference_mode' if _mode.inference else 'no_grad'  # MUT-18: its history could not follow its base's
            _cell.views.append(_ref(_out))
            if len(_cell.views) > _cell.limit:
                _cell.forget()
        else:
            _out._alias = _alias  # INF-03: a view of an inference tensor must not be saved either
    """)


# -- from the text to the methods --------------------------------------------------------------------------------------


def specialise(row: Row, backend: Any) -> Callable[..., Any]:
    """Make the implementation of `row` on one backend, set it on that backend's Tensor class, and return its method."""
    made = implementation(row, backend)
    watching.install(row, backend, made, lambda kernel: implementation(row, backend, kernel))
    return made[row.method]


def implementation(row: Row, backend: Any, kernel: Any = None) -> dict[str, Callable[..., Any]]:
    """Return the methods of a row for a backend's Tensor class, by name.

    Parameters
    ----------
    row : Row
    backend : Backend
    kernel : callable, optional
        Computes the operation on raw arrays instead of the backend's kernel or operator.
    """
    if row.varargs:
        return {row.method: list_operation(row, backend, kernel)}
    made = _compile_forms(row, backend, kernel)
    op = made["_op"]
    op.__qualname__ = op.__name__ = row.name
    methods = {row.method: op}
    if "_sop" in made:
        methods[f"_sop_{row.name}"] = made["_sop"]
        methods[f"_srop_{row.name}"] = made["_srop"]
    if row.special_methods is not None:
        method, reflected = row.special_methods
        methods[method] = op
        if reflected is not None and backend.weak_scalars:
            methods[reflected] = _make_reflected(row, made["_srop"])
    return methods


def _compile_forms(row: Row, backend: Any, kernel: Any) -> dict[str, Any]:
    """Compile all forms of a row in one text, because one calls another, and return the functions by name."""
    text = Text()
    scope = _scope(row, backend)
    if kernel is not None:
        scope["_kernel"] = kernel
    for form in forms(backend, row, kernel is None):
        text.lines += form.text.lines
        for mask, broadcast in form.patterns:
            scope[_class_name(mask, broadcast)] = node_class(backend, row, mask, broadcast)
    watched = "" if kernel is None else " (watched)"
    return text.compile(row.traceback_title(f"{row.name} {backend.table_name}{watched}"), scope, row.declared)


def _scope(row: Row, backend: Any) -> dict[str, Any]:
    """Return the globals of the generated text of a row."""
    return {
        "_row": row, "_kernel": getattr(backend.kernels, row.name, None), "_slow": row.slow or coerce,
        "_explain": functools.partial(explain, backend),
        "_new": object.__new__, "_current_mode": state.current,
        "_next_number": next_number, "_record_outputs": record_outputs, "_check_saveable": check_saveable,
        "_current_stream": backend.current_stream, "_operand_shape": backend.operand_shape,
        "_ARRAY": backend.array_type, "_own": backend.own, "_may_alias": backend.may_alias,
        "_alias_of": alias_of, "_View": View, "_ref": weakref.ref, "_backwards": has_negative_step, "_note_copy": note_copy,
        "is_complex": backend.is_complex, "dtype_of": backend.dtype_of,  # for a row's guard, which is text that the row provides
    }  # fmt: skip


def _make_reflected(row: Row, srop: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method for ``other OP x``, called when `other` could not compute it; `other` is mostly a Python scalar."""

    def op(self: Any, other: Any) -> Any:
        cls = other.__class__
        return srop(self, other) if cls is float or cls is int else coerce(row, other, self)

    return op


def trampoline(row: Row, prefix: str = "_op_") -> Callable[..., Any]:
    """Return the method that `TensorBase` has until a backend's class gets its implementation."""

    def first_use(self: Any, *args: Any) -> Any:
        specialise(row, type(self).backend)
        return getattr(type(self), prefix + row.name)(self, *args)

    return first_use
