"""The data types: one set of singletons for all backends, their promotion table and functions on them.

A backend maps these to its library's dtypes; this file knows no array library.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

__all__ = [
    "DType", "bfloat16", "can_cast", "complex64", "complex128", "finfo", "float16", "float32", "float64", "iinfo", "int8", "int16", "int32",
    "int64", "isdtype", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


#: NumPy's letters.
_LETTERS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "real floating": "f", "complex floating": "c"}
#: Further attributes of NumPy's dtypes, for which code written for NumPy asks.
_NUMPYS = frozenset(("byteorder", "char", "descr", "fields", "hasobject", "isnative", "names", "newbyteorder", "num", "str", "type"))
#: The names of the dtypes that NumPy has for Python's types.
_PYTHONS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class DType:
    """A data type of the standard, `float16` or `bfloat16`; equal to itself, and to the dtype, scalar type or name that NumPy has for it.

    It also has the attributes of NumPy's dtype of that name, such as `type` and `char`, except bfloat16, which NumPy does not have.

    Attributes
    ----------
    name : str
    category : str
        One of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"real floating"``, ``"complex floating"``, which the standard's
        `isdtype` calls kinds.
    kind : str
        NumPy's letter of the category: one of ``"b"``, ``"i"``, ``"u"``, ``"f"``, ``"c"``; bfloat16 has ``"f"``.
    itemsize : int
        Bytes per element.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> isinstance(xp.float32, xp.DType), xp.float32 == np.float32, xp.float32 == np.dtype("float64")
    (True, True, False)
    """

    __module__ = "xpgrad"  # what pickles name
    __slots__ = ("__weakref__", "category", "differentiable", "itemsize", "kind", "name")

    name: str
    category: str
    kind: str
    itemsize: int
    differentiable: bool

    def __init__(self, name: str, category: str, itemsize: int) -> None:
        self.name = name
        self.category = category
        self.kind = _LETTERS[category]
        self.itemsize = itemsize
        self.differentiable = category in ("real floating", "complex floating")

    @property
    def __numpy_dtype__(self) -> Any:
        """The NumPy dtype of the same name, so that ``np.dtype(xpgrad.float32)`` works; bfloat16 has none."""
        # NB: only numpy asks for this attribute, so numpy has been imported by then; the core itself never imports it.
        numpy = sys.modules.get("numpy")
        if numpy is None or self.name == "bfloat16":
            raise AttributeError  # `__getattr__` says why
        return numpy.dtype(self.name)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of that name, for versions of NumPy before 2.4; newer ones would take what has this attribute for an array.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> np.dtype(xp.float32)
        dtype('float32')
        """
        numpy = sys.modules.get("numpy")
        if numpy is not None and tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 4):
            raise AttributeError
        return self.__numpy_dtype__

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a real floating dtype (PyTorch's `torch.dtype.is_floating_point`).

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.float32.is_floating_point
        True
        """
        return self.category == "real floating"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype (PyTorch's `torch.dtype.is_complex`).

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.complex64.is_complex
        True
        """
        return self.category == "complex floating"

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, DType):
            return False
        if isinstance(other, str):
            return other == self.name or _find_code(other) is self
        if isinstance(other, type) and other in _PYTHONS:
            return self.name == _PYTHONS[other]
        numpy = sys.modules.get("numpy")
        if numpy is None or not (isinstance(other, numpy.dtype) or (isinstance(other, type) and issubclass(other, numpy.generic))):
            return NotImplemented
        try:
            found = numpy.dtype(other)
        except TypeError:  # an abstract type, such as `numpy.floating`
            return False
        return bool(found.name == self.name and found.isnative)

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...
    else:
        __hash__ = object.__hash__  # dtypes are keys on the hot path

        def __getattr__(self, name: str) -> Any:
            if name not in _NUMPYS:
                what = "NumPy counterpart" if name == "__numpy_dtype__" else f"attribute {name!r}"
                msg = f"xpgrad.{self.name} has no {what}"
                raise AttributeError(msg)
            return getattr(self.__numpy_dtype__, name)

    def __repr__(self) -> str:
        return f"xpgrad.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name  # unpickles as the singleton of that name in `xpgrad`

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: Any) -> DType:
        return self


