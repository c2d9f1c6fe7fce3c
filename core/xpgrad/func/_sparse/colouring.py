"""Colourings of patterns: which columns, rows, or both, are computed in one product each, so that every entry can be read off.

A colouring is direct if each entry stands alone in some element of some product. No library was suitable: SciPy's `group_columns` is in a
private module, colours only columns and in one order; networkx colours graphs, but neither by stars nor rows and columns together;
ColPack (C++) has no Python distribution, asdex needs JAX, SparseMatrixColorings.jl Julia. So the greedy algorithms are written here.
Sources: T. F. Coleman and J. J. Moré, Estimation of sparse Jacobian matrices and graph coloring problems, SIAM J. Numer. Anal. 20 (1983);
A. H. Gebremedhin, F. Manne and A. Pothen, What color is your Jacobian?, SIAM Review 47 (2005), sections 3 (distance 2), 4 (stars) and 6
(rows and columns together). `reading` proves for each colouring in use that it is direct.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from xpgrad.func._sparse.host import np, sparse

_SPLITS = 8  # numbers of rows, or columns, that are tried apart
NONE = -1


class Colouring(NamedTuple):
    """A colour for each column and each row that takes part in a product, and -1 for the others.

    Attributes
    ----------
    columns, rows : array of int
        Colour of each column, and of each row.
    column_colours, row_colours : int
        Number of products from the right, and from the left.
    """

    columns: Any
    rows: Any
    column_colours: int
    row_colours: int

    @property
    def products(self) -> int:
        """Number of products."""
        return self.column_colours + self.row_colours


def _compact(pattern: Any) -> tuple[list[int], list[int]]:
    return pattern.indptr.tolist(), pattern.indices.tolist()


def _orders(degrees: Any) -> list[Any]:
    """Return the orders in which to colour vertices: the natural one, and by decreasing number of neighbours."""
    natural = np.arange(len(degrees))
    largest = np.argsort(-degrees)  # stable, as the standard says
    return [natural] if np.array_equal(natural, largest) else [natural, largest]


def _lowest(taken: int) -> int:
    """Return the lowest colour that is not taken; the bits of a number are the taken colours."""
    return (~taken & (taken + 1)).bit_length() - 1


def _colour_columns(columns: Any, count: int, order: Iterable[int]) -> Any:
    """Return a colour for each column of a pattern in CSC form, such that no row has two of one colour: greedy colouring at distance 2."""
    starts, rows = _compact(columns)
    seen = [0] * count  # the colours in each row
    colours = np.full(len(starts) - 1, NONE)
    for j in order:
        mine = rows[starts[j] : starts[j + 1]]
        if not mine:
            continue
        taken = 0
        for i in mine:
            taken |= seen[i]
        colour = _lowest(taken)
        bit = 1 << colour
        for i in mine:
            seen[i] |= bit
        colours[j] = colour
    return colours


def _best_apart(columns: Any, count: int) -> tuple[Any, int]:
    """Return the best of several greedy colourings at distance 2, and its number of colours.

    No colouring has fewer colours than the fullest row has entries.
    """
    bound = int(np.bincount(columns.indices, minlength=1).max(initial=0))
    found: tuple[Any, int] | None = None
    for order in _orders(np.diff(columns.indptr)):
        colours = _colour_columns(columns, count, order.tolist())
        number = int(colours.max(initial=NONE)) + 1
        if found is None or number < found[1]:
            found = colours, number
        if number <= bound:
            break
    assert found is not None
    return found


def by_columns(pattern: Any) -> Colouring:
    """Colour columns such that those of one colour share no row: one product from the right (`jvp`) for each colour."""
    colours, number = _best_apart(pattern.tocsc(), pattern.shape[0])
    return Colouring(colours, np.full(pattern.shape[0], NONE), number, 0)


def entry_rows(pattern: Any) -> Any:
    """Return the row of each entry of a pattern in CSR form."""
    # NB: a NumPy whose indices have 32 bits refuses wider counts.
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr).astype(np.intp))


def by_rows(pattern: Any) -> Colouring:
    """Colour rows such that those of one colour share no column: one product from the left (`vjp`) for each colour."""
    colours, number = _best_apart(pattern.tocsr().T, pattern.shape[1])
    return Colouring(np.full(pattern.shape[1], NONE), colours, 0, number)


def _split(pattern: Any, most: int) -> Colouring | None:
    """Return a colouring with the fullest rows from the left and all others from the right; None if it needs `most` or more products."""
    counts = np.diff(pattern.indptr)
    order = np.argsort(-counts)
    ordered = counts[order]
    drops = np.flatnonzero(ordered[:-1] > ordered[1:]) + 1  # numbers of rows to take apart
    bounds = ordered[drops] + 1
    rows_of = entry_rows(pattern)
    best: Colouring | None = None
    for k in drops[np.argsort(bounds)][:_SPLITS].tolist():
        if ordered[k] + 1 >= most:
            break
        apart = order[:k]
        kept = np.ones(pattern.shape[0], dtype=bool)
        kept[apart] = False
        kept = kept[rows_of]
        rest = sparse.csc_array((pattern.data[kept], (rows_of[kept], pattern.indices[kept])), shape=pattern.shape)
        columns, right = _best_apart(rest, pattern.shape[0])
        if right + 1 >= most:
            continue
        colours, left = _best_apart(pattern[apart].T.tocsc(), pattern.shape[1])
        if left + right < most:
            most = left + right
            rows = np.full(pattern.shape[0], NONE)
            rows[apart] = colours
            best = Colouring(columns, rows, right, left)
    return best


def by_both(pattern: Any, most: int | None = None) -> Colouring | None:
    """Return a colouring with some rows from the left and the others from the right, or vice versa.

    None if it has `most` or more products.
    """
    most = sum(pattern.shape) + 1 if most is None else most
    first = _split(pattern.tocsr(), most)
    second = _split(pattern.T.tocsr(), most if first is None else first.products)
    if second is not None:
        return Colouring(second.rows, second.columns, second.row_colours, second.column_colours)
    return first


def fewest(pattern: Any) -> Colouring:
    """Return the colouring with the fewest products: of columns, of rows, or of both."""
    row_bound = int(np.bincount(pattern.indices, minlength=1).max(initial=0))  # a row colouring has at least this many colours
    column_bound = int(np.diff(pattern.indptr).max(initial=0))
    makers = [(column_bound, by_columns), (row_bound, by_rows)]
    best: Colouring | None = None
    for bound, make in sorted(makers, key=lambda pair: pair[0]):
        if best is None or bound < best.products:
            found = make(pattern)
            if best is None or (found.products, found.row_colours) < (best.products, best.row_colours):
                best = found
    assert best is not None
    if best.products > 2:
        return by_both(pattern, best.products) or best
    return best


# -- symmetric patterns ----------------------------------------------------------------------------------------------------


def _stars(pattern: Any, order: Iterable[int]) -> Any:
    """Return a greedy star colouring of the graph of a symmetric pattern.

    Neighbours differ, and no path of four vertices has only two colours.
    """
    starts, neighbours = _compact(pattern)
    count = len(starts) - 1
    colours = [NONE] * count
    once, twice = [0] * count, [0] * count  # colours among the neighbours of each vertex: at least once, more than once
    danger = [0] * count  # of w: the colours of neighbours x that have two neighbours of the colour of w
    for v in order:
        around = [w for w in neighbours[starts[v] : starts[v + 1]] if w != v]
        if not around and starts[v] == starts[v + 1]:
            continue
        taken = once[v]
        for w in around:
            if colours[w] >= 0:
                taken |= danger[w]  # v - w - x - y, where w and y have one colour
                if twice[v] >> colours[w] & 1:  # x - w - v - y, where w and y have one colour
                    taken |= once[w]
        colour = colours[v] = _lowest(taken)
        bit = 1 << colour
        for w in around:
            mine = 1 << colours[w] if colours[w] >= 0 else 0
            if not once[w] & bit:
                once[w] |= bit
            elif not twice[w] & bit:
                twice[w] |= bit
                for y in neighbours[starts[w] : starts[w + 1]] if mine else ():
                    if colours[y] == colour:
                        danger[y] |= mine
            else:
                danger[v] |= mine
            if mine & twice[v]:
                danger[w] |= bit
    return np.array(colours, np.int64)


def by_stars(pattern: Any) -> Colouring:
    """Return a star colouring of a symmetric pattern: each entry, or the one across the diagonal, stands alone in a product."""
    found: Colouring | None = None
    for order in _orders(np.diff(pattern.indptr)):
        colours = _stars(pattern, order.tolist())
        number = int(colours.max(initial=NONE)) + 1
        if found is None or number < found.column_colours:
            found = Colouring(colours, np.full(len(colours), NONE), number, 0)
    assert found is not None
    return found


# -- reading entries off ---------------------------------------------------------------------------------------------------


def _is_alone(first: Any, colours: Any, count: int, size: int) -> Any:
    """Return whether each entry is the only one in its row (`first`) with its colour; `colours` is -1 for entries in no product."""
    keys = first * (count + 1) + colours + 1
    return (np.bincount(keys, minlength=size * (count + 1))[keys] == 1) & (colours >= 0)


def reading(pattern: Any, colouring: Colouring) -> Any:
    """Return the place of each entry of a pattern, row by row, in the products.

    Places are flat: in the products from the right, of shape ``(colours, rows)``, followed by those from the left, ``(colours, columns)``.

    Raises
    ------
    AssertionError
        If the colouring is not direct.
    """
    m, n = pattern.shape
    rows, columns = entry_rows(pattern), pattern.indices.astype(np.int64)
    right, left = colouring.columns[columns], colouring.rows[rows]
    from_right = _is_alone(rows, right, colouring.column_colours, m)
    from_left = _is_alone(columns, left, colouring.row_colours, n)
    return _select_entries(from_right, right * m + rows, from_left, colouring.column_colours * m + left * n + columns)


def symmetric_reading(pattern: Any, colouring: Colouring) -> Any:
    """Return the place of each entry of a symmetric pattern in the products, all of which are from the right.

    An entry may be read from the place of the one across the diagonal.
    """
    n = pattern.shape[0]
    rows, columns = entry_rows(pattern), pattern.indices.astype(np.int64)
    here, across = colouring.columns[columns], colouring.columns[rows]
    from_here = _is_alone(rows, here, colouring.column_colours, n)
    from_across = _is_alone(columns, across, colouring.column_colours, n)
    return _select_entries(from_here, here * n + rows, from_across, across * n + columns)


def _select_entries(first: Any, places: Any, second: Any, other: Any) -> Any:
    if not np.all(first | second):
        msg = "a colouring mixes entries that it should keep apart: please report this, with the pattern"
        raise AssertionError(msg)
    return np.where(first, places, other)
