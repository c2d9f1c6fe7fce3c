"""NumPy's universal functions on Tensors: calls, and the methods `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

A row with one name in both libraries is called as it is; the others are compositions of rows, so that their gradients are right.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.keys import basic_key
from xpgrad._numpy.operands import constant, floating, into, lift, refuse, weak
from xpgrad._numpy.table import ABSENT, UFUNCS, absent, no_rule
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.indexing import prepare_key
from xpgrad.rules.writing import unread

__all__ = ["Ufunc", "apply", "find"]


class Ufunc:
    """A universal function on Tensors.

    Attributes
    ----------
    name : str
    call : callable
        ``call(*inputs)``; what is not a Tensor is lifted by it.
    count : int
        The number of inputs.
    differentiable : bool
    safe : float
        A number at which the function and its derivative are finite: it takes the place of what ``where=`` leaves out.
    reduction, running : callable or None
        ``reduction(x, axis, keepdims)`` and ``running(x, axis)``, where the library has them; else they go step by step.
    neutral : number or None
        What changes nothing when it takes part in a reduction.
    several : bool
        Whether there are several results.
    """

    def __init__(self, name: str, call: Callable[..., Any], count: int, differentiable: bool = True, *, safe: float = 0.5,
                 several: bool = False, core: bool = False, note: str = "", table: dict[str, Any] = UFUNCS) -> None:  # fmt: skip
        self.name, self.call, self.count, self.differentiable = name, call, count, differentiable
        self.safe, self.several, self.core, self.note = safe, several, core, note
        self.reduction: Callable[..., Any] | None = None
        self.running: Callable[..., Any] | None = None
        self.neutral: Any = None
        table[name] = self


#: NumPy's objects that were met, so that a call finds its function by one look.
_FOUND: dict[Any, Ufunc] = {}


def find(ufunc: Any) -> Ufunc:
    """The function that stands for a universal function of NumPy.

    Raises
    ------
    TypeError
        For one that has none, and for those of other libraries.
    """
    found = _FOUND.get(ufunc)
    if found is None:
        name = getattr(ufunc, "__name__", repr(ufunc))
        if getattr(sys.modules.get("scipy.special._ufuncs"), name, None) is ufunc:
            found = _FOUND[ufunc] = _special(ufunc)
            return found
        if getattr(sys.modules["numpy"], name, None) is not ufunc:
            msg = (
                f"the universal function `{name}` of another library has no rule in xpgrad; write it with NumPy's or xpgrad's functions, "
                "wrap it in `xpgrad.autograd.Function` or `custom_rule`, or compute with `x.detach().numpy()` what is a constant"
            )
            raise TypeError(msg)
        if name not in UFUNCS:
            raise no_rule(name)
        found = _FOUND[ufunc] = UFUNCS[name]
    return found


#: The universal functions of `scipy.special` that were met.
_SPECIAL: dict[str, Ufunc] = {}


def _special(ufunc: Any) -> Ufunc:
    """The function of `xpgrad.scipy.special` that stands for one of SciPy's."""
    from xpgrad.scipy._ufuncs import function_for  # loads late: SciPy's functions, at the first that is called

    return Ufunc(ufunc.__name__, function_for(ufunc.__name__), ufunc.nin, table=_SPECIAL)


# -- calls -------------------------------------------------------------------------------------------------------------


def _one(op: Callable[..., Any], numeric: bool) -> Callable[..., Any]:
    """The call of a function of one Tensor; `numeric`: integers and bools are taken as floating numbers."""
    if not numeric:
        return op

    def call(x: Any) -> Any:
        return op(x if x._node is not None or x.dtype.differentiable else floating(x))

    return call


