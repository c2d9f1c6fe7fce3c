"""Group A: the roots of `backward` and their gradients."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract, unchecked
from xpgrad_conformance.strategies import broadcastable, seeds, shapes


def square(lib: Any, data: Any = (1.0, 2.0)) -> Any:
    """Return a leaf and its square."""
    x = lib.tensor(data)
    return x, x * x


@contract("BWD-01", draw={"shape": shapes(empty=True), "seed": seeds})
def chain_rule(lib: Any, shape: Any, seed: int) -> None:
    x, w, apart = lib.random(shape, seed), lib.random(shape, seed + 1), lib.random(shape, seed + 2)
    v, u = lib.value(x), lib.value(w)
    old = lib.random(shape, seed + 3, rg=False)
    before = np.array(lib.value(old))
    w.grad = old
    lib.xp.sum(lib.xp.sin(x * w) * x).backward()
    lib.equal(x.grad, np.cos(v * u) * u * v + np.sin(v * u))
    lib.equal(w.grad, before + np.cos(v * u) * v * v)
    assert apart.grad is None


@contract("BWD-02", draw={"shape": shapes(), "seed": seeds})
def roots_are_summed(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    lib.backward([lib.xp.sum(x * x), lib.xp.sum(3 * x)])
    lib.equal(x.grad, 2 * lib.value(x) + 3)


@contract("BWD-03")
def a_root_twice(lib: Any) -> None:
    x, y = square(lib, 3.0)
    lib.backward([y, y])
    lib.equal(x.grad, 12.0)


@contract("BWD-04")
def implicit_seed(lib: Any) -> None:
    for shape in [(), (1,), (1, 1)]:
        for dtype in (lib.real, lib.narrow):
            with lib.case((shape, dtype)):
                x, seen = lib.tensor(np.full(shape, 3.0), dtype=dtype), []
                y = x * x
                y.register_hook(seen.append)
                y.backward()
                lib.equal(x.grad, np.full(shape, 6.0))
                assert tuple(seen[0].shape) == shape
                assert seen[0].dtype == lib.dtype(dtype)
                lib.equal(seen[0], np.ones(shape))


@contract("BWD-05", draw={"shape": shapes().filter(lambda s: np.prod(s) > 1)})
def implicit_seed_refused(lib: Any, shape: Any) -> None:
    x = lib.tensor(np.ones(shape))
    with lib.raises(RuntimeError, "grad can be implicitly created only for scalar outputs"):
        (x * x).backward()
    assert x.grad is None


@contract("BWD-06")
def implicit_seed_refused_for_nothing(lib: Any) -> None:
    for shape in [(0,), (2, 0), (0, 1)]:
        with lib.case(shape), lib.raises(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            (lib.tensor(np.ones(shape)) * 2).backward()


@contract("BWD-07", requires="complex")
def complex_roots_need_a_gradient(lib: Any) -> None:
    z = lib.tensor(1 + 2j, dtype=lib.complex)
    with lib.raises(RuntimeError, "only for real scalar outputs"):
        (z * 2).backward()
    (z * 2).backward(lib.constant(1.0, lib.complex))
    lib.equal(z.grad, 2.0 + 0j)


@contract("BWD-08", draw={"shape": shapes(1), "seed": seeds})
def vector_jacobian_product(lib: Any, shape: Any, seed: int) -> None:
    x, w, v = lib.random(shape, seed), lib.random((shape[0], 2), seed + 1), lib.random((2, *shape[1:]), seed + 2, rg=False)
    # The root and the leaf have different shapes: y = w^T (x * x), so the gradient is 2 x * (w v).
    y = lib.xp.tensordot(lib.xp.matrix_transpose(w), x * x, axes=1)
    y.backward(v)
    lib.equal(x.grad, 2 * lib.value(x) * np.tensordot(lib.value(w), lib.value(v), axes=1))


@contract("BWD-09", draw={"pair": st.tuples(shapes(), shapes()).filter(lambda p: p[0] != p[1])})
def shapes_must_be_equal(lib: Any, pair: Any) -> None:
    for root, seed in [pair, ((2, 1), (2,)), ((), (1,)), ((1,), ()), ((2,), (1, 2)), ((2, 3), (3,))]:
        x = lib.tensor(np.ones(root))
        with lib.case((root, seed)), lib.raises(RuntimeError, "Mismatch in shape"):
            (x * 2).backward(lib.ones(*seed))
        assert x.grad is None


@contract("BWD-10")
def real_gradients_are_cast(lib: Any) -> None:
    for leaf, seed in [(lib.real, lib.narrow), (lib.narrow, lib.real)]:
        with lib.case((leaf, seed)):
            x, seen = lib.tensor([1.0, 2.0], dtype=leaf), []
            y = x * 2
            y.register_hook(lambda g, seen=seen: seen.append(g.dtype))
            y.backward(lib.constant([1.0, 3.0], dtype=seed))
            assert seen == [lib.dtype(leaf)]
            assert x.grad.dtype == lib.dtype(leaf)
            lib.equal(x.grad, [2.0, 6.0])


@contract("BWD-11")
def integer_gradients_are_cast(lib: Any) -> None:
    for leaf in (lib.real, lib.narrow):
        for seed in ("int32", "bool", "uint8"):
            with lib.case((leaf, seed)):
                x = lib.tensor([1.0, 2.0], dtype=leaf)
                (x * 2).backward(lib.constant([1, 0], dtype=seed))
                assert x.grad.dtype == lib.dtype(leaf)
                lib.equal(x.grad, [2.0, 0.0])


@contract("BWD-12", requires="complex")
def real_and_complex_do_not_mix(lib: Any) -> None:
    for root, seed in [(lib.real, lib.complex), (lib.complex, lib.real)]:
        x = lib.tensor([1.0, 2.0], dtype=root)
        with (
            lib.case((root, seed)),
            lib.raises(RuntimeError, "For complex Tensors, both grad_output and output are required to have the same dtype"),
        ):
            (x * 2).backward(lib.constant([1.0, 1.0], dtype=seed))


@contract("BWD-13")
def the_gradient_is_on_the_roots_device(lib: Any) -> None:
    g = lib.on_other_device([1.0])
    x = lib.tensor([1.0])
    with lib.raises(RuntimeError, "invalid gradient at index 0 - expected device"):
        (x * 2).backward(g)
    assert x.grad is None


@contract("BWD-14")
def a_scalar_gradient_moves(lib: Any) -> None:
    g, x = lib.on_other_device(3.0), lib.tensor(1.0)
    if lib.oracle:  # PyTorch's other device here is meta, whose Tensors have no values to move
        with lib.raises(NotImplementedError, "Cannot copy out of meta tensor"):
            (x * 2).backward(g)
        return
    (x * 2).backward(g)
    lib.equal(x.grad, 6.0)


@contract("BWD-15")
def the_gradients_history_is_dropped(lib: Any) -> None:
    x, w = lib.tensor(2.0), lib.tensor(5.0)
    (x * x).backward(w * 3)
    assert w.grad is None
    assert not x.grad.requires_grad
    assert x.grad.grad_fn is None
    lib.equal(x.grad, 60.0)


@contract("BWD-16")
def the_gradients_history_is_kept(lib: Any) -> None:
    x, w = lib.tensor(2.0), lib.tensor(5.0)
    (x * x).backward(w * 3, create_graph=True)
    assert x.grad.requires_grad
    lib.equal(lib.grad(x.grad, w)[0], 12.0)
    x.grad = None


@contract("BWD-17")
def the_callers_gradient_is_left_alone(lib: Any) -> None:
    for name, program in [("leaf", lambda x: x), ("x + 0", lambda x: x + 0), ("clone", lambda x: x.clone())]:
        with lib.case(name):
            x, g = lib.tensor([1.0, 2.0]), lib.constant([5.0, 7.0])
            program(x).backward(g)
            assert x.grad is not g
            if lib.capabilities["mutable"]:
                assert not lib.same_memory(x.grad, g)
            program(x).backward(g)
            lib.equal(g, [5.0, 7.0])
            lib.equal(x.grad, [10.0, 14.0])


@contract("BWD-18")
def none_for_single_elements(lib: Any) -> None:
    x, y = square(lib)
    lib.backward([lib.xp.sum(x), y], [None, lib.constant([1.0, 1.0])])
    lib.equal(x.grad, [3.0, 5.0])
    x, y = square(lib, 3.0)
    y.backward(gradient=None)
    lib.equal(x.grad, 6.0)


@contract("BWD-19")
def roots_without_history(lib: Any) -> None:
    for gradient in (None, 1.0):
        x, y = square(lib, 2.0)
        constant = lib.constant(1.0)
        g = None if gradient is None else lib.constant(gradient)
        with lib.case(gradient):
            with lib.raises(RuntimeError, "element 1 of tensors does not require grad and does not have a grad_fn"):
                lib.backward([y, constant], [g, g])
            with lib.raises(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
                lib.backward([constant, y], [g, g])
            assert x.grad is None


@contract("BWD-20")
def too_few_gradients(lib: Any) -> None:
    x, y = square(lib, 2.0)
    with lib.raises(RuntimeError, "got 2 tensors and 1 gradients"):
        lib.backward([y, y], [lib.constant(1.0)])
    assert x.grad is None


@contract("BWD-21")
def too_many_gradients(lib: Any) -> None:
    x, y = square(lib, 2.0)
    with lib.raises(RuntimeError, "got 1 tensors and 2 gradients"):
        lib.backward([y], [None, None])
    assert x.grad is None


@contract("BWD-22")
def bare_tensors(lib: Any) -> None:
    x, y = square(lib, 2.0)
    z = lib.tensor(3.0)
    lib.backward(y * z, lib.constant(1.0), inputs=x)
    lib.equal(x.grad, 12.0)
    assert z.grad is None
    with lib.raises(RuntimeError, "got 2 tensors and 1 gradients"):
        lib.backward([y, y], lib.constant(1.0))


@contract("BWD-23")
def no_gradients_at_all(lib: Any) -> None:
    x = lib.tensor(2.0)
    lib.backward([x * x, 3 * x])
    lib.equal(x.grad, 7.0)


@contract("BWD-24")
def gradients_are_tensors(lib: Any) -> None:
    for wrong in (1.0, np.ones(()), "1"):
        x, y = square(lib, 2.0)
        with lib.case(wrong), lib.raises(TypeError, "gradients can be either ", "Tensors or None"):
            lib.backward([y], [wrong])
        assert x.grad is None


@contract("BWD-25")
def a_bare_number_is_no_gradient(lib: Any) -> None:
    _, y = square(lib, 2.0)
    with lib.raises(TypeError, "'float' object"):
        y.backward(1.0)


@contract("BWD-26")
def iterables(lib: Any) -> None:
    x, y = square(lib)
    y.backward([lib.ones(2)], retain_graph=True)
    lib.backward((t for t in (y,)), (g for g in (lib.ones(2),)))
    lib.equal(x.grad, [4.0, 8.0])


@contract("BWD-27")
def roots_are_tensors(lib: Any) -> None:
    for wrong, error in [(3.0, TypeError), ([3.0], AssertionError if lib.oracle else TypeError)]:
        with lib.case(wrong), lib.raises(error):
            lib.backward(wrong)


@contract("BWD-28")
def no_roots(lib: Any) -> None:
    assert lib.backward([]) is None


@contract("BWD-29")
def a_leaf_as_root(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    for n in (1, 2, 3):
        x.backward(lib.constant([5.0, 7.0]))
        lib.equal(x.grad, [5.0 * n, 7.0 * n])


@contract("BWD-30")
def unrecorded_results_are_no_roots(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    with lib.ns.no_grad():
        quiet = lib.xp.sum(x)
    integers = lib.xp.sum(lib.cast(x, "int32"))
    for name, y in [("no_grad", quiet), ("comparison", x[0] > 1), ("argmax", lib.xp.argmax(x)), ("integer", integers)]:
        with lib.case(name):
            assert not y.requires_grad
            with lib.raises(RuntimeError, "does not require grad and does not have a grad_fn"):
                y.backward()


@contract("BWD-31")
def nothing_is_returned(lib: Any) -> None:
    x, y = square(lib, 2.0)
    assert lib.backward([y], retain_graph=True) is None
    assert y.backward() is None
    lib.equal(x.grad, 8.0)


@contract("BWD-32")
def grad_variables(lib: Any) -> None:
    x, y = square(lib)
    with lib.warns(FutureWarning, "`grad_variables` is deprecated"):
        lib.backward(y, grad_variables=[lib.ones(2)])
    lib.equal(x.grad, [2.0, 4.0])
    with lib.warns(FutureWarning, "`grad_variables`"), lib.raises(RuntimeError, "both passed"):
        lib.backward(y, [lib.ones(2)], grad_variables=[lib.ones(2)])


@contract("BWD-33")
def signatures(lib: Any) -> None:
    function = list(inspect.signature(lib.backward).parameters)
    assert function == ["tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"]
    method = list(inspect.signature(lib.ns.Tensor.backward).parameters)
    assert method == ["self", "gradient", "retain_graph", "create_graph", "inputs"]
    x, y = square(lib)
    y.backward(lib.ones(2), True, False, [x])
    lib.backward(y, lib.ones(2), True, False, None, [x])
    lib.equal(x.grad, [4.0, 8.0])


@contract("BWD-34")
def flags(lib: Any) -> None:
    x, y = square(lib, 2.0)
    y.backward(retain_graph=1)
    y.backward(retain_graph=0)
    lib.equal(x.grad, 8.0)
    with lib.raises(TypeError, "'str' object cannot be interpreted as an integer"):
        (x * x).backward(retain_graph="yes")


@contract("BWD-35")
def dtypes_without_gradient(lib: Any) -> None:
    for dtype in ("int32", "bool", "uint8"):
        with lib.case(dtype), lib.raises(RuntimeError, "floating point and complex dtype can require gradients"):
            lib.tensor([1], dtype=dtype)
        x = lib.constant([1], dtype=dtype)
        with lib.case(dtype), lib.raises(RuntimeError, "floating point"):
            x.requires_grad_()


@contract("BWD-36")
def dtypes_with_gradient(lib: Any) -> None:
    wide = ["float64"] if lib.capabilities["float64"] else []
    plane = (["complex64"] + ["complex128"] * len(wide)) if lib.capabilities["complex"] else []
    for dtype in ["float32", *wide, *plane, *lib.half_dtypes()]:
        with lib.case(dtype):
            x = lib.tensor([1.0, 2.0], dtype=dtype)
            (x * x).backward(lib.constant([1.0, 1.0], dtype=dtype))
            assert x.grad.dtype == lib.dtype(dtype)
            assert [complex_or_real(v) for v in x.grad.tolist()] == [2.0, 4.0]


def complex_or_real(v: Any) -> Any:
    """Return the real part of a Python complex number, and any other number unchanged."""
    return v.real if isinstance(v, complex) else v


@contract("BWD-37")
def nan_and_inf_pass(lib: Any) -> None:
    x, y = square(lib)
    y.backward(lib.constant([float("nan"), float("inf")]))
    lib.equal(x.grad, [float("nan"), float("inf")])


@contract("BWD-38")
def failure_is_not_atomic(lib: Any) -> None:
    def fail(ctx: Any, g: Any) -> Any:
        raise KeyError("boo")

    a, b = lib.tensor(2.0), lib.tensor(3.0)
    early = lib.fn(lambda ctx, x: x * 2, fail).apply(b)
    late = a * a
    with lib.raises(KeyError, "boo"):
        (early + late).backward()
    lib.equal(a.grad, 4.0)
    assert b.grad is None
    with lib.raises(RuntimeError, "backward through the graph a second time"):
        late.backward()


@contract("BWD-39")
def not_inside_a_transform(lib: Any) -> None:
    func = lib.module("func")

    def f(x: Any) -> Any:
        y = lib.xp.sum(x * x)
        y.backward()
        return y

    with lib.raises(RuntimeError, "backward() called inside a functorch transform"):
        func.grad(f)(lib.constant([1.0, 2.0]))


unchecked("BWD-40", "out of scope: the Array API standard has no sparse layouts")


@contract("BWD-41", draw={"pair": broadcastable(), "seed": seeds})
def broadcasting_is_undone(lib: Any, pair: Any, seed: int) -> None:
    for one, other in [pair, ((2,), (3, 2)), ((), (3, 2)), ((1, 3, 1), (2, 3, 4)), ((1,), (1, 1))]:
        with lib.case((one, other)):
            x, y = lib.random(one, seed), lib.random(other, seed + 1)
            lib.xp.sum(x * y * y).backward()
            v, w = lib.value(x), lib.value(y)
            full = np.broadcast_shapes(one, other)
            lib.equal(x.grad, _sum_to(np.broadcast_to(w * w, full), one))
            lib.equal(y.grad, _sum_to(np.broadcast_to(2 * v * w, full), other))


def _sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes along which `shape` was broadcast."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(i for i, side in enumerate(shape) if side == 1), keepdims=True).reshape(shape)


@contract("BWD-42", draw={"key": st.lists(st.integers(0, 4), max_size=8)})
def overlapping_reads_add_up(lib: Any, key: Any) -> None:
    for places in ([0, 0, 2], key):
        x = lib.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
        lib.xp.sum(3 * x[lib.constant(np.asarray(places, dtype=np.int64), dtype=lib.index)]).backward()
        lib.equal(x.grad, 3.0 * np.bincount(places, minlength=5))
