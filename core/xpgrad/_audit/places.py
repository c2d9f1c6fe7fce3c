"""Places in the user's code: the lines that led to an operation."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType
from typing import NamedTuple

from xpgrad._basics.frames import is_own

_HERE = os.path.dirname(os.path.abspath(__file__))


class Place(NamedTuple):
    """A line of a program.

    Attributes
    ----------
    file : str
    line : int
        From 1.
    function : str
        The name of the function that contains the line.
    """

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source of the line without indentation; empty if it is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class Stop:
    """The frame at which the user's code begins: the caller of the audited function."""

    def __init__(self) -> None:
        self.frame: FrameType | None = None


def user_places(stop: Stop, depth: int = 12) -> tuple[tuple[Place, ...], str]:
    """Return the stack of the user's code, the innermost line first, and the public function of xpgrad that this line called.

    Parameters
    ----------
    stop : Stop
        The frame at which to stop.
    depth : int
        The largest number of lines.
    """
    frame: FrameType | None = sys._getframe(1)
    places: list[Place] = []
    via = ""
    while frame is not None and frame is not stop.frame and len(places) < depth:
        code = frame.f_code
        if not is_own(code.co_filename):
            places.append(Place(code.co_filename, frame.f_lineno, code.co_name))
        elif not places and not code.co_name.startswith(("_", "<")) and os.path.dirname(code.co_filename) != _HERE:
            via = code.co_name
        frame = frame.f_back
    return tuple(places), via


def short(file: str) -> str:
    """Return a path relative to the working directory if it is below that."""
    try:
        return os.path.relpath(file) if not os.path.relpath(file).startswith("..") else file
    except ValueError:
        return file
