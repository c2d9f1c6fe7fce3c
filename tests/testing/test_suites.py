"""Other projects' own tests, run on xpgrad by `xpgrad.testing.suites`."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
import textwrap
from pathlib import Path

import pytest

from xpgrad.testing import suites
from xpgrad.testing._suite_plugin import DERIVATIVES
from xpgrad.testing.suites import Insertion, Suite, SuiteError

_LISTS = """\
LIBRARIES = ["numpy", "torch"]
"""
_TESTS = """\
    import pytest
    from borrowed.libraries import LIBRARIES

    @pytest.mark.parametrize("name", LIBRARIES)
    @pytest.mark.parametrize("n", range(6))
    def test_it(name, n):
        if name == "xpgrad":
            assert n != 1, "known"
            assert n != 2, "new"
            if n == 3:
                pytest.skip("not today")
            if n == 4:
                pytest.xfail("never")
"""


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A project that is installed, with a list of libraries and tests."""
    package = tmp_path / "site" / "borrowed"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "libraries.py").write_text(_LISTS, encoding="utf-8")
    (package / "tests" / "test_it.py").write_text(textwrap.dedent(_TESTS), encoding="utf-8")
    (package / "other.py").write_text("x = 1\n", encoding="utf-8")
    metadata = tmp_path / "site" / "borrowed-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: borrowed\nVersion: 1.2\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return Suite(
        "borrowed", "borrowed", "1.2", arguments=("-k", "xpgrad", "{folder}"),
        insertions=(Insertion("libraries.py", 'LIBRARIES = ["numpy"', ', "xpgrad"'),), expected={r"test_it\[1-": "it is known"},
    )  # fmt: skip


def test_tests_run_on_a_copy_and_are_summed_up(project: Suite) -> None:
    before = (project.source / "libraries.py").read_text(encoding="utf-8")
    outcomes = suites.run(project)
    assert (project.source / "libraries.py").read_text(encoding="utf-8") == before
    assert {o["test"].partition("[")[2]: o["outcome"] for o in outcomes} == {
        "0-xpgrad]": "passed", "1-xpgrad]": "failed", "2-xpgrad]": "failed", "3-xpgrad]": "skipped", "4-xpgrad]": "xfailed",
        "5-xpgrad]": "passed",
    }  # fmt: skip
    text = suites.summary(project, outcomes)
    assert "| all | 2 | 1 | 1 | 1 | 1 |" in text
    assert re.search(r"\* unexpected: `.*test_it\[2-xpgrad\]`", text)
    assert re.search(r"\* 1 expected, e.g. `.*test_it\[1-xpgrad\]`: it is known", text)


_GRADIENTS = """\
    import copy
    import numpy as np
    import pytest
    import xpgrad as xp
    from numpy.testing import assert_allclose
    from borrowed.libraries import LIBRARIES, to_numpy, double

    @pytest.mark.parametrize("name", LIBRARIES[1:2])
    @pytest.mark.parametrize("n", range(9))
    def test_it(name, n):
        x = xp.asarray([1.0, 2.0])
        if n == 0:
            x[0] = 3.0
            assert_allclose(x * 2, [6.0, 4.0])
        elif n == 1:
            assert_allclose(to_numpy(x), [1.0, 2.0])
        elif n == 2:
            assert_allclose(double(x), [2.0, 4.0])
        elif n == 3:
            assert_allclose(xp.sign(x.detach()), [1.0, 1.0])
        elif n == 4:
            assert xp.asarray([1, 2]).requires_grad is False
        elif n == 5:
            assert_allclose(x, [1.0, 3.0])
        elif n == 6:
            copy.deepcopy(x * 2)
        elif n == 7:
            with pytest.raises(RuntimeError, match="the shape"):
                double(x)
        else:
            raise ValueError("no common type")
"""


def test_inputs_may_require_grad(project: Suite) -> None:
    """Law: each test passes, fails, or is refused where a gradient would be lost; results that have no history are told."""
    (project.source / "tests" / "test_it.py").write_text(textwrap.dedent(_GRADIENTS), encoding="utf-8")
    more = "import numpy as np\nto_numpy = np.asarray\ndef double(x): return np.asarray(x) * 2\n"
    (project.source / "libraries.py").write_text(_LISTS + more, encoding="utf-8")
    outcomes = suites.run(
        dataclasses.replace(project, conversions=("to_numpy",), refusals=("no common type$",), expected={}), requires_grad=True
    )
    found = {int(o["test"].partition("[")[2][0]): (o["outcome"], o["results"]) for o in outcomes}
    assert found == {
        0: ("passed", [1, 1]), 1: ("passed", [1, 1]), 2: ("refused", [0, 0]), 3: ("passed", [1, 0]), 4: ("passed", [0, 0]),
        5: ("failed", [1, 1]), 6: ("refused", [0, 0]), 7: ("refused", [0, 0]), 8: ("refused", [0, 0]),
    }  # fmt: skip
    text = suites.summary(project, outcomes)
    assert "| skipped | xfailed | refused |\n|---|---:|---:|---:|---:|---:|---:|" in text
    assert "| all | 4 | 1 | 0 | 0 | 0 | 4 |" in text
    assert re.search(r"\* 1 passed whose results have no history, e.g. `.*test_it\[3-xpgrad\]`", text)


