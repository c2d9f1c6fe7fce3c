"""Law: the code in the documentation runs and does what it says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


#: Pages whose code is run, and the further libraries that some of their blocks declare to need.
RUN = {
    "README.md": (),
    "docs/auditing.md": (),
    "docs/cheat-sheet.md": (),
    "docs/complex.md": (),
    "docs/compiling.md": ("jax",),
    "docs/conformance-suite.md": (),
    "docs/constants.md": (),
    "docs/devices-and-errors.md": (),
    "docs/equations.md": (),
    "docs/hips.md": (),
    "docs/how-it-works.md": (),
    "docs/how-to-clusters.md": ("distributed", "jax"),
    "docs/how-to-custom-rules.md": (),
    "docs/how-to-debug.md": (),
    "docs/how-to-fit-with-scipy.md": (),
    "docs/how-to-larger-than-memory.md": ("dask",),
    "docs/how-to-many-devices.md": ("jax",),
    "docs/how-to-memory.md": (),
    "docs/how-to-train.md": (),
    "docs/matrix-functions.md": (),
    "docs/numpy.md": (),
    "docs/other-programs.md": (),
    "docs/profiling.md": (),
    "docs/release-0.3.0.md": (),
    "docs/scipy.md": (),
    "docs/second-backend.md": ("mlx",),
    "docs/sharp-edges.md": (),
    "docs/signals.md": (),
    "docs/solvers.md": (),
    "docs/sparse.md": (),
    "docs/sparse-matrices.md": (),
    "docs/subgradients.md": (),
    "docs/start.md": ("matplotlib",),
    "docs/testing-libraries.md": (),
    "docs/torch-methods.md": (),
    "docs/transforms.md": (),
    "docs/views-and-versions.md": (),
    "docs/which-function.md": (),
    "docs/with-other-libraries.md": ("einops", "pandas", "pint", "xarray"),
    "docs/writing-in-place.md": (),
}
#: Pages whose code another test runs.
TESTED_APART = {
    "CONTRIBUTING.md",  # by test_new_functions.py
    *(f"docs/coming-from-{library}.md" for library in ("autograd", "jax", "mygrad", "pytorch")),
    "docs/tutorial.md",
    "docs/writing-a-backend.md",
}

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "plugins/*/*.md")
    for path in ROOT.glob(pattern)
)


def blocks(file: str, needs: str = "") -> list[str]:
    """Return the blocks of code of a page that need no further library, and those that need the library `needs`."""
    found = re.findall(r"^```python(?: needs=(\w+))?\n(.*?)^```$", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [code for library, code in found if library in ("", needs)]


def test_the_worked_backend_is_whole() -> None:
    code = "\n".join(blocks("docs/writing-a-backend.md"))
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    # d/dx of x0 * (sin x0 + sin x1 + sin x2)
    assert run.stdout == "tensor([2.4322, -0.4161, -0.99], device='mylib')\n" or run.stdout.startswith("tensor([ 2.4322, -0.4161, -0.99")


def test_all_code_is_run() -> None:
    """Law: every page that contains code is in one of the tables."""
    code = {page for page in PAGES if "```python" in (ROOT / page).read_text(encoding="utf-8")}
    assert {page for page in code if not page.startswith("plugins/")} == {*RUN, *TESTED_APART}


@pytest.mark.slow(one_in=16)
@pytest.mark.parametrize(("page", "needs"), [(page, needs) for page, libraries in RUN.items() for needs in ("", *libraries)])
def test_the_code_prints_what_it_says(page: str, needs: str, tmp_path: Path) -> None:
    """Law: the blocks of a page run in order without a warning, and each `print` prints the comment next to it.

    They run in a new directory, so that files that a page writes do not end up in the repository.
    """
    if needs:
        pytest.importorskip(needs, reason="this part of the page is about it")
    code = "\n".join(blocks(page, needs))
    expected = []
    for line in code.splitlines():
        if re.match(r"\s*print\(", line):
            shown = re.search(r"\)  # (.+)$", line)
            assert shown, f"this line does not say what it prints: {line}"
            expected.append(shown[1])
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == expected


def test_the_first_page_of_the_site_prints_what_it_shows() -> None:
    text = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    code, shown = (
        textwrap.dedent(re.search(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)[1]).strip()  # type: ignore[index]
        for language in ("python", "text")
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == shown


def prose(page: str) -> str:
    """Return the text of a page without its code, in which brackets are not links."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors(path: Path) -> set[str]:
    """Return the anchors that links to a page may use: its headings in GitHub's spelling."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_every_page_of_the_documentation_can_be_found() -> None:
    """Law: each page in docs/ can be reached from the README, directly or through other pages."""
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path.suffix == ".md" and path not in found:
            found.add(path)
            links = re.findall(r"\]\(([^)#\s]+)", prose(path.relative_to(ROOT).as_posix()))
            todo += [(path.parent / link).resolve() for link in links if not re.match(r"https?:", link)]
    assert {page for page in PAGES if ROOT / page not in found} == set()


@pytest.mark.parametrize("name", ["simstream", "strict", "torch", "dask", "cubed"])
def test_every_plugin_says_what_it_is(name: str) -> None:
    text = (ROOT / "plugins" / f"xpgrad-{name}" / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# xpgrad-{name}\n")
    assert f"pip install xpgrad-{name}" in text


def test_where_to_look_leads_somewhere() -> None:
    """Law: each row of CONTRIBUTING's table names a file and something that this file defines."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Where to look\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| .+ \| `(\S+)` \| `(\w+)` \|$", section, re.MULTILINE)
    assert rows
    assert len(rows) == section.count("\n|") - 2, "a row is not of that form"
    for file, name in rows:
        assert (ROOT / file).is_file(), file
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assert name in defined, f"{file} defines no {name}"
