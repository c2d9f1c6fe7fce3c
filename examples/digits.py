"""Train a small neural network on handwritten digits with xpgrad, and nothing but the Python Array API.

The network is a multilayer perceptron: matrix product, bias, ReLU; the loss is the cross-entropy; the optimiser,
stochastic gradient descent with momentum, is written out below in four lines. None of it names an array library, so the
same program trains on any device that xpgrad knows:

    python examples/digits.py
    python examples/digits.py --device jax --epochs 10 --out jax.png

It prints the accuracy on digits it was not trained on, and draws one picture: how training went, and the digits that it
reads wrongly. The exit code is 0 if that accuracy reached 96 %, 1 if it did not, 2 if the arguments or the installation
are wrong, 130 after Ctrl-C (what was reached until then is still printed and drawn).

The 1797 images of 8x8 pixels come with scikit-learn: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten
Digits", UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import xpgrad as xp
from xpgrad.errors import XpgradError

# scikit-learn, matplotlib and tqdm are imported where they are used: --help answers at once, Ctrl-C ends the program
# cleanly even while they load, and if one is missing main() can say how to get it.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PASS_MARK = 0.96
"""The accuracy on the test digits, a fraction, below which the program reports failure."""

CREDIT = "Digits: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository (1998), CC BY 4.0"

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # Okabe and Ito's palette, which colour-blind readers can distinguish


@dataclass(frozen=True)
class Digits:
    """Images and their labels.

    Attributes
    ----------
    images : Tensor
        float32, shape ``(n, 64)``: 8x8 pixels, row by row, from 0 (paper) to 1 (ink).
    labels : Tensor
        int32, shape ``(n,)``: the digit that was meant, 0 to 9. Not int64, which some libraries have on demand only.
    """

    images: xp.Tensor
    labels: xp.Tensor


@dataclass(frozen=True)
class Layer:
    """One affine map, ``x @ weights + bias``.

    Attributes
    ----------
    weights : Tensor
        Shape ``(inputs, outputs)``, a leaf that requires grad.
    bias : Tensor
        Shape ``(outputs,)``, a leaf that requires grad.
    """

    weights: xp.Tensor
    bias: xp.Tensor


@dataclass(frozen=True)
class Epoch:
    """The results of one pass through the training digits.

    Attributes
    ----------
    loss : float
        The mean of the batches' cross-entropies, in nats.
    train_accuracy, test_accuracy : float
        Fractions, measured at the end of the epoch.
    predicted : ndarray of int64
        The digit that the network read in each test image at the end of the epoch. It is stored because after Ctrl-C in the
        middle of a step, only some of the weights may have been updated.
    """

    loss: float
    train_accuracy: float
    test_accuracy: float
    predicted: NDArray[np.int64]


def load_digits(device: xp.Device | None, rng: np.random.Generator, test_share: float = 0.2) -> tuple[Digits, Digits]:
    """Split the digits at random into a set to train on and a set to test on.

    Parameters
    ----------
    device : Device or None
        The place for the Tensors; None means xpgrad's default device.
    rng : Generator
        Draws the split.
    test_share : float
        The fraction of the images to test on.

    Returns
    -------
    train, test : Digits
        All 1797 images, each in one of the two.
    """
    from sklearn.datasets import load_digits as bundled_digits

    ink, labels = bundled_digits(return_X_y=True)  # the ink in a 4x4 block of the original's pixels: 0 to 16
    images = ink.astype(np.float32) / 16.0
    labels = labels.astype(np.int64)
    order = rng.permutation(len(labels))
    first_train = round(test_share * len(labels))

    def part(rows: NDArray[np.int64]) -> Digits:
        return Digits(xp.asarray(images[rows], device=device), xp.asarray(labels[rows].astype(np.int32), device=device))

    return part(order[first_train:]), part(order[:first_train])


def make_network(sizes: Sequence[int], device: xp.Device | None, rng: np.random.Generator) -> list[Layer]:
    """Draw the initial weights.

    Parameters
    ----------
    sizes : sequence of int
        The number of inputs of each layer, followed by the number of outputs of the last one.
    device : Device or None
        The place for the weights; None means xpgrad's default device.
    rng : Generator
        Draws the weights: normal with variance ``2 / inputs`` (He et al. 2015), which keeps the scale through ReLUs.

    Returns
    -------
    list of Layer
    """

    def leaf(values: NDArray[np.float64]) -> xp.Tensor:
        return xp.tensor(values.astype(np.float32), requires_grad=True, device=device)

    return [
        Layer(leaf(rng.normal(0.0, np.sqrt(2.0 / inputs), (inputs, outputs))), leaf(np.zeros(outputs)))
        for inputs, outputs in pairwise(sizes)
    ]


def logits(network: Sequence[Layer], images: xp.Tensor) -> xp.Tensor:
    """Apply the network: ``(n, 64)`` images to ``(n, 10)`` unnormalised log-probabilities."""
    x = images
    for layer in network[:-1]:
        x = xp.maximum(x @ layer.weights + layer.bias, 0.0)
    return x @ network[-1].weights + network[-1].bias


def cross_entropy(scores: xp.Tensor, labels: xp.Tensor) -> xp.Tensor:
    """Return the mean negative log-likelihood of the labels, in nats: a 0-d Tensor.

    Parameters
    ----------
    scores : Tensor
        Unnormalised log-probabilities, shape ``(n, classes)``.
    labels : Tensor
        The true classes, integers, shape ``(n,)``.
    """
    # Subtracting each row's maximum changes no probability and keeps exp() from overflowing. No gradient flows through
    # it, so it is detached.
    shifted = scores - xp.max(scores.detach(), axis=1, keepdims=True)
    log_normaliser = xp.log(xp.sum(xp.exp(shifted), axis=1))
    of_label = xp.take_along_axis(shifted, xp.expand_dims(labels, axis=1), axis=1)
    return xp.mean(log_normaliser - xp.squeeze(of_label, axis=1))


def sgd_step(parameters: Sequence[xp.Tensor], velocities: Sequence[xp.Tensor], learning_rate: float, momentum: float) -> None:
    """Move each parameter against its gradient, with momentum, in place; then forget the gradient.

    Parameters
    ----------
    parameters : sequence of Tensor
        Leaves whose ``.grad`` has been filled by ``backward()``.
    velocities : sequence of Tensor
        One per parameter, of its shape, zero before the first step: the decaying sum of its gradients.
    learning_rate, momentum : float
    """
    with xp.no_grad():
        for parameter, velocity in zip(parameters, velocities, strict=True):
            assert parameter.grad is not None, "call backward() first"
            velocity *= momentum
            velocity += parameter.grad
            parameter -= learning_rate * velocity
            parameter.grad = None


def predict(network: Sequence[Layer], images: xp.Tensor) -> xp.Tensor:
    """Return the digit that the network reads in each image: integers, shape ``(n,)``."""
    with xp.no_grad():
        return xp.argmax(logits(network, images), axis=1)


def accuracy(predicted: xp.Tensor, labels: xp.Tensor) -> float:
    """Return the fraction of images that were read correctly."""
    return float(xp.mean(xp.astype(predicted == labels, xp.float32)))


def batches(digits: Digits, size: int, rng: np.random.Generator) -> Iterator[Digits]:
    """Yield all the digits once, in random order, `size` at a time (the last batch may be smaller)."""
    n = digits.labels.shape[0]
    order = xp.asarray(rng.permutation(n).astype(np.int32), device=digits.labels.device)
    for start in range(0, n, size):
        rows = order[start : start + size]
        yield Digits(xp.take(digits.images, rows, axis=0), xp.take(digits.labels, rows, axis=0))


def train(
    network: Sequence[Layer],
    train_set: Digits,
    test_set: Digits,
    *,
    history: list[Epoch],
    epochs: int,
    batch_size: int,
    learning_rate: float,
    momentum: float,
    rng: np.random.Generator,
) -> None:
    """Train the network in place.

    Parameters
    ----------
    network : sequence of Layer
        Changed in place.
    train_set, test_set : Digits
        The digits to learn from, and those on which only the accuracy is measured.
    history : list of Epoch
        Extended at the end of each epoch, so that after an interruption the finished epochs are still there.
    epochs, batch_size : int
        The number of passes through the training set, and of images per step.
    learning_rate, momentum : float
        See `sgd_step`.
    rng : Generator
        Draws the order of the images.
    """
    from tqdm import tqdm

    parameters = [parameter for layer in network for parameter in (layer.weights, layer.bias)]
    velocities = [xp.zeros_like(parameter) for parameter in parameters]
    steps = -(-train_set.labels.shape[0] // batch_size)

    with tqdm(total=epochs * steps, unit="step", dynamic_ncols=True) as bar:
        for epoch in range(1, epochs + 1):
            bar.set_description(f"epoch {epoch}/{epochs}", refresh=False)
            # Summed on the device: reading the number out at every step would make the host wait for the device.
            total: float | xp.Tensor = 0.0
            for batch in batches(train_set, batch_size, rng):
                loss = cross_entropy(logits(network, batch.images), batch.labels)
                loss.backward()
                sgd_step(parameters, velocities, learning_rate, momentum)
                total = total + loss.detach()
                bar.update()

            predicted = predict(network, test_set.images)
            finished = Epoch(
                loss=float(total) / steps,
                train_accuracy=accuracy(predict(network, train_set.images), train_set.labels),
                test_accuracy=accuracy(predicted, test_set.labels),
                predicted=predicted.numpy(),
            )
            history.append(finished)
            bar.set_postfix(loss=f"{finished.loss:.4f}", accuracy=f"{finished.test_accuracy:.1%}")


def draw(history: Sequence[Epoch], images: NDArray[np.float32], labels: NDArray[np.int64], title: str) -> Figure:
    """Draw the learning curve and the first 20 test digits that were read wrongly.

    Parameters
    ----------
    history : sequence of Epoch
        The finished epochs, at least one.
    images : ndarray
        The test images, shape ``(n, 64)``.
    labels : ndarray
        Their true digits, shape ``(n,)``.
    title : str
        The title above the picture.

    Returns
    -------
    Figure
        For saving; it does not belong to a window.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=14)
    figure.supxlabel(CREDIT, fontsize=8, color=GREY)
    curves, sheet = figure.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.15), wspace=0.04)[0]

    loss_axes, accuracy_axes = curves.subplots(2, 1, sharex=True)
    draw_curves(loss_axes, accuracy_axes, history)

    predicted = history[-1].predicted
    wrong = np.flatnonzero(predicted != labels)
    shown = min(len(wrong), 20)
    columns = min(5, max(1, math.ceil(math.sqrt(1.25 * shown))))
    cells = list(sheet.subplots(max(1, math.ceil(shown / columns)), columns, squeeze=False).flat)
    heading = f"{len(wrong)} of {len(labels)} test digits misread"
    if len(wrong) > shown:
        heading += f" (the first {shown} shown)"
    sheet.suptitle(heading, fontsize=11)
    for axes in cells:
        axes.set_axis_off()
    for axes, row in zip(cells, wrong, strict=False):
        axes.imshow(images[row].reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=1.0)
        axes.set_title(f"read {predicted[row]}, is {labels[row]}", fontsize=9)
    return figure


