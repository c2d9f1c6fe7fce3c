"""Group F: `create_graph`, and gradients of gradients."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.facade import NotRun
from xpgrad_conformance.strategies import seeds, shapes

#: Functions of one variable, by name, with their derivatives of orders 1, 2, 3, ...
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "x * x * x": (lambda lib, x: x * x * x, [lambda v: 3 * v**2, lambda v: 6 * v, lambda v: 6 + 0 * v]),
    "x ** 4": (lambda lib, x: x**4, [lambda v: 4 * v**3, lambda v: 12 * v**2, lambda v: 24 * v, lambda v: 24 + 0 * v]),
    "exp": (lambda lib, x: lib.xp.exp(x), [np.exp, np.exp, np.exp, np.exp]),
    "sin": (lambda lib, x: lib.xp.sin(x), [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin]),
    "1 / x": (lambda lib, x: 1 / x, [lambda v: -(v**-2), lambda v: 2 * v**-3, lambda v: -6 * v**-4]),
    "log": (lambda lib, x: lib.xp.log(x), [lambda v: 1 / v, lambda v: -(v**-2), lambda v: 2 * v**-3]),
    "tanh": (lambda lib, x: lib.xp.tanh(x), [lambda v: 1 - np.tanh(v) ** 2, lambda v: -2 * np.tanh(v) * (1 - np.tanh(v) ** 2)]),
}


@contract("HOG-01", draw={"name": st.sampled_from(sorted(FUNCTIONS)), "shape": shapes(), "seed": seeds})
def to_any_order(lib: Any, name: str, shape: Any, seed: int) -> None:
    f, derivatives = FUNCTIONS[name]
    x = lib.random(shape, seed)
    ones, v = lib.ones(*shape), lib.value(x)
    g = f(lib, x)
    for order, df in enumerate(derivatives, 1):
        with lib.case(order):
            (g,) = lib.grad(g, x, ones, create_graph=True)
            lib.equal(g, df(v), rtol=None if lib.real == "float64" else 1e-4)
    x = lib.random(shape, seed)
    f(lib, x).backward(ones, create_graph=True)
    g, x.grad = x.grad, None
    g.backward(ones)
    lib.equal(x.grad, derivatives[1](v), rtol=None if lib.real == "float64" else 1e-4)


_THREE_CALLS = """
import warnings
from xpgrad_conformance.facade import open_library
lib = open_library({label!r})
counts = []
with lib.running():
    for _ in range(3):
        x = lib.tensor(2.0)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            lib.grad(x * x, x, create_graph=True)
            n = len(seen)
            (x * x).backward(create_graph=True)
        counts.append([n, sum("Using backward() with create_graph=True will create a reference cycle" in str(w.message)
                              and issubclass(w.category, UserWarning) for w in seen)])
        x.grad = None
