"""`xpgrad.audit`: run the checks one after the other, and collect their findings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._audit.accuracy import digits_lost, directions_disagree, epsilon, unseen_writes, wrong_gradient
from xpgrad._audit.cost import Cost, costs
from xpgrad._audit.findings import Finding
from xpgrad._audit.kinks import at_kinks
from xpgrad._audit.nonfinite import Pulled, Watch, not_finite
from xpgrad._audit.paths import broken_paths, directions, entries, slope, unchecked_breaks
from xpgrad._audit.ranges import dependence, far_ranges
from xpgrad._audit.report import Audit
from xpgrad._audit.running import Outcome, Problem, host_of
from xpgrad._basics.arguments import check_callable, shown
from xpgrad._basics.differences import Slope
from xpgrad._tensor.computing import compute

#: The parts of an audit.
CHECKS = ("paths", "kinks", "nonfinite", "accuracy", "ranges", "cost")


def audit(
    f: Callable[..., Any], /, *args: Any, argnums: int | tuple[int, ...] | None = None, kwargs: Mapping[str, Any] | None = None,
    checks: Iterable[str] = CHECKS, seed: int = 0,
) -> Audit:  # fmt: skip
    """Audit a function: run it forward and backward, and report where gradients are lost, wrong, NaN, or expensive.

    Lost gradients are found by experiment: the function is run again at nearby arguments, with and without freezing the values that left
    the graph. It runs about ten times per audited input, so pass small but realistic arguments.

    Parameters
    ----------
    f : callable
        A function that returns a floating-point or complex Tensor of any shape, or a tree of them. For several numbers, the gradient is
        that of a sum with random weights.
    *args : object
        Its arguments: Tensors, arrays (which become Tensors), trees of these, or other objects. They are not changed.
    argnums : int or tuple of int, optional
        The arguments with respect to which to differentiate. Default: all with floating-point or complex Tensors or arrays; all floats if
        there are none.
    kwargs : mapping, optional
        Keyword arguments of `f`, which are not audited.
    checks : iterable of str
        Any of ``"paths"`` (values that leave the graph), ``"kinks"`` (points without a derivative), ``"nonfinite"``, ``"accuracy"``
        (gradients against differences, reverse against forward mode, single against double precision), ``"ranges"`` (vanishing and
        exploding gradients), ``"cost"`` (memory). Default: all.
    seed : int
        The seed of random directions and weights.

    Returns
    -------
    Audit
        It prints as a report. ``audit.findings`` has the findings, ``audit.save("report.html")`` writes a page.

    Raises
    ------
    TypeError
        `f` is not callable, or no argument is differentiable.
    ValueError
        A check or an argument does not exist.

    Notes
    -----
    Errors of `f`, including exceptions, are findings. An audit is part of the context, like a mode.

    Examples
    --------
    >>> import xpgrad as xp
    >>> report = xp.audit(lambda x: xp.sum(x) * float(x[0]), xp.asarray([1.0, 2.0]))
    >>> report.ok, [finding.kind for finding in report.findings]
    (False, ['left-as-number'])
    """
    check_callable(f, "audit", "f")
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(name, str) for name in kwargs)):
        msg = f"audit: `kwargs` must be a dict of keyword arguments, but got {shown(kwargs)}"
        raise TypeError(msg)
    wanted = _check_names(checks)
    problem = Problem(f, args, kwargs, _places(args, argnums), _seed(seed))
    with warnings.catch_warnings():  # it runs many times, at points that the caller did not choose
        warnings.simplefilter("ignore")
        return _Run(problem, wanted).audit()


def _check_names(checks: Iterable[str]) -> frozenset[str]:
    """Return the names of the checks to run; raise an error for a name that does not exist."""
    if not isinstance(checks, (tuple, list, set, frozenset)):
        msg = f"audit: `checks` takes several names, in a tuple, list or set, but got {shown(checks)}; write e.g. `checks=('paths',)`"
        raise TypeError(msg)
    wanted = tuple(checks)
    for name in wanted:
        if not isinstance(name, str) or name not in CHECKS:
            msg = f"audit: `checks` has names of checks, and there is no check {shown(name)}; they are {', '.join(CHECKS)}"
            raise ValueError(msg)
    return frozenset(wanted)


def _places(args: tuple[Any, ...], argnums: Any) -> tuple[int, ...] | None:
    """Return `argnums` as nonnegative positions; None, for the default, stays None. Raise an error if it does not fit the arguments."""
    if argnums is None:
        return None
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    for a in places:
        if isinstance(a, bool) or not isinstance(a, int):
            msg = f"audit: `argnums` must be an int or a tuple of ints, but got {argnums!r:.60}"
            raise TypeError(msg)
        if not -len(args) <= a < len(args):
            msg = f"audit: `argnums` names argument {a}, but there are {len(args)}"
            raise ValueError(msg)
    return tuple(a % len(args) for a in places)


def _seed(seed: Any) -> int:
    """Return the seed; raise TypeError if it is not a nonnegative int."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        msg = f"audit: `seed` must be an int, 0 or more, but got {shown(seed)}"
        raise TypeError(msg)
    return seed


