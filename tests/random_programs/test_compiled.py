"""Law: random functions have the same value, first and second gradients compiled and uncompiled.

The functions are those of the other random programs: expressions with transforms, writes and closures (`test_transforms`), and graphs with
mixed dtypes, views, indices and checkpoints (`test_graphs`). Each is compiled in two ways: the function, whose node is differentiated, and
a function that computes its gradients and theirs. The expected numbers are those of the function uncompiled, which other laws compare with
PyTorch. ``XPGRAD_PROGRAMS=10000`` draws more programs than CI does; a failure prints the program. Functions that depend on values
cannot be compiled; they are counted and must stay rare.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.programs import count

pytest.importorskip("torch", reason="the programs are written for PyTorch, too")

from random_programs import test_graphs as graphs, test_transforms as transforms  # after the check above

COUNT = count(100)
BLOCKS = 10
DEVICE = DEVICES[0]


def from_expression(seed: int) -> tuple[Callable[..., Any], list[Any], str]:
    """Return a function from a random expression, its arguments, and its text."""
    program = transforms.Program(seed)
    data = [np.random.default_rng(seed + k).uniform(-1.5, 1.5, shape) for k, (_, shape) in enumerate(program.leaves)]
    return transforms.function(program.source, transforms._ours(DEVICE)), data, program.source


def from_graph(seed: int) -> tuple[Callable[..., Any], list[Any], str]:
    """Return a function that returns the last three results of a random graph, its arguments, and its text."""
    steps = [s for s in graphs.draw(seed) if s[0] in ("leaf", "unary", "binary", "shaped", "checkpoint", "nograd")]
    library = graphs.Operations("xpgrad", DEVICE)
    leaves = [s for s in steps if s[0] == "leaf"]
    data = [graphs.normal(np.random.default_rng(seed), shape, dtype) for _, shape, dtype, _, _, seed, _ in leaves]

    def function(*args: Any) -> Any:
        tensors = list(args)

        def pick(fraction: float) -> Any:
            return tensors[-1 - int((fraction**2) * len(tensors))]

        for kind, *rest in steps:
            try:
                if kind in ("unary", "nograd"):
                    with xp.set_grad_enabled(kind == "unary"):
                        tensors.append(library.unary(rest[0], pick(rest[1])))
                elif kind == "checkpoint":
                    tensors.append(library.checkpointed(rest[0], rest[1], pick(rest[2]), pick(rest[3])))
                elif kind == "binary":
                    tensors.append(library.binary(rest[0], pick(rest[1]), pick(rest[2])))
                elif kind == "shaped" and pick(rest[1]).dim() < 5:
                    tensors.append(library.shaped(rest[0], pick(rest[1]), rest[2]))
            except xp.errors.CaptureError:
                raise
            except (RuntimeError, ValueError, IndexError, TypeError):
                continue  # shapes or dtypes do not fit, however it is run
        return tuple(tensors[-3:])

    return function, data, "\n".join(map(str, steps))


#: Parts of statements: of Tensors ``{x}`` and ``{y}``, a Python number ``{k}``, a mask ``{m}``.
COMPUTED = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "-{x}", "-(-{x})", "{x} - -{y}", "-{x} * {y}", "{x} + {k}", "{k} - {x}",
    "{x} * {k}",
    "{k} * {x}", "{x} / {k}", "-({x} * {k})", "-{x} / {k}", "{x} * {k} * {k2}", "{x} ** 2", "{x} ** 0.5", "{x} ** {y}", "xp.sin({x})",
    "xp.abs({x})", "xp.square({x})", "xp.where({m}, {x}, {y})", "xp.where({m}, {x}, {k})",
    "xp.maximum({x}, {y})", "xp.astype({x}, xp.{dtype})", "xp.astype({m}, xp.{dtype}) * {x}", "{x} > {y}", "{x} == {y}", "~{m}",
    "xp.zeros_like({x})", "xp.ones_like({x}) * {k}", "xp.sum({x}, axis=0)", "xp.sum({x})", "xp.mean({x}, axis=-1)", "xp.var({x})",
    "xp.cumulative_sum({x}, axis=0)", "xp.stack([{x}, {y}])", "{x} // {y}", "{x} % {k}",
]  # fmt: skip
VIEWED = [
    "{x}[1:]", "{x}[..., 0]", "{x}[::-1]", "{x}[None]", "xp.reshape({x}, (-1,))", "xp.permute_dims({x}, (1, 0))", "{x}[:, 1]", "{x}[0]",
    "xp.linalg.diagonal({x})", "xp.real({x})", "xp.expand_dims({x}, axis=0)", "xp.moveaxis({x}, 0, -1)", "xp.conj({x})",
]  # fmt: skip
WRITTEN = [
    "{x} += {y}", "{x} += {k}", "{x} *= {y}", "{x} *= {k}", "{x} -= {y}", "{x}[0] = {y}", "{x}[1:] = {k}", "{x}[...] = {y}",
    "{x}[0] += {y}",
    "{x}[{m}] = {k}", "{x}[..., -1] *= {k}",
]  # fmt: skip
RETURNED = ["{x}", "({x},)", "[{x}, {y}]", "{{'a': {x}}}", "({x}, ({y}, {z}))", "{{'a': [{x}], 'b': {y}}}", "xp.sum({x})", "(xp.sum({x}),)"]
SCALARS = ["0", "1", "-1", "2", "-1.0", "1.0", "0.5", "-0.0", "2.0", "3", "-2.5", "1j"]


class Lines:
    """A function that grows by lines, each of which runs without an error."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        rng = np.random.default_rng(seed)
        shape = self.random.choice([(2, 3), (3, 3), (4,), (2049,), (33_000,)] if self.random.random() < 0.1 else [(2, 3), (3, 3), (4,)])
        kinds = [self.random.choice(["float64", "float64", "complex128", "float32"])]
        kinds += self.random.choices(["float64", "complex128", "int64", "int32", "uint8", "bool", "float32"], k=2)
        self.data = []
        for kind in kinds:
            x = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
            if kind == "complex128":
                x = x + 1j * rng.uniform(-1.0, 1.0, shape)
            self.data.append(
                (rng.integers(0, 200, shape) if kind in ("int64", "int32", "uint8") else x > 0 if kind == "bool" else x).astype(kind)
            )
        self.names = ["a", "b", "c"]
        self.own: list[str] = []  # names that may be written to
        self.lines: list[str] = []
        self.values = {n: xp.tensor(d, device=DEVICE, requires_grad=d.dtype.kind in "fc") for n, d in zip(self.names, self.data)}

    def draw(self, forms: list[str]) -> str:
        random = self.random
        recent = lambda names: random.choice(names[-4:] if random.random() < 0.7 else names)  # noqa: E731
        masks = [n for n in self.names if self.values[n].dtype is xp.bool]
        own = forms is WRITTEN
        return random.choice(forms).format(
            x=recent(self.own if own else self.names), y=recent(self.names), z=recent(self.names), k=random.choice(SCALARS),
            k2=random.choice(SCALARS), m=random.choice(masks) if masks and random.random() < 0.7 else f"({recent(self.names)} != 0)",
            dtype=random.choice(["float64", "float32", "complex128", "int64", "uint8", "int8"]),
        )  # fmt: skip

    def grow(self) -> None:
        """Add a line, provided that it runs and its result is small."""
        forms = self.random.choice([COMPUTED, COMPUTED, COMPUTED, VIEWED, WRITTEN, WRITTEN])
        if forms is WRITTEN and not self.own:
            forms = COMPUTED
        name = f"t{len(self.lines)}"
        line = self.draw(forms) if forms is WRITTEN else f"{name} = {self.draw(forms)}"
        if forms is not COMPUTED and self.random.random() < 0.05:
            line = f"with xp.no_grad(): {line}"
        values = dict(self.values)
        try:
            exec(line, {"xp": xp}, values)  # noqa: S102 (our own text)
            made = values.get(name)
            if made is not None and (made.size > 40_000 or made.ndim > 4):
                return
        except (TypeError, ValueError, RuntimeError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError):
            return
        self.values = values
        self.lines.append(line)
        if made is None:
            return
        self.names.append(name)
        of_own = forms is VIEWED and any(f"{n}" in re.findall(r"\w+", line)[1:] for n in self.own)
        if forms is COMPUTED or of_own:
            self.own.append(name)

    def source(self) -> str:
        """Return the function's text."""
        for _ in range(self.random.randint(4, 16)):
            self.grow()
        lines = [*self.lines, f"return {self.draw(RETURNED)}"]
        return "def function(a, b, c):\n" + "".join(f"    {line}\n" for line in lines)


