"""`xpgrad.compile`: a function of Tensors as one node of the tape, around the forward and the backward that the backend compiles.

Where the function returns one real number, the gradients are computed together with it, in one compiled call, and the backward pass
scales them; otherwise a compiled backward computes the function again. On backends that do not compile, the function runs as it is.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from xpgrad._basics.arguments import check_callable
from xpgrad._modes import state, switches
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import is_constant, lift_all
from xpgrad._tape.node import ListNode, freed, new_slot, walk
from xpgrad._tape.requests import grad
from xpgrad._tape.saved import check_version, unpack, unpack_constant
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.creation import zeros
from xpgrad.rules.elementwise import positive

__all__ = ["CompiledNode", "compile_function"]

F = TypeVar("F", bound=Callable[..., Any])
_warned: set[str] = set()


class _Program:
    """A function for arguments of one structure, shapes and dtypes, of which some require grad; compiled when first called."""

    def __init__(self, function: Any, template: Any, cls: Any, needs: tuple[bool, ...], recording: bool) -> None:
        backend = cls.backend
        self.function, self.template, self.cls, self.needs, self.recording = function, template, cls, needs, recording
        self.places = [i for i, need in enumerate(needs) if need]
        self.forward = backend.compile(self._forward)
        self.backward = backend.compile(self._backward)
        cast = backend.kernels.cast  # NB: a loss may have another precision than an argument
        self.scale = backend.compile(lambda g, *grads: tuple(None if v is None else cast(v * g, v.dtype) for v in grads))
        # What the first call finds out:
        self.out_template: Any = None
        self.requires: tuple[bool, ...] = ()
        self.metas: list[Any] = []
        self.scalar = False

    def _call(self, raws: Any) -> tuple[list[Any], list[Any]]:
        """Run the function on Tensors around raw arrays that may be traced; returns these Tensors and the results."""
        leaves = []
        for raw, need in zip(raws, self.needs):
            self.cls.backend.note_device(raw, self.cls.device)
            leaf = object.__new__(self.cls)
            leaf._array = raw
            leaf._node = leaf._alias = None
            if need:
                leaf.requires_grad_()
            leaves.append(leaf)
        nodes = [leaf._node for leaf in leaves]
        args, kwargs = _arguments(self.template, list(leaves))
        before = state.current()
        try:
            state.put(None if self.recording else state.NO_GRAD)
            out = self.function(*args, **kwargs)
        finally:
            state.put(before)
        for leaf, raw, node in zip(leaves, raws, nodes):
            if leaf._array is not raw or (leaf._alias is not None and leaf._version):
                msg = "a compiled function writes to one of its arguments, which would be lost; return the new value instead"
                raise RuntimeError(msg)
            if leaf._node is not node:
                msg = (
                    "a compiled function calls `requires_grad_()` or `detach_()` on one of its arguments, which would be lost; do so "
                    "before the call, or use `x.detach()`"
                )
                raise RuntimeError(msg)
            if leaf.grad is not None:
                msg = (
                    "a compiled function calls `backward()`, which would not reach the `.grad` of its arguments; return the gradients "
                    "of `xpgrad.autograd.grad` instead, or call `backward()` on what the function returns"
                )
                raise RuntimeError(msg)
        outs: list[Any] = []
        self.out_template = _described(out, outs)
        own = set(nodes)
        for node in walk([o._node for o in outs if o._node is not None]):
            if node.is_leaf and node not in own:
                msg = (
                    "a compiled function uses a Tensor that requires grad and is not one of its arguments: its gradient would be lost. "
                    f"Pass it as an argument (its shape is {tuple(node.array.shape)})"
                )
                raise RuntimeError(msg)
        self.requires = tuple(o.requires_grad for o in outs)
        self.metas = [(o.shape, o.dtype, self.cls) for o in outs]
        return leaves, outs

    def _forward(self, *raws: Any) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
        leaves, outs = self._call(raws)
        self.scalar = len(outs) == 1 and self.requires[0] and outs[0].shape == () and not outs[0].dtype.is_complex
        arrays = tuple(o._array for o in outs)
        if not self.scalar:
            return arrays, None
        one = object.__new__(self.cls)  # NB: made from the result, so that a tracing backend does not take it for a constant from outside
        one._array = self.cls.backend.kernels.ones_like(arrays[0])
        one._node = one._alias = None
        return arrays, self._gradients(outs, [one], leaves)

    def _backward(self, *arrays: Any) -> tuple[Any, ...]:
        """The gradients, given the raw arguments followed by one raw gradient for each result that requires grad."""
        count = len(self.needs)
        leaves, outs = self._call(arrays[:count])
        seeds = []
        for raw in arrays[count:]:
            seed = object.__new__(self.cls)
            seed._array = raw
            seed._node = seed._alias = None
            seeds.append(seed)
        return self._gradients([o for o in outs if o.requires_grad], seeds, leaves)

    def _gradients(self, outs: list[Any], seeds: list[Any] | None, leaves: list[Any]) -> tuple[Any, ...]:
        if not outs:
            return (None,) * len(self.places)
        grads = grad(outs, [leaves[i] for i in self.places], seeds, allow_unused=True)
        return tuple(None if g is None else g._array for g in grads)


class CompiledNode(ListNode):
    """The node of one call of a compiled function.

    Attributes
    ----------
    arrays : list or None
        The raw arguments.
    gradients : tuple or None
        For a function that returns one real number: its gradients.
    sources : list
        The origin of each argument: an edge, or the Tensor itself if it is a constant.
    """

    __slots__ = ("arrays", "cls", "gradients", "metas", "n_outputs", "packs", "program", "slots", "slotted", "sources")

    title = "CompiledBackward0"
    saves = True
    cls: Any
    program: _Program
    arrays: Any
    gradients: Any
    metas: Any
    slots: Any
    sources: list[Any]

    def _arguments(self) -> list[Any]:
        """The raw arguments, unpacked where hooks packed them, otherwise checked."""
        if self.arrays is None:
            raise freed(self)
        found = []
        for k, (array, source) in enumerate(zip(self.arrays, self.sources)):
            if self.packs:
                array = array.array()
            elif source._alias is not None:
                check_version(self, f"argument {k}", source._alias)
            found.append(array)
        return found

    def pack(self, hooks: Any, tensors: list[Any]) -> None:
        """Give the arguments and the gradients to hooks, and keep what they return in their place."""
        self.packs = True
        backend = self.cls.backend
        self.arrays = [hooks.packed(t) for t in tensors]
        self.sources = [None if isinstance(s, Tensor) else s for s in self.sources]
        if self.gradients is not None:
            self.gradients = tuple(None if v is None else hooks.packed(backend.wrap(v)) for v in self.gradients)

    def _seeds(self, g: Any, zeros: Callable[[Any], Any]) -> list[Any]:
        """One gradient for each result that requires grad."""
        given = g if self.slotted else [g]
        given = [None] * self.n_outputs if given is None else given
        return [zeros(m) if v is None else v for v, m, r in zip(given, self.metas, self.program.requires) if r]

    def grads(self, g: Any) -> list[Any]:
        backend = self.cls.backend
        if self.gradients is not None:
            gradients = self.gradients
            if self.packs:
                gradients = [None if v is None else v.array() for v in gradients]
            return list(gradients if backend.is_unit(g) else self.program.scale(g, *gradients))
        return list(
            self.program.backward(*self._arguments(), *self._seeds(g, lambda m: backend.kernels.zeros(m[0], dtype=backend.raw_dtype(m[1]))))
        )

    def graph_grads(self, g: Any) -> list[Any]:
        """Run the function again, uncompiled and recorded, so that the gradients can be differentiated."""
        program, backend = self.program, self.cls.backend
        outs: list[Any] = []
        seeds = self._seeds(g, lambda m: zeros(m[0], dtype=m[1], device=self.cls.device))
        with switches.enable_grad():  # where Tensors have tangents, a pass runs on them without recording
            # NB: separate results, so that each argument has its own gradient where one is given twice, or computed from another.
            inputs = []
            for raw, s in zip(self._arguments(), self.sources):
                if isinstance(s, Tensor):
                    inputs.append(unpack_constant(backend, raw, s))
                else:  # no source: a constant that was packed
                    inputs.append(backend.wrap(raw) if s is None else positive(unpack(backend, raw, s)))
            args, kwargs = _arguments(program.template, inputs)
            wanted = [inputs[i] for i in program.places]
            _described(program.function(*args, **kwargs), outs)
            return list(grad([o for o in outs if o.requires_grad], wanted, seeds, create_graph=True, allow_unused=True))

    def held(self) -> list[Any]:
        return [] if self.packs else [*(self.arrays or ()), *(v for v in self.gradients or () if v is not None)]

    def release(self) -> None:
        self.arrays = self.gradients = None

    def released(self) -> bool:
        return self.arrays is None


def _described(x: Any, flat: list[Any], *, arrays: bool = False) -> Any:
    """The structure of nested tuples, lists and dicts, hashable; the Tensors in it, and if asked raw arrays, are appended to `flat`."""
    if isinstance(x, Tensor) or (arrays and is_constant(x)):
        flat.append(x)
        return None
    cls = x.__class__
    if cls is tuple or cls is list:
        return (cls, *[_described(item, flat, arrays=arrays) for item in x])
    if cls is dict:
        return (dict, tuple(x), *[_described(item, flat, arrays=arrays) for item in x.values()])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return (cls, *[_described(item, flat, arrays=arrays) for item in x])
    try:
        hash(x)
    except TypeError:
        msg = (
            f"a compiled function takes and returns Tensors, hashable values, and tuples, lists and dicts of these, not {cls.__name__}; "
            "wrap an array with `xpgrad.asarray(x)`"
        )
        raise TypeError(msg) from None
    return ("static", cls, x, repr(x) if isinstance(x, (float, complex)) else None)  # 0.0 == -0.0


def _arguments(template: Any, tensors: list[Any]) -> Any:
    """Positional and keyword arguments; without a template the Tensors are the positional ones."""
    return (tensors, {}) if template is None else _rebuilt(template, iter(tensors))


def _rebuilt(template: Any, flat: Iterator[Any]) -> Any:
    if template is None:
        return next(flat)
    kind = template[0]
    if kind == "static":
        return template[2]
    if kind is dict:
        return dict(zip(template[1], [_rebuilt(t, flat) for t in template[2:]]))
    items = [_rebuilt(t, flat) for t in template[1:]]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def compile_function(function: F) -> F:
    """Compile a function of Tensors, forward and backward (the counterpart of `torch.compile` and `jax.jit`).

    Parameters
    ----------
    function : callable
        It takes and returns Tensors, and tuples, lists and dicts of them. Raw arrays among its arguments become Tensors, as constants.
        Other arguments must be hashable, and it is compiled again for each of their values, and for each combination of shapes and
        dtypes. It must not depend on values, write to its arguments, call `backward()` on what depends on them, or use Tensors that
        require grad and are not arguments. Tensors and arrays that are not arguments are constants, as they are at the first call;
        that includes whether they require grad.

    Returns
    -------
    callable
        The same function, whose call is one node of the tape. A backend that does not compile runs the function as it is, and says so once.

    Raises
    ------
    TypeError, RuntimeError
        When it is called with, or does, what is excluded above.

    >>> import xpgrad as xp
    >>> @xp.compile
    ... def loss(w, x):
    ...     return xp.mean((x @ w) ** 2)
    """
    check_callable(function, "compile", "function")
    programs: dict[Any, _Program] = {}

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        flat: Any = args
        template: Any = None
        if kwargs or not all(isinstance(a, Tensor) for a in args):
            flat = []
            template = _described((args, kwargs), flat, arrays=True)
            if not all(isinstance(a, Tensor) for a in flat):
                flat = lift_all("compile", flat)
                args, kwargs = _arguments(template, flat)
        if not flat:
            return function(*args, **kwargs)
        cls = flat[0].__class__
        if cls.fresh is not None or any(t.__class__ is not cls for t in flat):
            flat = unify("compile", flat)
            cls = flat[0].__class__
        backend = cls.backend
        if cls.depth:  # inside `vmap` it is the operations that are vectorised
            return function(*args, **kwargs)
        if not backend.capabilities.jit:
            if backend.table_name not in _warned:
                _warned.add(backend.table_name)
                warnings.warn(f"backend {backend.table_name!r} does not compile: the function runs as it is", UserWarning, stacklevel=2)
            return function(*args, **kwargs)
        mode = state.current()
        arrays = [t._array for t in flat]
        if any(map(backend.is_traced, arrays)) or flat[0].is_inference() or (mode is not None and (mode.anomaly or mode.levels)):
            return function(*args, **kwargs)
        recording = state.records(mode)
        edges = [t._node for t in flat] if recording else [None] * len(flat)
        needs = tuple([e is not None for e in edges])
        key = (template, cls, needs, recording, tuple([(a.shape, a.dtype) for a in arrays]))
        program = programs.get(key)
        if program is None:
            program = _Program(function, template, cls, needs, recording)
        raws, gradients = program.forward(*arrays)
        programs[key] = program  # not before it has been seen to work
        node = _node(program, cls, arrays, gradients, flat, edges) if True in program.requires else None
        outs = []
        for k, (raw, requires) in enumerate(zip(raws, program.requires)):
            out = cls._wrap(raw)
            if requires and node is not None:
                out._node = new_slot(node, k) if node.slotted else node
            outs.append(out)
        if node is not None and mode is not None and mode.packing is not None:
            node.pack(mode.packing, flat)
        return outs[0] if program.out_template is None else _rebuilt(program.out_template, iter(outs))

    return compiled  # type: ignore[return-value]


def _node(program: _Program, cls: Any, arrays: list[Any], gradients: Any, flat: list[Any], edges: list[Any]) -> Any:
    node: Any = CompiledNode.made_now()
    node.e = tuple([e for e in edges if e is not None])
    node.cls, node.program, node.arrays, node.gradients = cls, program, arrays, gradients
    node.sources = [t if e is None else e for t, e in zip(flat, edges)]
    node.packs = False
    node.n_outputs, node.slotted = len(program.requires), not program.scalar
    node.stream = (cls, cls.backend.current_stream(cls.device)) if cls.backend.capabilities.streams else None
    node.slots, node.metas = [None] * node.n_outputs, program.metas
    return node
