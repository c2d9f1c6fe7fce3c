"""`jvp` and `linearize`: forward mode as transforms of functions, with the names of `torch.func`. They nest with all transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import as_flags, check_callable
from xpgrad._modes import state, switches
from xpgrad._modes.running import run_transformed
from xpgrad._operations.lift import lift_leaves, lift_like
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import gradients
from xpgrad._transforms.forward.levels import new_level
from xpgrad.func._reverse import check_leaves, has_outer_history, make_input
from xpgrad.func._tree import Structure, flatten, unflatten
from xpgrad.rules.creation import zeros_like


@state.restoring
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute the value of a function and its derivative along a direction, in one run of it (`torch.func.jvp`).

    Parameters
    ----------
    func : callable
        Takes Tensors, or nested tuples, lists and dicts of them, and returns the same.
    primals : tuple
        Arguments: ``func(*primals)`` is called. Raw arrays and numbers become Tensors.
    tangents : tuple
        Direction: of the structure of `primals`, with Tensors, raw arrays or numbers of their shapes.
    strict : bool
        Whether to raise RuntimeError if an output does not depend on the arguments, instead of returning zeros as its tangent.
    has_aux : bool
        Whether `func` returns ``(output, aux)``; `aux` is passed through unchanged.

    Returns
    -------
    tuple
        ``(output, tangent)``, or ``(output, tangent, aux)`` with `has_aux`; the tangent has the structure of the output.

    Raises
    ------
    RuntimeError
        If `primals` and `tangents` differ in structure or shapes, an output is not a Tensor, or `strict` is violated.
    ValueError
        If a dtype has no derivative.
    TypeError
        If `func` is not callable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0])
    >>> value, slope = xp.func.jvp(lambda x: x**3, (x,), (xp.ones_like(x),))
    >>> slope.tolist()
    [3.0, 12.0]
    """
    name = "jvp(f, primals, tangents)"
    check_callable(func, "jvp")
    strict, has_aux = as_flags("jvp", strict=strict, has_aux=has_aux)
    if not isinstance(primals, tuple):
        msg = f"{name}: Expected primals to be a tuple, but got {type(primals).__name__}. E.g. it should be valid to call f(*primals)."
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    points, structure = flatten(primals)
    directions, other = flatten(tangents)
    if structure != other:
        msg = (
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, "
            f"tangents also must be. Got {len(points)} primals in {_text(structure)} and {len(directions)} tangents in {_text(other)}"
        )
        raise RuntimeError(msg)
    points = lift_leaves(name, points, numbers=True)
    _need_tensors(name, "primals", points)
    directions = [lift_like(name, t, x) for x, t in zip(points, directions)]
    _need_tensors(name, "tangents", directions)
    with new_level() as level:
        duals = [level.dual(x, t) for x, t in zip(points, directions)]
        result = run_transformed("jvp", (), func, *unflatten(structure, duals))
        aux: Any = None
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                msg = f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
                raise RuntimeError(msg)
            result, aux = result
        outs, shape = flatten(result)
        _check_outputs(name, outs)
        found = [level.tangent(y) for y in outs]
    if strict and any(t is None for t in found):
        msg = f"{name[:-1]}, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
        raise RuntimeError(msg)
    slopes = [zeros_like(y) if t is None else t for y, t in zip(outs, found)]
    both = unflatten(shape, outs), unflatten(shape, slopes)
    return (*both, aux) if has_aux else both


def _text(structure: Structure) -> str:
    if structure.container is None:
        return "*"
    inside = ", ".join(_text(child) for child in structure.children)
    return f"{structure.container.__name__}({inside})"


def _need_tensors(name: str, what: str, leaves: list[Any]) -> None:
    if not leaves:
        msg = f"{name}: Expected {what} to contain at least one Tensor."
        raise RuntimeError(msg)
    for x in leaves:
        if not isinstance(x, Tensor):
            msg = f"{name}: Expected {what} to only contain Tensors, got {type(x)}; wrap it with `xpgrad.asarray`"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)


