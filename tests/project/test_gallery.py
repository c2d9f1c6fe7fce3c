"""The gallery's programs, run small in the way a reader runs them: their numbers are within bounds, and they draw a picture."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from matplotlib import pyplot as plt
from matplotlib.image import imread

import xpgrad as xp

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
PROGRAMS = sorted(path.stem for path in GALLERY.glob("[0-9]*.py"))
#: What a program needs besides the extras `scipy` and `examples`.
NEEDS = {"dask": ("dask", "xpgrad_dask"), "dask_least_squares": ("dask", "xpgrad_dask"), "sharded_jax": ("jax",)}
#: Programs that configure their process, and therefore run in a separate one.
APART = {"sharded_jax", "dask_least_squares"}
#: The devices besides NumPy: PyTorch, the fastest of the others, or else the strict backend.
#: `XPGRAD_TEST_DEVICES=jax` chooses another.
PLUGINS = entry_points(group="xpgrad.backends").names
ELSEWHERE = "torch" if "torch" in PLUGINS and importlib.util.find_spec("torch") else "strict"
DEVICES = [device for device in os.environ.get("XPGRAD_TEST_DEVICES", ELSEWHERE).split(",") if device != "numpy"]


def kind(name: str) -> str:
    return name.split("_", 1)[1]


@pytest.fixture
def gallery_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the programs' helper importable, as it is when a program runs from its own folder."""
    monkeypatch.syspath_prepend(str(GALLERY))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"xpgrad_gallery_{name}", GALLERY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_picture(path: Path) -> None:
    """Assert that the file is a PNG of a reasonable size, with more than one colour."""
    pixels = imread(path)[..., :3]
    assert 300 <= pixels.shape[0] <= 1600, pixels.shape
    assert 500 <= pixels.shape[1] <= 1600, pixels.shape
    assert pixels.std() > 0.05


def runs_apart(name: str, *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(GALLERY / f"{name}.py"), "--small", *options],
        capture_output=True, text=True, timeout=200, env={**os.environ, "DASK_SCHEDULER": "synchronous", "NPROC": "16"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow(one_in=20)
@pytest.mark.parametrize("name", PROGRAMS)
def test_its_numbers_are_within_their_bounds_and_it_draws(name: str, tmp_path: Path, gallery_on_path: None) -> None:
    for module in NEEDS.get(kind(name), ()):
        pytest.importorskip(module)
    picture = tmp_path / "picture.png"
    if kind(name) in APART:
        runs_apart(name, "--picture", str(picture))
    else:
        main = load(name).main
        numbers = main(small=True, picture=str(picture))
        plt.close("all")
        assert main.failures(numbers) == []
        assert main.bounds
        assert all(isinstance(value, float) for value in numbers.values())
        assert all(low <= high and math.isfinite(low + high) for low, high in main.bounds.values())
    assert_picture(picture)


@pytest.mark.slow
@pytest.mark.parametrize("xpgrad_device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_its_numbers_are_within_their_bounds_elsewhere(
    name: str, xpgrad_device: str, gallery_on_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in NEEDS.get(kind(name), ()):
        pytest.importorskip(module)
    table = xp.Device(xpgrad_device).table
    if not xp.registry.backend_for(table).capabilities.float64:
        pytest.skip("the bounds are for float64")
    if kind(name) in APART:
        if table not in PLUGINS:
            pytest.skip("only the tests' own process knows this backend")
        runs_apart(name, "--device", xpgrad_device)
        return
    come_back, devices = xp.Tensor.numpy, set()

    def spy(tensor: xp.Tensor) -> np.ndarray:
        devices.add(str(tensor.device))
        return come_back(tensor)

    monkeypatch.setattr(xp.Tensor, "numpy", spy)
    main = load(name).main
    assert main.failures(main(xpgrad_device, small=True)) == []
    plt.close("all")
    assert devices == {str(xp.zeros(0, device=xpgrad_device).device)}, "it computes there"


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_what_it_is(name: str) -> None:
    text = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
    title, underline = text.removeprefix('"""').splitlines()[:2]  # sphinx-gallery reads the title here
    assert re.fullmatch("=+", underline), "the title is underlined"
    assert len(underline) >= len(title) > 0
    assert text.split('"""')[1].partition("\n\n")[2].strip(), "it says what it computes"


def test_the_numbers_count_up_and_the_page_lists_all() -> None:
    assert [name.split("_")[0] for name in PROGRAMS] == [f"{n:02d}" for n in range(1, len(PROGRAMS) + 1)]
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(\w+)\]\((\w+)\.py\)", page, re.MULTILINE) == [(name, name) for name in PROGRAMS]


def test_a_number_out_of_bounds_is_a_failure(gallery_on_path: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    helper = importlib.import_module("_program")
    numbers = {"error": 0.5, "energy": math.nan, "new": 1.0}

    @helper.program({"error": (0.0, 0.1), "energy": (-1.0, 1.0), "gone": (0.0, 1.0)})
    def main(small: bool) -> object:
        figure, axes = plt.subplots()
        axes.imshow(np.eye(3))
        return helper.Result(figure, numbers)

    plt.rcdefaults()  # as sphinx-gallery does after each program
    said = main.failures(main())
    assert plt.rcParams["figure.constrained_layout.use"]
    assert len(said) == 4
    assert "error is 0.5, expected between 0 and 0.1" in said
    with pytest.raises(SystemExit, match="expected between"):
        main.command(["--small", "--picture", str(tmp_path / "eye.png")])
    plt.close("all")
    assert "error: 0.5" in capsys.readouterr().out
    assert (tmp_path / "eye.png").exists()
