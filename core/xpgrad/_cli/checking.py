"""`xpgrad backends check NAME`: check a plugin against the promises of `xpgrad.backend`, first without importing it."""

from __future__ import annotations

import functools
import importlib.util
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

import xpgrad as xp
from xpgrad import registry
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES
from xpgrad._rows.row import ROWS
from xpgrad.backend import Backend
from xpgrad.errors import CapabilityError, XpgradError


class Check(NamedTuple):
    """The outcome of one check: a statement, whether it holds, and advice if it does not."""

    what: str
    holds: bool
    advice: str = ""


def check_backend(name: str, imported: bool) -> int:
    """Print a line per check; return 0 if all hold, else 1."""
    failed = 0
    for check in checks(name, imported):
        print(f"{'ok    ' if check.holds else 'FAILED'}  {check.what}" + ("" if check.holds else f"\n        {check.advice}"), flush=True)
        failed += not check.holds
    return 1 if failed else 0


def checks(table: str, imported: bool) -> Iterator[Check]:
    """Yield the checks of a backend, up to the first failure that makes the following ones pointless.

    Parameters
    ----------
    table : str
        The name of the backend, or ``name+variant``.
    imported : bool
        Whether to import the plugin and its library. If False, only the installed metadata is checked.
    """
    name = table.partition("+")[0]
    providers = registry.providers(name)
    yield Check("it is registered", bool(providers), f'add an entry point: [project.entry-points."xpgrad.backends"] {name} = "your_module"')
    if not providers:
        return
    yield Check("it has one provider", len(providers) == 1, "uninstall all but one of: " + "; ".join(p.origin for p in providers))
    allowed = name in registry.backend_names()
    yield Check("XPGRAD_BACKENDS admits it", allowed, f"add {name!r} to XPGRAD_BACKENDS, or unset it")
    try:
        usable = Device(table).table == table
    except ValueError:
        usable = False
    yield Check(
        "its name can stand in a device", usable, f"{table!r} is not a NAME or NAME+VARIANT of letters, digits, underscores and hyphens"
    )
    entry = providers[0].entry
    if len(providers) > 1 or not allowed or not usable:
        return
    if entry is not None:
        found = _module_exists(entry.module)
        yield Check(f"its module {entry.module!r} is there", found, "reinstall it: its entry point names a module that does not exist")
        if not found:
            return
    if not imported:
        return
    if entry is not None:
        try:
            registry.load_entry(providers[0])
        except XpgradError as exc:
            yield Check("it implements the hook `xpgrad_backend`", False, str(exc))
            return
        yield Check("it implements the hook `xpgrad_backend`", True)
    try:
        info = registry.describe(name)
    except XpgradError as exc:
        yield Check("it describes itself, by its name and for this version of the interface", False, str(exc))
        return
    yield Check("it describes itself, by its name and for this version of the interface", True)
    if entry is not None:
        yield _light(name, entry.module)
    yield Check(
        "it says which arrays are its own",
        bool(info.array_modules),
        "without `array_modules`, raw arrays are not recognised; fill it in unless another backend takes these arrays",
    )
    try:
        backend = registry.backend_for(table)
    except XpgradError as exc:
        yield Check("its library loads", False, str(exc))
        return
    yield Check("its library loads", True)
    devices: list[Device] = []
    try:
        devices = list(backend.devices())
        sound = bool(devices) and all(isinstance(d, Device) and d.table == table for d in devices)
        given = repr(devices)
    except Exception as exc:  # noqa: BLE001 (whatever a plugin raises is what the check has found)
        sound, given = False, f"{type(exc).__name__}: {exc}"
    yield Check("it has a device", sound, f"`devices()` must return Devices of {table!r}, the default one first, but gave {given}")
    if not sound:
        return
    for device in devices:
        failed = _default_dtype(backend, device)
        if failed is not None:
            yield failed  # no Tensor can be made, so that all further checks would fail for this reason
            return
    yield from _promises(backend, devices)
    yield from _declarations(backend, devices)
    yield from _dtypes(backend, devices[0])
    yield from _keys(backend, devices)
    yield from _gradients(devices)


def _module_exists(module: str) -> bool:
    """Return whether a module can be found, without importing its parent packages as `find_spec` does."""
    first, *rest = module.split(".")
    spec = importlib.util.find_spec(first)
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return False
        spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
    return spec is not None


