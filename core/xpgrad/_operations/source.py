"""Generated source: indented lines, compiled so that a traceback can show them.

Names that the text itself uses, local and global, start with an underscore. Every other name is an operand, another argument of the
operation, or a value that a formula reads, so an operation may name its arguments freely.
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
        """Add one or more lines, keeping their indentation relative to the first."""
        lines = text.strip("\n").rstrip().split("\n")
        margin = len(lines[0]) - len(lines[0].lstrip())
        self.lines += [("    " * self.depth + line[margin:]).rstrip() for line in lines]

    def block(self, head: str) -> Block:
        """Add the head of a block; lines added inside the returned context manager belong to the block."""
        self(head)
        return Block(self)

    @property
    def source(self) -> str:
        """The source code."""
        return "\n".join(self.lines) + "\n"

    def compile(self, title: str, scope: dict[str, Any], declared: tuple[str, int] | None = None) -> dict[str, Any]:
        """Execute the text in `scope` and return it; tracebacks show each line followed by the line that `declared` the rule."""
        import linecache  # loads late: importing xpgrad generates nothing

        source, filename = self.source, f"<xpgrad {title}>"
        rule = linecache.getline(*declared).strip() if declared else ""
        shown = [f"{line}  # {rule}\n" if rule and line else f"{line}\n" for line in self.lines]
        linecache.cache[filename] = (len(source), None, shown, filename)
        exec(compile(source, filename, "exec"), scope)  # noqa: S102 (our own text, as dataclasses does)
        return scope


class Block:
    """Context manager that indents the lines below one head."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __enter__(self) -> None:
        self.text.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.text.depth -= 1


def tuple_of(expressions: Iterable[str]) -> str:
    """Return the source of a tuple of expressions."""
    inner = ", ".join(found := list(expressions))
    return f"({inner},)" if len(found) == 1 else f"({inner})"
