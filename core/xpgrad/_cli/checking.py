"""`xpgrad backends check NAME`: whether a plugin keeps the promises of `xpgrad.backend`, first without importing it, then with."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from xpgrad import registry
from xpgrad.errors import CapabilityError, XpgradError

__all__ = ["Check", "check_backend", "checks"]


class Check(NamedTuple):
    """One thing that was looked at: what it is, whether it holds, and what to do if not."""

    what: str
    holds: bool
    advice: str = ""


def check_backend(name: str, imported: bool) -> int:
    """Print one line for each check; 0 if all hold, else 1."""
    failed = 0
    for check in checks(name, imported):
        print(f"{'ok    ' if check.holds else 'FAILED'}  {check.what}" + ("" if check.holds else f"\n        {check.advice}"), flush=True)
        failed += not check.holds
    return 1 if failed else 0


def checks(name: str, imported: bool) -> Iterator[Check]:
    """The checks of one backend, up to the first that makes the next ones pointless.

    Parameters
    ----------
    name : str
    imported : bool
        Whether to import the plugin and its library; without, only what the installation says is looked at.
    """
    providers = registry.providers(name)
    yield Check("it is registered", bool(providers), f'add an entry point: [project.entry-points."xpgrad.backends"] {name} = "your_module"')
    if not providers:
        return
    yield Check("it has one provider", len(providers) == 1, "uninstall all but one of: " + "; ".join(p.origin for p in providers))
    allowed = name in registry.backend_names()
    yield Check("XPGRAD_BACKENDS admits it", allowed, f"add {name!r} to XPGRAD_BACKENDS, or unset it")
    entry = providers[0].entry
    if len(providers) > 1 or not allowed:
        return
    if entry is not None:
        found = importlib.util.find_spec(entry.module) is not None
        yield Check(
            f"its module {entry.module!r} is there", found, "install the distribution again: its entry point names a module that is not"
        )
        if not found:
            return
    if not imported:
        return
    try:
        info = registry.describe(name)
    except XpgradError as exc:
        yield Check("it describes itself", False, str(exc))
        return
    yield Check("it describes itself", True)
    if entry is not None:
        heavy = _imported_by(entry.module, info.array_modules)
        yield Check(
            "describing it imports no array library", not heavy, f"{entry.module!r} imports {', '.join(heavy)}; import it in `load` instead"
        )
    yield Check(
        "it says which arrays are its own",
        bool(info.array_modules),
        "without `array_modules`, raw arrays are not recognised; fill it in unless another backend takes these arrays",
    )
    try:
        backend = registry.backend_for(name)
    except XpgradError as exc:
        yield Check("its library loads", False, str(exc))
        return
    yield Check("its library loads", True)
    yield from _promises(backend)
    yield from _gradients(name)


def _imported_by(module: str, libraries: tuple[str, ...]) -> list[str]:
    """Which array libraries a fresh process has after importing a module (whose own package may define the arrays)."""
    libraries = tuple(m for m in libraries if m != module.partition(".")[0])
    code = f"import sys, {module}; print(*[m for m in {libraries!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.split()


def _promises(backend: Any) -> Iterator[Check]:
    """The required methods, on small arrays."""

    def holds(what: str, advice: str, test: Any) -> Check:
        try:
            return Check(what, bool(test()), advice)
        except CapabilityError as exc:
            return Check(f"{what}, or it says why not: {exc}", True)
        except Exception as exc:  # noqa: BLE001 (whatever a plugin raises is what the check has found)
            return Check(what, False, f"{advice}: {type(exc).__name__}: {exc}")

    devices = list(backend.devices())
    yield Check("it has a device", bool(devices), "`devices()` must return at least one Device, the default one first")
    host = registry.host_backend().host_array([[1, 2, 3], [4, 5, 6]], backend.default_dtype("real floating", devices[0]))
    values = host.tolist()
    for device in devices:
        raw = backend.from_host(host, device)
        yield holds(
            f"{device}: arrays go in and come out",
            "`to_host(from_host(a, device))` must equal a",
            lambda r=raw: backend.to_host(r).tolist() == values,
        )
        yield holds(f"{device}: arrays know their device", "`device_of(from_host(a, device))` must be that device",
                    lambda r=raw, d=device: backend.device_of(r) == d)  # fmt: skip
        yield holds(f"{device}: arrays are of its types", "`array_types()` must contain the types of its arrays",
                    lambda r=raw: isinstance(r, backend.array_types()))  # fmt: skip

    def copies() -> bool:
        mine = host.copy()
        raw = backend.from_host(mine, devices[0])
        mine[...] = -1
        return bool(backend.to_host(raw).tolist() == values)

    yield holds("arrays from the host are copies", "`from_host` must copy: a later write to the NumPy array was seen", copies)


_PROGRAM = """
y = xp.sin(x) @ xp.matrix_transpose(x) + x[0, 1]
y = y * 1.0
y[0, ...] = xp.sum(x, axis=0)[0]
loss = xp.sum(y * y) + xp.max(x)
loss.backward()
"""


def _gradients(name: str) -> Iterator[Check]:
    """A gradient through a product, a sum, slices and a write, against NumPy's."""
    import math

    import xpgrad as xp

    what = "a gradient is that of NumPy"
    found = []
    try:
        for device in ("numpy", name):
            dtype = type(xp.zeros(0, device=name)).default_dtype("real floating")
            x = xp.tensor([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], dtype=dtype, requires_grad=True, device=device)
            exec(_PROGRAM, {"xp": xp, "x": x})  # noqa: S102 (the text above)
            assert x.grad is not None
            if x.grad.dtype is not dtype:
                yield Check(what, False, f"its dtype is {x.grad.dtype}, expected {dtype}: a kernel returns another")
                return
            found.append(xp.reshape(x.grad, (-1,)).tolist())
    except Exception as exc:  # noqa: BLE001 (as above)
        yield Check(what, False, f"{type(exc).__name__}: {exc}")
        return
    near = 100 * xp.finfo(dtype).eps
    equal = all(math.isclose(a, b, rel_tol=near, abs_tol=near) for a, b in zip(*found))
    yield Check(what, equal, f"got {found[1]}, expected {found[0]}")
