"""Run another project's own tests with xpgrad as one more array library: ``python -m xpgrad.testing.suites scipy``.

The installed package is copied by links to a folder, in which a few lines are inserted that name xpgrad; the installation itself is not
changed. `python -m xpgrad.testing.suites scipy --patch` prints these lines as a patch, for the maintainers of the project.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xpgrad.testing._suite_plugin import CONVERSIONS, DERIVATIVES, OUTCOMES, SHARE

__all__ = ["Suite", "SuiteError", "load", "patch", "prepare", "run"]

#: One file of facts for each project.
FOLDER = Path(__file__).parent / "_suites"


#: How an error says that something without a derivative refuses a Tensor that requires grad, or a copy of one with a history. The text is
#: Python's traceback, in which source code is indented further.
_REFUSAL = r"^ {0,2}\S.*(?:requires grad|\(graph leaves\) support the)"


class SuiteError(RuntimeError):
    """The tests of a project cannot be run: it is not installed, or its files differ from those that the lines were written for."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Lines that name xpgrad, and their place.

    Attributes
    ----------
    file : str
        The file, relative to the package.
    at : str
        A part of the line, which occurs once in the file.
    text : str
        What is inserted: a whole line or several before that line if it ends with a newline, else text directly after `at`.
    before : str
        The first version of the project that does not need it; empty if all do.
    """

    file: str
    at: str
    text: str
    before: str = ""

    def apply(self, source: str) -> str:
        """Return the source of the file with the text in its place.

        Raises
        ------
        SuiteError
            `at` does not occur exactly once.
        """
        if source.count(self.at) != 1:
            msg = (
                f"{self.file} has {self.at!r} {source.count(self.at)} times, and not once: its version differs from the one that was tried"
            )
            raise SuiteError(msg)
        place = source.index(self.at)
        if not self.text.endswith("\n"):
            place += len(self.at)
            return source[:place] + self.text + source[place:]
        place = source.rfind("\n", 0, place) + 1
        return source[:place] + self.text + source[place:]


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one project.

    Attributes
    ----------
    name : str
        The name of the distribution.
    package : str
        The name of its package, which contains its tests.
    tried : str
        The version that was tried.
    environment : dict of str to str
        Variables that its tests need.
    arguments : tuple of str
        Arguments of pytest, which select the tests that take an array library. ``{folder}`` stands for the folder of the package.
    needs : tuple of str
        The modules that its tests import, besides pytest and what the project itself needs.
    conversions : tuple of str
        The names that its tests give to functions that convert or compare results.
    refusals : tuple of str
        Regular expressions for the errors with which its code in C replaces a refusal.
    insertions : tuple of Insertion
    expected : dict of str to str
        By regular expression for the name of a test: the reason why it fails.
    differing : dict of str to str
        The same for tests whose derivatives are not those of differences.
    """

    name: str
    package: str
    tried: str
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    insertions: tuple[Insertion, ...] = ()
    expected: Mapping[str, str] = field(default_factory=dict)
    differing: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The installed version.

        Raises
        ------
        SuiteError
            The project is not installed.
        """
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:
            msg = f"{self.name} is not installed; `pip install {self.name}` installs it"
            raise SuiteError(msg) from None

    @property
    def source(self) -> Path:
        """The folder of the installed package."""
        version = self.version
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            msg = f"{self.name} {version} has no package {self.package!r}"
            raise SuiteError(msg)
        return Path(next(iter(found.submodule_search_locations)))

    def reason(self, outcome: Mapping[str, Any]) -> str | None:
        """Return the reason why a test that failed was expected to fail; None if it was expected to pass."""
        known = self.differing if outcome.get("derivatives") == "wrong" else self.expected
        return next((reason for pattern, reason in known.items() if re.search(pattern, outcome["test"])), None)


def names() -> list[str]:
    """Return the names of the projects."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Suite:
    """Return the suite of a project.

    Raises
    ------
    SuiteError
        There is none of this name.

    Examples
    --------
    >>> from xpgrad.testing import suites
    >>> suites.load("scipy").package
    'scipy'
    """
    if name not in names():
        msg = f"there is no suite {name!r}; there are {', '.join(names())}"
        raise SuiteError(msg)
    facts = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    insertions = tuple(Insertion(**i) for i in facts.pop("insert", []))
    expected, differing = ({e["tests"]: e["reason"] for e in facts.pop(name, [])} for name in ("expected", "differing"))
    facts |= {key: tuple(facts.get(key, ())) for key in ("arguments", "needs", "conversions", "refusals")}
    return Suite(name=name, insertions=insertions, expected=expected, differing=differing, **facts)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _changed(suite: Suite) -> dict[str, tuple[str, str]]:
    """Return the files with insertions: the source before and after, by name."""
    changed: dict[str, tuple[str, str]] = {}
    for insertion in suite.insertions:
        if insertion.before and _numbers(suite.version) >= _numbers(insertion.before):
            continue
        if insertion.file not in changed:
            path = suite.source / insertion.file
            if not path.is_file():
                msg = f"{suite.name} {suite.version} has no file {insertion.file}, which lists the array libraries; {suite.tried} has it"
                raise SuiteError(msg)
            text = path.read_text(encoding="utf-8")
            changed[insertion.file] = text, text
        before, after = changed[insertion.file]
        changed[insertion.file] = before, insertion.apply(after)
    return changed


