"""Law: every function gives the results of the NumPy backend in every dtype, or a `CapabilityError` that names function and dtype."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
HALF = ("float16", "bfloat16")
REAL = (*HALF, "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *REAL, *COMPLEX)

_FLOATING = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2",
             "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh")  # fmt: skip
_NUMERIC = ("abs", "negative", "positive", "round", "sign", "square", "isfinite", "isinf", "isnan", "conj", "imag", "real")
_PAIRS = ("add", "subtract", "multiply", "pow", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum",
          "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "atan2", "copysign", "hypot",
          "logaddexp", "nextafter", "logical_and", "logical_or", "logical_xor")  # fmt: skip

#: Expressions by function, over `x` and `y` of the dtype (no zeros in `y`), `a` (a regular matrix), a mask and integer arrays.
PROGRAMS: dict[str, tuple[str, ...]] = {
    **{name: (f"xp.{name}(x)",) for name in (*_FLOATING, *_NUMERIC, "ceil", "floor", "trunc", "signbit", "logical_not", "bitwise_invert")},
    **{name: (f"xp.{name}(x, y)", f"xp.{name}(x, 2)", f"xp.{name}(2, x)", f"xp.{name}(x, 1.5)") for name in _PAIRS},
    **{name: (f"xp.{name}(x, y)", f"xp.{name}(x, 2)", f"xp.{name}(2, y)") for name in ("floor_divide", "remainder", "divide")},
    **{name: (f"xp.{name}(x)", f"xp.{name}(x, axis=0)", f"xp.{name}(x, axis=())") for name in
       ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any")},
    **{name: (f"xp.{name}(x)", f"xp.{name}(x, axis=1)") for name in ("argmax", "argmin", "count_nonzero")},
    **{name: (f"xp.{name}(x)", f"xp.{name}(x, axis=0, descending=True)") for name in ("sort", "argsort")},
    **{name: (f"xp.{name}(x)",) for name in ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack",
                                             "matrix_transpose", "zeros_like", "ones_like", "from_dlpack")},
    **{name: (f"xp.{name}(x, axis=1)", f"xp.{name}(x, axis=0, include_initial=True)") for name in ("cumulative_sum", "cumulative_prod")},
    **{name: (f"xp.{name}(3, dtype=x.dtype, device=x.device)",) for name in ("zeros", "ones", "eye", "arange")},
    "empty": ("xp.empty(0, dtype=x.dtype, device=x.device)",), "empty_like": ("xp.empty_like(x[:0])",),
    "full": ("xp.full((2,), 1, dtype=x.dtype, device=x.device)",), "full_like": ("xp.full_like(x, 1)", "xp.full_like(x, x[0, 0])"),
    "linspace": tuple(f"xp.linspace(0, 4, {n}, dtype=x.dtype, device=x.device, endpoint={end})" for n, end in ((5, True), (3, False))),
    "isclose": ("xp.isclose(x, y)",), "allclose": ("xp.allclose(x, y)",), "isin": ("xp.isin(x, y[0])",),
    "searchsorted": ("xp.searchsorted(s, x)",
                     "xp.searchsorted(s, x[0], side='right')", "xp.searchsorted(x[0], s, sorter=xp.argsort(x[0]))"),
    "clip": ("xp.clip(x, 1, 2)", "xp.clip(x, y, None)", "xp.clip(x, None, 2)", "xp.clip(x, y, y)"),
    "where": ("xp.where(m, x, y)", "xp.where(m, x, 1)"), "asarray": ("xp.asarray(x, copy=True)",),
    "astype": tuple(f"xp.astype(x, '{d}')" for d in DTYPES if d != "bfloat16"),
    "tril": ("xp.tril(x)",), "triu": ("xp.triu(x, k=1)",), "take": ("xp.take(x, i, axis=1)",),
    "__getitem__": ("x[0]", "x[:, ::-1]", "x[i]", "x[m]", "x[i, i]", "x[..., None, 1]"),
    "take_along_axis": ("xp.take_along_axis(x, j, axis=1)",), "reshape": ("xp.reshape(x, (3, 2))", "xp.reshape(x.T, (6,))"),
    "squeeze": ("xp.squeeze(x[:1], axis=0)",), "expand_dims": ("xp.expand_dims(x, axis=0)",), "moveaxis": ("xp.moveaxis(x, 0, 1)",),
    "permute_dims": ("xp.permute_dims(x, (1, 0))",), "transpose": ("xp.transpose(x)",),
    "broadcast_to": ("xp.broadcast_to(x, (2, 2, 3))",), "tile": ("xp.tile(x, (2, 1))",),
    "flip": ("xp.flip(x)", "xp.flip(x, axis=1)"), "roll": ("xp.roll(x, 1)", "xp.roll(x, 1, axis=1)"), "stack": ("xp.stack([x, y])",),
    "concat": ("xp.concat([x, y], axis=1)", "xp.concat([x, y], axis=None)"), "pad": ("xp.pad(x, 1)",),
    "matmul": ("x @ y.T", "x[0] @ y[0]", "xp.stack([x, y]) @ y.T", "x @ y[0]"), "vecdot": ("xp.vecdot(x, y)",),
    "tensordot": ("xp.tensordot(x, y, axes=2)",), "einsum": ("xp.einsum('ij,ij->i', x, y)",), "diff": ("xp.diff(x)",),
    "meshgrid": ("xp.meshgrid(x[0], y[0])",), "broadcast_arrays": ("xp.broadcast_arrays(x, y[0])",),
    "repeat": ("xp.repeat(x, 2)", "xp.repeat(x, 2, axis=1)"), "result_type": ("xp.result_type(x, y)",),
    **{f"linalg.{name}": (f"xp.linalg.{name}(x)",) for name in ("diagonal", "matrix_norm", "matrix_transpose", "pinv", "svdvals", "trace",
                                                                "vector_norm")},
    **{f"linalg.{name}": (f"xp.linalg.{name}(a)",) for name in ("cholesky", "det", "eigvalsh", "inv", "matrix_rank", "slogdet")},
    "linalg.eig": ("xp.sum(xp.abs(xp.linalg.eig(a)[0]))",), "linalg.eigvals": ("xp.sum(xp.linalg.eigvals(a) ** 2)",),
    "linalg.qr": ("xp.abs(xp.linalg.qr(a)[1])",), "linalg.svd": ("xp.linalg.svd(x)[1]",), "linalg.eigh": ("xp.linalg.eigh(a)[0]",),
    "linalg.solve": ("xp.linalg.solve(a, x)", "xp.linalg.solve(a, x[:, 0])"), "linalg.cross": ("xp.linalg.cross(x, y)",),
    "linalg.matrix_power": ("xp.linalg.matrix_power(a, 3)", "xp.linalg.matrix_power(a, -1)"),
    "linalg.outer": ("xp.linalg.outer(x[0], y[0])",),
    "linalg.matmul": ("xp.linalg.matmul(x, y.T)",), "linalg.tensordot": ("xp.linalg.tensordot(x, y, axes=2)",),
    "linalg.vecdot": ("xp.linalg.vecdot(x, y)",),
    **{f"fft.{name}": (f"xp.fft.{name}(x)",) for name in ("fft", "ifft", "fftn", "ifftn", "rfft", "rfftn", "irfft", "irfftn", "hfft",
                                                          "ihfft", "fftshift", "ifftshift")},
    **{f"fft.{name}": (f"xp.fft.{name}(4, dtype=x.dtype, device=x.device)",) for name in ("fftfreq", "rfftfreq")},
    "x[key] = value": ("x.__setitem__(0, 1)", "x.__setitem__(i, y[i])", "x.__setitem__(m, 1)", "x.__setitem__(m, y[m])",
                       "x.__setitem__((slice(None), slice(None, None, -1)), y)", "x.__setitem__((i, i), 1)"),
    "in place": ("x.__iadd__(y)", "x.__isub__(y)", "x.__imul__(y)", "x.__ifloordiv__(y)", "x.__imod__(y)", "x.__ipow__(2)", "x.__iand__(y)",
                 "x.__ilshift__(y)", "x.__irshift__(y)", "x.zero_()", "x.fill_(2)", "x.copy_(y)", "x.clamp_(1, 2)"),
}  # fmt: skip

#: Functions about dtypes, which compute no array.
NOT_COMPUTED = {"can_cast", "finfo", "iinfo", "isdtype"}

_ORDER = ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "clip", "max", "min", "argmax", "argmin", "sort",
          "argsort", "searchsorted", "isin")  # fmt: skip
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
_LINALG = tuple(f"linalg.{name}" for name in ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_power",
                                              "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd", "svdvals"))  # fmt: skip
#: By dtype: functions that may be missing. The standard does not define the order and rounding of complex numbers, arithmetic of bools, and
#: bits of floats. It does define linear algebra in half precision, which NumPy lacks as well.
REFUSED: dict[str, set[str]] = {
    "bool": {"abs", "ceil", "floor", "round", "trunc", "negative", "subtract", "floor_divide", "remainder", "pow", "bitwise_left_shift",
             "bitwise_right_shift", "matmul", "tensordot", "vecdot", "einsum", "diff", "linalg.matmul", "linalg.tensordot", "linalg.vecdot",
             "linalg.matrix_power", "linalg.cross", "linalg.outer", "in place", "clip",
             "searchsorted", *_BITS},
    **{dtype: {*_BITS} for dtype in INTEGERS},  # with a float as the other operand
    **{dtype: {*_BITS, "bitwise_invert", "in place"} for dtype in ("float32", "float64")},
    **{dtype: {*_BITS, "bitwise_invert", "in place", *_LINALG} for dtype in HALF},
    **{dtype: {*_ORDER, *_BITS, "bitwise_invert", "ceil", "floor", "trunc", "signbit", "atan2", "copysign", "hypot", "nextafter",
               "floor_divide", "remainder", "in place"} for dtype in COMPLEX},
}  # fmt: skip
#: By function: the missing functions that it calls, which the error may name instead.
WITHIN = {
    "tensordot": "matmul", "linalg.tensordot": "matmul", "linalg.matmul": "matmul", "vecdot": "matmul|multiply", "linalg.vecdot": "matmul",
    "einsum": "matmul", "diff": "subtract", "linalg.matrix_power": "linalg.inv|matmul", "isin": "sort|searchsorted",
    "searchsorted": "argsort|searchsorted", "clip": "clip|maximum|minimum", "linalg.outer": "multiply",
    "in place": "floor_divide|remainder|subtract|pow|bitwise_and|bitwise_left_shift|bitwise_right_shift|clip",
}  # fmt: skip
#: Functions that the standard defines for floats only. NumPy's results for integers are less precise, or are integers.
FLOATING_ONLY = {*_FLOATING, "atan2", "copysign", "hypot", "logaddexp", "nextafter"}


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, (tuple, list)) else [result]


def scope(device: str, dtype: str) -> dict[str, Any]:
    def made(data: Any) -> Any:
        host = np.asarray(data).astype("float64" if dtype == "bfloat16" else dtype)
        if dtype != "bfloat16":
            return xp.asarray(host, device=device)
        # NumPy has no bfloat16, so the results are compared with those of float32.
        return xp.astype(xp.asarray(host, device=device), "float32" if device == "numpy" else dtype)

    x = made([[1, 0, 2], [3, 2, 3]])
    constants = {"m": [[True, False, True], [False, True, True]], "i": [1, 0, 1], "j": [[1, 0], [2, 2]]}
    return {
        "xp": xp, "x": x, "y": made([[2, 1, 3], [3, 1, 1]]), "a": made([[3, 1], [1, 2]]), "s": made([0, 1, 3]),
        **{name: xp.asarray(np.asarray(value), device=device) for name, value in constants.items()},
    }  # fmt: skip


def evaluate(text: str, device: str, dtype: str) -> Any:
    """Return the arrays of an expression's result, or its exception; for a write, the array that was written to."""
    names = scope(device, dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = eval(text, names)
        except Exception as exc:  # noqa: BLE001 (an error is an outcome)
            return exc
    return [names["x"]] if ".__setitem__" in text else leaves(result)


def check(name: str, dtype: str, text: str, expected: Any, found: Any) -> None:
    for e, f in zip(expected, found, strict=True):
        if not isinstance(e, xp.Tensor):
            assert f == e or dtype == "bfloat16", (text, dtype)
            continue
        e, f = e.detach(), f.detach()
        same = e.dtype.name == ("float32" if f.dtype is xp.bfloat16 else f.dtype.name)
        outside = (name in FLOATING_ONLY and dtype in ("bool", *INTEGERS)) or dtype == "bool"
        assert same or outside, (text, dtype, e.dtype, f.dtype)
        assert f.shape == e.shape, (text, dtype)
        rough = dtype in HALF or (outside and e.dtype.name == "float16")
        tolerance = 4e-2 if dtype == "bfloat16" else 3e-3 if rough else 1e-5
        if not (name == "reciprocal" and outside):  # NumPy's result is rounded to an integer
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=tolerance, atol=tolerance, err_msg=f"{text} {dtype}")


