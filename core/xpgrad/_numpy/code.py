"""Runs functions that were written for NumPy with Tensors: what they make with NumPy's functions becomes a Tensor.

NumPy's functions take Tensors (`dispatch`), but those that make arrays from shapes and numbers get none, and return arrays of NumPy's, into
which no Tensor can be written; and NumPy does not find Tensors in lists. So during a call, the names of the function's module that mean
NumPy, or functions of it, mean stand-ins.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any, ClassVar, TypeVar, cast

from xpgrad._aliasing.cells import is_window
from xpgrad._backends.classes import host_backend
from xpgrad._backends.default_device import default_device
from xpgrad._basics.threads import renew_in_children
from xpgrad._modes import state
from xpgrad._modes.setting import Setting
from xpgrad._numpy import chapters as chapters
from xpgrad._numpy.classes import NUMBER_CLASSES, has_attribute, is_instance, make_array_class, make_type_class
from xpgrad._numpy.dispatch import array_function, has_rule
from xpgrad._numpy.generators import is_generator_class, make_generator_class, make_global_draw, share_generator
from xpgrad._numpy.iteration import iterate
from xpgrad._numpy.mathematics import find_number_function, round_number
from xpgrad._numpy.scipys import EXTRA, Converters, LibraryClass, find_policies, find_stand_in, is_scipys
from xpgrad._numpy.semantics import Grid, Joiner, Semantics, enumerate_elements, first_tensor, flatten_flat, is_followed, is_running
from xpgrad._numpy.shared import SharedArray, as_plain, as_result, as_tensor, find_arrays, note_array
from xpgrad._numpy.table import LIKE
from xpgrad._numpy.vectorized import Vectorized
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map

__all__ = ["numpy_code"]

F = TypeVar("F", bound=Callable[..., Any])

#: NumPy: the library of the host's backend, which is loaded by then.
_np: Any = sys.modules[host_backend().array_types()[0].__module__]


def _as_tensor(x: Any) -> Any:
    """Return a floating-point or complex array of NumPy's as a Tensor in memory of its own; return anything else unchanged."""
    if not isinstance(x, _np.ndarray):
        return share_generator(x, _as_tensor_inside) if is_generator_class(type(x)) else x
    return as_tensor(x)


def _as_tensor_inside(x: Any) -> Any:
    """Do what `_as_tensor` does while this thread runs code for NumPy."""
    return _as_tensor(x) if is_running() else x


_SEQUENCES = frozenset((list, tuple, deque))


@functools.cache
def _stand_in(function: Any) -> Any:
    """Return a function like NumPy's, whose results are Tensors where NumPy's are floating-point or complex arrays."""
    name = getattr(function, "__name__", "")
    makes = name in LIKE and getattr(_np, name, None) is function

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        if not is_running():
            return function(*args, **options)
        # NumPy finds Tensors among the arguments by itself, but not in lists.
        if makes or not (_SEQUENCES.isdisjoint(map(type, args)) and _SEQUENCES.isdisjoint(map(type, options.values()))):
            if makes and args:
                first = args[0].coeffs if isinstance(args[0], _np.poly1d) else flatten_flat(args[0])
                args = first, *args[1:]
            like = first_tensor((args, options))
            if like is not None and (makes or has_rule(function)):
                out = array_function(like, function, (Tensor,), args, options)
                return note_array(out.clone() if out is like and out.ndim == 0 else out) if makes else out
        given = find_arrays(args, options)
        if any(x.__class__ is SharedArray for x in given):
            args, options = tree_map(as_plain, (args, options))
        out = function(*args, **options)  # which NumPy's protocol computes if it gets a Tensor
        return tree_map(lambda x: as_result(x, given) if isinstance(x, _np.ndarray) else _as_tensor(x), out)

    return compute


