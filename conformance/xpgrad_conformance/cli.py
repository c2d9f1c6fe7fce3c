"""The command ``xpgrad conformance``: runs the suite, explains its contracts, replays failures, compares and renders reports.

Exit codes: 0 everything went as expected; 1 a contract failed, or passed where a failure was expected, or a report is worse than another;
2 the command was used wrongly; 3 a target could not be run; 130 it was interrupted.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main"]

FAILED, USAGE, NO_TARGET, INTERRUPTED = 1, 2, 3, 130
#: Without a terminal, the seconds between two lines about the progress.
_SECONDS = 10.0


class _UsageError(Exception):
    """An error in the use of the command, e.g. options that exclude each other."""


def _parser() -> argparse.ArgumentParser:
    from xpgrad_conformance.engine import PROFILES
    from xpgrad_conformance.session import CRASHES

    running = argparse.ArgumentParser(add_help=False)
    running.add_argument("--profile", default="default", choices=list(PROFILES), help="how many cases to run (default: %(default)s)")
    running.add_argument("--seed", type=int, help="draw other cases, in another order (default: the same ones each time)")
    running.add_argument(
        "--only", action="append", default=[], metavar="ID", help="only these contracts: an id, its prefix, a group's letter, file:PATH"
    )
    choosing = argparse.ArgumentParser(add_help=False)
    choosing.add_argument("--suite-version", metavar="X.Y", help="only contracts that existed in this version of the suite (default: all)")
    running.add_argument("--known", action="append", default=[], metavar="FILE", help="a TOML file of expected failures")
    running.add_argument("--limit", type=float, help="the time limit of a contract in seconds (default: the profile's)")
    running.add_argument(
        "--max-crashes", type=int, default=CRASHES, metavar="N",
        help="after N crashes of a target its other contracts are not tried (default: %(default)s); a timeout is no crash",
    )  # fmt: skip
    running.add_argument("--journal", metavar="FILE", help="record each result at once, and resume from it if the run was ended")
    stopping = argparse.ArgumentParser(add_help=False)
    stopping.add_argument("--exitfirst", action="store_true", help="stop a target at its first failure, and report the rest as not run")
    writing = argparse.ArgumentParser(add_help=False)
    for name, what in [
        ("json", "the report itself"),
        ("html", "a page for a browser"),
        ("markdown", "a page of text"),
        ("junit", "JUnit's XML"),
        ("badge", "an SVG"),
    ]:
        writing.add_argument(f"--{name}", metavar="FILE", help=f"write {what}")

    parser = argparse.ArgumentParser(
        prog="xpgrad conformance",
        description="Check backends against the contracts of PyTorch's documentation.",
        epilog=__doc__.partition("\n\n")[2] if __doc__ else None,
        parents=[running, choosing, stopping, writing],
    )
    parser.add_argument(
        "--backend", action="append", default=[], metavar="X", help="a backend or device; several become columns of one report"
    )
    parser.add_argument("--all", action="store_true", help="every backend that is ready here")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "oracle", parents=[running, choosing, stopping, writing], help="run the suite on PyTorch itself, to check its rules"
    )
    mutants = commands.add_parser("mutants", help="plant faults in the core, and check that the suite notices them")
    how = mutants.add_mutually_exclusive_group()
    how.add_argument("--full", action="store_true", help="try every fault with every contract that could notice it, and rewrite the pairs")
    how.add_argument("--missing", action="store_true", help="try faults and contracts without a pair, and add the pairs that hold")
    how.add_argument("--random", type=int, metavar="N", help="break N random lines of the core, and list those that nothing notices")
    mutants.add_argument("--seed", type=int, default=0, help="with --random: the seed (default: %(default)s)")
    mutants.add_argument("--files", action="append", metavar="PATTERN", help="with --random: only these sources (default: xpgrad/*)")
    mutants.add_argument("--no-tests", action="store_true", help="with --random: run only contracts, not the repository's tests")
    mutants.add_argument("--json", metavar="FILE", help="with --random: write every mutant and what noticed it")
    mutants.add_argument("--journal", metavar="FILE", help="with --full or --random: record each result at once, and resume from it")
    mutants.add_argument("--jobs", type=int, default=2)
    listing = commands.add_parser("list", parents=[choosing], help="list the contracts, one per line")
    listing.add_argument("only", nargs="*", metavar="ID")
    explain = commands.add_parser("explain", help="explain a contract: its rule, source and program, and who fails it")
    explain.add_argument("contract")
    explain.add_argument("--in", dest="reports", action="append", default=[], metavar="REPORT", help="a report that shows who fails it")
    repro = commands.add_parser("repro", help="run the smallest failing case of a report again")
    repro.add_argument("report")
    repro.add_argument("contract")
    repro.add_argument("--target", help="the target of the report (default: the first that failed)")
    reports = commands.add_parser("report", help="compare or render reports").add_subparsers(dest="action", required=True)
    diff = reports.add_parser("diff", help="show what changed; new failures, and contracts that no longer run, count as worse")
    diff.add_argument("old")
    diff.add_argument("new")
    show = reports.add_parser("show", parents=[writing], help="print a report, or write it in other forms")
    show.add_argument("report")
    publish = commands.add_parser(
        "publish", parents=[running], help="run the published configurations and write the pages of the documentation"
    )
    publish.add_argument("--docs", default="docs", help="the folder (default: %(default)s)")
    publish.add_argument("--merge", metavar="REPORT", help="keep this report's results for targets that cannot be run here")
    catalogue = commands.add_parser("catalogue", help="write docs/contracts.md")
    catalogue.add_argument("path", nargs="?", default="docs/contracts.md")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return one of the exit codes in the module's docstring."""
    options = _parser().parse_args(argv)
    if absent := [name for name in ("pytest", "hypothesis", "tqdm") if importlib.util.find_spec(name) is None]:
        print(f"the conformance suite needs {', '.join(absent)}: `pip install 'xpgrad[conformance]'`", file=sys.stderr)
        return USAGE
    from xpgrad_conformance.journal import JournalError
    from xpgrad_conformance.known import KnownError
    from xpgrad_conformance.report import ReportError
    from xpgrad_conformance.selection import SelectionError

    try:
        return int(globals()[f"_{options.command or 'run'}"](options))
    except (_UsageError, JournalError, KnownError, ReportError, SelectionError, OSError) as exc:
        print(f"xpgrad conformance: {exc}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        kept = (
            "; the same command goes on from there" if getattr(options, "journal", None) else "; with `--journal FILE` a run can be resumed"
        )
        print(f"\nxpgrad conformance: interrupted{kept}", file=sys.stderr)
        return INTERRUPTED


