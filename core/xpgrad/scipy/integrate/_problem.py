"""`Problem`: a differential equation in Tensors, presented to SciPy's solvers as a function of float64 vectors."""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Callable
from typing import Any, Literal

from xpgrad._backends.classes import tensor_class
from xpgrad._backends.contexts import CallContext, keep_context
from xpgrad._basics.arguments import check_callable, shown
from xpgrad._basics.dtypes import float64
from xpgrad._modes import switches
from xpgrad._operations.lift import new_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._scipy import as_floating
from xpgrad.func import jacrev, ravel_pytree
from xpgrad.func._tree import flatten, unflatten
from xpgrad.rules.conversion import asarray, host_array

Failure = Literal["raise", "warn", "ignore"]

FAILURES = ("raise", "warn", "ignore")
#: Methods whose steps can be repeated with Tensors.
EXPLICIT = ("RK23", "RK45", "DOP853")
#: Methods that solve equations with the Jacobian.
IMPLICIT = ("Radau", "BDF")
METHODS = (*EXPLICIT, *IMPLICIT, "LSODA")
#: So many evaluations between the outputs, at most, are repeated to find the Tensors on which the right side depends.
MOST_SAMPLES = 16
#: Steps between two outputs, in which a solver of a derivative must succeed where one of the state did.
MOST_STEPS = 20_000


