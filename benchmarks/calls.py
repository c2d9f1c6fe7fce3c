"""`python -m benchmarks.calls`: count the Python functions that one operation calls, and the files in which they are defined.

Counts repeat exactly, also on a busy machine. They show what a change adds to the hot path where the difference in time is lost in noise.
Functions of the core and of the backends count, generated ones too; C functions do not. `--list NAME` prints the calls of one operation.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import xpgrad as xp

__all__ = ["OPERATIONS", "calls_of", "main"]

_ROOT = Path(__file__).resolve().parent.parent
_COUNTED = (f"{_ROOT / 'core'}{os.sep}", f"{_ROOT / 'backends'}{os.sep}", "<xpgrad ")


def _leaf() -> Any:
    return xp.tensor(np.linspace(0.5, 1.5, 4), requires_grad=True)


def _prepare_product() -> Callable[[], Any]:
    x, y = _leaf(), _leaf()
    return lambda: x * y


def _prepare_ufunc() -> Callable[[], Any]:
    x = _leaf()
    return lambda: np.sin(x)


def _prepare_write(key: Any, recorded: bool, view: bool = False, scalar: bool = False) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        y = _leaf() * 1.0 if recorded else xp.zeros(4)
        if view:
            y = y[1:]
        value = 2.0 if scalar else xp.tensor(2.0, requires_grad=recorded)

        def write() -> None:
            y[key] = value

        return write

    return prepare


def _prepare_addition() -> Callable[[], Any]:
    y, v = _leaf() * 1.0, _leaf()
    return lambda: y.add_(v)


def _prepare_step() -> Callable[[], Any]:
    x, v = _leaf(), xp.ones(4)

    def step() -> None:
        with xp.no_grad():
            x.__isub__(v)

    return step


def _prepare_backward() -> Callable[[], Any]:
    return xp.sum(_leaf() * _leaf()).backward  # type: ignore[no-any-return]


def _prepare_gradients() -> Callable[[], Any]:
    rows, gradients = xp.tensor(np.ones((5, 4))), xp.func.vmap(xp.func.grad(lambda x: xp.sum(x * x)))
    return lambda: gradients(rows)


#: By name: a function that prepares an operation, and returns the call to count.
OPERATIONS: dict[str, Callable[[], Callable[[], Any]]] = {
    "x * y": _prepare_product,
    "np.sin(x)": _prepare_ufunc,
    "y[k] = v, recorded": _prepare_write(1, recorded=True),
    "y[k] = v": _prepare_write(1, recorded=False),
    "y[k] = 2.0": _prepare_write(1, recorded=False, scalar=True),
    "y[[0, 2]] = v, recorded": _prepare_write([0, 2], recorded=True),
    "y[1:][k] = v, recorded": _prepare_write(1, recorded=True, view=True),
    "y.add_(v), recorded": _prepare_addition,
    "x -= v under no_grad": _prepare_step,
    "backward of two nodes": _prepare_backward,
    "vmap(grad(f))(xs)": _prepare_gradients,
}


def calls_of(name: str) -> list[tuple[str, str]]:
    """Return the file and the name of each function that an operation calls, in order.

    Parameters
    ----------
    name : str
        A key of `OPERATIONS`.
    """
    prepare = OPERATIONS[name]
    for _ in range(3):  # the first runs generate code and load modules
        prepare()()
    operation = prepare()
    calls: list[tuple[str, str]] = []

    def record(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(_COUNTED):
            calls.append((os.path.relpath(file, _ROOT) if os.path.isabs(file) else file, frame.f_code.co_qualname))

    sys.setprofile(record)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return calls


def main(argv: list[str] | None = None) -> int:
    """Print a table of counts, or the calls of one operation; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--list", choices=OPERATIONS, metavar="NAME", help="print the calls of one operation in order")
    arguments = parser.parse_args(argv)
    if arguments.list is not None:
        for file, function in calls_of(arguments.list):
            print(f"{file:60} {function}")
        return 0
    print("| operation | calls | files |\n|---|---:|---:|")
    for name in OPERATIONS:
        calls = calls_of(name)
        print(f"| {name} | {len(calls)} | {len({file for file, _ in calls})} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
