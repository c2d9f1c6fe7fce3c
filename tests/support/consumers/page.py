"""Generate docs/consumers.md from the findings of `xpgrad.testing`, and parse it for the tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from support.consumers import MODULES, NEWER, table_of

__all__ = ["columns", "mark", "newer_columns", "page", "with_newer"]

Rows = list[dict[str, Any]]

INTRODUCTION = """\
# Libraries that accept any array

This page shows which functions of SciPy, scikit-learn and array-api-extra work on Tensors and differentiate. These libraries have no code
for xpgrad: they ask the Tensor for its namespace (`x.__array_namespace__()`) and create their arrays with it, on the Tensor's device
([devices](devices-and-errors.md)). The functions were called on Tensors of each device while the default device was `numpy`, by
[`xpgrad.testing`](testing-libraries.md), which a library can run on its own functions.

* ✓: the gradient agrees with central differences in every argument that contains floating numbers, as do the second derivatives; forward
  mode agrees with reverse mode, and `vmap` with a loop. Exceptions are marked: `-2` second derivatives, `-f` forward mode, `-v` `vmap`.
* ✓ in 1: this holds for argument 1 (counted from 0), but not for the others.
* ✓ w: this holds inside `autograd.graph.allow_mutation_on_saved_tensors()`, because the library writes into its own temporaries ([writing
  in place](writing-in-place.md)); outside it, an error is raised.
* ✓ 0: the derivative is 0, as are the differences.
* runs: the value agrees, but there is no gradient, for the numbered reason.
* no: the function does not run, gives other values, or writes into its argument.

Every function that its library declares to support the Array API is listed here or under [left out](#left-out): for SciPy %(scipy)s the
functions in its own table of capabilities, for scikit-learn %(sklearn)s the estimators with the tag `array_api_support` and the metrics of
its tests, for array-api-extra %(array_api_extra)s all functions. An argument that is not an array of floating numbers is a constant.

The tests check a sample of the rows on the backends that they run on, with a different sample for each commit. `XPGRAD_TEST_CONSUMERS=1
python -m pytest tests/project/test_consumers.py` checks all rows. This page is generated: `PYTHONPATH=tests python
tests/project/test_consumers.py numpy strict torch jax`.
"""


def mark(rows: Rows) -> tuple[str, list[str]]:
    """Return the table cell of one function on one device, and the reasons for what fails."""
    failed = {
        check: reason
        for row in reversed(rows)
        if row["outcome"] in ("failed", "lacks")
        for check, reason in [(row["check"], row["reason"])]
    }
    for check in ("runs", "unchanged", "values", "repeatable"):
        if check in failed:
            return "no", [failed[check]]
    gradients = {row["argument"]: row["outcome"] for row in rows if row["check"] == "gradient"}
    good = [a for a, outcome in gradients.items() if outcome in ("passed", "constant")]
    reasons = [failed[check] for check in ("graph", "gradient") if check in failed]
    if not good:
        return "runs", reasons[:1]
    words = "✓"
    if any(row["outcome"] == "writes" for row in rows):
        words = "✓ w"
    elif all(gradients[a] == "constant" for a in good):
        words = "✓ 0"
    if len(good) < len(gradients):
        words += f" in {', '.join(map(str, good))}"
    for check, letter in (("second", "-2"), ("forward", "-f"), ("vmap", "-v")):
        if any(row["check"] == check and row["outcome"] in ("failed", "lacks") for row in rows if row["argument"] in (None, *good)):
            words += f" {letter}"
            reasons.append(failed[check])
    return words, reasons


def plain(reason: str) -> str:
    """Return a reason up to its first semicolon, without the paths, numbers and shapes of a single call."""
    reason = re.sub(r" from '[^']*'", "", reason.partition("; ")[0])
    reason = re.sub(r"(output \d+: )?element \[[^]]*\] is .*", "it gives other values than on NumPy's arrays", reason)
    reason = re.sub(r"(Multiple namespaces for array inputs): .*", r"\1, NumPy's own among them", reason)
    reason = re.sub(r"along a drawn direction it is [^,]*, by differences.*", "the second derivatives are not those of differences", reason)
    reason = re.sub(r"`.*` \([^()]*, line \d+\) converts it (.* would be lost).*", r"a call converts it \1", reason)
    reason = re.sub(r"which backend 'vmap of [^']*' does", "which `vmap` does", reason)
    reason = re.sub(r" \(by [^)]*\)| \(times [^)]*\)| \(step [^)]*\)", "", reason)
    reason = re.sub(r"of shape \([\d, ]*\)|\(\d[\d, ]*,?\)", "of some shape", reason)
    return re.sub(r"is -?[\d.e+-]+, by differences -?[\d.e+-]+", "is not that of differences", reason).rstrip(" .:,")


def page(found: dict[str, dict[str, Rows]], left_out: dict[str, str]) -> str:
    """Return the text of the page.

    Parameters
    ----------
    found : dict
        The rows of each call, for each device.
    left_out : dict
        The reason for each name.
    """
    import array_api_extra
    import scipy
    import sklearn

    versions = {"scipy": scipy.__version__, "sklearn": sklearn.__version__, "array_api_extra": array_api_extra.__version__}
    numbers: dict[str, int] = {}
    cells = {device: {name: mark(rows) for name, rows in column.items()} for device, column in found.items()}
    names = list(next(iter(found.values())))
    sections = {start: [n for n in names if table_of(n) == start] for start in MODULES if start != NEWER}
    head = _head(found)
    totals = [f"| {_title(start)} | {' | '.join(_count(cells[d], inside) for d in found)} |" for start, inside in sections.items()]
    text = [INTRODUCTION % versions, f"## Overview\n\n{head}"]
    text[-1] += "\n" + "\n".join([*totals, f"| **total** | {' | '.join(_count(cells[d], names) for d in found)} |"]) + "\n"
    text += [f"## {_title(start)}\n\n{head}\n{_lines(cells, inside, numbers)}\n" for start, inside in sections.items()]
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    text.append("## Left out\n\n" + "\n".join(f"* {reason}: {', '.join(some)}" for reason, some in by_reason.items()) + "\n")
    text.append("## Reasons\n\n" + _reasons(numbers) + "\n")
    return "\n".join(text)


def with_newer(text: str, found: dict[str, dict[str, Rows]]) -> str:
    """Return the page with another last section, on functions that support the standard only in a newer SciPy than the page's."""
    import scipy

    numbers: dict[str, int] = {}
    cells = {device: {name: mark(rows) for name, rows in column.items()} for device, column in found.items()}
    lines = _lines(cells, list(next(iter(found.values()))), numbers)
    command = f"`PYTHONPATH=tests python tests/project/test_consumers.py --newer {' '.join(found)}`"
    says = f"""\
These functions accept any array from {NEWER} on, which needs a newer Python than the one that made the tables above. They were called with
SciPy {scipy.__version__} ({command}); the numbers are those of the reasons below."""
    return f"{_older(text).rstrip()}\n\n{_TITLE}\n\n{says}\n\n{_head(found)}\n{lines}\n\n{_reasons(numbers)}\n"


_TITLE = f"## Since {NEWER}"


def _older(text: str) -> str:
    return text.partition(_TITLE)[0]


def _head(devices: Iterable[str]) -> str:
    names = [f"`{device}`" for device in devices]
    return f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}"


