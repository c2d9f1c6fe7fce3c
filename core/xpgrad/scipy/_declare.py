"""The decorators that declare special functions: each makes a row, named ``special_erf`` for `erf`, and the public function.

The kernel of a row is a composition in Array API calls if an accurate one exists, else SciPy's function on host memory. A library's own
function replaces either: see `Backend.special`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from xpgrad._array.base import TensorBase
from xpgrad._array.kernels import read_number
from xpgrad._backends.classes import host_backend, tensor_class
from xpgrad._basics.arguments import shown
from xpgrad._basics.docstrings import complete
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar
from xpgrad._basics.shapes import common_shape
from xpgrad._operations.dispatch import dispatcher
from xpgrad._operations.lift import as_operand, lift_all
from xpgrad._rows.namespace import EXTRAS, PRIMITIVES, operations
from xpgrad._rows.row import ROWS, Formula, Row, parameters
from xpgrad.errors import CapabilityError
from xpgrad.rules.conversion import number

F = TypeVar("F", bound=Callable[..., Any])

#: Prefix of the names of rows.
PREFIX = "special_"


def no_derivative(name: str, argument: str, why: str = "it has no closed form") -> Callable[..., NoReturn]:
    """Return a formula that raises for an argument without a known derivative, since no gradient would be wrong."""

    def refused(g: Any) -> NoReturn:
        msg = (
            f"scipy.special.{name}: the derivative with respect to `{argument}` is not known ({why}); give `{argument}.detach()`, or a "
            "number, where it is a constant"
        )
        raise NotImplementedError(msg)

    return refused


def valid(slope: Any, out: Any, xp: Any) -> Any:
    """Return the derivative `slope` with NaN where `out` is NaN, since a formula may be finite outside the domain."""
    return xp.where(xp.isnan(out), out, slope)


def nowhere(xp: Any, condition: Any) -> bool:
    """Return whether a raw array of bools is known to be False everywhere; False if its values cannot be read."""
    backend = xp._backend
    return not backend.capabilities.lazy and not backend.is_traced(condition) and not read_number(xp, xp.any(condition))


def by_the_host(name: str) -> Callable[..., Any]:
    """Return a kernel that calls SciPy's function `name` on arrays in host memory, for a row without a composition."""

    def kernel(xp: Any, *args: Any) -> Any:
        backend = xp._backend
        function = host_backend().special(name)
        if function is None:
            msg = f"scipy.special.{name} is computed by SciPy, which is not installed; run `pip install 'xpgrad[scipy]'`"
            raise CapabilityError(msg)
        return backend.through_host(name, function, *args)

    return kernel


def on_the_host(xp: Any, name: str, *args: Any) -> Any:
    """Compute a function of whole arrays by the host's library; return None if a composition must compute it.

    It is None if the library has no such function, the values are not available yet, or an array is not in host memory.
    """
    backend = xp._backend
    function = host_backend().special(name)
    if function is None or backend.capabilities.lazy or any(backend.is_traced(a) for a in args if hasattr(a, "shape")):
        return None
    if not backend.on_host(backend.device_of(next(a for a in args if hasattr(a, "shape")))):
        return None
    return backend.through_host(name, function, *args)


def _row(name: str, func: Callable[..., Any], formulas: tuple[Formula, ...], composed: Any, **options: Any) -> Any:
    """Make the row of a function, and the operation on Tensors, which takes all arguments by position.

    Parameters
    ----------
    name : str
    func : callable
        The declared function, whose first parameters are the operands.
    formulas, composed
        As for `special`.
    **options : object
        Other fields of the row.
    """
    names = parameters(func)
    count = len(formulas)
    statics = names[count : func.__code__.co_argcount]
    options = {"fresh": "outputs" not in options, "elementwise": not statics, "batch": "stacked" if statics else None} | options
    row = Row(PREFIX + name, names[:count], statics, formulas, composed or by_the_host(name), **options)
    PRIMITIVES[row.name] = primitive = dispatcher(row, func)
    return primitive


