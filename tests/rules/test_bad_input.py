"""Law: a bad argument raises a documented error in the caller's words, and leaves every array and gradient unchanged.

Each public function has one good call in a table. Each argument of that call, and each optional one that it leaves out, is replaced by
each of the bad values in turn. Then the call either succeeds, with a result of a public type, or raises an error of a documented type,
whose message names the function, the parameter or what was given, and shows no internals.
"""

from __future__ import annotations

import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._rows import namespace
from xpgrad.autograd import anomaly_mode, forward_ad, functional, grad_mode, graph, profiler
from xpgrad.backend import Domain, axis_functions, elementwise_functions
from xpgrad.utils import checkpoint as checkpoints

MODULES: dict[str, Any] = {
    "": xp, "linalg.": xp.linalg, "fft.": xp.fft, "func.": xp.func, "autograd.": xp.autograd, "graph.": graph, "functional.": functional,
    "forward_ad.": forward_ad, "grad_mode.": grad_mode, "anomaly_mode.": anomaly_mode, "checkpoint.": checkpoints, "Tensor.": xp.Tensor,
    "profiler.": profiler,
}  # fmt: skip


class Call(NamedTuple):
    """The arguments of a good call."""

    args: tuple[Any, ...]
    options: dict[str, Any]


def call(*args: Any, **options: Any) -> Call:
    return Call(args, options)


# -- good calls --------------------------------------------------------------------------------------------------------------


def leaf(values: Any, dtype: Any = None) -> Any:
    """Return a leaf that already has a gradient."""
    x = xp.tensor(values, dtype=dtype, requires_grad=True)
    x.grad = xp.ones_like(x)
    return x


def matrix() -> Any:
    return leaf([[0.5, 0.25, 0.75], [0.125, 0.5, 0.375]])


def vector() -> Any:
    return leaf([0.25, 0.5, 0.75])


def square() -> Any:
    return leaf([[2.0, 0.5], [0.5, 1.0]])


def numbers() -> Any:
    return leaf([[0.5 + 1j, 0.25, 0.75], [0.125, 0.5, 0.375j]])


def ints() -> Any:
    return xp.asarray([[1, 2, 1], [0, 1, 2]])


def mask() -> Any:
    return xp.asarray([[True, False, True], [False, True, True]])


def idx() -> Any:
    return xp.asarray([0, 1, 1])


def total(x: Any) -> Any:
    return xp.sum(x * x)


METHODS = (
    "clone contiguous copy detach dim double element_size float half is_complex is_floating_point is_inference long numel ravel relu "
    "sigmoid t tolist retain_grad requires_grad_"
)


def operand(domain: Domain) -> Any:
    """Return an operand of an elementwise function with this domain."""
    if domain.numbers in ("integer", "bool"):
        return ints() if domain.numbers == "integer" else mask()
    return leaf(matrix().detach() + max(domain.low, 0.0))


def call_with_axes(count: int) -> Callable[[], Call]:
    """Return a function that makes the good call of a view with `count` axes as arguments; its first axis has length 1."""
    return lambda: call(leaf([[0.5, 0.25, 0.75]]), *(0, -1)[:count])