def from_lines(seed: int) -> tuple[Callable[..., Any], list[Any], str]:
    """Return a function of random lines that returns a container, its arguments, and its text."""
    lines = Lines(seed)
    text = lines.source()
    space: dict[str, Any] = {"xp": xp}
    exec(text, space)  # noqa: S102 (our own text)
    return space["function"], lines.data, f"{text}\n{[(d.dtype.name, d.shape) for d in lines.data]}"


def flat(outs: Any) -> list[Any]:
    """Return the Tensors in a container."""
    if isinstance(outs, dict):
        outs = list(outs.values())
    return [t for item in outs for t in flat(item)] if isinstance(outs, (tuple, list)) else [outs]


def scalar(outs: list[Any]) -> Any:
    """Return a real number that depends on some results."""
    total: Any = 0.0
    for out in outs:
        for part in (xp.real(out), xp.imag(out)) if out.dtype.is_complex else (out,):
            total = total + xp.sum(xp.sin(part))
    return total


def derivatives(function: Any, leaves: list[Any], second: bool) -> list[Any]:
    """Return the function's results, its gradients, and the gradients of a scalar of these."""
    outs = flat(function(*leaves))
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    found: list[Any] = [o.detach() for o in outs]
    outs = [o for o in outs if o.dtype.differentiable]
    if not leaves or not any(o.requires_grad for o in outs):
        return found
    first = xp.autograd.grad(scalar(outs), leaves, create_graph=second, allow_unused=True, materialize_grads=True)
    found += [g.detach() for g in first]
    if second and any(g.requires_grad for g in first):
        found += xp.autograd.grad(scalar(first), leaves, allow_unused=True, materialize_grads=True)
    return found


