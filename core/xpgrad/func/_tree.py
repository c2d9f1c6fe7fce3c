"""Flattening and rebuilding the nested tuples, named tuples, lists and dicts of values that transforms take and return.

Everything else is a leaf, None too; dicts keep their order, and a structure equals another if their containers and keys do.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Structure", "flatten", "tree_map", "unflatten"]


class Structure(NamedTuple):
    """The arrangement of leaves: the container, its keys (of dicts), the structures inside. A leaf has no container."""

    container: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """True for a single value."""
        return self.container is None


LEAF = Structure()


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` from left to right, and its structure."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Structure:
    cls: Any = tree.__class__
    if cls is tuple or cls is list or cls is deque or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return Structure(cls, (), tuple(_walk(t, leaves) for t in tree))
    if cls is dict or cls is OrderedDict or cls is defaultdict:
        return Structure(dict if cls is defaultdict else cls, tuple(tree), tuple(_walk(tree[key], leaves) for key in tree))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: Any) -> Any:
    """The tree of that structure with these leaves."""
    return _build(structure, iter(leaves))


def _build(structure: Structure, leaves: Any) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    parts = [_build(child, leaves) for child in structure.children]
    if structure.keys or container is dict or container is OrderedDict:
        return container(zip(structure.keys, parts))
    return container(*parts) if hasattr(container, "_fields") else container(parts)


def tree_map(function: Callable[..., Any], tree: Any) -> Any:
    """`tree` with every leaf replaced by ``function(leaf)``."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])
