"""What stands for SciPy in code that was written for NumPy: the functions of `xpgrad.scipy`, if they are given Tensors or functions.

SciPy's functions convert their arguments to NumPy's arrays. Those of which nothing here has the name stay SciPy's, and raise for a Tensor
that requires grad.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from xpgrad import linalg
from xpgrad._modes import state
from xpgrad._numpy.semantics import first_tensor, is_followed, is_running
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten
from xpgrad.rules.conversion import asarray

__all__ = ["Converters", "find_stand_in", "is_scipys"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]
#: The modules of `xpgrad.scipy` whose names have stand-ins. The universal functions of `special` call NumPy's protocol themselves.
_MODULES = ("fft", "integrate", "interpolate", "linalg", "optimize", "signal", "sparse", "sparse.linalg", "special", "stats")


def is_scipys(x: Any) -> bool:
    """Return whether an object is a module, function, class or distribution of SciPy's."""
    kind = type(x)
    if kind is types.FunctionType or issubclass(kind, type) or kind.__module__ == "uarray":  # those of `scipy.fft` are uarray's
        return (x.__module__ or "").startswith("scipy.")
    if issubclass(kind, types.ModuleType):
        return x.__name__.partition(".")[0] == "scipy"
    return kind.__module__.startswith("scipy.") and callable(x)


class Converters(NamedTuple):
    """What is done to results of SciPy's functions, and to functions that ours get.

    Attributes
    ----------
    arrays : callable
        It turns NumPy's arrays into Tensors.
    functions : callable
        It returns a function that may write to its arguments, because they are copies.
    ufuncs : callable
        It returns a universal function that takes lists of Tensors.
    """

    arrays: Callable[[Any], Any]
    functions: Callable[[Any], Any]
    ufuncs: Callable[[Any], Any]


def find_stand_in(x: Any, convert: Converters) -> Any:
    """Return what stands for an object of SciPy's: the object itself if nothing here has its name.

    Parameters
    ----------
    x : object
        For which `is_scipys` is true.
    convert : Converters
    """
    if isinstance(x, types.ModuleType):
        return _find_module(x, convert)
    own = _find_own(x)
    if own is None:
        return x
    if isinstance(x, type):
        return _ClassStandIn(x.__name__, (), {"theirs": x, "own": staticmethod(own), "__module__": x.__module__})
    return _make_function(x, own, convert) if callable(own) else _Distribution(x, own, convert)


def _find_own(x: Any) -> Any:
    """Return the object of `xpgrad.scipy` that has the public name of an object of SciPy's; None if there is none."""
    for name in _MODULES:
        if (theirs := sys.modules.get(f"scipy.{name}")) is not None:
            own = importlib.import_module(f"xpgrad.scipy.{name}")
            for public in own.__all__:
                if getattr(theirs, public, None) is x:
                    return getattr(own, public)
            for public, function in _OTHERS.items():
                if public.rpartition(".")[0] == name and getattr(theirs, public.rpartition(".")[2], None) is x:
                    return function
    return None


def _quad(func: Any, a: Any, b: Any, args: Any = (), *, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50) -> Any:
    from xpgrad.scipy.integrate import quad_vec  # loads late: SciPy's functions, when the first is called

    args = args if isinstance(args, tuple) else (args,)
    return quad_vec(lambda x: func(x, *args), a, b, epsabs=epsabs, epsrel=epsrel, limit=limit)


def _fsolve(func: Any, x0: Any, args: Any = (), *, xtol: float = 1.49012e-8) -> Any:
    from xpgrad.scipy.optimize import root  # loads late: as above

    start = _np.asarray(x0, dtype=float) if first_tensor(x0) is None else asarray(x0)
    return root(func, start.reshape(-1) if start.ndim == 0 else start, args if isinstance(args, tuple) else (args,), tol=xtol).x


def _bracketed(f: Any, a: Any, b: Any, args: Any = (), *, xtol: float = 2e-12, rtol: Any = None, maxiter: int = 100) -> Any:
    from xpgrad.scipy.optimize import brentq  # loads late: as above

    return brentq(f, a, b, args, xtol=xtol, rtol=rtol, maxiter=maxiter)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, _sparse().SparseArray)


def _sparse() -> Any:
    return importlib.import_module("xpgrad.scipy.sparse._array")


