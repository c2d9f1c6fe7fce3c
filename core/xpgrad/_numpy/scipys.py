"""What stands for SciPy in code that was written for NumPy: the functions of `xpgrad.scipy`, if they are given Tensors or functions.

SciPy's functions convert their arguments to NumPy's arrays. Those of which nothing here has the name stay SciPy's. If one gets a Tensor
with a derivative, its code runs on Tensors: the names of SciPy's modules mean stand-ins, and xpgrad is the namespace of Tensors for code
that takes arrays of any library of the standard. What is written in another language converts the Tensor, which raises.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import xpgrad as xp
from xpgrad._modes import state
from xpgrad._numpy.operands import can_read_values
from xpgrad._numpy.scipy_functions import OTHERS, get_sparse, is_sparse
from xpgrad._numpy.semantics import first_tensor, is_followed, is_running
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map
from xpgrad.rules.conversion import asarray

__all__ = ["EXTRA", "Converters", "LibraryClass", "find_policies", "find_stand_in", "is_scipys"]

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
    libraries : callable
        It returns a context manager in which the names of a module mean the stand-ins, from these names.
    """

    arrays: Callable[[Any], Any]
    functions: Callable[[Any], Any]
    ufuncs: Callable[[Any], Any]
    libraries: Callable[[dict[str, Any]], Any]


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
        if isinstance(x, type):
            return _make_library_class(x, convert)
        if not inspect.isfunction(x):
            return _Distribution(x, None, convert) if hasattr(x, "logsf") else x
        return _make_namespace(x) if x.__name__ == "array_namespace" else _run_library(x, convert)
    if isinstance(x, type):
        return _ClassStandIn(x.__name__, (), {"theirs": x, "own": staticmethod(own), "__module__": x.__module__})
    return _make_function(x, own, convert) if callable(own) else _Distribution(x, own, convert)


def _find_own(x: Any) -> Any:
    """Return the object of `xpgrad.scipy` that has the public name of an object of SciPy's; None if there is none."""
    for name, function in OTHERS.items():
        module, _, public = name.rpartition(".")
        if getattr(sys.modules.get(f"scipy.{module}"), public, None) is x:
            return function
    for name in _MODULES:
        if (theirs := sys.modules.get(f"scipy.{name}")) is not None:
            own = importlib.import_module(f"xpgrad.scipy.{name}")
            for public in own.__all__:
                if getattr(theirs, public, None) is x:
                    return getattr(own, public)
    return None


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
        tensors += [x.data for x in leaves if is_sparse(x)]
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


#: The functions that make an array with one axis of their start, and the names of this second argument.
_STARTING = {"least_squares": "x0", "minimize": "x0", "odeint": "y0", "root": "x0"}


def _convert_start(name: str, args: list[Any], options: dict[str, Any]) -> None:
    """Replace a start without axes, or one that is a sequence, by an array, in place."""
    where: Any = (args, 1) if args[1:] else (options, _STARTING[name])
    start = where[0][where[1]] if args[1:] or where[1] in options else None
    if isinstance(start, (list, tuple)):
        where[0][where[1]] = _as_array(list(start), True)
        return
    if start is None or _np.ndim(start):
        return
    where[0][where[1]] = _as_floats(_np.atleast_1d(start))
    if name in _CALLED and args:
        args[0] = functools.partial(_CALLED[name], args[0])


def _call_for_scalar(func: Any, *args: Any) -> Any:
    out = func(*args)
    return out.reshape(()) if isinstance(out, Tensor) and out.size == 1 else out


def _call_for_vector(func: Any, *args: Any) -> Any:
    out = func(*args)
    return out if isinstance(out, (list, tuple)) or _np.ndim(out) else [out]


#: For each solver, how it calls its function if the start had no axes.
_CALLED = {"minimize": _call_for_scalar, "odeint": _call_for_vector}


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
        if part == "integrate" or (part == "linalg" and isinstance(x, _np.ndarray)):
            return _as_floats(x)
        return _as_array(x, part == "linalg") if part in ("linalg", "special", "stats") and type(x) is list else x

    @functools.wraps(theirs)
    def compute(*args: Any, **options: Any) -> Any:
        if _is_ours(own, args, options):
            own_args, own_options = list(map(prepare, args)), {k: prepare(x) for k, x in _without_flags(options).items()}
            if own.__name__ in _STARTING:
                _convert_start(own.__name__, own_args, own_options)
            return own(*own_args, **own_options)
        return _call_theirs(theirs, args, options, convert)

    return compute


