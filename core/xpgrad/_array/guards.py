"""The guards between the core and the kernels that a backend brings itself, so that memory safety does not depend on them.

A user's key reaches a backend's own kernel only after every check, and in the form that the kernel may rely on. The kernel can leave the
checks out, and cannot turn them off. A backend whose library refuses what is out of range anyway says so with `Backend.checks_indices`:
its kernels are then called as they are, at no cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._array.kernels import DefaultKernels, checked_key
from xpgrad._basics.keys import full_key


def _read(xp: Any, kernel: Any, x: Any, key: Any) -> Any:
    return kernel(x, checked_key(xp, key, tuple(x.shape), x))


def _write(xp: Any, kernel: Any, buffer: Any, key: Any, value: Any) -> Any:
    return kernel(buffer, checked_key(xp, key, tuple(buffer.shape), buffer), value)


def _put(xp: Any, kernel: Any, x: Any, value: Any, key: Any) -> Any:
    return kernel(x, value, checked_key(xp, key, tuple(x.shape), x))


def _add(xp: Any, kernel: Any, buffer: Any, g: Any, key: Any) -> Any:
    return kernel(buffer, g, full_key(key, tuple(buffer.shape)))


def _transpose(xp: Any, kernel: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return kernel(g, full_key(key, shape), shape)


def _flat_index(xp: Any, kernel: Any, key: Any, shape: tuple[int, ...], like: Any) -> Any:
    return kernel(checked_key(xp, key, tuple(shape), like), shape, like)


def _from_front(xp: Any, kernel: Any, indices: Any, n: int, axis: int, like: Any) -> Any:
    return kernel(DefaultKernels.from_front(xp, indices, n, axis, like), n, axis, like)


def _gather_along(xp: Any, kernel: Any, x: Any, indices: Any, axis: int) -> Any:
    return kernel(x, DefaultKernels.from_front(xp, indices, x.shape[axis], axis, x), axis)


#: Kernels that are given a basic key, or whatever a user wrote. All others are given what has been through one of these, or what the core
#: made itself.
_OWN: dict[str, Callable[..., Any]] = {
    "index_basic": _read, "gather": _read, "written": _write, "put": _put, "flat_index": _flat_index, "from_front": _from_front,
    "add_at": _add, "index_basic_transpose": _transpose,
}  # fmt: skip
#: The default of this one is the library's `take_along_axis`, which the standard lets do anything with indices that are out of range.
_ALWAYS: dict[str, Callable[..., Any]] = {"gather_along": _gather_along}


def guarded(xp: Any, name: str, kernel: Any, own: bool) -> Any:
    """The kernel of that name behind its checks.

    Parameters
    ----------
    xp : Kernels
        The backend's raw namespace.
    name : str
    kernel : callable
    own : bool
        Whether it is the backend's own. The defaults make the same checks themselves.
    """
    guard = _ALWAYS.get(name) or (_OWN.get(name) if own else None)
    return kernel if guard is None else functools.partial(guard, xp, kernel)
