"""Law: functions that transform functions inside functions have the values and derivatives that PyTorch gives them.

A program is source text in the dialect that `xpgrad.func` and `torch.func` share: arithmetic, shapes (also empty ones), indices of every
integer dtype, casts to single precision and back, writes into temporaries, and closures under `vmap`, `grad`, `vjp`, `jvp`, `jacrev`,
`jacfwd`, `hessian` and `linearize`, nested at random. Its value, the gradient of a scalar of it and the gradient of that gradient are
compared, or the derivatives of its gradient along a tangent, forward over reverse and reverse over forward. A difference does not count if
PyTorch's own results change when the leaves change in their last places or the two modes are exchanged.

``XPGRAD_PROGRAMS=10000`` draws more programs than CI does; a failure prints the program. Programs that PyTorch refuses are counted and must
stay rare, because a program that only xpgrad runs is not compared. The same programs also run in ways that must not change the result: in
nested checkpoints, packed, in a batch of one. The programs leave out:

* results of mapped functions that are the same for the whole batch: PyTorch repeats them along axis 0 whatever `out_dims` says;
* custom Functions under `no_grad`, which PyTorch records inside `grad`, and the tangents of their tangents, which it takes for 0;
* `no_grad` inside `hessian`, which is forward over reverse in PyTorch and reverse over reverse here: forward mode ignores it;
* duplicates in an integer key that is written to: the gradient goes to the write that won, in PyTorch to all of them;
* negative indices in `take` and `index_add_`, which PyTorch refuses;
* `linearize` of PyTorch itself, whose results have no derivatives: `jvp` replaces it.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.functions import SavesInputs
from support.programs import INDICES, Library, count, wide_enough
from xpgrad import func

try:
    import torch
except ImportError:
    torch = None

COUNT = count(600)
BLOCKS = 12
LARGEST = 200  # elements
LONG = (60, 3)  # more elements than an 8-bit integer can count
BATCHED, FORWARD = 0, 1  # which seeds, modulo 4, have several gradients at once, or tangents

Shape = tuple[int, ...]
Variable = tuple[str, Shape]

UNARY = ("sin({})", "tanh({})", "cos({})", "{} * 0.75", "1.0 - {}", "-{}", "{} * {}", "exp(-{} * {})", "sqrt({} * {} + 0.5)", "abs({})",
         "1.0 / ({} * {} + 1.0)", "clip({}, -0.5, 0.5)", "{} ** 3", "log1p({} * {})", "atan({})", "where({} > 0.3, {}, sin({}))",
         "{}.detach() * {}", "expm1(0.5 * {})", "real(exp(1j * {}))",
         "imag(({} + 2j) * conj({} * 1j + 1.0) ** 2)", "abs(sin({} + 1j))", "custom({})", "with_jvp({})")  # fmt: skip
WIDTHS = ("astype(sin(astype({}, float32)), float64)", "astype({}, float32) * {}", "{} + 0.5 * astype(astype({}, float32), float64)",
          "real(astype({}, complex64) * (0.5 + 1j) * {})", "abs(astype({} + 1j, complex64) - {})")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} / (cos({}) + 2.0)", "maximum({}, {})", "minimum({}, {})", "where({} > 0.2, {}, 0.5)",
          "atan2({}, {} + 3.0)", "hypot({}, {} + 2.0)", "real(({} + 1j * {}) / ({} - 2j))", "abs({} + 1j * {} + 0.5)",
          "imag(conj({} + 2j) * exp(1j * {}))")  # fmt: skip
WEIGHTS = {"unary": 5, "binary": 6, "shaped": 6, "write": 2, "transform": 7}


class Program:
    """A source text under construction, one statement at a time; each statement defines a variable of known shape."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.quiet = self.linear = 0
        self.forward = self.moving = int(seed % 4 == FORWARD)  # the number of tangents
        self.mixed, self.empty = self.rng.random() < 0.15, self.rng.random() < 0.1
        leaves = [(f"x{k}", self.shape(3)) for k in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.05:
            leaves[0] = ("x0", LONG)
        self.leaves = leaves
        out = self.body(list(leaves), 1, self.rng.choice((1, 2, 2, 3)), self.rng.randint(2, 6))
        self.lines.insert(0, f"def program({', '.join(name for name, _ in leaves)}):")
        self.lines.append(f"    return {out[0]}")

    @property
    def source(self) -> str:
        return "\n".join(self.lines) + "\n"

    def shape(self, axes: int) -> Shape:
        return tuple(self.rng.choice((0, 1, 2, 3) if self.empty else (1, 2, 3, 3)) for _ in range(self.rng.randint(0, axes)))

    def new(self, expression: str, shape: Shape, indent: int) -> Variable:
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"{'    ' * indent}{name} = {expression}")
        return name, shape

    def body(self, known: list[Variable], indent: int, depth: int, statements: int) -> Variable:
        """Add statements that see the variables `known`; return the variable of the result."""
        first = len(known)
        for _ in range(statements):
            kind = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            if kind == "transform" and depth == 0:
                kind = "binary"
            made = self.quietly(kind, known, indent, depth)
            if made is not None:
                known.append(made)
        if len(known) == first:
            known.append(self.unary(known, indent, depth))
        return known[-1]

    def quietly(self, kind: str, known: list[Variable], indent: int, depth: int) -> Variable | None:
        """Add a statement, sometimes under `no_grad` (not inside `linearize` and `hessian`, see above)."""
        if self.rng.random() > 0.06 or self.quiet or self.linear:
            made: Variable | None = getattr(self, kind)(known, indent, depth)
            return made
        before = len(self.lines)
        self.lines.append(f"{'    ' * indent}with no_grad():")
        seen = list(known)
        self.quiet += 1
        made = getattr(self, kind)(seen, indent + 1, depth)
        self.quiet -= 1
        if len(self.lines) == before + 1:
            self.lines.pop()
        return made

    def pick(self, known: list[Variable], accept: Callable[[Shape], bool] = lambda shape: True) -> Variable | None:
        """Return one of the variables, preferably a late one, or None if none fits."""
        fit = [v for v in known if accept(v[1])]
        return fit[int(len(fit) * self.rng.random() ** 0.6)] if fit else None

    def unary(self, known: list[Variable], indent: int, depth: int) -> Variable:
        name, shape = self.pick(known) or known[0]
        templates = UNARY[:-2] if self.quiet else UNARY[:-1] if self.forward > 1 else UNARY
        if self.moving:
            templates = tuple(t for t in templates if t != "custom({})")
        template = self.rng.choice(WIDTHS if self.mixed and self.rng.random() < 0.3 else templates)
        return self.new(template.format(*[name] * template.count("{}")), shape, indent)

    def binary(self, known: list[Variable], indent: int, depth: int) -> Variable | None:
        a = self.pick(known) or known[0]
        b = self.pick(known, lambda shape: _broadcast(a[1], shape) is not None)
        if b is None:
            return None
        if self.rng.random() < 0.5:
            a, b = b, a
        return self.new(self.rng.choice(BINARY).format(a[0], b[0], a[0]), _broadcast(a[1], b[1]) or (), indent)

    def shaped(self, known: list[Variable], indent: int, depth: int) -> Variable | None:
        rng = self.rng
        name, shape = self.pick(known, lambda shape: len(shape) > 0) or ("", ())
        if not name:
            return None
        n = len(shape)
        axis = rng.randrange(-n, n)
        place = axis % n
        without = shape[:place] + shape[place + 1 :]
        choice = rng.randrange(22)
        if not math.prod(shape) and choice in (1, 6):
            return None
        if choice == 0:
            keep = rng.random() < 0.4
            kept = (*shape[:place], 1, *shape[place + 1 :]) if keep else without
            reduction = rng.choice(("sum", "mean", "max", "min", "prod") if shape[place] else ("sum", "prod"))
            return self.new(f"{reduction}({name}, axis={axis}, keepdims={keep})", kept, indent)
        if choice == 1:
            return self.new(f"{rng.choice(('sum', 'mean', 'max'))}({name})", (), indent)
        if choice == 2:
            return self.new(f"reshape({name}, ({math.prod(shape)},))", (math.prod(shape),), indent)
        if choice == 3:
            order = rng.sample(range(n), n)
            return self.new(f"permute_dims({name}, {tuple(order)})", tuple(shape[i] for i in order), indent)
        if choice == 4:
            where = rng.randrange(n + 1)
            return self.new(f"expand_dims({name}, axis={where})", (*shape[:where], 1, *shape[where:]), indent)
        if choice == 5:
            size = rng.choice((2, 3))
            large = (size, *shape)
            return None if math.prod(large) > LARGEST else self.new(f"broadcast_to({name}, {large})", large, indent)
        if choice == 6:
            key = [":"] * n
            key[place] = str(rng.randrange(-shape[place], shape[place]))
            return self.new(f"{name}[{', '.join(key)}]", without, indent)
        if choice == 7:
            start = rng.randrange(shape[place] + self.empty or 1)
            key = [":"] * n
            key[place] = f"{start}:"
            return self.new(f"{name}[{', '.join(key)}]", (*shape[:place], shape[place] - start, *shape[place + 1 :]), indent)
        if choice == 8:
            index, length = self.index(shape[place], negative=False)
            return self.new(f"take({name}, {index}, axis={axis})", (*shape[:place], length, *shape[place + 1 :]), indent)
        if choice == 19:
            index, length = self.index(shape[place])
            return self.new(f"{name}[{':, ' * place}{index}]", (*shape[:place], length, *shape[place + 1 :]), indent)
        if choice == 20 and n > 1:
            length = rng.randint(1, 3) if math.prod(shape[:2]) else 0
            keys = ", ".join(self.index(size, length)[0] for size in shape[:2])
            return self.new(f"{name}[{keys}]", (length, *shape[2:]), indent)
        if choice in (20, 21):
            mask = [rng.random() < 0.6 for _ in range(shape[0])]
            return self.new(f"{name}[index({mask}, 'bool')]", (sum(mask), *shape[1:]), indent)
        if choice == 9:
            other = self.pick(known, lambda s: len(s) == n and s[:place] + s[place + 1 :] == without)
            if other is None or math.prod(shape) + math.prod(other[1]) > LARGEST:
                return None
            joined = (*shape[:place], shape[place] + other[1][place], *shape[place + 1 :])
            return self.new(f"concat([{name}, {other[0]}], axis={axis})", joined, indent)
        if choice == 10:
            other = self.pick(known, lambda s: s == shape)
            if other is None or 2 * math.prod(shape) > LARGEST:
                return None
            where = rng.randrange(n + 1)
            return self.new(f"stack([{name}, {other[0]}], axis={where})", (*shape[:where], 2, *shape[where:]), indent)
        if choice == 11:
            return self.new(f"flip({name}, axis={axis})", shape, indent)
        if choice == 12:
            return self.new(f"roll({name}, {rng.choice((1, -1, 2))}, axis={axis})", shape, indent)
        if choice == 13:
            return self.new(f"cumulative_sum({name}, axis={axis})", shape, indent)
        if choice == 14:
            return self.new(f"sort({name}, axis={axis})", shape, indent)
        if choice in (15, 16):
            other = self.pick(known, lambda s: len(s) == 2 and s[0] == shape[-1])
            if other is None:
                return None
            return self.new(f"{name} @ {other[0]}" if n < 3 else f"matmul({name}, {other[0]})", (*shape[:-1], other[1][1]), indent)
        if choice == 17:
            other = self.pick(known, lambda s: s == shape)
            return None if other is None else self.new(f"vecdot({name}, {other[0]}, axis=-1)", shape[:-1], indent)
        return self.new(f"{name} / sqrt(sum({name} * {name}, axis={axis}, keepdims=True) + 1.0)", shape, indent)

    def index(self, n: int, length: int | None = None, negative: bool = True, distinct: bool = False) -> tuple[str, int]:
        """Return the text of an array of indices below `n` of any integer dtype, and its length; some signed ones count from the end."""
        rng = self.rng
        length = (rng.randint(1, 3) if length is None else length) if n else 0
        dtype = wide_enough(rng.choice(INDICES), n)
        places = [rng.randrange(n) for _ in range(length)]
        places = list(dict.fromkeys(places)) if distinct else places
        places = [p - n if negative and dtype.startswith("i") and rng.random() < 0.3 else p for p in places]
        return f"index({places}, {dtype!r})", len(places)

    def write(self, known: list[Variable], indent: int, depth: int) -> Variable | None:
        """Add a temporary that depends on both operands, so that it is at least as batched as either, and writes into it."""
        rng, pad = self.rng, "    " * indent
        a = self.pick(known) or known[0]
        b = self.pick(known, lambda shape: _broadcast(a[1], shape) == a[1])
        if b is None:
            return None
        t = self.new(f"{a[0]} * 1.0 + sum({b[0]}) * 0.0", a[1], indent)
        for _ in range(rng.randint(1, 2)):
            sign = rng.choice(("+=", "-=", "*="))
            if a[1] and rng.random() < 0.3:
                value = f"sum(sin({b[0]}))"
                distinct, _ = self.index(a[1][0], distinct=True)
                if rng.random() < 0.3:
                    self.lines.append(f"{pad}{t[0]}[{distinct}] = {value}")
                elif rng.random() < 0.5:
                    self.lines.append(f"{pad}{t[0]}[{distinct}] {sign} {value}")
                else:
                    index, length = self.index(a[1][0], negative=False)
                    rows = (length, *a[1][1:])
                    self.lines.append(f"{pad}{t[0]}.index_add_(0, {index}, broadcast_to({value}, {rows}))")
            elif a[1] and a[1][0] and rng.random() < 0.6:
                key = str(rng.randrange(a[1][0]))
                value = f"sum(sin({b[0]}))"
                if rng.random() < 0.4:
                    self.lines.append(f"{pad}{t[0]}[{key}] = {value}")
                elif rng.random() < 0.5:
                    self.lines.append(f"{pad}{t[0]}[{key}] {sign} {value}")
                else:
                    view = self.new(f"{t[0]}[{key}]", a[1][1:], indent)
                    self.lines.append(f"{pad}{view[0]} {sign} {value}")
                    known.append(view)
            else:
                self.lines.append(f"{pad}{t[0]} {sign} cos({b[0]})")
        return t

    def function(
        self, known: list[Variable], arguments: list[Shape], indent: int, depth: int, scalar: bool = False, mapped: bool = False
    ) -> Variable:
        """Add a closure over the known variables; if `mapped`, its result depends on its first argument. Return its name and shape."""
        self.count += 1
        name = f"f{self.count}"
        names = [f"a{self.count}_{k}" for k in range(len(arguments))]
        self.lines.append(f"{'    ' * indent}def {name}({', '.join(names)}):")
        inner = [*known, *zip(names, arguments, strict=True)]
        out = self.body(inner, indent + 1, depth - 1, self.rng.randint(1, 4))
        result = f"{out[0]} + sum({names[0]} * 0.5)" if mapped or self.rng.random() < 0.5 else out[0]
        if scalar:
            result = f"sum({result})"
        self.lines.append(f"{'    ' * (indent + 1)}return {result}")
        return name, () if scalar else out[1]

    def transform(self, known: list[Variable], indent: int, depth: int) -> Variable | None:
        rng = self.rng
        which = rng.choice(("grad", "grad", "grad2", "value", "vjp", "jvp", "jvp", "jacrev", "jacfwd", "hessian", "linearize",
                            "vmap", "vmap", "vmap"))  # fmt: skip
        if which == "vmap":
            return self.vmap(known, indent, depth)
        small = {"jacrev": 12, "jacfwd": 12, "hessian": 6}.get(which, LARGEST)
        x = self.pick(known, lambda s: math.prod(s) <= small)
        if x is None:
            return None
        if which == "grad":
            f, _ = self.function(known, [x[1]], indent, depth, scalar=True)
            return self.new(f"F.grad({f})({x[0]})", x[1], indent)
        if which == "grad2":
            y = self.pick(known) or known[0]
            f, _ = self.function(known, [x[1], y[1]], indent, depth, scalar=True)
            k = rng.randrange(2)
            return self.new(f"F.grad({f}, argnums={k})({x[0]}, {y[0]})", (x, y)[k][1], indent)
        if which == "value":
            f, _ = self.function(known, [x[1]], indent, depth, scalar=True)
            return self.new(f"F.grad_and_value({f})({x[0]})[{(k := rng.randrange(2))}]", () if k else x[1], indent)
        if which == "hessian":
            self.linear += 1
            self.forward += 1
            f, _ = self.function(known, [x[1]], indent, depth, scalar=True)
            self.linear -= 1
            self.forward -= 1
            return self.new(f"F.hessian({f})({x[0]})", x[1] * 2, indent)
        self.linear += which == "linearize"
        self.forward += which in ("linearize", "jvp", "jacfwd")
        f, out = self.function(known, [x[1]], indent, depth)
        self.linear -= which == "linearize"
        self.forward -= which in ("linearize", "jvp", "jacfwd")
        if which == "vjp":
            many = 2 * math.prod(out) < LARGEST and rng.random() < 0.4
            return self.new(f"{'pull_two' if many else 'pull'}(F.vjp({f}, {x[0]}))", (2, *x[1]) if many else x[1], indent)
        tangent = rng.choice(("cos({})", "{}", "{} * 0.5")).format(x[0])
        if which == "jvp":
            return self.new(f"F.jvp({f}, ({x[0]},), ({tangent},))[{int(rng.random() < 0.8)}]", out, indent)
        if which == "linearize" and 2 * math.prod(out) < LARGEST and rng.random() < 0.4:
            return self.new(f"F.vmap(F.linearize({f}, {x[0]})[1])(stack([{tangent}, sin({x[0]})], axis=0))", (2, *out), indent)
        if which == "linearize":
            return self.new(f"F.linearize({f}, {x[0]})[1]({tangent})", out, indent)
        if math.prod(out) * math.prod(x[1]) > LARGEST:
            return None
        return self.new(f"F.{which}({f})({x[0]})", out + x[1], indent)

    def vmap(self, known: list[Variable], indent: int, depth: int) -> Variable | None:
        """Add a call of `vmap` over one or two arguments; the second may be mapped if it has an axis of the same length."""
        rng = self.rng
        x = self.pick(known, lambda s: len(s) > 0)
        if x is None:
            return None
        axes: list[int | None] = [rng.randrange(-len(x[1]), len(x[1]))]
        size = x[1][axes[0] or 0]
        given = [x]
        if rng.random() < 0.5:
            y = self.pick(known) or known[0]
            fit = [k for k in range(len(y[1])) if y[1][k] == size]
            given.append(y)
            axes.append(rng.choice(fit) if fit and rng.random() < 0.7 else None)
        inner = [s if a is None else s[: a % len(s)] + s[a % len(s) + 1 :] for (_, s), a in zip(given, axes, strict=True)]
        f, out = self.function(known, inner, indent, depth, mapped=True)
        if math.prod(out) * size > LARGEST:
            return None
        place = rng.randrange(len(out) + 1)
        call = ", ".join(name for name, _ in given)
        dims = repr(tuple(axes)) if len(axes) > 1 else repr(axes[0])
        return self.new(f"F.vmap({f}, in_dims={dims}, out_dims={place})({call})", (*out[:place], size, *out[place:]), indent)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


