"""Flatten and rebuild nested tuples, named tuples, lists, dicts and dataclasses that transforms take and return.

Everything else is a leaf, None included. Dicts keep their order. Two structures are equal if their containers and keys are. The children
of a dataclass are its fields that hold Tensors or arrays, also in containers; the others pass through unchanged.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._basics.records import field_names, record
from xpgrad._operations.lift import is_constant


class Structure(NamedTuple):
    """The arrangement of leaves: a container, its keys (for dicts and dataclasses) and the nested structures. A leaf has no container."""

    container: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()
    passed: Any = None

    @property
    def is_leaf(self) -> bool:
        """Whether this is a single value."""
        return self.container is None


class Passed(dict[str, Any]):
    """The fields of a dataclass that are carried along unchanged.

    All instances compare equal, so that two trees that differ only in these fields have the same structure.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passed)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(Passed)


LEAF = Structure()


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree` from left to right, and its structure."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Structure:
    cls: Any = tree.__class__
    if isinstance(tree, TensorBase):
        leaves.append(tree)
        return LEAF
    if cls is tuple or cls is list or cls is deque or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return Structure(cls, (), tuple(_walk(t, leaves) for t in tree))
    if cls is dict or cls is OrderedDict or cls is defaultdict:
        return Structure(dict if cls is defaultdict else cls, tuple(tree), tuple(_walk(tree[key], leaves) for key in tree))
    if (names := field_names(cls)) is not None:
        fields = {name: getattr(tree, name) for name in names if hasattr(tree, name)}
        inside = tuple(name for name, value in fields.items() if holds_tensors(value))
        if inside:
            passed = Passed((name, value) for name, value in fields.items() if name not in inside)
            return Structure(cls, inside, tuple(_walk(fields[name], leaves) for name in inside), passed)
    leaves.append(tree)
    return LEAF


def holds_tensors(value: Any) -> bool:
    """Return whether a value is a Tensor or an array, or a container with one inside."""
    if isinstance(value, TensorBase) or is_constant(value):
        return True
    leaves: list[Any] = []
    return not _walk(value, leaves).is_leaf and any(isinstance(leaf, TensorBase) or is_constant(leaf) for leaf in leaves)


def unflatten(structure: Structure, leaves: Any) -> Any:
    """Return the tree of that structure with these leaves."""
    leaves = iter(leaves)
    return next(leaves) if structure.container is None else _build(structure, leaves)


def _build(structure: Structure, leaves: Any) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    parts = [_build(child, leaves) for child in structure.children]
    if structure.passed is not None:
        return record(container, {**structure.passed, **dict(zip(structure.keys, parts))})
    if structure.keys or container is dict or container is OrderedDict:
        return container(zip(structure.keys, parts))
    return container(*parts) if hasattr(container, "_fields") else container(parts)


def tree_map(function: Callable[..., Any], tree: Any) -> Any:
    """Return `tree` with every leaf replaced by ``function(leaf)``."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])
