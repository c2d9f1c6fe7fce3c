"""Group X: the transforms of functions (`torch.func`), their arguments, and structures of Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.contracts import x_keys

X, Y = np.asarray([1.0, 2.0]), np.asarray([3.0, 5.0])


def cubic(lib: Any) -> Any:
    """Return the function ``sum(x ** 3 y)``."""
    return lambda x, y: lib.xp.sum(x * x * x * y)


def equal(lib: Any, found: Any, expected: Any) -> None:
    """Compare a structure of Tensors with a structure of numbers."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert list(found) == list(expected)
        for name, value in expected.items():
            equal(lib, found[name], value)
    elif isinstance(expected, tuple):
        assert type(found) is tuple
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            equal(lib, a, b)
    else:
        lib.equal(found, expected, rtol=1e-4 if lib.real == "float32" else 1e-9)


@contract("DER-19")
def gradients_of_functions(lib: Any) -> None:
    func = lib.module("func")
    x, y = lib.constant(X), lib.constant(Y)
    f = cubic(lib)
    gx, gy, total = 3 * X**2 * Y, X**3, np.sum(X**3 * Y)
    equal(lib, func.grad(f)(x, y), gx)
    equal(lib, func.grad(f, argnums=1)(x, y), gy)
    equal(lib, func.grad(f, argnums=-1)(x, y), gy)
    equal(lib, func.grad(f, argnums=(1, 0))(x, y), (gy, gx))
    equal(lib, func.grad(f, argnums=(0,))(x, y), (gx,))
    equal(lib, func.grad_and_value(f)(x, y), (gx, total))
    equal(lib, func.grad_and_value(f, argnums=(0, 1))(x, y), ((gx, gy), total))
    with_aux = lambda x, y: (f(x, y), {"seen": x * 2})  # noqa: E731
    equal(lib, func.grad(with_aux, has_aux=True)(x, y), (gx, {"seen": 2 * X}))
    equal(lib, func.grad_and_value(with_aux, has_aux=True)(x, y), (gx, (total, {"seen": 2 * X})))
    tree = lambda p, k: f(p["a"], p["b"][0]) * k  # noqa: E731
    equal(lib, func.grad(tree)({"a": x, "b": (y,)}, k=2.0), {"a": 2 * gx, "b": (2 * gy,)})
    # An unused argument has a gradient of zeros; an argument that is not a float cannot be differentiated.
    equal(lib, func.grad(lambda x, y: lib.xp.sum(x), argnums=1)(x, y), np.zeros(2))
    for transform in (func.grad, func.jacrev):
        equal(lib, transform(lambda x, y: lib.xp.sum(x), argnums=(0, 1))(x, y), (np.ones(2), np.zeros(2)))
    # Nested gradients, whose levels are independent.
    equal(lib, func.grad(lambda x: lib.xp.sum(func.grad(lambda v: lib.xp.sum(v * v * v))(x) * x))(x), 9 * X**2)
    equal(lib, func.grad(lambda x: lib.xp.sum(func.grad(lambda v: lib.xp.sum(v * x))(x * 1)))(x), np.ones(2))
    # The argument keeps its history, and its `.grad` does not change.
    leaf = lib.tensor(X)
    g = func.grad(lambda v: lib.xp.sum(v * v * v))(leaf)
    assert g.requires_grad
    equal(lib, lib.grad(lib.xp.sum(g), leaf)[0], 6 * X)
    assert leaf.grad is None
    assert not func.grad(lambda v: lib.xp.sum(v * v))(x).requires_grad
    # Under no_grad outside, the function is differentiated. Under no_grad inside, it is not.
    with lib.ns.no_grad():
        equal(lib, func.grad(lambda v: lib.xp.sum(v * v))(x), 2 * X)

    def inside(v: Any) -> Any:
        with lib.ns.no_grad():
            c = v * v
        return lib.xp.sum(v * v - c)

    equal(lib, func.grad(inside)(x), 2 * X)
    # The caller may write to the argument afterwards, even if the function has kept it.
    kept: list[Any] = []
    mine = lib.constant(X)

    def keep(v: Any) -> Any:
        kept.append(v)
        return lib.xp.sum(v * v)

    func.grad(keep)(mine)
    mine[0] = 5.0
    equal(lib, mine, [5.0, X[1]])


