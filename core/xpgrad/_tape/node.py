"""The nodes of the recorded graph: how each result was computed.

Node classes of operations are generated from their rows and that of a leaf is in `leaf`. This module has their base class, the hidden
node of one output among several, and nodes with any number of edges.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from xpgrad._aliasing.cells import next_number
from xpgrad._array.base import TensorBase
from xpgrad._tape import hook_tables
from xpgrad._tape.hook_tables import Hooks, RemovableHandle, add_hook, hooks_of


class Node:
    """A recorded operation, as PyTorch's `torch.autograd.graph.Node`.

    The engine's fields: ``seq`` is the creation number; ``buffer`` is the gradient of the output during a pass, None outside of one;
    ``owned`` says whether this pass allocated that buffer; ``_alias`` is the cell or alias that shows whether the output was overwritten;
    ``hooks``.

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
    slotted = False  # whether each of its outputs has a hidden node
    conjugates = False  # whether the engine conjugates a complex gradient before and after its formulas
    backend: Any = None
    cls: Any = None  # the Tensor class of the output, if the node knows it
    saves = False  # whether it saves arrays
    packs = False  # whether hooks packed some of them (see `packing`)
    records = False  # whether a recorded pass needs nothing but `graph_grads`
    is_shadow = False  # whether `real` is set
    is_slot = False  # whether it stands for one of several outputs
    is_leaf = False  # whether it is the node of a leaf, which accumulates
    _is_end = False  # whether the graph ends here: at a leaf or a cut
    _is_finished = False  # whether its gradients are precomputed, up to a factor
    stream: Any = None  # where its work is queued: (Tensor class, stream), on backends with streams
    runs_undefined = False  # whether it runs when no gradient arrived (custom Functions)

    @classmethod
    def made_now(cls) -> Self:
        """Return an empty node of this class with a new creation number."""
        node = object.__new__(cls)
        node.seq = next_number()
        node.buffer = node.hooks = node._alias = None
        return node

    # -- what PyTorch documents --------------------------------------------------------------------------------

    def name(self) -> str:
        """Return the node's name, such as ``"MulBackward0"``.

        Returns
        -------
        str
            The function's name followed by `Backward` and a number; `AccumulateGrad` for a leaf; the name of a custom
            operation followed by `Backward`.

        See Also
        --------
        xpgrad.autograd.graph.Node
        """
        return self.title

    @property
    def metadata(self) -> dict[str, Any]:
        """Dict for the user's own data; lives as long as the node.

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
            with hook_tables.LOCK:
                if not hasattr(self, "_metadata"):
                    self._metadata = {}
            return self._metadata

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node of each Tensor operand and its output number; ``(None, 0)`` for a constant.

        See Also
        --------
        xpgrad.autograd.graph.Node
        """
        return tuple((None, 0) if e is None else (e.owner, e.output_nr) for e in self.operands())

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node has run; a returned tuple replaces grad_inputs.

        Parameters
        ----------
        fn : callable
            Gets two tuples of Tensor or None; returns None, or a tuple as long as the first.

        Returns
        -------
        RemovableHandle
            Call its `remove` to remove the hook.

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
        """Call ``fn(grad_outputs)`` before this node runs; a returned tuple replaces grad_outputs.

        Parameters
        ----------
        fn : callable
            Gets a tuple of Tensor or None; returns None, or a tuple of the same length.

        Returns
        -------
        RemovableHandle
            Call its `remove` to remove the hook.

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
        """The node that a shadow, or the node of an unpacked value, stands for; the node itself otherwise."""
        return self.real if self.is_shadow else self

    @property
    def owner(self) -> Node:
        """The node that users see: the operation that a hidden output node belongs to, or the node itself."""
        return self

    @property
    def output_nr(self) -> int:
        return 0

    def operands(self) -> tuple[Node | None, ...]:
        """Return one entry per Tensor operand: the edge to its node, or None for a constant."""
        return ()

    def edges(self) -> tuple[Node, ...]:
        """Return the edges along which gradients flow."""
        return tuple(e for e in self.operands() if e is not None)

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        """Mark the nodes of the operands with `empty`, and call `push` with each that was not marked before."""
        raise NotImplementedError

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        """Compute the gradients of the operands from the raw gradient `g` and add them to the edges' buffers.

        Parameters
        ----------
        g : raw array, or list of them for several outputs
        empty : object
            Marker that the buffer of a node in the pass contains until a gradient arrives.
        retain : bool
            Keep the saved values.
        """
        raise NotImplementedError

    def grads(self, g: Any) -> list[Any]:
        """Return the raw gradients of the edges, in order; None if undefined or not needed."""
        raise NotImplementedError

    def graph_grads(self, g: Any) -> list[Any]:
        """Return the gradients of the edges as Tensors, with the formulas recorded; see `grads`."""
        raise NotImplementedError

    def release(self) -> None:
        """Free the saved values."""

    def released(self) -> bool:
        """Return whether the saved values were freed."""
        return False

    def held(self) -> list[Any]:
        """Return the raw arrays that the node saved for its gradients."""
        return []

    def undefined(self) -> None:
        """Do what is left to do for a node that no gradient reached; called instead of `step`."""

    def meta(self) -> tuple[Any, ...] | None:
        """Return (shape, dtype, Tensor class) of the output; None until the user has obtained the node."""
        return getattr(self, "_meta", None)

    def array_replaced(self, array: Any) -> None:
        """Respond to a write that replaced the array of the node's Tensor: a leaf records the new one, other nodes do nothing."""

    def hand_over_retained(self, new: Node) -> None:
        """Transfer the retained `.grad` to `new`, another node of the same Tensor."""
        mine, theirs = hooks_of(self), hooks_of(new)
        theirs.retain, theirs.retained = True, mine.retained
        mine.retain, mine.retained = False, None

    def shadow(self) -> Node:
        """Return a private copy for a pass that may not use this node's fields; its edges still lead to the originals."""
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
        """Replace the edges of a shadow by their copies in `mapping`."""
        raise NotImplementedError


