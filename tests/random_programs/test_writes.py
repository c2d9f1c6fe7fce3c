"""Law: a random program of views, writes, detached aliases, hooks and `no_grad` blocks is never silently wrong.

A program is a list of statements in the dialect that xpgrad and PyTorch share. Both libraries run it, on writable and on immutable
arrays: values, versions, flags, gradients, hooks and errors are the same. ``XPGRAD_PROGRAMS=10000`` draws more programs than CI does; a
failure prints the program as source that runs without the test. The programs leave out the documented deviations:

* operands that overlap the destination: PyTorch's result depends on the order of the elements, or it raises; xpgrad computes first;
* duplicates in an integer key: the gradient goes to the write that won, in PyTorch to all of them;
* writes into expanded memory: PyTorch refuses some (MUT-21), xpgrad all;
* views made under `no_grad` of a Tensor with history (MOD-13, MUT-18) and `requires_grad_()` on a base with views (MUT-25);
* `detach_()` of a base with views, after which PyTorch 2.13 can crash;
* `register_hook`, `retain_grad` and writes with tangents on a view whose base was written to since: PyTorch 2.13 crashes, or takes the
  view for a leaf (the programs read the view first, which renews it);
* views that were made to require grad while their base did not, once the base gets a history;
* hooks on a view that is then written to, itself or through views of it: PyTorch drops them, xpgrad calls them as documented (HOK-13);
* `retain_grad` of a view that is then written to: PyTorch adds the gradient of its old value to its `.grad`, xpgrad does not;
* hooks and `retain_grad` on views that may not follow their base: PyTorch accepts some and never calls them, xpgrad refuses all;
* hooks and `retain_grad` of a Tensor that is then detached in place: in PyTorch they also belong to the new leaf;
* writes into arguments of a checkpoint: PyTorch recomputes with the new values, xpgrad raises;
* saved Tensors that are packed without a copy: later writes silently change gradients, different ones in each library;
* `index_add_` at negative indices, and values of another dtype at several index arrays, which PyTorch refuses;
* one of several views made at once, or made under `no_grad`, with tangents: PyTorch refuses to show them after a write to the base;
* writes under `no_grad` into a view with tangents: PyTorch may take it for a leaf afterwards;
* `requires_grad_` and `detach_` of a Tensor with a tangent, which is a view of another Tensor;
* second derivatives of programs with hooks: which intermediate results they go through is an implementation detail;
* writes over a value that an in-place operation saved, with tangents: xpgrad saves a copy and finds the gradient, PyTorch raises;
* a reshape that would copy: on arrays without strides it is a view.
"""

from __future__ import annotations

import random
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from support.programs import INDICES, Library, count, last, wide_enough

torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")

COUNT = count(600)
BLOCKS = 10
FREED = "freed"

PRELUDE = """\
import sys, warnings
import numpy as np

warnings.simplefilter("ignore")
if theirs := sys.argv[1:] == ["torch"]:
    import torch as lib
    import torch.utils.checkpoint as checkpoints
    array = lambda data, dtype="bool": lib.as_tensor(np.asarray(data, "bool" if dtype == "bool" else "int64"))
else:
    import xpgrad as lib
    import xpgrad.utils.checkpoint as checkpoints
    array = lambda data, dtype="bool": lib.asarray(np.asarray(data, dtype))
forward = lib.autograd.forward_ad


def leaf(seed, shape, requires_grad=False, dtype="float64"):
    data = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return lib.tensor(np.asarray(data, dtype=dtype), requires_grad=requires_grad)

def packed(how):
    show = lambda t: t.detach().numpy().copy()
    hooks = {"numpy": (show, lib.as_tensor if theirs else lib.asarray), "clone": (lambda t: t.detach().clone(), lambda t: t)}
    return lib.autograd.graph.saved_tensors_hooks(*hooks[how])

def checkpoint(f, *xs):
    return checkpoints.checkpoint(f, *xs, use_reentrant=False)

def hook(number):
    return lambda g: print("hook", number, g.detach().numpy().tolist())

def look(t):
    print(t.detach().numpy().tolist(), t.requires_grad, t.is_leaf, t._version)
    if {moving}:
        print("tangent", forward.unpack_dual(t).tangent)

def note(t):
    print(t.detach().numpy().tolist())

def step(text, name=None, shape=None):
    try:
        exec(text, globals())
    except (RuntimeError, ValueError, TypeError, IndexError) as exc:
        print(text, "->", type(exc).__name__, exc)
        if name is not None:
            globals()[name] = leaf(0, shape)
"""

