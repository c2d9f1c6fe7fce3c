"""`xpgrad backends check --shadow`: compare each kernel call of a backend with NumPy's kernel on the same inputs."""

from __future__ import annotations

import cmath
import warnings
from typing import Any

from xpgrad import registry
from xpgrad._rows.kernels import kernel_of
from xpgrad.backend import Backend
from xpgrad.errors import XpgradError

#: The number of elements up to which a message shows an array's values.
_SHOWN = 12


class _NotComparableError(Exception):
    """Raised if an argument has no counterpart among NumPy's arrays, or if values cannot be read."""


class Shadow:
    """A comparison of a backend's kernels with NumPy's, call by call.

    Parameters
    ----------
    backend : Backend
        It is changed: its kernels are resolved anew and wrapped, and operators of raw arrays are replaced by kernels.

    Attributes
    ----------
    compared : int
        The number of calls that were compared.
    skipped : dict of str to str
        For each kernel of which no call could be compared so far, the reason.
    differences : dict of str to str
        For each kernel that differs, in the order in which they were found, its first call that differs.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        # A separate instance, because the backend may be NumPy's, whose kernels are then the wrapped ones.
        self.reference: Backend = registry.describe("numpy").load(None)
        self.device = self.reference.devices()[0]
        self.compared = 0
        self.skipped: dict[str, str] = {}
        self.differences: dict[str, str] = {}
        self._seen: set[str] = set()
        self._depth = 0
        inner = backend.wrap_kernel

        def wrap(name: str, function: Any) -> Any:
            return self._wrap(name, inner(name, function))

        for name in [name for name in vars(backend.kernels) if not name.startswith("_")]:
            delattr(backend.kernels, name)
        backend.wrap_kernel = wrap  # type: ignore[method-assign]
        backend.operators = False

    def _wrap(self, name: str, function: Any) -> Any:
        """Return a kernel that is compared; what is not a function is returned unchanged."""
        if not callable(function) or isinstance(function, type) or self._is_dtype(function):
            return function

        def shadowed(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return function(*args, **kwargs)
            try:
                self._depth += 1
                given = self._convert(args), self._convert({k: v for k, v in kwargs.items() if k != "device"})
            except _NotComparableError as exc:
                self._skip(name, str(exc))
                given = None
            finally:
                self._depth -= 1
            out = function(*args, **kwargs)
            if given is not None:
                self._depth += 1
                try:
                    self._compare(name, given, out)
                finally:
                    self._depth -= 1
            return out

        return shadowed

    def _is_dtype(self, value: Any) -> bool:
        try:
            return self.backend.dtype_of(value) is not None
        except Exception:  # noqa: BLE001 (whatever a plugin raises for what is no dtype of its library)
            return False

    def _skip(self, name: str, why: str) -> None:
        if name not in self._seen:
            self.skipped.setdefault(name, why)

    def _convert(self, value: Any) -> Any:
        """Return the counterpart of an argument for NumPy's kernels: arrays are copied.

        Raises
        ------
        _NotComparableError
            If it has none.
        """
        if value is None or value is ... or isinstance(value, (bool, int, float, complex, str)):
            return value
        if isinstance(value, self.backend.array_types()) and hasattr(value, "shape"):
            try:
                return self.reference.from_host(self.backend.to_host(value), self.device)
            except Exception as exc:
                msg = f"its values cannot be read: {type(exc).__name__}: {exc}"
                raise _NotComparableError(msg) from exc
        if isinstance(value, (tuple, list)):
            items = [self._convert(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, dict):
            return {key: self._convert(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*(self._convert(part) for part in (value.start, value.stop, value.step)))
        if self._is_dtype(value):
            try:
                return self.reference.raw_dtype(self.backend.dtype_of(value))
            except XpgradError as exc:
                raise _NotComparableError(str(exc)) from exc
        msg = f"NumPy has no counterpart of an argument of type {type(value).__name__}"
        raise _NotComparableError(msg)

    def _compare(self, name: str, given: tuple[Any, Any], out: Any) -> None:
        """Compare the result of a call with that of NumPy's kernel, and record a difference."""
        args, kwargs = given
        call = f"{name}({', '.join([*map(_shown, args), *(f'{k}={_shown(v)}' for k, v in kwargs.items())])})"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about values outside a function's domain
            try:
                expected = getattr(self.reference.kernels, name)(*args, **kwargs)
                found = self._convert(out)
            except Exception as exc:  # noqa: BLE001 (then there is nothing to compare with, whatever the reason is)
                self._skip(name, str(exc) if isinstance(exc, _NotComparableError) else f"{type(exc).__name__}: {exc}")
                return
        self.compared += 1
        self._seen.add(name)
        self.skipped.pop(name, None)
        values = not (kernel_of(name).kind == "fill" and name.startswith("empty"))  # its values are those that the memory contained
        if name not in self.differences and not _equal(found, expected, values):
            self.differences[name] = f"`{call}` gave {_shown(found)}, and NumPy's kernel gives {_shown(expected)}"


def _equal(found: Any, expected: Any, values: bool) -> bool:
    """Return whether two results are equal up to rounding in the coarser of their precisions; only shapes if `values` is False."""
    if isinstance(expected, (tuple, list)) or isinstance(found, (tuple, list)):
        same = isinstance(expected, (tuple, list)) and isinstance(found, (tuple, list)) and len(found) == len(expected)
        return same and all(_equal(f, e, values) for f, e in zip(found, expected))
    if not hasattr(expected, "shape") or not hasattr(found, "shape"):
        return bool(found == expected or (hasattr(expected, "shape") and not expected.shape and expected == found))
    if tuple(found.shape) != tuple(expected.shape):
        return False
    if not values:
        return True
    first, second = _flat(found.tolist()), _flat(expected.tolist())
    near = 1000 * max(_spacing(found), _spacing(expected))
    largest = max((abs(x) for x in second if cmath.isfinite(x)), default=0.0)
    return all(_is_close(a, b, near, near * largest) for a, b in zip(first, second))


def _is_close(a: Any, b: Any, near: float, least: float) -> bool:
    """Return whether two numbers are close; two NaN are."""
    if cmath.isnan(a) or cmath.isnan(b):
        return cmath.isnan(a) and cmath.isnan(b)
    return cmath.isclose(a, b, rel_tol=near, abs_tol=least)


def _spacing(array: Any) -> float:
    """Return the spacing of the floating-point numbers around 1 in an array's dtype; 0 for other dtypes."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in ("f", "c"):
        return 0.0
    return {2: 2.0**-10, 4: 2.0**-23}.get(size // (2 if kind == "c" else 1), 2.0**-52)


def _flat(values: Any) -> list[Any]:
    """Return the numbers in nested lists."""
    return [x for item in values for x in _flat(item)] if isinstance(values, list) else [values]


def _shown(value: Any) -> str:
    """Return a value as a message shows it; arrays as lists, or by their shape if they are large."""
    if isinstance(value, (tuple, list)):
        items = ", ".join(map(_shown, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return str(value.tolist()) if value.size <= _SHOWN else f"<{value.dtype} array of shape {tuple(value.shape)}>"
    return repr(value)
