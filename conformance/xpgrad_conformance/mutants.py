"""Planted faults, which prove the suite's strength: a contract notices each fault, and each MUST contract notices a fault.

The faults are rows of ``mutants/*.toml``: a piece of text in one source file and its replacement. ``full`` tries each fault on all
contracts that run its statement, and writes ``mutants/kills.toml``: for each fault a contract that kills it, and for each MUST contract a
fault that it kills. ``replay`` tries only those pairs, and fails if one is missing or stale. A contract kills a fault only by failing; a
time-out, a crash of the process or a library that cannot be imported does not count.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from xpgrad_conformance.contract import Contract, contracts
from xpgrad_conformance.faults import FOLDER, KILLS, Mutant, MutantError, load
from xpgrad_conformance.fork_server import Forked, Server, available, kill
from xpgrad_conformance.journal import Journal
from xpgrad_conformance.known import bundled, find
from xpgrad_conformance.reach import folder_of, reach
from xpgrad_conformance.session import Outcome, Request, run, runners

__all__ = [
    "LIBRARIES", "complete", "copy", "full", "main", "missing_proofs", "mutated", "plant", "replay", "run_tests", "surroundings", "survey",
]  # fmt: skip

#: Seconds for one contract; taking longer does not count as a kill.
LIMIT = 60.0
#: What a server imports that runs tests: what takes long among what they and the library import.
LIBRARIES = (
    "pytest", "hypothesis.extra.numpy", "numpy.testing", "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.signal",
    "scipy.stats", "torch", "llvmlite.binding", "array_api_strict", "array_api_compat.numpy",
)  # fmt: skip


def plant(mutant: Mutant | None, folder: Path) -> None:
    """Put a copy of the library (``xpgrad`` and ``xpgrad_numpy``) into a folder, with the fault in it unless `mutant` is None.

    Raises
    ------
    MutantError
        If the fault cannot be planted (see `mutated`), or a package is not installed.
    """
    copy("" if mutant is None else mutant.file, b"" if mutant is None else mutated(mutant).encode(), folder)


def copy(file: str, text: bytes, folder: Path) -> None:
    """Put a copy of the library into a folder, and replace the text of one file, named relative to that folder.

    Raises
    ------
    MutantError
        If a package is not installed.
    """
    first, *others = file.split("/")
    for package in {"xpgrad", "xpgrad_numpy", first} - {""}:
        source = _folder_of(package)
        if not available():  # systems that cannot fork may not have symbolic links either
            shutil.copytree(source, folder / package)
        elif package != first:
            (folder / package).symlink_to(source)
        else:
            _link_around(others, source, folder / package)
    if file:
        (folder / file).write_bytes(text)


def _link_around(parts: Sequence[str], source: Path, target: Path) -> None:
    """Make a folder with links to the entries of `source`, except for the file `parts`.

    NB: ``__pycache__`` becomes a real folder of links, because Python writes to it.
    """
    target.mkdir()
    for entry in source.iterdir():
        if entry.name == parts[0] and len(parts) > 1:
            _link_around(parts[1:], entry, target / entry.name)
        elif entry.name == "__pycache__":
            shutil.copytree(entry, target / entry.name, copy_function=os.symlink)
        elif entry.name != parts[0]:
            (target / entry.name).symlink_to(entry)


def _folder_of(package: str) -> Path:
    found = folder_of(package)
    if found is None:
        raise MutantError(f"the package {package!r} is not installed")
    return found


def _read_source(mutant: Mutant) -> str:
    """Read the source in which a fault is planted, and check that the text to replace occurs exactly once."""
    path = _folder_of(mutant.file.partition("/")[0]).parent / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if (n := text.count(mutant.old)) != 1:
        raise MutantError(f"the fault {mutant.name!r} is stale: its text occurs {n} times in {mutant.file}; rewrite it")
    return text


def mutated(mutant: Mutant) -> str:
    """Return the text of the source with the fault in it.

    Raises
    ------
    MutantError
        If the text to replace does not occur exactly once, or the result is not valid Python.
    """
    text = _read_source(mutant).replace(mutant.old, mutant.new)
    try:
        ast.parse(text)
    except SyntaxError as exc:
        raise MutantError(f"the fault {mutant.name!r} makes {mutant.file} no program: {exc}; rewrite it") from exc
    return text


def survey(
    mutant: Mutant | None, chosen: Sequence[Contract], target: str = "numpy", runner: Callable[[Request], Outcome] = run
) -> dict[str, str]:
    """Run contracts on a faulty copy of the library, and return the status of each, by id.

    The status is ``"failed"`` if the contract noticed the fault; a time-out or a crash has the status ``"timeout"`` or ``"crash"``.

    Raises
    ------
    MutantError
        If the faulty library cannot be imported: no contract could notice such a fault.
    """
    with tempfile.TemporaryDirectory(prefix="xpgrad-mutant-") as folder:
        plant(mutant, Path(folder))
        target = mutant.backend if mutant is not None else target
        outcome = runner(Request(target, target, chosen, "mutants", limit=LIMIT, environment=surroundings(Path(folder)), timeouts=5))
    if outcome.cause:
        raise MutantError(f"{mutant.name if mutant else 'the copy'}: nothing ran: {outcome.cause}")
    return {row.id: row.kind if row.kind in ("timeout", "crash") else row.status for row in outcome.rows}


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment of a process that imports the copy in a folder, and this copy of the contracts."""
    here = Path(__file__).resolve().parents[1]
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(here))), "OMP_NUM_THREADS": "1"}


