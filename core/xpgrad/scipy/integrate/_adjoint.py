"""Give solutions of differential equations a history by the adjoint equation.

The dependencies of the equation are found in the graph of its right side along the solution. In the backward pass the adjoint is integrated
backwards from output to output, together with the solution, which is integrated again piece by piece from the outputs and interpolated. The
gradients of the parameters are integrals along it (Pontryagin et al. 1962; for what is stored and what is repeated, Serban and Hindmarsh
2005). For higher derivatives the state, the adjoint and these integrals are the solution of one equation, which is differentiated again.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

from xpgrad._basics.dtypes import finfo
from xpgrad._modes import state, switches
from xpgrad._tape.node import ListNode, freed_error
from xpgrad._tape.requests import private_grad
from xpgrad._tape.saved import with_history
from xpgrad.autograd.function import Function
from xpgrad.rules.creation import zeros, zeros_like
from xpgrad.rules.manipulation import concat, moveaxis, stack
from xpgrad.scipy._cutting import Once, cut_graph
from xpgrad.scipy.integrate._problem import EXPLICIT, IMPLICIT, Problem

#: Maximum number of pieces in which the solution is integrated again, and minimum number of outputs in each: solvers start slowly.
_PIECES = 16
#: Maximum number of outputs at which the right side is evaluated to find the Tensors on which it depends.
_LOOKS = 64
#: Abscissas and weights of the three-point Gauss rule, for integrals along the adjoint over each of its steps.
_GAUSS = ((-(0.6**0.5), 5 / 9), (0.0, 8 / 9), (0.6**0.5, 5 / 9))

#: Up to this size, the gradients of parameters are integrated jointly with the adjoint.
_MOST_JOINT = 2048

#: Why derivatives raise a NotImplementedError.
ONE_BY_ONE = (
    "derivatives of higher order of the solution of a differential equation are not taken for many cotangents at once, as `jacrev` inside "
    "of another derivative and `hessian` do; take them one by one, e.g. with `autograd.functional.jacobian(f, x, create_graph=True)` "
    "inside, or go through the steps: gradient='steps'"
)


def flow(problem: Problem, start: Any, times: Any, t: Any, ys: Any) -> Any:
    """Attach a node to SciPy's solution, so that it can be differentiated by the start, the times and all parameters of the equation.

    Parameters
    ----------
    problem : Problem
    start : Tensor, shape (n,)
        The solution at the first time, with its history.
    times : sequence of float
        Increasing or decreasing.
    t : Tensor, shape (T,), or None
        `times` as a tensor with its history; None if they have none.
    ys : ndarrays of float64, shape (T, n)
        SciPy's solution at `times`.

    Returns
    -------
    Tensor, shape (T, n)
        The values of `ys`.

    Raises
    ------
    NotImplementedError
        The start or the times have a tangent, or are elements of a batch of a pass.
    RuntimeError
        The right side depends on Tensors, but on none at the outputs and samples.
    """
    if any(x._has_tangent() for x in (start, t) if x is not None):
        msg = (
            f"{problem.name}: the tangents of times or of the start are lost, because the solution was computed without its steps; take "
            f"gradient='steps' with one of the methods {', '.join(map(repr, EXPLICIT))}"
        )
        raise NotImplementedError(msg)
    if t is not None and t.depth and t.requires_grad:
        raise NotImplementedError(ONE_BY_ONE)
    out = problem.to_tensor(ys)
    if not state.is_grad_enabled():
        return out
    looks, parameters, more = _evaluate_samples(problem, times, ys)
    parts = [part for part in (start, t) if part is not None and part._node is not None]
    if not parts and not parameters:
        if problem.depends:
            raise RuntimeError(_late_message(problem))
        return out
    node: Any = FlowNode.made_now()
    node.cls, node.e = type(out), (*(part._node for part in parts), *parameters)
    node.has_start, node.has_t = start._node is not None, t is not None and t._node is not None
    node.problem, node.times, node.t, node.solution = problem, times, None if t is None else t.detach(), out.detach()
    node.parameters, node.looks, node.more = tuple(parameters), looks, more
    node.stream = (node.cls, node.cls.backend.current_stream(out.device)) if out.backend.capabilities.streams else None
    result = out.clone()
    result._node = node
    return result


def _evaluate_samples(problem: Problem, times: Any, ys: Any) -> tuple[list[tuple[int, Any]], list[Any], list[tuple[Any, Any]]]:
    """Evaluate the right side at some of the outputs, including the first and the last, and where SciPy evaluated it between them.

    Parameters
    ----------
    problem : Problem
    times : sequence of float
    ys : ndarray, shape (T, n)
        The solution at `times`.

    Returns
    -------
    list of (int, Tensor)
        Its values at the first and the last output, by their numbers.
    list of Node
        The nodes on which the values depend.
    list of (Tensor, Tensor)
        Times and states, other than outputs, at which they depend on further nodes.
    """
    count = len(times)
    places = sorted({round(k * (count - 1) / (_LOOKS - 1)) for k in range(_LOOKS)}) if count > _LOOKS else range(count)
    looks, more = [], []
    nodes: dict[Any, None] = {}
    for i in places:
        value, _, links = cut_graph(_fix_time(problem, problem.to_tensor(times[i])), problem.to_tensor(ys[i]))
        if i in (0, count - 1):
            looks.append((i, value.detach()))
        nodes.update(dict.fromkeys(link.inner for link in links))
    low, high = min(times[0], times[-1]), max(times[0], times[-1])  # a solver may have gone beyond
    for time, y in problem.samples or ():
        if low <= time <= high and count < _LOOKS:
            at, known = (problem.to_tensor(time), problem.to_tensor(y)), len(nodes)
            nodes.update(dict.fromkeys(link.inner for link in cut_graph(_fix_time(problem, at[0]), at[1])[2]))
            if len(nodes) > known:
                more.append(at)
    return looks, list(nodes), more


def _fix_time(problem: Problem, time: Any) -> Any:
    """Return the right side at a time as a function of the state."""
    return lambda y: problem.field(time, y)


def _late_message(problem: Problem) -> str:
    """Return the message for Tensors on which the right side depends, but not where it was looked for them."""
    return (
        f"{problem.name}: between the outputs the function depends on Tensors on which it does not depend at them. Ask for more outputs, "
        "or multiply what does not count yet by 0"
    )


def _products(
    problem: Problem, t: Any, y: Any, a: Any, known: tuple[Any, ...], *, by_all: bool, again: bool = False
) -> tuple[Any, list[Any]]:
    """Return the right side, and the products of a vector with its derivatives with respect to the state and, if `by_all`, known nodes.

    Parameters
    ----------
    problem : Problem
    t, y : Tensor
        Time and state.
    a : Tensor
        The vector.
    known : tuple of Node
    by_all, again : bool
        With respect to the nodes as well; and with a history.

    Raises
    ------
    RuntimeError
        If the right side depends on another node, which therefore would get no gradient.
    """
    value, own, links = cut_graph(_fix_time(problem, t), y)
    inner = {link.inner: link for link in links}
    if not all(e in known for e in inner):
        raise RuntimeError(_late_message(problem))
    targets = [own, *(inner[e] for e in known if e in inner)] if by_all else [own]
    if value._node is None:
        found: Any = [None] * len(targets)
    else:
        found = private_grad(value, targets, a, create=again)
    if again:
        for link in (own, *links):
            link.open()
    by_node = dict(zip((link.inner for link in targets[1:]), found[1:]))
    return value, [found[0], *(by_node.get(e) for e in known)]


class FlowNode(ListNode):
    """The node of a solution at some times.

    Attributes
    ----------
    problem : Problem or None
        None once it is freed.
    times : sequence of float
    t : Tensor or None
        The times as a Tensor without history, if they are differentiated.
    solution : Tensor, shape (T, n)
        Without history.
    parameters : tuple of Node
        The nodes on which the right side depends.
    looks : list of (int, Tensor)
        Values of the right side at the first and the last output, to detect later changes.
    more : list of (Tensor, Tensor)
        Times and states between the outputs at which it depends on parameters on which it does not depend at them.
    """

    __slots__ = ("cls", "has_start", "has_t", "looks", "more", "parameters", "problem", "solution", "t", "times")

    title = "FlowBackward0"
    saves = True
    cls: Any
    problem: Any
    times: Any
    t: Any
    solution: Any
    parameters: tuple[Any, ...]
    looks: list[tuple[int, Any]]
    more: list[tuple[Any, Any]]
    has_start: bool
    has_t: bool

    def grads(self, g: Any) -> list[Any]:
        return [None if v is None else v._array for v in self._once(self.cls.backend.wrap(g))]

    def _once(self, g: Any) -> list[Any]:
        """Compute the gradients for the edges without history."""
        if self.problem is None:
            raise freed_error(self)
        self._check()
        kept: list[bool] = []
        found = iter(_Pulled.apply(g, self, kept))
        return self._select([next(found) if keep else None for keep in kept])

    def _select(self, found: list[Any]) -> list[Any]:
        """Select the gradients whose input has an edge."""
        start, t, *rest = found
        return [*([start] if self.has_start else []), *([t] if self.has_t else []), *rest]

    def _check(self) -> None:
        """Raise if a value on which the right side depends has changed since the forward pass; the backward pass evaluates it again."""
        problem = self.problem
        for i, before in self.looks:
            value, _, _ = cut_graph(_fix_time(problem, problem.to_tensor(self.times[i])), self.solution[i])
            now, old = problem.to_array(value), problem.to_array(before)
            # Rounding may differ, because some libraries add up in another order each time.
            near = 64 * float(finfo(problem.dtype).eps) * abs(old).max(initial=0.0)
            if not ((abs(now - old) <= near) | (now == old) | ((now != now) & (old != old))).all():
                msg = (
                    f"{problem.name}: the function has another value at a state of the solution than when it was solved: a Tensor "
                    "that it depends on was modified by an inplace operation, or it is not a pure function. Solve again, or clone the "
                    "Tensor before it is written to"
                )
                raise RuntimeError(msg)

    # -- once, by numbers ----------------------------------------------------------------------------------------------------------

    def compute(self, g: Any) -> list[Any]:
        """Compute the gradients for the start, the times and the parameters, without history."""
        problem, times = self.problem, self.times
        given, ys = problem.to_array(g), problem.to_array(self.solution)
        parts = self._shapes()
        adjoint = _Adjoint(problem, times, ys, self.parameters, parts, float(abs(given).max()) if given.size else 0.0)
        a = given[0] * 0.0
        by_t = [0.0] * len(times)
        for i in range(len(times) - 1, 0, -1):
            a = a + given[i]
            if self.has_t and given[i].any():
                by_t[i] = float(given[i] @ problem.rhs(times[i], ys[i]))
            if times[i] != times[i - 1] and (a != 0).any():  # a nan is not 0
                a = adjoint.back(i, a)
        if self.has_t:
            by_t[0] = -float(a @ problem.rhs(times[0], ys[0]))
        return [problem.to_tensor(a + given[0]), problem.to_tensor(by_t), *adjoint.sums]

    # -- again, as functions -----------------------------------------------------------------------------------------------------------

    def graph_grads(self, g: Any) -> list[Any]:
        if self.problem is None:
            raise freed_error(self)
        if not state.is_grad_enabled():  # many cotangents at once
            return self._once(g)
        ys = with_history(self.cls.backend, self.solution._array, self)
        if g.depth:
            return [None if v is None else Once.apply(v, ONE_BY_ONE, ys, g) for v in self._once(g)]
        self._check()
        return self._select(self._recompute(g, ys))

    def _recompute(self, g: Any, ys: Any) -> list[Any]:
        """Compute the gradients for the start, the times and the parameters, as functions of all that they depend on."""
        problem, times = self.problem, self.times
        n, count = ys.shape[1], len(times)
        t = self._times_again()
        shapes = self._shapes()
        augmented = _augment(problem, n, self.parameters, shapes, float(abs(problem.to_array(g)).max()))
        a = zeros_like(g[0])
        q = zeros((sum(s.size for s in shapes if s is not None),), dtype=problem.dtype, device=problem.device)
        by_t: list[Any] = [None] * count
        for i in range(count - 1, 0, -1):
            a = a + g[i]
            by_t[i] = (g[i] * problem.field(t[i], ys[i])).sum() if self.has_t else None
            ends = times[i], times[i - 1]
            if ends[0] != ends[1] or self.has_t:  # an interval without length has one when a time moves
                z = concat([ys[i], a, q])
                rows = [problem.to_array(z)] * 2
                if ends[0] != ends[1]:
                    rows[1] = augmented.solve(augmented.fast_rhs, *ends, rows[0]).y[:, -1]
                z = flow(augmented, z, ends, stack([t[i], t[i - 1]]), rows)[1]
                a, q = z[n : 2 * n], z[2 * n :]
        if self.has_t:
            by_t[0] = -(a * problem.field(t[0], ys[0])).sum()
        return [a + g[0], stack(by_t) if self.has_t else None, *_split(q, shapes)]

    def _times_again(self) -> Any:
        if not self.has_t:
            return self.problem.to_tensor(self.times)
        return with_history(self.cls.backend, self.t._array, self.e[int(self.has_start)])

    def _shapes(self) -> list[_Part | None]:
        """Return the integrand of each parameter's gradient; None if the right-hand side never depended on it."""
        parts: list[_Part | None] = [None] * len(self.parameters)
        with switches.no_grad():
            outputs = ((self.problem.to_tensor(time), y) for time, y in zip(self.times, self.solution))
            for time, y in itertools.chain(outputs, self.more):
                if None not in parts:
                    break
                _, (_, *found) = _products(self.problem, time, y, y * 0.0 + 1.0, self.parameters, by_all=True)
                parts = [p if p is not None or v is None else _Part(v) for p, v in zip(parts, found)]
        return parts

    def held(self) -> list[Any]:
        return [] if self.problem is None else [self.solution._array]

    def release(self) -> None:
        self.problem = None

    def released(self) -> bool:
        return self.problem is None


