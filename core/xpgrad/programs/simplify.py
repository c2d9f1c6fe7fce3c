"""The first pass over a program: remove unnecessary operations, and simplify those that derivatives introduce.

One walk over the operations folds constants, computes equal operations once, replaces expanded operands by the arrays that were expanded,
and applies the rules of algebra below. Then operations whose results are unused are removed.

The rules keep every bit: dtype, shape, NaN, infinities and the sign of zero. So ``x * 0`` is not replaced by 0, nor ``x + 0.0`` by `x`,
which may be -0.0, but ``x - 0.0`` and, for real `x`, ``x * 1`` are. There are two exceptions. The sum of an expanded array becomes a
product, which rounds differently from a sum, and is -0.0 if all terms are -0.0. And ``x * a * 2`` becomes ``x * (2 * a)``, which differs if
the first product is subnormal. Rules check the dtypes of operands, not only of results: ``n * -1.0`` for integers is not a negation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import DType, finfo
from xpgrad._basics.shapes import common_shape
from xpgrad._rows.kernels import kernel_of
from xpgrad.programs.program import Inner, Operation, Program, Steps, Variable, substitute, with_inner

__all__ = ["Evaluate", "simplify_program", "with_numbers", "without_dead_code"]

#: Runs one operation on raw arrays, its operands by variable, and returns its raw results.
Evaluate = Callable[[Operation, dict[Variable, Any]], "list[Any]"]

_LIMIT = 1 << 16
#: The values of arrays that are filled with one, by the beginning of the kernel's name; those of others are arguments.
_FILLED = {"zeros": 0, "ones": 1}


def simplify_program(program: Program, evaluate: Evaluate | None = None, limit: int = _LIMIT) -> Program:
    """Return an equivalent program with fewer and simpler operations.

    Parameters
    ----------
    program : Program
    evaluate : callable or None
        ``evaluate(operation, values)`` runs an operation on raw arrays. If None, constants are not folded.
    limit : int
        The largest number of elements of a result to compute in advance.
    """
    walk = _Walk(program, evaluate, limit)
    for operation in program.operations:
        walk.take(operation)
    same = walk.same
    outputs = [same.get(v, v) for v in program.outputs]
    return without_dead_code(Program(program.inputs, walk.constants, walk.operations, outputs))


def without_dead_code(program: Program) -> Program:
    """Return a program without the operations and constants on which no output depends."""
    needed = set(program.outputs)
    kept: list[Operation] = []
    for operation in reversed(program.operations):
        if any(v in needed for v in operation.results):
            if operation.name == "scan":
                operation = _without_dead_results(operation, needed)
            kept.append(operation)
            needed.update(operation.operands())
    constants = {v: raw for v, raw in program.constants.items() if v in needed}
    return Program(program.inputs, constants, kept[::-1], program.outputs)


def _without_dead_results(operation: Operation, needed: set[Variable]) -> Operation:
    """Return a scan without the stacked results that nobody needs, and without what only they read."""
    steps: Steps = operation.options["inner"]
    count, body = steps.count, steps.program
    kept = [k for k in range(len(operation.results)) if k < count or operation.results[k] in needed]
    if len(kept) < len(operation.results):
        body = without_dead_code(Program(body.inputs, body.constants, body.operations, [body.outputs[k] for k in kept]))
    init, xs, shared = operation.args
    read = {*body.outputs, *(v for o in body.operations for v in o.operands())}
    fixed = count + len(xs)
    xs_kept = [k for k in range(len(xs)) if body.inputs[count + k] in read]
    shared_kept = [k for k in range(len(shared)) if body.inputs[fixed + k] in read]
    inputs = [*body.inputs[:count], *(body.inputs[count + k] for k in xs_kept), *(body.inputs[fixed + k] for k in shared_kept)]
    if len(kept) == len(operation.results) and len(inputs) == len(body.inputs):
        return operation
    return operation.replace(
        args=(init, tuple([xs[k] for k in xs_kept]), tuple([shared[k] for k in shared_kept])),
        options={"inner": steps.with_programs((Program(inputs, body.constants, body.operations, body.outputs),))},
        results=tuple([operation.results[k] for k in kept]),
    )


def with_numbers(program: Program) -> Program:
    """Return a program with 0-d constants replaced by Python numbers, for libraries whose elementwise functions accept these."""
    constants = program.constants
    if all(v.shape for v in constants):
        return program
    operations = [_with_number(o, constants) if o.facts.ufunc is not None else o for o in program.operations]
    return without_dead_code(Program(program.inputs, constants, operations, program.outputs))


def _with_number(operation: Operation, constants: dict[Variable, Any]) -> Operation:
    """Return an operation with a 0-d constant as a Python number if the result keeps its dtype, else the operation unchanged."""
    args = operation.args
    first = 1 if operation.name == "where" else 0
    if len(args) != first + 2:
        return operation
    a, b = args[first:]
    if a.__class__ is not Variable or b.__class__ is not Variable or a.dtype is not b.dtype:
        return operation
    for i, (x, y) in enumerate(((a, b), (b, a))):
        if x in constants and y not in constants and not x.shape and not x.dtype.is_complex:
            item = getattr(constants[x], "item", None)
            if item is not None:
                return operation.replace(args=(*args[: first + i], item(), *args[first + i + 1 :]))
    return operation


class _Walk:
    """Builds the simplified program, and records facts about its variables."""

    def __init__(self, program: Program, evaluate: Evaluate | None, limit: int) -> None:
        self.evaluate, self.limit = evaluate, limit
        self.constants = dict(program.constants)
        self.fixed = {*program.inputs, *program.constants}
        self.operations: list[Operation] = []
        self.same: dict[Variable, Variable] = {}  # what is read in place of a variable of the old program
        self.made: dict[Variable, Operation] = {}  # by which operation of the new program, with one result
        self.slim: dict[Variable, Variable] = {}  # what an expanded variable is an expansion of: broadcasts to it by itself
        self.seen: dict[Any, tuple[Variable, ...]] = {}

    def take(self, operation: Operation) -> None:
        """Simplify and add an operation of the old program."""
        same = self.same
        if "inner" in operation.options:
            operation = with_inner(operation, lambda program: simplify_program(program, self.evaluate, self.limit))
        if same:
            for v in operation.operands():
                if v in same:
                    operation = operation.replace(
                        args=substitute(operation.args, lambda v: same.get(v, v)),
                        options={k: substitute(x, lambda v: same.get(v, v)) for k, x in operation.options.items()},
                    )
                    break
        for old, new in zip(operation.results, self.add(operation)):
            if old is not new:
                same[old] = new
                if new.name is None and new not in self.fixed:
                    new.name = old.name

    def add(self, operation: Operation) -> tuple[Variable, ...]:
        """Simplify or fold an operation, or add it to the new program unless an equal one exists; return its results."""
        name = operation.name
        if not operation.several:
            facts = kernel_of(name)
            if self.slim and (facts.ufunc is not None or facts.kind == "cast"):
                found = self.apply_to_expanded(operation)
                if found.__class__ is Variable:
                    return (found,)
                operation = found
            if facts.operator is not None and self.constants:
                operation = _with_number(operation, self.constants)
            rule = _RULES.get(name) or _RULES_OF_KINDS.get(facts.kind)
            if rule is not None:
                simpler = rule(self, operation)
                if simpler is not None:
                    return (simpler,)
        if self.fold(operation):
            return operation.results
        key = (name, _key(operation.args), _key(operation.options) if operation.options else None)
        seen = self.seen.get(key)
        if seen is not None and name != "empty" and all(a.dtype is b.dtype for a, b in zip(seen, operation.results)):
            return seen
        self.seen[key] = operation.results
        self.operations.append(operation)
        if not operation.several:
            self.made[operation.out] = operation
        return operation.results

    def call(self, like: Operation, name: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: DType) -> Variable:
        """Add another operation with the line of `like`, and return its result."""
        out = Variable(shape, dtype)
        return self.add(Operation(name, args, {}, (out,), line=like.line, backward=like.backward))[0]

    def instead(self, operation: Operation, name: str, *args: Any) -> Variable:
        """Add an operation that replaces another one, and return its result."""
        out = operation.out
        return self.add(Operation(name, args, {}, (out,), line=operation.line, backward=operation.backward))[0]

    # -- constants ---------------------------------------------------------------------------------------------

    def fold(self, operation: Operation) -> bool:
        """Compute an operation on constants now, and return True.

        Return False if an operand is not constant, the result is too large, nothing evaluates operations, or that fails.
        """
        constants, facts = self.constants, operation.facts
        if self.evaluate is None or operation.name == "empty" or not (facts.is_fresh or facts.is_view):
            return False
        for v in operation.operands():
            if v not in constants:
                return False
        if not facts.is_view and any(v.size > self.limit for v in operation.results):
            return False
        try:
            results = self.evaluate(operation, constants)
        except Exception:  # noqa: BLE001 (whatever it is, and warnings that are errors: the user meets it when the program runs)
            return False
        constants.update(zip(operation.results, results))
        return True

    # -- expansions ---------------------------------------------------------------------------------------------

    def apply_to_expanded(self, operation: Operation) -> Any:
        """Return an operation that takes operands before their expansion where NumPy's broadcasting expands them anyway.

        If the result itself is an expansion, return the variable of the expanded small result instead. An operation with
        options is returned unchanged in that case.
        """
        slim = self.slim
        args: Any = operation.args
        if not any(a.__class__ is Variable and a in slim for a in args):
            return operation
        args = tuple([slim.get(a, a) if a.__class__ is Variable else a for a in args])
        shape = common_shape(*[a.shape for a in args if a.__class__ is Variable])
        if shape == operation.out.shape:
            return operation.replace(args=args)
        if operation.options:
            return operation
        small = self.call(operation, operation.name, args, shape, operation.out.dtype)
        return self.instead(operation, "broadcast_to", small, operation.out.shape)


def _key(x: Any) -> Any:
    """Return a key under which different arguments differ, including 1, 1.0 and True, and 0.0 and -0.0."""
    if x.__class__ is Variable or x is None or x.__class__ is str:
        return x
    if x.__class__ is tuple or x.__class__ is list:
        return tuple([_key(i) for i in x])
    if x.__class__ is dict:
        return tuple([(k, _key(i)) for k, i in x.items()])
    if x.__class__ is slice:
        return (slice, x.start, x.stop, x.step)
    if isinstance(x, Inner):
        return (Inner, id(x))
    return (x.__class__, repr(x))


# -- rules ------------------------------------------------------------------------------------------------------------------
#
# A rule takes the walk and an operation, and returns the variable that holds its result, or None where it does not apply.


def _same(walk: _Walk, operation: Operation, x: Any) -> Variable | None:
    """Return `x`, broadcast to the shape of the operation's result if necessary; None if it is not a variable of the same dtype."""
    out = operation.out
    if x.__class__ is not Variable or x.dtype is not out.dtype:
        return None
    return x if x.shape == out.shape else walk.instead(operation, "broadcast_to", x, out.shape)


