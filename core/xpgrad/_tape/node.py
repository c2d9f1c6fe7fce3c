"""The nodes of the recorded graph: what a result remembers about how it was computed.

Operations' own node classes are generated from their rows, a leaf's is in `leaf`; this module has their base, the hidden node of one output
among several, and nodes with any number of edges.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from xpgrad._aliasing.cells import next_number
from xpgrad._array.base import TensorBase
from xpgrad._tape.hook_tables import Hooks, RemovableHandle, add_hook, hooks_of


class Node:
    """One recorded operation (PyTorch's `torch.autograd.graph.Node`; ACC-31..33).

    The engine's fields: ``seq`` is the creation number, ``buffer`` the gradient of the output during a pass (None outside),
    ``owned`` whether this pass allocated that buffer, ``_alias`` where to see whether the output was overwritten, ``hooks``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = xp.sum(x * x)
    >>> isinstance(y.grad_fn, xp.autograd.graph.Node)
    True
    >>> y.grad_fn.name()
    'SumBackward1'
    >>> [(node.name(), k) for node, k in y.grad_fn.next_functions]
    [('MulBackward0', 0)]
    """

    __slots__ = ("__weakref__", "_alias", "_meta", "_metadata", "buffer", "hooks", "owned", "real", "seq")

    seq: float
    buffer: Any
    owned: bool
    hooks: Hooks | None
    _alias: Any
    _metadata: dict[str, Any]
    _meta: tuple[Any, ...]
    real: Node  # set in a shadow only: the node that it stands for

    title = "Node"
    n_outputs = 1
    slotted = False  # whether its outputs have hidden nodes of their own
    conjugates = False  # whether the engine conjugates around its formulas for a complex gradient
    backend: Any = None
    cls: Any = None  # the Tensor class of the output, where the node knows it
    saves = False  # whether it keeps arrays
    packs = False  # whether hooks were applied to some of them (see `packing`)
    records = False  # whether `graph_grads` is all there is to do when recording
    is_shadow = False  # whether `real` is set
    is_slot = False  # whether it stands for one of several outputs
    is_leaf = False  # whether it is a leaf's, which accumulates
    _is_end = False  # whether a graph ends here: at a leaf, and where it was cut
    _is_finished = False  # whether its gradients are known, up to a factor
    stream: Any = None  # where its work is queued: (Tensor class, stream), on backends with streams
    runs_undefined = False  # whether it runs when no gradient arrived (custom Functions)

    @classmethod
    def made_now(cls) -> Self:
        """A node of this class, as new as the latest write, with nothing in it yet."""
        node = object.__new__(cls)
        node.seq = next_number()
        node.buffer = node.hooks = node._alias = None
        return node

    # -- what PyTorch documents --------------------------------------------------------------------------------

    def name(self) -> str:
        """The node's name, e.g. ``"MulBackward0"``.

        Returns
        -------
        str
            The function's name with `Backward` and a number; `AccumulateGrad` for a leaf; a custom operation's name
            with `Backward`.

        See Also
        --------
        xpgrad.autograd.graph.Node
        """
        return self.title

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict of the user's own, which lives as long as the node.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor(1.0, requires_grad=True)
        >>> y = xp.exp(x)
        >>> y.grad_fn.metadata["layer"] = "first"
        >>> y.grad_fn.metadata
        {'layer': 'first'}
        """
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node that made each Tensor operand, with its output number; ``(None, 0)`` for a constant.

        See Also
        --------
        xpgrad.autograd.graph.Node
        """
        return tuple((None, 0) if e is None else (e.owner, e.output_nr) for e in self.operands())

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node ran; a tuple that it returns replaces grad_inputs (HOK-19).

        Parameters
        ----------
        fn : callable
            Gets two tuples of Tensor or None; returns None, or a tuple as long as the first.

        Returns
        -------
        RemovableHandle
            Its `remove` takes the hook away.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor(3.0, requires_grad=True)
        >>> y = x * 2.0
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: print(grad_inputs[0], grad_outputs[0]))
        >>> y.backward()
        tensor(2.) tensor(1.)
        >>> handle.remove()
        """
        return add_hook(hooks_of(self).post, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node runs; a tuple that it returns replaces grad_outputs (HOK-18).

        Parameters
        ----------
        fn : callable
            Gets a tuple of Tensor or None; returns None, or a tuple of the same length.

        Returns
        -------
        RemovableHandle
            Its `remove` takes the hook away.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor(3.0, requires_grad=True)
        >>> y = x * 2.0
        >>> handle = y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 10.0,))
        >>> y.backward()
        >>> x.grad
        tensor(20.)
        """
        return add_hook(hooks_of(self).pre, fn)

    def _sequence_nr(self) -> int:
        return int(self.seq)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    # -- what the engine asks ----------------------------------------------------------------------------------

    @property
    def original(self) -> Node:
        """The node that a shadow, or the node of an unpacked value, stands for; itself for any other."""
        return self.real if self.is_shadow else self

    @property
    def owner(self) -> Node:
        """The node that the user sees: itself, or the operation of which it is one output."""
        return self

    @property
    def output_nr(self) -> int:
        return 0

    def operands(self) -> tuple[Node | None, ...]:
        """One entry per Tensor operand: the edge to the node that made it, or None for a constant."""
        return ()

    def edges(self) -> tuple[Node, ...]:
        """The edges along which gradients flow."""
        return tuple(e for e in self.operands() if e is not None)

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        """Mark the nodes below with the pass's marker, once each, and hand them to `push`."""
        raise NotImplementedError

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        """Compute the gradients of the operands from the raw gradient `g` and add them into the edges' buffers."""
        raise NotImplementedError

    def grads(self, g: Any) -> list[Any]:
        """The raw gradients of the edges, in their order; None where undefined or not needed."""
        raise NotImplementedError

    def graph_grads(self, g: Any) -> list[Any]:
        """Like `grads`, on Tensors and recorded."""
        raise NotImplementedError

    def release(self) -> None:
        """Forget the saved values."""

    def released(self) -> bool:
        """Return whether a saved value was forgotten."""
        return False

    def held(self) -> list[Any]:
        """The raw arrays that it keeps for its gradients."""
        return []

    def undefined(self) -> None:
        """Called instead of `step` when no gradient arrived."""

    def meta(self) -> tuple[Any, ...] | None:
        """(shape, dtype, Tensor class) of the output, if it is known: a node learns it when the user first gets hold of it."""
        return getattr(self, "_meta", None)

    def array_replaced(self, array: Any) -> None:
        """Called when a write gave the Tensor of this node another array."""

    def hand_over_retained(self, new: Node) -> None:
        """Let another node of the same Tensor fill its retained `.grad` from now on."""
        mine, theirs = hooks_of(self), hooks_of(new)
        theirs.retain, theirs.retained = True, mine.retained
        mine.retain, mine.retained = False, None

    def shadow(self) -> Node:
        """A private copy for a pass that may not use this node's fields; its edges still lead to the originals."""
        copy: Node = object.__new__(type(self))
        for cls in type(self).__mro__[:-1]:
            for slot in cls.__dict__.get("__slots__", ()):
                if slot != "__weakref__":
                    try:
                        setattr(copy, slot, getattr(self, slot))
                    except AttributeError:
                        continue
        copy.buffer = None
        copy.real = self
        return copy

    def redirect(self, mapping: dict[Node, Node]) -> None:
        """Replace the edges of a shadow by their images."""
        raise NotImplementedError