def _light(name: str, module: str) -> Check:
    """Check in a new process that describing the plugin `name` imports no array library.

    Array libraries are those of all registered backends, and modules that claim to follow the standard, except `module` itself.
    """
    libraries: set[str] = set()
    for other in registry.backend_names():
        try:
            libraries.update(registry.describe(other).array_modules)
        except XpgradError:
            continue  # its own check reports this
    code = (
        f"import sys\nfrom xpgrad import registry\nregistry.describe({name!r})\n"
        f"print('', *sorted({{n.partition('.')[0] for n, m in list(sys.modules.items()) if n in {sorted(libraries)!r} or "
        "'__array_namespace_info__' in getattr(m, '__dict__', ())}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    what = "describing it imports no array library"
    if run.returncode:
        return Check(what, False, "a fresh process could not describe it: " + (run.stderr.strip().splitlines() or ["no message"])[-1])
    heavy = set(run.stdout.splitlines()[-1].split()) - {module.partition(".")[0]}
    return Check(what, not heavy, f"{module!r} imports {', '.join(sorted(heavy))}; import it in `load` instead")


def _holds(what: str, advice: str, test: Callable[[], Any]) -> Check:
    """Run `test`, and return the outcome for the statement `what`; a `CapabilityError` counts as passed, any other error as failed."""
    try:
        return Check(what, bool(test()), advice)
    except CapabilityError as exc:
        return Check(f"{what}, or it says why it cannot: {exc}", True)
    except Exception as exc:  # noqa: BLE001 (as above)
        return Check(what, False, f"{advice}: {type(exc).__name__}: {exc}")


def _answers(function: Callable[..., Any], *args: Any) -> bool:
    """Return whether a call succeeds with a result other than None."""
    try:
        return function(*args) is not None
    except Exception:  # noqa: BLE001 (as above)
        return False


def _host(backend: Backend, device: Device) -> Any:
    """Return a small host array of numbers between 0 and 1, in the backend's default floating dtype for a device."""
    return registry.host_backend().host_array([[0.125, 0.25], [0.5, 0.75]], backend.default_dtype("real floating", device))


def _default_dtype(backend: Backend, device: Device) -> Check | None:
    """Check the default dtypes; return the failed check, or None."""
    kinds = ["real floating", "integral", "indexing", *(["complex floating"] if backend.capabilities.complex else [])]
    for kind in kinds:
        what = f"{device}: its default dtype for {kind} numbers exists"
        try:
            dtype = backend.default_dtype(kind, device)
            backend.raw_dtype(dtype)
            raw = backend.from_host(registry.host_backend().host_array([1], dtype), device)
            found = backend.dtype_of(raw.dtype)
        except Exception as exc:  # noqa: BLE001 (as above)
            return Check(what, False, f"it cannot make its default dtype: override `default_dtype`: {type(exc).__name__}: {exc}")
        if found is not dtype:
            return Check(what, False, f"it cannot make its default dtype: `from_host` made {found} of {dtype}; override `default_dtype`")
    return None


def _promises(backend: Backend, devices: list[Device]) -> Iterator[Check]:
    """Check on small arrays that the required methods work on each device."""
    host = _host(backend, devices[0])
    values = host.tolist()

    def names() -> bool:
        namespace = backend.namespace()
        return all(callable(getattr(namespace, name, None)) for name in ("asarray", "zeros", "reshape", "sum", "matmul"))

    yield _holds("it has a namespace", "`namespace()` must return the library's Array API namespace", names)

    def copies() -> bool:
        mine = host.copy()
        raw = backend.from_host(mine, devices[0])
        mine[...] = -1
        return bool(backend.to_host(raw).tolist() == values)

    for d in devices:

        def comes_out(d: Device = d) -> bool:
            return bool(backend.to_host(backend.from_host(host, d)).tolist() == values)

        def keeps(d: Device = d) -> Check:
            what, wrong = f"{d}: arrays keep their dtype on the way", []
            for dtype in DTYPES.values():
                if dtype.name == "bfloat16":  # which the host lacks
                    continue
                array = registry.host_backend().host_array([0, 1], dtype)
                try:
                    raw = backend.from_host(array, d)
                except (CapabilityError, TypeError) as exc:
                    if dtype in backend.dtypes():
                        wrong.append(f"`from_host` refuses {dtype}, which it has: {exc}")
                    continue
                except Exception as exc:  # noqa: BLE001 (as above)
                    wrong.append(
                        f"`from_host` of {dtype} raised {type(exc).__name__}, expected the CapabilityError of `self.raw_dtype`: {exc}"
                    )
                    continue
                found = backend.dtype_of(raw.dtype)
                try:
                    back = str(backend.to_host(raw).dtype)
                except CapabilityError:  # a device without values
                    back = dtype.name
                if found is not dtype or back != dtype.name:
                    wrong.append(f"{dtype} became {found}, and {back} on the way out")
            advice = "`from_host` must keep the dtype, or raise the CapabilityError of `self.raw_dtype(...)` for one that there is not: "
            return Check(what, not wrong, advice + "; ".join(wrong))

        def knows(d: Device = d) -> bool:
            return backend.device_of(backend.from_host(host, d)) == d

        def typed(d: Device = d) -> bool:
            raw = backend.from_host(host, d)
            return isinstance(raw, backend.array_types()) and (backend.array_type is None or isinstance(raw, backend.array_type))

        def moves(d: Device = d) -> bool:
            return backend.device_of(backend.to_device(backend.from_host(host, devices[0]), d)) == d

        yield _holds(f"{d}: arrays go in and come out", "`to_host(from_host(a, device))` must equal a", comes_out)
        try:
            yield keeps()
        except Exception as exc:  # noqa: BLE001 (as above)
            yield Check(f"{d}: arrays keep their dtype on the way", False, f"{type(exc).__name__}: {exc}")
        yield _holds(f"{d}: arrays know their device", "`device_of(from_host(a, device))` must be that device", knows)
        yield _holds(f"{d}: arrays are of its types", "`array_types()` and `array_type` must say the types of its arrays", typed)
        yield _holds(f"{d}: arrays move there", "`device_of(to_device(a, device))` must be that device", moves)
    yield _holds("arrays from the host are copies", "`from_host` must copy: a later write to the NumPy array was seen", copies)


def _declarations(backend: Backend, devices: list[Device]) -> Iterator[Check]:
    """Check that declared capabilities agree with the backend's behaviour."""
    can = backend.capabilities
    for name, dtype in (("float64", "float64"), ("complex", "complex64"), ("complex128", "complex128")):
        there = _answers(backend.find_dtype, dtype)
        declared = getattr(can, name) and (name != "complex128" or (can.float64 and can.complex))
        yield Check(f"`{name}` is {declared}, and that is true", there == declared, f"declare {name}={there}, as its namespace says")
    for name in ("linalg", "fft"):
        there = _answers(getattr, backend.namespace(), name)
        declared = getattr(can, name)
        yield Check(f"`{name}` is {declared}, and that is true", there >= declared, f"its namespace has no `{name}`: declare {name}=False")

    def written() -> bool:
        x = backend.kernels.copy(backend.from_host(_host(backend, devices[0]), devices[0]))
        before = backend.to_host(x).tolist()
        new = backend.update(x, (0, 1), backend.from_host(_host(backend, devices[0])[1, 1], devices[0]))
        wanted = [[before[0][0], before[1][1]], before[1]]
        return bool(
            backend.to_host(new).tolist() == wanted and (new is x if can.mutable else backend.to_host(x).tolist() == before)
        )  # fmt: skip

    advice = "`update(x, key, value)` must write into x and return it" if can.mutable else "`update` must return a new array and leave x"
    yield _holds(f"`mutable` is {can.mutable}, and writes agree", advice, written)
    for name, method in (("streams", "current_stream"), ("jit", "compile")):
        if getattr(can, name):
            own = getattr(type(backend), method) is not getattr(Backend, method)
            yield Check(f"`{name}` is declared, and `{method}` is implemented", own, f"implement `{method}`, or declare {name}=False")


def _dtypes(backend: Backend, device: Device) -> Iterator[Check]:
    """Check that kernels return the floating-point dtype of their operands, since other results would be rounded silently."""
    for dtype in backend.dtypes():
        if not dtype.is_floating_point or dtype.name == "bfloat16":  # which the host lacks
            continue
        x = backend.from_host(registry.host_backend().host_array(_host(backend, device).tolist(), dtype), device)
        trials: dict[str, tuple[Any, ...]] = {
            name: (x,) * len(row.tensors)
            for name, row in ROWS.items()
            if row.elementwise and row.outputs is None and not row.statics and len(row.mixing) == len(row.tensors) and row.differentiable
        }
        trials |= {"copy": (x,), "matmul": (x, x), "sum_to": (x, (1, 2)), "sum": (x,), "max": (x,)}
        wrong = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about values outside a function's domain
            for name, args in trials.items():
                try:
                    found = backend.dtype_of(getattr(backend.kernels, name)(*args).dtype)
                except CapabilityError:
                    continue
                except Exception as exc:  # noqa: BLE001 (as above)
                    wrong.append(f"`{name}` raised {type(exc).__name__}: {exc}")
                    continue
                if found is not dtype:
                    wrong.append(f"`{name}` returned {found}")
        yield Check(f"kernels keep {dtype}", not wrong, f"given {dtype} operands, {'; '.join(wrong)}")


#: Invalid keys of an array of shape (2, 3), by what is wrong with them; `i(values)` makes an index array.
_HOSTILE: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "2": lambda i: 2,
    "-3": lambda i: -3,
    "1, 3": lambda i: (1, 3),
    ":, -4": lambda i: (slice(None), -4),
    "10**6": lambda i: 10**6,
    "-(10**6)": lambda i: -(10**6),
    "::0": lambda i: slice(None, None, 0),
    "..., 0, ...": lambda i: (..., 0, ...),
    "0, 0, 0": lambda i: (0, 0, 0),
    "1.5": lambda i: 1.5,
    "an array of 2": lambda i: i([0, 2]),
    "an array of -3": lambda i: i([-3]),
    ":, an array of 10**6": lambda i: (slice(None), i([10**6])),
    "an array of floats": lambda i: i([0.0], "real floating"),
    "a mask of shape (3,)": lambda i: i([True, False, True], "bool"),
}
_TWO_BY_THREE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def _keys(backend: Backend, devices: list[Device]) -> Iterator[Check]:
    """Check that invalid keys raise the documented error and write nothing, and that keys with negative or repeated indices work."""
    for device in devices:
        try:
            xp.asarray(_TWO_BY_THREE, device=device).tolist()
        except CapabilityError as exc:
            yield Check(f"{device}: indices out of range are errors, or it says why there is none: {exc}", True)
            continue
        yield _refusals(backend, device)
        yield _holds(
            f"{device}: what index arrays name twice, or not at all, is read, written and added right",
            "of duplicates the last one is written, and all are added; an empty array picks nothing",
            functools.partial(_duplicates, device),
        )


