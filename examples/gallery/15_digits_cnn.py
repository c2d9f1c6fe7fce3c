"""A small convolutional network, and the pixels that speak for a digit
=======================================================================

A network with two convolutional layers learns to read handwritten digits by stochastic gradient descent. ``compile`` makes one function of
the loss and its gradient. Another gradient explains the result: the network has no biases, so its scores are homogeneous in the pixels, and
by Euler's theorem the products of the pixels and their gradients sum to the score. ``vmap`` computes these products for each image. The
picture shows, for the least certain digits, which pixels speak for the predicted digit and which for the second choice. A convolution is
compared with SciPy's ``correlate2d``. The digits are E. Alpaydin's and C. Kaynak's (UCI Machine Learning Repository, 1998,
https://doi.org/10.24432/C50P49, CC BY 4.0), from scikit-learn.
"""

from __future__ import annotations

import numpy as np
from _program import Result, program
from matplotlib import pyplot as plt
from scipy.signal import correlate2d
from sklearn.datasets import load_digits

import xpgrad as xp
from xpgrad.func import grad, value_and_grad, vmap
from xpgrad.scipy.special import log_softmax


def convolve(images: xp.Tensor, weights: xp.Tensor) -> xp.Tensor:
    """Convolve (n, height, width, channels) images with 3 x 3 weights, shape (9 channels, new channels); apply ReLU."""
    height, width = images.shape[1] - 2, images.shape[2] - 2
    patches = xp.concat([images[:, k : k + height, m : m + width] for k in range(3) for m in range(3)], axis=3)
    return xp.maximum(patches @ weights, 0.0)


def scores(weights: list[xp.Tensor], images: xp.Tensor) -> xp.Tensor:
    """Return the scores of ten digits for (n, 10, 10) images: convolution, 2 x 2 max-pooling, convolution, product."""
    x = xp.reshape(convolve(images[..., None], weights[0]), (len(images), 4, 2, 4, 2, -1))
    return xp.reshape(convolve(xp.max(x, axis=(2, 4)), weights[1]), (len(images), -1)) @ weights[2]


@xp.compile
def loss(weights: list[xp.Tensor], images: xp.Tensor, labels: xp.Tensor) -> xp.Tensor:
    """Return the cross-entropy."""
    return -xp.mean(xp.take_along_axis(log_softmax(scores(weights, images), axis=1), labels[:, None], axis=1))


@program({"accuracy": (0.9, 1.0), "convolution, off by": (0.0, 1e-12), "Euler's theorem, off by": (0.0, 1e-9)})
def main(small: bool) -> Result:
    """Train, test, and explain the predictions."""
    rng, (ink, digits) = np.random.default_rng(0), load_digits(return_X_y=True)
    images, labels = xp.asarray(np.pad(ink.reshape(-1, 8, 8) / 16.0, ((0, 0), (1, 1), (1, 1)))), xp.asarray(digits)
    train, test = np.split(rng.permutation(len(digits)), [1437])
    weights = [xp.asarray(rng.normal(size=shape) * np.sqrt(2.0 / shape[0])) for shape in ((9, 16), (144, 32), (128, 10))]
    speeds = [xp.zeros_like(w) for w in weights]
    for rows in [batch for _ in range(4 if small else 20) for batch in np.array_split(rng.permutation(train), 22)]:
        slopes = grad(loss)(weights, images[rows], labels[rows])
        speeds = [0.9 * speed - 0.05 * slope for speed, slope in zip(speeds, slopes)]
        weights = [w + speed for w, speed in zip(weights, speeds)]

    def lead(image: xp.Tensor) -> xp.Tensor:
        second, best = xp.unstack(xp.sort(scores(weights, image[None])[0])[-2:])
        return best - second

    leads, slopes = vmap(value_and_grad(lead))(images[test])
    shares = (images[test] * slopes).numpy()
    read = xp.argsort(scores(weights, images[test]), axis=1).numpy()[:, ::-1]
    right = float(np.mean(read[:, 0] == digits[test]))
    figure, axes = plt.subplots(2, 8, figsize=(11.0, 3.4), subplot_kw={"xticks": [], "yticks": []})
    figure.suptitle(f"{right:.1%} of {len(test)} digits are read rightly; those least sure, and which pixels speak for the first reading")
    for (above, below), k in zip(axes.T, xp.argsort(leads).numpy()):
        above.imshow(images[test][k].numpy(), cmap="gray_r")
        above.set_title(f"{read[k, 0]} or {read[k, 1]}?\nis {digits[test][k]}")
        below.imshow(shares[k], cmap="PuOr_r", vmin=-np.max(np.abs(shares[k])), vmax=np.max(np.abs(shares[k])))
    axes[1, 0].set_ylabel("orange: for it")
    filtered = correlate2d(images[0].numpy(), xp.reshape(weights[0][:, 0], (3, 3)).numpy(), mode="valid")
    off = np.max(np.abs(convolve(images[:1, ..., None], weights[0])[0, ..., 0].numpy() - np.maximum(filtered, 0.0)))
    euler = np.max(np.abs(np.sum(shares, axis=(1, 2)) - leads.numpy()))
    return Result(figure, {"accuracy": right, "convolution, off by": float(off), "Euler's theorem, off by": float(euler)})


if __name__ == "__main__":
    main.command()
