"""Checks and conversions of the operands of matrix functions, and the decorator that registers these functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xpgrad._basics.shapes import common_shape
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import as_tensor
from xpgrad._rows.namespace import EXTRAS, operations
from xpgrad._rows.row import ROWS
from xpgrad.linalg import matrix_transpose
from xpgrad.rules.elementwise import conj
from xpgrad.rules.manipulation import reshape
from xpgrad.scipy._declare import PREFIX

F = TypeVar("F", bound=Callable[..., Any])


def register(func: F) -> F:
    """Register a public function; if a row has the same name, the function becomes its public name."""
    title = f"scipy.linalg.{func.__name__}"
    EXTRAS[title] = func
    if (row := ROWS.get(f"{PREFIX}linalg_{func.__name__}")) is not None:
        row.public = (title,)
    return func


def as_floating(x: Any) -> Any:
    """Cast integers to the default floating dtype."""
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def check_matrix(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    """Check that `x` is a (square) matrix or a stack of them, and return it, with integers converted to floating-point numbers.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, or is not square although `square` is True.
    """
    if x.ndim < 2:
        msg = f"scipy.linalg.{name}: `{argument}` must be a matrix, or a stack of them, of at least 2 axes, but has shape {x.shape}"
        raise ValueError(msg)
    if square and x.shape[-1] != x.shape[-2]:
        msg = f"scipy.linalg.{name}: `{argument}` must be a square matrix, or a stack of them, but has shape {x.shape}"
        raise ValueError(msg)
    return as_floating(x)


def as_matrix(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    """Return an argument as a Tensor of (square) matrices of floating or complex numbers."""
    return check_matrix(name, argument, as_tensor(f"scipy.linalg.{name}", x), square=square)


def promote(name: str, *xs: Any) -> list[Any]:
    """Return Tensors in their common dtype on one device.

    Raises
    ------
    DeviceMismatchError
        They are on different devices.
    """
    tensors = unify(f"scipy.linalg.{name}", list(xs))
    dtype = operations.result_type(*tensors)
    return [x._cast(dtype) for x in tensors]


def broadcast_batch(name: str, **xs: Any) -> tuple[int, ...]:
    """Return the shape to which the axes before the last two broadcast.

    Raises
    ------
    ValueError
        They do not broadcast.
    """
    try:
        return tuple(common_shape(*(x.shape[:-2] for x in xs.values())))
    except ValueError as exc:
        what = ", ".join(f"`{argument}` has shape {x.shape}" for argument, x in xs.items())
        msg = f"scipy.linalg.{name}: {what}: the axes before the last two do not broadcast together"
        raise ValueError(msg) from exc


def as_right_side(name: str, b: Any, rows: int, of: str) -> tuple[Any, bool]:
    """Return the right-hand side as matrices, and whether it was a vector.

    Raises
    ------
    ValueError
        It does not have `rows` rows.
    """
    if b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != rows:
        msg = (
            f"scipy.linalg.{name}: `b` must have shape ({rows},) or (..., {rows}, K) to fit `{of}`, but has shape {b.shape}; give a stack "
            "of vectors as `b[..., None]`"
        )
        raise ValueError(msg)
    b = as_floating(b)
    return (reshape(b, (*b.shape, 1)), True) if b.ndim == 1 else (b, False)


def restore_vector(x: Any, vector: bool) -> Any:
    """Drop the last axis of a solution if the right-hand side was a vector."""
    return reshape(x, x.shape[:-1]) if vector else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return matrix_transpose(conj(x) if x.dtype.is_complex else x)
