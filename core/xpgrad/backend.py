"""The interface of a backend: a table of plain callables on its library's raw arrays, and its capabilities.

This module is all that authors of plugins need to read. Only the first group (`namespace` to `devices`) must be implemented; everything
else has a default implementation in Array API calls.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

from xpgrad._array.guards import guard_kernel
from xpgrad._array.kernels import DefaultKernels as DefaultKernels
from xpgrad._basics.device import Device as Device
from xpgrad._basics.dtypes import DTYPES as DTYPES, DType as DType
from xpgrad._basics.faces import public_names
from xpgrad._basics.keys import out_of_range as out_of_range
from xpgrad._rows.kernels import kernel_of
from xpgrad._rows.namespace import RULES
from xpgrad._rows.row import ROWS, Domain as Domain, Row, parameters
from xpgrad.errors import CapabilityError

__all__ = [
    "API_VERSION", "DTYPES", "AxisFunction", "Backend", "BackendInfo", "Capabilities", "ControlFlow", "DType", "DefaultKernels", "Device",
    "Domain", "Elementwise", "axis_functions", "elementwise_functions", "numpy_name", "out_of_range", "spellings",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


#: The version of this interface: a plugin must have the same first number, and not a later second one.
API_VERSION = (1, 0)


@dataclass(frozen=True)
class BackendInfo:
    """A plugin's description of itself, available without importing its array library.

    Attributes
    ----------
    name : str
        Name of the backend in device strings; the same as the name of its entry point.
    load : callable
        ``load(variant)`` imports the library and returns the `Backend`; `variant` is None or one of ``variants``.
    array_modules : tuple of str
        Top-level modules of the arrays that the backend takes, e.g. ``("numpy",)``: an array's type finds the backend before it is loaded.
    api_version : (int, int)
        The `API_VERSION` for which the plugin was written.
    variants : tuple of str
        Variants that may follow the backend's name in a device string, as in ``"name=variant"``.
    install : str
        Command to run if the library is missing, e.g. ``"pip install xpgrad[jax]"``.
    cuda : bool
        Whether the library can have CUDA devices. Only such backends are loaded to look for ``device="cuda"``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> info = xp.backend.BackendInfo(name="mine", load=lambda variant: ..., array_modules=("mylib",), install="pip install mylib")
    >>> isinstance(info, xp.backend.BackendInfo)
    True
    >>> info.name
    'mine'
    """

    name: str
    load: Callable[[str | None], Backend]
    array_modules: tuple[str, ...] = ()
    api_version: tuple[int, int] = API_VERSION
    variants: tuple[str, ...] = ()
    install: str = ""
    cuda: bool = False


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a backend; the core branches on these, never on a backend's name.

    Attributes
    ----------
    mutable : bool
        Arrays can be written to.
    view_aliases : bool
        Basic slices, transposes, reshapes without a copy, diagonals and other views share the memory of their array.
    strides : bool
        Arrays have strides.
    lazy : bool
        Values are computed later than they are requested, and must not be read early.
    streams : bool
        Work is queued on streams.
    boolean_indexing : bool
        ``x[mask]`` works.
    data_dependent_shapes : bool
        Functions such as `nonzero` and `unique_values` work.
    negative_step : bool
        ``x[::-1]`` is a slice like any other. If False and arrays are mutable, it is a copy that refuses writes.
    complex : bool
        Complex dtypes exist, complex64 at least.
    float64 : bool
        The dtype float64 exists.
    complex128 : bool
        The dtype complex128 exists, if complex dtypes and float64 do. If False, Python's complex numbers become complex64, and complex
        numbers of a float64 Tensor are an error.
    linalg : bool
        The extension `linalg` exists.
    fft : bool
        The extension `fft` exists.
    dlpack : bool
        Arrays exchange memory through DLPack.
    devices : bool
        There can be more than one device.
    deterministic_scatter : bool
        Adding at duplicate indices gives the same bits each time.
    jit : bool
        The library compiles functions.
    vmap : bool
        The library vectorises functions.
    threads : bool
        Arrays may be used in other threads than the one that made them, and passes may run in several threads at once.

    Notes
    -----
    With `lazy`, the core reads no values: no check looks at one, so the library itself must refuse an index array that is out of range. A
    library that computes on demand, but whose values can be read at any time, is not lazy in this sense: leave it False. Without
    `threads`,
    users and tests keep to one thread, and so does the core: if nested passes have used up the stack (24 deep), it raises a
    `CapabilityError`
    instead of continuing in another thread.

    Examples
    --------
    >>> import xpgrad as xp
    >>> table = xp.backend.Capabilities(mutable=False, lazy=True)
    >>> table.mutable, table.lazy, table.complex
    (False, True, True)
    """

    mutable: bool = True
    view_aliases: bool = True
    strides: bool = False
    lazy: bool = False
    streams: bool = False
    boolean_indexing: bool = True
    data_dependent_shapes: bool = True
    negative_step: bool = True
    complex: bool = True
    float64: bool = True
    complex128: bool = True
    linalg: bool = True
    fft: bool = True
    dlpack: bool = True
    devices: bool = False
    deterministic_scatter: bool = True
    jit: bool = False
    vmap: bool = False
    threads: bool = True


class Elementwise(NamedTuple):
    """An elementwise function of the namespace, as its row declares it.

    Attributes
    ----------
    name : str
        Name in the namespace.
    numpy : str or None
        NumPy's name for it; None if NumPy has no such function.
    domains : tuple of Domain
        For each operand, the values for which it is defined.
    differentiable : tuple of bool
        For each operand, whether the function has a derivative with respect to it.

    Examples
    --------
    >>> from xpgrad.backend import Elementwise, elementwise_functions
    >>> found = elementwise_functions()[0]
    >>> isinstance(found, Elementwise), found.name, found.numpy, len(found.domains), found.differentiable
    (True, 'add', 'add', 2, (True, True))
    """

    name: str
    numpy: str | None
    domains: tuple[Domain, ...]
    differentiable: tuple[bool, ...]


def elementwise_functions() -> list[Elementwise]:
    """Return the elementwise functions of the namespace that are kernels: a backend may have its own, and tests iterate over them.

    Returns
    -------
    list of Elementwise
        In the order of declaration.

    Examples
    --------
    >>> import xpgrad
    >>> from xpgrad.backend import elementwise_functions
    >>> [f.name for f in elementwise_functions() if f.domains[0].low == 0.0]
    ['pow', 'sqrt', 'log', 'log2', 'log10']
    """
    return [
        Elementwise(row.name, row.facts.ufunc, row.domains, tuple(f is not None for f in row.formulas))
        for row in ROWS.values()
        if row.elementwise and row.facts.ufunc is not None
    ]


