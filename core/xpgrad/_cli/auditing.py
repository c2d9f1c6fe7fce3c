"""`xpgrad audit MODULE:FUNCTION`: audit a function of a module."""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any

import xpgrad as xp
from xpgrad._array.base import TensorBase
from xpgrad._audit.findings import SEVERITIES
from xpgrad._cli.exporting import arguments, import_named


def audit_function(options: Any) -> int:
    """Audit a function, print the report, and write it to the requested files.

    Parameters
    ----------
    options : argparse.Namespace
        ``target``, ``specs``, ``source``, ``output``, ``allow``, ``device``, ``seed``: see the command's help.

    Returns
    -------
    int
        0 if no finding is worse than allowed, 1 for warnings, 2 for errors, 3 if the function could not be audited.
    """
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        function, args = _case(options)
        report = xp.audit(function, *args, seed=options.seed)
        print(report)
        for path in options.output:
            report.save(path)
    except (ImportError, AttributeError, ValueError, TypeError, RuntimeError, OSError) as exc:
        print(f"xpgrad audit: {exc}", file=sys.stderr)
        return 3
    level = SEVERITIES.index(report.severity) if report.severity in SEVERITIES else -1
    return level if level > SEVERITIES.index(options.allow) else 0


def _case(options: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the function and its arguments from the command's options."""
    function = import_named(options.target)
    if options.source is not None:
        given: Any = import_named(options.source)
        found: Any = given() if callable(given) else given
        return function, tuple(found)
    if options.specs:
        args = arguments(options.specs)
        if options.device is not None:
            args = tuple(a.to_device(options.device) if isinstance(a, TensorBase) else a for a in args)
        return function, args
    if not callable(function):
        msg = f"{options.target!r} is not a function; name one, or a function that returns (function, argument, ...)"
        raise TypeError(msg)
    parameters = inspect.signature(function).parameters.values()
    if any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        msg = f"{options.target!r} takes arguments: give them, e.g. 'float64[3]', or with --args MODULE:NAME"
        raise ValueError(msg)
    found = function()
    if not (isinstance(found, tuple) and found and callable(found[0])):
        msg = f"{options.target!r} takes no arguments, and returns no tuple (function, argument, ...) that could be audited"
        raise ValueError(msg)
    return found[0], found[1:]
