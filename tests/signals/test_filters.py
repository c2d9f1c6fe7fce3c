"""Law: convolutions and filters have SciPy's values, and derivatives of every order, in every mode, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right")

import scipy.signal as theirs
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from signals.laws import Call, batch_is_loop, derivatives_are_differences, forward_is_reverse, values_are_scipys
from support.central_differences import has_float64, loosen, numbers, values
from xpgrad.func import vmap
from xpgrad.scipy import signal as ours
from xpgrad.scipy._convolutions import _by_blocks, fast_length

COMPLEX = np.complex128
B, A = np.array([0.3, -0.2, 0.5]), np.array([1.3, -0.4, 0.2, 0.1])
X = numbers((2, 7))


def call(name: str, *points: np.ndarray, order: int = 2, **options: Any) -> Call:
    return Call(
        lambda *at: getattr(ours, name)(*at, **options), lambda *at: getattr(theirs, name)(*at, **options), points, order
    )  # fmt: skip


def filtered(**options: Any) -> Any:
    """Return a call of `lfilter` with an initial state as a fourth argument."""
    return Call(
        lambda b, a, x, zi: ours.lfilter(b, a, x, zi=zi, **options),
        lambda b, a, x, zi: theirs.lfilter(b, a, x, zi=zi, **options),
        (B, A, numbers((2, 5)), numbers((2, 3), 2.0)),
    )


SOS = np.array([[0.2, 0.4, 0.1, 1.0, -0.5, 0.2], [1.0, 0.3, 0.2, 1.0, 0.3, -0.1]])


def in_sections(function: Any, x: Any, tail: Any, head: Any) -> Any:
    """Filter by second-order sections whose free coefficients are the arguments: the first coefficient of `a` is 1."""
    one = xp.ones((2, 1), dtype=head.dtype, device=head.device) if isinstance(head, xp.Tensor) else np.ones((2, 1))
    join = xp.concat if isinstance(head, xp.Tensor) else np.concatenate
    return function(join([head, one, tail], axis=1), x)


CALLS: dict[str, Call] = {
    **{
        f"{name} {mode} {method} {kind}": call(name, numbers((5,), 1.0, kind), numbers((3,), 2.0, kind), mode=mode, method=method)
        for name in ("convolve", "correlate")
        for mode, method in (("full", "direct"), ("same", "fft"), ("valid", "direct"), ("valid", "fft"))
        for kind in ("float64", "complex128")
    },
    "convolve matrices": call("convolve", numbers((4, 3)), numbers((2, 3), 3.0), mode="same"),
    "convolve, the second one is larger": call("convolve", numbers((2, 2)), numbers((3, 4), 3.0), mode="valid"),
    "correlate, the second one is larger": call("correlate", numbers((2,), 1.0, COMPLEX), numbers((4,), 3.0, COMPLEX), mode="valid"),
    "fftconvolve of a part that broadcasts": call("fftconvolve", numbers((1, 5)), numbers((3, 2), 3.0), axes=1, mode="same"),
    "fftconvolve over an axis": call("fftconvolve", numbers((2, 5)), numbers((1, 3), 3.0), axes=1, mode="same"),
    "convolve2d wrap": call("convolve2d", numbers((3, 4)), numbers((2, 3), 2.0), boundary="wrap"),
    "correlate2d symm": call("correlate2d", numbers((3, 4)), numbers((2, 2), 2.0), mode="same", boundary="symm"),
    "correlate2d fill": call("correlate2d", numbers((3, 4), 1.0, COMPLEX), numbers((2, 2), 2.0, COMPLEX), fillvalue=0.7),
    "convolve2d valid": call("convolve2d", numbers((3, 4)), numbers((2, 3), 2.0), mode="valid"),
    **{
        f"correlate2d valid, {title}": call("correlate2d", numbers(first, 1.0, COMPLEX), numbers(second, 2.0, COMPLEX), mode="valid")
        for title, first, second in (("smaller", (3, 3), (2, 2)), ("larger", (2, 2), (3, 3)), ("as large", (2, 3), (2, 3)))
    },
    "lfilter": call("lfilter", B, A, X),
    "lfilter, complex, along the first axis": call("lfilter", B + 0.1j, A + 0.05j, numbers((4, 2), 1.0, COMPLEX), axis=0),
    "lfilter, finite": call("lfilter", B, A[:1], X),
    "lfilter with states": filtered(),
    "lfilter of fewer samples than states": Call(
        lambda b, a, x, zi: ours.lfilter(b, a, x, zi=zi), lambda b, a, x, zi: theirs.lfilter(b, a, x, zi=zi),
        (B, A, numbers((2,)), numbers((3,), 2.0)),
    ),
    "lfilter_zi": call("lfilter_zi", B, A),
    "filtfilt": call("filtfilt", B[:2], np.array([1.0, -0.4]), numbers((9,))),
    "filtfilt even": call("filtfilt", B[:2], np.array([1.0, -0.4]), numbers((9,)), padtype="even", padlen=3),
    "sosfilt": Call(
        lambda x, tail, head: in_sections(ours.sosfilt, x, tail, head),
        lambda x, tail, head: in_sections(theirs.sosfilt, x, tail, head), (numbers((6,)), SOS[:, 4:], SOS[:, :3]),
    ),
    "hilbert": call("hilbert", numbers((2, 5))),
    "hilbert of another length": call("hilbert", numbers((5, 2)), N=8, axis=0),
    "detrend": call("detrend", numbers((5, 2), 1.0, COMPLEX), axis=0),
    "detrend constant": call("detrend", numbers((2, 5)), type="constant"),
    "detrend in pieces": call("detrend", numbers((2, 7)), bp=[3, 6]),
    "detrend in two pieces": call("detrend", numbers((5, 2)), axis=0, bp=2),
}  # fmt: skip
_each = pytest.mark.parametrize("name", CALLS)


def test_every_function_is_in_the_table() -> None:
    named = {name.split()[0].rstrip(",") for name in CALLS}
    assert named | {"choose_conv_method"} == set(ours.__all__)


@_each
def test_values_are_scipys(name: str, xpgrad_device: str) -> None:
    values_are_scipys(CALLS[name], xpgrad_device)


@_each
def test_derivatives_are_differences(name: str, xpgrad_device: str) -> None:
    derivatives_are_differences(CALLS[name], xpgrad_device)


@_each
def test_forward_mode_is_reverse_mode(name: str, xpgrad_device: str) -> None:
    forward_is_reverse(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=2)
@_each
def test_a_batch_is_a_loop(name: str, xpgrad_device: str) -> None:
    if name == "sosfilt":
        pytest.skip("its sections join what is batched with what is not, which is not what is tested")
    batch_is_loop(CALLS[name], xpgrad_device)


def test_recursions_and_states_that_broadcast(xpgrad_device: str) -> None:
    zi = numbers((1, 3))
    for n in (1, 2, 9):
        x = numbers((2, n))
        expected = theirs.lfilter(B, A, x, zi=np.broadcast_to(zi, (2, 3)))
        given = (xp.asarray(v, device=xpgrad_device) for v in (B, A, x))
        found = ours.lfilter(*given, zi=xp.asarray(zi, device=xpgrad_device))
        for f, e in zip(found, expected):
            np.testing.assert_allclose(values(f), e, rtol=loosen(1e-12, xpgrad_device), atol=loosen(1e-12, xpgrad_device))
    states = numbers((2, 3, 2))
    expected = theirs.sosfilt(SOS, X.repeat(2, axis=0)[:3], zi=states)
    found = ours.sosfilt(
        SOS.tolist(), xp.asarray(X.repeat(2, axis=0)[:3], device=xpgrad_device), zi=xp.asarray(states, device=xpgrad_device)
    )
    for f, e in zip(found, expected):
        np.testing.assert_allclose(values(f), e, rtol=loosen(1e-12, xpgrad_device), atol=loosen(1e-12, xpgrad_device))


@pytest.mark.parametrize("order", [1, 2, 4])
def test_without_the_host_the_recursion_goes_by_blocks(order: int, xpgrad_device: str) -> None:
    """The composition used without SciPy is right for sizes around its blocks and for batches of coefficients."""
    like = xp.zeros(1, dtype=xp.float32, device=xpgrad_device)
    kernels = like.backend.kernels
    _, a = theirs.butter(order, 0.2)
    tolerance = loosen(1e-11, xpgrad_device)
    for n in (1, 2, 3, 16, 17, 100):
        v = numbers((2, n))
        expected = theirs.lfilter([1.0], a, v)
        found = _by_blocks(kernels, *(xp.asarray(t, device=xpgrad_device)._array for t in (a, v)))
        np.testing.assert_allclose(values(like.backend.wrap(found)), expected, rtol=tolerance, atol=tolerance * 10)
    both = np.stack([a, a * 1.1])[:, None]
    found = _by_blocks(kernels, *(xp.asarray(t, device=xpgrad_device)._array for t in (both, v[None])))
    expected = np.stack([theirs.lfilter([1.0], row[0], v) for row in both])
    np.testing.assert_allclose(values(like.backend.wrap(found)), expected, rtol=tolerance, atol=tolerance * 10)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=3), st.sampled_from(["full", "same", "valid"]),
    st.sampled_from(["convolve", "correlate"]), st.sampled_from(["auto", "direct", "fft"]), st.booleans(),
)  # fmt: skip
def test_convolutions_of_any_shape(sizes: Any, mode: str, name: str, method: str, plane: bool) -> None:
    x, h = (numbers(tuple(n[k] for n in sizes), 1.0 + k, np.complex128 if plane else np.float64) for k in range(2))
    try:
        expected = getattr(theirs, name)(x, h, mode, method)
    except ValueError:
        with pytest.raises(ValueError, match="for mode='valid' one of the arrays must be at least as large"):
            getattr(ours, name)(xp.asarray(x), xp.asarray(h), mode, method)
        return
    found = getattr(ours, name)(xp.asarray(x), xp.asarray(h), mode, method)
    assert found.shape == expected.shape
    np.testing.assert_allclose(values(found), expected, rtol=1e-10, atol=1e-12)


def test_the_direct_ways_are_the_same(xpgrad_device: str) -> None:
    """The three direct algorithms, for few taps, many taps and few results, all give NumPy's values."""
    tolerance = loosen(1e-11, xpgrad_device)
    for n, m in ((300, 3), (300, 70), (90, 80), (300, 298)):
        x, h = numbers((n,)), numbers((m,), 3.0)
        for mode in ("full", "valid"):
            found = ours.convolve(*(xp.asarray(v, device=xpgrad_device) for v in (x, h)), mode, "direct")
            np.testing.assert_allclose(values(found), np.convolve(x, h, mode), rtol=tolerance, atol=tolerance)
    x, h = numbers((20, 30)), numbers((9, 10), 2.0)
    for mode in ("full", "valid"):
        found = ours.convolve(*(xp.asarray(v, device=xpgrad_device) for v in (x, h)), mode, "direct")
        np.testing.assert_allclose(values(found), theirs.convolve(x, h, mode), rtol=tolerance, atol=tolerance)


