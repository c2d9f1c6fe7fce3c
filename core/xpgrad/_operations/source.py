"""Generated source: lines with their indentation, compiled so that a traceback can show them."""

from __future__ import annotations

from typing import Any

__all__ = ["Text"]


class Text:
    """Lines of generated source with their indentation, and the globals that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, head: str) -> Block:
        self(head)
        return Block(self)

    def compile(self, title: str, scope: dict[str, Any]) -> dict[str, Any]:
        """Execute the text in `scope`; linecache lets a traceback show its lines."""
        source = "\n".join(self.lines) + "\n"
        import linecache

        filename = f"<xpgrad {title}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), scope)  # noqa: S102 (our own text, as dataclasses does)
        return scope


class Block:
    def __init__(self, text: Text) -> None:
        self.text = text

    def __enter__(self) -> None:
        self.text.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.text.depth -= 1