def _lines(cells: dict[str, dict[str, tuple[str, list[str]]]], names: list[str], numbers: dict[str, int]) -> str:
    return "\n".join(f"| `{name}` | {' | '.join(_cell(*column[name], numbers) for column in cells.values())} |" for name in names)


def _reasons(numbers: dict[str, int]) -> str:
    return "\n".join(f"{number}. {why}" for why, number in numbers.items())


def _title(start: str) -> str:
    return {"scipy": "The rest of SciPy", "sklearn": "scikit-learn", "array_api_extra": "array-api-extra"}.get(start, start)


def _cell(words: str, reasons: list[str], numbers: dict[str, int]) -> str:
    notes = dict.fromkeys(numbers.setdefault(plain(reason), len(numbers) + 1) for reason in reasons)
    return " ".join([words, *(f"[{n}]" for n in notes)])


def _count(column: dict[str, tuple[str, list[str]]], names: list[str]) -> str:
    return f"{sum(column[n][0].startswith('✓') for n in names)} of {len(names)}"


def columns(text: str) -> dict[str, dict[str, str]]:
    """Parse the page, without the section on a newer SciPy: return the mark of each call, for each device."""
    return _columns(_older(text))


def newer_columns(text: str) -> dict[str, dict[str, str]]:
    """Parse the section on a newer SciPy: return the mark of each call, for each device."""
    return _columns(text.partition(_TITLE)[2])


def _columns(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    heads: list[str] = []
    for line in text.splitlines():
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else ["", ""]
        if line.startswith("| |"):
            heads = [head.strip("`") for head in rest]
        elif first.startswith("`"):
            for head, cell in zip(heads, rest):
                found.setdefault(head, {})[first.strip("`")] = re.sub(r"( \[\d+\])+$", "", cell)
    return found
