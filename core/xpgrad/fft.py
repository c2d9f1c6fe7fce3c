"""`xpgrad.fft`: the Fourier transform extension of the Array API standard 2025.12, differentiable.

Gradients are exact for every length, also if `n` or `s` pads or trims. Functions for which the standard requires complex Tensors also take
real ones, whose gradients are real.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from xpgrad._basics.arguments import check_choice
from xpgrad._basics.device import Device
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import as_dtype, complex_of, float32
from xpgrad._basics.faces import public_names, refusal
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._operations.declare import composite, front, nondifferentiable
from xpgrad._operations.lift import as_tensor
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._tape.task import note_complex
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules import fourier as _rows
from xpgrad.rules.creation import arange
from xpgrad.rules.elementwise import conj as _conj, where
from xpgrad.rules.fourier import OPPOSITE
from xpgrad.rules.manipulation import roll

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


Norm = Literal["backward", "ortho", "forward"]


# -- what docstrings have in common -------------------------------------------------------------------------------------------

_OPERAND = """\
x : Tensor or raw array
    At least one axis; floating-point or complex."""
_NORM = """\
norm : {"backward", "ortho", "forward"}
    Which transform has the factor: ``1 / n`` in the inverse one ("backward") or in the forward one ("forward"), or
    ``1 / sqrt(n)`` in both ("ortho"); `n` is the number of elements transformed together."""
_document_axis = shares(
    parameters=f"""\
{_OPERAND}
n : int, optional
    Length of the transform: `x` is trimmed or padded with zeros to it. The length of the axis by default.
axis : int
    Axis to transform.
{_NORM}""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, its dtype is neither floating-point nor complex, or `n` or `axis` is not an int.
ValueError
    If `x` is 0-d, `n` is not positive, or `norm` is none of the three.
IndexError
    If `axis` is out of range.""",
)
_document_axes = shares(
    parameters=f"""\
{_OPERAND}
s : sequence of int, optional
    Lengths along `axes`, to which `x` is trimmed or padded with zeros; -1 keeps the length of the axis.
axes : sequence of int, optional
    Axes to transform; by default all of them, or the last ``len(s)`` ones.
{_NORM}""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, its dtype is neither floating-point nor complex, or `s` does not consist of ints.
ValueError
    If a length is not positive, `s` and `axes` do not fit together, or `norm` is none of the three.
IndexError
    If an axis is out of range.""",
)
_document_frequencies = shares(
    parameters="""\
n : int
    Length of the transform.
d : float
    Distance between samples; not 0.
dtype : DType, optional
    Real floating-point data type; the device's default one by default.
device : Device or str, optional
    Device of the result; the default device by default.""",
    raises="""\
TypeError
    If `n` is not an int, `d` is not a real number, or `dtype` is not real floating-point.
ValueError
    If `n` is not positive, or `d` is 0.""",
)
_document_shift = shares(
    parameters="""\
x : Tensor or raw array
    Any shape and dtype.
axes : int or sequence of int, optional
    Axes to roll; all of them by default.""",
    returns="""\
Tensor
    Has the shape and dtype of `x`.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, or `axes` does not consist of ints.