GOOD: dict[str, Callable[[], Call]] = {
    **{f.name: lambda f=f: call(*map(operand, f.domains)) for f in elementwise_functions()},
    **dict.fromkeys((f.name for f in axis_functions() if f.kind == "reduction"), lambda: call(matrix(), axis=0)),
    **{f.name: call_with_axes(f.axes) for f in axis_functions() if f.kind == "view"},
    "real": lambda: call(matrix()), "imag": lambda: call(numbers()), "clip": lambda: call(matrix(), 0.25, 0.5),
    "where": lambda: call(mask(), matrix(), matrix()),
    # creation
    "arange": lambda: call(0, 6, 2), "asarray": lambda: call([1.0, 2.0]), "empty": lambda: call((2, 3)),
    "empty_like": lambda: call(matrix()), "eye": lambda: call(2, 3, k=0), "from_dlpack": lambda: call(np.ones(3)),
    "full": lambda: call((2, 3), 1.5), "full_like": lambda: call(matrix(), 2.0), "linspace": lambda: call(0.0, 1.0, 3),
    "meshgrid": lambda: call(vector(), vector()), "ones": lambda: call((2, 3)), "ones_like": lambda: call(matrix()),
    "tensor": lambda: call([1.0, 2.0]), "tril": lambda: call(matrix(), k=0), "triu": lambda: call(matrix(), k=0),
    "zeros": lambda: call((2, 3)), "zeros_like": lambda: call(matrix()),
    # dtypes and devices
    "astype": lambda: call(matrix(), xp.float32), "can_cast": lambda: call(xp.int8, xp.int16), "finfo": lambda: call(xp.float32),
    "iinfo": lambda: call(xp.int8), "isdtype": lambda: call(xp.int8, "integral"), "result_type": lambda: call(xp.int8, matrix()),
    "Device": lambda: call("numpy"), "set_default_device": lambda: call("numpy"), "namespace": lambda: call("numpy"),
    # indexing
    "take": lambda: call(matrix(), idx(), axis=1), "take_along_axis": lambda: call(matrix(), ints(), axis=1),
    "Tensor.__getitem__": lambda: call(matrix(), (0, 1)), "Tensor.__setitem__": lambda: call(matrix().detach(), (0, 1), 2.0),
    "is_inference": lambda: call(matrix()),
    # linear algebra
    "matmul": lambda: call(square(), matrix()),
    "tensordot": lambda: call(square(), matrix(), axes=1), "vecdot": lambda: call(matrix(), matrix(), axis=-1),
    "einsum": lambda: call("ij,jk->ik", square(), matrix()), "linalg.cholesky": lambda: call(square()),
    "linalg.cross": lambda: call(matrix(), matrix(), axis=-1), "linalg.det": lambda: call(square()),
    "linalg.diagonal": lambda: call(square()), "linalg.eigh": lambda: call(square()), "linalg.eigvalsh": lambda: call(square()),
    "linalg.eig": lambda: call(square()), "linalg.eigvals": lambda: call(square()),
    "linalg.inv": lambda: call(square()), "linalg.matmul": lambda: call(square(), matrix()), "linalg.matrix_norm": lambda: call(matrix()),
    "linalg.matrix_power": lambda: call(square(), 3), "linalg.matrix_rank": lambda: call(matrix()),
    "linalg.matrix_transpose": lambda: call(matrix()), "linalg.outer": lambda: call(vector(), vector()),
    "linalg.pinv": lambda: call(matrix()), "linalg.qr": lambda: call(matrix()), "linalg.slogdet": lambda: call(square()),
    "linalg.solve": lambda: call(square(), matrix()), "linalg.svd": lambda: call(matrix()), "linalg.svdvals": lambda: call(matrix()),
    "linalg.tensordot": lambda: call(square(), matrix(), axes=1), "linalg.trace": lambda: call(square()),
    "linalg.vecdot": lambda: call(matrix(), matrix()), "linalg.vector_norm": lambda: call(matrix()),
    # Fourier transforms
    **dict.fromkeys(("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft"), lambda: call(matrix(), n=3, axis=-1)),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"), lambda: call(matrix(), s=(2, 3), axes=(0, 1))),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), lambda: call(4, d=0.5)),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), lambda: call(matrix(), axes=0)),
    # manipulation
    "broadcast_arrays": lambda: call(matrix(), vector()), "broadcast_shapes": lambda: call((2, 3), (3,)),
    "broadcast_to": lambda: call(vector(), (2, 3)), "concat": lambda: call([matrix(), matrix()]),
    "flip": lambda: call(matrix(), axis=0), "moveaxis": lambda: call(matrix(), 0, 1),
    "pad": lambda: call(matrix(), ((1, 1), (0, 1))), "permute_dims": lambda: call(matrix(), (1, 0)),
    "transpose": lambda: call(matrix(), (1, 0)),
    "repeat": lambda: call(matrix(), 2, axis=0), "reshape": lambda: call(matrix(), (3, 2)), "roll": lambda: call(matrix(), 1, axis=0),
    "stack": lambda: call([matrix(), matrix()]), "tile": lambda: call(matrix(), (2, 1)),
    "unstack": lambda: call(matrix()),
    # searching, sets, sorting, statistics
    "argmax": lambda: call(matrix()), "argmin": lambda: call(matrix()), "count_nonzero": lambda: call(matrix()),
    "isin": lambda: call(matrix(), vector()), "nonzero": lambda: call(matrix()), "searchsorted": lambda: call(vector(), matrix()),
    **dict.fromkeys(("unique_all", "unique_counts", "unique_inverse", "unique_values", "argsort", "sort"), lambda: call(matrix())),
    **dict.fromkeys(("cumulative_prod", "cumulative_sum"), lambda: call(matrix(), axis=0)),
    **dict.fromkeys(("all", "any"), lambda: call(matrix(), axis=0)),
    "allclose": lambda: call(matrix(), matrix()), "diff": lambda: call(matrix()), "isclose": lambda: call(matrix(), matrix()),
    # modes, compilation
    "default_device": lambda: call("numpy"), "enable_grad": lambda: call(), "no_grad": lambda: call(), "inference_mode": lambda: call(),
    "set_grad_enabled": lambda: call(True), "compile": lambda: call(total), "backend_names": lambda: call(),
    "numpy_code": lambda: call(total),
    "compute": lambda: call(vector(), matrix()),
    "audit": lambda: call(total, vector()), "export": lambda: call(total, matrix(), path=None),
    "get_default_device": lambda: call(), "is_grad_enabled": lambda: call(), "is_inference_mode_enabled": lambda: call(),
    "register_backend": lambda: call(None), "__array_namespace_info__": lambda: call(),
    # transforms
    **dict.fromkeys(("func.grad", "func.grad_and_value", "func.value_and_grad"), lambda: call(total, 0)),
    **dict.fromkeys(("func.elementwise_grad", "func.hessian_vector_product"), lambda: call(total, 0)),
    "func.ravel_pytree": lambda: call([matrix(), vector()]),
    **dict.fromkeys(("func.hessian", "func.jacfwd", "func.jacrev", "func.sparse_hessian", "func.sparse_jacobian"), lambda: call(total, 0)),
    "func.jvp": lambda: call(total, (vector(),), (vector(),)), "func.linearize": lambda: call(total, vector()),
    "func.functional_call": lambda: call(lambda given, *_, **__: list(given.values()), {"w": vector()}, (vector(),)),
    "func.stack_module_state": lambda: call([{"w": vector()}, {"w": vector()}]),
    "func.vjp": lambda: call(total, vector()), "func.vmap": lambda: call(total),
    "func.cond": lambda: call(True, total, total, vector()), "func.fori_loop": lambda: call(0, 2, lambda i, v: v, vector()),
    "func.scan": lambda: call(lambda c, x: (c, None), vector(), matrix()),
    "func.while_loop": lambda: call(lambda v: False, lambda v: v, vector()),
    # autograd
    "autograd.backward": lambda: call(total(matrix())), "autograd.grad": lambda: call(total(x := matrix()), x),
    "autograd.gradcheck": lambda: call(total, vector(), fast_mode=True),
    "autograd.gradgradcheck": lambda: call(total, vector(), fast_mode=True), "autograd.custom_rule": lambda: call(lambda x: x * x),
    "autograd.detect_anomaly": lambda: call(), "autograd.set_detect_anomaly": lambda: call(False), "autograd.enable_grad": lambda: call(),
    "autograd.no_grad": lambda: call(), "autograd.inference_mode": lambda: call(), "autograd.set_grad_enabled": lambda: call(True),
    "graph.allow_mutation_on_saved_tensors": lambda: call(), "graph.current_graph_task_id": lambda: call(),
    "graph.disable_saved_tensors_hooks": lambda: call("not here"), "graph.draw": lambda: call(total(matrix())),
    "graph.get_gradient_edge": lambda: call(matrix()), "graph.increment_version": lambda: call(matrix()),
    "graph.queue_callback": lambda: call(lambda: None),
    "graph.register_multi_grad_hook": lambda: call([matrix(), matrix()], lambda gs: None), "graph.save_on_cpu": lambda: call(),
    "graph.saved_tensors_hooks": lambda: call(lambda t: t, lambda t: t), "graph.set_override_stale_capture_stream": lambda: call(False),
    "graph.set_warn_on_accumulate_grad_stream_mismatch": lambda: call(True), "functional.hessian": lambda: call(total, vector()),
    "functional.hvp": lambda: call(total, vector(), vector()), "functional.jacobian": lambda: call(total, vector()),
    "functional.jvp": lambda: call(total, vector(), vector()), "functional.vhp": lambda: call(total, vector(), vector()),
    "functional.vjp": lambda: call(total, vector(), xp.tensor(1.0)), "forward_ad.dual_level": lambda: call(),
    "forward_ad.enter_dual_level": lambda: call(), "forward_ad.exit_dual_level": lambda: call(),
    "forward_ad.make_dual": lambda: call(matrix(), matrix()), "forward_ad.unpack_dual": lambda: call(matrix()),
    "grad_mode.enable_grad": lambda: call(), "grad_mode.no_grad": lambda: call(), "grad_mode.inference_mode": lambda: call(),
    "grad_mode.set_grad_enabled": lambda: call(True), "grad_mode.enforce_grad_layout_policy": lambda: call(True),
    "grad_mode.set_multithreading_enabled": lambda: call(True), "grad_mode.is_multithreading_enabled": lambda: call(),
    "anomaly_mode.detect_anomaly": lambda: call(), "profiler.profile": lambda: call(),
    "profiler.record_function": lambda: call("label"),
    "anomaly_mode.is_anomaly_check_nan_enabled": lambda: call(), "anomaly_mode.is_anomaly_enabled": lambda: call(),
    "anomaly_mode.set_detect_anomaly": lambda: call(False), "checkpoint.checkpoint": lambda: call(total, vector()),
    "checkpoint.checkpoint_sequential": lambda: call([xp.sin, xp.exp], 2, vector()), "checkpoint.noop_context_fn": lambda: call(),
    "checkpoint.set_checkpoint_early_stop": lambda: call(True), "checkpoint.set_checkpoint_debug_enabled": lambda: call(True),
    "checkpoint.create_selective_checkpoint_contexts": lambda: call([xp.matmul]),
    # methods
    **dict.fromkeys(
        (f"Tensor.{n}" for n in METHODS.split()),
        lambda: call(matrix()),
    ),
    **dict.fromkeys(("Tensor.zero_", "Tensor.detach_"), lambda: call(matrix().detach())),
    **dict.fromkeys((f"Tensor.{n}" for n in ("add", "sub", "dot")), lambda: call(matrix(), matrix())),
    **dict.fromkeys((f"Tensor.{n}_" for n in ("add", "sub")), lambda: call(matrix().detach(), matrix().detach())),
    **dict.fromkeys(
        (f"Tensor.{n}" for n in ("amax", "amin", "max", "min", "std", "var")),
        lambda: call(matrix(), 0),
    ),
    **dict.fromkeys((f"Tensor.{n}" for n in ("cumprod", "cumsum", "unbind", "unsqueeze", "stride", "flip")), lambda: call(matrix(), 0)),
    "Tensor.backward": lambda: call(total(matrix())), "Tensor.clamp_": lambda: call(matrix().detach(), 0.25, 0.5),
    "Tensor.copy_": lambda: call(matrix().detach(), matrix()), "Tensor.expand": lambda: call(vector(), 2, 3),
    "Tensor.expand_as": lambda: call(vector(), matrix()), "Tensor.fill_": lambda: call(matrix().detach(), 1.0),
    "Tensor.flatten": lambda: call(matrix(), 0, 1), "Tensor.index_add_": lambda: call(matrix().detach(), 1, idx(), matrix()),
    "Tensor.item": lambda: call(vector()[0]), "Tensor.masked_fill_": lambda: call(matrix().detach(), mask(), 1.0),
    "Tensor.mm": lambda: call(square(), matrix()),
    "Tensor.numpy": lambda: call(matrix().detach()), "Tensor.permute": lambda: call(matrix(), 1, 0),
    "Tensor.register_hook": lambda: call(matrix(), print), "Tensor.register_post_accumulate_grad_hook": lambda: call(matrix(), print),
    "Tensor.reshape": lambda: call(matrix(), 3, 2), "Tensor.squeeze": lambda: call(matrix(), 0),
    "Tensor.to": lambda: call(matrix(), xp.float32), "Tensor.to_device": lambda: call(matrix(), "numpy"),
    "Tensor.astype": lambda: call(matrix(), xp.float32), "Tensor.fill": lambda: call(matrix().detach(), 1.0),
    "Tensor.swapaxes": lambda: call(matrix(), 0, 1), "Tensor.take": lambda: call(matrix(), idx(), 1),
    "Tensor.diagonal": lambda: call(matrix(), 0, 0, 1), "Tensor.trace": lambda: call(square()),
    "Tensor.transpose_": lambda: call(matrix().detach(), 0, 1), "Tensor.transpose": lambda: call(matrix(), 0, 1),
    "Tensor.type_as": lambda: call(matrix(), ints()),
    "Tensor.view": lambda: call(matrix(), 3, 2), "Tensor.view_as": lambda: call(matrix(), leaf([[1.0, 2.0]] * 3)),
    "Tensor.where": lambda: call(matrix(), mask(), matrix()),
    **dict.fromkeys((f"Tensor.{n}" for n in ("isclose", "allclose", "dist")),
                    lambda: call(matrix(), matrix())),
    **dict.fromkeys((f"Tensor.{n}" for n in ("softmax", "log_softmax", "logsumexp", "median", "sort", "argsort")),
                    lambda: call(matrix(), 0)),
    **dict.fromkeys((f"Tensor.{n}" for n in ("repeat", "tile", "new_zeros", "new_ones", "new_empty")), lambda: call(matrix(), 2, 3)),
    "Tensor.norm": lambda: call(matrix(), 2, 0), "Tensor.diff": lambda: call(matrix(), 1, 0),
    "Tensor.new_full": lambda: call(matrix(), (2, 3), 1.5), "Tensor.new_tensor": lambda: call(matrix(), [1.0, 2.0]),
    "Tensor.masked_select": lambda: call(matrix(), mask()), "Tensor.index_select": lambda: call(matrix(), 1, idx()),
    "Tensor.gather": lambda: call(matrix(), 1, ints()), "Tensor.scatter_add": lambda: call(matrix(), 1, ints(), matrix()),
    "Tensor.mv": lambda: call(square(), leaf([0.5, 0.25])), "Tensor.dot": lambda: call(vector(), vector()),
    "Tensor.outer": lambda: call(vector(), vector()),
    "Tensor.bmm": lambda: call(leaf([[[0.5, 1.0]]]), leaf([[[0.5], [0.25]]])),
    "Tensor.addmm": lambda: call(square(), square(), square()),
    "Tensor.baddbmm": lambda: call(leaf([[[0.5]]]), leaf([[[0.5, 1.0]]]), leaf([[[0.5], [0.25]]])),
}  # fmt: skip


