"""`xpgrad.scipy.special`: SciPy's special functions for Tensors on every backend, differentiable to every order, in both modes and batched.

Each is elementwise, but for `logsumexp`, `softmax` and `log_softmax`, which are taken over axes. Integers become floating numbers of the
default dtype; beyond a domain the value is SciPy's nan or infinity, and the derivative is not finite. A derivative that has no closed form
and is not computed either, such as that by the order of a Bessel function, raises NotImplementedError.

A library's own functions compute where it has them. The others are compositions where one is accurate (every function of `expit`, `logit`,
`log_expit`, `xlogy`, `xlog1py`, `entr`, `rel_entr`, `kl_div`, `sinc`, `logsumexp`, `softmax` and `log_softmax` is one), else SciPy computes
them in the host's memory: without SciPy, or where the memory is elsewhere, they raise CapabilityError.
"""

from __future__ import annotations

from xpgrad._basics.faces import public_names
from xpgrad.scipy._bessel_functions import (
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    iv as iv,
    ive as ive,
    j0 as j0,
    j1 as j1,
    jn as jn,
    jv as jv,
    kv as kv,
    spherical_in as spherical_in,
    spherical_jn as spherical_jn,
    spherical_kn as spherical_kn,
    spherical_yn as spherical_yn,
    y0 as y0,
    y1 as y1,
    yn as yn,
    yv as yv,
)
from xpgrad.scipy._elementary import (
    entr as entr,
    expit as expit,
    kl_div as kl_div,
    lambertw as lambertw,
    log_expit as log_expit,
    log_softmax as log_softmax,
    logit as logit,
    logsumexp as logsumexp,
    rel_entr as rel_entr,
    sinc as sinc,
    softmax as softmax,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from xpgrad.scipy._error_functions import (
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfcx as erfcx,
    erfinv as erfinv,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
    owens_t as owens_t,
)
from xpgrad.scipy._gamma_functions import (
    beta as beta,
    betaln as betaln,
    binom as binom,
    comb as comb,
    digamma as digamma,
    exp1 as exp1,
    expi as expi,
    factorial as factorial,
    gamma as gamma,
    gammaln as gammaln,
    gammasgn as gammasgn,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    psi as psi,
    rgamma as rgamma,
    zeta as zeta,
)
from xpgrad.scipy._incomplete import (
    betainc as betainc,
    betaincc as betaincc,
    betaincinv as betaincinv,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammainccinv as gammainccinv,
    gammaincinv as gammaincinv,
    stdtr as stdtr,
    stdtrit as stdtrit,
)

__all__ = [
    "beta", "betainc", "betaincc", "betaincinv", "betaln", "binom", "comb", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx",
    "erfinv", "exp1", "expi", "expit", "factorial", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln",
    "gammasgn", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "kl_div", "kv", "lambertw", "log_expit", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "psi", "rel_entr",
    "rgamma", "sinc", "softmax", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtrit", "xlog1py", "xlogy",
    "y0", "y1", "yn", "yv", "zeta",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)
