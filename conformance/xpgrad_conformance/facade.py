"""The facade: the object through which a contract uses a library, so that the same contract runs on xpgrad's backends and on PyTorch.

Contracts use names that both libraries have directly: ``x.grad``, ``lib.ag.grad``, ``lib.ns.no_grad``. Whatever differs (constructors,
the standard's functions, reading values) is a method here.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from xpgrad_conformance.streams import Streams, streams_of

__all__ = ["Cases", "Library", "NotRun", "PyTorch", "Xpgrad", "find_declared_reason", "missing_function", "open_library"]

#: The number of cases that a report names of those that were left out for one reason.
_NAMED = 5


class NotRun(Exception):
    """Raised if a contract cannot be run on a target; its message is the reason that the report shows."""


def find_declared_reason(error: BaseException) -> str | None:
    """Return the reason of an error that says that the target declares something missing; None for any other error."""
    if isinstance(error, NotRun):
        return str(error) if str(error).startswith("declared: ") else None
    function = missing_function(error)
    return None if function is None else f"declared: no function `{function}`"


def missing_function(error: BaseException) -> str | None:
    """Return the function that an error reports and its backend declares `missing`; None for any other error."""
    found = re.search(r"backend '([^']*)' has no function `([\w.]+)`", str(error))
    if found is None:
        return None
    from xpgrad.errors import CapabilityError  # loads late: a server imports xpgrad after it has forked
    from xpgrad.registry import backend_for  # loads late: as above

    return found[2] if isinstance(error, CapabilityError) and found[2] in backend_for(found[1]).missing else None


class Cases:
    """The cases of a contract that ran, and those that were left out because they need what the target declares missing.

    Attributes
    ----------
    ran : int
        The number of cases that ran to their end. One that has further cases inside counts only if none of those was left out.
    left_out : dict of str to list of str
        The labels of the cases that were left out, by the reason.
    """

    def __init__(self) -> None:
        self.ran = 0
        self.left_out: dict[str, list[str]] = {}

    @contextmanager
    def run(self, label: Any) -> Iterator[None]:
        """Context manager that counts a case, and suppresses an error which says that the case needs what is declared missing."""
        before = self.count_left_out()
        try:
            yield
        except Exception as exc:
            reason = find_declared_reason(exc)
            if reason is None:
                raise
            self.left_out.setdefault(reason, []).append(str(label))
        else:
            self.ran += self.count_left_out() == before

    def count_left_out(self) -> int:
        """Return the number of cases that were left out."""
        return sum(map(len, self.left_out.values()))

    def describe_left_out(self) -> str:
        """Return how many cases were left out, and for each reason the first of them; empty if none was."""
        if not self.left_out:
            return ""
        left, parts = self.count_left_out(), []
        for reason, labels in self.left_out.items():
            names = list(dict.fromkeys(labels))
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            parts.append(f"{reason} ({'; '.join(names[:_NAMED])}{more})")
        return f"{left} of {self.ran + left} cases: {', '.join(parts)}"


class Library:
    """A library under test.

    Attributes
    ----------
    label : str
        ``"pytorch"``, or the backend that xpgrad runs on.
    oracle : bool
        Whether the library is PyTorch itself.
    ns, ag, graph : module
        ``torch`` or ``xpgrad``, its ``autograd`` and its ``autograd.graph``.
    xp : namespace
        The standard's functions on its Tensors.
    real, complex : str
        The widest real and complex dtypes that the target has.
    narrow : str
        A real floating dtype narrower than `real`.
    index : str
        The dtype of integer keys.
    capabilities : mapping of str to bool
        Whether the target has each capability, as it declares them.
    release : str
        Name and version of the array library.
    cases : Cases
        The cases of the contract that runs; `engine.execute` sets it.
    """

    label: str
    oracle: bool
    ns: Any
    ag: Any
    graph: Any
    xp: Any
    real: str
    complex: str
    narrow: str
    index: str
    capabilities: Mapping[str, bool]
    release: str
    cases: Cases = Cases()

    def about(self) -> dict[str, Any]:
        """Return the library's name and version and its capabilities, in the form that reports use."""
        return {"library": self.release, "capabilities": dict(self.capabilities)}

    # -- making Tensors ----------------------------------------------------------------------------------------------

    def tensor(self, data: Any, rg: bool = True, dtype: str | None = None) -> Any:
        """Return a leaf on the target's device, of dtype `real` by default; `data` is Python numbers, lists or a NumPy array."""
        raise NotImplementedError

    def constant(self, data: Any, dtype: str | None = None) -> Any:
        """Return a Tensor that does not require grad."""
        return self.tensor(data, False, dtype)

    def indices(self, data: Any, dtype: str | None = None) -> Any:
        """Return a Tensor of indices, of dtype `index` by default."""
        return self.constant(data, dtype or self.index)

    def ones(self, *shape: int, rg: bool = False) -> Any:
        """Return a Tensor of ones."""
        return self.tensor(np.ones(shape), rg)

    def random(self, shape: tuple[int, ...], seed: int = 0, rg: bool = True, dtype: str | None = None) -> Any:
        """Return random numbers between 0.5 and 1.5, where the functions under test have derivatives; they depend only on the seed."""
        return self.tensor(np.random.default_rng(seed).uniform(0.5, 1.5, shape), rg, dtype)

    def on_other_device(self, data: Any, rg: bool = False) -> Any:
        """Return a Tensor on a device other than the target's."""
        raise NotImplementedError

    def half_dtypes(self) -> list[str]:
        """Return the names of the 16-bit floating dtypes that the target has."""
        raise NotImplementedError

    def has_dtype(self, name: str) -> bool:
        """Return whether the target has the dtype of that name."""
        raise NotImplementedError

    def dtype(self, name: str) -> Any:
        """Return the library's dtype of that name."""
        return getattr(self.ns, name)

    def cast(self, x: Any, dtype: str) -> Any:
        """Convert a Tensor to another dtype, differentiably."""
        return x.to(dtype=self.dtype(dtype))

    # -- reading Tensors ---------------------------------------------------------------------------------------------

    def value(self, x: Any) -> np.ndarray[Any, Any]:
        """Return the values of a Tensor as a NumPy array, whether or not it requires grad."""
        raise NotImplementedError

    def equal(self, x: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
        """Assert that a Tensor has the expected shape, and the expected values up to the rounding error of its dtype."""
        found, wanted = self.value(x), np.asarray(expected)
        assert tuple(x.shape) == wanted.shape, f"shape {tuple(x.shape)}, expected {wanted.shape}"
        kind = found.dtype.kind in "fc"
        eps = float(np.finfo(found.dtype).eps) if kind else 0.0
        rtol = max(1e-9, 32 * eps) if rtol is None else rtol
        atol = 32 * eps if atol is None else atol
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)

    def same_memory(self, x: Any, y: Any) -> bool:
        """Return whether two Tensors share memory. NB: meaningful only if `sees_memory` is true."""
        return bool(np.shares_memory(self.value(x), self.value(y)))

    @property
    def sees_memory(self) -> bool:
        """True if `same_memory` is meaningful: views alias, and reading values makes no copy because they are on the host."""
        probe = self.ones(2)
        return self.capabilities["view_aliases"] and self.same_memory(probe, probe)

    def watch_memory(self, x: Any) -> Callable[[], bool]:
        """Return a function that returns whether the memory that a Tensor has now is still alive, without keeping it alive."""
        raise NotImplementedError

    # -- autograd ----------------------------------------------------------------------------------------------------

    @property
    def backward(self) -> Callable[..., Any]:
        """``autograd.backward``."""
        function: Callable[..., Any] = self.ag.backward
        return function

    @property
    def grad(self) -> Callable[..., Any]:
        """``autograd.grad``."""
        function: Callable[..., Any] = self.ag.grad
        return function

    def fn(self, forward: Any, backward: Any, name: str = "F", **more: Any) -> Any:
        """Return a custom Function; `more` has further static methods (`setup_context`, `jvp`) or plain attributes."""
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type(name, (self.ag.Function,), body | {k: staticmethod(v) if callable(v) else v for k, v in more.items()})

    def module(self, name: str) -> ModuleType:
        """Import a module of the library: ``lib.module("autograd.forward_ad")``."""
        return importlib.import_module(f"{self.ns.__name__}.{name}")

    def task_id(self) -> int:
        """Return the number of the running backward pass; -1 if none is running."""
        raise NotImplementedError

    def queue_callback(self, function: Callable[[], None]) -> None:
        """Call a function at the end of the running backward pass."""
        raise NotImplementedError

    def streams(self) -> Streams:
        """Return the target's streams.

        Raises
        ------
        NotRun
            If the suite does not know how to make streams on this target.
        """
        raise NotRun("the suite does not know how to make streams here")

    # -- expectations ------------------------------------------------------------------------------------------------

    @contextmanager
    def raises(self, error: type[BaseException] | tuple[type[BaseException], ...], *phrases: str) -> Iterator[list[BaseException]]:
        """Expect an error of a type, or of one of several, whose message contains each phrase; yield a list to which the error is added."""
        caught: list[BaseException] = []
        try:
            yield caught
        except error as exc:
            caught.append(exc)
        if not caught:
            names = " or ".join(e.__name__ for e in (error if isinstance(error, tuple) else (error,)))
            raise AssertionError(f"nothing was raised, expected {names}{': ' if phrases else ''}{', '.join(phrases)}")
        message = str(caught[0])
        absent = [phrase for phrase in phrases if phrase not in message]
        if absent and find_declared_reason(caught[0]) is not None:
            raise caught[0]
        if absent:
            raise AssertionError(f"{type(caught[0]).__name__} says {message!r}, expected it to say {absent[0]!r}") from caught[0]

    @contextmanager
    def warns(self, category: type[Warning], phrase: str, times: int | None = None) -> Iterator[None]:
        """Expect a warning whose message contains a phrase (exactly `times` such warnings if given); ignore other warnings."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        mine = [w for w in seen if issubclass(w.category, category) and phrase in str(w.message)]
        others = [f"{w.category.__name__}: {w.message}" for w in seen if w not in mine]
        assert mine, f"no {category.__name__} that says {phrase!r}; there were: {others or 'none'}"
        assert times is None or len(mine) == times, f"{len(mine)} warnings, expected {times}"

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Expect no warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    @contextmanager
    def case(self, label: Any) -> Iterator[None]:
        """Leave out the current case if it needs what the target declares missing, and add its label to any other error.

        NB: what a case computes may be used after it only if the case cannot be left out.
        """
        with self.cases.run(label):
            try:
                yield
            except BaseException as exc:
                exc.add_note(f"in the case {label!r}")
                raise

    def needs(self, capability: str) -> None:
        """Raise `NotRun` if the target declares that it lacks a capability that only this case or part of the contract needs."""
        if not self.capabilities[capability]:
            raise NotRun(f"declared: no `{capability}`")

    def running(self) -> AbstractContextManager[Any]:
        """Return the context manager in which each contract runs: it makes the target's device the default one."""
        raise NotImplementedError


