"""Functions with SciPy's names and arguments that `xpgrad.scipy` does not have, because the standard or NumPy has them, or newer ones."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from xpgrad import linalg
from xpgrad._basics.dtypes import finfo
from xpgrad._numpy import distances, images
from xpgrad._numpy.operands import as_floating, can_read_values
from xpgrad._numpy.semantics import first_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.func import grad
from xpgrad.rules.conversion import asarray

__all__ = ["OTHERS", "get_sparse", "is_sparse"]

#: NumPy: `chapters` loaded it. Its functions compute with Tensors.
_np: Any = sys.modules["numpy"]

# -- integrate -----------------------------------------------------------------------------------------------------------


def _quad(
    func: Any, a: Any, b: Any, args: Any = (), full_output: Any = False, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50,
    points: Any = None,
) -> Any:  # fmt: skip
    from xpgrad.scipy.integrate import quad_vec  # loads late: SciPy's functions, when the first is called

    args = args if isinstance(args, tuple) else (args,)
    ends = [a, *(() if points is None else sorted(points)), b]
    parts = [quad_vec(lambda x: func(x, *args), *part, epsabs=epsabs, epsrel=epsrel, limit=limit) for part in itertools.pairwise(ends)]
    out = parts[0] if len(parts) == 1 else tuple(map(sum, zip(*[part[:2] for part in parts])))
    if not full_output:
        return out
    quad, ends = sys.modules["scipy.integrate"].quad, [float(_read(end)) for end in (a, b)]
    report = quad(lambda x: float(_read(func(x, *args))), *ends, (), full_output, epsabs, epsrel, limit, points)
    return *out[:2], *report[2:]


def odeint(
    func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = False, *, ml: Any = None, mu: Any = None,
    rtol: Any = None, atol: Any = None, h0: float = 0.0, hmax: float = 0.0, mxstep: int = 0, mxhnil: int = 0, printmessg: Any = False,
    tfirst: Any = False, method: str = "LSODA", gradient: Any = "auto", failure: Any = "raise",
) -> Any:  # fmt: skip
    own = importlib.import_module("xpgrad.scipy.integrate").odeint
    options: Any = {"method": method, "gradient": gradient, "failure": failure, "h0": h0, "hmax": hmax, "mxstep": mxstep}
    return own(func, y0, t, args, tfirst=bool(tfirst), rtol=rtol, atol=atol, **options)


def _solve_ivp(
    fun: Any, t_span: Any, y0: Any, method: str = "RK45", t_eval: Any = None, dense_output: bool = False, events: Any = None,
    vectorized: bool = False, args: Any = None, *, rtol: float = 1e-3, atol: Any = 1e-6, first_step: Any = None, max_step: Any = None,
    jac: Any = None, jac_sparsity: Any = None, lband: Any = None, uband: Any = None, gradient: Any = "auto", failure: Any = "raise",
) -> Any:  # fmt: skip
    from xpgrad.scipy.integrate import solve_ivp  # loads late: as above

    def derive(t: Any, y: Any, *more: Any) -> Any:
        return fun(t, y[:, None], *more).reshape(-1)

    options: Any = {"rtol": rtol, "atol": atol, "first_step": first_step, "max_step": max_step, "gradient": gradient, "failure": failure}
    function = derive if vectorized else fun
    return solve_ivp(function, t_span, y0, method, t_eval, dense_output, events, () if args is None else args, **options)


def _dblquad(func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8) -> Any:
    def inner(x: Any) -> Any:
        low, high = (end(x) if callable(end) else end for end in (gfun, hfun))
        return _quad(func, low, high, (x, *args), epsabs=epsabs, epsrel=epsrel)[0]

    return _quad(inner, a, b, epsabs=epsabs, epsrel=epsrel)


def _nquad(func: Any, ranges: Any, args: Any = ()) -> Any:
    def integrate(k: int, *later: Any) -> Any:
        if k < 0:
            return func(*later, *args)
        ends = ranges[k](*later, *args) if callable(ranges[k]) else ranges[k]
        value, error = _quad(lambda x: integrate(k - 1, x, *later) if k else func(x, *later, *args), *ends)
        return (value, error) if k == len(ranges) - 1 else value

    return integrate(len(ranges) - 1)


# -- optimize ------------------------------------------------------------------------------------------------------------


def _fsolve(func: Any, x0: Any, args: Any = (), *, xtol: float = 1.49012e-8) -> Any:
    from xpgrad.scipy.optimize import root  # loads late: as above

    start = _np.asarray(x0, dtype=float) if first_tensor(x0) is None else asarray(x0)
    return root(func, start.reshape(-1) if start.ndim == 0 else start, args if isinstance(args, tuple) else (args,), tol=xtol).x


def _find_root(fun: Callable[..., Any], find: Callable[[Callable[..., float]], float]) -> Any:
    """Return the root that SciPy finds, with its derivative."""
    from xpgrad.scipy.optimize import custom_root  # loads late: as above

    point = find(lambda t: float(_read(fun(t))))
    return custom_root(lambda t: asarray(fun(t)).reshape(()))(lambda: point)()


def _bracketed(name: str) -> Callable[..., Any]:
    def search(f: Any, a: Any, b: Any, args: Any = (), *rest: Any, full_output: bool = False, **options: Any) -> Any:
        args = args if isinstance(args, tuple) else (args,)
        report: Any = None

        def find(plain: Any) -> Any:
            nonlocal report
            ends = float(_read(a)), float(_read(b))
            found, report = getattr(sys.modules["scipy.optimize"], name)(plain, *ends, (), *rest, full_output=True, **options)
            return found

        root: Any = _find_root(lambda t: f(t, *args), find)
        if full_output:
            report.root = root
        return (root, report) if full_output else root

    return search


def _find_minimum(fun: Any, args: Any, find: Callable[[Any], float], bounds: Any = None, tol: Any = None) -> Any:
    """Return the point of a minimum that SciPy finds, with its derivative: where the slope is 0, unless the minimum is at a bound."""
    from xpgrad.scipy.optimize import custom_root  # loads late: as above

    slope = grad(lambda t: asarray(fun(t, *args)).reshape(()))
    point = find(lambda t: float(_read(fun(t, *args))))
    if bounds is not None and min(abs(point - float(_read(end))) for end in bounds) < 100.0 * (tol or 1e-5):
        here = asarray(point)
        if abs(float(_read(slope(here)))) > 100.0 * (tol or 1e-5) * abs(float(_read(grad(slope)(here)))):
            return here
    return custom_root(slope, symmetric=True)(lambda: point)()


def _read(x: Any) -> Any:
    return x.reshape(())._item("float(x)") if isinstance(x, Tensor) else x


def _minimize_scalar(
    fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None, tol: Any = None, options: Any = None
) -> Any:
    args = args if isinstance(args, tuple) else (args,)
    theirs, found = sys.modules["scipy.optimize"].minimize_scalar, {}

    def find(plain: Any) -> Any:
        found.update(theirs(plain, bracket, bounds, (), method, tol, options))
        return float(found["x"])

    x = _find_minimum(fun, args, find, bounds, tol or (options or {}).get("xatol"))
    return sys.modules["scipy.optimize"].OptimizeResult(found | {"x": x, "fun": fun(x, *args)})


def _golden(name: str) -> Callable[..., Any]:
    def search(func: Any, args: Any = (), brack: Any = None, tol: float = 1.48e-8, full_output: bool = False, maxiter: int = 500) -> Any:
        out = _minimize_scalar(func, brack, None, args, name, None, {"xtol": tol, "maxiter": maxiter})
        return (out.x, out.fun, out.nit, out.nfev)[: 4 if name == "brent" else 3] if full_output else out.x

    return search


def _fminbound(
    func: Any, x1: Any, x2: Any, args: Any = (), xtol: float = 1e-5, maxfun: int = 500, full_output: bool = False, disp: int = 1
) -> Any:
    out = _minimize_scalar(func, None, (x1, x2), args, "bounded", None, {"xatol": xtol, "maxiter": maxfun})
    return (out.x, out.fun, 0, out.nfev) if full_output else out.x


def _root_scalar(
    f: Any, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None, fprime2: Any = None, x0: Any = None,
    x1: Any = None, xtol: Any = None, rtol: Any = None, maxiter: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    args, several, found = args if isinstance(args, tuple) else (args,), fprime is True or fprime2 is True, {}

    def number(x: Any) -> Any:
        return None if x is None else float(_read(x))

    def find(plain: Any) -> Any:
        numbers = (lambda t: tuple(map(number, f(t, *args)))) if several else plain
        slopes = [(lambda t, g=g: number(g(t, *args))) if callable(g) else g for g in (fprime, fprime2)]
        ends = None if bracket is None else [number(end) for end in bracket]
        theirs = sys.modules["scipy.optimize"].root_scalar
        found.update(theirs(numbers, (), method, ends, *slopes, number(x0), number(x1), xtol, rtol, maxiter, options))
        return found["root"]

    root = _find_root(lambda t: f(t, *args)[0] if several else f(t, *args), find)
    results = sys.modules["scipy.optimize"].RootResults(root, 0, 0, 0, method)
    results.update(found | {"root": root})
    return results


def _leastsq(func: Any, x0: Any, args: Any = ()) -> Any:
    from xpgrad.scipy.optimize import least_squares  # loads late: as above

    return least_squares(func, _np.atleast_1d(x0), args=args if isinstance(args, tuple) else (args,)).x, 1


def _fmin_bfgs(f: Any, x0: Any, *, args: Any = (), gtol: float = 1e-5, disp: Any = None) -> Any:
    from xpgrad.scipy.optimize import minimize  # loads late: as above

    return minimize(f, _np.atleast_1d(x0), args, method="BFGS", tol=gtol).x


# -- linalg --------------------------------------------------------------------------------------------------------------


def _symmetric(a: Any, lower: bool, hermitian: bool = True) -> Any:
    """Return the matrix whose triangle SciPy reads."""
    part = _np.tril(a, -1) if lower else _np.triu(a, 1)
    other = _np.swapaxes(part, -1, -2)
    diagonal = a * _np.eye(a.shape[-1])
    if hermitian and _np.iscomplexobj(a):
        other, diagonal = other.conj(), diagonal.real
    return part + diagonal + other


_GENERAL, _SYMMETRIC, _HERMITIAN = (None, "gen", "general"), ("sym", "symmetric"), ("her", "hermitian", "pos", "positive definite")


def _solve(a: Any, b: Any, lower: bool = False, *, assume_a: Any = None, transposed: bool = False) -> Any:
    if assume_a in _SYMMETRIC or assume_a in _HERMITIAN:
        a = _symmetric(a, lower, assume_a in _HERMITIAN)
    elif assume_a not in _GENERAL:
        msg = f"`solve`: unexpected keyword argument 'assume_a'={assume_a!r}; xpgrad has 'gen', 'sym', 'her' and 'pos'"
        raise TypeError(msg)
    return linalg.solve(_np.swapaxes(a, -1, -2) if transposed else a, b)


def _cholesky(a: Any, lower: bool) -> Any:
    return linalg.cholesky(_symmetric(a, lower), upper=not lower)


def _eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    a = _symmetric(a, lower)
    if b is None:
        return linalg.eigvalsh(a) if eigvals_only else tuple(linalg.eigh(a))
    factor = _cholesky(b, True) if lower else _np.swapaxes(_cholesky(b, False), -1, -2).conj()
    half = linalg.solve(factor, a)
    whole = linalg.solve(factor, _np.swapaxes(half, -1, -2).conj())
    if eigvals_only:
        return linalg.eigvalsh(whole)
    values, vectors = linalg.eigh(whole)
    return values, linalg.solve(_np.swapaxes(factor, -1, -2).conj(), vectors)


def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False) -> Any:
    return _eigh(_np.diag(d) + _np.diag(e, -1) + _np.diag(e, 1), eigvals_only=eigvals_only)


def _qr(a: Any, mode: str = "full") -> Any:
    names = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in names:
        msg = f"`qr`: xpgrad has the modes {', '.join(names)}, not {mode!r}"
        raise TypeError(msg)
    out = _np.linalg.qr(a, names[mode])
    return (out,) if mode == "r" else tuple(out)


def _order_of(pivots: Any, count: int) -> Any:
    """Return the order of `count` rows after exchanges, one after the other."""
    order = _np.arange(count)
    for k, pivot in enumerate(pivots):
        order[[k, pivot]] = order[[pivot, k]]
    return order


def _find_pivots(a: Any) -> tuple[Any, Any]:
    """Return the exchanges of rows of an elimination, and the order of the rows after them."""
    if not can_read_values(a):
        msg = (
            "the order of rows in the factors of a matrix depends on its values, which are not known yet: use `solve`, or give `lu_solve` "
            "what `lu_factor` returns"
        )
        raise TypeError(msg)
    pivots = sys.modules["scipy.linalg"].lu_factor(a.detach().numpy())[1]
    return pivots, _order_of(pivots, a.shape[0])


def _eliminate(a: Any, order: Any) -> Any:
    """Return the factors of a matrix whose rows are in order, in one array."""
    out = a[order]
    for k in range(min(out.shape)):
        out[k + 1 :, k] /= out[k, k]
        out[k + 1 :, k + 1 :] -= _np.outer(out[k + 1 :, k], out[k, k + 1 :])
    return out


class _Factors:
    """What `lu_factor` returns: the factors and the exchanges of rows, which are computed if someone asks for them."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __iter__(self) -> Iterator[Any]:
        pivots, order = _find_pivots(self.matrix)
        return iter((_eliminate(self.matrix, order), pivots))

    def __getitem__(self, key: Any) -> Any:
        return tuple(self)[key]

    def __len__(self) -> int:
        return 2


