"""`xpgrad.scipy.fft`: SciPy's Fourier, cosine and sine transforms for Tensors on every backend, differentiable to every order.

The Fourier transforms are those of `xpgrad.fft` with SciPy's arguments. Integers become the default floating-point dtype. Cosine and sine
transforms are computed by SciPy in host memory, elsewhere by Fourier transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from xpgrad import fft as _ours
from xpgrad._basics.arguments import as_flag, as_int, check_choice, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names, refusal
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._convolutions import fast_length
from xpgrad.scipy._cosines import _cosines
from xpgrad.scipy._operands import arrays_of

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn",
    "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "next_fast_len", "prev_fast_len",
    "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


Norm = Literal["backward", "ortho", "forward"] | None
Axes = Sequence[int] | int | None


class _Transform(Protocol):
    """The signature of the transforms along one axis."""

    def __call__(
        self,
        x: Any,
        n: int | None = ...,
        axis: int = ...,
        norm: Norm = ...,
        overwrite_x: bool = ...,
        workers: Any = ...,
        *,
        plan: Any = ...,
    ) -> Tensor: ...


class _TransformN(Protocol):
    """The signature of the transforms over several axes."""

    def __call__(
        self, x: Any, s: Any = ..., axes: Axes = ..., norm: Norm = ..., overwrite_x: bool = ..., workers: Any = ..., *, plan: Any = ...
    ) -> Tensor: ...


# -- what docstrings have in common ----------------------------------------------------------------------------------------

_COMMON = """\
x : Tensor, array or sequence of numbers
    Real or complex, with at least one axis; differentiable. Integers become the default floating-point dtype.
axis : int
    Axis of the transform.
s : sequence of int, optional
    Lengths along `axes`; `x` is trimmed or padded with zeros. Default: those of `x`.
axes : int or sequence of int, optional
    Axes of the transform. Default: the last ``len(s)`` axes, or all if `s` is not given.
overwrite_x : bool
    Has no effect: nothing is written to `x`.
workers : int, optional
    Has no effect: the library decides."""
_FOURIER = f"""\
{_COMMON}
n : int, optional
    Length along `axis` to which the longer of `x` and the result is trimmed or padded with zeros. Default: that of `x`.
norm : {{'backward', 'ortho', 'forward'}}, optional
    Which transforms are divided by the number of elements n: the inverse ones ("backward", the default), or the forward ones. "ortho"
    divides both by the square root of n.
plan : None
    Must be None, as in SciPy."""
_FOURIER_ERRORS = """\
TypeError
    `x` is not an array of numbers.
ValueError
    `norm` is unknown, a length is not positive, or `s` and `axes` do not fit together.
IndexError
    An axis is out of range.
NotImplementedError
    `plan` is not None."""
_COMPLEX = """\
Tensor
    Complex, with the shape of `x` except for the given lengths."""
_HALF = """\
Tensor
    Complex, with the shape of `x` except along the last axis of the transform, where m real numbers give the length ``m // 2 + 1``."""
_REAL = """\
Tensor
    Real. Along the last axis of the transform it has the given length, by default twice that of `x` less two."""
