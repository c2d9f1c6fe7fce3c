"""Law: what a release is made of agrees with itself: versions, the recipe for conda-forge, the workflows, and the checksums."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import xpgrad

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PLUGINS = sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml"))
RECIPE = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
WORKFLOWS = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob(".github/workflows/*.yml"))}
SCRIPT = ROOT / ".ci" / "distributions.py"
#: Each Python that pyproject.toml names.
PYTHONS = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]


# -- versions ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_has_the_version_of_the_package_that_it_requires(name: str) -> None:
    whole = tomllib.loads((ROOT / "plugins" / name / "pyproject.toml").read_text(encoding="utf-8"))
    plugin = whole["project"]
    assert plugin["name"] == name
    assert plugin["version"] == xpgrad.__version__
    assert f"xpgrad>={xpgrad.__version__.rpartition('.')[0]}" in plugin["dependencies"]
    assert plugin["requires-python"] == PROJECT["requires-python"]
    # What is installed to build the package builds the plugins, too.
    assert whole["build-system"] == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]


def test_the_version_has_release_notes() -> None:
    """Law: the changelog's first section is about this version, and links to its release notes, which name no other as theirs."""
    section = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    page = f"docs/release-{xpgrad.__version__}.md"
    assert section.startswith(f"[{xpgrad.__version__}]")
    assert f"({page})" in section
    assert (ROOT / page).read_text(encoding="utf-8").startswith(f"# xpgrad {xpgrad.__version__} release notes\n")


def test_the_readme_names_the_wheel_of_this_version_and_extras_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"xpgrad-[\w.]+-py3-none-any\.whl(?:\[(\w+)\])?", text)
    assert len(named) == text.count(f"xpgrad-{xpgrad.__version__}-py3-none-any.whl") > 0
    extras = {*filter(None, named), *re.findall(r"'\.\[(\w+)\]'", text), *re.findall(r"extra `(\w+)`", text)}
    assert {"scipy", "jax"} <= extras <= set(PROJECT["optional-dependencies"])


# -- conda-forge ---------------------------------------------------------------------------------------------------------------------------


def conda(requirement: str) -> str:
    """Return a requirement such as ``numpy>=2.2`` in conda's spelling."""
    return re.sub(r"(?<=[\w-])>=", " >=", requirement)


def test_the_recipe_says_what_the_project_says() -> None:
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert RECIPE["context"] == {"version": xpgrad.__version__, "python_min": lowest}
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["build"]["noarch"] == "python"
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    required = ["python >=${{ python_min }}", *map(conda, PROJECT["dependencies"])]
    assert RECIPE["requirements"]["run"] == required
    builds = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert RECIPE["requirements"]["host"] == ["python ${{ python_min }}.*", "pip", *map(conda, builds)]
    bounded = {conda(r) for extra in ("native", "conformance", "testing") for r in PROJECT["optional-dependencies"][extra] if ">=" in r}
    assert set(RECIPE["requirements"]["run_constraints"]) == bounded
    about = RECIPE["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert [about["license_file"]] == PROJECT["license-files"]


def test_the_recipe_tests_what_exists() -> None:
    imports, script = RECIPE["tests"]
    for name in imports["python"]["imports"]:
        assert any((ROOT / root / name / "__init__.py").is_file() for root in ("core", "backends"))
    assert imports["python"]["pip_check"]
    for file in script["files"]["source"]:
        assert (ROOT / file).is_file()
        assert any(file in line for line in script["script"])


# -- workflows -----------------------------------------------------------------------------------------------------------------------------


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in WORKFLOWS[name]["jobs"].values():
        yield from job["steps"]


def commands(name: str) -> str:
    return "\n".join(step.get("run", "") for step in steps(name))


def test_the_tests_run_on_each_system_and_each_python() -> None:
    matrix = WORKFLOWS["tests.yml"]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == PYTHONS
    page = (ROOT / "docs" / "supported-versions.md").read_text(encoding="utf-8")
    assert f"| Python | {matrix['python'][0]} | {matrix['python'][-1]} |" in page
    every = [
        step["with"]["python-version"]
        for step in WORKFLOWS["tests.yml"]["jobs"]["everything"]["steps"]
        if "with" in step and "python-version" in step["with"]
    ]
    assert sorted(every[0].split()) == PYTHONS
    assert every[0].split()[-1] == PYTHONS[0]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_run_what_exists(name: str) -> None:
    """Law: files, extras, projects, Pythons and jobs that a workflow names exist, and its commands are valid shell."""
    workflow = WORKFLOWS[name]
    assert True in workflow  # `on`, which YAML 1.1 reads as a truth value
    text = commands(name)
    files = re.findall(r"(?<![\w./-])((?:\.ci|tests|docs)/[\w./-]+)", text)
    assert files
    assert [file for file in files if not (ROOT / file).exists() and "docs/release-" not in file] == []
    assert {extra for extras in re.findall(r"\.\[([\w,]+)\]", text) for extra in extras.split(",")} <= set(PROJECT["optional-dependencies"])
    for action in re.findall(r"distributions\.py (\w+)", text):
        assert action in ("build", "verify", "try")
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= set(workflow["jobs"])
        matrix = job.get("strategy", {}).get("matrix", {})
        included = matrix.get("include", [])
        assert {*matrix.get("python", []), *(row["python"] for row in included if "python" in row)} <= set(PYTHONS)
        projects = list(itertools.chain(*(row["projects"].split() for row in included)))
        assert set(projects) <= {"xpgrad", *PLUGINS}
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "actions/checkout@v1"))
            if "run" in step and (ROOT / ".ci" / "run").exists() and sys.platform != "win32":
                shell = re.sub(r"\$\{\{.*?\}\}", "x", step["run"])
                subprocess.run(["bash", "-n", "-c", shell], check=True)
    scripts = [ROOT / ".ci" / "run", ROOT / ".ci" / "installed"]
    assert os.name == "nt" or ".ci/run" not in files or all(os.access(script, os.X_OK) for script in scripts)