IndexError
    If an axis is out of range.""",
)


# -- arguments ------------------------------------------------------------------------------------------------------------------


def _check(name: str, x: Any, norm: Any, *, real: bool = False) -> Tensor:
    """Check the operand and the normalisation of the transform `name`, and return `x` as a Tensor.

    Raises
    ------
    TypeError, ValueError
        If the dtype or shape of `x` is not supported, or `norm` is unknown.
    """
    x = as_tensor(name, x)
    if not x.dtype.differentiable:
        msg = f"{name} needs a floating or complex Tensor, but got dtype {x.dtype}; convert it with `xpgrad.astype(x, xpgrad.float64)`"
        raise TypeError(msg)
    if real and x.dtype.is_complex:
        msg = f"{name} needs a real Tensor, but got dtype {x.dtype}; use `{name.removeprefix('r').removeprefix('ih')}`, or `xpgrad.real(x)`"
        raise TypeError(msg)
    if x.ndim == 0:
        msg = f"{name} needs a Tensor with at least one axis, but got a 0-d one"
        raise ValueError(msg)
    check_choice(norm, tuple(OPPOSITE), name, "norm")
    return x


def _length(name: str, what: str, value: Any) -> int:
    """Return the length of a transform as an int; `what` names the argument in errors.

    Raises
    ------
    TypeError, ValueError
        If it is not an int, or not positive.
    """
    scalar = as_scalar(value) if is_scalar(value) else None
    if not isinstance(scalar, int) or isinstance(scalar, bool):
        msg = f"{name}: `{what}` must be an int, but got {value!r}"
        raise TypeError(msg)
    if scalar > sys.maxsize // 16:
        msg = f"{name}: `{what}` is more than any array can have: {scalar}"
        raise ValueError(msg)
    if scalar < 1:
        msg = f"{name}: `{what}` is the length of a transform and must be positive, but got {scalar}"
        raise ValueError(msg)
    return scalar


def _one_axis(name: str, x: Tensor, n: Any, axis: Any) -> tuple[int | None, int]:
    """Check `n` and `axis`, and return the length (None if not given) and the nonnegative axis of a transform over one axis."""
    place = normalize_axis(axis, x.ndim, name)
    return (None if n is None else _length(name, "n", n)), place


def _several_axes(name: str, x: Tensor, s: Any, axes: Any) -> tuple[list[int | None], list[int]]:
    """Check `s` and `axes`, and return the lengths (None if not given) and the axes of a transform over several axes."""
    if s is not None and not isinstance(s, (tuple, list)):
        msg = f"{name}: `s` must be a sequence of ints, but got {s!r}"
        raise TypeError(msg)
    if axes is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            msg = f"{name}: `s`={s!r} has more lengths than a Tensor of shape {x.shape} has axes"
            raise ValueError(msg)
        places = list(range(x.ndim - count, x.ndim))
    else:
        places = list(normalize_axes(tuple(axes) if isinstance(axes, (tuple, list)) else axes, x.ndim, name, "axes") or ())
    if s is not None and len(s) != len(places):
        msg = f"{name}: `s` and `axes` must have equal lengths, but got s={s!r} and axes={axes!r}"
        raise ValueError(msg)
    if not places:
        msg = f"{name} needs at least one axis to transform, but got axes={axes!r}, s={s!r}"
        raise ValueError(msg)
    # In the standard, -1 means "neither pad nor trim".
    return [None if n is None or n == -1 else _length(name, "s", n) for n in s or [None] * len(places)], places


def _fit_length(name: str, x: Tensor, length: int | None, axis: int) -> Tensor:
    """Trim `x`, or pad it with zeros, to a length along an axis."""
    have = x.shape[axis]
    if length is None or length == have:
        if not have:
            msg = f"{name}: axis {axis} of a Tensor of shape {x.shape} has no elements to transform; give its length with `n` or `s`"
            raise ValueError(msg)
        return x
    key = (slice(None),) * axis + (slice(0, min(length, have)), ...)
    if length < have:
        return PRIMITIVES["index_basic"](x, key)
    return PRIMITIVES["index_basic_transpose"](x, key, (*x.shape[:axis], length, *x.shape[axis + 1 :]))


def _to_complex(x: Tensor) -> Tensor:
    return x._cast(complex_of(x.dtype))


# -- complex transforms ----------------------------------------------------------------------------------------------------------


def _transform_axis(name: str, x: Tensor, n: Any, axis: Any, norm: str, forward: bool) -> Tensor:
    x = _check(name, x, norm)
    length, place = _one_axis(name, x, n, axis)
    return _rows.fourier(_to_complex(_fit_length(name, x, length, place)), (place,), forward, norm)


def _transform_axes(name: str, x: Tensor, s: Any, axes: Any, norm: str, forward: bool) -> Tensor:
    x = _check(name, x, norm)
    lengths, places = _several_axes(name, x, s, axes)
    for length, place in zip(lengths, places):
        x = _fit_length(name, x, length, place)
    return _rows.fourier(_to_complex(x), tuple(places), forward, norm)


@front
@_document_axis
def fft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the discrete Fourier transform along one axis.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with length `n` along the axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 0.0, 0.0, 0.0], requires_grad=True)
    >>> y = xp.fft.fft(x)
    >>> y
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], grad_fn=<FftC2CBackward0>)
    >>> xp.sum(xp.abs(y) ** 2).backward()
    >>> x.grad
    tensor([8., 0., 0., 0.])
    """
    return _transform_axis("fft", x, n, axis, norm, True)


