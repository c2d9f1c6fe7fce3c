"""Special functions: SciPy's for arrays, and those of `xpgrad.scipy.special` for values that are differentiated.

All are elementwise except `logsumexp`. They are differentiable with respect to all arguments except orders, which raise
`NotImplementedError`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips.scipy._wrapping import others, wrap
from xpgrad.scipy import special as _ours

__all__ = [
    "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammainc", "gammaincc", "gammaln",
    "gammasgn", "i0", "i1", "iv", "ive", "j0", "j1", "jn", "logit", "logsumexp", "multigammaln", "polygamma", "psi", "rgamma", "y0", "y1",
    "yn",
]  # fmt: skip

_special: Any = importlib.import_module("scipy.special")


beta: Any = wrap(_special, _ours, "beta")
betainc: Any = wrap(_special, _ours, "betainc")
betaln: Any = wrap(_special, _ours, "betaln")
digamma: Any = wrap(_special, _ours, "digamma")
erf: Any = wrap(_special, _ours, "erf")
erfc: Any = wrap(_special, _ours, "erfc")
erfcinv: Any = wrap(_special, _ours, "erfcinv")
erfinv: Any = wrap(_special, _ours, "erfinv")
expit: Any = wrap(_special, _ours, "expit")
gamma: Any = wrap(_special, _ours, "gamma")
gammainc: Any = wrap(_special, _ours, "gammainc")
gammaincc: Any = wrap(_special, _ours, "gammaincc")
gammaln: Any = wrap(_special, _ours, "gammaln")
gammasgn: Any = wrap(_special, _ours, "gammasgn")
i0: Any = wrap(_special, _ours, "i0")
i1: Any = wrap(_special, _ours, "i1")
iv: Any = wrap(_special, _ours, "iv")
ive: Any = wrap(_special, _ours, "ive")
j0: Any = wrap(_special, _ours, "j0")
j1: Any = wrap(_special, _ours, "j1")
jn: Any = wrap(_special, _ours, "jn")
logit: Any = wrap(_special, _ours, "logit")
logsumexp: Any = wrap(_special, _ours, "logsumexp")
multigammaln: Any = wrap(_special, _ours, "multigammaln")
polygamma: Any = wrap(_special, _ours, "polygamma")
psi: Any = wrap(_special, _ours, "psi")
rgamma: Any = wrap(_special, _ours, "rgamma")
y0: Any = wrap(_special, _ours, "y0")
y1: Any = wrap(_special, _ours, "y1")
yn: Any = wrap(_special, _ours, "yn")

#: Other functions of `scipy.special`, to which `defvjp` can give rules if xpgrad has none.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = others(globals(), _special, _ours)