class _Run:
    """One audit, from the first run of the function to the report."""

    def __init__(self, problem: Problem, checks: frozenset[str]) -> None:
        self.problem, self.checks = problem, checks
        self.findings: list[Finding] = []
        self.gradients: list[Any] = [None] * len(problem.places)
        self.pulled: list[Pulled] = []
        self.cost: Cost | None = None
        self.value = math.nan
        self.eps = max(epsilon(p) for p in problem.points)

    def audit(self) -> Audit:
        problem = self.problem
        base = problem.run(keep=True)
        if self._usable(base):
            problem.weigh(base.outputs)
            self.value = problem.value(base.outputs)
            between = (o for e in base.trace.events if e.node is not None for o in e.outs if o.dtype.differentiable)
            self.eps = max([self.eps, *map(epsilon, (*base.outputs, *between))])  # a cast to fewer digits makes steps of all
            self._arguments(base)
            self._checks(base, self._repeatable(base))
        return Audit(
            problem, base, self.findings, self.gradients, self.value, self.cost, dependence(base, self.pulled), self._entries(base)
        )

    def _entries(self, base: Outcome) -> list[int]:
        """Return the numbers of operations with a constant operand that depends on an input, for inputs with a broken path."""
        broken = [f for f in self.findings if f.group == "paths" and f.severity == "error" and f.inputs]
        found: set[int] = set()
        for k in {self.problem.labels.index(i) for f in broken for i in f.inputs}:
            found |= {i for i, _ in entries(self.problem, base, k, directions(self.problem, k))}
        return sorted(found)

    # -- what the function returns ---------------------------------------------------------------------------------

    def _usable(self, base: Outcome) -> bool:
        """Report a function that raises, or returns nothing differentiable; return whether the audit can go on."""
        if base.error is not None:
            ran = len(base.trace.events)
            message = f"after {ran} operation{'s' if ran != 1 else ''}, it raised {type(base.error).__name__}: {base.error}"
            self._add("raised", "error", message, base.where)
            return False
        for i, leaf in enumerate(base.leaves):
            which = f"result {i}" if len(base.leaves) > 1 else "the result"
            if isinstance(leaf, TensorBase) and not leaf.dtype.differentiable:
                event = base.trace.producers.get(id(leaf))
                place = None if event is None else base.trace.events[event].place
                severity = "error" if not base.outputs else "note"
                self._add("integer-result", severity, f"{which} has dtype {leaf.dtype}, which has no derivatives", place)
            elif not isinstance(leaf, TensorBase) and not base.outputs:
                hint = "; is there a `return`?" if leaf is None else ""
                self._add("no-tensor", "error", f"{which} is {shown(leaf)}, not a Tensor{hint}", self._left_last(base))
        if not base.leaves:
            self._add("no-tensor", "error", f"the result is {shown(base.result)}, which holds no Tensor", None)
        return bool(base.outputs)

    @staticmethod
    def _left_last(base: Outcome) -> Any:
        return base.trace.breaks[-1].place if base.trace.breaks else None

    def _arguments(self, base: Outcome) -> None:
        """Report inputs whose values the function has changed."""
        for label, x, before in zip(self.problem.labels, base.inputs, self.problem.points):
            a, b = host_of(x), host_of(before)
            if a.shape != b.shape or not bool(((a == b) | ((a != a) & (b != b))).all()):
                self._add("changed-argument", "warning", f"the values of `{label}` are others after the call", None, (label,))

    def _repeatable(self, base: Outcome) -> bool:
        """Run the function again, and report the first difference; return whether there is none, as finite differences require."""
        again = self.problem.run(keep=True)
        same = again.error is None and self.problem.value(again.outputs) == self.value
        if same or (math.isnan(self.value) and again.error is None):
            return True
        kind, message = "not-deterministic", "two runs with the same arguments give different results"
        place: Any = None
        places: tuple[Any, ...] = ()
        if again.error is not None:
            message = f"the second run with the same arguments raised {type(again.error).__name__}: {again.error}"
        for mine, other in zip(base.trace.events, again.trace.events):
            if mine.name != other.name or mine.place != other.place:
                message += f": they part at `{other.name}`"
                place, places = other.place, other.places
                break
            if _differ(mine, other):
                fresh = all(id(x) not in base.trace.producers for x in mine.tensors if x._node is None)
                kind = "random" if fresh and mine.tensors else kind
                message = f"`{mine.name}` has other operands in a second run with the same arguments: a constant is drawn or remembered"
                place, places = mine.place, mine.places
                break
        self.findings.append(Finding(kind, "error", message, place, places))
        return False

    def _add(self, kind: str, severity: str, message: str, place: Any, inputs: tuple[str, ...] = ()) -> None:
        self.findings.append(Finding(kind, severity, message, place, () if place is None else (place,), inputs))

    # -- the checks ------------------------------------------------------------------------------------------------

    def _checks(self, base: Outcome, repeatable: bool) -> None:
        """Run the chosen checks on the first run, and collect their findings; differences need a `repeatable` function."""
        problem, checks = self.problem, self.checks
        if "paths" in checks:
            self.findings += unseen_writes(base)
        nodes = problem.nodes(base)
        if "cost" in checks:
            self.cost, found = costs(base, nodes)
            notes = found
        else:
            notes = []
        if not self._backward(base, nodes):
            self.findings += notes
            return
        finite = math.isfinite(self.value) and all(g is None or _finite(g) for g in self.gradients)
        slopes: dict[int, Slope] = {}
        if "nonfinite" in checks:
            self.findings += not_finite(problem, base, self.pulled, self.gradients)
        if "paths" in checks and not math.isfinite(self.value):
            self.findings += unchecked_breaks(base)
        if repeatable and finite and checks & {"paths", "accuracy"}:
            lost, doubtful = broken_paths(problem, base, self.gradients, self.value, self.eps)
            self.findings += lost if "paths" in checks else []
            kinked = "kinks" in checks and bool(at_kinks(base, self.pulled, {}, self.eps))
            hidden = any(f.kind == "overwritten" for f in self.findings)
            if "accuracy" in checks and doubtful and not kinked and not hidden:
                for k in doubtful:
                    slopes[k] = slope(problem, {k: directions(problem, k)}, self.value, self.eps)
                self.findings += wrong_gradient(problem, base, doubtful, slopes, self.gradients)
        if "accuracy" in checks:
            self.findings += directions_disagree(problem, base, self.eps)
            if repeatable and finite:
                self.findings += digits_lost(problem, base, self.gradients)
        if "kinks" in checks and repeatable:
            if math.isfinite(self.value) and at_kinks(base, self.pulled, {}, self.eps):
                every = {k: directions(problem, k) for k in range(len(problem.points))}
                slopes[-1] = slope(problem, every, self.value, self.eps)
            self.findings += at_kinks(base, self.pulled, slopes, self.eps)
        if "ranges" in checks:
            self.findings += far_ranges(base, self.pulled)
        self.findings += notes

    def _backward(self, base: Outcome, nodes: list[Any]) -> bool:
        """Run the backward pass and observe it; report its error if it raises."""
        watch = Watch(nodes)
        try:
            self.gradients = self.problem.gradients(base)
            compute(*base.outputs, *self.gradients)
        except Exception as exc:  # noqa: BLE001 (whatever it raises is a finding)
            text = str(exc)
            kind = "overwritten" if "modified by an inplace operation" in text or "inplace" in text else "backward-raised"
            self._add(kind, "error", f"the backward raised {type(exc).__name__}: {text}", _named_node(base, text))
            return False
        finally:
            self.pulled = watch.pulled
            watch.close()
        return True


def _finite(g: Any) -> bool:
    """Return whether all elements of a gradient are finite."""
    return bool((abs(host_of(g)) < math.inf).all())


def _named_node(base: Outcome, text: str) -> Any:
    """Return the place of the operation whose node the error message `text` names; None if there is none."""
    for event in reversed(base.trace.events):
        if event.node is not None and f"saved by {event.node.name().partition('Backward')[0]}," in text:
            return event.place
    return None


def _differ(mine: Any, other: Any) -> bool:
    """Return whether the events `mine` and `other` of two runs have different constant operands."""
    for a, b in zip(mine.operands, other.operands):
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            if a._node is None:
                x, y = host_of(a), host_of(b)
                if x.shape != y.shape or not bool(((x == y) | ((x != x) & (y != y))).all()):
                    return True
        elif not isinstance(a, TensorBase) and a != b:
            return True
    return False
