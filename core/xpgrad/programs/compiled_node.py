"""The graph node of a compiled call: its gradients were computed with the value, or come from the compiled backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._modes import switches
from xpgrad._modes.batch_levels import at_levels
from xpgrad._tape.node import ListNode, add_into, freed_error
from xpgrad._tape.requests import grad
from xpgrad._tape.saved import check_version, unpack, unpack_constant
from xpgrad._tensor.tensor import Tensor
from xpgrad.programs.structure import arguments, describe
from xpgrad.rules.creation import zeros
from xpgrad.rules.elementwise import positive

__all__ = ["CompiledNode", "new_node"]


class CompiledNode(ListNode):
    """The node of one call of a compiled function.

    Attributes
    ----------
    arrays : list or None
        The raw arguments.
    gradients : tuple or None
        The gradients of a function that returns one real number.
    sources : list
        For each argument its edge, or the Tensor itself if it is a constant.
    """

    __slots__ = ("arrays", "cls", "gradients", "metas", "n_outputs", "packs", "program", "slots", "slotted", "sources")

    title = "CompiledBackward0"
    saves = True
    cls: Any
    program: Any
    arrays: Any
    gradients: Any
    metas: Any
    slots: Any
    sources: list[Any]

    @property
    def _is_finished(self) -> bool:  # type: ignore[override]
        return self.gradients is not None and not self.packs

    def _saved_arguments(self) -> Any:
        """Return the saved arguments; raise RuntimeError if they were freed."""
        if self.arrays is None:
            raise freed_error(self)
        return self.arrays

    def _arguments(self) -> list[Any]:
        """Return the raw arguments, unpacked by hooks if they were packed; raise RuntimeError if one was overwritten."""
        found = []
        for k, (array, source) in enumerate(zip(self._saved_arguments(), self.sources)):
            if self.packs:
                array = array.array()
            elif source._alias is not None:
                check_version(self, f"argument {k}", source._alias)
            found.append(array)
        return found

    def pack(self, hooks: Any, tensors: list[Any]) -> None:
        """Pass the arguments and the gradients to pack hooks, and save what they return instead."""
        self.packs: bool = True
        backend = self.cls.backend
        self.arrays = [hooks.pack_tensor(t) for t in tensors]
        self.sources = [None if isinstance(s, Tensor) else s for s in self.sources]
        if self.gradients is not None:
            self.gradients = tuple(None if v is None else hooks.pack_tensor(backend.wrap(v)) for v in self.gradients)

    def _seeds(self, g: Any, zeros: Callable[[Any], Any]) -> list[Any]:
        """Return one cotangent per result that requires grad, with zeros for missing ones."""
        given = g if self.slotted else [g]
        given = [None] * self.n_outputs if given is None else given
        return [zeros(m) if v is None else v for v, m, r in zip(given, self.metas, self.program.requires) if r]

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        for e, v in zip(self.edges(), self.finish(g, retain)):
            add_into(e, v, empty, True)

    def finish(self, g: Any, retain: bool) -> list[Any]:
        """Return the gradients of the edges in memory that nothing else uses, and free saved values unless `retain`."""
        found = self._new(g, retain)
        if not retain:
            self.release()
        return found

    def grads(self, g: Any) -> list[Any]:
        return self._new(g, True)

    def _new(self, g: Any, retain: bool) -> list[Any]:
        """Return the gradients in memory that nothing else uses; those saved for another pass or by hooks are copied."""
        backend = self.cls.backend
        if self.gradients is None:
            seeds = self._seeds(g, lambda m: backend.kernels.zeros(m[0], dtype=backend.raw_dtype(m[1])))
            return list(self.program.backward(*self._arguments(), *seeds))
        kept = [None if v is None else v.array() for v in self.gradients] if self.packs else self.gradients
        if not backend.is_unit(g):
            return list(self.program.scale(g, *kept))
        if backend.capabilities.mutable and (retain or self.packs):
            return [None if v is None else backend.kernels.copy(v) for v in kept]
        return list(kept)

    def graph_grads(self, g: Any) -> list[Any]:
        """Return the gradients with a graph, by running the original function again with recording.

        Raises
        ------
        CaptureError
            The function would compute something else than when it was compiled.
        """
        program, backend = self.program, self.cls.backend
        outs: list[Any] = []
        seeds = self._seeds(g, lambda m: zeros(m[0], dtype=m[1], device=self.cls.device))
        with switches.enable_grad():  # where Tensors have tangents, a pass runs on them without recording
            # NB: separate results, so that each argument has its own gradient where one is given twice, or computed from another.
            if self.packs:
                values = [a.value() for a in self._saved_arguments()]
                raws = [backend.own(v) for v in values]
                inputs = [a.restore(v, s) for a, v, s in zip(self._saved_arguments(), values, self.sources)]
            else:
                raws = self._arguments()
                inputs = [
                    unpack_constant(backend, raw, s) if isinstance(s, Tensor) else unpack(backend, raw, s)
                    for raw, s in zip(raws, self.sources)
                ]
            inputs = [x if s is None or isinstance(s, Tensor) else positive(x) for x, s in zip(inputs, self.sources)]
            program.check_unchanged(raws)
            args, kwargs = arguments(program.template, inputs)
            wanted = [inputs[i] for i in program.places]
            with at_levels(()):  # the call was in no batch, or it would not have been compiled; the pass may be in one
                describe(program.function(*args, **kwargs), outs)
            # A branch that Python does not take this time may be the only one through which a result depends on an argument.
            recorded = [o for o, requires in zip(outs, program.requires) if requires]
            pairs = [(o, seed) for o, seed in zip(recorded, seeds) if o.requires_grad]
            if not pairs:
                return [None] * len(wanted)
            roots, cotangents = zip(*pairs)
            return list(grad(roots, wanted, list(cotangents), create_graph=True, allow_unused=True))

    def held(self) -> list[Any]:
        return [] if self.packs else [*(self.arrays or ()), *(v for v in self.gradients or () if v is not None)]

    def release(self) -> None:
        self.arrays = self.gradients = None

    def released(self) -> bool:
        return self.arrays is None


def new_node(program: Any, cls: Any, arrays: list[Any], gradients: Any, flat: list[Any]) -> Any:
    """Make the node of one call from its raw arguments, the gradients computed with the value, and the Tensor arguments."""
    node: Any = CompiledNode.made_now()
    edges = [t._node for t in flat] if program.recording else [None] * len(flat)
    node.e = tuple([e for e in edges if e is not None])
    node.cls, node.program, node.arrays, node.gradients = cls, program, arrays, gradients
    node.sources = [t if e is None else e for t, e in zip(flat, edges)]
    node.packs = False
    node.n_outputs, node.slotted = len(program.requires), not program.scalar
    node.stream = (cls, cls.backend.current_stream(cls.device)) if cls.backend.capabilities.streams else None
    node.slots, node.metas = [None] * node.n_outputs, program.metas
    return node