def patch(suite: Suite) -> str:
    """Return the insertions as a patch of the installed version, with paths relative to the folder that contains the package.

    Raises
    ------
    SuiteError
        The project is not installed, or its files differ from those that were tried.
    """
    lines: list[str] = []
    for file, (before, after) in _changed(suite).items():
        path = f"{suite.package}/{file}"
        lines += difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(lines)


def prepare(suite: Suite, folder: Path) -> Path:
    """Make a copy of the package in `folder`, of links except for the files with insertions, and return its folder.

    Raises
    ------
    SuiteError
        The project is not installed, or its files differ from those that were tried.
    """
    changed, source, target = _changed(suite), suite.source, folder / suite.package
    real = {folder for file in changed for folder in Path(file).parents}
    _link(source, target, Path(), real)
    for file, (_, after) in changed.items():
        (target / file).unlink(missing_ok=True)
        (target / file).write_text(after, encoding="utf-8")
    for libraries in source.parent.glob("*.libs"):  # shared libraries of wheels, which extension modules look for beside their package
        (folder / libraries.name).symlink_to(libraries)
    return target


def _link(source: Path, target: Path, below: Path, real: set[Path]) -> None:
    """Link the contents of one folder; folders in `real` become folders of their own."""
    (target / below).mkdir(parents=True, exist_ok=True)
    for entry in (source / below).iterdir():
        if entry.name == "__pycache__":
            continue
        if below / entry.name in real:
            _link(source, target, below / entry.name, real)
        else:
            (target / below / entry.name).symlink_to(entry)


def run(
    suite: Suite, share: str = "0/1", extra: Sequence[str] = (), requires_grad: bool = False, derivatives: bool = False
) -> list[dict[str, Any]]:
    """Run the tests of a project, whose output goes to the terminal, and return the outcomes.

    Parameters
    ----------
    suite : Suite
    share : str
        ``K/N`` runs each N-th test.
    extra : sequence of str
        More arguments of pytest.
    requires_grad : bool
        Whether the floating-point Tensors that the tests make require grad. Then the outcome is also "refused", if the test failed because
        something that has no derivative refuses a Tensor that requires grad; ``results`` are the numbers of floating-point results that
        were compared, and of those with a history.
    derivatives : bool
        Whether the derivatives of what tests compare, by the floating-point arrays that they make, are compared with differences. Then
        ``derivatives`` is one of `DERIVATIVES` for each test that ran, and ``reason`` says more; a test fails if they are "wrong".

    Returns
    -------
    list of dict
        For each test its name (``test``), ``outcome`` ("passed", "failed", "skipped" or "xfailed"), ``seconds`` and the end of its
        ``text``.

    Raises
    ------
    SuiteError
        The project or a module that its tests import is not installed, its files differ from those that were tried, or no test ran.
    """
    lacks = [module for module in ("pytest", *suite.needs) if importlib.util.find_spec(module) is None]
    if lacks:
        msg = f"the tests of {suite.name} import {', '.join(lacks)}; `pip install {' '.join(lacks)}` installs what is missing"
        raise SuiteError(msg)
    with tempfile.TemporaryDirectory(prefix="suite-") as name:
        folder = Path(name)
        package = prepare(suite, folder)
        outcomes = folder / "outcomes.jsonl"
        paths = [str(folder), *(p for p in sys.path if p)]
        environment = os.environ | dict(suite.environment)
        environment |= {"PYTHONPATH": os.pathsep.join(paths), SHARE: share, OUTCOMES: str(outcomes)}
        arguments = [a.replace("{folder}", str(package)) for a in suite.arguments]
        environment |= {CONVERSIONS: " ".join(suite.conversions)}
        plugins = ["-p", "no:cacheprovider", "-p", "xpgrad.testing._suite_plugin"]
        # Python's tracebacks, because thousands of tests are refused: pytest parses whole files for each of its own.
        plugins += ["-p", "xpgrad.testing._suite_gradients", "--tb=native"] if requires_grad else []
        plugins += ["-p", "xpgrad.testing._suite_derivatives"] if derivatives else []
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments, *extra]
        code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
        if not outcomes.exists():
            msg = f"no test of {suite.name} ran: pytest ended with the exit code {code}"
            raise SuiteError(msg)
        lines = [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]
    found = list(_last(lines).values())
    refusal = re.compile("|".join((_REFUSAL, *suite.refusals)), re.MULTILINE)
    for outcome in found if requires_grad else []:
        if outcome["outcome"] == "failed" and refusal.search(outcome["text"]):
            outcome["outcome"] = "refused"
    return found


