"""Compute expected values and derivatives: the function on NumPy arrays, and its central differences in double precision.

If the function does not accept NumPy arrays or double precision, Tensors on the default backend or on the checked one are used instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xpgrad._basics.device import Device
from xpgrad._basics.differences import Slope, central_difference, dot
from xpgrad._tape.requests import grad
from xpgrad.errors import XpgradError
from xpgrad.testing._host import agree, epsilon, np, on_host, to_double, to_tensor
from xpgrad.testing._problem import Outputs, Problem, host_loss, outputs_of


class Reference:
    """A function at fixed points, and derivatives of a weighted sum of its outputs by central differences.

    The step is ``eps ** (1 / 3)`` times the size of each element, where eps is the machine epsilon: then the truncation error and the
    rounding error have the same order.

    Parameters
    ----------
    problem : Problem
    points : list of numpy.ndarray
        The points, in the precision of the differences.
    device : Device, optional
        If the function does not accept NumPy arrays, the device of the Tensors to pass instead.
    place : callable
        Makes a constant from any other array of the problem.
    """

    def __init__(self, problem: Problem, points: list[Any], device: Device | None, place: Callable[[Any], Any]) -> None:
        self.problem, self.points, self.device, self._place = problem, points, device, place
        self._second: dict[tuple[int, ...], Slope] = {}
        self._first: dict[tuple[int, ...], Slope] = {}
        self.values = self._outputs(points).host()
        self.eps = epsilon([*points, *self.values])  # a function of float64 may compute in float32
        self.step = self.eps ** (1 / 3)

    def _outputs(self, points: Sequence[Any]) -> Outputs:
        if self.device is None:
            return outputs_of(self.problem.call([p.copy() for p in points], lambda leaf: self._place(leaf).copy()))
        device = self.device
        return outputs_of(self.problem.call([to_tensor(p, device) for p in points], lambda leaf: to_tensor(self._place(leaf), device)))

    def _shift_points(self, places: Sequence[int], directions: Sequence[Any], by: float) -> list[Any]:
        found = list(self.points)
        for j, v in zip(places, directions):
            found[j] = (found[j] + by * v).astype(found[j].dtype)
        return found

    def _difference(
        self, number: Callable[[list[Any]], tuple[float, float]], places: Sequence[int], directions: Sequence[Any], steps: float = 1.0
    ) -> Slope:
        step = steps * self.step
        ends = {h: number(self._shift_points(places, directions, h)) for h in (step, -step)}
        return Slope(central_difference(lambda h: ends[h][0], step), 20 * self.eps * max(size for _, size in ends.values()) / step)

    def first(self, key: tuple[int, ...], places: Sequence[int], directions: Sequence[Any]) -> Slope:
        """Return the derivative along directions of the points at `places`, cached under `key` for the next backend."""
        if key not in self._first:
            self._first[key] = self._difference(self._loss, places, directions)
        return self._first[key]

    def _loss(self, at: list[Any]) -> tuple[float, float]:
        return host_loss(self._outputs(at).host())

    def estimate_error(self, key: tuple[int, ...], places: Sequence[int], directions: Sequence[Any]) -> float:
        """Estimate the error of ``first(key, places, directions)``: by twice the step, and by points that differ in the last digits."""
        coarse = self._difference(self._loss, places, directions, 2.0)
        found = abs(coarse[0] - self.first(key, places, directions)[0])
        return (found if np.isfinite(found) else 0.0) + 2 * self.rounding(places, directions) / self.step

    def rounding(self, places: Sequence[int], directions: Sequence[Any]) -> float:
        """Return the rounding error of the weighted sum of outputs, which is larger than that of its last digit if large terms cancel.

        It shows in how much the values on one side of the points differ, on which a step at the points does not show.
        """
        return self._rounding(self._loss, places, directions)

    def _rounding(self, number: Callable[[list[Any]], tuple[float, float]], places: Sequence[int], directions: Sequence[Any]) -> float:
        sides = ([number(self._shift_points(places, directions, k * 8 * self.eps * s))[0] for k in (1, 2, 3, 4)] for s in (1.0, -1.0))
        found = max(max(values) - min(values) for values in sides)
        return found if np.isfinite(found) else 0.0

    def moves(self, part: int, places: Sequence[int], directions: Sequence[Any]) -> bool:
        """Return whether an output changes along a direction of the points at `places`."""
        above, below = (self._outputs(self._shift_points(places, directions, s * self.step)).host() for s in (1.0, -1.0))
        near = 20 * self.eps
        return max(len(above), len(below)) <= part or not agree(above[part], below[part], near, near)

    def second(
        self, key: tuple[int, ...], places: Sequence[int], directions: Sequence[Any], along: Mapping[int, Any], device: Device
    ) -> Slope:
        """Return the derivative along `directions` of the derivative along `along`, which is computed by a backward pass on a device.

        Parameters
        ----------
        key : tuple of int
            The cache key, for the next backend.
        places : sequence of int
            The positions of the points that are varied.
        directions : sequence of numpy.ndarray
            One direction per varied point.
        along : mapping of int to numpy.ndarray
            Directions by position, for the points that have a gradient.
        device : Device
        """
        if key not in self._second:
            self._second[key] = self._difference(self._slope_along(along, device), places, directions)
        return self._second[key]

    def _slope_along(self, along: Mapping[int, Any], device: Device) -> Callable[[list[Any]], tuple[float, float]]:
        """Return the function that computes the derivative along directions by a backward pass, and the sum of its terms' sizes."""

        def slope(at: list[Any]) -> tuple[float, float]:
            leaves = [to_tensor(p, device).requires_grad_(j in along) for j, p in enumerate(at)]
            loss = outputs_of(self.problem.call(leaves, lambda leaf: to_tensor(self._place(leaf), device))).loss()
            if loss is None or not loss.requires_grad:
                return 0.0, 0.0
            passed = grad(loss, [leaves[j] for j in along], allow_unused=True)
            found = [(on_host(g), v) for g, v in zip(passed, along.values()) if g is not None]
            return sum(dot(g, v) for g, v in found), sum(float(np.sum(np.abs(g) * np.abs(v))) for g, v in found)

        return slope

    def second_error(
        self, fine: float, places: Sequence[int], directions: Sequence[Any], along: Mapping[int, Any], device: Device
    ) -> tuple[float, bool]:
        """Estimate the error of the result `fine` of `second`, as `estimate_error` does; return also whether there is a kink."""
        slope = self._slope_along(along, device)
        coarse = self._difference(slope, places, directions, 2.0)[0]
        error = abs(coarse - fine) if np.isfinite(coarse) else 0.0
        return error + 2 * self._rounding(slope, places, directions) / self.step, self._has_kink(slope, places, directions)

    def has_kink(self, places: Sequence[int], directions: Sequence[Any]) -> bool:
        """Return whether the one-sided differences along directions differ by the same for two steps, and so not by curvature."""
        return self._has_kink(self._loss, places, directions)

    def _has_kink(self, number: Callable[[list[Any]], tuple[float, float]], places: Sequence[int], directions: Sequence[Any]) -> bool:
        middle = number(list(self.points))[0]
        gaps, noise = [], 0.0
        for step in (self.step, 2 * self.step):
            (above, one), (below, other) = (number(self._shift_points(places, directions, h)) for h in (step, -step))
            gaps.append(abs((above - middle) - (middle - below)) / step)
            noise = max(noise, 80 * self.eps * max(one, other) / step)
        return bool(gaps[0] > noise and gaps[1] < 1.5 * gaps[0])


def reference_for(problem: Problem, points: list[Any], device: Device, default: Device) -> tuple[Reference | None, str]:
    """Return the first reference that works, or None and the reason: NumPy arrays, Tensors on the default device, on the checked device.

    Parameters
    ----------
    problem : Problem
    points : list of numpy.ndarray
        The points in the dtypes of the checked device.
    device, default : Device
    """
    reason = ""
    double = [to_double(p) for p in points]
    ways: list[tuple[list[Any], Device | None, Callable[[Any], Any]]] = [(double, None, to_double), (double, default, to_double)]
    if device != default:
        ways.append((points, device, lambda leaf: leaf))
    shape = None
    for given, where, place in ways:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about plain arrays do not concern the check
                found = Reference(problem, given, where, place)
        except (Exception, XpgradError) as exc:  # noqa: BLE001 (whatever a function raises, the next way is tried)
            reason = f"{type(exc).__name__}: {exc}"
            continue
        if found.values:
            return found, ""
        shape = "it returns nothing with floating numbers"
    return None, shape or reason
