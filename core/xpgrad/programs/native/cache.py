"""A cache of machine code in a folder that processes share: private, of bounded size, and with atomic writes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path

__all__ = ["clear", "entries", "folder", "load", "save"]

_LIMIT = 256 << 20  # bytes of all files
_saved: int | None = None  # bytes that this process saved since it last measured the folder; None before the first time
_HEAD = b"xpgrad machine code 1\n"
_SUFFIX = ".o"


def folder() -> Path:
    """Return the cache folder: ``XPGRAD_CACHE`` if it is set, else ``xpgrad`` in the user's cache folder."""
    given = os.environ.get("XPGRAD_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "xpgrad"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "xpgrad"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xpgrad"


def load(key: str) -> bytes | None:
    """Return the machine code saved under a key; None if there is none, or if it cannot be trusted."""
    try:
        path = folder() / f"{key}{_SUFFIX}"
        if not path.exists() or not _is_private(folder()) or not _is_private(path):
            return None
        content = path.read_bytes()
    except (OSError, RuntimeError):  # no home
        return None
    head, digest, code = content[: len(_HEAD)], content[len(_HEAD) : len(_HEAD) + 32], content[len(_HEAD) + 32 :]
    if head != _HEAD or hashlib.sha256(code).digest() != digest:
        warnings.warn(f"the file {path} is not whole machine code of xpgrad, and is ignored; delete it", RuntimeWarning, stacklevel=2)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the newest files stay
    return code


def save(key: str, code: bytes) -> None:
    """Save machine code, and delete the oldest files beyond the limit; do nothing if files cannot be written."""
    place = None
    try:
        target = folder()
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(target):
            return
        handle, place = tempfile.mkstemp(dir=target)
        with os.fdopen(handle, "wb") as file:
            file.write(_HEAD + hashlib.sha256(code).digest() + code)
        Path(place).replace(target / f"{key}{_SUFFIX}")
        place = None
        _keep_limit(len(code))
    except (OSError, RuntimeError):
        pass
    finally:
        if place is not None:
            with contextlib.suppress(OSError):
                Path(place).unlink()


def entries() -> list[tuple[Path, int, float]]:
    """Return the files with their sizes in bytes and times of last use, the oldest first."""
    found = []
    with contextlib.suppress(OSError, RuntimeError), os.scandir(folder()) as files:
        for file in files:
            with contextlib.suppress(OSError):
                if file.name.endswith(_SUFFIX):
                    info = file.stat()
                    found.append((Path(file.path), info.st_size, info.st_mtime))
    return sorted(found, key=lambda entry: entry[2])


def clear() -> int:
    """Delete all files, and return their number."""
    count = 0
    for path, _, _ in entries():
        with contextlib.suppress(OSError):
            path.unlink()
            count += 1
    return count


def _keep_limit(added: int) -> None:
    """Delete the oldest files beyond the limit, at the first call and whenever a 64th of the limit has been added.

    A folder may have tens of thousands of files, so that measuring it each time would take longer than most compilations.
    """
    global _saved
    margin = _LIMIT >> 6
    if _saved is not None and _saved + added < margin:
        _saved += added
        return
    _saved = 0
    found = entries()
    excess = sum(size for _, size, _ in found) + margin - _LIMIT
    for path, size, _ in found:
        if excess <= 0:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        excess -= size


def _is_private(path: Path) -> bool:
    """Return whether only this user can write to a path; warn if others can, because code in it will run."""
    if not hasattr(os, "getuid"):
        return True  # Windows keeps users' folders private
    info = path.stat()
    if info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    warnings.warn(
        f"others can write to {path}, so that no machine code is kept there; run `chmod go-w {path}`", RuntimeWarning, stacklevel=3
    )
    return False
