"""`xpgrad.autograd.anomaly_mode`: find the operation whose gradient fails or is NaN, after `torch.autograd.anomaly_mode`.

Nodes that are made in the mode record where; a backward pass in the mode checks what each node computes. The mode belongs to a thread.
"""

from __future__ import annotations

import warnings

from xpgrad._basics.arguments import as_flags
from xpgrad._basics.faces import public_names
from xpgrad._modes.state import Mode, current, mode_with, put
from xpgrad._modes.switches import F, ModeSwitch, put_mode
from xpgrad._tape.anomaly import ANOMALY

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def __dir__() -> list[str]:
    return public_names(__name__)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on in this thread.

    Returns
    -------
    bool
        True inside `detect_anomaly()`, and after `set_detect_anomaly(True)`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.autograd.anomaly_mode.is_anomaly_enabled()
    False
    >>> with xp.autograd.set_detect_anomaly(True):
    ...     print(xp.autograd.anomaly_mode.is_anomaly_enabled())
    True
    """
    mode = current()
    return mode is not None and mode.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection looks for NaN.

    Returns
    -------
    bool
        The latest `check_nan` of `detect_anomaly` or `set_detect_anomaly`; True by default, also while detection is off.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.autograd.set_detect_anomaly(True, check_nan=False):
    ...     print(xp.autograd.anomaly_mode.is_anomaly_check_nan_enabled())
    False
    >>> xp.autograd.anomaly_mode.is_anomaly_check_nan_enabled()
    True
    """
    mode = current()
    return mode is None or mode.check_nan


class set_detect_anomaly(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Switch anomaly detection on or off: immediately as a function, for a block as a context manager.

    Parameters
    ----------
    mode : bool
        Whether detection is on.
    check_nan : bool, default True
        Raise if a node computes NaN. If False, detection only reports where a failing operation was called.

    Raises
    ------
    TypeError
        An argument is not a bool.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.autograd.set_detect_anomaly(True, check_nan=False):
    ...     print(xp.autograd.anomaly_mode.is_anomaly_enabled())
    True
    >>> xp.autograd.anomaly_mode.is_anomaly_enabled()
    False
    """

    mode: bool
    check_nan: bool

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.mode, self.check_nan = as_flags("set_detect_anomaly", mode=mode, check_nan=check_nan)
        self._before = (current(),)
        put_mode(self._mode(), self._before[0])

    def _mode(self) -> Mode | None:
        return mode_with(anomaly=ANOMALY if self.mode else None, check_nan=self.check_nan)

    def clone(self) -> set_detect_anomaly:
        """Return a new instance with the same arguments.

        Returns
        -------
        set_detect_anomaly
            Making it sets the mode.

        Examples
        --------
        >>> import xpgrad as xp
        >>> switch = xp.autograd.set_detect_anomaly(False)
        >>> switch.clone() is switch
        False
        """
        return set_detect_anomaly(self.mode, self.check_nan)

    def __enter__(self) -> None:
        put_mode(self._mode(), self._before[0])  # leaving restores the mode from before the constructor

    def __call__(self, func: F) -> F:
        put(self._before[0])  # a decorator sets the mode only while the function runs
        return super().__call__(func)


class detect_anomaly(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that enables anomaly detection. Detection is slow, and a warning says so.

    Parameters
    ----------
    check_nan : bool, default True
        Raise if a node computes NaN.

    Raises
    ------
    TypeError
        `check_nan` is not a bool.

    Warns
    -----
    UserWarning
        On construction. Also when a node fails in the backward pass; the message then has the traceback of the forward call.

    Examples
    --------
    >>> import xpgrad as xp
    >>> import warnings
    >>> x = xp.tensor(0.0, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with xp.autograd.detect_anomaly():
    ...         (xp.sqrt(x) * 0.0).backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
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
        return mode_with(anomaly=ANOMALY, check_nan=self.check_nan)

    def clone(self) -> detect_anomaly:
        """Return a new instance with the same argument; it does not warn again.

        Returns
        -------
        detect_anomaly
            With the same `check_nan`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     anomaly = xp.autograd.detect_anomaly(check_nan=False)
        >>> with anomaly.clone():
        ...     print(xp.autograd.anomaly_mode.is_anomaly_enabled())
        True
        """
        copy = object.__new__(detect_anomaly)
        copy.check_nan = self.check_nan
        return copy
