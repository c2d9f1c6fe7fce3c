"""From rows to what runs: generates, per backend and at first use, an operation's implementation and its node classes.

The text that is generated does the duties of DESIGN section 4 (recording, un-broadcasting, version checks, accumulation) and calls the
row's formulas. A node class is made per pattern of operands: ``g`` requires grad, ``c`` is a constant Tensor, ``s`` a Python scalar.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Callable, Iterator
from weakref import ref as _ref

from xpgrad import _modes
from xpgrad._alias import Alias, alias_of, next_number
from xpgrad._accumulate import AccumulateGrad
from xpgrad._node import Node, new_slot
from xpgrad._row import Row, tensor_namespace

__all__ = ["dispatcher", "node_class", "specialise"]


# -- what the generated text calls in the uncommon cases -------------------------------------------------------------


def freed(node: Node) -> RuntimeError:
    """The error for a node whose saved values were forgotten (RET-01)."""
    msg = (
        f"Trying to backward through the graph a second time: the values that {node.name()} saved have been freed. Pass "
        "`retain_graph=True` to the first `backward()` or `grad()` if you need to differentiate through this graph again"
    )
    return RuntimeError(msg)


def check_version(node: Node, what: str, alias: Any) -> None:
    """Raise ERR_VERSION if the saved value `what` was overwritten after `node` saved it (MUT-03)."""
    cell = alias.cell
    if cell is None or cell.last_write <= node.seq:
        return
    mode = _modes.current()
    hint = (
        "the traceback of the forward call above shows the operation that failed to compute its gradient"
        if mode is not None and mode.anomaly
        else "enable anomaly detection to find the operation, with `xpgrad.autograd.set_detect_anomaly(True)`"
    )
    msg = (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}, saved by "
        f"{node.name().removesuffix('Backward0')}, is at version {cell.version}; expected version "
        f"{cell.version_at(int(node.seq))} instead. Hint: {hint}, or write into a `clone()`"
    )
    raise RuntimeError(msg)


def unpack(backend: Any, raw: Any, edge: Any) -> Any:
    """The Tensor that a raw saved value belongs to, with its history."""
    if edge.is_shadow:
        edge = edge.real
    if edge.__class__ is AccumulateGrad:
        leaf = edge.variable
        if leaf._array is raw:
            return leaf
    tensor = backend.wrap(raw)
    tensor._node = edge
    tensor._alias = edge._alias
    return tensor


def unpack_out(backend: Any, node: Any, raw: Any) -> Any:
    """The Tensor(s) of a saved output."""
    from xpgrad._node import slot_of

    node = node.original
    if not node.slotted:
        return unpack(backend, raw, node)
    nondiff = node.row.nondiff
    return tuple(backend.wrap(r) if k in nondiff else unpack(backend, r, slot_of(node, k)) for k, r in enumerate(raw))


def check_saveable(tensor: Any) -> None:
    """Refuse to save an inference tensor in a graph (INF-03)."""
    if tensor._alias.forbidden == "inference":
        msg = (
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd; make a normal Tensor with `clone()` outside inference mode, or use `xpgrad.no_grad()` instead"
        )
        raise RuntimeError(msg)


def explain(row: Row, exc: Exception, *arrays: Any) -> Exception:
    """The error for operands that a kernel refused: ours if their shapes do not broadcast, else the library's own."""
    from xpgrad.rules.manipulation import broadcast_shapes

    try:
        broadcast_shapes(*(a.shape for a in arrays))
    except ValueError as ours:
        msg = f"`{row.name}`: {ours}; reshape an operand, e.g. with `xpgrad.expand_dims(x, axis=-1)`"
        error = ValueError(msg)
        error.__cause__ = exc
        return error
    return exc


def record_outputs(node: Any, outs: tuple[Any, ...]) -> None:
    """Give each differentiable output of an operation with several its hidden node."""
    node.slots = [None] * len(outs)
    node.metas = [(o.shape, o.dtype, type(o)) for o in outs]
    for k, out in enumerate(outs):
        if k not in node.row.nondiff and out.dtype.differentiable:
            out._node = new_slot(node, k)