class Problem:
    """The equation ``dy/dt = func(t, y)``, in which `y` may be a tree of Tensors; SciPy gets it as one vector.

    Attributes
    ----------
    name : str
        The public function, for error messages.
    start : Tensor, shape (n,)
        The initial state, with its history.
    method : str
        One of SciPy's methods of `solve_ivp`.
    rtol, atol : float
        The tolerances; `atol` is the smallest if one was given for each number of the state.
    all_atol : float or list of float
        The absolute tolerance as given.
    limits : dict
        SciPy's options for the length of steps.
    given : tuple of (callable, bool)
        The function as given, and whether it takes the time first.
    compiled : callable or None
        The right side for SciPy, compiled.
    compiled_jacobian : callable or None
        Compiles its Jacobian, and returns that or None.
    watches : bool
        Whether `rhs` refuses values with tangents, which SciPy would lose.
    samples : list of (float, ndarray), or None
        Some times and states at which SciPy asked for the right side, at most `MOST_SAMPLES`; None if nobody wants to know.
    depends : bool
        Whether a value that SciPy asked for would have had a history, if `samples` are kept.
    """

    def __init__(
        self, name: str, func: Any, y0: Any, args: Any, method: Any, tolerances: tuple[Any, Any], failure: Any, limits: dict[str, Any],
        *, time_first: bool = True,
    ) -> None:  # fmt: skip
        check_callable(func, name, "func" if name == "odeint" else "fun")
        if not isinstance(args, tuple):
            msg = f"{name}: `args` must be a tuple of further arguments of the function, but got {shown(args)}; give `(argument,)`"
            raise TypeError(msg)
        check_failure(name, failure)
        if method not in METHODS:
            msg = f"{name}: `method` must be one of {', '.join(map(repr, METHODS))}, but got {shown(method)}"
            raise ValueError(msg)
        self.name, self.args, self.method, self.failure, self.limits = name, args, method, failure, limits
        self.given: tuple[Any, bool] = func, time_first
        self.code = CallContext()
        self.code.replaced = ()  # what a function reads of objects is read as its values
        func = keep_context(func)
        self.func: Any = func if time_first else lambda t, y, *more: func(y, t, *more)
        self.compiled: Callable[[float, Any], Any] | None = None
        self.watches = self.depends = False
        self.samples: list[tuple[float, Any]] | None = None
        self.compiled_jacobian: Callable[[], Callable[[float, Any], Any] | None] | None = None
        self.integrate: Any = scipy_integrate(name)
        leaves, self.structure = flatten(_vector(y0))
        if self.structure.is_leaf and isinstance(leaves[0], Tensor) and leaves[0].ndim == 1:
            flat, parts = leaves[0], leaves
        else:
            flat, unravel = ravel_pytree(leaves)
            parts = unravel(flat.detach())
        self.start: Any = flat
        if not self.start.dtype.is_floating_point:
            msg = (
                f"{name}: the state `y0` must be of real floating numbers, but its numbers meet in {self.start.dtype}; give 1.0, not 1, "
                "and the real and the imaginary part of complex ones as a pair"
            )
            raise TypeError(msg)
        self.dtype, self.device = self.start.dtype, self.start.device
        self.cls: Any = tensor_class(self.device)
        self.leaves = [(x.shape, x.dtype, x.numel()) for x in parts]
        rtol, atol = tolerances
        self.rtol = float(rtol)
        self.all_atol: Any = [float(v) for v in atol] if hasattr(atol, "__len__") else float(atol)
        self.atol: float = min(self.all_atol) if isinstance(self.all_atol, list) else self.all_atol
        if not (self.rtol >= 0 and self.atol >= 0) or (hasattr(atol, "__len__") and len(atol) != self.start.shape[0]):
            msg = f"{name}: `rtol` and `atol` must not be negative, `atol` one number or one for each of the state's; got {rtol}, {atol}"
            raise ValueError(msg)

    def tree(self, y: Any, before: tuple[int, ...] = ()) -> Any:
        """Convert vectors along the last axis to a tree of states, with the axes `before` in front of those of each leaf."""
        if self.structure.is_leaf:
            ((shape, _, _),) = self.leaves
            return y if len(shape) == 1 else y.reshape((*before, *shape))
        parts, at = [], 0
        for shape, dtype, size in self.leaves:
            parts.append(y[..., at : at + size].reshape((*before, *shape)).to(dtype))
            at += size
        return unflatten(self.structure, parts)

    def without_values(self) -> Problem:
        """Return a copy that knows the structure of the state, but not the function, its arguments and the start."""
        out = copy.copy(self)
        out.start, out.args, out.given, out.func = None, (), (None, True), None
        out.compiled = out.compiled_jacobian = None
        return out

    # -- between SciPy and Tensors ---------------------------------------------------------------------------------------------

    def to_tensor(self, x: Any) -> Any:
        """Copy SciPy's vector, to which it may write later, into a Tensor."""
        # This is `asarray(x, dtype=..., device=..., copy=True)` without its checks, because solvers call it at every step.
        out = new_tensor(self.cls, self.cls.backend.from_host(host_array(x, self.dtype, self.cls), self.device))
        return out if out.dtype is self.dtype else out._cast(self.dtype)

    def to_array(self, x: Any) -> Any:
        """Copy a Tensor into an array to which SciPy may write."""
        if type(x) is self.cls and x.dtype is float64:
            return self.cls.backend.to_host(x._array).astype("float64", copy=True)
        return as_floating(x)

    def field(self, t: Any, y: Any) -> Any:
        """Return the derivative of the state, a vector, at a 0-d time and a state vector, all of them Tensors.

        Raises
        ------
        TypeError, ValueError
            If the function returns something that is not a derivative of the state.
        """
        return self.flat_field(self.func, self.args, t, y)

    def flat_field(self, func: Any, args: tuple[Any, ...], t: Any, y: Any) -> Any:
        """Return the value of a right side ``func(t, y, *args)`` as a vector, after checking its structure; see `field`."""
        out = func(t, self.tree(y), *args)
        if isinstance(out, Tensor) and out.shape == y.shape and len(self.leaves[0][0]) == 1 and self.structure.is_leaf:
            flat = out
        else:
            leaves, structure = flatten(_vector(out))
            flat, unravel = ravel_pytree(leaves)
            shapes = [x.shape for x in unravel(flat)]
            if structure != self.structure or shapes != [shape for shape, *_ in self.leaves]:
                wanted = f"shapes {[s for s, *_ in self.leaves]}" if len(self.leaves) > 1 else f"shape {self.leaves[0][0]}"
                what = f"{shapes} in {shown(out)}" if len(shapes) != 1 else f"shape {shapes[0]}"
                msg = f"{self.name}: the function must return what is like `y0`, in structure and {wanted}, but returned {what}"
                raise ValueError(msg)
        if flat.dtype != self.dtype:
            if flat.dtype.is_complex:
                msg = f"{self.name}: the function must return real numbers, but returned {flat.dtype}"
                raise TypeError(msg)
            flat = flat.to(self.dtype)
        return flat

    def rhs(self, t: float, y: Any) -> Any:
        """Evaluate the right side for SciPy, without recording.

        Raises
        ------
        RuntimeError
            The value has a tangent, and the problem watches for them.
        """
        time, at = self.to_tensor(t), self.to_tensor(y)
        if self.samples is not None:
            self._note_sample(t, y)
        if self.samples is None or self.depends:
            value = self.field(time, at)
        else:
            with switches.enable_grad():
                value = self.field(time, at)
            self.depends = value._node is not None
        if self.watches and value._has_tangent():
            msg = (
                f"{self.name}: the function depends on Tensors with tangents, but not yet at the start, so that they would be lost; "
                "multiply what does not count yet by 0, or take gradient='steps' with one of the methods "
                f"{', '.join(map(repr, EXPLICIT))}"
            )
            raise RuntimeError(msg)
        return self.to_array(value)

    def keep_samples(self) -> None:
        """Begin to keep samples of the evaluations."""
        self.samples, self.depends = [], False
        self._stride = self._count = 1

    def _note_sample(self, t: float, y: Any) -> None:
        """Keep every n-th evaluation, where n doubles when there are enough."""
        assert self.samples is not None
        self._count -= 1
        if not self._count:
            self.samples.append((t, y.copy()))
            if len(self.samples) > MOST_SAMPLES:
                del self.samples[1::2]
                self._stride *= 2
            self._count = self._stride

    @property
    def fast_rhs(self) -> Callable[[float, Any], Any]:
        """The right side for SciPy: compiled, if it is."""
        return self.rhs if self.compiled is None else self.compiled

    def jacobian(self, t: float, y: Any) -> Any:
        """Return the Jacobian of the right side with respect to the state, for SciPy; shape (n, n)."""
        if self.compiled_jacobian is not None:
            compiled = self.compiled_jacobian()
            if compiled is not None:
                return compiled(t, y)
        time = self.to_tensor(t)
        return self.to_array(jacrev(lambda v: self.field(time, v))(self.to_tensor(y)))

    # -- SciPy's solvers ------------------------------------------------------------------------------------------------------------

    def solve(self, rhs: Callable[..., Any], start: float, end: float, y0: Any, jac: Any = None, **options: Any) -> Any:
        """Call SciPy's `solve_ivp` for the right side `rhs`, on arrays, from the time `start` to `end`; `jac` is its Jacobian.

        Raises
        ------
        RuntimeError
            SciPy fails and `failure` is "raise".
        """
        options = {"rtol": self.rtol, "atol": self.all_atol} | self.limits | options
        if self.method in IMPLICIT and jac is not None:
            options["jac"] = jac
        with switches.no_grad():
            result = self.integrate.solve_ivp(rhs, (start, end), y0, method=self.method, **options)
        if not result.success:
            self.raise_failure(str(result.message))
        return result

    def reach(self, rhs: Callable[..., Any], start: float, end: float, y0: Any, jac: Any, atol: Any) -> Any:
        """Return only the state at `end`, by the compiled integrator if there is one; the parameters are those of `solve`."""
        if self.method != "LSODA":
            return self.solve(rhs, start, end, y0, jac, atol=atol).y[:, -1]
        return self.tabulate(rhs, [start, end], y0, atol, mxstep=MOST_STEPS)[-1]

    def tabulate(self, rhs: Callable[..., Any], times: Any, y0: Any, atol: Any, **options: Any) -> Any:
        """Call SciPy's `odeint` for the right side `rhs` and the start `y0`; return the states at the times, of shape (T, n).

        Raises
        ------
        RuntimeError
            SciPy fails and `failure` is "raise".
        """
        with switches.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns about the failure that is reported below
            options = {"hmax": self.limits.get("max_step", 0.0)} | options
            found, info = self.integrate.odeint(rhs, y0, times, tfirst=True, rtol=self.rtol, atol=atol, full_output=True, **options)
        if info["message"] != "Integration successful.":
            self.raise_failure(info["message"])
        return found

    def raise_failure(self, message: str) -> None:
        """Report that SciPy did not reach the end of the interval.

        Raises
        ------
        RuntimeError
            `failure` is "raise".
        """
        advice = "loosen `rtol` or `atol`, take another method (for stiff equations 'LSODA', 'Radau' or 'BDF')"
        report_failure(self.name, f"it did not reach the end: {message.strip().rstrip('.')}", self.failure, advice)