@functools.cache
def _ufunc_stand_in(ufunc: Any) -> Any:
    """Return a function like a universal one, which finds Tensors in lists as well; its methods do, too."""

    def finding(function: Any) -> Any:
        @functools.wraps(function)
        def compute(*args: Any, **options: Any) -> Any:
            for x in args:
                if x.__class__ in _SEQUENCES and is_running() and (like := first_tensor(x)) is not None:
                    return function(*[_join(x, like) for x in args], **options)
            return function(*args, **options)

        return compute

    def write_at(x: Any, key: Any, *values: Any) -> None:
        ufunc.at(x, key, *[v if (like := first_tensor(v)) is None else _join(v, like) for v in values])  # a tuple is a key of several axes

    found = finding(ufunc)
    for name in dir(ufunc):
        if not name.startswith("_"):
            own = getattr(ufunc, name)
            setattr(found, name, write_at if name == "at" else finding(own) if callable(own) else own)
    return found


def _join(x: Any, like: Any) -> Any:
    """Return a list that contains Tensors as one Tensor, and anything else unchanged."""
    return x if x.__class__ not in _SEQUENCES or first_tensor(x) is None else LIKE["asarray"](like, x)


def _is_numpys(function: Any) -> bool:
    module = getattr(function, "__module__", None)
    return module is None or module.startswith("numpy")  # functions of `numpy.random` have no module


def _replace(x: Any) -> Any:
    """Return what stands for a global object: stand-ins of NumPy and its functions, without most classes; else `x`."""
    kind = x.__class__
    if is_scipys(x):
        return find_stand_in(x, _CONVERTERS)
    if kind is types.ModuleType:
        return _find_module(x) if x.__name__ in _MODULES else x
    if kind is _np.vectorize:
        return Vectorized(x, _as_tensor_inside)
    if kind is functools.partial:
        inner = _replace(x.func)
        return x if inner is x.func else functools.partial(inner, *x.args, **x.keywords)
    if kind is type and x in NUMBER_CLASSES:
        return NUMBER_CLASSES[x]
    for numpys, own in _STAND_INS:
        if x is numpys:
            return own
    if is_generator_class(kind):
        return share_generator(x, _as_tensor_inside)
    if is_generator_class(x):
        return make_generator_class(x, _as_tensor_inside)
    if is_generator_class(type(getattr(x, "__self__", None))):
        return make_global_draw(x, _as_tensor_inside)
    if (own := find_number_function(x)) is not None:
        return own
    if kind is _np.ufunc:
        return _ufunc_stand_in(x)
    name = getattr(x, "__name__", "")
    if isinstance(x, type) or not name or not callable(x):
        return x
    return _stand_in(x) if _is_numpys(x) and any(getattr(sys.modules.get(module), name, None) is x for module in _MODULES) else x


def _is_scalar(x: Any) -> bool:
    """Stand in for `numpy.isscalar`."""
    mode = state.current()
    if isinstance(x, Tensor) and mode is not None and mode.numpy is not None:
        return bool(mode.numpy.is_scalar(x))
    return bool(_np.isscalar(x))


