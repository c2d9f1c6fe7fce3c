"""`xpgrad.autograd.graph`: the recorded graph for users, with the names of `torch.autograd.graph`.

It has nodes and edges, hooks on several gradients, version counters, and functions for the running backward pass.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._aliasing.sharing import bump
from xpgrad._aliasing.windows import remember_window
from xpgrad._backends.classes import host_backend
from xpgrad._basics.arguments import as_flag, check_callable, shown
from xpgrad._basics.faces import public_names, refusal
from xpgrad._modes.state import Mode, current, mode_with
from xpgrad._modes.switches import ModeSwitch
from xpgrad._tape.edges import GradientEdge as GradientEdge, get_gradient_edge as get_gradient_edge
from xpgrad._tape.hook_tables import RemovableHandle, hooks_of
from xpgrad._tape.node import Node as Node
from xpgrad._tape.packing import check_hooks, mode_with_hooks, mode_without_hooks
from xpgrad._tape.streams import (
    set_override_stale_capture_stream as set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch as set_warn_on_accumulate_grad_stream_mismatch,
)
from xpgrad._tape.task import current_pass
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._drawing import draw as draw

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "current_graph_task_id",
    "disable_saved_tensors_hooks",
    "draw",
    "get_gradient_edge",
    "increment_version",
    "queue_callback",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


class allow_mutation_on_saved_tensors(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator in which in-place writes do not change what was saved for backward, and so are no errors.

    A write gives the Tensor, and all Tensors that share its memory, new arrays; without a write nothing is copied. Arrays that were
    extracted before (`x.numpy()`, `x.array`) keep the old values. The backward pass must run inside the context.

    Raises
    ------
    RuntimeError
        The context is entered inside another one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1.0
    ...     z = y * y
    ...     y.mul_(0.0)
    ...     xp.sum(z).backward()
    tensor([0., 0.], grad_fn=<MulBackward0>)
    >>> x.grad
    tensor([2., 4.])
    """

    def _mode(self) -> Mode | None:
        mode = current()
        if mode is not None and mode.copies:
            msg = "allow_mutation_on_saved_tensors contexts cannot be nested; leave the outer one first"
            raise RuntimeError(msg)
        return mode_with(copies=True)

    def __enter__(self) -> None:
        super().__enter__()
        self._start = next_number()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        remember_window(self._start, next_number())


