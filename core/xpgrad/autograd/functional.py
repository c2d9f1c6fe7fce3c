"""`xpgrad.autograd.functional`: Jacobians, Hessians and their products with vectors, of functions of Tensors.

The functions work on detached copies of their inputs or, with `create_graph`, on views of them. They do not change any ``.grad``, and
values that a function captures are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flags, check_callable
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names, refusal
from xpgrad._modes import state, switches
from xpgrad._tape.requests import grad
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import gradients
from xpgrad.func import jacfwd
from xpgrad.func._reverse import basis, make_input, release
from xpgrad.rules.creation import zeros, zeros_like
from xpgrad.rules.manipulation import reshape, stack

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


def _check_arguments(name: str, func: Any, **flags: Any) -> tuple[bool, ...]:
    """Check that `func` is callable, and return the flags as bools."""
    check_callable(func, name)
    return as_flags(name, **flags)


# -- what docstrings have in common ---------------------------------------------------------------------------------------------------

_PARAMETERS = """\
inputs : Tensor or tuple of Tensors
    The point at which `func` is differentiated.
v : Tensor or tuple of Tensors, optional
    The vector, with the inputs' shapes; may be left out for a single input with one element.
create_graph : bool
    Record the computation, so that the result can be differentiated.
strict : bool
    Raise for an output that does not depend on an input, instead of returning zeros.
vectorize : bool
    Compute all rows in one batched backward pass."""
_document_jacobian = shares(
    parameters=f"""\
func : callable
    A function of Tensors that returns a Tensor or a tuple of Tensors.
{_PARAMETERS}""",
    raises="""\
RuntimeError
    The vector is missing or has the wrong shape; or, in strict mode, an output does not depend on an input.""",
)
_document_hessian = shares(
    parameters=f"""\
func : callable
    A function of Tensors that returns a Tensor with one element.
{_PARAMETERS}""",
    returns="""\
output : Tensor
    The result of `func`.
product : Tensor or tuple of Tensors
    The product, with the inputs' structure and shapes.""",
    raises="""\
RuntimeError
    The vector is missing or has the wrong shape; `func` returns several results; or, in strict mode, a derivative does not depend on
    an input.""",
)


# -- what goes in and comes out -------------------------------------------------------------------------------------------------------


def _tuple(given: Any, name: str, what: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether `given` is a tuple, and its value as a tuple.

    Raises
    ------
    TypeError
        `given` is neither a Tensor nor a tuple of Tensors (FNL-04).
    """
    several = isinstance(given, tuple)
    found = given if several else (given,)
    verb = "of the user-provided function given to" if what == "outputs" else "given to"
    for i, item in enumerate(found):
        if not isinstance(item, Tensor):
            kind = f"at index {i} is of type {type(item)}" if several else f"has type {type(item)}"
            msg = f"The {what} {verb} {name} must be either a Tensor or a tuple of Tensors but the given {what} {kind}."
            raise TypeError(msg)
    return several, found


def _leaves(inputs: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """Return the arguments for the function: new leaves, or with `create_graph` views that lead to the caller's Tensors."""
    if state.carries_tangents():  # inside forward mode `detach` would lose the tangents
        return tuple(make_input(x) for x in inputs)
    return tuple(x[...] if create_graph and x.requires_grad else _constant(x).requires_grad_() for x in inputs)


def _constant(x: Tensor) -> Tensor:
    return x.clone() if x.is_inference() else x.detach()  # inference tensors cannot be saved in a graph


def _call(
    func: Callable[..., Any], inputs: Any, name: str, create_graph: bool
) -> tuple[bool, tuple[Tensor, ...], bool, tuple[Tensor, ...]]:
    """Call the function; return whether the inputs are a tuple, the leaves, whether the outputs are a tuple, and the outputs."""
    several, given = _tuple(inputs, name, "inputs")
    leaves = _leaves(given, create_graph)
    many, outputs = _tuple(func(*leaves), name, "outputs")
    return several, leaves, many, outputs


def _release(value: Any, create_graph: bool) -> Any:
    """Return a result, detached unless `create_graph` is set (FNL-03, FNL-10)."""
    if isinstance(value, tuple):
        return tuple(_release(v, create_graph) for v in value)
    if create_graph:
        return value
    return release(value, False)


def _pack(several: bool, values: Sequence[Any]) -> Any:
    return tuple(values) if several else values[0]


def _vector(v: Any, several: bool, wanted: Sequence[Tensor], name: str, whose: str) -> tuple[Tensor | None, ...]:
    """Check the vector `v` of a product, and return it as a tuple.

    Parameters
    ----------
    v : Tensor, tuple of Tensor, or None
        None stands for 1 (FNL-08, FNL-09), which complex outputs refuse (FNL-13); the result is then ``(None,)``.
    several : bool
        Whether `wanted` was given, or returned, as a tuple.
    wanted : sequence of Tensor
        The Tensors whose shapes it must have.
    name, whose : str
        The function, and what `wanted` are, for messages.
    """
    if v is None:
        if several or wanted[0].numel() != 1:
            msg = f"{name}: The vector v can only be None if the {whose} a single Tensor with a single element."
            raise RuntimeError(msg)
        return (None,)
    tuple_given, found = _tuple(v, name, "v")
    if len(found) != len(wanted):
        msg = "The given v should contain a single Tensor."
        if several:
            msg = f"v is a tuple of invalid length: should be {len(wanted)} but got {len(found)}."
        raise RuntimeError(msg)
    for i, (item, like) in enumerate(zip(found, wanted)):
        if item.shape != like.shape:
            entry = f"Entry {i} in " if tuple_given else ""
            msg = f"{entry}v has invalid size: should be {like.shape} but got {item.shape}."
            raise RuntimeError(msg)
    return found


def _zeros(like: Tensor) -> Tensor:
    return zeros_like(like.detach())


# -- differentiating ------------------------------------------------------------------------------------------------------------------


def _products(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor | None], create: bool
) -> tuple[Tensor | None, ...]:
    """Return one vector-Jacobian product per input; None if no output depends on it. Outputs without history are constants.

    Parameters
    ----------
    outputs, inputs : sequence of Tensor
    seeds : sequence of (Tensor or None)
        The vectors. None stands for 1, as for `backward` (BWD-04, BWD-07).
    create : bool
        Whether the products have a history.
    """
    used = [k for k, out in enumerate(outputs) if out.requires_grad]
    if not used:
        return (None,) * len(inputs)
    found: tuple[Tensor | None, ...] = grad(
        [outputs[k] for k in used], list(inputs), [seeds[k] for k in used], retain_graph=True, create_graph=create, allow_unused=True
    )
    return found


