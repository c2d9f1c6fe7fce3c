"""Context managers and decorators that set a mode, such as `no_grad`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Self, TypeVar, overload

from xpgrad._basics.arguments import as_flag, check_callable
from xpgrad._modes.setting import Setting
from xpgrad._modes.state import NO_GRAD, VARIABLE, Mode, mode_with

F = TypeVar("F", bound=Callable[..., Any])


class ModeSwitch:
    """Base class of mode context managers, which also decorate functions and generators."""

    def _mode(self) -> Mode | None:
        raise NotImplementedError

    def clone(self) -> ModeSwitch:
        """Return a new instance with the same arguments, for one call of a decorated function.

        Returns
        -------
        context manager
            A new one, since decorated functions may recurse.

        Examples
        --------
        >>> import xpgrad as xp
        >>> mode = xp.enable_grad()
        >>> mode.clone() is mode
        False
        """
        return type(self)()

    def __enter__(self) -> None:
        mode, before = self._mode(), VARIABLE.get()  # may raise, before anything has changed
        self._before = (*getattr(self, "_before", ()), before)
        put_mode(mode, before)

    def __exit__(self, *exc: object) -> None:
        # Restores a value, not a Token: a generator may be finalised in another context, in which its Token is invalid.
        *rest, before = self._before
        try:
            VARIABLE.set(before)
        finally:
            self._before = tuple(rest)

    def __call__(self, func: F) -> F:
        check_callable(func, type(self).__name__)
        if inspect.isclass(func):
            msg = f"`{type(self).__name__}` decorates functions, not the class {func.__name__}; decorate its methods"
            raise TypeError(msg)
        if inspect.isgeneratorfunction(func):
            return _around_generator(self, func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return func(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def put_mode(mode: Mode | None, before: Mode | None) -> None:
    """Set the mode on entering a context, and restore the former one if an interrupt prevents entering."""
    try:
        VARIABLE.set(mode)
    except BaseException:
        VARIABLE.set(before)
        raise


def recorded() -> AbstractContextManager[None]:
    """Return a context manager that records operations, also inside `no_grad` and inference mode."""
    return nullcontext() if VARIABLE.get() is None else Setting(VARIABLE, mode_with(inference=False, recording=True))


def _around_generator(switch: ModeSwitch, func: F) -> F:
    """Apply a mode only while the body of a generator runs (MOD-05)."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with switch.clone():
            generator = func(*args, **kwargs)
        step: Callable[[], Any] = functools.partial(next, generator)
        try:
            while True:
                try:
                    with switch.clone():
                        item = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                except GeneratorExit:
                    with switch.clone():
                        generator.close()
                    raise
                except BaseException as exc:  # noqa: BLE001 (handed into the generator)
                    step = functools.partial(generator.throw, exc)
                else:
                    step = functools.partial(generator.send, sent)
        finally:
            generator.close()

    return wrapper  # type: ignore[return-value]