# Helpers that programs call, written with either library's `leaf`, `checkpoint` and `note`.
HELPERS = """
def moving(x, seed):
    return forward.make_dual(x, leaf(seed, tuple(x.shape), False, str(x.dtype).split(".")[-1]))

def inner(a, b):
    t = a * 1.5
    t.mul_(b)
    t[...] = lib.sin(t)
    return t + a

def outer(a, b):
    t = checkpoint(inner, a, b) * b
    u = t[..., None]
    u.add_(checkpoint(lambda a, b: checkpoint(inner, b, a) * 0.5, a, t * 1.0)[..., None])
    return lib.tanh(t)

def second(x, y):
    (g,) = lib.autograd.grad((x * x).sum(), [y], create_graph=True, allow_unused=True)
    note(y * 0.0 if g is None else g)
    h = None
    if g is not None and g.requires_grad and y.is_leaf:
        (h,) = lib.autograd.grad((g * g).sum(), [y], allow_unused=True, retain_graph=True)
    note(y * 0.0 if h is None else h)
"""

UNARY = ("lib.sin({x})", "lib.exp({x} * 0.3)", "{x} * 1.25", "{x} * {x}", "lib.tanh({x})", "-{x}")
BINARY = ("{x} + {y}", "{x} * {y}", "lib.where({x} > {y}, {x}, {y})", "{x} / ({y} * {y} + 1.0)", "{x} - 2.0 * {y}",
          "checkpoint(inner, {x} * 1.0, {y} * 1.0)", "checkpoint(outer, {x} * 1.0, {y} * 1.0)")  # fmt: skip
# Written to in place: statements, those with {y} by a Tensor of the same shape.
WRITES = ("{x}.mul_(0.5)", "{x}.pow_(2)", "{x}.zero_()", "{x}.fill_(1.5)", "{x}.div_(2.0)", "{x}.exp_()", "{x}.sin_()", "{x}.neg_()",
          "{x}.clamp_(0.25, 1.0)", "{x}.masked_fill_({x}.detach() > 1.0, 0.5)", "{x} += 1.0", "{x} *= 2.0", "{x}.tanh_()",
          "{x}[...] = 0.25")  # fmt: skip
JUMPS = (" > ", "clamp_")
SHAPES = ((3, 2), (3, 2), (4,), (2, 1, 3))
LONG = ((100, 3),)  # more elements than an 8-bit integer can count
EMPTY = ((), (), (1,), (0,), (0, 2), (2, 0))
BINARY_WRITES = ("{x}.add_({y})", "{x}.mul_({y})", "{x}.sub_({y})", "{x}.copy_({y})", "{x} += {y}", "{x} -= {y}", "{x} *= {y}",
                 "{x}.div_({y} * {y} + 1.0)")  # fmt: skip


@dataclass
class Known:
    """The generator's knowledge of a variable, used only to write statements that make sense."""

    name: str
    shape: tuple[int, ...]
    family: int  # variables of one family may share memory
    contiguous: bool = True
    expanded: bool = False
    view: bool = False  # whether it has the history of a view
    multiple: bool = False  # one of several views made at once, or made under `no_grad`, or a view of such
    hooked: bool = False
    retained: bool = False


