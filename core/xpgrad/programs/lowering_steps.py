"""The lowering of one program: its statements and views so far, and the steps that the rules of the kernels share (`lowering_rules`).

Among these steps are those for reductions, elements at indices, complex numbers, products of matrices, and loops.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpgrad._basics.dtypes import DTYPES, DType, promote, real_of
from xpgrad._basics.shapes import row_major_strides
from xpgrad.programs.complexes import FORMULAS, POWERS, Formula, Real
from xpgrad.programs.program import Inner, Operation, Passes, Program, Variable
from xpgrad.programs.regions import Check, Control, Indexed, Lowered, Product, Statement, Unsupported
from xpgrad.programs.scalars import FLOATS, SCALARS, SIZES, can_cast, has_scalar
from xpgrad.programs.scheduling import ALIGNMENT
from xpgrad.programs.views import Buffer, View

__all__ = ["RULES", "Lowering", "lowers"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How kernels are lowered.

    Attributes
    ----------
    function : callable
        Adds the statements of an operation.
    options : tuple of str
        The options that it knows.
    elements : tuple of int
        The positions of arguments whose elements go into the result. If there are any, complex operations are lowered for each part.
    takes_complex : bool
        Whether the function takes complex operations as they are.
    """

    function: Callable[[Lowering, Operation], None]
    options: tuple[str, ...]
    elements: tuple[int, ...]
    takes_complex: bool


#: The rules by the kernel's name or ``"any KIND"``.
RULES: dict[str, Rule] = {}


def lowers(
    *names: str, options: tuple[str, ...] = (), elements: tuple[int, ...] = (), takes_complex: bool = False
) -> Callable[[Callable[[Lowering, Operation], None]], Callable[[Lowering, Operation], None]]:
    def register(function: Callable[[Lowering, Operation], None]) -> Callable[[Lowering, Operation], None]:
        RULES.update(dict.fromkeys(names, Rule(function, options, elements, takes_complex)))
        return function

    return register