def _check_recorded(outputs: Sequence[Tensor], strict: bool, what: str = "Output {} of the user-provided function") -> None:
    """In strict mode, raise for outputs that do not require grad (FNL-02)."""
    for i, out in enumerate(outputs):
        if strict and not out.requires_grad:
            msg = (
                f"{what.format(i)} does not require gradients. The outputs must be computed in a differentiable manner from the input when "
                "running in strict mode."
            )
            raise RuntimeError(msg)


def _fill_zeros(found: Sequence[Tensor | None], inputs: Sequence[Tensor], strict: bool, what: str) -> tuple[Tensor, ...]:
    """Replace missing products by zeros; in strict mode raise for them."""
    done = []
    for j, (g, x) in enumerate(zip(found, inputs)):
        if g is None and strict:
            msg = f"{what} is independent of input {j}. This is not allowed in strict mode."
            raise RuntimeError(msg)
        done.append(_zeros(x) if g is None else g)
    return tuple(done)


def _check_differentiable(values: Sequence[Tensor], strict: bool, create_graph: bool, what: str) -> None:
    """In strict mode with `create_graph`, raise for values without history."""
    for j, g in enumerate(values):
        if strict and create_graph and not g.requires_grad:
            msg = f"{what} is independent of input {j}. This is not allowed in strict mode when create_graph=True."
            raise RuntimeError(msg)


def _jacobian_blocks(out: Tensor, leaves: Sequence[Tensor], i: int, create: bool, strict: bool, vectorize: bool) -> tuple[Tensor, ...]:
    """Return the Jacobian of output `i` for each input, of shape ``output.shape + input.shape``; the options are those of `jacobian`."""
    what = f"Output {i} of the user-provided function"
    shapes = [(*out.shape, *x.shape) for x in leaves]
    n = out.numel()
    rows: list[Sequence[Tensor]]
    if not out.requires_grad or n == 0:
        _fill_zeros([None] * len(leaves), leaves, strict and n > 0, what)
        return tuple(zeros(shape, dtype=x.dtype, device=x.device) for x, shape in zip(leaves, shapes))
    if vectorize:
        blocks = gradients([out], list(leaves), basis([out], 0, n), retain_graph=True, create_graph=create, allow_unused=True,
                           is_grads_batched=True)  # fmt: skip
        return tuple(zeros(s, dtype=x.dtype, device=x.device) if g is None else reshape(g, s) for g, x, s in zip(blocks, leaves, shapes))
    flat, rows = reshape(out, (n,)), []
    for k in range(n):
        row = _products((flat[k],), leaves, (None,), create)
        filled = _fill_zeros(row, leaves, strict, what)
        _check_differentiable(filled, strict, create, "The jacobian of the user-provided function")
        rows.append(filled)
    return tuple(reshape(stack([row[j] for row in rows]), shape) for j, shape in enumerate(shapes))


