"""Fit a regression to data larger than a worker's memory: forward and backward are one pass over chunks, which are then discarded.

python larger_than_memory.py --rows 4000000 --limit 200MiB     # 2 GB of data through one worker of 200 MiB
python larger_than_memory.py --scheduler threads               # without a cluster
"""

# mypy: allow-untyped-calls
# (dask has no type hints on most of its functions)

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
from dask.diagnostics.progress import ProgressBar
from dask.utils import format_bytes

import xpgrad as xp
import xpgrad_dask


def data(rows: int, columns: int, chunk: int) -> tuple[Any, Any, Any]:
    """Return lazy random rows in chunks, the results of a linear law with noise, and the law's coefficients."""
    rng = da.random.default_rng(0)
    x = rng.normal(size=(rows, columns), chunks=(chunk, columns))
    truth = da.arange(columns, chunks=columns) / columns
    return x, x @ truth + 0.1 * rng.normal(size=rows, chunks=chunk), truth


def peak(_: Any = None) -> int | None:
    """Return the peak memory of this process in bytes; None on Windows. `client.run` calls it on a worker."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextlib.contextmanager
def workers(scheduler: str, limit: str) -> Iterator[Any]:
    """Return a context manager in which chunks are computed by a cluster of one process with a memory limit, or by `scheduler`.

    It gives the cluster's client; None if there is no cluster.
    """
    if scheduler == "cluster":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=1, threads_per_worker=2, memory_limit=limit, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
    else:
        with dask.config.set(scheduler=scheduler):
            yield None


def main() -> None:
    """Take a few gradient steps, and print the loss and the peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--chunk", type=int, default=20_000, help="rows of a chunk")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--scheduler", default="cluster", choices=["cluster", "threads", "synchronous"])
    parser.add_argument("--limit", default="400MiB", help="memory limit of the cluster's worker")
    args = parser.parse_args()

    raw_x, raw_y, truth = data(args.rows, args.columns, args.chunk)
    x, y = xp.asarray(raw_x), xp.asarray(raw_y)
    w = xp.zeros(args.columns, dtype=xp.float64, device="dask").requires_grad_()
    limit = f", worker's limit {args.limit}" if args.scheduler == "cluster" else ""
    print(f"data {format_bytes(raw_x.nbytes)} in {raw_x.npartitions} chunks of {format_bytes(raw_x.nbytes // raw_x.npartitions)}{limit}")
    with workers(args.scheduler, args.limit) as client:
        for step in range(args.steps):
            error = x @ w - y
            loss = xp.mean(error * error)
            loss.backward()  # computes nothing
            assert w.grad is not None
            norm = xp.sqrt(xp.sum(w.grad * w.grad))
            # A single computation of all results makes the data only once; the new weights stay in the worker's memory.
            new = (w.detach() - 0.4 * w.grad).requires_grad_()
            with ProgressBar() if client is None else contextlib.nullcontext():
                w, loss, norm = xpgrad_dask.persist(new, loss, norm)
            if client is not None:
                from distributed import progress

                progress([t.array for t in (w, loss, norm)], notebook=False)
                print()
            print(f"step {step}: loss {loss.item():.6f}, norm of the gradient {norm.item():.6f}")
        distance = float(abs(w.detach().numpy() - truth.compute()).max())
        peaks = {"this process": peak()} if client is None else client.run(peak)
    print(f"largest error of a weight {distance:.6f}")
    print("peak memory:", ", ".join(f"{'unknown' if n is None else format_bytes(n)} ({name})" for name, n in peaks.items()))


if __name__ == "__main__":
    main()