def _lu_factor(a: Any) -> Any:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        msg = f"`lu_factor`: xpgrad factors square matrices, but got shape {tuple(a.shape)}"
        raise TypeError(msg)
    return _Factors(a)


def _lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Any:
    if isinstance(lu_and_piv, _Factors):
        a = lu_and_piv.matrix
    else:
        lu, pivots = lu_and_piv
        a = ((_np.tril(lu, -1) + _np.eye(lu.shape[0])) @ _np.triu(lu))[_np.argsort(_order_of(pivots, lu.shape[0]))]
    a = a if trans == 0 else a.T if trans == 1 else a.T.conj()
    return linalg.solve(a, asarray(b) if not isinstance(b, Tensor) else b)


def _lu(a: Any, permute_l: bool = False) -> Any:
    if a.ndim != 2:
        msg = f"`lu`: xpgrad factors one matrix, but got shape {tuple(a.shape)}"
        raise TypeError(msg)
    order = _find_pivots(a)[1]
    factors, k = _eliminate(a, order), min(a.shape)
    lower, upper = _np.tril(factors[:, :k], -1) + _np.eye(a.shape[0], k), _np.triu(factors[:k])
    back = _np.argsort(order)
    return (lower[back], upper) if permute_l else (asarray(_np.eye(a.shape[0])[back]), lower, upper)