NAMES = (
    "sin tanh cos exp sqrt abs clip log1p atan where expm1 maximum minimum atan2 hypot sum mean max min prod reshape permute_dims "
    "expand_dims broadcast_to take concat stack flip roll cumulative_sum sort matmul vecdot real imag conj astype float32 float64 complex64"
)


def custom_functions(base: Any, namespace: Any) -> dict[str, Any]:
    """Return Functions with a backward, and with a backward and a jvp, whose rules for batches are generated."""

    class Custom(SavesInputs, base):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return namespace.sin(x) * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (namespace.cos(x) * x + namespace.sin(x)) * 1.5

    class WithJvp(Custom):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return t * (namespace.cos(x) * x + namespace.sin(x)) * 1.5

    return {"custom": Custom.apply, "with_jvp": WithJvp.apply}


def _theirs() -> dict[str, Any]:
    import array_api_compat.torch as namespace

    def linearize(f: Any, x: Any) -> Any:
        return f(x), lambda t: torch.func.jvp(f, (x,), (t,))[1]  # PyTorch traces this call, and no other transform can pass through

    transforms = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian")
    functions = {name: getattr(torch.func, name) for name in transforms}
    names = {name: getattr(namespace, name) for name in NAMES.split()}
    names |= custom_functions(torch.autograd.Function, namespace)
    names["index"] = Library("torch").index
    return names | {"F": SimpleNamespace(**functions, linearize=linearize), "no_grad": torch.no_grad}


