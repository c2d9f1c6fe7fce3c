"""Group X: tables of arguments, and the rules for each: which values are refused, and which forms are equivalent.

The contracts that go through these tables are in `x_refusals` (DER-24) and `x_forms` (DER-25).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contracts.x_functions import close, exact
from xpgrad_conformance.functions import as_list

#: A call that takes the value of one argument.
Given = Callable[..., Any]
X = np.asarray([[0.4, -1.3, 0.9], [1.7, 0.6, -0.7]])


def func(lib: Any) -> Any:
    return lib.module("func")


def functional(lib: Any) -> Any:
    return lib.module("autograd.functional")


def double(v: Any) -> Any:
    return v * 2


def checkpoints(lib: Any) -> Any:
    return lib.module("utils.checkpoint")


def gradcheck(lib: Any, t: Any, name: str, v: Any, function: str = "gradcheck") -> Any:
    return getattr(lib.ag, function)(double, (t.x,), **{name: v})


#: Boolean arguments, by function and name.
FLAGS: dict[tuple[str, str], Given] = {
    **{(name, "keepdims"): lambda lib, t, v, name=name: getattr(lib.xp, name)(t.x, axis=0, keepdims=v)
       for name in ("sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "count_nonzero")},
    **{(name, "keepdims"): lambda lib, t, v, name=name: getattr(lib.xp, name)(t.b, axis=0, keepdims=v) for name in ("all", "any")},
    **{(name, "keepdims"): lambda lib, t, v, name=name: getattr(lib.xp.linalg, name)(t.x, keepdims=v)
       for name in ("vector_norm", "matrix_norm")},
    **{(name, flag): lambda lib, t, v, name=name, flag=flag: getattr(lib.xp, name)(t.x, **{flag: v})
       for name, flag in itertools.product(("sort", "argsort"), ("descending", "stable"))},
    **{(name, "include_initial"): lambda lib, t, v, name=name: getattr(lib.xp, name)(t.x, axis=0, include_initial=v)
       for name in ("cumulative_sum", "cumulative_prod")},
    ("isclose", "equal_nan"): lambda lib, t, v: lib.xp.isclose(t.x, t.x, equal_nan=v),
    ("isin", "invert"): lambda lib, t, v: lib.xp.isin(t.n, t.n, invert=v),
    ("linspace", "endpoint"): lambda lib, t, v: lib.xp.linspace(0.0, 1.0, 5, endpoint=v),
    ("cholesky", "upper"): lambda lib, t, v: lib.xp.linalg.cholesky(t.q, upper=v),
    ("svd", "full_matrices"): lambda lib, t, v: lib.xp.linalg.svd(t.q, full_matrices=v),
    ("astype", "copy"): lambda lib, t, v: lib.xp.astype(t.x, t.x.dtype, copy=v),
    ("asarray", "copy"): lambda lib, t, v: lib.xp.asarray(t.x, copy=v),
    ("from_dlpack", "copy"): lambda lib, t, v: lib.xp.from_dlpack(t.b, copy=v),
    ("reshape", "copy"): lambda lib, t, v: lib.xp.reshape(t.x, (6,), copy=v),
    **{(name, "requires_grad"): lambda lib, t, v, name=name: getattr(lib.xp, name)((2,), requires_grad=v)
       for name in ("zeros", "ones", "empty")},
    ("tensor", "requires_grad"): lambda lib, t, v: lib.ns.tensor([1.0], requires_grad=v),
    ("full", "requires_grad"): lambda lib, t, v: lib.xp.full((2,), 1.0, requires_grad=v),
    ("eye", "requires_grad"): lambda lib, t, v: lib.xp.eye(2, requires_grad=v),
    ("linspace", "requires_grad"): lambda lib, t, v: lib.xp.linspace(0.0, 1.0, 5, requires_grad=v),
    ("arange", "requires_grad"): lambda lib, t, v: lib.xp.arange(3.0, requires_grad=v),
    ("requires_grad_", "requires_grad"): lambda lib, t, v: t.x.requires_grad_(v),
    ("set_grad_enabled", "mode"): lambda lib, t, v: lib.ns.set_grad_enabled(v),
    ("set_multithreading_enabled", "mode"): lambda lib, t, v: lib.ag.set_multithreading_enabled(v),
    ("enforce_grad_layout_policy", "enable"): lambda lib, t, v: lib.ag.grad_mode.enforce_grad_layout_policy(v),
    ("set_detect_anomaly", "mode"): lambda lib, t, v: lib.ag.set_detect_anomaly(v),
    ("set_detect_anomaly", "check_nan"): lambda lib, t, v: lib.ag.set_detect_anomaly(True, check_nan=v),
    ("detect_anomaly", "check_nan"): lambda lib, t, v: lib.ag.detect_anomaly(check_nan=v),
    **{("grad", flag): lambda lib, t, v, flag=flag: lib.grad(lib.xp.sum(t.x), t.x, **{flag: v})
       for flag in ("materialize_grads", "allow_unused", "only_inputs", "is_grads_batched")},
    ("save_on_cpu", "pin_memory"): lambda lib, t, v: lib.graph.save_on_cpu(pin_memory=v),
    **{("checkpoint", flag): lambda lib, t, v, flag=flag: checkpoints(lib).checkpoint(double, t.x, **({"use_reentrant": False} | {flag: v}))
       for flag in ("use_reentrant", "debug", "early_stop", "preserve_rng_state")},
    ("checkpoint_sequential", "use_reentrant"): lambda lib, t, v: checkpoints(lib).checkpoint_sequential([double], 1, t.x, use_reentrant=v),
    ("set_checkpoint_early_stop", "enable"): lambda lib, t, v: checkpoints(lib).set_checkpoint_early_stop(v),
    **{(name, "has_aux"): lambda lib, t, v, name=name: getattr(func(lib), name)(lib.xp.sum, has_aux=v)(t.x)
       for name in ("grad", "grad_and_value", "jacrev", "jacfwd")},
    ("vjp", "has_aux"): lambda lib, t, v: func(lib).vjp(double, t.x, has_aux=v),
    **{("jvp", flag): lambda lib, t, v, flag=flag: func(lib).jvp(double, (t.x,), (t.x,), **{flag: v}) for flag in ("strict", "has_aux")},
    **{(name, flag): lambda lib, t, v, name=name, flag=flag: getattr(functional(lib), name)(lib.xp.sum, t.x, **{flag: v})
       for name, flag in itertools.product(("vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"), ("create_graph", "strict"))},
    **{(name, "vectorize"): lambda lib, t, v, name=name: getattr(functional(lib), name)(lib.xp.sum, t.x, vectorize=v)
       for name in ("jacobian", "hessian")},
    **{("gradcheck", flag): lambda lib, t, v, flag=flag: gradcheck(lib, t, flag, v)
       for flag in ("raise_exception", "check_undefined_grad", "check_grad_dtypes", "check_batched_grad", "check_batched_forward_grad",
                    "check_forward_ad", "check_backward_ad", "fast_mode")},
    **{("gradgradcheck", flag): lambda lib, t, v, flag=flag: gradcheck(lib, t, flag, v, "gradgradcheck")
       for flag in ("gen_non_contig_grad_outputs", "check_fwd_over_rev", "check_rev_over_rev")},
}  # fmt: skip

#: Integer arguments.
WHOLE: dict[tuple[str, str], Given] = {
    **{(name, "axis"): lambda lib, t, v, name=name: getattr(lib.xp, name)(t.x, axis=v)
       for name in ("sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "count_nonzero", "sort", "argsort", "diff",
                    "unstack", "flip", "squeeze", "expand_dims", "cumulative_sum", "cumulative_prod")},
    **{(name, "axis"): lambda lib, t, v, name=name: getattr(lib.xp, name)(t.b, axis=v) for name in ("all", "any")},
    **{(name, "axis"): lambda lib, t, v, name=name: getattr(lib.xp, name)([t.x, t.x], axis=v) for name in ("concat", "stack")},
    ("take", "axis"): lambda lib, t, v: lib.xp.take(t.x, t.i, axis=v),
    ("take_along_axis", "axis"): lambda lib, t, v: lib.xp.take_along_axis(t.x, t.n, axis=v),
    ("roll", "axis"): lambda lib, t, v: lib.xp.roll(t.x, 1, axis=v),
    ("roll", "shift"): lambda lib, t, v: lib.xp.roll(t.x, v),
    ("repeat", "axis"): lambda lib, t, v: lib.xp.repeat(t.x, 2, axis=v),
    ("repeat", "repeats"): lambda lib, t, v: lib.xp.repeat(t.x, v, axis=0),
    ("pad", "pad_width"): lambda lib, t, v: lib.xp.pad(t.x, v),
    ("permute_dims", "axes"): lambda lib, t, v: lib.xp.permute_dims(t.x, (v, 0)),
    ("moveaxis", "source"): lambda lib, t, v: lib.xp.moveaxis(t.x, v, 0),
    ("moveaxis", "destination"): lambda lib, t, v: lib.xp.moveaxis(t.x, 0, v),
    ("diff", "n"): lambda lib, t, v: lib.xp.diff(t.x, n=v),
    ("tensordot", "axes"): lambda lib, t, v: lib.xp.tensordot(t.x, t.x, axes=v),
    ("vecdot", "axis"): lambda lib, t, v: lib.xp.vecdot(t.x, t.x, axis=v),
    ("linspace", "num"): lambda lib, t, v: lib.xp.linspace(0.0, 1.0, v),
    ("eye", "n_rows"): lambda lib, t, v: lib.xp.eye(v),
    ("eye", "n_cols"): lambda lib, t, v: lib.xp.eye(2, v),
    ("eye", "k"): lambda lib, t, v: lib.xp.eye(2, k=v),
    ("tril", "k"): lambda lib, t, v: lib.xp.tril(t.x, k=v),
    ("triu", "k"): lambda lib, t, v: lib.xp.triu(t.x, k=v),
    ("diagonal", "offset"): lambda lib, t, v: lib.xp.linalg.diagonal(t.x, offset=v),
    ("trace", "offset"): lambda lib, t, v: lib.xp.linalg.trace(t.x, offset=v),
    ("cross", "axis"): lambda lib, t, v: lib.xp.linalg.cross(t.x, t.x, axis=v),
    ("matrix_power", "n"): lambda lib, t, v: lib.xp.linalg.matrix_power(t.q, v),
    **{(name, "axis"): lambda lib, t, v, name=name: getattr(lib.xp.fft, name)(t.x, axis=v) for name in ("fft", "ifft", "rfft", "irfft")},
    **{(name, "n"): lambda lib, t, v, name=name: getattr(lib.xp.fft, name)(t.x, n=v) for name in ("fft", "ifft", "rfft", "irfft")},
    **{(name, "axes"): lambda lib, t, v, name=name: getattr(lib.xp.fft, name)(t.x, axes=(v,)) for name in ("fftn", "ifftn", "rfftn")},
    **{(name, "axes"): lambda lib, t, v, name=name: getattr(lib.xp.fft, name)(t.x, axes=v) for name in ("fftshift", "ifftshift")},
    ("fftfreq", "n"): lambda lib, t, v: lib.xp.fft.fftfreq(v),
    ("flatten", "start_dim"): lambda lib, t, v: t.x.flatten(v),
    ("flatten", "end_dim"): lambda lib, t, v: t.x.flatten(0, v),
    ("transpose", "dim0"): lambda lib, t, v: t.x.transpose(v, 0),
    ("transpose", "dim1"): lambda lib, t, v: t.x.transpose(0, v),
    ("stride", "dim"): lambda lib, t, v: t.x.stride(v),
    ("index_add", "axis"): lambda lib, t, v: (t.x * 1).index_add_(v, t.i, t.x * 1),
    ("checkpoint_sequential", "segments"): lambda lib, t, v: checkpoints(lib).checkpoint_sequential([double], v, t.x),
    ("make_dual", "level"): lambda lib, t, v: lib.module("autograd.forward_ad").make_dual(t.x, t.x, level=v),
    ("unpack_dual", "level"): lambda lib, t, v: lib.module("autograd.forward_ad").unpack_dual(t.x, level=v),
    ("exit_dual_level", "level"): lambda lib, t, v: lib.module("autograd.forward_ad").exit_dual_level(level=v),
}  # fmt: skip

#: Arguments that are real numbers.
REALS: dict[tuple[str, str], Given] = {
    ("var", "correction"): lambda lib, t, v: lib.xp.var(t.x, correction=v),
    ("std", "correction"): lambda lib, t, v: lib.xp.std(t.x, correction=v),
    ("isclose", "rtol"): lambda lib, t, v: lib.xp.isclose(t.x, t.x, rtol=v),
    ("isclose", "atol"): lambda lib, t, v: lib.xp.isclose(t.x, t.x, atol=v),
    ("arange", "start"): lambda lib, t, v: lib.xp.arange(v),
    ("arange", "stop"): lambda lib, t, v: lib.xp.arange(0.0, v),
    ("arange", "step"): lambda lib, t, v: lib.xp.arange(0.0, 1.0, v),
    **{("gradcheck", name): lambda lib, t, v, name=name: gradcheck(lib, t, name, v) for name in ("eps", "atol", "rtol", "nondet_tol")},
}  # fmt: skip

#: Arguments that are real or complex numbers.
NUMBERS: dict[tuple[str, str], Given] = {
    ("linspace", "start"): lambda lib, t, v: lib.xp.linspace(v, 1.0, 3),
    ("linspace", "stop"): lambda lib, t, v: lib.xp.linspace(0.0, v, 3),
}

#: Boolean arguments for which PyTorch has its own message if they are text.
PASSES: dict[tuple[str, str], Given] = {
    **{("grad", flag): lambda lib, t, v, flag=flag: lib.grad(lib.xp.sum(t.x), t.x, **{flag: v})
       for flag in ("retain_graph", "create_graph")},
    **{("backward", flag): lambda lib, t, v, flag=flag: lib.backward(lib.xp.sum(t.x), **{flag: v})
       for flag in ("retain_graph", "create_graph")},
}  # fmt: skip

#: Arguments that are functions.
CALLABLES: dict[tuple[str, str], Given] = {
    **{(name, "func"): lambda lib, t, v, name=name: getattr(func(lib), name)(v)
       for name in ("grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "vmap")},
    ("vjp", "func"): lambda lib, t, v: func(lib).vjp(v, t.x),
    ("jvp", "func"): lambda lib, t, v: func(lib).jvp(v, (t.x,), (t.x,)),
    ("linearize", "func"): lambda lib, t, v: func(lib).linearize(v, t.x),
    **{(name, "func"): lambda lib, t, v, name=name: getattr(functional(lib), name)(v, t.x)
       for name in ("jacobian", "vhp", "hvp")},
    ("gradcheck", "func"): lambda lib, t, v: lib.ag.gradcheck(v, (t.x,)),
    ("gradgradcheck", "func"): lambda lib, t, v: lib.ag.gradgradcheck(v, (t.x,)),
    ("checkpoint", "function"): lambda lib, t, v: checkpoints(lib).checkpoint(v, t.x, use_reentrant=False),
    ("checkpoint", "context_fn"): lambda lib, t, v: checkpoints(lib).checkpoint(double, t.x, use_reentrant=False, context_fn=v),
    ("checkpoint_sequential", "functions"): lambda lib, t, v: checkpoints(lib).checkpoint_sequential([v], 1, t.x),
    ("no_grad", "func"): lambda lib, t, v: lib.ns.no_grad()(v),
    ("queue_callback", "callback"): lambda lib, t, v: lib.graph.queue_callback(v),
}  # fmt: skip

#: Arguments that choose between names.
CHOICES: dict[tuple[str, str], Given] = {
    ("searchsorted", "side"): lambda lib, t, v: lib.xp.searchsorted(t.v, t.v, side=v),
    ("meshgrid", "indexing"): lambda lib, t, v: lib.xp.meshgrid(t.v, t.v, indexing=v),
    ("qr", "mode"): lambda lib, t, v: lib.xp.linalg.qr(t.q, mode=v),
    ("vmap", "randomness"): lambda lib, t, v: func(lib).vmap(double, randomness=v),
    ("jacfwd", "randomness"): lambda lib, t, v: func(lib).jacfwd(double, randomness=v),
    **{(name, "norm"): lambda lib, t, v, name=name: getattr(lib.xp.fft, name)(t.x, norm=v)
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn")},
    **{(name, "chunk_size"): lambda lib, t, v, name=name: getattr(func(lib), name)(double, chunk_size=v)
       for name in ("vmap", "jacrev", "jacfwd")},
}  # fmt: skip

#: By kind of argument: the table, values that must be refused, and the error.
KINDS: tuple[tuple[dict[tuple[str, str], Given], tuple[Any, ...], type[Exception]], ...] = (
    (FLAGS, ("no", 2, 0.5, [True]), TypeError),
    (WHOLE, ("1", 1.5, True), TypeError),
    (PASSES, (2, 0.5, [True]), TypeError),
    (REALS, ("1", [1.0], 1j), TypeError),
    (NUMBERS, ("1", [1.0]), TypeError),
    (CALLABLES, (3, None), TypeError),
    (CHOICES, ("some", 0), ValueError),
)


def check_refused_arguments(lib: Any, operands: Callable[[Any], Any]) -> None:
    """Check that each argument refuses wrong values, with a message that names the function and then the argument."""
    if lib.oracle:  # PyTorch accepts some of them, and has its own messages
        return
    given = operands(lib)
    for table, wrong, error in KINDS:
        for ((function, argument), call), value in itertools.product(table.items(), wrong):
            if ("fft" in function and not lib.capabilities["fft"]) or (function == "stride" and not lib.capabilities["strides"]):
                continue
            with lib.case((function, argument, value)):
                with lib.raises(error) as caught:
                    call(lib, given, value)
                said = str(caught[0])
                places = said.find(function), said.find(f"`{argument}`")
                assert -1 < places[0] < places[1], f"{said!r} does not name {function!r}, and then {argument!r}"


# -- axes -----------------------------------------------------------------------------------------------------------------------------

Along = tuple[Callable[..., Any], Callable[..., Any]]

#: Functions along one axis, and their NumPy equivalents.
ALONG: dict[str, Along] = {
    **{name: (lambda lib, x, a, name=name: getattr(lib.xp, name)(x, axis=a), lambda x, a, name=name: getattr(np, name)(x, axis=a))
       for name in ("sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "count_nonzero", "argsort", "flip", "sort")},
    **{name: (lambda lib, x, a, name=name: getattr(lib.xp, name)(x > 0, axis=a), lambda x, a, name=name: getattr(np, name)(x > 0, axis=a))
       for name in ("all", "any")},
    **{f"{name}, kept": (lambda lib, x, a, name=name: getattr(lib.xp, name)(x, axis=a, keepdims=True),
                         lambda x, a, name=name: getattr(np, name)(x, axis=a, keepdims=True))
       for name in ("sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "count_nonzero")},
    "cumulative_sum": (lambda lib, x, a: lib.xp.cumulative_sum(x, axis=a), lambda x, a: np.cumsum(x, axis=a)),
    "cumulative_prod": (lambda lib, x, a: lib.xp.cumulative_prod(x, axis=a), lambda x, a: np.cumprod(x, axis=a)),
    "roll": (lambda lib, x, a: lib.xp.roll(x, 1, axis=a), lambda x, a: np.roll(x, 1, axis=a)),
    "repeat": (lambda lib, x, a: lib.xp.repeat(x, 2, axis=a), lambda x, a: np.repeat(x, 2, axis=a)),
    "take": (lambda lib, x, a: lib.xp.take(x, lib.indices([1, 0, 1]), axis=a), lambda x, a: np.take(x, [1, 0, 1], axis=a)),
    "diff": (lambda lib, x, a: lib.xp.diff(x, axis=a), lambda x, a: np.diff(x, axis=a)),
    "concat": (lambda lib, x, a: lib.xp.concat([x, x * 2], axis=a), lambda x, a: np.concatenate([x, x * 2], axis=a)),
    "unstack": (lambda lib, x, a: list(lib.xp.unstack(x, axis=a)), lambda x, a: list(np.moveaxis(x, a, 0))),
    "moveaxis": (lambda lib, x, a: lib.xp.moveaxis(x, a, 0), lambda x, a: np.moveaxis(x, a, 0)),
    "moveaxis, to": (lambda lib, x, a: lib.xp.moveaxis(x, 0, a), lambda x, a: np.moveaxis(x, 0, a)),
    "tensordot": (lambda lib, x, a: lib.xp.tensordot(x, x, axes=((a,), (a,))), lambda x, a: np.tensordot(x, x, axes=((a,), (a,)))),
    "vector_norm": (lambda lib, x, a: lib.xp.linalg.vector_norm(x, axis=a), lambda x, a: np.sqrt(np.sum(x * x, axis=a))),
    "fft": (lambda lib, x, a: lib.xp.fft.fft(x, axis=a), lambda x, a: np.fft.fft(x, axis=a)),
    "rfft": (lambda lib, x, a: lib.xp.fft.rfft(x, axis=a), lambda x, a: np.fft.rfft(x, axis=a)),
    "irfft": (lambda lib, x, a: lib.xp.fft.irfft(x * (1 + 1j), axis=a), lambda x, a: np.fft.irfft(x * (1 + 1j), axis=a)),
    "fftn": (lambda lib, x, a: lib.xp.fft.fftn(x, axes=(a,)), lambda x, a: np.fft.fftn(x, axes=(a,))),
    "fftshift": (lambda lib, x, a: lib.xp.fft.fftshift(x, axes=a), lambda x, a: np.fft.fftshift(x, axes=a)),
    "ifftshift": (lambda lib, x, a: lib.xp.fft.ifftshift(x, axes=a), lambda x, a: np.fft.ifftshift(x, axes=a)),
    "x.unbind": (lambda lib, x, a: list(x.unbind(a)), lambda x, a: list(np.moveaxis(x, a, 0))),
    "x.flatten": (lambda lib, x, a: x.flatten(a), lambda x, a: x.reshape(*x.shape[: a % x.ndim], -1)),
    "x.transpose": (lambda lib, x, a: x.transpose(a, 0), lambda x, a: x.swapaxes(a, 0)),
}  # fmt: skip
#: Functions that insert an axis.
BETWEEN: dict[str, Along] = {
    "expand_dims": (lambda lib, x, a: lib.xp.expand_dims(x, axis=a), lambda x, a: np.expand_dims(x, a)),
    "stack": (lambda lib, x, a: lib.xp.stack([x, x * 2], axis=a), lambda x, a: np.stack([x, x * 2], axis=a)),
    "x.unsqueeze": (lambda lib, x, a: x.unsqueeze(a), lambda x, a: np.expand_dims(x, a)),
    "squeeze": (
        lambda lib, x, a: lib.xp.squeeze(lib.xp.expand_dims(x, axis=a), axis=a),
        lambda x, a: np.squeeze(np.expand_dims(x, a), axis=a),
    ),
}
#: Functions of one axis, of several or of all.
OVER: tuple[str, ...] = ("sum", "mean", "prod", "max", "min", "var", "std", "flip", "all", "any", "fftshift", "ifftshift", "vector_norm")
#: Functions that accept an axis for a 0-d Tensor, as PyTorch's do.
OF_NUMBERS = ("sum", "mean", "prod", "max", "min", "var", "std", "all", "any", "argmax", "argmin", "cumulative_sum", "cumulative_prod")


def check_axes(lib: Any) -> None:
    """Check each axis, counted from both ends, also in batches. Axes that do not exist are refused."""
    vmap = func(lib).vmap
    slow = lib.capabilities["lazy"] or lib.capabilities["jit"]
    whole = np.cos(1.0 + np.arange(24.0)).reshape(2, 3, 4)
    for (at, (name, (ours, theirs))), n in itertools.product(enumerate((ALONG | BETWEEN).items()), (1, 2, 3)):
        if ("fft" in name and not lib.capabilities["fft"]) or (slow and (n != 2 or at % 4)):
            continue
        p = whole[(0,) * (3 - n)]
        last = n + (name in BETWEEN)
        places: list[Any] = list(range(-last, last))
        if name in OVER:
            places += [None, *((a - n, b) for a in range(n) for b in range(n) if a != b)]
        x, batch = lib.constant(p), lib.constant(np.stack([p, -p, p * p], axis=1))
        for axis in places:
            with lib.case((name, n, axis)):
                compare(lib, ours(lib, x, axis), theirs(p, axis))
                if slow or lib.oracle or name == "x.transpose":
                    continue
                rows = [as_list(theirs(q, axis)) for q in (p, -p, p * p)]
                found = as_list(vmap(lambda v, axis=axis, ours=ours: tuple(as_list(ours(lib, v, axis))), in_dims=1)(batch))
                for a, column in zip(found, zip(*rows, strict=True), strict=True):
                    compare(lib, a, np.stack(column))
        for axis in (last, -last - 1):
            with lib.case((name, n, axis)), lib.raises(IndexError):
                ours(lib, x, axis)
    s = lib.constant(0.7)
    for name in OF_NUMBERS:
        ours = ALONG[name][0]
        for axis in (0, -1):
            with lib.case((name, axis)):
                row = lib.value(ours(lib, lib.constant([0.7]), 0))
                assert lib.value(ours(lib, s, axis)).tolist() == np.reshape(row, ()).tolist()
        for axis in (1, -2):
            with lib.case((name, axis)), lib.raises(IndexError):
                ours(lib, s, axis)


def compare(lib: Any, found: Any, expected: Any) -> None:
    """Compare one result or a list of results, and whether their dtypes are floating."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            compare(lib, a, b)
        return
    values = lib.value(found)
    assert (values.dtype.kind in "fc") == (np.asarray(expected).dtype.kind in "fc")
    close(lib, values, np.asarray(expected), exact(lib))


