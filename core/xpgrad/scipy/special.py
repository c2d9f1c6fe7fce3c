"""`xpgrad.scipy.special`: SciPy's special functions for Tensors on every backend, differentiable to every order, in both modes and batched.

Each is elementwise, but for `logsumexp`, `softmax` and `log_softmax`, which are taken over axes. Integers become floating numbers of the
default dtype; beyond a domain the value is SciPy's nan or infinity, and the derivative is not finite. A derivative that has no closed form
and is not computed either, such as that by the order of a Bessel function, raises NotImplementedError.

A library's own functions compute where it has them. The others are compositions where one is accurate (every function of `expit`, `logit`,
`log_expit`, `xlogy`, `xlog1py`, `entr`, `rel_entr`, `kl_div`, `sinc`, `logsumexp`, `softmax` and `log_softmax` is one), else SciPy computes
them in the host's memory: without SciPy, or where the memory is elsewhere, they raise CapabilityError.
"""

from __future__ import annotations

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy import _bessel_functions, _elementary, _error_functions, _gamma_functions, _incomplete
from xpgrad.scipy._bessel_functions import *
from xpgrad.scipy._elementary import *
from xpgrad.scipy._error_functions import *
from xpgrad.scipy._gamma_functions import *
from xpgrad.scipy._incomplete import *

__all__: list[str] = []
__all__ += _bessel_functions.__all__
__all__ += _elementary.__all__
__all__ += _error_functions.__all__
__all__ += _gamma_functions.__all__
__all__ += _incomplete.__all__


def __dir__() -> list[str]:
    return public_names(__name__)


__getattr__ = refusal(__name__)