def _ours(device: str) -> dict[str, Any]:
    names = {name: getattr(xp, name) for name in NAMES.split()} | custom_functions(xp.autograd.Function, xp)
    return names | {"F": func, "index": Library("xpgrad", device).index, "no_grad": xp.no_grad}


def function(source: str, names: dict[str, Any]) -> Any:
    """Compile the text of a program with a library's names."""

    def pull(found: Any) -> Any:
        out, back = found
        return back(names["cos"](out))[0]

    def pull_two(found: Any) -> Any:
        out, back = found
        return names["F"].vmap(back)(names["stack"]([names["cos"](out), out], axis=0))[0]

    space = names | {"pull": pull, "pull_two": pull_two}
    exec(compile(source, "<program>", "exec"), space)  # noqa: S102 (our own source)
    return space["program"]


def run(source: str, names: dict[str, Any], leaves: list[Any], grad: Any, how: int, call: Any = lambda f, *xs: f(*xs)) -> list[Any]:
    """Return the program's value, the gradient of a scalar of it, and the gradient of a scalar of that.

    If `how` modulo 4 is `BATCHED`, return two vector-Jacobian products instead of the gradient; if it is `FORWARD`, the derivative of the
    gradient along a tangent (forward over reverse) or the gradient of the derivative along it (reverse over forward).
    """

    program = function(source, names)
    y = call(program, *leaves)
    found = [y]
    if how % 4 == FORWARD:
        over = how == FORWARD
        transforms, every = names["F"], tuple(range(len(leaves)))
        points = tuple(x.detach() for x in leaves)
        along = tuple(names["cos"](x) for x in points)

        def scalar(*xs: Any) -> Any:
            return names["sum"](names["sin"](program(*xs)))

        if over:
            found += transforms.jvp(transforms.grad(scalar, argnums=every), points, along)[1]
        else:
            found += transforms.grad(lambda *xs: transforms.jvp(scalar, xs, along)[1], argnums=every)(*points)
    elif y.requires_grad:
        if how % 4 == BATCHED:
            seeds = names["stack"]([names["cos"](y), y], axis=0)
            first = grad(y, leaves, seeds, create_graph=True, allow_unused=True, is_grads_batched=True)
        else:
            first = grad(names["sum"](names["sin"](y)), leaves, create_graph=True, allow_unused=True)
        found += first
        second = [names["sum"](names["sin"](g)) for g in first if g is not None and g.requires_grad]
        if second:
            found += grad(sum(second), leaves, allow_unused=True)
    return found


