"""Explicit Runge-Kutta methods in Tensors: SciPy chooses the steps, and the solution is recorded through them.

The methods are RK45 and DOP853, of Dormand and Prince, and RK23, of Bogacki and Shampine, with SciPy's coefficients and interpolation.
"""

from __future__ import annotations

from typing import Any

from xpgrad.rules.manipulation import stack
from xpgrad.scipy.integrate._problem import Problem


def repeat_steps(problem: Problem, start: Any, steps: Any, times: Any, t: Any) -> Any:
    """Return the solution at some times, recorded through the steps.

    Parameters
    ----------
    problem : Problem
        With an explicit method.
    start : Tensor, shape (n,)
    steps : sequence of float
        Where the steps of the solver began, and the last ended.
    times : sequence of float
        Outputs, from the first step's beginning on; rising or falling.
    t : Tensor, shape (T,), or None
        The same with their history, where they have one.

    Returns
    -------
    Tensor, shape (T, n)
    """
    method = getattr(problem.integrate, problem.method)
    forwards = len(steps) < 2 or steps[-1] >= steps[0]
    ends = {} if t is None else {0: t[0]}
    if t is not None and times[-1] == steps[-1]:
        ends[len(steps) - 1] = t[-1]
    count, last = sum(time == steps[0] for time in times), len(times) - 1
    y, slope, found = start, None, [start] * count
    if t is not None and count > 1:  # an output at the start is the end of a step without length, which moves with its time
        slope = problem.field(t[0], start)
        found[1:] = [_Step(problem, method, t[0], t[i], start, slope).y for i in range(1, count)]
    for k in range(len(steps) - 1):
        begin, end = ends.get(k, problem.to_tensor(steps[k])), ends.get(k + 1, problem.to_tensor(steps[k + 1]))
        step = _Step(problem, method, begin, end, y, problem.field(begin, y) if slope is None else slope)
        while len(found) <= last and (times[len(found)] <= steps[k + 1] if forwards else times[len(found)] >= steps[k + 1]):
            i = len(found)
            at_end = times[i] == steps[k + 1] and (i == last or t is None)
            found.append(step.y if at_end else step.interpolate(problem.to_tensor(times[i]) if t is None else t[i]))
        y, slope = step.y, step.stages[-1]
    return stack(found)


class _Step:
    """One step of a Runge-Kutta method: the state at its end, and the stages for interpolation.

    Attributes
    ----------
    y : Tensor, shape (n,)
        The state at its end.
    stages : list of Tensor
        The slopes; the last is that of the end.
    """

    def __init__(self, problem: Problem, method: Any, begin: Any, end: Any, y: Any, slope: Any) -> None:
        self.problem, self.method, self.begin, self.before = problem, method, begin, y
        self.h = end - begin
        self.stages = [slope]
        for row, c in zip(method.A[1:], method.C[1:]):
            self.stages.append(problem.field(begin + self.h * float(c), self._advance(row[: len(self.stages)])))
        self.y = self._advance(method.B)
        self.stages.append(problem.field(end, self.y))
        self.shape: Any = None

    def _advance(self, weights: Any) -> Any:
        """Return the state after a weighted sum of the first stages."""
        return self.before + self.h * self._sum(weights)

    def _sum(self, weights: Any) -> Any:
        used = [(s, float(w)) for s, w in zip(self.stages, weights) if w]
        if len(used) == 1:
            return used[0][0] * used[0][1]
        return self.problem.to_tensor([w for _, w in used]) @ stack([s for s, _ in used])

    def interpolate(self, time: Any) -> Any:
        """Return the state at a time within this step."""
        x = (time - self.begin) / self.h
        if not hasattr(self.method, "D"):  # a polynomial for each stage
            columns = self.method.P.T
            total = self._sum(columns[-1])
            for column in columns[-2::-1]:
                total = total * x + self._sum(column)
            return self.before + self.h * x * total
        if self.shape is None:
            self.shape = self._dop853_coefficients()
        total = self.shape[-1] * x
        for k, part in enumerate(self.shape[-2::-1]):
            total = (total + part) * (x if k % 2 else 1.0 - x)
        return self.before + total

    def _dop853_coefficients(self) -> list[Any]:
        """Return the coefficients of the interpolation of order 7, with three more stages (Hairer, Norsett and Wanner 1993, II.6)."""
        method, first, end_slope = self.method, self.stages[0], self.stages[-1]
        stages = list(self.stages)
        for row, c in zip(method.A_EXTRA, method.C_EXTRA):
            self.stages.append(self.problem.field(self.begin + self.h * float(c), self._advance(row[: len(self.stages)])))
        change = self.y - self.before
        parts = [change, self.h * first - change, 2.0 * change - self.h * (end_slope + first)]
        parts += [self.h * self._sum(row) for row in method.D]
        self.stages = stages
        return parts
