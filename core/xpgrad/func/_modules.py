"""`functional_call` and `stack_module_state` (`torch.func`): call objects that hold Tensors with other Tensors in their place.

PyTorch has them for its layers. Here a module is any object: its Tensors are found by name, such as ``layers.0.weight``, through
attributes, lists and dicts; they are replaced for the call and restored after it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xpgrad._basics.arguments import as_flags, check_callable, shown
from xpgrad._modes import state
from xpgrad._modes.setting import Setting
from xpgrad._modes.switches import no_grad
from xpgrad._operations.lift import as_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.manipulation import stack


class _Place(NamedTuple):
    """Where a Tensor is stored: an entry of a list or dict, or an attribute of an object."""

    owner: Any
    key: Any

    def get(self) -> Any:
        return self.owner[self.key] if isinstance(self.owner, (list, dict)) else getattr(self.owner, self.key, None)

    def put(self, value: Any) -> None:
        if isinstance(self.owner, (list, dict)):
            self.owner[self.key] = value
        else:
            object.__setattr__(self.owner, self.key, value)  # also where the class is frozen


class _Replaced:
    """Context manager that puts Tensors into places again, for a function that runs after the call."""

    def __init__(self, values: list[tuple[_Place, Any]]) -> None:
        self._values = values
        self._before: list[list[Any]] = []

    def __enter__(self) -> None:
        self._before.append([place.get() for place, _ in self._values])
        for place, value in self._values:
            place.put(value)

    def __exit__(self, *exc: object) -> None:
        for (place, _), value in zip(self._values, self._before.pop()):
            place.put(value)


def _entries(x: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the names and values in a container, or in an object that is not a type, a function or a module."""
    if isinstance(x, dict):
        yield from x.items()
    elif isinstance(x, (list, tuple)):
        yield from enumerate(x)
    elif not (isinstance(x, type) or inspect.isroutine(x) or inspect.ismodule(x)):
        slots = (s for cls in type(x).__mro__ for s in _slots(cls))
        for name in dict.fromkeys((*getattr(x, "__dict__", ()), *slots)):
            if hasattr(x, name):
                yield name, getattr(x, name)


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return tuple(s for s in ((slots,) if isinstance(slots, str) else slots) if not s.startswith("__"))