def check_refusal(name: str, dtype: str, text: str, found: Exception) -> None:
    """Check that an error is the documented one, names the function, the dtype, the device and a remedy, and is expected."""
    assert isinstance(found, xp.CapabilityError), (text, dtype, found)
    assert isinstance(found.__cause__, (RuntimeError, TypeError)), (text, dtype)
    message = str(found)
    wanted = WITHIN.get(name, re.escape(name))
    named = dtype if " 1.5)" not in text or dtype in COMPLEX or dtype in REAL else f"{dtype}|float64"
    assert re.search(rf"`({wanted}|{re.escape(name)})` of dtype .*\b({named})\b.* on 'torch:cpu': ", message), (text, dtype, message)
    assert "x.to_device('numpy')" in message
    assert name in REFUSED[dtype], (text, dtype, message)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_computes_as_numpys_or_names_the_dtype_that_is_missing(name: str) -> None:
    for dtype, text in itertools.product(DTYPES, PROGRAMS[name]):
        expected, found = evaluate(text, "numpy", dtype), evaluate(text, "torch", dtype)
        if isinstance(found, xp.CapabilityError):
            check_refusal(name, dtype, text, found)
        elif isinstance(found, Exception):
            # xpgrad's own checks are the same for both.
            assert type(found) is type(expected), (text, dtype, found)
            ours, theirs = (re.sub(r"\b(u?int|b?float)\d+", "DTYPE", str(error)) for error in (found, expected))
            assert ours == theirs, (text, dtype)
        elif not isinstance(expected, Exception):
            check(name, dtype, text, expected, found)