class SlotNode(Node):
    """One output of an operation with several: collects that output's gradient and passes it on to the operation's node."""

    __slots__ = ("_owner", "k")

    is_slot = True
    _owner: Any
    k: int

    @property
    def owner(self) -> Node:
        owner: Node = self._owner
        return owner

    @property
    def output_nr(self) -> int:
        return self.k

    @property
    def stream(self) -> Any:
        return self._owner.stream

    def name(self) -> str:
        return self._owner.name()

    def operands(self) -> tuple[Node | None, ...]:
        return (self._owner,)

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        owner = self._owner
        if owner.buffer is not empty:
            owner.buffer = empty
            push(owner)

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        owner = self._owner
        if owner.buffer is empty:
            owner.buffer = [None] * owner.n_outputs
        if owner.buffer is not None:
            owner.buffer[self.k] = g

    def redirect(self, mapping: dict[Node, Node]) -> None:
        self._owner = mapping[self._owner]


class Unpacked(SlotNode):
    """The node of a value that a hook has unpacked: hands its gradient on to the node of the value that was packed.

    What a node saves is guarded by the version that its operand's node refers to, and this value has memory, and a version, of its own.
    """

    __slots__ = ()

    @property
    def original(self) -> Node:
        found: Node = self._owner.original
        return found

    @property
    def owner(self) -> Node:
        owner: Node = self._owner.owner
        return owner

    @property
    def output_nr(self) -> int:
        number: int = self._owner.output_nr
        return number

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        super().reach(empty, push)
        if self._owner.seq > self.seq:
            self._owner.seq = self.seq - 0.5

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        add_into_general(self._owner, g, empty)


