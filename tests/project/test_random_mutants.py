"""Law: random mutants are small, reproducible faults in code that computes, and they are tried on the contracts first."""

from __future__ import annotations

import ast
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from xpgrad_conformance import random_mutants
from xpgrad_conformance.cli import main
from xpgrad_conformance.mutants import Journal
from xpgrad_conformance.random_mutants import OPERATORS, Edit, Verdict, differs, draw, edits, patch, sources, table
from xpgrad_conformance.reach import Reach
from xpgrad_conformance.session import Outcome, Request, runners

pytestmark = pytest.mark.slow


def mutated_lines(source: str, operator: str, file: str = "") -> set[str]:
    """Return the lines that an operator makes of a line of source."""
    text = source.encode()
    return {e.apply_to(text).decode().strip() for e in edits(text, file) if e.operator == operator and differs(e, text)}


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("comparison", "f(a < b <= c)", {"f(a <= b <= c)", "f(a < b < c)"}),
        ("comparison", "f((a) == b)", {"f((a) != b)"}),
        ("comparison", "f(a is not b, c in d)", {"f(a is b, c in d)", "f(a is not b, c not in d)"}),
        ("constant", "f(0, True, 1.5, None, 'text')", {"f(1, True, 1.5, None, 'text')", "f(0, False, 1.5, None, 'text')",
                                                       "f(0, True, 2.5, None, 'text')"}),
        ("statement", "x.a = 1", {"pass"}),
        ("statement", "x[0] += 1", {"pass"}),
        ("statement", "f(x)", {"pass"}),
        ("statement", "x = 1", set()),
        ("statement", "def f(): return 3", {"def f(): return None"}),
        ("statement", "for x in y: continue", {"for x in y: pass"}),
        ("condition", "if a: b()", {"if True: b()", "if False: b()"}),
        ("condition", "while a: b()", {"while False: b()"}),
        ("condition", "x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
        ("condition", "x = a and b", {"x = True and b", "x = a and True"}),
        ("condition", "x = a or b", {"x = False or b", "x = a or False"}),
        ("condition", "x = not a.b", {"x = (a.b)"}),
        ("condition", "x = [a for a in b if c]", {"x = [a for a in b if True]", "x = [a for a in b if False]"}),
        ("arguments", "f(a, b(c), k=1)", {"f(b(c), a, k=1)"}),
        ("arguments", "isinstance(a, b)", set()),
        ("arguments", "f(*a, b)", set()),
        ("arithmetic", "x = (a + b) * -c", {"x = (a - b) * -c", "x = (a + b) / -c", "x = (a + b) * (c)"}),
        ("arithmetic", "x @= a ** b", {"x *= a ** b", "x @= a * b"}),
        ("formula", '@elementwise("g * x2", "-g", op="-")\ndef f(x1, x2): pass',
         {'@elementwise("g / x2", "-g", op="-")\ndef f(x1, x2): pass', '@elementwise("g * x1", "-g", op="-")\ndef f(x1, x2): pass',
          '@elementwise("g * x2", "(g)", op="-")\ndef f(x1, x2): pass', '@elementwise("g * x2", "-g", op="+")\ndef f(x1, x2): pass'}),
        ("formula", "@elementwise(lambda g, out, x: out)\ndef f(x): pass", {"@elementwise(lambda g, out, x: x)\ndef f(x): pass"}),
    ],
)  # fmt: skip
def test_what_an_operator_makes(operator: str, source: str, expected: set[str]) -> None:
    assert mutated_lines(source, operator) == expected


def test_lines_of_generated_text_are_removed_and_their_conditions_forced() -> None:
    source = 't("""\n    a = b\n    if a is not None:\n        return c\n""")'
    found = mutated_lines(source, "text", "xpgrad/_operations/forward.py")
    assert found == {
        source.replace("a = b", "pass"),
        source.replace("a is not None", "True"),
        source.replace("a is not None", "False"),
        source.replace("a is not None", "a is None"),
        source.replace("return c", "return None"),
    }
    assert mutated_lines(source, "text", "xpgrad/_tape/engine.py") == set()
    assert "with t.block(f'if False:'): pass" in mutated_lines(
        "with t.block(f'if {x} == y:'): pass", "text", "xpgrad/_operations/forward.py"
    )


@pytest.mark.parametrize(
    "source",
    [
        '"""One < two."""',
        "import a.b",
        "__all__ = ['a' + 'b']",
        "def f(x: int | None = None) -> a[0]: ...",
        "msg = a + 1",
        "raise ValueError(a + 1, b)",
        "x = f'{a + 1}' if b else 'text'",
        "if TYPE_CHECKING: f(1)",
        "Operand: TypeAlias = a[0]",
        "def f():\n    return TypeError(a + 1)",
    ],
)
def test_what_no_program_depends_on_is_left_as_it_is(source: str) -> None:
    assert edits(source.encode()) == []


