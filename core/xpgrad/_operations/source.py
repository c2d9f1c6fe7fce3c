"""Generated source: lines with their indentation, compiled so that a traceback can show them.

The names that the text uses for itself, local and global, start with an underscore: every other name in it is an operand, another argument
of the operation, or what a formula reads. So an operation may name its arguments as it likes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Text:
    """Lines of generated source with their indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, text: str) -> None:
        """Add a line, or several: what they are indented beyond the first of them stays."""
        lines = text.strip("\n").rstrip().split("\n")
        margin = len(lines[0]) - len(lines[0].lstrip())
        self.lines += [("    " * self.depth + line[margin:]).rstrip() for line in lines]

    def block(self, head: str) -> Block:
        """Add the head of a block, whose lines are added within ``with``."""
        self(head)
        return Block(self)

    @property
    def source(self) -> str:
        """All lines, as Python reads them."""
        return "\n".join(self.lines) + "\n"

    def compile(self, title: str, scope: dict[str, Any], declared: tuple[str, int] | None = None) -> dict[str, Any]:
        """Execute the text in `scope`; linecache lets a traceback show its lines, and behind each the line that `declared` the rule."""
        import linecache  # loads late: importing xpgrad generates nothing

        source, filename = self.source, f"<xpgrad {title}>"
        rule = linecache.getline(*declared).strip() if declared else ""
        shown = [f"{line}  # {rule}\n" if rule and line else f"{line}\n" for line in self.lines]
        linecache.cache[filename] = (len(source), None, shown, filename)
        exec(compile(source, filename, "exec"), scope)  # noqa: S102 (our own text, as dataclasses does)
        return scope


class Block:
    """The lines below one head."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __enter__(self) -> None:
        self.text.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.text.depth -= 1


def tuple_of(expressions: Iterable[str]) -> str:
    """The tuple of some expressions."""
    inner = ", ".join(found := list(expressions))
    return f"({inner},)" if len(found) == 1 else f"({inner})"
