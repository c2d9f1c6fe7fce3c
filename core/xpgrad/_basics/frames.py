"""Find out which frames of a traceback belong to xpgrad, so that users see only the part up to their line."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_own(filename: str) -> bool:
    """Return whether a frame of this file belongs to xpgrad, including generated text."""
    return filename.startswith(("<xpgrad ", _PACKAGE))
