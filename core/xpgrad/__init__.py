"""xpgrad: PyTorch's documented autograd for every array library that speaks the Python Array API standard.

It rests on two ideas: a set of operations with one row each (`xpgrad.rules`: kernel and gradient in Array API calls), and an engine
that records and replays them (`Tensor` -> row -> node -> engine -> the backend's table). The package is itself a 2024.12 namespace.
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
import sys as _sys
import typing as _typing
from typing import Any

if _typing.TYPE_CHECKING:  # what editors see of the modules that load at first use
    from xpgrad import (
        backend as backend,
        fft as fft,
        func as func,
        hookspecs as hookspecs,
        linalg as linalg,
        registry as registry,
        utils as utils,
    )
    from xpgrad._audit.auditing import audit as audit
    from xpgrad._info import __array_namespace_info__ as __array_namespace_info__
    from xpgrad._namespaces import namespace as namespace

from xpgrad import autograd as autograd, errors as errors
from xpgrad._backends.default_device import (
    default_device as default_device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from xpgrad._backends.loading import backend_names as backend_names, register_backend as register_backend
from xpgrad._basics.device import Device as Device
from xpgrad._basics.dtypes import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool,
    can_cast as can_cast,
    complex64 as complex64,
    complex128 as complex128,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    isdtype as isdtype,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from xpgrad._basics.shapes import broadcast_shapes as broadcast_shapes
from xpgrad._modes.state import is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled
from xpgrad._modes.switches import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from xpgrad._rows import namespace as _namespace
from xpgrad._tensor.tensor import Tensor as Tensor, is_inference as is_inference
from xpgrad.errors import (
    BackendLoadError as BackendLoadError,
    BackendNotFoundError as BackendNotFoundError,
    CapabilityError as CapabilityError,
    CaptureError as CaptureError,
    DeviceMismatchError as DeviceMismatchError,
    GradcheckError as GradcheckError,
    MissingAttributeError as MissingAttributeError,
    XpgradError as XpgradError,
)
from xpgrad.programs.compiled import compile_function as compile
from xpgrad.programs.export import export as export
from xpgrad.rules import writing as _writing_rules  # noqa: F401 (declares rows)
from xpgrad.rules.conversion import asarray as asarray, from_dlpack as from_dlpack, tensor as tensor
from xpgrad.rules.creation import (
    arange as arange,
    astype as astype,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from xpgrad.rules.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    conj as conj,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    divide as divide,
    equal as equal,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    imag as imag,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    round as round,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from xpgrad.rules.indexing import take as take, take_along_axis as take_along_axis
from xpgrad.rules.linear_algebra import matmul as matmul, tensordot as tensordot, vecdot as vecdot
from xpgrad.rules.manipulation import (
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    concat as concat,
    expand_dims as expand_dims,
    flip as flip,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    pad as pad,
    permute_dims as permute_dims,
    repeat as repeat,
    reshape as reshape,
    roll as roll,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    unstack as unstack,
)
from xpgrad.rules.reduction import all as all, any as any, max as max, min as min, sum as sum
from xpgrad.rules.searching import (
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    isin as isin,
    nonzero as nonzero,
    searchsorted as searchsorted,
)
from xpgrad.rules.sets import (
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from xpgrad.rules.sorting import argsort as argsort, sort as sort
from xpgrad.rules.statistical import (
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    mean as mean,
    prod as prod,
    std as std,
    var as var,
)
from xpgrad.rules.utility import allclose as allclose, diff as diff, einsum as einsum, isclose as isclose, result_type as result_type

__version__ = "0.2.0"
__array_api_version__ = "2024.12"

e: float = _math.e
inf: float = _math.inf
nan: float = _math.nan
pi: float = _math.pi
newaxis = None

_namespace.package = _sys.modules[__name__]

# In the order of the standard's chapters, then what is xpgrad's and PyTorch's. `bool`, `abs` and their like hide Python's own only
# for those who write `from xpgrad import *`.
__all__ = [
    "__array_api_version__", "__array_namespace_info__",
    "e", "inf", "nan", "newaxis", "pi",
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
    "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like",
    "tril", "triu", "zeros", "zeros_like",
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp",
    "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal",
    "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
    "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit",
    "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
    "take", "take_along_axis",
    "matmul", "matrix_transpose", "tensordot", "vecdot", "einsum",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "pad", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "tile", "unstack",
    "argmax", "argmin", "count_nonzero", "isin", "nonzero", "searchsorted",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "argsort", "sort",
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var",
    "all", "any", "allclose", "diff", "isclose",
    "linalg", "fft", "func",
    "Tensor", "tensor", "DType",
    "Device", "default_device", "get_default_device", "set_default_device", "namespace", "backend_names", "register_backend",
    "autograd", "enable_grad", "inference_mode", "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "no_grad",
    "set_grad_enabled",
    "compile", "export", "audit",
    "errors", "BackendLoadError", "BackendNotFoundError", "CapabilityError", "CaptureError", "DeviceMismatchError", "GradcheckError",
    "MissingAttributeError", "XpgradError",
]  # fmt: skip


# Modules that load at first use.
_LAZY = ("linalg", "fft", "func", "utils", "registry", "hookspecs", "backend", "scipy", "testing")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY, "__doc__", "__file__", "__name__", "__path__", "__version__"])


if not _typing.TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name

    def __getattr__(name: str) -> Any:
        # The extensions and what is used less often load at first use.
        if name in _LAZY:
            return _importlib.import_module(f"xpgrad.{name}")
        if name == "__array_namespace_info__":
            from xpgrad._info import __array_namespace_info__ as found  # loads late: few programs inspect the namespace

            setattr(_sys.modules[__name__], name, found)
            return found
        if name == "namespace":
            from xpgrad._namespaces import namespace  # loads late: it inspects the namespace, too

            setattr(_sys.modules[__name__], name, namespace)
            return namespace
        if name == "audit":
            from xpgrad._audit.auditing import audit  # loads late: a tool for those who look for a mistake

            setattr(_sys.modules[__name__], name, audit)
            return audit
        if name == "special":  # where SciPy looks for special functions under SCIPY_ARRAY_API=1, as for an extension of the standard
            return _importlib.import_module("xpgrad.scipy.special")
        if name == "_numpy_functions":
            from xpgrad._numpy.dispatch import install  # loads late: NumPy's functions, at the first that is called

            return install
        if name == "_rebuild_tensor":
            from xpgrad._tensor.copying import _rebuild_tensor  # loads late: pickles

            return _rebuild_tensor
        hints = _importlib.import_module("xpgrad._hints")  # only for names that do not exist
        raise AttributeError(hints.missing_name("module 'xpgrad'", name))