class AxisFunction(NamedTuple):
    """A differentiable reduction or view of the namespace whose required arguments are axes.

    Attributes
    ----------
    name : str
        Name in the namespace.
    kind : {"reduction", "view"}
        Kind of function.
    domain : Domain
        The numbers for which it is defined.
    axes : int
        Number of axes that a view takes after its operand. A reduction takes `axis` and `keepdims`, both optional.

    Examples
    --------
    >>> from xpgrad.backend import AxisFunction, axis_functions
    >>> found = axis_functions()[0]
    >>> isinstance(found, AxisFunction), found.name, found.kind, found.domain.numbers, found.axes
    (True, 'squeeze', 'view', 'complex', 1)
    """

    name: str
    kind: str
    domain: Domain
    axes: int


def axis_functions() -> list[AxisFunction]:
    """Return the differentiable reductions and views of the namespace that can be called with axes alone.

    A view that needs other arguments, such as a shape, is not among them.

    Returns
    -------
    list of AxisFunction
        In the order of declaration.

    Examples
    --------
    >>> import xpgrad
    >>> from xpgrad.backend import axis_functions
    >>> [(f.name, f.axes) for f in axis_functions() if f.kind == "view"]
    [('squeeze', 1), ('expand_dims', 1), ('matrix_transpose', 0)]
    >>> [f.name for f in axis_functions() if f.domain.numbers != "complex"]
    ['max', 'min']
    """
    found = []
    for row in ROWS.values():
        is_view = row.is_view and row.facts.dtype == "same"
        for name in row.public if row.differentiable and (is_view or row.facts.kind == "reduction") else ():
            function = RULES.get(name)
            if function is None or function.__name__ != name:
                continue  # a key, or a function of an extension, which may not be loaded
            arguments = parameters(function)[1:]
            if not is_view:
                found.append(AxisFunction(name, "reduction", row.domains[0], 0))
            elif all(argument.rstrip("12") == "axis" for argument in arguments):
                found.append(AxisFunction(name, "view", row.domains[0], len(arguments)))
    return found


def numpy_name(kernel: str) -> str | None:
    """Return the name of NumPy's function that computes a kernel.

    A backend whose library has NumPy's functions finds its kernels by these names, and need not list them.

    Parameters
    ----------
    kernel : str
        Name in a backend's table, such as ``"acos"``.

    Returns
    -------
    str or None
        Name of a function in the module `numpy` with the same arguments, such as ``"arccos"``; None if there is none.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.backend.numpy_name("acos"), xp.backend.numpy_name("gather")
    ('arccos', None)
    """
    name = kernel_of(kernel).numpy
    return None if name is None or "." in name else name


def spellings(kernel: str) -> tuple[str, ...]:
    """Return the names by which users call a kernel, for messages: ``("sum",)`` for `reduce_sum`, ``("x[key]",)`` for `gather`.

    If one kernel computes several public functions, the first one stands for it.

    Parameters
    ----------
    kernel : str
        Name in a backend's table.

    Returns
    -------
    tuple of str
        At least one name; the kernel's own if no other is known.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.backend.spellings("reduce_sum"), xp.backend.spellings("gather"), xp.backend.spellings("sin")
    (('sum',), ('x[key]',), ('sin',))
    """
    spelled, row = kernel_of(kernel).spelled, ROWS.get(kernel)
    return (spelled,) if spelled is not None else (kernel,) if row is None else row.public


class ControlFlow(NamedTuple):
    """The loops and branches of a library that traces functions, in the spelling of `jax.lax`, on tuples of raw arrays.

    Attributes
    ----------
    scan : callable
        ``scan(step, init, xs, *, length, reverse, unroll)``, with ``step(carry, x) -> (carry, ys)``, returns the last carry and the
        results of the steps, stacked along a new first axis. `x` has the slices of the arrays in `xs`.
    while_loop : callable
        ``while_loop(test, step, init)``, with ``test(carry)`` a 0-d boolean array and ``step(carry) -> carry``, returns the last carry.
    cond : callable
        ``cond(predicate, first, second)`` calls one of two functions without arguments, and returns its tuple of arrays.
    unwind : callable, optional
        ``unwind(test, step, init, passes)`` runs the loop of ``while_loop(test, step, init)`` and keeps a row for each step, a tuple that
        begins with the carry before the step. Each of `passes` is a tuple ``(function, start, reverse)``. One after the other, they compute
        ``state, others = function(state, row)`` for each row, the last first if `reverse`; the first state is `start`. The state before the
        call and `others` are appended to the row for the passes that follow. It returns a list of the last states. Derivatives of a
        `while_loop` in reverse mode are such passes; there are none if this is None.

    Notes
    -----
    An entry is None if the library has no such loop: Python's runs instead.

    Examples
    --------
    >>> import jax
    >>> import xpgrad as xp
    >>> flow = xp.backend.ControlFlow(scan=jax.lax.scan, while_loop=jax.lax.while_loop, cond=jax.lax.cond)
    >>> carry, (squares,) = flow.scan(lambda c, x: (c, (x[0] * x[0],)), (), (jax.numpy.arange(3),), length=3, reverse=False, unroll=1)
    >>> squares.tolist()
    [0, 1, 4]
    >>> flow.while_loop(lambda c: c[0] < 10, lambda c: (2 * c[0],), (3,))[0].item()
    12
    >>> flow.cond(True, lambda: (1,), lambda: (2,))[0].item()
    1
    >>> flow.unwind is None
    True
    """

    scan: Callable[..., Any] | None
    while_loop: Callable[..., Any] | None
    cond: Callable[..., Any] | None
    unwind: Callable[..., Any] | None = None


def _own_function(backend: Backend, row: Row) -> Any:
    """Return the library's function for an elementwise row with a composition, or None.

    Functions of two operands are taken only if the library accepts Python numbers as operands.
    """
    name = numpy_name(row.name)
    if not row.elementwise or name is None or (len(row.tensors) > 1 and not backend.weak_scalars):
        return None
    namespace = backend.namespace()
    return getattr(namespace, row.name, None) or getattr(namespace, name, None)


class _MissingFunctionError(CapabilityError, AttributeError):
    """The library lacks a function of an extension. It is also an AttributeError, so that `getattr` with a default works."""


class _Extension:
    """An extension of the namespace. A function that the library lacks, or that is declared `missing`, raises an error with its name."""

    def __init__(self, inner: Any, name: str, backend: Backend) -> None:
        self._inner, self._name, self._backend = inner, name, backend

    def __getattr__(self, name: str) -> Any:
        full = f"{self._name}.{name}"
        found = None if full in self._backend.missing else getattr(self._inner, name, None)
        if found is None:
            msg = f"backend {self._backend.table_name!r} has no function `{full}`"
            raise _MissingFunctionError(msg)
        setattr(self, name, found)
        return found