# -- methods with two names for an argument ------------------------------------------------------------------------------------------

#: Reductions that are methods of Tensors and functions of NumPy.
REDUCTIONS: tuple[str, ...] = ("sum", "mean", "prod", "var", "std", "argmax", "argmin", "all", "any")


def check_two_names(lib: Any) -> None:
    """Check that `axis` and `dim`, and `keepdims` and `keepdim`, mean the same, by position and by name."""
    for name, where in itertools.product(REDUCTIONS, (0, 1, -1)):
        p = X > 0.5 if name in ("all", "any") else X
        x = lib.constant(p, "bool" if p is not X else None)
        method = getattr(x, name)
        more = {"correction": 0} if name in ("var", "std") else {}
        plain, kept = (getattr(np, name)(p, axis=where, **options) for options in ({}, {"keepdims": True}))
        spelled: list[tuple[Any, Any]] = [(method(dim=where, **more), plain), (method(dim=where, keepdim=True, **more), kept)]
        if not lib.oracle or not more:
            spelled += [(method(where, **more), plain)]
        if not lib.oracle:  # some of PyTorch's methods have one name only
            spelled += [
                (method(axis=where, **more), plain), (method(axis=where, keepdims=True, **more), kept),
                (method(dim=where, keepdims=True, **more), kept), (method(axis=where, keepdim=True, **more), kept),
                (method(where, keepdims=True, **more), kept), (method(where, keepdim=False, **more), plain),
                (method(where, keepdims=False, **more), plain), (method(**more), getattr(np, name)(p)),
                (method(keepdims=True, **more), getattr(np, name)(p, keepdims=True)),
            ]  # fmt: skip
        for k, (found, expected) in enumerate(spelled):
            with lib.case((name, where, k)):
                compare(lib, found, expected)
        with lib.case((name, "both names")), lib.raises(TypeError):
            method(axis=0, dim=0)
        for wrong in ({"keepdim": "no"}, {"keepdims": "no"}):
            with lib.case((name, wrong)), lib.raises(TypeError):
                method(dim=0, **wrong)