def _check_outputs(name: str, outs: list[Any]) -> None:
    if all(y is None for y in outs):
        msg = f"{name}: Expected f to be a function that has non-empty output (got output = {outs})"
        raise RuntimeError(msg)
    for y in outs:
        if not isinstance(y, Tensor):
            msg = f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(y)}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)


@state.restoring
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute the value of a function and the linear function that approximates it there (`torch.func.linearize`).

    It replaces many calls of `jvp` with the same primals: `func` runs only once. The linear function is recorded, and transposed twice.

    Parameters
    ----------
    func : callable
        Takes Tensors, or nested tuples, lists and dicts of them, and returns the same.
    *primals : Tensor, array, number or nested containers of them
        Arguments of `func`.

    Returns
    -------
    output : Tensor or nested containers of Tensors
        ``func(*primals)``.
    jvp_fn : callable
        ``jvp_fn(*tangents)`` returns the tangent of the output. Its derivatives with respect to the primals, and to Tensors that `func`
        captured, are those of `jvp`; PyTorch 2.13 has none.

    Raises
    ------
    RuntimeError
        If an argument or an output is not a Tensor of a floating-point or complex dtype; when `jvp_fn` is called, if the tangents have
        another structure, shape or dtype than the primals.
    TypeError
        If `func` is not callable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> value, slope = xp.func.linearize(xp.sin, xp.tensor(0.0))
    >>> slope(xp.tensor(2.0)).item()
    2.0
    """
    name = "linearize(f, *primals)"
    check_callable(func, "linearize")
    recording = state.is_grad_enabled()
    points, structure = flatten(primals)
    points = lift_leaves(name, points, numbers=True)
    _need_tensors(name, "primals", points)
    check_leaves("linearize", points)
    with switches.recorded():
        points = [x.clone() if x.is_inference() else x for x in points]  # inference tensors cannot be saved in a graph
        probes = [_start(x) for x in points]  # where the linear function begins
        with new_level(records=True) as level:
            duals = [level.dual(x, t) for x, t in zip(points, probes)]
            result = run_transformed("linearize", (), func, *unflatten(structure, duals))
            outs, shape = flatten(result)
            _check_outputs(name, outs)
            found = [level.tangent(y) for y in outs]
        depends = [k for k, t in enumerate(found) if t is not None and t.requires_grad]
        seeds = [_start(outs[k]) for k in depends]
        transposed = (
            gradients([found[k] for k in depends], probes, seeds, create_graph=True, allow_unused=True) if depends else [None] * len(probes)
        )
    places = [i for i, v in enumerate(transposed) if v is not None and v.requires_grad]
    keep = recording and has_outer_history([transposed[i] for i in places], [*probes, *seeds])

    @state.restoring
    def jvp_fn(*tangents: Any) -> Any:
        """Return the tangent of the output along `tangents`."""
        directions, other = flatten(tangents)
        if other != structure:
            msg = f"Expected the tangents {_text(other)} to have the same argspec as the primals {_text(structure)}"
            raise RuntimeError(msg)
        directions = [lift_like("jvp_fn(*tangents)", t, x) for x, t in zip(points, directions)]
        _need_tensors("jvp_fn(*tangents)", "tangents", directions)
        for i, (t, x) in enumerate(zip(directions, points)):
            for what in ("shape", "dtype"):
                if getattr(t, what) != getattr(x, what):
                    msg = (
                        f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't match the {what} {getattr(x, what)} of "
                        "the corresponding primal."
                    )
                    raise RuntimeError(msg)
        slopes = [zeros_like(y) for y in outs]
        if places:
            recorded = state.is_grad_enabled() and (keep or any(t.requires_grad for t in directions))
            pulled = gradients(
                [transposed[i] for i in places], seeds, [directions[i] for i in places], retain_graph=True, create_graph=recorded,
                allow_unused=True,
            )  # fmt: skip
            for k, v in zip(depends, pulled):
                slopes[k] = slopes[k] if v is None else v
        return unflatten(shape, slopes)

    return result, jvp_fn


def _start(x: Any) -> Any:
    """Return zeros like `x` at which a history begins."""
    return make_input(zeros_like(x))
