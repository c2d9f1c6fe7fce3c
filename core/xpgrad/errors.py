"""The exceptions of xpgrad, each combined with the builtin that PyTorch raises in the same situation.

Catch `XpgradError` for all of them, or the builtin in code that is also written for PyTorch.
"""

from __future__ import annotations

__all__ = [
    "BackendLoadError", "BackendNotFoundError", "CapabilityError", "CaptureError", "DeviceMismatchError", "GradcheckError",
    "MissingAttributeError", "XpgradError",
]  # fmt: skip


def __dir__() -> list[str]:  # NB: `_basics.faces`, which does this for the others, is above this module
    return sorted([*__all__, *(n for n in globals() if n.startswith("__"))])


class XpgradError(Exception):
    """Base class of the exceptions that only xpgrad raises.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.zeros((2,), device="nowhere")
    ... except xp.XpgradError as exc:
    ...     print(type(exc).__name__)
    BackendNotFoundError
    """


class DeviceMismatchError(XpgradError, RuntimeError):
    """Operands are on different devices, and are not 0-d Tensors on the host, which mix with all others.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.ones((2,)) + xp.ones((2,), device="numpy+readonly")
    ... except xp.DeviceMismatchError as exc:
    ...     print(type(exc).__name__)
    DeviceMismatchError
    """


class BackendNotFoundError(XpgradError, LookupError):
    """No registered backend has the given name.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.zeros((2,), device="nowhere")
    ... except xp.BackendNotFoundError as exc:
    ...     print(type(exc).__name__)
    BackendNotFoundError
    """


class BackendLoadError(XpgradError, ImportError):
    """A backend is registered, but it could not be loaded; the message gives the cause and the remedy.

    Examples
    --------
    >>> import xpgrad as xp
    >>> issubclass(xp.BackendLoadError, ImportError)
    True
    """


class CapabilityError(XpgradError, NotImplementedError):
    """The backend declares that it does not support the request.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.zeros((2,), dtype=xp.bfloat16)
    ... except xp.CapabilityError as exc:
    ...     print(type(exc).__name__)
    CapabilityError
    """


class CaptureError(CapabilityError):
    """A function that is being compiled needs values, which are not known yet.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.compile(lambda x: x if x > 0 else -x)(xp.tensor(1.0))
    ... except xp.CaptureError as exc:
    ...     print(type(exc).__name__)
    CaptureError
    """


class GradcheckError(XpgradError, RuntimeError):
    """An analytic gradient disagrees with the numerical one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.autograd.gradcheck(lambda x: x * x.detach(), (xp.tensor([1.0], requires_grad=True),))
    ... except xp.GradcheckError as exc:
    ...     print(type(exc).__name__)
    GradcheckError
    """


class MissingAttributeError(XpgradError, AttributeError):
    """A Tensor of this dtype, rank or kind has no such attribute; `hasattr` returns False, and `getattr` returns its default.

    It is also a ValueError if the rank is the reason, a TypeError for the dtype, and a RuntimeError otherwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> try:
    ...     xp.asarray([1, 2]).imag
    ... except xp.MissingAttributeError as exc:
    ...     print(type(exc).__name__)
    MissingAttributeError
    """


class _MissingForRank(MissingAttributeError, ValueError):
    pass


class _MissingForDtype(MissingAttributeError, TypeError):
    pass


class _MissingNow(MissingAttributeError, RuntimeError):
    pass


def missing(kind: type[Exception]) -> type[MissingAttributeError]:
    """Return the `MissingAttributeError` that is also of this kind: ValueError, TypeError or RuntimeError."""
    return next(cls for cls in (_MissingForRank, _MissingForDtype, _MissingNow) if issubclass(cls, kind))


for _cls in (_MissingForRank, _MissingForDtype, _MissingNow):
    _cls.__name__ = _cls.__qualname__ = "MissingAttributeError"  # how a traceback shows it