def _build_matrix(name: str) -> Callable[..., Any]:
    """Return a function like one of `xpgrad.scipy.sparse` that makes a matrix, whose ``*`` is the product of matrices."""

    def build(arg: Any, shape: Any = None) -> Any:
        own = importlib.import_module("xpgrad.scipy.sparse")
        return _sparse().SparseMatrix.like(getattr(own, name)(arg, shape))

    return build


def _diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None) -> Any:  # noqa: A002 (SciPy's name)
    return _sparse().SparseMatrix.like(importlib.import_module("xpgrad.scipy.sparse").diags_array(diagonals, offsets=offsets, shape=shape))


#: Functions of SciPy's whose names `xpgrad.scipy` does not have, because the standard or NumPy has them, or SciPy has newer ones.
_OTHERS: dict[str, Callable[..., Any]] = {
    "integrate.quad": _quad,
    "linalg.cholesky": lambda a, lower=False: linalg.cholesky(a, upper=not lower),
    "linalg.det": lambda a: linalg.det(a),
    "linalg.eigh": lambda a: tuple(linalg.eigh(a)),
    "linalg.eigvalsh": lambda a: linalg.eigvalsh(a),
    "linalg.inv": lambda a: linalg.inv(a),
    "linalg.norm": lambda a, ord=None, axis=None, keepdims=False: _np.linalg.norm(a, ord, axis, keepdims),
    "linalg.pinv": lambda a: linalg.pinv(a),
    "linalg.solve": lambda a, b: linalg.solve(a, b),
    "linalg.svd": lambda a, full_matrices=True: tuple(linalg.svd(a, full_matrices=full_matrices)),
    "linalg.svdvals": lambda a: linalg.svdvals(a),
    "optimize.bisect": _bracketed,
    "optimize.brenth": _bracketed,
    "optimize.fsolve": _fsolve,
    "optimize.ridder": _bracketed,
    "sparse.coo_matrix": _build_matrix("coo_array"),
    "sparse.csc_matrix": _build_matrix("csc_array"),
    "sparse.csr_matrix": _build_matrix("csr_array"),
    "sparse.diags": _diags,
    "sparse.issparse": _is_sparse,
}


_signature = functools.cache(inspect.signature)


