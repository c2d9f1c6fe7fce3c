"""A backend: a table of plain callables on its library's raw arrays, and its capabilities. The one page that a plugin's author reads.

Only the first group (`namespace` .. `devices`) must be implemented; everything else has a default in Array API calls.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from xpgrad._array.guards import guarded
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
    "API_VERSION", "DTYPES", "AxisFunction", "Backend", "BackendInfo", "Capabilities", "DType", "DefaultKernels", "Device", "Domain",
    "Elementwise", "axis_functions", "elementwise_functions", "numpy_name", "out_of_range", "spellings",
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
        The backend's name in device strings; equals the name of its entry point.
    load : callable
        ``load(variant)`` imports the library and returns the `Backend`; `variant` is None or one of ``variants``.
    array_modules : tuple of str
        Top-level modules whose arrays the backend takes, e.g. ``("numpy",)``: found by an array's type, without loading.
    api_version : (int, int)
        The `API_VERSION` that the plugin was written for.
    variants : tuple of str
        What may follow the backend's name in a device string, as in ``"name=variant"``.
    install : str
        The command to run when the library is missing, e.g. ``"pip install xpgrad[jax]"``.
    cuda : bool
        Whether the library can have CUDA devices: then ``device="cuda"`` looks for them here, and for no others does it load a backend.

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
        A basic slice of an array shares its memory.
    strides : bool
        Arrays have strides.
    lazy : bool
        Values are computed later than they are requested, and looking at one early is to be avoided.
    streams : bool
        Work is queued on streams.
    boolean_indexing : bool
        ``x[mask]`` works.
    data_dependent_shapes : bool
        Functions such as `nonzero` and `unique_values` work.
    negative_step : bool
        ``x[::-1]`` is a slice like any other; without it, where arrays are mutable, it is a copy that refuses writes.
    complex : bool
        Complex dtypes exist, complex64 at least.
    float64 : bool
        The dtype float64 exists.
    complex128 : bool
        It exists, too, where complex dtypes and float64 do; without it Python's complex numbers are complex64, and complex numbers of a
        float64 Tensor an error.
    linalg : bool
        The extension `linalg` exists.
    fft : bool
        The extension `fft` exists.
    dlpack : bool
        Arrays exchange memory through DLPack.
    devices : bool
        There can be more than one device.
    deterministic_scatter : bool
        Adding into duplicate indices gives the same bits each time.
    jit : bool
        The library compiles functions.
    vmap : bool
        The library vectorises functions.
    threads : bool
        Arrays may be used in other threads than the one that made them, and passes run in several at once.

    Notes
    -----
    `lazy` tells the core to look at no value: no check reads one, so an index array that is out of range is the library's to refuse. A
    library that computes on demand, but whose values can be read whenever somebody asks, is not lazy in this sense: leave it False.

    Without `threads`, users and tests keep to one thread, and so does the core: where it would go on in another one, because passes inside
    of passes have used up the stack (24 deep), it raises a `CapabilityError`.

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
    numpy : str or None
        NumPy's name for it; None if NumPy has no such function.
    domains : tuple of Domain
        For each operand, the values for which it is defined.
    differentiable : tuple of bool
        For each operand, whether the function has a derivative in it.

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
    """Return the elementwise functions of the namespace that are kernels: what a backend may have, and what tests go over.

    Returns
    -------
    list of Elementwise
        In the order in which they are declared.

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
    kind : {"reduction", "view"}
    domain : Domain
        The numbers for which it is defined.
    axes : int
        How many axes a view takes behind its operand. A reduction takes `axis` and `keepdims` and needs neither.

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
        In the order in which they are declared.

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

    A backend of a library with NumPy's functions finds its own kernels by it, so that it need not list them.

    Parameters
    ----------
    kernel : str
        Its name in a backend's table: ``"acos"``.

    Returns
    -------
    str or None
        The name in the module `numpy`, of a function with the same arguments: ``"arccos"``. None if there is none.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.backend.numpy_name("acos"), xp.backend.numpy_name("gather")
    ('arccos', None)
    """
    name = kernel_of(kernel).numpy
    return None if name is None or "." in name else name


def spellings(kernel: str) -> tuple[str, ...]:
    """Return how users write what a kernel computes, for messages: ``("sum",)`` for `reduce_sum`, ``("x[key]",)`` for `gather`.

    Several are the public functions that one kernel computes; the first one stands for it. What is not known is its own name.

    Parameters
    ----------
    kernel : str
        Its name in a backend's table.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.backend.spellings("reduce_sum"), xp.backend.spellings("gather"), xp.backend.spellings("sin")
    (('sum',), ('x[key]',), ('sin',))
    """
    spelled, row = kernel_of(kernel).spelled, ROWS.get(kernel)
    return (spelled,) if spelled is not None else (kernel,) if row is None else row.public


def _own_function(backend: Backend, row: Row) -> Any:
    """Return the library's function for an elementwise row that has a composition; None if there is none.

    Functions of two operands are taken only if the library's take Python numbers beside arrays.
    """
    name = numpy_name(row.name)
    if not row.elementwise or name is None or (len(row.tensors) > 1 and not backend.weak_scalars):
        return None
    namespace = backend.namespace()
    return getattr(namespace, row.name, None) or getattr(namespace, name, None)


class Kernels:
    """The raw namespace that rules run in: each name resolved once, to the backend's own kernel, the row's, or the library's."""

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
        if found is None:
            msg = f"backend {backend.table_name!r} has no function `{name}`"
            raise CapabilityError(msg)
        found = backend.wrap_kernel(name, found)
        if not backend.checks_indices:
            found = guarded(self, name, found, own)
        setattr(self, name, found)
        return found