def test_integers_are_exact_and_others_promote(xpgrad_device: str) -> None:
    x, h = xp.asarray([1, 2, 3], device=xpgrad_device), xp.asarray([2**60, 1], device=xpgrad_device)
    out = ours.convolve(x, h)
    assert out.dtype == x.dtype
    assert out.tolist() == [2**60, 2**61 + 1, 3 * 2**60 + 2, 3]
    assert ours.correlate(x, x, method="fft").tolist() == theirs.correlate([1, 2, 3], [1, 2, 3], method="fft").tolist()
    wide = x.default_dtype("real floating")
    assert ours.fftconvolve(x, x).dtype == wide
    assert ours.lfilter([1, 2], [1], x).dtype == wide
    single = xp.asarray([1.0, 2.0], dtype=xp.float32, device=xpgrad_device)
    assert ours.lfilter([0.5, 2.0], [1.0, 0.5], single).dtype == xp.float32
    assert ours.convolve(single, single).dtype == xp.float32


def test_nan_and_infinity_are_seen() -> None:
    x = xp.asarray([1.0, np.nan, 2.0, np.inf])
    assert np.isnan(values(ours.convolve(x, xp.asarray([1.0, 1.0])))).tolist() == [False, True, True, False, False]
    assert np.isnan(values(ours.fftconvolve(x, xp.asarray([1.0, 1.0])))).all()
    y = values(ours.lfilter([1.0], [1.0, -0.5], x))
    assert y[0] == 1.0
    assert np.isnan(y[1:]).all()