class saved_tensors_hooks(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that sets a pair of hooks for the Tensors that operations save for backward, on this thread.

    Parameters
    ----------
    pack_hook : callable
        Called once for each saved Tensor, with recording off. Its result, of any type, is stored instead of the Tensor. It must not write
        to its argument. Return ``x.detach()`` rather than the Tensor itself, which would keep the whole graph alive.
    unpack_hook : callable
        Called with the result of `pack_hook` each time the value is needed; returns a Tensor with the same values, shape and device.
        The hooks are responsible for preserving the values: xpgrad does not notice if what they store is overwritten.

    Raises
    ------
    TypeError
        A hook is not callable.
    RuntimeError
        The context is entered inside `disable_saved_tensors_hooks`.

    Notes
    -----
    In nested contexts the innermost pair applies. A value is unpacked at every use: by each backward pass that needs it, and when it is
    read from its node. ``node._raw_saved_self.register_hooks(pack_hook, unpack_hook)`` sets hooks for one value.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.autograd.graph.saved_tensors_hooks(lambda t: t.detach().to(dtype=xp.float16), lambda t: t.to(dtype=xp.float64)):
    ...     y = x * x
    >>> y.grad_fn._saved_self
    tensor([1., 2.], requires_grad=True)
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._hooks = check_hooks(pack_hook, unpack_hook)

    def _mode(self) -> Mode | None:
        return mode_with_hooks(self._hooks)

    def clone(self) -> saved_tensors_hooks:
        """Return a new instance with the same hooks.

        Returns
        -------
        saved_tensors_hooks
            Another context.

        Examples
        --------
        >>> import xpgrad as xp
        >>> boxed = xp.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda box: 10.0 * box[0])
        >>> x = xp.tensor(3.0, requires_grad=True)
        >>> with boxed.clone():
        ...     y = x * x
        >>> xp.autograd.grad(y, x)
        (tensor(60.),)
        """
        return saved_tensors_hooks(*self._hooks)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that stores saved Tensors in host memory, and moves them back when they are needed.

    Tensors on a device whose memory is host memory are not copied.

    Parameters
    ----------
    pin_memory : bool, default False
        PyTorch's argument. It has no effect, since no backend pins memory.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.autograd.graph.save_on_cpu():
    ...     y = xp.sum(x * x)
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(_to_the_host, _from_the_host)
        self._pin_memory = as_flag(pin_memory, "save_on_cpu", "pin_memory")

    def clone(self) -> save_on_cpu:
        """Return a new instance with the same argument.

        Returns
        -------
        save_on_cpu
            Another context.

        Examples
        --------
        >>> import xpgrad as xp
        >>> context = xp.autograd.graph.save_on_cpu()
        >>> x = xp.tensor(3.0, requires_grad=True)
        >>> with context.clone():
        ...     y = x * x
        >>> xp.autograd.grad(y, x)
        (tensor(6.),)
        """
        return save_on_cpu(self._pin_memory)


def _to_the_host(x: Any) -> tuple[Any, Any]:
    if x.backend.on_host(x.device):
        return x.device, x.detach()
    return x.device, x.to_device(host_backend().devices()[0])


def _from_the_host(packed: tuple[Any, Any]) -> Any:
    device, x = packed
    return x.to_device(device)


class disable_saved_tensors_hooks(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator that forbids `saved_tensors_hooks`.

    Hooks on single values, with ``register_hooks``, are not affected.

    Parameters
    ----------
    error_message : str
        The text of the error.

    Raises
    ------
    RuntimeError
        Inside: `saved_tensors_hooks` is entered; the message is `error_message`. On entry: such hooks are active.
    TypeError
        `error_message` is not a str.

    Examples
    --------
    >>> from xpgrad.autograd import graph
    >>> with graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: no hooks here
    """

    def __init__(self, error_message: str) -> None:
        if not isinstance(error_message, str):
            msg = f"disable_saved_tensors_hooks: `error_message` must be a str, but got {shown(error_message)}"
            raise TypeError(msg)
        self._message = error_message

    def _mode(self) -> Mode | None:
        return mode_without_hooks(self._message)

    def clone(self) -> disable_saved_tensors_hooks:
        """Return a new instance with the same message.

        Returns
        -------
        disable_saved_tensors_hooks
            Another context.

        Examples
        --------
        >>> from xpgrad.autograd import graph
        >>> context = graph.disable_saved_tensors_hooks("no hooks here")
        >>> context.clone() is context
        False
        """
        return disable_saved_tensors_hooks(self._message)


def current_graph_task_id() -> int:
    """Return the number of the backward pass that is running on this thread.

    Returns
    -------
    int
        The number of the innermost pass, since hooks may start passes; -1 outside a pass.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.graph import current_graph_task_id
    >>> x = xp.tensor(1.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: print(current_graph_task_id() >= 0))
    >>> x.backward()
    True
    >>> current_graph_task_id()
    -1
    """
    task = current_pass()
    return -1 if task is None else task.id


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the running backward pass, after all gradients were accumulated.

    Parameters
    ----------
    callback : callable
        Called without arguments; its result is ignored.

    Raises
    ------
    RuntimeError
        No backward pass is running on this thread.
    TypeError
        `callback` is not callable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> def hook(g):
    ...     print("before", x.grad)
    ...     xp.autograd.graph.queue_callback(lambda: print("after", x.grad))
    >>> handle = x.register_hook(hook)
    >>> (x * x).backward()
    before None
    after tensor(4.)
    """
    check_callable(callback, "queue_callback", "callback")
    task = current_pass()
    if task is None:
        msg = "Final callbacks can only be installed during backward pass. Call `queue_callback` from a hook or a custom backward"
        raise RuntimeError(msg)
    task.callbacks.append(callback)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Increase the version of Tensors whose memory was changed outside of autograd, for example through ``x.array``.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensor
        A Tensor that occurs n times counts n writes. Inference tensors are ignored.

    Raises
    ------
    TypeError
        An item is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * 1.0
    >>> z = y * y
    >>> xp.autograd.graph.increment_version(y)
    >>> y._version
    1
    >>> z.sum().backward()
    Traceback (most recent call last):
        ...
    RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: ...
    """
    for t in _tensors("increment_version", tensor):
        if not t.is_inference():
            alias_of(t)
            bump(t)


def _tensors(name: str, given: Any) -> list[Any]:
    """Return a list of Tensors from one Tensor or an iterable of them.

    Raises
    ------
    TypeError
        An item is not a Tensor.
    """
    if isinstance(given, Tensor):
        return [given]
    found = list(given) if isinstance(given, Iterable) else [given]
    for t in found:
        if not isinstance(t, Tensor):
            msg = f"{name} needs Tensors, but got {shown(t)}; wrap an array with `xpgrad.asarray`"
            raise TypeError(msg)
    return found


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> RemovableHandle:
    """Register a hook that is called once per backward pass, for the gradients of several Tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        In mode "all" they must require grad.
    fn : callable
        For "all": called with a list of the gradients, after the pass has computed the last of them; the list has None for gradients
        that the pass does not compute. For "any": called with the first gradient that is computed. Its result is ignored.
    mode : {"all", "any"}
        When `fn` is called.

    Returns
    -------
    RemovableHandle
        Removes the hook from all Tensors.

    Raises
    ------
    ValueError
        `mode` is unknown.
    TypeError
        `fn` is not callable, or an item of `tensors` is not a Tensor.
    AssertionError
        In mode "all", a Tensor does not require grad.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x, y = (xp.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    >>> handle = xp.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * y).backward()
    [tensor(3.), tensor(2.)]
    >>> handle.remove()
    """
    if not isinstance(mode, str) or mode not in ("all", "any"):
        msg = f"Expects mode to be one of ('all', 'any') but got {mode!r:.60}"
        raise ValueError(msg)
    if not callable(fn):
        msg = f"a hook must be callable, but got {type(fn).__name__}"
        raise TypeError(msg)
    nodes = [t._node for t in _tensors("register_multi_grad_hook", tensors)]
    if mode == "all" and any(n is None for n in nodes):
        msg = "Expected gradient function to be set: each Tensor of `register_multi_grad_hook` must require grad"
        raise AssertionError(msg)
    distinct = dict.fromkeys(n for n in nodes if n is not None)
    # Weak references, since the nodes' hooks refer to these functions: reference counting alone must reclaim a graph.
    watched = [weakref.ref(n) for n in distinct]
    handle = RemovableHandle(*(hooks_of(n).multi for n in distinct))
    for node in distinct:
        mine = [i for i, n in enumerate(nodes) if n is node]
        watch = _watcher_of_all(handle.id, mine, len(nodes), watched, fn) if mode == "all" else _watcher_of_any(handle.id, fn)
        hooks_of(node).multi[handle.id] = watch
    return handle


def _watcher_of_all(key: int, mine: list[int], count: int, watched: list[Any], fn: Any) -> Callable[[Any], None]:
    """Make the hook of one node: it stores the gradient at the positions `mine`, and calls `fn` after the last gradient."""

    def watch(grad: Any) -> None:
        task = current_pass()
        if task is None:
            return
        state = task.notes.get(key)
        if state is None:
            nodes = [n for n in (ref() for ref in watched) if n is not None]
            state = task.notes[key] = [sum(task.will_run(n) for n in nodes), [None] * count]
        for i in mine:
            state[1][i] = grad
        state[0] -= 1
        if state[0] == 0:
            fn(state[1])

    return watch


def _watcher_of_any(key: int, fn: Any) -> Callable[[Any], None]:
    """Make the hook of one node that calls `fn` if it is the first one in its pass."""

    def watch(grad: Any) -> None:
        task = current_pass()
        if task is not None and key not in task.notes:
            task.notes[key] = True
            fn(grad)

    return watch
