"""The public solvers of differential equations: SciPy integrates; sensitivities, an adjoint equation or recorded steps give derivatives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from xpgrad._backends.contexts import keep_context
from xpgrad._basics.arguments import shown
from xpgrad._basics.dtypes import int64
from xpgrad._modes import state
from xpgrad._tensor.tensor import Tensor
from xpgrad.func import jvp
from xpgrad.func._tree import tree_map
from xpgrad.rules.creation import ones_like
from xpgrad.rules.indexing import take
from xpgrad.rules.manipulation import concat, moveaxis, stack
from xpgrad.scipy._implicit import implicit
from xpgrad.scipy.integrate._problem import Failure, Problem
from xpgrad.scipy.integrate._steps import repeat_steps
from xpgrad.scipy.integrate._way import Way

Gradient = Literal["auto", "forward", "adjoint", "steps"]
#: The default tolerance of `scipy.integrate.odeint`.
_TIGHT = 1.49012e-8


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: tuple[Any, ...] = (), *, tfirst: bool = False, rtol: float | None = None,
    atol: Any = None, hmax: float = 0.0, h0: float = 0.0, mxstep: int = 0, method: str = "LSODA", gradient: Gradient = "auto",
    failure: Failure = "raise",
) -> Any:  # fmt: skip
    """Integrate a system of ordinary differential equations (`scipy.integrate.odeint`); the solution is differentiable.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)`` returns the derivative of the state, with the structure of the state; `t` is a 0-d Tensor. It may close over
        Tensors.
    y0 : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
        State at the first time, of real floating numbers. A list of numbers is a vector. Differentiable.
    t : Tensor or array, shape (T,)
        Times of the outputs, increasing or decreasing. Differentiable.
    args : tuple
        Further arguments of `func`.
    tfirst : bool
        Whether `func` takes the time first, as in `solve_ivp`.
    rtol, atol : float, optional
        Relative and absolute tolerance of each step. Default, as in SciPy: 1.49e-8. `atol` may have one value for each number of the state.
    hmax, h0 : float
        Largest and first step; 0 lets SciPy choose.
    mxstep : int
        Maximum number of steps between two outputs for ``method="LSODA"``; 0 lets SciPy choose.
    method : str
        "LSODA", or another method of `solve_ivp`.
    gradient : {"auto", "forward", "adjoint", "steps"}
        How to differentiate; see `solve_ivp`.
    failure : {"raise", "warn", "ignore"}
        What to do if SciPy does not reach the last time.

    Returns
    -------
    Tensor, shape (T, \\*y0.shape), or a tree of Tensors
        State at each time.

    Raises
    ------
    RuntimeError
        SciPy does not reach the last time and `failure` is "raise".
    TypeError
        An argument has a wrong type.
    ValueError
        The times are not monotonic, `func` returns another structure, or a choice is invalid or impossible for `func` or `method`.
    NotImplementedError
        In forward mode, the steps would be differentiated, but `method` is not explicit.
    ImportError
        SciPy is not installed.

    See Also
    --------
    solve_ivp : SciPy's newer interface, with events and dense output.

    Notes
    -----
    See `solve_ivp` on the error of derivatives, and on when `func` is compiled.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.integrate import odeint
    >>> rate = xp.tensor(0.5, requires_grad=True)
    >>> y = odeint(lambda y, t: -rate * y, xp.tensor(1.0), xp.asarray([0.0, 1.0, 2.0]))
    >>> y[-1].backward()  # exp(-2 rate), whose derivative is -2 exp(-2 rate)
    >>> round(rate.grad.item(), 5)
    -0.73576
    """
    limits = {"max_step": float(hmax)} if hmax else {}
    tolerances = _TIGHT if rtol is None else rtol, _TIGHT if atol is None else atol
    problem = Problem("odeint", func, y0, args, method, tolerances, failure, limits, time_first=tfirst)
    times, t = _times(problem, "t", t)
    way = Way(problem, gradient, times[0], t)
    y = problem.to_array(problem.start)
    first = {"first_step": float(h0)} if h0 else {}
    if times[0] == times[-1] and not (way.through_steps and state.carries_tangents()):  # SciPy's `odeint` fails, and there are no steps
        out = way.attach(times, t, [y] * len(times))
    elif way.through_steps:
        steps = problem.solve(problem.fast_rhs, times[0], times[-1], y, **first).t if times[0] != times[-1] else times[:1]
        out = repeat_steps(problem, problem.start, steps, times, t)
    elif method == "LSODA":
        ys = way.remember(
            (times, h0, mxstep), lambda: problem.tabulate(way.rhs_of_odeint(), times, y, problem.all_atol, h0=h0, mxstep=mxstep)
        )
        out = way.attach(times, t, ys)
    else:
        found = problem.solve(problem.fast_rhs, times[0], times[-1], y, problem.jacobian, t_eval=_distinct(times), **first)
        ys = [row for row, count in zip(found.y.T, _repeats(times)) for _ in range(count)]
        out = way.attach(times[: len(ys)], None if t is None else t[: len(ys)], ys)
    return problem.tree(out, (out.shape[0],))


def solve_ivp(
    fun: Callable[..., Any], t_span: Any, y0: Any, method: str = "RK45", t_eval: Any = None, dense_output: bool = False, events: Any = None,
    args: tuple[Any, ...] = (), *, rtol: float = 1e-3, atol: Any = 1e-6, first_step: float | None = None, max_step: float | None = None,
    gradient: Gradient = "auto", failure: Failure = "raise",
) -> Any:  # fmt: skip
    """Solve an initial value problem (`scipy.integrate.solve_ivp`); the solution is differentiable.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` returns the derivative of the state, with the structure of the state; `t` is a 0-d Tensor. It may close over
        Tensors.
    t_span : pair of numbers or 0-d Tensors
        Start and end of the integration; the end may be before the start. Differentiable.
    y0 : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
        Initial state, of real floating numbers. A list of numbers is a vector. Differentiable.
    method : {"RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"}
        SciPy's method. "Radau" and "BDF" use xpgrad's Jacobian.
    t_eval : Tensor or array, shape (T,), optional
        Times of the outputs, in the direction of `t_span`. Default: the ends of the steps. Differentiable.
    dense_output : bool
        Whether to return `sol`, the solution as a function of time.
    events : callable or sequence of callables, optional
        ``event(t, y, *args)`` returns a number whose zeros SciPy finds; `t` and `y` are Tensors. Its attributes `terminal` and `direction`
        are SciPy's. The times and states of events are differentiable.
    args : tuple
        Further arguments of `fun` and `events`.
    rtol, atol : float
        Relative and absolute tolerance of each step, also of the adjoint equation. `atol` may have one value for each number of the state.
    first_step, max_step : float, optional
        First and largest step. Default: SciPy chooses.
    gradient : {"auto", "forward", "adjoint", "steps"}
        "forward" integrates the state once more, together with its sensitivities: its derivatives by each number of the start, of `args`
        and of what `fun` closes over. "adjoint" integrates the adjoint equation backwards with the same method and tolerances, and saves
        only the outputs. "steps" differentiates the steps that SciPy chose, with their lengths as constants: the derivatives are those of
        the computed solution, and memory grows with the number of steps. It requires "RK45", "RK23" or "DOP853". "auto" is "forward" if
        fewer numbers need derivatives than `y` has at all outputs, `fun` can be compiled, and there are at most 2048 sensitivities and
        variables; else it is "adjoint". In forward mode it is "forward", or "steps" if an explicit method's `fun` cannot be compiled.
    failure : {"raise", "warn", "ignore"}
        What to do if SciPy does not reach the end.

    Returns
    -------
    scipy.integrate._ivp.ivp.OdeResult
        SciPy's result, in which `y` is a Tensor of shape (\\*y0.shape, T) or a tree of such Tensors, and `sol` is a `DenseSolution` or
        None. `t_events` is a list with a Tensor of shape (k,) for each event function, and `y_events` a list of Tensors of shape
        (k, \\*y0.shape) or trees; both are None without events.

    Raises
    ------
    RuntimeError
        SciPy does not reach the end and `failure` is "raise".
    TypeError
        An argument has a wrong type.
    ValueError
        `fun` returns another structure, times are not monotonic, or a choice is invalid or impossible for `fun` or `method`.
    NotImplementedError
        In forward mode, the steps would be differentiated, but `method` is not explicit.
    ImportError
        SciPy is not installed.

    Notes
    -----
    The error of sensitivities is controlled like that of the state, in the same steps: `rtol` is relative to each sensitivity, and `atol`
    is divided by the number by which it differentiates if that is larger than 1, since the two multiplied are a change of the state.
    Jacobians are products with the sensitivities, and of the same accuracy. The adjoint is solved with `rtol`, and with the smaller of
    `rtol` and `atol` relative to the largest cotangent as absolute tolerance.

    `fun` is compiled (see `xpgrad.compile`) when derivatives are asked for, or at its second use, and is then no longer called. What is
    compiled serves all functions with the same code and equal closures, globals and arguments, apart from Tensors, which may differ: all
    of these are compared at each call. A function is called as it is if it branches on values, writes to what it closes over, draws random
    numbers, or reaches objects of other kinds than functions, modules of NumPy, SciPy, xpgrad and Python, numbers, strings, small arrays,
    containers, and instances of classes written in Python without slots.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.integrate import solve_ivp
    >>> rate = xp.tensor(0.5, requires_grad=True)
    >>> found = solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-9, atol=1e-9)
    >>> found.y[0, -1].backward()  # exp(-2 rate), whose derivative is -2 exp(-2 rate)
    >>> round(rate.grad.item(), 5)
    -0.73576
    """
    limits = {} if max_step is None else {"max_step": float(max_step)}
    problem = Problem("solve_ivp", fun, y0, args, method, (rtol, atol), failure, limits)
    if not isinstance(t_span, (Sequence, Tensor)) or len(t_span) != 2:
        msg = f"solve_ivp: `t_span` must be a pair, where to begin and where to end, but got {shown(t_span)}"
        raise ValueError(msg)
    ends, ends_t = _times(problem, "t_span", t_span)
    wanted, wanted_t = (None, None) if t_eval is None else _times(problem, "t_eval", t_eval)
    way = Way(problem, gradient, ends[0], ends_t, wanted_t)
    y = problem.to_array(problem.start)
    first = {} if first_step is None else {"first_step": float(first_step)}
    found = problem.solve(
        problem.fast_rhs, ends[0], ends[1], y, problem.jacobian, t_eval=wanted, dense_output=dense_output or way.through_steps,
        events=_events(problem, events), **first,
    )  # fmt: skip
    if not len(found.t):  # no output is within the span, or before a terminal event; SciPy's result has lists
        found.t, found.y = problem.to_array(problem.to_tensor([])), problem.to_array(problem.to_tensor([]).reshape(len(y), 0))
    # A terminal event is within the last step, whose interpolation is the solution there.
    steps = [*found.sol.ts[:-1], found.sol.interpolants[-1].t] if way.through_steps else None
    solution = _Solution(way, ends[:1], None if ends_t is None else ends_t[:1], steps)
    # The last output is at the end of the span or at the event that ended the integration, and so depends on it.
    last: Any = ends_t[1:] if ends_t is not None and wanted is None and found.t[-1] == ends[1] else None
    if found.t_events is not None:
        functions = [keep_context(event) for event in ([events] if callable(events) else events)]
        times = found.t_events
        found.t_events, found.y_events = solution.events(functions, found.t_events, found.y_events)
        if found.status == 1 and wanted is None:
            final = [len(some) > 0 and some[-1] == found.t[-1] for some in times]
            last = found.t_events[final.index(True)][-1:]
    if wanted is None and last is not None:
        wanted_t = concat([problem.to_tensor(found.t[:-1]), last])
    elif wanted_t is not None:
        wanted_t = wanted_t[: len(found.t)]
    out = solution.states_at(found.t, wanted_t, found.y.T)
    mode = state.current()
    if mode is not None and mode.numpy is not None:  # where the end of the span, or the event that ended the integration, is read from `t`
        found.t = problem.to_tensor(found.t) if wanted_t is None else wanted_t
    found.y = tree_map(lambda v: moveaxis(v, 0, -1), problem.tree(out, (out.shape[0],)))
    found.sol = DenseSolution(solution, found.sol) if dense_output else None
    return found


class _Solution:
    """A solution that can be evaluated with its history at any output times."""

    def __init__(self, way: Way, begin: Any, begin_t: Any, steps: Any) -> None:
        self.way, self.problem = way, way.problem
        self.begin, self.begin_t, self.steps = begin, begin_t, steps

    def states_at(self, times: Any, t: Any, ys: Any) -> Any:
        """Return SciPy's states `ys` at the output times with their history; shape (T, n)."""
        problem = self.problem
        all_times = [*self.begin, *times]
        if t is not None or self.begin_t is not None:
            parts = [(self.begin_t, self.begin), (t, times)]
            t = concat([problem.to_tensor(plain) if kept is None else kept for kept, plain in parts])
        if self.steps is not None:
            return repeat_steps(problem, problem.start, self.steps, all_times, t)[1:]
        return self.way.attach(all_times, t, [problem.to_array(problem.start), *ys])[1:]

    def events(self, functions: Sequence[Callable[..., Any]], times: Any, ys: Any) -> tuple[list[Any], list[Any]]:
        """Return the times and states of events with their history.

        Where an event function is zero, its time is an implicit function of all that the solution depends on.

        Parameters
        ----------
        functions : sequence of callable
        times, ys : list of ndarray, shapes (k,) and (k, n), one pair for each function
            SciPy's.

        Returns
        -------
        times, states : list of Tensor, shape (k,), and of trees of Tensors, shapes (k, *y0.shape)
        """
        problem = self.problem
        falling = any(float(t) < self.begin[0] for some in times for t in some)
        found = sorted(
            ((float(t), i, k) for i, some in enumerate(times) for k, t in enumerate(some)), key=lambda entry: entry[0], reverse=falling
        )
        if not found:
            empty = problem.to_tensor([])
            return [empty] * len(functions), [problem.tree(empty.reshape(0, problem.start.shape[0]), (0,))] * len(functions)
        when, states = [t for t, _, _ in found], [ys[i][k] for _, i, k in found]

        def residual(t: Any) -> Any:
            rows = self.states_at(when, t, states)
            return stack([self._event_value(functions[i], t[j], rows[j]) for j, (_, i, _) in enumerate(found)])

        def divide_by_rates(product: Any, right: Any) -> Any:
            return right / self._event_rates([functions[i] for _, i, _ in found], when, states)

        t = implicit(residual, problem.to_tensor(when), divide_by_rates)
        rows = self.states_at(when, t, states)
        out_t, out_y = [], []
        for i in range(len(functions)):
            own = [j for j, entry in enumerate(found) if entry[1] == i]
            mine = problem.to_tensor(own).to(int64)
            out_t.append(take(t, mine, axis=0))
            out_y.append(problem.tree(take(rows, mine, axis=0), (len(own),)))
        return out_t, out_y

    def _event_value(self, function: Any, t: Any, y: Any) -> Any:
        """Call an event function with Tensors, and return its value as a 0-d Tensor."""
        problem = self.problem
        value = function(t, problem.tree(y), *problem.args)
        return value.reshape(()).to(problem.dtype) if isinstance(value, Tensor) else problem.to_tensor(float(value))

    def _event_rates(self, functions: Sequence[Any], times: Any, ys: Any) -> Any:
        """Return the derivatives of event functions along the solution, as a host vector; raise RuntimeError if one is zero."""
        problem, rates = self.problem, []
        for function, time, y in zip(functions, times, ys):
            point = problem.to_tensor(time), problem.to_tensor(y)
            along = ones_like(point[0]), problem.field(*point).detach()
            rates.append(float(jvp(lambda t, v, f=function: self._event_value(f, t, v), point, along)[1].detach()))
            if not rates[-1]:
                msg = (
                    f"{problem.name}: the event at t = {time} is not differentiable: the derivative of its function along the solution is "
                    "zero there, because the function touches zero without crossing it, or jumps"
                )
                raise RuntimeError(msg)
        return problem.to_array(problem.to_tensor(rates))


class DenseSolution:
    """A differentiable solution as a function of time, made by `solve_ivp` with ``dense_output=True``.

    Parameters
    ----------
    solution : object
        The internal solution of `solve_ivp`, which gives the states at any times their history.

    Attributes
    ----------
    t_min, t_max : float
        Ends of the interval on which it was computed.
    interpolant : scipy.integrate.OdeSolution
        SciPy's interpolant of NumPy arrays.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import integrate
    >>> rate = xp.tensor(-1.0, requires_grad=True)
    >>> found = integrate.solve_ivp(lambda t, y: rate * y, (0.0, 2.0), xp.ones(1), dense_output=True, rtol=1e-8, atol=1e-8)
    >>> isinstance(found.sol, integrate.DenseSolution), found.sol.t_min, found.sol.t_max
    (True, 0.0, 2.0)
    >>> y = found.sol(1.0)
    >>> y[0].backward()
    >>> round(y.item(), 4), round(rate.grad.item(), 4)  # exp(rate * t), and t * exp(rate * t)
    (0.3679, 0.3679)
    """

    def __init__(self, solution: Any, interpolant: Any) -> None:
        self._solution: Any = solution
        self.interpolant: Any = interpolant
        self.t_min: float = float(interpolant.t_min)
        self.t_max: float = float(interpolant.t_max)

    def __call__(self, t: Any) -> Any:
        """Return the state at some times.

        Parameters
        ----------
        t : Tensor, array or number, shape () or (T,)
            Times between `t_min` and `t_max`, in any order. Differentiable.

        Returns
        -------
        Tensor, shape y0.shape or (\\*y0.shape, T), or a tree of Tensors
            State at each time.

        Raises
        ------
        ValueError
            A time is not between `t_min` and `t_max`.
        """
        problem = self._solution.problem
        single = not getattr(t, "ndim", len(t) if isinstance(t, (list, tuple)) else 0)
        given: Any = t
        if single:
            given = given.reshape(1) if isinstance(t, Tensor) else [float(given)]
        times, t = _times(problem, "t", given, ordered=False)
        if not all(self.t_min <= time <= self.t_max for time in times):
            msg = f"{problem.name}: the solution is known between {self.t_min} and {self.t_max}, but got times {shown(times)}"
            raise ValueError(msg)
        falling = bool(self.interpolant.ts[-1] < self.interpolant.ts[0])
        order = sorted(range(len(times)), key=lambda i: times[i], reverse=falling)
        places = sorted(range(len(times)), key=lambda i: order[i])
        times = [times[i] for i in order]
        t = None if t is None else stack([t[i] for i in order])
        out = self._solution.states_at(times, t, self.interpolant(times).T)
        tree = problem.tree(stack([out[i] for i in places]), (len(places),))
        return tree_map(lambda v: v[0] if single else moveaxis(v, 0, -1), tree)


# -- arguments -----------------------------------------------------------------------------------------------------------------


def _times(problem: Problem, argument: str, t: Any, *, ordered: bool = True) -> tuple[Any, Any]:
    """Return the times `t` as floats, and as a Tensor if they have a history or tangents, else None.

    They are monotonic unless `ordered` is False. `argument` is their name, for messages.

    Raises
    ------
    TypeError, ValueError
        The times are not a vector of real numbers, or are not monotonic.
    """
    kept = None
    if isinstance(t, (list, tuple)) and any(isinstance(v, Tensor) for v in t):
        t = stack([v if isinstance(v, Tensor) else problem.to_tensor(v) for v in t])
    if isinstance(t, Tensor):
        kept = t.to(dtype=problem.dtype, device=problem.device) if t.requires_grad or state.carries_tangents() else None
        t = problem.to_array(t)
    try:
        times = [float(v) for v in t]
    except (TypeError, ValueError):
        times = []
    if not times or not all(map(math.isfinite, times)):
        msg = f"{problem.name}: `{argument}` must be a vector of finite times, but got {shown(t)}"
        raise ValueError(msg)
    if ordered and not any(all(a <= b for a, b in itertools.pairwise(way)) for way in (times, times[::-1])):
        msg = f"{problem.name}: `{argument}` must rise or fall, but got {shown(times)}"
        raise ValueError(msg)
    return times, kept


def _distinct(times: Any) -> Any:
    """Return the distinct times in order."""
    return [t for i, t in enumerate(times) if not i or t != times[i - 1]]


def _repeats(times: Any) -> list[int]:
    """Return how often each distinct time occurs."""
    counts: list[int] = []
    for i, t in enumerate(times):
        if i and t == times[i - 1]:
            counts[-1] += 1
        else:
            counts.append(1)
    return counts


def _events(problem: Problem, events: Any) -> Any:
    """Wrap event functions for SciPy, which calls them with NumPy arrays; None stays None."""
    if events is None:
        return None
    if callable(events):
        return _event(problem, events)
    return [_event(problem, event) for event in events]


def _event(problem: Problem, event: Any) -> Any:
    """Wrap one event function."""

    def of_arrays(t: float, y: Any) -> float:
        value = event(problem.to_tensor(t), problem.tree(problem.to_tensor(y)), *problem.args)
        return float(value.detach() if isinstance(value, Tensor) else value)  # its derivatives are taken where it is zero

    for attribute in ("terminal", "direction"):
        if hasattr(event, attribute):
            setattr(of_arrays, attribute, getattr(event, attribute))
    return of_arrays
