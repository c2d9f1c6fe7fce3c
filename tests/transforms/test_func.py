"""Law: the transforms of `xpgrad.func` agree with calculus in any composition, and with PyTorch's for the functions that it has.

For every differentiable function, the Jacobians by reverse mode (on raw arrays and on Tensors), by forward mode and by a loop agree.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from rules import test_elementwise as elementwise, test_shapes as shapes, test_statistics as statistics
from support import search_path
from support.central_differences import SINGLE, cast_for_device, numbers, values
from support.functions import SavesInputs
from transforms.test_vmap import _Drawn
from xpgrad import func
from xpgrad._transforms.batch import plain_pass

Function = Callable[..., Any]


def _close(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    assert a.shape == b.shape
    tolerance = max(tolerance, SINGLE) if a.dtype in (xp.float32, xp.complex64) else tolerance
    np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)


def _loop(function: Function, x: Any) -> Any:
    """Compute the Jacobian row by row."""
    y = function(x)
    n = int(np.prod(y.shape))
    rows = []
    for k in range(n):
        leaf = x.detach().requires_grad_()
        out = xp.reshape(function(leaf), (n,))[k]
        if out.requires_grad:
            rows.append(xp.autograd.grad(out, leaf, xp.ones_like(out), allow_unused=True, materialize_grads=True)[0])
        else:
            rows.append(xp.zeros_like(x))
    return xp.reshape(xp.stack(rows, axis=0), (*y.shape, *x.shape))


def _functions() -> dict[str, tuple[Function, np.ndarray]]:
    """Return one function of one array, with a point, for each name in the tables of the rules' tests."""
    out: dict[str, tuple[Function, np.ndarray]] = {}
    for name, (domains, _) in elementwise.FUNCTIONS.items():
        at = domains[0](0.05 + 0.85 * np.abs(numbers((2, 3))))
        function: Any = getattr(xp, name)
        if len(domains) == 1:
            out[name] = (lambda x, f=function: f(x)), at
        else:
            other = domains[1](0.05 + 0.85 * np.abs(numbers((3,), 5.0)))
            out[name] = (lambda x, f=function, o=other: f(x, xp.asarray(o, device=x.device) * xp.mean(x))), at
    for name, make in shapes.ONE.items():
        out[f"shapes: {name}"] = make(_Drawn(1), (2, 3), 1), numbers((2, 3))
    for name, function in statistics.FUNCTIONS.items():
        out[f"statistics: {name}"] = (lambda x, f=function: f(x, 1, False)), numbers((2, 3))
    out["matmul with a vector"] = lambda x: x @ xp.sum(x, axis=0), numbers((2, 3))
    out["vectors"] = lambda x: x[0] @ x[1], numbers((2, 3))
    out["linalg"] = lambda x: xp.linalg.inv(x @ xp.matrix_transpose(x)) @ x, numbers((2, 3))
    return out


FUNCTIONS = _functions()


def _first(out: Any) -> Any:
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    return xp.concat([xp.reshape(o, (-1,)) for o in out if o.dtype.differentiable], axis=0)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_agree(name: str, xpgrad_device: str) -> None:
    function, at = FUNCTIONS[name]
    at = cast_for_device(at, xpgrad_device)
    x = xp.tensor(at, device=xpgrad_device)

    def f(x: Any) -> Any:
        return _first(function(x))

    expected = _loop(f, x)
    _close(func.jacrev(f)(x), expected)
    _close(func.jacfwd(f)(x), expected)
    # If the argument has a history outside, the pass runs on Tensors, and the Jacobian has a gradient.
    leaf = xp.tensor(at, device=xpgrad_device, requires_grad=True)
    tracked = func.jacrev(f)(leaf)
    _close(tracked, expected)
    _close(func.jacrev(f, chunk_size=2)(x), expected)
    _close(func.vmap(func.jacrev(f))(xp.stack([x, x], axis=0))[1], expected)
    _close(func.vmap(func.jacfwd(f))(xp.stack([x, x], axis=0))[0], expected)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_agree(name: str) -> None:
    function, at = FUNCTIONS[name]
    x = xp.tensor(at)

    def f(x: Any) -> Any:
        y = _first(function(x))
        return xp.sum(y * y * xp.asarray(numbers(y.shape, 2.0)))

    expected = _loop(lambda x: func.grad(f)(x), x)
    for one, other in itertools.product((func.jacrev, func.jacfwd), repeat=2):
        _close(one(other(f))(x), expected, 1e-8)
    _close(func.hessian(f)(x), expected, 1e-8)
    direction = xp.asarray(numbers(at.shape, 9.0))
    product = func.jvp(func.grad(f), (x,), (direction,))[1]
    flat = xp.reshape(expected, (at.size, at.size)) @ xp.reshape(direction, (at.size,))
    _close(xp.reshape(product, (at.size,)), flat, 1e-8)