def _solveh_banded(ab: Any, b: Any, *, lower: bool = False) -> Any:
    from xpgrad.scipy.linalg import solve_banded  # loads late: as above

    rows = list(ab if lower else ab[::-1])
    n, width = ab.shape[1], len(rows) - 1
    above, below = [], []
    for k, row in enumerate(rows[1:], 1):
        inside = row[: n - k] if lower else row[k:]
        above.append(_np.concatenate([_np.zeros(k), inside.conj() if lower else inside]))
        below.append(_np.concatenate([inside if lower else inside.conj(), _np.zeros(k)]))
    return solve_banded((width, width), _np.stack([*above[::-1], rows[0], *below]), b)


def _solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    from xpgrad.scipy.linalg import toeplitz  # loads late: as above

    return linalg.solve(toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr), b)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    return tuple(linalg.svd(a, full_matrices=full_matrices)) if compute_uv else linalg.svdvals(a)


# -- signal ---------------------------------------------------------------------------------------------------------------


def _lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """Return the state of a filter after these inputs and outputs; SciPy divides by ``a[0]`` unless it is 1, which loses a derivative."""
    b, a, y = (_np.atleast_1d(t) for t in (b, a, y))
    if (not isinstance(a, Tensor) or can_read_values(a)) and not bool(a[0]):
        msg = "lfiltic: the first of the coefficients `a` must not be 0"
        raise ValueError(msg)
    order = max(b.size, a.size) - 1
    state = -_continue_sums(a, y, order)
    return (state if x is None else state + _continue_sums(b, _np.atleast_1d(x), order)) / a[0]


