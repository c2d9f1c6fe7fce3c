"""The journal of a run: each result as it comes, one JSON document per line, so that a run that was ended can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xpgrad_conformance.engine import Result

__all__ = ["Journal", "JournalError"]


class JournalError(ValueError):
    """Raised if a file is not the journal of such a run."""


class Journal:
    """A journal in a file; without a file it records nothing.

    Parameters
    ----------
    path : str or None
        The file. If it exists, its results are those of a run that is resumed.
    settings : mapping
        What the results depend on, which the first line records.

    Raises
    ------
    JournalError
        If the file is not a journal, or one of a run with other settings.
    """

    def __init__(self, path: str | None, settings: Mapping[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._found: dict[str, dict[str, Result]] = {}
        if self._path is None:
            return
        head = {"journal": 1, **settings}
        if not self._path.exists() or not self._path.read_text(encoding="utf-8").strip():
            self._path.write_text(json.dumps(head) + "\n", encoding="utf-8")
            return
        first, *lines = self._path.read_text(encoding="utf-8").split("\n")
        try:
            if (other := json.loads(first)) != head:
                msg = f"{path} is the journal of a run with other settings: {other}, not {head}; give another file"
                raise JournalError(msg)
            complete = lines if not lines[-1] else lines[:-1]  # the run may have been ended in the middle of a line
            for line in filter(None, complete):
                row = json.loads(line)
                result = Result(**row["result"])
                self._found.setdefault(row["target"], {})[result.id] = result
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as exc:
            msg = f"{path} is not a journal of the conformance suite: {type(exc).__name__}: {exc}"
            raise JournalError(msg) from exc
        if lines[-1]:
            self._path.write_text("\n".join([first, *complete, ""]), encoding="utf-8")

    def results(self, target: str) -> dict[str, Result]:
        """Return the recorded results of a target by the contract's id.

        The last one is left out, so that its contract runs again, and the run learns the name and the capabilities of the library.
        """
        found = dict(self._found.get(target, {}))
        if found:
            del found[[*found][-1]]
        return found

    def note(self, target: str, result: Result) -> None:
        """Record a result; contracts that were not tried have none."""
        if self._path is None or (result.status == "not run" and result.kind in ("stopped", "crash", "timeout", "broken")):
            return
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"target": target, "result": result._asdict()}) + "\n")