def test_no_function_is_left_out() -> None:
    functions = {name for table in (RULES, NONDIFFERENTIABLE, COMPOSITE) for name in table}
    extensions = {f"{m}.{name}" for m in ("linalg", "fft") for name in getattr(xp, m).__all__ if name.islower()}
    assert (functions | extensions) - set(PROGRAMS) - NOT_COMPUTED == set()


UNSIGNED = {"uint16": 16, "uint32": 32, "uint64": 64}
#: Functions of two operands; shifts are by less than the width, as the standard requires.
ARITHMETIC = ("add", "subtract", "multiply", "pow", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal",
              "not_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "divide")  # fmt: skip
DIVISIONS, SHIFTS = ("floor_divide", "remainder"), ("bitwise_left_shift", "bitwise_right_shift")


def unsigned(width: int) -> list[int]:
    """Return numbers near those at which the signed integer with the same bits changes its sign or overflows."""
    half = 1 << (width - 1)
    return [0, 1, 2, 3, 7, width - 1, half - 1, half, half + 1, half + 12345, 2 * half - 2, 2 * half - 1]


def on_both(values: Any, dtype: str) -> tuple[Any, Any]:
    host = np.asarray(values, dtype=dtype)
    return xp.asarray(host), xp.asarray(host, device="torch")


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_integers_wrap_divide_shift_and_compare_as_numpys(dtype: str) -> None:
    width, values = UNSIGNED[dtype], unsigned(UNSIGNED[dtype])
    pairs = dict.fromkeys(ARITHMETIC, values) | dict.fromkeys(DIVISIONS, values[1:]) | dict.fromkeys(SHIFTS, tuple(range(width)))
    with np.errstate(all="ignore"):
        for name, others in pairs.items():
            function = getattr(xp, name)
            (x, t), (y, u) = on_both([[v] for v in values], dtype), on_both(list(others), dtype)
            expected, found = function(x, y), function(t, u)
            assert found.dtype == expected.dtype, name
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-15 * (name == "divide"), err_msg=name)
            for scalar in others:
                scalar = min(scalar, 2**63 - 1) if name.startswith("logical") else scalar  # NumPy accepts no larger integers
                results = [(function(x, scalar), function(t, scalar))]
                if name not in (*DIVISIONS, *SHIFTS):
                    results.append((function(scalar, x), function(scalar, t)))
                for expected, found in results:
                    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-15 * (name == "divide"), err_msg=f"{name} {scalar}")
    for scalar in (-1, 1 << width, (1 << width) + 5):
        for name in ("less", "greater_equal", "equal", "not_equal"):
            (x, t), function = on_both(values, dtype), getattr(xp, name)
            np.testing.assert_array_equal(function(t, scalar).numpy(), function(x, scalar).numpy(), err_msg=f"{name} {scalar}")
        with pytest.raises(OverflowError, match="does not fit in dtype"):
            t + scalar


