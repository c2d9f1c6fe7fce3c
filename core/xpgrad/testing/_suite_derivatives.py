"""Check the derivatives of what another project's tests compute: a pytest plugin, which `suites` loads with ``--derivatives``.

A test is a function of the floating-point arrays that its module makes; its results are what its comparisons get. It runs as usual first.
Then `xpgrad.testing.examine` calls it with Tensors that require grad or have tangents, and at nearby points, and nothing is compared.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import xpgrad as xp
from xpgrad.autograd.graph import allow_mutation_on_saved_tensors
from xpgrad.testing._checking import examine
from xpgrad.testing._host import is_floating, is_symmetric, np, on_host, to_double
from xpgrad.testing._problem import outputs_of
from xpgrad.testing._results import FAILED
from xpgrad.testing._suite_comparisons import detach, replace_comparisons_of_numpy, replace_those_of_modules, tensors

#: The functions that make the arrays of tests.
_MAKERS = (xp.asarray, xp.arange, xp.full, xp.linspace, xp.ones, xp.zeros)
#: A test that takes more seconds is not checked, because it would run some thirty times.
_LIMIT = 1.0
#: Larger numbers count as infinite: their sums are, or nearly so.
_LARGEST = 1e300
#: How a check says that something has no derivative, that there are no differences, and that the point is at a kink.
_REFUSED = r"requires grad|\(graph leaves\) support the|would silently lose|is not known|NotImplementedError|CapabilityError"
_APART, _KINK = "differences are not finite", "there is a kink"
_NAN = "(gradient|second derivative) is not finite|(forward mode gives|reverse mode) -?(nan|inf)"
#: The warning where a value leaves the graph.
_WARNED = "leaves the graph"

_asarray = xp.asarray


class _Strays(Exception):
    """The test makes other arrays at a nearby point."""


class _First:
    """A run of a test as usual, which keeps the arrays that the test made."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.device = ""

    def make(self, made: Any) -> Any:
        """Return what a function of `_MAKERS` made."""
        self.arrays.append(on_host(made))
        self.device = str(made.device)
        return made


class _Again:
    """A further run, which puts given arrays in place of those that the test makes, and keeps the results."""

    def __init__(self, given: Sequence[Any]) -> None:
        self.given, self.results, self.comparing = iter(given), list[Any](), False

    def make(self, made: Any) -> Any:
        """Return a copy of the given array, into which the test may write."""
        given = next(self.given, None)
        if given is None or tuple(given.shape) != made.shape:
            raise _Strays
        return given.clone()


_run: _First | _Again | None = None


@contextlib.contextmanager
def _running(run: _First | _Again) -> Iterator[None]:
    global _run
    _run = run
    try:
        yield
    finally:
        _run = None