# -- running --------------------------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from xpgrad_conformance.targets import Configuration, installed

    configurations = [Configuration(name, name) for name in options.backend] + (installed() if options.all else [])
    if not configurations:
        raise _UsageError("say which backend: --backend X, or --all (`xpgrad backends` lists those available)")
    return _finish(_results(configurations, options), options)


def _oracle(options: argparse.Namespace) -> int:
    from xpgrad_conformance.targets import Configuration

    return _finish(_results([Configuration("pytorch", "pytorch")], options), options)


def _results(configurations: Sequence[Any], options: argparse.Namespace) -> Any:
    """Run the suite on each configuration, with a progress bar or, without a terminal, a line now and then; return the report."""
    from tqdm import tqdm

    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.engine import Result
    from xpgrad_conformance.journal import Journal
    from xpgrad_conformance.known import load
    from xpgrad_conformance.report import Report, Target
    from xpgrad_conformance.selection import select
    from xpgrad_conformance.session import UNTRIED, Request, run

    chosen = select(contracts(), options.only, getattr(options, "suite_version", None))
    for path in options.known:
        load(path)  # a mistake in the file is reported before anything runs
    if options.max_crashes < 1:
        raise _UsageError(f"--max-crashes {options.max_crashes}: give the number of crashes, at least 1")
    settings = {"profile": options.profile, "seed": options.seed, "known": options.known}
    journal = Journal(None if options.journal is None else Path(options.journal), settings)
    recorded = journal.read()
    targets = []
    said = time.monotonic()
    with tqdm(total=len(chosen) * len(configurations), unit="contract", disable=None) as bar:
        for configuration in configurations:
            label = configuration.label
            done = {c.id: Result(**recorded[f"{label} {c.id}"]) for c in chosen if f"{label} {c.id}" in recorded}
            if done:  # the last contract runs again, so that the run learns the name and the capabilities of the library
                done.popitem()
            failed = sum(r.status in ("failed", "unexpected pass") for r in done.values())
            count = len(done)
            bar.update(count)

            def step(result: Result, label: str = label) -> None:
                nonlocal failed, count, said
                if result.status != "not run" or result.kind not in UNTRIED:
                    journal.add(f"{label} {result.id}", result._asdict())
                failed += result.status in ("failed", "unexpected pass")
                count += 1
                state = f"{label}: {result.id}" + (f" ({failed} failed)" if failed else "")
                bar.set_description(state)
                bar.update()
                if bar.disable and time.monotonic() - said > _SECONDS:
                    said = time.monotonic()
                    print(f"{state}, {count} of {len(chosen)} contracts", file=sys.stderr, flush=True)

            request = Request(
                configuration.device, label, [c for c in chosen if c.id not in done], options.profile, options.seed, options.known,
                options.limit, configuration.environment, getattr(options, "exitfirst", False), crashes=options.max_crashes,
            )  # fmt: skip
            outcome = run(request, step)
            rows = {row.id: row for row in (*done.values(), *outcome.rows)}
            targets.append(Target.of(label, configuration.device, outcome._replace(rows=[rows[c.id] for c in chosen])))
    return Report.new(targets, options.profile, options.seed)