def _copy(walk: _Walk, operation: Operation) -> Variable | None:
    return _same(walk, operation, operation.args[0])


def _conjugate(walk: _Walk, operation: Operation) -> Variable | None:
    return None if operation.out.dtype.is_complex else _same(walk, operation, operation.args[0])


def _cast(walk: _Walk, operation: Operation) -> Variable | None:
    x, out = operation.args[0], operation.out
    if x.dtype is out.dtype:
        return _same(walk, operation, x)
    if operation.name != "to_dtype":  # one name for all
        return walk.instead(operation, "to_dtype", x, out.dtype)
    return None


def _creation(walk: _Walk, operation: Operation) -> Variable | None:
    """Replace an array with one value by a 0-d constant where operands broadcast."""
    out = operation.out
    name = operation.name.partition("_")[0]
    if name == "empty":
        return None
    value: Any = _FILLED.get(name)
    if value is None:
        value = operation.args[1] if len(operation.args) > 1 else operation.options.get("fill_value")
    if value.__class__ is Variable:
        if value.shape or value.dtype is not out.dtype:
            return None
        return walk.instead(operation, "broadcast_to", value, out.shape)
    if walk.evaluate is None or value is None:
        return None
    number = Variable((), out.dtype)
    options = {**{k: x for k, x in operation.options.items() if k != "fill_value"}, "dtype": out.dtype}
    if not walk.fold(Operation("full", ((), value), options, (number,))):
        return None
    if not out.shape:
        return number
    if operation.name not in ("zeros", "ones", "full"):  # it need not keep the array that it is like
        args = (out.shape,) if name != "full" else (out.shape, value)
        operation = Operation(name, args, options, (out,), line=operation.line, backward=operation.backward)
    walk.operations.append(operation)
    walk.slim[out] = number
    return out