def _last(lines: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return one outcome for each test: a failure of its set-up, call or tear-down, else what is known last."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        if found.get(line["test"], {}).get("outcome") != "failed":
            found[line["test"]] = line
    return found


def summary(suite: Suite, outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return the outcomes as a table in Markdown by module, and the failures: each unexpected one, and the reasons of the expected ones."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failures: list[tuple[str, str | None]] = []
    for outcome in outcomes:
        test, kind = outcome["test"], outcome["outcome"]
        module = "/".join(test.partition("::")[0].split("/")[1:3]) if test.startswith(f"{suite.package}/") else test.partition("::")[0]
        reason = suite.reason(outcome) if kind == "failed" else None
        shown = "expected" if reason else outcome.get("derivatives", kind) if kind == "passed" else kind
        counts[module][shown] += 1
        counts["all"][shown] += 1
        if kind == "failed":
            failures.append((test, reason))
    passed = [*DERIVATIVES] if any("derivatives" in outcome for outcome in outcomes) else ["passed"]
    optional = {*DERIVATIVES, "refused"}
    kinds = [*dict.fromkeys([*passed, "failed", "expected", "skipped", "xfailed", "refused"])]
    kinds = [kind for kind in kinds if counts["all"][kind] or kind not in optional]
    head = ["expected failures" if kind == "expected" else kind for kind in kinds]
    rows = [f"| {module} | {' | '.join(str(count[kind]) for kind in kinds)} |" for module, count in sorted(counts.items(), key=_all_last)]
    table = [f"| tests in | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}", *rows]
    lines = [f"* unexpected: `{test}`" for test, reason in failures if reason is None]
    for reason, tests in itertools.groupby(sorted((r, t) for t, r in failures if r is not None), key=lambda pair: pair[0]):
        found = [test for _, test in tests]
        lines.append(f"* {len(found)} expected, e.g. `{found[0]}`: {reason}")
    constant = [o["test"] for o in outcomes if o["outcome"] == "passed" and o.get("results", [0, 1])[0] and not o["results"][1]]
    lines += [f"* {len(constant)} passed whose results have no history, e.g. `{constant[0]}`"] if constant else []
    return "\n".join([*table, *([""] if lines else []), *lines])


def _all_last(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] == "all", item[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return 1 if a test failed that was expected to pass."""
    parser = argparse.ArgumentParser("python -m xpgrad.testing.suites", description="Run another project's own tests with xpgrad.")
    parser.add_argument("project", choices=names())
    parser.add_argument("--patch", action="store_true", help="print the lines that are inserted, as a patch, and run nothing")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="run each N-th test, e.g. 3/50 for the fourth of each fifty")
    parser.add_argument("--requires-grad", action="store_true", help="let all floating-point inputs require grad")
    parser.add_argument("--derivatives", action="store_true", help="compare the derivatives of all results with differences")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes")
    parser.epilog = "Arguments after -- are pytest's."
    given = list(sys.argv[1:] if argv is None else argv)
    end = given.index("--") if "--" in given else len(given)
    chosen, of_pytest = parser.parse_args(given[:end]), given[end + 1 :]
    if re.fullmatch(r"\d+/[1-9]\d*", chosen.share) is None:
        parser.error(f"--share must be K/N, e.g. 0/50, but got {chosen.share!r}")
    try:
        suite = load(chosen.project)
        if chosen.patch:
            print(patch(suite), end="")
            return 0
        outcomes = run(suite, chosen.share, of_pytest, chosen.requires_grad, chosen.derivatives)
    except SuiteError as exc:
        print(f"suites: {exc}", file=sys.stderr)
        return 2
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
    print(f"\n{suite.name} {suite.version}, share {chosen.share}\n\n{summary(suite, outcomes)}")
    return int(any(o["outcome"] == "failed" and suite.reason(o) is None for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
