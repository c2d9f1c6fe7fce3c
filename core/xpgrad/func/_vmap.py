"""`vmap`: apply a function of one element to a whole batch at once.

Arguments become batched Tensors (`_transforms.batch`), whose operations act on all elements; results leave the batch at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._backends.generators import repeat_draws
from xpgrad._basics.arguments import check_callable, check_choice, check_chunk_size
from xpgrad._basics.faces import names_keywords
from xpgrad._basics.scalars import is_scalar
from xpgrad._modes.batch_levels import BatchLevel, active_levels, run_within
from xpgrad._modes.captures import as_captured
from xpgrad._modes.running import run_transformed
from xpgrad._operations.lift import lift_leaves
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.array import escaped_error
from xpgrad._transforms.batch.batch import class_of_depth, enter, leave
from xpgrad.func._tree import Structure, flatten, unflatten
from xpgrad.rules.manipulation import concat, moveaxis

Dims = Any  # int, None, or nested tuples, lists and dicts of them


@names_keywords
def vmap(
    func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that applies `func` to each element of a batch, in vectorised operations (`torch.func.vmap`).

    Parameters
    ----------
    func : callable
        Takes and returns Tensors, or nested tuples, lists and dicts of them. Raw arrays that are mapped over become Tensors (`asarray`).
        Arguments whose `in_dims` is None may be anything, and are passed on unchanged. Keyword arguments are the same for all elements.
    in_dims : int, None, or nested tuples, lists and dicts of them
        Axis of each argument that is the batch; None if all elements get the same value. One entry may cover a whole subtree.
    out_dims : int, None, or nested tuples, lists and dicts of them
        Position of the batch's axis in each result; None for a result that does not depend on the element.
    randomness : {"error", "different", "same"}
        For compatibility with PyTorch: xpgrad has no random functions. What `func` draws from global random generators is the same for all
        elements, also if there are chunks; with "different", each chunk draws its own.
    chunk_size : int, optional
        Largest number of elements to process at once. A smaller one needs less memory.

    Returns
    -------
    callable
        Takes the arguments of `func` with the batch's axis, and returns its results with that axis.

    Raises
    ------
    TypeError
        If `func` is not callable.
    ValueError
        If `chunk_size` is not positive; when the result is called, if `in_dims` or `out_dims` do not fit, batches have different lengths,
        or a result is not a Tensor.
    RuntimeError
        When the result is called: if `func` asks for the value of one element (`.item()`, ``if x:``), or does what one element cannot do
        (`.backward()`), or writes an element in place into a Tensor that it did not make itself.
    CapabilityError
        When the result is called: for functions whose result has a shape that depends on values (`nonzero`, ``x[mask]``).
    IndexError
        When the result is called: if an entry of `out_dims` is out of range.

    Notes
    -----
    `func` may write elements into Tensors that it made by a creation function (`zeros`, `full_like`, `tensor`) or by `clone()`, and into
    views of them; PyTorch refuses this. ``x[mask] = value`` takes one value for all places.

    Examples
    --------
    >>> import xpgrad as xp
    >>> rows = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> xp.func.vmap(lambda row: row / xp.sum(row))(rows)
    tensor([[0.3333, 0.6667],
            [0.4286, 0.5714]])
    >>> def swap(row):
    ...     out = xp.zeros(2)
    ...     out[0], out[1] = row[1], row[0]
    ...     return out
    >>> xp.func.vmap(swap)(rows)
    tensor([[2., 1.],
            [4., 3.]])
    """
    check_callable(func, "vmap")
    check_choice(randomness, ("error", "different", "same"), "vmap", "randomness")
    check_chunk_size(chunk_size, "vmap")
    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(args)
        dims = _spread_dims(in_dims, structure, name, args)
        mapped = [x for x, d in zip(leaves, dims) if d is not None]
        if (lifted := lift_leaves("vmap", mapped, leaves)) is not mapped:
            found = iter(lifted)
            leaves = [x if d is None else next(found) for x, d in zip(leaves, dims)]
        size = _size(leaves, dims, name, in_dims)
        # NB: a batch of constants would have another class than one of captured values, with which it meets.
        moved = [x if d is None else as_captured(_move_to_front(x, d)) for x, d in zip(leaves, dims)]

        step = size if chunk_size is None else min(chunk_size, size)
        function = repeat_draws(func) if step < size and randomness != "different" else func

        def apply(chunk: list[Any], length: int) -> Any:
            level = BatchLevel(length, randomness)
            above = active_levels()

            def run() -> Any:
                inside = [x if d is None else _enter_batch(x, d, level, len(above) + 1) for x, d in zip(chunk, dims)]
                out = run_transformed(
                    "vmap", (), function, *unflatten(structure, inside), **kwargs
                )  # as in PyTorch, keywords are not mapped
                return _leave_batch(out, level, len(above) + 1, out_dims, name)

            return run_within(level, run)

        if step == size:
            return apply(moved, size)
        pieces = [
            apply([x if d is None else x[start : start + step] for x, d in zip(moved, dims)], min(step, size - start))
            for start in range(0, size, step)
        ]
        return _concat_chunks(pieces, out_dims, name)

    return wrapper


def _spread_dims(dims: Dims, structure: Structure, name: str, args: Any) -> list[Any]:
    """Return the entries of `in_dims`, one per leaf; an entry may cover a whole subtree."""
    if not structure.children:
        msg = f"vmap({name})(<inputs>): got no inputs; give at least one Tensor to map over"
        raise ValueError(msg)
    if isinstance(dims, list):
        dims = tuple(dims)
    call = f"vmap({name}, in_dims={dims}, ...)(<inputs>)"
    if not (dims is None or isinstance(dims, (int, tuple))):
        msg = f"{call}: `in_dims` must be an int, None or a tuple, but got {type(dims).__name__}"
        raise ValueError(msg)
    return _entries(dims, structure, call, len(args))


