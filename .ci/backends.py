"""Run the tests of `backends.toml`, two calls of pytest at a time, with the Python that runs this; `--dry-run` prints the calls."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def calls() -> list[tuple[dict[str, str], list[str]]]:
    """Return each call's additions to the environment and its arguments of pytest."""
    table = tomllib.loads((ROOT / ".ci" / "backends.toml").read_text(encoding="utf-8"))
    found = []
    for row in table["run"]:
        environment = {"XPGRAD_TEST_SHARE": str(row["share"])}
        if row["devices"]:
            environment["XPGRAD_TEST_DEVICES"] = row["devices"]
        if "programs" in row:
            environment["XPGRAD_PROGRAMS"] = str(row["programs"])
        for device in row["devices"].split(","):
            environment |= table["environment"].get(device, {})
        tests = [path for name in row["tests"] for pattern in table["tests"][name] for path in _paths(pattern)]
        found.append((environment, ["-q", "--all", *tests, *(("-k", row["only"]) if "only" in row else ())]))
    return found


def _paths(pattern: str) -> list[str]:
    """Return what a pattern matches, or raise if nothing does."""
    file, _, test = pattern.partition("::")
    matches = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(file))
    if not matches:
        raise FileNotFoundError(f"{pattern}, named in .ci/backends.toml, does not exist")
    return [f"{path}::{test}" if test else path for path in matches]


def text(call: tuple[dict[str, str], list[str]]) -> str:
    """Return a call as a shell would take it."""
    return " ".join((*(f"{name}={value}" for name, value in sorted(call[0].items())), "pytest", *call[1]))


def run(call: tuple[dict[str, str], list[str]]) -> int:
    """Make a call, print what pytest printed in one piece, and return its exit code."""
    command = [sys.executable, "-m", "pytest", *call[1]]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **call[0]}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(f"{text(call)}\n{done.stdout}", flush=True)
    return done.returncode


if sys.argv[1:] == ["--dry-run"]:
    print(*map(text, calls()), sep="\n")
else:
    # Two calls beside each other, because pytest-xdist would collect the tests of each call once more.
    with ThreadPoolExecutor(2) as pool:
        sys.exit(any(pool.map(run, calls())))