def test_the_pass_on_raw_arrays_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes run on raw arrays if nothing is recorded (otherwise the comparison above would compare one path with itself)."""
    taken = []
    run = plain_pass._run
    monkeypatch.setattr(plain_pass, "_run", lambda *a: taken.append(1) or run(*a))
    w = xp.asarray(numbers((3, 3)))
    x = xp.asarray(numbers((3,), 4.0))
    func.jacrev(lambda x: xp.tanh(w @ x))(x)
    assert len(taken) == 1
    func.hessian(lambda x: xp.sum(xp.sin(x)))(x)
    assert len(taken) == 2
    y = xp.tensor(numbers((3,)), requires_grad=True)
    func.jacrev(lambda x: xp.tanh(w @ x))(y)
    assert len(taken) == 2
    z = y * y
    xp.autograd.grad(z, y, xp.eye(3), is_grads_batched=True)
    assert len(taken) == 3
    z = y * y
    z.register_hook(lambda g: g * 2)
    (g,) = xp.autograd.grad(z * 1, y, xp.eye(3), is_grads_batched=True)
    assert len(taken) == 3
    np.testing.assert_allclose(values(g), np.diag(4 * values(y)))
    with pytest.raises(RuntimeError, match="Tensor at index 1 appears to not have been used"):
        xp.autograd.grad(y * y, [y, w.requires_grad_()], xp.eye(3), is_grads_batched=True)
    assert len(taken) == 4
    with xp.autograd.graph.allow_mutation_on_saved_tensors():
        inside = y * y
        xp.autograd.grad(inside, y, xp.eye(3), retain_graph=True, is_grads_batched=True)
        assert len(taken) == 5
    xp.autograd.grad(y * y, y, xp.eye(3), is_grads_batched=True)  # what was recorded outside still takes the fast path
    assert len(taken) == 6
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):  # MUT-23
        xp.autograd.grad(inside, y, xp.eye(3), is_grads_batched=True)


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian", "grad", "vmap"])
def test_a_transform_may_be_the_first_thing_that_a_process_does(name: str) -> None:
    """On the strict backend a transform works as the first call of a process, when nothing else has loaded what it needs."""
    last, shape = "xp.sum(y)" if name in ("grad", "hessian") else "y", (2, 3) if name == "vmap" else (3,)
    code = f"""
import xpgrad as xp
from support import plugin_backends
plugin_backends.register('strict')
def f(x):
    y = xp.sin(x[0] * x) * 1.0
    y[0] *= x[1]
    return {last}