@dataclass
class Program:
    """Statements, the variables that they define, and the families that may have history."""

    statements: list[tuple[str, str | None]] = field(default_factory=list)
    variables: list[Known] = field(default_factory=list)
    grads: set[int] = field(default_factory=set)
    mixed: bool = False  # single and double precision; no comparisons, which would amplify rounding
    empty: bool = False  # arrays without elements, and without axes
    moving: bool = False  # tangents
    packing: bool = False

    def define(
        self, text: str, quiet: bool, shape: tuple[int, ...], family: int | None = None, how: str | None = None, **known: Any
    ) -> None:
        name = f"t{len(self.variables)}"
        self.variables.append(Known(name, shape, len(self.variables) if family is None else family, **known))
        self.do(f"{name} = {text}", quiet, name, how)

    def do(self, text: str, quiet: bool = False, name: str | None = None, how: str | None = None) -> None:
        contexts = [*(["lib.no_grad()"] if quiet else []), *([f"packed({how!r})"] if how else [])]
        self.statements.append((f"with {', '.join(contexts)}: {text}" if contexts else text, name))

    def source(self) -> str:
        """Return the program as a file that runs without the test, on PyTorch if its argument says so."""
        shapes = {v.name: v.shape for v in self.variables}
        lines = [PRELUDE.replace("{moving}", str(self.moving)), HELPERS]
        lines += ["forward.enter_dual_level()"] if self.moving else []
        lines += [f"step({text!r})" if name is None else f"step({text!r}, {name!r}, {shapes[name]})" for text, name in self.statements]
        lines += [f"print({v.name!r}, {v.name}.grad)" for v in self.variables]
        return "\n".join(lines)


def draw(seed: int, strides: bool = True) -> Program:
    """Draw a program; without `strides` it only reshapes where the result is a view in every library."""
    rng = random.Random(seed)
    p = Program(mixed=rng.random() < 0.2, empty=rng.random() < 0.15, moving=rng.random() < 0.1)
    long = rng.random() < 0.05
    p.packing = not p.moving and rng.random() < 0.2
    for _ in range(rng.randint(1, 3)):
        shapes = EMPTY if p.empty and rng.random() < 0.6 else LONG if long and rng.random() < 0.7 else SHAPES
        shape, requires = rng.choice(shapes), rng.random() < 0.7
        if requires:
            p.grads.add(len(p.variables))
        dtype = rng.choice(("float32", "float64")) if p.mixed else "float64"
        text = f"leaf({rng.randrange(10**6)}, {shape}, {requires}, {dtype!r})"
        dual = p.moving and rng.random() < 0.8  # in PyTorch it is a view of its primal
        p.define(f"moving({text}, {rng.randrange(10**6)})" if dual else text, False, shape, view=dual)
    every = rng.choice((1, 2, 5, 20))  # how often the state is read; reading renews stale views
    for _ in range(rng.randint(3, 16)):
        x, y = _pick(p, rng), _pick(p, rng)
        quiet = rng.random() < 0.3
        kind = rng.choice(("operation", "operation", "view", "view", "write", "write", "write", "retain", "hook", "rare"))
        if kind == "operation":
            _operation(p, rng, x, y, quiet)
        elif kind == "view":
            _view(p, rng, x, quiet and x.family not in p.grads and not p.moving, strides)
        elif kind == "write":
            _write(p, rng, x, y, quiet)
        elif kind in ("retain", "hook") and x.multiple:
            continue
        elif kind == "retain":
            p.do(f"look({x.name})")
            p.do(f"{x.name}.retain_grad()")
            x.retained = True
        elif kind == "hook":
            p.do(f"look({x.name})")
            p.do(f"{x.name}.register_hook(hook({len(p.statements)}))")
            x.hooked = True
        elif p.moving:
            continue
        elif sum(v.family == x.family for v in p.variables) == 1 and rng.random() < 0.5:
            if not x.hooked and not x.retained:
                p.do(f"{x.name}.detach_()")
        elif sum(v.family == x.family for v in p.variables) == 1:
            p.grads.add(x.family)
            p.do(f"{x.name}.requires_grad_()")
        if rng.randrange(every) == 0:
            for v in p.variables:
                p.do(f"look({v.name})")
    for _ in range(rng.randint(1, 3)):
        x = _pick(p, rng)
        if x.family not in p.grads:
            x = _pick(p, rng)
        if rng.random() < 0.25 and not any(v.hooked or v.retained for v in p.variables):
            p.do(f"second({x.name}, {rng.choice(p.variables[:3]).name})")
            continue
        p.do(f"{x.name}.backward(leaf({rng.randrange(10**6)}, {x.shape}), retain_graph={rng.random() < 0.5})")
    return p


