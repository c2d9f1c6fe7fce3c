"""Functions of `numpy.fft`; integers are converted to floating numbers."""

from __future__ import annotations

from typing import Any

from xpgrad import fft
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.operands import as_ints


def _declare_multi_axis(name: str, axes: tuple[int, int] | None) -> None:
    """Implement a NumPy transform over two or all axes, computed by xpgrad's n-dimensional transform."""
    function = getattr(fft, name.replace("2", "n"))

    @adapt(f"fft.{name}", floating=True)
    def transform(x: Any, s: Any = None, axes: Any = axes, norm: Any = "backward") -> Any:
        return function(x, s=None if s is None else [n if n is None else as_ints(f"fft.{name}", "s", n) for n in s], axes=axes, norm=norm)


for _name in ("fft", "ifft", "rfft", "irfft"):
    _declare_multi_axis(f"{_name}2", (-2, -1))
    _declare_multi_axis(f"{_name}n", None)
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    adapt(f"fft.{_name}", getattr(fft, _name), floating=True)
for _name in ("fftshift", "ifftshift"):
    adapt(f"fft.{_name}", getattr(fft, _name))