def report_failure(name: str, what: str, failure: Failure, advice: str = "loosen the tolerances") -> None:
    """Report a failure of SciPy as requested: raise or warn.

    Raises
    ------
    RuntimeError
        `failure` is "raise".
    """
    msg = f"{name}: {what}"
    if failure == "raise":
        raise RuntimeError(f"{msg}; {advice}, or pass failure='warn'")
    if failure == "warn":
        warnings.warn(msg, RuntimeWarning, stacklevel=4)


def check_failure(name: str, failure: Any) -> None:
    """Check the argument `failure`.

    Raises
    ------
    ValueError
        `failure` is none of the choices.
    """
    if failure not in FAILURES:
        msg = f"{name}: `failure` must be one of {', '.join(map(repr, FAILURES))}, but got {shown(failure)}"
        raise ValueError(msg)


def scipy_integrate(name: str) -> Any:
    """Import `scipy.integrate`.

    Raises
    ------
    ImportError
        SciPy is not installed.
    """
    try:
        return importlib.import_module("scipy.integrate")
    except ImportError:
        msg = f"xpgrad.scipy.integrate.{name} needs SciPy, which is not installed: pip install 'xpgrad[scipy]'"
        raise ImportError(msg) from None


def _vector(y: Any) -> Any:
    """Convert a list or tuple of numbers and 0-d Tensors to a vector; return other states unchanged."""
    if type(y) not in (list, tuple) or not y or any(getattr(v, "ndim", 0) or isinstance(v, (list, tuple, dict)) for v in y):
        return y
    if all(type(v) in (int, float) for v in y):
        return asarray(list(y))
    return ravel_pytree(y)[0]