def _expand(walk: _Walk, operation: Operation) -> Variable | None:
    """Replace every kind of expansion by `broadcast_to`."""
    x, out = operation.args[0], operation.out
    if x.shape == out.shape:
        return _same(walk, operation, x)
    if operation.name == "expand_reduced":
        _, shape, axes, keepdims = operation.args
        if axes is not None and not keepdims and x.shape:
            axes = {a % len(shape) for a in axes}
            if axes != set(range(len(axes))):
                x = walk.call(
                    operation, "reshape_to", (x, tuple(1 if i in axes else n for i, n in enumerate(shape))), *_expand_like(x, axes, shape)
                )
    if x.size == out.size:
        return walk.instead(operation, "reshape_to", x, out.shape)
    x = walk.slim.get(x, x)
    if operation.name != "broadcast_to" or operation.args != (x, out.shape):
        return walk.instead(operation, "broadcast_to", x, out.shape)
    if x.size < out.size:
        walk.slim[out] = x
    return None


def _expand_like(x: Variable, axes: set[int], shape: tuple[int, ...]) -> tuple[tuple[int, ...], DType]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape)), x.dtype


def _view(walk: _Walk, operation: Operation) -> Variable | None:
    """Simplify views of expanded arrays, and views of the whole array."""
    x, out, facts = operation.args[0], operation.out, operation.facts
    if not facts.is_view:
        return None
    if x.dtype is out.dtype:
        slim = walk.slim.get(x)
        if slim is not None and not slim.shape:
            return walk.instead(operation, "broadcast_to", slim, out.shape)
    if facts.kind == "reshape":
        return _reshape(walk, operation)
    if facts.kind == "transpose":
        return _transpose(walk, operation)
    if operation.name == "index_basic":
        key = operation.args[1] if operation.args[1].__class__ is tuple else (operation.args[1],)
        if all(k is None or k is Ellipsis or k.__class__ is slice for k in key) and x.size == out.size and _forward(key):
            return walk.instead(operation, "reshape_to", x, out.shape)
    return None


