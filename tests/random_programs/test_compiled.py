"""Law: random functions compute the same, and have the same first and second gradients, compiled as they are.

The functions are those of the other random programs: expressions with transforms, writes and closures (`test_transforms`), and graphs with
mixed dtypes, views, indices and checkpoints (`test_graphs`). Each is compiled in two ways: the function, whose node is differentiated, and
a function that computes its gradients and theirs. The expected numbers are those of the function uncompiled, which other laws compare with
PyTorch. ``XPGRAD_PROGRAMS=10000`` draws more than CI does; a failure prints the program. What depends on values cannot be compiled: that is
counted, and must stay rare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.programs import count

pytest.importorskip("torch", reason="the programs are written for PyTorch, too")

from random_programs import test_graphs as graphs, test_transforms as transforms  # (after the check above)

COUNT = count(500)
BLOCKS = 10
DEVICE = DEVICES[0]


def from_expression(seed: int) -> tuple[Callable[..., Any], list[Any], str]:
    """A function, its arguments, and its text."""
    program = transforms.Program(seed)
    data = [np.random.default_rng(seed + k).uniform(-1.5, 1.5, shape) for k, (_, shape) in enumerate(program.leaves)]
    return transforms.function(program.source, transforms._ours(DEVICE)), data, program.source


def from_graph(seed: int) -> tuple[Callable[..., Any], list[Any], str]:
    """A function that returns the last three results of a graph, its arguments, and its text."""
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
                continue  # shapes and dtypes that do not fit, which they do not in any way of running it
        return tuple(tensors[-3:])

    return function, data, "\n".join(map(str, steps))


def scalar(outs: Any) -> Any:
    """A real number of some results."""
    total: Any = 0.0
    for out in outs if isinstance(outs, tuple) else (outs,):
        for part in (xp.real(out), xp.imag(out)) if out.dtype.is_complex else (out,):
            total = total + xp.sum(xp.sin(part))
    return total


def derivatives(function: Any, leaves: list[Any], second: bool) -> list[Any]:
    """What the function returns, its gradients, and the gradients of a scalar of these."""
    outs = function(*leaves)
    outs = outs if isinstance(outs, tuple) else (outs,)
    found: list[Any] = [o.detach() for o in outs]
    if not any(o.requires_grad for o in outs):
        return found
    first = xp.autograd.grad(scalar(outs), leaves, create_graph=second, allow_unused=True, materialize_grads=True)
    found += [g.detach() for g in first]
    if second and any(g.requires_grad for g in first):
        found += xp.autograd.grad(scalar(first), leaves, allow_unused=True, materialize_grads=True)
    return found


def agree(found: list[Any], expected: list[Any], text: str, moved: list[Any] | None = None) -> None:
    """Compare results up to rounding, or up to what leaves that differ in their last places change, in a program that blows this up."""
    assert len(found) == len(expected), text
    single = any(word in text for word in ("float32", "complex64", "'cast'", "'complex'"))  # what may go through it
    for k, (a, b) in enumerate(zip(found, expected)):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {k} of\n{text}"
        if a.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b, err_msg=text)
            continue
        largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        close = (2e-4 if single else 1e-9) * (1.0 + largest)
        if moved is not None:
            close = close + 100.0 * np.max(np.abs(moved[k].numpy() - b), initial=0.0)
        np.testing.assert_allclose(a, b, rtol=1e-3 if single else 1e-8, atol=close, err_msg=f"result {k} of\n{text}")


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
        return True  # neither way
    if not all(np.all(np.isfinite(e.numpy())) for e in expected if e.numpy().dtype.kind in "fc"):
        return True
    try:
        compiled = xp.compile(function)
        leaves = fresh()
        found = derivatives(compiled, leaves, second)
        again = derivatives(compiled, leaves, second)  # by what was kept
        whole = xp.compile(lambda *xs: tuple(derivatives(function, list(xs), second)))
        every = whole(*fresh())
    except xp.errors.CaptureError:
        return False
    moved: list[Any] | None = None
    for results in (found, again, [e.detach() for e in every]):
        try:
            agree(results, expected, text)
        except AssertionError:
            if moved is None:
                near = [
                    np.nextafter(d, np.inf) if np.dtype(d.dtype).kind == "f" else d * (1 + 2e-16) if r else d
                    for d, r in zip(data, differentiable)
                ]
                moved = derivatives(
                    function, [xp.tensor(d, device=DEVICE, requires_grad=bool(r)) for d, r in zip(near, differentiable)], second
                )
            agree(results, expected, text, moved)
    for leaf, d in zip(leaves, data):
        np.testing.assert_array_equal(leaf.detach().numpy(), d)  # nothing is written to
    return True


@pytest.mark.parametrize("make", [from_expression, from_graph], ids=["expressions", "graphs"])
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_are_the_functions(block: int, make: Any) -> None:
    seeds = range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = sum(compare(make, seed) for seed in seeds)
    assert compiled >= 0.95 * len(seeds) - 2
