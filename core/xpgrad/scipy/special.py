"""`xpgrad.scipy.special`: SciPy's special functions for Tensors on every backend, differentiable to every order, in both modes and batched.

All are elementwise except `logsumexp`, `softmax` and `log_softmax`, which reduce or normalise over axes. Integers are converted to the
default floating-point dtype. Outside its domain a function returns nan or infinity, as in SciPy, and its derivative is not finite. A
derivative that is not implemented, such as that with respect to the order of a Bessel function, raises NotImplementedError.

A function is computed by the array's own library if the library has it, else by a composition of Array API functions if an accurate one
exists, as for `expit`, `xlogy`, `entr`, `sinc`, `boxcox`, `huber` and `softmax`, else by SciPy in host memory. A function that needs SciPy
raises CapabilityError if SciPy is not installed or the array is not in host memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy import (
    _bessel_functions,
    _box_cox,
    _distribution_functions,
    _elementary,
    _elliptic,
    _error_functions,
    _gamma_functions,
    _hypergeometric,
    _incomplete,
)
from xpgrad.scipy._bessel_functions import *
from xpgrad.scipy._box_cox import *
from xpgrad.scipy._distribution_functions import *
from xpgrad.scipy._elementary import *
from xpgrad.scipy._elliptic import *
from xpgrad.scipy._error_functions import *
from xpgrad.scipy._gamma_functions import *
from xpgrad.scipy._hypergeometric import *
from xpgrad.scipy._incomplete import *

__all__: list[str] = []
__all__ += _bessel_functions.__all__
__all__ += _box_cox.__all__
__all__ += _distribution_functions.__all__
__all__ += _elementary.__all__
__all__ += _elliptic.__all__
__all__ += _error_functions.__all__
__all__ += _gamma_functions.__all__
__all__ += _hypergeometric.__all__
__all__ += _incomplete.__all__


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