_document_cosines = shares(
    parameters=f"""\
{_COMMON}
type : {{1, 2, 3, 4}}
    Type of the transform; the types differ in the symmetry at the ends.
n : int, optional
    Length of the transform: `x` is trimmed or padded with zeros at its end. Default: the length of `x`.
norm : {{'backward', 'ortho', 'forward'}}, optional
    Which transforms are scaled: the inverse ("backward", the default), both, by the square root of the factor ("ortho"), or
    the forward ones ("forward").
orthogonalize : bool, optional
    Whether to scale the ends so that the matrix is orthogonal for ``norm='ortho'``. Default: True for "ortho" only.""",
    returns="""\
Tensor
    Floating-point, or complex like `x`; the shape of `x` except for the given lengths.""",
    raises="""\
TypeError
    `x` is not an array of numbers.
ValueError
    `type` or `norm` is unknown, `x` is 0-d, or a length is too short (cosine transforms of type 1 need 2).
IndexError
    An axis is out of range.""",
)
_document_frequencies = shares(
    parameters="""\
n : int
    The length of the transform, at least 1.
d : number
    The spacing of the samples.
xp : object
    Without effect: the results are Tensors.
device : Device or str, optional
    Where to put the result; default: the default device.""",
    raises="""\
TypeError
    `n` is not an integer.
ValueError
    `n` is not positive.""",
)
_document_shift = shares(
    parameters="""\
x : Tensor or array
    Of any dtype. Differentiable.
axes : int or sequence of int, optional
    Axes to rotate. Default: all.""",
    returns="""\
Tensor
    The shape and dtype of `x`.""",
    raises="""\
TypeError
    `x` is neither a Tensor nor an array.
IndexError
    An axis is out of range.""",
)
_document_length = shares(
    parameters="""\
target : int
    A length, at least 1.
real : bool
    Whether the transform is of real numbers, which are fast for fewer lengths.""",
    returns="int",
    raises="""\
TypeError
    `target` is not an integer.
ValueError
    `target` is not positive.""",
)


# -- Fourier transforms ----------------------------------------------------------------------------------------------------


def _prepare(name: str, x: Any, norm: Any, plan: Any) -> tuple[Any, Any]:
    """Check the arguments of the transform `name`; return `x` as a floating-point or complex Tensor, and the normalisation."""
    if plan is not None:
        msg = f"scipy.fft.{name}: `plan` must be None, as SciPy's, but got {shown(plan)}"
        raise NotImplementedError(msg)
    if norm is not None:
        check_choice(norm, ("backward", "ortho", "forward"), f"scipy.fft.{name}", "norm")
    (x,) = arrays_of(f"scipy.fft.{name}", x=x)
    return x, norm or "backward"


def _tuple(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, list) else (axes,) if isinstance(axes, int) else axes


def _one(name: str, returns: str, doc: str) -> Any:
    """Return the public transform `name` along one axis; `returns` and `doc` are parts of its docstring."""
    ours = getattr(_ours, name)

    def function(
        x: Any, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *, plan: Any = None
    ) -> Tensor:
        x, norm = _prepare(name, x, norm, plan)
        out: Tensor = ours(x, n=n, axis=axis, norm=norm)
        return out

    return _name(function, name, returns, doc)


def _several(name: str, returns: str, default: Axes = None, base: str = "", *, doc: str) -> Any:
    """Return the public transform `name` over several axes, computed by the transform `base` if that is given."""
    ours: Any = _HERMITIAN.get(base or name) or getattr(_ours, base or name)

    def function(
        x: Any, s: Any = None, axes: Axes = default, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *, plan: Any = None
    ) -> Tensor:
        x, norm = _prepare(name, x, norm, plan)
        out: Tensor = ours(x, s=s if s is None else list(_tuple(s)), axes=_tuple(axes), norm=norm)
        return out

    return _name(function, name, returns, doc)


