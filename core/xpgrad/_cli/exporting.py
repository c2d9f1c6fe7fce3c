"""`xpgrad export MODULE:FUNCTION`: write a function and its gradients as a module that needs only NumPy, or in C."""

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


def export_function(target: str, specs: list[str], source: str | None, path: str | None, language: str = "python") -> int:
    """Export a function to a file, and return 0; print an error message and return 1 if that fails.

    Parameters
    ----------
    target : str
        ``MODULE:FUNCTION``.
    specs : list of str
        Its arguments: arrays as ``float64[3,4]``, other values as Python literals.
    source : str or None
        ``MODULE:NAME`` of a tuple of arguments, or of a function that returns one, instead of `specs`.
    path : str or None
        The file; None for ``gradients.py`` or ``gradients.c``.
    language : str
        ``"python"`` or ``"c"``.
    """
    path = path or ("gradients.c" if language == "c" else "gradients.py")
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        function = import_named(target)
        if source is not None:
            given: Any = import_named(source)
            found: Any = given() if callable(given) else given
            args = tuple(found)
        else:
            args = arguments(specs)
        options = [*([] if source is None else ["--args", source]), *(["--target", "c"] if language == "c" else []), "--output", path]
        command = shlex.join(["xpgrad", "export", target, *specs, *options])
        xp.export(function, *args, path=path, command=command, target=language)
    except (ImportError, AttributeError, ValueError, TypeError, RuntimeError) as exc:
        print(f"xpgrad export: {exc}", file=sys.stderr)
        return 1
    test = f"cc -DXPGRAD_MAIN {path} -lm && ./a.out" if language == "c" else f"python {path}"
    print(f"wrote {path}; `{test}` compares its gradients with central differences")
    return 0


def import_named(target: str) -> Any:
    """Import the object with the name ``MODULE:NAME``.

    Raises
    ------
    ValueError
        `target` does not have that form.
    ImportError, AttributeError
        The module or the name does not exist.
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
    """Parse arguments of a function: arrays, which are filled with positive numbers, and Python literals.

    Raises
    ------
    ValueError
        A text is neither.
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