class _Part:
    """The shape, dtype and device of a parameter's gradient."""

    def __init__(self, like: Any) -> None:
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device
        self.size = like.numel()


class _Adjoint:
    """The adjoint equation, integrated by SciPy without recording.

    Attributes
    ----------
    sums : list of Tensor or None
        The gradients of the parameters so far.
    """

    def __init__(self, problem: Problem, times: Any, ys: Any, known: tuple[Any, ...], parts: list[_Part | None], scale: float) -> None:
        self.problem, self.times, self.known = problem, times, known
        self.all_parts = [_Part(problem.start), *parts]
        self.sums: list[Any] = [None] * len(known)
        self.piece = _Pieces(problem, times, ys)
        self.atol = min(problem.rtol, problem.atol) * scale
        self.size = sum(p.size for p in parts if p is not None)
        # In a joint integration the integrals affect the choice of steps. For many parameters, and for implicit methods, that costs
        # more than a quadrature over the steps.
        plain = problem.method not in IMPLICIT and not any(p is not None and p.dtype.is_complex for p in parts)
        self.is_joint = plain and 0 < self.size <= _MOST_JOINT

    def back(self, i: int, a: Any) -> Any:
        """Return the adjoint at output ``i - 1`` given `a` at output `i`, and add to the gradients of the parameters."""
        problem, solution, n = self.problem, self.piece.solution_before(i), len(a)
        ends = self.times[i], self.times[i - 1]

        def products(s: float, v: Any, *, by_all: bool) -> list[Any]:
            at = problem.to_tensor(s), problem.to_tensor(solution(s)), problem.to_tensor(v)
            return _products(problem, *at, self.known, by_all=by_all)[1]

        def change(s: float, v: Any) -> Any:
            found = products(s, v, by_all=False)[0]
            return v * 0.0 if found is None else -problem.to_array(found)

        def change_of_all(s: float, z: Any) -> Any:
            out, at = z * 0.0, 0
            for part, v in zip(self.all_parts, products(s, z[:n], by_all=True)):
                if part is not None:
                    if v is not None:
                        out[at : at + part.size] = -problem.to_array(v).reshape(-1)
                    at += part.size
            return out

        def jacobian(s: float, v: Any) -> Any:
            return -problem.jacobian(s, solution(s)).T

        if self.is_joint:
            end = problem.reach(change_of_all, *ends, [*a, *[0.0] * self.size], None, self.atol)
            self._add(_split(problem.to_tensor(end[n:]), self.all_parts[1:]), 1.0)
            return end[:n]
        if not self.size:
            return problem.reach(change, *ends, a, jacobian, self.atol)
        result = problem.solve(change, *ends, a, jacobian, atol=self.atol, dense_output=True)
        for s0, s1 in itertools.pairwise(result.t):
            half = (s1 - s0) / 2
            for x, w in _GAUSS:
                s = (s0 + s1) / 2 + x * half
                self._add(products(s, result.sol(s), by_all=True)[1:], -half * w)
        return result.y[:, -1]

    def _add(self, found: list[Any], factor: float) -> None:
        for k, v in enumerate(found):
            if v is not None:
                self.sums[k] = v * factor if self.sums[k] is None else self.sums[k] + v * factor


