"""A photograph that four devices share: denoising on sharded arrays
====================================================================

Each of four devices (here four parts of one processor) has a quarter of the rows of a noisy photograph. The restored photograph should be
similar to the noisy one and have little total variation (Rudin, Osher and Fatemi, Physica D 60, 1992). The arrays are sharded JAX arrays.
``compile`` makes one program of a step and its gradient, which JAX divides among the devices.

The gradient is compared with NumPy's, for the whole photograph on one device. The picture shows which device has which rows, and how
Nesterov's accelerated steps reduce the energy. The photograph is ``china.jpg`` from scikit-learn (CC BY 2.0,
https://www.flickr.com/photos/danielbuechele/6061409035). With ``--device torch`` and others the same program runs on one device.
"""

from __future__ import annotations

import jax
import numpy as np
from _program import BLUE, YELLOW, Result, program
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

import xpgrad as xp
from xpgrad.func import grad, grad_and_value

for setting in (("jax_enable_x64", True), ("jax_platforms", "cpu"), ("jax_num_cpu_devices", 4)):
    jax.config.update(*setting)  # type: ignore[no-untyped-call] # before JAX is used for the first time
PHOTOGRAPH = load_sample_image("china.jpg")[:424:2, ::2].mean(axis=2) / 255.0


def shared(array: np.ndarray) -> xp.Tensor:
    """Return a Tensor whose rows are divided among all devices."""
    if not str(xp.zeros(0).device).startswith("jax"):
        return xp.asarray(array)
    mesh = Mesh(np.asarray(jax.devices()), ("devices",))
    return xp.asarray(jax.device_put(array, NamedSharding(mesh, PartitionSpec("devices"))))  # type: ignore[no-untyped-call]


def energy(picture: xp.Tensor, noisy: xp.Tensor) -> xp.Tensor:
    """Return half the squared difference from the noisy picture plus the smoothed total variation."""
    down, across = picture[1:, :-1] - picture[:-1, :-1], picture[:-1, 1:] - picture[:-1, :-1]
    return 0.5 * xp.sum((picture - noisy) ** 2) + 0.12 * xp.sum(xp.sqrt(down**2 + across**2 + 1e-3))


@xp.compile
def step(picture: xp.Tensor, ahead: xp.Tensor, noisy: xp.Tensor) -> tuple[xp.Tensor, xp.Tensor, xp.Tensor]:
    """Return the next picture, the extrapolated picture for the next gradient, and the energy."""
    slope, value = grad_and_value(energy)(ahead, noisy)
    new = ahead - 0.03 * slope
    return new, new + 0.9 * (new - picture), value


@program({"signal to noise, dB": (20.0, 40.0), "gradient, off by": (0.0, 1e-12), "devices left out": (0.0, 0.0)}, device="jax")
def main(small: bool) -> Result:
    """Restore the photograph, and show where its rows are."""
    rough = PHOTOGRAPH + 0.15 * np.random.default_rng(0).normal(size=PHOTOGRAPH.shape)
    noisy = shared(rough)
    picture, ahead, course = noisy, noisy, []
    for _ in range(40 if small else 100):
        picture, ahead, value = step(picture, ahead, noisy)
        course.append(float(value))  # waits for all devices: with few cores, two steps at once could wait for each other for ever
    restored, shards = picture.numpy(), getattr(picture.array, "addressable_shards", [])
    there = grad(energy)(*(xp.asarray(image, device="numpy") for image in (restored, rough)))
    off = float(np.max(np.abs(grad(energy)(picture, noisy).numpy() - there.numpy())))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.0), width_ratios=(4, 4, 3))
    for panel, image, name in ((left, rough, "noisy"), (middle, restored, "restored")):
        decibels = float(-10.0 * np.log10(np.mean((image - PHOTOGRAPH) ** 2)))
        panel.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
        panel.set(title=f"{name}: {decibels:.1f} dB", xlabel="pixels")
    places = {shard.index[0].start or 0: f"device {shard.device.id}" for shard in shards}
    middle.set_yticks([*places], places.values(), va="top")
    middle.hlines([*places], 0, restored.shape[1] - 1, color=YELLOW)
    right.semilogy(np.asarray(course[:-1]) / course[-1] - 1.0, color=BLUE)
    right.set(xlabel="step", ylabel="energy above the last, relative", title=f"{len(course)} steps")
    idle = float(len(shards and jax.devices()) - len(shards))
    return Result(figure, {"signal to noise, dB": decibels, "gradient, off by": off, "devices left out": idle})


if __name__ == "__main__":
    main.command()
