"""Find out which frames of a traceback belong to xpgrad, so that users see only the part up to their line."""

from __future__ import annotations

import os
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_own(filename: str) -> bool:
    """Return whether a frame of this file belongs to xpgrad, including generated text."""
    return filename.startswith(("<xpgrad ", _PACKAGE))


def find_user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's program, from `frame` outwards.

    Without one it is the innermost frame of an installed package, and None if all frames are xpgrad's.
    """
    import sysconfig  # loads late: only errors look for the user's line

    installed = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    first = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_own(file):
            first = first or frame
            if not file.startswith((*installed, "<frozen")):
                return frame
        frame = frame.f_back
    return first