def _forward(key: tuple[Any, ...]) -> bool:
    return all(k.__class__ is not slice or k.step is None or k.step > 0 for k in key)


def _reshape(walk: _Walk, operation: Operation) -> Variable | None:
    x, out = operation.args[0], operation.out
    if x.shape == out.shape:
        return x
    made = walk.made.get(x)
    if made is not None and made.name == "reshape_to":
        return walk.instead(operation, "reshape_to", made.args[0], out.shape)
    if operation.name != "reshape_to" or operation.args[1] != out.shape or operation.options:
        return walk.instead(operation, "reshape_to", x, out.shape)
    return None


def _transpose(walk: _Walk, operation: Operation) -> Variable | None:
    x, name = operation.args[0], operation.name
    rank = len(x.shape)
    if name == "moveaxis":
        return None
    if name in ("matrix_transpose", "linalg.matrix_transpose", "swap_last"):
        axes = (*range(rank - 2), rank - 1, rank - 2)
    else:
        given = operation.args[1] if len(operation.args) > 1 else operation.options.get("axes")
        if given is None:
            return None
        axes = tuple(a % rank for a in given)
    if axes == tuple(range(rank)):
        return x
    made = walk.made.get(x)
    if made is not None and made.name == "transpose_axes":
        inner = made.args[1]
        return walk.instead(operation, "transpose_axes", made.args[0], tuple(inner[a] for a in axes))
    if name != "transpose_axes" or operation.args != (x, axes) or operation.options:
        return walk.instead(operation, "transpose_axes", x, axes)
    return None


def _sum_to(walk: _Walk, operation: Operation) -> Variable | None:
    """Replace `sum_to` by a sum over axes; not for small integers, whose NumPy sums change the dtype."""
    x, out = operation.args[0], operation.out
    if x.shape == out.shape:
        return _same(walk, operation, x)
    if not x.dtype.differentiable:
        return None
    extra = len(x.shape) - len(out.shape)
    ones = tuple(i + extra for i, n in enumerate(out.shape) if n == 1 and x.shape[i + extra] != 1)
    axes = tuple(range(extra)) + ones
    if not axes:
        return None
    every = len(axes) == len(x.shape)
    keepdims = extra == 0
    shape = (
        tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        if keepdims
        else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    )
    args = (x, None if every else axes, keepdims)
    if shape == out.shape:
        return walk.instead(operation, "reduce_sum", *args)
    return walk.instead(operation, "reshape_to", walk.call(operation, "reduce_sum", args, shape, out.dtype), out.shape)