def helper(*formulas: Formula, composed: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a private row for use in formulas; the decorated function is its kernel, ``f(xp, *operands)``.

    A captured program contains it as one operation or, with ``composed=True``, as the operations that its kernel calls.
    """

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        names = parameters(func)[1:]
        row = Row(PREFIX + func.__name__.strip("_"), names, (), formulas, func, fresh=True, elementwise=True, composed=composed, **options)
        PRIMITIVES[row.name] = primitive = dispatcher(row, func)
        return primitive

    return declare


def special(*formulas: Formula, composed: Any = None, complex: bool | str = False, row: str | None = None) -> Callable[[F], F]:  # noqa: A002
    """Declare an elementwise special function; the decorated function gives its name, signature and docstring.

    Parameters
    ----------
    *formulas : callable
        One formula for each operand, as in `Row`.
    composed : callable, optional
        ``composed(xp, *operands)``: the kernel in Array API calls. Without it SciPy computes the function.
    complex : bool or str
        Whether operands may be complex, or the name of the only one that may be. The formulas are then those of a holomorphic function.
    row : str, optional
        The name, without the prefix, of an existing row that computes the function. By default a new row is made.
    """

    def declare(func: F) -> F:
        name = func.__name__
        primitive = PRIMITIVES[PREFIX + row] if row else _row(name, func, formulas, composed)
        public = _unary(name, primitive, complex) if len(parameters(func)) == 1 else _several(name, primitive, complex, parameters(func))
        published = _publish(name, public, func)
        published.__doc__ = _document(func.__doc__, parameters(func), complex, by_host=composed is None and row is None)
        return published

    return declare


def row_only(*formulas: Formula, composed: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the row of a public function that checks its arguments itself, and return the operation on Tensors.

    The arguments after the operands, each of which has a formula, are Python numbers for all elements.
    """

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        return _row(func.__name__.strip("_"), func, formulas, composed, **options)

    return declare


def _document(doc: str | None, names: tuple[str, ...], takes_complex: bool | str, *, by_host: bool) -> str:
    """Complete the docstring of a public special function with its result and errors.

    Parameters
    ----------
    doc : str or None
    names : tuple of str
        The operands.
    takes_complex : bool or str
        As `complex` of `special`.
    by_host : bool
        Whether SciPy computes the function.
    """
    several = len(names) > 1
    shape = "The shape to which the arguments broadcast" if several else f"The shape of `{', '.join(names)}`"
    errors = f"TypeError\n    An argument is not a Tensor, an array or a number{'' if takes_complex is True else ', or is complex'}."
    if several:
        errors += "\nValueError\n    The shapes do not broadcast."
    if by_host:
        errors += "\nCapabilityError\n    SciPy computes this function, and is not installed or cannot reach the memory of the arrays."
    dtype = "floating-point or complex" if takes_complex else "floating-point"
    return complete(doc, (("Returns", f"Tensor\n    {shape}, {dtype}."), ("Raises", errors)))


def _publish(name: str, public: Any, func: F) -> F:
    """Give the public function the name, signature and docstring of the declared one, and register it."""
    functools.update_wrapper(public, func)
    return front(public)


def front(func: F) -> F:
    """Register a public function that calls rows. If a row has the same name, the function becomes its public name."""
    title = f"scipy.special.{func.__name__}"
    EXTRAS[title] = func
    if (row := ROWS.get(PREFIX + func.__name__)) is not None:
        row.public = (title,)
    return func


# -- operands ----------------------------------------------------------------------------------------------------------


def refuse_complex(title: str, argument: str, x: Any) -> None:
    """Raise TypeError for a complex operand of a function that has no complex values."""
    msg = f"{title}: `{argument}` must be real, as SciPy's, but got dtype {x.dtype}; give `xpgrad.real({argument})`"
    raise TypeError(msg)


def _unary(name: str, primitive: Any, takes_complex: bool | str) -> Any:
    """Make the public function of one operand, which checks it and calls `primitive`."""

    def public(x: Any, /) -> Any:
        if not isinstance(x, TensorBase):
            x = as_operand(f"scipy.special.{name}", x)
        dtype = x.dtype
        if dtype.is_complex and not takes_complex:
            refuse_complex(f"scipy.special.{name}", "x", x)
        return primitive(x if dtype.differentiable else x._cast(x.default_dtype("real floating")))

    return public


def _matching(given: tuple[Any, ...]) -> list[Any] | None:
    """Return operands that need no conversion: Tensors of one class and real dtype with equal shapes or 0-d, and numbers; else None."""
    first: Any = given[0]
    if not isinstance(first, TensorBase) or not first.dtype.is_floating_point:
        return None
    raw, cls, shape = first._array.dtype, first.__class__, first._array.shape
    out = list(given)
    for i, x in enumerate(out):
        if x.__class__ is float or x.__class__ is int:
            out[i] = number(tensor_class(first.device), float(x), first.dtype)
        elif x.__class__ is not cls or x._array.dtype != raw:
            return None
        elif x._array.shape != shape and x._array.shape != ():
            if shape != ():
                return None
            shape = x._array.shape
    return out


def operands_of(
    name: str, names: tuple[str, ...], given: tuple[Any, ...], takes_complex: bool | str = False, module: str = "special"
) -> list[Any]:
    """Convert operands to Tensors with a common floating-point or complex dtype.

    Raises
    ------
    TypeError, ValueError, DeviceMismatchError
        An operand is not a Tensor, an array or a number, or is complex where only real numbers are allowed; or shapes do not broadcast.
        The message names the argument.
    """
    if (met := _matching(given)) is not None:
        return met
    title = f"scipy.{module}.{name}"
    xs = lift_all(title, given)
    like: Any = None
    for i, x in enumerate(xs):
        if isinstance(x, TensorBase):
            if not x.dtype.differentiable:
                x = xs[i] = x._cast(x.default_dtype("real floating"))
            if x.dtype.is_complex and takes_complex not in (True, names[i]):
                refuse_complex(title, names[i], x)
            if like is None or like.ndim == 0:
                like = x
    for i, x in enumerate(xs):
        if isinstance(x, TensorBase):
            continue
        scalar = as_scalar(x)
        if scalar is NOT_SCALAR:
            msg = f"{title}: `{names[i]}` must be a Tensor, an array or a number, but got {shown(x)}"
            raise TypeError(msg)
        if not isinstance(scalar, complex):
            scalar = float(scalar)
        elif takes_complex not in (True, names[i]):
            msg = f"{title}: `{names[i]}` must be real, but got the complex number {scalar!r}"
            raise TypeError(msg)
        # Convert it to a Tensor in the dtype of the other operands, because kernels and formulas take arrays only.
        if like is None:
            xs[i] = operations.asarray(scalar)
        else:
            xs[i] = operations.asarray(scalar, dtype=operations.result_type(like, scalar), device=like.device)
    tensors = [x for x in xs if isinstance(x, TensorBase)]
    if any(x._array.shape != tensors[0]._array.shape for x in tensors[1:]) and all(n == n for x in tensors for n in x._array.shape):
        try:
            common_shape(*(x._array.shape for x in tensors))
        except ValueError as exc:
            what = ", ".join(f"`{n}` has shape {tuple(x.shape)}" for n, x in zip(names, xs) if isinstance(x, TensorBase))
            msg = f"{title}: {what}, which do not broadcast together; reshape one, e.g. with `xpgrad.expand_dims(x, axis=-1)`"
            raise ValueError(msg) from exc
    return xs


def as_complex(x: Any) -> Any:
    """Cast a real Tensor to the complex dtype of the same precision, for a function that is complex also of real numbers."""
    return x if x.dtype.is_complex else x._cast(operations.result_type(x, 1j))


def _several(name: str, primitive: Any, takes_complex: bool | str, names: tuple[str, ...]) -> Any:
    """Make the public function of the operands `names`, which checks them and calls `primitive`."""

    def public(*operands: Any) -> Any:
        if len(operands) != len(names):
            msg = f"scipy.special.{name} takes {len(names)} arguments ({', '.join(names)}), but got {len(operands)}"
            raise TypeError(msg)
        return primitive(*operands_of(name, names, operands, takes_complex))

    return public
