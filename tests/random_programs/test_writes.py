"""Law: a random program of views, writes, detached aliases, hooks and `no_grad` blocks is never silently wrong.

A program is a list of statements in the dialect that xpgrad and PyTorch share. Both run it: values, versions, flags, gradients, hooks
and errors are the same, on arrays that can be written to and on arrays that cannot. ``XPGRAD_PROGRAMS=10000`` draws more than CI does;
a failure prints the program as source that runs by itself. What the programs leave out is the list of documented deviations:

* operands that overlap the destination: PyTorch's result depends on the order of the elements, or it refuses; xpgrad computes first;
* duplicates in an integer key: the gradient goes to the write that won, in PyTorch to all of them;
* writes into expanded memory: PyTorch refuses some (MUT-21), xpgrad all;
* views made under `no_grad` of a Tensor with history (MOD-13, MUT-18) and `requires_grad_()` on a base with views (MUT-25);
* `detach_()` of a base with views, after which PyTorch 2.13 can crash;
* `register_hook` on a view whose base was written to since: PyTorch 2.13 crashes, or takes the view for a leaf (the programs look at it
  before: then it is renewed);
* views that require grad of their own where their base does not, once the base gets history;
* hooks on a view that is then written to, itself or through views of it: PyTorch drops them, xpgrad calls them as it says (HOK-13);
* hooks and `retain_grad` on views that may not follow their base: PyTorch accepts some and never calls them, xpgrad refuses all;
* hooks and `retain_grad` of a Tensor that is then detached in place: in PyTorch they are those of the new leaf, too;
* a reshape that would copy, where arrays have no strides: there it is a view.
"""

from __future__ import annotations

import os
import random
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")

COUNT = int(os.environ.get("XPGRAD_PROGRAMS", "1000"))
BLOCKS = 10
FREED = "freed"
INDICES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

PRELUDE = """\
import sys, warnings
import numpy as np

warnings.simplefilter("ignore")
if sys.argv[1:] == ["torch"]:
    import torch as lib
    array = lambda data, dtype=None: lib.as_tensor(data)
else:
    import xpgrad as lib
    array = lambda data, dtype=None: lib.asarray(data, dtype=dtype)


def leaf(seed, shape, requires_grad=False):
    data = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return lib.tensor(data, requires_grad=requires_grad)

def hook(number):
    return lambda g: print("hook", number, g.detach().numpy().tolist())

def look(t):
    print(t.detach().numpy().tolist(), t.requires_grad, t.is_leaf, t._version)

def step(text, name=None, shape=None):
    try:
        exec(text, globals())
    except (RuntimeError, ValueError, TypeError, IndexError) as exc:
        print(text, "->", type(exc).__name__, exc)
        if name is not None:
            globals()[name] = leaf(0, shape)
"""

UNARY = ("lib.sin({x})", "lib.exp({x} * 0.3)", "{x} * 1.25", "{x} * {x}", "lib.tanh({x})", "-{x}")
BINARY = ("{x} + {y}", "{x} * {y}", "lib.where({x} > {y}, {x}, {y})", "{x} / ({y} * {y} + 1.0)", "{x} - 2.0 * {y}")
# Written to in place: statements, those with {y} by a Tensor of the same shape.
WRITES = ("{x}.mul_(0.5)", "{x}.pow_(2)", "{x}.zero_()", "{x}.fill_(1.5)", "{x}.div_(2.0)", "{x}.exp_()", "{x}.sin_()", "{x}.neg_()",
          "{x}.clamp_(0.25, 1.0)", "{x}.masked_fill_({x}.detach() > 1.0, 0.5)", "{x} += 1.0", "{x} *= 2.0", "{x}.tanh_()",
          "{x}[...] = 0.25")  # fmt: skip
BINARY_WRITES = ("{x}.add_({y})", "{x}.mul_({y})", "{x}.sub_({y})", "{x}.copy_({y})", "{x} += {y}", "{x} -= {y}", "{x} *= {y}",
                 "{x}.div_({y} * {y} + 1.0)")  # fmt: skip


@dataclass
class Known:
    """The generator's knowledge of a variable: enough to write statements that make sense, nothing that a library must agree with."""

    name: str
    shape: tuple[int, ...]
    family: int  # which variables may share memory
    contiguous: bool = True
    expanded: bool = False
    view: bool = False  # in the sense of the history, of something else
    multiple: bool = False  # one of several views made at once, or made under `no_grad`, or a view of such
    hooked: bool = False
    retained: bool = False


