"""Index checks in front of the kernels that a backend provides, so that memory safety does not depend on them.

A backend's kernel receives a user's key only after every check, in a documented form. It therefore needs no checks itself, and cannot turn
them off. A backend whose library refuses indices out of range sets `Backend.checks_indices`, and its kernels are called directly, at no
cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._array.kernels import DefaultKernels, check_key
from xpgrad._basics.keys import full_key


def _read(xp: Any, kernel: Any, x: Any, key: Any) -> Any:
    return kernel(x, check_key(xp, key, tuple(x.shape), x))


def _write(xp: Any, kernel: Any, buffer: Any, key: Any, value: Any) -> Any:
    return kernel(buffer, check_key(xp, key, tuple(buffer.shape), buffer), value)


def _put(xp: Any, kernel: Any, x: Any, value: Any, key: Any) -> Any:
    return kernel(x, value, check_key(xp, key, tuple(x.shape), x))


def _add(xp: Any, kernel: Any, buffer: Any, g: Any, key: Any) -> Any:
    return kernel(buffer, g, full_key(key, tuple(buffer.shape)))


def _transpose(xp: Any, kernel: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return kernel(g, full_key(key, shape), shape)


def _flat_index(xp: Any, kernel: Any, key: Any, shape: tuple[int, ...], like: Any) -> Any:
    return kernel(check_key(xp, key, tuple(shape), like), shape, like)


def _from_front(xp: Any, kernel: Any, indices: Any, n: int, axis: int, like: Any) -> Any:
    return kernel(DefaultKernels.from_front(xp, indices, n, axis, like), n, axis, like)


def _gather_along(xp: Any, kernel: Any, x: Any, indices: Any, axis: int) -> Any:
    return kernel(x, DefaultKernels.from_front(xp, indices, x.shape[axis], axis, x), axis)


#: Kernels that receive a basic key or a user's key. Other kernels receive keys that these have checked or the core has made.
_OWN: dict[str, Callable[..., Any]] = {
    "index_basic": _read, "gather": _read, "written": _write, "put": _put, "flat_index": _flat_index, "from_front": _from_front,
    "add_at": _add, "index_basic_transpose": _transpose,
}  # fmt: skip
#: The default is the library's `take_along_axis`, whose behaviour for indices out of range the standard leaves undefined.
_ALWAYS: dict[str, Callable[..., Any]] = {"gather_along": _gather_along}


def guard_kernel(xp: Any, name: str, kernel: Any, own: bool) -> Any:
    """Wrap a kernel with index checks; return it unchanged if it needs none.

    Parameters
    ----------
    xp : Kernels
        The backend's raw namespace.
    name : str
    kernel : callable
    own : bool
        Whether the backend provides it. The default kernels make the same checks.
    """
    guard = _ALWAYS.get(name) or (_OWN.get(name) if own else None)
    return kernel if guard is None else functools.partial(guard, xp, kernel)
