"""Laws of audits: a lost derivative is found on every backend and wherever it is lost; all forms of arguments work; reports can be read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

import xpgrad as xp
from audit.gallery import MISTAKES
from xpgrad._modes import state

#: Mistakes whose arguments may be on any device, and that do not pass through NumPy.
ANYWHERE = [
    "normalised_by_a_float", "an_item", "a_detached_mean", "a_feature_without_gradient", "a_penalty_without_graph",
    "counted_in_whole_numbers", "a_forgotten_argument", "a_dead_unit", "an_absolute_value_at_zero", "two_largest",
    "clipped_at_the_bound", "a_norm_at_zero", "a_rule_with_a_wrong_factor", "two_directions", "computed_twice", "nothing_returned",
]  # fmt: skip


@pytest.mark.parametrize("name", ANYWHERE)
def test_mistakes_are_found_on_every_backend(name: str, xpgrad_device: str) -> None:
    m = MISTAKES[name]
    args = [xp.asarray(a, device=xpgrad_device) for a in m.args]
    report = xp.audit(m.function, *args)
    assert m.kind in report.kinds(), report


# -- what is lost is found ------------------------------------------------------------------------------------------------

_SMOOTH = [xp.sin, xp.tanh, lambda x: xp.exp(-x), lambda x: x * 0.5, lambda x: x + 0.3, lambda x: x * x + 0.2, lambda x: 1 / (0.5 + x * x)]


def _leave(how: str, h: Any) -> Any:
    if how == "detached":
        return h.detach()
    if how == "left-as-number":
        return xp.asarray([float(v) for v in h])
    if how == "left-as-array":
        return xp.asarray(h.array * 1.0)
    with xp.no_grad():
        return h * 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, len(_SMOOTH) - 1), min_size=1, max_size=6), st.lists(st.integers(0, len(_SMOOTH) - 1), min_size=0, max_size=3),
    st.sampled_from(["detached", "left-as-number", "left-as-array", "no-grad"]), st.booleans(), st.integers(0, 1000),
)  # fmt: skip
@example([2, 0, 6, 4, 5, 5], [2, 5, 2], "detached", True, 5)  # loses 1e-10 of the gradient
def test_a_path_that_is_broken_is_found_and_one_that_is_not_is_not(before: Any, after: Any, how: str, beside: bool, seed: int) -> None:
    x = np.random.default_rng(seed).uniform(0.2, 1.0, 3)

    def function(x: Any, broken: bool) -> Any:
        h = x
        for k in before:
            h = _SMOOTH[k](h)
        left = _leave(how, h) if broken else h
        for k in after:
            left = _SMOOTH[k](left)
        return xp.sum(left * x) if beside else xp.sum(left)

    whole = xp.audit(function, x, False, checks=("paths", "accuracy"))
    assert not whole.kinds("warning"), whole
    report = xp.audit(function, x, True, checks=("paths", "accuracy"))
    wanted, got = (np.zeros(3) if g is None else np.asarray(g.detach()) for g in (whole.gradients["x"], report.gradients["x"]))
    assume(np.max(np.abs(wanted - got)) > 1e-5 * np.max(np.abs(wanted)))  # docs/auditing.md says how small a lost part is not found
    assert report.kinds("warning") == (how,), report
    (finding,) = report.findings
    assert finding.inputs == ("x",)
    assert finding.severity == "error"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["detach", "float"]))
def test_a_detour_that_changes_nothing_is_no_alarm(seed: int, how: str) -> None:
    """A shift that cancels, as in a stable softmax, is not reported, whether it is a detached Tensor or a float."""
    x = np.random.default_rng(seed).normal(size=4)

    def logsumexp(x: Any) -> Any:
        top = xp.max(x).detach() if how == "detach" else float(xp.max(x))
        return top + xp.log(xp.sum(xp.exp(x - top)))

    assert not xp.audit(logsumexp, x).kinds("warning")


def test_the_shares_of_several_lines_add_up() -> None:
    def function(x: Any) -> Any:
        a = float(xp.sum(x))
        b = xp.sum(x * x).detach()
        return xp.sum(x) * a * b

    report = xp.audit(function, np.asarray([1.0, 2.0]))
    assert report.kinds("error") == ("left-as-number", "detached")
    first = report.findings[0].details
    assert sum(f.details["lost"] for f in report.findings) == pytest.approx(first["true"] - first["gradient"], rel=1e-6)


def test_a_call_inside_of_a_public_function_is_told_by_its_name() -> None:
    def function(x: Any) -> Any:
        place = xp.searchsorted(xp.asarray([0.0, 1.0, 2.0]), x)
        return xp.sum(xp.astype(place, xp.float64))

    (finding,) = xp.audit(function, np.asarray([0.5, 1.5]), checks=("paths",)).findings
    assert "inside of searchsorted" in finding.message
    (finding,) = xp.audit(lambda x: xp.sum(x) * float(x[0]), np.ones(2), checks=("paths",)).findings
    assert finding.message.startswith("`float(x)` takes")


@pytest.mark.parametrize("outer", ["jvp along what depends on x", "jvp", "jacfwd", "vmap"])
@pytest.mark.parametrize("inner", ["grad", "vjp"])
def test_a_gradient_whose_tangent_has_left_too(inner: str, outer: str) -> None:
    """Under `no_grad`, the tangent of an inner gradient is as much a constant of the graph as the gradient itself."""
    func = xp.func

    def function(x: Any) -> Any:
        def step(a: Any) -> Any:
            with xp.no_grad():
                if inner == "grad":
                    slope = func.grad(lambda b: xp.sum(xp.cos(b * xp.cos(a))))(x)
                else:
                    (slope,) = func.vjp(lambda b: xp.sin(a + 3.0) * b, x)[1](x)
            return slope * xp.sin(x) + a * 0.5

        point = x * x
        if outer == "jacfwd":
            moved = func.jacfwd(step)(point)
        elif outer == "vmap":
            moved = func.vmap(lambda t: func.jvp(step, (point,), (t,))[1])(xp.stack([xp.cos(x), x]))
        else:
            moved = func.jvp(step, (point,), (xp.cos(x) if "depends" in outer else xp.ones_like(x),))[1]
        return xp.sum(xp.log1p(moved * moved))

    report = xp.audit(function, np.asarray([0.3, 0.7]), checks=("paths", "accuracy"))
    assert "inner-gradient" in report.kinds("error"), report
    assert "wrong-gradient" not in report.kinds(), report


def test_a_kink_counts_where_a_gradient_arrives() -> None:
    x = np.asarray([0.0, 1.0, -2.0])
    assert xp.audit(lambda x: xp.sum(xp.abs(x)), x).kinds("warning") == ("kink",)
    assert not xp.audit(lambda x: xp.sum(xp.abs(x) * xp.asarray([0.0, 1.0, 1.0])), x).kinds("note")
    smooth = xp.audit(lambda x: xp.sum(xp.abs(x) ** 2.0), x)  # the gradient does not arrive
    assert not smooth.kinds("warning"), smooth


# -- forms of arguments and results ---------------------------------------------------------------------------------------


def test_arguments_may_be_trees_and_numbers() -> None:
    report = xp.audit(lambda p, k: xp.sum(p["w"] * p["b"][0]) * k, {"w": np.ones(3), "b": [np.ones(1)]}, 2.0)
    assert report.ok
    assert list(report.gradients) == ["p['w']", "p['b'][0]"]
    assert list(xp.audit(lambda a: a * a, 2.0).gradients) == ["a"]


def test_argnums_choose() -> None:
    report = xp.audit(lambda a, b: xp.sum(a) * float(xp.sum(b)), np.ones(2), np.ones(2), argnums=0)
    assert report.ok, report
    report = xp.audit(lambda a, b: xp.sum(a) * float(xp.sum(b)), np.ones(2), np.ones(2), argnums=-1)
    assert report.kinds("error") == ("left-as-number",)


def test_results_may_be_trees_of_any_shape() -> None:
    report = xp.audit(lambda x: {"a": x * 2, "b": (x.detach() * 3, "name")}, np.ones((2, 3)))
    assert report.kinds("warning") == ("detached",)


def test_complex_gradients() -> None:
    z = np.asarray([1 + 2j, 0.5 - 1j])
    assert xp.audit(lambda z: xp.exp(z) * xp.conj(z), z).ok
    assert xp.audit(lambda z: xp.exp(z) * z.detach(), z).kinds("warning") == ("detached",)


def test_keyword_arguments_are_passed() -> None:
    assert xp.audit(lambda x, *, scale: xp.sum(x) * scale, np.ones(2), kwargs={"scale": 3.0}).value == 6.0


def test_compiled_functions_and_transforms_are_looked_into() -> None:
    compiled = xp.compile(lambda x: xp.sum(xp.sin(x) * x))
    assert xp.audit(compiled, np.ones(3)).ok
    hidden = xp.compile(lambda x: xp.sum(xp.sin(x) * x.detach()))
    assert xp.audit(hidden, np.ones(3)).kinds("error") == ("detached",)
    mapped = xp.func.vmap(lambda r: xp.sum(r * xp.floor(r * 9)))
    assert xp.audit(lambda x: xp.sum(mapped(x)), np.ones((2, 3)) / 3.1).ok
    assert xp.audit(lambda x: xp.sum(xp.func.grad(lambda y: xp.sum(y**3))(x)), np.ones(3)).ok


def test_a_cost_is_that_of_the_graph() -> None:
    x = np.ones((100, 10))
    report = xp.audit(lambda x: xp.sum(xp.exp(x)), x, checks=("cost",))
    assert report.cost is not None
    assert report.cost.total == 8000
    assert [(k.operation, k.bytes) for k in report.cost.lines] == [("exp", 8000)]
    report = xp.audit(lambda x: xp.sum(x * x), x, checks=("cost",))
    assert report.cost is not None
    assert (report.cost.total, report.cost.inputs) == (8000, 8000)


# -- bad input ------------------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda: xp.audit(3, np.ones(2)), TypeError, "must be callable"),
    "no arguments": (lambda: xp.audit(lambda: 1), TypeError, "nothing to differentiate"),
    "integers only": (lambda: xp.audit(lambda x: x, np.arange(3)), TypeError, "nothing to differentiate"),
    "argnums": (lambda: xp.audit(lambda x: x, np.ones(2), argnums=1), ValueError, "argument 1, but there are 1"),
    "argnums of another type": (lambda: xp.audit(lambda x: x, np.ones(2), argnums="x"), TypeError, "int or a tuple"),
    "a check": (lambda: xp.audit(lambda x: x, np.ones(2), checks=("path",)), ValueError, "there is no check str 'path'; they are paths"),
    "checks as a string": (lambda: xp.audit(lambda x: x, np.ones(2), checks="paths"), TypeError, "several names"),
    "a seed": (lambda: xp.audit(lambda x: x, np.ones(2), seed=-1), TypeError, "`seed` must be an int"),
    "a suffix": (lambda: xp.audit(xp.sum, np.ones(2)).save("report.pdf"), ValueError, "must end in one of"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        call()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = state.current()

    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xp.audit(interrupted, np.ones(2))
    assert state.current() is before
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    x.grad = xp.asarray([5.0, 6.0])
    xp.audit(lambda y: xp.sum(y * y), x)
    assert x.grad.tolist() == [5.0, 6.0]
    report = xp.audit(lambda y: xp.sum(y * y), x)
    with pytest.raises(OSError):
        report.save(tmp_path / "nowhere" / "report.html")
    assert not list(tmp_path.iterdir())


# -- the report -----------------------------------------------------------------------------------------------------------


class _Parser(HTMLParser):
    """A parser that counts findings and checks that tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.kinds: list[str] = []
        self.marked = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("data-kind"):
            self.kinds.append(str(given["data-kind"]))
        self.marked += tag == "div" and given.get("class") in ("error", "warning", "note")
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", MISTAKES)
def test_reports_can_be_written(name: str, tmp_path: Path) -> None:
    m = MISTAKES[name]
    report = xp.audit(m.function, *m.args)
    for suffix in ("html", "json", "txt"):
        report.save(tmp_path / f"report.{suffix}")
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [f["kind"] for f in data["findings"]] == [f.kind for f in report.findings]
    parser = _Parser()
    parser.feed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not parser.open
    assert parser.kinds == [f.kind for f in report.findings]
    assert parser.marked >= sum(bool(m.line) for _ in report.findings[:1])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json", "report.txt"]


