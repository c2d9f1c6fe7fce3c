"""Choose how a solution is differentiated: by forward sensitivities, by the adjoint equation, or through the solver's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import shown
from xpgrad._modes import state
from xpgrad.scipy.integrate._adjoint import flow
from xpgrad.scipy.integrate._problem import EXPLICIT, Problem
from xpgrad.scipy.integrate._sensitivities import MOST_JOINT, Run, count_sensitivities, sensitive_flow
from xpgrad.scipy.integrate._sides import find_side

CHOICES = ("auto", "forward", "adjoint", "steps")
#: The most numbers of which the last solution is remembered with the arguments.
_MOST_REMEMBERED = 65_536


class Way:
    """How the solution of a problem is computed and differentiated.

    Parameters
    ----------
    problem : Problem
        Its right side is compiled here.
    gradient : {"auto", "forward", "adjoint", "steps"}
        The choice of the user.
    time : float
        Where the solution begins.
    *times : Tensor of shape (T,), or None
        Times with a history or tangents; None for those without.

    Attributes
    ----------
    through_steps : bool
        Whether the solution is recorded through its steps.

    Raises
    ------
    ValueError, NotImplementedError
        The choice is invalid, or impossible for the method or the function.
    """

    def __init__(self, problem: Problem, gradient: Any, time: float, *times: Any) -> None:
        self.problem, self.gradient = problem, gradient
        self.through_steps = False
        self.side: Any = None
        self.tensors: list[Any] = []
        if gradient not in CHOICES:
            msg = f"{problem.name}: `gradient` must be one of {', '.join(map(repr, CHOICES))}, but got {shown(gradient)}"
            raise ValueError(msg)
        explicit = ", ".join(map(repr, EXPLICIT))
        if gradient == "steps":
            if problem.method not in EXPLICIT:
                what = "gradient='steps' needs a method whose steps are repeated"
                msg = f"{problem.name}: {what}: {explicit}; got method={problem.method!r}"
                raise ValueError(msg)
            self.through_steps = True
            return
        found = find_side(problem)
        if found is not None:
            self.side, self.tensors = found
            self._compile(*times)
        if gradient == "forward" and self.side is None:
            msg = (
                f"{problem.name}: gradient='forward' needs a function whose Tensors can be found: give them as `args`, or let a plain "
                "function close over them, instead of keeping them in an object; or take 'adjoint'"
            )
            raise ValueError(msg)
        steps = (
            self.side is None or gradient == "adjoint" or (gradient == "auto" and problem.method in EXPLICIT and problem.compiled is None)
        )
        if problem.compiled is None and state.is_grad_enabled():
            problem.keep_samples()
        if not steps or not state.carries_tangents():
            return
        known = self.tensors if self.side is not None else [problem.field(problem.to_tensor(time), problem.start)]
        problem.watches = self.side is None
        if any(x._has_tangent() for x in (problem.start, *times, *known) if x is not None):
            if problem.method not in EXPLICIT:
                why = "with gradient='adjoint'" if gradient == "adjoint" else "of a function that keeps Tensors in an object"
                msg = f"{problem.name}: forward mode goes through the steps {why}, which needs method={explicit}, not {problem.method!r}"
                raise NotImplementedError(msg)
            self.through_steps, problem.watches = True, False

    def _compile(self, *times: Any) -> None:
        """Compile the right side if it has been called before or is to be differentiated; discard it if it cannot be."""
        side, problem = self.side, self.problem
        differentiated = any(_is_differentiated(x) for x in (problem.start, *times, *self.tensors) if x is not None)
        if not (differentiated or side.solves):
            side.solves += 1
            return
        problem.compiled = _call_plainly(side.evaluator, "field", self.tensors)
        if side.writes:
            self.side, problem.compiled = None, None
            return
        side.solves += 1
        if problem.compiled is not None:
            uses = side.uses(self.tensors)
            self.tensors = [x if used else x.detach() for x, used in zip(self.tensors, uses)]
            problem.compiled_jacobian = lambda: _call_plainly(side.evaluator, "jacobian", self.tensors)

    def rhs_of_odeint(self) -> Callable[[float, Any], Any]:
        """Return the right side for SciPy's `odeint`, which copies what it returns."""
        if self.problem.compiled is None:
            return self.problem.rhs
        found: Callable[[float, Any], Any] = self.side.evaluator("field", self.tensors, overwrites=True)
        return found

    def remember(self, key: Any, solve: Callable[[], Any]) -> Any:
        """Return the last solution if it was that of the same problem, else a new one.

        A residual is often evaluated first alone and then with its Jacobian.
        """
        problem, side = self.problem, self.side
        inputs = (problem.start, *self.tensors)
        if problem.compiled is None or sum(x.numel() for x in inputs) > _MOST_REMEMBERED:
            return solve()
        values = tuple([(x.shape, x.dtype, problem.to_array(x).tobytes()) for x in inputs])
        full = (repr(key), values, problem.rtol, repr(problem.all_atol), repr(problem.limits), problem.failure)
        last = side.last
        if last is None or last[0] != full:
            last = side.last = full, solve()
        return last[1]

    def attach(self, times: Any, t: Any, ys: Any) -> Any:
        """Return the solution `ys` at the output times with its history; shape (T, n)."""
        problem = self.problem
        inputs = (problem.start, *self.tensors)
        if self.side is None or self.gradient == "adjoint":
            return flow(problem, problem.start, times, t, ys)
        if problem.compiled is not None and t is None and not any(map(_is_differentiated, inputs)):
            return problem.to_tensor(ys)
        if any(x._has_tangent() for x in (*inputs, *([] if t is None else [t]))) or self._has_sensitivities(times, t, ys):
            return sensitive_flow(Run(problem, self.side, times, ys), problem.start, t, self.tensors)
        return flow(problem, problem.start, times, t, ys)

    def _has_sensitivities(self, times: Any, t: Any, ys: Any) -> bool:
        """Return whether a gradient is computed from sensitivities.

        It is by choice, or if fewer numbers need derivatives than there are outputs, and the joint equation is compiled and not too large.

        Raises
        ------
        RuntimeError
            Sensitivities are asked for, but are not the derivatives of reverse mode.
        """
        problem, n = self.problem, self.problem.start.shape[0]
        key = _is_differentiated(problem.start), t is not None, tuple([_is_differentiated(x) for x in self.tensors])
        count = count_sensitivities(problem.start, self.tensors, key)
        asked = self.gradient == "forward"
        if not count or (not asked and (problem.compiled is None or count >= len(times) * n or n * (1 + count) > MOST_JOINT)):
            return False
        joint = self.side.with_sensitivities(*key, count)
        compiled = _call_plainly(joint.evaluator, "field", self.tensors)
        if not asked:
            try:
                return compiled is not None and _call_plainly(joint.agrees, times[-1], ys[-1], self.tensors)
            except Exception:  # noqa: BLE001 (a function without reverse mode: the adjoint says so when it is asked for)
                return False
        if not _call_plainly(joint.agrees, times[-1], ys[-1], self.tensors):
            msg = (
                f"{problem.name}: gradient='forward' needs a function with the same derivatives in forward and in reverse mode, but one of "
                "them is cut here, e.g. by `no_grad`, `detach` or a rule of its own; take 'adjoint'"
            )
            raise RuntimeError(msg)
        return True


def _is_differentiated(x: Any) -> bool:
    """Return whether a Tensor has a history that is recorded, or a tangent."""
    return (x._node is not None and state.is_grad_enabled()) or x._has_tangent()


@state.restoring
def _call_plainly(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function without recording, and outside of forward mode."""
    state.put(state.mode_with(recording=False, levels=()))
    return function(*args)
