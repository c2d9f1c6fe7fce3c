"""Law: a declared method of a Tensor has its function's value and gradient; the in-place one writes, and refuses, as PyTorch's does."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._rows.namespace import COMPOSITE, IN_PLACE, METHODS, NONDIFFERENTIABLE, RULES
from xpgrad._rows.operators import BINARY, UNARY
from xpgrad._rows.row import ROWS
from xpgrad.autograd import grad
from xpgrad.backend import axis_functions

#: In-place methods whose results for integers differ from PyTorch's (`docs/_ext/xpgrad_reference/facts/tensor.toml` says how).
DIFFERS = {"reciprocal_"}
#: The number of axes that each view takes as arguments.
AXES = {f.name: f.axes for f in axis_functions() if f.kind == "view"}


def data(function: Any, rows: int = 3) -> np.ndarray:
    """Return numbers at which the function is differentiable."""
    row = getattr(function, "row", None)
    low, high = (-math.inf, math.inf) if row is None else (row.domains[0].low, row.domains[0].high)
    first = -1.7 if low == -math.inf else low + 0.15
    last = (2.6 if low == -math.inf else low + 3.1) if high == math.inf else high - 0.15
    numbers = np.linspace(first, last, 2 * rows).reshape(rows, 2)
    if row is not None and row.domains[0].numbers == "bool":
        return numbers > 0
    return numbers if row is None or row.domains[0].numbers != "integer" else numbers.astype("int64")


def others(function: Any) -> tuple[Any, ...]:
    """Return the arguments after the first operand."""
    row = getattr(function, "row", None)
    if function.__name__ in AXES:
        return (0, -1, 1)[: AXES[function.__name__]]
    if row is not None and len(row.tensors) == 2:
        return (xp.asarray([[3.0, 2.0]]),)
    if function is xp.astype:
        return (xp.float32,)
    return (xp.asarray([1.0, 2.0]),) if function is xp.matmul else (-1.0, 1.0) if function is xp.clip else ()


def test_declared_methods_are_public_functions_with_names_of_pytorch() -> None:
    public = {function for table in (RULES, NONDIFFERENTIABLE, COMPOSITE) for function in table.values()}
    assert set(METHODS.values()) | set(IN_PLACE.values()) <= public
    torch = pytest.importorskip("torch")
    unknown = {name for name in {*METHODS, *IN_PLACE} if not hasattr(torch.Tensor, name)}
    for name in unknown:  # a function that PyTorch lacks, in place or not
        assert getattr(xp, name.removesuffix("_")) is (METHODS.get(name) or IN_PLACE[name])


def test_every_function_of_one_operand_is_a_method() -> None:
    for row in ROWS.values():
        function = RULES.get(row.name) or NONDIFFERENTIABLE.get(row.name)
        if row.elementwise and len(row.tensors) == 1 and function is not None:
            assert function in METHODS.values(), row.name


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_its_function(name: str, xpgrad_device: str) -> None:
    function = METHODS[name]
    assert getattr(xp.Tensor, name).__doc__
    values = data(function)
    found = []
    for call in (lambda x, *args: getattr(x, name)(*args), function):
        x = xp.tensor(values, device=xpgrad_device, requires_grad=values.dtype.kind == "f")
        rest = [a.to_device(xpgrad_device) if isinstance(a, xp.Tensor) else a for a in others(function)]
        out = call(x, *rest)
        first = second = None
        if isinstance(out, xp.Tensor) and out.requires_grad:
            (first,) = grad((out * out).sum(), x, create_graph=True)
            second = grad((first * first).sum(), x)[0] if first.requires_grad else None
        found.append([out, first, second])
    for one, two in zip(*found, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert one.dtype is two.dtype
            np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())


def test_axes_have_both_names() -> None:
    x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
    over_axes = [name for name, function in METHODS.items() if "keepdims" in inspect.signature(function).parameters]
    assert {"sum", "mean", "prod", "argmax", "argmin", "all", "any"} <= set(over_axes)
    for name in over_axes:
        method, wanted = getattr(x, name), METHODS[name](x, axis=1, keepdims=True)
        for out in (method(1, keepdims=True), method(dim=1, keepdim=True), method(axis=1, keepdim=True)):
            np.testing.assert_array_equal(out.numpy(), wanted.numpy())
        with pytest.raises(TypeError, match="two names"):
            method(1, dim=1)
    assert x.sum(dtype="float32").dtype is xp.float32


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_it_writes_as_pytorch_does(name: str, xpgrad_device: str) -> None:
    function = IN_PLACE[name]
    values = data(function)

    def loss(y: Any) -> Any:  # y ** 3 alone undoes `cbrt_`: its second derivative would be nothing but rounding errors
        return (y * y * y + y).sum()

    def results(lib: Any, gradient: Any, rest: list[Any], **options: Any) -> list[Any]:
        x = lib.asarray(values.copy(), **options).requires_grad_()
        y = x * 1
        part = y[1:]
        assert getattr(part, name)(*rest) is part  # a write through a view shows in the base
        (g,) = gradient(loss(y), x, create_graph=True)
        (h,) = gradient((g * g).sum(), x)
        return [t.detach().numpy() for t in (y, g, h)]

    args = others(function)
    ours = results(xp, grad, [a.to_device(xpgrad_device) for a in args], device=xpgrad_device)
    x = xp.tensor(values, requires_grad=True)
    y = xp.concat([x[:1], function(x[1:], *args)])
    (g,) = grad(loss(y), x, create_graph=True)
    (h,) = grad((g * g).sum(), x)
    for one, two in zip(ours, (y, g, h), strict=True):
        np.testing.assert_allclose(one, two.detach().numpy(), rtol=1e-12, atol=1e-15)
    torch = pytest.importorskip("torch")
    if hasattr(torch.Tensor, name):
        try:
            theirs = results(torch, torch.autograd.grad, [torch.asarray(a.numpy()) for a in args])
        except NotImplementedError:  # it has no derivative for `asinh_` and similar methods
            return
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_it_refuses_what_pytorch_refuses(name: str) -> None:
    function = IN_PLACE[name]
    values, args = data(function), others(function)
    torch = pytest.importorskip("torch")
    for lib in (xp, torch):
        rest = args if lib is xp else [torch.asarray(a.numpy()) for a in args]
        if not hasattr(lib.Tensor, name):
            continue
        leaf = lib.asarray(values.copy()).requires_grad_()
        with pytest.raises(RuntimeError, match="leaf"):
            getattr(leaf, name)(*rest)
        y = leaf * 1
        out = y * y  # keeps y
        getattr(y, name)(*rest)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()
        with lib.no_grad():
            assert getattr(leaf, name)(*rest) is leaf
    integers = [[1, 2], [3, 4]]

    def refused(lib: Any) -> bool:
        try:
            with np.errstate(all="ignore"):
                getattr(lib.asarray(integers), name)(*(args if lib is xp else [torch.asarray(a.numpy()) for a in args]))
        except (RuntimeError, TypeError):
            return True
        return False

    if name not in DIFFERS and hasattr(torch.Tensor, name):
        assert refused(xp) == refused(torch)


def test_each_operator_of_python_has_its_methods() -> None:
    declared = {row.operator.symbol for row in ROWS.values() if row.operator is not None and row.special_methods is not None}
    assert declared == {*BINARY, *UNARY}
    for operator in (*BINARY.values(), *UNARY.values()):
        for method in (operator.method, operator.reflected, operator.in_place):
            assert method is None or callable(getattr(xp.Tensor, method))
    x = xp.asarray([1.0, 2.0])
    assert (2 - x).tolist() == [1.0, 0.0]
    before = x
    x **= 2
    assert x is before
    assert x.tolist() == [1.0, 4.0]
    assert hash(x) == hash(before)
