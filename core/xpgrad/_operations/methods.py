"""Make methods of a Tensor from declared functions and set them on `TensorBase`, so that one declaration is enough.

Type checkers find them in `_tensor/declared.pyi`, which ``python tests/project/test_api.py`` writes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from xpgrad._array.base import TensorBase
from xpgrad._modes.state import current
from xpgrad._operations.coerce import coerce
from xpgrad._operations.documents import document_in_place, document_reduction
from xpgrad._operations.forward import trampoline
from xpgrad._rows.namespace import IN_PLACE, METHODS
from xpgrad._rows.row import Row

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def add_operators(row: Row) -> None:
    """Set a row's Python operators on `TensorBase`: ``x OP y``, ``2 OP x`` and ``x OP= y``.

    At their first use a backend's class replaces the first two (see `forward`).
    """
    if row.operator is None or row.special_methods is None:
        return
    method, reflected = row.special_methods
    setattr(TensorBase, method, trampoline(row))
    if reflected is not None:
        setattr(TensorBase, reflected, lambda self, other, /: coerce(row, other, self))
    if row.operator.in_place is not None:
        setattr(TensorBase, row.operator.in_place, _make_update_method(row.name, is_operator=True))


def add_methods(public: Callable[..., Any], names: str | tuple[str, ...], row: Row | None = None) -> None:
    """Make a public function a method of its first operand.

    The method of a function over axes also accepts PyTorch's `dim` and `keepdim`; otherwise the method is the function.

    Parameters
    ----------
    public : callable
    names : str or tuple of str
        The names of the methods.
    row : Row, optional
        The function's row, if Tensors also have in-place methods: these names followed by an underscore.
    """
    for name in (names,) if isinstance(names, str) else names:
        METHODS[name] = public
        setattr(TensorBase, name, _make_method(public, name))
        if row is not None:
            IN_PLACE[f"{name}_"] = public
            method = _make_update_method(row.name) if len(row.tensors) == 2 else _make_rewrite_method(public)
            setattr(TensorBase, f"{name}_", _set_name(method, f"{name}_", document_in_place(name, row)))


def _set_name(method: Any, name: str, doc: str) -> Any:
    """Set the name and the docstring of a method of Tensors, and return it."""
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", doc
    return method


def _make_rewrite_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the in-place method that writes ``function(x)`` into `x`."""

    def method(self: Any) -> Tensor:
        return self._rewrite(function)

    return method


def _make_update_method(name: str, is_operator: bool = False) -> Callable[..., Any]:
    """Return the method that writes ``x OP other`` into `x`, for ``x OP= other`` or for a name; `name` is the row's."""
    if is_operator:
        return lambda self, other, /: self._update(name, other, True)

    def method(self: Any, other: Any, /) -> Tensor:
        return self._update(name, other)

    return method


def as_in_numpy_code(method: F) -> F:
    """Decorate a method of Tensors that NumPy's arrays have in another form, which is called in code that was written for NumPy."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        mode = current()
        numpy = None if mode is None else mode.numpy
        return method(self, *args, **options) if numpy is None else numpy.call_method(name, self, args, options)

    return cast("F", call)


def call_numpys(name: str, x: Any, *args: Any, **options: Any) -> Any:
    """Call the method of NumPy's arrays of this name in code that was written for NumPy; elsewhere return NotImplemented.

    Methods call it for what they refuse otherwise, so that they need no decorator, which would cost time in each call.
    """
    mode = current()
    numpy = None if mode is None else mode.numpy
    return NotImplemented if numpy is None else numpy.call_method(name, x, args, options)


def call_with_numpys(name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call the method of NumPy's arrays of this name with arguments that only NumPy's has.

    Raises
    ------
    TypeError
        Outside of code that was written for NumPy.
    """
    out = call_numpys(name, x, *args, **options)
    if out is NotImplemented:
        given = ", ".join(options) or "more positional ones"
        msg = f"{name}() got unexpected arguments ({given}); NumPy's further arguments are for code that `xpgrad.numpy_code` runs"
        raise TypeError(msg)
    return out


def axis_of(axis: Any, dim: Any) -> Any:
    """Return whichever of `axis` and its other name `dim` was given."""
    if dim is not None:
        if axis is not None:
            msg = f"`axis` and `dim` are two names for one argument, but got axis={axis!r} and dim={dim!r}"
            raise TypeError(msg)
        return dim
    return axis


def keepdims_of(keepdims: Any, keepdim: Any) -> Any:
    """Return `keepdim` if it was given, else `keepdims`; the function that is called checks the type."""
    return keepdims if keepdim is None else keepdim


def _call_numpys_reduction(name: str, x: Any, axis: Any, keepdim: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call NumPy's method over axes with arguments that only it has; what follows the axis and is not a bool is not PyTorch's `keepdim`."""
    if isinstance(keepdim, bool):
        options["keepdims"] = keepdim
    elif others or keepdim is not None:
        others = (keepdim, *others)
    return call_with_numpys(name, x, (axis, *others), {k: v for k, v in options.items() if k != "keepdims" or v})


def _is_numpys(argument: Any) -> bool:
    """Return whether what follows the axis is an argument of NumPy's method, in code that was written for NumPy, not a flag."""
    if argument is None or isinstance(argument, bool):
        return False
    mode = current()
    return mode is not None and mode.numpy is not None


#: Functions that NumPy's arrays have as methods with further arguments, or with another result.
_NUMPYS = ("clip", "conj", "round")


def _make_method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the method of a function over axes, which accepts PyTorch's argument names; any other function is returned unchanged."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "keepdims" not in known:
        return as_in_numpy_code(function) if name in _NUMPYS else function

    def method(
        self: Any, axis: Any = None, keepdim: Any = None, *numpys: Any, keepdims: bool = False, dim: Any = None, **more: Any
    ) -> Tensor:  # fmt: skip
        if numpys or more or _is_numpys(keepdim):
            return _call_numpys_reduction(name, self, axis_of(axis, dim), keepdim, numpys, {"keepdims": keepdims, **more})
        return function(self, axis=axis_of(axis, dim), keepdims=keepdims_of(keepdims, keepdim))

    def with_dtype(
        self: Any, axis: Any = None, keepdim: Any = None, *numpys: Any, dtype: Any = None, keepdims: bool = False, dim: Any = None,
        **more: Any,
    ) -> Tensor:  # fmt: skip
        if numpys or more or _is_numpys(keepdim):
            options = {"keepdims": keepdims, **({} if dtype is None else {"dtype": dtype}), **more}
            return _call_numpys_reduction(name, self, axis_of(axis, dim), keepdim, numpys, options)
        return function(self, axis=axis_of(axis, dim), dtype=dtype, keepdims=keepdims_of(keepdims, keepdim))

    made: Any = with_dtype if "dtype" in known else method
    signature = inspect.signature(made)
    documented = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    made.__signature__ = signature.replace(parameters=documented)
    return _set_name(made, name, document_reduction(function.__doc__))
