"""Places in the user's code: which of his lines led to an operation, and how that line reads."""

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
        The name of the function that the line is in.
    """

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The line itself, without its indentation; empty where there is no source."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class Stop:
    """The frame at which the user's code begins: what calls the function that is watched."""

    def __init__(self) -> None:
        self.frame: FrameType | None = None


def user_places(stop: Stop, depth: int = 12) -> tuple[tuple[Place, ...], str]:
    """The user's lines that lead here, the innermost first, and the public function of xpgrad that the innermost one called.

    Parameters
    ----------
    stop : Stop
        Lines from this frame outwards are not the function's.
    depth : int
        The number of lines that are looked for.
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
    """A file's path as it is shortest: below the working directory without it."""
    try:
        return os.path.relpath(file) if not os.path.relpath(file).startswith("..") else file
    except ValueError:
        return file
