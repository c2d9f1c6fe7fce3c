"""From a declared function to methods of a Tensor: set on `TensorBase`, as operations are, so that a declaration says all of it.

Type checkers read them in `_tensor/declared.pyi`, which ``python tests/project/test_api.py`` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._operations.coerce import coerce
from xpgrad._operations.documents import document_in_place, document_reduction
from xpgrad._operations.forward import trampoline
from xpgrad._rows.namespace import IN_PLACE, METHODS
from xpgrad._rows.row import Row

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


def add_operators(row: Row) -> None:
    """Give Tensors the Python operators of a row: ``x OP y``, ``2 OP x`` and ``x OP= y``.

    A backend's class replaces the first two at their first use (`forward`).
    """
    if row.operator is None or row.special_methods is None:
        return
    method, reflected = row.special_methods
    setattr(TensorBase, method, trampoline(row))
    if reflected is not None:
        setattr(TensorBase, reflected, lambda self, other, /: coerce(row, other, self))
    if row.operator.in_place is not None:
        setattr(TensorBase, row.operator.in_place, _updating(row.name))


def add_methods(public: Callable[..., Any], names: str | tuple[str, ...], row: Row | None = None) -> None:
    """Make a public function a method of its first operand.

    A function of axes takes PyTorch's `dim` and `keepdim` as well; any other function is the method itself.

    Parameters
    ----------
    public : callable
    names : str or tuple of str
        The names of the method.
    row : Row, optional
        The function's row, if Tensors have the in-place methods, too: these names with an underscore behind them.
    """
    for name in (names,) if isinstance(names, str) else names:
        METHODS[name] = public
        setattr(TensorBase, name, _reducing(public, name))
        if row is not None:
            IN_PLACE[f"{name}_"] = public
            method = _updating(row.name) if len(row.tensors) == 2 else _rewriting(public)
            setattr(TensorBase, f"{name}_", _named(method, f"{name}_", document_in_place(name, row)))


def _named(method: Any, name: str, doc: str) -> Any:
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", doc
    return method


def _rewriting(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> Tensor:
        return self._rewrite(function)

    return method


def _updating(name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, /) -> Tensor:
        return self._update(name, other)

    return method


def axis_of(axis: Any, dim: Any) -> Any:
    """The axis, by whichever of its names it was given."""
    if dim is not None:
        if axis is not None:
            msg = f"`axis` and `dim` are two names for one argument, but got axis={axis!r} and dim={dim!r}"
            raise TypeError(msg)
        return dim
    return axis


def keepdims_of(keepdims: Any, keepdim: Any) -> Any:
    """`keepdims`, by whichever of its names it was given; the function refuses what is no bool."""
    return keepdims if keepdim is None else keepdim


def _reducing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method of a function over axes, with PyTorch's names of its arguments; any other function as it is."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "keepdims" not in known:
        return function

    def method(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        return function(self, axis=axis_of(axis, dim), keepdims=keepdims_of(keepdims, keepdim))

    def with_dtype(
        self: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: Any = None
    ) -> Tensor:  # fmt: skip
        return function(self, axis=axis_of(axis, dim), dtype=dtype, keepdims=keepdims_of(keepdims, keepdim))

    return _named(with_dtype if "dtype" in known else method, name, document_reduction(function.__doc__))
