"""Measures which lines of the library each contract runs: only a contract that runs a line can notice a fault in it.

Each contract runs in a separate process, forked from one that has imported the library, so that the caches that another contract filled
do not hide lines. Any contract may notice a fault in a line that the import itself runs.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from xpgrad_conformance.contract import contracts
from xpgrad_conformance.faults import load
from xpgrad_conformance.fork_server import available, warm

__all__ = ["Reach", "ReachError", "folder_of", "reach"]

#: Time limit for one contract, in seconds.
LIMIT = 120
#: Line numbers by source file, named relative to the folder that contains its package.
Lines = Mapping[str, frozenset[int]]


class ReachError(RuntimeError):
    """Raised if the lines that contracts run cannot be measured."""


class Reach(NamedTuple):
    """The lines that the library's import and each contract run.

    Attributes
    ----------
    imported : mapping of str to set of int
        The lines of each source that run when the library is imported.
    run : mapping of str to such a mapping, or None
        By contract, the lines of each source that it runs; None if that is unknown.
    """

    imported: Lines
    run: Mapping[str, Lines | None]

    def could_notice(self, file: str, source: str, begin: int, end: int, certain: bool = False) -> set[str]:
        """Return the contracts that may notice a change of the lines `begin` to `end` of a source.

        Contracts whose lines are unknown are included, unless `certain` is true.
        """
        first, last = statement(source, begin, end)
        place = range(first, last + 1)
        if not self.imported.get(file, frozenset()).isdisjoint(place):
            return set(self.run)
        unknown = not certain
        return {n for n, lines in self.run.items() if (unknown if lines is None else not lines.get(file, frozenset()).isdisjoint(place))}


def folder_of(package: str) -> Path | None:
    """Return the folder of a package; None if it is not installed."""
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]).resolve() if places else None


def statement(source: str, begin: int, end: int) -> tuple[int, int]:
    """Return the first and last line of the innermost statement that contains these lines; of the whole source if none does."""
    found = (1, source.count("\n") + 1)
    for node in ast.walk(ast.parse(source)):  # from the outside in
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first <= begin and end <= (node.end_lineno or 0):
                found = first, node.end_lineno or 0
    return found


def reach(target: str, only: Iterable[str] = ()) -> Reach:
    """Run every contract, or only some, on a target, and measure which lines each one runs.

    Raises
    ------
    ReachError
        If coverage.py is not installed, the target cannot be opened, or the system cannot fork processes.
    """
    if not available():
        msg = (
            "the lines that each contract runs are measured in forked processes, which this system does not have; try it on Linux or macOS"
        )
        raise ReachError(msg)
    with tempfile.TemporaryDirectory(prefix="xpgrad-reach-") as folder:
        path = Path(folder) / "found"
        done = subprocess.run(
            [sys.executable, "-m", "xpgrad_conformance.reach", target, str(path), *only], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        if done.returncode or not path.exists():
            msg = f"cannot see which lines the contracts run on {target}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            raise ReachError(msg)
        found = json.loads(path.read_text(encoding="utf-8"))
    return Reach(_lines(found["imported"]), {name: None if lines is None else _lines(lines) for name, lines in found["run"].items()})


def _lines(found: Mapping[str, Iterable[int]]) -> Lines:
    return {file: frozenset(lines) for file, lines in found.items()}


# -- the process that measures -----------------------------------------------------------------------------------------------------

_others = [False]  # whether the contract started another process, whose lines are not measured


def _audit(event: str, arguments: Any) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"):
        _others[0] = True


def _roots() -> Iterator[tuple[str, int]]:
    """Yield the folders of the library and of backends with planted faults, each with the length of the part to cut off paths in it."""
    for package in {"xpgrad", "xpgrad_numpy", *(m.file.partition("/")[0] for m in load().values())}:
        if (folder := folder_of(package)) is not None:
            yield f"{folder}{os.sep}", len(f"{folder.parent}{os.sep}")


def _measure(roots: list[tuple[str, int]], work: Any) -> tuple[Any, dict[str, list[int]]]:
    """Call a function, and return its result and the lines that it ran, by source."""
    import coverage

    watch = coverage.Coverage(data_file=None, config_file=False, source=[folder for folder, _ in roots], messages=False)
    watch.start()
    try:
        result = work()
    finally:
        watch.stop()
    data, found = watch.get_data(), {}
    for path in data.measured_files():
        for folder, start in roots:
            if path.startswith(folder):
                found[path[start:].replace(os.sep, "/")] = sorted(data.lines(path) or ())
    return result, found


def _begin(name: str, library: Any, roots: list[tuple[str, int]], path: Path) -> int:
    """Fork a process that runs one contract and writes the lines that it ran to a file; return the process id."""
    from xpgrad_conformance.engine import PROFILES, execute

    pid = os.fork()
    if not pid:
        try:
            signal.alarm(LIMIT)
            _others[0] = False
            _, found = _measure(roots, lambda: execute(contracts()[name], library, PROFILES["mutants"]))
            path.write_text(json.dumps(None if _others[0] else found), encoding="utf-8")
        finally:
            os._exit(0)
    return pid


def _measure_contracts(
    names: list[str], library: Any, roots: list[tuple[str, int]], folder: Path
) -> dict[str, dict[str, list[int]] | None]:
    """Return the lines that each contract runs; None if its process failed or started others."""
    running: dict[int, str] = {}
    for name in [*names, ""]:  # the empty name waits for the last processes
        while running and (not name or len(running) >= (os.cpu_count() or 1)):
            running.pop(os.wait()[0])
        if name:
            running[_begin(name, library, roots, folder / name)] = name
    found: dict[str, dict[str, list[int]] | None] = {}
    for name in names:
        written = (folder / name).read_text(encoding="utf-8") if (folder / name).exists() else ""
        # NB: the lines that threads run (group Q) differ from run to run.
        found[name] = None if not written or contracts()[name].rule.group == "Q" else json.loads(written)
    return found


def _main(arguments: Iterable[str]) -> None:
    target, path, *only = arguments
    roots = list(_roots())

    def begin() -> Any:
        from xpgrad_conformance.facade import open_library

        return open_library(target)

    library, imported = _measure(roots, begin)
    names = [c.id for c in contracts().values() if c.function is not None and (not only or c.id in only)]
    warm()
    sys.addaudithook(_audit)
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="xpgrad-reach-") as folder:
        run = _measure_contracts(names, library, roots, Path(folder))
    Path(path).write_text(json.dumps({"imported": imported, "run": run}), encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
