"""The command line: ``xpgrad backends`` lists the registered backends, and checks and starts plugins; ``xpgrad conformance`` checks a
backend; ``xpgrad export`` writes gradients as NumPy or C; ``xpgrad audit`` finds mistakes in a function's gradient; ``xpgrad cache`` shows
and clears the cache of compiled machine code."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from xpgrad import __version__

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="xpgrad", description="PyTorch's documented autograd for every Array API library.")
    parser.add_argument("--version", action="version", version=f"xpgrad {__version__}")
    commands = parser.add_subparsers(dest="command")
    backends = commands.add_parser("backends", help="list the registered backends; show, check or start one")
    backends.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    actions = backends.add_subparsers(dest="action")
    show = actions.add_parser("show", help="describe a backend")
    show.add_argument("name", help="NAME or NAME+VARIANT")
    show.add_argument("--json", action="store_true", dest="show_json", help="print a JSON object")
    check = actions.add_parser("check", help="check a backend's installation and, with --import, its behaviour")
    check.add_argument("name", help="NAME or NAME+VARIANT")
    check.add_argument("--import", action="store_true", dest="imported", help="also import it, and compute with it")
    check.add_argument("--traceback", action="store_true", help="print the traceback of each exception that a check ended with")
    check.add_argument(
        "--shadow", action="store_true", help="with --import: compare each kernel call with NumPy's, and name the first that differs"
    )
    new = actions.add_parser("new", help="write a plugin project to start from")
    new.add_argument("name")
    export = commands.add_parser("export", help="write a function and its gradients as a module that needs only NumPy, or in C")
    export.add_argument("target", help="MODULE:FUNCTION")
    export.add_argument("specs", nargs="*", metavar="ARGUMENT", help="an array, as 'float64[3,4]', or a Python literal")
    export.add_argument("--args", dest="source", help="MODULE:NAME of a tuple of arguments, or of a function that returns one")
    export.add_argument("--target", choices=("python", "c"), default="python", dest="language", help="the language (default: python)")
    export.add_argument("--output", help="the file to write (default: gradients.py or gradients.c)")
    audit = commands.add_parser("audit", help="find where a function's gradient is lost, wrong, NaN or expensive")
    audit.add_argument("target", help="MODULE:FUNCTION; called without arguments it may return (function, argument, ...) instead")
    audit.add_argument("specs", nargs="*", metavar="ARGUMENT", help="an array, as 'float64[3,4]', or a Python literal")
    audit.add_argument("--args", dest="source", help="MODULE:NAME of a tuple of arguments, or of a function that returns one")
    audit.add_argument(
        "--output", action="append", default=[], metavar="PATH", help="also write the report to a file: .html, .json, .txt or .md"
    )
    audit.add_argument("--allow", choices=("note", "warning", "error"), default="note", help="the worst severity with exit code 0")
    audit.add_argument("--device", help="the device of arrays such as 'float64[3,4]' (default: the default device)")
    audit.add_argument("--seed", type=int, default=0, help="the seed of random directions")
    commands.add_parser("conformance", add_help=False, help="check backends against the contracts of PyTorch's documentation")
    cache = commands.add_parser("cache", help="show the machine code of compiled functions that is kept between processes")
    cache.add_argument("--clear", action="store_true", help="delete it")
    new.add_argument("--directory", default=".", help="the parent of the new folder xpgrad-NAME (default: here)")
    return parser


def _escape_missing_characters() -> None:
    """Write characters that the output's encoding lacks as escapes; on Windows, pipes are rarely UTF-8, and ``∂`` would raise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code. 0 for success; 1 if no backend is ready, the requested one is not ready, a check failed, or a file could not be written.
        ``conformance`` has its own codes; ``audit`` returns 0 if nothing is worse than allowed, 1 for warnings, 2 for errors, 3 if the
        function could not be audited.
    """
    if argv is None:
        _escape_missing_characters()
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["conformance"]:
        from xpgrad_conformance.cli import main as conformance  # loads late: it needs pytest

        return conformance(given[1:])
    parser = _parser()
    options = parser.parse_args(given)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command == "export":
        from xpgrad._cli.exporting import export_function  # loads late: each command its own

        return export_function(options.target, options.specs, options.source, options.output, options.language)
    if options.command == "audit":
        from xpgrad._cli.auditing import audit_function  # loads late: as above

        return audit_function(options)
    if options.command == "cache":
        from xpgrad._cli.caching import run as show_cache  # loads late: as above

        return show_cache(options.clear)
    if options.action == "check":
        from xpgrad._cli.checking import check_backend  # loads late: as above

        return check_backend(options.name, options.imported, options.traceback, options.shadow)
    if options.action == "new":
        from xpgrad._cli.scaffold import new_project  # loads late: as above

        try:
            root = new_project(options.name, options.directory)
        except (ValueError, OSError) as exc:
            print(exc, file=sys.stderr)
            return 1
        print(f"{root}: now `pip install -e '{root}[test]'`, `python -m pytest {root}` and `xpgrad backends check {options.name} --import`")
        return 0
    from xpgrad._cli.listing import list_backends, show_backend  # loads late: as above

    if options.action == "show":
        return show_backend(options.name, options.show_json or options.json)
    return list_backends(options.json)


if __name__ == "__main__":
    sys.exit(main())
