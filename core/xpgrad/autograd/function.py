"""`xpgrad.autograd.function`: operations whose forward and backward the user writes (`torch.autograd.Function`; group L).

A custom operation is one node of the graph like any other: its outputs have hidden nodes that collect their gradients, and its
``backward`` runs on Tensors, recorded exactly when the pass records.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from typing import Any, Callable

from xpgrad import _modes
from xpgrad._alias import Alias, alias_of, give_alias, next_number
from xpgrad._node import AccumulateGrad, Node, new_slot, slot_of
from xpgrad._row import tensor_namespace
from xpgrad._specialise import add_into, check_saveable, check_version, freed, unpack
from xpgrad._tensor import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class _Saved:
    """One value of `save_for_backward`: raw, with what restores its history, so that no output is held by its own node."""

    __slots__ = ("alias", "cls", "edge", "k", "raw", "tensor")

    def __init__(self, tensor: Any, k: int | None) -> None:
        if tensor._alias is not None:
            check_saveable(tensor)
        self.alias = alias_of(tensor)
        self.raw = tensor.backend.own(tensor)
        self.cls = type(tensor)
        self.k = k
        self.edge = None if k is not None else tensor._node
        self.tensor: Any = None if k is not None else weakref.ref(tensor)

    def read(self, node: Any) -> Any:
        """The Tensor, checked for overwriting; inputs come back as the same object where it still lives."""
        check_version(node, f"a Tensor of shape {tuple(self.raw.shape)}", self.alias)
        found = None if self.tensor is None else self.tensor()
        if found is not None and found._node is self.edge and found._array is self.raw:
            return found
        backend = self.cls.backend
        edge = self.edge
        if self.k is not None and node.metas[self.k] is not None and self.k not in node.constant:
            edge = slot_of(node, self.k)
        found = backend.wrap(self.raw) if edge is None else unpack(backend, self.raw, edge)
        if edge is None or edge.__class__ is not AccumulateGrad:
            found._alias = self.alias
        return found


class FunctionCtx:
    """What connects the forward of a custom operation with its backward; anything may be stored on it.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        One per argument of ``apply`` (FUN-12): whether its gradient is of use.
    saved_tensors : tuple of Tensor or None
        What `save_for_backward` was given.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _materialize = True
    _to_save: tuple[Any, ...] = ()
    _saved: tuple[Any, ...] | None = ()
    _nondiff: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _node: Callable[[], Any] = staticmethod(lambda: None)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep Tensors (inputs or outputs) for the backward, checked there for overwriting; the last call counts (FUN-13).

        Raises
        ------
        TypeError
            For anything but a Tensor or None.
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
        """Keep Tensors for `jvp`."""
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved Tensors, with their history.

        Raises
        ------
        RuntimeError
            If they have been freed (RET-01) or overwritten (MUT-03).
        """
        node = self._node()
        if node is None:
            return self._to_save
        if self._saved is None:
            raise freed(node)
        return tuple(None if s is None else s.read(node) for s in self._saved)

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs that do not require grad; their slot of the backward gets zeros (FUN-18)."""
        self._nondiff = _only_tensors("mark_non_differentiable", args)

    def mark_dirty(self, *args: Any) -> None:
        """Declare inputs that the forward overwrote; each must be returned (FUN-20)."""
        self._dirty = _only_tensors("mark_dirty", args)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined gradients of outputs arrive as zeros (the default) or as None (FUN-17)."""
        self._materialize = value


def _only_tensors(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    for i, a in enumerate(args):
        if not isinstance(a, Tensor):
            msg = f"{name} only accepts variable arguments, but argument {i} is of type {type(a).__name__}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    return args


class FunctionNode(Node):
    """The node of one application of a `Function`; a class per `Function` carries its name."""

    __slots__ = ("cls", "constant", "ctx", "e", "inputs", "metas", "n_outputs", "places", "slots")

    function: Any = None
    slotted = True
    runs_undefined = True

    cls: Any
    constant: frozenset[int]  # the outputs that do not require grad
    ctx: FunctionCtx
    e: tuple[Node, ...]
    inputs: tuple[Any, ...]  # (shape, dtype, class) of the operand of each edge
    metas: list[Any]  # the same of each output
    places: tuple[int | None, ...]  # per argument of `apply`: -1 for what is no Tensor, None for a constant, else its edge's number
    slots: list[Any]

    def __getattr__(self, name: str) -> Any:
        # `y.grad_fn.anything` reads what the user stored on `ctx`, as in PyTorch, where the two are one object.
        if name.startswith("__") or name in Node.__slots__ or name in FunctionNode.__slots__:
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def operands(self) -> tuple[Node | None, ...]:
        return tuple(None if p is None else self.e[p] for p in self.places if p != -1)

    def edges(self) -> tuple[Node, ...]:
        return self.e

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        for e in self.e:
            if e.buffer is not empty:
                e.buffer = empty
                push(e)
            if e.seq > self.seq:
                e.seq = self.seq - 0.5

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        for e, v in zip(self.e, self.grads(g)):
            add_into(e, v, empty)
        if not retain:
            self.release()

    def grads(self, g: Any) -> list[Any]:
        wrapped = [
            None if v is None else m[2].backend.wrap(v) for v, m in zip(g or [None] * self.n_outputs, self.metas)
        ]
        return [None if v is None else v._array for v in self.graph_grads(wrapped)]

    def graph_grads(self, g: Any) -> list[Any]:
        real = getattr(self, "real", self)
        if g is None:
            g = [None] * self.n_outputs
        if self.ctx._materialize:
            g = [_zeros(m) if v is None and m is not None else v for v, m in zip(g, self.metas)]
        returned = _backward_of(self.function)(real.ctx, *g)
        return _fitted(self, returned if isinstance(returned, tuple) else (returned,))

    def redirect(self, mapping: dict[Node, Node]) -> None:
        self.e = tuple(mapping[e] for e in self.e)

    def release(self) -> None:
        ctx = self.ctx
        ctx._saved = None
        ctx._to_save = ()


def _zeros(meta: Any) -> Any:
    from xpgrad.rules.creation import zeros

    shape, dtype, cls = meta
    return zeros(shape, dtype=dtype, device=cls.device)


def _backward_of(function: Any) -> Any:
    """The user's `backward`, or its other name `vjp` (FUN-04)."""
    own_backward, own_vjp = function.backward is not Function.backward, function.vjp is not Function.vjp
    if own_backward and own_vjp:
        msg = (
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them: "
            f"remove one from {function.__name__}"
        )
        raise RuntimeError(msg)
    return function.vjp if own_vjp else function.backward