def agree(found: list[Any], expected: list[Any], text: str, changes: list[float] | None = None) -> None:
    """Compare results up to rounding, amplified as their `changes` show where the leaves change in the last place."""
    assert len(found) == len(expected), text
    single = any(word in text for word in ("float32", "complex64", "'cast'", "'complex'"))  # the program may use single precision
    for k, (a, b) in enumerate(zip(found, expected)):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {k} of\n{text}"
        if a.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b, err_msg=text)
            continue
        largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        close = (2e-4 if single else 1e-9) * (1.0 + largest)
        if changes is not None:
            close = close + 100.0 * changes[k]
        np.testing.assert_allclose(a, b, rtol=1e-3 if single else 1e-8, atol=close, err_msg=f"result {k} of\n{text}")


def largest_changes(function: Any, data: list[Any], differentiable: list[bool], second: bool, expected: list[Any]) -> list[float]:
    """Return how much each result changes at most where the leaves change by up to four units in the last place.

    By as much the results of functions in machine code may differ from NumPy's.
    """
    found = [0.0] * len(expected)
    for draw in range(9):
        rng = np.random.default_rng(draw)
        near = []
        for d, r in zip(data, differentiable):
            by = np.ones(d.shape) if draw == 0 else rng.integers(-4, 5, d.shape)
            kind = np.dtype(d.dtype)
            near.append(d + by.astype(kind) * np.spacing(np.abs(d)).astype(kind) if r else d)
        leaves = [xp.tensor(d, device=DEVICE, requires_grad=bool(r)) for d, r in zip(near, differentiable)]
        for k, (a, b) in enumerate(zip(derivatives(function, leaves, second), expected)):
            if b.numpy().dtype.kind in "fc":
                change = np.abs(a.numpy() - b.numpy())
                found[k] = max(found[k], float(np.max(change, initial=0.0, where=np.isfinite(change))))
    return found


def compare(make: Any, seed: int) -> bool:
    """Compare a function with itself compiled; return whether it could be compiled."""
    function, data, text = make(seed)
    differentiable = [np.dtype(d.dtype).kind in "fc" for d in data]

    def fresh() -> list[Any]:
        return [xp.tensor(d, device=DEVICE, requires_grad=bool(r)) for d, r in zip(data, differentiable)]

    second = seed % 2 == 0
    try:
        expected = derivatives(function, fresh(), second)
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
        return True  # it fails uncompiled as well
    if not all(np.all(np.isfinite(e.numpy())) for e in expected if e.numpy().dtype.kind in "fc"):
        return True
    try:
        compiled = xp.compile(function)
        leaves = fresh()
        found = derivatives(compiled, leaves, second)
        again = derivatives(compiled, leaves, second)  # from the cached program
        whole = xp.compile(lambda *xs: tuple(derivatives(function, list(xs), second)))
        every = whole(*fresh())
    except xp.errors.CaptureError:
        return False
    changes: list[float] | None = None
    for results in (found, again, [e.detach() for e in every]):
        try:
            agree(results, expected, text)
        except AssertionError:
            changes = changes or largest_changes(function, data, differentiable, second, expected)
            agree(results, expected, text, changes)
    for leaf, d in zip(leaves, data):
        np.testing.assert_array_equal(leaf.detach().numpy(), d)  # nothing is written to
    return True


@pytest.mark.parametrize("make", [from_expression, from_graph, from_lines], ids=["expressions", "graphs", "lines"])
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_are_the_functions(block: int, make: Any) -> None:
    seeds = range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = sum(compare(make, seed) for seed in seeds)
    assert compiled >= 0.95 * len(seeds) - 2