def _from_iterable(items: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    """Stand in for `numpy.fromiter`."""
    if not is_running():
        return _np.fromiter(items, dtype, count, **options)
    found = list(items if count < 0 else itertools.islice(items, count))
    like = first_tensor(found)
    return _as_tensor(_np.fromiter(found, dtype, count, **options)) if like is None else LIKE["array"](like, found, dtype=dtype)


_ARRAY_CLASS = make_array_class(_as_tensor_inside)
#: What stands for objects of NumPy's that are not functions that make arrays.
_STAND_INS = (
    (_np.ndarray, _ARRAY_CLASS),
    (_np.mgrid, Grid(_np.mgrid, _as_tensor_inside)),
    (_np.ogrid, Grid(_np.ogrid, _as_tensor_inside)),
    (_np.isscalar, _is_scalar),
    (_np.ndenumerate, enumerate_elements),
    (_np.nditer, iterate),
    (_np.fromiter, _from_iterable),
    (_np.vectorize, lambda *args, **options: Vectorized(_np.vectorize(*args, **options), _as_tensor_inside)),
    (_np.r_, Joiner(_np.r_, False, _as_tensor_inside)),
    (_np.c_, Joiner(_np.c_, True, _as_tensor_inside)),
)
#: What stands for Python's functions that ask for the class of an array, or need a number.
_BUILTINS = {
    "complex": NUMBER_CLASSES[complex],
    "float": NUMBER_CLASSES[float],
    "hasattr": has_attribute,
    "isinstance": is_instance,
    "round": round_number,
    "type": make_type_class(_ARRAY_CLASS),
}
#: The modules whose functions have stand-ins.
_MODULES = (
    "cmath", "math", "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.lib", "numpy.lib.stride_tricks",
)  # fmt: skip


class _NumPy(types.ModuleType):
    """A module of NumPy's, with the stand-ins."""

    def __init__(self, module: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = _replace(getattr(self._module, name))
        setattr(self, name, found)
        return found


@functools.cache
def _find_module(module: Any) -> Any:
    return _NumPy(module)


def _forget(x: Any, names: dict[str, Any]) -> Any:
    """Return a function like one of the module with a cache: the new cache is empty, and does not keep results for Tensors."""
    inner: Any = getattr(x, "__wrapped__", None)
    if getattr(inner, "__globals__", None) is not names:
        return x
    kept = functools.lru_cache(**x.cache_parameters())(inner)

    @functools.wraps(inner)
    def call(*args: Any, **options: Any) -> Any:
        return (kept if first_tensor((args, options)) is None else inner)(*args, **options)

    return call


_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")


class _StandIns:
    """Context manager in which the global names of a module that mean NumPy, or functions of it, mean the stand-ins.

    All code of the module finds them: functions, methods of its classes, decorated functions. In other threads, the stand-ins do what NumPy
    does.

    Parameters
    ----------
    names : dict
        The global names of the module.
    """

    #: For each module in use, by the `id` of its names: how often, and the name, the object and the stand-in of what was replaced.
    active: ClassVar[dict[int, tuple[int, list[tuple[str, Any, Any]]]]] = {}

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.known: dict[str, tuple[Any, Any]] = {}  # functions, classes and modules of the last call, with what stands for them

    def find_replaced(self) -> list[tuple[str, Any, Any]]:
        """Return what has stand-ins: the name, the object (None for one of Python's) and the stand-in."""
        found: list[tuple[str, Any, Any]] = [(name, None, own) for name, own in _BUILTINS.items() if name not in self.names]
        for name, x in list(self.names.items()):
            kind = type(x)  # `x.__class__` runs code of proxies, which may raise
            if kind not in _REPLACED and not is_scipys(x):
                own = _forget(x, self.names) if kind is functools._lru_cache_wrapper else x
            else:
                known = self.known.get(name)
                if known is None or known[0] is not x:
                    known = self.known[name] = (x, _replace(x))
                own = known[1]
            if own is not x:
                found.append((name, x, own))
        return found

    def __enter__(self) -> None:
        key = id(self.names)
        with _LOCK:
            count, replaced = self.active.get(key, (0, []))
            if not count:
                replaced += self.find_replaced()
            self.active[key] = count + 1, replaced
            if not count:
                for name, _, own in replaced:
                    self.names[name] = own

    def __exit__(self, *exc: object) -> None:
        key = id(self.names)
        with _LOCK:
            count, replaced = self.active[key]
            self.active[key] = count - 1, replaced
            if count > 1:
                return
            del self.active[key]
            for name, x, own in replaced:
                if self.names.get(name) is not own:  # the function has assigned it
                    continue
                if x is None:
                    del self.names[name]
                else:
                    self.names[name] = x


_MISSING = object()


def _is_own_class(x: Any, own: Any, names: dict[str, Any]) -> bool:
    """Return whether a class whose code runs on Tensors is of the module with these names, where derived classes call its methods."""
    return isinstance(own, LibraryClass) and x.__module__ == names["__name__"]


def _find_code(names: dict[str, Any]) -> Iterator[types.CodeType]:
    """Yield the code of functions with these global names, that of methods and decorated functions, and what is defined inside."""
    objects, seen, library = list(names.values()), set(), names["__name__"].partition(".")[0]
    while objects:
        x = objects.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, types.CodeType):
            yield x
            objects += x.co_consts
        elif isinstance(x, types.FunctionType):
            objects += [x.__code__] if x.__globals__ is names else []
            objects += [vars(x)["__wrapped__"]] if "__wrapped__" in vars(x) else []
        elif isinstance(x, type) and x.__module__.partition(".")[0] == library:
            objects += vars(x).values()
        elif callable(x) or isinstance(x, (classmethod, property, staticmethod)):
            objects += [getattr(x, key) for key in ("__func__", "__wrapped__", "_implementation", "fget") if hasattr(x, key)]


class _Libraries:
    """Context manager in which the global names of NumPy's modules that are written in Python mean the stand-ins, too.

    Parameters
    ----------
    modules : list of pairs of dicts
        The global names of a module, which do not change, and what some of them mean.
    """

    def __init__(self, modules: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self.count = 0
        self.before: list[Any] = []
        self.replaced: list[tuple[dict[str, Any], str, Any]] = []
        for names, others in modules:
            extra = names["__name__"].startswith(EXTRA)
            used = {"array_namespace"} if extra else {name for code in _find_code(names) for name in code.co_names}
            found = {name: own for name, x, own in _StandIns(names).find_replaced() if name in used and not _is_own_class(x, own, names)}
            found |= {name: own for name, own in others.items() if name in names}
            self.replaced += [(names, name, own) for name, own in found.items()]

    def __enter__(self) -> None:
        with _LOCK:
            self.count += 1
            if self.count == 1:
                self.before = [names.get(name, _MISSING) for names, name, _ in self.replaced]
                for names, name, own in self.replaced:
                    names[name] = own

    def __exit__(self, *exc: object) -> None:
        with _LOCK:
            self.count -= 1
            if self.count == 0:
                for (names, name, _), before in zip(self.replaced, self.before):
                    if before is _MISSING:
                        del names[name]
                    else:
                        names[name] = before


class _ProgramStandIns:
    """Context manager for stand-ins in modules of the program, and in the modules of NumPy's whose code it may run.

    Parameters
    ----------
    modules : iterable of dicts
        The global names of each module.
    """

    def __init__(self, modules: Iterable[dict[str, Any]]) -> None:
        self.modules = [_StandIns(names) for names in {id(names): names for names in modules}.values()]

    def __enter__(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(_polynomials())
            for module in self.modules:
                stack.enter_context(module)
            stack.pop_all()  # only an error above ends those that were entered

    def __exit__(self, *exc: object) -> None:
        for module in reversed(self.modules):
            module.__exit__(*exc)
        _polynomials().__exit__(*exc)


def _find_names(modules: Iterable[types.ModuleType]) -> Iterator[dict[str, Any]]:
    """Yield the global names of modules, and of those inside of packages that have been imported."""
    if not isinstance(modules, Iterable):
        msg = f"numpy_code: `modules` must be a list of modules, but got {modules!r:.60}"
        raise TypeError(msg)
    for module in modules:
        package = str(getattr(module, "__name__", ""))
        # NB: some packages replace their module by an object.
        if sys.modules.get(package) is not module or package.partition(".")[0] in ("numpy", "scipy", "xpgrad"):
            msg = f"numpy_code: `modules` are imported modules of programs for NumPy, but one is {module!r:.60}"
            raise TypeError(msg)
        for name, found in list(sys.modules.items()):
            if isinstance(found, types.ModuleType) and f"{name}.".startswith(f"{package}."):
                yield vars(found)


def _keep_zeros(trim: Any) -> Any:
    """Return a function like one that removes zeros at an end, which keeps zeros that have a gradient, or whose value is not known."""

    @functools.wraps(trim)
    def compute(x: Any, *args: Any, **options: Any) -> Any:
        return x if isinstance(x, Tensor) and is_followed(x) else trim(x, *args, **options)

    return compute


def _map_domain(polynomials: type, theirs: Any) -> Any:
    """Return a function like `numpy.polynomial.polyutils.mapdomain`, which does not make an array of objects of a polynomial."""

    @functools.wraps(theirs)
    def compute(x: Any, old: Any, new: Any) -> Any:
        if not isinstance(x, polynomials):
            return theirs(x, old, new)
        offset, scale = theirs.__globals__["mapparms"](old, new)
        return x * scale + offset

    return compute


#: By the `id` of a module's names; 0 stands for NumPy's modules of polynomials.
_LIBRARIES: dict[int, _Libraries] = {}


def _polynomials() -> _Libraries:
    """Return the stand-ins in NumPy's modules of polynomials."""
    with _LOCK:
        if 0 not in _LIBRARIES:
            _LIBRARIES[0] = _make_polynomials()
        return _LIBRARIES[0]


def _make_polynomials() -> _Libraries:
    base, utils = (importlib.import_module(f"numpy.polynomial.{name}") for name in ("_polybase", "polyutils"))
    kinds = [sys.modules[cls.__module__] for cls in base.ABCPolyBase.__subclasses__() if cls.__module__.startswith("numpy.polynomial.")]
    modules: list[tuple[Any, dict[str, Any]]] = [(vars(module), {}) for module in (base, *kinds)]
    modules.append((vars(utils), {"mapdomain": _map_domain(base.ABCPolyBase, utils.mapdomain), "trimseq": _keep_zeros(utils.trimseq)}))
    modules.append((_np.poly1d.__init__.__globals__, {"NX": _find_module(_np), "trim_zeros": _keep_zeros(_np.trim_zeros)}))
    return _Libraries(modules)


#: The classes of the objects that have stand-ins.
_REPLACED = frozenset(
    type(x)
    for x in (
        _np,
        _np.sum,
        _np.add,
        _np.zeros,
        _np.eye,
        _np.isscalar,
        _np.ndarray,
        _np.r_,
        _np.c_,
        _np.mgrid,
        _np.ogrid,
        _np.vectorize(max),
        functools.partial(max),
        _np.random.rand,
        _np.random.default_rng,
        _np.random.default_rng(0),
        _np.random.RandomState(0),
    )
)


def _make_owner() -> Callable[[Any], Any]:
    """Return a function that returns an argument in memory of the function's own, and the same for the same argument."""
    made: dict[int, Any] = {}

    def own(x: Any) -> Any:
        if id(x) not in made:
            made[id(x)] = x.clone() if isinstance(x, Tensor) else _as_tensor(x)
        return made[id(x)]

    return own


def _is_shared(x: Any) -> bool:
    """Return whether `x` shares memory only in code for NumPy: as a `SharedArray` does, and as windows of a Tensor."""
    return x.__class__ is SharedArray or (isinstance(x, Tensor) and is_window(x))


def _leave_shared(x: Any) -> Any:
    """Return what a function returns, with copies of what shares memory only in code for NumPy."""
    if not any(map(_is_shared, flatten(x)[0])):
        return x
    return tree_map(lambda y: y if not _is_shared(y) else y.clone() if isinstance(y, Tensor) else as_tensor(y), x)


def _run(stand_ins: Any, like: Any, call: Callable[[], Any]) -> Any:
    """Call a function as code for NumPy."""
    outer = is_running()
    mode: Any = state.current() if outer else state.mode_for_numpy_code(Semantics())
    device = nullcontext() if like is None else default_device(like.device)
    with nullcontext() if outer else mode.numpy.libraries, Setting(state.VARIABLE, mode), device, stand_ins:
        mode.numpy.modules.append(stand_ins)
        try:
            return call()
        finally:
            mode.numpy.modules.pop()


def _copy_arguments(func: Any) -> Any:
    """Return a function that gives `func` copies of its arguments, as calls of `numpy_code` do, because it may write to them."""
    # A `partial` of a function of this module, so that solvers can read which Tensors `func` closes over.
    found = functools.partial(_call_with_copies, func)
    found.__wrapped__ = func  # type: ignore[attr-defined]  # solvers ask for its signature
    for name in (*getattr(func, "__dict__", ()), "terminal", "direction"):  # and for attributes, which an event may have from its class
        if name != "__wrapped__" and hasattr(func, name):
            setattr(found, name, getattr(func, name))
    return found


def _call_with_copies(func: Any, *args: Any, **options: Any) -> Any:
    own = _make_owner()
    return func(*tree_map(own, args), **tree_map(own, options))


def _find_library(names: dict[str, Any]) -> _Libraries:
    """Return the stand-ins in a module of SciPy's."""
    with _LOCK:
        key = id(names)
        if key not in _LIBRARIES:
            _LIBRARIES[key] = _Libraries([(names, find_policies(names))])
        return _LIBRARIES[key]


_CONVERTERS = Converters(_as_tensor_inside, _copy_arguments, _ufunc_stand_in, _find_library)


def numpy_code(func: F, *, modules: Iterable[types.ModuleType] = ()) -> F:
    """Return a function like `func`, which was written for NumPy, that computes with Tensors and can be differentiated.

    Parameters
    ----------
    func : function
        A function or a method written in Python, with NumPy under any name among its global names. All code of the same module that it
        calls is treated alike: functions, also decorated ones, and methods of classes. That of other modules runs as it is.
    modules : iterable of modules, optional
        Further modules whose code is treated alike. A package stands for all of its modules that are imported before this call.

    Returns
    -------
    function
        Has the parameters of `func`. Its arguments are Tensors, numbers, arrays, and nested tuples, lists and dicts of them.

        * NumPy's functions that get no Tensor (`np.zeros`, `np.linspace`, `np.array`), except universal functions, return Tensors on the
          device of the first Tensor among the arguments of `func`, if the dtype is floating-point or complex, else arrays of NumPy's.
        * Elements and results without axes are scalars, as in NumPy: ``a[0], a[1] = a[1], a[0]`` exchanges elements, and
          ``s = a[0]; s += 1`` does not change `a`. Methods are NumPy's where PyTorch's differ, and lists may be operands.
        * Values that the backward pass needs may be overwritten: they are kept.
        * Writes to arguments are made in copies, so that the caller's Tensors and arrays do not change: return what was written.

    Raises
    ------
    TypeError
        If `func` is not a function written in Python, if `modules` is not a list of imported modules, or if one of them belongs to NumPy,
        SciPy or xpgrad.

    Notes
    -----
    Outside of `compile`, slices are copied when they are read, and a write copies the array that it changes only if something else refers
    to that array, such as a node that saved it; on other libraries than NumPy, always. `compile(numpy_code(func))` makes one program of
    all, without copies.
    SciPy's functions that get Tensors or functions are those of `xpgrad.scipy`, where it has them.
    A name that `func` imports in its body is not replaced. During a call, the global names of these modules that mean NumPy or SciPy mean
    stand-ins, which other threads do not notice: they do there what NumPy and SciPy do.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> def products(x):
    ...     out = np.ones(len(x) + 1)
    ...     for i in range(len(x)):
    ...         out[i + 1] = out[i] * x[i]
    ...     return out
    >>> x = xp.asarray([2.0, 3.0, 4.0])
    >>> xp.numpy_code(products)(x)
    tensor([ 1.,  2.,  6., 24.])
    >>> xp.func.jacrev(xp.numpy_code(products))(x)[-1]
    tensor([12.,  8.,  6.])

    A function may call those of other modules:

    >>> import statistics
    >>> density = xp.numpy_code(lambda mean: statistics.NormalDist(mean, 1.0).pdf(0.5), modules=[statistics])
    >>> xp.func.grad(density)(xp.asarray(0.0))
    tensor(0.176)
    """
    inner = func.__func__ if isinstance(func, types.MethodType) else func
    if not isinstance(inner, types.FunctionType):
        msg = f"numpy_code takes a function written in Python, but got {type(func).__name__} {func!r:.60}"
        raise TypeError(msg)

    steps, stand_ins = inspect.isgeneratorfunction(inner), _ProgramStandIns([inner.__globals__, *_find_names(modules)])

    @functools.wraps(func)
    def compute(*args: Any, **options: Any) -> Any:
        like = first_tensor((args, options))
        own = _make_owner()
        out = _run(stand_ins, like, lambda: _leave_shared(func(*tree_map(own, args), **tree_map(own, options))))
        return _run_steps(out, functools.partial(_run, stand_ins, like)) if steps else out

    return cast("F", compute)


def _run_steps(generator: Any, run: Callable[[Callable[[], Any]], Any]) -> Any:
    """Yield what a generator yields; `run` calls what computes the next value."""
    end = object()
    while (value := run(lambda: _leave_shared(next(generator, end)))) is not end:
        yield value