def test_a_span_is_counted_in_bytes_and_a_line_in_lines() -> None:
    source = "x = 'ü'\n\ny = f('ü', 0)\n".encode()
    (edit,) = [e for e in edits(source) if e.operator == "constant"]
    assert edit.line == 3
    assert edit.apply_to(source).decode() == "x = 'ü'\n\ny = f('ü', 1)\n"
    assert patch(edit._replace(file="a.py"), source).splitlines()[-2:] == ["-y = f('ü', 0)", "+y = f('ü', 1)"]


def test_the_same_seed_draws_the_same_mutants_and_no_operator_dominates() -> None:
    texts = sources(["xpgrad/rules/*"])
    drawn = {seed: list(itertools.islice(draw(texts, seed), 150)) for seed in (1, 2)}
    assert drawn[1] == list(itertools.islice(draw(texts, 1), 150))
    assert drawn[1] != drawn[2]
    assert len({(e.file, e.line) for e in drawn[1]}) == 150
    counts = Counter(e.operator for e in drawn[1])
    assert set(counts) <= set(OPERATORS)
    assert len(counts) >= 6
    assert max(counts.values()) <= 50
    for edit in drawn[1][:40]:
        ast.parse(edit.apply_to(texts[edit.file]))
    with pytest.raises(ValueError, match="no source matches nowhere/"):
        sources(["nowhere/*"])


#: The repository of these tests; an installed library is elsewhere.
ROOT = Path(__file__).resolve().parents[2]


def test_sources_outside_of_the_catalogue_are_mutated_if_they_are_named() -> None:
    core = set(sources())
    for pattern in random_mutants.OUTSIDE:
        named = set(sources([pattern]))  # raises if no file matches
        assert named.isdisjoint(core), pattern
    assert "xpgrad/_tape/engine.py" in core


def test_the_tables_of_tests_name_files_that_exist() -> None:
    assert random_mutants.repository() in (ROOT, None)
    for _, paths in random_mutants.TESTS:
        assert [path for path in paths if not (ROOT / "tests" / path).exists()] == []
    assert random_mutants.tests_of("xpgrad/func/_vmap.py", ROOT) == [
        str(ROOT / "tests" / "transforms"), str(ROOT / "tests" / "random_programs" / "test_transforms.py")
    ]  # fmt: skip


def _edit(file: str, old: str, new: str) -> tuple[Edit, bytes]:
    source = sources([file])[file]
    begin = source.index(old.encode())
    return Edit(file, 1, "formula", begin, begin + len(old.encode()), new), source


@pytest.fixture
def run() -> Iterator[Callable[[Request], Outcome]]:
    """A function that runs contracts as a survey does."""
    with runners(1) as runner:
        yield runner


@pytest.mark.timeout(300)
def test_a_broken_formula_is_noticed_a_comment_is_not_and_a_broken_module_is_no_mutant(run: Callable[[Request], Outcome]) -> None:
    from xpgrad_conformance.contract import contracts

    few = [contracts()[name] for name in ("BWD-02", "FWD-01", "HOG-01")]
    edit, source = _edit("xpgrad/rules/elementwise.py", '"g * x * 2"', '"g * x"')
    verdict = random_mutants.try_contracts(edit, source, [*few, contracts()["DER-02"]], runner=run)
    assert verdict.outcome == "contract"
    edit, source = _edit("xpgrad/rules/elementwise.py", "# At a bound", "# At  a bound")
    assert random_mutants.try_contracts(edit, source, few, runner=run) == Verdict(edit, "survived")
    none = Reach({}, {c.id: {} for c in few})
    assert random_mutants.try_contracts(edit, source, few, {"numpy": none}, run) == Verdict(edit, "survived", "no contract runs it")
    # It is tried on the target on which a contract certainly runs it, not on NumPy, where one only may.
    seen: list[str] = []

    def runner(request: Request) -> Outcome:
        seen.append(request.target)
        return run(request)

    perhaps = Reach({}, {"DER-02": None})
    surely = Reach({}, {"DER-02": {edit.file: frozenset(range(1, 1000))}})
    broken, whole = _edit("xpgrad/rules/elementwise.py", '"g * x * 2"', '"g * x"')
    reached = {"numpy": perhaps, "numpy+readonly": surely}
    verdict = random_mutants.try_contracts(broken, whole, [contracts()["DER-02"]], reached, runner)
    assert (verdict, seen) == (Verdict(broken, "contract", "DER-02"), ["numpy+readonly"])
    # A mutant that survives on one target is tried on the next one where contracts run other lines; a mutant that is found is not.
    otherwise = Reach({}, {"DER-02": {edit.file: frozenset(range(1, 1001))}})
    reached, seen[:] = {"numpy": surely, "numpy+readonly": otherwise, "strict": surely}, []
    assert random_mutants.try_contracts(edit, source, [contracts()["DER-02"]], reached, runner).outcome == "survived"
    assert random_mutants.try_contracts(broken, whole, [contracts()["DER-02"]], reached, runner).outcome == "contract"
    assert seen == ["numpy", "numpy+readonly", "numpy"]
    edit, source = _edit("xpgrad/rules/elementwise.py", "import cmath", "import no_such_module")
    assert random_mutants.try_contracts(edit, source, few, runner=run).outcome == "broken"