def _recorded(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes arrays, whose floating-point results for test modules are inputs of the test."""

    @functools.wraps(make)
    def call(*args: Any, **options: Any) -> Any:
        out = make(*args, **options)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if _run is None or not (".tests." in caller or caller.startswith("test_")) or any(True for _ in tensors(args[:1])):
            return out
        return _run.make(out) if isinstance(out, xp.Tensor) and out.dtype.differentiable and out.size else out

    return call


def _compared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a comparison or conversion whose first argument is a result of the test; at other points it need not be what is expected."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        run = _run
        if not isinstance(run, _Again) or run.comparing:
            return function(*args, **options)
        run.results += tensors(args[:1])  # NumPy's arrays are those that a conversion made of one
        run.comparing = True
        try:
            with contextlib.suppress(AssertionError):
                return function(*map(detach, args), **{name: detach(value) for name, value in options.items()})
        finally:
            run.comparing = False

    return call


def pytest_configure(config: pytest.Config) -> None:
    """Replace the functions before the tests import them."""
    for make in _MAKERS:
        setattr(xp, make.__name__, _recorded(make))
    replace_comparisons_of_numpy(_compared)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the comparisons and conversions in test modules."""
    replace_those_of_modules(items, _compared)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run a test, and then check its derivatives; note the outcome for `_suite_plugin`."""
    names = pyfuncitem._fixtureinfo.argnames
    body = functools.partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    first, generator, begin = _First(), np.random.get_state(), time.perf_counter()
    with _running(first):
        body()
    if time.perf_counter() - begin > _LIMIT:
        kind, reason = "slow", ""
    else:
        kind, reason = _Derivatives(body, first, generator).check()
    pyfuncitem.user_properties += [("derivatives", kind), ("reason", reason)]
    if kind == "wrong":
        pytest.fail(reason, pytrace=False)
    return True


class _Derivatives:
    """A test as a function of the arrays that it makes.

    Parameters
    ----------
    body : callable
        Runs the test.
    first : _First
        Its first run.
    generator : object
        The state of NumPy's global generator before that.
    """

    def __init__(self, body: Callable[[], Any], first: _First, generator: Any) -> None:
        self.body, self.arrays, self.device, self.generator = body, [to_double(a) for a in first.arrays], first.device, generator
        self.points = self.arrays  # with zeros where they are not differentiated
        self.inputs: list[Any] = list(map(_finite, self.arrays))  # where they are; None for everywhere
        self.outputs: list[Any] = []
        self.shapes: list[tuple[int, ...]] | None = None
        self.strayed = self.warned = self.single = False

    def check(self) -> tuple[str, str]:
        """Return the outcome, one of `DERIVATIVES`, and the reasons of one other than "right"."""
        if not self.arrays:
            return "nothing", ""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if not self._find_finite():
                    return "nothing", ""
                self.points = [a if keep is None else np.where(keep, a, 0) for a, keep in zip(self.arrays, self.inputs)]
                whole = all(keep is None for keep in (*self.inputs, *self.outputs))  # else tangents may be infinity times 0
                result = examine(
                    self, tuple(self.points), backends=self.device, vmap=False, mutation=True, forward=whole, skip="values",
                    symmetric=any(map(is_symmetric, self.points)),
                )  # fmt: skip
            except Exception as exc:  # noqa: BLE001 (whatever a test raises is the outcome)
                text = f"{type(exc).__name__}: {exc}"
                return "refused" if re.search(_REFUSED, text) else "strays", text
        failed = [row for row in result.rows if row.outcome == FAILED]
        if not failed:
            return ("constant" if any(row.outcome == "constant" for row in result.rows) else "right"), ""
        reason = "\n".join(f"{row.check}: {row.reason}" for row in failed)
        if self.strayed:
            return "strays", reason
        patterns = ""
        for kind, pattern in (("kink", _KINK), ("nan", _NAN), ("refused", _REFUSED), ("strays", _APART)):
            patterns += f"|{pattern}" if patterns else pattern
            if all(re.search(patterns, row.reason) for row in failed):
                return kind, reason
        return "warned" if self.warned else "single" if self.single else "wrong", reason

    def __call__(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """Run the test with Tensors in place of the arrays that it makes, and return its results."""
        if not all(isinstance(x, xp.Tensor) for x in given):
            raise _Strays  # the tests compare values with NumPy's themselves, and compute them with xpgrad's namespace
        run = _Again([self._keep(k, x) for k, x in enumerate(given)])
        np.random.set_state(self.generator)
        try:
            with _running(run), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.body()
            self.warned = self.warned or any(_WARNED in str(w.message) for w in caught)
            shapes = [tuple(np.shape(x)) for x in run.results]
            if shapes != (self.shapes or shapes):
                raise _Strays
        except BaseException as exc:
            moved = any(not np.array_equal(on_host(x), p, equal_nan=True) for x, p in zip(given, self.points))
            self.strayed = self.strayed or moved
            if isinstance(exc, (Exception, KeyboardInterrupt, SystemExit)):
                raise
            raise _Strays(str(exc)) from exc  # one of pytest's, such as a warning that was not given
        return tuple(_only(x, keep) for x, keep in zip(run.results, self.outputs or [None] * len(run.results)))

    def _keep(self, k: int, x: Any) -> Any:
        """Return the k-th array with its first values where it is not differentiated."""
        keep = self.inputs[k]
        return x if keep is None else xp.where(_like(keep, x), x, _like(self.arrays[k].astype(x.dtype.name), x))

    def _find_finite(self) -> bool:
        """Leave out results that are not finite, and the elements of inputs on which they depend; return whether anything is left."""
        leaves = [_asarray(a, device=self.device).requires_grad_() for a in self.arrays]
        with allow_mutation_on_saved_tensors():
            results = self(leaves)
            found = [on_host(r) for r in results]
            self.shapes = [a.shape for a in found]
            self.single = any(is_floating(a) and to_double(a) is not a for a in found)
            self.outputs = [_finite(a) if is_floating(a) else None for a in found]
            if any(keep is not None for keep in (*self.outputs, *self.inputs)):
                loss = outputs_of([_only(r, keep) for r, keep in zip(results, self.outputs)]).loss()
                if loss is not None and loss.requires_grad:
                    for k, g in enumerate(xp.autograd.grad(loss, leaves, allow_unused=True)):
                        self.inputs[k] = _finite(self.arrays[k] if g is None else self.arrays[k] + 0 * on_host(g))
        return any(is_floating(a) for a in found) and any(keep is None or keep.any() for keep in self.inputs)


def _finite(array: Any) -> Any:
    """Return which elements are finite; None if all are."""
    found = np.abs(array) < _LARGEST
    return None if found.all() else found


def _like(array: Any, x: Any) -> Any:
    return _asarray(array, device=x.device)


def _only(x: Any, keep: Any) -> Any:
    """Return a result with zeros where it is not finite."""
    return x if keep is None else xp.where(_like(keep, x), x, xp.zeros_like(x))
