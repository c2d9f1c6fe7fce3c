"""`xpgrad.scipy.signal`: SciPy's convolutions and linear filters for Tensors on every backend, differentiable to every order.

Convolutions are differentiable in both arrays, filters in their coefficients, the signal and the initial state. Integers become floating
numbers of the default dtype, except in convolutions, which are exact for them. A signal lies along one axis; the others are batch axes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from xpgrad import fft as _fourier
from xpgrad._basics.arguments import as_int, as_size, check_choice, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names, refusal
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._convolutions import _full_convolution, _recursion, _sliding_product
from xpgrad.scipy._operands import arrays_of, visible

__all__ = [
    "choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d", "detrend", "fftconvolve", "filtfilt", "hilbert", "lfilter",
    "lfilter_zi", "sosfilt",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


Mode = Literal["full", "same", "valid"]
Method = Literal["auto", "direct", "fft"]
Boundary = Literal["fill", "wrap", "symm"]
MODES = ("full", "same", "valid")
METHODS = ("auto", "direct", "fft")


# -- what docstrings have in common --------------------------------------------------------------------------------------

_ERRORS = """\
TypeError
    An argument is not an array of numbers."""
_document_pair = shares(
    parameters="""\
in1, in2 : Tensor, array or sequence of numbers
    Real or complex arrays of equal rank, not empty. Differentiable.
mode : {"full", "same", "valid"}
    Return the whole result; its central part of the shape of `in1`; or the part that does not depend on zero padding. For "valid",
    one array must be at least as large as the other along every axis.
method : {"auto", "direct", "fft"}
    Use sums of products ("direct"), Fourier transforms ("fft"), or whichever needs fewer operations ("auto"). With transforms, errors
    are relative to the largest element, and nan and infinity spread over the whole result. Integers always use sums, which are exact.
boundary : {"fill", "wrap", "symm"}
    Extend `in1` by `fillvalue`, periodically, or by reflection.
fillvalue : number or 0-d Tensor
    Value around `in1` for ``boundary="fill"``. Differentiable.""",
    raises=f"""\
{_ERRORS}
ValueError
    The ranks differ, an array is empty, the shapes do not fit the mode, or a choice is unknown.""",
)
_document_filter = shares(
    parameters="""\
b, a : Tensor or sequence of numbers, shapes (M,) and (N,)
    Coefficients of the numerator and denominator, in increasing powers of the delay. ``a[0]`` must not be 0. Differentiable.
x : Tensor
    Real or complex signals along `axis`. Differentiable.
axis : int
    Axis along which to filter.