found = xp.func.{name}(f)(xp.ones({shape}, device="strict"))
print(xp.sum(xp.abs(found)).item() > 0)
"""
    environment = {**os.environ, "PYTHONPATH": search_path()}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "True\n", run.stderr


def _complex_functions() -> dict[str, tuple[Function, np.ndarray]]:
    out: dict[str, tuple[Function, np.ndarray]] = {}
    for name, (domains, is_complex) in elementwise.FUNCTIONS.items():
        if is_complex:
            at = domains[0](0.05 + 0.85 * np.abs(numbers((2, 3)))) + 0.3j * numbers((2, 3), 7.0)
            function: Any = getattr(xp, name)
            out[name] = ((lambda x, f=function: f(x)) if len(domains) == 1 else (lambda x, f=function: f(x, x * (0.5 - 1j)))), at
    for name, make in shapes.ONE.items():
        out[f"shapes: {name}"] = make(_Drawn(1), (2, 3), 1), numbers((2, 3), 1.0, np.complex128)
    for name in statistics.COMPLEX:
        out[f"statistics: {name}"] = (lambda x, f=statistics.FUNCTIONS[name]: f(x, 1, False)), numbers((2, 3), 1.0, np.complex128)
    for name, call in {
        "inv": lambda x: xp.linalg.inv(x @ xp.matrix_transpose(x)), "det": lambda x: xp.linalg.det(x @ xp.matrix_transpose(x)),
        "solve": lambda x: xp.linalg.solve(x @ xp.matrix_transpose(x), x), "pinv": lambda x: xp.linalg.pinv(x),
        "norm": lambda x: xp.linalg.vector_norm(x, axis=1), "svdvals": lambda x: xp.linalg.svdvals(x),
        "slogdet": lambda x: xp.linalg.slogdet(x @ xp.matrix_transpose(x)), "matrix_norm": lambda x: xp.linalg.matrix_norm(x),
        "cross": lambda x: xp.linalg.cross(x, x * x), "fft": lambda x: xp.fft.fft(x, n=4), "irfft": lambda x: xp.fft.irfft(x),
        "rfft": lambda x: xp.fft.rfft(xp.real(x)), "fftn": lambda x: xp.fft.fftn(x), "vector": lambda x: x[0] @ x[1] * x[0],
        "take": lambda x: x[:, xp.asarray([0, 2, 2], device=x.device)], "written": lambda x: _write_columns(x),
    }.items():  # fmt: skip
        out[f"linalg: {name}"] = call, numbers((2, 3), 1.0, np.complex128)
    return out


def _write_columns(x: Any) -> Any:
    y = x * 2
    y[:, xp.asarray([0, 0], device=x.device)] = x[:, 1:] * x[:, :1]
    y[0] = y[1]
    return y


COMPLEX = _complex_functions()


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", COMPLEX)
def test_batched_complex_gradients_agree_with_a_loop(name: str, xpgrad_device: str) -> None:
    """Batched complex gradients agree with a loop, on raw arrays and on Tensors with a graph."""
    function, at = COMPLEX[name]
    at = cast_for_device(at, xpgrad_device)
    for create in (False, True):
        x = xp.tensor(at, device=xpgrad_device, requires_grad=True)
        out = function(x)
        outs = [o for o in (list(out) if isinstance(out, (tuple, list)) else [out]) if o.dtype.differentiable and o.requires_grad]
        seeds = [xp.asarray(numbers((3, *o.shape), 2.0 + k), dtype=o.dtype, device=xpgrad_device) for k, o in enumerate(outs)]
        seeds = [s * (1 - 0.7j) if s.dtype.is_complex else s for s in seeds]
        (found,) = xp.autograd.grad(outs, x, seeds, retain_graph=True, create_graph=create, is_grads_batched=True)
        rows = [xp.autograd.grad(outs, x, [s[k] for s in seeds], retain_graph=True, create_graph=create)[0] for k in range(3)]
        expected = xp.stack(rows, axis=0)
        _close(found, expected, 1e-9)
        if create and expected.requires_grad:
            weights = xp.asarray(cast_for_device(numbers(expected.shape, 3.0), xpgrad_device), device=xpgrad_device)
            second = [xp.autograd.grad(xp.sum(xp.real(g * xp.conj(g)) * weights), x, retain_graph=True)[0] for g in (found, expected)]
            _close(*second, 1e-8)


BANDS: dict[str, Function] = {
    "elementwise": lambda x: xp.exp(-x) / (x + 3) * 2 - x,
    "differences": lambda x: (x[1:] - x[:-1]) ** 2,
    "second differences": lambda x: x[2:] * x[1:-1] - 3 * x[:-2],
    "padded": lambda x: xp.concat([x[1:] * x[:-1], x[:1]], axis=0),
    "through a matrix": lambda x: xp.asarray(numbers((5, 5))) @ xp.sin(x),
    "out of a matrix": lambda x: xp.tanh(xp.asarray(numbers((4, 5))) @ x),
    "stepped": lambda x: x[::2] * 2,
    "backwards": lambda x: x[::-1] * x,
    "summed": lambda x: x * xp.sum(x),
    "reshaped": lambda x: xp.reshape(xp.reshape(x, (5, 1)) * 2, (5,)),
    "broadcast": lambda x: xp.sum(x[:, None] * x[None, :], axis=1),
    "empty": lambda x: x[3:3],
    "one": lambda x: x[2:3] * x[0],
}


@pytest.mark.parametrize("name", BANDS)
def test_bands(name: str) -> None:
    x = xp.asarray(numbers((5,)))
    function = BANDS[name]
    if name != "empty":
        _close(func.jacrev(function)(x), _loop(function, x))
        _close(func.jacrev(func.grad(lambda x: xp.sum(function(x) ** 3)))(x), _loop(func.grad(lambda x: xp.sum(function(x) ** 3)), x))
    else:
        assert func.jacrev(function)(x).shape == (0, 5)


def test_perturbations_are_not_confused(xpgrad_device: str) -> None:
    one = xp.tensor(1.0, device=xpgrad_device)
    three = xp.tensor(3.0, device=xpgrad_device)

    def derivative(way: str, f: Function) -> Function:
        return func.grad(f) if way == "reverse" else lambda x: func.jvp(f, (x,), (xp.ones_like(x),))[1]

    for outer, inner in itertools.product(("reverse", "forward"), repeat=2):
        found = derivative(outer, lambda x, inner=inner: x * derivative(inner, lambda y: x + y)(one))(three)
        assert found.item() == 1.0
        found = derivative(outer, lambda x, inner=inner: x * derivative(inner, lambda y: x * y * y)(x))(three)
        assert found.item() == pytest.approx(3 * 2 * 9.0)


@pytest.mark.parametrize(
    "inner",
    [
        lambda f, x: func.grad(f, has_aux=True)(x)[1],
        lambda f, x: func.grad_and_value(f, has_aux=True)(x)[1][1],
        lambda f, x: func.vjp(f, x, has_aux=True)[2],
        lambda f, x: func.jacrev(f, has_aux=True)(x)[1],
        lambda f, x: func.jacrev(lambda v: tuple(t[None] for t in f(v)), has_aux=True)(x)[1][0],
    ],
    ids=["grad", "grad_and_value", "vjp", "jacrev", "jacrev of a vector"],
)
@pytest.mark.parametrize("shared", [False, True], ids=["apart", "from the value"])
def test_derivatives_flow_through_what_stands_beside_a_value(inner: Any, shared: bool, xpgrad_device: str) -> None:
    x, y = xp.tensor(2.0, device=xpgrad_device), xp.tensor(3.0, device=xpgrad_device)

    def f(x: Any, y: Any) -> Any:  # only the auxiliary result depends on `y`
        value = x**2
        return value, (value if shared else x) * y**3

    expected = (4.0 if shared else 2.0) * 27.0
    assert func.grad(lambda y: inner(lambda x: f(x, y), x))(y).item() == pytest.approx(expected)
    leaf = y.detach().requires_grad_()
    inner(lambda x: f(x, leaf), x).backward()  # no node on the way to the leaf has been freed
    assert leaf.grad.item() == pytest.approx(expected)
    assert not inner(lambda x: f(x, y), x).requires_grad


def test_trees_aux_and_argnums(xpgrad_device: str) -> None:
    w = {"a": xp.tensor(numbers((2, 3)), device=xpgrad_device), "b": [xp.tensor(numbers((2,), 3.0), device=xpgrad_device)]}
    x = xp.tensor(numbers((3,), 5.0), device=xpgrad_device)

    def f(w: Any, x: Any) -> Any:
        y = xp.tanh(w["a"] @ x + w["b"][0])
        return xp.sum(y), {"y": y}

    g, aux = func.grad(f, has_aux=True)(w, x)
    assert set(g) == {"a", "b"}
    assert g["a"].shape == (2, 3)
    assert g["b"][0].shape == (2,)
    assert not aux["y"].requires_grad
    both, (value, aux) = func.grad_and_value(f, argnums=(0, 1), has_aux=True)(w, x)
    assert both[1].shape == (3,)
    assert value.shape == ()
    _close(both[0]["a"], g["a"])
    jac = func.jacrev(lambda w, x: f(w, x)[1], argnums=(0, 1))(w, x)
    assert jac["y"][0]["a"].shape == (2, 2, 3)
    assert jac["y"][1].shape == (2, 3)
    forward = func.jacfwd(lambda w, x: f(w, x)[1], argnums=(0, 1))(w, x)
    _close(jac["y"][0]["a"], forward["y"][0]["a"])
    _close(jac["y"][0]["b"][0], forward["y"][0]["b"][0])
    _, vjp_fn, aux = func.vjp(lambda w, x: (f(w, x)[1], "aux"), w, x, has_aux=True)
    assert aux == "aux"
    rows = func.vmap(vjp_fn)({"y": xp.eye(2, device=xpgrad_device)})
    _close(rows[0]["a"], jac["y"][0]["a"])
    _close(rows[1], jac["y"][1])
    hess = func.hessian(lambda w, x: f(w, x)[0])(w, x)
    assert hess["a"]["b"][0].shape == (2, 3, 2)


def test_what_lies_further_out_gets_its_gradient(xpgrad_device: str) -> None:
    w = xp.tensor(numbers((3,)), device=xpgrad_device, requires_grad=True)
    x = xp.tensor(numbers((3,), 4.0), device=xpgrad_device, requires_grad=True)
    g = func.grad(lambda x: xp.sum(w * x**3))(x)
    for leaf, factor in ((w, 3 * values(x) ** 2), (x, 6 * values(w) * values(x))):
        (found,) = xp.autograd.grad(xp.sum(g), leaf, retain_graph=True)
        np.testing.assert_allclose(values(found), factor, rtol=1e-12)
    with xp.no_grad():
        assert not func.grad(lambda x: xp.sum(w * x**3))(x).requires_grad
    inside = func.grad(lambda x: xp.sum(_constant(x)))(x)
    np.testing.assert_array_equal(values(inside), np.zeros(3))
    assert not func.grad(lambda x: xp.sum(x * x))(x.detach()).requires_grad
    assert w.grad is None
    assert x.grad is None


def _constant(x: Any) -> Any:
    with xp.no_grad():
        return x * x


def test_errors() -> None:
    x = xp.tensor([1.0, 2.0])
    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (RuntimeError, "scalar", lambda: func.grad(lambda x: x)(x)),
        (RuntimeError, "return a Tensor", lambda: func.grad(lambda x: 1.0)(x)),
        (RuntimeError, "real floating", lambda: func.grad(lambda x: xp.sum(x * 1j))(x)),
        (RuntimeError, "argnum", lambda: func.grad(xp.sum, argnums=3)(x)),
        (RuntimeError, "argnums", lambda: func.grad(xp.sum, argnums="x")(x)),
        (RuntimeError, "unique", lambda: func.grad(lambda a, b: xp.sum(a * b), argnums=(0, 0))(x, x)),
        (RuntimeError, "Expected all inputs to be Tensors", lambda: func.grad(lambda x: x)("1.0")),
        (RuntimeError, "an input is int64", lambda: func.grad(lambda x: x)(1)),
        (RuntimeError, "dtype", lambda: func.grad(xp.sum)(xp.arange(3))),
        (RuntimeError, "output, aux", lambda: func.grad(xp.sum, has_aux=True)(x)),
        (RuntimeError, "structure", lambda: func.vjp(lambda x: (x, x), x)[1](x)),
        (RuntimeError, "only Tensors", lambda: func.jacrev(lambda x: [x, 1])(x)),
        (RuntimeError, "only Tensors", lambda: func.jacfwd(lambda x: [x, 1])(x)),
        (ValueError, "chunk_size", lambda: func.jacrev(lambda x: x, chunk_size=0)(x)),
        (ValueError, "chunk_size", lambda: func.jacfwd(lambda x: x, chunk_size=-1)(x)),
        (RuntimeError, "inside a functorch transform", lambda: func.grad(lambda x: xp.sum(x * x).backward())(x)),
    ]
    for error, text, call in cases:
        with pytest.raises(error, match=text):
            call()


class Scaled(SavesInputs, xp.autograd.Function):
    """``x * y**2`` with handwritten derivatives."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * y, g * x * y * 2

    @staticmethod
    def jvp(ctx: Any, t: Any, u: Any) -> Any:
        x, y = ctx.saved_for_forward
        return t * y * y + u * x * y * 2


