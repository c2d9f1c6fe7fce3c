"""Group U: `autograd.functional`: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.strategies import seeds, shapes

PRODUCTS = ("vjp", "jvp", "vhp", "hvp")


def functional(lib: Any) -> Any:
    """Return the module under test."""
    return lib.module("autograd.functional")


def contract_with(lib: Any, a: Any, x: Any) -> Any:
    """Contract the last axes of the constant `a` with all axes of `x`."""
    return lib.xp.tensordot(lib.constant(a), x, axes=x.ndim)


def constant(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Return a NumPy array of random numbers."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def values(lib: Any, x: Any) -> np.ndarray[Any, Any]:
    """Return a Tensor's values in double precision."""
    return np.asarray(lib.value(x), dtype=np.float64)


@contract("FNL-01", draw={"out": shapes(0, 2, 3), "one": shapes(0, 2, 3), "two": shapes(0, 2, 2), "seed": seeds})
def shapes_and_structure(lib: Any, out: Any, one: Any, two: Any, seed: int) -> None:
    jacobian = functional(lib).jacobian
    x, y = lib.random(one, seed, rg=False), lib.random(two, seed + 1, rg=False)
    a, b = constant(out + one, seed + 2), constant(two + two, seed + 3)
    by_x = 2 * a * values(lib, x)

    def f(x: Any, y: Any) -> Any:
        return contract_with(lib, a, x * x) + lib.xp.sum(y * y)

    def g(y: Any) -> Any:
        return contract_with(lib, b, y)

    by_y = np.broadcast_to(2 * values(lib, y), out + two)
    # One input and one output: the result is a Tensor.
    found = jacobian(lambda x: f(x, y), x)
    assert isinstance(found, lib.ns.Tensor)
    assert tuple(found.shape) == out + one
    lib.equal(found, by_x)
    # A tuple on one side, of one element or more: the result is a tuple.
    for several_in in (1, 2):
        found = jacobian(f if several_in == 2 else lambda x: f(x, y), (x, y)[:several_in])
        assert isinstance(found, tuple)
        assert len(found) == several_in
        for block, expected in zip(found, (by_x, by_y), strict=False):
            lib.equal(block, expected)
    for several_out in (1, 2):
        found = jacobian(lambda y, n=several_out: (f(x, y), g(y))[:n], y)
        assert isinstance(found, tuple)
        assert len(found) == several_out
        for block, expected in zip(found, (by_y, b), strict=False):
            lib.equal(block, expected)
    # Tuples on both sides: the result is indexed by outputs, then by inputs.
    found = jacobian(lambda x, y: (f(x, y), g(y) * 2, lib.xp.sum(x)), (x, y))
    assert isinstance(found, tuple)
    assert [type(row) for row in found] == [tuple] * 3
    table = [(by_x, by_y), (np.zeros(two + one), 2 * b), (np.ones(one), np.zeros(two))]
    for i, (row, expected_row) in enumerate(zip(found, table, strict=True)):
        for j, (block, expected) in enumerate(zip(row, expected_row, strict=True)):
            with lib.case((i, j)):
                lib.equal(block, expected)
    found = jacobian(lambda x: (x * 2,), (x,))
    assert isinstance(found, tuple)
    assert isinstance(found[0], tuple)