def in_place_call(good: Callable[[], Call]) -> Callable[[], Call]:
    """Return the good call of the in-place method that corresponds to a function."""
    return lambda: call(good().args[0].detach(), *good().args[1:])


GOOD |= {f"Tensor.{name}": GOOD[function.__name__] for name, function in namespace.METHODS.items()}
GOOD |= {f"Tensor.{name}": in_place_call(GOOD[function.__name__]) for name, function in namespace.IN_PLACE.items()}

#: Names that users do not call with arguments: classes of results and errors, and the engine's own class methods.
OTHER = {
    "DType", "Tensor", "BackendLoadError", "BackendNotFoundError", "CapabilityError", "CaptureError", "DeviceMismatchError",
    "GradcheckError", "MissingAttributeError", "XpgradError", "linalg.EigResult", "linalg.EighResult", "linalg.QRResult",
    "linalg.SVDResult", "linalg.SlogdetResult", "profiler.EventList", "profiler.FunctionEvent", "profiler.FunctionEventAvg",
    "profiler.Interval",
    "autograd.Function",
    "graph.GradientEdge", "graph.Node", "forward_ad.UnpackedDualTensor", "checkpoint.CheckpointError", "checkpoint.CheckpointPolicy",
    "checkpoint.SelectiveCheckpointContext", "Tensor.align", "Tensor.lift",
    "Tensor.default_dtype", "Tensor.scalar",
}  # fmt: skip


