"""Law: every parameter for a dtype accepts every spelling: xpgrad's, its name, NumPy's dtype and scalar type, and Python's types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._basics.dtypes import DTYPES

NAMES = tuple(name for name in DTYPES if name != "bfloat16")
PYTHON = {"bool": bool, "integral": int, "real floating": float, "complex floating": complex}
#: NumPy's further scalar types, named after C types, two of which may have the same representation.
FURTHER = ("byte", "ubyte", "short", "ushort", "intc", "uintc", "long", "ulong", "longlong", "ulonglong", "intp", "uintp", "single",
           "double", "half", "csingle", "cdouble", "bool_", "int_")  # fmt: skip


def spellings(name: str) -> list[Any]:
    """Return the spellings of ``xpgrad.NAME``."""
    dtype = np.dtype(name)
    further = [getattr(np, other) for other in FURTHER if hasattr(np, other) and np.dtype(getattr(np, other)) == dtype]
    out = [DTYPES[name], name, dtype, dtype.type, dtype.newbyteorder(), np.zeros(3, dtype).dtype, *further, *map(np.dtype, further)]
    return out + ([] if name != "bool" else [bool])


X = [[1, 0], [1, 1]]

#: Each public function with a parameter for a dtype, as a function of a dtype and a device that returns the dtype it understood.
TAKERS: dict[str, Callable[[Any, str], Any]] = {
    "arange": lambda d, device: xp.arange(2, dtype=d, device=device).dtype,
    "asarray": lambda d, device: xp.asarray(X, dtype=d, device=device).dtype,
    "astype": lambda d, device: xp.astype(xp.asarray(X, dtype="int32", device=device), d).dtype,
    "can_cast": lambda d, device: next(t for t in DTYPES.values() if xp.can_cast(d, t) and xp.can_cast(t, d)),
    "cumulative_prod": lambda d, device: xp.cumulative_prod(xp.ones(2, dtype="int8", device=device), dtype=d).dtype,
    "cumulative_sum": lambda d, device: xp.cumulative_sum(xp.ones(2, dtype="int8", device=device), dtype=d).dtype,
    "empty": lambda d, device: xp.empty(2, dtype=d, device=device).dtype,
    "empty_like": lambda d, device: xp.empty_like(xp.ones(2, device=device), dtype=d).dtype,
    "eye": lambda d, device: xp.eye(2, dtype=d, device=device).dtype,
    "fft.fftfreq": lambda d, device: xp.fft.fftfreq(4, dtype=d, device=device).dtype,
    "fft.rfftfreq": lambda d, device: xp.fft.rfftfreq(4, dtype=d, device=device).dtype,
    "finfo": lambda d, device: xp.finfo(d).dtype,
    "full": lambda d, device: xp.full(2, 1, dtype=d, device=device).dtype,
    "full_like": lambda d, device: xp.full_like(xp.ones(2, device=device), 1, dtype=d).dtype,
    "iinfo": lambda d, device: xp.iinfo(d).dtype,
    "isdtype": lambda d, device: next(t for t in DTYPES.values() if xp.isdtype(d, t)),
    "linalg.trace": lambda d, device: xp.linalg.trace(xp.ones((2, 2), dtype="int8", device=device), dtype=d).dtype,
    "linspace": lambda d, device: xp.linspace(0, 1, 2, dtype=d, device=device).dtype,
    "ones": lambda d, device: xp.ones(2, dtype=d, device=device).dtype,
    "ones_like": lambda d, device: xp.ones_like(xp.ones(2, device=device), dtype=d).dtype,
    "prod": lambda d, device: xp.prod(xp.ones(2, dtype="int8", device=device), dtype=d).dtype,
    "result_type": lambda d, device: xp.result_type(d, d),
    "sum": lambda d, device: xp.sum(xp.ones(2, dtype="int8", device=device), dtype=d).dtype,
    "tensor": lambda d, device: xp.tensor(X, dtype=d, device=device).dtype,
    "Tensor.new_empty": lambda d, device: xp.ones(2, device=device).new_empty((2,), dtype=d).dtype,
    "Tensor.new_full": lambda d, device: xp.ones(2, device=device).new_full((2,), 1, dtype=d).dtype,
    "Tensor.new_ones": lambda d, device: xp.ones(2, device=device).new_ones((2,), dtype=d).dtype,
    "Tensor.new_tensor": lambda d, device: xp.ones(2, device=device).new_tensor(X, dtype=d).dtype,
    "Tensor.new_zeros": lambda d, device: xp.ones(2, device=device).new_zeros((2,), dtype=d).dtype,
    "zeros": lambda d, device: xp.zeros(2, dtype=d, device=device).dtype,
    "zeros_like": lambda d, device: xp.zeros_like(xp.ones(2, device=device), dtype=d).dtype,
    "Tensor.prod": lambda d, device: xp.ones(2, dtype="int8", device=device).prod(dtype=d).dtype,
    "Tensor.sum": lambda d, device: xp.ones(2, dtype="int8", device=device).sum(dtype=d).dtype,
    "Tensor.astype": lambda d, device: xp.ones(2, dtype="int8", device=device).astype(d).dtype,
    "Tensor.to": lambda d, device: xp.ones(2, dtype="int8", device=device).to(d).dtype,
    "Tensor.to dtype": lambda d, device: xp.ones(2, dtype="int8", device=device).to(dtype=d).dtype,
}
#: Functions that do not return numbers of every kind, and the letters of the kinds that they return.
KINDS = {
    "fft.fftfreq": ("f",), "fft.rfftfreq": ("f",), "finfo": ("f", "c"),
    "iinfo": ("i", "u"), "linspace": ("f", "c"),
    "arange": ("i", "u", "f"),
    **dict.fromkeys(
        ("cumulative_prod", "cumulative_sum", "linalg.trace", "prod", "sum", "Tensor.prod", "Tensor.sum"),
        ("i", "u", "f", "c"),
    ),
}  # fmt: skip


def _public() -> set[str]:
    """Return the names of public functions and methods with a parameter for a dtype."""
    found = set()
    for prefix, where in (("", xp), ("fft.", xp.fft), ("linalg.", xp.linalg), ("Tensor.", xp.Tensor)):
        names = getattr(where, "__all__", None) if isinstance(where, ModuleType) else [n for n in dir(where) if not n.startswith("_")]
        for name in names or dir(where):
            function = getattr(where, name)
            if name.startswith("_") or not callable(function):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            if {"dtype", "from_", "arrays_and_dtypes", "type", "target"} & set(parameters):
                found.add(prefix + name)
    return found


def test_every_function_that_takes_a_dtype_is_in_the_table() -> None:
    # The target of `export` is a language. xpgrad itself calls the second with its own dtypes; the others take floating dtypes only
    # (`tests/tape/test_torch_methods.py`).
    others = {"export", "Tensor.scalar", "Tensor.log_softmax", "Tensor.norm", "Tensor.softmax"}
    assert _public() - {name.split()[0] for name in TAKERS} <= others


def _expected(taker: str, dtype: Any) -> Any:
    return xp.float32 if taker == "finfo" and dtype is xp.complex64 else xp.float64 if taker == "finfo" and dtype.is_complex else dtype


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("taker", TAKERS)
def test_every_spelling(taker: str, name: str, xpgrad_device: str) -> None:
    dtype = DTYPES[name]
    if dtype.kind not in KINDS.get(taker, (dtype.kind,)):
        pytest.skip(f"{taker} makes no {name}")
    if dtype not in xp.zeros(1, dtype="float32", device=xpgrad_device).backend.dtypes():
        pytest.skip(f"{xpgrad_device} has no {name}")
    for spelling in spellings(name):
        assert TAKERS[taker](spelling, xpgrad_device) is _expected(taker, dtype), repr(spelling)


@pytest.mark.parametrize("taker", TAKERS)
def test_pythons_types_are_the_defaults_of_their_kind(taker: str, xpgrad_device: str) -> None:
    default = xp.zeros(1, dtype="float32", device=xpgrad_device).default_dtype
    for kind, spelling in PYTHON.items():
        dtype = xp.bool if kind == "bool" else default(kind)
        if dtype.kind in KINDS.get(taker, (dtype.kind,)):
            found = TAKERS[taker](spelling, xpgrad_device)
            assert found.kind == _expected(taker, dtype).kind
            if taker not in ("can_cast", "finfo", "iinfo", "isdtype", "result_type"):  # these take no device
                assert found is dtype


@pytest.mark.parametrize("name", NAMES)
def test_numpys_codes(name: str) -> None:
    dtype = np.dtype(name)
    codes = [dtype.str, dtype.char, dtype.str[1:], *(other for other in (*FURTHER, "float", "int") if np.dtype(other) == dtype)]
    for code in codes:
        found = xp.zeros(2, dtype=code).dtype
        assert found is DTYPES[name]
        assert found == code
    assert not any(DTYPES[name] == np.dtype(other).str for other in NAMES if other != name)


def test_the_dtype_of_a_gradient() -> None:
    x = xp.ones(2, requires_grad=True)
    for spelling in spellings("float64"):
        x.grad_dtype = spelling
        assert x.grad_dtype is xp.float64


@pytest.mark.parametrize(
    "bad", [object, np.dtype("O"), np.dtype("M8[s]"), np.dtype([("a", "f4")]), np.str_, np.floating, "f3", ">f8", "O", "quadruple", 3, np]
)
def test_what_is_no_dtype(bad: Any) -> None:
    with pytest.raises(TypeError, match="is not a data type; use one of xpgrad's"):
        xp.zeros(2, dtype=bad)


@pytest.mark.parametrize("name", NAMES)
def test_numpys_code_takes_the_branch_of_the_same_dtype(name: str) -> None:
    """Code that was written for NumPy asks for `kind` and compares dtypes."""
    ours, theirs = DTYPES[name], np.dtype(name)
    assert (ours.name, ours.kind, ours.itemsize) == (theirs.name, theirs.kind, theirs.itemsize)
    for other in map(np.dtype, NAMES):
        assert (ours == other, ours == other.type, other == ours) == ((theirs == other,) * 3)


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_has_what_numpys_has(name: str) -> None:
    ours, theirs = DTYPES[name], np.dtype(name)
    for attribute in ("type", "char", "str", "num", "names", "hasobject", "isnative", "byteorder"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert np.result_type(xp.ones(2, dtype=name), theirs.type) == theirs
    assert np.dtype(ours) == theirs
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":  # older versions take what converts to a dtype for an array
        assert not np.iscomplexobj(ours)
        np.testing.assert_equal(ours, ours)
    with pytest.raises(AttributeError, match="nothing"):
        ours.nothing
    with pytest.raises(AttributeError, match="bfloat16 has no NumPy counterpart"):
        xp.bfloat16.char


@pytest.mark.parametrize("kind", [other for other in FURTHER if hasattr(np, other)])
def test_arrays_of_every_type_of_c_are_data(kind: str, xpgrad_device: str) -> None:
    array = np.asarray([1, 0, 1], dtype=getattr(np, kind))
    try:
        dtype = xp.ones(1, dtype=array.dtype.name, device=xpgrad_device).dtype
    except (TypeError, xp.errors.CapabilityError):
        pytest.skip(f"{xpgrad_device} has no {array.dtype.name}")
    for x in (xp.asarray(array, device=xpgrad_device), xp.tensor(array, device=xpgrad_device), xp.from_dlpack(array, device=xpgrad_device)):
        assert x.dtype is dtype
        np.testing.assert_array_equal(x.numpy(), array)
    if dtype is xp.uint64:
        assert xp.asarray(2**63, device=xpgrad_device).tolist() == 2**63
