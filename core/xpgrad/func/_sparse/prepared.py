"""A prepared derivative: a pattern for arguments of some shapes, its colouring, and the place of each entry in the products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from xpgrad._modes import state
from xpgrad.func._sparse import colouring as colourings, products
from xpgrad.func._sparse.checks import check_given_pattern, check_leaves, check_products
from xpgrad.func._sparse.host import sparse
from xpgrad.func._sparse.likeness import Likeness
from xpgrad.func._sparse.picture import draw
from xpgrad.func._sparse.products import Seeds, from_left, from_right, leaves_of, of_gradient
from xpgrad.func._sparse.results import matrix_of
from xpgrad.func._sparse.tracing import Call, Pattern, hessian_pattern, jacobian_pattern
from xpgrad.rules.manipulation import concat, reshape_to


class Options(NamedTuple):
    """The options of `sparse_jacobian` or `sparse_hessian`."""

    hessian: bool
    pattern: Any
    by: str
    format: str
    chunk_size: int | None


@state.restoring
def prepare(call: Call, options: Options) -> Prepared:
    """Prepare a derivative for arguments like those of a call."""
    leaves = leaves_of(call)
    check_leaves(call.name, leaves)
    outs, _ = products.outputs_of(call, call.run())  # says what is wrong with them before anything is traced
    if options.hessian:
        products.check_scalar(call.name, outs)
    columns = sum(math.prod(x.shape) for x in leaves)
    rows = columns if options.hessian else sum(math.prod(y.shape) for y in outs)
    given = not isinstance(options.pattern, str)
    if given:
        found = Pattern(check_given_pattern(call.name, options.pattern, (rows, columns)), [], False)
    elif not rows or not columns:
        found = Pattern(sparse.csr_array((rows, columns), dtype=bool), [], False)
    elif options.hessian:
        found = hessian_pattern(call, options.pattern == "local")
    else:
        found, options = _trace(call, options)
    if options.by == "symmetric":
        found = found._replace(matrix=sparse.csr_array(found.matrix + found.matrix.T))
    made = Prepared(call, options, found, leaves, outs)
    if given or options.by == "symmetric":
        check_products(call, options.hessian, given, made)
    return made


def _trace(call: Call, options: Options) -> tuple[Pattern, Options]:
    """Trace the pattern of a Jacobian in the modes that will compute it; a function without forward mode gets products from the left."""
    local = options.pattern == "local"
    try:
        found = jacobian_pattern(call, local, options.by == "rows")
    except NotImplementedError:
        if options.by != "auto":
            raise
        options = options._replace(by="rows")
        return jacobian_pattern(call, local, True), options
    if options.by in ("auto", "both") and _colour(found.matrix, options.by).row_colours:
        other = jacobian_pattern(call, local, True)
        found = Pattern(
            sparse.csr_array(found.matrix + other.matrix), list(dict.fromkeys(found.unresolved + other.unresolved)), found.fixed
        )
    return found, options


def _colour(pattern: Any, by: str) -> colourings.Colouring:
    if by == "symmetric":
        both = colourings.by_stars(pattern), colourings.by_columns(pattern)
        return min(both, key=lambda found: found.products)
    if by == "both":
        found = colourings.by_both(pattern)
        return colourings.by_columns(pattern) if found is None else found
    return {"columns": colourings.by_columns, "rows": colourings.by_rows, "auto": colourings.fewest}[by](pattern)


class Prepared:
    """A prepared sparse derivative; a call with arguments of the same shapes costs one product per colour.

    Attributes
    ----------
    pattern : scipy.sparse.csr_array of bool
        Rows are the elements of the outputs, columns those of the arguments, one after the other and each in row-major order.
    colours : int
        Number of products for one matrix.
    column_colours, row_colours : array of int
        Colour of each column in products from the right, and of each row in products from the left; -1 for none. A symmetric matrix has
        only colours of columns.
    unresolved : list of str
        Kernels, with lines, for which tracing assumed that each element of the result depends on all elements of the operands.
    """

    _argnums: Any
    _colouring: colourings.Colouring
    _func: Any
    _has_aux: bool
    _left: Seeds
    _likeness: Likeness
    _name: str
    _on: dict[Any, Any]
    _options: Options
    _right: Seeds
    colours: int
    column_colours: Any
    pattern: Any
    places: Any
    row_colours: Any
    unresolved: list[str]

    def __init__(self, call: Call, options: Options, traced: Pattern, leaves: list[Any], outs: list[Any]) -> None:
        self._name, self._func, self._argnums, self._has_aux = call.name, call.func, call.argnums, call.has_aux
        self._options, self._likeness = options, Likeness(call, traced.fixed)
        self.pattern = pattern = traced.matrix
        pattern.sort_indices()
        self.unresolved = traced.unresolved
        self._colouring = found = _colour(pattern, options.by)
        self.colours = found.products
        self.column_colours, self.row_colours = found.columns, found.rows
        symmetric = options.by == "symmetric"
        self.places = (colourings.symmetric_reading if symmetric else colourings.reading)(pattern, found)
        chunk = products.chunk_for(options.chunk_size, pattern.shape[1], pattern.shape[0])
        self._right = Seeds(found.columns, found.column_colours, leaves, chunk)
        self._left = Seeds(found.rows, found.row_colours, leaves if options.hessian else outs, chunk)
        self._on = {}  # the places, by class of Tensors, on its device

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        m, n = self.pattern.shape
        return int(m), int(n)

    @property
    def nnz(self) -> int:
        """Number of entries of the pattern."""
        return int(self.pattern.nnz)

    @property
    def symmetric(self) -> bool:
        """Whether entries may be read across the diagonal."""
        return self._options.by == "symmetric"

    def __repr__(self) -> str:
        m, n = self.shape
        right, left = self._colouring.column_colours, self._colouring.row_colours
        parts = [f"{right} of columns"] * bool(right) + [f"{left} of rows"] * bool(left)
        return f"<{self._name}: {m} x {n}, {self.nnz} entries, {self.colours} products{': ' if parts else ''}{', '.join(parts)}>"

    @state.restoring
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the matrix for arguments like those for which it was prepared; with `has_aux` a pair of it and `aux`.

        Raises
        ------
        ValueError
            If shapes, dtypes or structure differ, or values that are neither arrays nor floats.
        """
        call = self._likeness.check(Call(self._name, self._func, args, kwargs, self._argnums, self._has_aux))
        check_leaves(self._name, leaves_of(call))
        values, aux = self._values(call)
        matrix = matrix_of(self.pattern, values, self._options.format)
        return (matrix, aux) if self._has_aux else matrix

    def matrix(self, call: Call) -> Any:
        """Return the matrix of a call as a `scipy.sparse.csr_array`."""
        return matrix_of(self.pattern, self._values(call)[0], "csr")

    def _values(self, call: Call) -> tuple[Any, Any]:
        """Return the entries of the pattern, as a one-dimensional Tensor, and `aux`."""
        if not self.colours:
            outs, aux = products.outputs_of(call, call.run())
            return reshape_to(outs[0].detach(), (math.prod(outs[0].shape),))[:0], aux
        parts: list[Any] = []
        aux = None
        hessian = self._options.hessian
        for seeds, product in ((self._right, of_gradient if hessian else from_right), (self._left, of_gradient if hessian else from_left)):
            if seeds.chunks:
                found, aux = product(call, seeds)
                parts.append(reshape_to(found.detach(), (math.prod(found.shape),)))
        flat = parts[0] if len(parts) == 1 else concat(parts)
        return self._read(flat), aux

    def _read(self, flat: Any) -> Any:
        """Return the entries from their places in the products."""
        cls = type(flat._stand_in())
        places = self._raw_places(cls)
        return cls._wrap(cls.backend.kernels.take_flat(flat._array, places))

    def _raw_places(self, cls: Any) -> Any:
        found = self._on.get(cls)
        if found is None:
            wide = cls.backend.default_dtype("indexing", cls.device).name
            found = self._on[cls] = cls.backend.from_host(self.places.astype(wide), cls.device)
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the pattern with its colours, with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the picture.

        Raises
        ------
        CapabilityError
            If matplotlib is not installed.
        """
        return draw(self, ax)
