"""`python -m benchmarks.gpu`: what xpgrad costs on a GPU, beside PyTorch and JAX on the same one.

Each step computes a loss and its gradients, and is done when the GPU is; the results agree with those of NumPy. The table has PyTorch's
time, and the others' ratio to it, in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.contestants import JAX, Contestant, Hand, PyTorch, Whole, XPGrad
from benchmarks.measure import agree, ratio, take_turns
from benchmarks.workloads import WORKLOADS, Step

#: The workloads, each with its size: many small operations, and few large ones.
SIZES = {"mixed": 100, "digits": 64, "rnn": 50, "stencil": 100, "elementwise": 10**7, "functions": 10**7, "options": 10**7, "relu": 4096}


class _OnDevice(XPGrad):
    """xpgrad on a device of a GPU."""

    device: ClassVar[str]
    synchronize: Callable[[], Any]

    def __init__(self) -> None:
        super().__init__()
        device = self.xp.Device(self.device)
        backend = self.xp.registry.backend_for(device.table)
        self.synchronize = lambda: backend.synchronize(device)

    def _enter(self, leaves: Any, constants: Any) -> tuple[Any, Any]:
        xp = self.xp
        wrapped = [xp.asarray(c, device=self.device) if isinstance(c, np.ndarray) else c for c in constants]
        return [xp.tensor(x, requires_grad=True, device=self.device) for x in leaves], wrapped


class CuPyEager(_OnDevice):
    key = "cupy"
    title = "xpgrad on CuPy"
    device = "cupy:0"


class CuPyCompiled(_OnDevice, Whole):
    key = "graph"
    title = "compiled on CuPy"
    device = "cupy:0"

    def _compile(self, function: Any) -> Any:
        return self.xp.compile(function)


class TorchBackend(_OnDevice):
    key = "plugin"
    title = "xpgrad on PyTorch"
    device = "torch:cuda:0"


class PyTorchItself(PyTorch):
    def __init__(self) -> None:
        super().__init__()
        self.synchronize = self.xp.cuda.synchronize

    def _enter(self, leaves: Any, constants: Any) -> tuple[Any, Any]:
        leaves, constants = super()._enter(leaves, constants)
        torch = self.xp
        moved = [c.cuda() if isinstance(c, torch.Tensor) else c for c in constants]
        return [x.detach().cuda().requires_grad_() for x in leaves], moved

    def numbers(self, results: tuple[Any, ...]) -> list[Any]:
        return [r.detach().cpu().numpy() for r in results]


def waiting(step: Step, synchronize: Callable[[], Any]) -> Step:
    """Return a step that ends when the device has computed its results."""

    def run() -> tuple[Any, ...]:
        results = step()
        synchronize()
        return results

    return run


def measure(name: str, contestants: dict[str, Contestant], rounds: int, seconds: float) -> str:
    """Return one row of the table."""
    workload = WORKLOADS[name]
    leaves, constants = workload.data(np.random.default_rng(0), SIZES[name])
    steps = {key: c.step(workload, leaves, constants) for key, c in contestants.items()}
    agree(steps, contestants, tolerance=max(workload.tolerance, 1e-8))
    for key, contestant in contestants.items():
        if hasattr(contestant, "synchronize"):
            steps[key] = waiting(steps[key], contestant.synchronize)
    del steps["numpy"]
    times = take_turns(steps, rounds, seconds, lambda: None, sample=0.02)
    base = times["torch"]
    cells = [f"{np.median(base) * 1e3:.3g} ms"]
    cells += [f"{ratio(times[key], base)[0]:.2f}" for key in steps if key != "torch"]
    return f"| {name}, {SIZES[name]:,} | {' | '.join(cells)} |"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.partition("\n")[0])
    parser.add_argument("workloads", nargs="*", default=list(SIZES), metavar="WORKLOAD", help=f"of {', '.join(SIZES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4.0, help="per workload (default: %(default)s)")
    arguments = parser.parse_args(argv)
    contestants: dict[str, Contestant] = {c.key: c() for c in (Hand, PyTorchItself, CuPyEager, CuPyCompiled, TorchBackend, JAX)}
    print("| workload, size |", " | ".join(c.title for k, c in contestants.items() if k != "numpy"), "|")
    print("|---|" + "---:|" * (len(contestants) - 1))
    for name in arguments.workloads:
        print(measure(name, contestants, arguments.rounds, arguments.seconds), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
