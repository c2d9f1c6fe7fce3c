"""The emitters for NumPy's arrays: source, machine code and C. Importing this module does not import NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.emitter import EmitterInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["C", "NATIVE", "NUMPY"]

_Function = Callable[..., tuple[Any, ...]]


class _Plugin:
    """What an entry point names: an object with the hook of one emitter."""

    def __init__(
        self, name: str, function: Callable[..., _Function], source: Callable[..., str], export: Callable[..., dict[str, str]] | None = None
    ) -> None:  # fmt: skip
        self.info = EmitterInfo(name, function, source, ("numpy",), loops=True, export=export)

    @hookimpl
    def xpgrad_emitter(self) -> EmitterInfo:
        return self.info


def _numpy_function(program: Any, backend: Any, threads: int | None) -> _Function:
    from xpgrad.programs.emission import numpy_function  # NB: only programs that compile need it

    return numpy_function(program, backend, threads)


def _numpy_text(program: Any, backend: Any, threads: int | None) -> str:
    from xpgrad.programs.emission import numpy_source  # NB: as above

    return numpy_source(program, threads=threads).text


def _native_function(program: Any, backend: Any, threads: int | None) -> _Function:
    from xpgrad_numpy._native import native_function  # NB: loads llvmlite

    return native_function(program, backend, threads)


def _c_function(program: Any, backend: Any, threads: int | None) -> _Function:
    from xpgrad_numpy._c import c_function  # NB: as above

    return c_function(program, backend, threads)


def _c_text(program: Any, backend: Any, threads: int | None) -> str:
    from xpgrad_numpy._c import c_text  # NB: as above

    return c_text(program, backend, threads)


def _c_files(captured: Any, stem: str, origin: list[str]) -> dict[str, str]:
    from xpgrad_numpy._c_export import export_c  # NB: as above

    return export_c(captured, stem, origin)


NUMPY = _Plugin("numpy", _numpy_function, _numpy_text)
#: Its text for people is the NumPy source that computes the same.
NATIVE = _Plugin("native", _native_function, _numpy_text)
C = _Plugin("c", _c_function, _c_text, _c_files)
