"""Build the distributions of xpgrad and its plugins, write and verify their checksums, and try the wheels in empty environments.

python .ci/distributions.py build dist     # needs build, hatchling and twine (the extras `dev` and `test`)
python .ci/distributions.py verify dist    # as `sha256sum --check SHA256SUMS` does
python .ci/distributions.py try dist       # every wheel, or only the named ones: `try dist xpgrad xpgrad-dask`
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
#: What a plugin's wheel needs beside what it requires.
FURTHER = {"xpgrad-mlx": [] if sys.platform == "darwin" else ["mlx[cpu]"]}


def run(*command: str | Path, cwd: Path | None = None, quiet: bool = False) -> None:
    """Run a command; end the program with what it printed if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout or ''}{' '.join(map(str, command))}: exit code {done.returncode}")


def distributions(folder: Path) -> list[Path]:
    """Return the wheels and source distributions in a folder."""
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def wheels(folder: Path) -> dict[str, Path]:
    """Return the wheels in a folder by the names of their projects."""
    return {path.name.split("-")[0].replace("_", "-"): path for path in sorted(folder.glob("*.whl"))}


def build(folder: Path) -> None:
    """Build the wheel and the source distribution of every project, check what an index would show of them, and write their checksums."""
    if distributions(folder):
        sys.exit(f"{folder} has distributions already; name an empty folder")
    # The package is built in isolation, which tries what its `build-system` requires. The plugins require the same.
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, quiet=True)
    for plugin in sorted((ROOT / "plugins").iterdir()):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, plugin, quiet=True)
    built = distributions(folder)
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8", newline="\n")


def verify(folder: Path) -> None:
    """Compare every distribution with its checksum; a file without a checksum, or a checksum without a file, is an error."""
    known = {name: digest for digest, name in (line.split() for line in (folder / SUMS).read_text(encoding="utf-8").splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in distributions(folder)}
    wrong = sorted(name for name in {*known, *found} if known.get(name) != found.get(name))
    if wrong or not known:
        sys.exit(f"{SUMS} does not agree with {', '.join(wrong) or 'anything'}")
    print(f"{len(known)} files agree with {SUMS}")


def try_wheels(folder: Path, names: list[str]) -> None:
    """Install each wheel into an empty environment, and run the smoke script there; also check a plugin's backend."""
    found = wheels(folder)
    if missing := sorted({*names} - {*found}):
        sys.exit(f"{folder} has no wheel of {', '.join(missing)}; it has {', '.join(found)}")
    for name in names or found:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            empty = Path(place) / "empty"
            empty.mkdir()
            venv.create(Path(place) / "venv", with_pip=True)
            python = Path(place) / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
            needed = dict.fromkeys([found["xpgrad"], found[name]])
            run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed, *FURTHER.get(name, []))
            run(python, "-W", "error", ROOT / "tests" / "smoke.py", cwd=empty, quiet=True)
            if name != "xpgrad":
                run(python, "-m", "xpgrad", "backends", "check", name.removeprefix("xpgrad-"), "--import", cwd=empty, quiet=True)
        print(f"{found[name].name}: installed and tried", flush=True)


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("build", "verify", "try"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="projects to try, such as xpgrad-dask (default: all)")
    options = parser.parse_args()
    if options.action == "build":
        build(options.folder)
    elif options.action == "verify":
        verify(options.folder)
    else:
        try_wheels(options.folder, options.names)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)  # which would make a clone's sources importable in the empty environments
    main()
