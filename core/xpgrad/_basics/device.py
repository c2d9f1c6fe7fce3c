"""`Device`: the place of a Tensor's array, written ``backend[+variant][:kind][:index]``."""

from __future__ import annotations

import re
from typing import Any

_FORM = re.compile(r"(?P<backend>[A-Za-z_][\w-]*)(?:\+(?P<variant>[\w-]+))?(?::(?P<kind>[A-Za-z_]\w*))?(?::(?P<index>\d+))?")


class Device:
    """A place for arrays: a backend, a variant of it, a kind of device and an index. Frozen and hashable.

    It equals its canonical string, and ``Device(str(device)) == device``.

    Parameters
    ----------
    spec : str or Device
        ``"numpy"``, ``"numpy+readonly"``, ``"jax:cpu:1"``, ``"cupy:0"``.

    Raises
    ------
    ValueError
        If the string is not of the form ``backend[+variant][:kind][:index]``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.Device("numpy+readonly")
    Device('numpy+readonly')
    """

    __module__ = "xpgrad"  # what pickles name
    __slots__ = ("_text", "backend", "index", "kind", "variant")

    _text: str
    backend: str
    variant: str | None
    kind: str | None
    index: int | None

    def __new__(cls, spec: str | Device) -> Device:
        if isinstance(spec, Device):
            return spec
        if not isinstance(spec, str):
            msg = f"a device is named by a string such as 'numpy' or 'jax:cpu:1', but got {type(spec).__name__} {spec!r}"
            raise TypeError(msg)
        match = _FORM.fullmatch(spec)
        if match is None:
            msg = f"{spec!r} does not name a device; write it as backend[+variant][:kind][:index], e.g. 'numpy' or 'jax:cpu:1'"
            raise ValueError(msg)
        self = super().__new__(cls)
        index = match["index"]
        for name, value in (
            ("backend", match["backend"]),
            ("variant", match["variant"]),
            ("kind", match["kind"]),
            ("index", None if index is None else int(index)),
            ("_text", spec if index is None else f"{spec[: -len(index)]}{int(index)}"),
        ):
            object.__setattr__(self, name, value)
        return self

    @property
    def table(self) -> str:
        """The name of the backend and its variant.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.Device("numpy+readonly").table
        'numpy+readonly'
        """
        return self.backend if self.variant is None else f"{self.backend}+{self.variant}"

    def __setattr__(self, name: str, value: Any) -> None:
        msg = f"a Device is frozen; make a new one, e.g. `xpgrad.Device({self._text!r})`"
        raise AttributeError(msg)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Device, str)):
            return self._text == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Device({self._text!r})"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Device, (self._text,))
