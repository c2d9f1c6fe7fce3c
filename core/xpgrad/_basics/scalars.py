"""Decide what counts as a Python scalar, and what as an array of some library."""

from __future__ import annotations

from typing import Any

NOT_SCALAR = object()


def as_scalar(obj: Any) -> Any:
    """Return `obj` as a Python scalar if it is one or a NumPy scalar; otherwise return `NOT_SCALAR`."""
    if isinstance(obj, (bool, int, float, complex)):
        cls = type(obj)
        if cls in (bool, int, float, complex):
            return obj
        # np.float64, np.complex128 and IntEnum are subclasses of Python's types.
        return complex(obj) if isinstance(obj, complex) else float(obj) if isinstance(obj, float) else int(obj)
    if type(obj).__module__ == "numpy" and getattr(obj, "ndim", None) == 0 and not hasattr(obj, "__setitem__"):
        return obj.item()
    return NOT_SCALAR


def is_scalar(obj: Any) -> bool:
    """Return whether `obj` counts as a Python scalar."""
    return as_scalar(obj) is not NOT_SCALAR


def is_raw_array(obj: Any) -> bool:
    """Return whether `obj` is an array of some library and not a Tensor."""
    cls = type(obj)
    if cls is float or cls is int:  # looking up a missing attribute is slow
        return False
    if hasattr(cls, "__array_namespace__") or hasattr(cls, "__dlpack__"):
        return True
    return hasattr(cls, "__array__") and getattr(cls, "__array_ufunc__", cls) is not None  # None: its own operators are to be called


def is_pandas(obj: Any) -> bool:
    """Return whether `obj` is a Series, a DataFrame, an Index or an array of pandas."""
    return hasattr(type(obj), "__pandas_priority__")


def is_scipy_sparse(obj: Any) -> bool:
    """Return whether `obj` is a sparse array or matrix of SciPy's."""
    cls = type(obj)
    return cls.__module__.startswith("scipy.sparse.") and hasattr(cls, "tocoo")


def is_container(obj: Any) -> bool:
    """Return whether `obj` computes by NumPy's protocol with the arrays that it holds, such as the objects of xarray and pint.

    Arrays have the protocol, too, but can also be exchanged between libraries.
    """
    cls = type(obj)
    return (
        hasattr(cls, "__array_ufunc__")
        and not hasattr(cls, "__dlpack__")
        and not hasattr(cls, "__array_namespace__")
        and not is_pandas(obj)
    )