@contract("FNL-02")
def independent_inputs(lib: Any) -> None:
    jacobian = functional(lib).jacobian
    x, y = lib.constant([1.0, 2.0]), lib.constant([3.0])
    for f in (lambda x, y: x * x, lambda x, y: x * x + y.detach()):
        for one, other in zip(jacobian(f, (x, y)), ([[2.0, 0.0], [0.0, 4.0]], [[0.0], [0.0]]), strict=True):
            lib.equal(one, other)
        with lib.raises(RuntimeError, "Output 0 of the user-provided function is independent of input 1", "strict mode"):
            jacobian(f, (x, y), strict=True)
    with lib.raises(RuntimeError, "Output 1 of the user-provided function is independent of input 0", "strict mode"):
        jacobian(lambda x, y: (x * y, y * 2), (x, y), strict=True)
    for f in (lambda x, y: x.detach() * 2, lambda x, y: lib.ones(2)):
        for found, shape in zip(jacobian(f, (x, y)), ((2, 2), (2, 1)), strict=True):
            lib.equal(found, np.zeros(shape))
        with lib.raises(RuntimeError, "Output 0 of the user-provided function does not require gradients"):
            jacobian(f, (x, y), strict=True)
    with lib.raises(RuntimeError, "Output 1 of the user-provided function does not require gradients"):
        jacobian(lambda x, y: (x * y, lib.ones(2)), (x, y), strict=True)
    for found, expected in zip(jacobian(lambda x, y: x * y, (x, y), strict=True), ([[3.0, 0], [0, 3]], [[1.0], [2]]), strict=True):
        lib.equal(found, expected)


@contract("FNL-03", draw={"seed": seeds})
def differentiable_jacobians(lib: Any, seed: int) -> None:
    jacobian, hessian = functional(lib).jacobian, functional(lib).hessian
    for rg in (False, True):
        x, w = lib.random((3,), seed, rg=rg), lib.random((3,), seed + 1)
        found = jacobian(lambda x, w=w: x * x * w, x)
        assert not found.requires_grad
        assert found.grad_fn is None
        assert not any(block.requires_grad for block in jacobian(lambda x, w: (x * w)[0], (x, w)))
        found = hessian(lambda x, w=w: lib.xp.sum(x * x * x * w), x)
        assert not found.requires_grad
    v, u = values(lib, x), values(lib, w)
    found = jacobian(lambda x, w: x * x * w, (x, w), create_graph=True)
    assert all(block.requires_grad for block in found)
    # The gradient of the sum of d(x² w)/dx and d(x² w)/dw over all elements.
    g, h = lib.grad(lib.xp.sum(found[0]) + lib.xp.sum(found[1]), (x, w))
    lib.equal(g, 2 * u + 2 * v)
    lib.equal(h, 2 * v)
    found = hessian(lambda x: lib.xp.sum(x * x * x * w), x, create_graph=True)
    g, h = lib.grad(lib.xp.sum(found), (x, w))
    lib.equal(g, 6 * u)
    lib.equal(h, 6 * v)
    assert x.grad is None


@contract("FNL-04")
def kinds_of_inputs_and_outputs(lib: Any) -> None:
    x = lib.constant([1.0])
    for name in ("jacobian", "hessian", *PRODUCTS):
        function, v = getattr(functional(lib), name), lib.constant([1.0])
        given, returned = f"The inputs given to {name} must be", f"user-provided function given to {name} must"
        for inputs, kind in [([x], "<class 'list'>"), (1.0, "<class 'float'>"), (None, "NoneType"), ((x, 2.0), "<class 'float'>")]:
            with lib.case((name, "in", inputs)), lib.raises(TypeError, given, "a Tensor or a tuple of Tensors", kind):
                function(lambda *xs: lib.xp.sum(xs[0] * 2), inputs, *([v] if name in PRODUCTS else []))
        for out, kind in [([x], "<class 'list'>"), (1.0, "<class 'float'>"), (None, "NoneType"), ((x, 2.0), "<class 'float'>")]:
            with lib.case((name, "out", out)), lib.raises(TypeError, returned, "a Tensor or a tuple of Tensors", kind):
                function(lambda x, out=out: out, x, *([v] if name in PRODUCTS else []))