_SIGNED, _UNSIGNED, _REAL, _COMPLEX = "signed integer", "unsigned integer", "real floating", "complex floating"
DTYPES: Final[dict[str, DType]] = {
    name: DType(name, kind, size)
    for kind, sizes in (
        ("bool", {"bool": 1}),
        (_SIGNED, {"int8": 1, "int16": 2, "int32": 4, "int64": 8}),
        (_UNSIGNED, {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8}),
        (_REAL, {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}),
        (_COMPLEX, {"complex64": 8, "complex128": 16}),
    )
    for name, size in sizes.items()
}
# One annotation each, so that type checkers show it.
bool_: DType = DTYPES["bool"]
int8: DType = DTYPES["int8"]
int16: DType = DTYPES["int16"]
int32: DType = DTYPES["int32"]
int64: DType = DTYPES["int64"]
uint8: DType = DTYPES["uint8"]
uint16: DType = DTYPES["uint16"]
uint32: DType = DTYPES["uint32"]
uint64: DType = DTYPES["uint64"]
float16: DType = DTYPES["float16"]
bfloat16: DType = DTYPES["bfloat16"]
float32: DType = DTYPES["float32"]
float64: DType = DTYPES["float64"]
complex64: DType = DTYPES["complex64"]
complex128: DType = DTYPES["complex128"]
_BY_SIZE = {kind: {d.itemsize: d for d in DTYPES.values() if d.category == kind} for kind in (_SIGNED, _UNSIGNED, _COMPLEX)}