_DERIVATIVES = """\
    import warnings
    import numpy as np
    import pytest
    import xpgrad as xp
    from numpy.testing import assert_allclose
    from borrowed.libraries import LIBRARIES, to_numpy, double

    @pytest.mark.parametrize("name", LIBRARIES[1:2])
    @pytest.mark.parametrize("n", range(19))
    def test_it(name, n):
        x, y = xp.asarray([1.0, 2.0]), xp.asarray(3.0)
        if n == 0:
            assert_allclose(xp.sin(x * y), np.sin([3.0, 6.0]))
        elif n == 1:
            assert_allclose(x * x.detach() * y, [3.0, 12.0])
        elif n == 2:
            assert_allclose(xp.sign(x), [1.0, 1.0])
        elif n == 3:
            assert_allclose(double(x), [2.0, 4.0])
        elif n == 4:
            assert_allclose(xp.abs(x - 1.0), [0.0, 1.0])
        elif n == 5:
            assert float(x.detach()[0]) == 1.0
            assert_allclose(x * y, [3.0, 6.0])
        elif n == 6:
            assert_allclose(xp.asarray([1, 2]), [1, 2])
        elif n == 7:
            z = xp.asarray([0.0, 1.0, np.inf])
            assert_allclose(xp.log(z) * y, [-np.inf, 0.0, np.inf])
        elif n == 8:
            x[0] = 4.0
            to_numpy(x * y)
        elif n == 9:
            with pytest.warns(UserWarning, match="near 1"):
                if float(x.detach()[0]) == 1.0:
                    warnings.warn("near 1")
            assert_allclose(x * y, [3.0, 6.0])
        elif n == 10:
            assert_allclose(xp.linalg.cholesky(xp.asarray([[2.0, 1.0], [1.0, 3.0]]))[0, 0], 2**0.5)
        elif n == 11:
            assert_allclose(x * xp.asarray(np.random.rand()), x * 0.5, rtol=2)
        elif n == 12:
            assert_allclose(xp.sqrt(x - 1.0), [0.0, 1.0])
        elif n == 13:
            assert_allclose(x * y, [3.0, 7.0])
        elif n == 14:
            assert_allclose(x * float(y), [3.0, 6.0])
        elif n == 15:
            z = xp.astype(x, xp.float32)
            assert_allclose(z * z.detach(), [1.0, 4.0])
        elif n == 16:
            to_numpy(x * np.random.rand())
        elif n == 17:
            z = xp.asarray([0.0, 1.0])
            assert_allclose(xp.log(z), [-np.inf, 0.0])
            assert_allclose(xp.sum(xp.sqrt(z)), 1.0)
        elif n == 18:
            assert_allclose(xp.asarray([1e200, 1.0]) * y, [3e200, 3.0])
"""


def test_derivatives_are_compared_with_differences(project: Suite) -> None:
    """Law: a test whose derivatives are not those of differences fails, and every other outcome says why they were not compared."""
    (project.source / "tests" / "test_it.py").write_text(textwrap.dedent(_DERIVATIVES), encoding="utf-8")
    more = "import numpy as np\nto_numpy = np.asarray\ndef double(x): return np.asarray(x) * 2\n"
    (project.source / "libraries.py").write_text(_LISTS + more, encoding="utf-8")
    suite = dataclasses.replace(project, conversions=("to_numpy",), expected={}, differing={r"\[1-": "it is detached"})
    outcomes = suites.run(suite, derivatives=True)
    found = {int(re.findall(r"\[(\d+)-", o["test"])[0]): o.get("derivatives", o["outcome"]) for o in outcomes}
    assert found == {
        0: "right", 1: "wrong", 2: "constant", 3: "refused", 4: "kink", 5: "strays", 6: "nothing", 7: "right", 8: "right", 9: "strays",
        10: "right", 11: "right", 12: "nan", 13: "failed", 14: "warned", 15: "single", 16: "right", 17: "right", 18: "right",
    }  # fmt: skip
    (wrong,) = (o for o in outcomes if "[1-" in o["test"])
    assert re.match(r"gradient: the derivative along element \[0\] of array 0 .* is .*, by differences", wrong["reason"])
    text = suites.summary(suite, outcomes)
    assert "| tests in | right | constant | kink | nan | warned | single | refused | strays | nothing | failed | expected" in text
    assert "| all | 8 | 1 | 1 | 1 | 1 | 1 | 1 | 2 | 1 | 1 | 1 | 0 | 0 |" in text
    assert re.search(r"\* 1 expected, e.g. `.*test_it\[1-xpgrad\]`: it is detached", text)