class ScaledBesides(Scaled):
    """`Scaled` with a second output, which is not differentiable and has no tangent."""

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y * y, x > y

    @staticmethod
    def backward(ctx: Any, g: Any, *_: Any) -> Any:
        return Scaled.backward(ctx, g)

    @staticmethod
    def jvp(ctx: Any, t: Any, u: Any) -> Any:
        return Scaled.jvp(ctx, t, u), None


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("scaled", [Scaled.apply, lambda x, y: ScaledBesides.apply(x, y)[0]], ids=["one", "two"])
def test_generated_rules_of_custom_functions(scaled: Function, dims: Any, xpgrad_device: str) -> None:
    shape = (3, 2)
    x = xp.tensor(numbers(shape if dims[0] == 0 else shape[1:]), device=xpgrad_device, requires_grad=True)
    y = xp.tensor(numbers(shape if dims[1] == 0 else shape[1:], 4.0), device=xpgrad_device, requires_grad=True)

    def program(f: Function) -> list[Any]:
        out = func.vmap(f, in_dims=dims)(x, y)
        first = xp.autograd.grad(xp.sum(out**3), [x, y], create_graph=True)
        second = xp.autograd.grad(xp.sum(first[0] * first[1]), [x, y])
        (rows,) = xp.autograd.grad(
            xp.reshape(func.vmap(f, in_dims=dims)(x, y), (6,)), [x], xp.eye(6, device=xpgrad_device), is_grads_batched=True
        )
        inner = func.vmap(func.grad(lambda a, b: xp.sum(f(a, b)), argnums=(0, 1)), in_dims=dims)(x, y)
        jac = func.vmap(func.jacrev(f), in_dims=dims)(x, y)
        outer = func.jvp(lambda x: func.vmap(f, in_dims=dims)(x, y), (x,), (x * 2,))
        forward = func.vmap(lambda a, b: func.jvp(f, (a, b), (b, a))[1], in_dims=dims)(x, y)
        return [out, *first, *second, rows, *inner, jac, *outer, forward]

    for a, b in zip(program(scaled), program(lambda x, y: x * y * y)):
        _close(a, b)


