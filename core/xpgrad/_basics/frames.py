"""Tells which lines of a traceback are xpgrad's own: the part that users are shown ends at their line."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_own(filename: str) -> bool:
    """Return whether a frame of this file is xpgrad's, generated text included."""
    return filename.startswith(("<xpgrad ", _PACKAGE))
