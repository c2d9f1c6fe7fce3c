"""Compares the public names and their signatures with `api.txt`; ``python tests/project/test_api.py`` writes it again."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xpgrad

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
API = HERE / "api.txt"
#: What is public beside what the package itself shows. (The dialect for HIPS autograd has the names of NumPy that is installed.)
ALSO = ("xpgrad.dialects.libtorch", "xpgrad.dialects.oneflow")


def modules() -> list[types.ModuleType]:
    """The package, and the modules that it shows, in them too."""
    found: dict[str, types.ModuleType] = {}
    waiting = ["xpgrad", *ALSO]
    while waiting:
        module = importlib.import_module(waiting.pop())
        if module.__name__ in found:
            continue
        found[module.__name__] = module
        inner = (getattr(module, name) for name in dir(module) if not name.startswith("_"))
        waiting += [m.__name__ for m in inner if isinstance(m, types.ModuleType) and re.match(r"xpgrad(\.[a-z]\w*)+$", m.__name__)]
    return [found[name] for name in sorted(found)]


def lines() -> Iterator[str]:
    """One line for each public name: what it is, and how it is called."""
    for module in modules():
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType):
                continue
            own = str(getattr(thing, "__module__", "xpgrad")).partition(".")[0] == "xpgrad"
            yield f"{module.__name__}.{name}{_called(thing) if own else ': of another library'}"
            if own and isinstance(thing, type):
                for member in sorted(n for n in dir(thing) if not n.startswith("_")):
                    where = next((c for c in thing.__mro__ if member in c.__dict__), thing)
                    if where.__module__.partition(".")[0] == "xpgrad" and where.__name__ != "BaseException":
                        yield f"{module.__name__}.{name}.{member}{_called(inspect.getattr_static(thing, member))}"


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
    assert (gone, new) == ([], []), "a change for users: run `python tests/project/test_api.py`, and tell them in CHANGELOG.md"


def test_the_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    version = xpgrad.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", version)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version: "{version}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


if __name__ == "__main__":
    API.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
