"""Running a program as it stands, one kernel after the other: what every emitted text is compared with, and what a library gets by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad.programs.program import Program, Variable

__all__ = ["built"]

_WRITING = frozenset(("written", "add_at", "scatter_into", "scale"))


def built(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """The function that a program stands for, on a backend's raw arrays."""
    xp = backend.kernels

    def find(name: str) -> Any:
        found: Any = xp
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def value(x: Any, values: dict[Variable, Any]) -> Any:
        cls = x.__class__
        if cls is Variable:
            return values[x]
        if cls is DType:
            return backend.raw_dtype(x)
        if cls is tuple or cls is list:
            return cls([value(item, values) for item in x])
        return x

    def run(*arrays: Any) -> tuple[Any, ...]:
        values = dict(zip(program.inputs, arrays)) | program.constants
        for operation in program.operations:
            args = [value(a, values) for a in operation.args]
            if operation.name in _WRITING:
                args[0] = xp.copy(args[0])
            out = find(operation.name)(*args, **{k: value(v, values) for k, v in operation.options.items()})
            if operation.several:
                values.update(zip(operation.results, out))
            else:
                values[operation.out] = out
        return tuple(xp.copy(values[v]) for v in program.outputs)

    return run