def run_tests(
    arguments: Sequence[str], root: Path, folder: Path, environment: Mapping[str, str], limit: float, server: Server | None = None
) -> tuple[int | None, str]:
    """Run pytest on the copy of the library in a folder.

    Parameters
    ----------
    arguments : sequence of str
        Pytest's arguments.
    root : Path
        The folder of the tests, in which pytest runs.
    folder : Path
        The folder that `copy` has filled.
    environment : mapping
        Further variables for pytest's environment.
    limit : float
        The time limit in seconds.
    server : Server, optional
        A server made with `LIBRARIES`, which runs pytest faster; None starts a new Python.

    Returns
    -------
    code : int or None
        The exit code; None if the run took longer than `limit`.
    output : str
        What pytest printed.
    """
    environment = {**surroundings(folder), **environment}
    (folder / "output").touch()
    if server is not None:
        job = {"tests": [*arguments], "root": str(root), "folder": str(folder), "environment": environment}
        process: subprocess.Popen[bytes] | Forked = server.start(job)
    else:
        with open(folder / "output", "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *arguments], cwd=root, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
    try:
        code: int | None = process.wait(limit)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        kill(process)
        process.wait()
    return code, (folder / "output").read_text(encoding="utf-8", errors="replace")


def _survey_all(jobs: Iterable[tuple[Mutant, Sequence[Contract]]], workers: int) -> Iterable[tuple[Mutant, dict[str, str] | MutantError]]:
    """Survey several faults at a time, with a progress bar; yield each fault with its statuses, or with the error."""
    from tqdm import tqdm

    jobs = list(jobs)
    with runners(workers) as runner, ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(survey, mutant, chosen, runner=runner): mutant for mutant, chosen in jobs}
        for future in tqdm(as_completed(futures), total=len(futures), unit="fault", disable=None):
            try:
                yield futures[future], future.result()
            except MutantError as exc:
                yield futures[future], exc


def must_prove(target: str, capabilities: Mapping[str, bool]) -> list[Contract]:
    """Return the MUST contracts that run and should pass on a target: each needs a fault that it kills."""
    every = bundled()
    return [
        c
        for c in contracts().values()
        if c.rule.level == "MUST"
        and c.function is not None
        and all(capabilities[name] for name in c.requires)
        and find(every, c.id, target, capabilities) is None
    ]


