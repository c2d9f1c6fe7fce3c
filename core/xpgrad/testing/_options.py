"""Validate the options of a check, and choose tolerances by the precision of the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from xpgrad._backends.loading import backend_names
from xpgrad._backends.survey import survey
from xpgrad._basics.arguments import as_flags, as_int, as_real, shown
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import float32
from xpgrad.rules.creation import zeros
from xpgrad.testing._results import CHECKS

#: Relative tolerances in double precision, and as multiples of eps; the larger one counts: 5e-4 and 2e-3 in single precision.
_LIMITS = {
    "values": (1e-8, 2.0**12),
    "gradient": (1e-5, 2.0**14),
    "forward": (1e-8, 2.0**14),
    "second": (1e-4, 2.0**17),
    "vmap": (1e-8, 2.0**12),
}


@dataclass(frozen=True)
class Options:
    """The options of `check_differentiable` that concern the checks themselves."""

    checks: frozenset[str]
    mutation: bool
    rtol: float | None
    atol: float | None
    seed: int
    directions: int = 3
    full: int = 8

    def tolerance(self, eps: float, check: str) -> tuple[float, float]:
        """Return the relative and the absolute tolerance of a check.

        Parameters
        ----------
        eps : float
            The machine epsilon of the numbers.
        check : str
        """
        relative, units = _LIMITS[check]
        rtol = max(relative, min(units * eps, 0.1)) if self.rtol is None else self.rtol
        return rtol, 0.0 if self.atol is None else self.atol


def options_of(
    *, order: Any, vmap: Any, forward: Any, mutation: Any, skip: Any, rtol: Any, atol: Any, seed: Any,
) -> Options:  # fmt: skip
    """Validate options.

    Raises
    ------
    TypeError, ValueError
    """
    name = "check_differentiable"
    vmap, forward, mutation = as_flags(name, vmap=vmap, forward=forward, mutation=mutation)
    if as_int(order, name, "order") not in (1, 2):
        msg = f"{name}: `order` must be 1, for gradients, or 2, for second derivatives too, but got {order}"
        raise ValueError(msg)
    skipped = {skip} if isinstance(skip, str) else set(skip)
    if unknown := sorted(map(str, skipped - set(CHECKS))):
        msg = f"{name}: `skip` has no check {unknown[0]!r}; the checks: {', '.join(CHECKS)}"
        raise ValueError(msg)
    if "runs" in skipped:
        msg = f"{name}: `skip` has 'runs', which every other check needs; name others, or choose `backends`"
        raise ValueError(msg)
    off = skipped | ({"vmap"} if not vmap else set()) | ({"forward"} if not forward else set()) | ({"second"} if order == 1 else set())
    for value, what in ((rtol, "rtol"), (atol, "atol")):
        if value is not None and not as_real(value, name, what) >= 0:
            msg = f"{name}: `{what}` must not be negative, but got {value}"
            raise ValueError(msg)
    return Options(frozenset(CHECKS) - off, mutation, rtol, atol, as_int(seed, name, "seed"))


def numbers_of(argnums: Any, count: int, what: str = "argnums") -> tuple[int, ...] | None:
    """Return `argnums`, an option called `what`, as nonnegative positions among `count` arguments; None, for all arguments, stays None.

    Raises
    ------
    TypeError, ValueError
        It is not an int or a sequence of ints, or there are fewer arguments.
    """
    if argnums is None:
        return None
    found = []
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        at = as_int(number, "check_differentiable", what)
        if not -count <= at < count:
            msg = f"check_differentiable: `{what}` has {at}, but there are {count} arguments"
            raise ValueError(msg)
        found.append(at % count)
    if not found:
        msg = f"check_differentiable: `{what}` is empty; name a position, or leave it out"
        raise ValueError(msg)
    return tuple(dict.fromkeys(found))


_ready: dict[tuple[str, ...], list[str]] = {}


def find_ready_backends() -> list[str]:
    """Return the names of the backends that load, which are loaded once."""
    names = tuple(backend_names())
    if names not in _ready:
        _ready[names] = [row["name"] for row in survey() if row["status"] == "ready"]
    return _ready[names]


def devices_of(backends: str | Iterable[str]) -> dict[str, Device]:
    """Return the devices to check on, by name; for ``"all"`` the first device of each ready backend.

    Raises
    ------
    TypeError, ValueError
        `backends` is not a name or a sequence of names, or is empty.
    BackendNotFoundError, BackendLoadError
        A named backend is not installed, or does not load.
    """
    if isinstance(backends, Device):
        backends = [str(backends)]
    if not isinstance(backends, Iterable):
        msg = f"check_differentiable: `backends` must be 'all' or names of backends or devices, but got {shown(backends)}"
        raise TypeError(msg)
    names = (find_ready_backends() if backends == "all" else backends.split(",")) if isinstance(backends, str) else list(backends)
    if wrong := [b for b in names if not isinstance(b, (str, Device))]:
        msg = f"check_differentiable: `backends` must be 'all' or names of backends or devices, but has {shown(wrong[0])}"
        raise TypeError(msg)
    if not names:
        msg = "check_differentiable: `backends` is empty; give 'all', or names such as ['numpy', 'torch']"
        raise ValueError(msg)
    return {(name := str(b).strip()): zeros(0, dtype=float32, device=name).device for b in names}