@front
@_document_axis
def ifft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse discrete Fourier transform along one axis.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with length `n` along the axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.ifft(xp.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform_axis("ifft", x, n, axis, norm, False)


@front
@_document_axes
def fftn(x: Tensor, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward") -> Tensor:
    """Return the discrete Fourier transform over several axes.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with the lengths `s` along `axes`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.fftn(xp.ones((2, 2)))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _transform_axes("fftn", x, s, axes, norm, True)


@front
@_document_axes
def ifftn(x: Tensor, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward") -> Tensor:
    """Return the inverse discrete Fourier transform over several axes.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with the lengths `s` along `axes`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.ifftn(xp.ones((2, 2)))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _transform_axes("ifftn", x, s, axes, norm, False)


# -- transforms of real values ------------------------------------------------------------------------------------------------------


def _to_half(name: str, x: Tensor, length: int | None, place: int, norm: str) -> Tensor:
    note_complex()
    return _rows.real_to_half(_fit_length(name, x, length, place), place, norm)


def _from_half(name: str, x: Tensor, length: int | None, place: int, norm: str) -> Tensor:
    if length is None:
        length = 2 * (x.shape[place] - 1)
        if length < 1:
            msg = f"{name}: axis {place} of shape {x.shape} is too short for the default length; give the length with `n` or `s`"
            raise ValueError(msg)
    return _rows.half_to_real(_to_complex(_fit_length(name, x, length // 2 + 1, place)), length, place, norm)


@front
@_document_axis
def rfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the discrete Fourier transform of a real Tensor along one axis, for the nonnegative frequencies.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; real floating-point.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with length ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is not real floating-point, or `n` or `axis` is not an int.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.rfft(xp.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    x = _check("rfft", x, norm, real=True)
    return _to_half("rfft", x, *_one_axis("rfft", x, n, axis), norm)


@front
@_document_axis
def irfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `rfft`.

    Parameters
    ----------
    x : Tensor or raw array
        Frequencies from zero up; floating-point or complex. The imaginary part at zero, and at the highest one for an even `n`, is
        ignored.
    n : int, optional
        Length of the result along the axis; by default the even one, ``2 * (m - 1)`` for m frequencies.

    Returns
    -------
    Tensor
        Real; has the shape of `x`, with length `n` along the axis.

    Raises
    ------
    ValueError
        If `x` is 0-d, `n` is not positive, or omitted for a single frequency, or `norm` is none of the three.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.irfft(xp.tensor([4.0 + 0.0j, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    x = _check("irfft", x, norm)
    return _from_half("irfft", x, *_one_axis("irfft", x, n, axis), norm)


@front
@_document_axes
def rfftn(x: Tensor, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward") -> Tensor:
    """Return the transform of a real Tensor over several axes: `rfft` along the last of them, then `fftn` over the others.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; real floating-point.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with the lengths `s` along `axes`, the last of which is ``s[-1] // 2 + 1``.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is not real floating-point, or `s` does not consist of ints.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.rfftn(xp.ones((2, 4))).shape
    (2, 3)
    """
    x = _check("rfftn", x, norm, real=True)
    lengths, places = _several_axes("rfftn", x, s, axes)
    for length, place in zip(lengths[:-1], places[:-1]):
        x = _fit_length("rfftn", x, length, place)
    out = _to_half("rfftn", x, lengths[-1], places[-1], norm)
    return _rows.fourier(out, tuple(places[:-1]), True, norm) if len(places) > 1 else out


@front
@_document_axes
def irfftn(x: Tensor, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `rfftn`.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; floating-point or complex. The last transformed axis has the frequencies from zero up.
    s : sequence of int, optional
        Lengths of the result along `axes`; -1 stands for the default: the length of `x`, and along the last axis the even length
        ``2 * (m - 1)`` for m frequencies.

    Returns
    -------
    Tensor
        Real; has the shape of `x`, with the lengths `s` along `axes`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.irfftn(xp.ones((2, 3))).shape
    (2, 4)
    """
    x = _check("irfftn", x, norm)
    lengths, places = _several_axes("irfftn", x, s, axes)
    if len(places) > 1:
        for length, place in zip(lengths[:-1], places[:-1]):
            x = _fit_length("irfftn", x, length, place)
        x = _rows.fourier(_to_complex(x), tuple(places[:-1]), False, norm)
    return _from_half("irfftn", x, lengths[-1], places[-1], norm)


@composite
@_document_axis
def hfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the real transform of a signal with Hermitian symmetry, given its first half.

    Parameters
    ----------
    x : Tensor or raw array
        First half of the signal along the axis; floating-point or complex.
    n : int, optional
        Length of the result along the axis; by default the even one, ``2 * (m - 1)`` for m elements.

    Returns
    -------
    Tensor
        Real; has the shape of `x`, with length `n` along the axis.

    Raises
    ------
    ValueError
        If `x` is 0-d, `n` is not positive, or omitted for a single element, or `norm` is none of the three.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.hfft(xp.tensor([1.0 + 0.0j, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    x = _check("hfft", x, norm)
    return _from_half("hfft", _conj(x) if x.dtype.is_complex else x, *_one_axis("hfft", x, n, axis), OPPOSITE[norm])


@composite
@_document_axis
def ihfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of `hfft`: the first half of a signal with Hermitian symmetry whose transform is real.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; real floating-point.

    Returns
    -------
    Tensor
        Complex; has the shape of `x`, with length ``n // 2 + 1`` along the axis.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is not real floating-point, or `n` or `axis` is not an int.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.ihfft(xp.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 2.5-0.j , -0.5-0.5j, -0.5-0.j ])
    """
    x = _check("ihfft", x, norm, real=True)
    return _conj(_to_half("ihfft", x, *_one_axis("ihfft", x, n, axis), OPPOSITE[norm]))


# -- frequencies and their order --------------------------------------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, dtype: Any, device: Any, half: bool) -> Tensor:
    length = _length(name, "n", n)
    spacing = as_scalar(d) if is_scalar(d) else None
    if not isinstance(spacing, (int, float)) or spacing == 0:
        msg = f"{name}: `d` must be a real number other than 0, but got {d!r}"
        raise TypeError(msg) if not isinstance(spacing, (int, float)) else ValueError(msg)
    numbers = arange(length // 2 + 1 if half else length, device=device)
    wanted = numbers.default_dtype("real floating") if dtype is None else as_dtype(dtype, numbers.default_dtype)
    if wanted.category != "real floating":
        msg = f"{name}: `dtype` must be a real floating one, but got {wanted}"
        raise TypeError(msg)
    if not half:
        numbers = where(numbers >= (length + 1) // 2, numbers - length, numbers)
    wide = wanted if wanted.itemsize > 2 else float32  # neither large numbers nor small factors fit in 16 bits
    return (numbers._cast(wide) * (1.0 / (length * spacing)))._cast(wanted)


@nondifferentiable(primitive=True)
@_document_frequencies
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Device | str | None = None) -> Tensor:
    """Return the frequencies of the results of `fft`, in cycles per unit of `d`.

    Returns
    -------
    Tensor
        Of shape (n,): 0 and the positive frequencies, then the negative ones.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.fftfreq(4, d=0.5)
    tensor([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies("fftfreq", n, d, dtype, device, False)


@nondifferentiable(primitive=True)
@_document_frequencies
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Device | str | None = None) -> Tensor:
    """Return the frequencies of the results of `rfft`, in cycles per unit of `d`.

    Returns
    -------
    Tensor
        Of shape (n // 2 + 1,), ascending from 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.rfftfreq(4, d=0.5)
    tensor([0. , 0.5, 1. ])
    """
    return _frequencies("rfftfreq", n, d, dtype, device, True)


def _shift(name: str, x: Any, axes: Any, sign: int) -> Tensor:
    x = as_tensor(name, x)
    places = normalize_axes(tuple(axes) if isinstance(axes, list) else axes, x.ndim, name, "axes")
    places = tuple(range(x.ndim)) if places is None else places
    half = tuple(x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in places)
    return roll(x, half, axis=places) if places else x.clone()


@composite
@_document_shift
def fftshift(x: Tensor, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Roll `x` so that frequency zero is in the middle of axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.fftshift(xp.tensor([0.0, 1.0, -2.0, -1.0]))
    tensor([-2., -1.,  0.,  1.])
    """
    return _shift("fftshift", x, axes, 1)


@composite
@_document_shift
def ifftshift(x: Tensor, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Undo `fftshift`: roll `x` so that frequency zero is at the start of axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.fft.ifftshift(xp.tensor([-2.0, -1.0, 0.0, 1.0]))
    tensor([ 0.,  1., -2., -1.])
    """
    return _shift("ifftshift", x, axes, -1)