def _index(device: Device) -> Callable[..., Any]:
    """Return a function that makes index arrays on a device from lists."""
    cls = type(xp.zeros(0, device=device))

    def make(values: list[Any], kind: str = "indexing") -> Any:
        return xp.asarray(values, dtype=xp.bool if kind == "bool" else cls.default_dtype(kind), device=device)

    return make


def _refusals(backend: Backend, device: Device) -> Check:
    """Check that invalid keys raise, or at least write nothing if the values of the index array cannot be read."""
    what = f"{device}: indices out of range are errors, and nothing is written"
    wrong = []

    def attempt(title: str, use: Callable[[Any], Any]) -> None:
        x = xp.asarray(_TWO_BY_THREE, device=device)
        try:
            given = use(x)
            found = given.tolist() if isinstance(given, xp.Tensor) else "nothing"  # a lazy backend may raise only now
        except (IndexError, ValueError) as exc:
            found = None
            if isinstance(exc, ValueError) and "::0" not in title:
                wrong.append(f"`{title}` raised {type(exc).__name__}, expected IndexError: {exc}")
        except Exception as exc:  # noqa: BLE001 (as above)
            found = None
            wrong.append(f"`{title}` raised {type(exc).__name__}, expected IndexError: {exc}")
        if found is not None:
            wrong.append(f"`{title}` gave {found}, expected IndexError")
        try:
            now = x.tolist()
        except IndexError:  # a lazy backend refuses the write only when the values are read
            return
        if now != _TWO_BY_THREE:
            wrong.append(f"`{title}` changed x from {_TWO_BY_THREE} to {now}")

    def read(key: Any, x: Any) -> Any:
        return x[key]

    def write(key: Any, x: Any) -> Any:
        x[key] = 7.0
        return x if backend.capabilities.lazy else None

    def take(n: int, x: Any) -> Any:
        return xp.take(x, i([0, n]), axis=1)

    def along(n: int, x: Any) -> Any:
        return xp.take_along_axis(x, i([[0, n]]), axis=1)

    def add(n: int, x: Any) -> Any:
        return x.index_add_(0, i([n]), x[:1] * 1.0)

    i = _index(device)
    for name, make in _HOSTILE.items():
        attempt(f"x[{name}]", functools.partial(read, make(i)))
        attempt(f"x[{name}] = 7.0", functools.partial(write, make(i)))
    for n in (3, -4):
        attempt(f"take({n}, axis=1)", functools.partial(take, n))
        attempt(f"take_along_axis({n}, axis=1)", functools.partial(along, n))
    for n in (2, -3):
        attempt(f"index_add_(0, {n})", functools.partial(add, n))
    advice = (
        "the core checks what it can before a kernel is called; with `checks_indices` your kernels must, before they write, and "
        "on a `lazy` backend when values are computed. Leave `checks_indices` False, or raise IndexError: "
    )
    return Check(what, not wrong, advice + "; ".join(wrong))