class SlotNode(Node):
    """The hidden node of one output of several: collects its gradient and passes it to the operation's node."""

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
    """The node of a value that an unpack hook returned: passes its gradient to the node of the packed value.

    The unpacked value has memory and a version counter different from those of the packed value, and nodes check saved values by the
    version counter of their operand's node.
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
    """A node whose edges are a tuple of any length; its methods are not generated."""

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
    """Return the hidden node of the k-th output of `owner` (created if necessary), or `owner` if it has a single output."""
    if owner.n_outputs == 1 and not owner.slotted:
        return owner
    slots = owner.slots
    node = slots[k]()
    if node is None:
        node = make_slot(owner, k)
    return node


def make_slot(owner: Any, k: int) -> SlotNode:
    """Create the hidden node of the k-th output; the owner refers to it weakly, because it refers to the owner."""
    node: SlotNode = object.__new__(SlotNode)
    node.seq = owner.seq + 0.25
    node.buffer = node.hooks = node._alias = None
    node._owner = owner
    node.k = k
    node._meta = owner.metas[k]
    owner.slots[k] = weakref.ref(node)
    return node


def walk(roots: list[Any]) -> Iterator[Any]:
    """Yield every engine node reachable from `roots`, each once, without recursion."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        yield node
        for e in node.edges():
            if e not in seen:
                seen.add(e)
                stack.append(e)


def freed_error(node: Node) -> RuntimeError:
    """Return the error for a node whose saved values were freed (RET-01)."""
    msg = (
        f"Trying to backward through the graph a second time: the values that {node.name()} saved have been freed. Pass "
        "`retain_graph=True` to the first `backward()` or `grad()` if you need to differentiate through this graph again"
    )
    return RuntimeError(msg)


def record_outputs(node: Any, outs: tuple[Any, ...]) -> None:
    """Give each differentiable output of an operation with several outputs its hidden node."""
    node.slots = [None] * len(outs)
    node.metas = [(o.shape, o.dtype, type(o)) for o in outs]
    for k, out in enumerate(outs):
        if k not in node.row.nondiff and out.dtype.differentiable:
            out._node = make_slot(node, k)


def backend_of(node: Any) -> Any:
    """Return the backend of a node's output."""
    owner = node.owner
    return owner.backend or owner.cls.backend


def add_grads(e: Any, a: Any, b: Any) -> Any:
    """Return the sum of two raw gradients of an edge, in new memory."""
    backend = backend_of(e)
    return a + b if backend.raw_operators else backend.kernels.add(a, b)


def add_into(e: Any, v: Any, empty: Any, owned: bool = False) -> None:
    """Add a gradient to an edge's buffer if the pass needs it; `owned` says that nobody else refers to its memory."""
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
        e.buffer = add_grads(e, b, v)
        e.owned = True


def add_into_general(e: Any, v: Any, empty: Any) -> None:
    """Add a raw gradient or a Tensor to an edge's buffer; never in place."""
    b = e.buffer
    if b is None or v is None:
        return
    e.owned = False
    e.buffer = v if b is empty else b + v if isinstance(v, TensorBase) else add_grads(e, b, v)
