"""Follow the links that leave the documentation: to the conformance report, to files of the repository, and to the pages beside it.

The pages are read in the repository, too, so that they link to what lies around them. On the site the report stands where it stands there,
the repository's own pages (how to contribute, what changed, the plugins) get a page each in `about/`, and a folder is told by its name.
"""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from xpgrad_reference import files

#: Pages of the repository that the site shows, by the name of their page in `about/`.
ABOUT = {
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
    **{f"xpgrad-{name}": f"plugins/xpgrad-{name}/README.md" for name in ("torch", "dask", "cubed", "mlx", "strict", "simstream")},
}
#: Shown as a picture in the repository, and as itself on the site.
_PICTURE, _AUDIT = "![The page of an audit](audit-report.png)", "audit-report.html"
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)")


def write_about(app: Sphinx) -> None:
    """Write `about/`: a page for each of the repository's own. (Their suffix is not ``.md``: these are not pages of the repository.)"""
    source = Path(app.srcdir)
    folder, root = source / "about", source.parent
    texts = {
        f"{name}.txt": followed((root / file).read_text(encoding="utf-8"), (root / file).parent, folder, source)
        for name, file in ABOUT.items()
    }
    notes = sorted((f"../{path.stem}" for path in source.glob("release-*.md")), reverse=True)
    listed = "\n".join(f"    {name}" for name in ["../supported-versions", *notes, *ABOUT])
    about = "How to work on xpgrad, what changed, and the plugins that come with it."
    texts["index.rst"] = f"About\n=====\n\n{about}\n\n.. toctree::\n    :maxdepth: 1\n\n{listed}\n"
    files.write(folder, texts)


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Change the links of a page that leave the documentation, as Sphinx reads it."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        text = content[0].replace(_PICTURE, f'{_PICTURE}\n\n<a href="{_AUDIT}">Open this page</a>')
        content[0] = followed(text, path.parent, path.parent, Path(app.srcdir))


def followed(text: str, origin: Path, here: Path, source: Path) -> str:
    """The text of a page with links to where the site has their targets.

    Parameters
    ----------
    text : str
        Markdown.
    origin : Path
        The folder that its links are seen from.
    here : Path
        The folder in which the page stands on the site.
    source : Path
        The site's own.
    """

    def link(match: re.Match[str]) -> str:
        words, target = match.groups()
        file, hashed, anchor = target.partition("#")
        path = Path(os.path.normpath(origin / file))
        if not file or re.match(r"\w+:", target) or not path.exists():
            return match[0]
        if path.is_relative_to(source / "conformance"):
            return f'<a href="{os.path.relpath(path, here)}{hashed}{anchor}">{words}</a>'
        page = _page(path, source)
        if page is None:
            return f"{words} (`{path.relative_to(source.parent)}` in the repository)" if str(path.name) not in words else words
        return f"[{words}]({os.path.relpath(page, here)}{hashed}{anchor})"

    return _LINK.sub(link, text)


def _page(path: Path, source: Path) -> Path | None:
    """The page of the site that shows a file of the repository."""
    root = source.parent
    if path == root / "README.md":
        return source / "index.rst"
    for name, file in ABOUT.items():
        if path == root / file:
            return source / "about" / f"{name}.txt"
    if path.is_relative_to(root / "examples" / "gallery"):
        return source / "gallery" / (f"{path.stem}.rst" if path.suffix == ".py" else "index.rst")
    return path if path.is_relative_to(source) and path.is_file() else None


def add_reports(app: Sphinx, failed: Exception | None) -> None:
    """Put the conformance report, published or made now, beside the pages, and the page of the first audit of docs/auditing.md."""
    if failed is None and app.builder.format == "html":
        source, out = Path(app.srcdir), Path(app.outdir).resolve()
        shutil.copytree(source / "conformance", out / "conformance", dirs_exist_ok=True)
        if not (source / "conformance" / "report.html").exists():
            make_report(out / "conformance")
        program = (source / "auditing.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("growth.py").write_text(program, encoding="utf-8")  # an audit shows the lines of a file, by the name that it was run by
            report = runpy.run_path("growth.py")["report"]
            report.save(out / _AUDIT)


def make_report(folder: Path) -> None:
    """Write a quick conformance report of NumPy into a folder, for a site that is built without a published one.

    Raises
    ------
    RuntimeError
        If the suite cannot run here.
    """
    command = [sys.executable, "-m", "xpgrad", "conformance", "--profile", "quick", "--backend", "numpy"]
    command += ["--html", str(folder / "report.html"), "--json", str(folder / "report.json")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not (folder / "report.html").exists():
        msg = f"the site's conformance report cannot be made (is the extra `docs` installed?): {done.stderr or done.stdout}"
        raise RuntimeError(msg)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps to Sphinx's events."""
    app.connect("builder-inited", write_about)
    app.connect("source-read", read)
    app.connect("build-finished", add_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
