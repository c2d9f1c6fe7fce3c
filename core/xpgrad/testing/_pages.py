"""Write the rows of many functions as a table of functions by backends: as text, Markdown, JSON and HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

from xpgrad._basics.pages import page, prose
from xpgrad.testing._results import CHECKS, CONSTANT, FAILED, KNOWN, LACKS, NOT_RUN, PASSED, WRITES, Row

_MARKS = {PASSED: "✓", WRITES: "✓ w", CONSTANT: "✓ 0", KNOWN: "known", LACKS: "lacks", NOT_RUN: "–", FAILED: "✗"}
_GOOD = (PASSED, WRITES, CONSTANT)
_ORDER = (FAILED, KNOWN, LACKS, WRITES, PASSED, NOT_RUN)  # a cell shows the first of these that occurs in it

_STYLE = """
body { max-width: 90rem; } header p, thead small, footer { color: var(--faint); } label { margin-right: 1rem; }
input[type=search] { padding: .3rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--back); color: inherit; }
th, td { padding: .35rem .7rem; vertical-align: top; } tbody tr:last-child > * { border-bottom: 0; }
thead th { position: sticky; top: 0; background: var(--soft); } thead small { display: block; font-weight: normal; }
th[scope=row] { font-weight: normal; white-space: nowrap; }
summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
summary:focus-visible { outline: 2px solid currentColor; }
td.passed summary { color: var(--ok); } td.writes summary, td.constant summary { color: var(--ok); font-style: italic; }
td.failed { background: var(--error-soft); } td.failed summary { color: var(--error); font-weight: 600; }
td.known { background: var(--warning-soft); } td.known summary { color: var(--warning); }
td.lacks, td.not-run { color: var(--faint); } td.passed, td.writes, td.constant { background: var(--ok-soft); }
dl { margin: .4rem 0; max-width: 34rem; font-size: .85rem; } dt { font-weight: 500; } dt i { font-weight: normal; }
dd { margin: 0 0 .35rem 1rem; overflow-wrap: anywhere; } footer { font-size: .85rem; } footer b { color: var(--text); }
footer h2 { font-size: 1rem; } footer ul { padding-left: 1.1rem; columns: 28rem; }
"""

_SCRIPT = """
const only = document.getElementById('only'), find = document.getElementById('find');
function show() {
  for (const row of document.querySelectorAll('tbody tr'))
    row.hidden = (only.checked && !row.classList.contains('bad')) || !row.textContent.toLowerCase().includes(find.value.toLowerCase());
}
only.onchange = find.oninput = show;
"""


def _grid(rows: Iterable[Row]) -> tuple[list[str], dict[str, dict[str, list[Row]]]]:
    """Return the backends, and the rows by function and backend."""
    backends: dict[str, None] = {}
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        backends[row.backend] = None
        found.setdefault(row.function, {}).setdefault(row.backend, []).append(row)
    return list(backends), found


def _outcome(cell: list[Row]) -> str:
    """Return the outcome of a cell, the most serious one of its rows."""
    outcomes = {row.outcome for row in cell}
    gradients = {row.outcome for row in cell if row.check == "gradient"}
    if gradients == {CONSTANT} and outcomes <= {PASSED, WRITES, CONSTANT, NOT_RUN}:
        return CONSTANT
    return next((o for o in _ORDER if o in outcomes), NOT_RUN)


def _mark(cell: list[Row]) -> str:
    """Return the mark of a cell, with the names of the checks that it concerns."""
    outcome = _outcome(cell)
    named = [] if outcome in (*_GOOD, NOT_RUN) else list(dict.fromkeys(row.check for row in cell if row.outcome == outcome))
    return " ".join([_MARKS[outcome], ", ".join(named)]).strip()


def _columns(cells: dict[str, list[Row]], backends: list[str]) -> list[str]:
    return [_mark(cells.get(b, [])) for b in backends]


def _reasons(cell: list[Row]) -> list[str]:
    """Return the reasons behind a cell's mark, each once with all arguments to which it applies."""
    said: dict[tuple[str, str], list[int]] = {}
    for row in cell:
        if row.outcome in (FAILED, KNOWN, LACKS):
            said.setdefault((row.check, row.reason), []).extend([] if row.argument is None else [row.argument])
    return [f"{check}{_of_arguments(numbers)}: {reason}" for (check, reason), numbers in said.items()]


def _of_arguments(numbers: list[int]) -> str:
    return f" of argument {', '.join(map(str, numbers))}" if numbers else ""


def _totals(found: dict[str, dict[str, list[Row]]], backends: list[str]) -> list[str]:
    """Return the number of functions that pass on each backend."""
    cells = [[of[b] for of in found.values() if b in of] for b in backends]
    return [f"{sum(_outcome(c) in _GOOD for c in column)} of {len(column)}" for column in cells]


