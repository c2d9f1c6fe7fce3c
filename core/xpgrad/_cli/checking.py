"""`xpgrad backends check NAME`: check a plugin against the promises of `xpgrad.backend`, first without importing it."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import Any

import xpgrad as xp
from xpgrad import registry
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES
from xpgrad._cli.indexing import declared_indexing, index_checks
from xpgrad._cli.outcomes import Check, error_text, outcome, trace_of
from xpgrad._cli.shadowing import Shadow
from xpgrad._rows.row import ROWS
from xpgrad.backend import Backend
from xpgrad.errors import CapabilityError, XpgradError


def check_backend(name: str, imported: bool, traceback: bool = False, shadow: bool = False) -> int:
    """Print a line per check, with the traceback of a failure if `traceback` is True; return 0 if all hold, else 1."""
    failed = 0
    for check in checks(name, imported or shadow, shadow):
        print(f"{'FAILED' if not check.holds else 'lacks ' if check.lacks else 'ok    '}  {check.what}", flush=True)
        details = [] if check.holds and not check.lacks else [check.lacks if check.holds else check.advice]
        if traceback and check.trace and not check.holds:
            details += check.trace.splitlines()
        for line in details:
            print(f"        {line}", flush=True)
        failed += not check.holds
    return 1 if failed else 0


def checks(table: str, imported: bool, shadow: bool = False) -> Iterator[Check]:
    """Yield the checks of a backend, up to the first failure that makes the following ones pointless.

    Parameters
    ----------
    table : str
        The name of the backend, or ``name+variant``.
    imported : bool
        Whether to import the plugin and its library. If False, only the installed metadata is checked.
    shadow : bool
        Whether to compare each kernel call with NumPy's kernel on the same inputs.
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
    compared = Shadow(backend) if shadow else None
    yield from _behaviour(backend, devices)
    if compared is not None:
        yield from _shadowed(compared)


def _behaviour(backend: Backend, devices: list[Device]) -> Iterator[Check]:
    """Check what the backend computes."""
    yield from _promises(backend, devices)
    yield from _declarations(backend, devices)
    yield from _dtypes(backend, devices[0])
    yield from index_checks(backend, devices)
    yield from _gradients(devices)


def _shadowed(shadow: Shadow) -> Iterator[Check]:
    """Report the comparison of kernels with NumPy's."""
    first, *others = [*shadow.differences.values()] or [""]
    more = f"; others that differ, perhaps because of it: {', '.join([*shadow.differences][1:])}" if others else ""
    what = f"each of {shadow.compared} calls of kernels agrees with NumPy's kernel"
    yield Check(what, not shadow.differences, f"the first kernel that differs: {first}{more}")
    if shadow.skipped:
        names = "; ".join(f"{name}: {why}" for name, why in sorted(shadow.skipped.items()))
        yield Check("all kernels that were called could be compared", True, lacks=names)


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
            advice = f"it cannot make its default dtype: override `default_dtype`: {error_text(exc)}"
            return Check(what, False, advice, trace=trace_of(exc))
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

    yield outcome("it has a namespace", "`namespace()` must return the library's Array API namespace", names)

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

        yield outcome(f"{d}: arrays go in and come out", "`to_host(from_host(a, device))` must equal a", comes_out)
        try:
            yield keeps()
        except Exception as exc:  # noqa: BLE001 (as above)
            yield Check(f"{d}: arrays keep their dtype on the way", False, error_text(exc), trace=trace_of(exc))
        yield outcome(f"{d}: arrays know their device", "`device_of(from_host(a, device))` must be that device", knows)
        yield outcome(f"{d}: arrays are of its types", "`array_types()` and `array_type` must say the types of its arrays", typed)
        yield outcome(f"{d}: arrays move there", "`device_of(to_device(a, device))` must be that device", moves)
    yield outcome("arrays from the host are copies", "`from_host` must copy: a later write to the NumPy array was seen", copies)


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

    def computed() -> bool:
        given = [backend.from_host(_host(backend, devices[0]) * k, devices[0]) for k in (1, 2)]
        found = list(backend.compute_many(given))
        values = [[backend.to_host(x).tolist() for x in some] for some in (given, found)]
        return values[0] == values[1] and (not can.mutable or all(x is y for x, y in zip(given, found)))

    yield outcome(
        "`compute_many` keeps values",
        "`compute_many` must return arrays with the same values, in order; the given ones if mutable",
        computed,
    )
    advice = "`update(x, key, value)` must write into x and return it" if can.mutable else "`update` must return a new array and leave x"
    yield outcome(f"`mutable` is {can.mutable}, and writes agree", advice, written)
    yield from declared_indexing(backend, devices[0])
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
            if row.elementwise
            and row.outputs is None
            and not row.statics
            and len(row.mixing) == len(row.tensors)
            and row.differentiable
            and row.facts.dtype != "other"
        }
        trials |= {"copy": (x,), "matmul": (x, x), "sum_to": (x, (1, 2)), "sum": (x,), "max": (x,)}
        wrong, trace = [], ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about values outside a function's domain
            for name, args in trials.items():
                try:
                    found = backend.dtype_of(getattr(backend.kernels, name)(*args).dtype)
                except CapabilityError:
                    continue
                except Exception as exc:  # noqa: BLE001 (as above)
                    wrong.append(f"`{name}` raised {error_text(exc)}")
                    trace = trace or trace_of(exc)
                    continue
                if found is not dtype:
                    wrong.append(f"`{name}` returned {found}")
        yield Check(f"kernels keep {dtype}", not wrong, f"given {dtype} operands, {'; '.join(wrong)}", trace=trace)


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
            yield Check(what, i > 0, error_text(exc), str(exc), trace_of(exc))
            continue
        except Exception as exc:  # noqa: BLE001 (as above)
            yield Check(what, False, error_text(exc), trace=trace_of(exc))
            continue
        near = 100 * xp.finfo(dtype).eps
        equal = all(math.isclose(a, b, rel_tol=near, abs_tol=near) for f, e in zip(found, EXPECTED) for a, b in zip(f, e))
        yield Check(what, equal and x.grad.dtype is dtype, f"got {found} in {x.grad.dtype}, expected {EXPECTED} in {dtype}")
