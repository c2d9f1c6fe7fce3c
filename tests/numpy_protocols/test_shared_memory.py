"""Law: in `numpy_code`, what shares memory in NumPy shares it, also with arrays of constants, and no gradient is written into these."""

from __future__ import annotations

import copy
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import xpgrad as xp
from support import numpy_cases
from support.central_differences import values

from .test_functions import outputs, quiet
from .test_numpy_code import slopes

K = np.array([[1.0, 2.0, -0.5], [0.3, 0.8, 1.5]])
X = np.array([0.4, 1.2, 0.7])
MANY = np.linspace(1.0, 2.0, 300)

#: Views of an array with two axes.
VIEWS = (
    "np.ravel(y)", "np.reshape(y, (-1, 2))", "np.transpose(y)", "np.flip(y)", "np.flip(y, 1)[:, ::2]", "np.asarray(y)",
    "np.ascontiguousarray(y)",
    "np.atleast_3d(y)", "np.atleast_2d(y[0])", "np.squeeze(y[:1])", "np.split(y, 2)[1]", "np.moveaxis(y, 0, 1)", "np.real(y)",
    "np.expand_dims(y, 0)", "np.broadcast_to(y, (2, *y.shape))", "np.swapaxes(y, 0, 1)", "np.diagonal(y)", "np.diag(y)", "np.rot90(y)",
    "np.asanyarray(y).T", "np.asarray(y)[1:]", "np.asarray(y)[1]", "np.asarray(y).reshape(-1)", "np.asarray(y).view()",
    "np.asarray(y).real",
    "np.nan_to_num(y, copy=False)", "np.array(y, copy=None)", "np.atleast_2d(y, x)[0]", "np.broadcast_arrays(y, x)[0]",
    "np.lib.stride_tricks.sliding_window_view(y, (1, 2))", "np.lib.stride_tricks.sliding_window_view(y, 2, axis=1).T",
    "np.lib.stride_tricks.sliding_window_view(y, (2, 2), axis=(1, 1))", "np.lib.stride_tricks.sliding_window_view(y[0], 2)[1]",
)  # fmt: skip
#: Without those into which NumPy warns not to write.
WRITABLE = tuple(view for view in VIEWS if "broadcast_arrays" not in view)
#: Arrays that have memory of their own.
COPIES = ("np.copy(y)", "np.asarray(y) * 1.0", "np.asarray(y).copy()", "copy.copy(np.asarray(y))", "y[[0, 1]]", "np.asarray(y)[[1, 0]]",
          "np.meshgrid(y[0], x, sparse=True)[0]", "np.meshgrid(y[0])[0]")  # fmt: skip
WRITES = (
    "k[0] = 9.0", "k[:, 1] *= -2.0", "k += 0.5", "k.fill(0.3)", "k[[0, 1]] = k[[1, 0]]", "k[:] = k[::-1]", "k.sort()",
    "np.put(k, [1, 2], 3.0)",
    "np.place(k, k > 0.5, 0.1)", "np.copyto(k, 2.0, where=k > 0.9)", "np.multiply(k, k, out=k)", "np.add(k[1], k[0], out=k[1])",
    "k[0], k[1] = k[1].copy(), k[0].copy()", "v[...] = 4.0", "v[0] = -1.0", "v *= 1.5", "v.fill(0.2)", "np.negative(v, out=v)",
    "v.flat[0] = 7.0",
    "v[-1:] -= 0.25", "a[0] = x", "a[1, :2] = x[1:]", "a *= x", "a[:] = a[::-1]", "a += np.sum(v)", "a[:, 0] = 2.0", "np.exp(a, out=a)",
)  # fmt: skip
READS = ("total = total + x * np.sum(v * v)", "total = total * v.sum() + np.sum(k) * x", "total = total + a[0] * np.sum(np.asarray(k))")


def on(base: str, view: str) -> str:
    """Return the statement that makes a view of an array."""
    return "v = " + re.sub(r"\by\b", base, view)


