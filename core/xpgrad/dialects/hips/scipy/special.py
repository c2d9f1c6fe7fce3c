"""Special functions: SciPy's for arrays, and those of `xpgrad.scipy.special` for values that are differentiated.

All are elementwise except `logsumexp`. They are differentiable with respect to all arguments except orders, which raise
`NotImplementedError`.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy import special as _ours

__all__ = [
    "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammainc", "gammaincc", "gammaln",
    "gammasgn", "i0", "i1", "iv", "ive", "j0", "j1", "jn", "logit", "logsumexp", "multigammaln", "polygamma", "psi", "rgamma", "y0", "y1",
    "yn",
]  # fmt: skip

_special: Any = importlib.import_module("scipy.special")


def _of_both(name: str) -> Any:
    """Wrap a function of SciPy so that it accepts Tensors."""
    theirs, ours = getattr(_special, name), getattr(_ours, name)

    @functools.wraps(ours)
    def function(*args: Any, **options: Any) -> Any:
        return (ours if any(isinstance(a, Tensor) for a in (*args, *options.values())) else theirs)(*args, **options)

    return function


beta: Any = _of_both("beta")
betainc: Any = _of_both("betainc")
betaln: Any = _of_both("betaln")
digamma: Any = _of_both("digamma")
erf: Any = _of_both("erf")
erfc: Any = _of_both("erfc")
erfcinv: Any = _of_both("erfcinv")
erfinv: Any = _of_both("erfinv")
expit: Any = _of_both("expit")
gamma: Any = _of_both("gamma")
gammainc: Any = _of_both("gammainc")
gammaincc: Any = _of_both("gammaincc")
gammaln: Any = _of_both("gammaln")
gammasgn: Any = _of_both("gammasgn")
i0: Any = _of_both("i0")
i1: Any = _of_both("i1")
iv: Any = _of_both("iv")
ive: Any = _of_both("ive")
j0: Any = _of_both("j0")
j1: Any = _of_both("j1")
jn: Any = _of_both("jn")
logit: Any = _of_both("logit")
logsumexp: Any = _of_both("logsumexp")
multigammaln: Any = _of_both("multigammaln")
polygamma: Any = _of_both("polygamma")
psi: Any = _of_both("psi")
rgamma: Any = _of_both("rgamma")
y0: Any = _of_both("y0")
y1: Any = _of_both("y1")
yn: Any = _of_both("yn")