class Xpgrad(Library):
    """xpgrad on one of its backends.

    Parameters
    ----------
    device : str
        A backend or device, e.g. ``"jax"``, ``"numpy+readonly"`` or ``"cupy:1"``.
    """

    oracle = False

    def __init__(self, device: str) -> None:
        import xpgrad
        from xpgrad import registry

        self.ns = self.xp = xpgrad
        self.ag, self.graph = xpgrad.autograd, importlib.import_module("xpgrad.autograd.graph")
        self.device = xpgrad.Device(device)
        backend = registry.backend_for(self.device.table)
        self.label = str(device)
        self.capabilities = dataclasses.asdict(backend.capabilities)
        self._dtypes = {d.name for d in backend.dtypes()}
        self.real, narrow = ("float64", "float32") if self.capabilities["float64"] else ("float32", "float16")
        if narrow in self._dtypes:
            self.narrow = narrow
        self.complex = "complex128" if self.capabilities["float64"] else "complex64"
        if self.capabilities["float64"] and not self.capabilities["complex128"]:
            # Contracts need complex numbers, results of Fourier transforms included, in the precision of the real ones.
            self.capabilities["complex"] = self.capabilities["fft"] = False
        self.index = str(backend.default_dtype("integral", self.device))
        info = registry.describe(backend.name)
        rows = registry.survey(only=backend.name)
        self.release = f"{(info.array_modules or (backend.name,))[0]} {rows[0]['version'] if rows else ''}".strip()

    def __getattr__(self, name: str) -> Any:
        if name == "narrow":  # a library without float64 need not have a dtype narrower than float32
            raise NotRun(f"declared: no real floating dtype that is narrower than `{self.real}`")
        raise AttributeError(name)

    def tensor(self, data: Any, rg: bool = True, dtype: str | None = None) -> Any:
        # NB: without `device`, a NumPy array would stay on NumPy's device.
        return self.ns.tensor(np.asarray(data), dtype=self.dtype(dtype or self.real), requires_grad=rg, device=self.device)

    def on_other_device(self, data: Any, rg: bool = False) -> Any:
        other = "numpy+readonly" if self.device.table != "numpy+readonly" else "numpy"
        return self.ns.tensor(np.asarray(data), dtype=self.dtype(self.real), requires_grad=rg, device=other)

    def half_dtypes(self) -> list[str]:
        return sorted(self._dtypes & {"float16", "bfloat16"})

    def has_dtype(self, name: str) -> bool:
        return name in self._dtypes

    def value(self, x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x.detach().numpy())

    def watch_memory(self, x: Any) -> Callable[[], bool]:
        array = weakref.ref(x.array)
        return lambda: array() is not None

    def task_id(self) -> int:
        return int(self.graph.current_graph_task_id())

    def queue_callback(self, function: Callable[[], None]) -> None:
        self.graph.queue_callback(function)

    def streams(self) -> Streams:
        from xpgrad import registry

        found = streams_of(registry.backend_for(self.device.table), self.device)
        return found or super().streams()

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.ns.default_device(self.device):
            yield