def _fitted(node: Any, returned: tuple[Any, ...]) -> list[Any]:
    """What `backward` returned as one checked gradient per edge."""
    places, name = node.places, node.name()
    expected = len(places)
    if len(returned) < expected or any(r is not None for r in returned[expected:]):
        msg = (
            f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(returned)}); return one per "
            "argument of `forward` after `ctx`, None for those that are no Tensors"
        )
        raise RuntimeError(msg)
    out: list[Any] = [None] * len(node.e)
    for i, (place, v) in enumerate(zip(places, returned)):
        if v is None:
            continue
        if place == -1:
            msg = (
                f"function {name} returned a gradient different than None at position {i + 1}, but the corresponding forward input "
                "was not a Variable; return None there"
            )
            raise RuntimeError(msg)
        if not isinstance(v, Tensor):
            msg = f"expected Variable or None (got {type(v).__name__}) as gradient {i} of {name}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
        if place is not None:
            out[place] = _fit(name, place, v, *node.inputs[place])
    return out


def _fit(name: str, i: int, v: Any, shape: tuple[int, ...], dtype: Any, cls: Any) -> Any:
    """A returned gradient in the shape, dtype and device of its input (FUN-09, FUN-10)."""
    if v.shape != shape:
        padded = (1,) * (v.ndim - len(shape)) + shape
        if len(padded) != v.ndim or any(w not in (1, n) for n, w in zip(v.shape, padded)):
            msg = (
                f"Function {name} returned an invalid gradient at index {i} - got {list(v.shape)} but expected shape compatible with "
                f"{list(shape)}"
            )
            raise RuntimeError(msg)
        v = tensor_namespace.sum_to(v, shape)
    if v.dtype is not dtype:
        if v.dtype.is_complex and not dtype.is_complex:
            msg = (
                f"Function {name} returned an invalid gradient at index {i} - got {v.dtype}, but the input is {dtype}: the gradient "
                "of a real input is real; return `xpgrad.real(...)` of it"
            )
            raise RuntimeError(msg)
        v = v._cast(dtype)
    if v.device != cls.device:
        if v.ndim:
            msg = f"Function {name} returned an invalid gradient at index {i} - expected device {cls.device} but got {v.device}"
            raise RuntimeError(msg)
        v = v.to_device(cls.device)
    return v


