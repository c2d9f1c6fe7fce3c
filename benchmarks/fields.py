"""`python -m benchmarks.fields`: twelve programs from twelve fields, for which nothing was tuned: xpgrad eager, compiled to NumPy source
and to machine code, and JAX.

Each is written once, with names that NumPy, xpgrad and JAX share, and returns one number. What is timed is the value with its gradients
(for k-means, the product of the Hessian with a vector). All results are compared before anything is timed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xpgrad as xp

ROUNDS, SECONDS = 9, 0.05


class Field(NamedTuple):
    """One program: what it is, its loss as a function of a namespace and arrays, its data, and how many arguments have gradients."""

    title: str
    loss: Callable[..., Any]
    data: Callable[[np.random.Generator], tuple[Any, ...]]
    leaves: int
    product: bool = False
    masks: bool = False  # which `jax.jit` refuses


def logsumexp(m: Any, x: Any, axis: int) -> Any:
    top = m.max(x, axis=axis, keepdims=True)
    return m.log(m.sum(m.exp(x - top), axis=axis)) + m.squeeze(top, axis=axis)


def n_body(m: Any, velocity: Any, position: Any, mass: Any) -> Any:
    def acceleration(x: Any) -> Any:
        d = x[None, :, :] - x[:, None, :]
        r2 = m.sum(d * d, axis=2) + 0.05
        return m.sum(d * (mass[None, :] / (r2 * m.sqrt(r2)))[:, :, None], axis=1)

    x, v = position, velocity
    for _ in range(20):
        v = v + 0.005 * acceleration(x)
        x = x + 0.01 * v
        v = v + 0.005 * acceleration(x)
    return m.sum(mass[:, None] * v * v) / 2 + m.sum(x * x)


def kalman(m: Any, noise: Any, observed: Any) -> Any:
    step = m.asarray(np.eye(4) + 0.1 * np.eye(4, k=2))
    look = m.asarray(np.eye(2, 4))
    process, error = m.exp(noise[0]) * m.asarray(np.eye(4)), m.exp(noise[1]) * m.asarray(np.eye(2))
    mean, cov = m.asarray(np.zeros(4)), m.asarray(np.eye(4))
    total = 0.0
    for k in range(60):
        mean, cov = step @ mean, step @ cov @ step.T + process
        residual = observed[k] - look @ mean
        s = look @ cov @ look.T + error
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = m.stack([m.stack([s[1, 1], -s[0, 1]]), m.stack([-s[1, 0], s[0, 0]])]) / det
        gain = cov @ look.T @ inverse
        total = total + m.log(det) + m.sum(residual * (inverse @ residual))
        mean, cov = mean + gain @ residual, cov - gain @ look @ cov
    return total / 2


def gaussian_process(m: Any, scales: Any, x: Any, y: Any) -> Any:
    d = x[:, None] - x[None, :]
    k = m.exp(scales[0]) * m.exp(-0.5 * d * d * m.exp(-2 * scales[1])) + m.exp(scales[2]) * m.asarray(np.eye(150))
    low = m.linalg.cholesky(k)
    half = m.linalg.solve(low, y[:, None])
    return m.sum(half * half) / 2 + m.sum(m.log(m.linalg.diagonal(low)))


def heat(m: Any, start: Any, target: Any) -> Any:
    u = start
    for _ in range(50):
        inner = u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u = m.concat([u[:1, :], m.concat([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1), u[-1:, :]], axis=0)
    return m.sum((u - target) ** 2)


def hidden_markov(m: Any, transition: Any, emission: Any, symbols: Any) -> Any:
    transition = transition - logsumexp(m, transition, 1)[:, None]
    emission = emission - logsumexp(m, emission, 1)[:, None]
    seen = m.take(emission, symbols, axis=1)
    alpha = seen[:, 0] - float(np.log(8.0))
    for k in range(1, 100):
        alpha = logsumexp(m, alpha[:, None] + transition, 0) + seen[:, k]
    return -logsumexp(m, alpha, 0)


def monte_carlo(m: Any, market: Any, normal: Any) -> Any:
    price, rate, volatility = market[0], market[1], market[2]
    steps = (rate - volatility**2 / 2) / 50 + volatility * normal / float(np.sqrt(50.0))
    if hasattr(m, "cumulative_sum"):
        paths = price * m.exp(m.cumulative_sum(steps, axis=1))
    else:
        paths = price * m.exp(m.cumsum(steps, axis=1))
    return m.exp(-rate) * m.mean(m.maximum(m.mean(paths, axis=1) - 100.0, 0.0))


def mixture(m: Any, weights: Any, means: Any, scales: Any, x: Any) -> Any:
    z = (x[:, None, :] - means[None, :, :]) * m.exp(-scales)[None, :, :]
    each = weights - logsumexp(m, weights, 0) - m.sum(scales, axis=1) - 0.5 * m.sum(z * z, axis=2)
    return -m.mean(logsumexp(m, each, 1))


def k_means(m: Any, centres: Any, x: Any) -> Any:
    d = x[:, None, :] - m.reshape(centres, (8, 3))[None, :, :]
    return m.sum(m.min(m.sum(d * d, axis=2), axis=1))


def bundle_adjustment(m: Any, cameras: Any, points: Any, observed: Any, which: Any, point: Any) -> Any:
    camera, x = m.take(cameras, which, axis=0), m.take(points, point, axis=0)
    axis, shift, focal = camera[:, :3], camera[:, 3:6], camera[:, 6:7]
    angle = m.sqrt(m.sum(axis * axis, axis=1, keepdims=True) + 1e-12)
    unit = axis / angle
    cross = m.stack(
        [
            unit[:, 1] * x[:, 2] - unit[:, 2] * x[:, 1],
            unit[:, 2] * x[:, 0] - unit[:, 0] * x[:, 2],
            unit[:, 0] * x[:, 1] - unit[:, 1] * x[:, 0],
        ],
        axis=1,
    )
    along = m.sum(unit * x, axis=1, keepdims=True)
    turned = x * m.cos(angle) + cross * m.sin(angle) + unit * along * (1 - m.cos(angle)) + shift
    error = focal * turned[:, :2] / turned[:, 2:] - observed
    return m.sum(m.sqrt(1 + error * error) - 1)


def lstm(m: Any, inner: Any, outer: Any, bias: Any, x: Any) -> Any:
    h = c = m.asarray(np.zeros((16, 32)))
    for k in range(40):
        gates = x[k] @ inner + h @ outer + bias
        keep, add, show = (1 / (1 + m.exp(-gates[:, 32 * i : 32 * (i + 1)])) for i in range(3))
        c = keep * c + add * m.tanh(gates[:, 96:])
        h = show * m.tanh(c)
    return m.sum(h * h)


def quantum_walk(m: Any, angles: Any, start: Any, place: Any) -> Any:
    up, down = start[0], start[1]
    for k in range(40):
        stay, turn = m.cos(angles[k]), 1j * m.sin(angles[k])
        up, down = m.roll(stay * up + turn * down, 1, axis=0), m.roll(turn * up + stay * down, -1, axis=0)
    return m.sum((m.abs(up) ** 2 + m.abs(down) ** 2) * place)


def robust_regression(m: Any, weights: Any, features: Any, targets: Any) -> Any:
    r = targets - features @ weights
    size = m.abs(r)
    far = size > 1.0
    loss = r**2 / 2
    loss[far] = size[far] - 0.5
    return m.sum(loss) + m.mean(size[~far])


def _walk_data(rng: np.random.Generator) -> tuple[Any, ...]:
    start = rng.normal(size=(2, 512, 2)).view(complex)[..., 0]
    return rng.normal(size=40), start / np.linalg.norm(start), np.linspace(-1.0, 1.0, 512)


def _hmm_data(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.normal(size=(8, 8)), rng.normal(size=(8, 20)), rng.integers(0, 20, 100)


def _bundle_data(rng: np.random.Generator) -> tuple[Any, ...]:
    cameras = np.concatenate([rng.normal(size=(10, 3)) / 5, rng.normal(size=(10, 2)), np.full((10, 1), 6.0), np.ones((10, 1))], axis=1)
    which, point = (v.ravel() for v in np.meshgrid(np.arange(10), np.arange(500)))
    return cameras, rng.normal(size=(500, 3)), rng.normal(size=(5000, 2)), which, point


FIELDS: dict[str, Field] = {
    "nbody": Field("N-body system: 32 bodies, 20 steps", n_body,
                   lambda r: (r.normal(size=(32, 3)), r.normal(size=(32, 3)), r.random(32)), 1),
    "kalman": Field("Kalman filter: 4 states, 60 steps", kalman, lambda r: (np.array([-2.0, -1.0]), r.normal(size=(60, 2))), 1),
    "gp": Field("Gaussian process: 150 points", gaussian_process,
                lambda r: (np.array([0.1, -0.5, -2.0]), np.sort(r.random(150)) * 5, r.normal(size=150)), 1),
    "pde": Field("heat equation by finite differences: 64 x 64, 50 steps", heat, lambda r: (r.random((64, 64)), r.random((64, 64))), 1),
    "hmm": Field("hidden Markov model: 8 states, 100 steps", hidden_markov, _hmm_data, 2),
    "montecarlo": Field("Asian option by Monte Carlo: 10,000 paths of 50 steps", monte_carlo,
                        lambda r: (np.array([100.0, 0.02, 0.2]), r.normal(size=(10_000, 50))), 1),
    "gmm": Field("Gaussian mixture: 5,000 points, 8 parts", mixture,
                 lambda r: (r.normal(size=8), r.normal(size=(8, 3)), r.normal(size=(8, 3)) / 5, r.normal(size=(5000, 3))), 3),
    "kmeans": Field("k-means' Hessian times a vector: 2,000 points, 8 centres", k_means,
                    lambda r: (r.normal(size=24), r.normal(size=(2000, 3)), r.normal(size=24)), 1, product=True),
    "bundle": Field("bundle adjustment: 10 cameras, 500 points", bundle_adjustment, _bundle_data, 2),
    "lstm": Field("LSTM: hidden 32, 40 steps, batch 16", lstm,
                  lambda r: (r.normal(size=(8, 128)) / 3, r.normal(size=(32, 128)) / 6, np.zeros(128), r.normal(size=(40, 16, 8))), 3),
    "walk": Field("quantum walk: 512 places, 40 steps, in complex128", quantum_walk, _walk_data, 1),
    "robust": Field("robust regression with masks: 50,000 rows, 8 features", robust_regression,
                    lambda r: (r.normal(size=8), r.normal(size=(50_000, 8)), r.normal(size=50_000) * 2), 1, masks=True),
}  # fmt: skip


def by_xpgrad(field: Field, data: tuple[Any, ...], emitter: str | None) -> Callable[[], list[Any]]:
    """Return a step of xpgrad, compiled by an emitter or eager."""
    arrays = [xp.asarray(a) for a in data]
    places = tuple(range(field.leaves))

    def loss(*args: Any) -> Any:
        return field.loss(xp, *args)

    if field.product:
        gradient = xp.func.grad(loss)

        def run(*args: Any) -> Any:
            *given, v = args
            return xp.func.jvp(lambda c: gradient(c, *given[1:]), (given[0],), (v,))[1]
    else:
        run = xp.func.value_and_grad(loss, argnums=places)
    if emitter is not None:
        run = xp.compile(run, emitter=emitter)
    return lambda: _flat(run(*arrays))


def by_jax(field: Field, data: tuple[Any, ...]) -> Callable[[], list[Any]] | None:
    """Return a step of JAX; None if it is not installed."""
    try:
        import jax
    except ImportError:
        return None
    if field.masks:
        return None
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    arrays = [jnp.asarray(a) for a in data]

    def loss(*args: Any) -> Any:
        return field.loss(jnp, *args)

    if field.product:

        def run(*args: Any) -> Any:
            *given, v = args
            return jax.jvp(lambda c: jax.grad(loss)(c, *given[1:]), (given[0],), (v,))[1]
    else:
        run = jax.value_and_grad(loss, argnums=tuple(range(field.leaves)))
    run = jax.jit(run)
    return lambda: jax.block_until_ready(_flat(run(*arrays)))  # type: ignore[no-any-return]


def _flat(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _flat(part)] if isinstance(x, (tuple, list)) else [x]


def timed(step: Callable[[], Any]) -> float:
    """Return the CPU seconds of a step."""
    start, count = time.process_time(), 0
    while (used := time.process_time() - start) < SECONDS or not count:
        step()
        count += 1
    return used / count


def measure(name: str) -> str:
    """Return one row of the table."""
    field = FIELDS[name]
    data = field.data(np.random.default_rng(0))
    makers: dict[str, Callable[[], Any]] = {
        "eager": lambda: by_xpgrad(field, data, None), "numpy": lambda: by_xpgrad(field, data, "numpy"),
        "native": lambda: by_xpgrad(field, data, "native"), "jax": lambda: by_jax(field, data),
    }  # fmt: skip
    steps: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    results: dict[str, list[Any]] = {}
    for key, make in makers.items():
        step = make()
        if step is not None:
            start = time.process_time()
            found = step()
            first[key] = time.process_time() - start
            results[key] = [np.asarray(r.numpy() if hasattr(r, "numpy") else r) for r in found]
            steps[key] = step
    for key, found in results.items():
        for a, b in zip(found, results["eager"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8 * float(np.max(np.abs(b), initial=1.0)), err_msg=f"{name}: {key}")
    times: dict[str, list[float]] = {key: [] for key in steps}
    for _ in range(ROUNDS):
        for key, step in steps.items():
            times[key].append(timed(step))
    ratios = {key: statistics.median(t / e for t, e in zip(times[key], times["eager"])) for key in steps}
    eager = statistics.median(times["eager"])
    cells = [f"{ratios[key]:.3f}" if key in ratios else "-" for key in ("numpy", "native", "jax")]
    took = [f"{first[key]:.2f} s" if key in first else "-" for key in ("native", "jax")]
    return f"| {field.title} | {eager * 1e3:.2f} ms | {' | '.join(cells)} | {' | '.join(took)} |"


def main(names: list[str]) -> None:
    """Print the table, row by row."""
    print("| value and gradients | eager | NumPy source | machine code | JAX (jit) | first call: machine code | JAX |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names or FIELDS:
        print(measure(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
