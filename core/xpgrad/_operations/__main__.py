"""Print the source that is generated for an operation: ``python -m xpgrad._operations multiply``, or ``multiply gc`` for a pattern.

A tool for developers. Running it imports the package, which declares the rows.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence

from xpgrad._backends.loading import backend_for
from xpgrad._operations.backward import node_text
from xpgrad._operations.dispatch import dispatcher_text
from xpgrad._operations.forward import forms
from xpgrad._rows.row import ROWS
from xpgrad.errors import XpgradError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m xpgrad._operations", description="Print the text that is generated for an operation.")
    parser.add_argument("operation", help="the name of its row, e.g. multiply")
    parser.add_argument(
        "pattern",
        nargs="?",
        help="print the node class for this pattern, one letter per operand: g requires grad, c is a constant Tensor, s a Python scalar "
        "(default: what runs forward)",
    )
    parser.add_argument("--backend", default="numpy", help="NAME or NAME+VARIANT (default: numpy)")
    parser.add_argument("--broadcast", action="store_true", help="the node class for operands of different shapes")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print the generated text.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the command line of the process.

    Returns
    -------
    int
        0; 1 if there is no such operation, pattern or backend.
    """
    options = _parser().parse_args(argv)
    try:
        print(_generate(options.operation, options.pattern, options.backend, options.broadcast), end="")
    except (LookupError, XpgradError) as exc:
        print(exc.args[0], file=sys.stderr)
        return 1
    return 0


def _generate(name: str, pattern: str | None, backend_name: str, broadcast: bool) -> str:
    """Return the text, or raise a LookupError that lists the valid names."""
    if name not in ROWS:
        near = [n for n in ROWS if name in n] or difflib.get_close_matches(name, ROWS) or sorted(ROWS)
        raise LookupError(f"no row is named {name!r}; there is {', '.join(near)}")
    row, backend = ROWS[name], backend_for(backend_name)
    made = [] if row.varargs else forms(backend, row)
    if pattern is None:
        return "\n".join(text.source for text in (dispatcher_text(row), *(form.text for form in made)))
    known = {(mask, broad) for form in made for mask, broad in form.patterns}
    if (pattern, broadcast) not in known:
        shown = ", ".join(mask + " --broadcast" * broad for mask, broad in sorted(known)) or "none"
        raise LookupError(f"no node class is generated for {name} {pattern}{' --broadcast' * broadcast}; those of {name}: {shown}")
    return node_text(backend, row, pattern, broadcast).source


if __name__ == "__main__":
    sys.exit(main())