def as_dtype(dtype: Any, default: Any = None) -> DType:
    """Return the `DType` for `dtype`: a `DType`, a name, a NumPy dtype, scalar type or code, or bool, int, float or complex.

    Parameters
    ----------
    dtype : object
    default : callable
        ``default(kind)`` returns the dtype of Python's ``int``, ``float`` or ``complex`` on the device in question.
        Without it these mean int64, float64 and complex128.

    Raises
    ------
    TypeError
        If `dtype` is not a data type.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        found = DTYPES.get(dtype) or _find_code(dtype)
    elif dtype is bool or dtype is int or dtype is float or dtype is complex:  # NB: NumPy's dtypes compare equal to these
        if dtype is bool:
            return bool_
        if default is not None:
            return default({int: "integral", float: "real floating", complex: "complex floating"}[dtype])
        found = {int: int64, float: float64, complex: complex128}[dtype]
    else:
        # A NumPy dtype has `.name`, a NumPy scalar type `.__name__`; bool is spelt "bool_" by the latter in old versions.
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", "")
        found = DTYPES.get(str(name).rstrip("_"))
        if found is None and isinstance(dtype, type) and dtype.__module__ == "numpy":
            found = DTYPES.get(_name_of_numpy_type(dtype))
        for number in (float, complex):
            if found is None and isinstance(dtype, type) and issubclass(dtype, number):
                return as_dtype(number, default)
    if found is None:
        names = ", ".join(DTYPES)
        msg = f"{dtype!r} is not a data type; use one of xpgrad's ({names}), e.g. `dtype=xpgrad.float32`"
        raise TypeError(msg)
    return found


def _find_code(code: str) -> DType | None:
    """Return the dtype that NumPy means by a code or another name, such as ``"f8"``, ``"d"`` and ``"double"``; None if there is none."""
    numpy = sys.modules.get("numpy")
    try:
        found = None if numpy is None else numpy.dtype(code)
    except TypeError:
        return None
    return DTYPES.get(found.name) if found is not None and found.isnative else None


def _name_of_numpy_type(scalar: type) -> str:
    """Return the dtype name of a NumPy scalar type named after a C type, such as `longlong`; empty if it has none."""
    numpy = sys.modules["numpy"]  # already imported, because `scalar` is one of its types
    # NB: a type with subclasses, such as `floating`, is abstract; old versions convert it to one of them.
    return str(numpy.dtype(scalar).name) if issubclass(scalar, numpy.generic) and not scalar.__subclasses__() else ""


def real_of(dtype: DType) -> DType:
    """Return the dtype of the real part of `dtype` (`dtype` itself if it is not complex)."""
    if dtype is complex64:
        return float32
    return float64 if dtype is complex128 else dtype


def complex_of(dtype: DType) -> DType:
    """Return the complex dtype whose parts have at least the precision of the floating `dtype`."""
    if dtype.category == _COMPLEX:
        return dtype
    return complex128 if dtype is float64 else complex64


def _promote(a: DType, b: DType) -> DType | None:
    """Return the dtype to which `a` and `b` promote, or None; `promote` looks it up in the table that this function fills."""
    if a is b:
        return a
    if a.kind == b.kind:
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize >= b.itemsize else b
    for x, y in ((a, b), (b, a)):
        if x.category == "bool":
            return y
        if x.category in (_SIGNED, _UNSIGNED) and y.differentiable:
            return y
        if x.category == _REAL and y.category == _COMPLEX:
            return complex128 if x is float64 else y
        if x.category == _SIGNED and y.category == _UNSIGNED:
            return _BY_SIZE[_SIGNED].get(max(x.itemsize, 2 * y.itemsize))
    return None


_PROMOTION = {(a, b): _promote(a, b) for a in DTYPES.values() for b in DTYPES.values()}


def promote(a: DType, b: DType) -> DType:
    """Return the dtype to which `a` and `b` promote: by the standard's table within a kind, by xpgrad's across kinds.

    Across kinds the rule is the same on every backend: bool with x gives x, and an integer with a floating or complex dtype gives the
    latter.

    Raises
    ------
    TypeError
        For uint64 with a signed integer, because no dtype holds both.
    """
    out = _PROMOTION[a, b]
    if out is None:
        msg = f"{a} and {b} do not promote to a common dtype; convert one of them, e.g. `xpgrad.astype(x, xpgrad.int64)`"
        raise TypeError(msg)
    return out


def promote_scalar(dtype: DType, scalar: complex, default: Any) -> DType:
    """Return the dtype to which a Tensor of `dtype` and a Python scalar promote; the scalar can raise only the kind.

    Parameters
    ----------
    dtype : DType
    scalar : bool, int, float or complex
    default : callable
        ``default(kind)`` is the device's default dtype of a kind.
    """
    if isinstance(scalar, bool):
        return dtype
    if isinstance(scalar, int):
        return default("integral") if dtype is bool_ else dtype
    if isinstance(scalar, float):
        return dtype if dtype.differentiable else default("real floating")
    return complex_of(dtype) if dtype.differentiable else default("complex floating")


_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    _SIGNED: (_SIGNED,),
    _UNSIGNED: (_UNSIGNED,),
    "integral": (_SIGNED, _UNSIGNED),
    _REAL: (_REAL,),
    _COMPLEX: (_COMPLEX,),
    "numeric": (_SIGNED, _UNSIGNED, _REAL, _COMPLEX),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether `dtype` is of a kind, which is a dtype, the name of a kind, or a tuple of them (Array API `isdtype`).

    Parameters
    ----------
    dtype : DType
        The dtype to test.
    kind : str, DType or tuple of them
        One of the standard's kinds, a data type, or several.

    Returns
    -------
    bool
        Whether `dtype` is of the kind.

    Raises
    ------
    ValueError
        If `kind` is not a kind of dtype.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isdtype(xp.float32, "real floating")
    True
    """
    dtype = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, _kind(k)) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            names = ", ".join(repr(k) for k in _KINDS)
            msg = f"{kind!r} is not a kind of data types; use one of {names}, a dtype, or a tuple of them"
            raise ValueError(msg)
        return dtype.category in _KINDS[kind]
    return dtype is as_dtype(kind)