def note_view(tensor: Any, out: Any, row: Row, args: tuple[Any, ...]) -> None:
    """Make `out` a view of `tensor` in the bookkeeping of versions (inference tensors have none)."""
    if tensor._alias is not None and tensor._alias.forbidden == "inference":
        return
    alias = Alias(alias_of(tensor).cell, tensor, row, args)
    out._alias = alias
    node = out._node
    if node is not None:
        node._alias = alias
    elif tensor._node is not None:
        alias.forbidden = "no_grad"  # MUT-18: a constant view of a Tensor with history
    alias.cell.views.append(_ref(out))
    if len(alias.cell.views) > 16 and not len(alias.cell.views) & (len(alias.cell.views) - 1):
        alias.cell.views = [r for r in alias.cell.views if r() is not None]


# -- generating text ---------------------------------------------------------------------------------------------------


class _Text:
    """Lines of generated source with their indentation, and the globals that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, head: str) -> _Block:
        self(head)
        return _Block(self)

    def compile(self, title: str, scope: dict[str, Any]) -> dict[str, Any]:
        """Execute the text in `scope`; linecache lets a traceback show its lines."""
        source = "\n".join(self.lines) + "\n"
        import linecache

        filename = f"<xpgrad {title}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), scope)  # noqa: S102 (our own text, as dataclasses does)
        return scope


class _Block:
    def __init__(self, text: _Text) -> None:
        self.text = text

    def __enter__(self) -> None:
        self.text.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.text.depth -= 1


def _saved(row: Row, mask: str) -> list[str]:
    """The names that a node of this pattern keeps, in a fixed order."""
    wanted = {name for reads, m in zip(row.reads, mask) if m == "g" for name in reads} - {"g", "xp"}
    order = [*row.tensors, "out", *(f"{t}_{k}" for t in row.tensors for k in ("shape", "dtype")), "out_shape", *row.statics]
    return [name for name in order if name in wanted]


def _freeable(row: Row, mask: str) -> list[str]:
    """Those of the saved names that hold arrays: forgotten as the node finishes."""
    kinds = dict(zip(row.tensors, mask))
    return [n for n in _saved(row, mask) if n == "out" or kinds.get(n, "s") != "s"]


def _alias_holder(row: Row, mask: str, name: str) -> str:
    """The expression for the alias of a saved value."""
    if name == "out":
        return "self._alias"
    kind = mask[row.tensors.index(name)]
    return f"self.e_{name}._alias" if kind == "g" else f"self.c_{name}._alias"


def _call(row: Row, i: int, xp: str) -> str:
    """The call of the i-th formula with local names."""
    return f"f{i}({', '.join(xp if n == 'xp' else n for n in row.reads[i])})"


def _load(t: _Text, row: Row, mask: str, i: int) -> None:
    """Load what the i-th formula reads, checked: not freed, not overwritten."""
    freeable = _freeable(row, mask)
    for name in row.reads[i]:
        if name in ("g", "xp"):
            continue
        t(f"{name} = self.{name}")
        if name in freeable:
            with t.block(f"if {name} is None:"):
                t("raise freed(self)")
            t(f"c = {_alias_holder(row, mask, name)}")
            with t.block("if c is not None:"):
                t(f"check_version(self, {name!r}, c)")


def _unpack(t: _Text, row: Row, mask: str, i: int) -> None:
    """Turn the loaded raw values into Tensors with their history."""
    freeable = _freeable(row, mask)
    for name in row.reads[i]:
        if name == "out":
            t("out = unpack_out(B, self, out)")
        elif name in freeable:
            kind = mask[row.tensors.index(name)]
            t(f"{name} = unpack(B, {name}, self.e_{name})" if kind == "g" else f"{name} = self.c_{name}")
        elif name.endswith("_dtype"):
            t(f"{name} = B.dtype_of({name})")


def node_class(backend: Any, row: Row, mask: str, broadcast: bool) -> type[Node]:
    """The node class for one row, pattern of operands and broadcasting, on one backend."""
    key = (row.name, mask, broadcast)
    found: type[Node] | None = backend.node_classes.get(key)
    if found is not None:
        return found
    needing = [i for i, m in enumerate(mask) if m == "g"]
    saved, freeable = _saved(row, mask), _freeable(row, mask)
    consts = [n for n in freeable if n != "out" and mask[row.tensors.index(n)] == "c"]
    slots = [f"e_{row.tensors[i]}" for i in needing] + saved + [f"c_{n}" for n in consts]
    if broadcast:
        slots += [f"b_{row.tensors[i]}" for i in needing]
    slotted = row.outputs is not None
    if slotted:
        slots += ["slots", "metas"]
    conj = row.conj and not slotted

    t = _Text()
    with t.block("class NodeClass(Node):"):
        t(f"__slots__ = {tuple(slots)!r}")
        with t.block("def reach(self, empty, push):"):
            t("s = self.seq")
            for i in needing:
                t(f"e = self.e_{row.tensors[i]}")
                with t.block("if e.buffer is not empty:"):
                    t("e.buffer = empty")
                    t("push(e)")
                with t.block("if e.seq > s:"):  # a leaf: it runs right after its earliest consumer
                    t("e.seq = s - 0.5")
        with t.block("def step(self, g, empty, retain):"):
            for i in needing:
                name = row.tensors[i]
                t(f"e = self.e_{name}")
                t("b = e.buffer")
                with t.block("if b is not None:"):
                    _load(t, row, mask, i)
                    if row.into:
                        args = ", ".join(("g", *row.statics))
                        with t.block("if b is empty:"):
                            t(f"e.buffer = {_call(row, i, 'K')}")
                            t("e.owned = True")
                        with t.block("else:"):
                            with t.block("if not e.owned:"):
                                t("b = K.copy(b)")
                                t("e.owned = True")
                            t(f"e.buffer = into(b, {args})")
                        continue
                    t(f"v = {_call(row, i, 'K')}")
                    if broadcast:
                        t(f"v = sum_to(v, self.b_{name})")
                    with t.block("if b is empty:"):
                        t("e.buffer = v")
                        t(f"e.owned = {row.fresh[i]}")
                    if backend.capabilities.mutable:
                        with t.block("elif e.owned:"):
                            t("b += v")
                            t("e.buffer = b")
                    with t.block("else:"):
                        t("e.buffer = b + v")
                        t("e.owned = True")
            if freeable:
                with t.block("if not retain:"):
                    t(" = ".join(f"self.{n}" for n in [*freeable, *(f"c_{n}" for n in consts)]) + " = None")
            if not needing:
                t("pass")
        for method, xp, fit in (("grads", "K", "sum_to"), ("graph_grads", "T", "T.sum_to")):
            with t.block(f"def {method}(self, g):"):
                if conj:
                    t("z = is_complex(g)" if xp == "K" else "z = g.dtype.is_complex")
                    with t.block("if z:"):
                        t(f"g = {xp}.conj(g)")
                for i in needing:
                    name = row.tensors[i]
                    with t.block(f"if self.e_{name}.buffer is None:"):
                        t(f"v{i} = None")
                    with t.block("else:"):
                        _load(t, row, mask, i)
                        if xp == "T":
                            _unpack(t, row, mask, i)
                        t(f"v{i} = {_call(row, i, xp)}")
                        if conj:
                            with t.block("if z:"):
                                t(f"v{i} = {xp}.conj(v{i})")
                        if broadcast:
                            t(f"v{i} = {fit}(v{i}, self.b_{name})")
                t(f"return [{', '.join(f'v{i}' for i in needing)}]")
        with t.block("def operands(self):"):
            entries = "".join(f"self.e_{n}, " if m == "g" else "None, " for n, m in zip(row.tensors, mask))
            t(f"return ({entries})")
        with t.block("def edges(self):"):
            t(f"return ({''.join(f'self.e_{row.tensors[i]}, ' for i in needing)})")
        with t.block("def redirect(self, mapping):"):
            for i in needing:
                t(f"self.e_{row.tensors[i]} = mapping[self.e_{row.tensors[i]}]")
            if not needing:
                t("pass")
        with t.block("def release(self):"):
            t(" = ".join(f"self.{n}" for n in [*freeable, *(f"c_{n}" for n in consts)]) + " = None" if freeable else "pass")
        with t.block("def released(self):"):
            t(f"return self.{freeable[0]} is None" if freeable else "return False")

    scope = {
        "Node": Node, "freed": freed, "check_version": check_version, "K": backend.kernels, "T": tensor_namespace, "B": backend,
        "unpack": unpack, "unpack_out": unpack_out, "sum_to": backend.kernels.sum_to, "is_complex": backend.is_complex,
        **{f"f{i}": f for i, f in enumerate(row.formulas)},
    }  # fmt: skip
    if row.into:
        scope["into"] = getattr(backend.kernels, row.into)
    cls: Any = t.compile(f"{row.node} {mask}{'b' if broadcast else ''} {backend.table_name}", scope)["NodeClass"]
    cls.__name__ = cls.__qualname__ = cls.title = row.node
    cls.__module__ = "xpgrad.autograd.graph"
    cls.row, cls.mask, cls.n_outputs, cls.slotted = row, mask, row.outputs or 1, slotted
    cls.backend, cls.conjugates, cls.records = backend, conj, True
    backend.node_classes[key] = cls
    return cls


def _record(t: _Text, row: Row, mask: str, broadcast: bool, scope: dict[str, Any], backend: Any) -> None:
    """Make and fill a node `n` from the locals: operands' raw arrays by name, Tensors `t_<name>`, edges `e_<name>`, `r`."""
    key = f"N_{mask}{'b' if broadcast else ''}"
    scope[key] = node_class(backend, row, mask, broadcast)
    t(f"n = new({key})")
    t("n.seq = number()")
    t("n.buffer = n.hooks = n._alias = None")
    saved, freeable = _saved(row, mask), _freeable(row, mask)
    for name, m in zip(row.tensors, mask):
        if m == "g":
            t(f"n.e_{name} = e_{name}")
            if broadcast:
                t(f"n.b_{name} = {name}.shape")
        elif m == "c" and name in freeable:
            with t.block(f"if t_{name}._alias is not None:"):
                t(f"check_saveable(t_{name})")
            t(f"n.c_{name} = t_{name}")
    for name in saved:
        if name == "out":
            t("n.out = r")
        elif name.endswith("_shape"):
            t(f"n.{name} = {'r' if name == 'out_shape' else name.removesuffix('_shape')}.shape")
        elif name.endswith("_dtype"):
            t(f"n.{name} = {name.removesuffix('_dtype')}.dtype")
        else:
            t(f"n.{name} = {name}")


