"""Law: the conformance suite is reliable: its runner survives whatever a backend does and reports everything, and its two front ends agree.

Each test writes its faulty backend as a plugin into a folder. What the suite says about sound backends is the subject of its contracts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import xpgrad as xp
from backends.test_registry import HEAD, install
from project.test_cli_backends import TABLE
from xpgrad_conformance import catalogue, check_backend, html, mutants, render, session
from xpgrad_conformance.catalogue import LEVELS, CatalogueError, groups, pages, rules, versions
from xpgrad_conformance.cli import main
from xpgrad_conformance.contract import Contract, contract, contracts, unchecked
from xpgrad_conformance.engine import PROFILES, STATUSES, Result, execute, tally
from xpgrad_conformance.facade import Library, NotRun, open_library
from xpgrad_conformance.faults import Mutant, MutantError, load as load_faults
from xpgrad_conformance.known import KnownError, bundled, load
from xpgrad_conformance.reach import Reach, folder_of
from xpgrad_conformance.report import Report, ReportError, Target, differences
from xpgrad_conformance.selection import select

ROOT = Path(__file__).resolve().parents[2]
#: Contracts that run quickly; BWD-01 calls `sin`.
FEW = "BWD-01,BWD-02,BWD-03,BWD-40"


def command(*args: str, path: Path | None = None, cwd: Path | None = None, **variables: str) -> Any:
    """Run ``xpgrad conformance ...`` in a separate process."""
    environment = {**os.environ, **variables}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    run = [sys.executable, "-m", "xpgrad", "conformance", *args]
    return subprocess.run(run, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


def plugin(path: Path, change: str) -> None:
    """Write a plugin with the backend "odd": NumPy's table with a change."""
    install(path, "odd", "odd_plugin", HEAD + TABLE.format(change=change, options=""))


def statuses(report: Path) -> dict[str, str]:
    (target,) = Report.load(report).targets
    return {row.id: row.status for row in target.rows}


# -- the catalogue -----------------------------------------------------------------------------------------------------------------


def test_every_rule_has_one_contract_and_every_field() -> None:
    every = contracts()
    assert list(every) == list(rules())
    assert len(every) == 498
    for name, rule in rules().items():
        assert re.fullmatch(r"[A-Z]{3}-\d\d", name)
        assert rule.level in LEVELS
        assert rule.group in groups()
        assert rule.rule.endswith(".")
        assert rule.source
        assert set(rule.source) <= set(pages())
        assert rule.since in versions()
        assert (every[name].function is None) == bool(every[name].reason)
        module = every[name].module.rpartition(".")[2]
        assert module[0].upper() == rule.group, f"{name} is in {module}"


#: The number of rules of each released version of the suite, which never changes.
RELEASED = {"0.1": 484}