def test_a_release_tries_every_wheel_and_signs_what_it_uploads() -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert [job.get("needs") for job in jobs.values()] == [None, "build", "try", "sign"]
    rows = jobs["try"]["strategy"]["matrix"]["include"]
    assert {project for row in rows for project in row["projects"].split()} == {"xpgrad", *PLUGINS}
    (signing,) = (step for step in jobs["sign"]["steps"] if step.get("uses", "").startswith("actions/attest-build-provenance@"))
    assert signing["with"]["subject-path"] == "dist/*"
    # Only the jobs that sign or publish get an identity, and only the former may write to the repository.
    assert {name for name, job in jobs.items() if job["permissions"].get("id-token") == "write"} == {"sign", "publish"}
    assert {name for name, job in jobs.items() if job["permissions"].get("contents") == "write"} == {"sign"}
    assert WORKFLOWS["release.yml"]["permissions"] == {}
    given, *taken = (step["with"]["name"] for step in steps("release.yml") if "artifact@" in step.get("uses", ""))
    assert set(taken) == {given}


def test_ci_and_the_release_build_by_the_same_command() -> None:
    assert '    ".ci/installed ' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "installed").read_text(encoding="utf-8")
    for action in ("build", "verify", "try"):
        assert f".ci/distributions.py {action} " in ci
        assert f".ci/distributions.py {action} " in commands("release.yml")
    assert "-m build" not in ci


# -- checksums -----------------------------------------------------------------------------------------------------------------------------


def verify(folder: Path) -> str:
    """Return what the check of a folder's checksums complains about."""
    done = subprocess.run([sys.executable, str(SCRIPT), "verify", str(folder)], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode == 0) == (not done.stderr)
    return done.stderr.strip()


def test_checksums_notice_every_change(tmp_path: Path) -> None:
    contents = {"a-1-py3-none-any.whl": b"wheel", "a-1.tar.gz": b"source"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    (tmp_path / "SHA256SUMS").write_text(sums, encoding="utf-8")
    assert verify(tmp_path) == ""
    (tmp_path / "a-1.tar.gz").write_bytes(b"other")
    assert verify(tmp_path) == "SHA256SUMS does not agree with a-1.tar.gz"
    (tmp_path / "a-1.tar.gz").unlink()
    assert verify(tmp_path) == "SHA256SUMS does not agree with a-1.tar.gz"
    (tmp_path / "a-1.tar.gz").write_bytes(b"source")
    (tmp_path / "b-1.tar.gz").write_bytes(b"one more")
    assert verify(tmp_path) == "SHA256SUMS does not agree with b-1.tar.gz"
    (tmp_path / "SHA256SUMS").write_text("", encoding="utf-8")
    assert "does not agree" in verify(tmp_path)
