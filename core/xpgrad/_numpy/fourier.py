"""`numpy.fft`."""

from __future__ import annotations

from typing import Any

from xpgrad import fft
from xpgrad._numpy.operands import as_ints, floating, into, lift
from xpgrad._numpy.table import covers

__all__: list[str] = []


def _declare() -> None:
    """Put the transforms into the table: NumPy's have a positional `n`, `axis` and `norm`, and take integers."""

    def along(name: str) -> Any:
        row = getattr(fft, name)

        def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
            (x,) = map(floating, lift(f"fft.{name}", a))
            return into(f"fft.{name}", out, row(x, n=n, axis=axis, norm=norm or "backward"))

        return transform

    def over(name: str, default: Any) -> Any:
        row = getattr(fft, name.replace("2", "n"))

        def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
            (x,) = map(floating, lift(f"fft.{name}", a))
            lengths = None if s is None else [n if n is None else as_ints(f"fft.{name}", "s", n) for n in s]
            return into(f"fft.{name}", out, row(x, s=lengths, axes=axes, norm=norm or "backward"))

        return transform

    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        covers(f"fft.{name}")(along(name))
    for name in ("fft", "ifft", "rfft", "irfft"):
        covers(f"fft.{name}2")(over(f"{name}2", (-2, -1)))
        covers(f"fft.{name}n")(over(f"{name}n", None))


_declare()


@covers("fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    """Stand for `numpy.fft.fftshift`."""
    return fft.fftshift(lift("fft.fftshift", x)[0], axes=axes)


@covers("fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    """Stand for `numpy.fft.ifftshift`."""
    return fft.ifftshift(lift("fft.ifftshift", x)[0], axes=axes)
