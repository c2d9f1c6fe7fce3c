"""Turn a function into a gallery program with options, a device, bounds for its numbers, and a picture."""

from __future__ import annotations

import argparse
import inspect
import math
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import xpgrad as xp

matplotlib.use("agg")  # pictures are written to files; notebooks and sphinx-gallery show open figures

#: Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#777777"


class Result(NamedTuple):
    """The outcome of a program.

    Attributes
    ----------
    figure : Figure
        Its picture.
    numbers : dict of str to float
        The numbers that it reports, by name; exactly those that have bounds.
    """

    figure: Figure
    numbers: dict[str, float]


class Program:
    """A function of the gallery with its command line and checks; `program` makes one."""

    def __init__(self, compute: Callable[[bool], Result], bounds: dict[str, tuple[float, float]], device: str) -> None:
        self.compute = compute
        self.bounds = bounds
        self.device = device
        self.__doc__ = compute.__doc__

    def __call__(self, device: str | None = None, small: bool = False, picture: str | None = None) -> dict[str, float]:
        """Run on a device, write the picture to the path `picture` if given, and return the numbers by name."""
        # Set at each run: sphinx-gallery runs all programs in one process and resets the style after each.
        plt.rcParams.update({"figure.dpi": 110, "figure.constrained_layout.use": True, "axes.titlesize": "medium", "legend.frameon": False})
        with xp.default_device(device or self.device):
            figure, numbers = self.compute(small)
        if picture is not None:
            figure.savefig(picture)
        return numbers

    def failures(self, numbers: dict[str, float]) -> list[str]:
        """Return a sentence for each number that is missing, unknown or out of bounds."""
        said = [f"{name}: expected, but not reported" for name in self.bounds.keys() - numbers.keys()]
        for name, value in numbers.items():
            low, high = self.bounds.get(name, (math.nan, math.nan))
            if not low <= value <= high:
                said.append(f"{name} is {value:.6g}, expected between {low:g} and {high:g}")
        return said

    def command(self, arguments: list[str] | None = None) -> None:
        """Read the options, run, print the numbers, and exit with 1 if one of them is out of bounds."""
        about = inspect.getdoc(sys.modules["__main__"])
        parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--device", default=self.device, help="where the Tensors are: numpy, torch, jax, ... (default: %(default)s)")
        parser.add_argument("--small", action="store_true", help="a smaller problem, for a quick look")
        parser.add_argument("--picture", metavar="PATH.png", help="write the picture there")
        options = parser.parse_args(arguments)
        start = time.perf_counter()
        numbers = self(options.device, options.small, options.picture)
        for name, value in numbers.items():
            print(f"{name}: {value:.6g}")
        print(f"{time.perf_counter() - start:.1f} s on {options.device}")
        if said := self.failures(numbers):
            sys.exit("\n".join(said))


def program(bounds: dict[str, tuple[float, float]], device: str = "numpy") -> Callable[[Callable[[bool], Result]], Program]:
    """Return a decorator for a function of `small` that returns a `Result`, whose numbers must lie within the bounds."""
    return lambda compute: Program(compute, bounds, device)
