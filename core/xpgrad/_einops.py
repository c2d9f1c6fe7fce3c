"""A backend for einops, whose functions take Tensors of every device with it. It registers itself when einops is imported, before or after
xpgrad: einops looks for subclasses of its `AbstractBackend`, which exists only then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xpgrad._rows import namespace

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: The module of einops that has the base class of backends.
_MODULE = "einops._backends"
#: The classes that were declared; einops' base class refers to its subclasses weakly.
_DECLARED: list[type] = []


def _declare_backend(module: Any) -> None:
    """Make the backend's class; that it is a subclass of einops' base class registers it."""
    xp: Any = namespace.package

    class XpgradBackend(module.AbstractBackend):  # type: ignore[misc]
        framework_name = "xpgrad"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, xp.Tensor)

        def from_numpy(self, x: Any) -> Any:
            return xp.asarray(x)

        def to_numpy(self, x: Any) -> Any:
            return x.numpy()

        def arange(self, start: int, stop: int) -> Any:
            return xp.arange(start, stop)

        def reshape(self, x: Any, shape: Sequence[int]) -> Any:
            return xp.reshape(x, tuple(shape))

        def transpose(self, x: Any, axes: Sequence[int]) -> Any:
            return xp.permute_dims(x, tuple(axes))

        def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
            return getattr(xp, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return xp.stack(tensors)

        def concat(self, tensors: Sequence[Any], axis: int) -> Any:
            return xp.concat(tensors, axis=axis)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return xp.expand_dims(x, axis=new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            for position in pos2len:
                x = xp.expand_dims(x, axis=position)
            return xp.broadcast_to(x, tuple(pos2len.get(i, length) for i, length in enumerate(x.shape)))  # a view, unlike a tiled array

        def tile(self, x: Any, repeats: Sequence[int]) -> Any:
            return xp.tile(x, tuple(repeats))

        def is_float_type(self, x: Any) -> bool:
            return bool(xp.isdtype(x.dtype, ("real floating", "complex floating")))

        def einsum(self, pattern: str, *x: Any) -> Any:
            return sys.modules["numpy"].einsum(pattern, *x)  # which dispatches to Tensors of every device

    _DECLARED.append(XpgradBackend)


class _RegisteringLoader:
    """The loader of einops' module, which declares the backend after the module has run."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _declare_backend(module)


class _EinopsFinder:
    """A finder that waits for the import of einops, and removes itself then; it finds nothing else."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec: Any = finder.find_spec(fullname, path, target)
            if spec is not None:
                spec.loader = _RegisteringLoader(spec.loader)
                return spec
        return None


_FINDER = _EinopsFinder()


def register() -> None:
    """Declare the backend if einops was imported, and else when it is."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        _declare_backend(module)
    elif _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