class Lowering:
    """The statements, products, checks and loops of a program, in its order.

    Parameters
    ----------
    program : Program
    products, loops : bool
        As for `lowering.lower`.
    lower : callable
        Lowers the programs of loops and branches.
    """

    program: Program
    products: bool
    loops: bool
    lower: Callable[[Program], Lowered]
    inputs: list[Buffer]
    constants: list[Buffer]
    fixed: set[Buffer]
    additions: dict[Operation, tuple[Operation, Variable] | None]
    outputs: list[Buffer]

    def __init__(self, program: Program, products: bool, loops: bool, lower: Callable[[Program], Lowered]) -> None:
        self.program, self.products, self.loops, self.lower = program, products, loops, lower
        self.views: dict[Variable, View] = {}
        self.sources: dict[Variable, Variable] = {}  # of a view, whose elements it shows
        self.parts: dict[Variable, tuple[Variable, Variable]] = {}  # the real and the imaginary parts of a complex variable
        self.items: list[Statement | Product | Check | Control] = []
        self.readers: dict[Variable, int] = {}
        self.checked: dict[Any, Any] = {}
        for v in [v for o in program.operations for v in dict.fromkeys(o.operands())] + program.outputs:
            self.readers[v] = self.readers.get(v, 0) + 1
        self.inputs = [self.given_buffer(v) for v in program.inputs]
        self.constants = [self.given_buffer(v) for v in program.constants]
        self.fixed = {*self.inputs, *self.constants}
        self.additions = self.find_additions()
        for operation in program.operations:
            self.take(operation)
        self.outputs = self.own_outputs()

    def take(self, operation: Operation) -> None:
        """Lower one operation; raise Unsupported if no rule takes it."""
        if operation in self.additions:
            pair = self.additions[operation]
            if pair is not None:
                self.multiply(pair[0], operation.out, pair[1])
            return
        if "inner" in operation.options and self.loops:
            self.take_control(operation)
            return
        is_complex = any(v.dtype.is_complex for v in (*operation.operands(), *operation.results))
        formula = self.find_formula(operation) if is_complex else None
        if formula is not None:
            self.apply(formula, operation)
            return
        rule = RULES.get(operation.name) or RULES.get(f"any {operation.facts.kind}")
        if rule is None or operation.several or not set(operation.options) <= set(rule.options):
            raise Unsupported(operation.name)
        if not is_complex or rule.takes_complex:
            rule.function(self, operation)
        else:
            self.take_parts(rule, operation)

    # -- loops and branches --------------------------------------------------------------------------------------------------

    def take_control(self, o: Operation) -> None:
        """Lower a loop or a branch."""
        inner: Inner = o.options["inner"]
        programs = [self.lower(p) for p in inner.programs]
        reads: set[Any] = set()
        arguments = [[self.whole(v, reads) for v in (group if isinstance(group, tuple) else (group,))] for group in o.args]
        results = [self.given_buffer(v) for v in o.results]
        makes = o.results[0]
        for v in o.results:
            self.sources.update((part, makes) for part in self.parts.get(v, (v,)) if part is not makes)
        changing: list[Buffer] = []
        if isinstance(inner, Passes):
            changing = programs[-1].outputs[: inner.counts[-1]]
        elif o.name != "branch":
            changing = programs[-1].outputs[: len(arguments[0])]
        size, spares = max([p.workspace_size for p in programs]), []
        for buffer in changing:
            spares.append(size)
            size += -(-buffer.size * buffer.itemsize // ALIGNMENT) * ALIGNMENT
        scratch = Buffer(size, "bool", SIZES["bool"]) if size else None
        self.items.append(Control(o, programs, arguments, results, scratch, spares, reads, makes))

    def whole(self, v: Any, reads: set[Any]) -> tuple[Buffer, int]:
        """Return the memory of an operand whose elements follow each other, and its position; add what must be complete to `reads`.

        Other operands are copied.
        """
        if not isinstance(v, Variable):
            msg = f"{v!r} as an operand of a loop"
            raise Unsupported(msg)
        parts = self.parts.get(v, (v,))
        views = [self.views[part] for part in parts]
        if len(parts) == 1:
            is_whole = views[0].is_dense
        else:
            is_whole = views[0].buffer.is_paired and views[1].offset == views[0].offset + 1 and views[0].buffer is views[1].buffer
            strides = [2 * s for s in row_major_strides(v.shape)]
            is_whole = is_whole and all(n == 1 or s == t for x in views for n, s, t in zip(v.shape, x.strides, strides))
        if not is_whole:
            copy = Variable(v.shape, v.dtype, v.name)
            if len(parts) == 1:
                self.assign(copy, "copy", (v,))
                views, parts = [self.views[copy]], (copy,)
            else:
                self.given_buffer(copy)
                parts, views = self.parts[copy], self.copy_parts(parts, copy)
        reads |= {self.source(part) for part in parts}
        return views[0].buffer, views[0].offset

    def copy_parts(self, parts: Any, copy: Variable) -> list[View]:
        """Add statements that write the parts of a complex variable into the memory of a copy; return the views of these."""
        outs = self.parts[copy]
        for x, out in zip(parts, outs):
            self.items.append(Statement("assign", copy.shape, "copy", (x,), out, self.views[out], self.needs((x,)), out))
        return [self.views[out] for out in outs]

    # -- formulas ------------------------------------------------------------------------------------------------------------

    def find_formula(self, operation: Operation) -> Formula | None:
        """Return the formula of a complex operation; None if it has none."""
        if operation.name != "pow":
            return None if operation.options else FORMULAS.get(operation.name)
        x, power = operation.args
        if not isinstance(x, Variable) or x.dtype is not operation.out.dtype or isinstance(power, Variable):
            return None
        return POWERS.get((type(power), power))

    # -- complex numbers -----------------------------------------------------------------------------------------------------

    def given_buffer(self, v: Variable) -> Buffer:
        """Return the buffer of an input, a constant or an output, in which the parts of complex numbers are in turns."""
        if not v.dtype.is_complex:
            return self.new_buffer(v)
        kind = real_of(v.dtype).name
        buffer = Buffer(2 * v.size, kind, SIZES[kind], is_paired=True)
        for k, part in enumerate(self.new_parts(v)):
            self.views[part] = View(buffer, k, v.shape, tuple(2 * s for s in row_major_strides(v.shape)))
        return buffer

    def new_parts(self, v: Variable) -> tuple[Variable, Variable]:
        """Set the parts of a complex variable to new real variables, and return these."""
        names = (None, None) if v.name is None else (f"{v.name}_real", f"{v.name}_imag")
        first, second = (Variable(v.shape, real_of(v.dtype), name) for name in names)
        return self.set_parts(v, first, second)

    def set_parts(self, v: Variable, first: Variable, second: Variable) -> tuple[Variable, Variable]:
        """Set and return the parts of a complex variable."""
        self.parts[v] = first, second
        self.readers[first] = self.readers[second] = self.readers.get(v, 0)
        return first, second

    def split(self, x: Any, dtype: DType) -> tuple[Any, Any]:
        """Return the parts of an operand, as operands of a real dtype; raise Unsupported if they cannot be cast to it."""
        if isinstance(x, Variable):
            first, second = self.parts.get(x, (x, 0.0))
            return self.converted(first, dtype), self.converted(second, dtype)
        if not isinstance(x, (int, float, complex)):
            msg = f"{x!r} as an operand"
            raise Unsupported(msg)
        return x.real, x.imag

    def converted(self, x: Any, dtype: DType) -> Any:
        """Return an operand in a dtype."""
        if not isinstance(x, Variable) or x.dtype is dtype:
            return x
        if not can_cast(x.dtype.name, dtype.name):
            msg = f"{x.dtype} as {dtype}"
            raise Unsupported(msg)
        out = Variable(x.shape, dtype)
        self.assign(out, "cast", (x,))
        return out

    def take_parts(self, rule: Rule, o: Operation) -> None:
        """Lower a complex operation once for the real parts, and once for the imaginary ones.

        Raises
        ------
        Unsupported
            The parts of the result are not what the operation gives for the parts of the operands.
        """
        if not rule.elements or not o.out.dtype.is_complex:
            msg = f"{o.name} of complex numbers"
            raise Unsupported(msg)
        dtype = real_of(o.out.dtype)

        def part(x: Any, k: int) -> Any:
            if isinstance(x, (tuple, list)):
                return tuple(part(y, k) for y in x)
            found = self.split(x, dtype)[k]
            if isinstance(x, Variable) and not isinstance(found, Variable):  # of a real array, beside complex ones
                return self.compute("copy", found, like=Variable(x.shape, dtype))
            return found

        for k, out in enumerate(self.new_parts(o.out)):
            args = tuple([part(x, k) if place in rule.elements else x for place, x in enumerate(o.args)])
            rule.function(self, o.replace(args=args, results=(out,)))

    def apply(self, formula: Formula, o: Operation) -> None:
        """Lower a complex elementwise operation by its formula."""
        conditions = o.args[:1] if formula.has_condition else ()
        if any(not isinstance(c, Variable) or c.dtype.name != "bool" for c in conditions):
            msg = f"{o.name} by numbers"
            raise Unsupported(msg)
        pairs = o.args[:1] if o.name == "pow" else o.args[len(conditions) :]
        kinds = [v.dtype for v in (o.out, *pairs) if isinstance(v, Variable) and v.dtype.name != "bool"]
        dtype = real_of(functools.reduce(promote, kinds))
        found = self.evaluate(formula, o.out.shape, dtype, [*conditions, *pairs])
        if o.out.dtype.is_complex:
            self.set_parts(o.out, *(self.result(o.out.shape, x, real_of(o.out.dtype)) for x in found))
            return
        kind = o.out.dtype if o.out.dtype.name == "bool" else dtype
        if isinstance(found, tuple) or o.out.dtype is not kind:
            msg = f"{o.name} as {o.out.dtype}"
            raise Unsupported(msg)
        self.assign(o.out, "copy", (found,))

    def evaluate(self, formula: Formula, shape: tuple[int, ...], dtype: DType, args: list[Any]) -> Any:
        """Return what a formula gives: an operand for each part, or one for a real result; `dtype` is that of the parts."""
        inner = DTYPES["float64"] if formula.is_wide else dtype
        like = Variable(shape, inner)

        def add(op: str, *operands: Any) -> Any:
            if not any(isinstance(x, Variable) for x in operands):
                operands = (self.compute("copy", operands[0], like=like), *operands[1:])
            truth = SCALARS[op].makes == "bool" or SCALARS[op].form == "bits"
            out = Variable(shape, DTYPES["bool"] if truth else inner)
            self.elementwise(out, op, operands)
            return out

        count = int(formula.has_condition)
        conditions = [Real(x, add) for x in args[:count]]
        pairs = [(Real(first, add), Real(second, add)) for first, second in (self.split(x, inner) for x in args[count:])]
        found = formula.function(*conditions, *pairs)
        return tuple([x.operand for x in found]) if isinstance(found, tuple) else found.operand

    def result(self, shape: tuple[int, ...], x: Any, dtype: DType) -> Variable:
        """Return a new variable of a shape and dtype for an operand that a formula returned, which others may read, too."""
        out = Variable(shape, dtype)
        self.assign(out, "cast" if isinstance(x, Variable) and x.dtype is not dtype else "copy", (x,))
        return out

    # -- memory ----------------------------------------------------------------------------------------------------------

    def new_buffer(self, v: Variable) -> Buffer:
        """Allocate a buffer for a variable, and set its view to all of it; raise Unsupported if machine code lacks its dtype."""
        dtype = v.dtype.name
        if dtype not in SIZES:
            msg = f"dtype {dtype}"
            raise Unsupported(msg)
        buffer = Buffer(v.size, dtype, SIZES[dtype])
        self.views[v] = View.whole(buffer, v.shape)
        return buffer

    def source(self, v: Variable) -> Variable:
        """Return the variable that must be complete before `v`, perhaps a view, can be read."""
        while v in self.sources:
            v = self.sources[v]
        return v

    def is_free(self, v: Variable) -> bool:
        """Return whether the next reader of a variable may overwrite its memory."""
        view = self.views[v]
        return self.readers.get(v) == 1 and v not in self.sources and view.buffer not in self.fixed and view.is_dense

    # -- statements ----------------------------------------------------------------------------------------------------------

    def needs(self, args: tuple[Any, ...]) -> set[Any]:
        """Return the variables that must be complete before the operands can be read."""
        return {self.source(a) for a in args if isinstance(a, Variable)}

    def assign(self, out: Variable, op: str, args: tuple[Any, ...], reads: set[Any] | None = None) -> None:
        """Add a statement that computes each element of a new array.

        Parameters
        ----------
        out : Variable
        op : str
            The scalar operation.
        args : tuple of Operand
        reads : set of hashable, optional
            The tokens to wait for; by default the variables among the operands.
        """
        self.new_buffer(out)
        self.items.append(Statement("assign", out.shape, op, args, out, self.views[out], self.needs(args) if reads is None else reads, out))

    def array(self, operation: Operation) -> Variable:
        """Return the first operand; raise Unsupported if it is not an array."""
        x = operation.args[0]
        if not isinstance(x, Variable):
            raise Unsupported(operation.name)
        return x

    def compute(self, op: str, *args: Any, like: Variable) -> Variable:
        """Add a statement for an intermediate array, of the shape and dtype of another one; return its variable."""
        out = Variable(like.shape, DTYPES["bool"] if op in SCALARS and SCALARS[op].makes == "bool" else like.dtype)
        self.elementwise(out, op, args)
        return out

    def show(self, out: Variable, x: Variable, view: View) -> None:
        """Make a result a view of the memory of `x`."""
        self.views[out], self.sources[out] = view, x

    def reduce(self, out: Variable, op: str, x: Variable, axes: Any) -> None:
        """Add a statement that computes a sum, a product or an extremum over axes.

        Raises
        ------
        Unsupported
            If a dtype has no such reduction, or `x` is empty and `op` is an extremum.
        """
        axes = tuple(sorted(a % len(x.shape) for a in axes))
        kind = x.dtype.name
        if (
            kind not in SIZES
            or not can_cast(kind, out.dtype.name)
            or out.dtype.name == "bool"
            or (op in ("max", "min") and (x.size == 0 or kind == "bool"))
        ):
            msg = f"{op} of {kind}"
            raise Unsupported(msg)
        if not axes and op == "sum" and x.dtype is out.dtype and kind in FLOATS:
            self.assign(out, "add", (x, 0.0))  # a sum of -0.0 is 0.0
            return
        if not axes:
            self.assign(out, "cast", (x,))
            return
        self.new_buffer(out)
        steps = iter(row_major_strides(tuple(n for a, n in enumerate(x.shape) if a not in axes)))
        target = View(self.views[out].buffer, 0, x.shape, tuple([0 if a in axes else next(steps) for a in range(len(x.shape))]))
        self.items.append(Statement("reduce", x.shape, op, (x,), out, target, self.needs((x,)), out, axes))

    def elementwise(self, out: Variable, op: str, args: tuple[Any, ...]) -> None:
        """Add an elementwise statement; raise Unsupported if machine code lacks the scalar operation."""
        kinds = [a.dtype.name if isinstance(a, Variable) else a for a in args]
        if not has_scalar(op, out.dtype.name, kinds):
            msg = f"{op} of {kinds}"
            raise Unsupported(msg)
        self.assign(out, op, args)

    def store(self, out: Variable, op: str, value: Any, target: View | Indexed, reads: set[Any], makes: Any = None) -> None:
        """Add a statement that writes or adds a value to memory.

        Parameters
        ----------
        out : Variable
            The array whose memory it is.
        op : {"=", "+="}
        value : Operand
        target : View or Indexed
        reads : set of hashable
            The tokens to wait for, besides the value.
        makes : hashable, optional
            What is complete after it; `out` by default.

        Raises
        ------
        Unsupported
            The value cannot be cast or broadcast to the memory, or a bool is added.
        """
        domain = (target.view if isinstance(target, Indexed) else target).shape
        kind = value.dtype.name if isinstance(value, Variable) else value
        fits = (
            can_cast(kind, out.dtype.name) and len(value.shape) <= len(domain)
            if isinstance(kind, str)
            else has_scalar("copy", out.dtype.name, [kind])
        )
        if not fits or (op == "+=" and out.dtype.name == "bool"):
            msg = f"{kind} written into {out.dtype}"
            raise Unsupported(msg)
        self.items.append(
            Statement("store", domain, op, (value,), out, target, reads | self.needs((value,)), out if makes is None else makes)
        )

    def part(self, out: Variable, is_last: bool, value: Any, target: View, started: Any) -> Any:
        """Add a statement that writes a value to one of several parts of a result, `target`; return what is complete after it.

        The part waits for the token `started`, if there is one. After the last part, `out` is complete.
        """
        makes = out if is_last else ("part", out, len(self.items))
        self.store(out, "=", value, target, set() if started is None else {started}, makes)
        return makes

    def start(self, out: Variable, value: Any) -> Any:
        """Fill the memory of a result that is written in parts; return the token that later statements wait for."""
        self.new_buffer(out)
        makes = ("start", out)
        self.store(out, "=", value, self.views[out], set(), makes)
        return makes

    def update(self, out: Variable, buffer: Any, values: Any) -> Any:
        """Start a result as a copy of an array, to which `values` are written or added next; return the token to wait for.

        It is in the array's memory if nothing else reads that, `values` included: the operation that reads both counts as one reader.
        """
        if isinstance(buffer, Variable) and buffer is not values and self.is_free(buffer) and buffer.dtype is out.dtype:
            view = self.views[buffer]
            self.views[out] = View(view.buffer, view.offset, out.shape, view.strides)
            return self.source(buffer)
        return self.start(out, buffer)

    def indexed(self, x: View, keys: Any, shape: tuple[int, ...]) -> tuple[Indexed, set[Any]]:
        """Return the elements ``x[keys]`` over a domain, and the tokens to wait for; `keys` are integer arrays for the first axes.

        Raises
        ------
        Unsupported
            A key is something else.
        """
        parts = keys if isinstance(keys, tuple) else (keys,)
        count = len(parts)
        if not parts or count > len(x.shape) or not all(isinstance(p, Variable) and p.dtype.name in ("int64", "int32") for p in parts):
            msg = "an index that is not an array of integers"
            raise Unsupported(msg)
        rest = x.shape[count:]
        lead = len(shape) - len(rest)
        view = View(x.buffer, x.offset, shape, (0,) * lead + x.strides[count:])
        reads: set[Any] = set()
        indices = []
        for key, length, stride in zip(parts, x.shape, x.strides):
            reads.add(self.check(key, length))
            at = Variable(key.shape + (1,) * len(rest), key.dtype)  # the same array, with axes for those that are not indexed
            self.views[at] = View(self.views[key].buffer, self.views[key].offset, at.shape, self.views[key].strides + (0,) * len(rest))
            self.sources[at] = key
            indices.append((at, length, stride))
        return Indexed(view, tuple(indices)), reads

    def check(self, key: Variable, length: int) -> Any:
        """Add a bounds check of an array of indices, unless it exists; return the token to wait for."""
        found = self.checked.get((key, length))
        if found is None:
            found = self.checked[key, length] = ("check", key, length)
            self.items.append(Check(self.views[key], length, {self.source(key)}, found))
        return found

    def find_additions(self) -> dict[Operation, tuple[Operation, Variable] | None]:
        """Find sums of a matrix product and a dead array, which BLAS computes in the memory of the array.

        Returns
        -------
        dict
            For each such sum the product and the array; for each of the products None.
        """
        found: dict[Operation, tuple[Operation, Variable] | None] = {}
        made = {o.out: o for o in self.program.operations if not o.several}
        for o in self.program.operations:
            if o.name != "add" or not all(isinstance(a, Variable) for a in o.args) or o.args[0] is o.args[1]:
                continue
            for a, b in (o.args, o.args[::-1]):
                first, second = made.get(a), made.get(b)
                if first is None or second is None or first.name != "matmul" or first in found:
                    continue
                if second.name == "add" or (second.name == "matmul" and second not in found):
                    alike = a.shape == b.shape == o.out.shape and a.dtype is b.dtype is o.out.dtype and len(a.shape) == 2
                    if alike and self.readers[a] == self.readers[b] == 1:
                        found[o], found[first] = (first, b), None
                        break
        return found

    def multiply(self, o: Operation, out: Variable, adds: Variable | None = None) -> None:
        """Lower a product of matrices; if `adds` is given, add the product to it, in its memory.

        Raises
        ------
        Unsupported
            The emitter multiplies no matrices of these dtypes, shapes or strides.
        """
        a, b = o.args
        if not self.products or out.dtype.name not in FLOATS or not (isinstance(a, Variable) and isinstance(b, Variable)):
            raise Unsupported(o.name)
        if a.dtype is not out.dtype or b.dtype is not out.dtype or 0 in (*a.shape, *b.shape):
            raise Unsupported(o.name)
        x, y = self.views[a], self.views[b]
        x = x.indexed((None,)) if len(a.shape) == 1 else x
        y = y.indexed((slice(None), None)) if len(b.shape) == 1 else y
        reads = self.needs((a, b))
        if adds is None:
            self.new_buffer(out)
        else:
            old = self.views[adds]
            self.views[out] = View(old.buffer, old.offset, out.shape, old.strides)
            reads.add(self.source(adds))
        rank = max(len(x.shape), len(y.shape))
        stack = out.shape[: rank - 2]
        x, y = (v.expanded(stack + v.shape[-2:]) for v in (x, y))
        target = View.whole(self.views[out].buffer, stack + (x.shape[-2], y.shape[-1]))
        first, second = _stacked(self.as_factor(a, x, reads)), _stacked(self.as_factor(b, y, reads))
        third = _stacked(target)
        if first is None or second is None or third is None:
            raise Unsupported(o.name)
        self.items.append(Product(first, second, third, out, adds is not None, reads, out))

    def as_factor(self, v: Variable, view: View, reads: set[Any]) -> View:
        """Return the view itself if its rows or columns are contiguous, as BLAS requires, else a copy, which is added to `reads`."""
        (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
        if _stacked(view) is not None and ((t == 1 and s >= n) or (s == 1 and t >= m) or (n == 1 and s >= 1) or (m == 1 and t >= 1)):
            return view
        copy = Variable(view.shape, v.dtype)
        whole = Variable(view.shape, v.dtype)
        self.views[whole], self.sources[whole] = view, v
        self.assign(copy, "copy", (whole,))
        reads.add(copy)
        return self.views[copy]

    def own_outputs(self) -> list[Buffer]:
        """Return the buffer of each output; copy outputs that share memory with another variable."""
        found: list[Buffer] = []
        for v in self.program.outputs:
            if v.dtype.is_complex:
                copy = Variable(v.shape, v.dtype, v.name)
                found.append(self.given_buffer(copy))
                self.copy_parts(self.parts[v], copy)
                continue
            view = self.views[v]
            if view.buffer in self.fixed or view.buffer in found or view.offset or not view.is_dense or view.buffer.size != v.size:
                copy = Variable(v.shape, v.dtype)
                self.assign(copy, "copy", (v,))
                view = self.views[copy]
            found.append(view.buffer)
        return found


def _stacked(view: View) -> View | None:
    """Return a stack of matrices as a view with three axes, or a single matrix with two; None if the stack has no common stride."""
    stack = view.shape[:-2]
    if math.prod(stack) == 1:
        return View(view.buffer, view.offset, view.shape[-2:], view.strides[-2:])
    steps = [(n, s) for n, s in zip(stack, view.strides) if n != 1]
    for (_, s), (n, t) in itertools.pairwise(steps):
        if s != n * t:
            return None
    return View(view.buffer, view.offset, (math.prod(stack), *view.shape[-2:]), (steps[-1][1], *view.strides[-2:]))