def dense(found: list[Any]) -> list[Any]:
    """Return the Tensors as copied arrays (PyTorch's zeros without memory crash in `tolist`)."""
    return [None if g is None else np.asarray(g.detach().clone().tolist(), dtype=np.float64).reshape(tuple(g.shape)) for g in found]


def compare(seed: int, device: str) -> str:
    """Return the outcome of the program: same, refused (by PyTorch), or of no use (not finite, or not determined)."""
    program = Program(seed)
    data = [np.random.default_rng(seed + k).uniform(-1.5, 1.5, shape) for k, (_, shape) in enumerate(program.leaves)]
    how = seed % 8
    try:
        expected = theirs(program, data, how)
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
        return "refused"
    if not all(np.all(np.abs(e) < 1e4) for e in expected if e is not None):
        return "of no use"
    leaves = [xp.tensor(d, device=device, requires_grad=True) for d in data]
    found = dense(run(program.source, _ours(device), leaves, xp.autograd.grad, how))
    try:
        agree(program, data, how, found, expected)
    except AssertionError:
        if is_determined(program, data, how, expected):
            raise
        return "of no use"
    return "same"


def theirs(program: Program, data: list[np.ndarray], how: int) -> list[Any]:
    """Return PyTorch's results."""
    leaves = [torch.tensor(d, requires_grad=True) for d in data]
    return dense(run(program.source, _theirs(), leaves, torch.autograd.grad, how))