def _patterns(count: int, diff: list[bool]) -> Iterator[str]:
    """The patterns of 'g' and 'c' with at least one 'g', 'g' only where a formula exists."""
    for bits in range(2**count - 1, 0, -1):
        mask = "".join("g" if bits >> (count - 1 - i) & 1 else "c" for i in range(count))
        if all(d or m == "c" for d, m in zip(diff, mask)):
            yield mask


def _compute(row: Row, backend: Any, names: tuple[str, ...]) -> str:
    """The expression of the forward computation."""
    if row.op and backend.operators and len(names) <= 2 and not row.statics:
        return f"{names[0]} {row.op} {names[1]}" if len(names) == 2 else f"{row.op}{names[0]}"
    return f"kernel({', '.join((*names, *row.statics))})"


def _op(t: _Text, row: Row, backend: Any, scope: dict[str, Any], name: str, mask_of_scalars: str) -> None:
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


def _op_body(t: _Text, row: Row, backend: Any, scope: dict[str, Any], tensors: list[str], kinds: str, diff: list[bool]) -> None:
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
                        shapes = [n for n in tensors]
                        with t.block("if " + " == ".join(f"{n}.shape" for n in shapes) + ":"):
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
        condition = "if may_alias(r, " + tensors[0] + "):" if row.name == "reshape_to" else "if True:"
        with t.block(condition):
            args = "(" + "".join(f"{s}, " for s in row.statics) + ")"
            t(f"note_view(t_{tensors[0]}, out, ROW, {args})")
    with t.block("if m is not None and not m.plain:"):
        if multi:
            with t.block("for o in out:"):
                t("m.finish(o)")
        elif row.is_view:
            t(f"m.finish_view(t_{tensors[0]}, out)")
        else:
            t("m.finish(out)")
    t("return out")


