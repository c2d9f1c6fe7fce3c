"""Write the pages that are made for the site, and take away those of a former run; what did not change keeps its date."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Make a folder hold these files and no others; one that did not change is left alone, since Sphinx reads anew what has a new date."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
