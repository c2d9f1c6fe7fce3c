"""Compiled functions on dask: elementwise operations become one task for each chunk, instead of one for each operation and chunk.

The operations of a program are sorted into stages. The elementwise operations of one stage on arrays of one shape form a *piece*: NumPy
code that runs on a chunk. Sums over whole arrays belong to pieces as well, and are added up chunk by chunk. All other operations, such as
matrix products, run on dask as they do without compiling.
"""

# mypy: allow-untyped-calls
# (dask has no type hints on most of its functions)

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.program import Operation, Program, Variable
from xpgrad.programs.source import built

__all__ = ["function_of"]

_FEWEST = 2  # the minimum number of operations in a piece; a single operation runs on dask


class _Piece:
    """Operations that run as one NumPy function on each chunk.

    Parameters
    ----------
    shape : tuple of int
        The shape of the arrays that are divided into chunks.
    operations : list of Operation
        The operations, in the order of the program.
    wanted : set of Variable
        The results that other operations read, or that the program returns.
    backend : DaskBackend
        The backend whose kernels the code calls.
    """

    def __init__(self, shape: tuple[int, ...], operations: list[Operation], wanted: set[Variable], backend: Any) -> None:
        made = {o.out for o in operations}
        self.shape, self.operations = shape, operations
        self.inputs = list(dict.fromkeys(v for o in operations for v in o.operands() if v not in made))
        self.outputs = [o.out for o in operations if o.out in wanted]
        self.sums = {o.out for o in operations if o.name == "reduce_sum"}
        program = Program(self.inputs, {}, operations, self.outputs)
        self.run = built(numpy_source(program, "chunk"), {"xp": backend.kernels}, backend.raw_dtype)
        self.token = uuid.uuid4().hex

    def __call__(self, values: dict[Variable, Any]) -> list[Any]:
        """Return the outputs as dask arrays, for the inputs among `values`."""
        whole = [values[v] for v in self.inputs if v.shape == self.shape]
        chunks = whole[0].chunks
        arrays = [x if not x.ndim or x.chunks == chunks else x.rechunk(chunks) for x in (values[v] for v in self.inputs)]
        name = f"xpgrad-{tokenize(self.token, [x.name for x in arrays], chunks)}"
        places = list(product(*map(range, whole[0].numblocks)))
        graph: dict[Any, Any] = {
            (name, *place): (_run_on_chunk, self.run, len(place), *[(x.name, *place) if x.ndim else (x.name,) for x in arrays])
            for place in places
        }
        layers: dict[str, Any] = {name: graph}
        dependencies = {name: {x.name for x in arrays}}
        for x in arrays:
            layers.update(x.dask.layers)
            dependencies.update(x.dask.dependencies)
        found = []
        for k, v in enumerate(self.outputs):
            part = f"{name}-{k}"
            graph_of_part: dict[Any, Any] = {(part, *place): (operator.getitem, (name, *place), k) for place in places}
            high = HighLevelGraph({**layers, part: graph_of_part}, {**dependencies, part: {name}})
            dtype = np.dtype(v.dtype.name)
            if v in self.sums:
                partial = da.Array(high, part, tuple((1,) * n for n in whole[0].numblocks), dtype=dtype)
                found.append(partial.sum(dtype=dtype))
            else:
                found.append(da.Array(high, part, chunks, dtype=dtype))
        return found


def _run_on_chunk(run: Callable[..., Any], rank: int, *chunks: Any) -> tuple[Any, ...]:
    """Run a piece on one chunk; a 0-d sum is returned with `rank` axes of length 1, as one block of an array of partial sums."""
    return tuple([np.asarray(x).reshape((1,) * rank) if np.ndim(x) != rank else x for x in run(*chunks)])


def function_of(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """Return a function of dask arrays that runs a program."""
    steps = _order_steps(program, backend)
    evaluate = evaluator(backend)

    def run(*arrays: Any) -> tuple[Any, ...]:
        values: dict[Variable, Any] = {**program.constants, **dict(zip(program.inputs, arrays))}
        for step in steps:
            if isinstance(step, _Piece):
                values.update(zip(step.outputs, step(values)))
            else:
                values.update(zip(step.results, evaluate(step, values)))
        return tuple([backend.kernels.copy(values[v]) for v in program.outputs])

    return run


def _order_steps(program: Program, backend: Any) -> list[Any]:
    """Return the operations and pieces of a program, each after those whose results it reads."""
    stage: dict[Variable, int] = {}
    single: dict[int, list[Operation]] = {}
    pieces: dict[tuple[int, tuple[int, ...]], list[Operation]] = {}
    for o in program.operations:
        last = max((stage.get(v, 0) for v in o.operands()), default=0)
        shape = _piece_shape(o)
        # NB: an elementwise result is available within its stage, so its readers join the same piece. A sum needs all chunks, so it is
        # available only in the next stage.
        if shape is not None:
            pieces.setdefault((last, shape), []).append(o)
            stage[o.out] = last + (o.name == "reduce_sum")
        else:
            single.setdefault(last + 1, []).append(o)
            stage.update((v, last + 1) for v in o.results)
    readers: dict[Variable, list[Operation]] = {}
    for o in program.operations:
        for v in o.operands():
            readers.setdefault(v, []).append(o)
    returned = set(program.outputs)
    steps: list[Any] = []
    for number in range(max([0, *single, *[n for n, _ in pieces]]) + 1):
        steps += single.get(number, [])
        for (at, shape), operations in pieces.items():
            if at != number:
                continue
            if len(operations) < _FEWEST:
                steps += operations
                continue
            own = set(operations)
            wanted = {o.out for o in operations if o.out in returned or any(r not in own for r in readers.get(o.out, ()))}
            steps.append(_Piece(shape, operations, wanted, backend))
    return steps


def _piece_shape(o: Operation) -> tuple[int, ...] | None:
    """Return the shape of the arrays of an elementwise operation, or of the operand of a full sum; None for any other operation."""
    operands = list(o.operands())
    if o.name == "reduce_sum":
        x = operands[0]
        whole = x.shape if o.args[1] is None and not o.args[2] and x.dtype.differentiable and x.dtype.itemsize > 2 else ()
    elif o.facts.blockwise:
        whole = o.out.shape
    else:
        return None
    if not whole or not _fit_shape(operands, whole):
        return None
    return whole


def _fit_shape(operands: Iterable[Variable], shape: tuple[int, ...]) -> bool:
    """Return whether all operands have `shape` or are 0-d, and at least one has `shape`."""
    shapes = {v.shape for v in operands}
    return shape in shapes and shapes <= {shape, ()}
