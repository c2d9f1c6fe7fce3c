"""`xpgrad.autograd.function`: operations whose forward and backward the user writes, after `torch.autograd.Function`.

Each call makes one graph node. If there are several outputs, a hidden node for each (a slot) collects its gradient. ``backward`` runs on
Tensors, and is recorded if the backward pass records.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import ForbiddenView, View, alias_of, mark_node, note_sharing, share_inference
from xpgrad._aliasing.sharing import adopt, bump
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names
from xpgrad._modes import state, switches
from xpgrad._modes.running import transforming
from xpgrad._tape.node import make_slot
from xpgrad._tensor.tensor import Tensor
from xpgrad._tensor.writing import check_writable
from xpgrad.autograd._custom import FunctionCtx as FunctionCtx, FunctionNode, Saved
from xpgrad.autograd._function_batches import apply_to_batch, check_transformable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


def __dir__() -> list[str]:
    return public_names(__name__)


#: What the docstrings of the methods that a `Function` defines have in common.
_document_method = shares(
    parameters="""\
ctx : FunctionCtx
    The link of this call.
*grad_outputs : Tensor or None
    One for each output of `forward`, of its shape.
**_ : object
    Nothing: it lets type checkers admit subclasses with other signatures.""",
    raises="""\
NotImplementedError
    The subclass does not override it.""",
)


class Function:
    """Base class of custom operations: define static methods `forward` and `backward` in a subclass, and call its ``apply``.

    Subclasses may choose other signatures for the methods; the ``**_`` of these tells type checkers so.

    Parameters
    ----------
    *args : object
        Ignored: an instance has no use, and making one warns, as in PyTorch.
    **kwargs : object
        Ignored.

    Attributes
    ----------
    clear_saved_tensors_on_access : bool
        If True, reading ``ctx.saved_tensors`` in `backward` releases them, so that they can be read once.
    boxed_grads_call : bool
        If True, `backward` gets the gradients in one list, and may empty it to release their memory.
    generate_vmap_rule : bool
        If True, `vmap` runs `forward` and `backward` on elements of the batch, in vectorised operations.

    Warns
    -----
    DeprecationWarning
        An instance is made.

    See Also
    --------
    xpgrad.autograd.custom_rule : a shorter way for operations without side effects

    Examples
    --------
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

    clear_saved_tensors_on_access: bool = False
    boxed_grads_call: bool = False
    generate_vmap_rule: bool = False

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
    @_document_method
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs, unrecorded: ``forward(ctx, *args)``, or ``forward(*args)`` if the subclass has a `setup_context`.

        Parameters
        ----------
        *args : object
            The positional arguments of `apply`, after `ctx` unless the subclass has a `setup_context`.
        **kwargs : object
            The keyword arguments of `apply`.

        Returns
        -------
        Tensor, or tuple
            A tuple may also hold other objects.

        See Also
        --------
        xpgrad.autograd.Function
        """
        msg = "You must implement the forward function for custom autograd.Function."
        raise NotImplementedError(msg)

    @staticmethod
    @_document_method
    def setup_context(ctx: Any, inputs: Any, output: Any, /) -> Any:
        """Fill `ctx` after a `forward` that does not take it.

        Parameters
        ----------
        inputs : tuple
            The arguments of `forward`, including its defaults.
        output : Tensor or tuple
            What `forward` returned.

        Returns
        -------
        None
            The result is ignored.

        See Also
        --------
        xpgrad.autograd.Function.apply
        """
        msg = "setup_context is not implemented."
        raise NotImplementedError(msg)

    @staticmethod
    @_document_method
    def backward(ctx: Any, /, *grad_outputs: Any, **_: Any) -> Any:
        """Compute the gradients of the arguments of `forward` from those of its outputs.

        Returns
        -------
        Tensor, None, or tuple of them
            One for each argument of `forward`; None for an argument that has no gradient.

        See Also
        --------
        xpgrad.autograd.Function
        """
        msg = "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        raise NotImplementedError(msg)

    @staticmethod
    @_document_method
    def vjp(ctx: Any, /, *grad_outputs: Any, **_: Any) -> Any:
        """Another name for `backward`; a subclass implements one of the two.

        Returns
        -------
        Tensor, None, or tuple of them
            One for each argument of `forward`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Double(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2.0 * x
        ...     @staticmethod
        ...     def vjp(ctx, g):
        ...         return 2.0 * g
        >>> x = xp.tensor(1.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
        """
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    @_document_method
    def jvp(ctx: Any, /, *grad_inputs: Any, **_: Any) -> Any:
        """Compute the tangents of the outputs from those of the arguments of `forward`; forward mode calls it right after `forward`.

        Parameters
        ----------
        *grad_inputs : Tensor or None
            One tangent for each argument of `forward`; None for an argument without one.

        Returns
        -------
        Tensor, None, or tuple of them
            One for each output of `forward`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Square(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * x
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_forward(*inputs)
        ...     @staticmethod
        ...     def jvp(ctx, t):
        ...         (x,) = ctx.saved_tensors
        ...         return 2.0 * x * t
        >>> xp.func.jvp(Square.apply, (xp.tensor(3.0),), (xp.tensor(1.0),))
        (tensor(9.), tensor(6.))
        """
        msg = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        raise NotImplementedError(msg)

    @staticmethod
    @_document_method
    def vmap(info: Any, in_dims: Any, /, *args: Any, **_: Any) -> Any:
        """Apply the Function to a whole batch, for `xpgrad.func.vmap`.

        Parameters
        ----------
        info : VmapInfo
            A named tuple with `batch_size` and `randomness`.
        in_dims : tuple of int or None
            The batch axis of each argument; None for an argument that all elements share.
        *args : object
            The arguments, holding the whole batch.

        Returns
        -------
        tuple
            ``(output, out_dims)``: the results for the batch, and the batch axis of each.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Total(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return xp.sum(x)
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...     @staticmethod
        ...     def vmap(info, in_dims, x):
        ...         return xp.sum(xp.moveaxis(x, in_dims[0], 0).reshape(info.batch_size, -1), axis=1), 0
        >>> xp.func.vmap(Total.apply)(xp.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([3., 7.])
        """
        msg = "vmap is not implemented; set generate_vmap_rule=True, or override it"
        raise NotImplementedError(msg)

    @classmethod
    def user_backward(cls) -> Callable[..., Any]:
        """Return the subclass's `backward`, or its `vjp` if it has that instead.

        Raises
        ------
        RuntimeError
            The subclass implements both.
        """
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            msg = (
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
                f"of them: remove one from {cls.__name__}"
            )
            raise RuntimeError(msg)
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, and record it as one graph node.

        Parameters
        ----------
        *args : object
            The arguments of `forward` without `ctx`. Arguments that are not Tensors are constants.
        **kwargs : object
            Arguments of `forward` by name. `backward` returns a gradient for each: in the order of the signature if the
            subclass has a `setup_context`, else after those of the positional arguments.

        Returns
        -------
        Tensor or tuple
            What `forward` returned. Floating-point and complex Tensors require grad if an argument does.

        Raises
        ------
        RuntimeError, TypeError
            `ctx` was used wrongly, for example an input was marked as dirty but not returned.

        Examples
        --------
        >>> import xpgrad as xp
        >>> class Power(xp.autograd.Function):
        ...     @staticmethod
        ...     def forward(x, n):
        ...         return x**n
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         x, ctx.n = inputs
        ...         ctx.save_for_backward(x)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return ctx.n * x ** (ctx.n - 1) * g, None
        >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
        >>> y = Power.apply(x, 3)
        >>> y
        tensor([1., 8.], grad_fn=<PowerBackward>)
        >>> y.sum().backward()
        >>> x.grad
        tensor([ 3., 12.])
        """
        separate = cls.setup_context is not Function.setup_context
        if separate:
            # Inspecting a signature takes longer than recording a call.
            counted = cls.__dict__.get("_counted")
            least, most = counted[1] if counted is not None and counted[0] is cls.forward else _count_parameters(cls)
            if kwargs or not least <= len(args) <= most:
                bound = inspect.signature(cls.forward).bind(*args, **kwargs)
                bound.apply_defaults()
                args, kwargs = bound.args, {}
        else:
            if transforming() is not None:
                check_transformable(cls, str(transforming()))
            args, kwargs = (*args, *kwargs.values()), kwargs
        for a in args:
            if isinstance(a, Tensor) and a.depth:
                return apply_to_batch(Function, cls, args)
        mode = state.current()
        if mode is not None and mode.profiling is not None:  # called without a helper, because the `stacklevel` of warnings counts frames
            return mode.call(cls.__name__, call_function, cls, args, kwargs, separate, mode)
        return call_function(cls, args, kwargs, separate, mode)


def _count_parameters(cls: Any) -> Any:
    """Return, and keep, the number of positional parameters and the largest number of positional arguments that `forward` takes."""
    kinds = [p.kind for p in inspect.signature(cls.forward).parameters.values()]
    least = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    found = least, math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else least
    cls._counted = cls.forward, found
    return found


def call_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], separate: bool, mode: Any) -> Any:
    """Run `forward` and record it; `args` ends with the values of `kwargs`."""
    ctx = FunctionCtx()
    needs = ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
    levels: Any = ()
    auditing: Any = None
    tangents: list[Any] = []
    inside: Any = state.NO_GRAD
    if mode is None:
        recording = True in needs
    else:
        recording, auditing = mode.recording and True in needs, mode.auditing
        if not mode.inference:
            levels = mode.levels
        inside = state.mode_with(recording=False, levels=(), auditing=None) if mode.recording or levels or auditing else mode
    if levels:
        tangents = levels.function_tangents(args)
    before = state.current()
    try:
        state.put(inside)
        if separate:
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)
        elif kwargs:
            positional = len(args) - len(kwargs)
            result = cls.forward(ctx, *args[:positional], **kwargs)
        else:
            result = cls.forward(ctx, *args)
    finally:
        state.put(before)
    several = isinstance(result, tuple)
    results = result if several else (result,)
    dirty, nondiff = ctx._dirty, ctx._nondiff
    outs = _record(cls, ctx, args, results, recording, separate, before)
    if recording and mode is not None and mode.anomaly:
        for o in outs:
            if isinstance(o, Tensor) and o._node is not None:
                mode.finish(o)
    if levels:
        levels.carry_function(cls, ctx, args, dirty, nondiff, results, outs, tangents)
    if auditing is not None:
        auditing.record_call(cls, args, outs)
    if ctx.saved_for_forward:
        ctx.saved_for_forward = ()  # `jvp` has run; as in PyTorch, the node does not keep its results alive
    return tuple(outs) if several else outs[0]


def _alias_like(x: Any) -> Any:
    """Return a view of all of `x`, without history."""
    out = x._wrap(x.backend.own(x))
    if x.is_inference():
        share_inference(out, x)
    else:
        alias_of(x)
        out._alias = View(x, None, ())
        note_sharing(out)
    return out


def _has(items: tuple[Any, ...], x: Any) -> bool:
    for item in items:  # noqa: SIM110 (asked several times per call, and `any` with a generator takes several times as long)
        if x is item:
            return True
    return False


def _record(cls: Any, ctx: Any, args: tuple[Any, ...], results: tuple[Any, ...], recording: bool, separate: bool, mode: Any) -> list[Any]:
    """Make the node, and return the outputs that the caller gets for the results of `forward`.

    Parameters
    ----------
    cls, ctx
        The Function and the context of this call.
    args, results : tuple
        The arguments and results of `forward`.
    recording : bool
        Whether the call gets a history.
    separate : bool
        Whether the Function has `setup_context`.
    mode : Mode or None
        The current one.
    """
    dirty = ctx._dirty
    if dirty:
        _check_dirty(ctx, args, results, recording)
    for x in dirty:
        bump(x)
    outs, metas, constant = _outputs(ctx, args, results, recording, separate)
    if not recording or len(constant) == len(metas) - metas.count(None):
        return outs
    node = _new_node(cls, args, ctx.needs_input_grad, metas, constant)
    node.ctx, ctx._node = ctx, weakref.ref(node)
    kept = ctx._to_save
    saved = _save(ctx, args, results)
    _attach(node, outs, dirty)
    if mode is not None:
        if mode.packing is not None:
            for entry, t in zip(saved, kept):
                if entry is not None:
                    entry.pack(mode.packing, t)
        mode.note_node(node)
    return outs


def _check_dirty(ctx: Any, args: tuple[Any, ...], results: tuple[Any, ...], recording: bool) -> None:
    """Raise for Tensors that `forward` must not mark as dirty; the parameters are those of `_record`."""
    for x in ctx._dirty:
        if not _has(results, x):
            msg = (
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
            raise RuntimeError(msg)
        if not _has(args, x):
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only inputs that have been mutated should be passed to it",
                UserWarning,
                stacklevel=5,
            )
        if recording and x._node is not None and x._node.is_leaf:
            msg = "a leaf Variable that requires grad has been used in an in-place operation."
            raise RuntimeError(msg)
        if recording and x._is_view():
            check_writable(x, None, state.current())


def _outputs(
    ctx: Any, args: tuple[Any, ...], results: tuple[Any, ...], recording: bool, separate: bool
) -> tuple[list[Any], list[Any], list[int]]:
    """Return the Tensors that the caller gets: a returned Tensor that already has a history is replaced by a view of it.

    A Tensor that is returned several times stays one object, and counts as the last of these outputs.

    Returns
    -------
    outs : list
    metas : list
        The (shape, dtype, class) of each output, and None for what is not a Tensor.
    constant : list of int
        The positions of the Tensors that get no gradient.

    Raises
    ------
    RuntimeError
        An input that is also a result was saved by `setup_context`.
    """
    dirty, nondiff = ctx._dirty, ctx._nondiff
    outs: list[Any] = []
    metas: list[Any] = []
    constant: list[int] = []
    for k, r in enumerate(results):
        out = r
        meta = None
        if isinstance(r, Tensor):
            node, dtype = r._node, r.dtype
            flows = recording and dtype.differentiable and not (nondiff and _has(nondiff, r))
            if not flows:
                constant.append(k)
            given = _has(args, r)
            if (given or (node is not None and (node.is_leaf or not flows))) and not (dirty and _has(dirty, r)):
                if given and separate and _has(ctx._to_save, r):
                    msg = (
                        "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
                        "override setup_context. Save the output instead"
                    )
                    raise RuntimeError(msg)
                out = _alias_like(r)
            cls = out.__class__
            meta = r.shape, dtype, cls.normal or cls
        outs.append(out)
        metas.append(meta)
    return outs, metas, constant


#: The positions of the outputs that get no gradient, where all get one.
_NONE: frozenset[int] = frozenset()


def _new_node(cls: Any, args: tuple[Any, ...], needs: tuple[bool, ...], metas: list[Any], constant: list[int]) -> Any:
    """Make the node of one call, linked to its operands' nodes but not yet to its outputs.

    Parameters
    ----------
    cls, args
        The Function and the arguments of this call.
    needs : tuple of bool
        Which of them need a gradient.
    metas, constant : list
        Of the outputs, as `_outputs` returns them.
    """
    # NB: it is made after the writes of `forward`, so that the saved values are not older than the writes.
    node = (cls.__dict__.get("_backward_cls") or _make_node_class(cls)).made_now()
    node.n_outputs, node.metas, node.constant = len(metas), metas, frozenset(constant) if constant else _NONE
    if len(metas) == 1:
        node.slotted, node._meta = False, metas[0]
    else:
        node.slotted, node.slots = True, [None] * len(metas)
    followed: list[Any] = []
    inputs: list[Any] = []
    places: list[int | None] = []
    for a, need in zip(args, needs):
        if need:
            places.append(len(followed))
            followed.append(a._node)
            inputs.append((a.shape, a.dtype, a.normal or a.__class__))
        else:
            places.append(None if isinstance(a, Tensor) else -1)
    node.e, node.inputs, node.places = tuple(followed), tuple(inputs), tuple(places)
    made = metas[0][2] if not constant and metas[0] else next(m[2] for k, m in enumerate(metas) if m is not None and k not in constant)
    backend = made.backend
    node.stream = (made, backend.current_stream(made.device)) if backend.capabilities.streams else None
    return node


def _save(ctx: Any, args: tuple[Any, ...], results: tuple[Any, ...]) -> list[Any]:
    """Store the Tensors of `save_for_backward`, results by position, and drop the other marks of `ctx`."""
    dirty = ctx._dirty
    saved: list[Any] = []
    for t in ctx._to_save:
        if t is None:
            saved.append(None)
            continue
        number = None
        if (dirty and _has(dirty, t)) or not _has(args, t):
            for k, r in enumerate(results):
                if r is t:
                    number = k
                    break
            if number is not None and len(results) > 1:
                alias_of(t)  # the node knows only whether any of its outputs was written to
        saved.append(Saved(t, number))
    ctx._saved, ctx._to_save = tuple(saved), ()
    ctx._nondiff = ctx._dirty = ()
    return saved


def _attach(node: Any, outs: list[Any], dirty: tuple[Any, ...]) -> None:
    """Attach the node to its outputs, and to the inputs that `forward` overwrote."""
    if not (dirty or node.slotted or outs[0]._alias is not None):  # NB: the common case
        node.cls, outs[0]._node = node._meta[2], node
        return
    if dirty:  # before the other outputs, of which some may be views of this memory
        for k, (out, meta) in enumerate(zip(outs, node.metas)):
            if meta is not None and k not in node.constant and _has(dirty, out):
                node.cls = meta[2]
                adopt(out, make_slot(node, k) if node.slotted else node)
    for k, (out, meta) in enumerate(zip(outs, node.metas)):
        if meta is not None and k not in node.constant:
            node.cls = meta[2]
            if dirty:
                if _has(dirty, out):
                    continue
                out.__class__ = out.fresh or out.__class__
            slot = make_slot(node, k) if node.slotted else node
            out._node = slot
            if out._alias is not None and not out.is_inference():
                if out._alias.parent is not None:
                    out._alias.forbidden = ForbiddenView(f"Output {k} of {node.title}", custom=len(outs) == 1)
                mark_node(slot, out._alias)


def _make_node_class(cls: Any) -> Any:
    """Make the node class of a `Function`, and keep it."""
    title = f"{cls.__name__}Backward"
    body = {"__slots__": (), "title": title, "function": cls, "__module__": "xpgrad.autograd.function"}
    found = cls._backward_cls = type(title, (FunctionNode,), body)
    return found


class _Twice(Function):
    """The identity; its backward raises the error for a second differentiation of `once_differentiable`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(count: int, *tensors: Any) -> Any:
        return tuple(t.detach() for t in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.count = inputs[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        msg = "trying to differentiate twice a function that was marked with @once_differentiable"
        raise RuntimeError(msg)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        _, *tangents = grad_inputs
        return tuple(tangents[: ctx.count])


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated: it runs unrecorded, and differentiating its result raises.

    Unlike PyTorch, `xpgrad.autograd.grad` also raises where the second derivative would be lost silently.

    Parameters
    ----------
    fn : callable
        The `backward`; put this decorator below `staticmethod`.

    Returns
    -------
    callable
        The wrapped `backward`.

    Raises
    ------
    RuntimeError
        When its result is differentiated.

    Examples
    --------
    >>> import xpgrad as xp
    >>> class Square(xp.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @xp.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = xp.tensor(3.0, requires_grad=True)
    >>> (g,) = xp.autograd.grad(Square.apply(x), x, create_graph=True)
    >>> g.item()
    6.0
    >>> g.backward()
    Traceback (most recent call last):
        ...
    RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with switches.no_grad():
            returned = fn(ctx, *args)
        several = isinstance(returned, tuple)
        outs = list(returned) if several else [returned]
        if state.is_grad_enabled():
            # The result depends on the gradients and, through the saved values, on the operands of the node.
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
    """Make a 0-d Tensor whose history is an edge."""
    out = cls.scalar(0.0, cls.default_dtype("real floating"))
    out._node = edge
    return out