class Backend(ABC):
    """One array library's table. Instances are made once per (backend, variant) and kept.

    Attributes
    ----------
    name, variant : str, str or None
    capabilities : Capabilities
    array_type : type or None
        The one type of its arrays; None if there are several, of which none needs `own`.
    operators : bool
        Kernels of arithmetic may be replaced by Python's operators on the raw arrays.
    raw_operators : bool
        The same for gradients, and in place: by default as `operators`. Without it gradient formulas run on Tensors, which is slower.
    is_host : bool
        Its arrays live in the host's memory.
    weak_scalars : bool
        Python scalars may be given to its kernels as they are: they promote as the engine's table says. Without it, the array
        is converted to the dtype of the result first; its kernels of arithmetic still get the Python number beside it, of a kind that this
        dtype takes as it is (an int, float or complex beside complex numbers, an int or float beside floats, an int beside integers).
    checks_indices : bool
        Its own kernels, and its library where it has none, refuse by themselves every index that is out of range, in reads and writes:
        with an IndexError, before anything is written. The core then does not look, which saves time. False if unknown: the core checks
        what a user wrote before a kernel sees it ("Keys" below).
    overrides : dict
        Its own kernels by name, on raw arrays.
    missing : frozenset of str
        Functions of the standard that the library is known not to have: calling one raises a `CapabilityError` that names it as
        "has no function `NAME`", and the tests expect that.

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
    >>> sorted(backend.missing), "sin" in backend.overrides, backend.shares_input, backend.special_complex
    ([], False, True, True)
    """

    name: str = ""
    variant: str | None = None
    capabilities: Capabilities = Capabilities()
    array_type: type | None = None
    operators: bool = True
    is_host: bool = True
    weak_scalars: bool = False
    checks_indices: bool = False
    overrides: ClassVar[dict[str, Callable[..., Any]]] = {}
    missing: frozenset[str] = frozenset()

    # Handed over by the registry, which is a layer above: the Tensor class of a device, and the table that reads Python data.
    _tensor_class: ClassVar[Any]
    #: The class of all Tensors of a table with one device; None before the first is made, False if there are several.
    _only_class: Any = None
    _host: ClassVar[Any]

    @property
    def raw_operators(self) -> bool:
        """See above: the arrays are floating or complex, of one dtype, and the other operand may be a Python number.

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
        """The library's Array API namespace (through array-api-compat where it needs that).

        Returns
        -------
        object
            With the functions, dtypes and constants of the standard.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.namespace().asarray([1.0]).dtype.name
        'float64'
        """

    @abstractmethod
    def array_types(self) -> tuple[type, ...]:
        """The types of its raw arrays.

        Returns
        -------
        tuple of type
            Arrays are recognised by these, and no others.

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
        """A raw array with the values of a NumPy array, in memory of its own: later writes to either are not seen in the other.

        The dtype stays what it is. For one that the library lacks, raise the `CapabilityError` that
        ``self.raw_dtype(DTYPES[array.dtype.name])`` raises, or let the library's own TypeError pass; never narrow, which loses digits
        silently.

        Parameters
        ----------
        array : numpy.ndarray
            Of any shape and strides; it may be read-only.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            A raw array on the device, of the same shape and dtype.

        Raises
        ------
        CapabilityError, TypeError
            For a dtype that the library lacks.

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
        """A NumPy array with the values of `x`; it may share memory if `x` lives on the host.

        Parameters
        ----------
        x : array
            A raw array of the library.

        Returns
        -------
        numpy.ndarray
            Of the same shape and dtype.

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
        """The device of a raw array.

        Parameters
        ----------
        x : array
            A raw array of the library.

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
        """`x` on another device of this backend.

        Parameters
        ----------
        x : array
            A raw array of the library.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            A raw array on the device; `x` itself if it is there.

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
        """All devices, the default one first.

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
        """Those of the devices that are CUDA's, which ``device="cuda"`` means, in the order of their numbers.

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
        """Return whether the memory of a device is the host's, so that there is no point in moving arrays from there to NumPy's.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        bool
            True where `is_host`, and for CPUs.

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
        """The state of the library's global generator for `device`; None where there is none.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        object
            What `set_rng_state` takes.

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
        """Reset the global generator for `device` to a state that `get_rng_state` gave.

        Parameters
        ----------
        device : Device
            One of `devices()`.
        state : object
            What `get_rng_state` returned.

        See Also
        --------
        xpgrad.backend.Backend.get_rng_state
        """

    # -- entry ---------------------------------------------------------------------------------------------------

    #: Whether a library's array may be wrapped without a copy.
    shares_input: bool = True

    def share(self, x: Any) -> Any:
        """A user's array in the form that this backend wraps without a copy: itself or another object for the same memory. May refuse.

        Parameters
        ----------
        x : array
            A raw array of the library.

        Returns
        -------
        array
            It shares the memory of `x`.

        Raises
        ------
        TypeError
            For an array that it refuses: for NumPy a masked one.

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
        """A raw array with the values of a NumPy array that meets Tensors on a `device` of the host (`on_host`) as a constant.

        Nothing is written to it, and so it may share the memory of `array`, of which nothing is known but its dtype: it may be read-only
        and have any strides. The default is a copy, as `from_host` makes it.

        Parameters
        ----------
        array : numpy.ndarray
            Of any strides.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            A raw array on the device, which nobody writes to.

        Raises
        ------
        CapabilityError, TypeError
            For a dtype that the library lacks.

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
        """Keyword arguments that put a new array of the namespace's creation functions on `device`.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        dict
            By default empty.

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
        """A fresh raw array in the form in which this backend holds arrays (variants use it).

        Parameters
        ----------
        x : array
            A raw array of the library.

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
        """A raw array of ones: the seed of a pass.

        Parameters
        ----------
        shape : tuple of int
            The shape.
        dtype : DType
            One of `dtypes()`.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            A raw array.

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
        """The start of a pass: raw ones in the shape of the root `x`.

        Parameters
        ----------
        x : array
            A raw array of the library.
        dtype : DType
            One of `dtypes()`.
        device : Device
            One of `devices()`.

        Returns
        -------
        array
            Ones in the shape of `x`, of the dtype, on the device.

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
        """A NumPy array from Python data: scalars and nested sequences of them.

        Parameters
        ----------
        data : number, or nested sequence
            Of bool, int, float and complex.
        dtype : DType, optional
            By default the one that the numbers need.

        Returns
        -------
        numpy.ndarray
            Of the host.

        Raises
        ------
        ValueError
            For sequences that are not rectangular.

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
        """The values of a NumPy array as text, summarised where there are many; `indent` is the column where it starts.

        Parameters
        ----------
        array : numpy.ndarray
            The values.
        indent : int
            The column where the text starts.

        Returns
        -------
        str
            Several lines where there are several axes.

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
        """The text for the values of a raw array where a Tensor is printed; `indent` is the column where it starts.

        Parameters
        ----------
        x : array
            A raw array of the library.
        indent : int
            The column where the text starts.

        Returns
        -------
        str
            Without `tensor(`, dtype and device.

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
        """The default dtype of a kind: ``"real floating"``, ``"complex floating"``, ``"integral"`` or ``"indexing"``.

        float64 and complex128, or float32 and complex64 where the capabilities `float64` and `complex128` say that there are none; int64
        for the others. Override it where a device has no int64, or where devices differ.

        Parameters
        ----------
        kind : str
            One of the four.
        device : Device
            One of `devices()`.

        Returns
        -------
        DType
            The dtype of results that nobody chose one for.

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
        """The library's object for a dtype.

        Parameters
        ----------
        dtype : DType
            Of xpgrad.

        Returns
        -------
        object
            A dtype of the library.

        Raises
        ------
        CapabilityError
            If it has none.

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
        """The library's dtype of that name, or None.

        Parameters
        ----------
        name : str
            The name of a dtype of xpgrad.

        Returns
        -------
        object or None
            A dtype of the library.

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
        """The xpgrad dtype of one of the library's dtype objects.

        Parameters
        ----------
        raw : object
            The `dtype` of an array.

        Returns
        -------
        DType
            Of xpgrad.

        Raises
        ------
        TypeError
            For a dtype that xpgrad does not have.

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
        """All dtypes it has.

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
            A raw array of the library.

        Returns
        -------
        bool
            By its dtype.

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
        """Strides in elements, or None where there are none.

        Parameters
        ----------
        x : array
            A raw array of the library.

        Returns
        -------
        tuple of int or None
            One per axis.

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
        """A copy of `x` with the strides of `like` if those are dense and do not overlap, else row-major (LAY-01, LAY-02).

        `like` has the shape of `x`, and may have another dtype; the result has the dtype of `x`, is written to, and shares memory with
        neither.

        Parameters
        ----------
        x : array
            A raw array of the library.
        like : array
            A raw array of the same shape.

        Returns
        -------
        array
            In memory of its own.

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
            A raw array of the library.
        like : array
            A raw array of the same shape.

        Returns
        -------
        bool
            Then no copy is needed.

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
        """Return whether two arrays may share memory; True if unknown.

        Parameters
        ----------
        x : array
            A raw array of the library.
        y : array
            Another one.

        Returns
        -------
        bool
            False only where it is certain.

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

    def own(self, tensor: Any) -> Any:
        """The Tensor's array in a form that can be viewed and written to; the Tensor keeps it.

        Needed where some results are of a type that is neither (NumPy's scalars): convert ``tensor._array``, put the result there, return
        it. Shape and dtype stay.

        Parameters
        ----------
        tensor : Tensor
            Of this backend.

        Returns
        -------
        array
            The array of the Tensor from now on.

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
        """The shape of an operand as its node keeps it for the gradient formulas, which hand it on to kernels.

        A backend may return a subclass of tuple that tells its own kernels more, e.g. into which chunks the operand is divided.

        Parameters
        ----------
        x : array
            A raw array of the library.

        Returns
        -------
        tuple of int
            One per axis.

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
        """Write ``x[key] = value`` and return the array: `x` itself, or a new one where arrays are immutable.

        `x` is what `own` gave, `value` is a raw array of the dtype of `x`, and the key is as for the kernel `written` ("Keys" below). The
        shape of `value` need not fit: raise a ValueError, before anything is written.

        Parameters
        ----------
        x : array
            A raw array of the library.
        key : tuple
            A basic or advanced key, as the core hands it over.
        value : array
            It broadcasts to `x[key]`.

        Returns
        -------
        array
            The array with the values written.

        Raises
        ------
        ValueError
            For a `value` of another shape.

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
        if new is not x:  # the standard cannot write at an advanced key: rebuilt, then written as a whole
            x[...] = new
        return x

    # -- streams -----------------------------------------------------------------------------------------------
    #
    # A backend whose work is queued on streams declares the capability `streams` and implements these; the engine then runs each backward
    # operation on the stream of its forward operation, and puts waits between streams (STR-01..08). Streams compare by ``==``.

    def current_stream(self, device: Device) -> Any:
        """The stream that work on `device` is queued on now; None where there are no streams.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        object or None
            It compares by `==`.

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
        """A context in which work is queued on `stream`.

        Parameters
        ----------
        stream : object
            What `current_stream` returned.

        Returns
        -------
        context manager
            By default it does nothing.

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
        """An event that is reached when all work queued on `stream` so far is done.

        Parameters
        ----------
        stream : object
            What `current_stream` returned.

        Returns
        -------
        object or None
            What `wait_event` takes.

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
        """Make work queued on `stream` from now on wait for an event of another stream; the host does not wait.

        Parameters
        ----------
        stream : object
            What `current_stream` returned.
        event : object
            What `record_event` returned.

        See Also
        --------
        xpgrad.backend.Backend.record_event
        """

    def keep_alive(self, x: Any, stream: Any) -> None:  # noqa: B027 (nothing to do without streams)
        """Promise that the memory of `x` is not reused before all work queued on `stream` so far is done.

        Parameters
        ----------
        x : array
            A raw array of the library.
        stream : object
            What `current_stream` returned.

        See Also
        --------
        xpgrad.backend.Backend.record_event
        """

    def synchronize(self, device: Device) -> None:  # noqa: B027 (nothing to do without streams)
        """Make the host wait until all work on `device` is done.

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

    def is_capturing(self, device: Device) -> bool:
        """Return whether the current stream of `device` is recording a graph instead of executing.

        Parameters
        ----------
        device : Device
            One of `devices()`.

        Returns
        -------
        bool
            By default False.

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
        """Return whether `x` stands for a value that is not known yet.

        Parameters
        ----------
        x : object
            A raw array.

        Returns
        -------
        bool
            By default False.

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
        """Remember the device of a raw array, for a library whose traced values do not know theirs: `device_of` returns it from now on.

        Parameters
        ----------
        x : array
            A raw array of the library.
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

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A faster function with the same results, for the capability `jit`.

        `function` takes raw arrays and returns nested tuples of raw arrays and None; it does not depend on values and has no effects.

        Parameters
        ----------
        function : callable
            Of raw arrays.

        Returns
        -------
        callable
            With the same arguments and results.

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
        """A function that does what a captured program says (`xpgrad.programs`), for a library without a compiler of its own.

        It takes the raw arrays of the program's inputs, by position, and returns a tuple of those of its outputs: new ones, in memory that
        nobody else holds. None: the program's operations are called one by one, as the kernels of this table.

        Parameters
        ----------
        program : Program
            What `xpgrad.compile` captured; `xpgrad.programs` says its form.
        threads : int, optional
            How many threads may work on it; by default the library decides.

        Returns
        -------
        callable or None
            None by default.

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
        """An array that may take the place of `x` while a function is captured: of the same shape, dtype and parts, with any values.

        By default `x` itself. For a library whose arrays grow with what they were computed of.

        Parameters
        ----------
        x : array
            A raw array of the library.

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
        """The text that `compile_program` runs, for people to read; by default the program as it prints.

        Parameters
        ----------
        program : Program
            What `xpgrad.compile` captured; `xpgrad.programs` says its form.
        threads : int, optional
            How many threads may work on it; by default the library decides.

        Returns
        -------
        str
            In several lines.

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
        """Return whether a raw gradient is known to be the number 1; where values are computed later, without looking at it.

        Parameters
        ----------
        g : array
            A raw gradient.

        Returns
        -------
        bool
            False where it is not known.

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
    # `overrides` may name any function of the standard (its arguments are those of the standard, checked), the rows that
    # `xpgrad backends show NAME` and `rules/` list, and the private kernels below. All take and return raw arrays, on one device; a result
    # has the dtype of the operand unless something else is said, and what is called a copy is written to by the caller.
    #
    # Keys. A user's key comes to `index_basic`, `gather`, `put`, `written`, `update` and `flat_index` only after the core has checked it;
    # a kernel of a backend's own can rely on that, and cannot turn it off. A key is
    # - basic: a tuple of integers n with -length <= n < length, slices, None (a new axis) and at most one `...`, with an entry, or the
    #   ellipsis, for every axis. Slices have a start and stop within the axis and a step that is not 0 (a stop of None where it goes
    #   backwards to the front); an empty one is slice(0, 0);
    # - or advanced: a tuple of these, where slices are as the user wrote them and axes may be left out at the end, and of integer arrays
    #   of any integer dtype but uint64, whose elements lie in the range of their axis (negative ones count from the end) and which
    #   broadcast together, and masks of exactly the shape of the axes that they stand for.
    # The errors are the core's: IndexError for what is out of range or too much, ValueError for a step of 0. Elements of index arrays are
    # looked at wherever values can be: not in traced ones (`is_traced`) and on a backend that is `lazy`, which has to refuse or clamp them
    # itself. With `checks_indices` the core hands over every key as the user wrote it (a basic one need not be a tuple, nor explicit),
    # and the kernel raises the IndexError, with nothing written.
    # In gradients the same kernels, and those that only add, get keys that have been through this.
    #
    #   index_basic(x, key)           x[key] for a basic key: a view where `view_aliases` says so
    #   gather(x, key)                x[key] for an advanced key, in memory of its own
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
    #   scatter_along(g, indices, shape, axis)  the transpose of gather_along: validated, but negative indices may be among them
    #   flat_index(key, shape, like)  the positions, 0 .. prod(shape) - 1, that the key picks of the flattened array of `shape`, in the
    #                                 shape of x[key] and the dtype of indices, where `like` lives
    #   from_front(indices, n, axis, like)  indices, validated, as 0 .. n - 1 in the dtype of indices, where `like` lives
    #   take_flat(x, flat)            elements of the flattened x at positions of any shape, 0 <= flat < x.size; the result has that shape
    #   segment_sum(values, positions, size)  values and positions of shape (n,), 0 <= positions < size; the result has shape (size,)
    #   last_writer(positions, size)  positions of shape (n,), 0 <= positions < size; integers of shape (size,): 1 + the number of the
    #                                 last position that names the place, or 0
    #   wins(x, key, shape)           bools of the shape of x, which is written at [key] into an array of `shape`: True where it stays
    #   put_at_path(root, path, value)  a copy of `root` in which the part that a path of views leads to holds `value`, of that part's
    #                                 shape; `path` holds pairs (name of a view's row, its arguments), whose keys have been validated
    #   count_up(like, *bounds)       arange(*bounds) in the dtype of indices, where `like` lives
    #   zeros_near(x, shape)          zeros in the dtype of x, where it lives
    #   copy(x)                       memory of its own, which is written to; x itself where arrays are immutable
    #   cast(x, dtype)                x in a raw dtype that the library has; of a complex x the real part, and for bools whether it is not 0
    #   wide(x)                       x in float32 if it is a floating array of 16 bits, else x
    #   scale(g, factor)              g * factor; `g` is the caller's and may be overwritten

    def kernel(self, name: str) -> Callable[..., Any] | None:
        """The backend's own kernel of that name, if it has one.

        One that has kernels elsewhere than in `overrides` asks this method for the rest: it also finds what `special` has.

        Parameters
        ----------
        name : str
            The function's name.

        Returns
        -------
        callable or None
            On raw arrays.

        Examples
        --------
        >>> from xpgrad.registry import backend_for
        >>> backend = backend_for("numpy")
        >>> backend.kernel("no_such_kernel") is None, callable(backend.kernel("gather"))
        (True, True)
        """
        found = self.overrides.get(name)
        return self._special_kernel(name) if found is None and name.startswith("special_") else found

    def wrap_kernel(self, name: str, function: Any) -> Any:
        """The kernel to use in place of one that was just resolved (variants use it).

        `function` is whatever a name of the raw namespace stands for: kernels, but also the extensions' namespaces (`linalg`, `fft`),
        dtypes and constants. Return unchanged what is not a function: ``if not callable(function) or isinstance(function, type)``.

        Parameters
        ----------
        name : str
            The function's name.
        function : object
            What was resolved.

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

    #: Whether its `special` functions take complex arrays where SciPy's do; they are given none otherwise.
    special_complex: bool = False

    def special(self, name: str) -> Callable[..., Any] | None:
        """The library's own function for that of `scipy.special`, on raw arrays of one dtype; None if it has none.

        ``"linalg_NAME"`` is that of a row of `xpgrad.scipy.linalg`, on stacks of matrices. Its result has the dtype of the arrays. What
        the library lacks is composed of others, or computed by SciPy (`through_host`).

        Parameters
        ----------
        name : str
            Its name in `scipy.special`; `linalg_NAME` for one of `xpgrad.scipy.linalg`.

        Returns
        -------
        callable or None
            By default None.

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
        """The kernel of a special function that is the library's own for real arrays, and the row's for complex ones."""
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
        """The raw array of what a function of NumPy's arrays computes, element by element, of raw arrays and Python numbers.

        Parameters
        ----------
        name : str
            The function's, for messages: of `scipy.special`, or with its module, ``"linalg.logm"``.
        function : callable
            Of NumPy's arrays; the arrays broadcast together, the result is one array of that shape, of any dtype.
        *args
        signature : str
            For a function of matrices, or of other elements with axes of their own: these axes, as for `numpy.vectorize`, for example
            ``"(m,m),(m,k)->(m,k)"``. The axes before them broadcast; all arguments are arrays, and the result has their common dtype.

        Returns
        -------
        array
            A raw array on the device of the first.

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
        """The library's own sparse matrix in compressed rows.

        Parameters
        ----------
        values : array
            A raw array of one axis: the entries, row by row.
        columns, starts : numpy.ndarray of int
            The column of each entry, in order in each row; where each row begins, and after the last one the number of entries.
        shape : (int, int)

        Returns
        -------
        object
            A sparse matrix of the library; NumPy's is SciPy's.

        Raises
        ------
        CapabilityError
            If it has none.

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
        """A Tensor without history around a raw array.

        Parameters
        ----------
        raw : array
            Of the library; it is not copied.

        Returns
        -------
        Tensor
            It does not require grad.

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
