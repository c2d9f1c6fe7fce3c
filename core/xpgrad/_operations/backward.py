"""From a row to the node classes that run: one per pattern of operands, whose `step` computes and accumulates in one go.

In a pattern ``g`` is an operand that requires grad, ``c`` a constant Tensor and ``s`` a Python scalar.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from xpgrad._operations.source import Text
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import Row
from xpgrad._tape.node import Node, freed
from xpgrad._tape.saved import check_version, unpack, unpack_constant, unpack_out

__all__ = ["node_class"]

_LARGE = 1 << 15  # elements: below, an allocation costs nothing


def _alias_holder(row: Row, mask: str, name: str) -> str:
    """The expression for the alias of a saved value."""
    if name == "out":
        return "self._alias"
    kind = mask[row.tensors.index(name)]
    return f"self.e_{name}._alias" if kind == "g" else f"self.c_{name}._alias"


def _call(row: Row, i: int, xp: str) -> str:
    """The call of the i-th formula with local names."""
    text = row.texts[i]
    return text if text is not None else f"f{i}({', '.join(xp if n == 'xp' else n for n in row.reads[i])})"


def _load(t: Text, row: Row, mask: str, i: int) -> None:
    """Load what the i-th formula reads, checked: not freed, not overwritten."""
    arrays = row.freeable(mask)
    for name in row.reads[i]:
        if name in ("g", "xp"):
            continue
        t(f"{name} = self.{name}")
        if name in arrays:
            with t.block(f"if {name} is None:"):
                t("raise freed(self)")
            holder = _alias_holder(row, mask, name)
            t(f"c = {holder}")
            # NB: nodes refer to the cell itself, constant Tensors to their alias.
            with t.block("if c is not None:" if holder.startswith("self.c_") else "if c is not None and c.last_write > self.seq:"):
                t(f"check_version(self, {name!r}, c)")


def _unpack(t: Text, row: Row, mask: str, i: int) -> None:
    """Turn the loaded raw values into Tensors with their history."""
    arrays = row.freeable(mask)
    for name in row.reads[i]:
        if name == "out":
            t("out = unpack_out(B, self, out)")
        elif name in arrays:
            kind = mask[row.tensors.index(name)]
            t(f"{name} = unpack(B, {name}, self.e_{name})" if kind == "g" else f"{name} = unpack_constant(B, {name}, self.c_{name})")
        elif name.endswith("_dtype"):
            t(f"{name} = B.dtype_of({name})")


def _saved_value(node: Any, name: str) -> Any:
    from xpgrad._tape.inspection import saved_value  # loads late: with what hooks on saved values need

    return saved_value(node, name)


def _raw_saved(node: Any, name: str) -> Any:
    from xpgrad._tape.inspection import raw_saved  # loads late: as above

    return raw_saved(node, name)


def node_class(backend: Any, row: Row, mask: str, broadcast: bool) -> type[Node]:
    """The node class for one row, pattern of operands and broadcasting, on one backend."""
    key = (row.name, mask, broadcast)
    found: type[Node] | None = backend.node_classes.get(key)
    if found is not None:
        return found
    needing = [i for i, m in enumerate(mask) if m == "g"]
    kept, arrays = row.saved(mask), row.freeable(mask)
    consts = [n for n in arrays if n != "out" and mask[row.tensors.index(n)] == "c"]
    slots = [f"e_{row.tensors[i]}" for i in needing] + kept + [f"c_{n}" for n in consts]
    if broadcast:
        slots += [f"b_{row.tensors[i]}" for i in needing]
    if backend.capabilities.streams:
        slots.append("stream")
    slotted = row.outputs is not None
    if slotted:
        slots += ["slots", "metas"]
    conj = row.conj and not slotted

    t = Text()
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
                            t(f"e.owned = {backend.capabilities.mutable}")
                        with t.block("else:"):
                            with t.block("if not e.owned:"):
                                t("b = K.copy(b)")
                                t("e.owned = True")
                            t(f"e.buffer = into(b, {args})")
                        continue
                    factor = (row.texts[i] or "").removeprefix("g * ")
                    if factor in row.reads[i] and factor != "g" and i == needing[-1] and backend.capabilities.mutable:
                        # The last formula may overwrite a gradient that this pass allocated: memory is dearer than arithmetic.
                        # NB: `size` is a method of PyTorch's tensors.
                        size = "prod(g.shape)" if callable(getattr(backend.array_type, "size", None)) else "g.size"
                        t(f"v = scale(g, {factor}) if self.owned and {size} > {_LARGE} else {_call(row, i, 'K')}")
                    else:
                        t(f"v = {_call(row, i, 'K')}")
                    if broadcast:
                        t(f"v = sum_to(v, self.b_{name})")
                    with t.block("if b is empty:"):
                        t("e.buffer = v")
                        t(f"e.owned = {row.fresh[i] and backend.capabilities.mutable}")
                    if backend.capabilities.mutable:
                        with t.block("elif e.owned:"):
                            t("b += v")
                            t("e.buffer = b")
                    with t.block("else:"):
                        t("e.buffer = b + v")
                        t("e.owned = True")
            if arrays:
                with t.block("if not retain:"):
                    t(" = ".join(f"self.{n}" for n in [*arrays, *(f"c_{n}" for n in consts)]) + " = None")
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
            t(" = ".join(f"self.{n}" for n in [*arrays, *(f"c_{n}" for n in consts)]) + " = None" if arrays else "pass")
        with t.block("def held(self):"):
            t(f"return [{', '.join('*(self.out or ())' if n == 'out' and slotted else f'self.{n}' for n in arrays)}]")
        with t.block("def released(self):"):
            t(f"return self.{arrays[0]} is None" if arrays else "return False")

    scope = {
        "Node": Node, "freed": freed, "check_version": check_version, "K": backend.kernels, "T": operations, "B": backend,
        "unpack": unpack, "unpack_out": unpack_out, "unpack_constant": unpack_constant,
        "sum_to": backend.kernels.sum_to, "is_complex": backend.is_complex,
        "scale": backend.kernels.scale, "prod": math.prod,
        **{f"f{i}": f for i, f in enumerate(row.formulas)},
    }  # fmt: skip
    if row.into:
        scope["into"] = getattr(backend.kernels, row.into)
    cls: Any = t.compile(f"{row.node} {mask}{'b' if broadcast else ''} {backend.table_name}", scope)["NodeClass"]
    cls.__name__ = cls.__qualname__ = cls.title = row.node
    cls.__module__ = "xpgrad.autograd.graph"
    cls.row, cls.mask, cls.n_outputs, cls.slotted = row, mask, row.outputs or 1, slotted
    for i, name in enumerate((*row.tensors, "out")):
        other_name = "result" if name == "out" else ("self", "other")[i] if i < 2 and name.startswith("x") else name
        for prefix, function in (("_saved", _saved_value), ("_raw_saved", _raw_saved)):
            reader = property(functools.partial(function, name=name))
            setattr(cls, f"{prefix}_{name}", reader)
            setattr(cls, f"{prefix}_{other_name}", reader)
    cls.backend, cls.conjugates, cls.records, cls.saves = backend, conj, True, bool(arrays)
    backend.node_classes[key] = cls
    return cls
