"""Calls of the functions of `scipy.special` that accept arrays of any library."""

from __future__ import annotations

from scipy import special as s

from support.consumers.rows import COUNTS, Row, V, W, X, row, words

ONE = words("""cbrt cosm1 cosdg cotdg digamma ellipk ellipkm1 entr erf erfc erfcx erfinv exp1 exp10 exp2 expi expit exprel gamma gammaln
gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log_ndtr loggamma logit ndtr ndtri psi rgamma sinc sindg spence tandg y0 y1""")
TWO = words("""betaln binom boxcox boxcox1p chdtr chdtrc chdtri gammainc gammaincc gammainccinv gammaincinv huber inv_boxcox inv_boxcox1p
kl_div poch pseudo_huber rel_entr stdtr stdtrit xlog1py xlogy""")

ROWS: dict[str, Row] = {
    **{f"scipy.special.{name}": row(getattr(s, name), V) for name in ONE},
    **{f"scipy.special.{name}": row(getattr(s, name), V, W) for name in TWO},
    **{f"scipy.special.{name}": row(getattr(s, name), V + 1.0, W + 1.0, V) for name in ("betainc", "betaincc", "betaincinv", "hyp1f1")},
    **{f"scipy.special.{name}": row(getattr(s, name), V + 1.0, W + 1.0, V) for name in ("fdtr", "fdtrc", "fdtri", "gdtr", "gdtrc")},
    **{f"scipy.special.{name}": row(getattr(s, name), COUNTS, COUNTS + 2, V) for name in ("bdtr", "bdtrc", "bdtri")},
    **{f"scipy.special.{name}": row(getattr(s, name), COUNTS, COUNTS + 2, V) for name in ("nbdtr", "nbdtrc", "nbdtri")},
    **{f"scipy.special.{name}": row(getattr(s, name), COUNTS, V) for name in ("pdtr", "pdtrc", "pdtri", "expn", "yn", "polygamma")},
    "scipy.special.lpmv": row(s.lpmv, COUNTS - 1, V + 1.0, W),
    "scipy.special.multigammaln": row(lambda a: s.multigammaln(a, 2), V + 1.0),
    "scipy.special.radian": row(s.radian, V, W, V + 1.0),
    "scipy.special.zeta": row(s.zeta, V + 2.0, W + 1.0),
    "scipy.special.zetac": row(s.zetac, V + 2.0),
    "scipy.special.logsumexp": row(lambda x: s.logsumexp(x, axis=1)),
    "scipy.special.logsumexp(b=)": row(lambda x, b: s.logsumexp(x, axis=1, b=b), X, X + 1.0),
    "scipy.special.softmax": row(lambda x: s.softmax(x, axis=1)),
    "scipy.special.log_softmax": row(lambda x: s.log_softmax(x, axis=1)),
}
LEFT_OUT: dict[str, str] = {}
