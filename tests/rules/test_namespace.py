"""Law: the package is a namespace of the Array API standard 2025.12: its names, signatures, values, dtypes and errors.

The names are the standard's own list. Values and dtypes are compared with array-api-strict, the reference namespace, if that
one accepts the arguments; further tables cover what xpgrad accepts beyond it.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import check, has_float64, values
from xpgrad import func
from xpgrad._rows.kernels import KERNELS
from xpgrad._rows.namespace import COMPOSITE, EXTRAS, NONDIFFERENTIABLE, RULES
from xpgrad.backend import spellings

CHAPTERS = {
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros "
    "zeros_like",
    "data types": "astype can_cast finfo iinfo isdtype result_type",
    "unary": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log1p "
    "log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc",
    "binary": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide "
    "greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter "
    "not_equal pow remainder subtract",
    "other elementwise": "clip where",
    "indexing": "take take_along_axis",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile "
    "unstack",
    "searching": "argmax argmin count_nonzero nonzero searchsorted",
    "sets": "isin unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistical": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
}
FUNCTIONS = [name for names in CHAPTERS.values() for name in names.split()]
#: Names of functions that take no arrays, or beyond the standard.
FURTHER = ["broadcast_shapes", "pad", "einsum", "isclose", "allclose", "tensor"]
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"]


def make_both(data: np.ndarray) -> tuple[Any, Any]:
    """Return the same array for xpgrad and for the reference."""
    return xp.asarray(data.copy()), strict.asarray(data.copy())


def agree(ours: Any, theirs: Any) -> None:
    """Assert equal values, shapes and dtypes, also in tuples."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for pair in zip(ours, theirs):
            agree(*pair)
        return
    assert isinstance(ours, xp.Tensor)
    assert ours.shape == theirs.shape
    assert str(ours.dtype) == str(theirs.dtype).rpartition(".")[2]
    tolerance = 1e-5 if str(ours.dtype) in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=tolerance, atol=tolerance)


def call_quietly(call: Callable[[], Any]) -> Any:
    """Return the result, without the array libraries' warnings about singular points."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


# -- names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_standard_exists_and_differentiates_in_one_way(name: str) -> None:
    function = getattr(xp, name)
    tables = [table for table in (RULES, NONDIFFERENTIABLE, COMPOSITE) if name in table]
    assert len(tables) == 1
    assert tables[0][name] is function
    assert function.__doc__


#: Defaults that earlier versions of the standard had.
EARLIER_DEFAULTS = {("expand_dims", "axis"): 0}

#: Parameters that NumPy and PyTorch take by position, in this order, and the standard by keyword only.
POSITIONAL: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ["all", "any", "argmax", "argmin", "argsort", "concat", "count_nonzero", "cumulative_prod", "cumulative_sum",
         "flip", "max", "mean", "min", "prod", "repeat", "roll", "sort", "stack", "std", "sum", "take", "take_along_axis", "unstack",
         "var"],
        ("axis",),
    ), "diff": ("n", "axis"), "tensordot": ("axes",), "tril": ("k",), "triu": ("k",),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_signature_of_the_standard(name: str) -> None:
    def parts(function: Any) -> list[tuple[Any, ...]]:
        found = []
        for p in inspect.signature(function).parameters.values():
            default = None if type(p.default).__name__ == "Undef" else p.default
            default = EARLIER_DEFAULTS.get((name, p.name), default)
            found.append((p.name, p.kind, default))
        return found

    also = POSITIONAL.get(name, ())

    def by_position(parameters: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the standard's parameters, with those in `also` after the positional ones."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        moved = sorted(((n, kind, d) for n, _, d in parameters if n in also), key=lambda p: also.index(p[0]))
        first = [p for p in parameters if p[1] is not inspect.Parameter.KEYWORD_ONLY]
        return first + moved + [p for p in parameters if p not in first and p[0] not in also]

    ours, theirs = parts(getattr(xp, name)), parts(getattr(strict, name))
    known = {p[0] for p in theirs}
    extra = [p for p in ours if p[0] not in known]
    assert [p for p in ours if p[0] in known] == by_position(theirs)
    # PyTorch's `requires_grad`, and NumPy's device for `astype`, are keyword-only, and PyTorch's separate lengths follow the first one, so
    # that no call of the standard changes its meaning.
    assert all((p[0] in ("requires_grad", "device") and p[1] is inspect.Parameter.KEYWORD_ONLY) or p[:2] == SIZES for p in extra)


SIZES = ("sizes", inspect.Parameter.VAR_POSITIONAL)


def test_no_function_is_in_two_tables() -> None:
    for one, two in itertools.combinations((RULES, NONDIFFERENTIABLE, COMPOSITE), 2):
        assert not set(one) & set(two)


def test_all_is_complete_and_dir_shows_it() -> None:
    assert len(set(xp.__all__)) == len(xp.__all__)
    names = set(dir(xp))
    for name in xp.__all__:
        getattr(xp, name)
        assert name in names
    assert {*FUNCTIONS, *FURTHER, *DTYPES, "e", "inf", "nan", "newaxis", "pi", "__array_namespace_info__"} <= set(xp.__all__)
    public = {n for n, v in vars(xp).items() if not n.startswith("_") and not inspect.ismodule(v) and n not in ("annotations", "Any")}
    assert public <= set(xp.__all__)


MADE_UP = {
    "elementwise": '''

@elementwise(lambda g, x: g * (x * x * 3), kernel=lambda xp, x: x * x * x)
def cubed(x: Tensor, /) -> Tensor:
    """Third power."""
''',
    "statistical": '''

@composite(method="spread")
def spread(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Standard deviation beside the mean."""
    return std(x, axis=axis, keepdims=keepdims) / mean(x, axis=axis, keepdims=keepdims)
