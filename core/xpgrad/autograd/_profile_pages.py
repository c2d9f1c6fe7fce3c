"""Write the events of a profile as files: in the Trace Event Format, and as an HTML page with a timeline.

Positions on the page are percentages, so that the timeline can be widened without drawing it again; the browser clips what an event
contains. Each node is followed by the line from its operation, which is shown while the pointer is on the node.
"""

from __future__ import annotations

import json
import math
import os
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from xpgrad._basics.pages import page
from xpgrad.autograd._drawing import bytes_text
from xpgrad.autograd._profile_events import BACKWARD, RANGE, time_text

_CATEGORIES = {BACKWARD: "backward", RANGE: "user_annotation"}
_ROW, _GAP, _TOP = 22, 26, 24  # pixels: one depth of a lane, the title above a lane, the axis


def write(path: str | PathLike[str], text: str) -> None:
    """Write a text file."""
    Path(path).write_text(text, encoding="utf-8")


def category(event: Any) -> str:
    """Return the category of an event in a trace."""
    return _CATEGORIES.get(event.scope, "forward")


def _threads(events: Any) -> list[int]:
    """Return the threads in the order of their first events."""
    return list(dict.fromkeys(event.thread for event in events))


def chrome_trace(events: Any) -> str:
    """Return the events in the Trace Event Format, with an arrow (``s`` to ``f``) from each operation to each run of its node."""
    pid = os.getpid()
    found: list[dict[str, Any]] = [{"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": "xpgrad"}}]
    threads = _threads(events)
    names = {t: f"thread {n + 1}" for n, t in enumerate(threads)}
    found += [{"ph": "M", "pid": pid, "tid": t, "name": "thread_name", "args": {"name": names[t]}} for t in threads]
    for event in events:
        start, length = event.time_range.start, event.cpu_time_total
        args: dict[str, Any] = {"id": event.id}
        if event.sequence_nr >= 0:
            args["Sequence number"] = event.sequence_nr
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        if event.self_saved_bytes:
            args["Saved bytes"] = event.self_saved_bytes
        if event.stack:
            args["Call stack"] = event.stack
        if event.args is not None:
            args["args"] = event.args
        common = {"pid": pid, "tid": event.thread}
        found.append({"ph": "X", "cat": category(event), "name": event.name, "ts": start, "dur": length, **common, "args": args})
        if event.forward is not None:
            flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.id, "pid": pid}
            found.append({"ph": "s", **flow, "tid": event.forward.thread, "ts": event.forward.time_range.start})
            found.append({"ph": "f", "bp": "e", **flow, "tid": event.thread, "ts": start})
    return json.dumps({"traceEvents": found, "displayTimeUnit": "ms"})


# -- the page --------------------------------------------------------------------------------------------------------------

#: Hides the names that do not fit into their bars, when the page opens and whenever its width changes.
_FIT = """
function fit() {
  for (const event of document.querySelectorAll("svg.event")) {
    const name = event.querySelector("text");
    name.style.display = "";
    if (name.getComputedTextLength() + 8 > event.querySelector("rect").getBoundingClientRect().width) name.style.display = "none";
  }
}
addEventListener("resize", fit);
fit();
"""
_STYLE = """
:root { --link: #b3261e; --forward: #9cc4f0; --backward: #f3c08a; --leaf: #c9ced6; --user_annotation: #b7dfb4; --edge: #00000033; }
@media (prefers-color-scheme: dark) { :root { --link: #ff8a80; --forward: #2f5f95; --backward: #8d5a1c; --leaf: #4a525d;
  --user_annotation: #35683a; --edge: #ffffff33; } }
body { max-width: none; } p { color: var(--faint); } pre { overflow-x: auto; }
.key { display: inline-block; width: .9em; height: .9em; border-radius: 2px; vertical-align: -1px; margin: 0 .3em 0 1em; }
text { font: 12px system-ui, sans-serif; fill: var(--text); } text.faint { fill: var(--faint); }
rect { stroke: var(--edge); } .forward { fill: var(--forward); background: var(--forward); }
.backward { fill: var(--backward); background: var(--backward); } .leaf { fill: var(--leaf); background: var(--leaf); }
.user_annotation { fill: var(--user_annotation); background: var(--user_annotation); }
line.flow { stroke: var(--link); stroke-width: 1.5; visibility: hidden; pointer-events: none; }
svg.event:hover > rect { stroke: var(--text); } svg.event:hover + line.flow { visibility: visible; }
"""


