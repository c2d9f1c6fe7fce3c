"""Checks of `xpgrad backends check` on keys, index arrays and joined pieces: invalid ones are refused, others give right values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import xpgrad as xp
from xpgrad._basics.device import Device
from xpgrad._cli.outcomes import Check, compared, trace_of
from xpgrad.backend import Backend
from xpgrad.errors import CapabilityError

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
#: What shares the memory of an array of shape (2, 3), as users write it; `z` is complex.
_VIEWS: dict[str, Callable[[Any], Any]] = {
    "x[:, 1:]": lambda x: x[:, 1:],
    "x.mT": lambda x: x.mT,
    "permute_dims(x, (1, 0))": lambda x: xp.permute_dims(x, (1, 0)),
    "reshape(x, (6,))": lambda x: xp.reshape(x, (6,)),
    "expand_dims(x, axis=0)": lambda x: xp.expand_dims(x, axis=0),
    "squeeze(x[:1], axis=0)": lambda x: xp.squeeze(x[:1], axis=0),
    "broadcast_to(x, (2, 2, 3))": lambda x: xp.broadcast_to(x, (2, 2, 3)),
    "linalg.diagonal(x)": lambda x: xp.linalg.diagonal(x),
    "real(z)": lambda z: xp.real(z),
    "imag(z)": lambda z: xp.imag(z),
}


def index_checks(backend: Backend, devices: list[Device]) -> Iterator[Check]:
    """Check that invalid keys raise the documented error and write nothing, and that other keys and joined pieces give right values."""
    for device in devices:
        try:
            xp.asarray(_TWO_BY_THREE, device=device).tolist()
        except CapabilityError as exc:
            yield Check(f"{device}: values can be read", True, lacks=str(exc))
            continue
        yield from _refusals(backend, device)
        for items in (_reads, _writes, _joins):
            for what, (call, expected) in items(device).items():
                yield compared(f"{device}: {what}", call, expected)


def declared_indexing(backend: Backend, device: Device) -> Iterator[Check]:
    """Check that capabilities about keys and shapes, if they are declared, are true."""

    def masked() -> list[float]:
        x = xp.asarray(_TWO_BY_THREE, device=device)
        return list(x[x > 2.0].tolist())

    def shapes() -> list[list[int]]:
        return [places.tolist() for places in xp.nonzero(xp.asarray([0.0, 2.0, 3.0], device=device))]

    def reversed_rows() -> list[list[float]]:
        return list(xp.asarray(_TWO_BY_THREE, device=device)[::-1].tolist())

    def copied() -> list[str]:
        found = []
        for title, view in _VIEWS.items():
            try:
                x = xp.asarray(_TWO_BY_THREE, device=device) * (1 + 1j if title.endswith("(z)") else 1)
                y = view(x)
                before = y.tolist()
                x *= 10.0
                if y.tolist() == before:
                    found.append(title)
            except CapabilityError:
                continue
        return found

    trials: tuple[tuple[str, str, Callable[[], Any], Any], ...] = (
        ("view_aliases", "what shares the memory of `x`; these are copies", copied, []),
        ("boolean_indexing", "`x[x > 2]`", masked, [3.0, 4.0, 5.0, 6.0]),
        ("data_dependent_shapes", "`nonzero(x)`", shapes, [[1, 2]]),
        ("negative_step", "`x[::-1]`", reversed_rows, _TWO_BY_THREE[::-1]),
    )
    for name, call, function, expected in trials:
        if not getattr(backend.capabilities, name):
            continue
        what = f"`{name}` is True, and that is true"
        check = compared(what, function, expected)
        if check.lacks and _can_read(device):  # then the function is missing, which the capability denies
            check = Check(what, False, check.lacks, trace=check.trace)
        yield check if check.holds else check._replace(advice=f"declare {name}=False, or implement {call}: {check.advice}")


def _can_read(device: Device) -> bool:
    """Return whether values of a device can be read."""
    try:
        xp.asarray(_TWO_BY_THREE, device=device).tolist()
    except CapabilityError:
        return False
    return True


def _index(device: Device) -> Callable[..., Any]:
    """Return a function that makes index arrays on a device from lists."""
    cls = type(xp.zeros(0, device=device))

    def make(values: list[Any], kind: str = "indexing") -> Any:
        return xp.asarray(values, dtype=xp.bool if kind == "bool" else cls.default_dtype(kind), device=device)

    return make


class _Attempts:
    """Uses of invalid keys: what went wrong, and what the backend lacks."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.wrong: list[str] = []
        self.lacks: dict[str, str] = {}
        self.trace = ""
        self.count = 0

    def attempt(self, title: str, use: Callable[[Any], Any]) -> None:
        """Use a key on an array, and record what differs from an error that writes nothing."""
        self.count += 1
        x = xp.asarray(_TWO_BY_THREE, device=self.device)
        try:
            given = use(x)
            found = given.tolist() if isinstance(given, xp.Tensor) else "nothing"  # a lazy backend may raise only now
        except CapabilityError as exc:
            self.lacks[title] = str(exc)
            return
        except Exception as exc:  # noqa: BLE001 (whatever a plugin raises is what the check has found)
            found = None
            if not isinstance(exc, IndexError) and not (isinstance(exc, ValueError) and "::0" in title):
                self.wrong.append(f"`{title}` raised {type(exc).__name__}, expected IndexError: {exc}")
                self.trace = self.trace or trace_of(exc)
        if found is not None:
            self.wrong.append(f"`{title}` gave {found}, expected IndexError")
        try:
            now = x.tolist()
        except IndexError:  # a lazy backend refuses the write only when the values are read
            return
        if now != _TWO_BY_THREE:
            self.wrong.append(f"`{title}` changed x from {_TWO_BY_THREE} to {now}")

    def check(self, what: str) -> Check:
        """Return the outcome of these attempts: missing only if every one of them is."""
        advice = (
            "the core checks what it can before a kernel is called; with `checks_indices` your kernels must, before they write, and "
            "on a `lazy` backend when values are computed. Leave `checks_indices` False, or raise IndexError: "
        )
        lacks = "; ".join(dict.fromkeys(self.lacks.values())) if len(self.lacks) == self.count else ""
        return Check(what, not self.wrong, advice + "; ".join(self.wrong), lacks, self.trace)


