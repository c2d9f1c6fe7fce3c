"""The digits example, run as a reader would run it: it learns, draws its picture, reports failure, stops on Ctrl-C."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("xpgrad_example_digits", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module


def assert_picture(path: Path) -> None:
    """Assert that the file is a complete PNG of a reasonable size, with more than one colour."""
    from matplotlib.image import imread

    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    assert 20_000 < len(data) < 1_000_000
    pixels = imread(path)
    assert 600 <= pixels.shape[0] <= 2000
    assert 1000 <= pixels.shape[1] <= 3000
    assert pixels[..., :3].std() > 0.05


def test_it_learns_and_draws(digits, tmp_path, capsys):
    picture = tmp_path / "learned.png"
    assert digits.main(["--epochs", "8", "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    reached = re.search(r"test accuracy (\d+\.\d+)%", out)
    assert reached is not None
    assert float(reached[1]) >= 96.0
    assert str(picture) in out
    assert_picture(picture)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result(digits, tmp_path, capsys):
    def report(seed: str) -> str:
        digits.main(["--epochs", "2", "--seed", seed, "--out", str(tmp_path / "seed.png")])
        return capsys.readouterr().out.splitlines()[0]

    assert report("3") == report("3")


def test_it_computes_where_it_is_told_to(digits, tmp_path, capsys, monkeypatch):
    devices = set()
    train = digits.train

    def spy(network, train_set, test_set, **options):
        train(network, train_set, test_set, **options)
        tensors = [train_set.images, train_set.labels, test_set.images, test_set.labels]
        tensors += [tensor for layer in network for tensor in (layer.weights, layer.bias)]
        devices.update(str(tensor.device) for tensor in tensors)

    monkeypatch.setattr(digits, "train", spy)
    digits.main(["--epochs", "1", "--device", "numpy+readonly", "--out", str(tmp_path / "device.png")])
    assert devices == {"numpy+readonly"}
    assert " on numpy+readonly" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_it_learns_the_same_everywhere(digits, tmp_path, capsys, device):
    """The accuracy is the same up to one digit of 360: the last bits of float32 may differ."""
    reached = []
    for where in ("numpy", device):
        digits.main(["--epochs", "2", "--device", where, "--out", str(tmp_path / "device.png")])
        reached.append(float(re.search(r"test accuracy (\d+\.\d+)%", capsys.readouterr().out)[1]))
    assert abs(reached[0] - reached[1]) <= 100 / 360 + 0.01, reached


@pytest.mark.slow
def test_too_little_training_is_reported_as_failure(digits, tmp_path, capsys):
    picture = tmp_path / "poor.png"
    assert digits.main(["--epochs", "1", "--hidden", "2", "--out", str(picture)]) == 1
    assert "below the pass mark of 96%" in capsys.readouterr().err
    assert_picture(picture)


def test_the_sheet_shows_what_was_misread(digits):
    labels = np.arange(10)
    predicted = labels.copy()
    predicted[[2, 7]] = [5, 1]
    images = np.linspace(0.0, 1.0, 640, dtype=np.float32).reshape(10, 64)
    figure = digits.draw([digits.Epoch(0.5, 0.9, 0.8, predicted)], images, labels, "a title")

    curves, sheet = figure.subfigs
    assert sheet.get_suptitle() == "2 of 10 test digits misread"
    shown = {axes.get_title(): axes.images[0].get_array() for axes in sheet.axes if axes.images}
    assert set(shown) == {"read 5, is 2", "read 1, is 7"}
    np.testing.assert_array_equal(shown["read 1, is 7"], images[7].reshape(8, 8))
    loss_axes, accuracy_axes = curves.axes
    assert loss_axes.lines[0].get_ydata() == [0.5]
    assert {line.get_label() for line in accuracy_axes.lines} >= {"training digits", "test digits"}
    assert figure.get_suptitle() == "a title"
    assert "CC BY 4.0" in figure.get_supxlabel()


def test_the_sheet_says_when_it_shows_only_some(digits):
    labels = np.zeros(30, dtype=np.int64)
    figure = digits.draw([digits.Epoch(0.5, 0.9, 0.0, labels + 1)], np.zeros((30, 64), dtype=np.float32), labels, "")
    sheet = figure.subfigs[1]
    assert sheet.get_suptitle() == "30 of 30 test digits misread (the first 20 shown)"
    assert sum(bool(axes.images) for axes in sheet.axes) == 20


def test_the_loss_is_the_cross_entropy(digits):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5, 10)) + 1000.0  # a naive exp() of these overflows
    labels = rng.integers(10, size=5)
    x = xp.tensor(scores, requires_grad=True)
    loss = digits.cross_entropy(x, xp.asarray(labels))
    loss.backward()

    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    assert float(loss.detach()) == pytest.approx(-np.log(share[np.arange(5), labels]).mean())
    np.testing.assert_allclose(x.grad.numpy(), (share - np.eye(10)[labels]) / 5, atol=1e-12)


def test_a_step_is_sgd_with_momentum_in_place(digits):
    parameter = xp.tensor([1.0, -2.0], requires_grad=True)
    velocity = xp.zeros_like(parameter)
    for expected in ([0.8, -2.2], [0.42, -2.58]):  # the gradient is 2, the velocity first 2 and then 0.9 * 2 + 2
        xp.sum(2 * parameter).backward()
        digits.sgd_step([parameter], [velocity], learning_rate=0.1, momentum=0.9)
        np.testing.assert_allclose(parameter.detach().numpy(), expected)
        assert parameter.grad is None
        assert parameter.requires_grad
        assert parameter.is_leaf


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epochs", "0"], "must be at least 1, not 0"),
        (["--lr", "nan"], "must be a positive number, not nan"),
        (["--out", "digits.jpg"], "must end in .png, not digits.jpg"),
        (["--out", "no/such/place/digits.png"], "no such directory: no"),
        (["--device", "nosuchlibrary"], "nosuchlibrary"),
        (["--device", "not a device"], "not a device"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(digits, capsys, arguments, complaint):
    with pytest.raises(SystemExit) as refusal:
        digits.main(arguments)
    assert refusal.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_missing_library_is_named_with_the_way_to_get_it(digits, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)  # None makes the import raise
    assert digits.main([]) == 2
    assert "pip install 'xpgrad[examples]'" in capsys.readouterr().err


@pytest.fixture
def training(tmp_path):
    """Start the program in a separate process that would train for hours."""
    # A process started in the background may inherit that Ctrl-C is ignored, so its handler is restored.
    heard = "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    start = "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", heard + start, PROGRAM, "--epochs", "1000000", "--out", tmp_path / "stopped.png"]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(stream, text: str) -> str:
    """Read a progress bar, which has no line ends, up to and including `text`."""
    seen = ""
    while text not in seen:
        piece = stream.read(1)
        assert piece, f"it ended before it said {text!r}: {seen}"
        seen += piece
    return seen


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send Ctrl-C to one child process")
def test_ctrl_c_keeps_what_was_reached(training, tmp_path):
    seen = read_until(training.stderr, "accuracy=")  # until the first epoch has finished
    training.send_signal(signal.SIGINT)
    out, rest = training.communicate(timeout=60)
    assert training.returncode == 130
    assert "Traceback" not in seen + rest
    assert re.search(r"stopped by Ctrl-C after \d+ of 1000000 epochs\ntest accuracy \d+\.\d+%", out)
    assert_picture(tmp_path / "stopped.png")


def test_ctrl_c_before_the_first_epoch_leaves_no_picture(digits, tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(digits, "sgd_step", interrupted)
    picture = tmp_path / "none.png"
    assert digits.main(["--out", str(picture)]) == 130
    assert "after 0 of 30 epochs" in capsys.readouterr().out
    assert not picture.exists()