def _call_theirs(theirs: Any, args: tuple[Any, ...], options: dict[str, Any], convert: Converters) -> Any:
    """Call a function of SciPy's, with its own sparse arrays for those of constants; arrays that it returns become Tensors."""
    if is_running() and "xpgrad.scipy.sparse" in sys.modules:
        args, options = tree_map(functools.partial(_as_scipys, theirs), (args, options))
    read: list[tuple[Tensor, Any, Any]] = []
    args, options = _read_constants(read, args, options)
    out = theirs(*args, **options)
    for x, before, after in read:  # the function may write into an argument, as into `output`
        if not _np.array_equal(before, after, equal_nan=True):
            x[...] = after
    return tuple(map(convert.arrays, out)) if type(out) is tuple else convert.arrays(out)


def _read_constants(read: list[tuple[Tensor, Any, Any]], *given: Any) -> Any:
    """Return arguments of a function of SciPy's with NumPy's arrays for Tensors, which some take for arrays of an unknown library.

    They are copies, because a write of SciPy's into the memory of a Tensor would change values saved for a backward pass. `read` receives
    each Tensor with its array and the copy.
    """
    mode: Any = state.current()
    if not is_running() or mode.numpy.in_libraries or _has_derivative(given):
        return given

    def copy(x: Any) -> Any:
        if not isinstance(x, Tensor) or not can_read_values(x):
            return x
        array = x.detach().numpy()
        read.append((x, array, array.copy(order="K")))
        return read[-1][2]

    return tree_map(copy, given)


def _as_scipys(theirs: Any, x: Any) -> Any:
    """Return a sparse array of constants as one of SciPy's, and anything else unchanged."""
    if not is_sparse(x):
        return x
    if is_followed(x.data):
        msg = f"scipy.{theirs.__name__} has no derivative by the entries of a sparse array; use `x.detach()` if a constant is meant"
        raise TypeError(msg)
    out = x.to_scipy()
    return sys.modules["scipy.sparse"].csr_matrix(out) if isinstance(x, get_sparse().SparseMatrix) else out  # a matrix, whose `*` is `@`


def _run_library(theirs: Any, convert: Converters) -> Any:
    """Return a function like one of SciPy's that xpgrad does not have: if it gets a Tensor with a derivative, its code runs on Tensors.

    What it computes in another language raises, because the Tensor is converted.
    """
    modules = _find_modules(theirs)

    @functools.wraps(theirs)
    def compute(*args: Any, **options: Any) -> Any:
        if not is_running():
            return theirs(*args, **options)
        if not _has_derivative(args, options):
            return _call_theirs(theirs, args, options, convert)
        mode: Any = state.current()
        with ExitStack() as stack:
            for library in map(convert.libraries, modules):
                stack.enter_context(library)
                mode.numpy.modules.append(library)
                stack.callback(mode.numpy.modules.pop)
            mode.numpy.in_libraries += 1
            stack.callback(mode.numpy.leave_library)
            if any(type(x) is str and x == "omit" for x in (*args, *options.values())):  # a `nan_policy`
                args, options = tree_map(_make_nan_constant, (args, options))
            return theirs(*args, **options)

    return compute


def _make_nan_constant(x: Any) -> Any:
    """Return a Tensor whose elements that are nan have no gradient: 0 times the derivative of e.g. `log` at nan would be nan."""
    return xp.where(xp.isnan(x), _np.nan, x) if isinstance(x, Tensor) and x.dtype.differentiable else x


#: Where SciPy keeps functions that take arrays of any library of the standard.
EXTRA = "scipy._lib.array_api_extra._lib."


