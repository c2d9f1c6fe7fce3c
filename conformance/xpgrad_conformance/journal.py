"""The journal of a long run: a file to which each result is added as it comes, so that a run that was ended can be resumed."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Journal", "JournalError"]

#: The name under which a journal records the settings of its run.
_SETTINGS = "settings"


class JournalError(ValueError):
    """Raised if a file is the journal of another run."""


class Journal:
    """A file of pairs of a name and a result, one JSON document per line; without a path it does nothing.

    Its results are valid only for the commit on which they were made.

    Parameters
    ----------
    path : Path or None
    settings : mapping, optional
        Further settings on which the results depend.

    Raises
    ------
    JournalError
        If the file exists and does not record these settings.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        if path is None or settings is None:
            return
        if not path.exists():
            self.add(_SETTINGS, settings)
        elif (other := self._pairs().get(_SETTINGS)) != settings:
            what = "no journal of such a run" if other is None else f"the journal of a run with other settings, {other}"
            msg = f"{path} is {what}; this run has {dict(settings)}: give another file"
            raise JournalError(msg)

    def _pairs(self) -> dict[str, Any]:
        found = {}
        for line in self._path.read_text(encoding="utf-8").splitlines() if self._path is not None and self._path.exists() else ():
            with contextlib.suppress(ValueError):
                name, result = json.loads(line)
                found[name] = result
        return found

    def read(self) -> dict[str, Any]:
        """Return the results in the file, by name; a last line that was cut off is ignored."""
        return {name: result for name, result in self._pairs().items() if name != _SETTINGS}

    def add(self, name: str, result: Any) -> None:
        """Add a result to the file."""
        if self._path is not None:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps([name, result]))  # the newline comes first because the last line may have been cut off