@dataclass
class Program:
    """Statements, the shapes of the variables that they define, and whose families may have history."""

    statements: list[tuple[str, str | None]] = field(default_factory=list)
    variables: list[Known] = field(default_factory=list)
    grads: set[int] = field(default_factory=set)

    def define(self, text: str, quiet: bool, shape: tuple[int, ...], family: int | None = None, **known: Any) -> None:
        name = f"t{len(self.variables)}"
        self.variables.append(Known(name, shape, len(self.variables) if family is None else family, **known))
        self.do(f"{name} = {text}", quiet, name)

    def do(self, text: str, quiet: bool = False, name: str | None = None) -> None:
        self.statements.append((f"with lib.no_grad(): {text}" if quiet else text, name))

    def source(self) -> str:
        """The program as a file that runs by itself, on PyTorch if its argument says so."""
        shapes = {v.name: v.shape for v in self.variables}
        lines = [PRELUDE]
        lines += [f"step({text!r})" if name is None else f"step({text!r}, {name!r}, {shapes[name]})" for text, name in self.statements]
        lines += [f"print({v.name!r}, {v.name}.grad)" for v in self.variables]
        return "\n".join(lines)


def draw(seed: int, strides: bool = True) -> Program:
    """A program; without `strides` one whose reshapes are views everywhere."""
    rng = random.Random(seed)
    p = Program()
    for _ in range(rng.randint(1, 3)):
        shape, requires = rng.choice(((3, 2), (3, 2), (4,), (2, 1, 3))), rng.random() < 0.7
        if requires:
            p.grads.add(len(p.variables))
        p.define(f"leaf({rng.randrange(10**6)}, {shape}, {requires})", False, shape)
    every = rng.choice((1, 2, 5, 20))  # how often the state is looked at: looking renews stale views
    for _ in range(rng.randint(3, 16)):
        x, y = _pick(p, rng), _pick(p, rng)
        quiet = rng.random() < 0.3
        kind = rng.choice(("operation", "operation", "view", "view", "write", "write", "write", "retain", "hook", "rare"))
        if kind == "operation":
            _operation(p, rng, x, y, quiet)
        elif kind == "view":
            _view(p, rng, x, quiet and x.family not in p.grads, strides)
        elif kind == "write":
            _write(p, rng, x, y, quiet)
        elif kind in ("retain", "hook") and x.multiple:
            continue
        elif kind == "retain":
            p.do(f"{x.name}.retain_grad()")
            x.retained = True
        elif kind == "hook":
            p.do(f"look({x.name})")
            p.do(f"{x.name}.register_hook(hook({len(p.statements)}))")
            x.hooked = True
        elif sum(v.family == x.family for v in p.variables) == 1 and rng.random() < 0.5:
            if not x.hooked and not x.retained:
                p.do(f"{x.name}.detach_()")
        elif sum(v.family == x.family for v in p.variables) == 1:
            p.grads.add(x.family)
            p.do(f"{x.name}.requires_grad_()")
        if rng.randrange(every) == 0:
            for v in p.variables:
                p.do(f"look({v.name})")
    for _ in range(rng.randint(1, 2)):
        x = _pick(p, rng)
        p.do(f"{x.name}.backward(leaf({rng.randrange(10**6)}, {x.shape}), retain_graph={rng.random() < 0.5})")
    return p


def _pick(p: Program, rng: random.Random) -> Known:
    return p.variables[-1 - int(rng.random() ** 2 * len(p.variables))]


def _operation(p: Program, rng: random.Random, x: Known, y: Known, quiet: bool) -> None:
    text = rng.choice((*UNARY, *BINARY) if y.shape == x.shape else UNARY)
    grad = x.family in p.grads or ("{y}" in text and y.family in p.grads)
    if grad and not quiet:
        p.grads.add(len(p.variables))
    # The result of an operation on permuted memory has that order too.
    p.define(
        text.format(x=x.name, y=y.name), quiet, x.shape, contiguous=x.contiguous and y.contiguous and not x.expanded and not y.expanded
    )


