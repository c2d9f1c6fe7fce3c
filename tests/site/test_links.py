"""Law: every link within the site leads to an existing page, file and anchor; every picture has a description."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


class _Page(HTMLParser):
    """A parser that collects a page's links, anchors, and pictures without a description."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.mute: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {name for key in ("id", "name") if (name := found.get(key))}
        self.links |= {link for key in ("href", "src") if (link := found.get(key))}
        if tag == "img" and found.get("alt") is None:
            self.mute.append(str(found.get("src")))


@cache
def page(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def pages(built: Path) -> list[Path]:
    return sorted(path for path in built.rglob("*.html") if "_static" not in path.parts)


def dead(path: Path, built: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for link in page(path).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        anchor = unquote(parts.fragment)
        there = target.is_relative_to(built) and target.exists()
        known = page(target).anchors | {"", "top"} if there and target.suffix == ".html" else {anchor}
        if not there or anchor not in known:
            found.append(link)
    return found


def test_links_and_anchors_are_there(built: Path) -> None:
    assert {path.relative_to(built).as_posix(): found for path in pages(built) if (found := dead(path, built))} == {}


def test_every_picture_has_a_text(built: Path) -> None:
    assert {path.name: page(path).mute for path in pages(built) if page(path).mute} == {}


def test_every_page_of_the_documentation_is_on_the_site(built: Path) -> None:
    sources = Path(__file__).resolve().parents[2] / "docs"
    assert {path.stem for path in sources.glob("*.md")} <= {path.stem for path in built.glob("*.html")}


def test_every_public_name_can_be_linked_to(built: Path) -> None:
    """Law: the inventory has each public name, so that other projects' Sphinx can link to it."""
    inventory = pytest.importorskip("sphinx.util.inventory")
    from xpgrad_reference.facts import facts
    from xpgrad_reference.names import public

    found = inventory.InventoryFile.loads((built / "objects.inv").read_bytes(), uri="")
    known = {name for kind, entries in found.data.items() if kind.startswith("py:") for name in entries}
    assert {name.full for name in public() if not facts(name.full).internal} - known == set()


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">b</a><a href="b.html#gone">b</a><a href="c.html">c</a><img src="b.html">', encoding="utf-8"
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>', encoding="utf-8")
    assert sorted(dead(tmp_path / "a.html", tmp_path.resolve())) == ["b.html#gone", "c.html"]
    assert page(tmp_path / "a.html").mute == ["b.html"]
