"""Compare NumPy's spelling of calls with xpgrad's: ``python -m benchmarks.protocols`` times pairs in turns, on four numbers each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp

__all__ = ["PAIRS", "differences"]

#: The target: the microseconds by which a call of NumPy's function may be slower.
TARGET = 1.5

#: By name: NumPy's and xpgrad's spelling of the same call.
PAIRS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "np.sin(x)": (lambda x, y: np.sin(x), lambda x, y: xp.sin(x)),
    "np.add(x, y)": (lambda x, y: np.add(x, y), lambda x, y: x + y),
    "np.multiply(x, 2.0)": (lambda x, y: np.multiply(x, 2.0), lambda x, y: x * 2.0),
    "np.sum(x)": (lambda x, y: np.sum(x), lambda x, y: xp.sum(x)),
    "np.sum(x, axis=0)": (lambda x, y: np.sum(x, axis=0), lambda x, y: xp.sum(x, axis=0)),
    "np.mean(x)": (lambda x, y: np.mean(x), lambda x, y: xp.mean(x)),
    "np.max(x)": (lambda x, y: np.max(x), lambda x, y: xp.max(x)),
    "np.reshape(x, (2, 2))": (lambda x, y: np.reshape(x, (2, 2)), lambda x, y: xp.reshape(x, (2, 2))),
    "np.where(x > 0, x, y)": (lambda x, y: np.where(x > 0, x, y), lambda x, y: xp.where(x > 0, x, y)),
    "np.linalg.norm(x)": (lambda x, y: np.linalg.norm(x), lambda x, y: xp.linalg.vector_norm(x)),
}


def differences(rounds: int = 2000, calls: int = 20) -> dict[str, tuple[float, float]]:
    """Return, for each pair, the microseconds of xpgrad's spelling and the extra time of NumPy's; the best of rounds in turns."""
    x, y = (xp.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True) for _ in range(2))
    found = {}
    for name, pair in PAIRS.items():
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for call, each in zip(pair, times):
                start = time.perf_counter()
                for _ in range(calls):
                    call(x, y)
                each.append((time.perf_counter() - start) / calls * 1e6)
        protocol, direct = map(min, times)
        found[name] = direct, protocol - direct
    return found


if __name__ == "__main__":
    for name, (direct, more) in differences().items():
        print(f"{name:24} {direct:6.2f} us by xpgrad, {more:+.2f} us by NumPy{'' if more < TARGET else ' (over the target)'}")