def draw_curves(loss_axes: Axes, accuracy_axes: Axes, history: Sequence[Epoch]) -> None:
    """Draw the loss into one pair of axes and both accuracies into the other, per epoch."""
    from matplotlib.ticker import MaxNLocator

    epochs = np.arange(1, len(history) + 1)
    marker = "o" if len(history) == 1 else None  # a line of one point would be invisible
    loss_axes.semilogy(epochs, [epoch.loss for epoch in history], color=GREY, marker=marker)
    loss_axes.set_ylabel("training loss (nats)")
    for name, color, fractions in (
        ("training digits", BLUE, [epoch.train_accuracy for epoch in history]),
        ("test digits", ORANGE, [epoch.test_accuracy for epoch in history]),
    ):
        accuracy_axes.plot(epochs, 100 * np.array(fractions), color=color, marker=marker, label=name)
    accuracy_axes.axhline(100 * PASS_MARK, color=GREY, linestyle=":", linewidth=1, label=f"pass mark {PASS_MARK:.0%}")
    accuracy_axes.set_ylabel("accuracy (%)")
    accuracy_axes.set_xlabel("epoch")
    accuracy_axes.set_xlim(0.5, len(history) + 0.5)
    accuracy_axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    accuracy_axes.legend(fontsize=9)
    for axes in (loss_axes, accuracy_axes):
        axes.grid(alpha=0.3)


