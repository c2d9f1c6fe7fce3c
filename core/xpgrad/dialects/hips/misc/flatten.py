"""Convert nested tuples, lists and dicts of arrays to one vector, and back; both conversions are differentiable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np

__all__ = ["flatten", "flatten_func"]


def _leaves(value: Any) -> list[Any]:
    """Return the arrays and numbers of a nested value, those of a dict in the order of its sorted keys."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    return [value]


def _rebuild(value: Any, leaves: Any) -> Any:
    """Return a nested value with the structure of `value`, whose leaves are taken from the iterator `leaves`."""
    if isinstance(value, dict):
        made = {key: _rebuild(value[key], leaves) for key in sorted(value)}
        return {key: made[key] for key in value}
    if isinstance(value, (list, tuple)):
        parts = [_rebuild(item, leaves) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return next(leaves)


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Concatenate the numbers of nested tuples, lists and dicts; also return the function that rebuilds the nested value.

    Parameters
    ----------
    value : array, number, or nested tuples, lists and dicts of them
        Dicts count in the order of their keys when sorted.

    Returns
    -------
    vector : array
        Of shape ``(n,)``.
    unflatten : callable
        The opposite.

    >>> from xpgrad.dialects.hips.misc import flatten
    >>> vector, unflatten = flatten({"b": 3.0, "a": [1.0, 2.0]})
    >>> vector.tolist()
    [1.0, 2.0, 3.0]
    """
    leaves = _leaves(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    vector = np.concatenate([np.reshape(leaf, (-1,)) for leaf in leaves]) if leaves else np.zeros(0)
    length = sum(math.prod(shape) for shape in shapes)

    def unflatten(vector: Any) -> Any:
        if np.shape(vector) != (length,):
            msg = f"unflatten: expected a vector of shape {(length,)}, but got {np.shape(vector)}"
            raise ValueError(msg)
        parts, start = [], 0
        for shape in shapes:
            stop = start + math.prod(shape)
            parts.append(np.reshape(vector[start:stop], shape) if shape else vector[start])
            start = stop
        return _rebuild(value, iter(parts))

    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Turn a function with a nested argument and value into a function from vector to vector.

    Returns
    -------
    tuple
        The function, a function that turns a vector into a nested value, and `example` as a vector.
    """
    vector, unflatten = flatten(example)

    def flat(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return flat, unflatten, vector
