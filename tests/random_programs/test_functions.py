"""Law: programs with custom Functions have the values, tangents and derivatives that PyTorch gives them.

A program defines Functions at random, whose rules are those of their outputs times a factor, so that it shows whether a rule was used. It
applies them to leaves, some of which are dual, and to temporaries, views of these and what it writes in place, some of it under `no_grad`.
Compared are each value, its version, its tangent and whether it requires grad; the gradients of a scalar of the last values; and the
gradients of a scalar of these gradients, or of the tangents.

``XPGRAD_PROGRAMS=10000`` draws more programs than CI does; a failure prints the program. Lines that PyTorch refuses are left out, and
xpgrad need not refuse them. So are writes to what a Function returned as a view, which the two libraries refuse at different times, and
views that Functions return under `no_grad`.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

from support.programs import Library, count, last

torch = pytest.importorskip("torch")

COUNT = count(200)
BLOCKS = 10
ERRORS = (RuntimeError, ValueError, TypeError, IndexError)

#: Outputs of Functions of `x` and `y`: the forward, what is saved, and the factors of the cotangent for `x` and `y`; None for no gradient.
OUTPUTS = {
    "product": ("x * y", "xy", "y", "x"),
    "sum": ("x + y", "", "1.0", "1.0"),
    "exponential": ("lib.exp(x * 0.3)", "o", "0.3 * o", None),
    "sine": ("lib.sin(y)", "y", None, "lib.cos(y)"),
    "view": ("x[:]", "", "1.0", None),
    "constant": ("lib.cos(x)", "", None, None),
}
FACTORS = ("1.0", "1.0", "3.0", "-0.5")
COMPUTED = ("lib.sin({x})", "{x} * 1.5", "{x} * {y}", "{x} + {y}", "lib.exp({x} * 0.2)", "{x} / ({y} * {y} + 1.0)", "{x}.clone()",
            "{x}.detach() * {y}", "{x}.sum() * {y}", "lib.where({x} > {y}, {x}, {y} * 2.0)")  # fmt: skip
VIEWED = ("{x}[:]", "{x}[0]", "{x}[..., 1:]", "{x}[None]", "{x}[::2]", "{x}.detach()")
WRITTEN = ("{x}.mul_(0.5)", "{x} += 1.0", "{x}.mul_({y})", "{x}.copy_({y})", "{x}[0] = 0.25", "{x}[..., 0] = {y}[..., 1]", "{x}.sin_()",
           "{x}.zero_()")  # fmt: skip


def draw_function(rng: random.Random, name: str) -> tuple[str, list[str]]:
    """Return the source of a Function, and the kinds of its outputs."""
    kinds = rng.sample(list(OUTPUTS), rng.choice((1, 1, 2, 3)))
    kinds.sort(key=["constant", *OUTPUTS, "view"].index)  # PyTorch loses tangents of outputs behind a view of what has none
    outs = [f"o{k}" for k in range(len(kinds))]
    forward, saved, to_x, to_y, tangents = [], [], [], [], []
    for k, (kind, out) in enumerate(zip(kinds, outs)):
        text, kept, for_x, for_y = OUTPUTS[kind]
        factor = "1.0" if kind == "view" else rng.choice(FACTORS)  # the tangent of a view is a view of the tangent
        forward.append(f"{out} = {text}")
        saved += [out if v == "o" else v for v in kept]
        for_x, for_y = (None if t is None else t.replace("o", out) if t.endswith(" o") else t for t in (for_x, for_y))
        to_x += [f"g{k} * {factor} * {for_x}"] if for_x else []
        to_y += [f"g{k} * {factor} * {for_y}"] if for_y else []
        terms = [f"{t} * {factor} * {part}" for t, part in (("tx", for_x), ("ty", for_y)) if part]
        tangents.append("tx[:]" if kind == "view" else " + ".join(terms) or "None")
    saved = list(dict.fromkeys(saved))
    keep = [f"ctx.save_for_backward({', '.join(saved)})", f"ctx.save_for_forward({', '.join(saved)})"] if saved else []
    if "constant" in kinds:
        keep.append(f"ctx.mark_non_differentiable(o{kinds.index('constant')})")
    results = outs[0] if len(outs) == 1 else ", ".join(outs)
    read = [f"{', '.join(saved)}, = ctx.saved_tensors"] if saved else []
    if rng.random() < 0.5:
        first = ["def forward(x, y):", *forward, f"return {results}"]
        parts = [first, ["def setup_context(ctx, inputs, outputs):", "x, y = inputs", f"{results} = outputs", *keep]]
    else:
        parts = [["def forward(ctx, x, y):", *forward, *keep, f"return {results}"]]
    cotangents = ", ".join(f"g{k}" for k in range(len(outs)))
    parts.append([f"def backward(ctx, {cotangents}):", *read, f"return {' + '.join(to_x) or None}, {' + '.join(to_y) or None}"])
    parts.append(["def jvp(ctx, tx, ty):", *read, f"return {', '.join(tangents)}"])
    lines = [f"class {name}(lib.autograd.Function):"]
    for first, *rest in parts:
        lines += ["    @staticmethod", f"    {first}", *(f"        {line}" for line in rest)]
    return "\n".join(lines), kinds


class Program:
    """A program that grows by lines, each of which runs in PyTorch without an error.

    Attributes
    ----------
    lines : list of str
    names : list of str
        Of Tensors of the program, the latest last.
    kept : list of str
        Of these, those that must not be written to.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.session = random.Random(seed), Session("torch")
        self.lines: list[str] = []
        self.names: list[str] = []
        self.kept: list[str] = ["a", "b"]
        self.functions: list[tuple[str, list[str]]] = []
        for k in range(2):
            text, kinds = draw_function(self.random, f"F{k}")
            self.add(text)
            self.functions.append((f"F{k}", kinds))
        for k, name in enumerate("ab"):
            self.add(f"{name} = leaf({seed + k}, True)", name)
            if self.random.random() < 0.6:
                self.add(f"{name}d = lib.autograd.forward_ad.make_dual({name}, leaf({seed + k + 7}, False))", f"{name}d")
                self.kept.append(f"{name}d")
        for k in range(self.random.randint(3, 9)):
            self.grow(f"t{k}")

    def add(self, line: str, *names: str) -> bool:
        """Run a line in PyTorch, and keep it unless it fails."""
        if not self.session.run(line):
            return False
        self.lines.append(line)
        self.names += names
        return True

    def grow(self, name: str) -> None:
        rng = self.random
        x, y = (rng.choice(self.names[-4:] if rng.random() < 0.7 else self.names) for _ in range(2))
        quiet, what = "with lib.no_grad(): " if rng.random() < 0.08 else "", rng.random()
        if what < 0.4:
            function, kinds = rng.choice(self.functions)
            outs = [f"{name}_{k}" for k in range(len(kinds))]
            if not (quiet and "view" in kinds) and self.add(f"{quiet}{', '.join(outs)} = {function}.apply({x}, {y})", *outs):
                self.kept += [out for out, kind in zip(outs, kinds) if kind == "view"]
        elif what < 0.65:
            self.add(f"{quiet}{name} = {rng.choice(COMPUTED).format(x=x, y=y)}", name)
        elif what < 0.8:
            if self.add(f"{name} = {rng.choice(VIEWED).format(x=x)}", name) and x in self.kept:
                self.kept.append(name)
        elif x not in self.kept and x != y:
            self.add(quiet + rng.choice(WRITTEN).format(x=x, y=y))

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Session:
    """The variables of a program in one library."""

    def __init__(self, name: str) -> None:
        self.library = Library(name)
        self.space: dict[str, Any] = {"lib": self.library.lib, "leaf": self._leaf}

    def _leaf(self, seed: int, requires_grad: bool) -> Any:
        return self.library.tensor(np.random.default_rng(seed).uniform(0.5, 1.5, (2, 3)), requires_grad)

    def run(self, line: str) -> bool:
        try:
            exec(line, self.space)  # noqa: S102 (our own text)
        except ERRORS:
            return False
        return True

    def state(self, names: list[str]) -> list[Any]:
        """Return what can be seen of some Tensors, which a stale view may refuse."""
        found: list[Any] = []
        for name in names:
            x = self.space[name]
            try:
                tangent = self.library.forward.unpack_dual(x).tangent
                found += [self.library.numpy(x), x.requires_grad, x._version]
                found.append(np.zeros(tuple(x.shape)) if tangent is None else self.library.numpy(tangent))
            except RuntimeError:
                found.append("refused")
        return found

    def derivatives(self, names: list[str], of_tangents: bool) -> list[Any]:
        """Return the gradients of a scalar of some Tensors, or of their tangents, and the gradients of a scalar of these gradients.

        The result ends with a word if a value that was overwritten is needed.
        """
        lib, leaves = self.library.lib, [self.space["a"], self.space["b"]]
        found: list[Any] = []
        try:
            outs = [self.space[name] for name in names]
            if of_tangents:
                outs = [t for t in (self.library.forward.unpack_dual(x).tangent for x in outs) if t is not None]
            for _ in range(2):
                outs = [lib.sum(lib.sin(x)) for x in outs if x is not None and x.requires_grad]
                outs = self.library.grad(sum(outs), leaves, create_graph=True, allow_unused=True) if outs else [None, None]
                found += [np.zeros((2, 3)) if g is None else self.library.numpy(g) for g in outs]
        except RuntimeError as exc:
            found.append("last" if last(exc) else "refused")
        return found


def compare(seed: int) -> bool:
    """Compare a program in both libraries; return whether derivatives could be compared."""
    with torch.autograd.forward_ad.dual_level():
        program = Program(seed)
        names = [n for n in program.names if n not in ("a", "b")]
        ours = Session("xpgrad")
        with ours.library.forward.dual_level():
            for line in program.lines:
                assert ours.run(line), f"{line!r} fails in\n{program}"
            of_tangents = seed % 3 == 0
            found, expected = (s.state(names) + s.derivatives(names[-3:], of_tangents) for s in (ours, program.session))
    if any(isinstance(e, str) for e in expected):
        return False
    assert len(found) == len(expected), str(program)
    for k, (a, b) in enumerate(zip(found, expected)):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=f"{k} of\n{program}")
        else:
            assert a == b, f"{k} of\n{program}"
    return any(np.any(g) for g in expected[-4:])


@pytest.mark.parametrize("block", range(BLOCKS))
def test_programs_with_functions_agree_with_pytorch(block: int) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared = [compare(seed) for seed in range(block, COUNT, BLOCKS)]
    assert sum(compared) >= 0.5 * len(compared) - 3