@pytest.mark.timeout(300)
def test_what_no_contract_notices_is_tried_on_the_tests(monkeypatch: Any) -> None:
    monkeypatch.setattr(random_mutants, "TESTS", (("", ("rules/test_dtype_spellings.py",)),))
    edit, source = _edit("xpgrad/_basics/dtypes.py", '"float32": 4, ', '"float31": 4, ')
    assert random_mutants.try_tests(edit, source, ROOT).outcome == "test"
    edit, source = _edit("xpgrad/rules/elementwise.py", "# At a bound", "# At  a bound")
    assert random_mutants.try_tests(edit, source, ROOT).outcome == "survived"


def test_mutants_that_cannot_be_imported_are_drawn_again_in_order() -> None:
    drawn = [Edit("a.py", n, "constant", 0, 0, "") for n in range(20)]
    kinds = ["contract", "broken", "survived", "broken", "contract", "test"]

    def attempt(edit: Edit) -> Verdict:
        return Verdict(edit, kinds[edit.line] if edit.line < 6 else "survived")

    for workers in (1, 3):
        found = random_mutants._try_until(iter(drawn), attempt, 5, workers)
        assert [v.edit.line for v in found] == list(range(7))
        assert [v.outcome for v in found] == [*kinds, "survived"]


def test_what_a_journal_tells_of_is_not_tried_again(tmp_path: Path) -> None:
    tried = []

    def attempt(edit: Edit) -> Verdict:
        tried.append(edit.line)
        return Verdict(edit, "contract", f"BWD-0{edit.line}")

    journal = Journal(tmp_path / "journal")
    drawn = [Edit("a.py", n, "constant", n, n + 1, "2") for n in range(4)]
    first = [random_mutants._use_journal(journal, "contracts", attempt)(e) for e in drawn[:2]]
    with (tmp_path / "journal").open("a", encoding="utf-8") as file:
        file.write('\n["cut o')
    again = [random_mutants._use_journal(journal, "contracts", attempt)(e) for e in drawn]
    assert tried == [0, 1, 2, 3]
    assert again[:2] == first
    other = drawn[0]._replace(new="3")  # another fault in the same place, and another stage, are tried
    random_mutants._use_journal(journal, "contracts", attempt)(other)
    random_mutants._use_journal(journal, "tests", attempt)(drawn[0])
    assert tried == [0, 1, 2, 3, 0, 0]
    assert len(journal.read()) == 6
    assert Journal(None).read() == {}


def test_the_table_and_the_document_say_what_became_of_each(capsys: Any, monkeypatch: Any, tmp_path: Path) -> None:
    texts = {"xpgrad/a.py": b"x.y = 1\n"}
    (edit, *_) = [e for e in edits(texts["xpgrad/a.py"], "xpgrad/a.py") if e.operator == "statement"]
    verdicts = [Verdict(edit, "contract", "BWD-01")] * 3 + [
        Verdict(edit, "survived"),
        Verdict(edit, "timeout", "BWD-02"),
        Verdict(edit, "broken"),
    ]
    assert "contracts alone notice 3 of 4 (75 %)" in table(verdicts)
    assert table(verdicts).splitlines()[1].split() == ["xpgrad/a.py", "3", "0", "1", "1", "1"]
    monkeypatch.setattr(random_mutants, "sources", lambda patterns: texts)
    monkeypatch.setattr(random_mutants, "survey", lambda *args: verdicts)
    assert main(["mutants", "--random", "5", "--seed", "3", "--json", str(tmp_path / "out.json")]) == 1
    assert "-x.y = 1\n+pass" in capsys.readouterr().out
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (written["n"], written["seed"], [m["outcome"] for m in written["mutants"]]) == (5, 3, [v.outcome for v in verdicts])
    assert main(["mutants", "--random", "0"]) == 2


def test_time_outs_do_not_count_as_noticed() -> None:
    edit = Edit("a.py", 1, "constant", 0, 0, "")
    assert "contracts alone notice 0 of 1 (0 %)" in table([Verdict(edit, "timeout", "BWD-01"), Verdict(edit, "survived")])


def test_a_contract_that_fails_without_a_fault_is_not_counted_on(monkeypatch: Any) -> None:
    monkeypatch.setattr(random_mutants, "statuses_of", lambda *args: {"BWD-01": "passed", "BWD-02": "failed"})
    with pytest.raises(random_mutants.MutantError, match="BWD-02 fail on numpy without a fault"):
        random_mutants.survey(1, 0)
    monkeypatch.setattr(random_mutants, "statuses_of", lambda *args: {"BWD-01": "passed", "BWD-40": "not run"})
    random_mutants.check_soundness()
