"""A contract: a rule's id and a function of a library (`facade.Library`) that raises if the library breaks the rule.

Every rule of the catalogue has exactly one contract, or one `unchecked` with the reason why it cannot have one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xpgrad_conformance.catalogue import Rule, rules

__all__ = ["Contract", "CatalogueError", "contract", "contracts", "unchecked"]


class CatalogueError(Exception):
    """Contracts and catalogue do not match."""


class Contract(NamedTuple):
    """The check of a rule.

    Attributes
    ----------
    id : str
        The rule's.
    function : callable, optional
        It takes a `Library` and what is drawn, and raises if the rule is broken. None where the rule cannot be checked.
    requires : tuple of str
        Capabilities that a target must have; where it declares that it lacks one, the contract does not run, and the report says so.
    draw : mapping of str to a Hypothesis strategy
        What Hypothesis draws for the other arguments: plain data that `repr` writes in full, so that a failing case can be pinned.
    reason : str
        The reason why it cannot be checked.
    module : str
        The module that it is written in.
    """

    id: str
    function: Callable[..., None] | None
    requires: tuple[str, ...] = ()
    draw: Mapping[str, Any] = {}
    reason: str = ""
    module: str = ""

    @property
    def rule(self) -> Rule:
        """The rule that is checked."""
        return rules()[self.id]


_found: dict[str, Contract] = {}


def _add(new: Contract) -> None:
    if new.id not in rules():
        raise CatalogueError(f"a contract is for {new.id!r}, which is not a rule of the catalogue; its ids are like 'BWD-01'")
    if new.id in _found:
        raise CatalogueError(f"there are two contracts for {new.id}, but each rule has one")
    _found[new.id] = new


def contract(rule: str, *, requires: str = "", draw: Mapping[str, Any] | None = None) -> Callable[[Any], Any]:
    """Make a function the contract of a rule.

    Parameters
    ----------
    rule : str
        Its id.
    requires : str
        Names of capabilities, separated by spaces.
    draw : mapping, optional
        Hypothesis strategies by the names of the arguments that they draw.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _add(Contract(rule, function, tuple(requires.split()), draw or {}, module=function.__module__))
        return function

    return register


def unchecked(rule: str, reason: str) -> None:
    """Say that a rule cannot be checked, and why; catalogue and reports repeat it."""
    _add(Contract(rule, None, reason=reason, module=sys._getframe(1).f_globals["__name__"]))


@functools.cache
def contracts() -> dict[str, Contract]:
    """Every contract by its rule's id, in the catalogue's order.

    Raises
    ------
    CatalogueError
        If a rule has none.
    """
    from xpgrad_conformance import contracts as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    if missing := [name for name in rules() if name not in _found]:
        raise CatalogueError(f"there is no contract for {', '.join(missing)}; write one, or say with `unchecked` why not")
    return {name: _found[name] for name in rules()}