SELECTIONS = ("xp.sort(x)", "xp.sort(x, descending=True)", "xp.argsort(x)", "xp.max(x)", "xp.min(x[5:])",
              "xp.max(x, axis=0, keepdims=True)",
              "xp.argmax(x)", "xp.argmin(x)", "xp.searchsorted(xp.sort(x), x)", "xp.isin(x, x[7:])", "xp.clip(x, x[3], x[8])",
              "xp.clip(x, 3, int(x[8]))", "xp.unique_values(x)", "xp.sum(x)", "xp.prod(x[1:])", "xp.cumulative_sum(x)", "xp.flip(x)",
              "xp.diff(x)", "-x", "~x", "abs(x)", "xp.sign(x)", "xp.square(x)", "x @ x", "xp.astype(x, xp.float64)", "x[::-2]",
              "x[[0, 9, 0]]",
              "xp.nonzero(x)[0]", "xp.logical_not(x)", "xp.take_along_axis(x, xp.argsort(x), axis=0)",
              "xp.tril(xp.stack([x, x]))")  # fmt: skip


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_large_unsigned_integers_are_ordered_moved_and_added_as_numpys(dtype: str) -> None:
    order = np.random.default_rng(0).permutation(12)
    x, t = on_both(np.asarray(unsigned(UNSIGNED[dtype]), dtype=dtype)[order], dtype)
    with np.errstate(all="ignore"):
        for text in SELECTIONS:
            for strided in (False, True):  # the same in memory with gaps
                results = []
                for value in (x, t):
                    value = xp.stack([value, value], axis=1)[:, 0] if strided else value
                    with xp.default_device(value.device):
                        results.append(eval(text, {"xp": xp, "x": value}))
                assert results[1].dtype == results[0].dtype, text
                np.testing.assert_array_equal(results[1].numpy(), results[0].numpy(), err_msg=text)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_writes_of_unsigned_integers_are_seen_through_their_views(dtype: str) -> None:
    raw = xp.asarray(np.arange(6).astype(dtype).reshape(2, 3), device="torch")
    view = raw[:, 1:]
    high = 2 ** UNSIGNED[dtype] - 1
    view[:, ::-1] = xp.asarray(np.asarray([[high, 7], [8, 9]], dtype=dtype), device="torch")
    assert raw.tolist() == [[0, 7, high], [3, 9, 8]]
    view[view > 8] = high - 1
    assert raw.tolist() == [[0, 7, high - 1], [3, high - 1, 8]]
    view += 3
    assert raw.tolist() == [[0, 10, 1], [3, 1, 11]]
    view[[1, 1], [0, 1]] = high
    assert raw.tolist() == [[0, 10, 1], [3, high, high]]


