"""Law: a program for HIPS autograd gives the same results with `xpgrad.dialects.hips`."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

theirs = pytest.importorskip("autograd", reason="HIPS autograd is what is compared with; the extra `bench` brings it")
from dialects.libraries import OURS, PARTS, RNG, V, W, library  # noqa: E402 (behind the skip)
from xpgrad.dialects import hips as ours  # noqa: E402 (behind the skip)

HIPS = library(theirs)
M, N = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
S = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
SPD = S @ S.T
P = np.abs(M) + 0.5
U = 0.8 * np.tanh(M)
T = RNG.normal(size=(2, 3, 4))
Z = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
ZV = Z[0]


def assert_same(a: Any, b: Any, near: float = 1e-8) -> None:
    """Assert equal structure, shapes, dtypes and values, and that our result holds no Tensors."""
    if isinstance(b, (tuple, list)):
        assert isinstance(a, type(b))
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y, near)
    elif isinstance(b, dict):
        assert list(a) == list(b)
        for key in b:
            assert_same(a[key], b[key], near)
    else:
        assert isinstance(a, (np.ndarray, np.generic, float, complex))
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


def compare_libraries(program: Callable[[Any], Any], near: float = 1e-8) -> None:
    """Run a program with both libraries and compare the results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = program(HIPS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Output seems independent of input")  # compared in test_hips_unedited.py
        found = program(OURS)
    assert_same(found, expected, near)


# -- the names ---------------------------------------------------------------------------------------------------------------

#: Names that only HIPS autograd's own code uses.
INTERNAL = {
    "numpy": {"Box", "builtins", "c_class", "r_class", "custom_where", "notrace_functions", "notrace_primitive", "numpy_jvps",
              "numpy_version",
              "numpy_vspaces", "numpy_wrapper", "parse_einsum_input", "primitive", "warnings", "wrap_intdtype", "wrap_namespace"},
    "numpy.linalg": None, "numpy.fft": None, "numpy.random": None,
    "builtins": None, "tracer": {"Node", "autograd", "box_type_mappings", "box_types", "contextmanager", "defaultdict",
              "find_top_boxed_args", "notrace_primitives", "np", "subvals", "toposort", "trace", "trace_primitives_map", "warnings",
              "wraps", "notrace_primitive", "primitive", "register_notrace"},
    "misc": {"const_graph", "tracers"},
    "test_util": {"get_name", "make_jvp", "make_numerical_jvp", "make_vjp", "product", "unary_to_nary", "vspace"},
    "misc.optimizers": {"flatten", "np", "wraps"}, "misc.flatten": {"make_vjp", "np", "type"},
    "misc.fixed_points": {"fixed_point_vjp", "make_vjp", "defvjp", "primitive", "tuple", "vspace"},
    "differential_operators": {"OrderedDict", "atuple", "defvjp_argnum", "np", "primitive", "vspace", "warnings"},
}  # fmt: skip
ASIDE = {"core", "scipy", "util", "wrap_util"}  # packages without a public interface, or imported only on demand


@pytest.mark.parametrize("part", ["", *PARTS])
def test_every_name_is_there(part: str) -> None:
    mine = importlib.import_module(".".join(filter(None, [ours.__name__, part])))
    their = importlib.import_module(".".join(filter(None, ["autograd", part])))
    names = {name for name in dir(their) if not name.startswith("_")}
    internal = INTERNAL.get(part, ASIDE if not part else set())
    if internal is None:  # a copy of a namespace of NumPy or Python
        known = np if part.startswith("numpy") else importlib.import_module("builtins")
        names &= set(dir(getattr(known, part.rpartition(".")[2], known)))
        internal = set()
    assert sorted(names - internal - set(dir(mine))) == []


def test_importing_xpgrad_imports_neither_numpy_nor_the_dialect() -> None:
    script = "import sys, xpgrad; print([m for m in ('numpy', 'xpgrad.dialects.hips', 'autograd') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- functions ---------------------------------------------------------------------------------------------------------------

ELEMENTWISE = {
    "abs": M, "absolute": M, "arccos": U, "arccosh": P + 1, "arcsin": U, "arcsinh": M, "arctan": M, "arctanh": U, "cos": M, "cosh": M,
    "deg2rad": M, "degrees": M, "exp": M, "exp2": M, "expm1": M, "fabs": M, "log": P, "log10": P, "log1p": P, "log2": P, "negative": M,
    "rad2deg": M, "radians": M, "reciprocal": P, "sign": M, "sin": M, "sinc": P, "sinh": M, "sqrt": P, "square": M, "tan": U, "tanh": M,
}  # fmt: skip
BINARY = {
    "add": M, "arctan2": M, "divide": P, "logaddexp": M, "logaddexp2": M, "maximum": M, "minimum": M, "mod": P, "multiply": M, "power": P,
    "remainder": P, "subtract": M, "true_divide": P, "fmax": M, "fmin": M,
}  # fmt: skip
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{name: (lambda np, x, name=name: getattr(np, name)(x), (x,)) for name, x in ELEMENTWISE.items()},
    **{name: (lambda np, x, y, name=name: getattr(np, name)(x, y), (P, x[1])) for name, x in BINARY.items()},
    "sum": (lambda np, x: np.sum(x, axis=(0, 2)), (T,)),
    "mean": (lambda np, x: np.mean(x, axis=1, keepdims=True), (M,)),
    "prod": (lambda np, x: np.prod(x, axis=0), (M,)),
    "var": (lambda np, x: np.var(x, axis=1, ddof=1), (M,)),
    "std": (lambda np, x: np.std(x, 0), (M,)),
    "max": (lambda np, x: np.max(x, axis=1), (M,)),
    "min": (lambda np, x: np.min(x), (M,)),
    "cumsum": (lambda np, x: np.cumsum(x, axis=1), (M,)),
    "cumsum of all": (lambda np, x: np.cumsum(x), (M,)),
    "dot": (lambda np, x, y: np.dot(x, y.T), (M, N)),
    "dot of vectors": (lambda np, x, y: np.dot(x, y), (V, W)),
    "matmul": (lambda np, x, y: x @ np.swapaxes(y, 1, 2), (T, T + 1)),
    "inner": (lambda np, x, y: np.inner(x, y), (M, N)),
    "outer": (lambda np, x, y: np.outer(x, y), (V, W)),
    "tensordot": (lambda np, x, y: np.tensordot(x, y, axes=([1, 2], [0, 1])), (T, M)),
    "einsum": (lambda np, x, y: np.einsum("ijk,jk->ik", x, y), (T, M)),
    "kron": (lambda np, x, y: np.kron(x, y), (S, S)),
    "cross": (lambda np, x, y: np.cross(x, y), (S, S + 1)),
    "transpose": (lambda np, x: np.transpose(x, (2, 0, 1)), (T,)),
    "reshape": (lambda np, x: np.reshape(x, (4, -1)), (M,)),
    "ravel": (lambda np, x: np.ravel(x), (M,)),
    "squeeze": (lambda np, x: np.squeeze(x[:, :1]), (M,)),
    "expand_dims": (lambda np, x: np.expand_dims(x, 1), (M,)),
    "moveaxis": (lambda np, x: np.moveaxis(x, 0, -1), (T,)),
    "rollaxis": (lambda np, x: np.rollaxis(x, 2), (T,)),
    "repeat": (lambda np, x: np.repeat(x, 2, axis=0), (M,)),
    "tile": (lambda np, x: np.tile(x, (2, 1)), (M,)),
    "roll": (lambda np, x: np.roll(x, 2, axis=1), (M,)),
    "flip": (lambda np, x: np.flipud(np.fliplr(x)), (M,)),
    "rot90": (lambda np, x: np.rot90(x), (M,)),
    "pad": (lambda np, x: np.pad(x, ((1, 0), (2, 1)), "constant"), (M,)),
    "diag": (lambda np, x: np.diag(x), (S,)),
    "diag of a vector": (lambda np, x: np.diag(x), (V,)),
    "diagonal": (lambda np, x: np.diagonal(x, 0, -1, -2), (S,)),
    "make_diagonal": (lambda np, x: np.make_diagonal(x, axis1=-1, axis2=-2), (M,)),
    "trace": (lambda np, x: np.trace(x), (S,)),
    "tril": (lambda np, x: np.tril(x) + np.triu(x, 1) ** 2, (S,)),
    "diff": (lambda np, x: np.diff(x, axis=1), (M,)),
    "gradient": (lambda np, x: np.gradient(x), (V,)),
    "sort": (lambda np, x: np.sort(x), (V,)),
    "partition": (lambda np, x: np.partition(x, 2), (V,)),
    "where": (lambda np, x, y: np.where(x > 0, x**2, y), (M, N)),
    "select": (lambda np, x: np.select([x > 0.5, x < -0.5], [x**2, -x], 0.0), (M,)),
    "clip": (lambda np, x: np.clip(x, -0.5, 0.7), (M,)),
    "concatenate": (lambda np, x, y: np.concatenate((x, y), axis=1), (M, N)),
    "vstack": (lambda np, x, y: np.vstack([x, y]), (V, W)),
    "hstack": (lambda np, x, y: np.hstack([x, y]), (M, N)),
    "column_stack": (lambda np, x, y: np.column_stack([x, y]), (V, W)),
    "stack": (lambda np, x, y: np.stack([x, y, x * y], axis=1), (M, N)),
    "append": (lambda np, x, y: np.append(x, y), (V, W)),
    "split": (lambda np, x: np.split(x, 2, axis=1)[1], (M,)),
    "array of numbers": (lambda np, x: np.array([x[0], 2.0, x[1] * x[2]]), (V,)),
    "array of lists": (lambda np, x: np.array([[x[0], 1.0], [np.sin(x[1]), x[2]]]), (V,)),
    "array of arrays": (lambda np, x: np.array([x, x**2]), (V,)),
    "array of an array": (lambda np, x: np.array(x, ndmin=2) * np.array([1.0, 2, 3, 4, 5]), (V,)),
    "sum of a list": (lambda np, x: np.sum([x[0], x[1] * x[2]]), (V,)),
    "mean of a list": (lambda np, x: np.mean([x[0] ** 2, x[1]]), (V,)),
    "dot of lists": (lambda np, x: np.dot([x[0], x[1]], [x[2], 3.0]), (V,)),
    "full": (lambda np, x: np.full((2, 3), x[0] ** 2), (V,)),
    "r_": (lambda np, x: np.r_[x, 1.0, x[:2] ** 2], (V,)),
    "c_": (lambda np, x: np.c_[x, x**2], (V,)),
    "index": (lambda np, x: x[1:, [0, 2, 2]] * x[0, 3], (M,)),
    "index by a mask": (lambda np, x: x[np.abs(M) > 0.4] ** 2, (M,)),
    "linspace": (lambda np, x: np.linspace(x[0], x[1], 4), (V,)),
    "real and imag": (lambda np, x: np.real(x * 1j + 2 * x) * np.imag(1j * x), (V,)),
    "nan_to_num": (lambda np, x: np.nan_to_num(x), (M,)),
    "linalg.inv": (lambda np, x: np.linalg.inv(x), (S,)),
    "linalg.det": (lambda np, x: np.linalg.det(x), (S,)),
    "linalg.slogdet": (lambda np, x: np.linalg.slogdet(x)[1], (SPD,)),
    "linalg.solve": (lambda np, a, b: np.linalg.solve(a, b), (S, M)),
    "linalg.cholesky": (lambda np, x: np.linalg.cholesky(x @ x.T), (S,)),
    "linalg.eigh": (lambda np, x: np.linalg.eigh(x @ x.T)[0], (S,)),
    "linalg.svd": (lambda np, x: np.linalg.svd(x, full_matrices=False)[1], (S,)),
    "linalg.norm": (lambda np, x: np.linalg.norm(x), (M,)),
    "linalg.norm over an axis": (lambda np, x: np.linalg.norm(x, axis=1), (M,)),
    "linalg.pinv": (lambda np, x: np.linalg.pinv(x), (M,)),
    "fft": (lambda np, x: np.real(np.fft.ifft(np.fft.fft(x) * np.fft.fft(x))), (V,)),
    "fft2": (lambda np, x: np.abs(np.fft.fft2(x)), (M,)),
    "rfft": (lambda np, x: np.fft.irfft(np.fft.rfft(x) ** 2), (M,)),
    "operators": (lambda np, x: (2.0 - x) / (1.0 + x**2) - (-x) * 3.0 % 2.5 + 2.0**x, (M,)),
    "methods": (lambda np, x: (x.reshape(2, 6).sum(0) * x.max() + x.mean(1).sum()).ravel().cumsum(), (M,)),
    "more methods": (
        lambda np, x: x.transpose((1, 0)).swapaxes(0, 1).repeat(2, axis=0).std(0) + x.clip(-1, 1).var(axis=0) + x.flatten()[:4],
        (M,),
    ),
    "loop": (lambda np, x: _loop(np, x), (V,)),
}  # fmt: skip
#: Programs for which HIPS autograd has no rule for forward mode.
NO_JVP = {"linalg.cholesky", "linalg.svd", "linalg.slogdet", "linalg.pinv", "linalg.inv",
          "linalg.det", "linalg.solve", "linalg.eigh", "fft", "fft2", "rfft", "partition", "diff", "gradient", "cross",
          "make_diagonal", "full", "linspace", "tril", "pad"}  # fmt: skip


