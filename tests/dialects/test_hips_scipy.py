"""Law: the functions of `xpgrad.dialects.hips.scipy` are SciPy's, with the derivatives that HIPS autograd has, or that differences say."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="its functions are computed by SciPy")
theirs = pytest.importorskip("autograd", reason="HIPS autograd is what is compared with; the extra `bench` brings it")
from xpgrad.dialects import hips as ours  # noqa: E402 (behind the skips)

scipy = importlib.import_module("xpgrad.dialects.hips.scipy")
RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, size=(2, 3))
Y = RNG.uniform(0.6, 2.4, size=(2, 3))

#: By name: the arguments, and the numbers of those to differentiate in.
SPECIAL: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("erf", "erfc", "erfinv", "erfcinv", "expit", "logit", "j0", "j1", "y0", "y1", "i0", "i1"), ((X,), (0,))),
    **dict.fromkeys(("gamma", "gammaln", "rgamma", "psi", "digamma", "gammasgn"), ((Y,), (0,))),
    **dict.fromkeys(("jn", "yn", "iv", "ive", "polygamma"), ((2, Y), (1,))),
    "gammainc": ((1.5, Y), (1,)), "gammaincc": ((1.5, Y), (1,)), "beta": ((Y, X), (0, 1)), "betaln": ((Y, X[0]), (0, 1)),
    "betainc": ((1.5, 2.5, X), (2,)), "multigammaln": ((3.7, 2), (0,)),
}  # fmt: skip


def both(program: Any, near: float = 1e-7) -> None:
    found = []
    for package in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(program(package, importlib.import_module(f"{package.__name__}.scipy.special"),
                                 importlib.import_module(f"{package.__name__}.scipy.stats.norm"), package.numpy))  # fmt: skip
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=near, atol=near)


def test_every_function_is_covered() -> None:
    names = {name for name, x in vars(importlib.import_module("autograd.scipy.special")).items() if getattr(x, "fun", None) is not None}
    mine = set(scipy.special.__all__)
    assert {n for n in names if n in mine} | {"logsumexp"} <= mine
    assert mine == {*SPECIAL, "logsumexp"}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str) -> None:
    args, argnums = SPECIAL[name]

    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(special, name)
        first = [m.elementwise_grad(f, n)(*args) for n in argnums]
        second = [m.elementwise_grad(m.elementwise_grad(f, n), n)(*args) for n in argnums]
        return [f(*args), *first, *second]

    both(program)
    np.random.seed(0)  # noqa: NPY002 (the directions are drawn from the global generator)
    for n in argnums:
        ours.test_util.check_grads(getattr(scipy.special, name), n, order=2)(*args)


def test_logsumexp() -> None:
    for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 0, "b": Y}):
        both(lambda m, special, norm, np, o=options: [
            special.logsumexp(X, **o), m.grad(lambda x: np.sum(special.logsumexp(x, **o) ** 2))(X),
            m.hessian(lambda x: np.sum(special.logsumexp(x, **o)))(X),
        ])  # fmt: skip
    large = ours.grad(scipy.special.logsumexp)(np.array([1000.0, 999.0, -np.inf]))
    np.testing.assert_allclose(large, [1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(1.0)), 0.0])


@pytest.mark.parametrize("name", ["pdf", "cdf", "logpdf", "logcdf", "sf", "logsf"])
def test_the_normal_distribution(name: str) -> None:
    def program(m: Any, special: Any, norm: Any, np: Any) -> Any:
        f = getattr(norm, name)
        which = (0, 1, 2)
        return [
            f(X, 0.3, Y),
            *m.grad(lambda x, a, s: np.sum(f(x, a, s) ** 2), which)(X, 0.3, Y),
            m.elementwise_grad(m.elementwise_grad(f))(X),
        ]

    both(program)
    assert np.isfinite(ours.grad(scipy.stats.norm.logcdf)(-40.0))


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"no 'signal', only `special` and `stats.norm`"):
        scipy.signal
    for name in ("linalg", "signal", "integrate"):
        with pytest.raises(ImportError, match=f"no '{name}', only `special`"):
            importlib.import_module(f"{scipy.__name__}.{name}")
    with pytest.raises(AttributeError, match="no 't', only `norm`"):
        scipy.stats.t
    with pytest.raises(NotImplementedError, match="argument 0"):
        ours.grad(scipy.special.gammainc)(1.5, 2.0)
