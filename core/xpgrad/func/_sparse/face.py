"""`sparse_jacobian` and `sparse_hessian`: their parameters and errors. The rest loads with the first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, check_callable, check_choice, check_chunk_size
from xpgrad._basics.faces import names_keywords
from xpgrad.func._reverse import Argnums

if TYPE_CHECKING:
    from xpgrad.func._sparse.prepared import Prepared

_PATTERNS = ("global", "local")
_FORMATS = ("csr", "csc", "coo", "native")


@names_keywords
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
    """Return a function that computes the Jacobian of `func` as a sparse matrix, at the cost of a few products.

    The derivative is captured as a program, which shows the inputs on which each output depends. Columns without a common row, or rows
    without a common column, are computed together.

    Parameters
    ----------
    func : callable
        Returns real Tensors, or nested tuples, lists and dicts of them; with ``has_aux=True`` a pair of that and anything else. It is
        restricted as a compiled function is (`compile`): with ``pattern="global"`` no decision may depend on values.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate: real Tensors, raw arrays and numbers, or nested tuples, lists
        and dicts of them.
    has_aux : bool
        Whether `func` returns a pair.
    pattern : {"global", "local"}, scipy.sparse matrix or array of bools
        ``"global"`` is valid for all values. ``"local"`` is valid only for the given values, which decide branches (`where`, `max`, `abs`,
        products with exact zeros), and is often sparser. A given pattern, of shape ``(outputs, inputs)``, must have all entries of the
        Jacobian and may have more; that is checked along one direction.
    by : {"auto", "columns", "rows", "both"}
        Whether to use products from the right (`jvp`), from the left (`vjp`), or both; ``"auto"`` takes what needs the fewest.
    format : {"csr", "csc", "coo", "native"}
        Format of the matrix: one of SciPy's sparse arrays, or the library's own: ``torch.sparse_csr``, ``jax.experimental.sparse.BCSR``,
        CuPy's.
    chunk_size : int, optional
        Largest number of products to compute at once. A smaller one needs less memory, but `func` runs once per chunk. The default keeps
        a chunk below about four million elements.

    Returns
    -------
    SparseDerivative
        Takes the arguments of `func` and returns the matrix; with ``has_aux=True`` a pair of it and `aux`. Rows are the elements of the
        outputs, columns those of the chosen arguments, one after the other and each in row-major order. All entries of the pattern are
        stored. Every call traces. Its method ``prepare(*args)`` traces once, and returns an object that takes any arguments of these
        shapes and dtypes and only computes products. That object has the attributes `pattern`, `colours`, `column_colours`, `row_colours`
        and `unresolved`, and the method `plot`.

    Raises
    ------
    TypeError
        If `func` is not callable, or `pattern` is of another type.
    ValueError
        If an option is unknown; when the result is called, if the pattern does not fit, or the derivative is large and not sparse.
    RuntimeError
        When the result is called: if an argument or a result is not real, or the call is inside another transform.
    CaptureError
        When the result is called: if the pattern cannot be traced since `func` depends on values. The message names the line.
    CapabilityError
        When the result is called: if SciPy is not installed, or ``format="native"`` and the library has no sparse matrices.

    Notes
    -----
    Colourings: Gebremedhin, Manne and Pothen, What color is your Jacobian?, SIAM Review 47 (2005). Products from the right are those of
    `jacfwd`, from the left those of `jacrev`, which differ if `func` uses `no_grad`.

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


@names_keywords
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
    """Return a function that computes the Hessian of a real scalar function as a sparse matrix, at the cost of a few products.

    Parameters
    ----------
    func : callable
        Returns a real 0-d Tensor; with ``has_aux=True`` a pair of it and anything else. It is restricted as for `sparse_jacobian`.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate; see `sparse_jacobian`. For several, the matrix includes the
        mixed derivatives.
    has_aux : bool
        Whether `func` returns a pair.
    pattern : {"global", "local"}, scipy.sparse matrix or array of bools
        As for `sparse_jacobian`; a given pattern is made symmetric.
    by : {"symmetric", "rows"}
        Whether an entry may be read from across the diagonal (star colouring). Use ``"rows"`` for Hessians that custom rules make
        unsymmetric.
    format : {"csr", "csc", "coo", "native"}
        Format of the matrix; see `sparse_jacobian`.
    chunk_size : int, optional
        Largest number of products to compute at once.

    Returns
    -------
    SparseDerivative
        Takes the arguments of `func` and returns the matrix, with a row and a column for each element of the chosen arguments. It has the
        method ``prepare(*args)``, as for `sparse_jacobian`.

    Raises
    ------
    TypeError, RuntimeError, CaptureError, CapabilityError
        As `sparse_jacobian`.
    ValueError
        As `sparse_jacobian`; also if the Hessian is not symmetric along one random direction.

    Notes
    -----
    Products are gradients of gradients, as in `hessian`. Linear parts of `func` leave no entries.

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
    """A function that computes a sparse derivative: the result of `sparse_jacobian` and `sparse_hessian`."""

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
        """Trace the pattern for arguments of these shapes and dtypes; the returned object then only computes products when called.

        Raises
        ------
        RuntimeError, CaptureError, ValueError, CapabilityError
            As `sparse_jacobian`.
        """
        from xpgrad.func._sparse.prepared import Options, prepare  # loads late: NumPy and SciPy
        from xpgrad.func._sparse.tracing import Call  # loads late: the same

        options = Options(self._name == "sparse_hessian", self._pattern, self._by, self._format, self._chunk_size)
        return prepare(Call(self._name, self._func, args, kwargs, self._argnums, self._has_aux), options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the pattern and return the matrix; with `has_aux` a pair of it and `aux`."""
        return self.prepare(*args, **kwargs)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._name} of {getattr(self._func, '__name__', repr(self._func))}>"