class PyTorch(Library):
    """PyTorch itself, on the CPU; the contracts must hold there as well."""

    label, oracle = "pytorch", True
    real, complex, narrow, index = "float64", "complex128", "float32", "int64"

    def __init__(self) -> None:
        import array_api_compat.torch as namespace
        import torch

        self.ns, self.ag, self.xp = torch, torch.autograd, namespace
        self.graph = importlib.import_module("torch.autograd.graph")
        self.release = f"torch {torch.__version__}"
        absent = {"lazy", "streams", "negative_step", "jit"}
        self.capabilities = {
            name: name not in absent
            for name in (
                *("mutable", "view_aliases", "strides", "lazy", "streams", "boolean_indexing", "data_dependent_shapes", "negative_step"),
                *("complex", "float64", "complex128", "linalg", "fft", "dlpack", "devices", "deterministic_scatter", "jit", "vmap"),
                "threads",
            )
        }

    def tensor(self, data: Any, rg: bool = True, dtype: str | None = None) -> Any:
        return self.ns.tensor(np.asarray(data), dtype=self.dtype(dtype or self.real), requires_grad=rg)

    def on_other_device(self, data: Any, rg: bool = False) -> Any:
        return self.ns.tensor(np.asarray(data), dtype=self.dtype(self.real), device="meta", requires_grad=rg)

    def half_dtypes(self) -> list[str]:
        return ["bfloat16", "float16"]

    def has_dtype(self, name: str) -> bool:
        return hasattr(self.ns, name)

    def value(self, x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x.detach().resolve_conj().resolve_neg().numpy())

    @contextmanager
    def warns(self, category: type[Warning], phrase: str, times: int | None = None) -> Iterator[None]:
        # NB: PyTorch gives many of its warnings only once per process.
        before = self.ns.is_warn_always_enabled()
        self.ns.set_warn_always(True)
        try:
            with super().warns(category, phrase, times):
                yield
        finally:
            self.ns.set_warn_always(before)

    def watch_memory(self, x: Any) -> Callable[[], bool]:
        from torch.multiprocessing import reductions

        storage: Any = reductions.StorageWeakRef(x.untyped_storage())  # type: ignore[no-untyped-call]
        return lambda: not storage.expired()

    def task_id(self) -> int:
        return int(self.ns._C._current_graph_task_id())

    def queue_callback(self, function: Callable[[], None]) -> None:
        self.ag.Variable._execution_engine.queue_callback(function)

    @contextmanager
    def running(self) -> Iterator[None]:
        yield


def open_library(target: str) -> Library:
    """Open the library of a name: ``"pytorch"``, or a device of xpgrad.

    Raises
    ------
    ImportError, LookupError, ValueError
        If the library is not installed or the name is unknown; the message says how to install it.
    """
    return PyTorch() if target == "pytorch" else Xpgrad(target)