# -- Tensors that are made, and moved -------------------------------------------------------------------------------------------------

#: Functions that create a Tensor, with the options that they receive; `x` is a matrix.
CREATED: dict[str, Callable[..., Any]] = {
    "zeros": lambda lib, x, **o: lib.xp.zeros((2, 3), **o),
    "ones": lambda lib, x, **o: lib.xp.ones((2, 3), **o),
    "empty": lambda lib, x, **o: lib.xp.empty((2, 3), **o) * 0,
    "full": lambda lib, x, **o: lib.xp.full((2, 3), 2, **o),
    "full of a float": lambda lib, x, **o: lib.xp.full((2, 3), 1.0, **o),
    "arange": lambda lib, x, **o: lib.xp.arange(0, 5, 2, **o),
    "linspace": lambda lib, x, **o: lib.xp.linspace(0, 4, 5, **o),
    "linspace, without its end": lambda lib, x, **o: lib.xp.linspace(0, 4, 4, endpoint=False, **o),
    "eye": lambda lib, x, **o: lib.xp.eye(2, 3, k=1, **o),
    "asarray": lambda lib, x, **o: lib.xp.asarray([[1, 2], [3, 4]], **o),
    "asarray of NumPy's": lambda lib, x, **o: lib.xp.asarray(np.asarray([1.0, 2.0], dtype=lib.real), **o),
    "asarray of NumPy's number": lambda lib, x, **o: lib.xp.asarray(np.dtype(lib.real).type(2.0), **o),
    "tensor": lambda lib, x, **o: lib.ns.tensor([1.0, 2.0], **o),
}
LIKES: dict[str, Callable[..., Any]] = {
    "zeros_like": lambda lib, x, **o: lib.xp.zeros_like(x, **o),
    "ones_like": lambda lib, x, **o: lib.xp.ones_like(x, **o),
    "empty_like": lambda lib, x, **o: lib.xp.empty_like(x, **o) * 0,
    "full_like": lambda lib, x, **o: lib.xp.full_like(x, 2, **o),
    "asarray of a Tensor": lambda lib, x, **o: lib.xp.asarray(x, **o),
    "asarray, copied": lambda lib, x, **o: lib.xp.asarray(x, copy=True, **o),
    "full of a Tensor": lambda lib, x, **o: lib.xp.full((2, 3), x[0, 0], **o),
    "linspace from a Tensor": lambda lib, x, **o: lib.xp.linspace(x[0, 0], 5.0, 3, **o),
    "linspace to a Tensor": lambda lib, x, **o: lib.xp.linspace(2.0, x[1, 2], 3, **o),
    "linspace between Tensors": lambda lib, x, **o: lib.xp.linspace(x[0, 0], x[1, 2], 3, **o),
}