''',
}
USED = """
import runpy, sys, xpgrad as xp
from xpgrad._rows.namespace import COMPOSITE, RULES
assert xp.__file__.startswith(sys.argv[1])
for name, table in (("cubed", RULES), ("spread", COMPOSITE)):
    assert getattr(xp, name) is table[name] and name in xp.__all__ and name in dir(xp) and hasattr(xp.Tensor, name)
x = xp.tensor([1.0, 2.0], requires_grad=True)
y = x * 1
assert y.cubed_() is y and xp.cubed(x).tolist() == x.cubed().tolist() == y.tolist() == [1.0, 8.0]
y.sum().backward()
assert x.grad.tolist() == [3.0, 12.0]
assert x.spread(dim=0, keepdim=True).tolist() == [0.5 / 1.5]
api = runpy.run_path(sys.argv[2])
assert {"xpgrad.cubed(x: 'Tensor', /) -> 'Tensor'", "xpgrad.Tensor.cubed(x: 'Tensor', /) -> 'Tensor'"} <= set(api["lines"]())
assert "def cubed_(self) -> Tensor:" in api["declared_stub"]()
"""


def test_a_function_written_into_a_chapter_is_public_and_a_method_with_no_other_edit(tmp_path: Path) -> None:
    package = shutil.copytree(Path(xp.__file__).parent, tmp_path / "xpgrad", ignore=shutil.ignore_patterns("__pycache__"))
    for chapter, declared in MADE_UP.items():
        file = package / "rules" / f"{chapter}.py"
        text = file.read_text(encoding="utf-8").replace("import front, rule", "import composite, front, rule")
        name = declared.partition("def ")[2].partition("(")[0]
        file.write_text(f'{text}{declared}\n\n__all__ += ["{name}"]\n', encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    paths = [str(tmp_path), str(root / "docs" / "_ext"), *sys.path]
    command = [sys.executable, "-c", USED, str(tmp_path), str(root / "tests" / "project" / "test_api.py")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)})


def test_the_package_is_the_namespace() -> None:
    assert xp.asarray(1.0).__array_namespace__() is xp
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match="2019"):
        xp.asarray(1.0).__array_namespace__(api_version="2019.12")


def test_constants() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)


# -- inspection ---------------------------------------------------------------------------------------------------------


def test_inspection_gives_what_the_standard_asks_for() -> None:
    assert hasattr(xp, "__array_namespace_info__")
    info, reference = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities() == reference.capabilities()
    assert info.default_device() in info.devices()
    assert info.default_device() == "numpy"
    kinds = ("real floating", "complex floating", "integral", "indexing")
    assert info.default_dtypes() == dict(zip(kinds, (xp.float64, xp.complex128, xp.int64, xp.int64)))
    assert info.default_dtypes(device="numpy") == info.default_dtypes()
    assert set(info.dtypes()) == set(reference.dtypes())
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
                 ("bool", "real floating")):  # fmt: skip
        assert set(info.dtypes(kind=kind)) == set(reference.dtypes(kind=kind))
    assert all(getattr(xp, name) is dtype for name, dtype in info.dtypes(device=info.default_device()).items())
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="floating")


# -- dtypes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", DTYPES)
def test_promotion_table(one: str) -> None:
    a = getattr(xp, one)
    for two in DTYPES:
        b = getattr(xp, two)
        try:
            expected: Any = str(strict.result_type(getattr(strict, one), getattr(strict, two))).rpartition(".")[2]
        except TypeError:
            kinds = {k: d for d in (a, b) for k in ("bool", "integral") if xp.isdtype(d, k)}
            if len(kinds) == 1:  # for different kinds: the dtype of the other operand
                expected = str(b if a in kinds.values() else a)
            elif len(kinds) == 2:
                expected = str(kinds["integral"])
            else:
                expected = None
        if {one, two} in ({"uint64", s} for s in ("int8", "int16", "int32", "int64")):
            expected = None
        if expected is None:
            with pytest.raises(TypeError, match="do not promote"):
                xp.result_type(a, b)
            with pytest.raises(TypeError, match="do not promote"):
                xp.ones(2, dtype=a) * xp.ones(2, dtype=b)
        else:
            assert str(xp.result_type(a, b)) == expected
            assert str((xp.ones(2, dtype=a) * xp.ones((), dtype=b)).dtype) == expected


SCALARS = [
    ("bool", True, "bool"), ("bool", 1, "int64"), ("bool", 1.0, "float64"), ("bool", 1j, "complex128"), ("int8", True, "int8"),
    ("int8", 1, "int8"), ("uint64", 1, "uint64"), ("int8", 1.0, "float64"), ("int32", 1j, "complex128"), ("float32", 1, "float32"),
    ("float32", 1.0, "float32"), ("float32", 1j, "complex64"), ("float64", 1j, "complex128"), ("complex64", 1.0, "complex64"),
    ("float32", np.float64(1), "float32"), ("float16", 2.0, "float16"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scalar", "expected"), SCALARS)
def test_scalars_are_weak(name: str, scalar: Any, expected: str) -> None:
    x = xp.ones(3, dtype=name)
    assert str(xp.result_type(x, scalar)) == expected
    assert str(xp.result_type(scalar, x.dtype)) == expected
    assert str((x * scalar).dtype) == expected
    assert str((scalar * x).dtype) == expected


def test_numpys_two_names_of_one_integer_are_one_dtype() -> None:
    one, two = (xp.asarray(np.asarray([1, 2], dtype=kind)) for kind in ("l", "q"))
    assert (one + two).tolist() == [2, 4]
    assert one.dtype is two.dtype


def test_result_type_takes_tensors_dtypes_and_scalars() -> None:
    x = xp.ones(3, dtype=xp.int8)
    assert xp.result_type(x) is xp.int8
    assert xp.result_type(x, xp.uint8, xp.float32, 1j, True) is xp.complex64
    assert xp.result_type(np.float32, "int8") is xp.float32
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type(1.0, 2)
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()
    assert xp.result_type(np.ones(3, dtype="float32"), 1j) is xp.complex64
    assert xp.result_type(np.ones(3, dtype="float32"), x) is xp.float32
    with pytest.raises(TypeError, match="asarray"):
        xp.result_type([1.0])


@pytest.mark.parametrize("name", DTYPES)
def test_questions_about_dtypes(name: str) -> None:
    ours, theirs = getattr(xp, name), getattr(strict, name)
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"):
        assert xp.isdtype(ours, kind) is strict.isdtype(theirs, kind)
    info = xp.iinfo if "int" in name else xp.finfo
    if name == "bool":
        with pytest.raises(TypeError):
            xp.iinfo(ours)
        return
    a, b = info(ours), getattr(strict, info.__name__)(theirs)
    fields = ("bits", "max", "min") if "int" in name else ("bits", "eps", "max", "min", "smallest_normal")
    if "complex" in name:
        fields = fields[1:]
    assert [getattr(a, f) for f in fields] == [getattr(b, f) for f in fields]


# -- values: elementwise -----------------------------------------------------------------------------------------------------

_SAMPLES = {
    "bool": [True, False, True, False],
    "signed integer": [0, 1, -3, 5],
    "unsigned integer": [0, 1, 3, 5],
    "real floating": [0.3, -0.5, 1.0, 2.5],
    "complex floating": [0.3 + 0.2j, -0.5j, 1.0 - 1.0j, 2.5],
}


def sample(dtype: str) -> np.ndarray:
    """Return four values of a dtype."""
    return np.asarray(_SAMPLES[getattr(xp, dtype).category], dtype=dtype)


@pytest.mark.parametrize("name", CHAPTERS["unary"].split())
def test_unary_functions(name: str) -> None:
    compared = 0
    for dtype in DTYPES:
        ours, theirs = make_both(sample(dtype))
        try:
            expected = call_quietly(lambda theirs=theirs: getattr(strict, name)(theirs))
        except TypeError:
            continue
        agree(call_quietly(lambda ours=ours: getattr(xp, name)(ours)), expected)
        compared += 1
    assert compared


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", CHAPTERS["binary"].split())
def test_binary_functions(name: str) -> None:
    compared = 0
    for one, two in itertools.product(DTYPES, DTYPES):
        data = (sample(one)[:, None], np.roll(sample(two), 1))
        if "shift" in name or (name == "pow" and "int" in two):
            data = (data[0], np.abs(data[1]))
        if name in ("floor_divide", "remainder"):
            data = (data[0], np.where(data[1] == 0, np.ones_like(data[1]), data[1]))
        pairs = [make_both(d) for d in data]
        try:
            expected = call_quietly(lambda pairs=pairs: getattr(strict, name)(*(p[1] for p in pairs)))
        except TypeError:
            continue
        agree(call_quietly(lambda pairs=pairs: getattr(xp, name)(*(p[0] for p in pairs))), expected)
        compared += 1
    assert compared


# -- values: the rest ------------------------------------------------------------------------------------------------------------

A = np.asarray([[0.5, -1.0, 2.0], [2.0, 0.0, -3.5]])
C = A + 1j * A[::-1]
I = np.asarray([[3, 1, 2], [0, 2, 2]], dtype=np.int8)  # noqa: E741 (an integer array)
U = I.astype(np.uint16)
B = I > 1
V = np.asarray([3.0, 1.0, 2.0, 1.0, 3.0])
INDEX = np.asarray([2, 0, 2])

#: name, arrays, options.
CALLS: list[tuple[str, tuple[np.ndarray, ...], dict[str, Any]]] = [
    *((name, (x,), {"axis": axis, "keepdims": keep}) for name in ("sum", "prod") for x in (A, C, I, U, A.astype("f4"))
      for axis in (None, 0, -1, (0, 1)) for keep in (False, True)),
    *((name, (x,), {"dtype": dtype}) for name in ("sum", "prod")
      for x, dtype in ((I, "int8"), (I, "float32"), (A, "complex64"), (U, "uint8"))),
    *((name, (x,), {"axis": axis, "keepdims": keep}) for name in ("mean", "std", "var") for x in (A, A.astype("f4"))
      for axis in (None, 1, (1, 0)) for keep in (False, True)),
    *(("mean", (x,), {"axis": axis}) for x in (C, C.astype("c8")) for axis in (None, 0)),
    *((name, (A,), {"axis": 1, "correction": c}) for name in ("std", "var") for c in (0, 1, 0.5, 1.5)),
    *((name, (x,), {"axis": axis, "keepdims": keep}) for name in ("max", "min") for x in (A, I, U) for axis in (None, 0, (0, 1))
      for keep in (False, True)),
    *((name, (x,), {"axis": axis, "include_initial": start}) for name in ("cumulative_sum", "cumulative_prod") for x in (A, C, I, U)
      for axis in (0, 1, -1) for start in (False, True)),
    *((name, (V,), {"dtype": dtype}) for name in ("cumulative_sum", "cumulative_prod") for dtype in (None, "float32", "complex128")),
    *((name, (x,), {"axis": axis, "keepdims": keep}) for name in ("all", "any") for x in (A, B) for axis in (None, 0, (0, 1))
      for keep in (False, True)),
    *((name, (x,), {"axis": axis, "keepdims": keep}) for name in ("argmax", "argmin") for x in (A, I) for axis in (None, 0, -1)
      for keep in (False, True)),
    *(("count_nonzero", (x,), {"axis": axis, "keepdims": keep}) for x in (A, B, I, C) for axis in (None, 0, (0, 1))
      for keep in (False, True)),
    *((name, (x,), {"axis": axis, "descending": down, "stable": True}) for name in ("sort", "argsort") for x in (A, I, V)
      for axis in (0, -1) for down in (False, True)),
    *(("nonzero", (x,), {}) for x in (A, B, I, C)),
    *(("searchsorted", (np.sort(V), q), {"side": side}) for q in (V, A) for side in ("left", "right")),
    ("searchsorted", (V[[0, 2, 1]], A), {"sorter": np.asarray([2, 1, 0])}),
    ("isin", (I, INDEX), {}),
    *((name, (x,), {}) for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all") for x in (V, I, B)),
    *(("diff", (x,), {"axis": axis, "n": n}) for x in (A, C, I) for axis in (0, 1, -1) for n in (0, 1, 2)),
    ("diff", (A,), {"prepend": A[:, :1], "append": A[:, :2]}),
    ("take", (A, INDEX), {"axis": 1}), ("take", (V, INDEX), {}), ("take_along_axis", (A, INDEX[None, :]), {"axis": 1}),
    *((name, (x, x), {"axes": n}) for name in ("tensordot",) for x in (A[:, :2],) for n in (0, 1, 2)),
    ("matmul", (A, A.T), {}), ("matmul", (C, V[:3]), {}), ("vecdot", (C, C), {}), ("vecdot", (A, A), {"axis": -2}),
    ("matrix_transpose", (A,), {}), ("permute_dims", (A,), {"axes": (1, 0)}), ("broadcast_to", (V,), {"shape": (2, 5)}),
    ("expand_dims", (A,), {"axis": 1}), ("flip", (A,), {}), ("flip", (A,), {"axis": 0}), ("reshape", (A,), {"shape": (3, -1)}),
    ("roll", (A,), {"shift": 2}), ("roll", (A,), {"shift": (1, 1), "axis": (0, 1)}), ("squeeze", (A[:, None],), {"axis": 1}),
    ("repeat", (A, INDEX), {"axis": 1}), ("unstack", (A,), {"axis": 1}), ("tril", (A,), {"k": 1}), ("triu", (A,), {"k": -1}),
    ("clip", (A,), {"min": 0.0, "max": 1.5}), ("where", (B, A, A * 2), {}), ("broadcast_arrays", (A, V[:3]), {}),
    ("meshgrid", (V, INDEX.astype(float)), {"indexing": "ij"}), ("meshgrid", (V, V[:2]), {}), ("zeros_like", (I,), {}),
    ("full_like", (A,), {"fill_value": 2}), ("ones_like", (A,), {"dtype": "int16"}),
]  # fmt: skip


def _convert(value: Any, place: int) -> Any:
    if isinstance(value, np.ndarray):
        return make_both(value)[place]
    if isinstance(value, str) and value in DTYPES:
        return getattr((xp, strict)[place], value)
    return value


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda k: f"{CALLS[k][0]}-{k}")
def test_values_and_dtypes(number: int) -> None:
    name, arrays, options = CALLS[number]
    ours, theirs = (
        getattr(space, name)(*(_convert(a, k) for a in arrays), **{key: _convert(v, k) for key, v in options.items()})
        for k, space in enumerate((xp, strict))
    )
    agree(ours, theirs)


def test_every_function_of_the_standard_has_values_in_these_tables() -> None:
    tested = {c[0] for c in CALLS} | {*CHAPTERS["unary"].split(), *CHAPTERS["binary"].split()} | {*CHAPTERS["data types"].split()}
    elsewhere = {"arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "linspace", "ones", "zeros", "concat", "stack",
                 "tile", "moveaxis"}  # fmt: skip
    assert set(FUNCTIONS) - tested <= elsewhere


CREATED = [
    ("arange", (5,), {}), ("arange", (1, 7, 2), {}), ("arange", (0.5, 3.0), {}), ("arange", (4,), {"dtype": "float32"}),
    ("eye", (3,), {}), ("eye", (2, 3), {"k": 1, "dtype": "int8"}), ("full", ((2, 3), 7), {}), ("full", (2, 1.5), {}),
    ("full", (2, True), {}), ("full", (2, 1j), {}), ("linspace", (0.0, 1.0, 5), {}), ("linspace", (0, 4, 4), {"endpoint": False}),
    ("linspace", (0j, 1j, 3), {}), ("ones", ((2, 0),), {}), ("zeros", (3,), {"dtype": "bool"}), ("asarray", ([1, 2],), {}),
    ("asarray", ([[1.0, 2]],), {"dtype": "complex64"}), ("asarray", (True,), {}), ("asarray", (2j,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), CREATED)
def test_creation(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    agree(*(getattr(space, name)(*args, **{k: _convert(v, i) for k, v in options.items()}) for i, space in enumerate((xp, strict))))


#: Calls, by name, of functions that create arrays from numbers, with a Tensor in place of each number in turn.
MAKERS: dict[str, Callable[[Any], Any]] = {
    "linspace, start": lambda v: xp.linspace(v, 5.0, 4), "linspace, stop": lambda v: xp.linspace(0.0, v, 4),
    "linspace, both": lambda v: xp.linspace(v, v * v, 4), "linspace, no end": lambda v: xp.linspace(v, 5.0, 3, endpoint=False),
    "linspace, one": lambda v: xp.linspace(v, 5.0, 1), "linspace, (1,)": lambda v: xp.linspace(xp.reshape(v, (1,)), 5.0, 3),
    "linspace, complex": lambda v: xp.abs(xp.linspace(v, 1j, 4)), "full": lambda v: xp.full((2, 2), v),
    "full_like": lambda v: xp.full_like(xp.ones(3, device=v.device), v), "asarray": lambda v: xp.asarray([v, 2.0, v * v]),
    "arange, stop": lambda v: xp.arange(v), "arange, start": lambda v: xp.arange(v, 5.0), "arange, step": lambda v: xp.arange(0.0, 5.0, v),
    "tensor": lambda v: xp.tensor([v, 1.0]), "eye": lambda v: xp.eye(v), "zeros": lambda v: xp.zeros(v), "ones": lambda v: xp.ones((v, 2)),
    "linspace, num": lambda v: xp.linspace(0.0, 1.0, v), "eye, k": lambda v: xp.eye(3, k=v),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MAKERS)
def test_no_function_that_makes_arrays_loses_a_derivative(name: str, xpgrad_device: str) -> None:
    """Law: an array created from a number that requires grad is differentiable in every mode, or `TypeError` is raised."""
    make = MAKERS[name]
    x = xp.tensor(1.5, device=xpgrad_device, requires_grad=True)
    try:
        out = make(x)
    except TypeError:
        with pytest.raises((TypeError, RuntimeError)):
            func.jvp(make, (x.detach(),), (xp.ones_like(x.detach()),))
        with pytest.raises((TypeError, RuntimeError)):
            func.grad(lambda v: xp.sum(make(v)))(x.detach())
        return
    assert out.requires_grad
    check(make, [np.array(1.5)], xpgrad_device)
    g = xp.autograd.grad(out, x, xp.ones_like(out))[0].item()
    near = {"rtol": 1e-12 if has_float64(xpgrad_device) else 1e-6}
    np.testing.assert_allclose(xp.sum(func.jvp(make, (x.detach(),), (xp.ones_like(x.detach()),))[1]).item(), g, **near)
    np.testing.assert_allclose(xp.sum(func.jacrev(make)(x.detach())).item(), g, **near)
    batch = xp.stack([x.detach(), x.detach() * 2.0])
    np.testing.assert_allclose(values(func.vmap(make)(batch)), np.stack([values(make(v)) for v in batch]), **near)
    np.testing.assert_allclose(xp.autograd.grad(xp.compile(lambda v: xp.sum(make(v)))(x), x)[0].item(), g, **near)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("ends", [(0.0, 10.0), (-3.3, 7.1), (1.0, 1.0), (0, 7), (2.5, -1e30), (1.0, 1j)])
def test_linspace_of_tensors_has_the_values_of_numbers(ends: Any, endpoint: bool) -> None:
    """Law: the values are NumPy's, bit for bit, and the last one is exactly `stop`."""
    for num in range(12):
        expected = np.linspace(*ends, num, endpoint=endpoint)
        for start, stop in ((xp.asarray(ends[0]), ends[1]), (ends[0], xp.asarray(ends[1])), tuple(map(xp.asarray, ends))):
            found = xp.linspace(start, stop, num, endpoint=endpoint)
            assert str(found.dtype) == str(expected.dtype)
            np.testing.assert_array_equal(found.numpy(), expected)
    single = xp.asarray(1.0, dtype=xp.float32)
    assert xp.linspace(single, 2.0, 3, endpoint=endpoint).dtype is xp.float32
    assert xp.linspace(single, 2.0, 3, dtype=xp.float64, endpoint=endpoint).dtype is xp.float64
    assert xp.linspace(xp.asarray(0.0), 7.5, 4, dtype=xp.int64).tolist() == np.linspace(0.0, 7.5, 4, dtype=np.int64).tolist()


def test_functions_of_several_arrays() -> None:
    (a, b), (i, j) = make_both(A), make_both(I)
    agree(xp.concat([a, a], axis=1), strict.concat([b, b], axis=1))
    agree(xp.concat([a, xp.astype(a, xp.float32)], axis=None), strict.concat([b, strict.astype(b, strict.float32)], axis=None))
    agree(xp.stack([i, i], axis=-1), strict.stack([j, j], axis=-1))
    agree(xp.tile(a, (2, 1, 2)), strict.tile(b, (2, 1, 2)))
    agree(xp.moveaxis(xp.stack([a, a]), 0, -1), strict.moveaxis(strict.stack([b, b]), 0, -1))


def test_results_with_names() -> None:
    x = xp.asarray([2.0, 1.0, 2.0])
    assert xp.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert xp.unique_counts(x)._fields == ("values", "counts")
    assert xp.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert xp.unique_inverse(xp.reshape(x, (3, 1))).inverse_indices.shape == (3, 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32"])
@pytest.mark.parametrize("name", ["mean", "std", "var"])
def test_means_of_integers_are_floating(name: str, dtype: str) -> None:
    data = np.asarray([1, 0, 1, 1], dtype=dtype)
    out = getattr(xp, name)(xp.asarray(data))
    assert out.dtype is xp.float64
    assert out.item() == pytest.approx(getattr(np, name)(data))


def test_float16_is_averaged_without_overflow() -> None:
    x = xp.full(3000, 100.0, dtype=xp.float16)
    assert xp.mean(x).item() == 100.0
    assert xp.mean(x).dtype is xp.float16


@pytest.mark.parametrize("name", ["std", "var"])
def test_spread_of_complex_numbers_is_real(name: str) -> None:
    out = getattr(xp, name)(xp.asarray(C), axis=1, correction=1)
    assert out.dtype is xp.float64
    np.testing.assert_allclose(out.numpy(), getattr(np, name)(C, axis=1, ddof=1))


@pytest.mark.parametrize("empty", [(0,), (2, 0)])
def test_totals_of_nothing(empty: tuple[int, ...]) -> None:
    x = xp.zeros(empty, requires_grad=True)
    assert (xp.sum(x).item(), xp.prod(x).item()) == (0.0, 1.0)
    for f in (xp.sum, xp.prod, lambda x: xp.sum(xp.cumulative_prod(x, axis=-1)), lambda x: xp.sum(xp.sort(x))):
        (g,) = xp.autograd.grad(f(x), x)
        assert g.shape == empty
    assert xp.cumulative_sum(x, axis=-1, include_initial=True).shape == (*empty[:-1], 1)


# -- beyond the standard --------------------------------------------------------------------------------------------------------

EINSUMS = [
    ("i->", "3"), ("i->i", "3"), ("ij->ji", "23"), ("ij", "23"), ("ji", "23"), ("ii", "33"), ("ii->i", "33"), ("iij->j", "224"),
    ("iii->i", "222"), ("ij,jk->ik", "23,34"), ("ij,jk", "23,34"), ("i,i", "3,3"), ("i,j->ij", "2,3"), ("i,j->ji", "2,3"),
    ("bij,bjk->bik", "423,432"), ("bij,bjk->ki", "423,432"), ("...ij,...jk->...ik", "423,32"), ("...i,...i->...", "1423,23"),
    ("...ij->...", "423"), ("i...->...", "423"), ("...", "23"), ("i...j", "423"), ("ij,j->i", "23,1"), ("ij,ij->ij", "13,21"),
    ("ab,bc,cd->ad", "23,34,42"), ("ij,jk,kl,li->", "22,22,22,22"), ("a,b,c->cab", "2,3,4"), ("ij,kl->", "23,34"), (",i->i", ",3"),
    ("ik,jk,k->ij", "23,43,3"),
    ("ijk,ilm,njm,nlk->", "222,222,222,222"), ("ij,...j->...i", "23,423"), ("i->i", "1"),
    ("ij,jk->ik", "20,03"),
    ("aab,b->a", "223,3"),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), EINSUMS)
def test_einsum_agrees_with_numpy(equation: str, shapes: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=tuple(int(n) for n in shape)) for shape in shapes.split(",")]
    tensors = [xp.asarray(a) for a in arrays]
    out = xp.einsum(equation, *tensors)
    np.testing.assert_allclose(out.numpy(), np.einsum(equation, *arrays), rtol=1e-10, atol=1e-10)
    assert not any(np.may_share_memory(out.numpy(), t.numpy()) for t in tensors if t.size)


@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_einsum_of_random_equations(data: st.DataObject) -> None:
    sizes = {c: data.draw(st.integers(1, 3)) for c in "ijkl"}
    terms = data.draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    equation = ",".join(terms) + "->" + "".join(output)
    rng = np.random.default_rng(len(used))
    arrays = [rng.normal(size=tuple(sizes[c] for c in term)) for term in terms]
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(xp.einsum(equation, *map(xp.asarray, arrays)).numpy(), expected, rtol=1e-10, atol=1e-10)


def test_einsum_promotes() -> None:
    out = xp.einsum("i,i->i", xp.asarray([1, 2]), xp.asarray([1.5, 2.0], dtype=xp.float32))
    assert (out.dtype, out.tolist()) == (xp.float32, [1.5, 4.0])
    assert xp.einsum("i->", xp.asarray([100, 100], dtype=xp.int8)).dtype is xp.int8


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness_agrees_with_numpy(equal_nan: bool) -> None:
    values = np.asarray([0.0, 1e-9, 1.0, 1.0 + 1e-6, 1.1, np.inf, -np.inf, np.nan])
    a, b = values[:, None], values
    ours = xp.isclose(xp.asarray(a), xp.asarray(b), equal_nan=equal_nan)
    np.testing.assert_array_equal(ours.numpy(), np.isclose(a, b, equal_nan=equal_nan))
    x = xp.tensor(values, requires_grad=True)
    assert xp.allclose(x, x, equal_nan=equal_nan) is equal_nan
    assert xp.allclose(xp.asarray([1, 2]), xp.asarray([1.0, 2.0 + 1e-7]))
    assert not xp.allclose(xp.asarray([1.0]), 2.0)
    assert xp.allclose(1.0, xp.asarray([1.0]), rtol=0, atol=0)


@pytest.mark.parametrize("invert", [False, True])
def test_isin_agrees_with_numpy(invert: bool) -> None:
    for a, b in ((I, INDEX), (A, np.asarray([2.0, np.nan])), (A, np.zeros(0)), (B, np.asarray([True])), (np.asarray([np.nan, 1.0]), A)):
        out = xp.isin(xp.asarray(a), xp.asarray(b), invert=invert)
        np.testing.assert_array_equal(out.numpy(), np.isin(a, b, invert=invert))
    assert xp.isin(xp.asarray(I), 2).tolist() == np.isin(I, 2).tolist()
    assert xp.isin(2, xp.asarray(I)).item() is True


# -- errors --------------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    *((IndexError, "out of range", lambda x, f=f: getattr(xp, f)(x, axis=2)) for f in
      ("sum", "mean", "prod", "var", "std", "max", "sort", "argsort", "argmax", "cumulative_sum", "cumulative_prod", "diff", "flip", "all",
       "count_nonzero")),
    *((TypeError, "asarray", lambda x, f=f: getattr(xp, f)([1.0, 2.0])) for f in
      ("sum", "mean", "prod", "var", "std", "sort", "argsort", "argmax", "nonzero", "unique_values", "cumulative_sum", "diff", "sin",
       "count_nonzero")),
    (ValueError, "twice", lambda x: xp.mean(x, axis=(0, 0))),
    (TypeError, "must be an int", lambda x: xp.sort(x, axis=0.5)),
    (ValueError, "give `axis`", lambda x: xp.cumulative_sum(x)),
    (ValueError, "give `axis`", lambda x: xp.cumulative_prod(xp.sum(x))),
    (ValueError, "0-d", lambda x: xp.nonzero(xp.sum(x))),
    (ValueError, "at least one element", lambda x: xp.argmax(x[:0])),
    (ValueError, "negative", lambda x: xp.diff(x, n=-1)),
    (ValueError, "differ", lambda x: xp.diff(x, axis=0, prepend=x[:, :1])),
    (TypeError, "order", lambda x: xp.argmax(x + 1j)),
    (ValueError, "side", lambda x: xp.searchsorted(x[0], x, side="middle")),
    (ValueError, "one axis", lambda x: xp.searchsorted(x, x)),
    (TypeError, "data type", lambda x: xp.sum(x, dtype="float33")),
    (ValueError, "operands", lambda x: xp.einsum("ij,jk->ik", x)),
    (ValueError, "names 1 axes", lambda x: xp.einsum("i->i", x)),
    (ValueError, "label 'k'", lambda x: xp.einsum("ij->k", x)),
    (ValueError, "a label twice", lambda x: xp.einsum("ij->ii", x)),
    (ValueError, "letters", lambda x: xp.einsum("i1->i", x)),
    (ValueError, "lengths 2 and 3", lambda x: xp.einsum("ii->i", x)),
    (ValueError, "lengths", lambda x: xp.einsum("ij,ji->", x, x)),
    (ValueError, "at least one Tensor", lambda x: xp.einsum("")),
    (TypeError, "asarray", lambda x: xp.isclose(x, [1.0, 1.0, 1.0])),
    (TypeError, "do not promote", lambda x: xp.isin(xp.ones(1, dtype=xp.uint64), xp.ones(1, dtype=xp.int64))),
]  # fmt: skip


@pytest.mark.parametrize(("error", "phrase", "call"), ERRORS)
def test_errors(error: type[Exception], phrase: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(error, match=phrase):
        call(xp.asarray(A))


@pytest.mark.parametrize(
    ("error", "phrase", "call"),
    [
        (TypeError, "complex numbers do not have", lambda x: xp.searchsorted(xp.asarray([1j, 2j]), x[0])),
        (IndexError, "must hold integers or bools", lambda x: xp.func.vmap(lambda k: x[k])(x)),
        (IndexError, "must hold integers or bools", lambda x: x[x]),
        (TypeError, "list", lambda x: xp.matmul(x, [1.0, 2.0])),
        (TypeError, "list", lambda x: xp.flip([1, 2])),
        (ValueError, "0-d Tensor", lambda x: xp.matmul(x, x[0, 0])),
        (ValueError, "0-d Tensor", lambda x: xp.matmul(x[0, 0], x)),
        (TypeError, "scalar", lambda x: xp.matmul(x, 2.0)),
    ],
)
def test_operands_that_a_function_has_no_meaning_for(error: Any, phrase: str, call: Any) -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(error, match=phrase):
        call(x)
    with pytest.raises(TypeError):
        x @ [1.0, 2.0]


def test_astype_copies_unless_told_not_to() -> None:
    x = xp.asarray([1.0, 2.0])
    y = xp.astype(x, x.dtype)
    assert y is not x
    assert not np.shares_memory(y.numpy(), x.numpy())
    assert xp.astype(x, x.dtype, copy=False) is x


def test_spellings_are_what_users_write() -> None:
    """Law: messages call a kernel by a public function, an expression, or its own name if it has no other."""
    tables = (RULES, NONDIFFERENTIABLE, COMPOSITE, EXTRAS)
    for kernel in KERNELS:
        for spelled in spellings(kernel):
            assert spelled == kernel or spelled.startswith(("x[key]", "the gradient of")) or any(spelled in table for table in tables), (
                kernel
            )
    assert spellings("gather") == spellings("take_flat") == ("x[key]",)
    assert spellings("reduce_sum") == ("sum",)
    assert spellings("no such kernel") == ("no such kernel",)