def test_a_filter_does_not_look_ahead() -> None:
    x = np.concatenate([numbers((400,)), [np.nan], numbers((200,))])
    y = values(ours.lfilter(numbers((300,)), [1.0, 0.1], xp.asarray(x)))
    np.testing.assert_allclose(y[:400], theirs.lfilter(numbers((300,)), [1.0, 0.1], x[:400]), rtol=1e-11, atol=1e-13)
    assert np.isnan(y[400:]).all()


def test_a_method_is_chosen_by_the_number_of_operations() -> None:
    def chosen(*shapes: tuple[int, ...]) -> str:
        return ours.choose_conv_method(*(xp.zeros(s) for s in shapes))

    assert chosen((100_000,), (5,)) == "direct"
    assert chosen((100_000,), (2000,)) == "fft"
    assert chosen((256, 256), (3, 3)) == "direct"
    assert chosen((256, 256), (40, 40)) == "fft"
    assert ours.choose_conv_method(xp.zeros(5000, dtype=xp.int64), xp.zeros(5000, dtype=xp.int64)) == "direct"
    with pytest.raises(NotImplementedError, match="measure=True"):
        ours.choose_conv_method(xp.zeros(3), xp.zeros(3), measure=True)


def test_fast_lengths() -> None:
    for n in range(1, 500):
        m = fast_length(n)
        assert m >= n
        rest = m
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        assert rest == 1
    assert [fast_length(n) for n in (7, 11, 13, 97, 1001)] == [8, 12, 15, 100, 1024]