@contract("DER-20")
def functions_that_are_refused(lib: Any) -> None:
    func = lib.module("func")
    x, y = lib.constant(X), lib.constant(Y)
    refused = {
        "not a scalar": lambda: func.grad(lambda v: v * v)(x),
        "not a Tensor": lambda: func.grad(lambda v: 3.0)(x),
        "several": lambda: func.grad(lambda v: (lib.xp.sum(v), lib.xp.sum(v)))(x),
        "no pair": lambda: func.grad(lambda v: lib.xp.sum(v), has_aux=True)(x),
        "too far": lambda: func.grad(cubic(lib), argnums=2)(x, y),
        "twice": lambda: func.grad(cubic(lib), argnums=(0, 0))(x, y),
        "no number": lambda: func.grad(cubic(lib), argnums="a")(x, y),
        "whole numbers": lambda: func.grad(lambda v: lib.xp.sum(v) * 1.0)(lib.constant([1, 2], "int32")),
        "primals in a list": lambda: func.jvp(lambda v: v, [x], (x,)),
        "too few tangents": lambda: func.jvp(lambda v, w: v * w, (x, y), (x,)),
        "cotangents": lambda: func.vjp(lambda v: (v, v * 2), x)[1](x),
        "primals of another kind": lambda: func.jvp(lambda v: v, (3.0,), (x,)),
        "tangents of another kind": lambda: func.jvp(lambda v: v, (x,), (3.0,)),
        "tangents of another shape": lambda: func.linearize(lambda v: v * 2, x)[1](lib.ones(3)),
        "tangents in another structure": lambda: func.linearize(lambda v: v * 2, x)[1]((x, x)),
    }
    for name, program in refused.items():
        with lib.case(name), lib.raises(RuntimeError):
            program()
    for name, program in {
        "sizes": lambda: func.vmap(lambda a, b: a)(lib.ones(2, 3), lib.ones(3, 3)),
        "nothing mapped": lambda: func.vmap(lambda a: a, in_dims=None)(x),
        "too many dims": lambda: func.vmap(lambda a: a, in_dims=(0, 0))(x),
        "beyond the axes": lambda: func.vmap(lambda a: a, in_dims=1)(x),
        "no axis": lambda: func.vmap(lambda a: a)(lib.constant(1.0)),
        "no Tensor": lambda: func.vmap(lambda a: 3.0)(x),
        "randomness": lambda: func.vmap(lambda a: a, randomness="some")(x),
        "chunks of rows": lambda: func.jacrev(lambda v: v * 2, chunk_size=0)(x),
        "chunks of columns": lambda: func.jacfwd(lambda v: v * 2, **{"chunk_size": -1} if not lib.oracle else {"randomness": "some"})(x),
        "chunks of 0": lambda: func.vmap(lambda a: a, chunk_size=0)(x),
    }.items():
        with lib.case(name), lib.raises((ValueError, RuntimeError)):
            program()
    # The errors left no state behind.
    equal(lib, func.grad(cubic(lib))(x, y), 3 * X**2 * Y)


