"""Fit a regression to data divided between two processes: `python examples/jax_distributed.py` starts both on this host.

Each process gives JAX its own rows; the arrays, and so the Tensors, span both processes. The processes compute the loss and its gradients
together, and the weights are the same on both, without any communication code in this program.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np

ROWS, COLUMNS = 64, 3


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return points and targets made with the weights (1, -2, 0.5); each process keeps only its own rows."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((ROWS, COLUMNS))
    return points, points @ np.asarray([1.0, -2.0, 0.5])


def loss_of(w: Any, x: Any, y: Any) -> Any:
    """Return the mean squared error of a linear model."""
    import xpgrad as xp

    return xp.mean((x @ w - y) ** 2)


def train(rank: int, world: int, address: str, steps: int, rate: float) -> np.ndarray:
    """Run one process's part, and return the weights."""
    os.environ["JAX_ENABLE_X64"] = "1"
    import jax

    jax.distributed.initialize(address, num_processes=world, process_id=rank)
    import xpgrad as xp

    array: Any = jax.make_array_from_process_local_data  # JAX has no types for these two
    spec: Any = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("data",))
    by_rows, everywhere = (jax.sharding.NamedSharding(mesh, part) for part in (spec("data"), spec()))
    here = slice(rank * ROWS // world, (rank + 1) * ROWS // world)
    x, y = (xp.asarray(array(by_rows, part[here])) for part in data())
    w = xp.asarray(jax.device_put(np.zeros(COLUMNS), everywhere))
    w.requires_grad_()

    loss = loss_of(w, x, y)
    loss.backward()  # operation by operation; below as one compiled function
    assert w.grad is not None
    print(f"process {rank}: {len(jax.local_devices())} of {len(jax.devices())} devices, loss {loss.item():.6f}", flush=True)
    print(f"process {rank}: gradient {np.round(w.grad.numpy(), 6).tolist()}", flush=True)
    compiled = xp.compile(loss_of)
    for _ in range(steps):
        w.grad = None
        compiled(w, x, y).backward()
        assert w.grad is not None
        with xp.no_grad():
            w -= rate * w.grad
    print(f"process {rank}: after {steps} steps loss {loss_of(w, x, y).item():.6f}", flush=True)
    return np.asarray(w.detach().numpy())


def launch(world: int, steps: int, rate: float, seconds: float) -> int:
    """Start all processes on this host; return 0 if each of them succeeds in time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    common = ["--address", address, "--world", str(world), "--steps", str(steps), "--rate", str(rate)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    command = [sys.executable, os.path.abspath(__file__), *common]
    processes = [
        subprocess.Popen([*command, "--rank", str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(world)
    ]
    deadline = time.monotonic() + seconds
    try:
        for process in processes:  # one after the other, so that their output does not mix
            print(process.communicate(timeout=max(deadline - time.monotonic(), 0.1))[0], end="")
        codes = [process.returncode for process in processes]
    except subprocess.TimeoutExpired:
        print(f"not done after {seconds:g} seconds", file=sys.stderr)
        codes = [1]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
    return int(any(codes))


def main(argv: list[str] | None = None) -> int:
    """Start the processes, or run as one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, help="be this process; without it, all of them are started")
    parser.add_argument("--address", default="127.0.0.1:0", help="host:port where process 0 listens")
    parser.add_argument("--world", type=int, default=2, help="number of processes")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit")
    args = parser.parse_args(argv)
    if args.rank is None:
        return launch(args.world, args.steps, args.rate, args.seconds)
    weights = train(args.rank, args.world, args.address, args.steps, args.rate)
    print(f"process {args.rank}: weights {np.round(weights, 6).tolist()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
