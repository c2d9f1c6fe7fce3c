"""`python -m benchmarks.derivatives`: Jacobians, Hessians and their products with vectors, against the closed forms by hand in NumPy.

All contestants work on the same numbers, agree before anything is measured, and are measured in turns on one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["contestants", "main"]

N = 100
#: The title of each row, and the ratio that it should stay below.
TITLES = {
    "jacobian": ("Jacobian of tanh(W x), R^100 -> R^100", 8.0),
    "hessian": ("Hessian of the Rosenbrock function of 100 variables", 25.0),
    "product": ("its product with a vector", 15.0),
}
Step = Callable[[], Any]


def rosenbrock(m: Any, x: Any) -> Any:
    """Return the chained Rosenbrock function of any number of variables."""
    return m.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _numpy(w: Any, x: Any, v: Any) -> dict[str, Step]:
    import numpy as np

    i = np.arange(N - 1)

    def jacobian() -> Any:
        y = np.tanh(w @ x)
        return (1 - y * y)[:, None] * w

    def hessian() -> Any:
        h = np.zeros((N, N))
        h[i, i] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
        h[i + 1, i + 1] += 200
        h[i, i + 1] = h[i + 1, i] = -400 * x[:-1]
        return h

    def product() -> Any:
        out = np.zeros(N)
        out[:-1] += (1200 * x[:-1] ** 2 - 400 * x[1:] + 2) * v[:-1] - 400 * x[:-1] * v[1:]
        out[1:] += 200 * v[1:] - 400 * x[:-1] * v[:-1]
        return out

    return {"jacobian": jacobian, "hessian": hessian, "product": product}


def _xpgrad(w: Any, x: Any, v: Any) -> dict[str, Step]:
    import xpgrad as xp

    w, x, v = xp.asarray(w), xp.asarray(x), xp.asarray(v)
    jacobian = xp.func.jacrev(lambda x: xp.tanh(w @ x))
    hessian = xp.func.hessian(lambda x: rosenbrock(xp, x))

    def product() -> Any:
        leaf = x.detach().requires_grad_()
        (g,) = xp.autograd.grad(rosenbrock(xp, leaf), leaf, create_graph=True)
        return xp.autograd.grad(g, leaf, v)[0].array

    return {"jacobian": lambda: jacobian(x).array, "hessian": lambda: hessian(x).array, "product": product}


def _compiled(w: Any, x: Any, v: Any) -> dict[str, Step]:
    import xpgrad as xp

    w, x, v = xp.asarray(w), xp.asarray(x), xp.asarray(v)
    jacobian = xp.compile(lambda w, x: xp.func.jacrev(lambda x: xp.tanh(w @ x))(x))
    hessian = xp.compile(lambda x: xp.func.hessian(lambda x: rosenbrock(xp, x))(x))
    gradient = xp.func.grad(lambda x: rosenbrock(xp, x))
    product = xp.compile(lambda x, v: xp.func.vjp(gradient, x)[1](v)[0])
    return {"jacobian": lambda: jacobian(w, x).array, "hessian": lambda: hessian(x).array, "product": lambda: product(x, v).array}


def _torch(w: Any, x: Any, v: Any) -> dict[str, Step]:
    import torch

    torch.set_num_threads(1)
    w, x, v = torch.tensor(w), torch.tensor(x), torch.tensor(v)
    jacobian = torch.func.jacrev(lambda x: torch.tanh(w @ x))
    hessian = torch.func.hessian(lambda x: rosenbrock(torch, x))

    def product() -> Any:
        leaf = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(rosenbrock(torch, leaf), leaf, create_graph=True)
        return torch.autograd.grad(g, leaf, v)[0].numpy()

    return {"jacobian": lambda: jacobian(x).numpy(), "hessian": lambda: hessian(x).numpy(), "product": product}


def contestants() -> dict[str, dict[str, Step]]:
    """Return a step for each library and task, on the same numbers; PyTorch only if it is installed."""
    import numpy as np

    rng = np.random.default_rng(0)
    w, x, v = rng.normal(size=(N, N)), rng.normal(size=N), rng.normal(size=N)
    found = {"numpy": _numpy(w, x, v), "xpgrad": _xpgrad(w, x, v), "compiled": _compiled(w, x, v)}
    try:
        found["pytorch"] = _torch(w, x, v)
    except ImportError:
        print("PyTorch is not installed: its column is left out", file=sys.stderr)
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derivatives", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each contestant")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np

    from benchmarks.measure import ratio, take_turns

    found = contestants()
    others = [name for name in found if name != "numpy"]
    rows = []
    for task, (title, target) in TITLES.items():
        expected = found["numpy"][task]()
        for name in others:
            np.testing.assert_allclose(found[name][task](), expected, rtol=1e-8, atol=1e-8, err_msg=f"{name}: {title}")
        steps = {name: found[name][task] for name in found}
        times = take_turns(steps, options.rounds, 60.0, lambda: None)
        ratios = {name: ratio(times[name], times["numpy"])[0] for name in others}
        rows.append((title, target, statistics.median(times["numpy"]), ratios))
    head = ["", "by hand, µs", *others, "target"]
    lines = [[t, f"{h * 1e6:.1f}", *(f"{r[n]:.1f}" for n in others), f"<= {target:.0f}"] for t, target, h, r in rows]
    if options.markdown:
        print("\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]))
    else:
        for line in [head, *lines]:
            print(f"{line[0]:<55}" + "".join(f"{cell:>14}" for cell in line[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