def _kind(kind: Any) -> Any:
    """Check one entry of a tuple of kinds, and return it as a name or a dtype."""
    if not isinstance(kind, str):
        try:
            return as_dtype(kind)
        except TypeError as exc:
            msg = f"isdtype: `kind` must be a name of a kind, a dtype, or a tuple of them; {exc}"
            raise TypeError(msg) from None
    return kind


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether `from_`, a dtype or an array, converts to `to` by the promotion table (Array API 2025.12, `can_cast`).

    Parameters
    ----------
    from_ : DType or Tensor
        The dtype, or an array of it.
    to : DType
        The target dtype.

    Returns
    -------
    bool
        Whether `from_` promotes to `to`.

    Raises
    ------
    TypeError
        If an argument is not a data type.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.can_cast(xp.float32, xp.float64), xp.can_cast(xp.float64, xp.int64)
    (True, False)
    """
    if not isinstance(from_, (DType, type)) and hasattr(from_, "shape") and hasattr(from_, "dtype"):
        from_ = from_.dtype if isinstance(from_.dtype, DType) else str(from_.dtype).rpartition(".")[2]
    a, b = as_dtype(from_), as_dtype(to)
    return _PROMOTION[a, b] is b


@dataclass(frozen=True)
class iinfo:  # noqa: N801 (the standard's name)
    """Limits of an integer dtype (Array API 2025.12, `iinfo`): ``bits``, ``min``, ``max``, ``dtype``.

    Parameters
    ----------
    type : DType, Tensor or raw array
        An integer dtype, or an array of one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.iinfo(xp.int8).max
    127
    """

    __module__ = "xpgrad"

    bits: int
    max: int
    min: int
    dtype: DType

    def __init__(self, type: Any, /) -> None:  # noqa: A002 (the standard's name)
        dtype = as_dtype(_to_dtype(type))
        if dtype.category not in (_SIGNED, _UNSIGNED):
            msg = f"iinfo describes integer dtypes, not {dtype}; use `xpgrad.finfo` for floating ones"
            raise TypeError(msg)
        bits = 8 * dtype.itemsize
        low, high = (0, 2**bits - 1) if dtype.category == _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        vars(self).update(bits=bits, max=high, min=low, dtype=dtype)


@dataclass(frozen=True)
class finfo:  # noqa: N801 (the standard's name)
    """Limits of a floating dtype (Array API 2025.12, `finfo`); for a complex dtype those of its parts.

    ``bits`` (of one part), ``eps``, ``max``, ``min``, ``smallest_normal``, ``dtype``. Python floats.

    Parameters
    ----------
    type : DType, Tensor or raw array
        A floating dtype, or an array of one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.finfo(xp.float32).eps
    1.1920928955078125e-07
    """

    __module__ = "xpgrad"

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    def __init__(self, type: Any, /) -> None:  # noqa: A002 (the standard's name)
        dtype = real_of(as_dtype(_to_dtype(type)))
        if dtype.category != _REAL:
            msg = f"finfo describes floating dtypes, not {dtype}; use `xpgrad.iinfo` for integers"
            raise TypeError(msg)
        # The limits follow from the mantissa and exponent widths of IEEE 754 (and bfloat16).
        mantissa, exponent = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}[dtype.name]
        top = 2 ** (exponent - 1) - 1
        largest = (2.0 - 2.0**-mantissa) * 2.0**top
        smallest = 2.0 ** (1 - top)
        vars(self).update(bits=8 * dtype.itemsize, eps=2.0**-mantissa, max=largest, min=-largest, smallest_normal=smallest, dtype=dtype)


def _to_dtype(obj: Any) -> Any:
    """Return the dtype of a Tensor, or the object itself, which may be a dtype in any spelling."""
    found = getattr(obj, "dtype", None)
    return found if isinstance(found, DType) and not isinstance(obj, DType) else obj
