"""Run a program, in which ``import autograd`` imports this dialect: ``python -m xpgrad.dialects.hips [-m] PROGRAM [ARGUMENT ...]``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from xpgrad.dialects.hips._install import install

USAGE = "usage: python -m xpgrad.dialects.hips [-m] PROGRAM [ARGUMENT ...]"


def main(argv: list[str]) -> int:
    """Run the program that the arguments name, as Python would; return 2 if they name none."""
    is_module = argv[:1] == ["-m"]
    argv = argv[1:] if is_module else argv
    if not argv or argv[0].startswith("-"):
        print(USAGE, file=sys.stdout if argv[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    install()
    sys.argv[:] = argv
    if is_module:
        sys.path.insert(0, "")
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
    else:
        if not Path(argv[0]).exists():
            print(f"python -m xpgrad.dialects.hips: there is no file {argv[0]}\n{USAGE}", file=sys.stderr)
            return 2
        sys.path.insert(0, str(Path(argv[0]).resolve().parent))
        runpy.run_path(argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