class Function:
    """Base of custom operations: subclass it with static `forward` and `backward`, and call ``apply`` (NE; group L).

    >>> import xpgrad as xp
    >>> class Cube(xp.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * g
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> float(x.grad.array)
    12.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
            f"class itself: `{type(self).__name__}.apply(...)`",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        msg = (
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
            f"forward method: `{type(self).__name__}.apply(...)`"
        )
        raise RuntimeError(msg)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` together with `setup_context`. Not recorded."""
        msg = "You must implement the forward function for custom autograd.Function."
        raise NotImplementedError(msg)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill `ctx` after a `forward` that does not take it (FUN-26)."""
        msg = "setup_context is not implemented."
        raise NotImplementedError(msg)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute one gradient per argument of `forward` from one per output; None where there is none."""
        msg = (
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )
        raise NotImplementedError(msg)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of `backward`: implement one of them (FUN-04)."""
        return Function.backward(ctx, *grad_outputs)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it as one node.

        Returns
        -------
        What `forward` returned: one Tensor or a tuple, whose floating and complex Tensors require grad if an argument does.

        Raises
        ------
        RuntimeError, TypeError
            For wrong use of `ctx` (FUN-13, FUN-20).
        """
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        else:
            args, kwargs = (*args, *kwargs.values()), kwargs
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        mode = _modes.current()
        recording = (mode is None or mode.recording) and any(ctx.needs_input_grad)
        token = _modes.enter(_modes.replaced(recording=False) if mode is None or mode.recording else mode)
        try:
            if separate:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            elif kwargs:
                positional = len(args) - len(kwargs)
                result = cls.forward(ctx, *args[:positional], **kwargs)
            else:
                result = cls.forward(ctx, *args)
        finally:
            _modes.leave(token)
        several = isinstance(result, tuple)
        outs = _record(cls, ctx, args, result if several else (result,), recording, separate)
        if recording and mode is not None and mode.anomaly:
            for o in outs:
                if isinstance(o, Tensor) and o._node is not None:
                    mode.finish(o)
        return outs if several else outs[0]


def _alias_like(x: Any) -> Any:
    """A Tensor of the same memory, without history, as a view of `x`."""
    out = x._alike(x.backend.own(x))
    if x.is_inference():
        out._alias = x._alias
    else:
        alias_of(x).cell.views.append(weakref.ref(out))
        out._alias = Alias(x._alias.cell, x)
    return out


def _has(items: tuple[Any, ...], x: Any) -> bool:
    return any(x is item for item in items)