def _name(function: Any, name: str, returns: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return shares(_FOURIER, _FOURIER_ERRORS, returns=returns)(function)


def _hfftn(x: Any, s: Any, axes: Any, norm: str) -> Any:
    return _ours.irfftn(xp.conj(x) if x.dtype.is_complex else x, s=s, axes=axes, norm=_OPPOSITE[norm])  # type: ignore[arg-type]


def _ihfftn(x: Any, s: Any, axes: Any, norm: str) -> Any:
    return xp.conj(_ours.rfftn(x, s=s, axes=axes, norm=_OPPOSITE[norm]))  # type: ignore[arg-type]


_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
_HERMITIAN = {"hfftn": _hfftn, "ihfftn": _ihfftn}

fft: _Transform = _one(
    "fft",
    _COMPLEX,
    doc="""Return the discrete Fourier transform along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    >>> y = fft.fft(x)
    >>> xp.real(y).detach(), xp.imag(y).detach() + 0.0
    (tensor([10., -2., -2., -2.]), tensor([ 0.,  2.,  0., -2.]))
    >>> xp.sum(xp.abs(y) ** 2).backward()
    >>> x.grad  # Parseval: 2 * n * x
    tensor([ 8., 16., 24., 32.])
    """,
)
ifft: _Transform = _one(
    "ifft",
    _COMPLEX,
    doc="""Return the inverse discrete Fourier transform along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([4.0, 0.0, 0.0, 0.0], requires_grad=True)
    >>> y = xp.real(fft.ifft(x))
    >>> y.detach()
    tensor([1., 1., 1., 1.])
    >>> y[1].backward()
    >>> x.grad + 0.0
    tensor([ 0.25,  0.  , -0.25,  0.  ])
    """,
)
rfft: _Transform = _one(
    "rfft",
    _HALF,
    doc="""Return the discrete Fourier transform of real numbers along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([1.0, 0.0, 0.0, 0.0], requires_grad=True)
    >>> y = fft.rfft(x)
    >>> y.shape
    (3,)
    >>> xp.real(y[1]).backward()
    >>> x.grad + 0.0  # the cosine of that frequency
    tensor([ 1.,  0., -1.,  0.])
    """,
)
irfft: _Transform = _one(
    "irfft",
    _REAL,
    doc="""Return the inverse of the discrete Fourier transform of real numbers along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([4.0, 2.0, 0.0], requires_grad=True)
    >>> y = fft.irfft(x)
    >>> y.detach()
    tensor([2., 1., 0., 1.])
    >>> y[0].backward()
    >>> x.grad  # the frequency in the middle stands for two
    tensor([0.25, 0.5 , 0.25])
    """,
)
hfft: _Transform = _one(
    "hfft",
    _REAL,
    doc="""Return the discrete Fourier transform of numbers with Hermitian symmetry along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([1.0, 0.5, 0.0], requires_grad=True)  # half of a signal that is symmetric in time
    >>> y = fft.hfft(x)
    >>> y.detach()
    tensor([2., 1., 0., 1.])
    >>> y[0].backward()
    >>> x.grad
    tensor([1., 2., 1.])
    """,
)
ihfft: _Transform = _one(
    "ihfft",
    _HALF,
    doc="""Return the inverse of the discrete Fourier transform of numbers with Hermitian symmetry along one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> xp.real(fft.ihfft([2.0, 1.0, 0.0, 1.0]))
    tensor([1. , 0.5, 0. ])
    >>> fft.hfft(fft.ihfft([2.0, 1.0, 0.0, 1.0]))
    tensor([2., 1., 0., 1.])
    """,
)
fftn: _TransformN = _several(
    "fftn",
    _COMPLEX,
    doc="""Return the discrete Fourier transform over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = xp.real(fft.fftn(x))
    >>> y.detach()
    tensor([[10., -2.],
            [-4.,  0.]])
    >>> y[1, 1].backward()
    >>> x.grad
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """,
)
ifftn: _TransformN = _several(
    "ifftn",
    _COMPLEX,
    doc="""Return the inverse discrete Fourier transform over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> xp.real(fft.ifftn(xp.asarray([[4.0, 0.0], [0.0, 0.0]])))
    tensor([[1., 1.],
            [1., 1.]])
    >>> xp.real(fft.ifftn(xp.ones((2, 2)), s=(2,)))  # over the last axis
    tensor([[1., 0.],
            [1., 0.]])
    """,
)
rfftn: _TransformN = _several(
    "rfftn",
    _HALF,
    doc="""Return the discrete Fourier transform of real numbers over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    >>> y = fft.rfftn(x)
    >>> y.shape
    (2, 3)
    >>> xp.real(y[1, 0]).backward()
    >>> x.grad
    tensor([[ 1.,  1.,  1.,  1.],
            [-1., -1., -1., -1.]])
    """,
)
irfftn: _TransformN = _several(
    "irfftn",
    _REAL,
    doc="""Return the inverse of the discrete Fourier transform of real numbers over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> y = fft.rfftn(xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    >>> fft.irfftn(y, s=(2, 3))  # an odd length must be given
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """,
)
hfftn: _TransformN = _several(
    "hfftn",
    _REAL,
    doc="""Return the discrete Fourier transform of numbers with Hermitian symmetry over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.hfftn(xp.asarray([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]]))
    tensor([[2., 1., 0., 1.],
            [2., 1., 0., 1.]])
    """,
)
ihfftn: _TransformN = _several(
    "ihfftn",
    _HALF,
    doc="""Return the inverse of the discrete Fourier transform of numbers with Hermitian symmetry over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.asarray([[2.0, 1.0, 0.0, 1.0], [2.0, 1.0, 0.0, 1.0]])
    >>> xp.real(fft.ihfftn(x))
    tensor([[1. , 0.5, 0. ],
            [0. , 0. , 0. ]])
    >>> fft.hfftn(fft.ihfftn(x))
    tensor([[2., 1., 0., 1.],
            [2., 1., 0., 1.]])
    """,
)
fft2: _TransformN = _several(
    "fft2",
    _COMPLEX,
    (-2, -1),
    "fftn",
    doc="""Return the discrete Fourier transform over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.ones((3, 2, 2))  # a batch of three
    >>> xp.real(fft.fft2(x))[0, ...]
    tensor([[4., 0.],
            [0., 0.]])
    >>> fft.fft2(x, norm="forward").shape
    (3, 2, 2)
    """,
)
ifft2: _TransformN = _several(
    "ifft2",
    _COMPLEX,
    (-2, -1),
    "ifftn",
    doc="""Return the inverse discrete Fourier transform over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([[4.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> y = xp.real(fft.ifft2(x))
    >>> y.detach()
    tensor([[1., 1.],
            [1., 1.]])
    >>> y[0, 1].backward()
    >>> x.grad
    tensor([[ 0.25, -0.25],
            [ 0.25, -0.25]])
    """,
)
rfft2: _TransformN = _several(
    "rfft2",
    _HALF,
    (-2, -1),
    "rfftn",
    doc="""Return the discrete Fourier transform of real numbers over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.rfft2(xp.ones((5, 4, 6))).shape
    (5, 4, 4)
    >>> xp.real(fft.rfft2(xp.ones((2, 2))))
    tensor([[4., 0.],
            [0., 0.]])
    """,
)
irfft2: _TransformN = _several(
    "irfft2",
    _REAL,
    (-2, -1),
    "irfftn",
    doc="""Return the inverse of the discrete Fourier transform of real numbers over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([[8.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> y = fft.irfft2(x)
    >>> y.detach()
    tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    >>> y[0, 0].backward()
    >>> x.grad
    tensor([[0.125, 0.25 , 0.125],
            [0.125, 0.25 , 0.125]])
    """,
)
hfft2: _TransformN = _several(
    "hfft2",
    _REAL,
    (-2, -1),
    "hfftn",
    doc="""Return the discrete Fourier transform of numbers with Hermitian symmetry over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.hfft2(xp.asarray([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]]))
    tensor([[2., 1., 0., 1.],
            [2., 1., 0., 1.]])
    """,
)
ihfft2: _TransformN = _several(
    "ihfft2",
    _HALF,
    (-2, -1),
    "ihfftn",
    doc="""Return the inverse of the discrete Fourier transform of numbers with Hermitian symmetry over the last two axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> xp.real(fft.ihfft2(xp.asarray([[2.0, 1.0, 0.0, 1.0], [2.0, 1.0, 0.0, 1.0]])))
    tensor([[1. , 0.5, 0. ],
            [0. , 0. , 0. ]])
    """,
)


@_document_frequencies
def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the results of `fft`, in cycles per unit of the spacing `d`.

    Returns
    -------
    Tensor, shape (n,)
        Floating, in cycles per unit of `d`; the negative frequencies follow the others.

    Examples
    --------
    >>> from xpgrad.scipy import fft
    >>> fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    >>> fft.fftfreq(5, d=0.2)  # in hertz, for five samples in a second
    tensor([ 0.,  1.,  2., -2., -1.])
    """
    return _ours.fftfreq(n, d=d, device=device)


@_document_frequencies
def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the results of `rfft`, in cycles per unit of the spacing `d`.

    Returns
    -------
    Tensor, shape (n // 2 + 1,)
        Floating, in cycles per unit of `d`.

    Examples
    --------
    >>> from xpgrad.scipy import fft
    >>> fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    >>> fft.rfftfreq(5, d=0.2)
    tensor([0., 1., 2.])
    """
    return _ours.rfftfreq(n, d=d, device=device)


@_document_shift
def fftshift(x: Any, axes: Axes = None) -> Tensor:
    """Rotate `x` along axes so that frequency zero is in the middle.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.fftshift(fft.fftfreq(5, d=0.2))
    tensor([-2., -1.,  0.,  1.,  2.])
    >>> x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> fft.fftshift(x)[0].backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """
    return _ours.fftshift(x, axes=_tuple(axes))


@_document_shift
def ifftshift(x: Any, axes: Axes = None) -> Tensor:
    """Undo `fftshift`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.asarray([1, 2, 3])
    >>> fft.fftshift(x)
    tensor([3, 1, 2])
    >>> fft.ifftshift(fft.fftshift(x))
    tensor([1, 2, 3])
    """
    return _ours.ifftshift(x, axes=_tuple(axes))


@_document_length
def next_fast_len(target: int, real: bool = False) -> int:
    """Return the smallest length of at least `target` for which transforms are fast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.next_fast_len(97), fft.next_fast_len(97, real=True)  # 2 * 7**2 and 2**2 * 5**2
    (98, 100)
    >>> fft.rfft(xp.ones(97), n=fft.next_fast_len(97, real=True)).shape
    (51,)
    """
    n, real = _target("next_fast_len", target), as_flag(real, "scipy.fft.next_fast_len", "real")
    return fast_length(n, (2, 3, 5) if real else (2, 3, 5, 7, 11))


@_document_length
def prev_fast_len(target: int, real: bool = False) -> int:
    """Return the largest length of at most `target` for which transforms are fast.

    Examples
    --------
    >>> from xpgrad.scipy import fft
    >>> fft.prev_fast_len(101), fft.prev_fast_len(99, real=True)
    (100, 96)
    """
    n, real = _target("prev_fast_len", target), as_flag(real, "scipy.fft.prev_fast_len", "real")
    primes = (2, 3, 5) if real else (2, 3, 5, 7, 11)
    return next(m for m in range(n, 0, -1) if fast_length(m, primes) == m)


def _target(name: str, target: Any) -> int:
    """Return a length as an int, and raise ValueError unless it is positive."""
    n = as_int(target, f"scipy.fft.{name}", "target")
    if n < 1:
        msg = f"scipy.fft.{name}: `target` must be a positive length, but got {n}"
        raise ValueError(msg)
    return n


# -- cosine and sine transforms --------------------------------------------------------------------------------------------

Kind = Literal[1, 2, 3, 4]
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _kind(title: str, given: Any) -> int:
    """Return the type of a transform as an int, and raise ValueError if it is unknown."""
    kind = as_int(given, title, "type")
    if kind not in _INVERSE:
        msg = f"{title}: `type` must be 1, 2, 3 or 4, but got {kind}"
        raise ValueError(msg)
    return kind


def _fit_length(title: str, x: Any, n: Any, place: int, least: int) -> Any:
    """Trim `x`, or pad it with zeros, to the length `n` along the axis `place`; raise ValueError if that is below `least`."""
    have = x.shape[place]
    length = have if n is None else as_int(n, title, "n")
    if length < least:
        msg = f"{title}: the length of this transform must be at least {least}, but is {length}"
        raise ValueError(msg)
    if length < have:
        return x[(*(slice(None),) * place, slice(0, length))]
    return x if length == have else xp.pad(x, [(0, length - have if i == place else 0) for i in range(x.ndim)])


def _weigh(x: Any, place: int, first: float, inner: float, last: float) -> Any:
    """Multiply `x` along the axis `place` by constants: `first` and `last` at the ends, and `inner` in between."""
    n = x.shape[place]
    if first == inner == last:
        return x if inner == 1.0 else x * inner
    weights = [first] + [inner] * (n - 2) + [last] if n > 1 else [first if last == inner else last if first == inner else first * last]
    dtype = xp.real(x).dtype if x.dtype.is_complex else x.dtype
    return x * xp.reshape(xp.asarray(weights, dtype=dtype, device=x.device), (-1, *(1,) * (x.ndim - 1 - place)))


def _transform_axis(x: Any, kind: int, sine: bool, place: int, norm: str, ortho: bool, inverse: bool) -> Any:
    """Compute one cosine or sine transform along the axis `place` by the matrix of its kind, 1 to 4.

    A transform halves, and `ortho` scales, the first element for cosines (for type 1 also the last) and the last one for sines. `norm` and
    `inverse` are those of the public functions.
    """
    if inverse:
        kind, norm = _INVERSE[kind], _OPPOSITE[norm]
    n = x.shape[place]
    size = 2.0 * (n + 1 if sine and kind == 1 else n - 1 if kind == 1 else n)
    scale = {"backward": 1.0, "ortho": 1.0 / math.sqrt(size), "forward": 1.0 / size}[norm]
    root = math.sqrt(2.0) if ortho else 1.0
    before, after = [1.0, 1.0], [scale, scale]
    if kind == 1 and not sine:
        before, after = [root / 2, root / 2], [scale / root, scale / root]
    elif kind == 2:
        after[sine] = scale / root
    elif kind == 3:
        before[sine] = root / 2
    x = _weigh(x, place, before[0], 1.0, before[1])
    return _weigh(_cosines(x, kind, sine, place), place, after[0], scale, after[1])


def _transform(
    name: str, x: Any, kind: Any, n: Any, axis: Any, norm: Any, orthogonalize: Any, *, sine: bool, inverse: bool = False
) -> Tensor:  # fmt: skip
    """Check the arguments of a cosine or sine transform along one axis, those of the public function `name`, and compute it."""
    title = f"scipy.fft.{name}"
    kind = _kind(title, kind)
    x, norm = _prepare(name, x, norm, None)
    if not x.ndim:
        msg = f"{title}: `x` must have at least one axis, but got a 0-d Tensor"
        raise ValueError(msg)
    place = normalize_axis(axis, x.ndim, title)
    ortho = norm == "ortho" if orthogonalize is None else as_flag(orthogonalize, title, "orthogonalize")
    x = _fit_length(title, x, n, place, 2 if kind == 1 and not sine else 1)
    out: Tensor = _transform_axis(x, kind, sine, place, norm, ortho, inverse)
    return out


def _transform_n(
    name: str, x: Any, kind: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any, *, sine: bool, inverse: bool = False
) -> Tensor:  # fmt: skip
    """Check the arguments of a cosine or sine transform over several axes, those of the public function `name`, and compute it."""
    title = f"scipy.fft.{name}"
    x, _ = _prepare(name, x, norm, None)
    lengths = None if s is None else [s] if isinstance(s, int) else list(s)
    if axes is None and lengths is not None:
        if len(lengths) > x.ndim:
            msg = f"{title}: `s` has more lengths, {len(lengths)}, than `x` of shape {x.shape} has axes"
            raise ValueError(msg)
        axes = tuple(range(x.ndim - len(lengths), x.ndim))
    places = normalize_axes(_tuple(axes), x.ndim, title, "axes")
    places = tuple(range(x.ndim)) if places is None else places
    if lengths is not None and len(lengths) != len(places):
        msg = f"{title}: `s` and `axes` must have equal lengths, but got s={s!r} and axes={axes!r}"
        raise ValueError(msg)
    for i, place in enumerate(places):
        n = None if lengths is None else lengths[i]
        x = _transform(name, x, kind, n, place, norm, orthogonalize, sine=sine, inverse=inverse)
    return x


@_document_cosines
def dct(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the discrete cosine transform along an axis (`scipy.fft.dct`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> [round(v, 6) + 0.0 for v in fft.dct(xp.asarray([1.0, 1.0, 1.0, 1.0])).tolist()]
    [8.0, 0.0, 0.0, 0.0]
    """
    return _transform("dct", x, type, n, axis, norm, orthogonalize, sine=False)


@_document_cosines
def idct(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the inverse of `dct` along an axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> fft.idct(fft.dct(x.detach()))
    tensor([1., 2., 4.])
    >>> fft.idct(x, norm="ortho").sum().backward()
    >>> x.grad[0]  # sqrt(3), because the elements of all components but the constant one sum to 0
    tensor(1.7321)
    """
    return _transform("idct", x, type, n, axis, norm, orthogonalize, sine=False, inverse=True)


@_document_cosines
def dst(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the discrete sine transform along an axis (`scipy.fft.dst`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([1.0, 1.0, 1.0, 1.0], requires_grad=True)
    >>> fft.dst(x)[0].backward()
    >>> x.grad  # twice the first sine
    tensor([0.7654, 1.8478, 1.8478, 0.7654])
    """
    return _transform("dst", x, type, n, axis, norm, orthogonalize, sine=True)


@_document_cosines
def idst(
    x: Any, type: Kind = 2, n: int | None = None, axis: int = -1, norm: Norm = None, overwrite_x: bool = False, workers: Any = None,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the inverse of `dst` along an axis.

    Examples
    --------
    >>> from xpgrad.scipy import fft
    >>> fft.idst(fft.dst([1.0, 2.0, 4.0], type=3), type=3)
    tensor([1., 2., 4.])
    """
    return _transform("idst", x, type, n, axis, norm, orthogonalize, sine=True, inverse=True)


@_document_cosines
def dctn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the discrete cosine transform over several axes (`scipy.fft.dctn`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = fft.dctn(x, norm="ortho")
    >>> xp.sum(y**2).backward()
    >>> x.grad  # the transform keeps lengths: 2 x
    tensor([[2., 4.],
            [6., 8.]])
    """
    return _transform_n("dctn", x, type, s, axes, norm, orthogonalize, sine=False)


@_document_cosines
def idctn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the inverse of `dctn` over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.idctn(fft.dctn(xp.asarray([[1.0, 2.0], [3.0, 4.0]])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _transform_n("idctn", x, type, s, axes, norm, orthogonalize, sine=False, inverse=True)


@_document_cosines
def dstn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the discrete sine transform over several axes (`scipy.fft.dstn`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> y = fft.dstn(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), norm="ortho")
    >>> xp.sum(y**2)  # 1 + 4 + 9 + 16
    tensor(30.)
    """
    return _transform_n("dstn", x, type, s, axes, norm, orthogonalize, sine=True)


@_document_cosines
def idstn(
    x: Any, type: Kind = 2, s: Any = None, axes: Axes = None, norm: Norm = None, overwrite_x: bool = False, workers: Any = None, *,  # noqa: A002
    orthogonalize: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the inverse of `dstn` over several axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import fft
    >>> fft.idstn(fft.dstn(xp.asarray([[1.0, 2.0], [3.0, 4.0]])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _transform_n("idstn", x, type, s, axes, norm, orthogonalize, sine=True, inverse=True)
