"""Contracts of group T: gradcheck, except its forward-mode and batched checks. Each test names its contracts first in its docstring."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest


def wrong(lib: Any, backward: Any) -> Any:
    """``2 x`` with some backward."""
    return lib.fn(lambda ctx, x: x * 2, backward).apply


@pytest.mark.parametrize("fast", [False, True])
def test_correct_functions(lib: Any, fast: bool) -> None:
    """GCK-01, GCK-12."""
    x, w = lib.tensor([[0.3, 0.7]]), lib.tensor([0.5, -0.4])
    const = lib.const([2.0, 3.0])
    check = lib.ag.gradcheck
    assert check(lib.ns.sin, x, fast_mode=fast)
    assert check(lambda x, w, c: (x * w * c, (x @ w).sum(), w.exp()), (x, w, const), fast_mode=fast)
    assert check(lambda x: (x * 2, lib.cast(x, "int64")), [x], fast_mode=fast, check_grad_dtypes=True)
    assert check(lambda x, k: x**k, (x, 3), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_mismatch(lib: Any, fast: bool) -> None:
    """GCK-02, GCK-03."""
    x = lib.tensor([1.0, 2.0])
    bad = wrong(lib, lambda ctx, g: g * 3)
    with pytest.raises(
        lib.ag.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch for output 0 with respect to input 0"
    ) as info:
        lib.ag.gradcheck(bad, (x,), fast_mode=fast)
    assert isinstance(info.value, RuntimeError)
    assert lib.ag.gradcheck(bad, (x,), fast_mode=fast, raise_exception=False) is False


def test_tolerances(lib: Any) -> None:
    """GCK-01: eps, atol and rtol are used."""
    x = lib.tensor([1.0, 2.0])
    almost = wrong(lib, lambda ctx, g: g * 2.01)
    assert not lib.ag.gradcheck(almost, (x,), raise_exception=False)
    assert lib.ag.gradcheck(almost, (x,), rtol=1e-2)
    assert lib.ag.gradcheck(almost, (x,), atol=0.1)
    curved = lib.tensor([0.0])
    assert lib.ag.gradcheck(lambda x: x**3, (curved,))
    assert not lib.ag.gradcheck(lambda x: x**3, (curved,), eps=0.5, raise_exception=False)


def test_no_input_requires_grad(lib: Any) -> None:
    """GCK-04, GCK-03: not even with raise_exception=False."""
    for flag in (True, False):
        with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
            lib.ag.gradcheck(lib.ns.sin, lib.const([1.0]), raise_exception=flag)


def test_single_precision(lib: Any) -> None:
    """GCK-05."""
    x = lib.tensor([1.0, 2.0], dtype="float32")
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert not lib.ag.gradcheck(lib.ns.sin, (x,), raise_exception=False)


def test_overlapping_input(lib: Any) -> None:
    """GCK-06."""
    x = lib.const(1.0).expand(3).detach().requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        lib.ag.gradcheck(lib.ns.sin, (x,))


def test_undefined_gradients(lib: Any) -> None:
    """GCK-07: the user's own exception."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2

    f = lib.fn(forward, lambda ctx, g: g * 2).apply
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(TypeError):
        lib.ag.gradcheck(f, (x,))
    assert lib.ag.gradcheck(f, (x,), check_undefined_grad=False)
    good = lib.fn(forward, lambda ctx, g: None if g is None else g * 2).apply
    assert lib.ag.gradcheck(good, (x,))


def test_scaling(lib: Any) -> None:
    """GCK-08: with one element the Jacobian alone would not show it."""
    x = lib.tensor([1.0])
    with pytest.raises(RuntimeError, match="backward not multiplied by grad_output"):
        lib.ag.gradcheck(wrong(lib, lambda ctx, g: lib.const([2.0])), (x,))


def test_determinism(lib: Any) -> None:
    """GCK-09."""
    count = itertools.count()
    f = wrong(lib, lambda ctx, g: g * (2 + 1e-7 * next(count)))
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        lib.ag.gradcheck(f, (x,))
    assert lib.ag.gradcheck(f, (x,), nondet_tol=1e-3)


def test_kinks(lib: Any) -> None:
    """GCK-10."""
    x = lib.tensor([0.0])
    relu = lib.fn(lambda ctx, x: x * (x > 0), lambda ctx, g: g * 0).apply
    assert not lib.ag.gradcheck(relu, (x,), raise_exception=False)


def test_constant_outputs(lib: Any) -> None:
    """GCK-11."""
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        lib.ag.gradcheck(lambda x: x.detach() * 2, (x,))
    assert lib.ag.gradcheck(lambda x: lib.cast(x, "int64"), (x,))
    assert lib.ag.gradcheck(lambda x: x.detach() * 0, (x,))


def test_options(lib: Any) -> None:
    """GCK-12."""
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or check_backward_ad to be True"):
        lib.ag.gradcheck(lib.ns.sin, lib.tensor([1.0]), check_backward_ad=False)


@pytest.mark.parametrize("option", ["check_forward_ad", "check_batched_grad", "check_batched_forward_grad"])
def test_options_to_come(ours: Any, option: str) -> None:
    """GCK-12: what is not there yet says so."""
    with pytest.raises(NotImplementedError, match=option):
        ours.ag.gradcheck(ours.ns.sin, ours.tensor([1.0]), **{option: True})


@pytest.mark.parametrize("fast", [False, True])
def test_second_order(lib: Any, fast: bool) -> None:
    """GCK-13."""
    x, w = lib.tensor([0.3, 0.7]), lib.tensor([0.5, -0.4])
    check = lib.ag.gradgradcheck
    assert check(lambda x, w: (x * x * w, x.sin()), (x, w), fast_mode=fast)
    assert check(lambda x: x.exp(), x, lib.tensor([1.0, 2.0]), fast_mode=fast)
    assert check(lambda x: x.exp(), (x,), gen_non_contig_grad_outputs=True, fast_mode=fast)
    half = lib.fn(lambda ctx, x: ctx.save_for_backward(x) or x**3, lambda ctx, g: g * 3 * ctx.saved_tensors[0].detach() ** 2)
    assert lib.ag.gradcheck(half.apply, (x,))
    with pytest.raises(RuntimeError, match=r"Jacobian mismatch|expected to be zero"):
        check(half.apply, (x,), fast_mode=fast)


def test_inputs_are_left_alone(lib: Any) -> None:
    """GCK-01."""
    x = lib.tensor([0.3, 0.7])
    lib.ag.gradcheck(lib.ns.sin, x)
    lib.equal(x, [0.3, 0.7])
    assert x.grad is None
    assert np.asarray(lib.value(x)).shape == (2,)