def agree(program: Program, data: list[np.ndarray], how: int, found: list[Any], expected: list[Any]) -> None:
    """Assert that two results are equal up to rounding."""
    rest = [np.zeros((2, *d.shape) if how % 4 == BATCHED else d.shape) for d in data] + [np.zeros(d.shape) for d in data]
    for what, a, b in zip(
        ("value", *["gradient"] * len(data), *["second"] * len(data)), _fill_missing(found, rest), _fill_missing(expected, rest)
    ):
        assert a.shape == b.shape, what
        exact, close = (1e-3, 1e-3) if program.mixed else (1e-7, 1e-8)
        np.testing.assert_allclose(a, b, rtol=exact, atol=close * (1.0 + np.max(np.abs(b), initial=0.0)), err_msg=what)


def is_determined(program: Program, data: list[np.ndarray], how: int, expected: list[Any]) -> bool:
    """Return whether PyTorch gives the same for leaves that differ in their last places, and with the modes in the other order."""
    eps = 8 * float(np.finfo("float32" if program.mixed else "float64").eps)
    others = [([d * (1 + eps * np.cos(np.arange(d.size)).reshape(d.shape)) for d in data], how)]
    if how % 4 == FORWARD:
        others.append((data, (how + 4) % 8))
    try:
        for leaves, order in others:
            agree(program, data, how, theirs(program, leaves, order), expected)
    except AssertionError:
        return False
    return True


