"""Expressions and lines of C: what is used once becomes part of the expression that uses it, and everything else gets a name."""

from __future__ import annotations

import math
from typing import Any

from xpgrad.programs.c.identifiers import Identifiers

__all__ = ["ATOM", "CHOICE", "COMPARISON", "LONG", "PRODUCT", "SUM", "UNARY", "Block", "Line", "Value"]

#: How tightly an expression binds; an operand that binds less tightly than its place demands is put in parentheses.
ATOM, UNARY, PRODUCT, SUM, COMPARISON, CHOICE = 9, 8, 7, 6, 5, 1
LONG = 56  # characters of an expression up to which it becomes part of another


class Value:
    """An expression.

    Parameters
    ----------
    parts : tuple
        Texts, and pairs of an operand and the tightness that its place demands.
    level : int
        How tightly it binds.
    kind : str
        The type in C, for a variable; "" if it needs none.
    """

    __slots__ = (
        "block",
        "expires",
        "is_free",
        "is_kept",
        "kind",
        "level",
        "name",
        "parts",
        "reads",
        "text",
        "time",
        "user",
        "uses",
        "wish",
    )

    def __init__(self, parts: tuple[Any, ...], level: int = ATOM, kind: str = "") -> None:
        self.parts: tuple[Any, ...] = parts
        self.level: int = level
        self.kind: str = kind
        self.uses: int = 0
        self.user: Any = None  # the last line or value that uses it
        self.block: int = 0
        self.time: int = 0
        self.reads: Any = None  # what it reads and a later line may overwrite
        self.is_free: bool = False  # whether to repeat it costs nothing
        self.is_kept: bool = False  # whether it has a name in any case
        self.wish: str | None = None  # the user's name
        self.name: str | None = None
        self.text: str | None = None
        self.expires: float = math.inf

    def operands(self) -> list[Value]:
        return [part[0] for part in self.parts if not isinstance(part, str)]

    def spelled(self, level: int = 0) -> str:
        """Return the name or the text, in parentheses if it binds less tightly than `level`."""
        if self.name is not None:
            return self.name
        text = self.text if self.text is not None else _joined(self.parts)
        return f"({text})" if self.level < level else text


class Line:
    """A line other than the declaration of a value."""

    __slots__ = ("block", "depth", "is_store", "parts", "time")

    def __init__(self, parts: tuple[Any, ...], depth: int, is_store: bool = False) -> None:
        self.parts: tuple[Any, ...] = parts
        self.depth: int = depth
        self.is_store: bool = is_store
        self.block: int = 0
        self.time: int = 0

    def operands(self) -> list[Value]:
        return [part[0] for part in self.parts if not isinstance(part, str)]


def _joined(parts: tuple[Any, ...]) -> str:
    return "".join(part if isinstance(part, str) else part[0].spelled(part[1]) for part in parts)


class Block:
    """The lines of a function, while it is written."""

    def __init__(self) -> None:
        self.items: list[tuple[Line | Value, int]] = []  # with how deep they are indented
        self.open: list[int] = [0]  # the blocks around the next line
        self.count: int = 0
        self.time: int = 0

    def add(self, item: Any) -> Any:
        """Add and return a line, or a value that may become the declaration of a variable."""
        item.block, item.time = self.open[-1], self.time
        for x in item.operands():
            x.uses += 1
            x.user = item
        self.items.append((item, len(self.open)))
        return item

    def put(self, *parts: Any, is_store: bool = False) -> Line:
        """Add and return a line; after one that writes to memory or a variable, what was read before may be outdated."""
        line: Line = self.add(Line(parts, len(self.open), is_store))
        if is_store:
            self.time += 1
        return line

    def enter(self, *parts: Any) -> Line:
        """Add and return a line that begins a block."""
        line = self.put(*parts)
        self.count += 1
        self.open.append(self.count)
        self.time += 1
        return line

    def leave(self) -> None:
        """End the innermost block."""
        self.open.pop()
        self.put("}")
        self.time += 1

    def drop_unused(self) -> None:
        """Remove values that nothing uses."""
        for item, _ in reversed(self.items):
            if isinstance(item, Value) and not item.uses:
                for x in item.operands():
                    x.uses -= 1
        self.items = [(item, depth) for item, depth in self.items if isinstance(item, Line) or item.uses]

    def lines(self, names: Identifiers, written: set[Any]) -> list[str]:
        """Return the text, with a declaration of each value that does not become part of another one.

        Parameters
        ----------
        names : Identifiers
            The names in use.
        written : set
            The memory and variables that the lines write to.
        """
        found = []
        for item, depth in self.items:
            indent = "    " * depth
            if isinstance(item, Line):
                found.append(f"{indent}{_joined(item.parts)}")
            else:
                text = item.text = _joined(item.parts)
                item.expires = min(
                    [item.time if item.reads in written else math.inf, *(x.expires for x in item.operands() if x.name is None)]
                )
                if not _is_operand(item, text):
                    item.name = names.new(item.wish) if item.wish else names.next_name("t")
                    found.append(f"{indent}const {item.kind} {item.name} = {text};")
        return found


def _is_operand(value: Value, text: str) -> bool:
    """Return whether a value becomes part of what uses it."""
    user = value.user
    if value.is_free and value.expires == math.inf:
        return True
    if value.is_kept or value.uses > 1 or user.block != value.block or user.time > value.expires or len(text) > LONG:
        return False
    return value.wish is None or (isinstance(user, Line) and user.is_store)