class VarNode(Node):
    """The node of an operation on a list of Tensors (`concat`, `stack`): one class for all such rows, interpreted."""

    __slots__ = ("e", "row", "shapes", "statics")

    e: tuple[Any, ...]
    row: Row
    shapes: tuple[tuple[int, ...], ...]
    statics: tuple[Any, ...]

    def _vjp(self, g: Any, xp: Any) -> list[Any]:
        known = dict(zip(self.row.statics, self.statics)) | {"g": g, "xp": xp, f"{self.row.tensors[0]}_shape": self.shapes}
        values = self.row.formulas[0](*(known[n] for n in self.row.reads[0]))  # type: ignore[misc]
        return [v for v, e in zip(values, self.e) if e is not None]

    def name(self) -> str:
        return self.row.node

    def operands(self) -> tuple[Node | None, ...]:
        return self.e

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        for e in self.e:
            if e is not None:
                if e.buffer is not empty:
                    e.buffer = empty
                    push(e)
                if e.seq > self.seq:
                    e.seq = self.seq - 0.5

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        for e, v in zip(self.edges(), self.grads(g)):
            add_into(e, v, empty)

    def grads(self, g: Any) -> list[Any]:
        return self._vjp(g, self.backend.kernels)

    def graph_grads(self, g: Any) -> list[Any]:
        return self._vjp(g, tensor_namespace)

    def redirect(self, mapping: dict[Node, Node]) -> None:
        self.e = tuple(None if e is None else mapping[e] for e in self.e)

    backend: Any = None
    records = True


