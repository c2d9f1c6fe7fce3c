"""Give solutions of differential equations a history by forward sensitivities.

The derivatives of the state by the start, by the first time and by the Tensors of the right-hand side solve a linear equation of their own,
which is integrated together with the state, once, when a derivative is asked for. A gradient or a tangent is then a product with them. They
are differentiated as the solution of that joint equation, so that derivatives of every order and mode exist.
"""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from typing import Any

from xpgrad._modes import state
from xpgrad.autograd.function import Function
from xpgrad.linalg import matmul
from xpgrad.rules.manipulation import concat, moveaxis, reshape, stack
from xpgrad.scipy.integrate._adjoint import ONE_BY_ONE
from xpgrad.scipy.integrate._problem import IMPLICIT, MOST_STEPS, Problem
from xpgrad.scipy.integrate._sides import Sensitivities, Side

#: The largest number of variables of the joint equation for which sensitivities are chosen.
MOST_JOINT = 2048


class Run:
    """A call of a solver: the problem, its right-hand side and the outputs.

    Attributes
    ----------
    problem : Problem
        Used for its tolerances.
    side : Side
    times : sequence of float
    values : array, shape (T, n), or None
        The solution, if it is known.
    """

    def __init__(self, problem: Problem, side: Side, times: Any, values: Any = None) -> None:
        self.problem = problem.without_values()
        self.problem.failure = "raise"  # a value may be incomplete, but not its derivatives
        self.side, self.times, self.values = side, times, values

    def solve(self, start: Any, tensors: Any) -> Any:
        """Return the solution at the output times; `start` is the initial state, a Tensor of shape (n,)."""
        problem, side, times = self.problem, self.side, self.times
        rhs = side.plain_evaluator("field", tensors, overwrites=problem.method == "LSODA")  # SciPy's `odeint` copies it
        block = _blocks_of(side, tensors)
        y0 = _initial(problem, side, times[0], start, tensors)
        atol = self._tolerances(y0, tensors)
        if times[0] == times[-1]:
            return [y0] * len(times)
        if problem.method == "LSODA":
            size = side.block
            jacobian = {"Dfun": lambda t, z: _banded(block(t, z), len(z)), "ml": size - 1, "mu": size - 1}
            return problem.tabulate(rhs, times, y0, atol, mxstep=MOST_STEPS, **jacobian)
        sparse: Any = importlib.import_module("scipy.sparse") if problem.method in IMPLICIT else None

        def jacobian_of_all(t: float, z: Any) -> Any:
            return sparse.block_diag([sparse.csc_array(block(t, z))] * (len(z) // side.block), format="csc")

        jac = None if sparse is None else jacobian_of_all
        distinct = [t for i, t in enumerate(times) if not i or t != times[i - 1]]
        rows = iter(problem.solve(rhs, times[0], times[-1], y0, jac, t_eval=distinct, atol=atol).y.T)
        out: list[Any] = []
        for i, t in enumerate(times):
            out.append(out[-1] if i and t == times[i - 1] else next(rows))
        return out

    def _tolerances(self, y0: Any, tensors: Any) -> list[float]:
        """Return the absolute tolerance of each variable.

        That of a sensitivity is the state's, divided by the parameter if that is larger than 1: the parameter times the sensitivity is a
        change of the state.
        """
        given = self.problem.all_atol
        return _tolerances(self.side, given if isinstance(given, list) else [given] * self.side.block, y0, tensors, self.problem)


def _initial(problem: Problem, side: Side, time: float, start: Any, tensors: Any) -> Any:
    """Return the initial values of all variables as an array."""
    if not isinstance(side, Sensitivities) or isinstance(side.below, Sensitivities) or side.has_time:
        return problem.to_array(side.initial(problem.to_tensor(time), start, *tensors))
    n = side.block
    out = sys.modules["numpy"].zeros(side.size)
    out[:n] = problem.to_array(start)
    if side.has_start:
        out[n : n + n * n].reshape(n, n)[range(n), range(n)] = 1.0
    return out


def _tolerances(side: Side, given: list[float], y0: Any, tensors: Any, problem: Problem) -> list[float]:
    if not isinstance(side, Sensitivities):
        return given
    below = _tolerances(side.below, given, y0, tensors, problem)
    scales = [abs(float(v)) for v in y0[: side.block]] if side.has_start else []
    scales += [1.0] if side.has_time else []
    for x, wanted in zip(tensors, side.wanted):
        if wanted:
            scales += [abs(v) for v in problem.to_array(x).reshape(-1).tolist()]
    return [*below, *(tolerance / max(1.0, scale) if math.isfinite(scale) else tolerance for scale in scales for tolerance in below)]


def _blocks_of(side: Side, tensors: Any) -> Any:
    """Return the Jacobian of the state's equation as a function of a float and a joint state, compiled when it is first called."""
    while isinstance(side, Sensitivities):
        side = side.below
    made: list[Any] = []

    def block(t: float, z: Any) -> Any:
        if not made:
            made.append(side.plain_evaluator("jacobian", tensors))
        return made[0](t, z[: side.size])

    return block


def _banded(block: Any, size: int) -> Any:
    """Return the matrix of equal blocks along the diagonal as SciPy's `odeint` takes it: a row for each diagonal, the uppermost first."""
    n = len(block)
    out = sys.modules["numpy"].zeros((2 * n - 1, size))
    for i, j in itertools.product(range(n), range(n)):
        out[i - j + n - 1, j::n] = block[i][j]
    return out


def count_sensitivities(start: Any, tensors: Any, key: tuple[bool, bool, tuple[bool, ...]]) -> int:
    """Return the number of derivatives of each variable of the state: by the start, the first time and Tensors, as `key` says."""
    has_start, has_time, wanted = key
    return (start.shape[0] if has_start else 0) + has_time + sum(x.numel() for x, need in zip(tensors, wanted) if need)


def sensitive_flow(run: Run, start: Any, t: Any, tensors: Any) -> Any:
    """Return the solution at the output times with its history, shape (T, n), or (T, N) for a joint equation of N variables.

    Parameters
    ----------
    run : Run
    start : Tensor, shape (n,)
    t : Tensor, shape (T,), or None
        The output times with their history, if they have one.
    tensors : sequence of Tensor
        Those of the right-hand side.
    """
    return Flow.apply(run, start, t, *tensors)


class Flow(Function):
    """The solution as a function of the start, the times and the Tensors of the right-hand side."""

    @staticmethod
    def forward(run: Run, start: Any, t: Any, *tensors: Any) -> Any:
        return run.problem.to_tensor(run.solve(start, tensors) if run.values is None else run.values)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        run, start, t, *tensors = inputs
        ctx.run, ctx.has_t, ctx.found = run, t is not None, {}
        saved = (start, *([] if t is None else [t]), *tensors)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        _, needs_start, needs_t, *needs = ctx.needs_input_grad
        if g is None:
            return (None,) * len(ctx.needs_input_grad)
        start, t, tensors = _arguments(ctx)
        rows, slopes = _rows(ctx, start, t, tensors, (needs_start, needs_t, tuple(needs)))
        found = matmul(rows, reshape(g, (-1,)))
        at = start.shape[0] if needs_start else 0
        out: list[Any] = [None, found[:at] if needs_start else None, None]
        if needs_t:
            by_t = (g * slopes).sum(axis=1)
            out[2] = concat([by_t[:1] + found[at : at + 1], by_t[1:]])
            at += 1
        for x, need in zip(tensors, needs):
            size = x.numel() if need else 0
            out.append(reshape(found[at : at + size], x.shape).to(device=x.device).to(x.dtype) if need else None)
            at += size
        return tuple(out)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        _, by_start, by_t, *by = tangents
        start, t, tensors = _arguments(ctx)
        key = by_start is not None, by_t is not None, tuple([v is not None for v in by])
        rows, slopes = _rows(ctx, start, t, tensors, key)
        parts = [by_start, None if by_t is None else by_t[:1], *by]
        weights = concat([reshape(v, (-1,)).to(start.dtype).to(device=start.device) for v in parts if v is not None])
        out = reshape(matmul(weights, rows), (-1, ctx.run.side.size))
        return out if by_t is None else out + reshape(by_t, (-1, 1)) * slopes

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        raise NotImplementedError(ONE_BY_ONE)


def _arguments(ctx: Any) -> tuple[Any, Any, list[Any]]:
    """Return the start, the times or None, and the Tensors of a call."""
    start, *rest = ctx.saved_tensors
    return (start, rest[0], rest[1:]) if ctx.has_t else (start, None, rest)


def _rows(ctx: Any, start: Any, t: Any, tensors: list[Any], key: tuple[bool, bool, tuple[bool, ...]]) -> tuple[Any, Any]:
    """Return the derivatives of all outputs, with a row for each number, and those by their own times or None.

    Parameters
    ----------
    ctx
        That of a call.
    start, t, tensors
        The arguments of the call.
    key : tuple of (bool, bool, tuple of bool)
        Whether there are rows for the start, for the first time, and for each of the Tensors.

    Returns
    -------
    rows : Tensor, shape (m, T * n)
    slopes : Tensor, shape (T, n), or None
    """
    has_start, has_time, wanted = key
    again = state.carries_tangents() or (
        state.is_grad_enabled() and any(x.requires_grad for x in (start, *tensors, *([t] if has_time else [])))
    )
    if not again and key in ctx.found:
        return ctx.found[key]
    run: Run = ctx.run
    side, size = run.side, run.side.size
    count = count_sensitivities(start, tensors, key)
    joint = side.with_sensitivities(has_start, has_time, wanted, count)
    found = sensitive_flow(Run(run.problem, joint, run.times), start, t, tensors)
    rows = reshape(moveaxis(reshape(found[:, size:], (-1, count, size)), 1, 0), (count, -1))
    slopes = stack([side.field(t[i], found[i, :size], *tensors) for i in range(len(run.times))]) if has_time else None
    if not again:
        ctx.found[key] = rows, slopes
    return rows, slopes