def test_many_filters_at_once(xpgrad_device: str) -> None:
    tails = numbers((3, 2)) * 0.4
    x = numbers((6,))
    one = xp.ones(1, device=xpgrad_device, dtype=xp.asarray(x, device=xpgrad_device).dtype)

    def response(tail: Any) -> Any:
        return ours.lfilter([1.0, 0.5], xp.concat([one, tail]), xp.asarray(x, device=xpgrad_device))

    found = vmap(response)(xp.asarray(tails, device=xpgrad_device))
    expected = np.stack([theirs.lfilter([1.0, 0.5], [1.0, *t], x) for t in tails])
    np.testing.assert_allclose(values(found), expected, rtol=loosen(1e-12, xpgrad_device), atol=loosen(1e-14, xpgrad_device))
    jacobian = xp.func.jacrev(response)(xp.asarray(tails[0], device=xpgrad_device))
    np.testing.assert_allclose(
        values(jacobian), values(xp.func.jacfwd(response)(xp.asarray(tails[0], device=xpgrad_device))),
        rtol=loosen(1e-10, xpgrad_device), atol=loosen(1e-12, xpgrad_device),
    )  # fmt: skip


def test_compiled_filters() -> None:
    def loss(b: Any, a: Any, x: Any) -> Any:
        return xp.sum(ours.lfilter(b, a, ours.convolve(x, b, "same")) ** 2)

    points = [xp.asarray(p) for p in (B, A, numbers((30,)))]
    run = xp.compile(xp.func.grad(loss, argnums=(0, 1, 2)))
    for _ in range(2):
        for found, expected in zip(run(*points), xp.func.grad(loss, argnums=(0, 1, 2))(*points)):
            np.testing.assert_allclose(values(found), values(expected), rtol=1e-11)


