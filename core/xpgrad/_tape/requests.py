"""`backward` and `grad`: check every argument before anything changes, then run the pass in `engine`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_flag
from xpgrad._basics.scalars import is_raw_array
from xpgrad._modes import state, switches
from xpgrad._modes.captures import as_captured
from xpgrad._modes.running import transforming
from xpgrad._rows.namespace import operations
from xpgrad._tape.edges import GradientEdge, node_of, output_edge
from xpgrad._tape.engine import run_pass
from xpgrad._tape.finished_node import run_finished_node
from xpgrad._tape.hook_tables import hooks_of
from xpgrad._tape.task import Pass


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, grad_variables: Any = None,
    inputs: Any = None,
) -> None:  # fmt: skip
    """Differentiate `tensors` with respect to the leaves, adding to their `.grad` (`torch.autograd.backward`).

    Parameters
    ----------
    tensors : Tensor, GradientEdge, or iterable of them
        The roots; their contributions are summed.
    grad_tensors : Tensor, None, or iterable of them
        The vector of the vector-Jacobian product for each root, of the root's shape; None for a root with one real element.
    retain_graph : bool, optional
        Keep the saved values for another pass. Default: `create_graph`.
    create_graph : bool
        Record the backward, so that the gradients can be differentiated.
    grad_variables : optional
        Deprecated name of `grad_tensors`.
    inputs : Tensor, GradientEdge, sequence or dict of them, optional
        Accumulate into these only. Default: all leaves.

    Raises
    ------
    RuntimeError
        For a root without history, a gradient that is missing or does not fit, lengths that differ, empty `inputs`, and saved values that
        were freed or overwritten.
    TypeError
        For what is not a Tensor, raw arrays included: wrap those with `xpgrad.asarray`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> xp.autograd.backward([x * x, 10.0 * x], [xp.tensor([1.0, 1.0]), xp.tensor([0.0, 1.0])])
    >>> x.grad
    tensor([ 2., 14.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            msg = "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`"
            raise RuntimeError(msg)
        grad_tensors = grad_variables
    targets: list[Any] | None = None
    wanted: list[Any] = []
    if inputs is not None:
        wanted = input_list(inputs, "backward")
        if not wanted:
            msg = "`inputs` argument to `backward()` cannot be empty."
            raise RuntimeError(msg)
    retain, create = _flags(retain_graph, create_graph)
    if transforming() is not None:
        msg = (
            f"backward() called inside a functorch transform (`xpgrad.func.{transforming()}`). This is not supported, please use "
            "`xpgrad.func.grad` or `xpgrad.func.vjp` instead, or call backward() outside of it"
        )
        raise RuntimeError(msg)
    graph = create or state.carries_tangents()
    roots, seeds = _roots(tensors, grad_tensors, graph, create)
    if inputs is not None:
        targets = _backward_targets(wanted)
    if create:
        warn_create_graph()
    if len(roots) == 1 and targets is None and not graph and run_finished_node(roots[0], seeds[0], retain):
        return
    if roots:
        run_pass(Pass(graph=graph, retain=retain, targets=targets, capture=False, create=create), roots, seeds)


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    allow_unused: bool = False, materialize_grads: bool = False, batched: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Implement `xpgrad.autograd.grad` (see there), without its deprecated arguments.

    Parameters
    ----------
    batched : callable, optional
        Computes the result if the gradient outputs are batches (``is_grads_batched``).
    """
    keys = list(inputs) if type(inputs) is dict else None
    wanted = input_list(inputs, "grad")
    if not wanted:
        msg = "`inputs` argument to `grad()` cannot be empty."
        raise RuntimeError(msg)
    retain, create = _flags(retain_graph, create_graph)
    if _in_batch(outputs, wanted):
        msg = (
            "One of the differentiated Tensors does not require grad: inside `vmap` an element of a batch has no history of its own. "
            "Use `xpgrad.func.grad`, `vjp` or `jacrev` there, which compose with `vmap`"
        )
        raise RuntimeError(msg)
    if batched is not None:
        return batched(outputs, inputs, grad_outputs, retain, create, allow_unused, materialize_grads)
    graph = create or state.carries_tangents() or (grad_outputs is not None and 0 < _stage(grad_outputs) > _stage(outputs))
    roots, seeds = _roots(outputs, grad_outputs, graph, create)
    targets = []
    for item in wanted:
        node = node_of(item)
        if node is None:
            msg = "One of the differentiated Tensors does not require grad; call `requires_grad_()` on it before the forward"
            raise RuntimeError(msg)
        targets.append(node)
    task = Pass(graph=graph, retain=retain, targets=targets, capture=True, create=create)
    mode = state.current()
    auditing = None if mode is None or create else mode.auditing
    if auditing is None:
        found = run_pass(task, roots, seeds)
    else:
        try:  # the audit sees an unrecorded pass as one call, not as operations
            state.put(state.mode_with(auditing=None))
            found = run_pass(task, roots, seeds)
        finally:
            state.put(mode)
    by_node = dict(zip(task.targets or (), found))
    results = [
        _result(i, item, by_node[node], graph, create, allow_unused, materialize_grads)
        for i, (item, node) in enumerate(zip(wanted, targets))
    ]
    if auditing is not None:
        results = [auditing.record_leaving("autograd.grad", item, result) for item, result in zip(wanted, results)]
    return tuple(results) if keys is None else dict(zip(keys, results))


def private_grad(output: Any, nodes: list[Any], gradient: Any, *, create: bool) -> list[Any]:
    """Return the gradients of one Tensor at `nodes`, in a graph that was built for this call and ends at these nodes.

    Parameters
    ----------
    output, gradient : Tensor
        Of the same shape, dtype and device; not checked.
    nodes : list of Node
        Without repetitions.
    create : bool
        ``create_graph``.

    Returns
    -------
    list of Tensor or None
    """
    graph = create or gradient.depth > 0 or state.carries_tangents()
    task = Pass(graph=graph, retain=create, targets=nodes, capture=True, create=create)
    task.private = True
    found = run_pass(task, [output._node], [gradient if graph else gradient._array])
    if graph:
        return [v if v is None or create else _drop_history(v) for v in found]
    return [None if v is None else node.cls.backend.wrap(v) for node, v in zip(nodes, found)]


def _stage(given: Any) -> int:
    """Return the highest stage of some Tensors; others, as edges, have stage 0.

    Gradients of a higher stage than the roots, elements of a batch or captured ones, are not raw arrays that the nodes could compute with.
    """
    found = given if isinstance(given, (list, tuple)) else (given,)
    return max((x.stage for x in found if isinstance(x, TensorBase)), default=0)


def _in_batch(given: Any, more: Iterable[Any] = ()) -> bool:
    """Return whether any of the given values is an element of a batch."""
    found = given if isinstance(given, (list, tuple)) else (given,)
    for x in (*found, *more):  # noqa: SIM110 (a generator takes several times as long)
        if isinstance(x, TensorBase) and x.depth:
            return True
    return False


def unused_error(i: int) -> RuntimeError:
    """Return the error that `grad` raises for an input that the outputs do not depend on."""
    return RuntimeError(
        f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the "
        "desired behavior, or materialize_grads=True for zeros"
    )


def _result(i: int, item: Any, g: Any, graph: bool, create: bool, allow_unused: bool, materialize: bool) -> Any:
    """Return entry `i` of the result of `grad`; for an unused input None or zeros, or raise, as the options say.

    Parameters
    ----------
    i : int
    item : Tensor or GradientEdge
        The input.
    g : Tensor, raw array or None
        Its gradient: a Tensor if `graph`.
    graph, create : bool
        Whether the pass ran on Tensors, and whether its result keeps a history.
    allow_unused, materialize : bool
        As for `xpgrad.autograd.grad`.
    """
    if g is not None:
        if graph:
            return g if create else _drop_history(g)
        cls = _class_of(item)
        return cls.backend.wrap(g)
    if not allow_unused:
        raise unused_error(i)
    if not materialize:
        return None
    if isinstance(item, GradientEdge):
        msg = "materialize_grads cannot be used when the given input is a GradientEdge; give the Tensor instead"
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    zero = operations.zeros_like(item.detach())
    return zero.requires_grad_() if create else zero


def _class_of(item: Any) -> Any:
    """Return the Tensor class of an input."""
    if not isinstance(item, GradientEdge):
        return type(item._stand_in())
    node = item.node
    return node.backend.tensor_base if node.cls is None else node.cls


def _drop_history(g: Any) -> Any:
    """Return a gradient without its history; its tangents stay."""
    if not g.requires_grad:
        return g
    with switches.no_grad():
        return g.clone()


def _flags(retain_graph: Any, create_graph: Any) -> tuple[bool, bool]:
    create = _flag(create_graph, "create_graph")
    return (create if retain_graph is None else _flag(retain_graph, "retain_graph")), create


def _flag(value: Any, what: str) -> bool:
    if value.__class__ is bool:
        return bool(value)
    if isinstance(value, str):
        msg = f"'str' object cannot be interpreted as an integer: `{what}` must be a bool, but got {value!r:.60}"
        raise TypeError(msg)
    return value is not None and as_flag(value, "backward and grad", what)


def _roots(tensors: Any, gradients: Any, graph: bool, create: bool) -> tuple[list[Any], list[Any]]:
    """Check the roots and their gradients, and return the engine's nodes and seeds."""
    if gradients is None and isinstance(tensors, TensorBase) and tensors._node is not None:  # fast path for the commonest call
        return [tensors._node], [_seed(0, tensors, tensors._node, None, graph, create)]
    single = isinstance(tensors, (TensorBase, GradientEdge))
    if not single and not _is_iterable(tensors):
        msg = f"'{type(tensors).__name__}' object is not a Tensor: backward and grad differentiate Tensors; wrap it with `xpgrad.asarray`"
        raise TypeError(msg)
    roots = [tensors] if single else list(tensors)
    for root in roots:
        if not isinstance(root, (TensorBase, GradientEdge)):
            msg = f"Expected output to be a Tensor or GradientEdge, but got {type(root).__name__}; wrap it with `xpgrad.asarray`"
            raise TypeError(msg)
    if gradients is None:
        given: list[Any] = [None] * len(roots)
    elif isinstance(gradients, TensorBase):
        given = [gradients]
    elif not _is_iterable(gradients):
        msg = f"'{type(gradients).__name__}' object is not a gradient: gradients are Tensors or None; wrap it with `xpgrad.asarray`"
        raise TypeError(msg)
    else:
        given = list(gradients)
    if len(given) != len(roots):
        msg = f"got {len(roots)} tensors and {len(given)} gradients; give one gradient, or None, per tensor"
        raise RuntimeError(msg)
    nodes, seeds = [], []
    for i, root in enumerate(roots):
        node = output_edge(root) if isinstance(root, GradientEdge) else root._node
        if node is None:
            msg = f"element {i} of tensors does not require grad and does not have a grad_fn"
            raise RuntimeError(msg)
        nodes.append(node)
    for i, (root, node, g) in enumerate(zip(roots, nodes, given)):
        seeds.append(_seed(i, root, node, g, graph, create))
    return nodes, seeds


def _is_iterable(given: Any) -> bool:
    """Return whether `given` counts as several Tensors; an array or a string does not."""
    if given.__class__ is list or given.__class__ is tuple:
        return True
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes)) and not is_raw_array(given)