def _record(cls: Any, ctx: Any, args: tuple[Any, ...], results: tuple[Any, ...], recording: bool, separate: bool) -> tuple[Any, ...]:
    """Make the node, and of what `forward` returned the outputs of it."""
    dirty, nondiff = ctx._dirty, ctx._nondiff
    for x in dirty:
        if not _has(results, x):
            msg = (
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
            raise RuntimeError(msg)
        if recording and x._node is not None and x._node.__class__ is AccumulateGrad:
            msg = "a leaf Variable that requires grad has been used in an in-place operation."
            raise RuntimeError(msg)
        if recording and x._is_view():
            msg = "mark_dirty of a view is not implemented; mark its base, or return a new Tensor"
            raise NotImplementedError(msg)
    if separate and any(_has(args, t) and _has(results, t) and not _has(dirty, t) for t in ctx._to_save if t is not None):
        msg = (
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
            "setup_context. Save the output instead"
        )
        raise RuntimeError(msg)
    edges = [a._node if isinstance(a, Tensor) and need else None for a, need in zip(args, ctx.needs_input_grad)]
    for x in dirty:
        alias_of(x).cell.bump()
    outs: list[Any] = []
    constant: list[int] = []
    places: dict[int, int] = {}  # by the id of what `forward` returned: the number of the output
    for k, r in enumerate(results):
        out = r
        if isinstance(r, Tensor):
            attached = r._node is not None
            is_leaf = attached and r._node.__class__ is AccumulateGrad
            flows = recording and r.dtype.differentiable and not _has(nondiff, r)
            if not flows:
                constant.append(k)
            if not _has(dirty, r) and (_has(args, r) or is_leaf or id(r) in places or (attached and not flows)):
                out = _alias_like(r)
            places.setdefault(id(r), k)
        outs.append(out)
    if not recording or len(constant) == sum(isinstance(o, Tensor) for o in outs):
        return tuple(outs)
    node: Any = object.__new__(_node_class(cls))
    # The number comes after the forward's own writes: what it saved is as new as the node.
    node.seq = next_number()
    node.buffer = node.hooks = node._alias = None
    node.ctx, node.n_outputs, node.constant = ctx, len(outs), frozenset(constant)
    node.slots = [None] * len(outs)
    node.metas = [(o.shape, o.dtype, type(o._stand_in())) if isinstance(o, Tensor) else None for o in outs]
    node.e = tuple(e for e in edges if e is not None)
    node.inputs = tuple((a.shape, a.dtype, type(a._stand_in())) for a, e in zip(args, edges) if e is not None)
    numbers = iter(range(len(node.e)))
    node.places = tuple(-1 if not isinstance(a, Tensor) else None if e is None else next(numbers) for a, e in zip(args, edges))
    ctx._node = weakref.ref(node)
    saved = []
    for t in ctx._to_save:
        k = None if t is None or _has(args, t) and not _has(dirty, t) else places.get(id(t))
        saved.append(None if t is None else _Saved(t, k))
    ctx._saved, ctx._to_save, ctx._nondiff, ctx._dirty = tuple(saved), (), (), ()
    for k, out in enumerate(outs):
        if isinstance(out, Tensor) and k not in node.constant:
            node.cls = node.metas[k][2]
            slot = new_slot(node, k)
            out._node = slot
            if out._alias is not None and not out.is_inference():
                give_alias(out, out._alias)
    return tuple(outs)


def _node_class(cls: Any) -> Any:
    """The node class of a `Function`, made at its first use and kept on it."""
    found = cls.__dict__.get("_backward_cls")
    if found is None:
        title = f"{cls.__name__}Backward"
        body = {"__slots__": (), "title": title, "function": cls, "__module__": "xpgrad.autograd.function"}
        found = cls._backward_cls = type(title, (FunctionNode,), body)
    return found


class _Twice(Function):
    """Passes values on; its backward is the error of a function that differentiates once."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Any) -> Any:
        return tuple(t.detach() for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        msg = "trying to differentiate twice a function that was marked with @once_differentiable"
        raise RuntimeError(msg)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated: it runs unrecorded, and a second differentiation raises (FUN-24).

    Unlike PyTorch, `grad` raises too where the second derivative would silently be lost.
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with _modes.no_grad():
            returned = fn(ctx, *args)
        several = isinstance(returned, tuple)
        outs = list(returned) if several else [returned]
        if _modes.is_grad_enabled():
            # What the result depends on: the gradients, and the node's own operands, through which the saved values came.
            node = ctx._node()
            origins = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
            for e, (_, _, cls) in zip(node.e, node.inputs):
                origins.append(_stand_in_for(e, cls))
            tensors = [o for o in outs if isinstance(o, Tensor) and o.dtype.differentiable]
            if tensors and origins:
                barred = iter(_Twice.apply(len(tensors), *tensors, *origins))
                outs = [next(barred) if isinstance(o, Tensor) and o.dtype.differentiable else o for o in outs]
        return tuple(outs) if several else outs[0]

    return wrapper


def _stand_in_for(edge: Any, cls: Any) -> Any:
    """A 0-d Tensor whose history leads to an edge."""
    out = cls.scalar(0.0, cls.default_dtype("real floating"))
    out._node = edge
    return out


