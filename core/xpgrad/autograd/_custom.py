"""Implement custom Functions: their `ctx`, their graph node, and the checks of the gradients that `backward` returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import alias_of
from xpgrad._modes import state
from xpgrad._rows.namespace import operations
from xpgrad._tape.inspection import ALREADY_SET, FREED, NOTHING_SAVED
from xpgrad._tape.node import ListNode, Node, freed_error, slot_of
from xpgrad._tape.packing import SavedHooks, check_hooks
from xpgrad._tape.saved import check_saveable, check_version, unpack, with_history
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.creation import zeros


class Saved:
    """A value of `save_for_backward`, stored as a raw array with what restores its history: a node must not keep its own output alive."""

    __slots__ = ("alias", "cls", "edge", "k", "packed", "raw", "tensor")

    def __init__(self, tensor: Any, k: int | None) -> None:
        alias, node = tensor._alias, tensor._node
        if alias is not None:
            check_saveable(tensor)
        elif k is None and node is None:
            alias = alias_of(tensor)
        self.alias = alias  # None if the node of the value will know when the memory gets a counter of writes
        self.raw: Any = tensor.backend.own(tensor)
        self.cls = tensor.__class__
        self.k = k
        self.edge = None if k is not None else node
        self.tensor: Any = None if k is not None else weakref.ref(tensor)
        self.packed: Any = None

    def pack(self, hooks: SavedHooks, tensor: Any) -> None:
        """Pass the value to pack hooks, and store what they return instead of it."""
        self.packed = hooks.pack_tensor(tensor, output=self.k is not None)
        self.raw = self.tensor = None

    def _unpack(self, node: Any) -> Any:
        edge = self.edge
        if self.k is not None and node.metas[self.k] is not None and self.k not in node.constant:
            edge = slot_of(node, self.k)
        return self.packed.restore(self.packed.tensor(), edge)

    def read(self, node: Any) -> Any:
        """Return the saved Tensor.

        A packed value is unpacked by its hook. Otherwise its version is checked, and the result is the input itself if that is still
        alive and unchanged, or else a new Tensor.
        """
        if self.packed is not None:
            return self._unpack(node)
        k: Any = self.k
        edge: Any = self.edge
        alias = self.alias or (edge if k is None else node)._alias
        if alias is not None and alias.cell is not None and alias.cell.last_write > node.seq:
            check_version(node, f"a Tensor of shape {tuple(self.raw.shape)}", alias)
        backend = self.cls.backend
        if k is None:
            found = self.tensor()
            if found is not None and found._node is edge and found._array is self.raw:
                return found
            found = backend.wrap(self.raw) if edge is None else unpack(backend, self.raw, edge)
        elif node.metas[k] is None or k in node.constant:
            found = backend.wrap(self.raw)
        else:
            edge = slot_of(node, k) if node.slotted else node
            found = with_history(backend, self.raw, edge)
        if self.alias is not None and (edge is None or not edge.is_leaf):
            found._alias = self.alias
        return found


class RawSaved:
    """An entry of `save_for_backward` on which hooks can be set before it is read."""

    __slots__ = ("_k", "_node")

    def __init__(self, node: Any, k: int) -> None:
        self._node = node
        self._k = k

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any], /) -> None:
        """Pack the value now, and unpack it at each later use.

        Raises
        ------
        RuntimeError
            Hooks are set already, the value was freed, or the entry is None.
        """
        hooks, entries = check_hooks(pack_hook, unpack_hook), self._node.ctx._saved
        if not entries:
            raise RuntimeError(FREED)
        saved = entries[self._k]
        if saved is None:
            raise RuntimeError(NOTHING_SAVED)
        if saved.packed is not None:
            raise RuntimeError(ALREADY_SET)
        saved.pack(hooks, saved.read(self._node).detach())


class FunctionCtx:
    """The `ctx` of one call of a custom Function, which carries values from `forward` to `backward`; it takes any attribute.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        Whether each argument of ``apply`` needs a gradient.
    saved_tensors : tuple of Tensor or None
        The Tensors that `save_for_backward` was given.

    Examples
    --------
    >>> import xpgrad as xp
    >>> class Cube(xp.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         assert isinstance(ctx, xp.autograd.function.FunctionCtx)
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g if ctx.needs_input_grad[0] else None
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    needs_input_grad: tuple[bool, ...] = ()
    _materialize = True
    _to_save: tuple[Any, ...] = ()
    _saved: tuple[Any, ...] | None = ()
    _cleared = False
    _nondiff: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _node: Callable[[], Any] = staticmethod(lambda: None)
    _forward = False  # whether `jvp` is running: then `saved_tensors` are those of `save_for_forward`
    saved_for_forward: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Save Tensors for `backward`, which raises if they were overwritten in the meantime. A later call replaces an earlier one.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs or outputs of the forward, and intermediate results.

        Raises
        ------
        TypeError
            An argument is neither a Tensor nor None.

        See Also
        --------
        xpgrad.autograd.function.FunctionCtx
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                msg = (
                    f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}; "
                    "store other values as attributes of `ctx`"
                )
                raise TypeError(msg)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save Tensors for `jvp`. A later call replaces an earlier one.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs or outputs of the forward.

        Raises
        ------
        AssertionError
            An argument is neither a Tensor nor None.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.autograd import forward_ad
        >>> class Cube(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         print(x is ctx.saved_for_forward[0])
        ...         return 3 * x * x * t
        >>> with forward_ad.dual_level():
        ...     y = Cube.apply(forward_ad.make_dual(xp.tensor(2.0), xp.tensor(1.0)))
        ...     print(forward_ad.unpack_dual(y).tangent)
        True
        tensor(12.)
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                msg = (
                    f"save_for_forward expects all arguments to be tensors, but argument {i} is of type {type(t).__name__}; store other "
                    "values as attributes of `ctx`"
                )
                raise AssertionError(msg)
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved Tensors with their history; inside `jvp`, those of `save_for_forward`.

        Raises
        ------
        RuntimeError
            They were freed by an earlier backward pass, they were overwritten, or the Function sets `clear_saved_tensors_on_access` and
            they were read before.

        See Also
        --------
        xpgrad.autograd.function.FunctionCtx
        """
        if self._forward:
            return self.saved_for_forward
        node = self._node()
        if node is None:
            return self._to_save
        if self._saved is None:
            raise freed_error(node)
        if self._cleared:
            msg = (
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True; keep what it gives in a variable, and "
                "run backward once"
            )
            raise RuntimeError(msg)
        found = tuple([None if s is None else s.read(node) for s in self._saved])
        if node.function.clear_saved_tensors_on_access:
            self._saved, self._cleared = (), True
        return found

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs that do not require grad; `backward` gets zeros for them.

        Parameters
        ----------
        *args : Tensor
            Inputs or outputs of the running forward.

        Raises
        ------
        RuntimeError
            For anything but a Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Sort(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         order = xp.argsort(x)
        ...         ctx.mark_non_differentiable(order)
        ...         ctx.order = order
        ...         return xp.take(x, order), order
        ...     @staticmethod
        ...     def backward(ctx, g, _):
        ...         return xp.take(g, xp.argsort(ctx.order))
        >>> x = xp.tensor([3.0, 1.0, 2.0], requires_grad=True)
        >>> y, order = Sort.apply(x)
        >>> order.requires_grad
        False
        >>> (y * xp.tensor([1.0, 10.0, 100.0])).sum().backward()
        >>> x.grad
        tensor([100.,   1.,  10.])
        """
        self._nondiff = _only_tensors("mark_non_differentiable", args)

    def mark_dirty(self, *args: Any) -> None:
        """Declare inputs that `forward` overwrote; it must return each of them.

        Parameters
        ----------
        *args : Tensor
            Inputs or outputs of the running forward.

        Raises
        ------
        RuntimeError
            For anything but a Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Double(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         x.mul_(2.0)
        ...         ctx.mark_dirty(x)
        ...         return x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return 2.0 * g
        >>> a = xp.tensor([1.0, 2.0], requires_grad=True)
        >>> b = a * 1.0
        >>> c = Double.apply(b)
        >>> c is b, c
        (True, tensor([2., 4.], grad_fn=<DoubleBackward>))
        >>> c.sum().backward()
        >>> a.grad
        tensor([2., 2.])
        """
        self._dirty = _only_tensors("mark_dirty", args)

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` gets zeros (the default) or None for an output that has no gradient.

        Parameters
        ----------
        value : bool
            True for zeros, False for None.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Both(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.set_materialize_grads(False)
        ...         return x * 2.0, x * 3.0
        ...     @staticmethod
        ...     def backward(ctx, g, h):
        ...         print(g, h)
        ...         return 2.0 * g
        >>> x = xp.tensor(1.0, requires_grad=True)
        >>> Both.apply(x)[0].backward()
        tensor(1.) None
        """
        self._materialize = value


def _only_tensors(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    for i, a in enumerate(args):
        if not isinstance(a, Tensor):
            msg = f"{name} only accepts variable arguments, but argument {i} is of type {type(a).__name__}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    return args


class FunctionNode(ListNode):
    """The graph node of one call of a `Function`; each `Function` has a subclass, which carries its name."""

    __slots__ = ("cls", "constant", "ctx", "inputs", "metas", "n_outputs", "places", "slots", "slotted")

    function: Any = None
    runs_undefined = True

    cls: Any
    constant: frozenset[int]  # the outputs that do not require grad
    ctx: FunctionCtx
    inputs: tuple[Any, ...]  # (shape, dtype, class) of the operand, by edge
    metas: list[Any]  # (shape, dtype, class), by output
    places: tuple[int | None, ...]  # per argument of `apply`: -1 if it is not a Tensor, None for a constant, else its edge's number
    slots: list[Any]
    slotted: bool  # whether there are several outputs

    def __getattr__(self, name: str) -> Any:
        # `y.grad_fn.anything` reads what the user stored on `ctx`, as in PyTorch, where the two are one object.
        if name.startswith("__") or name in (*Node.__slots__, *ListNode.__slots__, *FunctionNode.__slots__):
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def operands(self) -> tuple[Node | None, ...]:
        return tuple(None if p is None else self.e[p] for p in self.places if p != -1)

    def edges(self) -> tuple[Node, ...]:
        return self.e

    def held(self) -> list[Any]:
        return [s.raw for s in self.ctx._saved or () if s is not None and s.packed is None]

    @property
    def _raw_saved_tensors(self) -> tuple[RawSaved, ...]:
        """Entries of `saved_tensors` on which hooks can be set (SAV-12)."""
        if self.ctx._saved is None:
            raise freed_error(self)
        return tuple(RawSaved(self, k) for k in range(len(self.ctx._saved)))

    def grads(self, g: Any) -> list[Any]:
        given: Any = g
        if g is not None:
            metas = self.metas
            given = [None if v is None else m[2].backend.wrap(v) for v, m in zip(g, metas)] if self.slotted else metas[0][2].backend.wrap(g)
        return [None if v is None else v._array for v in self.graph_grads(given)]

    def graph_grads(self, g: Any) -> list[Any]:
        ctx = self.real.ctx if self.is_shadow else self.ctx  # type: ignore[attr-defined]  # that of a node of this class
        if not self.slotted:
            given = [_zeros(self.metas[0]) if g is None and ctx._materialize else g]
        else:
            given = [None] * self.n_outputs if g is None else list(g)
            if ctx._materialize:
                given = [_zeros(m) if v is None and m is not None else v for v, m in zip(given, self.metas)]
        function = self.function
        backward = function.user_backward()
        mode = state.current()
        try:
            returned = backward(ctx, given) if function.boxed_grads_call else backward(ctx, *given)
        finally:
            if state.current() is not mode:  # leave any mode that the user's backward entered
                state.put(mode)
        return _check_returned(self, returned if isinstance(returned, tuple) else (returned,))

    def release(self) -> None:
        ctx = self.ctx
        ctx._saved = None
        ctx._to_save = ()


def _zeros(meta: Any) -> Any:
    shape, dtype, cls = meta
    return zeros(shape, dtype=dtype, device=cls.device)


def _check_returned(node: Any, returned: tuple[Any, ...]) -> list[Any]:
    """Check the gradients that `backward` returned, and return one gradient or None per edge."""
    places = node.places
    expected = len(places)
    if len(returned) != expected and (len(returned) < expected or any(r is not None for r in returned[expected:])):
        msg = (
            f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(returned)}); return one per "
            "argument of `forward` after `ctx`, None for those that are not Tensors"
        )
        raise RuntimeError(msg)
    out: list[Any] = [None] * len(node.e)
    for i, place in enumerate(places):
        v = returned[i]
        if v is None:
            continue
        if place == -1:
            msg = (
                f"function {node.name()} returned a gradient different than None at position {i + 1}, but the corresponding forward input "
                "was not a Variable; return None there"
            )
            raise RuntimeError(msg)
        if not isinstance(v, Tensor):
            msg = f"expected Variable or None (got {type(v).__name__}) as gradient {i} of {node.name()}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
        if place is not None:
            shape, dtype, cls = node.inputs[place]
            if v.__class__ is not cls or v.shape != shape or v.dtype is not dtype:
                leaf: Any = node.e[place].original
                v = _fit(node.name(), place, v, shape, dtype, cls, free=leaf.is_leaf and leaf.grad_dtype is None)
            out[place] = v
    return out


def _fit(name: str, i: int, v: Any, shape: tuple[int, ...], dtype: Any, cls: Any, *, free: bool) -> Any:
    """Convert a gradient to the shape, dtype and device of its input (FUN-09, FUN-10); if `free`, its dtype may differ (ACC-25)."""
    if v.shape != shape:
        padded = (1,) * (v.ndim - len(shape)) + shape
        if len(padded) != v.ndim or any(w not in (1, n) for n, w in zip(v.shape, padded)):
            msg = (
                f"Function {name} returned an invalid gradient at index {i} - got {list(v.shape)} but expected shape compatible with "
                f"{list(shape)}"
            )
            raise RuntimeError(msg)
        v = operations.sum_to(v, shape)
    if v.dtype is not dtype:
        if v.dtype.is_complex and not dtype.is_complex:
            msg = (
                f"Function {name} returned an invalid gradient at index {i} - got {v.dtype}, but the input is {dtype}: the gradient "
                "of a real input is real; return `xpgrad.real(...)` of it"
            )
            raise RuntimeError(msg)
        if not free:
            v = v._cast(dtype)
    if v.device != cls.device:
        if v.ndim:
            msg = f"Function {name} returned an invalid gradient at index {i} - expected device {cls.device} but got {v.device}"
            raise RuntimeError(msg)
        v = v.to_device(cls.device)
    return v
