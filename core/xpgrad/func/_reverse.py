"""`grad`, `grad_and_value`, `vjp` and `jacrev`: reverse mode as transforms of functions, with the names of `torch.func`.

The function runs on new Tensors at which a history begins. Derivatives with respect to other Tensors, which the function captured or which
are among its arguments, flow through them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import alias_of
from xpgrad._basics.arguments import as_flag, check_callable, check_chunk_size
from xpgrad._basics.faces import names_keywords
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import active_levels
from xpgrad._modes.captures import as_captured
from xpgrad._modes.running import run_transformed
from xpgrad._operations.lift import lift_leaves, lift_like
from xpgrad._tape.node import walk
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.batch import class_of_depth, enter, lift
from xpgrad._transforms.batch.passes import gradients
from xpgrad._transforms.batch.plain_pass import plain_jacobian
from xpgrad.func._tree import Structure, flatten, unflatten
from xpgrad.rules.creation import eye, ones_like, zeros, zeros_like
from xpgrad.rules.manipulation import broadcast_view, concat, reshape_to

Argnums = int | tuple[int, ...]


def node_of(x: Any) -> Any:
    """Return the node of a Tensor; for an element of a batch, that of the Tensor that holds the batch."""
    while x.depth:
        x = x._array.value
    return x._node


def make_input(x: Any) -> Any:
    """Return a Tensor with the value of `x` to differentiate with respect to; derivatives pass through it to what `x` depends on.

    Inside `vmap` each element gets its own Tensor, even if all share `x`.
    """
    x = as_captured(x)
    levels = active_levels()
    if not levels:
        return _begin(x)
    return _mark_argument(_make_element(x, levels))


def _make_element(t: Any, levels: tuple[Any, ...]) -> Any:
    """Apply `make_input` to an element of the batches of these levels."""
    if not levels:
        return _begin(t)
    cls = class_of_depth(type(t._stand_in()), len(levels))
    raw = lift(t, cls)._array
    level = levels[-1]
    value = raw.value
    if raw.level is None:
        value = broadcast_view(value, (level.size, *value.shape))
    return enter(_make_element(value, levels[:-1]), level, cls)


def _begin(x: Any) -> Any:
    """Return a view of `x`, or a copy of an inference tensor, that requires grad; it is a leaf if no enclosing transform is recording."""
    if x._node is None and not state.carries_tangents() and not x.is_inference():
        y = x.detach()
    else:
        y = x.clone() if x.is_inference() else x[...]
    if y._node is None:
        y.requires_grad_()._node.private = True
    return _mark_argument(y)


def _mark_argument(x: Any) -> Any:
    """Mark `x` as the argument of a differentiated function, and return it.

    Neither it nor a Tensor that shares its memory may then be written to. Inference tensors are not marked.
    """
    if not x.is_inference():
        alias_of(x).forbidden = "argument"
    return x


def has_outer_history(outs: list[Any], inner: list[Any], ended: tuple[type, ...] | type = ()) -> bool:
    """Return whether results have a history beyond the new Tensors from which they were computed.

    The new Tensors of an inner transform that has ended are no history either, nor are leaves whose nodes are of the classes `ended`. The
    history of a tangent counts, too: what forward mode computes in the backward pass depends on it.
    """
    mode = state.current()
    if mode is not None and state.carries_tangents():
        for level in mode.levels:
            outs = [*outs, *(t for t in map(level.tangent, outs) if t is not None)]
    own = set()
    for x in inner:
        node = node_of(x)
        if node is None or not node.is_leaf:
            return True
        own.add(node)
    for node in walk([node for node in map(node_of, outs) if node is not None]):
        if node.is_leaf and node not in own and not node.is_spent and not isinstance(node, ended):
            return True
    return False


def release(x: Any, keep: bool) -> Any:
    """Return a result of a transform without the history that the transform itself created, unless `keep`."""
    if keep or not isinstance(x, Tensor) or not x.requires_grad:
        return x
    if state.carries_tangents():
        with switches.no_grad():
            return x[...]
    return x.detach()


def select_arguments(name: str, args: tuple[Any, ...], argnums: Argnums) -> tuple[tuple[int, ...], list[Any], Structure]:
    """Return the positions, leaves and structure of the arguments with respect to which to differentiate.

    Raises
    ------
    TypeError, RuntimeError
        If `argnums` are not ints or are out of range, or an argument is not a floating-point or complex Tensor.
    """
    if isinstance(argnums, bool) or not (
        isinstance(argnums, int) or (isinstance(argnums, tuple) and all(isinstance(a, int) for a in argnums))
    ):
        msg = f"{name}: argnums should be int or Tuple[int, ...], but got {argnums!r:.60}"
        raise RuntimeError(msg)
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not places:
        msg = f"{name}: argnums must not be empty; name at least one argument"
        raise RuntimeError(msg)
    for a in places:
        if not -len(args) <= a < len(args):
            msg = f"{name}: got argnum={a} in argnums={argnums!r:.60}, but only {len(args)} positional inputs"
            raise RuntimeError(msg)
    places = tuple(a % len(args) for a in places)
    if len(set(places)) != len(places):
        msg = f"{name}: argnums elements must be unique but got {argnums!r}"
        raise RuntimeError(msg)
    leaves, structure = flatten(args[places[0]] if isinstance(argnums, int) else tuple(args[a] for a in places))
    leaves = lift_leaves(name, leaves, (x for arg in args for x in flatten(arg)[0]), numbers=True)
    check_leaves(name, leaves)
    return places, leaves, structure


def check_leaves(name: str, leaves: list[Any]) -> None:
    """Raise RuntimeError if a leaf is not a floating-point or complex Tensor, or there is none."""
    for x in leaves:
        if not isinstance(x, Tensor):
            msg = f"{name}: Expected all inputs to be Tensors, but got {type(x).__name__}; wrap it with `xpgrad.asarray`"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
        if not x.dtype.differentiable:
            msg = f"{name}: only Tensors of floating and complex dtype can be differentiated, but an input is {x.dtype}"
            raise RuntimeError(msg)
    if not leaves:
        msg = f"{name}: none of the arguments to differentiate with respect to contains a Tensor"
        raise RuntimeError(msg)


def put_back(args: tuple[Any, ...], argnums: Argnums, places: tuple[int, ...], tree: Any) -> tuple[Any, ...]:
    """Return the arguments with those at `places` replaced by the items of `tree`, or by `tree` itself if `argnums` is an int."""
    new = list(args)
    for a, part in zip(places, (tree,) if isinstance(argnums, int) else tree):
        new[a] = part
    return tuple(new)


def _check_scalar(name: str, out: Any) -> None:
    if not isinstance(out, Tensor):
        msg = f"{name}: Expected the function to return a Tensor, but got {type(out).__name__}"
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    if out.shape:
        msg = f"{name}: Expected the function to return a scalar tensor, got tensor with {out.ndim} dims; reduce it, e.g. with `xpgrad.sum`"
        raise RuntimeError(msg)
    if not out.dtype.is_floating_point:
        msg = f"{name}: Expected the function to return a real floating scalar, but got {out.dtype}; use e.g. `xpgrad.real`"
        raise RuntimeError(msg)


def _split_aux(name: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        msg = f"{name}: with has_aux=True the function must return a tuple (output, aux), but got {type(out).__name__}"
        raise RuntimeError(msg)
    return out


def _release_tree(tree: Any, keep: bool) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [release(x, keep) for x in leaves])


def _release_aux(aux: Any, recording: bool, inner: list[Any]) -> tuple[Any, bool]:
    """Return the auxiliary values of a function, and whether one of them has a history beyond the function's arguments.

    Such a Tensor keeps its history; the pass over the function's value must then retain the part of the graph that both share.
    """
    leaves, structure = flatten(aux)
    kept = [recording and isinstance(x, Tensor) and x.requires_grad and has_outer_history([x], inner) for x in leaves]
    return unflatten(structure, [release(x, k) for x, k in zip(leaves, kept)]), any(kept)


@names_keywords
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a real scalar function, and its value (`torch.func.grad_and_value`).

    Parameters
    ----------
    func : callable
        Returns a real 0-d Tensor; with ``has_aux=True`` a pair of it and anything else.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate. These are Tensors, raw arrays or numbers, which become Tensors
        (`asarray`), or nested tuples, lists and dicts of them. Other arguments are passed on unchanged.
    has_aux : bool
        Whether `func` returns a pair.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns ``(gradient, value)``, or ``(gradient, (value, aux))``; the gradient has the structure of
        the chosen arguments.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        When the result is called: if an argument cannot be differentiated, `argnums` does not fit, or the value is not a real 0-d Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> gradient, value = xp.func.grad_and_value(lambda x: xp.sum(x**3))(xp.tensor([1.0, 2.0]))
    >>> gradient, value
    (tensor([ 3., 12.]), tensor(9.))
    """
    check_callable(func, "grad_and_value")
    has_aux = as_flag(has_aux, "grad_and_value", "has_aux")

    @functools.wraps(func, updated=())
    @state.restoring
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recording = state.is_grad_enabled()
        places, leaves, structure = select_arguments("grad", args, argnums)
        with switches.recorded():
            inner = [make_input(x) for x in leaves]
            out = run_transformed("grad", inner, func, *put_back(args, argnums, places, unflatten(structure, inner)), **kwargs)
            out, aux = _split_aux("grad", out, has_aux)
            _check_scalar("grad", out)
            keep = recording and out.requires_grad and has_outer_history([out], inner)
            aux, shared = _release_aux(aux, recording, inner)
            if out.requires_grad:
                found = gradients([out], inner, [None], retain_graph=True if shared else None, create_graph=keep, allow_unused=True)
            else:
                found = [None] * len(inner)
        zeros = [zeros_like(x) if g is None else g for x, g in zip(leaves, found)]
        result = unflatten(structure, zeros)
        value = release(out, keep)
        return (result, (value, aux)) if has_aux else (result, value)

    return wrapper