def _seed(i: int, root: Any, node: Any, g: Any, graph: bool, create: bool) -> Any:
    """Return the checked gradient of one root: a raw array, or a Tensor if the pass runs on Tensors."""
    if isinstance(root, GradientEdge):
        meta = node.meta()
        if meta is None and g is None:
            msg = "grad can be implicitly created only for scalar outputs; the shape of this GradientEdge is not known: give a gradient"
            raise RuntimeError(msg)
        shape, dtype, cls = meta or (g.shape, g.dtype, type(g))
    else:
        shape, dtype, cls = root.shape, root.dtype, type(root._stand_in())
    if g is None:
        numel = math.prod(shape)
        if numel != 1:
            msg = f"grad can be implicitly created only for scalar outputs, but this one has shape {shape}; give a gradient of that shape"
            raise RuntimeError(msg)
        if not dtype.is_floating_point:
            msg = f"grad can be implicitly created only for real scalar outputs but got {dtype}; give a gradient"
            raise RuntimeError(msg)
        edge = isinstance(root, GradientEdge)
        raw = cls.backend.ones(shape, dtype, cls.device) if edge else cls.backend.seed(root._array, dtype, cls.device)
        return cls.backend.wrap(raw) if graph else raw
    if not isinstance(g, TensorBase):
        msg = f"gradients can be either Tensors or None, but got {type(g).__name__}"
        raise TypeError(msg + ("; wrap it with `xpgrad.asarray`" if is_raw_array(g) else ""))
    if g.shape != shape:
        msg = (
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {shape}. They must be equal; "
            "nothing is broadcast"
        )
        raise RuntimeError(msg)
    g_dtype = g.dtype
    if g_dtype is not dtype and g_dtype.is_complex is not dtype.is_complex:
        msg = (
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g_dtype} and output[{i}] has a dtype of {dtype}"
        )
        raise RuntimeError(msg)
    if g.device is not cls.device and g.device != cls.device:
        if g.ndim:
            msg = f"invalid gradient at index {i} - expected device {cls.device} but got {g.device}; move it with `to_device`"
            raise RuntimeError(msg)
        g = (g if graph else g.detach()).to_device(cls.device)
    g = as_captured(g)
    if graph:
        return g._cast(dtype) if create else _drop_history(g)._cast(dtype)
    return g._array if g_dtype is dtype else g.detach()._cast(dtype)._array


