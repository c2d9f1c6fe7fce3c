"""Operations by name: tables of the public functions and primitives, and the namespace in which formulas find them.

Layers below the rules call an operation through it: ``operations.zeros_like(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Public functions by how they differentiate; every function of the standard is in exactly one of these tables.
RULES: dict[str, Callable[..., Any]] = {}
NONDIFFERENTIABLE: dict[str, Callable[..., Any]] = {}
COMPOSITE: dict[str, Callable[..., Any]] = {}
#: Public functions outside the standard, from modules that load late, such as ``"scipy.special.erf"``.
EXTRAS: dict[str, Callable[..., Any]] = {}
#: Operations with rules, on Tensors: all arguments are positional and already normalised.
PRIMITIVES: dict[str, Callable[..., Any]] = {}
#: Public functions by the name of their Tensor method, and by that of their in-place method.
METHODS: dict[str, Callable[..., Any]] = {}
IN_PLACE: dict[str, Callable[..., Any]] = {}
#: The package `xpgrad`, which sets this when it is imported.
package: Any = None


class _TensorNamespace:
    """The ``xp`` of a formula that runs on Tensors: public functions and primitives by name."""

    def __getattr__(self, name: str) -> Any:
        found: Any = None
        for table in (PRIMITIVES, RULES, NONDIFFERENTIABLE, COMPOSITE):
            found = found or table.get(name)
        if found is None:
            found = getattr(package, name)
        setattr(self, name, found)
        return found


operations: Any = _TensorNamespace()
