"""Law: `xpgrad.fft` has the standard's values, and the gradients of finite differences and of PyTorch, to second order.

One table of calls drives all comparisons: lengths that pad and trim, odd and even, real and complex operands, every normalisation.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import cast_for_device, differences, loosen
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES

strict = pytest.importorskip("array_api_strict", reason="the reference namespace of the standard")

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MORE_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
REAL_ONLY = ("rfft", "ihfft", "rfftn")
NORMS = ("backward", "ortho", "forward")
NAMES = (*ONE_AXIS, *MORE_AXES, "fftfreq", "rfftfreq", "fftshift", "ifftshift")

#: (name, keyword arguments): every transform with default arguments, with lengths that trim and pad, other axes and other norms.
CALLS = [
    *((name, {"n": n, "axis": axis, "norm": norm}) for name in ONE_AXIS
      for n, axis, norm in ((None, -1, "backward"), (3, 0, "ortho"), (4, 1, "forward"), (7, -1, "forward"), (8, 0, "backward"))),
    *((name, {"s": s, "axes": axes, "norm": norm}) for name in MORE_AXES
      for s, axes, norm in ((None, None, "backward"), (None, (0,), "ortho"), ((3, 7), (1, 0), "forward"), ((-1, 6), (-2, -1), "ortho"))),
    ("fftshift", {"axes": None}), ("fftshift", {"axes": 1}), ("ifftshift", {"axes": None}), ("ifftshift", {"axes": (0, -1)}),
]  # fmt: skip


def cases(*dtypes: str) -> Any:
    """Return a parametrisation by the calls with each dtype that they take."""
    return pytest.mark.parametrize(
        ("name", "kw", "dtype"),
        [
            pytest.param(name, kw, dtype, id=f"{name}-{'-'.join(map(str, kw.values()))}-{dtype}")
            for name, kw in CALLS
            for dtype in dtypes
            if not (name in REAL_ONLY and dtype.startswith("complex"))
        ],
    )


def draw(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def dot(w: np.ndarray, y: np.ndarray) -> float:
    """Return the real inner product, whose gradients are PyTorch's."""
    return float(np.real(np.sum(np.conj(w) * y)))


def numpy_of(t: Any) -> np.ndarray:
    """Return the values of a Tensor of either library."""
    t = t.detach()
    return t.numpy() if isinstance(t, xp.Tensor) else t.resolve_conj().resolve_neg().numpy()


# -- the namespace -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_the_standards(name):
    ours, theirs = (inspect.signature(getattr(lib, name)).parameters for lib in (xp.fft, strict.fft))
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in theirs.values()]
    # As in NumPy and PyTorch, what the standard takes by keyword only may be given by position too, except for what makes a Tensor.
    kinds = [
        inspect.Parameter.POSITIONAL_OR_KEYWORD if p.kind is p.KEYWORD_ONLY and "freq" not in name else p.kind for p in theirs.values()
    ]
    assert [p.kind for p in ours.values()] == kinds


def test_every_function_is_in_one_table():
    assert sorted(xp.fft.__all__) == sorted(NAMES)
    for name in NAMES:
        assert [f"fft.{name}" in table for table in (RULES, NONDIFFERENTIABLE, COMPOSITE)].count(True) == 1


# -- values ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=3)
@cases("float32", "float64", "complex64", "complex128")
def test_values(name, kw, dtype):
    x = draw((4, 5), dtype)
    raw = kw if "axes" not in kw or kw.get("axes") is None or kw.get("s") is None else kw | {"s": [4 if n == -1 else n for n in kw["s"]]}
    expected = getattr(np.fft, name)(x, **raw)
    got = getattr(xp.fft, name)(xp.asarray(x), **kw)
    assert got.numpy().dtype == expected.dtype
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5 if dtype in ("float32", "complex64") else 1e-12, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, n):
    for d in (1.0, 0.25, 3):
        np.testing.assert_allclose(getattr(xp.fft, name)(n, d=d).numpy(), getattr(np.fft, name)(n, d), rtol=1e-15)
    got = getattr(xp.fft, name)(n, dtype=xp.float32, device="numpy")
    assert (got.dtype, str(got.device), got.requires_grad) == (xp.float32, "numpy", False)


# -- gradients ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=3)
@cases("float64", "complex128")
def test_gradients_to_second_order(name, kw, dtype):
    check(name, kw, draw((4, 5), dtype))


def check(name: str, kw: Any, a: np.ndarray) -> None:
    """Compare first and second derivatives of ``f(x * x)`` with central differences."""
    f = getattr(xp.fft, name)
    w = draw(f(xp.asarray(a), **kw).shape, f(xp.asarray(a), **kw).numpy().dtype, 1)

    def value(t: Any) -> Any:
        return f(t * t, **kw)

    x = xp.tensor(a, requires_grad=True)
    (g,) = xp.autograd.grad(value(x), x, xp.asarray(w), create_graph=True)
    assert g.dtype is x.dtype
    np.testing.assert_allclose(g.detach().numpy(), differences(lambda b: dot(w, value(xp.asarray(b)).numpy()), a), rtol=1e-6, atol=1e-7)
    v = draw(a.shape, a.dtype, 2)
    (h,) = xp.autograd.grad(g, x, xp.asarray(v))

    def first(b: np.ndarray) -> np.ndarray:
        y = xp.tensor(b, requires_grad=True)
        return xp.autograd.grad(value(y), y, xp.asarray(w))[0].numpy()

    np.testing.assert_allclose(h.numpy(), differences(lambda b: dot(v, first(b)), a), rtol=1e-6, atol=1e-7)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_gradients_on_drawn_shapes(data):
    name = data.draw(st.sampled_from(ONE_AXIS + MORE_AXES))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    norm = data.draw(st.sampled_from(NORMS))
    a = draw(shape, data.draw(st.sampled_from(["float64", "complex128"])) if name not in REAL_ONLY else "float64")
    length = st.integers(1, 6)
    if name in ONE_AXIS:
        kw: Any = {"n": data.draw(length), "axis": data.draw(st.integers(-len(shape), len(shape) - 1)), "norm": norm}
    else:
        axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
        kw = {"s": [data.draw(length) for _ in axes], "axes": axes, "norm": norm}
    np.testing.assert_allclose(getattr(xp.fft, name)(xp.asarray(a), **kw).numpy(), getattr(np.fft, name)(a, **kw), atol=1e-12)
    check(name, kw, a)


