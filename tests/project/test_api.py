"""Compares the public names and their signatures with `api.txt`.

``PYTHONPATH=docs/_ext python tests/project/test_api.py`` writes it again.
"""

from __future__ import annotations

import enum
import inspect
import re
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xpgrad
from xpgrad_reference.names import members, modules, own

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
API = HERE / "api.txt"


def lines() -> Iterator[str]:
    """One line for each public name: what it is, and how it is called."""
    for module in modules():
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType):
                continue
            yield f"{module.__name__}.{name}{_called(thing) if own(thing) else ': of another library'}"
            if own(thing) and isinstance(thing, type):
                for member, inner in members(thing):
                    yield f"{module.__name__}.{name}.{member}{_called(inner)}"


def _called(thing: Any) -> str:
    thing = thing.__func__ if isinstance(thing, (staticmethod, classmethod)) else thing
    if isinstance(thing, property) or not callable(thing):
        return f": {type(thing).__name__}"
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return ""  # how Python writes their call depends on its version
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def test_public_names_and_signatures_are_those_that_users_were_told() -> None:
    known, now = API.read_text(encoding="utf-8").splitlines(), list(lines())
    gone, new = [line for line in known if line not in set(now)], [line for line in now if line not in set(known)]
    assert (gone, new) == ([], []), "a change for users: write api.txt again, as the docstring above says, and tell them in CHANGELOG.md"


def test_the_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    version = xpgrad.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", version)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version: "{version}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


if __name__ == "__main__":
    API.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")


def test_the_page_of_supported_versions_says_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "supported-versions.md").read_text(encoding="utf-8")
    rows = {name.strip("`"): (low, high) for name, low, high in re.findall(r"^\| (\S+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)}
    pythons = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert rows.pop("Python") == (project["requires-python"].removeprefix(">="), pythons[-1])
    assert {name: low for name, (low, _) in rows.items()} == dict(d.split(">=") for d in project["dependencies"])
