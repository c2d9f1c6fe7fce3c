"""Law: every pair of {reverse, forward, vmap, create_graph, checkpoint, saved-tensor hooks, Function, in-place, compile} composes.

For each pair, a program's result is compared with PyTorch's for the same mathematics, or it raises an error that says what to do. The
page docs/compositions.md lists the pairs, and a test keeps it current.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import numbers, values
from xpgrad import func
from xpgrad.autograd import forward_ad, graph
from xpgrad.utils.checkpoint import checkpoint

FEATURES = ("reverse", "forward", "vmap", "create_graph", "checkpoint", "saved-tensor hooks", "Function", "in-place", "compile")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compositions.md"
W, AT, V, ROWS = numbers((3, 3), 4.0), numbers((3,)), numbers((3,), 7.0), numbers((2, 3), 2.0)


class Tanh(xp.autograd.Function):
    """tanh with handwritten derivatives."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return xp.tanh(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (y,) = ctx.saved_for_forward
        return t * (1 - y * y)


class Doubled(xp.autograd.Function):
    """``x *= 2`` in place, with handwritten derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def _w(x: Any) -> Any:
    return xp.asarray(W, dtype=x.dtype, device=x.device)


def plain(x: Any) -> Any:
    """Return the value of the function that all programs differentiate."""
    y = _w(x) @ xp.tanh(x)
    return xp.sum(y * y * x)


def with_function(x: Any) -> Any:
    y = _w(x) @ Tanh.apply(x)
    return xp.sum(y * y * x)


def with_writes(x: Any) -> Any:
    y = x * 1.0
    y.tanh_()
    z = _w(x) @ y
    t = z * 1.0
    z[:] = t * t
    z.mul_(x)
    return xp.sum(z)


def with_both(x: Any) -> Any:
    y = Doubled.apply(_w(x) @ Tanh.apply(x))
    y *= 0.5
    return xp.sum(y * y * x)


def checked(f: Any = plain) -> Any:
    return lambda x: checkpoint(f, x, use_reentrant=False)


def compiled(f: Any = plain) -> Any:
    return xp.compile(f)


def hooks() -> Any:
    return graph.saved_tensors_hooks(lambda t: values(t).copy(), lambda a: xp.asarray(a, device=_device[0]))


def hooks_on_tensors() -> Any:
    return graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t)


_device = ["numpy"]


def leaf(a: Any = AT) -> Any:
    return xp.tensor(a, device=_device[0], requires_grad=True)


def const(a: Any) -> Any:
    return xp.tensor(a, device=_device[0])


def gradient(f: Any) -> Any:
    x = leaf()
    f(x).backward()
    return x.grad


def product(f: Any) -> Any:
    """Return the product of the Hessian with V, by differentiating the gradient."""
    x = leaf()
    (g,) = xp.autograd.grad(f(x), x, create_graph=True)
    return xp.autograd.grad(g, x, const(V))[0]


def slope(f: Any) -> Any:
    """Return the derivative along V, by forward mode."""
    with forward_ad.dual_level():
        x = forward_ad.make_dual(const(AT), const(V))
        return forward_ad.unpack_dual(f(x)).tangent


def slope_with_history(f: Any) -> Any:
    """Return the gradient of the derivative along V, by reverse over forward."""
    x = leaf()
    with forward_ad.dual_level():
        t = forward_ad.unpack_dual(f(forward_ad.make_dual(x, const(V)))).tangent
        t.backward()
    return x.grad


def rows(f: Any) -> Any:
    return func.vmap(func.grad(f))(const(ROWS))


def hooked(run: Any, f: Any, pair: Any = hooks) -> Any:
    with pair():
        return run(f)


def batched_sum(f: Any) -> Any:
    x = leaf(ROWS)
    xp.sum(func.vmap(f)(x)).backward()
    return x.grad


def over_compiled(f: Any) -> Any:
    return func.jvp(func.grad(f), (const(AT),), (const(V),))[1]


#: The programs of each pair, each with the name of what it computes (a key of `MEANINGS`).
PAIRS: dict[tuple[str, str], list[tuple[Callable[[], Any], str]]] = {
    ("reverse", "forward"): [(lambda: func.jvp(func.grad(plain), (const(AT),), (const(V),))[1], "hv")],
    ("reverse", "vmap"): [(lambda: rows(plain), "rows"), (lambda: batched_sum(plain), "rows")],
    ("reverse", "create_graph"): [(lambda: product(plain), "hv")],
    ("reverse", "checkpoint"): [(lambda: gradient(checked()), "g")],
    ("reverse", "saved-tensor hooks"): [(lambda: hooked(gradient, plain), "g")],
    ("reverse", "Function"): [(lambda: gradient(with_function), "g")],
    ("reverse", "in-place"): [(lambda: gradient(with_writes), "g")],
    ("reverse", "compile"): [(lambda: gradient(compiled()), "g")],
    ("forward", "vmap"): [
        (lambda: func.vmap(lambda v: func.jvp(plain, (const(AT),), (v,))[1])(const(np.eye(3))), "g"),
        (lambda: func.jvp(func.vmap(plain), (const(ROWS),), (const(ROWS),))[1], "rows·rows"),
        (lambda: func.jacfwd(func.jacrev(plain))(const(AT)), "h"),
    ],
    ("forward", "create_graph"): [(lambda: slope_with_history(plain), "hv")],
    ("forward", "checkpoint"): [(lambda: slope(checked()), "gv"), (lambda: over_compiled(checked()), "hv")],
    ("forward", "saved-tensor hooks"): [
        (lambda: hooked(slope, plain), "gv"),
        (lambda: hooked(slope_with_history, plain, hooks_on_tensors), "hv"),
    ],
    ("forward", "Function"): [(lambda: slope(with_function), "gv"), (lambda: slope_with_history(with_function), "hv")],
    ("forward", "in-place"): [(lambda: slope(with_writes), "gv"), (lambda: slope_with_history(with_writes), "hv")],
    ("forward", "compile"): [(lambda: slope(compiled()), "gv"), (lambda: over_compiled(compiled()), "hv")],
    ("vmap", "create_graph"): [
        (lambda: func.vmap(lambda v: func.vjp(func.grad(plain), const(AT))[1](v)[0])(const(np.eye(3))), "h"),
        (lambda: _rows_of_hessian(), "h"),
    ],
    ("vmap", "checkpoint"): [(lambda: batched_sum(checked()), "rows"), (lambda: rows(checked()), "rows")],
    ("vmap", "saved-tensor hooks"): [
        (lambda: hooked(batched_sum, plain, hooks_on_tensors), "rows"),
        (lambda: hooked(batched_sum, plain), "rows"),
    ],
    ("vmap", "Function"): [(lambda: batched_sum(with_function), "rows"), (lambda: rows(with_function), "rows")],
    ("vmap", "in-place"): [(lambda: batched_sum(with_writes), "rows"), (lambda: rows(with_writes), "rows")],
    ("vmap", "compile"): [(lambda: batched_sum(compiled()), "rows"), (lambda: rows(compiled()), "rows")],
    ("create_graph", "checkpoint"): [(lambda: product(checked()), "hv")],
    ("create_graph", "saved-tensor hooks"): [
        (lambda: hooked(product, plain, hooks_on_tensors), "hv"),
        (lambda: hooked(product, plain), "hv"),
    ],
    ("create_graph", "Function"): [(lambda: product(with_function), "hv")],
    ("create_graph", "in-place"): [(lambda: product(with_writes), "hv")],
    ("create_graph", "compile"): [(lambda: product(compiled()), "hv")],
    ("checkpoint", "saved-tensor hooks"): [
        (lambda: hooked(gradient, checked()), "g"),
        (lambda: gradient(checked(lambda x: hooked(lambda f: f(x), plain))), "g"),
    ],
    ("checkpoint", "Function"): [(lambda: gradient(checked(with_function)), "g"), (lambda: product(checked(with_function)), "hv")],
    ("checkpoint", "in-place"): [(lambda: gradient(checked(with_writes)), "g"), (lambda: product(checked(with_writes)), "hv")],
    ("checkpoint", "compile"): [(lambda: gradient(checked(compiled())), "g"), (lambda: gradient(compiled(checked())), "g")],
    ("saved-tensor hooks", "Function"): [(lambda: hooked(gradient, with_function), "g"), (lambda: hooked(product, with_function), "hv")],
    ("saved-tensor hooks", "in-place"): [(lambda: hooked(gradient, with_writes), "g"), (lambda: hooked(product, with_writes), "hv")],
    ("saved-tensor hooks", "compile"): [(lambda: hooked(gradient, compiled()), "g")],
    ("Function", "in-place"): [(lambda: gradient(with_both), "g"), (lambda: product(with_both), "hv")],
    ("Function", "compile"): [(lambda: gradient(compiled(with_function)), "g"), (lambda: gradient(compiled(with_both)), "g")],
    ("in-place", "compile"): [(lambda: gradient(compiled(with_writes)), "g")],
}

#: The programs in which a feature is combined with itself.
SELF: dict[str, list[tuple[Callable[[], Any], str]]] = {
    "reverse": [(lambda: func.vjp(func.grad(plain), const(AT))[1](const(V))[0], "hv")],
    "forward": [(lambda: func.jvp(lambda x: func.jvp(plain, (x,), (const(V),))[1], (const(AT),), (const(V),))[1], "vhv")],
    "vmap": [(lambda: func.vmap(lambda x: func.vmap(lambda v: func.jvp(plain, (x,), (v,))[1])(const(np.eye(3))))(const(ROWS)), "rows")],
    "create_graph": [(lambda: _third(plain), "third")],
    "checkpoint": [(lambda: gradient(checked(checked())), "g")],
    "saved-tensor hooks": [(lambda: hooked(lambda f: hooked(gradient, f), plain), "g")],
    "compile": [(lambda: gradient(compiled(compiled())), "g")],
}


def _rows_of_hessian() -> Any:
    x = leaf()
    (g,) = xp.autograd.grad(plain(x), x, create_graph=True)
    return xp.autograd.grad(g, x, const(np.eye(3)), is_grads_batched=True)[0]


def _third(f: Any) -> Any:
    x = leaf()
    (g,) = xp.autograd.grad(f(x), x, create_graph=True)
    (h,) = xp.autograd.grad(g, x, const(V), create_graph=True)
    return xp.autograd.grad(h, x, const(V))[0]


MEANINGS = {
    "g": "gradient", "hv": "Hessian-vector product", "gv": "directional derivative", "h": "Hessian",
    "rows": "per-row gradients", "vhv": "second directional derivative", "third": "third derivative",
    "rows·rows": "per-row directional derivatives",
}  # fmt: skip


def page() -> str:
    """Return the text of docs/compositions.md."""
    lines = [
        "# Combinations of features",
        "",
        "For each pair of features, the table says what the test programs that combine them compute. The results agree with PyTorch's on",
        "NumPy (writable and read-only), array-api-strict, PyTorch and JAX. The tests generate this page:",
        "`PYTHONPATH=tests python tests/transforms/test_compositions.py`.",
        "",
        "| | " + " | ".join(FEATURES) + " |",
        "|---|" + "---|" * len(FEATURES),
    ]
    for a in FEATURES:
        cells = []
        for b in FEATURES:
            programs = SELF.get(a, []) if a == b else PAIRS.get((a, b), PAIRS.get((b, a), []))
            cells.append("<br>".join(dict.fromkeys(MEANINGS[what] for _, what in programs)) or "—")
        lines.append(f"| **{a}** | " + " | ".join(cells) + " |")
    lines += [
        "",
        "These combinations raise an error:",
        "",
        "* `backward()` inside a function run by a transform of `xpgrad.func`: use `xpgrad.func.grad` or `vjp` instead.",
        "* `autograd.grad` of elements of a batch, inside `vmap`: `xpgrad.func.grad` gives each element its own gradient.",
        "* `requires_grad_()`, `.grad`, `.item()` or `if x:` on an element of a batch.",
        "* A batched write into a Tensor that is not batched.",
        "* Functions whose result's shape depends on values (`nonzero`, `x[mask]`), inside `vmap`, except `x[mask]` with one mask for all",
        "  elements.",
        "* A `Function` whose `forward` takes `ctx`, in any transform; one without `vmap` or `generate_vmap_rule`, in `vmap`; one",
        "  without `jvp`, in forward mode.",
        "* Nested `forward_ad.dual_level` (contract FWD-06); `func.jvp` can be nested.",
        "",
        "Inside `vmap` and in forward mode, a compiled function runs uncompiled.",
        "",
    ]
    return "\n".join(lines)


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    """Return PyTorch's results."""
    torch = pytest.importorskip("torch")
    w, x, v, many = (torch.tensor(a) for a in (W, AT, V, ROWS))

    def f(x: Any) -> Any:
        y = w @ torch.tanh(x)
        return torch.sum(y * y * x)

    af = torch.autograd.functional
    g, h = af.jacobian(f, x), af.hessian(f, x)
    each = torch.stack([af.jacobian(f, r) for r in many])
    third = af.jacobian(lambda x: af.hessian(f, x, create_graph=True) @ v, x) @ v
    found = {"g": g, "hv": h @ v, "gv": g @ v, "h": h, "rows": each, "vhv": v @ h @ v, "third": third}
    found["rows·rows"] = torch.sum(each * many, dim=1)
    return {name: t.numpy() for name, t in found.items()}


def test_every_pair_is_there() -> None:
    assert set(PAIRS) == set(itertools.combinations(FEATURES, 2))


DEVICES = ("numpy", "numpy+readonly", "strict", "torch", "jax")


@pytest.fixture(params=DEVICES)
def device(request: Any) -> Any:
    if request.param in ("torch", "jax"):
        pytest.importorskip(request.param)
    if request.param == "torch":
        pytest.importorskip("xpgrad_torch")
    _device[0] = request.param
    if request.param == "jax":
        import jax

        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            yield request.param
    else:
        yield request.param
    _device[0] = "numpy"


CASES = [(f"{a} x {b}", k, program, what) for (a, b), programs in PAIRS.items() for k, (program, what) in enumerate(programs)]
CASES += [(f"{a} x {a}", k, program, what) for a, programs in SELF.items() for k, (program, what) in enumerate(programs)]


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("name", "number", "program", "what"), CASES, ids=[f"{n}-{k}" for n, k, _, _ in CASES])
def test_pair(name: str, number: int, program: Callable[[], Any], what: str, device: str, expected: dict[str, np.ndarray]) -> None:
    found = program()
    assert found is not None
    np.testing.assert_allclose(values(found), expected[what], rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
