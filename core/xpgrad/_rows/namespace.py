"""Operations by name: the tables of public functions and primitives, and the namespace in which formulas find them.

Floors below the rules reach an operation through it: ``operations.zeros_like(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Public functions by how they differentiate: every function of the standard is in exactly one of the three.
RULES: dict[str, Callable[..., Any]] = {}
NONDIFFERENTIABLE: dict[str, Callable[..., Any]] = {}
COMPOSITE: dict[str, Callable[..., Any]] = {}
#: Public functions that the standard does not have, of parts that load late: ``"scipy.special.erf"``.
EXTRAS: dict[str, Callable[..., Any]] = {}
#: What rules are written for: operations on Tensors that take all arguments by position and normalise nothing.
PRIMITIVES: dict[str, Callable[..., Any]] = {}
#: Public functions by the names of the methods of a Tensor that compute them, and of those that write the result into it.
METHODS: dict[str, Callable[..., Any]] = {}
IN_PLACE: dict[str, Callable[..., Any]] = {}
#: The package `xpgrad`, which hands itself over when it is loaded.
package: Any = None


class _TensorNamespace:
    """The ``xp`` of a formula that runs on Tensors: the public functions and the primitives, by name."""

    def __getattr__(self, name: str) -> Any:
        found: Any = None
        for table in (PRIMITIVES, RULES, NONDIFFERENTIABLE, COMPOSITE):
            found = found or table.get(name)
        if found is None:
            found = getattr(package, name)
        setattr(self, name, found)
        return found


operations: Any = _TensorNamespace()
