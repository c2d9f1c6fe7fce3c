"""Find the function for a SciPy ufunc, whose name may differ from that of the public function."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from xpgrad._rows.namespace import operations
from xpgrad.scipy import special

#: Functions for the ufuncs whose names or arguments differ from those of public functions.
_HIDDEN: dict[str, Callable[..., Any]] = {
    "psi": special.digamma,
    "expm1": lambda x: operations.expm1(x), "log1p": lambda x: operations.log1p(x),
    "_beta_ppf": lambda q, a, b: special.betaincinv(a, b, q),
    "_lambertw": lambda z, k, tol: special.lambertw(z, int(k), float(tol)),
    "_zeta": special.zeta, "_riemann_zeta": special.zeta,
    **{f"_spherical_{kind}": lambda n, z, f=function: f(int(n), z) for kind, function in (
        ("jn", special.spherical_jn), ("yn", special.spherical_yn), ("in", special.spherical_in), ("kn", special.spherical_kn),
    )},
    **{f"_spherical_{kind}_d": lambda n, z, f=function: f(int(n), z, derivative=True) for kind, function in (
        ("jn", special.spherical_jn), ("yn", special.spherical_yn), ("in", special.spherical_in), ("kn", special.spherical_kn),
    )},
}  # fmt: skip


def function_for(name: str) -> Callable[..., Any]:
    """Return the function of Tensors for one of SciPy's ufuncs.

    Raises
    ------
    TypeError
        There is no such function; the message names the most similar one.
    """
    found = _HIDDEN.get(name)
    if found is None and name in special.__all__:
        found = getattr(special, name)
    if found is None:
        close = difflib.get_close_matches(name, special.__all__, n=1, cutoff=0.7)
        near = f"; the nearest that it has is `xpgrad.scipy.special.{close[0]}`" if close else ""
        msg = f"the universal function `scipy.special.{name}` has no rule in xpgrad{near}. For constants give `x.detach().numpy()`"
        raise TypeError(msg)
    return found