def _finish(report: Any, options: argparse.Namespace) -> int:
    from xpgrad_conformance.render import terminal

    print(terminal(report), end="")
    _write(report, options)
    if any(t.cause for t in report.targets):
        return NO_TARGET
    return 0 if all(t.conforms for t in report.targets) else FAILED


def _write(report: Any, options: argparse.Namespace) -> None:
    from xpgrad_conformance import html, render

    forms = {"json": lambda r: r.to_json(), "html": html.page, "markdown": render.markdown, "junit": render.junit, "badge": render.badge}
    for name, form in forms.items():
        if path := getattr(options, name):
            Path(path).write_text(form(report), encoding="utf-8")
            print(f"{name} written to {path}", file=sys.stderr)


def _mutants(options: argparse.Namespace) -> int:
    from xpgrad_conformance import random_mutants
    from xpgrad_conformance.faults import MutantError
    from xpgrad_conformance.mutants import complete, full, replay
    from xpgrad_conformance.reach import ReachError

    journal = None if options.journal is None else Path(options.journal)
    if journal is not None and not options.full and options.random is None:
        raise _UsageError("--journal is for --full and --random")
    if options.random is not None and options.random < 1:
        raise _UsageError(f"--random {options.random}: give the number of mutants, at least 1")
    try:
        if options.random is not None:
            patterns = options.files or random_mutants.CORE
            return random_mutants.command(options.random, options.seed, patterns, options.jobs, not options.no_tests, options.json, journal)
        if options.missing:
            return complete(options.jobs)
        if options.full:
            return full(options.jobs, journal)
        return replay(options.jobs)
    except (MutantError, ReachError) as exc:  # the table does not match the sources, or a backend or coverage.py is not installed
        raise _UsageError(str(exc)) from exc


