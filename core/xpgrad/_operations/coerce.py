"""Convert operands that differ in class or dtype: Tensors, raw arrays and scalars come to one device and dtype, or an error says why not.

The generated operations call `coerce` in this case. It converts the operands, recorded so that gradients flow through the conversions,
and calls the operation again.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._basics.dtypes import bool_, iinfo, promote, promote_scalar
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar, is_raw_array, is_scipy_sparse
from xpgrad._basics.shapes import common_shape
from xpgrad._operations.lift import ContainerError, find_strongest, is_movable, kind_of, lift_all, lift_matching
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import Row
from xpgrad._tape.saved import check_saved_operands
from xpgrad.errors import CaptureError, DeviceMismatchError

_SEQUENCES = (list, tuple, str)
#: A Python scalar for each kind of dtype.
_SAMPLES: dict[str, complex] = {
    "bool": False, "signed integer": 0, "unsigned integer": 0, "real floating": 0.0, "complex floating": 0j,
}  # fmt: skip


def unify(name: str, tensors: list[Any]) -> list[Any]:
    """Move Tensors to one device: only 0-d Tensors on a host device move, and any other mixture is an error.

    A 0-d Tensor that moves has a weak dtype, like a Python scalar: the others determine the precision.

    Raises
    ------
    DeviceMismatchError
        Naming both devices.
    """
    classes = {type(t) for t in tensors}
    if len(classes) == 1 and classes.pop().fresh is None:
        return tensors
    tensors = [t._stand_in() for t in tensors]
    if any(t.stage for t in tensors):
        tensors = _on_one_stage(tensors)
    anchors = [t for t in tensors if not is_movable(t)] or tensors[:1]
    target = type(anchors[0])
    for t in anchors:
        if type(t) is not target:
            msg = (
                f"`{name}` got Tensors on {anchors[0].device} (shape {anchors[0].shape}) and {t.device} (shape {t.shape}); move one "
                f"of them, e.g. with `x.to_device({str(anchors[0].device)!r})`. Only 0-d Tensors of a host device mix with others"
            )
            raise DeviceMismatchError(msg)
    return [t if type(t) is target else _move(t, anchors, target) for t in tensors]


def _move(t: Any, anchors: list[Any], target: Any) -> Any:
    """Move a 0-d Tensor on a host device to the class `target`, in the dtype that a Python scalar of its kind gets beside `anchors`."""
    dtype, sample = t.dtype, _SAMPLES[t.dtype.category]
    weak = not is_movable(anchors[0]) or target.backend.find_dtype(dtype.name) is None
    if weak and not isinstance(sample, bool):
        try:
            dtype = promote_scalar(functools.reduce(promote, _numbers(anchors)), sample, target.default_dtype)
        except TypeError:  # the dtypes do not promote: the operation raises the error
            dtype = t.dtype
    if t.backend.find_dtype(dtype.name) is None:
        return t.to_device(target.device)._cast(dtype)
    return t._cast(dtype).to_device(target.device)


def _numbers(tensors: list[Any]) -> list[Any]:
    """Return the dtypes of the Tensors that are not bool; of all of them if every one is bool."""
    return [t.dtype for t in tensors if t.dtype.category != "bool"] or [t.dtype for t in tensors]


def _on_one_stage(tensors: list[Any]) -> list[Any]:
    """Convert Tensors to the class of the highest stage among them; elements of a batch and captured values have a stage above 0."""
    # 0-d Tensors on another, host device move first, because a batch has the device of the Tensor that holds it.
    anchors = [t for t in tensors if t.stage and not is_movable(t)]
    if anchors:
        device = anchors[0].device
        moves = [not t.stage and is_movable(t) and t.device != device for t in tensors]
        tensors = [_move(t, anchors, type(anchors[0])) if m else t for t, m in zip(tensors, moves)]
    return type(max(tensors, key=lambda t: t.stage)).align(tensors)


def _multiply_sparse(row: Any, *operands: Any) -> Any:
    """Return the product of a Tensor and one of SciPy's older sparse matrices, whose ``*`` is that of matrices.

    Raises
    ------
    TypeError
        For anything else between the elements of a Tensor and a sparse array.
    """
    matrix = next(x for x in operands if is_scipy_sparse(x))
    if row.op == "*" and any(cls.__name__ == "spmatrix" for cls in type(matrix).__mro__):
        return sys.modules["numpy"].matmul(*operands)  # which calls `_numpy`
    msg = (
        f"`{row.name}` does not combine the elements of a Tensor and of SciPy's {type(matrix).__name__}: use `A @ x` for the product of "
        "matrices, or an array of `xpgrad.scipy.sparse.csr_array(A)`, which has `+`, `-`, `*` and `/`"
    )
    raise TypeError(msg)


def coerce(row: Any, *args: Any) -> Any:
    """Apply an operation to operands that its generated text does not accept.

    Returns
    -------
    Tensor, or NotImplemented for an operand of an unknown type, so that Python tries the operand's reflected operator.

    Raises
    ------
    TypeError
        For a list, a tuple or a str, whose reflected operators would try to use the Tensor as an index.
    """
    if len(args) == 2 == len(row.tensors):
        a, b = args
        constant = lift_matching(b, a) if isinstance(a, TensorBase) else lift_matching(a, b) if isinstance(b, TensorBase) else None
        if constant is not None:
            a, b = (a, constant) if isinstance(a, TensorBase) else (constant, b)
            return getattr(a, row.method)(b)
    count = len(row.tensors)
    operands, statics = list(args[:count]), args[count:]
    arrays = False
    for i, x in enumerate(operands):
        if not isinstance(x, TensorBase):
            scalar = as_scalar(x)
            if scalar is not NOT_SCALAR:
                operands[i] = scalar
            elif is_raw_array(x):
                arrays = True
            elif x.__class__ in _SEQUENCES and not _repeats(row, operands):
                operands[i] = next((t._from_sequence(x) for t in operands if isinstance(t, TensorBase)), None)
                if operands[i] is not None:
                    continue
                if row.name in ("equal", "not_equal"):
                    return NotImplemented
                raise not_a_tensor(row.name, *args[:count])
            else:
                return _multiply_sparse(row, *args) if is_scipy_sparse(x) else NotImplemented
    if arrays:
        try:
            operands = lift_all(row.name, operands)
        except ContainerError:
            if row.operator is None or count != 2:
                raise
            return NotImplemented  # for its own operator
    places = [i for i, x in enumerate(operands) if isinstance(x, TensorBase)]
    if not places:  # only numbers: the one of the strongest kind becomes a Tensor
        places = [find_strongest(operands, row.mixing or range(count))]
        operands[places[0]] = operations.asarray(args[places[0]])
    for i, x in zip(places, unify(row.name, [operands[i] for i in places])):
        operands[i] = x
    cls = type(operands[places[0]])
    if row.mixing and not any(i in places for i in row.mixing):  # `where` with a Tensor condition and two numbers
        i = find_strongest(operands, row.mixing)
        operands[i] = cls.scalar(operands[i], _own_dtype(operands[i], cls))
        places = sorted((*places, i))
    mixing = [i for i in row.mixing if i in places]
    if mixing:
        dtype = operands[mixing[0]].dtype
        for i in mixing[1:]:
            dtype = promote(dtype, operands[i].dtype)
        for i, x in enumerate(operands):
            if i not in places and i in row.mixing:
                dtype = promote_scalar(dtype, x, cls.default_dtype)
        for i in mixing:
            operands[i] = operands[i]._cast(dtype)
    if len(places) < count:
        if count == 2 and row.elementwise:
            prefix = "_sop_" if places[0] == 0 else "_srop_"
            scalar = operands[1 - places[0]]
            if isinstance(scalar, bool) and operands[places[0]].dtype.category != "bool":
                scalar = int(scalar)  # the standard refuses a bool with a numeric array
            return getattr(operands[places[0]], prefix + row.name)(scalar)
        dtype = operands[(mixing or places)[0]].dtype
        for i, x in enumerate(operands):
            if i not in places:
                operands[i] = cls.scalar(x, bool_ if isinstance(x, bool) and i not in row.mixing else dtype)
    # All operands now have one class and dtype, so the operation runs and does not call this function again.
    out = getattr(operands[0], row.method)(*operands[1:], *statics)
    check_saved_operands(out, operands)
    return out


def _repeats(row: Any, operands: list[Any]) -> bool:
    """Return whether the call is Python's ``[0] * n``, with `n` a 0-d integer Tensor."""
    return row.name == "multiply" and any(isinstance(x, TensorBase) and not x.ndim and "integer" in x.dtype.category for x in operands)


