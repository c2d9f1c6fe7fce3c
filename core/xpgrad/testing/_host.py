"""NumPy's arrays on the host: what the checks compute expected values with, and the only file of this package that imports NumPy.

Everything that is expected (values, differences, directions) is computed here in NumPy, never by what is being checked.
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
    """The values of a Tensor, an array or a number, as a NumPy array of its own memory."""
    if isinstance(x, Tensor):
        return np.array(x.detach().to_device("cpu").numpy())
    return np.array(x)


def held(array: Any, device: Device) -> Any:
    """An array on the host in its dtype, or in single precision where the device does not have that."""
    dtypes = {d.name for d in loading.backend_for(device.table).dtypes()}
    narrow = _NARROW.get(array.dtype.name)
    return array.astype(narrow) if array.dtype.name not in dtypes and narrow in dtypes else array


def wide(array: Any) -> Any:
    """An array on the host in double precision; integers and bools as they are."""
    return array.astype(_WIDE[array.dtype.name]) if array.dtype.name in _WIDE else array


def placed(array: Any, device: Device) -> Any:
    """A new Tensor on a device with the values of an array on the host."""
    return asarray(held(array, device), device=device, copy=True)


def epsilon(arrays: Any) -> float:
    """The spacing of the floating numbers around 1, of the least precise of some arrays."""
    found = [float(np.finfo(a.dtype).eps) for a in arrays if is_floating(a)]
    return max(found, default=2.0**-52)


def weights(shape: tuple[int, ...], number: int) -> Any:
    """Fixed numbers between -1 and 1 without a pattern: another set for each number."""
    return np.cos(1.0 + 0.7 * number + 1.1 * np.arange(int(np.prod(shape)))).reshape(shape)


def direction(array: Any, draw: Any) -> Any:
    """A random direction in the units of an array's own elements, none of them near 0; complex for a complex array.

    Parameters
    ----------
    array : numpy.ndarray
        Its elements set the scale: each its own, or a tenth of their root mean square where that is larger, but not more than thirty
        times an element that is not 0: a step must not leave the domain of a logarithm.
    draw : numpy.random.Generator
    """
    size = np.abs(array)
    typical = float(np.sqrt(np.mean(size**2))) if array.size else 0.0
    floor = np.where(size > 0.0, np.minimum(0.1 * typical, 30.0 * size), 0.1 * typical)
    scale = np.maximum(size, floor) if typical else np.ones_like(size)
    numbers = draw.uniform(0.3, 1.0, array.shape) * draw.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        numbers = numbers * np.exp(1j * draw.uniform(0.0, 6.0, array.shape))
    return (scale * numbers).astype(array.dtype)


def close(found: float, expected: float, rtol: float, atol: float) -> bool:
    """Return whether two numbers are equal but for a tolerance; nan is equal to nothing."""
    return bool(abs(found - expected) <= atol + rtol * max(abs(found), abs(expected)))


def agree(found: Any, expected: Any, rtol: float, atol: float) -> bool:
    """Return whether two arrays have one shape and equal elements but for a tolerance; nan is equal to nan."""
    return bool(found.shape == expected.shape and near(found, expected, rtol, atol).all())


def near(found: Any, expected: Any, rtol: float, atol: float) -> Any:
    """The elements of two arrays that are equal but for a tolerance, to which a hundredth of that of the largest element is added."""
    size = np.abs(expected[np.isfinite(expected)])
    return np.isclose(found, expected, rtol=rtol, atol=atol + 1e-2 * rtol * float(np.max(size, initial=0.0)), equal_nan=True)


def shown_number(number: float) -> str:
    """A number as a message shows it."""
    return f"{number:.7g}"
