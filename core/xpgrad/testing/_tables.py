"""Tables of functions with their arguments, and a decorator that makes one pytest test per check and backend from them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xpgrad._basics.arguments import shown
from xpgrad.testing._checking import apply_known, as_function, audit_of, examine, known_of, name_of
from xpgrad.testing._options import devices_of
from xpgrad.testing._results import CHECKS, FAILED, LACKS, NOT_RUN, NotDifferentiable, Result


class Case:
    """A row of a table: a function, its arguments and options of `check_differentiable`.

    Attributes
    ----------
    function : callable
    args : tuple
    options : dict
        Options of `check_differentiable`.
    name : str
        The name in reports.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> row = xp.testing.Case(xp.sin, (np.ones(2),), {"order": 1})
    >>> row.function is xp.sin, row.options
    (True, {'order': 1})
    >>> row.has_run("numpy")
    False
    >>> row.examine("numpy").passed
    True
    >>> row.has_run("numpy")
    True
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        self.function: Callable[..., Any] = as_function(function, "case")
        self.args: tuple[Any, ...] = args
        self.options: dict[str, Any] = dict(options)
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            msg = f"case: there is no option {unknown[0]!r}; the options are those of check_differentiable: {', '.join(_OPTIONS)}"
            raise TypeError(msg)
        self.name: str = str(self.options.pop("name", None) or name_of(function))
        self._found: dict[str, Result] = {}

    def has_run(self, backend: str) -> bool:
        """Return whether the outcomes on a backend are known.

        Parameters
        ----------
        backend : str
            The name of a backend or a device, such as `numpy`.

        Returns
        -------
        bool
            True after `examine` of this backend.

        See Also
        --------
        xpgrad.testing.Case
        """
        return backend in self._found

    def examine(self, backend: str) -> Result:
        """Return all outcomes on a backend, which are computed once.

        Parameters
        ----------
        backend : str

        Returns
        -------
        Result

        Raises
        ------
        TypeError, ValueError
            As for `xpgrad.testing.examine`.
        BackendNotFoundError, BackendLoadError
            The backend is not installed, or does not load.

        See Also
        --------
        xpgrad.testing.Case
        """
        if backend not in self._found:
            options = {**self.options, "backends": [backend], "known": None, "name": self.name}
            self._found[backend] = examine(self.function, *self.args, **options)
        return self._found[backend]


_OPTIONS = tuple(name for name, p in inspect.signature(examine).parameters.items() if p.kind is p.KEYWORD_ONLY)


def case(function: Callable[..., Any], *args: Any, **options: Any) -> Case:
    """Make a row of a table for `parametrize_with_checks`.

    Parameters
    ----------
    function : callable
    *args : object
        Its arguments.
    **options : object
        Options of `check_differentiable`, e.g. ``argnums=0`` or ``known={"vmap": "it asks for values"}``.

    Returns
    -------
    Case

    Raises
    ------
    TypeError
        An option does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> table = [xp.testing.case(xp.sin, np.ones(2)), xp.testing.case(xp.linalg.det, np.eye(2), skip="vmap")]
    >>> [row.name for row in table]
    ['sin', 'det']
    >>> table[1].options
    {'skip': 'vmap'}
    """
    return Case(function, args, options)


class OneCheck:
    """One check of one function on one backend: the argument that a parametrized test calls.

    Attributes
    ----------
    case : Case
    backend, check : str
    """

    def __init__(self, one: Case, backend: str, check: str) -> None:
        self.case, self.backend, self.check = one, backend, check

    @property
    def result(self) -> Result:
        """The outcomes of this check, one row per argument."""
        return Result(self.case.name, self.case.examine(self.backend).of(check=self.check))

    def __call__(self) -> None:
        """Run the check; skip the test if an earlier check failed.

        Raises
        ------
        NotDifferentiable
            The check fails.
        """
        __tracebackhide__ = True  # the message suffices
        found = self.result
        if any(row.outcome == FAILED for row in found.rows):
            awaited = _expected_failure(self.case.options.get("known") or {}, self.backend, self.check)[0] is not None
            raise NotDifferentiable(found, "" if awaited else audit_of(self.case.function, self.case.args, found))
        unrun = [row for row in found.rows if row.outcome in (LACKS, NOT_RUN)]
        if unrun and len(unrun) == len(found.rows):
            importlib.import_module("pytest").skip(unrun[0].reason)

    def known_result(self) -> Result:
        """Return the outcomes with known failures applied, for summaries; no rows if the check never ran."""
        if not self.case.has_run(self.backend):
            return Result(self.case.name, ())
        known = known_of(self.case.options.get("known"))
        return Result(self.case.name, tuple(apply_known(row, known) for row in self.result.rows))

    def __repr__(self) -> str:
        return f"{self.case.name}-{self.backend}-{self.check}"