def _refusals(backend: Backend, device: Device) -> Iterator[Check]:
    """Check that invalid keys raise, or at least write nothing if the values of the index array cannot be read."""

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
    keys = [(name, make(i)) for name, make in _HOSTILE.items()]
    uses: tuple[tuple[str, str, Callable[[Any, Any], Any], list[tuple[str, Any]]], ...] = (
        ("reads with invalid keys are errors", "x[{}]", read, keys),
        ("writes with invalid keys are errors, and write nothing", "x[{}] = 7.0", write, keys),
        ("`take` refuses indices out of range", "take({}, axis=1)", take, [("3", 3), ("-4", -4)]),
        ("`take_along_axis` refuses indices out of range", "take_along_axis({}, axis=1)", along, [("3", 3), ("-4", -4)]),
        ("`index_add_` refuses indices out of range, and writes nothing", "index_add_(0, {})", add, [("2", 2), ("-3", -3)]),
    )
    for what, form, use, arguments in uses:
        attempts = _Attempts(device)
        for name, argument in arguments:
            attempts.attempt(form.format(name), functools.partial(use, argument))
        yield attempts.check(f"{device}: {what}")


def _reads(device: Device) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return reads by index arrays, and their gradients, with the expected values."""
    i = _index(device)
    x = xp.asarray(_TWO_BY_THREE, device=device)

    def gradient(read: Callable[[Any], Any]) -> Any:
        leaf = xp.asarray(_TWO_BY_THREE, device=device).requires_grad_()
        xp.sum(read(leaf) * 2.0).backward()
        assert leaf.grad is not None
        return leaf.grad.tolist()

    return {
        "`x[[1, -2, 1]]` reads rows": (lambda: x[i([1, -2, 1])].tolist(), [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "`x[[]]` reads nothing": (lambda: list(x[i([])].shape), [0, 3]),
        "`take` reads columns in any order": (
            lambda: xp.take(x, i([2, 0, -2, 2]), axis=1).tolist(), [[3.0, 1.0, 2.0, 3.0], [6.0, 4.0, 5.0, 6.0]],
        ),
        "`take` reads a row several times": (lambda: xp.take(x, i([1, 1, 1]), axis=0).tolist(), [[4.0, 5.0, 6.0]] * 3),
        "`take_along_axis` reads by row": (
            lambda: xp.take_along_axis(x, i([[-1, 0], [2, -3]]), axis=1).tolist(), [[3.0, 1.0], [6.0, 4.0]],
        ),
        "the gradient of `x[[0, 0, -1], [1, 1, 2]]` adds": (
            lambda: gradient(lambda leaf: leaf[i([0, 0, -1]), i([1, 1, 2])]), [[0.0, 4.0, 0.0], [0.0, 0.0, 2.0]],
        ),
        "the gradient of `take` adds": (
            lambda: gradient(lambda leaf: xp.take(leaf, i([2, 0, -1, 2]), axis=1)), [[2.0, 0.0, 6.0]] * 2,
        ),
        "the gradient of `take_along_axis` adds": (
            lambda: gradient(lambda leaf: xp.take_along_axis(leaf, i([[1, 1], [2, 0]]), axis=1)), [[0.0, 4.0, 0.0], [2.0, 0.0, 2.0]],
        ),
    }  # fmt: skip


def _writes(device: Device) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return writes by index arrays, with the expected values: of duplicates the last one is written, and all are added."""
    i = _index(device)
    x = xp.asarray(_TWO_BY_THREE, device=device)

    def written(write: Callable[[Any], Any]) -> Any:
        y = x * 1.0
        write(y)
        return y.tolist()

    def duplicates(y: Any) -> None:
        y[:, i([0, -1, 0])] = xp.asarray([[10.0, 20.0, 30.0]], device=device)

    def nothing(y: Any) -> None:
        y[i([])] = 7.0

    def mixed(y: Any) -> None:
        y[i([0]), 1] = 9.0

    def part(y: Any) -> None:
        y[1, 1:] = 7.0

    return {
        "`y[1, 1:] = 7` writes a part": (lambda: written(part), [[1.0, 2.0, 3.0], [4.0, 7.0, 7.0]]),
        "`y[:, [0, -1, 0]] = ...` writes the last of duplicates": (lambda: written(duplicates), [[30.0, 2.0, 20.0], [30.0, 5.0, 20.0]]),
        "`y[[]] = 7` writes nothing": (lambda: written(nothing), _TWO_BY_THREE),
        "`y[[0], 1] = 9` writes one element": (lambda: written(mixed), [[1.0, 9.0, 3.0], [4.0, 5.0, 6.0]]),
        "`index_add_` adds duplicates": (
            lambda: written(lambda y: y.index_add_(1, i([0, -1, 0]), xp.ones_like(y))), [[3.0, 2.0, 4.0], [6.0, 5.0, 7.0]],
        ),
    }  # fmt: skip