@contract("DER-21")
def products_with_jacobians(lib: Any) -> None:
    func = lib.module("func")
    x, y = lib.constant(X), lib.constant(Y)
    f = lambda x, y: {"product": x * y, "square": (x * x,)}  # noqa: E731
    out, pull = func.vjp(f, x, y)
    equal(lib, out, {"product": X * Y, "square": (X * X,)})
    for _ in range(2):
        found = pull({"product": lib.constant([1.0, 10.0]), "square": (lib.constant([2.0, 3.0]),)})
        equal(lib, found, (np.asarray([1.0, 10.0]) * Y + np.asarray([2.0, 3.0]) * 2 * X, np.asarray([1.0, 10.0]) * X))
    with lib.raises(RuntimeError):
        func.vjp(lambda v: (), x)
    once = func.vjp(lambda v: v * v * v, x)[1]
    equal(lib, once(y, retain_graph=False), (3 * X**2 * Y,))
    with lib.raises(RuntimeError, "second time"):
        once(y)
    held = lib.tensor(X)
    pulled = func.vjp(lambda v: v * v * v, held)[1]
    assert not pulled(y, create_graph=False)[0].requires_grad
    assert pulled(y, create_graph=True)[0].requires_grad
    with lib.ns.no_grad():
        assert not pulled(y)[0].requires_grad
    assert pulled(y)[0].requires_grad
    out, pull, aux = func.vjp(lambda x: (x * x, x + 1), x, has_aux=True)
    equal(lib, (out, aux), (X * X, X + 1))
    equal(lib, pull(y), (2 * X * Y,))
    # The results can be differentiated with respect to the arguments.
    out, pull = func.vjp(lambda v, w: y * 1, x, y)
    equal(lib, (out, pull(x)), (Y, (np.zeros(2), np.zeros(2))))
    leaf, seed = lib.tensor(X), lib.tensor(Y)
    (g,) = func.vjp(lambda v: v * v * v, leaf)[1](seed)
    equal(lib, lib.grad(lib.xp.sum(g), [leaf, seed]), (6 * X * Y, 3 * X**2))
    equal(lib, func.jvp(f, (x, y), (y, x)), ({"product": X * Y, "square": (X * X,)}, {"product": Y * Y + X * X, "square": (2 * X * Y,)}))
    equal(lib, func.jvp(lambda x: (x * x, x + 1), (x,), (y,), has_aux=True), (X * X, 2 * X * Y, X + 1))
    equal(lib, func.jvp(lambda x: y * 1, (x,), (y,)), (Y, np.zeros(2)))
    with lib.raises(RuntimeError):
        func.jvp(lambda x: y * 1, (x,), (y,), strict=True)
    held = lib.tensor(X)
    with lib.ns.no_grad():
        for result in func.jvp(lambda v: v * v, (held,), (y,)):
            assert not result.requires_grad
    for result in func.jvp(lambda v: v * v, (held,), (y,)):
        assert result.requires_grad
    shared = lambda v: func.jvp(lambda w: lib.xp.sin(w) * v, (lib.xp.zeros_like(v),), (lib.xp.ones_like(v),))[1]  # noqa: E731
    equal(lib, func.vmap(shared)(x), X)  # a point and a tangent that the elements share
    inner = lambda v: func.jvp(lambda w: w * w * w, (v,), (v,))[1]  # noqa: E731
    equal(lib, func.jvp(inner, (x,), (y,)), (3 * X**3, 9 * X**2 * Y))
    cube = lambda v: v * v * v  # noqa: E731
    equal(lib, func.jvp(lambda v: func.vjp(cube, v)[0], (x,), (y,)), (X**3, 3 * X**2 * Y))
    both = func.jvp(func.grad_and_value(lambda v: lib.xp.sum(cube(v))), (x,), (y,))
    equal(lib, both, ((3 * X**2, np.sum(X**3)), (6 * X * Y, np.sum(3 * X**2 * Y))))
    # Under inference mode they compute derivatives as well, and the mode stays the same.
    with lib.ns.inference_mode():
        results = func.jvp(lambda v: v * v * v, (x,), (y,))
        assert (lib.ns.is_inference_mode_enabled(), lib.ns.is_grad_enabled()) == (True, False)
    equal(lib, results, (X**3, 3 * X**2 * Y))
    assert not any(r.requires_grad for r in results)
    out, push = func.linearize(lambda v: lib.xp.sin(v) * y, x)
    equal(lib, out, np.sin(X) * Y)
    for t in (X, Y):
        equal(lib, push(lib.constant(t)), np.cos(X) * Y * t)
    # Results that depend on some arguments only, or on none.
    out, push = func.linearize(lambda v, w: (v * v, w * 3, y * 1), x, y)
    equal(lib, out, (X * X, 3 * Y, Y))
    equal(lib, push(y, x), (2 * X * Y, 3 * X, np.zeros(2)))
    leaf = lib.tensor(X)
    out, push = func.linearize(lambda v: v * v * v, leaf)
    equal(lib, push(y), 3 * X**2 * Y)


