"""Law: the command line lists what is registered, finds what is wrong with a plugin, and writes plugins that work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from backends import test_registry
from backends.test_registry import HEAD, install
from xpgrad.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def command(*args: str, path: Path | None = None) -> Any:
    environment = {k: v for k, v in os.environ.items() if k not in ("XPGRAD_BACKENDS", "XPGRAD_DEVICE")}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run([sys.executable, "-m", "xpgrad", *args], env=environment, capture_output=True, text=True, check=False)


def test_the_list_names_status_version_devices_and_origin(capsys: Any) -> None:
    assert main(["backends", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    numpy = rows["numpy"]
    assert (numpy["status"], numpy["devices"]) == ("ready", "numpy")
    assert numpy["version"].startswith("2.")
    assert "xpgrad_numpy" in numpy["origin"]
    assert {row["status"] for row in rows.values()} <= {"ready", "not installed", "broken", "incompatible", "disabled"}
    assert main(["backends"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["name", "status", "version", "devices", "origin"]


def test_one_is_shown_whole(capsys: Any) -> None:
    assert main(["backends", "show", "numpy"]) == 0
    out = capsys.readouterr().out
    for phrase in ("status: ready", "variants: readonly", "float64", "mutable: arrays can be written to.", "scatter_add"):
        assert phrase in out
    assert main(["backends", "show", "numpy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["capabilities"]["mutable"] is True
    assert main(["backends", "show", "nowhere"]) == 1
    assert "no such backend: 'nowhere'" in capsys.readouterr().out


def test_every_capability_is_explained() -> None:
    import dataclasses

    from xpgrad._cli.listing import capability_sentences

    assert set(capability_sentences()) == {f.name for f in dataclasses.fields(xp.backend.Capabilities)}


def test_a_sound_backend_passes_every_check(capsys: Any) -> None:
    assert main(["backends", "check", "numpy", "--import"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 12
    assert all(line.startswith("ok ") for line in lines)
    assert lines[-1] == "ok      numpy: a gradient equals NumPy's"


@pytest.mark.parametrize("table", ["numpy+readonly", "jax", "strict"])
def test_sound_variants_and_plugins_pass_too(table: str) -> None:
    """Those that are installed pass, in a process of their own, since tests register backends, too."""
    try:
        distribution({"jax": "jax", "strict": "xpgrad-strict"}.get(table, "numpy"))
    except PackageNotFoundError as exc:
        pytest.skip(f"{exc} is not installed")
    run = command("backends", "check", table, "--import")
    assert run.returncode == 0, run.stdout
    assert run.stdout.endswith("a gradient equals NumPy's\n")


def test_the_gradient_that_is_expected_is_that_of_central_differences() -> None:
    from xpgrad._cli.checking import _POINT, EXPECTED, _loss

    def loss(point: Any) -> float:
        return float(_loss(xp, xp.tensor(point)))

    step, point = 1e-6, np.asarray(_POINT)
    found = np.zeros_like(point)
    for at in np.ndindex(point.shape):
        d = np.zeros_like(point)
        d[at] = step
        found[at] = (loss(point + d) - loss(point - d)) / (2 * step)
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-8)


def test_a_variant_is_shown(capsys: Any) -> None:
    assert main(["backends", "show", "numpy+readonly", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["devices"]) == ("numpy+readonly", "numpy+readonly")
    assert "scatter_add" in facts["own kernels"]
    assert main(["backends", "show", "numpy+nonsense"]) == 1
    assert "nonsense" in capsys.readouterr().out


def test_the_static_check_imports_nothing(tmp_path: Path) -> None:
    install(tmp_path, "loud", "loud_plugin", "raise SystemExit('imported')")
    run = command("backends", "check", "loud", path=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("ok ") == 5


TABLE = """
from xpgrad_numpy._backend import NumPyBackend
from xpgrad import Device
import numpy as np
class Table(NumPyBackend):
    name, device = "odd", Device("odd")
    _only_class = None
    {change}