def _into_new_memory(kernels: Kernels, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a library's function to copy an operand that it returned: a write to the result would change the operand."""

    def call(x: Any, *args: Any, **options: Any) -> Any:
        out = function(x, *args, **options)
        return kernels.copy(x) if out is x else out

    return call


class Kernels:
    """The raw namespace in which rules run.

    Each name is resolved once: to the backend's own kernel, the row's, or the library's function.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        backend = self._backend
        found = backend.kernel(name)
        own = found is not None
        if not own:
            row = ROWS.get(name)
            if row is not None and row.kernel is not None:
                found = _own_function(backend, row) or functools.partial(row.kernel, self)
            else:
                default = getattr(DefaultKernels, name, None)
                found = functools.partial(default, self) if default is not None else getattr(backend.namespace(), name, None)
                if found is not None and kernel_of(name).may_return_operand and backend.capabilities.mutable:
                    found = _into_new_memory(self, found)
        if found is None:
            msg = f"backend {backend.table_name!r} has no function `{name}`"
            raise CapabilityError(msg)
        found = backend.wrap_kernel(name, found)
        if name in ("linalg", "fft"):
            found = cast("Any", _Extension(found, name, backend))
        if not backend.checks_indices:
            found = guard_kernel(self, name, found, own)
        setattr(self, name, found)
        return found


class Backend(ABC):
    """The table of one array library. There is one instance per pair of backend and variant.

    Attributes
    ----------
    name, variant : str, str or None
        Name in device strings, and variant.
    capabilities : Capabilities
        Capabilities of the library.
    array_type : type or None
        The only type of its arrays; None if there are several, none of which needs `own`.
    operators : bool
        Whether Python's operators on raw arrays may replace kernels of arithmetic, except those in `overrides` (`has_operator`).
    raw_operators : bool
        The same for gradients and in-place writes; by default as `operators`. If False, gradient formulas run on Tensors, which is slower.
    is_host : bool
        Whether its arrays are in the host's memory.
    weak_scalars : bool
        Whether its kernels take Python scalars and promote them as the engine's table says. If False, the array is converted to the dtype
        of the result first; kernels of arithmetic still get a Python number as the other operand, of a kind that this dtype takes
        directly (an int, float or complex for complex dtypes, an int or float for floating-point ones, an int for integers).
    checks_indices : bool
        Whether its kernels, and the library, refuse every index that is out of range, in reads and writes: with an IndexError, before
        anything is written. The core then checks nothing, which saves time. False if unknown: the core checks a user's key before a
        kernel gets it ("Keys" below).
    overrides : dict
        Its own kernels by name, on raw arrays.
    program_loops : bool
        Whether `compile_program` knows loops and branches. If False (the default), it gets programs in which scans are unrolled, and none
        with other loops or branches, which run as Array API calls.
    missing : frozenset of str
        Functions of the standard that the library is known to lack. Calling one raises a `CapabilityError` with the text
        "has no function `NAME`", and the tests expect that. A function of an extension has its prefix: ``"linalg.vector_norm"``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.registry import backend_for
    >>> backend = backend_for("numpy")
    >>> isinstance(backend, xp.backend.Backend), backend.name, backend.variant
    (True, 'numpy', None)
    >>> backend.capabilities.mutable, backend.is_host, backend.array_type
    (True, True, <class 'numpy.ndarray'>)
    >>> backend.operators, backend.raw_operators, backend.weak_scalars, backend.checks_indices
    (True, True, True, True)
    >>> sorted(backend.missing), "sin" in backend.overrides, backend.shares_input, backend.special_complex, backend.program_loops
    ([], False, True, True, True)
    """

    name: str = ""
    variant: str | None = None
    capabilities: Capabilities = Capabilities()
    array_type: type | None = None
    operators: bool = True
    is_host: bool = True
    weak_scalars: bool = False
    checks_indices: bool = False
    program_loops: bool = False
    overrides: ClassVar[dict[str, Callable[..., Any]]] = {}
    missing: frozenset[str] = frozenset()

    # Set by the registry, which is a layer above: the Tensor class of a device, and the backend that reads Python data.
    _tensor_class: ClassVar[Any]
    #: The class of all Tensors of a table with one device; None before the first is made, False if there are several.
    _only_class: Any = None
    _host: ClassVar[Any]

    @property
    def raw_operators(self) -> bool:
        """Whether Python's operators run on raw arrays in gradients and in-place writes; `Backend` describes it.

        Both arrays are floating-point or complex, of one dtype; the other operand may be a Python number.

        See Also
        --------
        xpgrad.backend.Backend
        """
        return self.operators

    def __init__(self) -> None:
        self.node_classes: dict[Any, Any] = {}
        self.kernels: Kernels = Kernels(self)
        self.tensor_base: Any = None  # set by the registry
        self.table_name: str = self.name if self.variant is None else f"{self.name}+{self.variant}"
        self._raw_to_dtype: dict[Any, DType] = {}
        self._dtype_to_raw: dict[DType, Any] = {}

    # -- required ----------------------------------------------------------------------------------------------

    @abstractmethod
    def namespace(self) -> Any:
        """Return the library's Array API namespace, through array-api-compat if it needs that.

        Returns
        -------
        object
            Namespace with the functions, dtypes and constants of the standard.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.namespace().asarray([1.0]).dtype.name
        'float64'
        """

    @abstractmethod
    def array_types(self) -> tuple[type, ...]:
        """Return the types of the library's arrays.

        Returns
        -------
        tuple of type
            All types by which its arrays are recognised.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> np.ndarray in backend.array_types()
        True
        """

    @abstractmethod
    def from_host(self, array: Any, device: Device) -> Any:
        """Copy a NumPy array to a device: later writes to one are not seen in the other.

        The dtype stays the same. If the library lacks it, raise the `CapabilityError` that ``self.raw_dtype(DTYPES[array.dtype.name])``
        raises, or let the library's TypeError pass; never narrow the dtype, which loses digits silently.

        Parameters
        ----------
        array : numpy.ndarray
            Any shape and strides; it may be read-only.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Raw array on the device, of the same shape and dtype.

        Raises
        ------
        CapabilityError, TypeError
            If the library lacks the dtype.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> host = np.asarray([1.0, 2.0])
        >>> raw = backend.from_host(host, device)
        >>> host[0] = 9.0
        >>> raw
        array([1., 2.])
        """

    @abstractmethod
    def to_host(self, x: Any) -> Any:
        """Return the values of a raw array as a NumPy array; it may share memory if `x` is on the host.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        numpy.ndarray
            Has the shape and dtype of `x`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> tensor = xp.tensor([1.0, 2.0], device="numpy")
        >>> backend.to_host(tensor.array)
        array([1., 2.])
        """

    @abstractmethod
    def device_of(self, x: Any) -> Device:
        """Return the device of a raw array.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        Device
            One of `devices()`.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> str(backend.device_of(np.ones(2)))
        'numpy'
        """

    @abstractmethod
    def to_device(self, x: Any, device: Device) -> Any:
        """Move a raw array to another device of this backend.

        Parameters
        ----------
        x : array
            Raw array.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Raw array on the device; `x` itself if it is there.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.to_device(np.ones(2), device)
        array([1., 1.])
        """

    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """Return all devices, the default one first.

        Returns
        -------
        sequence of Device
            At least one.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> [str(device) for device in backend.devices()]
        ['numpy']
        """

    def cuda_devices(self) -> Sequence[Device]:
        """Return the CUDA devices, to which ``device="cuda"`` refers, in the order of their numbers.

        Returns
        -------
        sequence of Device
            Empty if there are none.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.cuda_devices()
        []
        """
        return [device for device in self.devices() if device.kind in ("cuda", "gpu")]

    def on_host(self, device: Device) -> bool:
        """Return whether the memory of a device is the host's, so that moving arrays to NumPy's device is pointless.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        bool
            By default True if `is_host` is, and for CPUs.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.on_host(device)
        True
        """
        return self.is_host or device.kind == "cpu"

    # -- random numbers --------------------------------------------------------------------------------------------
    #
    # For a library with a generator that functions use implicitly. `xpgrad.utils.checkpoint` runs a function twice and needs the
    # same numbers both times. Where keys or generators are passed explicitly there is nothing to do.

    def get_rng_state(self, device: Device) -> Any:
        """Return the state of the library's global random number generator for a device.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        object
            State for `set_rng_state`; None if there is no global generator.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> state = backend.get_rng_state(device)
        >>> first = np.random.random()
        >>> backend.set_rng_state(device, state)
        >>> np.random.random() == first
        True
        """
        return None

    def set_rng_state(self, device: Device, state: Any) -> None:  # noqa: B027 (nothing to do without a global generator)
        """Reset the global random number generator for a device.

        Parameters
        ----------
        device : Device
            One of `devices()`.
        state : object
            Result of `get_rng_state`.

        See Also
        --------
        xpgrad.backend.Backend.get_rng_state
        """

    # -- entry ---------------------------------------------------------------------------------------------------

    #: Whether a library's array may be wrapped without a copy.
    shares_input: bool = True

    def share(self, x: Any) -> Any:
        """Return a user's array in a form that this backend wraps without a copy: itself, or another object for the same memory.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        array
            Raw array that shares the memory of `x`; by default `x` itself.

        Raises
        ------
        TypeError
            If the backend refuses the array: NumPy's refuses masked ones.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> array = np.ones(2)
        >>> backend.share(array) is array
        True
        """
        return x

    def borrow(self, array: Any, device: Device) -> Any:
        """Return a NumPy array as a constant operand on a device of the host (`on_host`).

        Nothing is written to the result, so it may share the memory of `array`. The default is a copy, as by `from_host`.

        Parameters
        ----------
        array : numpy.ndarray
            Any shape and strides; it may be read-only.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Raw array on the device, to which nothing is written.

        Raises
        ------
        CapabilityError, TypeError
            If the library lacks the dtype.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.borrow(np.asarray([1, 2]), device)
        array([1, 2])
        """
        return self.from_host(array, device)

    def creation_options(self, device: Device) -> dict[str, Any]:
        """Return keyword arguments with which the namespace's creation functions make an array on a device.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        dict
            Empty by default.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> options = backend.creation_options(device)
        >>> backend.namespace().zeros(2, **options)
        array([0., 0.])
        """
        return {}

    def adopt(self, x: Any) -> Any:
        """Return a new raw array in the form in which this backend stores arrays (variants use it).

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        array
            By default `x` itself.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> raw = np.ones(2)
        >>> backend.adopt(raw) is raw
        True
        """
        return x

    def ones(self, shape: tuple[int, ...], dtype: DType, device: Device) -> Any:
        """Return a raw array of ones, with which a backward pass starts.

        Parameters
        ----------
        shape : tuple of int
            Shape of the result.
        dtype : DType
            One of `dtypes()`.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Raw array of ones on the device.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.ones((2,), xp.float32, device)
        array([1., 1.], dtype=float32)
        """
        return self.adopt(self.namespace().ones(shape, dtype=self.raw_dtype(dtype), **self.creation_options(device)))

    def seed(self, x: Any, dtype: DType, device: Device) -> Any:
        """Return the start of a backward pass: ones in the shape of the root.

        Parameters
        ----------
        x : array
            Raw array of the root.
        dtype : DType
            One of `dtypes()`.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Raw array of ones on the device.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.seed(np.zeros(2), xp.float64, device)
        array([1., 1.])
        """
        return self.ones(tuple(x.shape), dtype, device)

    def host_array(self, data: Any, dtype: DType | None) -> Any:
        """Convert Python data to a NumPy array.

        Parameters
        ----------
        data : number or nested sequence of numbers
            Bools, ints, floats or complex numbers.
        dtype : DType, optional
            Data type; by default one that holds the numbers.

        Returns
        -------
        numpy.ndarray
            New array.

        Raises
        ------
        ValueError
            If nested sequences are not regular.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.host_array([[1, 2], [3, 4]], xp.float32)
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        return self._host().host_array(data, dtype)

    def host_text(self, array: Any, indent: int) -> str:
        """Format the values of a NumPy array as text, summarised if there are many.

        Parameters
        ----------
        array : numpy.ndarray
            Values to format.
        indent : int
            Column at which the text starts.

        Returns
        -------
        str
            Several lines if there are several axes.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.host_text(np.asarray([1.0, 2.5]), indent=7)
        '[1. , 2.5]'
        """
        return self._host().host_text(array, indent)

    def text(self, x: Any, indent: int) -> str:
        """Format the values of a raw array for the repr of a Tensor.

        Parameters
        ----------
        x : array
            Raw array.
        indent : int
            Column at which the text starts.

        Returns
        -------
        str
            The values, without ``tensor(``, dtype and device.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.text(np.asarray([1.0, 2.5]), indent=7)
        '[1. , 2.5]'
        """
        return self.host_text(self.to_host(x), indent)

    # -- dtypes ------------------------------------------------------------------------------------------------

    def default_dtype(self, kind: str, device: Device) -> DType:
        """Return the default dtype of a kind.

        By default float64 and complex128, or float32 and complex64 if the capabilities `float64` and `complex128` are False; int64 for
        the others. Override it if a device has no int64, or if devices differ.

        Parameters
        ----------
        kind : {"real floating", "complex floating", "integral", "indexing"}
            Kind of numbers.
        device : Device
            One of `devices()`.

        Returns
        -------
        DType
            Data type of results for which the user chose none.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.default_dtype("real floating", device), backend.default_dtype("integral", device)
        (xpgrad.float64, xpgrad.int64)
        """
        wide = self.capabilities.float64
        real, plane = "float64" if wide else "float32", "complex128" if wide and self.capabilities.complex128 else "complex64"
        return DTYPES[{"real floating": real, "complex floating": plane}.get(kind, "int64")]

    def raw_dtype(self, dtype: DType) -> Any:
        """Return the library's object for a dtype.

        Parameters
        ----------
        dtype : DType
            Data type of xpgrad.

        Returns
        -------
        object
            Data type of the library.

        Raises
        ------
        CapabilityError
            If the library lacks the dtype.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.raw_dtype(xp.float32) == np.float32
        True
        >>> backend.raw_dtype(xp.bfloat16)
        Traceback (most recent call last):
            ...
        xpgrad.errors.CapabilityError: backend 'numpy' has no dtype bfloat16; ...
        """
        found = self._dtype_to_raw.get(dtype)
        if found is None:
            found = self.find_dtype(dtype.name)
            if found is None:
                msg = f"backend {self.table_name!r} has no dtype {dtype}; it has {', '.join(map(str, self.dtypes()))}"
                raise CapabilityError(msg)
            self._dtype_to_raw[dtype] = found
        return found

    def find_dtype(self, name: str) -> Any:
        """Return the library's dtype of a given name.

        Parameters
        ----------
        name : str
            Name of a dtype of xpgrad.

        Returns
        -------
        object or None
            Data type of the library; None if it lacks it.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.find_dtype("float32") == np.float32
        True
        >>> print(backend.find_dtype("bfloat16"))
        None
        """
        return getattr(self.namespace(), name, None)

    def dtype_of(self, raw: Any) -> DType:
        """Return xpgrad's dtype for one of the library's dtype objects.

        Parameters
        ----------
        raw : object
            The `dtype` of a raw array.

        Returns
        -------
        DType
            Data type of xpgrad.

        Raises
        ------
        TypeError
            If xpgrad has no such dtype.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.dtype_of(np.ones(2).dtype)
        xpgrad.float64
        """
        try:
            return self._raw_to_dtype[raw]
        except KeyError:
            for dtype in DTYPES.values():
                candidate = self.find_dtype(dtype.name)
                if candidate is not None and candidate == raw:
                    self._raw_to_dtype[raw] = dtype
                    return dtype
            have = ", ".join(map(str, self.dtypes()))
            msg = f"backend {self.table_name!r} cannot hold dtype {str(raw)!r}; convert the array first, to one that it has: {have}"
            raise TypeError(msg) from None

    def dtypes(self) -> list[DType]:
        """Return all dtypes that the library has.

        Returns
        -------
        list of DType
            In the order of `DTYPES`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> xp.float64 in backend.dtypes(), xp.bfloat16 in backend.dtypes()
        (True, False)
        """
        return [d for d in DTYPES.values() if self.find_dtype(d.name) is not None]

    def is_complex(self, x: Any) -> bool:
        """Return whether a raw array is complex.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        bool
            True if its dtype is complex.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.is_complex(np.asarray([1j])), backend.is_complex(np.asarray([1.0]))
        (True, False)
        """
        return self.dtype_of(x.dtype).is_complex

    # -- layout and memory -------------------------------------------------------------------------------------

    def strides(self, x: Any) -> tuple[int, ...] | None:
        """Return the strides of a raw array in elements.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        tuple of int or None
            One per axis; None if arrays have no strides.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.strides(np.ones((2, 3))), backend.strides(np.ones((2, 3)).T)
        ((3, 1), (1, 3))
        """
        return None

    def with_layout(self, x: Any, like: Any) -> Any:
        """Copy `x` with the strides of `like` if those are dense and do not overlap, else in row-major order.

        Parameters
        ----------
        x : array
            Raw array.
        like : array
            Raw array of the shape of `x`; its dtype may be another.

        Returns
        -------
        array
            Copy with the dtype of `x` that shares memory with neither and is written to.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.with_layout(np.ones((2, 3)), np.ones((3, 2)).T).strides
        (8, 16)
        """
        return self.kernels.copy(x)

    def same_layout(self, x: Any, like: Any) -> bool:
        """Return whether `x` already has the layout that `with_layout` would give it.

        Parameters
        ----------
        x : array
            Raw array.
        like : array
            Raw array of the shape of `x`.

        Returns
        -------
        bool
            True if no copy is needed.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.same_layout(np.ones((2, 3)), np.ones((3, 2)).T)
        False
        """
        return True

    def may_alias(self, x: Any, y: Any) -> bool:
        """Return whether two raw arrays may share memory.

        Parameters
        ----------
        x : array
            Raw array.
        y : array
            Another raw array.

        Returns
        -------
        bool
            False only if they certainly do not; True by default.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> x = np.arange(4.0)
        >>> backend.may_alias(x, x[1:]), backend.may_alias(x, x.copy())
        (True, False)
        """
        return True

    def is_unshared(self, memory: list[Any]) -> bool:
        """Return whether certainly nothing but `memory` and one Tensor refers to the array ``memory[0]``.

        It is asked before a write under `allow_mutation_on_saved_tensors` and in `numpy_code`. If it is True, the write changes the array;
        otherwise it changes a copy, because a node may have saved the array. Override it together with `separate`, if the library's arrays
        are freed by counting references.

        Parameters
        ----------
        memory : list of one array
            A list, so that asking does not add a reference.

        Returns
        -------
        bool
            False by default.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> memory = [np.zeros(3)]
        >>> tensor = backend.wrap(memory[0])
        >>> backend.is_unshared(memory)
        True
        >>> part = memory[0][1:]
        >>> backend.is_unshared(memory)
        False
        """
        return False

    def separate(self, tensor: Any) -> None:  # noqa: B027 (optional)
        """Give a new view an array of its own, if its array is a view that refers to that of its base; see `is_unshared`.

        If `may_alias` depends on strides, the copy needs gaps where the view has gaps: a later `reshape` must share memory or copy as if
        it got the view.

        Parameters
        ----------
        tensor : Tensor
            Tensor of this backend. By default it keeps its array.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> part = xp.ones(3, device="numpy")[1:]
        >>> part._array.base is None
        False
        >>> backend_for("numpy").separate(part)
        >>> part._array.base is None
        True
        """

    def own(self, tensor: Any) -> Any:
        """Return a Tensor's raw array in a form that can be viewed and written to, and store it in the Tensor.

        Override it if some results are of a type that cannot be (NumPy's scalars): convert ``tensor._array``, assign the result to it,
        and return it. Shape and dtype stay.

        Parameters
        ----------
        tensor : Tensor
            Tensor of this backend.

        Returns
        -------
        array
            The raw array of the Tensor from now on.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> tensor = xp.sum(xp.ones(3, device="numpy"))
        >>> type(backend.own(tensor)) is backend.array_type
        True
        """
        return tensor._array

    def operand_shape(self, x: Any) -> tuple[int, ...]:
        """Return the shape of an operand as its node saves it for the gradient formulas, which pass it to kernels.

        A backend may return a subclass of tuple with more information for its own kernels, e.g. about the chunks of the operand.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        tuple of int
            One length per axis.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.operand_shape(np.ones((2, 3)))
        (2, 3)
        """
        shape: tuple[int, ...] = x.shape
        return shape

    # -- in place ----------------------------------------------------------------------------------------------

    def update(self, x: Any, key: Any, value: Any) -> Any:
        """Write ``x[key] = value`` and return the array: `x` itself, or a new one if arrays are immutable.

        Parameters
        ----------
        x : array
            Raw array that `own` returned.
        key : tuple
            Basic or advanced key, as for the kernel `written` ("Keys" below).
        value : array
            Raw array of the dtype of `x`, which broadcasts to ``x[key]``.

        Returns
        -------
        array
            The array with the values written.

        Raises
        ------
        ValueError
            If the shape of `value` does not fit; nothing is written then.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> x = np.zeros(3)
        >>> backend.update(x, (slice(0, 2, 1),), np.asarray([1.0, 2.0])) is x
        True
        >>> x
        array([1., 2., 0.])
        """
        if not self.capabilities.mutable:
            return self.kernels.written(self.kernels.copy(x), key, value)
        new = self.kernels.written(x, key, value)
        if new is not x:  # the standard cannot write at an advanced key: write the whole new array
            x[...] = new
        return x

    # -- streams -----------------------------------------------------------------------------------------------
    #
    # A backend whose work is queued on streams declares the capability `streams` and implements these; the engine then runs each backward
    # operation on the stream of its forward operation, and puts waits between streams (STR-01..08). Streams compare by ``==``.

    def current_stream(self, device: Device) -> Any:
        """Return the stream on which work on a device is queued now.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        object or None
            Stream, which is compared by ``==``; None if there are no streams.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> print(backend.current_stream(device))
        None
        """
        return None

    def stream_guard(self, stream: Any) -> AbstractContextManager[Any]:
        """Return a context manager inside which work is queued on a stream.

        Parameters
        ----------
        stream : object
            Result of `current_stream`.

        Returns
        -------
        context manager
            Does nothing by default.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> with backend.stream_guard(backend.current_stream(device)):
        ...     y = np.ones(2) + 1.0
        """
        return nullcontext()

    def record_event(self, stream: Any) -> Any:
        """Return an event that is reached when all work queued on a stream so far is done.

        Parameters
        ----------
        stream : object
            Result of `current_stream`.

        Returns
        -------
        object or None
            Event for `wait_event`; None if there are no streams.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> stream = backend.current_stream(device)
        >>> event = backend.record_event(stream)
        >>> backend.wait_event(stream, event)
        >>> backend.keep_alive(np.ones(2), stream)
        >>> print(event)
        None
        """
        return None

    def wait_event(self, stream: Any, event: Any) -> None:  # noqa: B027 (nothing to do without streams)
        """Make work queued on a stream from now on wait for an event of another stream; the host does not wait.

        Parameters
        ----------
        stream : object
            Result of `current_stream`.
        event : object
            Result of `record_event`.

        See Also
        --------
        xpgrad.backend.Backend.record_event
        """

    def keep_alive(self, x: Any, stream: Any) -> None:  # noqa: B027 (nothing to do without streams)
        """Keep the memory of a raw array from being reused before all work queued on a stream so far is done.

        Parameters
        ----------
        x : array
            Raw array.
        stream : object
            Result of `current_stream`.

        See Also
        --------
        xpgrad.backend.Backend.record_event
        """

    def synchronize(self, device: Device) -> None:  # noqa: B027 (nothing to do without streams)
        """Make the host wait until all work on a device is done.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.synchronize(device)
        """

    def compute_many(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Compute the values of several raw arrays in one pass, and return arrays with these values.

        `xpgrad.compute` calls it, and everything in the core that reads several results. Override it for a lazy library, so that shared
        work is done once.

        Parameters
        ----------
        arrays : sequence of array
            Raw arrays.

        Returns
        -------
        sequence of array
            As many arrays of the same shapes, dtypes and devices, whose values can be read without computing them again. They must be
            the given arrays themselves, as they are by default, if the library's arrays are `mutable`.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.compute_many([np.ones(2), np.zeros(1)])
        [array([1., 1.]), array([0.])]
        """
        return arrays

    def is_capturing(self, device: Device) -> bool:
        """Return whether the current stream of a device records a graph instead of executing.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        bool
            False by default.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.is_capturing(device)
        False
        """
        return False

    # -- evaluation --------------------------------------------------------------------------------------------

    def is_traced(self, x: Any) -> bool:
        """Return whether a raw array stands for a value that is not known yet.

        Parameters
        ----------
        x : object
            Raw array.

        Returns
        -------
        bool
            False by default.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.is_traced(np.ones(2))
        False
        """
        return False

    def note_device(self, x: Any, device: Device) -> None:  # noqa: B027 (nothing to do where arrays know their device)
        """Remember the device of a raw array that does not know it, such as a traced value: `device_of` returns it from now on.

        Parameters
        ----------
        x : array
            Raw array.
        device : Device
            One of `devices()`.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> (device,) = backend.devices()
        >>> backend.note_device(np.ones(2), device)
        """

    # -- transforms --------------------------------------------------------------------------------------------

    def control_flow(self, arrays: Sequence[Any]) -> ControlFlow | None:
        """Return the library's loops and branches, if they are to replace Python's for some arrays.

        `xpgrad.func` calls it, e.g. with the arrays of a loop's carry. A library that traces functions returns its own loops if one of
        these arrays is traced: then the traced program does not grow with the number of steps, and a branch may depend on a traced value.

        Parameters
        ----------
        arrays : sequence of array
            Raw arrays of this backend.

        Returns
        -------
        ControlFlow or None
            None (the default): Python runs loops and branches.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.control_flow([np.ones(2)]) is None
        True
        """
        return None

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a faster function with the same results, for the capability `jit`.

        Parameters
        ----------
        function : callable
            Takes raw arrays and returns nested tuples of raw arrays and None. It does not depend on values and has no side effects.

        Returns
        -------
        callable
            Has the same arguments and results.

        Raises
        ------
        CapabilityError
            If the library does not compile.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.capabilities.jit
        False
        >>> backend.compile(lambda x: x)
        Traceback (most recent call last):
            ...
        xpgrad.errors.CapabilityError: backend 'numpy' does not compile
        """
        msg = f"backend {self.table_name!r} does not compile"
        raise CapabilityError(msg)

    def compile_program(self, program: Any, *, threads: int | None = None) -> Callable[..., Any] | None:
        """Return a function that executes a captured program (`xpgrad.programs`), for a library that has no compiler.

        Parameters
        ----------
        program : Program
            Program that `xpgrad.compile` captured; `xpgrad.programs` describes it.
        threads : int, optional
            Number of threads that may work on it; the library decides by default.

        Returns
        -------
        callable or None
            Takes the raw arrays of the program's inputs, by position, and returns a tuple of those of its outputs: new ones, whose memory
            nothing else uses. None (the default): the program's operations are called one by one, as kernels of this table.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> compiled = xp.compile(lambda x: xp.sin(x) + 1.0)
        >>> program = compiled.program(xp.zeros(2, device="numpy"))
        >>> function = backend.compile_program(program)
        >>> function(np.zeros(2))
        (array([1., 1.]),)
        """
        return None

    def stand_in(self, x: Any) -> Any:
        """Return an array that may replace `x` while a function is captured: of the same shape, dtype and chunks, with any values.

        Override it for a library whose arrays keep everything from which they were computed.

        Parameters
        ----------
        x : array
            Raw array.

        Returns
        -------
        array
            By default `x` itself.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.stand_in(np.ones(2)).shape
        (2,)
        """
        return x

    def program_source(self, program: Any, *, threads: int | None = None) -> str:
        """Return the text that `compile_program` executes, for people to read.

        Parameters
        ----------
        program : Program
            Program that `xpgrad.compile` captured; `xpgrad.programs` describes it.
        threads : int, optional
            Number of threads that may work on it; the library decides by default.

        Returns
        -------
        str
            Several lines; by default the program as it prints.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> compiled = xp.compile(lambda x: xp.sin(x) + 1.0)
        >>> program = compiled.program(xp.zeros(2, device="numpy"))
        >>> "np.sin(x)" in backend.program_source(program)
        True
        """
        return str(program)

    def is_unit(self, g: Any) -> bool:
        """Return whether a raw gradient is known to be the number 1; a lazy library does not read its value.

        Parameters
        ----------
        g : array
            Raw gradient.

        Returns
        -------
        bool
            False if it is not known.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.is_unit(np.ones(()))
        True
        """
        return False

    # -- kernels -----------------------------------------------------------------------------------------------
    #
    # `overrides` may name any function of the standard (called with the standard's arguments, already checked), the rows that
    # `xpgrad backends show NAME` and `rules/` list, and the private kernels below. All take and return raw arrays on one device. A result
    # has the dtype of the operand unless stated otherwise, and the caller may write to a result that is described as a copy.
    #
    # Keys. The core checks a user's key before it calls `index_basic`, `gather`, `put`, `written`, `update` or `flat_index`; a backend's
    # kernels can rely on that, and cannot turn it off. A key is
    # - basic: a tuple of integers n with -length <= n < length, slices, None (a new axis) and at most one `...`. Every axis has an entry
    #   or is covered by the ellipsis. Slices have a start and stop within the axis, and a step that is not 0 (a stop of None if the slice
    #   goes backwards to the front); an empty slice is slice(0, 0);
    # - or advanced: a tuple of these, but with slices as the user wrote them and possibly without entries for the last axes; of integer
    #   arrays, of any integer dtype but uint64, which broadcast together and whose elements are within the range of their axis (negative
    #   ones count from the end); and of masks with exactly the shape of the axes that they index.
    # The core raises IndexError for indices that are out of range or too many, and ValueError for a step of 0. It reads the elements of
    # index arrays if it can: not if they are traced (`is_traced`), nor on a `lazy` backend, which must refuse or clamp them itself. With
    # `checks_indices` the core passes every key as the user wrote it (a basic key need not be a tuple, nor cover every axis), and the
    # kernel raises the IndexError before anything is written.
    # In gradients the same kernels, and those that only add, get keys that were checked in this way.
    #
    #   index_basic(x, key)           x[key] for a basic key: a view if the capability `view_aliases` is True
    #   gather(x, key)                x[key] for an advanced key, in newly allocated memory
    #   gather_along(x, indices, axis)  indices of the rank of x, equal to it in all other axes; 0 <= indices < length, in the dtype of
    #                                 indices; 0 <= axis. The result has their shape
    #   written(buffer, key, value)   `buffer`, which is the caller's and may be written to, with [key] overwritten, for a key of either
    #                                 kind; of duplicates the last one counts. `value` is an array of the buffer's dtype, or a Python
    #                                 number, and broadcasts to x[key], surplus leading axes of length 1 dropped; ValueError if it does
    #                                 not. Returns the buffer, or a new array
    #   put(x, value, key)            the same in a copy of x
    #   add_at(buffer, g, key)        buffer[key] += g for a basic key; `g` has the shape of buffer[key]. Returns the buffer, or a new array
    #   index_basic_transpose(g, key, shape)  zeros of `shape` with g at [key], for a basic key
    #   scatter_add(g, key, shape), scatter_into(buffer, g, key)  zeros of `shape`, or the buffer, with g added at an advanced key,
    #                                 duplicates included, validated; g has the shape of x[key]
    #   scatter_along(g, indices, shape, axis)  the transpose of gather_along; indices are validated, but may be negative
    #   flat_index(key, shape, like)  the positions, 0 .. prod(shape) - 1, that the key selects in a flattened array of `shape`, in the
    #                                 shape of x[key] and the dtype of indices, on the device of `like`
    #   from_front(indices, n, axis, like)  validated indices, as 0 .. n - 1 in the dtype of indices, on the device of `like`
    #   take_flat(x, flat)            elements of the flattened x at positions of any shape, 0 <= flat < x.size; the result has that shape
    #   segment_sum(values, positions, size)  values and positions of shape (n,), 0 <= positions < size; the result has shape (size,)
    #   last_writer(positions, size)  positions of shape (n,), 0 <= positions < size; returns integers of shape (size,): 1 + the
    #                                 index of the last position that equals the place, or 0
    #   wins(x, key, shape)           bools of the shape of x, which is written at [key] of an array of `shape`: True at elements that
    #                                 no later element overwrites
    #   put_at_path(root, path, value)  a copy of `root` in which the part that a path of views leads to holds `value`, of that part's
    #                                 shape; `path` holds pairs (name of a view's row, its arguments), whose keys have been validated
    #   count_up(like, *bounds)       arange(*bounds) in the dtype of indices, on the device of `like`
    #   zeros_near(x, shape)          zeros in the dtype of x, on its device
    #   copy(x)                       a copy of x, to which the caller writes; x itself if arrays are immutable
    #   cast(x, dtype)                x in a raw dtype of the library; the real part of a complex x, and x != 0 for bool
    #   wide(x)                       x in float32 if it is a floating array of 16 bits, else x
    #   scale(g, factor)              g * factor; `g` is the caller's and may be overwritten

    def kernel(self, name: str) -> Callable[..., Any] | None:
        """Return the backend's own kernel of a given name.

        A subclass with kernels elsewhere than in `overrides` calls this method for the others: it also finds the functions of `special`.

        Parameters
        ----------
        name : str
            Name of a function of the standard, of a row, or of a private kernel.

        Returns
        -------
        callable or None
            Takes and returns raw arrays; None if there is none.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.kernel("no_such_kernel") is None, callable(backend.kernel("gather"))
        (True, True)
        """
        found = self.overrides.get(name)
        return self._special_kernel(name) if found is None and name.startswith("special_") else found

    def has_operator(self, name: str) -> bool:
        """Return whether Python's operator may replace a kernel of arithmetic: one that is not among the backend's own.

        Parameters
        ----------
        name : str
            Name of a row, such as ``"remainder"``.

        Returns
        -------
        bool

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend_for("numpy").has_operator("remainder")
        True
        """
        return self.operators and name not in self.overrides

    def wrap_kernel(self, name: str, function: Any) -> Any:
        """Return the kernel to use instead of one that was just resolved (variants use it).

        Parameters
        ----------
        name : str
            Name in the raw namespace.
        function : object
            A kernel, or one of the namespace's extensions (`linalg`, `fft`), dtypes or constants. Return unchanged what is not a function:
            ``if not callable(function) or isinstance(function, type)``.

        Returns
        -------
        object
            By default `function` itself.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.wrap_kernel("sin", np.sin) is np.sin
        True
        """
        return function

    # -- special functions (`xpgrad.scipy.special`) --------------------------------------------------------------

    #: Whether its `special` functions take complex arrays if SciPy's do; if False, they are never called with complex arrays.
    special_complex: bool = False

    def special(self, name: str) -> Callable[..., Any] | None:
        """Return the library's own version of a function of `scipy.special`, on raw arrays of one dtype.

        The result has the dtype of the arrays. Functions that the library lacks are composed of others, or computed by SciPy
        (`through_host`).

        Parameters
        ----------
        name : str
            Name in `scipy.special`, or ``"linalg_NAME"`` for a row of `xpgrad.scipy.linalg`, which takes stacks of matrices.

        Returns
        -------
        callable or None
            None by default.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> float(backend.special("erf")(np.asarray(0.0)))
        0.0
        >>> print(backend.special("no_such_function"))
        None
        """
        return None

    def _special_kernel(self, name: str) -> Callable[..., Any] | None:
        """Return the kernel of a special function: the library's own, or for complex arrays the row's; None if the library has none."""
        own = self.special(name.removeprefix("special_"))
        row = ROWS.get(name)
        if own is None or self.special_complex or row is None:
            return own
        kernels, is_complex = self.kernels, self.is_complex
        composed: Any = row.kernel

        def chosen(*args: Any) -> Any:
            if any(hasattr(a, "dtype") and is_complex(a) for a in args):
                return composed(kernels, *args)
            return own(*args)

        return chosen

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        """Apply a function of NumPy arrays, element by element, to raw arrays and Python numbers.

        Parameters
        ----------
        name : str
            Name of the function for messages: in `scipy.special`, or with its module, as ``"linalg.logm"``.
        function : callable
            Takes NumPy arrays, which broadcast together, and returns one array of that shape, of any dtype.
        *args : array or number
            Raw arrays, at least one, and numbers.
        signature : str
            For a function whose elements have axes, such as matrices: these axes, as for `numpy.vectorize`, e.g. ``"(m,m),(m,k)->(m,k)"``.
            The axes before them broadcast; all arguments are then arrays, and the result has their common dtype.

        Returns
        -------
        array
            Raw array on the device of the first array.

        Raises
        ------
        CapabilityError
            If the arrays are not in the host's memory (`on_host`).

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.through_host("half", lambda a: a / 2, np.asarray([1.0, 3.0]))
        array([0.5, 1.5])
        """
        arrays = self.array_types()
        device = self.device_of(next(a for a in args if isinstance(a, arrays) and hasattr(a, "shape")))
        if not self.on_host(device):
            full = name if "." in name else f"special.{name}"
            msg = (
                f"backend {self.table_name!r} has no function `scipy.{full}` on {str(device)!r}, and SciPy computes on the host "
                "only; move the Tensor there, e.g. with `x.to_device('numpy')`"
            )
            raise CapabilityError(msg)
        out = function(*(self.to_host(a) if hasattr(a, "shape") else a for a in args))
        return self.from_host(self._host().to_host(out), device)

    # -- sparse matrices (`xpgrad.func.sparse_jacobian`) ----------------------------------------------------------

    def sparse_matrix(self, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Any:
        """Return a sparse matrix of the library, in compressed rows.

        Parameters
        ----------
        values : array
            One-dimensional raw array of the entries, row by row.
        columns : numpy.ndarray of int
            Column of each entry, ascending in each row.
        starts : numpy.ndarray of int
            Number of the first entry of each row, followed by the number of entries.
        shape : (int, int)
            Shape of the matrix.

        Returns
        -------
        object
            Sparse matrix of the library; NumPy's backend returns SciPy's.

        Raises
        ------
        CapabilityError
            If the library has no sparse matrices.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> matrix = backend.sparse_matrix(np.asarray([1.0, 2.0]), np.asarray([0, 1]), np.asarray([0, 1, 2]), (2, 2))
        >>> matrix.toarray()
        array([[1., 0.],
               [0., 2.]])
        """
        msg = f"backend {self.table_name!r} has no sparse matrices; ask for SciPy's, with `format='csr'`"
        raise CapabilityError(msg)

    # -- Tensors -----------------------------------------------------------------------------------------------

    def wrap(self, raw: Any) -> Any:
        """Return a Tensor without history around a raw array.

        Parameters
        ----------
        raw : array
            Raw array; it is not copied.

        Returns
        -------
        Tensor
            Does not require grad.

        Examples
        --------
        >>> import numpy as np
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.wrap(np.asarray([1.0, 2.0]))
        tensor([1., 2.])
        """
        cls = self._only_class
        if not cls:
            cls = self._tensor_class(self.device_of(raw))
            if self._only_class is None:
                self._only_class = cls if len(self.devices()) == 1 else False
        tensor = object.__new__(cls)
        tensor._array = raw
        tensor._node = tensor._alias = None
        return tensor