def _find_modules(*functions: Any) -> list[dict[str, Any]]:
    """Return the global names of the modules of functions, and of those that they decorate, and of modules that find namespaces."""
    found = {id(vars(x)): vars(x) for name, x in list(sys.modules.items()) if name.startswith(EXTRA) and hasattr(x, "array_namespace")}
    for x in functions:
        level = getattr(x, "__func__", getattr(x, "fget", x))  # of a class method and of a property
        while level is not None:
            if inspect.isfunction(level) and level.__module__.startswith("scipy."):
                found[id(level.__globals__)] = level.__globals__
            level = getattr(level, "__wrapped__", None)
    return list(found.values())


@functools.cache
def _find_modules_of(cls: type) -> list[dict[str, Any]]:
    return _find_modules(*(x for base in cls.__mro__ for x in vars(base).values()))


def _enter_modules(cls: type, convert: Converters) -> None:
    """Run the code of a class and of its bases on Tensors, until the call of `numpy_code` ends."""
    mode: Any = state.current()
    for names in _find_modules_of(cls):
        library = convert.libraries(names)
        mode.numpy.libraries.enter_context(library)
        mode.numpy.modules.insert(0, library)  # those after it are removed when functions end


def find_policies(names: dict[str, Any]) -> dict[str, Any]:
    """Return what stands for functions in the modules by which SciPy applies `axis`, `nan_policy` and `keepdims`; in others, nothing.

    One of these modules would treat Tensors as arrays of another library: it would ignore `nan_policy` if they have several axes, and all
    three inside of `vmap`.
    """
    theirs: Any = types.SimpleNamespace(**names)
    if names["__name__"] == "scipy.stats._stats_py":
        return {"_xp_var": functools.partial(_compute_variance, theirs)}
    if names["__name__"] != "scipy.stats._axis_nan_policy":
        return {}

    def find_nan(x: Any, nan_policy: str = "propagate", **options: Any) -> Any:
        if not isinstance(x, Tensor) or can_read_values(x):
            return theirs._contains_nan(_np.asarray(x.detach()) if isinstance(x, Tensor) else x, nan_policy, **options)
        if nan_policy != "propagate":
            msg = f"nan_policy={nan_policy!r} needs the values of the array, which are not known in vmap and compile"
            raise NotImplementedError(msg)
        return False

    return {
        "is_numpy": lambda library: library is xp or theirs.is_numpy(library),
        "is_lazy_array": lambda x: not isinstance(x, Tensor) and theirs.is_lazy_array(x),
        "_contains_nan": find_nan,
    }


def _compute_variance(theirs: Any, x: Any, /, *, correction: Any = 0, nan_policy: str = "propagate", **options: Any) -> Any:
    """Do what `_xp_var` of SciPy's does, which squares nan and omits the squares: 0 times their derivative would be nan for the mean."""
    if nan_policy != "omit" or not isinstance(x, Tensor) or not can_read_values(x):  # `tvar` omits its own nan, and not that of batches
        return theirs._xp_var(x, correction=correction, nan_policy=nan_policy, **options)
    missing, options = xp.isnan(x), options | {"nan_policy": nan_policy}
    apart = xp.where(missing, 0.0, x - theirs._xp_mean(x, **options | {"keepdims": True}))
    mean = theirs._xp_mean(xp.where(missing, _np.nan, apart * xp.conj(apart)), **options)
    count = xp.sum(xp.astype(~missing, mean.dtype), axis=options.get("axis"), keepdims=options.get("keepdims", False))
    return mean * (count / xp.where(count > correction, count - correction, _np.nan))


def _has_derivative(*given: Any) -> bool:
    return is_running() and any(isinstance(x, Tensor) and is_followed(x) for x in flatten(given)[0])


class LibraryClass(type):
    """The class of what stands for a class of SciPy's that xpgrad does not have, whose code runs on Tensors with a derivative."""

    theirs: Any
    convert: Converters

    def __call__(cls, *args: Any, **options: Any) -> Any:
        mode: Any = state.current()
        if _has_derivative(args, options) or (is_running() and mode.numpy.in_libraries):
            _enter_modules(cls.theirs, cls.convert)
        return cls.theirs(*args, **options)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.theirs)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.theirs)

    def __getattr__(cls, name: str) -> Any:
        found = getattr(cls.theirs, name)
        if not inspect.isroutine(found):
            return found

        @functools.wraps(found)
        def compute(*args: Any, **options: Any) -> Any:
            if _has_derivative(args, options):
                _enter_modules(cls.theirs, cls.convert)
            return found(*args, **options)

        return compute