def _fill_missing(found: list[Any], rest: list[Any]) -> list[Any]:
    """Return the gradients with zeros for missing ones; libraries differ in which zeros they notice."""
    kinds = [found[0], *rest]
    return [kinds[0], *(b if a is None else a for a, b in zip([*found[1:], *[None] * (len(kinds) - len(found))], kinds[1:]))]


def run_each(seeds: range, what: str, one: Callable[[int], str]) -> None:
    """Run the programs, and assert that most of them were of use."""
    outcomes = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcomes.append(one(seed))
            except Exception as exc:
                exc.add_note(f"seed {seed}, {what}:\n{Program(seed).source}")
                raise
    assert outcomes.count("same") > 0.8 * len(outcomes) - 3, outcomes  # about 97 of 100 are, but here may be few programs


@pytest.mark.skipif(torch is None, reason="the comparison runs on PyTorch")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_transforms_of_random_functions(block: int, xpgrad_device: str) -> None:
    count = COUNT if xpgrad_device == "numpy" else COUNT // 4
    run_each(range(block, count, BLOCKS), xpgrad_device, lambda seed: compare(seed, xpgrad_device))


def _packing(how: str) -> Any:
    def packed(f: Any, *xs: Any) -> Any:
        with Library("xpgrad").packing(how):
            return f(*xs)

    return packed


