"""Group X: the derivatives of every function, in every mode, against differences of NumPy's results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.functions import Case, Reference, as_list, axis_cases, cases, central_differences, is_complex, scalar_loss

#: The step of second differences, whose rounding error is that of the values divided by the square of the step.
WIDE_STEP = 2e-4


def exact(lib: Any) -> float:
    """Return the tolerance for comparing two ways to compute the same."""
    return 2e-4 if lib.real == "float32" else 1e-9


def rough(lib: Any) -> float:
    """Return the tolerance for a comparison with finite differences."""
    return 5e-3 if lib.real == "float32" else 1e-6


def close(lib: Any, found: Any, expected: Any, tolerance: float, scale: float = 1.0) -> None:
    """Assert equality up to `tolerance`, relative to the largest expected value or to `scale`."""
    values = found if isinstance(found, (float, np.ndarray)) else lib.value(found)
    expected = np.asarray(expected)
    assert np.shape(values) == expected.shape, f"shape {np.shape(values)}, expected {expected.shape}"
    near = tolerance * max(1.0, scale, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=near)


def direction(x: np.ndarray[Any, Any], start: float) -> np.ndarray[Any, Any]:
    """Return fixed numbers between -1 and 1 that differ from element to element."""
    count = np.arange(x.size).reshape(x.shape)
    real = np.cos(start + count)
    return real + 0.7j * np.sin(start + 1.3 * count) if x.dtype.kind == "c" else real


def as_tensor(lib: Any, x: np.ndarray[Any, Any], rg: bool = True) -> Any:
    """Return an operand as a Tensor."""
    return lib.tensor(x, rg, lib.complex if x.dtype.kind == "c" else lib.real)


def inner(g: Any, d: Any) -> float:
    """Return the derivative along a direction from a gradient in PyTorch's convention, dL/dx + i dL/dy."""
    return float(np.sum(np.real(g) * np.real(d)) + np.sum(np.imag(g) * np.imag(d)))


def value_of(lib: Any, g: Any) -> Any:
    """Return a gradient's values, or 0 if there is no gradient."""
    return 0.0 if g is None else lib.value(g)


def loss_at(case: Case, points: Sequence[Any]) -> float:
    return float(scalar_loss(Reference, case.call(Reference, *points)))


def slope(case: Case, points: Sequence[Any], i: int, d: Any) -> float:
    """Return the derivative of NumPy's loss along a direction in one operand, by central differences."""
    (found,) = central_differences(lambda lib, *operands: scalar_loss(lib, case.call(lib, *operands)), points, i, d)
    return float(found)


def second_derivative(case: Case, points: Sequence[Any], ds: Sequence[Any], i: int, e: Any) -> float:
    """Return the second derivative along directions in all operands and along a direction in the i-th."""
    h = WIDE_STEP
    ends = [
        s * t * loss_at(case, [p + s * h * d + (t * h * e if j == i else 0.0) for j, (p, d) in enumerate(zip(points, ds, strict=True))])
        for s, t in itertools.product((1, -1), repeat=2)
    ]
    return sum(ends) / (4 * h * h)


def kinds(lib: Any, batched: bool = False) -> Any:
    """Yield every case with real operands, and again with complex ones if it takes them."""
    for name, case in cases(lib, batched=batched):
        yield name, case, case.arrays()
    if lib.capabilities["complex"]:
        for name, case in cases(lib, complex_too=True, batched=batched):
            yield f"{name}, complex", case, case.arrays(True)


@contract("DER-01")
def values(lib: Any) -> None:
    for name, case, points in kinds(lib):
        with lib.case(name), np.errstate(all="ignore"):
            found = as_list(case.call(lib, *(as_tensor(lib, p) for p in points)))
            expected = as_list(case.call(Reference, *points))
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                close(lib, a, b, exact(lib))
                assert is_complex(a) == is_complex(b)
    # The cases come from the library's own tables: none of their kinds may be missing.
    assert {"sum, all", "squeeze"} <= set(axis_cases())