def html_page(events: Any) -> str:
    """Return a page with a timeline, one lane per thread, and the table of averages."""
    begin = min((e.time_range.start for e in events), default=0.0)
    whole = max((e.time_range.end for e in events), default=1.0) - begin or 1.0
    lines: list[str] = []
    top, places = _TOP, {}
    for number, thread in enumerate(_threads(events)):
        mine = [e for e in events if e.thread == thread]
        lines.append(f'<text class="faint" x="4" y="{top + 17}">thread {number + 1}</text>')
        depths = _depths(mine)
        for event in mine:
            places[event.id] = top + _GAP + _ROW * depths[event.id]
        top += _GAP + _ROW * (max(depths.values()) + 1) + 6
    for event in events:
        lines.append(_drawn(event, places, begin, whole))
        if event.forward is not None and event.forward.id in places:
            here, there = event.time_range.start, event.forward.time_range.start
            ends = f'x1="{_share(there - begin, whole)}" y1="{places[event.forward.id] + _ROW - 2}" x2="{_share(here - begin, whole)}"'
            lines.append(f'<line class="flow" {ends} y2="{places[event.id]}"/>')
    step = _round(whole / 10)
    marks = [
        (_share(k * step, whole), f"{k * step:g} us" if whole < 1e4 else f"{k * step / 1e3:g} ms") for k in range(int(whole / step) + 1)
    ]
    ticks = "".join(
        f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{top}"/><text class="faint" x="{x}" dx="3" y="14">{text}</text>'
        for x, text in marks
    )
    keys = "".join(
        f'<span class="key {kind}"></span>{text}'
        for kind, text in (("forward", "operation"), ("backward", "node of the backward"), ("leaf", "leaf"), ("user_annotation", "range"))
    )
    table = events.key_averages().table(sort_by="self_cpu_time_total", row_limit=40)
    return page(
        "Profile",
        f"<h1>{len(events)} events in {time_text(whole)}</h1>\n<p>{keys}</p>",
        "<p>Point at an event for its numbers, and at a node for the operation that made it.</p>",
        '<p><label>Width <input type="range" min="100" max="5000" value="100" '
        "oninput=\"document.getElementById('time').style.width = this.value + '%'; fit()\"></label></p>",
        '<div class="scroll"><svg id="time" style="width: 100%; min-width: 700px" '
        f'height="{top + 4}" role="img" aria-label="timeline">\n{ticks}',
        *lines,
        f"</svg></div>\n<pre>{escape(table)}</pre>",
        style=_STYLE,
        script=_FIT,
    )


def _depths(events: list[Any]) -> dict[int, int]:
    """Return the nesting depth of each event within its thread."""
    found: dict[int, int] = {}
    for event in events:  # a parent begins before its children
        parent = event.cpu_parent
        found[event.id] = found[parent.id] + 1 if parent is not None and parent.id in found else 0
    return found


def _round(us: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(us))
    return next((n * power for n in (1.0, 2.0, 5.0) if n * power >= us), 10.0 * power)


def _share(us: float, whole: float) -> str:
    return f"{100 * us / whole:.4f}%"


def _drawn(event: Any, places: dict[int, int], begin: float, whole: float) -> str:
    told = [event.name, f"{event.cpu_time_total_str}, of its own {event.self_cpu_time_total_str}"]
    if event.self_saved_bytes:
        told.append(f"keeps {bytes_text(event.self_saved_bytes)} for the backward")
    if event.input_shapes:
        told.append(f"shapes {event.input_shapes}")
    told += event.stack[:1]
    kind = "leaf" if event.name == "AccumulateGrad" else category(event)
    width = max(100 * event.cpu_time_total / whole, 0.05)
    return (
        f'<svg class="event" x="{_share(event.time_range.start - begin, whole)}" y="{places[event.id]}" width="{width:.4f}%" '
        f'height="{_ROW - 2}"><title>{escape(chr(10).join(told))}</title><rect class="{kind}" width="100%" height="100%" rx="2"/>'
        f'<text x="4" y="15">{escape(event.name)}</text></svg>'
    )