@pytest.mark.slow
def test_shares_are_a_partition(project: Suite) -> None:
    parts: list[set[str]] = []
    for k in range(3):
        try:
            parts.append({o["test"] for o in suites.run(project, f"{k}/3")})
        except SuiteError as exc:
            if "no test of borrowed ran: pytest ended with the exit code 5" not in str(exc):  # no test is in this share
                raise
    assert len(parts) > 1
    assert sum(map(len, parts)) == len(set().union(*parts)) == 6


def test_the_lines_are_a_patch(project: Suite) -> None:
    assert suites.patch(project) == (
        "--- a/borrowed/libraries.py\n+++ b/borrowed/libraries.py\n@@ -1 +1 @@\n"
        '-LIBRARIES = ["numpy", "torch"]\n+LIBRARIES = ["numpy", "xpgrad", "torch"]\n'
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [(", new", "a\nb at, new c\nd\n"), ("whole\n", "a\nwhole\nb at c\nd\n"), ("two\nlines\n", "a\ntwo\nlines\nb at c\nd\n")],
    ids=["in a line", "a line", "two lines"],
)
def test_text_is_inserted_at_its_place(text: str, found: str) -> None:
    assert Insertion("f.py", " at", text).apply("a\nb at c\nd\n") == found


@pytest.mark.parametrize(("before", "needed"), [("1.2", False), ("1.1.9", False), ("1.10", True), ("1.3rc1", True), ("", True)])
def test_newer_versions_do_not_need_some_lines(project: Suite, before: str, needed: bool) -> None:
    (line,) = project.insertions
    assert bool(suites.patch(dataclasses.replace(project, insertions=(dataclasses.replace(line, before=before),)))) is needed


def test_what_cannot_be_run_says_why(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SuiteError, match="is not installed; `pip install xpgrad-nothing`"):
        _ = Suite("xpgrad-nothing", "nothing", "1").version
    for source, times in (("", 0), (_LISTS * 2, 2)):
        (project.source / "libraries.py").write_text(source, encoding="utf-8")
        with pytest.raises(SuiteError, match=rf"has '.*' {times} times, and not once: its version differs"):
            suites.patch(project)
    (project.source / "libraries.py").unlink()
    with pytest.raises(SuiteError, match=r"borrowed 1.2 has no file libraries.py"):
        suites.patch(project)
    with pytest.raises(SuiteError, match="the tests of borrowed import nothing_such; `pip install nothing_such` installs"):
        suites.run(dataclasses.replace(project, needs=("pytest", "nothing_such")))
    with pytest.raises(SuiteError, match="there is no suite 'numpy'; there are array-api-extra"):
        suites.load("numpy")
    with pytest.raises(SystemExit):
        suites.main(["scipy", "--share", "5"])
    assert "--share must be K/N" in capsys.readouterr().err


@pytest.mark.parametrize("name", suites.names())
def test_the_lines_fit_the_version_that_was_tried(name: str) -> None:
    """The places of the insertions are found in the tried version; another version may differ."""
    suite = suites.load(name)
    if importlib.util.find_spec(suite.package) is None or suite.version != suite.tried:
        pytest.skip(f"{name} {suite.tried} is not installed")
    changed = suites.patch(suite)
    assert "xpgrad" in changed
    removed = [line for line in changed.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert not [line for line in removed if "xp_known" not in line and "devices()" not in line]
    for pattern in suite.expected:
        re.compile(pattern)


def test_the_page_has_the_outcomes_of_derivatives() -> None:
    page = (Path(__file__).parents[2] / "docs" / "upstream" / "index.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z]+) \| ([^|]+) \|$", page, re.MULTILINE))
    assert {kind: rows.get(kind) for kind in DERIVATIVES} == DERIVATIVES


@pytest.mark.timeout(300)
@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("share", "options", "least"), [("1/20", (), 30), ("1/12", ("--derivatives",), 10)], ids=["values", "derivatives"])
def test_a_sample_of_array_api_extra_passes(capfd: pytest.CaptureFixture[str], share: str, options: tuple[str, ...], least: int) -> None:
    suite = suites.load("array-api-extra")
    if importlib.util.find_spec(suite.package) is None or suite.version != suite.tried:
        pytest.skip(f"{suite.name} {suite.tried} is not installed")
    for module in suite.needs:
        pytest.importorskip(module)
    assert suites.main([suite.name, "--share", share, *options, "--", "-p", "no:warnings"]) == 0
    found = re.search(r"\| all \| (\d+) \|", capfd.readouterr().out)
    assert found is not None
    assert int(found[1]) >= least


def test_the_module_is_a_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["suites", "--help"])
    with pytest.raises(SystemExit):
        suites.main()
    assert "scipy" in capsys.readouterr().out