@contract("FNL-05", draw={"out": shapes(0, 2, 3), "shape": shapes(0, 2, 3), "seed": seeds})
def vectorized(lib: Any, out: Any, shape: Any, seed: int) -> None:
    jacobian, hessian = functional(lib).jacobian, functional(lib).hessian
    x, y = lib.random(shape, seed, rg=False), lib.random((2,), seed + 1, rg=False)
    a = constant(out + shape, seed + 2)
    programs = {
        "one": (lambda x: contract_with(lib, a, lib.xp.sin(x)), x),
        "several": (lambda x, y: (contract_with(lib, a, x * x) * y[0], y * y, lib.xp.sum(x)), (x, y)),
        "constant": (lambda x, y: (y * 2, lib.ones(2)), (x, y)),
    }
    for name, (f, inputs) in programs.items():
        with lib.case(name):
            same(lib, jacobian(f, inputs, vectorize=True), jacobian(f, inputs))
    f = lambda x, y: lib.xp.sum(x * x * x) * lib.xp.sum(y * y)  # noqa: E731
    same(lib, hessian(f, (x, y), vectorize=True), hessian(f, (x, y)))
    for function in (jacobian, hessian):
        with lib.raises(RuntimeError, "`strict=True` and `vectorized=True` are not supported together"):
            function(lambda x: lib.xp.sum(x * x), x, strict=True, vectorize=True)


def same(lib: Any, found: Any, expected: Any) -> None:
    """Assert that two results have the same structure and values."""
    assert type(found) is type(expected)
    if isinstance(found, tuple):
        for one, other in zip(found, expected, strict=True):
            same(lib, one, other)
    else:
        lib.equal(found, lib.value(expected))


@contract("FNL-06")
def strategies(lib: Any) -> None:
    jacobian, hessian = functional(lib).jacobian, functional(lib).hessian
    x, y = lib.constant([1.0, 2.0]), lib.constant(3.0)
    f = lambda x, y: (lib.xp.exp(x) * y, x * 2)  # noqa: E731
    scalar = lambda x, y: lib.xp.sum(lib.xp.exp(x) * y * y)  # noqa: E731
    with lib.raises(NotImplementedError, "vectorize=True"):
        jacobian(f, (x, y), strategy="forward-mode")
    with lib.raises(NotImplementedError, "create_graph=True"):
        jacobian(f, (x, y), strategy="forward-mode", vectorize=True, create_graph=True)
    with lib.raises(NotImplementedError, "vectorize=True"):
        hessian(scalar, (x, y), outer_jacobian_strategy="forward-mode")
    for name in ("forward", "sideways-mode", None):
        with lib.case(name):
            with lib.raises(AssertionError, "strategy"):
                jacobian(f, (x, y), strategy=name, vectorize=True)
            with lib.raises(AssertionError, "strategy"):
                hessian(scalar, (x, y), outer_jacobian_strategy=name, vectorize=True)
    # Only values and positions are compared, because PyTorch returns lists here.
    table = [(jacobian, "strategy", f), (hessian, "outer_jacobian_strategy", scalar)]
    for function, option, program in table:
        found, expected = function(program, (x, y), vectorize=True, **{option: "forward-mode"}), function(program, (x, y))
        for row, expected_row in zip(found, expected, strict=True):
            for block, expected_block in zip(row, expected_row, strict=True):
                lib.equal(block, lib.value(expected_block))
    # The result is detached from other Tensors that the function uses.
    w = lib.tensor([3.0, 4.0])
    for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        with lib.case(options):
            found = jacobian(lambda x: x * x * w, x, **options)
            lib.equal(found, np.diag([6.0, 16.0]))
            assert not found.requires_grad or (lib.oracle and "strategy" in options)