def add_into(e: Any, v: Any, empty: Any) -> None:
    """Add a gradient that others may hold into an edge's buffer, if the pass needs it."""
    b = e.buffer
    if b is None or v is None:
        return
    if b is empty:
        e.buffer = v
        e.owned = False
    elif e.owned:
        b += v
        e.buffer = b
    else:
        e.buffer = b + v
        e.owned = True


@functools.lru_cache(maxsize=None)
def _var_class(backend: Any, title: str) -> type[VarNode]:
    return type(title, (VarNode,), {"__slots__": (), "backend": backend, "title": title, "__module__": "xpgrad.autograd.graph"})


def _var_op(row: Row, backend: Any) -> Callable[..., Any]:
    kernel = getattr(backend.kernels, row.name)

    def op(first: Any, xs: list[Any], *statics: Any) -> Any:
        r = kernel([x._array for x in xs], *statics)
        cls = first.__class__
        out = object.__new__(cls)
        out._array = r
        out._alias = out._node = None
        m = _modes.current()
        if (m is None or m.recording) and any(x._node is not None for x in xs):
            n = object.__new__(_var_class(backend, row.node))
            n.seq = next_number()
            n.buffer = n.hooks = n._alias = None
            n.e = tuple(x._node for x in xs)
            n.row, n.statics = row, statics
            n.shapes = tuple(x._array.shape for x in xs)
            out._node = n
        if m is not None and not m.plain:
            m.finish(out)
        return out

    return op


#: Python's operators by row: (method, its reflected form).
OPERATORS = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"), "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"), "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"), "pow": ("__pow__", "__rpow__"), "matmul_nd": ("__matmul__", None),
    "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"), "bitwise_xor": ("__xor__", "__rxor__"),
    "bitwise_left_shift": ("__lshift__", "__rlshift__"), "bitwise_right_shift": ("__rshift__", "__rrshift__"),
    "equal": ("__eq__", None), "not_equal": ("__ne__", None), "less": ("__lt__", None), "less_equal": ("__le__", None),
    "greater": ("__gt__", None), "greater_equal": ("__ge__", None), "negative": ("__neg__", None),
}  # fmt: skip


