"""One walk through a program, from the operations that read an input to the outputs: the dependence of each variable.

Rules are found by the kernel's name or kind. A kernel without a rule, or whose rule does not apply, gets the conservative answer: each
element of the results depends on all inputs of all elements of the operands. Such operations are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.func._sparse.dependence import Dependence, TooDense, no_dependence, union, union_of_all
from xpgrad.func._sparse.host import np
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Operation, Program, Variable

#: ``rule(walk, operation)``: a Dependence for each result, in a list for several; None where the rule does not apply.
Rule = Callable[["Walk", Operation], "Dependence | list[Dependence] | None"]


def place_of(operation: Operation) -> str:
    """Return where the user's code called an operation, for messages: "file.py, line 3, in f"."""
    if operation.line is None:
        return "an unknown line"
    file, number, function = operation.line
    return f"{file.rpartition('/')[2]}, line {number}, in {function}"


class Walk:
    """A walk through a program.

    Parameters
    ----------
    program : Program
        Program to walk through.
    backend : Backend
        Backend of the program's arrays.
    rule_of : callable
        ``rule_of(name)`` returns the rule of a kernel, or None.
    tracked : dict
        Dependence of the inputs that are traced.
    known : dict
        Raw arrays of other inputs, for a local pattern: their values, and those computed from them, decide which elements are 0.

    Attributes
    ----------
    unresolved : dict
        Operations with the conservative answer: kernel and line, in order.
    """

    def __init__(
        self,
        program: Program,
        backend: Any,
        rule_of: Callable[[str], Rule | None],
        tracked: dict[Variable, Dependence],
        known: dict[Variable, Any],
    ) -> None:
        self.program, self.backend, self.rule_of = program, backend, rule_of
        self.tracked = dict(tracked)
        self.total: int = next(iter(tracked.values())).sets.shape[1]
        self._raw = {**program.constants, **known}
        self._made: dict[Variable, Operation] = {}
        self._evaluate = evaluator(backend)
        self.unresolved: dict[str, None] = {}

    def outputs(self) -> list[Dependence]:
        """Return the dependence of the program's outputs.

        Raises
        ------
        TooDense
            If the derivative is not sparse; it names the line.
        """
        for operation in self.program.operations:
            try:
                self._take(operation)
            except TooDense as exc:
                raise TooDense(place_of(operation)) from exc
        return [self.dependence_of(v) for v in self.program.outputs]

    def dependence_of(self, v: Variable) -> Dependence:
        """Return the dependence of a variable."""
        found = self.tracked.get(v)
        return no_dependence(v.shape, self.total) if found is None else found

    def value(self, x: Any) -> Any:
        """Return an argument, or the value of a variable as a NumPy array; None if the value is not known."""
        if x.__class__ is not Variable:
            return x
        raw = self._compute(x)
        return None if raw is None else self.backend.to_host(raw)

    def with_values(self, x: Any) -> Any:
        """Return an argument with each variable replaced by a NumPy array, or by None if its value is not known."""
        if x.__class__ is tuple or x.__class__ is list:
            return x.__class__([self.with_values(item) for item in x])
        return self.value(x)

    def _compute(self, v: Variable) -> Any:
        """Return the raw value of a variable that depends on known values only, computed at first use; None if it depends on others."""
        stack = [v]
        while stack:
            top = stack[-1]
            operation = self._made.get(top)
            if top in self._raw or operation is None:
                stack.pop()
                continue
            missing = [u for u in operation.operands() if u not in self._raw]
            if any(u not in self._made for u in missing):
                for u in operation.results:
                    self._made.pop(u, None)  # never asked for again
            elif missing:
                stack.extend(missing)
            else:
                self._raw.update(zip(operation.results, self._evaluate(operation, self._raw)))
        return self._raw.get(v)

    def _take(self, operation: Operation) -> None:
        tracked = self.tracked
        if not any(v in tracked for v in operation.operands()):
            self._made.update(dict.fromkeys(operation.results, operation))
            return
        if not any(v.dtype.differentiable for v in operation.results):
            return  # comparisons, indices: they have no derivative
        rule = self.rule_of(operation.name)
        found = None if rule is None else rule(self, operation)
        if found is None:
            found = self._assume_dense(operation)
        each = found if isinstance(found, list) else [found]
        for v, x in zip(operation.results, each):
            if x.which.shape != v.shape:
                msg = f"the dependence of `{operation.name}` has shape {x.which.shape}, but the result has {v.shape}: please report this"
                raise AssertionError(msg)
            if v.dtype.differentiable:
                tracked[v] = x

    def _assume_dense(self, operation: Operation) -> list[Dependence]:
        """Return dependences in which each result element depends on all operand elements, and record the operation as unresolved."""
        self.unresolved[f"{operation.name} ({place_of(operation)})"] = None
        parts = [union_of_all(self.tracked[v]) for v in dict.fromkeys(operation.operands()) if v in self.tracked]
        whole = parts[0]
        for part in parts[1:]:
            whole = union(whole, part)
        return [whole.rearrange(np.broadcast_to(whole.which, v.shape)) for v in operation.results]