def _named_tensors(x: Any, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, _Place, Any]]:
    """Yield the name, the place and the value of each Tensor in an object; skip those in tuples, which cannot be replaced."""
    seen = set() if seen is None else seen
    if id(x) in seen:
        return
    seen.add(id(x))
    for key, value in _entries(x):
        name = f"{prefix}{key}"
        if isinstance(value, Tensor):
            if not isinstance(x, tuple):
                yield name, _Place(x, key), value
        elif isinstance(value, (dict, list, tuple)) or hasattr(value, "__dict__") or any(map(_slots, type(value).__mro__)):
            yield from _named_tensors(value, f"{name}.", seen)


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """Call an object with other Tensors in place of its own (`torch.func.functional_call`).

    Parameters
    ----------
    module : callable
        An object whose attributes hold Tensors, also in nested lists, dicts and objects; a bound method of one; or a function, which
        gets the mapping as its first argument.
    parameter_and_buffer_dicts : mapping of str to Tensor, or sequence of them
        New Tensors by name, such as ``"layers.0.weight"``; several mappings must have different names.
    args : tuple or object, optional
        Positional arguments; an object that is not a tuple is the only one.
    kwargs : dict, optional
        Keyword arguments.
    tie_weights : bool
        Whether a Tensor that the object holds under several names is replaced under all of them.
    strict : bool
        Whether to refuse names that the object does not have, and to require all that it has. By default, as in PyTorch, neither.

    Returns
    -------
    object
        The result of the call. The object has its own Tensors again; a Tensor that the call assigned in place of a given one is put
        into the mapping.

    Raises
    ------
    ValueError
        If `parameter_and_buffer_dicts` is not a mapping or a sequence of them, if mappings share a name, or if tied names get different
        Tensors.
    RuntimeError
        If `strict` is True and the names do not fit.
    TypeError
        If `module` is not callable, a value is not a Tensor, or `kwargs` is not a dict.

    Notes
    -----
    During the call, other threads see the object with the given Tensors.

    Examples
    --------
    >>> import xpgrad as xp
    >>> class Line:
    ...     def __init__(self):
    ...         self.slope, self.start = xp.asarray(2.0), xp.asarray(1.0)
    ...
    ...     def __call__(self, x):
    ...         return self.slope * x + self.start
    >>> line = Line()
    >>> xp.func.functional_call(line, {"slope": xp.asarray(5.0)}, xp.asarray(3.0))
    tensor(16.)
    >>> xp.func.grad(lambda p: xp.func.functional_call(line, p, xp.asarray(3.0)))({"slope": line.slope})
    {'slope': tensor(3.)}
    """
    check_callable(module, "functional_call", "module")
    tie_weights, strict = as_flags("functional_call", tie_weights=tie_weights, strict=strict)
    given = _mappings(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    keywords = {} if kwargs is None else kwargs
    if not isinstance(keywords, Mapping) or not all(isinstance(key, str) for key in keywords):
        msg = f"functional_call: `kwargs` must be a dict with names as keys, but got {shown(kwargs)}"
        raise TypeError(msg)
    values = {name: as_tensor("functional_call", value) for mapping in given for name, value in mapping.items()}
    if inspect.isfunction(module) or inspect.isbuiltin(module) or isinstance(module, functools.partial):
        return module(values, *positional, **keywords)
    places, own = {}, {}
    for name, place, tensor in _named_tensors(module.__self__ if inspect.ismethod(module) else module):
        places[name], own[name] = place, tensor
    if strict:
        _check_names(module, set(values), set(own))
    if tie_weights:
        values = _extend_to_tied(values, own)
    replaced = {name: value for name, value in values.items() if name in places}
    outer = state.current()
    running = () if outer is None else outer.replaced
    try:
        for name, value in replaced.items():
            places[name].put(value)
        here = _Replaced([(places[name], value) for name, value in replaced.items()])
        with Setting(state.VARIABLE, state.mode_with(replaced=(*running, here))):
            return module(*positional, **keywords)
    finally:
        _put_back(replaced, places, own, given)


def _mappings(given: Any) -> Sequence[Any]:
    """Return the mappings as a sequence; raise ValueError if two share a name."""
    several = given if isinstance(given, (tuple, list)) else (given,)
    for mapping in several:
        if not isinstance(mapping, Mapping):
            msg = f"functional_call: `parameter_and_buffer_dicts` must be a dict, or a tuple or list of dicts, but got {shown(mapping)}"
            raise ValueError(msg)  # noqa: TRY004 (PyTorch's type)
    names = [name for mapping in several for name in mapping]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"functional_call: {twice} appeared in multiple dictionaries, of which only one can be meant; give each name once"
        raise ValueError(msg)
    return several


def _check_names(module: Any, given: set[str], own: set[str]) -> None:
    """Raise RuntimeError for names that the object does not have, and for its own names that are missing."""
    parts = [f"{what} {sorted(names)}" for what, names in (("missing", own - given), ("unexpected", given - own)) if names]
    if parts:
        msg = f"functional_call with strict=True: the names do not fit {type(module).__name__}: {'; '.join(parts)}"
        raise RuntimeError(msg)


def _extend_to_tied(values: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with an entry for every name of a tied Tensor: a value given for one name counts for all."""
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        groups.setdefault(id(tensor), []).append(name)
    out = dict(values)
    for names in groups.values():
        found = [name for name in names if name in values]
        if len({id(values[name]) for name in found}) > 1:
            msg = f"functional_call got multiple values for names {found}, which are tied; consider using `tie_weights=False`"
            raise ValueError(msg)
        out.update(dict.fromkeys(names, values[found[0]]) if found else {})
    return out


def _put_back(replaced: dict[str, Any], places: dict[str, _Place], own: dict[str, Any], given: Sequence[Any]) -> None:
    """Restore the object's own Tensors; put a Tensor that the call assigned instead of a given one into its mapping.

    Parameters
    ----------
    replaced : dict
        The Tensors that stood in the object during the call, by name.
    places : dict
        Where in the object each name is.
    own : dict
        The object's own Tensors, by name.
    given : sequence of dict
        The caller's mappings.
    """
    for name, value in replaced.items():
        now = places[name].get()
        places[name].put(own[name])
        if now is not value and isinstance(now, Tensor):
            for mapping in given:
                if name in mapping:
                    mapping[name] = now


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the Tensors of several objects of one class by name, for `vmap` (`torch.func.stack_module_state`).

    Parameters
    ----------
    models : sequence of objects or of mappings
        Objects whose Tensors have the same names and shapes; `functional_call` describes where Tensors are found.

    Returns
    -------
    params : dict of str to Tensor
        Tensors that require grad, stacked along axis 0, as new leaves that require grad.
    buffers : dict of str to Tensor
        The other Tensors, stacked along axis 0.

    Raises
    ------
    TypeError
        If `models` is not a sequence.
    RuntimeError
        If there are no models, their classes or names differ, or a Tensor requires grad in some models only.
    ValueError
        If the shapes of Tensors with one name differ.

    Examples
    --------
    >>> import xpgrad as xp
    >>> models = [{"w": xp.tensor([1.0, 2.0], requires_grad=True)}, {"w": xp.tensor([3.0, 4.0], requires_grad=True)}]
    >>> params, buffers = xp.func.stack_module_state(models)
    >>> xp.func.vmap(lambda p: xp.sum(p["w"]))(params)
    tensor([3., 7.], grad_fn=<SumBackward1>)
    """
    if not isinstance(models, Iterable) or isinstance(models, (str, bytes, Mapping)):
        msg = f"stack_module_state: `models` must be a sequence of objects or mappings that hold Tensors, but got {shown(models)}"
        raise TypeError(msg)
    models = list(models)
    if not models:
        msg = "stack_module_state: Expected at least one model, got 0."
        raise RuntimeError(msg)
    if any(type(m) is not type(models[0]) for m in models):
        msg = f"stack_module_state: Expected all models to be of the same class, got {sorted({type(m).__name__ for m in models})}"
        raise RuntimeError(msg)
    held = [{name: tensor for name, _, tensor in _named_tensors(m)} for m in models]
    for other in held[1:]:
        if set(other) != set(held[0]):
            msg = f"stack_module_state: the models hold Tensors of different names: {sorted(set(other) ^ set(held[0]))} not in all"
            raise RuntimeError(msg)
    params, buffers = {}, {}
    for name, first in held[0].items():
        with no_grad():
            whole = stack([h[name] for h in held])
        needs = {bool(h[name].requires_grad) for h in held}
        if len(needs) > 1:
            msg = f"stack_module_state: {name!r} requires grad in some of the models only; make them alike"
            raise RuntimeError(msg)
        if first.requires_grad:
            params[name] = whole.requires_grad_()
        else:
            buffers[name] = whole
    return params, buffers
