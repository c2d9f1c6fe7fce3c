"""The suite as a test class: a third party's test file only needs a subclass of `ConformanceTests` that names its backend."""

from __future__ import annotations

from typing import ClassVar

import pytest

from xpgrad_conformance.contract import contracts
from xpgrad_conformance.engine import PROFILES, execute
from xpgrad_conformance.facade import Library, open_library
from xpgrad_conformance.known import bundled, find, load
from xpgrad_conformance.selection import select

__all__ = ["ConformanceTests"]

pytest.register_assert_rewrite("xpgrad_conformance.contracts")


class ConformanceTests:
    """A test class with one test per contract.

    Examples
    --------
    A complete test file::

        from xpgrad_conformance.suite import ConformanceTests

        class TestConformance(ConformanceTests):
            backend = "mine"
            known = ["tests/expected_failures.toml"]

    Attributes
    ----------
    backend : str
        The backend or device to check.
    profile : str
        How thoroughly to check it: a key of `engine.PROFILES`.
    known : sequence of str
        TOML files of expected failures.
    suite_version : str, optional
        Run only contracts that existed in this version of the suite, so that a newer suite adds no tests. Default: all.
    """

    backend: ClassVar[str] = ""
    profile: ClassVar[str] = "default"
    known: ClassVar[list[str]] = []
    suite_version: ClassVar[str | None] = None
    _libraries: ClassVar[dict[str, Library]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize the test with the contracts."""
        if "contract" in metafunc.fixturenames:
            chosen = select(contracts(), (), self.suite_version)
            metafunc.parametrize("contract", chosen, ids=[contract.id for contract in chosen])

    def test_contract(self, contract) -> None:  # type: ignore[no-untyped-def]
        """Run one contract on the backend."""
        if self.backend not in self._libraries:
            self._libraries[self.backend] = open_library(self.backend)
        library = self._libraries[self.backend]
        every = [*bundled(), *(k for path in self.known for k in load(path))]
        expected = find(every, contract.id, self.backend, library.capabilities)
        result, error = execute(contract, library, PROFILES[self.profile], known=expected)
        if result.status == "not run":
            pytest.skip(result.reason)
        if result.status == "expected failure":
            pytest.xfail(result.reason)
        if result.status == "unexpected pass":
            pytest.fail(f"{contract.id}: {result.reason}", pytrace=False)
        if error is not None:
            error.add_note(f"{contract.id} [{contract.rule.level}] on {self.backend}: {contract.rule.rule}")
            raise error