@contract("FNL-07", draw={"seed": seeds})
def hessians(lib: Any, seed: int) -> None:
    hessian, xp = functional(lib).hessian, lib.xp
    x, y = lib.random((2,), seed, rg=False), lib.random((3, 1), seed + 1, rg=False)
    v, u = values(lib, x), values(lib, y)
    cube = lambda x: xp.sum(x * x * x)  # noqa: E731
    for shape in [(), (1,), (1, 1)]:
        with lib.case(shape):
            found = hessian(lambda x, shape=shape: xp.reshape(cube(x), shape), x)
            assert isinstance(found, lib.ns.Tensor)
            lib.equal(found, np.diag(6 * v))
    found = hessian(lambda x, y: cube(x) * xp.sum(y * y), (x, y))
    assert isinstance(found, tuple)
    assert [type(row) for row in found] == [tuple] * 2
    lib.equal(found[0][0], np.diag(6 * v) * np.sum(u * u))
    lib.equal(found[0][1], np.multiply.outer(3 * v * v, 2 * u))
    lib.equal(found[1][0], np.multiply.outer(2 * u, 3 * v * v))
    lib.equal(found[1][1], 2 * np.sum(v**3) * np.eye(3).reshape(3, 1, 3, 1))
    found = hessian(cube, (x,))
    assert isinstance(found, tuple)
    assert isinstance(found[0], tuple)
    lib.equal(hessian(lambda x: xp.sum(x * 3), x), np.zeros((2, 2)))
    with lib.raises(RuntimeError, "strict mode"):
        hessian(lambda x: xp.sum(x * 3), x, strict=True)
    with lib.raises(RuntimeError, "strict mode"):
        hessian(lambda x, y: cube(x), (x, y), strict=True)
    lib.equal(hessian(cube, x, strict=True), np.diag(6 * v))
    for f in (lambda x: x * x, lambda x: xp.reshape(x * x, (1, 2))):
        with lib.raises(RuntimeError, "The Tensor returned by the function given to hessian should contain a single element"):
            hessian(f, x)
    for f in (lambda x: (cube(x), cube(x)), lambda x: (cube(x),)):
        with lib.raises(RuntimeError, "The function given to hessian should return a single Tensor"):
            hessian(f, x)


@contract("FNL-08", draw={"seed": seeds})
def products(lib: Any, seed: int) -> None:
    api, xp = functional(lib), lib.xp
    x, y = lib.random((2,), seed, rg=False), lib.random((3,), seed + 1, rg=False)
    p, q = lib.random((2,), seed + 2, rg=False), lib.random((3,), seed + 3, rg=False)
    v, u, a, b = (values(lib, t) for t in (x, y, p, q))
    # One input and one output: Tensors.
    for name, v_in, f, out, product in [
        ("vjp", q, lambda x: x[0] * y + xp.sum(x * x), v[0] * u + np.sum(v * v), np.array([b @ u, 0]) + 2 * v * np.sum(b)),
        ("jvp", p, lambda x: x[0] * y + xp.sum(x * x), v[0] * u + np.sum(v * v), a[0] * u + 2 * np.sum(v * a)),
        ("vhp", p, lambda x: x[0] * x[1] * x[1], v[0] * v[1] ** 2, [2 * v[1] * a[1], 2 * v[1] * a[0] + 2 * v[0] * a[1]]),
        ("hvp", p, lambda x: x[0] * x[1] * x[1], v[0] * v[1] ** 2, [2 * v[1] * a[1], 2 * v[1] * a[0] + 2 * v[0] * a[1]]),
    ]:
        with lib.case(name):
            pair = getattr(api, name)(f, x, v_in)
            assert isinstance(pair, tuple)
            lib.equal(pair[0], out)
            lib.equal(pair[1], product)
            with lib.raises(RuntimeError, "The vector v can only be None if"):
                getattr(api, name)(f, x)
    # Several: the outputs have the function's structure, the product has that of the inputs or of the outputs.
    both = lambda x, y: (xp.sum(x) * y, x * x)  # noqa: E731
    outs, (g, h) = api.vjp(both, (x, y), (q, p))
    same(lib, outs, both(x, y))
    lib.equal(g, np.sum(b * u) + 2 * v * a)
    lib.equal(h, np.sum(v) * b)
    outs, (s, t) = api.jvp(both, (x, y), (p, q))
    same(lib, outs, both(x, y))
    lib.equal(s, np.sum(a) * u + np.sum(v) * b)
    lib.equal(t, 2 * v * a)
    g, h = api.vjp(lambda x, y: xp.sum(x) * y, (x, y), q)[1]
    lib.equal(g, np.full(2, np.sum(b * u)))
    lib.equal(h, np.sum(v) * b)
    s, t = api.jvp(lambda x: (x[0] * y, x * x), x, p)[1]
    lib.equal(s, a[0] * u)
    lib.equal(t, 2 * v * a)
    for name in ("vhp", "hvp"):
        with lib.case(name):
            out, (g, h) = getattr(api, name)(lambda x, y: xp.sum(x * x) * xp.sum(y), (x, y), (p, q))
            lib.equal(out, np.sum(v * v) * np.sum(u))
            lib.equal(g, 2 * a * np.sum(u) + 2 * v * np.sum(b))
            lib.equal(h, np.full(3, np.sum(2 * v * a)))
    # The vector is ones by default if there is only a single element, in the output or in the input.
    for shape in [(), (1,), (1, 1)]:
        one = lib.tensor(np.full(shape, 2.0), rg=False)
        with lib.case(shape):
            lib.equal(api.vjp(lambda x, shape=shape: xp.reshape(xp.sum(x * x), shape), x)[1], 2 * v)
            lib.equal(api.jvp(lambda t: xp.sum(t) * y, one)[1], u)
            for name in ("vhp", "hvp"):
                lib.equal(getattr(api, name)(lambda t: xp.sum(t * t * t), one)[1], np.full(shape, 12.0))
    with lib.raises(RuntimeError, "The vector v can only be None if"):
        api.vjp(lambda x: (xp.sum(x), xp.sum(x)), x)
    with lib.raises(RuntimeError, "The vector v can only be None if"):
        api.jvp(lambda x, y: x * y, (lib.constant(1.0), lib.constant(2.0)))


