"""NumPy's ufuncs on Tensors: calls, and the methods `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

An elementwise row names the ufunc that it implements. The other ufuncs are compositions of rows, and so get their gradients from them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import xpgrad as xp
from xpgrad._backends.classes import host_backend
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.keys import basic_key
from xpgrad._basics.scalars import is_scipy_sparse
from xpgrad._modes.state import is_grad_enabled
from xpgrad._numpy.operands import (
    as_constant,
    as_floating,
    as_ints,
    as_tuple,
    can_cast_same_kind,
    lift,
    lift_weak,
    refuse,
    slice_axis,
    write_out,
)
from xpgrad._numpy.table import ABSENT, UFUNCS, F, declare_absent, no_rule_error
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import ROWS, Row
from xpgrad._tensor.tensor import Tensor
from xpgrad._tensor.writing import shares_memory
from xpgrad.rules.indexing import prepare_key
from xpgrad.rules.writing import transpose_read


class Ufunc:
    """The implementation of a NumPy ufunc on Tensors.

    Attributes
    ----------
    name : str
    call : callable
        ``call(*inputs)``, which lifts inputs that are not Tensors.
    count : int
        The number of inputs.
    differentiable : bool
    safe : float
        A number at which the function and its derivative are finite; it replaces elements at which ``where=`` is False.
    reduction, cumulative : callable or None
        ``reduction(x, axis, keepdims)`` and ``cumulative(x, axis)``, if xpgrad has a row for them; else None, and `reduce` and
        `accumulate` call the function once for each element.
    neutral : number, callable or None
        The neutral element (NumPy's `identity`); ``neutral(x)`` if it depends on the dtype.
    multiple_results : bool
        Whether the function returns several arrays.
    is_generalized : bool
        Whether it has a signature of core dimensions, as `matmul` has.
    note : str
        How it differs from NumPy, for the documentation.
    row : Row or None
        The row that implements it.
    """

    def __init__(self, name: str, call: Callable[..., Any], count: int, differentiable: bool = True, *, safe: float = 0.5, note: str = "",
                 multiple_results: bool = False, is_generalized: bool = False, table: dict[str, Any] = UFUNCS) -> None:  # fmt: skip
        self.name, self.call, self.count, self.differentiable = name, call, count, differentiable
        self.safe, self.multiple_results, self.is_generalized, self.note = safe, multiple_results, is_generalized, note
        self.reduction: Callable[..., Any] | None = None
        self.cumulative: Callable[..., Any] | None = None
        self.neutral: Any = None
        self.row: Row | None = None
        table[name] = self


#: The implementation of each NumPy ufunc object that is a row or was called before.
_FOUND_UFUNCS: dict[Any, Ufunc] = {}


def find_ufunc(ufunc: Any) -> Ufunc:
    """Return the implementation of a ufunc of NumPy or `scipy.special`.

    Raises
    ------
    TypeError
        If it has none, or belongs to another library.
    """
    found = _FOUND_UFUNCS.get(ufunc)
    if found is None:
        name = getattr(ufunc, "__name__", repr(ufunc))
        if getattr(sys.modules.get("scipy.special._ufuncs"), name, None) is ufunc:
            found = _FOUND_UFUNCS[ufunc] = _find_special(ufunc)
            return found
        if getattr(sys.modules["numpy"], name, None) is not ufunc:
            msg = (
                f"the universal function `{name}` of another library has no rule in xpgrad; write it with NumPy's or xpgrad's functions, "
                "wrap it in `xpgrad.autograd.Function` or `custom_rule`, or compute with `x.detach().numpy()` what is a constant"
            )
            raise TypeError(msg)
        row = next((row for other, row in _iterate_rows() if other is ufunc), None)  # declared after this module was imported
        if row is None and name not in UFUNCS:
            raise no_rule_error(name)
        found = _FOUND_UFUNCS[ufunc] = UFUNCS[name] if row is None else _build_from_row(name, row)
    return found


#: The ufuncs of `scipy.special` that were called before.
_SPECIAL: dict[str, Ufunc] = {}


def _find_special(ufunc: Any) -> Ufunc:
    """Make the implementation of a ufunc of `scipy.special` from the function of the same name in `xpgrad.scipy.special`."""
    from xpgrad.scipy._ufuncs import function_for  # loads late: SciPy's functions, when the first is called

    return Ufunc(ufunc.__name__, function_for(ufunc.__name__), ufunc.nin, table=_SPECIAL)


# -- calls -------------------------------------------------------------------------------------------------------------


def _unary_call(op: Callable[..., Any], integers: str) -> Callable[..., Any]:
    """Return `call` of a unary row, which casts integers if the row has floating results."""
    if integers != "floating":
        return op

    def call(x: Any) -> Any:
        return op(x if x._node is not None or x.dtype.differentiable else as_floating(x))

    return call


def _binary_call(name: str, op: Callable[..., Any], integers: str) -> Callable[..., Any]:
    """Return `call` of a binary row, which lifts its operands, and casts integers if the row has floating results."""

    def call(a: Any, b: Any) -> Any:
        other = b.__class__
        if other is not a.__class__ and other is not float and other is not int:
            a, b = lift_weak(name, a, b)
        return op(a, b)

    def division(a: Any, b: Any) -> Any:
        if b.__class__ is not a.__class__:
            a, b = lift_weak(name, a, b)
        if a.__class__ is b.__class__ and a._node is not None:
            return op(a, b)
        if not any(isinstance(t, Tensor) and t.dtype.differentiable for t in (a, b)):
            a, b = (as_floating(t) if isinstance(t, Tensor) else t for t in (a, b))
        return op(a, b)

    return division if integers == "floating" else call


def _logical_call(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` of a logical row, which takes nonzero elements as True."""

    def call(*args: Any) -> Any:
        return op(*(a if a.dtype.category == "bool" else xp.not_equal(a, 0) for a in lift(name, *args)))

    return call


def _build_from_row(name: str, row: Row, integers: str | None = None) -> Ufunc:
    """Make the implementation of a ufunc from a row; it treats integers as the row's domain says, or as `integers`."""
    op, domain = getattr(operations, row.name), row.domains[0]
    count, integers = len(row.tensors), integers or domain.integers
    if integers == "truth":
        call = _logical_call(name, op)
    else:
        call = _unary_call(op, integers) if count == 1 else _binary_call(name, op, integers)
    found = Ufunc(name, call, count, row.differentiable, safe=0.5 if domain.low < 0.5 < domain.high else domain.low + 0.5)
    found.row = row
    return found


def _iterate_rows() -> Iterator[tuple[Any, Row]]:
    """Yield each NumPy ufunc that a row implements, and the row."""
    numpy = sys.modules["numpy"]
    for row in ROWS.values():
        ufunc = getattr(numpy, row.facts.ufunc or "", None)
        if isinstance(ufunc, numpy.ufunc):
            yield ufunc, row


host_backend().array_types()  # loads NumPy, whichever module imports this one first
for _ufunc, _row in _iterate_rows():
    _FOUND_UFUNCS[_ufunc] = _build_from_row(_ufunc.__name__, _row)
_build_from_row("rint", ROWS["round"], "floating")  # `np.round`, which leaves integers, is no ufunc


_reciprocal = UFUNCS["reciprocal"].call


def _reciprocal_of_numpy(x: Any) -> Any:
    """Return ``1 / x``; of integers the integer part, as NumPy does."""
    (x,) = lift("reciprocal", x)
    return xp.where(xp.abs(x) == 1, x, 0) if "integer" in x.dtype.category else _reciprocal(x)


UFUNCS["reciprocal"].call = _reciprocal_of_numpy


def _compose(name: str, count: int = 1, differentiable: bool = True, numeric: bool = True, real: bool = False, **options: Any
              ) -> Callable[[F], F]:  # fmt: skip
    """Return a decorator that implements a ufunc by a composition of rows, unless a row implements it.

    If `numeric`, integer operands are cast to the floating dtype. If `real`, complex operands raise `TypeError`.
    """

    def declare(func: F) -> F:
        def call(*args: Any) -> Any:
            operands = lift(name, *args)
            if numeric:
                operands = tuple(map(as_floating, operands))
            if real and any(x.dtype.is_complex for x in operands):
                msg = f"np.{name} is not defined for complex numbers; take `np.abs(x)` or `np.real(x)` first"
                raise TypeError(msg)
            return func(*operands)

        if name not in UFUNCS:
            Ufunc(name, call, count, differentiable, **options)
        return func

    return declare


_compose("fabs", real=True)(xp.abs)
_compose("exp2")(lambda x: xp.pow(2.0, x))
for _name in ("deg2rad", "radians"):
    _compose(_name, real=True)(lambda x: x * (math.pi / 180.0))
for _name in ("rad2deg", "degrees"):
    _compose(_name, real=True)(lambda x: x * (180.0 / math.pi))
_compose("divmod", 2, numeric=False, multiple_results=True)(lambda a, b: (xp.floor_divide(a, b), xp.remainder(a, b)))
_compose("logaddexp2", 2)(lambda a, b: xp.logaddexp(a * math.log(2.0), b * math.log(2.0)) / math.log(2.0))


@_compose("cbrt", real=True)
def _cbrt(x: Any) -> Any:
    from xpgrad.scipy.special import cbrt  # loads late: SciPy's functions, when the first is called

    return cbrt(x)


def _matmul(a: Any, b: Any) -> Any:
    if not (is_scipy_sparse(a) or is_scipy_sparse(b)):
        return xp.matmul(*lift("matmul", a, b))
    from xpgrad.scipy.sparse._array import as_sparse  # loads late: SciPy's sparse arrays, when the first is met

    return as_sparse("matmul", a, b) @ b if isinstance(b, Tensor) else a @ as_sparse("matmul", b, a)


Ufunc("matmul", _matmul, 2, is_generalized=True)
_compose("vecdot", 2, numeric=False, is_generalized=True)(xp.vecdot)
_compose("matvec", 2, numeric=False, is_generalized=True)(lambda a, b: xp.squeeze(xp.matmul(a, xp.expand_dims(b, axis=-1)), axis=-1))
_compose("vecmat", 2, numeric=False, is_generalized=True)(
    lambda a, b: xp.squeeze(xp.matmul(xp.expand_dims(xp.conj(a), axis=-2), b), axis=-2)
)


@_compose("modf", real=True, multiple_results=True)
def _modf(x: Any) -> tuple[Any, Any]:
    whole = xp.trunc(x)
    infinite = xp.isinf(x)
    return xp.where(infinite, xp.zeros_like(x), x - xp.where(infinite, xp.zeros_like(x), whole)), whole


@_compose("frexp", real=True, multiple_results=True)
def _frexp(x: Any) -> tuple[Any, Any]:
    with xp.no_grad():
        size = xp.abs(x.detach())
        usual = xp.isfinite(size) & (size > 0)
        size = xp.where(usual, size, xp.ones_like(size))
        exponent = xp.floor(xp.log2(size)) + 1
        # The logarithm may have been rounded across an integer, so the exponent may be off by one.
        mantissa = _scale_by_power_of_two(size, -exponent)
        exponent = exponent + (mantissa >= 1)._cast(x.dtype) - (mantissa < 0.5)._cast(x.dtype)
        exponent = xp.where(usual, exponent, xp.zeros_like(exponent))
    return _scale_by_power_of_two(x, -exponent), xp.astype(exponent, xp.int32)


def _scale_by_power_of_two(x: Any, exponent: Any) -> Any:
    """Return ``x * 2 ** exponent``, in two steps so that ``2 ** exponent`` cannot overflow."""
    half = xp.trunc(exponent / 2)
    return x * xp.pow(2.0, half) * xp.pow(2.0, exponent - half)


def _ldexp(x: Any, exponent: Any) -> Any:
    """Return ``x * 2 ** exponent``. The exponent becomes a Tensor first: `lift` would make a number floating."""
    like = x if isinstance(x, Tensor) else exponent
    x, exponent = (t if isinstance(t, Tensor) else as_constant("ldexp", t, like) for t in (x, exponent))
    if exponent.dtype.differentiable:
        msg = f"np.ldexp: the exponents must be integers, but got dtype {exponent.dtype}; use `x * np.exp2(y)`"
        raise TypeError(msg)
    x, exponent = lift("ldexp", as_floating(x), exponent)
    return _scale_by_power_of_two(x, exponent._cast(x.dtype))


Ufunc("ldexp", _ldexp, 2, note="differentiable in the first argument")


@_compose("spacing", differentiable=False, real=True)
def _spacing(x: Any) -> Any:
    size = xp.abs(x.detach())
    return xp.copysign(xp.nextafter(size, xp.full_like(size, math.inf)) - size, x.detach())


@_compose("heaviside", count=2, note="the derivative in the first argument is zero")
def _heaviside(x: Any, at_zero: Any) -> Any:
    step = (x > 0)._cast(x.dtype) + x * 0.0  # adding x * 0 propagates nan and keeps the graph connected
    return xp.where(xp.isinf(x), (x > 0)._cast(x.dtype), xp.where(x == 0, at_zero, step))


def _pick_ignoring_nan(pick: Callable[..., Any], a: Any, b: Any) -> Any:
    if not (a.dtype.differentiable and b.dtype.differentiable):
        return pick(a, b)
    # A nan is replaced by the other operand, so that the two halves of a tie give that operand its whole gradient.
    return pick(xp.where(xp.isnan(a), b, a), xp.where(xp.isnan(b), a, b))


_compose("fmax", 2, numeric=False)(lambda a, b: _pick_ignoring_nan(xp.maximum, a, b))
_compose("fmin", 2, numeric=False)(lambda a, b: _pick_ignoring_nan(xp.minimum, a, b))


@_compose("fmod", count=2, numeric=False)
def _fmod(a: Any, b: Any) -> Any:
    negative = a < 0
    rest = xp.remainder(xp.where(negative, -a, a), xp.where(b < 0, -b, b))
    return xp.where(negative, -rest, rest)


@_compose("float_power", count=2)
def _float_power(a: Any, b: Any) -> Any:
    if not a.backend.capabilities.float64:
        msg = f"np.float_power computes in float64, which {a.device} does not have; use `np.power`"
        raise TypeError(msg)
    return xp.pow(*(t._cast(xp.complex128 if t.dtype.is_complex else xp.float64) for t in (a, b)))


declare_absent(
    "its results are integers, which have no gradient, and the Array API standard has no such function", "gcd", "lcm", "bitwise_count"
)
declare_absent("Tensors hold no dates", "isnat")


# -- methods -----------------------------------------------------------------------------------------------------------


def _log_sum_exp(x: Any, axis: Any, keepdims: bool) -> Any:
    top = xp.max(x.detach(), axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    out = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else xp.squeeze(out, axis=axis)


for _name, _reduction, _running, _identity in (
    ("add", xp.sum, xp.cumulative_sum, 0), ("multiply", xp.prod, xp.cumulative_prod, 1), ("maximum", xp.max, None, None),
    ("minimum", xp.min, None, None), ("logical_and", xp.all, None, True), ("logical_or", xp.any, None, False),
):  # fmt: skip
    UFUNCS[_name].reduction = lambda x, axis, keepdims, f=_reduction: f(x, axis=axis, keepdims=keepdims)
    UFUNCS[_name].neutral = _identity
    if _running is not None:
        UFUNCS[_name].cumulative = lambda x, axis, f=_running: f(x, axis=axis)
UFUNCS["logaddexp"].reduction, UFUNCS["logaddexp"].neutral = _log_sum_exp, -math.inf
for _name in ("hypot", "logical_xor", "bitwise_or", "bitwise_xor"):
    UFUNCS[_name].neutral = 0
UFUNCS["logaddexp2"].neutral = -math.inf
UFUNCS["bitwise_and"].neutral = lambda x: xp.bitwise_invert(xp.zeros((), dtype=x.dtype, device=x.device))
#: Functions without a neutral element whose reduction does not depend on the order of the elements.
_REORDERABLE = frozenset({"fmax", "fmin"})


def apply_method(ufunc: Ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a ufunc with options, or one of its methods.

    Raises
    ------
    TypeError
        If xpgrad lacks the method or the option.
    """
    out = options.pop("out", None)
    refuse(ufunc.name, **{key: options.pop(key) for key in ("casting", "order", "subok", "signature") if key in options})
    handler = _METHODS.get(method)
    if handler is None:
        msg = f"np.{ufunc.name}.{method} has no rule in xpgrad; it has {', '.join(_METHODS)}"
        raise TypeError(msg)
    return handler(ufunc, inputs, out, **options)


def _call(ufunc: Ufunc, inputs: tuple[Any, ...], out: Any, *, where: Any = True, dtype: Any = None, **options: Any) -> Any:
    inputs = _cast_inputs(ufunc, inputs, dtype)
    if out is not None and is_grad_enabled():
        inputs = _copy_overwritten(inputs, out if isinstance(out, tuple) else (out,))
    if ufunc.is_generalized and options:
        if ufunc.name == "vecdot" and set(options) == {"axis"}:
            return _write_results(ufunc, xp.vecdot(*(xp.moveaxis(t, options["axis"], -1) for t in lift("vecdot", *inputs))), out, None)
        refuse(ufunc.name, **options)
    if where is True:
        if not any(isinstance(x, Tensor) for x in inputs):
            like = next(t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, Tensor))
            inputs = tuple(as_constant(ufunc.name, x, like) for x in inputs)
        return _write_results(ufunc, ufunc.call(*inputs), out, None)
    if out is None or any(t is None for t in out):
        msg = f"np.{ufunc.name}: `where` without `out` leaves elements unset; give `out`, or use `np.where` on the result"
        raise TypeError(msg)
    mask, *rest = lift(ufunc.name, where, *inputs)
    return _write_results(ufunc, ufunc.call(*(_fill_where_false(ufunc, mask, t) for t in rest)), out, mask)


def _copy_overwritten(inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace operands in the memory of an ``out`` by copies if the call is recorded: its node may save them for the backward pass."""
    if not any(isinstance(x, Tensor) and x._node is not None for x in inputs):
        return inputs
    targets = [o for o in outs if isinstance(o, Tensor)]
    return tuple(x.clone() if isinstance(x, Tensor) and any(x is o or shares_memory(o, x) for o in targets) else x for x in inputs)


def _write_results(ufunc: Ufunc, result: Any, out: Any, mask: Any) -> Any:
    if out is None:
        return result
    if ufunc.multiple_results:
        return tuple(write_out(ufunc.name, o, r, mask) for o, r in zip(out, result))
    return write_out(ufunc.name, out, result, mask)


def _cast_inputs(ufunc: Ufunc, inputs: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """Lift and cast the inputs to the dtype in which the function computes; return them unchanged if `dtype` is None."""
    if dtype is None:
        return inputs
    if not ufunc.differentiable or ufunc.multiple_results:
        msg = f"np.{ufunc.name}: xpgrad has no `dtype` for this function, whose results have fixed dtypes; use `astype`"
        raise TypeError(msg)
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if not tensors:
        return inputs
    return tuple(_cast_operand(ufunc.name, t, dtype) for t in lift(ufunc.name, *inputs))


def _cast_operand(name: str, x: Any, dtype: Any) -> Any:
    wanted = as_dtype(dtype, x.default_dtype)
    if not can_cast_same_kind(x.dtype, wanted):
        msg = f"np.{name}: `dtype`={wanted} would lose a part of operands of dtype {x.dtype}; convert them with `xpgrad.astype`"
        raise TypeError(msg)
    return x._cast(wanted)


def _prepare_operand(ufunc: Ufunc, method: str, x: Any, dtype: Any, like: Any) -> Any:
    """Return the operand of a method as a Tensor of the dtype in which the method computes.

    Raises
    ------
    TypeError
        If the function returns bools, which it would have to compare with elements of another dtype.
    """
    _check_binary(ufunc, method)
    name = f"{ufunc.name}.{method}"
    x = x if isinstance(x, Tensor) else as_constant(name, x, like)
    if dtype is not None:
        x = _cast_operand(name, x, dtype)
    if ufunc.name.startswith("logical"):
        return x if x.dtype.category == "bool" else xp.not_equal(x, 0)
    if ufunc.reduction is not None and ufunc.name != "logaddexp":
        return x  # these rows decide the dtype for integers and bools
    empty = xp.zeros(0, dtype=x.dtype, device=x.device)
    computed = ufunc.call(empty, empty).dtype
    if computed.category == "bool" and x.dtype.category != "bool":
        msg = f"np.{name} would compare bools with elements of dtype {x.dtype}; compare neighbours with slices"
        raise TypeError(msg)
    return x._cast(computed)


def _normalize_axes(name: str, x: Any, axis: Any) -> tuple[int, ...]:
    """Return the axes of a reduction as non-negative ints; an empty tuple for a 0-d Tensor, as in NumPy."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = as_tuple(as_ints(name, "axis", axis))
    if not x.ndim and set(axes) <= {0, -1}:
        return ()
    if any(not -x.ndim <= a < x.ndim for a in axes) or len({a % x.ndim for a in axes}) < len(axes):
        msg = f"np.{name}: `axis`={axis!r} does not name distinct axes of an operand of shape {x.shape}"
        raise ValueError(msg)
    return tuple(a % x.ndim for a in axes)


#: The default of `initial`. It is not None, because None means: start with the first element, not with the neutral element.
_NO_INITIAL: Any = object()


def _reduce(ufunc: Ufunc, inputs: tuple[Any, ...], out: Any, axis: Any = 0, dtype: Any = None, _out: Any = None, keepdims: bool = False,
            initial: Any = _NO_INITIAL, where: Any = True) -> Any:  # fmt: skip
    name = f"{ufunc.name}.reduce"
    like = next((t for t in (*inputs, where, initial, out, _out) if isinstance(t, Tensor)), None)
    x = _prepare_operand(ufunc, "reduce", inputs[0], dtype, like if like is not None else _first_output(out))
    axes = _normalize_axes(name, x, axis)
    given = initial is not _NO_INITIAL and type(initial).__name__ != "_NoValueType"
    start: Any = initial if given else None
    mask: Any = None
    if getattr(start, "ndim", 0):
        msg = f"np.{name}: `initial` must be a number or a 0-d Tensor, but got shape {tuple(start.shape)}"
        raise ValueError(msg)
    if start is not None and ufunc.name.startswith("logical"):
        start = start != 0
    if not given and (where is not True or math.prod(x.shape[a] for a in axes) < 2):
        start = _neutral_element(ufunc, x)
    if where is not True:
        if start is None:
            msg = f"np.{name}: `where` needs `initial`, because this reduction has no neutral element"
            raise ValueError(msg)
        mask, x = lift(name, where, x)
        mask = xp.broadcast_to(mask, x.shape)
    if ufunc.reduction is None:
        result = _reduce_stepwise(ufunc, name, x, axes, start, mask)
        result = xp.reshape(result, tuple(1 if k in axes else n for k, n in enumerate(x.shape))) if keepdims else result
        return write_out(name, _out if out is None else out, result)
    if mask is not None:
        neutral = _neutral_element(ufunc, x)
        x = xp.where(mask, x, start if neutral is None else neutral)  # pyright: ignore[reportArgumentType] (one of them is a number)
    if x.size == 0 and start is not None and ufunc.name in ("maximum", "minimum", "logaddexp"):  # their rows raise for empty arrays
        start, x = lift(name, start, x)
        x, given = xp.broadcast_to(start, tuple(1 if k in axes else n for k, n in enumerate(x.shape))), False
    result = ufunc.reduction(x, axes, keepdims)
    if given and start is not None:
        result = ufunc.call(*lift_weak(name, start, result))
    return write_out(name, _out if out is None else out, result)


def _neutral_element(ufunc: Ufunc, x: Any) -> Any:
    """Return the function's neutral element in the dtype of `x`; None if it has none."""
    value = ufunc.neutral(x) if callable(ufunc.neutral) else ufunc.neutral
    return value if value is None or isinstance(value, Tensor) else type(x).scalar(value, x.dtype)


def _first_output(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _reduce_stepwise(ufunc: Ufunc, name: str, x: Any, axes: tuple[int, ...], start: Any, mask: Any) -> Any:
    """Reduce by calling the function once for each element, in the order of the axes; begin with `start` unless it is None.

    Raises
    ------
    TypeError
        If there are several axes and the order of the elements matters.
    ValueError
        If there are no elements and `start` is None.
    """
    if len(axes) > 1 and ufunc.neutral is None and ufunc.name not in _REORDERABLE:
        msg = f"np.{name} goes along one axis, because the order of the elements matters; give `axis` as an int"
        raise TypeError(msg)
    count = math.prod(x.shape[a] for a in axes)
    if start is None and not count:
        msg = f"np.{name} needs at least one element to reduce, but got shape {x.shape}; give `initial`"
        raise ValueError(msg)
    if start is not None:
        start, x = lift(name, start, x)
    parts, masks = (None if t is None else xp.unstack(_merge_axes_first(t, axes, count)) for t in (x, mask))
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    result = None if start is None else xp.broadcast_to(start, rest)
    for k, part in enumerate(parts or ()):
        if result is None:
            result = part
        elif masks is None:
            result = ufunc.call(result, part)
        else:
            combined = ufunc.call(_fill_where_false(ufunc, masks[k], result), _fill_where_false(ufunc, masks[k], part))
            result = xp.where(masks[k], combined, result)
    return result


def _merge_axes_first(x: Any, axes: tuple[int, ...], count: int) -> Any:
    """Return `x` with `axes` merged into one first axis of length `count`."""
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    return xp.reshape(xp.permute_dims(x, (*axes, *(k for k in range(x.ndim) if k not in axes))), (count, *rest))


def _fill_where_false(ufunc: Ufunc, mask: Any, x: Any) -> Any:
    """Replace elements at which `mask` is False by a number at which the derivative is finite.

    An infinite derivative there would give nan when it is multiplied by a zero gradient.
    """
    return x if x.dtype.category == "bool" else xp.where(mask, x, ufunc.safe if x.dtype.differentiable else 1)


def _normalize_one_axis(name: str, x: Any, axis: Any) -> int:
    """Return the axis of `accumulate` or `reduceat` as a non-negative int.

    Raises
    ------
    TypeError
        If `x` has no axes.
    ValueError
        If `axis` is None or is not an axis of `x`.
    """
    if not x.ndim or axis is None:
        msg = f"np.{name} goes along one axis; give `axis` as an int, and an operand with axes, not one of shape {x.shape}"
        raise (ValueError if x.ndim else TypeError)(msg)
    (found,) = _normalize_axes(name, x, axis)
    return found


def _accumulate(ufunc: Ufunc, inputs: tuple[Any, ...], out: Any, axis: Any = 0, dtype: Any = None, _out: Any = None) -> Any:
    name = f"{ufunc.name}.accumulate"
    x = _prepare_operand(ufunc, "accumulate", inputs[0], dtype, _first_output(out))
    axis = _normalize_one_axis(name, x, axis)
    if ufunc.cumulative is not None:
        result = ufunc.cumulative(x, axis)
    else:
        parts = list(xp.unstack(x, axis=axis))
        for k in range(1, len(parts)):
            parts[k] = ufunc.call(parts[k - 1], parts[k])
        result = xp.stack(parts, axis=axis) if parts else x
    return write_out(name, _out if out is None else out, result)


def _outer(ufunc: Ufunc, inputs: tuple[Any, ...], out: Any, **options: Any) -> Any:
    _check_binary(ufunc, "outer")
    a, b = lift(f"{ufunc.name}.outer", *inputs)
    return _call(ufunc, (xp.reshape(a, a.shape + (1,) * b.ndim), b), out, **options)


def _reduceat(
    ufunc: Ufunc, inputs: tuple[Any, ...], out: Any, indices: Any = None, axis: int = 0, dtype: Any = None, _out: Any = None
) -> Any:
    name = f"{ufunc.name}.reduceat"
    like = next((t for t in (*inputs, _first_output(out)) if isinstance(t, Tensor)), None)
    first, *rest = inputs
    boundaries = rest[0] if rest else indices
    x = _prepare_operand(ufunc, "reduceat", first, dtype, like)
    axis = _normalize_one_axis(name, x, axis)
    starts = [int(i) for i in (boundaries.tolist() if hasattr(boundaries, "tolist") else boundaries)]
    size = x.shape[axis]
    if not all(0 <= i < size for i in starts):
        msg = f"np.{name}: each index must be in [0, {size}), the length of axis {axis}, but got {starts}"
        raise IndexError(msg)
    stops = [stop if start < stop else start + 1 for start, stop in zip(starts, [*starts[1:], size])]
    parts = [_reduce(ufunc, (slice_axis(x, axis, *ends),), None, axis, initial=None) for ends in zip(starts, stops)]
    return write_out(name, _out if out is None else out, xp.stack(parts, axis=axis) if parts else slice_axis(x, axis, 0, 0))


def _at(ufunc: Ufunc, inputs: tuple[Any, ...], out: Any) -> None:
    """Run ``ufunc.at(x, key, value)`` in place; values at repeated indices accumulate."""
    if ufunc.name not in ("add", "subtract"):
        msg = f"np.{ufunc.name}.at has no rule in xpgrad: only `np.add.at` and `np.subtract.at` do; write `x[key] = f(x[key], value)` for "
        raise TypeError(msg + "keys without duplicates")
    x, key, value = inputs
    if not isinstance(x, Tensor):
        msg = f"np.{ufunc.name}.at: a Tensor cannot be added into {type(x).__module__}.{type(x).__qualname__}; make the target a Tensor"
        raise TypeError(msg)
    _, value = lift(f"{ufunc.name}.at", x, value)
    part = x[key]
    value = xp.broadcast_to(value._cast(x.dtype), part.shape)
    update = transpose_read(operations, value, key if basic_key(key) else prepare_key(x, key), x.shape)
    write = Tensor.__iadd__ if ufunc.name == "add" else Tensor.__isub__  # NB: in HIPS autograd's dialect, `x += y` writes nothing
    write(x, update)


def _check_binary(ufunc: Ufunc, method: str) -> None:
    if ufunc.count != 2 or ufunc.multiple_results or ufunc.is_generalized:
        msg = f"np.{ufunc.name}.{method}: only functions of two operands with one result have the method `{method}`"
        raise ValueError(msg)


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at, "reduceat": _reduceat,
}  # fmt: skip
assert not set(UFUNCS) & set(ABSENT)