def test_each_version_keeps_its_contracts() -> None:
    """A released version is a fixed set of contracts: a rule that is added later says so, and none disappears."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+)\.0\] - \d{4}-", changes, re.MULTILINE)
    assert sorted(released) == sorted(RELEASED), "add the number of rules of the new version"
    assert {version: len(select(contracts(), (), version)) for version in RELEASED} == RELEASED
    newest = xp.__version__.rpartition(".")[0]
    assert set(versions()) <= {*RELEASED, newest}
    assert select(contracts(), (), versions()[-1]) == list(contracts().values())


@pytest.mark.parametrize("since", [None, "", "next", "0.2.0"])
def test_a_rule_without_a_version_is_refused(since: str | None) -> None:
    row = {**rules()["BWD-01"]._asdict(), "since": since}
    with pytest.raises(CatalogueError, match=r"BWD-01: since=.*, expected the version that introduces the rule"):
        catalogue._rule({name: value for name, value in row.items() if value is not None})


@pytest.mark.slow
def test_a_version_of_the_suite_can_be_chosen(tmp_path: Path, capsys: Any) -> None:
    report = tmp_path / "r.json"
    words = ["--backend", "numpy", "--profile", "quick", "--suite-version", "0.1", "--json", str(report)]
    assert main([*words, "--only", "BWD-01,SAV"]) == 0
    assert set(statuses(report)) == {"BWD-01", *(f"SAV-{n:02}" for n in range(1, 20))}
    assert main([*words, "--only", "SAV-20"]) == 2
    assert "'SAV-20' names no contract of version 0.1;" in capsys.readouterr().err
    assert main(["list", "--suite-version", "9.0"]) == 2
    assert "the suite has no version '9.0'; its versions are 0.1, 0.3" in capsys.readouterr().err
    assert main(["list", "--suite-version", "0.1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 484
    collect = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]
    suite = ["--pyargs", "xpgrad_conformance", "--xpgrad-backend", "numpy", "--xpgrad-suite-version", "0.1"]
    (tmp_path / "test_mine.py").write_text(
        "from xpgrad_conformance.suite import ConformanceTests\n\n\n"
        "class TestMine(ConformanceTests):\n    backend = 'numpy'\n    suite_version = '0.1'\n",
        encoding="utf-8",
    )
    for words in (suite, ["test_mine.py"]):
        run = subprocess.run([*collect, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "484 tests collected" in run.stdout, run.stdout[-2000:] + run.stderr


def test_contracts_without_a_rule_and_two_for_one_are_refused() -> None:
    contracts()  # all of them are registered
    with pytest.raises(CatalogueError, match="'NON-01', which is not a rule"):
        contract("NON-01")(print)
    with pytest.raises(CatalogueError, match="two contracts for BWD-01"):
        unchecked("BWD-01", "because")


def test_the_expected_failures_are_of_contracts_that_run() -> None:
    known = bundled()
    assert known
    assert all(contracts()[k.contract].function is not None for k in known)


@pytest.mark.slow
def test_the_planted_faults_are_about_the_sources_as_they_are() -> None:
    """`xpgrad conformance mutants` checks this too, and much more, but takes minutes."""
    for mutant in load_faults().values():
        if folder_of(mutant.file.partition("/")[0]) is not None:
            assert mutants.mutated(mutant)
    assert mutants.missing_proofs() == []


def test_a_fault_that_is_stale_or_no_program_is_refused() -> None:
    sound = next(iter(load_faults().values()))
    for broken, phrase in ((sound._replace(old="no such text"), "occurs 0 times"), (sound._replace(new="(" + sound.new), "no program")):
        with pytest.raises(MutantError, match=phrase):
            mutants.mutated(broken)


def test_a_full_run_that_was_interrupted_goes_on_from_its_journal(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    faults = {name: Mutant(name, "", "xpgrad/a.py", "a", "b") for name in ("one", "two", "three")}
    tried: list[str] = []
    journal = tmp_path / "journal"

    def survey(mutant: Any, chosen: Any, target: str = "numpy", runner: Any = None) -> dict[str, str]:
        if mutant is None:
            return {"BWD-01": "passed", "BWD-02": "passed"}
        if mutant.name == "two" and not tried.count("two"):
            tried.append("two")
            deadline = time.monotonic() + 20
            while not journal.exists() and time.monotonic() < deadline:  # until "one" is in the journal
                time.sleep(0.01)
            raise KeyboardInterrupt
        tried.append(mutant.name)
        assert [c.id for c in chosen] == ["BWD-01"]  # the other contract does not run the statement
        return {"BWD-01": "failed" if mutant.name != "three" else "passed"}

    monkeypatch.setattr(mutants, "survey", survey)
    monkeypatch.setattr(mutants, "load", lambda: faults)
    monkeypatch.setattr(mutants, "_read_source", lambda mutant: "a\n")
    monkeypatch.setattr(mutants, "reach", lambda target: Reach({}, {"BWD-01": None, "BWD-02": {}}))
    monkeypatch.setattr(mutants, "KILLS", tmp_path / "kills.toml")
    assert main(["mutants", "--full", "--jobs", "1", "--journal", str(journal)]) == 130
    assert "interrupted; the same command goes on from there" in capsys.readouterr().err
    with journal.open("a", encoding="utf-8") as file:
        file.write('\n["thr')  # cut off
    assert main(["mutants", "--full", "--jobs", "1", "--journal", str(journal)]) == 1
    assert tried.count("one") == 1
    assert "3 faults, 2 kills" in capsys.readouterr().out
    assert 'one = "BWD-01"\ntwo = "BWD-01"\n\n' in (tmp_path / "kills.toml").read_text(encoding="utf-8")
    assert main(["mutants", "--journal", str(journal)]) == 2

    def missing(*arguments: Any) -> Any:
        raise MutantError("the package 'xpgrad_none' is not installed")

    monkeypatch.setattr(mutants, "survey", missing)
    assert main(["mutants", "--full"]) == 2
    assert "xpgrad_none" in capsys.readouterr().err


def test_the_page_of_the_catalogue_is_current(tmp_path: Path) -> None:
    assert main(["catalogue", str(tmp_path / "contracts.md")]) == 0
    assert (tmp_path / "contracts.md").read_text(encoding="utf-8") == (ROOT / "docs" / "contracts.md").read_text(encoding="utf-8"), (
        "run `xpgrad conformance catalogue`"
    )


# -- one contract ------------------------------------------------------------------------------------------------------------------


class Fake(Library):
    """A library that has nothing but capabilities."""

    label, capabilities = "fake", {"strides": False, "complex": True}

    def running(self) -> Any:
        import contextlib

        return contextlib.nullcontext()


def one(function: Any, **keywords: Any) -> Result:
    from xpgrad_conformance.known import Known

    draw, requires = keywords.pop("draw", {}), keywords.pop("requires", ())
    known = Known("BWD-01", "bug", "we know", **keywords.pop("known")) if "known" in keywords else None
    profile = PROFILES["quick"]._replace(examples=200)
    return execute(Contract("BWD-01", function, requires, draw), Fake(), profile, known=known, **keywords)[0]


def fails(lib: Any) -> None:
    raise ValueError("no")


def test_each_status() -> None:
    assert one(lambda lib: None).status == "passed"
    failed = one(fails)
    assert (failed.status, failed.message) == ("failed", "ValueError: no")
    assert one(fails, known={}).status == "expected failure"
    surprise = one(lambda lib: None, known={})
    assert surprise.status == "unexpected pass"
    assert "remove the entry" in surprise.reason
    assert one(lambda lib: None, known={"strict": False}).status == "passed"
    assert one(lambda lib: None, requires=("strides",)).reason == "declared: no `strides`"
    assert one(lambda lib: None, requires=("complex",)).status == "passed"
    assert one(lambda lib: lib.needs("strides")).reason == "declared: no `strides`"
    assert {r.status for r in (failed, surprise, one(None))} <= set(STATUSES)


def needs_strides(*labels: str) -> Any:
    """Return a contract of three cases, of which those with the given labels need strides, and "wrong" fails."""

    def function(lib: Any, wrong: bool = False) -> None:
        for label in ("one", "two", "three"):
            with lib.case(label):
                if label in labels:
                    lib.needs("strides")
                assert label not in {"three"} or not wrong

    return function


def test_only_cases_that_need_what_is_missing_are_left_out() -> None:
    from hypothesis import strategies as st

    some, every = needs_strides("one", "two"), needs_strides("one", "two", "three")
    left = one(some)
    assert (left.status, left.left_out) == ("passed", "2 of 3 cases: declared: no `strides` (one; two)")
    assert (one(every).status, one(every).reason, one(every).kind) == ("not run", "declared: no `strides`", "capability")
    assert one(needs_strides()).left_out == ""
    wrong = one(lambda lib: some(lib, wrong=True))
    assert (wrong.status, wrong.left_out) == ("failed", "2 of 2 cases: declared: no `strides` (one; two)")
    assert one(lambda lib: some(lib, wrong=True), known={}).left_out
    assert one(some, known={}).status == "unexpected pass"
    assert one(every, known={}).status == "not run"
    # A case that contains others, and drawn cases, are counted if nothing in them was left out.
    assert one(nested).status == "not run"
    drawn = {"draw": {"n": st.integers(0, 1)}}
    assert one(lambda lib, n: lib.needs("strides") if n else None, **drawn).left_out == "1 of 2 cases: declared: no `strides` ({'n': 1})"
    assert one(lambda lib, n: lib.needs("strides"), **drawn).status == "not run"
    # An error of another kind does not leave out a case, whatever is missing besides.
    assert one(not_here).status == "not run"
    assert execute(Contract("BWD-01", not_here), Fake(), PROFILES["certify"])[0].status == "failed"


def nested(lib: Any) -> None:
    with lib.case("outer"), lib.case("inner"):
        lib.needs("strides")


def not_here(lib: Any) -> None:
    with lib.case("compiled"):
        raise NotRun("no compiler here")


def test_reports_show_cases_that_were_left_out() -> None:
    row = Result("DER-01", "passed", left_out="1 of 3 cases: declared: no function `conj` (conj)")
    target = Target("odd", "odd", "odd 1.0", {}, [row])
    report = Report.new([target], "quick", None)
    assert target.conforms
    for text in (render.terminal(report), render.markdown(report), render.junit(report), html.page(report)):
        assert "1 of 3 cases: declared: no function" in text
    assert Report.from_json(report.to_json()).targets[0].rows == [row]
    whole = Report.new([target._replace(rows=[Result("DER-01", "passed")])], "quick", None)
    none = Report.new([target._replace(rows=[Result("DER-01", "not run")])], "quick", None)
    assert [(c.old, c.new, c.worse) for c in differences(whole, report)] == [("passed", "passed, cases left out", True)]
    assert [(c.old, c.new, c.worse) for c in differences(report, whole)] == [("passed, cases left out", "passed", False)]
    assert [c.worse for c in (*differences(none, report), *differences(report, none))] == [False, True]


#: NumPy's arrays without `conj`, and with a kernel of `matmul` as given.
LACKS_CONJ = """missing = frozenset({{"conj"}})
    def namespace(self):
        library = super().namespace()
        return __import__("types").SimpleNamespace(**{{k: getattr(library, k) for k in dir(library) if k != "conj"}})
    def kernel(self, name):
        if name == "matmul": return {matmul}
        return None if name == "conj" else super().kernel(name)"""


@pytest.mark.parametrize(("factor", "status"), [(1.0, "passed"), (1.001, "failed")])
def test_a_missing_function_does_not_hide_a_wrong_derivative(tmp_path: Path, factor: float, status: str) -> None:
    """The case of `conj` comes before those of `matmul`."""
    plugin(tmp_path, LACKS_CONJ.format(matmul=f"lambda x, y: {factor} * np.matmul(x, y)"))
    report = tmp_path / "r.json"
    run = command("--backend", "odd", "--only", "DER-02", "--profile", "quick", "--json", str(report), path=tmp_path)
    assert statuses(report) == {"DER-02": status}, run.stdout + run.stderr
    assert re.search(r"LEFT OUT  DER-02: \d+ of \d+ cases: declared: no function `conj` \(", run.stdout)
    assert run.returncode == (status == "failed")


def test_certify_lets_nothing_be_left_out() -> None:
    def cannot(lib: Any) -> None:
        raise NotRun("no compiler here")

    profile = PROFILES["certify"]
    assert execute(Contract("BWD-01", cannot), Fake(), PROFILES["default"])[0].status == "not run"
    assert execute(Contract("BWD-01", cannot), Fake(), profile)[0].status == "failed"
    assert execute(Contract("BWD-01", lambda lib: lib.needs("strides")), Fake(), profile)[0].status == "not run"
    assert execute(Contract("BWD-01", None, reason="out of scope"), Fake(), profile)[0].status == "not run"


def test_the_smallest_failing_case_is_found_and_replayed() -> None:
    from hypothesis import strategies as st

    def body(lib: Any, n: int) -> None:
        assert n < 10

    found = one(body, draw={"n": st.integers(0, 1000)})
    assert (found.status, found.example) == ("failed", "{'n': 10}")
    assert one(body, draw={"n": st.integers(0, 1000)}, replay={"n": 7}).status == "passed"
    assert one(body, draw={"n": st.integers(0, 1000)}, replay={"n": 70}).status == "failed"
    # A pinned case is tried first, even if no drawn case would fail.
    assert one(body, draw={"n": st.integers(0, 9)}, known={"example": "{'n': 11}"}).status == "expected failure"
    assert one(body, draw={"n": st.integers(0, 9)}, known={}).status == "unexpected pass"


def test_what_is_drawn_is_the_same_each_time_and_follows_the_seed() -> None:
    from hypothesis import strategies as st

    def drawn(**keywords: Any) -> list[int]:
        seen: list[int] = []
        one(lambda lib, n: seen.append(n), draw={"n": st.integers(0, 2**60)}, **keywords)
        return seen

    assert drawn() == drawn()
    assert drawn(seed=1) == drawn(seed=1)
    assert drawn(seed=1) != drawn(seed=2)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ('[[known]]\ncontract = "BWD-99"\nkind = "bug"\nreason = "x"', "'BWD-99' is not a contract's id"),
        ('[[known]]\ncontract = "BWD-01"\nkind = "shame"\nreason = "x"', "kind='shame', expected one of bug, unsupported, todo, deviation"),
        ('[[known]]\ncontract = "BWD-01"\nkind = "bug"', "it needs a reason"),
        ('[[known]]\ncontract = "BWD-01"\nkind = "bug"\nreason = "x"\nstrickt = true', "unknown keys ['strickt']"),
        ('[[known]]\ncontract = "BWD-01"\nkind = "bug"\nreason = "x"\nexample = "f()"', "is not a literal"),
        ('[[known]]\ncontract = "BWD-01"\nkind = "bug"\nreason = "x"\nexample = "3"', "expected the arguments as a dict"),
        ("[known]\nx = 1\n[other]", "unknown tables ['other']"),
        ("not toml", "Expected"),
    ],
)
def test_files_of_expected_failures_are_checked(text: str, phrase: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KnownError, match=re.escape(phrase)):
        load(path)
    assert main(["--backend", "numpy", "--known", str(path), "--only", "BWD-03"]) == 2
    assert phrase in capsys.readouterr().err


# -- the runner --------------------------------------------------------------------------------------------------------------------


def test_a_sound_backend(tmp_path: Path) -> None:
    out = {name: tmp_path / name for name in ("json", "html", "markdown", "junit", "badge")}
    run = command("--backend", "numpy", "--only", FEW, *(w for name, path in out.items() for w in (f"--{name}", str(path))))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "== numpy (numpy 2." in run.stdout
    assert "NOT RUN  BWD-40: out of scope" in run.stdout
    assert statuses(out["json"]) == {"BWD-01": "passed", "BWD-02": "passed", "BWD-03": "passed", "BWD-40": "not run"}
    suite = ET.parse(out["junit"]).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "0", "1")
    assert "| numpy | numpy 2." in out["markdown"].read_text(encoding="utf-8")
    assert ET.parse(out["badge"]).getroot().get("aria-label", "").endswith("2/2 MUST")


@pytest.mark.slow
def test_a_crash_costs_one_contract(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'sin': lambda x: __import__('os').abort()}")
    run = command("--backend", "odd", "--backend", "numpy", "--only", FEW, "--json", str(tmp_path / "r.json"), path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    odd, numpy = Report.load(tmp_path / "r.json").targets
    assert [r.status for r in odd.rows] == ["failed", "passed", "passed", "not run"]
    assert odd.rows[0].kind == "crash"
    assert ("SIGABRT" if os.name == "posix" else "exit code") in odd.rows[0].message
    assert numpy.conforms


@pytest.mark.slow
def test_a_hang_costs_one_contract(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'sin': lambda x: __import__('time').sleep(600)}")
    run = command("--backend", "odd", "--only", FEW, "--limit", "3", "--json", str(tmp_path / "r.json"), path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert list(statuses(tmp_path / "r.json").values()) == ["failed", "passed", "passed", "not run"]
    assert "TIMED OUT  BWD-01 [MUST]" in run.stdout
    assert "no result within 3 s" in run.stdout
    row = Report.load(tmp_path / "r.json").targets[0].rows[0]
    assert "in <lambda>" in row.message.splitlines()[2]  # the place where it hung, innermost call first
    assert "a_backward.py" in row.message


@pytest.mark.parametrize(("ended", "kind"), [("no result within 3 s", "timeout"), ("crashed: SIGSEGV", "crash")])
@pytest.mark.parametrize("crashes", [2, 5])
def test_a_timeout_is_no_crash(ended: str, kind: str, crashes: int, monkeypatch: Any) -> None:
    """Any number of contracts may exceed their time limit; after some crashes the others are not tried."""
    chosen = [c for c in contracts().values() if c.function is not None][:8]

    @contextlib.contextmanager
    def start(request: Any, rest: Any, folder: Path, server: Any) -> Any:
        (folder / "output").touch()
        yield rest

    def events(rest: Any, path: Path, limit: float) -> Any:
        yield {"library": "none 1.0", "capabilities": {}}
        yield {"start": rest[0].id}
        yield {"ended": ended}

    monkeypatch.setattr(session, "_start_process", start)
    monkeypatch.setattr(session, "_read_events", events)
    rows = session.run(session.Request("numpy", "numpy", chosen, crashes=crashes)).rows
    tried = len(chosen) if kind == "timeout" else crashes
    assert [(r.status, r.kind) for r in rows] == [("failed", kind)] * tried + [("not run", "crash")] * (len(chosen) - tried)
    assert all("--max-crashes" in r.reason for r in rows[tried:])
    rows = session.run(session.Request("numpy", "numpy", chosen, crashes=9, timeouts=3)).rows
    assert [r.status for r in rows].count("failed") == (3 if kind == "timeout" else len(chosen))


@pytest.mark.slow
def test_a_run_that_was_ended_goes_on_from_its_journal(tmp_path: Path, capsys: Any) -> None:
    journal, report = tmp_path / "journal", tmp_path / "r.json"
    words = ["--backend", "numpy", "--only", FEW, "--journal", str(journal)]
    assert main([*words, "--json", str(report)]) == 0
    assert f"json written to {report}" in capsys.readouterr().err
    whole = journal.read_text(encoding="utf-8").split("\n")[1:]
    assert [json.loads(line)[0] for line in whole] == ["settings", *(f"numpy {name}" for name in ("BWD-01", "BWD-02", "BWD-03", "BWD-40"))]
    # As if it had been ended while it wrote the third result, and the first one were another.
    first = whole[1].replace('"passed"', '"failed"')
    journal.write_text("\n".join([whole[0], first, whole[2], whole[3][:20]]), encoding="utf-8")
    assert main([*words, "--json", str(report)]) == 1
    assert list(statuses(report).values()) == ["failed", "passed", "passed", "not run"]  # the first was not run again
    rows = [json.loads(line)[0] for line in journal.read_text(encoding="utf-8").split("\n") if not line.endswith(whole[3][:20])]
    assert rows == ["settings", "numpy BWD-01", "numpy BWD-02", "numpy BWD-02", "numpy BWD-03", "numpy BWD-40"]  # and the second was
    assert main([*words, "--seed", "3"]) == 2
    assert "is the journal of a run with other settings" in capsys.readouterr().err
    journal.write_text("no journal", encoding="utf-8")
    assert main(words) == 2
    assert "is no journal of such a run" in capsys.readouterr().err


def test_a_run_that_ends_early_does_not_conform() -> None:
    """Crashes of contracts that do not count (INFO) may end a run, but what was not tried is not known to hold."""
    (info, *_), (must, *_) = ([name for name, rule in rules().items() if rule.level == level] for level in ("INFO", "MUST"))
    crashed, rest = Result(info, "failed", kind="crash"), Result(must, "not run", kind="crash")
    target = Target("odd", "odd", "odd 1.0", {}, [crashed, rest])
    assert not target.conforms
    assert target.verdict == "incomplete: 1 contract was not tried"
    assert target._replace(rows=[crashed, rest._replace(kind="capability")]).conforms
    assert "\nincomplete: 1 contract was not tried\n" in render.terminal(Report.new([target], "quick", None))


def test_declared_deviations_are_counted(tmp_path: Path) -> None:
    """An expected failure of a MUST or a SHOULD is one; that of a pointer (INFO) is not."""
    levels = {rule.level: name for name, rule in rules().items()}
    rows = [Result(levels["MUST"], "expected failure"), Result(levels["INFO"], "expected failure")]
    target = Target("odd", "odd", "odd 1.0", {}, rows)
    assert target.verdict == "conforms, with 1 declared deviation"
    assert target._replace(rows=rows[1:]).verdict == "conforms"
    assert target._replace(rows=[*rows, Result(levels["SHOULD"], "failed")]).verdict == "does not conform"
    assert target._replace(cause="no such library").verdict == "could not be run"
    assert target._replace(rows=[*rows, Result("BWD-01", "not run", kind="crash")]).verdict == "incomplete: 1 contract was not tried"
    report = Report.new([target], "quick", None)
    assert "1 expected failure\n" not in render.terminal(report)
    assert "2 expected failures" in render.terminal(report)
    assert "conforms, with 1 declared deviation\n" in render.terminal(report)
    assert "conforms, with 1 declared deviation |" in render.markdown(report)
    assert "conforms, with 1 declared deviation" in html.page(report)


@pytest.mark.slow
def test_a_wrong_kernel_is_found_and_can_be_reproduced(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x) * 2}")
    report = tmp_path / "r.json"
    assert command("--backend", "odd", "--only", FEW, "--json", str(report), path=tmp_path).returncode == 1
    (target,) = Report.load(report).targets
    (row,) = target.failures
    assert row.id == "BWD-01"
    assert row.example == "{'shape': (), 'seed': 0}"
    assert "a_backward.py" in row.trace
    again = command("repro", str(report), "BWD-01", path=tmp_path)
    assert again.returncode == 1
    assert "BWD-01 on odd with {'shape': (), 'seed': 0}" in again.stdout
    assert "Not equal to tolerance" in again.stderr
    sound = command("repro", str(report), "BWD-03", path=tmp_path)
    assert sound.returncode == 2
    assert "has no failure of 'BWD-03'" in sound.stderr
    told = command("explain", "BWD-01", "--in", str(report))
    assert "odd: failed: AssertionError" in told.stdout
    page = command("report", "show", str(report), "--html", str(tmp_path / "r.html"))
    assert page.returncode == 0
    assert "drawn: {&#x27;shape&#x27;: (), &#x27;seed&#x27;: 0}" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_expected_failures_are_strict(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x) * 2}")
    known = tmp_path / "known.toml"
    known.write_text(
        "".join(f'[[known]]\ncontract = "{n}"\nkind = "bug"\nreason = "a reason"\nbackend = "odd"\n' for n in ("BWD-01", "BWD-03")),
        encoding="utf-8",
    )
    run = command("--backend", "odd", "--only", FEW, "--known", str(known), "--json", str(tmp_path / "r.json"), path=tmp_path)
    assert run.returncode == 1
    assert list(statuses(tmp_path / "r.json").values()) == ["expected failure", "passed", "unexpected pass", "not run"]
    assert "UNEXPECTED PASS  BWD-03" in run.stdout
    assert "EXPECTED FAILURE (bug)  BWD-01: a reason" in run.stdout


@pytest.mark.slow
def test_a_run_can_stop_at_its_first_failure(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x) * 2}")
    run = command("--backend", "odd", "--only", FEW, "--exitfirst", "--json", str(tmp_path / "r.json"), path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert statuses(tmp_path / "r.json") == {"BWD-01": "failed", "BWD-02": "not run", "BWD-03": "not run", "BWD-40": "not run"}
    assert "not tried: BWD-01 had failed, and the run was to stop there" in run.stdout
    assert run.stdout.endswith("does NOT conform; incomplete: 3 contracts were not tried\n")
    assert command("--backend", "numpy", "--only", FEW, "--exitfirst").returncode == 0


def test_an_interrupted_run_says_so(monkeypatch: Any, capsys: Any) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "_read_events", interrupted)
    assert main(["--backend", "numpy", "--only", FEW]) == 130
    assert capsys.readouterr().err.endswith("xpgrad conformance: interrupted; with `--journal FILE` a run can be resumed\n")


@pytest.mark.slow
def test_a_backend_that_is_not_there_and_wrong_requests(tmp_path: Path, capsys: Any) -> None:
    run = command("--backend", "nowhere", "--only", FEW)
    assert run.returncode == 3
    assert "COULD NOT BE RUN" in run.stdout
    assert "no such backend: 'nowhere'" in run.stdout
    install(tmp_path, "broken", "broken_plugin", "raise OSError('no driver')")
    run = command("--backend", "broken", "--backend", "numpy", "--only", FEW, path=tmp_path)
    assert run.returncode == 3
    assert "OSError: no driver" in run.stdout
    assert "== numpy (numpy 2." in run.stdout
    assert main([]) == 2
    assert "say which backend" in capsys.readouterr().err
    assert main(["--backend", "numpy", "--only", "BWD-99"]) == 2
    assert "'BWD-99' names no contract" in capsys.readouterr().err
    assert main(["repro", str(tmp_path / "none.json"), "BWD-01"]) == 2


def test_the_help_needs_no_pytest(tmp_path: Path) -> None:
    """Without the suite's dependencies the command explains itself all the same; when it is to run, it says what is missing."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n\n\nclass Hidden:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('pytest', 'hypothesis', 'tqdm'):\n            raise ModuleNotFoundError(name)\n\n\n"
        "def find(name, package=None):\n    return None if name in ('pytest', 'hypothesis', 'tqdm') else real(name, package)\n\n\n"
        "import importlib.util\nreal, importlib.util.find_spec = importlib.util.find_spec, find\nsys.meta_path.insert(0, Hidden())\n",
        encoding="utf-8",
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    run = command("--help", PYTHONPATH=path)
    assert run.returncode == 0, run.stderr
    assert "usage: xpgrad conformance" in run.stdout
    assert "--suite-version X.Y" in run.stdout
    run = command("--backend", "numpy", PYTHONPATH=path)
    assert run.returncode == 2
    assert run.stderr == "the conformance suite needs pytest, hypothesis, tqdm: `pip install 'xpgrad[conformance]'`\n"


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, "nothing ran"),
        ({"passed": 2, "expected failure": 1}, "2 passed, 1 expected failure"),
        ({"expected failure": 3, "unexpected pass": 2, "not run": 1}, "3 expected failures, 2 unexpected passes, 1 not run"),
    ],
)
def test_counts_agree_with_their_nouns(counts: dict[str, int], text: str) -> None:
    assert tally(Counter(counts)) == text


