"""Products of a derivative with many seeds at once: tangents or gradients as a batch, in one run of the function per chunk of seeds."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._modes import switches
from xpgrad._modes.batch_levels import BatchLevel
from xpgrad._modes.running import run_transformed
from xpgrad._transforms.batch.passes import gradients
from xpgrad._transforms.forward.levels import new_level
from xpgrad.func._jacobians import batched_dual, stacked_tangents
from xpgrad.func._reverse import make_input, put_back, select_arguments
from xpgrad.func._sparse.host import np
from xpgrad.func._sparse.tracing import Call
from xpgrad.func._tree import flatten, unflatten
from xpgrad.rules.creation import zeros, zeros_like
from xpgrad.rules.manipulation import concat, reshape_to

_ELEMENTS = 1 << 22  # of the seeds of a chunk, and of what comes out: 32 MB


class Seeds:
    """The seeds of a colouring: for each colour a vector that is 1 at its members, cut into parts like some Tensors, on their device.

    Parameters
    ----------
    colours : array of int
        Colour of each element of the Tensors, one after the other in row-major order; -1 for none.
    count : int
        Number of colours.
    like : list of Tensor
        Tensors whose shapes, dtypes and devices the parts have.
    chunk : int
        Largest number of colours in one run.
    """

    def __init__(self, colours: Any, count: int, like: list[Any], chunk: int) -> None:
        self.chunks = [_seeds(colours, first, min(first + chunk, count), like) for first in range(0, count, chunk)]

    @classmethod
    def of(cls, vector: Any, like: list[Any]) -> Seeds:
        """Return one seed with given values."""
        self = cls.__new__(cls)
        self.chunks = [_split_rows(vector.reshape(1, -1), like)]
        return self


def _seeds(colours: Any, first: int, stop: int, like: list[Any]) -> list[Any]:
    members = np.flatnonzero((colours >= first) & (colours < stop))
    whole = np.zeros((stop - first, len(colours)))
    whole[colours[members] - first, members] = 1.0
    return _split_rows(whole, like)


def _split_rows(whole: Any, like: list[Any]) -> list[Any]:
    """Return rows of a NumPy array as Tensors of shape ``(rows, *x.shape)``, of the dtype and on the device of each `x`."""
    parts, start = [], 0
    for x in like:
        size = int(np.prod(x.shape, dtype=np.int64))
        host = np.ascontiguousarray(whole[:, start : start + size]).reshape(len(whole), *x.shape)
        cls = type(x._stand_in())
        host = host.astype(x.dtype.name if x.dtype.name == "float64" else "float32")  # from which any narrower dtype is cast
        parts.append(cls._wrap(cls.backend.from_host(host, cls.device))._cast(x.dtype))
        start += size
    return parts


def chunk_for(given: int | None, inputs: int, outputs: int) -> int:
    """Return the number of seeds of one run: the user's, or one that keeps each array of the run small."""
    return given or max(1, _ELEMENTS // max(inputs, outputs, 1))


def leaves_of(call: Call) -> list[Any]:
    """Return the arguments with respect to which a function is differentiated, detached."""
    _, leaves, _ = select_arguments(call.name, call.args, call.argnums)
    return [x.detach() for x in leaves]


def outputs_of(call: Call, out: Any) -> tuple[list[Any], Any]:
    """Check the outputs of a function, and return them and its `aux`.

    Raises
    ------
    RuntimeError
        If an output is not a real floating-point Tensor, or `has_aux` is True and the function returned no pair.
    """
    aux: Any = None
    if call.has_aux:
        if not (isinstance(out, tuple) and len(out) == 2):
            msg = f"{call.name}: with has_aux=True the function must return a tuple (output, aux), but got {type(out).__name__}"
            raise RuntimeError(msg)
        out, aux = out
    leaves, _ = flatten(out)
    for y in leaves:
        what = None
        if not hasattr(y, "_array"):
            what = f"{type(y).__name__}; return a Tensor, or nested tuples, lists and dicts of Tensors"
        elif y.dtype.is_complex:
            what = f"a Tensor of {y.dtype}, and complex numbers are refused; return `xpgrad.real(y)` and `xpgrad.imag(y)`"
        elif not y.dtype.differentiable:
            what = f"a Tensor of {y.dtype}, which has no derivative"
        if what is not None:
            msg = f"{call.name}: Expected the function to return real floating Tensors, but got {what}"
            raise RuntimeError(msg)
    if not leaves:
        msg = f"{call.name}: Expected the function to return at least one Tensor"
        raise RuntimeError(msg)
    return leaves, aux


def _flat(parts: list[Any], rows: int) -> Any:
    """Join parts with `rows` along their first axis (which they lack for one row) in one Tensor of shape ``(rows, elements)``."""
    flat = [reshape_to(p, (rows, math.prod(p.shape) // rows)) for p in parts]
    return flat[0] if len(flat) == 1 else concat(flat, axis=1)


def _whole(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else concat(pieces, axis=0)


def from_right(call: Call, seeds: Seeds) -> tuple[Any, Any]:
    """Return the Jacobian times each seed, of shape ``(seeds, outputs)``, and the function's `aux`."""
    places, leaves, structure = select_arguments(call.name, call.args, call.argnums)
    leaves = [x.detach() for x in leaves]
    pieces: list[Any] = []
    aux: Any = None
    for directions in seeds.chunks:
        rows = len(directions[0])
        level = None if rows == 1 else BatchLevel(rows, "error")  # one needs no batch
        with new_level() as tangents:
            duals = [tangents.dual(x, d[0]) if level is None else batched_dual(tangents, x, d, level) for x, d in zip(leaves, directions)]
            out = run_transformed(
                call.name, (), call.func, *put_back(call.args, call.argnums, places, unflatten(structure, duals)), **call.kwargs
            )
            outs, aux = outputs_of(call, out)
            slopes = [tangents.tangent(y) if level is None else stacked_tangents(tangents, y, level) for y in outs]
            pieces.append(_flat([zeros_like(y) if t is None else t for y, t in zip(outs, slopes)], rows))
    return _whole(pieces), aux


def from_left(call: Call, seeds: Seeds) -> tuple[Any, Any]:
    """Return each seed times the Jacobian, of shape ``(seeds, inputs)``, and the function's `aux`."""
    with switches.recorded():
        inner, outs, aux = _run(call)
        return _pull_back(outs, inner, seeds), aux


def of_gradient(call: Call, seeds: Seeds) -> tuple[Any, Any]:
    """Return the Hessian times each seed, of shape ``(seeds, inputs)``, and the function's `aux`: reverse over reverse, as `hessian`."""
    with switches.recorded():
        inner, outs, aux = _run(call)
        check_scalar(call.name, outs)
        slopes = _gradient(outs, inner)
        return _pull_back(slopes, inner, seeds), aux


def check_scalar(name: str, outs: list[Any]) -> None:
    """Raise RuntimeError unless there is one output, a 0-d Tensor."""
    if len(outs) != 1 or outs[0].shape:
        what = f"one of shape {outs[0].shape}" if len(outs) == 1 else f"{len(outs)} of them"
        msg = f"{name}: Expected the function to return a scalar tensor, got {what}; reduce it, e.g. with `xpgrad.sum`"
        raise RuntimeError(msg)


def _gradient(outs: list[Any], inner: list[Any]) -> list[Any]:
    """Return the gradient of a function's only output, with a history."""
    if not outs[0].requires_grad:
        return [zeros(x.shape, dtype=x.dtype, device=x.device) for x in inner]
    found = gradients(outs, inner, [None], retain_graph=True, create_graph=True, allow_unused=True)
    return [zeros(x.shape, dtype=x.dtype, device=x.device) if g is None else g for x, g in zip(inner, found)]


def _run(call: Call) -> tuple[list[Any], list[Any], Any]:
    """Run the function on new Tensors at which a history begins; return these, the outputs and `aux`."""
    places, leaves, structure = select_arguments(call.name, call.args, call.argnums)
    inner = [make_input(x.detach()) for x in leaves]
    out = run_transformed(
        call.name, inner, call.func, *put_back(call.args, call.argnums, places, unflatten(structure, inner)), **call.kwargs
    )
    outs, aux = outputs_of(call, out)
    return inner, outs, aux


def _pull_back(outs: list[Any], inner: list[Any], seeds: Seeds) -> Any:
    pieces = []
    for k, chunk in enumerate(seeds.chunks):
        rows = len(chunk[0])
        needed = [(y, s) for y, s in zip(outs, chunk) if y.requires_grad]
        found: list[Any] = [None] * len(inner)
        if needed:
            found = gradients(
                [y for y, _ in needed], inner, [s[0] if rows == 1 else s for _, s in needed], allow_unused=True, is_grads_batched=rows > 1,
                retain_graph=True if k + 1 < len(seeds.chunks) else None,
            )  # fmt: skip
        pieces.append(
            _flat([zeros((rows, *x.shape), dtype=x.dtype, device=x.device) if g is None else g for g, x in zip(found, inner)], rows)
        )
    return _whole(pieces)
