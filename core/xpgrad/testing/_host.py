"""NumPy arrays on the host, with which the checks compute expected values; the only module of the package that imports NumPy.

All expected values, differences and directions are computed here in NumPy, never by the code under test.
"""

from __future__ import annotations

import importlib
from typing import Any

from xpgrad._backends import loading
from xpgrad._basics.device import Device
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray

np: Any = importlib.import_module("numpy")

_NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
_WIDE = {"float16": "float64", "float32": "float64", "complex64": "complex128"}


def is_floating(array: Any) -> bool:
    """Return whether an array on the host has real or complex floating numbers."""
    return array.dtype.kind in "fc"


def on_host(x: Any) -> Any:
    """Copy a Tensor, an array or a number into a NumPy array."""
    if isinstance(x, Tensor):
        return np.array(x.detach().to_device("cpu").numpy())
    return np.array(x)


def to_precision_of(array: Any, device: Device) -> Any:
    """Return a NumPy array in its dtype, or in single precision if the device has no double precision."""
    dtypes = {d.name for d in loading.backend_for(device.table).dtypes()}
    narrow = _NARROW.get(array.dtype.name)
    return array.astype(narrow) if array.dtype.name not in dtypes and narrow in dtypes else array


def to_double(array: Any) -> Any:
    """Convert a floating-point NumPy array to double precision; return others unchanged."""
    return array.astype(_WIDE[array.dtype.name]) if array.dtype.name in _WIDE else array


def to_tensor(array: Any, device: Device) -> Any:
    """Copy a NumPy array into a new Tensor on a device."""
    return asarray(to_precision_of(array, device), device=device, copy=True)


def epsilon(arrays: Any) -> float:
    """Return the machine epsilon of the least precise of some arrays."""
    found = [float(np.finfo(a.dtype).eps) for a in arrays if is_floating(a)]
    return max(found, default=2.0**-52)


def weights(shape: tuple[int, ...], number: int) -> Any:
    """Return fixed, irregular numbers between -1 and 1, which differ for each `number`."""
    return np.cos(1.0 + 0.7 * number + 1.1 * np.arange(int(np.prod(shape)))).reshape(shape)


def direction(array: Any, draw: Any) -> Any:
    """Draw a random direction, scaled like the elements of an array, without elements near 0; complex for a complex array.

    Parameters
    ----------
    array : numpy.ndarray
        The scale of a component is the size of its element, but at least a tenth of the root mean square of all elements. For a nonzero
        element it is at most thirty times its size, so that a step does not leave the domain of a logarithm.
    draw : numpy.random.Generator
    """
    size = np.abs(array)
    largest = float(np.max(size, initial=0.0))
    typical = largest * float(np.sqrt(np.mean((size / largest) ** 2))) if largest else 0.0  # no square overflows
    floor = np.where(size > 0.0, np.minimum(0.1 * typical, 30.0 * size), 0.1 * typical)
    scale = np.maximum(size, floor) if typical else np.ones_like(size)
    numbers = draw.uniform(0.3, 1.0, array.shape) * draw.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        numbers = numbers * np.exp(1j * draw.uniform(0.0, 6.0, array.shape))
    return (scale * numbers).astype(array.dtype)


def is_symmetric(array: Any) -> bool:
    """Return whether an array has matrices with several rows in its last two axes, which are symmetric (Hermitian) up to rounding."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2:
        return False
    near = 1e3 * epsilon([array])
    return agree(array, np.conj(np.swapaxes(array, -1, -2)), near, near)


def mirrored(array: Any) -> Any:
    """Return matrices whose lower triangles are replaced by the (conjugate) mirror images of the upper ones."""
    upper = np.triu(array, 1)
    diagonal = np.triu(np.tril(array))
    return upper + np.conj(np.swapaxes(upper, -1, -2)) + (diagonal.real if array.dtype.kind == "c" else diagonal)


def close(found: float, expected: float, rtol: float, atol: float) -> bool:
    """Return whether two numbers are equal within a tolerance; NaN equals nothing."""
    return bool(abs(found - expected) <= atol + rtol * max(abs(found), abs(expected)))


def agree(found: Any, expected: Any, rtol: float, atol: float) -> bool:
    """Return whether two arrays have the same shape, and equal elements within a tolerance; NaN equals NaN."""
    return bool(found.shape == expected.shape and is_close_to(found, expected, rtol, atol).all())


def is_close_to(found: Any, expected: Any, rtol: float, atol: float) -> Any:
    """Return which elements are equal within a tolerance, plus 1 % of the tolerance of the largest element."""
    size = np.abs(expected[np.isfinite(expected)])
    return np.isclose(found, expected, rtol=rtol, atol=atol + 1e-2 * rtol * float(np.max(size, initial=0.0)), equal_nan=True)


def shown_number(number: float) -> str:
    """Format a number for a message."""
    return f"{number:.7g}"


def shown_apart(one: float, two: float) -> tuple[str, str]:
    """Format two different numbers for a message, with as many digits as it takes to tell them apart."""
    for digits in (7, 10, 13):
        texts = f"{one:.{digits}g}", f"{two:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(one), repr(two)
