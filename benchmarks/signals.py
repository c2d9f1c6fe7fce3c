"""Compare filters, splines and transforms with SciPy: ``python -m benchmarks.signals`` times values and gradients in turns.

SciPy computes the value only: it has no gradients. The values of both are compared first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.interpolate
import scipy.signal

import xpgrad as xp
from xpgrad.scipy import fft, interpolate, signal

__all__ = ["PROGRAMS", "measure_programs"]

_RNG = np.random.default_rng(0)
_LONG = _RNG.normal(size=100_000)
_B, _A = scipy.signal.butter(4, 0.2)
_KNOTS = np.sort(_RNG.uniform(size=1000)) * 1000.0
_QUERIES = _RNG.uniform(_KNOTS[0], _KNOTS[-1], size=100_000)

Function = Callable[..., Any]

#: By name: SciPy's function, xpgrad's, and their operands, by which the gradients are taken.
PROGRAMS: dict[str, tuple[Function, Function, tuple[Any, ...]]] = {
    "convolve, 100,000 samples and 100 taps": (scipy.signal.convolve, signal.convolve, (_LONG, _RNG.normal(size=100))),
    "convolve, 100,000 samples and 5,000 taps": (scipy.signal.convolve, signal.convolve, (_LONG, _RNG.normal(size=5000))),
    "convolve, 256 x 256 and 5 x 5": (scipy.signal.convolve, signal.convolve, (_LONG[:65536].reshape(256, 256), _RNG.normal(size=(5, 5)))),
    "lfilter of order 4, 100,000 samples": (scipy.signal.lfilter, signal.lfilter, (_B, _A, _LONG)),
    "CubicSpline, 1,000 knots, 100,000 queries": (
        lambda x, y, q: scipy.interpolate.CubicSpline(x, y)(q), lambda x, y, q: interpolate.CubicSpline(x, y)(q),
        (_KNOTS, _RNG.normal(size=1000), _QUERIES),
    ),
    "dct, 100 x 1,000": (scipy.fft.dct, fft.dct, (_LONG.reshape(100, 1000),)),
}  # fmt: skip


def measure_programs(seconds: float = 2.0, names: Any = None) -> dict[str, tuple[float, float, float]]:
    """Return the median seconds of SciPy's value, xpgrad's value, and the value with all gradients, run in turns."""
    found = {}
    for name in names or PROGRAMS:
        theirs, ours, arrays = PROGRAMS[name]
        constants = [xp.asarray(a) for a in arrays]
        np.testing.assert_allclose(ours(*constants).numpy(), theirs(*arrays), rtol=1e-8, atol=1e-8)

        def with_gradients(ours: Any = ours, arrays: Any = arrays) -> None:
            leaves = [xp.asarray(a).requires_grad_() for a in arrays]
            out = ours(*leaves)
            out.backward(xp.ones_like(out))

        programs: tuple[Function, ...] = (
            lambda theirs=theirs, arrays=arrays: theirs(*arrays), lambda ours=ours, constants=constants: ours(*constants), with_gradients
        )  # fmt: skip
        times: tuple[list[float], ...] = ([], [], [])
        end = time.perf_counter() + seconds
        while len(times[0]) < 5 or time.perf_counter() < end:
            for program, taken in zip(programs, times):
                start = time.perf_counter()
                program()
                taken.append(time.perf_counter() - start)
        found[name] = (statistics.median(times[0]), statistics.median(times[1]), statistics.median(times[2]))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each program")
    options = parser.parse_args(arguments)
    print("| program | SciPy's value | xpgrad's value | with all gradients | ratio |\n|---|---|---|---|---|")
    for name, (theirs, value, both) in measure_programs(options.seconds).items():
        print(f"| {name} | {theirs * 1e3:.2f} ms | {value * 1e3:.2f} ms | {both * 1e3:.2f} ms | {both / theirs:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