# -- looking --------------------------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.selection import select

    for contract in select(contracts(), options.only, options.suite_version):
        mark = "" if contract.function is not None else f"  (not checked: {contract.reason})"
        print(f"{contract.id}  {contract.rule.level:6}  {contract.rule.rule}{mark}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    from xpgrad_conformance.catalogue import groups, pages
    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.known import bundled
    from xpgrad_conformance.report import Report
    from xpgrad_conformance.selection import select

    (contract, *more) = select(contracts(), [options.contract])
    if more:
        raise _UsageError(f"{options.contract!r} names {len(more) + 1} contracts; give the id of one")
    rule = contract.rule
    print(f"{rule.id}  {rule.level}  {groups()[rule.group]}\n\n{rule.rule}")
    for name in ("detail", "policy"):
        if getattr(rule, name):
            print(f"\n{name.capitalize()}: {getattr(rule, name)}")
    print("\nSource: " + "; ".join(f"{pages()[k].title} {pages()[k].url}".strip() for k in rule.source))
    print("Seen to hold on PyTorch 2.13." if rule.checked_on_pytorch else "From documentation only.")
    if contract.requires:
        print(f"Requires: {', '.join(contract.requires)}")
    if contract.function is None:
        print(f"\nNot checked: {contract.reason}")
    else:
        print(f"\n{inspect.getsource(contract.function)}")
    for known in bundled():
        if known.contract == rule.id:
            print(f"Expected to fail on {known.backend} ({known.kind}): {known.reason}")
    for path in options.reports:
        for target in Report.load(path).targets:
            for row in target.rows:
                if row.id == rule.id:
                    print(f"{target.label}: {row.status}" + (f": {row.message or row.reason}" if row.status != "passed" else ""))
                    if row.left_out:
                        print(f"  left out: {row.left_out}")
    return 0


def _repro(options: argparse.Namespace) -> int:
    import ast

    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.engine import PROFILES, execute
    from xpgrad_conformance.facade import open_library
    from xpgrad_conformance.report import Report

    report = Report.load(options.report)
    rows = [(t, r) for t in report.targets for r in t.rows if r.id == options.contract and options.target in (None, t.label)]
    failing = [(t, r) for t, r in rows if r.status in ("failed", "expected failure")]
    if not failing:
        raise _UsageError(
            f"{options.report} has no failure of {options.contract!r}" + (f" on {options.target!r}" if options.target else "")
        )
    target, row = failing[0]
    contract = contracts()[row.id]
    case = ast.literal_eval(row.example) if row.example else None
    print(f"{row.id} on {target.label}" + (f" with {row.example}" if case else "") + f"\n{contract.rule.rule}\n")
    library = open_library(target.device)
    result, error = execute(contract, library, PROFILES[report.profile], seed=report.seed, replay=case)
    if error is None:
        print(f"It does not fail here: {result.status}{': ' if result.reason else ''}{result.reason}")
        return 0
    traceback.print_exception(error)
    return FAILED


def _report(options: argparse.Namespace) -> int:
    from xpgrad_conformance.render import terminal
    from xpgrad_conformance.report import Report, differences

    if options.action == "show":
        report = Report.load(options.report)
        _write(report, options)
        print(terminal(report), end="")
        return 0
    changes = list(differences(Report.load(options.old), Report.load(options.new)))
    for change in changes:
        print(f"{'WORSE ' if change.worse else 'change'}  {change.label}  {change.id}: {change.old} -> {change.new}")
    worse = sum(c.worse for c in changes)
    print(f"{len(changes)} change{'' if len(changes) == 1 else 's'}, {worse} for the worse")
    return FAILED if worse else 0


# -- publishing -----------------------------------------------------------------------------------------------------------------------


def _catalogue(options: argparse.Namespace) -> int:
    from xpgrad_conformance.pages import catalogue_page

    Path(options.path).write_text(catalogue_page(), encoding="utf-8")
    return 0


def _publish(options: argparse.Namespace) -> int:
    from xpgrad_conformance import render
    from xpgrad_conformance.report import Report
    from xpgrad_conformance.targets import PUBLISHED

    docs = Path(options.docs)
    if not docs.is_dir():
        raise _UsageError(f"the folder {docs} does not exist")
    report = _results(PUBLISHED, options)
    if options.merge:
        old = {t.label: t for t in Report.load(options.merge).targets}
        report = report._replace(targets=[old.get(t.label, t) if t.cause else t for t in report.targets])
    _write_pages(docs, report)
    print(render.terminal(report), end="")
    return 0 if all(t.conforms or t.cause for t in report.targets) else FAILED


def _write_pages(docs: Path, report: Any) -> None:
    """Write the pages `contracts.md` and `conformance.md`, and the report itself (JSON, HTML, badge) in the folder `conformance`."""
    from xpgrad_conformance import html, render
    from xpgrad_conformance.pages import catalogue_page

    folder = docs / "conformance"
    folder.mkdir(exist_ok=True)
    (docs / "contracts.md").write_text(catalogue_page(), encoding="utf-8")
    (docs / "conformance.md").write_text(render.markdown(report), encoding="utf-8")
    (folder / "report.json").write_text(report.to_json(), encoding="utf-8")
    (folder / "report.html").write_text(html.page(report), encoding="utf-8")
    (folder / "badge.svg").write_text(render.badge(report), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
