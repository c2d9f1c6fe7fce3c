"""Runs one contract on one library and reports the result; both the command line and pytest use it."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xpgrad_conformance.catalogue import rules
from xpgrad_conformance.contract import Contract
from xpgrad_conformance.facade import Cases, Library, NotRun, find_declared_reason
from xpgrad_conformance.known import Known, find

__all__ = ["PROFILES", "Profile", "Result", "STATUSES", "counts_as_failure", "execute", "tally", "tell"]

STATUSES = ("passed", "failed", "expected failure", "unexpected pass", "not run")
#: The plurals of those that have one.
_PLURALS = {"expected failure": "expected failures", "unexpected pass": "unexpected passes"}


class Profile(NamedTuple):
    """How thoroughly a run checks each contract.

    Attributes
    ----------
    examples : int
        The number of cases that Hypothesis draws for a contract with drawn arguments.
    limit : float
        Time limit for one contract in seconds; the command line enforces it.
    certifies : bool
        Whether a contract that cannot run here fails, except one that needs a missing capability or cannot be checked at all.
    shrinks : bool
        Whether Hypothesis looks for the smallest failing case; planted faults only need to know that one fails.
    """

    examples: int
    limit: float
    certifies: bool = False
    shrinks: bool = True


PROFILES = {
    "quick": Profile(2, 60.0),
    "default": Profile(20, 60.0),
    "ci": Profile(40, 120.0),
    "thorough": Profile(500, 900.0),
    "certify": Profile(200, 900.0, certifies=True),
    "mutants": Profile(2, 60.0, shrinks=False),
}


class Result(NamedTuple):
    """The result of a contract.

    Attributes
    ----------
    id : str
        The id of the rule.
    status : str
        One of `STATUSES`.
    reason : str
        The reason why the contract did not run, or why its failure was expected.
    message : str
        The error's type and message.
    trace : str
        The lines of the contract that led to the error.
    example : str
        The arguments drawn in the smallest failing case, as the `repr` of a dict.
    kind : str
        The kind of an expected failure, or of a contract that did not run (``"unchecked"``, ``"capability"``, ``"not here"``).
    seconds : float
        The time that the contract took.
    left_out : str
        How many cases of a contract that ran were left out, since they need what the target declares missing, and which.
    """

    id: str
    status: str
    reason: str = ""
    message: str = ""
    trace: str = ""
    example: str = ""
    kind: str = ""
    seconds: float = 0.0
    left_out: str = ""


def counts_as_failure(result: Result) -> bool:
    """Return whether a contract failed, or passed although a failure was expected. NB: INFO contracts are shown but do not count."""
    return result.status in ("failed", "unexpected pass") and rules()[result.id].level != "INFO"


def tally(counts: Counter[str]) -> str:
    """Return the numbers of contracts with each status as text, the most frequent status first."""
    return ", ".join(f"{n} {status if n == 1 else _PLURALS.get(status, status)}" for status, n in counts.most_common()) or "nothing ran"


def execute(contract: Contract, library: Library, profile: Profile, *, seed: int | None = None, known: Known | None = None,
            replay: dict[str, Any] | None = None) -> tuple[Result, BaseException | None]:  # fmt: skip
    """Run a contract on a library.

    Parameters
    ----------
    contract : Contract
        The contract to run.
    library : Library
        The library that it checks.
    profile : Profile
        How many cases to draw.
    seed : int, optional
        The seed of the drawn cases; without it, they are the same every time.
    known : Known, optional
        The expected failure.
    replay : dict, optional
        The arguments of the only case to run, instead of drawn ones.

    Returns
    -------
    result : Result
        The result.
    error : BaseException or None
        The error that made the contract fail, for printing; None if it passed or did not run.
    """
    if contract.function is None:
        return Result(contract.id, "not run", contract.reason, kind="unchecked"), None
    for capability in contract.requires:
        if not library.capabilities[capability]:
            return Result(contract.id, "not run", f"declared: no `{capability}`", kind="capability"), None
    begin = time.perf_counter()
    library.cases = cases = Cases()
    drawn: dict[str, Any] = {}
    error: Exception | None = None
    try:
        with library.running(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # contracts check for the warnings that they expect
            pinned = known.drawn if known is not None else None
            for case in [replay] if replay is not None else [pinned] if pinned is not None else []:
                drawn.update(case)
                contract.function(library, **case)
            if replay is None:
                _draw(contract, library, profile, seed, drawn)
    except Exception as exc:  # noqa: BLE001 (any error means that the contract failed)
        reason = find_declared_reason(exc)
        if reason is not None or isinstance(exc, NotRun):
            seconds = time.perf_counter() - begin
            if reason is None and profile.certifies:
                return Result(contract.id, "failed", message=f"it did not run, which `certify` does not allow: {exc}", seconds=seconds), exc
            kind = "not here" if reason is None else "capability"
            return Result(contract.id, "not run", reason or str(exc), kind=kind, seconds=seconds), None
        error = exc
    seconds = time.perf_counter() - begin
    left_out = cases.describe_left_out()
    if error is None:
        if left_out and not cases.ran:
            return Result(contract.id, "not run", "; ".join(cases.left_out), kind="capability", seconds=seconds), None
        if known is not None and known.strict:
            reason = f"expected to fail ({known.kind}): {known.reason}; remove the entry"
            return Result(contract.id, "unexpected pass", reason, kind=known.kind, seconds=seconds, left_out=left_out), None
        return Result(contract.id, "passed", seconds=seconds, left_out=left_out), None
    status, reason, kind = ("failed", "", "") if known is None else ("expected failure", known.reason, known.kind)
    example = repr(drawn) if drawn else ""
    return Result(contract.id, status, reason, _format_error(error), _find_trace(error), example, kind, seconds, left_out), error


def tell(contract: Contract, library: Library, profile: Profile, emit: Callable[[dict[str, Any]], None], *, seed: int | None,
         known: Sequence[Known]) -> tuple[Result, BaseException | None]:  # fmt: skip
    """Run a contract as `execute` does; `emit` is told when it starts, and its result."""
    emit({"start": contract.id})
    result, error = execute(contract, library, profile, seed=seed, known=find(known, contract.id, library.label, library.capabilities))
    emit({"result": result._asdict()})
    return result, error


def _draw(contract: Contract, library: Library, profile: Profile, seed: int | None, drawn: dict[str, Any]) -> None:
    """Run a contract on the cases that Hypothesis draws; afterwards `drawn` has the arguments of the smallest failing case."""
    function = contract.function
    assert function is not None
    if not contract.draw:
        drawn.clear()
        function(library)
        return
    import hypothesis

    def body(**case: Any) -> None:
        drawn.clear()
        drawn.update(case)
        with library.cases.run(case):
            function(library, **case)

    check = hypothesis.HealthCheck
    phase = hypothesis.Phase
    settings = hypothesis.settings(
        max_examples=profile.examples,
        phases=list(phase) if profile.shrinks else [phase.explicit, phase.generate],
        deadline=None,
        database=None,
        derandomize=seed is None,
        report_multiple_bugs=False,
        suppress_health_check=[check.too_slow, check.filter_too_much, check.data_too_large, check.large_base_example],
    )
    test: Callable[[], None] = settings(hypothesis.given(**contract.draw)(body))
    if seed is not None:
        test = hypothesis.seed(seed)(test)
    test()


def _format_error(error: BaseException) -> str:
    """Return the error's type and message and the labels of its cases, shortened to 3,000 characters."""
    notes = [n for n in getattr(error, "__notes__", ()) if n.startswith("in the case")]
    text = "\n".join([f"{type(error).__name__}: {error}", *notes])
    return text if len(text) <= 3000 else text[:2900] + " ..."


def _find_trace(error: BaseException) -> str:
    """Return the lines of the contract in an error's traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/contracts/" in f.filename.replace("\\", "/")]
    return "\n".join(f"{f.filename.replace(chr(92), '/').rpartition('/')[2]}:{f.lineno}: {f.line}" for f in frames)