def _rebinding(x: Any) -> Any:
    y = x
    y += 1.0  # neither writes to `x` nor to the caller's array
    z = y * x
    z *= x
    return z + y


def _loop(np: Any, x: Any) -> Any:
    h = np.zeros(3)
    for i, w in enumerate(x):
        h = np.tanh(h * w + x[i])
    return h


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_to_second_order(name: str) -> None:
    function, points = FUNCTIONS[name]
    before = [np.copy(p) for p in points]
    which = tuple(range(len(points)))

    def program(lib: Any) -> Any:
        def of(*xs: Any) -> Any:
            return function(lib.np, *xs)

        def loss(*xs: Any) -> Any:
            y = of(*xs)
            return lib.np.sum(np.cos(np.arange(lib.np.size(y)).reshape(lib.np.shape(y))) * (y + 0.3 * y**2))

        def slope(*xs: Any) -> Any:
            return sum(lib.np.sum(g**2) for g in lib.grad(loss, which)(*xs))

        return of(*points), lib.value_and_grad(loss, which)(*points), lib.grad(slope, which)(*points)

    compare_libraries(program, 1e-6)
    if name not in NO_JVP:
        compare_libraries(lambda lib: lib.make_jvp(lambda x: function(lib.np, x, *points[1:]))(points[0])(np.cos(points[0])))
    for p, b in zip(points, before):
        np.testing.assert_array_equal(p, b)


