"""Dependence through elementwise kernels, kernels that select elements, and kernels that add them at places of the result."""

from __future__ import annotations

from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.func._sparse.dependence import Dependence, broadcast, by_places, no_dependence, share_sets, union, union_along
from xpgrad.func._sparse.host import np
from xpgrad.func._sparse.propagation import Rule, Walk
from xpgrad.programs.program import Operation, Variable, substitute, variables_in


def _mask(x: Dependence, kept: Any) -> Dependence:
    """Return `x` with no dependence where `kept` is False."""
    return x.rearrange(np.where(kept, x.which, 0))


def nonzero(value: Any) -> Any:
    """Return where a value is not 0; nan is not 0."""
    return np.asarray(value) != 0


# -- element by element -----------------------------------------------------------------------------------------------------


def _elementwise(walk: Walk, operation: Operation) -> Dependence:
    shape = operation.out.shape
    found: Dependence | None = None
    for v in operation.operands():
        if v in walk.tracked:
            x = broadcast(walk.tracked[v], shape)
            found = x if found is None else union(found, x)
    assert found is not None
    return found


def _product(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of a product, which is empty where the other factor is a known 0."""
    found = _elementwise(walk, operation)
    for x in operation.args:
        if x not in walk.tracked and (value := walk.value(x)) is not None and not np.all(kept := nonzero(value)):
            found = _mask(found, kept)
    return found


def _where_rule(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of `where`: on both branches, or on the chosen one if the condition is known."""
    condition, *parts = operation.args
    value = None if condition in walk.tracked else walk.value(condition)
    if value is None:
        return _elementwise(walk, operation)
    shape = operation.out.shape
    chosen = [walk.dependence_of(x) if x.__class__ is Variable else no_dependence((), walk.total) for x in parts]
    yes, no = share_sets([broadcast(x, shape) for x in chosen])
    return yes.rearrange(np.where(value, yes.which, no.which))


def _keep(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of ``keep(condition, x)``: on `x`, except where the condition is known to be False."""
    condition, _ = operation.args
    found = _elementwise(walk, operation)
    value = walk.value(condition)
    return found if value is None else _mask(found, value)


def _share(walk: Walk, operation: Operation) -> Dependence:
    """Return the dependence of ``share(x, low, high)``: on `x`, except where ``low < high`` is known to hold."""
    found = _elementwise(walk, operation)
    low, high = (None if x in walk.tracked else walk.value(x) for x in operation.args[1:])
    return found if low is None or high is None else _mask(found, ~np.less(low, high))


# -- picking ------------------------------------------------------------------------------------------------------------------


def _select(walk: Walk, operation: Operation) -> Dependence | list[Dependence] | None:
    """Return the dependence of a selection: the kernel applied to the numbers of the sets.

    If indices are unknown, each element depends on all elements along the axis. None if there is no such axis.
    """
    arguments = (operation.args, tuple(operation.options.values()))
    variables = list(dict.fromkeys(variables_in(arguments)))
    data = [v for v in variables if v.dtype.differentiable]
    arrays: dict[Variable, Any] = {}
    for v, x in zip(data, parts := share_sets([walk.dependence_of(v) for v in data])):
        arrays[v] = np.array(x.which)
    for v in variables:
        if v not in arrays:
            value = walk.value(v)
            if value is None:
                return _select_somewhere(operation, parts)
            arrays[v] = value
    args = substitute(operation.args, arrays.__getitem__)
    if operation.name in ("written", "put"):
        args = _without_number(operation.name, args)
    options = {k: substitute(x, arrays.__getitem__) for k, x in operation.options.items()}
    function: Any = host_backend().kernels
    for name in operation.name.split("."):
        function = getattr(function, name)
    found = function(*args, **options)
    if operation.several:
        return [parts[0].rearrange(np.asarray(x)) for x in found]
    return parts[0].rearrange(np.asarray(found))


#: Where the axis is among the arguments of kernels that pick along one.
_AXES = {"gather_along": 2, "ordered_back": 2, "take": 2, "take_along_axis": 2}


def _select_somewhere(operation: Operation, parts: list[Dependence]) -> Dependence | None:
    """Return the dependence of a selection at unknown places along one axis: on all elements along it. None for other selections."""
    at = _AXES.get(operation.name)
    if at is None:
        return None
    axis = operation.args[at] if len(operation.args) > at else operation.options.get("axis", -1)
    whole = union_along(parts[0], axis)
    return broadcast(whole, operation.out.shape) if isinstance(axis, int) else None


def _without_number(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a writing kernel with a Python number replaced by 0, the number of the empty set: it depends on nothing."""
    at = 2 if name == "written" else 1
    value = args[at]
    return args if isinstance(value, np.ndarray) else (*args[:at], 0, *args[at + 1 :])


# -- adding up in places ---------------------------------------------------------------------------------------------------


def _positions(walk: Walk, key: Any, shape: tuple[int, ...]) -> Any:
    """Return the flat places of an array of `shape` that a key selects; None if they are not known."""
    parts = key if isinstance(key, tuple) else (key,)
    values = tuple(walk.value(part) for part in parts)
    if any(value is None and part is not None for value, part in zip(values, parts)):
        return None
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)[values]


def _scatter_add(walk: Walk, operation: Operation) -> Dependence | None:
    g, key, shape = operation.args
    places = _positions(walk, key, shape)
    return None if places is None else by_places(walk.dependence_of(g), np.broadcast_to(places, g.shape), tuple(shape))


def _add_at(walk: Walk, operation: Operation) -> Dependence | None:
    """Return the dependence of ``buffer[key] += g``; None if the places are not known."""
    buffer, g, key = operation.args
    places = _positions(walk, key, buffer.shape)
    if places is None:
        return None
    added = by_places(walk.dependence_of(g), np.broadcast_to(places, g.shape), buffer.shape)
    return union(walk.dependence_of(buffer), added) if buffer in walk.tracked else added


def _segment_sum(walk: Walk, operation: Operation) -> Dependence | None:
    values, positions, size = operation.args
    places = walk.value(positions)
    return None if places is None else by_places(walk.dependence_of(values), places, (size,))


def _scatter_along(walk: Walk, operation: Operation) -> Dependence | None:
    g, indices, shape, axis = operation.args
    picks = walk.value(indices)
    if picks is None:
        return None
    places = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return by_places(walk.dependence_of(g), np.take_along_axis(places, picks, axis), tuple(shape))


def _sum_to(walk: Walk, operation: Operation) -> Dependence:
    x, shape = operation.args
    places = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return by_places(walk.dependence_of(x), np.broadcast_to(places, x.shape), tuple(shape))


#: By the kind of a kernel.
RULES_OF_KINDS: dict[str, Rule] = {
    **dict.fromkeys(("elementwise", "cast", "copy", "part"), _elementwise),
    **dict.fromkeys(("expansion", "reshape", "transpose", "selection"), _select),
}

#: By its name, where its kind says too little.
RULES: dict[str, Rule] = {
    "multiply": _product, "scale": _product, "where": _where_rule, "keep": _keep, "share": _share,
    "scatter_add": _scatter_add, "scatter_into": _add_at, "add_at": _add_at, "segment_sum": _segment_sum, "scatter_along": _scatter_along,
    "sum_to": _sum_to,
}  # fmt: skip
