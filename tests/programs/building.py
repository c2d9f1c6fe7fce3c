"""Programs for tests: a builder that evaluates each added operation with NumPy's kernels, and random programs of all operations."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from xpgrad._basics.dtypes import DTYPES
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Operation, Program, Variable, variables_in
from xpgrad.registry import backend_for

BACKEND = backend_for("numpy")
#: NumPy 2.2 computes complex powers of 1 and 2 otherwise, with other signs of zeros and other results where these overflow; machine code
#: does as NumPy 2.3 and later.
OLD_POWERS = np.lib.NumpyVersion(np.__version__) < "2.3.0"
EVALUATE = evaluator(BACKEND)


def dtype_of(x: Any) -> Any:
    return DTYPES[np.asarray(x).dtype.name]


class Builder:
    """A program under construction, and the values of its variables for one set of inputs."""

    def __init__(self) -> None:
        self.inputs: list[Variable] = []
        self.constants: dict[Variable, Any] = {}
        self.operations: list[Operation] = []
        self.values: dict[Variable, Any] = {}
        self.backward = False

    def input(self, value: Any, name: str | None = None) -> Variable:
        v = Variable(np.shape(value), dtype_of(value), name)
        self.inputs.append(v)
        self.values[v] = value
        return v

    def constant(self, value: Any, name: str | None = None) -> Variable:
        v = Variable(np.shape(value), dtype_of(value), name)
        self.constants[v] = self.values[v] = value
        return v

    def __call__(self, kernel: str, *args: Any, several: bool = False, name: str | None = None, **options: Any) -> Any:
        """Add an operation; return the variable of its result, or a tuple of variables if `several`."""
        operation = Operation(kernel, args, options, (), several=several, backward=self.backward)
        with np.errstate(all="ignore"):
            raws = EVALUATE(operation, self.values)
        results = tuple(Variable(np.shape(r), dtype_of(r), name) for r in raws)
        self.operations.append(operation.replace(results=results))
        self.values.update(zip(results, raws))
        return results if several else results[0]

    def program(self, *outputs: Variable) -> Program:
        return Program(self.inputs, self.constants, list(self.operations), list(outputs))

    def raws(self) -> list[Any]:
        return [self.values[v] for v in self.inputs]


_SHAPES: list[tuple[int, ...]] = [(), (1,), (4,), (3, 4), (4, 1), (3, 1), (5, 4), (2, 3, 4), (0,), (0, 4), (12,), (4, 3)]
_FLOATS = ["float64", "float64", "float64", "float32", "complex128"]
_DTYPES = [*_FLOATS, "int64", "int32", "bool", "float16"]
_UNARY = ["negative", "sin", "exp", "tanh", "square", "abs", "sqrt", "conj", "positive", "copy", "clone", "reciprocal", "sign"]
_BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "add", "multiply", "subtract", "multiply", "hypot"]
_NUMBERS = [0, 1, 2, -1, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, float("inf"), float("nan")]


def array(random: Random, shape: tuple[int, ...], dtype: str) -> Any:
    """Return random numbers, some of them zeros of either sign; they may be non-contiguous, and 0-d ones may be scalars."""
    rng = np.random.default_rng(random.randrange(1 << 16))
    x = rng.normal(size=shape)
    x = np.where(rng.uniform(size=shape) < 0.1, -0.0, np.where(rng.uniform(size=shape) < 0.1, 0.0, x))
    if random.random() < 0.2 and not dtype.startswith("int"):
        x = np.where(rng.uniform(size=shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf], shape), x)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    x = np.asarray(x * 3 if dtype.startswith("int") else x).astype(dtype)
    if x.ndim > 1 and random.random() < 0.3:
        x = np.asfortranarray(x)
    if x.ndim and random.random() < 0.2:
        x = np.repeat(x, 2, axis=0)[::2]
    return x[()] if not x.ndim and random.random() < 0.5 else x


def random_program(random: Random, count: int) -> Builder:
    """Return a program of about `count` operations, with its outputs in the attribute `outputs`."""
    b = Builder()
    names = ["x", "w", None, "np", "lambda", "x"]
    for _ in range(random.randint(1, 3)):
        b.input(array(random, random.choice(_SHAPES), random.choice(_DTYPES)), random.choice(names))
    for _ in range(random.randint(0, 2)):
        b.constant(array(random, random.choice(_SHAPES[:6]), random.choice(_FLOATS)), random.choice([None, "c"]))
    made = [*b.inputs, *b.constants]
    for k in range(count):
        b.backward = k > count // 2
        for _ in range(8):  # a step whose operands do not fit raises in NumPy, and is not added
            before = len(b.operations)
            try:
                out = _step(b, random, made)
            except (ValueError, TypeError, IndexError, OverflowError):
                del b.operations[before:]
                continue
            if out is not None and out.size <= 400:
                out.name = random.choice([None, None, None, "h", "z", "x"])
                made.append(out)
                break
            del b.operations[before:]
    b.outputs = [random.choice(made[-6:] if random.random() < 0.8 else made) for _ in range(random.randint(1, 4))]
    return b


def _key(random: Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = []
    for n in shape:
        kind = random.random()
        if kind < 0.2 and n:
            key.append(random.randrange(-n, n))
        elif kind < 0.6:
            start = random.randint(0, n)
            key.append(slice(start, random.randint(start, n), random.choice([1, 1, 2])) if start < n else slice(0, 0))
        else:
            key.append(slice(0, n, 1))
    if random.random() < 0.2:
        key.insert(random.randint(0, len(key)), None)
    return tuple(key)


def _step(b: Builder, random: Random, made: list[Variable]) -> Variable | None:
    x = random.choice(made[-8:] if random.random() < 0.7 else made)
    kind = random.random()
    rank = len(x.shape)
    real = x.dtype.differentiable
    if kind < 0.3:
        others = [v for v in made if v.dtype is x.dtype and v.shape[-1:] == x.shape[-1:]] + [
            v for v in made if v.dtype is x.dtype and not v.shape
        ]
        y = random.choice(others) if others and random.random() < 0.8 else random.choice(_NUMBERS)
        if y.__class__ is not Variable and not real and isinstance(y, float):
            y = 1
        pair = (x, y) if random.random() < 0.7 else (y, x)
        return b(random.choice(_BINARY), *pair)
    if kind < 0.45:
        return b(random.choice(_UNARY), x)
    if kind < 0.5:
        if x.dtype.is_complex:  # whose last bits differ (`assert_same`), so that their order may as well
            return None
        return b(random.choice(["less", "equal"]), x, random.choice([v for v in made if v.dtype is x.dtype]))
    if kind < 0.54:
        conditions = [v for v in made if v.dtype.name == "bool"]
        if not conditions:
            return b("less", x, x)
        return b("where", random.choice(conditions), x, random.choice([v for v in made if v.dtype is x.dtype]))
    if kind < 0.58:
        return b("to_dtype", x, DTYPES[random.choice(["float64", "float64", "float32", x.dtype.name])])
    if kind < 0.66:
        axes = random.choice([None, *[(i,) for i in range(rank)], *([(0, rank - 1)] if rank > 1 else [])])
        name = random.choice(
            ["reduce_sum", "reduce_sum", "reduce_mean" if real else "reduce_sum", "reduce_max"]
        )  # a mean casts integers first
        return b(name, x, axes, random.random() < 0.5)
    if kind < 0.72:
        return _view(b, random, x)
    if kind < 0.76:
        axes = random.choice([None, *[(i,) for i in range(rank)]])
        keepdims = random.random() < 0.5
        return b("expand_reduced", b("reduce_sum", x, axes, keepdims), x.shape, axes, keepdims) if real else None
    if kind < 0.80:
        shape = (random.choice([2, 3]), *x.shape)
        return (
            b("sum_to", x, random.choice([x.shape, x.shape[1:], tuple(1 for _ in x.shape)]))
            if real and kind < 0.78
            else b("broadcast_to", x, shape)
        )
    if kind < 0.85:
        name = random.choice(["zeros_like", "ones_like", "full_like", "zeros"])
        if name == "zeros":
            return b("zeros", x.shape, dtype=x.dtype)
        return b(name, x, *([random.choice([2, 0, 1])] if name == "full_like" else []))
    if kind < 0.95:
        return _write(b, random, x, made)
    if rank == 2:
        return b("matmul", b("transpose_axes", x, (1, 0)), x) if random.random() < 0.5 else b("matmul", x, b("swap_last", x))
    return b("concat", (x, x), axis=0) if rank else None


def _view(b: Builder, random: Random, x: Variable) -> Variable | None:
    rank = len(x.shape)
    name = random.choice(
        ["index_basic", "index_basic", "reshape_to", "transpose_axes", "swap_last", "real", "expand_dims", "broadcast_view"]
    )
    if name == "index_basic":
        return b(name, x, _key(random, x.shape))
    if name == "reshape_to":
        return b(name, x, random.choice([(x.size,), (1, *x.shape), (*x.shape, 1), x.shape, x.shape[::-1]]))
    if name == "transpose_axes":
        return b(name, x, tuple(random.sample(range(rank), rank)))
    if name == "swap_last":
        return b(name, x) if rank > 1 else None
    if name == "expand_dims":
        return b(name, x, axis=random.randint(0, rank))
    if name == "broadcast_view":
        return b(name, x, (2, *x.shape))
    return b(name, x)


def _write(b: Builder, random: Random, x: Variable, made: list[Variable]) -> Variable | None:
    if random.random() < 0.7 and x.shape and 0 not in x.shape:
        key: Any = _key(random, x.shape)
        if random.random() < 0.3:
            index = np.asarray(Random(random.randrange(99)).choices(range(-x.shape[0], x.shape[0]), k=random.choice([1, 3, 5])))
            key = (b.constant(index) if random.random() < 0.5 else b.input(index),)
            g = b("gather", x, key)
            if random.random() < 0.5:
                return g
            return b("scatter_into", b("copy", x), g, key) if random.random() < 0.5 else b("scatter_add", g, key, x.shape)
    else:
        key = tuple(slice(0, n, 1) for n in x.shape)
    part = b("index_basic", x, key)
    part = b("multiply", part, part) if random.random() < 0.5 and x.dtype.differentiable else part
    kind = random.choice(["add_at", "written", "index_basic_transpose", "written"])
    if kind == "index_basic_transpose":
        return b(kind, part, key, x.shape)
    buffer = x if random.random() < 0.6 else b("negative", x)
    if kind == "add_at":
        return b(kind, buffer, part, key) if x.dtype.name != "bool" else None
    return b(kind, buffer, key, part if random.random() < 0.7 else 2)


def assert_same(x: Any, y: Any, program: Program) -> None:
    """Assert that a result is what the list of operations gives, up to the rounding of a reordered sum and of complex functions.

    Which bits NumPy gives for these (`CLOSE`), as for a modulus, depends on the vectors of the processor.
    """
    assert np.shape(x) == np.shape(y)
    assert np.asarray(x).dtype == np.asarray(y).dtype
    sums = any(
        o.name in ("reduce_sum", "reduce_mean", "sum_to", "matmul") or (o.name in CLOSE and any(v.dtype.is_complex for v in o.operands()))
        for o in program.operations
    )
    x, y = np.asarray(x), np.asarray(y)
    if not sums and x.dtype.kind == "c":  # NumPy's scalars multiply complex numbers otherwise than its arrays, without fused rounding
        rtol, finite = 50 * np.finfo(x.dtype).eps, np.isfinite(y)
        np.testing.assert_allclose(x[finite], y[finite], rtol=rtol, atol=0)
        for a, b in ((x.real, y.real), (x.imag, y.imag)):  # the rounding of a finite part came from another one that is now infinite
            np.testing.assert_allclose(a[~finite], b[~finite], rtol=1e-6, atol=1e-6 * _largest(b))
    elif not sums:
        np.testing.assert_array_equal(x, y)
        # Which of several zeros is the extremum along the last axis depends on NumPy's vectors.
        if x.dtype.kind == "f" and not any(o.name in ("reduce_max", "reduce_min") for o in program.operations):
            np.testing.assert_array_equal(np.signbit(x) & ~np.isnan(x), np.signbit(y) & ~np.isnan(y))
    elif x.dtype.kind in "fc":
        made = [x.dtype.name, *(v.dtype.name for o in program.operations for v in o.results if v.dtype.differentiable)]
        eps = max(float(np.finfo(name).eps) for name in made)  # that of a sum in another precision, which may have been cast since
        atol = 2000 * eps * _largest(y)
        for a, b in ((x.real, y.real), (x.imag, y.imag)):  # a part may be rounded where the other one is infinite
            np.testing.assert_allclose(a, b, rtol=2000 * eps, atol=atol)
    else:
        np.testing.assert_array_equal(x, y)


def assert_same_numbers(found: Any, wanted: Any, name: str, *, exact: bool) -> None:
    """Assert equal dtypes, signs of zero and values: the same bits, or four units in the last place."""
    assert found.dtype == wanted.dtype, name
    if exact or found.dtype == bool:
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    else:
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(found.dtype).eps, atol=0, err_msg=name)
    if found.dtype != bool:
        np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted), err_msg=name)


#: Kernels of one or two complex arrays that have NumPy's bits, and those that may differ by 4 units in the last place of the modulus.
EXACT = {
    "add": 2, "conj": 1, "divide": 2, "equal": 2, "isfinite": 1, "isinf": 1, "isnan": 1, "multiply": 2, "negative": 1, "not_equal": 2,
    "positive": 1, "reciprocal": 1, "square": 1, "subtract": 2,
}  # fmt: skip
CLOSE = {"abs": 1, "cos": 1, "cosh": 1, "exp": 1, "log": 1, "sign": 1, "sin": 1, "sinh": 1, "sqrt": 1}


def complex_array(re: Any, im: Any, dtype: str) -> Any:
    """Return an array of these parts, whatever they are: ``re + 1j * im`` has other infinities and zeros."""
    z = np.empty(np.shape(re), np.complex128)
    z.real, z.imag = re, im
    return z.astype(dtype)


def parts_of(x: Any) -> list[Any]:
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def assert_same_complex(found: Any, wanted: Any, what: str, ulps: float = 0) -> None:
    """Assert equal parts: nan, infinities, signs of zero, and numbers up to some units in the last place of the modulus."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    modulus = np.hypot(wanted.real.astype(np.longdouble), wanted.imag.astype(np.longdouble))
    for a, b in zip(parts_of(found), parts_of(wanted), strict=True):
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=what)
        if a.dtype == bool or not ulps:
            np.testing.assert_array_equal(a, b, err_msg=what)
        else:
            size = np.fmin(modulus, np.finfo(a.dtype).max)
            allowed = ulps * np.spacing(size.astype(a.dtype)).astype(np.longdouble)
            assert (np.abs(a.astype(np.longdouble) - b)[finite] <= allowed[finite]).all(), what
        if a.dtype != bool:
            np.testing.assert_array_equal(np.signbit(a) & (a == 0), np.signbit(b) & (b == 0), err_msg=what)


def _largest(y: Any) -> float:
    finite = np.abs(y[np.isfinite(y)])
    return float(max(finite.max(initial=0), 1.0))


def variables(program: Program) -> set[Variable]:
    """Return every variable of a program."""
    return {*program.inputs, *program.constants, *(v for o in program.operations for v in (*o.results, *variables_in(o.args)))}