def check_creation(lib: Any) -> None:
    """Check `dtype`, `device` and `requires_grad` of functions that create a Tensor; None means the default."""
    x = lib.constant(np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    kinds = [lib.narrow, lib.real, "int32", *([lib.complex] if lib.capabilities["complex"] else [])]
    kinds = kinds[:1] if lib.capabilities["lazy"] or lib.capabilities["jit"] else kinds
    for name, call in (CREATED | LIKES).items():
        if lib.oracle and (name in ("full of a Tensor", "linspace, without its end") or name.startswith("linspace ")):
            continue
        plain = call(lib, x)
        values = lib.value(plain)
        for wanted in kinds:
            if lib.oracle and "empty" in name:
                continue
            with lib.case((name, wanted)):
                found = call(lib, x, dtype=lib.dtype(wanted))
                assert found.dtype == lib.dtype(wanted)
                assert not found.requires_grad
                np.testing.assert_array_equal(lib.value(found), values.astype(wanted))
        if lib.oracle:
            continue
        with lib.case((name, "names")):
            assert call(lib, x, dtype=lib.real).dtype == lib.dtype(lib.real)
            same = call(lib, x, dtype=None, device=None)
            assert (same.dtype, same.device) == (plain.dtype, plain.device)
            np.testing.assert_array_equal(lib.value(same), values)
            if name in LIKES:
                assert same.device == x.device
                assert same.dtype == x.dtype or name == "full of a Tensor"
        there = lib.on_other_device(0.0).device
        for device in (there, str(there)):
            for more in ({}, {"dtype": lib.dtype(lib.narrow)}):
                with lib.case((name, device, more)):
                    found = call(lib, x, device=device, **more)
                    assert found.device == there
                    assert not more or found.dtype == lib.dtype(lib.narrow)
                    np.testing.assert_array_equal(lib.value(found), values)
        if name in CREATED and not name.startswith("asarray") and name != "empty":
            with lib.case((name, "requires_grad")):
                leaf = call(lib, x, dtype=lib.dtype(lib.real), requires_grad=True)
                assert (leaf.requires_grad, leaf.is_leaf) == (True, True)
                assert not call(lib, x, requires_grad=False).requires_grad
                lib.equal(lib.grad(lib.xp.sum(leaf * 2), leaf)[0], np.full(values.shape, 2.0))

    if lib.capabilities["complex"]:
        lib.equal(lib.xp.full((2,), 0.5 - 2.0j, dtype=lib.dtype(lib.complex)), [0.5 - 2.0j, 0.5 - 2.0j])


#: Ways to move to another device.
MOVES: dict[str, Callable[..., Any]] = {
    "to_device": lambda lib, x, d: x.to_device(d),
    "to": lambda lib, x, d: x.to(d),
    "to, by name": lambda lib, x, d: x.to(device=d),
    "to, as text": lambda lib, x, d: x.to(str(d)),
    "to another's": lambda lib, x, d: x.to(lib.on_other_device(0.0).to(dtype=x.dtype)),
    "asarray": lambda lib, x, d: lib.xp.asarray(x, device=d),
    "astype": lambda lib, x, d: lib.xp.astype(x, x.dtype, device=d),
}


def check_moves(lib: Any) -> None:
    """Check that a Tensor moved to another device keeps its values, history and tangent, in every mode."""
    if lib.oracle:  # PyTorch's other device has no values
        return
    fw, there = lib.module("autograd.forward_ad"), lib.on_other_device(0.0).device
    x, t = lib.tensor(X), lib.constant(2 * X)
    seen: list[Any] = []

    def keep(v: Any) -> Any:
        seen.append(v)
        return v

    for name, move in MOVES.items():
        with lib.case(name):
            y = move(lib, x * 1, there)
            assert y.device == there
            assert y.requires_grad
            lib.equal(y, X)
            (g,) = lib.grad(lib.xp.sum(y * y), x, create_graph=True)
            assert g.device == x.device
            lib.equal(g, 2 * X)
            lib.equal(lib.grad(lib.xp.sum(g), x)[0], np.full(X.shape, 2.0))
            (g,) = lib.grad(lib.xp.sum(move(lib, x * 1, there) * lib.on_other_device(3.0)), x)
            lib.equal(g * x.detach(), 3 * X)  # an operation with a Tensor on the device of `x`
            with lib.ns.no_grad():
                assert not move(lib, x, there).requires_grad
            with lib.ns.inference_mode():
                z = move(lib, x, there)
                assert (z.is_inference(), z.requires_grad, z.device) == (True, False, there)
            with fw.dual_level():
                tangent = fw.unpack_dual(move(lib, fw.make_dual(x.detach(), t), there)).tangent
                assert tangent.device == there
                lib.equal(tangent, 2 * X)
                dual = fw.make_dual(x, t)
                v = move(lib, dual, there)
                (g,) = lib.grad(lib.xp.sum(v * v), dual, create_graph=True)
                lib.equal(fw.unpack_dual(g).tangent, 4 * X)
            with lib.graph.saved_tensors_hooks(keep, lambda v: v):
                y = move(lib, x * 1, there)
                lib.equal(lib.grad(lib.xp.sum(y * y), x)[0], 2 * X)
            assert [v.device for v in seen].count(there) in (1, 2)  # the product's operands; the move saves nothing
            seen.clear()
            with lib.ag.set_detect_anomaly(True, check_nan=False):
                y = move(lib, x * 1, there)
            assert "check_moves" in "".join(y.grad_fn.metadata.get("traceback_", [""]))
            found = func(lib).vmap(lambda v, move=move: move(lib, v, there) * 2)(x)
            assert found.device == there
            lib.equal(found, 2 * X)
            lib.equal(lib.grad(lib.xp.sum(found), x)[0], np.full(X.shape, 2.0))
            found = func(lib).vmap(lambda v: v * lib.on_other_device(2.0) + lib.on_other_device(1.0))(x)  # 0-d Tensors are moved as needed
            assert found.device == x.device
            lib.equal(found, 2 * X + 1)
            home = move(lib, x, x.device) if name != "to another's" else x
            lib.equal(home, X)
    # The gradient of a 0-d Tensor may be on another device, and may have a history.
    seed = lib.on_other_device(1.5, True)
    (g,) = lib.grad(lib.xp.sum(x * x), x, seed, create_graph=True)
    lib.equal(g, 3 * X)
    (h,) = lib.grad(lib.xp.sum(g), seed)
    assert h.device == seed.device
    lib.equal(h, np.sum(2 * X))
    y = lib.on_other_device(X, True)
    for name, meet in {
        "add": lambda: x + y,
        "where": lambda: lib.xp.where(x > 0, y, x),
        "matmul": lambda: lib.xp.matmul(x, lib.xp.matrix_transpose(y)),
        "concat": lambda: lib.xp.concat([x, y]),
        "stack": lambda: lib.xp.stack([y, x]),
        "write": lambda: (x * 1).__setitem__(0, y[0]),
        "in place": lambda: (x * 1).add_(y),
        "in batches": lambda: func(lib).vmap(lambda a, b: a * b)(x, y),
    }.items():
        with lib.case(name), lib.raises(RuntimeError, str(x.device), str(there)):
            meet()
    if lib.capabilities["dlpack"]:
        for copied in (None, True):
            found = lib.xp.from_dlpack(x.detach(), device=there, copy=copied)
            assert found.device == there
            lib.equal(found, X)
        assert lib.xp.from_dlpack(x.detach(), device=x.device).device == x.device
