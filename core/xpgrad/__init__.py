"""xpgrad: PyTorch's documented autograd for every array library that follows the Python Array API standard.

It has two parts: operations, each of which is one row (`xpgrad.rules`: a kernel and a gradient in Array API calls), and an engine that
records and replays them (`Tensor` -> row -> node -> engine -> the backend's kernels). The package is itself a namespace of version
2025.12.
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
import sys as _sys
import typing as _typing
from typing import Any

if _typing.TYPE_CHECKING:  # shows editors the modules that load at first use
    from xpgrad import (
        backend as backend,
        emitter as emitter,
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
    from xpgrad._numpy.code import numpy_code as numpy_code

from xpgrad import autograd, errors
from xpgrad._backends.default_device import default_device, get_default_device, set_default_device
from xpgrad._backends.loading import backend_names, register_backend
from xpgrad._basics import dtypes as _dtypes
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import *
from xpgrad._basics.dtypes import bool_ as bool
from xpgrad._basics.shapes import broadcast_shapes
from xpgrad._einops import register as _register_einops
from xpgrad._modes.state import is_grad_enabled, is_inference_mode_enabled
from xpgrad._modes.switches import enable_grad, inference_mode, no_grad, set_grad_enabled
from xpgrad._rows import namespace as _namespace
from xpgrad._tensor.computing import compute
from xpgrad._tensor.tensor import Tensor, is_inference
from xpgrad.errors import *
from xpgrad.programs.compiled import compile_function as compile
from xpgrad.programs.export import export
from xpgrad.rules import (
    conversion as _conversion,
    creation as _creation,
    elementwise as _elementwise,
    indexing as _indexing,
    linear_algebra as _linear_algebra,
    manipulation as _manipulation,
    reduction as _reduction,
    searching as _searching,
    sets as _sets,
    sorting as _sorting,
    statistical as _statistical,
    utility as _utility,
    writing as _writing,  # noqa: F401 (declares rows)
)
from xpgrad.rules.conversion import *
from xpgrad.rules.creation import *
from xpgrad.rules.elementwise import *
from xpgrad.rules.indexing import *
from xpgrad.rules.linear_algebra import *
from xpgrad.rules.manipulation import *
from xpgrad.rules.reduction import *
from xpgrad.rules.searching import *
from xpgrad.rules.sets import *
from xpgrad.rules.sorting import *
from xpgrad.rules.statistical import *
from xpgrad.rules.utility import *

__version__ = "0.3.0"
__array_api_version__ = "2025.12"

e: float = _math.e
inf: float = _math.inf
nan: float = _math.nan
pi: float = _math.pi
newaxis = None

_namespace.package = _sys.modules[__name__]
_register_einops()

# `bool`, `abs` and similar names hide the builtins only in modules with `from xpgrad import *`.
__all__ = [
    "__array_api_version__", "__array_namespace_info__",
    "e", "inf", "nan", "newaxis", "pi", "bool", "broadcast_shapes", "linalg", "fft", "func",
    "Tensor", "Device", "default_device", "get_default_device", "set_default_device", "namespace", "backend_names", "register_backend",
    "autograd", "enable_grad", "inference_mode", "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "no_grad",
    "set_grad_enabled", "compile", "compute", "export", "audit", "numpy_code", "errors",
]  # fmt: skip
__all__ += _dtypes.__all__
__all__ += _conversion.__all__
__all__ += _creation.__all__
__all__ += _elementwise.__all__
__all__ += _indexing.__all__
__all__ += _linear_algebra.__all__
__all__ += _manipulation.__all__
__all__ += _reduction.__all__
__all__ += _searching.__all__
__all__ += _sets.__all__
__all__ += _sorting.__all__
__all__ += _statistical.__all__
__all__ += _utility.__all__
__all__ += errors.__all__

# Modules that load at first use.
_LAZY = ("linalg", "fft", "func", "utils", "registry", "hookspecs", "backend", "emitter", "scipy", "testing")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "__doc__", "__file__", "__name__", "__path__", "__version__"})


if not _typing.TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name

    def __getattr__(name: str) -> Any:
        # The extensions, and modules that are used less often, load at first use.
        if name in _LAZY:
            return _importlib.import_module(f"xpgrad.{name}")
        if name == "__array_namespace_info__":
            from xpgrad._info import __array_namespace_info__ as found  # loads late: few programs inspect the namespace

            setattr(_sys.modules[__name__], name, found)
            return found
        if name == "namespace":
            from xpgrad._namespaces import namespace  # loads late: it inspects the namespace

            setattr(_sys.modules[__name__], name, namespace)
            return namespace
        if name == "audit":
            from xpgrad._audit.auditing import audit  # loads late: most programs do not audit functions

            setattr(_sys.modules[__name__], name, audit)
            return audit
        if name == "numpy_code":
            from xpgrad._numpy.code import numpy_code  # loads late: it needs NumPy

            setattr(_sys.modules[__name__], name, numpy_code)
            return numpy_code
        if name == "special":  # SciPy looks here if SCIPY_ARRAY_API=1, as for an extension of the standard
            return _importlib.import_module("xpgrad.scipy.special")
        if name == "_numpy_functions":
            from xpgrad._numpy.dispatch import install  # loads late: at the first call of a NumPy function

            return install
        if name == "_rebuild_tensor":
            from xpgrad._tensor.copying import _rebuild_tensor  # loads late: pickles

            return _rebuild_tensor
        if name in ("_missing_name", "_unknown_keyword"):
            return getattr(_importlib.import_module("xpgrad._hints"), name[1:])
        hints = _importlib.import_module("xpgrad._hints")  # only for names that do not exist
        raise AttributeError(hints.missing_name("module 'xpgrad'", name))