def public() -> Iterator[str]:
    """Yield the public functions, classes of contexts, and methods."""
    for prefix, where in MODULES.items():
        names = [n for n in dir(where) if not n.startswith("_")] if isinstance(where, type) else where.__all__
        for name in names:
            found = getattr(where, name)
            if callable(found) and not isinstance(found, types.ModuleType):
                yield prefix + name


def test_every_public_function_is_in_the_table() -> None:
    assert set(public()) - set(GOOD) == OTHER
    assert set(GOOD) - set(public()) == {"Tensor.__getitem__", "Tensor.__setitem__"}


# -- bad values ----------------------------------------------------------------------------------------------------------------


def few() -> Iterator[str]:
    yield "a"


class Thing:
    """An object of an unknown class."""


BAD: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "a string": lambda: "six", "an empty string": lambda: "", "bytes": lambda: b"ab", "a fraction": lambda: 1.5,
    "a whole float": lambda: 2.0, "nan": lambda: float("nan"), "inf": lambda: float("inf"), "a complex number": lambda: 1j,
    "a bool": lambda: True, "a list of anything": lambda: [1.5, "a", None], "an empty list": list, "a ragged list": lambda: [[1], [2, 3]],
    "an empty tuple": tuple, "a tuple with None": lambda: (None,), "too many": lambda: (0, 1, 2, 3, 4),
    "a pair of floats": lambda: (0.5, 1.5), "a dict": lambda: {"a": 1}, "an object": Thing, "a class": lambda: Thing,
    "a function": lambda: len, "2**63": lambda: 2**63, "2**70": lambda: 2**70, "a large negative int": lambda: -(2**70),
    "-1": lambda: -1, "-7": lambda: -7, "7": lambda: 7,
    "a NumPy array": lambda: np.ones((2, 3)), "a NumPy array of strings": lambda: np.asarray(["a"]), "a set": lambda: {1.5},
    "a generator": few, "a Tensor of rank 0": lambda: leaf(0.5), "a Tensor of 5": lambda: leaf([0.5] * 5),
    "an integer Tensor": lambda: xp.asarray([[3, 1, 9]]), "a bool Tensor": lambda: xp.asarray([True, False]),
    "a complex Tensor": lambda: leaf([[1j, 2, 3], [4, 5, 6]]), "an empty Tensor": lambda: leaf(np.zeros((0, 3))),
    "a list of a Tensor": lambda: [leaf([[1.0, 2.0, 3.0]])],
}  # fmt: skip