@_document_jacobian
def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Compute the Jacobian of a function.

    Parameters
    ----------
    strategy : str
        ``"reverse-mode"``, or ``"forward-mode"``, which needs `vectorize`.

    Returns
    -------
    Tensor or tuple
        Shape output.shape + input.shape. A tuple over the inputs if these are a tuple, over the outputs if these are, and a tuple over
        the outputs of tuples over the inputs if both are.

    Raises
    ------
    TypeError
        Inputs or outputs are neither a Tensor nor a tuple of Tensors.
    RuntimeError
        In strict mode, an output does not depend on an input; or `strict` is combined with `vectorize`.
    NotImplementedError
        The forward-mode strategy is combined with `create_graph`, or used without `vectorize`.
    AssertionError
        `strategy` is unknown.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import jacobian
    >>> jacobian(lambda x: xp.stack([x[0] * x[1], x[0] + x[1]]), xp.tensor([2.0, 3.0]))
    tensor([[3., 2.],
            [1., 1.]])
    >>> jacobian(lambda x, y: x * y, (xp.tensor(2.0), xp.tensor(3.0)))
    (tensor(3.), tensor(2.))
    """
    create_graph, strict, vectorize = _check_arguments("jacobian", func, create_graph=create_graph, strict=strict, vectorize=vectorize)
    _check_strategy(strategy, vectorize, create_graph, strict)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    with switches.recorded():
        several, leaves, many, outputs = _call(func, inputs, "jacobian", create_graph)
        _check_recorded(outputs, strict)
        blocks = tuple(_pack(several, _jacobian_blocks(out, leaves, i, create_graph, strict, vectorize)) for i, out in enumerate(outputs))
    return _release(_pack(many, blocks), create_graph)


def _forward_jacobian(func: Callable[..., Any], inputs: Any) -> Any:
    """Compute the Jacobian in forward mode: all columns in one call of the function."""
    several, given = _tuple(inputs, "jacobian", "inputs")
    many = False

    def run(*xs: Tensor) -> tuple[Tensor, ...]:
        nonlocal many
        many, outputs = _tuple(func(*xs), "jacobian", "outputs")
        return outputs

    blocks = jacfwd(run, argnums=tuple(range(len(given))))(*(x.detach() for x in given))
    return _release(_pack(many, tuple(_pack(several, row) for row in blocks)), False)


def _check_strategy(strategy: str, vectorize: bool, create_graph: bool, strict: bool) -> None:
    """Raise an error if the options of `jacobian` cannot be combined."""
    if not isinstance(strategy, str) or strategy not in ("forward-mode", "reverse-mode"):
        msg = f'Expected strategy to be either "forward-mode" or "reverse-mode" but got {strategy!r}'
        raise AssertionError(msg)
    if strategy == "forward-mode":
        if create_graph:
            msg = "`create_graph=True` is not supported with the forward-mode strategy; use the reverse-mode strategy"
            raise NotImplementedError(msg)
        if strict:
            msg = '`strict=True` is not supported with `strategy="forward-mode"`; use the reverse-mode strategy'
            raise RuntimeError(msg)
        if not vectorize:
            msg = "Computing Jacobian using forward-mode AD is only implemented for `vectorize=True`."
            raise NotImplementedError(msg)
    if vectorize and strict:
        msg = "xpgrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together; choose one"
        raise RuntimeError(msg)


@_document_hessian
def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Compute the Hessian of a function with a single result.

    Parameters
    ----------
    outer_jacobian_strategy : str
        The `strategy` of `jacobian`, for the Jacobian of the gradient.

    Returns
    -------
    Tensor or tuple of tuples
        Shape input.shape + input.shape; ``H[i][j]`` for inputs i and j if the inputs are a tuple.

    Raises
    ------
    RuntimeError
        The function returns several Tensors, or several elements; or, in strict mode, a derivative does not depend on an input.
    AssertionError
        `outer_jacobian_strategy` is unknown.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import hessian
    >>> hessian(lambda x: (x**3).sum(), xp.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    >>> hessian(lambda x, y: x * y * y, (xp.tensor(3.0), xp.tensor(5.0)))
    ((tensor(0.), tensor(10.)), (tensor(10.), tensor(6.)))
    """
    create_graph, strict, vectorize = _check_arguments("hessian", func, create_graph=create_graph, strict=strict, vectorize=vectorize)
    several, _ = _tuple(inputs, "hessian", "inputs")

    def gradient(*xs: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            xs = _leaves(xs, True)
        with switches.recorded():
            out = _single(func(*xs), "hessian")
        _check_recorded((out,), strict)
        if out.requires_grad and strict:
            _fill_zeros(_products((out,), xs, (None,), False), xs, strict, "Output 0 of the user-provided function")
        found = _fill_zeros(_products((out,), xs, (None,), True), xs, False, "")
        _check_differentiable(found, strict, True, "The jacobian of the user-provided function")
        return found

    if not several:
        return jacobian(lambda x: gradient(x)[0], inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _single(out: Any, name: str) -> Tensor:
    """Check that a function returned a single Tensor with one element, and return it."""
    many, (first, *_) = _tuple(out, name, "outputs")
    if many:
        msg = f"The function given to {name} should return a single Tensor, not a tuple"
        raise RuntimeError(msg)
    if first.numel() != 1:
        msg = f"The Tensor returned by the function given to {name} should contain a single element, but has shape {first.shape}"
        raise RuntimeError(msg)
    return first


@_document_jacobian
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the outputs of a function, and the product of a vector with its Jacobian.

    Parameters
    ----------
    v : Tensor or tuple of Tensors, optional
        The vector, with the outputs' shapes; may be left out for a single output with one element.

    Returns
    -------
    outputs : Tensor or tuple of Tensors
        The result of `func`.
    product : Tensor or tuple of Tensors
        The product, with the inputs' structure and shapes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import vjp
    >>> value, product = vjp(lambda x: xp.sum(x * x), xp.tensor([1.0, 2.0]), xp.tensor(10.0))
    >>> value, product
    (tensor(5.), tensor([20., 40.]))
    """
    return _product("vjp", func, inputs, v, create_graph, strict)


@_document_jacobian
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the outputs of a function, and the product of its Jacobian with a vector.

    It runs in reverse mode: the vector-Jacobian product is linear in its vector, and its derivative is this product.

    Parameters
    ----------
    v : Tensor or tuple of Tensors, optional
        The vector, with the inputs' shapes; may be left out for a single input with one element.

    Returns
    -------
    outputs : Tensor or tuple of Tensors
        The result of `func`.
    product : Tensor or tuple of Tensors
        The product, with the outputs' structure and shapes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import jvp
    >>> value, product = jvp(lambda x: x * x, xp.tensor([1.0, 2.0]), xp.tensor([1.0, 10.0]))
    >>> value, product
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    return _product("jvp", func, inputs, v, create_graph, strict)


@_document_hessian
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the result of a function, and the product of a vector with its Hessian.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import vhp
    >>> value, product = vhp(lambda x: x[0] * x[0] * x[1], xp.tensor([1.0, 2.0]), xp.tensor([1.0, 0.0]))
    >>> value, product
    (tensor(2.), tensor([4., 2.]))
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


@_document_hessian
def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Compute the result of a function, and the product of its Hessian with a vector.

    It differentiates once more than `vhp`. Both products are equal where the second derivatives are continuous.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd.functional import hvp
    >>> value, product = hvp(lambda x: (x**3).sum(), xp.tensor([1.0, 2.0]), xp.tensor([1.0, 10.0]))
    >>> value, product
    (tensor(9.), tensor([  6., 120.]))
    """
    return _product("hvp", func, inputs, v, create_graph, strict)


def _product(name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    """Compute the outputs and the product for `vjp`, `jvp`, `vhp` or `hvp`, by `name`; the other parameters are theirs."""
    create_graph, strict = _check_arguments(name, func, create_graph=create_graph, strict=strict)
    second, whose = name in ("vhp", "hvp"), "of the user-provided function"
    with switches.recorded():
        several, leaves, many, outputs = _call(func, inputs, name, create_graph)
        if name == "vjp":
            _check_recorded(outputs, strict)
            vector = _vector(v, many, outputs, name, "user-provided function returns")
        else:
            vector = _vector(v, several, leaves, name, "input to the user-provided function is")
            if second:
                _single(outputs if many else outputs[0], name)
            _check_recorded(outputs, strict)
        roots, part = outputs, f"The {'jacobian' if second else 'output'} {whose}"
        if second:
            roots = _fill_zeros(_products(outputs, leaves, (None,), True), leaves, strict, f"The output {whose}")
        if name in ("jvp", "hvp"):  # the vjp is linear in its vector, and its derivative is the jvp
            dummies = tuple(_zeros(y).requires_grad_() for y in roots)
            pulled = _fill_zeros(_products(roots, leaves, dummies, True), leaves, strict, part)
            found = _fill_zeros(
                _products(pulled, dummies, vector, create_graph), roots, strict, f"The {'hessian' if second else 'jvp'} {whose}"
            )
        else:
            found = _fill_zeros(_products(roots, leaves, vector, create_graph), leaves, strict, part)
        _check_differentiable(found, strict, create_graph, f"The {'hessian' if second else 'jacobian'} {whose}")
    product = _pack(many if name == "jvp" else several, found)
    return _release(_pack(many, outputs), create_graph), _release(product, create_graph)