COMPLEX: dict[str, Callable[..., Any]] = {
    "square": lambda np, z: z**2,
    "exp": lambda np, z: np.exp(z) * z,
    "abs": lambda np, z: np.abs(z),
    "angle": lambda np, z: np.angle(z),
    "conj": lambda np, z: np.conj(z) * np.sin(z),
    "real": lambda np, z: np.real(z) * np.imag(z) ** 2,
    "inv": lambda np, z: np.linalg.inv(z),
    "matmul": lambda np, z: np.matmul(z, z.T),
    "fft": lambda np, z: np.fft.fft(z),
    "mixed": lambda np, z: np.real(z) * z,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_conventions(name: str) -> None:
    """Their gradient is the conjugate of ours, also for functions that are not holomorphic or that map real to complex numbers."""
    function = COMPLEX[name]

    def program(lib: Any) -> Any:
        def of(z: Any) -> Any:
            return function(lib.np, z)

        def real(z: Any) -> Any:
            y = of(z)
            return lib.np.sum(lib.np.real(y * np.conj(y)) + lib.np.real(y))

        def twice(z: Any) -> Any:
            g = lib.grad(real)(z)
            return lib.np.sum(lib.np.real(g) * lib.np.imag(g))

        vjp, value = lib.make_vjp(of)(Z)
        cotangent = np.cos(np.arange(9.0)).reshape(3, 3) * (1.0 - 0.5j if np.iscomplexobj(value) else 1.0)
        through = lib.grad(lambda x: real(x * (0.5 + 1j)))(S)
        return value, vjp(cotangent), lib.grad(real)(Z), lib.grad(twice)(Z), through

    compare_libraries(program)


# -- the differential operators ------------------------------------------------------------------------------------------------


def quartic(np: Any, x: Any) -> Any:
    return np.sum(x**4 * np.sin(x)) + np.prod(x)


def field(np: Any, x: Any) -> Any:
    return np.array([np.sum(x**2), x[0] * x[1], np.exp(x[2])])


Point = namedtuple("Point", "x y")
TREE = {"w": [M, 2.0], "b": (V, {"c": np.float32(0.5)}), "z": Z}


def tree_loss(np: Any, t: Any) -> Any:
    return np.sum(t["w"][0] ** 2) * t["w"][1] + np.sum(np.sin(t["b"][0]) * t["b"][1]["c"]) + np.sum(np.abs(t["z"])) * t["w"][1]


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda m: m.grad(lambda x: quartic(m.np, x))(V),
    "grad of a number": lambda m: m.grad(lambda x: x * m.np.sin(x))(2.0),
    "grad by argnum": lambda m: m.grad(lambda x, y: m.np.sum(x * y**2), 1)(V, W),
    "grad by argnums": lambda m: m.grad(lambda x, y, z: m.np.sum(x * y**2) * z, [2, 0])(V, W, 3.0),
    "grad by keyword": lambda m: m.grad(lambda x, k=1.0: m.np.sum(x**k))(V**2, k=3.0),
    "grad of a tree": lambda m: m.grad(lambda t: tree_loss(m.np, t))(TREE),
    "grad of the grad of a tree": lambda m: m.grad(
        lambda t: (lambda g: m.np.sum(g["w"][0] ** 2) * g["w"][1])(m.grad(lambda t: tree_loss(m.np, t))(t))
    )(TREE),
    "grad of nothing": lambda m: m.grad(lambda x: 1.0)(V),
    "grad of a part": lambda m: m.grad(lambda x: x[1])(V),
    "grad of one element": lambda m: m.grad(lambda x: m.np.reshape(m.np.sum(x**2), (1, 1)))(V),
    "third derivative": lambda m: m.grad(m.grad(m.grad(lambda x: m.np.tanh(x) * x)))(0.7),
    "perturbations stay apart": lambda m: m.grad(lambda x: x * m.grad(lambda y: x * y)(2.0))(3.0),
    "an inner function of a constant": lambda m: m.grad(lambda x: m.grad(lambda y: x * y**2)(2.0))(3.0),
    "a captured variable in a Jacobian": lambda m: m.grad(lambda x: m.np.sum(m.jacobian(lambda y: x * y**2)(V)))(3.0),
    "rebinding": lambda m: m.grad(lambda x: m.np.sum(_rebinding(x)))(V),
    "float32": lambda m: m.grad(lambda x: m.np.sum(x**2))(V.astype(np.float32)),
    "value_and_grad": lambda m: m.value_and_grad(lambda x: quartic(m.np, x))(V),
    "elementwise_grad": lambda m: m.elementwise_grad(lambda x: m.np.tanh(x) * x)(M),
    "elementwise_grad twice": lambda m: m.elementwise_grad(m.elementwise_grad(m.np.tanh))(M),
    "deriv": lambda m: m.deriv(lambda x: m.np.tanh(x) * x)(0.3),
    "deriv of complex numbers": lambda m: m.deriv(m.np.sin)(1.0 + 2.0j),
    "deriv of arrays": lambda m: m.deriv(m.deriv(lambda x: m.np.tanh(x) * x))(M),
    "jacobian": lambda m: m.jacobian(lambda x: field(m.np, x))(V),
    "jacobian of a number": lambda m: m.jacobian(lambda x: m.np.array([x, x**2]))(2.0),
    "jacobian of complex numbers": lambda m: m.jacobian(lambda z: m.np.real(z**2))(ZV),
    "jacobian of matrices": lambda m: m.jacobian(lambda x: m.np.dot(x, N.T), 0)(M),
    "jacobian of nothing": lambda m: m.jacobian(lambda x: np.ones(3))(V),
    "jacobian by argnum": lambda m: m.jacobian(lambda k, x: k * field(m.np, x), 1)(2.0, V),
    "jacobian of a jacobian": lambda m: m.jacobian(m.jacobian(lambda x: field(m.np, x)))(V),
    "hessian": lambda m: m.hessian(lambda x: quartic(m.np, x))(V),
    "hessian of several": lambda m: m.hessian(lambda x: field(m.np, x))(V),
    "hessian by argnum": lambda m: m.hessian(lambda k, x: k * quartic(m.np, x), 1)(2.0, V),
    "holomorphic_grad": lambda m: m.holomorphic_grad(lambda z: z**3 * m.np.exp(z))(1.0 + 2.0j),
    "grad_named": lambda m: m.grad_named(lambda a, b: m.np.sum(a * b**2), "b")(V, W),
    "grad_and_aux": lambda m: m.grad_and_aux(lambda x: (m.np.sum(x**2), 2.0 * m.np.sum(V)))(V),
    "grad of what grad_and_aux hands on": lambda m: m.grad(lambda y: sum(m.grad_and_aux(lambda x: (x**2, x**2 * y**3))(2.0)))(3.0),
    "make_vjp": lambda m: (lambda vjp, y: (vjp(np.ones(3)), vjp(np.arange(3.0)), y))(*m.make_vjp(lambda x: field(m.np, x))(V)),
    "make_vjp of a tuple": lambda m: m.make_vjp(lambda x: m.tuple((x**2, m.np.sum(x))))(V)[0]((W, 2.0)),
    "make_vjp of a list of a dict": lambda m: m.make_vjp(lambda d: m.list([d["a"] ** 2, d["b"]]))({"a": V, "b": 1.0})[0]([W, 2.0]),
    "make_vjp in make_vjp": lambda m: m.make_vjp(lambda x: m.make_vjp(lambda y: y**3)(x)[0](W))(V)[0](W),
    "make_jvp": lambda m: m.make_jvp(lambda x: field(m.np, x))(V)(W),
    "make_jvp by argnums": lambda m: m.make_jvp(lambda x, y: x * y**2, (0, 1))(V, W)((W, V)),
    "make_jvp in make_jvp": lambda m: m.make_jvp(lambda x: m.make_jvp(m.np.sin)(x)(x)[1])(V)(W),
    "make_jvp of grad": lambda m: m.make_jvp(m.grad(lambda x: quartic(m.np, x)))(V)(W),
    "grad of make_jvp": lambda m: m.grad(lambda x: m.make_jvp(lambda x: quartic(m.np, x))(x)(W)[1])(V),
    "make_jvp_reversemode": lambda m: m.differential_operators.make_jvp_reversemode(lambda x: field(m.np, x))(V)(W),
    "make_hvp": lambda m: (lambda hvp, g: (hvp(W), g))(*m.make_hvp(lambda x: quartic(m.np, x))(V)),
    "make_ggnvp": lambda m: m.make_ggnvp(lambda x: field(m.np, x))(V)(W),
    "make_ggnvp of another": lambda m: m.make_ggnvp(lambda k, x: k * field(m.np, x), lambda y: m.np.sum(y**4), 1)(2.0, V)(W),
    "hessian_tensor_product": lambda m: m.hessian_tensor_product(lambda x: m.np.sum(m.np.sin(x @ x.T)))(M, N),
    "hessian_vector_product": lambda m: m.hessian_vector_product(lambda x: quartic(m.np, x))(V, W),
    "hessian_vector_product by argnum": lambda m: m.hessian_vector_product(lambda k, x: k * quartic(m.np, x), 1)(2.0, V, W),
    "tensor_jacobian_product": lambda m: m.tensor_jacobian_product(lambda x: x @ N.T)(M, S),
    "vector_jacobian_product": lambda m: m.vector_jacobian_product(lambda x: field(m.np, x))(V, np.arange(3.0)),
    "checkpoint": lambda m: m.checkpoint(lambda x, k=1.0: m.np.sum(m.np.sin(x) * k))(V, k=2.0),
    "grad of checkpoint": lambda m: m.grad(m.checkpoint(lambda x, y: m.np.sum(m.np.sin(x) * y)), (0, 1))(V, W),
    "hessian of checkpoint": lambda m: m.hessian(m.checkpoint(lambda x: quartic(m.np, x)))(V),
    "elementwise_grad of checkpoint": lambda m: m.elementwise_grad(m.checkpoint(m.np.tanh))(V),
    "unary_to_nary": lambda m: m.differential_operators.unary_to_nary(lambda f, x: f(x) * 2.0)(lambda x, y: x + y, 1)(1.0, 2.0),
    "sgd": lambda m: m.misc_optimizers.sgd(m.grad(lambda t, i: tree_loss(m.np, t)), {**TREE, "z": V, "b": (V, {"c": 1.0})}, num_iters=5),
    "rmsprop": lambda m: m.misc_optimizers.rmsprop(lambda x, i: 2 * x + i, V, None, 7, 0.05, gamma=0.8),
    "adam": lambda m: m.misc_optimizers.adam(lambda x, i: 2 * x + i, V, num_iters=9, b1=0.8),
    "flatten": lambda m: (lambda v, back: (v, back(2.0 * v)))(*m.misc.flatten({"b": [V, (1.0,)], "a": M})),
    "flatten in grad": lambda m: m.grad(lambda t: m.np.sum(np.arange(18.0) * m.misc.flatten(t)[0] ** 2))({"b": [V, (1.0,)], "a": M}),
    "unflatten in grad": lambda m: m.grad(lambda v: m.np.sum(m.misc.flatten({"b": 1.0, "a": M})[1](v)["a"] ** 2))(np.arange(13.0)),
    "flatten_func": lambda m: (lambda f, back, v: (f(v), back(v), v))(*m.misc_flatten.flatten_func(lambda t: [t["a"] * 2], {"a": V})),
    "fixed_point": lambda m: m.grad(lambda a: root(m, a))(2.0),
    "fixed_point twice": lambda m: m.grad(m.grad(lambda a: root(m, a)))(2.0),
    "getval": lambda m: m.grad(lambda x: m.np.sum(x * m.tracer.getval(x)) + float(m.tracer.getval(x[0])))(V),
}  # fmt: skip