def _continue_sums(c: Any, past: Any, order: int) -> Any:
    """Return what the past of a signal, the newest element first, adds to each of the next sums of its products with coefficients."""
    n = c.size - 1
    if not n or not past.size:
        return _np.zeros(order) * c[0]
    sums = _np.convolve(c[1:], past[:n][::-1])[past[:n].size - 1 :]
    return _np.pad(sums, (0, order - n))


# -- sparse ---------------------------------------------------------------------------------------------------------------


def is_sparse(x: Any) -> bool:
    """Return whether an object is a sparse array or matrix of Tensors."""
    return isinstance(x, get_sparse().SparseArray)


def get_sparse() -> Any:
    """Return the module of sparse arrays, which loads when the first is made."""
    return importlib.import_module("xpgrad.scipy.sparse._array")


def _build_matrix(name: str) -> Callable[..., Any]:
    """Return a function like one of `xpgrad.scipy.sparse` that makes a matrix, whose ``*`` is the product of matrices."""

    def build(arg: Any, shape: Any = None) -> Any:
        own = importlib.import_module("xpgrad.scipy.sparse")
        return get_sparse().SparseMatrix.like(getattr(own, name)(arg, shape))

    return build


def _diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None) -> Any:  # noqa: A002 (SciPy's name)
    out = importlib.import_module("xpgrad.scipy.sparse").diags_array(diagonals, offsets=offsets, shape=shape)
    return get_sparse().SparseMatrix.like(out._as_scipys(format) if format in ("csr", "csc") else out)