class _PlainSwitch(ModeSwitch):
    """A switch without arguments, usable as ``@no_grad`` as well as ``@no_grad()`` (MOD-04)."""

    @overload
    def __new__(cls, func: None = None) -> Self: ...
    @overload
    def __new__(cls, func: F) -> F: ...  # type: ignore[misc]  # mypy takes what it makes for an instance in any case
    def __new__(cls, func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if func is None else self(func)

    def __init__(self, func: Any = None) -> None:
        super().__init__()


class no_grad(_PlainSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that disables recording in this thread. Results of operations are leaves.

    Parameters
    ----------
    func : callable, optional
        The function to decorate, for ``@no_grad`` without parentheses.

    Examples
    --------
    >>> import xpgrad as xp
    >>> w = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.no_grad():
    ...     (w * 2).requires_grad
    False
    """

    def _mode(self) -> Mode | None:
        return NO_GRAD if VARIABLE.get() is None else mode_with(recording=False)


class enable_grad(_PlainSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that records operations again inside `no_grad`. It has no effect in inference mode.

    Parameters
    ----------
    func : callable, optional
        The function to decorate, for ``@enable_grad`` without parentheses.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor(3.0, requires_grad=True)
    >>> with xp.no_grad():
    ...     with xp.enable_grad():
    ...         y = x * x
    >>> y.requires_grad
    True
    """

    def _mode(self) -> Mode | None:
        return mode_with(recording=True)


class set_grad_enabled(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Switch of recording: it acts immediately as a function, for a block as a context manager, and per call as a decorator.

    Parameters
    ----------
    mode : bool
        Whether to record.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor(3.0, requires_grad=True)
    >>> with xp.set_grad_enabled(False):
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode: bool = as_flag(mode, "set_grad_enabled", "mode")
        self._before = (VARIABLE.get(),)
        put_mode(self._mode(), self._before[0])

    def _mode(self) -> Mode | None:
        return mode_with(recording=self.mode)

    def clone(self) -> set_grad_enabled:
        return _Applied(self.mode)

    def __enter__(self) -> None:
        put_mode(self._mode(), self._before[0])  # leaving restores the mode from before the constructor

    def __call__(self, func: F) -> F:
        VARIABLE.set(self._before[0])  # a decorator sets the mode only while the function runs
        return super().__call__(func)


class _Applied(set_grad_enabled):
    """A `set_grad_enabled` that acts only when it is entered, for calls of decorated functions."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = ()

    def __enter__(self) -> None:
        ModeSwitch.__enter__(self)


_LAYOUT: ContextVar[bool] = ContextVar("xpgrad_layout_policy", default=True)
layout_policy: Callable[[], bool] = _LAYOUT.get


class enforce_grad_layout_policy(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Switch that decides whether a new ``.grad`` gets the strides of its leaf (the default) or keeps those of the computed gradient.

    It acts immediately as a function, for a block as a context manager, and per call as a decorator, in this thread.

    Parameters
    ----------
    enable : bool
        Whether a new ``.grad`` gets the strides of its leaf.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.grad_mode import enforce_grad_layout_policy
    >>> x = xp.ones((4, 3)).T.detach().requires_grad_()
    >>> factor = xp.ones((3, 4))
    >>> (x * factor).backward(factor)
    >>> x.stride(), x.grad.stride()
    ((1, 3), (1, 3))
    >>> x.grad = None
    >>> with enforce_grad_layout_policy(False):
    ...     (x * factor).backward(factor)
    >>> x.grad.stride()
    (4, 1)
    """

    def __init__(self, enable: bool) -> None:
        self.enable: bool = as_flag(enable, "enforce_grad_layout_policy", "enable")
        self._before: tuple[bool, ...] = (_LAYOUT.get(),)
        _LAYOUT.set(self.enable)

    def clone(self) -> enforce_grad_layout_policy:
        """Return a new instance with the same argument.

        Returns
        -------
        enforce_grad_layout_policy
            Making it sets the policy.

        Examples
        --------
        >>> import xpgrad as xp
        >>> policy = xp.autograd.grad_mode.enforce_grad_layout_policy(True)
        >>> policy.clone() is policy
        False
        """
        return enforce_grad_layout_policy(self.enable)

    def __enter__(self) -> None:
        _LAYOUT.set(self.enable)

    def __exit__(self, *exc: object) -> None:
        _LAYOUT.set(self._before[0])

    def __call__(self, func: F) -> F:
        _LAYOUT.set(self._before[0])  # a decorator sets the mode only while the function runs
        return super().__call__(func)


class inference_mode(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that disables recording and version counting; results are inference tensors.

    Parameters
    ----------
    mode : bool, default True
        False leaves inference mode inside a block, and records, also inside `no_grad`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor(3.0, requires_grad=True)
    >>> with xp.inference_mode():
    ...     y = x * x
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]  # as above
    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        self = super().__new__(cls)
        self.mode = True
        return self(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode: bool = mode

    def _mode(self) -> Mode | None:
        return mode_with(inference=self.mode, recording=True)

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)