def _sum(walk: _Walk, operation: Operation) -> Variable | None:
    """Replace the sum of an expanded array by a product."""
    x, axes, keepdims = operation.args
    out = operation.out
    if not _wide(x.dtype) or x.dtype.is_complex or not x.size:  # a complex inf times a number has a nan in it
        return None
    slim = walk.slim.get(x)
    if slim is None:
        return None
    rank = len(x.shape)
    shape = (1,) * (rank - len(slim.shape)) + slim.shape
    reduced = range(rank) if axes is None else sorted(a % rank for a in axes)
    if all(shape[a] == 1 for a in reduced):
        count = math.prod(x.shape[a] for a in reduced)
        rest = tuple(1 if a in reduced else n for a, n in enumerate(x.shape)) if keepdims else out.shape
        small = slim
        kept = tuple(n for a, n in enumerate(shape) if a not in reduced) if not keepdims else shape
        if math.prod(kept) != slim.size:
            return None
        if slim.shape != kept:
            small = walk.call(operation, "reshape_to", (slim, kept), kept, slim.dtype)
        small = walk.call(operation, "multiply", (small, count), kept, slim.dtype)
        return _same(walk, operation, small) if rest == out.shape else None
    if axes is None and not keepdims:
        whole = walk.call(operation, "reduce_sum", (slim, None, False), (), x.dtype)
        return walk.instead(operation, "multiply", whole, x.size // slim.size)
    return None


def _wide(dtype: DType) -> bool:
    """Return whether a dtype is floating-point or complex with more than 16 bits; sums of 16-bit numbers use another precision."""
    return dtype.differentiable and dtype.itemsize >= 4


def _mean(walk: _Walk, operation: Operation) -> Variable | None:
    x, axes, keepdims = operation.args
    out = operation.out
    if not _wide(x.dtype) or not x.size:
        return None
    total = walk.call(operation, "reduce_sum", (x, axes, keepdims), out.shape, x.dtype)
    return walk.instead(operation, "divide", total, x.size // max(out.size, 1))


def _inner(walk: _Walk, operation: Operation, x: Any, name: str) -> tuple[Any, ...] | None:
    """Return the arguments of the operation `name` that made `x`, for rules that merge two operations.

    It returns None if `x` or its first operand has another dtype than the result, since arithmetic differs then, e.g. modulo 256; and None
    for complex numbers, since libraries differ in the signs of zeros and in infinite parts.
    """
    made = walk.made.get(x) if x.__class__ is Variable else None
    if made is None or made.name != name or made.args[0].__class__ is not Variable:
        return None
    dtype = operation.out.dtype
    return made.args if x.dtype is dtype and made.args[0].dtype is dtype and not dtype.is_complex else None


def _negative(walk: _Walk, operation: Operation) -> Variable | None:
    (x,) = operation.args
    inner = _inner(walk, operation, x, "negative")
    if inner is not None:
        return inner[0]
    inner = _inner(walk, operation, x, "multiply") or _inner(walk, operation, x, "divide")
    if inner is not None and _float(inner[1]) and x.dtype.is_floating_point:
        return walk.instead(operation, walk.made[x].name, inner[0], -inner[1])
    return None


def _float(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x != 0


def _double_constant(dtype: DType, x: Any, y: Any) -> Any:
    """Return x * y if `y` is plus or minus a power of 2 above 1, and `dtype` holds all three numbers exactly; None otherwise."""
    if not (_float(x) and _float(y) and math.isfinite(y) and abs(y) > 1 and math.frexp(y)[0] in (0.5, -0.5)):
        return None
    limits = finfo(dtype)
    return x * y if limits.smallest_normal <= abs(x) and max(abs(x * y), abs(y)) <= limits.max else None


def _is(x: Any, number: int) -> bool:
    """Return whether `x` is a Python number equal to `number`."""
    return isinstance(x, (int, float)) and x == number


def _add(walk: _Walk, operation: Operation) -> Variable | None:
    a, b = operation.args
    if a.__class__ is Variable and a.dtype.differentiable:  # -0.0 leaves a real number as it is; 0.0 makes -0.0 positive
        if isinstance(b, float) and b == 0 and math.copysign(1.0, b) < 0 and not a.dtype.is_complex:
            return _same(walk, operation, a)
    elif _is(b, 0):
        return _same(walk, operation, a)
    inner = _inner(walk, operation, b, "negative")
    if inner is not None and a.__class__ is Variable:
        return walk.instead(operation, "subtract", a, inner[0])
    inner = _inner(walk, operation, a, "negative")
    if inner is not None and b.__class__ is Variable:
        return walk.instead(operation, "subtract", b, inner[0])
    return None


def _subtract(walk: _Walk, operation: Operation) -> Variable | None:
    a, b = operation.args
    if _is(b, 0) and (not isinstance(b, float) or math.copysign(1.0, b) > 0) and not operation.out.dtype.is_complex:
        return _same(walk, operation, a)  # libraries differ in the sign of a zero part of a complex number
    inner = _inner(walk, operation, b, "negative")
    if inner is not None and a.__class__ is Variable:
        return walk.instead(operation, "add", a, inner[0])
    return None


def _multiply(walk: _Walk, operation: Operation) -> Variable | None:
    a, b = operation.args
    if a.__class__ is not Variable:  # numbers stand on the right
        return walk.instead(operation, "multiply", b, a)
    real = operation.out.dtype.is_floating_point
    if _is(b, 1) and not operation.out.dtype.is_complex:  # a complex inf times 1 has a nan in it
        return _same(walk, operation, a)
    if real and operation.out.dtype.itemsize >= 4:  # to scale by a power of 2 rounds nothing, unless the first product is subnormal
        inner = _inner(walk, operation, a, "multiply")
        factor = None if inner is None else _double_constant(a.dtype, inner[1], b)
        if inner is not None and factor is not None:
            return walk.instead(operation, "multiply", inner[0], factor)
    if real and _is(b, -1) and a.dtype is operation.out.dtype:
        return walk.instead(operation, "negative", a)
    left, right = _inner(walk, operation, a, "negative"), _inner(walk, operation, b, "negative")
    if left is not None and right is not None:
        return walk.instead(operation, "multiply", left[0], right[0])
    if left is not None and real and _float(b):
        return walk.instead(operation, "multiply", left[0], -b)
    return None


def _divide(walk: _Walk, operation: Operation) -> Variable | None:
    a, b = operation.args
    if _is(b, 1) and not operation.out.dtype.is_complex:
        return _same(walk, operation, a)
    left = _inner(walk, operation, a, "negative")
    if left is not None and operation.out.dtype.is_floating_point and _float(b):
        return walk.instead(operation, "divide", left[0], -b)
    return None


def _power(walk: _Walk, operation: Operation) -> Variable | None:
    a, b = operation.args
    if a.__class__ is Variable and a.dtype is operation.out.dtype and a.dtype.is_floating_point and a.shape:
        if _is(b, 2):  # what NumPy makes of `x ** 2` itself
            return walk.instead(operation, "square", a)
        if _is(b, 1):
            return _same(walk, operation, a)
    return None


def _scale(walk: _Walk, operation: Operation) -> Variable | None:
    g, factor = operation.args
    if factor.__class__ is Variable and (factor.dtype is not g.dtype or len(factor.shape) > len(g.shape)):
        return None
    return walk.instead(operation, "multiply", g, factor)


def _simplify_where(walk: _Walk, operation: Operation) -> Variable | None:
    _, a, b = operation.args
    return _same(walk, operation, a) if a is b else None


_Rule = Callable[[_Walk, Operation], Variable | None]
_RULES: dict[str, _Rule] = {
    "conj": _conjugate, "real": _conjugate, "real_part": _conjugate, "sum_to": _sum_to, "reduce_sum": _sum, "reduce_mean": _mean,
    "negative": _negative, "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "pow": _power, "scale": _scale,
    "where": _simplify_where,
}  # fmt: skip
#: Of kernels that have no rule of their own.
_RULES_OF_KINDS: dict[str, _Rule] = {
    "copy": _copy, "cast": _cast, "fill": _creation, "expansion": _expand, "reshape": _view, "transpose": _view, "selection": _view,
}  # fmt: skip