def _duplicates(device: Device) -> bool:
    """Return whether reads, writes, additions and gradients are right for negative, repeated and empty indices."""
    i = _index(device)
    x = xp.asarray(_TWO_BY_THREE, device=device)
    read = [x[i([1, -2, 1])].tolist(), xp.take_along_axis(x, i([[-1, 0], [2, -3]]), axis=1).tolist(), list(x[i([])].shape)]
    y, z, w = x * 1.0, x * 1.0, x * 1.0
    y[:, i([0, -1, 0])] = xp.asarray([[10.0, 20.0, 30.0]], device=device)
    y[i([])] = 7.0
    z.index_add_(1, i([0, -1, 0]), xp.ones_like(z))
    leaf = xp.asarray(_TWO_BY_THREE, device=device).requires_grad_()
    xp.sum(leaf[i([0, 0, -1]), i([1, 1, 2])] * 2.0).backward()
    w[i([0]), 1] = 9.0
    assert leaf.grad is not None
    return bool(
        read == [[[4.0, 5.0, 6.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[3.0, 1.0], [6.0, 4.0]], [0, 3]]
        and y.tolist() == [[30.0, 2.0, 20.0], [30.0, 5.0, 20.0]]
        and z.tolist() == [[3.0, 2.0, 4.0], [6.0, 5.0, 7.0]]
        and w.tolist() == [[1.0, 9.0, 3.0], [4.0, 5.0, 6.0]]
        and leaf.grad.tolist() == [[0.0, 4.0, 0.0], [0.0, 0.0, 2.0]]
    )


def _loss(xp: Any, x: Any) -> Any:
    """Return a scalar that depends on `x` through functions, a product, slices and a write."""
    y = (xp.sin(x) @ xp.matrix_transpose(x) + x[0, 1]) * 1.0
    y[0, ...] = xp.sum(x, axis=0)[0]
    return xp.sum(y * y) + xp.max(x)


_POINT = [[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]]
#: Its gradient there in float64; a test compares it with central differences.
EXPECTED = [[3.1825386022358475, -2.074095033699324, 1.8040948530225875], [4.953379328538735, 1.574855190587045, -2.3959374911403364]]


def _gradients(devices: list[Device]) -> Iterator[Check]:
    """Check the gradient of `_loss` against its value in float64."""
    for i, device in enumerate(devices):
        what = f"{device}: a gradient equals NumPy's"
        try:
            dtype = type(xp.zeros(0, device=device)).default_dtype("real floating")
            x = xp.tensor(_POINT, dtype=dtype, requires_grad=True, device=device)
            _loss(xp, x).backward()
            assert x.grad is not None
            found = x.grad.tolist()
        except CapabilityError as exc:
            yield Check(f"{what}, or it says why it cannot: {exc}" if i else what, i > 0, f"{type(exc).__name__}: {exc}")
            continue
        except Exception as exc:  # noqa: BLE001 (as above)
            yield Check(what, False, f"{type(exc).__name__}: {exc}")
            continue
        near = 100 * xp.finfo(dtype).eps
        equal = all(math.isclose(a, b, rel_tol=near, abs_tol=near) for f, e in zip(found, EXPECTED) for a, b in zip(f, e))
        yield Check(what, equal and x.grad.dtype is dtype, f"got {found} in {x.grad.dtype}, expected {EXPECTED} in {dtype}")
