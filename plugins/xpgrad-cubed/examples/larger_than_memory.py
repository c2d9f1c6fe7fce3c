"""Fit a regression to data larger than the allowed memory: no task, forward or backward, may need more than that.

python larger_than_memory.py                                   # 410 MB of data in tasks of at most 60 MB
python larger_than_memory.py --rows 8000000 --executor threads # 4 GB
"""

from __future__ import annotations

import argparse
import sys
import time

import cubed
import cubed.random

import xpgrad as xp
import xpgrad_cubed


def peak() -> int | None:
    """Return the peak memory of this process in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Take a few gradient steps, and print the loss and the peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=800_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--chunk", type=int, default=10_000, help="rows of a chunk")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--allowed", default="60MB", help="memory that a task may need for arrays")
    parser.add_argument("--executor", default="single-threaded", choices=["single-threaded", "threads", "processes"])
    parser.add_argument("--work-dir", default=None, help="where intermediate arrays are stored; by default the system's directory")
    args = parser.parse_args()

    spec = cubed.Spec(work_dir=args.work_dir, allowed_mem=args.allowed, executor_name=args.executor)
    xpgrad_cubed.set_spec(spec)
    raw = cubed.random.random((args.rows, args.columns), chunks=(args.chunk, args.columns), spec=spec)
    x = xp.asarray(raw) * 2.0 - 1.0
    xp.compute(x)  # written to Zarr, chunk by chunk
    truth = xp.linspace(0.0, 1.0, args.columns, device="cubed")
    y = x @ truth
    w = xp.zeros(args.columns, dtype=xp.float64, device="cubed").requires_grad_()
    before = peak()
    print(f"data {raw.nbytes / 1e6:.0f} MB in {raw.npartitions} chunks of {raw.chunkmem / 1e6:.1f} MB, allowed memory {args.allowed}")
    for step in range(args.steps):
        start = time.perf_counter()
        loss = xp.mean((x @ w - y) ** 2)
        loss.backward()  # computes nothing
        assert w.grad is not None
        w = (w.detach() - 1.2 * w.grad).requires_grad_()
        projected = max(cubed.plan(w.detach().array).max_projected_mem, cubed.plan(loss.detach().array).max_projected_mem)
        xp.compute(w, loss)  # one computation; the plan of the next step starts here
        print(f"step {step}: loss {loss.item():.6f}, {projected / 1e6:.1f} MB for the largest task, {time.perf_counter() - start:.1f} s")
    error = xp.max(xp.abs(w.detach() - truth)).item()
    print(f"largest error of a weight {error:.6f}")
    after = peak()
    if before is not None and after is not None:
        print(f"peak memory {after / 1e6:.0f} MB, {(after - before) / 1e6:.0f} MB more than before the first step")


if __name__ == "__main__":
    main()
