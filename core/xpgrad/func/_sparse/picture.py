"""The picture of a pattern: a mark for each entry, in the colour of the product from which it is read."""

from __future__ import annotations

import importlib
from typing import Any

from xpgrad.errors import CapabilityError
from xpgrad.func._sparse.colouring import entry_rows
from xpgrad.func._sparse.host import np


def draw(prepared: Any, ax: Any) -> Any:
    """Draw a prepared derivative's pattern: squares are read from products from the right, diamonds from the left."""
    try:
        plotting = importlib.import_module("matplotlib.pyplot")
    except ImportError as exc:
        msg = "`plot` draws with matplotlib, which is not installed; run `pip install matplotlib`"
        raise CapabilityError(msg) from exc
    m, n = prepared.shape
    if ax is None:
        _, ax = plotting.subplots(figsize=(6.0, min(max(6.0 * m / max(n, 1), 2.0), 12.0)), layout="constrained")
    pattern, places = prepared.pattern, prepared.places
    rows = entry_rows(pattern)
    right = int(prepared.column_colours.max(initial=-1)) + 1
    from_right = places < right * m
    colours = np.where(from_right, places // max(m, 1), right + (places - right * m) // max(n, 1))
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()
    cell = 72 * min(box.width * width / max(n, 1), box.height * height / max(m, 1))  # in points
    size = float(np.clip(0.8 * cell, 0.6, 20.0)) ** 2
    few = prepared.colours <= 20
    chart = plotting.get_cmap("tab10" if prepared.colours <= 10 else "tab20" if few else "turbo")
    for kind, marker in ((from_right, "s"), (~from_right, "D")):
        if kind.any():
            shades = colours[kind] if few else colours[kind] / max(prepared.colours - 1, 1)
            small = size if marker == "s" else 0.6 * size
            ax.scatter(pattern.indices[kind], rows[kind], s=small, c=chart(shades), marker=marker, linewidths=0)
    ax.set(xlim=(-0.5, n - 0.5), ylim=(m - 0.5, -0.5), aspect="equal", xlabel="element of the arguments", ylabel="element of the outputs")
    left = prepared.colours - right
    parts = [f"{right} from the right"] * bool(right) + [f"{left} from the left"] * bool(left)
    ax.set_title(f"{m} × {n}, {prepared.nnz} entries, products: {' + '.join(parts) or 'none'}", fontsize="small")
    return ax