def input_list(inputs: Any, name: str) -> list[Any]:
    """Return inputs as a list of Tensors and edges.

    Raises
    ------
    TypeError, RuntimeError
        For anything else.
    """
    if isinstance(inputs, (TensorBase, GradientEdge)):
        return [inputs]
    if hasattr(inputs, "keys"):
        if type(inputs) is not dict:
            kind = type(inputs).__name__
            msg = f"`inputs` argument to `{name}()` must be a dict, not {kind}. Other Mapping types are not supported."
            raise TypeError(msg)
        inputs = inputs.values()
    if not _is_iterable(inputs) and not isinstance(inputs, (str, bytes)):
        msg = f"all inputs have to be Tensors or GradientEdges, but got {type(inputs).__name__}"
        raise TypeError(msg)
    found = list(inputs)
    for item in found:
        if not isinstance(item, (TensorBase, GradientEdge)):
            msg = f"all inputs have to be Tensors or GradientEdges, but got {type(item).__name__}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    return found


def _backward_targets(inputs: Sequence[Any]) -> list[Any]:
    """Return the nodes for `backward(inputs=...)`; make its non-leaf Tensors retain their gradient (INP-05)."""
    targets = []
    for item in inputs:
        node = node_of(item)
        if node is None:
            msg = "can't retain_grad on Tensor that has requires_grad=False; inputs of `backward()` must require grad"
            raise RuntimeError(msg)
        targets.append(node)
    for item in inputs:
        if isinstance(item, TensorBase) and not item._node.original.is_leaf:
            hooks_of(item._node).retain = True
    return targets


def warn_create_graph() -> None:
    """Warn once per process that `create_graph=True` makes a reference cycle (HOG-02)."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
            "cause a memory leak. Use `xpgrad.autograd.grad` to avoid it, or set `.grad = None` afterwards",
            UserWarning,
            stacklevel=4,
        )


_warned = False
