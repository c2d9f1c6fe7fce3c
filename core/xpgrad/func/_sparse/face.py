"""`sparse_jacobian` and `sparse_hessian`: what they take, and what they say to bad input. The rest loads with the first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, check_callable, check_choice, check_chunk_size
from xpgrad.func._reverse import Argnums

if TYPE_CHECKING:
    from xpgrad.func._sparse.prepared import Prepared

_PATTERNS = ("global", "local")
_FORMATS = ("csr", "csc", "coo", "native")


def sparse_jacobian(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    pattern: Any = "global",
    by: str = "auto",
    format: str = "csr",  # noqa: A002 (SciPy's name)
    chunk_size: int | None = None,
) -> SparseDerivative:
    """A function that computes the Jacobian of `func` as a sparse matrix, at the cost of a few products.

    The derivative is captured as a program, and dependence traced through it: which output depends on which input. Columns, or rows,
    that have no row, or column, in common are computed together.

    Parameters
    ----------
    func : callable
        Returns real Tensors, or nested tuples, lists and dicts of them; with ``has_aux=True`` a pair of that and anything else. It may do
        what a compiled function may (`compile`): with ``pattern="global"`` no decision may depend on values.
    argnums : int or tuple of int
        The arguments to differentiate with respect to: real Tensors, raw arrays and numbers, or nested tuples, lists and dicts of them.
    has_aux : bool
    pattern : {"global", "local"}, scipy.sparse matrix or array of bools
        ``"global"``: valid for all values. ``"local"``: valid for the values given only, at which branches are known (`where`, `max`,
        `abs`, products with exact zeros): often sparser. A pattern of one's own, of shape ``(outputs, inputs)``, may have more entries than
        the Jacobian, not fewer; that is checked along one direction.
    by : {"auto", "columns", "rows", "both"}
        Products from the right (`jvp`), from the left (`vjp`), or both; ``"auto"`` takes what needs the fewest.
    format : {"csr", "csc", "coo", "native"}
        SciPy's sparse arrays, or the library's own: ``torch.sparse_csr``, ``jax.experimental.sparse.BCSR``, CuPy's.
    chunk_size : int, optional
        The most products to compute at once: less memory, but `func` runs once per chunk. By default as many as have four million elements.

    Returns
    -------
    SparseDerivative
        Called, it returns the matrix, with a row for each element of the outputs and a column for each element of the arguments: one after
        the other, each in row-major order. All entries of the pattern are stored. With ``has_aux=True`` a pair of it and `aux`. Every call
        traces; ``prepare(*args)`` of it returns an object that is called with any arguments of these shapes and dtypes, at the cost of its
        products, and has the attributes `pattern`, `colours`, `column_colours`, `row_colours`, `unresolved`, and the method `plot`.

    Raises
    ------
    RuntimeError
        For arguments or results of the wrong kind: complex ones, for example.
    CaptureError
        When it is called, with the user's line, if the pattern cannot be traced since `func` depends on values.
    ValueError
        For a pattern that does not fit, and where the derivative is large and not sparse.
    CapabilityError
        Without SciPy, and for ``format="native"`` where the library has no sparse matrices.

    Notes
    -----
    Colourings: Gebremedhin, Manne and Pothen, What color is your Jacobian?, SIAM Review 47 (2005). Products from the right are those of
    `jacfwd`, from the left those of `jacrev`: they differ in what `func` does under `no_grad`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> jacobian = xp.func.sparse_jacobian(lambda x: (x[1:] - x[:-1]) ** 2)
    >>> jacobian(xp.tensor([0.0, 1.0, 3.0])).toarray()
    array([[-2.,  2.,  0.],
           [ 0., -4.,  4.]])
    >>> jacobian.prepare(xp.zeros(1000))
    <sparse_jacobian: 999 x 1000, 1998 entries, 2 products: 2 of columns>
    """
    check_choice(by, ("auto", "columns", "rows", "both"), "sparse_jacobian", "by")
    return SparseDerivative("sparse_jacobian", func, argnums, has_aux, pattern, by, format, chunk_size)


def sparse_hessian(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    pattern: Any = "global",
    by: str = "symmetric",
    format: str = "csr",  # noqa: A002 (SciPy's name)
    chunk_size: int | None = None,
) -> SparseDerivative:
    """A function that computes the Hessian of `func`, a real scalar function, as a sparse matrix, at the cost of a few products.

    Parameters
    ----------
    func : callable
        Returns a real 0-d Tensor; with ``has_aux=True`` a pair of it and anything else. As for `sparse_jacobian`.
    argnums : int or tuple of int
        The arguments to differentiate with respect to; see `sparse_jacobian`. With several, the matrix has the mixed derivatives, too.
    has_aux : bool
    pattern : {"global", "local"}, scipy.sparse matrix or array of bools
        See `sparse_jacobian`; a pattern of one's own is made symmetric.
    by : {"symmetric", "rows"}
        Each entry is read from itself or from across the diagonal (a star colouring), or all from themselves: for Hessians that rules of
        one's own make unsymmetric.
    format : {"csr", "csc", "coo", "native"}
    chunk_size : int, optional
        The most products to compute at once.

    Returns
    -------
    SparseDerivative
        Called, it returns the matrix, with a row and a column for each element of the arguments; see `sparse_jacobian`, also for
        ``prepare(*args)``.

    Raises
    ------
    RuntimeError, CaptureError, ValueError, CapabilityError
        As `sparse_jacobian`; a ValueError also for a Hessian that is not symmetric, as one random direction tells.

    Notes
    -----
    Products are gradients of gradients, as those of `hessian`. Linear parts of `func` leave no entries.

    Examples
    --------
    >>> import xpgrad as xp
    >>> hessian = xp.func.sparse_hessian(lambda x: xp.sum(x[1:] ** 2 * x[:-1]) + xp.sum(x))
    >>> hessian(xp.tensor([1.0, 2.0, 3.0])).toarray()
    array([[0., 4., 0.],
           [4., 2., 6.],
           [0., 6., 4.]])
    >>> hessian.prepare(xp.zeros(1000)).colours
    3
    """
    check_choice(by, ("symmetric", "rows"), "sparse_hessian", "by")
    return SparseDerivative("sparse_hessian", func, argnums, has_aux, pattern, by, format, chunk_size)


class SparseDerivative:
    """A function that computes a sparse derivative: what `sparse_jacobian` and `sparse_hessian` return."""

    _argnums: Argnums
    _by: str
    _chunk_size: int | None
    _format: str
    _func: Callable[..., Any]
    _has_aux: bool
    _name: str
    _pattern: Any

    def __init__(
        self, name: str, func: Callable[..., Any], argnums: Argnums, has_aux: bool, pattern: Any, by: str, form: str, chunk_size: int | None
    ) -> None:
        check_callable(func, name)
        if isinstance(pattern, str):
            check_choice(pattern, _PATTERNS, name, "pattern")
        elif not hasattr(pattern, "shape"):
            msg = f"{name}: `pattern` must be 'global', 'local', a scipy.sparse matrix or an array of bools, not {type(pattern).__name__}"
            raise TypeError(msg)
        check_choice(form, _FORMATS, name, "format")
        check_chunk_size(chunk_size, name)
        self._name, self._func, self._argnums, self._has_aux = name, func, argnums, as_flag(has_aux, name, "has_aux")
        self._pattern, self._by, self._format, self._chunk_size = pattern, by, form, chunk_size
        functools.update_wrapper(self, func, updated=())

    def prepare(self, *args: Any, **kwargs: Any) -> Prepared:
        """The derivative, prepared for arguments of these shapes and dtypes: called again and again, it costs its products.

        Raises
        ------
        RuntimeError, CaptureError, ValueError, CapabilityError
            As `sparse_jacobian` says.
        """
        from xpgrad.func._sparse.prepared import Options, prepared  # loads late: NumPy and SciPy
        from xpgrad.func._sparse.tracing import Call  # loads late: the same

        options = Options(self._name == "sparse_hessian", self._pattern, self._by, self._format, self._chunk_size)
        return prepared(Call(self._name, self._func, args, kwargs, self._argnums, self._has_aux), options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix, with a pattern that is traced anew; with `has_aux` a pair of it and `aux`."""
        return self.prepare(*args, **kwargs)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._name} of {getattr(self._func, '__name__', repr(self._func))}>"
