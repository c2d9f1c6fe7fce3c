"""Connect the reference to Sphinx: its pages are written before the others are read, its docstrings are put together with their facts."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from xpgrad_reference import files
from xpgrad_reference.names import Name, public
from xpgrad_reference.pages import pages, text

_known: dict[str, Name] = {}


def write(app: Sphinx) -> None:
    """Write the pages of the reference."""
    files.write(Path(app.srcdir) / "reference", pages(list(_known.values())))


def complete(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Replace a docstring by the text that its facts complete, with links to the report in place of the ids of rules."""
    if name in _known:
        lines[:] = text(_known[name]).splitlines()


def fold_overloads(app: Sphinx) -> None:
    """Show the signature of the implementation instead of one for each overload, whose private types would fill half a page."""
    for module in {getattr(name.thing, "__module__", None) for name in _known.values()} - {None, "builtins"}:
        analyzer = ModuleAnalyzer.for_module(module)
        analyzer.analyze()
        analyzer.overloads.clear()


def unlink_builtins(app: Sphinx, doctree: nodes.document) -> None:
    """Take the links from types of Python's own that the package has names like: `bool` in a signature is no data type of arrays."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and node.get("reftype") == "class" and hasattr(builtins, str(node.get("reftarget"))):
            node.replace_self(_shown(node))


def _shown(node: nodes.Element) -> list[nodes.Node]:
    """What a reference shows where it leads somewhere: the short form of a name that has two."""
    found: list[nodes.Node] = []
    for child in node.children:
        if not isinstance(child, addnodes.pending_xref_condition):
            found.append(child)
        elif child.get("condition") == "resolved":
            found += child.children
    return found


def wrap(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Let long names in headings and tables go on in another line after a dot or an underscore: not within a word, nor beyond the page."""
    if "body" in context:
        text = str(context["body"])
        if pagename.startswith("reference/"):
            text = re.sub(r"(?<=<h1>)[^<]+", _broken, text, count=1)
        long = re.compile(r'(?<=<span class="pre">)[^<]{20,}(?=</span>)')
        context["body"] = re.sub(r"<td\b.*?</td>", lambda cell: long.sub(_broken, cell[0]), text, flags=re.DOTALL)


def _broken(match: re.Match[str]) -> str:
    return re.sub(r"(?<=[._(/])(?=\w)", "<wbr>", match[0])


def one_way(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Take the links back from pages of source code: they guess the name that a function is documented by, and ours have others."""
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps to Sphinx's events."""
    _known.update({name.full: name for name in public()})
    app.connect("builder-inited", write)
    app.connect("builder-inited", fold_overloads)
    app.connect("doctree-read", unlink_builtins)
    app.connect("html-page-context", one_way)
    app.connect("html-page-context", wrap)
    app.connect("autodoc-process-docstring", complete, priority=400)  # numpydoc's own comes at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