#: Expressions whose gradients are compared in every floating dtype: those above that floats support.
GRADIENTS = sorted(
    {text for name in PROGRAMS for text in PROGRAMS[name] if (name in RULES or name.startswith(("linalg.", "fft."))) and "x" in text}
    - {"xp.asarray(x, copy=True)"} | {"xp.max(x * y)", "xp.prod(x * x)", "xp.linalg.det(a * a)"}
)  # fmt: skip


def gradient(text: str, device: str, dtype: str) -> Any:
    """Return the gradients of the sum of the real parts of all results by `x` and `a`, as NumPy arrays, or the exception."""
    names = scope(device, dtype)
    for name in ("x", "a"):
        names[name].requires_grad_()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            parts = [part for part in leaves(eval(text, names)) if isinstance(part, xp.Tensor) and part.requires_grad]
            for part in parts:
                xp.sum(xp.real(part * part)).backward()
        except Exception as exc:  # noqa: BLE001 (an error is an outcome)
            return exc
    return [None if names[n].grad is None else names[n].grad.numpy() for n in ("x", "a")]


@pytest.mark.parametrize("dtype", [*HALF, "float32", *COMPLEX])
def test_a_gradient_is_numpys_or_the_error_names_the_dtype(dtype: str) -> None:
    compared = 0
    for text in GRADIENTS:
        exact = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
        expected, found = gradient(text, "numpy", exact), gradient(text, "torch", dtype)
        if isinstance(found, xp.CapabilityError):
            assert re.search(rf"`[\w.]+` of dtype .*\b{dtype}\b.* on 'torch:cpu': ", str(found)), (text, found)
            continue
        if isinstance(found, Exception):
            assert type(found) is type(expected), (text, found)
            continue
        if isinstance(expected, Exception):
            continue
        for e, f in zip(expected, found, strict=True):
            assert (e is None) == (f is None), text
            if e is not None:
                tolerance = {"bfloat16": 0.1, "float16": 2e-2}.get(dtype, 1e-4)
                size = np.max(np.abs(e[np.isfinite(e)]), initial=1.0)
                np.testing.assert_allclose(f, e, rtol=tolerance, atol=tolerance * float(size), err_msg=text)
                compared += 1
    assert compared > 60