def test_the_table_heads_its_rows_as_the_pages_do() -> None:
    shown = render.terminal(Report.new([Target("odd", "odd", "odd 1.0", {}, [Result("BWD-01", "passed")])], "quick", None))
    assert f"\nA. {groups()['A']}" in shown


@pytest.mark.slow
def test_a_users_pytest_settings_do_not_matter(tmp_path: Path) -> None:
    """The command and the pytest plugin run the same contracts whatever pytest settings the user's folder has."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npython_files = *.py\npython_functions = *\npython_classes = *\nfilterwarnings = error\n"
        "addopts = --strict-markers --import-mode=append\ntestpaths = nowhere\nxfail_strict = true\n",
        encoding="utf-8",
    )
    (tmp_path / "conftest.py").write_text("raise RuntimeError('the conftest was read')", encoding="utf-8")
    run = command("--backend", "numpy", "--only", FEW, cwd=tmp_path, PYTEST_ADDOPTS="--no-such-option", PYTHONWARNINGS="error")
    assert run.returncode == 0, run.stdout + run.stderr
    (tmp_path / "conftest.py").unlink()
    start = [sys.executable, "-m", "pytest", "--pyargs", "xpgrad_conformance", "--xpgrad-backend", "numpy", "--xpgrad-contract", FEW, "-q"]
    run = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed, 1 skipped" in run.stdout
    off = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run([*start, "-p", "xpgrad_conformance.plugin"], cwd=tmp_path, env=off, capture_output=True, text=True, check=False)
    assert "3 passed, 1 skipped" in run.stdout


@pytest.mark.slow
def test_a_seed_gives_another_order(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass", encoding="utf-8")
    start = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--xpgrad-backend", "numpy", "--xpgrad-contract", "BWD", "--pyargs"]

    def order(*args: str) -> list[str]:
        command = [*start, "xpgrad_conformance", "test_mine.py", *args]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return [line.rpartition("::")[2] for line in run.stdout.splitlines() if "::" in line]

    one, again, two = order("--xpgrad-seed", "1"), order("--xpgrad-seed", "1"), order("--xpgrad-seed", "2")
    assert [line for line in one if line.startswith("test_")] == ["test_a", "test_b", "test_c"]
    assert one == again
    assert sorted(one) == sorted(two)
    assert one != two


@pytest.mark.slow
def test_another_plugin_with_the_same_option(tmp_path: Path) -> None:
    (tmp_path / "rival.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--xpgrad-backend')\n", encoding="utf-8")
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def collected(*args: str) -> Any:
        run = [sys.executable, "-m", "pytest", "-q", "-p", "rival", *args]
        return subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert "1 passed" in collected("test_mine.py").stdout
    refused = collected("--pyargs", "xpgrad_conformance", "--xpgrad-backend", "numpy")
    assert refused.returncode == 4
    assert "another plugin has the options --xpgrad-backend" in refused.stderr
    run = command("--backend", "numpy", "--only", FEW, PYTHONPATH=str(tmp_path), PYTEST_PLUGINS="rival")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_the_plugin_fails_and_says_what_was_promised(tmp_path: Path) -> None:
    plugin(tmp_path, "overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x) * 2}")
    start = [sys.executable, "-m", "pytest", "-q", "--pyargs", "xpgrad_conformance", "--xpgrad-backend", "odd", "--xpgrad-contract", FEW]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(start, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "BWD-01 [MUST] on odd: Differentiating a root applies the chain rule" in run.stdout
    assert "NOT RUN    1  out of scope" in run.stdout


@pytest.mark.slow
def test_a_third_partys_whole_test_file(tmp_path: Path) -> None:
    plugin(tmp_path, "")
    (tmp_path / "test_it.py").write_text(
        "from xpgrad_conformance.suite import ConformanceTests\nclass TestIt(ConformanceTests):\n    backend, profile = 'odd', 'quick'\n",
        encoding="utf-8",
    )
    run = [sys.executable, "-m", "pytest", "-q", "test_it.py", "-k", "BWD-0 or RET-01"]
    done = subprocess.run(run, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert re.search(r"^10 passed, \d+ deselected", done.stdout, re.MULTILINE), done.stdout


def test_from_python() -> None:
    target = check_backend("numpy", profile="quick", only=["BWD-01", "BWD-40"])
    assert [(r.id, r.status) for r in target.rows] == [("BWD-01", "passed"), ("BWD-40", "not run")]
    assert target.conforms
    with pytest.raises(ValueError, match="expected one of quick"):
        check_backend("numpy", profile="slow")


def test_the_oracle_is_pytorch() -> None:
    pytest.importorskip("torch", reason="the oracle")
    assert open_library("pytorch").release.startswith("torch 2.13.0")
    run = command("oracle", "--only", FEW)
    assert run.returncode == 0, run.stdout + run.stderr


# -- reports -----------------------------------------------------------------------------------------------------------------------


def report(**rows: str) -> Report:
    found = [Result(name.replace("_", "-"), status) for name, status in rows.items()]
    return Report.new([Target("here", "numpy", "numpy 2", {"complex": True}, found)], "default", None)


def test_reports_are_read_as_they_were_written() -> None:
    new = report(BWD_01="passed", BWD_02="failed")
    assert Report.from_json(new.to_json()) == new
    for text in ("{}", "[]", "no", '{"schema": 99}'):
        with pytest.raises(ReportError):
            Report.from_json(text)


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        ("passed", "failed", True),
        ("passed", "expected failure", True),
        ("passed", "not run", True),
        ("expected failure", "not run", True),
        ("failed", "not run", True),
        ("expected failure", "unexpected pass", True),
        ("failed", "passed", False),
        ("expected failure", "passed", False),
        ("not run", "passed", False),
        ("not run", "failed", True),
    ],
)
def test_what_is_worse(old: str, new: str, worse: bool, tmp_path: Path) -> None:
    before, after = report(BWD_01=old, BWD_02="passed"), report(BWD_01=new, BWD_02="passed")
    (change,) = differences(before, after)
    assert (change.id, change.worse) == ("BWD-01", worse)
    (tmp_path / "a").write_text(before.to_json(), encoding="utf-8")
    (tmp_path / "b").write_text(after.to_json(), encoding="utf-8")
    assert main(["report", "diff", str(tmp_path / "a"), str(tmp_path / "b")]) == (1 if worse else 0)


def test_what_is_gone_is_worse() -> None:
    (gone,) = differences(report(BWD_01="passed", BWD_02="passed"), report(BWD_01="passed"))
    assert (gone.id, gone.new, gone.worse) == ("BWD-02", "gone", True)
    assert all(c.worse for c in differences(report(BWD_01="passed"), report()._replace(targets=[])))


class Page(HTMLParser):
    """The parts of a page that are checked: link targets, unclosed elements, table headers with a scope."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.seen.append((tag, found))
        if "id" in found:
            assert found["id"] not in self.ids
            self.ids.add(found["id"])
        if found.get("href", "").startswith("#"):
            self.links.add(found["href"][1:])
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "p" or (self.open and self.open[-1] == "p"):
            assert self.open.pop() == tag


