"""Compares the public names and their signatures with `api.txt`, and the declared methods of a Tensor with `_tensor/declared.pyi`.

``PYTHONPATH=docs/_ext python tests/project/test_api.py`` rewrites both.
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
from xpgrad._array.base import TensorBase
from xpgrad._rows.namespace import IN_PLACE, METHODS
from xpgrad._rows.row import ROWS
from xpgrad_reference.names import members, modules, own

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
API = HERE / "api.txt"
DECLARED = ROOT / "core" / "xpgrad" / "_tensor" / "declared.pyi"


def lines() -> Iterator[str]:
    """Yield one line for each public name: what it is, and its signature."""
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
        return ""  # the signature that Python shows depends on its version
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)  # annotations of named tuples, before Python 3.14
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def declared_stub() -> str:
    """Return the text of `declared.pyi`: the methods that declarations add to a Tensor, for type checkers and editors."""
    operators: dict[str, bool] = {}  # whether each operator is unary
    for row in ROWS.values():
        if row.operator is not None and row.special_methods is not None:
            names = (*row.special_methods, row.operator.in_place)
            operators |= {name: len(row.tensors) == 1 for name in names if name is not None}
    text = '''# Written by `python tests/project/test_api.py` from the declarations of functions: change those.

from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._tensor.tensor import Tensor

class DeclaredMethods(TensorBase):
    """The methods of a `Tensor` that declared functions are, in the modules of `rules`."""

    def __hash__(self) -> int: ...
'''
    for name, one in sorted(operators.items()):
        ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        text += f"    def {name}(self{'' if one else ', other: Any, /'}) -> Tensor: ...{ignored}\n"
    for name in sorted({*METHODS, *IN_PLACE}):
        method = getattr(TensorBase, name)
        summary = (method.__doc__ or "").partition("\n\n")[0]
        text += f'    def {name}{_as_method(method)}:\n        """{summary}"""\n\n'
    return text.rstrip("\n") + "\n"


def _as_method(function: Any) -> str:
    """Return a function's signature as a method; types that the stub does not import become Any, since operands may be of many types."""
    signature = inspect.signature(function)
    first, *others = signature.parameters.values()
    known = ("Tensor", "bool", "float", "int", "None")
    others = [p if p.annotation in known else p.replace(annotation="Any") for p in others]
    if len(others) == 1 and others[0].kind is inspect.Parameter.POSITIONAL_ONLY:
        others = [others[0].replace(name="other")]
    others = [first.replace(name="self", annotation=inspect.Parameter.empty), *others]
    if not any(p.kind is inspect.Parameter.POSITIONAL_ONLY for p in others[1:]):
        others[0] = others[0].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return str(signature.replace(parameters=others)).replace("'", "")


def test_type_checkers_know_the_methods_that_are_declared() -> None:
    assert DECLARED.read_text(encoding="utf-8") == declared_stub(), "write it again, as the docstring above says"


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


def test_the_page_of_supported_versions_says_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "supported-versions.md").read_text(encoding="utf-8")
    rows = {name.strip("`"): (low, high) for name, low, high in re.findall(r"^\| (\S+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)}
    pythons = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert rows.pop("Python") == (project["requires-python"].removeprefix(">="), pythons[-1])
    assert {name: low for name, (low, _) in rows.items()} == dict(d.split(">=") for d in project["dependencies"])


if __name__ == "__main__":
    API.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
    DECLARED.write_text(declared_stub(), encoding="utf-8")