def _make_library_class(x: Any, convert: Converters) -> Any:
    """Return what stands for a class of SciPy's that xpgrad does not have: the class itself if it is not one of numerical objects."""
    if issubclass(x, (BaseException, tuple)) or x.__init__ is object.__init__ or x.__module__.split(".")[1].startswith("_"):
        return x
    return LibraryClass(x.__name__, (), {"theirs": x, "convert": convert, "__init__": x.__init__, "__module__": x.__module__})


def _make_namespace(theirs: Any) -> Any:
    """Return a function like SciPy's `array_namespace`, for which xpgrad is the namespace of Tensors."""

    @functools.wraps(theirs)
    def find(*arrays: Any) -> Any:
        return theirs(*arrays) if not is_running() or first_tensor(arrays) is None else xp

    return find


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
        return is_sparse(x) and isinstance(x, get_sparse().SparseMatrix) == cls.__name__.endswith("_matrix")

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
        if not isinstance(found, types.MethodType):
            return found
        if self._own is not None and found.__func__ is sys.modules["scipy.stats"].rv_continuous.expect:
            return functools.partial(self._run, types.MethodType(found.__func__, _WithOurDensity(self)))
        if not callable(own):
            return functools.partial(self._run, found)
        return _make_function(found, _drop_ones(own) if self._theirs.__module__.endswith("_multivariate") else own, self._convert)

    def _run(self, method: Any, *args: Any, **options: Any) -> Any:
        """Call a method that xpgrad does not have."""
        if _has_derivative(args, options):
            _enter_modules(type(self._theirs), self._convert)
        args, options = _read_constants([], args, options)
        return self._convert.arrays(method(*args, **options)) if is_running() else method(*args, **options)


class _WithOurDensity:
    """What stands for a distribution in SciPy's `expect`, which integrates its density: ours has derivatives at ends of the support."""

    def __init__(self, distribution: _Distribution) -> None:
        self.pdf = distribution.pdf
        self._theirs = distribution._theirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)


def _drop_ones(own: Any) -> Any:
    """Return a method like one of a distribution of vectors, whose result has no axes of length 1, as SciPy's."""
    return functools.wraps(own)(lambda *args, **options: own(*args, **options).squeeze())


#: Methods of all distributions, whose parameters follow their own arguments, and of which `xpgrad.scipy.stats` has none.
_SUMMARIES = ("entropy", "interval", "mean", "median", "moment", "std", "support", "var")


class _Frozen:
    """What stands for a distribution with its parameters: its methods get them after their own arguments."""

    def __init__(self, distribution: _Distribution, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._distribution, self._args, self._options = distribution, args, options

    def __getattr__(self, name: str) -> Any:
        distribution = self._distribution
        if hasattr(distribution._own, name) or (name in _SUMMARIES and hasattr(distribution._theirs, name)):
            return functools.partial(self._call, getattr(distribution, name))
        found = getattr(distribution._theirs(*self._args, **self._options), name)  # such as `rvs`, whose parameters come first
        if not callable(found):  # such as the mean of a distribution of vectors
            return distribution._convert.arrays(found)
        return functools.wraps(found)(lambda *args, **options: distribution._convert.arrays(found(*args, **options)))

    def _call(self, method: Any, *args: Any, **options: Any) -> Any:
        return method(*args, *self._args, **self._options, **options)

    def expect(self, func: Any = None, lb: Any = None, ub: Any = None, conditional: bool = False, **options: Any) -> Any:
        """Return the expected value of a function; unlike other methods, that of the distribution takes the shapes as one argument."""
        shapes, loc, scale = self._distribution._theirs._parse_args(*self._args, **self._options)
        options |= {} if hasattr(self._distribution._theirs, "pmf") else {"scale": scale}
        return self._distribution.expect(func, shapes, loc, lb=lb, ub=ub, conditional=conditional, **options)


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