def newton(a: Any) -> Callable[[Any], Any]:
    return lambda x: 0.5 * (x + a / x)


def root(m: Any, a: Any) -> Any:
    return m.misc_fixed_points.fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    compare_libraries(OPERATORS[name], 1e-7)


def test_multigrad_dict() -> None:
    """`multigrad_dict` gives the gradients of `grad` (HIPS autograd's needs a package that it does not install)."""

    def f(x: Any, y: Any = 2.0, *rest: Any, k: Any = 3.0) -> Any:
        return OURS.np.sum(x**2) * y * rest[0] * k if rest else OURS.np.sum(x**2) * y * k

    found = ours.multigrad_dict(f)(V, 4.0, 5.0)
    assert list(found) == ["x", "y", "rest", "k"]
    assert_same(
        (found["x"], found["y"], found["rest"], found["k"]), (2 * V * 60, 15 * np.sum(V**2), (12 * np.sum(V**2),), 20 * np.sum(V**2))
    )
    assert_same(ours.multigrad_dict(lambda x, y=2.0: OURS.np.sum(x) * y)(V)["y"], np.sum(V))


def test_namedtuples() -> None:
    found = ours.grad(lambda p: OURS.np.sum(p.x**2) * p.y)(Point(V, 2.0))
    assert isinstance(found, Point)
    assert_same(tuple(found), (4 * V, np.sum(V**2)))


