"""The contracts as pytest items, which `plugin` collects if the suite is asked for."""

from __future__ import annotations

import importlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from xpgrad_conformance.catalogue import CatalogueError
from xpgrad_conformance.contract import Contract, contracts
from xpgrad_conformance.engine import PROFILES, Result, counts_as_failure, tally, tell
from xpgrad_conformance.facade import Library, open_library
from xpgrad_conformance.known import KnownError, bundled, load
from xpgrad_conformance.selection import SelectionError, select, words

__all__ = ["ContractFile", "ContractItem", "NoModule", "state_of"]


class _State:
    """The state that the items of one pytest run share."""

    def __init__(self, config: pytest.Config) -> None:
        profile = config.getoption("--xpgrad-profile")
        if profile not in PROFILES:
            raise pytest.UsageError(f"--xpgrad-profile={profile!r}: expected one of {', '.join(PROFILES)}")
        self.profile, self.profile_name = PROFILES[profile], profile
        self.seed: int | None = config.getoption("--xpgrad-seed")
        self.exitfirst = bool(config.getoption("--xpgrad-exitfirst"))
        self.events: str | None = config.getoption("--xpgrad-events")
        self.label: str | None = config.getoption("--xpgrad-label")
        try:
            wanted = config.getoption("--xpgrad-contract") or []
            self.chosen = select(contracts(), wanted, config.getoption("--xpgrad-suite-version"))
            self.places = {word: n for n, word in enumerate(words(wanted))} if config.getoption("--xpgrad-as-listed") else {}
            self.known = [*bundled(), *(k for path in config.getoption("--xpgrad-known") or [] for k in load(path))]
        except (KnownError, SelectionError, CatalogueError) as exc:
            raise pytest.UsageError(str(exc)) from exc
        self.targets: list[str] = config.getoption("--xpgrad-backend") or []
        if not self.targets:
            raise pytest.UsageError("say which backend to check: --xpgrad-backend X (`xpgrad backends` lists those available)")
        self.libraries: dict[str, Library] = {}
        self.results: list[tuple[str, Result]] = []
        for target in self.targets:
            try:
                self.libraries[target] = open_library(target)
            except (ImportError, LookupError, ValueError) as exc:
                raise pytest.UsageError(f"--xpgrad-backend={target!r}: {exc}") from exc
            self.emit(self.libraries[target].about())

    def emit(self, event: dict[str, Any]) -> None:
        """Append an event to the file `--xpgrad-events`, which the process that started this one reads."""
        if self.events is not None:
            with open(self.events, "a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")

    def shuffle(self, items: list[pytest.Item]) -> None:
        """Reorder the contracts among the items, by the list or by the seed; the user's own tests keep their positions."""
        places = [i for i, item in enumerate(items) if isinstance(item, ContractItem)]
        mine = [item for item in items if isinstance(item, ContractItem)]
        if self.places:
            mine.sort(key=lambda item: self.places.get(item.contract.id, len(self.places)))
        elif self.seed is not None:
            mine = random.Random(self.seed).sample(mine, len(mine))
        for place, item in zip(places, mine):
            items[place] = item

    def summarise(self, terminal: Any) -> None:
        """Print, for each target, how many contracts ended with each status, and the reasons why contracts or cases did not run."""
        for target in self.targets:
            counts = Counter(result.status for t, result in self.results if t == target)
            terminal.section(f"xpgrad conformance: {target}", sep="-")
            terminal.write_line(tally(counts))
            reasons = Counter(result.reason for t, result in self.results if t == target and result.status == "not run")
            for reason, n in reasons.most_common():
                terminal.write_line(f"NOT RUN {n:4d}  {reason}")
            for t, result in self.results:
                if t == target and result.left_out:
                    terminal.write_line(f"LEFT OUT  {result.id}: {result.left_out}")


def state_of(config: pytest.Config) -> _State:
    """Return the state that the items of this run share; the first call makes it.

    Raises
    ------
    pytest.UsageError
        If a backend, profile, contract or file does not exist.
    """
    if not hasattr(config, "_xpgrad_conformance"):
        config._xpgrad_conformance = _State(config)  # type: ignore[attr-defined]
    state: _State = config._xpgrad_conformance  # type: ignore[attr-defined]
    return state


class NoModule(pytest.File):
    """An empty file, collected in place of the module that pytest would otherwise make from one of the suite's files."""

    def collect(self) -> Iterator[Any]:
        return iter(())


class ContractFile(pytest.File):
    """The contracts of one module: one item for each contract and target."""

    def collect(self) -> Iterator[ContractItem]:
        state = state_of(self.config)
        module = importlib.import_module(f"xpgrad_conformance.contracts.{self.path.stem}").__name__
        for target in state.targets:
            for contract in state.chosen:
                if contract.module == module:
                    yield ContractItem.from_parent(self, name=f"{contract.id}[{target}]", contract=contract, target=target)


class ContractFailed(Exception):
    """A contract that passed where a failure was expected."""


class ContractItem(pytest.Item):
    """One contract on one target."""

    def __init__(self, *, contract: Contract, target: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.contract, self.target = contract, target

    def runtest(self) -> None:
        state = state_of(self.config)
        library = state.libraries[self.target]
        result, error = tell(self.contract, library, state.profile, state.emit, seed=state.seed, known=state.known)
        state.results.append((self.target, result))
        if state.exitfirst and counts_as_failure(result):
            self.session.shouldfail = f"{self.contract.id} failed, and the run was to stop there"
        if result.status == "not run":
            pytest.skip(result.reason)
        if result.status == "expected failure":
            pytest.xfail(result.reason)
        if result.status == "unexpected pass":
            raise ContractFailed(f"{self.contract.id}: {result.reason}")
        if error is not None:
            error.add_note(f"{self.contract.id} [{self.contract.rule.level}] on {self.target}: {self.contract.rule.rule}")
            if result.example:
                error.add_note(f"drawn: {result.example}")
            raise error

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, ContractFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style="short")

    def reportinfo(self) -> tuple[Any, int | None, str]:
        function = self.contract.function
        return self.path, None if function is None else function.__code__.co_firstlineno - 1, self.name