def _entries(d: Any, s: Structure, call: str, count: int) -> list[Any]:
    """Return the axis in `in_dims` of each leaf of the structure `s`; `d` is the part of `in_dims` for it.

    It is not nested in its caller: a closure that calls itself is a reference cycle, which only the garbage collector reclaims.
    """
    if d is None or (isinstance(d, int) and not isinstance(d, bool)):
        return [d] * _leaves(s)
    if s.is_leaf or not isinstance(d, (tuple, list, dict)) or len(d) != len(s.children):
        msg = (
            f"{call}: in_dims is not compatible with the structure of inputs: it must be an int, None, or nested like the {count} "
            "argument(s)"
        )
        raise ValueError(msg)
    if isinstance(d, dict):
        if set(d) != set(s.keys):
            msg = f"{call}: in_dims has keys {list(d)}, but the argument has {list(s.keys)}"
            raise ValueError(msg)
        d = [d[k] for k in s.keys]
    return [entry for one, child in zip(d, s.children) for entry in _entries(one, child, call, count)]


def _leaves(structure: Structure) -> int:
    return 1 if structure.container is None else sum(map(_leaves, structure.children))


def _size(leaves: list[Any], dims: list[Any], name: str, in_dims: Dims) -> int:
    """Check all arguments, and return the length of the batch."""
    sizes = []
    for x, d in zip(leaves, dims):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            what = "a Python scalar" if is_scalar(x) else f"a {type(x).__name__}"
            msg = (
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): got in_dim={d} for an input that is not a Tensor but {what}; give it "
                "in_dim None, or wrap it with `xpgrad.asarray`"
            )
            raise ValueError(msg)  # noqa: TRY004 (PyTorch's type)
        shape = x.shape
        if not -len(shape) <= d < len(shape):
            msg = (
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): got in_dim={d} for an input of shape {shape}, but it must be in "
                f"[{-len(shape)}, {len(shape)}); a 0-d Tensor has no axis to map over"
            )
            raise ValueError(msg)
        sizes.append(shape[d])
    if not sizes:
        msg = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): no input is mapped over; give at least one in_dim that is not None"
        raise ValueError(msg)
    if len(set(sizes)) > 1:
        msg = f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        raise ValueError(msg)
    return int(sizes[0])


def _move_to_front(x: Any, dim: Any) -> Any:
    """Return an argument with the batch's axis in front."""
    if dim is None or dim == 0 or x.ndim == -dim:
        return x
    return moveaxis(x, dim, 0)


def _enter_batch(x: Any, dim: int, level: BatchLevel, depth: int) -> Any:
    """Return an argument, whose batch's axis is already in front, as one element."""
    element = enter(x, level, class_of_depth(type(x._stand_in()), depth))
    element._array.home = dim % x.ndim
    return element


def _leave_batch(out: Any, level: BatchLevel, depth: int, out_dims: Dims, name: str) -> Any:
    """Take the results of the function out of the batch."""
    leaves, structure = flatten(out)
    dims = _out_dims(out_dims, structure, name)
    results = []
    for x, d in zip(leaves, dims):
        if not isinstance(x, Tensor):
            msg = f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x).__name__}; did you mean to return a Tensor?"
            raise ValueError(msg)  # noqa: TRY004 (PyTorch's type)
        if x.depth > depth:
            raise escaped_error()
        cls = class_of_depth(type(x._stand_in()), depth)
        if d is None:
            if x.depth == depth and x._array.level is level:
                msg = (
                    f"vmap({name}, ...): `{name}` returned a Tensor that depends on the element, but its `out_dims` is None; give the axis "
                    "that the batch becomes"
                )
                raise ValueError(msg)
            results.append(x._array.value if x.depth == depth else x)
            continue
        whole = leave(x, level, cls)
        rank = whole.ndim
        if not -rank <= d < rank:
            msg = f"vmap({name}, ..., out_dims={out_dims}): {d} is out of range for a result of shape {x.shape} with one more axis"
            raise IndexError(msg)
        if d % rank:
            whole = moveaxis(whole, 0, d)
        results.append(whole)
    return unflatten(structure, results)


def _out_dims(d: Dims, s: Structure, name: str, whole: Any = ...) -> list[Any]:
    """Return the entries of `out_dims`, one per leaf of the function's result; errors name the whole argument, `whole`."""
    whole = d if whole is ... else whole
    if d is None or (isinstance(d, int) and not isinstance(d, bool)):
        return [d] * _leaves(s)
    if isinstance(d, tuple) and len(d) == 1 and s.is_leaf:
        return _out_dims(d[0], s, name, whole)
    if s.is_leaf or not isinstance(d, (tuple, list, dict)) or len(d) != len(s.children):
        msg = f"vmap({name}, ..., out_dims={whole}): out_dims is not compatible with the structure of what `{name}` returned"
        raise ValueError(msg)
    parts = [d[k] for k in s.keys] if isinstance(d, dict) else d
    return [entry for one, child in zip(parts, s.children) for entry in _out_dims(one, child, name, whole)]


def _concat_chunks(pieces: list[Any], out_dims: Dims, name: str) -> Any:
    """Concatenate the results of several chunks."""
    parts = [flatten(p) for p in pieces]
    structure = parts[0][1]
    dims = _out_dims(out_dims, structure, name)
    columns = zip(*(leaves for leaves, _ in parts))
    return unflatten(structure, [c[0] if d is None else concat(list(c), axis=d) for c, d in zip(columns, dims)])