def test_a_gradient_that_numpy_does_not_have_is_that_of_differences() -> None:
    checked = []
    for text in GRADIENTS:
        found = gradient(text, "torch", "complex128")
        if isinstance(found, Exception) or not isinstance(gradient(text, "numpy", "complex128"), Exception):
            continue
        names = scope("torch", "complex128")
        arguments = [names[n].requires_grad_() for n in ("x", "y")]
        assert xp.autograd.gradcheck(lambda x, y, code=text, names=names: eval(code, {**names, "x": x, "y": y}), arguments), text
        checked.append(text)
    assert "xp.logaddexp(x, y)" in checked


def test_python_integers_of_more_than_64_bits_meet_floats_and_are_compared() -> None:
    for dtype in ("float64", "float32", "int64", "uint8"):
        x, t = on_both([3, 1, 127], dtype)
        for scalar in (2**64, 2**70, -(2**70)):
            for name in ("add", "multiply", "divide", "less", "equal") if dtype.startswith("float") else ("less", "equal", "greater"):
                for args, theirs in (((t, scalar), (x, float(scalar))), ((scalar, t), (float(scalar), x))):
                    found, expected = getattr(xp, name)(*args), getattr(xp, name)(*theirs)
                    assert found.tolist() == expected.tolist(), (name, dtype, scalar)
    top = xp.asarray([2**63 - 1], device="torch")
    assert (top == 2**63).tolist() == [False]
    assert (top < 2**63).tolist() == [True]
