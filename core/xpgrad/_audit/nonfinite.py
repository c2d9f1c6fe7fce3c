"""Find the first operation of each direction that makes a NaN or an infinity, and the `where` that hides one in the forward."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._audit.findings import Finding
from xpgrad._audit.places import Place
from xpgrad._audit.running import Outcome, Problem, host_of
from xpgrad._audit.tracing import Event


class Pulled(NamedTuple):
    """The gradients that passed through a node in the backward pass.

    Attributes
    ----------
    node : Node
    arrived, left : list of array or None
        Host arrays: the gradients of its outputs, and those of its operands.
    """

    node: Any
    arrived: list[Any]
    left: list[Any]


class Watch:
    """Hooks on the nodes of a graph that record the gradients of each node, in the order of the backward pass."""

    def __init__(self, nodes: list[Any]) -> None:
        self.pulled: list[Pulled] = []
        self.handles = [node.register_hook(self._hook(node)) for node in nodes]

    def _hook(self, node: Any) -> Any:
        def hook(grad_inputs: Any, grad_outputs: Any) -> None:
            arrived, left = ([None if g is None else host_of(g) for g in gs] for gs in (grad_outputs, grad_inputs))
            self.pulled.append(Pulled(node, arrived, left))

        return hook

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()


def bad(host: Any) -> Any:
    """Return a mask of the elements of a host array that are NaN or infinite."""
    return ~(abs(host) < math.inf)


def _floating(x: Any) -> bool:
    return isinstance(x, TensorBase) and x.dtype.differentiable


def not_finite(problem: Problem, base: Outcome, pulled: list[Pulled], gradients: list[Any]) -> list[Finding]:
    """Return the findings about nonfinite values.

    Parameters
    ----------
    pulled : list of Pulled
    gradients : list of Tensor or None
    """
    found: list[Finding] = []
    events = base.trace.events
    harmed = tuple(label for label, g in zip(problem.labels, gradients) if g is not None and bool(bad(host_of(g)).any()))
    spoiled = any(bool(bad(host_of(o)).any()) for o in base.outputs)
    for event in events:
        made = _made_forward(event)
        if made is not None:
            severity = "error" if spoiled else "note"
            if spoiled or not harmed:
                found.append(_forward(event, made, severity, spoiled))
            break
    if harmed:
        found += _backward(base, pulled, harmed, spoiled, gradients)
    return found


def _made_forward(event: Event) -> Any:
    """Return a mask of the nonfinite elements of a result, and the result on the host; None if there are none, or an operand has some."""
    outs = [o for o in event.outs if _floating(o)]
    if not outs or any(bool(bad(host_of(x)).any()) for x in event.tensors if _floating(x)):
        return None
    for o in outs:
        host = host_of(o)
        where = bad(host)
        if bool(where.any()):
            return where, host
    return None


def _forward(event: Event, made: Any, severity: str, spoiled: bool) -> Finding:
    """Return the finding about an operation that made nonfinite elements; `made` is the result of `_made_forward`."""
    where, host = made
    index = first_index(where)
    value = host[index]
    what = "nan" if bool(value != value) else "an infinity"
    at = _operands(event, where.shape, index)
    end = "it reaches the result" if spoiled else "it does not reach the result"
    message = (
        f"`{event.name}` made {what} of {at or 'finite operands'} (at index {list(index)}; {int(where.sum())} of "
        f"{where.size} elements); {end}"
    )
    kind = "nan-forward" if what == "nan" else "inf-forward"
    return Finding(kind, severity, message, event.place, event.places, (), {"operation": event.name, "index": list(index)})


def _operands(event: Event, shape: Any, index: tuple[int, ...]) -> str:
    """Format the operands of an elementwise operation at an index."""
    texts = []
    for x in event.operands:
        if not _floating(x):
            continue
        host = host_of(x)
        if host.shape == shape:
            texts.append(f"{host[index]:.6g}")
        elif host.size == 1:
            texts.append(f"{host.reshape(())[()]:.6g}")
    return ", ".join(texts)


def first_index(where: Any) -> tuple[int, ...]:
    """Return the index of the first True element of a mask."""
    flat, index = int(where.reshape(-1).argmax()), []
    for n in reversed(where.shape):
        index.append(flat % n)
        flat //= n
    return tuple(reversed(index))


def _backward(base: Outcome, pulled: list[Pulled], harmed: tuple[str, ...], spoiled: bool, gradients: list[Any]) -> list[Finding]:
    """Report the first node that made nonfinite gradients from finite ones.

    Parameters
    ----------
    base : Outcome
        The first run.
    pulled : list of Pulled
        The nodes of the backward pass in order, with the gradients that arrived and left.
    harmed : tuple of str
        The inputs with nonfinite gradients.
    spoiled : bool
        Whether the result itself is not finite.
    gradients : list
        The gradients of all inputs.
    """
    by_node = {e.node: e for e in base.trace.events if e.node is not None}
    for p in pulled:
        if any(g is not None and bool(bad(g).any()) for g in p.arrived):
            continue
        culprit = next((g for g in p.left if g is not None and bool(bad(g).any())), None)
        if culprit is None:
            continue
        event = by_node.get(p.node)
        place: Place | None = None if event is None else event.place
        places = () if event is None else event.places
        where = bad(culprit)
        index = first_index(where)
        is_nan = bool(culprit[index] != culprit[index])
        at = "" if event is None else _operands(event, where.shape, index)
        name = p.node.name() if event is None else f"`{event.name}`"
        arrived = next((g for g in p.arrived if g is not None and g.shape == where.shape), None)
        zero = arrived is not None and bool(arrived[index] == 0)
        hidden = None if event is None or spoiled else _hidden_by(base, event, index)
        listed = ", ".join(f"`{h}`" for h in harmed)
        details = {"operation": name.strip("`"), "index": list(index), "operand": at}
        if hidden is not None and zero:
            message = (
                f"the derivative of {name} at {at or 'its operand'} is not finite; `where` does not select that element, so "
                f"that 0 comes back to it, "
                f"and 0 times infinity is nan in the gradient of {listed}. Select the operand first: "
                f"`where(ok, {event.name if event else 'f'}(where(ok, x, 1)), ...)`"
            )
            return [Finding("where-nan", "error", message, place, places, harmed, details | {"where": str(hidden.place)})]
        spread = is_nan or any(g is not None and bool((host_of(g) != host_of(g)).any()) for g in gradients)
        what = "nan" if is_nan else "an infinity"
        message = (
            f"the derivative of {name} makes {what} at {at or 'its operand'} (index {list(index)}), and the gradient of "
            f"{listed} is not finite"
        )
        return [Finding("nan-backward" if spread else "inf-backward", "error", message, place, places, harmed, details)]
    listed = ", ".join(f"`{h}`" for h in harmed)
    return [] if spoiled else [Finding("nan-backward", "error", f"the gradient of {listed} is not finite", None, (), harmed, {})]


def _hidden_by(base: Outcome, event: Event, index: tuple[int, ...]) -> Event | None:
    """Return the first later `where` or write that depends on the nonfinite result of `event`, and so may hide it; None without one."""
    events = base.trace.events
    made = {id(o) for o in event.outs}
    position = next(i for i, e in enumerate(events) if e is event)  # NB: equality would compare Tensors
    for later in events[position + 1 :]:
        if any(id(x) in made for x in later.tensors):
            if later.row is not None and later.row.name in ("where", "put", "put_zero", "keep"):
                return later
            made |= {id(o) for o in later.outs}
    return None