@contract("FNL-09")
def the_vector_is_checked(lib: Any) -> None:
    api, xp = functional(lib), lib.xp
    x, y = lib.constant([1.0, 2.0]), lib.constant([3.0])
    for name in PRODUCTS:
        function = getattr(api, name)
        f = (lambda x: x * x) if name in ("vjp", "jvp") else lambda x: xp.sum(x * x)
        for wrong in [(3,), (), (1, 2), (2, 1), (1,)]:
            with lib.case((name, wrong)), lib.raises(RuntimeError, "v has invalid size: should be", "but got"):
                function(f, x, lib.ones(*wrong))
        with lib.case((name, "two")), lib.raises(RuntimeError, "The given v should contain a single Tensor."):
            function(f, x, (lib.ones(2), lib.ones(2)))
        with lib.case((name, "one in a tuple")):
            same(lib, function(f, x, (lib.ones(2),)), function(f, x, lib.ones(2)))
        both = (lambda x, y: (x * y, y * y)) if name in ("vjp", "jvp") else lambda x, y: xp.sum(x * y)
        with lib.case((name, "too few")), lib.raises(RuntimeError, "v is a tuple of invalid length: should be 2 but got 1"):
            function(both, (x, y), (lib.ones(2),))
        with lib.case((name, "second")), lib.raises(RuntimeError, "Entry 1 in v has invalid size: should be", "but got"):
            function(both, (x, y), (lib.ones(2), lib.ones(2)))
        for kind in ([lib.ones(2)], 1.0):
            with lib.case((name, "kind", kind)), lib.raises(TypeError, f"given to {name} must be"):
                function(f, x, kind)


@contract("FNL-10", draw={"seed": seeds})
def results_are_detached(lib: Any, seed: int) -> None:
    xp = lib.xp
    x, w, p = lib.random((2,), seed), lib.random((2,), seed + 1), lib.random((2,), seed + 2, rg=False)
    v, u, a = (values(lib, t) for t in (x, w, p))
    for name in PRODUCTS:
        function = getattr(functional(lib), name)
        f = (lambda x: x * x * x * w) if name in ("vjp", "jvp") else lambda x: xp.sum(x * x * x * w)
        with lib.case(name):
            for result in function(f, x, p):
                assert not result.requires_grad
                assert result.grad_fn is None
            out, product = function(f, x, p, create_graph=True)
            g, h = lib.grad(xp.sum(out), (x, w), retain_graph=True)
            lib.equal(g, 3 * v * v * u)
            lib.equal(h, v**3)
            g, h = lib.grad(xp.sum(product), (x, w))
            lib.equal(g, 6 * v * u * a if name in ("vjp", "jvp") else 6 * u * a)
            lib.equal(h, 3 * v * v * a if name in ("vjp", "jvp") else 6 * v * a)
            assert x.grad is None
            # An input that does not require grad is differentiated as well.
            out, product = function(f, x.detach(), p, create_graph=True)
            lib.equal(lib.grad(xp.sum(product), w)[0], 3 * v * v * a if name in ("vjp", "jvp") else 6 * v * a)