#: Errors that any function may raise; others must be in its docstring. Libraries raise MemoryError for arrays that are too large.
TYPES = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, OverflowError, xp.XpgradError)
SHOWS_INTERNALS = re.compile(
    r"has no attribute|object is not (callable|iterable|subscriptable|an iterator|reversible|a mapping)|unexpected keyword|cannot unpack"
    r"|too large to convert|not supported between|unsupported operand|can't multiply|must be real number|(list|tuple|string) index out"
    r"|cannot be interpreted as an int(?!eger: `)|could not convert|invalid literal|unhashable|bytes-like|argument of type|values to unpack"
    r"|descriptor|missing \d+ required|positional arguments? but|ufunc|_UFunc"
    r"|(?<![\w`'\"<.])_[a-z]\w*|xpgrad\._|<locals>|TensorBase|Kernels|functools|numpy\.\w*Error|_nd\b|_op\b|dtype\('"
)
#: Other words for a parameter that a message may use.
ALSO = {
    "key": ("index", "indices"), "indices": ("index",), "arrays": ("shapes",), "tensors": ("output",), "gradient": ("grad_output",),
    "dim": ("axis",), "keepdim": ("keepdims",),
    **dict.fromkeys(("grad_tensors", "grad_variables", "grad_outputs"), ("gradients", "grad_output")),
}  # fmt: skip
#: Types of results, besides those of the good call, that a list of results may contain.
VALUES = (bool, int, float, complex, str, type(None), xp.Tensor, xp.DType, xp.Device, xp.finfo, xp.iinfo, graph.Node)


