"""Law: a colouring is direct, proved entry by entry, and has as few colours as is known to be possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from xpgrad.func._sparse import colouring as c


def pattern_of(a: Any) -> Any:
    found = sp.csr_array(np.asarray(a, bool) if isinstance(a, np.ndarray) else a.astype(bool))
    found.sort_indices()
    return found


@st.composite
def patterns(draw: Any) -> Any:
    m, n = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    return np.array(draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=m, max_size=m)))


def check_each_entry_is_direct(a: Any, found: Any, read: Any) -> None:
    """Assert, from the definition, that each entry can be read back from the products of the coloured matrix."""
    m, n = a.shape
    values = np.where(a, np.arange(1.0, m * n + 1).reshape(m, n) ** 0.5, 0.0)
    if read is c.symmetric_reading:
        values = np.where(a, values + values.T, 0.0)
    right = [values @ (found.columns == k) for k in range(found.column_colours)]
    left = [(found.rows == k) @ values for k in range(found.row_colours)]
    products = np.concatenate([*right, *left, np.zeros(0)])
    np.testing.assert_array_equal(products[read(pattern_of(a), found)], values[a])


@pytest.mark.slow
@given(patterns())
@settings(max_examples=150, deadline=None)
def test_every_entry_can_be_read(a: Any) -> None:
    for colour in (c.by_columns, c.by_rows, c.fewest, c.by_both):
        found = colour(pattern_of(a))
        if found is not None:
            check_each_entry_is_direct(a, found, c.reading)
    assert c.fewest(pattern_of(a)).products <= min(c.by_columns(pattern_of(a)).products, c.by_rows(pattern_of(a)).products)


@given(patterns())
@settings(max_examples=150, deadline=None)
def test_every_entry_of_a_symmetric_matrix_can_be_read(a: Any) -> None:
    n = min(a.shape)
    a = a[:n, :n] | a[:n, :n].T
    found = c.by_stars(pattern_of(a))
    check_each_entry_is_direct(a, found, c.symmetric_reading)
    is_a_star_colouring(a, found.columns)


def is_a_star_colouring(a: Any, colours: Any) -> None:
    """Return whether neighbours differ and each path of four vertices has three colours (Gebremedhin, Manne and Pothen, 4.5)."""
    graph = a & ~np.eye(len(a), dtype=bool)
    for v, w in np.argwhere(graph):
        assert colours[v] != colours[w]
        for x in np.flatnonzero(graph[w]):
            for y in np.flatnonzero(graph[x]):
                if len({v, w, x, y}) == 4:
                    assert len({colours[v], colours[w], colours[x], colours[y]}) > 2


def test_a_colouring_that_mixes_entries_is_refused() -> None:
    a = pattern_of(np.tri(3, dtype=bool))
    good = c.by_columns(a)
    bad = good._replace(columns=np.array([0, 1, 1]), column_colours=2)
    with pytest.raises(AssertionError, match="mixes entries"):
        c.reading(a, bad)
    path = pattern_of(np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool))
    with pytest.raises(AssertionError, match="mixes entries"):
        c.symmetric_reading(path, c.Colouring(np.array([0, 1, 0, 1]), np.full(4, -1), 2, 0))


def banded(n: int, width: int) -> Any:
    """Return a symmetric matrix with `width` diagonals on each side of the main one."""
    offsets = range(-(width // 2), width // 2 + 1)
    return sp.csr_array(sp.diags([np.ones(n - abs(k)) for k in offsets], offsets))


def arrowhead(n: int, at: int) -> Any:
    a = np.eye(n, dtype=bool)
    a[at, :] = a[:, at] = True
    return a


def test_tridiagonal_and_banded_matrices_have_as_few_colours_as_their_bands() -> None:
    for width in (2, 10):
        for colour in (c.by_columns, c.by_rows, c.fewest, c.by_stars):
            assert colour(pattern_of(banded(500, width))).products == width + 1
    assert c.fewest(pattern_of(sp.csr_array(sp.eye(50)))).products == 1


@pytest.mark.parametrize("width", [10, 20])
def test_the_stars_of_bands_are_as_many_as_published(width: int) -> None:
    """A band needs 2 floor(width / 2) + 1 colours (Gebremedhin et al. 2009), as SparseMatrixColorings.jl finds in `test/theory.jl`."""
    assert c.by_stars(pattern_of(banded(5000, width))).products == width + 1


@pytest.mark.parametrize("at", [0, 20, 39])
def test_arrowheads_take_three_products_and_two_where_they_are_symmetric(at: int) -> None:
    a = arrowhead(40, at)
    found = c.fewest(pattern_of(a))
    assert (found.products, found.column_colours > 0, found.row_colours > 0) == (3, True, True)
    assert c.by_columns(pattern_of(a)).products == 40
    assert c.by_stars(pattern_of(a)).products == 2
    check_each_entry_is_direct(a, found, c.reading)


def test_a_full_row_and_a_full_column_among_bands_cost_two_products_more() -> None:
    a = banded(60, 2).toarray() != 0
    a[7] = a[:, 31] = True
    found = c.fewest(pattern_of(a))
    assert (found.products, min(found.column_colours, found.row_colours)) == (5, 1)
    check_each_entry_is_direct(a, found, c.reading)
    assert min(c.by_columns(pattern_of(a)).products, c.by_rows(pattern_of(a)).products) == 60


def test_the_brusselator_has_as_many_colours_as_published() -> None:
    """12 colours for 2 x 32 x 32 unknowns, as in https://adrianhill.de/asdex/how-to/brusselator."""
    circle = sp.eye(32) + sp.eye(32, k=1) + sp.eye(32, k=-1) + sp.eye(32, k=31) + sp.eye(32, k=-31)
    around = sp.kron(sp.eye(32), circle) + sp.kron(circle, sp.eye(32))
    species = sp.bmat([[around, sp.eye(32 * 32)], [sp.eye(32 * 32), around]])
    a = pattern_of(sp.csr_array(species))
    assert (a.shape, a.nnz) == ((2048, 2048), 12288)
    assert c.fewest(a).products <= 12


def test_no_colours_where_there_is_nothing() -> None:
    for shape in ((0, 3), (3, 0), (2, 2)):
        found = c.fewest(sp.csr_array(shape, dtype=bool))
        assert found.products == 0
        assert len(c.reading(sp.csr_array(shape, dtype=bool), found)) == 0