def _pick(p: Program, rng: random.Random) -> Known:
    return p.variables[-1 - int(rng.random() ** 2 * len(p.variables))]


def _choose(p: Program, rng: random.Random, texts: tuple[str, ...]) -> str:
    return rng.choice([text for text in texts if not (p.mixed and any(jump in text for jump in JUMPS))])


def _packing(p: Program, rng: random.Random) -> str | None:
    return rng.choice(("numpy", "clone")) if p.packing and rng.random() < 0.6 else None


def _operation(p: Program, rng: random.Random, x: Known, y: Known, quiet: bool) -> None:
    text = _choose(p, rng, (*UNARY, *BINARY) if y.shape == x.shape else UNARY)
    if p.mixed and rng.random() < 0.2:
        text = f"{{x}}.to(lib.{rng.choice(('float32', 'float64'))}) * 1.0"
    shape = x.shape
    if shape and rng.random() < 0.15:
        picks = _places(rng, shape[0], rng.randint(0, 4))
        shape = (len(picks), *shape[1:])
        text = f"{{x}}[{_array(rng, picks, x.shape[0])}]"
    grad = x.family in p.grads or ("{y}" in text and y.family in p.grads)
    if grad and not quiet:
        p.grads.add(len(p.variables))
    # The result of an operation on permuted memory has that order too.
    contiguous = x.contiguous and y.contiguous and not x.expanded and not y.expanded
    p.define(text.format(x=x.name, y=y.name), quiet, shape, how=_packing(p, rng), contiguous=contiguous)


def _places(rng: random.Random, n: int, size: int) -> list[int]:
    return [rng.randrange(n) for _ in range(size)] if n else []


def _array(rng: random.Random, picks: list[int], n: int) -> str:
    """Return the text of an array of these indices, of any integer dtype; in a signed one some count from the end."""
    dtype = wide_enough(rng.choice(INDICES), n)
    return f"array({[p - n if dtype[0] == 'i' and rng.random() < 0.3 else p for p in picks]}, {dtype!r})"