@contract("DER-02")
def first_derivatives(lib: Any) -> None:
    for name, case, points in kinds(lib):
        with lib.case(name), np.errstate(all="ignore"):
            whole = [as_tensor(lib, p) for p in points]
            loss = scalar_loss(lib, case.call(lib, *whole))
            together = lib.grad(loss, whole, allow_unused=True)
            for i, p in enumerate(points):
                # Only one operand requires grad at a time, so other values are saved.
                xs = [as_tensor(lib, q, j == i) for j, q in enumerate(points)]
                (g,) = lib.grad(scalar_loss(lib, case.call(lib, *xs)), [xs[i]], allow_unused=True)
                assert (g is None) == (together[i] is None)
                if g is not None:
                    assert tuple(g.shape) == p.shape
                    assert g.dtype == xs[i].dtype
                    close(lib, together[i], lib.value(g), exact(lib))
                d = direction(p, 3.0 + i)
                close(lib, inner(value_of(lib, g), d), slope(case, points, i, d), rough(lib), abs(loss_at(case, points)))
                if g is not None:
                    check_shared_gradients(lib, case, points, i)
                    with lib.graph.saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v):
                        loss = scalar_loss(lib, case.call(lib, *xs))
                    close(lib, lib.grad(loss, [xs[i]])[0], lib.value(g), exact(lib))


def check_shared_gradients(lib: Any, case: Case, points: Sequence[Any], i: int) -> None:
    """Check that a gradient used in several places is not overwritten, neither before nor after the function."""
    xs = [as_tensor(lib, p, j == i) for j, p in enumerate(points)]
    x, beside = xs[i], as_tensor(lib, points[i])
    xs[i] = a = x * 1.0
    earlier, b = a * 1.0, beside * 1.0
    outs = [y for y in as_list(case.call(lib, *xs)) if y.requires_grad]
    partners = [as_tensor(lib, np.zeros(tuple(y.shape), "complex128" if is_complex(y) else "float64")) for y in outs]
    roots = [a + b, *(y + c * 1.0 for y, c in zip(outs, partners, strict=True)), earlier]
    seeds = [direction(np.zeros(tuple(r.shape), "complex128" if is_complex(r) else "float64"), 2.0 + k) for k, r in enumerate(roots)]
    given = [as_tensor(lib, s, False) for s in seeds]
    kept = [lib.value(s) for s in given]
    alone = lib.value(lib.grad(outs, [x], given[1:-1], retain_graph=True)[0])
    g, *others = lib.grad(roots, [x, beside, *partners], given)
    close(lib, g, alone + seeds[0] + seeds[-1], exact(lib))
    for found, seed in zip(others, seeds, strict=False):
        close(lib, found, seed, exact(lib))
    for tensor, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(lib.value(tensor), before)


@contract("DER-03")
def second_derivatives(lib: Any) -> None:
    for name, case, points in kinds(lib):
        with lib.case(name), np.errstate(all="ignore"):
            xs = [as_tensor(lib, p) for p in points]
            plain = lib.grad(scalar_loss(lib, case.call(lib, *xs)), xs, allow_unused=True)
            gs = lib.grad(scalar_loss(lib, case.call(lib, *xs)), xs, create_graph=True, allow_unused=True)
            ds = [direction(p, 3.0 + i) for i, p in enumerate(points)]
            total: Any = 0.0
            for g, h, d in zip(gs, plain, ds, strict=True):
                assert (g is None) == (h is None)
                if g is None:
                    continue
                close(lib, g, lib.value(h), exact(lib))
                for part, weight in [(lib.xp.real(g), d.real), (lib.xp.imag(g), d.imag)] if is_complex(g) else [(g, d)]:
                    total = total + lib.xp.sum(part * lib.constant(weight))
            again: Sequence[Any] = [None] * len(xs)
            if getattr(total, "requires_grad", False):
                again = lib.grad(total, xs, allow_unused=True)
            scale = abs(loss_at(case, points))
            for i, p in enumerate(points):
                e = direction(p, 5.0 + i)
                close(lib, inner(value_of(lib, again[i]), e), second_derivative(case, points, ds, i, e), 20 * rough(lib), scale)

    check_third_derivatives(lib)