def test_names_and_documentation() -> None:
    def f(x: Any) -> Any:
        return x

    assert ours.grad(f).__name__ == theirs.grad(f).__name__
    assert ours.jacobian(f, 1).__name__ == theirs.jacobian(f, 1).__name__
    assert "gradient" in ours.grad.__doc__


# -- data in, data out -----------------------------------------------------------------------------------------------------------


def test_gradients_are_arrays_of_their_own() -> None:
    x = V.copy()
    for g in (
        ours.grad(OURS.np.sum)(x), *ours.grad(lambda x, y: OURS.np.sum(x + y), (0, 1))(x, x), ours.make_vjp(lambda x: x)(x)[0](x),
        ours.elementwise_grad(lambda x: OURS.np.reshape(x, (5, 1)))(x), ours.jacobian(lambda x: x)(x),
    ):  # fmt: skip
        assert g.flags.writeable
        g += 1.0
    np.testing.assert_array_equal(x, V)
    a, b = ours.grad(lambda x, y: OURS.np.sum(x + y), (0, 1))(x, x)
    assert not np.may_share_memory(a, b)
    vjp, y = ours.make_vjp(OURS.np.exp)(x)
    y[...] = 0.0
    assert_same(vjp(np.ones(5)), np.exp(V))


def test_an_argument_is_not_written_to() -> None:
    x = V.copy()

    def write(x: Any) -> Any:
        x[0] = 0.0
        return OURS.np.sum(x)

    with pytest.raises(TypeError, match="in-place"):
        ours.grad(write)(x)
    np.testing.assert_array_equal(x, V)


@pytest.mark.parametrize(("at", "sign"), [(np.add.at, 1.0), (np.subtract.at, -1.0)])
def test_a_sum_into_an_array_is_written(at: Any, sign: float) -> None:
    def total(x: Any) -> Any:
        out = x * 0.0 + 1.0
        at(out, [0, 0, 1], x * x)
        return OURS.np.sum(out * np.array([1.0, 2.0, 3.0]))

    np.testing.assert_allclose(ours.grad(total)(np.array([1.0, 2.0, 3.0])), sign * np.array([2.0, 4.0, 12.0]))
    with pytest.raises((RuntimeError, TypeError), match="in-place"):
        ours.grad(lambda x: at(x, [0], 1.0))(V)


#: Calls of which NumPy's result shares memory with `a`, or does not.
ALIASES: dict[str, Callable[[Any, Any], Any]] = {
    "flatten": lambda np, a: a.flatten(),
    "flatten in Fortran's order": lambda np, a: a.flatten("F"),
    "ravel": lambda np, a: a.ravel(),
    "astype": lambda np, a: a.astype(float),
    "copy.copy": lambda np, a: copy.copy(a),
    "copy": lambda np, a: a.copy(),
    "array": lambda np, a: np.array(a),
    "array with a dtype": lambda np, a: np.array(a, float),
    "array with ndmin": lambda np, a: np.array(a, ndmin=2)[0],
    "array without a copy": lambda np, a: np.array(a, copy=False),
    "array with a copy if needed": lambda np, a: np.array(a, copy=None),
    "asarray": lambda np, a: np.asarray(a),
    "asarray with a dtype": lambda np, a: np.asarray(a, float),
    "ascontiguousarray": lambda np, a: np.ascontiguousarray(a),
    "compress": lambda np, a: a.compress([True, True, True]),
}


@pytest.mark.parametrize("name", ALIASES)
def test_results_share_memory_as_those_of_numpy(name: str) -> None:
    call, x = ALIASES[name], np.array([1.0, -2.0, 3.0])

    def total(lib: Any, x: Any, write: int) -> Any:
        a = x * 1.0
        pair = (a, call(lib, a))
        pair[write][0] = 5.0 * x[1]
        return lib.sum(pair[0] * np.array([1.0, 2.0, 3.0])) + lib.sum(pair[1] * np.array([7.0, 11.0, 13.0]))

    for write in (0, 1):
        expected = [total(np, x + h, write) - total(np, x - h, write) for h in np.eye(3) / 2]  # exact: the function is linear
        np.testing.assert_allclose(ours.grad(lambda x: total(OURS.np, x, write))(x), expected)  # noqa: B023 (called at once)
        np.testing.assert_allclose(ours.make_jvp(lambda x: total(OURS.np, x, write))(x)(V[:3])[1], V[:3] @ expected)  # noqa: B023


def test_first_arguments_by_name() -> None:
    programs: tuple[Callable[[Any, Any], Any], ...] = (
        lambda np, x: np.tile(A=x, reps=2),
        lambda np, x: np.pad(array=x, pad_width=1),
        lambda np, x: np.flip(m=x, axis=0),
        lambda np, x: np.diag(v=x),
        lambda np, x: np.imag(val=x * 1j),
        lambda np, x: np.sum(a=x, axis=0),
    )
    for f in programs:
        np.testing.assert_array_equal(f(OURS.np, M), f(np, M))
        np.testing.assert_array_equal(ours.make_vjp(lambda x: f(OURS.np, x))(M)[1], f(np, M))  # noqa: B023 (called at once)


def test_the_method_compress_selects_by_its_argument() -> None:
    matrix, chosen = M[:, :3], [True, False, True]
    for axis in (None, 0, 1):
        program = lambda x: x.compress(chosen, axis=axis)  # noqa: B023, E731 (called at once)
        np.testing.assert_array_equal(ours.make_vjp(program)(matrix)[1], program(matrix))
        np.testing.assert_array_equal(
            ours.grad(lambda x: OURS.np.sum(program(x) ** 2))(matrix),  # noqa: B023 (called at once)
            2 * matrix * np.isin(matrix, program(matrix)),
        )


@pytest.mark.parametrize(
    "convert", [float, complex, lambda x: x.item(), lambda x: x.tolist(), np.asarray, lambda x: np.zeros(1).__setitem__(0, x)]
)
def test_a_number_does_not_leave_the_graph(convert: Any) -> None:
    for f in (ours.grad, ours.deriv):
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            f(lambda x: convert(x) * x)(2.0)


@pytest.mark.parametrize("like", [W, V.astype("float32")])
def test_full_like_has_the_derivative_that_hips_loses(like: Any) -> None:
    np = OURS.np
    for f, same in (
        (lambda x: np.full_like(like, x[0] ** 2), lambda x: np.full(5, x[0] ** 2, like.dtype)),
        (lambda x: np.full_like(like, [x[0], 1.0], shape=(3, 2)), lambda x: np.full((3, 2), [x[0], 1.0], like.dtype)),
        (lambda x: np.full_like(like, x[0], float), lambda x: np.full(5, x[0])),
        (lambda x: np.full_like(x[:2], x[0]), lambda x: np.full(2, x[0])),
    ):
        assert_same(ours.jacobian(f)(V), ours.jacobian(same)(V))
        assert_same(ours.make_jvp(f)(V)(W), ours.make_jvp(same)(V)(W))
    assert_same(np.full_like(like, 2.0, int, shape=3), np.full(3, 2))