@contract("FNL-11", draw={"seed": seeds})
def nothing_else_is_touched(lib: Any, seed: int) -> None:
    api, xp = functional(lib), lib.xp
    x, w, p = lib.random((2,), seed), lib.random((2,), seed + 1), lib.random((2,), seed + 2, rg=False)
    v, u, a = (values(lib, t) for t in (x, w, p))
    old = lib.constant([7.0, 8.0])
    w.grad = old
    # The function captures the very object that is its input. The captured object is a constant.
    vector, scalar = (lambda t: t * t * x * w), (lambda t: xp.sum(t * t * t * x * w))
    table = [
        ("jacobian", vector, (), np.diag(2 * v * v * u)),
        ("hessian", scalar, (), np.diag(6 * v * v * u)),
        ("vjp", vector, (p,), 2 * v * v * u * a),
        ("jvp", vector, (p,), 2 * v * v * u * a),
        ("vhp", scalar, (p,), 6 * v * v * u * a),
        ("hvp", scalar, (p,), 6 * v * v * u * a),
    ]
    for name, f, more, expected in table:
        for create_graph in (False, True):
            for recording in (True, False):
                with lib.case((name, create_graph, recording)), lib.ns.set_grad_enabled(recording):
                    result = getattr(api, name)(f, x, *more, create_graph=create_graph)
                    lib.equal(result if not more else result[1], expected)
                    assert lib.ns.is_grad_enabled() is recording
        assert x.grad is None
        assert w.grad is old
        assert x.requires_grad
        lib.equal(old, [7.0, 8.0])


@contract("FNL-12", draw={"seed": seeds})
def symmetric_hessians(lib: Any, seed: int) -> None:
    api, xp = functional(lib), lib.xp
    x, y = lib.random((3,), seed, rg=False), lib.random((2, 1), seed + 1, rg=False)
    p, q = lib.random((3,), seed + 2, rg=False), lib.random((2, 1), seed + 3, rg=False)

    def f(x: Any, y: Any) -> Any:
        return xp.sum(xp.exp(x[1:] * y) * x[0]) + x[0] * x[1] * x[2]

    out, by_hvp = api.hvp(f, (x, y), (p, q))
    value, by_vhp = api.vhp(f, (x, y), (p, q))
    same(lib, out, value)
    eps = np.finfo(lib.value(x).dtype).eps
    blocks = api.hessian(f, (x, y))
    for i, (one, other) in enumerate(zip(by_hvp, by_vhp, strict=True)):
        lib.equal(one, lib.value(other), rtol=1e3 * eps, atol=1e3 * eps)
        expected = sum(np.tensordot(values(lib, block), values(lib, t), axes=t.ndim) for block, t in zip(blocks[i], (p, q), strict=True))
        lib.equal(one, expected, rtol=1e3 * eps, atol=1e3 * eps)


@contract("FNL-13")
def dtypes(lib: Any) -> None:
    api = functional(lib)
    for name in ("jacobian", "hessian", *PRODUCTS):
        n, v = lib.constant([1], "int32"), lib.constant([1.0])
        with lib.case(name), lib.raises(RuntimeError, "floating point", "can require gradients"):
            getattr(api, name)(lambda x: lib.xp.sum(x * 2.0), n, *([v] if name in PRODUCTS else []))
    if lib.capabilities["complex"]:
        x = lib.constant(1.0)
        for name in ("jacobian", "hessian"):
            with lib.case(name), lib.raises(RuntimeError, "only for real scalar outputs"):
                getattr(api, name)(lambda x: x * x * 1j, x)


unchecked("FNL-14", "a mere pointer: the documentation names `torch.func` as the successor")
