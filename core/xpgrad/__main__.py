"""The command line: ``xpgrad backends`` tells what is registered and whether it works."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from xpgrad import registry

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    from xpgrad import __version__

    parser = argparse.ArgumentParser(prog="xpgrad", description="PyTorch's documented autograd for every Array API library.")
    parser.add_argument("--version", action="version", version=f"xpgrad {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    backends = commands.add_parser("backends", help="list the registered backends", description="List the registered backends.")
    backends.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the process's arguments.

    Returns
    -------
    int
        0; 1 if no backend is ready.
    """
    options = _parser().parse_args(argv)
    rows = registry.survey()
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        columns = ("name", "status", "devices", "origin")
        widths = [max(len(c), *(len(r[c]) for r in rows)) if rows else len(c) for c in columns]
        for row in ({c: c for c in columns}, *rows):
            print("  ".join(row[c].ljust(w) for c, w in zip(columns, widths)).rstrip())
        for row in rows:
            if row["cause"]:
                print(f"\n{row['name']}: {row['cause']}")
    return 0 if any(r["status"] == "ready" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
