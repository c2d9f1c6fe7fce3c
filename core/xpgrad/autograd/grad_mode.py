"""`xpgrad.autograd.grad_mode`: context managers that switch recording, with the names of `torch.autograd.grad_mode`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from xpgrad._basics.arguments import as_flag
from xpgrad._basics.faces import public_names
from xpgrad._modes.switches import (
    ModeSwitch,
    enable_grad as enable_grad,
    enforce_grad_layout_policy as enforce_grad_layout_policy,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)

__all__ = [
    "enable_grad", "enforce_grad_layout_policy", "inference_mode", "is_multithreading_enabled", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


F = TypeVar("F", bound=Callable[..., Any])
_setting = threading.local()


def is_multithreading_enabled() -> bool:
    """Return the value that `set_multithreading_enabled` has set on this thread; it has no other effect.

    Returns
    -------
    bool
        True by default.

    Examples
    --------
    >>> from xpgrad.autograd.grad_mode import is_multithreading_enabled, set_multithreading_enabled
    >>> with set_multithreading_enabled(False):
    ...     print(is_multithreading_enabled())
    False
    >>> is_multithreading_enabled()
    True
    """
    return getattr(_setting, "enabled", True)


class set_multithreading_enabled(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Set what `is_multithreading_enabled` returns; for compatibility only, since a pass always runs on the thread that called it.

    As in PyTorch, calling it sets the value on this thread, and leaving it as a context manager restores the former value.

    Parameters
    ----------
    mode : bool
        The new value.

    See Also
    --------
    xpgrad.autograd.grad_mode.is_multithreading_enabled
    """

    def __init__(self, mode: bool) -> None:
        self.mode: bool = as_flag(mode, "set_multithreading_enabled", "mode")
        self.before: bool = is_multithreading_enabled()
        _setting.enabled = self.mode

    def __call__(self, func: F) -> F:
        _setting.enabled = self.before  # a decorator sets the mode while the function runs
        return super().__call__(func)

    def clone(self) -> set_multithreading_enabled:
        """Return a new instance with the same argument.

        Returns
        -------
        set_multithreading_enabled
            Making it sets the value.

        Examples
        --------
        >>> import xpgrad as xp
        >>> setting = xp.autograd.grad_mode.set_multithreading_enabled(True)
        >>> setting.clone() is setting
        False
        """
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _setting.enabled = self.before