def _view(p: Program, rng: random.Random, x: Known, quiet: bool, strides: bool) -> None:
    shape = x.shape
    if not shape or 0 in shape:
        return
    k = rng.randrange(shape[0])
    size = int(np.prod(shape))
    choices: list[tuple[str, tuple[int, ...], bool, dict[str, Any]]] = [
        (f"{x.name}[{k}:]", (shape[0] - k, *shape[1:]), x.contiguous, {}),
        (f"{x.name}[::2]", ((shape[0] + 1) // 2, *shape[1:]), False, {}),
        (f"{x.name}[{k}]", shape[1:], x.contiguous, {}),
        (f"{x.name}[..., {shape[-1] - 1}:]", (*shape[:-1], 1), False, {}),
        (f"{x.name}.permute{tuple(reversed(range(len(shape))))}", shape[::-1], False, {}),
        (f"{x.name}[None]", (1, *shape), x.contiguous, {}),
        (f"{x.name}.unbind(0)[{k}]", shape[1:], x.contiguous, {"multiple": True}),
        (f"{x.name}.expand(2, {', '.join(map(str, shape))})", (2, *shape), False, {"expanded": True}),
    ]
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
    watched = any(v.view and v.family == x.family and (v.hooked or (v.retained and v is not x)) for v in p.variables)
    if x.expanded or (x.view and not quiet and watched):
        return
    by_tensor = y.family != x.family
    if by_tensor and y.shape == x.shape and rng.random() < 0.6:
        text = rng.choice(BINARY_WRITES)
    elif rng.random() < 0.5 or not x.shape or 0 in x.shape:
        text = rng.choice(WRITES)
    else:
        n = x.shape[0]
        k = rng.randrange(n)
        mask = [bool((i + k) % 2) for i in range(n)]
        dtype = rng.choice(INDICES)
        picks = f"array({[k, (k + 1) % n][:n]}, {dtype!r})"
        key = rng.choice((f"{k}:", str(k), "::2", f"..., {x.shape[-1] - 1}", picks, f"array({mask})"))
        value = "{y}.sum() * 0.1" if by_tensor and rng.random() < 0.7 else "0.25"
        text = f"{{x}}[{key}] = {value}"
        if rng.random() < 0.15:
            text = f"{{x}}.index_add_(0, array({[k, 0]}, {dtype!r}), leaf({k}, {(2, *x.shape[1:])}))"
    if "{y}" in text and y.family in p.grads and not quiet:
        p.grads.add(x.family)
    if x.view and not quiet:
        p.do(f"look({x.name})")
    p.do(text.format(x=x.name, y=y.name), quiet)


class Machine:
    """Runs programs on one library and keeps a log of all that can be seen."""

    def __init__(self, name: str, device: str | None = None) -> None:
        self.torch = name == "torch"
        self.log: list[Any] = []
        self.fired: list[Any] = []
        self.scope: dict[str, Any] = {
            "lib": torch if self.torch else xp, "leaf": self.leaf, "hook": self.hook, "look": self.look,
            "array": self.array,
        }  # fmt: skip
        self.device = device

    def array(self, data: Any, dtype: str | None = None) -> Any:
        # PyTorch does not take every integer dtype as an index.
        return torch.as_tensor(data) if self.torch else xp.asarray(np.asarray(data, dtype), device=self.device)

    def show(self, t: Any) -> Any:
        return None if t is None else np.array(t.detach().numpy())

    def leaf(self, seed: int, shape: tuple[int, ...], requires_grad: bool = False) -> Any:
        data = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
        if self.torch:
            return torch.tensor(data, requires_grad=requires_grad)
        return xp.tensor(data, requires_grad=requires_grad, device=self.device)

    def hook(self, number: int) -> Any:
        return lambda g: self.fired.append((number, self.show(g)))

    def look(self, t: Any) -> None:
        self.log.append((self.show(t), t.requires_grad, t.is_leaf, t._version))

    def run(self, program: Program) -> list[Any]:
        for text, name in program.statements:
            self.log.append(text)
            try:
                exec(text, self.scope)  # noqa: S102 (our own program)
                self.log.append("done")
            except (RuntimeError, ValueError, IndexError, TypeError) as exc:
                self.log.append(FREED if "second time" in str(exc) else f"error {type(exc).__name__}")
                if ".backward(" in text:
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
            return self.show(t.grad)
        except RuntimeError:
            return "error RuntimeError"


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and bool(a == b)


def difference(theirs: list[Any], ours: list[Any]) -> int | None:
    """The first entry that differs; None if there is none."""
    for k, (a, b) in enumerate(zip(theirs, ours)):
        if isinstance(a, str) and a == FREED:
            return None  # which nodes have anything to free is an implementation detail (RET-05)
        if not same(a, b):
            return k
    return None if len(theirs) == len(ours) else min(len(theirs), len(ours))


def check(seed: int, expected: list[Any], found: list[Any], program: Program) -> None:
    k = difference(expected, found)
    if k is not None:
        both = [log[k] if k < len(log) else "nothing" for log in (expected, found)]
        statements = dict(program.statements)
        place = next((entry for entry in reversed(expected[:k]) if isinstance(entry, str) and entry in statements), "the final gradients")
        pytest.fail(f"seed {seed}, {place}:\n{both[0]}\n{both[1]}\n\n{program.source()}", pytrace=False)


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_programs_agree_with_pytorch(block: int) -> None:
    with np.errstate(all="ignore"):
        for seed in range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS):
            program = draw(seed)
            check(seed, Machine("torch").run(program), Machine("xpgrad").run(program), program)


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_programs_on_immutable_arrays_agree_with_pytorch(block: int) -> None:
    """They agree on arrays that are read-only, where every slice is a copy."""
    count = COUNT // 5
    with np.errstate(all="ignore"):
        for seed in range(block * count // BLOCKS, (block + 1) * count // BLOCKS):
            program = draw(seed, strides=False)
            check(seed, Machine("torch").run(program), Machine("xpgrad", "frozen").run(program), program)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("device", "count"), [("strict", 100), ("numpy+readonly", 400)])
def test_programs_agree_across_backends(device: str, count: int) -> None:
    """They agree on a backend that has only what the standard has, and on frozen views."""
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
        path.write_text(draw(7).source())
        run = subprocess.run([sys.executable, str(path), name], capture_output=True, text=True, check=False, timeout=120)
        assert run.returncode == 0, run.stderr
        found.append(run.stdout)
    assert found[0].count("\n") > 5
