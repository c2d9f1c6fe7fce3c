"""Compare the dialect with HIPS autograd: ``python -m benchmarks.hips`` times programs with both, in turns, in one process.

A program is written once, for a package `m` with the interface of HIPS autograd; the results of both are compared first.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["OWN_RULES", "PROGRAMS", "measure_program"]

#: The targets: the fractions of HIPS autograd's time that a program may take, and one with the user's own rules.
TARGET, TARGET_OF_RULES = 0.7, 1.0

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.normal(size=(64, 20)), _RNG.normal(size=(64, 1))
_LAYERS = [(_RNG.normal(size=(a, b)) / 4, np.zeros(b)) for a, b in ((20, 50), (50, 50), (50, 1))]
_V, _W = _RNG.normal(size=20), _RNG.normal(size=20)
_S = _RNG.normal(size=(30, 30)) / 6


def _network(m: Any) -> Callable[[], Any]:
    def loss(layers: Any) -> Any:
        h = _X
        for w, b in layers:
            h = m.numpy.tanh(m.numpy.dot(h, w) + b)
        return m.numpy.mean((h - _Y) ** 2)

    gradient = m.value_and_grad(loss)
    return lambda: gradient(_LAYERS)


def _valley(x: Any, np: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _rnn(m: Any) -> Callable[[], Any]:
    inputs = _RNG.normal(size=(40, 16, 30))

    def loss(w: Any) -> Any:
        h = np.zeros((16, 30))
        for x in inputs:
            h = m.numpy.tanh(m.numpy.dot(h, w) + x)
        return m.numpy.sum(h**2)

    gradient = m.grad(loss)
    return lambda: gradient(_S)


def _loop(m: Any) -> Callable[[], Any]:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(20):
            total = total + x[i] * m.numpy.exp(-(x[i] ** 2))
        return total

    gradient = m.grad(f)
    return lambda: gradient(_V)


def _scalar(m: Any) -> Callable[[], Any]:
    third = m.grad(m.grad(m.grad(lambda x: (x**3 - 2 * x) / (1 + m.numpy.exp(-x)))))
    return lambda: third(1.5)


def _gaussians(m: Any) -> Callable[[], Any]:
    points = _RNG.normal(size=(200, 2))

    def likelihood(p: Any) -> Any:
        z = (points[:, None, :] - p["mean"]) / m.numpy.exp(p["scale"])
        terms = -0.5 * m.numpy.sum(z**2, axis=2) - m.numpy.sum(p["scale"], axis=1) + p["weight"]
        top = np.max(m.tracer.getval(terms), axis=1, keepdims=True)
        return m.numpy.sum(m.numpy.log(m.numpy.sum(m.numpy.exp(terms - top), axis=1)))

    gradient = m.grad(likelihood)
    start = {"mean": _RNG.normal(size=(5, 2)), "scale": np.zeros((5, 2)), "weight": np.zeros(5)}
    return lambda: gradient(start)


def _process(m: Any) -> Callable[[], Any]:
    inputs, outputs = _RNG.normal(size=(60, 3)), _RNG.normal(size=60)
    distances = np.sum((inputs[:, None] - inputs[None]) ** 2, axis=2)

    def likelihood(p: Any) -> Any:
        k = m.numpy.exp(p[0]) * m.numpy.exp(-distances * m.numpy.exp(p[1])) + m.numpy.exp(p[2]) * np.eye(60)
        return 0.5 * m.numpy.dot(outputs, m.numpy.linalg.solve(k, outputs)) + 0.5 * m.numpy.linalg.slogdet(k)[1]

    gradient = m.grad(likelihood)
    return lambda: gradient(np.array([0.1, -0.2, -0.5]))


def _adam(m: Any) -> Callable[[], Any]:
    optimizers = importlib.import_module(f"{m.__name__}.misc.optimizers")
    gradient = m.grad(lambda p, i: m.numpy.sum((m.numpy.dot(_X, p["w"]) + p["b"] - _Y[:, 0]) ** 2))
    return lambda: optimizers.adam(gradient, {"w": _V, "b": 0.0}, num_iters=20)


def _cholesky(m: Any) -> Callable[[], Any]:
    matrix = _RNG.normal(size=(5, 5))

    def f(x: Any) -> Any:
        factor = m.numpy.linalg.cholesky(m.numpy.dot(x, x.T) + m.numpy.eye(5))
        return m.numpy.sum(m.numpy.log(m.numpy.diag(factor)))

    gradient = m.grad(f)
    return lambda: gradient(matrix)


def _single(m: Any) -> Callable[[], Any]:
    gradient = m.grad(m.numpy.sin)
    return lambda: gradient(1.0)


def _sum(m: Any) -> Callable[[], Any]:
    gradient = m.grad(m.numpy.sum)
    return lambda: gradient(_V)


def _with_rule(kind: str, count: int) -> Callable[[Any], Callable[[], Any]]:
    """Return a program that calls a user's operation `count` times: a primitive, or in xpgrad what `kind` names."""

    def program(m: Any) -> Callable[[], Any]:
        if kind == "primitive" or m.__name__ == "autograd":
            extend = importlib.import_module(f"{m.__name__}.extend")
            own = extend.primitive(lambda x: np.exp(x))
            extend.defvjp(own, lambda ans, x: lambda g: g * ans)
        else:
            own = _own_rule(kind)

        def f(x: Any) -> Any:
            for _ in range(count):
                x = own(x * 0.1)
            return m.numpy.sum(x)

        gradient = m.grad(f)
        return lambda: gradient(_V)

    return program


