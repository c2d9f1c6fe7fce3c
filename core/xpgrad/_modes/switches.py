"""The contexts and decorators that set a mode: `no_grad` and its kin."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Self, TypeVar, overload

from xpgrad._basics.arguments import as_flag, check_callable
from xpgrad._modes.setting import Setting
from xpgrad._modes.state import NO_GRAD, VARIABLE, Mode, replaced

F = TypeVar("F", bound=Callable[..., Any])


class ModeSwitch:
    """Base of the mode contexts: a context manager that is a decorator too, for functions and for generators."""

    def _mode(self) -> Mode | None:
        raise NotImplementedError

    def clone(self) -> ModeSwitch:
        """A fresh instance with the same arguments: decorated functions may recurse.

        Returns
        -------
        context manager
            Another one of the same mode: each entry of a decorated function has its own.

        Examples
        --------
        >>> import xpgrad as xp
        >>> mode = xp.enable_grad()
        >>> mode.clone() is mode
        False
        """
        return type(self)()

    def __enter__(self) -> None:
        mode, before = self._mode(), VARIABLE.get()  # may refuse: then nothing has changed
        self._before = (*getattr(self, "_before", ()), before)
        put_mode(mode, before)

    def __exit__(self, *exc: object) -> None:
        # NB: restores a value, not a Token: generators may be finalised in another context, where a Token is refused.
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
    """Set the mode for as long as a context lasts; put the former one back if an interrupt keeps the context from beginning."""
    try:
        VARIABLE.set(mode)
    except BaseException:
        VARIABLE.set(before)
        raise


def recorded() -> AbstractContextManager[None]:
    """A context in which operations are recorded, also inside of `no_grad` and of inference mode; most often nothing has to change."""
    return nullcontext() if VARIABLE.get() is None else Setting(VARIABLE, replaced(inference=False, recording=True))


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
    """Context and decorator: operations are not recorded (MOD-01). Thread-local. Results are leaves.

    Parameters
    ----------
    func : callable, optional
        A function to be called in this mode, where the class is a decorator without parentheses.

    Examples
    --------
    >>> import xpgrad as xp
    >>> w = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.no_grad():
    ...     (w * 2).requires_grad
    False
    """

    def _mode(self) -> Mode | None:
        return NO_GRAD if VARIABLE.get() is None else replaced(recording=False)


class enable_grad(_PlainSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: operations are recorded again inside `no_grad` (MOD-03); no effect in inference mode (INF-09).

    Parameters
    ----------
    func : callable, optional
        A function to be called in this mode, where the class is a decorator without parentheses.

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
        return replaced(recording=True)


class set_grad_enabled(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Set recording on or off: at once as a function, for a block as a context, per call as a decorator (MOD-06).

    Parameters
    ----------
    mode : bool

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
        return replaced(recording=self.mode)

    def clone(self) -> set_grad_enabled:
        return _Applied(self.mode)

    def __enter__(self) -> None:
        put_mode(self._mode(), self._before[0])  # the state before is the one that the constructor saw

    def __call__(self, func: F) -> F:
        VARIABLE.set(self._before[0])  # as a decorator it must not leak
        return super().__call__(func)


class _Applied(set_grad_enabled):
    """`set_grad_enabled` that acts on entering only (a decorated function's copy)."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = ()

    def __enter__(self) -> None:
        ModeSwitch.__enter__(self)


_LAYOUT: ContextVar[bool] = ContextVar("xpgrad_layout_policy", default=True)
layout_policy: Callable[[], bool] = _LAYOUT.get


class enforce_grad_layout_policy(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Choose whether a new `.grad` takes its leaf's strides (the default) or may keep those that it came with (LAY-10).

    At once as a function, for a block as a context, per call as a decorator; thread-local.

    Parameters
    ----------
    enable : bool

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
        """A fresh instance with the same argument.

        Returns
        -------
        enforce_grad_layout_policy
            Of the same `enable`; making it sets the policy.

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
        _LAYOUT.set(self._before[0])  # as a decorator it must not leak
        return super().__call__(func)


class inference_mode(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: no recording and no version counting; results are inference tensors (INF-01..11).

    Parameters
    ----------
    mode : bool, default True
        False nests back to normal, which records, also inside of `no_grad`.

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
        return replaced(inference=self.mode, recording=True)

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)
