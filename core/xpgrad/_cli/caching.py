"""``xpgrad cache``: show and clear the cache of compiled machine code."""

from __future__ import annotations

import time

from xpgrad.programs.native import cache

__all__ = ["run"]


def run(clear: bool) -> int:
    """Print the number and size of the cached functions, or delete them.

    Parameters
    ----------
    clear : bool

    Returns
    -------
    int
        0.
    """
    if clear:
        print(f"deleted {cache.clear()} files in {cache.folder()}")
        return 0
    found = cache.entries()
    print(f"{cache.folder()}: {len(found)} functions, {sum(size for _, size, _ in found) / 1e6:.1f} MB")
    if found:
        days = (time.time() - found[0][2]) / 86400
        print(f"the oldest was last used {days:.1f} days ago; `xpgrad cache --clear` deletes all")
    return 0
