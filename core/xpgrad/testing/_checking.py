"""`check_differentiable` and `examine`: check one function on every backend."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xpgrad._backends.loading import backend_names
from xpgrad._basics.arguments import shown
from xpgrad._modes import state
from xpgrad._modes.switches import enable_grad
from xpgrad.func._tree import tree_map
from xpgrad.testing._checks import OneDevice
from xpgrad.testing._host import np, to_precision_of, to_tensor
from xpgrad.testing._options import devices_of, numbers_of, options_of
from xpgrad.testing._problem import Problem
from xpgrad.testing._reference import Reference, reference_for
from xpgrad.testing._results import CHECKS, CONSTANT, FAILED, KNOWN, PASSED, WRITES, NotDifferentiable, Result, Row


def check_differentiable(
    f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] | None = None, backends: str | Iterable[str] = "all", order: int = 2,
    symmetric: bool | int | Sequence[int] = False,
    vmap: bool = True, forward: bool = True, mutation: bool = False, skip: str | Iterable[str] = (),
    known: Mapping[str, str] | None = None, rtol: float | None = None, atol: float | None = None, seed: int = 0, name: str | None = None,
) -> Result:  # fmt: skip
    """Check that a function is differentiable on every backend, and raise every failure at once.

    Parameters
    ----------
    f : callable
        A function for the Array API. It is called with Tensors of each backend, and returns Tensors, or tuples, lists and dicts of them.
    *args : object
        The arguments. NumPy arrays and Tensors, also inside tuples, lists and dicts, become Tensors of each backend (in single precision
        if the backend has no double precision); other objects are passed unchanged.
    argnums : int or sequence of int, optional
        The arguments with respect to which to differentiate. Default: all that have real or complex floating-point arrays. A float that is
        named here becomes a 0-d array.
    backends : str or iterable of str
        Names of backends or devices, such as ``["numpy", "jax:cpu:0"]``; ``"all"`` for the first device of every backend that is ready.
    order : int
        1 checks gradients, 2 second derivatives as well.
    symmetric : bool, int or sequence of int
        The arguments that are symmetric matrices (Hermitian, if complex), such as covariances: all their directions are symmetric, too.
        True stands for every argument with such matrices.
    vmap, forward : bool
        Check `xpgrad.func.vmap`, and forward mode.
    mutation : bool
        Repeat a failed check inside `autograd.graph.allow_mutation_on_saved_tensors`, for functions that write into their temporaries.
        If it passes there, its outcome is ``"writes"``.
    skip : str or iterable of str
        Names of checks (of `CHECKS`) to leave out.
    known : mapping of str to str, optional
        Reasons of expected failures, by check (``"vmap"``), backend (``"jax"``) or both (``"jax:vmap"``). A check that passes unexpectedly
        is a failure.
    rtol, atol : float, optional
        The tolerances of all comparisons. By default each check has tolerances that depend on the precision; docs/testing-libraries.md
        lists them.
    seed : int
        The seed of the random directions.
    name : str, optional
        The name of the function in reports. Default: its own name.

    Returns
    -------
    Result
        The outcomes, one row per check, argument and backend.

    Raises
    ------
    NotDifferentiable
        An AssertionError with all failures, and the report of `xpgrad.audit` on the backend of the first.
    TypeError, ValueError
        There is nothing to differentiate, or an option is wrong.
    BackendNotFoundError, BackendLoadError
        A named backend is not installed, or does not load.

    Examples
    --------
    >>> import numpy as np
    >>> from xpgrad.testing import check_differentiable
    >>> def softplus(x):
    ...     return x.__array_namespace__().log1p(x.__array_namespace__().exp(x))
    >>> check_differentiable(softplus, np.linspace(-1.0, 1.0, 5), backends=["numpy"]).passed
    True
    """
    __tracebackhide__ = True  # pytest shows the message and the caller, which suffices
    result = examine(
        f, *args, argnums=argnums, backends=backends, order=order, symmetric=symmetric, vmap=vmap, forward=forward, mutation=mutation,
        skip=skip, known=known, rtol=rtol, atol=atol, seed=seed, name=name,
    )  # fmt: skip
    if not result.passed:
        raise NotDifferentiable(result, audit_of(f, args, result))
    return result


@state.restoring
def examine(
    f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] | None = None, backends: str | Iterable[str] = "all", order: int = 2,
    symmetric: bool | int | Sequence[int] = False,
    vmap: bool = True, forward: bool = True, mutation: bool = False, skip: str | Iterable[str] = (),
    known: Mapping[str, str] | None = None, rtol: float | None = None, atol: float | None = None, seed: int = 0, name: str | None = None,
) -> Result:  # fmt: skip
    """Check a function as `check_differentiable` does, and return the outcomes without raising for failures.

    Parameters
    ----------
    f, *args, argnums, backends, order, symmetric, vmap, forward, mutation, skip, known, rtol, atol, seed, name
        As for `check_differentiable`.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError, BackendNotFoundError, BackendLoadError
        As for `check_differentiable`.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> result = xp.testing.examine(lambda x: x.detach() * x, np.ones(2), backends="numpy", name="f")
    >>> result.passed
    False
    >>> sorted({row.check for row in result.failures})
    ['gradient']
    """
    as_function(f, "check_differentiable")
    options = options_of(order=order, vmap=vmap, forward=forward, mutation=mutation, skip=skip, rtol=rtol, atol=atol, seed=seed)
    problem = Problem(f, args, numbers_of(argnums, len(args)))
    problem.symmetric = problem.find_symmetric(symmetric if isinstance(symmetric, bool) else numbers_of(symmetric, len(args), "symmetric"))
    devices = devices_of(backends)
    expected = known_of(known)
    called = name_of(f) if name is None else name
    default = devices_of("numpy")["numpy"] if "numpy" in backend_names() else next(iter(devices.values()))
    references: dict[Any, tuple[Reference | None, str]] = {}
    rows: list[Row] = []
    for label, device in devices.items():
        points = [to_precision_of(p, device) for p in problem.points]
        key = tuple(p.dtype.name for p in points)
        found = references.get(key)
        if found is None or found[0] is None or found[0].device not in (None, default):
            found = references[key] = reference_for(problem, points, device, default)
        with enable_grad():
            rows += OneDevice(called, problem, label, device, *found, default, options).rows()
    return Result(called, tuple(apply_known(row, expected) for row in rows))


def as_function(f: Any, name: str) -> Callable[..., Any]:
    """Return `f`, checked to be callable.

    Raises
    ------
    TypeError
        It is not callable.
    """
    if not callable(f):
        msg = f"{name}: the function must be callable, but got {shown(f)}; give the function itself, then its arguments"
        raise TypeError(msg)
    return f


def name_of(f: Any) -> str:
    """Return the name of a function for reports; that of the wrapped function for a partial."""
    while isinstance(f, functools.partial):
        f = f.func
    return str(getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__).replace(".<locals>", "")


def known_of(known: Mapping[str, str] | None) -> dict[tuple[str | None, str | None], str]:
    """Return the reasons of expected failures by (backend, check), where None stands for any.

    Raises
    ------
    TypeError, ValueError
        A key names neither a backend nor a check, or a reason is missing.
    """
    found: dict[tuple[str | None, str | None], str] = {}
    if known is not None and not isinstance(known, Mapping):
        msg = f"check_differentiable: `known` must be a mapping of checks or backends to reasons, but got {shown(known)}"
        raise TypeError(msg)
    for key, reason in (known or {}).items():
        if not isinstance(key, str) or not isinstance(reason, str) or not reason:
            msg = f"check_differentiable: `known` maps names to reasons, which are not empty, but has {key!r}: {reason!r}"
            raise TypeError(msg)
        backend, _, check = (key, "", "") if key in backend_names() else ("", "", key) if ":" not in key else key.partition(":")
        if (check and check not in CHECKS) or not (check or backend):
            msg = f"check_differentiable: `known` has {key!r}, which is not a check ({', '.join(CHECKS)}), a backend, or 'BACKEND:CHECK'"
            raise ValueError(msg)
        found[backend or None, check or None] = reason
    return found


def apply_known(row: Row, known: dict[tuple[str | None, str | None], str]) -> Row:
    """Apply expected failures to a row: a known failure gets the outcome "known", and a known failure that passes becomes a failure."""
    if not known:
        return row
    table = row.backend.partition(":")[0].partition("+")[0]
    for key in ((table, row.check), (None, row.check), (table, None)):
        if key not in known:
            continue
        if row.outcome == FAILED:
            return Row(row.function, row.argument, row.backend, row.check, KNOWN, f"{known[key]} ({row.reason})")
        if row.outcome in (PASSED, WRITES, CONSTANT) and key[1] is not None:
            return Row(
                row.function, row.argument, row.backend, row.check, FAILED, f"it passes, but `known` says: {known[key]}; remove that"
            )
    return row


def audit_of(f: Callable[..., Any], args: tuple[Any, ...], result: Result) -> str:
    """Return the report of `xpgrad.audit` on the backend that failed first, or the audit's own error; empty if nothing failed."""
    if not result.failures:
        return ""
    (device,) = devices_of([result.failures[0].backend]).values()
    given = tree_map(lambda leaf: to_tensor(leaf, device) if isinstance(leaf, np.ndarray) else leaf, args)
    try:
        # The audit is imported only now, by its public name, because most runs do not need it.
        return str(importlib.import_module("xpgrad").audit(f, *given, checks=("paths", "kinks", "nonfinite", "accuracy")))
    except Exception as exc:  # noqa: BLE001 (see above)
        return f"(xpgrad.audit could not report: {type(exc).__name__}: {exc})"
