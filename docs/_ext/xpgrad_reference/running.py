"""Give the examples of some pages a "Run" button, which runs them in the browser by Pyodide (`docs/_static/run.js`).

No Sphinx extension is used, for these reasons (2026-11). sphinx-thebe needs a server. jupyterlite-sphinx adds 72 MB to the site, fetches a
font from elsewhere on each page, has a button that the keyboard does not reach, runs each example in a session of its own, and shows
nothing if Pyodide cannot be loaded. sphinx-pyodide fetches Pyodide with each page and has a directive that a reader of the repository would
not see as Python. sphinx-pyrepl-web needs Python 3.12.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

#: The version of Pyodide that the site loads.
PYODIDE = "314.0.7"
#: Where the site loads it from.
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
#: Pages whose examples are run, each as one program.
PAGES = ("start", "tutorial")
#: Libraries that Pyodide has; examples for others have no button.
LIBRARIES = ("matplotlib", "scipy")


def mark(app: Sphinx, docname: str, content: list[str]) -> None:
    """Mark the examples that have a button, as Sphinx reads a page."""
    if docname in PAGES:

        def marked(fence: re.Match[str]) -> str:
            return "```{code-block} python\n:class: run\n\n" if fence[1] in (None, *LIBRARIES) else fence[0]

        content[0] = re.sub(r"^```python(?: needs=(\w+))?\n", marked, content[0], flags=re.MULTILINE)


def add_script(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Add the script, and the addresses that it loads from, to the pages whose examples are run."""
    if pagename in PAGES:
        wheel = context["pathto"](f"_static/{wheel_name(app.config.release)}", 1)
        app.add_js_file("run.js", type="module", **{"data-pyodide": ADDRESS, "data-wheel": wheel})


def wheel_name(version: str) -> str:
    """Return the file name of xpgrad's wheel."""
    return f"xpgrad-{version}-py3-none-any.whl"


def build_wheel(app: Sphinx, failed: Exception | None) -> None:
    """Build xpgrad's wheel into the site."""
    if failed is None and app.builder.format == "html":
        from hatchling.builders.wheel import WheelBuilder  # loads late: slow

        folder = Path(app.outdir) / "_static"
        (path,) = WheelBuilder(str(Path(app.srcdir).parent)).build(directory=str(folder), versions=["standard"])
        if Path(path).name != wheel_name(app.config.release):
            msg = f"the site's pages refer to {wheel_name(app.config.release)}, but the wheel is {Path(path).name}"
            raise RuntimeError(msg)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps to Sphinx's events."""
    app.connect("source-read", mark)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", build_wheel)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
