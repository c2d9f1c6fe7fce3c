"""Right-hand sides as pure functions of the time, the state and Tensors, compiled once and used by all solvers of the same function.

Two functions are the same if their code and all that they close over are equal (`xpgrad.scipy._closures`), apart from Tensors, which are
arguments of what is compiled. A function that cannot be compiled, because it branches on values, is called as the user wrote it.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from xpgrad._backends.contexts import without_context
from xpgrad._basics.dtypes import finfo, float64
from xpgrad._basics.threads import renew_in_children
from xpgrad._modes import state
from xpgrad.func import jacfwd, jvp, vjp, vmap
from xpgrad.linalg import matmul
from xpgrad.programs.compiled import compile_function
from xpgrad.rules.creation import arange, eye, zeros
from xpgrad.rules.elementwise import cos
from xpgrad.rules.manipulation import concat, reshape, stack
from xpgrad.scipy._closures import Rebuilt, Unreadable, read
from xpgrad.scipy.integrate._problem import Problem


class Written(Exception):
    """Raised if a function writes to a list or a dict that it reaches: it is then called as it is."""


#: The right-hand sides that are kept, the last used at the end.
_known: OrderedDict[Any, Side] = OrderedDict()
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")
_MOST = 128


def find_side(problem: Problem) -> tuple[Side, list[Any]] | None:
    """Return the right-hand side of a problem, and its Tensors; None if it reaches objects that cannot be read.

    It is None as well in modes that watch each operation: anomaly detection, an audit, and a capture.
    """
    mode = state.current()
    if mode is not None and (mode.anomaly is not None or mode.auditing is not None or mode.capturing is not None):
        return None
    tensors: list[Any] = []
    function, time_first = problem.given
    try:
        description = read((function, problem.args), tensors)
    except Unreadable:
        return None
    if any(x.depth or x.dtype.is_complex or x.stage for x in (problem.start, *tensors)):
        return None
    key = (description, time_first, problem.name, problem.structure, tuple(problem.leaves), problem.cls, problem.code.modules)
    try:
        with _LOCK:
            side = _known.get(key)
            if side is None:
                side = _known[key] = Side(problem.without_values(), description, time_first)
                if len(_known) > _MOST:
                    _known.popitem(last=False)
            else:
                _known.move_to_end(key)
    except TypeError:  # a structure that is not hashable
        return None
    return side, tensors


class Side:
    """The right-hand side of a system of equations, a function ``field(t, y, *tensors)`` of Tensors.

    Attributes
    ----------
    size : int
        The number of variables.
    block : int
        The number of variables of the state: the Jacobian nearly consists of blocks of this size.
    solves : int
        How often a solver was called.
    writes : bool
        Whether it writes to what it reaches, so that it must be called as it is.
    batched : bool
        Whether its sensitivities are computed together; one by one, the function may branch on values.
    """

    def __init__(self, form: Problem, description: Any, time_first: bool) -> None:
        self.form, self.description, self.time_first = form, description, time_first
        self.size: int = sum(size for *_, size in form.leaves)
        self.block = self.size
        self.solves = 0
        self.functions: dict[Any, Any] = {}
        self.larger: dict[Any, Sensitivities] = {}
        self.writes = False
        self.batched = True
        self.last: tuple[Any, Any] | None = None  # the arguments and the result of the last solution

    # -- as functions of Tensors -----------------------------------------------------------------------------------------------

    def field(self, t: Any, y: Any, *tensors: Any) -> Any:
        """Return the derivative of the state, a vector."""
        made = Rebuilt(self.description, tensors)
        function, args = made.value
        function = self.form.code.keep(function)
        out = self.form.flat_field(function if self.time_first else lambda t, y, *more: function(y, t, *more), args, t, y)
        if made.has_changed():
            raise Written
        return out

    def initial(self, t: Any, start: Any, *tensors: Any) -> Any:
        """Return the initial values of all variables at the time `t`, given those of the state."""
        return start

    def jacobian(self, t: Any, y: Any, *tensors: Any) -> Any:
        """Return the matrix of derivatives with respect to the state."""
        return jacfwd(lambda v: self.field(t, v, *tensors))(y)

    def with_sensitivities(self, *key: Any) -> Sensitivities:
        """Return the joint equation of the state and its sensitivities, whose arguments are given."""
        found = self.larger.get(key)
        if found is None:
            found = self.larger[key] = Sensitivities(self, *key)
        return found

    # -- for SciPy ---------------------------------------------------------------------------------------------------------------

    def evaluator(self, what: str, tensors: Any, *, overwrites: bool = False) -> Callable[[float, Any], Any] | None:
        """Return the field or the Jacobian, compiled, as a function of a float and an array; None if it cannot be compiled.

        Parameters
        ----------
        what : {"field", "jacobian"}
        tensors : sequence of Tensor
        overwrites : bool
            Whether a call may overwrite the result of the call before.
        """
        form = self.form
        found = self._find_compiled(what, tensors)
        if found is None:
            return None
        run, place, _ = found
        if place is None:
            tensors = [x.detach() for x in tensors]
            return lambda t, y: form.to_array(run(form.to_tensor(t), form.to_tensor(y), *tensors))
        arrays = [x._stand_in()._array for x in tensors]
        time = sys.modules["numpy"].empty(())  # SciPy has loaded it

        call = getattr(run, "call", None) if overwrites else None
        if call is None:

            def evaluate(t: float, y: Any) -> Any:
                time[()] = t
                return run(time, y, *arrays)[place]

            return evaluate
        buffers = run.buffers()
        out, rest = buffers[place], (*arrays, *buffers)

        def fill(t: float, y: Any) -> Any:
            time[()] = t
            return out if call(time, y, *rest) is None else run(time, y, *arrays)[place]

        return fill

    def uses(self, tensors: Any) -> tuple[bool, ...]:
        """Return which Tensors the function uses: all unless it is compiled."""
        found = self._find_compiled("field", tensors)
        return (True,) * len(tensors) if found is None else found[2]

    def plain_evaluator(self, what: str, tensors: Any, *, overwrites: bool = False) -> Callable[[float, Any], Any]:
        """Return the field or the Jacobian as a function of a float and an array, compiled if possible; see `evaluator`."""
        found = self.evaluator(what, tensors, overwrites=overwrites)
        if found is not None:
            return found
        form, function, tensors = self.form, getattr(self, what), [x.detach() for x in tensors]
        return lambda t, y: form.to_array(function(form.to_tensor(t), form.to_tensor(y), *tensors))

    def _find_compiled(self, what: str, tensors: Any) -> Any:
        """Compile a function at its first call; return None if that is impossible.

        Returns
        -------
        callable
            The compiled function.
        int or None
            The place of the result among its results if it takes raw arrays of NumPy's.
        tuple of bool
            Which of the Tensors it uses.
        """
        key = what, tuple([(x.__class__, x.shape, x.dtype) for x in tensors])
        if key not in self.functions:
            try:
                with without_context():  # the function resumes it
                    self.functions[key] = self._compile(what, [x.detach() for x in tensors])
            except Exception as exc:  # noqa: BLE001 (an error of the user's function comes out where it is called as it is)
                self.functions[key] = None
                self.batched = False
                self.writes = self.writes or isinstance(exc, Written)
        return self.functions[key]

    def _compile(self, what: str, tensors: list[Any]) -> Any:
        form = self.form
        compiled: Any = compile_function(getattr(self, what))
        args = form.to_tensor(0.0), form.to_tensor([0.0] * self.size), *tensors
        out = compiled(*args)
        if form.cls.backend.capabilities.jit:
            return compiled, None, (True,) * len(tensors)
        (captured, _), (again, _) = (f.captured(args, {}) for f in (compiled, compile_function(getattr(self, what))))
        made = captured.forward
        # It uses Tensors that are no arguments, or draws random numbers.
        if captured.watched or not made.is_like(again.forward.program):
            return None
        read = {v for operation in made.program.operations for v in operation.operands()}.union(made.program.outputs)
        used = tuple([v in read for v in made.program.inputs[2:]])
        if form.cls.backend.name == "numpy" and out.dtype is float64 and all(x.__class__ is form.cls for x in args):
            (place,), _ = made.template
            return made.run, place, used
        return compiled, None, used


class Sensitivities(Side):
    """The joint equation of a state and its derivatives by the start, the first time and some Tensors, one after another.

    Attributes
    ----------
    has_start, has_time : bool
        Whether there are derivatives by the start and by the first time.
    wanted : tuple of bool
        Of which Tensors there are derivatives.
    """

    def __init__(self, below: Side, has_start: bool, has_time: bool, wanted: tuple[bool, ...], count: int) -> None:
        super().__init__(below.form, below.description, below.time_first)
        self.below, self.has_start, self.has_time, self.wanted, self.count = below, has_start, has_time, wanted, count
        self.size, self.block = below.size * (1 + count), below.block
        self.verdict: bool | None = None

    def field(self, t: Any, y: Any, *tensors: Any) -> Any:
        """Return the derivatives of the state and of its sensitivities, which `y` has one after another."""
        below, n = self.below, self.below.size
        own, rows = y[:n], reshape(y[n:], (self.count, n))

        def along(row: Any, *directions: Any) -> Any:
            changed = self._changed(tensors)
            return jvp(lambda y, *given: below.field(t, y, *changed(given)), (own, *self._chosen(tensors)), (row, *directions))[1]

        given = rows, *self._directions(tensors)
        changes = vmap(along)(*given) if self.batched else stack([along(*[x[k] for x in given]) for k in range(self.count)])
        return concat([below.field(t, own, *tensors), reshape(changes, (-1,))])

    def initial(self, t: Any, start: Any, *tensors: Any) -> Any:
        """Return the initial values of the state and of its sensitivities."""
        below, n = self.below, start.shape[0]
        options = {"dtype": start.dtype, "device": start.device}
        value = below.initial(t, start, *tensors)
        # By the first time: later, the solution is what it was, and so begins elsewhere.
        by_time = [reshape(-below.field(t, value, *tensors), (1, -1))] if self.has_time else []
        if not isinstance(below, Sensitivities):
            after = zeros((self.count - (n if self.has_start else 0) - self.has_time, n), **options)
            rows = concat([*([eye(n, **options)] if self.has_start else []), *by_time, after])
            return concat([value, reshape(rows, (-1,))])

        def along(by_time: Any, by_start: Any, *directions: Any) -> Any:
            changed = self._changed(tensors)
            points = t, start, *self._chosen(tensors)
            return jvp(lambda t, y, *given: below.initial(t, y, *changed(given)), points, (by_time, by_start, *directions))[1]

        basis = eye(self.count, **options)
        first = n if self.has_start else 0
        by_start = basis[:, :n] if self.has_start else zeros((self.count, n), **options)
        in_time = basis[:, first] if self.has_time else zeros((self.count,), **options)
        rows = vmap(along)(in_time.to(t.dtype), by_start, *self._directions(tensors))
        if self.has_time:
            rows = concat([rows[:first], rows[first : first + 1] + by_time[0], rows[first + 1 :]])
        return concat([value, reshape(rows, (-1,))])

    def agrees(self, t: float, y: Any, tensors: Any) -> bool:
        """Return whether the sensitivities change as reverse mode says, at a time and a state; the answer is kept.

        They do not if the function cuts the derivatives of one mode, as `no_grad` does, or has rules of its own.
        """
        if self.verdict is None:
            self.verdict = self._agrees(t, y, [x.detach() for x in tensors])
        return self.verdict

    def _agrees(self, t: float, y: Any, tensors: list[Any]) -> bool:
        form, n = self.form, self.block
        time, start = form.to_tensor(t), form.to_tensor(y)
        probe = cos(arange(self.count * n, dtype=start.dtype, device=start.device))
        rows, weights = reshape(probe, (self.count, n)), probe[:n]
        forward = matmul(reshape(self.field(time, concat([start, probe]), *tensors)[n:], (self.count, n)), weights)
        changed = self._changed(tensors)
        _, pull = vjp(lambda y, *given: self.below.field(time, y, *changed(given)), start, *self._chosen(tensors))
        by_state, *found = pull(weights)
        reverse = matmul(rows, by_state)
        parts = [reshape(v, (-1,)).to(start.dtype).to(device=start.device) for v in found]
        if parts:
            own = concat(parts)
            reverse = concat([reverse[: self.count - own.shape[0]], reverse[self.count - own.shape[0] :] + own])
        one, other = form.to_array(forward), form.to_array(reverse)
        near = float(finfo(start.dtype).eps) ** 0.5 * max(1.0, abs(other).max(initial=0.0))
        return bool((abs(one - other) <= near).all())

    def _chosen(self, tensors: Any) -> list[Any]:
        """Return the Tensors of which there are derivatives."""
        return [x for x, wanted in zip(tensors, self.wanted) if wanted]

    def _changed(self, tensors: Any) -> Callable[[Any], list[Any]]:
        """Return a function that puts others in the places of these."""

        def changed(given: Any) -> list[Any]:
            new = iter(given)
            return [next(new) if wanted else x for x, wanted in zip(tensors, self.wanted)]

        return changed

    def _directions(self, tensors: Any) -> list[Any]:
        """Return the directions of all sensitivities in the Tensors of which there are derivatives, of shapes (count, \\*shape)."""
        out, chosen = [], self._chosen(tensors)
        at = self.count - sum(x.numel() for x in chosen)
        for x in chosen:
            size, options = x.numel(), {"dtype": x.dtype, "device": x.device}
            parts = zeros((at, size), **options), eye(size, **options), zeros((self.count - at - size, size), **options)
            out.append(reshape(concat([part for part in parts if part.shape[0]]), (self.count, *x.shape)))
            at += size
        return out