@contract("DER-22")
def arguments_of_jacobians(lib: Any) -> None:
    func = lib.module("func")
    x, y = lib.constant(X), lib.constant(Y)
    f = lambda x, y: {"product": x * y, "sum": lib.xp.sum(x * x)}  # noqa: E731
    by_x, by_y = {"product": np.diag(Y), "sum": 2 * X}, {"product": np.diag(X), "sum": np.zeros(2)}
    for transform in (func.jacrev, func.jacfwd):
        with lib.case(transform.__name__):
            equal(lib, transform(f)(x, y), by_x)
            equal(lib, transform(f, argnums=1)(x, y), by_y)
            both = transform(f, argnums=(1, 0))(x, y)
            equal(lib, both, {name: (by_y[name], by_x[name]) for name in by_x})
            found, aux = transform(lambda x, y: (x * y, x + 1), has_aux=True)(x, y)
            equal(lib, (found, aux), (np.diag(Y), X + 1))
            # NB: PyTorch's `jacfwd` has no `chunk_size`.
            for size in () if lib.oracle and transform is func.jacfwd else (1, 2, 3, 7):
                with lib.case(size):
                    equal(lib, transform(lambda x: x * x * x, chunk_size=size)(lib.constant([1.0, 2.0, 3.0])), np.diag([3.0, 12.0, 27.0]))
            row = np.asarray([0.8, 1.4, 0.5])
            for name, (g, wanted) in {
                "a part": (lambda v: (v * v)[1:], np.diag(2 * row)[1:]),
                "of a part": (lambda v: v[:2] * 3, 3 * np.eye(2, 3)),
                "with a step": (lambda v: v[::2] ** 2, np.diag(2 * row)[::2]),
                "of two parts": (lambda v: v[1:] * v[:-1], np.diag(row[1:]) @ np.eye(2, 3) + np.diag(row[:-1]) @ np.eye(2, 3, 1)),
                "joined": (lambda v: lib.xp.concat([v[1:] * 3, v[:1]]), np.roll(np.diag([1.0, 3.0, 3.0]), -1, 0)),
            }.items():
                with lib.case(name):
                    equal(lib, transform(g)(lib.constant(row)), wanted)
            leaf = lib.tensor(X)
            matrix = transform(lambda v: v * v * v)(leaf)
            equal(lib, lib.grad(lib.xp.sum(matrix), leaf)[0], 6 * X)
    equal(lib, func.jacrev(func.jacfwd(lambda v: lib.xp.sum(v * v * v)))(x), np.diag(6 * X))
    equal(lib, func.jacfwd(func.jacrev(lambda v: lib.xp.sum(v * v * v)))(x), np.diag(6 * X))
    equal(
        lib,
        func.hessian(cubic(lib), argnums=(0, 1))(x, y),
        ((np.diag(6 * X * Y), np.diag(3 * X**2)), (np.diag(3 * X**2), np.zeros((2, 2)))),
    )