def _view(p: Program, rng: random.Random, x: Known, quiet: bool, strides: bool) -> None:
    shape = x.shape
    size = int(np.prod(shape))
    if (not shape or not size) and not p.empty:
        return
    choices: list[tuple[str, tuple[int, ...], bool, dict[str, Any]]] = [
        (f"{x.name}[None]", (1, *shape), x.contiguous, {}),
        (f"{x.name}.expand({', '.join(map(str, (2, *shape)))})", (2, *shape), False, {"expanded": True}),
    ]
    if shape:
        k, last = rng.randrange(shape[0] + p.empty or 1), max(shape[-1] - 1, 0)
        choices += [
            (f"{x.name}[{k}:]", (shape[0] - k, *shape[1:]), x.contiguous, {}),
            (f"{x.name}[::2]", ((shape[0] + 1) // 2, *shape[1:]), False, {}),
            (f"{x.name}[..., {last}:]", (*shape[:-1], shape[-1] - last), False, {}),
            (f"{x.name}.permute{tuple(reversed(range(len(shape))))}", shape[::-1], False, {}),
        ]
        if k < shape[0]:
            choices.append((f"{x.name}[{k}]", shape[1:], x.contiguous, {}))
            if not p.moving:
                choices.append((f"{x.name}.unbind(0)[{k}]", shape[1:], x.contiguous, {"multiple": True}))
    else:
        choices.append((f"{x.name}[...]", (), x.contiguous, {}))
    if strides or (x.contiguous and not x.expanded):
        choices.append((f"{x.name}.reshape(-1)", (size,), True, {}))
    text, new, contiguous, known = rng.choice(choices)
    if rng.random() < 0.15:
        p.define(f"{x.name}.detach()", quiet, shape, x.family, contiguous=x.contiguous, expanded=x.expanded)
        return
    known = {"expanded": x.expanded, "multiple": x.multiple or quiet} | known
    if len(new) <= 4:
        p.define(text, quiet, new, x.family, contiguous=contiguous, view=True, **known)


def _write(p: Program, rng: random.Random, x: Known, y: Known, quiet: bool) -> None:
    watched = any(v.view and v.family == x.family and (v.hooked or v.retained) for v in p.variables)
    if x.expanded or (x.view and not quiet and watched) or (x.view and quiet and p.moving):
        return
    by_tensor = y.family != x.family
    if by_tensor and y.shape == x.shape and rng.random() < 0.6:
        text = rng.choice(BINARY_WRITES)
    elif rng.random() < 0.5 or not x.shape or 0 in x.shape[1:]:
        text = _choose(p, rng, WRITES)
    else:
        n = x.shape[0]
        k = rng.randrange(n or 1)
        mask = [bool((i + k) % 2) for i in range(n)]
        places = [k, (k + 1) % n][:n] if n else []
        picks = _array(rng, places, n)
        keys = [f"{k}:", "::2", picks, f"array({mask})", *([str(k), f"..., {x.shape[-1] - 1}"] if n else [])]
        if len(x.shape) > 1:
            keys.append(f"{picks}, {_array(rng, [i % x.shape[1] for i in places], x.shape[1])}")
        value = "{y}.sum().to({x}.dtype) * 0.1" if by_tensor and rng.random() < 0.7 else "0.25"
        text = f"{{x}}[{rng.choice(keys)}] = {value}"
        if n and rng.random() < 0.15:  # NB: PyTorch's `index_add_` takes no negative indices
            dtype = wide_enough(rng.choice(INDICES), n)
            text = f"{{x}}.index_add_(0, array({[k, 0]}, {dtype!r}), leaf({k}, {(2, *x.shape[1:])}).to({{x}}.dtype))"
    if "{y}" in text and y.family in p.grads and not quiet:
        p.grads.add(x.family)
    if p.moving or (x.view and not quiet):
        p.do(f"look({x.name})")
    p.do(text.format(x=x.name, y=y.name), quiet, how=_packing(p, rng))


class Machine(Library):
    """An interpreter that runs programs on one library and logs everything that can be observed."""

    def __init__(self, name: str, device: str | None = None) -> None:
        super().__init__(name, device)
        self.log: list[Any] = []
        self.fired: list[Any] = []
        self.moving = False
        self.passed = False
        self.scope: dict[str, Any] = {
            "lib": self.lib, "np": np, "leaf": self.leaf, "hook": self.hook, "look": self.look, "note": self.note, "array": self.index,
            "checkpoint": self.checkpoint, "packed": self.packing, "forward": self.forward,
        }  # fmt: skip
        exec(HELPERS, self.scope)  # noqa: S102 (our own source)

    def leaf(self, seed: int, shape: tuple[int, ...], requires_grad: bool = False, dtype: str = "float64") -> Any:
        return self.tensor(np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape), dtype=dtype), requires_grad)

    def hook(self, number: int) -> Any:
        return lambda g: self.fired.append((number, self.numpy(g)))

    def look(self, t: Any) -> None:
        self.log.append((self.numpy(t), t.requires_grad, t.is_leaf, t._version))
        if self.moving:
            along = self.forward.unpack_dual(t).tangent
            if self.torch and along is not None:  # PyTorch leaves the tangent of a Tensor written in place in the wider dtype
                along = along.to(t.dtype)
            self.log.append(np.zeros_like(self.numpy(t)) if along is None else self.numpy(along))

    def note(self, t: Any) -> None:
        self.log.append(self.numpy(t))

    def run(self, program: Program) -> list[Any]:
        self.moving = program.moving
        with self.forward.dual_level() if self.moving else nullcontext():
            return self.follow(program)

    def follow(self, program: Program) -> list[Any]:
        for text, name in program.statements:
            self.log.append(text)
            try:
                exec(text, self.scope)  # noqa: S102 (our own program)
                self.log.append("done")
                self.passed |= _is_pass(text)
            except (RuntimeError, ValueError, IndexError, TypeError) as exc:
                copied = self.moving and "modified by an inplace" in str(exc)
                self.log.append(FREED if copied or last(exc) else f"error {type(exc).__name__}")
                if _is_pass(text):
                    return self.log  # how far a pass got before it failed is not specified (BWD-38)
                if name is not None:
                    self.scope[name] = self.leaf(0, next(v.shape for v in program.variables if v.name == name))
            # The order of hooks of different Tensors is not specified (HOK-37).
            self.log.append(sorted(self.fired, key=lambda pair: pair[0]))
            self.fired.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.log += [self.final(self.scope[v.name]) for v in program.variables]
        return self.log

    def final(self, t: Any) -> Any:
        try:
            return self.numpy(t.grad)
        except RuntimeError:
            return "error RuntimeError"


