"""Compiles and runs ``libtorch.cpp``, which observes the behaviour of PyTorch's C++ autograd for the contracts of group V.

The program is compiled and run once per process, and prints a line of JSON per rule. The contracts check these observations and xpgrad's
dialect in the same way.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from xpgrad_conformance.facade import NotRun

__all__ = ["facts"]

_SOURCE = Path(__file__).with_suffix(".cpp")
_lock = threading.Lock()
_found: dict[str, dict[str, Any]] = {}


def facts(rule: str) -> dict[str, Any]:
    """Return what the program observed for a rule, by name; the first call compiles the program, which takes seconds.

    Raises
    ------
    NotRun
        If no C++ compiler is installed.
    RuntimeError
        If the program cannot be compiled or does not finish.
    """
    with _lock:
        if not _found:
            rows = [json.loads(line) for line in _output().splitlines()]
            _found.update({row["id"]: row for row in rows})
    return _found[rule]


def _output() -> str:
    compiler = shutil.which("g++")
    if compiler is None:
        raise NotRun("no C++ compiler here")
    import torch

    home = Path(torch.__file__).parent
    with tempfile.TemporaryDirectory(prefix="xpgrad-libtorch-") as folder:
        program = Path(folder) / "libtorch"
        # NB: with one header per operation and no optimisation, compiling takes seconds instead of a minute.
        options = [
            "-std=c++20",
            "-O0",
            "-w",
            "-DAT_PER_OPERATOR_HEADERS",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        ]
        libraries = [f"-L{home / 'lib'}", f"-Wl,-rpath,{home / 'lib'}", "-ltorch_cpu", "-lc10"]
        _run([compiler, *options, f"-I{home / 'include'}", str(_SOURCE), "-o", str(program), *libraries])
        return _run([str(program)])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{Path(command[0]).name}` ended with {done.returncode}: {done.stderr[:1500]}")
    return done.stdout
