"""The loops of Python on a backend's raw arrays."""

from __future__ import annotations

from typing import Any

from xpgrad.backend import ControlFlow

__all__ = ["python_loops"]


def python_loops(backend: Any) -> ControlFlow:
    """Return the loops of Python on a backend's arrays, with which a scan saves only its carries."""
    kernels = backend.kernels

    def scan(step: Any, init: Any, xs: Any, *, length: int, reverse: bool, unroll: Any) -> Any:
        carry, rows = init, []
        for k in range(length - 1, -1, -1) if reverse else range(length):
            carry, ys = step(carry, tuple(kernels.index_basic(x, (k,)) for x in xs))
            rows.append(ys)
        if reverse:
            rows.reverse()
        return carry, tuple(kernels.stack(list(column), axis=0) for column in zip(*rows))

    def while_loop(test: Any, step: Any, init: Any) -> Any:
        while test(init):
            init = step(init)
        return init

    def cond(holds: Any, first: Any, second: Any) -> Any:
        return first() if holds else second()

    return ControlFlow(scan, while_loop, cond)