def _is_pass(text: str) -> bool:
    return ".backward(" in text or text.startswith("second(")


def are_equal(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        close = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        return a.shape == b.shape and a.dtype == b.dtype and close
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(are_equal(x, y, tolerance) for x, y in zip(a, b))
    return type(a) is type(b) and bool(a == b)


def difference(theirs: list[Any], ours: list[Any], tolerance: float) -> int | None:
    """Return the index of the first entry that differs; None if there is none."""
    for k, (a, b) in enumerate(zip(theirs, ours)):
        if isinstance(a, str) and a == FREED:
            return None  # which nodes have anything to free is an implementation detail (RET-05)
        if not are_equal(a, b, tolerance):
            return k
    return None if len(theirs) == len(ours) else min(len(theirs), len(ours))


def check(seed: int, expected: list[Any], found: list[Any], program: Program) -> None:
    k = difference(expected, found, 5e-4 if program.mixed else 1e-9)
    if k is not None:
        both = [log[k] if k < len(log) else "nothing" for log in (expected, found)]
        statements = dict(program.statements)
        place = next((entry for entry in reversed(expected[:k]) if isinstance(entry, str) and entry in statements), "the final gradients")
        pytest.fail(f"seed {seed}, {place}:\n{both[0]}\n{both[1]}\n\n{program.source()}", pytrace=False)


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_programs_agree_with_pytorch(block: int) -> None:
    seeds = range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS)
    useful = 0
    with np.errstate(all="ignore"):
        for seed in seeds:
            program, theirs = draw(seed), Machine("torch")
            check(seed, theirs.run(program), Machine("xpgrad").run(program), program)
            useful += theirs.passed
    assert useful > 0.45 * len(seeds) - 3, useful


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_programs_on_immutable_arrays_agree_with_pytorch(block: int) -> None:
    """On read-only arrays whose slices are copies, programs agree with PyTorch."""
    count = COUNT // 5
    with np.errstate(all="ignore"):
        for seed in range(block * count // BLOCKS, (block + 1) * count // BLOCKS):
            program = draw(seed, strides=False)
            check(seed, Machine("torch").run(program), Machine("xpgrad", "frozen").run(program), program)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("device", "count"), [("strict", 100), ("numpy+readonly", 400)])
def test_programs_agree_across_backends(device: str, count: int) -> None:
    """On the strict backend and on frozen views, programs give the same results as on NumPy."""
    with np.errstate(all="ignore"):
        for seed in range(count):
            program = draw(seed, strides=False)
            check(seed, Machine("xpgrad").run(program), Machine("xpgrad", device).run(program), program)


def test_a_program_is_runnable_source(tmp_path: Any) -> None:
    import subprocess
    import sys

    found = []
    for name in ("xpgrad", "torch"):
        path = tmp_path / f"program_{name}.py"
        path.write_text(draw(7).source(), encoding="utf-8")
        run = subprocess.run([sys.executable, str(path), name], capture_output=True, text=True, check=False, timeout=120)
        assert run.returncode == 0, run.stderr
        found.append(run.stdout)
    assert found[0].count("\n") > 5