@names_keywords
def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a real scalar function (`torch.func.grad`).

    Parameters
    ----------
    func : callable
        Returns a real 0-d Tensor; with ``has_aux=True`` a pair of it and anything else.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate; see `grad_and_value`.
    has_aux : bool
        Whether `func` returns a pair.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns the gradient, or ``(gradient, aux)``.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        When the result is called: if an argument cannot be differentiated, `argnums` does not fit, or the value is not a real 0-d Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.grad(lambda x: x**3)(xp.tensor(2.0))
    tensor(12.)
    >>> xp.func.grad(xp.func.grad(lambda x: x**3))(xp.tensor(2.0))
    tensor(12.)
    """
    check_callable(func, "grad")
    has_aux = as_flag(has_aux, "grad", "has_aux")
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def _outputs(name: str, out: Any) -> tuple[list[Any], Structure]:
    leaves, structure = flatten(out)
    for o in leaves:
        if not isinstance(o, Tensor):
            msg = f"{name}: Expected the function to return only Tensors, but got {type(o).__name__}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    if not leaves:
        msg = f"{name}: Expected the function to return at least one Tensor"
        raise RuntimeError(msg)
    return leaves, structure


@state.restoring
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute the value of a function, and a function for its vector-Jacobian products (`torch.func.vjp`).

    Parameters
    ----------
    func : callable
        Takes and returns Tensors, or nested tuples, lists and dicts of them; with ``has_aux=True`` it returns a pair of that and anything
        else.
    *primals : Tensor, array or number, or nested containers of them
        Arguments of `func`. Raw arrays and numbers become Tensors (`asarray`), also among the cotangents.
    has_aux : bool
        Whether `func` returns a pair.

    Returns
    -------
    tuple
        ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes the structure of the output and returns a tuple
        with one entry per primal. It may be called repeatedly, and inside other transforms.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        If an argument or a result is not a Tensor, or cannot be differentiated; when `vjp_fn` is called, if the cotangents do not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> value, vjp_fn = xp.func.vjp(lambda x, y: x * y, xp.tensor([1.0, 2.0]), xp.tensor(3.0))
    >>> value
    tensor([3., 6.])
    >>> vjp_fn(xp.tensor([1.0, 10.0]))
    (tensor([ 3., 30.]), tensor(21.))
    """
    check_callable(func, "vjp")
    has_aux = as_flag(has_aux, "vjp", "has_aux")
    recording = state.is_grad_enabled()
    leaves, structure = flatten(primals)
    leaves = lift_leaves("vjp", leaves, numbers=True)
    check_leaves("vjp", leaves)
    with switches.recorded():
        inner = [make_input(x) for x in leaves]
        out, aux = _split_aux("vjp", run_transformed("vjp", inner, func, *unflatten(structure, inner)), has_aux)
    outs, out_structure = _outputs("vjp", out)
    keep = recording and has_outer_history(outs, inner)

    @state.restoring
    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple[Any, ...]:
        given, found_structure = flatten(cotangents)
        if found_structure != out_structure:
            msg = "vjp_fn: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function"
            raise RuntimeError(msg)
        given = [c if isinstance(c, Tensor) else lift_like("vjp_fn(cotangents)", c, o) for o, c in zip(outs, given)]
        needed = [(o, c) for o, c in zip(outs, given) if o.requires_grad]
        create = state.is_grad_enabled() and (keep or any(isinstance(c, Tensor) and c.requires_grad for c in given))
        if needed:
            with switches.recorded():
                found = gradients(
                    [o for o, _ in needed], inner, [c for _, c in needed], retain_graph=retain_graph,
                    create_graph=create if create_graph is None else create_graph, allow_unused=True,
                )  # fmt: skip
        else:
            found = [None] * len(inner)
        result: tuple[Any, ...] = unflatten(structure, [zeros_like(x) if g is None else g for x, g in zip(leaves, found)])
        return result

    value = _release_tree(out, keep)
    return (value, vjp_fn, _release_aux(aux, recording, inner)[0]) if has_aux else (value, vjp_fn)


