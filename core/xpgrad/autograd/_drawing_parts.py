"""The vertices, arrows and colours of a drawn graph, shared by the text formats and the SVG."""

from __future__ import annotations

from typing import NamedTuple

#: The fill and border colours by kind of box, chosen for dark text, and for light and dark pages.
COLOURS = {
    "leaf": ("#dbeafe", "#2563eb"),
    "operation": ("#f3f4f6", "#6b7280"),
    "custom": ("#fef3c7", "#b45309"),
    "result": ("#dcfce7", "#15803d"),
    "broken": ("#fee2e2", "#dc2626"),  # where an audit saw a value leave the graph
}
EDGE_COLOUR, BROKEN_COLOUR = "#808080", "#dc2626"
TEXT_COLOUR = "#111827"


class Vertex(NamedTuple):
    """A node of the graph as text.

    Attributes
    ----------
    kind : {"leaf", "operation", "custom", "result", "broken"}
    lines : tuple of str
        The lines in its box.
    outputs : int
    freed : bool
        Whether its saved values were freed.
    """

    kind: str
    lines: tuple[str, ...]
    outputs: int
    freed: bool


class Arrow(NamedTuple):
    """An edge from output `number` of vertex `source` to operand `operand` of vertex `target`."""

    source: int
    number: int
    target: int
    operand: int
