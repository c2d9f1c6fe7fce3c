"""Make ``import autograd`` import this dialect, for programs that are not to be edited."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from xpgrad.dialects.hips._arrays import ARRAY

__all__ = ["install"]

_THEIRS, _OURS = "autograd", "xpgrad.dialects.hips"


class _Aliases(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find ``autograd.NAME`` as the module ``xpgrad.dialects.hips.NAME``: one module under two names."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if fullname != _THEIRS and not fullname.startswith(f"{_THEIRS}."):
            return None
        own = _OURS + fullname.removeprefix(_THEIRS)
        if importlib.util.find_spec(own) is None:  # its package exists: Python imports the package of a module first
            msg = f"No module named {fullname!r}: `{_OURS}`, which is installed as `{_THEIRS}`, has no such module"
            raise ModuleNotFoundError(msg, name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(_OURS + spec.name.removeprefix(_THEIRS))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias = module.__spec__
        assert alias is not None
        module.__spec__ = alias.loader_state  # the import system has replaced it; the module keeps its own name


def install() -> None:
    """Make ``import autograd``, and the imports of its modules, import this dialect in this process.

    Calling it again has no effect. ``python -m xpgrad.dialects.hips PROGRAM`` and ``pytest -p xpgrad_hips`` call it first.

    Raises
    ------
    RuntimeError
        HIPS autograd itself has been imported, whose functions and arrays other modules may hold already.

    Examples
    --------
    >>> from xpgrad.dialects import hips
    >>> hips.install()
    >>> from autograd import grad  # the dialect's
    >>> float(grad(lambda x: x**3)(2.0))
    12.0
    """
    if any(isinstance(finder, _Aliases) for finder in sys.meta_path):
        return
    found = sorted(name for name in sys.modules if name == _THEIRS or name.startswith(f"{_THEIRS}."))
    if found:
        msg = (
            f"`{found[0]}` has been imported already, and other modules may hold its functions; call `{_OURS}.install()` before the "
            "first import of autograd, e.g. by `python -m xpgrad.dialects.hips PROGRAM` or `pytest -p xpgrad_hips`"
        )
        raise RuntimeError(msg)
    sys.meta_path.insert(0, _Aliases())
    # Programs and libraries look up functions by the names of the classes of their operands.
    ARRAY.__name__ = ARRAY.__qualname__ = "ArrayBox"
    ARRAY.__module__ = f"{_THEIRS}.numpy.numpy_boxes"