def summary_lines(rows: Iterable[Row]) -> list[str]:
    """Return the table as lines of text, followed by the reasons.

    Parameters
    ----------
    rows : iterable of Row
    """
    backends, found = _grid(rows)
    lines = [["", *backends], *([name, *_columns(cells, backends)] for name, cells in found.items()), ["", *_totals(found, backends)]]
    widths = [max(len(line[k]) for line in lines) for k in range(len(backends) + 1)]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines]
    for name, cells in found.items():
        said: dict[str, list[str]] = {}
        for b in backends:
            for reason in _reasons(cells.get(b, [])):
                said.setdefault(reason, []).append(b)
        text += [f"{name} on {', '.join(where)}: {reason}" for reason, where in said.items()]
    return text


def json_page(rows: Iterable[Row]) -> str:
    """Return all rows as JSON.

    Parameters
    ----------
    rows : iterable of Row

    Returns
    -------
    str
        A JSON object with the format version and the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> import json
    >>> result = xp.testing.examine(xp.sin, np.ones(2), backends="numpy", order=1, vmap=False, forward=False)
    >>> page = json.loads(xp.testing.json_page(result.rows))
    >>> sorted(page), len(page["rows"]) == len(result.rows)
    (['rows', 'version'], True)
    """
    fields = ("function", "argument", "backend", "check", "outcome", "reason")
    return json.dumps({"version": 1, "rows": [{f: getattr(row, f) for f in fields} for row in rows]}, indent=1) + "\n"


def markdown_page(rows: Iterable[Row], title: str = "Differentiability") -> str:
    """Return the table as Markdown, with the reasons as a numbered list.

    Parameters
    ----------
    rows : iterable of Row
    title : str

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> result = xp.testing.examine(xp.sin, np.ones(2), backends="numpy")
    >>> print(xp.testing.markdown_page(result.rows, title="My functions"))
    # My functions
    <BLANKLINE>
    | | `numpy` |
    |---|---|
    | **differentiable** | 1 of 1 |
    | `sin` | ✓ |
    """
    backends, found = _grid(rows)
    numbers: dict[str, int] = {}
    table = []
    for name, cells in found.items():
        line = []
        for b in backends:
            notes = [numbers.setdefault(reason, len(numbers) + 1) for reason in _reasons(cells.get(b, []))]
            line.append(" ".join([_mark(cells.get(b, [])), *(f"[{n}]" for n in notes)]))
        table.append(f"| `{name}` | {' | '.join(line)} |")
    head = f"| | {' | '.join(f'`{b}`' for b in backends)} |\n|---|{'---|' * len(backends)}"
    totals = f"| **differentiable** | {' | '.join(_totals(found, backends))} |"
    said = "".join(f"{number}. {reason}\n" for reason, number in numbers.items())
    return "\n".join([f"# {title}", "", head, totals, *table, "", said]).rstrip() + "\n"


def html_page(rows: Iterable[Row], title: str = "Differentiability") -> str:
    """Return the table as a self-contained HTML page; a click on a cell shows its checks and their reasons.

    Parameters
    ----------
    rows : iterable of Row
    title : str

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> result = xp.testing.examine(xp.sin, np.ones(2), backends="numpy")
    >>> page = xp.testing.html_page(result.rows, title="My functions")
    >>> "<title>My functions</title>" in page
    True
    """
    backends, found = _grid(rows)
    say = html.escape
    heads = "".join(f"<th scope=col>{say(b)}<small>{total}</small></th>" for b, total in zip(backends, _totals(found, backends)))
    body, failures = [], 0
    for name, cells in found.items():
        line = "".join(_html_cell(cells.get(b, []), b) for b in backends)
        failing = any(_outcome(c) == FAILED for c in cells.values())
        failures += failing
        body.append(f"<tr{' class=bad' if failing else ''}><th scope=row><code>{say(name)}</code></th>{line}</tr>")
    legend = "".join(f"<li><b>{say(check)}</b> {prose(promise)}</li>" for check, promise in CHECKS.items())
    counts = f"{len(found)} functions, {len(backends)} backends, " + (f"{failures} with failures" if failures else "no failures")
    return page(
        title,
        f"<header><h1>{say(title)}</h1><p>{counts}</p>",
        "<label><input type=checkbox id=only> only failures</label> <input id=find type=search placeholder='find a function'></header>",
        f"<main class=scroll><table><thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></main>",
        f"<footer><h2>The checks</h2><ul>{legend}</ul></footer>",
        style=_STYLE,
        script=_SCRIPT,
    )


def _html_cell(cell: list[Row], backend: str) -> str:
    """Return a table cell as HTML: a mark that expands to the rows behind it."""
    if not cell:
        return "<td class=none></td>"
    lines = "".join(_html_row(row) for row in cell)
    label = html.escape(_mark(cell))
    kind = _outcome(cell).replace(" ", "-")
    return (
        f"<td class={kind}><details><summary aria-label='{html.escape(backend)}: {label}'>{label}</summary><dl>{lines}</dl></details></td>"
    )


def _html_row(row: Row) -> str:
    which = "" if row.argument is None else f" <i>argument {row.argument}</i>"
    reason = f"<dd>{html.escape(row.reason)}</dd>" if row.reason and row.outcome != NOT_RUN else ""
    title = f" title='{html.escape(row.reason)}'" if row.outcome == NOT_RUN else ""
    return f"<dt{title}>{_MARKS[row.outcome]} {html.escape(row.check)}{which}</dt>{reason}"
