"""Compile C with the system's compiler, and load it into the process."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from xpgrad._basics.threads import renew_in_children
from xpgrad.programs.native import cache

__all__ = ["Compiler", "compiler", "preamble"]

_FORMAT = "C 1"  # of what is in the cache; another number makes it new
_FLAGS = [
    "-std=c99",
    "-O3",
    "-fno-inline-functions",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fopenmp-simd",
]
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")


def preamble() -> str:
    """Return the first lines of a text, which include headers."""
    return """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef XPGRAD_BLAS
#include <cblas.h>
#endif
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* OpenMP's, which speed up sums and loops in pieces */
#endif
"""


@functools.cache
def compiler() -> Compiler:
    """Return the compiler of this process.

    Raises
    ------
    ImportError
        There is none.
    """
    return Compiler()


def find_command() -> list[str]:
    """Return the words of the command that the environment variable CC names; without it, the compiler's usual name."""
    given = os.environ.get("CC", "")
    if sys.platform != "win32":
        return shlex.split(given) or ["cc"]
    # NB: a backslash separates folders there, and GCC comes without the name `cc`.
    return [word.strip('"') for word in shlex.split(given, posix=False)] or ["gcc"]


class Compiler:
    """The system's compiler, and the libraries that have been loaded."""

    def __init__(self) -> None:
        given = find_command()
        path = shutil.which(given[0])
        if path is None:
            msg = (
                f"the emitter 'c' needs a C compiler, but there is no {given[0]!r}; install GCC or Clang, for example with `apt install "
                "gcc`, `xcode-select --install` or, on Windows, MinGW-w64, name it in the environment variable CC, or use `emitter='numpy'`"
            )
            raise ImportError(msg)
        self.command: list[str] = [path, *given[1:], *_FLAGS]
        # NB: the macros tell the compiler's version and what the processor has, which code in the cache depends on.
        macros = self.run([*self.command, "-march=native", "-dM", "-E", "-x", "c", os.devnull])
        if macros is not None:
            self.command.append("-march=native")
        else:  # an older compiler
            macros = self.run([*self.command, "-dM", "-E", "-x", "c", os.devnull]) or ""
        self.libraries: list[str] = ["-lm"]
        if self.has_libmvec(macros):
            self.command.append("-DXPGRAD_LIBMVEC")
            self.libraries.insert(0, "-lmvec")
        self.identity: str = f"{' '.join(self.command)}\0{macros}"
        self.loaded: dict[str, Any] = {}

    def has_libmvec(self, macros: str) -> bool:
        """Return whether glibc has functions of vectors that this compiler calls."""
        if "#define __x86_64__ " not in macros or "#define __GNUC__ " not in macros or "#define __clang__ " in macros:
            return False
        path = (self.run([self.command[0], "-print-file-name=libmvec.so"]) or "").strip()
        try:
            return os.path.isabs(path) and hasattr(ctypes.CDLL("libmvec.so.1"), "_ZGVbN2v_tanh")  # since glibc 2.35 it has them all
        except OSError:
            return False

    def run(self, command: list[str]) -> str | None:
        """Return what a command prints, or None if it fails."""
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
        return done.stdout if done.returncode == 0 else None

    def load(self, text: str, name: str) -> Any:
        """Return a function of a text, which is compiled unless it is loaded or in the cache.

        Raises
        ------
        RuntimeError
            The compiler fails.
        """
        with _LOCK:
            if text not in self.loaded:
                self.loaded[text] = self.load_library(text)
            return getattr(self.loaded[text], name)

    def load_library(self, text: str) -> Any:
        """Load the library of a text from the cache; compile and cache it first if it is not there."""
        key = hashlib.sha256("\0".join((_FORMAT, text, self.identity)).encode()).hexdigest()[:40]
        code = cache.load(key)
        with tempfile.TemporaryDirectory(prefix="xpgrad-", ignore_cleanup_errors=True) as folder:  # only the user can write to it
            file = Path(folder) / f"{key}.so"
            if code is not None:
                file.write_bytes(code)
            else:
                self.compile(text, file)
                cache.save(key, file.read_bytes())
            return ctypes.CDLL(str(file))

    def compile(self, text: str, file: Path) -> None:
        """Write the library of a text.

        Raises
        ------
        RuntimeError
            The compiler fails.
        """
        source = file.with_suffix(".c")
        source.write_text(text, encoding="utf-8")
        command = [*self.command, str(source), "-o", str(file), *self.libraries]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
        if done.returncode != 0:
            msg = (
                f"the C compiler {self.command[0]} failed; use `emitter='numpy'`, and report this as a bug of xpgrad:\n{done.stderr[:2000]}"
            )
            raise RuntimeError(msg)
