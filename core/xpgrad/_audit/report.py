"""`Audit`: the result of an audit, as text, JSON and an HTML page."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import Any

from xpgrad._audit.cost import Cost
from xpgrad._audit.findings import SEVERITIES, Finding
from xpgrad._audit.page import page
from xpgrad._audit.places import Place, short
from xpgrad._audit.running import host_of
from xpgrad.autograd._drawing import bytes_text

_SIGNS = {"error": "✗", "warning": "!", "note": "·"}


class Audit:
    """The result of `audit`, which prints as a report.

    Attributes
    ----------
    findings : tuple of Finding
        The findings, the worst first; each has ``kind``, ``severity``, ``message``, ``place``, ``inputs``, ``cure``.
    gradients : dict
        The gradient of each audited input by name; None if the graph does not lead to the input.
    value : float
        The result, or the weighted sum of the results.
    cost : Cost or None
        The memory that the graph saves for backward.
    name : str
        The name of the function.
    operations, runs : int
        The number of operations in a run, and the number of runs.
    """

    findings: tuple[Finding, ...]
    gradients: dict[str, Any]
    value: float
    cost: Cost | None
    operations: int
    runs: int
    name: str
    _problem: Any
    _base: Any
    _curve: Any
    _entries: Any

    def __init__(
        self, problem: Any, base: Any, findings: list[Finding], gradients: list[Any], value: float, cost: Cost | None,
        curve: list[tuple[int, float]], entries: list[int],
    ) -> None:  # fmt: skip
        self.findings = tuple(sorted(findings, key=lambda f: -SEVERITIES.index(f.severity)))
        self.gradients = dict(zip(problem.labels, gradients))
        self.value = value
        self.cost = cost
        self.operations = base.trace.count
        self.runs = problem.runs
        self.name = getattr(problem.function, "__qualname__", repr(problem.function))
        self._problem, self._base, self._curve, self._entries = problem, base, curve, entries

    # -- the summary -----------------------------------------------------------------------------------------------

    @property
    def severity(self) -> str:
        """The worst severity of the findings: ``"error"``, ``"warning"`` or ``"note"``; ``"ok"`` without findings."""
        return self.findings[0].severity if self.findings else "ok"

    @property
    def ok(self) -> bool:
        """True if no finding is worse than a note."""
        return self.severity in ("ok", "note")

    def kinds(self, at_least: str = "note") -> tuple[str, ...]:
        """Return the distinct kinds of findings with at least a severity."""
        level = SEVERITIES.index(at_least)
        return tuple(dict.fromkeys(f.kind for f in self.findings if SEVERITIES.index(f.severity) >= level))

    # -- as text ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Audit of {self.name}: {self._summary()}>"

    def _summary(self) -> str:
        counts = [(s, sum(f.severity == s for f in self.findings)) for s in reversed(SEVERITIES)]
        return ", ".join(f"{n} {s}{'s' if n != 1 else ''}" for s, n in counts if n) or "nothing found"

    def __str__(self) -> str:
        lines = [f"audit of {self.name}: {self._summary()} ({self.operations} operations, {self.runs} runs)"]
        for f in self.findings:
            lines += ["", f"{_SIGNS[f.severity]} {f.severity}: {f.kind}{_name_inputs(f.inputs)}", *_wrap(f.message)]
            if f.place is not None:
                lines.append(f"    at {short(f.place.file)}:{f.place.line}, in {f.place.function}")
                if f.place.text:
                    lines.append(f"        {f.place.text}")
                lines += [f"    called from {short(p.file)}:{p.line}, in {p.function}: {p.text}" for p in _callers(f)]
            lines += _wrap(f"-> {f.cure}")
        lines += self._cost_lines()
        return "\n".join(lines)

    def _cost_lines(self) -> list[str]:
        cost = self.cost
        if cost is None or not cost.total:
            return []
        lines = [
            "",
            f"kept for the backward: {bytes_text(cost.total)}" + (f", {bytes_text(cost.inputs)} of it inputs" if cost.inputs else ""),
        ]
        for k in cost.lines[:5]:
            at = "" if k.place is None else f"  {short(k.place.file)}:{k.place.line}  {k.place.text}"
            lines.append(f"    {bytes_text(k.bytes):>10}  {k.operation} x {k.nodes}{at}")
        if cost.functions:
            name, freed, again = cost.functions[0]
            lines.append(f"    a checkpoint around `{name}` would free up to {bytes_text(freed)}, and compute {again} operations again")
        return lines

    # -- as data ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, numbers and strings."""
        return {
            "function": self.name, "severity": self.severity, "value": _number(self.value), "operations": self.operations,
            "runs": self.runs,
            "inputs": [
                {"name": name, "shape": list(p.shape), "dtype": str(p.dtype), "device": str(p.device), "gradient": _norm(g)}
                for (name, g), p in zip(self.gradients.items(), self._problem.points)
            ],
            "findings": [
                {
                    "kind": f.kind, "group": f.group, "severity": f.severity, "title": f.title, "message": f.message, "cure": f.cure,
                    "inputs": list(f.inputs), "place": _place(f.place), "places": [_place(p) for p in f.places],
                    "details": {k: _number(v) if isinstance(v, float) else v for k, v in f.details.items()},
                }
                for f in self.findings
            ],
            "cost": None if self.cost is None else {
                "total": self.cost.total, "inputs": self.cost.inputs,
                "lines": [{"operation": k.operation, "place": _place(k.place), "bytes": k.bytes, "nodes": k.nodes}
                          for k in self.cost.lines],
                "checkpoints": [{"function": f, "bytes": b, "operations": n} for f, b, n in self.cost.functions],
            },
        }  # fmt: skip

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_html(self) -> str:
        """Return the report as a self-contained HTML page."""
        return page(self, self._base, self._curve)

    def _repr_html_(self) -> str:
        return self.to_html()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file; an error leaves no partial file.

        Parameters
        ----------
        path : path
            Its suffix chooses the format: ``.html``, ``.json``, or ``.txt`` and ``.md`` for text.

        Raises
        ------
        ValueError
            The suffix is unknown.
        """
        suffix = Path(path).suffix.lower()
        writers = {".html": self.to_html, ".json": self.to_json, ".txt": self.__str__, ".md": self.__str__}
        if suffix not in writers:
            msg = f"cannot save an audit as {Path(path).name!r}: the name must end in one of {', '.join(writers)}"
            raise ValueError(msg)
        text = writers[suffix]() + "\n"
        part = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _name_inputs(inputs: tuple[str, ...]) -> str:
    return f" ({', '.join(inputs)})" if inputs else ""


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 116, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _callers(f: Finding) -> list[Place]:
    """Return the callers of a finding's line in other files, and the outermost caller."""
    others = [p for p in f.places[1:] if f.place is not None and p.file != f.place.file]
    return others[-1:]


def _place(p: Place | None) -> dict[str, Any] | None:
    return None if p is None else {"file": p.file, "line": p.line, "function": p.function, "text": p.text}


def _number(x: float) -> float | str:
    return x if x - x == 0 else str(x)


def _norm(g: Any) -> float | str | None:
    if g is None:
        return None
    host = abs(host_of(g)).astype(float)
    return _number(float((host**2).sum() ** 0.5))