#: Functions of a matrix, and the third derivative of each along a direction.
CUBES: dict[str, tuple[Any, Any]] = {
    "det": (lambda lib, x: lib.xp.linalg.det(x), lambda x, d: 6 * np.linalg.det(d) if len(x) == 3 else 0.0),
    "inv": (
        lambda lib, x: lib.xp.linalg.inv(x),
        lambda x, d: -6 * np.linalg.matrix_power(np.linalg.inv(x) @ d, 3) @ np.linalg.inv(x),
    ),
    "matrix_power": (lambda lib, x: lib.xp.linalg.matrix_power(x, 3), lambda x, d: 6 * d @ d @ d),
    "prod": (lambda lib, x: lib.xp.prod(x[0]) * x[1], lambda x, d: third_of_products(x, d)),
}


def third_of_products(x: Any, d: Any) -> Any:
    """Return the third derivative of the first row's product times the second row, by the coefficients of polynomials."""
    polynomials = [np.poly1d([s, v]) for s, v in zip(d[0], x[0], strict=True)]
    whole = polynomials[0]
    for p in polynomials[1:]:
        whole = whole * p
    return np.asarray([6 * (whole * np.poly1d([s, v])).coeffs[::-1][3] for s, v in zip(d[1], x[1], strict=True)])


def check_third_derivatives(lib: Any) -> None:
    """Compare third derivatives with closed formulas."""
    for n, (name, (ours, expected)) in itertools.product((2, 3), CUBES.items()):
        if name == "prod" and n == 2:
            continue
        with lib.case((name, n)):
            a = np.eye(n) + 0.3 * direction(np.zeros((n, n)), 1.0)
            d = direction(np.zeros((n, n)), 2.0)
            t = lib.tensor(0.0)
            out = ours(lib, lib.constant(a) + t * lib.constant(d))
            weight = np.ones(tuple(out.shape))
            g = lib.xp.sum(out * lib.constant(weight * 0.7))
            for _ in range(3):
                (g,) = lib.grad(g, t, create_graph=True, allow_unused=True) if getattr(g, "requires_grad", False) else (g * 0.0,)
            close(lib, g, np.asarray(0.7 * np.sum(expected(a, d))), exact(lib))


@contract("DER-04")
def tangents(lib: Any) -> None:
    fw = lib.module("autograd.forward_ad")
    for name, case, points in kinds(lib):
        ds = [direction(p, 3.0 + i) for i, p in enumerate(points)]
        with lib.case(name), np.errstate(all="ignore"):
            expected = [central_differences(case.call, points, i, d) for i, d in enumerate(ds)]
            chosen = [{i} for i in range(len(points))] + ([set(range(len(points)))] if len(points) > 1 else [])
            for places in chosen:
                with fw.dual_level():
                    xs = [as_tensor(lib, p, False) for p in points]
                    duals = [
                        fw.make_dual(x, as_tensor(lib, d, False)) if i in places else x for i, (x, d) in enumerate(zip(xs, ds, strict=True))
                    ]
                    for k, y in enumerate(as_list(case.call(lib, *duals))):
                        tangent = fw.unpack_dual(y).tangent
                        wanted = sum(expected[i][k] for i in places)
                        if tangent is None:
                            close(lib, np.zeros(np.shape(wanted)), wanted, rough(lib))
                        else:
                            close(lib, tangent, wanted, rough(lib))
            if not lib.oracle:
                check_tangent_dtypes(lib, case, points, ds, expected)


