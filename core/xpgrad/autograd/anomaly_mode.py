"""`xpgrad.autograd.anomaly_mode`: finding the operation whose gradient fails or is not a number (group S).

Nodes made in the mode remember where they were made; a pass in the mode checks what each node computes. Thread-local, like the other modes.
"""

from __future__ import annotations

import warnings

from xpgrad._basics.arguments import as_flags
from xpgrad._basics.faces import public_names
from xpgrad._modes.state import Mode, current, put, replaced
from xpgrad._modes.switches import F, ModeSwitch, put_mode
from xpgrad._tape.anomaly import ANOMALY

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def __dir__() -> list[str]:
    return public_names(__name__)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on in this thread."""
    mode = current()
    return mode is not None and mode.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection looks for nan."""
    mode = current()
    return mode is None or mode.check_nan


class set_detect_anomaly(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Switch anomaly detection on or off: at once as a function, for a block as a context (ANO-06).

    Parameters
    ----------
    mode : bool
    check_nan : bool, default True
        Raise where a node computes nan (ANO-01); otherwise only report where the failing operation was called (ANO-03).
    """

    mode: bool
    check_nan: bool

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.mode, self.check_nan = as_flags("set_detect_anomaly", mode=mode, check_nan=check_nan)
        self._before = (current(),)
        put_mode(self._mode(), self._before[0])

    def _mode(self) -> Mode | None:
        return replaced(anomaly=ANOMALY if self.mode else None, check_nan=self.check_nan)

    def clone(self) -> set_detect_anomaly:
        """A fresh instance with the same arguments."""
        return set_detect_anomaly(self.mode, self.check_nan)

    def __enter__(self) -> None:
        put_mode(self._mode(), self._before[0])  # the state before is the one that the constructor saw

    def __call__(self, func: F) -> F:
        put(self._before[0])  # as a decorator it must not leak
        return super().__call__(func)


class detect_anomaly(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: anomaly detection for a block, announced by a warning because it is slow (ANO-01..05).

    Parameters
    ----------
    check_nan : bool, default True
        Raise where a node computes nan.

    Warns
    -----
    UserWarning
        On use; and with the traceback of the forward call, when a backward fails.
    """

    check_nan: bool

    def __init__(self, check_nan: bool = True) -> None:
        (self.check_nan,) = as_flags("detect_anomaly", check_nan=check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def _mode(self) -> Mode | None:
        return replaced(anomaly=ANOMALY, check_nan=self.check_nan)

    def clone(self) -> detect_anomaly:
        """A fresh instance with the same arguments; announced once already."""
        copy = object.__new__(detect_anomaly)
        copy.check_nan = self.check_nan
        return copy