def _own_dtype(scalar: complex, cls: Any) -> Any:
    """Return the dtype of a number that meets no Tensor: the default one of its kind."""
    return bool_ if isinstance(scalar, bool) else cls.default_dtype(kind_of(scalar))


def explain(backend: Any, row: Row, exc: Exception, *arrays: Any) -> Exception:
    """Return the error for operands that a kernel refused: ours if their shapes, dtypes or sizes are the reason, else `exc`."""
    if isinstance(exc, CaptureError):  # it says what a compiled function cannot do
        return exc
    error: Exception | None = None
    large = max((a for a in arrays if isinstance(a, int)), key=abs, default=None)
    if isinstance(exc, OverflowError) or (large is not None and _overflows(backend, large, arrays)):
        if large is not None:
            msg = f"`{row.name}`: the scalar {large} does not fit in dtype {_dtype_name(arrays)}; use `xpgrad.astype`, or a float"
            error = OverflowError(msg)
    else:
        try:
            common_shape(*(a.shape for a in arrays if hasattr(a, "shape")))
        except ValueError as ours:
            msg = f"`{row.name}`: {ours}; reshape an operand, e.g. with `xpgrad.expand_dims(x, axis=-1)`"
            error = ValueError(msg)
        else:
            # NB: a library's error about traced values says more than ours. Not every library raises a TypeError for undefined operations.
            if (
                type(exc) is TypeError
                or (isinstance(exc, TypeError) and not any(backend.is_traced(a) for a in arrays))
                or _meaningless(backend, row, arrays)
            ):
                what = " and ".join(_dtype_name((a,)) if hasattr(a, "dtype") else f"the scalar {a!r:.40}" for a in arrays)
                error = TypeError(f"`{row.name}` is not defined for {what}; convert with `xpgrad.astype`")
    if error is None:
        return exc
    error.__cause__ = exc
    return error


def _overflows(backend: Any, number: int, arrays: Any) -> bool:
    """Return whether a Python integer is outside the range of the integer arrays it meets; some libraries raise no OverflowError."""
    dtype = next((backend.dtype_of(a.dtype) for a in arrays if hasattr(a, "dtype")), None)
    if dtype is None or "integer" not in dtype.category:
        return False
    limits = iinfo(dtype)
    return not limits.min <= number <= limits.max


def _meaningless(backend: Any, row: Row, arrays: Any) -> bool:
    """Return whether a row is not defined for operands of these kinds, so that its own error can replace the library's."""
    domain = row.domains[0]
    kinds = {backend.dtype_of(a.dtype).category if hasattr(a, "dtype") else kind_of(a) for a in arrays}
    if domain.numbers == "integer":
        return not kinds.isdisjoint(("real floating", "complex floating"))
    return (domain.numbers == "real" and "complex floating" in kinds) or (not domain.bools and kinds == {"bool"})


def _dtype_name(arrays: Any) -> str:
    """Return the name of the dtype of the first raw array."""
    return next((str(a.dtype).rpartition(".")[2] for a in arrays if hasattr(a, "dtype")), "?")
