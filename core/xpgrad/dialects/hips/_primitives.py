"""How a call of a primitive is recorded: as a node of its own where the arguments are arrays and numbers, else by a `Function`.

The node is the short way, which most calls take: no containers, transforms or hooks. It costs about what a primitive of HIPS autograd does.
"""

from __future__ import annotations

from typing import Any

from xpgrad._modes import state
from xpgrad._operations.lift import new_tensor
from xpgrad._tape.node import ListNode, freed_error
from xpgrad._tape.saved import check_version, unpack, with_history
from xpgrad._tape.task import note_complex
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd.function import Function
from xpgrad.dialects.hips._arrays import ARRAY, np, raw_of
from xpgrad.dialects.hips._spaces import SparseObject
from xpgrad.func._tree import flatten, unflatten

_BACKEND: Any = ARRAY.backend
#: The classes of constant arguments, besides NumPy's numbers, that are neither Tensors nor containers.
_CONSTANTS = frozenset((np.ndarray, float, int, complex, bool, str, type(None)))
_NUMBERS = (np.ndarray, np.generic, float, int, complex)


def call_primitive(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a primitive that has a rule, and record the call if an argument requires grad; `target` is the `Primitive`."""
    computed = None
    if state.current() is None and target.has_vjp:
        short = _short_arguments(args, kwargs)
        if short is not None:
            numbers, edges, plain = short
            target.check_known(numbers)
            try:
                state.put(state.NO_GRAD)
                ans = target.fun(*plain, **kwargs)
            finally:
                state.put(None)
            if isinstance(ans, _NUMBERS):
                raw = np.asarray(ans)
                if raw.dtype.kind in "fc":
                    return _record(target, raw, plain, kwargs, numbers, edges)
            computed = (ans,)
    leaves, structure = flatten(args)
    call = _Call(target, structure, kwargs, computed)
    if state.is_grad_enabled() and not state.carries_tangents():
        target.check_known(call.argnums([isinstance(x, Tensor) and x.requires_grad for x in leaves]))
    outs = _Primitive.apply(call, *leaves)
    return unflatten(call.value, outs)


# -- the short way ---------------------------------------------------------------------------------------------------------


def _short_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[int], list[Any], list[Any]] | None:
    """Return the positions of the Tensors among the arguments, their nodes, and all arguments without history.

    None is returned if the call cannot go the short way: it has containers, constant Tensors, or Tensors of transforms.
    """
    numbers: list[int] = []
    edges: list[Any] = []
    plain: list[Any] = []
    for number, a in enumerate(args):
        cls = a.__class__
        if cls is ARRAY:
            node = a._node
            if node is None or (node.is_leaf and node.off):
                return None
            numbers.append(number)
            edges.append(node)
            raw = a._array
            plain.append(raw if raw.shape else raw[()])
        elif cls in _CONSTANTS or isinstance(a, np.generic):
            plain.append(a)
        else:
            return None
    if not numbers or (kwargs and any(isinstance(v, Tensor) for v in kwargs.values())):
        return None
    return numbers, edges, plain


class PrimitiveNode(ListNode):
    """The graph node of a call with arrays and numbers.

    Attributes
    ----------
    target : Primitive
    args, ans : list of (array or object), array
        The arguments and the value, without history; None once they were freed. 0-d arrays are NumPy's scalars.
    kwargs : dict
    numbers : list of int
        The position of each edge's argument.
    """

    __slots__ = ("ans", "args", "kwargs", "numbers", "target")

    title = "PrimitiveBackward"
    saves = True
    cls = ARRAY
    backend = _BACKEND
    target: Any
    args: Any
    ans: Any
    kwargs: dict[str, Any]
    numbers: list[int]

    def _check(self) -> None:
        """Raise RuntimeError if the saved values were freed or overwritten."""
        if self.args is None:
            raise freed_error(self)
        for number, e in zip(self.numbers, self.e):
            if e._alias is not None:
                check_version(self, f"argument {number}", e._alias)
        if self._alias is not None:
            check_version(self, "out", self._alias)

    def grads(self, g: Any) -> list[Any]:
        self._check()
        args = self.args
        g = g if g.shape else g[()]
        mode = state.current()
        try:
            found = self.target.vjps(self.numbers, self.ans, args, self.kwargs)(g.conj() if g.dtype.kind == "c" else g)
        finally:
            state.put(mode)  # leave any mode that the rule entered
        return [_fit_array(v, args[number]) for number, v in zip(self.numbers, found)]

    def graph_grads(self, g: Any) -> list[Any]:
        self._check()
        args = list(self.args)
        for number, e in zip(self.numbers, self.e):
            args[number] = unpack(_BACKEND, np.asarray(args[number]), e)
        ans = with_history(_BACKEND, np.asarray(self.ans), self)
        found = self.target.vjps(self.numbers, ans, args, self.kwargs)(_conj(g))
        out = []
        for number, v in zip(self.numbers, found):
            fitted = _fit_to(_conj(_dense(v)), args[number])
            out.append(fitted if fitted.dtype is args[number].dtype else fitted._cast(args[number].dtype))
        return out

    def held(self) -> list[Any]:
        return [] if self.args is None else [*(x for x in self.args if isinstance(x, np.ndarray)), np.asarray(self.ans)]

    def release(self) -> None:
        self.args = self.ans = None

    def released(self) -> bool:
        return self.args is None


def _record(target: Any, raw: Any, args: list[Any], kwargs: dict[str, Any], numbers: list[int], edges: list[Any]) -> Any:
    """Wrap the value of a call as a Tensor with a `PrimitiveNode`."""
    out = ARRAY._wrap(raw)
    if out.dtype.is_complex:
        note_complex()
    node = PrimitiveNode.made_now()
    node.target, node.args, node.kwargs, node.numbers, node.e, node.stream = target, args, kwargs, numbers, tuple(edges), None
    node.ans = raw if raw.shape else raw[()]
    out._node = node
    return out


def _fit_array(x: Any, like: Any) -> Any:
    """Convert a cotangent from a rule to an array with the shape and dtype of `like`; missing axes are broadcast."""
    x = _dense(x)
    if x.__class__ is not np.ndarray:
        x = np.asarray(x) if isinstance(x, _NUMBERS) else np.asarray(raw_of(_wrap(x)))
    if x.dtype.kind == "c":
        x = np.conjugate(x) if like.dtype.kind == "c" else np.real(x)
    if x.dtype != like.dtype:
        x = x.astype(like.dtype)
    return np.array(np.broadcast_to(x, like.shape)) if x.shape != like.shape else x


# -- the long way ----------------------------------------------------------------------------------------------------------


class _Call:
    """One call of a primitive: the structure of its arguments and of its value.

    Attributes
    ----------
    computed : tuple of object, or None
        The value, if the function was called already.
    """

    def __init__(self, target: Any, structure: Any, kwargs: dict[str, Any], computed: tuple[Any] | None) -> None:
        self.target, self.structure, self.kwargs, self.computed = target, structure, kwargs, computed
        self.value: Any = None  # the structure of the value

    def argnums(self, needs: Any) -> tuple[int, ...]:
        """Return the positions of the arguments with a marked leaf."""
        flags, out = iter(needs), []
        for number, child in enumerate(self.structure.children):
            marked = [next(flags) for _ in range(_count(child))]
            if any(marked):
                out.append(number)
        return tuple(out)

    def parts(self, structure: Any, value: Any, what: str, like: str) -> list[Any]:
        """Return the leaves of what a rule returned; raise TypeError if it is not arranged like the argument or the value."""
        try:
            return _parts(structure, _dense(value))
        except (TypeError, LookupError) as exc:
            msg = f"{self.target.__name__}: {what} returned something that is not arranged like the {like}"
            raise TypeError(msg) from exc

    def evaluate(self, leaves: tuple[Any, ...]) -> list[Any]:
        """Return the leaves of the value, for the leaves of the arguments."""
        if self.computed is None:
            value = self.target.fun(*unflatten(self.structure, [_raw(x) for x in leaves]), **self.kwargs)
        else:
            (value,), self.computed = self.computed, None
        outs, self.value = flatten(value)
        return outs


def _count(structure: Any) -> int:
    return 1 if structure.is_leaf else sum(_count(child) for child in structure.children)


def _parts(structure: Any, value: Any) -> list[Any]:
    """Return the leaves of a cotangent or tangent in a structure; in place of a sequence it may have an array, with a row for each item.

    Raises
    ------
    TypeError, LookupError
        It has another structure.
    """
    leaves, found = flatten(value)
    if found == structure:
        return leaves
    if structure.is_leaf:
        return [value]
    if len(value) != len(structure.children):
        raise LookupError(len(value))
    keys = structure.keys or range(len(structure.children))
    return [part for key, child in zip(keys, structure.children) for part in _parts(child, _dense(value[key]))]


def _wrap(x: Any, device: Any = ARRAY.device) -> Any:
    """Convert the array or number that a primitive returned to a Tensor on a device; raise TypeError for anything else."""
    if isinstance(x, Tensor):
        return x if x.device == device else x.to_device(device)
    raw = np.asarray(x)
    if raw.dtype.kind not in "biufc":
        msg = f"a primitive must return arrays and numbers, or tuples, lists and dicts of them, but got {type(x).__name__}"
        raise TypeError(msg)
    return _wrap(new_tensor(ARRAY, raw), device)


def _raw(x: Any) -> Any:
    return raw_of(x) if isinstance(x, Tensor) and not x.depth else x


def _conj(x: Any) -> Any:
    return np.conjugate(x) if np.iscomplexobj(x) else x


def _dense(x: Any) -> Any:
    return x.mut_add(x.vs.zeros()) if isinstance(x, SparseObject) else x


class _Primitive(Function):
    """The operation of a primitive, with its rules."""

    @staticmethod
    def forward(call: _Call, *leaves: Any) -> tuple[Any, ...]:
        device = next(x.device for x in leaves if isinstance(x, Tensor))
        return tuple(_wrap(x, device) for x in call.evaluate(leaves))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call, *leaves = inputs
        ctx.constants = [None if isinstance(x, Tensor) else x for x in leaves]
        ctx.tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        ctx.count = len(ctx.tensors)
        ctx.devices = [x.device if isinstance(x, Tensor) else None for x in leaves]
        ctx.save_for_backward(*(leaves[i] for i in ctx.tensors), *output)
        ctx.save_for_forward(*(leaves[i] for i in ctx.tensors), *output)

    @staticmethod
    def _read(ctx: Any, plain: bool) -> tuple[list[Any], Any]:
        """Return the leaves of the arguments, and the value, as arrays if `plain`, else as Tensors."""
        saved = ctx.saved_tensors
        saved = [_raw(x) for x in saved] if plain else list(saved)
        leaves = list(ctx.constants)
        for i, x in zip(ctx.tensors, saved):
            leaves[i] = x
        return leaves, unflatten(ctx.call.value, saved[ctx.count :])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        call = ctx.call
        plain = not state.is_grad_enabled() and not state.carries_tangents() and not any(g is not None and g.depth for g in grad_outputs)
        leaves, ans = _Primitive._read(ctx, plain)
        args = unflatten(call.structure, leaves)
        given = [_raw(g) if plain else g for g in grad_outputs]
        g = unflatten(call.value, [_conj(g) for g in given])
        argnums = call.argnums(ctx.needs_input_grad[1:])
        found = call.target.vjps(argnums, ans, args, call.kwargs)(g)
        out: list[Any] = [None] * len(leaves)
        start = 0
        by_number = dict(zip(argnums, found))
        for number, child in enumerate(call.structure.children):
            count = _count(child)
            if number in by_number:
                parts = call.parts(child, by_number[number], f"the vjp of argument {number}", "argument")
                for i, x in zip(range(start, start + count), parts):
                    if ctx.needs_input_grad[1 + i]:
                        out[i] = _fit_to(_conj(x), leaves[i], ctx.devices[i])
            start += count
        return (None, *out)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        call = ctx.call
        given = tangents[1:]
        involved = [t for t in (*given, *ctx.saved_tensors) if t is not None]
        plain = not state.carries_tangents() and not any(t.requires_grad or t.depth for t in involved)
        leaves, ans = _Primitive._read(ctx, plain)
        args = unflatten(call.structure, leaves)
        argnums = call.argnums([t is not None for t in given])
        filled = [np.zeros_like(x) if t is None else _raw(t) if plain else t for t, x in zip(given, leaves)]
        tangent_args = unflatten(call.structure, filled)
        found = call.target.jvps(argnums, [tangent_args[n] for n in argnums], ans, args, call.kwargs)
        parts = call.parts(call.value, found, "the jvp", "value")
        # A rule has to return something for integers, too; it counts for nothing.
        device = ctx.devices[ctx.tensors[0]]  # as `forward`
        return tuple(_fit_to(t, a, device) if _dtype(a).kind in "fc" else None for t, a in zip(parts, flatten(ans)[0], strict=True))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        results = []
        for i in range(info.batch_size):
            results.append(_Primitive.apply(*(x if d is None else np.moveaxis(x, d, 0)[i] for x, d in zip(args, in_dims))))
        return tuple(np.stack(parts) for parts in zip(*results)), (0,) * len(results[0])


def _fit_to(x: Any, like: Any, device: Any = ARRAY.device) -> Any:
    """Convert a cotangent or tangent from a rule to a Tensor with the shape and dtype of `like`; missing axes are broadcast."""
    x = _wrap(x, device)
    if x.dtype.is_complex and _dtype(like).kind != "c":
        x = np.real(x)
    shape = tuple(np.shape(like))
    return np.broadcast_to(x, shape) if x.shape != shape else x


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