def _two(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a function of two operands."""

    def call(a: Any, b: Any) -> Any:
        other = b.__class__
        if other is not a.__class__ and other is not float and other is not int:
            a, b = weak(name, a, b)
        return op(a, b)

    return call


def _division(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a function of two operands that is not closed under integers."""

    def call(a: Any, b: Any) -> Any:
        if b.__class__ is not a.__class__:
            a, b = weak(name, a, b)
        if a.__class__ is b.__class__ and a._node is not None:
            return op(a, b)
        if not any(isinstance(t, Tensor) and t.dtype.differentiable for t in (a, b)):
            a, b = (floating(t) if isinstance(t, Tensor) else t for t in (a, b))
        return op(a, b)

    return call


def _truth(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a logical function: whatever is not zero is true."""

    def call(*args: Any) -> Any:
        return op(*(a if a.dtype.kind == "bool" else xp.not_equal(a, 0) for a in lift(name, *args)))

    return call


for _name, _row in {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "cos": "cos",
    "cosh": "cosh", "exp": "exp", "expm1": "expm1", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "sin": "sin",
    "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}.items():  # fmt: skip
    Ufunc(_name, _one(getattr(xp, _row), True), 1, safe=1.5 if _name == "arccosh" else 0.5)
for _name, _row in {
    "absolute": "abs", "ceil": "ceil", "floor": "floor", "negative": "negative", "positive": "positive", "reciprocal": "reciprocal",
    "rint": "round", "sign": "sign", "square": "square", "trunc": "trunc",
}.items():  # fmt: skip
    Ufunc(_name, _one(getattr(xp, _row), _name in ("rint", "reciprocal")), 1)
for _name in ("isfinite", "isinf", "isnan", "signbit"):
    Ufunc(_name, _one(getattr(xp, _name), True), 1, False)
Ufunc("invert", xp.bitwise_invert, 1, False)
for _name, _row in {
    "add": "add", "floor_divide": "floor_divide", "maximum": "maximum", "minimum": "minimum", "multiply": "multiply", "power": "pow",
    "remainder": "remainder", "subtract": "subtract",
}.items():  # fmt: skip
    Ufunc(_name, _two(_name, getattr(xp, _row)), 2)
for _name, _row in {"arctan2": "atan2", "copysign": "copysign", "divide": "divide", "hypot": "hypot", "logaddexp": "logaddexp"}.items():
    Ufunc(_name, _division(_name, getattr(xp, _row)), 2)
for _name, _row in {
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "equal": "equal", "greater": "greater",
    "greater_equal": "greater_equal", "left_shift": "bitwise_left_shift", "less": "less", "less_equal": "less_equal",
    "not_equal": "not_equal", "right_shift": "bitwise_right_shift",
}.items():  # fmt: skip
    Ufunc(_name, _two(_name, getattr(xp, _row)), 2, False)
Ufunc("nextafter", _division("nextafter", xp.nextafter), 2, False)
for _name in ("logical_and", "logical_not", "logical_or", "logical_xor"):
    Ufunc(_name, _truth(_name, getattr(xp, _name)), 1 if _name == "logical_not" else 2, False)


def _composed(
    *names: str, count: int = 1, differentiable: bool = True, numeric: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Declare a universal function that is written in others; its operands are floating Tensors where it is `numeric`."""

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:

            def call(*args: Any, name: str = name) -> Any:
                operands = lift(name, *args)
                return func(*(map(floating, operands) if numeric else operands))

            Ufunc(name, call, count, differentiable, **options)
        return func

    return declare


@_composed("conjugate", numeric=False)
def _conjugate(x: Any) -> Any:
    return xp.conj(x) if x.dtype.is_complex else xp.positive(x)


@_composed("fabs")
def _fabs(x: Any) -> Any:
    return xp.abs(_real("fabs", x))


@_composed("cbrt", note="the derivative at 0, which is infinite, is nan")
def _cbrt(x: Any) -> Any:
    return xp.sign(x) * xp.abs(_real("cbrt", x)) ** (1.0 / 3.0)


@_composed("exp2")
def _exp2(x: Any) -> Any:
    return xp.pow(2.0, x)


@_composed("deg2rad", "radians")
def _radians(x: Any) -> Any:
    return _real("deg2rad", x) * (math.pi / 180.0)


@_composed("rad2deg", "degrees")
def _degrees(x: Any) -> Any:
    return _real("rad2deg", x) * (180.0 / math.pi)


@_composed("modf", several=True)
def _modf(x: Any) -> tuple[Any, Any]:
    whole = xp.trunc(_real("modf", x))
    infinite = xp.isinf(x)
    return xp.where(infinite, xp.zeros_like(x), x - xp.where(infinite, xp.zeros_like(x), whole)), whole


@_composed("frexp", several=True)
def _frexp(x: Any) -> tuple[Any, Any]:
    with xp.no_grad():
        size = xp.abs(_real("frexp", x).detach())
        usual = xp.isfinite(size) & (size > 0)
        size = xp.where(usual, size, xp.ones_like(size))
        exponent = xp.floor(xp.log2(size)) + 1
        # The logarithm may round past an integer.
        mantissa = _scaled(size, -exponent)
        exponent = exponent + (mantissa >= 1)._cast(x.dtype) - (mantissa < 0.5)._cast(x.dtype)
        exponent = xp.where(usual, exponent, xp.zeros_like(exponent))
    return _scaled(x, -exponent), xp.astype(exponent, xp.int32)


def _scaled(x: Any, exponent: Any) -> Any:
    """``x * 2 ** exponent`` in two steps, of which none overflows."""
    half = xp.trunc(exponent / 2)
    return x * xp.pow(2.0, half) * xp.pow(2.0, exponent - half)


def _ldexp(x: Any, exponent: Any) -> Any:
    """``x * 2 ** exponent`` for integers, which a number would not stay beside a floating Tensor."""
    like = x if isinstance(x, Tensor) else exponent
    x, exponent = (t if isinstance(t, Tensor) else constant("ldexp", t, like) for t in (x, exponent))
    if exponent.dtype.differentiable:
        msg = f"np.ldexp: the exponents must be integers, but got dtype {exponent.dtype}; use `x * np.exp2(y)`"
        raise TypeError(msg)
    x, exponent = lift("ldexp", floating(x), exponent)
    return _scaled(x, exponent._cast(x.dtype))


Ufunc("ldexp", _ldexp, 2, note="differentiable in the first argument")


@_composed("spacing", differentiable=False)
def _spacing(x: Any) -> Any:
    size = xp.abs(_real("spacing", x).detach())
    return xp.copysign(xp.nextafter(size, xp.full_like(size, math.inf)) - size, x.detach())


@_composed("heaviside", count=2, note="the derivative in the first argument is zero")
def _heaviside(x: Any, at_zero: Any) -> Any:
    step = (x > 0)._cast(x.dtype) + x * 0.0  # nan stays nan, and the history goes on
    return xp.where(xp.isinf(x), (x > 0)._cast(x.dtype), xp.where(x == 0, at_zero, step))


@_composed("fmax", count=2, numeric=False)
def _fmax(a: Any, b: Any) -> Any:
    return _without_nan(xp.maximum, a, b)


@_composed("fmin", count=2, numeric=False)
def _fmin(a: Any, b: Any) -> Any:
    return _without_nan(xp.minimum, a, b)


def _without_nan(pick: Callable[..., Any], a: Any, b: Any) -> Any:
    if not (a.dtype.differentiable and b.dtype.differentiable):
        return pick(a, b)
    # What is not a number is replaced by the other, which then meets itself: its gradient is not lost.
    return pick(xp.where(xp.isnan(a), b, a), xp.where(xp.isnan(b), a, b))


@_composed("fmod", count=2, numeric=False)
def _fmod(a: Any, b: Any) -> Any:
    falls = a < 0
    rest = xp.remainder(xp.where(falls, -a, a), xp.where(b < 0, -b, b))
    return xp.where(falls, -rest, rest)


@_composed("divmod", count=2, numeric=False, several=True)
def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return xp.floor_divide(a, b), xp.remainder(a, b)


@_composed("float_power", count=2)
def _float_power(a: Any, b: Any) -> Any:
    if not a.backend.capabilities.float64:
        msg = f"np.float_power computes in float64, which {a.device} does not have; use `np.power`"
        raise TypeError(msg)
    return xp.pow(*(t._cast(xp.complex128 if t.dtype.is_complex else xp.float64) for t in (a, b)))


@_composed("logaddexp2", count=2)
def _logaddexp2(a: Any, b: Any) -> Any:
    return xp.logaddexp(a * math.log(2.0), b * math.log(2.0)) / math.log(2.0)


@_composed("matmul", count=2, numeric=False, core=True)
def _matmul(a: Any, b: Any) -> Any:
    return xp.matmul(a, b)


@_composed("matvec", count=2, numeric=False, core=True)
def _matvec(a: Any, b: Any) -> Any:
    return xp.squeeze(xp.matmul(a, xp.expand_dims(b, axis=-1)), axis=-1)


@_composed("vecmat", count=2, numeric=False, core=True)
def _vecmat(a: Any, b: Any) -> Any:
    return xp.squeeze(xp.matmul(xp.expand_dims(_conjugate(a), axis=-2), b), axis=-2)


@_composed("vecdot", count=2, numeric=False, core=True)
def _vecdot(a: Any, b: Any) -> Any:
    return xp.vecdot(a, b)


def _real(name: str, x: Any) -> Any:
    if x.dtype.is_complex:
        msg = f"np.{name} is not defined for complex numbers; take `np.abs(x)` or `np.real(x)` first"
        raise TypeError(msg)
    return x


absent("it counts in integers, which have no gradient, and the Array API standard has no such function", "gcd", "lcm", "bitwise_count")
absent("Tensors hold no dates", "isnat")

#: The functions whose operands are Tensors of numbers by the row alone, and that NumPy calls most: one look and one call.
UFUNCS["vecdot"].axis = True


# -- methods -----------------------------------------------------------------------------------------------------------


def _log_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    top = xp.max(x.detach(), axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    out = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else xp.squeeze(out, axis=axis)


for _name, _reduction, _running, _neutral in (
    ("add", xp.sum, xp.cumulative_sum, 0), ("multiply", xp.prod, xp.cumulative_prod, 1), ("maximum", xp.max, None, None),
    ("minimum", xp.min, None, None), ("logical_and", xp.all, None, True), ("logical_or", xp.any, None, False),
):  # fmt: skip
    UFUNCS[_name].reduction = lambda x, axis, keepdims, f=_reduction: f(x, axis=axis, keepdims=keepdims)
    UFUNCS[_name].neutral = _neutral
    if _running is not None:
        UFUNCS[_name].running = lambda x, axis, f=_running: f(x, axis=axis)
UFUNCS["logaddexp"].reduction, UFUNCS["logaddexp"].neutral = _log_sum, -math.inf


def apply(found: Ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply a universal function in any of NumPy's ways.

    Raises
    ------
    TypeError
        For an option or method that is not there, by name.
    """
    out = options.pop("out", None)
    refuse(found.name, **{key: options.pop(key) for key in ("casting", "order", "subok", "signature") if key in options})
    handler = _METHODS.get(method)
    if handler is None:
        msg = f"np.{found.name}.{method} has no rule in xpgrad; it has {', '.join(_METHODS)}"
        raise TypeError(msg)
    return handler(found, inputs, out, **options)


def _call(found: Ufunc, inputs: tuple[Any, ...], out: Any, *, where: Any = True, dtype: Any = None, **options: Any) -> Any:
    inputs = _with_dtype(found, inputs, dtype)
    if found.core and options:
        if found.name == "vecdot" and set(options) == {"axis"}:
            return _written(found, xp.vecdot(*(xp.moveaxis(t, options["axis"], -1) for t in lift("vecdot", *inputs))), out, None)
        refuse(found.name, **options)
    if where is True:
        if not any(isinstance(x, Tensor) for x in inputs):
            like = next(t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, Tensor))
            inputs = tuple(constant(found.name, x, like) for x in inputs)
        return _written(found, found.call(*inputs), out, None)
    if out is None or any(t is None for t in out):
        msg = f"np.{found.name}: `where` without `out` leaves elements that nobody has set; give `out`, or use `np.where` on the result"
        raise TypeError(msg)
    mask, *rest = lift(found.name, where, *inputs)
    # What is left out must not be computed: an infinite derivative would come back as nan, although it is multiplied by zero.
    kept = [xp.where(mask, t, 1 if not t.dtype.differentiable else found.safe) if t.dtype.kind != "bool" else t for t in rest]
    return _written(found, found.call(*kept), out, mask)


def _written(found: Ufunc, result: Any, out: Any, mask: Any) -> Any:
    if out is None:
        return result
    if found.several:
        return tuple(into(found.name, o, r, mask) for o, r in zip(out, result))
    return into(found.name, out, result, mask)


def _with_dtype(found: Ufunc, inputs: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """The inputs in the dtype that the function is to compute in."""
    if dtype is None:
        return inputs
    if not found.differentiable or found.several:
        msg = f"np.{found.name}: xpgrad has no `dtype` for this function, whose results have dtypes of their own; use `astype`"
        raise TypeError(msg)
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if not tensors:
        return inputs
    return tuple(_in_dtype(found.name, t, dtype) for t in lift(found.name, *inputs))


def _in_dtype(name: str, x: Any, dtype: Any) -> Any:
    wanted = as_dtype(dtype, x.default_dtype)
    order = {"bool": 0, "unsigned integer": 1, "signed integer": 2, "real floating": 3, "complex floating": 4}
    if order[x.dtype.kind] > order[wanted.kind]:
        msg = f"np.{name}: `dtype`={wanted} would lose a part of operands of dtype {x.dtype}; convert them with `xpgrad.astype`"
        raise TypeError(msg)
    return x._cast(wanted)


def _axes(name: str, x: Any, axis: Any) -> Any:
    """The axes of a reduction as a tuple; None stays None."""
    if axis is None:
        return None
    return tuple(axis) if isinstance(axis, (tuple, list)) else axis


def _reduce(found: Ufunc, inputs: tuple[Any, ...], out: Any, axis: Any = 0, dtype: Any = None, _out: Any = None, keepdims: bool = False,
            initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    _need_two(found, "reduce")
    name = f"{found.name}.reduce"
    like = next((t for t in (*inputs, where, initial, out, _out) if isinstance(t, Tensor)), None)
    (x,) = (t if isinstance(t, Tensor) else constant(name, t, like if like is not None else _first(out)) for t in inputs)
    if dtype is not None:
        x = _in_dtype(name, x, dtype)
    if found.name.startswith("logical") and x.dtype.kind != "bool":
        x = xp.not_equal(x, 0)
    if type(initial).__name__ == "_NoValueType":
        initial = None
    axis = _axes(name, x, axis)
    if where is not True:
        fill = found.neutral if found.neutral is not None else initial
        if fill is None:
            msg = f"np.{name}: `where` needs `initial`, because this reduction has no neutral element"
            raise ValueError(msg)
        mask, x = lift(name, where, x)
        fill = fill if isinstance(fill, Tensor) else type(x).scalar(fill, x.dtype)
        x = xp.where(mask, x, fill)
    if found.reduction is not None:
        if x.size == 0 and initial is not None and found.neutral is None:
            x, initial = _broadcast_initial(x, initial), None
        result = found.reduction(floating(x) if found.name == "logaddexp" else x, axis, keepdims)
    else:
        result = _step_by_step(found, x, axis, keepdims)
    if initial is not None:
        result = found.call(*weak(name, initial, result))
    return into(name, _out if out is None else out, result)


def _broadcast_initial(x: Any, initial: Any) -> Any:
    """One element per axis, of value `initial`: what an empty reduction is."""
    value = initial if isinstance(initial, Tensor) else type(x).scalar(initial, x.dtype)
    return xp.broadcast_to(value, tuple(n or 1 for n in x.shape))


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _step_by_step(found: Ufunc, x: Any, axis: Any, keepdims: bool) -> Any:
    """A reduction along one axis, one element after the other."""
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if axis is None and x.ndim == 1:
        axis = 0
    if axis is None or isinstance(axis, tuple):
        msg = f"np.{found.name}.reduce goes along one axis, because the order of the elements matters; give `axis` as an int"
        raise TypeError(msg)
    parts = xp.unstack(x, axis=axis)
    if not parts:
        msg = f"np.{found.name}.reduce needs at least one element along axis {axis}, but got shape {x.shape}"
        raise ValueError(msg)
    result = functools.reduce(found.call, parts)
    return xp.expand_dims(result, axis=axis) if keepdims else result


def _accumulate(found: Ufunc, inputs: tuple[Any, ...], out: Any, axis: Any = 0, dtype: Any = None, _out: Any = None) -> Any:
    _need_two(found, "accumulate")
    name = f"{found.name}.accumulate"
    (x,) = (t if isinstance(t, Tensor) else constant(name, t, _first(out)) for t in inputs)
    if dtype is not None:
        x = _in_dtype(name, x, dtype)
    if found.running is not None:
        result = found.running(x, axis)
    else:
        parts = list(xp.unstack(x, axis=axis))
        for k in range(1, len(parts)):
            parts[k] = found.call(parts[k - 1], parts[k])
        result = xp.stack(parts, axis=axis) if parts else x
    return into(name, _out if out is None else out, result)


def _outer(found: Ufunc, inputs: tuple[Any, ...], out: Any, **options: Any) -> Any:
    _need_two(found, "outer")
    a, b = lift(f"{found.name}.outer", *inputs)
    return _call(found, (xp.reshape(a, a.shape + (1,) * b.ndim), b), out, **options)


def _reduceat(
    found: Ufunc, inputs: tuple[Any, ...], out: Any, indices: Any = None, axis: int = 0, dtype: Any = None, _out: Any = None
) -> Any:
    _need_two(found, "reduceat")
    name = f"{found.name}.reduceat"
    x, *given = inputs
    x = x if isinstance(x, Tensor) else constant(name, x, next(t for t in (*given, _first(out)) if isinstance(t, Tensor)))
    places = given[0] if given else indices
    starts = [int(i) for i in (places.tolist() if hasattr(places, "tolist") else places)]
    if dtype is not None:
        x = _in_dtype(name, x, dtype)
    axis = axis % x.ndim
    lead = (slice(None),) * axis
    parts = []
    for start, stop in zip(starts, [*starts[1:], x.shape[axis]]):
        if start < stop:
            parts.append(_reduce(found, (x[(*lead, slice(start, stop))],), None, axis))
        else:
            parts.append(x[(*lead, start)])
    return into(name, _out if out is None else out, xp.stack(parts, axis=axis))


def _at(found: Ufunc, inputs: tuple[Any, ...], out: Any) -> None:
    """``ufunc.at(x, key, value)``: in place, and duplicates of the key add up."""
    if found.name not in ("add", "subtract"):
        msg = f"np.{found.name}.at has no rule in xpgrad: only `np.add.at` and `np.subtract.at` do; write `x[key] = f(x[key], value)` for "
        raise TypeError(msg + "keys without duplicates")
    x, key, value = inputs
    if not isinstance(x, Tensor):
        msg = f"np.{found.name}.at: a Tensor cannot be added into {type(x).__module__}.{type(x).__qualname__}; make the target a Tensor"
        raise TypeError(msg)
    value = value if isinstance(value, Tensor) else constant(f"{found.name}.at", value, x)
    part = x[key]
    value = xp.broadcast_to(value._cast(x.dtype), part.shape)
    spread = unread(operations, value, key if basic_key(key) else prepare_key(x, key), x.shape)
    if found.name == "add":
        x += spread
    else:
        x -= spread


def _need_two(found: Ufunc, method: str) -> None:
    if found.count != 2 or found.several or found.core:
        msg = f"np.{found.name}.{method}: only functions of two operands with one result have the method `{method}`"
        raise ValueError(msg)


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at, "reduceat": _reduceat,
}  # fmt: skip
assert not set(UFUNCS) & set(ABSENT)
