"""Check and convert the operands of matrix functions, and register the functions."""

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


def front(func: F) -> F:
    """Register a public function; it stands for the row with its name, if there is one."""
    title = f"scipy.linalg.{func.__name__}"
    EXTRAS[title] = func
    if (row := ROWS.get(f"{PREFIX}linalg_{func.__name__}")) is not None:
        row.public = (title,)
    return func


def floating(x: Any) -> Any:
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def checked(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    """Convert an operand to a Tensor of (square) floating-point or complex matrices.

    Raises
    ------
    ValueError
        For other shapes.
    """
    if x.ndim < 2:
        msg = f"scipy.linalg.{name}: `{argument}` must be a matrix, or a stack of them, of at least 2 axes, but has shape {x.shape}"
        raise ValueError(msg)
    if square and x.shape[-1] != x.shape[-2]:
        msg = f"scipy.linalg.{name}: `{argument}` must be a square matrix, or a stack of them, but has shape {x.shape}"
        raise ValueError(msg)
    return floating(x)


def matrix(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    return checked(name, argument, as_tensor(f"scipy.linalg.{name}", x), square=square)


def together(name: str, *xs: Any) -> list[Any]:
    """Convert Tensors to one device and their common dtype.

    Raises
    ------
    DeviceMismatchError
        If they are on several.
    """
    tensors = unify(f"scipy.linalg.{name}", list(xs))
    dtype = operations.result_type(*tensors)
    return [x._cast(dtype) for x in tensors]


def batches(name: str, **xs: Any) -> tuple[int, ...]:
    """Return the common shape of stacks.

    Raises
    ------
    ValueError
        If they do not broadcast.
    """
    try:
        return tuple(common_shape(*(x.shape[:-2] for x in xs.values())))
    except ValueError as exc:
        what = ", ".join(f"`{argument}` has shape {x.shape}" for argument, x in xs.items())
        msg = f"scipy.linalg.{name}: {what}: the axes before the last two do not broadcast together"
        raise ValueError(msg) from exc


def right_side(name: str, b: Any, rows: int, of: str) -> tuple[Any, bool]:
    """Return the right side as matrices, and whether it is a vector.

    Raises
    ------
    ValueError
        If it does not fit.
    """
    if b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != rows:
        msg = (
            f"scipy.linalg.{name}: `b` must have shape ({rows},) or (..., {rows}, K) to fit `{of}`, but has shape {b.shape}; give a stack "
            "of vectors as `b[..., None]`"
        )
        raise ValueError(msg)
    b = floating(b)
    return (reshape(b, (*b.shape, 1)), True) if b.ndim == 1 else (b, False)


def solution(x: Any, vector: bool) -> Any:
    return reshape(x, x.shape[:-1]) if vector else x


def adjoint(x: Any) -> Any:
    return matrix_transpose(conj(x) if x.dtype.is_complex else x)