def full(workers: int = 2, journal: Path | None = None) -> int:
    """Try every fault on every contract that runs its statement, write the pairs, and print what is missing.

    Parameters
    ----------
    workers : int
        The number of processes that run at a time.
    journal : Path, optional
        A file to which the result of each fault is added as soon as it is known. Faults whose result it already has are not tried again,
        so an interrupted run can continue. It is valid only for the same commit.

    Returns
    -------
    int
        The exit code: 0 if nothing is missing, else 1.
    """
    every, mutants = contracts(), load()
    baseline: dict[str, dict[str, str]] = {}
    for target in sorted({m.backend for m in mutants.values()}):
        print(f"without a fault, on {target}")
        baseline[target] = survey(None, [c for c in every.values() if c.function is not None], target)
        if broken := [name for name, status in baseline[target].items() if status in ("failed", "timeout", "crash", "unexpected pass")]:
            print(f"the code must be sound, but these fail without a fault on {target}: {', '.join(broken)}")
            return 1
    known = Journal(journal)
    matrix: dict[str, list[str]] = {name: kills for name, kills in known.read().items() if name in mutants}
    reaches = {target: reach(target) for target in baseline}
    jobs = []
    for m in (m for m in mutants.values() if m.name not in matrix):
        source = _read_source(m)
        begin = source.count("\n", 0, source.index(m.old)) + 1
        near = reaches[m.backend].could_notice(m.file, source, begin, begin + m.old.count("\n"))
        jobs.append((m, [every[name] for name, s in baseline[m.backend].items() if s == "passed" and name in near]))
    faulty = []
    for mutant, statuses in _survey_all(jobs, workers):
        if isinstance(statuses, MutantError):
            faulty.append(str(statuses))
            continue
        matrix[mutant.name] = [name for name, status in statuses.items() if status == "failed"]
        known.add(mutant.name, matrix[mutant.name])
    write_kills(matrix)
    missing = faulty + missing_proofs()
    print(f"{len(matrix)} faults, {sum(map(len, matrix.values()))} kills, {len(missing)} missing")
    for line in missing:
        print(f"MISSING  {line}")
    return 1 if missing else 0


def write_kills(matrix: Mapping[str, Sequence[str]]) -> None:
    """Choose and write the pairs: for each fault its most specific contract, and for each MUST contract the fault with fewest killers."""
    mutants, every = load(), contracts()
    order = {name: n for n, name in enumerate(every)}
    width = {name: len(found) for name, found in matrix.items()}
    hits: dict[str, list[str]] = {}
    for name, found in matrix.items():
        for contract in found:
            hits.setdefault(contract, []).append(name)
    killer: dict[str, str] = {}
    proof: dict[str, str] = {}
    for name in mutants:
        found = matrix.get(name, ())
        if found:
            named = [c for c in found if c in mutants[name].kills] or list(found)
            killer[name] = min(named, key=lambda c: (len(hits[c]), order[c]))
    for each in every.values():
        if each.rule.level == "MUST" and each.id in hits:
            proof[each.id] = min(hits[each.id], key=lambda m: (each.id not in mutants[m].kills, width[m], m))
    _write(killer, proof)


def _write(killer: Mapping[str, str], proof: Mapping[str, str]) -> None:
    """Write the table of pairs, in the order of the faults and of the contracts."""
    lines = [
        "# Written by `xpgrad conformance mutants --full` (or, for what is new, `--missing`); replayed by `xpgrad conformance mutants`.",
        "",
        "# Each fault and a contract that notices it.",
        "[killer]",
        *(f'{name} = "{killer[name]}"' for name in load() if name in killer),
        "",
        "# Each MUST contract and a fault that it notices.",
        "[proof]",
        *(f'{name} = "{proof[name]}"' for name in contracts() if name in proof),
    ]
    KILLS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def complete(workers: int = 2) -> int:
    """Try faults and contracts that have no pair yet, as named in the faults' rows, and add the pairs whose contract fails.

    Returns
    -------
    int
        The exit code: 0 if nothing is missing afterwards, else 1.
    """
    kills, mutants, every = _read_kills(), load(), contracts()
    killer = {m: c for m, c in kills["killer"].items() if m in mutants and c in every}
    proof = {c: m for c, m in kills["proof"].items() if m in mutants and c in every}
    jobs = [(m, [every[c] for c in m.kills if m.name not in killer or c not in proof]) for m in mutants.values()]
    faulty = []
    for mutant, statuses in _survey_all([(m, chosen) for m, chosen in jobs if chosen], workers):
        if isinstance(statuses, MutantError):
            faulty.append(str(statuses))
            continue
        for name in (name for name, status in statuses.items() if status == "failed"):
            killer.setdefault(mutant.name, name)
            if every[name].rule.level == "MUST":
                proof.setdefault(name, mutant.name)
    _write(killer, proof)
    missing = faulty + missing_proofs()
    print(f"{len(killer)} faults, {len(proof)} contracts with a fault, {len(missing)} missing")
    for line in missing:
        print(f"MISSING  {line}")
    return 1 if missing else 0