def _own_rule(kind: str) -> Callable[..., Any]:
    import xpgrad as xp

    if kind == "custom_rule":
        rule = xp.autograd.custom_rule(lambda x: xp.exp(x))
        rule.vjp(lambda g, out: g * out)
        return rule

    class Exp(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return xp.exp(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (out,) = ctx.saved_tensors
            return g * out

    return Exp.apply


#: By title: a function of the package that returns the program to time.
PROGRAMS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "network of three layers: value and gradient": _network,
    "recurrent network, 40 steps: gradient": _rnn,
    "mixture of Gaussians, parameters in a dict: gradient": _gaussians,
    "Gaussian process, 60 points, solve and slogdet: gradient": _process,
    "loop over 20 elements: gradient": _loop,
    "function of one number: third derivative": _scalar,
    "Rosenbrock's valley, 20 variables: gradient": lambda m: lambda: m.grad(lambda x: _valley(x, m.numpy))(_V),
    "the same: Hessian": lambda m: lambda: m.hessian(lambda x: _valley(x, m.numpy))(_V),
    "the same: Hessian times a vector": lambda m: lambda: m.hessian_vector_product(lambda x: _valley(x, m.numpy))(_V, _W),
    "the same: make_jvp": lambda m: lambda: m.make_jvp(lambda x: _valley(x, m.numpy))(_V)(_W),
    "least squares, 20 steps of Adam": _adam,
    "small matrices, cholesky and diag: gradient": _cholesky,
    "a single operation on a number: gradient": _single,
    "a sum of 20 elements: gradient": _sum,
}

#: The same for operations with the user's own rules.
OWN_RULES: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "one user-defined primitive, 20 elements: gradient": _with_rule("primitive", 1),
    "ten of them: gradient": _with_rule("primitive", 10),
    "the same ten, in xpgrad as a `Function`": _with_rule("Function", 10),
    "the same ten, in xpgrad by `custom_rule`": _with_rule("custom_rule", 10),
}


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [leaf for item in x for leaf in _leaves(item)]
    return [leaf for key in sorted(x) for leaf in _leaves(x[key])] if isinstance(x, dict) else [x]


def measure_program(name: str, seconds: float = 2.0) -> tuple[float, float]:
    """Return the median CPU seconds of a program with HIPS autograd and with the dialect, called in turns.

    Raises
    ------
    AssertionError
        If they do not compute the same.
    """
    global _RNG
    steps = []
    for package in ("autograd", "xpgrad.dialects.hips"):
        _RNG = np.random.default_rng(1)  # both draw the same data
        m = importlib.import_module(package)
        importlib.import_module(f"{package}.numpy")
        steps.append((PROGRAMS | OWN_RULES)[name](m))
    for a, b in zip(*(_leaves(step()) for step in steps), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-7, atol=1e-9)
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for step, each in zip(steps, times):
            start = time.process_time()  # processor time, which does not include other work on the machine
            step()
            each.append(time.process_time() - start)
    theirs, ours = map(statistics.median, times)
    return theirs, ours


def main(arguments: list[str]) -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each program")
    parser.add_argument("--only", default="", help="programs with this text in their title")
    chosen = parser.parse_args(arguments)
    seconds = chosen.seconds
    print("| program | HIPS autograd | xpgrad.dialects.hips | ratio |\n|---|---:|---:|---:|")
    for name in [name for name in (*PROGRAMS, *OWN_RULES) if chosen.only in name]:
        theirs, ours = measure_program(name, seconds)
        target = TARGET if name in PROGRAMS else TARGET_OF_RULES
        over = "" if ours <= target * theirs else " (over the target)"
        print(f"| {name} | {theirs * 1e3:.3f} ms | {ours * 1e3:.3f} ms | {ours / theirs:.2f}{over} |")


if __name__ == "__main__":
    main(sys.argv[1:])