def make(*statements: str) -> Callable[..., Any]:
    """Return a program with an array of constants `k`, one of Tensors `a`, and a view `v`."""
    names = {"np": np, "K": K, "copy": copy}
    lines = [
        "k, a, total = K.copy(), np.outer(K[:, 0], x), x * 1.0",
        "v = k",
        *statements,
        "return total + a[1] * np.sum(v) + k[0] * v.mean()",
    ]
    exec("def program(x):\n    " + "\n    ".join(lines), names)  # noqa: S102 (the tables' texts)
    return names["program"]  # type: ignore[return-value]


def check(program: Callable[..., Any], compiles: bool = True) -> None:
    function, x = xp.numpy_code(program), xp.asarray(X)
    expected, derivative = program(X.copy()), slopes(program, (X,), 0)
    close = {"rtol": 1e-5, "atol": 1e-6 * max(1.0, np.max(np.abs(derivative)))}
    np.testing.assert_allclose(values(function(x)), expected, rtol=1e-12, atol=1e-12)
    for transform in (xp.func.jacrev, xp.func.jacfwd):
        np.testing.assert_allclose(values(transform(function)(x)), derivative, **close)
    batch = np.stack([X, X + 0.1])
    np.testing.assert_allclose(
        values(xp.func.vmap(function)(xp.asarray(batch))), [program(p) for p in batch.copy()], rtol=1e-12, atol=1e-12
    )
    if compiles:
        np.testing.assert_allclose(values(xp.compile(function)(x)), expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(values(xp.compile(xp.func.jacrev(function))(x)), derivative, **close)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("base", ["k", "a"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_see_later_writes(view: str, base: str) -> None:
    check(make(on(base, view), f"{base}[:, 1:] *= 2.0", f"{base}[0, 0] = 0.6", "total = total * v.sum()", f"{base} += 0.5"))


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("view", WRITABLE)
def test_writes_to_views_reach_the_array(view: str) -> None:
    program = make(on("k", view), "v[0] = 9.0", "total = total * k.sum()")
    try:
        program(X.copy())
    except ValueError:  # NumPy's views that are read-only
        with pytest.raises(ValueError, match="read-only"):
            xp.numpy_code(program)(xp.asarray(X))
    else:
        check(program)


def _write_after(function: Callable[..., Any], j: int, i: int, forwards: bool, args: Any) -> Any:
    """Call a function, write to its i-th argument and return its j-th result (`forwards`), or the other way round."""
    out, arg = outputs(function(*args))[j], args[i]
    written, read = (arg, out) if forwards else (out, arg)
    written[...] = 77
    return read


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("name", numpy_cases.CASES)
def test_results_share_the_memory_that_numpys_share(name: str) -> None:
    for case in numpy_cases.CASES[name]:
        count = len(outputs(quiet(case.function, *map(np.array, case.points))))
        for j, i, forwards in itertools.product(range(count), range(len(case.points)), (True, False)):
            if not np.ndim(case.points[i]):  # a number
                continue
            write = functools.partial(_write_after, case.function, j, i, forwards)
            try:
                expected = np.array(quiet(write, tuple(map(np.array, case.points))))
            except (TypeError, ValueError, IndexError):  # a number, or an array that is read-only
                continue
            if expected.dtype.kind in "OSU":  # a type or a name
                continue
            run = xp.numpy_code(lambda *args, write=write: write(args), modules=[numpy_cases])
            of_constants = xp.numpy_code(lambda x, write=write, case=case: write(tuple(map(np.array, case.points))), modules=[numpy_cases])
            found = [lambda run=run, case=case: run(*map(xp.asarray, case.points)), lambda of=of_constants: of(xp.ones(1))]
            for call in found:
                got = quiet(call)
                np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-9, err_msg=f"{j} {i} {forwards}")


@pytest.mark.parametrize("name", ["shares_memory", "may_share_memory"])
@pytest.mark.parametrize("running", [False, True])
def test_programs_are_told_what_shares_memory(running: bool, name: str, xpgrad_device: str) -> None:
    """In code for NumPy writes go to copies, so that the addresses of arrays say nothing."""

    def ask(x: Any) -> list[bool]:
        share, rows, flat = getattr(np, name), x[0], np.reshape(x, (-1,))
        pairs = [(x, x), (x, rows), (rows, x[1]), (flat, x[1:]), (flat[:2], x[1]), (x, x * 1.0), (rows, x[:, 1]), (x, np.copy(x))]
        return [bool(share(a, b)) for a, b in pairs]

    expected = ask(np.ones((2, 3)))
    assert (xp.numpy_code(ask) if running else ask)(xp.ones((2, 3), device=xpgrad_device)) == expected


@pytest.mark.parametrize("base", ["k", "a"])
@pytest.mark.parametrize("copied", COPIES)
def test_writes_to_copies_do_not_reach_the_array(copied: str, base: str) -> None:
    check(make(on(base, copied), "v[0] = 9.0", f"total = total * {base}.sum()"))


@pytest.mark.slow(one_in=4)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_of_views_and_writes(data: Any) -> None:
    statements = []
    for _ in range(data.draw(st.integers(2, 7))):
        kind = data.draw(st.sampled_from(("view", "write", "write", "read")))
        if kind == "view":
            view = data.draw(st.sampled_from(WRITABLE + COPIES))
            statements.append(on(data.draw(st.sampled_from(("k", "a"))), view))
        else:
            statements.append(data.draw(st.sampled_from(WRITES if kind == "write" else READS)))
    program = make(*statements)
    try:
        assume(np.max(np.abs(program(X.copy()))) < 1e4)  # else the central differences lose their digits
    except ValueError:  # read-only, or another shape
        return
    check(program, compiles=False)


#: Writes of values with a gradient into an array of constants, or into a view `v` of it.
LOSING = (
    "v[0] = x[0]", "v[...] = x[0]", "v *= x[0]", "v[0] += x[1]", "v.fill(x[0])", "np.put(v, [0], x[:1])", "v.put([0], x[0])",
    "v.flat[0] = x[0]",
    "np.copyto(v, x[0])", "np.add(v, x[0], out=v)", "np.add.at(v, 0, x[0])", "np.place(v, v > 0.0, x)", "k[0] = x", "k[:] = x", "k += x",
    "np.outer(x[:2], x, out=k)", "v.real = x[0]",
)  # fmt: skip


@pytest.mark.parametrize("write", LOSING)
@pytest.mark.parametrize("view", ["y", "np.ravel(y)", "np.asarray(y)", "np.flip(y)[1:]", "np.asarray(y).T"])
def test_no_gradient_is_written_into_an_array_of_constants(view: str, write: str) -> None:
    function, x = xp.numpy_code(make(on("k", view), write)), xp.asarray(X)
    leaf, batch = xp.tensor(X, requires_grad=True), xp.asarray(np.stack([X, X]))
    calls = (
        lambda: function(leaf), lambda: xp.func.jvp(function, (x,), (x,)), lambda: xp.func.jacrev(function)(x),
        lambda: xp.func.vmap(function)(batch), lambda: xp.compile(function)(x),
    )  # fmt: skip
    for call in calls:
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            call()


def test_the_error_of_a_write_to_a_view_tells_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"make the array by a function of NumPy's, as by `np.array\(a\)`"):
        xp.numpy_code(make("v = np.ravel(k)", "v[0] = x[0]"))(xp.tensor(X, requires_grad=True))


def test_views_of_constants_are_arrays_with_methods_for_tensors() -> None:
    def program(x: Any) -> Any:
        k = np.asarray(K)
        assert type(k) is np.ndarray
        assert isinstance(k, np.ndarray)
        fresh, copied = k * 2.0, k.copy()
        fresh[0], copied[1] = x, x * x
        first, second = k
        return fresh + copied, k.dot(x) @ k, k.clip(x, 2.0), k.T @ k @ x + first.dot(x) * second, k.sum() * x, k[np.argmax(x) - 1] * x

    found, expected = xp.numpy_code(program)(xp.asarray(X)), program(X)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(values(y), z, rtol=1e-12)
    given, outside = xp.numpy_code(lambda x: {"k": np.asarray(K), "x": x})(xp.asarray(X)), K.copy()
    assert type(given["k"]) is type(given["x"])
    given["k"] *= 2.0
    np.testing.assert_array_equal(K, outside)


def test_windows_are_views_only_in_code_for_numpy() -> None:
    windows = np.lib.stride_tricks.sliding_window_view
    a, v = xp.numpy_code(lambda x: (y := x * 1.0, np.lib.stride_tricks.sliding_window_view(y, 2)))(xp.asarray(X))
    expected = windows(X, 2)
    a *= 2.0
    np.testing.assert_array_equal(values(v), expected)
    v += 1.0
    np.testing.assert_array_equal(values(a), X * 2.0)
    for text in ("v[0, 0] = 1.0", "v += x[0]", "v.T[0] = 1.0"):
        function = xp.numpy_code(make("v = np.lib.stride_tricks.sliding_window_view(a[0], 2)", text))
        for transform in (lambda f: f, xp.compile, xp.func.jacrev):
            with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
                transform(function)(xp.asarray(X))


#: Statements with indices, masks and constants that are overwritten after they were used.
OVERWRITTEN = (
    "i = np.array([0, 1]); y = x[i] ** 2; i[:] = 2", "i = np.array([0, 1]); y = x * 1.0; y[i] += x[1:] ** 2; i[:] = 2",
    "i = np.array([True, False, True]); y = x[i] ** 2; i[:] = [False, True, True]",
    "i = np.array([0, 1]); y = np.take(x, i) ** 2; i[:] = 2",
    "i = np.array([True, False, True]); y = np.where(i, x, x * x); i[:] = False",
    "i = np.array([True, False, True]); y = x * 1.0; np.putmask(y, i, x * x); i[:] = False",
    "i = np.array([True, False, True]); y = np.multiply(x, x, out=x * 1.0, where=i); i[:] = False",
    "i = np.array([True, False, True]); y = np.sum(x * x, where=i); i[:] = False",
    "i = np.array([0, 1, 0]); y = x * 1.0; np.add.at(y, i, x * x); i[:] = 2",
    "i = np.array([[0, 2], [1, 1]]); y = np.outer(x, x)[np.ix_(i[0], i[1])]; i[:] = 0", "k = K[0].copy(); y = x * k; k[0] = 9.0",
    "k = K[0].copy(); y = np.dot(x, k) * x; k[0] = 9.0", "k = K[0].copy(); y = x * 1.0; y *= k; k[:] = 0.0",
    "k = K[0].copy(); y = np.average(x * x, weights=np.abs(k)); k[:] = 1.0", "k = K[0].copy(); y = np.einsum('i,i', k, x) * x; k[:] = 1.0",
    "k = np.asarray(K[0].copy()); y = x * k; k += 1.0; y *= k; k[:] = 0.0", "k = np.array([2, 1, 3]); y = x**k; k[:] = 1",
)  # fmt: skip


@pytest.mark.parametrize("text", OVERWRITTEN)
def test_constants_may_be_overwritten_after_their_use(text: str, xpgrad_device: str) -> None:
    names = {"np": np, "K": K}
    exec(f"def program(x):\n    {text}\n    return y", names)  # noqa: S102 (the table's texts)
    program: Any = names["program"]
    function, x = xp.numpy_code(program), xp.asarray(X, device=xpgrad_device)
    np.testing.assert_allclose(values(function(x)), program(X.copy()), rtol=1e-12)
    expected = slopes(program, (X,), 0)
    for derivative in (xp.func.jacrev(function), xp.func.jacfwd(function), xp.compile(xp.func.jacrev(function))):
        np.testing.assert_allclose(values(derivative(x)).reshape(expected.shape), expected, rtol=1e-6, atol=1e-7)


def test_large_constants_are_copied_again_only_if_they_change() -> None:
    def program(x: Any) -> Any:
        k = MANY * -0.0
        parts = [1.0 / (x * k)]
        k[7] = 0.0
        parts.append(1.0 / (x * k))
        k[:] = np.nan
        parts.append(x * k)
        k[9] = 2.0
        return np.stack([*parts, x * k])

    x = np.linspace(0.1, 1.0, 300)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(values(xp.numpy_code(program)(xp.asarray(x))), program(x))
    kept = xp.numpy_code(lambda x: [(x * MANY).grad_fn._saved_other for _ in range(3)])(xp.tensor(x, requires_grad=True))
    assert all(np.shares_memory(values(kept[0]), values(z)) for z in kept)
    assert not np.shares_memory(values(kept[0]), MANY)
