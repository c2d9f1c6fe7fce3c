"""The conformance suite: contracts that check each rule of the catalogue, on any backend of xpgrad and on PyTorch itself.

Run it with the command ``xpgrad conformance --backend X`` or ``pytest --pyargs xpgrad_conformance --xpgrad-backend X``.
From Python: `check_backend`. In your own test file: `xpgrad_conformance.suite.ConformanceTests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xpgrad_conformance.report import Target

__all__ = ["check_backend"]


def check_backend(
    backend: str, *, profile: str = "default", only: Iterable[str] = (), known: Iterable[str] = (), seed: int | None = None,
    suite_version: str | None = None,
) -> Target:  # fmt: skip
    """Run the suite on a backend, in a separate process.

    Parameters
    ----------
    backend : str
        A backend or device, in the form that `xpgrad.Device` takes, or ``"pytorch"``.
    profile : str, optional
        ``"quick"``, ``"default"``, ``"ci"``, ``"thorough"`` or ``"certify"``.
    only : iterable of str, optional
        The contracts to run: ids, prefixes of ids, or letters of groups. Default: all.
    known : iterable of str, optional
        TOML files of expected failures.
    seed : int, optional
        Seed of the drawn cases and of the order of the contracts. Without it, both are the same each time.
    suite_version : str, optional
        Run only contracts that existed in this version of the suite, e.g. ``"0.1"``. Default: all.

    Returns
    -------
    Target
        The results: ``rows`` has one for each contract, ``conforms`` and ``failures`` summarise them, and ``cause`` says why if nothing
        could be run.

    Raises
    ------
    ValueError
        If a profile, a contract, a file or a version of the suite does not exist.
    """
    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.engine import PROFILES
    from xpgrad_conformance.known import load
    from xpgrad_conformance.report import Target
    from xpgrad_conformance.selection import select
    from xpgrad_conformance.session import Request, run

    if profile not in PROFILES:
        msg = f"profile={profile!r}: expected one of {', '.join(PROFILES)}"
        raise ValueError(msg)
    files = [str(path) for path in known]
    for path in files:
        load(path)
    request = Request(backend, backend, select(contracts(), only, suite_version), profile, seed, files)
    return Target.of(backend, backend, run(request))