def positive_int(text: str) -> int:
    """Read a command line argument that must be a positive integer."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def positive_float(text: str) -> float:
    """Read a command line argument that must be a positive, finite number."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text}")
    return value


def known_device(text: str) -> xp.Device:
    """Return the device of a command line argument; if its backend cannot be loaded, the error says why."""
    try:
        return xp.zeros((), device=text).device
    except (XpgradError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def png_path(text: str) -> Path:
    """Return the path of a picture to write, checked before the training rather than after it."""
    path = Path(text)
    if path.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"must end in .png, not {text}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"no such directory: {path.parent}")
    return path


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description="Train a small neural network on 1797 handwritten digits with xpgrad, and draw how it went.",
        epilog=f"Exit code: 0 if the test accuracy is at least {PASS_MARK:.0%}, 1 if it is not, 2 if something is "
        f"wrong with the arguments or the installation, 130 after Ctrl-C. {CREDIT}.",
    )
    add = parser.add_argument
    add(
        "--device",
        type=known_device,
        metavar="NAME",
        help='such as "numpy" or "jax:cpu:0" (default: xpgrad\'s default device)',
    )
    add("--seed", type=int, default=0, metavar="N", help="of the split, weights and batches (default: %(default)s)")
    add("--epochs", type=positive_int, default=30, metavar="N", help="passes through the data (default: %(default)s)")
    add("--batch-size", type=positive_int, default=32, metavar="N", help="images per step (default: %(default)s)")
    add("--lr", type=positive_float, default=0.1, metavar="RATE", help="learning rate (default: %(default)s)")
    add("--hidden", type=positive_int, default=128, metavar="N", help="units in the hidden layer (default: %(default)s)")
    add("--out", type=png_path, default="digits.png", metavar="FILE", help="the picture (default: %(default)s)")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Train, report and draw, as the command line asks; return the exit code."""
    rng = np.random.default_rng(arguments.seed)
    history: list[Epoch] = []
    interrupted = False
    train_set, test_set = load_digits(arguments.device, rng)
    network = make_network((64, arguments.hidden, 10), arguments.device, rng)
    try:
        train(
            network,
            train_set,
            test_set,
            history=history,
            epochs=arguments.epochs,
            batch_size=arguments.batch_size,
            learning_rate=arguments.lr,
            momentum=0.9,
            rng=rng,
        )
    except KeyboardInterrupt:
        interrupted = True
        print(f"stopped by Ctrl-C after {len(history)} of {arguments.epochs} epochs")
    if not history:
        print("no epoch was finished, so there is nothing to draw")
        return 130

    reached = history[-1].test_accuracy
    print(f"test accuracy {reached:.2%} on {test_set.labels.device}")
    title = f"Handwritten digits with xpgrad on {test_set.labels.device}: test accuracy {reached:.1%}"
    draw(history, test_set.images.numpy(), test_set.labels.numpy(), title).savefig(arguments.out, dpi=120)
    print(f"picture in {arguments.out}")
    if interrupted:
        return 130
    if reached < PASS_MARK:
        print(f"that is below the pass mark of {PASS_MARK:.0%}", file=sys.stderr)
        return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line without the program's name; by default the process's own.

    Returns
    -------
    int
        The exit code; see the top of this file.
    """
    parser = make_parser()
    try:
        return run(parser.parse_args(argv))
    except KeyboardInterrupt:  # outside the training: while a library loads or the picture is written
        print("stopped by Ctrl-C", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        if error.name not in {"sklearn", "matplotlib", "tqdm"}:
            raise
        print(f"{parser.prog}: error: {error}; `pip install 'xpgrad[examples]'` installs it", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
