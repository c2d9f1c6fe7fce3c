"""Law: an exported custom rule differentiates by its formulas in JAX and in PyTorch.

The references are handwritten derivatives, `jax.grad` of the same function written in JAX, and PyTorch's own `gradcheck`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from rules.test_custom_rules import CASES, Exponential, Marked, logistic, misfit, outputs, power, product, softplus, unreal, wide
from support.central_differences import numbers
from xpgrad.autograd import custom_rule
from xpgrad.autograd.function import once_differentiable
from xpgrad.autograd.interop import to_jax_custom_vjp, to_torch_function

# -- JAX ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jax() -> Any:
    jax = pytest.importorskip("jax", reason="rules are exported to JAX")
    with jax.enable_x64(True):
        yield jax


def exported_to_jax(case: str) -> Callable[..., Any]:
    rule, _, _, statics, _ = CASES[case]
    function = to_jax_custom_vjp(rule)
    return (lambda x: function(0.5, x)) if rule is Exponential else lambda *xs: function(*xs, **statics)


@pytest.mark.parametrize("case", CASES)
def test_exported_to_jax_it_agrees_with_jax(case: str, jax: Any) -> None:
    """Values and gradients to second order agree with `jax.grad` of the same function in JAX, also under `jit` and `vmap`."""
    _, plain, points, statics, _ = CASES[case]
    n = jax.numpy

    def total(f: Callable[..., Any]) -> Callable[..., Any]:
        def function(*xs: Any) -> Any:
            out = f(*xs)
            parts = [o for o in (out if isinstance(out, tuple) else (out,)) if o.dtype.kind in "fc"]
            return sum(n.sum(n.asarray(numbers(o.shape, 1.0 + k)) * n.real((1.0 - 0.5j) * o * o)) for k, o in enumerate(parts))

        return function

    def second(f: Callable[..., Any]) -> Callable[..., Any]:
        places = tuple(range(len(points)))

        def slope(*xs: Any) -> Any:
            grads = jax.grad(total(f), argnums=places)(*xs)
            return sum(n.sum(n.asarray(numbers(g.shape, 2.0)) * n.real((1.0 + 0.3j) * g)) for g in grads)

        return jax.grad(slope, argnums=places)

    def reference(*xs: Any) -> Any:
        return plain(n, *xs, **statics)

    function = exported_to_jax(case)
    places = tuple(range(len(points)))
    arrays = [n.asarray(p) for p in points]
    close = lambda a, b: jax.tree_util.tree_map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12), a, b)  # noqa: E731
    for wrap in (lambda f: f, jax.jit):
        close(wrap(function)(*arrays), reference(*arrays))
        close(wrap(jax.grad(total(function), argnums=places))(*arrays), jax.grad(total(reference), argnums=places)(*arrays))
    close(jax.jit(second(function))(*arrays), second(reference)(*arrays))
    batch = [n.stack([a, a + 0.1, a + 0.2]) for a in arrays]
    for wrap in (lambda f: f, jax.jit):
        found = wrap(jax.vmap(jax.grad(total(function), argnums=places)))(*batch)
        close(found, jax.vmap(jax.grad(total(reference), argnums=places))(*batch))
        close(wrap(jax.vmap(function))(*batch), jax.vmap(reference)(*batch))
    # One operand of several is mapped, and the others are shared.
    if len(points) > 1:
        axes = (0, *(None for _ in points[1:]))
        close(jax.vmap(function, in_axes=axes)(batch[0], *arrays[1:]), jax.vmap(reference, in_axes=axes)(batch[0], *arrays[1:]))
    close(jax.grad(lambda *xs: total(function)(*xs) * 2.0)(*points), jax.grad(lambda *xs: total(reference)(*xs) * 2.0)(*arrays))


def test_the_vjp_is_the_declared_one_in_jax(jax: Any) -> None:
    rule = custom_rule(lambda x, y: xp.round(x) + 0.0 * y)
    rule.vjp(lambda g, y: (7.0 * g, None))
    function = to_jax_custom_vjp(rule)
    gx, gy = jax.jit(jax.grad(function, argnums=(0, 1)))(1.4, 2.0)
    assert (float(gx), float(gy)) == (7.0, 0.0)
    # Integers have no derivative; gradients come back in the operand's dtype and shape.
    single = jax.numpy.asarray([1.5, 2.5], dtype="float32")
    rows = to_jax_custom_vjp(product)
    g = jax.grad(lambda x: rows(x, jax.numpy.asarray([[1, 2], [3, 4]])).sum())(single)
    assert (g.dtype, g.tolist()) == (np.float32, [4.0, 6.0])
    g = jax.grad(lambda x: sum(o.sum() for o in to_jax_custom_vjp(Marked)(x)))(single)
    assert g.tolist() == [2.0, 2.0]
    assert jax.grad(lambda x: to_jax_custom_vjp(wide)(x).sum())(single).dtype == np.float32
    with pytest.raises(RuntimeError, match=r"a gradient of shape \(5,\) was returned for an operand of shape \(2,\)"):
        jax.grad(lambda x: to_jax_custom_vjp(misfit)(x).sum())(single)
    with pytest.raises(RuntimeError, match=r"return `xpgrad\.real"):
        jax.grad(lambda x: to_jax_custom_vjp(unreal)(x).sum())(single)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(function, (1.0, 2.0), (1.0, 2.0))


# -- PyTorch -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["through the plugin", "through NumPy"])
def torch(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("torch", reason="rules are exported to PyTorch")
    seen: list[str] = []
    where = custom_rule(lambda x: seen.append(str(x.device)) or x * 1.0)
    if request.param == "through NumPy":
        monkeypatch.setattr(xp, "backend_names", lambda: ["numpy"])
    elif "torch" not in xp.backend_names():
        pytest.skip("xpgrad-torch is not installed")
    to_torch_function(where)(found.ones(1))
    assert seen == ["numpy" if request.param == "through NumPy" else "torch:cpu"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_exported_to_torch_it_passes_gradcheck(case: str, torch: Any) -> None:
    rule, plain, points, statics, _ = CASES[case]
    given = to_torch_function(rule)
    function = (lambda x: given(0.5, x)) if rule is Exponential else lambda *xs: given(*xs, **statics)
    leaves = [torch.tensor(p, requires_grad=True) for p in points]
    for found, wanted in zip(
        [o.detach().numpy() for o in (lambda v: v if isinstance(v, tuple) else (v,))(function(*leaves))],
        outputs(plain(np, *points, **statics)),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)

    def differentiable(*xs: Any) -> Any:
        out = function(*xs)
        return tuple(o for o in out if o.requires_grad) if isinstance(out, tuple) else out

    assert torch.autograd.gradcheck(differentiable, leaves)
    assert torch.autograd.gradgradcheck(differentiable, leaves)


def test_third_derivatives_in_torch(torch: Any) -> None:
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    y = to_torch_function(power)(x, n=4)
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(y.detach(), 24.0 * x.detach(), rtol=1e-12)


def test_torch_keeps_what_the_rule_saves(torch: Any) -> None:
    """PyTorch's own checks and lifetimes apply: of versions, of freed graphs, of results that share memory."""
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    f = to_torch_function(logistic)
    y = f(x)
    (g,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    s = y.detach()
    np.testing.assert_allclose(g, s * (1 - s))
    y.data.add_(0.0)
    z = f(x)
    with torch.no_grad():
        z.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    same = custom_rule(lambda x: x[0:1])
    same.vjp(lambda g, x_shape: xp.broadcast_to(g, x_shape))
    plain = torch.ones(2, dtype=torch.float64)
    out = to_torch_function(same)(plain)
    out.zero_()
    assert plain.tolist() == [1.0, 1.0]
    doubled, constant = to_torch_function(Marked)(x)
    assert (doubled.requires_grad, constant.requires_grad) == (True, False)
    assert torch.autograd.grad((doubled + constant).sum(), x)[0].tolist() == [2.0, 2.0]
    single = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(to_torch_function(wide)(single).sum(), single, create_graph=True)
    assert g.dtype == torch.float32
    # An operand may need no gradient, and a gradient may be None.
    rule = custom_rule(lambda x, y: x * y)
    rule.vjp(lambda g, y: (g * y, None))
    y = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    to_torch_function(rule)(x, y).sum().backward()
    assert y.grad is None
    assert to_torch_function(rule)(plain, plain).requires_grad is False


def test_once_differentiable_stays_so_in_torch(torch: Any) -> None:
    class Once(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return xp.sin(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * xp.cos(ctx.saved_tensors[0])

    x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(to_torch_function(Once)(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach(), np.cos([0.3]))
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_only_rules_can_be_exported() -> None:
    class Combined(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

    for export in (to_jax_custom_vjp, to_torch_function):
        for wrong, shown in ((np.sin, "ufunc"), (Combined, "Combined")):
            with pytest.raises(TypeError, match=f"or a Function with `setup_context`, but got {shown}"):
                export(wrong)


def test_static_arguments_are_no_arrays(jax: Any) -> None:
    function = to_jax_custom_vjp(softplus)
    assert (function.__name__, function.__doc__) == ("softplus", "Rule that saves an operand and has a static argument.")
    with pytest.raises(TypeError, match="'beta' is a static argument, but got an array"):
        jax.jit(lambda x, b: function(x, beta=b))(1.0, 2.0)
    with pytest.raises(TypeError, match="returned int"):
        to_jax_custom_vjp(custom_rule(lambda x: 3))(jax.numpy.ones(2))

    class Dirty(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(*inputs)

    with pytest.raises(RuntimeError, match="cannot be exported"):
        to_jax_custom_vjp(Dirty)(jax.numpy.ones(2))


def test_neither_library_is_imported_and_missing_ones_are_named() -> None:
    code = """
import sys
import xpgrad as xp
from xpgrad.autograd import interop
assert "jax" not in sys.modules and "torch" not in sys.modules
rule = xp.autograd.custom_rule(lambda x: x)
for name, export in (("jax", interop.to_jax_custom_vjp), ("torch", interop.to_torch_function)):
    sys.modules[name] = None
    try:
        export(rule)
    except ImportError as exc:
        assert f"this needs {name}" in str(exc) and "pip install" in str(exc), exc
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