def test_integers_are_numbers_in_forward_mode() -> None:
    programs: dict[str, Callable[[Any, Any], Any]] = {
        "int": lambda np, x: x[int(np.argmax(x))] ** 2,
        "item": lambda np, x: x ** np.sum(x > 0).item(),
        "tolist": lambda np, x: x[np.argsort(x).tolist()] ** 2,
        "repeat": lambda np, x: np.repeat(x, [1, 0, 2, 1, 3]) ** 2,
    }
    for f in programs.values():
        compare_libraries(lambda lib, f=f: lib.make_jvp(lambda x: f(lib.np, x))(V)(W))
    found = ours.deriv(lambda t: OURS.np.bincount([0, 1, 1], weights=t * np.arange(3.0)))(2.0)
    np.testing.assert_array_equal(found, [0.0, 3.0])


@pytest.mark.parametrize("transform", ["grad", "deriv", "jacobian", "elementwise_grad", "hessian"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: copy.deepcopy({"x": [x * 1.0]})["x"][0]])
def test_copies_keep_the_derivative(copied: Any, transform: str) -> None:
    found = getattr(ours, transform)(lambda x: copied(x) * x * x)(2.0)
    np.testing.assert_allclose(found, getattr(ours, transform)(lambda x: x * x * x)(2.0))
    assert np.all(np.asarray(found) == 12.0)


def test_what_boxes_do_not_have() -> None:
    for package, error in ((theirs, AttributeError), (ours, AttributeError)):
        with pytest.raises(error, match="data"):
            package.grad(lambda x: x.data * x)(2.0)
    for transform in (ours.grad, ours.deriv, ours.jacobian):
        with pytest.raises(RuntimeError, match="Can't pickle a Tensor"):
            transform(lambda x: pickle.loads(pickle.dumps(x)) * x)(2.0)


def test_builtins() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((OURS.isinstance(x[0], np.ndarray), OURS.isinstance(x[1], float), OURS.isinstance(x, OURS.list), OURS.type(x),
                     OURS.type(x[0]), OURS.isinstance(x[0], list), OURS.tracer.isbox(x[0]), OURS.tracer.isbox(1.0)))  # fmt: skip
        return OURS.np.sum(x[0]) * x[1]

    ours.grad(f)([V, 2.0])
    assert seen == [(True, True, True, list, np.ndarray, False, True, False)]


@pytest.mark.parametrize(
    ("program", "error", "match"),
    [
        (lambda: ours.grad(lambda x: x)(V), TypeError, "one real number"),
        (lambda: ours.grad(lambda x: x * 1j)(1.0), TypeError, "one real number"),
        (lambda: ours.grad(lambda x: x)(3), TypeError, "write a float"),
        (lambda: ours.grad(lambda x: x)("3"), TypeError, "cannot differentiate with respect to str"),
        (lambda: ours.grad(lambda x: x[0])([1.0, None]), TypeError, "NoneType"),
        (lambda: ours.grad(lambda x: None)(1.0), TypeError, "has no derivative"),
        (lambda: ours.grad(lambda x: OURS.np.argmax(x))(V), TypeError, "int64"),
        (lambda: ours.grad(lambda x: x > 0)(1.0), TypeError, "bool"),
        (lambda: ours.grad(lambda x: x, "x"), TypeError, "grad_named"),
        (lambda: ours.grad(lambda x: x, 1)(1.0), IndexError, "range"),
        (lambda: ours.grad(3), TypeError, "callable"),
        (lambda: ours.grad_named(lambda x: x, "y"), ValueError, "'y'"),
        (lambda: ours.elementwise_grad(lambda x: x * 1j)(V), TypeError, "real values"),
        (lambda: ours.jacobian(lambda x: x)(Z), ValueError, "complex"),
        (lambda: ours.jacobian(lambda x: x["a"])({"a": V}), TypeError, "flatten"),
        (lambda: ours.make_vjp(lambda x: x)(V)[0](np.ones(4)), ValueError, r"expected shape \(5,\)"),
        (lambda: ours.make_vjp(lambda x: x)(V)[0]([np.ones(5)]), ValueError, "list"),
        (lambda: ours.make_vjp(lambda x: x)(V)[0](1j * V), TypeError, "real part"),
        (lambda: ours.make_jvp(lambda x: x)(V)(np.ones(4)), ValueError, r"expected shape \(5,\)"),
        (lambda: ours.make_jvp(lambda x: x)(V)((V,)), ValueError, "tuple"),
        (lambda: ours.grad(lambda x: OURS.np.bitwise_count(x))(V), TypeError, "no rule"),
        (lambda: ours.extend.defvjp(3, lambda ans, x: None), TypeError, "not a primitive"),
    ],
)  # fmt: skip
def test_errors(program: Callable[[], Any], error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        program()


def test_holomorphic_grad_warns() -> None:
    with pytest.warns(UserWarning, match="not complex"):
        assert_same(ours.holomorphic_grad(lambda x: x**2)(2.0), np.float64(4.0))


def test_beside_xpgrads_own_transforms() -> None:
    import xpgrad as xp

    slope = xp.func.grad(lambda a: ours.grad(lambda x: a * x**2)(3.0))(xp.tensor(2.0))
    assert isinstance(slope, xp.Tensor)
    assert float(slope.detach()) == 6.0
    w = xp.tensor(2.0, requires_grad=True)
    ours.grad(lambda x: w * x**2)(3.0).backward()
    assert float(w.grad) == 6.0
    tangent = xp.func.jvp(lambda a: ours.grad(lambda x: a * x**2)(3.0), (xp.tensor(2.0),), (xp.tensor(1.0),))[1]
    assert float(tangent) == 6.0


#: Functions of the library, of a scalar function `f`, of its gradient `g`, and of a vector.
IN_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda m, f, g, x: m.grad(f)(x),
    "value_and_grad": lambda m, f, g, x: m.value_and_grad(f)(x)[1],
    "grad_and_aux": lambda m, f, g, x: m.grad_and_aux(lambda x: (f(x), 2.0 * x))(x)[0],
    "elementwise_grad": lambda m, f, g, x: m.elementwise_grad(g)(x),
    "jacobian": lambda m, f, g, x: m.jacobian(g)(x),
    "jacobian of a constant": lambda m, f, g, x: m.jacobian(lambda x: m.np.ones(2))(x) + x,
    "hessian": lambda m, f, g, x: m.hessian(f)(x),
    "make_vjp": lambda m, f, g, x: m.make_vjp(g)(x)[0](W),
    "make_jvp": lambda m, f, g, x: m.make_jvp(g)(x)(W)[1],
    "make_jvp_reversemode": lambda m, f, g, x: m.differential_operators.make_jvp_reversemode(g)(x)(W),
    "make_hvp": lambda m, f, g, x: m.make_hvp(f)(x)[0](W),
    "make_ggnvp": lambda m, f, g, x: m.make_ggnvp(g)(x)(W),
    "grad of a container": lambda m, f, g, x: m.grad(lambda d: f(d["a"] * d["b"]))({"a": x, "b": 0.5})["a"],
    "grad of a checkpoint": lambda m, f, g, x: m.grad(m.checkpoint(f))(x),
    "grad in a checkpoint": lambda m, f, g, x: m.grad(
        lambda z: f(m.checkpoint(lambda z: m.grad(lambda q: m.np.sum(q * z**3))(m.np.ones_like(z)))(z))
    )(x),
}