def _spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    from xpgrad.scipy.sparse.linalg import spsolve  # loads late: it needs SciPy

    out = spsolve(A, b)
    return out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out  # a single column is a vector in SciPy


# -- stats ---------------------------------------------------------------------------------------------------------------


def _check_distribution(values: Any, weights: Any) -> tuple[Any, Any]:
    """Return the values of a distribution and their probabilities."""
    values = as_floating(asarray(values))
    weights = _np.ones_like(values) if weights is None else as_floating(asarray(weights))
    if values.ndim != 1 or not values.size or weights.shape != values.shape:
        msg = f"a distribution needs a vector of values and one of as many weights, but their shapes are {values.shape} and {weights.shape}"
        raise ValueError(msg)
    total = weights.sum()
    if can_read_values(weights) and not bool((weights >= 0).all() & (total > 0) & (total < math.inf)):
        msg = "the weights of a distribution must not be negative, and their sum must be positive and finite"
        raise ValueError(msg)
    return values, weights / total


def _integrate_difference(power: int, u: tuple[Any, Any], v: tuple[Any, Any]) -> Any:
    """Return the integral of a power of the absolute difference of two distribution functions.

    SciPy evaluates these at the values, so that between equal values, which are at no distance, it has the difference after the last of
    them. Derivatives would be those of this one only. Here equal values count in their order and in the opposite one, which gives the same
    derivatives where these exist, and the mean of two sides elsewhere.
    """
    total: Any = 0.0
    for way in (slice(None), slice(None, None, -1)):
        values, steps = _np.concatenate([u[0], v[0]])[way], _np.concatenate([u[1], -v[1]])[way]
        order = _np.argsort(values, kind="stable")
        total = total + (_np.abs(_np.cumsum(steps[order])[:-1]) ** power * _np.diff(values[order])).sum() / 2
    return total


def _wasserstein_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    return _integrate_difference(1, _check_distribution(u_values, u_weights), _check_distribution(v_values, v_weights))


def _energy_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    return _np.sqrt(2 * _integrate_difference(2, _check_distribution(u_values, u_weights), _check_distribution(v_values, v_weights)))


