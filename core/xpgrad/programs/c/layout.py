"""Lay out texts in C: tables, lists of parameters and comments."""

from __future__ import annotations

import textwrap

__all__ = ["braces", "comment_text", "wrapped"]


def braces(head: str, texts: list[str]) -> str:
    """Print the definition of a table."""
    elements = ", ".join(texts)
    if len(elements) > 80:
        whole = ", ".join(text.replace(" ", "~") for text in texts)  # lines end between elements only
        lines = textwrap.fill(whole, 110, initial_indent="        ", subsequent_indent="        ", break_on_hyphens=False)
        elements = "\n" + lines.replace("~", " ") + "\n    "
    return f"{head}[{len(texts)}] = {{{elements}}};"


def wrapped(head: str, parts: list[str], tail: str) -> str:
    """Write `head`, the parameters in `parts` and `tail`, in lines of at most 100 characters."""
    lines, line = [], head
    for k, part in enumerate(parts):
        text = part + ("," if k < len(parts) - 1 else tail)
        if len(line) + len(text) > 100 and line.strip():
            lines.append(line.rstrip())
            line = "    "
        line += f"{text} "
    return "\n".join([*lines, line.rstrip()])


def comment_text(text: str) -> str:
    """Return a text that may stand in a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