print(counts)
"""


@contract("HOG-02")
def backward_warns_once(lib: Any) -> None:
    x, w = lib.tensor(2.0), lib.tensor(5.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lib.grad(x * x, x, create_graph=True)
    assert not seen
    (x * x * w).backward(create_graph=True)
    for t, expected in [(x, 20.0), (w, 4.0)]:
        lib.equal(t.grad, expected)
        assert t.grad.requires_grad
        assert t.grad.grad_fn is not None
    lib.equal(lib.grad(x.grad, w)[0], 4.0)
    x.grad = w.grad = None
    with lib.silent():  # the warning was given above, or earlier in this process
        (x * x).backward(create_graph=True)
    x.grad = None
    # The warning is given once per process, so it is counted in a new process.
    found = subprocess.run([sys.executable, "-c", _THREE_CALLS.format(label=lib.label)], capture_output=True, text=True, check=False)
    if "LookupError" in found.stderr or "ImportError" in found.stderr:
        raise NotRun(f"a process of its own does not find {lib.label!r}")
    assert found.stdout.splitlines()[-1:] == ["[[0, 1], [0, 0], [0, 0]]"], found.stdout + found.stderr


@contract("HOG-03")
def none_breaks_the_cycle(lib: Any) -> None:
    x = lib.tensor(2.0)
    lib.xp.exp(x).backward(create_graph=True)
    alive = weakref.ref(x)
    enabled = gc.isenabled()
    gc.disable()
    try:
        x.grad = None
        del x
        assert alive() is None
    finally:
        if enabled:
            gc.enable()


@contract("HOG-04", draw={"seed": seeds})
def a_constant_derivative_has_no_history(lib: Any, seed: int) -> None:
    x, c = lib.random((2, 3), seed), lib.random((2, 3), seed + 1, rg=False)
    y = lib.xp.sum(lib.xp.permute_dims(x * c + 1, (1, 0)) / 2)
    (g,) = lib.grad(y, x, create_graph=True)
    lib.equal(g, lib.value(c) / 2)
    assert not g.requires_grad
    with lib.raises(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
        lib.grad(lib.xp.sum(g), x)


@contract("HOG-05", draw={"shape": shapes(), "seed": seeds})
def mixed_partials(lib: Any, shape: Any, seed: int) -> None:
    x, w, ones = lib.random(shape, seed), lib.random(shape, seed + 1), lib.ones(*shape)
    gx, gw = lib.grad(x * w, [x, w], ones, create_graph=True)
    lib.equal(gx, lib.value(w))
    lib.equal(gw, lib.value(x))
    for g, of, other in [(gx, w, x), (gw, x, w)]:
        lib.equal(lib.grad(g, of, ones, retain_graph=True)[0], np.ones(shape))
        assert lib.grad(g, other, ones, retain_graph=True, allow_unused=True) == (None,)
        with lib.raises(RuntimeError, "appears to not have been used in the graph"):
            lib.grad(g, other, ones, retain_graph=True)
    (gx,) = lib.grad(lib.xp.sin(x * w), x, ones, create_graph=True)
    (gxw,) = lib.grad(gx, w, ones)
    (gw,) = lib.grad(lib.xp.sin(x * w), w, ones, create_graph=True)
    (gwx,) = lib.grad(gw, x, ones)
    v, u = lib.value(x), lib.value(w)
    lib.equal(gxw, np.cos(u * v) - u * v * np.sin(u * v), atol=1e-5 if lib.real == "float32" else None)
    lib.equal(gwx, lib.value(gxw), atol=1e-5 if lib.real == "float32" else None)
    # The determinant is linear in each element of the diagonal: its third derivative by three of these is the fourth.
    ends = [lib.tensor(v) for v in (0.7, -1.3, 2.1)]
    rest = np.asarray([[0.0, 0.4, -0.2, 0.0], [0.3, 0.0, 0.8, 0.0], [-0.6, 0.5, 0.0, 0.0], [0.2, 0.1, -0.9, 1.7]])
    matrix = lib.constant(rest)
    for i, end in enumerate(ends):
        matrix = matrix + end * lib.constant(np.diag(np.eye(4)[i]))
    d = lib.ns.linalg.det(matrix)
    for end, wanted in zip(ends, (1.7 * (-1.3 * 2.1 - 0.8 * 0.5), 1.7 * 2.1, 1.7), strict=True):
        (d,) = lib.grad(d, end, create_graph=True)
        lib.equal(d, wanted, 1e-4, 1e-4)


@contract("HOG-06")
def backward_of_a_gradient_adds_to_it(lib: Any) -> None:
    x = lib.tensor(2.0)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    lib.equal(first, 12.0)
    first.backward()
    lib.equal(x.grad, 24.0)
    assert x.grad is first
    x.grad = None


@contract("HOG-07", draw={"shape": shapes(1, 2), "seed": seeds})
def penalties_and_products(lib: Any, shape: Any, seed: int) -> None:
    x, w = lib.random(shape, seed), lib.random(shape, seed + 1)
    v, u = lib.value(x), lib.value(w)
    with lib.case("gradient penalty"):
        y = lib.xp.sum(w * x * x)
        (g,) = lib.grad(y, x, create_graph=True)
        (y + lib.xp.sum(g * g)).backward()  # sum(w x^2 + 4 w^2 x^2)
        lib.equal(w.grad, v * v + 8 * u * v * v)
        lib.equal(x.grad, 2 * u * v + 8 * u * u * v)
    direction = lib.random(shape, seed + 2, rg=False)
    d = lib.value(direction)
    with lib.case("Hessian times vector"):
        x = lib.random(shape, seed)
        y = lib.xp.sum(x * x * x) * lib.xp.sum(x)
        (g,) = lib.grad(y, x, create_graph=True)
        cubes, total = np.sum(v**3), np.sum(v)
        lib.equal(g, 3 * v**2 * total + cubes)
        (hd,) = lib.grad(g, x, direction)
        lib.equal(hd, 6 * v * d * total + 3 * v**2 * np.sum(d) + np.sum(3 * v**2 * d))
    with lib.case("vjp of vjp is jvp"):
        x = lib.random(shape, seed)
        y = lib.xp.sin(x) * lib.xp.sum(x)
        seed_ = lib.tensor(np.ones(shape))
        (g,) = lib.grad(y, x, seed_, create_graph=True)
        (t,) = lib.grad(g, seed_, direction)
        lib.equal(t, np.cos(v) * d * np.sum(v) + np.sin(v) * np.sum(d))


@contract("HOG-08")
def the_grad_mode_of_a_pass_is_create_graph(lib: Any) -> None:
    for outer in ("no_grad", "enable_grad"):
        for create in (False, True):
            for how in ("grad", "backward"):
                with lib.case((outer, create, how)):
                    x, seen = lib.tensor(2.0), []
                    x.register_hook(lambda g, seen=seen: seen.append(lib.ns.is_grad_enabled()))
                    note = lib.fn(lambda ctx, x: x * 1, lambda ctx, g, seen=seen: seen.append(lib.ns.is_grad_enabled()) or g * 1)
                    y = note.apply(x) * x * x
                    with getattr(lib.ns, outer)():
                        before = lib.ns.is_grad_enabled()
                        if how == "grad":
                            (g,) = lib.grad(y, x, create_graph=create)
                        else:
                            y.backward(create_graph=create)
                            g, x.grad = x.grad, None
                        assert lib.ns.is_grad_enabled() is before
                    assert seen == [create, create]
                    lib.equal(g, 12.0)
                    assert g.requires_grad is create


@contract("HOG-09")
def the_second_graph_survives_the_first_outputs(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    middle = lib.xp.exp(x)
    y = lib.xp.sum(middle * middle)
    (g,) = lib.grad(y, x, create_graph=True)
    del y, middle
    gc.collect()
    v = np.array([1.0, 2.0])
    lib.equal(g, 2 * np.exp(2 * v))
    lib.equal(lib.grad(g, x, lib.ones(2))[0], 4 * np.exp(2 * v))


unchecked("HOG-10", "it is advice to users, which a library cannot break")


@contract("HOG-11")
def powers_at_0_have_finite_derivatives(lib: Any) -> None:
    powers = [
        ("**", lambda x, n: x**n),
        ("pow of a number", lambda x, n: lib.xp.pow(x, float(n))),
        ("pow of a Tensor", lambda x, n: lib.xp.pow(x, lib.constant([float(n)] * 2))),
    ]
    for name, power in powers:
        for n, first, second in [(2, 0.0, 2.0), (1, 1.0, 0.0), (0, 0.0, 0.0), (3, 0.0, 0.0)]:
            if lib.oracle and (name, n) == ("pow of a Tensor", 0):
                continue  # PyTorch's second derivative is nan there
            with lib.case((name, n)):
                x = lib.tensor([0.0, 0.0])
                ones = lib.ones(2)
                (g,) = lib.grad(power(x, n), x, ones, create_graph=True, materialize_grads=True)
                lib.equal(g, [first] * 2)
                if g.requires_grad:
                    (h,) = lib.grad(g, x, ones, materialize_grads=True)
                    lib.equal(h, [second] * 2)
                else:
                    assert n < 2
