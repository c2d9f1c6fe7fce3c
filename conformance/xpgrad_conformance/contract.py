"""Contracts: each is the id of a rule and a function that takes a library (`facade.Library`) and raises if it breaks the rule.

Every rule of the catalogue has exactly one contract, or one call of `unchecked` that says why it cannot be checked.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xpgrad_conformance.catalogue import CatalogueError, Rule, rules

__all__ = ["Contract", "contract", "contracts", "unchecked"]


class Contract(NamedTuple):
    """The check of a rule.

    Attributes
    ----------
    id : str
        The id of the rule.
    function : callable, optional
        Takes a `Library` and the drawn arguments, and raises if the rule is broken. None if the rule cannot be checked.
    requires : tuple of str
        Capabilities that a target must have. If it declares that it lacks one, the contract does not run, and the report says so.
    draw : mapping of str to a Hypothesis strategy
        The strategies of the drawn arguments, by name. They draw data that `repr` writes in full, so that a failing case can be pinned.
    reason : str
        The reason if the rule cannot be checked.
    module : str
        The module that defines the contract.
    """

    id: str
    function: Callable[..., None] | None
    requires: tuple[str, ...] = ()
    draw: Mapping[str, Any] = {}
    reason: str = ""
    module: str = ""

    @property
    def rule(self) -> Rule:
        """The rule that this contract checks."""
        return rules()[self.id]


_found: dict[str, Contract] = {}


def _add(new: Contract) -> None:
    if new.id not in rules():
        raise CatalogueError(f"a contract is for {new.id!r}, which is not a rule of the catalogue; its ids are like 'BWD-01'")
    if new.id in _found:
        raise CatalogueError(f"there are two contracts for {new.id}, but each rule has one")
    _found[new.id] = new


def contract(rule: str, *, requires: str = "", draw: Mapping[str, Any] | None = None) -> Callable[[Any], Any]:
    """Return a decorator that registers a function as the contract of a rule.

    Parameters
    ----------
    rule : str
        The id of the rule.
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
    """Declare that a rule cannot be checked, with the reason that the catalogue and the reports show."""
    _add(Contract(rule, None, reason=reason, module=sys._getframe(1).f_globals["__name__"]))


@functools.cache
def contracts() -> dict[str, Contract]:
    """Return every contract by the id of its rule, in the catalogue's order.

    Raises
    ------
    CatalogueError
        If a rule has no contract.
    """
    from xpgrad_conformance import contracts as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    if missing := [name for name in rules() if name not in _found]:
        raise CatalogueError(f"there is no contract for {', '.join(missing)}; write one, or say with `unchecked` why not")
    return {name: _found[name] for name in rules()}
