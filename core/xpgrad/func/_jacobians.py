"""`jacfwd`, which computes all columns of a Jacobian in one run of the function, by forward mode; and `hessian`.

The tangents are a batch, the values are not: the function itself is computed once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xpgrad._backends.generators import repeat_draws
from xpgrad._basics.arguments import as_flag, check_callable, check_choice, check_chunk_size
from xpgrad._basics.faces import names_keywords
from xpgrad._modes import state
from xpgrad._modes.batch_levels import BatchLevel
from xpgrad._modes.captures import as_captured
from xpgrad._modes.running import run_transformed
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._transforms.batch.batch import batch_class, enter, leave, lift
from xpgrad._transforms.forward.levels import new_level
from xpgrad.func._reverse import Argnums, _outputs, _release_tree, _split_aux, basis, jacrev, put_back, select_arguments
from xpgrad.func._tree import unflatten
from xpgrad.rules.creation import zeros_like
from xpgrad.rules.manipulation import broadcast_view, concat, moveaxis, reshape_to


@names_keywords
def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` by forward mode: all columns in one run (`torch.func.jacfwd`).

    Parameters
    ----------
    func : callable
        Returns Tensors, or nested tuples, lists and dicts of them; with ``has_aux=True`` a pair of that and anything else.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate.
    has_aux : bool
        Whether `func` returns a pair.
    chunk_size : int, optional
        Largest number of columns to compute at once. A smaller one needs less memory, but `func` runs once per chunk.
    randomness : str
        Accepted for compatibility with PyTorch; see `vmap`.

    Returns
    -------
    callable
        Takes the arguments of `func`. For each output and each chosen argument, in the nested structure of both, it returns a Jacobian of
        shape ``(*output.shape, *input.shape)``; with ``has_aux=True`` a pair of that and `aux`.

    Raises
    ------
    TypeError
        If `func` is not callable.
    ValueError
        If `chunk_size` is not positive, or `randomness` is unknown.
    RuntimeError
        When the result is called: if an argument or an output is not a Tensor that can be differentiated.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.jacfwd(lambda x: x**2)(xp.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    check_callable(func, "jacfwd")
    has_aux = as_flag(has_aux, "jacfwd", "has_aux")
    check_chunk_size(chunk_size, "jacfwd")
    check_choice(randomness, ("error", "different", "same"), "jacfwd", "randomness")

    @functools.wraps(func, updated=())
    @state.restoring
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places, leaves, structure = select_arguments("jacfwd", args, argnums)
        total = sum(math.prod(x.shape) for x in leaves)
        step = max(min(chunk_size or total, total), 1)
        function = func if step >= total else repeat_draws(func)
        columns: list[list[Any]] = []
        outs: list[Any] = []
        aux: Any = None
        out_structure: Any = None
        for start in range(0, max(total, 1), step):
            stop = min(start + step, total)
            level = BatchLevel(stop - start, randomness)
            with new_level() as tangents:
                duals = [batched_dual(tangents, x, d, level) for x, d in zip(leaves, basis(leaves, start, stop))]
                out = run_transformed("jacfwd", (), function, *put_back(args, argnums, places, unflatten(structure, duals)), **kwargs)
                out, aux = _split_aux("jacfwd", out, has_aux)
                outs, out_structure = _outputs("jacfwd", out)
                found = [stacked_tangents(tangents, o, level) for o in outs]
            columns = [[f] for f in found] if not columns else [[*c, f] for c, f in zip(columns, found)]
        jacobians = []
        for o, column in zip(outs, columns):
            whole = column[0] if len(column) == 1 else concat(column, axis=0)
            parts, first = [], 0
            for x in leaves:
                n = math.prod(x.shape)
                part = whole if len(leaves) == 1 else whole[first : first + n]
                parts.append(reshape_to(moveaxis(part, 0, -1), (*o.shape, *x.shape)))
                first += n
            jacobians.append(unflatten(structure, parts))
        result = unflatten(out_structure, jacobians)
        return (result, _release_tree(aux, True)) if has_aux else result

    return wrapper


def batched_dual(tangents: Any, x: Any, directions: Any, level: BatchLevel) -> Any:
    """Return `x` with a tangent that is an element of the batch of `directions`, of shape ``(batch, *x.shape)``."""
    if x.depth:
        # The tangents belong to the Tensor that holds the batch of which `x` is an element: they have that batch's axis, too.
        raw = x._array
        value, size = raw.value, None if raw.level is None else raw.level.size
        if size is not None:
            shape = directions.shape
            directions = broadcast_view(reshape_to(directions, (shape[0], 1, *shape[1:])), (shape[0], size, *shape[1:]))
        return x.backend.wrap(x.backend.raw(batched_dual(tangents, value, directions, level), raw.level))
    out = PRIMITIVES["alias"](as_captured(x._stand_in()))
    tangents.set_tangent(out, enter(directions, level, batch_class(type(out))))
    return out


def stacked_tangents(tangents: Any, out: Any, level: BatchLevel) -> Any:
    """Return the tangents of an output, stacked in a Tensor of shape ``(batch, *out.shape)``."""
    if out.depth:
        raw = out._array
        found = stacked_tangents(tangents, raw.value, level)
        if raw.level is None:
            return lift(found, type(out))
        return out.backend.wrap(out.backend.raw(moveaxis(found, 1, 0), raw.level))
    found = tangents.tangent(out)
    if found is None:
        shape = (level.size, *out.shape)
        return broadcast_view(zeros_like(out), shape)
    return leave(found, level, batch_class(type(out._stand_in())))


@names_keywords
def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func` by reverse mode over reverse mode (`torch.func.hessian`).

    Parameters
    ----------
    func : callable
        Real function of real Tensors.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate.

    Returns
    -------
    callable
        ``jacrev(jacrev(func, argnums), argnums)``: for a scalar function of one Tensor x it returns a Tensor of shape
        ``(*x.shape, *x.shape)``.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        When the result is called: if an argument or an output is not a Tensor that can be differentiated.

    Notes
    -----
    The second pass works on plain arrays, which makes it three times as fast here as PyTorch's forward over reverse.
    ``jacfwd(jacrev(func))``
    returns the same, except that what `func` does under `no_grad` is a constant for reverse mode only.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.hessian(lambda x: xp.sum(x**3))(xp.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    check_callable(func, "hessian")
    return jacrev(jacrev(func, argnums), argnums)