@pytest.mark.parametrize("key", [None, ..., slice(1)])
def test_generated_rules_refuse_writes_to_returned_arguments(key: Any) -> None:
    """Under `vmap` an argument that a Function returns, or a view of it, is a copy: a write to it would not reach the argument."""

    class Returned(xp.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x if key is None else x[key]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    def f(x: Any) -> Any:
        y = x * 1.0
        Returned.apply(y).mul_(2.0)
        return y

    with pytest.raises(RuntimeError, match="under `vmap`"):
        func.vmap(f)(xp.asarray(numbers((3, 2))))
    assert func.vmap(lambda x: Returned.apply(x) * 2.0)(xp.asarray(numbers((3, 2)))).shape[0] == 3


def test_generated_rules_undo_broadcasting() -> None:
    x, y = xp.tensor(numbers((3, 2)), requires_grad=True), xp.tensor(numbers((3,), 4.0), requires_grad=True)
    results: list[list[Any]] = []
    functions: tuple[Function, ...] = (Scaled.apply, lambda x, y: x * y * y)
    for f in functions:
        out = func.vmap(f)(x, y)  # a row times a number
        found = list(xp.autograd.grad(xp.sum(out**2), [x, y]))
        found += func.vmap(func.grad(lambda a, b, f=f: xp.sum(f(a, b) ** 2), argnums=(0, 1)))(x, y)
        found += xp.autograd.grad(xp.sum(func.vmap(f, in_dims=(0, None))(x, y[0]) ** 2), [y])
        results.append(found)
    for a, b in zip(*results):
        _close(a, b)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, about functions that its transforms use
def test_transforms_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    tf = torch.func
    at, w = numbers((3,)), numbers((3, 3), 4.0)

    def f(m: Any, w: Any) -> Function:
        return lambda x: m.tanh(w @ x) * m.sum(x * x)

    ours, theirs = f(xp, xp.asarray(w)), f(torch, torch.tensor(w))
    x, t = xp.asarray(at), torch.tensor(at)
    v, u = xp.asarray(numbers((3,), 7.0)), torch.tensor(numbers((3,), 7.0))
    scalar, torch_scalar = lambda x: xp.sum(ours(x) ** 2), lambda x: torch.sum(theirs(x) ** 2)
    batch = numbers((4, 3), 2.0)
    pairs = [
        (func.jacrev(ours)(x), tf.jacrev(theirs)(t)),
        (func.jacfwd(ours)(x), tf.jacfwd(theirs)(t)),
        (func.hessian(scalar)(x), tf.hessian(torch_scalar)(t)),
        (func.grad(scalar)(x), tf.grad(torch_scalar)(t)),
        (func.jvp(ours, (x,), (v,))[1], tf.jvp(theirs, (t,), (u,))[1]),
        (func.vjp(ours, x)[1](v)[0], tf.vjp(theirs, t)[1](u)[0]),
        (func.vmap(func.hessian(scalar))(xp.asarray(batch)), tf.vmap(tf.hessian(torch_scalar))(torch.tensor(batch))),
        (func.jacfwd(func.hessian(scalar))(x), tf.jacfwd(tf.hessian(torch_scalar))(t)),
        (func.grad(lambda x: xp.sum(func.vmap(func.grad(scalar))(x)))(xp.asarray(batch)),
         tf.grad(lambda x: torch.sum(tf.vmap(tf.grad(torch_scalar))(x)))(torch.tensor(batch))),
    ]  # fmt: skip
    pairs.append((func.linearize(ours, x)[1](v), tf.jvp(theirs, (t,), (u,))[1]))
    for a, b in pairs:
        np.testing.assert_allclose(values(a), b.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_the_derivatives_of_nothing_have_a_history(shape: tuple[int, ...], xpgrad_device: str) -> None:
    """Derivatives of an empty array can be differentiated, as in PyTorch: the gradient is empty."""
    x = xp.zeros(shape, device=xpgrad_device, requires_grad=True)
    jacobians = (func.jacrev(xp.sin), func.jacfwd(xp.sin), func.hessian(lambda v: xp.sum(xp.sin(v))))
    for jacobian in jacobians:
        out = jacobian(x)
        assert out.shape == (*shape, *shape)
        (g,) = xp.autograd.grad(xp.sum(out * out), x)
        assert g.shape == shape
    y = xp.ones((2, 2), device=xpgrad_device, requires_grad=True)
    (g,) = xp.autograd.grad(xp.sum(func.jacrev(lambda v: v[:0] * v[:0])(y)), y)
    np.testing.assert_array_equal(g.numpy(), np.zeros((2, 2)))


def _energy(xp_: Any, w: Any, q: Any, v: Any) -> Any:
    return xp_.sum(w * q * v * v) + v[0] * xp_.cos(q[0] - q[1])


#: Compositions with an inner transform that has further arguments, in the transforms `f` of either library.
INSIDE: dict[str, Callable[[Any, Any, Function], Function]] = {
    "jacrev of grad": lambda f, xp_, e: lambda q, v: f.jacrev(f.grad(e, argnums=1))(q, v),
    "jacfwd of grad": lambda f, xp_, e: lambda q, v: f.jacfwd(f.grad(e, argnums=1))(q, v),
    "grad of grad": lambda f, xp_, e: lambda q, v: f.grad(lambda r: xp_.sum(f.grad(e, argnums=1)(r, v) * r))(q),
    "vjp of grad": lambda f, xp_, e: lambda q, v: f.vjp(lambda r: f.grad(e, argnums=1)(r, v), q)[1](v)[0],
    "value of vjp of grad": lambda f, xp_, e: lambda q, v: f.vjp(lambda r: f.grad(e, argnums=1)(r, v), q)[0],
    "hessian of grad": lambda f, xp_, e: lambda q, v: f.hessian(lambda r: xp_.sum(f.grad(e, argnums=1)(r, v)))(q),
    "grad of jacrev": lambda f, xp_, e: lambda q, v: f.grad(lambda r: xp_.sum(f.jacrev(lambda s: e(r, s) * s)(v)))(q),
    "grad of vjp": lambda f, xp_, e: lambda q, v: f.grad(lambda r: xp_.sum(f.vjp(lambda s: e(r, s) * s, v)[1](r)[0]))(q),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # PyTorch's own, in its jacfwd
@pytest.mark.parametrize("outside", [(), ("w",), ("q",), ("v",)], ids=str)
@pytest.mark.parametrize("composition", INSIDE)
def test_a_transform_that_ended_inside_is_no_history(composition: str, outside: tuple[str, ...]) -> None:
    """Law: a result requires grad if and only if something outside does; graphs of inner transforms are not kept alive."""
    torch = pytest.importorskip("torch")
    data = {"w": [0.5, 2.0], "q": [1.0, 0.4], "v": [3.0, 1.5]}
    ours = {k: xp.tensor(a, requires_grad=k in outside) for k, a in data.items()}
    theirs = {k: torch.tensor(a, dtype=torch.float64, requires_grad=k in outside) for k, a in data.items()}
    build = INSIDE[composition]
    y = build(func, xp, lambda q, v: _energy(xp, ours["w"], q, v))(ours["q"], ours["v"])
    z = build(torch.func, torch, lambda q, v: _energy(torch, theirs["w"], q, v))(theirs["q"], theirs["v"])
    assert y.requires_grad == bool(outside)  # PyTorch's may not require grad if the derivative is 0
    np.testing.assert_allclose(values(y), z.detach().numpy(), rtol=1e-12)
    for name in outside:
        (g,) = xp.autograd.grad(xp.sum(y * y), ours[name], materialize_grads=True)
        (h,) = torch.autograd.grad((z * z).sum(), theirs[name], allow_unused=True) if z.requires_grad else (None,)
        np.testing.assert_allclose(g.numpy(), np.zeros(2) if h is None else h.numpy(), rtol=1e-12)


def test_an_argument_that_a_function_keeps_is_still_there() -> None:
    """Law: a function that stores its argument can still differentiate a result in it after the inner transform has ended."""
    kept = []

    def f(q: Any, v: Any) -> Any:
        kept.append(v)
        return xp.sum(q * v**3)

    slope = func.grad(lambda q: xp.sum(func.grad(f, argnums=1)(q, xp.tensor([2.0]))))(xp.tensor([5.0]))
    assert slope.tolist() == [12.0]  # 3 v**2
    (g,) = xp.autograd.grad(xp.sum(slope), kept[-1])
    assert g.tolist() == [12.0]  # 6 v


def test_a_compiled_function_linearizes_for_each_element(xpgrad_device: str) -> None:
    """The tangent gets the layout of the point, of which a compiled function has a symbol."""

    def along(state: Any, tangent: Any) -> Any:
        after, push = xp.func.linearize(lambda s: xp.stack([s[1], -xp.sin(s[0]) * s[1]]), state)
        return after, push(tangent)

    states, tangents = (xp.asarray(x, device=xpgrad_device) for x in ([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], [[1.0, 2.0]] * 3))
    function = xp.func.vmap(along)
    for found, expected in zip(xp.compile(function)(states, tangents), function(states, tangents), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