def parametrize_with_checks(
    table: Iterable[Case | Sequence[Any]], *, backends: str | Iterable[str] = "all", checks: Iterable[str] | None = None
) -> Callable[[Any], Any]:
    """Make a pytest test of each check of each function of a table on each backend, as scikit-learn does for estimators.

    Parameters
    ----------
    table : iterable
        Rows made by `case`, or ``(function, args)``. The `known` failures of a row must fail: passing is a failure.
    backends : str or iterable of str
        The backends for rows that do not name any; ``"all"`` for every backend that is ready when the tests are collected, or for those
        of pytest's option ``--differentiability-backends``.
    checks : iterable of str, optional
        Names of checks (of `CHECKS`). Default: all that a row does not switch off.

    Returns
    -------
    callable
        A decorator for a test with the parameter `check`, which the test calls.

    Raises
    ------
    ImportError
        pytest is not installed.
    TypeError, ValueError
        A row has another form, or a name does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> table = [xp.testing.case(xp.sin, np.ones(2)), xp.testing.case(xp.tan, np.ones(2))]
    >>> @xp.testing.parametrize_with_checks(table, backends="numpy", checks=["gradient"])
    ... def test_gradients(check):
    ...     check()
    >>> [parameter.id for parameter in test_gradients.pytestmark[0].args[1]]
    ['sin-numpy-gradient', 'tan-numpy-gradient']
    """
    pytest: Any = importlib.import_module("pytest")
    names = list(CHECKS) if checks is None else list(checks)
    if unknown := [c for c in names if c not in CHECKS]:
        msg = f"parametrize_with_checks: `checks` has no check {unknown[0]!r}; the checks: {', '.join(CHECKS)}"
        raise ValueError(msg)
    given = list(devices_of(_limited(backends)))
    parameters = []
    for row in table:
        one = _as_case(row)
        own = list(devices_of(_limited(one.options["backends"]))) if "backends" in one.options else given
        for backend in own:
            for check in names:
                if check in _switched_off(one.options):
                    continue
                reason, strict = _expected_failure(one.options.get("known") or {}, backend, check)
                marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=strict, raises=NotDifferentiable)]
                parameters.append(pytest.param(OneCheck(one, backend, check), id=f"{one.name}-{backend}-{check}", marks=marks))
    return pytest.mark.parametrize("check", parameters)


#: The backends that ``"all"`` stands for; None if these are all that are ready.
_limit: str | None = None


def limit_backends(names: str | None) -> None:
    """Let ``"all"`` in tables stand for these backends, separated by commas, which the plugin calls before tests are collected."""
    global _limit
    _limit = names


def _limited(backends: str | Iterable[str]) -> str | Iterable[str]:
    """Return the backends that are named, or for ``"all"`` those that the run is limited to."""
    return _limit if isinstance(backends, str) and backends == "all" and _limit is not None else backends


def _as_case(row: Any) -> Case:
    if isinstance(row, Case):
        return row
    if isinstance(row, (tuple, list)) and len(row) == 2 and isinstance(row[1], (tuple, list)):
        return Case(row[0], tuple(row[1]), {})
    msg = f"parametrize_with_checks: a row must be `case(function, *args, ...)` or `(function, args)`, but got {shown(row)}"
    raise TypeError(msg)


def _switched_off(options: Mapping[str, Any]) -> set[str]:
    skip = options.get("skip", ())
    off = {skip} if isinstance(skip, str) else set(skip)
    off |= {name for name in ("vmap", "forward") if not options.get(name, True)}
    return off | ({"second"} if options.get("order", 2) == 1 else set())


def _expected_failure(known: Mapping[str, str], backend: str, check: str) -> tuple[str | None, bool]:
    """Return the reason of an expected failure or None, and whether the check must fail, which is so if it is named."""
    table = backend.partition(":")[0].partition("+")[0]
    named = known.get(f"{table}:{check}", known.get(check))
    return (named, True) if named is not None else (known.get(table), False)
