"""Law: the examples of the first pages run in the browser, by a button that the keyboard reaches; without a network it says so.

Pyodide is stood in for by a script that notes what it is to run. `XPGRAD_PYODIDE` may name a folder with all files of a release of Pyodide,
its packages among them, in which the examples then really run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="builds the site")

from xpgrad_reference.running import ADDRESS, LIBRARIES, PAGES

ROOT = Path(__file__).resolve().parents[2]

#: Pyodide as the page uses it: `print("x")` prints, `raise` raises, and the code that it ran is in `window.ran`.
STAND_IN = """
export async function loadPyodide() {
  window.ran = [];
  window.installed = [];
  let out = () => {};
  return {
    setStdout({ batched }) { out = batched; },
    async loadPackage(name) { window.installed.push(name); },
    async loadPackagesFromImports() {},
    pyimport: () => ({ async install(url) {
      window.installed.push(url);
      if (!(await fetch(url)).ok) throw new Error('no wheel');
    } }),
    runPython: (code) => ({ toJs: () => window.picture ? [['plot.png', new Uint8Array([137, 80])]] : [] }),
    async runPythonAsync(code) {
      window.ran.push(code);
      if (code.includes(window.broken)) throw Object.assign(new Error('Traceback\\nZeroDivisionError'), { name: 'PythonError' });
      if (code.includes('print(')) out('printed by ' + window.ran.length);
    },
  };
}
"""


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address) as context:
        page = context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        yield page
        assert page.errors == []


def examples(name: str) -> list[str]:
    """Return the examples of a page that have a button."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python(?: needs=(\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [code for needs, code in found if needs in ("", *LIBRARIES)]


def stand_in(page: Any) -> None:
    """Serve the stand-in in Pyodide's place."""
    headers = {"Access-Control-Allow-Origin": "*"}
    page.route(f"{ADDRESS}**", lambda route: route.fulfill(body=STAND_IN, content_type="text/javascript", headers=headers))


@pytest.mark.parametrize("name", PAGES)
def test_each_example_has_a_button_and_nothing_is_fetched(page: Any, address: str, name: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{name}.html")
    assert [node.text_content() for node in page.locator("div.run pre").all() if node.text_content()] == examples(name)
    buttons = page.get_by_role("button", name=re.compile(r"^Run example \d+$"))
    assert buttons.count() == len(examples(name))
    assert [url for url in asked if not url.startswith(address) or url.endswith(".whl")] == []


def test_other_pages_have_none(page: Any) -> None:
    page.goto("which-function.html")
    assert page.locator("div.run, .run-button, script[data-wheel]").count() == 0


def test_the_keyboard_runs_an_example_and_those_before_it(page: Any) -> None:
    stand_in(page)
    page.goto("start.html")
    third = page.get_by_role("button", name="Run example 3")
    third.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert third.evaluate("node => node === document.activeElement")
    page.keyboard.press("Enter")
    outputs = page.locator(".run-output")
    outputs.nth(2).get_by_text("printed by 3").wait_for()
    assert outputs.nth(0).inner_text().strip() == "printed by 1"
    assert page.evaluate("ran") == examples("start")[:3]
    assert page.evaluate("installed.length") == 2
    page.keyboard.press("Enter")  # once more: those before it have run
    outputs.nth(2).get_by_text("printed by 4").wait_for()
    assert page.evaluate("ran") == [*examples("start")[:3], examples("start")[2]]
    assert outputs.nth(3).is_hidden()


def test_an_error_and_a_picture_are_shown_where_they_arise(page: Any) -> None:
    stand_in(page)
    page.goto("start.html")
    page.evaluate("window.broken = 'y.backward()'; window.picture = true")
    page.get_by_role("button", name="Run example 3").click()
    outputs = page.locator(".run-output")
    outputs.nth(2).get_by_text("An example above raised an error.").wait_for()
    assert outputs.nth(0).locator("img[alt='plot.png']").count() == 1
    assert outputs.nth(1).inner_text().strip() == "Traceback\nZeroDivisionError"
    page.evaluate("window.broken = 'nothing'")
    page.get_by_role("button", name="Run example 3").click()
    outputs.nth(2).get_by_text("printed by").wait_for()


def test_without_a_network_it_says_so_and_may_be_tried_again(page: Any) -> None:
    page.route(f"{ADDRESS}**", lambda route: route.abort())
    page.goto("start.html")
    button = page.get_by_role("button", name="Run example 1")
    button.click()
    said = page.locator(".run-output").first
    said.get_by_text("Python could not be loaded, which needs a connection to cdn.jsdelivr.net").wait_for()
    assert said.get_attribute("role") == "status"
    page.unroute(f"{ADDRESS}**")
    stand_in(page)
    button.click()
    said.get_by_text("could not").or_(said.get_by_text("printed by 1")).wait_for()


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_print_what_they_say(page: Any, name: str) -> None:
    """Law: in a real Pyodide, each `print` of a page prints the comment next to it."""
    if "XPGRAD_PYODIDE" not in os.environ:
        pytest.skip("XPGRAD_PYODIDE does not name a folder with a release of Pyodide and its packages")
    folder = Path(os.environ["XPGRAD_PYODIDE"])
    if not list(folder.glob("numpy-*.whl")):
        pytest.skip(f"{folder} has no NumPy for Pyodide: it is the npm package, not a whole release")

    def serve(route: Any) -> None:
        file = folder / route.request.url.removeprefix(ADDRESS)
        route.fulfill(path=file, headers={"Access-Control-Allow-Origin": "*"}) if file.is_file() else route.abort()

    page.route(f"{ADDRESS}**", serve)
    page.goto(f"{name}.html")
    page.get_by_role("button", name=re.compile(r"^Run example \d+$")).last.click()
    outputs = page.locator(".run-output pre")
    outputs.last.get_by_text(re.compile(r"^(?!Loading|Running).")).wait_for(timeout=200_000)
    for code, output in zip(examples(name), outputs.all(), strict=True):
        promised = [shown[1] for line in code.splitlines() if (shown := re.search(r"^\s*print\(.*\)  # (.+)$", line))]
        assert output.text_content().splitlines() == (promised or ["(no output)"])