def check_tangent_dtypes(lib: Any, case: Case, points: Sequence[Any], ds: Sequence[Any], expected: Sequence[Any]) -> None:
    """Check tangents of another dtype than their primals, with and without recording: results have tangents of their own dtype."""
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level(), lib.ns.no_grad():
        duals = []
        for p, d in zip(points, ds, strict=True):
            narrow = lib.narrow if p.dtype.kind == "f" else "complex64"
            duals.append(fw.make_dual(as_tensor(lib, p), lib.constant(d, narrow)))
        outs = as_list(case.call(lib, *duals))
        assert not lib.ns.is_grad_enabled()
        for k, y in enumerate(outs):
            assert not y.requires_grad
            tangent = fw.unpack_dual(y).tangent
            wanted = np.asarray(sum(rows[k] for rows in expected))
            if tangent is not None:
                # All results but views have a tangent that nothing else shares, so that it may be written to.
                assert y._is_view() or any(y is d for d in duals) or all(tangent is not fw.unpack_dual(d).tangent for d in duals)
                assert tangent.dtype == y.dtype or y._is_view()  # the tangent of a view is a view of the tangent
                close(lib, tangent, wanted, max(rough(lib), 1e-5 if lib.narrow == "float32" else 2e-2), 10.0)


@contract("DER-05")
def tangents_of_gradients(lib: Any) -> None:
    fw = lib.module("autograd.forward_ad")
    for name, case, points in kinds(lib):
        ds = [direction(p, 3.0 + i) for i, p in enumerate(points)]
        with lib.case(name), np.errstate(all="ignore"), fw.dual_level():
            duals = [fw.make_dual(as_tensor(lib, p), as_tensor(lib, d, False)) for p, d in zip(points, ds, strict=True)]
            gs = lib.grad(scalar_loss(lib, case.call(lib, *duals)), duals, create_graph=True, allow_unused=True)
            scale = abs(loss_at(case, points))
            for i, p in enumerate(points):
                e = direction(p, 5.0 + i)
                tangent = None if gs[i] is None else fw.unpack_dual(gs[i]).tangent
                close(lib, inner(value_of(lib, tangent), e), second_derivative(case, points, ds, i, e), 20 * rough(lib), scale)


#: Factors for the elements of a batch, so close to 1 that no operand leaves its domain.
FACTORS = (1.0, 0.93, 1.06)


def stack_operands(points: Sequence[Any], mask: Sequence[bool]) -> tuple[list[Any], tuple[int | None, ...]]:
    """Stack the operands that the mask selects, along axes in several positions, and return them with these axes."""
    dims = tuple((k % (p.ndim + 1)) if m else None for k, (p, m) in enumerate(zip(points, mask, strict=True), start=len(points) % 2))
    return [p if d is None else np.stack([p * f for f in FACTORS], axis=d) for p, d in zip(points, dims, strict=True)], dims


def element(x: Any, dim: int | None, b: int) -> Any:
    return x if dim is None else x[(slice(None),) * dim + (b,)]


@contract("DER-06")
def batches(lib: Any) -> None:
    vmap = lib.module("func").vmap
    once = lib.oracle or lib.capabilities["lazy"] or lib.capabilities["jit"]  # these targets are slow
    for name, case, points in kinds(lib, batched=True):
        if len(points) == 2 and not once:
            with lib.case((name, "twice")), np.errstate(all="ignore"):
                check_nested_batches(lib, case, points)
        for mask in itertools.product((True, False), repeat=len(points)):
            if not any(mask):
                continue
            arrays, dims = stack_operands(points, mask)
            with lib.case((name, dims)), np.errstate(all="ignore"):
                xs = [as_tensor(lib, a) for a in arrays]
                out = as_list(vmap(lambda *a, case=case: tuple(as_list(case.call(lib, *a))), in_dims=dims)(*xs))
                rows = [as_list(case.call(Reference, *(element(a, d, b) for a, d in zip(arrays, dims, strict=True)))) for b in range(3)]
                for y, column in zip(out, zip(*rows, strict=True), strict=True):
                    close(lib, y, np.stack(column), exact(lib))
                # The gradients of a batch, and a batch of gradients.
                loops = [lib.grad(sum_of_losses(lib, case, xs, dims), xs, allow_unused=True)]
                inside = vmap(lambda *a, case=case: scalar_loss(lib, case.call(lib, *a)), in_dims=dims)(*xs)
                assert tuple(inside.shape) == (3,)
                loops.append(lib.grad(lib.xp.sum(inside), xs, allow_unused=True))
                for a, b in zip(*loops, strict=True):
                    close(lib, value_of(lib, b) + np.zeros(np.shape(value_of(lib, a))), value_of(lib, a), exact(lib))


