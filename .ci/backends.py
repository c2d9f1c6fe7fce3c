"""Run the tests of `backends.toml`, one call of pytest after the other, with the Python that runs this; `--dry-run` prints the calls."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
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
        found.append((environment, ["-q", "--all", "-n", "2", *tests, *(("-k", row["only"]) if "only" in row else ())]))
    return found


def _paths(pattern: str) -> list[str]:
    """Return what a pattern matches, or raise if nothing does."""
    file, _, test = pattern.partition("::")
    matches = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(file))
    if not matches:
        raise FileNotFoundError(f"{pattern}, named in .ci/backends.toml, does not exist")
    return [f"{path}::{test}" if test else path for path in matches]


for additions, arguments in calls():
    print(*(f"{name}={value}" for name, value in sorted(additions.items())), "pytest", *arguments, flush=True)
    if sys.argv[1:] != ["--dry-run"]:
        subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env={**os.environ, **additions}, check=True)