def check_batches_of_keys(lib: Any, vmap: Any, m: Any) -> None:
    """Check reads and writes by indices that differ between elements."""
    a, keys = lib.tensor(m), np.asarray([[3, 0], [1, 1], [2, 3]])
    places, rows = lib.indices(keys), np.arange(3)[:, None]
    once, counts = np.zeros(m.shape), np.zeros(m.shape)
    once[rows, keys] = 1
    np.add.at(counts, (np.broadcast_to(rows, keys.shape), keys), 1)
    found = vmap(lambda r, i: r[i])(a, places)
    equal(lib, found, m[rows, keys])
    equal(lib, lib.grad(lib.xp.sum(found), a)[0], counts)
    equal(lib, vmap(lambda r, i: lib.xp.take(r, i, axis=0) * 2)(a, places), 2 * m[rows, keys])
    shared = lib.tensor(m[0])
    found = vmap(lambda i: shared[i])(places)
    equal(lib, found, m[0][keys])
    equal(lib, lib.grad(lib.xp.sum(found), shared)[0], counts.sum(0))

    def written(r: Any, i: Any) -> Any:
        y = r * 1
        y[i] = lib.constant([[5.0, 5.0]])[0] if lib.oracle else lib.constant([[5.0, 5.0]])  # xpgrad accepts an additional axis of length 1
        return y

    found = vmap(written)(a, places)
    equal(lib, found, np.where(once > 0, 5.0, m))
    equal(lib, lib.grad(lib.xp.sum(found), a)[0], 1 - once)
    added = m + 2 * counts
    for name, add in {
        "index_add_": lambda r, i: (r * 1).index_add_(0, i, lib.constant([2.0, 2.0])),
        "scatter_add": lambda r, i: r.scatter_add(0, i, lib.constant([2.0, 2.0])),
    }.items():
        with lib.case(name):
            found = vmap(add)(a, places)
            equal(lib, found, added)
            equal(lib, lib.grad(lib.xp.sum(found), a)[0], np.ones(m.shape))


