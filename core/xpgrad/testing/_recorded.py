"""Run a function with arguments that require grad, and fetch its gradients to the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xpgrad._tape.requests import grad
from xpgrad._tensor.tensor import Tensor
from xpgrad.testing._host import on_host
from xpgrad.testing._problem import Outputs, outputs_of


class Recorded:
    """A run with arguments that require grad, and its gradients; or its error, which `reraise` raises when a check needs the run."""

    def __init__(self, one: Any, places: Iterable[int]) -> None:
        self.outputs: Outputs | None = None
        self.gradients: list[Any] = [None] * len(one.points)
        self.devices: list[Any] = [None] * len(one.points)
        self.error: Exception | None = None
        one.wrote = False
        try:
            one.attempt(lambda: self._run(one, list(places)))
        except Exception as exc:  # noqa: BLE001 (the check `graph` reports it)
            self.error = exc
        self.wrote = one.wrote

    def _run(self, one: Any, places: list[int]) -> None:
        """Run the function with arguments that require grad at the positions `places`, and store its outputs and gradients."""
        leaves = one.leaves(places)
        self.outputs = outputs_of(one.problem.call_on(one.device, leaves))
        loss = self.outputs.loss()
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            return
        for j, g in zip(places, grad(loss, [leaves[j] for j in places], allow_unused=True)):
            if g is not None:
                self.devices[j], self.gradients[j] = g.device, on_host(g)

    def reraise(self) -> None:
        """Raise the error of the run, if it failed."""
        if self.error is not None:
            raise self.error
