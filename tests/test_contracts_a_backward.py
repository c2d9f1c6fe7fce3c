"""Contracts of group A: the roots of `backward` and their gradients. Each test names its contracts first in its docstring."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest


def square(lib: Any, data: Any = (1.0, 2.0)) -> Any:
    x = lib.tensor(data)
    return x, x * x


def test_chain_rule(lib: Any) -> None:
    """BWD-01, BWD-31: the gradient of a small expression, as a side effect."""
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, -1.0])
    assert ((x * w).sin() * x).sum().backward() is None
    v, u = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    lib.equal(x.grad, np.cos(v * u) * u * v + np.sin(v * u))
    lib.equal(w.grad, np.cos(v * u) * v * v)


def test_roots_are_summed(lib: Any) -> None:
    """BWD-02, BWD-23."""
    x = lib.tensor(2.0)
    lib.backward([x * x, 3 * x])
    lib.equal(x.grad, 7.0)


def test_root_twice(lib: Any) -> None:
    """BWD-03."""
    x, y = square(lib, 3.0)
    lib.backward([y, y])
    lib.equal(x.grad, 12.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_implicit_seed(lib: Any, shape: tuple[int, ...]) -> None:
    """BWD-04."""
    x = lib.tensor(np.full(shape, 3.0))
    (x * x).backward()
    lib.equal(x.grad, np.full(shape, 6.0))


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 1)])
def test_implicit_seed_refused(lib: Any, shape: tuple[int, ...]) -> None:
    """BWD-05, BWD-06."""
    x = lib.tensor(np.ones(shape))
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * x).backward()


def test_complex_needs_a_gradient(lib: Any) -> None:
    """BWD-07, CPX-09: also where the imaginary part is zero."""
    z = lib.tensor(1 + 2j, dtype="complex128")
    for y in (z * 2, z * z.conj()):
        with pytest.raises(RuntimeError, match="only for real scalar outputs"):
            y.backward()


def test_vector_jacobian_product(lib: Any) -> None:
    """BWD-08."""
    x, y = square(lib)
    y.backward(lib.const([10.0, 100.0]))
    lib.equal(x.grad, [20.0, 400.0])


@pytest.mark.parametrize(("root", "seed"), [((2, 1), (2,)), ((), (1,)), ((1,), ()), ((2,), (1, 2)), ((2, 3), (3,))])
def test_shapes_must_be_equal(lib: Any, root: Any, seed: Any) -> None:
    """BWD-09: nothing is broadcast."""
    x = lib.tensor(np.ones(root))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(lib.ones(*seed))


@pytest.mark.parametrize(("leaf", "seed"), [("float64", "float32"), ("float32", "float64"), ("float64", "int64"), ("float32", "bool")])
def test_real_dtypes_are_cast(lib: Any, leaf: str, seed: str) -> None:
    """BWD-10, BWD-11: hooks see the cast gradient."""
    x = lib.tensor([1.0, 2.0], dtype=leaf)
    y, seen = x * 2, []
    y.register_hook(lambda g: seen.append(g.dtype))
    y.backward(lib.const([1, 1], dtype=seed))
    assert seen == [getattr(lib.ns, leaf)]
    assert x.grad.dtype == getattr(lib.ns, leaf)
    lib.equal(x.grad, [2.0, 2.0])


@pytest.mark.parametrize(("root", "seed"), [("float64", "complex128"), ("complex128", "float64")])
def test_real_and_complex_do_not_mix(lib: Any, root: str, seed: str) -> None:
    """BWD-12."""
    x = lib.tensor([1.0, 2.0], dtype=root)
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are required to have the same dtype"):
        (x * 2).backward(lib.const([1.0, 1.0], dtype=seed))


def test_devices(ours: Any) -> None:
    """BWD-13, BWD-14: another device is refused, but for a 0-d gradient; the second device is a variant of NumPy."""
    ours.needs_device("numpy")
    x = ours.tensor([1.0])
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device numpy"):
        (x * 2).backward(ours.ones(1).to_device("numpy+readonly"))
    x = ours.tensor(1.0)
    (x * 2).backward(ours.const(3.0).to_device("numpy+readonly"))
    ours.equal(x.grad, 6.0)


def test_history_of_the_gradient(lib: Any) -> None:
    """BWD-15, BWD-16, GRD-29: dropped without create_graph, kept with it."""
    x, w = lib.tensor(2.0), lib.tensor(5.0)
    (x * x).backward(w * 3)
    assert w.grad is None
    assert not x.grad.requires_grad
    (g,) = lib.grad(x * x, x, w * 3, create_graph=True)
    assert g.requires_grad
    lib.equal(lib.grad(g, w)[0], 12.0)


@pytest.mark.parametrize("program", [lambda x: x, lambda x: x + 0, lambda x: x.clone()])
def test_the_callers_gradient_is_left_alone(lib: Any, program: Any) -> None:
    """BWD-17, BWD-29: never modified, never aliased; a leaf may be the root, again and again."""
    x, g = lib.tensor([1.0, 2.0]), lib.const([5.0, 7.0])
    program(x).backward(g)
    assert x.grad is not g
    assert not lib.memory(x.grad, g)
    program(x).backward(g)
    lib.equal(g, [5.0, 7.0])
    lib.equal(x.grad, [10.0, 14.0])


def test_none_among_gradients(lib: Any) -> None:
    """BWD-18."""
    x, y = square(lib)
    lib.backward([x.sum(), y], [None, lib.const([1.0, 1.0])])
    lib.equal(x.grad, [3.0, 5.0])


@pytest.mark.parametrize("gradient", [None, 1.0])
def test_roots_without_history(lib: Any, gradient: Any) -> None:
    """BWD-19, GRD-19: refused with or without a gradient, wherever they stand."""
    x, y = square(lib, 2.0)
    const = lib.const(1.0)
    g = None if gradient is None else lib.const(gradient)
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad and does not have a grad_fn"):
        lib.backward([y, const], [g, g])
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        lib.grad(const, x, g)
    assert x.grad is None


def test_unrecorded_results_are_no_roots(lib: Any) -> None:
    """BWD-30."""
    x = lib.tensor([1.0, 2.0])
    with lib.ns.no_grad():
        quiet = x.sum()
    for y in (quiet, (x > 1).sum(), x.argmax(), lib.cast(x, "int64").sum()):
        assert not y.requires_grad
        with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
            y.backward()


def test_too_few_gradients(lib: Any) -> None:
    """BWD-20, BWD-22: a bare gradient is a list of one."""
    x, y = square(lib, 2.0)
    for given in ([lib.const(1.0)], lib.const(1.0)):
        with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
            lib.backward([y, y], given)
    lib.backward(y, lib.const(1.0), inputs=x)
    lib.equal(x.grad, 4.0)


def test_too_many_gradients(ours: Any) -> None:
    """BWD-21, a deviation: PyTorch drops the surplus silently."""
    _, y = square(ours, 2.0)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        ours.backward([y], [None, None])


@pytest.mark.parametrize("wrong", [1.0, np.ones(())])
def test_gradients_are_tensors(lib: Any, wrong: Any) -> None:
    """BWD-24."""
    _, y = square(lib, 2.0)
    with pytest.raises(TypeError, match=r"gradients can be either .*Tensors or None"):
        lib.backward([y], [wrong])


def test_bare_wrong_gradients(ours: Any) -> None:
    """BWD-25, and the policy on raw arrays."""
    _, y = square(ours, 2.0)
    with pytest.raises(TypeError, match="'float' object"):
        y.backward(1.0)
    with pytest.raises(TypeError, match="asarray"):
        y.backward(np.ones(()))


def test_iterables(lib: Any) -> None:
    """BWD-26."""
    x, y = square(lib)
    y.backward([lib.ones(2)], retain_graph=True)
    lib.backward((t for t in (y,)), (g for g in (lib.ones(2),)))
    lib.equal(x.grad, [4.0, 8.0])


@pytest.mark.parametrize("wrong", [3.0, [3.0], np.ones(())])
def test_roots_are_tensors(ours: Any, wrong: Any) -> None:
    """BWD-27."""
    with pytest.raises(TypeError):
        ours.backward(wrong)


def test_no_roots(lib: Any) -> None:
    """BWD-28."""
    assert lib.backward([]) is None


def test_grad_variables(lib: Any) -> None:
    """BWD-32."""
    x, y = square(lib)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        lib.backward(y, grad_variables=[lib.ones(2)])
    lib.equal(x.grad, [2.0, 4.0])
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
        lib.backward(y, [lib.ones(2)], grad_variables=[lib.ones(2)])


def test_signatures(lib: Any) -> None:
    """BWD-33."""
    function = list(inspect.signature(lib.backward).parameters)
    assert function == ["tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"]
    method = list(inspect.signature(lib.ns.Tensor.backward).parameters)
    assert method == ["self", "gradient", "retain_graph", "create_graph", "inputs"]


def test_flags(lib: Any) -> None:
    """BWD-34."""
    _, y = square(lib, 2.0)
    y.backward(retain_graph=1)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        y.backward(retain_graph="yes")


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_dtypes_without_gradient(lib: Any, dtype: str) -> None:
    """BWD-35."""
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        lib.tensor([1], dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes_with_gradient(lib: Any, dtype: str) -> None:
    """BWD-36."""
    x = lib.tensor([1.0, 2.0], dtype=dtype)
    (x * x).backward(lib.const([1.0, 1.0], dtype=dtype))
    assert x.grad.dtype == getattr(lib.ns, dtype)
    lib.equal(x.grad, [2.0, 4.0])


def test_nan_passes(lib: Any) -> None:
    """BWD-37."""
    x, y = square(lib)
    y.backward(lib.const([float("nan"), float("inf")]))
    assert np.isnan(lib.value(x.grad)[0])
    assert np.isinf(lib.value(x.grad)[1])


def test_failure_is_not_atomic(lib: Any) -> None:
    """BWD-38: leaves reached before the failure keep their new gradient, others their old one."""

    def fail(ctx: Any, g: Any) -> Any:
        raise KeyError("boo")

    a, b = lib.tensor(2.0), lib.tensor(3.0)
    bad = lib.fn(lambda ctx, x: x * 2, fail)
    early = bad.apply(b)
    late = a * a
    with pytest.raises(KeyError, match="boo"):
        (early + late).backward()
    lib.equal(a.grad, 4.0)
    assert b.grad is None


@pytest.mark.parametrize(("one", "other"), [((2,), (3, 2)), ((), (3, 2)), ((1, 3, 1), (2, 3, 4)), ((1,), (1, 1)), ((2, 1), (1, 3))])
def test_broadcasting_is_undone(lib: Any, one: Any, other: Any) -> None:
    """BWD-41."""
    x, y = lib.tensor(np.full(one, 2.0)), lib.tensor(np.full(other, 3.0))
    out = x * y
    out.sum().backward()
    n = out.numel()
    lib.equal(x.grad, np.full(one, 3.0 * n / max(x.numel(), 1)))
    lib.equal(y.grad, np.full(other, 2.0 * n / y.numel()))


def test_overlapping_reads_add_up(lib: Any) -> None:
    """BWD-42."""
    x = lib.tensor([1.0, 2.0, 3.0])
    x[lib.const([0, 0, 2], dtype="int64")].sum().backward()
    lib.equal(x.grad, [2.0, 0.0, 1.0])