@contract("DER-23")
def arguments_of_vmap(lib: Any) -> None:
    vmap = lib.module("func").vmap
    grad = lib.module("func").grad
    m = np.arange(12.0).reshape(3, 4) + 1
    a, w = lib.constant(m), lib.constant(np.arange(4.0))
    equal(lib, vmap(lambda r: lib.xp.sum(r))(a), m.sum(1))
    equal(lib, vmap(lambda r: lib.xp.sum(r), in_dims=1)(a), m.sum(0))
    equal(lib, vmap(lambda r: lib.xp.sum(r), in_dims=-1)(a), m.sum(0))
    equal(lib, vmap(lambda r, v: r * v, in_dims=(0, None))(a, w), m * np.arange(4.0))
    equal(lib, vmap(lambda r, v: r * v, in_dims=(1, 0))(a, w), (m * np.arange(4.0)).T)
    equal(lib, vmap(lambda r: r * 2, out_dims=1)(a), (m * 2).T)
    equal(lib, vmap(lambda r: r * 2, out_dims=-1)(a), (m * 2).T)
    equal(lib, vmap(lambda r: r * 2, out_dims=(1,))(a), (m * 2).T)
    equal(lib, vmap(lambda r: (r * 2, lib.xp.sum(r)), out_dims=(1, 0))(a), ((m * 2).T, m.sum(1)))
    equal(lib, vmap(lambda r: {"twice": r * 2, "sum": (lib.xp.sum(r),)})(a), {"twice": m * 2, "sum": (m.sum(1),)})
    equal(lib, vmap(lambda p: p["r"] * p["v"], in_dims=({"r": 0, "v": None},))({"r": a, "v": w}), m * np.arange(4.0))
    equal(lib, vmap(lambda r, k: r * k, in_dims=(0, None))(a, 3.0), m * 3)
    equal(lib, vmap(lambda r, k=1.0: r * k)(a, k=3.0), m * 3)
    equal(lib, vmap(lambda r: (w * 1, r), out_dims=(None, 0))(a), (np.arange(4.0), m))
    equal(lib, vmap(lambda r: w * 1)(a), np.broadcast_to(np.arange(4.0), (3, 4)))
    equal(lib, vmap(vmap(lambda e: e * e, in_dims=0))(a), m * m)
    equal(lib, vmap(lambda r: vmap(lambda e: e * lib.xp.sum(r))(r))(a), m * m.sum(1, keepdims=True))
    equal(lib, vmap(lambda r: vmap(lambda e: r * e)(w))(a), m[:, None, :] * np.arange(4.0)[:, None])
    for size in (1, 2, 3, 5):
        with lib.case(size):
            equal(lib, vmap(lambda r: (lib.xp.sum(r), r * 2), chunk_size=size, out_dims=(0, 1))(a), (m.sum(1), (m * 2).T))
    # A Tensor created inside is the same for all elements.
    equal(lib, vmap(lambda r: r * lib.constant([1.0, 2.0, 3.0, 4.0]) + lib.xp.ones(4))(a), m * [1.0, 2.0, 3.0, 4.0] + 1)
    equal(lib, vmap(lambda r: r[lib.xp.argmax(r)] + r[lib.xp.arange(2)])(a), m[:, -1:] + m[:, :2])
    equal(lib, vmap(grad(lambda r: lib.xp.sum(r * r * r)))(a), 3 * m**2)
    equal(lib, grad(lambda x: lib.xp.sum(vmap(lambda r: lib.xp.sum(r * r) * r)(x)))(a),
          (m**2).sum(1, keepdims=True) + 2 * m * m.sum(1, keepdims=True))  # fmt: skip
    # Tangents that differ between elements, of a value that all share.
    jvp = lib.module("func").jvp
    equal(lib, vmap(lambda t: jvp(lambda v: v * v * v, (w,), (t,))[1])(a), 3 * np.arange(4.0) ** 2 * m)
    equal(lib, vmap(lambda t: grad(lambda v: lib.xp.sum(jvp(lambda u: u * u * u, (v,), (t,))[1]))(w))(a), 6 * np.arange(4.0) * m)
    leaf = lib.tensor(m)
    equal(
        lib, lib.grad(lib.xp.sum(vmap(lambda r: r * lib.xp.sum(r))(leaf)), leaf)[0], 2 * np.broadcast_to(m.sum(1, keepdims=True), m.shape)
    )
    with lib.ns.no_grad():
        assert not vmap(lambda r: r * 2)(leaf).requires_grad
    check_batches_of_keys(lib, vmap, m)
    x_keys.check_keys_in_batches(lib)
    # The attributes of an element are those of a single element.
    seen: list[Any] = []

    def look(r: Any) -> Any:
        seen.append((tuple(r.shape), r.ndim, r.dtype == a.dtype))
        return r

    vmap(look)(a)
    assert seen == [((4,), 1, True)]
    equal(lib, vmap(lambda r: lib.xp.expand_dims(r, axis=-1))(a), m[:, :, None])
    equal(lib, vmap(lib.module("func").jacfwd(lambda r: r * r))(a), np.stack([np.diag(2 * r) for r in m]))
    equal(lib, vmap(lib.module("func").jacrev(lambda r: r * r))(a), np.stack([np.diag(2 * r) for r in m]))
    # Cotangents that are elements of a batch inside of another batch, and second derivatives in a batch.
    vjp, hessian, jacrev = (getattr(lib.module("func"), name) for name in ("vjp", "hessian", "jacrev"))
    diagonals = np.stack([np.diag(3 * r**2) for r in m])
    equal(lib, vmap(lambda r: vmap(lambda t: vjp(lambda v: v * v * v, r)[1](t)[0])(lib.constant(np.eye(4))))(a), diagonals)

    def scaled(r: Any) -> Any:
        pull = vjp(lambda v: v * v * v, r)[1]
        return vmap(lambda t: pull(t * r)[0])(lib.constant(np.eye(4)))

    equal(lib, vmap(scaled)(a), diagonals * m[:, None, :])
    equal(lib, vmap(hessian(lambda r: lib.xp.sum(r * r * r * r) * 0.25))(a), diagonals)
    third = np.zeros((3, 4, 4, 4))
    third[:, range(4), range(4), range(4)] = 6 * m
    equal(lib, vmap(jacrev(jacrev(lambda r: r * r * r)))(a), third)
    # The dtypes are those of the same operations outside a batch.
    whole = lib.constant([1, 2, 3], dtype=lib.index)
    for name, f in {
        "number": lambda v: v + 0.5, "comparison": lambda v: v > 1.5, "whole": lambda v: v * 2,
        "choice": lambda v: lib.xp.where(v > 1, v * 1.0, 0.5), "sum": lib.xp.sum,
    }.items():  # fmt: skip
        with lib.case(name):
            inside, outside = vmap(f)(whole), lib.xp.stack([f(whole[i]) for i in range(3)])
            assert inside.dtype == outside.dtype
            equal(lib, inside, lib.value(outside))
