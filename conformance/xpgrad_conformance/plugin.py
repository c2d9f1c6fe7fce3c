"""The pytest plugin: ``pytest --pyargs xpgrad_conformance --xpgrad-backend X``; ``-p xpgrad_conformance.plugin`` if autoload is off.

It collects the contracts' modules itself, whatever the user's `python_files` and similar options say. In any other run it does nothing.
It imports only the standard library, because pytest loads it in every project that has the suite installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONTRACTS = HERE / "contracts"

_conflict: list[str] = []


def pytest_addoption(parser: Any) -> None:
    import pytest

    pytest.register_assert_rewrite("xpgrad_conformance.contracts")
    group = parser.getgroup("xpgrad", "xpgrad's conformance suite")
    options: list[tuple[str, dict[str, Any]]] = [
        ("--xpgrad-backend", {"action": "append", "default": [], "metavar": "X", "help": "a backend or device to check, or 'pytorch'"}),
        ("--xpgrad-profile", {"default": "default", "help": "quick, default, ci, thorough or certify"}),
        ("--xpgrad-seed", {"type": int, "default": None, "help": "draw other cases, in another order (without it, the same each time)"}),
        ("--xpgrad-known", {"action": "append", "default": [], "metavar": "FILE", "help": "a TOML file of expected failures"}),
        (
            "--xpgrad-contract",
            {"action": "append", "default": [], "metavar": "ID", "help": "only these: an id, a prefix, a group's letter, file:PATH"},
        ),
        ("--xpgrad-suite-version", {"default": None, "metavar": "X.Y", "help": "only contracts that existed in this version of the suite"}),
        ("--xpgrad-exitfirst", {"action": "store_true", "help": "stop at the first failure that counts"}),
        ("--xpgrad-as-listed", {"action": "store_true", "help": "in the order of --xpgrad-contract, not in the catalogue's"}),
        ("--xpgrad-label", {"default": None, "help": "what reports call the target"}),
        ("--xpgrad-events", {"default": None, "metavar": "FILE", "help": "append a line of JSON for each contract"}),
    ]
    for name, keywords in options:
        try:
            group.addoption(name, **keywords)
        except ValueError:
            _conflict.append(name)  # another plugin has this option; `pytest_collection` reports it if the suite is asked for


def pytest_collection(session: Any) -> None:
    """Report mistakes in the options before anything is collected, and only once."""
    if any("xpgrad_conformance" in str(word) for word in session.config.args):
        import pytest

        if _conflict:
            msg = (
                f"another plugin has the options {', '.join(_conflict)}; disable it (`-p no:NAME`), or use the command "
                "`xpgrad conformance`, which loads no other"
            )
            raise pytest.UsageError(msg)
        from xpgrad_conformance._items import state_of

        state_of(session.config)


def pytest_collect_file(file_path: Path, parent: Any) -> Any:
    if file_path.parent != CONTRACTS or file_path.suffix != ".py" or file_path.name.startswith("_"):
        return None
    from xpgrad_conformance._items import ContractFile

    return ContractFile.from_parent(parent, path=file_path)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Prevent pytest from collecting the suite's files as test modules, whatever the user's `python_files` says."""
    if not module_path.is_relative_to(HERE):
        return None
    from xpgrad_conformance._items import NoModule

    return NoModule.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Reorder the contracts by the seed: a contract's result must not depend on which one ran before it."""
    state = getattr(config, "_xpgrad_conformance", None)
    if state is not None:
        state.shuffle(items)


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    state = getattr(config, "_xpgrad_conformance", None)
    if state is not None:
        state.summarise(terminalreporter)
