"""`xpgrad export MODULE:FUNCTION`: writes a function and its gradients as a module that needs NumPy only."""

from __future__ import annotations

import ast
import importlib
import math
import os
import re
import shlex
import sys
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import DTYPES

_ARRAY = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d, ]*)\]")


def export_function(target: str, specs: list[str], source: str | None, path: str) -> int:
    """Write the module; 0 if that worked, else 1, with a message.

    Parameters
    ----------
    target : str
        ``MODULE:FUNCTION``.
    specs : list of str
        Its arguments: arrays as ``float64[3,4]``, anything else as Python has it.
    source : str or None
        ``MODULE:NAME`` of a tuple of arguments, or of a function that returns one, in their place.
    path : str
    """
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        function = named(target)
        if source is not None:
            given: Any = named(source)
            found: Any = given() if callable(given) else given
            args = tuple(found)
        else:
            args = arguments(specs)
        command = ["xpgrad", "export", target, *specs, *([] if source is None else ["--args", source]), "--output", path]
        xp.export(function, *args, path=path, command=shlex.join(command))
    except (ImportError, AttributeError, ValueError, TypeError, RuntimeError) as exc:
        print(f"xpgrad export: {exc}", file=sys.stderr)
        return 1
    print(f"wrote {path}; `python {path}` compares its gradients with central differences")
    return 0


def named(target: str) -> Any:
    """The object that ``MODULE:NAME`` names.

    Raises
    ------
    ValueError
        If it is not of that form.
    ImportError, AttributeError
        If there is no such thing.
    """
    module, colon, name = target.partition(":")
    if not colon or not name:
        msg = f"{target!r} does not name anything; write MODULE:NAME, e.g. mymodule:loss"
        raise ValueError(msg)
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def arguments(specs: list[str]) -> tuple[Any, ...]:
    """Arguments from their text: arrays with positive numbers in them, and Python's literals.

    Raises
    ------
    ValueError
        If one is neither.
    """
    found: list[Any] = []
    for spec in specs:
        match = _ARRAY.fullmatch(spec)
        if match is not None and match["dtype"] in DTYPES:
            shape = tuple(int(n) for n in match["shape"].split(",") if n.strip())
            dtype = DTYPES[match["dtype"]]
            # NB: only shapes and ranges count.
            x = xp.linspace(0.1, 1.0 if dtype.differentiable else 2.0, math.prod(shape), dtype=xp.float64, device="numpy")
            found.append(xp.astype(xp.reshape(x, shape), dtype))
            continue
        try:
            found.append(ast.literal_eval(spec))
        except (ValueError, SyntaxError):
            msg = f"{spec!r} is not an argument; write an array as its dtype and shape, e.g. 'float64[3,4]', and others as Python literals"
            raise ValueError(msg) from None
    return tuple(found)
