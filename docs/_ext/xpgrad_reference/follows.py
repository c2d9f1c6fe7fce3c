"""Say which pages of others a name follows: those of PyTorch, of the Array API standard and of SciPy, where these have the name.

``python -m xpgrad_reference.follows`` looks the names up in the libraries that are installed, and writes `follows.json`; the site is built
without them.
"""

from __future__ import annotations

import importlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from xpgrad_reference.facts import facts
from xpgrad_reference.names import Name, public

TABLE = Path(__file__).resolve().parent / "follows.json"
_TORCH = "https://docs.pytorch.org/docs/2.13"
_STANDARD = "https://data-apis.org/array-api/2025.12/API_specification/generated"
_SCIPY = "https://docs.scipy.org/doc/scipy/reference/generated"
#: Names of PyTorch that are documented on a page with others.
_TOGETHER = {
    r"torch\.special\.": "special.html#{}",
    r"torch\.autograd\.profiler\.": "autograd.html#profiler",
    r"torch\.utils\.checkpoint\.": "checkpoint.html#{}",
    r"torch\.(bfloat16|bool|complex\d+|u?int\d+|float\d+)$": "tensor_attributes.html#torch-dtype",
    r"torch\.Tensor$": "tensors.html#torch.Tensor",
    r"torch\.(autograd|func|linalg|fft)$": "{}.html",
}
#: Modules of PyTorch that hold, beside what is documented, what is not.
_SPECIAL = {"xpgrad.scipy.special.": "torch.special."}


def torch_address(name: str) -> str:
    """The page of PyTorch's documentation on which a name stands."""
    for pattern, page in _TOGETHER.items():
        if re.match(pattern, name):
            return f"{_TORCH}/{page.format(name)}"
    return f"{_TORCH}/generated/{name}.html"


def standard_address(name: str) -> str:
    """The page of a name in the standard."""
    return f"{_STANDARD}/array_api.{name}.html"


def scipy_address(name: str) -> str:
    """The page of a name in SciPy's documentation."""
    return f"{_SCIPY}/{name}.html"


@cache
def table() -> dict[str, dict[str, str]]:
    """What was found, by name: `torch`, `standard` and `scipy`, with the name there."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def followed(name: Name) -> dict[str, str]:
    """What a name follows: as the table says, unless the facts know better."""
    found = dict(table().get(name.full, {}))
    told = facts(name.full).torch
    if told is not None:
        found.pop("torch", None)
        if told:
            found["torch"] = told
    return found


def look_up() -> dict[str, dict[str, str]]:
    """Find each name in PyTorch, in the standard (as array-api-strict has it) and in SciPy."""
    return {name.full: row for name in public() if (row := _row(name))}


def _row(name: Name) -> dict[str, str]:
    full, row = name.full, {}
    theirs = next(
        (there + full.removeprefix(ours) for ours, there in _SPECIAL.items() if full.startswith(ours)),
        "torch" + full.removeprefix("xpgrad"),
    )
    if name.kind != "data" or full.rpartition(".")[2] not in {"e", "pi", "inf", "nan", "newaxis"}:
        thing = resolve(theirs)
        if thing is not None and not full.startswith(("xpgrad.backend", "xpgrad.testing", "xpgrad.dialects")):
            row["torch"] = theirs
    place = full.removeprefix("xpgrad.")
    if re.match(r"(linalg\.|fft\.)?\w+$", place) and name.kind in {"function", "data"} and resolve(f"array_api_strict.{place}") is not None:
        row["standard"] = {"e": "constants.e", "pi": "constants.pi"}.get(place, place)
    if full.startswith("xpgrad.scipy.") and name.kind in {"function", "class", "data"} and resolve(place) is not None:
        row["scipy"] = place
    return row


def resolve(name: str) -> Any:
    """The object that a dotted name means, or None."""
    root, *path = name.split(".")
    thing: Any = importlib.import_module(root)
    for i, part in enumerate(path):
        try:
            thing = importlib.import_module(".".join([root, *path[: i + 1]]))
        except ImportError:
            thing = getattr(thing, part, None)
    return thing


if __name__ == "__main__":
    TABLE.write_text(json.dumps(look_up(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