def test_the_page_is_whole(tmp_path: Path) -> None:
    from xpgrad_conformance.html import page

    text = page(report(BWD_01="passed", BWD_02="failed", BWD_40="not run"))
    found = Page(text)
    assert found.open == []
    assert found.links <= found.ids
    assert {"BWD-01", "ONE-09", "group-A", "contracts"} <= found.ids
    assert all("scope" in attributes for tag, attributes in found.seen if tag == "th")
    assert not re.search(r'(?:src|href)="(?!#|https://docs\.|https://data-apis\.)', text), "nothing is fetched"
    assert ("html", {"lang": "en"}) in found.seen
    assert '<span class="sr">here failed</span>' in text


def test_a_target_that_cannot_be_run_says_nothing_of_a_contract() -> None:
    """Law: a contract that passed on each target that could be run counts as passed, and the page's filter can hide it."""
    from xpgrad_conformance.html import page

    ran = report(BWD_01="passed", BWD_02="not run")
    absent = Target("there", "cupy", "", {}, [Result("BWD-01", "not run"), Result("BWD-02", "not run")], "no device")
    text = page(ran._replace(targets=[*ran.targets, absent]))
    assert re.findall(r'id="(BWD-0[12])" data-state="(\w+)"', text) == [("BWD-01", "ok"), ("BWD-02", "known")]