def arguments(name: str) -> list[tuple[Any, str]]:
    """Return the arguments to replace: positions in the good call and names of arguments that it leaves out, with their parameters."""
    function, good = resolve(name), GOOD[name]()
    first = 1 if name.startswith("Tensor.") else 0
    parameters = list(inspect.signature(function).parameters.values())
    places: list[tuple[Any, str]] = []
    for i in range(first, len(good.args)):
        places.append((i, parameters[min(i, len(parameters) - 1)].name))
    for k, p in enumerate(parameters):
        if (name, p.name) == ("export", "path"):  # it would write a file: `tests/programs/test_export.py` tests it
            continue
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (k < len(good.args) and p.kind is not p.KEYWORD_ONLY):
            continue
        if p.kind is not p.POSITIONAL_ONLY:
            places.append((p.name, p.name))
    return places


def resolve(name: str) -> Any:
    prefix, _, last = name.rpartition(".")
    where = MODULES[f"{prefix}." if prefix else ""]
    return getattr(where, last)


def run(name: str, good: Call) -> Any:
    """Return the result of a call, calling a transform's function or entering a context if that is the result."""
    out = resolve(name)(*good.args, **good.options)
    if name.startswith("func.") and callable(out):
        points = [leaf([[0.5, 0.25], [0.75, 1.0]]) for _ in range(2 if "product" in name else 1)]
        return out(*points)
    if name in ("compile", "autograd.custom_rule"):
        return out(vector())
    if hasattr(type(out), "__enter__") and not isinstance(out, type):
        with out:
            return None
    return out


def tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, xp.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(v)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def state(values: Any) -> list[Any]:
    """Return the values, gradients and flags of Tensors and arrays for a later comparison."""
    found = [(t, t.detach().numpy().tobytes(), t.grad.numpy().tobytes() if t.is_leaf and t.grad is not None else None, t.requires_grad)
             for t in tensors(values)]  # fmt: skip
    return found + [(v, v.tobytes(), None, None) for v in values if isinstance(v, np.ndarray)]


def _is_from_users_function(exc: BaseException) -> bool:
    """Return whether an error comes from the function that the table passes to a transform, or from calling it wrongly."""
    if "total()" in str(exc):
        return True
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is total.__code__:
            return True
        trace = trace.tb_next
    return False


def fault(name: str, parameter: str, value: Any, exc: BaseException) -> str | None:
    """Return what is wrong with an error; None if nothing is."""
    function = resolve(name)
    text = str(exc)
    if _is_from_users_function(exc) or isinstance(exc, xp.GradcheckError):  # the purpose of gradcheck
        return None
    if not (isinstance(exc, TYPES) or (type(exc).__name__ in (function.__doc__ or "") and not isinstance(exc, AttributeError))):
        return "a type that is not documented"
    if isinstance(exc, RecursionError):
        return "a type that is not documented"
    if not text.strip():
        return "no message"
    shown = SHOWS_INTERNALS.search(text)
    if shown:
        return f"internals: {shown[0]!r}"
    words = [name.rpartition(".")[2].strip("_"), parameter, *ALSO.get(parameter, ()), repr(value)[:8], str(value)[:8],
             type(value).__name__, str(getattr(value, "dtype", "")), str(getattr(value, "shape", "")), getattr(value, "__name__", ""),
             *(type(v).__name__ for v in (value if isinstance(value, (list, tuple)) else ()))]  # fmt: skip
    if not any(w and re.search(rf"(?<![A-Za-z]){re.escape(w)}" + r"(?![A-Za-z])" * (len(w) < 4), text, re.IGNORECASE) for w in words):
        return "it names neither the function, nor the parameter, nor what was given"
    return None