@pytest.mark.slow(one_in=3)
@cases("float32", "float64", "complex128")
def test_as_pytorch(name, kw, dtype):
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    a = draw((4, 5), dtype)
    theirs_kw = {{"axis": "dim", "axes": "dim"}.get(k, k): v for k, v in kw.items()}
    results = []
    for lib, f, leaf, options in ((xp, xp.fft, xp.tensor, kw), (torch, torch.fft, torch.tensor, theirs_kw)):
        x = leaf(a, requires_grad=True)
        y = getattr(f, name)(x * x, **options)
        w = leaf(draw(tuple(y.shape), numpy_of(y).dtype, 1))
        (g,) = lib.autograd.grad(y, x, w, create_graph=True)
        (h,) = lib.autograd.grad(g, x, leaf(draw((4, 5), dtype, 2)))
        results.append([numpy_of(t) for t in (y, g, h)])
    for ours, theirs in zip(*results):
        assert ours.dtype == theirs.dtype
        tolerance = 1e-4 if dtype == "float32" else 1e-10
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_a_real_leaf_gets_a_real_gradient_through_complex_values():
    x = xp.tensor([1.0, -2.0, 0.5], requires_grad=True)
    spectrum = xp.fft.fft(x)
    xp.sum(xp.real(spectrum * xp.conj(spectrum))).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * 3 * x.detach().numpy())  # Parseval


def test_nothing_is_saved():
    x = xp.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    z = xp.fft.irfft(xp.fft.rfft(y, n=6), n=5)
    y += 1  # no transform saves its operand, so this raises no error
    xp.sum(z).backward()
    assert x.grad is not None


@cases("float64", "complex128")
def test_every_backend_agrees(name, kw, dtype, xpgrad_device):
    results = []
    for device in (xpgrad_device, "numpy"):
        given = draw((4, 5), dtype)
        x = xp.tensor(cast_for_device(given, device), device=device, requires_grad=True)
        y = getattr(xp.fft, name)(x * x, **kw)
        (g,) = xp.autograd.grad(xp.sum(xp.abs(y) ** 2), x, create_graph=True)
        (h,) = xp.autograd.grad(xp.sum(xp.abs(g) ** 2), x)
        assert str(h.device) == device
        results.append([numpy_of(t) for t in (y, g, h)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(
            a, b, rtol=loosen(1e-7, xpgrad_device, given), atol=loosen(1e-10, xpgrad_device, given) * np.abs(b).max()
        )


# -- errors ------------------------------------------------------------------------------------------------------------------


ERRORS = [
    ("fft", "float64", {"norm": "unitary"}, ValueError, "backward"), ("fft", "int64", {}, TypeError, "astype"),
    ("fft", "float64", {"n": 0}, ValueError, "positive"), ("fft", "float64", {"n": 2.5}, TypeError, "int"),
    ("fft", "float64", {"axis": 2}, IndexError, "axis"), ("rfft", "complex128", {}, TypeError, "real"),
    ("rfftn", "complex128", {}, TypeError, "real"), ("ihfft", "complex128", {}, TypeError, "real"),
    ("fftn", "float64", {"s": (2, 3), "axes": (0,)}, ValueError, "equal lengths"),
    ("fftn", "float64", {"s": (1, 2, 3)}, ValueError, "more"),
    ("fftn", "float64", {"axes": (0, 0)}, ValueError, "twice"), ("fftn", "float64", {"s": 3}, TypeError, "sequence"),
    ("fftn", "float64", {"axes": ()}, ValueError, "at least one axis"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "kw", "error", "words"), ERRORS, ids=lambda v: str(v))
def test_errors(name, dtype, kw, error, words):
    with pytest.raises(error, match=words):
        getattr(xp.fft, name)(xp.asarray(np.ones((3, 4), dtype)), **kw)


def test_errors_of_operands():
    with pytest.raises(TypeError, match="asarray"):
        xp.fft.fft([1.0, 2.0])
    with pytest.raises(ValueError, match="axis"):
        xp.fft.fft(xp.asarray(1.0))
    with pytest.raises(ValueError, match="too short"):
        xp.fft.irfft(xp.ones((3, 1)))
    with pytest.raises(ValueError, match="no elements"):
        xp.fft.fft(xp.ones((3, 0)))
    with pytest.raises(TypeError, match="int"):
        xp.fft.fftfreq(2.5)
    for name in ("fftshift", "ifftshift"):
        with pytest.raises(TypeError, match=f"{name}: `axes`"):
            getattr(xp.fft, name)(xp.ones((3, 4)), axes=1.5)
    with pytest.raises(ValueError, match="0"):
        xp.fft.fftfreq(3, d=0)