def test_the_summary_of_the_documentation_is_whole() -> None:
    """The page lists every published configuration without unexpected failures, and the badge shows NumPy's numbers."""
    from xpgrad_conformance.targets import PUBLISHED

    docs = ROOT / "docs"
    page = (docs / "conformance.md").read_text(encoding="utf-8")
    lines = page.partition("| target |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in rows] == [c.label for c in PUBLISHED]
    assert all(re.fullmatch(r"conforms(, with \d+ declared deviations?)?|could not be run", row[-1]) for row in rows)
    assert any(f"profile `{name}`" in page for name in PROFILES)
    assert f">{rows[0][2]} MUST<" in (docs / "conformance" / "badge.svg").read_text(encoding="utf-8")


def test_what_is_published_is_a_summary_and_a_report_that_git_ignores(tmp_path: Path) -> None:
    from xpgrad_conformance.cli import _write_pages

    found = report(BWD_01="passed", BWD_02="passed")
    _write_pages(tmp_path, found)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    artefacts = {"conformance/report.json", "conformance/report.html"}
    assert written == artefacts | {"conformance.md", "contracts.md", "conformance/badge.svg"}
    assert Report.load(tmp_path / "conformance" / "report.json") == found
    assert all((ROOT / "docs" / path).exists() for path in written - artefacts)
    assert "docs/conformance/report.*" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