def check_nested_batches(lib: Any, case: Case, points: Sequence[Any]) -> None:
    """Check a function of two operands from two nested batches, for all pairs of elements."""
    vmap = lib.module("func").vmap
    arrays = [np.stack([p * f for f in FACTORS[:2]]) for p in points]
    for first in (0, 1):
        xs = [as_tensor(lib, a) for a in arrays]

        def one(x: Any, y: Any, first: int = first) -> Any:
            return tuple(as_list(case.call(lib, *((x, y) if first == 0 else (y, x)))))

        def inner(x: Any, first: int = first, xs: Any = xs, one: Any = one) -> Any:
            return vmap(one, in_dims=(None, 0))(x, xs[1 - first])

        found = as_list(vmap(inner)(xs[first]))
        pairs = [[(p, q) if first == 0 else (q, p) for q in arrays[1 - first]] for p in arrays[first]]
        table = [[as_list(case.call(Reference, *pair)) for pair in row] for row in pairs]
        for k, y in enumerate(found):
            close(lib, y, np.stack([np.stack([cell[k] for cell in row]) for row in table]), exact(lib))
        together = lib.grad(scalar_loss(lib, [lib.xp.sum(y, axis=(0, 1)) for y in found]), xs, allow_unused=True)
        sums: Any = [0.0] * len(found)
        for i, j in itertools.product((0, 1), repeat=2):
            for k, y in enumerate(as_list(case.call(lib, xs[0][i], xs[1][j]))):
                sums[k] = sums[k] + y
        for a, b in zip(together, lib.grad(scalar_loss(lib, sums), xs, allow_unused=True), strict=True):
            close(lib, value_of(lib, a) + np.zeros(np.shape(value_of(lib, b))), value_of(lib, b), exact(lib), 10.0)