def _joins(device: Device) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return arrays that are joined from pieces, and their gradients, with the expected values.

    In a library that divides arrays into chunks, these pieces have different lengths, and these operands different divisions.
    """
    rows = _TWO_BY_THREE

    def operands() -> tuple[Any, ...]:
        x = xp.asarray(rows, device=device)
        return x, xp.concat([x[:, :1], x[:, 1:]], axis=1), xp.concat([x[:1], x[1:]], axis=0)

    def pairs(axis: int) -> list[Any]:
        return [xp.concat([a, b], axis=axis).tolist() for a in operands() for b in operands()]

    def pieces() -> Any:
        x = operands()[0]
        return xp.concat([x[:, :1], x, x[:, 1:]], axis=1).tolist()

    def stacked() -> Any:
        return xp.stack(operands(), axis=1).tolist()

    def gradient() -> Any:
        leaf = xp.asarray(rows, device=device).requires_grad_()
        joined = xp.concat([leaf[:, :1], xp.concat([leaf, leaf[:, 1:]], axis=1)], axis=1)
        xp.sum(joined * xp.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], device=device)).backward()
        assert leaf.grad is not None
        return leaf.grad.tolist()

    return {
        "`concat` joins pieces of different lengths": (pieces, [[1.0, 1.0, 2.0, 3.0, 2.0, 3.0], [4.0, 4.0, 5.0, 6.0, 5.0, 6.0]]),
        "`concat` joins operands that are divided differently, axis 0": (lambda: pairs(0), [rows + rows] * 9),
        "`concat` joins operands that are divided differently, axis 1": (lambda: pairs(1), [[row + row for row in rows]] * 9),
        "`stack` joins operands that are divided differently": (stacked, [[row] * 3 for row in rows]),
        "the gradient of `concat` reaches each piece": (gradient, [[3.0, 8.0, 10.0], [3.0, 8.0, 10.0]]),
    }