def _browser() -> str | None:
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


@pytest.mark.slow
@pytest.mark.skipif(_browser() is None, reason="needs a browser: chromium or google-chrome")
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    m = MISTAKES["normalised_by_a_float"]
    xp.audit(m.function, *m.args).save(tmp_path / "report.html")
    command = [str(_browser()), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    page = (tmp_path / "report.html").as_uri()
    run = subprocess.run([*command, "--dump-dom", page], capture_output=True, text=True, check=True, timeout=120)
    assert 'data-kind="left-as-number"' in run.stdout
    assert "stroke-dasharray" in run.stdout[run.stdout.index('id="graph"') :]  # a broken edge
    picture = tmp_path / "report.png"
    subprocess.run([*command, f"--screenshot={picture}", "--window-size=900,1200", page], capture_output=True, check=True, timeout=120)
    assert picture.read_bytes().startswith(b"\x89PNG")
    # The boxes of the graph are light on a dark page as well, so their text must be dark.
    asked = "document.title = getComputedStyle(document.querySelector('#graph text')).fill"
    (tmp_path / "asked.html").write_text(
        (tmp_path / "report.html").read_text(encoding="utf-8").replace("</body>", f"<script>{asked}</script></body>"), encoding="utf-8"
    )
    for dark in ((), ("--blink-settings=preferredColorScheme=0",)):
        run = subprocess.run(
            [*command, *dark, "--dump-dom", (tmp_path / "asked.html").as_uri()], capture_output=True, text=True, check=True, timeout=120
        )
        assert "<title>rgb(17, 24, 39)</title>" in run.stdout


PROGRAM = '''
import numpy as np
import xpgrad as xp

def good(x):
    return xp.sum(x * x)

def kinked(x):
    return xp.sum(xp.abs(x - x[0].detach()))

def bad(x):
    return xp.sum(x) * float(x[0])

def case():
    return bad, np.ones(3)

def arguments():
    return (np.ones(3),)

NUMBER = 3
'''  # fmt: skip


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["program:good", "float64[3]"], 0, "nothing found"),
        (["program:kinked", "float64[3]"], 2, "detached"),
        (["program:bad", "float64[3]"], 2, "left-as-number"),
        (["program:bad", "float64[3]", "--allow", "error"], 0, "left-as-number"),
        (["program:bad", "--args", "program:arguments"], 2, "left-as-number"),
        (["program:case"], 2, "left-as-number"),
        (["program:good"], 3, "takes arguments"),
        (["program:NUMBER"], 3, "is not a function"),
        (["program:nothing"], 3, "nothing"),
        (["program:good", "int64[3]"], 3, "nothing to differentiate"),
    ],
)
def test_the_command(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "xpgrad", "audit", *arguments, "--output", "report.html"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stdout + run.stderr
    assert words in run.stdout + run.stderr
    assert (tmp_path / "report.html").exists() == (code != 3)