def _is_ours(own: Any, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether a call is computed here: it has Tensors, or functions, which may compute with some.

    With arguments that we do not know it is SciPy's, unless a derivative would be lost: then our function says what it does not know.
    """
    mode = state.current()
    if mode is None or mode.numpy is None:
        return False
    leaves = flatten((args, options))[0]
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if "xpgrad.scipy.sparse" in sys.modules:
        tensors += [x.data for x in leaves if _is_sparse(x)]
    if not tensors and not any(map(_is_function, (*args, *options.values()))):
        return False
    try:
        _signature(own).bind(*args, **_without_flags(options))
    except TypeError:
        return any(map(is_followed, tensors))
    return True


def _is_function(x: Any) -> bool:
    """Return whether a caller gives `x` as a function: a function, a method, a `partial`, or an object that can be called."""
    return callable(x) and not isinstance(x, (type, Tensor))


def _without_flags(options: dict[str, Any]) -> dict[str, Any]:
    """Return options without those that say what may be overwritten, or need not be checked: nothing is overwritten here."""
    return {k: x for k, x in options.items() if k != "check_finite" and not k.startswith("overwrite_")}


#: Functions of `scipy.optimize` that make an array with one axis of a start that has none.
_STARTING = ("least_squares", "minimize", "root")


def _start_with_axis(name: str, args: list[Any], options: dict[str, Any]) -> None:
    """Give a start without axes one, in place."""
    where: Any = (args, 1) if args[1:] else (options, "x0")
    start = where[0][where[1]] if args[1:] or "x0" in options else None
    if start is None or _np.ndim(start):
        return
    where[0][where[1]] = _np.atleast_1d(start)
    if name == "minimize" and args:
        args[0] = functools.partial(_call_for_scalar, args[0])


def _call_for_scalar(func: Any, *args: Any) -> Any:
    out = func(*args)
    return out.reshape(()) if isinstance(out, Tensor) and out.size == 1 else out


def _as_floats(x: Any) -> Any:
    """Return integers in a list or an array as floats, such as the start of a system of differential equations."""
    if type(x) is list:
        return [float(item) if type(item) is int else item for item in x]
    return x.astype(float) if isinstance(x, _np.ndarray) and x.dtype.kind in "iu" else x


def _as_array(x: list[Any], floating: bool) -> Any:
    out = asarray(x)
    return out.astype(float) if floating and not out.dtype.differentiable else out


def _make_function(theirs: Any, own: Any, convert: Converters) -> Any:
    part = theirs.__module__.split(".")[1]

    def prepare(x: Any) -> Any:
        if _is_function(x):
            return convert.functions(x)
        if part == "integrate":
            return _as_floats(x)
        return _as_array(x, part == "linalg") if part in ("linalg", "special", "stats") and type(x) is list else x

    @functools.wraps(theirs)
    def compute(*args: Any, **options: Any) -> Any:
        if _is_ours(own, args, options):
            own_args, own_options = list(map(prepare, args)), {k: prepare(x) for k, x in _without_flags(options).items()}
            if own.__name__ in _STARTING:
                _start_with_axis(own.__name__, own_args, own_options)
            return own(*own_args, **own_options)
        out = theirs(*args, **options)
        return tuple(map(convert.arrays, out)) if type(out) is tuple else convert.arrays(out)

    return compute


class _ClassStandIn(type):
    """The class of what stands for a class of SciPy's; instances of both are its instances."""

    theirs: Any
    own: Any

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if not isinstance(cls.own, type) and args and isinstance(args[0], Tensor):
            return cls.theirs(args[0].numpy(), *args[1:], **options)  # the pattern of a dense matrix is that of its values
        if _is_ours(cls.own, args, options):
            return cls.own(*args, **options)
        if is_running() and isinstance(cls.own, type):
            with suppress(TypeError, ValueError, NotImplementedError):
                return _OfConstants(cls.theirs(*args, **options), cls.own(*args, **options))
        return cls.theirs(*args, **options)

    def __instancecheck__(cls, x: Any) -> bool:
        if isinstance(x, cls.theirs):
            return True
        if isinstance(cls.own, type):
            return isinstance(x._own if isinstance(x, _OfConstants) else x, cls.own)
        return _is_sparse(x) and isinstance(x, _sparse().SparseMatrix) == cls.__name__.endswith("_matrix")

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.theirs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.theirs, name)


class _OfConstants:
    """What stands for an interpolant of constants, which may be asked for its values at places that have a gradient."""

    def __init__(self, theirs: Any, own: Any) -> None:
        self._theirs, self._own = theirs, own

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._own(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own if hasattr(self._own, name) else self._theirs, name)


class _Distribution:
    """What stands for a distribution of `scipy.stats`."""

    def __init__(self, theirs: Any, own: Any, convert: Converters) -> None:
        self._theirs, self._own, self._convert = theirs, own, convert

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _Frozen(self, args, options) if is_running() else self._theirs(*args, **options)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._theirs, name)
        own = getattr(self._own, name, None)
        return _make_function(found, own, self._convert) if callable(own) and isinstance(found, types.MethodType) else found


class _Frozen:
    """What stands for a distribution with its parameters: its methods get them after their own arguments."""

    def __init__(self, distribution: _Distribution, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._distribution, self._args, self._options = distribution, args, options

    def __getattr__(self, name: str) -> Any:
        distribution = self._distribution
        if hasattr(distribution._own, name):
            return functools.partial(self._call, getattr(distribution, name))
        found = getattr(distribution._theirs(*self._args, **self._options), name)  # such as `rvs`, whose parameters come first
        return functools.wraps(found)(lambda *args, **options: distribution._convert.arrays(found(*args, **options)))

    def _call(self, method: Any, *args: Any, **options: Any) -> Any:
        return method(*args, *self._args, **self._options, **options)


class _Module(types.ModuleType):
    """A module of SciPy's, with the stand-ins."""

    def __init__(self, module: Any, convert: Converters) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module, self._convert = module, convert

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if is_scipys(found):
            found = find_stand_in(found, self._convert)
        elif isinstance(found, _np.ufunc):
            found = self._convert.ufuncs(found)
        else:
            return found
        setattr(self, name, found)
        return found


@functools.cache
def _find_module(module: Any, convert: Converters) -> Any:
    return _Module(module, convert)