@names_keywords
def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` by reverse mode: all rows in one pass (`torch.func.jacrev`).

    Parameters
    ----------
    func : callable
        Returns Tensors, or nested tuples, lists and dicts of them; with ``has_aux=True`` a pair of that and anything else.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate.
    has_aux : bool
        Whether `func` returns a pair.
    chunk_size : int, optional
        Largest number of rows to compute at once. A smaller one needs less memory.

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
        If `chunk_size` is not positive.
    RuntimeError
        When the result is called: if an argument or an output is not a Tensor that can be differentiated.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.jacrev(lambda x: xp.stack([x[0] * x[1], xp.sum(x)]))(xp.tensor([2.0, 3.0]))
    tensor([[3., 2.],
            [1., 1.]])
    >>> xp.func.jacrev(lambda p: p["a"] * p["b"])({"a": xp.tensor(2.0), "b": xp.tensor(3.0)})
    {'a': tensor(3.), 'b': tensor(2.)}
    """
    check_callable(func, "jacrev")
    has_aux = as_flag(has_aux, "jacrev", "has_aux")
    check_chunk_size(chunk_size, "jacrev")

    @functools.wraps(func, updated=())
    @state.restoring
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recording = state.is_grad_enabled()
        places, leaves, structure = select_arguments("jacrev", args, argnums)
        with switches.recorded():
            inner = [make_input(x) for x in leaves]
            out = run_transformed("jacrev", inner, func, *put_back(args, argnums, places, unflatten(structure, inner)), **kwargs)
            out, aux = _split_aux("jacrev", out, has_aux)
            outs, out_structure = _outputs("jacrev", out)
            aux, shared = _release_aux(aux, recording, inner)
            keep, rows = False, None
            plain = len(outs) == 1 and outs[0].ndim == 1 and chunk_size is None and not shared
            if plain and outs[0].requires_grad and not outs[0].depth:
                rows = plain_jacobian(outs[0], inner, alone=recording)
            if rows is None:
                keep = recording and has_outer_history(outs, inner)
            if len(outs) == 1 and outs[0].shape == () and outs[0].requires_grad:
                # One row: a gradient, which needs no batch.
                retain = True if shared else None
                found = gradients(outs, inner, [ones_like(outs[0])], retain_graph=retain, create_graph=keep, allow_unused=True)
                row = unflatten(structure, [zeros_like(x) if g is None else g for g, x in zip(found, leaves)])
                result = unflatten(out_structure, [row])
                return (result, aux) if has_aux else result
            rows = _rows(outs, inner, chunk_size, keep, shared) if rows is None else rows
        jacobians, start = [], 0
        for o in outs:
            n = math.prod(o.shape)
            parts = [_part(r, start, n, len(outs) == 1, o.shape, x.shape) for r, x in zip(rows, leaves)]
            jacobians.append(unflatten(structure, parts))
            start += n
        result = unflatten(out_structure, jacobians)
        return (result, aux) if has_aux else result

    return wrapper


def _part(rows: Any, start: int, count: int, whole: bool, out_shape: tuple[int, ...], shape: tuple[int, ...]) -> Any:

    rows = rows if whole else rows[start : start + count]
    return rows if len(out_shape) == 1 else reshape_to(rows, (*out_shape, *shape))


def basis(tensors: list[Any], start: int, stop: int) -> list[Any]:
    """Return rows `start` to `stop` of the identity on all elements of some Tensors, as one Tensor of shape ``(rows, *shape)`` for each."""

    out, first = [], 0
    for t in tensors:
        n = math.prod(t.shape)
        part = eye(stop - start, n, k=start - first, dtype=t.dtype, device=t.device)
        out.append(reshape_to(part, (stop - start, *t.shape)))
        first += n
    return out


def _rows(outs: list[Any], inner: list[Any], chunk_size: int | None, create: bool, retain: bool) -> list[Any]:
    """Return, for each input, the gradients of all elements of the outputs, stacked along axis 0.

    Parameters
    ----------
    outs, inner : list of Tensor
        The outputs and the inputs.
    chunk_size : int or None
        The most rows to compute at once.
    create, retain : bool
        Whether the rows have a history, and whether the graph is kept.
    """

    total = sum(math.prod(o.shape) for o in outs)
    count = max(total, 1)  # of nothing one row, which is dropped in the end: the result has a history all the same
    step = min(chunk_size or count, count)
    for o in outs:
        if not o.dtype.differentiable:
            msg = f"jacrev: Expected all outputs to be floating or complex Tensors, but one is {o.dtype}"
            raise RuntimeError(msg)
    columns: list[list[Any]] = [[] for _ in inner]
    for start in range(0, count, step):
        stop = min(start + step, count)
        seeds = basis(outs, start, stop)
        needed = [(o, s) for o, s in zip(outs, seeds) if o.requires_grad]
        found = [None] * len(inner)
        if needed:
            found = gradients(
                [o for o, _ in needed], inner, [s for _, s in needed], retain_graph=True if create or retain or stop < count else None,
                create_graph=create, allow_unused=True, is_grads_batched=True,
            )  # fmt: skip
        for column, g, x in zip(columns, found, inner):
            column.append(zeros((stop - start, *x.shape), dtype=x.dtype, device=x.device) if g is None else g)
    rows = [c[0] if len(c) == 1 else concat(c, axis=0) for c in columns]
    return rows if total else [r[:0] for r in rows]