def _join(found: list[Any], parts: list[_Part | None], problem: Problem) -> Any:
    """Concatenate the gradients `found` of parameters into one vector, zeros for None; skip those whose entry of `parts` is None."""
    pieces = [
        zeros((part.size,), dtype=problem.dtype, device=problem.device)
        if v is None
        else v.reshape(-1).to(problem.dtype).to(device=problem.device)
        for part, v in zip(parts, found)
        if part is not None
    ]
    return concat(pieces)


class _Pieces:
    """A solution between its outputs, which integrates the equation again, one piece at a time, and interpolates."""

    def __init__(self, problem: Problem, times: Any, ys: Any) -> None:
        self.problem, self.times, self.ys = problem, times, ys
        self.length = max(_PIECES, -(-(len(times) - 1) // _PIECES))
        self.first: int | None = None
        self.solution: Any = None

    def solution_before(self, i: int) -> Any:
        """Return a function of time that is the solution between the output number `i` and the one before it."""
        first = (i - 1) // self.length * self.length
        if first != self.first:
            last = min(first + self.length, len(self.times) - 1)
            ends = self.times[first], self.times[last]
            self.solution = self.problem.solve(self.problem.fast_rhs, *ends, self.ys[first], self.problem.jacobian, dense_output=True).sol
            self.first = first
        return self.solution


def _augment(problem: Problem, n: int, known: tuple[Any, ...], parts: list[_Part | None], scale: float) -> Problem:
    """Return the joint equation of the state, its adjoint and the integrals for the parameters.

    Parameters
    ----------
    problem : Problem
    n : int
        The number of variables of the state.
    known : tuple of Node
        The parameters' nodes.
    parts : list of (_Part or None)
        Their shapes and dtypes; None for one that needs no gradient.
    scale : float
        The magnitude of the cotangents, for the tolerances.
    """

    everything = [_Part(problem.start), *parts]
    if any(p is not None and p.dtype.is_complex for p in parts):
        msg = f"{problem.name}: derivatives of higher order by complex parameters are not taken; give their real and imaginary parts"
        raise NotImplementedError(msg)

    def field(t: Any, z: Any) -> Any:
        y, a = z[:n], z[n : 2 * n]
        value, found = _products(problem, t, y, a, known, by_all=True, again=state.is_grad_enabled())
        return concat([value, -_join(found, everything, problem)])

    out = copy.copy(problem)
    out.compiled = out.compiled_jacobian = None
    out.keep_samples()
    out.field = field  # type: ignore[method-assign,assignment]
    own = problem.all_atol if hasattr(problem.all_atol, "__len__") else [problem.atol] * n
    more = n + sum(p.size for p in parts if p is not None)
    out.start = zeros((n + more,), dtype=problem.dtype, device=problem.device)
    out.all_atol = [*own, *[min(problem.rtol, problem.atol) * (scale or 1.0)] * more]
    return out


def _split(q: Any, parts: list[_Part | None]) -> list[Any]:
    """Undo `_join`: split a vector of integrals into the gradients of the parameters `parts`, None for those without one."""
    at = 0
    found: list[Any] = []
    for part in parts:
        if part is None:
            found.append(None)
            continue
        found.append(q[at : at + part.size].reshape(part.shape).to(device=part.device).to(part.dtype))  # not every device has every dtype
        at += part.size
    return found


class _Pulled(Function):
    """The function that maps a cotangent of a solution to its gradients; for a batch of cotangents it runs once per element."""

    @staticmethod
    def forward(g: Any, node: Any, kept: list[bool]) -> Any:
        found = node.compute(g)
        kept[:] = [v is not None for v in found]
        return tuple(v for v in found if v is not None)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(ONE_BY_ONE)

    @staticmethod
    def vmap(info: Any, in_dims: Any, g: Any, node: Any, kept: list[bool]) -> Any:
        rows = []
        for row in moveaxis(g, in_dims[0], 0):
            found = iter(_Pulled.apply(row, node, kept))
            rows.append([next(found) if keep else None for keep in kept])
        columns = [_fill_zeros(column) for column in zip(*rows, strict=True)]
        kept[:] = [column is not None for column in columns]
        out = tuple(stack(column) for column in columns if column is not None)
        return out, (0,) * len(out)


def _fill_zeros(column: tuple[Any, ...]) -> list[Any] | None:
    """Replace missing gradients by zeros; None if all are missing."""
    like = next((v for v in column if v is not None), None)
    return None if like is None else [zeros_like(like) if v is None else v for v in column]
