"""Copies between devices, and the node that copies the gradient back to the operand's device."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import as_device
from xpgrad._basics.device import Device
from xpgrad._modes import state
from xpgrad._tape.node import Node, add_into

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["to_device"]


class ToCopyBackward0(Node):
    """The node of a copy between devices; its backward pass moves the gradient to the operand's device."""

    __slots__ = ("destination", "e", "source", "stream")

    title = "ToCopyBackward0"
    e: Any
    source: Any
    destination: Any

    @property
    def cls(self) -> Any:
        """Class of the output."""
        return self.destination

    def operands(self) -> tuple[Node | None, ...]:
        return (self.e,)

    def reach(self, empty: Any, push: Any) -> None:
        if self.e.buffer is not empty:
            self.e.buffer = empty
            push(self.e)
        if self.e.seq > self.seq:
            self.e.seq = self.seq - 0.5

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        add_into(self.e, self.grads(g)[0], empty)

    def grads(self, g: Any) -> list[Any]:
        return [move_raw(g, self.destination, self.source)]

    def graph_grads(self, g: Any) -> list[Any]:
        return [to_device(g, self.source.device)]

    def redirect(self, mapping: Any) -> None:
        self.e = mapping[self.e]


def move_raw(raw: Any, source: Any, target: Any) -> Any:
    """Move a raw array from the device of the class `source` to that of the class `target`, and return it."""
    if source.backend is target.backend:
        return target.backend.to_device(raw, target.device)
    return target.backend.from_host(source.backend.to_host(raw), target.device)


def to_device(x: Tensor, device: Device | str, /, *, stream: Any = None) -> Tensor:
    """Return `x` on another device, or `x` itself if it is there; the gradient moves back to the device of `x`.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        If there is no such device.
    """
    target = tensor_class(as_device(Device(device)))
    if target.device == x.device:
        return x
    if x.depth:
        return x._move_to(target.device)
    source = type(x)
    if x.is_inference() or source.fresh is not None:
        source = tensor_class(x.device)
    mode = state.current()
    move = move_raw if mode is None else functools.partial(mode.call, "to_device", move_raw)
    out = target._wrap(move(x._array, source, target))
    if x._node is not None and state.records(mode):
        n = ToCopyBackward0.made_now()
        n.e, n.source, n.destination = x._node, source, target
        n.stream = (target, target.backend.current_stream(target.device)) if target.backend.capabilities.streams else None
        out._node = n
    if mode is not None and not mode.plain:
        mode.finish_computed("to_device", (x,), out)
        if mode.levels:
            mode.levels.set_linear_tangents(x, out, lambda t: to_device(t, target.device))
    return out