X2 = xp.zeros((2, 3))
V = xp.asarray([1.0, 2.0, 3.0])
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "ranks": (lambda: ours.convolve(X2, V), ValueError, "`in1` and `in2` must have as many axes"),
    "empty": (lambda: ours.correlate(V, xp.zeros(0)), ValueError, "`in2` must not be empty"),
    "mode": (lambda: ours.convolve(V, V, "all"), ValueError, "`mode` must be 'full' or 'same' or 'valid'"),
    "method": (lambda: ours.convolve(V, V, method="fast"), ValueError, "`method` must be"),
    "text": (lambda: ours.convolve(V, "abc"), TypeError, "`in2` must be a Tensor, an array, or a sequence of numbers"),
    "bools": (lambda: ours.convolve(V, xp.asarray([True, False])), TypeError, "`in2` must hold numbers, but got bools"),
    "axes": (lambda: ours.fftconvolve(X2, xp.zeros((3, 2)), axes=1), ValueError, "do not broadcast along the axes"),
    "an axis that is not there": (lambda: ours.fftconvolve(X2, X2, axes=5), (ValueError, IndexError), "5"),
    "matrices": (lambda: ours.convolve2d(V, V), ValueError, "must be matrices"),
    "boundary": (lambda: ours.convolve2d(X2, X2, boundary="edge"), ValueError, "`boundary` must be"),
    "coefficients in two axes": (lambda: ours.lfilter(X2, V, V), ValueError, "`b` must be a vector of coefficients"),
    "no coefficients": (lambda: ours.lfilter([1.0], xp.zeros(0), V), ValueError, "`a` must be a vector"),
    "a[0] is 0": (lambda: ours.lfilter([1.0], [0.0, 1.0], V), ValueError, "must not be 0"),
    "lfilter_zi, a[0] is 0": (lambda: ours.lfilter_zi([1.0], [0.0, 1.0]), ValueError, "must not be 0"),
    "no samples": (lambda: ours.lfilter([1.0], [1.0], xp.zeros((2, 0))), ValueError, "no samples along axis 1"),
    "a number": (lambda: ours.lfilter([1.0], [1.0], 3.0), ValueError, "at least one axis"),
    "states": (lambda: ours.lfilter([1.0, 2.0], [1.0], V, zi=V), ValueError, r"`zi` must have shape \(1,\)"),
    "sections": (lambda: ours.sosfilt(X2, V), ValueError, r"`sos` must have shape \(sections, 6\)"),
    "sections of another scale": (lambda: ours.sosfilt([[1.0] * 3 + [2.0] * 3], V), ValueError, "must be 1"),
    "states of sections": (lambda: ours.sosfilt(SOS, V, zi=V), ValueError, "`zi` must have shape"),
    "gust": (lambda: ours.filtfilt([1.0], [1.0], V, method="gust"), NotImplementedError, "method='gust' is not supported"),
    "short": (lambda: ours.filtfilt([1.0], [1.0], V), ValueError, "must have more samples"),
    "complex hilbert": (lambda: ours.hilbert(V * 1j), TypeError, "`x` must be real"),
    "kinds of trends": (lambda: ours.detrend(V, type="cubic"), ValueError, "`type` must be"),
    "break points": (lambda: ours.detrend(V, bp=[2, 99]), ValueError, "`bp` must be from 0 to"),
    "break points between samples": (lambda: ours.detrend(V, bp=1.5), TypeError, "`bp` must be an int"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name: str) -> None:
    function, error, message = BAD[name]
    with pytest.raises(error, match=message):
        function()


def test_convolutions_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    x, h = numbers((3, 9)), numbers((4,), 2.0)
    a, b = (torch.tensor(v, requires_grad=True) for v in (x, h))
    out = torch.nn.functional.conv1d(a[:, None], b[None, None])[:, 0]
    expected = torch.autograd.grad((out**2).sum(), (a, b))
    leaves = [xp.tensor(v, requires_grad=True) for v in (x, h)]
    rows = xp.stack([ours.correlate(row, leaves[1], "valid") for row in leaves[0]])
    np.testing.assert_allclose(values(rows), out.detach().numpy(), rtol=1e-12)
    for f, e in zip(xp.autograd.grad(xp.sum(rows**2), leaves), expected):
        np.testing.assert_allclose(values(f), e.numpy(), rtol=1e-11)


def test_gradients_are_jaxs() -> None:
    jax = pytest.importorskip("jax", reason="JAX is what is compared with")
    if not jax.config.jax_enable_x64:
        pytest.skip("JAX computes in single precision here: run with JAX_ENABLE_X64=1")
    import jax.scipy.signal

    x, h = numbers((3, 5)), numbers((2, 2), 2.0)
    expected = jax.grad(lambda x, h: (jax.scipy.signal.convolve2d(x, h) ** 2).sum(), argnums=(0, 1))(x, h)
    found = xp.func.grad(lambda x, h: xp.sum(ours.convolve2d(x, h) ** 2), argnums=(0, 1))(xp.asarray(x), xp.asarray(h))
    for f, e in zip(found, expected):
        np.testing.assert_allclose(values(f), e, rtol=1e-11)


def test_single_precision_stays(xpgrad_device: str) -> None:
    if not has_float64(xpgrad_device):
        pytest.skip("everything is single precision here")
    for name, one in CALLS.items():
        kinds = {"f": np.float32, "c": np.complex64}
        at = [xp.asarray(p.astype(kinds[p.dtype.kind]), device=xpgrad_device) for p in one.points]
        if name == "sosfilt":
            continue
        out = one.ours(*at)
        for y in out if isinstance(out, tuple) else (out,):
            assert str(y.dtype) in ("float32", "complex64"), name
