"""Outcomes of checks: rows, the result of one function, and the error that carries the failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

#: The checks by name, in the order in which they run, and what each of them guarantees.
CHECKS = {
    "runs": "it takes Tensors of the backend and returns Tensors on their device",
    "unchanged": "the arrays of the caller have the values that they had",
    "values": "its values are those that it has on NumPy's arrays, or on Tensors of the default backend where it takes no others",
    "repeatable": "two runs with the same arguments give the same values, whether gradients are recorded or not",
    "graph": "each argument that moves the output is reached by a gradient: nothing leaves the graph silently",
    "gradient": "the gradient is that of central differences, along sampled directions",
    "forward": "forward mode gives what reverse mode gives",
    "second": "the second derivatives are those of central differences of the gradient",
    "vmap": "`vmap` gives what a loop over the elements of the batch gives",
}
PASSED, WRITES, CONSTANT, FAILED, KNOWN, LACKS, NOT_RUN = "passed", "writes", "constant", "failed", "known", "lacks", "not run"


@dataclass(frozen=True)
class Row:
    """The outcome of one check.

    Attributes
    ----------
    function : str
        The name of the function that was checked.
    argument : int or None
        The position of the argument; None if the check concerns all arguments.
    backend : str
        The device on which it ran.
    check : str
        The name of the check, one of `CHECKS`.
    outcome : str
        ``"passed"``; ``"writes"`` if it passed only inside `autograd.graph.allow_mutation_on_saved_tensors`; ``"failed"``; ``"constant"``
        if the derivative and the differences are 0; ``"known"`` if it failed as expected; ``"lacks"`` if the backend declares that it
        does not support what the function needs; ``"not run"`` after another failure.
    reason : str
        The reason of an outcome other than ``"passed"``.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> row = xp.testing.Row("f", 0, "numpy", "gradient", "failed", reason="wrong sign")
    >>> row.check, row.outcome, row.reason
    ('gradient', 'failed', 'wrong sign')
    >>> result = xp.testing.examine(xp.sin, np.ones(2), backends="numpy", order=1)
    >>> type(result.rows[0]) is xp.testing.Row
    True
    """

    function: str
    argument: int | None
    backend: str
    check: str
    outcome: str
    reason: str = ""

    def __str__(self) -> str:
        where = "" if self.argument is None else f", argument {self.argument}"
        return f"{self.function} on {self.backend}, check `{self.check}`{where}: {self.outcome}{': ' if self.reason else ''}{self.reason}"


@dataclass(frozen=True)
class Result:
    """The rows of one function, in the order of backends and checks.

    Attributes
    ----------
    function : str
        The name of the function.
    rows : tuple of Row

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> result = xp.testing.examine(lambda x, y: x * xp.floor(y), np.ones(2), np.full(2, 1.5), backends="numpy", name="f")
    >>> type(result) is xp.testing.Result
    True
    >>> result.passed, result.backends, result.failures
    (True, ('numpy',), ())
    >>> [(row.argument, row.check, row.outcome) for row in result.of(check="gradient")]
    [(0, 'gradient', 'passed'), (1, 'gradient', 'constant')]
    >>> result.to_list()[0]
    {'function': 'f', 'argument': None, 'backend': 'numpy', 'check': 'runs', 'outcome': 'passed', 'reason': ''}
    """

    function: str
    rows: tuple[Row, ...]

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows that failed.

        See Also
        --------
        xpgrad.testing.Result
        """
        return tuple(row for row in self.rows if row.outcome == FAILED)

    @property
    def passed(self) -> bool:
        """True if no check failed and the function ran on at least one backend.

        See Also
        --------
        xpgrad.testing.Result
        """
        ran = {row.outcome for row in self.rows if row.check == "runs"}
        return not self.failures and ran != {LACKS}

    @property
    def backends(self) -> tuple[str, ...]:
        """The devices on which the function ran.

        See Also
        --------
        xpgrad.testing.Result
        """
        return tuple(dict.fromkeys(row.backend for row in self.rows))

    def of(self, *, backend: str | None = None, check: str | None = None, argument: int | None = None) -> tuple[Row, ...]:
        """Select the rows of a backend, a check or an argument; rows about all arguments belong to every argument.

        Parameters
        ----------
        backend, check : str, optional
        argument : int, optional

        Returns
        -------
        tuple of Row

        See Also
        --------
        xpgrad.testing.Result
        """
        return tuple(
            row
            for row in self.rows
            if (backend is None or row.backend == backend)
            and (check is None or row.check == check)
            and (argument is None or row.argument is None or row.argument == argument)
        )

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, which JSON can hold.

        Returns
        -------
        list of dict
            The keys are the fields of `Row`.

        See Also
        --------
        xpgrad.testing.Result
        """
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        return "\n".join(map(str, self.rows))


def rows_from(data: Iterable[dict[str, Any]]) -> list[Row]:
    """Return rows from the dictionaries of `Result.to_list`."""
    return [Row(**entry) for entry in data]


class NotDifferentiable(AssertionError):
    """Raised by `check_differentiable`: all failures, and the report of `xpgrad.audit` on the first.

    Attributes
    ----------
    result : Result

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> def detached(x):
    ...     return x.detach() * x
    >>> try:
    ...     xp.testing.check_differentiable(detached, np.ones(2), backends="numpy", order=1, vmap=False, forward=False)
    ... except xp.testing.NotDifferentiable as error:
    ...     print([(row.check, row.outcome) for row in error.result.failures])
    [('gradient', 'failed')]
    """

    def __init__(self, result: Result, audit: str = "") -> None:
        self.result = result
        self.audit = audit
        failures = result.failures
        lines = [f"{result.function}: {len(failures)} of {len(result.rows)} checks failed"]
        alike: dict[tuple[str, int | None, str], list[str]] = {}
        for row in failures:
            alike.setdefault((row.check, row.argument, row.reason), []).append(row.backend)
        for (check, argument, reason), backends in alike.items():
            where = "" if argument is None else f", argument {argument}"
            lines.append(f"  {', '.join(backends)}, check `{check}`{where}: {reason}")
            lines.append(f"    expected: {CHECKS[check]}")
        if not failures:
            lines = [
                f"{result.function}: it ran on none of the backends, each of which lacks something",
                *map(str, result.of(check="runs")),
            ]
        lines.append("Switch a check off with skip=(...), or say known={check: reason} if it is to fail.")
        super().__init__("\n".join(lines) + (f"\n\n{audit}" if audit else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.result, self.audit)