def _zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    same, (scores, compare) = scores is compare, (as_floating(asarray(x)) for x in (scores, compare))
    if nan_policy not in ("propagate", "omit", "raise"):
        msg = f"nan_policy must be one of 'propagate', 'raise', 'omit', but got {nan_policy!r}"
        raise ValueError(msg)
    if nan_policy == "raise" and bool(_np.isnan(compare).any()):
        msg = "The input contains nan values"
        raise ValueError(msg)
    omits = nan_policy == "omit"
    find_mean, find_spread = (_np.nanmean, _np.nanstd) if omits else (_np.mean, _np.std)
    mean, spread = find_mean(compare, axis=axis, keepdims=True), find_spread(compare, axis=axis, ddof=ddof, keepdims=True)
    if omits:  # the derivative of nan by the mean would make that of all others nan
        missing = _np.isnan(scores)
        out = _np.where(missing, math.nan, (_np.where(missing, 0.0, scores) - mean) / spread)
    else:
        out = (scores - mean) / spread
    return _np.where(spread <= _np.abs(finfo(mean.dtype).eps * mean), math.nan, out) if same else out


#: By the public name below `scipy`.
OTHERS: dict[str, Callable[..., Any]] = {
    "integrate.dblquad": _dblquad,
    "integrate.nquad": _nquad,
    "integrate.odeint": odeint,
    "integrate.quad": _quad,
    "integrate.solve_ivp": _solve_ivp,
    "linalg.cho_factor": lambda a, lower=False: (_cholesky(a, lower), lower),
    "linalg.cholesky": lambda a, lower=False: _cholesky(a, lower),
    "linalg.det": lambda a: linalg.det(a),
    "linalg.eig": lambda a: tuple(linalg.eig(a)),
    "linalg.eigh": _eigh,
    "linalg.eigh_tridiagonal": _eigh_tridiagonal,
    "linalg.eigvals": lambda a: linalg.eigvals(a),
    "linalg.eigvalsh": lambda a, b=None, lower=True: _eigh(a, b, lower=lower, eigvals_only=True),
    "linalg.eigvalsh_tridiagonal": lambda d, e: _eigh_tridiagonal(d, e, True),
    "linalg.inv": lambda a: linalg.inv(a),
    "linalg.lu": _lu,
    "linalg.lu_factor": _lu_factor,
    "linalg.lu_solve": _lu_solve,
    "linalg.norm": lambda a, ord=None, axis=None, keepdims=False: _np.linalg.norm(a, ord, axis, keepdims),
    "linalg.pinv": lambda a: linalg.pinv(a),
    "linalg.pinvh": lambda a, lower=True: linalg.pinv(_symmetric(a, lower)),
    "linalg.qr": _qr,
    "linalg.solve": _solve,
    "linalg.solve_toeplitz": _solve_toeplitz,
    "linalg.solveh_banded": _solveh_banded,
    "linalg.svd": _svd,
    "linalg.svdvals": lambda a: linalg.svdvals(a),
    "optimize.bisect": _bracketed("bisect"),
    "optimize.brent": _golden("brent"),
    "optimize.brenth": _bracketed("brenth"),
    "optimize.brentq": _bracketed("brentq"),
    "optimize.fmin_bfgs": _fmin_bfgs,
    "optimize.fminbound": _fminbound,
    "optimize.fsolve": _fsolve,
    "optimize.golden": _golden("golden"),
    "optimize.leastsq": _leastsq,
    "optimize.minimize_scalar": _minimize_scalar,
    "optimize.ridder": _bracketed("ridder"),
    "optimize.root_scalar": _root_scalar,
    "optimize.toms748": _bracketed("toms748"),
    "signal._polyutils.polyroots": lambda coef, xp: _np.roots(coef),  # SciPy's of other libraries has another order, and is complex
    "signal.lfiltic": _lfiltic,
    "sparse.coo_matrix": _build_matrix("coo_array"),
    "sparse.csc_matrix": _build_matrix("csc_array"),
    "sparse.csr_matrix": _build_matrix("csr_array"),
    "sparse.diags": _diags,
    "sparse.issparse": is_sparse,
    "sparse.linalg.spsolve": _spsolve,
    "stats.energy_distance": _energy_distance,
    "stats.wasserstein_distance": _wasserstein_distance,
    "stats.zmap": _zmap,
}
for _module, _functions in (("ndimage", images.FUNCTIONS), ("spatial.distance", distances.FUNCTIONS)):
    OTHERS |= {f"{_module}.{_name}": _function for _name, _function in _functions.items()}
