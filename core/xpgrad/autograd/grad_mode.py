"""`xpgrad.autograd.grad_mode`: the contexts that switch recording (group I)."""

from __future__ import annotations

from xpgrad._basics.arguments import as_flag
from xpgrad._modes.switches import (
    ModeSwitch,
    enable_grad as enable_grad,
    enforce_grad_layout_policy as enforce_grad_layout_policy,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)

__all__ = ["enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Accepted for compatibility (THR-07): every pass runs on the thread that called it, whatever the setting.

    Parameters
    ----------
    mode : bool
    """

    def __init__(self, mode: bool) -> None:
        self.mode = as_flag(mode, "set_multithreading_enabled", "mode")

    def clone(self) -> set_multithreading_enabled:
        """A fresh instance with the same argument."""
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