def sum_of_losses(lib: Any, case: Case, xs: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Return the sum of the losses of a batch's elements, computed in a loop."""
    total: Any = 0.0
    for b in range(3):
        total = total + scalar_loss(lib, case.call(lib, *(element(x, d, b) for x, d in zip(xs, dims, strict=True))))
    return total


@contract("DER-07")
def batches_of_gradients(lib: Any) -> None:
    for name, case, points in kinds(lib):
        with lib.case(name), np.errstate(all="ignore"):
            # Elementwise operations before and after the function, whose Jacobians are diagonal.
            xs = [as_tensor(lib, p) for p in points]
            out = [y * 1.5 for y in as_list(case.call(lib, *(lib.xp.negative(-x) for x in xs)))]
            out = [y for y in out if y.requires_grad]
            if not out:
                continue
            for y in out:
                n = int(np.prod(tuple(y.shape)))
                if not 0 < n <= 40:  # an empty batch is refused (BAT-02)
                    continue
                eye = as_tensor(lib, np.eye(n).reshape(n, *tuple(y.shape)).astype("complex128" if is_complex(y) else "float64"), False)
                found = lib.grad(y, xs, eye, is_grads_batched=True, retain_graph=True, allow_unused=True)
                rows = [lib.grad(y, xs, eye[k], retain_graph=True, allow_unused=True) for k in range(n)]
                for i, g in enumerate(found):
                    column = [row[i] for row in rows]
                    assert (g is None) == (column[0] is None)
                    if g is not None:
                        close(lib, g, np.stack([lib.value(r) for r in column]), exact(lib))
            check_gradients_shared_by_a_batch(lib, case, points)


def check_gradients_shared_by_a_batch(lib: Any, case: Case, points: Sequence[Any]) -> None:
    """Check gradients that all elements of a batch share, because a hook replaces them with one gradient."""
    for create in (False, True):
        xs = [as_tensor(lib, p) for p in points]
        outs = [y for y in as_list(case.call(lib, *(x * 1.0 for x in xs))) if y.requires_grad]
        if any(0 in y.shape for y in outs):
            return
        kinds = ["complex128" if is_complex(y) else "float64" for y in outs]
        seeds = [
            as_tensor(lib, direction(np.zeros(tuple(y.shape), k), 2.0 + i), False) for i, (y, k) in enumerate(zip(outs, kinds, strict=True))
        ]
        alone = lib.grad(outs, xs, seeds, retain_graph=True, allow_unused=True)
        roots = [y * 1.5 for y in outs]
        for y, seed in zip(outs, seeds, strict=True):
            y.register_hook(lambda g, seed=seed: seed * 1.0)
        batch = [as_tensor(lib, np.ones((2, *y.shape), k), False) for y, k in zip(outs, kinds, strict=True)]
        found = lib.grad(roots, xs, batch, is_grads_batched=True, allow_unused=True, create_graph=create)
        for a, b in zip(found, alone, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                close(lib, a, np.stack([lib.value(b)] * 2), exact(lib))


def split_complex(ys: Sequence[Any], xp: Any = np) -> list[Any]:
    """Split complex arrays into their real and imaginary parts."""
    return [part for y in ys for part in ([xp.real(y), xp.imag(y)] if is_complex(y) else [y])]


@contract("DER-08")
def jacobians(lib: Any) -> None:
    func = lib.module("func")
    for name, case in cases(lib, batched=True):
        points = case.arrays()
        ds = [direction(p, 3.0 + i) for i, p in enumerate(points)]
        with lib.case(name), np.errstate(all="ignore"):
            xs = [as_tensor(lib, p, False) for p in points]
            places = tuple(range(len(points)))

            def real(*a: Any, case: Case = case) -> Any:
                """Return the results, split into real parts, with elementwise operations before and after the function."""
                return tuple(part * 2 for part in split_complex(as_list(case.call(lib, *(lib.xp.negative(-x) for x in a))), lib.xp))

            outs = split_complex(as_list(case.call(Reference, *points)))
            slopes = [split_complex(central_differences(case.call, points, i, d)) for i, d in enumerate(ds)]
            for transform in ("jacrev", "jacfwd"):
                found = getattr(func, transform)(real, argnums=places)(*xs)
                for k, y in enumerate(outs):
                    for i, (p, d) in enumerate(zip(points, ds, strict=True)):
                        matrix = lib.value(found[k][i])
                        assert matrix.shape == (*y.shape, *p.shape)
                        moved = np.tensordot(matrix, d, axes=d.ndim)
                        with lib.case((transform, k, i)):
                            close(lib, moved, 2 * slopes[i][k], rough(lib))


@contract("DER-09")
def hessians(lib: Any) -> None:
    func = lib.module("func")
    for name, case in cases(lib, batched=True):
        points = case.arrays()
        if sum(p.size for p in points) > 12:
            continue
        ds = [direction(p, 3.0 + i) for i, p in enumerate(points)]
        with lib.case(name), np.errstate(all="ignore"):
            xs = [as_tensor(lib, p, False) for p in points]
            places = tuple(range(len(points)))
            scale = abs(loss_at(case, points))
            for label, outer in (("hessian", None), ("jacrev of jacrev", func.jacrev)):

                def loss(*a: Any, case: Case = case) -> Any:
                    return scalar_loss(lib, case.call(lib, *a))

                found = (func.hessian(loss, argnums=places) if outer is None else outer(func.jacrev(loss, argnums=places), argnums=places))(
                    *xs
                )
                for j, p in enumerate(points):
                    e = direction(p, 5.0 + j)
                    total = 0.0
                    for i, d in enumerate(ds):
                        block = lib.value(found[i][j])
                        assert block.shape == (*points[i].shape, *p.shape)
                        total += float(np.sum(np.tensordot(block, e, axes=e.ndim) * d))
                    with lib.case((label, j)):
                        close(lib, total, second_derivative(case, points, ds, j, e), 20 * rough(lib), scale)


#: Functions of a Tensor with two columns, of a value of the indexed shape, and of an index, with their NumPy equivalents.
INDEXED: dict[str, tuple[Any, Any]] = {
    "x[i]": (lambda lib, x, v, i: x[i], lambda x, v, i: x[i]),
    "x[:, i]": (lambda lib, x, v, i: lib.xp.permute_dims(x, (1, 0))[:, i], lambda x, v, i: x.T[:, i]),
    "x[i, 1]": (lambda lib, x, v, i: x[i, 1], lambda x, v, i: x[i, 1]),
    "x[i, j]": (lambda lib, x, v, i: x[i, i * 0], lambda x, v, i: x[i, 0]),
    "y[i] = v": (lambda lib, x, v, i: put(x, i, v), lambda x, v, i: put(x, i, v)),
    "y[:, i] = v": (
        lambda lib, x, v, i: put(lib.xp.permute_dims(x, (1, 0)), (slice(None), i), lib.xp.permute_dims(v, (1, 0))),
        lambda x, v, i: put(x.T, (slice(None), i), v.T),
    ),
    "take": (lambda lib, x, v, i: lib.xp.take(x, i, axis=0), lambda x, v, i: x[i]),
    "take_along_axis": (
        lambda lib, x, v, i: lib.xp.take_along_axis(x, lib.xp.stack([i, i], axis=1), axis=0),
        lambda x, v, i: x[i],
    ),
    "index_add_": (lambda lib, x, v, i: (x * 1).index_add_(0, i, v), lambda x, v, i: add_at(x, i, v)),
    "index_add_, alpha": (lambda lib, x, v, i: (x * 1).index_add_(0, i, v, alpha=2.5), lambda x, v, i: add_at(x, i, v * 2.5)),
}


def put(x: Any, key: Any, v: Any) -> Any:
    y = x * 1
    y[key] = v
    return y


def add_at(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    np.add.at(y, i, v)
    return y


def row_numbers(dtype: str, rows: int) -> dict[str, list[int]]:
    """Return row numbers that an index dtype can hold, counted from the front and from behind."""
    most = int(np.iinfo(dtype).max)
    found = {"forwards": [0, 3, min(rows - 1, most)]}
    if dtype.startswith("i"):
        found["backwards"] = [-1, -3, -min(rows, most + 1)]
    return found


@contract("DER-10")
def dtypes_of_indices(lib: Any) -> None:
    for dtype, rows in itertools.product(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), (100, 300)):
        # NB: in PyTorch bytes are masks, other narrow integers are no indices, and some functions take int64 only.
        if not lib.has_dtype(dtype) or (lib.oracle and dtype not in ("int32", "int64")):
            continue
        x, v = direction(np.zeros((rows, 2)), 1.0), direction(np.zeros((3, 2)), 2.0)
        for (kind, places), (name, (ours, theirs)) in itertools.product(row_numbers(dtype, rows).items(), INDEXED.items()):
            if lib.oracle and not name.startswith(("x[", "y[")) and (kind == "backwards" or dtype != "int64"):
                continue
            with lib.case((name, dtype, rows, kind)):
                i = np.asarray(places)
                xs, vs = as_tensor(lib, x), as_tensor(lib, v)
                y = ours(lib, xs, vs, lib.indices(places, dtype))
                close(lib, y, theirs(x, v, i), exact(lib))
                # Indexing is linear: the seed times the image of a direction equals the gradient times the direction.
                seed = direction(np.zeros(tuple(y.shape)), 4.0)
                gx, gv = lib.grad(y, [xs, vs], as_tensor(lib, seed, False), allow_unused=True)
                for start in (5.0, 6.0):
                    d, e = direction(x, start), direction(v, start + 0.5)
                    close(lib, inner(lib.value(gx), d), float(np.sum(seed * theirs(d, v * 0, i))), exact(lib))
                    close(lib, inner(value_of(lib, gv), e), float(np.sum(seed * theirs(x * 0, e, i))), exact(lib))