def specialise(row: Row, backend: Any) -> Callable[..., Any]:
    """Make the implementation of `row` on one backend, and put it on that backend's Tensor class."""
    cls = backend.tensor_base
    if row.varargs:
        op: Any = _var_op(row, backend)
        setattr(cls, row.method, op)
        return op
    from xpgrad._coerce import coerce

    scope: dict[str, Any] = {
        "new": object.__new__, "mode": _modes.current, "number": next_number, "kernel": getattr(backend.kernels, row.name, None),
        "slow": row.slow or coerce, "ROW": row, "record_outputs": record_outputs, "check_saveable": check_saveable, "note_view": note_view,
        "ARRAY": backend.array_type, "own": backend.own, "may_alias": backend.may_alias, "K": backend.kernels,
        "is_complex": backend.is_complex, "explain": explain,
    }  # fmt: skip
    t = _Text()
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
    from xpgrad._coerce import coerce

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


# -- public functions ----------------------------------------------------------------------------------------------------


def _generate_dispatcher(row: Row, scope: dict[str, Any]) -> Any:
    """The text of the function on Tensors that calls a row's implementation, compiled."""
    t = _Text()
    if row.elementwise:
        names = row.tensors
        with t.block(f"def public({', '.join(names)}, /):"):
            with t.block("try:"):
                t(f"r = {names[0]}.{row.method}({', '.join(names[1:])})")
            with t.block("except AttributeError:"):
                with t.block(f"if isinstance({names[0]}, Tensor):"):
                    t("raise")
                t(f"r = coerce(ROW, {', '.join(names)})")
            with t.block("if r is NotImplemented:"):
                t(f"raise not_a_tensor({row.name!r}, {', '.join(names)})")
            t("return r")
    else:
        names = (*row.tensors, *row.statics)
        first = f"{names[0]}[0]" if row.varargs else names[0]
        with t.block(f"def public({', '.join(names)}):"):
            with t.block("try:"):
                t(f"op = {first}.{row.method}")
            with t.block("except AttributeError:"):
                t(f"raise not_a_tensor({row.name!r}, {names[0]}) from None")
            t(f"return op({', '.join(names if row.varargs else names[1:])})")
    return t.compile(f"{row.name}()", dict(scope))["public"]


def _first_call(*args: Any) -> Any:
    """The code of every dispatcher until it is called: becomes the real one, in place, so that all who imported it have it.

    Compiling 150 texts at import would cost as much as importing NumPy. Runs with a dispatcher's own globals.
    """
    return become(ROW, SELF, SCOPE)(*args)  # type: ignore[name-defined]  # noqa: F821


def _become(row: Row, public: Any, scope: dict[str, Any]) -> Any:
    public.__code__ = _generate_dispatcher(row, scope).__code__
    return public


def dispatcher(row: Row, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function on Tensors that calls a row's implementation, with the signature and docstring of `func`."""
    from xpgrad._coerce import coerce, not_a_tensor
    from xpgrad._tensor import Tensor

    setattr(Tensor, row.method, trampoline(row))
    if row.elementwise and len(row.tensors) == 2:
        setattr(Tensor, f"_sop_{row.name}", trampoline(row, "_sop_"))
        setattr(Tensor, f"_srop_{row.name}", trampoline(row, "_srop_"))
    scope: dict[str, Any] = {"Tensor": Tensor, "ROW": row, "coerce": coerce, "not_a_tensor": not_a_tensor, "become": _become}
    public: Any = FunctionType(_first_call.__code__, scope, func.__name__)
    scope["SELF"], scope["SCOPE"] = public, scope
    public.__qualname__, public.__doc__, public.__module__ = func.__qualname__, func.__doc__, func.__module__
    public.__annotations__ = func.__annotations__
    if row.elementwise:
        public.__wrapped__ = func  # inspect.signature and editors see the declared signature
    public.row = row
    return public
