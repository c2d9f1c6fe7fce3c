"""Law: in code that `numpy_code` runs, Tensors have the methods of NumPy's arrays, with their arguments, values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import values

A = np.random.default_rng(3).uniform(0.1, 0.9, size=(2, 3, 2))


def flat_writes(a):
    b = a.copy().transpose(2, 0, 1)
    b.flat[1] = 7.0
    b.flat[[3, 5]] = a.flat[:2]
    b.flat[8:] = [1.0, 2.0, 3.0]  # repeated
    b.flat[:2] = [a[1, 1, 1], a[0, 1, 0] * 2.0]
    b.T.flat[2:6] = a.flat
    c = a.copy()
    np.asarray(c.flat)[2] = a[0, 1, 1] * 3.0  # the memory of `c`
    return b + c.sum()


def flat_assignment(a):
    b = a.copy()
    b.flat = a[0, 0] * 2.0
    return b


def in_place(a):
    b = a.copy()
    b.sort(0)
    b.put([0, -1], [4.0, 5.0])
    b[0].fill(a[0, 0, 0])
    b.partition(1, axis=1)
    return b


def outputs(a):
    out = np.empty(a.shape)
    a.clip(0.2, 0.6, out=out)
    return out + a.round(1, np.empty(a.shape))


def taken(a):
    out = np.zeros(2)
    a.take([3, -1], out=out)
    return (
        out
        + a.take(5)
        + a.take(1, axis=2)[0, 1]
        + a.take([14, 1], None, None, "wrap")
        + a[0].take([[0, 9]], mode="clip")[0] * a.take(1, 0)[0]
    )


def running(a):
    out = np.zeros(a.shape)
    a.cumsum(1, out=out)
    return out.cumprod(axis=2, dtype=float) + a.cumsum(0, float) + a.cumsum()[-1] + a.cumprod()[3]


def lists_added(a):
    b = a.copy()
    b[0, 0] += [a[1, 1, 1], 2.0]
    b[[0, 1], 1] *= [[2.0, 1.0], [a[0, 0, 0], 3.0]]
    b[1] -= ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    return b


def iterators(a):
    with np.nditer([a, a[0], None], op_flags=[["readonly"], ["readonly"], ["writeonly", "allocate"]]) as found:
        for v, w, out in found:
            out[...] = v * w + v
        products = found.operands[2]
    with np.nditer(a, op_flags=["readwrite"]) as found:
        for v in found:
            v[...] = v**2 - 1.0
    found, sloped = np.nditer(products, flags=["multi_index"], op_flags=[["readwrite"]]), np.zeros_like(products)
    while not found.finished:
        place, old = found.multi_index, found[0] * 1.0
        products[place] = old + 0.5
        sloped[place] = (products**2).sum() + found.value
        found[0] = old
        found.iternext()
    columns = [v * 1.0 for v in np.nditer(a, order="F")]
    return sloped + np.array(columns).reshape(a.shape) + sum(v * k.index for k in [np.nditer(a, flags=["c_index"])] for v in k)


def sums(a):
    mask, out = a > 0.3, np.empty((2, 2))
    a.sum(axis=1, out=out)
    a[0].mean(0, None, out[1])
    return out + a.sum(1, where=mask) + a.prod(axis=1, initial=2.0) + a.mean(1, where=mask) + a.sum(0, float)[:2]


def extrema(a):
    out = np.zeros((2, 1, 2))
    a.max(axis=1, keepdims=True, out=out)
    return out + a.min(axis=1, initial=0.35, keepdims=True) + a.max(initial=0.7) + a.max(axis=(0, 1), where=a < 0.5, initial=0.0)


#: Calls by NumPy's names; each returns an array.
CALLS: dict[str, Callable[[Any], Any]] = {
    "T of three axes": lambda a: a.T,
    "T of one axis": lambda a: a[0, 0].T,
    "transpose": lambda a: a.transpose(),
    "transpose None": lambda a: a.transpose(None),
    "transpose, axes": lambda a: a.transpose(1, 2, 0),
    "transpose, a tuple": lambda a: a.transpose((1, -1, 0)),
    "transpose, as it is": lambda a: a[0].transpose(0, 1),  # PyTorch's exchanges them
    "swapaxes": lambda a: a.swapaxes(0, -1),
    "reshape": lambda a: a.reshape(3, -1),
    "reshape, columns first": lambda a: a.reshape((4, 3), order="F"),
    "ravel, columns first": lambda a: a.ravel("F"),
    "flatten": lambda a: a.flatten() + a.flatten(order="F"),
    "view": lambda a: a[:1, :1, :1].view(),
    "copy": lambda a: a.copy(order="C"),
    "round": lambda a: a.round(1) + a.round(decimals=2) + a.round(),
    "clip": lambda a: a.clip(0.2, 0.6) + a.clip(min=0.3) + a.clip(None, 0.5),
    "argsort": lambda a: a.argsort(0) + a.argsort(axis=0, kind="stable") + a.argsort(0, "stable"),
    "compress": lambda a: a.compress([True, False, True], axis=1),
    "conjugate": lambda a: a.conjugate(),
    "imag": lambda a: a.imag,
    "view, of a class": lambda a: a.view(float) + a.view(dtype=a.dtype) + a.view(np.ndarray),
    "item": lambda a: np.array([a.item(2), a.item(1, 2, 0), a.item((0, 1, 1)), a[0, 0, 0].item()]),
    "flat": lambda a: a.flat[3] + a.T.flat[2:9:3] + len(a.flat),
    "flat, an iterator": lambda a: np.array([2.0 * v for v in a.T.flat]),
    "flat, an operand": lambda a: np.dot(a.flat, a.T.flat) + np.array(a.flat) * a.flat.copy() + np.where(a.flat > 0.5, a.T.flat, 0.0),
    "flat, compared": lambda a: (a.flat == a.T.flat) * 1.0 + (a.flat != 0.5) + np.maximum(a.flat, 0.4) + sum(a.flat),
    "flat, written": flat_writes,
    "flat, assigned": flat_assignment,
    "in place": in_place,
    "out": outputs,
    "take": taken,
    "running": running,
    "lists added": lists_added,
    "columns first": lambda a: (
        np.copy(a, order="F") + np.ones_like(a, order="F") * np.full_like(a, a[0, 0, 0], order="F") + np.zeros_like(a, float, "F")
    ),
    "reductions": sums,
    "extrema": extrema,
    "all and any": lambda a: a.all(axis=1, where=a > 0.2) * a[:, 0] + (a > 0.5).any(0, keepdims=True)[0][:2],
    "r_": lambda a: np.r_[0.5, a[0, 0], 1:3, a.flat[0], [a[1, 1, 1], 2.0]],
    "r_ of matrices": lambda a: np.r_[a[0], a[1]],
    "c_": lambda a: np.c_[a[0, :, 0], a[1], np.arange(3)],
    "nditer": iterators,
    "ndenumerate": lambda a: np.array([v * sum(i) for i, v in np.ndenumerate(a)]),
    "divmod": lambda a: divmod(a, 0.3)[1] + divmod(2.0, a)[0],
    "in": lambda a: np.array([float(a.flat[1] in a), float(5.0 in a)]) + a[0, 0],
}
#: Those that read values.
READING = ("item", "in")

each = pytest.mark.parametrize("name", CALLS)


@each
def test_methods_are_numpys(name: str, xpgrad_device: str) -> None:
    expected = CALLS[name](A.copy())
    found = xp.numpy_code(CALLS[name])(xp.asarray(A, device=xpgrad_device))
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(values(found) if isinstance(found, xp.Tensor) else found, expected, rtol=1e-12)


@each
def test_derivatives_are_differences(name: str) -> None:
    if name in ("argsort", "item"):
        pytest.skip("its results are numbers without a derivative")
    step, x = 1e-6, xp.asarray(A)
    moved = np.eye(A.size).reshape(A.size, *A.shape) * step
    expected = np.stack([(CALLS[name](A + h) - CALLS[name](A - h)) / (2 * step) for h in moved], axis=-1)
    for transform in (xp.func.jacrev, xp.func.jacfwd):
        found = values(transform(xp.numpy_code(CALLS[name]))(x))
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6, atol=1e-8)


@each
def test_compiled_they_are_the_same(name: str) -> None:
    if name in READING:
        pytest.skip("it reads values")
    x = xp.asarray(A)
    compiled = xp.compile(xp.numpy_code(CALLS[name]))
    for factor in (1.0, 0.7):
        found = compiled(x * factor)
        np.testing.assert_allclose(values(found) if isinstance(found, xp.Tensor) else found, CALLS[name](A * factor), rtol=1e-11)


def test_elsewhere_methods_are_pytorchs() -> None:
    x = xp.asarray(A)
    assert x.transpose(0, 1).shape == (3, 2, 2)
    for call in (
        lambda: x.transpose(), lambda: x.reshape(4, 3, order="F"), lambda: x.round(1), lambda: x.argsort(axis=0), lambda: x.item(2),
        lambda: x.copy(order="F"), lambda: x.sum(0, float), lambda: x.mean(where=x > 0.5), lambda: x.max(initial=0.0),
        lambda: x.take([0], mode="clip"), lambda: x.cumsum(0, dtype=float), lambda: x.__iadd__([1.0, 2.0]),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    for name in ("flat", "compress"):
        with pytest.raises(AttributeError, match=name):
            getattr(x, name)
        with pytest.raises(AttributeError, match=name):
            setattr(x, name, 1.0)
    with pytest.raises(AttributeError, match="matrices"):
        _ = x.T


def test_joined_arrays_have_numpys_dtypes() -> None:
    for dtype in ("float32", "float64"):
        joined = xp.numpy_code(lambda a: np.r_[0.5, a[0, 0], 2])(xp.asarray(A.astype(dtype)))
        assert str(joined.dtype) == np.r_[0.5, A[0, 0].astype(dtype), 2].dtype.name
    assert isinstance(xp.numpy_code(lambda a: np.r_[[1, 2], 3])(xp.asarray(A)), np.ndarray)  # integers stay NumPy's


def test_membership_and_divmod_are_pythons(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.5], device=xpgrad_device)
    assert [1.0 in x, 3.0 in x, x[1] in x] == [True, False, True]
    for found, expected in ((divmod(x, 2.0), divmod(np.asarray([1.0, 2.5]), 2.0)), (divmod(4.0, x), divmod(4.0, np.asarray([1.0, 2.5])))):
        for part, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(values(part), other)


def test_numpy_refuses_the_same() -> None:
    x = xp.asarray(A)
    with pytest.raises(ValueError, match=r"size 1|has 12 elements"):
        xp.numpy_code(lambda a: a.item())(x)
    with pytest.raises(IndexError):
        xp.numpy_code(lambda a: a.flat[12])(x)
    with pytest.raises(AttributeError, match="resize"):
        xp.numpy_code(lambda a: a.resize((3, 4)))(x)
    for flags, error in ((["external_loop"], TypeError), (["buffered"], TypeError), ([], ValueError)):
        with pytest.raises(error, match=r"external_loop|buffered|cannot be broadcast"):
            xp.numpy_code(lambda a, f=flags: np.nditer([a, a[0]], flags=f, op_flags=[["readonly"], ["readwrite"]]))(x)
    for order in (lambda a: np.nditer(a.T), lambda a: np.nditer(a[:, ::-1])):
        with pytest.raises(TypeError, match="give `order='C'`"):
            xp.numpy_code(order)(x)
    with pytest.raises(ValueError, match="not writeable"):
        xp.numpy_code(lambda a: np.nditer(a).__setitem__(0, 1.0))(x)
    with pytest.raises(ValueError, match="multi-index"):
        xp.numpy_code(lambda a: np.nditer(a).multi_index)(x)


class Labelled(np.ndarray):
    """A class of arrays."""


def test_views_of_other_classes_and_dtypes_raise() -> None:
    x = xp.tensor(A, requires_grad=True)
    for call, message in (
        (lambda a: a.view(Labelled), "class Labelled"), (lambda a: a.view(type=Labelled), "class Labelled"),
        (lambda a: a.view(np.int64), "no other dtype"), (lambda a: a.view(complex), "no other dtype"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            xp.numpy_code(call)(x)


def test_pytorchs_keepdim_stays_beside_numpys_arguments() -> None:
    x = np.arange(6.0).reshape(2, 3)
    found = xp.numpy_code(lambda x: x.sum(0, True, initial=2.0))(xp.asarray(x))
    np.testing.assert_array_equal(found.numpy(), x.sum(0, keepdims=True, initial=2.0))