@pytest.mark.parametrize("own", [False, True], ids=["of numpy", "of primitives"])
@pytest.mark.parametrize("name", IN_TRANSFORMS)
def test_operators_inside_of_xpgrads_transforms(name: str, own: bool) -> None:
    """Batches are loops, and derivatives are those of HIPS autograd; arguments are on NumPy, where the rules of primitives compute, too."""
    import xpgrad as xp

    def program(m: Any) -> Callable[[Any], Any]:
        made = primitives(m)

        def f(x: Any) -> Any:
            if own:
                return made.product(made.logsumexp(m.np.sin(x)), m.np.sum(made.product(x, x)))
            return m.np.log(m.np.sum(m.np.exp(m.np.sin(x)))) * m.np.sum(x * x)

        return lambda x: IN_TRANSFORMS[name](m, f, m.grad(f), x)

    theirs_of, ours_of = program(HIPS), program(OURS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [theirs_of(x) for x in (V, W)]
        slopes = theirs.jacobian(theirs_of)(V)
        batch = xp.func.vmap(ours_of)(np.stack([V, W]))
        point = xp.asarray(V)
        derivatives = [xp.func.jacrev(ours_of)(point), xp.func.jvp(ours_of, (point,), (xp.asarray(W),))[1]]
        batched = xp.func.vmap(xp.func.jacrev(ours_of))(np.stack([V, W]))
    assert batch.device == point.device
    np.testing.assert_allclose(batch.numpy(), np.stack(expected), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(derivatives[0].detach().numpy(), slopes, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(derivatives[1].numpy(), slopes @ W, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(batched.numpy()[0], slopes, rtol=1e-8, atol=1e-9)


def test_a_loop_whose_pass_runs_after_the_function() -> None:
    """Its body is differentiated again in the pass, where the argument of the outer operator still is one."""
    import xpgrad as xp

    def slopes(x: Any) -> Any:
        return xp.func.linearize(lambda x: ours.numpy.sum(ours.numpy.sin(x) * x**2), x)[1](ours.numpy.ones_like(x))

    def total(x: Any) -> Any:
        found = xp.func.scan(lambda carry, i: (carry, ours.grad(slopes)(x)[i]), 0.0, xp.arange(5))[1]
        return ours.numpy.sum(found**2)

    second = 2 * np.sin(V) + 4 * V * np.cos(V) - V**2 * np.sin(V)
    third = 6 * np.cos(V) - 6 * V * np.sin(V) - V**2 * np.cos(V)
    for gradient in (ours.grad(total), xp.compile(ours.grad(total)), xp.func.grad(total)):
        np.testing.assert_allclose(np.asarray(gradient(xp.asarray(V))), 2 * second * third, rtol=1e-9)


# -- rules of one's own ------------------------------------------------------------------------------------------------------------


def primitives(m: Any) -> SimpleNamespace:
    """Define the same primitives with one of the libraries; their functions assert that they get plain arrays."""

    def plain(*xs: Any) -> None:
        assert not any(m.tracer.isbox(x) for x in xs)

    @m.primitive
    def logsumexp(x: Any) -> Any:
        plain(x)
        top = np.max(x)
        return top + np.log(np.sum(np.exp(x - top)))

    m.extend.defvjp(logsumexp, lambda ans, x: lambda g: g * m.np.exp(x - ans))
    m.extend.defjvp(logsumexp, lambda g, ans, x: m.np.sum(g * m.np.exp(x - ans)))

    @m.extend.primitive
    def product(x: Any, y: Any, k: Any = 1.0) -> Any:
        plain(x, y)
        return x * y * k

    m.extend.defvjp(
        product,
        lambda ans, x, y, k=1.0: m.numpy.numpy_vjps.unbroadcast_f(x, lambda g: g * y * k),
        lambda ans, x, y, k=1.0: m.numpy.numpy_vjps.unbroadcast_f(y, lambda g: g * x * k),
    )
    m.extend.def_linear(product)

    @m.primitive
    def powers(x: Any, n: Any) -> Any:
        plain(x)
        return x**n

    m.extend.defvjp_argnum(powers, lambda argnum, ans, args, kwargs: lambda g: g * args[1] * args[0] ** (args[1] - 1))
    m.extend.defjvp_argnum(powers, lambda argnum, g, ans, args, kwargs: g * args[1] * args[0] ** (args[1] - 1))

    @m.primitive
    def together(x: Any, y: Any) -> Any:
        plain(x, y)
        return np.sin(x) * y

    m.extend.defvjp_argnums(
        together,
        lambda argnums, ans, args, kwargs: (
            lambda g: tuple(g * (m.np.cos(args[0]) * args[1] if n == 0 else m.np.sin(args[0])) for n in argnums)
        ),
    )
    m.extend.defjvp_argnums(
        together,
        lambda argnums, gs, ans, args, kwargs: sum(
            g * (m.np.cos(args[0]) * args[1] if n == 0 else m.np.sin(args[0])) for n, g in zip(argnums, gs)
        ),
    )

    @m.primitive
    def second(x: Any, y: Any) -> Any:
        plain(x, y)
        return np.floor(x) + y

    m.extend.defvjp(second, None, lambda ans, x, y: lambda g: g)
    m.extend.defjvp(second, None, "same")

    @m.extend.notrace_primitive
    def rounded(x: Any) -> Any:
        plain(x)
        return np.round(x)

    return SimpleNamespace(**{f.__name__: f for f in (logsumexp, product, powers, together, second, rounded)})  # fmt: skip


RULES: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda m, p: m.grad(p.logsumexp)(V),
    "hessian": lambda m, p: m.hessian(p.logsumexp)(V),
    "jacobian": lambda m, p: m.jacobian(lambda x: m.np.array([p.logsumexp(x), p.logsumexp(x**2)]))(V),
    "jvp": lambda m, p: m.make_jvp(p.logsumexp)(V)(W),
    "jvp of grad": lambda m, p: m.make_jvp(m.grad(p.logsumexp))(V)(W),
    "grad of jvp": lambda m, p: m.grad(lambda x: m.make_jvp(p.logsumexp)(x)(W)[1])(V),
    "composed": lambda m, p: m.grad(lambda x: m.np.sin(p.logsumexp(m.np.cos(x))))(V),
    "not traced": lambda m, p: p.logsumexp(V),
    "two arguments": lambda m, p: m.grad(lambda x, y: m.np.sum(p.product(x, y, k=2.0) ** 2), (0, 1))(M, N[0]),
    "linear": lambda m, p: m.make_jvp(lambda x: p.product(x, x))(V)(W),
    "complex": lambda m, p: m.make_vjp(lambda z: p.product(z, z))(ZV)[0](ZV),
    "complex twice": lambda m, p: m.grad(lambda z: m.np.sum(m.np.abs(m.grad(lambda z: m.np.sum(m.np.real(p.product(z, z) ** 2)))(z))))(ZV),
    "defvjp_argnum": lambda m, p: m.grad(m.grad(lambda x: p.powers(x, 5)))(1.5),
    "defjvp_argnum": lambda m, p: m.deriv(lambda x: p.powers(x, 5))(1.5),
    "defvjp_argnums": lambda m, p: m.grad(lambda x, y: m.np.sum(p.together(x, y) ** 2), (0, 1))(V, W),
    "defjvp_argnums": lambda m, p: m.make_jvp(p.together, (0, 1))(V, W)((W, V)),
    "None": lambda m, p: m.grad(lambda x, y: m.np.sum(p.second(x, y) * y), (0, 1))(V, W),
    "None, same": lambda m, p: m.make_jvp(lambda y: p.second(1.5, y))(V)(W),
    "notrace_primitive": lambda m, p: m.grad(lambda x: p.rounded(x) * x)(1.6),
    "checkpoint of it": lambda m, p: m.grad(m.checkpoint(lambda x: p.logsumexp(x) ** 2))(V),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rules_of_ones_own(name: str) -> None:
    compare_libraries(lambda m: RULES[name](m, primitives(m)))


def test_primitives_of_containers() -> None:
    @ours.primitive
    def both(p: Any) -> Any:
        return p["a"] * 2, [p["b"] * p["a"]]

    ours.extend.defvjp(both, lambda ans, p: lambda g: {"a": 2 * g[0] + g[1][0] * p["b"], "b": g[1][0] * p["a"]})
    found = ours.grad(lambda p: (lambda y: y[0] * y[1][0])(both(p)))({"a": 2.0, "b": 3.0})
    assert_same(found, {"a": np.float64(24.0), "b": np.float64(8.0)})  # 2 a^2 b


def test_missing_rules_say_so() -> None:
    f = ours.primitive(lambda x, y: x * y)
    with pytest.raises(NotImplementedError, match=r"VJP of <lambda> wrt argnums \(0,\) not defined"):
        ours.grad(f)(1.0, 2.0)
    ours.extend.defvjp(f, lambda ans, x, y: lambda g: g * y)
    assert_same(ours.grad(f)(1.0, 2.0), np.float64(2.0))
    with pytest.raises(NotImplementedError, match=r"VJP of <lambda> wrt argnums \(1,\) not defined"):
        ours.grad(f, 1)(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="JVP of <lambda>"):
        ours.make_jvp(f)(1.0, 2.0)(1.0)


def test_register_notrace() -> None:
    f = ours.primitive(np.sign)
    ours.extend.register_notrace(ours.extend.VJPNode, f)
    assert_same(ours.grad(lambda x: f(x) * x)(-2.0), np.float64(-1.0))
    with pytest.raises(NotImplementedError, match="JVP"):
        ours.deriv(lambda x: f(x) * x)(-2.0)
    ours.extend.register_notrace(ours.extend.JVPNode, f)
    assert_same(ours.deriv(lambda x: f(x) * x)(-2.0), np.float64(-1.0))


def test_sparse_gradients() -> None:
    @ours.primitive
    def take(x: Any, i: int) -> Any:
        return x[i]

    def rule(ans: Any, x: Any, i: int) -> Any:
        def add(g: Any) -> Callable[[Any], Any]:
            def mut_add(a: Any) -> Any:
                a[i] += g
                return a

            return mut_add

        return lambda g: ours.extend.SparseObject(ours.extend.vspace(x), add(g))

    ours.extend.defvjp(take, rule)
    assert_same(ours.grad(lambda x: take(x, 2) * 3.0)(V), np.array([0.0, 0, 3, 0, 0]))


@pytest.mark.parametrize("value", [V, 2.0, 1j, Z, [V, {"a": 1.0}]], ids=["vector", "number", "complex number", "complex matrix", "tree"])
def test_vspaces(value: Any) -> None:
    mine, their = ours.extend.vspace(value), theirs.extend.vspace(value)
    assert mine.size == their.size
    assert_same(mine.zeros(), their.zeros())
    assert_same(mine.ones(), their.ones())
    assert_same(list(mine.standard_basis()), list(their.standard_basis()))
    x, y = mine.randn(), mine.randn()
    assert_same(mine.add(x, y), their.add(x, y))
    assert_same(mine.covector(x), their.covector(x))
    assert_same(mine.scalar_mul(x, 2.0), their.scalar_mul(x, 2.0))
    np.testing.assert_allclose(mine.inner_prod(x, y), their.inner_prod(x, y))
    assert mine == ours.extend.vspace(x)
    assert mine != ours.extend.vspace([value])


# -- checks --------------------------------------------------------------------------------------------------------------------------


def test_check_grads() -> None:
    np.random.seed(0)  # noqa: NPY002 (the directions are drawn from the global generator)
    check = ours.test_util.check_grads
    check(lambda x: OURS.np.sin(x) * x, modes=["fwd", "rev"], order=3)(V)
    check(lambda x, y: OURS.np.sum(x * y**2), (0, 1))(V, 2.0)
    check(lambda d: d["a"] * d["b"][0])({"a": V, "b": (2.0,)})
    check(lambda z: OURS.np.abs(z) * z)(1.0 + 2.0j)
    ours.test_util.combo_check(OURS.np.sum, 0, modes=["rev"])([M, N], axis=[0, 1])
    ours.test_util.check_equivalent([V, 1.0], [V.copy(), 1.0])
    with pytest.raises(AssertionError):
        ours.test_util.check_equivalent(V, W)
    with pytest.raises(ValueError, match="modes"):
        check(lambda x: x, modes=["back"])(V)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_check_grads_notices(mode: str) -> None:
    np.random.seed(0)  # noqa: NPY002 (as above)
    wrong = ours.primitive(np.sin)
    ours.extend.defvjp(wrong, lambda ans, x: lambda g: g * OURS.np.cos(x) * 1.01)
    ours.extend.defjvp(wrong, lambda g, ans, x: g * OURS.np.cos(x) * 1.01)
    with pytest.raises(AssertionError, match="failed"):
        ours.test_util.check_grads(wrong, modes=[mode], order=1)(V)


# -- the programs that are timed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(18))
def test_the_timed_programs_compute_the_same(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    programs = importlib.import_module("benchmarks.hips")
    names = [*programs.PROGRAMS, *programs.OWN_RULES]
    assert len(names) == 18
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = programs.measure_program(names[number], 0.0)  # it compares results before it times
    assert min(times) > 0.0