@hookimpl
def xpgrad_backend(): return BackendInfo("odd", lambda variant: Table(), array_modules=("odd_library",){options})
"""
DECLARED = "capabilities = __import__('dataclasses').replace(NumPyBackend.capabilities, {})"
WRONG = {
    "raises at import": ("raise OSError('no driver')", "FAILED  it implements the hook `xpgrad_backend`"),
    "misspelt hook": (HEAD + "@hookimpl\ndef xpgrad_backends(): pass", "FAILED  it implements the hook `xpgrad_backend`"),
    "newer interface": (HEAD + TABLE.format(change="", options=", api_version=(1, 99)"), "written for version 1.99"),
    "imports a library": (
        "import array_api_strict\n" + HEAD + TABLE.format(change="", options="").replace("odd_library", "array_api_strict"),
        "FAILED  describing it imports no array library",
    ),
    "from_host shares": (
        HEAD + TABLE.format(change="from_host = lambda self, array, device: array", options=""), "FAILED  arrays from the host are copies",
    ),
    "wrong values": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'sin': lambda x: np.cos(x)}", options=""),
        "FAILED  odd: a gradient equals NumPy's",
    ),
    "wrong dtype": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x).astype('f4')}", options=""),
        "given float64 operands, `cos` returned float32",
    ),
    "gives up": ("raise SystemExit('no licence')", "SystemExit: no licence"),
    "the array modules are a string": (
        HEAD + TABLE.format(change="", options="").replace('("odd_library",)', '"odd_library"'),
        "array_modules='odd_library', expected a tuple of strings",
    ),
    "version is text": (HEAD + TABLE.format(change="", options=", api_version='1'"), "must be two integers"),
    "loads nothing": (
        HEAD + TABLE.format(change="", options="").replace("Table(),", "None,"), "returned None, expected a Backend named 'odd'",
    ),
    "loads another": (
        HEAD + TABLE.format(change="", options="").replace('name, device = "odd"', 'name, device = "even"'),
        "returned one named 'even', expected a Backend named 'odd'",
    ),
    "devices raise": (
        HEAD + TABLE.format(change="devices = lambda self: 1 / 0", options=""), "FAILED  it has a device",
    ),
    "another's devices": (
        HEAD + TABLE.format(change="devices = lambda self: [Device('numpy')]", options=""), "must return Devices of 'odd'",
    ),
    "declares too little": (
        HEAD + TABLE.format(change=DECLARED.format("float64=False"), options=""),
        "FAILED  `float64` is False, and that is true",
    ),
    "declares too much": (
        HEAD + TABLE.format(change=DECLARED.format("jit=True"), options=""),
        "FAILED  `jit` is declared, and `compile` is implemented",
    ),
    "writes elsewhere": (
        HEAD + TABLE.format(change="update = lambda self, x, key, value: NumPyBackend.update(self, x.copy(), key, value)", options=""),
        "FAILED  `mutable` is True, and writes agree",
    ),
    "kernel raises": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'cos': lambda x: 1 / 0}", options=""), "ZeroDivisionError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found(case: str, tmp_path: Path) -> None:
    body, phrase = WRONG[case]
    install(tmp_path, "odd", "odd_plugin", body)
    run = command("backends", "check", "odd", "--import", path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert phrase in run.stdout, run.stdout


@pytest.mark.parametrize("case", ["kernel raises", "wrong dtype"])
def test_a_kernel_that_fails_halfway_leaves_every_gradient_whole(case: str, tmp_path: Path) -> None:
    """BWD-38; the next pass works."""
    body, _ = WRONG[case]
    install(tmp_path, "odd", "odd_plugin", body)
    code = """
import xpgrad as xp
a, b = (xp.tensor([1.0, 2.0], requires_grad=True, device="odd") for _ in range(2))
(a * b).sum().backward()
before = [a.grad.tolist(), b.grad.tolist()]
try:
    (xp.sin(a) * 2.0 + b * 3.0).sum().backward()
except ZeroDivisionError:
    pass
out = [before, a.grad.tolist() in ([1.0, 2.0], [1.0 + 2 * 0.5403023058681398, 2.0 - 2 * 0.4161468365471424]) or str(a.grad.dtype)]
out.append(b.grad.tolist() in ([1.0, 2.0], [4.0, 5.0]))
a.grad = b.grad = None
(a * b).sum().backward()
out += [a.grad.tolist(), str(a.grad.dtype)]
"""
    before, a, b, after, dtype = test_registry.run(code, tmp_path)
    assert before == [[1.0, 2.0], [1.0, 2.0]]
    assert a in (True, "float64")
    assert b is True
    assert (after, dtype) == ([1.0, 2.0], "float64")


def test_a_new_project_works(tmp_path: Path) -> None:
    """Rendered, installed, tested and checked."""
    assert main(["backends", "new", "shiny", "--directory", str(tmp_path)]) == 0
    project, site = tmp_path / "xpgrad-shiny", tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site), str(project)]
    subprocess.run(pip, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    run = subprocess.run(tests, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    run = command("backends", "check", "shiny", "--import", path=site)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith("ok      shiny: a gradient equals NumPy's\n")


def test_taken_names_are_refused(tmp_path: Path, capsys: Any) -> None:
    assert main(["backends", "new", "numpy", "--directory", str(tmp_path)]) == 1
    assert "'numpy' is taken" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Upper", "1st", "a-b", "", "../x"])
def test_bad_names_are_refused(name: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["backends", "new", name, "--directory", str(tmp_path)]) == 1
    assert "cannot name a backend" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "xpgrad-mine").mkdir()
    assert main(["backends", "new", "mine", "--directory", str(tmp_path)]) == 1
    assert "already exists" in capsys.readouterr().err