zi : Tensor, optional
    Initial state of the delays: the shape of `x` with length ``max(M, N) - 1`` along `axis`; other axes of length 1 broadcast.
    Default: zeros. Differentiable.""",
    raises=_ERRORS,
)


# -- convolutions --------------------------------------------------------------------------------------------------------


def _pair(name: str, in1: Any, in2: Any, *, exact: bool) -> tuple[Tensor, Tensor]:
    """Check `in1` and `in2`, and return them with one dtype and rank; neither may be empty. With `exact`, integers stay integers."""
    x, h = arrays_of(f"scipy.signal.{name}", exact=exact, in1=in1, in2=in2)
    if x.ndim != h.ndim:
        msg = f"scipy.signal.{name}: `in1` and `in2` must have as many axes as one another, but got shapes {x.shape} and {h.shape}"
        raise ValueError(msg)
    for what, t in (("in1", x), ("in2", h)):
        if 0 in t.shape:
            msg = f"scipy.signal.{name}: `{what}` must not be empty, but got shape {t.shape}"
            raise ValueError(msg)
    return x, h


def _by_fourier(x: Any, h: Any, rank: int, method: str) -> bool:
    """Return whether a convolution over the last `rank` axes uses Fourier transforms; `method` decides unless it is ``"auto"``.

    The direct method costs a multiplication and an addition per pair of elements; the other costs three transforms of the size of the
    result. The factors were measured on NumPy. With few taps the exact direct sum is always preferred.
    """
    if not x.dtype.differentiable:
        return False
    if method != "auto":
        return method == "fft"
    if x.dtype.itemsize < 4 or not (x.backend.capabilities.fft and min(math.prod(t.shape[-rank:]) for t in (x, h)) > 40):
        return False
    pairs = math.prod(x.shape[-rank:]) * math.prod(h.shape[-rank:])
    size = math.prod(n + m - 1 for n, m in zip(x.shape[-rank:], h.shape[-rank:]))
    return pairs > (16.0 if rank == 1 else 1.5) * size * math.log2(size + 1)


@_document_pair
def choose_conv_method(in1: Any, in2: Any, mode: Mode = "full", measure: bool = False) -> str:
    """Return the method that `convolve` uses for ``method="auto"`` (`scipy.signal.choose_conv_method`).

    Parameters
    ----------
    in1, in2 : Tensor
        Arrays of equal rank; only their shapes, dtype and backend matter.
    mode : {"full", "same", "valid"}
        Accepted for compatibility; it has no effect.
    measure : bool
        Must be False: the method is chosen by operation count.

    Returns
    -------
    str
        ``"fft"`` or ``"direct"``.

    Raises
    ------
    NotImplementedError
        `measure` is True.
    ValueError
        The ranks differ, an array is empty, or `mode` is another value.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> signal.choose_conv_method(xp.ones(100), xp.ones(10))
    'direct'
    >>> signal.choose_conv_method(xp.ones(100000), xp.ones(100000))
    'fft'
    """
    check_choice(mode, MODES, "scipy.signal.choose_conv_method", "mode")
    if measure:
        msg = "scipy.signal.choose_conv_method: `measure=True` is not supported: the method is chosen by operation count; omit it"
        raise NotImplementedError(msg)
    x, h = _pair("choose_conv_method", in1, in2, exact=True)
    return "fft" if x.ndim and _by_fourier(x, h, x.ndim, "auto") else "direct"


def _must_swap(name: str, x: Any, h: Any, rank: int) -> bool:
    """Return whether `x` fits within `h`, for the mode ``"valid"``; raise unless one fits within the other."""
    pairs = list(zip(x.shape[-rank:], h.shape[-rank:]))
    if all(n >= m for n, m in pairs):
        return False
    if all(n <= m for n, m in pairs):
        return True
    msg = (
        f"scipy.signal.{name}: for mode='valid' one of the arrays must be at least as large as the other along every axis, but got shapes "
        f"{x.shape} and {h.shape}"
    )
    raise ValueError(msg)


def _last_axes(rank: int) -> tuple[int, ...]:
    """Return the numbers of the last `rank` axes."""
    return tuple(range(-rank, 0))


def _convolve(name: str, x: Any, h: Any, rank: int, mode: str, fourier: bool) -> Tensor:
    """Compute the convolution of `x` and `h` over the last `rank` axes, or the part of it that `mode` names; by transforms if `fourier`."""
    if mode == "valid":
        if _must_swap(name, x, h, rank):
            x, h = h, x
        return _sliding_product(x, xp.flip(h, axis=_last_axes(rank)), rank, fourier)
    out = _full_convolution(x, h, rank, fourier)
    return out if mode == "full" else _center(out, x.shape[-rank:])


def _center(x: Any, sizes: tuple[int, ...]) -> Any:
    """Return the central part of `x`, which has the lengths `sizes` along the last axes."""
    starts = [(have - n) // 2 for have, n in zip(x.shape[x.ndim - len(sizes) :], sizes)]
    return x[(..., *(slice(s, s + n) for s, n in zip(starts, sizes)))]


def _reverse(h: Any, rank: int) -> Any:
    """Reverse the last `rank` axes and conjugate: convolving with the result is a correlation with `h`."""
    return xp.flip(xp.conj(h) if h.dtype.is_complex else h, axis=_last_axes(rank))


@_document_pair
def convolve(in1: Any, in2: Any, mode: Mode = "full", method: Method = "auto") -> Tensor:
    """Convolve two arrays over all their axes (`scipy.signal.convolve`).

    Returns
    -------
    Tensor
        Length ``N + M - 1``, ``N`` or ``abs(N - M) + 1`` along each axis for the three modes, in the common dtype.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> h = xp.tensor([1.0, -1.0], requires_grad=True)
    >>> out = signal.convolve(xp.asarray([1.0, 4.0, 9.0]), h)
    >>> out.tolist()
    [1.0, 3.0, 5.0, -9.0]
    >>> (out**2).sum().backward()
    >>> h.grad.tolist()
    [116.0, -116.0]
    """
    return _over_all_axes("convolve", in1, in2, mode, method, correlation=False)


@_document_pair
def correlate(in1: Any, in2: Any, mode: Mode = "full", method: Method = "auto") -> Tensor:
    """Correlate two arrays over all their axes (`scipy.signal.correlate`); the second one is conjugated.

    Returns
    -------
    Tensor
        Length ``N + M - 1``, ``N`` or ``abs(N - M) + 1`` along each axis for the three modes, in the common dtype.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> h = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = signal.correlate([1.0, 2.0, 3.0], h)
    >>> y.detach()
    tensor([2., 5., 8., 3.])
    >>> y[1].backward()
    >>> h.grad
    tensor([1., 2.])
    >>> signal.correlate(xp.asarray([1, 2, 3]), xp.asarray([1, 1]), mode="valid")
    tensor([3, 5])
    """
    return _over_all_axes("correlate", in1, in2, mode, method, correlation=True)


def _over_all_axes(name: str, in1: Any, in2: Any, mode: Any, method: Any, *, correlation: bool) -> Tensor:
    """Check the arguments of `convolve` or, if `correlation`, of `correlate`, and compute."""
    check_choice(mode, MODES, f"scipy.signal.{name}", "mode")
    check_choice(method, METHODS, f"scipy.signal.{name}", "method")
    x, h = _pair(name, in1, in2, exact=True)
    if not x.ndim:
        return x * (xp.conj(h) if correlation and h.dtype.is_complex else h)
    fourier = _by_fourier(x, h, x.ndim, method)
    return _convolve(name, x, _reverse(h, x.ndim) if correlation else h, x.ndim, mode, fourier)


@_document_pair
def fftconvolve(in1: Any, in2: Any, mode: Mode = "full", axes: Any = None) -> Tensor:
    """Convolve two arrays by Fourier transforms (`scipy.signal.fftconvolve`).

    Parameters
    ----------
    in1, in2 : Tensor
        Real or complex arrays of equal rank, not empty. Integers are cast to floating numbers. Differentiable.
    axes : int or sequence of int, optional
        Axes over which to convolve; the others broadcast. Default: all. For "same", the result is cut to the shape of `in1` along all.

    Returns
    -------
    Tensor
        Length ``N + M - 1``, ``N`` or ``abs(N - M) + 1`` along each of `axes` for the three modes; floating-point or complex.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> h = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = signal.fftconvolve([1.0, 2.0, 3.0], h)
    >>> y.detach()
    tensor([1., 4., 7., 6.])
    >>> y[1].backward()
    >>> h.grad
    tensor([2., 1.])
    """
    name = "scipy.signal.fftconvolve"
    check_choice(mode, MODES, name, "mode")
    x, h = _pair("fftconvolve", in1, in2, exact=False)
    if not x.ndim:
        return x * h
    places = normalize_axes(tuple(axes) if isinstance(axes, list) else axes, x.ndim, name, "axes")
    places = tuple(range(x.ndim)) if places is None else places
    others = [i for i in range(x.ndim) if i not in places]
    if any(x.shape[i] != h.shape[i] and 1 not in (x.shape[i], h.shape[i]) for i in others):
        msg = f"{name}: the shapes {x.shape} and {h.shape} do not broadcast along the axes that are not in `axes`, {others}"
        raise ValueError(msg)
    if not places:
        return x * h
    order = (*others, *places)
    out = _convolve("fftconvolve", xp.permute_dims(x, order), xp.permute_dims(h, order), len(places), mode, True)
    out = xp.permute_dims(out, tuple(order.index(i) for i in range(x.ndim)))
    return _center(out, x.shape) if mode == "same" else out  # also along axes that broadcast, as SciPy


@_document_pair
def convolve2d(in1: Any, in2: Any, mode: Mode = "full", boundary: Boundary = "fill", fillvalue: Any = 0) -> Tensor:
    """Convolve two matrices directly (`scipy.signal.convolve2d`).

    Parameters
    ----------
    in1, in2 : Tensor
        Matrices of real or complex numbers, not empty. Differentiable.

    Returns
    -------
    Tensor
        A matrix with length ``N + M - 1``, ``N`` or ``abs(N - M) + 1`` along each axis for the three modes.

    Raises
    ------
    ValueError
        An argument is not a matrix or is empty, the shapes do not fit the mode, or a choice is unknown.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> image = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = signal.convolve2d(image, xp.ones((2, 2)))
    >>> y.detach()
    tensor([[ 1.,  3.,  2.],
            [ 4., 10.,  6.],
            [ 3.,  7.,  4.]])
    >>> y[0, 1].backward()
    >>> image.grad
    tensor([[1., 1.],
            [0., 0.]])
    """
    return _matrices("convolve2d", in1, in2, mode, boundary, fillvalue, correlation=False)


@_document_pair
def correlate2d(in1: Any, in2: Any, mode: Mode = "full", boundary: Boundary = "fill", fillvalue: Any = 0) -> Tensor:
    """Correlate two matrices directly (`scipy.signal.correlate2d`); the second one is conjugated.

    Parameters
    ----------
    in1, in2 : Tensor
        Matrices of real or complex numbers, not empty. Differentiable.

    Returns
    -------
    Tensor
        A matrix with length ``N + M - 1``, ``N`` or ``abs(N - M) + 1`` along each axis for the three modes.

    Raises
    ------
    ValueError
        An argument is not a matrix or is empty, the shapes do not fit the mode, or a choice is unknown.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> image = xp.asarray([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    >>> slope = xp.tensor([[-1.0, 1.0]], requires_grad=True)
    >>> y = signal.correlate2d(image, slope, mode="valid")
    >>> y.detach()
    tensor([[1., 2.],
            [1., 2.]])
    >>> y.sum().backward()
    >>> slope.grad
    tensor([[ 6., 12.]])
    """
    return _matrices("correlate2d", in1, in2, mode, boundary, fillvalue, correlation=True)


def _matrices(name: str, in1: Any, in2: Any, mode: Any, boundary: Any, fillvalue: Any, *, correlation: bool) -> Tensor:
    """Check the arguments of `convolve2d` or, if `correlation`, of `correlate2d`, and compute."""
    title = f"scipy.signal.{name}"
    check_choice(mode, MODES, title, "mode")
    check_choice(boundary, ("fill", "wrap", "symm"), title, "boundary")
    x, h = _pair(name, in1, in2, exact=True)
    if x.ndim != 2:
        msg = f"{title}: `in1` and `in2` must be matrices, but got shapes {x.shape} and {h.shape}"
        raise ValueError(msg)
    swapped = mode == "valid" and _must_swap(name, x, h, 2)
    if swapped:
        x, h = h, x
    kernel = _reverse(h, 2) if correlation else h
    if mode == "valid":
        out = _convolve(name, x, kernel, 2, "valid", False)
        return xp.flip(out) if swapped and correlation else out  # as in SciPy, which then conjugates the other matrix
    shape = x.shape
    for axis, m in enumerate(h.shape):
        x = _pad(x, axis, m - 1, boundary, fillvalue)
    full = _sliding_product(x, xp.flip(kernel), 2, False)
    if mode == "full":
        return full
    # SciPy's correlation of mode "same" begins at ``m // 2``, which for an even length is not the centre.
    starts = [m // 2 if correlation else (m - 1) // 2 for m in h.shape]
    return full[tuple(slice(s, s + n) for s, n in zip(starts, shape))]


def _pad(x: Any, axis: int, border: int, boundary: str, value: Any) -> Any:
    """Pad `x` along an axis."""
    if not border:
        return x
    n = x.shape[axis]
    if boundary == "fill":
        widths = [(border, border) if i == axis else (0, 0) for i in range(x.ndim)]
        return xp.pad(x, widths, constant_values=value)
    period = n if boundary == "wrap" else 2 * n
    places = [i % period for i in range(-border, n + border)]
    return _take(x, [i if i < n else 2 * n - 1 - i for i in places], axis)


def _take(x: Any, places: list[int], axis: int) -> Any:
    """Select elements at the given positions of an axis."""
    return xp.take(x, xp.asarray(places, dtype=x.default_dtype("indexing"), device=x.device), axis=axis)


# -- filters -------------------------------------------------------------------------------------------------------------


def _check_coefficients(title: str, **given: Any) -> None:
    """Raise ValueError unless coefficients are vectors with elements and ``a[0]`` is not 0."""
    for name, c in given.items():
        if c.ndim != 1 or not c.shape[0]:
            msg = f"{title}: `{name}` must be a vector of coefficients that is not empty, but got shape {c.shape}"
            raise ValueError(msg)
    lead = given.get("a")
    if lead is not None and visible(lead) and bool(lead.detach()[0] == 0):
        msg = f"{title}: the first of the coefficients `a` must not be 0: the output is divided by it"
        raise ValueError(msg)


def _signal_axis(title: str, x: Any, axis: Any, what: str = "x") -> int:
    """Check that a signal has samples along an axis, and return the axis."""
    if not x.ndim:
        msg = f"{title}: `{what}` must have at least one axis, but got a 0-d Tensor"
        raise ValueError(msg)
    place = normalize_axis(axis, x.ndim, title)
    if not x.shape[place]:
        msg = f"{title}: `{what}` has no samples along axis {place}: its shape is {x.shape}"
        raise ValueError(msg)
    return place


@_document_filter
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter signals by a recursion (`scipy.signal.lfilter`).

    Returns
    -------
    Tensor, or a pair of Tensors
        The output, of the shape of `x`. If `zi` is given, also the final state, of the shape of `zi` after broadcasting.

    Raises
    ------
    ValueError
        The shapes do not fit, or ``a[0] == 0``.

    Notes
    -----
    The recursion is one operation. Its vjp is the same recursion run backwards and a correlation with the output, so derivatives of every
    order exist. SciPy computes it if the arrays are in host memory and their values are known. Otherwise blocks of samples are multiplied
    by matrices, in about ``2 sqrt(n)`` steps; rounding errors are then larger for filters of high order (prefer `sosfilt`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> pole = xp.tensor(0.5, requires_grad=True)
    >>> y = signal.lfilter([1.0], [1.0, -pole], xp.asarray([1.0, 0.0, 0.0, 0.0]))
    >>> y.tolist()
    [1.0, 0.5, 0.25, 0.125]
    >>> y[3].backward()  # the derivative of pole**3
    >>> pole.grad.item()
    0.75
    """
    title = "scipy.signal.lfilter"
    b, a, x, zi = arrays_of(title, b=b, a=a, x=x, zi=zi)
    _check_coefficients(title, b=b, a=a)
    place = _signal_axis(title, x, axis)
    order = max(b.shape[0], a.shape[0]) - 1
    if zi is not None:
        zi = xp.moveaxis(_check_state(title, zi, x, place, order), place, -1)
    y, zf = _filter(b, a, xp.moveaxis(x, place, -1), zi)
    y = xp.moveaxis(y, -1, place)
    return y if zi is None else (y, xp.moveaxis(zf, -1, place))


def _check_state(title: str, zi: Any, x: Any, place: int, order: int) -> Any:
    """Return initial states broadcast to the shape that the filter needs, or raise ValueError."""
    wanted = (*x.shape[:place], order, *x.shape[place + 1 :])
    fits = zi.ndim == x.ndim and zi.shape[place] == order and all(n in (1, m) for n, m in zip(zi.shape, wanted))
    if not fits:
        msg = f"{title}: `zi` must have shape {wanted} for `x` of shape {x.shape}, but got {zi.shape}"
        raise ValueError(msg)
    return xp.broadcast_to(zi, wanted)


def _filter(b: Any, a: Any, x: Any, zi: Any) -> tuple[Any, Any]:
    """Filter along the last axis; also return the final states if initial ones are given.

    With zeros before the first sample, the states are added to the first inputs of the recursion.
    """
    n, order = x.shape[-1], max(b.shape[0], a.shape[0]) - 1
    taps = xp.reshape(b, (*(1,) * (x.ndim - 1), -1))
    v = _full_convolution(x, taps, 1, False)[..., :n]  # not by transforms, which would spread nan and rounding to earlier samples
    if zi is not None and order:
        start = zi * a[0]
        v = v + start[..., :n] if order >= n else xp.concat([v[..., :order] + start, v[..., order:]], axis=-1)
    y = _recursion(a, v) if a.shape[0] > 1 else v / a
    if zi is None:
        return y, None
    return y, _final_state(b, a, x, y, zi, order)


def _final_state(b: Any, a: Any, x: Any, y: Any, zi: Any, order: int) -> Any:
    """Return the final states: the inputs and outputs on which later outputs depend."""
    n = x.shape[-1]
    total = zi[..., n:] if order > n else None
    if total is not None:
        total = xp.concat([total, xp.zeros_like(zi[..., :n])], axis=-1)
    for c, t, sign in ((b, x, 1.0), (a, y, -1.0)):
        count = c.shape[0] - 1
        if not count:
            continue
        last = t[..., max(n - count, 0) :]
        whole = _full_convolution(last, xp.reshape(c, (*(1,) * (x.ndim - 1), -1)), 1, False)
        tail = whole[..., last.shape[-1] :] * (sign / a[0])
        if count < order:
            tail = xp.concat([tail, xp.zeros_like(zi[..., : order - count])], axis=-1)
        total = tail if total is None else total + tail
    return xp.zeros_like(zi) if total is None else total


@_document_filter
def lfilter_zi(b: Any, a: Any) -> Tensor:
    """Return the initial state for which a filter's response to a step of 1 is constant (`scipy.signal.lfilter_zi`).

    Parameters
    ----------
    b, a : Tensor or sequence of numbers, shapes (M,) and (N,)
        Coefficients; see `lfilter`. Leading zeros of `a` are not dropped. Differentiable.

    Returns
    -------
    Tensor, shape (max(M, N) - 1,)
        The state, for the argument `zi` of `lfilter`.

    Raises
    ------
    ValueError
        An argument is not a vector or is empty, or ``a[0] == 0``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> pole = xp.tensor(0.5, requires_grad=True)
    >>> zi = signal.lfilter_zi([1.0], [1.0, -pole])
    >>> zi.detach()  # pole / (1 - pole)
    tensor([1.])
    >>> zi[0].backward()
    >>> pole.grad
    tensor(4.)
    """
    title = "scipy.signal.lfilter_zi"
    b, a = arrays_of(title, b=b, a=a)
    _check_coefficients(title, b=b, a=a)
    return _steady_state(b, a)


def _steady_state(b: Any, a: Any) -> Any:
    """Return the states that stay constant for the input 1."""
    b, a = b / a[0], a / a[0]
    order = max(b.shape[0], a.shape[0]) - 1
    b, a = (xp.pad(c, [(0, order + 1 - c.shape[0])]) for c in (b, a))
    level = xp.sum(b) / xp.sum(a)
    return xp.flip(xp.cumulative_sum(xp.flip((b - a * level)[1:])))


@_document_filter
def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: Literal["odd", "even", "constant"] | None = "odd", padlen: int | None = None,
    method: str = "pad", irlen: int | None = None,
) -> Tensor:  # fmt: skip
    """Filter signals forwards and backwards, without delay (`scipy.signal.filtfilt`).

    Parameters
    ----------
    padtype : {"odd", "even", "constant"} or None
        Extend the signal at both ends by odd or even reflection, by its end values, or not at all.
    padlen : int, optional
        Number of samples by which to extend each end. Default: ``3 * max(len(a), len(b))``, or 0 for ``padtype=None``.
    method : {"pad"}
        SciPy's method "gust" is not supported.
    irlen : None
        Argument of the method "gust"; not supported.

    Returns
    -------
    Tensor
        The shape of `x`.

    Raises
    ------
    NotImplementedError
        `method` is "gust", or `irlen` is given.
    ValueError
        A signal is not longer than `padlen`, the shapes do not fit, or a choice is unknown.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> b = xp.tensor([0.5, 0.5], requires_grad=True)
    >>> y = signal.filtfilt(b, [1.0], [0.0, 0.0, 1.0, 0.0, 0.0], padtype=None)
    >>> y.detach()  # not delayed
    tensor([0.  , 0.25, 0.5 , 0.25, 0.  ])
    >>> y[2].backward()
    >>> b.grad
    tensor([1., 1.])
    """
    title = "scipy.signal.filtfilt"
    check_choice(method, ("pad", "gust"), title, "method")
    if method == "gust" or irlen is not None:
        msg = f"{title}: method='gust' is not supported; use method='pad'"
        raise NotImplementedError(msg)
    b, a, x = arrays_of(title, b=b, a=a, x=x)
    _check_coefficients(title, b=b, a=a)
    place = _signal_axis(title, x, axis)
    t = xp.moveaxis(x, place, -1)
    edge = _pad_length(title, padtype, padlen, 3 * max(b.shape[0], a.shape[0]), t.shape[-1])
    t = _extend(t, edge, padtype)
    steady = _steady_state(b, a)
    for _ in range(2):
        t, _zf = _filter(b, a, t, steady * t[..., :1])
        t = xp.flip(t, axis=-1)
    return xp.moveaxis(t[..., edge : t.shape[-1] - edge], -1, place)


def _pad_length(title: str, padtype: Any, padlen: Any, default: int, n: int) -> int:
    """Return by how many samples to extend each end of a signal of length `n`."""
    if padtype is None:
        return 0
    check_choice(padtype, ("odd", "even", "constant"), title, "padtype")
    edge = default if padlen is None else as_size(padlen, title, "padlen")
    if n <= edge:
        msg = f"{title}: `x` must have more samples than are added at each end, {edge}, but has {n}; give a smaller `padlen`"
        raise ValueError(msg)
    return edge


def _extend(t: Any, edge: int, padtype: Any) -> Any:
    """Continue signals at both ends of the last axis."""
    if not edge:
        return t
    first, last = t[..., :1], t[..., -1:]
    if padtype == "constant":
        shape = (*t.shape[:-1], edge)
        return xp.concat([xp.broadcast_to(first, shape), t, xp.broadcast_to(last, shape)], axis=-1)
    before, after = xp.flip(t[..., 1 : edge + 1], axis=-1), xp.flip(t[..., t.shape[-1] - edge - 1 : -1], axis=-1)
    if padtype == "odd":
        before, after = first * 2 - before, last * 2 - after
    return xp.concat([before, t, after], axis=-1)


@_document_filter
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter signals by second-order sections in sequence (`scipy.signal.sosfilt`).

    Parameters
    ----------
    sos : Tensor, shape (sections, 6)
        Coefficients of each section: three of `b`, then three of `a`, whose first must be 1. Differentiable.
    zi : Tensor, optional
        Initial states: a first axis over sections, then the shape of `x` with length 2 along `axis`. Default: zeros. Differentiable.

    Returns
    -------
    Tensor, or a pair of Tensors
        The output, of the shape of `x`. If `zi` is given, also the final states.

    Raises
    ------
    ValueError
        The shapes do not fit, or ``sos[:, 3]`` is not 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> sos = xp.tensor([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], requires_grad=True)
    >>> y = signal.sosfilt(sos, xp.asarray([1.0, 0.0, 0.0, 0.0]))
    >>> y.detach()
    tensor([1.   , 0.5  , 0.25 , 0.125])
    >>> y[1].backward()
    >>> sos.grad + 0.0
    tensor([[ 0.5,  1. ,  0. , -1. , -1. ,  0. ]])
    """
    title = "scipy.signal.sosfilt"
    sos, x, zi = arrays_of(title, sos=sos, x=x, zi=zi)
    if sos.ndim != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        msg = f"{title}: `sos` must have shape (sections, 6), but got {sos.shape}"
        raise ValueError(msg)
    if visible(sos) and not bool(xp.all(sos.detach()[:, 3] == 1)):
        msg = f"{title}: the first of the coefficients `a` of each section, `sos[:, 3]`, must be 1; divide the section by it"
        raise ValueError(msg)
    place = _signal_axis(title, x, axis)
    if zi is not None and (zi.ndim != x.ndim + 1 or zi.shape[0] != sos.shape[0]):
        wanted = (sos.shape[0], *x.shape[:place], 2, *x.shape[place + 1 :])
        msg = f"{title}: `zi` must have shape {wanted} for `x` of shape {x.shape}, but got {zi.shape}"
        raise ValueError(msg)
    t, after = xp.moveaxis(x, place, -1), []
    for i in range(sos.shape[0]):
        start = None if zi is None else xp.moveaxis(_check_state(title, zi[i], x, place, 2), place, -1)
        t, zf = _filter(sos[i, :3], sos[i, 3:], t, start)
        after.append(zf)
    t = xp.moveaxis(t, -1, place)
    return t if zi is None else (t, xp.stack([xp.moveaxis(z, -1, place) for z in after]))


# -- other ---------------------------------------------------------------------------------------------------------------


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Tensor:
    """Return the analytic signal of real signals, whose imaginary part is the Hilbert transform (`scipy.signal.hilbert`).

    Parameters
    ----------
    x : Tensor
        Real signals. Differentiable.
    N : int, optional
        Length of the transform: `x` is truncated or padded with zeros. Default: the length of `x`.
    axis : int
        Axis of the signals.

    Returns
    -------
    Tensor
        Complex; the shape of `x`, with length `N` along `axis`.

    Raises
    ------
    TypeError
        `x` is complex, or is not an array of numbers.
    ValueError
        `N` is not positive, or `x` has no samples.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> x = xp.tensor([1.0, 0.0, -1.0, 0.0], requires_grad=True)  # a cosine
    >>> z = signal.hilbert(x)
    >>> xp.imag(z).detach() + 0.0  # the sine
    tensor([ 0.,  1.,  0., -1.])
    >>> xp.abs(z).sum().backward()  # the envelope
    >>> x.grad + 0.0
    tensor([ 2.,  0., -2.,  0.])
    """
    title = "scipy.signal.hilbert"
    (x,) = arrays_of(title, real=True, x=x)
    place = _signal_axis(title, x, axis)
    spectrum = _fourier.fft(x, n=N, axis=place)
    n = spectrum.shape[place]
    gains = [1.0 if i in (0, n / 2) else 2.0 if i < n / 2 else 0.0 for i in range(n)]
    weights = xp.reshape(xp.asarray(gains, dtype=x.dtype, device=x.device), (-1, *(1,) * (x.ndim - 1 - place)))
    return _fourier.ifft(spectrum * weights, axis=place)


def detrend(
    data: Any, axis: int = -1, type: Literal["linear", "constant"] = "linear", bp: Any = 0, overwrite_data: bool = False,  # noqa: A002
) -> Tensor:  # fmt: skip
    """Subtract from signals their mean, or the least-squares lines of pieces of them (`scipy.signal.detrend`).

    Parameters
    ----------
    data : Tensor
        Real or complex signals. Differentiable.
    axis : int
        Axis of the signals.
    type : {"linear", "constant"}
        Subtract the line, or the mean.
    bp : int or sequence of int
        Where pieces with lines of their own begin, from 0 to the number of samples. The mean is that of the whole signal.
    overwrite_data : bool
        Accepted for compatibility; `data` is never overwritten.

    Returns
    -------
    Tensor
        The shape of `data`.

    Raises
    ------
    TypeError
        `data` is not an array of numbers, or a break point is not an integer.
    ValueError
        `type` is another value, `data` has no samples, or a break point is outside of the signal.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import signal
    >>> data = xp.tensor([1.0, 2.0, 6.0], requires_grad=True)
    >>> signal.detrend(data, type="constant").detach()
    tensor([-2., -1.,  3.])
    >>> signal.detrend(data)[0].backward()
    >>> data.grad
    tensor([ 0.1667, -0.3333,  0.1667])
    """
    title = "scipy.signal.detrend"
    if type not in ("linear", "l", "constant", "c"):
        msg = f"{title}: `type` must be 'linear' or 'constant', but got {shown(type)}"
        raise ValueError(msg)
    (x,) = arrays_of(title, data=data)
    place = _signal_axis(title, x, axis, "data")
    if type in ("constant", "c"):
        return x - xp.mean(x, axis=place, keepdims=True)
    n = x.shape[place]
    given = bp.tolist() if hasattr(bp, "tolist") else bp
    begins = {as_int(begin, title, "bp") for begin in (given if isinstance(given, (list, tuple)) else (given,))}
    if not all(0 <= b <= n for b in begins):
        msg = f"{title}: `bp` must be from 0 to {n}, the number of samples, but got {shown(bp)}"
        raise ValueError(msg)
    ends = sorted({0, n} | begins)
    pieces = [_without_line(x[(*(slice(None),) * place, slice(*ends[k : k + 2]))], place) for k in range(len(ends) - 1)]
    return pieces[0] if len(pieces) == 1 else xp.concat(pieces, axis=place)


def _without_line(x: Tensor, place: int) -> Tensor:
    """Return `x` without the least-squares line along an axis."""
    n = x.shape[place]
    rest = x - xp.mean(x, axis=place, keepdims=True)
    if n == 1:
        return rest
    real = xp.real(x).dtype if x.dtype.is_complex else x.dtype
    times = xp.reshape(xp.arange(n, dtype=real, device=x.device) - (n - 1) / 2, (-1, *(1,) * (x.ndim - 1 - place)))
    return rest - times * (xp.sum(rest * times, axis=place, keepdims=True) * (12.0 / (n * (n * n - 1.0))))