class ListNode(Node):
    """A node with any number of edges, in a tuple: `reach` and `step` are interpreted."""

    __slots__ = ("e", "stream")

    e: tuple[Any, ...]  # None for a constant operand

    def operands(self) -> tuple[Node | None, ...]:
        return self.e

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        for e in self.e:
            if e is not None:
                if e.buffer is not empty:
                    e.buffer = empty
                    push(e)
                if e.seq > self.seq:
                    e.seq = self.seq - 0.5

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        for e, v in zip(self.edges(), self.grads(g)):
            add_into(e, v, empty)
        if not retain:
            self.release()

    def redirect(self, mapping: dict[Node, Node]) -> None:
        self.e = tuple(None if e is None else mapping[e] for e in self.e)


def slot_of(owner: Any, k: int) -> Any:
    """The hidden node of the k-th output of `owner` (recreated if nothing holds it), or `owner` itself if it has one output."""
    if owner.n_outputs == 1 and not owner.slotted:
        return owner
    slots = owner.slots
    node = slots[k]()
    if node is None:
        node = new_slot(owner, k)
    return node


def new_slot(owner: Any, k: int) -> SlotNode:
    """Make the hidden node of the k-th output; the owner holds it weakly, since it holds the owner."""
    node: SlotNode = object.__new__(SlotNode)
    node.seq = owner.seq + 0.25
    node.buffer = node.hooks = node._alias = None
    node._owner = owner
    node.k = k
    node._meta = owner.metas[k]
    owner.slots[k] = weakref.ref(node)
    return node


def walk(roots: list[Any]) -> Iterator[Any]:
    """All engine nodes reachable from `roots`, each once, without recursion."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        yield node
        for e in node.edges():
            if e not in seen:
                seen.add(e)
                stack.append(e)


def freed(node: Node) -> RuntimeError:
    """The error for a node whose saved values were forgotten (RET-01)."""
    msg = (
        f"Trying to backward through the graph a second time: the values that {node.name()} saved have been freed. Pass "
        "`retain_graph=True` to the first `backward()` or `grad()` if you need to differentiate through this graph again"
    )
    return RuntimeError(msg)


def record_outputs(node: Any, outs: tuple[Any, ...]) -> None:
    """Give each differentiable output of an operation with several its hidden node."""
    node.slots = [None] * len(outs)
    node.metas = [(o.shape, o.dtype, type(o)) for o in outs]
    for k, out in enumerate(outs):
        if k not in node.row.nondiff and out.dtype.differentiable:
            out._node = new_slot(node, k)


def backend_of(node: Any) -> Any:
    """The backend of a node's output."""
    owner = node.owner
    return owner.backend or owner.cls.backend


def sum_for(e: Any, a: Any, b: Any) -> Any:
    """The sum of two raw gradients of an edge, in new memory."""
    backend = backend_of(e)
    return a + b if backend.raw_operators else backend.kernels.add(a, b)


def add_into(e: Any, v: Any, empty: Any, owned: bool = False) -> None:
    """Add a gradient into an edge's buffer, if the pass needs it; nobody else holds one that is `owned`."""
    b = e.buffer
    if b is None or v is None:
        return
    if b is empty:
        e.buffer = v
        e.owned = owned
    elif e.owned and backend_of(e).raw_operators:
        b += v
        e.buffer = b
    else:
        e.buffer = sum_for(e, b, v)
        e.owned = True


def add_into_general(e: Any, v: Any, empty: Any) -> None:
    """`add_into` for raw gradients and Tensors alike; neither is added in place."""
    b = e.buffer
    if b is None or v is None:
        return
    e.owned = False
    e.buffer = v if b is empty else b + v if isinstance(v, TensorBase) else sum_for(e, b, v)