def _on_cpu(f: Any, *xs: Any) -> Any:
    with xp.autograd.graph.save_on_cpu():
        return f(*xs)


def _checkpoint(f: Any, *xs: Any, early_stop: bool = True) -> Any:
    return Library("xpgrad").checkpoint(f, *xs, early_stop=early_stop)


def _to_the_end(f: Any, *xs: Any) -> Any:
    return _checkpoint(lambda *xs: _checkpoint(f, *xs, early_stop=False) * 1.0, *xs, early_stop=False)


#: Ways to run a program that only change its cost.
WAYS: dict[str, Any] = {
    "packed": _packing("numpy"),
    "packed as it is": _packing("identity"),
    "packed clones": _packing("clone"),
    "on cpu": _on_cpu,
    "checkpoint": _checkpoint,
    "checkpoints": lambda f, *xs: _checkpoint(lambda *xs: _checkpoint(f, *xs) * 1.0, *xs),
    "checkpoints to the end": _to_the_end,
    "packed checkpoints": lambda f, *xs: _checkpoint(lambda *xs: _packing("numpy")(_checkpoint, f, *xs) * 1.0, *xs),
    "vjp": lambda f, *xs: func.vjp(f, *xs)[0],
    "jvp": lambda f, *xs: func.jvp(f, xs, xs)[0],
    "a batch of one": lambda f, *xs: func.vmap(f)(*(x[None] for x in xs))[0],
    "a batch of two": lambda f, *xs: func.vmap(lambda _, *xs: f(*xs), in_dims=(0, *(None for _ in xs)))(xp.ones(2), *xs)[1],
}


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("way", [*WAYS, "watched"])
@pytest.mark.parametrize("block", range(3))
def test_what_changes_nothing(way: str, block: int) -> None:
    def one(seed: int) -> str:
        program = Program(seed)
        data = [np.random.default_rng(seed + k).uniform(-1.5, 1.5, shape) for k, (_, shape) in enumerate(program.leaves)]
        how = BATCHED if seed % 4 == BATCHED else 2

        def found(call: Any) -> list[Any]:
            leaves = [xp.tensor(d, requires_grad=True) for d in data]
            source = program.source.replace("custom(", "with_jvp(") if way == "jvp" else program.source
            return dense(run(source, _ours("numpy"), leaves, xp.autograd.grad, how, call))

        try:
            plain = found(lambda f, *xs: f(*xs))
        except RuntimeError as exc:
            assert "You must implement the jvp function" in str(exc)  # noqa: PT017 (the only error that programs may have)
            return "refused"
        if not all(np.all(np.abs(e) < 1e3) for e in plain if e is not None):
            return "of no use"
        with xp.autograd.detect_anomaly() if way == "watched" else nullcontext():
            other = found(WAYS.get(way, lambda f, *xs: f(*xs)))
        rest = [np.zeros(d.shape) for d in data]
        rest = [*([np.zeros((2, *d.shape)) for d in data] if how == BATCHED else rest), *rest]
        for a, b in zip(_fill_missing(other, rest), _fill_missing(plain, rest)):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
        return "same"

    run_each(range(block, COUNT // 20, 3), way, one)