def _read_kills() -> dict[str, Any]:
    return tomllib.loads(KILLS.read_text(encoding="utf-8")) if KILLS.exists() else {"killer": {}, "proof": {}}


def missing_proofs() -> list[str]:
    """Describe the gaps in the table of pairs: faults without a killer, MUST contracts without a fault, names that no longer exist."""
    from xpgrad_conformance.facade import open_library

    kills, mutants, every = _read_kills(), load(), contracts()
    found = [f"the fault {name!r} has no contract that kills it" for name in mutants if name not in kills["killer"]]
    needed = must_prove("numpy", open_library("numpy").capabilities)
    known = bundled()
    needed += [
        c
        for c in every.values()
        if "streams" in c.requires and c.rule.level == "MUST" and find(known, c.id, "simstream", {"streams": True}) is None
    ]
    found += [f"the contract {c.id} kills no fault" for c in needed if c.id not in kills["proof"]]
    for fault, contract in [*kills["killer"].items(), *((m, c) for c, m in kills["proof"].items())]:
        if fault not in mutants or contract not in every:
            found.append(f"the pair {fault!r}, {contract!r} names something that no longer exists")
    return found


def replay(workers: int = 2, only: Iterable[str] | None = None) -> int:
    """Try only the written pairs, and return the exit code: 0 if each contract still notices its fault and nothing is missing, else 1."""
    kills, mutants, every = _read_kills(), load(), contracts()
    missing = missing_proofs() if only is None else []
    pairs: dict[str, set[str]] = {}
    for fault, contract in [*kills["killer"].items(), *((m, c) for c, m in kills["proof"].items())]:
        if fault in mutants and contract in every:
            pairs.setdefault(fault, set()).add(contract)
    return _try({m: sorted(c) for m, c in pairs.items() if only is None or m in only}, workers, missing)


def _try(pairs: Mapping[str, Sequence[str]], workers: int, missing: list[str]) -> int:
    mutants, every = load(), contracts()
    stale = []
    for mutant, statuses in _survey_all([(mutants[m], [every[c] for c in found]) for m, found in pairs.items()], workers):
        if isinstance(statuses, MutantError):
            stale.append(str(statuses))
        else:
            stale += [f"{mutant.name}: {name} does not notice it ({status})" for name, status in statuses.items() if status != "failed"]
    total = sum(map(len, pairs.values()))
    print(f"{len(pairs)} faults, {total} pairs tried, {len(stale)} stale, {len(missing)} missing")
    for line in stale:
        print(f"STALE    {line}")
    for line in missing:
        print(f"MISSING  {line}")
    return 1 if stale or missing else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: ``try`` the pairs that the faults' rows name, ``replay`` the written pairs, or run the ``full`` matrix."""
    parser = argparse.ArgumentParser(prog="python -m xpgrad_conformance.mutants", description=__doc__)
    parser.add_argument("action", choices=["try", "replay", "full"])
    parser.add_argument("names", nargs="*", help="only these faults")
    parser.add_argument("--group", default="", help="only those of the file of this name")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at a time")
    options = parser.parse_args(argv)
    if options.action == "full":
        return full(options.jobs)
    if options.action == "replay":
        return replay(options.jobs, options.names or None)
    chosen: dict[str, Sequence[str]] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        if path.name != KILLS.name and options.group.lower() in ("", path.stem):
            rows = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
            chosen |= {row["name"]: row["kills"] for row in rows if row.get("kills")}
    return _try({m: c for m, c in chosen.items() if not options.names or m in options.names}, options.jobs, [])


if __name__ == "__main__":
    sys.exit(main())
