"""Law: type checkers and editors know xpgrad: programs check strictly, mistakes are found, and only public names are offered."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import types
import venv
from pathlib import Path

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._rows.namespace import IN_PLACE, METHODS

PROGRAMS = Path(__file__).resolve().parents[1] / "typing"
MISTAKES = "mistakes.py"
#: Programs with types of other packages, which the extra `dev` brings.
ANNOTATIONS = PROGRAMS.parent / "annotations"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs and an environment with a copy of xpgrad, so that pyright sees only what users see."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("typing")
    venv.create(folder / "environment")
    (packages,) = (folder / "environment").glob("**/site-packages")
    shutil.copytree(Path(xp.__file__).parent, packages / "xpgrad", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "others.pth").write_text(
        sysconfig.get_path("purelib"), encoding="utf-8"
    )  # makes NumPy importable, whose types the programs use
    for name, programs in (("programs", PROGRAMS), ("annotations", ANNOTATIONS)):
        shutil.copytree(programs, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / name / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    return folder


@pytest.fixture
def annotation_packages() -> None:
    for package in ("beartype", "jaxtyping", "optype"):
        pytest.importorskip(package)


def pyright(folder: Path, *arguments: str, name: str = "programs") -> dict[str, object]:
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")  # pyright asks the first `python` for its paths
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "pyright", "--outputjson", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder / name, env=environment)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


def test_programs_check_strictly_and_mistakes_are_found(installed: Path) -> None:
    found = pyright(installed)["generalDiagnostics"]
    elsewhere = [f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}" for d in found if Path(d["file"]).name != MISTAKES]
    assert not elsewhere, "\n".join(elsewhere)
    rules = {(d["range"]["start"]["line"] + 1, d["rule"]) for d in found if d["rule"] != "reportUnknownMemberType"}
    lines = enumerate((PROGRAMS / MISTAKES).read_text(encoding="utf-8").splitlines(), start=1)
    assert rules == {(k, said[1]) for k, line in lines if (said := re.search(r"# (report\w+)$", line))}


def test_every_type_of_the_interface_is_declared(installed: Path) -> None:
    report = pyright(installed, "--verifytypes", "xpgrad", "--ignoreexternal")["typeCompleteness"]
    assert Path(report["packageRootDirectory"]).is_relative_to(installed)  # pyright must read the copy and not this repository
    unknown = [s["name"] for s in report["symbols"] if s["isExported"] and not (s["isTypeKnown"] and not s["isTypeAmbiguous"])]
    assert not unknown, "\n".join(unknown)
    assert report["completenessScore"] == 1.0


@pytest.mark.parametrize("program", [p.name for p in sorted(PROGRAMS.glob("*.py")) if p.name != MISTAKES])
def test_programs_run(program: str) -> None:
    runpy.run_path(str(PROGRAMS / program))


@pytest.mark.usefixtures("annotation_packages")
def test_types_of_other_packages_accept_tensors(installed: Path) -> None:
    assert not pyright(installed, name="annotations")["generalDiagnostics"]


@pytest.mark.usefixtures("annotation_packages")
@pytest.mark.parametrize("program", [p.name for p in sorted(ANNOTATIONS.glob("*.py"))])
def test_types_of_other_packages_accept_tensors_when_a_program_runs(program: str) -> None:
    runpy.run_path(str(ANNOTATIONS / program))


def test_there_is_a_program_for_each_section_of_the_tutorial() -> None:
    tutorial = (PROGRAMS.parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    sections = {title.replace(" ", "_").replace("'", "").lower() for title in re.findall(r"^## (.*)$", tutorial, re.MULTILINE)}
    programs = {p.stem for p in PROGRAMS.glob("*.py")} - {"mistakes"}
    assert {re.sub(r"^the_first", "first", s) for s in sections} - {"where_to_go_next"} == programs


# -- what `dir` shows --------------------------------------------------------------------------------------------------


def public_modules() -> list[types.ModuleType]:
    """Return the package, the modules that it shows, theirs in turn, and the dialects for PyTorch's relatives."""
    found, waiting = {}, ["xpgrad", "xpgrad.dialects", "xpgrad.dialects.libtorch", "xpgrad.dialects.oneflow"]
    while waiting:
        module = importlib.import_module(waiting.pop())
        if module.__name__ not in found:
            found[module.__name__] = module
            inner = (getattr(module, n) for n in dir(module) if not n.startswith("__"))
            waiting += [m.__name__ for m in inner if isinstance(m, types.ModuleType)]
    return [found[n] for n in sorted(found)]


def test_modules_show_public_names_only() -> None:
    modules = public_modules()
    assert {"xpgrad.linalg", "xpgrad.fft", "xpgrad.func", "xpgrad.autograd.graph", "xpgrad.utils.checkpoint"} <= {
        m.__name__ for m in modules
    }
    for module in modules:
        shown = {n for n in dir(module) if not n.startswith("__")}
        assert {n for n in module.__all__ if not n.startswith("__")} <= shown, module
        assert not [n for n in shown if n.startswith("_")], module
        extra = shown - set(module.__all__)
        others = {n for n in extra if not isinstance(getattr(module, n), types.ModuleType)}
        assert others <= {"xpgrad_backend", "xpgrad_emitter"}, module  # pluggy finds a hook with `dir`


def test_a_tensor_shows_what_users_may_use() -> None:
    """A Tensor's public names are `array`, names of public functions, and names of NumPy's or PyTorch's arrays."""
    x = xp.tensor([1.0])
    shown = {n for n in dir(x) if not n.startswith("_")}
    for name in ("array", "grad", "shape", "backward", "clone", "T"):
        assert name in shown
    internal = {"align", "backend", "buffer", "default_dtype", "depth", "fresh", "inner", "lift", "scalar", "stage"}
    assert not shown & internal
    torch = pytest.importorskip("torch", reason="its names are what to compare with")
    functions = {name for name in {*METHODS, *IN_PLACE} if hasattr(xp, name.removesuffix("_"))}
    assert shown - set(dir(torch.Tensor)) - set(dir(np.ndarray)) - functions == {"array"}