def normal(value: Any, good: Any) -> bool:
    """Return whether a result is of a public type."""
    if isinstance(value, xp.Tensor):
        array = value.detach().numpy()
        return array.dtype != object and array.shape == value.shape
    if isinstance(value, (list, tuple)):
        wanted = good if isinstance(good, (list, tuple)) and len(good) == len(value) else [None] * len(value)
        return all(normal(v, g) for v, g in zip(value, wanted))
    if isinstance(value, dict):
        return all(normal(v, None) for v in value.values())
    return isinstance(value, VALUES) or callable(value) or type(value) is type(good)


#: Functions that only work inside a level or a pass.
EFFECTS = ("forward_ad.make_dual", "forward_ad.exit_dual_level", "forward_ad.enter_dual_level")
#: Functions that change their first argument or a gradient if they succeed.
CHANGES = {"Tensor.fill", "autograd.backward", "Tensor.backward", "Tensor.__setitem__"}


def faults(name: str) -> list[str]:
    """Return everything that is wrong with a function's reactions to bad arguments."""
    found = []
    with xp.enable_grad(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for place, parameter in arguments(name):
            expected = None if name in ("register_backend", "graph.queue_callback", *EFFECTS) else run(name, GOOD[name]())
            for title, make in BAD.items():
                good = GOOD[name]()
                value = make()
                if isinstance(place, int):
                    good = call(*good.args[:place], value, *good.args[place + 1 :], **good.options)
                else:
                    good = call(*good.args, **{**good.options, place: value})
                before = state([*good.args, *good.options.values()])
                what = f"{name}({parameter} = {title})"
                raised: BaseException | None = None
                try:
                    with xp.enable_grad():
                        out = run(name, good)
                except Exception as exc:  # noqa: BLE001 (whatever it is)
                    raised = exc
                    wrong = fault(name, parameter, value, exc)
                    if wrong is not None:
                        found.append(f"{what}: {wrong}: {type(exc).__name__}: {exc!s:.200}")
                else:
                    if not normal(out, expected):
                        found.append(f"{what}: gives {type(out).__name__} {out!r:.80}")
                if raised is None and (name in CHANGES or name.endswith("_")):
                    continue
                for x, data, grad, needs in before:
                    now = state([x])[0]
                    if now[1:3] != (data, grad) or (raised is not None and now[3] != needs):
                        found.append(f"{what}: an argument has changed")
    return found


@pytest.fixture(autouse=True)
def _same_state() -> Iterator[None]:
    """Restore the global state that some of the calls change."""
    yield
    xp.set_default_device("numpy")
    anomaly_mode.set_detect_anomaly(False)
    xp.set_grad_enabled(True)


@pytest.mark.slow(one_in=16)
@pytest.mark.parametrize("name", GOOD)
def test_bad_arguments(name: str) -> None:
    found = faults(name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["grad", "requires_grad", "grad_dtype"])
def test_bad_attributes(name: str) -> None:
    found = []
    for title, make in BAD.items():
        x, value = matrix(), make()
        before = state([x])
        try:
            setattr(x, name, value)
        except Exception as exc:  # noqa: BLE001 (whatever it is)
            wrong = fault(f"Tensor.{name}", name, value, exc)
            if wrong is not None or state([x]) != before:
                found.append(f"x.{name} = {title}: {wrong or 'something has changed'}: {type(exc).__name__}: {exc!s:.200}")
    assert not found, "\n".join(found)
