"""The exceptions of xpgrad, each combined with the builtin that PyTorch raises in the same place.

Catch `XpgradError` for all of them, or the builtin in code that is also written for PyTorch.
"""

from __future__ import annotations


class XpgradError(Exception):
    """Base of every exception that only xpgrad raises."""


class DeviceMismatchError(XpgradError, RuntimeError):
    """Operands live on different devices, and none of them is a 0-d Tensor of a host device."""


class BackendNotFoundError(XpgradError, LookupError):
    """No registered backend has the name that was asked for."""


class BackendLoadError(XpgradError, ImportError):
    """A backend is registered, but it could not be loaded; the message gives the cause and the remedy."""


class CapabilityError(XpgradError, NotImplementedError):
    """The backend declares that it does not support what was requested."""


class GradcheckError(XpgradError, RuntimeError):
    """An analytic gradient disagrees with the numerical one (contract GCK-02)."""
